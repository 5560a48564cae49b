"""Several models, each trained without one fold of the rows, and one curve for the scores of all of
them.

Every training row is scored once, by a model that was not trained on it. The curve is fitted to
these scores. A prediction is the mean of the members' calibrated probabilities, on the logit scale.
Nothing is proved here: held-out rows prove how far off the mean can be (`HoldOutCalibrator`).
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, logit

from calibrant._typing import CodeArray, FloatArray, IndexArray
from calibrant.calibrators.anchored.curve_kinds import fit_curve, within_0_and_1
from calibrant.calibrators.anchored.pieces import interpolate, simplified
from calibrant.cells.score_counts import ScoreCounts
from calibrant.classifier.fitted_parts import Fitting
from calibrant.classifier.responses import response_of
from calibrant.sample.progress import watched

_LEAST = 1e-9  # distance of probabilities from 0 and 1, so that logits are finite
_ACCURACY = 0.01  # of the curve between its knots, on the logit scale
_MARGIN = 1e-3  # by which the range of probabilities exceeds that of the curve


@dataclass(frozen=True, slots=True, eq=False)
class MemberCurve:
    """A map from a member's score to a probability: linear between knots, constant beyond.

    Attributes
    ----------
    name : str
        The name of the curve.
    knots, values : float arrays
        Increasing scores, and the probabilities at these scores.
    """

    name: str
    knots: FloatArray
    values: FloatArray

    @classmethod
    def fitted(cls, scores: FloatArray, codes: CodeArray) -> Self:
        """Fit the curve of `BlendCalibrator` to scores and labels."""
        rows = ScoreCounts.of(scores, codes)
        with np.errstate(all="ignore"):
            known = {"are_probabilities": within_0_and_1(rows.scores)}
            name, curve = fit_curve("auto", rows, **known)
            knots, values = simplified(rows.scores, curve(rows.scores), _ACCURACY)
        return cls(name, knots, values)

    @property
    def falls(self) -> bool:
        """Whether probabilities decrease as the members' scores increase."""
        return bool(self.values[-1] < self.values[0])

    @property
    def reach(self) -> tuple[float, float]:
        """The range of any mean of the members' probabilities; the curve is constant beyond its
        knots.
        """
        low = max(0.0, float(self.values.min()) - _MARGIN)
        high = min(1.0, float(self.values.max()) + _MARGIN)
        return low, high

    def __call__(self, scores: FloatArray) -> FloatArray:
        """The probability at each score."""
        return interpolate(scores, self.knots, self.values)


@dataclass(frozen=True, slots=True, eq=False)
class Bag:
    """Fitted members and their curve.

    Attributes
    ----------
    members : tuple of classifiers
        The models.
    curve : MemberCurve
        The map from their scores to probabilities.
    rows : int array
        The training rows scored by a member that was not trained on them.
    out_of_fold : float array
        Their probabilities.
    held_out : float array
        The mean of the members' probabilities for held-out rows.
    """

    members: tuple[Any, ...]
    curve: MemberCurve
    rows: IndexArray
    out_of_fold: FloatArray
    held_out: FloatArray

    @classmethod
    def fitted(cls, fitting: Fitting, held: IndexArray, n_jobs: int | None) -> Self:
        """Fit a member to the training rows of each fold, and the curve to the scores of the other
        rows; `held` are the held-out rows.
        """
        members = fit_members(fitting, n_jobs)
        rows = np.concatenate([others for _, others in fitting.folds])
        own = []
        of_held = []
        for member, (_, others) in zip(members, fitting.folds, strict=True):
            # one call: for few rows, calling a pipeline takes longer than scoring them
            found = fitting.scores_of(member, np.concatenate([others, held]))
            own.append(found[: others.size])
            of_held.append(found[others.size :])
        scores = np.concatenate(own)
        codes = (fitting.task.labels[rows] == fitting.task.positive).astype(np.uint8)
        curve = MemberCurve.fitted(scores, codes)
        return cls(tuple(members), curve, rows, curve(scores), mean_on_logits(curve, of_held))


def fit_members(fitting: Fitting, n_jobs: int | None) -> list[Any]:
    """A model for each fold, trained on the other rows."""
    jobs = (delayed(fitting.model)(training) for training, _ in fitting.folds)
    members = []
    with watched(None, len(fitting.folds), "training", "models") as advance:
        for member in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            members.append(member)
            advance(1)
    return members


def mean_probability(
    members: tuple[Any, ...],
    curve: MemberCurve,
    X: Any,
    classes: NDArray[Any],
    response_method: str,
) -> FloatArray:
    """The mean of the members' probabilities of the positive class, on the logit scale."""
    scores = response_of(members, X, classes, response_method)
    return mean_on_logits(curve, [np.asarray(column, dtype=np.float64) for column in scores.T])


def mean_on_logits(curve: MemberCurve, scores: list[FloatArray]) -> FloatArray:
    """The mean over members of the probabilities for the same rows, on the logit scale."""
    logits = [logits_of(curve(column)) for column in scores]
    return np.asarray(expit(np.mean(logits, axis=0)))


def logits_of(values: FloatArray) -> FloatArray:
    """Finite logits of probabilities."""
    return np.asarray(logit(np.clip(values, _LEAST, 1.0 - _LEAST)))
