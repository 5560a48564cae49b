"""The paper's main theorem under covariate shift, with the constant it leaves out, and its conditions checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant._params import check_open_unit, check_real
from calibrant.errors import InvalidValueError
from calibrant.intervals.base import Interval
from calibrant.intervals.shift.base import around, check_weight_bound, weight_sums, weighted_rates

if TYPE_CHECKING:
    from calibrant.tally import Tally

CONSTANT = 9.0
"""The c of `thm:weighted_cov_shift_estimator`, in its bound and in its condition; see the Notes of `paper`."""


def paper(tally: Tally, alpha: float, *, weight_bound: float, weight_floor: float) -> Interval:
    """The paper's limits for every region at once, as `thm:weighted_cov_shift_estimator` states them.

    Offered for comparison. The bound is vacuous unless the weights stay well away from zero: in the paper's own example
    their infimum is 0, and the bound is infinite. `why_vacuous` says which condition fails.

    Parameters
    ----------
    tally : Tally
        A tally with importance weights; the rows are i.i.d. and the regions were not chosen by looking at the labels.
    alpha : float in (0, 1)
        The probability with which some region's interval may miss its target rate.
    weight_bound, weight_floor : float
        U and L: all weights lie in [L, U], and E[w] = 1 lies there too.

    Returns
    -------
    Interval
        pi-check +- c (U/L)^2 sqrt(B ln(6B/alpha) / (2n)), c = 9, within [0, 1]; [0, 1] where a condition fails.

    Notes
    -----
    The paper says "for an explicit universal constant c" and never gives it. c = 9 serves in both places. Write
    l = ln(6B/alpha) and let n >= 9 (U/L)^2 B l^2.

    1. Regions of probability at least 1/(2B) hold N >= n/(4B) rows each, except with probability B exp(-n/(16B)) by
       Chernoff's bound, which is at most alpha/3 as 9 l^2 >= 16 l. (The paper's step 1, by Hoeffding, would need
       n >= 8 B^2 l, which its condition does not give.) Here the counts are at hand, so N >= n/(4B) is checked instead.
    2. By Hoeffding the mean weight is within e = U sqrt(l / (2N)) <= U sqrt(2 B l / n) of r = E[w | b], and pi-hat
       within e / r of theta, each except with probability alpha/3. (The paper's step 4 drops the factor m = 1/r.)
    3. pi-check - pi-hat = pi-check (r - mean) / r, at most e / r, and r >= L: together at most
       2 e / L <= 4 (U/L) sqrt(B l / (2n)), within 9 (U/L)^2 sqrt(B l / (2n)).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Partition, Tally
    >>> bins = Partition.fixed_width(1)
    >>> tally = Tally.from_data(bins, np.full(9000, 0.5), np.arange(9000) % 2, importance_weight=np.ones(9000))
    >>> paper(tally, 0.1, weight_bound=1.0, weight_floor=1.0).radius.round(3)
    array([0.136])
    """
    if why_vacuous(tally, alpha, weight_bound=weight_bound, weight_floor=weight_floor) is not None:
        return Interval(np.zeros(tally.n_regions), np.ones(tally.n_regions))
    return around(weighted_rates(tally), np.full(tally.n_regions, _radius(tally, alpha, weight_bound, weight_floor)))


def why_vacuous(tally: Tally, alpha: float, *, weight_bound: float, weight_floor: float) -> str | None:
    """Return, in words, why the theorem says nothing about these data; None where it says something.

    >>> import numpy as np
    >>> from calibrant import Partition, Tally
    >>> tally = Tally.from_data(Partition.fixed_width(1), [0.5, 0.5], [0, 1], importance_weight=[0.5, 1.5])
    >>> why_vacuous(tally, 0.1, weight_bound=2.0, weight_floor=0.0)
    'vacuous: the weights have no lower bound above 0, so (U/L)^2 is infinite'
    """
    alpha = check_open_unit("alpha", alpha)
    bound, floor = check_weight_bound(tally, weight_bound), _check_floor(tally, weight_floor, weight_bound)
    if floor == 0.0:
        return "vacuous: the weights have no lower bound above 0, so (U/L)^2 is infinite"
    n_rows, n_regions = int(tally.counts.sum()), tally.n_regions
    log_term = np.log(6.0 * n_regions / alpha)
    needed = CONSTANT * (bound / floor) ** 2 * n_regions * log_term**2
    if n_rows < needed:
        return f"vacuous: the theorem needs at least {np.ceil(needed):,.0f} rows; got {n_rows:,}"
    fewest = int(tally.counts.min())
    if fewest < n_rows / (4 * n_regions):
        return (
            "vacuous: the theorem is about bins of nearly equal mass, each with at least n/(4B) = "
            f"{n_rows / (4 * n_regions):,.0f} rows; got one with {fewest:,}"
        )
    radius = _radius(tally, alpha, bound, floor)
    return None if radius < 1.0 else f"vacuous: the half-width is {radius:.3g}, and rates lie between 0 and 1"


def _radius(tally: Tally, alpha: float, bound: float, floor: float) -> float:
    log_term = np.log(6.0 * tally.n_regions / alpha)
    return float(
        CONSTANT * (bound / floor) ** 2 * np.sqrt(tally.n_regions * log_term / (2.0 * float(tally.counts.sum())))
    )


def _check_floor(tally: Tally, weight_floor: float, weight_bound: float) -> float:
    rule = "a number >= 0 that no importance weight falls below"
    floor = check_real("weight_floor", weight_floor, rule=rule)
    smallest = float(weight_sums(tally).smallest.min())
    if not 0.0 <= floor <= min(smallest, weight_bound):
        raise InvalidValueError("weight_floor", f"be {rule}", got=f"{floor:g}, and a weight of {smallest:g}")
    return floor
