"""The reliability table: how well scores agree with labels, bin by bin."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant import kernels
from calibrant._typing import ArrayLike, BoolArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators.binning import BinningCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller, warn_of_cap
from calibrant.cells.partition import Partition
from calibrant.cells.units import RowUnits
from calibrant.errors import InvalidTypeError
from calibrant.params.arrays import as_weights
from calibrant.params.rules import error_budget
from calibrant.sample.groups import Groups
from calibrant.text.numbers import counted, percent, rows
from calibrant.text.picture import Drawn, Picture
from calibrant.text.quantity import Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable

_HISTOGRAM_CELLS = 50


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReliabilityTable(Result):
    """Mean score, observed rate and simultaneous confidence limits of each bin.

    Attributes
    ----------
    regions : tuple of str
        Name of each bin.
    bounds : float array of shape (n_regions, 2)
        Lower and upper end of each bin; infinite for bins without an end.
    counts : int array of shape (n_regions,)
        Rows counted in each bin.
    mean_score : float array of shape (n_regions,)
        Mean score of the rows in each bin; NaN for an empty bin.
    rate : float array of shape (n_regions,)
        Share of positive labels; NaN if no row was counted.
    lower, upper : float arrays of shape (n_regions,)
        Confidence limits on the true rate, valid for all bins simultaneously; 0 and 1 if no row was
        counted.
    confidence_level : float
        Confidence that all intervals hold.
    method : str
        Name of the interval method.
    positive_label : object
        The positive class.
    histogram, histogram_edges : int array of shape (m,), float array of shape (m + 1,)
        Histogram of the scores, in cells of equal width.
    """

    regions: tuple[str, ...]
    bounds: FloatArray
    counts: IntArray
    mean_score: FloatArray
    rate: FloatArray
    lower: FloatArray
    upper: FloatArray
    confidence_level: float
    method: str
    positive_label: Hashable
    histogram: IntArray
    histogram_edges: FloatArray

    @property
    def gap(self) -> FloatArray:
        """Observed rate minus mean score; NaN for an empty bin."""
        return self.rate - self.mean_score

    @property
    def is_off(self) -> BoolArray:
        """Whether the mean score lies outside the bin's interval.

        With probability `confidence_level`, the true rate differs from the mean score in every bin
        that is marked.
        """
        return (self.mean_score < self.lower) | (self.mean_score > self.upper)

    @property
    def verdict(self) -> Verdict:
        """Whether scores are shown to be off in some bin."""
        return "problem" if self.is_off.any() else "ok"

    @property
    def sentence(self) -> str:
        """The number of bins in which the scores are shown to be off."""
        n_off = int(np.count_nonzero(self.is_off))
        bins = counted(len(self.regions), "bin")
        basis = f"{rows(int(self.counts.sum()))}, assumed independent"
        if not n_off:
            level = percent(1.0 - self.confidence_level)
            return (
                f"No sign that the mean score differs from the true rate in any of {bins} (tested at"
                f" the {level} level for all together, {basis})."
            )
        return (
            f"The mean score differs from the true rate in {n_off:,} of {bins}"
            f" ({percent(self.confidence_level)} confidence, all together, {basis})."
        )

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """How many bins are off."""
        n_off = int(np.count_nonzero(self.is_off))
        return (
            Quantity("Off", n_off, unit=f"of {counted(len(self.regions), 'bin')}"),
            Quantity("Counted", int(self.counts.sum()), unit="row"),
            Quantity("Confidence", self.confidence_level, unit="share"),
        )

    def pictures(self) -> tuple[Picture, ...]:
        """The observed rate against the mean score."""
        seen = self.counts > 0
        columns = (self.mean_score, self.rate, self.lower, self.upper)
        drawn = Drawn("observed rate", *(column[seen].tolist() for column in columns))
        text = "Observed rate against mean score, with limits that hold for all bins together."
        labels = "mean score", "observed rate"
        return (Picture("Reliability", text, *labels, (drawn,), is_square=True),)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true for the limits to hold."""
        drawn = "rows, or groups of rows, are independent draws from one distribution"
        return (drawn, "the model was not trained on these rows")

    def tables(self) -> tuple[ResultTable, ...]:
        """The bins."""
        names = ("counts", "mean_score", "rate", "lower", "upper")
        columns = {
            "region": self.regions,
            **{name: getattr(self, name) for name in names},
        }
        heads = {"region": "bin", "counts": "rows", "lower": "true rate"}
        units = {"rate": "share", "lower": "share", "mean_score": "share"}
        return (ResultTable("regions", columns, heads=heads, units=units),)


def reliability_table(
    y: "ArrayLike",
    scores: "ArrayLike",
    *,
    n_bins: int | str = "auto",
    partition: str | Partition = "quantile",
    confidence_level: float = 0.9,
    interval: str = "auto",
    importance_weight: "ArrayLike | None" = None,
    weight_bound: float | None = None,
    groups: "ArrayLike | None" = None,
    max_group_size: int | None = None,
    pos_label: Hashable = None,
    classes: "ArrayLike | None" = None,
) -> ReliabilityTable:
    """Compare scores with labels, bin by bin, with intervals that hold for all bins simultaneously.

    Guarantee, for every distribution: with probability at least `confidence_level`, the true rate
    of the positive class lies between `lower` and `upper` in all bins simultaneously. Assumptions:
    the rows are independent draws from one distribution, and the model was not trained on them.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of two classes.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Scores of these rows.
    n_bins, confidence_level, interval, pos_label, classes
        As in `BinningCalibrator`.
    partition : {"quantile", "uniform"} or Partition, default="quantile"
        As in `BinningCalibrator`. A Partition must have bins of the score, for example those of a
        fitted calibrator.
    importance_weight, weight_bound : array-like of shape (n,), float, optional
        How much each row counts, and an upper bound on the weights, as in `BinningCalibrator`. Mean
        scores, rates and limits are then those of the weighted population. Without a bound, the
        limits are not guaranteed.
    groups, max_group_size : array-like of shape (n,), int, optional
        The group of each row, and the largest number of rows that a group counts as in a bin, as in
        `BinningCalibrator`. The limits are then for rows of new groups, and mean scores and rates
        count groups in the same way.

    Returns
    -------
    ReliabilityTable

    Notes
    -----
    This is a `BinningCalibrator` fitted on the scores, used to describe the model and not to
    correct it. The mean score is over all rows for which the bin's value would be predicted. With
    quantile bins this includes rows whose score is an edge, which the interval does not count.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.metrics import reliability_table
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=5_000)
    >>> y = rng.uniform(size=5_000) < scores**2
    >>> table = reliability_table(y, scores, n_bins=4)
    >>> table.mean_score.round(2)
    array([0.12, 0.37, 0.62, 0.88])
    >>> table.rate.round(2)
    array([0.02, 0.15, 0.42, 0.77])
    >>> table.is_off
    array([ True,  True,  True,  True])
    """
    calibrator = BinningCalibrator(
        n_bins,
        confidence_level=confidence_level,
        interval=interval,
        partition=partition,
        pos_label=pos_label,
    )
    with reported_by_caller():
        calibrator.fit(
            scores,
            y,
            importance_weight=importance_weight,
            groups=groups,
            classes=classes,
            weight_bound=weight_bound,
            max_group_size=max_group_size,
        )
    guarantee = calibrator.guarantee_
    bins = calibrator.partition_.bins_by_segment.get(None)
    warn_of_cap(calibrator, guarantee)
    if bins is None:
        got = type(calibrator.partition_).__name__
        raise InvalidTypeError("partition", "be bins of one score, without segments", got=got)
    checked = bins.prepare(scores, positive_column=calibrator.positive_index_)
    region = bins.regions_of(checked)
    weights = _row_weights(calibrator, region, importance_weight, groups)
    total = np.bincount(region, weights, minlength=bins.n_regions)
    weighted = checked if weights is None else weights * checked
    sums = np.bincount(region, weighted, minlength=bins.n_regions)
    mean_score = np.divide(sums, total, out=np.full(bins.n_regions, np.nan), where=total > 0)
    histogram, histogram_edges = _histogram(checked)
    return ReliabilityTable(
        regions=guarantee.regions,
        bounds=bins.bounds,
        counts=guarantee.counts,
        mean_score=mean_score,
        rate=calibrator.proof_.observed,
        lower=guarantee.lower,
        upper=guarantee.upper,
        confidence_level=guarantee.confidence_level,
        method=guarantee.method,
        positive_label=guarantee.positive_label,
        histogram=histogram,
        histogram_edges=histogram_edges,
    )


def _histogram(scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """Rows in cells of equal width: over [0, 1] if the scores are probabilities, else over the
    observed range.
    """
    seen = (float(scores.min()), float(scores.max()))
    span = (0.0, 1.0) if seen[0] >= 0.0 and seen[1] <= 1.0 else seen
    edges = np.histogram_bin_edges(scores[:1], bins=_HISTOGRAM_CELLS, range=span)
    cells = edges.astype(np.float64)
    no_label = np.zeros(scores.size, dtype=np.uint8)
    return kernels.count(scores, no_label, cells[1:-1])[0], cells


def _row_weights(
    calibrator: BinningCalibrator,
    region: IndexArray,
    importance_weight: "ArrayLike | None",
    groups: "ArrayLike | None",
) -> FloatArray | None:
    """The weight of each row in its bin, as in the limits; None if all rows count equally."""
    weights = None if importance_weight is None else as_weights(importance_weight, region.size)
    weighted = calibrator.proof_.weighted
    known = calibrator.proof_.design if weighted is None else weighted.groups
    if groups is None or known is None:
        return weights
    most = known.max_size if known.max_weight is None else known.max_weight
    together = Groups.of(groups, region.size)
    weights = np.ones(region.size) if weights is None else weights
    units = RowUnits(together.codes, len(together.keys), weights)
    cells = units.in_cells(region, calibrator.partition_.n_regions)
    return cells.row_weights(float(most))


def reliability_tables(
    y: "ArrayLike",
    models: "Mapping[str, ArrayLike]",
    confidence_level: float,
    **settings: Any,
) -> dict[str, ReliabilityTable]:
    """A table for each model. The intervals of all of them hold simultaneously."""
    level = shared_level(confidence_level, len(models))
    return {
        str(name): reliability_table(y, given, confidence_level=level, **settings)
        for name, given in models.items()
    }


def shared_level(confidence_level: float, n: int) -> float:
    """The level of each of several tables that hold simultaneously."""
    return 1.0 - error_budget(confidence_level) / n


def models_picture(tables: Mapping[str, ReliabilityTable]) -> Picture:
    """The observed rates of several models in one reliability diagram."""
    pictures = {name: table.pictures()[0] for name, table in tables.items()}
    drawn = tuple(replace(one.drawn[0], name=name) for name, one in pictures.items())
    text = "Observed rate against mean score, with limits that hold for all models together."
    labels = "mean score", "observed rate"
    return Picture("Reliability of all models", text, *labels, drawn, is_square=True)
