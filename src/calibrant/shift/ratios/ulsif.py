"""uLSIF: unconstrained least-squares importance fitting, with its leave-one-out score in closed
form.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant._typing import ArrayLike, FloatArray, Seed
from calibrant.params.arrays import as_numbers
from calibrant.params.random import RandomSource, fingerprint_of
from calibrant.params.rules import Flag, Integer, Number, Optional, Rule, RuleTable, thread_count
from calibrant.shift.ratios.density_ratio import DensityRatio
from calibrant.shift.ratios.least_squares import Basis, LeastSquares

_BANDWIDTHS = np.geomspace(0.1, 10.0, 9)  # times the median distance between rows and centres
_PENALTIES = np.geomspace(1e-3, 10.0, 9)


class PositiveNumbers(Rule[FloatArray]):
    """A positive number, or several to choose from."""

    words = "a number > 0 or several"

    def parse(self, value: Any) -> FloatArray:
        """Return them in an array, in the order given."""
        grid = (
            np.array([Number().parse(value)]) if np.isscalar(value) else as_numbers(value, "values")
        )
        if not grid.size or (grid <= 0.0).any():
            raise ValueError
        return grid


class Centers(Rule[Any]):
    """The number of centres to draw, or the centres themselves."""

    words = "an int >= 1 or an array of centres"

    def parse(self, value: Any) -> Any:
        """Return it unchanged."""
        return Integer(1).parse(value) if np.ndim(value) == 0 else value


@dataclass(eq=False, repr=False, kw_only=True)
class ULSIF(DensityRatio):
    """Density ratio by unconstrained least-squares importance fitting, tuned by leave-one-out.

    Guarantee: as both samples grow, the squared error of the ratio tends to the smallest that the
    basis allows. Not claimed: anything for a finite number of rows; the guarantee of a calibrator
    that uses these weights is asymptotic.

    Parameters
    ----------
    centers : int or array-like of shape (n_centers, n_features), default=100
        The number of target rows, drawn at random, on which the bumps are centred; or the centres.
    bandwidth : float, array-like or None, default=None
        Width of the bumps, or a grid to choose from. None tries nine values, from a tenth to ten
        times the median distance between rows and centres.
    penalty : float, array-like or None, default=None
        Ridge penalty, or a grid to choose from. None tries nine values, from 0.001 to 10.
    standardize : bool, default=True
        Divide every column by its spread first, so that all columns count equally. This does not
        change a ratio of densities.
    random_state : int, Generator, RandomState or None, default=0
        Seed for drawing the centres, and the order in which rows are paired to be left out.
    n_jobs : int or None, default=-1
        Number of threads, over bandwidths: -1 means every core, None means one; results never
        depend on it.

    Attributes
    ----------
    bandwidth_, penalty_ : float
        The chosen values, in units of the (standardized) columns.
    scores_ : float array of shape (n_bandwidths, n_penalties)
        Leave-one-out score of every pair in the grid; lower is better.
    coef_ : float array of shape (n_centers,)
        Height of each bump, >= 0.
    diagnostics_ : RatioDiagnostics
        What to look at before trusting the weights.
    n_features_in_ : int
        Number of columns in `fit`.

    Notes
    -----
    w(x) = sum over centres c of a_c exp(-|x - c|^2 / (2 bandwidth^2)), a = max(0, (H + penalty
    I)^-1 h), where H is the mean of the bumps' products over source rows and h is the bumps' mean
    over target rows. The leave-one-out score leaves out one row of each population at a time. It is
    computed in closed form: one eigendecomposition for each bandwidth serves every penalty, and
    time and memory are linear in the rows.

    References
    ----------
    Kanamori, Hido & Sugiyama (2009), "A least-squares approach to direct importance estimation",
    JMLR 10, 1391-1445.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_source, X_target = rng.uniform(size=(2000, 1)), rng.beta(2, 1, size=(2000, 1))
    >>> ratio = ULSIF().fit(X_source, X_target)
    >>> ratio.predict([[0.25], [0.5], [0.75]]).round(1)  # the truth is 2 x
    array([0.4, 1. , 1.4])
    >>> print(ratio.diagnostics_)
    OK  The 2,000 source rows are worth 1,443 rows of the target population, and
        cover about 100% of it.
    """

    _rules: ClassVar[RuleTable] = {
        "centers": Centers(),
        "bandwidth": Optional(PositiveNumbers()),
        "penalty": Optional(PositiveNumbers()),
        "standardize": Flag(),
    }

    centers: int | ArrayLike = 100
    bandwidth: ArrayLike | None = None
    penalty: ArrayLike | None = None
    standardize: bool = True
    random_state: Seed = 0
    n_jobs: int | None = -1

    def _fit(self, source: FloatArray, target: FloatArray) -> None:
        # ranks, so that the units of a column do not matter
        columns = zip(source.T, target.T, strict=True)
        ranks = fingerprint_of(*(np.searchsorted(np.sort(known), new) for known, new in columns))
        generator = RandomSource.of(
            self.random_state, "density ratio", len(source), rows=ranks
        ).generator()
        basis = Basis.of(source, target, self.centers, self.standardize, generator)
        # shuffle: sorted rows would be paired, and left out if one sample is smaller, by position
        source = basis.prepare(source[generator.permutation(len(source))])
        target = basis.prepare(target[generator.permutation(len(target))])
        problem = LeastSquares(basis, source, target)
        if self.bandwidth is None:
            bandwidths = _BANDWIDTHS * basis.typical_distance(source)
        else:
            bandwidths = PositiveNumbers().parse(self.bandwidth)
        penalties = _PENALTIES if self.penalty is None else PositiveNumbers().parse(self.penalty)
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

        # a row of scores for each bandwidth; each thread computes its matrix products alone: the
        # matrices are too small to split, and BLAS threads that wait for each other on a busy
        # machine take ten times as long
        threads = ThreadPoolExecutor(thread_count(self.n_jobs))
        with threadpool_limits(1, user_api="blas"), threads as pool:
            each = pool.map(lambda b: problem.leave_one_out(b, penalties), bandwidths.tolist())
            scores = np.array(list(each))
        best = np.unravel_index(scores.argmin(), scores.shape)
        self.scores_ = scores
        self.bandwidth_ = float(bandwidths[best[0]])
        self.penalty_ = float(penalties[best[1]])
        self.coef_ = problem.coefficients(self.bandwidth_, self.penalty_)
        self._basis = basis

    def _weigh(self, rows: FloatArray) -> FloatArray:
        return np.asarray(
            self._basis.values(self._basis.prepare(rows), self.bandwidth_) @ self.coef_
        )
