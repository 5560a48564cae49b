"""The measures in the validation table: expected / observed, slope, parts of the Brier score, AUC,
grades.
"""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri

from calibrant._typing import CodeArray, FloatArray, IndexArray
from calibrant.assess.metrics.auc import delong, normal_limits
from calibrant.assess.metrics.independent_units import Units
from calibrant.assess.validation.isotonic import isotonic_rates
from calibrant.assess.validation.result import ASYMPTOTIC, PROVED, GradeTable, Measure
from calibrant.calibrators.curve_calibrator import fit_logistic
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.error_budget import sidak_level
from calibrant.limits.interval import Interval
from calibrant.limits.non_identical import non_identical
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import shown

CLIP = 1e-6  # scores of 0 and 1 have no logit


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
    x = logit(np.clip(scores, CLIP, 1.0 - CLIP))
    z = float(-ndtri(alpha / 2.0))
    slope = intercept = in_the_large = (math.nan,) * 3
    if 0 < codes.sum() < codes.size:
        large = float(
            brentq(
                lambda shift: units.mean(expit(x + shift) - codes),
                -60.0,
                60.0,
                xtol=1e-12,
            )
        )
        ones = np.ones((codes.size, 1))
        in_the_large = _around(large, _variances(codes, ones, expit(x + large), units)[0], z)
        if _overlap(codes, scores):
            fit = fit_logistic(x[:, None], codes.astype(np.float64), units.weights(codes.size))
            b = float(fit.coefficients[0])
            a = fit.intercept
            variance = _variances(codes, np.column_stack([ones, x]), expit(a + b * x), units)
            slope = _around(b, variance[1], z)
            intercept = _around(a, variance[0], z)
    return (
        Measure("slope", *slope, 1.0, ASYMPTOTIC),
        Measure("intercept", *intercept, 0.0, ASYMPTOTIC),
        Measure("intercept, slope 1", *in_the_large, 0.0, ASYMPTOTIC),
    )


def _variances(codes: CodeArray, design: FloatArray, p: FloatArray, units: Units) -> FloatArray:
    """Variances of logistic coefficients: from the model, or from the sums of independent units
    (the sandwich).
    """
    inverse = np.linalg.inv(
        (design * (units.weights(codes.size) * p * (1.0 - p))[:, None]).T @ design
    )
    if units.row_weights is None:
        return np.asarray(np.diag(inverse))
    parts = np.column_stack([units.sums(column * (codes - p)) for column in design.T])
    return np.asarray(
        np.diag(inverse @ (parts.T @ parts) @ inverse) * len(parts) / max(len(parts) - 1, 1)
    )


def _around(value: float, variance: float, z: float) -> tuple[float, float, float]:
    radius = z * math.sqrt(variance)
    return value, value - radius, value + radius


def _overlap(codes: CodeArray, scores: FloatArray) -> bool:
    """Whether no threshold separates the labels; only then does the likelihood have a maximum."""
    positive = scores[codes == 1]
    negative = scores[codes == 0]
    return bool(positive.min() < negative.max() and negative.min() < positive.max())


def corp(codes: CodeArray, scores: FloatArray, units: Units) -> tuple[Measure, Measure, Measure]:
    """Return the parts of the Brier score by isotonic regression."""
    fitted = isotonic_rates(codes, scores, units)
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
    if not 0 < codes.sum() < codes.size:
        return Measure("AUC", math.nan, basis=ASYMPTOTIC)
    value, covariance = delong(codes, [scores], units)
    lower, upper = normal_limits(float(value[0]), float(covariance[0, 0]), alpha)
    return Measure("AUC", float(value[0]), max(lower, 0.0), min(upper, 1.0), basis=ASYMPTOTIC)


def grade_table(
    rows: MemoryRows,
    index: IndexArray,
    assigned: Mapping[Hashable, float] | None,
    alpha: float,
    units: Units,
) -> GradeTable:
    """Return the assigned probability of each grade with rows, and what was observed."""
    n_grades = len(rows.segment_names)
    weights = units.weights(len(rows))
    present, index = np.unique(
        index, return_inverse=True
    )  # all rows of a grade may have zero weight
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
        outcomes = (
            rows.codes.astype(np.float64) if assigned else (rows.codes - rows.scores + 1.0) / 2.0
        )
        # given its grade, a weighted row is a draw like others of the grade; with groups, the
        # grades must be fixed
        delta = alpha / max(n_grades, len(assigned or ()))
        limits = units.means(outcomes, index, len(names), delta)
        if (
            not assigned
        ):  # the mean of label minus score has limits, for any mean score of the grade
            ends = (
                np.clip(mean_score + 2.0 * end - 1.0, 0.0, 1.0)
                for end in (limits.lower, limits.upper)
            )
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
