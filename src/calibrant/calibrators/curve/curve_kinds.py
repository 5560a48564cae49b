"""Curves by name, or of any calibrator, fitted to counts of rows."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
from scipy.special import xlogy

from calibrant._typing import FloatArray, IntArray
from calibrant.calibrators.beta import BetaCalibrator
from calibrant.calibrators.blend_curve import fit_blends, is_falling, mirrored
from calibrant.calibrators.curve_calibrator import CurveCalibrator, inner
from calibrant.calibrators.isotonic import IsotonicCalibrator
from calibrant.calibrators.platt import PlattCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.calibrators.venn_abers import VennAbersCalibrator
from calibrant.cells.score_counts import ScoreCounts
from calibrant.errors import InvalidValueError
from calibrant.sample.taken_rows import COLLECT_LIMIT
from calibrant.text.sentences import Setting

Curve: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function from scores to probabilities in (0, 1)."""

NAMED: dict[str, type[CurveCalibrator]] = {
    "beta": BetaCalibrator,
    "platt": PlattCalibrator,
    "venn-abers": VennAbersCalibrator,
    "isotonic": IsotonicCalibrator,
}
CURVES = ("auto", *NAMED)
_AUTO = "blend"  # the name of the curve that "auto" fits
_OF_EACH_CLASS = 40  # pilot rows from which on the blend is the first curve
_TRUSTED = 20.0  # rows that a score in [0, 1] counts as if few rows fit a first curve
_CLEARLY = 3.0  # by which its log loss over all these rows must be below that of the score itself


def fit_curves(
    curve: str | ScoreCalibrator, data: Sequence[ScoreCounts], *, are_probabilities: bool
) -> list[tuple[str, Curve]]:
    """Fit a curve to each of several counts of rows, which need not be whole; also return its name.

    For "auto", `are_probabilities` says what the scores are.
    """
    if not isinstance(curve, str):
        from sklearn.base import clone

        given = [clone(curve).set_params(pos_label=1) for _ in data]
        given[0]._check_parameters()
        return [(type(curve).__name__, _fitted(*pair)) for pair in zip(given, data, strict=True)]
    fall = [is_falling(rows) for rows in data]
    rising = [mirrored(rows) if falls else rows for rows, falls in zip(data, fall, strict=True)]
    if curve == "auto":
        name = _AUTO
        found: list[Curve] = [*fit_blends(rising, [are_probabilities] * len(rising))]
    else:
        name = curve
        found = [_fitted(NAMED[curve](), rows) for rows in rising]
    return [
        (f"falling {name}", _one_minus(fitted)) if falls else (name, fitted)
        for fitted, falls in zip(found, fall, strict=True)
    ]


def first_curves(data: Sequence[ScoreCounts]) -> list[Curve]:
    """A curve for each of several counts of pilot rows; decreasing where the rate clearly decreases.

    The blend; with few rows of a class, a score in [0, 1] itself, or beta or Platt calibration if
    that is clearly better.
    """
    fall = [is_falling(rows) for rows in data]
    rising = [mirrored(rows) if falls else rows for rows, falls in zip(data, fall, strict=True)]
    many = [rows for rows in rising if _fewer_of_a_class(rows) >= _OF_EACH_CLASS]
    blends = iter(fit_blends(many, [within_0_and_1(rows.scores) for rows in many]))
    found: list[Curve] = [
        next(blends) if _fewer_of_a_class(rows) >= _OF_EACH_CLASS else _of_few_rows(rows)
        for rows in rising
    ]
    return [
        _one_minus(fitted) if falls else fitted for fitted, falls in zip(found, fall, strict=True)
    ]


def _one_minus(curve: Curve) -> Curve:
    return lambda scores: 1.0 - curve(scores)


def _fewer_of_a_class(rows: ScoreCounts) -> float:
    return min(rows.n_positive, rows.n_rows - rows.n_positive)


def _of_few_rows(rows: ScoreCounts) -> Curve:
    """A score in [0, 1] itself, or beta or Platt calibration if that is clearly better.

    In the fit, the score counts as some additional rows, with the score as their rate.
    """
    if not within_0_and_1(rows.scores):
        return _fitted(PlattCalibrator(), rows)
    share: Any = rows.counts * (_TRUSTED / rows.n_rows)
    positives = rows.positives + share * rows.scores
    more = ScoreCounts(rows.scores, rows.counts + share, positives)
    fitted = _fitted(BetaCalibrator(), more)
    ends = _without_ends(rows.scores)

    def itself(scores: FloatArray) -> FloatArray:
        return np.clip(scores, *ends)

    losses = [loss_of(rows, curve(rows.scores)) for curve in (itself, fitted)]
    return fitted if losses[0] > losses[1] + _CLEARLY else itself


def within_0_and_1(scores: FloatArray) -> bool:
    """Whether increasing scores can be probabilities."""
    return bool(scores[0] >= 0.0 and scores[-1] <= 1.0)


def loss_of(rows: ScoreCounts, values: FloatArray) -> float:
    """The log loss over all rows of probabilities at their scores."""
    negatives = rows.counts - rows.positives
    return -float((xlogy(rows.positives, values) + xlogy(negatives, 1.0 - values)).sum())


def _fitted(calibrator: Any, rows: ScoreCounts) -> Curve:
    """The curve of a calibrator, fitted to counts of rows with labels 0 and 1."""
    # a user-written class may have its own
    known = (CurveCalibrator.fit, VennAbersCalibrator.fit)
    own = type(calibrator)
    if own.fit in known and own.predict is CurveCalibrator.predict:
        return _fitted_to_counts(calibrator, rows)
    if rows.n_rows > COLLECT_LIMIT:
        raise InvalidValueError(
            "curve", f"be named for more than {COLLECT_LIMIT:,} rows", got=repr(calibrator)
        )
    positives = np.repeat(rows.scores, _rounded(rows.positives))
    negatives = np.repeat(rows.scores, _rounded(rows.counts - rows.positives))
    scores = np.concatenate([positives, negatives])
    named = {"classes": (0, 1)} if "classes" in signature(calibrator.fit).parameters else {}
    y = (np.arange(scores.size) < positives.size).astype(np.uint8)
    with reported_by_caller():
        calibrator.fit(scores, y, **named)

    def curve(scores: FloatArray) -> FloatArray:
        calibrator.score_range_seen_ = None
        return _known(calibrator.predict(scores), calibrator)

    return curve


def _rounded(counts: IntArray | FloatArray) -> IntArray:
    """Whole numbers whose sums up to each place are the nearest ones.

    >>> _rounded(np.array([0.4, 0.4, 0.4, 2.0]))
    array([0, 1, 0, 2])
    """
    return np.diff(np.rint(np.cumsum(counts)), prepend=0.0).astype(np.int64)


def _known(values: FloatArray, calibrator: ScoreCalibrator) -> FloatArray:
    """The values of a curve, kept away from 0 and 1; raise an error if one is missing."""
    if not np.isfinite(values).all():
        raise InvalidValueError(
            "curve", "predict probabilities", got=f"missing values from {calibrator!r}"
        )
    return inner(values)


def _fitted_to_counts(calibrator: CurveCalibrator, rows: ScoreCounts) -> Curve:
    """The fitted curve of a calibrant calibrator, which does not need individual rows.

    Beyond the scores of these rows it is constant.
    """
    low = float(rows.scores[0])
    high = float(rows.scores[-1])
    if calibrator.needs_probabilities:
        if low < 0.0 or high > 1.0:
            advice = ("use ", Setting("curve", "platt"), " or ", Setting("curve", "auto"))
            rule = "be probabilities in [0, 1] for the beta curve"
            raise InvalidValueError("scores", rule, f"{low:g} to {high:g}", advice)
        low, high = _without_ends(rows.scores)
    clipped = ScoreCounts(np.clip(rows.scores, low, high), rows.counts, rows.positives)
    fitted = calibrator.curve_through(_smoothed(clipped) if calibrator.reaches_ends else clipped)
    return lambda scores: _known(fitted(np.clip(scores, low, high)), calibrator)


def _without_ends(scores: FloatArray) -> tuple[float, float]:
    """Where scores of 0 and 1 are moved to: half-way between the end and the nearest other score."""
    inner = scores[(scores > 0.0) & (scores < 1.0)]
    return (float(inner[0]) / 2, (1.0 + float(inner[-1])) / 2) if inner.size else (0.25, 0.75)


def _smoothed(rows: ScoreCounts) -> ScoreCounts:
    """Add half a row of each class, spread over all rows, so that no curve reaches 0 or 1."""
    share: Any = rows.counts / rows.n_rows
    return ScoreCounts(rows.scores, rows.counts + share, rows.positives + share / 2)
