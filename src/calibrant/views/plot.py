"""Reliability diagrams with simultaneous intervals, drawn by matplotlib."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._numbers import counted, percent, rows
from calibrant._optional import needed
from calibrant._typing import ArrayLike, FloatArray
from calibrant.calibrators.base import ScoreCalibrator
from calibrant.errors import InvalidTypeError
from calibrant.guarantee import Guarantee
from calibrant.metrics import ReliabilityTable, reliability_table
from calibrant.monotone import MonotoneBand
from calibrant.partition import ScorePartition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from calibrant.classifier import CalibratedClassifier

# Blue and vermilion of the Okabe-Ito palette: they differ for every kind of colour vision, and in grey.
_PROMISED = "#0072B2"
_OBSERVED = "#D55E00"
_BAND = "#009E73"  # bluish green of the same palette
_QUIET = "0.55"
_STRIP = 0.18  # height of the histogram strip, as a share of the range of rates
_MARGIN = 0.02


def new_axes(width: float, height: float) -> "Axes":
    """Axes in a new figure of pyplot, or an error that names the extra that installs matplotlib."""
    plt = needed("matplotlib.pyplot", "plot", "plots are drawn")
    axes: Axes = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def without_frame(ax: "Axes") -> None:
    """Leave only the axes at the left and at the bottom."""
    ax.spines[["top", "right"]].set_visible(False)


class ReliabilityDisplay:
    """A reliability diagram: scores on one axis, rates on the other, and intervals that hold for all bins at once.

    Make one with `from_predictions`, which shows how far scores are from observed rates, or with `from_calibrator`,
    which shows what a fitted calibrator predicts and guarantees. The constructor takes the numbers.

    Parameters
    ----------
    observed : ReliabilityTable, default=None
        Observed rates, drawn as points with their intervals as whiskers, above a histogram of the scores.
    promised : Guarantee, default=None
        Predicted values and guaranteed intervals, drawn as steps in bands.
    bounds : float array of shape (n_regions, 2), default=None
        Where each region of `promised` begins and ends.
    name : str, default=None
        Name of the model, for the legend.
    band : MonotoneBand, default=None
        Fitted; its limits for the rate at every score are drawn as a band.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from calibrant import BinningCalibrator, ReliabilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=2_000)
    >>> y = rng.uniform(size=2_000) < scores**2
    >>> calibrator = BinningCalibrator(n_bins=8).fit(scores[:1_000], y[:1_000])
    >>> ax = Figure().add_subplot()
    >>> display = ReliabilityDisplay.from_calibrator(calibrator, y[1_000:], scores[1_000:], ax=ax)
    >>> display.ax_.get_ylabel()
    'rate of class True'
    """

    ax_: "Axes"
    figure_: "Figure | SubFigure | None"

    def __init__(
        self,
        observed: ReliabilityTable | None = None,
        promised: Guarantee | None = None,
        bounds: FloatArray | None = None,
        *,
        name: str | None = None,
        band: MonotoneBand | None = None,
    ) -> None:
        if observed is None and promised is None:
            raise InvalidTypeError("ReliabilityDisplay", "get observed, promised with bounds, or both", got="neither")
        if (promised is None) != (bounds is None):
            raise InvalidTypeError("promised and bounds", "be given together", got="only one of them")
        self.observed = observed
        self.promised = promised
        self.bounds = bounds
        self.name = name
        self.band = band

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        *,
        n_bins: int | str = "auto",
        strategy: str = "quantile",
        confidence_level: float = 0.9,
        interval: str = "clopper-pearson",
        importance_weight: ArrayLike | None = None,
        weight_bound: float | None = None,
        groups: ArrayLike | None = None,
        max_group_size: int | None = None,
        pos_label: Hashable | None = None,
        monotone: bool = False,
        name: str | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw how far scores are from observed rates.

        Parameters
        ----------
        y, scores, n_bins, strategy, confidence_level, interval, pos_label
            As in `calibrant.metrics.reliability_table`.
        importance_weight, weight_bound, groups, max_group_size
            As there, for rows that count differently or belong together; not with `monotone`.
        monotone : bool, default=False
            Whether to draw the `MonotoneBand` of the same rows too: limits at every score, which assume that the rate
            does not fall. They hold at `confidence_level` by themselves. A band that the data refute is not drawn.
        name : str, default=None
            Name of the model, for the legend.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        table = reliability_table(
            y,
            scores,
            n_bins=n_bins,
            strategy=strategy,
            confidence_level=confidence_level,
            interval=interval,
            importance_weight=importance_weight,
            weight_bound=weight_bound,
            groups=groups,
            max_group_size=max_group_size,
            pos_label=pos_label,
        )
        band = None
        if monotone:
            if importance_weight is not None or groups is not None:
                raise InvalidTypeError("monotone", "be False with importance weights or groups", got="True")
            band = MonotoneBand(confidence_level=confidence_level, pos_label=pos_label).fit(scores, y)
        return cls(table, name=name, band=band).plot(ax)

    @classmethod
    def from_calibrator(
        cls,
        calibrator: "ScoreCalibrator | CalibratedClassifier",
        y: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        max_group_size: int | None = None,
        name: str | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw what a fitted calibrator predicts and guarantees and, if given, the rates of other rows.

        Parameters
        ----------
        calibrator : calibrator or CalibratedClassifier
            Fitted, on bins of one score.
        y, scores : array-like of shape (n,), default=None
            Rows that the calibrator was not fitted on, of the same population. Their rates are drawn with exact
            intervals of their own, at the calibrator's confidence level: held-out rates are noisy too.
        groups, max_group_size : array-like of shape (n,), int, default=None
            Which of those rows belong together, as in `calibrant.metrics.reliability_table`.
        name : str, default=None
            Name of those rows, for the legend.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        if (y is None) != (scores is None):
            raise InvalidTypeError("y and scores", "be given together", got="only one of them")
        check_is_fitted(calibrator)
        fitted: Any = getattr(calibrator, "calibrator_", calibrator)  # of a CalibratedClassifier
        guarantee, partition = fitted.guarantee_, _bins(fitted)
        if partition is None or not isinstance(guarantee, Guarantee):
            raise InvalidTypeError(
                "calibrator",
                "have bins of the score itself, without segments",
                got=type(fitted).__name__,
                advice="draw from_predictions(y, calibrator.predict(scores)), with segments one segment at a time",
            )
        observed = None
        if y is not None and scores is not None:
            observed = reliability_table(
                y,
                scores,
                confidence_level=guarantee.confidence_level,
                pos_label=guarantee.positive_label,
                classes=fitted.classes_,
                groups=groups,
                max_group_size=max_group_size,
                partition=partition,
            )
        return cls(observed, guarantee, partition.bounds, name=name).plot(ax)

    def plot(self, ax: "Axes | None" = None, *, histogram: bool = True, legend: bool = True) -> Self:
        """Draw the numbers.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure. pyplot is used only for a new figure.
        histogram : bool, default=True
            Whether to draw the histogram of the scores.
        legend : bool, default=True
            Whether to draw the legend.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        self.ax_ = new_axes(5.6, 5.6) if ax is None else ax
        self.figure_ = self.ax_.figure
        left, right = self._score_limits()
        top = self._highest_rate()
        _draw_diagonal(self.ax_, left, right)
        if self.band is not None and not self.band.is_refuted_:
            _draw_band(self.ax_, self.band, left, right)
        if self.promised is not None and self.bounds is not None:
            _draw_promise(self.ax_, self.promised, np.clip(self.bounds, left, right))
        if self.observed is not None:
            _draw_observed(self.ax_, self.observed, self.name)
            if histogram:
                _draw_strip(self.ax_, self.observed, top)
        self._finish(left, right, top, strip=histogram and self.observed is not None, legend=legend)
        return self

    @property
    def _tables(self) -> list[ReliabilityTable | Guarantee]:
        return [table for table in (self.observed, self.promised) if table is not None]

    def _score_limits(self) -> tuple[float, float]:
        """Where the axis of scores begins and ends."""
        seen = [self.observed.histogram_edges] if self.observed is not None else []
        if self.bounds is not None:
            seen.append(self.bounds[np.isfinite(self.bounds)])
        values = np.concatenate(seen)
        if not values.size or (values.min() >= 0.0 and values.max() <= 1.0):
            return 0.0, 1.0
        return float(values.min()), float(values.max())

    def _highest_rate(self) -> float:
        """Where the axis of rates ends: at 1, or lower where every limit is small."""
        highest = max(float(table.upper[table.counts > 0].max(initial=0.0)) for table in self._tables)
        return 1.0 if highest == 0.0 or highest > 0.5 else 1.1 * highest

    def _finish(self, left: float, right: float, top: float, *, strip: bool, legend: bool) -> None:
        ax = self.ax_
        margin = _MARGIN * (right - left)
        ax.set_xlim(left - margin, right + margin)
        ax.set_ylim(-top * (_STRIP + _MARGIN if strip else _MARGIN), top * (1 + _MARGIN))
        ax.set_yticks([tick for tick in ax.get_yticks() if 0.0 <= tick <= top * (1 + _MARGIN)])
        ax.set_xlabel("score")
        ax.set_ylabel(f"rate of class {self._tables[0].positive_label!r}")
        without_frame(ax)
        if legend:
            ax.legend(loc="best", frameon=False, fontsize="small")


def _bins(fitted: ScoreCalibrator) -> ScorePartition | None:
    """The bins of the score itself; None for a calibrator that has none, or has them within segments."""
    if not hasattr(fitted, "partition_") or hasattr(fitted, "base_"):
        return None
    bins: ScorePartition | None = fitted.partition_.bins_by_segment.get(None)
    return bins


def _draw_diagonal(ax: "Axes", left: float, right: float) -> None:
    if left >= 0.0 and right <= 1.0:
        ax.plot([0, 1], [0, 1], color=_QUIET, linewidth=1, linestyle=(0, (4, 3)), label="rate = score")


def _draw_band(ax: "Axes", band: MonotoneBand, left: float, right: float) -> None:
    """Limits at every score: a knot counts for its own score, so that both sides of it are drawn."""
    knots = np.clip(band.knots_, left, right)
    scores = np.unique(np.concatenate([[left, right], knots, np.nextafter(knots, left), np.nextafter(knots, right)]))
    lower, upper = band.predict_interval(scores).T
    label = f"if the rate does not fall: limits at every score, {percent(band.confidence_level)}"
    ax.fill_between(scores, lower, upper, color=_BAND, alpha=0.18, linewidth=0, label=label)
    for limit in (lower, upper):
        ax.plot(scores, limit, color=_BAND, linewidth=0.9, linestyle=(0, (1, 1)))


def _draw_promise(ax: "Axes", promised: Guarantee, bounds: FloatArray) -> None:
    """Steps in bands; a region of a single score value, which has no width, becomes a whisker."""
    low, high = bounds.T
    wide = high > low
    lower, value, upper = promised.lower, promised.value, promised.upper
    label = f"guaranteed interval, {percent(promised.confidence_level)}, all bins at once"
    band: dict[str, Any] = {"align": "edge", "color": _PROMISED, "alpha": 0.22, "linewidth": 0, "label": label}
    ax.bar(low[wide], (upper - lower)[wide], (high - low)[wide], lower[wide], **band)
    steps: dict[str, Any] = {"color": _PROMISED, "linewidth": 1.8, "label": "calibrated probability"}
    ax.hlines(value[wide], low[wide], high[wide], **steps)
    single = ~wide
    if single.any():
        ax.vlines(low[single], lower[single], upper[single], color=_PROMISED, alpha=0.5, linewidth=2)
        ax.plot(low[single], value[single], color=_PROMISED, linestyle="none", marker="_", markersize=7)


def _draw_observed(ax: "Axes", observed: ReliabilityTable, name: str | None) -> None:
    seen = observed.counts > 0
    rate = observed.rate[seen]
    prefix = "observed rate" if name is None else f"{name}: observed rate"
    n_empty = int(np.count_nonzero(~seen))
    left_out = f" ({n_empty} of {counted(seen.size, 'bin')} empty)" if n_empty else ""
    ax.errorbar(
        observed.mean_score[seen],
        rate,
        yerr=np.stack([rate - observed.lower[seen], observed.upper[seen] - rate]),
        color=_OBSERVED,
        linestyle="none",
        marker="o",
        markersize=3.6,
        elinewidth=1.1,
        label=f"{prefix}, {percent(observed.confidence_level)}, all bins at once{left_out}",
        zorder=3,
    )


def _draw_strip(ax: "Axes", observed: ReliabilityTable, top: float) -> None:
    """A histogram of the scores, below the line of rate 0 and on its own scale."""
    heights = observed.histogram * (top * (_STRIP - 0.06) / observed.histogram.max())
    edges = observed.histogram_edges
    ax.bar(edges[:-1], heights, np.diff(edges), -top * _STRIP, align="edge", color="0.75", linewidth=0)
    ax.axhline(0.0, color="0.85", linewidth=0.8, zorder=0)
    note: dict[str, Any] = {"color": _QUIET, "fontsize": "x-small", "ha": "right", "va": "top"}
    ax.text(edges[-1], -top * 0.01, f"{rows(int(observed.counts.sum()))} by score", **note)
