"""Probabilities of several classes that were fixed beforehand, and a proof for each class against
the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, BoolArray, FloatArray
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.calibrators.label_sets import LabelSets
from calibrant.calibrators.regions.weakness import reported_by_caller, warn_if_weak
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.class_wise import ClassWiseGuarantee
from calibrant.params.arrays import as_array, check_rows
from calibrant.params.random import RandomSource
from calibrant.params.rules import OPEN_UNIT, error_budget
from calibrant.params.saved_state import check_schema, check_state, read_labels, read_numbers
from calibrant.text.sentences import shown

_SCHEMA = "calibrant.class_wise_hold_out/1"


@dataclass(frozen=True, slots=True, eq=False)
class PilotRows:
    """Rows that only choose the regions: probabilities, one column per class, labels, and possibly
    groups.
    """

    probabilities: FloatArray
    labels: NDArray[Any]
    groups: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class ClassWiseHoldOut:
    """What held-out rows prove about the probabilities of several classes, which are not changed.

    Claimed, for every distribution: with probability at least the confidence level over the rows
    that prove, for every class and in every bin of its probability simultaneously, the average
    probability differs from the true rate of the class by at most the bin's epsilon. Assumed: these
    rows and future rows are i.i.d. (with groups: whole groups are), and the probabilities do not
    depend on these rows.

    Each of L classes has the level 1 - alpha / L. The classes share their rows, so their limits are
    dependent; Bonferroni over classes holds for any dependence. The probabilities are not moved: if
    those of a row add up to 1, they still do.

    Attributes
    ----------
    classes_ : array of shape (L,)
        The labels, in the order of the columns.
    calibrators_ : tuple of HoldOutCalibrator
        One for each class.
    guarantee_ : ClassWiseGuarantee
        What is proved about all classes simultaneously.
    own_probabilities_ : float array of shape (n,), or None
        The probabilities that were predicted for the labels of the proof rows, sorted; used for
        sets. None if rows have groups.
    """

    classes_: NDArray[Any]
    calibrators_: tuple[HoldOutCalibrator, ...]
    guarantee_: ClassWiseGuarantee
    own_probabilities_: FloatArray | None = None

    @classmethod
    def proved(
        cls,
        probabilities: FloatArray,
        labels: NDArray[Any],
        classes: NDArray[Any],
        pilot: PilotRows,
        *,
        confidence_level: float,
        source: RandomSource,
        groups: ArrayLike | None = None,
        over_seed: bool = False,
        n_bins: int | str = "auto",
    ) -> Self:
        """Bet on the label of each class minus its probability.

        See `HoldOutCalibrator.fit` for the arguments. `over_seed` says that the probability is also
        over the seed that drew the rows.
        """
        level = 1.0 - error_budget(confidence_level) / classes.size
        fitted = []
        for column, label in enumerate(classes.tolist()):
            calibrator = HoldOutCalibrator(n_bins, confidence_level=level, moves=False)
            with reported_by_caller():
                calibrator.fit(
                    probabilities[:, column],
                    labels == label,
                    pilot_scores=pilot.probabilities[:, column],
                    pilot_y=pilot.labels == label,
                    groups=groups,
                    pilot_groups=pilot.groups,
                    source=source,
                    classes=(False, True),
                )
            if over_seed:
                calibrator.set_over_seed()
            fitted.append(calibrator)
        own = None
        if groups is None:
            own = np.sort(probabilities[labels[:, None] == classes])
        return cls._of(classes, tuple(fitted), float(confidence_level), own)

    @classmethod
    def _of(
        cls,
        classes: NDArray[Any],
        calibrators: tuple[HoldOutCalibrator, ...],
        confidence_level: float,
        own: FloatArray | None,
    ) -> Self:
        """The proof, from that of each class."""
        named = zip(classes.tolist(), calibrators, strict=True)
        guarantees = {label: replace(one.guarantee_, positive_label=label) for label, one in named}
        read = tuple(dict.fromkeys(part for one in calibrators for part in one.guarantee_.read))
        said = ClassWiseGuarantee(confidence_level, guarantees, adds_up=True, read=read)
        return cls(classes, calibrators, said, own)

    def warn_if_weak(self) -> None:
        """Warn if little is proved about some class."""
        name, weakest = max(
            self.guarantee_.guarantees.items(), key=lambda one: one[1].stated.epsilon
        )
        warn_if_weak(weakest, of=f" of class {name!r}")

    def predict_proba(self, scores: ArrayLike) -> FloatArray:
        """Return the probabilities unchanged, shape (n, L)."""
        return self._columns(scores)

    def predict_interval(self, scores: ArrayLike) -> FloatArray:
        """Return each probability shifted by the limits on the average error of its bin, shape (n,
        L, 2).
        """
        return self._of_each("predict_interval", scores)

    def predict_rate_interval(self, scores: ArrayLike) -> FloatArray:
        """Return confidence limits for the true rate of each class in the bin of its probability,
        shape (n, L, 2).
        """
        return self._of_each("predict_rate_interval", scores)

    def predict_set(self, scores: ArrayLike, *, coverage: float = 0.95) -> BoolArray:
        """Return the labels that are not ruled out, shape (n, L), boolean.

        With probability `confidence_level` over the proof rows, the label of a new row is in its
        set with probability at least the coverage: on average over all rows, and for one coverage.
        This statement is separate from `guarantee_`; see `LabelSets`.
        """
        columns = self._columns(scores)
        if self.own_probabilities_ is None:
            rule = "be None for sets of more than two classes, which need independent rows"
            advice = "use predict_interval, or fit without groups on one row of each"
            raise InvalidTypeError("groups", rule, got="groups", advice=advice)
        alpha = error_budget(self.guarantee_.confidence_level)
        return LabelSets(self.own_probabilities_, alpha).of(columns, coverage)

    def _columns(self, scores: ArrayLike) -> FloatArray:
        """Probabilities, one column per class."""
        columns = np.asarray(as_array(scores, "scores"), dtype=np.float64)
        size = self.classes_.size
        if columns.ndim != 2 or columns.shape[1] != size:
            rule = f"have shape (n, {size}), one column per class"
            raise InvalidValueError("scores", rule, got=f"shape {columns.shape}")
        inside = np.asarray((columns >= 0.0) & (columns <= 1.0))
        outside = np.asarray(~inside.all(axis=1))
        check_rows(outside, columns, "scores", "be probabilities")
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return the proof as plain JSON values; `from_dict` reads it back."""
        own = self.own_probabilities_
        return {
            "schema": _SCHEMA,
            "classes": self.classes_.tolist(),
            "confidence_level": self.guarantee_.confidence_level,
            "calibrators": [one.to_dict() for one in self.calibrators_],
            "own_probabilities": None if own is None else own.tolist(),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        keys = ("classes", "confidence_level", "calibrators", "own_probabilities")
        check_schema(state, _SCHEMA, keys)
        classes = np.array(read_labels(state["classes"]))
        level = float(OPEN_UNIT.check("confidence_level", state["confidence_level"]))
        saved = state["calibrators"]
        if not isinstance(saved, list | tuple) or len(saved) != classes.size or len(saved) < 3:
            rule = "be a list with one entry per class, for at least 3 classes"
            raise InvalidValueError("calibrators", rule, got=shown(saved))
        calibrators = []
        for entry in saved:
            check_state(entry)
            one = HoldOutCalibrator.from_dict(entry)
            shared = 1.0 - error_budget(level) / classes.size
            if one.moves or one.confidence_level != shared:
                rule = f"move nothing, at the confidence level {shared!r}"
                raise InvalidValueError("calibrators", rule, got=f"{one.confidence_level!r}")
            calibrators.append(one)
        own = state["own_probabilities"]
        if own is not None:
            own = np.sort(read_numbers(own, "own_probabilities", low=0.0, high=1.0))
        return cls._of(classes, tuple(calibrators), level, own)

    def _of_each(self, method: str, given: ArrayLike) -> FloatArray:
        scores = self._columns(given)
        found = [
            getattr(one, method)(scores[:, column]) for column, one in enumerate(self.calibrators_)
        ]
        return np.stack(found, axis=1)
