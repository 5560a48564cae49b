"""The parts of a reliability diagram, drawn on matplotlib axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant._optional import needed
from calibrant._typing import BoolArray, FloatArray
from calibrant.assess.metrics.auc import delong
from calibrant.assess.metrics.independent_units import ROWS
from calibrant.assess.metrics.reliability import ReliabilityTable
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.assess.validation.measures import cox
from calibrant.draw.axes import STRIP
from calibrant.draw.style import (
    BAND,
    GUARANTEED,
    OBSERVED,
    QUIET,
    decided,
    named_cuts,
    style_of,
)
from calibrant.guarantee.guarantee import Guarantee
from calibrant.text.numbers import counted, nearest, percent, rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Thresholds: TypeAlias = Threshold | Mapping[str, float] | None
"""Thresholds to mark in a diagram."""
_SPANS: dict[str, Any] = {
    "selected": {"color": "0.5", "alpha": 0.12},
    "referred to a person": {"facecolor": "none", "edgecolor": "0.8", "hatch": "///"},
}


def measures_of(y: Any, scores: Any, table: ReliabilityTable) -> str:
    """The number of rows, AUC and, for probabilities, Cox's slope and intercept, one in a line;
    empty for scores in columns.
    """
    values = np.asarray(scores, dtype=np.float64)
    codes = (np.asarray(y) == table.positive_label).astype(np.uint8)
    if values.ndim != 1 or not 0 < codes.sum() < codes.size:
        return ""
    area = float(delong(codes, [values])[0][0])
    facts = [rows(codes.size), f"AUC {nearest(area)}"]
    if values.min() >= 0.0 and values.max() <= 1.0:
        slope, intercept, _ = cox(codes, values, 0.1, ROWS)
        measures = {"slope": slope.value, "intercept": intercept.value}
        facts += [f"{name} {value:.2f}" for name, value in measures.items() if np.isfinite(value)]
    return "\n".join(facts)


class Display:
    """A plot: its axes and figure."""

    ax_: Axes
    figure_: Figure | SubFigure | None

    def _begin(self, ax: Axes | None, width: float, height: float) -> Axes:
        """Use these axes, or those of a new figure."""
        self.ax_ = new_axes(width, height) if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_


def new_axes(width: float, height: float) -> Axes:
    """Axes in a new pyplot figure, or an error that says how to install matplotlib."""
    plt = needed("matplotlib.pyplot", "plot", "plots are drawn")
    axes: Axes = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def panel_below(ax: Axes) -> Axes:
    """New axes below these, which share their space."""
    place = ax.get_subplotspec()
    if place is None:
        return ax.inset_axes((0.0, -0.55, 1.0, 0.35))
    parts: Any = place.subgridspec(2, 1, height_ratios=(2.4, 1.0))
    ax.set_subplotspec(parts[0])
    return ax.figure.add_subplot(parts[1])


def without_frame(ax: Axes) -> None:
    """Keep only the left and bottom spines."""
    ax.spines[["top", "right"]].set_visible(False)


def draw_diagonal(ax: Axes, left: float, right: float, scale: str) -> None:
    """Draw the line where rate and score agree, if scores are probabilities."""
    if left >= 0.0 and right <= 1.0:
        ends = [left, right] if scale == "logit" else [0, 1]
        ax.plot(
            ends,
            ends,
            color=QUIET,
            linewidth=1,
            linestyle=(0, (4, 3)),
            label="rate = score",
        )


def draw_legend(ax: Axes, *, below: bool) -> None:
    """Draw the legend, where it covers least or below the plot."""
    place: dict[str, Any] = {"loc": "best"}
    if below:
        place = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.12)}
    ax.legend(frameon=False, fontsize="small", **place)


def draw_thresholds(ax: Axes, thresholds: Threshold | Mapping[str, float]) -> None:
    """Draw lines at thresholds, named in the legend.

    For a Threshold, also mark what happens to the rows on either side.
    """
    marks = dict(thresholds) if isinstance(thresholds, Mapping) else named_cuts(thresholds.cuts)
    left, right = ax.get_xlim()
    for number, (name, cut) in enumerate(marks.items()):
        dash = style_of(number).dash
        ax.axvline(
            cut,
            color="0.15",
            linewidth=1.2,
            linestyle=dash,
            zorder=2.5,
            label=f"{name}: {nearest(cut)}",
        )
    if not isinstance(thresholds, Mapping):
        for name, span in decided(thresholds, left, right).items():
            ax.axvspan(*span, **_SPANS[name], linewidth=0, zorder=0, label=name)
    ax.set_xlim(left, right)


def draw_model(
    ax: Axes,
    table: ReliabilityTable,
    name: str,
    number: int,
    floor: float | None,
    shift: float,
) -> None:
    """Draw the rates of one of several models, with its own line and markers, and whiskers side by
    side.
    """
    style = style_of(number)
    seen = table.counts > 0
    order = np.argsort(table.mean_score[seen])
    score = table.mean_score[seen][order] + shift
    rate = table.rate[seen][order]
    whiskers = _whiskers(table, seen, floor)[:, order]
    ax.errorbar(
        score,
        rate,
        yerr=whiskers,
        color=style.color,
        linestyle=style.dash,
        linewidth=1.3,
        marker=style.marker,
        markersize=4.5,
        elinewidth=0.9,
        label=name,
        zorder=3,
    )


def _whiskers(table: ReliabilityTable, seen: BoolArray, floor: float | None) -> FloatArray:
    """Distances from each rate to its lower and its upper limit.

    On the logit scale, limits of 0 and 1 are clipped.
    """
    low = table.lower[seen]
    high = table.upper[seen]
    if floor is not None:
        low = np.maximum(low, floor / 10)
        high = np.minimum(high, 1.0 - floor / 10)
    rate = table.rate[seen]
    return np.maximum(np.stack([rate - low, high - rate]), 0.0)


def draw_band(ax: Axes, band: MonotoneBand, left: float, right: float) -> None:
    """Draw limits at every score; the limits at a knot apply to its own score only, so both of its
    sides are drawn.
    """
    knots = np.clip(band.knots_, left, right)
    scores = np.unique(
        np.concatenate(
            [[left, right], knots, np.nextafter(knots, left), np.nextafter(knots, right)]
        )
    )
    lower, upper = band.predict_interval(scores).T
    label = f"if the rate does not fall: limits at every score, {percent(band.confidence_level)}"
    ax.fill_between(scores, lower, upper, color=BAND, alpha=0.18, linewidth=0, label=label)
    for limit in (lower, upper):
        ax.plot(scores, limit, color=BAND, linewidth=0.9, linestyle=(0, (1, 1)))


def draw_guarantee(
    ax: Axes, guarantee: Guarantee, bounds: FloatArray, curve: FloatArray | None = None
) -> None:
    """Draw bands, and inside them the curve or a step for each region.

    A region of a single score value has no width and becomes a whisker.
    """
    low, high = bounds.T
    wide = high > low
    lower = guarantee.lower
    value = guarantee.value
    upper = guarantee.upper
    label = f"guaranteed interval, {percent(guarantee.confidence_level)}, all bins simultaneously"
    band: dict[str, Any] = {
        "color": GUARANTEED,
        "alpha": 0.22,
        "linewidth": 0,
        "label": label,
    }
    steps: dict[str, Any] = {
        "color": GUARANTEED,
        "linewidth": 1.8,
        "label": "calibrated probability",
    }
    if curve is None:
        ax.bar(
            low[wide], (upper - lower)[wide], (high - low)[wide], lower[wide], align="edge", **band
        )
        ax.hlines(value[wide], low[wide], high[wide], **steps)
    else:
        ax.fill_between(curve[:, 0], *_around(curve, low, guarantee.radius), **band)
        ax.plot(*curve.T, **steps)
    single = ~wide
    if single.any():
        ax.vlines(
            low[single],
            lower[single],
            upper[single],
            color=GUARANTEED,
            alpha=0.5,
            linewidth=2,
        )
        ax.plot(
            low[single],
            value[single],
            color=GUARANTEED,
            linestyle="none",
            marker="_",
            markersize=7,
        )


def _around(
    curve: FloatArray, low: FloatArray, radius: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The curve, less and plus the bound of the region that each of its points lies in."""
    scores, values = curve.T
    bound = radius[np.maximum(np.searchsorted(low, scores, side="right") - 1, 0)]
    return np.maximum(values - bound, 0.0), np.minimum(values + bound, 1.0)


def draw_points(
    ax: Axes, x: FloatArray, y: FloatArray, whiskers: FloatArray, label: str | None = None
) -> None:
    """Draw observed rates, or their differences, with their limits."""
    ax.errorbar(
        x,
        y,
        yerr=whiskers,
        color=OBSERVED,
        linestyle="none",
        marker="o",
        markersize=3.6,
        elinewidth=1.1,
        label=label,
        zorder=3,
    )


def draw_observed(
    ax: Axes, observed: ReliabilityTable, name: str | None, floor: float | None
) -> None:
    """Draw points with whiskers, one for each bin with rows."""
    seen = observed.counts > 0
    prefix = "observed rate" if name is None else f"{name}: observed rate"
    n_empty = int(np.count_nonzero(~seen))
    left_out = f" ({n_empty} of {counted(seen.size, 'bin')} empty)" if n_empty else ""
    label = f"{prefix}, {percent(observed.confidence_level)}, all bins simultaneously{left_out}"
    whiskers = _whiskers(observed, seen, floor)
    draw_points(ax, observed.mean_score[seen], observed.rate[seen], whiskers, label)


def draw_strip(ax: Axes, observed: ReliabilityTable, top: float) -> None:
    """Draw a histogram of the scores, below rate 0 and on its own scale."""
    heights = observed.histogram * (top * (STRIP - 0.06) / observed.histogram.max())
    edges = observed.histogram_edges
    ax.bar(
        edges[:-1],
        heights,
        np.diff(edges),
        -top * STRIP,
        align="edge",
        color="0.75",
        linewidth=0,
    )
    ax.axhline(0.0, color="0.85", linewidth=0.8, zorder=0)
    note: dict[str, Any] = {
        "color": QUIET,
        "fontsize": "x-small",
        "ha": "right",
        "va": "top",
    }
    ax.text(edges[-1], -top * 0.01, f"{rows(int(observed.counts.sum()))} by score", **note)
