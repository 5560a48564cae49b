"""Signals that ask a process to end, for a command that must finish what it has begun."""

import signal
from contextlib import AbstractContextManager
from typing import Any, Self

from calibrant.cli._errors import Stopped

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_HEARD: list[int] = []
"""Signals that have stopped the command. Python drops an error that a handler raises within a
finalizer, so the command may not have noticed.
"""


def stop(number: int, frame: Any) -> None:
    """Stop the command by an error, on which incomplete files are removed."""
    _HEARD.append(number)
    raise Stopped(number)


def forget_signals() -> None:
    """Begin a new command, which no signal has stopped."""
    _HEARD.clear()


class Signals(AbstractContextManager["Signals"]):
    """Remember the first signal instead of stopping at once; a second one stops as usual.

    A signal that was ignored stays ignored, as under nohup.
    """

    def __init__(self) -> None:
        self.number: int | None = _HEARD[-1] if _HEARD else None
        """The signal that came; None if none did."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            if signal.getsignal(number) != signal.SIG_IGN:
                try:
                    self._before[number] = signal.signal(number, self._remember)
                except ValueError:  # signals cannot be handled outside the main thread
                    break
        return self

    def _remember(self, number: int, frame: Any) -> None:
        self.number = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def __exit__(self, *_: object) -> None:
        self._restore()
