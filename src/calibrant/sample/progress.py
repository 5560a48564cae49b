"""Progress of a long pass: a bar in a terminal, a callback, or nothing."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

Watcher: TypeAlias = Callable[[int, int | None], None]
"""Called with the number of rows done so far and, if known, the total."""

Progress: TypeAlias = bool | Watcher | None
"""True draws a bar, False draws none, and None draws one if standard error is a terminal and the
work is long.

It can also be a callback.
"""

_PATIENCE = 1.0  # seconds before a bar appears


@contextmanager
def watched(
    progress: Progress, total: int | None, doing: str, what: str = "rows"
) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of rows, or other units, of every completed part."""
    if progress is False or (progress is None and not _someone_watches()):
        yield lambda rows: None
    elif callable(progress):
        yield _counting(progress, total)
    else:
        with _bar(total, doing, what, patience=_PATIENCE if progress is None else 0.0) as advance:
            yield advance


def _someone_watches() -> bool:
    from importlib.util import find_spec

    return sys.stderr is not None and sys.stderr.isatty() and find_spec("rich") is not None


def _counting(watcher: Watcher, total: int | None) -> Callable[[int], None]:
    from threading import Lock

    done = 0
    lock = Lock()

    def advance(rows: int) -> None:
        nonlocal done
        with lock:
            done += rows
            watcher(done, total)

    return advance


@contextmanager
def _bar(
    total: int | None, doing: str, what: str, patience: float
) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, which appears only once the work has taken longer than `patience`."""
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar
    except ImportError as error:
        raise ImportError(
            "progress=True needs rich, which is not installed: pip install rich"
        ) from error

    how_far: list[Any] = [
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        TimeRemainingColumn(),
    ]
    bar = Bar(
        SpinnerColumn(), TextColumn(doing), *how_far, console=Console(stderr=True), transient=True
    )
    task = bar.add_task(doing, total=total)
    begun = time.monotonic()
    shown = False

    def advance(rows: int) -> None:
        nonlocal shown
        if not shown and time.monotonic() - begun >= patience:
            shown = True
            bar.start()
        bar.advance(task, rows)

    try:
        yield advance
    finally:
        bar.stop()
