"""The work that is done on the GPU that holds the scores.

It equals `calibrant.kernels` bit for bit. Scores and labels are torch tensors, or CuPy arrays as
tensors that share their memory (`gpu_tensor`). Counting and lookup have kernels in
`calibrant.gpu._triton`; `calibrant.gpu.draws` does all that needs random numbers or ranks. Without
torch and Triton, arrays are copied to the host, like all others.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import Lazy
from calibrant._typing import FloatArray, IntArray
from calibrant.kernels._curves import shape_along
from calibrant.kernels._numpy import Limits, OutsideLimitsError
from calibrant.params import tensors
from calibrant.params.tensors import DeviceArray, dtype, like, to_host

_triton: Any = Lazy("calibrant.gpu._triton")
torch: Any = Lazy("torch")


def gpu_tensor(array: object) -> DeviceArray | None:
    """The array as a torch tensor that shares its memory, if it is on a GPU and torch and Triton are
    installed; None otherwise.
    """
    if not tensors.on_gpu(array):
        return None
    try:
        import_module("calibrant.gpu._triton")
    except ImportError:
        return None
    return array if tensors.library_name(array) == "torch" else torch.from_dlpack(array)


def back(tensor: DeviceArray, array: DeviceArray) -> DeviceArray:
    """Convert a torch tensor to the library of `array`."""
    library = tensors.library_of(array)
    return tensor if library is sys.modules["torch"] else library.from_dlpack(tensor)


def ends_of(array: DeviceArray) -> tuple[Any, Any]:
    """The smallest and the largest entry as Python values; both NaN if any entry is NaN."""
    low, high = torch.aminmax(array)
    return low.item(), high.item()


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


def bytes_of(codes: DeviceArray) -> DeviceArray:
    """Codes 0 and 1 as contiguous bytes."""
    whole = codes.contiguous()
    return whole.view(torch.uint8) if whole.dtype == torch.bool else whole.to(torch.uint8)


def count(scores: DeviceArray, codes: DeviceArray, cuts: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell, as `calibrant.kernels.count`.

    Parameters
    ----------
    scores : tensor of shape (n,), float64 or float32
        Finite.
    codes : tensor of shape (n,), uint8 or bool
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
    found = to_host(
        _triton.count_groups(scores.contiguous(), bytes_of(codes), own_cuts(cuts, scores))
    )
    return found.sum(axis=1), found[:, 1].copy()


def look_up(
    scores: DeviceArray, cuts: FloatArray, table: NDArray[Any], *, limits: Limits | None = None
) -> DeviceArray:
    """Entry of a table for each score's cell, as `calibrant.kernels.look_up`.

    Parameters
    ----------
    scores : tensor of shape (n,), float64 or float32
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
    tensor of shape (n,) or (n, k)
        With the dtype of the table.

    Examples
    --------
    >>> import torch
    >>> look_up(torch.tensor([0.1, 0.5, 0.9]), np.array([0.5]), np.array([0.25, 0.75]))
    tensor([0.2500, 0.7500, 0.7500], dtype=torch.float64)
    """
    ends = own_ends(limits, scores)
    entries = like(table, scores)
    out, is_inside = _triton.look_up(scores.contiguous(), own_cuts(cuts, scores), entries, ends)
    if limits is not None and not is_inside:
        raise OutsideLimitsError
    return out


def follow(
    scores: DeviceArray, cuts: FloatArray, lines: FloatArray, *, limits: Limits | None = None
) -> DeviceArray:
    """Value of a piecewise linear curve, as in `calibrant.kernels.follow`.

    Parameters
    ----------
    scores : tensor of shape (n,), float64 or float32
        Finite.
    cuts : numpy array of shape (m,)
        Strictly increasing.
    lines : numpy array of shape (m + 1, 3) or (m + 1, 3 + k)
        For each cell: where it begins, the value there, the slope, and k offsets, an even number.
    limits : (float, float), optional
        For scores not yet checked: raise `OutsideLimitsError` unless all are finite and within
        these limits.

    Returns
    -------
    tensor of shape (n,) or (n, k)

    Examples
    --------
    >>> import torch
    >>> follow(torch.tensor([0.25, 0.5]), np.array([0.5]), np.array([[0.0, 0.0, 0.5], [0.5, 0.75,
    ...     0.0]]))
    tensor([0.1250, 0.7500], dtype=torch.float64)
    """
    out = like(lines[:0], scores).new_empty(shape_along(scores.shape[0], lines))
    ends = own_ends(limits, scores)
    is_inside = _triton.follow(scores.contiguous(), own_cuts(cuts, scores), lines, out, ends)
    if limits is not None and not is_inside:
        raise OutsideLimitsError
    return out
