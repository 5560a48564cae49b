"""Close a day: count its rows, let the tests evaluate them, and keep only counts."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from calibrant._typing import FloatArray
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.guarantee.kinds import is_guarantee
from calibrant.monitor.drift import DriftMonitor
from calibrant.monitor.guarantee import GuaranteeMonitor
from calibrant.monitor.ledger import SECONDS_A_DAY, TOO_LATE, Live, forget
from calibrant.monitor.score_drift import ScoreDriftMonitor
from calibrant.monitor.store import read_text, write_text
from calibrant.monitor.tables import DAYS, PREDICTIONS
from calibrant.monitor.units import unit_name
from calibrant.monitor.watched import counts_of

_CHUNK = 50_000  # rows in memory at once
_REFERENCE_SCORES = 2000
_MOST_DAYS = 4000  # days that are kept individually

SHARES = {"rates": 0.5, "guarantee": 0.3, "scores": 0.2}
"""How one error budget is shared. Without a guarantee, its share goes to the rates."""


@dataclass
class Tests:
    """The tests of a store, which share one error budget."""

    rates: DriftMonitor
    guarantee: GuaranteeMonitor | None
    scores: ScoreDriftMonitor | None
    reference: list[float]
    alpha: float

    @classmethod
    def of(
        cls,
        calibrator: ScoreCalibrator,
        alpha: float,
        maturity: float,
        unit: str,
        reference: int | None,
        seed: int,
    ) -> "Tests":
        """New tests for a calibrator.

        If rows of a day depend on each other, only the rates are tested.
        """
        by_row = unit == "row"
        kept = by_row and is_guarantee(calibrator.guarantee_)
        share = (
            SHARES["rates"]
            + (0.0 if kept else SHARES["guarantee"])
            + (0.0 if by_row else SHARES["scores"])
        )
        rates = DriftMonitor(
            calibrator,
            confidence_level=1.0 - share * alpha,
            unit=unit,
            maturity=maturity,
            reference=reference,
            random_state=seed,
        )
        guarantee = None
        if kept:
            level = 1.0 - SHARES["guarantee"] * alpha
            guarantee = GuaranteeMonitor(calibrator, confidence_level=level, maturity=maturity)
        return cls(rates, guarantee, None, [], alpha)

    @classmethod
    def read(cls, connection: Any, alpha: float) -> "Tests":
        """Read them from a store."""
        state = json.loads(read_text(connection, "tests") or "{}")
        guarantee = state["guarantee"]
        scores = state["scores"]
        return cls(
            DriftMonitor.from_dict(state["rates"]),
            None if guarantee is None else GuaranteeMonitor.from_dict(guarantee),
            None if scores is None else ScoreDriftMonitor.from_dict(scores),
            state["reference"],
            alpha,
        )

    def write(self, connection: Any) -> None:
        """Write them, within the transaction that counted their rows."""
        state = {
            "rates": self.rates.to_dict(),
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "scores": None if self.scores is None else self.scores.to_dict(),
            "reference": self.reference,
        }
        write_text(connection, "tests", json.dumps(state))

    @property
    def n_until_scores(self) -> int:
        """Number of predictions missing before scores can be compared."""
        if self.scores is not None or self.rates.unit != "row":
            return 0
        return max(0, _REFERENCE_SCORES - len(self.reference))

    def look_at_scores(self, scores: FloatArray, day: str, seed: int) -> None:
        """Compare the scores of a day with the reference scores, or add them to the reference."""
        if self.rates.unit != "row":
            return
        if self.scores is not None:
            self.scores.update(scores, at=np.full(scores.size, np.datetime64(day)))
            return
        self.reference.extend(scores.tolist())
        if len(self.reference) >= _REFERENCE_SCORES:
            level = 1.0 - SHARES["scores"] * self.alpha
            if np.unique(self.reference).size > 1:
                self.scores = ScoreDriftMonitor(
                    self.reference, confidence_level=level, random_state=seed
                )
            self.reference = []


def advance(
    connection: Any, live: Live, maturity: float, remember: float, alpha: float, seed: int
) -> None:
    """Count the days that are mature by now, compare the scores of completed days, and delete old
    rows.

    What is counted, and when, depends only on times, never on labels.
    """
    now = live.latest / SECONDS_A_DAY
    over = int(now // 1)
    mature = int((now - maturity) // 1)
    oldest = connection.execute(sa.select(sa.func.min(PREDICTIONS.c.day))).scalar()
    begin = over if oldest is None else int(oldest)
    first_count = min(begin, mature) if live.counted_until is None else live.counted_until
    first_score = min(begin, over) if live.scored_until is None else live.scored_until
    if first_count >= mature and first_score >= over:
        return
    tests = Tests.read(connection, alpha)
    for day in _days_with_rows(connection, first_score, over):
        for rows in _chunks(connection, day):
            tests.look_at_scores(rows.scores, unit_name(day, "day"), seed)
    for day in _days_with_rows(connection, first_count, mature):
        _count_day(connection, live, tests, day)
    live.scored_until = max(first_score, over)
    live.counted_until = max(first_count, mature)
    tests.write(connection)
    forget(connection, live, remember)
    _join_old_days(connection)


@dataclass
class _Rows:
    """Some rows of a day."""

    scores: FloatArray
    labels: FloatArray
    segments: list[Any] | None


def _days_with_rows(connection: Any, first: int, end: int) -> list[int]:
    within = (PREDICTIONS.c.day >= first) & (PREDICTIONS.c.day < end)
    found = connection.execute(
        sa.select(PREDICTIONS.c.day).where(within).distinct().order_by(PREDICTIONS.c.day)
    )
    return [int(day) for (day,) in found]


def _chunks(connection: Any, day: int) -> Iterator[_Rows]:
    """The rows of a day, in chunks; labels that are unknown or arrived too late are NaN."""
    query = sa.select(PREDICTIONS.c.score, PREDICTIONS.c.label, PREDICTIONS.c.segment).where(
        PREDICTIONS.c.day == day
    )
    found = connection.execute(query.execution_options(yield_per=_CHUNK))
    for part in found.partitions():
        scores = np.array([row[0] for row in part])
        known = [np.nan if row[1] is None or row[1] >= TOO_LATE else row[1] for row in part]
        segments = None if part[0][2] is None else [json.loads(row[2]) for row in part]
        yield _Rows(scores, np.array(known, dtype=np.float64), segments)


def _count_day(connection: Any, live: Live, tests: Tests, day: int) -> None:
    """Count the rows of a day once, each with its label at the age of maturity."""
    watched = tests.rates.watched
    classes = watched.classes
    size = watched.n_regions
    counts = np.zeros((3, size), dtype=np.int64)
    name = unit_name(day, "day")
    for rows in _chunks(connection, day):
        prepared = watched.prepared(rows.scores, rows.segments)
        regions = watched.between(prepared)
        codes = np.nan_to_num(rows.labels).astype(np.uint8)
        unknown = np.isnan(rows.labels).astype(np.uint8)
        counts[:2] += counts_of(regions, codes, size)
        counts[2] += counts_of(regions, unknown, size)[1]
        live.mature += rows.scores.size
        live.labelled += int(rows.scores.size - unknown.sum())
        if tests.guarantee is not None:
            labels = np.where(codes == 1, classes.positive, classes.negative).astype(object)
            labels[unknown == 1] = None
            times = np.full(rows.scores.size, np.datetime64(name))
            tests.guarantee.update(rows.scores, labels, segments=rows.segments, at=times)
    tests.rates.update_counts(counts[0], counts[1], at=name)
    connection.execute(DAYS.insert().values(day=day, counts=json.dumps(counts.tolist())))


def _join_old_days(connection: Any) -> None:
    """Merge the oldest days if there are too many to keep individually."""
    days = [int(day) for (day,) in connection.execute(sa.select(DAYS.c.day).order_by(DAYS.c.day))]
    if len(days) <= _MOST_DAYS:
        return
    old = days[: len(days) - _MOST_DAYS + 1]
    query = sa.select(DAYS.c.counts).where(DAYS.c.day <= old[-1])
    total = sum(np.array(json.loads(text)) for (text,) in connection.execute(query))
    connection.execute(DAYS.delete().where(DAYS.c.day <= old[-1]))
    connection.execute(
        DAYS.insert().values(day=old[-1], counts=json.dumps(np.asarray(total).tolist()))
    )
