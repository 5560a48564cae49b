"""What is shown about rows with weights or groups.

Labels are then not independent given the scores. So pilot units, drawn at random, cut the regions,
and limits are found by bets on the other units.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.assess.audit.findings import (
    OVERCONFIDENT,
    REGIONS_SHARE,
    SPREAD_SHARE,
    UNDERCONFIDENT,
    Finding,
    Resolutions,
    finest_bins,
    nested_regions,
)
from calibrant.assess.audit.plain_evidence import outer_signs
from calibrant.assess.metrics.bin_sums import few_values
from calibrant.assess.metrics.independent_units import CUTTING_SHARE, DividedRows, Units
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.cells.score_counts import ScoreCounts
from calibrant.errors import InvalidValueError
from calibrant.guarantee.relative import relative_limits
from calibrant.limits.interval import Interval
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.numbers import counted
from calibrant.text.sentences import shown

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class _Segment:
    """All rows, or those of a segment, and how their scores are cut, by pilot rows.

    Attributes
    ----------
    name : object
        The segment; None for all rows.
    inside : bool array of shape (n_rows,)
        Which rows it has.
    edges : float array
        Between the finest bins.
    values : float array
        The scores of pilot rows.
    finite : bool
        Whether there are so few of them, each seen so often, that each is a region.
    signs : float array
        -1 for the lowest of these scores, 1 for the highest: see `outer_signs`.
    """

    name: Hashable
    inside: BoolArray
    edges: FloatArray
    values: FloatArray
    finite: bool
    signs: FloatArray

    @classmethod
    def of(cls, divided: DividedRows, name: Hashable, inside: BoolArray, n_bins: int | str) -> Self:
        """Cut the scores of a segment by its pilot rows."""
        chosen = divided.cutting & inside
        scores = divided.rows.scores[chosen]
        if not scores.size:
            return cls(name, inside, scores, scores, False, scores)
        groups = divided.rows.groups
        n_cutting = scores.size if groups is None else np.unique(groups.codes[chosen]).size
        share = 1.0 if name is None else scores.size / np.count_nonzero(divided.cutting)
        n_units = divided.units.n_units or len(divided.others)
        finest = finest_bins(max(1, round(n_units * share)), n_bins)
        values, counts = np.unique(scores, return_counts=True)
        return cls(
            name,
            inside,
            np.unique(np.quantile(scores, np.arange(1, finest) / finest)),
            values,
            few_values(values.size, round(n_cutting / CUTTING_SHARE)),
            outer_signs(counts.astype(np.float64), values).astype(np.float64),
        )

    def levels(self, scores: FloatArray) -> list[tuple[IndexArray, Interval]]:
        """Coarse to fine: the region of each row, or -1, and the ends of each region."""
        region = np.searchsorted(self.edges, scores, side="right")
        ends = np.concatenate([[0.0], self.edges, [1.0]])
        found = [(region, Interval(ends[:-1], ends[1:]))]
        while ends.size > 2:
            region = region // 2
            ends = np.append(ends[:-1:2], 1.0)
            found.insert(0, (region, Interval(ends[:-1], ends[1:])))
        if self.finite:
            place = np.minimum(np.searchsorted(self.values, scores), self.values.size - 1)
            value = np.where(self.values[place] == scores, place, -1)
            found.append((value, Interval(self.values, self.values)))
        return found

    def outer(self, scores: FloatArray) -> FloatArray:
        """-1 for rows with the lowest scores, 1 for rows with the highest, 0 for others, and for all
        if there are no such scores.
        """
        if self.signs.size == 0 or not (self.signs[0] < 0.0 < self.signs[-1]):
            return np.zeros(scores.size)
        lowest = scores <= self.values[self.signs < 0.0][-1]
        return np.where(scores >= self.values[self.signs > 0.0][0], 1.0, -1.0 * lowest)


@dataclass(frozen=True, slots=True, eq=False)
class UnitEvidence:
    """Pilot rows that only cut the regions, and rows that are counted.

    In a region, a unit (a weighted row, or the rows of a group) has weight w and weighted mean d of
    label minus score. E[w d] / E[w] is the mean of E[Y | score] - score over the region, in the
    population that the weights describe or among rows of new groups. Units are independent draws,
    and the regions are cut by other units, so the bets of `calibrant.limits.bet_limits` hold for d
    in a region of scores from a to b, where it lies between -b and 1 - a. Groups may have rows in
    several regions, so alpha is shared by Bonferroni's rule, among the segments of the pilot units.

    Attributes
    ----------
    divided : DividedRows
        The rows.
    segments : list
        All rows, and each segment with pilot rows. Only pilot rows decide, because counted rows
        must not affect how alpha is shared.
    assumptions : tuple of str
        What must be true.
    """

    divided: DividedRows
    segments: list[_Segment]
    assumptions: tuple[str, ...]

    @classmethod
    def of(cls, rows: MemoryRows, n_bins: int | str) -> Self:
        """Draw pilot units, and cut the scores by their rows."""
        divided = DividedRows.of(rows)
        segments: list[tuple[Hashable, BoolArray]] = [(None, np.ones(len(rows), dtype=bool))]
        silent = []
        for number, name in enumerate(rows.segment_names):
            inside = np.asarray(rows.segment == number)
            if (inside & divided.cutting).any():
                segments.append((name, inside))
            else:
                silent.append(name)
        cuts = [_Segment.of(divided, *segment, n_bins) for segment in segments]
        units = divided.units
        about = f"the statements are about the error{units.population}"
        if units.grouped:
            about += f", where a group counts {units.counts_as}"
        pilot = counted(int(divided.cutting.sum()), "pilot row")
        drawn = f"the {pilot} that cut the regions were drawn at random"
        assumed = [units.assumption, about, drawn]
        if rows.bounds.weight_bound is not None:
            assumed.append(f"no importance weight exceeds {rows.bounds.weight_bound:g}")
        if silent:
            such = f"such as {shown(silent[0])}"
            assumed.append(f"segments without pilot rows, {such}, were not audited")
        return cls(divided, cuts, tuple(assumed))

    @property
    def units(self) -> Units:
        """The units of the counted rows."""
        return self.divided.units

    @property
    def n_set_aside(self) -> int:
        """The number of pilot rows."""
        return int(np.count_nonzero(self.divided.cutting))

    def band(self, confidence_level: float) -> MonotoneBand:
        """Raise an error: rows in groups are dependent, and weighted rows do not count equally."""
        rule = "be False with groups or importance weights"
        raise InvalidValueError("monotone", rule, got="True")

    def resolutions(self, segment: int, alpha: float) -> Resolutions | None:
        """The regions of a segment, limits that hold for all of them, and whether its scores are too
        extreme, or not extreme enough; None without counted rows.

        Rows of a segment count as among all rows: statements about segments are about the same
        population.
        """
        cuts = self.segments[segment]
        members = np.flatnonzero(cuts.inside[~self.divided.cutting])
        if not members.size:
            return None
        rows = self.divided.others.take(members)
        units = self.units.part(members)
        levels = cuts.levels(rows.scores)
        weights = units.weights(len(rows))
        order = np.argsort(rows.scores, kind="stable")
        entries = ScoreCounts(rows.scores[order], weights[order], (weights * rows.codes)[order])
        each = np.ones(order.size, dtype=np.int64)
        regions = nested_regions(entries, each, [region[order] for region, _ in levels])
        mean = regions["mean_score"]
        share = REGIONS_SHARE * alpha / len(levels)
        limits = [_error_limits(rows, units, *level, share) for level in levels]
        errors, within = map(Interval.joined, zip(*limits, strict=True))
        rates = Interval(*(np.clip(mean + end, 0.0, 1.0) for end in (errors.lower, errors.upper)))
        # only the region's ends bound the average score in the population
        unknown = Interval(np.zeros(mean.size), np.ones(mean.size))
        finest, ends = levels[-1]
        found = Resolutions.of(
            cuts.name,
            regions,
            rates,
            errors,
            relative_limits(unknown, within, errors),
            _ROUNDING,
            # a score value that only counted rows have is not a region, so nothing bounds its error
            finite=cuts.finite and bool((finest >= 0).all()),
            n_values=np.unique(rows.scores).size,
            spread=_spread(rows, units, cuts, SPREAD_SHARE * alpha),
        )
        n_present = limits[-1][0].lower.size
        if n_present < ends.lower.size:  # nothing is known about a region without rows
            return replace(found, largest_possible=1.0)
        return found

    def average_error(
        self, parts: Sequence[Resolutions], alpha: float, *, within_segments: bool
    ) -> float:
        """A lower bound on the average error, with signs that pilot rows gave to regions."""
        divided = self.divided
        pilot = divided.rows.take(divided.cutting)
        # every other resolution: coarse ones have few signs, and fine ones uncertain signs
        levels = [
            [
                (
                    region * len(some.segment_names) + np.asarray(some.segment)
                    if within_segments
                    else region
                )
                for region, _ in self.segments[0].levels(some.scores)[::2]
            ]
            for some in (pilot, divided.others)
        ]
        pairs = list(zip(*levels, strict=True))
        return average_by_signs(pilot, divided.others, divided.units, pairs, alpha)

    def unseen_mass(self, alpha: float, *, within_segments: bool) -> float:
        """An upper bound on the mass of scores, or of scores within a segment, that no pilot row
        has.
        """
        scores = self.divided.rows.scores
        unseen = np.ones(scores.size)
        for cuts in self.segments[1:] if within_segments else self.segments[:1]:
            unseen[cuts.inside] = ~np.isin(scores[cuts.inside], cuts.values)
        return self.units.limits(unseen[~self.divided.cutting], alpha)[1]


def _spread(rows: MemoryRows, units: Units, cuts: _Segment, alpha: float) -> Finding | None:
    """Whether the scores of a segment are too extreme, or not extreme enough.

    The bets are on the mean of sign times (label - score) over rows with the lowest and the highest
    scores. With signs that pilot rows fixed, its size is at most sup |E[Y | score] - score|.
    """
    sign = cuts.outer(rows.scores)
    inside = np.flatnonzero(sign)
    if not inside.size:
        return None
    outer = rows.take(inside)
    of_outer = units.part(inside)
    outcomes = sign[inside] * (outer.codes - outer.scores)
    too_low, high = of_outer.limits(outcomes, alpha, ends=(-1.0, 1.0))
    too_high = -high
    return Finding(
        segment=cuts.name,
        low=float(outer.scores.min()),
        high=float(outer.scores.max()),
        direction=OVERCONFIDENT if too_high > too_low else UNDERCONFIDENT,
        error=max(too_low, too_high, _ROUNDING) - _ROUNDING,
        count=inside.size,
        mean_score=of_outer.mean(outer.scores),
        rate=of_outer.mean(outer.codes),
    )


def _error_limits(
    rows: MemoryRows, units: Units, region: IndexArray, ends: Interval, alpha: float
) -> tuple[Interval, Interval]:
    """Limits on the mean error, label minus score, of each region that has rows, and its ends."""
    inside = np.flatnonzero(region >= 0)
    place = region[inside]
    size = ends.lower.size
    errors = (rows.codes - rows.scores)[inside]
    ranges = (-ends.upper, 1.0 - ends.lower)
    limits = units.part(inside).means(errors, place, size, alpha / size, ends=ranges)
    present = np.unique(place)
    return (
        Interval(limits.lower[present], limits.upper[present]),
        Interval(ends.lower[present], ends.upper[present]),
    )


def average_by_signs(
    pilot: MemoryRows,
    others: MemoryRows,
    units: Units,
    levels: Sequence[tuple[IndexArray, IndexArray]],
    alpha: float,
) -> float:
    """Average error shown: the mean of label minus score, with signs that pilot rows gave to
    regions, at the best of several resolutions. `levels` has the regions of pilot rows and of
    others.

    Signs that are fixed beforehand can only make the mean smaller than that of |E[Y | score] -
    score|.
    """
    best = 0.0
    for before, now in levels:
        size = int(max(before.max(initial=-1), now.max(initial=-1))) + 1
        held = before >= 0
        sums = np.bincount(before[held], (pilot.codes - pilot.scores)[held], minlength=size)
        # the last entry is for rows in no region
        signs = np.append(np.where(sums < 0.0, -1.0, 1.0), 0.0)
        outcomes = signs[np.maximum(now, -1)] * (others.codes - others.scores)
        low, _ = units.limits(outcomes, 2.0 * alpha / len(levels), ends=(-1.0, 1.0))
        best = max(best, low)
    return best
