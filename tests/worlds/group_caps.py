"""Worlds where a few groups are giants with a rate of their own, so that a cap on sizes changes the
answer.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Giants:
    """Small groups of `small` rows with the rate `rate`.

    A share `rare` of groups has `large` rows, all negative.

    Scores are uniform and say nothing, so that every share among rows with high scores is that
    among all rows.
    """

    rare: float
    large: int
    small: int = 1
    rate: float = 0.9

    def draw(
        self, rng: np.random.Generator, n_groups: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores, labels and groups of all rows of some groups."""
        giant = rng.uniform(size=n_groups) < self.rare
        groups = np.repeat(np.arange(n_groups), np.where(giant, self.large, self.small))
        y = rng.uniform(size=groups.size) < np.where(giant, 0.0, self.rate)[groups]
        return rng.uniform(size=groups.size), y.astype(int), groups

    def capped_rate(self, cap: float, share: float = 1.0) -> float:
        """The rate where a group counts as at most `cap` rows of those in a bin that has this share
        of all scores.

        The number of rows of a group in the bin is binomial.
        """
        small, large = (_mean_capped(size, share, cap) for size in (self.small, self.large))
        small = small * (1.0 - self.rare)
        large = large * self.rare
        return self.rate * small / (small + large)

    def row_rate(self) -> float:
        """The rate among rows, each of which counts the same."""
        return self.capped_rate(np.inf)


def _mean_capped(size: int, share: float, cap: float) -> float:
    """The mean of min(S, cap), S binomial."""
    from scipy.stats import binom

    rows = np.arange(size + 1)
    return float(np.minimum(rows, cap) @ binom.pmf(rows, size, share))
