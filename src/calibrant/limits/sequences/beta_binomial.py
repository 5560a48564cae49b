"""The beta-binomial mixture, which needs only counts."""

from __future__ import annotations

import numpy as np
from scipy import special

from calibrant._typing import CodeArray, FloatArray, IntArray
from calibrant.kernels import Implementation, uses_numba
from calibrant.limits.binomial import both_limits, solve_deviance, stirling_error
from calibrant.limits.interval import Interval
from calibrant.limits.sequences.sequence import NUMBA_LABELS, CountSequence

_SERIES_FROM = 32.0


class BetaBinomial(CountSequence):
    """Rates are ruled out when a bet against them, averaged over all betting strategies, has grown
    by B / alpha.

    Claimed: with probability at least 1 - alpha, the limits hold after every label and in every
    region, whatever rule decides from past labels when to look, when to stop, or which region to
    label next. Assumed: within a region, labels are independent draws with one rate. It needs only
    the counts: memory does not grow, order does not matter, and streams can be merged.

    Notes
    -----
    The likelihood of N labels with k positives, averaged over Beta(1/2, 1/2), divided by their
    likelihood under q is a nonnegative martingale if q is true, so by Ville's inequality it ever
    exceeds B / alpha with probability at most alpha / B. The rate q is ruled out when

        ln Beta(k + 1/2, N - k + 1/2) - ln Beta(1/2, 1/2) - k ln q - (N - k) ln(1 - q)

    is at least ln(B / alpha); in terms of the deviance, when N kl(k/N, q) is at least a bound that
    grows like (ln N) / 2.

    References
    ----------
    Robbins (1970), "Statistical methods related to the law of the iterated logarithm". Howard,
    Ramdas, McAuliffe and Sekhon (2021), "Time-uniform, nonparametric, nonasymptotic confidence
    sequences", Annals of Statistics 49.

    Examples
    --------
    >>> import numpy as np
    >>> sequence = BetaBinomial(n_regions=1, alpha=0.1)
    >>> sequence.add_counts(np.array([1000]), np.array([500]))
    >>> sequence.limits().radius.round(3)
    array([0.055])
    """

    name = "beta-binomial"
    theorem = (
        "the beta-binomial mixture martingale and Ville's inequality (Robbins 1970), by Bonferroni"
    )

    @staticmethod
    def limits_of(counts: IntArray, positives: IntArray, log_share: float) -> Interval:
        """Return the limits for given counts and log(B / alpha)."""
        return both_limits(
            counts, positives, lambda k, n: solve_deviance(k, n, deviance_bound(n, k, log_share))
        )

    @classmethod
    def path(
        cls, labels: CodeArray, alpha: float, *, implementation: Implementation = None
    ) -> Interval:
        """Return the limits after each label of a single stream."""
        if not uses_numba(labels.size, NUMBA_LABELS, implementation):
            return super().path(labels, alpha)
        from calibrant.limits.sequences import compiled

        return Interval(*compiled.beta_binomial_path(labels, cls(1, alpha).log_share))


def deviance_bound(n: FloatArray, k: FloatArray, log_share: float) -> FloatArray:
    """Return the value of N kl(k/N, q) from which q is ruled out.

    It is ln(B / alpha) plus what the mixture loses to the best rate in hindsight, written without
    the large terms of the gamma functions, because these cancel.
    """
    whole = stirling_error(n) + 0.5 * np.log(2 * np.pi * n)
    return np.asarray(whole - _half_excess(k) - _half_excess(n - k) + np.log(np.pi) + log_share)


def _half_excess(k: FloatArray) -> FloatArray:
    """Return log Gamma(k + 1/2) - (k log k - k)."""
    inverse = 1.0 / np.maximum(k, _SERIES_FROM)
    square = inverse * inverse
    series = 0.5 * np.log(2 * np.pi) - inverse * (
        1 / 24 - square * (7 / 2880 - square * (31 / 40320))
    )
    small = np.minimum(k, _SERIES_FROM)
    direct = special.gammaln(small + 0.5) - special.xlogy(small, small) + small
    return np.asarray(np.where(k < _SERIES_FROM, direct, series))
