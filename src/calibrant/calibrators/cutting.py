"""From rows to a partition and its tally: which rows cut the edges, and which are counted."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant._input import check_in_range
from calibrant._labels import Classes
from calibrant._params import as_generator
from calibrant._typing import ArrayLike, BoolArray, CodeArray, FloatArray, IndexArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.partition import Partition, ScorePartition, SegmentedPartition
from calibrant.partition.scores import check_enough_rows, edge_ranks
from calibrant.partition.segments import SegmentedScores, segment_kinds
from calibrant.rows import ScoredData
from calibrant.rows.draw import Draw
from calibrant.rows.sampling import Sample
from calibrant.tally import Tally

BinRule: TypeAlias = Callable[[int, int], int]
"""Number of bins, from how many rows there are and how many of them cut the edges."""


class Source(ABC):
    """Calibration rows, in memory or not: all that cutting and counting need of them.

    Segments are told by name; without any there is one, None.
    """

    @abstractmethod
    def sizes(self) -> dict[Any, int]:
        """Rows of each segment."""

    @abstractmethod
    def order_statistics(self, ranks: Mapping[Any, IntArray]) -> Mapping[Any, FloatArray]:
        """Scores of the given ranks of each segment."""

    @abstractmethod
    def tally_over(self, partition: Partition) -> tuple[Tally, Classes]:
        """Count the rows, and tell their classes."""

    @abstractmethod
    def split(self, split: float, random_state: Any) -> "Split":
        """Draw a random part of the rows."""

    @abstractmethod
    def check_in_range(self, low: float, high: float) -> None:
        """Refuse scores outside the range, where that is told before the count."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Scores of a random part of the rows, by segment; the other rows; and how many there are in all."""

    drawn: Mapping[Any, FloatArray]
    others: Source
    n_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Rows(Source):
    """Checked rows in memory: scores, labels as 0 and 1, how often each counts, and which segment it is in."""

    scores: NDArray[Any]
    codes: CodeArray
    classes: Classes
    repeats: IntArray | None = None
    segment: IndexArray | None = None
    segment_names: tuple[Any, ...] = ()
    threads: int = 1

    @classmethod
    def of(
        cls,
        scores: NDArray[Any],
        codes: CodeArray,
        classes: Classes,
        repeats: IntArray | None = None,
        segments: ArrayLike | None = None,
        threads: int = 1,
    ) -> Self:
        """Number the segments, refuse those that do not match the scores, and leave out rows that stand for none."""
        if segments is None:
            return cls(scores, codes, classes, repeats, threads=threads)._counted()
        names, segment = segment_kinds(segments)
        if segment.shape != scores.shape:
            raise InvalidValueError(
                f"segments must have one entry per score, {scores.shape[0]}; got {segment.shape[0]}"
            )
        return cls(scores, codes, classes, repeats, segment, tuple(names), threads)._counted()

    def _counted(self) -> Self:
        """Leave out rows that stand for none, and segments of such rows only: a weight of 0 is no row."""
        if self.repeats is None or self.repeats.all():
            return self
        rows = self.take(self.repeats > 0)
        if rows.segment is None:
            return rows
        present, segment = np.unique(rows.segment, return_inverse=True)
        return replace(rows, segment=segment, segment_names=tuple(self.segment_names[number] for number in present))

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def total(self) -> int:
        """How many rows these stand for."""
        return len(self.scores) if self.repeats is None else int(self.repeats.sum())

    def take(self, index: Any) -> Self:
        """The rows at `index`."""
        return replace(
            self,
            scores=self.scores[index],
            codes=self.codes[index],
            repeats=None if self.repeats is None else self.repeats[index],
            segment=None if self.segment is None else self.segment[index],
        )

    def _by_segment(self) -> list[tuple[Any, Self]]:
        if self.segment is None:
            return [(None, self)]
        parts = ((name, self.take(self.segment == number)) for number, name in enumerate(self.segment_names))
        return [(name, replace(part, segment=None, segment_names=())) for name, part in parts]

    def sizes(self) -> dict[Any, int]:
        """Rows of each segment."""
        return {name: part.total for name, part in self._by_segment()}

    def check_in_range(self, low: float, high: float) -> None:
        """Refuse scores outside the range."""
        check_in_range(self.scores, low, high)

    def order_statistics(self, ranks: Mapping[Any, IntArray]) -> dict[Any, FloatArray]:
        """Scores of the given ranks of each segment."""
        return {name: part._ranked(ranks[name]) for name, part in self._by_segment()}

    def _ranked(self, ranks: IntArray) -> FloatArray:
        if self.repeats is None:
            return kernels.order_statistics(self.scores, ranks, threads=self.threads)
        order = np.argsort(self.scores, kind="stable")
        at = np.searchsorted(np.cumsum(self.repeats[order]), ranks)
        return np.asarray(self.scores[order][at], dtype=np.float64)

    def tally_over(self, partition: Partition) -> tuple[Tally, Classes]:
        """Count the rows."""
        prepared = self.scores if self.segment is None else SegmentedScores(self.scores, self.segment)
        tally = Tally._of(partition, prepared, self.codes, repeats=self.repeats, threads=self.threads)
        return tally, self.classes

    def draw(self, split: float, random_state: Any) -> BoolArray:
        """Which rows a random part holds."""
        if self.repeats is not None:
            raise InvalidValueError(
                "sample_weight must be None when split is used; got weights: repeat the rows instead"
            )
        cuts = np.zeros(len(self), dtype=bool)
        size = cutting_rows(split, len(self))
        cuts[as_generator(random_state).choice(len(self), size, replace=False, shuffle=False)] = True
        return cuts

    def split(self, split: float, random_state: Any) -> Split:
        """Draw a random part of the rows."""
        return self.parted(self.draw(split, random_state))

    def parted(self, cuts: BoolArray) -> Split:
        """The rows that cut, and the others."""
        drawn = {name: part.scores for name, part in self.take(cuts)._by_segment()}
        return Split(drawn, self.take(~cuts), len(self))


@dataclass(frozen=True, slots=True, eq=False)
class Remote(Source):
    """Rows on an engine, with what it takes to name their classes; without those that were drawn to cut bins."""

    data: ScoredData
    given_classes: ArrayLike | None
    pos_label: Any
    without: tuple[Draw, Sample] | None = None
    weighted: bool = False

    def sizes(self) -> dict[Any, int]:
        """Rows of each segment."""
        return self.data.sizes()

    def check_in_range(self, low: float, high: float) -> None:
        """Nothing: the count, which is the one pass over such rows, tells them."""

    def order_statistics(self, ranks: Mapping[Any, IntArray]) -> dict[Any, FloatArray]:
        """Scores of the given ranks of each segment."""
        return self.data.order_statistics(ranks)

    def tally_over(self, partition: Partition) -> tuple[Tally, Classes]:
        """Count the rows."""
        return self.data.tally(
            partition,
            classes=self.given_classes,
            pos_label=self.pos_label,
            without=self.without,
            weighted=self.weighted,
        )

    def split(self, split: float, random_state: Any) -> Split:
        """Draw about as many rows as asked for."""
        sizes = self.sizes()
        n_rows = sum(sizes.values())
        draw = Draw(int(as_generator(random_state).integers(2**63)), cutting_rows(split, n_rows) / n_rows)
        sample = self.data.sample(draw)
        if not sample.seal.rows:
            raise InvalidValueError(f"split must draw some rows to cut with; got none of {n_rows:,}: draw more")
        drawn = {name: sample.of_segment(name) for name in sizes}
        return Split(drawn, replace(self, without=(draw, sample)), n_rows)


def cutting_rows(split: float, n_rows: int) -> int:
    """How many rows cut the bins."""
    n_cutting = round(split * n_rows) if isinstance(split, float | np.floating) else int(split)
    if not 1 <= n_cutting < n_rows:
        raise InvalidValueError(f"split must leave rows both to cut and to count; got split={split!r} of {n_rows} rows")
    return n_cutting


def fixed_width(source: Source, n_bins: BinRule, score_range: tuple[float, float]) -> tuple[Partition, Tally, Classes]:
    """Bins of equal width, for which no row is needed."""
    source.check_in_range(*score_range)

    def cut(rows: int) -> ScorePartition:
        return ScorePartition.fixed_width(check_enough_rows(rows, n_bins(rows, rows)), score_range)

    partition = _each(source.sizes(), cut)
    return partition, *source.tally_over(partition)


def own_quantiles(source: Source, n_bins: BinRule) -> tuple[Partition, Tally, Classes]:
    """Bins between order statistics of all rows, each of which is counted too."""
    sizes = source.sizes()
    ranks = _each_value(sizes, lambda rows: edge_ranks(rows, n_bins(rows, rows)))
    edges = source.order_statistics(ranks)
    atoms = _each_value(edges, ScorePartition.atoms)
    counted, classes = source.tally_over(_joined(atoms))
    parts = list(atoms.values())
    ends = np.cumsum([part.n_regions for part in parts])[:-1]
    rows, positives = np.split(counted.counts, ends), np.split(counted.positives, ends)
    cut = [part.cut_by_cells(here) for part, here in zip(parts, rows, strict=True)]
    gathered = [part.gather(*here) for part, *here in zip(cut, rows, positives, strict=True)]
    partition = _joined(dict(zip(atoms, cut, strict=True)))
    counts, hits = (np.concatenate([part[index] for part in gathered]) for index in (0, 1))
    return partition, Tally(counts, hits, sum(part[2] for part in gathered), partition.fingerprint), classes


def split_quantiles(
    source: Source, n_bins: BinRule, split: float, random_state: Any
) -> tuple[Partition, Tally, Classes]:
    """Bins between quantiles of a random part of the rows, which only cuts; the others count (the paper's way)."""
    parts = source.split(split, random_state)
    partition = cut_drawn(parts, n_bins)
    return partition, *parts.others.tally_over(partition)


def cut_drawn(parts: Split, n_bins: BinRule) -> Partition:
    """Bins between quantiles of the drawn part; a segment of which no row was drawn is one bin."""
    share = sum(map(len, parts.drawn.values())) / parts.n_rows

    def cut(scores: FloatArray) -> ScorePartition:
        if not len(scores):
            return ScorePartition(np.empty(0))
        return ScorePartition.from_other_scores(scores, n_bins(round(len(scores) / share), len(scores)))

    return _each(parts.drawn, cut)


def _each(parts: Mapping[Any, Any], cut: Callable[[Any], ScorePartition]) -> Partition:
    """Bins of each segment."""
    return _joined(_each_value(parts, cut))


def _each_value(parts: Mapping[Any, Any], make: Callable[[Any], Any]) -> dict[Any, Any]:
    made = {}
    for name, part in parts.items():
        try:
            made[name] = make(part)
        except InvalidValueError as error:
            raise (error if name is None else InvalidValueError(f"in segment {name!r}: {error}")) from None
    return made


def _joined(parts: dict[Any, ScorePartition]) -> Partition:
    return parts[None] if None in parts else SegmentedPartition(parts)
