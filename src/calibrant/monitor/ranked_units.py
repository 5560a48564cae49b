"""Have the rates changed, where rows of one day or week depend on each other? Days are ranked among
each other.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import ndtri

from calibrant._typing import FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.monitor.change import Change
from calibrant.monitor.martingale import ShiftMixture
from calibrant.monitor.watched import Watched
from calibrant.params.random import RandomSource
from calibrant.params.rules import check_state
from calibrant.params.saved_state import read_count, read_counts, read_numbers

_SIZES = np.array([0.1, 0.2, 0.4, 0.8, 1.6])
_DAYS_A_WEEK = 7


class RankedUnits:
    """The rank of each unit's residual among all units so far, and bets that ranks have become
    higher or lower.

    The residual of a unit is sum (s_b - n_b p_b) / sqrt(sum n_b p_b (1 - p_b)), over regions with
    n_b rows and s_b positive ones. The rates p_b come from calibration: from rows that are in no
    unit. If units are exchangeable, the rank of each among those up to it is uniform and
    independent of the earlier ranks, so with ties broken at random z = Phi^-1((rank - V) / n) are
    independent N(0, 1) numbers as n grows, and uniform on a grid made continuous by V for every n:
    exact.
    """

    def __init__(self, watched: Watched, seed: int, reference: int, weekdays: bool) -> None:
        self.watched = watched
        self.reference = reference
        self.weekdays = weekdays
        self.n_kinds = _DAYS_A_WEEK if weekdays else 1
        self.residuals: list[list[float]] = [[] for _ in range(self.n_kinds)]
        self.sums = np.zeros((3, 0))  # of the units since each start: rows, hits, hits expected
        self.n_units = 0
        self.mixture = ShiftMixture(np.ones((1, self.n_kinds)), np.ones(1), _SIZES)
        self._source = RandomSource.of(seed, "drift of ranks")

    n_waiting = 0
    """Units are taken at once; rows of `PooledRates` wait for their batch."""
    batch_rows = 1

    @property
    def in_reference(self) -> bool:
        """Whether units still are those that later ones are ranked among."""
        return self.n_units < self.reference

    @property
    def begins(self) -> bool:
        """Whether the next unit begins a start of bets."""
        return not self.in_reference and self.mixture.begins()

    def take(self, rows: IntArray, hits: IntArray, kind: int) -> None:
        """Take the rows and positive rows of a unit; `kind` is its weekday, or 0."""
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
        """What has changed since a start, over all regions. No limits: units may differ in any way."""
        rows, hits, expected = self.sums[:, start].tolist()
        total = max(rows, 1.0)
        return (Change(None, "all regions", int(rows), expected / total, hits / total, None, None),)

    def to_dict(self) -> dict[str, Any]:
        """The residuals and the bets as plain JSON values."""
        return {
            "reference": self.reference,
            "residuals": self.residuals,
            "sums": self.sums.tolist(),
            "n_units": self.n_units,
            "mixture": self.mixture.to_dict(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `to_dict` wrote."""
        check_state(state, ("reference", "residuals", "sums", "n_units", "mixture"))
        self.reference = read_count(state, "reference")
        self.n_units = read_count(state, "n_units")
        kept = state["residuals"]
        if not isinstance(kept, list | tuple) or len(kept) != self.n_kinds:
            raise InvalidValueError("residuals", f"be {self.n_kinds} lists of numbers")
        self.residuals = [read_numbers(numbers, "residuals").tolist() for numbers in kept]
        if sum(map(len, self.residuals)) != self.n_units:
            raise InvalidValueError("residuals", f"be {self.n_units:,} numbers in all")
        self.mixture.restore(state["mixture"])
        sums = state["sums"]
        if not isinstance(sums, list | tuple) or len(sums) != 3:
            raise InvalidValueError("sums", "be three lists of numbers")
        read = [
            read_numbers(numbers, "sums", size=self.mixture.n_starts, low=0.0) for numbers in sums
        ]
        read_counts(sums[0], "sums")
        self.sums = np.array(read).reshape(3, self.mixture.n_starts)
