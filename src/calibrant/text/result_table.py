"""The table of a result: plain columns for programs, and text for people."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calibrant.text.numbers import (
    limits,
    lower,
    nearest,
    per_cent,
    per_cent_limits,
    plain,
    points,
    points_limits,
    upper,
)
from calibrant.text.sentences import TextTable, in_words

_LOWER = "lower"
_UPPER = "upper"
_SHARE = "share"
_NO_LIMIT = "no limit derived"
_POINTS = "points"
_AT_LEAST = (_LOWER, "error")
_AT_MOST = (_UPPER, "epsilon", "radius", "p_value", "claimed")


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of a result: its name, and its columns in order.

    Attributes
    ----------
    name : str
        What the rows are, such as "regions"; the key of the table in `Result.to_dict`.
    columns : mapping from str to sequence or array
        Plain numbers and text. All columns have the same length. Names of lower bounds end in
        "lower" or "error", names of upper bounds in "upper", "epsilon", "radius", "claimed" or
        "p_value"; names of counts begin with "n_".
    shown : tuple of str, optional
        The columns that people see; the others are for programs. Default: all of them. If empty,
        text omits the table, and a notebook shows it only if there is no other.
    heads : mapping from str to str
        The header of a column, if it is not the name without underscores. For limits shown in one
        column, the key is the name of the lower limit.
    about : str
        How to read the table: a sentence printed below it.
    units : mapping from str to {"share", "points"}
        The columns that people read in per cent, or in percentage points. For limits shown in one
        column, the key is the name of the first.

    Examples
    --------
    >>> columns = {"region": ["low", "high"], "n_rows": [1500, 20], "lower": [0.1004, 0.5],
    ...     "upper": [0.1996, 0.9]}
    >>> table = ResultTable("regions", columns)
    >>> table.to_dicts()[1]
    {'region': 'high', 'n_rows': 20, 'lower': 0.5, 'upper': 0.9}
    >>> print(table)
    region   rows      limits
    low     1,500  0.1 to 0.2
    high       20  0.5 to 0.9
    """

    name: str
    columns: Mapping[str, Any]
    shown: tuple[str, ...] | None = None
    heads: Mapping[str, str] = field(default_factory=dict)
    about: str = ""
    units: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain object for each row."""
        lists = [
            column.tolist() if hasattr(column, "tolist") else list(column)
            for column in self.columns.values()
        ]
        values = [plain(column) for column in lists]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)]

    def text(
        self, name_of: Callable[[str], str] = in_words, *, most: int | None = None
    ) -> TextTable:
        """The columns for people, as text.

        `name_of` may shorten or escape text that comes from the data. By default, score ranges have
        their names for people; with `str`, they have their exact edges.

        Numbers are rounded to the nearest and limits outwards. A column "lower" and the next,
        "upper", are merged into one, and so are three columns such as "recall", "recall_lower" and
        "recall_upper". With more than `most` rows, the middle is left out, unless the table has one
        row too many: a line that says so would save nothing.
        """
        first, left_out, last = self._ends(most)
        heads: list[str] = []
        columns: list[list[str]] = []
        for names in _groups(list(self.shown or self.columns)):
            head = names[0]
            values = [plain_values(self.columns[name]) for name in names]
            rows = list(zip(*values, strict=True))
            if len(names) == 2 and rows and all(None in row for row in rows):
                continue  # nothing has limits
            heads.append(self.heads.get(head, _head(head)))
            shown_rows = (*rows[:first], *rows[len(rows) - last :])
            unit = self.units.get(head, "")
            cells = [_cells_in_one(head, row, name_of, unit) for row in shown_rows]
            if left_out:
                cells.insert(first, "" if columns else f"... {left_out:,} more")
            columns.append(cells)
        return TextTable(heads, [*zip(*columns, strict=True)])

    def _ends(self, most: int | None) -> tuple[int, int, int]:
        """How many rows are shown at the start, how many are left out, and how many are shown at
        the end.
        """
        if most is None or len(self) <= most + 1:
            return len(self), 0, 0
        last = most // 2
        return most - last, len(self) - most, last

    def __str__(self) -> str:
        heads, rows = self.text()
        return aligned([heads, *rows])


def columns_by_name(items: Sequence[Any], names: Iterable[str]) -> dict[str, list[Any]]:
    """The named attributes of several objects, as columns."""
    return {name: [getattr(one, name) for one in items] for name in names}


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Align lines of cells: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_aligned(line, widths) for line in lines)


def _cells_in_one(name: str, row: Sequence[Any], name_of: Callable[[str], str], unit: str) -> str:
    """The text of a value, its limits, or both."""
    first = cell(name, row[0], name_of, unit)
    if len(row) == 1:
        return first
    if any(value is None or math.isnan(value) for value in row):
        return first if len(row) == 3 else ""
    is_open = len(row) == 3 and share_limits(row[1], row[2]) == _NO_LIMIT
    if unit == _SHARE and not is_open:
        low_and_high = per_cent_limits(*row[-2:])
    elif unit == _POINTS and len(row) == 2:
        low_and_high = points_limits(*row)
    elif len(row) == 2:
        low_and_high = limits(*row)
    else:
        low_and_high = share_limits(row[1], row[2])
    return low_and_high if len(row) == 2 else f"{first} ({low_and_high})"


def _groups(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """The names of columns that are shown as one."""
    place = 0
    while place < len(names):
        size = _together(names[place : place + 3])
        yield names[place : place + size]
        place += size


def _together(names: Sequence[str]) -> int:
    """How many of the first columns are shown as one."""
    first = names[0]
    if list(names[1:3]) == [f"{first}_{_LOWER}", f"{first}_{_UPPER}"]:
        return 3
    stem = first.removesuffix(_LOWER)
    return 2 if stem != first and list(names[1:2]) == [stem + _UPPER] else 1


def _head(name: str) -> str:
    """The header for a column name.

    >>> _head("n_rows"), _head("mean_score"), _head("auc_lower"), _head("lower"), _head("e_value")
    ('rows', 'mean score', 'auc limits', 'limits', 'e-value')
    """
    words = name.removeprefix("n_").removesuffix(_LOWER)
    if words != name.removeprefix("n_"):
        words += "limits"
    return words.replace("e_value", "e-value").replace("p_value", "p-value").replace("_", " ")


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first = line[0].ljust(widths[0])
    others = [text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True)]
    return "  ".join([first, *others]).rstrip()


def plain_values(column: Sequence[Any]) -> list[Any]:
    """A column as Python values; infinite numbers are kept."""
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    return [value.item() if hasattr(value, "item") else value for value in values]


def share_limits(low: float, high: float) -> str:
    """Limits on a share; a trivial limit is left out.

    >>> share_limits(0.9, 1.0), share_limits(0.0, 0.2), share_limits(0.1, 0.2), share_limits(0.0, 1.0)
    ('at least 0.9', 'at most 0.2', '0.1 to 0.2', 'no limit derived')
    """
    open_low = not low > 0.0
    open_high = not high < 1.0
    if open_low and open_high:
        return _NO_LIMIT
    if open_low:
        return f"at most {upper(high)}"
    return f"at least {lower(low)}" if open_high else limits(low, high)


def cell(name: str, value: object, name_of: Callable[[str], str] = in_words, unit: str = "") -> str:
    """A cell of the named column: limits are rounded outwards, other numbers to the nearest.

    >>> cell("lower", 0.5419), cell("upper", 0.5411), cell("estimate", 0.5419), cell("n_rows", 1500)
    ('0.541', '0.542', '0.542', '1,500')
    >>> cell("alarm", True), cell("time", None), cell("rate", 0.125, unit="share")
    ('yes', '', '12.5%')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return name_of(value if isinstance(value, str) else str(value))
    if math.isnan(value):
        return ""
    rounded = nearest(value)
    if name.endswith(_AT_LEAST):
        rounded = lower(value)
    elif name.endswith(_AT_MOST):
        rounded = upper(value)
    return {_SHARE: per_cent, _POINTS: points}.get(unit, str)(rounded)
