"""Settings of every test: examples are the same in every run, and a slow machine fails none of
them.
"""

import contextlib
import gc
import importlib
import os
import signal
from collections.abc import Callable
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_info

from worlds import guarantees

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

# Processes that tests start inherit ignored signals, such as SIGHUP under nohup.
with contextlib.suppress(AttributeError, ValueError):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
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
        if names_of(getattr(item, "function", None)) & {"subprocess"} or SERVICES & (
            named | set(getattr(item, "fixturenames", ()))
        ):
            item.add_marker(pytest.mark.service)
    longest_first(items)
    if config.getoption("--fresh-seed"):
        items[:] = [
            item for item in items if names_of(getattr(item, "function", None)) & COVERAGE_CHECKS
        ]


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


def names_of(function: object, helpers: bool = True) -> set[str]:
    """The names that a function uses, and those of its module that it calls."""
    names = set(getattr(getattr(function, "__code__", None), "co_names", ()))
    called = [function.__globals__.get(name) for name in names] if names and helpers else []
    return names.union(*(names_of(one, helpers=False) for one in called))


# A run with a fresh seed: other data in all coverage tests, at one joint level, once.

COVERAGE_CHECKS = {"assert_kept", "assert_rare"}
FRESH_SEEDS = Path(__file__).parent / "data" / "fresh_seeds.csv"
"""Seeds that were drawn, and what came of them; each is run once, green or not."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option for a fresh seed."""
    parser.addoption(
        "--fresh-seed", help="a number, or today: coverage tests draw other data, once"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Mix the fresh seed into every seed of a test."""
    given = config.getoption("--fresh-seed")
    if not given:
        return
    seed = int(f"{date.today():%Y%m%d}" if given == "today" else given)
    config.option.fresh_seed = str(seed)
    known = [line.split(",")[0] for line in FRESH_SEEDS.read_text().splitlines()[1:]]
    if str(seed) in known and not hasattr(config, "workerinput"):
        raise pytest.UsageError(
            f"seed {seed} was run before (tests/data/fresh_seeds.csv); a seed is run once, so that"
            " nobody draws until the result is green"
        )
    draw: Callable[..., Any] = np.random.default_rng

    def mixed(given: Any = None) -> Any:
        if isinstance(given, int | np.integer):
            return draw([seed, int(given)])
        if isinstance(given, list | tuple | np.ndarray):
            return draw([seed, *given])
        return draw(given)

    np.random.default_rng = mixed


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give a test its share of the joint level of a run with a fresh seed."""
    if item.config.getoption("--fresh-seed"):
        guarantees.Share.left = guarantees.JOINT / len(item.session.items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """With a fresh seed, only what checks a guarantee is judged: other figures may differ."""
    report = yield
    if item.config.getoption("--fresh-seed") and report.failed and call.excinfo is not None:
        where = Path(str(call.excinfo.traceback[-1].path)).name
        if where != Path(guarantees.__file__).name:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"Skipped: not a guarantee: {call.excinfo.value}")
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Record a fresh seed and what came of it."""
    seed = session.config.getoption("--fresh-seed")
    if seed and not hasattr(session.config, "workerinput"):
        counts = session.config.pluginmanager.get_plugin("terminalreporter").stats
        found = [len(counts.get(name, ())) for name in ("passed", "failed", "skipped")]
        with FRESH_SEEDS.open("a") as file:
            print(seed, date.today(), *found, sep=",", file=file)
