"""An audit of rows that count differently, or that belong together: bets on weighted rows, or on whole groups."""

from typing import Any

import numpy as np

from calibrant._audit.cells import finest_bins
from calibrant._audit.report import AuditTable
from calibrant._audit.resolutions import Resolutions
from calibrant._numbers import counted
from calibrant._typing import FloatArray, IndexArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.metrics.units import Units
from calibrant.rows.memory import MemoryRows

_CUTTING = 0.1  # of the rows, or of whole groups: these only cut the regions
_ROUNDING = 1e-9
NO_UPPER_BOUND = "it is not derived for rows with importance weights or groups"


def resolve_units(
    rows: MemoryRows, weight_bound: float | None, max_group_size: int | None, n_bins: int | str, alpha: float
) -> tuple[Resolutions, tuple[str, ...]]:
    """Regions at every resolution, what is proved for each with probability 1 - alpha, and the assumptions.

    In a region, a unit (a weighted row, or the rows of a group) has the weight w and the weighted mean d of label minus
    score. E[w d] / E[w] is the mean of E[Y | score] - score over the region, in the population that the weights
    describe or among rows of new groups. Units are independent draws, and the regions are cut by other units, so that
    the bets of `calibrant.intervals.shift.betting` hold for (d + b) / (1 + b - a) in a region of scores from a to b.
    Groups may have rows in several regions, so alpha is shared by Bonferroni's rule.
    """
    _check(rows, weight_bound)
    cutting = rows.chosen(rows.draw(_CUTTING, 0)) if len(rows) > 1 else np.zeros(1, dtype=bool)
    if rows.groups is not None and max_group_size is None:
        max_group_size = int(rows.groups.take(cutting).sizes.max(initial=1))
    others, units = Units.of(rows.take(~cutting), weight_bound, max_group_size)
    if rows.weights is not None and weight_bound is not None:
        Units.of(rows, weight_bound, None)  # the weights of rows that only cut are checked too
    if not len(others):
        raise InvalidValueError("y", "have more than one row or group", got="one")
    weights = np.ones(len(others)) if units.row_weights is None else units.row_weights
    n_units = len(others) if units.unit is None else int(units.unit.max()) + 1
    finest = finest_bins(n_units, n_bins)
    edges = np.empty(0)
    if cutting.any():
        edges = np.unique(np.quantile(rows.scores[cutting], np.arange(1, finest) / finest))
    nested = [np.searchsorted(edges, others.scores, side="right")]
    n_regions = [edges.size + 1]
    bounds = np.concatenate([[0.0], edges, [1.0]])
    while n_regions[0] > 1:
        nested.insert(0, nested[0] // 2)
        n_regions.insert(0, (n_regions[0] + 1) // 2)
    parts: list[dict[str, Any]] = []
    offset = 0
    for level, (region, size) in enumerate(zip(nested, n_regions, strict=True)):
        delta = alpha / (len(nested) * size)
        seen, place = np.unique(region, return_inverse=True)
        step = 2 ** (len(nested) - 1 - level)
        ends = bounds[seen * step], bounds[np.minimum((seen + 1) * step, bounds.size - 1)]
        low, high = _gaps(others, units, place, ends, delta)
        total = np.bincount(place, weights)
        mean = np.bincount(place, weights * others.scores) / total
        smallest, largest = np.full(seen.size, np.inf), np.full(seen.size, -np.inf)
        np.minimum.at(smallest, place, others.scores)
        np.maximum.at(largest, place, others.scores)
        parent = np.full(seen.size, -1)
        if level:
            above = np.unique(nested[level - 1])
            parent = offset - above.size + np.searchsorted(above, seen // 2)
        offset += seen.size
        parts.append(
            {
                "resolution": np.full(seen.size, level),
                "parent": parent,
                "low": smallest,
                "high": largest,
                "counts": np.bincount(place),
                "mean_score": np.clip(mean, smallest, largest),
                "rate": np.bincount(place, weights * others.codes) / total,
                "lower": np.clip(mean + low, 0.0, 1.0),
                "upper": np.clip(mean + high, 0.0, 1.0),
                "error": np.maximum(np.maximum(low, -high) - _ROUNDING, 0.0),
            }
        )
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    found, names = columns.pop("parent"), np.full(offset, None, dtype=object)
    table = AuditTable(segment=names, **columns)
    return Resolutions(table, found, 1.0, finite=False, n_values=None, n_singletons=0), _assumed(units, cutting)


def _check(rows: MemoryRows, weight_bound: float | None) -> None:
    """Nothing is proved without a bound, and segments would share regions that were cut by few rows."""
    if rows.segment is not None:
        advice = "audit one segment at a time, with a share of 1 - confidence_level for each"
        raise InvalidTypeError("segments", "be None with importance weights or groups", got="both", advice=advice)
    if rows.weights is not None and weight_bound is None:
        raise InvalidTypeError(
            "weight_bound", "be given with importance weights: nothing is proved without", got="None"
        )


def _gaps(
    rows: MemoryRows,
    units: Units,
    place: IndexArray,
    ends: tuple[FloatArray, FloatArray],
    delta: float,
) -> tuple[FloatArray, FloatArray]:
    """Limits for the mean of label minus score in each region."""
    most, span = ends[1], 1.0 + ends[1] - ends[0]
    outcomes = (rows.codes - rows.scores + most[place]) / span[place]
    limits = units.means(outcomes, place, most.size, delta)
    return span * limits.lower - most, span * limits.upper - most


def _assumed(units: Units, cutting: Any) -> tuple[str, ...]:
    """What must be true, and what the audit is about."""
    set_aside = f"{counted(int(cutting.sum()), 'row')} that only cut the regions were drawn at random"
    if units.unit is None:
        return (
            "the rows with their importance weights are independent draws from one distribution; what is said is about "
            "the population in which each row counts by its weight",
            f"no importance weight exceeds {units.bound:g}",
            set_aside,
            "the order of the rows says nothing about scores and labels",
        )
    return (
        "the groups are independent draws from one distribution; what is said is about rows of new groups, where a "
        f"group counts as at most {units.bound:,.0f} rows",
        set_aside,
        "the names of the groups say nothing about scores and labels",
    )
