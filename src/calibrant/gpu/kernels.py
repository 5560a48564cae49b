"""The work that is done on the GPU that holds the scores.

It is written once, against the common interface of torch, CuPy and numpy, and equals
`calibrant.kernels` bit for bit. It processes `CHUNK_ROWS` rows at a time, so its temporary memory
does not grow with the number of rows. `calibrant.params.tensors` recognises and copies arrays.

Counting and lookup have their own kernels in `calibrant.gpu._triton`, for torch with Triton, and
for CuPy if torch with Triton is installed too. `calibrant.gpu.draws` does all that needs random
numbers or ranks.

Notes
-----
Scores are compared as integers in the same order (`ordered`). CuPy treats subnormal float32 numbers
as zero; integers are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels._curves import LINE, shape_along
from calibrant.kernels._numpy import Limits, OutsideLimitsError
from calibrant.params.tensors import (
    DeviceArray,
    dtype,
    library_name,
    library_of,
    like,
    new_array,
    on_gpu,
    to_host,
)

CHUNK_ROWS = 1 << 24  # rows at a time: about 50 bytes of temporary memory each, 800 MB in total

LARGEST = float(np.finfo(np.float64).max)


def working_on(array: DeviceArray) -> AbstractContextManager[Any]:
    """Make the array's device current for CuPy, which works on its current device.

    torch follows the array itself.
    """
    return array.device if library_name(array) == "cupy" else nullcontext()


def row_parts(rows: int) -> Iterator[slice]:
    """Slices of at most `CHUNK_ROWS` rows."""
    for start in range(0, rows, CHUNK_ROWS):
        yield slice(start, min(start + CHUNK_ROWS, rows))


def every(test: Callable[[DeviceArray], DeviceArray], array: DeviceArray) -> bool:
    """Whether an elementwise test holds for every entry."""
    with working_on(array):
        return all(bool(test(array[part]).all()) for part in row_parts(array.shape[0]))


def ends_of(array: DeviceArray) -> tuple[Any, Any]:
    """The smallest and the largest entry as Python values; both NaN if any entry is NaN."""
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
    """Integers in the order of the scores, with 0 for zeros of both signs; NaN comes first or last."""
    library = library_of(scores)
    whole, width = (library.int64, 64) if dtype(scores) == "float64" else (library.int32, 32)
    bits = scores.view(whole)
    bits = bits ^ ((bits >> (width - 1)) & ((1 << (width - 1)) - 1))
    return bits + (bits == -1)


def own_cuts(cuts: FloatArray, scores: DeviceArray) -> NDArray[Any]:
    """The cuts in the dtype of the scores.

    For float32, the smallest number not below the cut, so that comparisons agree.
    """
    if dtype(scores) == "float64":
        return np.asarray(cuts + 0.0)
    with np.errstate(all="ignore"):
        own = cuts.astype(np.float32)
        return np.where(own < cuts, np.nextafter(own, np.float32(np.inf)), own)


def own_ends(limits: Limits | None, scores: DeviceArray) -> NDArray[Any]:
    """The smallest and the largest finite number within the limits, in the dtype of the scores."""
    kind = np.float64 if dtype(scores) == "float64" else np.float32
    largest = np.finfo(kind).max
    low, high = (-np.inf, np.inf) if limits is None else limits
    ends = np.array([max(low, -float(largest)), -min(high, float(largest))])
    return np.asarray(own_cuts(ends, scores) * np.array([1, -1], dtype=kind))


def check_inside(scores: DeviceArray, limits: Limits | None) -> None:
    """Raise `OutsideLimitsError` unless all scores are finite and within the limits, if any are
    given.
    """
    if limits is None or not scores.shape[0]:
        return
    low, high = ends_of(scores)
    if not (max(limits[0], -LARGEST) <= low and high <= min(limits[1], LARGEST)):
        raise OutsideLimitsError


def _ordered_cuts(cuts: FloatArray, scores: DeviceArray) -> DeviceArray:
    """The cuts as integers, as `ordered` makes them."""
    return like(ordered(own_cuts(cuts, scores)), scores)


def fused(scores: DeviceArray, name: str = "_triton") -> Any:
    """The module of our own kernels with this name if they can run on these scores, else None."""
    if not on_gpu(scores):
        return None
    try:
        return import_module(f"calibrant.gpu.{name}")
    except ImportError:
        return None


def tensor_of(array: DeviceArray) -> DeviceArray:
    """The array as a contiguous torch tensor, sharing memory if it already is one."""
    if library_name(array) == "torch":
        return array.detach().contiguous()
    return import_module("torch").from_dlpack(array).contiguous()


def bytes_of(codes: DeviceArray) -> DeviceArray:
    """Codes 0 and 1 as a tensor of bytes."""
    tensor = tensor_of(codes)
    library = library_of(tensor)
    return tensor.view(library.uint8) if tensor.dtype == library.bool else tensor.to(library.uint8)


def back(tensor: DeviceArray, array: DeviceArray) -> DeviceArray:
    """Convert a torch tensor to the library of `array`."""
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
        One entry or row per cell.
    limits : (float, float), optional
        For scores not yet checked: raise `OutsideLimitsError` unless all are finite and within
        these limits.

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


def follow(
    scores: DeviceArray, cuts: FloatArray, lines: FloatArray, *, limits: Limits | None = None
) -> DeviceArray:
    """Value of a piecewise linear curve, as in `calibrant.kernels.follow`.

    Each step of the sum is a separate operation, so that no compiler fuses two into one rounding.

    Parameters
    ----------
    scores : device array of shape (n,), float64 or float32
        Finite.
    cuts : numpy array of shape (m,)
        Strictly increasing.
    lines : numpy array of shape (m + 1, 3) or (m + 1, 3 + k)
        For each cell: where it begins, the value there, the slope, and k offsets.
    limits : (float, float), optional
        For scores not yet checked: raise `OutsideLimitsError` unless all are finite and within
        these limits.

    Returns
    -------
    device array of shape (n,) or (n, k)

    Examples
    --------
    >>> import torch
    >>> follow(torch.tensor([0.25, 0.5]), np.array([0.5]), np.array([[0.0, 0.0, 0.5], [0.5, 0.75,
    ...     0.0]]))
    tensor([0.1250, 0.7500], dtype=torch.float64)
    """
    rows = scores.shape[0]
    ours = fused(scores)
    has_pairs = lines.shape[1] % 2 == LINE % 2
    if ours is not None and has_pairs:
        own = tensor_of(scores)
        out = new_array(like(lines[:0], own), shape_along(rows, lines))
        ends = own_ends(limits, own)
        is_inside = ours.follow(own, own_cuts(cuts, own), lines, out, ends)
        if limits is not None and not is_inside:
            raise OutsideLimitsError
        return back(out, scores)
    check_inside(scores, limits)
    with working_on(scores):
        out = new_array(like(lines[:0], scores), shape_along(rows, lines))
        for part in row_parts(rows):
            found = look_up(scores[part], cuts, lines)
            curve = scores[part] - found[:, 0]
            curve *= found[:, 2]
            curve += found[:, 1]
            if out.ndim == 1:
                out[part] = curve
                continue
            for place in range(out.shape[1]):
                out[part, place] = (curve + found[:, LINE + place]).clip(0.0, 1.0)
    return out
