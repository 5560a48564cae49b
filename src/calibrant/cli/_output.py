"""What is printed: text for people, one JSON object for scripts; remarks go to standard error."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import click

_WIDEST = 100


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object, on standard output."""
    import json

    click.echo(json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """A copy of plain JSON values; numbers that JSON does not have become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # numpy's numbers and arrays, without importing numpy
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def width() -> int:
    """Columns of text on this terminal, and at most a comfortable number of them."""
    import shutil

    return max(40, min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns))


def paragraph(text: str, *, bold: bool = False, indent: str = "") -> None:
    """Text, wrapped to the terminal."""
    lines = textwrap.fill(text, width(), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    click.secho(lines, bold=bold)


def note(text: str) -> None:
    """Something that belongs to the answer, though it is not the answer itself."""
    paragraph(f"note: {text}")


def remark(text: str, quiet: bool = False) -> None:
    """Something worth knowing that is not the answer: to standard error."""
    if not quiet:
        click.echo(text, err=True)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; the first column is flush left, the others right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for number, row in enumerate((heads, *rows)):
        cells = [text.rjust(size) for text, size in zip(row, widths, strict=True)]
        click.secho("  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip(), dim=number == 0)


def shortened(rows: list[Sequence[str]], most: int = 24) -> list[Sequence[str]]:
    """The first and the last rows, where there are too many to read."""
    if len(rows) <= most:
        return rows
    gap = [f"... {len(rows) - most:,} more" if place == 0 else "" for place in range(len(rows[0]))]
    return [*rows[: most // 2], gap, *rows[-(most // 2) :]]
