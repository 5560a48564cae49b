"""More than two classes: models, one curve per class, and a proof for each class against the rest.

The probability of a class is the mean of the models' calibrated probabilities for it, on the logit
scale. The probabilities of a row are divided by their sum. All this is fixed before any proof row
is seen, so each column is a probability that was fixed beforehand (`ClassWiseHoldOut`).
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from calibrant._typing import FloatArray, IndexArray
from calibrant.calibrators.class_wise_hold_out import ClassWiseHoldOut, PilotRows
from calibrant.classifier.bag import MemberCurve, fit_members, logits_of
from calibrant.classifier.fitted_parts import Fitting
from calibrant.classifier.folds import divided, folds_within, held_out
from calibrant.classifier.responses import columns_of, responses_of
from calibrant.classifier.task import Task
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_scores
from calibrant.params.some_rows import taken

_ONE_MODEL = 0.25  # share of rows held out for the curves and the proof of one trained model
_HALF = 0.5  # share of held-out rows, or of all rows for a fitted model, used for the proof


class ClassFit(NamedTuple):
    """What is learned about several classes."""

    members: tuple[Any, ...]
    curves: tuple[MemberCurve, ...]
    proof: ClassWiseHoldOut | None


class _Scored(NamedTuple):
    """Models, rows not used to train them with the models' scores, and rows left for the proof."""

    members: tuple[Any, ...]
    rows: IndexArray
    scores: FloatArray  # one column per class
    proof: IndexArray


def fit_classes(
    fitting: Fitting,
    cv: Any,
    calibration_size: float | str,
    confidence_level: float,
    n_jobs: int | None,
) -> ClassFit:
    """Fit models, curves and the proof.

    `cv` is None for one model, and "frozen" for an already fitted one.
    """
    task = fitting.task
    if others := [name for name in task.to_calibrator if name != "groups"]:
        raise InvalidTypeError(
            others[0], "be None for more than two classes", got=f"{task.classes.size} classes"
        )
    if cv == "frozen":
        found = _of_fitted(fitting, calibration_size)
    elif cv is None:
        found = _of_one_model(fitting, calibration_size)
    else:
        found = _of_folds(fitting, cv, calibration_size, n_jobs)
    curves = curves_of(found.scores, task.labels[found.rows], task.classes)
    if not found.proof.size:
        return ClassFit(found.members, curves, None)
    pilot = shares_of([_probabilities(curves, found.scores)])
    X = taken(task.X, found.proof)
    p = class_probabilities(found.members, curves, X, task.classes, fitting.response_method)
    proof = proved_of_classes(task, found.proof, p, (found.rows, pilot), confidence_level)
    proof.warn_if_weak()
    return ClassFit(found.members, curves, proof)


def proved_of_classes(
    task: Task,
    rows: IndexArray,
    probabilities: FloatArray,
    pilot: tuple[IndexArray, FloatArray],
    confidence_level: float,
    n_bins: int | str = "auto",
) -> ClassWiseHoldOut:
    """What some rows guarantee for the probabilities of all classes, which were fixed without them.

    `pilot` holds other rows and their probabilities.
    """
    groups = task.to_calibrator.get("groups")
    pilot_rows, pilot_probabilities = pilot
    return ClassWiseHoldOut.proved(
        probabilities,
        task.labels[rows],
        task.classes,
        PilotRows(
            pilot_probabilities,
            task.labels[pilot_rows],
            None if groups is None else taken(groups, pilot_rows),
        ),
        confidence_level=confidence_level,
        source=task.source.for_purpose("order of bets"),
        groups=None if groups is None else taken(groups, rows),
        over_seed=task.over_seed,
        n_bins=n_bins,
    )


def _of_folds(
    fitting: Fitting, cv: Any, calibration_size: float | str, n_jobs: int | None
) -> _Scored:
    """A model for each fold of the training rows, which scores the rows of its fold."""
    task = fitting.task
    if calibration_size == 0:
        training = task.everything
        proof = np.empty(0, dtype=np.intp)
    else:
        training, proof = held_out(task, calibration_size)
    fitting = replace(fitting, folds=folds_within(task, training, cv))
    members = fit_members(fitting, n_jobs)
    rows = np.concatenate([others for _, others in fitting.folds])
    parts = zip(members, fitting.folds, strict=True)
    scores = np.concatenate(
        [checked_columns(fitting, member, others) for member, (_, others) in parts]
    )
    return _Scored(tuple(members), rows, scores, proof)


def _of_one_model(fitting: Fitting, calibration_size: float | str) -> _Scored:
    """One model; half of the held-out rows fit its curves, and the other half prove."""
    size = _ONE_MODEL if isinstance(calibration_size, str) else calibration_size
    training, others = held_out(fitting.task, size)
    model = fitting.model(training)
    rows, proof = divided(fitting.task, others)
    return _Scored((model,), rows, checked_columns(fitting, model, rows), proof)


def _of_fitted(fitting: Fitting, calibration_size: float | str) -> _Scored:
    """An already fitted model: some rows fit its curves, and the others prove."""
    rows, proof = held_out(
        fitting.task, _HALF if isinstance(calibration_size, str) else calibration_size
    )
    return _Scored(
        (fitting.estimator,), rows, checked_columns(fitting, fitting.estimator, rows), proof
    )


def checked_columns(fitting: Fitting, model: Any, rows: IndexArray) -> FloatArray:
    """The checked scores of some rows, one column for the positive class, or for each of several."""
    X = taken(fitting.task.X, rows)
    columns = columns_of(model, X, fitting.task.ordered_classes, fitting.response_method)
    checked = [as_scores(np.ascontiguousarray(column)) for column in columns.T]
    return np.column_stack(checked).astype(np.float64)


def curves_of(
    scores: FloatArray, labels: NDArray[Any], classes: NDArray[Any]
) -> tuple[MemberCurve, ...]:
    """The curve of each class, fitted to its scores and to whether rows belong to that class."""
    curves = []
    for column, label in enumerate(classes.tolist()):
        codes = (labels == label).astype(np.uint8)
        if not codes.any() or codes.all():
            rule = "have rows of each class among those used to fit the curves"
            raise InvalidValueError(
                "y", rule, got=f"none of class {label!r}", advice="add rows of that class"
            )
        curves.append(MemberCurve.fitted(np.ascontiguousarray(scores[:, column]), codes))
    return tuple(curves)


def class_probabilities(
    members: tuple[Any, ...],
    curves: tuple[MemberCurve, ...],
    X: Any,
    classes: NDArray[Any],
    response_method: str,
) -> FloatArray:
    """The probabilities of all classes, shape (n, L), which add up to 1."""
    return shares_of(
        [_probabilities(curves, responses_of(one, X, classes, response_method)) for one in members]
    )


def _probabilities(curves: tuple[MemberCurve, ...], scores: FloatArray) -> FloatArray:
    """The probability of each class by its curve."""
    columns = [
        curve(np.asarray(scores[:, place], dtype=np.float64)) for place, curve in enumerate(curves)
    ]
    return np.column_stack(columns)


def shares_of(members: list[FloatArray]) -> FloatArray:
    """The mean of several models' probabilities on the logit scale, divided by the sum over
    classes.

    >>> shares_of([np.array([[0.2, 0.2, 0.4]])]).round(3)
    array([[0.25, 0.25, 0.5 ]])
    """
    mean = expit(np.mean([logits_of(one) for one in members], axis=0))
    return np.asarray(mean / mean.sum(axis=1, keepdims=True))
