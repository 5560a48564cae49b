"""The per-row work by plain array operations, in pieces, so that temporary memory does not grow with the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels.device._keys import as_float32

CHUNK_ROWS = 1 << 24
"""Rows at a time: no operation needs more than 32 bytes of temporary memory a row, so 512 MB in all."""


def pieces(rows: int, size: int | None = None) -> Iterator[slice]:
    size = size or CHUNK_ROWS
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def own_cuts(ops: Any, scores: Any, cuts: FloatArray) -> NDArray[Any]:
    """The cuts in the scores' precision, with which the scores compare as with the cuts given."""
    return as_float32(cuts) if ops.kind(scores) == "float32" else cuts


def tally(ops: Any, scores: Any, labels: Any, cuts: FloatArray) -> tuple[IntArray, IntArray, int]:
    # With the least and the greatest number as cuts, scores that are none fall into cells of their own.
    lowest = np.finfo(np.dtype(ops.kind(scores))).min
    edges = ops.to_device(np.concatenate(([lowest], own_cuts(ops, scores, cuts), [np.inf])).astype(
        ops.kind(scores)), scores)  # fmt: skip
    size = cuts.shape[0] + 3
    total = ops.zeros((2 * size,), "int64", scores)
    for part in pieces(scores.shape[0]):
        keys = ops.add_scaled(ops.search(scores[part], edges), codes(ops, labels[part]), size)
        total += ops.histogram(keys, 2 * size)
    both = ops.to_host(total).reshape(2, size)[:, 1:-1]
    rows: IntArray = both.sum(axis=0)
    return rows, both[1].copy(), scores.shape[0] - int(rows.sum())


def codes(ops: Any, labels: Any) -> Any:
    """0 and 1 for these labels, and larger numbers for any others, as uint8."""
    kind = ops.kind(labels)
    if kind in ("bool", "uint8"):
        return ops.as_bytes(labels)
    hit = labels == 1
    return ops.cast(hit, "uint8") + ops.cast(~(hit | (labels == 0)), "uint8") * 2


def assign_into(ops: Any, scores: Any, cuts: FloatArray, out: Any) -> None:
    edges = ops.to_device(own_cuts(ops, scores, cuts), scores)
    for part in pieces(scores.shape[0]):
        out[part] = ops.search(scores[part], edges)


def look_up_into(ops: Any, scores: Any, cuts: FloatArray, table: FloatArray, out: Any) -> None:
    edges = ops.to_device(own_cuts(ops, scores, cuts), scores)
    entries = ops.to_device(table, scores)
    for part in pieces(scores.shape[0]):
        ops.take_into(entries, ops.search(scores[part], edges), out[part])


def first_nonfinite(ops: Any, scores: Any) -> int:
    for part in pieces(scores.shape[0]):
        if not ops.all_finite(scores[part]):
            return int(part.start + ops.first_true(~ops.isfinite(scores[part])))
    return -1


def encode(ops: Any, labels: Any, negative: Any, positive: Any) -> tuple[Any, int]:
    rows, kind = labels.shape[0], ops.kind(labels)
    ready = kind in ("bool", "uint8") and negative == 0 and positive == 1
    result = ops.as_bytes(labels) if ready else ops.empty((rows,), "uint8", labels)
    bad = -1
    for part in pieces(rows):
        if ready:
            wrong = result[part] > 1
        else:
            # A scalar takes the array's type: -1 would equal 255 in uint8.
            piece = labels[part] if kind.startswith("float") else ops.cast(labels[part], "int64")
            hit = piece == positive
            result[part] = ops.cast(hit, "uint8")
            wrong = ~(hit | (piece == negative))
        if bad < 0:
            found = ops.first_true(wrong)
            bad = found if found < 0 else part.start + found
    return result, bad
