"""The common parts of all results: a sentence, assumptions, tables, and everything as data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from importlib import import_module
from importlib.util import find_spec
from textwrap import shorten
from types import NoneType, UnionType
from typing import Any, ClassVar

from calibrant.text.numbers import plain
from calibrant.text.result_table import ResultTable, aligned
from calibrant.text.sentences import sentence as as_sentence

ROWS_SHOWN = 24
"""Rows of a table shown as text."""
_IN_NOTEBOOK = 10
_SHORT = 100  # characters of the sentence in a repr
_IN_ONE_LINE = 3  # assumptions
_SINGLE = (
    bool,
    int,
    float,
    str,
    NoneType,
    Any,
    Hashable,
)  # a field annotated Any or Hashable holds a label


def said_of_file(read: Sequence[str]) -> str:
    """The sentence about what a result read from a file, after a blank; empty without any.

    >>> said_of_file(("counts", "limits"))
    ' Read from a file, not recomputed from the rows: counts, limits.'
    """
    return f" Read from a file, not recomputed from the rows: {', '.join(read)}." if read else ""


class Result:
    """A result. A subclass must define `sentence`.

    It may define `assumptions`, `notes` and `tables`.

    Everything else follows: `details`, `to_dict`, `to_frame`, and what `print`, a notebook, the
    command line and reports show. A subclass is a frozen dataclass without its own repr:
    ``@dataclass(frozen=True, slots=True, repr=False)``. Fields that are numbers, text, or results
    are in `to_dict` by name; columns belong in a table. `assumptions` may be a field: then write
    ``assumptions: tuple[str, ...] = field()``, because a dataclass would take the property of this
    class for a default. A dataclass with slots cannot call ``super()``: call
    ``Result.to_dict(self)``.

    A sentence may name a parameter, which the command line writes as an option:
    `calibrant.text.sentences.words` makes a text from parts, and `render` writes it in other words.
    """

    __slots__ = ()

    _also: ClassVar[tuple[str, ...]] = ()
    """Properties that `to_dict` includes, such as "verdict"."""

    @property
    def sentence(self) -> str:
        """The answer in one sentence, with its assumption."""
        raise NotImplementedError

    @property
    def explanation(self) -> str:
        """What the sentence leaves out if it must be short; without the assumptions."""
        return ""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the answer assumes."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a reader should know, such as rows that were skipped.

        Each note is a clause or a sentence.
        """
        return ()

    @property
    def details(self) -> str:
        """The whole answer as text: the sentence, its explanation, the tables, the assumptions and
        the notes.
        """
        shown = [_printed(table) for table in self.tables() if is_shown(table)]
        rest = assumed_lines("Assumptions:", self.assumptions)
        rest.extend(map(as_sentence, self.notes))
        opening = f"{self.sentence} {self.explanation}".strip()
        if not shown:
            return "\n".join([opening, *rest])
        return "\n\n".join([opening, *shown, *(["\n".join(rest)] if rest else [])])

    def tables(self) -> tuple[ResultTable, ...]:
        """The numbers behind the answer, the most important table first."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON values: the sentence, single values by their names, and a list
        for each table.
        """
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
        """Fields, and properties named in `_also`, that hold one plain value or a result."""
        found = {}
        for name in (*_single_fields(type(self)), *self._also):
            value = getattr(self, name)
            found[name] = value.to_dict() if isinstance(value, Result) else _trimmed(plain(value))
        return found

    def to_frame(self) -> Any:
        """The first table as a pandas frame, or a Polars or pyarrow one if pandas is not installed.

        Without a table, one row with the single values.
        """
        tables = self.tables()
        if tables:
            return frame_of({name: list(column) for name, column in tables[0].columns.items()})
        single = {
            name: value for name, value in self._values().items() if not isinstance(value, Mapping)
        }
        return frame_of({name: [value] for name, value in single.items()})

    def __str__(self) -> str:
        return self.details

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {shorten(self.sentence, _SHORT, placeholder=' ...')}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentence and a small table."""
        parts = [f"<p>{escape(self.sentence)}</p>"]
        filled = [table for table in self.tables() if len(table)]
        filled.sort(key=is_shown, reverse=True)
        parts.extend(_html(table) for table in filled[:1])
        return "\n".join(parts)


def is_shown(table: ResultTable) -> bool:
    """Whether a table is shown as text: it has rows, and columns for people."""
    return len(table) > 0 and table.shown != ()


def assumed_lines(title: str, assumptions: Sequence[str]) -> list[str]:
    """Assumptions in one line, or as a list if there are more than three.

    >>> assumed_lines("Assumed:", ["rows are i.i.d.", "labels are right"])
    ['Assumed: rows are i.i.d.; labels are right.']
    >>> assumed_lines("Assumed:", ["a", "b", "c", "d"])
    ['Assumed:', '  - a', '  - b', '  - c', '  - d']
    """
    if not assumptions:
        return []
    if len(assumptions) <= _IN_ONE_LINE:
        return [f"{title} {'; '.join(assumptions)}."]
    return [title, *(f"  - {text}" for text in assumptions)]


def _trimmed(value: Any) -> Any:
    """A text without leading and trailing spaces, which it has as part of a sentence."""
    return value.strip() if type(value) is str else value


def _single_fields(kind: Any) -> tuple[str, ...]:
    """The dataclass fields that hold one number, text, label or result, or None."""
    if not is_dataclass(kind):
        return ()
    return tuple(field.name for field in fields(kind) if all(map(_is_single, _choices(field.type))))


def _choices(annotation: Any) -> tuple[Any, ...]:
    """The types that an annotation allows: the members of a union, or itself."""
    return annotation.__args__ if isinstance(annotation, UnionType) else (annotation,)


def _is_single(annotation: Any) -> bool:
    return annotation in _SINGLE or (
        isinstance(annotation, type) and issubclass(annotation, Result)
    )


def frame_of(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Columns as a pandas frame, else a Polars frame, else a pyarrow table."""
    if find_spec("pandas") is not None:
        return import_module("pandas").DataFrame(columns)
    if find_spec("polars") is not None:
        return import_module("polars").DataFrame(columns)
    return import_module("pyarrow").table(dict(columns))


def frame_of_arrow(table: Any) -> Any:
    """An Arrow table as a pandas frame, else a Polars frame, else unchanged."""
    if find_spec("pandas") is not None:
        return table.to_pandas()
    if find_spec("polars") is not None:
        return import_module("polars").from_arrow(table)
    return table


def _printed(table: ResultTable) -> str:
    """A table as lines of text, without its middle if it is long, and with its explanation."""
    heads, rows = table.text(most=ROWS_SHOWN)
    lines = aligned([heads, *rows])
    return f"{lines}\n{table.about}" if table.about else lines


def _html(table: ResultTable) -> str:
    heads, rows = table.text(most=_IN_NOTEBOOK)
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    lines = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
