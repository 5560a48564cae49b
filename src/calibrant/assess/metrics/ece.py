"""Expected calibration error in bins, plain and debiased."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from calibrant._typing import ArrayLike, FloatArray
from calibrant.assess.metrics.bin_sums import (
    BinSums,
    binned,
    read_forecasts,
    swept,
)
from calibrant.assess.metrics.estimate import Estimate
from calibrant.limits.error_budget import sidak_level
from calibrant.limits.interval import Interval
from calibrant.limits.non_identical import (
    gap_limits,
    largest_variance,
    non_identical,
    signed_noise_bound,
)
from calibrant.params.rules import Choice, Integer, Only, error_budget
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows

NORMS = ("l1", "l2", "max")
_SWEEP = "sweep"
_BY_LIMITS = (
    "binomial limits for labels with different rates (Hoeffding 1956), in all bins simultaneously"
)
_BY_HOEFFDING = (
    "Hoeffding's inequality for weighted sums of labels (1963), in all bins simultaneously"
)
_OF_SUMS = {
    "l1": "bounds for a sum of labels with fixed signs, bounded differences (McDiarmid 1989)",
    "l2": "Hoeffding's inequality for a sum of labels with fixed multipliers (1963)",
}
_BIN_SHARE = {
    "l1": 0.25,
    "l2": 0.75,
    "max": 1.0,
}  # share of alpha for simultaneous limits in all bins
# share of alpha for the lower limit of "l1" by a sum over bins; the rest is for the upper limit
_LOWER_SHARE = 0.375
RATE_IN_GROUP = "; the rate of a row is that given all scores of its group"
_SWEPT = "as if the bins had not been chosen by looking at the labels"


def ece(
    y: ArrayLike | Sample,
    scores: ArrayLike | None = None,
    *,
    norm: str = "l1",
    n_bins: int | str = 10,
    strategy: str = "auto",
    confidence_level: float = 0.95,
    importance_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
) -> Estimate:
    """Return the expected calibration error in bins, as the paper defines it, and a valid interval.

    Guarantee: with probability at least `confidence_level` over the labels, the calibration error
    of the scores seen, in these bins, lies in [lower, upper]. This holds for all rates of the
    labels given the scores. In bins with several scores, this error is at most the error without
    bins (Jensen's inequality). So `lower` is also a lower limit on the error without bins, but
    `upper` is not an upper limit on it. If every bin has only one score value, the two errors are
    equal and `exact` is true. Assumptions: rows are independent draws, and the model was not
    trained on them. For statements about the population see `calibrant.audit`.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
        Labels of two classes; or labels and scores together, see `calibrant.scored`.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Predicted probabilities of the positive class.
    norm : {"l1", "l2", "max"}, default="l1"
        "l1" is the mean of |gap| over rows, "l2" the root of the mean of gap^2, "max" the largest
        |gap|, where the gap of a bin is its mean score minus its rate of positives.
    n_bins : int or "sweep", default=10
        Number of bins. "sweep" takes the largest number of bins of equal mass whose rates never
        decrease (see `sweep_bins`). Those bins depend on the labels, so the interval is labelled
        heuristic.
    strategy : {"auto", "uniform", "quantile", "values"}, default="auto"
        "uniform" is the paper's: bins of equal width over [0, 1], the last closed. "quantile" cuts
        bins of about equal mass. "values" makes every distinct score a bin. "auto" is "values" for
        scores with at most 1000 distinct values that occur 20 times or more on average, else
        "uniform".
    confidence_level : float, default=0.95
        Confidence in the interval.
    importance_weight : array-like of shape (n,), optional
        How much each row counts, such as a survey weight; a whole number counts as that many rows
        in the value. The interval is then for the weighted error of the scores and weights seen.
    groups : array-like of shape (n,), optional
        The group of each row, such as its customer. The interval then holds however the labels of a
        group depend on each other. It is for the error with respect to each label's rate given all
        scores of its group.
    pos_label, classes
        As in `BinningCalibrator`.

    Returns
    -------
    Estimate

    Notes
    -----
    ECE = sum over bins of p_b |MP_b - FP_b|, with p_b the share of rows, MP_b the mean score and
    FP_b the rate of positives. Given the scores, labels are independent. Let q_b be a bin's mean
    rate given the scores. The interval is for the same formula with q_b in place of FP_b.

    (i) Limits on q_b hold in all bins simultaneously, so they give limits on any norm.

    (ii) An upper limit for "l1". Let a_b be the sign of q_b - MP_b, which is fixed given the
    scores. Then the true error is sum p_b a_b (q_b - MP_b), and the estimate is at least sum p_b
    a_b (FP_b - MP_b). So the true error exceeds the estimate by at most sum p_b a_b (q_b - FP_b): a
    mean over rows of label noise with fixed signs. Whatever these signs are, `signed_noise_bound`
    bounds this mean, with the largest variance that (i) allows, so the noise is not added up in
    full, bin by bin. For "l2", the same holds with a_b proportional to q_b - MP_b and sum p_b a_b^2
    = 1, and with Hoeffding's inequality: the sum of squared ranges is 1 / n.

    (iii) A lower limit for "l1". The estimate is off by at most sum p_b |FP_b - q_b|. The
    expectation of this sum is at most sum p_b sqrt(v_b / N_b), where v_b is the largest variance of
    a label that (i) allows, and one label changes the sum by at most 1 / n. So by McDiarmid's
    inequality, the sum exceeds this bound by more than sqrt(ln(1 / tail) / (2n)) with probability
    at most `tail`.

    With weights or groups, rows are replaced by independent units: given the scores, one of them
    changes a weighted sum of labels by at most its weight. All bounds are then Hoeffding's and
    McDiarmid's, with variances of 1/4 and, for groups, Bonferroni over bins. For "l1", (i) gets 1/4
    of alpha, (ii) and (iii) get 3/8 each; for "l2", (i) gets 3/4 and (ii) the rest. The interval is
    their intersection. ECE is biased upwards, so the interval is not centred on it.

    References
    ----------
    Gupta, Podkopaev and Ramdas (2020), appendix on simulations. Naeini, Cooper and Hauskrecht
    (2015), "Obtaining well calibrated probabilities using Bayesian binning". Hoeffding (1963),
    "Probability inequalities for sums of bounded random variables". McDiarmid (1989), "On the
    method of bounded differences".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.metrics import ece
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> y = rng.uniform(size=10_000) < scores**2
    >>> print(ece(y, scores))
    l1-ECE: 0.177, exact 95% CI 0.15 to 0.188 for the calibration error in these
    bins of the scores seen, which is at most the error without bins.
    """
    Choice(NORMS).check("norm", norm)
    error_budget(confidence_level)
    rows = read_forecasts(
        y, scores, pos_label, classes, importance_weight=importance_weight, groups=groups
    )
    bins = _bins(rows, n_bins, strategy)
    return ece_in(bins, norm, confidence_level, given_in(rows), swept=n_bins == _SWEEP)


def debiased_ece(
    y: ArrayLike | Sample,
    scores: ArrayLike | None = None,
    *,
    n_bins: int | str = 10,
    strategy: str = "auto",
    confidence_level: float = 0.95,
    importance_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
) -> Estimate:
    """Return the l2 calibration error in bins without the bias of small bins, and a valid interval.

    Guarantee: the interval is that of `ece` with norm="l2". The square of the value is unbiased for
    the squared calibration error in bins, for fixed bins and independent, identically distributed
    rows. There are two exceptions: a negative estimate is returned as 0, and a bin with a single
    row counts as 0, because its noise cannot be separated from its error.

    Parameters
    ----------
    y, scores, n_bins, strategy, confidence_level, importance_weight, groups, pos_label, classes
        As in `ece`.

    Returns
    -------
    Estimate

    Notes
    -----
    The square is sum over bins of p_b [(MP_b - FP_b)^2 - FP_b (1 - FP_b) / (N_b - 1)].

    References
    ----------
    Kumar, Liang and Ma (2019), "Verified uncertainty calibration", Section 5. Bröcker (2012),
    "Estimating reliability and resolution of probability forecasts through decomposition of the
    empirical score". Ferro and Fricker (2012), "A bias-corrected decomposition of the Brier score".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.metrics import debiased_ece, ece
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=2_000)
    >>> y = rng.uniform(size=2_000) < scores
    >>> round(ece(y, scores, norm="l2", n_bins=100).value, 3)
    0.09
    >>> round(debiased_ece(y, scores, n_bins=100).value, 3)
    0.0
    """
    error_budget(confidence_level)
    rows = read_forecasts(
        y, scores, pos_label, classes, importance_weight=importance_weight, groups=groups
    )
    bins = _bins(rows, n_bins, strategy)
    biased = ece_in(bins, "l2", confidence_level, given_in(rows), swept=n_bins == _SWEEP)
    return replace(biased, name="debiased l2-ECE", value=math.sqrt(max(debiased_square(bins), 0.0)))


def debiased_square(bins: BinSums) -> float:
    """Sum over bins of p_b [(MP_b - FP_b)^2 - FP_b (1 - FP_b) / (N_b - 1)]; bins of one row count
    as 0.

    With weights, N_b is the number of rows with the same precision for the weighted rate; with
    groups, the variance is that of their sums.
    """
    if bins.noise is not None:
        return float(
            bins.mass @ np.where(np.isnan(bins.noise), 0.0, bins.gap**2 - np.nan_to_num(bins.noise))
        )
    rows = bins.effective_rows
    several = rows > 1.0 + 1e-9
    noise = bins.rate * (1.0 - bins.rate) / np.where(several, rows - 1.0, 1.0)
    return float(bins.mass @ np.where(several, bins.gap**2 - noise, 0.0))


def _bins(rows: MemoryRows, n_bins: int | str, strategy: str) -> BinSums:
    checked = (Integer(1) | Only(_SWEEP)).check("n_bins", n_bins)
    if isinstance(checked, str):
        return binned(rows, swept(rows), "quantile")
    return binned(rows, checked, strategy)


def given_in(rows: MemoryRows) -> str:
    """What an estimate is conditional on."""
    return "scores seen" if rows.weights is None else "scores and weights seen"


def ece_in(
    bins: BinSums, norm: str, confidence_level: float, given: str, *, swept: bool
) -> Estimate:
    """The calibration error in these bins; `given` is what it is conditional on."""
    value = _combine(bins, np.abs(bins.gap), norm)
    alpha = error_budget(confidence_level)
    limits = rate_limits(bins, _BIN_SHARE[norm] * alpha)
    lower, upper = (
        _combine(bins, distance, norm) for distance in gap_limits(limits, bins.mean_score)
    )
    if norm == "l1":
        lower = max(lower, value - _mean_noise(bins, limits, _LOWER_SHARE * alpha))
    if norm != "max":
        share = (1.0 - _BIN_SHARE[norm] - (_LOWER_SHARE if norm == "l1" else 0.0)) * alpha
        upper = min(upper, value + _noise_at_truth(bins, limits, norm, share))
    exact = bool(bins.is_value.all())
    basis = _BY_LIMITS if bins.squares is None else _BY_HOEFFDING
    if norm != "max":
        basis = f"{_OF_SUMS[norm]}, and {basis}"
    if bins.noise is not None:
        basis += RATE_IN_GROUP
    where = (
        f"over the {given}"
        if exact
        else f"in these bins of the {given}, which is at most the error without bins"
    )
    return Estimate(
        name=f"{norm}-ECE",
        value=value,
        lower=lower,
        upper=upper,
        confidence_level=float(confidence_level),
        heuristic=swept,
        target=f"the calibration error {where}",
        basis=f"{basis}; {_SWEPT}" if swept else basis,
        exact=exact,
    )


def rate_limits(bins: BinSums, alpha: float) -> Interval:
    """Simultaneous limits for the mean rate of each bin, given the scores."""
    tail = sidak_level(alpha, bins.counts.size) / 2.0
    if bins.noise is not None:  # groups have rows in several bins, so the bins are dependent
        tail = alpha / bins.counts.size / 2.0
    if bins.squares is None:
        return non_identical(bins.counts, bins.positives, tail, bins.is_value)
    radius = np.sqrt(bins.squares * (math.log(1.0 / tail) / 2.0)) / bins.counts
    return Interval(np.clip(bins.rate - radius, 0.0, 1.0), np.clip(bins.rate + radius, 0.0, 1.0))


def _mean_noise(bins: BinSums, limits: Interval, tail: float) -> float:
    """A bound that the sum of p_b |FP_b - mean rate| exceeds with probability at most `tail`, if
    the limits hold.
    """
    if bins.squares is None:
        expected = float(np.sqrt(bins.counts * largest_variance(limits)).sum())
    else:
        expected = float(np.sqrt(bins.squares).sum()) / 2.0
    beyond = math.sqrt(-math.log(tail) * float(bins.moves.sum()) / 2.0)
    return (expected + beyond) / float(bins.counts.sum())


def _noise_at_truth(bins: BinSums, limits: Interval, norm: str, tail: float) -> float:
    """A bound that the true error minus the estimate exceeds with probability at most `tail`, if
    the limits hold.
    """
    total = float(bins.counts.sum())
    if norm == "l1" and bins.squares is None:
        variance = float(bins.mass @ largest_variance(limits))
        return signed_noise_bound(int(total), variance, tail)
    move = bins.moves.sum() / total if norm == "l1" else (bins.moves / bins.counts).max()
    return math.sqrt(-math.log(tail) * float(move) / (2.0 * total))


def _combine(bins: BinSums, distance: FloatArray, norm: str) -> float:
    if norm == "max":
        return float(distance.max())
    return (
        float(bins.mass @ distance) if norm == "l1" else math.sqrt(float(bins.mass @ distance**2))
    )
