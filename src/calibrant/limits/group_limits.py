"""Limits on rates of grouped rows, by bets on the sums of whole groups.

Groups are independent draws from one distribution; rows within a group may depend on each other in
any way. `calibrant.limits.group_design` defines how groups count, and so which rate is covered.
"""

import numpy as np

from calibrant._typing import BoolArray, FloatArray
from calibrant.cells.tally import Tally
from calibrant.cells.unit_sums import UnitSums
from calibrant.limits.bet_limits import bet_limits, exceeds
from calibrant.limits.bet_units import BetUnits, Draws
from calibrant.limits.chernoff import lower_mean
from calibrant.limits.group_design import GroupDesign
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource, fingerprint_of
from calibrant.params.rules import OPEN_UNIT

# candidate bounds
_POINTS = np.geomspace(0.02, 4.0, 160)
_CENTRES = np.geomspace(0.01, 1.0, 60)
# share of a distance's level for the limit on the average weight relative to its bound
_FOR_SHARE = 0.1


def group_limits(tally: Tally, design: GroupDesign, alpha: float) -> Interval:
    """Simultaneous limits for the rate of every region: the range of rates that no bet rules out.

    Parameters
    ----------
    tally : Tally
        Counts of whole groups, which are independent draws from one distribution.
    design : GroupDesign
        How groups count.
    alpha : float in (0, 1)
        Largest probability that any region's interval misses.

    Returns
    -------
    Interval
        Within [0, 1]; [0, 1] for a region without rows.

    Notes
    -----
    With w the weight of a group and y = T / S the share of positives among its rows in the region,
    w (y - q) has mean zero if q is the rate; how rows of a group depend on each other does not
    matter, and group sizes may depend on labels. The groups with rows in a region are independent
    draws, and `calibrant.limits.bet_limits` bets on them in a random order. Given the table of
    groups, all orders are equally likely, so one is drawn for this table.

    Groups with rows in several regions make the regions dependent: alpha is divided by the number
    of regions (Bonferroni). Regions must be fixed before the counted groups are seen. Regions of
    segments without any group set aside are not, and get the limits 0 and 1, which cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.cells.group_counts import GroupCounts
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(np.arange(1000), 10)
    >>> codes = (rng.uniform(size=10_000) < rng.beta(2, 2, size=1000)[groups]).astype(int)
    >>> table = GroupCounts.of(np.zeros(10_000, int), codes, groups)
    >>> tally = Tally(*table.totals(1), groups=table)
    >>> group_limits(tally, GroupDesign(max_size=10), 0.1).radius.round(3)
    array([0.014])
    """
    sums = UnitSums.of(tally, design.counting)
    return shared_limits(sums, design, OPEN_UNIT.check("alpha", alpha))


def shared_limits(sums: UnitSums, design: GroupDesign, alpha: float) -> Interval:
    """Simultaneous limits for the rate of every region, from sums of groups; see `group_limits`."""
    n_shown = max(sums.n_regions - len(design.unproved), 1)
    units = bet_units(sums, design.order)
    found = bet_limits(units, np.full(sums.n_regions, alpha / (2.0 * n_shown)))
    found.lower[[*design.unproved]] = 0.0
    found.upper[[*design.unproved]] = 1.0
    return found


def bet_units(sums: UnitSums, order: int) -> BetUnits:
    """The groups of each region in an order that is drawn for these sums, and for a seed.

    Neither the order of entries nor, unless a rate is 1/2, which label is positive changes it.
    """
    rates = np.nan_to_num(sums.rates)
    seen = fingerprint_of(sums.n_groups, rates * (1.0 - rates))
    source = RandomSource.of(order, "order of bets", rows=seen)
    weight = sums.weight / sums.bound
    is_turned = rates[sums.region] > 0.5 + 1e-9  # beyond rounding
    rarer = np.where(is_turned, 1.0 - sums.rate, sums.rate)
    draws = Draws(sums.region, sums.rate, weight, sums.number)
    draws = draws.take(np.lexsort((rarer, weight.round(9), sums.region)))
    zero = np.zeros(sums.n_regions)
    return BetUnits.of(draws, zero, zero + 1.0, source.generator())


def shown_above(sums: UnitSums, rate: float, alpha: float, order: int) -> BoolArray:
    """Whether the rate of each region is shown to be above `rate`, by its own one-sided bet at
    level `alpha`.

    A region whose rate is `rate` or lower passes with probability at most alpha. Regions may
    overlap: nothing is claimed about several together.
    """
    return exceeds(bet_units(sums, order), rate, alpha)


def group_distance(tally: Tally, design: GroupDesign, alpha: float) -> FloatArray:
    """Simultaneous limits on the Kolmogorov distance between the rows of each region and the
    population.

    With probability at least 1 - alpha, in every region the share of rows below any score, with
    equal row weights, differs by at most this limit from the share in the population, with rows
    weighted by the target. At most 1.

    Notes
    -----
    From each of the N groups of a region, pick one row, each with probability w / (S M), or none
    with the remaining probability. The K picks are independent draws from the population, and K is
    binomial with q = E[w] / M. By the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart, T = K
    sup |F_K - F| exceeds t with probability at most 2 exp(-2 t^2 / K). Given the groups, the mean
    of the picks below a score less K F is W / M times the distance there between the weighted share
    of all rows and F, W the sum of weights. So by Jensen's inequality that distance is at most M /
    W times the mean of T given the groups, and by Markov's inequality the latter exceeds s with
    probability at most

        E (T - a)+ / (s - a) <= E[K exp(-2 a^2 / K)] / (2 a (s - a))
                             <= exp(-4 a^2 / k) N q e^v (1 - q + q e^v)^(N - 1) / (2 a (s - a)),
                             v = 2 a^2 / k^2,

    for any a and k: 1 / K >= 2 / k - K / k^2. The smallest s over fixed grids of a and k increases
    with q, for which Chernoff's limit at a tenth of the level is used. What remains is the
    difference between rows with equal weights and rows with their own weights: at most their total
    variation distance, which the table gives.
    """
    sums = UnitSums.of(tally, design.counting)
    distance = picked_distance(sums, design, alpha)
    rows = sums.weight / sums.row_weight
    total = sums.sums(sums.weight)
    n_rows = np.maximum(sums.sums(rows), 1.0)
    uneven = np.abs(1.0 / n_rows[sums.region] - sums.row_weight / total[sums.region])
    return np.minimum(distance + sums.sums(rows * uneven) / 2.0, 1.0)


def picked_distance(sums: UnitSums, design: GroupDesign, alpha: float) -> FloatArray:
    """Limits as in `group_distance`, for the share of rows in which each row counts by its weight."""
    n_groups = sums.n_groups
    total = sums.sums(sums.weight)
    level = alpha / sums.n_regions
    distance = np.ones(sums.n_regions)
    for region in np.flatnonzero(n_groups):
        n = int(n_groups[region])
        share = total[region] / (sums.bound * n_groups[region])
        most = 1.0 - lower_mean(max(1.0 - share, 0.0), n, _FOR_SHARE * level)
        distance[region] = _picked(n, most, (1.0 - _FOR_SHARE) * level) / (share * n)
    distance[[*design.unproved]] = 1.0
    return np.minimum(distance, 1.0)


def _picked(n: int, share: float, level: float) -> float:
    """A bound that the mean of K sup |F_K - F| exceeds with probability at most `level`, K binomial
    with `n` and `share`.
    """
    points = np.sqrt(n) * _POINTS[:, None]
    centres = n * _CENTRES
    tilt = 2.0 * (points / centres) ** 2
    with np.errstate(over="ignore"):
        moment = np.log(n * share) + tilt + (n - 1) * np.log1p(share * np.expm1(tilt))
        excess = np.exp(moment - 4.0 * points**2 / centres) / (2.0 * points * level)
    return float((points + excess).min())
