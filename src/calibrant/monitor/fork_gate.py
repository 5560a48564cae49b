"""Keep a process from being forked while one of its threads is inside a transaction.

SQLite keeps its locks in the memory of the process. A copy of that memory, made during a
transaction, holds locks that nobody will ever release, so the child could not write.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LONGEST_WAIT = 10.0  # seconds; a thread that waits for the fork must not be waited for forever


class ForkGate:
    """Transactions enter and leave; a fork waits until those of other threads have left."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside: dict[int, int] = {}
        self._is_forking = False
        self.forked_inside = False
        """Whether this process was forked during a transaction, whose locks it has inherited."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before,
                after_in_parent=self._in_parent,
                after_in_child=self._in_child,
            )

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Be inside a transaction; wait for a fork that has begun."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking or me in self._inside)
            self._inside[me] = self._inside.get(me, 0) + 1
        process = os.getpid()
        try:
            yield
        finally:
            if os.getpid() == process:  # else the child has begun with nobody inside
                with self._changed:
                    self._inside[me] -= 1
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
        self.forked_inside = self.forked_inside or bool(self._inside)
        self._changed = threading.Condition(threading.Lock())
        self._inside = {}
        self._is_forking = False


FORKS = ForkGate()
"""The gate of this process, for all of its stores."""
