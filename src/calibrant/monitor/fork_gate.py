"""Keep a process from being forked while one of its threads is inside a transaction.

SQLite keeps its locks in the memory of the process. A copy of that memory, made during a
transaction, holds locks that nobody will ever release, so the child could not write.
"""

import os
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

_LONGEST_WAIT = 10.0  # seconds; a thread that waits for the fork must not be waited for forever


class ForkGate:
    """Transactions enter and leave; a fork waits until those of other threads have left."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside: dict[int, list[Hashable]] = {}
        self._is_forking = False
        self.inherited: set[Hashable] = set()
        """The files that were in a transaction when this process was forked, with their locks."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before,
                after_in_parent=self._in_parent,
                after_in_child=self._in_child,
            )

    @contextmanager
    def entered(self, file: Hashable) -> Iterator[None]:
        """Be inside a transaction of a file; wait for a fork that has begun."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking or me in self._inside)
            self._inside.setdefault(me, []).append(file)
        process = os.getpid()
        try:
            yield
        finally:
            if os.getpid() == process:  # else the child has begun with nobody inside
                with self._changed:
                    self._inside[me].pop()
                    if not self._inside[me]:
                        del self._inside[me]
                    self._changed.notify_all()

    def _before(self) -> None:
        me = threading.get_ident()
        self._changed.acquire()
        self._is_forking = True
        self._changed.wait_for(lambda: not self._inside.keys() - {me}, _LONGEST_WAIT)

    def _in_parent(self) -> None:
        self._is_forking = False
        self._changed.notify_all()
        self._changed.release()

    def _in_child(self) -> None:
        self.inherited.update(file for files in self._inside.values() for file in files)
        self._changed = threading.Condition(threading.Lock())
        self._inside = {}
        self._is_forking = False


FORKS = ForkGate()
"""The gate of this process, for all of its stores."""
