"""The page of a report: its parts as data, which one template draws."""

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
    """The statement at the top, next to its status word.

    `kind` is "right", "wrong" or "open", and determines the colour and the sign.
    """

    kind: str
    tag: str
    text: str
    details: tuple[str, ...] = ()
    is_main: bool = True


class Section(NamedTuple):
    """A section: its anchor, its title, the template of its body, and what that template shows."""

    identifier: str
    title: str
    template: str
    content: Mapping[str, Any] = {}


class Step(NamedTuple):
    """A next step: why, and the call or command that does it."""

    why: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A report. Everything is already text, in the reader's terms."""

    title: str
    eyebrow: str | None
    statements: tuple[Headed, ...]
    to_copy: tuple[str, ...]
    sections: tuple[Section, ...]
    numbers: tuple[KeyNumber, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Made:
    """How a report was made: shown in its last section, so that it can be reproduced."""

    command: str | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] | None = None
    steps: Sequence[Step] | None = None
    """None means the steps that follow from the result, as Python calls."""
