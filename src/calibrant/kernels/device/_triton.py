"""The fused kernel for torch tensors where CUDA C++ can not be compiled: Triton comes with torch.

It reads the tables through the cache and counts with Triton's own histogram, of which it has no control; `_raw.cu`, by
the same method, is faster.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels.device._keys import build
from calibrant.kernels.device._plain import own_cuts

TILE, WARPS, PROGRAMS = 2048, 4, 16
"""Rows at a time, warps that share them, and programs for each multiprocessor; measured on an H200."""
MOST_CUTS = 1023
"""With more cuts the histogram takes longer than plain operations."""

tl: Any = None  # triton.language, once it is needed: the kernel's text refers to it by this name


def _tally(  # type: ignore[no-untyped-def]
    scores, score_stride, labels, label_stride, rows, table, cuts, low, scale, shift, offset, last, result,
    LINEAR: tl.constexpr, DEPTH: tl.constexpr, SIZE: tl.constexpr, BINS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    counts = tl.zeros([BINS], tl.int32)
    lanes = tl.arange(0, TILE)
    first = tl.program_id(0).to(tl.int64) * TILE
    step = tl.num_programs(0).to(tl.int64) * TILE
    for start in range(first, rows, step):
        inside = lanes < rows - start
        row = start + lanes
        score = tl.load(scores + row * score_stride, mask=inside, other=0)
        label = tl.load(labels + row * label_stride, mask=inside, other=0)
        narrow = score.to(tl.float32)
        if LINEAR:
            key = tl.minimum(tl.maximum((narrow - low) * scale, 0.0), last.to(tl.float32)).to(tl.int32)
        else:
            bits = tl.where(narrow == 0, 0.0, narrow).to(tl.int32, bitcast=True)
            bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
            key = tl.minimum(tl.maximum((bits >> shift) - offset, 0), last)
        good = (tl.abs(score) < float("inf")) & ((label == 0) | (label == 1))
        entry = tl.load(table + tl.where(good, key, 0))
        cell = entry & 0xFFFF
        for _ in range(DEPTH):
            # The cuts end in NaN, which no score reaches.
            cell += (score >= tl.load(cuts + cell, mask=entry > 0xFFFF, other=float("nan"))).to(tl.int32)
        bins = tl.where(good, cell * 2 + (label == 1).to(tl.int32), 2 * SIZE)
        counts += tl.histogram(bins, BINS, mask=inside)
    places = tl.arange(0, BINS)
    tl.atomic_add(result + places, counts.to(tl.int64), mask=places <= 2 * SIZE)


@lru_cache(maxsize=1)
def installed() -> bool:
    return find_spec("triton") is not None


@lru_cache(maxsize=1)
def _kernel() -> Any:
    global tl
    tl = import_module("triton.language")
    return import_module("triton").jit(_tally)


def fits(ops: Any, scores: Any, labels: Any, cuts: FloatArray) -> bool:
    """Whether the fused kernel can work with these arrays."""
    return bool(0 < cuts.shape[0] <= MOST_CUTS and scores.shape[0] > 0)


def tally(ops: Any, scores: Any, labels: Any, cuts: FloatArray) -> tuple[IntArray, IntArray, int]:
    own = own_cuts(ops, scores, cuts)
    keys = build(own)
    size = cuts.shape[0] + 1
    if ops.kind(labels) == "bool":
        labels = ops.as_bytes(labels)
    result = ops.zeros((2 * size + 1,), "int64", scores)
    edges = ops.to_device(np.append(own, np.full(1, np.nan, own.dtype)), scores)
    table = ops.to_device(keys.cells.view(np.int32), scores)
    programs = min(PROGRAMS * ops.multiprocessors(scores), -(-scores.shape[0] // TILE))
    with ops.on_device(scores):
        _kernel()[(programs,)](
            scores, ops.stride(scores), labels, ops.stride(labels), scores.shape[0], table, edges,
            float(keys.low), float(keys.scale), keys.shift, keys.offset, keys.cells.shape[0] - 1, result,
            LINEAR=keys.linear, DEPTH=keys.depth, SIZE=size, BINS=1 << (2 * size).bit_length(), TILE=TILE,
            num_warps=WARPS,
        )  # fmt: skip
    counts = ops.to_host(result)
    pairs = counts[: 2 * size].reshape(size, 2)
    return pairs.sum(axis=1), pairs[:, 1].copy(), int(counts[-1])
