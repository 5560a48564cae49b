"""The work that is done on the GPU that holds the scores.

It is written once, against what torch, CuPy and numpy have in common, and equals
`calibrant.kernels` bit for bit. It takes `CHUNK_ROWS` rows at a time, so its temporary memory does
not grow with the rows. How arrays are recognised and copied is in `calibrant.kernels.libraries`.

Counting and looking up have kernels of their own in `calibrant.kernels._triton`, for torch with
Triton, and for CuPy beside it. `device_draws`, `device_knots` and `device_curves` do the rest.

Notes
-----
Scores are compared as whole numbers in the same order (`ordered`). CuPy treats float32 numbers
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
from calibrant.kernels._chunks import Limits, OutsideLimitsError
from calibrant.kernels.libraries import (
    DeviceArray,
    dtype,
    library_name,
    library_of,
    like,
    on_gpu,
    to_host,
)

__all__ = ["count", "every", "extremes", "first", "look_up"]

CHUNK_ROWS = 1 << 24  # rows at a time: about 50 bytes of temporary memory each, 800 MB in all

LARGEST = float(np.finfo(np.float64).max)


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


def ordered(scores: DeviceArray) -> DeviceArray:
    """Whole numbers in the order of the scores, 0 for zeros of both signs; NaN comes last or first."""
    library = library_of(scores)
    whole, width = (library.int64, 64) if dtype(scores) == "float64" else (library.int32, 32)
    bits = scores.view(whole)
    bits = bits ^ ((bits >> (width - 1)) & ((1 << (width - 1)) - 1))
    return bits + (bits == -1)


def own_cuts(cuts: FloatArray, scores: DeviceArray) -> NDArray[Any]:
    """The cuts in the dtype of the scores.

    Of float32 the smallest that is not below the cut, which compares alike.
    """
    if dtype(scores) == "float64":
        return np.asarray(cuts + 0.0)
    with np.errstate(all="ignore"):
        own = cuts.astype(np.float32)
        return np.where(own < cuts, np.nextafter(own, np.float32(np.inf)), own)


def own_ends(limits: Limits | None, scores: DeviceArray) -> NDArray[Any]:
    """The smallest and the largest number in the dtype of the scores that is finite and within
    limits.
    """
    kind = np.float64 if dtype(scores) == "float64" else np.float32
    largest = np.finfo(kind).max
    low, high = (-np.inf, np.inf) if limits is None else limits
    ends = np.array([max(low, -float(largest)), -min(high, float(largest))])
    return np.asarray(own_cuts(ends, scores) * np.array([1, -1], dtype=kind))


def check_inside(scores: DeviceArray, limits: Limits | None) -> None:
    """Raise `OutsideLimitsError` unless all scores are finite and within limits, if there are any."""
    if limits is None or not scores.shape[0]:
        return
    low, high = extremes(scores)
    if not (max(limits[0], -LARGEST) <= low and high <= min(limits[1], LARGEST)):
        raise OutsideLimitsError


def _ordered_cuts(cuts: FloatArray, scores: DeviceArray) -> DeviceArray:
    """The cuts as `ordered` scores."""
    return like(ordered(own_cuts(cuts, scores)), scores)


def fused(scores: DeviceArray, name: str = "_triton") -> Any:
    """Our own kernels, a module by its name, where they can run on these scores; else None."""
    if not on_gpu(scores):
        return None
    try:
        return import_module(f"calibrant.kernels.{name}")
    except ImportError:
        return None


def tensor_of(array: DeviceArray) -> DeviceArray:
    """The array as a contiguous tensor of torch, in the same memory where it is one already."""
    if library_name(array) == "torch":
        return array.detach().contiguous()
    return import_module("torch").from_dlpack(array).contiguous()


def bytes_of(codes: DeviceArray) -> DeviceArray:
    """Codes of 0 and 1 as a tensor of bytes."""
    tensor = tensor_of(codes)
    library = library_of(tensor)
    return tensor.view(library.uint8) if tensor.dtype == library.bool else tensor.to(library.uint8)


def back(tensor: DeviceArray, array: DeviceArray) -> DeviceArray:
    """A tensor of torch in the library of `array`."""
    return tensor if library_name(array) == "torch" else library_of(array).from_dlpack(tensor)


def _cells(scores: DeviceArray, edges: DeviceArray) -> DeviceArray:
    return library_of(scores).searchsorted(edges, ordered(scores), side="right")


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
        found = to_host(ours.count_groups(own, bytes_of(codes), own_cuts(cuts, own)))
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


def look_up(
    scores: DeviceArray, cuts: FloatArray, table: NDArray[Any], *, limits: Limits | None = None
) -> DeviceArray:
    """Entry of a table for each score's cell, as `calibrant.kernels.look_up`.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
        Finite.
    cuts : numpy array of shape (m,)
        Strictly increasing.
    table : numpy array of shape (m + 1,) or (m + 1, k)
        One entry, or one row, for each cell.
    limits : (float, float), optional
        For scores that are not checked yet: raise `OutsideLimitsError` unless all are finite and
        within these limits.

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
        ends = own_ends(limits, own)
        out, is_inside = ours.look_up(own, own_cuts(cuts, own), like(table, own), ends)
        if limits is not None and not is_inside:
            raise OutsideLimitsError
        return back(out, scores)
    check_inside(scores, limits)
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
