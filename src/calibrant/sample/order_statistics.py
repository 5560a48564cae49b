"""Exact order statistics for data of any size: histograms of the bits of floats, refined until few
values are left.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant._typing import FloatArray, IntArray, Keys
from calibrant.cells.keyed_sums import KeyedSums
from calibrant.errors import InvalidValueError
from calibrant.sample.batch import Work, read_batch
from calibrant.sample.faults import Faults, Place

_SIGN = np.uint64(1 << 63)
_CELLS = 1 << 20  # total cells of a histogram: 8 MB
_CELLS_A_ROW = (
    16  # with fewer cells per row, filling a table of all cells is faster than sorting the rows
)
_FEW = 1 << 21  # values that are collected rather than counted again: 32 MB


class MovedRowsError(InvalidValueError):
    """The data have other rows in another pass, or rows in another order, which contradicts earlier
    results.
    """


def ordered_bits(scores: NDArray[Any]) -> Keys:
    """Integers in the order of the scores: the bits of a double, flipped below zero."""
    bits: IntArray = np.add(scores, 0.0, dtype=np.float64).view(np.int64)  # -0.0 becomes 0.0
    flips = bits >> 63  # all bits for negative numbers, else none
    flips |= _SIGN.view(np.int64)
    bits ^= flips
    return bits.view(np.uint64)


def from_ordered_bits(keys: Keys) -> FloatArray:
    """The inverse of `ordered_bits`."""
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


_LOWEST = int(ordered_bits(np.array([np.finfo(np.float64).min]))[0])
_INFINITY = int(ordered_bits(np.array([np.inf]))[0])  # larger keys do not belong to finite doubles


@dataclass(frozen=True, slots=True)
class Run:
    """A run of keys [start, start + width * cells) that holds a wanted rank, and the number of rows
    before it.
    """

    start: int
    bits: int  # of the width: the run is cut into cells of 2**bits keys
    cells: int
    before: int


Runs = Mapping[Hashable, tuple[Run, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class BitCounts:
    """For each segment and run, the rows in each cell, or the values and their counts.

    The pieces are those of some batches, merged by `KeyedSums.compacted`.
    """

    pieces: Mapping[tuple[Any, int], tuple[KeyedSums, ...]] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)

    @classmethod
    def of(
        cls, segments: Iterable[tuple[Any, NDArray[Any]]], runs: Runs, faults: Faults
    ) -> "BitCounts":
        """Count the scores of segments in the cells of the given runs."""
        counts = {}
        for name, scores in segments:
            here = runs.get(name, ())
            for number, keys in _keys_by_run(scores, here):
                cells = (keys - np.uint64(here[number].start)) >> np.uint64(here[number].bits)
                counts[name, number] = (_counted(cells, here[number].cells),)
        return cls(counts, faults)

    def __sub__(self, other: "BitCounts") -> "BitCounts":
        pieces = {
            key: tuple(KeyedSums(cells, -rows) for cells, rows in more)
            for key, more in other.pieces.items()
        }
        return self + BitCounts(pieces)

    def __add__(self, other: "BitCounts") -> "BitCounts":
        pieces = dict(self.pieces)
        for key, more in other.pieces.items():
            pieces[key] = KeyedSums.compacted((*pieces.get(key, ()), *more))
        return BitCounts(pieces, self.faults + other.faults)

    @property
    def counts(self) -> dict[tuple[Any, int], KeyedSums]:
        """The rows in each nonempty cell, in increasing order of cells."""
        return {key: KeyedSums.joined(pieces) for key, pieces in self.pieces.items()}


@dataclass(frozen=True, slots=True, eq=False)
class CountBits(Work[BitCounts]):
    """Count rows in the cells of the given runs of each segment."""

    roles = ("segment",)
    is_large = True
    runs: Runs

    def __call__(self, batch: Any, place: Place) -> BitCounts:
        """Count one batch."""
        rows, faults = read_batch(batch, self.columns, place)
        return BitCounts.of(
            ((name, rows.scores[index]) for name, index in rows.by_segment()), self.runs, faults
        )

    def nothing(self) -> BitCounts:
        """No rows."""
        return BitCounts()


def _keys_by_run(scores: NDArray[Any], runs: tuple[Run, ...]) -> list[tuple[int, Keys]]:
    """The keys of the scores in each run, for the runs that contain any."""
    if not runs or not scores.size:
        return []
    if runs == everything():
        return [(0, ordered_bits(scores))]
    ends = [
        (max(run.start, _LOWEST), min(run.start + (run.cells << run.bits), _INFINITY))
        for run in runs
    ]
    cuts = from_ordered_bits(
        np.unique(np.array([end for pair in ends for end in pair], dtype=np.uint64))
    )
    cuts = cuts[np.isfinite(cuts)]
    cell = kernels.assign(scores, cuts)
    # a run is the one cell between its ends, unless its upper end is beyond the doubles
    starts = from_ordered_bits(np.array([start for start, _ in ends], dtype=np.uint64))
    # 16 bits, for which numpy uses radix sort
    run_of_cell: NDArray[Any] = np.full(
        cuts.size + 1, -1, dtype=np.int16 if len(runs) < 2**15 else np.int64
    )
    run_of_cell[np.searchsorted(cuts, starts, side="right")] = np.arange(len(runs))
    number = run_of_cell[cell]
    inside = np.flatnonzero(number >= 0)
    order = inside[np.argsort(number[inside], kind="stable")]
    keys = ordered_bits(scores[order])
    bounds = np.searchsorted(number[order], np.arange(len(runs) + 1))
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    return [(run, keys[low:high]) for run, (low, high) in enumerate(pairs) if high > low]


def _counted(cells: Keys, n_cells: int) -> KeyedSums:
    if n_cells > _CELLS_A_ROW * cells.size:
        values, counts = np.unique(cells, return_counts=True)
        return KeyedSums(values, counts.astype(np.int64))
    counts = np.bincount(cells.astype(np.intp), minlength=n_cells)
    used = np.flatnonzero(counts)
    return KeyedSums(used.astype(np.uint64), counts[used].astype(np.int64))


def everything() -> tuple[Run, ...]:
    """The first run: all doubles, in cells that share their leading bits."""
    bits = 64 - (_CELLS.bit_length() - 1)
    return (Run(0, bits, _CELLS, 0),)


def refine(
    runs: tuple[Run, ...], seen: Mapping[int, KeyedSums], ranks: IntArray
) -> tuple[tuple[Run, ...], FloatArray | None]:
    """Return shorter runs that hold the ranks or, once every cell is a single key, the scores at
    these ranks.
    """
    wanted: dict[int, tuple[int, int, int]] = {}
    places = []
    totals = {
        number: runs[number].before + np.cumsum(counts) for number, (_, counts) in seen.items()
    }
    for rank in ranks.tolist():
        number = max(
            (n for n, run in enumerate(runs) if run.before < rank and n in seen), default=-1
        )
        if number < 0 or rank > totals[number][-1]:
            rule = "give the same rows each time they are read"
            got = "other rows the second time"
            raise MovedRowsError(
                "the data", rule, got=got, advice="write them to a file or a table"
            )
        run = runs[number]
        cells, counts = seen[number]
        total = totals[number]
        at = int(np.searchsorted(total, rank))
        before = int(total[at]) - int(counts[at])
        rows = int(counts[at])
        start = run.start + (int(cells[at]) << run.bits)
        places.append(start)
        wanted[start] = (run.bits, before, rows)
    if all(bits == 0 for bits, _, _ in wanted.values()):
        return (), from_ordered_bits(np.array(places, dtype=np.uint64))
    few = sum(rows for _, _, rows in wanted.values()) <= _FEW
    step = 64 if few else max(8, (_CELLS // len(wanted)).bit_length() - 1)
    shorter = [
        Run(start, max(bits - step, 0), 1 << min(bits, step), before)
        for start, (bits, before, _) in sorted(wanted.items())
    ]
    return tuple(shorter), None
