"""Curves by name, and the choice between them by cross-validated log loss."""

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit, logit, xlogy
from sklearn.base import clone

from calibrant._typing import FloatArray, IntArray
from calibrant.calibrators.anchored.pieces import interpolate
from calibrant.calibrators.beta import BetaCalibrator
from calibrant.calibrators.curve_calibrator import CurveCalibrator, inner
from calibrant.calibrators.isotonic import IsotonicCalibrator
from calibrant.calibrators.platt import PlattCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.calibrators.venn_abers import VennAbersCalibrator
from calibrant.cells.score_counts import ScoreCounts
from calibrant.errors import InvalidValueError
from calibrant.params.random import RandomSource, fingerprint_of
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
_SCORE = "score"
_FOLDS = 5
_MANY_ROWS = 100_000  # rows from which on one fold is enough to choose a curve
_TRUSTED = 20.0  # rows that a score in [0, 1] counts as if few rows fit a first curve
_SLIGHT = (
    0.05  # on the logit scale, from the first row to the last: a rise that only keeps the ranking
)
_REFUTED = 2.0  # standard errors by which the number of misordered pairs must exceed chance
_CLEARLY_FALLING = 4.0  # the same, for a curve that decreases in the score
_CLEARLY = 3.0  # by which its log loss over all these rows must be below that of the score itself


def fit_curve(curve: str | ScoreCalibrator, rows: ScoreCounts) -> tuple[str, Curve]:
    """Fit a curve to counts of rows; also return its name, because "auto" chooses one."""
    if not isinstance(curve, str):
        given = clone(curve).set_params(pos_label=1)
        given._check_parameters()
        return type(curve).__name__, _fitted(given, rows)
    if is_falling(rows):
        name, rising = _fit_rising(
            curve, ScoreCounts(rows.scores, rows.counts, rows.counts - rows.positives)
        )
        return f"falling {name}", lambda scores: 1.0 - rising(scores)
    return _fit_rising(curve, rows)


def is_falling(rows: ScoreCounts) -> bool:
    """Whether the rate clearly decreases in the score, by far more than chance (Mann and Whitney's
    test).
    """
    return _order(rows) < -_CLEARLY_FALLING


def _fit_rising(curve: str, rows: ScoreCounts) -> tuple[str, Curve]:
    """Fit a curve, by name, to rows whose rate does not clearly decrease."""
    if curve != "auto":
        return curve, _fitted(NAMED[curve](), rows)
    smooth = _smooth(rows)
    best = chosen(rows, smooth)
    if best.name == _SCORE:
        return best.name, _itself(rows)
    one = _rising(_fitted(NAMED[smooth](), rows), rows)
    if not best.steps:
        return best.name, one
    other = _fitted(VennAbersCalibrator(), rows)
    return best.name, lambda scores: _mixed(one(scores), other(scores), best.steps)


def first_curve(rows: ScoreCounts) -> Curve:
    """A curve for few rows: a score in [0, 1] itself, or a smooth curve of it if that is clearly
    better.

    In the fit, the score counts as some additional rows, with the score as their rate.
    """
    smooth = _smooth(rows)
    share: Any = rows.counts * (_TRUSTED / rows.n_rows if smooth == "beta" else 0.0)
    positives = rows.positives + share * np.clip(rows.scores, 0.0, 1.0)
    fitted = _fitted(NAMED[smooth](), ScoreCounts(rows.scores, rows.counts + share, positives))
    if smooth != "beta":
        return fitted
    losses = [_loss(*rows.whole, curve(rows.scores)) for curve in (_itself(rows), fitted)]
    return fitted if losses[0] > losses[1] + _CLEARLY else _itself(rows)


def _itself(rows: ScoreCounts) -> Curve:
    return lambda scores: np.clip(scores, *_without_ends(rows.scores))


def _rising(curve: Curve, rows: ScoreCounts) -> Curve:
    """The curve; or a slight rise in its place, if it does not increase and the rows do not refute
    the ranking.

    The fit of an uninformative score is often constant, which would tie all scores. The rows refute
    the ranking if the positive row has the smaller score in clearly more than half of all pairs
    (Mann and Whitney's test).
    """
    first, last = curve(rows.scores[[0, -1]])
    if first < last or _order(rows) < -_REFUTED:
        return curve
    rank = np.asarray(
        (np.cumsum(rows.counts) - rows.counts / 2) / rows.n_rows - 0.5, dtype=np.float64
    )
    level = logit((rows.n_positive + 0.5) / (rows.n_rows + 1.0))
    return lambda scores: np.asarray(
        expit(level + _SLIGHT * interpolate(scores, rows.scores, rank))
    )


def _order(rows: ScoreCounts) -> float:
    """By how many standard errors pairs of a positive and a negative row are in order more often
    than by chance.
    """
    negatives = rows.counts - rows.positives
    pairs = rows.n_positive * float(negatives.sum())
    ordered = float((rows.positives * (np.cumsum(negatives) - negatives / 2)).sum())
    error = float(np.sqrt(pairs * (rows.n_rows + 1.0) / 12))
    return (ordered - pairs / 2) / error if error > 0.0 else 0.0


class Candidate(NamedTuple):
    """A curve that "auto" may choose: a smooth one and Venn-Abers, mixed on the logit scale.

    `steps` is the share of Venn-Abers; it is never 1, because scores on one step would be tied.
    `handicap` is what the log loss over all rows must gain for the curve to be chosen: simpler
    curves come first.
    """

    name: str
    steps: float
    handicap: float


def _smooth(rows: ScoreCounts) -> str:
    return "beta" if rows.scores[0] >= 0.0 and rows.scores[-1] <= 1.0 else "platt"


def chosen(rows: ScoreCounts, smooth: str) -> Candidate:
    """The curve with the smallest log loss on rows that it was not fitted to."""
    score = Candidate(_SCORE, 0.0, 0.0)
    candidates = [
        Candidate(smooth, 0.0, 2.0),
        Candidate(f"half {smooth}, half venn-abers", 0.5, 2.5),
        Candidate("mostly venn-abers", 0.85, 3.0),
    ]
    losses = {candidate: candidate.handicap for candidate in candidates}
    if smooth == "beta":
        losses[score] = 0.0
    used = 1 if rows.n_rows >= _MANY_ROWS else _FOLDS
    for counts, positives in list(zip(*_folds(rows), strict=True))[:used]:
        others = _present(rows.scores, rows.whole[0] - counts, rows.whole[1] - positives)
        if others.scores.size < 2:
            return candidates[0]
        with np.errstate(all="ignore"):
            one, other = (
                _fitted(NAMED[name](), others)(rows.scores) for name in (smooth, "venn-abers")
            )
            if smooth == "beta":
                itself = np.clip(rows.scores, *_without_ends(rows.scores))
                losses[score] += _loss(counts, positives, itself) * (_FOLDS / used)
            for candidate in candidates:
                losses[candidate] += _loss(
                    counts, positives, _mixed(one, other, candidate.steps)
                ) * (_FOLDS / used)
    return min(losses, key=lambda candidate: losses[candidate])


def _loss(counts: IntArray, positives: IntArray, values: FloatArray) -> float:
    return -float((xlogy(positives, values) + xlogy(counts - positives, 1.0 - values)).sum())


def _present(scores: FloatArray, counts: IntArray, positives: IntArray) -> ScoreCounts:
    here = counts > 0
    return ScoreCounts(scores[here], counts[here], positives[here])


def _folds(rows: ScoreCounts) -> tuple[list[IntArray], list[IntArray]]:
    """Rows and positives of each fold; each row is in a random fold, whatever the order of rows.

    The classes are drawn in the order of their sizes, so that exchanging labels exchanges folds.
    """
    counts, hits = rows.whole
    labels = [hits, counts - hits]
    fingerprint = fingerprint_of(
        rows.scores, counts, np.minimum(*labels)
    )  # the same if labels are exchanged
    generator = RandomSource.of(0, "folds of a curve", rows=fingerprint).generator()
    swapped = labels[0].sum() > labels[1].sum()
    drawn = [_shared(label, generator) for label in (labels[::-1] if swapped else labels)]
    positives, negatives = drawn[::-1] if swapped else drawn
    return [p + q for p, q in zip(positives, negatives, strict=True)], positives


def _shared(counts: IntArray, generator: np.random.Generator) -> list[IntArray]:
    left = counts
    parts = []
    for fold in range(_FOLDS):
        part = generator.binomial(left, 1.0 / (_FOLDS - fold))
        parts.append(part)
        left = left - part
    return parts


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
    counts, hits = rows.whole
    positives = np.repeat(rows.scores, hits)
    scores = np.concatenate([positives, np.repeat(rows.scores, counts - hits)])
    named = {"classes": (0, 1)} if "classes" in signature(calibrator.fit).parameters else {}
    y = (np.arange(scores.size) < positives.size).astype(np.uint8)
    with reported_by_caller():
        calibrator.fit(scores, y, **named)

    def curve(scores: FloatArray) -> FloatArray:
        calibrator.score_range_seen_ = None
        return _known(calibrator.predict(scores), calibrator)

    return curve


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
    fitted = calibrator.curve_through(smoothed(clipped) if calibrator.reaches_ends else clipped)
    return lambda scores: _known(fitted(np.clip(scores, low, high)), calibrator)


def _without_ends(scores: FloatArray) -> tuple[float, float]:
    """Where scores of 0 and 1 are moved to: half-way between the end and the nearest other score."""
    inner = scores[(scores > 0.0) & (scores < 1.0)]
    return (float(inner[0]) / 2, (1.0 + float(inner[-1])) / 2) if inner.size else (0.25, 0.75)


def smoothed(rows: ScoreCounts) -> ScoreCounts:
    """Add half a row of each class, spread over all rows, so that no curve reaches 0 or 1."""
    share: Any = rows.counts / rows.n_rows
    return ScoreCounts(rows.scores, rows.counts + share, rows.positives + share / 2)


def _mixed(one: FloatArray, other: FloatArray, share: float) -> FloatArray:
    """The weighted mean on the logit scale; scores are tied only if both curves tie them."""
    return np.asarray(expit(logit(one) * (1.0 - share) + logit(other) * share))
