"""What an audit needs of the rows: sums over cells of scores, in memory or on whatever engine has the rows."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibrant._typing import ArrayLike, FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.metrics._rows import MOST_VALUES, Rows, few_values
from calibrant.partition import Partition, ScorePartition, SegmentedPartition
from calibrant.rows import ScoredData
from calibrant.tally import Tally


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Sums over cells of scores, in increasing order, none empty: single values, or what lies between two of them.

    Attributes
    ----------
    low, high : float arrays of shape (m,)
        Smallest and largest score.
    counts, positives : int arrays of shape (m,)
        Rows and positive rows.
    total : float array of shape (m,)
        Sum of the scores.
    n_values : int or None
        Distinct scores of all cells; None for more than were counted.
    """

    low: FloatArray
    high: FloatArray
    counts: IntArray
    positives: IntArray
    total: FloatArray
    n_values: int | None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    @property
    def finite(self) -> bool:
        """Whether every value is seen so often that it can be a region of its own."""
        return self.n_values is not None and few_values(self.n_values, self.n_rows)

    @classmethod
    def of_rows(cls, rows: Rows) -> Self:
        """Every value is a cell."""
        values, inverse, counts = np.unique(rows.scores, return_inverse=True, return_counts=True)
        positives = np.bincount(inverse, rows.labels, minlength=values.size).astype(np.int64)
        return cls(values, values, counts, positives, values * counts, values.size)

    @classmethod
    def of_tally(cls, tally: Tally, n_values: int | None) -> Self:
        """Cells of a tally whose weights are the scores themselves."""
        sums, used = tally.weights, tally.counts > 0
        if sums is None:
            raise InvalidValueError("tally must have the scores as weights; got none")
        low, high, total = sums.smallest[used], sums.largest[used], sums.w.rounded()[used]
        return cls(low, high, tally.counts[used], tally.positives[used], total, n_values)


def finest_bins(n_rows: int, n_bins: int | str) -> int:
    """How many bins the finest resolution has."""
    return 2 ** int(np.log2(n_rows) / 3) if isinstance(n_bins, str) else min(n_bins, n_rows)


def cells_of_data(
    data: ScoredData, n_bins: int | str, *, classes: ArrayLike | None, pos_label: Any
) -> list[tuple[Any, Cells]]:
    """The cells of all rows, then of each segment: the same regions as those of the rows in memory.

    A region ends where the middle rank of a value passes j n / n_bins. That value is the order statistic of rank
    ceil(j n / n_bins), so with these values as cells of their own, and what lies between them as others, no region
    tears a cell.
    """
    values = data.values(MOST_VALUES)
    if not values:
        raise InvalidValueError("data must have at least one row; got none")
    edges = {name: found.distinct for name, found in values.items() if found.distinct is not None}
    ranks = {name: _ranks(found.rows, n_bins) for name, found in values.items() if found.distinct is None}
    whole, by_segment = _without_segments(data), {name: ranks[name] for name in ranks if name is not None}
    if None in ranks:
        edges |= whole.order_statistics({None: ranks[None]})
    if by_segment:
        edges |= data.order_statistics(by_segment)
    atoms = {name: ScorePartition.atoms(edges[name]) for name in values}
    tallies = {None: _tally(whole, atoms.pop(None), classes, pos_label)}
    if atoms:
        joined = SegmentedPartition(atoms)
        tallies |= zip(atoms, _parts(_tally(data, joined, classes, pos_label), joined), strict=True)
    counted = {name: None if found.distinct is None else found.distinct.size for name, found in values.items()}
    return [(name, Cells.of_tally(tally, counted[name])) for name, tally in tallies.items()]


def _ranks(n_rows: int, n_bins: int | str) -> IntArray:
    finest = finest_bins(n_rows, n_bins)
    return -(-np.arange(1, finest, dtype=np.int64) * n_rows // finest)


def _without_segments(data: ScoredData) -> ScoredData:
    return data.with_columns(replace(data.columns, segment=None))


def _tally(data: ScoredData, partition: Partition, classes: ArrayLike | None, pos_label: Any) -> Tally:
    """Count, with the scores as weights, whose sums, least and largest are then exact."""
    weighted = data.with_columns(replace(data.columns, weight=data.columns.score))
    return weighted.tally(partition, classes=classes, pos_label=pos_label, weighted=True)[0]


def _parts(tally: Tally, partition: SegmentedPartition) -> list[Tally]:
    """The tally of each segment."""
    return [
        tally.part(slice(start, stop))
        for start, stop in zip(partition.offsets[:-1].tolist(), partition.offsets[1:].tolist(), strict=True)
    ]
