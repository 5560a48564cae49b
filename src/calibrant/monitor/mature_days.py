"""Close a day: count its rows, let the tests evaluate them, and keep only counts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import sqlalchemy as sa

from calibrant._typing import FloatArray, IntArray
from calibrant.guarantee.guarantee import is_guarantee
from calibrant.monitor.drift import DriftMonitor
from calibrant.monitor.event_columns import day_of
from calibrant.monitor.evidence import EvidenceMonitor
from calibrant.monitor.guarantee import GuaranteeMonitor
from calibrant.monitor.headline import write_headline
from calibrant.monitor.ledger import TOO_LATE, Live, forget
from calibrant.monitor.model_rows import ModelRows
from calibrant.monitor.score_drift import ScoreDriftMonitor
from calibrant.monitor.sealed_counts import SealedCounts
from calibrant.monitor.tables import DAYS, PREDICTIONS, QUARANTINE
from calibrant.monitor.times import unit_name
from calibrant.monitor.watched import counts_of

if TYPE_CHECKING:
    from calibrant.monitor.durable import Monitor

_CHUNK = 50_000  # rows in memory at once
_REFERENCE_SCORES = 2000
_LONGEST_PROBLEM = 500  # characters

SHARES = {"rates": 0.5, "guarantee": 0.3, "scores": 0.2}
"""How one error budget is shared. Without a guarantee, its share goes to the rates."""
_KINDS: dict[str, type[EvidenceMonitor]] = {
    "rates": DriftMonitor,
    "guarantee": GuaranteeMonitor,
    "scores": ScoreDriftMonitor,
}


@dataclass
class Tests:
    """The tests of a store, which share one error budget."""

    rates: DriftMonitor
    guarantee: GuaranteeMonitor | None
    scores: ScoreDriftMonitor | None
    reference: list[float]
    alpha: float
    path: list[list[Any]] = field(default_factory=list)
    """After each counted day: the day, and how far the evidence of each test is on its way to an
    alarm, at 1; None before a test begins."""

    @classmethod
    def of(cls, monitor: "Monitor", seed: int) -> "Tests":
        """New tests for the calibrator of a monitor.

        If rows of a day depend on each other, only the rates are tested.
        """
        calibrator = monitor.calibrator
        alpha = monitor.alpha
        by_row = monitor.unit == "row"
        kept = by_row and is_guarantee(calibrator.guarantee_)
        share = (
            SHARES["rates"]
            + (0.0 if kept else SHARES["guarantee"])
            + (0.0 if by_row else SHARES["scores"])
        )
        rates = DriftMonitor(
            calibrator,
            confidence_level=1.0 - share * alpha,
            unit=monitor.unit,
            maturity=monitor.maturity,
            reference=monitor.reference,
            random_state=seed,
        )
        guarantee = None
        if kept:
            level = 1.0 - SHARES["guarantee"] * alpha
            guarantee = GuaranteeMonitor(
                calibrator, confidence_level=level, maturity=monitor.maturity
            )
        return cls(rates, guarantee, None, [], alpha)

    @classmethod
    def of_text(cls, text: str, monitor: "Monitor") -> "Tests":
        """Read them from their text; raise a ValueError if it is not what `text` wrote."""
        try:
            state = json.loads(text)
            tests: dict[str, Any] = {
                name: None if state[name] is None else kind.from_dict(state[name])
                for name, kind in _KINDS.items()
            }
            reference = [float(score) for score in state["reference"]]
            return cls(**tests, reference=reference, alpha=monitor.alpha, path=state["path"])
        except Exception as error:
            raise ValueError(f"saved tests that cannot be read: {error}") from error

    def text(self) -> str:
        """Their state as text."""
        states = {
            name: None if test is None else test.to_dict()
            for name, test in self.by_question().items()
        }
        return json.dumps({**states, "reference": self.reference, "path": self.path})

    def by_question(self) -> dict[str, EvidenceMonitor | None]:
        """The tests, by the question they answer; None for a test that does not run."""
        return {"rates": self.rates, "guarantee": self.guarantee, "scores": self.scores}

    def mark(self, day: int) -> None:
        """Record how much evidence there was after a day."""
        reached = [None if one is None else one.progress for one in self.by_question().values()]
        self.path.append([day, *reached])

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


def advance(rows: ModelRows, live: Live, monitor: "Monitor") -> None:
    """Count the days that are mature by now, compare the scores of completed days, and delete old
    rows.

    What is counted, and when, depends only on times, never on labels. A day that cannot be counted
    is put into quarantine, with the reason; the others are counted.
    """
    over = day_of(live.latest)
    mature = day_of(live.latest, monitor.maturity)
    first = sa.select(sa.func.min(PREDICTIONS.c.day)).where(rows.of(PREDICTIONS))
    oldest = rows.connection.execute(first).scalar()
    begin = over if oldest is None else int(oldest)
    first_count = min(begin, mature) if live.counted_until is None else live.counted_until
    first_score = min(begin, over) if live.scored_until is None else live.scored_until
    if first_count >= mature and first_score >= over:
        return
    due = {
        "scores": _days_with_rows(rows, first_score, over),
        "labels": _days_with_rows(rows, first_count, mature),
    }
    sealed = SealedCounts.read(rows, live, monitor)
    tests, closed, stuck = _closed(rows, sealed.tests, due, monitor)
    for day_number, (counts, n_rows, n_labelled) in closed.items():
        live.mature += n_rows
        live.labelled += n_labelled
        new = {"model": rows.model, "day": day_number, "counts": json.dumps(counts.tolist())}
        rows.connection.execute(DAYS.insert().values(new))
    for what, day_number in stuck:
        here = PREDICTIONS.c.day == day_number
        n_rows = rows.count(PREDICTIONS, here) if what == "labels" else 0
        _put_aside(rows, day_number, n_rows, stuck[what, day_number])
        live.quarantined += n_rows
    live.scored_until = max(first_score, over)
    live.counted_until = max(first_count, mature)
    held = rows.select(QUARANTINE.c.day, where=[QUARANTINE.c.n_rows > 0])
    forget(rows, live, monitor.remember, held.scalars().all())
    SealedCounts.write(rows, live, monitor, tests.text())
    write_headline(rows, monitor, tests)


_Counted: TypeAlias = tuple[IntArray, int, int]
"""Of a day: rows, positive rows and unknown labels of each cell; and all rows, and those with a
label.
"""


class _StuckDayError(Exception):
    """A day that cannot be closed: what was done with it ("scores" or "labels"), and the reason."""

    def __init__(self, what: str, day: int, problem: str) -> None:
        super().__init__(what, day, problem)
        self.key = (what, day)
        self.problem = problem


def _closed(
    rows: ModelRows, saved: str, due: Mapping[str, Sequence[int]], monitor: "Monitor"
) -> tuple[Tests, dict[int, _Counted], dict[tuple[str, int], str]]:
    """The tests after the days that are due, their counts, and the days that cannot be closed.

    A test may have evaluated a part of such a day, so all begin again from the saved state without
    that day.
    """
    stuck: dict[tuple[str, int], str] = {}
    while True:
        tests = Tests.of_text(saved, monitor)
        left = {
            what: [day for day in days if (what, day) not in stuck] for what, days in due.items()
        }
        try:
            for day in left["scores"]:
                with _closing("scores", day):
                    for scores, _, _ in _parts(rows, day):
                        tests.look_at_scores(scores, unit_name(day, "day"), monitor.seed)
            return tests, {day: _counted(rows, tests, day) for day in left["labels"]}, stuck
        except _StuckDayError as error:
            stuck[error.key] = error.problem


@contextmanager
def _closing(what: str, day: int) -> Iterator[None]:
    """Name the day of an error, except for one of the database, which may not happen again."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, MemoryError):
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"[:_LONGEST_PROBLEM]
        raise _StuckDayError(what, day, problem) from error


def _days_with_rows(rows: ModelRows, first: int, end: int) -> list[int]:
    day = PREDICTIONS.c.day
    within = rows.of(PREDICTIONS) & (day >= first) & (day < end)
    found = rows.connection.execute(sa.select(day).where(within).distinct().order_by(day))
    return [int(number) for (number,) in found]


def _put_aside(rows: ModelRows, day: int, n_rows: int, problem: str) -> None:
    here = rows.of(QUARANTINE) & (QUARANTINE.c.day == day)
    rows.connection.execute(QUARANTINE.delete().where(here))
    new = {"model": rows.model, "day": day, "n_rows": n_rows, "problem": problem}
    rows.connection.execute(QUARANTINE.insert().values(new))


def _parts(rows: ModelRows, day: int) -> Iterator[tuple[FloatArray, FloatArray, list[Any] | None]]:
    """Scores, labels and segments of the rows of a day, in chunks; labels that are unknown or
    arrived too late are NaN.
    """
    table = PREDICTIONS.c
    query = (
        sa.select(table.score, table.label, table.segment)
        .where(rows.of(PREDICTIONS) & (table.day == day))
        .order_by(table.score, sa.nulls_first(table.label))  # sums do not depend on the database
    )
    with rows.connection.execute(query.execution_options(yield_per=_CHUNK)) as found:
        for part in found.partitions():
            scores = np.array([row[0] for row in part], dtype=np.float64)
            known = [np.nan if row[1] is None or row[1] >= TOO_LATE else row[1] for row in part]
            segments = None if part[0][2] is None else [json.loads(row[2]) for row in part]
            yield scores, np.array(known, dtype=np.float64), segments


def _counted(rows: ModelRows, tests: Tests, day: int) -> _Counted:
    """Count the rows of a day once, each with its label at the age of maturity."""
    watched = tests.rates.watched
    classes = watched.classes
    size = watched.cells.n_cells
    counts = np.zeros((3, size), dtype=np.int64)
    n_rows = 0
    n_labelled = 0
    name = unit_name(day, "day")
    with _closing("labels", day):
        for scores, known, segments in _parts(rows, day):
            prepared = watched.prepared(scores, segments)
            cells = watched.cells_of(prepared)
            codes = np.nan_to_num(known).astype(np.uint8)
            unknown = np.isnan(known).astype(np.uint8)
            counts[:2] += counts_of(cells, codes, size)
            counts[2] += counts_of(cells, unknown, size)[1]
            n_rows += scores.size
            n_labelled += int(scores.size - unknown.sum())
            if tests.guarantee is not None:
                labels = np.where(codes == 1, classes.positive, classes.negative).astype(object)
                labels[unknown == 1] = None
                times = np.full(scores.size, np.datetime64(name))
                tests.guarantee.update(scores, labels, segments=segments, at=times)
        tests.rates.update_counts(counts[0], counts[1], at=name)
    tests.mark(day)
    return counts, n_rows, n_labelled
