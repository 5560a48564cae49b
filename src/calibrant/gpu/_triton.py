"""Fused GPU kernels for counting and looking up, which torch's own operations would do in many
passes.

These kernels, and those of `calibrant.gpu._triton_draws`, are our only GPU kernels. Triton
comes with torch on Linux; CuPy arrays are passed by DLPack, without a copy. Without Triton, rows are
copied to the host.

Notes
-----
A score is searched in two steps, as on the host. An even grid over the cuts gives the number of cuts
in lower cells of the grid; a binary search finds the rest among the cuts of the score's own cell.
Scores and cuts go through the same arithmetic, which never decreases in the score, so rounding
cannot misplace a score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from calibrant.gpu._triton_draws import ROUND_NUMBERS, launches, scrambled
from calibrant.gpu._triton_nvidia import (
    begin_counting,
    count_rows,
    counters_of,
    end_counting,
    is_nvidia,
    load_pair,
)
from calibrant.gpu.draws import signed
from calibrant.kernels._curves import LINE
from calibrant.kernels.hash import GOLDEN
from calibrant.params.tensors import DeviceArray

_GRID_CELLS = 8
"""Grid cells per cut, for few cuts."""

_SMALL_GRID = 4096
"""With many cuts, the grid has half as many cells as cuts, but at least this many: a small grid
stays in the cache of a multiprocessor.
"""

_MOST_CELLS = 1 << 24
"""The largest number of cells whose indices single precision can represent."""

_BLOCK = 1024
"""Rows that a program processes at a time."""

_CURVE_BLOCK = 256
_CURVE_WARPS = 4
"""Rows and warps of a program that evaluates curves. Smaller blocks, because with many cells
programs wait for memory, and more of them can then run meanwhile.
"""

# Triton passes numbers to a kernel in single precision, which can hold numbers between these
_TINY = 1e-30
_HUGE = 1e30


@triton.jit
def _cell(score, grid, cuts, low, scale, last, HALVINGS: tl.constexpr):
    """The number of cuts that are not above the score; the same arithmetic as in `_search`."""
    place = tl.minimum(tl.maximum((score - low) * scale, 0.0), last).to(tl.int32)
    cell = tl.load(grid + place).to(tl.int32)
    for halving in tl.static_range(HALVINGS):
        step = 1 << (HALVINGS - 1 - halving)
        cell += tl.where(score >= tl.load(cuts + cell + (step - 1)), step, 0)
    return cell


@triton.jit
def _count_kernel(
    scores, codes, places, rows, key, grid, cuts, low, scale, last, cells, counts,
    AT_KNOTS: tl.constexpr, HAS_PLACES: tl.constexpr, ROUNDS: tl.constexpr, COPIES: tl.constexpr,
    GROUPS: tl.constexpr, SHARED: tl.constexpr, HALVINGS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Count rows by cell and code or, at knots, by knot, half and code; `key` and the position of a
    row determine its random bits.
    """
    program = tl.program_id(0)
    own = counts + (program % COPIES) * GROUPS
    counters = begin_counting(GROUPS, SHARED)
    for start in range(program * BLOCK, rows, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        there = at < rows
        score = tl.load(scores + at, mask=there, other=0.0)
        code = tl.load(codes + at, mask=there, other=0).to(tl.int32)
        group = _cell(score, grid, cuts, low, scale, last, HALVINGS)
        if AT_KNOTS:
            position = at.to(tl.int64)
            if HAS_PLACES:
                position = tl.load(places + at, mask=there, other=0)
            bits = (position + key).to(tl.uint64, bitcast=True)
            for turn in tl.static_range(len(ROUNDS) // 2):
                bits = scrambled(bits, ROUNDS[2 * turn], ROUNDS[2 * turn + 1])
            cell = cells + group * 4
            first = tl.load(cell).to(tl.int32)
            share = (score.to(tl.float64) - tl.load(cell + 1)) * tl.load(cell + 2)
            # the first 53 bits as a number in [0, 1); signed integers have a conversion instruction
            uniform = (bits >> 11).to(tl.int64).to(tl.float64) * 1.1102230246251565e-16
            knot = first + (uniform < share).to(tl.int32)
            group = 2 * knot + (bits & 1).to(tl.int32)
        count_rows(2 * group + code, there, own, counters, SHARED)
    end_counting(own, counters, GROUPS, SHARED)


@triton.jit
def _checked(score, there, ends, outside, BLOCK: tl.constexpr):
    """Flag scores outside `ends`, such as NaN, and replace them by one that can be searched.

    Each row of a block has its own flag: with a single flag, Triton would exchange scores between
    threads, which takes a third longer.
    """
    low = tl.load(ends)
    inside = (score >= low) & (score <= tl.load(ends + 1))
    tl.store(outside + tl.arange(0, BLOCK), 1, mask=there & (inside == 0))
    return tl.where(inside, score, low)


@triton.jit
def _look_up_kernel(
    scores, rows, ends, outside, grid, cuts, low, scale, last, table, found, WIDTH: tl.constexpr,
    HALVINGS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Copy the table entries of each score's cell."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    at = start + tl.arange(0, BLOCK)
    there = at < rows
    score = tl.load(scores + at, mask=there, other=0.0)
    score = _checked(score, there, ends, outside, BLOCK)
    cell = _cell(score, grid, cuts, low, scale, last, HALVINGS)
    for column in tl.static_range(WIDTH):
        entry = tl.load(table + cell * WIDTH + column)
        tl.store(found + at * WIDTH + column, entry, mask=there)


@triton.jit
def _follow_line(
    score, begin, line, at, there, found, PAIRS: tl.constexpr, NVIDIA: tl.constexpr
):  # fmt: skip
    """Write the value of a line; with pairs of offsets, its sum with each, clipped to [0, 1]."""
    slope, first = load_pair(line, NVIDIA)
    value = (score.to(tl.float64) - begin) * slope + first
    # scores and values are used once: leave the cache to the lines
    if PAIRS == 1:
        tl.store(found + at, value, mask=there, cache_modifier=".cs")
    for pair in tl.static_range(PAIRS - 1):
        one, other = load_pair(line + 2 * (pair + 1), NVIDIA)
        to = found + (at.to(tl.int64) * (PAIRS - 1) + pair) * 2
        tl.store(to, _rate(value + one), mask=there, cache_modifier=".cs")
        tl.store(to + 1, _rate(value + other), mask=there, cache_modifier=".cs")


@triton.jit
def _follow_kernel(
    scores, rows, ends, outside, grid, cuts, low, scale, last, begins, pairs, found,
    PAIRS: tl.constexpr, NVIDIA: tl.constexpr, HALVINGS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The value of each score's line, or its sums with offsets."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    at = start + tl.arange(0, BLOCK)
    there = at < rows
    score = tl.load(scores + at, mask=there, other=0.0, cache_modifier=".cg")
    score = _checked(score, there, ends, outside, BLOCK)
    cell = _cell(score, grid, cuts, low, scale, last, HALVINGS)
    begin = tl.load(begins + cell).to(tl.float64)
    _follow_line(score, begin, pairs + cell * (2 * PAIRS), at, there, found, PAIRS, NVIDIA)


@triton.jit
def _rate(value):
    return tl.minimum(tl.maximum(value, 0.0), 1.0)


class _Search(NamedTuple):
    """What `_cell` needs to find the cell of a score."""

    grid: DeviceArray
    cuts: DeviceArray
    low: float
    scale: float
    last: float
    halvings: int


def _n_cells(n_cuts: int) -> int:
    """Number of grid cells for so many cuts, if the cuts are not too close together."""
    wanted = min(_GRID_CELLS * max(n_cuts, 1), max(_SMALL_GRID, n_cuts // 2))
    return min(int(triton.next_power_of_2(wanted)), _MOST_CELLS)


def _search(cuts: NDArray[Any], scores: DeviceArray) -> _Search:
    """Build a grid over increasing cuts, which have the dtype of the scores."""
    size = cuts.size
    cells = _n_cells(size)
    low = np.float32(0.0)
    scale = np.float32(0.0)
    with np.errstate(all="ignore"):
        if size > 1:
            low = np.float32(cuts[0])
            scale = np.float32(cells / (np.float64(cuts[-1]) - np.float64(low)))
        if not (_TINY < scale < _HUGE and abs(low) < _HUGE):  # one cell for all scores
            cells = 1
            low = np.float32(0.0)
            scale = np.float32(0.0)
        # as in `_cell`: single-precision numbers, computed in the precision of the scores
        place = np.zeros(size, dtype=np.int32)
        if cells > 1:
            kind = cuts.dtype.type
            place = np.clip((cuts - kind(low)) * kind(scale), 0, cells - 1).astype(np.int32)
    in_cell = np.bincount(place, minlength=cells)
    below = np.cumsum(in_cell) - in_cell
    halvings = int(in_cell.max()).bit_length()
    beyond = np.full(1 << halvings, math.inf, dtype=cuts.dtype)
    kind = np.int16 if size < 1 << 15 else np.int32
    grid = torch.from_numpy(below.astype(kind)).to(scores.device)
    padded = torch.from_numpy(np.concatenate([cuts, beyond])).to(scores.device)
    return _Search(grid, padded, float(low), float(scale), float(cells - 1), halvings)


def count_groups(scores: DeviceArray, codes: DeviceArray, cuts: NDArray[Any]) -> DeviceArray:
    """Rows by cell and code, as an int64 tensor of shape (m + 1, 2); see `kernels.count`."""
    return _counted(scores, codes, cuts, cuts.size + 1).reshape(-1, 2)


def count_knots(
    scores: DeviceArray,
    codes: DeviceArray,
    places: DeviceArray | None,
    key: int,
    cells: tuple[NDArray[Any], NDArray[Any]],
    size: int,
) -> DeviceArray:
    """Rows by knot, half and code, as an int64 tensor of shape (size, 2, 2); see
    `draws.count_knots`.

    `cells` holds the cuts, in the dtype of the scores, and the table of cells.
    """
    cuts, table = cells
    padded = torch.from_numpy(np.pad(table, ((0, 0), (0, 1)))).to(scores.device)
    return _counted(scores, codes, cuts, 2 * size, padded, places, key).reshape(size, 2, 2)


def _counted(
    scores: DeviceArray,
    codes: DeviceArray,
    cuts: NDArray[Any],
    n_groups: int,
    cells: DeviceArray | None = None,
    places: DeviceArray | None = None,
    key: int = 0,
) -> DeviceArray:
    """Rows by group and code: groups are cells or, with a table of `cells`, knots and halves."""
    search = _search(cuts, scores)
    size = 2 * n_groups
    total = torch.zeros(size, dtype=torch.int64, device=scores.device)
    for here in launches(scores.shape[0]):
        part = scores[here]
        counts, constants, programs = counters_of(size, part.shape[0], _BLOCK, scores.device)
        first = key + GOLDEN + (here.start if places is None else 0)
        with torch.cuda.device_of(scores):
            _count_kernel[(programs,)](  # arguments that are not needed are not read
                part, codes[here], part if places is None else places[here], part.shape[0],
                signed(first), *search[:-1], part if cells is None else cells, counts,
                AT_KNOTS=cells is not None, HAS_PLACES=places is not None, ROUNDS=ROUND_NUMBERS,
                HALVINGS=search.halvings, **constants
            )  # fmt: skip
        total += counts.sum(dim=0)[:size]
    return total


def look_up(
    scores: DeviceArray, cuts: NDArray[Any], table: DeviceArray, ends: NDArray[Any]
) -> tuple[DeviceArray, bool]:
    """The table entry or row of each score's cell, and whether all scores are within `ends`; see
    `kernels.look_up`.
    """
    found = table.new_empty((scores.shape[0], *table.shape[1:]))
    entries, out = (
        array.view(torch.uint8) if array.dtype == torch.bool else array for array in (table, found)
    )
    search = _search(cuts, scores)
    constants = {
        "WIDTH": math.prod(table.shape[1:]),
        "HALVINGS": search.halvings,
        "BLOCK": _BLOCK,
    }
    tables = [*search[:-1], entries]
    return found, _for_each_score(_look_up_kernel, scores, ends, tables, out, constants)


def follow(
    scores: DeviceArray,
    cuts: NDArray[Any],
    lines: NDArray[Any],
    found: DeviceArray,
    ends: NDArray[Any],
) -> bool:
    """Write the value of each score's line; return whether all scores are within `ends`; see
    `kernels.follow`.

    Offsets, if any, come in pairs.
    """
    begins, values, slopes = lines[:, :LINE].T
    pairs = np.ascontiguousarray(np.column_stack([slopes, values, lines[:, LINE:]]))
    begins = np.ascontiguousarray(_begins(begins, slopes, cuts.dtype))
    search = _search(cuts, scores)
    # without fusion there are two roundings, as on the host
    constants = {"PAIRS": pairs.shape[1] // 2, "enable_fp_fusion": False}
    there = torch.from_numpy(pairs).to(scores.device)
    constants |= {"NVIDIA": is_nvidia(scores.device), "HALVINGS": search.halvings}
    constants |= {"BLOCK": _CURVE_BLOCK, "num_warps": _CURVE_WARPS}
    tables = [*search[:-1], torch.from_numpy(begins).to(scores.device), there]
    return _for_each_score(_follow_kernel, scores, ends, tables, found, constants)


def _begins(
    begins: NDArray[np.float64], slopes: NDArray[np.float64], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Where lines begin: in the precision of the scores if it loses nothing, because the cache of a
    multiprocessor then holds more lines. Where a line is flat does not matter.
    """
    with np.errstate(over="ignore"):
        own = begins.astype(dtype)
    is_exact = (own == begins) | ((slopes == 0.0) & np.isfinite(own))
    return own if is_exact.all() else begins


def _for_each_score(
    kernel: Any,
    scores: DeviceArray,
    ends: NDArray[Any],
    tables: Sequence[Any],
    out: DeviceArray,
    constants: Any,
) -> bool:
    """Run a kernel that writes the table entry of each score's cell.

    Return whether all scores are within `ends`.
    """
    outside = torch.zeros(constants["BLOCK"], dtype=torch.int32, device=scores.device)
    limits = torch.from_numpy(ends).to(scores.device)
    for here in launches(scores.shape[0]):
        part = scores[here]
        programs = triton.cdiv(part.shape[0], constants["BLOCK"])
        with torch.cuda.device_of(scores):
            kernel[(programs,)](
                part, part.shape[0], limits, outside, *tables, out[here], **constants
            )
    return not bool(outside.any())
