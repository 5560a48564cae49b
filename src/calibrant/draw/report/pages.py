"""Short reports: any result as one HTML page.

What differs is which charts and key numbers go with it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from calibrant._typing import CodeArray, FloatArray
from calibrant.assess.compare_models.model_comparison import ModelComparison
from calibrant.assess.decide import Decisions
from calibrant.assess.metrics.reliability import ReliabilityTable
from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.draw.report.charts import (
    decision_chart,
    differences_chart,
    models_chart,
    threshold_chart,
)
from calibrant.draw.report.figures import Figure
from calibrant.draw.report.html import rendered_page
from calibrant.draw.report.names import name_of, region_name
from calibrant.guarantee.guarantee import Guarantee
from calibrant.text.numbers import limits, nearest, percent
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import TextTable

_MOST_FIGURES = 12
_MOST_ROWS = 400


class Chart(NamedTuple):
    """A section with figures."""

    title: str
    figures: Sequence[Figure]
    remark: str = ""


def result_page(
    found: Result,
    title: str,
    facts: Mapping[str, str],
    *,
    verdict: str | None = None,
    not_proved: str = "",
    numbers: Sequence[tuple[str, str, str]] = (),
    charts: Sequence[Chart] = (),
    warnings: Sequence[str] = (),
) -> str:
    """The page of any result: its sentence, assumptions and notes, its charts and its tables.

    Parameters
    ----------
    found : Result
    title : str
    facts : mapping from str to str
        Where the data come from.
    verdict : str, optional
        What stands in place of the sentence.
    not_proved : str
        The word above the sentence where what was asked is not proved, such as "Refuted"; empty if
        it is proved.
    numbers : sequence of (name, value, note)
        Key numbers, as text.
    charts : sequence of Chart
    warnings : sequence of str
    """
    return rendered_page(
        "result",
        found=found,
        title=title,
        eyebrow=f"{title} report",
        verdict=found.sentence if verdict is None else verdict,
        proved=not not_proved,
        not_proved=not_proved,
        numbers=numbers,
        charts=charts,
        tables=[_caption_and_text(table) for table in found.tables() if len(table)],
        facts=[*facts.items()],
        warnings=warnings,
    )


def _caption_and_text(table: ResultTable) -> tuple[str, TextTable]:
    name = table.name.replace("_", " ")
    caption = f"{name[:1].upper()}{name[1:]}"
    if table.about:
        caption = f"{caption}. {table.about}"
    text = replace(table, shown=table.shown or None).text(_shortened, most=_MOST_ROWS)
    return caption, text


def _shortened(text: str) -> str:
    """A name that is not too long for a table; that of a region keeps both its ends."""
    return region_name(text) if text[:1] in "([" else name_of(text)


def threshold_page(
    found: Threshold,
    rows_of: Callable[[object], tuple[FloatArray, CodeArray]],
    facts: Mapping[str, str],
    warnings: Sequence[str] = (),
) -> str:
    """The page of `calibrant threshold`.

    `rows_of` gives scores and labels of a segment, for the curves.
    """
    segments = list(dict.fromkeys(cut.segment for cut in found.cuts))
    figures = []
    for number, segment in enumerate(segments[:_MOST_FIGURES], start=1):
        scores, codes = rows_of(segment)
        name = "Every threshold" if segment is None else name_of(segment)
        if scores.size:
            figures.append(
                threshold_chart(f"threshold-{number}", name, found, segment, scores, codes)
            )
    n_proved = sum(cut.threshold is not None for cut in found.cuts)
    n_counted = (
        f"{found.n_drawn:,} chose what to test, not counted" if found.n_drawn else "all counted"
    )
    numbers = [
        ("Confidence", percent(found.confidence_level), "in all targets at once"),
        ("Proved", f"{n_proved:,} of {len(found.cuts):,}", "targets"),
        ("Rows", f"{found.n_rows:,}", n_counted),
    ]
    selected = _selected(found)
    if selected is not None:
        numbers.append(("Selected", nearest(selected), "of the rows"))
    not_proved = ""
    if n_proved < len(found.cuts):
        not_proved = "Not all proved" if n_proved else "Not proved"
    remark = _left_out(len(segments) - _MOST_FIGURES, "segment")
    charts = [Chart("Thresholds and what they select", figures, remark)]
    return result_page(
        found,
        "Thresholds",
        facts,
        not_proved=not_proved,
        numbers=numbers,
        charts=charts,
        warnings=warnings,
    )


def _selected(found: Threshold) -> float | None:
    """The share of rows that is selected, where one threshold decides that."""
    for cut in found.cuts:
        decides = len(found.cuts) == 1 or (cut.target == "precision" and cut.segment is None)
        if decides and cut.selected is not None:
            return cut.selected.value
    return None


def decision_page(guarantee: Guarantee, found: Decisions, facts: Mapping[str, str]) -> str:
    """The page of `calibrant decide`."""
    rows = np.zeros(found.action.size, dtype=np.int64) if found.rows is None else found.rows
    known = int(rows.sum())
    figure = decision_chart(guarantee, found.action, rows, found.break_even)
    numbers = [
        ("Rows", f"{known:,}", "with a decision"),
        *((name.capitalize(), f"{count:,}", "rows") for name, count in found.counts.items()),
        ("Break-even rate", nearest(found.break_even), "acting and not acting cost the same"),
    ]
    if known:
        between = f"per row ({limits(found.cost_lower, found.cost_upper)})"
        numbers.append(("Expected cost", nearest(found.cost), between))
    not_proved = "" if guarantee.is_proved else "Not proved"
    charts = [Chart("Regions", [figure])]
    return result_page(
        found, "Decisions", facts, not_proved=not_proved, numbers=numbers, charts=charts
    )


def models_page(
    found: ModelComparison,
    tables: Mapping[str, ReliabilityTable],
    level: float,
    facts: Mapping[str, str],
    scale: str = "linear",
    warnings: Sequence[str] = (),
) -> str:
    """The page of `calibrant compare-models`.

    The intervals of all `tables` hold at once at `level`.
    """
    figures: list[Figure] = []
    for measure in dict.fromkeys(one.measure for one in found.differences):
        pairs = [
            (f"{name_of(one.first)} minus {name_of(one.second)}", one.value, one.lower, one.upper)
            for one in found.differences
            if one.measure == measure
        ]
        chart = differences_chart(
            pairs[:_MOST_FIGURES], f"Differences in {measure}", f"pairs-{len(figures) + 1}"
        )
        figures.append(chart)
    charts = [
        Chart(
            "Reliability",
            [models_chart(tables, scale)],
            f"Intervals: {percent(level)}, all bins and models at once.",
        ),
        Chart("Paired differences", figures),
    ]
    numbers = [
        ("Confidence", percent(found.confidence_level), "in all differences called proved"),
        ("Models", f"{len(found.models):,}", "on the same rows"),
        ("Rows", f"{found.n_rows:,}", "compared"),
    ]
    not_proved = "Open" if found.best is None else ""
    title = "Which model is better?"
    return result_page(
        found,
        title,
        facts,
        not_proved=not_proved,
        numbers=numbers,
        charts=charts,
        warnings=warnings,
    )


def _left_out(count: int, noun: str) -> str:
    return f"{count:,} more {noun}s are left out." if count > 0 else ""
