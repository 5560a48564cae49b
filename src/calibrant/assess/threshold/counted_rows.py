"""Counts at thresholds: rows and positives, or groups, above each."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IntArray
from calibrant.assess.threshold.candidates import (
    Confusion,
    GroupLadder,
    Ladder,
    candidates,
    nested_groups,
)
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.limits.group_sums import GroupDesign, GroupSums
from calibrant.params.random import RandomSource
from calibrant.sample.groups import Groups
from calibrant.sample.sources.memory import MemoryRows

_GROUP_GRID = 100  # thresholds at which groups are tested: each group at every one of them
SIDES = {
    "precision": ("positive", "above"),
    "recall": ("positive", "above"),
    "npv": ("negative", "below"),
    "specificity": ("negative", "below"),
}


def regions(cuts: Mapping[Hashable, FloatArray]) -> ScorePartition | SegmentedPartition:
    """Bins of the scores between thresholds, in each segment."""
    parts = {name: ScorePartition(edges) for name, edges in cuts.items()}
    return parts[None] if None in parts else SegmentedPartition(parts)


@dataclass(frozen=True, slots=True, eq=False)
class GroupedRows:
    """Counted rows of one segment, with their groups."""

    scores: FloatArray
    codes: CodeArray
    groups: Groups
    design: GroupDesign
    blocks: RandomSource

    def ladder(self, target: str, cuts: FloatArray, places: IntArray) -> GroupLadder:
        """The ladder of groups: their rows that the target is about, at each threshold, and the
        correct ones.
        """
        kind, side = SIDES[target]
        own = self.codes == (kind == "positive")
        beyond = (
            self.scores >= cut if side == "above" else self.scores < cut for cut in cuts.tolist()
        )
        tally = nested_groups(
            ((one, own) if target in ("precision", "npv") else (own, one) for one in beyond),
            self.groups,
            self.blocks,
        )
        return GroupLadder(cuts, tally.counts, tally.positives, places, tally, self.design)

    def shares(self, cut: float) -> dict[str, tuple[float, float]]:
        """Each share at a threshold, where a group counts up to its cap, as in the tests.

        Also the shares where all rows count.
        """
        positive = self.codes == 1
        above = self.scores >= cut
        sets = {
            "selected": (np.ones(above.size, dtype=bool), above),
            "precision": (above, positive),
            "recall": (positive, above),
            "specificity": (~positive, ~above),
            "npv": (~above, ~positive),
        }
        sums = GroupSums.of(nested_groups(sets.values(), self.groups, self.blocks), self.design)
        found = zip(sums.rates.tolist(), sums.uncapped_rates.tolist(), strict=True)
        return dict(zip(sets, found, strict=True))


class CountedRows:
    """Rows of one segment between increasing thresholds, and the confusion counts at each
    threshold.
    """

    def __init__(self, cuts: FloatArray, counts: Any, positives: Any) -> None:
        self.cuts = cuts
        self.n = int(counts.sum())
        self.n1 = int(positives.sum())
        missed = np.cumsum(positives)[:-1]
        rejected = np.cumsum(counts)[:-1] - missed
        self.seen = Confusion(self.n1 - missed, self.n - self.n1 - rejected, missed, rejected)
        self.rows: GroupedRows | None = None

    def tested(self, target: str, start: float) -> Ladder:
        """The thresholds from the start on, in the order of the tests."""
        falling = target in ("precision", "specificity")
        order = (
            np.flatnonzero(self.cuts <= start)[::-1]
            if falling
            else np.flatnonzero(self.cuts >= start)
        )
        if self.rows is not None and order.size:
            return self.rows.ladder(target, self.cuts[order], order)
        right, rows = self.seen.shares[target]
        return Ladder(self.cuts[order], rows[order], right[order], order)

    def confusion(self, cut: float) -> Confusion[int]:
        """Rows on both sides of one of the thresholds."""
        place = int(np.searchsorted(self.cuts, cut))
        return Confusion(*(int(part[place]) for part in self.seen))


def ladder_of(
    scores: FloatArray, codes: CodeArray, target: str, level: float, alpha: float, ratio: float
) -> FloatArray:
    """Candidates in the order of the tests."""
    if not scores.size:
        return np.empty(0)
    if target in ("recall", "specificity"):
        found = some_scores(own_class(scores, codes, target), _GROUP_GRID, 2.0 * (1.0 - level))
    else:
        turned = (scores, codes) if target == "precision" else (-scores, 1 - codes)
        found = candidates(*turned, level, alpha, ratio)
    return turned_back(found, target)


def own_class(scores: FloatArray, codes: CodeArray, target: str) -> FloatArray:
    """Scores of the class that the target is about.

    They are negated for specificity, so that low ones are missed.
    """
    return np.asarray(scores[codes == 1] if target == "recall" else -scores[codes == 0])


def turned_back(values: FloatArray, target: str) -> FloatArray:
    """Convert thresholds that were found with scores and labels reversed."""
    return values if SIDES[target][1] == "above" else np.nextafter(-values, np.inf)


def some_scores(scores: FloatArray, size: int, share: float = 1.0) -> FloatArray:
    """A selection from the lowest share of the distinct scores, in increasing order."""
    values = np.unique(scores)
    values = values[: math.ceil(share * values.size) + 1]
    return (
        values
        if values.size <= size
        else values[np.linspace(0, values.size - 1, size).astype(np.intp)]
    )


def rows_by_segment(
    rows: MemoryRows, names: list[Any]
) -> dict[Hashable, tuple[FloatArray, CodeArray]]:
    """Scores, as doubles, and codes of each segment; empty if a segment has no row here."""
    scores = np.asarray(rows.scores, dtype=np.float64)
    if rows.segment is None:
        return {None: (scores, rows.codes)}
    number = {name: place for place, name in enumerate(rows.segment_names)}
    masks = {name: rows.segment == number.get(name, -1) for name in names}
    return {name: (scores[here], rows.codes[here]) for name, here in masks.items()}
