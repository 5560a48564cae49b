"""The common parts of all results: a verdict, a sentence, numbers, tables and next steps, as text
and as data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from importlib import import_module
from importlib.util import find_spec
from shutil import get_terminal_size
from sys import maxsize
from textwrap import fill, shorten, wrap
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeAlias

from calibrant.text.numbers import plain
from calibrant.text.picture import Drawn, Picture
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result_table import ResultTable, aligned
from calibrant.text.sentences import (
    PlainText,
    Text,
    in_python,
    in_words,
    joined,
    render,
)
from calibrant.text.sentences import sentence as as_sentence

Verdict: TypeAlias = Literal["ok", "problem", "unclear"]

ROWS_SHOWN = 24
"""Rows of a table in `Result.details`."""
ROWS_IN_SHORT = 15
"""Rows of the table that `print` shows."""
_WIDEST = 100  # characters of a line of text
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

    It may define `verdict`, `numbers`, `next_steps`, `tables`, `remarks`, `pictures`, `assumptions`
    and `notes`.

    Everything else follows: `details`, `to_dict`, `to_frame`, `plot`, and what `print`, a notebook,
    the command line and reports show. Nothing asks which class a result is, so a new subclass needs
    no registration. A subclass is a frozen dataclass without its own repr:
    ``@dataclass(frozen=True, slots=True, repr=False)``. Fields that are numbers, text, or results
    are in `to_dict` by name; columns belong in a table. `assumptions` may be a field: then write
    ``assumptions: tuple[str, ...] = field()``, because a dataclass would take the property of this
    class for a default. A dataclass with slots cannot call ``super()``: call
    ``Result.to_dict(self)``.

    A sentence may name a parameter, which the command line writes as an option:
    `calibrant.text.sentences.words` makes a text from parts, and `render` writes it in other words.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True, repr=False)
    ... class Answer(Result):
    ...     rate: float
    ...     verdict = "ok"
    ...     @property
    ...     def sentence(self) -> str:
    ...         return f"The rate is {100 * self.rate:g}%, if labels are right."
    ...     @property
    ...     def next_steps(self) -> tuple[NextStep, ...]:
    ...         return (NextStep("Label more rows", "plan(n=1000)"),)
    >>> print(Answer(0.5))
    OK  The rate is 50%, if labels are right.
    <BLANKLINE>
    Next: Label more rows: plan(n=1000)
    """

    __slots__ = ()

    _also: ClassVar[tuple[str, ...]] = ()
    """Further properties that `to_dict` includes, such as "epsilon"."""

    _tables_in_short: ClassVar[int] = 1
    """How many tables `print` shows; 0 if the remarks say what matters."""

    @property
    def verdict(self) -> Verdict | None:
        """One of "ok", "problem" or "unclear"; None if nothing is judged."""
        return None

    @property
    def sentence(self) -> str:
        """What is known, how sure, and on which assumption, in at most 35 words."""
        raise NotImplementedError

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The key numbers."""
        return ()

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """What to do next, the most useful step first."""
        return ()

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
    def remarks(self) -> tuple[str, ...]:
        """What else everybody should read, below the first table."""
        return ()

    @property
    def details(self) -> str:
        """The whole answer as text: the sentence, the tables, the assumptions and the notes."""
        return "\n\n".join(parts_of(self, in_python, maxsize, details=True))

    def _rest(self) -> list[Text]:
        """The remarks, the assumptions and the notes, one in a line."""
        assumed = assumed_lines("Assumptions:", self.assumptions)
        return [*self.remarks, *assumed, *map(as_sentence, self.notes)]

    def __str__(self) -> str:
        return self.as_text()

    def as_text(self, setting: PlainText = in_python, width: int | None = None) -> str:
        """The verdict, the sentence, the first table, the remarks and the first next step.

        Parameters
        ----------
        setting : callable, optional
            How parameters in texts are written. Default: as in Python.
        width : int, optional
            Characters in a line. Default: the width of the terminal, at most 100.
        """
        columns = min(get_terminal_size().columns, _WIDEST) if width is None else width
        steps = [render(joined("Next: ", one.in_python), setting) for one in self.next_steps[:1]]
        return "\n\n".join([*parts_of(self, setting, columns), *steps])

    def tables(self) -> tuple[ResultTable, ...]:
        """The numbers behind the answer, the most important table first."""
        return ()

    def pictures(self) -> tuple[Picture, ...]:
        """The answer as pictures, the most important one first."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON values: the verdict, the sentence, single values by their names,
        and a list for each table.
        """
        found: dict[str, Any] = {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
            "numbers": [one.to_dict() for one in self.numbers],
            "next_steps": [one.to_dict() for one in self.next_steps],
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

    def plot(self, ax: Any = None) -> Any:
        """Draw the first picture with matplotlib, or else the key numbers that have limits, and
        return the axes; None if there is nothing to draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw. Default: a new figure.
        """
        pictures = (*self.pictures(), *self._picture_of_numbers())
        return pictures[0].plot(ax) if pictures else None

    def _picture_of_numbers(self) -> list[Picture]:
        """The key numbers that have limits, as far as they have the unit of the first."""
        known = [one for one in self.numbers if None not in (one.value, one.low, one.high)]
        known = [one for one in known if one.unit == known[0].unit]
        if not known:
            return []
        places = [-float(place) for place in range(len(known))]
        values, low, high = zip(*((one.value, one.low, one.high) for one in known), strict=True)
        drawn = Drawn("estimate", values, places, low, high)
        names = tuple(one.name for one in known)
        unit: Any = known[0].unit if known[0].unit in ("share", "points") else ""
        return [Picture("Key numbers", "", "", "", (drawn,), rows=names, x_unit=unit)]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {shorten(self.sentence, _SHORT, placeholder=' ...')}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentence, a small table and a figure."""
        parts = [f"<p>{escape(_label(self.verdict) + self.sentence)}</p>"]
        filled = [table for table in self.tables() if len(table)]
        filled.sort(key=is_shown, reverse=True)
        parts.extend(_html(table) for table in filled[:1])
        parts.extend(f"<p>{escape(text)}</p>" for text in self.remarks)
        parts.extend(picture.svg() for picture in self.pictures()[:1])
        return "\n".join(parts)


class ColumnTable:
    """A table as a frozen dataclass, whose fields are the columns, with a verdict on each row."""

    __slots__ = ()

    @property
    def verdict(self) -> tuple[str, ...]:
        """The verdict on each row."""
        raise NotImplementedError

    @property
    def columns(self) -> dict[str, Any]:
        """All columns, by name."""
        table: Any = self
        own = {field.name: getattr(self, field.name) for field in fields(table)}
        return {**own, "verdict": self.verdict}

    def to_frame(self) -> Any:
        """Return the table as a frame; see `Result.to_frame`."""
        return frame_of(self.columns)


def parts_of(
    result: Result, setting: PlainText, width: int, *, details: bool = False
) -> Iterator[str]:
    """The parts of a text of this width: what everybody should read, or everything."""
    yield hanging(_label(result.verdict), render(result.sentence, setting), width)
    tables = list(filter(is_shown, result.tables()))
    if not details:
        yield from (_fitted(table, width) for table in tables[: result._tables_in_short])
        remarks = [wrapped(render(text, setting), width) for text in result.remarks]
        yield from ["\n".join(remarks)] if remarks else []
        return
    for table in tables:
        about = [wrapped(table.about, width)] if table.about else []
        yield "\n".join([_lines(table, ROWS_SHOWN, str), *about])
    rest = [wrapped(render(line, setting), width) for line in result._rest()]
    yield from ["\n".join(rest)] if rest else []


def _label(verdict: Verdict | None) -> str:
    """The verdict word before a sentence; empty if nothing is judged."""
    return f"{verdict.upper()}  " if verdict else ""


def hanging(label: str, text: str, width: int) -> str:
    """A paragraph after a label, indented under its own first word.

    >>> print(hanging("OK  ", "The rate is 50%, if the labels are right.", 28))
    OK  The rate is 50%, if the
        labels are right.
    """
    return "\n".join(
        wrap(
            text,
            max(width, len(label) + 20),
            initial_indent=label,
            subsequent_indent=" " * len(label),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def is_shown(table: ResultTable) -> bool:
    """Whether a table is shown as text: it has rows, and columns for people."""
    return len(table) > 0 and table.shown != ()


def assumed_lines(title: str, assumptions: Sequence[str]) -> list[Text]:
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
    allowed = {
        field.name: field.type.__args__ if isinstance(field.type, UnionType) else (field.type,)
        for field in fields(kind)
    }
    return tuple(
        name
        for name, kinds in allowed.items()
        if all(
            one in _SINGLE or (isinstance(one, type) and issubclass(one, Result)) for one in kinds
        )
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


def _lines(table: ResultTable, most: int, name_of: Callable[[str], str] = in_words) -> str:
    """A table as lines of text, without its middle if it is long."""
    heads, rows = table.text(lambda name: name_of(name).replace("\n", "\\n"), most=most)
    return aligned([heads, *rows])


def _fitted(table: ResultTable, width: int) -> str:
    """A table for people in so many characters: a single row may become a list, and the last
    columns of a wider table are left out.
    """
    heads, rows = table.text(lambda name: in_words(name).replace("\n", "\\n"), most=ROWS_IN_SHORT)
    lines = [heads, *rows]
    for shown in range(len(heads), 1, -1):
        text = aligned([line[:shown] for line in lines])
        if max(map(len, text.splitlines())) <= width:
            return text
        if len(rows) == 1:
            return "\n".join(f"{head}: {cell}" for head, cell in zip(heads, rows[0], strict=True))
    return text


def wrapped(line: str, width: int) -> str:
    """A line of text or of a list, in lines of this width."""
    indent = " " * (4 if line.startswith("  - ") else 0)
    return fill(line, max(width, 40), subsequent_indent=indent, break_on_hyphens=False)


def _html(table: ResultTable) -> str:
    heads, rows = table.text(most=_IN_NOTEBOOK)
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    lines = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
