"""Objects that several threads may update."""

from threading import RLock
from typing import Any

_NAME = "_own_lock"


class Locked:
    """An object with a lock, under which its state is changed and read. Copies and pickles get a lock of their own."""

    @property
    def _lock(self) -> Any:
        return self.__dict__.setdefault(_NAME, RLock())  # setdefault is atomic

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != _NAME}
