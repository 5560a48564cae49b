"""A snapshot, read from a store within one transaction."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from calibrant._typing import IntArray
from calibrant.monitor.headline import known_rates
from calibrant.monitor.ledger import Live
from calibrant.monitor.mature_days import Tests
from calibrant.monitor.model_rows import ModelRows
from calibrant.monitor.sealed_counts import SealedCounts, number_pending
from calibrant.monitor.snapshot import CountedDay, HeldDay, MonitorSnapshot
from calibrant.monitor.tables import WAITING
from calibrant.monitor.times import SECONDS_A_DAY, unit_name

if TYPE_CHECKING:
    from calibrant.monitor.durable import Monitor


def read_snapshot(rows: ModelRows, monitor: "Monitor") -> MonitorSnapshot:
    """What a store contains about a model as of the beginning of the transaction."""
    live = Live.of(rows.read_text("live"))
    sealed = SealedCounts.read(rows, live, monitor)
    tests = Tests.of_text(sealed.tests, monitor)
    cells = monitor.watched.cells
    of_cells = np.array([json.loads(text) for _, text in sealed.days], dtype=np.int64)
    days = cells.by_region(of_cells.reshape(len(sealed.days), 3, cells.n_cells))
    counts, positives, _ = days.sum(axis=0)
    lower, upper, epsilon = known_rates(counts, positives, monitor)
    path = _path(sealed.days, days, monitor)
    running = [test for test in tests.by_question().values() if test is not None]
    verdicts = [test.summary() for test in running]
    return MonitorSnapshot(
        now=str(np.datetime64(int(live.latest), "s")) if live.latest else None,
        confidence_level=monitor.confidence_level,
        maturity=monitor.maturity,
        alarm=any(verdict.alarm for verdict in verdicts),
        epsilon=float(epsilon) if path else 1.0,
        n_recorded=live.recorded,
        n_pending=number_pending(rows, live),
        n_mature=live.mature,
        n_labels=live.labelled,
        n_waiting=rows.count(WAITING),
        n_expired=live.expired,
        n_late=live.late,
        n_duplicate=live.duplicate,
        n_conflicting=live.conflicting,
        n_unknown=live.unknown,
        n_unfamiliar=live.unfamiliar,
        n_quarantined=live.quarantined,
        n_unreadable=live.unreadable,
        values=monitor.values,
        score_range=monitor.calibrator.score_range_seen_,
        n_until_scores=tests.n_until_scores,
        regions=monitor.watched.partition.describe(),
        counts=counts,
        positives=positives,
        lower=lower,
        upper=upper,
        verdicts=tuple(verdicts),
        path=path,
        evidence=tuple((unit_name(day, "day"), tuple(reached)) for day, *reached in tests.path),
        guaranteed=monitor.guaranteed,
        quarantine=tuple(
            HeldDay(unit_name(day, "day"), n_rows, problem)
            for day, n_rows, problem in sealed.quarantine
        ),
        counted_until=None if live.counted_until is None else unit_name(live.counted_until, "day"),
        lag=(
            None if live.counted_until is None else live.latest / SECONDS_A_DAY - live.counted_until
        ),
    )


def _path(
    found: Sequence[tuple[int, str]], counts: IntArray, monitor: "Monitor"
) -> tuple[CountedDay, ...]:
    """The counted days, with epsilon after each."""
    so_far = np.cumsum(counts, axis=0)
    epsilon = known_rates(so_far[:, 0], so_far[:, 1], monitor)[2]
    return tuple(
        CountedDay(unit_name(int(day), "day"), rows, hits, int(unknown.sum()), float(most))
        for (day, _), (rows, hits, unknown), most in zip(found, counts, epsilon, strict=True)
    )
