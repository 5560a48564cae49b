"""Saved tests and counted rows, which a seal holds together.

The seal is a checksum over everything that changes when a day is closed. It is written in the
transaction that closes the day, and computed again whenever the tests are read: a state that was
swapped for another one, or counts that were changed or deleted, no longer agree with it. Whoever
can write to the store can also compute a new seal, so it detects damage and mix-ups, not forgery.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from calibrant.monitor.model_rows import ModelRows
from calibrant.monitor.tables import DAYS, PREDICTIONS, QUARANTINE

if TYPE_CHECKING:
    from calibrant.monitor.durable import Monitor
    from calibrant.monitor.ledger import Live

_NO_DAY = -(2**31)


@dataclass(frozen=True, slots=True)
class SealedCounts:
    """What a model has counted.

    Attributes
    ----------
    tests : str
        The saved tests.
    days : list of (day, counts)
        The counted days, in order, with their counts as JSON.
    quarantine : list of (day, n_rows, problem)
        The days that could not be closed.
    """

    tests: str
    days: list[tuple[int, str]]
    quarantine: list[tuple[int, int, str]]

    @classmethod
    def read(cls, rows: ModelRows, live: "Live", monitor: "Monitor") -> Self:
        """Read them; raise a StoreError if they do not agree with the seal."""
        found = cls._found(rows, rows.read_text("tests") or "")
        if rows.read_text("seal") != found._seal(rows, live, monitor):
            rule = f"have tests that agree with the rows counted for {monitor.name!r}"
            raise monitor.store.damaged(rule, "others, which were changed or swapped")
        return found

    @classmethod
    def write(cls, rows: ModelRows, live: "Live", monitor: "Monitor", tests: str) -> None:
        """Write the tests and the seal, within the transaction that counted their rows."""
        rows.write_text("tests", tests)
        rows.write_text("seal", cls._found(rows, tests)._seal(rows, live, monitor))

    @classmethod
    def _found(cls, rows: ModelRows, tests: str) -> Self:
        held = QUARANTINE.c
        return cls(
            tests,
            [tuple(row) for row in rows.select(DAYS.c.day, DAYS.c.counts)],
            [tuple(row) for row in rows.select(held.day, held.n_rows, held.problem)],
        )

    def _seal(self, rows: ModelRows, live: "Live", monitor: "Monitor") -> str:
        content: list[Any] = [
            monitor.checksum,
            rows.read_text("settings"),
            [live.counted_until, live.scored_until, live.mature, live.labelled, live.quarantined],
            self.tests,
            self.days,
            self.quarantine,
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def check(self, rows: ModelRows, live: "Live", monitor: "Monitor") -> None:
        """Raise a StoreError unless every recorded prediction is pending, counted, or in
        quarantine.
        """
        n_pending = number_pending(rows, live)
        if live.recorded != live.mature + live.quarantined + n_pending:
            known = live.recorded - live.mature - live.quarantined
            rule = f"have the {known:,} predictions of {monitor.name!r} that are not counted yet"
            raise monitor.store.damaged(rule, f"{n_pending:,}")


def number_pending(rows: ModelRows, live: "Live") -> int:
    """The number of predictions whose day is not closed yet."""
    first = _NO_DAY if live.counted_until is None else live.counted_until
    return rows.count(PREDICTIONS, PREDICTIONS.c.day >= first)
