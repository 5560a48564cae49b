"""What every answer has in common: a sentence, its assumptions, its tables, and all of it as data."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from importlib import import_module
from importlib.util import find_spec
from textwrap import shorten
from typing import Any, ClassVar

from calibrant.text.numbers import plain
from calibrant.text.result_table import ResultTable, aligned

_ROWS_SHOWN = 10  # of a table in a notebook
_ROWS_PRINTED = 24
_SHORT = 100  # characters of the sentence in a repr


class Result:
    """An answer. What a subclass must give is `sentence`; what it may give is `assumptions`, `notes` and `tables`.

    All the rest follows: `details`, `to_dict`, `to_frame`, and what `print`, a notebook, the command line and reports
    show. A subclass is a frozen dataclass without a repr of its own:
    ``@dataclass(frozen=True, slots=True, repr=False)``. Fields that are numbers, text, or results are in
    `to_dict` by their names; columns belong in a table. `assumptions` may be a field: then write
    ``assumptions: tuple[str, ...] = field()``, because a dataclass takes the property of this class for a default.
    A dataclass with slots cannot call ``super()``: call ``Result.to_dict(self)``.

    A sentence may name a parameter, which the command line writes as an option: `calibrant.text.sentences.words` makes
    a text of parts, and `render` says it in other words.
    """

    __slots__ = ()

    _also: ClassVar[tuple[str, ...]] = ()
    """Properties that `to_dict` gives too, such as "verdict"."""

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
        """What else a reader should know, such as rows that were skipped; each a sentence."""
        return ()

    @property
    def details(self) -> str:
        """The whole answer as text: the sentence, the tables, the assumptions and the notes."""
        parts = [self.sentence]
        for table in self.tables():
            if len(table) and table.shown != ():
                parts.extend(("", printed(table), *([table.about] if table.about else []), ""))
        if self.assumptions:
            parts.append("Assumptions: " + "; ".join(self.assumptions) + ".")
        parts.extend(self.notes)
        return "\n".join(parts).strip("\n")

    def tables(self) -> tuple[ResultTable, ...]:
        """The numbers behind the answer, the most important table first."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON values: the sentence, single values by their names, and a list for each table."""
        found: dict[str, Any] = {
            "sentence": self.sentence,
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
        }
        for name, value in self._values().items():
            found.setdefault(name, value)
        found.update({table.name: table.to_dicts() for table in self.tables()})
        return found

    def _values(self) -> dict[str, Any]:
        """Fields, and properties of `_also`, that are one plain value or a result."""
        own: list[str] = [field.name for field in fields(self)] if is_dataclass(self) else []
        found = {}
        for name in (*own, *self._also):
            value = getattr(self, name)
            if isinstance(value, Result):
                found[name] = value.to_dict()
            elif is_single(value):
                found[name] = plain(value)
        return found

    def to_frame(self) -> Any:
        """The first table as a frame of pandas; of Polars or pyarrow where pandas is not installed.

        Without a table, one row with the single values.
        """
        tables = self.tables()
        if tables:
            return frame_of({name: list(column) for name, column in tables[0].columns.items()})
        single = {name: value for name, value in self._values().items() if not isinstance(value, Mapping)}
        return frame_of({name: [value] for name, value in single.items()})

    def __str__(self) -> str:
        return self.details

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {shorten(self.sentence, _SHORT, placeholder=' ...')}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentence and a small table."""
        parts = [f"<p>{escape(self.sentence)}</p>"]
        parts.extend(_html(table) for table in self.tables()[:1] if len(table) and table.shown != ())
        return "\n".join(parts)


def is_single(value: object) -> bool:
    """Whether a value is one number, a text, true, false or nothing; numbers of numpy count too.

    >>> is_single(0.5), is_single(None), is_single((1, 2))
    (True, True, False)
    """
    return value is None or isinstance(value, bool | int | float | str) or getattr(value, "shape", None) == ()


def frame_of(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Columns as a frame of pandas, else of Polars, else as a table of pyarrow."""
    if find_spec("pandas") is not None:
        return import_module("pandas").DataFrame(columns)
    if find_spec("polars") is not None:
        return import_module("polars").DataFrame(columns)
    return import_module("pyarrow").table(dict(columns))


def shortened(rows: Sequence[Sequence[str]], most: int = _ROWS_PRINTED) -> Sequence[Sequence[str]]:
    """The first and the last rows, where there are too many to read.

    >>> shortened([["a"], ["b"], ["c"], ["d"], ["e"]], most=2)
    [['a'], ['... 3 more'], ['e']]
    """
    if len(rows) <= most:
        return rows
    gap = [f"... {len(rows) - most:,} more" if place == 0 else "" for place in range(len(rows[0]))]
    return [*rows[: most // 2], gap, *rows[-(most // 2) :]]


def printed(table: ResultTable) -> str:
    """A table as lines of text, without its middle where it is long."""
    heads, rows = table.text()
    return aligned([heads, *shortened(rows)])


def _html(table: ResultTable) -> str:
    heads, rows = table.text()
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows[:_ROWS_SHOWN])
    left = len(rows) - _ROWS_SHOWN
    more = f"<p>and {left:,} more</p>" if left > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
