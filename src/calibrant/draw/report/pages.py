"""Short reports: what was proved about thresholds, decisions or models, as one HTML page each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from calibrant._typing import CodeArray, FloatArray
from calibrant.assess.compare_models.model_comparison import ModelComparison
from calibrant.assess.decide import Decisions, regions_table
from calibrant.assess.metrics.reliability import ReliabilityTable
from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.draw.report.charts import decision_chart, differences_chart, models_chart, threshold_chart
from calibrant.draw.report.figures import Figure
from calibrant.draw.report.html import rendered_page
from calibrant.draw.report.names import name_of, region_name
from calibrant.guarantee.guarantee import Guarantee
from calibrant.text.result import Result

_MOST_FIGURES = 12


def threshold_page(
    found: Threshold,
    rows_of: Callable[[object], tuple[FloatArray, CodeArray]],
    facts: Mapping[str, str],
    warnings: Sequence[str] = (),
) -> str:
    """The page of `calibrant threshold`. `rows_of` gives scores and labels of a segment, for the curves."""
    segments = list(dict.fromkeys(cut.segment for cut in found.cuts))
    figures = []
    for number, segment in enumerate(segments[:_MOST_FIGURES], start=1):
        scores, codes = rows_of(segment)
        name = "Every threshold" if segment is None else name_of(segment)
        if scores.size:
            figures.append(threshold_chart(f"threshold-{number}", name, found, segment, scores, codes))
    about = {"facts": [*facts.items()], "warnings": warnings}
    return rendered_page("threshold", found=found, figures=figures, n_segments=len(segments), **about)


def result_page(
    found: Result,
    title: str,
    verdict: str,
    facts: Mapping[str, str],
    *,
    not_proved: str = "",
    warnings: Sequence[str] = (),
) -> str:
    """The page of any result: its sentence, assumptions and notes, and its tables.

    `not_proved` is the word above the sentence where what was asked is not proved, such as "Refuted".
    """
    tables = [
        (table.name[:1].upper() + table.name[1:], replace(table, shown=table.shown or None).text(name_of))
        for table in found.tables()
    ]
    about = {"facts": [*facts.items()], "warnings": warnings, "proved": not not_proved, "not_proved": not_proved}
    return rendered_page("result", found=found, title=title, verdict=verdict, tables=tables, **about)


def decision_page(guarantee: Guarantee, found: Decisions, facts: Mapping[str, str]) -> str:
    """The page of `calibrant decide`."""
    rows = np.zeros(found.action.size, dtype=np.int64) if found.rows is None else found.rows
    figure = decision_chart(guarantee, found.action, rows, found.break_even)
    table = regions_table(guarantee, found, rows, region_name)
    about = {"facts": [*facts.items()], "warnings": ()}
    return rendered_page("decision", guarantee=guarantee, found=found, rows=rows, figure=figure, table=table, **about)


def models_page(
    found: ModelComparison,
    tables: Mapping[str, ReliabilityTable],
    level: float,
    facts: Mapping[str, str],
    scale: str = "linear",
    warnings: Sequence[str] = (),
) -> str:
    """The page of `calibrant compare-models`. The intervals of all `tables` hold at once at `level`."""
    figures: list[Figure] = []
    for measure in dict.fromkeys(one.measure for one in found.differences):
        pairs = [(f"{name_of(one.first)} minus {name_of(one.second)}", one.value, one.lower, one.upper)
                 for one in found.differences if one.measure == measure][:_MOST_FIGURES]  # fmt: skip
        figures.append(differences_chart(pairs, f"Differences in {measure}", f"pairs-{len(figures) + 1}"))
    reliability = models_chart(tables, scale)
    seed = [] if found.seed is None else [("seed", str(found.seed))]
    about = {"facts": [*facts.items(), *seed], "warnings": warnings, "level": level}
    return rendered_page("models", found=found, reliability=reliability, differences=figures, **about)
