"""The state of a monitor at one moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.monitor.change import CHANGE_HEADS, ON_CHANGES, MonitorResult
from calibrant.text.numbers import counted, percent, span, upper
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable

_CONDITION = "the assumptions of each test hold, above all that rows (or days) are independent"
_FAULT = 0.05  # excess share of missing labels that is reported with an alarm


@dataclass(frozen=True, slots=True, eq=False)
class EpsilonPath:
    """What was known at the end of a day.

    Attributes
    ----------
    day : str
        The day.
    counts, positives : int arrays of shape (n_regions,)
        Rows and positive rows of each region, over all days so far.
    n_rows, n_positives, n_unknown : int
        Rows of this day, positive rows, and rows whose label was not known in time.
    lower, upper : float arrays of shape (n_regions,)
        Limits on the rate of each region, which hold after every day simultaneously.
    epsilon : float
        The largest distance between a calibrated value and the rate of its region.
    """

    day: str
    counts: IntArray
    positives: IntArray
    n_rows: int
    n_positives: int
    n_unknown: int
    lower: FloatArray
    upper: FloatArray
    epsilon: float

    @classmethod
    def empty(cls, n_regions: int) -> Self:
        """The state before the first day."""
        nothing = np.zeros(n_regions, dtype=np.int64)
        return cls("", nothing, nothing, 0, 0, 0, np.zeros(n_regions), np.ones(n_regions), 1.0)


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
    path : tuple of EpsilonPath
        What was known after each day.
    counted_until : str or None
        The first day that has not been counted yet.
    lag : float or None
        The number of days since then.
    score_range : pair of float or None
        The smallest and largest score of calibration, if known.
    quarantine : tuple of HeldDay
        The days that could not be closed.
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
    path: tuple[EpsilonPath, ...]
    quarantine: tuple[HeldDay, ...]
    counted_until: str | None = None
    lag: float | None = None
    score_range: tuple[float, float] | None = None

    _also: ClassVar[tuple[str, ...]] = ("explanation",)

    @property
    def sentence(self) -> str:
        """What was found, and with what confidence."""
        chance = percent(1.0 - self.confidence_level)
        sure = (
            f"The probability that any test ever raises a false alarm is at most {chance}, if"
            f" {_CONDITION}."
        )
        if self.alarm:
            first = next(verdict for verdict in self.verdicts if verdict.alarm)
            missing = self._missing_labels(first)
            return f"Alarm. {first.finding_in_short}. {missing}{first.advice} {sure}"
        if not self.n_mature:
            return f"Nothing is known about drift yet: {self._seen}. {self._counted_when} {sure}"
        return f"No sign of drift: {self._seen}. {self._held}{sure}"

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
    def _counted_when(self) -> str:
        """When a prediction is counted."""
        if self.maturity == 0.0:
            return "A prediction is counted when its day (in UTC) is over."
        return f"A prediction is counted when its day (in UTC) is over and it is {self._age} old."

    @property
    def explanation(self) -> str:
        """After an alarm: the regions in which it is clearest, the other tests, and the counts."""
        if not self.alarm:
            return ""
        found = [verdict for verdict in self.verdicts if verdict.alarm]
        told = []
        if found[0].clearest:
            told.append(f"It is clearest in {found[0].clearest}")
        told.extend(verdict.finding_in_short for verdict in found[1:])
        told.extend(verdict.calm for verdict in self.verdicts if not verdict.alarm)
        told.append(f"So far {self._seen}")
        return ". ".join(told) + "."

    @property
    def _held(self) -> str:
        """What the counted rows alone prove about the calibrated values."""
        if not self.n_mature:
            return ""
        return (
            f"From these rows alone, calibrated values are now within {upper(self.epsilon)} of the"
            f" rates. With {percent(self.confidence_level)} confidence, this holds at every moment"
            " with that moment's bound, if rates do not change; at first the bound is wide. "
        )

    @property
    def _seen(self) -> str:
        known = f"{counted(self.n_mature, 'prediction')} counted, {self.n_labels:,} with a label"
        return f"{known}, {self.n_pending:,} pending"

    def _missing_labels(self, verdict: MonitorResult) -> str:
        """Whether labels are missing: a fault in their pipeline looks like a change."""
        if self.has_late_labels:
            return (
                f"But {self.share_expired:.0%} of the labels came after the age of maturity and"
                " count as negative, so check the maturity first. "
            )
        start = "" if verdict.since is None or verdict.since.at is None else verdict.since.at
        earlier = _unknown_share([step for step in self.path if step.day <= start])
        later = _unknown_share([step for step in self.path if step.day > start])
        if later - earlier <= _FAULT:
            return ""
        return (
            f"Labels are missing for {later:.0%} of the rows since then and for {earlier:.0%} before;"
            " they count as negative, so check first that labels still come in. "
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
        """Days in quarantine; scores of another scale; what did not count, and why."""
        found = []
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
        tests: dict[str, Any] = {
            "test": [verdict.question for verdict in self.verdicts],
            "alarm": [verdict.alarm for verdict in self.verdicts],
            "log_evidence": [verdict.log_evidence for verdict in self.verdicts],
            "log_threshold": [verdict.log_threshold for verdict in self.verdicts],
            "alarmed": [
                str(verdict.alarmed) if verdict.alarm else None for verdict in self.verdicts
            ],
            "since": [
                None if verdict.since is None else str(verdict.since) for verdict in self.verdicts
            ],
        }
        days: dict[str, Any] = {
            "day": [step.day for step in self.path],
            "n_rows": [step.n_rows for step in self.path],
            "n_positives": [step.n_positives for step in self.path],
            "n_unknown": [step.n_unknown for step in self.path],
            "epsilon": [step.epsilon for step in self.path],
        }
        held: dict[str, Any] = {
            "day": [one.day for one in self.quarantine],
            "n_rows": [one.n_rows for one in self.quarantine],
            "problem": [one.problem for one in self.quarantine],
        }
        return (
            ResultTable("regions", regions),
            ResultTable("tests", tests),
            ResultTable("changes", self._changes(), heads=CHANGE_HEADS, about=ON_CHANGES),
            ResultTable("days", days, shown=()),
            ResultTable("quarantine", held, shown=()),
        )

    def _changes(self) -> dict[str, Any]:
        """The findings of each test that raised an alarm, over all regions and by region."""
        found = [(verdict, change) for verdict in self.verdicts for change in verdict.changes]
        columns: dict[str, Any] = {
            "region": [change.name for _, change in found],
            "test": [verdict.question for verdict, _ in found],
            "n_rows": [change.rows for _, change in found],
        }
        for name in ("rate_before", "rate_since", "lower", "upper"):
            columns[name] = [getattr(change, name) for _, change in found]
        return columns

    def to_dict(self) -> dict[str, Any]:
        """The snapshot as plain JSON values."""
        found = Result.to_dict(self)
        found["verdicts"] = [verdict.to_dict() for verdict in self.verdicts]
        return found


def _unknown_share(days: Sequence[EpsilonPath]) -> float:
    """The share of rows, over some days, whose label was not known in time."""
    rows = sum(step.n_rows for step in days)
    return sum(step.n_unknown for step in days) / max(rows, 1)
