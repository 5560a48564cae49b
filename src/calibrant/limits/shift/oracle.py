"""The paper's theorem for known relative masses: an oracle, for comparison."""

from __future__ import annotations

import numpy as np

from calibrant._typing import ArrayLike, FloatArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.interval import Interval, around
from calibrant.limits.shift.evidence import Evidence, weight_sums
from calibrant.params.arrays import as_numbers
from calibrant.params.rules import OPEN_UNIT


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
