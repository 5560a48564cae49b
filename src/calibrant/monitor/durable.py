"""A model in production: predictions now, labels later, and one answer at any time."""

import json
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import numpy as np

from calibrant._optional import needed
from calibrant._typing import ArrayLike, Seed
from calibrant.answers.model_file import load_model
from calibrant.errors import InvalidTypeError, InvalidValueError, StoreError
from calibrant.monitor.event_columns import check_lengths, day_of, ids_of, seconds_of
from calibrant.monitor.late_labels import Age, Time, maturity_days
from calibrant.monitor.snapshot import MonitorSnapshot
from calibrant.monitor.watched import Fitted, Watched, fitted_calibrator
from calibrant.params.arrays import as_array, as_scores
from calibrant.params.labels import classes_of, encode_labels
from calibrant.params.random import seed_number
from calibrant.params.rules import OPEN_UNIT, Choice, Integer, Number, Optional
from calibrant.sample.facts import familiar_limits

if TYPE_CHECKING:
    from calibrant.monitor.ledger import Live, Receipt

T = TypeVar("T")
Ids: TypeAlias = Sequence[Hashable]
Times: TypeAlias = ArrayLike | Sequence[Time] | None

UNITS = ("row", "day")
"""Units that may be independent."""

_LONGEST_KEY = 40
_POSITIVE = Number("a number of days > 0", 0.0, open_low=True)
_SECONDS = Number("a number of seconds >= 0", 0.0)


class Monitor(AbstractContextManager["Monitor"]):
    """Keep predictions until their labels arrive, count each once, and watch the guarantee.

    Claimed: a call returns only when its data are on disk. Each id counts once, even if events
    arrive twice, late, early, or in another order; if the process dies, you can send them again.
    And while nothing changes, the probability that any test *ever* raises an alarm is at most 1 -
    confidence_level, all tests together.

    A prediction is counted when its day is over and `maturity` days have passed, with the label
    known at that age. A label that is not known to be positive by then counts as negative. The
    calibration labels must be counted in the same way.

    Parameters
    ----------
    store : str or Path
        An SQLite file, created if it does not exist, or an SQLAlchemy database URL.
    model : ScoreCalibrator, Model, str or Path
        A fitted calibrator, the content of its model file, or the path of that file.
    maturity : float or timedelta
        The age, in days, at which a prediction is counted; 0 if labels are known on the same day.
    remember : float, default=None
        Number of days for which ids are kept, so that replays are noticed. None means twice the
        maturity, at least 2 days. After that, a repeated label counts as unknown, and a repeated
        prediction, with its time, as late.
    confidence_level : float, default=0.95
        Probability that no test ever raises a false alarm, over all tests together.
    unit : {"row", "day"}, default="row"
        The independent unit; see `DriftMonitor`. With "day", only the rates are tested, with the
        whole budget.
    reference : int, default=None
        Number of days that later ones are compared with, or of rows if calibration counted none;
        see `DriftMonitor`.
    timeout : float, default=30
        Seconds to wait for another process that writes.
    random_state : int, Generator or None, default=None
        Seed for the random draws. None draws a seed, which is saved; two new stores with the same
        data then differ a little in their evidence, because ties are broken at random. `calibrant
        watch` takes 0.

    Notes
    -----
    Events must be sent roughly in time order: the latest time seen is the clock of the store,
    and it never goes back. Times more than a day in the future raise an error. Several threads and
    processes may use one store; writers take turns.

    Raw scores are stored; calibrated values are computed when they are read. Counted rows are added
    to tallies, one for each day, so the store stays small.

    The budget 1 - confidence_level is shared: half for the rates (`DriftMonitor`), 30% for the
    guarantee (`GuaranteeMonitor`), 20% for the scores (`ScoreDriftMonitor`, which compares with
    the first 2,000 predictions).

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from calibrant import BinningCalibrator
    >>> from calibrant.monitor import Monitor
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=5000)
    >>> calibrator = BinningCalibrator(n_bins=5).fit(scores, rng.uniform(size=5000) < scores)
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Monitor(f"{folder.name}/watch.db", calibrator, maturity=7) as monitor:
    ...     monitor.record("loan 1", 0.3, at="2026-01-01")
    ...     monitor.resolve("loan 1", 1, at="2026-01-05")
    ...     monitor.resolve("loan 1", 1, at="2026-01-06")
    ...     monitor.advance("2026-01-09").n_labels
    'new'
    'new'
    'duplicate'
    1
    >>> folder.cleanup()
    """

    def __init__(
        self,
        store: str | Path,
        model: Fitted | str | Path,
        *,
        maturity: Age,
        remember: float | None = None,
        confidence_level: float = 0.95,
        unit: str = "row",
        reference: int | None = None,
        timeout: float = 30.0,
        random_state: Seed = None,
    ) -> None:
        needed("sqlalchemy", "monitor", "a Monitor keeps its store")
        from calibrant.monitor.store import Store

        if not isinstance(store, str | Path):
            raise InvalidTypeError("store", "be a path or a URL", got=type(store).__name__)
        loaded = load_model(model) if isinstance(model, str | Path) else model
        self.calibrator = fitted_calibrator(loaded)
        self.watched = Watched.by(self.calibrator)
        self.maturity = maturity_days(maturity) or 0.0
        default = max(2.0 * self.maturity, 2.0)
        self.remember = default if remember is None else _POSITIVE.check("remember", remember)
        if self.remember < self.maturity:
            rule = f"be at least the maturity, {self.maturity:g}"
            raise InvalidValueError("remember", rule, got=f"{self.remember:g}")
        self.confidence_level = OPEN_UNIT.check("confidence_level", confidence_level)
        self.unit = Choice(UNITS).check("unit", unit)
        self.reference = Optional(Integer(1)).check("reference", reference)
        self._block = _Block()
        self._store = Store(store, _SECONDS.check("timeout", timeout))
        try:
            self.seed = self._open(seed_number(random_state))
        except BaseException:
            self._store.close()
            raise

    def _open(self, seed: int) -> int:
        """Open the store; return its seed, which the first monitor set."""
        from calibrant.monitor.ledger import Live
        from calibrant.monitor.mature_days import Tests
        from calibrant.monitor.store import lock, read_text, write_text

        settings = {
            "maturity": self.maturity,
            "remember": self.remember,
            "confidence_level": self.confidence_level,
            "unit": self.unit,
            "reference": self.reference,
            "model": (
                self.watched.partition.fingerprint + json.dumps(self.watched.to_dict()["rows"])
            ),
        }
        self._store.open()
        with self._store.writing() as connection:
            lock(connection)
            saved = read_text(connection, "settings")
            if saved is None:
                Live().write(connection)
                tests = Tests.of(
                    self.calibrator,
                    self._alpha,
                    self.maturity,
                    self.unit,
                    self.reference,
                    seed,
                )
                tests.write(connection)
                write_text(connection, "settings", json.dumps({**settings, "seed": seed}))
                return seed
        found = json.loads(saved)
        for name, value in settings.items():
            if found[name] != value:
                got = "another model" if name == "model" else f"{value!r}"
                known = "the one that it was made for" if name == "model" else f"{found[name]!r}"
                advice = "use another store for other settings"
                raise InvalidValueError(
                    name, f"be {known}, as in the store", got=got, advice=advice
                )
        return int(found["seed"])

    @property
    def _alpha(self) -> float:
        return 1.0 - self.confidence_level

    def record(self, id: Hashable, score: float, at: Time = None, segment: Hashable = None) -> str:  # noqa: A002
        """Record a prediction; return its status: "new", "duplicate", "conflicting" or "late".

        Parameters
        ----------
        id : str or int
            The name under which its label will arrive.
        score : float
            The raw score.
        at : date, text, or number of days, default=None
            When the prediction was made; None means now. Dates without a time zone are in UTC.
        segment : optional
            For regions by segment.
        """
        times = None if at is None else [at]
        segments = None if segment is None else [segment]
        return self.record_many([id], [score], times, segments).outcome

    def record_many(
        self, ids: Ids, scores: ArrayLike, at: Times = None, segments: Ids | None = None
    ) -> "Receipt":
        """Record many predictions in one transaction: all of them or, if an error is raised, none."""
        from calibrant.monitor.ledger import take_predictions

        names = ids_of(ids)
        found = np.asarray(
            as_scores(scores, positive_column=self.watched.classes.positive_index),
            dtype=np.float64,
        )
        check_lengths(names, scores=found, at=at, segments=segments)
        self.watched.prepared(found, None if segments is None else np.asarray(segments))
        familiar = familiar_limits(self.calibrator.score_range_seen_)
        kept = (
            [None] * len(names)
            if segments is None
            else [json.dumps(segment) for segment in segments]
        )

        def take(connection: Any, live: "Live", times: list[float]) -> "Receipt":
            return take_predictions(
                connection, live, names, found.tolist(), times, kept, self.maturity, familiar
            )

        return self._write(take, at, len(names))

    def resolve(self, id: Hashable, label: Hashable, at: Time = None) -> str:  # noqa: A002
        """Record a label; return its status: "new", "duplicate", "conflicting", "waiting" or
        "expired".

        The first label of an id is kept. A label that arrives before its prediction waits for it.
        """
        return self.resolve_many([id], [label], None if at is None else [at]).outcome

    def resolve_many(
        self,
        ids: Ids,
        labels: ArrayLike | Ids,
        at: Times = None,
        *,
        moves_clock: bool = True,
    ) -> "Receipt":
        """Record many labels in one transaction: all of them or, if an error is raised, none.

        Set ``moves_clock=False`` for an archive that is sent prediction by prediction, each with
        its label: then the labels are later than the next predictions, whose days must not end yet.
        """
        from calibrant.monitor.ledger import take_labels

        names = ids_of(ids)
        classes = self.watched.classes
        known = as_array(labels, "labels")
        check_lengths(names, labels=known, at=at)
        codes, _ = encode_labels(
            known,
            classes=classes_of(known, classes),
            pos_label=classes.positive,
            score_columns=1,
        )
        values = codes.tolist()

        def take(connection: Any, live: "Live", times: list[float]) -> "Receipt":
            return take_labels(connection, live, names, values, times, self.maturity)

        return self._write(take, at, len(names), moves_clock=moves_clock)

    def advance(self, now: Time = None) -> MonitorSnapshot:
        """Advance the clock: count the predictions that are mature at `now`, or at this machine's
        current time.

        Return a snapshot.
        """
        self._write(lambda *_: None, [now] if now is not None else None, 1)
        return self.snapshot()

    def snapshot(self) -> MonitorSnapshot:
        """What is known at one moment, even while others are writing."""
        from calibrant.monitor.stored_snapshot import read_snapshot

        with self._store.reading() as connection:
            return read_snapshot(connection, self)

    def _write(
        self,
        take: "Callable[[Any, Live, list[float]], T]",
        at: Times,
        n_rows: int,
        *,
        moves_clock: bool = True,
    ) -> T:
        """Run a change in a new transaction, or in the current one.

        The clock moves forward, and mature days are counted.
        """
        from calibrant.monitor.mature_days import advance

        given = None if at is None else seconds_of(at, n_rows)
        with self._changing() as (connection, live):
            clock = max(time.time(), live.latest) if given is None else 0.0
            times = [clock] * n_rows if given is None else given
            before = live.latest
            if moves_clock:
                live.latest = max(live.latest, max(times, default=0.0))
            taken = take(connection, live, times)
            ends_day = day_of(before) < day_of(live.latest)
            matures = day_of(before, self.maturity) < day_of(live.latest, self.maturity)
            if ends_day or matures:
                advance(connection, live, self.maturity, self.remember, self._alpha, self.seed)
        return taken

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Put everything that this thread sends within the block into one transaction.

        It is durable when the block ends. If an error is raised, nothing is stored.
        """
        with self._changing() as change:
            self._block.change = change
            try:
                yield self
            finally:
                self._block.change = None

    @contextmanager
    def _changing(self) -> Iterator["tuple[Any, Live]"]:
        """The connection, clock and counts of the current transaction, or of a new one."""
        from calibrant.monitor.ledger import Live
        from calibrant.monitor.store import lock

        if self._block.change is not None:
            try:
                yield self._block.change
            except BaseException:
                self._block.broken = True
                raise
            return
        self._block.broken = False
        with self._store.writing() as connection:
            lock(connection)
            live = Live.read(connection)
            yield connection, live
            if self._block.broken:
                rule = "be undone after an error within it"
                raise StoreError("a transaction", rule, advice="let the error end the block")
            live.write(connection)

    def read_note(self, key: str) -> Any:
        """A note saved in the store, such as how far a file was read.

        None if there is none.
        """
        from calibrant.monitor.store import read_text

        with self._store.reading() as connection:
            text = read_text(connection, f"note {key}"[:_LONGEST_KEY])
        return None if text is None else json.loads(text)

    def write_note(self, key: str, note: Mapping[str, Any]) -> None:
        """Save a note in the store: plain JSON values."""
        from calibrant.monitor.store import write_text

        with self._changing() as (connection, _):
            write_text(connection, f"note {key}"[:_LONGEST_KEY], json.dumps(note))

    def close(self) -> None:
        """Close the connections of the store. Everything acknowledged is already on disk."""
        self._store.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self


class _Block(threading.local):
    """A thread's current transaction, and whether anything in it has failed."""

    change: "tuple[Any, Live] | None" = None
    broken: bool = False
