"""Hedged betting at every moment: against every mean in a grid, one gambler bets that it is too low
and another that it is too high.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._typing import FloatArray
from calibrant.errors import InvalidValueError
from calibrant.params.declared_state import Resumed
from calibrant.params.kind import EntryTable
from calibrant.params.rules import Number
from calibrant.params.state_kinds import Numbers, OneCount

_BLOCK = 128  # outcomes processed together


@dataclass(slots=True)
class Gamblers(Resumed):
    """Capital of both gamblers against each mean of outcomes in [0, 1] that is not yet ruled out.

    Guarantee: if the outcomes are independent draws with one mean, then with probability at least
    1 - 2 / threshold the limits contain it after every outcome. They never widen.

    Notes
    -----
    Against each mean q of a grid, two gamblers multiply their capital by 1 + min(l_i, c/q) (Y_i -
    q) and 1 - min(l_i, c/(1 - q)) (Y_i - q), where c is `largest_bet` and l_i = sqrt(2 ln(threshold)
    / (s²_{i-1} i ln(1 + i))) depends only on the outcomes before i. If q is true, each is a
    nonnegative martingale, so each ever reaches the threshold with probability at most
    1 / threshold. The first decreases in q and the second increases, so the means ruled out form a
    run from either end, and means between two neighbouring points of the grid are ruled out
    together with the outer point. Only the points that are not ruled out are kept.

    References
    ----------
    Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS
    B 86.
    """

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
    """Sum of (outcome - running mean)², which sets the size of the next bet."""
    low: int
    """Means of the grid with an index below this are ruled out as too low."""
    high: int
    """Means of the grid from this index on are ruled out as too high."""
    too_low: FloatArray
    too_high: FloatArray
    grid: FloatArray
    """Candidate means, from 0 to 1."""
    largest_bet: float
    """Share of the capital at risk in one bet."""

    @classmethod
    def fresh(cls, grid: FloatArray, largest_bet: float) -> Gamblers:
        """Both gamblers before the first outcome."""
        return cls(
            0, 0.0, 0.0, 0, grid.size, np.ones(grid.size), np.ones(grid.size), grid, largest_bet
        )

    def take(self, outcomes: FloatArray, log_threshold: float) -> None:
        """Bet on the outcomes one by one."""
        if outcomes.size == 0:
            return
        bets = self._bets(outcomes, log_threshold)
        threshold = float(np.exp(log_threshold))
        for start in range(0, outcomes.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            self._take_block(outcomes[part], bets[part], threshold)

    def _bets(self, outcomes: FloatArray, log_threshold: float) -> FloatArray:
        """Size of each bet, from earlier outcomes only; updates the running sums."""
        seen = self.n + np.arange(1, outcomes.size + 1)
        hits = self.k + np.cumsum(outcomes)
        squares = np.cumsum(
            np.concatenate([[self.squares], np.square(outcomes - (0.5 + hits) / (seen + 1.0))])
        )
        self.n = int(seen[-1])
        self.k = float(hits[-1])
        self.squares = float(squares[-1])
        return np.asarray(np.sqrt(2.0 * log_threshold / ((0.25 + squares[:-1]) * np.log1p(seen))))

    def _take_block(self, outcomes: FloatArray, bets: FloatArray, threshold: float) -> None:
        """Bet on a few outcomes, and drop the means that were ruled out after any of them."""
        means = self.grid[self.low : self.high]
        with np.errstate(divide="ignore"):
            largest_raise = self.largest_bet / means
            largest_lower = self.largest_bet / (1.0 - means)
        gain = outcomes[:, None] - means
        raised = 1.0 + np.minimum(bets[:, None], largest_raise) * gain
        lowered = 1.0 - np.minimum(bets[:, None], largest_lower) * gain
        with np.errstate(
            over="ignore", under="ignore"
        ):  # capital beyond or far below the threshold changes nothing
            too_low = np.cumprod(np.concatenate([self.too_low[None], raised]), axis=0)
            too_high = np.cumprod(np.concatenate([self.too_high[None], lowered]), axis=0)
        # the first capital decreases and the second increases in the mean, so each rules out a run
        # from its own end
        first = int((too_low >= threshold).any(axis=0).sum())
        last = means.size - int((too_high >= threshold).any(axis=0).sum())
        last = max(first, last)  # where they cross, no single mean explains these outcomes
        self.too_low = too_low[-1, first:last].copy()
        self.too_high = too_high[-1, first:last].copy()
        self.high = self.low + last
        self.low += first

    def limits(self) -> tuple[float, float]:
        """The current limits: the means next to those that are left, which were ruled out.

        The true mean may lie anywhere between them.
        """
        lower = self.grid[max(self.low - 1, 0)]
        upper = self.grid[min(self.high, self.grid.size - 1)]
        return float(lower), float(upper)

    def _check_state(self) -> None:
        if not self.low <= self.high <= self.grid.size:
            rule = f"increase to {self.grid.size:,} at most"
            got = f"{self.low:,} and {self.high:,}"
            raise InvalidValueError("low and high", rule, got=got)
        n_alive = self.high - self.low
        if not self.too_low.size == self.too_high.size == n_alive:
            got = f"{self.too_low.size:,} and {self.too_high.size:,}"
            raise InvalidValueError("too_low and too_high", f"have {n_alive:,} entries", got=got)
