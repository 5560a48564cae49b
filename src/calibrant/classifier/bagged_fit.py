"""The default fit: several models and one curve on most of the rows, and a proof from held-out
rows.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.classifier.bag import Bag
from calibrant.classifier.fitted_parts import Fitting
from calibrant.classifier.folds import folds_within, held_out
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.params.some_rows import taken
from calibrant.text.sentences import Setting, Text

_NOTHING_HELD_OUT: Text = (
    "all rows trained the models, and none is left to prove how far their probabilities are off"
)
_HOLD_OUT: Text = ("Use ", Setting("calibration_size", "auto"), " for a guarantee")


def fit_bag(
    fitting: Fitting,
    cv: Any,
    calibration_size: float | str,
    confidence_level: float,
    n_jobs: int | None,
) -> tuple[Bag, Any]:
    """Fit the models and their curve, and derive what the held-out rows prove.

    None in place of the proof if no rows are held out.
    """
    task = fitting.task
    if calibration_size == 0:
        training = task.everything
        rows = np.empty(0, dtype=np.intp)
    else:
        training, rows = held_out(task, calibration_size)
    fitting = replace(fitting, folds=folds_within(task, training, cv))
    bag = Bag.fitted(fitting, rows, n_jobs)
    if not rows.size:
        return bag, None
    scores = bag.held_out
    if any(name != "groups" for name in task.to_calibrator):
        # segments or weights, which need regions of their own
        calibrator = fitting.calibrated(rows, scores)
        return bag, calibrator
    proving = HoldOutCalibrator(confidence_level=confidence_level)
    pilot = (bag.rows, bag.out_of_fold, bag.curve.reach)
    calibrator = proved(fitting, proving, rows, scores, pilot)
    if bag.curve.falls:
        calibrator.falling()
    return bag, calibrator


def proved(
    fitting: Fitting,
    proving: HoldOutCalibrator,
    rows: IndexArray,
    scores: FloatArray,
    pilot: tuple[IndexArray, FloatArray, tuple[float, float]],
) -> Any:
    """What some rows guarantee for their probabilities, which were fixed without them.

    `pilot` holds other rows, their probabilities, and the range of all probabilities. The order of
    bets is keyed by features and labels, not by probabilities, whose last digits depend on the
    machine.
    """
    task = fitting.task
    pilot_rows, pilot_scores, reach = pilot
    groups = task.to_calibrator.get("groups")
    return replace(fitting, calibrator=proving).calibrated(
        rows,
        scores,
        pilot_scores=pilot_scores,
        pilot_y=task.labels[pilot_rows],
        pilot_groups=None if groups is None else taken(groups, pilot_rows),
        score_range=reach,
        source=task.source.for_purpose("order of bets"),
    )


def no_guarantee() -> NoGuarantee:
    """The statement if no row was held out."""
    return NoGuarantee(_NOTHING_HELD_OUT, _HOLD_OUT)
