"""A model in production: predictions now, labels later, and one answer at any time."""

import io
import json
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import numpy as np

from calibrant._optional import needed
from calibrant._typing import ArrayLike, FloatArray, Seed
from calibrant.answers.model_file import as_model, content_of, load_model
from calibrant.answers.model_text import checksum_of
from calibrant.errors import InvalidTypeError, InvalidValueError, StoreError
from calibrant.guarantee.guarantee import is_guarantee
from calibrant.monitor.event_columns import (
    check_ahead,
    check_lengths,
    day_of,
    ids_of,
    seconds_of,
    segments_of,
    stored_name,
)
from calibrant.monitor.snapshot import MonitorSnapshot
from calibrant.monitor.times import Age, Time, codes_of, maturity_days
from calibrant.monitor.watched import Fitted, Watched, fitted_calibrator
from calibrant.params.arrays import as_array, as_scores
from calibrant.params.random import seed_number
from calibrant.params.rules import OPEN_UNIT, Choice, Integer, Number, Optional
from calibrant.sample.facts import familiar_limits
from calibrant.text.sentences import Setting

if TYPE_CHECKING:
    from calibrant.monitor.ledger import Checked, Live, Receipt
    from calibrant.monitor.model_rows import ModelRows
    from calibrant.monitor.store import Store

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

    Guarantee: a call returns only when its data are on disk. Each id counts once, even if events
    arrive twice, late, early, or in another order; if the process dies, you can send them again.
    And while nothing changes and the calibrator's guarantee holds, the probability that any test
    *ever* raises an alarm is at most 1 - confidence_level, all tests together. The guarantee may
    have failed in calibration, with the small probability that it states: then enough labels show
    that it does not hold, and an alarm says so although nothing has changed.

    A prediction is counted when its day is over and `maturity` days have passed, with the label
    known at that age. A label that is not known to be positive by then counts as negative. The
    calibration labels must be counted in the same way.

    Parameters
    ----------
    store : str, Path or Store
        An SQLite file, created if it does not exist, or the URL of an SQLite or PostgreSQL
        database, such as "postgresql+psycopg://user@host/name". The `store` of another monitor
        shares its connections.
    model : ScoreCalibrator, Model, str or Path
        A fitted calibrator, the content of its model file, or the path of that file.
    maturity : float or timedelta
        The age, in days, at which a prediction is counted; 0 if labels are known on the same day.
    name : str, default="model"
        The name of the model in the store. A store has any number of models, each with its own
        rows, clock and tests. A name belongs to one model: a calibrator with another checksum needs
        another name.
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
    Events must be sent roughly in time order: a day is over when a later day has been seen. The
    clock of the store has the last word, so that a client whose clock is ahead ends no day: it is
    that of the PostgreSQL server, or of this machine if the store is a file. Times that are more
    than 5 minutes ahead of it raise an error.

    Several threads and processes may use one store. Writers take turns: those of one file, or of
    one model in PostgreSQL. A forked process may use the monitor of its parent, unless it was
    forked within a `transaction`.

    A checksum holds the saved tests and the counts together. It is computed again whenever the
    tests are read, so tests that were swapped, or counts that were changed, raise a StoreError. A
    day that cannot be counted is put into quarantine and reported; the other days are counted.

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
        store: "str | Path | Store",
        model: Fitted | str | Path,
        *,
        maturity: Age,
        name: str = "model",
        remember: float | None = None,
        confidence_level: float = 0.95,
        unit: str = "row",
        reference: int | None = None,
        timeout: float = 30.0,
        random_state: Seed = None,
    ) -> None:
        loaded = load_model(model) if isinstance(model, str | Path) else model
        self.calibrator = fitted_calibrator(loaded)
        self._model = as_model(loaded, None, None)
        self.checksum = checksum_of(self.calibrator.to_dict())
        self.name = stored_name(name)
        self.maturity = maturity_days(maturity) or 0.0
        default = max(2.0 * self.maturity, 2.0)
        self.remember = default if remember is None else _POSITIVE.check("remember", remember)
        if self.remember < self.maturity:
            rule = f"be at least the maturity, {self.maturity:g}"
            raise InvalidValueError("remember", rule, got=f"{self.remember:g}")
        self.confidence_level = OPEN_UNIT.check("confidence_level", confidence_level)
        self.unit = Choice(UNITS).check("unit", unit)
        self.watched = Watched.by(self.calibrator, is_divided=unit == "row")
        self.reference = Optional(Integer(1)).check("reference", reference)
        self._block = _Block()
        self.store = _store_of(store, timeout)
        self._owns_store = self.store is not store
        try:
            self.number, self.seed = self._opened(seed_number(random_state))
        except BaseException:
            self.close()
            raise

    @classmethod
    def resume(cls, store: "str | Path | Store", name: str, timeout: float = 30.0) -> Self:
        """Open a model that is in a store already, by its name: the store keeps its model file and
        its settings. The parameters are those of `Monitor`.
        """
        opened = _store_of(store, timeout)
        try:
            with opened.reading() as connection:
                found = opened.find(connection, stored_name(name))
                if found is None:
                    raise InvalidValueError("name", "be in the store", got=repr(name))
                rows, _ = found
                saved = json.loads(rows.read_text("settings") or "")
                saved.pop("seed")
                model = load_model(io.StringIO(rows.read_text("model") or ""))
            monitor = cls(opened, model, name=name, **saved)
        except BaseException:
            if opened is not store:
                opened.close()
            raise
        monitor._owns_store = opened is not store
        return monitor

    def _opened(self, seed: int) -> tuple[int, int]:
        """The number of the model in the store, and its seed, which the first monitor set."""
        while True:
            with self.store.reading() as connection:
                found = self._known(connection)
            if found is not None:
                return found
            with self.store.writing() as connection, self.store.sound():
                self.store.lock_opening(connection)
                if self.store.find(connection, self.name) is None:
                    self._begin(connection, seed)

    def _known(self, connection: Any) -> tuple[int, int] | None:
        """The number and the seed of a model of this name, once its state has been checked; None
        if there is none.
        """
        from calibrant.monitor.ledger import Live
        from calibrant.monitor.mature_days import Tests
        from calibrant.monitor.sealed_counts import SealedCounts

        found = self.store.find(connection, self.name)
        if found is None:
            return None
        rows, checksum = found
        if checksum != self.checksum:
            rule = f"be the one that {self.name!r} was made for in the store"
            own = Setting("name", "model-2")
            renamed = ("give it a name of its own, such as ", own, ", or use another store")
            raise InvalidValueError("model", rule, got="another model", advice=renamed)
        saved = json.loads(rows.read_text("settings") or "")
        for name, value in self.settings.items():
            if saved[name] != value:
                rule = f"be {saved[name]!r}, as for {self.name!r} in the store"
                advice = "use another name, or another store, for other settings"
                raise InvalidValueError(name, rule, got=f"{value!r}", advice=advice)
        live = Live.of(rows.read_text("live"))
        sealed = SealedCounts.read(rows, live, self)
        sealed.check(rows, live, self)
        Tests.of_text(sealed.tests, self)
        return rows.model, int(saved["seed"])

    def _begin(self, connection: Any, seed: int) -> None:
        """Begin a new model."""
        from calibrant.monitor.headline import write_headline
        from calibrant.monitor.ledger import Live
        from calibrant.monitor.mature_days import Tests
        from calibrant.monitor.sealed_counts import SealedCounts

        rows = self.store.add(connection, self.name, self.checksum)
        rows.write_text("settings", json.dumps({**self.settings, "seed": seed}))
        rows.write_text("model", json.dumps(content_of(self._model)))
        live = Live()
        live.write(rows)
        tests = Tests.of(self, seed)
        SealedCounts.write(rows, live, self, tests.text())
        write_headline(rows, self, tests)

    @property
    def values(self) -> FloatArray | None:
        """The calibrated value of each region, or its average; None if regions have none."""
        regions = self.calibrator.as_regions
        return None if regions is None else regions.guarantee_.value

    @property
    def guaranteed(self) -> tuple[FloatArray, FloatArray] | None:
        """The limits that calibration guaranteed for each region; None without a guarantee."""
        regions = self.calibrator.as_regions
        if regions is None or not is_guarantee(regions.guarantee_):
            return None
        return regions.guarantee_.lower, regions.guarantee_.upper

    @property
    def settings(self) -> dict[str, Any]:
        """What the store keeps of the arguments."""
        return {
            "maturity": self.maturity,
            "remember": self.remember,
            "confidence_level": self.confidence_level,
            "unit": self.unit,
            "reference": self.reference,
        }

    @property
    def alpha(self) -> float:
        """The error budget that the tests share."""
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
        if isinstance(score, bool) or not isinstance(score, Real):
            raise InvalidTypeError("score", "be a number", got=repr(score))
        times = None if at is None else [at]
        segments = None if segment is None else [segment]
        return self.record_many([id], [score], times, segments).outcome

    def record_many(
        self, ids: Ids, scores: ArrayLike, at: Times = None, segments: Ids | None = None
    ) -> "Receipt":
        """Record many predictions in one transaction: all of them or, if an error is raised, none."""
        from calibrant.monitor.ledger import take_predictions

        checked = self.check_predictions(ids, scores, at, segments)
        familiar = familiar_limits(self.calibrator.score_range_seen_)
        take = partial(take_predictions, maturity=self.maturity, familiar=familiar)
        return self._write(take, checked)

    def check_predictions(
        self, ids: Ids, scores: ArrayLike, at: Times = None, segments: Ids | None = None
    ) -> "Checked":
        """Raise the error of `record_many` for predictions that it would reject; store nothing."""
        from calibrant.monitor.ledger import Checked

        names = ids_of(ids)
        found = np.asarray(
            as_scores(scores, positive_column=self.watched.classes.positive_index),
            dtype=np.float64,
        )
        kept = None if segments is None else segments_of(segments)
        check_lengths(names, scores=found, at=at, segments=kept)
        self.watched.prepared(found, kept)
        texts = [None] * len(names) if kept is None else [json.dumps(segment) for segment in kept]
        times = None if at is None else seconds_of(at, len(names))
        return Checked(names, found.tolist(), times, texts)

    def resolve(self, id: Hashable, label: Hashable, at: Time = None) -> str:  # noqa: A002
        """Record a label; return its status: "new", "duplicate", "conflicting", "waiting" or
        "expired".

        The first label of an id is kept. A label that arrives before its prediction waits for it.
        """
        if not isinstance(label, Hashable):
            raise InvalidTypeError("label", "be one of the two classes", got=repr(label))
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

        checked = self.check_labels(ids, labels, at)
        take = partial(take_labels, maturity=self.maturity)
        return self._write(take, checked, moves_clock=moves_clock)

    def check_labels(self, ids: Ids, labels: ArrayLike | Ids, at: Times = None) -> "Checked":
        """Raise the error of `resolve_many` for labels that it would reject; store nothing."""
        from calibrant.monitor.ledger import Checked

        names = ids_of(ids)
        known = as_array(labels, "labels")
        check_lengths(names, labels=known, at=at)
        codes = codes_of(known, self.watched.classes)
        times = None if at is None else seconds_of(at, len(names))
        return Checked(names, codes.tolist(), times)

    def erase(self, id: Hashable) -> bool:  # noqa: A002
        """Delete a prediction that is not mature yet, with its label, as if it had never been made;
        return whether there was one.

        Its score stays in the test of scores if its day is over. Deletions must not depend on
        labels: the tests cannot know what was taken away.
        """
        from calibrant.monitor.ledger import erase

        (name,) = ids_of([id])
        with self._changing() as change, self.store.sound():
            return erase(change.rows, change.live, name)

    def advance(self, now: Time = None) -> MonitorSnapshot:
        """Advance the clock: count the predictions that are mature at `now`, or at the current time
        by the clock of the store, which is the latest possible one.

        Return a snapshot.
        """
        from calibrant.monitor.ledger import Checked

        times = None if now is None else seconds_of([now], 1)
        self._write(lambda *_: None, Checked([""], [], times))
        return self.snapshot()

    def snapshot(self) -> MonitorSnapshot:
        """What is known at one moment, even while others are writing."""
        from calibrant.monitor.stored_snapshot import read_snapshot

        with self.store.rows_of(self.number) as rows:
            return read_snapshot(rows, self)

    def _write(
        self,
        take: "Callable[[ModelRows, Live, Checked], T]",
        checked: "Checked",
        *,
        moves_clock: bool = True,
    ) -> T:
        """Run a change in a new transaction, or in the current one.

        The clock moves forward, and mature days are counted.
        """
        from calibrant.monitor.mature_days import advance

        with self._changing() as change, self.store.sound():
            live = change.live
            now = max(change.now(), live.latest)
            times = [now] * len(checked.ids) if checked.times is None else checked.times
            check_ahead(times, now)
            before = live.latest
            if moves_clock:
                live.latest = max(before, min(now, max(times, default=0.0)))
            taken = take(change.rows, live, replace(checked, times=times))
            ends_day = day_of(before) < day_of(live.latest)
            matures = day_of(before, self.maturity) < day_of(live.latest, self.maturity)
            if ends_day or matures:
                advance(change.rows, live, self)
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
    def _changing(self) -> Iterator["_Change"]:
        """The current transaction, or a new one."""
        from calibrant.monitor.ledger import Live

        if self._block.change is not None:
            if self._block.change.process != os.getpid():
                raise self.store.forked()
            try:
                yield self._block.change
            except BaseException:
                self._block.broken = True
                raise
            return
        self._block.broken = False
        with self.store.rows_of(self.number, writes=True) as rows:
            with self.store.sound():
                text, now = rows.locked_live()
                live = Live.of(text)
            yield _Change(rows, live, now - time.time(), os.getpid())
            if self._block.broken:
                rule = "be undone after an error within it"
                raise StoreError("a transaction", rule, advice="let the error end the block")
            live.write(rows)

    def clock(self) -> float:
        """The time by the clock of the store, in seconds since 1970."""
        with self._changing() as change:
            return max(change.now(), change.live.latest)

    def count_unreadable(self, n_lines: int) -> None:
        """Count lines that could not be read and are kept elsewhere, for the snapshot."""
        with self._changing() as change:
            change.live.unreadable += n_lines

    def read_note(self, key: str) -> Any:
        """A note saved in the store, such as how far a file was read.

        None if there is none.
        """
        with self.store.rows_of(self.number) as rows:
            text = rows.read_text(f"note {key}"[:_LONGEST_KEY])
            return None if text is None else json.loads(text)

    def write_note(self, key: str, note: Mapping[str, Any]) -> None:
        """Save a note in the store: plain JSON values."""
        with self._changing() as change:
            change.rows.write_text(f"note {key}"[:_LONGEST_KEY], json.dumps(note))

    def close(self) -> None:
        """Close the connections of the store, unless another monitor opened them.

        Everything acknowledged is already on disk.
        """
        if self._owns_store:
            self.store.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self


def _store_of(store: "str | Path | Store", timeout: float) -> "Store":
    """The store at a place, or of another monitor."""
    needed("sqlalchemy", "monitor", "a Monitor keeps its store")
    from calibrant.monitor.store import Store

    seconds = _SECONDS.check("timeout", timeout)
    if isinstance(store, str | Path):
        return Store(store, seconds)
    if not hasattr(store, "sound"):
        rule = "be a path, a URL, or the store of another monitor"
        raise InvalidTypeError("store", rule, got=type(store).__name__)
    return store


@dataclass(frozen=True, slots=True)
class _Change:
    """A transaction: the rows of the model, its clock and counts, and how far the clock of the
    store is ahead of that of this machine. It belongs to one process.
    """

    rows: "ModelRows"
    live: "Live"
    ahead: float
    process: int

    def now(self) -> float:
        """The time by the clock of the store."""
        return time.time() + self.ahead


class _Block(threading.local):
    """A thread's current transaction, and whether anything in it has failed."""

    change: "_Change | None" = None
    broken: bool = False
