"""Probabilities of several classes that were fixed beforehand, and a proof of each class against
the rest.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, FloatArray, IndexArray
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller, warn_if_weak
from calibrant.errors import InvalidTypeError
from calibrant.guarantee.class_wise import ClassWiseGuarantee
from calibrant.params.rules import error_budget


@dataclass(frozen=True, slots=True, eq=False)
class PilotRows:
    """Rows that only choose the regions: probabilities, one column for each class, labels, and
    perhaps groups.
    """

    probabilities: FloatArray
    labels: NDArray[Any]
    groups: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class ClassWiseHoldOut:
    """What held-out rows prove of the probabilities of several classes, which stay as they are.

    Claimed, for every distribution: with probability at least the confidence level over the rows
    that prove, for every class and in every bin of its probability at once, the average probability
    differs from the true rate of the class by at most the bin's epsilon. Assumed: these rows and
    future rows are i.i.d. (with groups: whole groups are), and the probabilities do not depend on
    these rows.

    Each of L classes has the level 1 - alpha / L. The classes share their rows, so their limits are
    dependent, and it is Bonferroni over classes that holds for any dependence. The probabilities
    are not moved: those of a row that add up to 1 still do.

    Attributes
    ----------
    classes_ : array of shape (L,)
        The labels, in the order of the columns.
    calibrators_ : tuple of HoldOutCalibrator
        One for each class.
    guarantee_ : ClassWiseGuarantee
        What is proved of all classes at once.
    """

    classes_: NDArray[Any]
    calibrators_: tuple[HoldOutCalibrator, ...]
    guarantee_: ClassWiseGuarantee

    @classmethod
    def proved(
        cls,
        probabilities: FloatArray,
        labels: NDArray[Any],
        classes: NDArray[Any],
        pilot: PilotRows,
        *,
        confidence_level: float,
        order: IndexArray,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Bet on the label of each class less its probability.

        See `HoldOutCalibrator.fit` for the arguments.
        """
        level = 1.0 - error_budget(confidence_level) / classes.size
        fitted = []
        for column, label in enumerate(classes.tolist()):
            calibrator = HoldOutCalibrator(confidence_level=level, moves=False)
            with reported_by_caller():
                calibrator.fit(
                    probabilities[:, column],
                    labels == label,
                    pilot_scores=pilot.probabilities[:, column],
                    pilot_y=pilot.labels == label,
                    groups=groups,
                    pilot_groups=pilot.groups,
                    order=order,
                    classes=(False, True),
                )
            fitted.append(calibrator)
        named = zip(classes.tolist(), fitted, strict=True)
        guarantees = {label: replace(one.guarantee_, positive_label=label) for label, one in named}
        said = ClassWiseGuarantee(float(confidence_level), guarantees, adds_up=True)
        return cls(classes, tuple(fitted), said)

    def warn_if_weak(self) -> None:
        """Warn where little is proved of some class."""
        name, weakest = max(
            self.guarantee_.guarantees.items(), key=lambda one: one[1].stated.epsilon
        )
        warn_if_weak(weakest, of=f" of class {name!r}")

    def predict_proba(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities as they are, shape (n, L)."""
        return scores

    def predict_interval(self, scores: FloatArray) -> FloatArray:
        """Return each probability moved by each average error of its bin that is not ruled out,
        shape (n, L, 2).
        """
        return self._of_each("predict_interval", scores)

    def predict_rate_interval(self, scores: FloatArray) -> FloatArray:
        """Return confidence limits for the true rate of each class in the bin of its probability,
        shape (n, L, 2).
        """
        return self._of_each("predict_rate_interval", scores)

    def predict_set(self, scores: FloatArray, **options: Any) -> FloatArray:
        """Raise an error: sets are for two classes."""
        advice = "use predict_interval, or ConformalSets for one class against the rest"
        raise InvalidTypeError(
            "predict_set", "be called for two classes", got=f"{self.classes_.size}", advice=advice
        )

    def _of_each(self, method: str, scores: FloatArray) -> FloatArray:
        found = [
            getattr(one, method)(scores[:, column]) for column, one in enumerate(self.calibrators_)
        ]
        return np.stack(found, axis=1)
