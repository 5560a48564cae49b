"""The betting engine: limits for the means of independent bounded units, whose number is fixed.

Units of a region have a weight w and a value z, both in [0, 1]; the limits are for mu = E[w z] /
E[w]. All regions, and both sides of each, are columns of one array.

*The bets.* Against a candidate m, with u = w (z - m): K_i = K_{i-1} (1 + lam_i u_i), K_0 = 1, where
the stake 0 <= lam_i <= 0.95 / m is known before unit i. If m = mu, K is a nonnegative martingale, so
it ever reaches G = 1 / tail with probability at most `tail` (Ville). The upper limit is the lower one
of 1 - z.

*The stake.* With r units left, x = K / G = P(N(0, 1) > d), and g = k / sqrt(s r),

    lam = phi(d) / x / sqrt(s r) (1 + g d / 6),

where u^2 = s + k u + noise is the regression of u^2 on u over earlier units. A gambler who must reach
a goal by a deadline stakes phi(d) / x over the standard deviation of what is left (Kulldorff 1993).
The s of the regression is the variance that units would have *if m were the mean*. For units of two
values it is m (1 - m) from the first unit on, whatever was seen, which makes limits narrow for rare
events and nearly independent of the order of the units.

*Blocks.* The stake of a block is fixed before its first unit. For the last blocks the logarithm of
the capital is exact; for earlier ones it is bounded from below by sums of powers. About the mean of
its kind (z < 1/2, or not), 1 + lam u = D (1 + e), and for e >= -c > -1

    log(1 + e) >= e - e^2 / 2 + e^3 / 3 - e^4 / (4 (1 - c)).

Stakes use the bound, so they depend on earlier units alone; if the bound reaches log G, so does K.

*The candidates.* Let t_1 < t_2 < ... be a lattice of means, fixed by n, the pilot, or by first units
whose stake is the same for all m. All m in (t_{j-1}, t_j] play the stakes of t_j. For fixed stakes K
falls in m, so it is at least the one against t_j. The walk begins at a limit from one stake for all m
(Markov, 1% of the tail), passes a cell of the lattice if its end t_j is ruled out, and bisects in the
first cell that it cannot pass, with that cell's stakes. The limit exceeds mu only if K against mu
itself reached its goal: one event, however many candidates there are.

References
----------
Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86,
1-27; Voracek and Orabona (2025), "STaR-Bets: sequential target-recalculating bets for tighter
confidence intervals"; Clerico (2024), "On the optimality of coin-betting for mean estimation", on
why no other e-variables are needed; Kulldorff (1993), "Optimal control of favorable games with a time
limit", SIAM J. Control Optim. 31, 52-69.
"""

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import ndtri_exp

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.kernels import in_threads
from calibrant.limits.bet_units import MOMENTS, PLACE, BetUnits
from calibrant.limits.interval import Interval

_MOST_LOST = 0.95  # largest share of the capital that one bet can lose
_MOST_WON = 2.0  # largest gain of a unit where logarithms are bounded: beyond, the bound is poor
_BEYOND = 0.04  # stakes aim so far beyond the goal in log capital, or they would fade before it
_STEPS = 16  # candidates per standard error
_SHARED = 8  # neighbouring candidates that share an estimate of the variance
_FEWEST_AT_ONCE = 2 * _SHARED  # candidates of a column that are played together; more,
_AT_ONCE = 640  # up to so many of all columns, if few columns are left
_LOOK_FROM = 256  # with so many units and no pilot, the first ones set the step of the lattice
_LOOK_PART = 64  # so many of them: one in this number, at most 64
_START = 0.01  # share of the tail for the limit at which the walk begins
_START_STAKE = 0.9
_BISECTIONS = 4  # inside the last cell
_START_BISECTIONS = 20
_CHUNK = 24  # blocks after which candidates that are ruled out, or hopeless, are dropped
_HOPELESS = 14.0  # log capital that is given up
_COLUMNS = 64  # regions that are walked together
_TINY = 1e-300
_LEAST_MEAN = 1e-12


def bet_limits(units: BetUnits, tail: FloatArray) -> Interval:
    """Lower and upper limits for the mean of each region; each misses with probability at most the
    region's `tail`.

    Assumptions, given which units are in a region: they are independent, E[w (z - mu)] = 0 for each
    of them, their order was drawn independently of them, and the range, the pilot and the tail were
    fixed without them. Weights may depend on values. Limits of different regions may be dependent.

    The observed mean always lies within the limits. Without units they are the range itself.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.cells.entries import Entries
    >>> entries = Entries(np.zeros(300, dtype=int), np.tile([0.2, 0.3, 0.7], 100), n_regions=1)
    >>> zero, one = np.zeros(1), np.ones(1)
    >>> units = BetUnits.of(entries, zero, one, np.random.default_rng(0))
    >>> limits = bet_limits(units, np.array([0.05]))
    >>> limits.lower.round(2), limits.upper.round(2)
    (array([0.38]), array([0.42]))
    """
    n_regions = units.low.size
    if not n_regions:
        return Interval(units.low, units.high)
    parts = [slice(at, at + _COLUMNS) for at in range(0, n_regions, _COLUMNS)]

    def limits_of(part: slice) -> FloatArray:
        with np.errstate(all="ignore"):  # which a thread does not inherit
            of_part = units.part(part)
            walk = _Walk(of_part, np.broadcast_to(tail, n_regions)[part])
            lower, upper = walk.lower_limits().reshape(2, -1)
            mean = walk.observed
            return np.stack([np.minimum(lower, mean), np.maximum(1.0 - upper, mean)])

    shares = (
        np.concatenate(in_threads(limits_of, parts), axis=1)
        if len(parts) != 1
        else limits_of(parts[0])
    )
    width = units.high - units.low
    lower = np.where(shares[0] > 0.0, units.low + width * shares[0], units.low)
    upper = np.where(shares[1] < 1.0, units.low + width * shares[1], units.high)
    return Interval(lower, upper)


def exceeds(units: BetUnits, mean: float, tail: float) -> BoolArray:
    """Whether bets rule out that the mean of each region is `mean` or less.

    A region whose mean is at most `mean` passes with probability at most `tail`; the assumptions are
    those of `bet_limits`. Nothing is claimed about several regions together.
    """
    n_regions = units.low.size
    share = np.clip((mean - units.low) / (units.high - units.low), _LEAST_MEAN, 1.0 - _LEAST_MEAN)
    with np.errstate(all="ignore"):
        walk = _Walk(units, np.full(n_regions, tail / (1.0 - _START)))
        lacks, _ = walk.play(np.arange(n_regions), share, shared=1)
    return np.asarray((lacks <= 0.0) & (walk.n_units[:n_regions] > 0))


def _mirrored(moments: FloatArray) -> FloatArray:
    """Sums of w^p (1 - z)^k, from those of w^p z^k along the first axis."""
    mirrored = np.zeros_like(moments)
    for (p, k), place in PLACE.items():
        for j in range(k + 1):
            mirrored[place] += math.comb(k, j) * (-1.0) ** j * moments[PLACE[p, j]]
    return mirrored


def _sum_of_powers(moments: FloatArray, mean: FloatArray, most: int) -> list[FloatArray]:
    """Sums of u^p = (w (z - mean))^p for p from 1 to `most`, by Horner's rule in the mean."""
    sums = []
    for p in range(1, most + 1):
        total = moments[PLACE[p, 0]] * -mean
        for k in range(1, p):
            total += math.comb(p, k) * moments[PLACE[p, k]]
            total *= -mean
        total += moments[PLACE[p, p]]
        sums.append(total)
    return sums


class _Blocks:
    """Blocks of units, by kind: number, mean of w and of w z, and central sums of powers.

    `central` has sums of (w - mean)^(p - k) (w z - mean)^k in the order of `MOMENTS`; if all weights
    are 1, only those with k = p = 2, 3, 4, because the others are 0.
    """

    def __init__(self, moments: FloatArray, heaviest: FloatArray) -> None:
        self.count = moments[0]
        self.heaviest = heaviest
        n = np.maximum(self.count, 1.0)
        b = self.weight = moments[PLACE[1, 0]] / n
        a = self.product = moments[PLACE[1, 1]] / n
        is_plain = bool((moments[PLACE[2, 0]] == self.count).all())
        pairs = [(p, p) for p in (2, 3, 4)] if is_plain else MOMENTS[3:]
        self.central = np.zeros((len(pairs) + (0 if is_plain else 3), *n.shape))
        for number, (p, k) in enumerate(pairs, 0 if is_plain else 3):
            total = self.central[number]
            for i in range(p - k + 1):
                for j in range(k + 1):
                    factor = math.comb(p - k, i) * math.comb(k, j) * (-b) ** (p - k - i)
                    total += factor * (-a) ** j * moments[PLACE[i + k - j, k - j]]
            if p % 2 == 0 and k in (0, p):
                np.maximum(total, 0.0, out=total)

    def against(self, mean: FloatArray, blocks: slice, columns: IndexArray) -> "_Gains":
        """The gains of bets on some blocks against means, one for each of the columns."""

        def of(values: FloatArray) -> FloatArray:
            return np.asarray(values[..., blocks, columns])

        central = of(self.central)
        powers = central if len(central) == 3 else _sum_of_powers(central, mean, 4)[1:]
        heaviest = of(self.heaviest)
        worst = np.stack([heaviest[0] * mean, heaviest[1] * np.maximum(mean - 0.5, 0.0)])
        return _Gains(of(self.count), of(self.product) - mean * of(self.weight), powers, worst)


class _Gains:
    """Lower bounds on the sums of log(1 + stake u) over blocks."""

    def __init__(
        self, count: FloatArray, mean: FloatArray, powers: Iterable[FloatArray], worst: FloatArray
    ) -> None:
        self.count = count
        self.mean = mean
        second, third, fourth = powers
        self.terms = second * -0.5, third / 3.0, fourth * -0.25
        self.worst = worst

    def of(self, stake: FloatArray, block: int | slice = slice(None)) -> FloatArray:
        """The bound for one block, or for all."""
        centre = 1.0 + stake * self.mean[:, block]
        t = stake / centre
        second, third, fourth = (term[:, block] for term in self.terms)
        rest = fourth * (t * centre / (1.0 - stake * self.worst[:, block]))
        rest = t * t * (second + t * (third + rest))
        return np.asarray(np.add.reduce(self.count[:, block] * np.log(centre) + rest, axis=0))


class _Walk:
    """Lower limits of all columns: the regions, then the regions with 1 - z in place of z."""

    def __init__(self, units: BetUnits, tail: FloatArray) -> None:
        moments = np.concatenate([units.moments, _mirrored(units.moments[:, ::-1])], axis=-1)
        heaviest = np.concatenate([units.heaviest, units.heaviest[::-1]], axis=-1)
        pilot = np.concatenate([units.pilot, _mirrored(units.pilot)], axis=-1)
        self.z = np.concatenate([units.z, 1.0 - units.z], axis=-1)
        self.w = np.concatenate([units.w, units.w], axis=-1)
        self.ends = units.ends
        self.n_late = units.ends.size - 1
        self.moments = moments
        self.heaviest = heaviest
        early = slice(self.n_late, None)
        self.early = _Blocks(moments[:, :, early], heaviest[:, early])
        tail = np.tile(tail, 2)
        sums = moments.sum(axis=1)
        n = self.n_units = sums[0].sum(axis=0)
        self.first_block = len(sums[0]) - 1 - (sums[0, ::-1] > 0.0).argmax(axis=0)
        self.rounding = 1e-9 + 1e-15 * n  # of log capital, which is a sum of many terms
        self.goal = -np.log((1.0 - _START) * tail) + self.rounding
        before = np.zeros_like(sums)  # sums over earlier blocks, which are played from the last on
        before[:, :-1] = np.cumsum(sums[:, :0:-1], axis=1)[:, ::-1]
        self.left = np.maximum(n - before[0], 1.0)
        # units that set the step of the lattice have one stake for all means
        first = before[0] < np.minimum(n / _LOOK_PART, 64.0)
        self.looks = (n >= _LOOK_FROM) & (pilot[0] == 0.0) & first
        seen = pilot + np.where(self.looks, sums, 0.0).sum(axis=1)
        self.before = before + pilot[:, None]
        # the variance over that of two values with the same mean, with one unit that has half of it
        weight = np.where(seen[0] > 0.0, seen[PLACE[1, 0]] / np.maximum(seen[0], 1.0), 1.0)
        mean = (seen[PLACE[1, 1]] + 0.5 * weight) / np.maximum(seen[PLACE[1, 0]] + weight, _TINY)
        of_two = np.maximum(weight**2 * mean * (1.0 - mean), 1e-12)
        inner = seen[PLACE[2, 1]] - seen[PLACE[2, 2]]  # sums of w^2 z (1 - z): 0 for two values
        spread = seen[PLACE[2, 0]] * mean * (1.0 - mean) - inner
        ratio = (spread / of_two + 0.5) / (seen[0] + 1.0)
        self.relative = np.clip(ratio, 0.3, 1.0)
        self.step = np.sqrt(np.clip(ratio, 5e-4, 4.0) / np.maximum(n, 1.0)) / (2.0 * _STEPS)
        self.start_goal = -np.log(_START * tail) + self.rounding
        variance = np.clip(ratio * of_two, 1e-9, 1.0)
        stake = np.sqrt(2.0 * self.start_goal / np.maximum(n * variance, 1.0))
        self.start_stake = np.minimum(stake, _START_STAKE)
        hazard = _HAZARD[_rank(self.goal)]
        self.look_stake = np.minimum(2.0 * hazard / np.sqrt(np.maximum(n, 1.0)), 0.5)

    @property
    def observed(self) -> FloatArray:
        """The observed mean of each region; 1/2 without units."""
        sums = self.moments.sum(axis=(1, 2))[:, : self.n_units.size // 2]
        weight = sums[PLACE[1, 0]]
        return np.where(weight > 0.0, sums[PLACE[1, 1]] / np.where(weight > 0.0, weight, 1.0), 0.5)

    def start(self) -> FloatArray:
        """A limit from one stake for all units and all means."""
        sums = np.where(self.looks, 0.0, self.moments).sum(axis=2, keepdims=True)
        whole = _Blocks(sums, self.heaviest.max(axis=1, keepdims=True))
        every = np.arange(self.n_units.size)
        low = np.zeros(every.size)
        high = np.ones(every.size)
        for _ in range(_START_BISECTIONS):
            mean = (low + high) / 2.0
            gain = whole.against(mean, slice(0, 1), every).of(self.start_stake, 0)
            is_out = gain >= self.start_goal
            low = np.where(is_out, mean, low)
            high = np.where(is_out, high, mean)
        return low

    def lower_limits(self) -> FloatArray:
        """The lower limit of each column."""
        start = self.start()
        limit = start.copy()
        number = np.floor(np.arcsin(np.sqrt(start)) / self.step / _SHARED) * _SHARED
        todo = np.flatnonzero(self.n_units > 0)
        while todo.size:
            at_once = max(_FEWEST_AT_ONCE, _AT_ONCE // todo.size // _SHARED * _SHARED)
            place = number[todo, None] + np.arange(1, at_once + 1)
            angle = np.minimum(place * self.step[todo, None], math.pi / 2.0)
            mean = np.clip(np.sin(angle) ** 2, _LEAST_MEAN, 1.0 - _LEAST_MEAN)
            lacks, stakes = self.play(np.repeat(todo, at_once), mean.ravel(), _SHARED)
            is_out = (lacks.reshape(mean.shape) <= 0.0) | (mean <= start[todo, None])
            is_out &= mean < 1.0 - 2.0 * _LEAST_MEAN
            n_out = np.where(is_out.all(axis=1), at_once, is_out.argmin(axis=1))
            passed = np.flatnonzero(n_out > 0)
            reached = mean[passed, n_out[passed] - 1]
            limit[todo[passed]] = np.maximum(limit[todo[passed]], reached)
            stopped = np.flatnonzero(n_out < at_once)
            here = todo[stopped]
            end = mean[stopped, n_out[stopped]]
            chosen = stakes[:, stopped * at_once + n_out[stopped]]
            limit[here] = self.refined(here, limit[here], end, chosen)
            number[todo] += at_once
            todo = todo[n_out == at_once]
        return limit

    def play(
        self, column: IndexArray, mean: FloatArray, shared: int
    ) -> tuple[FloatArray, FloatArray]:
        """Bet against a mean of each column; return what the log capital lacks in the end, and all
        stakes.

        `shared` neighbours, of one column each, share the estimates of the last of them.
        """
        some = slice(shared - 1, None, shared)
        n_blocks = len(self.left)
        begin = int(self.first_block[column].max(initial=0)) + 1
        paces, skews = self.paces(column[some], mean[some], begin)
        lacks = self.goal[column]
        hopeless = lacks + _HOPELESS
        stakes = np.zeros((n_blocks, mean.size))
        n_late = self.n_late
        for stop in (*range(n_blocks, n_late, -_CHUNK), *range(n_late, 0, -_CHUNK)):
            is_early = stop > n_late
            blocks = slice(max(stop - _CHUNK, n_late if is_early else 0), stop)
            has_begun = self.first_block[column] >= blocks.start
            active = np.flatnonzero(has_begun & (lacks > 0.0) & (lacks < hopeless))
            if not active.size:
                continue
            of = column[active]
            against = mean[active]
            short = lacks[active]
            pace = paces[blocks, active // shared]
            skew = skews[blocks, active // shared]
            most = _MOST_LOST / against
            if is_early:
                most = np.minimum(most, _MOST_WON / (1.0 - against))
                places = slice(blocks.start - n_late, blocks.stop - n_late)
                gains = self.early.against(against, places, of)
            else:
                first = self.ends[blocks.start]
                rows = slice(first, self.ends[stop])
                won = self.z[rows].take(of, axis=1)
                won -= against
                won *= self.w[rows].take(of, axis=1)
            for block in range(min(stop, begin) - 1, blocks.start - 1, -1):
                number = block - blocks.start
                stake = _stake(short, pace[number], skew[number], most)
                looks = self.looks[block]
                if looks.any():
                    stake = np.where(looks[of], self.look_stake[of], stake)
                stakes[block, active] = stake
                if is_early:
                    short = short - gains.of(stake, number)
                else:
                    units = slice(self.ends[block] - first, self.ends[block + 1] - first)
                    short = short - np.add.reduce(np.log1p(won[units] * stake), axis=0)
            lacks[active] = short
        return lacks, stakes

    def paces(
        self, column: IndexArray, mean: FloatArray, n_blocks: int
    ) -> tuple[FloatArray, FloatArray]:
        """1 / sqrt(s r) and g / 6 before each of the last blocks, from the units before it and one
        more, which takes the values 0 and 1.
        """
        moments = self.before[:, :n_blocks, column]
        of_two = mean * (1.0 - mean)
        prior = self.relative[column] * of_two
        scale = 1.0 / (1.0 + moments[0])
        first, second, third = _sum_of_powers(moments, mean, 3)
        w2 = scale * (1.0 + moments[PLACE[2, 0]])
        w3 = scale * (1.0 + moments[PLACE[3, 0]])
        e1 = scale * first
        e2 = scale * (w2 * prior + second)
        e3 = scale * (w3 * prior * (1.0 - 2.0 * mean) + third)
        k = (e3 - e1 * e2) / np.maximum(e2 - e1 * e1, _TINY)
        s = np.maximum(np.minimum(np.maximum(e2 - k * e1, 0.25 * e2), w2 * of_two), _TINY)
        pace = 1.0 / np.sqrt(s * self.left[:n_blocks, column])
        return pace, k * pace / 6.0

    def refined(
        self, column: IndexArray, low: FloatArray, high: FloatArray, stakes: FloatArray
    ) -> FloatArray:
        """The largest mean from low, which is ruled out, to high that these stakes rule out."""
        n_late = self.n_late
        of_unit = np.repeat(stakes[:n_late], np.diff(self.ends), axis=0) * self.w[:, column]
        z = self.z[:, column]
        every = slice(None)
        for _ in range(_BISECTIONS):
            mean = (low + high) / 2.0
            gain = np.log1p(of_unit * (z - mean)).sum(axis=0)
            gain += self.early.against(mean, every, column).of(stakes[n_late:]).sum(axis=0)
            is_out = gain >= self.goal[column]
            low = np.where(is_out, mean, low)
            high = np.where(is_out, high, mean)
        return low


def _table() -> tuple[int, FloatArray, FloatArray]:
    """phi(d) / x and d for x = exp(-y) = P(N(0, 1) > d), by the leading bits of y: fast, and precise
    enough for stakes.
    """
    first = int(np.float64(2.0**-20).view(np.int64) >> 44)
    last = int(np.float64(2.0**9).view(np.int64) >> 44)
    y = ((np.arange(first, last) << 44) + (1 << 43)).view(np.float64)
    d = -ndtri_exp(-y)
    return first, np.exp(-0.5 * d * d + y - 0.5 * math.log(2.0 * math.pi)), d


_FIRST, _HAZARD, _DEVIATE = _table()


def _rank(lacks: FloatArray) -> IndexArray:
    """The place in the table of a capital that lacks so much of its goal."""
    return np.asarray((lacks.view(np.int64) >> 44) - _FIRST)


def _stake(lacks: FloatArray, pace: FloatArray, skew: FloatArray, most: FloatArray) -> FloatArray:
    """The stake of a capital that lacks so much of its goal; 0 from the goal on."""
    place = _rank(np.minimum(np.maximum(lacks, 0.0) + _BEYOND, 500.0))
    stake = _DEVIATE[place]
    stake *= skew
    stake += 1.0
    np.maximum(stake, 0.3, out=stake)
    np.minimum(stake, 3.0, out=stake)
    stake *= _HAZARD[place]
    stake *= pace
    np.minimum(stake, most, out=stake)
    stake *= lacks > 0.0
    return stake
