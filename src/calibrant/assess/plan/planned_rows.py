"""The width of the limits from a number of rows or groups."""

import math
from dataclasses import asdict, dataclass, replace

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from calibrant._typing import FloatArray, IntArray
from calibrant.assess.plan.result import Plan
from calibrant.calibrators.regions.binned_rows import look_size
from calibrant.calibrators.regions.grouped_rows import n_pilot_groups
from calibrant.cells.score_partition import edge_ranks
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.limits.error_budget import ABSORBED_SHARE, budgets
from calibrant.limits.methods import METHODS, get_method
from calibrant.params.rules import Number, error_budget
from calibrant.text.sentences import Setting

INTERVALS = tuple(METHODS)


_FIRST_TRIED = 12  # counts of positives; they show which others need not be tried


_MOST_TRIED = 4_000  # counts of positives that are tried one by one; beyond, a bound is used


_ROUNDING = 1e-10


CORRELATION = Number("a number from 0 to 1", 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class PlannedRows:
    """The planned setup: `BinningCalibrator` with these settings, on independent rows."""

    confidence_level: float
    n_bins: int
    interval: str
    base_rate: float | None
    pilot: float | int | str | None
    probability: float

    def answer(self, n: int) -> Plan:
        """What `n` rows prove."""
        epsilon, smallest = min(
            (way._epsilon(*way._sizes(n)), way._sizes(n)[0]) for way in self._ways
        )
        return Plan(n, epsilon, smallest, **asdict(self))

    def enough(self, n: int, epsilon: float) -> bool:
        """Whether `n` rows prove `epsilon`."""
        return any(way._epsilon(*way._sizes(n), epsilon) <= epsilon for way in self._ways)

    @property
    def _ways(self) -> "tuple[PlannedRows, ...]":
        """The question with its base rate, and without: no plan depends on rows, so the better one
        may be chosen.

        A base rate can cost more than it gains: the number of positives is one more random event,
        so less of the failure probability is left for the sizes of bins.
        """
        return (self,) if self.base_rate is None else (self, replace(self, base_rate=None))

    @property
    def _alpha(self) -> float:
        """The share of alpha for the limits on rates."""
        alpha = budgets(error_budget(self.confidence_level))[0]
        return alpha * (1.0 - ABSORBED_SHARE) if self.pilot == "auto" and self.n_bins > 1 else alpha

    @property
    def _share(self) -> float:
        """The failure probability for each random number: of positives, of rows in a bin, of rows
        that cut the bins.
        """
        drawn = 0 if self.pilot in (None, "auto") else 1 + isinstance(self.pilot, float)
        events = (self.base_rate is not None) + drawn
        return error_budget(self.probability) / max(events, 1)

    def _sizes(self, n: int) -> tuple[int, list[int], int]:
        """The number of rows in the smallest bin, all sizes of bins, if known, and the number of rows
        that are counted.
        """
        if self.pilot is None or isinstance(self.pilot, str):
            if n < self.n_bins:
                raise InvalidValueError(
                    "n", ("be at least ", Setting("n_bins", self.n_bins)), got=str(n)
                )
            if self.pilot == "auto":
                n -= look_size(n, self.n_bins)
            ranks = np.concatenate([[0], edge_ranks(n, self.n_bins), [n + 1]])
            sizes = np.unique(np.diff(ranks) - 1).tolist()
            return sizes[0], sizes, n
        fewest = most = int(self.pilot)
        if isinstance(self.pilot, float):  # each row is drawn with this probability
            fewest, most = (
                int(binom.ppf(tail, n, self.pilot))
                for tail in (self._share / 2, 1 - self._share / 2)
            )
        log_term = math.log(2 * self.n_bins / self._share)
        needed = math.ceil(self.n_bins * log_term / (math.log(2) - 0.5))
        counting = n - most
        if counting <= 0 or fewest < needed:
            return 0, [], max(n - fewest, 0)
        smallest = math.floor(counting / (2 * self.n_bins) - math.sqrt(counting * log_term / 2))
        return max(0, smallest), [], n - fewest

    def _epsilon(self, smallest: int, known: list[int], counted: int, target: float = 0.0) -> float:
        """Largest distance between a limit and the observed rate.

        Exact enough to be compared with a target.
        """
        most = counted
        if self.base_rate is not None:
            rarer = min(self.base_rate, 1.0 - self.base_rate)
            most = int(binom.ppf(1.0 - self._share, counted, rarer))
        if not known:
            return self._bound(smallest, most)
        counts = {rows: min(most, rows // 2) for rows in known if rows}
        best = self._first_tried(counts) if counts else 0.0
        best = best if smallest else max(best, 0.5)  # for an empty bin
        if best > target > 0.0:
            return best
        bound = self._bound(smallest, most)
        if bound <= target:
            return bound
        for rows, largest in counts.items():
            best = self._largest_radius(rows, largest, best)
        return best

    def _first_tried(self, counts: dict[int, int]) -> float:
        """Largest radius over a few counts of positives, from none to the most that a bin of each
        size can have.
        """
        some = {
            rows: np.unique(np.linspace(0, most, _FIRST_TRIED).astype(np.int64))
            for rows, most in counts.items()
        }
        sizes = np.repeat(list(some), [len(positives) for positives in some.values()])
        return float(self._radii(np.concatenate(list(some.values())), sizes).max())

    def _bound(self, rows: int, most: int) -> float:
        """An upper bound on the radius of every bin with at least `rows` rows and at most `most`
        positives.
        """
        if rows == 0:
            return 1.0
        bound = get_method(self.interval).largest_radius
        return min(1.0, bound(rows, most, self._alpha, self.n_bins))

    def _largest_radius(self, rows: int, most: int, best: float) -> float:
        """The largest of `best` and the radii over all counts of positives up to `most`, or as many
        of the other class.
        """
        if best >= self._bound(rows, most):
            return best
        # smaller counts have smaller bounds
        ruled_out = -1
        left = most
        while left - ruled_out > 1:
            middle = (ruled_out + left) // 2
            ruled_out, left = (
                (middle, left) if self._bound(rows, middle) <= best else (ruled_out, middle)
            )
        if most - ruled_out > _MOST_TRIED:
            return self._bound(rows, most)
        positives = np.arange(left, most + 1)
        return max(best, float(self._radii(positives, np.full(positives.size, rows)).max()))

    def _radii(self, positives: IntArray, rows: IntArray) -> FloatArray:
        """Radius for each number of positives among `rows` rows, at the level of each of `n_bins`
        bins.
        """
        alpha = self._alpha
        method = get_method(self.interval)
        # evaluate many regions at once, with an alpha that gives each the same level
        log_rest = math.log1p(-alpha)
        most = int(self.n_bins * (-20.0 / log_rest if method.exact else 0.9 / alpha))
        size = max(self.n_bins, min(most, positives.size))
        alpha = (
            -math.expm1(log_rest * (size / self.n_bins))
            if method.exact
            else alpha * (size / self.n_bins)
        )
        radii = []
        for start in range(0, positives.size, size):
            batch, n = (
                np.resize(values[start : start + size], size) for values in (positives, rows)
            )
            limits = method(Tally.from_counts(n, batch), alpha)
            values = np.array(
                [batch / n, (batch + 0.5) / (n + 1)]
            )  # of both values that are planned for
            radii.append(
                np.maximum(limits.upper - values.min(axis=0), values.max(axis=0) - limits.lower)
            )
        return np.minimum(np.concatenate(radii) * (1.0 + _ROUNDING), 1.0)


@dataclass(frozen=True, slots=True)
class PlannedGroups(PlannedRows):
    """Plans for grouped rows; `n` is a number of groups."""

    group_size: int
    icc: float

    def answer(self, n: int) -> Plan:
        """What `n` groups prove."""
        epsilon, smallest = self._of_groups(n)
        return Plan(n * self.group_size, epsilon, int(smallest * self.group_size), **asdict(self))

    def enough(self, n: int, epsilon: float) -> bool:
        """Whether `n` groups prove `epsilon`."""
        return self._of_groups(n)[0] <= epsilon

    def _of_groups(self, n_groups: int) -> tuple[float, float]:
        """The approximate epsilon, and the number of groups in the smallest bin."""
        bins = self.n_bins
        if n_groups <= bins:
            return 1.0, 0.0
        if isinstance(self.pilot, str):
            aside = n_pilot_groups(n_groups, bins)
        else:
            aside = (
                round(self.pilot * n_groups)
                if isinstance(self.pilot, float)
                else int(self.pilot or 0)
            )
        counted = n_groups - aside
        if counted <= 0 or (aside <= 0 and bins > 1):
            return 1.0, 0.0
        quantile = float(ndtri(1.0 - error_budget(self.probability) / bins))
        spread = quantile * math.sqrt(bins / aside + bins / counted) if bins > 1 else 0.0
        smallest = counted / bins * math.exp(-spread)
        if smallest < 1.0:
            return 1.0, max(smallest, 0.0)
        rate = (
            0.5
            if self.base_rate is None
            else min(min(self.base_rate, 1.0 - self.base_rate) * bins, 0.5)
        )
        log_term = math.log(2.0 * bins / error_budget(self.confidence_level))
        effect = 1.0 + (self.group_size - 1) * self.icc
        variance = rate * (1.0 - rate) * effect / (smallest * self.group_size)
        return (
            min(1.0, math.sqrt(2.0 * log_term * variance) + log_term / (3.0 * smallest)),
            smallest,
        )
