"""The protocol: what an engine can do with scored data, and how calibration is made of it.

An engine carries batches to one function and adds up the results; that is all it does. Everything else, the split, the
order statistics and the tally, is written once, here.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np

from calibrant._exact import ExactSums
from calibrant._labels import Classes, UnexpectedLabelsError, settle_classes
from calibrant._typing import ArrayLike, FloatArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.partition import Partition, ScorePartition, SegmentedPartition
from calibrant.rows.adding import AddColumns
from calibrant.rows.batch import Columns
from calibrant.rows.counting import Count, Counted, KindSums
from calibrant.rows.draw import Draw
from calibrant.rows.ranks import CountBits, everything, refine
from calibrant.rows.sampling import CountSegments, Sample, TakeSample
from calibrant.rows.values import FindValues, Values
from calibrant.rows.work import Result, Work
from calibrant.tally import Tally, WeightSums


class ScoredData(ABC):
    """Scores and labels wherever they are: files, a table of a database, a frame, a cluster, a device.

    Made by `calibrant.scored`. It holds no rows; every method reads them anew, on the engine that has them.
    """

    columns: Columns

    @abstractmethod
    def fold(self, work: Work[Result]) -> Result:
        """Do `work` on every batch, each row once, and add up the results."""

    @abstractmethod
    def apply(self, added: AddColumns) -> Any:
        """Add columns to the data, lazily where the engine is lazy: a frame or relation of the same engine."""

    def with_columns(self, columns: Columns) -> "ScoredData":
        """The same data, with other columns in the parts."""
        other = copy(self)
        other.columns = columns
        return other

    def known_rows(self) -> int | None:
        """How many rows there are, where that is known without reading them."""
        return None

    def _many_rows(self) -> int:
        """How many rows a pass has, where that is known for nothing; else 0."""
        return 0

    def sizes(self) -> dict[Any, int]:
        """Rows of each segment, sorted by segment; without segments, of the one segment None."""
        known = self.known_rows() if self.columns.segment is None else None
        if known is not None:
            return {None: known}
        found = self.fold(CountSegments(self.columns))
        found.faults.check()
        if not found.rows:
            return {None: 0} if self.columns.segment is None else {}
        return {name: found.rows[name] for name in _sorted_segments(found.rows, self.columns) or [None]}

    def sample(self, draw: Draw) -> Sample:
        """Scores of a random part of the rows, chosen without a look at score or label."""
        sample = self.fold(TakeSample(self.columns, draw))
        sample.faults.check()
        return sample

    def values(self, most: int) -> dict[Any, Values]:
        """The distinct scores of all rows (None) and of each segment, where they are at most so many."""
        seen = self.fold(FindValues(self.columns, most))
        seen.faults.check()
        whole = [None] if None in seen.values else []
        return {name: seen.values[name] for name in [*whole, *_sorted_segments(seen.values, self.columns)]}

    def order_statistics(self, ranks: Mapping[Any, IntArray]) -> dict[Any, FloatArray]:
        """Scores of the given ranks of each segment, exactly: two passes, a third for tens of millions of doubles."""
        found: dict[Any, FloatArray] = {name: np.empty(0) for name, wanted in ranks.items() if not wanted.size}
        runs = {name: everything() for name in ranks if name not in found}
        while runs:
            seen = self.fold(CountBits(self.columns, runs))
            seen.faults.check()
            for name in list(runs):
                here = {number: counts for (segment, number), counts in seen.counts.items() if segment == name}
                shorter, values = refine(runs[name], here, ranks[name])
                if values is None:
                    runs[name] = shorter
                else:
                    found[name] = values
                    del runs[name]
        return found

    def tally(
        self,
        partition: Partition,
        *,
        classes: ArrayLike | None = None,
        pos_label: Any = None,
        without: tuple[Draw, Sample] | None = None,
        weighted: bool = False,
    ) -> tuple[Tally, Classes]:
        """Count over a partition, without the rows that were drawn to cut it; and tell the classes that were found."""
        counted = self.count(partition, draw=None if without is None else without[0], weighted=weighted)
        counted.faults.check()
        if without is not None and counted.left_out != without[1].seal:
            raise InvalidValueError(
                "the data must give the same rows each time they are read, so that those which cut the bins can be "
                f"left out of the count; got {without[1].seal.rows:,} drawn rows the first time and "
                f"{counted.left_out.rows:,} the second, or others: name an id column (id=...) or write them to a file"
            )
        return settle(counted, partition, classes, pos_label, weighted)

    def count(self, partition: Partition, *, draw: Draw | None = None, weighted: bool = False) -> Counted:
        """Count rows by region and kind of label."""
        counted = self._countable(partition, weighted)
        return self.fold(Count(self.columns, counted, draw, weighted, self._many_rows()))

    def _countable(self, partition: Partition, weighted: bool) -> ScorePartition | SegmentedPartition:
        """Refuse a partition that these data can not be counted over."""
        if not isinstance(partition, ScorePartition | SegmentedPartition):
            raise InvalidTypeError(
                f"partition must be bins of a score, or of a score within segments; got {type(partition).__name__}"
            )
        if self.columns.label is None:
            raise InvalidValueError("label must name the column of labels; got None: scored(..., label=...)")
        if isinstance(partition, SegmentedPartition) and self.columns.segment is None:
            raise InvalidValueError("segment must name the column of segments; got None: scored(..., segment=...)")
        if weighted and self.columns.weight is None:
            raise InvalidValueError("weight must name the column of weights; got None: scored(..., weight=...)")
        return partition


def _sorted_segments(names: Iterable[Any], columns: Columns) -> list[Any]:
    known = [name for name in names if name is not None]
    try:
        return sorted(known)
    except TypeError:
        kinds = sorted({type(name).__name__ for name in known})
        raise InvalidTypeError(
            f"segment column {columns.segment!r} must hold one kind of entry; got {', '.join(kinds)}"
        ) from None


def check_nothing_beside(**given: Any) -> None:
    """Refuse arrays beside scored data, which hold everything."""
    for name, value in given.items():
        if value is not None:
            raise InvalidTypeError(f"{name} must be None beside scored data: name its column in scored(...) instead")


def settle(
    counted: Counted, partition: Partition, classes: ArrayLike | None, pos_label: Any, weighted: bool
) -> tuple[Tally, Classes]:
    """Name the two classes among the kinds of label that were seen, and make the tally."""
    seen = {kind: sums for kind, sums in counted.kinds.items() if sums.uncounted or sums.counts.any()}
    try:
        known = settle_classes(list(seen), classes=classes, pos_label=pos_label)
    except UnexpectedLabelsError as error:
        error.got = f"{error.got} ({counted.where()})"
        raise
    nothing = KindSums(np.zeros(partition.n_regions, dtype=np.int64))
    negative, positive = (counted.kinds.get(label, nothing) for label in (known.negative, known.positive))
    sums = _weight_sums(negative, positive, partition.n_regions) if weighted else None
    counts = negative.counts + positive.counts
    uncounted = negative.uncounted + positive.uncounted
    return Tally(counts, positive.counts, uncounted, partition.fingerprint, sums), known


def _weight_sums(negative: KindSums, positive: KindSums, n_regions: int) -> WeightSums:
    zero = ExactSums.nothing(n_regions)
    w, w2, wy, w2y = zero, zero, zero, zero
    smallest, largest = np.full(n_regions, np.inf), np.full(n_regions, -np.inf)
    for sums in (negative, positive):
        if sums.weights is None:
            continue
        w, w2 = w + sums.weights.w, w2 + sums.weights.w2
        if sums is positive:
            wy, w2y = sums.weights.w, sums.weights.w2
        smallest, largest = np.minimum(smallest, sums.weights.smallest), np.maximum(largest, sums.weights.largest)
    return WeightSums(w, w2, wy, w2y, smallest, largest)
