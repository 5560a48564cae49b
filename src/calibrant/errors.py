"""The errors that calibrant raises on purpose, and their fields.

An error says which parameter breaks which rule, what was found instead, and what to do. These are
fields, so that a program can act on them and the command line can phrase them in its own terms. No
text is ever parsed.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

from calibrant.text.sentences import PlainText, Setting, Text, in_python, render


@dataclass(eq=False, repr=False)
class CalibrantError(Exception):
    """Base class of every error that calibrant raises on purpose.

    Parameters
    ----------
    parameter : str or None
        The parameter, or another subject for a sentence with "must", such as "the model file". For
        a column of data, its role: "score", "label", "segment", "weight" or "id". None if `rule` is
        the whole message.
    rule : str or Text
        What the parameter must be or do: the words after "must". Without a parameter, the whole
        message.
    got : str, optional
        What was found instead.
    advice : str or Text, optional
        What to do about it, as a clause that starts with a verb.
    column : str, optional
        The column of the user's data, if the parameter is the role of a column.

    Examples
    --------
    >>> error = InvalidValueError("n_bins", "be an int >= 1", got="0", advice=("leave ",
    ...     Setting("n_bins"), " out"))
    >>> print(error)
    n_bins must be an int >= 1; got 0: leave n_bins out
    >>> error.parameter, error.got
    ('n_bins', '0')
    """

    parameter: str | None
    rule: Text
    got: str | None = None
    advice: Text | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        # pickle needs these arguments: errors come back from workers
        super().__init__(self.parameter, self.rule, self.got, self.advice, self.column)

    def __str__(self) -> str:
        return self.message()

    def message(self, setting: PlainText = in_python) -> str:
        """The error as one line; `setting` says how a parameter and its value are written."""
        rule = render(self.rule, setting)
        if self.parameter is None:
            said = rule
        elif self.column is None:
            said = f"{setting(Setting(self.parameter))} must {rule}"
        else:
            said = f"{self.parameter} column {self.column!r} must {rule}"
        if self.got is not None:
            said += f"; got {render(self.got, setting)}"
        return said if self.advice is None else f"{said}: {render(self.advice, setting)}"


class CalibrantWarning(UserWarning):
    """An answer is given, but it may not be what was meant."""


class WeakGuaranteeWarning(CalibrantWarning):
    """The guarantee says little: epsilon is 0.25 or more, or it has no subgroups."""


class GroupCapWarning(CalibrantWarning):
    """Large groups count as fewer rows than they have, and that changes the answer.

    The result is about rows where a group counts up to a cap, which was fixed by pilot groups.
    Among all rows, counted in full, the figure lies outside the limits.
    """


class PooledSegmentsWarning(CalibrantWarning):
    """Segments with few rows share their regions, so the guarantee is about them together.

    Attributes
    ----------
    segments : tuple
        The names of these segments.
    """

    def __init__(self, message: str, segments: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.segments = segments


class InvalidValueError(CalibrantError, ValueError):
    """A value breaks a stated rule."""


class InvalidTypeError(CalibrantError, TypeError):
    """An object is of a kind that cannot be used here."""


class NotTakenError(InvalidValueError):
    """The data have weights, groups or segments that cannot be used here; the rule says why."""


class NoTableError(InvalidTypeError):
    """A calibrator has no table: its answer is not given by bins or a curve of one score, perhaps
    within segments.
    """


_BINNING = Setting("method", "binning", python="BinningCalibrator()")


def no_table(got: str, advice: Text | None = None) -> NoTableError:
    """The error that every export of a table raises: SQL, ONNX, Python, and engines that run SQL.

    >>> print(no_table("SubgroupCalibrator"))  # doctest: +ELLIPSIS
    calibrator must have a table: bins or a curve of one score; got SubgroupCalibrator: use ...
    """
    rule = "have a table: bins or a curve of one score"
    usual = ("use ", _BINNING, ", which predicts one value for each bin")
    return NoTableError("calibrator", rule, got, usual if advice is None else advice)


class StoreError(CalibrantError, RuntimeError):
    """A store could not be read or written: it is locked, full, read-only or damaged.

    Nothing was half written.
    """


def warn_caller(
    message: str | CalibrantWarning, category: type[CalibrantWarning] = CalibrantWarning
) -> None:
    """Issue a warning that points to the line that called calibrant.

    A message that is already a warning has its own category.
    """
    frame = sys._getframe(1)
    level = 2
    while (
        frame.f_back is not None
        and str(frame.f_globals.get("__name__")).partition(".")[0] == "calibrant"
    ):
        frame = frame.f_back
        level = level + 1
    warnings.warn(message, category, stacklevel=level)
