"""Have the rates changed, if rows of the same day or week are dependent? Rank days among each
other.
"""

from typing import ClassVar

import numpy as np
from scipy.special import betainc, ndtri

from calibrant._typing import FloatArray, IntArray
from calibrant.monitor.change import Change, compared_rates
from calibrant.monitor.martingale import ShiftMixture
from calibrant.monitor.watched import Watched
from calibrant.params.declared_state import Resumed, Resumes
from calibrant.params.kind import EntryTable
from calibrant.params.random import RandomSource
from calibrant.params.state_kinds import Counts, OneCount, Tabled

_SIZES = np.array([0.1, 0.2, 0.4, 0.8, 1.6])
_DAYS_A_WEEK = 7
_OF_REGIONS = Counts(size="watched.n_regions")


class RankedUnits(Resumed):
    """The rank of each unit's score among all units so far, and bets that ranks have become higher
    or lower.

    With each unit, all scores are computed again from the rows and hits of all units up to it
    (`unit_scores`), so no rate must be known beforehand. Let units be exchangeable: each unit as a
    whole, with its volume and its mix of scores. Given the set of the first n units and all units
    after them, each of the n is equally likely to be the last. Scores depend on that set alone, so
    the rank of the last is uniform; and later ranks are functions of what is given, so it is
    independent of them. With ties broken at random and V uniform, (rank - V) / n is uniform on
    [0, 1] for every n, however small, so the numbers z = Phi^-1((rank - V) / n) are exactly
    independent N(0, 1). With `weekdays`, all of this holds within each weekday.

    If volume or mix moves, ranks are no longer exactly uniform. But scores are close to uniform at
    any volume and mix, and close to independent: the difference between a unit and all units up to
    it is uncorrelated with the earlier ones, as recursive residuals are.
    """

    _entries: ClassVar[EntryTable] = {
        "reference": OneCount(),
        "kinds": Counts(),
        "rows": Tabled(_OF_REGIONS),
        "hits": Tabled(_OF_REGIONS),
        "mixture": Resumes("mixture"),
    }

    def __init__(self, watched: Watched, seed: int, reference: int, weekdays: bool) -> None:
        self.watched = watched
        self.reference = reference
        self.n_kinds = _DAYS_A_WEEK if weekdays else 1
        self.kinds = np.zeros(0, dtype=np.int64)
        self.rows = np.zeros((0, watched.n_regions), dtype=np.int64)
        self.hits = self.rows
        self.mixture = ShiftMixture(np.ones((1, self.n_kinds)), np.ones(1), _SIZES)
        self._source = RandomSource.of(seed, "drift of ranks")
        self._of_labels = RandomSource.of(seed, "drift of ranks: labels")

    n_waiting = 0
    """Always 0: units are processed immediately, while rows of `PooledRates` wait for their batch.
    """
    batch_rows = 1

    @property
    def n_units(self) -> int:
        """Number of units so far."""
        return self.kinds.size

    @property
    def n_reference(self) -> int:
        """Number of units in the reference."""
        return self.reference

    @property
    def in_reference(self) -> bool:
        """Whether units still belong to the reference that later ones are ranked among."""
        return self.n_units < self.reference

    @property
    def begins(self) -> bool:
        """Whether a start of bets begins with the next unit."""
        return not self.in_reference and self.mixture.begins()

    def take(self, rows: IntArray, hits: IntArray, kind: int) -> None:
        """Process the rows and positive rows of a unit; `kind` is its weekday, or 0."""
        pool = np.bincount(self.kinds, minlength=self.n_kinds).astype(np.float64)
        is_compared = not self.in_reference
        self.kinds = np.append(self.kinds, kind)
        self.rows = np.concatenate([self.rows, rows[None, :]])
        self.hits = np.concatenate([self.hits, hits[None, :]])
        if is_compared:
            z = np.zeros(self.n_kinds)
            z[kind] = ndtri(np.clip(self._share_below(kind), 1e-300, 1.0 - 2.0**-53))
            strength = np.zeros(self.n_kinds)
            strength[kind] = np.sqrt(pool[kind] / (pool[kind] + 1.0))
            self.mixture.update(z, strength, pool)

    def _share_below(self, kind: int) -> float:
        """The randomised rank of the last unit among those of its kind, as a share of them."""
        (places,) = np.nonzero(self.kinds == kind)
        keys = places.astype(np.uint64)
        scores = unit_scores(self.rows[places], self.hits[places], self._of_labels.uniforms(keys))
        less = int(np.count_nonzero(scores < scores[-1]))
        equal = int(np.count_nonzero(scores == scores[-1]))
        return (less + float(self._source.uniforms(keys[-1:])[0]) * equal) / scores.size

    def changes(self, start: int, alpha: float) -> tuple[Change, ...]:
        """What has changed since a start, over all regions. There are no limits, because units may
        differ in any way.
        """
        first = int(self.mixture.first[start].sum())
        before = self.rows[:first].sum(axis=0), self.hits[:first].sum(axis=0)
        since = self.rows[first:].sum(axis=0), self.hits[first:].sum(axis=0)
        compared = compared_rates(before, since)
        return () if compared is None else (Change(None, "all regions", *compared, None, None),)


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
