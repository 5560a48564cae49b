"""Reliability diagrams with simultaneous intervals, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._optional import needed
from calibrant._typing import ArrayLike, FeatureRows, FloatArray, Predictor
from calibrant.assess.metrics.reliability import (
    ReliabilityTable,
    reliability_table,
    reliability_tables,
    shared_level,
)
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.calibrators.regions.region_calibrator import score_bins
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.cells.partition import Partition
from calibrant.cells.segmented_partition import segment_kinds
from calibrant.draw.axes import (
    has_marks_at_upper_left,
    highest_rate,
    logit_limits,
    score_limits,
    set_limits,
)
from calibrant.draw.curve import predicted_curve
from calibrant.draw.diagram import (
    Display,
    draw_band,
    draw_diagonal,
    draw_guarantee,
    draw_legend,
    draw_model,
    draw_observed,
    draw_strip,
    draw_thresholds,
    without_frame,
)
from calibrant.draw.style import QUIET, SCALES
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.kinds import is_guarantee
from calibrant.params.rules import Choice
from calibrant.text.numbers import percent, rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.classifier.calibrated_classifier import CalibratedClassifier


class ReliabilityDisplay(Display):
    """A reliability diagram: scores on one axis, rates on the other, and intervals that hold for
    all bins at once.

    Make one with `from_predictions`, which shows how far scores are from observed rates, or with
    `from_calibrator`, which shows what a fitted calibrator predicts and guarantees. The constructor
    takes the numbers.

    Parameters
    ----------
    observed : ReliabilityTable or mapping of names to them, default=None
        Observed rates, drawn as points with their intervals as whiskers, above a histogram of the
        scores. Of several models the points are joined by lines, and there is no histogram.
    guarantee : Guarantee, default=None
        Predicted values and guaranteed intervals, drawn as steps or a curve in bands.
    bounds : float array of shape (n_regions, 2), default=None
        Where each region of `guarantee` begins and ends.
    curve : float array of shape (n_points, 2), default=None
        Scores and what is predicted there, drawn as a curve through the bands in place of steps.
    name : str, default=None
        Name of the model, for the legend.
    band : MonotoneBand, default=None
        Fitted; its limits for the rate at every score are drawn as a band.
    confidence_level : float, default=None
        With several models, at which the intervals of all of them hold at once.

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
                "ReliabilityDisplay", "get observed, guarantee with bounds, or both", got="neither"
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

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        scores: ArrayLike | Mapping[str, ArrayLike],
        *,
        n_bins: int | str = "auto",
        partition: str | Partition = "quantile",
        confidence_level: float = 0.9,
        interval: str = "auto",
        importance_weight: ArrayLike | None = None,
        weight_bound: float | None = None,
        groups: ArrayLike | None = None,
        max_group_size: int | None = None,
        pos_label: Hashable = None,
        monotone: bool = False,
        name: str | None = None,
        scale: str = "linear",
        thresholds: Threshold | Mapping[str, float] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw how far scores are from observed rates.

        Parameters
        ----------
        y, n_bins, partition, confidence_level, interval, pos_label
            As in `calibrant.metrics.reliability_table`.
        scores : array-like of shape (n,), or mapping of names to such arrays
            Scores; of several models for one diagram. Their intervals then hold for all bins of all
            models at once.
        importance_weight, weight_bound, groups, max_group_size
            As there, for weighted or grouped rows; not with `monotone`.
        monotone : bool, default=False
            Whether to draw the `MonotoneBand` of the same rows too: limits at every score, which
            assume that the rate does not fall. They hold at `confidence_level` by themselves. A
            band that the data refute is not drawn.
        name : str, default=None
            Name of the model, for the legend.
        scale, thresholds
            As in `plot`.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        settings: dict[str, Any] = {
            "n_bins": n_bins,
            "partition": partition,
            "interval": interval,
            "importance_weight": importance_weight,
            "weight_bound": weight_bound,
            "groups": groups,
            "max_group_size": max_group_size,
            "pos_label": pos_label,
        }
        if isinstance(scores, Mapping):
            if monotone or not scores:
                rule = "be False with several models" if monotone else "name at least one model"
                raise InvalidTypeError(
                    "monotone" if monotone else "scores", rule, got="True" if monotone else "none"
                )
            models = reliability_tables(y, scores, confidence_level, **settings)
            return cls(models, confidence_level=float(confidence_level)).plot(
                ax, scale=scale, thresholds=thresholds
            )
        table = reliability_table(y, scores, confidence_level=confidence_level, **settings)
        band = None
        if monotone:
            if importance_weight is not None or groups is not None:
                raise InvalidTypeError(
                    "monotone", "be False with importance weights or groups", got="True"
                )
            band = MonotoneBand(confidence_level=confidence_level, pos_label=pos_label).fit(
                scores, y
            )
        return cls(table, name=name, band=band).plot(ax, scale=scale, thresholds=thresholds)

    @classmethod
    def from_estimator(
        cls,
        estimator: Predictor,
        X: FeatureRows,
        y: ArrayLike,
        *,
        pos_label: Hashable = None,
        **options: Any,
    ) -> Self:
        """Draw how far the probabilities of a fitted classifier are from observed rates.

        Parameters
        ----------
        estimator : classifier
            Fitted, with `predict_proba`.
        X : array-like or frame of shape (n, n_features)
            Rows that the classifier was not trained on.
        y : array-like of shape (n,)
            Their labels.
        pos_label : object, default=None
            The positive class; None is the second of the sorted classes.
        **options : dict
            As in `from_predictions`.

        Returns
        -------
        ReliabilityDisplay

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.datasets import make_classification
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = make_classification(n_samples=2_000, random_state=0)
        >>> model = GaussianNB().fit(X[:1_000], y[:1_000])
        >>> display = ReliabilityDisplay.from_estimator(model, X[1_000:], y[1_000:],
        ...     ax=Figure().add_subplot())
        >>> display.name
        'GaussianNB'
        """
        check_is_fitted(estimator)
        model: Any = estimator
        known = np.asarray(model.classes_).tolist()
        positive = known[-1] if pos_label is None else pos_label
        if len(known) != 2 or positive not in known:
            raise InvalidValueError(
                "pos_label", f"be one of two classes, {known}", got=repr(positive)
            )
        scores = np.asarray(model.predict_proba(X))[:, known.index(positive)]
        named = {"name": type(estimator).__name__, **options}
        return cls.from_predictions(y, scores, pos_label=positive, **named)

    @classmethod
    def by_segment(
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        segments: ArrayLike,
        *,
        n_bins: int | str = "auto",
        confidence_level: float = 0.9,
        pos_label: Hashable = None,
        scale: str = "linear",
        n_columns: int = 3,
    ) -> list[ReliabilityDisplay]:
        """Draw a small diagram for each segment, on one scale.

        All intervals of all segments hold at once.

        Parameters
        ----------
        y, scores, n_bins, confidence_level, pos_label
            As in `from_predictions`.
        segments : array-like of shape (n,)
            The segment of each row.
        scale : {"linear", "logit"}, default="linear"
            As in `plot`.
        n_columns : int, default=3
            Diagrams side by side.

        Returns
        -------
        list of ReliabilityDisplay
            One for each segment, in the order of their names; all have the same `figure_`.
        """
        names, number = segment_kinds(segments)
        labels = np.asarray(y)
        values = np.asarray(scores)
        if not labels.shape[:1] == values.shape[:1] == number.shape:
            rule = f"have one entry per row, {labels.shape[0]}"
            raise InvalidTypeError("segments", rule, got=f"{number.size} entries")
        classes = np.unique(labels)
        settings: dict[str, Any] = {
            "n_bins": n_bins,
            "confidence_level": shared_level(confidence_level, len(names)),
            "pos_label": pos_label,
            "classes": classes,
        }
        order = sorted(range(len(names)), key=lambda place: str(names[place]))
        shown = [
            cls(reliability_table(labels[number == place], values[number == place], **settings))
            for place in order
        ]
        plt = needed("matplotlib.pyplot", "plot", "plots are drawn")
        columns = min(n_columns, len(shown))
        n_lines = -(-len(shown) // columns)
        size = 3.1 * columns, 3.1 * n_lines + 0.4
        figure, axes = plt.subplots(
            n_lines, columns, figsize=size, squeeze=False, layout="constrained"
        )
        tables = [table for one in shown for table in one._observed]
        limits = *score_limits(tables, None), highest_rate(tables)
        for place, ax in enumerate(axes.flat):
            if place >= len(shown):
                ax.set_visible(False)
                continue
            one = shown[place]
            one.plot(ax, scale=scale, legend=False, histogram=False, limits=limits)
            ax.set_title(str(names[order[place]]), fontsize="medium", loc="left")
            ax.set_title(
                rows(int(tables[place].counts.sum())), fontsize="small", loc="right", color=QUIET
            )
            if place % columns:
                ax.set_ylabel("")
            if place + columns < len(shown):
                ax.set_xlabel("")
        said = (
            f"intervals: {percent(confidence_level)}, all bins and segments at once; dashed: rate ="
            " score"
        )
        figure.suptitle(said, fontsize="small", color=QUIET)
        return shown

    @classmethod
    def from_calibrator(
        cls,
        calibrator: ScoreCalibrator | CalibratedClassifier,
        y: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        max_group_size: int | None = None,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw what a fitted calibrator predicts and guarantees and, if given, the rates of other
        rows.

        Parameters
        ----------
        calibrator : calibrator or CalibratedClassifier
            Fitted, on bins of one score.
        y, scores : array-like of shape (n,), default=None
            Rows that the calibrator was not fitted on, of the same population. Their rates are
            drawn with exact intervals of their own, at the calibrator's confidence level: held-out
            rates are noisy too.
        groups, max_group_size : array-like of shape (n,), int, default=None
            The group of each of those rows, as in `calibrant.metrics.reliability_table`.
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
        guarantee = fitted.guarantee_
        partition = score_bins(fitted)
        if partition is None or not is_guarantee(guarantee):
            raise InvalidTypeError(
                "calibrator",
                "have bins of the score itself, without segments",
                got=type(fitted).__name__,
                advice=(
                    "draw from_predictions(y, calibrator.predict(scores)), with segments one"
                    " segment at a time"
                ),
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
        bounds = partition.bounds
        ends = score_limits([] if observed is None else [observed], bounds)
        curve = predicted_curve(fitted, bounds, *ends)
        return cls(observed, guarantee, bounds, curve=curve, name=name).plot(ax)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        histogram: bool = True,
        legend: bool = True,
        scale: str = "linear",
        thresholds: Threshold | Mapping[str, float] | None = None,
        limits: tuple[float, float, float] | None = None,
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
            Of both axes. "logit" shows rare events, with rates of 0.001 and of 0.01 apart; it has
            no histogram.
        thresholds : Threshold, or mapping of names to scores, default=None
            Marked by lines; those of a `Threshold` with what happens to the rows between them.
        limits : (float, float, float), default=None
            The ends of the axis of scores, and the highest rate; None takes those of the data.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        Choice(SCALES).check("scale", scale)
        logit = scale == "logit"
        self._begin(ax, 5.6, 5.6 if thresholds is None else 6.9)
        if logit:
            limits = *logit_limits(self._observed, self.guarantee), 1.0
        elif limits is None:
            limits = *score_limits(self._observed, self.bounds), highest_rate(self._drawn)
        left, right, top = limits
        strip = histogram and not logit and self.observed is not None
        draw_diagonal(self.ax_, left, right, scale)
        self._draw_guaranteed(left, right)
        self._draw_rates(left, right, logit)
        if strip and self.observed is not None:
            draw_strip(self.ax_, self.observed, top)
        set_limits(self.ax_, left, right, top, strip=strip, logit=logit)
        self._write_titles()
        without_frame(self.ax_)
        if thresholds is not None:
            draw_thresholds(self.ax_, thresholds)
        if legend:
            marks_in_corner = has_marks_at_upper_left(self._observed, left, right)
            draw_legend(self.ax_, below=thresholds is not None or top < 1.0 or marks_in_corner)
        return self

    def _draw_guaranteed(self, left: float, right: float) -> None:
        """The bands behind the rates: of a monotone rate, and of the calibrator."""
        if self.band is not None and not self.band.is_refuted_:
            draw_band(self.ax_, self.band, left, right)
        if self.guarantee is not None and self.bounds is not None:
            bounds = np.clip(self.bounds, left, right)
            draw_guarantee(self.ax_, self.guarantee, bounds, self.curve)

    def _draw_rates(self, left: float, right: float, logit: bool) -> None:
        """The observed rates; those of several models side by side, except on the logit scale."""
        floor = left if logit else None
        if self.observed is not None:
            draw_observed(self.ax_, self.observed, self.name, floor)
        gap = 0.0 if logit else 0.006
        middle = (len(self.models) - 1) / 2
        for number, (name, table) in enumerate(self.models.items()):
            shift = (number - middle) * gap * (right - left)
            draw_model(self.ax_, table, name, number, floor, shift)

    def _write_titles(self) -> None:
        """The title, which says what the intervals of several models are, and those of the axes."""
        if self.models and self.confidence_level is not None:
            said = f"intervals: {percent(self.confidence_level)}, all bins and models at once"
            self.ax_.set_title(said, fontsize="small", color=QUIET, loc="left")
        self.ax_.set_xlabel("score")
        self.ax_.set_ylabel(f"rate of class {self._drawn[0].positive_label!r}")

    @property
    def _observed(self) -> list[ReliabilityTable]:
        return [table for table in (*self.models.values(), self.observed) if table is not None]

    @property
    def _drawn(self) -> list[ReliabilityTable | Guarantee]:
        """All that is drawn with rates: what was observed, and what is guaranteed."""
        if self.guarantee is None:
            return list(self._observed)
        return [*self._observed, self.guarantee]
