"""What an alarm reports: which regions, since about when, how large the change is, and what to do
next.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from calibrant._typing import IntArray
from calibrant.params.declared_state import Saved
from calibrant.params.kind import EntryTable
from calibrant.params.rules import TEXT, Integer
from calibrant.params.state_kinds import Maybe
from calibrant.text.numbers import counted, limits, nearest, percent
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable

CHANGE_HEADS = {"lower": "difference lies in"}
ON_CHANGES = "Difference: the rate since minus the rate before."


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
        regions, on the rate since minus the observed `rate_before`. None if no limits are proved.
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
        said = f"{self.name}: {nearest(self.rate_since)} instead of {nearest(self.rate_before)}"
        if self.lower is None or self.upper is None:
            return said
        return f"{said} (difference {limits(self.lower, self.upper)})"


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
    def sentence(self) -> str:
        """What was found, with what confidence, and under which assumption."""
        chance = percent(1.0 - self.confidence_level)
        condition = ", and ".join(self.assumptions)
        if not self.alarm:
            seen = f"after {counted(self.n_rows, 'row')}"
            return (
                f"{self.calm}, {seen}; the probability of ever raising a false alarm is at most"
                f" {chance}, if {condition}."
            )
        sure = (
            f"Without a change, the probability of ever raising an alarm is at most {chance}, if"
            f" {condition}."
        )
        more = f"; {self.clearest}" if self.clearest else ""
        return f"{self.finding_in_short}{more}. {sure} {self.advice}"

    @property
    def clearest(self) -> str:
        """The regions in which a change is clearest, at most three; empty if there are none."""
        return "; ".join(str(change) for change in self.changes[1:4])

    @property
    def finding_in_short(self) -> str:
        """What was found, since when, and how large it is over all regions; without a full stop."""
        since = "" if self.since is None else f", since about {self.since}"
        size = f": {self.changes[0]}" if self.changes else ""
        return f"{self.finding}{since}{size}"

    def tables(self) -> tuple[ResultTable, ...]:
        """What has changed, one row for all regions and one for each region that is named."""
        columns: dict[str, list[Any]] = {"region": [change.name for change in self.changes]}
        columns["n_rows"] = [change.rows for change in self.changes]
        for name in ("rate_before", "rate_since", "lower", "upper"):
            columns[name] = [getattr(change, name) for change in self.changes]
        return (ResultTable("changes", columns, heads=CHANGE_HEADS, about=ON_CHANGES),)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON values."""
        found = Result.to_dict(self)
        found["alarmed"] = None if self.alarmed is None else self.alarmed.to_dict()
        found["since"] = None if self.since is None else self.since.to_dict()
        return found
