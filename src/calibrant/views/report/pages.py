"""Short reports: what was proved about thresholds, decisions or models, as one HTML page each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._compare_models import ModelComparison
from calibrant._decide import Decisions, regions_table
from calibrant._numbers import limits, nearest, percent, rows
from calibrant._text import TextTable, sentence
from calibrant._threshold import Threshold
from calibrant._typing import CodeArray, FloatArray
from calibrant.guarantee import Guarantee
from calibrant.metrics import ReliabilityTable
from calibrant.views.report.charts import decision_chart, differences_chart, models_chart, threshold_chart
from calibrant.views.report.figures import Figure
from calibrant.views.report.wording import name_of, region_name

_MOST_CHARTS, _MOST_LINES = 12, 400


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def of(cls, caption: str, table: TextTable) -> "Table":
        """The first lines of a table."""
        return cls(caption, table.heads, table.rows[:_MOST_LINES])


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page under one heading."""

    title: str
    charts: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    text: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that a short report shows."""

    title: str
    eyebrow: str
    kind: str
    label: str
    verdict: str
    detail: str
    numbers: Sequence[tuple[str, str, str]]
    sections: Sequence[Section]
    assumed: Sequence[str]
    facts: Sequence[tuple[str, str]]


def threshold_page(
    found: Threshold, rows_of: Callable[[object], tuple[FloatArray, CodeArray]], facts: Mapping[str, str]
) -> Page:
    """The page of `calibrant threshold`. `rows_of` gives scores and labels of a segment, for the curves."""
    kept = [cut for cut in found.cuts if cut.threshold is not None]
    segments = list(dict.fromkeys(cut.segment for cut in found.cuts))
    charts = []
    for number, segment in enumerate(segments[:_MOST_CHARTS], start=1):
        scores, codes = rows_of(segment)
        name = "Every threshold" if segment is None else name_of(segment)
        if scores.size:
            charts.append(threshold_chart(f"threshold-{number}", name, found, segment, scores, codes))
    table = Table.of("Each target and its threshold", found.table(name_of, every=True))
    drawn = f"{found.n_drawn:,} chose what to test, not counted" if found.n_drawn else "all counted"
    numbers = [
        ("Confidence", percent(found.confidence_level), "in all targets at once"),
        ("Proved", f"{len(kept)} of {len(found.cuts)}", "targets"),
        ("Rows", f"{found.n_rows:,}", drawn),
    ]
    selecting = [cut for cut in kept if len(found.cuts) == 1 or (cut.target == "precision" and cut.segment is None)]
    if len(selecting) == 1 and selecting[0].selected is not None:
        numbers.append(("Selected", nearest(selecting[0].selected.value), "of the rows"))
    kind, label = ("right", "Proved") if len(kept) == len(found.cuts) else ("open", "Not proved")
    sections = [
        Section("Thresholds and what they select", charts, remark=_left_out(len(segments), len(charts), "segment")),
        Section("The numbers", (), [table], remark=found.on_limits),
    ]
    assumed = [sentence(text) for text in found.assumptions]
    return Page("Thresholds", "Threshold report", kind, label, found.sentence(), "", numbers, sections,
                assumed, [*facts.items()])  # fmt: skip


def decision_page(guarantee: Guarantee, found: Decisions, facts: Mapping[str, str]) -> Page:
    """Return the page of `calibrant decide`."""
    actions, action = found.counts, found.action
    said = ", ".join(f"{name}: {count:,}" for name, count in actions.items())
    counts = np.zeros(action.size, dtype=np.int64) if found.rows is None else found.rows
    known = int(counts.sum())
    cost = nearest(found.cost) if known else "none"
    within = limits(found.cost_lower, found.cost_upper) if known else ""
    numbers = [
        ("Rows", f"{known:,}", "with a decision"),
        *((name.capitalize(), f"{count:,}", "rows") for name, count in actions.items()),
        ("Break-even rate", nearest(found.break_even), "acting and not acting cost the same"),
        ("Expected cost", cost, f"per row ({within})"),
    ]
    lines = regions_table(guarantee, found, counts, region_name)
    remark = "Nothing is proved for a single row. Regions of 'cannot tell' are decided by the middle of their interval."
    caption = f"All intervals hold at once with {percent(guarantee.confidence_level)} confidence"
    table = Table.of(caption, lines)
    remark += _left_out(len(lines.rows), len(table.rows), "region")
    sections = [
        Section("Regions", [decision_chart(guarantee, action, counts, found.break_even)]),
        Section("The numbers", (), [table], remark=remark),
    ]
    assumed = [*map(sentence, guarantee.assumptions), "These rows are drawn like those that the guarantee is about."]
    proved = guarantee.is_proved
    kind, label = ("right", "Proved") if proved else ("open", "Not proved")
    detail = "" if proved else sentence(f"nothing is proved: {guarantee.caveat}")
    return Page("Decisions", "Decision report", kind, label, f"Of {rows(known)}, {said}.", detail, numbers,
                sections, assumed, [*facts.items()])  # fmt: skip


def models_page(
    found: ModelComparison,
    tables: Mapping[str, ReliabilityTable],
    level: float,
    facts: Mapping[str, str],
    scale: str = "linear",
) -> Page:
    """The page of `calibrant compare-models`. The intervals of all `tables` hold at once at `level`."""
    charts: list[Figure] = []
    for measure in dict.fromkeys(one.measure for one in found.differences):
        pairs = [(f"{name_of(one.first)} minus {name_of(one.second)}", one.value, one.lower, one.upper)
                 for one in found.differences if one.measure == measure][:_MOST_CHARTS]  # fmt: skip
        charts.append(differences_chart(pairs, f"Differences in {measure}", f"pairs-{len(charts) + 1}"))
    clipped = f"For the log loss, probabilities are clipped to [{found.clip:g}, {1 - found.clip:g}]. ECE has no limits."
    pairs_table = Table.of("All limits called proved hold at once", found.differences_table(name_of))
    each = Table.of("On these rows", found.models_table(name_of))
    level_told = f"Intervals: {percent(level)}, all bins and models at once."
    sections = [
        Section("Reliability", [models_chart(tables, scale)], remark=level_told),
        Section("Paired differences", charts, [pairs_table]),
        Section("Each model", (), [each], remark=clipped),
    ]
    best = found.best is not None
    numbers = [
        ("Confidence", percent(found.confidence_level), "in all differences called proved"),
        ("Models", f"{len(found.models)}", "on the same rows"),
        ("Rows", f"{found.n_rows:,}", "compared"),
    ]
    return Page("Which model is better?", "Comparison of models", "right" if best else "open",
                "Proved" if best else "Open", sentence(found.verdict), "", numbers, sections,
                [sentence(text) for text in found.assumptions], [*facts.items()])  # fmt: skip


def _left_out(total: int, shown: int, noun: str) -> str:
    return f" {total - shown:,} more {noun}s are left out." if total > shown else ""
