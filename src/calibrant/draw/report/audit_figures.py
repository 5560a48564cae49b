"""The figures in the report of an audit: scores before and after calibration."""

from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.assess.audit.findings import AuditTable
from calibrant.calibrators.regions.region_calibrator import score_bins
from calibrant.draw.curve import predicted_curve, predicted_ends
from calibrant.draw.difference import differences_from, scores_crowd
from calibrant.draw.report.figures import (
    Figure,
    audit_figure,
    audit_texts,
    finest,
    guarantee_figure,
    marks_at,
    rows_at,
)
from calibrant.draw.report.histogram import MOST_BARS
from calibrant.draw.report.page import Inputs
from calibrant.draw.report.picture_figure import picture_figures
from calibrant.draw.report.scales import Frame, axes_in
from calibrant.guarantee.guarantee import Guarantee, is_guarantee
from calibrant.text.numbers import counted
from calibrant.text.picture import Drawn, Picture

_WIDE = Frame(480, 300, 56, 468, 34, 254, margin=6.0)


def guaranteed_limits(inputs: Inputs) -> FloatArray | None:
    """Where each region of the model begins and ends, and its limits, for comparison with each
    period.

    None without periods, for a model whose regions are not regions of one score, and for a
    classifier: its regions divide other scores than those that it predicts.
    """
    guarantee = inputs.guarantee
    bins = score_bins(inputs.calibrator)
    if inputs.period is None or bins is None or not is_guarantee(guarantee):
        return None
    return np.column_stack([bins.bounds, guarantee.lower, guarantee.upper])


def before_figure(inputs: Inputs, most: int) -> Figure:
    """Scores before calibration, against observed rates."""
    audit = inputs.audit
    every, drawn, bars = (
        finest(audit.table, audit.table.blocks[0], limit) for limit in (None, most, MOST_BARS)
    )
    figure = audit_figure(
        "before",
        "Scores as they are",
        audit,
        drawn,
        histogram=inputs.histogram,
        bar_rows=bars,
        scale=inputs.scale,
    )
    if drawn.size == every.size:
        return figure
    return figure.with_notes(
        f"The figure shows {drawn.size:,} coarser regions in place of the {every.size:,} finest."
    )


def gap_figure(inputs: Inputs, most: int) -> Figure | None:
    """Observed rate minus mean score, if scores crowd in a small part of the axis: regions are side
    by side, each as wide as its share of rows.
    """
    table = inputs.audit.table
    chosen = finest(table, table.blocks[0], most)
    counts = table.counts[chosen]
    if not scores_crowd(table.mean_score[chosen], counts, 0.0, 1.0):
        return None
    part = rows_at(table, chosen[counts > 0])
    part = rows_at(part, part.mean_score.argsort(kind="stable"))
    found = differences_from(part.counts, part.mean_score, part.rate, part.lower, part.upper)
    ends = [*found.lower.tolist(), *found.upper.tolist(), 0.0]
    axes = axes_in(_WIDE, (0.0, 1.0), (min(ends), max(ends)), units=("share", "points"))
    text = (
        "Observed rate minus mean score in each region, with limits for the true rate minus the"
        " mean score, for all regions simultaneously. The regions are side by side, from the lowest"
        " scores to the highest, each as wide as its share of the rows."
    )
    columns = (found.middle, found.value, found.upper, found.lower)
    title = "{verdict}: mean score {mean}, observed rate {rate}"
    marks = marks_at(axes, columns, audit_texts(part), title)
    labels = ("share of rows, from the lowest score", "rate minus score, points")
    name = "Observed minus predicted"
    return Figure("gaps", name, text, _WIDE, axes, *labels, False, marks=marks, level=0.0)


def after_figure(inputs: Inputs, most: int) -> Figure | None:
    """The guarantee after calibration, or an audit of calibrated scores on other rows."""
    guarantee = inputs.guarantee
    after = inputs.audit_after
    checked = (
        None if after is None else (after.table, finest(after.table, after.table.blocks[0], most))
    )
    if is_guarantee(guarantee):
        return guaranteed_figure(guarantee, inputs, most, checked)
    if after is None or checked is None:
        return None
    name = "Other scores, on other rows" if guarantee is None else "After calibration"
    how: dict[str, Any] = {"x_label": "calibrated score", "scale": inputs.scale}
    return audit_figure("after", name, after, checked[1], **how)


def guaranteed_figure(
    guarantee: Guarantee,
    inputs: Inputs,
    most: int,
    checked: tuple[AuditTable, IndexArray] | None = None,
) -> Figure | None:
    """The guaranteed interval of each region, with an audit drawn over it; None if no region has
    rows.
    """
    seen = np.flatnonzero(guarantee.counts > 0)
    chosen = largest(guarantee.radius, seen, most)
    if chosen.size == 0:
        return None
    bins = score_bins(inputs.fitted)
    ends = None if bins is None else predicted_ends(inputs.fitted, bins.bounds)
    figure = guarantee_figure(guarantee, chosen, checked, inputs.scale, ends)
    if seen.size > chosen.size:
        drawn = f"The figure shows {chosen.size:,} of {seen.size:,} regions"
        figure = figure.with_notes(f"{drawn}, the ones with the widest intervals.")
    if n_empty := guarantee.counts.size - seen.size:
        are = "is" if n_empty == 1 else "are"
        regions = counted(n_empty, "region without rows", "regions without rows")
        figure = figure.with_notes(f"{regions} {are} not shown: the interval there is 0 to 1.")
    return figure


def curve_figure(guarantee: Guarantee, fitted: Any) -> Figure | None:
    """The calibrated probability of every score, over the guaranteed intervals of the regions.

    None for bins, which predict one value each, and if the regions are not regions of one score.
    """
    bins = score_bins(fitted)
    if bins is None or getattr(fitted, "score_range_seen_", None) is None:
        return None
    curve = predicted_curve(fitted, bins.bounds, -np.inf, np.inf)
    if curve is None:
        return None
    ends = np.clip(bins.bounds, curve[0, 0], curve[-1, 0])
    strip = Drawn(
        "true rate, guaranteed",
        ends.ravel().tolist(),
        np.repeat(guarantee.value, 2).tolist(),
        np.repeat(guarantee.lower, 2).tolist(),
        np.repeat(guarantee.upper, 2).tolist(),
        kind="band",
    )
    line = Drawn("calibrated probability", curve[:, 0].tolist(), curve[:, 1].tolist(), kind="line")
    text = (
        "The calibrated probability of each score. Each strip holds the true rate of a score range,"
        " with the stated confidence for all together."
    )
    picture = Picture("The curve", text, "score", "probability", (strip, line))
    return picture_figures([picture])[0]


def largest(values: FloatArray, at: IndexArray, most: int) -> IndexArray:
    """The `most` indices in `at` with the largest values, in their original order."""
    return at if at.size <= most else np.sort(at[np.argsort(-values[at], kind="stable")[:most]])
