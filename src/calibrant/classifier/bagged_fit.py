"""The default fit: models and curves on most of the rows, and a bound on their error from held-out
rows.

All probabilities are fixed before any held-out row is seen. With several classes, each column is a
probability that was fixed beforehand, and there is a proof for each class against the rest
(`ClassWiseHoldOut`).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.calibrators.class_wise_hold_out import ClassWiseHoldOut
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.classifier.bag import (
    Curves,
    Scored,
    by_curves,
    curves_of,
    fit_folds,
    mean_by_curves,
    shares_of,
)
from calibrant.classifier.fitted_parts import Fitting
from calibrant.classifier.folds import divided, folds_within, held_out
from calibrant.errors import InvalidTypeError
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.params.arrays import select_rows
from calibrant.text.sentences import Setting, Text

_ONE_MODEL = 0.25  # share of rows held out for the curves and the proof of one trained model
_HALF = 0.5  # share of held-out rows, or of all rows for a fitted model, used for the proof
_NOTHING_HELD_OUT: Text = (
    "all rows trained the models, and none is left to bound how far their probabilities are off"
)
_HOLD_OUT: Text = ("Use ", Setting("calibration_size", "auto"), " for a guarantee")


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


def no_guarantee() -> NoGuarantee:
    """The statement if no row was held out."""
    return NoGuarantee(_NOTHING_HELD_OUT, _HOLD_OUT)
