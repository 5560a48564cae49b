"""The per-row work for scores and labels that live on a device, as torch tensors or CuPy arrays: done where they are.

The functions mirror `calibrant.kernels` and give identical results. Only counts, order statistics and single indices
come back to the host. There are three implementations:

- ``"plain"``, by array operations, on every device, in pieces: temporary memory stays below 512 MB for any number of
  rows, besides what is returned;
- ``"raw"``, one CUDA kernel, compiled by CuPy, or by torch where it can;
- ``"triton"``, one Triton kernel, for torch tensors.

The fused kernels read the data once. They are used on CUDA devices where they can be compiled, the raw one first. None
of this ever changes a result. Neither library is imported unless it is used: an array's own library is loaded already.

Inputs are taken as already checked, but for `tally`, which checks as it counts: scores are finite one-dimensional
float64 or float32 arrays of any stride, and cuts are numpy arrays, finite and strictly increasing. float32 scores are
compared in float64.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.kernels.device import _cupy, _plain, _raw, _select, _sums, _torch, _triton
from calibrant.kernels.device._sums import CellSums

__all__ = [
    "CellSums",
    "assign",
    "count",
    "encode",
    "first_nonfinite",
    "is_device_array",
    "look_up",
    "order_statistics",
    "tally",
    "weighted",
]

DeviceArray: TypeAlias = Any
"""A torch tensor or a CuPy array."""

Implementation: TypeAlias = Literal["plain", "raw", "triton"] | None

FUSED_ROWS = 1 << 24
"""Below so many rows plain operations take about as long as starting a fused kernel, and need no half second to compile
it once."""


def is_device_array(array: object) -> bool:
    """Whether this is a torch tensor or a CuPy array, on whatever device.

    Parameters
    ----------
    array : object

    Returns
    -------
    bool

    Examples
    --------
    >>> is_device_array([0.5])
    False
    """
    return any(_library(kind) in ("torch", "cupy") for kind in type(array).__mro__)


def _library(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _operations(array: Any) -> Any:
    """The module of operations for this array."""
    names = {_library(kind) for kind in type(array).__mro__}
    if "torch" in names:
        return _torch
    if "cupy" in names or "numpy" in names:
        return _cupy
    raise InvalidTypeError(f"scores must be a torch tensor or a CuPy array; got {type(array).__name__}")


def _take(scores: Any, **others: Any) -> tuple[Any, ...]:
    """The operations, and the arrays without any record for gradients, all of one length, library and device."""
    ops = _operations(scores)
    if scores.ndim != 1:
        raise InvalidValueError(f"scores must be one-dimensional; got shape {tuple(scores.shape)}")
    if ops.kind(scores) not in ("float32", "float64"):
        raise InvalidTypeError(f"scores must be float32 or float64; got {ops.kind(scores)}: convert them first")
    for name, other in others.items():
        if _operations(other) is not ops or ops.device_of(other) != ops.device_of(scores):
            raise InvalidValueError(f"{name} must be of the scores' library and on their device: move one to the other")
        if tuple(other.shape) != tuple(scores.shape):
            raise InvalidValueError(
                f"{name} must have one entry a score; got shapes {tuple(other.shape)} and {tuple(scores.shape)}"
            )
    return ops, ops.detached(scores), *(ops.detached(other) for other in others.values())


def _fused(ops: Any, scores: Any, labels: Any | None, cuts: FloatArray, implementation: Implementation) -> Any:
    """The module of fused kernels that should be used, or None."""
    if implementation is not None:
        return {"plain": None, "raw": _raw, "triton": _triton}[implementation]
    if scores.shape[0] < FUSED_ROWS or not ops.is_cuda(scores):
        return None
    if _raw.fits(ops, scores, labels, cuts):
        return _raw
    if labels is not None and ops is _torch and _triton.installed() and _triton.fits(ops, scores, labels, cuts):
        return _triton
    return None


def tally(
    scores: DeviceArray, labels: DeviceArray, cuts: FloatArray, *, implementation: Implementation = None
) -> tuple[IntArray, IntArray, int]:
    """Rows and positives in each cell, and how many rows are none: checked and counted in one pass.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
    labels : device array of shape (n,), of any number type or bool
    cuts : numpy array of shape (m,)
        Strictly increasing.
    implementation : {"plain", "raw", "triton"}, optional
        Forces one, for tests and benchmarks.

    Returns
    -------
    rows, positives : numpy int64 arrays of shape (m + 1,)
        How many scores each cell holds, and how many of them have label 1.
    bad : int
        Rows whose score is NaN or infinite or whose label is neither 0 nor 1. Where there are any, the counts mean
        nothing; `first_nonfinite` and `encode` then find the first.

    Examples
    --------
    >>> import torch
    >>> tally(torch.tensor([0.1, 0.5, 0.9]), torch.tensor([0, 0, 1]), np.array([0.5]))
    (array([1, 2]), array([0, 1]), 0)
    >>> tally(torch.tensor([0.1, torch.nan, 0.9]), torch.tensor([0, 0, 2]), np.array([0.5]))[2]
    2
    """
    ops, scores, labels = _take(scores, labels=labels)
    cuts = np.asarray(cuts, np.float64)
    module = _fused(ops, scores, labels, cuts, implementation) or _plain
    result: tuple[IntArray, IntArray, int] = module.tally(ops, scores, labels, cuts)
    return result


def count(
    scores: DeviceArray, labels: DeviceArray, cuts: FloatArray, *, implementation: Implementation = None
) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
    labels : device array of shape (n,), of any number type or bool
        0 or 1.
    cuts : numpy array of shape (m,)
        Strictly increasing.
    implementation : {"plain", "raw", "triton"}, optional
        Forces one, for tests and benchmarks.

    Returns
    -------
    rows, positives : numpy int64 arrays of shape (m + 1,)
        What `calibrant.kernels.count` gives for the same numbers.

    Examples
    --------
    >>> import torch
    >>> count(torch.tensor([0.1, 0.5, 0.9]), torch.tensor([0, 0, 1]), np.array([0.5]))
    (array([1, 2]), array([0, 1]))
    """
    rows, positives, _ = tally(scores, labels, cuts, implementation=implementation)
    return rows, positives


def assign(scores: DeviceArray, cuts: FloatArray) -> DeviceArray:
    """Cell of each score: the number of cuts that are not above it.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
    cuts : numpy array of shape (m,)
        Strictly increasing.

    Returns
    -------
    device array of shape (n,), int64
        In 0..m.

    Examples
    --------
    >>> import torch
    >>> assign(torch.tensor([0.1, 0.5, 0.9]), np.array([0.5]))
    tensor([0, 1, 1])
    """
    ops, scores = _take(scores)
    out = ops.empty((scores.shape[0],), "int64", scores)
    _plain.assign_into(ops, scores, np.asarray(cuts, np.float64), out)
    return out


def look_up(
    scores: DeviceArray, cuts: FloatArray, table: FloatArray, *, implementation: Implementation = None
) -> DeviceArray:
    """Entry of a table for each score's cell.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
    cuts : numpy array of shape (m,)
        Strictly increasing.
    table : numpy array of shape (m + 1,) or (m + 1, k)
        One entry, or one row, for each cell.
    implementation : {"plain", "raw"}, optional
        Forces one, for tests and benchmarks.

    Returns
    -------
    device array of shape (n,) or (n, k), float64

    Examples
    --------
    >>> import torch
    >>> look_up(torch.tensor([0.1, 0.5, 0.9]), np.array([0.5]), np.array([0.25, 0.75]))
    tensor([0.2500, 0.7500, 0.7500], dtype=torch.float64)
    """
    ops, scores = _take(scores)
    cuts, table = np.asarray(cuts, np.float64), np.ascontiguousarray(table, np.float64)
    out = ops.empty((scores.shape[0], *table.shape[1:]), "float64", scores)
    fused = _fused(ops, scores, None, cuts, implementation) if table.ndim == 1 else None
    (fused or _plain).look_up_into(ops, scores, cuts, table, out)
    return out


def order_statistics(scores: DeviceArray, ranks: Any) -> FloatArray:
    """Scores of the given ranks, exactly; many rows are not sorted but counted digit by digit.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
    ranks : array of shape (k,), int
        In 1..n, where 1 is the smallest score; they may repeat.

    Returns
    -------
    numpy float64 array of shape (k,)
        With every zero positive.

    Examples
    --------
    >>> import torch
    >>> order_statistics(torch.tensor([0.75, 0.25, 0.5]), np.array([1, 2]))
    array([0.25, 0.5 ])
    """
    ops, scores = _take(scores)
    return _select.order_statistics(ops, scores, np.asarray(ranks, np.int64))


def first_nonfinite(scores: DeviceArray) -> int:
    """Index of the first score that is NaN or infinite, or -1.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32

    Returns
    -------
    int

    Examples
    --------
    >>> import torch
    >>> first_nonfinite(torch.tensor([0.1, torch.nan]))
    1
    """
    ops, scores = _take(scores)
    return _plain.first_nonfinite(ops, scores)


def encode(labels: DeviceArray, negative: Any, positive: Any) -> tuple[DeviceArray, int]:
    """Labels of two kinds as 0 and 1.

    Parameters
    ----------
    labels : device array of shape (n,), of any number type or bool
    negative, positive : scalars
        The two labels.

    Returns
    -------
    codes : device array of shape (n,), uint8
        1 where the label equals `positive`. Shares memory with bool or uint8 labels that are 0 and 1 already.
    first_bad : int
        Index of the first label that is neither of the two, or -1. Where there is one, the codes mean nothing.

    Examples
    --------
    >>> import torch
    >>> encode(torch.tensor([-1, 1, 1]), -1, 1)
    (tensor([0, 1, 1], dtype=torch.uint8), -1)
    """
    ops = _operations(labels)
    return _plain.encode(ops, ops.detached(labels), negative, positive)


def weighted(scores: DeviceArray, labels: DeviceArray, weights: DeviceArray, cuts: FloatArray) -> CellSums:
    """Exact sums of importance weights in each cell.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
    labels : device array of shape (n,), of any number type or bool
        0 or 1.
    weights : device array of shape (n,), of any number type
        Finite.
    cuts : numpy array of shape (m,)
        Strictly increasing.

    Returns
    -------
    CellSums
        Sums of w, w², wy and w²y, and the smallest and largest w. The sums do not depend on the order of rows.

    Examples
    --------
    >>> import torch
    >>> scores, labels = torch.tensor([0.1, 0.5, 0.9]), torch.tensor([0, 0, 1])
    >>> sums = weighted(scores, labels, torch.tensor([1.0, 2.0, 4.0]), np.array([0.5]))
    >>> sums.w.rounded(), sums.wy.rounded()
    (array([1., 6.]), array([0., 4.]))
    """
    ops, scores, labels, weights = _take(scores, labels=labels, weights=weights)
    return _sums.weighted(ops, scores, labels, weights, np.asarray(cuts, np.float64))
