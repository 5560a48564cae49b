"""Settings of every test: examples are the same in every run, and a slow machine fails none of
them.
"""

import gc
import importlib
import os
from importlib import metadata

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_info

# Tests run beside each other, one process per core: threads of linear algebra would only wait for
# each other. Virtual machines of Java live for a minute, in which a second round of compilation
# does not pay.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault(
    "TRITON_INTERPRET", "1"
)  # kernels for a GPU run step by step; Triton reads it when imported
os.environ.setdefault(
    "JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
)

if os.environ.get("CI"):  # a library that is missing there fails its tests, and is not skipped
    pytest.importorskip = importlib.import_module

# What is collected stays to the end, and looking for garbage in it again and again took a seventh
# of the time.
gc.disable()

# a machine that has other work is no error: no deadline, and no limit on the time to draw the first
# examples
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("house"), max_examples=8)
settings.load_profile("house")


def pytest_report_header() -> list[str]:
    """What the last digits of linear algebra depend on: libraries, kernels of the processor,
    threads.
    """
    import scipy.linalg  # noqa: F401  it loads the BLAS of scipy, and that of numpy

    versions = (f"{name} {metadata.version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    kernels = {
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}"
        f" ({pool['num_threads']} threads)"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return [f"runs on: {', '.join(versions)}", f"BLAS kernels: {', '.join(sorted(kernels))}"]


SERVICES = {"browser", "cluster", "postgres", "spark"}
"""Fixtures that start a server or a browser."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `service` what uses such a fixture, by name or by parameter, and what starts a
    process itself. Files with such tests come first.
    """
    for item in items:
        callspec = getattr(item, "callspec", None)
        named = (
            {value for value in callspec.params.values() if isinstance(value, str)}
            if callspec
            else set()
        )
        if starts_process(getattr(item, "function", None)) or SERVICES & (
            named | set(getattr(item, "fixturenames", ()))
        ):
            item.add_marker(pytest.mark.service)
    longest_first(items)


def longest_first(items: list[pytest.Item]) -> None:
    """Files that start servers come first, then those with slow tests, then those with many tests.

    Two workers take one file after the other: a long file at the end would leave one of them idle.
    """
    marks: dict[str, set[str]] = {}
    sizes: dict[str, int] = {}
    for item in items:
        path = str(item.path)
        marks.setdefault(path, set()).update(mark.name for mark in item.iter_markers())
        sizes[path] = sizes.get(path, 0) + 1

    def key(item: pytest.Item) -> tuple[bool, bool, int, str]:
        path = str(item.path)
        return "service" not in marks[path], "slow" not in marks[path], -sizes[path], path

    items.sort(key=key)


def pytest_collection_finish() -> None:
    """From now on, look for garbage in what the tests leave only."""
    gc.freeze()
    gc.enable()


def starts_process(function: object, helpers: bool = True) -> bool:
    """Whether a function, or one of its module that it calls, uses `subprocess`."""
    names = getattr(getattr(function, "__code__", None), "co_names", ())
    called = [function.__globals__.get(name) for name in names] if names and helpers else []
    return "subprocess" in names or any(starts_process(one, helpers=False) for one in called)
