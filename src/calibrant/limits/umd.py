"""Uniform mass without a sample split: one closed-form width for all bins."""

from __future__ import annotations

import numpy as np

from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.limits.interval import Interval, around
from calibrant.params.rules import OPEN_UNIT
from calibrant.text.sentences import Setting


def umd(tally: Tally, alpha: float) -> Interval:
    """The closed form for uniform-mass bins whose edges were cut from the same rows, without a
    split.

    It is Hoeffding's bound with the smallest count that one of these bins can have, so its width is
    known before any data are seen. That makes it useful for planning, but it is never the narrowest
    method.

    Parameters
    ----------
    tally : Tally
        Counts and positives of B uniform-mass bins, and the number n of all rows (``n_rows``),
        including edge rows.
    alpha : float in (0, 1)
        The largest probability that some region's interval misses its mean.

    Returns
    -------
    Interval
        k/N +- one width, within [0, 1].

    Raises
    ------
    ValueError
        If floor(n/B) <= 1, or if a region has fewer than floor(n/B) - 1 rows, as with atoms of tied
        scores and in other partitions: then the closed form is narrower than Hoeffding's bound.

    Notes
    -----
    k/N +- sqrt(ln(2B/alpha) / (2 (floor(n/B) - 1))), within [0, 1].

    References
    ----------
    Gupta & Ramdas (2021), "Distribution-free calibration guarantees for histogram binning without
    sample splitting", ICML.

    Examples
    --------
    >>> from calibrant import Tally
    >>> umd(Tally.from_counts([1000] * 10, [500] * 10), alpha=0.1).radius[0].round(4)
    np.float64(0.0515)
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    smallest = tally.n_rows // tally.n_regions - 1
    fewest = int(tally.counts.min())
    method = Setting("interval", "umd")
    exact = ("use ", Setting("interval", "clopper-pearson"))
    if smallest < 1:
        got = f"{tally.n_rows} rows in {tally.n_regions} regions"
        needs = (method, " needs at least 2 rows per region")
        raise InvalidValueError(None, needs, got=got, advice=(*exact, " or fewer bins"))
    if fewest < smallest:
        got = f"a region with {fewest} rows where floor(n/B) - 1 = {smallest}"
        rows = (
            " needs at least floor(n/B) - 1 rows in every region, as uniform-mass bins of untied"
            " scores have"
        )
        raise InvalidValueError(
            None, (method, rows), got=got, advice=(*exact, ", which is exact for any counts")
        )
    log_term = np.log(2.0 * tally.n_regions) - np.log(alpha)
    width = np.sqrt(log_term / (2.0 * smallest))
    return around(tally.rates, np.full(tally.n_regions, width))
