"""Hedged betting: the narrowest interval under covariate shift; it needs individual rows."""

from __future__ import annotations

import numpy as np

from calibrant.errors import InvalidTypeError
from calibrant.limits.bounded_mean import weighted_means
from calibrant.limits.error_budget import sidak_level
from calibrant.limits.interval import Interval
from calibrant.limits.shift.evidence import Evidence
from calibrant.params.rules import OPEN_UNIT
from calibrant.text.sentences import Setting


def betting(evidence: Evidence, alpha: float) -> Interval:
    """Limits on the target rate of every region simultaneously: the rates against which no bet has
    won enough.

    Parameters
    ----------
    evidence : Evidence
        The rows, i.i.d. within each region, in an order that does not depend on labels or weights;
        and the upper bound U on the weights.
    alpha : float in (0, 1)
        The largest probability that some region's interval misses its target rate.

    Returns
    -------
    Interval
        Within [0, 1]; [0, 1] for a region without weight.

    Notes
    -----
    A gambler who believes that the target rate exceeds q bets on Z_i(q) = w_i (y_i - q), which lies
    in [-Uq, U(1-q)] and has mean zero if q is the target rate. The capital K+(q) = prod(1 +
    min(lam_i, c/(Uq)) Z_i(q)) is then a nonnegative martingale, and by Ville's inequality ever
    reaches 2/delta with probability at most delta/2; in the same way K-(q) = prod(1 - min(lam_i,
    c/(U(1-q))) Z_i(q)). The rates that are kept are those for which both stay below 2/delta, where
    delta is the Sidak level and c = 1/2. Each factor of K+ decreases in q and each factor of K-
    increases, because the bets lam_i do not depend on q. So the rates that are kept form one
    interval. Its ends are rates that were ruled out. In regions with more than 2^14 rows, all but
    the first 2^13 are bet on in blocks, as in `calibrant.limits.bounded_mean.betting_mean`.

    lam_i = sqrt(2 ln(2/delta) / (N s_{i-1}^2)), where s_{i-1}^2 is a running variance of w (y -
    theta_hat) over the rows before i, started from the largest weight seen so far, so that only c/U
    depends on the scale of U.

    Any bets that use only earlier rows are valid; these are close to the ones that grow capital
    fastest. The weights of later rows, or of row i itself, must not be used: given its weight, the
    mean of Z_i is not zero.

    References
    ----------
    Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B
    86, 1-27.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Partition, Tally
    >>> from calibrant.shift import Evidence, WeightedRows
    >>> rng = np.random.default_rng(0)
    >>> codes, weights = (rng.uniform(size=1000) < 0.5).astype(np.uint8), rng.uniform(0, 2, size=1000)
    >>> rows = WeightedRows(np.zeros(1000, dtype=np.intp), weights, codes, 1)
    >>> tally = Tally.from_data(Partition.fixed_width(1), np.zeros(1000), codes,
    ...     importance_weight=weights)
    >>> betting(Evidence(tally, weight_bound=2.0, rows=rows), 0.1).radius.round(3)
    array([0.034])
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    rows = evidence.rows
    if rows is None:
        rule = "be one that needs counts only, because the rows are not available"
        advice = ("use ", Setting("interval", "empirical-bernstein"))
        raise InvalidTypeError("interval", rule, got="'betting'", advice=advice)
    weights = np.asarray(rows.weights, dtype=np.float64) / evidence.weight_bound
    return weighted_means(
        rows.regions, weights, rows.codes, rows.n_regions, sidak_level(alpha, rows.n_regions)
    )
