"""The parts of a reliability diagram, drawn on matplotlib axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant._optional import needed
from calibrant._typing import FloatArray
from calibrant.assess.metrics.auc import delong
from calibrant.assess.metrics.independent_units import ROWS
from calibrant.assess.metrics.reliability import ReliabilityTable
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.assess.validation.measures import cox
from calibrant.draw.axes import STRIP
from calibrant.draw.style import BAND, GUARANTEED, QUIET, decided, named_cuts
from calibrant.guarantee.guarantee import Guarantee
from calibrant.text.numbers import counted, nearest, percent, rows
from calibrant.text.picture import Drawn, style_of

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


def drawn_rates(table: ReliabilityTable, name: str, style: int, shift: float = 0.0) -> Drawn:
    """Observed rates with their limits, one for each bin with rows."""
    (drawn,) = table.pictures()[0].drawn
    return replace(drawn, name=name, style=style, x=[at + shift for at in drawn.x])


def rates_label(table: ReliabilityTable, name: str | None) -> str:
    """What the observed rates of one model are called."""
    prefix = "observed rate" if name is None else f"{name}: observed rate"
    n_empty = int(np.count_nonzero(table.counts == 0))
    bins = counted(table.counts.size, "bin")
    left_out = f" ({n_empty} of {bins} empty)" if n_empty else ""
    return f"{prefix}, {percent(table.confidence_level)}, all bins simultaneously{left_out}"


def drawn_band(band: MonotoneBand, left: float, right: float) -> Drawn:
    """Limits at every score; the limits at a knot apply to its own score only, so both of its sides
    are drawn.
    """
    knots = np.clip(band.knots_, left, right)
    sides = (knots, np.nextafter(knots, left), np.nextafter(knots, right))
    scores = np.unique(np.concatenate([[left, right], *sides]))
    lower, upper = band.predict_interval(scores).T.tolist()
    label = f"if the rate does not fall: limits at every score, {percent(band.confidence_level)}"
    return Drawn(label, scores.tolist(), lower, lower, upper, kind="band", style=BAND)


def drawn_guarantee(
    guarantee: Guarantee, bounds: FloatArray, curve: FloatArray | None
) -> Iterator[Drawn]:
    """Guaranteed intervals, and inside them the curve or a step for each region.

    A region that is a single score is a mark.
    """
    low, high = bounds.T
    wide = high > low
    columns = (guarantee.value, guarantee.lower, guarantee.upper)
    if curve is None:
        x = bounds[wide].ravel()
        value, lower, upper = (np.repeat(column[wide], 2) for column in columns)
    else:
        x, value = curve.T
        radius = guarantee.radius[np.maximum(np.searchsorted(low, x, side="right") - 1, 0)]
        lower = np.maximum(value - radius, 0.0)
        upper = np.minimum(value + radius, 1.0)
    label = f"guaranteed interval, {percent(guarantee.confidence_level)}, all bins simultaneously"
    name = "calibrated probability"
    places, values, lows, highs = (one.tolist() for one in (x, value, lower, upper))
    yield Drawn(label, places, values, lows, highs, kind="band", style=GUARANTEED)
    yield Drawn(name, places, values, kind="line", style=GUARANTEED)
    if not wide.all():
        places, values, lows, highs = (one[~wide].tolist() for one in (low, *columns))
        yield Drawn(name, places, values, lows, highs, style=GUARANTEED)


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
