"""Common parts of density ratio estimators: checked rows, batches, and diagnostics."""

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, FeatureRows, FloatArray
from calibrant.errors import CalibrantWarning, InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_array, in_all
from calibrant.params.estimator import Estimator, check_is_fitted
from calibrant.params.rules import CheckedParameters
from calibrant.text.numbers import nearest, percent
from calibrant.text.quantity import Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable

_BATCH_ROWS = (
    2048  # times 100 centres is 1.6 MB of kernel values, which fit in the processor's cache
)
_LARGEST_SHOWN = 5
_SUPPORT_ROWS = 1000  # rows of each population compared with each other to find where support ends
_SUPPORT_LEVEL = 0.99
_TOO_FEW_ROWS = 30.0
_TOO_SMALL_SHARE = 0.01
_TOO_MUCH_OUTSIDE = 0.05


class LargeShiftWarning(CalibrantWarning):
    """The two populations are too far apart for weights to correct the difference."""


@dataclass(frozen=True, slots=True, repr=False)
class RatioDiagnostics(Result):
    """What to look at before trusting estimated weights; its sentence says whether to.

    Attributes
    ----------
    n_source, n_target : int
        The number of rows from each population.
    effective_sample_size : float
        (sum w)^2 / sum w^2 over the source rows: how many unweighted rows they are worth.
    mean_weight : float
        Mean weight of the source rows. The true ratio has mean 1 if the target lies within the
        source's support.
    largest_weights : tuple of float
        The largest weights of source rows, largest first.
    outside_support : float
        Estimated share of the target population that lies where no source row is near.
    conclusion : str
        What to think of the weights, in words.
    is_too_large : bool
        Whether the shift is too large to correct.
    """

    n_source: int
    n_target: int
    effective_sample_size: float
    mean_weight: float
    largest_weights: tuple[float, ...]
    outside_support: float
    conclusion: str
    is_too_large: bool

    @classmethod
    def of(cls, weights: FloatArray, n_target: int, outside_support: float) -> Self:
        """Derive the diagnostics from the weights of the source rows."""
        size = effective_sample_size(weights)
        mean = float(weights.mean())
        outside = percent(round(outside_support, 2))
        inside = percent(round(1 - outside_support, 2))
        largest = tuple(np.sort(weights)[::-1][:_LARGEST_SHOWN].tolist())
        problems = []
        if size < max(_TOO_FEW_ROWS, _TOO_SMALL_SHARE * weights.size):
            problems.append(
                f"the {weights.size:,} source rows are worth only {size:,.1f} rows of the target"
            )
        if outside_support > _TOO_MUCH_OUTSIDE:
            problems.append(
                f"about {outside} of the target population lies where there are no source rows"
            )
        if problems:
            verdict = (
                f"The shift is too large to correct: {', and '.join(problems)}. Label rows of the"
                " target"
            )
        else:
            verdict = (
                f"The {weights.size:,} source rows are worth {size:,.0f} rows of the target"
                f" population, and cover about {inside} of it"
            )
            if not 0.8 <= mean <= 1.25:
                verdict += (
                    f"; the mean weight is {nearest(mean, 2)}, not 1, so the weights are poorly"
                    " estimated"
                )
        return cls(
            weights.size,
            n_target,
            size,
            mean,
            largest,
            outside_support,
            f"{verdict}.",
            bool(problems),
        )

    @property
    def verdict(self) -> Verdict:
        """Whether weights can correct the shift."""
        return "problem" if self.is_too_large else "ok"

    @property
    def sentence(self) -> str:
        """What to think of the weights."""
        return self.conclusion

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """What the source rows are worth."""
        return (
            Quantity("Source", self.n_source, unit="row"),
            Quantity("Target", self.n_target, unit="row"),
            Quantity("Effective sample size", self.effective_sample_size),
            Quantity("Mean weight", self.mean_weight),
            Quantity("Target outside the source", self.outside_support, unit="share"),
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The largest weights."""
        return (ResultTable("largest_weights", {"weight": self.largest_weights}, shown=()),)


def effective_sample_size(weights: FloatArray) -> float:
    """Return (sum w)^2 / sum w^2: how many unweighted rows weighted rows are worth.

    It is 0 if all weights are 0.

    >>> effective_sample_size(np.array([1.0, 1.0, 1.0, 0.0]))
    3.0
    """
    largest = float(weights.max(initial=0.0))
    if largest <= 0.0:
        return 0.0
    scaled = weights / largest
    return float(scaled.sum() ** 2 / np.square(scaled).sum())


class DensityRatio(CheckedParameters, Estimator):
    """An estimate of w(x) = (density of the target population at x) / (density of the source
    population at x).

    A subclass implements `_fit(source, target)` and `_weigh(rows)`, on checked float matrices.
    """

    diagnostics_: RatioDiagnostics
    n_features_in_: int

    @abstractmethod
    def _fit(self, source: FloatArray, target: FloatArray) -> None:
        """Learn from checked rows."""

    @abstractmethod
    def _weigh(self, rows: FloatArray) -> FloatArray:
        """Weights of one batch of checked rows."""

    def fit(self, X_source: "ArrayLike | FeatureRows", X_target: "ArrayLike | FeatureRows") -> Self:
        """Learn the ratio from unlabelled rows from both populations.

        Parameters
        ----------
        X_source : array-like of shape (n_source, n_features)
            Rows from the population that the calibration rows come from.
        X_target : array-like of shape (n_target, n_features)
            Rows from the population that predictions are for.

        Returns
        -------
        self
        """
        self._check_parameters()
        own = column_names(X_source)
        names = column_names(X_target)
        if own is not None and names is not None and own != names:
            rule = f"have the columns of X_source, {own}"
            raise InvalidValueError("X_target", rule, got=str(names))
        source = self._rows(X_source, "X_source")
        target = self._rows(X_target, "X_target")
        if source.shape[1] != target.shape[1]:
            rule = f"have as many columns as X_source, {source.shape[1]}"
            raise InvalidValueError("X_target", rule, got=str(target.shape[1]))
        self._fit(source, target)
        self.n_features_in_ = source.shape[1]
        self._names = own
        self._diagnose(source, target)
        return self

    def _rows(self, X: "ArrayLike | FeatureRows", name: str) -> Any:
        """Checked rows, in the form that `_fit` takes."""
        return as_matrix(X, name, least=2)

    def _diagnose(self, source: FloatArray, target: FloatArray) -> None:
        self._conclude(
            RatioDiagnostics.of(self.predict(source), len(target), share_outside(source, target))
        )

    def _conclude(self, diagnostics: RatioDiagnostics) -> None:
        """Store the diagnostics, and warn if the shift is too large."""
        self.diagnostics_ = diagnostics
        if diagnostics.is_too_large:
            warnings.warn(diagnostics.conclusion, LargeShiftWarning, stacklevel=4)

    def predict(self, X: "ArrayLike | FeatureRows") -> FloatArray:
        """Return the weight of each row, shape (n,), in batches, so that memory grows only with n."""
        check_is_fitted(self)
        names = column_names(X)
        if names is not None and self._names is not None and names != self._names:
            rule = f"have the columns that the ratio was fitted on, {self._names}"
            raise InvalidValueError("X", rule, got=str(names))
        rows = as_matrix(X, "X", least=0)
        if rows.shape[1] != self.n_features_in_:
            rule = f"have the {self.n_features_in_} columns that the ratio was fitted on"
            raise InvalidValueError("X", rule, got=str(rows.shape[1]))
        weights = np.empty(len(rows))
        for part in batches(len(rows)):
            weights[part] = self._weigh(rows[part])
        return weights

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True  # the rows of the other population
        return tags


def batches(n_rows: int, size: int = _BATCH_ROWS) -> Iterator[slice]:
    """Consecutive slices that cover `n_rows`."""
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def as_matrix(values: "ArrayLike | FeatureRows", name: str, *, least: int) -> FloatArray:
    """Return rows as a finite float64 matrix with at least `least` rows.

    A flat array is one column.
    """
    array: NDArray[Any] = as_array(values, name)
    if array.dtype.kind == "O":  # numbers given as Python objects
        with suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        advice = "encode other columns first, or use LogisticRatio with a pipeline that does"
        raise InvalidTypeError(name, "be numbers", got=f"dtype {array.dtype}", advice=advice)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidValueError(name, "have shape (n, n_features)", got=f"shape {array.shape}")
    if len(array) < least:
        raise InvalidValueError(name, f"have at least {least} rows", got=str(len(array)))
    matrix = np.ascontiguousarray(array, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if bad.size:
        row = int(bad[0])
        column = int(np.flatnonzero(~np.isfinite(matrix[row]))[0])
        got = f"{matrix[row, column]} in row {row}, column {column}, and {in_all(bad.size)}"
        raise InvalidValueError(name, "be finite", got=got, advice="remove or impute them first")
    return matrix


def row_count(X: FeatureRows) -> int:
    """Number of rows of an array, a frame or a sparse matrix."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def column_names(X: object) -> list[str] | None:
    """Return the column names of a frame, or None if they are not all text."""
    names = [] if isinstance(X, np.ndarray) else list(getattr(X, "columns", []))
    return names if names and all(isinstance(name, str) for name in names) else None


def share_outside(source: FloatArray, target: FloatArray) -> float:
    """Estimate the share of the target population that lies where the source population has no
    rows.

    A target row counts as outside if its nearest source row is further away than nearly all (99 of
    100) source rows are from their own nearest; the 1 in 100 expected without any shift is
    subtracted. At most 1,000 evenly spread rows of each population are compared, in units of the
    source's own spread.

    >>> rng = np.random.default_rng(0)
    >>> source = rng.uniform(size=(500, 2))
    >>> share_outside(source, source + 5.0), share_outside(source, rng.uniform(size=(500, 2))) < 0.05
    (1.0, True)
    """
    scale = source.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    source, target = (evenly_spread(rows, _SUPPORT_ROWS) / scale for rows in (source, target))
    center = source.mean(axis=0)
    source = source - center
    target = target - center
    own = squared_distances(source, source)
    np.fill_diagonal(own, np.inf)
    limit = np.quantile(own.min(axis=1), _SUPPORT_LEVEL)
    # a computed distance of zero is exact only up to the rounding error of the squares
    beyond = squared_distances(target, source).min(axis=1) > limit + 1e-12 * (
        1.0 + np.square(source).sum(axis=1).max()
    )
    share = (float(beyond.mean()) - (1.0 - _SUPPORT_LEVEL)) / _SUPPORT_LEVEL
    return min(max(share, 0.0), 1.0)


def evenly_spread(rows: FloatArray, most: int) -> FloatArray:
    """At most this many of the rows, at equal distances."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.intp)]


def squared_distances(rows: FloatArray, centers: FloatArray) -> FloatArray:
    """Return the squared distance of each row from each center, shape (n_rows, n_centers).

    Both should be centred near zero: the squares are expanded, and differences of large squares
    lose digits.
    """
    distances = rows @ (-2.0 * centers.T)
    distances += np.square(rows).sum(axis=1)[:, None]
    distances += np.square(centers).sum(axis=1)
    return np.maximum(distances, 0.0, out=distances)
