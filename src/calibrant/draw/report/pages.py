"""The report of any result: its sentence, numbers, figures and tables.

Results differ in which figures and key numbers go with them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from calibrant._typing import CodeArray, FloatArray
from calibrant.assess.metrics.reliability import ReliabilityTable
from calibrant.assess.rates.gate import Gate
from calibrant.draw.report import figure_sections as figures
from calibrant.draw.report.headline import Headline, headline
from calibrant.draw.report.in_short import in_short
from calibrant.draw.report.inputs import Inputs, MostShown
from calibrant.draw.report.made import made_section, next_section, to_copy
from calibrant.draw.report.names import name_of
from calibrant.draw.report.page import Headed, KeyNumber, Made, Page, Section
from calibrant.draw.report.shared_sections import shown_tables
from calibrant.text.numbers import limits, nearest, percent, upper
from calibrant.text.result import Result

RowsOf = Callable[[object], tuple[FloatArray, CodeArray]]
"""Scores and labels of a segment, or of all rows for None."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What a command knows in addition to its result: an answer to the user's question, and more to
    draw.
    """

    sentence: str | None = None
    headline: Headline | None = None
    rows_of: RowsOf | None = None
    reliability: Mapping[str, ReliabilityTable] | None = None
    gate: Gate | None = None
    short: str | None = None
    notes: tuple[str, ...] = ()


def result_page(inputs: Inputs, made: Made, sizes: MostShown, beside: Beside) -> Page:
    """The page of a result that is not an audit."""
    found = inputs.result
    name, numbers_of = _KINDS.get(_kind(found), (_spaced(type(found).__name__), _no_numbers))
    title = name_of(inputs.title or name, 160)
    stands = beside.headline or headline(found)
    if inputs.warnings and stands.kind == "right":
        stands = Headline("open", f"{stands.tag}, if the assumptions hold")
    answer = beside.sentence or found.sentence
    short = beside.short or in_short(found)
    behind = [text for text in (answer if short else "", found.explanation) if text]
    details = (*behind, *found.notes, *beside.notes)
    said = Headed(*stands, short or answer, details)
    return Page(
        title=title,
        eyebrow=name if inputs.title else "calibrant report",
        statements=(said,),
        to_copy=(*([short] if short else []), to_copy(found, beside.sentence)),
        numbers=tuple(numbers_of(found)),
        sections=tuple(_sections(inputs, made, sizes, beside)),
        warnings=tuple(inputs.warnings),
    )


def _sections(inputs: Inputs, made: Made, sizes: MostShown, beside: Beside) -> Iterator[Section]:
    found = inputs.result
    yield from _figures(inputs, sizes, beside)
    tables = shown_tables(found, sizes)
    if beside.gate is not None:
        tables += shown_tables(beside.gate, sizes)
    if tables:
        yield Section("numbers-title", "The numbers", "tables", {"lead": "", "tables": tables})
    if found.assumptions:
        content = {"assumed": found.assumptions}
        yield Section("assumed-title", "What is assumed", "assumed", content)
    yield next_section(found, made)
    yield made_section(found, made)


def _figures(inputs: Inputs, sizes: MostShown, beside: Beside) -> Iterable[Section]:
    """The figures of a result, as far as their data are available."""
    found: Any = inputs.result
    kind = _kind(found)
    if kind == "Threshold" and beside.rows_of is not None:
        return figures.of_threshold(found, beside.rows_of)
    if kind == "Differences":
        return figures.of_models(found, beside.reliability, inputs.scale)
    if kind == "Decisions" and inputs.calibrator is not None:
        return figures.of_decisions(found, inputs.calibrator.guarantee_)
    if kind == "Guarantee":
        return figures.of_guarantee(found, inputs.calibrator, sizes, inputs.scale)
    if kind == "Rate":
        return figures.of_rate(found, beside.gate)
    drawn = {
        "MonitorSnapshot": figures.of_monitor,
        "ReliabilityTable": figures.of_reliability,
    }
    if kind in drawn:
        return drawn[kind](found)
    return figures.of_subgroups(found, sizes) if kind == "SubgroupAudit" else ()


def _kind(found: Result) -> str:
    """The name of the class that determines what is shown: the first listed one in its MRO, or its
    own.
    """
    names = [kind.__name__ for kind in type(found).__mro__]
    return next((name for name in names if name in _KINDS), names[0])


def _spaced(name: str) -> str:
    """A class name as words.

    >>> _spaced("RatePlan")
    'Rate plan'
    """
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return words.strip().capitalize()


def _no_numbers(found: Any) -> Iterator[KeyNumber]:
    yield from ()


def _of_threshold(found: Any) -> Iterator[KeyNumber]:
    n_proved = sum(cut.threshold is not None for cut in found.cuts)
    counted = f"{found.n_drawn:,} pilot rows, not counted" if found.n_drawn else "all counted"
    yield KeyNumber("Confidence", percent(found.confidence_level), "for all targets simultaneously")
    yield KeyNumber("Proved", f"{n_proved:,} of {len(found.cuts):,}", "targets")
    yield KeyNumber("Rows", f"{found.n_rows:,}", counted)
    for cut in found.cuts:
        decides = len(found.cuts) == 1 or (cut.target == "precision" and cut.segment is None)
        if decides and cut.selected is not None:
            yield KeyNumber("Selected", nearest(cut.selected.value), "of the rows")
            return


def _of_decisions(found: Any) -> Iterator[KeyNumber]:
    counts = found.counts
    total = sum(counts.values())
    yield KeyNumber("Rows", f"{total:,}", "with a decision")
    for name, count in counts.items():
        yield KeyNumber(name.capitalize(), f"{count:,}", "rows")
    yield KeyNumber(
        "Break-even rate", nearest(found.break_even), "acting and not acting cost the same"
    )
    yield KeyNumber("Cost of a false alarm", f"{found.cost_false_alarm:g}", "as given")
    yield KeyNumber("Cost of a miss", f"{found.cost_miss:g}", "as given")
    if total:
        between = f"per row ({limits(found.cost_lower, found.cost_upper)})"
        yield KeyNumber("Expected cost", nearest(found.cost), between)


def _of_models(found: Any) -> Iterator[KeyNumber]:
    yield KeyNumber(
        "Confidence", percent(found.confidence_level), "in all differences called proved"
    )
    yield KeyNumber("Models", f"{len(found.models):,}", "on the same rows")
    yield KeyNumber("Rows", f"{found.n_rows:,}", "compared")


def _of_monitor(found: Any) -> Iterator[KeyNumber]:
    yield KeyNumber(
        "Counted", f"{found.n_mature:,}", f"predictions, {found.n_labels:,} with a label"
    )
    yield KeyNumber("Pending", f"{found.n_pending:,}", "not mature yet")
    if found.path:
        yield KeyNumber("Epsilon", upper(found.epsilon), "over all days, if rates have not changed")


def _of_guarantee(found: Any) -> Iterator[KeyNumber]:
    yield KeyNumber("Confidence", percent(found.confidence_level), "in all bins simultaneously")
    yield KeyNumber("Rows", f"{found.n_rows:,}", "counted")
    stated = found.stated
    share = "" if stated.kept.all() else f", for at least {percent(stated.mass)} of the population"
    proved = "" if found.is_proved else ", not proved"
    yield KeyNumber(
        "Within", upper(stated.epsilon), f"of the true rate{share}{proved}", stated.epsilon
    )
    if found.average_epsilon is not None:
        yield KeyNumber("On average within", upper(found.average_epsilon), "of the true rate")


def _of_rate(found: Any) -> Iterator[KeyNumber]:
    yield KeyNumber("Estimate", nearest(found.estimate), "share of positives")
    yield KeyNumber("Limits", limits(found.lower, found.upper), percent(found.confidence_level))
    yield KeyNumber("Labels", f"{found.n_labels:,}", f"of {found.n_items:,} items")


def _of_plan(found: Any) -> Iterator[KeyNumber]:
    yield KeyNumber("Labels", f"{found.n:,}", "drawn at random")
    yield KeyNumber("Epsilon", upper(found.epsilon), f"in each of {found.n_bins:,} bins")
    yield KeyNumber("Confidence", percent(found.confidence_level), "in all bins simultaneously")


def _of_rows(found: Any) -> Iterator[KeyNumber]:
    yield KeyNumber("Rows", f"{found.n_rows:,}", "tested")
    yield KeyNumber("Confidence", percent(found.confidence_level), "in all tests simultaneously")
    yield KeyNumber("p-value", upper(found.p_value), "for all tests together")


def _of_subgroups(found: Any) -> Iterator[KeyNumber]:
    yield KeyNumber("Rows", f"{found.n_rows:,}", "audited")
    yield KeyNumber("Subgroups", f"{len(found.table.subgroup):,}", "searched")
    if found.p_value is not None:
        yield KeyNumber("p-value", upper(found.p_value), "for no subgroup being off")


def _of_validation(found: Any) -> Iterator[KeyNumber]:
    yield KeyNumber("Rows", f"{found.n_rows:,}", "validated")
    test = "asymptotic" if found.population else "exact"
    yield KeyNumber("p-value", upper(found.p_value), f"Kuiper's test, {test}")


_KINDS: dict[str, tuple[str, Callable[[Any], Iterator[KeyNumber]]]] = {
    "Decisions": ("Decisions", _of_decisions),
    "Differences": ("Which model is better?", _of_models),
    "Exchangeability": ("Are the rows i.i.d.?", _of_rows),
    "Guarantee": ("Guarantee", _of_guarantee),
    "MonitorSnapshot": ("Drift", _of_monitor),
    "Plan": ("Plan", _of_plan),
    "Rate": ("Rate", _of_rate),
    "ReliabilityTable": ("Reliability", _no_numbers),
    "SubgroupAudit": ("Subgroups", _of_subgroups),
    "Threshold": ("Thresholds", _of_threshold),
    "Validation": ("Validation", _of_validation),
}
