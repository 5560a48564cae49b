"""What is printed: text for people, one JSON object for scripts; remarks go to standard error.

Names of columns, segments and files are untrusted text. The functions of this module print
everything that the command line prints, and print terminal control characters as escapes.
"""

import re
import sys
from collections.abc import Mapping
from typing import Any

import click

from calibrant.text.numbers import plain
from calibrant.text.result import wrapped

_WIDEST = 100
# control characters other than tab and newline; marks that change text direction; surrogates, which
# have no encoding
_STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def harmless(text: str) -> str:
    r"""The text, with escapes for characters that control a terminal or cannot be printed.

    >>> print(harmless("a\x1b[2Jb \u202e \udcff"))
    a\u001b[2Jb \u202e \udcff
    """
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: str = "", *, err: bool = False, **style: Any) -> None:
    """Print a line for people."""
    click.secho(harmless(text), err=err, **style)


def print_verbatim(text: str) -> None:
    """Print text for programs: verbatim, unless it goes to a terminal."""
    sys.stdout.flush()
    sys.stdout.buffer.write((harmless(text) if sys.stdout.isatty() else text).encode())


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output; its escapes are JSON escapes."""
    import json

    click.echo(harmless(json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False)))


def width() -> int:
    """The width of this terminal in characters, at most a comfortable number."""
    import shutil

    return max(40, min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns))


def paragraph(text: str, *, err: bool = False) -> None:
    """Print text, wrapped to the terminal."""
    say(wrapped(text, width()), err=err)


def is_quiet() -> bool:
    """Whether the current command was given --quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("quiet"))


def saved(path: object, what: str = "", *, err: bool = False) -> None:
    """Print the last line of a command that has written a file.

    It goes to standard error if the file is the answer.
    """
    if not (err and is_quiet()):
        say(f"Saved {path}{what and f': {what}'}.", err=err)


def remark(text: str) -> None:
    """Print something worth knowing that is not the answer: to standard error, unless --quiet is
    given.
    """
    if not is_quiet():
        say(text, err=True)


def warn(text: str) -> None:
    """Print a warning about a possible mistake: to standard error, unless --quiet is given."""
    if not is_quiet():
        paragraph(f"warning: {text}", err=True)
