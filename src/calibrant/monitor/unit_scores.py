"""The score of a day: how high its number of positives is, for its volume and mix of scores."""

import numpy as np
from scipy.special import betainc

from calibrant._typing import FloatArray, IntArray

_DIGITS = 12  # rounding errors must not order days whose scores are equal
_OWN = 1e-9  # a day with a smaller share of its variance left has fitted its own rates


def unit_scores(rows: IntArray, hits: IntArray, uniforms: FloatArray) -> FloatArray:
    """A score in [0, 1] for each unit, from the rows and hits of each unit and region.

    The expected hits m of a unit use the rates of all units together, p_b. Its labels alone give
    the variance sum n_b (1 - n_b / N_b) p_b (1 - p_b), where n_b / N_b is the unit's own share in
    p_b. Units may differ by more than that, so the variance is multiplied by 1 + t V with V = sum
    n_b p_b (1 - p_b), and t is estimated from all units. The score is P(H < hits) + u P(H = hits),
    where H has mean m, this variance and the shape of a binomial. It is close to uniform for any
    volume, mix and rate, where a plain residual has a spread and a skewness that depend on them.

    A score depends on the other units only as a set: with the units in another order, each keeps
    its score.

    >>> rows = np.array([[50, 50], [50, 50], [100, 300]])
    >>> hits = np.array([[5, 25], [5, 40], [10, 180]])
    >>> unit_scores(rows, hits, np.full(3, 0.5)).round(2).tolist()
    [0.12, 0.97, 0.35]
    """
    in_region = np.maximum(rows.sum(axis=0), 1)
    rates = hits.sum(axis=0) / in_region
    spread = rates * (1.0 - rates)
    n_rows = rows.sum(axis=1).astype(np.float64)
    n_hits = hits.sum(axis=1).astype(np.float64)
    expected = rows @ rates
    labels = rows @ spread
    left = np.maximum((rows * (1.0 - rows / in_region)) @ spread, 0.0)
    room = float(left @ labels)
    excess = float(((n_hits - expected) ** 2 - left).sum())
    extra = max(0.0, excess / room) if room > 0.0 else 0.0
    variance = left * (1.0 + extra * labels)

    share = expected / np.maximum(n_rows, 1.0)
    binomial = expected * (1.0 - share)
    known = (left > _OWN * labels) & (binomial > 0.0)
    factor = np.divide(variance, binomial, out=np.ones(n_rows.size), where=known)
    above = _at_most(n_hits, n_rows, share, factor)
    below = _at_most(n_hits - 1.0, n_rows, share, factor)
    scores = np.where(known, below + uniforms * (above - below), uniforms)
    return np.asarray(np.round(scores, _DIGITS))


def _at_most(
    hits: FloatArray, n_rows: FloatArray, share: FloatArray, factor: FloatArray
) -> FloatArray:
    """The probability of at most `hits`: exactly binomial for a factor of 1, and else with a
    variance that is larger by this factor.
    """
    inside = (hits >= 0.0) & (hits < n_rows)
    k = np.where(inside, hits, 0.0)
    n = np.where(inside, n_rows, 1.0)
    found = betainc((n - k - 0.5) / factor + 0.5, (k + 0.5) / factor + 0.5, 1.0 - share)
    return np.asarray(np.where(inside, found, hits >= n_rows), dtype=np.float64)
