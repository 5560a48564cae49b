"""Reliability diagrams with simultaneous intervals, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._typing import ArrayLike, FeatureRows, Predictor
from calibrant.assess.metrics.reliability import (
    reliability_table,
    reliability_tables,
)
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.calibrators.regions.region_calibrator import score_bins
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.cells.partition import Partition
from calibrant.draw.axes import (
    score_limits,
)
from calibrant.draw.curve import predicted_curve
from calibrant.draw.diagram import Thresholds, measures_of
from calibrant.draw.reliability_plot import ReliabilityPlot
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.guarantee import is_guarantee

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.classifier.calibrated_classifier import CalibratedClassifier


class ReliabilityDisplay(ReliabilityPlot):
    """A reliability diagram: rates against scores, with intervals that hold for all bins
    simultaneously.

    Make one with `from_predictions`, which shows how far scores are from observed rates, or with
    `from_calibrator`, which shows what a fitted calibrator predicts and guarantees. The constructor
    takes the numbers.

    Parameters
    ----------
    observed : ReliabilityTable or mapping of names to them, default=None
        Observed rates, drawn as points with their intervals as whiskers, above a histogram of the
        scores. For several models, the points are joined by lines, and there is no histogram.
    guarantee : Guarantee, default=None
        Predicted values and guaranteed intervals, drawn as steps or a curve in bands.
    bounds : float array of shape (n_regions, 2), default=None
        The start and end of each region of `guarantee`.
    curve : float array of shape (n_points, 2), default=None
        Scores and the predictions there, drawn as a curve through the bands instead of steps.
    name : str, default=None
        Name of the model, for the legend.
    band : MonotoneBand, default=None
        A fitted band; its limits on the rate at every score are drawn.
    confidence_level : float, default=None
        With several models, the level at which the intervals of all models hold simultaneously.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    difference_ax_ : matplotlib Axes or None
        The axes of the second panel, observed minus predicted, if there is one.

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
    'rate'
    """

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
        thresholds: Thresholds = None,
        difference: bool | str = "auto",
        ax: Axes | None = None,
    ) -> Self:
        """Draw how far scores are from observed rates.

        Parameters
        ----------
        y, n_bins, partition, confidence_level, interval, pos_label
            As in `calibrant.metrics.reliability_table`.
        scores : array-like of shape (n,), or mapping of names to such arrays
            Scores; or, to draw several models in one diagram, the scores of each. The intervals
            then hold for all bins of all models simultaneously.
        importance_weight, weight_bound, groups, max_group_size
            As in `reliability_table`, for weighted or grouped rows; not with `monotone`.
        monotone : bool, default=False
            Whether to draw the `MonotoneBand` of the same rows too: limits at every score, which
            assume that the rate does not decrease. They hold at `confidence_level` on their own. A
            band that the data refute is not drawn.
        name : str, default=None
            Name of the model, for the legend.
        scale, thresholds, difference
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
        drawn: dict[str, Any] = {
            "scale": scale,
            "thresholds": thresholds,
            "difference": difference,
        }
        if isinstance(scores, Mapping):
            if monotone or not scores:
                rule = "be False with several models" if monotone else "name at least one model"
                raise InvalidTypeError(
                    "monotone" if monotone else "scores", rule, got="True" if monotone else "none"
                )
            models = reliability_tables(y, scores, confidence_level, **settings)
            return cls(models, confidence_level=float(confidence_level)).plot(ax, **drawn)
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
        display = cls(table, name=name, band=band)
        if importance_weight is None and groups is None:
            display.facts = measures_of(y, scores, table)
        return display.plot(ax, **drawn)

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
            A fitted classifier with `predict_proba`.
        X : array-like or frame of shape (n, n_features)
            Rows that the classifier was not trained on.
        y : array-like of shape (n,)
            Their labels.
        pos_label : object, default=None
            The positive class; None means that of a `CalibratedClassifier`, or the second of the
            sorted classes. With more than two classes, the class to draw against the rest.
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
        positive = pos_label
        if pos_label is None and len(known) == 2:
            positive = getattr(model, "positive_class_", known[-1])
        if positive not in known:
            rule = f"be the class to draw, one of {known}"
            raise InvalidValueError("pos_label", rule, got=repr(pos_label))
        scores = np.asarray(model.predict_proba(X))[:, known.index(positive)]
        named = {"name": type(estimator).__name__, **options}
        if len(known) == 2:
            return cls.from_predictions(y, scores, pos_label=positive, **named)
        return cls.from_predictions(np.asarray(y) == positive, scores, pos_label=True, **named)

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
        difference: bool | str = "auto",
        ax: Axes | None = None,
    ) -> Self:
        """Draw what a fitted calibrator predicts and guarantees and, if given, the rates among
        other rows.

        Parameters
        ----------
        calibrator : calibrator or CalibratedClassifier
            A fitted calibrator on bins of one score.
        y, scores : array-like of shape (n,), default=None
            Rows that the calibrator was not fitted on, from the same population. Their rates are
            drawn with their own exact intervals, at the calibrator's confidence level, because
            held-out rates are noisy too.
        groups, max_group_size : array-like of shape (n,), int, default=None
            The group of each of those rows, as in `calibrant.metrics.reliability_table`.
        name : str, default=None
            Name of those rows, for the legend.
        difference
            As in `plot`.
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
        return cls(observed, guarantee, bounds, curve=curve, name=name).plot(
            ax, difference=difference
        )
