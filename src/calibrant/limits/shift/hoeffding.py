"""Hoeffding's bound on the self-normalised weighted rate, in closed form from the sums of w and wy."""

from __future__ import annotations

import numpy as np

from calibrant.limits.interval import Interval, around
from calibrant.limits.shift.evidence import Evidence, weighted_rates
from calibrant.params.rules import OPEN_UNIT


def hoeffding(evidence: Evidence, alpha: float) -> Interval:
    """Hoeffding's limits on the target rate of every region simultaneously, fully empirical.

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
        pi-check +- radius, within [0, 1]; [0, 1] for a region without weight.

    Notes
    -----
    The radius is (U / r) sqrt(ln(2B/alpha) / (2N)), where r is the mean weight of the region's
    rows. Proof: Z = w (y - theta) has mean zero and lies in [-U theta, U (1 - theta)], a range of
    U, so Hoeffding bounds the mean of Z, which equals r (pi-check - theta). Unlike Theorem 7 of
    Gupta, Podkopaev and Ramdas (2020), this requires no lower bound on the weights and no minimum
    number of rows, and every term is observed.

    References
    ----------
    Hoeffding (1963), "Probability inequalities for sums of bounded random variables", JASA 58,
    13-30.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Partition, Tally
    >>> from calibrant.shift import Evidence
    >>> bins = Partition.fixed_width(1)
    >>> tally = Tally.from_data(bins, np.full(100, 0.5), np.arange(100) % 2,
    ...     importance_weight=np.ones(100))
    >>> hoeffding(Evidence(tally, weight_bound=1.0), 0.1).radius.round(4)
    array([0.1224])
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    tally = evidence.tally
    bound = evidence.weight_bound
    log_term = np.log(2.0 * tally.n_regions) - np.log(alpha)
    mean = evidence.mean_weights
    deviation = bound * np.sqrt(log_term / (2.0 * np.maximum(tally.counts, 1)))
    radius = np.full(tally.n_regions, np.nan)
    np.divide(
        deviation, mean, out=radius, where=mean > deviation
    )  # a larger radius says nothing, and may overflow
    return around(weighted_rates(tally), radius)
