"""GPU kernels for order statistics and fingerprints: count digits, and sum over rows.

Like `calibrant.gpu._triton`, which counts and looks up, they need Triton, which comes with
torch on Linux.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import triton
import triton.language as tl

from calibrant.kernels.hash import DROPPED_BITS, FEWER_ROUNDS, ROUNDS
from calibrant.params.tensors import DeviceArray

ROUND_NUMBERS = tuple(number for pair in ROUNDS for number in pair)
"""Shifts and multipliers of a hash, as kernels take them."""

_FEWER_NUMBERS = tuple(number for pair in FEWER_ROUNDS for number in pair)

_LAUNCH_ROWS = 1 << 30
"""Rows per launch, so that counts within it fit in 32 bits."""

_BLOCK = 1024
"""Rows that a program processes at a time."""

_DIGIT_COPIES = 256
"""Copies of the counts of first digits, so that fewer programs add to the same counter: few
different first digits occur.
"""

_PROGRAMS = 2112
"""Programs per launch: 16 for each multiprocessor of an H200."""


@triton.jit
def _digits_kernel(
    numbers, rows, first, second, third, wanted, counts, ABOVE: tl.constexpr,
    WIDTH: tl.constexpr, COPIES: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Count the next 16 bits of the scores that share their leading bits with a wanted score;
    `numbers` are the bits.
    """
    program = tl.program_id(0)
    own = counts + (program % COPIES).to(tl.int64) * wanted
    for start in range(program * BLOCK, rows, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        there = at < rows
        bits = tl.load(numbers + at, mask=there, other=0)
        # in the order of the scores: flip the bits of negative scores, and turn -0.0 into 0.0
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
def scrambled(z, SHIFT: tl.constexpr, FACTOR: tl.constexpr):
    """One round of a hash of unsigned integers."""
    return (z ^ (z >> SHIFT)) * tl.full((), FACTOR, tl.uint64)


@triton.jit
def _sums_kernel(
    scores, codes, rows, sums, DROPPED: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Sums of the hashes of rounded scores, over all rows and over rows with code 1."""
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
            z = scrambled(z, ROUNDS[2 * turn], ROUNDS[2 * turn + 1])
        z = tl.where(there, z, 0)
        every += z
        ones += tl.where(code != 0, z, 0)
    tl.store(sums + 2 * program, tl.sum(every).to(tl.int64, bitcast=True))
    tl.store(sums + 2 * program + 1, tl.sum(ones).to(tl.int64, bitcast=True))


def launches(rows: int) -> Iterator[slice]:
    """Yield the rows of each launch."""
    for start in range(0, rows, _LAUNCH_ROWS):
        yield slice(start, start + _LAUNCH_ROWS)


def count_digits(scores: DeviceArray, tables: Sequence[DeviceArray], wanted: int) -> DeviceArray:
    """Count the next 16 bits after each wanted prefix, for order statistics.

    `tables` map a prefix and its next digit to the next prefix, one table per digit already known.
    Prefixes that are not wanted have indices of `wanted` or more and are not counted.
    """
    whole, width = (torch.int64, 64) if scores.dtype == torch.float64 else (torch.int32, 32)
    numbers = scores.contiguous().view(whole)
    size = wanted << 16
    copies = 1 if tables else _DIGIT_COPIES
    three = [*tables, numbers, numbers, numbers][:3]  # tables beyond the known digits are not read
    total = torch.zeros(size, dtype=torch.int64, device=scores.device)
    for here in launches(scores.shape[0]):
        part = numbers[here]
        counts = torch.zeros(copies, size, dtype=torch.int32, device=scores.device)
        with torch.cuda.device_of(scores):
            _digits_kernel[(min(_PROGRAMS, triton.cdiv(part.shape[0], _BLOCK)),)](
                part, part.shape[0], *three, size, counts, ABOVE=len(tables), WIDTH=width,
                COPIES=copies, BLOCK=_BLOCK
            )  # fmt: skip
        total += counts.sum(dim=0)
    return total


def sums_of_rows(scores: DeviceArray, codes: DeviceArray) -> tuple[int, int]:
    """Sums modulo 2**64 of the hashes of rounded scores, over all rows and over rows with code 1."""
    every = 0
    ones = 0
    for here in launches(scores.shape[0]):
        part = scores[here]
        programs = min(_PROGRAMS, triton.cdiv(part.shape[0], _BLOCK))
        sums = torch.zeros(programs, 2, dtype=torch.int64, device=scores.device)
        with torch.cuda.device_of(scores):
            _sums_kernel[(programs,)](
                part, codes[here], part.shape[0], sums, DROPPED=DROPPED_BITS,
                ROUNDS=_FEWER_NUMBERS, BLOCK=_BLOCK
            )  # fmt: skip
        both = sums.sum(dim=0).tolist()
        every += both[0]
        ones += both[1]
    return every % 2**64, ones % 2**64
