"""What to expect of new rows before their labels arrive."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._typing import ArrayLike, FloatArray
from calibrant.errors import InvalidValueError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.limits.interval import Interval
from calibrant.monitor.watched import Fitted, Watched, guaranteed_regions
from calibrant.params.arrays import as_numbers, as_scores
from calibrant.text.numbers import counted, limits, per_cent_limits, percent
from calibrant.text.quantity import Quantity
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable

_STANDS = "the rate of each bin is still that of calibration"
_MIX = "within each bin the predictions are off by as much, on average, as in calibration"
_SCATTER = "These are limits on expectations; the labels of finitely many rows scatter around them."


@dataclass(frozen=True, slots=True, repr=False)
class ExpectedPerformance(Result):
    """What to expect for new rows, if rates have not changed.

    Attributes
    ----------
    n_rows : int
        Number of new rows.
    confidence_level : float
        Confidence that all limits hold simultaneously: that of the calibrator's guarantee.
    rate_lower, rate_upper : float
        Limits on the expected share of positives.
    brier_lower, brier_upper : float
        Limits on the expected Brier score of the calibrated probabilities.
    thresholds, share, precision_lower, precision_upper : float arrays
        For each threshold of the score: the share of new rows at or above it, and limits on the
        expected share of positives among them.
    is_curve : bool
        Whether predictions vary within bins.
    """

    n_rows: int
    confidence_level: float
    rate_lower: float
    rate_upper: float
    brier_lower: float
    brier_upper: float
    thresholds: FloatArray
    share: FloatArray
    precision_lower: FloatArray
    precision_upper: FloatArray
    is_curve: bool = False

    @property
    def sentence(self) -> str:
        """The expected rate and Brier score, with the assumptions."""
        level = percent(self.confidence_level)
        return (
            f"Among {counted(self.n_rows, 'new row')}, expect"
            f" {per_cent_limits(self.rate_lower, self.rate_upper)} positives and a Brier score of"
            f" {limits(self.brier_lower, self.brier_upper)} ({level} confidence, if the rate in each"
            " score range is still that of calibration)."
        )

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The middle of the limits, and the limits."""
        rate = (self.rate_lower + self.rate_upper) / 2.0
        brier = (self.brier_lower + self.brier_upper) / 2.0
        return (
            Quantity("Expected rate", rate, self.rate_lower, self.rate_upper, "share"),
            Quantity("Expected Brier score", brier, self.brier_lower, self.brier_upper),
            Quantity("Confidence", self.confidence_level, unit="share"),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must not have changed."""
        return (_STANDS, _MIX) if self.is_curve else (_STANDS,)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the limits are about."""
        return (_SCATTER,)

    def tables(self) -> tuple[ResultTable, ...]:
        """Precision at each threshold."""
        columns: dict[str, Any] = {
            "threshold": self.thresholds.tolist(),
            "share": self.share.tolist(),
            "precision_lower": self.precision_lower.tolist(),
            "precision_upper": self.precision_upper.tolist(),
        }
        units = {"share": "share", "precision_lower": "share"}
        return (ResultTable("thresholds", columns, units=units),)


def expected_performance(
    calibrator: Fitted,
    scores: "ArrayLike",
    *,
    thresholds: "ArrayLike | None" = None,
    segments: "ArrayLike | None" = None,
) -> ExpectedPerformance:
    """Return limits on the rate, the precision and the Brier score of new rows whose labels are not
    yet known.

    Guarantee, with the confidence of the calibrator's guarantee: the expected share of positives
    among these rows, that among the rows at or above each threshold, and the expected Brier score
    lie within the limits. Assumptions: the rate in each region has not changed since calibration;
    for a curve, the average error of its predictions in each region has not changed. The share of
    rows in each region may have changed in any way.

    Parameters
    ----------
    calibrator : ScoreCalibrator or Model
        A fitted calibrator with a guarantee for each region.
    scores : array-like of shape (n,)
        Scores of new rows.
    thresholds : array-like, optional
        Thresholds of the score. Default: the edges of the regions, where the limits are narrowest.
    segments : array-like of shape (n,), optional
        For regions by segment.

    Notes
    -----
    If a region has the share s of the rows, the mass of its positives lies in s [L, U]; with a
    curve, in s (mean of h + [lower, upper]). If a share q of all rows lies in the region and above
    a threshold, the mass of the positives among them lies between max(0, s L - (s - q)) and min(q,
    s U). The Brier score is the mean of h^2 + Y (1 - 2 h). It is largest if the positives are the
    rows with the lowest h, and their number is the number of rows with h < 1/2 if the limits allow
    that. It is smallest the other way round.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BinningCalibrator, expected_performance
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> calibrator = BinningCalibrator(n_bins=10).fit(scores, rng.uniform(size=10_000) < scores)
    >>> expected = expected_performance(calibrator, rng.beta(2, 1, size=5000))
    >>> expected.rate_lower < 2 / 3 < expected.rate_upper
    True
    """
    found = guaranteed_regions(calibrator)
    watched = Watched.by(found)
    plain = np.asarray(
        as_scores(scores, positive_column=watched.classes.positive_index), dtype=np.float64
    )
    if plain.size == 0:
        raise InvalidValueError("scores", "have at least one row", got="none")
    regions = watched.partition.regions_of(watched.prepared(scores, segments))
    named = {} if segments is None else {"segments": segments}
    values = np.asarray(found.predict(scores, **named), dtype=np.float64)
    mass = _positives(found.guarantee_, regions, values)
    edges = _edges(watched) if thresholds is None else as_numbers(thresholds, "thresholds")
    share, low, high = _precision(plain, regions, mass, edges)
    brier = _brier(values, regions, mass)
    n_rows = plain.size
    return ExpectedPerformance(
        n_rows=n_rows,
        confidence_level=found.guarantee_.confidence_level,
        rate_lower=float(mass.lower.sum() / n_rows),
        rate_upper=float(mass.upper.sum() / n_rows),
        brier_lower=brier[0],
        brier_upper=brier[1],
        thresholds=edges,
        share=share,
        precision_lower=low,
        precision_upper=high,
        is_curve=found.guarantee_.errors is not None,
    )


def _positives(guarantee: Guarantee, regions: Any, values: FloatArray) -> Interval:
    """Limits on the expected number of positives among the new rows of each region."""
    size = guarantee.value.size
    rows = np.bincount(regions, minlength=size).astype(np.float64)
    if guarantee.errors is None:
        return Interval(rows * guarantee.lower, rows * guarantee.upper)
    predicted = np.bincount(regions, values, minlength=size)
    lower = np.clip(predicted + rows * guarantee.errors.lower, 0.0, rows)
    return Interval(lower, np.clip(predicted + rows * guarantee.errors.upper, lower, rows))


def _edges(watched: Watched) -> FloatArray:
    """All edges of the regions, if these are scores."""
    if watched.mapped is not None:
        return np.empty(0)
    parts = watched.partition.bins_by_segment.values()
    return np.unique(np.concatenate([part.edges for part in parts])) if parts else np.empty(0)


def _precision(
    scores: FloatArray, regions: Any, mass: Interval, thresholds: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The share of rows at or above each threshold, and limits on the share of positives among
    them.
    """
    size = mass.lower.size
    rows = np.bincount(regions, minlength=size).astype(np.float64)
    found = np.zeros((3, thresholds.size))
    for place, threshold in enumerate(thresholds.tolist()):
        above = np.bincount(regions[scores >= threshold], minlength=size).astype(np.float64)
        least = np.maximum(0.0, mass.lower - (rows - above)).sum()
        most = np.minimum(above, mass.upper).sum()
        total = above.sum()
        limits_here = (least / total, most / total) if total else (0.0, 1.0)
        found[:, place] = (total / scores.size, *limits_here)
    return found[0], found[1], found[2]


def _brier(values: FloatArray, regions: Any, mass: Interval) -> tuple[float, float]:
    """Limits on the expected Brier score of the predictions."""
    low = high = float((values**2).sum())
    order = np.lexsort((values, regions))
    ends = np.cumsum(np.bincount(regions, minlength=mass.lower.size))
    for region, ordered in enumerate(np.split(values[order], ends[:-1])):
        gains = np.concatenate(
            [[0.0], np.cumsum(1.0 - 2.0 * ordered)]
        )  # assign positives to the lowest predictions first
        losses = np.concatenate([[0.0], np.cumsum(1.0 - 2.0 * ordered[::-1])])
        places = np.arange(gains.size)
        within = (float(mass.lower[region]), float(mass.upper[region]))
        most = np.clip(np.count_nonzero(ordered < 0.5), *within)
        least = np.clip(np.count_nonzero(ordered > 0.5), *within)
        high += float(np.interp(most, places, gains))
        low += float(np.interp(least, places, losses))
    return max(0.0, low / values.size), high / values.size
