"""Common parts of both reductions: checks of columns and labels, and the parameters of the bins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, FloatArray, IndexArray
from calibrant.calibrators.binning import BinningCalibrator
from calibrant.calibrators.curve.estimator import Calibrator
from calibrant.calibrators.regions.parameters import (
    INTERVAL,
    N_BINS,
    NO_ASSUMPTIONS,
    VALUE,
    DataAssumptions,
)
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import (
    FIX_ROWS,
    MissingValuesError,
    as_array,
    as_column,
    check_rows,
    check_same_length,
)
from calibrant.params.estimator import Estimator, check_is_fitted
from calibrant.params.frames import FrameOutput
from calibrant.params.labels import CODED, of_one_kind
from calibrant.params.rules import CheckedParameters, Choice, RuleTable
from calibrant.params.saved_state import check_schema, check_state, read_labels
from calibrant.sample.reader import is_scored
from calibrant.text.sentences import Setting, shown

OneClass: TypeAlias = Calibrator | BinningCalibrator
"""The calibrator of one class against the rest."""

_SCHEMA = "calibrant.multiclass/1"


@dataclass(eq=False, repr=False)
class ColumnsCalibrator(FrameOutput, CheckedParameters, Estimator):
    """A calibrator of scores with one column per class."""

    _key: ClassVar[str]  # of the learned attributes, in a saved state

    _rules: ClassVar[RuleTable] = {
        "n_bins": N_BINS,
        "method": Choice(("curve", "binning")),
        "interval": INTERVAL,
        "value": VALUE,
    }

    n_bins: int | str = "auto"
    _: KW_ONLY
    method: str = "curve"
    confidence_level: float = 0.9
    interval: str = "auto"
    value: str = "jeffreys"

    assumptions_ = NO_ASSUMPTIONS

    def fit(
        self,
        scores: ArrayLike,
        y: ArrayLike | None = None,
        *,
        importance_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        weight_bound: float | None = None,
        max_group_size: int | None = None,
        group_target: str = "rows",
    ) -> Self:
        """Calibrate the scores of each class against the labels.

        Parameters
        ----------
        scores : array-like of shape (n, L)
            One column per class, such as the output of `predict_proba`, for rows that the model was
            not trained on.
        y : array-like of shape (n,)
            Their labels.
        importance_weight : array-like of shape (n,), optional
            How much each row counts, as in `Calibrator.fit`; give `weight_bound` too.
        groups : array-like of shape (n,), optional
            The group of each row, as in `Calibrator.fit`.
        classes : array-like of shape (L,), optional
            The label of each column of scores; by default the sorted labels of y.
        weight_bound, max_group_size, group_target
            For `importance_weight` and `groups`, as in `Calibrator.fit`.

        Returns
        -------
        self
        """
        self._check_parameters()
        assumptions = DataAssumptions(
            weight_bound=weight_bound,
            max_group_size=max_group_size,
            group_target=group_target,
        )
        checked = self._checked(scores, y, classes)
        self._fit(*checked, assumptions, importance_weight=importance_weight, groups=groups)
        return self

    @abstractmethod
    def _fit(
        self,
        columns: FloatArray,
        label: IndexArray,
        classes: NDArray[Any],
        assumptions: DataAssumptions,
        **beside: ArrayLike | None,
    ) -> None:
        """Calibrate checked scores, given the column index of each row's class."""

    def _calibrator(self, confidence_level: float) -> OneClass:
        """The calibrator of one class, with labels 0 and 1."""
        given: dict[str, Any] = {"n_bins": self.n_bins, "interval": self.interval}
        if self.method == "curve":
            return Calibrator(confidence_level=confidence_level, **given)
        return BinningCalibrator(confidence_level=confidence_level, value=self.value, **given)

    def _restored(self, confidence_level: float, state: Any) -> OneClass:
        """The calibrator of one class that had this state."""
        found = self._calibrator(confidence_level)
        found.assumptions_ = self.assumptions_
        found._restore(state, CODED)
        found.mark_as_read()
        return found

    def _checked(
        self, scores: ArrayLike, y: ArrayLike | None, classes: ArrayLike | None
    ) -> tuple[FloatArray, IndexArray, NDArray[Any]]:
        """Scores as columns, the column index of each row's class, and the classes."""
        columns = _as_columns(scores)
        labels = _as_labels(y)
        check_same_length(columns, labels)
        if not len(columns):
            raise InvalidValueError("y", "have at least one row", got="an empty array")
        known = np.unique(labels) if classes is None else as_array(classes, "classes")
        if known.shape != (columns.shape[1],) or np.unique(known).size != known.size:
            rule = (
                f"have one label for each of the {columns.shape[1]} columns of scores, in their"
                " order"
            )
            advice = ("pass ", Setting("classes", python="classes=model.classes_"))
            raise InvalidValueError("classes", rule, got=shown(known.tolist()), advice=advice)
        order = np.argsort(known)
        place = np.clip(np.searchsorted(known[order], labels), 0, known.size - 1)
        strange = np.flatnonzero(known[order][place] != labels)
        if strange.size:
            rule = f"contain only labels of classes {shown(known.tolist())}"
            raise InvalidValueError("y", rule, shown(labels[strange[0]]))
        return columns, order[place], known

    def _columns(self, scores: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        columns = _as_columns(scores)
        if columns.shape[1] != self.classes_.size:
            raise InvalidValueError(
                "scores", f"have {self.classes_.size} columns", got=f"{columns.shape[1]}"
            )
        return columns

    @abstractmethod
    def _state(self) -> Any:
        """The learned attributes as plain JSON values."""

    @abstractmethod
    def _restore(self, saved: Any) -> None:
        """Restore the learned attributes from what `_state` returned; raise an error if a rule is
        broken.
        """

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted calibrator as plain JSON values; `from_dict` reads it back."""
        check_is_fitted(self)
        return {
            "schema": _SCHEMA,
            "type": type(self).__name__,
            "parameters": {name: getattr(self, name) for name in self._parameter_rules()},
            "classes": self.classes_.tolist(),
            **({"stated": told} if (told := self.assumptions_.to_dict()) else {}),
            self._key: self._state(),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote.

        Called on `ColumnsCalibrator` itself, it reads a calibrator of either type.
        """
        check_schema(state, _SCHEMA, ("type",))
        if cls is ColumnsCalibrator:
            kinds: dict[str, Any] = {kind.__name__: kind for kind in cls.__subclasses__()}
            if state["type"] not in kinds:
                rule = f"be one of {sorted(kinds)}"
                raise InvalidValueError("type of the state", rule, got=shown(state["type"]))
            found: Self = kinds[state["type"]].from_dict(state)
            return found
        check_state(state, ("parameters", "classes", cls._key))
        if state["type"] != cls.__name__:
            raise InvalidValueError(
                "type of the state", f"be {cls.__name__!r}", got=shown(state["type"])
            )
        parameters = state["parameters"]
        known = cls._parameter_rules()
        check_state(parameters, known)
        if unknown := [name for name in parameters if name not in known]:
            raise InvalidValueError("parameters", f"be {', '.join(known)}", got=shown(unknown[0]))
        calibrator = cls(**parameters)
        calibrator._check_parameters()
        classes = read_labels(state["classes"])
        if len(classes) < 2:
            raise InvalidValueError("classes", "be at least two labels", got=shown(classes))
        calibrator._set_classes(np.array(classes))
        calibrator.assumptions_ = DataAssumptions.from_dict(state.get("stated", {}))
        calibrator._restore(state[cls._key])
        return calibrator

    def _set_classes(self, classes: NDArray[Any]) -> None:
        self.classes_ = classes
        self.n_features_in_ = int(classes.size)


def _as_labels(y: ArrayLike | None) -> NDArray[Any]:
    try:
        return of_one_kind(as_column(y, "y"), "y")
    except MissingValuesError as error:
        error.advice = FIX_ROWS  # not to use `scored`, which has one score
        raise


def _as_columns(scores: ArrayLike) -> FloatArray:
    """Finite scores with at least two columns."""
    if is_scored(scores):
        advice = "pass an array of their columns"
        raise InvalidTypeError(
            "scores",
            "have one column per class",
            got="scored(...) data, which have one",
            advice=advice,
        )
    columns = as_array(scores, "scores")
    if columns.ndim != 2 or columns.shape[1] < 2:
        raise InvalidValueError(
            "scores",
            "have shape (n, L), one column per class",
            got=f"shape {columns.shape}",
        )
    if columns.dtype.kind not in "biuf":
        raise InvalidTypeError("scores", "be real numbers", got=f"dtype {columns.dtype}")
    columns = columns.astype(np.float64)
    check_rows(~np.isfinite(columns).all(axis=1), columns, "scores", "be finite")
    return columns
