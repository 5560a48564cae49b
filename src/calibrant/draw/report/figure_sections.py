"""The figures that go with results: one section of figures per kind of result."""

from collections.abc import Iterator, Mapping
from typing import Any

from calibrant.assess.compare_models.model_comparison import Differences, PairedDifference
from calibrant.assess.metrics.reliability import ReliabilityTable
from calibrant.assess.rates.gate import Gate
from calibrant.draw.report.audit_figures import curve_figure, guaranteed_figure
from calibrant.draw.report.charts import (
    decision_chart,
    differences_chart,
    epsilon_chart,
    models_chart,
    rates_chart,
    threshold_chart,
)
from calibrant.draw.report.figures import Figure
from calibrant.draw.report.inputs import MostShown
from calibrant.draw.report.names import name_of
from calibrant.draw.report.page import Section
from calibrant.draw.report.shared_sections import subgroups_section
from calibrant.guarantee.kinds import is_guarantee
from calibrant.text.numbers import percent

_MOST_FIGURES = 12
_MOST_RATES = 40


def _section(identifier: str, title: str, figures: list[Figure], remark: str = "") -> Section:
    content = {"figures": figures, "remark": remark}
    return Section(f"{identifier}-title", title, "figures", content)


def _left_out(count: int, noun: str) -> str:
    return f"{count:,} more {noun}s are left out." if count > 0 else ""


def of_threshold(found: Any, rows_of: Any) -> Iterator[Section]:
    """Precision, recall and the share selected at every threshold, in each segment."""
    segments = list(dict.fromkeys(cut.segment for cut in found.cuts))
    figures = []
    for number, segment in enumerate(segments[:_MOST_FIGURES], start=1):
        scores, codes = rows_of(segment)
        name = "Every threshold" if segment is None else name_of(segment)
        if scores.size:
            chart = threshold_chart(f"threshold-{number}", name, found, segment, scores, codes)
            figures.append(chart)
    remark = _left_out(len(segments) - _MOST_FIGURES, "segment")
    yield _section("thresholds", "Thresholds and what they select", figures, remark)


def of_models(
    found: Differences, tables: Mapping[str, ReliabilityTable] | None, scale: str
) -> Iterator[Section]:
    """Reliability of all models, and the differences of each pair."""
    if tables:
        level = percent(found.confidence_level)
        remark = f"Intervals: {level}, all bins and models simultaneously."
        yield _section("reliability", "Reliability", [models_chart(tables, scale)], remark)
    figures: list[Figure] = []
    for measure in dict.fromkeys(one.measure for one in found.differences):
        pairs = [one for one in found.differences if one.measure == measure]
        rows = [(_who_wins(one), one.value, one.lower, one.upper) for one in pairs[:_MOST_FIGURES]]
        identifier = f"pairs-{len(figures) + 1}"
        figures.append(differences_chart(rows, f"Differences in {measure}", identifier))
    if figures:
        yield _section("pairs", "Paired differences", figures)


def _who_wins(one: PairedDifference) -> str:
    """A pair of models, and which one is better."""
    pair = f"{name_of(one.first)} minus {name_of(one.second)}"
    if one.better is None:
        return f"{pair}: the data cannot tell"
    how = "" if one.is_proved else " (asymptotic)"
    return f"{pair}: {name_of(one.better)} is better{how}"


def of_decisions(found: Any, guarantee: Any) -> Iterator[Section]:
    """Each region with its action."""
    if not is_guarantee(guarantee) or found.rows is None:
        return
    figure = decision_chart(guarantee, found.action, found.rows, found.break_even)
    yield _section("decisions", "Regions", [figure])


def of_guarantee(
    found: Any, calibrator: Any, sizes: MostShown, scale: str = "linear"
) -> Iterator[Section]:
    """The guaranteed interval of each region, and the predicted curve."""
    figure = guaranteed_figure(found, calibrator, sizes.marks, scale)
    if figure is not None:
        content = {"figure": figure, "confidence": percent(found.confidence_level)}
        yield Section("figures-title", "What is guaranteed", "guaranteed", content)
    curve = None if calibrator is None else curve_figure(found, calibrator)
    if curve is not None:
        yield _section("curve", "From score to probability", [curve])


def of_reliability(found: Any) -> Iterator[Section]:
    """A reliability diagram."""
    yield _section("reliability", "Reliability", [models_chart({"observed rate": found})])


def of_rate(found: Any, gate: Gate | None) -> Iterator[Section]:
    """The estimate and its limits, for all items and for each segment."""
    table = found.tables()[0].columns
    segments = table.get("segment", ["all items"])
    names = [name_of(segment) for segment in segments]
    rows = list(zip(names, table["estimate"], table["lower"], table["upper"], strict=True))
    remark = _left_out(len(rows) - _MOST_RATES, "segment")
    goal = None if gate is None else gate.goal
    yield _section("rates", "Rates", [rates_chart(rows[:_MOST_RATES], goal)], remark)


def of_monitor(found: Any) -> Iterator[Section]:
    """Epsilon after each day."""
    if found.path:
        figure = epsilon_chart([step.epsilon for step in found.path], found.path[0].day)
        yield _section("epsilon", "Is it still good enough?", [figure])


def of_subgroups(found: Any, sizes: MostShown) -> Iterator[Section]:
    """A forest plot of subgroups."""
    yield subgroups_section(found, sizes)
