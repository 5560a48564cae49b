"""What is printed: text for people, one JSON object for scripts; remarks go to standard error."""

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import click

_WIDEST = 100


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object, on standard output."""
    click.echo(json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # numpy's numbers and arrays, without importing numpy
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def width() -> int:
    """Columns of text on this terminal, and at most a comfortable number of them."""
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


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """A table; the first `left` columns are flush left, the others right."""
    if sys.stdout.isatty():
        _rich_table(heads, rows, left)
        return
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in range(len(heads))]
    for row in (heads, *rows):
        cells = (
            f"{text:<{size}}" if place < left else f"{text:>{size}}"
            for place, (text, size) in enumerate(zip(row, widths, strict=True))
        )
        click.echo("  ".join(cells).rstrip())


def _rich_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, header_style="dim", pad_edge=False)
    for place, head in enumerate(heads):
        drawn.add_column(head, justify="left" if place < left else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*map(Text, row))
    Console(highlight=False).print(drawn)


def shortened(rows: list[Sequence[str]], most: int = 24) -> list[Sequence[str]]:
    """The first and the last rows, where there are too many to read."""
    if len(rows) <= most:
        return rows
    gap = [f"... {len(rows) - most:,} more" if place == 0 else "" for place in range(len(rows[0]))]
    return [*rows[: most // 2], gap, *rows[-(most // 2) :]]
