"""Counts at thresholds: rows and positives, or groups, above each."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IntArray
from calibrant.assess.threshold.candidates import Ladder, candidates
from calibrant.assess.threshold.cut import Confusion, Seen
from calibrant.cells.entries import Entries
from calibrant.cells.group_counts import GroupCounts
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.cells.tally import Tally
from calibrant.cells.units import RowUnits
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
    """Counted rows of one segment, with their groups.

    Attributes
    ----------
    scores, codes : arrays of shape (n_rows,)
        Scores and labels.
    units : RowUnits
        The groups.
    cap : float
        The most rows of a group that count.
    order : int
        The seed of the random order of bets.
    """

    scores: FloatArray
    codes: CodeArray
    units: RowUnits
    cap: float
    order: int

    def ladder(self, target: str, cuts: FloatArray, places: IntArray) -> Ladder:
        """Groups at thresholds: their rows that the target is about, at each threshold, and the
        correct ones.
        """
        sets = ((place, *seen.shares[target]) for place, seen in self._seen(cuts))
        tally = self._tally(sets, cuts.size)
        sums = Entries.of_tally(tally, self.cap)
        return Ladder(cuts, tally.counts, tally.positives, places, sums, self.order)

    def shares(self, cut: float) -> dict[str, tuple[float, float]]:
        """Each share at a threshold, where a group counts up to its cap, as in the tests.

        Also the shares where all rows count.
        """
        ((_, seen),) = self._seen(np.array([cut]))
        of_groups = seen.shares
        sets = ((place, *share) for place, share in enumerate(of_groups.values()))
        tally = self._tally(sets, len(of_groups))
        sums = Entries.of_tally(tally, self.cap)
        found = zip(sums.rates.tolist(), sums.uncapped_rates.tolist(), strict=True)
        return dict(zip(of_groups, found, strict=True))

    def _seen(self, cuts: FloatArray) -> Iterator[tuple[int, Confusion[IntArray]]]:
        """For each threshold: its place among `cuts`, and the rows of every group by decision and
        label. In increasing order.
        """
        order = np.argsort(cuts)
        reached = np.searchsorted(cuts[order], self.scores, side="right")
        n_cells = 2 * (cuts.size + 1)
        cells = self.units.in_cells(2 * reached + self.codes, n_cells)
        by_cell = np.argsort(cells.cell, kind="stable")
        ends = np.cumsum(np.bincount(cells.cell, minlength=n_cells))[:-1]
        entries = np.split(by_cell, ends)
        rows = cells.n_rows
        n_units = self.units.n_units
        below = np.zeros((2, n_units), dtype=np.int64)
        of_label = [
            np.bincount(self.units.unit[self.codes == label], minlength=n_units) for label in (0, 1)
        ]
        for step, place in enumerate(order.tolist()):
            for label in (0, 1):
                own = entries[2 * step + label]
                below[label, cells.unit[own]] += rows[own]
            rejected, missed = below.copy()
            yield place, Confusion(of_label[1] - missed, of_label[0] - rejected, missed, rejected)

    def _tally(self, sets: Iterable[tuple[int, IntArray, IntArray]], n_sets: int) -> Tally:
        """Groups in sets of rows: the number of the set, and the correct rows and all rows of every
        group in it.
        """
        table = GroupCounts.of_sets(((place, n, k) for place, k, n in sets), self.units.n_units)
        return Tally(*table.totals(n_sets), groups=table)


@dataclass(frozen=True, eq=False)
class CountedRows:
    """Rows of one segment, counted between increasing thresholds.

    Attributes
    ----------
    cuts : float array of shape (n_cuts,)
        The thresholds.
    tally : Tally
        The rows below the first threshold, between two of them, and from the last one on.
    rows : GroupedRows or None
        The rows themselves, if they have groups.
    """

    cuts: FloatArray
    tally: Tally
    rows: GroupedRows | None = None

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.tally.counts.sum())

    @property
    def n_positive(self) -> int:
        """The number of positive rows."""
        return int(self.tally.positives.sum())

    @cached_property
    def seen(self) -> Confusion[IntArray]:
        """The rows by decision and label, at each threshold."""
        missed = np.cumsum(self.tally.positives)[:-1]
        rejected = np.cumsum(self.tally.counts)[:-1] - missed
        n_negative = self.n - self.n_positive
        return Confusion(self.n_positive - missed, n_negative - rejected, missed, rejected)

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

    def at(self, cut: float) -> Seen:
        """Rows on both sides of one of the thresholds; with groups, the shares there."""
        if self.rows is not None:
            return self.rows.shares(cut)
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
