"""The common kernels of all engines: rows and weights of each region, by label; rows at knots."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from calibrant._typing import IndexArray, IntArray
from calibrant.cells.bins import Bins
from calibrant.cells.knots import Knots, RowHashes
from calibrant.cells.tally import Tally, WeightSums
from calibrant.params.random import Draw, RandomSource
from calibrant.sample.batch import BatchRows, Coded, Columns, Work, missing_column, read_batch
from calibrant.sample.facts import Reach
from calibrant.sample.faults import Fault, Faults, Place
from calibrant.sample.taken_rows import Seal

MOST_KINDS = 20
"""The largest number of distinct labels that are counted."""


def of_one_label(counts: IntArray, uncounted: int = 0, weights: WeightSums | None = None) -> Tally:
    """The tally of rows with one label.

    It counts as the negative one until it is known which label is positive: `all_positive`.
    """
    return Tally(counts, np.zeros_like(counts), uncounted, weights=weights)


def all_positive(tally: Tally) -> Tally:
    """The same rows, all with the positive label."""
    weights = tally.weights
    if weights is not None:
        weights = replace(weights, wy=weights.w, w2y=weights.w2)
    return Tally(tally.counts, tally.counts, tally.uncounted, tally.over, weights)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """The counts in each region of a partition, by label.

    Also the first row of each label, and the range of the scores.
    """

    kinds: Mapping[Hashable, Tally] = field(default_factory=dict)
    first: Mapping[Hashable, Place] = field(default_factory=dict)
    left_out: Seal = field(default_factory=Seal)
    faults: Faults = field(default_factory=Faults)
    reach: Reach = field(default_factory=Reach)

    def __add__(self, other: "Counted") -> "Counted":
        kinds = dict(self.kinds)
        for kind, tally in other.kinds.items():
            if kind in kinds:
                kinds[kind] = kinds[kind] + tally
            elif len(kinds) <= MOST_KINDS:
                kinds[kind] = tally
        first = dict(self.first)
        for kind, place in other.first.items():
            first[kind] = min(first.get(kind, place), place)
        left_out = self.left_out + other.left_out
        faults = self.faults + other.faults
        return Counted(kinds, first, left_out, faults, self.reach + other.reach)

    def where(self) -> str:
        """The number of rows and the first row of each label: rare ones first, because these are
        probably wrong.
        """
        seen = [
            (tally.n_rows, kind, self.first.get(kind))
            for kind, tally in self.kinds.items()
            if tally.n_rows
        ]
        seen.sort(key=lambda entry: (entry[0], str(entry[1])))
        return "; ".join(
            f"label {kind!r}: {rows:,} {'row' if rows == 1 else 'rows'},"
            f" {'' if rows == 1 else 'the first '}{first}"
            for rows, kind, first in seen[:3]
        )


@dataclass(frozen=True, slots=True)
class Count(Work[Counted]):
    """Count rows by region and label, without the drawn rows.

    With a weight column, sum weights too.
    """

    keeps_keys: ClassVar[bool] = False
    """Whether the keys of rows are needed to count them."""

    partition: Bins
    draw: Draw | None = None
    weighted: bool = False
    pass_rows: int = 0  # rows of all data, if known

    @property
    def columns(self) -> Columns:
        """Score and label, and what else is needed."""
        wanted = {
            "segment": self.partition.has_segments,
            "weight": self.weighted,
            "id": bool(self.draw),
        }
        return self.data_columns.only(
            "label", "group", *(role for role, needed in wanted.items() if needed)
        )

    def __call__(self, batch: Any, place: Place) -> Counted:
        """Count one batch."""
        has_keys = self.keeps_keys or self.draw is not None
        rows, faults = read_batch(batch, self.columns, place, keys=has_keys)
        left_out = Seal()
        if self.draw is not None:
            drawn = rows.drawn_by(self.draw)
            index = np.flatnonzero(drawn)
            left_out = Seal.of(rows.scores[index], rows.keys[index])
            kept = rows if self.keeps_keys else replace(rows, keys=rows.keys[:0])
            rows = kept.take(~drawn)
        rows, outside = self._inside(rows, place)
        faults += outside
        reach = Reach.of(rows.scores)
        if rows.labels is None:
            return Counted({}, {}, left_out, faults, reach)
        kinds = self._count(rows, rows.labels)
        found = {
            kind: rows.first(rows.labels.number == code, place) for code, kind in enumerate(kinds)
        }
        first = {kind: one for kind, one in found.items() if one is not None}
        return Counted(kinds, first, left_out, faults, reach)

    def nothing(self) -> Counted:
        """No rows."""
        return Counted()

    def _inside(self, rows: BatchRows, place: Place) -> tuple[BatchRows, Faults]:
        """Set aside rows that are outside the score range or in a segment unknown to the partition."""
        score = self.data_columns.score
        segment = self.data_columns.segment
        good = self.partition.inside(rows.scores, segment_numbers(rows.segments, self.partition))
        if good.all():
            return rows, Faults()
        faults = Faults()
        parts = self.partition.bins_by_segment
        for name, index in (
            rows.by_segment() if self.partition.has_segments else [(None, slice(None))]
        ):
            wrong = np.zeros(len(rows), dtype=bool)
            wrong[index] = ~good[index]
            if name in parts:
                fault = Fault(
                    "score", score, f"lie between {parts[name].low:g} and {parts[name].high:g}"
                )
            else:
                rule = f"contain a segment that the bins were cut for, not {name!r}"
                fault = Fault("segment", str(segment), rule)
            faults += Faults.of(fault, rows.in_batch(wrong), place)
        return rows.take(np.flatnonzero(good)), faults

    def _count(self, rows: BatchRows, labels: Coded) -> dict[Hashable, Tally]:
        prepared = self.partition.prepared(
            rows.scores, segment_numbers(rows.segments, self.partition)
        )
        kinds = labels.names
        number = labels.number
        if len(kinds) == 2 and not self.weighted:
            codes = number.astype(np.uint8, copy=False)
            counts, positives, uncounted = self.partition.count(
                prepared, codes, pass_rows=self.pass_rows
            )
            # rows in no region are edge values seen once; their labels need a second pass, which is
            # rare
            hits = (
                int(np.count_nonzero(number[self.partition.membership(prepared) < 0]))
                if uncounted
                else 0
            )
            negative = of_one_label(counts - positives, uncounted - hits)
            return {kinds[0]: negative, kinds[1]: of_one_label(positives, hits)}
        regions = self.partition.membership(prepared)
        return {
            kind: self._tally(rows, regions, number == code)
            for code, kind in enumerate(kinds[: MOST_KINDS + 1])
        }

    def _tally(self, rows: BatchRows, regions: Any, chosen: Any) -> Tally:
        n_regions = self.partition.n_regions
        here = chosen & (regions >= 0)
        counts = np.bincount(regions[here], minlength=n_regions).astype(np.int64)
        uncounted = int(np.count_nonzero(chosen)) - int(np.count_nonzero(here))
        if not self.weighted or rows.weights is None:
            return of_one_label(counts, uncounted)
        weights = rows.weights[here]
        sums = WeightSums.of(
            weights, regions[here], np.zeros(len(weights), dtype=np.uint8), n_regions
        )
        return of_one_label(counts, uncounted, sums)


@dataclass(frozen=True, slots=True)
class CountKnots(Count):
    """Count rows by place, half and label, without drawn rows; see `calibrant.cells.knots`.

    The random numbers of a row come from its position or its id.
    """

    keeps_keys: ClassVar[bool] = True
    knots: Knots = field(kw_only=True)
    source: RandomSource = field(kw_only=True)

    @property
    def columns(self) -> Columns:
        """Score and label, and what else is needed."""
        wanted = ("segment",) if self.partition.has_segments else ()
        return self.data_columns.only("label", "id", *wanted)

    @property
    def needs_positions(self) -> bool:
        """Each row's position determines the knot where it counts."""
        return True

    def _count(self, rows: BatchRows, labels: Coded) -> dict[Hashable, Tally]:
        """Rows of each label by place and half."""
        kinds = labels.names[: MOST_KINDS + 1]
        number = np.minimum(labels.number, len(kinds) - 1)  # with more, labels raise an error
        counts = self.knots.count(
            self.partition.prepared(rows.scores, segment_numbers(rows.segments, self.partition)),
            number,
            RowHashes(self.source, rows.keys),
            n_labels=len(kinds),
            pass_rows=self.pass_rows,
        )
        return {kind: of_one_label(counts[..., code].ravel()) for code, kind in enumerate(kinds)}


def segment_numbers(segments: Coded | None, partition: Bins) -> IndexArray | None:
    """The index of each row's segment in the partition; -1 if the partition does not have it.

    None without segments.
    """
    if not partition.has_segments:
        return None
    if segments is None:
        raise missing_column("segment")
    return partition.numbers(segments.names)[segments.number]
