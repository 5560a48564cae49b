"""Score bins of one segment, or of many laid end to end, so that no work is done once per segment."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.cells.partition import Partition
from calibrant.text.numbers import EDGE, short_edges
from calibrant.text.sentences import ScoreRange

if TYPE_CHECKING:
    from calibrant.cells.score_partition import ScorePartition

_CHUNK = 1 << 15  # rows that are searched together: their numbers fit in the cache


class Rest(Enum):
    """The name of all segments without their own bins, including segments that no row had in `fit`."""

    OTHER = "other"

    def __str__(self) -> str:
        return self.value


OTHER = Rest.OTHER


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedScores:
    """Checked scores, and the index of each row's segment."""

    scores: NDArray[Any]
    segment: IndexArray

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, index: IndexArray) -> SegmentedScores:
        return SegmentedScores(self.scores[index], self.segment[index])


def scores_of(prepared: NDArray[Any] | SegmentedScores) -> NDArray[Any]:
    """The scores, without the segments."""
    return prepared if isinstance(prepared, np.ndarray) else prepared.scores


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The doubles of each segment, cut into cells.

    Attributes
    ----------
    cuts : float array
        Where one cell of a segment ends and the next begins: increasing within each segment,
        segment by segment.
    starts : int array of shape (n_segments + 1,)
        Where the cuts of each segment begin, and where the last ones end.
    """

    cuts: FloatArray
    starts: IndexArray

    @classmethod
    def between(cls, values: FloatArray, segment: IndexArray, n_segments: int) -> Self:
        """Return cells with the distinct finite values as cuts.

        A cut at infinity separates nothing.
        """
        # the cut after the largest double is infinite, and no score lies beyond it
        finite = np.isfinite(values)
        values = values[finite]
        segment = segment[finite]
        order = np.lexsort((values, segment))
        values = values[order]
        segment = segment[order]
        new = np.ones(values.size, dtype=bool)
        new[1:] = (values[1:] != values[:-1]) | (segment[1:] != segment[:-1])
        sizes = np.bincount(segment[new], minlength=n_segments)
        cuts = values[new]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        cuts.flags.writeable = False
        return cls(cuts, starts)

    @property
    def first(self) -> IndexArray:
        """The first cell of each segment, and the number of all cells."""
        return self.starts + np.arange(self.starts.size)

    @property
    def segment(self) -> IndexArray:
        """Segment of each cell."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts) + 1)

    def bounds(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Where each cell begins and ends, given where each segment does."""
        begin, end = np.empty((2, self.cuts.size + low.size))
        first = self.first
        inner = np.ones(begin.size, dtype=bool)
        inner[first[:-1]] = False
        begin[first[:-1]] = low
        begin[inner] = self.cuts
        end[first[1:] - 1] = high
        end[:-1][inner[1:]] = self.cuts
        return begin, end

    def find(self, scores: NDArray[Any], segment: IndexArray) -> IndexArray:
        """The cell of each row, numbered over all segments, by one binary search for all rows that
        need the same number of steps.
        """
        # one segment: numpy searches faster than the loop below
        if self.starts.size == 2:
            return self.cuts.searchsorted(scores, side="right")
        widths = np.diff(self.starts)
        # a binary search among w cuts takes as many steps as w has binary digits
        steps = np.frexp(widths)[1]
        cell = self.first[segment]
        for depth in np.unique(steps[steps > 0]).tolist():
            alike = steps == depth
            # pad the cuts of these segments with infinities, so that all searches have the same
            # length
            table = np.full((np.count_nonzero(alike), 1 << depth), np.inf)
            table[np.arange(1 << depth) < widths[alike, None]] = self.cuts[np.repeat(alike, widths)]
            begin = (np.cumsum(alike) - 1) << depth
            every = np.flatnonzero(alike[segment])
            for start in range(0, every.size, _CHUNK):
                rows = every[start : start + _CHUNK]
                score = scores[rows]
                first = begin[segment[rows]]
                place = first.copy()
                for step in 1 << np.arange(depth)[::-1]:
                    place += (table.take(place + (step - 1)) <= score) * step
                cell[rows] += place - first
        return cell


class Layout:
    """The regions of score bins, of one segment or of many.

    See `ScorePartition` for what edges, atoms and ranks mean.

    Attributes
    ----------
    n_atoms, n_uncounted : int
        The number of single score values that are regions of their own, and of edge values that
        count in no region.
    low, high : float arrays of shape (n_segments,)
        The score range of each segment.
    cells : Cells
        The regions.
    count_cells : Cells
        The regions, with every edge value that counts in no region or is absorbed by a bin as a
        separate cell.
    count_regions : int array
        Region of each of these cells; -1 for an edge value that counts in no region.
    absorbed_cells : int array
        The cells that are edge values absorbed by the bin to their right.
    """

    def __init__(self, parts: Sequence[ScorePartition]) -> None:
        self._parts = parts
        sizes = [part.edges.size for part in parts]
        self._edges = np.concatenate([part.edges for part in parts])
        self._segment = np.repeat(np.arange(len(parts)), sizes)
        self._is_atom = np.concatenate([part.is_atom for part in parts])
        self._is_absorbed = np.concatenate([part.is_absorbed for part in parts])
        self._own_sample = np.array([part.cuts_own_sample for part in parts])
        self.low, self.high = np.array([(part.low, part.high) for part in parts]).T
        self._after = next_double(self._edges, np.inf)
        uncounted = self._own_sample[self._segment] & ~self._is_atom & ~self._is_absorbed
        # no double lies between such an edge and the next one, so it begins no bin
        closed_in = uncounted.copy()
        closed_in[-1:] = False
        closed_in[:-1] &= (self._after[:-1] == self._edges[1:]) & (
            self._segment[:-1] == self._segment[1:]
        )
        # a cut at each edge, and one after each single value, so that it is a cell of its own
        self.cells = self._cells(~closed_in, self._is_atom)
        self.count_cells = self._cells(
            np.ones_like(closed_in), self._is_atom | self._is_absorbed | uncounted
        )
        begin, _ = self.count_cells.bounds(
            np.full(len(parts), -np.inf), np.full(len(parts), np.inf)
        )
        self.n_atoms = int(self._is_atom.sum())
        self.n_uncounted = int(uncounted.sum())
        self.count_regions = self.cells.find(begin, self.count_cells.segment)
        self.count_regions[
            self.count_cells.find(self._edges[uncounted], self._segment[uncounted])
        ] = -1
        self.count_regions.flags.writeable = False
        self.absorbed_cells = self.count_cells.find(
            self._edges[self._is_absorbed], self._segment[self._is_absorbed]
        )

    def _cells(self, edges: BoolArray, after: BoolArray) -> Cells:
        values = np.concatenate([self._edges[edges], self._after[after]])
        segment = np.concatenate([self._segment[edges], self._segment[after]])
        return Cells.between(values, segment, len(self._parts))

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Where each region begins, and the first double after it or the end of the score range."""
        return self.cells.bounds(self.low, self.high)

    def bounds(self) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
        """For each region its infimum and supremum, whether it is a single value, and whether it
        follows one.
        """
        begin, end = self.ends
        single, at_edge, follows = np.zeros((3, begin.size), dtype=bool)
        # bins that follow a single value begin after it, so they are shown open on the left
        at = self.cells.find(self._edges, self._segment)
        single[at[self._is_atom]] = True
        at_edge[at[begin[at] == self._edges]] = True
        next_cell = self.cells.find(self._after[self._is_atom], self._segment[self._is_atom])
        follows[next_cell[begin[next_cell] == self._after[self._is_atom]]] = True
        follows &= ~at_edge
        begin = np.where(follows, next_double(begin, -np.inf), begin)
        return begin, np.where(single, begin, end), single, follows

    def names(self) -> list[ScoreRange]:
        """One readable name per region, such as '[0.1, 0.2)', or '{0.5}' for a single value; people
        read '0.1 to 0.2' and 'exactly 0.5'.
        """
        begin, end, single, follows = self.bounds()
        open_left = self._own_sample[self.cells.segment] | follows | (begin == -np.inf)
        open_left[self.count_regions[self.absorbed_cells]] = False
        closed_right = np.zeros(begin.size, dtype=bool)
        closed_right[self.cells.first[1:] - 1] = True
        closed_right &= end < np.inf
        starts, ends = short_edges(begin.tolist(), end.tolist())
        columns = (column.tolist() for column in (begin, end, single, open_left, closed_right))
        exact = [_exact_name(*region) for region in zip(*columns, strict=True)]
        plain = map(_plain_name, exact, starts, ends)
        return list(map(ScoreRange, exact, plain))

    def ranks(self, rows: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """First and last rank of each edge among the rows of its segment, counted per cell, and the
        number of these rows.
        """
        total = np.cumsum(rows)
        ends = total[self.cells.first[1:] - 1]
        # ranks count within a segment, so rows of earlier segments are subtracted
        before = np.concatenate([[0], ends[:-1]])
        at = self.cells.find(self._edges, self._segment)
        last = total[at] - before[self._segment]
        return last - rows[at] + 1, last, ends - before

    def cut_counts(self) -> IntArray:
        """Rows of each region in the samples whose order statistics are the edges.

        0 in segments with other edges.
        """
        counts = np.zeros(self.cells.first[-1], dtype=np.int64)
        # fixed edges say nothing about how many rows a sample has between them
        if not self._own_sample.any():
            return counts
        of_sample = self._own_sample[self._segment]
        held = self._is_atom | self._is_absorbed
        edges, segment, is_held = (
            column[of_sample] for column in (self._edges, self._segment, held)
        )
        own = [part for part in self._parts if part.cuts_own_sample]
        first, last = (
            np.concatenate([getattr(part, name) for part in own])
            for name in ("first_rank", "last_rank")
        )
        np.add.at(counts, self.cells.find(edges, segment)[is_held], (last - first + 1)[is_held])
        previous = np.where(np.diff(segment, prepend=-1) == 0, np.roll(last, 1), 0)
        np.add.at(
            counts, self.cells.find(next_double(edges, -np.inf), segment), first - 1 - previous
        )
        highest = np.zeros(len(self._parts), dtype=np.int64)
        np.maximum.at(highest, segment, last)
        counts[self.cells.first[1:] - 1] += [part.n_rows or 0 for part in self._parts] - highest
        return counts


def next_double(values: FloatArray, towards: float) -> FloatArray:
    """The next double after each value."""
    with np.errstate(
        all="ignore"
    ):  # numpy reports an underflow next to 0 and an overflow next to the largest double
        return np.nextafter(values, towards)


class Bins(Partition):
    """Bins of the score: the bins of each segment, or of a single segment, which is named None."""

    segments: tuple[Hashable, ...] = (None,)

    @property
    @abstractmethod
    def parts(self) -> tuple[ScorePartition, ...]:
        """Bins of each segment."""

    @abstractmethod
    def with_parts(self, parts: Sequence[ScorePartition]) -> Self:
        """The same segments with other bins."""

    @property
    def bins_by_segment(self) -> Mapping[Hashable, ScorePartition]:
        """Bins of the score in each segment; None is the segment of bins without segments."""
        return dict(zip(self.segments, self.parts, strict=True))

    def as_bins(self) -> Self:
        """Return these bins."""
        return self

    def numbers(self, segments: Iterable[Hashable]) -> IndexArray:
        """The index of each segment.

        For an unknown segment, the index of `OTHER`, or -1 without bins for other segments.
        """
        known = {segment: number for number, segment in enumerate(self.segments)}
        other = known.get(OTHER, -1)
        return np.array([known.get(segment, other) for segment in segments], dtype=np.intp)

    def prepared(
        self, scores: NDArray[Any], segment: IndexArray | None
    ) -> NDArray[Any] | SegmentedScores:
        """What `prepare` returns, for checked scores and the indices of their segments."""
        return scores if segment is None else SegmentedScores(scores, segment)

    def inside(self, scores: NDArray[Any], segment: IndexArray | None) -> BoolArray:
        """Whether each row is in a known segment and within its score range.

        `segment` has the indices that `numbers` returns.
        """
        low = self.layout.low
        high = self.layout.high
        number = np.zeros(1, dtype=np.intp) if segment is None else segment
        # nearly always: quantile bins accept any score
        if np.isneginf(low).all():  # a range has two ends, or none
            return np.broadcast_to(number >= 0, len(scores))
        doubles = scores.astype(np.float64, copy=False)
        return np.asarray((number >= 0) & (doubles >= low[number]) & (doubles <= high[number]))

    @cached_property
    def layout(self) -> Layout:
        """The regions of all segments, end to end."""
        return Layout(self.parts)

    @property
    def n_regions(self) -> int:
        """The number of regions."""
        return int(self.layout.cells.first[-1])

    @property
    def count_regions(self) -> IntArray:
        """Region of each cell between the count cuts; -1 for an edge value that counts in none."""
        return self.layout.count_regions

    @property
    def has_absorbed(self) -> bool:
        """Whether a bin absorbs an edge value that was seen more than once in the sample the edges
        come from.
        """
        return self.layout.absorbed_cells.size > 0

    @property
    def absorbed_cells(self) -> IndexArray:
        """Cells between the count cuts that are edge values which the bin to their right absorbs."""
        return self.layout.absorbed_cells

    def gather(self, rows: IntArray, positives: IntArray) -> tuple[IntArray, IntArray, int]:
        """Turn counts per cell between the count cuts into counts per region, and the number of
        rows that count in none.
        """
        # nothing to add up, and a copy per batch is saved
        if not self.layout.n_uncounted and not self.has_absorbed:  # each cell is a region
            return rows, positives, 0
        inside = self.count_regions >= 0
        counts = np.zeros((self.n_regions, 2), dtype=np.int64)
        both = np.column_stack([rows, positives])
        np.add.at(counts, self.count_regions[inside], both[inside])
        return counts[:, 0].copy(), counts[:, 1].copy(), int(rows[~inside].sum())

    def cut_by_cells(self, rows: IntArray, absorbing: Mapping[Hashable, int] | None = None) -> Self:
        """Return the bins whose edges are these atoms, order statistics of a sample with `rows`
        rows in each region.

        If tied edges are absorbed, `absorbing` is the number of ranks at which the edges of each
        segment were taken. A segment without atoms keeps its bins.
        """
        first, last, n_rows = self.layout.ranks(rows)
        ends = np.cumsum([part.edges.size for part in self.parts])[:-1]
        absorbing_of = [None if absorbing is None else absorbing[name] for name in self.segments]
        ranks = zip(
            self.parts,
            np.split(first, ends),
            np.split(last, ends),
            n_rows.tolist(),
            absorbing_of,
            strict=True,
        )
        return self.with_parts(
            [
                (
                    type(part)(
                        part.edges,
                        first_rank=low,
                        last_rank=high,
                        n_rows=size,
                        absorbing=edges,
                        aside=part.aside,
                    )
                    if part.atoms_only
                    else part
                )
                for part, low, high, size, edges in ranks
            ]
        )

    def if_untied(self) -> Self:
        """Return the bins whose edges are these atoms, if each atom was seen once."""
        _, _, is_single, _ = self.layout.bounds()
        return self.cut_by_cells(is_single.astype(np.int64))

    @cached_property
    def cells(self) -> Self:
        """The cells in which rows are counted, as bins: an edge value that counts in no region is a
        cell.
        """
        parts = self.parts
        return self.with_parts(
            [type(part)(part.edges, atoms=True) if part.cuts_own_sample else part for part in parts]
        )

    def cut_counts(self) -> IntArray:
        """The number of rows in each region, in the sample whose order statistics are the edges.

        It is 0 in segments with other edges.
        """
        return self.layout.cut_counts()


def _exact_name(low: float, high: float, alone: bool, opened: bool, closed: bool) -> str:
    """A region as an interval, or as a single value."""
    if alone:
        return f"{{{low:{EDGE}}}}"
    return f"{'(' if opened else '['}{low:{EDGE}}, {high:{EDGE}}{']' if closed else ')'}"


def _plain_name(exact: str, start: str, end: str) -> str:
    """The name for people of an interval, or of a single value, with short ends."""
    if exact.startswith("{"):
        return f"exactly {exact[1:-1]}"
    if start == "-inf":
        return "all scores" if end == "inf" else f"{'up to' if exact[-1] == ']' else 'below'} {end}"
    if end == "inf":
        return f"above {start}" if exact.startswith("(") else f"{start} and above"
    return f"{start} to {end}"
