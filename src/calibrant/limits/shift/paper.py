"""The paper's theorems under covariate shift, for comparison: the main one, with the constant it omits
and with its conditions checked, and the one for known relative masses.
"""

from __future__ import annotations

import numpy as np

from calibrant._typing import ArrayLike, FloatArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.interval import Interval, around
from calibrant.limits.shift.evidence import Evidence, weight_sums, weighted_rates
from calibrant.params.arrays import as_numbers
from calibrant.params.rules import OPEN_UNIT
from calibrant.text.numbers import upper

CONSTANT = 9.0
"""The constant c of Theorem 7 of the paper, in its bound and in its condition.

See the Notes of `paper`.
"""


def paper(evidence: Evidence, alpha: float) -> Interval:
    """The paper's simultaneous limits for all regions, as stated in its Theorem 7.

    Provided for comparison. The bound is vacuous unless the weights are well away from zero: in the
    paper's own example their infimum is 0, and the bound is infinite. `why_vacuous` says which
    condition fails.

    Parameters
    ----------
    evidence : Evidence
        A tally with importance weights. All weights lie in [L, U], and E[w] = 1. The rows are
        i.i.d. and the regions were not chosen by looking at the labels.
    alpha : float in (0, 1)
        The largest probability that some region's interval misses its target rate.

    Returns
    -------
    Interval
        pi-check +- c (U/L)^2 sqrt(B ln(6B/alpha) / (2n)), c = 9, within [0, 1]; [0, 1] if a
        condition fails.

    Notes
    -----
    The paper says "for an explicit universal constant c" and never gives it. c = 9 serves in both
    places. Write l = ln(6B/alpha) and let n >= 9 (U/L)^2 B l^2.

    1. Regions of probability at least 1/(2B) hold N >= n/(4B) rows each, except with probability B
       exp(-n/(16B)) by Chernoff's bound, which is at most alpha/3 as 9 l^2 >= 16 l. (The paper's
       step 1, by Hoeffding, would need n >= 8 B^2 l, which its condition does not give.) Here the
       counts are known, so N >= n/(4B) is checked instead.
    2. By Hoeffding the mean weight is within e = U sqrt(l / (2N)) <= U sqrt(2 B l / n) of r = E[w |
       b], and pi-hat within e / r of theta, each except with probability alpha/3. (The paper's step
       4 drops the factor m = 1/r.)
    3. pi-check - pi-hat = pi-check (r - mean) / r, at most e / r, and r >= L: together at most
       2 e / L <= 4 (U/L) sqrt(B l / (2n)), within 9 (U/L)^2 sqrt(B l / (2n)).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Partition, Tally
    >>> from calibrant.shift import Evidence
    >>> bins = Partition.fixed_width(1)
    >>> tally = Tally.from_data(bins, np.full(9000, 0.5), np.arange(9000) % 2,
    ...     importance_weight=np.ones(9000))
    >>> paper(Evidence(tally, weight_bound=1.0, weight_floor=1.0), 0.1).radius.round(3)
    array([0.136])
    """
    n_regions = evidence.tally.n_regions
    if why_vacuous(evidence, alpha) is not None:
        return Interval(np.zeros(n_regions), np.ones(n_regions))
    return around(weighted_rates(evidence.tally), np.full(n_regions, _radius(evidence, alpha)))


def why_vacuous(evidence: Evidence, alpha: float) -> str | None:
    """Return, in words, why the theorem says nothing about these data; None if it says something.

    >>> import numpy as np
    >>> from calibrant import Partition, Tally
    >>> from calibrant.shift import Evidence
    >>> tally = Tally.from_data(Partition.fixed_width(1), [0.5, 0.5], [0, 1],
    ...     importance_weight=[0.5, 1.5])
    >>> why_vacuous(Evidence(tally, weight_bound=2.0), 0.1)
    'vacuous: the weights have no lower bound above 0, so (U/L)^2 is infinite'
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    tally = evidence.tally
    bound = evidence.weight_bound
    floor = evidence.weight_floor
    if floor == 0.0:
        return "vacuous: the weights have no lower bound above 0, so (U/L)^2 is infinite"
    n_rows = int(tally.counts.sum())
    n_regions = tally.n_regions
    log_term = np.log(6.0 * n_regions / alpha)
    needed = CONSTANT * (bound / floor) ** 2 * n_regions * log_term**2
    if n_rows < needed:
        return f"vacuous: the theorem needs at least {np.ceil(needed):,.0f} rows; got {n_rows:,}"
    fewest = int(tally.counts.min())
    if fewest < n_rows / (4 * n_regions):
        return (
            "vacuous: the theorem is about bins of nearly equal mass, each with at least n/(4B) = "
            f"{n_rows / (4 * n_regions):,.0f} rows; got one with {fewest:,}"
        )
    radius = _radius(evidence, alpha)
    return (
        None
        if radius < 1.0
        else f"vacuous: the half-width is {upper(radius)}, and rates lie between 0 and 1"
    )


def _radius(evidence: Evidence, alpha: float) -> float:
    n_rows = float(evidence.tally.counts.sum())
    n_regions = evidence.tally.n_regions
    spread = np.sqrt(n_regions * np.log(6.0 * n_regions / alpha) / (2.0 * n_rows))
    return float(CONSTANT * (evidence.weight_bound / evidence.weight_floor) ** 2 * spread)


def oracle(evidence: Evidence, alpha: float) -> Interval:
    """The paper's limits for known relative masses, exactly as stated in its Theorem 11 (appendix).

    Provided for comparison: it needs m_b = P(b) / P~(b), which is unknown in practice, and is still
    wider than methods that do not need it. The weights must be the density ratio itself. Their sum
    is not used for scaling, so with a multiple of the ratio, the limits are wrong by that factor.

    Parameters
    ----------
    evidence : Evidence
        A tally with importance weights, the density ratio itself; their upper bound U; and m_b for
        every region. The rows are i.i.d. and the regions were not chosen by looking at the labels.
    alpha : float in (0, 1)
        The largest probability that some region's interval misses its target rate.

    Returns
    -------
    Interval
        pi-hat +- radius, within [0, 1]; [0, 1] for an empty region.

    Notes
    -----
    pi-hat = (1/N) sum of m w y, radius sqrt(2 V ln(3B/alpha) / N) + 3 m U ln(3B/alpha) / N, where V
    is the empirical variance of m w y.

    References
    ----------
    Gupta, Podkopaev & Ramdas (2020), "Distribution-free binary classification: prediction sets,
    confidence intervals and calibration", NeurIPS, Theorem 11, in the appendix on covariate shift.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Partition, Tally
    >>> from calibrant.shift import Evidence
    >>> bins = Partition.fixed_width(1)
    >>> tally = Tally.from_data(bins, np.full(1000, 0.5), np.arange(1000) % 2,
    ...     importance_weight=np.ones(1000))
    >>> oracle(Evidence(tally, weight_bound=1.0, relative_mass=np.ones(1)), 0.1).radius.round(4)
    array([0.0514])
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    if evidence.relative_mass is None:
        advice = "use betting, which does not need it"
        raise InvalidTypeError("relative_mass", "be given", got="None", advice=advice)
    tally = evidence.tally
    bound = evidence.weight_bound
    m = _checked(evidence.relative_mass, tally.n_regions)
    count = np.maximum(tally.counts, 1).astype(np.float64)
    rates = m * weight_sums(tally).wy.rounded() / count
    center = np.where(tally.counts > 0, rates, np.nan)
    squares = m * m * weight_sums(tally).w2y.rounded() / count
    variance = np.maximum(squares - rates * rates, 0.0)
    log_term = np.log(3.0 * tally.n_regions) - np.log(alpha)
    return around(
        center, np.sqrt(2.0 * variance * log_term / count) + 3.0 * m * bound * log_term / count
    )


def _checked(values: ArrayLike, n_regions: int) -> FloatArray:
    """Return one relative mass per region, each a finite number > 0."""
    masses = as_numbers(values, "relative_mass")
    if masses.shape != (n_regions,):
        raise InvalidValueError(
            "relative_mass", f"have one entry per region, {n_regions}", got=str(masses.size)
        )
    bad = np.flatnonzero(masses <= 0.0)
    if bad.size:
        raise InvalidValueError(
            "relative_mass", "be > 0", got=f"{masses[bad[0]]:g} for region {int(bad[0])}"
        )
    return masses
