"""What an alarm reports: which regions, since about when, how large the change is, and what to do
next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.limits.interval import Interval
from calibrant.params.declared_state import Saved
from calibrant.params.kind import EntryTable
from calibrant.params.rules import TEXT, Integer
from calibrant.params.state_kinds import Maybe
from calibrant.text.numbers import counted, nearest, per_cent, percent
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable

_CLEAR = 3.3  # standard deviations from which on a region is named
_HEADS = {
    "rate_before": "before",
    "rate_since": "since",
    "lower": "difference, guaranteed",
}
_UNITS = {"rate_before": "share", "rate_since": "share", "lower": "points"}
_ON_CHANGES = "Difference: the rate since minus the rate before."


@dataclass(frozen=True, slots=True)
class Moment(Saved):
    """A place in the stream.

    Attributes
    ----------
    batch : int
        The number of batches, or units, before it.
    rows : int
        The number of rows before it.
    at : str or None
        The time of the latest row before it, if times are known.
    """

    _entries: ClassVar[EntryTable] = {
        "batch": Integer(0),
        "rows": Integer(0),
        "at": Maybe(TEXT),
    }

    batch: int
    rows: int
    at: str | None = None

    def __str__(self) -> str:
        return self.at if self.at is not None else f"row {self.rows:,}"


@dataclass(frozen=True, slots=True)
class Change:
    """What has changed in a region since a moment, or over all regions.

    Attributes
    ----------
    region : int or None
        The index of the region; None for all regions together.
    name : str
        Its name in the partition.
    rows : int
        The number of rows since then; over all regions, without regions that had no rows before.
    rate_before, rate_since : float
        Observed rates before and since. Over all regions, `rate_before` is the earlier rate for the
        mix of these rows.
    lower, upper : float or None
        Limits on the difference: for a region, on the rate since minus the rate before; over all
        regions, on the rate since minus the observed `rate_before`. None if there are no limits.
    """

    region: int | None
    name: str
    rows: int
    rate_before: float
    rate_since: float
    lower: float | None
    upper: float | None

    @property
    def difference(self) -> float:
        """The rate since minus the rate before."""
        return self.rate_since - self.rate_before

    def __str__(self) -> str:
        before, since = (per_cent(nearest(rate)) for rate in (self.rate_before, self.rate_since))
        return f"{since} instead of {before} in {counted(self.rows, 'row')}"


def compared_rates(
    before: tuple[IntArray, IntArray], since: tuple[IntArray, IntArray]
) -> tuple[int, float, float] | None:
    """Number of rows since, the earlier rate for their mix, and their rate, from rows and hits per
    region.

    Regions without earlier rows have no earlier rate and are left out; None if no row is left.

    >>> import numpy as np
    >>> compared_rates(
    ...     (np.array([100, 0]), np.array([20, 0])), (np.array([50, 70]), np.array([20, 70]))
    ... )
    (50, 0.2, 0.4)
    """
    known = before[0] > 0
    rows = since[0][known]
    n_rows = int(rows.sum())
    if n_rows == 0:
        return None
    expected = float(rows @ (before[1][known] / before[0][known]))
    return n_rows, expected / n_rows, float(since[1][known].sum()) / n_rows


def clear_changes(
    names: Sequence[str],
    clarity: FloatArray,
    known: BoolArray,
    rows: IntArray,
    before: tuple[FloatArray, Interval],
    since: tuple[FloatArray, Interval],
) -> tuple[Change, ...]:
    """The known regions that have clearly changed, or the one that comes closest: their rows since,
    and for both times their rates, with limits.
    """
    order = np.argsort(-np.abs(clarity), kind="stable")
    order = order[known[order]].tolist()
    chosen = [region for region in order if abs(clarity[region]) >= _CLEAR] or order[:1]
    return tuple(
        Change(
            region=region,
            name=names[region],
            rows=int(rows[region]),
            rate_before=float(before[0][region]),
            rate_since=float(since[0][region]),
            lower=float(since[1].lower[region] - before[1].upper[region]),
            upper=float(since[1].upper[region] - before[1].lower[region]),
        )
        for region in chosen
    )


def changes_table(tests: Sequence["MonitorResult"], more: Mapping[str, str]) -> ResultTable:
    """What tests found to have changed, over all regions and by region; `more` names fields of the
    tests, by column.
    """
    found = [(test, change) for test in tests for change in test.changes]
    columns: dict[str, Any] = {"region": [change.name for _, change in found]}
    for column, name in more.items():
        columns[column] = [getattr(test, name) for test, _ in found]
    columns["n_rows"] = [change.rows for _, change in found]
    for name in ("rate_before", "rate_since", "lower", "upper"):
        columns[name] = [getattr(change, name) for _, change in found]
    return ResultTable("changes", columns, heads=_HEADS, about=_ON_CHANGES, units=_UNITS)


@dataclass(frozen=True, slots=True, repr=False)
class MonitorResult(Result):
    """What a monitor has found so far.

    Attributes
    ----------
    question : str
        What it tests, such as "rates".
    alarm : bool
        Whether it has ever raised an alarm.
    confidence_level : float
        Probability that it never raises a false alarm.
    log_evidence : float
        The largest evidence so far; the alarm is raised at `log_threshold`.
    log_threshold : float
        The logarithm of 1 / (1 - confidence_level).
    n_rows : int
        The number of counted rows.
    calm, finding, advice : str
        The message without an alarm, the message with one, and what to do then.
    alarmed : Moment or None
        When the alarm was raised.
    since : Moment or None
        The most likely time at which the change began.
    changes : tuple of Change
        What has changed, over all regions first.
    assumptions : tuple of str
        The assumptions behind the probability of a false alarm.
    notes : tuple of str
        What else a reader should know.
    """

    question: str
    alarm: bool
    confidence_level: float
    log_evidence: float
    log_threshold: float
    n_rows: int
    calm: str
    finding: str
    advice: str
    alarmed: Moment | None
    since: Moment | None
    changes: tuple[Change, ...]
    assumptions: tuple[str, ...] = field()
    notes: tuple[str, ...] = field()

    @property
    def verdict(self) -> Verdict:
        """Whether an alarm was raised."""
        return "problem" if self.alarm else "ok"

    @property
    def sentence(self) -> str:
        """What was found, and how often that would be a false alarm."""
        chance = percent(round(1.0 - self.confidence_level, 12))
        assumed = f", if {self.assumptions[0]}" if self.assumptions else ""
        sure = f"(false alarms, ever: at most {chance}{assumed})"
        if not self.alarm:
            return f"{self.calm} in {counted(self.n_rows, 'row')} {sure}."
        return f"{self.finding_in_short} {sure}."

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The rows, and the chance of a false alarm."""
        return (
            Quantity("Counted", self.n_rows, unit="row"),
            Quantity("False alarms, at most", round(1.0 - self.confidence_level, 12), unit="share"),
        )

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """What to do after an alarm."""
        return (NextStep(self.advice),) if self.alarm else ()

    @property
    def finding_in_short(self) -> str:
        """What was found, since when, and how large it is over all regions; without a full stop."""
        since = "" if self.since is None else f" since about {self.since}"
        size = f": {self.changes[0]}" if self.changes else ""
        return f"{self.finding}{since}{size}"

    def tables(self) -> tuple[ResultTable, ...]:
        """What has changed, one row for all regions and one for each region that is named."""
        return (changes_table([self], {}),)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON values."""
        found = Result.to_dict(self)
        found["alarmed"] = None if self.alarmed is None else self.alarmed.to_dict()
        found["since"] = None if self.since is None else self.since.to_dict()
        return found
