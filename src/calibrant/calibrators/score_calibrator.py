"""Common parts of score calibrators: classes, probabilities of both labels, and state as plain
JSON.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, FloatArray
from calibrant.calibrators.regions.parameters import NO_ASSUMPTIONS, DataAssumptions
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.calibrators.table import Table, written_by
from calibrant.errors import InvalidTypeError, InvalidValueError, no_table, warn_caller
from calibrant.guarantee.guarantee import Guarantee, is_guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.params.arrays import as_scores
from calibrant.params.declared_state import Inline, declared_entries, read_entries, written
from calibrant.params.estimator import Estimator, check_is_fitted
from calibrant.params.frames import FrameOutput, predicts
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import Classes
from calibrant.params.rules import OPEN_UNIT, CheckedParameters, thread_count
from calibrant.params.saved_state import check_schema, check_state, read_classes, read_numbers
from calibrant.params.tensors import new_array
from calibrant.sample.facts import (
    CountBeyond,
    Limits,
    Reach,
    RowFacts,
    familiar_limits,
    rows_beyond,
)
from calibrant.sample.reader import is_scored, read_rows, rows_of, scored_rows
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import shown

if TYPE_CHECKING:
    from calibrant.calibrators.regions.region_calibrator import RegionCalibrator

_SCHEMA = "calibrant.calibrator/1"
_MADE_BY_OTHERS = {
    "HoldOutCalibrator": "calibrant.calibrators.hold_out"
}  # not public, but saved and read
_NOT_SAVED = ("n_jobs", "random_state")
FACTS = Entry(Inline(RowFacts), of="_facts")
"""How the rows were read: an entry of the learned state."""


class ScoreCalibrator(FrameOutput, CheckedParameters, Estimator):
    """A map from scores to probabilities of the positive class, learned from scores and labels.

    A subclass implements `fit`, `predict` and `_take`, and declares what it learned in `_learned`.
    It sets everything it learned at the end of `fit`, so a `fit` that raises leaves the estimator
    as it was.
    """

    _learned: ClassVar[EntryTable]
    """What was learned, as saved; see `calibrant.params.declared_state`."""

    pos_label: Hashable
    guarantee_: Guarantee | NoGuarantee
    classes_: NDArray[Any]
    score_range_seen_: Limits | None = None
    """Smallest and largest score that the calibrator was fitted on; None if they are not known."""
    assumptions_: DataAssumptions = NO_ASSUMPTIONS
    """What `fit` was given about the data."""
    positive_index_: Literal[0, 1]
    """The index of the positive class in `classes_`."""

    @abstractmethod
    def predict(self, scores: ArrayLike) -> FloatArray:
        """Return the calibrated probability of the positive class, shape (n,)."""

    def _state(self) -> dict[str, Any]:
        """The learned attributes as plain JSON values."""
        return written(declared_entries(type(self), "_learned"), self)

    def _restore(self, state: Mapping[str, Any], classes: Classes) -> None:
        """Restore the learned attributes from what `_state` returned; raise an error if a rule is
        broken.
        """
        self._check_parameters()
        known = {"self": self, "classes": classes}
        self._take(read_entries(declared_entries(type(self), "_learned"), state, known), classes)

    @abstractmethod
    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        """Set the learned attributes, by the names of their entries, and derive the guarantee.

        Raise an error if entries contradict each other.
        """

    def _read(
        self, scores: ArrayLike | Sample, y: ArrayLike | None, **columns: ArrayLike | None
    ) -> Rows:
        """Check the arguments of `fit`."""
        partition = getattr(self, "_given_partition", None)
        threads = thread_count(getattr(self, "n_jobs", None))
        return read_rows(
            scores, y, pos_label=self.pos_label, partition=partition, threads=threads, **columns
        )

    def _set_classes(self, classes: Classes) -> None:
        self.classes_ = classes.labels
        self.n_features_in_ = 1
        self.positive_index_ = classes.positive_index
        self.score_range_seen_ = None

    def count_out_of_range(self, scores: ArrayLike | Sample) -> int:
        """Return how many scores seem to be on another scale: outside `score_range_seen_` by more
        than half its width.

        `predict` and similar methods issue a `CalibrantWarning` for them; `apply` does not, because
        it may be lazy.

        >>> from calibrant import PlattCalibrator
        >>> calibrator = PlattCalibrator().fit([0.0, 0.2, 0.7, 1.0], [0, 1, 0, 1])
        >>> calibrator.score_range_seen_, calibrator.count_out_of_range([0.3, 1.4, 39.0])
        ((0.0, 1.0), 1)
        """
        check_is_fitted(self)
        limits = familiar_limits(self.score_range_seen_)
        if is_scored(scores):
            held = rows_of(scores)
            return held.fold(CountBeyond(held.columns.only(), limits))
        return rows_beyond(as_scores(scores, positive_column=self.positive_index_), limits)

    def _warn_of_other_scale(self, scores: Any) -> None:
        """Warn if a score lies far beyond those that the calibrator was fitted on."""
        low, high = familiar_limits(self.score_range_seen_)
        if self.score_range_seen_ is None or not len(scores):
            return
        reach = Reach.of(scores)
        seen = Reach(*self.score_range_seen_)
        if reach.low < low or reach.high > high:
            fitted = f"the calibrator was fitted on scores {seen}"
            warn_caller(
                f"scores range {reach}, but {fitted}: check that both are on the same scale"
            )

    @predicts
    def predict_proba(self, scores: ArrayLike) -> FloatArray:
        """Return the calibrated probabilities of both classes, shape (n, 2).

        The columns follow `classes_`.
        """
        return self._both_columns(self.predict(scores))

    def _both_columns(self, positive: FloatArray) -> FloatArray:
        columns: FloatArray = new_array(positive, (positive.shape[0], 2))
        columns[:, self.positive_index_] = positive
        columns[:, 1 - self.positive_index_] = 1.0 - positive
        return columns

    def apply(self, data: Sample, *, coverage: float = 0.95, prefix: str = "") -> Any:
        """Add columns to scored data in their own engine: calibrated, and whatever else the
        calibrator predicts.

        Parameters
        ----------
        data : Sample
            See `calibrant.scored`; no label is needed.
        coverage : float, default=0.95
            Coverage of the prediction sets, for calibrators that have them. A set is text, such as
            "{0}" or "{0, 1}".
        prefix : str, default=""
            A prefix for the names of the new columns.

        Returns
        -------
        object
            A frame, relation or reader of the same engine, lazy if the engine is lazy. A row for
            which `predict` would raise an error has nulls in the new columns: its score is missing,
            not finite or out of range, or its segment was not seen in `fit`.
        """
        from calibrant.calibrators.predicted_columns import predicted_columns

        check_is_fitted(self)
        coverage = OPEN_UNIT.check("coverage", coverage)
        rows = scored_rows(data)
        return rows.apply(predicted_columns(self, rows.columns, coverage, prefix))

    @property
    def _takes_one_score(self) -> bool:
        """Whether `predict` takes one score per row, so that rows can be predicted in batches."""
        return True

    @property
    def _attribute_names(self) -> tuple[str, ...]:
        """The attributes that `predict` takes beside scores."""
        return ()

    @property
    def as_regions(self) -> RegionCalibrator | None:
        """Return this calibrator, if it has a finite partition with limits for each region.

        Otherwise None.
        """
        return None

    def _table(self, coverage: float) -> Table:
        """The predictions as a table, with sets of that coverage; raise an error if there is none."""
        check_is_fitted(self)
        return self._own_table(coverage)

    def _own_table(self, coverage: float) -> Table:
        """As `_table`, once fitted. A calibrator that a table can describe implements it."""
        raise no_table(type(self).__name__)

    def _table_notes(self, mark: str = "") -> tuple[str, str]:
        """Notes for a reader of the table: its origin, and what is guaranteed."""
        guaranteed = " ".join(self.guarantee_.sentence.split())
        return written_by(type(self).__name__, mark), guaranteed

    def _step_function(self) -> tuple[FloatArray, FloatArray] | None:
        """The cuts, and the predictions between them, if the prediction is a step function of the
        score: at k cuts or more, but not at k + 1, it is entry k. Otherwise None.
        """
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted calibrator as plain JSON values; `from_dict` reads it back."""
        check_is_fitted(self)
        return {
            "schema": _SCHEMA,
            **_description(self),
            "classes": self.classes_.tolist(),
            "positive_index": self.positive_index_,
            **({"stated": assumptions} if (assumptions := self.assumptions_.to_dict()) else {}),
            "state": self._state(),
            **(
                {}
                if self.score_range_seen_ is None
                else {"score_range_seen": list(self.score_range_seen_)}
            ),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote.

        Called on `ScoreCalibrator` itself, it reads any type of calibrator in this package.
        """
        check_schema(state, _SCHEMA, ("type", "parameters", "classes", "positive_index", "state"))
        kind = cls if state["type"] == _type_name(cls) else _own_type(state["type"])
        if (
            kind is None
            or not issubclass(kind, cls)
            or getattr(kind._take, "__isabstractmethod__", False)
        ):
            known = "a known calibrator" if cls is ScoreCalibrator else repr(cls.__name__)
            raise InvalidValueError(
                "type of the calibrator", f"be {known}", got=shown(state["type"])
            )
        calibrator = cast(Self, _made(kind, state["parameters"]))
        classes = read_classes(state["classes"], state["positive_index"])
        pos_label = calibrator.get_params(deep=False).get("pos_label")
        if pos_label is not None and pos_label != classes.positive:
            raise InvalidValueError(
                "pos_label", f"be None or {classes.positive!r}", got=shown(pos_label)
            )
        check_state(state["state"])
        calibrator.assumptions_ = DataAssumptions.from_dict(state.get("stated", {}))
        calibrator._restore(state["state"], classes)
        if "score_range_seen" in state:
            low, high = read_numbers(state["score_range_seen"], "score_range_seen", size=2).tolist()
            if low > high:
                raise InvalidValueError(
                    "score_range_seen", "be increasing", got=f"{low:g} and {high:g}"
                )
            calibrator.score_range_seen_ = (low, high)
        calibrator.mark_as_read()
        return calibrator

    def mark_as_read(self) -> None:
        """Record in the guarantee what was read and needs the rows to be recomputed."""
        if is_guarantee(self.guarantee_):
            self.guarantee_ = replace(self.guarantee_, read=self._needs_rows())

    def _needs_rows(self) -> tuple[str, ...]:
        """The parts of the guarantee that only the rows can determine; everything else is derived
        when a state is read.
        """
        return ("counts",)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


def fitted_copy(base: ScoreCalibrator, rows: MemoryRows) -> ScoreCalibrator:
    """A copy of a calibrator, fitted to rows with the labels 0 and 1, that accepts scores of any
    range without a warning.
    """
    from sklearn.base import clone

    fitted: ScoreCalibrator = clone(base).set_params(pos_label=1)
    weighted = {} if rows.weights is None else {"importance_weight": rows.weights}
    with reported_by_caller():
        fitted.fit(rows.scores, rows.codes, classes=(0, 1), **weighted)
    fitted.score_range_seen_ = None
    return fitted


def _own_type(name: object) -> type[ScoreCalibrator] | None:
    """The calibrator of this package with that name. User-written classes are never found here."""
    kind = None
    for module in ("calibrant", "calibrant.calibrators"):  # which list the public names
        if isinstance(name, str) and name in import_module(module).__all__:
            kind = getattr(import_module(module), name)
    if isinstance(name, str) and name in _MADE_BY_OTHERS:
        kind = getattr(import_module(_MADE_BY_OTHERS[name]), name)
    known = (
        isinstance(kind, type) and issubclass(kind, ScoreCalibrator) and kind is not ScoreCalibrator
    )
    return kind if known else None


def _type_name(kind: type[ScoreCalibrator]) -> str:
    """The name of one of our types; for a user-written type, the name with its module."""
    return (
        kind.__name__
        if _own_type(kind.__name__) is kind
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _description(calibrator: ScoreCalibrator) -> dict[str, Any]:
    """The type and the parameters, as plain JSON values."""
    parameters = calibrator.get_params(deep=False)
    saved = {k: v for k, v in parameters.items() if k not in _NOT_SAVED}
    if (
        saved.get("partition") != "uniform"
    ):  # usual values are not written, and given regions are learned
        saved.pop("partition", None)
    return {
        "type": _type_name(type(calibrator)),
        "parameters": {k: _plain(k, v) for k, v in saved.items()},
    }


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, ScoreCalibrator):
        return _description(value)
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(name, entry) for entry in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidTypeError(name, "be a plain value to be saved as JSON", got=type(value).__name__)


def _made(kind: type[ScoreCalibrator], parameters: Any) -> ScoreCalibrator:
    """A calibrator with saved parameters; its own rules check their values."""
    check_state(parameters)
    known = [name for name in signature(kind).parameters if name not in _NOT_SAVED]
    if unknown := [name for name in parameters if name not in known]:
        raise InvalidValueError(
            f"parameters of a {kind.__name__}", f"be among {known}", got=shown(unknown[0])
        )
    return kind(**{name: _revived(value) for name, value in parameters.items()})


def _revived(value: Any) -> Any:
    if isinstance(value, Mapping):
        check_state(value, ("type", "parameters"))
        kind = _own_type(value["type"])
        if kind is None:
            raise InvalidValueError(
                "type of the calibrator", "be a known calibrator", got=shown(value["type"])
            )
        return _made(kind, value["parameters"])
    return tuple(value) if isinstance(value, list) else value
