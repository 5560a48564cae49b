"""Objects that several threads may update."""

from __future__ import annotations

import os
from threading import Lock, RLock
from typing import Any
from weakref import WeakSet

_NAME = "_own_lock"
_REGISTRY = Lock()  # held only briefly, and never while waiting for another lock
_LOCKS: WeakSet[Any] = WeakSet()
_FORKS = RLock()  # one fork at a time
_HELD: list[Any] = []  # by the thread that forks


class Locked:
    """An object with a lock, under which its state is changed and read.

    Copies and pickles get their own lock.

    A process may fork while a thread updates the object. The fork waits for the update to end, so
    the child has a consistent object and a free lock. Without this, the child would inherit a lock
    that nothing in it can release.
    """

    @property
    def _lock(self) -> Any:
        lock = self.__dict__.get(_NAME)
        return _new_lock(self.__dict__) if lock is None else lock

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != _NAME}


def _new_lock(state: dict[str, Any]) -> Any:
    """Make the lock of an object and register it for forks.

    If two threads make it, both get the same one.
    """
    with _REGISTRY:
        lock = state.setdefault(_NAME, RLock())
        _LOCKS.add(lock)
    return lock


def _take_all() -> None:
    """Before a fork, wait until no thread is in the middle of an update."""
    _FORKS.acquire()
    while new := _not_held():
        for lock in new:
            lock.acquire()
            _HELD.append(lock)
    _REGISTRY.acquire()


def _not_held() -> list[Any]:
    known = set(map(id, _HELD))
    with _REGISTRY:
        return [lock for lock in _LOCKS if id(lock) not in known]


def _release_all() -> None:
    """After a fork, release the locks in parent and child: the thread that took them exists in
    both.
    """
    _REGISTRY.release()
    while _HELD:
        _HELD.pop().release()
    _FORKS.release()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(before=_take_all, after_in_parent=_release_all, after_in_child=_release_all)
