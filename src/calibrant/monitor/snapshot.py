"""The state of a monitor at one moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.monitor.change import MonitorResult, changes_table
from calibrant.text.numbers import counted, percent, points, span, upper
from calibrant.text.picture import Drawn, Picture, ReferenceLine
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import in_words

_HEADS = {"lower": "true rate, guaranteed without drift"}
_BEYOND = 2.0  # times the evidence that raises an alarm: more is not drawn
_MOST_SPANS = 60  # points of the drift picture
_SPAN_ALPHA = 0.05
_FAULT = 0.05  # excess share of missing labels that is reported with an alarm


@dataclass(frozen=True, slots=True, eq=False)
class CountedDay:
    """The counts of a day, and what was known at its end.

    Attributes
    ----------
    day : str
        The day.
    counts, positives : int arrays of shape (n_regions,)
        Rows and positive rows of each region.
    n_unknown : int
        Rows whose label was not known in time.
    epsilon : float
        The largest distance between a calibrated value and the rate of its region, from all days so
        far.
    """

    day: str
    counts: IntArray
    positives: IntArray
    n_unknown: int
    epsilon: float

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    @property
    def n_positives(self) -> int:
        """The number of positive rows."""
        return int(self.positives.sum())


@dataclass(frozen=True, slots=True)
class HeldDay:
    """A day in quarantine: how many predictions are not counted, and why.

    With 0 predictions, they are counted, but their scores could not be compared.
    """

    day: str
    n_rows: int
    problem: str


@dataclass(frozen=True, slots=True, repr=False)
class MonitorSnapshot(Result):
    """What a `Monitor` knows at one moment.

    Attributes
    ----------
    now : str or None
        The latest time seen.
    alarm : bool
        Whether some test has raised an alarm.
    confidence_level : float
        Probability that no test ever raises a false alarm; also the confidence level of the limits.
    maturity : float
        The age, in days, at which predictions are counted.
    epsilon : float
        The largest distance between a calibrated value and the rate of its region in the stream so
        far, if rates did not change.
    n_recorded, n_pending, n_mature : int
        The number of recorded predictions, of those not mature yet, and of those counted.
    n_labels : int
        The number of counted predictions whose label was known in time.
    n_waiting, n_expired, n_unknown : int
        The number of labels that wait for their prediction, of those that arrived too late to
        count, and of those whose prediction never arrived.
    n_late : int
        The number of predictions for a day that was already counted.
    n_duplicate, n_conflicting : int
        The number of predictions and labels that arrived again: with the same content, or with
        different content for the same id.
    n_unfamiliar : int
        The number of recorded predictions whose score is outside the range of calibration by more
        than half its width; they count in the outermost regions.
    n_quarantined : int
        The number of predictions of days that could not be counted; see `quarantine`.
    n_unreadable : int
        The number of lines that `calibrant watch` could not read and put into the quarantine file.
    n_until_scores : int
        The number of predictions still needed before scores can be compared.
    regions, counts, positives, lower, upper
        The regions, their rows and positive rows, and limits on their rates that hold after every
        day simultaneously.
    verdicts : tuple of MonitorResult
        What each test has found.
    path : tuple of CountedDay
        The counted days, with what was known after each.
    counted_until : str or None
        The first day that has not been counted yet.
    lag : float or None
        The number of days since then.
    score_range : pair of float or None
        The smallest and largest score of calibration, if known.
    quarantine : tuple of HeldDay
        The days that could not be closed.
    values : float array of shape (n_regions,), or None
        The calibrated value of each region, or its average; None if regions have none.
    guaranteed : pair of float arrays of shape (n_regions,), or None
        The limits that calibration guaranteed for each region.
    evidence : tuple of (str, tuple)
        After each counted day: how far the evidence of the tests of rates, guarantee and scores was
        on its way to an alarm, which is at 1; None for a test that does not run.
    """

    now: str | None
    alarm: bool
    confidence_level: float
    maturity: float
    epsilon: float
    n_recorded: int
    n_pending: int
    n_mature: int
    n_labels: int
    n_waiting: int
    n_expired: int
    n_late: int
    n_duplicate: int
    n_conflicting: int
    n_unknown: int
    n_unfamiliar: int
    n_quarantined: int
    n_unreadable: int
    n_until_scores: int
    regions: tuple[str, ...]
    counts: IntArray
    positives: IntArray
    lower: FloatArray
    upper: FloatArray
    verdicts: tuple[MonitorResult, ...]
    path: tuple[CountedDay, ...]
    quarantine: tuple[HeldDay, ...]
    guaranteed: tuple[FloatArray, FloatArray] | None
    evidence: tuple[tuple[str, tuple[float | None, ...]], ...]
    counted_until: str | None = None
    lag: float | None = None
    score_range: tuple[float, float] | None = None
    values: FloatArray | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether some test raised an alarm; unclear before anything is counted."""
        if self.alarm:
            return "problem"
        return "ok" if self.n_mature else "unclear"

    @property
    def sentence(self) -> str:
        """What was found, and how often that would be a false alarm."""
        chance = percent(round(1.0 - self.confidence_level, 12))
        sure = f"(false alarms, ever: at most {chance}, if {self._units} are independent)"
        if not self.alarm and not self.n_mature:
            return f"Nothing is known about drift yet: {self._seen} {sure}."
        if not self.alarm:
            return f"No sign of drift: {self._seen} {sure}."
        first = next(verdict for verdict in self.verdicts if verdict.alarm)
        fault = self._missing_labels(first)
        return f"{fault or first.finding_in_short} {sure}."

    @property
    def _units(self) -> str:
        """What the tests treat as independent: rows or days."""
        assumed = [text for verdict in self.verdicts for text in verdict.assumptions]
        return "days" if any(text.startswith("days") for text in assumed) else "rows"

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """What was counted, and by how much calibrated values can be off."""
        most = self.epsilon if self.path else None
        return (
            Quantity("Counted", self.n_mature, unit="prediction"),
            Quantity("With a label", self.n_labels),
            Quantity("Pending", self.n_pending),
            Quantity("Off by at most, without drift", most, high=most, unit="points"),
        )

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """What to do after an alarm; otherwise, keep watching."""
        if self.alarm:
            first = next(verdict for verdict in self.verdicts if verdict.alarm)
            fit = "Calibrator().fit(new_scores, new_y)"
            advice = NextStep(
                "Recalibrate on rows from after the change", fit, "fit new.csv -o model.json"
            )
            check = NextStep("Check that labels still come in, and the maturity")
            return (check, advice) if self._missing_labels(first) else (advice,)
        command = "watch {lines} --model {model} --store {store} --once"
        watching = "Keep watching: you can look as often as you like"
        return (NextStep(watching, "monitor.snapshot()", command),)

    def pictures(self) -> tuple[Picture, ...]:
        """The rate minus the prediction by date, with the alarm, and the evidence under it; rates
        and predictions by region; and epsilon after each day.
        """
        if not self.path:
            return ()
        days = [_date(step.day) for step in self.path]
        rules = tuple(
            ReferenceLine(f"alarm ({one.question})", _date(one.alarmed.at), is_upright=True)
            for one in self.verdicts
            if one.alarmed is not None and one.alarmed.at is not None
        )
        epsilon = Picture(
            "Is it still good enough?",
            "How far a calibrated value can be from the true rate, from all rows so far.",
            "date",
            "off by at most, points",
            (Drawn("bound", days, [step.epsilon for step in self.path], kind="line"),),
            rules,
            is_time=True,
            y_unit="points",
        )
        evidence = self._evidence(rules)
        if self.values is None:
            return (evidence, epsilon)
        return (self._drift(rules), evidence, self._reliability(), epsilon)

    def _reliability(self) -> Picture:
        """The rate of each region against its calibrated value, and what calibration guaranteed."""
        values = np.asarray(self.values)
        seen = np.flatnonzero(self.counts > 0)
        seen = seen[np.argsort(values[seen], kind="stable")]
        rates = Drawn(
            "rate in production, with limits that hold at every moment",
            values[seen].tolist(),
            (self.positives[seen] / self.counts[seen]).tolist(),
            self.lower[seen].tolist(),
            self.upper[seen].tolist(),
            titles=[in_words(self.regions[region]) for region in seen.tolist()],
        )
        order = np.argsort(values, kind="stable")
        bands: tuple[Drawn, ...] = ()
        if self.guaranteed is not None:
            low, high = (limit[order].tolist() for limit in self.guaranteed)
            at = values[order].tolist()
            bands = (Drawn("guaranteed by calibration", at, at, low, high, kind="band"),)
        text = (
            "The observed rate of each region since the store was made. The limits tighten as labels"
            " mature; they hold if rates do not change."
        )
        return Picture(
            "Rates and predictions",
            text,
            "calibrated probability",
            "rate",
            (*bands, rates),
            is_square=True,
        )

    def _evidence(self, rules: tuple[ReferenceLine, ...]) -> Picture:
        """The evidence of each test after each counted day, as a share of what raises an alarm."""
        drawn = []
        for place, name in enumerate(("rates", "guarantee", "scores")):
            path = [(_date(day), reached[place]) for day, reached in self.evidence]
            known = [(day, min(one, _BEYOND)) for day, one in path if one is not None]
            if known:
                reached_at, reached_by = zip(*known, strict=True)
                drawn.append(Drawn(name, reached_at, reached_by, kind="line"))
        text = (
            "The largest evidence so far, as a share of the evidence that raises an alarm, drawn up"
            f" to {_BEYOND:g}. If nothing changes, and the guarantee held in calibration, all tests"
            " together ever reach the line with a probability of at most"
            f" {percent(round(1.0 - self.confidence_level, 12))}."
        )
        alarm = ReferenceLine("alarm", 1.0)
        return Picture(
            "Evidence of a change",
            text,
            "date",
            "evidence, 1 = alarm",
            tuple(drawn),
            (alarm, *rules),
            is_time=True,
        )

    def _drift(self, rules: tuple[ReferenceLine, ...]) -> Picture:
        """The rate minus the prediction, over spans of days, with limits for each span."""
        ends = np.unique(np.linspace(0, len(self.path), _MOST_SPANS + 1).astype(int))
        rows, hits = (
            np.add.reduceat([getattr(step, name) for step in self.path], ends[:-1])
            for name in ("counts", "positives")
        )
        total = rows.sum(axis=1)
        seen = np.flatnonzero(total > 0)
        expected = (rows @ np.asarray(self.values))[seen] / total[seen]
        positives = hits.sum(axis=1)[seen]
        tail = _SPAN_ALPHA / 2.0
        low = lower_limit(positives.astype(np.int64), total[seen].astype(np.int64), tail)
        high = upper_limit(positives.astype(np.int64), total[seen].astype(np.int64), tail)
        drawn = Drawn(
            "observed rate minus average prediction, with 95% limits for each point",
            [_date(self.path[end - 1].day) for end in ends[1:][seen].tolist()],
            (positives / total[seen] - expected).tolist(),
            (low - expected).tolist(),
            (high - expected).tolist(),
        )
        text = (
            "The observed rate minus the average prediction. Each point has a 95% confidence"
            " interval of its own; the alarm comes from a test of all days."
        )
        no_drift = ReferenceLine("as predicted", 0.0)
        return Picture(
            "Rate minus prediction",
            text,
            "date",
            "rate minus prediction, points",
            (drawn,),
            (no_drift, *rules),
            is_time=True,
            y_unit="points",
        )

    @property
    def facts(self) -> dict[str, str]:
        """What a report says about the data."""
        return {
            "until": self.now or "",
            "counted until": self.counted_until or "",
            "maturity": self._age,
        }

    @property
    def share_expired(self) -> float:
        """The share of the labels that came after the age of maturity, too late to count."""
        return self.n_expired / max(self.n_expired + self.n_labels, 1)

    @property
    def has_late_labels(self) -> bool:
        """Whether the maturity looks too short for these labels, which alone can cause an alarm.

        With a maturity that was chosen, many labels may come later: a row that is not known to be
        positive by then counts as negative. But some label should come in time.
        """
        if self.maturity == 0.0:
            return self.share_expired > _FAULT
        return self.n_expired > 0 and self.n_labels == 0

    @property
    def _age(self) -> str:
        return "1 day" if self.maturity == 1.0 else f"{self.maturity:g} days"

    @property
    def _seen(self) -> str:
        known = f"{counted(self.n_mature, 'prediction')} counted, {self.n_labels:,} with a label"
        return f"{known}, {self.n_pending:,} pending"

    def _missing_labels(self, verdict: MonitorResult) -> str:
        """Whether labels are missing: a fault in their pipeline looks like a change."""
        if self.has_late_labels:
            return (
                f"{self.share_expired:.0%} of the labels came too late to count, which alone can"
                " cause an alarm"
            )
        start = "" if verdict.since is None or verdict.since.at is None else verdict.since.at
        earlier = _unknown_share([step for step in self.path if step.day <= start])
        later = _unknown_share([step for step in self.path if step.day > start])
        if later - earlier <= _FAULT:
            return ""
        return (
            f"Labels are missing for {later:.0%} of the rows since {start or 'the start'}"
            f" ({earlier:.0%} before) and count as negative, which alone can cause an alarm"
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the tests assume: first what several of them do, then what each does, by its name."""
        every = [said for verdict in self.verdicts for said in verdict.assumptions]
        shared = [said for said in dict.fromkeys(every) if every.count(said) > 1]
        own = [
            f"{verdict.question}: {said}"
            for verdict in self.verdicts
            for said in verdict.assumptions
            if said not in shared
        ]
        return (*shared, *own)

    @property
    def _on_expired(self) -> str:
        """What expired labels are, and what to do if there are many of them."""
        said = f"expired: labels that came after the age of maturity, {self._age}"
        if self.has_late_labels:
            said += (
                "; start a new store with a larger maturity, and calibrate with labels of that age"
            )
        return said

    @property
    def notes(self) -> tuple[str, ...]:
        """What each test found; days in quarantine; scores of another scale; what did not count."""
        found = [
            one.advice
            if one.finding_in_short in self.sentence
            else f"{one.finding_in_short}. {one.advice}"
            for one in self.verdicts
            if one.alarm
        ]
        found += [f"{one.calm}." for one in self.verdicts if not one.alarm and self.n_mature]
        if not self.n_mature:
            age = f" and it is {self._age} old" if self.maturity else ""
            found.append(f"A prediction is counted when its day (in UTC) is over{age}.")
        if self.path:
            found.append(
                "From these rows alone, calibrated values are now within"
                f" {points(upper(self.epsilon))} of the rates. With"
                f" {percent(self.confidence_level)} confidence, this holds at every moment with"
                " that moment's bound, if rates do not change; at first the bound is wide."
            )
        if self.quarantine:
            days = counted(len(self.quarantine), "day")
            first = self.quarantine[0]
            found.append(
                f"{days} could not be closed, and {counted(self.n_quarantined, 'prediction')} did"
                f" not count; the first is {first.day} ({first.problem}). The other days are not"
                " affected."
            )
        if self.n_unfamiliar and self.score_range is not None:
            n_rows = self.n_unfamiliar
            scores = counted(n_rows, "prediction has a score", "predictions have scores")
            counts = "counts" if n_rows == 1 else "count"
            found.append(
                f"{scores} far outside the range in calibration, {span(*self.score_range)}, and"
                f" {counts} in the outermost regions; check that both are on the same scale."
            )
        for number, what in (
            (
                self.n_conflicting,
                "conflicting: another score or label for the same id; the first one stays",
            ),
            (self.n_duplicate, "duplicate: submitted again; counted once"),
            (self.n_expired, self._on_expired),
            (self.n_late, "late: predictions for a day that was already counted"),
            (self.n_unknown, "unknown: labels whose prediction never arrived"),
            (self.n_unreadable, "unreadable: lines that were put into the quarantine file"),
            (self.n_waiting, "waiting: labels that came before their prediction"),
        ):
            if number:
                found.append(f"{number:,} {what}.")
        if self.n_until_scores:
            found.append(
                f"Scores are compared after {counted(self.n_until_scores, 'more prediction')}."
            )
        return tuple(found)

    def tables(self) -> tuple[ResultTable, ...]:
        """What has changed, the regions, the tests, the days, and those in quarantine."""
        regions: dict[str, Any] = {
            "region": list(self.regions),
            "n_rows": self.counts.tolist(),
            "n_positives": self.positives.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
        }
        tests = {
            "test": [one.question for one in self.verdicts],
            **_columns(self.verdicts, "alarm", "log_evidence", "log_threshold"),
            "alarmed": [one.alarmed and str(one.alarmed) for one in self.verdicts],
            "since": [one.since and str(one.since) for one in self.verdicts],
        }
        days = _columns(self.path, "day", "n_rows", "n_positives", "n_unknown", "epsilon")
        held = _columns(self.quarantine, "day", "n_rows", "problem")
        return (
            changes_table(self.verdicts, {"test": "question"}),
            ResultTable("tests", tests, ("test", "alarm", "alarmed", "since")),
            ResultTable("regions", regions, heads=_HEADS, units={"lower": "share"}),
            ResultTable("days", days, shown=()),
            ResultTable("quarantine", held, shown=()),
        )

    def to_dict(self) -> dict[str, Any]:
        """The snapshot as plain JSON values."""
        found = Result.to_dict(self)
        found["verdicts"] = [verdict.to_dict() for verdict in self.verdicts]
        return found


def _columns(found: Sequence[object], *names: str) -> dict[str, list[Any]]:
    """Attributes of several objects, by name."""
    return {name: [getattr(one, name) for one in found] for name in names}


def _date(day: str) -> float:
    """Days since 1970-01-01.

    >>> _date("1970-01-02T12:00:00")
    1.5
    """
    return float(np.datetime64(day, "s").astype(np.int64)) / 86_400.0


def _unknown_share(days: Sequence[CountedDay]) -> float:
    """The share of rows, over some days, whose label was not known in time."""
    rows = sum(step.n_rows for step in days)
    return sum(step.n_unknown for step in days) / max(rows, 1)
