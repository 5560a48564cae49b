"""The kernels for GPUs, run by Triton's interpreter on tensors of the CPU."""

import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def interpreted() -> Iterator[dict[str, Any]]:
    """The modules by name, made anew by the interpreter, with few rows in a block and in a launch."""
    if sys.platform != "linux":
        pytest.skip("Triton is made for Linux")
    names = ("_triton_draws", "_triton")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "TRITON_INTERPRET", "1")
        modules = {}
        for name in names:
            patch.delitem(sys.modules, f"calibrant.gpu.{name}", raising=False)
        for name in names:
            modules[name] = importlib.import_module(f"calibrant.gpu.{name}")
            patch.setitem(sys.modules, f"calibrant.gpu.{name}", modules[name])
            patch.setattr(modules[name], "_BLOCK", 64)
        patch.setattr(modules["_triton_draws"], "_LAUNCH_ROWS", 200)
        patch.setattr(modules["_triton"], "_CURVE_BLOCK", 64)
        with np.errstate(all="ignore"):  # a GPU does not warn
            yield modules
