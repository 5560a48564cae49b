"""Tables of a report, with aligned decimal points, and the same tables as CSV embedded in the
report.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple
from urllib.parse import quote

from calibrant.draw.report.page import MostShown
from calibrant.text.formulas import escaped
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable, plain_values
from calibrant.text.sentences import name_of

_ONLY_IN_FILE = ("is_proved",)
"""Columns that are only in the file: a reader would think that the difference is "proved", but the
limits are; the column "basis" says so.
"""
_LONGEST_TEXT = 160

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|-?inf")
_DIGIT = "\u2007"  # a space as wide as a digit
_POINT = "\u2008"  # a space as wide as a full stop


class TableFile(NamedTuple):
    """A table as CSV: the file name, the link that contains it, and what it leaves out."""

    name: str
    link: str
    left_out: str


class ShownTable(NamedTuple):
    """A table as text, with a link to its numbers."""

    identifier: str
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    kinds: Sequence[str]
    file: TableFile


def shown_tables(found: Result, sizes: MostShown) -> list[ShownTable]:
    """The nonempty tables of a result, each with its CSV."""
    return [_shown_table(table, sizes.table_rows) for table in found.tables() if len(table)]


def _name_of(text: str) -> str:
    """A text in a cell: long enough for a sentence."""
    return name_of(text, _LONGEST_TEXT)


def _shown_table(table: ResultTable, most: int) -> ShownTable:
    """A table for people. With more than `most` rows, the middle is left out."""
    name = table.name.replace("_", " ")
    caption = f"{name[:1].upper()}{name[1:]}"
    if table.about:
        caption = f"{caption}. {table.about}"
    shown = table.shown or tuple(name for name in table.columns if name not in _ONLY_IN_FILE)
    heads, rows = replace(table, shown=shown).text(_name_of, most=most)
    aligned = aligned_rows(rows, first=1)
    return ShownTable(table.name, caption, heads, aligned, _kinds(rows), table_file(table, most))


def table_file(table: ResultTable, most: int) -> TableFile:
    """All columns of the first `most` rows as CSV, with every digit, in a link that contains the
    text itself.
    """
    columns = [plain_values(column)[:most] for column in table.columns.values()]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_cell, table.columns))
    writer.writerows([map(_cell, row) for row in zip(*columns, strict=True)])
    kept_signs = ",:;()[]/!*'"
    quoted = quote(text.getvalue(), safe=kept_signs, errors="backslashreplace")
    link = f"data:text/csv;charset=utf-8,{quoted}"
    total = len(table)
    kept = f"the first {most:,} of {total:,} rows" if total > most else ""
    return TableFile(f"{table.name}.csv", link, kept)


def _cell(value: object) -> object:
    """A value for a spreadsheet: text that would be run as a formula gets a leading '."""
    if value is None or value != value:
        return ""
    return escaped(value) if isinstance(value, str) else value


def _kinds(rows: Sequence[Sequence[str]]) -> list[str]:
    """Which columns hold words, and which hold numbers."""
    return [
        "words" if not place or not _are_numbers(cells) else "n"
        for place, cells in enumerate(zip(*rows, strict=True))
    ]


def _are_numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return all(re.match(r"-?[\d.]|-?inf|at (?:least|most) ", cell) for cell in filled)


def align_decimals(column: Sequence[str]) -> list[str]:
    r"""Pad the numbers of a column with spaces as wide as digits.

    Cells with the same words between their numbers are aligned number by number; other cells, such
    as empty ones, are unchanged.

    >>> seen = {"\u2007": "_", "\u2008": "'"}
    >>> for text in align_decimals(["0.1", "12", "", "-", "0.25 (0.1 to 0.3)", "0.5 (0.25 to 0.75)"]):
    ...     print("".join(seen.get(letter, letter) for letter in text))
    0.1
    12'_
    <BLANKLINE>
    -
    0.25 (0.1_ to 0.3)_
    0.5_ (0.25 to 0.75)
    """
    by_words: dict[tuple[str, ...], list[int]] = {}
    for place, text in enumerate(column):
        if _NUMBER.search(text):
            by_words.setdefault(tuple(_NUMBER.split(text)), []).append(place)
    padded = list(column)
    for words, places in by_words.items():
        cells = [_NUMBER.findall(column[place]) for place in places]
        # the largest number of characters after the integer part
        ends = [max(len(_fraction(one)) for one in numbers) for numbers in zip(*cells, strict=True)]
        for place, numbers in zip(places, cells, strict=True):
            padded[place] = _joined(words, numbers, ends)
    return padded


def aligned_rows(rows: Iterable[Sequence[str]], first: int = 0) -> list[list[str]]:
    """Rows of cells, with columns aligned from the column `first` on."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    done = [
        align_decimals(cells) if place >= first else cells for place, cells in enumerate(columns)
    ]
    return [list(row) for row in zip(*done, strict=True)]


def aligned_entries(entries: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Rows given as mappings, aligned entry by entry, except for names."""
    keys = list(entries[0]) if entries else []
    columns = {key: [entry[key] for entry in entries] for key in keys}
    for key in set(keys) - {"region", "verdict"}:
        columns[key] = align_decimals(columns[key])
    return [{key: columns[key][place] for key in keys} for place in range(len(entries))]


def _fraction(number: str) -> str:
    """What follows the integer part: the point and all digits after it."""
    return number[len(re.match(r"-?(?:[\d,]+|inf)", number)[0]) :]  # type: ignore[index]


def _joined(words: Sequence[str], numbers: Sequence[str], ends: Sequence[int]) -> str:
    """Alternate words and padded numbers; the padding of the last number comes at the end."""
    pads = []
    for number, widest in zip(numbers, ends, strict=True):
        fraction = _fraction(number)
        missing = widest - len(fraction)
        point = _POINT if missing and not fraction else ""
        pads.append(point + _DIGIT * (missing - len(point)))
    last = pads.pop()
    parts = [words[0]]
    for number, pad, after in zip_longest(numbers, pads, words[1:], fillvalue=""):
        parts.append(f"{number}{pad}{after}")
    return "".join(parts) + last
