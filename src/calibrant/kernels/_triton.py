"""What torch's own operations would do in many passes over the scores of a GPU, in one: counting
and looking up.

These are our only kernels for a GPU. Triton comes with torch on Linux; CuPy arrays get here by
DLPack, without a copy. Where Triton is missing, `calibrant.kernels.device` does the same work with
the library's own operations.

With 10^9 float32 scores on an H200, where reading scores and labels takes 1.2 ms, rows are counted
in 100 bins in 4 ms and in 1,000 bins in 13 ms, values are looked up in 4 ms, and 99 quantiles are
found in 41 ms (``benchmarks/device.py``). Without these kernels counting takes 47 ms, quantiles 480
ms.

Notes
-----
A score is searched in two steps, as on the host. An even grid over the cuts says how many cuts lie
in the cells of the grid below the score's; halving finds the rest among the cuts of its own cell.
Both ends of that comparison go through the same arithmetic, which never decreases in the score, so
rounding cannot misplace a score.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
import triton
import triton.language as tl

__all__ = ["count_digits", "count_groups", "drawn", "follow", "look_up", "sums_of_rows"]

_Tensor: TypeAlias = Any
"""A tensor of torch."""

_LAUNCH_ROWS = 1 << 30
"""Rows of one launch: counts within it fit 32 bits."""

_DRAWN_ROWS = 1 << 28
"""Rows of one launch that are drawn from: a byte of temporary memory each."""

_GRID_CELLS = 8
"""Cells of the grid for each cut."""

_MOST_SHARED = 256
"""Up to so many groups are counted in registers and shared memory.

More of them by atomic additions.
"""

_COUNT_BLOCK = 8192
_BLOCK = 1024
"""Rows that a program takes at a time."""

_CURVE_BLOCK = 256
_CURVE_WARPS = 4
"""The same for curves, with many cells: more programs wait for the memory of others."""

_DIGIT_COPIES = 256
"""Copies of the counts of first digits, so that fewer programs add to one of them: few digits come
first.
"""

# single precision, in which Triton passes numbers to a kernel, holds what is between
_TINY = 1e-30
_HUGE = 1e30

_PROGRAMS = 2112
"""Programs of one launch: 16 for each multiprocessor of an H200."""


@triton.jit
def _place(score, low, scale, last):
    """The grid's cell that a score lies in."""
    return tl.minimum(tl.maximum((score - low) * scale, 0.0), last).to(tl.int32)


@triton.jit
def _cell(score, grid, cuts, low, scale, last, HALVINGS: tl.constexpr):
    """The number of cuts that are not above the score."""
    cell = tl.load(grid + _place(score, low, scale, last))
    for halving in tl.static_range(HALVINGS):
        step = 1 << (HALVINGS - 1 - halving)
        cell += tl.where(score >= tl.load(cuts + cell + (step - 1)), step, 0)
    return cell


@triton.jit
def _count_kernel(
    scores, codes, rows, grid, cuts, low, scale, last, counts, GROUPS: tl.constexpr,
    HALVINGS: tl.constexpr, ATOMIC: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Count by cell and code; each program has its own counts."""
    program = tl.program_id(0)
    own = counts + program * GROUPS
    bins = tl.arange(0, GROUPS)
    total = tl.zeros((GROUPS,), tl.int32)
    for start in range(program * BLOCK, rows, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        there = at < rows
        score = tl.load(scores + at, mask=there, other=0.0)
        code = tl.load(codes + at, mask=there, other=0).to(tl.int32)
        group = 2 * _cell(score, grid, cuts, low, scale, last, HALVINGS) + code
        if ATOMIC:
            tl.atomic_add(own + group, 1, mask=there, sem="relaxed")
        else:
            total += tl.histogram(group, GROUPS, mask=there)
    if not ATOMIC:
        tl.store(own + bins, total)


@triton.jit
def _look_up_kernel(
    scores, rows, grid, cuts, low, scale, last, table, found, WIDTH: tl.constexpr,
    HALVINGS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Copy the entries of each score's cell."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    at = start + tl.arange(0, BLOCK)
    there = at < rows
    score = tl.load(scores + at, mask=there, other=0.0)
    cell = _cell(score, grid, cuts, low, scale, last, HALVINGS)
    for column in tl.static_range(WIDTH):
        entry = tl.load(table + cell * WIDTH + column)
        tl.store(found + at * WIDTH + column, entry, mask=there)


@triton.jit
def _follow_kernel(
    scores, rows, grid, cuts, low, scale, last, lines, found, WIDTH: tl.constexpr,
    STRIDE: tl.constexpr, HALVINGS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The value of each score's line; with offsets, the sums with each of them, from 0 to 1."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    at = start + tl.arange(0, BLOCK)
    there = at < rows
    score = tl.load(scores + at, mask=there, other=0.0)
    line = lines + _cell(score, grid, cuts, low, scale, last, HALVINGS) * STRIDE
    value = (score.to(tl.float64) - tl.load(line)) * tl.load(line + 2) + tl.load(line + 1)
    if WIDTH == 3:
        tl.store(found + at, value, mask=there)
    for column in tl.static_range(WIDTH - 3):
        limit = tl.minimum(tl.maximum(value + tl.load(line + 3 + column), 0.0), 1.0)
        tl.store(found + at * (WIDTH - 3) + column, limit, mask=there)


@triton.jit
def _digits_kernel(
    numbers, rows, first, second, third, wanted, counts, ABOVE: tl.constexpr,
    WIDTH: tl.constexpr, COPIES: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Count the next 16 bits of the scores that begin like a wanted one; `numbers` are their bits."""
    program = tl.program_id(0)
    own = counts + (program % COPIES).to(tl.int64) * wanted
    for start in range(program * BLOCK, rows, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        there = at < rows
        bits = tl.load(numbers + at, mask=there, other=0)
        # in the order of the scores: negative ones are turned round, and -0.0 becomes 0.0
        bits = bits ^ ((bits >> (WIDTH - 1)) & ((1 << (WIDTH - 1)) - 1))
        bits = tl.where(bits == -1, 0, bits).to(tl.int64)
        key = (bits >> (WIDTH - 16)) + 32768
        if ABOVE > 0:
            key = (tl.load(first + key) << 16) | ((bits >> (WIDTH - 32)) & 65535)
        if ABOVE > 1:
            key = (tl.load(second + key) << 16) | ((bits >> (WIDTH - 48)) & 65535)
        if ABOVE > 2:
            key = (tl.load(third + key) << 16) | (bits & 65535)
        tl.atomic_add(own + key, 1, mask=there & (key < wanted), sem="relaxed")


@triton.jit
def _scrambled(z, SHIFT: tl.constexpr, FACTOR: tl.constexpr):
    """One round of a hash of unsigned numbers."""
    return (z ^ (z >> SHIFT)) * tl.full((), FACTOR, tl.uint64)


@triton.jit
def _sums_kernel(
    scores, codes, rows, sums, DROPPED: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Sums over the hashes of rounded scores: of all rows, and of those with code 1."""
    program = tl.program_id(0)
    every = tl.zeros((BLOCK,), tl.uint64)
    ones = tl.zeros((BLOCK,), tl.uint64)
    for start in range(program * BLOCK, rows, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        there = at < rows
        double = tl.load(scores + at, mask=there, other=0.0).to(tl.float64) + 0.0
        code = tl.load(codes + at, mask=there, other=0)
        half = tl.full((), 1 << (DROPPED - 1), tl.uint64)
        z = (double.to(tl.uint64, bitcast=True) + half) >> DROPPED
        for turn in tl.static_range(len(ROUNDS) // 2):
            z = _scrambled(z, ROUNDS[2 * turn], ROUNDS[2 * turn + 1])
        z = tl.where(there, z, 0)
        every += z
        ones += tl.where(code != 0, z, 0)
    tl.store(sums + 2 * program, tl.sum(every).to(tl.int64, bitcast=True))
    tl.store(sums + 2 * program + 1, tl.sum(ones).to(tl.int64, bitcast=True))


@triton.jit
def _drawn_kernel(rows, first, limit, chosen, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    """Which positions have a small hash; `first` and `limit` are unsigned numbers as signed ones."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    z = (at.to(tl.int64) + first).to(tl.uint64, bitcast=True)
    for turn in tl.static_range(len(ROUNDS) // 2):
        z = _scrambled(z, ROUNDS[2 * turn], ROUNDS[2 * turn + 1])
    most = (limit + tl.zeros((), tl.int64)).to(tl.uint64, bitcast=True)
    tl.store(chosen + at, (z <= most).to(tl.int8), mask=at < rows)


class _Search(NamedTuple):
    """What `_cell` needs to find the cell of a score."""

    grid: _Tensor
    cuts: _Tensor
    low: float
    scale: float
    last: float
    halvings: int


@triton.jit
def _places_kernel(cuts, size, low, scale, last, places, BLOCK: tl.constexpr):
    """The grid's cell of each cut, by the arithmetic of `_cell`."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = at < size
    cut = tl.load(cuts + at, mask=there, other=0.0)
    tl.store(places + at, _place(cut, low, scale, last), mask=there)


def _search(cuts: _Tensor) -> _Search:
    """Lay a grid over increasing cuts, which have the dtype and device of the scores."""
    size = cuts.shape[0]
    cells = triton.next_power_of_2(_GRID_CELLS * max(size, 1))
    low = float(cuts[0]) if size else 0.0
    scale = cells / (float(cuts[-1]) - low) if size > 1 else 0.0
    if not (_TINY < scale < _HUGE and abs(low) < _HUGE):  # one cell for all scores
        cells = 1
        low = 0.0
        scale = 0.0
    last = float(cells - 1)
    places = torch.zeros(size, dtype=torch.int32, device=cuts.device)
    if cells > 1:
        with torch.cuda.device_of(cuts):
            _places_kernel[(triton.cdiv(size, _BLOCK),)](
                cuts, size, low, scale, last, places, BLOCK=_BLOCK
            )  # fmt: skip
    below = torch.searchsorted(
        places, torch.arange(cells + 1, dtype=torch.int32, device=cuts.device)
    )
    most = int((below[1:] - below[:-1]).max())
    halvings = most.bit_length()
    beyond = cuts.new_full((1 << halvings,), math.inf)
    return _Search(
        below[:-1].to(torch.int32), torch.cat([cuts, beyond]), low, scale, last, halvings
    )


def _launches(scores: _Tensor) -> Iterator[slice]:
    """The rows of each launch."""
    for start in range(0, scores.shape[0], _LAUNCH_ROWS):
        yield slice(start, start + _LAUNCH_ROWS)


def count_groups(scores: _Tensor, codes: _Tensor, cuts: _Tensor) -> _Tensor:
    """Rows by cell and code, an int64 tensor of shape (m + 1, 2); see `device.count`."""
    search = _search(cuts)
    size = 2 * (cuts.shape[0] + 1)
    groups = triton.next_power_of_2(size)
    atomic = groups > _MOST_SHARED
    block = _BLOCK if atomic else _COUNT_BLOCK
    total = torch.zeros(groups, dtype=torch.int64, device=scores.device)
    for here in _launches(scores):
        part = scores[here]
        programs = min(_PROGRAMS, triton.cdiv(part.shape[0], block))
        counts = torch.zeros(programs, groups, dtype=torch.int32, device=scores.device)
        with torch.cuda.device_of(scores):
            _count_kernel[(programs,)](
                part, codes[here], part.shape[0], *search[:-1], counts, GROUPS=groups,
                HALVINGS=search.halvings, ATOMIC=atomic, BLOCK=block,
                num_warps=4 if atomic else 8
            )  # fmt: skip
        total += counts.sum(dim=0)
    return total[:size].reshape(-1, 2)


def look_up(scores: _Tensor, cuts: _Tensor, table: _Tensor) -> _Tensor:
    """The entry, or row, of a table for each score's cell; see `device.look_up`."""
    found = table.new_empty((scores.shape[0], *table.shape[1:]))
    entries, out = (
        array.view(torch.uint8) if array.dtype == torch.bool else array for array in (table, found)
    )
    constants = {"WIDTH": math.prod(table.shape[1:]), "BLOCK": _BLOCK}
    _for_each_score(_look_up_kernel, scores, cuts, entries, out, constants)
    return found


def follow(scores: _Tensor, cuts: _Tensor, lines: _Tensor, found: _Tensor) -> None:
    """Write the value of each score's line; see `device_curves.follow`."""
    width = lines.shape[1]
    stride = triton.next_power_of_2(width)  # so that a line lies in one sector of the cache
    padded = torch.nn.functional.pad(lines, (0, stride - width))
    # without fusion there are two roundings, as on the host
    constants = {"WIDTH": width, "STRIDE": stride, "BLOCK": _CURVE_BLOCK, "num_warps": _CURVE_WARPS}
    constants["enable_fp_fusion"] = False
    _for_each_score(_follow_kernel, scores, cuts, padded, found, constants)


def _for_each_score(
    kernel: Any, scores: _Tensor, cuts: _Tensor, table: _Tensor, out: _Tensor, constants: Any
) -> None:
    """Run a kernel that writes what it finds in a table for each score's cell."""
    search = _search(cuts)
    for here in _launches(scores):
        part = scores[here]
        programs = triton.cdiv(part.shape[0], constants["BLOCK"])
        with torch.cuda.device_of(scores):
            kernel[(programs,)](
                part,
                part.shape[0],
                *search[:-1],
                table,
                out[here],
                HALVINGS=search.halvings,
                **constants,
            )


def count_digits(scores: _Tensor, tables: Sequence[_Tensor], wanted: int) -> _Tensor:
    """How often each next 16 bits come after each wanted beginning; see `device.order_statistics`.

    `tables` are those of the digits that are known: from a beginning and a digit to the next
    beginning. Beginnings that are not `wanted` have larger numbers, and are not counted.
    """
    whole, width = (torch.int64, 64) if scores.dtype == torch.float64 else (torch.int32, 32)
    numbers = scores.contiguous().view(whole)
    size = wanted << 16
    copies = 1 if tables else _DIGIT_COPIES
    three = [*tables, numbers, numbers, numbers][:3]  # those beyond the known digits are not read
    total = torch.zeros(size, dtype=torch.int64, device=scores.device)
    for here in _launches(scores):
        part = numbers[here]
        counts = torch.zeros(copies, size, dtype=torch.int32, device=scores.device)
        with torch.cuda.device_of(scores):
            _digits_kernel[(min(_PROGRAMS, triton.cdiv(part.shape[0], _BLOCK)),)](
                part, part.shape[0], *three, size, counts, ABOVE=len(tables), WIDTH=width,
                COPIES=copies, BLOCK=_BLOCK
            )  # fmt: skip
        total += counts.sum(dim=0)
    return total


def sums_of_rows(
    scores: _Tensor, codes: _Tensor, dropped: int, rounds: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """Sums, modulo 2**64, of the hashes of rounded scores: of all rows, and of those with code 1.

    `dropped` are the last bits of a double, by which it is rounded.
    """
    every = 0
    ones = 0
    for here in _launches(scores):
        part = scores[here]
        sums = torch.zeros(_PROGRAMS, 2, dtype=torch.int64, device=scores.device)
        with torch.cuda.device_of(scores):
            _sums_kernel[(_PROGRAMS,)](
                part, codes[here], part.shape[0], sums, DROPPED=dropped, ROUNDS=_flat(rounds),
                BLOCK=_BLOCK
            )  # fmt: skip
        both = sums.sum(dim=0).tolist()
        every += both[0]
        ones += both[1]
    return every % 2**64, ones % 2**64


def drawn(
    rows: int, first: int, limit: int, rounds: Sequence[tuple[int, int]], device: Any
) -> _Tensor:
    """Positions whose hash is below `limit`; that of position 0 begins with `first`."""
    found = [torch.empty(0, dtype=torch.int64, device=device)]
    for start in range(0, rows, _DRAWN_ROWS):
        size = min(_DRAWN_ROWS, rows - start)
        chosen = torch.empty(size, dtype=torch.int8, device=device)
        with torch.cuda.device_of(chosen):
            _drawn_kernel[(triton.cdiv(size, _BLOCK),)](
                size, _signed(first + start), _signed(limit - 1), chosen, ROUNDS=_flat(rounds),
                BLOCK=_BLOCK
            )  # fmt: skip
        found.append(chosen.nonzero()[:, 0] + start)
    return torch.cat(found)


def _flat(rounds: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    return tuple(number for pair in rounds for number in pair)


def _signed(bits: int) -> int:
    """An unsigned number of 64 bits as the signed one with the same bits."""
    bits %= 2**64
    return bits - (bits >> 63 << 64)
