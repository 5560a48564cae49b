"""Have the rates changed since calibration? A test that is exact even though the rates were
estimated.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, IndexArray, IntArray, Seed
from calibrant.cells.partition import Partition, is_partition
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.monitor.change import Change, MonitorResult
from calibrant.monitor.drift_words import (
    assumptions_of,
    calm_words,
    notes_of,
    rows_to_recalibrate,
)
from calibrant.monitor.evidence import ShiftMonitor
from calibrant.monitor.pooled_rates import PooledRates
from calibrant.monitor.ranked_units import RankedUnits
from calibrant.monitor.times import (
    Age,
    check_unit_order,
    known_labels,
    maturity_days,
    named_units,
    shown_time,
    weekday_of,
)
from calibrant.monitor.watched import Fitted, Watched, checked_counts, counts_of
from calibrant.params.arrays import check_same_length
from calibrant.params.declared_state import Resumes
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import name_classes
from calibrant.params.random import RandomSource, seed_number
from calibrant.params.rules import TEXT, Choice, Flag, Integer, Number, Optional
from calibrant.params.state_kinds import Maybe, Nested
from calibrant.sample.time_order import in_order, read_times

_REFERENCES = {"row": 2000, "day": 30, "week": 12}


class DriftMonitor(ShiftMonitor):
    """Watch whether the rate in each region is still the same as in calibration.

    Guarantee: while the rates stay the same, the probability that an alarm is *ever* raised is at
    most 1 - confidence_level. This is exact even though the rates are estimates, however few
    calibration rows there were. Not claimed: that every change is found. Scores may move without an
    alarm, as long as the rates stay the same.

    Rows are compared in cells. A fit to plain rows divides its regions into up to 40 cells in all,
    and counts them, so a change inside a region, such as a reversed order, is found, too. Other
    calibrators and partitions have one cell for each region.

    Assumptions, for ``unit="row"``: given the cell of each row, the labels in a cell are
    independent and have one rate, in calibration and since; and which rows form a batch does not
    depend on labels. Rows from the same day often have something in common, which breaks this
    assumption: use ``unit="day"``.

    Assumptions, for the other units: the days (or weeks) of the stream are exchangeable, each with
    its volume and its mix of scores. Rows within a day may depend on each other in any
    way. If weekdays differ, days are not exchangeable: set `weekdays`, or use ``unit="week"``.

    If the volume or the mix of scores moves, days are not exchangeable. The test allows for both:
    the probability of a false alarm then holds approximately, not exactly, if days are independent
    and the rates in each region stay the same, apart from random deviations of single days that
    are alike in all regions. In simulations it was kept, with volumes that changed a hundredfold,
    mixes that moved or jumped, and rare positives.
    Calibration counts are not used, so few calibration rows do no harm.

    Parameters
    ----------
    calibrator : ScoreCalibrator, Model or Partition
        A fitted calibrator, or the content of its model file. Its counted rows are the pool that
        new rows are compared with. A calibrator without regions, such as `PlattCalibrator`, and a
        bare partition have no counted rows; then the first rows of the stream are the reference,
        and `summary` says so. The batch that completes the reference is split by `at`; without
        times, the rows that go into the reference are chosen at random.
    confidence_level : float, default=0.95
        Probability that no false alarm is ever raised.
    unit : {"row", "day", "week"}, default="row"
        The independent unit. "day" and "week" need `at`. For other units, such as batches, number
        them, and pass their numbers as days.
    maturity : float or timedelta, default=None
        The age, in days, at which a row is counted, with the label known by then. See
        `calibrant.monitor.Monitor`.
    reference : int, default=None
        The number of rows, or units, that later ones are compared with, if calibration counted
        none; by default 2,000 rows, 30 days or 12 weeks. Units always need a reference,
        because the calibrator does not store the days of its rows. Units without rows don't count.
    batch_rows : int, default=None
        Rows are collected until there are this many, because tiny batches waste evidence. None
        means 10 for each cell.
    weekdays : bool, default=False
        For ``unit="day"``: rank each day among those of the same weekday.
    classes, pos_label : optional
        Both labels and the positive class, for a bare partition; 0 and 1 by default.
    random_state : int, Generator or None, default=None
        Seed for breaking ties at random. None draws a seed, which is stored in `seed` and saved.

    Attributes
    ----------
    alarm : bool
        Whether an alarm was raised; it stays raised.
    changes : tuple of Change
        After an alarm, what has changed.
    seed : int
        The seed.

    Notes
    -----
    **Rows.** For a batch and a cell let the pool have N rows, k of them positive, and the batch n
    rows, s of them positive. Given k + s, s is hypergeometric; its randomised rank gives one N(0,
    1) number z. Then the batch joins the pool. All z are independent
    (`calibrant.monitor.pool`). Bets exp(c z - c^2 / 2) are averaged over kinds of change
    (the same everywhere, a slope over the regions, in single regions, a slope inside all regions or
    one of them, and in single cells), over sizes of
    the change in log-odds from 0.05 to 0.8, and over starts, with half of the weight at the
    beginning and two starts for each doubling after it. Stakes depend on edges and sizes alone: a
    stake that depended on the calibration labels would not be fair.

    Rows at an edge value that was chosen in calibration are left out. Calibrators with groups or
    weights raise an error.

    **Units.** With each unit, the rates p_b of all units so far are estimated anew, and each unit
    gets a score: the probability, under these rates, of fewer positives than it has, given its rows
    in each region. Its distribution is binomial in shape, widened as far as all units together
    require. Then the unit's score is ranked among the scores of all units so far. If units are
    exchangeable, ranks are exactly uniform and independent, whatever the score, with ties and with
    few units (`calibrant.monitor.ranked_units`). The score itself makes ranks insensitive to volume
    and mix (`calibrant.monitor.ranked_units`). A plain residual would not: (hits - expected) / sqrt(n
    p (1 - p)) moves with the volume if p is slightly wrong, and with rare positives the rank of any
    residual does.

    Memory does not grow with rows. With units, it grows by two counts per region and unit.

    References
    ----------
    Ville (1939), "Étude critique de la notion de collectif". Vovk, Gammerman and Shafer (2005),
    "Algorithmic learning in a random world", on martingales of ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BinningCalibrator, DriftMonitor
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> calibrator = BinningCalibrator(n_bins=10).fit(scores, rng.uniform(size=10_000) < scores)
    >>> monitor = DriftMonitor(calibrator, random_state=0)
    >>> for day in range(60):
    ...     scores = rng.uniform(size=200)
    ...     rate = scores if day < 30 else scores**1.3
    ...     _ = monitor.update(scores, rng.uniform(size=200) < rate)
    >>> monitor.alarm, monitor.changes[0].difference < 0
    (True, True)
    """

    _schema: ClassVar[str] = "calibrant.drift/1"
    _entries: ClassVar[EntryTable] = {
        "watched": Entry(Nested(Watched), makes=True),
        "unit": Entry(Choice(tuple(_REFERENCES)), makes=True),
        "maturity": Entry(Maybe(Number()), makes=True),
        "weekdays": Entry(Flag(), makes=True),
        "seed": Entry(Integer(0), makes=True),
        "last_unit": Entry(Maybe(TEXT), of="_last_unit"),
        "test": Entry(Resumes("_test"), of="_test"),
    }

    def __init__(
        self,
        calibrator: Fitted | Partition,
        *,
        confidence_level: float = 0.95,
        unit: str = "row",
        maturity: Age = None,
        reference: int | None = None,
        batch_rows: int | None = None,
        weekdays: bool = False,
        classes: ArrayLike | None = None,
        pos_label: Hashable = None,
        random_state: Seed = None,
    ) -> None:
        watched = Watched.by(calibrator, is_divided=unit == "row")
        if classes is not None or pos_label is not None:
            if not is_partition(calibrator):
                rule = "be None with a calibrator, which knows its classes"
                raise InvalidTypeError("classes and pos_label", rule)
            named = name_classes((0, 1) if classes is None else classes, pos_label)
            watched = watched.with_classes(named)
        self._make(
            watched, confidence_level, unit, maturity, weekdays, random_state, reference, batch_rows
        )

    def _make(
        self,
        watched: Watched,
        confidence_level: Any,
        unit: Any,
        maturity: Any,
        weekdays: Any,
        seed: Any,
        reference: Any = None,
        batch_rows: Any = None,
    ) -> None:
        self._begin(confidence_level)
        self.watched = watched
        self.partition = watched.partition
        self.unit = Choice(tuple(_REFERENCES)).check("unit", unit)
        self.maturity = maturity_days(maturity)
        self.weekdays = Flag().check("weekdays", weekdays)
        if self.weekdays and self.unit != "day":
            raise InvalidValueError("weekdays", 'be False unless unit="day"', got="True")
        wanted = Optional(Integer(1)).check("reference", reference)
        size = Optional(Integer(1)).check("batch_rows", batch_rows)
        self.seed = seed_number(seed)
        reference = _REFERENCES[self.unit] if wanted is None else wanted
        self._last_unit: str | None = None
        self._test: Any = (
            PooledRates(watched, self.seed, reference, size)
            if self.unit == "row"
            else RankedUnits(watched, self.seed, reference, self.weekdays)
        )
        self._mixture = self._test.mixture

    @property
    def in_reference(self) -> bool:
        """Whether the stream is still in the reference that later rows are compared with."""
        return bool(self._test.in_reference)

    def update(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        *,
        segments: ArrayLike | None = None,
        at: ArrayLike | None = None,
    ) -> Self:
        """Add a batch of scores and labels.

        Parameters
        ----------
        scores, y : array-like of shape (n,)
            Scores and labels. With `maturity`, a label that is not known at that age is None or
            NaN.
        segments : array-like of shape (n,), optional
            For regions by segment.
        at : array-like of shape (n,), optional
            When each row was predicted: dates, or numbers of days. Required for days and weeks: all
            rows of a unit must be in one batch, and units come in order.
        """
        codes, _ = known_labels(y, self.watched.classes, self.maturity)
        prepared = self.watched.prepared(scores, segments)
        check_same_length(prepared, codes)
        cells = self.watched.cells_of(prepared)
        times = None if at is None else read_times(at, len(codes))
        if self.unit == "row":
            with self._lock:
                for part in self._parts(cells, times, self._test.missing):
                    counts = counts_of(cells[part], codes[part], self.watched.cells.n_cells)
                    time = None if times is None else shown_time(times[part], part.size)
                    self._take_rows(*counts, time)
            return self
        units, names = named_units(self.unit, len(codes), at)
        with self._lock:
            check_unit_order(names, self._last_unit, self.unit)
            for number, name in enumerate(names):
                here = units == number
                counts = counts_of(cells[here], codes[here], self.watched.cells.n_cells)
                self._take_unit(*counts, name)
        return self

    def _parts(
        self, cells: IndexArray, times: NDArray[Any] | None, missing: int
    ) -> list[IndexArray]:
        """Split a batch where it completes the reference: its later rows are compared with the
        reference.

        Later rows are those with later times. Rows with equal times, or without times, are split at
        random, because their order may depend on their labels.
        """
        n_rows = cells.size
        if not 0 < missing < int((cells >= 0).sum()):
            return [np.arange(n_rows)]
        random = RandomSource.of(self.seed, "rows of the reference").generator()
        order = in_order(n_rows, np.zeros(n_rows) if times is None else times, random)
        end = int(np.searchsorted(np.cumsum(cells[order] >= 0), missing)) + 1
        return [order[:end], order[end:]]

    def update_counts(
        self, rows: ArrayLike, positives: ArrayLike, *, at: str | None = None
    ) -> Self:
        """Add a batch that was counted elsewhere: rows and positive rows in each cell of
        `watched.cells`, strictly between the edges of regions. Without a calibrator, and for units
        other than rows, cells are regions.

        For units other than rows, the batch is one unit, and `at` is its name; names must increase.
        """
        found = checked_counts(rows, positives, self.watched.cells.n_cells)
        with self._lock:
            if self.unit == "row":
                self._take_rows(*found, at)
            else:
                check_unit_order([] if at is None else [at], self._last_unit, self.unit)
                self._take_unit(*found, at)
        return self

    def _take_rows(self, rows: IntArray, hits: IntArray, time: str | None) -> None:
        test = self._test
        test.wait(rows, hits)
        if test.is_due:
            if test.begins:
                self._starts.append(self._moment(test.n_closed))
            self.n_rows += test.n_waiting
            self._at = time or self._at
            test.close()
            self._look(test.n_closed)

    def _take_unit(self, rows: IntArray, hits: IntArray, name: str | None) -> None:
        test = self._test
        if name is None or (self._last_unit is not None and name == self._last_unit):
            raise InvalidValueError("at", f"name another {self.unit} than the last", got=repr(name))
        kind = weekday_of(name) if self.weekdays else 0
        self._last_unit = name
        if not rows.any():  # without rows, a unit has no rank
            return
        if test.begins:
            self._starts.append(self._moment(test.n_units))
        self.n_rows += int(rows.sum())
        self._at = name
        test.take(rows, hits, kind)
        self._look(test.n_units)

    def _changes(self) -> tuple[Change, ...]:
        alpha = 1.0 - self.confidence_level
        found: tuple[Change, ...] = self._test.changes(self._mixture.likely_start(), alpha)
        return found

    def summary(self) -> MonitorResult:
        """What was found so far, as data and in words."""
        with self._lock:
            since = self._since() if self.alarm else None
            n_since = None if since is None else self.n_rows - since.rows
            return self._result(
                question="rates",
                calm=calm_words(self.watched, self._test, self.unit),
                finding="The rates have changed",
                advice=rows_to_recalibrate(self.watched.n_calibration, n_since),
                assumptions=assumptions_of(self.unit, self.maturity, by_weekday=self.weekdays),
                notes=notes_of(self._test, self.unit),
            )
