"""Probabilities of several classes that were fixed beforehand, and a guarantee for each class
against the rest.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from calibrant._typing import ArrayLike, BoolArray, FloatArray
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller, warn_if_weak
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.class_wise import ClassWiseGuarantee
from calibrant.params.arrays import as_array, check_rows
from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.random import RandomSource
from calibrant.params.rules import OPEN_UNIT, error_budget
from calibrant.params.saved_state import read_labels
from calibrant.params.state_kinds import Lists, Maybe, Nested, Numbers, Written, as_list


class LabelSets:
    """The labels whose probability is not too small, with a bound on how often the true label is
    missed.

    Claimed, for every distribution and for one coverage: with probability at least 1 - alpha over
    the held-out rows, a new row's label is in its set with probability at least the coverage. Assumed:
    these rows and the new row are i.i.d., and the probabilities do not depend on these rows.

    Let U be the probability that was predicted for a row's own label. With a threshold t, a label
    is missed if U < t. Let t be the k-th smallest U of the n held-out rows. It misses a share of more
    than m of the population only if t exceeds the m-quantile of U, so that at most k - 1 of the
    rows are at or below it: with probability at most P(Bin(n, m) <= k - 1), with ties and without.
    So k is the largest number for which that is at most alpha, m = 1 - coverage. If there is none,
    every label is in the set. The most probable label always is.

    Attributes
    ----------
    own : float array of shape (n,)
        The probabilities of the rows' own labels, sorted.
    alpha : float
        The error level.

    Examples
    --------
    >>> sets = LabelSets(np.arange(1, 101) / 100, alpha=0.1)
    >>> sets.threshold(0.9), sets.threshold(0.99)
    (0.06, 0.0)
    >>> sets.of(np.array([[0.9, 0.05, 0.05]]), coverage=0.9)
    array([[ True, False, False]])
    """

    def __init__(self, own: FloatArray, alpha: float) -> None:
        self.own = np.sort(own)
        self.alpha = alpha

    def threshold(self, coverage: float) -> float:
        """The probability from which on a label is in the set; 0 if none can be left out."""
        missed = 1.0 - float(OPEN_UNIT.check("coverage", coverage))
        below = np.arange(self.own.size)
        enough = int(np.count_nonzero(bdtr(below, self.own.size, missed) <= self.alpha))
        return float(self.own[enough - 1]) if enough else 0.0

    def of(self, probabilities: FloatArray, coverage: float) -> BoolArray:
        """The labels of each row, shape (n, L)."""
        is_in = probabilities >= self.threshold(coverage)
        is_in |= probabilities == probabilities.max(axis=1, keepdims=True, initial=0.0)
        return np.asarray(is_in)


_CLASSES = Written(as_list, lambda value, name, known: read_labels(value))


@dataclass(frozen=True, eq=False)
class ClassWiseHoldOut(Saved):
    """What held-out rows show about the probabilities of several classes, which stay as they are.

    Claimed, for every distribution: with probability at least the confidence level over the held-out
    rows, for every class and in every bin of its probability simultaneously, the average
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
        What is shown about all classes simultaneously.
    own_probabilities_ : float array of shape (n,), or None
        The probabilities that were predicted for the labels of the held-out rows, sorted; used for
        sets. None if rows have groups.
    """

    _schema: ClassVar[str] = "calibrant.class_wise_hold_out/1"
    _entries: ClassVar[EntryTable] = {
        "classes": Entry(_CLASSES, of="classes_"),
        "confidence_level": Entry(OPEN_UNIT, of="guarantee_.confidence_level"),
        "calibrators": Entry(
            Lists(Nested(HoldOutCalibrator), size="classes", least=3), of="calibrators_"
        ),
        "own_probabilities": Entry(Maybe(Numbers(low=0.0, high=1.0)), of="own_probabilities_"),
    }

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
        *,
        pilot_scores: FloatArray,
        pilot_y: NDArray[Any],
        pilot_groups: ArrayLike | None = None,
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
                    pilot_scores=pilot_scores[:, column],
                    pilot_y=pilot_y == label,
                    groups=groups,
                    pilot_groups=pilot_groups,
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
        """The bounds for all classes, from those for each class."""
        named = zip(classes.tolist(), calibrators, strict=True)
        guarantees = {label: replace(one.guarantee_, positive_label=label) for label, one in named}
        read = tuple(dict.fromkeys(part for one in calibrators for part in one.guarantee_.read))
        guarantee = ClassWiseGuarantee(confidence_level, guarantees, adds_up=True, read=read)
        return cls(classes, calibrators, guarantee, own)

    def warn_if_weak(self) -> None:
        """Warn if little is guaranteed about some class."""
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

        With probability `confidence_level` over the held-out rows, the label of a new row is in its
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

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        level = values["guarantee_.confidence_level"]
        own = values["own_probabilities_"]
        return cls._of(
            np.array(values["classes_"]),
            values["calibrators_"],
            level,
            None if own is None else np.sort(own),
        )

    def _check_state(self, known: Known) -> None:
        """Each class has its share of the error budget, and no probability was moved."""
        alpha = error_budget(self.guarantee_.confidence_level)
        shared = 1.0 - alpha / self.classes_.size
        for one in self.calibrators_:
            if one.moves or one.confidence_level != shared:
                rule = f"move nothing, at the confidence level {shared!r}"
                raise InvalidValueError("calibrators", rule, got=f"{one.confidence_level!r}")

    def _of_each(self, method: str, scores_of_classes: ArrayLike) -> FloatArray:
        scores = self._columns(scores_of_classes)
        columns = [
            getattr(one, method)(scores[:, column]) for column, one in enumerate(self.calibrators_)
        ]
        return np.stack(columns, axis=1)
