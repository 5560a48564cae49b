"""Regions of a score: bins between edges, and single values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant._typing import ArrayLike, CodeArray, FloatArray, IndexArray, IntArray
from calibrant.cells.bins import Bins, next_double
from calibrant.errors import InvalidValueError
from calibrant.params.arrays import as_scores, check_in_range
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import Flag, Integer
from calibrant.params.state_kinds import Constant, Maybe, Most, NumberOrNull, Numbers, Whole
from calibrant.text.sentences import Setting

_EVERYWHERE = (-np.inf, np.inf)
_MOST_ROWS = 2**62
_RANKS = Maybe(Whole(size="edges.size", most=_MOST_ROWS))


class ScorePartition(Bins):
    """Half-open bins between edges.

    An edge value may be a region of its own, or count in no region.

    Every region is a run of doubles [c, d): the region of a single value a is [a, next double after
    a). So for all kinds of regions, the work on rows comes down to one question: how many cuts are
    at most the score?

    Parameters
    ----------
    edges : array of shape (m,)
        Strictly increasing inner edges.
    score_range : (float, float)
        Scores outside it raise an error; (-inf, inf) accepts all scores.
    first_rank, last_rank : int arrays of shape (m,), optional
        For edges that are order statistics of the tallied sample: the ranks that each edge value
        occupies in it. A value with several ranks is a region of its own, an atom; a value with one
        rank counts in no region.
    n_rows : int, optional
        Size of that sample.
    absorbing : int, optional
        The number of ranks, fixed beforehand, at which the edges were taken, if the bin to the
        right of a value with several ranks absorbs that value. A value with at least as many rows
        as the bin stays a region of its own.
    aside : int
        Number of pilot rows of the segment: they were drawn at random before any row was counted,
        and are not counted.
    atoms : bool
        Whether every edge value is a region of its own.
    """

    _entries: ClassVar[EntryTable] = {
        "kind": Constant("scores"),
        "edges": Numbers(increasing=True),
        "low": NumberOrNull(-np.inf),
        "high": NumberOrNull(np.inf),
        "first_rank": _RANKS,
        "last_rank": _RANKS,
        "n_rows": Maybe(Most(_MOST_ROWS, "2**62")),
        "atoms": Entry(Flag(), of="atoms_only"),
        "absorbing": Entry(Maybe(Integer(0)), absent=None),
        "aside": Entry(Integer(0), absent=0),
    }

    def __init__(
        self,
        edges: FloatArray,
        score_range: tuple[float, float] = _EVERYWHERE,
        *,
        first_rank: IntArray | None = None,
        last_rank: IntArray | None = None,
        n_rows: int | None = None,
        absorbing: int | None = None,
        aside: int = 0,
        atoms: bool = False,
    ) -> None:
        self.edges = _frozen(edges + 0.0)  # -0.0 becomes 0.0
        self.low, self.high = score_range
        self.first_rank = None if first_rank is None else _frozen(first_rank)
        self.last_rank = None if last_rank is None else _frozen(last_rank)
        self.n_rows = n_rows
        self.absorbing = absorbing
        self.aside = aside
        self.atoms_only = atoms

    @property
    def is_atom(self) -> NDArray[np.bool_]:
        """For each edge, whether its value is a region of its own."""
        if self.first_rank is not None:
            return self.is_tied & ~self.is_absorbed if self.absorbing is not None else self.is_tied
        return np.full(self.edges.size, self.atoms_only)

    @property
    def is_tied(self) -> NDArray[np.bool_]:
        """For each edge, whether its value was seen more than once in the sample from which it is
        an order statistic.
        """
        if self.first_rank is None or self.last_rank is None:
            return np.zeros(self.edges.size, dtype=bool)
        return np.asarray(self.last_rank > self.first_rank)

    @property
    def is_absorbed(self) -> NDArray[np.bool_]:
        """For each edge, whether its value is part of the bin to its right, and was seen more than
        once.

        This depends only on the ranks and the edges, so the labels of the bin and of the value stay
        independent of it.
        """
        tied = self.is_tied
        if (
            self.absorbing is None
            or self.first_rank is None
            or self.last_rank is None
            or not tied.any()
        ):
            return np.zeros(self.edges.size, dtype=bool)
        # nothing would be left of the bin but its edge
        alone = next_double(self.edges, np.inf) == np.append(
            self.edges[1:], np.nan
        )  # no double lies in the bin
        return np.asarray(tied & (self.last_rank - self.first_rank + 1 < self.rows_after) & ~alone)

    @property
    def rows_after(self) -> IntArray:
        """For each edge, how many rows of that sample lie strictly between it and the next edge."""
        if self.first_rank is None or self.last_rank is None or self.n_rows is None:
            return np.zeros(self.edges.size, dtype=np.int64)
        return np.asarray(np.append(self.first_rank[1:] - 1, self.n_rows) - self.last_rank)

    @property
    def cuts_own_sample(self) -> bool:
        """Whether the edges are order statistics of the rows that are tallied."""
        return self.first_rank is not None

    @property
    def parts(self) -> tuple[ScorePartition, ...]:
        """These bins."""
        return (self,)

    @property
    def cuts(self) -> FloatArray:
        """Where a region ends and the next begins."""
        return self.layout.cells.cuts

    @property
    def count_cuts(self) -> FloatArray:
        """The cuts for counting, where an edge value that counts in no region is a cell of its own."""
        return self.layout.count_cells.cuts

    @property
    def bounds(self) -> FloatArray:
        """For each region, its infimum and supremum, as an (n_regions, 2) array."""
        return np.column_stack(self.layout.bounds()[:2])

    def describe(self) -> tuple[str, ...]:
        """One readable name per region, such as '[0.1, 0.2)', or '{0.5}' for a single value."""
        return tuple(self.layout.names())

    def _checked(self, inputs: ArrayLike, positive_column: Literal[0, 1]) -> NDArray[Any]:
        """Check the scores: finite, one-dimensional, within the score range."""
        scores = as_scores(inputs, positive_column=positive_column, finite=False)
        check_in_range(scores, self.low, self.high)
        return scores

    def regions_of(self, prepared: Any, *, threads: int = 1) -> IndexArray:
        """Region of each score."""
        return kernels.assign(prepared, self.cuts, threads=threads)

    def membership(self, prepared: Any, *, threads: int = 1) -> IndexArray:
        """Region in which each score counts; -1 for an edge value that counts in none."""
        return self.count_regions[kernels.assign(prepared, self.count_cuts, threads=threads)]

    def count(
        self, prepared: Any, codes: CodeArray, *, threads: int = 1
    ) -> tuple[IntArray, IntArray, int]:
        """The number of rows and positives in each region, and of rows that count in none."""
        return self.gather(*kernels.count(prepared, codes, self.count_cuts, threads=threads))

    def look_up(self, prepared: Any, table: FloatArray, *, threads: int = 1) -> FloatArray:
        """Each score's entry (or row) of a table with one entry (or row) per region."""
        return kernels.look_up(prepared, self.cuts, table, threads=threads)

    def follow(self, prepared: Any, lines: FloatArray, *, threads: int = 1) -> FloatArray:
        """Each score's value, or limits, on a curve with one line per region.

        See `calibrant.kernels.follow`.
        """
        return kernels.follow(prepared, self.cuts, lines, threads=threads)

    def _key(self) -> tuple[Hashable, ...]:
        ranks = [
            None if ranks is None else ranks.tobytes()
            for ranks in (self.first_rank, self.last_rank)
        ]
        sample = (*ranks, self.n_rows, self.absorbing, self.aside)
        return (self.edges.tobytes(), self.low, self.high, *sample, self.atoms_only)

    @classmethod
    def at(cls, values: FloatArray, aside: int = 0) -> Self:
        """One region per distinct value, for values in increasing order.

        For other values, see `Partition.atoms`.
        """
        repeated = values[1:] <= values[:-1]
        return cls(
            values[np.append(True, ~repeated)] if repeated.any() else values,
            aside=aside,
            atoms=True,
        )

    def with_parts(self, parts: Sequence[ScorePartition]) -> ScorePartition:
        """Return other bins in place of these."""
        return parts[0]

    @classmethod
    def from_other_scores(
        cls, scores: NDArray[Any], n_bins: int, *, aside: int = 0, threads: int = 1
    ) -> Self:
        """Quantile bins cut from rows that will not be tallied (the paper's split).

        Identical edges merge, and an edge with none of these scores below it is dropped, because
        the bin under it would be empty.
        """
        # edges of other rows may be tied: the bins between equal edges would be empty
        ranks = edge_ranks(scores.size, n_bins)
        edges = np.unique(kernels.order_statistics(scores, ranks, threads=threads) + 0.0)
        return cls(edges[edges > scores.min()], aside=aside)

    @classmethod
    def from_tied_scores(cls, scores: NDArray[Any], n_bins: int, *, aside: int = 0) -> Self:
        """Bins of nearly equal mass, cut between the distinct values of rows that will not be
        tallied.

        Each edge is the value with the number of rows below it that is nearest to a multiple of n /
        n_bins. Then the smallest bin is joined to its smaller neighbour while it has less than 0.8
        n / n_bins rows.
        """
        ordered = scores.astype(np.float64, copy=False)
        if (ordered[1:] < ordered[:-1]).any():  # those drawn on a GPU are sorted already
            ordered = np.sort(ordered)
        is_new = np.ones(ordered.size, dtype=bool)
        np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
        below = np.flatnonzero(is_new)
        # the distinct value whose rank is nearest to each quantile
        wanted = np.arange(1, n_bins) * (scores.size / n_bins)
        right = np.clip(np.searchsorted(below, wanted), 1, max(below.size - 1, 1))
        nearest = np.where(
            wanted - below[right - 1] <= below[right % below.size] - wanted, right - 1, right
        )
        cuts = np.unique(nearest[(nearest > 0) & (nearest < below.size)]).tolist()
        while cuts:
            sizes = np.diff([0, *below[cuts].tolist(), scores.size])
            smallest = int(sizes.argmin())
            if sizes[smallest] >= 0.8 * scores.size / n_bins:
                break
            left = smallest == sizes.size - 1 or (
                smallest > 0 and sizes[smallest - 1] <= sizes[smallest + 1]
            )
            del cuts[smallest - 1 if left else smallest]
        return cls(ordered[below[cuts]] + 0.0, aside=aside)

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        ends = (values.pop("low"), values.pop("high"))
        return cls(score_range=ends, atoms=values.pop("atoms_only"), **values)

    def _check_state(self, known: Known) -> None:
        within = not self.edges.size or (self.low < self.edges[0] and self.edges[-1] <= self.high)
        if not self.low < self.high or not within:
            got = f"low={self.low:g}, high={self.high:g}"
            raise InvalidValueError("low, edges and high", "be in increasing order", got=got)
        of_sample = (self.first_rank, self.last_rank, self.n_rows)
        if all(value is None for value in of_sample):
            if self.absorbing is not None:
                raise InvalidValueError("absorbing", "be left out without ranks")
            return
        n_rows = self.n_rows
        if self.first_rank is None or self.last_rank is None or n_rows is None or self.atoms_only:
            rule = "be given together, and without atoms"
            raise InvalidValueError("first_rank, last_rank and n_rows", rule)
        _check_ranks(self.first_rank, self.last_rank, n_rows)
        if self.absorbing is not None and self.absorbing < self.edges.size:
            rule = f"be at least the number of edges, {self.edges.size}"
            raise InvalidValueError("absorbing", rule, got=str(self.absorbing))


def _check_ranks(first: IntArray, last: IntArray, n_rows: int) -> None:
    in_sample = (first >= 1).all() and (last <= n_rows).all()
    if not in_sample or (first > last).any():
        raise InvalidValueError(
            "first_rank", "be at most last_rank, and both lie between 1 and n_rows"
        )
    if (first[1:] <= last[:-1]).any():
        raise InvalidValueError("ranks of neighbouring edges", "not overlap")


@lru_cache(maxsize=1024)  # many segments have the same size
def edge_ranks(n_rows: int, n_bins: int) -> IntArray:
    """The ranks ceil(b (n + 1) / n_bins), b = 1 .. n_bins - 1, of the scores that become edges."""
    check_enough_rows(n_rows, n_bins)
    # b (n + 1) itself may not fit in 64 bits
    whole, rest = divmod(n_rows + 1, n_bins)
    numbers = np.arange(1, n_bins, dtype=np.int64)
    return _frozen(numbers * whole - (-numbers * rest // n_bins))


def middle_ranks(counts: IntArray | FloatArray) -> FloatArray:
    """Middle rank of the rows of each score value; the values are in increasing order."""
    return np.asarray(np.cumsum(counts) - counts / 2.0)


def equal_mass(counts: IntArray | FloatArray, n_bins: int) -> IntArray:
    """The bin of each score value, by its middle rank: bins of about equal mass, with equal scores
    in the same bin.
    """
    cell = (middle_ranks(counts) * (n_bins / counts.sum())).astype(np.int64)
    return np.asarray(np.minimum(cell, n_bins - 1))


def check_enough_rows(n_rows: int, n_bins: int) -> int:
    """Return `n_bins`; raise an error for more bins than rows."""
    if n_rows == 0:
        raise InvalidValueError("the data", "have at least one row", got="none")
    if n_rows < n_bins:
        rule = f"be at most the number of rows that cut the bins, {n_rows}"
        advice = ("use fewer bins, or ", Setting("n_bins", "auto"))
        raise InvalidValueError("n_bins", rule, got=str(n_bins), advice=advice)
    return n_bins


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array = array.view()
    array.flags.writeable = False
    return array
