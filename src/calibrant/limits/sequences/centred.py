"""The default: a beta-binomial mixture centred at each candidate rate. It needs only counts."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, digamma, xlogy

from calibrant._typing import CodeArray, FloatArray, IntArray
from calibrant.limits.interval import Interval, outwards
from calibrant.limits.sequences.sequence import Sequence

_CONCENTRATIONS = np.array([[2.0], [20.0], [200.0]])  # one per row, to be averaged over
_LARGEST = 700.0  # -log p that is considered
_MAX_ITERATIONS = 100
_CONVERGED = 1e-4  # of the distance from the observed rate; the error left is about its square
# added to the threshold, and per label: many times the numerical error of the evidence
_ROUNDING = 1e-9
_ROUNDING_PER_LABEL = 5e-16
_OUTWARD = 1e-13


class CentredBetaBinomial(Sequence):
    """Rates are ruled out when bets that they are a little too low or too high have grown by B /
    alpha on average.

    Guarantee: with probability at least 1 - alpha, the limits hold after every label and in every
    region, whatever rule decides from past labels when to look, when to stop, and which region to
    label next. Assumptions: within a region, labels are independent draws with one rate. It needs
    only the counts: memory does not grow, order does not matter, and streams can be merged.

    Notes
    -----
    For each rate q, the likelihood of N labels with k positives is averaged over Beta(c q, c (1 -
    q)), whose mean is q, and divided by the likelihood under q:

        M(q) = prod_{i < k} (c + i / q) prod_{j < N - k} (c + j / (1 - q)) / (c (c + 1) ... (c + N -
        1)).

    If q is true, this is a nonnegative martingale that starts at 1. So is its mean over c = 2, 20
    and 200, and by Ville's inequality that mean ever reaches B / alpha with probability at most
    alpha / B. Each factor is log-convex in q, in ln q and in ln(1 - q), and so are products and
    means of them; and M(k / N) is at most 1, because no average of likelihoods exceeds their
    maximum. So the rates that are not ruled out form an interval around k / N. For k <= 1, nothing
    rules out rates near 0, and the lower limit is 0; likewise the upper limit is 1 for N - k <= 1.

    References
    ----------
    Robbins (1970), "Statistical methods related to the law of the iterated logarithm". Howard,
    Ramdas, McAuliffe and Sekhon (2021), "Time-uniform, nonparametric, nonasymptotic confidence
    sequences", Annals of Statistics 49.

    Examples
    --------
    >>> import numpy as np
    >>> sequence = CentredBetaBinomial(n_regions=1, alpha=0.1)
    >>> sequence.add_counts(np.array([1000]), np.array([500]))
    >>> sequence.limits().radius.round(3)
    array([0.047])
    """

    name = "centred-beta-binomial"
    theorem = (
        "beta-binomial mixture martingales centred at each rate, and Ville's inequality, by"
        " Bonferroni"
    )

    order_free = True

    @staticmethod
    def limits_of(counts: IntArray, positives: IntArray, log_share: float) -> Interval:
        """Return the limits for given counts and log(B / alpha)."""
        n = np.tile(counts, 2).astype(np.float64)
        seen = np.concatenate([positives, counts - positives]).astype(np.float64)
        distance = np.zeros(n.size)
        some = seen > 1.0
        # both sides in one call: twelve limits cost hardly more than six
        distance[some] = _solve(seen[some], n[some], log_share + _ROUNDING) * (1.0 + _OUTWARD)
        lower = np.where(some, np.exp(-distance), 0.0)
        upper = np.where(some, -np.expm1(-distance), 1.0)
        return outwards(lower[: counts.size], upper[counts.size :])

    def limits(self) -> Interval:
        """Return the current limits of every region."""
        return self.limits_of(self.counts, self.positives, self.log_share)

    @classmethod
    def path(cls, labels: CodeArray, alpha: float) -> Interval:
        """Return the limits after each label of a single stream."""
        hits = np.cumsum(labels, dtype=np.int64)
        return cls.limits_of(np.arange(1, labels.size + 1), hits, cls(1, alpha).log_share)


def log_evidence(k: FloatArray, n: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the logarithm of the mean of M(p) over the concentrations, for p in (0, 1) and q = 1 -
    p.
    """
    return _evidence(k, n, p, q)[0]


def _evidence(
    k: FloatArray, n: FloatArray, p: FloatArray, q: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the evidence, and its derivative with respect to -log p."""
    a = _CONCENTRATIONS * p
    b = _CONCENTRATIONS * q
    positives = k + a
    negatives = n - k + b
    logs = betaln(positives, negatives) - betaln(a, b) - xlogy(k, p) - xlogy(n - k, q)
    sums = digamma(negatives) - digamma(b) - digamma(positives) + digamma(a)
    slopes = (k - n * p) / q + a * sums
    largest = logs.max(axis=0)
    shares = np.exp(logs - largest)
    return largest + np.log(shares.mean(axis=0)), (slopes * shares).sum(axis=0) / shares.sum(axis=0)


def _solve(k: FloatArray, n: FloatArray, level: float) -> FloatArray:
    """Return -log p for the p <= k/n where the evidence reaches the level.

    As a function of u = -log p the evidence is convex. Newton's iteration, started where the rate
    is ruled out, therefore approaches the solution from that side and never passes it: wherever it
    stops, the limit is valid.
    """
    origin = -np.log(k / n)
    levels = level + _ROUNDING_PER_LABEL * n
    bound = levels + 2.0 + 0.5 * np.log1p(n / 20.0)  # roughly the deviance at the solution
    solution = np.minimum(origin + np.sqrt(2.0 * bound * ((n - k) / n) / k) + bound / n, _LARGEST)
    active = np.arange(k.size)
    proved = np.zeros(k.size, dtype=bool)
    for _ in range(_MAX_ITERATIONS):
        current = solution[active]
        evidence, slope = _evidence(k[active], n[active], np.exp(-current), -np.expm1(-current))
        missing = levels[active] - evidence
        out = missing <= 0.0
        step = np.where(out, missing / np.where(out, slope, 1.0), current - origin[active])
        solution[active] = np.minimum(
            np.where(out | ~proved[active], current + step, current), _LARGEST
        )
        going = np.where(
            out,
            -step > _CONVERGED * (current - origin[active]),
            ~proved[active] & (current < _LARGEST),
        )
        proved[active] |= out
        active = active[going]
        if active.size == 0:
            break
    return solution
