"""Limits on rates of grouped rows, by bets on the sums of whole groups.

Groups are independent draws from one distribution; rows within a group may depend on each other in
any way. `calibrant.limits.group_design` defines how groups count, and so which rate is covered.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri_exp

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.cells.group_counts import N_BLOCKS
from calibrant.cells.tally import Tally
from calibrant.cells.unit_sums import UnitSums
from calibrant.limits.bets import ROUNDING, Bets
from calibrant.limits.bounded_mean import lower_mean
from calibrant.limits.group_design import GroupDesign
from calibrant.limits.interval import Interval
from calibrant.params.rules import OPEN_UNIT

# candidate bounds
_POINTS = np.geomspace(0.02, 4.0, 160)
_CENTRES = np.geomspace(0.01, 1.0, 60)
# share of a distance's level for the limit on the average weight relative to its bound
_FOR_SHARE = 0.1
_MOST_STAKED = 0.9  # largest share of the capital that one bet can lose
# share of alpha for the initial limits, by bets that do not depend on the rate; hedged bets start
# there
_BEGIN = 0.05
_PER_WIDTH = 40.0  # grid steps per 1 / sqrt(rows), if no group has more than `_MOST_ROWS`
_MOST_ROWS = 10
_AT_ONCE = 32  # grid rates that are bet against together
_TURNS = np.argsort(
    [*range(0, N_BLOCKS, 2), *range(N_BLOCKS - 1, 0, -2)]
)  # the blocks grow, and then shrink


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
    Z_c(q) = w_c (y_c - q), y = T / S, has mean zero if q is the rate, and lies in [-qM, (1 - q)M];
    how rows of a group depend on each other does not matter, and group sizes may depend on labels.
    The groups with rows in a region are independent draws, in any order that does not depend on
    their rows. Bets are made on 48 blocks of groups one after another. All groups of a block have
    the same bet, so equal groups are one entry: the work grows with the table, not with the rows. A
    hash of a group's label determines its block, not its position in a sorted table: with N = 100
    groups and a rate of 0.05, bets in the order that one fixed hash gives to sorted groups miss
    with probability 0.26 at alpha = 0.1.

    First, 5% of delta is used for the bets of `calibrant.limits.shift.betting`: the stake in a
    block, sqrt(2 ln(2/delta) / (N s^2)), comes from the variance s^2 of the groups in earlier
    blocks, and no bet can lose more than 0.9 of the capital. The rates that are not ruled out form
    an interval.

    Then, 95% of delta is used for bets that depend on the capital so far. If the capital K is a
    share p of the goal and n groups are left, the stake is phi(Phi^-1(p)) / (p s sqrt(n)): in a
    game of many small steps, these bets reach the goal exactly if the normal test at this level
    rejects. They are made against the rates of a grid, which is fixed given the number of groups.
    The lower limit moves up from one rate to the next as long as that one is ruled out. It passes
    the true rate only if the first grid rate that is not below the true rate is ruled out, by bets
    that the rate is larger, which it is not. So the size of the grid costs nothing.

    Groups with rows in several regions make the regions dependent: delta is alpha over the number
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
    n_proved = max(sums.n_regions - len(design.unproved), 1)
    found = limits_of_sums(sums, design.max_size, alpha / n_proved)
    found.lower[[*design.unproved]] = 0.0
    found.upper[[*design.unproved]] = 1.0
    return found


def limits_of_sums(sums: UnitSums, most_rows: float, delta: float) -> Interval:
    """Limits for the rate of each region; each interval misses with probability at most `delta`.

    A group has at most about `most_rows` rows in a region; only the step of the grid depends on it.
    """
    lower = np.zeros(sums.n_regions)
    upper = np.ones(sums.n_regions)
    if not sums.number.size:
        return Interval(lower, upper)
    game = _Game.of(sums)
    goal = float(np.log(2.0 / delta))
    begin = goal - float(np.log(_BEGIN))
    n_groups = game.n_groups
    seen = game.regions[game.first]
    stake = np.sqrt(2.0 * begin / (n_groups[game.regions] * game.variance))
    bets = Bets(game.weight, game.rate, stake, game.first, _MOST_STAKED, game.starts, game.number)
    width = 1.0 / np.sqrt(n_groups[seen])
    lower[seen], upper[seen] = bets.limits(sums.rates[seen], width, width, begin)
    return _sharpened(game, lower, upper, most_rows, goal - float(np.log1p(-_BEGIN)))


def proved_above(sums: UnitSums, rate: float, alpha: float) -> BoolArray:
    """Whether the rate of each region is proved to be above `rate`, by its own one-sided bet at
    level `alpha`.

    A region whose rate is `rate` or lower passes with probability at most alpha. Regions may
    overlap: nothing is claimed about several together.
    """
    if not sums.number.size:
        return np.zeros(sums.n_regions, dtype=bool)
    return _Game.of(sums).hedged(
        np.full((sums.n_regions, 1), rate), np.ones(1), float(-np.log(alpha))
    )[:, 0]


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


@dataclass(frozen=True, slots=True, eq=False)
class _Game:
    """Groups by region and block; equal groups are one entry.

    Attributes
    ----------
    weight, rate, number : arrays
        For each entry: weight over its bound, share of positives, number of groups.
    starts, length : int arrays
        Where each block of a region begins among the entries, and how many entries it has.
    regions, turn : int arrays
        The region of each block, and its position in the order of the bets.
    first : int array
        The first block of each region that has blocks.
    variance, left : float arrays
        The estimate of the variance before a block, and the number of groups left, including the
        block's own.
    n_groups : int array
        Number of groups in each region.
    """

    weight: FloatArray
    rate: FloatArray
    number: IntArray
    starts: IndexArray
    length: IntArray
    regions: IndexArray
    turn: IntArray
    first: IndexArray
    variance: FloatArray
    left: FloatArray
    n_groups: IntArray

    @classmethod
    def of(cls, sums: UnitSums) -> Self:
        turn = _TURNS[sums.block]
        order = np.lexsort((turn, sums.region))
        region = sums.region[order]
        turn = turn[order]
        number = sums.number[order]
        weight = sums.weight[order] / sums.bound
        rate = sums.rate[order]
        starts = np.flatnonzero(np.diff(region * N_BLOCKS + turn, prepend=-1))
        regions = region[starts]
        first = np.flatnonzero(np.diff(regions, prepend=-1))
        length = np.diff(starts, append=order.size)

        def before(values: FloatArray) -> FloatArray:
            """Sums over the groups in earlier blocks of the same region."""
            inside = np.add.reduceat(number * values, starts)
            running = np.cumsum(inside) - inside
            earlier: FloatArray = running - np.repeat(
                running[first], np.diff(first, append=starts.size)
            )
            return np.maximum(earlier, 0.0)

        # start from a rate of 1/2 and its variance, as if one group of the largest weight so far
        # had been seen
        apart = 2.0 * np.cumsum(np.diff(regions, prepend=-1) != 0)
        largest = np.maximum.accumulate(np.maximum.reduceat(weight, starts) + apart) - apart
        largest = np.concatenate([[1.0], largest[:-1]])
        largest[first] = 1.0
        mean = (0.5 * largest + before(weight * rate)) / (largest + before(weight))
        squares = [
            before(np.square(weight) * values) for values in (np.ones(rate.size), rate, rate * rate)
        ]
        variance = np.maximum(squares[2] - 2.0 * mean * squares[1] + mean * mean * squares[0], 0.0)
        seen = before(np.ones(rate.size))
        variance = (0.25 * np.square(largest) + variance) / (1.0 + seen)
        left = sums.n_groups[regions] - seen
        return cls(
            weight,
            rate,
            number,
            starts,
            length,
            regions,
            turn[starts],
            first,
            variance,
            left,
            sums.n_groups,
        )

    def hedged(
        self, rates: FloatArray, side: FloatArray, goal: float, among: BoolArray | bool = True
    ) -> BoolArray:
        """Whether bets that depend on the capital so far ever reach the goal, for each of the rates
        (columns).

        They are made in all regions selected by `among`.
        """
        of_these = np.broadcast_to(among, self.n_groups.shape)[self.regions]
        capital = np.zeros(rates.shape)
        best = np.zeros(rates.shape)
        room = _MOST_STAKED / np.maximum(
            np.where(side > 0, rates, 1.0 - rates), np.finfo(np.float64).tiny
        )
        for turn in range(N_BLOCKS):
            blocks = np.flatnonzero((self.turn == turn) & of_these)
            if not blocks.size:
                continue
            here = self.regions[blocks]
            length = self.length[blocks]
            ends = np.cumsum(length)
            rows = np.repeat(self.starts[blocks] - ends + length, length) + np.arange(ends[-1])
            log_share = np.minimum(capital[here] - goal, -ROUNDING)
            d = ndtri_exp(log_share)
            stake = (
                np.exp(-0.5 * d * d - log_share)
                / np.sqrt(2.0 * np.pi * self.variance * self.left)[blocks, None]
            )
            stake = side * np.where(
                best[here] >= goal + ROUNDING, 0.0, np.minimum(stake, room[here])
            )
            entry = np.repeat(np.arange(blocks.size), length)
            gain = self.weight[rows, None] * (self.rate[rows, None] - rates[here][entry])
            growth = self.number[rows, None] * np.log1p(stake[entry] * gain)
            capital[here] += np.add.reduceat(growth, ends - length)
            best[here] = np.maximum(best[here], capital[here])
        return np.asarray(best >= goal + ROUNDING)


def _sharpened(
    game: _Game, lower: FloatArray, upper: FloatArray, most_rows: float, goal: float
) -> Interval:
    """Move limits inwards over a fixed grid of rates, as long as hedged bets rule out the next
    rate.
    """
    # the square root of a rate is the sine of an angle, because half-widths are about equal at
    # every angle
    step = 1.0 / (_PER_WIDTH * np.sqrt(np.maximum(game.n_groups, 1) * min(most_rows, _MOST_ROWS)))
    place = [np.ceil(np.arcsin(np.sqrt(end)) / step) for end in (lower, 1.0 - upper)]
    ends = [lower.copy(), 1.0 - upper]
    going = np.stack([game.n_groups > 0, game.n_groups > 0])
    side = np.repeat([1.0, -1.0], _AT_ONCE)
    while going.any():
        angles = [
            np.minimum((start[:, None] + np.arange(_AT_ONCE)) * step[:, None], np.pi / 2)
            for start in place
        ]
        shares = [np.square(np.sin(angle)) for angle in angles]
        rates = np.concatenate([shares[0], 1.0 - shares[1]], axis=1)
        lost = game.hedged(rates, side, goal, going[0] | going[1])
        for number, found in enumerate((lost[:, :_AT_ONCE], lost[:, _AT_ONCE:])):
            count = np.where(found.all(axis=1), _AT_ONCE, np.argmin(found, axis=1))
            moved = going[number] & (count > 0)
            last = shares[number][np.arange(count.size), np.maximum(count - 1, 0)]
            ends[number] = np.where(moved, np.maximum(last, ends[number]), ends[number])
            going[number] &= (count == _AT_ONCE) & (last < 1.0)
            place[number] += _AT_ONCE
    return Interval(ends[0], 1.0 - ends[1])
