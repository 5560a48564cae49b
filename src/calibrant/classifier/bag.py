"""The default fit: several models, each trained without one fold of the rows, curves for their scores,
and a bound on the error from held-out rows.

There is one curve for the positive class, or one for each of several classes against the rest. Every
training row is scored once, by a model that was not trained on it, and the curves are fitted to
these scores. A prediction is the mean of the members' calibrated probabilities, on the logit scale;
with several classes, the probabilities of a row are then divided by their sum. All of that is fixed
before any held-out row is seen. With several classes, each column is a probability that was fixed
beforehand, and there is a proof for each class against the rest (`ClassWiseHoldOut`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, logit

from calibrant._typing import CodeArray, FloatArray, IndexArray
from calibrant.calibrators.class_wise_hold_out import ClassWiseHoldOut
from calibrant.calibrators.curve.curve_kinds import fit_curves, within_0_and_1
from calibrant.calibrators.curve.pieces import interpolate, simplified
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.cells.score_counts import ScoreCounts
from calibrant.classifier.fitted_parts import Fitting
from calibrant.classifier.folds import divided, folds_within, held_out
from calibrant.classifier.responses import columns_of
from calibrant.classifier.task import Task
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.params.arrays import select_rows
from calibrant.sample.progress import watched
from calibrant.text.sentences import Setting

_LEAST = 1e-9  # distance of probabilities from 0 and 1, so that logits are finite
_ACCURACY = 0.01  # of the curve between its knots, on the logit scale
_MARGIN = 1e-3  # by which the range of probabilities exceeds that of the curve

_ONE_MODEL = 0.25  # share of rows held out for the curves and the proof of one trained model
_HALF = 0.5  # share of held-out rows, or of all rows for a fitted model, used for the proof
NO_GUARANTEE = NoGuarantee(
    "all rows trained the models, and none is left to bound how far their probabilities are off",
    ("Use ", Setting("calibration_size", "auto"), " for a guarantee"),
)
"""The statement if no row was held out."""


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


def fit_bag(
    fitting: Fitting,
    cv: Any,
    calibration_size: float | str,
    confidence_level: float,
    n_jobs: int | None,
) -> tuple[tuple[Any, ...], Curves, Any]:
    """Fit the models and the curve of each column of their scores, and derive the guarantee from
    the held-out rows; None in its place if no rows are held out.

    With more than two classes, `cv` may be None for one model, and "frozen" for an already fitted
    one.
    """
    task = fitting.task
    further = [name for name in task.to_calibrator if name != "groups"]
    if further and task.classes.size > 2:
        raise InvalidTypeError(
            further[0], "be None for more than two classes", got=f"{task.classes.size} classes"
        )
    if cv is None or cv == "frozen":
        scored, rows = _of_one_model(fitting, cv, calibration_size)
    else:
        training = task.everything
        rows = np.empty(0, dtype=np.intp)
        if calibration_size != 0:
            training, rows = held_out(task, calibration_size)
        fitting = replace(fitting, folds=folds_within(task, training, cv))
        scored = fit_folds(fitting, rows, n_jobs)
    curves = curves_of(task, scored.rows, scored.scores)
    if not rows.size:
        return scored.members, curves, None
    p = mean_by_curves(curves, scored.held_out)
    if further:  # segments or weights, which need regions of their own
        return scored.members, curves, fitting.calibrated(rows, p[:, 0])
    pilot = scored.rows, shares_of(by_curves(curves, scored.scores))
    proof = proved(fitting, rows, p, pilot, curves, confidence_level)
    if len(curves) > 1:
        proof.warn_if_weak()
    elif curves[0].falls:
        proof.falling()
    return scored.members, curves, proof


def _of_one_model(
    fitting: Fitting, cv: Any, calibration_size: float | str
) -> tuple[Scored, IndexArray]:
    """One model, whose curves are fitted to some rows; and other rows, left for the guarantee.

    Of a model that is already fitted, no rows are needed to train it.
    """
    task = fitting.task
    automatic = isinstance(calibration_size, str)
    if cv == "frozen":
        model = fitting.estimator
        rows, proof = held_out(task, _HALF if automatic else calibration_size)
    else:
        training, others = held_out(task, _ONE_MODEL if automatic else calibration_size)
        model = fitting.model(training)
        rows, proof = divided(task, others)
    scores = fitting.columns(model, rows)
    return Scored((model,), rows, scores, [fitting.columns(model, proof)]), proof


def proved(
    fitting: Fitting,
    rows: IndexArray,
    probabilities: FloatArray,
    pilot: tuple[IndexArray, FloatArray],
    curves: Curves,
    confidence_level: float,
    *,
    n_bins: int | str = "auto",
    moves: bool = True,
) -> Any:
    """The guarantee from some rows for probabilities that were fixed without them.

    `pilot` holds other rows and their probabilities. `moves` says whether the rows may move the
    probabilities of one class. The order of bets is keyed by features and labels, not by
    probabilities, whose last digits depend on the machine.
    """
    task = fitting.task
    pilot_rows, pilot_p = pilot
    groups = task.to_calibrator.get("groups")
    known: dict[str, Any] = {
        "pilot_y": task.labels[pilot_rows],
        "pilot_groups": None if groups is None else select_rows(groups, pilot_rows),
        "source": task.source.for_purpose("order of bets"),
    }
    if len(curves) > 1:
        return ClassWiseHoldOut.proved(
            probabilities,
            task.labels[rows],
            task.classes,
            pilot_scores=pilot_p,
            **known,
            confidence_level=confidence_level,
            groups=None if groups is None else select_rows(groups, rows),
            over_seed=task.over_seed,
            n_bins=n_bins,
        )
    proving = HoldOutCalibrator(n_bins, confidence_level=confidence_level, moves=moves)
    return replace(fitting, calibrator=proving).calibrated(
        rows,
        probabilities[:, 0],
        pilot_scores=pilot_p[:, 0],
        **known,
        score_range=curves[0].reach,
    )
