"""Empirical Bernstein by inversion. It needs only sums, so it can be merged, streamed and
distributed.
"""

from __future__ import annotations

import numpy as np

from calibrant.limits.error_budget import sidak_level
from calibrant.limits.interval import Interval, outwards
from calibrant.limits.shift.evidence import Evidence, weight_sums
from calibrant.params.rules import OPEN_UNIT

_ROUNDING = 8.0 * np.finfo(np.float64).eps  # for the few operations that turn sums into a variance


def empirical_bernstein(evidence: Evidence, alpha: float) -> Interval:
    """Limits on the target rate of every region simultaneously: every rate that empirical Bernstein
    does not rule out.

    Parameters
    ----------
    evidence : Evidence
        A tally with importance weights, and their upper bound U; the rows are i.i.d. and the
        regions were not chosen by looking at the labels.
    alpha : float in (0, 1)
        The largest probability that some region's interval misses its target rate.

    Returns
    -------
    Interval
        Within [0, 1]; [0, 1] for a region without weight.

    Notes
    -----
    theta_b is the root of E[w (Y - q)] = 0. With Z(q) = w (y - q), whose range is U, the rate q is
    kept if |mean Z(q)| <= s sqrt(Var Z(q)) + c, s = sqrt(2 L / N), c = 3 U L / N, L = ln(3 / delta)
    and delta the Sidak level, which fails for q = theta_b with probability at most delta (Audibert
    et al. 2007).

    The rates that are kept form one interval. To the right of pi-check, let g(q) = r q - a - s
    sqrt(Var Z(q)) - c, where r and a are the means of w and wy. It is concave, starts below zero,
    and its slope is never below r - s sd(w). If that is not negative, g changes sign once.
    Otherwise r < s sd(w) <= s sqrt(r U), so r < s^2 U < c, and then |mean Z(q)| <= r rules out
    nothing. The left side is the mirror image. The ends are roots of a quadratic.

    References
    ----------
    Audibert, Munos & Szepesvari (2007), "Tuning bandit algorithms in stochastic environments", ALT.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Partition, Tally
    >>> from calibrant.shift import Evidence
    >>> bins = Partition.fixed_width(1)
    >>> tally = Tally.from_data(bins, np.full(1000, 0.5), np.arange(1000) % 2,
    ...     importance_weight=np.ones(1000))
    >>> empirical_bernstein(Evidence(tally, weight_bound=1.0), 0.1).radius.round(4)
    array([0.0514])
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    tally = evidence.tally
    bound = evidence.weight_bound
    sums = weight_sums(tally)
    count = np.maximum(tally.counts, 1).astype(np.float64)
    # in units of U, so that squares neither overflow nor vanish
    r = sums.w.rounded() / bound / count
    a = sums.wy.rounded() / bound / count
    w2 = sums.w2.rounded() / bound / bound / count
    w2y = sums.w2y.rounded() / bound / bound / count
    log_term = np.log(3.0) - np.log(sidak_level(alpha, tally.n_regions))
    s2 = 2.0 * log_term / count
    c = 3.0 * log_term / count
    # moments of w and wy; rounding can only widen the limits
    var_w = np.maximum(w2 - r * r, 0.0) + _ROUNDING * w2
    var_wy = np.maximum(w2y - a * a, 0.0) + _ROUNDING * w2y
    cov = w2y - r * a
    lead = r * r - s2 * var_w
    informative = (r > c) & (lead > 0.0)
    lead = np.where(informative, lead, 1.0)
    upper = _root(lead, r * (a + c) - s2 * cov, (a + c) ** 2 - s2 * var_wy, +1.0)
    lower = _root(lead, r * (a - c) - s2 * cov, (a - c) ** 2 - s2 * var_wy, -1.0)
    return outwards(np.where(informative, lower, 0.0), np.where(informative, upper, 1.0))


def _root(lead: np.ndarray, half: np.ndarray, constant: np.ndarray, sign: float) -> np.ndarray:
    """The larger (sign = 1) or smaller root of lead q^2 - 2 half q + constant = 0."""
    spread = np.sqrt(np.maximum(half * half - lead * constant, 0.0))
    return np.asarray((half + sign * spread) / lead)
