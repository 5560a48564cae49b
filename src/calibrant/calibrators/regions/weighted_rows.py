"""Weighted rows: their weights, and rows of the population that weights describe."""

from dataclasses import replace

import numpy as np

from calibrant._typing import FloatArray, IndexArray, Seed
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.cells.partition import Partition
from calibrant.cells.unit_sums import UnitSums
from calibrant.cells.units import UnitCells
from calibrant.errors import InvalidValueError
from calibrant.limits.group_design import GroupDesign
from calibrant.limits.shift.evidence import WeightedRows
from calibrant.params.arrays import check_rows
from calibrant.params.random import RandomSource
from calibrant.sample.reader import in_memory
from calibrant.sample.row_keys import position_keys
from calibrant.sample.rows import Rows
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import Setting, Text

NOTHING = 1e-100  # squares of smaller weights vanish, and with them their variance


def has_weights(data: Rows) -> bool:
    """Whether rows have importance weights; raise an error if they have a `sample_weight` too."""
    weighted = data.columns.weight is not None
    if weighted and in_memory(data) and data.repeats is not None:
        advice = "repeat the rows, or multiply the weights"
        raise InvalidValueError(
            "sample_weight", "be None with importance_weight", got="both", advice=advice
        )
    return weighted


def checked_bound(
    weights: FloatArray, bound: float | None, name: str = "importance_weight"
) -> float:
    """The bound on the weights, or the largest weight if there is none.

    Raise an error for weights that exceed it.
    """
    if not weights.size or weights.max() < NOTHING:
        got = f"none above {NOTHING:g}"
        advice = "use rows that are similar to the target rows"
        raise InvalidValueError(name, "not be zero in every row", got=got, advice=advice)
    if bound is None:
        return float(weights.max())
    check_rows(weights > bound, weights, name, at_most(bound))
    return float(bound)


def at_most(bound: float) -> Text:
    """The rule for weights that have a bound."""
    return ("be at most ", Setting("weight_bound", f"{bound:g}", python=f"weight_bound={bound:g}"))


def weights_of(rows: MemoryRows) -> FloatArray:
    """The weights of the rows; ones if they have none."""
    return np.ones(len(rows)) if rows.weights is None else rows.weights


def shuffled(binned: Binned, random_state: Seed) -> WeightedRows:
    """The counted rows in random order, because bets must not depend on how rows are sorted."""
    rows = binned.rows.collect()
    regions = binned.partition.membership(rows.prepared)
    source = RandomSource.of(random_state, "order of bets", rows=rows.fingerprint())
    order: IndexArray = source.order(len(rows))
    order = order[regions[order] >= 0]
    return WeightedRows(
        regions[order], weights_of(rows)[order], rows.codes[order], binned.partition.n_regions
    )


def kept_rows(rows: MemoryRows, bound: float, random_state: Seed) -> MemoryRows:
    """Each row with probability w / bound: independent draws from the weighted population, if rows
    are independent.

    Rows of groups are drawn by the name of the group and their position in it, others by position.
    The random numbers are those of these rows (see `calibrant.params.random`): with one fixed
    stream of numbers, rows would not be kept at random.
    """
    keys = position_keys(0, len(rows)) if rows.groups is None else rows.groups.member_keys
    source = RandomSource.of(random_state, "kept by weight", rows=rows.fingerprint())
    uniform = source.uniforms(keys)
    return replace(rows.take(uniform * bound < weights_of(rows)), weights=None)


def weighted_sums(rows: MemoryRows, partition: Partition, design: GroupDesign) -> UnitSums:
    """Sums of the weights of groups in regions."""
    if rows.groups is None:
        raise InvalidValueError("groups", "be given", got="None")
    cells = units_in_regions(rows, partition)
    return UnitSums.of_cells(cells, rows.codes, partition.n_regions, design.counting)


def units_in_regions(rows: MemoryRows, partition: Partition) -> UnitCells:
    """The units, whole groups or rows, in regions."""
    return rows.units.in_cells(partition.membership(rows.prepared), partition.n_regions)
