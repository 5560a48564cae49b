"""Order statistics, draws, fingerprints and counts at knots, on the GPU that holds the rows.

As in `calibrant.gpu.kernels`, results equal those of the host bit for bit. Fused kernels
for ranks and sums are in `calibrant.gpu._triton_draws`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._optional import Lazy
from calibrant._typing import FloatArray, IntArray
from calibrant.gpu import kernels
from calibrant.kernels.hash import GOLDEN, ROUNDS
from calibrant.params.tensors import DeviceArray, dtype, like, to_host

_triton: Any = Lazy("calibrant.gpu._triton")
_triton_draws: Any = Lazy("calibrant.gpu._triton_draws")

_DIGIT = 16
_BASE = 1 << _DIGIT
_FIRST_BIT = -(1 << 63)
_DRAWN_ROWS = 1 << 26  # positions that are hashed at a time, in a few gigabytes


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
    scores : tensor of shape (n,), float64 or float32
        Finite.
    ranks : array of shape (k,), int
        In 1..n, where 1 is the smallest score; they may repeat.
    without : tensor, optional
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
    # for each pass, a map from a prefix and a digit to the next prefix
    tables: list[DeviceArray] = []
    for _ in range(width // _DIGIT if local.size else 0):
        wanted = int(slot.max()) + 1
        counts = _triton_draws.count_digits(scores, tables, wanted)
        if without is not None:
            counts = counts - _triton_draws.count_digits(without, tables, wanted)
        entry = _find(counts, slot * _BASE, local)
        digit = entry - slot * _BASE
        found = found * _BASE + digit
        begun, slot = np.unique(entry, return_inverse=True)
        if len(tables) + 1 < width // _DIGIT:
            # after the first pass there is one more prefix, for scores with no wanted one
            table = np.full((wanted + bool(tables)) * _BASE, begun.size, np.int64)
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

    Parameters
    ----------
    scores : tensor of shape (n,)
        Only its length and device matter.
    key : int
        From 0 to 2**64 - 1.
    limit : int
        From 0, which draws nothing, to 2**64, which draws everything.

    Returns
    -------
    tensor of int64

    Examples
    --------
    >>> import torch
    >>> drawn(torch.zeros(8), 0, 1 << 63)
    tensor([3, 4, 5, 7])
    """
    rows = scores.shape[0] if limit else 0
    found = [kernels.torch.empty(0, dtype=kernels.torch.int64, device=scores.device)]
    for start in range(0, rows, _DRAWN_ROWS):
        stop = min(start + _DRAWN_ROWS, rows)
        place = kernels.torch.arange(start, stop, device=scores.device)
        found.append(place[_in_order(place, key) <= signed(limit - 1) ^ _FIRST_BIT])
    return kernels.torch.cat(found)


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
    ordered = _in_order(index, key)
    largest = ordered.sort()[0][min(most, index.shape[0]) - 1]
    return index[ordered <= largest], (int(largest) ^ _FIRST_BIT) % 2**64 + 1


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
    ones = int(codes.sum())
    total, total_of_ones = _triton_draws.sums_of_rows(scores.contiguous(), kernels.bytes_of(codes))
    zeros = int(scores.shape[0]) - ones
    return [(zeros, (total - total_of_ones) % 2**64), (ones, total_of_ones)]


def hashes(keys: DeviceArray, plus: int) -> DeviceArray:
    """64 random bits for each key, as in `calibrant.params.random.mixed`.

    torch lacks some operations on unsigned integers, so the same bits are signed integers here.
    """
    z = keys + signed(plus + GOLDEN)
    for shift, factor in ROUNDS:
        # right shifts bring in zeros, not sign bits
        z = (z ^ ((z >> shift) & ((1 << (64 - shift)) - 1))) * signed(factor)
    return z


def _in_order(keys: DeviceArray, plus: int) -> DeviceArray:
    """The hashes with the first bit flipped: signed integers then sort like unsigned ones."""
    return hashes(keys, plus) ^ _FIRST_BIT


def signed(bits: int) -> int:
    """Convert an unsigned 64-bit integer to the signed one with the same bits."""
    bits %= 2**64
    return bits - (bits >> 63 << 64)


def _find(counts: DeviceArray, starts: IntArray, ranks: IntArray) -> IntArray:
    """Return the entry of `counts` that each rank falls into, counted from a start.

    `ranks` are changed in place: they become ranks within the entry.
    """
    reached = counts.cumsum(0)
    before = reached - counts
    wanted = like(ranks, counts) + before[like(starts, counts)]
    entry = kernels.torch.searchsorted(reached, wanted)
    ranks[:] = to_host(wanted - before[entry])
    return to_host(entry).astype(np.int64)


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
    scores : tensor of shape (n,), float64 or float32
        Finite.
    codes : tensor of shape (n,), uint8 or bool
        0 or 1.
    key : int
        The key of the row hashes, from 0 to 2**64 - 1.
    cells : (array of shape (m,), array of shape (m + 1, 3))
        Cuts, strictly increasing; and of each cell its first knot, where it begins, and one over
        its width.
    size : int
        The number of knots.
    places : tensor of shape (n,), optional
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
    cuts, table = cells
    both = kernels.own_cuts(cuts, scores), table
    own = scores.contiguous()
    found = _triton.count_knots(own, kernels.bytes_of(codes), places, key, both, size)
    return to_host(found)
