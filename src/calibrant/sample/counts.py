"""The common kernels of all engines: rows and weights of each region, by label; rows at knots."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from calibrant._typing import BoolArray, IndexArray, IntArray
from calibrant.cells.bins import Bins
from calibrant.cells.knots import Knots
from calibrant.cells.score_counts import ScoreSums
from calibrant.cells.tally import Tally, WeightSums
from calibrant.params.labels import Classes, UnexpectedLabelsError
from calibrant.params.random import Draw, RandomSource
from calibrant.sample.batch import (
    MOST_KINDS,
    BatchRows,
    Coded,
    Columns,
    Work,
    missing_column,
)
from calibrant.sample.facts import Reach
from calibrant.sample.faults import Fault, Faults, Place
from calibrant.sample.order_statistics import MovedRowsError
from calibrant.sample.taken_rows import Seal, Taken

_Kinds: TypeAlias = dict[Hashable, Tally]
"""The tally of the rows with each label."""


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
    scores: ScoreSums | None = None
    """The sums of the scores in each region, if requested."""

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
        scores = self.scores
        if scores is not None and other.scores is not None:
            scores = scores + other.scores
        reach = self.reach + other.reach
        return Counted(kinds, first, left_out, faults, reach, scores or other.scores)

    def classes(self, settled: Callable[[Mapping[Hashable, int]], Classes]) -> Classes:
        """The two classes, as `settled` from the number of rows with each label."""
        try:
            return settled({kind: one.n_rows for kind, one in self.kinds.items() if one.n_rows})
        except UnexpectedLabelsError as error:
            if not self.left_out.rows:
                error.got = f"{error.got} ({self.where()})"
            raise

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

    nothing = Counted()
    partition: Bins
    draw: Draw | None = None
    weighted: bool = False

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

    def of_rows(self, rows: BatchRows, place: Place) -> Counted:
        """Count one batch."""
        faults = rows.faults
        no_rows = np.zeros(len(rows), dtype=bool)
        drawn = no_rows if self.draw is None else rows.drawn_by(self.draw)
        aside = rows.take(np.flatnonzero(drawn))  # counted with the others, and then subtracted
        left_out = Seal.of(aside.scores, aside.keys)
        if self.weighted or not are_inside(rows, self.partition).all():
            rows, outside = self._inside(rows.take(~drawn) if len(aside) else rows, place)
            faults += outside
            aside = aside.take(np.empty(0, dtype=np.intp))
        reach = Reach.of(rows.scores)
        if len(aside) and not Reach.of(aside.scores).is_within(reach):
            reach = Reach.of(rows.scores[~drawn])
        if rows.labels is None:
            return Counted({}, {}, left_out, faults, reach)
        kinds, sums = self._count(rows, rows.labels)
        if len(aside) and aside.labels is not None:
            for kind, of_drawn in self._count(aside, aside.labels)[0].items():
                counts = kinds[kind].counts - of_drawn.counts
                kinds[kind] = of_one_label(counts, kinds[kind].uncounted - of_drawn.uncounted)
        first = rows.first_places(rows.labels, place)
        return Counted(kinds, first, left_out, faults, reach, sums)

    def _inside(self, rows: BatchRows, place: Place) -> tuple[BatchRows, Faults]:
        """Leave out rows that are outside the score range or in a segment unknown to the partition."""
        score = self.data_columns.score
        segment = self.data_columns.segment
        good = are_inside(rows, self.partition)
        faults = Faults()
        if good.all():
            return rows, faults
        parts = self.partition.bins_by_segment
        for name, index in rows.by_segment():
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

    def _count(self, rows: BatchRows, labels: Coded) -> tuple[_Kinds, ScoreSums | None]:
        """The tally of each label, and the sums of the scores, if they are added up."""
        prepared = located(rows, self.partition)
        kinds = labels.names
        if len(kinds) != 2 or self.weighted:
            regions = self.partition.membership(prepared)
            return {
                kind: self._tally(rows, regions, labels.number == code)
                for code, kind in enumerate(kinds[: MOST_KINDS + 1])
            }, None
        codes = labels.number.astype(np.uint8, copy=False)
        counts, positives, uncounted = self.partition.count(prepared, codes, threads=rows.threads)
        hits = 0
        if uncounted:  # edge values seen once; their labels need a second search, which is rare
            hits = int(codes[self.partition.membership(prepared) < 0].sum())
        negative = of_one_label(counts - positives, uncounted - hits)
        return {kinds[0]: negative, kinds[1]: of_one_label(positives, hits)}, None

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
class CountScores(Count):
    """Count rows by region and label, and add up the scores of each region."""

    def _count(self, rows: BatchRows, labels: Coded) -> tuple[_Kinds, ScoreSums | None]:
        regions = self.partition.membership(located(rows, self.partition))
        sums = ScoreSums.of(rows.scores, regions, self.partition.n_regions)
        names = labels.names[: MOST_KINDS + 1]
        number = np.minimum(labels.number, len(names) - 1)  # with more, labels raise an error
        cells = regions * len(names) + number  # every row is in a region
        counts = np.bincount(cells, minlength=self.partition.n_regions * len(names))
        of_labels = counts.reshape(-1, len(names)).T
        return dict(zip(names, map(of_one_label, of_labels), strict=True)), sums


@dataclass(frozen=True, slots=True)
class CountKnots(Count):
    """Count rows by place, half and label, without drawn rows; see `calibrant.cells.knots`.

    The random numbers of a row come from its position or its id.
    """

    needs_keys = True  # which determine the knots where rows count
    knots: Knots = field(kw_only=True)
    source: RandomSource = field(kw_only=True)

    @property
    def columns(self) -> Columns:
        """Score and label, and what else is needed."""
        wanted = ("segment",) if self.partition.has_segments else ()
        return self.data_columns.only("label", "id", *wanted)

    def _count(self, rows: BatchRows, labels: Coded) -> tuple[_Kinds, ScoreSums | None]:
        """Rows of each label by place and half."""
        kinds = labels.names[: MOST_KINDS + 1]
        number = np.minimum(labels.number, len(kinds) - 1)  # with more, labels raise an error
        counts = self.knots.count(
            located(rows, self.partition),
            number,
            self.source,
            rows.keys,
            n_labels=len(kinds),
            threads=rows.threads,
        )
        of_labels = np.moveaxis(counts, -1, 0).reshape(len(kinds), -1)
        return dict(zip(kinds, map(of_one_label, of_labels), strict=True)), None


def located(rows: BatchRows, partition: Bins) -> Any:
    """The rows as the methods of a partition take them: scores, with segments if there are any."""
    return partition.prepared(rows.scores, _segment_numbers(rows, partition))


def are_inside(rows: BatchRows, partition: Bins) -> BoolArray:
    """Whether each row is in a known segment and within its score range."""
    return partition.inside(rows.scores, _segment_numbers(rows, partition))


def _segment_numbers(rows: BatchRows, partition: Bins) -> IndexArray | None:
    """The index of each row's segment in the partition; -1 if the partition does not have it.

    None without segments.
    """
    if not partition.has_segments:
        return None
    if rows.segments is None:
        raise missing_column("segment")
    return partition.numbers(rows.segments.names)[rows.segments.number]


def check_counted(counted: Counted, taken: Taken | None) -> None:
    """Raise an error for unusable rows, and if the rows left out are not the rows drawn."""
    counted.faults.check()
    seal = None if taken is None else taken.seal
    if seal is not None and counted.left_out != seal:
        rule = (
            "give the same rows each time they are read, so that rows which cut the bins are not"
            " counted"
        )
        got = (
            f"{seal.rows:,} drawn rows the first time and {counted.left_out.rows:,} the second, or"
            " others"
        )
        advice = "name an id column, scored(..., id=...), or write the data to a file"
        raise MovedRowsError("the data", rule, got=got, advice=advice)


def tally_of(counted: Counted, n_regions: int, known: Classes, weighted: bool = False) -> Tally:
    """Return the tally of rows with two known labels."""
    sums = None
    if weighted:
        no_rows = np.empty(0, dtype=np.uint8)
        sums = WeightSums.of(np.empty(0), no_rows.astype(np.intp), no_rows, n_regions)
    nothing = of_one_label(np.zeros(n_regions, dtype=np.int64), 0, sums)
    negative, positive = (
        counted.kinds.get(label, nothing) for label in (known.negative, known.positive)
    )
    return negative + all_positive(positive)
