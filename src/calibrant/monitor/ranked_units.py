"""Have the rates changed, if rows of the same day or week are dependent? Rank days among each
other.
"""

from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from calibrant._typing import FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.monitor.change import Change
from calibrant.monitor.martingale import ShiftMixture
from calibrant.monitor.watched import Watched
from calibrant.params.declared_state import Resumed, Resumes
from calibrant.params.kind import EntryTable
from calibrant.params.random import RandomSource
from calibrant.params.rules import Number
from calibrant.params.state_kinds import Lists, Numbers, OneCount, Tabled

_SIZES = np.array([0.1, 0.2, 0.4, 0.8, 1.6])
_DAYS_A_WEEK = 7


class RankedUnits(Resumed):
    """The rank of each unit's residual among all units so far, and bets that ranks have become
    higher or lower.

    The residual of a unit is sum (s_b - n_b p_b) / sqrt(sum n_b p_b (1 - p_b)), over regions with
    n_b rows, s_b of them positive. The rates p_b come from calibration: from rows that are in no
    unit. If units are exchangeable, the rank of each among the n units up to it is uniform and
    independent of the earlier ranks. With ties broken at random and V uniform, (rank - V) / n is
    then uniform on [0, 1] for every n, so the numbers z = Phi^-1((rank - V) / n) are exactly
    independent N(0, 1).
    """

    _entries: ClassVar[EntryTable] = {
        "reference": OneCount(),
        "residuals": Lists(Lists(Number(), into=list), size="n_kinds", into=list),
        "sums": Tabled(Numbers(low=0.0), n_rows=3),
        "n_units": OneCount(),
        "mixture": Resumes("mixture"),
    }

    def __init__(self, watched: Watched, seed: int, reference: int, weekdays: bool) -> None:
        self.watched = watched
        self.reference = reference
        self.weekdays = weekdays
        self.n_kinds = _DAYS_A_WEEK if weekdays else 1
        self.residuals: list[list[float]] = [[] for _ in range(self.n_kinds)]
        self.sums = np.zeros((3, 0))  # for the units since each start: rows, hits, expected hits
        self.n_units = 0
        self.mixture = ShiftMixture(np.ones((1, self.n_kinds)), np.ones(1), _SIZES)
        self._source = RandomSource.of(seed, "drift of ranks")

    n_waiting = 0
    """Always 0: units are processed immediately, while rows of `PooledRates` wait for their batch.
    """
    batch_rows = 1

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
        rates = self.watched.baseline
        expected = float(rows @ rates)
        variance = float(rows @ (rates * (1.0 - rates)))
        residual = (
            (float(hits.sum()) - expected) / float(np.sqrt(variance)) if variance > 0.0 else 0.0
        )
        earlier = np.array(self.residuals[kind])
        if not self.in_reference:
            if self.mixture.begins():
                self.sums = np.concatenate([self.sums, np.zeros((3, 1))], axis=1)
            self._bet(residual, earlier, kind)
            self.sums = self.sums + np.array([[rows.sum()], [hits.sum()], [expected]])
        self.residuals[kind].append(residual)
        self.n_units += 1

    def _bet(self, residual: float, earlier: FloatArray, kind: int) -> None:
        uniform = float(self._source.uniforms(np.array([self.n_units], dtype=np.uint64))[0])
        less = int(np.count_nonzero(earlier < residual))
        equal = int(np.count_nonzero(earlier == residual)) + 1
        share = (less + uniform * equal) / (earlier.size + 1)
        z = np.zeros(self.n_kinds)
        z[kind] = ndtri(np.clip(share, 1e-300, 1.0 - 2.0**-53))
        strength = np.zeros(self.n_kinds)
        strength[kind] = np.sqrt(earlier.size / (earlier.size + 1.0))
        pool = np.array([len(units) for units in self.residuals], dtype=np.float64)
        self.mixture.update(z, strength, pool)

    def changes(self, start: int) -> tuple[Change, ...]:
        """What has changed since a start, over all regions. There are no limits, because units may
        differ in any way.
        """
        rows, hits, expected = self.sums[:, start].tolist()
        total = max(rows, 1.0)
        return (Change(None, "all regions", int(rows), expected / total, hits / total, None, None),)

    def _check_state(self) -> None:
        if sum(map(len, self.residuals)) != self.n_units:
            raise InvalidValueError("residuals", f"be {self.n_units:,} numbers in all")
        n_starts = self.mixture.n_starts
        if self.sums.shape[1] != n_starts:
            raise InvalidValueError("sums", f"have {n_starts} starts")
        if (self.sums[0] != np.floor(self.sums[0])).any():
            raise InvalidValueError("sums", "begin with whole numbers")
