"""The sections that every report has: what to do next, and how the report was made."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.draw.report.names import name_of
from calibrant.draw.report.next_steps import steps_in_python
from calibrant.draw.report.page import Made, Section
from calibrant.text.numbers import counted
from calibrant.text.result import Result
from calibrant.text.sentences import Text, joined, words

_MOST_FACTS = 60
_LONGEST_FACT = 400
_LONGEST_SETTING = 60
_ASSUMED = "Assumed:"
_NOT_SETTINGS = ("sentence", "details", "explanation", "verdict")
_SWITCHES = {"sequential", "simultaneous", "randomized", "adds_up"}
_FRACTIONS = {  # other fractions are findings, which the report shows with their limits
    "at_least",
    "at_most",
    "base_rate",
    "clip",
    "confidence_level",
    "cost_false_alarm",
    "cost_miss",
    "difference_level",
    "expected_rate",
    "icc",
    "maturity",
    "min_share",
    "probability",
    "tolerance",
}


def to_copy(found: Result, answer: str | None = None) -> str:
    """The sentence, or the answer in its place, with its assumptions: for an email or a paper."""
    said = found.sentence if answer is None else answer
    if not found.assumptions or _ASSUMED in said:
        return said
    listed: Text = found.assumptions[0]
    for text in found.assumptions[1:]:
        listed = joined(listed, "; ", text)
    return words(joined(said, f" {_ASSUMED} ", listed, "."))


def next_section(found: Result, made: Made) -> Section:
    """What to do next."""
    steps = steps_in_python(found) if made.steps is None else tuple(made.steps)
    return Section("next-title", "What to do next", "next", {"steps": steps})


def made_section(found: Result, made: Made) -> Section:
    """The command, the data and the options: everything needed to make the report again."""
    options = recorded_settings(found) if made.options is None else made.options
    groups = {"The data": made.source, "Options": options}
    shown = [(title, listed_facts(entries)) for title, entries in groups.items() if entries]
    content = {"command": made.command, "groups": shown}
    return Section("made-title", "How this report was made", "made", content)


def recorded_settings(found: Result) -> dict[str, Any]:
    """The settings that a result records, such as its confidence level."""
    values = found.to_dict()
    return {name: value for name, value in values.items() if _is_setting(name, value)}


def _is_setting(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return name in _SWITCHES
    if isinstance(value, float):
        return name in _FRACTIONS
    if isinstance(value, str):
        return name not in _NOT_SETTINGS and 0 < len(value) <= _LONGEST_SETTING
    return isinstance(value, int)


def listed_facts(source: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and facts as text; only the first if there are very many."""
    facts = [
        (
            name_of(str(name).removeprefix("n_").replace("_", " ")),
            name_of(_plain(value), _LONGEST_FACT),
        )
        for name, value in list(source.items())[:_MOST_FACTS]
    ]
    if len(source) > _MOST_FACTS:
        facts.append(("and", f"{counted(len(source) - _MOST_FACTS, 'more fact')}, left out"))
    return facts


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_plain(entry)}" for name, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(entry) for entry in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value)
