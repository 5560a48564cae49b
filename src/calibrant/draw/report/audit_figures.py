"""The figures in the report of an audit: scores before and after calibration."""

from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.assess.audit.findings import AuditTable
from calibrant.calibrators.regions.region_calibrator import score_bins
from calibrant.draw.curve import predicted_curve, predicted_ends
from calibrant.draw.difference import scores_crowd
from calibrant.draw.report.charts import curve_chart
from calibrant.draw.report.figures import Figure, audit_figure, guarantee_figure
from calibrant.draw.report.gaps import difference_figure
from calibrant.draw.report.histogram import MOST_BARS
from calibrant.draw.report.inputs import Inputs
from calibrant.draw.report.segment_rows import finest
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.kinds import is_guarantee
from calibrant.text.numbers import counted


def guaranteed_limits(inputs: Inputs) -> FloatArray | None:
    """Where each region of the model begins and ends, and its limits, for comparison with each
    period.

    None without periods, and for a model whose regions are not regions of one score.
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
        thresholds=inputs.thresholds,
    )
    if drawn.size == every.size:
        return figure
    return figure.with_notes(
        f"The figure shows {drawn.size:,} coarser regions in place of the {every.size:,} finest."
    )


def gap_figure(inputs: Inputs, most: int) -> Figure | None:
    """Observed rate minus score, spaced by rows, if scores crowd at one end of the axis."""
    table = inputs.audit.table
    chosen = finest(table, table.blocks[0], most)
    counts = table.counts[chosen]
    if not scores_crowd(table.mean_score[chosen], counts, 0.0, 1.0):
        return None
    return difference_figure("gaps", table, chosen)


def after_figure(inputs: Inputs, most: int) -> Figure | None:
    """The guarantee after calibration, or an audit of calibrated scores on other rows."""
    guarantee = inputs.guarantee
    after = inputs.audit_after
    scale = inputs.scale
    checked = (
        None if after is None else (after.table, finest(after.table, after.table.blocks[0], most))
    )
    if is_guarantee(guarantee):
        return guaranteed_figure(guarantee, inputs.calibrator, most, scale, checked)
    if after is None or checked is None:
        return None
    name = "Other scores, on other rows" if guarantee is None else "After calibration"
    return audit_figure("after", name, after, checked[1], x_label="calibrated score", scale=scale)


def guaranteed_figure(
    guarantee: Guarantee,
    calibrator: Any,
    most: int,
    scale: str = "linear",
    checked: tuple[AuditTable, IndexArray] | None = None,
) -> Figure | None:
    """The guaranteed interval of each region, with an audit drawn over it; None if no region has
    rows.
    """
    seen = np.flatnonzero(guarantee.counts > 0)
    chosen = largest(guarantee.radius, seen, most)
    if chosen.size == 0:
        return None
    ends = None if calibrator is None else ends_of_regions(calibrator)
    figure = guarantee_figure("after", "After calibration", guarantee, chosen, checked, scale, ends)
    if seen.size > chosen.size:
        drawn = f"The figure shows {chosen.size:,} of {seen.size:,} regions"
        figure = figure.with_notes(f"{drawn}, the ones with the widest intervals.")
    if n_empty := guarantee.counts.size - seen.size:
        are = "is" if n_empty == 1 else "are"
        regions = counted(n_empty, "region without rows", "regions without rows")
        figure = figure.with_notes(f"{regions} {are} not shown: the interval there is 0 to 1.")
    return figure


def curve_figure(guarantee: Guarantee, calibrator: Any) -> Figure | None:
    """The calibrated probability of every score, over the guaranteed intervals of the regions.

    None for bins, which predict one value each, and if the regions are not regions of one score.
    """
    fitted = getattr(calibrator, "calibrator_", calibrator)  # unwrap a CalibratedClassifier
    bins = score_bins(fitted)
    if bins is None or getattr(fitted, "score_range_seen_", None) is None:
        return None
    curve = predicted_curve(fitted, bins.bounds, -np.inf, np.inf)
    if curve is None:
        return None
    limits = np.column_stack([bins.bounds, guarantee.lower, guarantee.upper])
    return curve_chart(curve, limits)


def ends_of_regions(calibrator: Any) -> FloatArray | None:
    """The predictions of a curve at both ends of each region; None for bins, and with segments."""
    fitted = getattr(calibrator, "calibrator_", calibrator)  # unwrap a CalibratedClassifier
    bins = score_bins(fitted)
    return None if bins is None else predicted_ends(fitted, bins.bounds)


def largest(values: FloatArray, at: IndexArray, most: int) -> IndexArray:
    """The `most` indices in `at` with the largest values, in their original order."""
    return at if at.size <= most else np.sort(at[np.argsort(-values[at], kind="stable")[:most]])
