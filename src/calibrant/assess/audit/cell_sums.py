"""The rows of an audit as sums over cells of scores, from memory or from any other source."""

from collections.abc import Hashable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from calibrant._typing import ArrayLike, IntArray
from calibrant.assess.audit.spread import CELL_EDGES
from calibrant.assess.metrics.bin_sums import MOST_VALUES, few_values
from calibrant.cells.partition import Partition
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.sample.rows import Rows


def is_finite(cells: ScoreCounts) -> bool:
    """Whether every score is seen often enough to be a region of its own."""
    return cells.n_values is not None and few_values(cells.n_values, int(cells.n_rows))


def finest_bins(n_rows: int, n_bins: int | str) -> int:
    """The number of bins at the finest resolution."""
    return 2 ** int(np.log2(n_rows) / 3) if isinstance(n_bins, str) else min(n_bins, n_rows)


def cells_of_data(
    data: Rows,
    n_bins: int | str,
    *,
    classes: ArrayLike | None,
    pos_label: Hashable | None,
) -> list[tuple[Hashable, ScoreCounts]]:
    """The cells of all rows, then of each segment. They give the same regions as rows in memory.

    A region ends where the middle rank of a value passes j n / n_bins. That value is the order
    statistic of rank ceil(j n / n_bins). Each of these values is a cell, and so is each range
    between two of them. So every region consists of whole cells. Ranges are also cut at
    `CELL_EDGES`, for the spread.
    """
    values = data.values(MOST_VALUES)
    if not values:
        raise InvalidValueError("the data", "have at least one row", got="none")
    edges = {name: found.distinct for name, found in values.items() if found.distinct is not None}
    ranks = {
        name: _ranks(found.rows, n_bins) for name, found in values.items() if found.distinct is None
    }
    many_valued = set(ranks)
    whole = data.with_columns(replace(data.columns, segment=None))
    if None in ranks:
        edges |= whole.order_statistics({None: ranks.pop(None)})
    if ranks:
        edges |= data.order_statistics(ranks)
    edges |= {name: np.union1d(edges[name], CELL_EDGES) for name in many_valued}
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
        (name, ScoreCounts.of_tally(tally, are_values=name not in many_valued))
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
