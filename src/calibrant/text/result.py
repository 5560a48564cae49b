"""What every answer has in common: a sentence, its assumptions, its tables, and all of it as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from calibrant.text.numbers import lower, nearest, plain, upper

_ROWS_SHOWN = 10  # of a table in a notebook


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of a result: its name, and its columns in order.

    Attributes
    ----------
    name : str
        What the rows are, such as "regions".
    columns : mapping from str to sequence
        All columns have the same length.
    """

    name: str
    columns: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        """How many rows it has."""
        return len(next(iter(self.columns.values()), ()))

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain object for each row."""
        values = [plain(column) for column in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)]


class Result:
    """An answer. A subclass gives `sentence`, and whatever else it knows.

    `print` shows the sentence, the assumptions and the notes. A notebook shows the sentence and the first table.
    """

    __slots__ = ()

    @property
    def sentence(self) -> str:
        """The answer in one sentence, with the assumption that it rests on."""
        raise NotImplementedError

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the answer takes for granted."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a reader should know, such as rows that were skipped."""
        return ()

    @property
    def details(self) -> str:
        """The whole answer as text: the sentence, the assumptions and the notes."""
        parts = [self.sentence]
        if self.assumptions:
            parts.append("Assumptions: " + "; ".join(self.assumptions) + ".")
        parts.extend(self.notes)
        return "\n".join(parts)

    def tables(self) -> tuple[ResultTable, ...]:
        """The numbers behind the answer, the most important table first."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON values."""
        found: dict[str, Any] = {
            "sentence": self.sentence,
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
        }
        found.update({table.name: table.to_dicts() for table in self.tables()})
        return found

    def to_frame(self) -> Any:
        """The first table as a frame of pandas; of Polars or pyarrow where pandas is not installed."""
        tables = self.tables()
        columns = {name: list(column) for name, column in tables[0].columns.items()} if tables else {}
        return frame_of(columns)

    def __str__(self) -> str:
        return self.details

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentence and a small table."""
        parts = [f"<p>{escape(self.sentence)}</p>"]
        parts.extend(_html(table) for table in self.tables()[:1])
        return "\n".join(parts)


def frame_of(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Columns as a frame of pandas, else of Polars, else as a table of pyarrow."""
    if find_spec("pandas") is not None:
        return import_module("pandas").DataFrame(columns)
    if find_spec("polars") is not None:
        return import_module("polars").DataFrame(columns)
    return import_module("pyarrow").table(dict(columns))


def _html(table: ResultTable) -> str:
    heads = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = [
        "<tr>" + "".join(f"<td>{escape(_shown(name, value))}</td>" for name, value in row.items()) + "</tr>"
        for row in table.to_dicts()[:_ROWS_SHOWN]
    ]
    left = len(table) - len(rows)
    more = f"<p>and {left:,} more</p>" if left > 0 else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>{more}"


def _shown(name: str, value: object) -> str:
    """A value of the column of this name: limits are rounded outwards, other numbers to the nearest.

    >>> _shown("lower", 0.5419), _shown("upper", 0.5411), _shown("estimate", 0.5419)
    ('0.541', '0.542', '0.542')
    """
    if not isinstance(value, float):
        return "" if value is None else str(value)
    if name.startswith("lower"):
        return lower(value)
    return upper(value) if name.startswith(("upper", "epsilon")) else nearest(value)
