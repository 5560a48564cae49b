"""ICI, E50 and E90: the distance between scores and the rate at each score, on average and in
quantiles.
"""

import numpy as np
from sklearn.isotonic import isotonic_regression

from calibrant._typing import CodeArray, FloatArray
from calibrant.assess.metrics.bin_sums import binned, read_forecasts
from calibrant.assess.metrics.ece import ece_in, given_in
from calibrant.assess.metrics.independent_units import Units
from calibrant.assess.monotone.runs import BandSteps
from calibrant.assess.validation.result import MEASURED, PROVED_IF_MONOTONE, Measure
from calibrant.cells.score_counts import ScoreCounts

_QUANTILES = {"E50": 0.5, "E90": 0.9}
_DRAWS = (3, 20)  # the fewest and the most: with many rows one is close to the mean
_MOST_WORK = 2_000_000  # rows of all draws together
_MEAN_SHARE = 0.25  # of alpha, for limits on ICI by bins
_BINS_PER_ROOT = 2.7  # bins over the cube root of the rows: noise and width of bins cost the same


def calibration_index(
    codes: CodeArray,
    scores: FloatArray,
    fitted: FloatArray,
    alpha: float,
    units: Units,
    rng: np.random.Generator,
) -> tuple[Measure, ...]:
    """Return ICI, the mean of |score - rate at that score| over the rows, and E50 and E90, its
    median and its 0.9 quantile (Austin and Steyerberg 2019); for rows in increasing order of their
    scores, with the `fitted` isotonic regression of labels on scores.

    The value v uses the isotonic regression as the rate. The limits do not.

    Notes
    -----
    Isotonic regression follows the noise of the labels, so v is far from 0 for a calibrated score:
    its mean was 0.034 with 1,000 uniform scores. With v0 the mean of the same number for labels
    drawn from the scores, the value is sqrt(max(v^2 - v0^2, 0)), within the limits. There, its mean
    is 0.006. Where the score is off by more than the noise, v0 is small beside v and moves it by
    little: by 0.004 for a rate of score^2, with an ICI of 0.167. With v - v0 it would be 0.034 too
    small. Where both are alike it is too small: its mean was 0.035 for a rate that rises in steps,
    with an ICI of 0.061 and 300 rows. This is an estimate, and no theorem.
    Labels of one group are not independent, so with groups v is not corrected.

    Guarantee: if the rate f is nondecreasing in the score and labels are independent given the
    scores, then with probability at least 1 - alpha all three numbers of the true f, at the scores
    of these rows, lie within their limits. Proof: with probability 1 - 3/4 alpha the `MonotoneBand`
    holds, L(s) <= f(s) <= U(s) at every score s. On that event |s - f(s)| is at least the distance
    of s from [L(s), U(s)], and at most max(|s - L(s)|, |s - U(s)|), at every row simultaneously.
    Means and quantiles are nondecreasing in each entry, so those of the smallest and of the largest
    distances are limits.

    The lower limit is the best that the band gives: s clipped to [L(s), U(s)] is nondecreasing,
    because s, L and U are, and has these distances. The upper limit is over all functions within
    the band; nondecreasing ones may not reach it.

    A band for every score says little about a mean over all of them. So a quarter of alpha is for
    limits on ICI by the calibration error in bins (`ece`), and the narrower ones count. In a bin,
    the mean of |s - f(s)| is at least |mean s - mean f|, and at most that plus the mean distances
    of s and of f from their means. A number in a range is on average at most half of it away from
    its mean; and a rate that does not fall moves by at most 1 over all bins. So ICI exceeds the
    error in bins by at most the mean distance of the scores from the mean of their bin, plus half of
    the largest share of rows in a bin; bins of one score add nothing.
    """
    values = _summaries(np.abs(scores - fitted), units)
    if not units.grouped:
        noise = _of_noise(scores, units, rng)
        values = {name: max(v * v - noise[name] ** 2, 0.0) ** 0.5 for name, v in values.items()}
    limits = None if units.row_weights is not None else _limits(codes, scores, alpha, units)
    if limits is None:
        return tuple(
            Measure(name, value, ideal=0.0, basis=MEASURED) for name, value in values.items()
        )
    nearest, farthest = limits
    return tuple(
        Measure(
            name,
            min(max(value, nearest[name]), farthest[name]),
            nearest[name],
            farthest[name],
            0.0,
            PROVED_IF_MONOTONE,
        )
        for name, value in values.items()
    )


def _of_noise(scores: FloatArray, units: Units, rng: np.random.Generator) -> dict[str, float]:
    """The mean of the numbers over labels drawn with the scores as rates."""
    draws = int(np.clip(_MOST_WORK // scores.size, *_DRAWS))
    found = []
    for _ in range(draws):
        drawn: CodeArray = (rng.random(scores.size) < scores).astype(np.uint8)
        fitted: FloatArray = isotonic_rates(drawn, scores, units)
        found.append(_summaries(np.abs(np.subtract(scores, fitted)), units))
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def _summaries(distance: FloatArray, units: Units) -> dict[str, float]:
    """The mean and the quantiles of distances between scores and rates."""
    found = {"ICI": units.mean(distance)}
    shares = np.array(list(_QUANTILES.values())) * (1.0 - 1e-12)
    if units.row_weights is None:
        places = np.ceil(shares * distance.size).astype(np.intp) - 1
        quantiles = np.partition(distance, places)[places]
    else:
        order = np.argsort(distance, kind="stable")
        reached = np.cumsum(units.row_weights[order])
        quantiles = distance[order[np.searchsorted(reached, shares * reached[-1])]]
    return found | dict(zip(_QUANTILES, quantiles.tolist(), strict=True))


def _limits(
    codes: CodeArray, scores: FloatArray, alpha: float, units: Units
) -> tuple[dict[str, float], dict[str, float]] | None:
    """Lower and upper limits on the numbers; None if the rows refute a nondecreasing rate."""
    steps = BandSteps.of(ScoreCounts.of(scores, codes), "auto", (1.0 - _MEAN_SHARE) * alpha)
    if steps.refutation is not None:
        return None
    lower, upper = steps.at(scores)
    least = _summaries(np.maximum(np.maximum(lower - scores, scores - upper), 0.0), units)
    most = _summaries(np.maximum(np.abs(scores - lower), np.abs(scores - upper)), units)
    del lower, upper
    low, high = _mean_limits(codes, scores, _MEAN_SHARE * alpha)
    least["ICI"] = max(least["ICI"], low)
    most["ICI"] = min(most["ICI"], high)
    return (least, most) if least["ICI"] <= most["ICI"] else None


def _mean_limits(codes: CodeArray, scores: FloatArray, alpha: float) -> tuple[float, float]:
    """Limits on ICI by the calibration error in bins."""
    rows = read_forecasts(codes, scores, None, (0, 1))
    bins = binned(rows, max(1, round(_BINS_PER_ROOT * scores.size ** (1.0 / 3.0))), "quantile")
    error = ece_in(bins, "l1", 1.0 - alpha, given_in(rows), swept=False)
    spread = float(np.abs(scores - bins.mean_score[bins.index]).mean())
    within = spread + 0.5 * float(bins.mass[~bins.is_value].max(initial=0.0))
    return error.lower, min(error.upper + within, 1.0)


def isotonic_rates(codes: CodeArray, scores: FloatArray, units: Units) -> FloatArray:
    """The fitted rate of each row, in increasing order of scores; equal scores share one rate."""
    is_first = np.append(True, scores[1:] != scores[:-1])
    if is_first.all() and units.row_weights is None:
        return np.asarray(isotonic_regression(codes.astype(np.float64)))
    first = np.flatnonzero(is_first)
    each = units.weights(codes.size)
    weights = np.add.reduceat(each, first)
    rates = np.add.reduceat(each * codes, first) / weights
    fitted: FloatArray = isotonic_regression(rates, sample_weight=weights)
    return np.repeat(fitted, np.diff(first, append=codes.size))
