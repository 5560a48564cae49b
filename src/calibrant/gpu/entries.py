"""The table entry of each score's region, looked up where the scores are."""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant._optional import Lazy
from calibrant._typing import ArrayLike
from calibrant.cells.partition import Partition
from calibrant.params import tensors
from calibrant.sample.facts import Limits

gpu_kernels: Any = Lazy("calibrant.gpu.kernels")

SCORE_TYPES = ("float32", "float64")
"""Types of scores that are processed on a GPU."""


def entries_of(
    partition: Partition,
    table: NDArray[Any],
    scores: ArrayLike,
    segments: ArrayLike | None = None,
    *,
    on_curve: bool = False,
    positive_column: Literal[0, 1] = 1,
    threads: int = 1,
    familiar: Limits = (-math.inf, math.inf),
    check: Callable[[Any], None] = lambda scores: None,
) -> Any:
    """The table entry or row of each score's region, in the scores' library and on their device.

    With `on_curve` the rows of the table are lines, and the result is the value at each score, or
    limits around it: see `calibrant.kernels.follow`. If a score may lie outside `familiar`, `check`
    is called with the scores, or with the smallest and the largest.
    """
    bins = partition.bins_by_segment.get(None)
    if segments is None and bins is not None:
        limits = (max(bins.low, familiar[0]), min(bins.high, familiar[1]))
        flat = _scores_on_gpu(scores)
        # the code below finds a score outside the limits again, and reports it
        with suppress(kernels.OutsideLimitsError):
            if flat is not None:
                find = gpu_kernels.follow if on_curve else gpu_kernels.look_up
                return gpu_kernels.back(find(flat, bins.cuts, table, limits=limits), scores)
            if _is_plain(scores) and table.dtype != np.bool_:
                look = kernels.follow if on_curve else kernels.look_up
                return look(scores, bins.cuts, table, limits=limits, threads=threads)
        if flat is not None and familiar != (-math.inf, math.inf):
            with suppress(kernels.OutsideLimitsError):
                found = find(flat, bins.cuts, table, limits=(bins.low, bins.high))
                check(np.array(gpu_kernels.ends_of(flat)))
                return gpu_kernels.back(found, scores)
    prepared = partition.prepare(scores, segments, positive_column=positive_column)
    check(prepared)
    if table.dtype == np.bool_:
        return tensors.like(table[partition.regions_of(prepared, threads=threads)], scores)
    entries = partition.follow if on_curve else partition.look_up
    return tensors.like(entries(prepared, table, threads=threads), scores)


def _scores_on_gpu(scores: ArrayLike) -> Any:
    """The scores as a tensor of shape (n,); None if they cannot be looked up where they are."""
    if not tensors.on_gpu(scores):
        return None
    column = flat_array(scores)
    is_column = column.ndim == 1 and column.shape[0] > 0
    can_look_up = is_column and tensors.dtype(column) in SCORE_TYPES
    return gpu_kernels.gpu_tensor(column) if can_look_up else None


def _is_plain(scores: ArrayLike) -> TypeGuard[NDArray[Any]]:
    """Return whether these are numpy scores that need no conversion."""
    return (
        type(scores) is np.ndarray and scores.ndim == 1 and scores.dtype in (np.float64, np.float32)
    )


def flat_array(array: Any) -> Any:
    """The array without the axis of a single column, and detached from the gradient graph."""
    flat = array[:, 0] if len(array.shape) == 2 and array.shape[1] == 1 else array
    return flat.detach() if hasattr(flat, "detach") else flat
