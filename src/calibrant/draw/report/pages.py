"""The page of any result: the result says everything, and the page puts it in order."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from calibrant.assess.audit.result import Audit
from calibrant.draw.report.audit_figures import curve_figure, guaranteed_figure
from calibrant.draw.report.audit_page import audit_sections
from calibrant.draw.report.page import (
    VERDICTS,
    Extras,
    Inputs,
    MostShown,
    Section,
)
from calibrant.draw.report.picture_figure import picture_figures
from calibrant.draw.report.table_file import shown_tables
from calibrant.guarantee.guarantee import Guarantee
from calibrant.text.numbers import counted, percent
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.sentences import Text, joined, name_of, words

_DEFAULT_TITLE = "Calibration report"
_LONGEST_TITLE = 160
_MOST_FACTS = 60
_LONGEST_FACT = 400


def result_page(inputs: Inputs, sizes: MostShown, extras: Extras) -> dict[str, Any]:
    """What the page of a result shows, and of the guarantee of a calibrator beside it, as text."""
    found = inputs.result
    guarantee = inputs.guarantee
    results = [found] if guarantee is None or guarantee is found else [found, guarantee]
    sections = [*sections_of(found, inputs, sizes, extras), *_last_sections(inputs, extras)]
    of_guarantee = (number for one in results[1:] for number in one.numbers)
    copied = words(joined(*(part for one in results for part in (" ", to_copy(one))))).strip()
    return {
        "title": name_of(inputs.title or _DEFAULT_TITLE, _LONGEST_TITLE),
        "eyebrow": _DEFAULT_TITLE if inputs.title else None,
        "statements": [
            _statement(one, inputs.warnings, extras.notes if one is found else (), one is found)
            for one in results
        ],
        "to_copy": copied,
        "numbers": [*found.numbers, *map(_after_calibration, of_guarantee)],
        "sections": sections,
        "warnings": inputs.warnings,
    }


def _after_calibration(number: Quantity) -> Quantity:
    """A number of the guarantee beside another result."""
    return replace(number, name=f"Calibrated: {number.name[:1].lower()}{number.name[1:]}")


def _statement(
    found: Result, warnings: Iterable[str], notes: tuple[str, ...], is_main: bool
) -> dict[str, Any]:
    """A sentence at the top, beside its verdict: `kind` determines the colour and the sign."""
    verdict: Verdict | None = found.verdict
    if verdict == "ok" and list(warnings):
        verdict = "unclear"
    kind, tag = VERDICTS[verdict]
    details = (*found.remarks, *found.notes, *notes)
    said = {"kind": kind, "tag": tag, "text": found.sentence}
    return {**said, "details": details, "is_main": is_main}


def to_copy(found: Result) -> Text:
    """The sentence with its assumptions: for an email or a paper."""
    if not found.assumptions:
        return found.sentence
    listed = joined(*(part for one in found.assumptions for part in ("; ", one)))[1:]
    return joined(found.sentence, " Assumptions: ", listed, ".")


@singledispatch
def sections_of(
    found: Result, inputs: Inputs, sizes: MostShown, extras: Extras
) -> Iterator[Section]:
    """Pictures, tables and assumptions.

    The figures of an audit and of a guarantee can do more than a picture, so they have functions
    of their own; no result needs one.
    """
    pictures = (*extras.pictures, *found.pictures())
    if pictures:
        content = {"figures": picture_figures(pictures), "remark": ""}
        yield Section("figures-title", "Figures", "figures", content)
    yield from _tables(found, sizes)


def _tables(found: Result, sizes: MostShown) -> Iterator[Section]:
    tables = shown_tables(found, sizes)
    if tables:
        yield Section("numbers-title", "The numbers", "tables", {"lead": "", "tables": tables})
    if found.assumptions:
        content = {"assumed": found.assumptions}
        yield Section("assumed-title", "What is assumed", "assumed", content)


@sections_of.register
def _of_audit(found: Audit, inputs: Inputs, sizes: MostShown, extras: Extras) -> Iterator[Section]:
    yield from audit_sections(inputs, sizes)


@sections_of.register
def _of_guarantee(
    found: Guarantee, inputs: Inputs, sizes: MostShown, extras: Extras
) -> Iterator[Section]:
    figure = guaranteed_figure(found, inputs, sizes.marks)
    if figure is not None:
        content = {"figure": figure, "confidence": percent(found.confidence_level)}
        yield Section("figures-title", "What is guaranteed", "guaranteed", content)
    curve = curve_figure(found, inputs.fitted)
    if curve is not None:
        content = {"figures": [curve], "remark": ""}
        yield Section("curve-title", "From score to probability", "figures", content)
    yield from _tables(found, sizes)


def _last_sections(inputs: Inputs, extras: Extras) -> Iterator[Section]:
    """What to do next, and how the report was made."""
    steps = [_step(one, extras.places) for one in inputs.result.next_steps]
    if steps:
        yield Section("next-title", "What to do next", "next", {"steps": steps})
    facts = listed_facts(inputs.source or {})
    content = {"command": inputs.command, "facts": facts}
    yield Section("made-title", "How this report was made", "made", content)


def _step(step: NextStep, places: Mapping[str, str] | None) -> tuple[str, str]:
    """A next step: why, and the call or command that does it."""
    if places is None or not step.command:
        return step.what, step.call
    command = step.command.format(**{"model": "model.json", **places})
    return step.what, f"calibrant {command}"


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
