"""The few array operations that the kernels need, for torch tensors on any device."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray
from calibrant.kernels.device import _cupy


def _torch() -> Any:
    # Whoever holds a tensor has loaded torch, so nothing is imported here.
    return sys.modules["torch"]


def detached(array: Any) -> Any:
    return array.detach()


def is_cuda(array: Any) -> bool:
    # torch names AMD's devices "cuda" too; the fused kernels are written for NVIDIA's.
    return bool(array.is_cuda) and _torch().version.cuda is not None


def device_of(array: Any) -> Any:
    return array.device


def kind(array: Any) -> str:
    """The dtype's name, as numpy spells it."""
    return str(array.dtype).removeprefix("torch.")


def to_device(values: NDArray[Any], like: Any) -> Any:
    return _torch().from_numpy(np.array(values)).to(like.device)


def to_host(array: Any) -> NDArray[Any]:
    result: NDArray[Any] = array.cpu().numpy()
    return result


def empty(shape: tuple[int, ...], dtype: str, like: Any) -> Any:
    torch = _torch()
    return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)


def zeros(shape: tuple[int, ...], dtype: str, like: Any) -> Any:
    return empty(shape, dtype, like).zero_()


def count_up(size: int, like: Any) -> Any:
    """0..size-1 as int64."""
    return _torch().arange(size, device=like.device)


def cast(array: Any, dtype: str) -> Any:
    return array.to(getattr(_torch(), dtype))


def as_bytes(array: Any) -> Any:
    """A bool or uint8 array as uint8, sharing its memory."""
    return array.view(_torch().uint8)


def search(scores: Any, cuts: Any) -> Any:
    """For each score, how many cuts are not above it; NaN is above all."""
    return _torch().bucketize(scores.contiguous(), cuts, right=True, out_int32=True)


def add_scaled(cells: Any, codes: Any, factor: int) -> Any:
    """Cells plus codes times factor, in the memory of the cells."""
    return cells.add_(codes, alpha=factor)


def histogram(keys: Any, size: int) -> Any:
    """How often 0..size-1 occurs; larger keys are left out."""
    torch = _torch()
    if keys.is_cuda and size < 1 << 15:
        # One pass, where bincount takes two more to find the extremes. What equals the upper end is put into the last
        # of histc's bins, so one more bin than is needed keeps it apart.
        return torch.histc(keys, bins=size + 1, min=0, max=size + 1)[:size].to(torch.int64)
    return torch.bincount(keys, minlength=size)[:size]


def weighted_histogram(keys: Any, weights: Any, size: int) -> Any:
    return _torch().bincount(keys, weights=weights, minlength=size)


def lower_extremes(extremes: Any, keys: Any, values: Any) -> None:
    """Replace `extremes[key]` by the smallest value of that key, where there is a smaller one."""
    extremes.scatter_reduce_(0, keys, values, "amin")


def take_into(table: Any, cells: Any, out: Any) -> None:
    _torch().index_select(table, 0, cells, out=out)


def take(table: Any, index: Any) -> Any:
    return _torch().index_select(table, 0, index)


def first_true(mask: Any) -> int:
    """Index of the first True, or -1."""
    if mask.shape[0] == 0 or not bool(mask.any()):
        return -1
    return int(mask.to(_torch().uint8).argmax())


def isfinite(array: Any) -> Any:
    return _torch().isfinite(array)


def all_finite(array: Any) -> bool:
    # The extremes take one read and no memory, and NaN wins both.
    return array.shape[0] == 0 or bool(_torch().isfinite(_torch().stack(_torch().aminmax(array))).all())


def frexp(values: Any) -> tuple[Any, Any]:
    mantissa, exponent = _torch().frexp(values)
    return mantissa, exponent


def ordered_bits(scores: Any) -> Any:
    """Signed whole numbers in the order of the scores."""
    torch = _torch()
    bits = scores.contiguous().view(torch.int64 if scores.dtype == torch.float64 else torch.int32)
    return bits ^ ((bits >> (8 * bits.element_size() - 1)) & torch.iinfo(bits.dtype).max)


def sorted_values(scores: Any) -> Any:
    return _torch().sort(scores).values


def address(array: Any) -> int:
    return int(array.data_ptr())


def stride(array: Any) -> int:
    """Elements from one row to the next."""
    return int(array.stride(0))


def multiprocessors(array: Any) -> int:
    return int(_torch().cuda.get_device_properties(array.device).multi_processor_count)


def shared_memory(array: Any) -> int:
    """Bytes of shared memory that a block can have."""
    return int(_torch().cuda.get_device_properties(array.device).shared_memory_per_block_optin)


def compiles(array: Any) -> bool:
    """Whether CUDA C++ can be compiled: by CuPy, or else by torch, which can but does not promise to."""
    return _cupy.installed() or _compiled_by_torch(_TRIAL, "trial", array.device.index) is not None


_TRIAL = 'extern "C" __global__ void trial(int* out) { *out = 1; }'


@lru_cache(maxsize=64)
def _compiled_by_torch(source: str, name: str, device: int) -> Any:
    """A kernel, or None where this torch, or what is installed beside it, can not compile one."""
    try:
        with _torch().cuda.device(device):
            return _torch().cuda._compile_kernel(source, name)
    except Exception:
        return None


def launch(source: str, name: str, arrays: tuple[Any, ...], blocks: int, threads: int, shared: int) -> None:
    """Run a kernel of CUDA C++ on the arrays, on torch's current stream."""
    torch = _torch()
    place = arrays[0].device
    if _cupy.installed():
        cupy = import_module("cupy")
        stream = torch.cuda.current_stream(place).cuda_stream
        with cupy.cuda.Device(place.index), cupy.cuda.ExternalStream(stream, place.index):
            _cupy.run(cupy, source, name, tuple(map(address, arrays)), blocks, threads, shared)
        return
    with torch.cuda.device(place):
        kernel = _compiled_by_torch(source, name, place.index)
        kernel.set_shared_memory_config(shared)
        kernel((blocks, 1, 1), (threads, 1, 1), list(arrays), shared)


def full_of(value: float, size: int, like: Any) -> Any:
    return _torch().full((size,), value, dtype=_torch().float64, device=like.device)


def to_float_array(array: Any) -> FloatArray:
    result: FloatArray = to_host(array).astype(np.float64)
    return result


def on_device(array: Any) -> Any:
    """Context in which kernels are launched on the array's device."""
    return _torch().cuda.device(array.device)
