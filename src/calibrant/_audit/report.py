"""What an audit found, as plain numbers and as text."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import pandas
from calibrant._typing import BoolArray, FloatArray, IntArray

TOO_LOW, TOO_HIGH, NO_EVIDENCE = "scores too low", "scores too high", "no evidence"
_VACUOUS = 0.5
_LINES = 8  # findings that the text shows


@dataclass(frozen=True, slots=True)
class Finding:
    """Where the scores are proved wrong, and in which direction.

    Attributes
    ----------
    segment : object
        The group of rows; None for all rows.
    low, high : float
        Range of scores.
    direction : str
        "scores too low" or "scores too high".
    error : float
        By at least this much the score is off, somewhere in the range.
    count : int
        Rows in the range.
    mean_score, rate : float
        What the scores say of these rows, and what was observed.
    """

    segment: Any
    low: float
    high: float
    direction: str
    error: float
    count: int
    mean_score: float
    rate: float

    def __str__(self) -> str:
        where = f"{self.count:,} rows with scores from {self.low:.4g} to {self.high:.4g}"
        group = "" if self.segment is None else f" in segment {self.segment!r}"
        return (
            f"{self.direction} by at least {rounded_down(self.error)} somewhere among the {where}{group}: "
            f"mean score {self.mean_score:.4g}, observed rate {self.rate:.4g}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class AuditTable:
    """Every region of every resolution: what the scores say, what was observed, and what is proved.

    Attributes
    ----------
    segment : object array of shape (m,)
        The group of rows; None for all rows.
    resolution : int array of shape (m,)
        0 for all rows of the segment, and finer with every step.
    low, high : float arrays of shape (m,)
        Smallest and largest score of the region's rows.
    counts : int array of shape (m,)
        Rows.
    mean_score, rate : float arrays of shape (m,)
        Mean score, and share of positive labels.
    lower, upper : float arrays of shape (m,)
        Limits for the mean of E[Y | score] over these rows, valid for the whole table at once.
    error : float array of shape (m,)
        Certified distance between the mean score and that mean; 0 where nothing is proved.
    """

    segment: NDArray[np.object_]
    resolution: IntArray
    low: FloatArray
    high: FloatArray
    counts: IntArray
    mean_score: FloatArray
    rate: FloatArray
    lower: FloatArray
    upper: FloatArray
    error: FloatArray

    @property
    def verdict(self) -> tuple[str, ...]:
        """Per region "scores too low", "scores too high" or "no evidence"."""
        direction = np.where(self.mean_score < self.lower, TOO_LOW, TOO_HIGH)
        return tuple(np.where(self.error > 0.0, direction, NO_EVIDENCE).tolist())

    @property
    def is_finest(self) -> BoolArray:
        """Whether a region is of its segment's finest resolution."""
        changes = np.array([a is not b for a, b in zip(self.segment[1:], self.segment[:-1], strict=True)], dtype=bool)
        block = np.concatenate([[0], np.cumsum(changes)])
        finest = np.zeros(int(block[-1]) + 1, dtype=np.int64)
        np.maximum.at(finest, block, self.resolution)
        return np.asarray(self.resolution == finest[block])

    def finding(self, row: int) -> Finding:
        """What is proved of one region."""
        return Finding(
            self.segment[row],
            float(self.low[row]),
            float(self.high[row]),
            self.verdict[row],
            float(self.error[row]),
            int(self.counts[row]),
            float(self.mean_score[row]),
            float(self.rate[row]),
        )

    def to_frame(self) -> Any:
        """Return the table as a pandas frame, one row per region."""
        pd = pandas()
        names = (
            "segment",
            "resolution",
            "low",
            "high",
            "counts",
            "mean_score",
            "rate",
            "lower",
            "upper",
            "error",
            "verdict",
        )
        return pd.DataFrame({name: getattr(self, name) for name in names})


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """What is proved of a score's calibration, for every distribution, and what can not be known.

    All that is stated here holds together with probability at least `confidence_level` over the draw of the rows.

    Attributes
    ----------
    lower_bound : float
        The largest calibration error, sup |E[Y | score] - score|, is at least this; 0 where nothing is proved.
    average_lower_bound : float
        The average calibration error, E |E[Y | score] - score|, is at least this.
    upper_bound : float or None
        No score value that was seen is off by more than this; None where no such bound exists.
    upper_bound_reason : str or None
        Why there is no upper bound.
    unseen_mass : float or None
        Where there is an upper bound: score values that were not seen hold at most this share of the population.
    table : AuditTable
        Every region: count, mean score, observed rate, interval, verdict.
    findings : tuple of Finding
        The strongest finding of each segment where there is one, strongest first.
    confidence_level : float
        1 - alpha.
    n_rows : int
        Rows that were looked at.
    by_segment : bool
        Whether calibration within segments, E[Y | score, segment], was audited.
    assumptions : tuple of str
        What must be true for all this to hold.
    """

    lower_bound: float
    average_lower_bound: float
    upper_bound: float | None
    upper_bound_reason: str | None
    unseen_mass: float | None
    table: AuditTable
    findings: tuple[Finding, ...]
    confidence_level: float
    n_rows: int
    by_segment: bool
    assumptions: tuple[str, ...]

    @property
    def worst(self) -> Finding | None:
        """The strongest finding, which `lower_bound` rests on."""
        return self.findings[0] if self.findings else None

    @property
    def is_miscalibrated(self) -> bool:
        """Whether the scores are proved to be miscalibrated."""
        return self.lower_bound > 0.0

    @property
    def verdict(self) -> str:
        """Which of three things is known: proved wrong, proved nearly right, or neither."""
        if self.is_miscalibrated:
            return f"proved miscalibrated by at least {rounded_down(self.lower_bound)}"
        if self.upper_bound is not None and self.upper_bound < _VACUOUS:
            return f"proved within {rounded_up(self.upper_bound)} (finitely many scores)"
        return NO_EVIDENCE

    def __str__(self) -> str:
        lines = [f"{self.verdict}, with {100 * self.confidence_level:.6g}% confidence, from {self.n_rows:,} rows"]
        lines += [f"  {finding}" for finding in self.findings[:_LINES]]
        if len(self.findings) > _LINES:
            lines.append(f"  and findings in {len(self.findings) - _LINES} more segments")
        if self.average_lower_bound > 0.0:
            lines.append(f"  on average off by at least {rounded_down(self.average_lower_bound)}")
        if self.upper_bound is None:
            lines.append(f"  no upper bound: {self.upper_bound_reason}")
        else:
            seen = f"values not seen hold at most {rounded_up(self.unseen_mass or 0.0)} of the population"
            lines.append(f"  no score value that was seen is off by more than {rounded_up(self.upper_bound)}; {seen}")
        return "\n".join(lines)


def rounded_down(value: float) -> str:
    """Two significant digits, never above the value: a lower bound stays one."""
    return _rounded(value, math.floor)


def rounded_up(value: float) -> str:
    """Two significant digits, never below the value: an upper bound stays one."""
    return _rounded(value, math.ceil)


def _rounded(value: float, towards: Any) -> str:
    if value <= 0.0:
        return "0"
    digits = 1 - math.floor(math.log10(value))
    return f"{towards(value * 10**digits) / 10**digits:.{digits}f}"
