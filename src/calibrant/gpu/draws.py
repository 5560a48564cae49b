"""Order statistics, draws, fingerprints and counts at knots, on the GPU that holds the rows.

As in `calibrant.gpu.kernels`, results equal those of the host bit for bit. Most of their fused
kernels are in `calibrant.gpu._triton_draws`.
"""

from __future__ import annotations

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.gpu import kernels
from calibrant.kernels.hash import DROPPED_BITS, FEWER_ROUNDS, GOLDEN, ROUNDS
from calibrant.params.tensors import (
    DeviceArray,
    dtype,
    library_name,
    library_of,
    like,
    to_host,
)

_DIGIT = 16
_BASE = 1 << _DIGIT


def order_statistics(
    scores: DeviceArray, ranks: IntArray, without: DeviceArray | None = None
) -> FloatArray:
    """The exact scores at the given ranks, as in `calibrant.kernels.order_statistics`.

    The bits of a score, read as an integer in the order of the scores, are two or four digits in
    base 65536. One pass counts the first digits, which gives the first digit of each wanted score.
    The next pass counts the second digits of the scores that share a prefix with a wanted one, and
    so on. Ties need no special treatment, and nothing is sorted.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
        Finite.
    ranks : array of shape (k,), int
        In 1..n, where 1 is the smallest score; they may repeat.
    without : device array, optional
        Scores to leave out; ranks are then among the others.

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
    found = np.zeros_like(local)  # the known digits of each wanted score
    slot = np.zeros_like(local)  # the index of its known prefix
    tables: list[
        DeviceArray
    ] = []  # for each pass, a map from a prefix and a digit to the next prefix
    for _ in range(width // _DIGIT if local.size else 0):
        # after the first pass there is one more slot, for scores with no wanted prefix
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
    # the step that put the bits in order is its own inverse; the highest digit started at zero, not
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
    """Positions of the rows whose hash, ``mixed(position + key)``, is below `limit`, as in
    `calibrant.params.random`.

    torch and CuPy lack some operations on unsigned integers, so the same bits are signed integers
    here.

    Parameters
    ----------
    scores : device array of shape (n,)
        Only its length, library and device matter.
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
    ours = kernels.fused(scores, "_triton_draws")
    if ours is not None and 0 < limit < 1 << 64:
        return kernels.back(ours.drawn(rows, key, limit, kernels.tensor_of(scores).device), scores)
    with kernels.working_on(scores):
        places = like(np.arange(min(rows, kernels.CHUNK_ROWS)), scores)
        found = [places[:0]]
        for part in kernels.row_parts(rows):
            here = places[: part.stop - part.start] + part.start
            if limit < 1 << 64:
                bits = hashes(here, key)
                here = here[(bits ^ signed(1 << 63)) < signed(limit ^ (1 << 63))]
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
    with kernels.working_on(scores):
        # with the first bit flipped, signed integers sort like unsigned ones
        turned = hashes(index, key) ^ signed(1 << 63)
        largest = ascending(turned)[min(most, index.shape[0]) - 1]
        return index[turned <= largest], (int(largest) ^ signed(1 << 63)) % 2**64 + 1


def ascending(values: DeviceArray) -> DeviceArray:
    """The values, sorted."""
    ordered = library_of(values).sort(values)
    return ordered if library_name(values) == "cupy" else ordered[0]


def sums_of_rows(scores: DeviceArray, codes: DeviceArray) -> list[tuple[int, int]]:
    """Rows of each class, and the sums of their hashes, as in `calibrant.params.random.RowSums`.

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
    ours = kernels.fused(scores, "_triton_draws")
    if ours is not None:
        ones = int(codes.sum())
        total, total_of_ones = ours.sums_of_rows(kernels.tensor_of(scores), kernels.bytes_of(codes))
        zeros = int(scores.shape[0]) - ones
        return [(zeros, (total - total_of_ones) % 2**64), (ones, total_of_ones)]
    rows = [0, 0]
    totals = [0, 0]
    with kernels.working_on(scores):
        for part in kernels.row_parts(scores.shape[0]):
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
    """64 random bits for each key, as in `calibrant.params.random.mixed`, as signed integers."""
    return _scrambled(keys + signed(plus + GOLDEN), ROUNDS)


def _scrambled(z: DeviceArray, rounds: tuple[tuple[int, int], ...]) -> DeviceArray:
    """Scramble signed integers; right shifts bring in zeros, not sign bits."""
    for shift, factor in rounds:
        z = (z ^ ((z >> shift) & ((1 << (64 - shift)) - 1))) * signed(factor)
    return z


def signed(bits: int) -> int:
    """Convert an unsigned 64-bit integer to the signed one with the same bits."""
    bits %= 2**64
    return bits - (bits >> 63 << 64)


def _find(counts: DeviceArray, starts: IntArray, ranks: IntArray) -> IntArray:
    """Return the entry of `counts` that each rank falls into, counted from a start.

    `ranks` are changed in place: they become ranks within the entry.
    """
    library = library_of(counts)
    with kernels.working_on(counts):
        reached = library.cumsum(counts, 0)
        before = reached - counts
        wanted = like(ranks, counts) + before[like(starts, counts)]
        entry = library.searchsorted(reached, wanted)
        ranks[:] = to_host(wanted - before[entry])
        return to_host(entry).astype(np.int64)


def _count_digits(
    scores: DeviceArray, tables: list[DeviceArray], width: int, slots: int
) -> DeviceArray:
    """For each slot, count how often each digit comes next, as one flat array.

    The counts of the slot for other scores may be left at 0.
    """
    library = library_of(scores)
    ours = kernels.fused(scores, "_triton_draws")
    if ours is not None:
        wanted = slots - bool(tables)
        found = ours.count_digits(
            kernels.tensor_of(scores), [kernels.tensor_of(table) for table in tables], wanted
        )
        return kernels.back(found, scores)
    with kernels.working_on(scores):
        total = like(np.zeros(slots * _BASE, np.int64), scores)
        for part in kernels.row_parts(scores.shape[0]):
            bits = library.asarray(kernels.ordered(scores[part]), dtype=library.int64)
            key = (bits >> (width - _DIGIT)) + _BASE // 2
            for above, table in enumerate(tables, start=2):
                key = (table[key] << _DIGIT) | ((bits >> (width - above * _DIGIT)) & (_BASE - 1))
            total = total + library.bincount(key, minlength=slots * _BASE)
        return total


def count_knots(
    scores: DeviceArray,
    codes: DeviceArray,
    key: int,
    cells: tuple[FloatArray, FloatArray],
    size: int,
    places: DeviceArray | None = None,
) -> IntArray:
    """Count rows by knot, half and code, as in `calibrant.cells.knots`.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
        Finite.
    codes : device array of shape (n,), uint8 or bool
        0 or 1.
    key : int
        The key of the row hashes, from 0 to 2**64 - 1.
    cells : (array of shape (m,), array of shape (m + 1, 3))
        Cuts, strictly increasing; and of each cell its first knot, where it begins, and one over
        its width.
    size : int
        The number of knots.
    places : device array of shape (n,), optional
        The positions of the rows, if these are only some of the rows.

    Returns
    -------
    array of shape (size, 2, 2)

    Examples
    --------
    >>> import torch
    >>> cells = np.empty(0), np.array([[0.0, 0.0, 1.0]])
    >>> count_knots(torch.full((4,), 0.5), torch.tensor([0, 1, 1, 1]), 7, cells, 2).tolist()
    [[[0, 2], [0, 0]], [[0, 1], [1, 0]]]
    """
    library = library_of(scores)
    cuts, table = cells
    ours = kernels.fused(scores)
    if ours is not None:
        own = kernels.tensor_of(scores)
        at = None if places is None else kernels.tensor_of(places)
        both = kernels.own_cuts(cuts, own), table
        codes = kernels.bytes_of(codes)
        found = ours.count_knots(own, codes, at, key, both, size)
        return np.asarray(to_host(found))
    total = like(np.zeros(4 * size, np.int64), scores)
    with kernels.working_on(scores):
        rows = like(np.arange(min(scores.shape[0], kernels.CHUNK_ROWS)), scores)
        for part in kernels.row_parts(scores.shape[0]):
            n_rows = part.stop - part.start
            position = rows[:n_rows] + part.start if places is None else places[part]
            bits = hashes(position, key)
            found = kernels.look_up(scores[part], cuts, table)
            share = (library.asarray(scores[part], dtype=library.float64) - found[:, 1]) * found[
                :, 2
            ]
            first_bits = (bits >> 11) & ((1 << 53) - 1)
            uniform = library.asarray(first_bits, dtype=library.float64) * 2.0**-53
            first = library.asarray(found[:, 0], dtype=library.int64)
            knot = first + library.asarray(uniform < share, dtype=library.int64)
            group = 4 * knot + 2 * (bits & 1) + library.asarray(codes[part], dtype=library.int64)
            total = total + library.bincount(group, minlength=4 * size)
        return to_host(total).reshape(size, 2, 2)
