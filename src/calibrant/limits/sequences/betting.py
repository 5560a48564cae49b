"""Hedged betting: against every rate, one gambler bets that it is too low and another that it is
too high.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.kernels import Implementation, uses_numba
from calibrant.limits.interval import Interval
from calibrant.limits.sequences.sequence import NUMBA_LABELS, Sequence
from calibrant.params.declared_state import Resumed, ResumesEach
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import Number
from calibrant.params.state_kinds import Constant, Numbers, OneCount

_GRID_SIZE = 1000
_LARGEST_BET = 0.5  # share of the capital at risk in one bet
_BLOCK = 128  # labels processed together


def rate_grid(size: int = _GRID_SIZE) -> FloatArray:
    """Candidate rates: denser towards 0 and 1, where limits are narrower."""
    return np.asarray(np.sin(np.linspace(0.0, np.pi / 2, size + 1)) ** 2)


_GRID = rate_grid()


@dataclass(slots=True)
class Gamblers(Resumed):
    """Capital of both gamblers against each rate (or mean of outcomes in [0, 1]) not yet ruled out."""

    _entries: ClassVar[EntryTable] = {
        "squares": Number("a number >= 0", 0.0),
        "low": OneCount(),
        "high": OneCount(),
        "too_low": Numbers(low=0.0),
        "too_high": Numbers(low=0.0),
    }
    """All entries but n and k, which the owner of the gamblers knows."""

    n: int
    k: float
    squares: float
    """Sum of (label - running mean)², which sets the size of the next bet."""
    low: int
    """Rates of the grid with an index below this are ruled out as too low."""
    high: int
    """Rates of the grid from this index on are ruled out as too high."""
    too_low: FloatArray
    too_high: FloatArray
    grid: FloatArray = field(default_factory=lambda: _GRID)
    """Candidate rates, from 0 to 1."""
    largest_bet: float = _LARGEST_BET

    @classmethod
    def fresh(cls, grid: FloatArray = _GRID, largest_bet: float = _LARGEST_BET) -> Gamblers:
        """Both gamblers before the first label."""
        return cls(
            0, 0.0, 0.0, 0, grid.size, np.ones(grid.size), np.ones(grid.size), grid, largest_bet
        )

    def take(
        self,
        labels: CodeArray | FloatArray,
        log_threshold: float,
        implementation: Implementation = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Bet on the labels one by one; return the limits after each."""
        if labels.size == 0:
            return np.empty(0), np.empty(0)
        bets = self._bets(labels, log_threshold)
        threshold = float(np.exp(log_threshold))
        if uses_numba(labels.size, NUMBA_LABELS, implementation):
            return self._take_compiled(labels, bets, threshold)
        lower, upper = np.empty((2, labels.size))
        for start in range(0, labels.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            lower[part], upper[part] = self._take_block(labels[part], bets[part], threshold)
        return lower, upper

    def _bets(self, labels: CodeArray | FloatArray, log_threshold: float) -> FloatArray:
        """Size of each bet, from earlier labels only; updates the running sums."""
        seen = self.n + np.arange(1, labels.size + 1)
        hits = self.k + np.cumsum(labels, dtype=np.float64)
        squares = np.cumsum(
            np.concatenate([[self.squares], np.square(labels - (0.5 + hits) / (seen + 1.0))])
        )
        self.n = int(seen[-1])
        self.k = float(hits[-1])
        self.squares = float(squares[-1])
        return np.asarray(np.sqrt(2.0 * log_threshold / ((0.25 + squares[:-1]) * np.log1p(seen))))

    def _alive(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rates not ruled out yet, and the largest bets allowed against them."""
        rates = self.grid[self.low : self.high]
        with np.errstate(divide="ignore"):
            return rates, self.largest_bet / rates, self.largest_bet / (1.0 - rates)

    def _take_block(
        self, labels: CodeArray | FloatArray, bets: FloatArray, threshold: float
    ) -> tuple[FloatArray, FloatArray]:
        rates, largest_raise, largest_lower = self._alive()
        gain = labels[:, None] - rates
        raised = 1.0 + np.minimum(bets[:, None], largest_raise) * gain
        lowered = 1.0 - np.minimum(bets[:, None], largest_lower) * gain
        with np.errstate(
            over="ignore", under="ignore"
        ):  # capital beyond or far below the threshold changes nothing
            too_low = np.cumprod(np.concatenate([self.too_low[None], raised]), axis=0)
            too_high = np.cumprod(np.concatenate([self.too_high[None], lowered]), axis=0)
        # the first capital decreases and the second increases in the rate, so each rules out a run
        # from its own end
        lows = np.maximum.accumulate((too_low[1:] >= threshold).sum(axis=1))
        highs = gain.shape[1] - np.maximum.accumulate((too_high[1:] >= threshold).sum(axis=1))
        return self._settle(lows, highs, too_low[-1], too_high[-1])

    def _take_compiled(
        self, labels: CodeArray | FloatArray, bets: FloatArray, threshold: float
    ) -> tuple[FloatArray, FloatArray]:
        from calibrant.limits.sequences import compiled

        too_low = self.too_low.copy()
        too_high = self.too_high.copy()
        lows, highs = np.empty((2, labels.size), dtype=np.int64)
        outcomes: Any = np.ascontiguousarray(labels)  # compiled for labels and for other outcomes
        compiled.bet(outcomes, bets, *self._alive(), threshold, too_low, too_high, lows, highs)
        return self._settle(lows, highs, too_low, too_high)

    def _settle(
        self, lows: IntArray, highs: IntArray, too_low: FloatArray, too_high: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Drop the rates that were ruled out; `lows` and `highs` index the rates that were alive
        before.

        Return the limits after each label.
        """
        highs = np.maximum(highs, lows)  # where they cross, no single rate explains these labels
        first = int(lows[-1])
        last = int(highs[-1])
        self.too_low = too_low[first:last].copy()
        self.too_high = too_high[first:last].copy()
        before = self.low
        self.low = before + first
        self.high = before + last
        return self._rates_at(before + lows, before + highs)

    def limits(self) -> tuple[float, float]:
        """The current limits."""
        lower, upper = self._rates_at(np.array([self.low]), np.array([self.high]))
        return float(lower[0]), float(upper[0])

    def _rates_at(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """The ruled-out rates next to those with indices low .. high - 1.

        The true rate may lie anywhere between them.
        """
        return self.grid[np.maximum(low - 1, 0)], self.grid[np.minimum(high, self.grid.size - 1)]

    def _check_state(self) -> None:
        if not self.low <= self.high <= self.grid.size:
            rule = f"increase to {self.grid.size:,} at most"
            got = f"{self.low:,} and {self.high:,}"
            raise InvalidValueError("low and high", rule, got=got)
        n_alive = self.high - self.low
        if not self.too_low.size == self.too_high.size == n_alive:
            got = f"{self.too_low.size:,} and {self.too_high.size:,}"
            raise InvalidValueError("too_low and too_high", f"have {n_alive:,} entries", got=got)


class Betting(Sequence):
    """Hedged capital: the tightest limits if labels arrive one by one, at a fixed cost in memory.

    Claimed: with probability at least 1 - alpha, the limits hold after every label and in every
    region. Assumed: within a region, labels are independent draws with one rate. The limits never
    widen, and depend on the order of the labels.

    Notes
    -----
    Against each rate q of a grid, two gamblers multiply their capital by 1 + min(l_i, c/q) (Y_i -
    q) and 1 - min(l_i, c/(1 - q)) (Y_i - q), where c = 1/2 and l_i = sqrt(2 ln(2B/alpha) /
    (s²_{i-1} i ln(1 + i))) depends only on the labels before i. If q is true, each is a nonnegative
    martingale, so each ever reaches 2B / alpha with probability at most alpha / 2B. The first
    decreases in q and the second increases, so the rates ruled out form a run from either end, and
    rates between two neighbouring points of the grid are ruled out together with the outer point.
    Only the points that are not ruled out are kept.

    References
    ----------
    Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS
    B 86.

    Examples
    --------
    >>> import numpy as np
    >>> sequence = Betting(n_regions=1, alpha=0.1)
    >>> sequence.update(np.zeros(1000, dtype=np.intp), (np.arange(1000) % 2).astype(np.uint8))
    >>> sequence.limits().radius.round(3)
    array([0.06])
    """

    _entries: ClassVar[EntryTable] = {
        "grid_size": Constant(_GRID_SIZE),
        "gamblers": Entry(ResumesEach("_gamblers"), of="_gamblers"),
    }

    name = "betting"
    theorem = "hedged betting and Ville's inequality (Waudby-Smith and Ramdas 2024), by Bonferroni"
    order_free = False
    why_not_mergeable = "the size of each bet depends on the labels before it"
    most_regions = 5000  # a pair of gamblers takes 16 kB

    def __init__(self, n_regions: int, alpha: float) -> None:
        super().__init__(n_regions, alpha)
        self._gamblers = [Gamblers.fresh() for _ in range(n_regions)]
        self._log_threshold = float(np.log(2.0)) + self.log_share

    def _append(self, region: int, labels: CodeArray) -> None:
        self._gamblers[region].take(labels, self._log_threshold)

    def limits(self) -> Interval:
        """Return the current limits of every region."""
        lower, upper = np.array([gamblers.limits() for gamblers in self._gamblers]).T
        return Interval(lower, upper)

    @classmethod
    def path(
        cls, labels: CodeArray, alpha: float, *, implementation: Implementation = None
    ) -> Interval:
        """Return the limits after each label of a single stream."""
        return Interval(
            *Gamblers.fresh().take(labels, cls(1, alpha)._log_threshold, implementation)
        )

    def _check_state(self) -> None:
        super()._check_state()
        for gamblers, rows, hits in zip(self._gamblers, self.counts, self.positives, strict=True):
            gamblers.n = int(rows)
            gamblers.k = int(hits)
