"""Arrays of torch and CuPy: how to recognise them, and how to copy them to the host and back.

Every function of calibrant accepts these arrays. Most of the work is done on the host: `to_host`
copies the arrays there, and `like` copies a result back to their library and device. Neither
library is imported here: a caller that has an array has already imported its library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

DeviceArray: TypeAlias = Any
"""A torch tensor or a CuPy array."""

Method = TypeVar("Method", bound=Callable[..., Any])


def library_name(array: object) -> str:
    """The library of the array: torch, cupy, or numpy for anything else."""
    names = {kind.__module__.partition(".")[0] for kind in type(array).__mro__}
    return next((name for name in ("torch", "cupy") if name in names), "numpy")


def library_of(array: DeviceArray) -> Any:
    """The module of the array's library."""
    return sys.modules[library_name(array)]


def is_device_array(array: object) -> bool:
    """Whether this is a torch tensor or a CuPy array, on any device.

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
    return library_name(array) != "numpy"


def on_gpu(array: object) -> bool:
    """Whether this array is in GPU memory, where `count`, `look_up` and `order_statistics` pay off.

    Parameters
    ----------
    array : object

    Returns
    -------
    bool
    """
    return is_device_array(array) and bool(getattr(array, "is_cuda", True))


def to_host(array: DeviceArray) -> NDArray[Any]:
    """Copy to a numpy array; a tensor on the CPU shares its memory.

    numpy has no bfloat16, so it becomes float32.

    Parameters
    ----------
    array : torch tensor, CuPy or numpy array
        A tensor may require grad.

    Returns
    -------
    numpy array

    Examples
    --------
    >>> import torch
    >>> to_host(torch.tensor([0.5, 0.25], requires_grad=True))
    array([0.5 , 0.25], dtype=float32)
    """
    name = library_name(array)
    if name == "numpy":
        return np.asarray(array)
    if name == "cupy":
        return np.asarray(array.get())
    tensor = array.detach().cpu()
    return np.asarray((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())


def like(values: NDArray[Any], array: DeviceArray) -> DeviceArray:
    """Copy numbers to the library and device of `array`.

    Other entries, such as text, stay a numpy array.

    Parameters
    ----------
    values : numpy array
    array : torch tensor, CuPy or numpy array

    Returns
    -------
    array
        With the dtype of the values; float32 for doubles on an Apple device, which has no float64.

    Examples
    --------
    >>> import torch
    >>> like(np.array([0.25, 0.75]), torch.zeros(1))
    tensor([0.2500, 0.7500], dtype=torch.float64)
    """
    name = library_name(array)
    if name == "numpy" or values.dtype.kind not in "biuf":
        return values
    if name == "cupy":
        with array.device:
            return library_of(array).asarray(values)
    if array.device.type == "mps" and values.dtype == np.float64:
        values = values.astype(np.float32)
    return (
        library_of(array).from_numpy(np.require(values, requirements=("C", "W"))).to(array.device)
    )


def new_array(entries: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    """An uninitialised array like `entries`, with another shape."""
    if hasattr(entries, "new_empty"):
        return entries.new_empty(shape)
    return library_of(entries).empty(shape, entries.dtype)


def in_own_library(method: Method) -> Method:
    """Let a method that takes scores and works with numpy accept and return torch and CuPy arrays
    too.

    This is the only place where predictions are copied to the host and back.

    Parameters
    ----------
    method : callable
        Its first argument after self is `scores`.

    Returns
    -------
    callable
    """

    @wraps(method)
    def wrapped(self: Any, scores: Any, *args: Any, **named: Any) -> Any:
        if not is_device_array(scores):
            return method(self, scores, *args, **named)
        prediction = method(self, to_host(scores), *args, **named)
        return (
            like(prediction, scores) if isinstance(prediction, np.ndarray) else prediction
        )  # a frame requested by `set_output`

    return cast(Method, wrapped)


def dtype(array: DeviceArray) -> str:
    """Name of the dtype, as numpy spells it."""
    return str(array.dtype).removeprefix("torch.")
