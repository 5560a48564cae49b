"""The page that every report is: its parts as data. One template draws them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class KeyNumber(NamedTuple):
    """A key number: its name, its text, what it is about, and the exact value behind the text."""

    name: str
    value: str
    note: str = ""
    exact: float | None = None


class Headed(NamedTuple):
    """What is said at the top, beside a word that says how it stands.

    `kind` is "right", "wrong" or "open", and decides colour and sign.
    """

    kind: str
    tag: str
    text: str
    details: tuple[str, ...] = ()
    is_main: bool = True


class Section(NamedTuple):
    """A section: its address within the page, its title, the template of its inside, and what that
    shows.
    """

    identifier: str
    title: str
    template: str
    content: Mapping[str, Any] = {}


class Step(NamedTuple):
    """Something to do next: why, and the call or the command that does it."""

    why: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A report. Everything is text already, in the words of its reader."""

    title: str
    eyebrow: str | None
    statements: tuple[Headed, ...]
    to_copy: str
    sections: tuple[Section, ...]
    numbers: tuple[KeyNumber, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Made:
    """How a report was made: shown in its last section, so that it can be made again."""

    command: str | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] | None = None
    steps: Sequence[Step] | None = None
    """None: those that follow from the result, as calls of Python."""
