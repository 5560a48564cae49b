"""The work that is done on the GPU that holds the scores.

It is written once, against what torch, CuPy and numpy have in common, and equals
`calibrant.kernels` bit for bit. It takes `CHUNK_ROWS` rows at a time, so its temporary memory does
not grow with the rows. How arrays are recognised and copied is in `calibrant.kernels.libraries`.

What takes most of the time, counting, looking up and counting digits, has kernels of its own in
`calibrant.kernels._triton`, for torch with Triton, and for CuPy beside it.

Notes
-----
Scores are compared as whole numbers in the same order (`_ordered`). CuPy treats float32 numbers
below the smallest normal one as zero; whole numbers have no such exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels.hash import DROPPED_BITS, FEWER_ROUNDS, GOLDEN, ROUNDS
from calibrant.kernels.libraries import (
    DeviceArray,
    dtype,
    library_name,
    library_of,
    like,
    on_gpu,
    to_host,
)

__all__ = [
    "count",
    "drawn",
    "every",
    "extremes",
    "first",
    "look_up",
    "order_statistics",
    "smallest_drawn",
]

CHUNK_ROWS = 1 << 24  # rows at a time: about 50 bytes of temporary memory each, 800 MB in all

_DIGIT = 16
_BASE = 1 << _DIGIT


def working_on(array: DeviceArray) -> AbstractContextManager[Any]:
    """CuPy works on its current device, so make that the one of the array.

    Torch follows the array itself.
    """
    return array.device if library_name(array) == "cupy" else nullcontext()


def row_parts(rows: int) -> Iterator[slice]:
    """Slices of at most `CHUNK_ROWS` rows."""
    for start in range(0, rows, CHUNK_ROWS):
        yield slice(start, min(start + CHUNK_ROWS, rows))


def every(test: Callable[[DeviceArray], DeviceArray], array: DeviceArray) -> bool:
    """Whether a test, from an array to an array of bools, holds for every entry."""
    with working_on(array):
        return all(bool(test(array[part]).all()) for part in row_parts(array.shape[0]))


def extremes(array: DeviceArray) -> tuple[Any, Any]:
    """The smallest and the largest entry, as plain Python values; both NaN where an entry is NaN."""
    if library_name(array) == "torch":  # both in one pass
        low, high = library_of(array).aminmax(array)
        return low.item(), high.item()
    with working_on(array):
        return array.min().item(), array.max().item()


def first(mask: DeviceArray) -> int:
    """Return the index of the first True; there must be one."""
    library = library_of(mask)
    with working_on(mask):
        return int(library.asarray(mask, dtype=library.uint8).argmax())


def _ordered(scores: DeviceArray) -> DeviceArray:
    """Whole numbers in the order of the scores, 0 for zeros of both signs; NaN comes last or first."""
    library = library_of(scores)
    whole, width = (library.int64, 64) if dtype(scores) == "float64" else (library.int32, 32)
    bits = scores.view(whole)
    bits = bits ^ ((bits >> (width - 1)) & ((1 << (width - 1)) - 1))
    return bits + (bits == -1)


def _own_cuts(cuts: FloatArray, scores: DeviceArray) -> NDArray[Any]:
    """The cuts in the dtype of the scores.

    Of float32 the smallest that is not below the cut, which compares alike.
    """
    if dtype(scores) == "float64":
        return cuts + 0.0
    with np.errstate(all="ignore"):
        own = cuts.astype(np.float32)
        return np.where(own < cuts, np.nextafter(own, np.float32(np.inf)), own)


def _ordered_cuts(cuts: FloatArray, scores: DeviceArray) -> DeviceArray:
    """The cuts as `_ordered` scores."""
    return like(_ordered(_own_cuts(cuts, scores)), scores)


def fused(scores: DeviceArray) -> Any:
    """Our own kernels, where they can run on these scores; else None."""
    if not on_gpu(scores):
        return None
    try:
        return import_module("calibrant.kernels._triton")
    except ImportError:
        return None


def tensor_of(array: DeviceArray) -> DeviceArray:
    """The array as a contiguous tensor of torch, in the same memory where it is one already."""
    if library_name(array) == "torch":
        return array.detach().contiguous()
    return import_module("torch").from_dlpack(array).contiguous()


def _bytes(codes: DeviceArray) -> DeviceArray:
    """Codes of 0 and 1 as a tensor of bytes."""
    tensor = tensor_of(codes)
    library = library_of(tensor)
    return tensor.view(library.uint8) if tensor.dtype == library.bool else tensor.to(library.uint8)


def tensor_cuts(cuts: FloatArray, tensor: DeviceArray) -> DeviceArray:
    """The cuts as a tensor like that of the scores."""
    return like(_own_cuts(cuts, tensor), tensor)


def back(tensor: DeviceArray, array: DeviceArray) -> DeviceArray:
    """A tensor of torch in the library of `array`."""
    return tensor if library_name(array) == "torch" else library_of(array).from_dlpack(tensor)


def _cells(scores: DeviceArray, edges: DeviceArray) -> DeviceArray:
    return library_of(scores).searchsorted(edges, _ordered(scores), side="right")


def count(scores: DeviceArray, codes: DeviceArray, cuts: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell, as `calibrant.kernels.count`.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
        Finite.
    codes : device array of shape (n,), uint8 or bool
        0 or 1.
    cuts : numpy array of shape (m,)
        Strictly increasing.

    Returns
    -------
    rows, positives : numpy int64 arrays of shape (m + 1,)

    Examples
    --------
    >>> import torch
    >>> count(torch.tensor([0.1, 0.5, 0.9]), torch.tensor([0, 0, 1]), np.array([0.5]))
    (array([1, 2]), array([0, 1]))
    """
    library = library_of(scores)
    size = cuts.shape[0] + 1
    ours = fused(scores)
    if ours is not None:
        own = tensor_of(scores)
        found = to_host(ours.count_groups(own, _bytes(codes), tensor_cuts(cuts, own)))
        return found.sum(axis=1), found[:, 1].copy()
    with working_on(scores):
        edges = _ordered_cuts(cuts, scores)
        total = like(np.zeros(2 * size, np.int64), scores)
        for part in row_parts(scores.shape[0]):
            groups = _cells(scores[part], edges) + size * library.asarray(
                codes[part], dtype=library.int64
            )
            total = total + library.bincount(groups, minlength=2 * size)
        negatives, positives = to_host(total).reshape(2, size)
    return negatives + positives, positives.copy()


def look_up(scores: DeviceArray, cuts: FloatArray, table: NDArray[Any]) -> DeviceArray:
    """Entry of a table for each score's cell, as `calibrant.kernels.look_up`.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
        Finite.
    cuts : numpy array of shape (m,)
        Strictly increasing.
    table : numpy array of shape (m + 1,) or (m + 1, k)
        One entry, or one row, for each cell.

    Returns
    -------
    device array of shape (n,) or (n, k)
        With the dtype of the table.

    Examples
    --------
    >>> import torch
    >>> look_up(torch.tensor([0.1, 0.5, 0.9]), np.array([0.5]), np.array([0.25, 0.75]))
    tensor([0.2500, 0.7500, 0.7500], dtype=torch.float64)
    """
    ours = fused(scores)
    if ours is not None:
        own = tensor_of(scores)
        return back(ours.look_up(own, tensor_cuts(cuts, own), like(table, own)), scores)
    with working_on(scores):
        edges = _ordered_cuts(cuts, scores)
        entries = like(table, scores)
        shape = (scores.shape[0], *table.shape[1:])
        out = new_array(entries, shape)
        for part in row_parts(scores.shape[0]):
            out[part] = entries[_cells(scores[part], edges)]
    return out


def new_array(entries: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    """An array like `entries`, of another shape."""
    if hasattr(entries, "new_empty"):
        return entries.new_empty(shape)
    return library_of(entries).empty(shape, entries.dtype)


def order_statistics(
    scores: DeviceArray, ranks: IntArray, without: DeviceArray | None = None
) -> FloatArray:
    """Scores of the given ranks, exactly, as `calibrant.kernels.order_statistics`.

    The bits of a score, read as a whole number in the order of the scores, are two or four digits
    to base 65536. One pass counts the first digits, which gives the first digit of each wanted
    score. The next pass counts the second digits of the scores that begin like a wanted one, and so
    on. Ties need no care, and nothing is sorted.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
        Finite.
    ranks : array of shape (k,), int
        In 1..n, where 1 is the smallest score; they may repeat.
    without : device array, optional
        Some of the scores, which are left out: the ranks are those among the others.

    Returns
    -------
    numpy float64 array of shape (k,)

    Examples
    --------
    >>> import torch
    >>> order_statistics(torch.tensor([0.75, 0.25, 0.5]), np.array([1, 2]))
    array([0.25, 0.5 ])
    """
    width = 64 if dtype(scores) == "float64" else 32
    local = np.asarray(ranks, np.int64).copy()
    found = np.zeros_like(local)  # the digits known of each wanted score
    slot = np.zeros_like(local)  # which of the known beginnings it has
    tables: list[
        DeviceArray
    ] = []  # for each pass, from a beginning and a digit to the next beginning
    for _ in range(width // _DIGIT if local.size else 0):
        # after the first pass there is one slot more, for scores that begin like none of the wanted
        slots = int(slot.max()) + 1 + bool(tables)
        counts = _count_digits(scores, tables, width, slots)
        if without is not None:
            counts = counts - _count_digits(without, tables, width, slots)
        entry = _find(counts, slot * _BASE, local)
        digit = entry - slot * _BASE
        found = found * _BASE + digit
        begun, slot = np.unique(entry, return_inverse=True)
        if len(tables) + 1 < width // _DIGIT:
            table = np.full(slots * _BASE, begun.size, np.int64)
            table[begun] = np.arange(begun.size)
            tables.append(like(table, scores))
    # the same step that put the bits in order puts them back; the highest digit began at zero, not
    # at its sign
    ordered = (
        found - (1 << (width - 1)) if width == 32 else (found ^ np.int64(np.iinfo(np.int64).min))
    )
    bits = ordered ^ ((ordered >> 63) & ((1 << (width - 1)) - 1))
    return (
        bits.view(np.float64)
        if width == 64
        else bits.astype(np.int32).view(np.float32).astype(np.float64)
    )


def drawn(scores: DeviceArray, key: int, limit: int) -> DeviceArray:
    """Positions of the rows whose hash, ``mixed(position + key)``, is below `limit`, as
    `calibrant.sample.draw` has it.

    Neither torch nor CuPy has all operations on unsigned numbers: here the same bits are signed
    numbers.

    Parameters
    ----------
    scores : device array of shape (n,)
        Only its length, library and device count.
    key : int
        From 0 to 2**64 - 1.
    limit : int
        From 0, which draws nothing, to 2**64, which draws everything.

    Returns
    -------
    device array of int64

    Examples
    --------
    >>> import torch
    >>> drawn(torch.zeros(8), 0, 1 << 63)
    tensor([3, 4, 5, 7])
    """
    library = library_of(scores)
    rows = scores.shape[0]
    ours = fused(scores)
    if ours is not None and 0 < limit < 1 << 64:
        return back(ours.drawn(rows, key + GOLDEN, limit, ROUNDS, tensor_of(scores).device), scores)
    with working_on(scores):
        places = like(np.arange(min(rows, CHUNK_ROWS)), scores)
        found = [places[:0]]
        for part in row_parts(rows):
            here = places[: part.stop - part.start] + part.start
            if limit < 1 << 64:
                bits = hashes(here, key)
                here = here[(bits ^ _signed(1 << 63)) < _signed(limit ^ (1 << 63))]
            found.append(here)
        return library.concatenate(found)


def smallest_drawn(scores: DeviceArray, key: int, limit: int, most: int) -> tuple[DeviceArray, int]:
    """Positions of the `most` drawn rows with the smallest hashes, and the limit that draws them.

    Examples
    --------
    >>> import torch
    >>> index, limit = smallest_drawn(torch.zeros(8), 0, 1 << 63, 2)
    >>> index, bool((drawn(torch.zeros(8), 0, limit) == index).all())
    (tensor([3, 5]), True)
    """
    index = drawn(scores, key, limit)
    if not most or not index.shape[0]:
        return index[:0], 0
    library = library_of(scores)
    with working_on(scores):
        # with the first bit turned, signed numbers have the order of unsigned ones
        turned = hashes(index, key) ^ _signed(1 << 63)
        ordered = library.sort(turned)
        ordered = ordered if library_name(scores) == "cupy" else ordered[0]
        largest = ordered[min(most, index.shape[0]) - 1]
        return index[turned <= largest], (int(largest) ^ _signed(1 << 63)) % 2**64 + 1


def sums_of_rows(scores: DeviceArray, codes: DeviceArray) -> list[tuple[int, int]]:
    """Rows of each class, and the sums of numbers that stand for them, as
    `calibrant.params.random.RowSums` has them.

    Examples
    --------
    >>> import torch
    >>> from calibrant.params.random import RowSums
    >>> scores = np.array([0.25, 0.5, 0.75])
    >>> sums_of_rows(torch.tensor(scores), torch.tensor([False, True, False])) == [
    ...     *RowSums.of([scores], (0, 1), np.array([0, 1, 0])).kinds.values()
    ... ]
    True
    """
    library = library_of(scores)
    ours = fused(scores)
    if ours is not None:
        ones = int(codes.sum())
        total, total_of_ones = ours.sums_of_rows(
            tensor_of(scores), _bytes(codes), DROPPED_BITS, FEWER_ROUNDS
        )
        zeros = int(scores.shape[0]) - ones
        return [(zeros, (total - total_of_ones) % 2**64), (ones, total_of_ones)]
    rows = [0, 0]
    totals = [0, 0]
    with working_on(scores):
        for part in row_parts(scores.shape[0]):
            doubles = library.asarray(scores[part], dtype=library.float64) + 0.0
            bits = doubles.view(library.int64) + (1 << (DROPPED_BITS - 1))
            state = _scrambled(
                (bits >> DROPPED_BITS) & ((1 << (64 - DROPPED_BITS)) - 1), FEWER_ROUNDS
            )
            own = library.asarray(codes[part], dtype=library.int64)
            rows[0] += int(scores[part].shape[0])
            rows[1] += int(own.sum())
            totals[0] += int(state.sum())
            totals[1] += int((state * own).sum())
    rest = (rows[0] - rows[1], (totals[0] - totals[1]) % 2**64)
    return [rest, (rows[1], totals[1] % 2**64)]


def hashes(keys: DeviceArray, plus: int) -> DeviceArray:
    """64 random bits of each key, as `calibrant.kernels.hash.mixed`, as signed numbers."""
    return _scrambled(keys + _signed((plus + GOLDEN) % 2**64), ROUNDS)


def _scrambled(z: DeviceArray, rounds: tuple[tuple[int, int], ...]) -> DeviceArray:
    """Scramble signed numbers: a shift to the right brings in zeros, not signs."""
    for shift, factor in rounds:
        z = (z ^ ((z >> shift) & ((1 << (64 - shift)) - 1))) * _signed(factor)
    return z


def _signed(bits: int) -> int:
    return bits - (bits >> 63 << 64)


def _find(counts: DeviceArray, starts: IntArray, ranks: IntArray) -> IntArray:
    """Return the entry of `counts` in which each rank, counted from a start, lies.

    Subtract what comes before it.

    `ranks` are changed in place: they become ranks within the entry.
    """
    library = library_of(counts)
    with working_on(counts):
        reached = library.cumsum(counts, 0)
        before = reached - counts
        wanted = like(ranks, counts) + before[like(starts, counts)]
        entry = library.searchsorted(reached, wanted)
        ranks[:] = to_host(wanted - before[entry])
        return to_host(entry).astype(np.int64)


def _count_digits(
    scores: DeviceArray, tables: list[DeviceArray], width: int, slots: int
) -> DeviceArray:
    """For each slot, how often each digit comes next, as one flat array.

    The slot of other scores may be left at 0.
    """
    library = library_of(scores)
    ours = fused(scores)
    if ours is not None:
        wanted = slots - bool(tables)
        found = ours.count_digits(tensor_of(scores), [tensor_of(table) for table in tables], wanted)
        return back(found, scores)
    with working_on(scores):
        total = like(np.zeros(slots * _BASE, np.int64), scores)
        for part in row_parts(scores.shape[0]):
            bits = library.asarray(_ordered(scores[part]), dtype=library.int64)
            key = (bits >> (width - _DIGIT)) + _BASE // 2
            for above, table in enumerate(tables, start=2):
                key = (table[key] << _DIGIT) | ((bits >> (width - above * _DIGIT)) & (_BASE - 1))
            total = total + library.bincount(key, minlength=slots * _BASE)
        return total
