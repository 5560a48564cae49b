"""Smooth calibration error: a kernel in place of bins. The data determine the bandwidth."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np
from scipy import fft

from calibrant._typing import ArrayLike, FloatArray
from calibrant.assess.metrics.bin_sums import binned, read_forecasts
from calibrant.assess.metrics.ece import RATE_IN_GROUP, given_in, rate_limits
from calibrant.assess.metrics.estimate import Estimate
from calibrant.limits.non_identical import largest_variance, noise_bound
from calibrant.params.rules import Integer, error_budget
from calibrant.sample.sample import Sample

_NARROWINGS = 10  # each divides the range by 17: a final precision of 5e-13
_SECTIONS = np.arange(1, 17) / 17.0
_TRIED = 40  # bandwidths used for the lower limit
_NARROWEST = 1e-3
_BINS = 10  # in which the variance of labels is bounded
_BASIS = (
    "a sum of labels with fixed multipliers (Hoeffding 1963), bounded differences (McDiarmid 1989)"
)
_BIN_SHARE = 0.1  # share of alpha for limits on the rates in these bins


def smooth_ece(
    y: ArrayLike | Sample,
    scores: ArrayLike | None = None,
    *,
    n_cells: int = 4096,
    confidence_level: float = 0.95,
    importance_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
) -> Estimate:
    """Return the smooth calibration error, which needs no bins, and a valid interval.

    Guarantee: with probability at least `confidence_level` over the labels, the smooth calibration
    error of the scores seen lies in [lower, upper]. This holds for all rates of the labels given
    the scores. This error is given by the same formula with E[Y | score] in place of the labels.
    Assumptions: rows are independent draws, and the model was not trained on them.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
        Labels of two classes; or labels and scores together, see `calibrant.scored`.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Predicted probabilities of the positive class.
    n_cells : int, default=4096
        Number of cells in the grid on which the kernel is computed. Scores are rounded to the
        centres of the cells.
    confidence_level : float, default=0.95
        Confidence in the interval.
    importance_weight, groups : array-like of shape (n,), optional
        As in `ece`.
    pos_label, classes
        As in `BinningCalibrator`.

    Returns
    -------
    Estimate

    Notes
    -----
    With K_s the Gaussian kernel of standard deviation s, reflected at 0 and 1, let h(s) be the
    integral over t of |(1 / n) sum (y_i - f_i) K_s(t, f_i)|. It decreases as s grows, and the value
    is the s at which h(s) = s. The reflected kernel is the heat semigroup of the unit interval. So
    it is exact in the cosine transform: frequency k is multiplied by exp(-(pi k s)^2 / 2).

    For the interval, let g(s) be h(s) with r_i = E[Y | f_i] in place of y_i, and let s* be the true
    error: g(s*) = s*. Given the scores, s* is fixed.

    *Upper limit.* Let a(t) be the sign at s* of the sum in g. Then h(s*) is at least the integral
    of a(t) times the sum in h, so s* = g(s*) <= h(s*) + (1 / n) sum a_i (r_i - y_i), where a_i is
    the integral of a(t) K(t, f_i), which is fixed and lies between -1 and 1. `noise_bound` bounds
    the last sum by c. So h(s*) + c >= s*. Because h decreases, s* is at most the s at which h(s) +
    c = s.

    *Lower limit.* At one s, h - g is at most the integral of |(1 / n) sum (y_i - r_i) K_s(t, f_i)|.
    Its expectation is at most the integral of sqrt(sum v_i K_s(t, f_i)^2) / n, where v_i is the
    variance of a label, and one label changes it by at most 1 / n. So McDiarmid's inequality bounds
    it for 40 values of s simultaneously (Bonferroni). Because g decreases, g(s) >= l implies that
    s* >= min(s, l). The limit is the best over the 40 values.

    Variances are the largest that limits on the mean rate in ten bins allow. These limits get 1/10
    of alpha, and each side of the interval gets half of the rest. With weights or groups, rows are
    replaced by independent units, and variances by 1/4: a group of weight W changes the integral by
    at most W divided by the sum of weights, and by the Cauchy-Schwarz inequality the square of its
    part of the sum is at most W times the sum of w_i K_s(t, f_i)^2 over its rows.

    References
    ----------
    Błasiok and Nakkiran (2023), "Smooth ECE: principled reliability diagrams via kernel smoothing".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.metrics import smooth_ece
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> y = rng.uniform(size=10_000) < scores**2
    >>> print(smooth_ece(y, scores))
    smooth ECE: 0.177, exact 95% CI 0.151 to 0.188 for the smooth calibration error
    of the scores seen.
    """
    n_cells = Integer(16).check("n_cells", n_cells)
    alpha = error_budget(confidence_level)
    rows = read_forecasts(
        y, scores, pos_label, classes, importance_weight=importance_weight, groups=groups
    )
    units = rows.units
    weights = units.weights
    total = float(weights.sum())
    squares = weights * units.totals[units.unit]
    cell = np.minimum((rows.scores * n_cells).astype(np.int64), n_cells - 1)
    spectrum = fft.dct(
        np.bincount(cell, weights * (rows.codes - rows.scores), minlength=n_cells) / total
    )
    value = _fixed_point(spectrum)
    variance = np.full(len(rows), 0.25)
    mean_variance = None
    if rows.weights is None and rows.groups is None:
        bins = binned(rows, _BINS, "uniform")
        variance = largest_variance(rate_limits(bins, _BIN_SHARE * alpha))[bins.index]
        mean_variance = float(variance.mean())
    # one unit moves the error by w / (sum of w), so weighted units count as (sum of w)^2 / (sum of
    # w^2) rows
    n_units = total**2 / float(squares.sum())
    tail = (1.0 - _BIN_SHARE) * alpha / 2.0
    mass = np.bincount(cell, squares * variance, minlength=n_cells) / squares.sum()
    lower = _lower_limit(spectrum, mass, n_units, tail)
    upper = _fixed_point(spectrum, noise_bound(n_units, mean_variance, tail))
    return Estimate(
        name="smooth ECE",
        value=value,
        lower=min(lower, value),
        upper=max(upper, value),
        confidence_level=float(confidence_level),
        heuristic=False,
        target=f"the smooth calibration error of the {given_in(rows)}",
        basis=_BASIS if rows.groups is None else f"{_BASIS}{RATE_IN_GROUP}",
    )


def _smoothed(spectrum: FloatArray, bandwidth: FloatArray) -> FloatArray:
    """Mass per cell after smoothing, one row per bandwidth.

    The input is the cosine transform of the mass.
    """
    frequency = np.arange(spectrum.size)
    damping = np.exp(-0.5 * (np.pi * bandwidth[:, None] * frequency) ** 2)
    return np.asarray(fft.idct(spectrum * damping, axis=1))


def _error(spectrum: FloatArray, bandwidth: FloatArray) -> FloatArray:
    return np.asarray(np.abs(_smoothed(spectrum, bandwidth)).sum(axis=1))


def _fixed_point(spectrum: FloatArray, added: float = 0.0) -> float:
    """The bandwidth that equals the error plus `added`."""
    low = 0.0
    high = 1.0
    for _ in range(_NARROWINGS):
        tried = low + (high - low) * _SECTIONS
        # the error decreases as the bandwidth increases, so they cross once
        below = int(np.count_nonzero(_error(spectrum, tried) + added > tried))
        low = float(tried[below - 1]) if below else low
        high = float(tried[below]) if below < tried.size else high
    return high


def _lower_limit(spectrum: FloatArray, variance: FloatArray, n_units: float, tail: float) -> float:
    """A lower limit for the fixed point that noiseless labels would give. `variance` is the sum of
    v_i over n in each cell.
    """
    bandwidth = np.geomspace(_NARROWEST, 1.0, _TRIED)
    # the expected noise is at most the integral over t of sqrt(sum of v_i K(t, f_i)^2) / n, and K^2
    # at most sup K times K; the reflected kernel is largest at an end, where it is at most twice the
    # Gaussian's maximum, plus 1 for the more distant images
    highest = 2.0 / (bandwidth * math.sqrt(2.0 * math.pi)) + 1.0
    density = np.maximum(_smoothed(np.asarray(fft.dct(variance)), bandwidth), 0.0) * variance.size
    expected = np.sqrt(highest[:, None] * density).mean(axis=1) / math.sqrt(n_units)
    noise = math.sqrt(math.log(_TRIED / tail) / (2.0 * n_units)) + expected
    lower = np.minimum(bandwidth, _error(spectrum, bandwidth) - noise).max()
    return max(0.0, float(lower))
