"""The few array operations that the kernels need, for CuPy arrays; numpy's serve in tests."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray


def _library(array: Any) -> Any:
    # Whoever holds an array has loaded its library, so nothing is imported here.
    return sys.modules[type(array).__module__.partition(".")[0]]


def detached(array: Any) -> Any:
    return array


def is_cuda(array: Any) -> bool:
    library = _library(array)
    return library is not np and not library.cuda.runtime.is_hip


def device_of(array: Any) -> Any:
    return getattr(array, "device", None)


def kind(array: Any) -> str:
    """The dtype's name."""
    return str(array.dtype)


def to_device(values: NDArray[Any], like: Any) -> Any:
    return _library(like).asarray(values)


def to_host(array: Any) -> NDArray[Any]:
    result: NDArray[Any] = array if isinstance(array, np.ndarray) else array.get()
    return result


def empty(shape: tuple[int, ...], dtype: str, like: Any) -> Any:
    return _library(like).empty(shape, dtype)


def zeros(shape: tuple[int, ...], dtype: str, like: Any) -> Any:
    return _library(like).zeros(shape, dtype)


def count_up(size: int, like: Any) -> Any:
    """0..size-1 as int64."""
    return _library(like).arange(size, dtype=np.int64)


def cast(array: Any, dtype: str) -> Any:
    return array.astype(dtype)


def as_bytes(array: Any) -> Any:
    """A bool or uint8 array as uint8, sharing its memory."""
    return array.view(np.uint8)


def search(scores: Any, cuts: Any) -> Any:
    """For each score, how many cuts are not above it; NaN is above all."""
    library = _library(scores)
    if scores.dtype == np.float32:
        # CuPy takes numbers below the smallest normal float32 for zero, so their bits are compared instead.
        scores, cuts = _positive_zeros(ordered_bits(scores)), _positive_zeros(ordered_bits(cuts))
    return library.searchsorted(cuts, scores, side="right")


def _positive_zeros(bits: Any) -> Any:
    """Ordered bits with those of negative zero, which come just before, made those of zero."""
    bits[bits == -1] = 0
    return bits


def add_scaled(cells: Any, codes: Any, factor: int) -> Any:
    """Cells plus codes times factor, in the memory of the cells."""
    cells += codes.astype(cells.dtype) * factor
    return cells


def histogram(keys: Any, size: int) -> Any:
    """How often 0..size-1 occurs; larger keys are left out."""
    return _library(keys).bincount(keys, minlength=size)[:size]


def weighted_histogram(keys: Any, weights: Any, size: int) -> Any:
    return _library(keys).bincount(keys, weights=weights, minlength=size)


def lower_extremes(extremes: Any, keys: Any, values: Any) -> None:
    """Replace `extremes[key]` by the smallest value of that key, where there is a smaller one."""
    # CuPy's minimum.at errs on negative floats, so whole numbers in the same order are compared.
    lowest = np.int64(np.iinfo(np.int64).min)
    codes = (ordered_bits(extremes) ^ lowest).view(np.uint64)
    _library(keys).minimum.at(codes, keys, (ordered_bits(values) ^ lowest).view(np.uint64))
    # The same step that put the bits in order puts them back.
    extremes[...] = ordered_bits((codes.view(np.int64) ^ lowest).view(np.float64)).view(np.float64)


def take_into(table: Any, cells: Any, out: Any) -> None:
    out[...] = table[cells]


def take(table: Any, index: Any) -> Any:
    return table[index]


def first_true(mask: Any) -> int:
    """Index of the first True, or -1."""
    if mask.shape[0] == 0 or not bool(mask.any()):
        return -1
    return int(mask.argmax())


def isfinite(array: Any) -> Any:
    return _library(array).isfinite(array)


def all_finite(array: Any) -> bool:
    # The extremes take no memory, and NaN wins both.
    return array.shape[0] == 0 or bool(np.isfinite(float(array.min())) and np.isfinite(float(array.max())))


def frexp(values: Any) -> tuple[Any, Any]:
    mantissa, exponent = _library(values).frexp(values)
    return mantissa, exponent


def ordered_bits(scores: Any) -> Any:
    """Signed whole numbers in the order of the scores."""
    whole = np.int64 if scores.dtype == np.float64 else np.int32
    bits = _library(scores).ascontiguousarray(scores).view(whole)
    return bits ^ ((bits >> (8 * bits.itemsize - 1)) & np.iinfo(whole).max)


def sorted_values(scores: Any) -> Any:
    return _library(scores).sort(scores)


def address(array: Any) -> int:
    return int(array.data.ptr)


def stride(array: Any) -> int:
    """Elements from one row to the next."""
    return int(array.strides[0] // array.itemsize)


def multiprocessors(array: Any) -> int:
    return int(array.device.attributes["MultiProcessorCount"])


@lru_cache(maxsize=1)
def installed() -> bool:
    return find_spec("cupy") is not None


def shared_memory(array: Any) -> int:
    """Bytes of shared memory that a block can have."""
    return int(array.device.attributes["MaxSharedMemoryPerBlockOptin"])


def compiles(array: Any) -> bool:
    """Whether CUDA C++ can be compiled."""
    return is_cuda(array)


def launch(source: str, name: str, arrays: tuple[Any, ...], blocks: int, threads: int, shared: int) -> None:
    """Run a kernel of CUDA C++ on the arrays, on CuPy's current stream."""
    with arrays[0].device:
        run(_library(arrays[0]), source, name, tuple(map(address, arrays)), blocks, threads, shared)


def run(cupy: Any, source: str, name: str, addresses: tuple[int, ...], blocks: int, threads: int, shared: int) -> None:
    kernel = _compiled(cupy, source, name)
    kernel.max_dynamic_shared_size_bytes = shared
    kernel((blocks,), (threads,), tuple(map(np.uint64, addresses)), shared_mem=shared)


@lru_cache(maxsize=64)
def _compiled(cupy: Any, source: str, name: str) -> Any:
    return cupy.RawKernel(source, name, options=("--std=c++14",))


def full_of(value: float, size: int, like: Any) -> Any:
    return _library(like).full(size, value, np.float64)


def to_float_array(array: Any) -> FloatArray:
    result: FloatArray = to_host(array).astype(np.float64)
    return result
