"""KLIEP: the ratio under which the target rows are most likely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.errors import InvalidValueError
from calibrant.params.rules import Integer, RuleTable
from calibrant.shift.ratios.gaussian import Basis, GaussianRatio, batches, random_source

_GAP = 1e-4  # in mean log-likelihood: too small to matter for any number of rows
_MOST_STEPS = 5000


@dataclass(eq=False, repr=False, kw_only=True)
class KLIEP(GaussianRatio):
    """Density ratio by the Kullback-Leibler importance estimation procedure, tuned by likelihood
    cross-validation.

    Claimed: as both samples grow, the estimate tends to the ratio that is nearest to the truth, in
    Kullback-Leibler divergence, among those the basis allows. Its mean over source rows equals 1
    exactly. Not claimed: anything for a finite number of rows.

    Parameters
    ----------
    centers : int or array-like of shape (n_centers, n_features), default=100
        The number of target rows, drawn at random, on which the bumps are centred; or the centres.
    bandwidth : float, array-like or None, default=None
        Width of the bumps, or a grid to choose from. None tries nine values, from a tenth to ten
        times the median distance between rows and centres.
    cv : int, default=5
        Number of parts of the target rows for cross-validation.
    standardize : bool, default=True
        Divide every column by its spread first, so that all columns count equally.
    random_state : int, Generator, RandomState or None, default=0
        Seed for drawing the centres and the parts.

    Attributes
    ----------
    bandwidth_ : float
        The chosen bandwidth.
    scores_ : float array of shape (n_bandwidths,)
        Mean log-likelihood of left-out target rows; higher is better.
    coef_ : float array of shape (n_centers,)
        Height of each bump, >= 0.
    diagnostics_ : RatioDiagnostics
        What to look at before trusting the weights.

    Notes
    -----
    The fit maximises the mean of ln w over target rows, subject to the mean of w over source rows
    being 1 and all heights being >= 0. In the variables (height times mean bump over source rows),
    which add up to 1, this is the likelihood of a mixture with known components, so
    expectation-maximisation increases it without a step size. The largest directional derivative
    bounds the distance to the maximum; the fit stops when it reaches 1e-4.

    References
    ----------
    Sugiyama, Suzuki, Nakajima, Kashima, von Buenau & Kawanabe (2008), "Direct importance estimation
    for covariate shift adaptation", AISM 60, 699-746.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_source, X_target = rng.uniform(size=(1000, 1)), rng.beta(2, 1, size=(1000, 1))
    >>> ratio = KLIEP(bandwidth=[0.5, 1.0]).fit(X_source, X_target)
    >>> float(ratio.predict(X_source).mean().round(9))
    1.0
    >>> ratio.predict([[0.25], [0.75]]).round(1)  # the truth is 2 x
    array([0.5, 1.5])
    """

    _rules: ClassVar[RuleTable] = {"cv": Integer(2)}

    cv: int = 5

    def _fit(self, source: FloatArray, target: FloatArray) -> None:
        n_parts = int(self.cv)
        if n_parts > len(target):
            raise InvalidValueError(
                "cv",
                f"be at most the number of target rows, {len(target):,}",
                got=f"{n_parts:,}",
            )
        generator = random_source(self.random_state, source, target).generator()
        basis = Basis.of(source, target, self.centers, self.standardize, generator)
        source = basis.prepare(source)
        target = basis.prepare(target)
        bandwidths = self._bandwidths(basis, source)
        part = generator.permutation(len(target)) % n_parts
        scores = np.array(
            [_cross_validated(basis, source, target, b, part) for b in bandwidths.tolist()]
        )
        self.scores_ = scores
        self.bandwidth_ = float(bandwidths[scores.argmax()])
        means = _source_means(basis, source, self.bandwidth_)
        values = basis.values(target, self.bandwidth_)
        self.coef_ = _most_likely(values, means)
        self._basis = basis


def _source_means(basis: Basis, source: FloatArray, bandwidth: float) -> FloatArray:
    total = np.zeros(len(basis.centers))
    for part in batches(len(source)):
        total += basis.values(source[part], bandwidth).sum(axis=0)
    return total / len(source)


def _cross_validated(
    basis: Basis,
    source: FloatArray,
    target: FloatArray,
    bandwidth: float,
    part: IndexArray,
) -> float:
    means = _source_means(basis, source, bandwidth)
    values = basis.values(target, bandwidth)
    total = 0.0
    for number in range(int(part.max()) + 1):
        inside = part == number
        likelihood = values[inside] @ _most_likely(values[~inside], means)
        if (likelihood <= 0.0).any():
            return -np.inf
        total += float(np.log(likelihood).sum())
    return total / len(target)


def _most_likely(values: FloatArray, means: FloatArray) -> FloatArray:
    """Heights that maximise the mean log of values @ heights, subject to means @ heights = 1 and
    heights >= 0.
    """
    # a centre with no source row nearby would get all of the weight of its neighbourhood at no cost
    usable = means > np.finfo(np.float64).tiny * 1e16
    heights = np.zeros(means.size)
    if not usable.any():
        return heights
    components = values[:, usable] / means[usable]
    components = components[(components > 0.0).any(axis=1)]
    share = np.full(components.shape[1], 1.0 / components.shape[1])
    for _ in range(_MOST_STEPS):
        slope = (1.0 / (components @ share)) @ components / max(len(components), 1)
        if slope.max() <= 1.0 + _GAP:
            break
        share = share * slope
    heights[usable] = share / share.sum() / means[usable]
    return heights
