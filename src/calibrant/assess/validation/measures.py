"""The measures in the validation table: expected / observed, slope, parts of the Brier score, AUC,
grades; and Kuiper's test of calibration, the range of the cumulative differences between labels and
scores.
"""

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray
from calibrant.assess.metrics.auc import auc_limits
from calibrant.assess.metrics.independent_units import Units
from calibrant.assess.validation.result import ASYMPTOTIC, PROVED, GradeTable, Measure
from calibrant.cells.units import RowUnits
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.error_budget import sidak_level
from calibrant.limits.interval import Interval
from calibrant.limits.non_identical import non_identical
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import shown

_ROUNDING = 1e-12
CLIP = 1e-6  # scores of 0 and 1 have no logit
_NEWTON_STEPS = 100
_ROWS_AT_ONCE = 1 << 16


def n_clipped(scores: FloatArray) -> int:
    """Number of rows whose score is clipped before its logit is taken."""
    return int(np.count_nonzero((scores < CLIP) | (scores > 1.0 - CLIP)))


def ratio(codes: CodeArray, scores: FloatArray, alpha: float, units: Units) -> Measure:
    """Return the ratio of the mean score to the mean label."""
    expected = units.mean(scores)
    observed = units.mean(codes)
    if units.row_weights is None:
        limits = non_identical(
            codes.size, int(codes.sum()), alpha / 2.0, bool((scores == scores[0]).all())
        )
        lower = expected / float(limits.upper)
        upper = _divided(expected, float(limits.lower))
    else:
        low, high = units.share_limits(codes.astype(np.float64), scores, alpha)
        lower = 1.0 / high - 1.0
        upper = _divided(1.0, low) - 1.0
    return Measure("expected / observed", _divided(expected, observed), lower, upper, 1.0, PROVED)


def _divided(value: float, by: float) -> float:
    return value / by if by > 0.0 else math.inf


def cox(
    codes: CodeArray, scores: FloatArray, alpha: float, units: Units
) -> tuple[Measure, Measure, Measure]:
    """Return slope and intercept of the labels on the logits, and the intercept for slope 1."""
    z = float(-ndtri(alpha / 2.0))
    slope = intercept = in_the_large = (math.nan,) * 3
    if 0 < codes.sum() < codes.size:
        (large, _), variances = _fitted_line(codes, scores, units, with_slope=False)
        in_the_large = _around(large, variances[0], z)
        positive, negative = (scores[codes == code] for code in (1, 0))
        # only if no threshold separates the labels does the likelihood have a maximum
        if positive.min() < negative.max() and negative.min() < positive.max():
            (a, b), variances = _fitted_line(codes, scores, units, with_slope=True)
            slope = _around(b, variances[1], z)
            intercept = _around(a, variances[0], z)
    return (
        Measure("slope", *slope, 1.0, ASYMPTOTIC),
        Measure("intercept", *intercept, 0.0, ASYMPTOTIC),
        Measure("intercept, slope 1", *in_the_large, 0.0, ASYMPTOTIC),
    )


def _fitted_line(
    codes: CodeArray, scores: FloatArray, units: Units, *, with_slope: bool
) -> tuple[list[float], FloatArray]:
    """The intercept and the slope of the labels on the logits by maximum likelihood, or the
    intercept for slope 1; and their variances.
    """
    free = slice(2 if with_slope else 1)
    line = np.array([0.0, 1.0])
    loss, slope, curvature = _likelihood(line, codes, scores, units)
    for _ in range(_NEWTON_STEPS):
        step = np.zeros(2)
        step[free] = np.linalg.solve(curvature[free, free], slope[free])
        before = loss
        loss, slope, curvature = _likelihood(line - step, codes, scores, units)
        while loss > before * (1.0 + _ROUNDING):
            step /= 2.0
            loss, slope, curvature = _likelihood(line - step, codes, scores, units)
        line -= step
        if np.abs(step).max() <= _ROUNDING * (1.0 + np.abs(line).max()):
            break
    inverse = np.linalg.inv(curvature[free, free])
    if units.row_weights is None:
        return line.tolist(), np.diag(inverse)
    # the sandwich: from the sums of independent units
    x = _logits(scores)
    off = codes - expit(line[0] + line[1] * x)
    parts = np.column_stack([units.sums(off), units.sums(x * off)])[:, free]
    many = len(parts) / max(len(parts) - 1, 1)
    return line.tolist(), np.diag(inverse @ (parts.T @ parts) @ inverse) * many


def _likelihood(
    line: FloatArray, codes: CodeArray, scores: FloatArray, units: Units
) -> tuple[float, FloatArray, FloatArray]:
    """Minus the log likelihood of a line, its gradient and its second derivatives.

    Some rows at a time, so that no array is as long as the rows.
    """
    loss = 0.0
    slope = np.zeros(2)
    curvature = np.zeros((2, 2))
    for start in range(0, codes.size, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        x = _logits(scores[rows])
        z = line[0] + line[1] * x
        p = expit(z)
        weights = 1.0 if units.row_weights is None else units.row_weights[rows]
        loss += float((weights * (np.logaddexp(0.0, z) - codes[rows] * z)).sum())
        off = weights * (p - codes[rows])
        slope += off.sum(), (x * off).sum()
        curved = weights * p * (1.0 - p)
        both = (x * curved).sum()
        curvature += [[curved.sum(), both], [both, (x * x * curved).sum()]]
    return loss, slope, curvature


def _logits(scores: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(scores, CLIP, 1.0 - CLIP)))


def _around(value: float, variance: float, z: float) -> tuple[float, float, float]:
    radius = z * math.sqrt(variance)
    return value, value - radius, value + radius


def brier(codes: CodeArray, scores: FloatArray, alpha: float, units: Units) -> Measure:
    """Return the Brier score, for rows in the order in which they came: bets follow it."""
    losses = (codes - scores) ** 2
    return Measure("Brier score", units.mean(losses), *units.limits(losses, alpha), basis=PROVED)


def corp(
    codes: CodeArray, scores: FloatArray, fitted: FloatArray, units: Units
) -> tuple[Measure, Measure, Measure]:
    """Return the parts of the Brier score, given the isotonic regression of labels on scores."""
    mean, given, best = (
        units.mean(values) for values in (codes, (codes - scores) ** 2, (codes - fitted) ** 2)
    )
    uncertainty = mean * (1.0 - mean)
    return (
        Measure("miscalibration", max(given - best, 0.0), ideal=0.0),
        Measure("discrimination", max(uncertainty - best, 0.0)),
        Measure("uncertainty", uncertainty),
    )


def area(codes: CodeArray, scores: FloatArray, alpha: float, units: Units) -> Measure:
    """Return AUC with normal limits; NaN if there is only one class."""
    return Measure("AUC", *auc_limits(codes, scores, alpha, units), basis=ASYMPTOTIC)


def grade_table(
    rows: MemoryRows, assigned: Mapping[Hashable, float] | None, alpha: float, units: Units
) -> GradeTable | None:
    """Return the assigned probability of each grade with rows, and what was observed; None without
    grades.
    """
    if rows.segment is None:
        return None
    n_grades = len(rows.segment_names)
    weights = units.weights(len(rows))
    # all rows of a grade may have zero weight
    present, index = np.unique(rows.segment, return_inverse=True)
    names = tuple(rows.segment_names[number] for number in present)
    counts = np.bincount(index)
    positives = np.bincount(index, rows.codes).astype(np.int64)
    total = np.bincount(index, weights)
    rate, mean_score = (
        np.bincount(index, weights * values) / total for values in (rows.codes, rows.scores)
    )
    if units.row_weights is None:
        limits = non_identical(counts, positives, sidak_level(alpha, n_grades) / 2.0)
    else:
        # given its grade, a weighted row is a draw like others of the grade; with groups, the
        # grades must be fixed
        delta = alpha / max(n_grades, len(assigned or ()))
        if assigned:
            limits = units.means(rows.codes.astype(np.float64), index, len(names), delta)
        else:  # the mean of label minus score has limits, for any mean score of the grade
            errors = rows.codes - rows.scores
            limits = units.means(errors, index, len(names), delta, ends=(-1.0, 1.0))
            ends = (np.clip(mean_score + end, 0.0, 1.0) for end in (limits.lower, limits.upper))
            limits = Interval(*ends)
    grade = np.empty(len(names), dtype=object)
    grade[:] = names
    columns = {
        "grade": grade,
        "counts": counts.astype(np.int64),
        "positives": positives,
        "rate": rate,
        "assigned": mean_score if assigned is None else _assigned(assigned, names),
        "lower": limits.lower,
        "upper": limits.upper,
    }
    order = np.argsort(columns["assigned"], kind="stable")
    return GradeTable(**{name: column[order] for name, column in columns.items()})


def _assigned(assigned: Any, names: tuple[Hashable, ...]) -> FloatArray:
    if not isinstance(assigned, Mapping):
        raise InvalidTypeError(
            "assigned", "be a mapping from grade to probability", got=shown(assigned)
        )
    missing = [name for name in names if name not in assigned]
    if missing:
        raise InvalidValueError(
            "assigned",
            "have a probability for each grade",
            got=f"none for {missing[0]!r}",
        )
    given = np.array([float(assigned[name]) for name in names])
    if not ((given >= 0.0) & (given <= 1.0)).all():
        raise InvalidValueError("assigned", "be probabilities in [0, 1]", got=shown(dict(assigned)))
    return given


def kuiper_test(
    codes: CodeArray,
    scores: FloatArray,
    draws: int,
    rng: np.random.Generator,
    units: Units,
) -> tuple[float, float]:
    """Return the range of the cumulative differences, and its p-value, for rows in increasing order
    of their scores.

    The p-value is exact if each row is an independent draw, and asymptotic otherwise.
    """
    total = float(units.weights(codes.size).sum())
    is_last = np.append(scores[1:] != scores[:-1], True)  # tied scores are one step
    if units.of_rows is not None:
        paths = _with_random_signs(codes, scores, rng, units.of_rows)
    elif np.count_nonzero(is_last) <= codes.size / 4:
        paths = _with_drawn_counts(codes, scores, rng, np.flatnonzero(is_last))
        is_last = np.ones(1, dtype=bool)
    else:
        paths = _with_drawn_labels(codes, scores, rng)
    ranges = (_range(path, is_last, total) for path in paths)
    seen = next(ranges)
    larger = sum(next(ranges) >= seen - _ROUNDING for _ in range(draws))
    return seen, (1 + larger) / (1 + draws)


def _with_drawn_labels(
    codes: CodeArray, scores: FloatArray, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield the observed path, and then paths of labels drawn with the scores as rates."""
    expected = np.cumsum(scores)
    path = np.cumsum(codes, dtype=np.float64)
    drawn = np.empty(scores.size)  # the arrays are used again: there may be many rows
    while True:
        path -= expected
        yield path
        rng.random(out=drawn)
        np.cumsum(drawn < scores, out=path)


def _with_drawn_counts(
    codes: CodeArray, scores: FloatArray, rng: np.random.Generator, ends: IndexArray
) -> Iterator[FloatArray]:
    """Yield the same paths for few distinct scores, which end at these rows: sums of the labels of
    a score are drawn at once.
    """
    counts = np.diff(ends, prepend=-1)
    values = scores[ends]
    expected = np.cumsum(values * counts)
    yield np.cumsum(codes, dtype=np.int64)[ends] - expected
    while True:
        yield np.cumsum(rng.binomial(counts, values)) - expected


def _with_random_signs(
    codes: CodeArray, scores: FloatArray, rng: np.random.Generator, units: RowUnits
) -> Iterator[FloatArray]:
    """Yield the observed weighted path, and then paths with the units' differences times random
    signs.
    """
    off = units.weights * (codes - scores)
    yield np.cumsum(off)
    while True:
        yield np.cumsum(off * rng.choice([-1.0, 1.0], size=units.n_units)[units.unit])


def _range(path: FloatArray, is_last: BoolArray, total: float) -> float:
    """Range of a path that starts at 0."""
    if not is_last.all():
        path = path[is_last]
    return (max(float(path.max()), 0.0) - min(float(path.min()), 0.0)) / total
