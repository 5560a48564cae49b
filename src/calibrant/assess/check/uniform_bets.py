"""Bets against uniform p-values: if the rows are i.i.d., a gambler cannot win on average.

A bet multiplies the capital by a nonnegative factor with mean 1 under the null, given the earlier
p-values. So the capital is a nonnegative martingale that starts at 1, and so is an average of such
capitals. By Ville's inequality it ever reaches 1 / alpha with probability at most alpha.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from scipy.special import logsumexp

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray

MOST_LOOKS = 1_000
Bet: TypeAlias = Callable[[slice], FloatArray]
"""The logarithms of a bet's factors, for some of the rows."""

_BLOCK = 1 << 15  # rows whose factors fit in the processor's cache
_SIZES = 0.025 * 2.0 ** np.arange(7)
_BOTH = np.concatenate([-_SIZES[::-1], _SIZES])
_TILTS = (-0.9, -0.3, -0.1, -0.02, 0.02, 0.1, 0.3, 0.9)
_SWITCHES = (4.0, 32.0)  # expected switches over all rows, for two gamblers; a third never switches
_WINDOWS = (1, 3, 10)  # no longer windows, which would also detect drift
_NEAR = (0.002, 0.02)


def look_ends(n_rows: int) -> IntArray:
    """The numbers of rows after which the capital is evaluated: every row, or a thousand of them."""
    return np.unique(np.linspace(0, n_rows, min(n_rows, MOST_LOOKS) + 1).astype(np.int64))[1:]


def _gains(bets: Iterable[Bet], ends: IntArray) -> FloatArray:
    """The gain in log capital of each bet at each look; the first bet keeps its capital."""
    chosen = list(bets)
    gains = np.zeros((len(chosen) + 1, len(ends)))
    starts = np.concatenate(([0], ends[:-1]))
    # blocks of whole looks
    block = np.unique(starts // _BLOCK, return_index=True)[1].tolist()
    for first, last in pairwise([*block, len(ends)]):
        begin = int(starts[first])
        rows = slice(begin, int(ends[last - 1]))
        at = starts[first:last] - begin
        for number, bet in enumerate(chosen, start=1):
            gains[number, first:last] = np.add.reduceat(bet(rows), at)
    return gains


def capital(bets: Iterable[Bet], ends: IntArray, *, switching: bool) -> FloatArray:
    """Logarithm of the mean capital of all bets at each look.

    One additional bet keeps its capital. With switching, a share of the capital is redistributed
    over all bets after each look, so that a gambler can change strategy. This is the fixed share of
    Herbster and Warmuth (1998); the jumpers of Vovk et al. (2021) are a special case.
    """
    gains = _gains(bets, ends)
    steady = logsumexp(np.cumsum(gains, axis=1), axis=0) - np.log(len(gains))
    if not switching:
        return np.asarray(steady)
    best = gains.max(axis=0)
    rates = np.minimum(np.array(_SWITCHES) / len(ends), 1.0)[:, None]
    totals = _totals(np.exp(gains - best).T.copy(), rates)
    paths = [steady, *np.cumsum(best[:, None] + np.log(totals), axis=0).T]
    return np.asarray(np.logaddexp.reduce(paths) - np.log(len(paths)))


def _totals(factors: FloatArray, rates: FloatArray) -> FloatArray:
    """The factor by which the capital of each gambler who switches is multiplied at each look.

    None is 0: after each look every bet has a share again, and the factor of the best bet is 1.
    """
    n_looks, n_bets = factors.shape
    shares = np.full((len(rates), n_bets), 1.0 / n_bets)
    totals = np.zeros((n_looks, len(rates)))
    kept = 1.0 - rates
    spread = rates / n_bets
    for look, factor in enumerate(factors):
        shares *= factor
        total = np.add.reduce(shares, axis=1, keepdims=True)
        totals[look] = total[:, 0]
        shares *= kept / total
        shares += spread
    return totals


def drift_of_ranks(p_values: FloatArray) -> Iterator[Bet]:
    """Bets that later values are larger or smaller than earlier ones, or more or less extreme."""
    for centred in (p_values - 0.5, np.abs(2.0 * p_values - 1.0) - 0.5):
        for size in _BOTH:
            yield partial(_staked, centred, size, None)


def _staked(centred: FloatArray, size: float, recent: "_Recent | None", rows: slice) -> FloatArray:
    """A bet that values lie above the middle, or that they are similar to recent ones."""
    stake = size * centred[rows]
    if recent is not None:
        stake *= recent.before(rows)
    return np.log1p(stake, out=stake)


def runs_of_ranks(p_values: FloatArray) -> Iterator[Bet]:
    """Bets that a value is similar, or dissimilar, to those just before it.

    Also bets that it is nearly equal to the last one.
    """
    centred = p_values - 0.5
    for recent in _recent(centred, np.broadcast_to(1.0 / 12.0, p_values.size)):
        for size in _TILTS:
            yield partial(_staked, centred, size, recent)
    for width in _NEAR:
        for stake in (0.05, 0.5):
            yield partial(_near, p_values, width, stake)


def _near(p_values: FloatArray, width: float, stake: float, rows: slice) -> FloatArray:
    """A bet that a value is nearly equal to the last one."""
    own = p_values[rows]
    last = np.append(p_values[rows.start - 1] if rows.start else 0.5, own[:-1])
    low = np.maximum(last - width, 0.0)
    high = np.minimum(last + width, 1.0)
    inside = (own > low) & (own < high)
    return np.asarray(np.log(1.0 - stake + stake * inside / (high - low)))


def drift_of_labels(p_values: FloatArray, rates: FloatArray, bins: IndexArray) -> Iterator[Bet]:
    """Bets that the odds of a positive label have changed equally in all bins, or along a slope
    over the bins.

    A p-value below the overall rate of its bin stands for a positive label: it has exactly that
    probability.
    """
    slope = np.linspace(-1.0, 1.0, rates.size) if rates.size > 1 else np.zeros(1)
    kind = 2 * bins + (p_values < rates[bins])
    for direction in (np.ones(rates.size), slope):
        for size in _BOTH:
            by_bin = size * direction
            expected = np.log1p(rates * np.expm1(by_bin))
            of_kind = np.column_stack([-expected, by_bin - expected]).ravel()
            yield partial(_of_kinds, of_kind, kind)


def _of_kinds(of_kind: FloatArray, kind: IndexArray, rows: slice) -> FloatArray:
    """A bet on the label in each bin."""
    return np.asarray(of_kind[kind[rows]])


def runs_of_labels(p_values: FloatArray, rates: FloatArray, bins: IndexArray) -> Iterator[Bet]:
    """Bets that the odds of a positive label are higher, or lower, after positive labels."""
    rate = rates[bins]
    hit = p_values < rate
    for recent in _recent(hit - rate, rate * (1.0 - rate)):
        for size in _TILTS:
            yield partial(_tilted, recent, rate, hit, size)


def _tilted(
    recent: "_Recent", rate: FloatArray, hit: BoolArray, size: float, rows: slice
) -> FloatArray:
    """A bet that the odds of a positive label are multiplied by a factor."""
    tilt = size * recent.before(rows)
    expected = np.expm1(tilt)
    expected *= rate[rows]
    np.log1p(expected, out=expected)
    tilt *= hit[rows]
    tilt -= expected
    return tilt


def _recent(residuals: FloatArray, variances: FloatArray) -> Iterator["_Recent"]:
    """For each window, the sums of the last residuals."""
    sums, spread = np.zeros((2, residuals.size + 1))
    np.cumsum(residuals, out=sums[1:])
    np.cumsum(variances, out=spread[1:])
    del residuals, variances  # which would stay in memory for all bets
    for window in _WINDOWS:
        yield _Recent(sums, spread, window)


@dataclass(slots=True, eq=False)
class _Recent:
    """Before each row, the sum of the last residuals in units of its standard deviation, clipped to
    2.

    It is computed for some rows at a time; the last ones are kept, because many bets need the same.

    Attributes
    ----------
    sums, spread : float arrays of shape (n + 1,)
        Cumulative sums of residuals and of their variances, which begin with 0.
    window : int
        The number of residuals.
    """

    sums: FloatArray
    spread: FloatArray
    window: int
    _rows: slice | None = None
    _found: FloatArray = field(default_factory=lambda: np.empty(0))

    def before(self, rows: slice) -> FloatArray:
        """The sums before these rows."""
        if rows != self._rows:
            deviation = self._over(self.spread, rows)
            np.maximum(deviation, 1e-12, out=deviation)
            np.sqrt(deviation, out=deviation)
            found = self._over(self.sums, rows)
            found /= deviation
            self._found = np.clip(found, -2.0, 2.0, out=found)
            self._rows = rows
        return self._found

    def _over(self, sums: FloatArray, rows: slice) -> FloatArray:
        """From cumulative sums, the sum of the last numbers before each of these rows."""
        begin, end, _ = rows.indices(sums.size - 1)
        found = sums[begin:end].copy()
        first = max(begin, self.window)
        found[first - begin :] -= sums[first - self.window : max(end - self.window, 0)]
        return found
