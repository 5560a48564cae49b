"""Grouped rows of two populations whose rates are known: kinds of groups, sizes and scores differ."""

from dataclasses import dataclass

import numpy as np

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Scores, labels, groups and kinds of rows."""


@dataclass(frozen=True)
class ShiftedGroups:
    """Groups of two kinds and two moods; the target has more groups of kind 1, and larger scores.

    A row's inputs are its score and the kind of its group. The mood, which is not an input, changes
    rates by `mood`, and groups in a good mood are three times as large: sizes follow labels.

    Attributes
    ----------
    size : (int, int)
        Rows of a group of each kind, if the mood is bad.
    rows : {"independent", "coupled", "identical"}
        Given the group: labels are drawn one by one, by one common number, or all rows are copies
        of one.
    share, target_share : float
        Share of groups of kind 1 in each population.
    target_size : (int, int)
        Rows of a group of the target population.
    """

    size: tuple[int, int] = (1, 2)
    rows: str = "independent"
    share: float = 0.4
    target_share: float = 0.7
    target_size: tuple[int, int] = (3, 1)
    mood: float = 0.15

    @property
    def largest(self) -> int:
        return 3 * max(self.size)

    def draw(self, rng: np.random.Generator, n_groups: int) -> Drawn:
        """Rows of the calibration population."""
        kind = (rng.uniform(size=n_groups) < self.share).astype(int)
        good = rng.integers(0, 2, n_groups)
        sizes = np.array(self.size)[kind] * np.where(good, 3, 1)
        groups = np.repeat(np.arange(n_groups), sizes)
        scores = rng.uniform(size=groups.size)
        chance = rng.uniform(size=groups.size)
        first = np.searchsorted(groups, groups)
        if self.rows == "identical":
            scores = scores[first]
        if self.rows != "independent":
            chance = chance[first]
        of_row = kind[groups]
        rates = _rate(of_row, scores) + self.mood * (2 * good[groups] - 1)
        return scores, (chance < rates).astype(int), groups, of_row

    def weight(self, scores: np.ndarray, kind: np.ndarray, target: str) -> np.ndarray:
        """The density ratio of rows, or of a random row from a random group."""
        return 2.0 * scores * self._ratios(target)[kind]

    def bound(self, target: str) -> float:
        """The largest weight."""
        return float(2.0 * self._ratios(target).max())

    def truth(self, edges: np.ndarray, target: str) -> np.ndarray:
        """The rate of the target population between edges, which include 0 and 1."""
        score = 2.0 / 3.0 * np.diff(edges**3) / np.diff(edges**2)  # mean, with density 2s
        kinds = self._kinds(self.target_share, self.target_size, target)
        mood = 0.5 * self.mood if target == "rows" else 0.0
        rates = np.stack([_rate(np.full(score.size, k), score) for k in (0, 1)])
        return np.asarray(kinds @ rates + mood)

    def _kinds(self, share: float, size: tuple[int, int], target: str) -> np.ndarray:
        found = np.array([1.0 - share, share])
        if target == "rows":
            found = found * size
        return np.asarray(found / found.sum())

    def _ratios(self, target: str) -> np.ndarray:
        there = self._kinds(self.target_share, self.target_size, target)
        return np.asarray(there / self._kinds(self.share, self.size, target))


def _rate(kind: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return np.asarray(0.2 + 0.4 * kind + 0.2 * scores)
