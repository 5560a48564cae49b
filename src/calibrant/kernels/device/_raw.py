"""The fused kernels of `_raw.cu`, compiled at first use: by CuPy, or for torch tensors by torch itself."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels.device import _keys
from calibrant.kernels.device._keys import Keys, build
from calibrant.kernels.device._plain import own_cuts

THREADS, BLOCKS, ROWS = 1024, 1, 16
"""Threads of a block, blocks of a multiprocessor, rows of a thread at a time; measured on an H200."""
HISTOGRAM_BYTES = 1 << 15
"""Shared memory for a block's copies of the histogram, up to one copy for each lane of a warp."""

_TYPES = {
    "float32": "float", "float64": "double", "bool": "unsigned char", "uint8": "unsigned char",
    "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
}  # fmt: skip

_SETTINGS = np.dtype(
    [(name, np.int64) for name in ("score_stride", "label_stride", "rows", "vector_rows")]
    + [(name, np.int32) for name in ("n_cuts", "last_key", "shift", "offset", "copies")]
    + [(name, np.float32) for name in ("low", "scale")],
    align=True,
)


def fits(ops: Any, scores: Any, labels: Any | None, cuts: FloatArray) -> bool:
    """Whether the fused kernels can work with these arrays, and can be compiled."""
    known = labels is None or ops.kind(labels) in _TYPES
    size = cuts.shape[0] + 1
    if not (known and 1 < size <= _keys.MOST_CUTS and scores.shape[0] > 0):
        return False
    # The table of keys, cuts and table entries of eight bytes, and the histograms.
    shared = _SETTINGS.itemsize + 4 * _keys.SIZE + 16 * size + max(HISTOGRAM_BYTES, 4 * size)
    return bool(shared <= ops.shared_memory(scores) and ops.compiles(scores))


@lru_cache(maxsize=64)
def source(score: str, label: str, linear: bool, threads: int, blocks: int, rows: int) -> str:
    """CUDA C++ for these types."""
    text = Path(__file__).with_name("_raw.cu").read_text(encoding="utf-8")
    settings = {
        "Score": _TYPES[score], "Label": _TYPES[label], "LINEAR": int(linear),
        "THREADS": threads, "BLOCKS": blocks,
        "ROWS": rows // 2 if "64" in score + label else rows,  # eight-byte numbers take twice the registers
    }  # fmt: skip
    return "".join(f"#define {name} {value}\n" for name, value in settings.items()) + text


def tally(ops: Any, scores: Any, labels: Any, cuts: FloatArray) -> tuple[IntArray, IntArray, int]:
    own = own_cuts(ops, scores, cuts)
    keys = build(own)
    size = cuts.shape[0] + 1
    copies = 32
    while copies > 1 and 4 * copies * size > HISTOGRAM_BYTES:
        copies //= 2
    settings = _settings(ops, scores, labels, own, keys, copies)
    result = ops.zeros((2 * size + 1,), "int64", scores)
    ops.launch(
        source(ops.kind(scores), ops.kind(labels), keys.linear, THREADS, BLOCKS, ROWS), "tally",
        (scores, labels, settings, result),
        _blocks(ops, scores, BLOCKS), THREADS, settings.shape[0] + 4 * copies * size,
    )  # fmt: skip
    counts = ops.to_host(result)
    return counts[:size], counts[size : 2 * size], int(counts[-1])


def look_up_into(ops: Any, scores: Any, cuts: FloatArray, table: FloatArray, out: Any) -> None:
    """Write one table entry a row to a contiguous array."""
    own = own_cuts(ops, scores, cuts)
    keys = build(own)
    settings = _settings(ops, scores, scores, own, keys, 1)
    ops.launch(
        source(ops.kind(scores), "uint8", keys.linear, THREADS, BLOCKS, ROWS), "look_up",
        (scores, settings, ops.to_device(table, scores), out),
        _blocks(ops, scores, 2048 // THREADS), THREADS, settings.shape[0] + table.nbytes,
    )  # fmt: skip


def _settings(ops: Any, scores: Any, labels: Any, cuts: NDArray[Any], keys: Keys, copies: int) -> Any:
    """What the kernels call Settings, the cuts and the table, as bytes on the device: one copy instead of three."""
    rows = scores.shape[0]
    head = np.array(
        (
            ops.stride(scores), ops.stride(labels), rows, rows * _vectors(ops, scores, labels),
            cuts.shape[0], keys.cells.shape[0] - 1, keys.shift, keys.offset, copies, keys.low, keys.scale,
        ),
        _SETTINGS,
    )  # fmt: skip
    padding = b"\0" * (-cuts.nbytes % 8)
    return ops.to_device(
        np.frombuffer(head.tobytes() + cuts.tobytes() + padding + keys.cells.tobytes(), np.uint8), scores
    )


def _vectors(ops: Any, *arrays: Any) -> bool:
    """Whether four elements at a time can be read from each array."""
    return all(
        ops.stride(array) == 1 and ops.address(array) % min(16, 4 * array.dtype.itemsize) == 0 for array in arrays
    )


def _blocks(ops: Any, scores: Any, each: int) -> int:
    return int(min(each * ops.multiprocessors(scores), -(-scores.shape[0] // THREADS)))
