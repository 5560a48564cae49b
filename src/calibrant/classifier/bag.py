"""Several models, each trained without one fold of the rows, and curves for the scores of all of
them: one curve for the positive class, or one for each of several classes against the rest.

Every training row is scored once, by a model that was not trained on it. The curves are fitted to
these scores. A prediction is the mean of the members' calibrated probabilities, on the logit scale;
with several classes, the probabilities of a row are then divided by their sum. Nothing is guaranteed
here: held-out rows bound how far off the mean can be.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, logit

from calibrant._typing import CodeArray, FloatArray, IndexArray
from calibrant.calibrators.curve.curve_kinds import fit_curves, within_0_and_1
from calibrant.calibrators.curve.pieces import interpolate, simplified
from calibrant.cells.score_counts import ScoreCounts
from calibrant.classifier.fitted_parts import Fitting
from calibrant.classifier.responses import columns_of
from calibrant.classifier.task import Task
from calibrant.errors import InvalidValueError
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
            ((name, curve),) = fit_curves("auto", [rows], **known)
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


Curves = tuple[MemberCurve, ...]
"""The curve of each column of scores."""


class Scored(NamedTuple):
    """Models, rows that did not train them with the models' scores, and each model's scores of the
    held-out rows.
    """

    members: tuple[Any, ...]
    rows: IndexArray
    scores: FloatArray
    held_out: list[FloatArray]


def fit_folds(fitting: Fitting, held_out: IndexArray, n_jobs: int | None) -> Scored:
    """A model for each fold, which scores the rows of its fold and the held-out rows."""
    jobs = (delayed(fitting.model)(training) for training, _ in fitting.folds)
    members = []
    with watched(None, len(fitting.folds), "training", "models") as advance:
        for member in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            members.append(member)
            advance(1)
    scores = []
    of_held_out = []
    for member, (_, own) in zip(members, fitting.folds, strict=True):
        # one call: for few rows, calling a pipeline takes longer than scoring them
        found = fitting.columns(member, np.concatenate([own, held_out]))
        scores.append(found[: own.size])
        of_held_out.append(found[own.size :])
    rows = np.concatenate([own for _, own in fitting.folds])
    return Scored(tuple(members), rows, np.concatenate(scores), of_held_out)


def curves_of(task: Task, rows: IndexArray, scores: FloatArray) -> Curves:
    """The curve of each column, fitted to its scores and to whether rows belong to its class."""
    labels = task.labels[rows]
    curves = []
    for column, label in zip(scores.T, task.column_classes.tolist(), strict=True):
        codes = (labels == label).astype(np.uint8)
        if not codes.any() or codes.all():
            rule = "have rows of each class among those used to fit the curves"
            raise InvalidValueError(
                "y", rule, got=f"none of class {label!r}", advice="add rows of that class"
            )
        curves.append(MemberCurve.fitted(np.ascontiguousarray(column), codes))
    return tuple(curves)


def by_curves(curves: Curves, scores: FloatArray) -> FloatArray:
    """The probabilities by one model's scores, before those of several classes are divided."""
    pairs = zip(curves, np.asarray(scores, dtype=np.float64).T, strict=True)
    return np.column_stack([curve(column) for curve, column in pairs])


def shares_of(probabilities: FloatArray) -> FloatArray:
    """Probabilities of several classes, divided by their sum; unchanged for one."""
    if probabilities.shape[1] == 1:
        return probabilities
    return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def mean_probabilities(
    members: tuple[Any, ...], curves: Curves, X: Any, classes: NDArray[Any], response_method: str
) -> FloatArray:
    """The mean of the members' probabilities, on the logit scale: of the positive class, the second
    of `classes`, or of each of several, one column each.
    """
    each = (columns_of(one, X, classes, response_method) for one in members)
    return mean_by_curves(curves, each)


def mean_by_curves(curves: Curves, scores: Iterable[FloatArray]) -> FloatArray:
    """The mean of the probabilities by the scores of each member, on the logit scale."""
    logits = [logit(np.clip(by_curves(curves, one), _LEAST, 1.0 - _LEAST)) for one in scores]
    return shares_of(np.asarray(expit(np.mean(logits, axis=0))))
