"""Tables of a report, and the same tables as CSV embedded in the report."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

from calibrant.draw.report.decimals import aligned_rows
from calibrant.draw.report.names import name_of, region_name
from calibrant.text.formulas import escaped
from calibrant.text.result_table import ResultTable, plain_values

_SAID_OTHERWISE = ("is_proved",)
"""Columns that are only in the file: a reader would think that the difference is "proved", but the
limits are; the column "basis" says so.
"""


class TableFile(NamedTuple):
    """A table as CSV: the file name, the link that contains it, and what it leaves out."""

    name: str
    link: str
    said: str


class ShownTable(NamedTuple):
    """A table as text, with a link to its numbers."""

    identifier: str
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    kinds: Sequence[str]
    file: TableFile


def shown_table(table: ResultTable, identifier: str, most: int, most_in_file: int) -> ShownTable:
    """A table for people. With more than `most` rows, the middle is left out."""
    name = table.name.replace("_", " ")
    caption = f"{name[:1].upper()}{name[1:]}"
    if table.about:
        caption = f"{caption}. {table.about}"
    shown = table.shown or tuple(name for name in table.columns if name not in _SAID_OTHERWISE)
    heads, rows = replace(table, shown=shown).text(_shortened, most=most)
    aligned = aligned_rows(rows, first=1)
    file = table_file(table, most_in_file)
    return ShownTable(identifier, caption, heads, aligned, _kinds(rows), file)


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


def _shortened(text: str) -> str:
    """A name short enough for a table; the name of a region keeps both ends."""
    return region_name(text) if text[:1] in "([" else name_of(text)


def _kinds(rows: Sequence[Sequence[str]]) -> list[str]:
    """Which columns hold words, and which hold numbers."""
    return [
        "words" if not place or not _are_numbers(cells) else "n"
        for place, cells in enumerate(zip(*rows, strict=True))
    ]


def _are_numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell]
    return all(re.match(r"-?[\d.]|-?inf|at (?:least|most) ", cell) for cell in filled)
