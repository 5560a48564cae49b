"""The default fit: several models and one curve on most of the rows, and a proof from held-out
rows.
"""

from dataclasses import replace
from typing import Any

import numpy as np

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
    given = dict(task.to_calibrator)
    groups = given.pop("groups", None)
    if given:  # segments or weights, which need regions of their own
        calibrator = fitting.calibrated(rows, scores)
        return bag, calibrator
    # keyed by features and labels, not by probabilities, whose last digits depend on the machine
    pilot: dict[str, Any] = {
        "pilot_scores": bag.out_of_fold,
        "pilot_y": task.labels[bag.rows],
        "score_range": bag.curve.reach,
        "source": task.source.for_purpose("order of bets"),
    }
    if groups is not None:
        pilot["pilot_groups"] = taken(groups, bag.rows)
    proving = HoldOutCalibrator(confidence_level=confidence_level)
    calibrator = replace(fitting, calibrator=proving).calibrated(rows, scores, **pilot)
    if bag.curve.falls:
        calibrator.falling()
    return bag, calibrator


def no_guarantee() -> NoGuarantee:
    """The statement if no row was held out."""
    return NoGuarantee(_NOTHING_HELD_OUT, _HOLD_OUT)
