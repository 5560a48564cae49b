"""Smooth calibration error: a kernel in place of bins, and a bandwidth that sets itself."""

import math
from collections.abc import Hashable

import numpy as np
from scipy import fft

from calibrant._params import check_int, error_budget
from calibrant._typing import ArrayLike, FloatArray
from calibrant.metrics._rows import Rows
from calibrant.metrics.estimate import Estimate

_NARROWINGS = 10  # each to a seventeenth: to 5e-13 in all
_SECTIONS = np.arange(1, 17) / 17.0
_TRIED = 40  # bandwidths that the interval looks at
_NARROWEST = 1e-3


def smooth_ece(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    n_cells: int = 4096,
    confidence_level: float = 0.95,
    pos_label: Hashable | None = None,
    classes: ArrayLike | None = None,
) -> Estimate:
    """Return the smooth calibration error, which needs no bins, and a valid interval.

    Claimed: with probability at least `confidence_level` over the labels, whatever their rates given the scores, the
    smooth calibration error of the scores seen lies in [lower, upper]. It is the value that the same formula gives
    with E[Y | score] in place of the labels. Assumed: rows are independent draws, and the model behind the scores was
    not trained on them.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, of two kinds.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Predicted probabilities of the positive label.
    n_cells : int, default=4096
        Cells of the grid on which the kernel acts; scores are rounded to their centres.
    confidence_level : float, default=0.95
        Confidence in the interval.
    pos_label, classes
        As in `BinningCalibrator`.

    Returns
    -------
    Estimate

    Notes
    -----
    With K_s the Gaussian kernel of standard deviation s, reflected at 0 and 1, let h(s) be the integral over t of
    |(1 / n) sum (y_i - f_i) K_s(t, f_i)|. It falls as s grows, and the value is the s at which h(s) = s. The reflected
    kernel is the heat semigroup of the unit interval, so its action is exact in the cosine transform, where frequency
    k shrinks by exp(-(pi k s)^2 / 2).

    The interval: let g(s) be h(s) with E[Y | f_i] in place of y_i. Given the scores, |h - g| at one s is at most the
    integral of |(1 / n) sum (y_i - E[Y | f_i]) K_s(t, f_i)|, whose expectation is at most the integral of
    sqrt(sum K_s(t, f_i)^2) / (2n), and which one label moves by at most 1 / n; so with L = ln(40 / alpha) McDiarmid's
    inequality adds sqrt(L / (2n)) for 40 values of s at once. Where g(s) <= u, the s at which g(s) = s is at most
    max(s, u), and likewise from below, because g falls; the interval is the best over the 40.

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
    smooth ECE 0.1765 (95% valid interval [0.1515, 0.2059] for the smooth calibration error of the scores seen)
    """
    n_cells = check_int("n_cells", n_cells, minimum=16)
    alpha = error_budget(confidence_level)
    rows = Rows.of(y, scores, pos_label, classes)
    cell = np.minimum((rows.scores * n_cells).astype(np.int64), n_cells - 1)
    counts = np.bincount(cell, minlength=n_cells) / rows.scores.size
    residual = np.bincount(cell, rows.labels - rows.scores, minlength=n_cells) / rows.scores.size
    spectrum = fft.dct(residual)
    value = _fixed_point(spectrum)
    lower, upper = _limits(spectrum, counts, rows.scores.size, alpha)
    return Estimate(
        name="smooth ECE",
        value=value,
        lower=min(lower, value),
        upper=max(upper, value),
        confidence_level=float(confidence_level),
        heuristic=False,
        target="the smooth calibration error of the scores seen",
        basis="bounded differences (McDiarmid 1989) at 40 bandwidths at once",
    )


def _smoothed(spectrum: FloatArray, bandwidth: FloatArray) -> FloatArray:
    """The kernels' action on a measure on the grid, given by its cosine transform: mass per cell, a row per kernel."""
    frequency = np.arange(spectrum.size)
    damping = np.exp(-0.5 * (np.pi * bandwidth[:, None] * frequency) ** 2)
    return np.asarray(fft.idct(spectrum * damping, axis=1))


def _error(spectrum: FloatArray, bandwidth: FloatArray) -> FloatArray:
    return np.asarray(np.abs(_smoothed(spectrum, bandwidth)).sum(axis=1))


def _fixed_point(spectrum: FloatArray) -> float:
    low, high = 0.0, 1.0
    for _ in range(_NARROWINGS):
        tried = low + (high - low) * _SECTIONS
        # the error falls and the bandwidth rises, so they cross once
        below = int(np.count_nonzero(_error(spectrum, tried) > tried))
        low, high = float(tried[below - 1]) if below else low, float(tried[below]) if below < tried.size else high
    return high


def _limits(spectrum: FloatArray, counts: FloatArray, n_rows: int, alpha: float) -> tuple[float, float]:
    """Limits for the fixed point without label noise."""
    bandwidth = np.geomspace(_NARROWEST, 1.0, _TRIED)
    error = _error(spectrum, bandwidth)
    radius = math.sqrt(math.log(_TRIED / alpha) / (2.0 * n_rows)) + _expected_noise(counts, bandwidth, n_rows)
    lower = np.minimum(bandwidth, error - radius).max()
    upper = np.maximum(bandwidth, error + radius).min()
    return max(0.0, float(lower)), min(1.0, float(upper))


def _expected_noise(counts: FloatArray, bandwidth: FloatArray, n_rows: int) -> FloatArray:
    """Upper bound for the expected noise: integral over t of sqrt(sum of K(t, f_i)^2) / (2n).

    K^2 is at most sup K times K. The largest value of the reflected kernel, at an end, is at most twice the
    Gaussian's, plus 1 for the images further away.
    """
    highest = 2.0 / (bandwidth * math.sqrt(2.0 * math.pi)) + 1.0
    density = np.maximum(_smoothed(np.asarray(fft.dct(counts)), bandwidth), 0.0) * counts.size
    return np.asarray(np.sqrt(highest[:, None] * density).mean(axis=1) / (2.0 * math.sqrt(n_rows)))
