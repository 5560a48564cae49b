"""The key numbers of a result, and what to do next with it."""

from dataclasses import dataclass
from typing import Any

from calibrant.text.numbers import (
    counted,
    limits,
    lower,
    nearest,
    per_cent,
    per_cent_limits,
    plain,
    points,
    upper,
)
from calibrant.text.sentences import joined, words


@dataclass(frozen=True, slots=True)
class Quantity:
    """A key number of a result, in decimals; its text is for people.

    Attributes
    ----------
    name : str
        What it is, such as "Off by at most".
    value : float, int or None
        The number; None if there is none, as for a bound that does not exist.
    low, high : float or None
        Confidence limits of an estimate. If `value` is itself a bound, it is also `low` or `high`,
        and the text is rounded so that it stays true.
    unit : str
        "share" for a rate, in per cent for people; "points" for a difference of rates; "p" for a
        p-value; "" for a plain number; any other word is the noun of what is counted; "of 83"
        follows the number as it is.

    Examples
    --------
    >>> str(Quantity("Off by at most", 0.0241, high=0.0241, unit="points"))
    '2.5 points'
    >>> str(Quantity("Rate", 0.798, 0.761, 0.8356, unit="share"))
    '79.8% (76.1 to 83.6%)'
    >>> str(Quantity("Counted", 42_029, unit="row")), str(Quantity("Bound", None))
    ('42,029 rows', 'no bound')
    """

    name: str
    value: float | int | None
    low: float | None = None
    high: float | None = None
    unit: str = ""

    def __str__(self) -> str:
        value = self.value
        if value is None:
            return "no bound"
        if isinstance(value, int):
            if not self.unit or self.unit.startswith("of "):
                return f"{value:,} {self.unit}".strip()
            return counted(value, self.unit)
        rounded = nearest(value)
        if self.low == value != self.high:
            rounded = lower(value)
        elif self.high == value != self.low:
            rounded = upper(value)
        if self.unit == "points":
            return points(rounded)
        text = per_cent(rounded) if self.unit == "share" else rounded
        if self.low is None or self.high is None:
            return text
        written = per_cent_limits if self.unit == "share" else limits
        return f"{text} ({written(self.low, self.high)})"

    def to_dict(self) -> dict[str, Any]:
        """The number and its limits as plain JSON values."""
        values = {"name": self.name, "value": self.value, "low": self.low, "high": self.high}
        return {**plain(values), "unit": self.unit}


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do next, and how to do it in Python and on the command line.

    Attributes
    ----------
    what : str
        What to do, and why.
    call : str
        The call in Python.
    command : str
        The command, without "calibrant" and with placeholders: {rows} for the data and their
        columns, {data} for the data alone, {time} for its option of times, {model} for the model
        file, and {lines} and {store} for what a monitor reads and where it counts. If empty, the
        command line shows the call.
    """

    what: str
    call: str = ""
    command: str = ""

    @property
    def in_python(self) -> str:
        """One line for Python users.

        >>> NextStep("Calibrate new scores", "calibrator.predict(scores)").in_python
        'Calibrate new scores: calibrator.predict(scores)'
        """
        return words(joined(self.what, f": {self.call}")) if self.call else self.what

    def to_dict(self) -> dict[str, str]:
        """The three texts by name."""
        return {"what": self.what, "call": self.call, "command": self.command}
