"""Audit weighted or grouped rows, by bets on weighted rows or on whole groups."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.assess.audit.cell_sums import finest_bins
from calibrant.assess.audit.findings import AuditTable
from calibrant.assess.audit.resolutions import (
    AVERAGE_SHARE,
    REGIONS_SHARE,
    UNSEEN_SHARE,
    Proved,
    Resolutions,
)
from calibrant.assess.audit.spread import SPREAD_SHARE, Spread, outer_signs
from calibrant.assess.metrics.bin_sums import few_values
from calibrant.assess.metrics.divided_rows import CUTTING_SHARE, DividedRows
from calibrant.assess.metrics.independent_units import Units
from calibrant.errors import GroupCapWarning, warn_caller
from calibrant.guarantee.relative import relative_limits
from calibrant.limits.interval import Interval
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.numbers import counted
from calibrant.text.sentences import Setting, shown, words

_ROUNDING = 1e-9

_Segment = tuple[Hashable, BoolArray]
"""The name of a segment (None for all rows), and which rows it has."""


def audit_units(
    rows: MemoryRows,
    weight_bound: float | None,
    max_group_size: int | None,
    n_bins: int | str,
    alpha: float,
) -> Proved:
    """Regions at every resolution, and what is proved with probability 1 - alpha.

    In a region, a unit (a weighted row, or the rows of a group) has weight w and weighted mean d of
    label minus score. E[w d] / E[w] is the mean of E[Y | score] - score over the region, in the
    population that the weights describe or among rows of new groups. Units are independent draws,
    and the regions are cut by other units, so the bets of `calibrant.limits.shift.betting` hold for
    (d + b) / (1 + b - a) in a region of scores from a to b. Groups may have rows in several
    regions, so alpha is shared by Bonferroni's rule, among the segments of the units set aside.
    """
    divided = _Divided.of(rows, weight_bound, max_group_size)
    units = divided.units
    known = [(None, np.ones(len(rows), dtype=bool)), *divided.segments(seen=True)]
    cuts = [divided.cuts(name, inside, n_bins) for name, inside in known]
    parts = _all_parts(divided, known, cuts, alpha / len(known))
    n_targets = min(len(known), 2)
    averages = _averages(divided, cuts[0], n_targets, alpha * AVERAGE_SHARE / n_targets)
    masses = [
        units.limits(unseen[~divided.cutting], alpha * UNSEEN_SHARE / n_targets)[1]
        for unseen in _unseen_scores(divided.rows, known, cuts)[:n_targets]
    ]
    assumed = _assumed(units, divided.cutting, weight_bound)
    silent = divided.segments(seen=False)
    if silent:
        assumed += (
            f"segments without pilot rows, such as {shown(silent[0][0])}, were not audited",
        )
    if max_group_size is None and units.unit is not None:
        _warn_of_cap(parts, units)
    aside = len(rows) - parts[0].n_rows
    return Proved(
        parts,
        averages,
        (masses[0], masses[-1]),
        assumed,
        units.n_units,
        aside,
        units.population,
    )


class _Divided(DividedRows):
    """Pilot rows that only cut the regions, and rows that are counted."""

    __slots__ = ()

    def segments(self, *, seen: bool) -> list[_Segment]:
        """The segments that rows set aside have or, if not `seen`, that none of them has.

        Only rows set aside decide, because counted rows must not affect how alpha is shared.
        """
        return [
            (name, inside)
            for name, inside in _segments(self.rows)
            if (inside & self.cutting).any() == seen
        ]

    def cuts(self, name: Hashable, inside: BoolArray, n_bins: int | str) -> "_Cuts":
        """How the scores of a segment are cut, by its rows that only cut."""
        chosen = self.cutting & inside
        scores = self.rows.scores[chosen]
        groups = self.rows.groups
        n_cutting = scores.size if groups is None else np.unique(groups.codes[chosen]).size
        share = 1.0 if name is None else scores.size / max(int(self.cutting.sum()), 1)
        n_units = self.units.n_units or len(self.others)
        finest = finest_bins(max(1, round(n_units * share)), n_bins)
        return _Cuts.of(scores, finest, n_cutting)


def _all_parts(
    divided: _Divided, known: list[_Segment], cuts: list["_Cuts"], alpha: float
) -> list[Resolutions]:
    """What is proved about all rows, then about each segment with counted rows, with probability 1
    - alpha each.
    """
    parts = []
    for (name, inside), cut in zip(known, cuts, strict=True):
        members = np.flatnonzero(inside[~divided.cutting])
        if (
            members.size
        ):  # they count as among all rows: statements about segments are about the same population
            own_rows = divided.others.take(members)
            own_units = divided.units.part(members)
            in_full = divided.in_full[members]
            part = _resolve(name, own_rows, own_units, in_full, cut, alpha * REGIONS_SHARE)
            spread = _spread_of(own_rows, own_units, cut, alpha * SPREAD_SHARE)
            parts.append(replace(part, spread=spread))
    if len(parts) < len(known):  # only rows set aside saw this segment: nothing bounds its errors
        parts[1:] = [replace(part, largest_possible=1.0) for part in parts[1:]]
    return parts


def _unseen_scores(rows: MemoryRows, known: list[_Segment], cuts: list["_Cuts"]) -> FloatArray:
    """1 where no row set aside has a row's score: among all rows, and among those of its segment."""
    unseen = np.ones((2, len(rows)))
    for place, ((_, inside), cut) in enumerate(zip(known, cuts, strict=True)):
        target = 0 if place == 0 else 1
        unseen[target, inside] = ~np.isin(rows.scores[inside], cut.values)
    return unseen


def _averages(
    divided: _Divided, cuts: "_Cuts", n_targets: int, alpha: float
) -> tuple[float, float]:
    """The proved average error, and that within segments, with probability 1 - alpha each."""
    given = (divided.rows.take(divided.cutting), divided.others)
    # every other resolution: coarse ones have few signs, and fine ones uncertain signs
    levels = [np.stack([labels[0] for labels in cuts.levels(part.scores)][::2]) for part in given]
    average = _average(given, divided.units, levels, alpha)
    if n_targets == 1:
        return average, average
    n_segments = len(divided.rows.segment_names)
    apart = [
        level * n_segments + np.asarray(part.segment)
        for level, part in zip(levels, given, strict=True)
    ]
    return average, max(average, _average(given, divided.units, apart, alpha))


def _warn_of_cap(parts: list[Resolutions], units: Units) -> None:
    """Warn if the error among all rows lies outside limits for groups that count up to a learned
    cap.
    """
    n_apart = sum(part.n_apart for part in parts)
    if not n_apart:
        return
    said = (
        f"in {counted(n_apart, 'score region')}, the error among all rows lies outside the limits,"
        f" which count a group {units.counts_as}; if you want the error among all rows, set "
    )
    warn_caller(
        words((said, Setting("max_group_size"))),
        GroupCapWarning,
    )


def _segments(rows: MemoryRows) -> list[_Segment]:
    """The rows of each segment."""
    names = () if rows.segment is None else rows.segment_names
    return [(name, np.asarray(rows.segment) == number) for number, name in enumerate(names)]


@dataclass(frozen=True, slots=True, eq=False)
class _Cuts:
    """How scores are cut, by rows that are not counted.

    Attributes
    ----------
    edges : float array
        The edges between the finest bins.
    values : float array
        The score values seen.
    finite : bool
        Whether there are so few of them, each seen so often, that each is a region.
    outer : pair of float or None
        The highest of the lowest scores, and the lowest of the highest: the outer thirds of
        `outer_signs`. None if there are no two thirds.
    """

    edges: FloatArray
    values: FloatArray
    finite: bool
    outer: tuple[float, float] | None

    @classmethod
    def of(cls, scores: FloatArray, finest: int, n_units: int) -> "_Cuts":
        values, counts = np.unique(scores, return_counts=True)
        edges = (
            np.unique(np.quantile(scores, np.arange(1, finest) / finest))
            if scores.size
            else np.empty(0)
        )
        return cls(
            edges,
            values,
            bool(values.size) and few_values(values.size, round(n_units / CUTTING_SHARE)),
            _outer_thirds(values, counts),
        )

    def levels(self, scores: FloatArray) -> list[tuple[IndexArray, FloatArray, FloatArray]]:
        """Coarse to fine: the region of each row, or -1, and the lowest and highest score of each
        region.
        """
        region = np.searchsorted(self.edges, scores, side="right")
        bounds = np.concatenate([[0.0], self.edges, [1.0]])
        found = [(region, bounds[:-1], bounds[1:])]
        while found[0][1].size > 1:
            low = found[0][1]
            high = found[0][2]
            found.insert(
                0,
                (
                    found[0][0] // 2,
                    low[::2],
                    np.append(high[1::2], high[-1:] if low.size % 2 else []),
                ),
            )
        if self.finite:
            place = np.minimum(np.searchsorted(self.values, scores), self.values.size - 1)
            found.append(
                (
                    np.where(self.values[place] == scores, place, -1),
                    self.values,
                    self.values,
                )
            )
        return found


def _outer_thirds(values: FloatArray, counts: IndexArray) -> tuple[float, float] | None:
    signs = outer_signs(counts.astype(np.float64), values) if values.size else np.empty(0)
    if not ((signs < 0).any() and (signs > 0).any()):
        return None
    return float(values[signs < 0].max()), float(values[signs > 0].min())


def _spread_of(rows: MemoryRows, units: Units, cuts: _Cuts, alpha: float) -> Spread | None:
    """Whether the scores are overconfident or underconfident, with probability 1 - alpha.

    The bets are on the mean of sign times (label - score) over rows with the lowest and the highest
    scores. With signs that rows set aside fixed, its size is at most sup |E[Y | score] - score|.
    """
    if cuts.outer is None:
        return None
    highest = rows.scores >= cuts.outer[1]
    inside = np.flatnonzero(highest | (rows.scores <= cuts.outer[0]))
    if not inside.size:
        return None
    some = rows.take(inside)
    sign = np.where(highest[inside], 1.0, -1.0)
    outcomes = (sign * (some.codes - some.scores) + 1.0) / 2.0
    place = np.zeros(inside.size, dtype=np.intp)
    limits = units.part(inside).means(outcomes, place, 1, alpha)
    too_low = 2.0 * float(limits.lower[0]) - 1.0
    too_high = 1.0 - 2.0 * float(limits.upper[0])
    weights = units.weights(len(rows))[inside]
    return Spread(
        error=max(too_low, too_high, _ROUNDING) - _ROUNDING,
        overconfident=too_high > too_low,
        count=inside.size,
        mean_score=float(np.average(some.scores, weights=weights)),
        rate=float(np.average(some.codes, weights=weights)),
        low=float(some.scores.min()),
        high=float(some.scores.max()),
    )


def _columns_of(
    rows: MemoryRows, weights: FloatArray, place: IndexArray, error: Interval
) -> dict[str, Any]:
    """Columns of the table, for regions whose error lies in an interval; `place` is the region of
    each row.
    """
    total = np.bincount(place, weights)
    mean = np.bincount(place, weights * rows.scores) / total
    smallest = np.full(total.size, np.inf)
    largest = np.full(total.size, -np.inf)
    np.minimum.at(smallest, place, rows.scores)
    np.maximum.at(largest, place, rows.scores)
    proved = np.maximum(error.lower, -error.upper) - _ROUNDING
    return {
        "low": smallest,
        "high": largest,
        "counts": np.bincount(place),
        "mean_score": np.clip(mean, smallest, largest),
        "rate": np.bincount(place, weights * rows.codes) / total,
        "lower": np.clip(mean + error.lower, 0.0, 1.0),
        "upper": np.clip(mean + error.upper, 0.0, 1.0),
        "error": np.maximum(proved, 0.0),
    }


def _resolve(
    segment: Hashable,
    rows: MemoryRows,
    units: Units,
    in_full: FloatArray,
    cuts: _Cuts,
    alpha: float,
) -> Resolutions:
    """What is proved about each region of some rows.

    `in_full` holds the weights of rows without a cap on groups.
    """
    levels = cuts.levels(rows.scores)
    weights = units.weights(len(rows))
    parts: list[dict[str, Any]] = []
    offset = 0
    farthest = 1.0
    above = np.full(len(rows), -1)
    n_apart = 0
    for level, (region, low_end, high_end) in enumerate(levels):
        inside = np.flatnonzero(region >= 0)
        if not inside.size:
            continue
        present = np.bincount(region[inside], minlength=low_end.size) > 0
        seen = np.flatnonzero(present)
        place = (np.cumsum(present) - 1)[region[inside]]
        some = rows.take(inside)
        ends = Interval(low_end[seen], high_end[seen])
        share = alpha / (len(levels) * low_end.size)
        errors = _error_limits(some, units.part(inside), place, ends, share)
        # only the region's ends bound the average score in the population
        unknown = Interval(np.zeros(seen.size), np.ones(seen.size))
        relative = relative_limits(unknown, ends, errors)
        n_apart += _n_apart(some, in_full[inside], place, errors)
        # nothing is known about a region without rows
        farthest = _largest_error(errors) if seen.size == low_end.size else 1.0
        parent = np.empty(seen.size, dtype=np.intp)
        parent[place] = above[inside]  # regions of the next level lie within those of the last
        parts.append(
            {
                "resolution": np.full(seen.size, level),
                "parent": parent,
                **_columns_of(some, weights[inside], place, errors),
                "relative_lower": relative.lower,
                "relative_upper": relative.upper,
            }
        )
        above = np.full(len(rows), -1)
        above[inside] = offset + place
        offset += seen.size
    table, found = _joined(segment, parts)
    # a score value that only counted rows have is not a region, so nothing bounds its error
    finite = cuts.finite and bool((levels[-1][0] >= 0).all())
    n_values = np.unique(rows.scores).size
    reach = min(1.0, farthest + _ROUNDING)
    return Resolutions(
        table,
        found,
        reach,
        finite=finite,
        n_values=n_values,
        n_singletons=0,
        n_apart=n_apart,
    )


def _joined(segment: Hashable, parts: list[dict[str, Any]]) -> tuple[AuditTable, IndexArray]:
    """The table of the regions of all levels, and the parent of each region."""
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    above = columns.pop("parent")
    names = np.empty(above.size, dtype=object)
    names.fill(segment)
    return AuditTable(segment=names, **columns), above


def _error_limits(
    rows: MemoryRows, units: Units, place: IndexArray, ends: Interval, alpha: float
) -> Interval:
    """Limits on the mean error of each region: label minus score, which lies within the ends of the
    region.
    """
    most = ends.upper
    span = 1.0 + most - ends.lower
    outcomes = (rows.codes - rows.scores + most[place]) / span[place]
    limits = units.means(outcomes, place, most.size, alpha)
    return Interval(span * limits.lower - most, span * limits.upper - most)


def _n_apart(rows: MemoryRows, weights: FloatArray, place: IndexArray, errors: Interval) -> int:
    """Number of regions whose mean error over all rows lies outside its limits."""
    whole = np.bincount(place, weights)
    sums = np.bincount(place, weights * (rows.codes - rows.scores))
    error = sums / np.maximum(whole, 1e-300)
    outside = (error < errors.lower - _ROUNDING) | (error > errors.upper + _ROUNDING)
    return int(np.count_nonzero(outside))


def _largest_error(errors: Interval) -> float:
    return float(np.maximum(np.abs(errors.lower), np.abs(errors.upper)).max())


def _average(
    given: tuple[MemoryRows, MemoryRows], units: Units, levels: list[Any], alpha: float
) -> float:
    """Proved average error: the mean of label minus score, with signs that rows set aside gave to
    regions.

    Signs that are fixed beforehand can only make the mean smaller than that of |E[Y | score] -
    score|.
    """
    best = 0.0
    cut, others = given
    for before, now in zip(*levels, strict=True):
        size = int(max(before.max(initial=-1), now.max(initial=-1))) + 1
        held = before >= 0
        sums = np.bincount(before[held], (cut.codes - cut.scores)[held], minlength=size)
        signs = np.append(
            np.where(sums < 0.0, -1.0, 1.0), 0.0
        )  # the last entry is for rows in no region
        sign = signs[np.maximum(now, -1)]
        outcomes = (sign * (others.codes - others.scores) + 1.0) / 2.0
        best = max(best, 2.0 * units.limits(outcomes, 2.0 * alpha / len(levels[0]))[0] - 1.0)
    return best


def _assumed(units: Units, cutting: BoolArray, weight_bound: float | None) -> tuple[str, ...]:
    """What must be true, and what the audit is about."""
    set_aside = (
        f"the {counted(int(cutting.sum()), 'pilot row')} that cut the regions were drawn at random"
    )
    if units.unit is None:
        return (
            (
                "the rows with their importance weights are independent draws from one"
                " distribution; the statements are about the population in which each row counts by"
                " its weight"
            ),
            f"no importance weight exceeds {units.bound:g}",
            set_aside,
        )
    weighted = (
        "" if weight_bound is None else ", in the population in which each row counts by its weight"
    )
    return (
        (
            "the groups are independent draws from one distribution; the statements are about rows of"
            f" new groups{weighted}, where a group counts {units.counts_as}"
        ),
        *(() if weight_bound is None else (f"no importance weight exceeds {weight_bound:g}",)),
        set_aside,
    )
