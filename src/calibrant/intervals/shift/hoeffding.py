"""Hoeffding's bound on the self-normalised weighted rate: one line, from the sums of w and wy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant._params import check_open_unit
from calibrant.intervals.base import Interval
from calibrant.intervals.shift.base import around, check_weight_bound, mean_weights, weighted_rates

if TYPE_CHECKING:
    from calibrant.tally import Tally


def hoeffding(tally: Tally, alpha: float, *, weight_bound: float) -> Interval:
    """Hoeffding's limits for the target rate of every region at once, fully empirical.

    Parameters
    ----------
    tally : Tally
        A tally with importance weights; the rows are i.i.d. and the regions were not chosen by looking at the labels.
    alpha : float in (0, 1)
        The probability with which some region's interval may miss its target rate.
    weight_bound : float
        U, which no weight can exceed.

    Returns
    -------
    Interval
        pi-check +- radius, within [0, 1]; [0, 1] for a region without weight.

    Notes
    -----
    The radius is (U / r) sqrt(ln(2B/alpha) / (2N)), r the mean weight of the region's rows. Proof: Z = w (y - theta)
    has mean zero and lies in [-U theta, U (1 - theta)], a range of U, so Hoeffding bounds the mean of Z, which equals
    r (pi-check - theta). Unlike `thm:weighted_cov_shift_estimator` this asks for no lower bound on the weights and no
    least number of rows, and every term is observed.

    References
    ----------
    Hoeffding (1963), "Probability inequalities for sums of bounded random variables", JASA 58, 13-30.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Partition, Tally
    >>> bins = Partition.fixed_width(1)
    >>> tally = Tally.from_data(bins, np.full(100, 0.5), np.arange(100) % 2, importance_weight=np.ones(100))
    >>> hoeffding(tally, 0.1, weight_bound=1.0).radius.round(4)
    array([0.1224])
    """
    alpha = check_open_unit("alpha", alpha)
    bound = check_weight_bound(tally, weight_bound)
    log_term = np.log(2.0 * tally.n_regions) - np.log(alpha)
    mean = mean_weights(tally)
    deviation = bound * np.sqrt(log_term / (2.0 * np.maximum(tally.counts, 1)))
    radius = np.full(tally.n_regions, np.nan)
    np.divide(deviation, mean, out=radius, where=mean > deviation)  # a larger radius says nothing, and may overflow
    return around(weighted_rates(tally), radius)
