"""A reliability diagram, drawn from its numbers with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant._typing import FloatArray
from calibrant.assess.metrics.reliability import (
    ReliabilityTable,
)
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.draw.axes import (
    STRIP,
    has_marks_at_upper_left,
    highest_rate,
    logit_limits,
    rate_label,
    score_limits,
    set_limits,
)
from calibrant.draw.diagram import (
    Display,
    Thresholds,
    draw_diagonal,
    draw_legend,
    draw_strip,
    draw_thresholds,
    drawn_band,
    drawn_guarantee,
    drawn_rates,
    panel_below,
    rates_label,
)
from calibrant.draw.difference import (
    draw_differences,
    guarantee_differences,
    table_crowds,
    table_differences,
)
from calibrant.draw.style import OBSERVED, QUIET, SCALES
from calibrant.errors import InvalidTypeError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.params.rules import Choice, Flag, Only
from calibrant.text.numbers import percent
from calibrant.text.picture import Drawn, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ReliabilityPlot(Display):
    """Observed rates, a guarantee, or both, and how they are drawn.

    See `calibrant.ReliabilityDisplay`, which also makes one from rows or a calibrator.
    """

    def __init__(
        self,
        observed: ReliabilityTable | Mapping[str, ReliabilityTable] | None = None,
        guarantee: Guarantee | None = None,
        bounds: FloatArray | None = None,
        *,
        curve: FloatArray | None = None,
        name: str | None = None,
        band: MonotoneBand | None = None,
        confidence_level: float | None = None,
    ) -> None:
        if observed is None and guarantee is None:
            raise InvalidTypeError(
                "ReliabilityDisplay",
                "get observed, guarantee with bounds, or both",
                got="neither",
            )
        if (guarantee is None) != (bounds is None):
            raise InvalidTypeError(
                "guarantee and bounds", "be given together", got="only one of them"
            )
        self.models = dict(observed) if isinstance(observed, Mapping) else {}
        self.observed = None if isinstance(observed, Mapping) else observed
        self.guarantee = guarantee
        self.bounds = bounds
        self.curve = curve
        self.name = name
        self.band = band
        self.confidence_level = confidence_level
        self.facts = ""
        self.difference_ax_: Axes | None = None

    def plot(
        self,
        ax: Axes | None = None,
        *,
        histogram: bool = True,
        legend: bool = True,
        scale: str = "linear",
        thresholds: Thresholds = None,
        difference: bool | str = "auto",
    ) -> Self:
        """Draw the numbers.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure. pyplot is used only for a new figure.
        histogram : bool, default=True
            Whether to draw the histogram of the scores.
        legend : bool, default=True
            Whether to draw the legend.
        scale : {"linear", "logit"}, default="linear"
            The scale of both axes. "logit" suits rare events: it shows rates such as 0.001 and 0.01
            apart. It has no histogram.
        thresholds : Threshold, or mapping of names to scores, default=None
            Thresholds to mark by lines; those of a `Threshold` are shown with what happens to the
            rows between them.
        difference : bool or "auto", default="auto"
            Whether to draw a second panel, for one model: observed rate minus prediction with its
            limits, which hold for all bins simultaneously, like those of the rates. Its bins are
            drawn side by side, each as wide as its share of the rows. "auto" draws it in a new
            figure if more than half of the rows have scores in one fifth of the axis. This rule
            depends only on the scores.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        Choice(SCALES).check("scale", scale)
        (Flag() | Only("auto")).check("difference", difference)
        logit = scale == "logit"
        left, right = score_limits(self._observed, self.bounds)
        top = highest_rate(self._drawn)
        if logit:
            left, right = logit_limits(self._observed, self.guarantee)
            top = 1.0
        both = self._wants_difference(difference, left, right, logit=logit, new=ax is None)
        self._begin(ax, 5.6, (5.6 if thresholds is None else 6.9) + (2.4 if both else 0.0))
        strip = histogram and not logit and self.observed is not None
        draw_diagonal(self.ax_, left, right, scale)
        gap = 0.0 if logit else 0.006 * (right - left)
        self._picture(left, right, gap).plot(self.ax_)
        if strip and self.observed is not None:
            draw_strip(self.ax_, self.observed, top)
        set_limits(self.ax_, left, right, top, strip=strip, logit=logit)
        self._write_titles(strip)
        if thresholds is not None:
            draw_thresholds(self.ax_, thresholds)
        if legend:
            marks_in_corner = has_marks_at_upper_left(self._observed, left, right)
            draw_legend(self.ax_, below=thresholds is not None or top < 1.0 or marks_in_corner)
        elif (drawn := self.ax_.get_legend()) is not None:
            drawn.remove()
        if both:
            self._draw_difference()
        return self

    def _wants_difference(
        self, difference: bool | str, left: float, right: float, *, logit: bool, new: bool
    ) -> bool:
        """Whether there is a second panel."""
        if self.models:
            return False
        if difference != "auto":
            return bool(difference)
        table = self.observed
        return new and not logit and table is not None and table_crowds(table, left, right)

    def _draw_difference(self) -> None:
        """The second panel, below the first."""
        self.difference_ax_ = panel_below(self.ax_)
        table = self.observed
        guaranteed = None if self.guarantee is None else guarantee_differences(self.guarantee)
        observed = None if table is None else table_differences(table, self.guarantee)
        draw_differences(self.difference_ax_, observed, guaranteed)

    def _picture(self, left: float, right: float, gap: float) -> Picture:
        """Bands behind the rates: for a monotone rate, and for the calibrator; then the rates, those
        of several models side by side.
        """
        drawn: list[Drawn] = []
        if self.band is not None and not self.band.is_refuted_:
            drawn.append(drawn_band(self.band, left, right))
        if self.guarantee is not None and self.bounds is not None:
            bounds = np.clip(self.bounds, left, right)
            drawn += drawn_guarantee(self.guarantee, bounds, self.curve)
        if self.observed is not None:
            label = rates_label(self.observed, self.name)
            drawn.append(drawn_rates(self.observed, label, OBSERVED))
        middle = (len(self.models) - 1) / 2
        for number, (name, table) in enumerate(self.models.items()):
            rates = drawn_rates(table, name, number, (number - middle) * gap)
            drawn += [rates, replace(rates, kind="line")]
        rate = rate_label(self._drawn[0].positive_label)
        return Picture("", "", "score", rate, tuple(drawn))

    def _write_titles(self, strip: bool) -> None:
        """Set the title, which explains the intervals of several models, and what
        is known of the rows as a whole.
        """
        if self.models and self.confidence_level is not None:
            title = (
                f"intervals: {percent(self.confidence_level)}, all bins and models simultaneously"
            )
            self.ax_.set_title(title, fontsize="small", color=QUIET, loc="left")
        if self.facts:
            raised = STRIP + 0.02 if strip else 0.02
            self.ax_.annotate(
                self.facts,
                (0.98, raised),
                xycoords="axes fraction",
                ha="right",
                va="bottom",
                fontsize="small",
                color=QUIET,
            )

    @property
    def _observed(self) -> list[ReliabilityTable]:
        return [table for table in (*self.models.values(), self.observed) if table is not None]

    @property
    def _drawn(self) -> list[ReliabilityTable | Guarantee]:
        """Everything with rates that is drawn: observations and the guarantee."""
        if self.guarantee is None:
            return list(self._observed)
        return [*self._observed, self.guarantee]
