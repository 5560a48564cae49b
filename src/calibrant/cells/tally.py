"""The second of the four ideas: counts of each region, as sums that add.

Because tallies add, a fit runs out of core, on many machines, or in a stream, and can be saved and
merged, with no second code path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._optional import pandas
from calibrant._typing import ArrayLike, CodeArray, FloatArray, Frame, IndexArray, IntArray
from calibrant.cells.exact_sums import ExactSums
from calibrant.cells.group_counts import GroupCounts
from calibrant.cells.partition import Partition
from calibrant.errors import InvalidValueError
from calibrant.params.arrays import as_weights, as_whole, check_same_length
from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import Instance, Integer, check_type
from calibrant.params.state_kinds import Maybe, Nested, NumbersOrNull, Whole, Written

_EXACT = Written(lambda sums: sums.to_list(), lambda value, name, known: ExactSums.from_list(value))
_COUNTS = "be one whole number per region"
_MOST_ROWS_IN_ALL = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class WeightSums(Saved):
    """The sums of w, w², wy and w²y of each region, and the smallest and largest w (infinities for
    a region without rows).

    The sums are exact (see `calibrant.cells.exact_sums`; w² is rounded once per row), so any split,
    merged in any order, gives the identical tally.
    """

    _entries: ClassVar[EntryTable] = {
        "w": _EXACT,
        "w2": _EXACT,
        "wy": _EXACT,
        "w2y": _EXACT,
        "smallest": NumbersOrNull(np.inf, low=0.0),
        "largest": NumbersOrNull(-np.inf, low=0.0),
    }

    w: ExactSums
    w2: ExactSums
    wy: ExactSums
    w2y: ExactSums
    smallest: FloatArray
    largest: FloatArray

    @classmethod
    def of(cls, weights: FloatArray, regions: IndexArray, codes: CodeArray, n_regions: int) -> Self:
        """Sum the weights of rows in `regions`."""
        squares = weights * weights
        hit = codes == 1
        w, w2 = (ExactSums.of(values, regions, n_regions) for values in (weights, squares))
        wy, w2y = (
            ExactSums.of(values[hit], regions[hit], n_regions) for values in (weights, squares)
        )
        return cls(w, w2, wy, w2y, *extremes(weights, weights, regions, n_regions))

    @property
    def _sums(self) -> tuple[ExactSums, ...]:
        return self.w, self.w2, self.wy, self.w2y

    def part(self, regions: slice) -> WeightSums:
        """The sums of some of the regions."""
        w, w2, wy, w2y = (sums.part(regions) for sums in self._sums)
        return WeightSums(w, w2, wy, w2y, self.smallest[regions], self.largest[regions])

    def regrouped(self, regions: IndexArray, n_regions: int) -> WeightSums:
        """Add up regions that are merged; those mapped to -1 are left out."""
        w, w2, wy, w2y = (sums.regrouped(regions, n_regions) for sums in self._sums)
        inside = regions >= 0
        low_and_high = extremes(
            self.smallest[inside], self.largest[inside], regions[inside], n_regions
        )
        return WeightSums(w, w2, wy, w2y, *low_and_high)

    def __add__(self, other: WeightSums) -> WeightSums:
        w, w2, wy, w2y = (
            mine + theirs for mine, theirs in zip(self._sums, other._sums, strict=True)
        )
        smallest = np.minimum(self.smallest, other.smallest)
        largest = np.maximum(self.largest, other.largest)
        return WeightSums(w, w2, wy, w2y, smallest, largest)

    def __eq__(self, other: object) -> bool:
        return (
            self.to_dict() == other.to_dict() if isinstance(other, WeightSums) else NotImplemented
        )

    def _check_state(self, known: Known) -> None:
        sizes = [*map(len, self._sums), self.smallest.size, self.largest.size]
        if len(set(sizes)) > 1:
            rule = "have one entry per region in every sum"
            raise InvalidValueError("weights", rule, got="different lengths")
        for total, part in ((self.w, self.wy), (self.w2, self.w2y)):
            if not (ExactSums([0] * len(total)).at_most(part) and part.at_most(total)):
                raise InvalidValueError("sums of weights", "lie between 0 and the whole")
        seen = np.isfinite(self.smallest)
        same = np.array_equal(seen, np.isfinite(self.largest))
        if not same or (self.smallest > self.largest)[seen].any():
            rule = "be at most the largest weights, and null in the same regions"
            raise InvalidValueError("smallest weights", rule)


@dataclass(frozen=True, slots=True, eq=False)
class Tally(Saved):
    """The counts or sums in each region of a partition.

    `tally_a + tally_b` is the tally of both data sets.

    Attributes
    ----------
    counts, positives : int arrays of shape (n_regions,)
        The number of rows, and of rows with the positive label.
    uncounted : int
        The number of rows outside every region (see `Partition.uniform_mass`).
    over : Partition, str or None
        The partition, or only its fingerprint, as in a saved tally; tallies over different
        partitions cannot be added. The fingerprint is computed only when it is needed.
    weights : WeightSums or None
        Sums of importance weights, if they were given.
    absorbed : Tally or None
        The counts at the edges that bins absorb; these rows count in their bins too.
    groups : GroupCounts or None
        The number of groups with each number of rows and positives in a region, if rows have
        groups.

    Examples
    --------
    >>> bins = Partition.fixed_width(2)
    >>> monday = Tally.from_data(bins, [0.1, 0.2, 0.9], [0, 1, 1])
    >>> tuesday = Tally.from_data(bins, [0.3, 0.7], [0, 1])
    >>> monday + tuesday
    Tally(counts=[3, 2], positives=[1, 2])
    """

    _schema: ClassVar[str] = "calibrant.tally/1"
    _entries: ClassVar[EntryTable] = {
        "counts": Whole(),
        "positives": Whole(),
        "uncounted": Integer(0),
        "partition": Maybe(Instance(str, "a fingerprint or null")),
        "weights": Maybe(Nested(WeightSums)),
        "absorbed": Entry(Maybe(Nested(lambda: Tally)), absent=None),
        "groups": Entry(Maybe(Nested(GroupCounts)), absent=None),
    }

    counts: IntArray
    positives: IntArray
    uncounted: int = 0
    over: Partition | str | None = None
    weights: WeightSums | None = field(default=None, repr=False)
    absorbed: Tally | None = field(default=None, repr=False)
    groups: GroupCounts | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("counts", "positives"):
            array = as_whole(getattr(self, name), name, _COUNTS)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        rows = self.counts
        hits = self.positives
        if rows.shape != hits.shape or rows.size == 0:
            got = f"{rows.shape}, {hits.shape}"
            raise InvalidValueError("counts and positives", "have one entry per region", got=got)
        if (hits > rows).any():
            region = int(np.flatnonzero(hits > rows)[0])
            got = f"{hits[region]} of {rows[region]} in region {region}"
            raise InvalidValueError("positives", "lie between 0 and counts", got=got)
        object.__setattr__(self, "uncounted", Integer(0).check("uncounted", self.uncounted))
        if self.n_rows > _MOST_ROWS_IN_ALL:
            raise InvalidValueError("counts", "add up to at most 2**62 rows", got=str(self.n_rows))
        if self.groups is not None and (
            self.groups.region.max(initial=-1) >= rows.size
            or not all(map(np.array_equal, self.groups.totals(rows.size), (rows, hits)))
        ):
            raise InvalidValueError(
                "groups", "add up to the rows and the positives of every region"
            )

    @classmethod
    def from_counts(
        cls, counts: ArrayLike, positives: ArrayLike, *, partition: Partition | None = None
    ) -> Self:
        """Make a tally from counts taken elsewhere, for example by a GROUP BY."""
        if partition is not None:
            check_type("partition", partition, Partition, "a Partition")
        tally = cls(
            as_whole(counts, "counts", _COUNTS),
            as_whole(positives, "positives", _COUNTS),
            over=partition,
        )
        if partition is not None and partition.n_regions != tally.n_regions:
            rule = f"have one entry per region, {partition.n_regions}"
            raise InvalidValueError("counts", rule, got=str(tally.n_regions))
        return tally

    @classmethod
    def from_data(
        cls,
        partition: Partition,
        inputs: ArrayLike,
        y: ArrayLike,
        *,
        segments: ArrayLike | None = None,
        importance_weight: ArrayLike | None = None,
    ) -> Self:
        """Tally labels 0 and 1, or -1 and 1, over the regions of `partition`."""
        from calibrant.params.labels import classes_of, encode_labels, name_classes

        check_type("partition", partition, Partition, "a Partition")
        classes = classes_of(y, name_classes((0, 1), pos_label=1))
        codes, _ = encode_labels(y, classes=classes, pos_label=1, score_columns=1)
        prepared = partition.prepare(inputs, segments)
        check_same_length(prepared, codes)
        weights = None if importance_weight is None else as_weights(importance_weight, len(codes))
        return cls.of_codes(partition, prepared, codes, weights=weights)

    @classmethod
    def of_codes(
        cls,
        partition: Partition,
        prepared: Any,
        codes: CodeArray,
        *,
        weights: FloatArray | None = None,
        repeats: IntArray | None = None,
        groups: IndexArray | None = None,
        threads: int = 1,
    ) -> Self:
        """Tally prepared inputs and coded labels.

        `repeats` is the number of identical rows that each row stands for, and `groups` the index
        of each row's group.
        """
        # a group's rows in a region are one entry, so rows are counted by group first
        if groups is not None:
            regions = partition.membership(prepared, threads=threads)
            table = GroupCounts.of(regions, codes, groups)
            totals = table.totals(partition.n_regions)
            return cls(*totals, int(np.count_nonzero(regions < 0)), partition, groups=table)
        # rows at an absorbed edge are counted apart, too: their labels may get limits of their own
        if partition.has_absorbed:
            bins = partition.as_bins()
            cells = cls.of_codes(
                bins.cells, prepared, codes, weights=weights, repeats=repeats, threads=threads
            )
            return cells.regrouped(bins.count_regions, bins)  # type: ignore[return-value]
        # the kernels count plain rows without an array of regions
        if weights is None and repeats is None:
            return cls(*partition.count(prepared, codes, threads=threads), partition)
        regions = partition.membership(prepared, threads=threads)
        inside = regions >= 0
        times = np.ones(len(codes), dtype=np.int64) if repeats is None else repeats
        counts, positives = np.zeros((2, partition.n_regions), dtype=np.int64)
        np.add.at(counts, regions[inside], times[inside])
        np.add.at(positives, regions[inside], (times * codes)[inside])
        sums = None
        if weights is not None:
            sums = WeightSums.of(
                weights[inside], regions[inside], codes[inside], partition.n_regions
            )
        return cls(counts, positives, int(times[~inside].sum()), partition, sums)

    def regrouped(self, regions: IndexArray, partition: Partition) -> Tally:
        """The tally over a partition whose regions are made of these.

        Rows in regions that map to -1 are uncounted.
        """
        inside = regions >= 0
        counts, positives = np.zeros((2, partition.n_regions), dtype=np.int64)
        np.add.at(counts, regions[inside], self.counts[inside])
        np.add.at(positives, regions[inside], self.positives[inside])
        weights = (
            None if self.weights is None else self.weights.regrouped(regions, partition.n_regions)
        )
        uncounted = self.uncounted + int(self.counts[~inside].sum())
        absorbed = None
        if partition.has_absorbed:
            cells = partition.as_bins().absorbed_cells
            absorbed = Tally(self.counts[cells], self.positives[cells])
        groups = None if self.groups is None else self.groups.regrouped(regions)
        return Tally(counts, positives, uncounted, partition, weights, absorbed, groups)

    def part(self, regions: slice) -> Tally:
        """Some of the regions, as a tally without a partition."""
        weights = None if self.weights is None else self.weights.part(regions)
        groups = None if self.groups is None else self.groups.part(regions, self.n_regions)
        return Tally(self.counts[regions], self.positives[regions], weights=weights, groups=groups)

    @property
    def partition(self) -> str | None:
        """Fingerprint of the partition."""
        return (
            self.over if self.over is None or isinstance(self.over, str) else self.over.fingerprint
        )

    @property
    def n_regions(self) -> int:
        """The number of regions."""
        return len(self.counts)

    @property
    def n_rows(self) -> int:
        """The number of rows, including those in no region."""
        return int(sum(self.counts.tolist())) + self.uncounted

    @property
    def rates(self) -> FloatArray:
        """Share of positives in each region; NaN if a region has no rows."""
        rates = np.full(self.n_regions, np.nan)
        np.divide(self.positives, self.counts, out=rates, where=self.counts > 0)
        return rates

    def __add__(self, other: object) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        # equal fingerprints, not equal objects: tallies come from files and other machines
        if self.partition != other.partition or self.n_regions != other.n_regions:
            got = f"different ones, of {self.n_regions} and {other.n_regions} regions"
            advice = "fit the second with the first's partition_"
            raise InvalidValueError(
                "tallies", "be taken over one partition to be added", got=got, advice=advice
            )
        if (self.weights is None) != (other.weights is None):
            rule = "both have importance weights, or neither, to be added"
            raise InvalidValueError("tallies", rule, got="one with weights")
        if (self.groups is None) != (other.groups is None):
            raise InvalidValueError(
                "tallies", "both have groups, or neither, to be added", got="one with groups"
            )
        return Tally(
            self.counts + other.counts,
            self.positives + other.positives,
            self.uncounted + other.uncounted,
            self.over,
            None if self.weights is None or other.weights is None else self.weights + other.weights,
            (
                None
                if self.absorbed is None or other.absorbed is None
                else self.absorbed + other.absorbed
            ),
            None if self.groups is None or other.groups is None else self.groups + other.groups,
        )

    def __radd__(self, other: object) -> Tally:
        return self if other == 0 else NotImplemented  # so that sum() works

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Tally) else NotImplemented

    def __repr__(self) -> str:
        return f"Tally(counts={self.counts.tolist()}, positives={self.positives.tolist()})"

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        return cls(over=values.pop("partition"), **values)

    def _check_state(self, known: Known) -> None:
        weights = self.weights
        if weights is not None and (np.isinf(weights.smallest) & (self.counts > 0)).any():
            raise InvalidValueError("weights", "have a smallest weight in every region with rows")

    def to_frame(self) -> Frame:
        """Return the tally as a pandas frame, one row per region."""
        return pandas().DataFrame(
            {"count": self.counts, "positives": self.positives, "rate": self.rates}
        )


def extremes(
    low: FloatArray, high: FloatArray, regions: IndexArray, n_regions: int
) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest number of each region.

    Infinities for regions without any.
    """
    smallest = np.full(n_regions, np.inf)
    largest = np.full(n_regions, -np.inf)
    np.minimum.at(smallest, regions, low)
    np.maximum.at(largest, regions, high)
    return smallest, largest


def check_tally(partition: Partition, tally: Tally) -> None:
    """Check that a tally was made with this partition."""
    check_type("partition", partition, Partition, "a Partition")
    check_type("tally", tally, Tally, "a Tally")
    if tally.n_regions != partition.n_regions:
        rule = f"have one entry per region, {partition.n_regions}"
        raise InvalidValueError("tally", rule, got=str(tally.n_regions))
    is_same = tally.over is None or tally.over is partition
    if not is_same and tally.partition != partition.fingerprint:
        raise InvalidValueError(
            "tally", "have been taken over this partition", got="one taken over another"
        )
