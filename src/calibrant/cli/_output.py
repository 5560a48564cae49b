"""What is printed: text for people, one JSON object for scripts; remarks go to standard error.

Names of columns, segments and files are other people's text. Characters in them that steer a
terminal are printed as escapes by the functions of this module, which print everything that the
command line prints.
"""

import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import click

from calibrant.text.numbers import plain

_WIDEST = 100
# control characters but tab and newline; marks that change the direction of text; surrogates, which
# have no encoding
_STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def harmless(text: str) -> str:
    r"""The text, with escapes in place of characters that steer a terminal or cannot be printed.

    >>> print(harmless("a\x1b[2Jb \u202e \udcff"))
    a\u001b[2Jb \u202e \udcff
    """
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: str = "", *, err: bool = False, **style: Any) -> None:
    """A line for people."""
    click.secho(harmless(text), err=err, **style)


def print_verbatim(text: str) -> None:
    """Text for programs: as it is, unless it goes to a terminal."""
    sys.stdout.flush()
    sys.stdout.buffer.write((harmless(text) if sys.stdout.isatty() else text).encode())


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object, on standard output; its escapes are those of JSON."""
    import json

    click.echo(harmless(json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False)))


def width() -> int:
    """Columns of text on this terminal, and at most a comfortable number of them."""
    import shutil

    return max(40, min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns))


def paragraph(text: str, *, bold: bool = False, err: bool = False) -> None:
    """Text, wrapped to the terminal. Spaces at its start begin all of its lines."""
    indent = text[: len(text) - len(text.lstrip())]
    text = text.strip()
    lines = textwrap.fill(
        text,
        width(),
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    say(lines, bold=bold, err=err)


def is_quiet() -> bool:
    """Whether the command that runs was given --quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("quiet"))


def note(text: str) -> None:
    """Something that belongs to the answer, though it is not the answer itself."""
    paragraph(f"note: {text}")


def saved(path: object, what: str = "", *, err: bool = False) -> None:
    """The last line of a command that has written a file.

    To standard error where the answer itself is the file.
    """
    if not (err and is_quiet()):
        say(f"Saved {path}{what and f': {what}'}.", err=err)


def remark(text: str) -> None:
    """Something worth knowing that is not the answer: to standard error, unless --quiet was given."""
    if not is_quiet():
        say(text, err=True)


def warn(text: str) -> None:
    """Something that may be wrong: to standard error, unless --quiet was given."""
    if not is_quiet():
        paragraph(f"warning: {text}", err=True)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; the first column is flush left, the others right."""
    lines = [[harmless(text.replace("\n", "\\n")) for text in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, row in enumerate(lines):
        cells = [text.rjust(size) for text, size in zip(row, widths, strict=True)]
        say("  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip(), dim=number == 0)
