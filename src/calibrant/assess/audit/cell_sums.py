"""The rows of an audit as sums over cells of scores, from memory or from any other source."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self, cast

import numpy as np

from calibrant._typing import ArrayLike, FloatArray, IntArray
from calibrant.assess.metrics.bin_sums import MOST_VALUES, few_values
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.cells.tally import Tally, WeightSums
from calibrant.errors import InvalidValueError
from calibrant.sample.rows import Rows
from calibrant.sample.sources.memory import MemoryRows


@dataclass(frozen=True, slots=True, eq=False)
class CellSums:
    """Sums over cells of scores. A cell is one score value, or the scores between two values.

    No cell is empty.

    Attributes
    ----------
    low, high : float arrays of shape (m,)
        Smallest and largest score. Cells are in increasing order.
    counts, positives : int arrays of shape (m,)
        Rows and positive rows.
    total : float array of shape (m,)
        Sum of the scores.
    n_values : int or None
        Number of distinct scores in all cells; None if there are more than were counted.
    """

    low: FloatArray
    high: FloatArray
    counts: IntArray
    positives: IntArray
    total: FloatArray
    n_values: int | None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    @property
    def finite(self) -> bool:
        """Whether every value is seen often enough to be a region of its own."""
        return self.n_values is not None and few_values(self.n_values, self.n_rows)

    @classmethod
    def of_rows(cls, rows: MemoryRows) -> Self:
        """One cell per score value."""
        values, inverse, counts = np.unique(rows.scores, return_inverse=True, return_counts=True)
        positives = np.bincount(inverse, rows.codes).astype(np.int64)
        return cls(values, values, counts, positives, values * counts, values.size)

    @classmethod
    def of_tally(cls, tally: Tally, n_values: int | None) -> Self:
        """One cell per region of a tally whose weights are the scores themselves."""
        sums = cast(WeightSums, tally.weights)
        used = tally.counts > 0
        low = sums.smallest[used]
        high = sums.largest[used]
        total = sums.w.rounded()[used]
        return cls(low, high, tally.counts[used], tally.positives[used], total, n_values)


def finest_bins(n_rows: int, n_bins: int | str) -> int:
    """The number of bins at the finest resolution."""
    return 2 ** int(np.log2(n_rows) / 3) if isinstance(n_bins, str) else min(n_bins, n_rows)


def cells_of_data(
    data: Rows,
    n_bins: int | str,
    *,
    classes: ArrayLike | None,
    pos_label: Hashable | None,
) -> list[tuple[Hashable, CellSums]]:
    """The cells of all rows, then of each segment. They give the same regions as rows in memory.

    A region ends where the middle rank of a value passes j n / n_bins. That value is the order
    statistic of rank ceil(j n / n_bins). Each of these values is a cell, and so is each range
    between two of them. So every region consists of whole cells.
    """
    values = data.values(MOST_VALUES)
    if not values:
        raise InvalidValueError("the data", "have at least one row", got="none")
    edges = {name: found.distinct for name, found in values.items() if found.distinct is not None}
    ranks = {
        name: _ranks(found.rows, n_bins) for name, found in values.items() if found.distinct is None
    }
    n_values = {name: edges[name].size if name in edges else None for name in values}
    whole = data.with_columns(replace(data.columns, segment=None))
    if None in ranks:
        edges |= whole.order_statistics({None: ranks.pop(None)})
    if ranks:
        edges |= data.order_statistics(ranks)
    atoms = {name: ScorePartition.atoms(edges[name]) for name in values}
    tallies = [_tally(whole, atoms.pop(None), classes, pos_label)]
    if atoms:
        bins = SegmentedPartition(atoms)
        of_all = _tally(data, bins, classes, pos_label)
        tallies += [
            of_all.part(slice(start, stop)) for start, stop in pairwise(bins.offsets.tolist())
        ]
    names = (None, *atoms)
    return [
        (name, CellSums.of_tally(tally, n_values[name]))
        for name, tally in zip(names, tallies, strict=True)
    ]


def _ranks(n_rows: int, n_bins: int | str) -> IntArray:
    finest = finest_bins(n_rows, n_bins)
    return -(-np.arange(1, finest, dtype=np.int64) * n_rows // finest)


def _tally(
    data: Rows,
    partition: Partition,
    classes: ArrayLike | None,
    pos_label: Hashable | None,
) -> Tally:
    """Count rows with the scores as weights: their sum, minimum and maximum in each region are
    exact.
    """
    weighted = data.with_columns(replace(data.columns, weight=data.columns.score))
    return weighted.with_classes(classes, pos_label).tally(partition, weighted=True)[0]
