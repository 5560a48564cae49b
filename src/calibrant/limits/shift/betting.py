"""Betting: the narrowest interval under covariate shift; it needs individual rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.errors import InvalidTypeError
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.error_budget import sidak_level
from calibrant.limits.interval import Interval
from calibrant.limits.shift.evidence import Evidence
from calibrant.params.random import RandomSource
from calibrant.params.rules import OPEN_UNIT
from calibrant.text.sentences import Setting

THEOREM = "betting on w (y - q) (Waudby-Smith and Ramdas 2024), at the Sidak level"


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
    A gambler who believes that the target rate exceeds q bets on w_i (y_i - q), which has mean zero
    if q is the target rate; `calibrant.limits.bet_limits` has the bets, on weights over U. Each
    region gets the Sidak level, because rows of different regions are independent.

    The weights of later rows, or of row i itself, must not determine a bet: given its weight, the
    mean of w_i (y_i - q) is not zero.

    References
    ----------
    Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B
    86, 1-27.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Partition, Tally
    >>> from calibrant.cells.entries import Entries
    >>> from calibrant.shift import Evidence
    >>> rng = np.random.default_rng(0)
    >>> codes, weights = (rng.uniform(size=1000) < 0.5).astype(float), rng.uniform(0, 2, size=1000)
    >>> rows = Entries(np.zeros(1000, dtype=np.intp), codes, n_regions=1, weight=weights)
    >>> tally = Tally.from_data(Partition.fixed_width(1), np.zeros(1000), codes,
    ...     importance_weight=weights)
    >>> betting(Evidence(tally, weight_bound=2.0, rows=rows), 0.1).radius.round(3)
    array([0.03])
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    rows = evidence.rows
    if rows is None:
        rule = "be one that needs counts only, because the rows are not available"
        advice = ("use ", Setting("interval", "empirical-bernstein"))
        raise InvalidTypeError("interval", rule, got="'betting'", advice=advice)
    used = replace(rows, bound=evidence.weight_bound).take(rows.weights > 0.0)
    source = RandomSource.of(0, "order of bets")  # of rows that are in random order already
    zero = np.zeros(rows.n_regions)
    units = BetUnits.of(used, zero, zero + 1.0, source.generator())
    return bet_limits(units, zero + sidak_level(alpha, rows.n_regions) / 2.0)
