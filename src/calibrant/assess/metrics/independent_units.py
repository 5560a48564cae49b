"""The independent units: rows, rows with importance weights, or groups of rows."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IndexArray
from calibrant.calibrators.regions.weighted_rows import checked_bound
from calibrant.cells.units import RowUnits
from calibrant.errors import InvalidTypeError
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits, Draws
from calibrant.limits.interval import Interval
from calibrant.params.bounds import GROUP_SIZE, WEIGHT_BOUND
from calibrant.params.random import RandomSource
from calibrant.params.rules import Optional
from calibrant.sample.groups import Groups
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.numbers import counted, nearest, percent

_LIMITED = Optional(GROUP_SIZE)


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Independent draws from one distribution, each with a weight, and a bound on the weights.

    Attributes
    ----------
    unit : int array of shape (n_rows,) or None
        The unit that each row belongs to; None if each row is a unit.
    row_weights : float array of shape (n_rows,) or None
        The weight of each row; None if all are 1.
    bound : float
        An upper bound on the weight of a unit.
    bounded : bool
        Whether the bound is known, rather than the largest weight seen.
    population : str
        The population that a mean is about, if it is not that of the rows.
    counts_as : str
        The text on the cap of a group, and on the share of rows above it; empty without groups.
    weighted : bool
        Whether rows have importance weights.
    rows : int
        The fingerprint of the rows, which determines the random order of bets.
    """

    unit: IndexArray | None
    row_weights: FloatArray | None
    bound: float
    bounded: bool
    population: str
    counts_as: str = ""
    weighted: bool = False
    rows: int = 0

    @classmethod
    def of(
        cls, rows: MemoryRows, weight_bound: float | None, max_group_size: int | None
    ) -> tuple[MemoryRows, Self]:
        """The units of rows, and the rows with the weights with which they count.

        A group counts as at most `max_group_size` rows, of the largest weight if rows have weights:
        in a larger group each row counts less.
        """
        Optional(WEIGHT_BOUND).check("weight_bound", weight_bound)
        size = _LIMITED.check("max_group_size", max_group_size)
        for name, value, needed, given in (
            ("weight_bound", weight_bound, "importance_weight", rows.weights),
            ("max_group_size", size, "groups", rows.groups),
        ):
            if value is not None and given is None:
                raise InvalidTypeError(name, f"be None without {needed}", got=repr(value))
        if rows.groups is not None:
            return cls._of_groups(rows, rows.groups, weight_bound, size)
        if rows.weights is None:
            return rows, cls(None, None, 1.0, bounded=True, population="", rows=rows.fingerprint())
        bound = checked_bound(rows.weights, weight_bound)
        return rows, cls(
            None,
            rows.weights,
            bound,
            weight_bound is not None,
            " in the weighted population",
            weighted=True,
            rows=rows.fingerprint(),
        )

    @classmethod
    def _of_groups(
        cls,
        rows: MemoryRows,
        groups: Groups,
        weight_bound: float | None,
        size: int | None,
    ) -> tuple[MemoryRows, Self]:
        unit = np.unique(groups.codes, return_inverse=True)[1]
        of_rows = rows.units
        own = of_rows.weights
        total = of_rows.totals
        if rows.weights is None:
            most = 1.0
            about = "of rows of new groups"
            counts_as = f"as at most {counted(size, 'row')}" if size else ""
        else:
            most = checked_bound(own, weight_bound)
            about = "of rows of new groups in the weighted population"
            counts_as = f"by a weight of at most {size * most:,g}" if size else ""
        largest = float(total.max() if size is None else size * most)
        weights = of_rows.capped(largest)
        capped = size is not None and total.max() > largest
        bounded = size is not None and (rows.weights is None or weight_bound is not None)
        said = f" {about}"
        if capped:
            above = percent(float(nearest(1.0 - float(weights.sum()) / float(own.sum()))))
            counts_as += (
                f" ({above} of the {'rows are' if rows.weights is None else 'weight is'} above"
                " that)"
            )
            said += f", where a group counts {counts_as}"
        return replace(rows, weights=weights), cls(
            unit,
            weights,
            largest,
            bounded,
            said,
            counts_as,
            rows.weights is not None,
            rows.fingerprint(),
        )

    @classmethod
    def bounded_of(
        cls, rows: MemoryRows, weight_bound: float | None, max_group_size: int | None
    ) -> tuple[MemoryRows, Self]:
        """The units and rows as in `of`, for claims that need a bound; raise an error if there is
        none.
        """
        counted_rows, units = cls.of(rows, weight_bound, max_group_size)
        if not units.bounded:
            name = "weight_bound"
            beside = "importance weights"
            advice = None
            if rows.groups is not None and max_group_size is None:
                name = "max_group_size"
                beside = "groups"
                advice = (
                    "choose it before looking at these rows; a typical size is often best, as the"
                    " page 'Grouped or clustered data' explains"
                )
            raise InvalidTypeError(
                name,
                f"be given with {beside}: nothing is proved without it",
                advice=advice,
            )
        return counted_rows, units

    @property
    def assumption(self) -> str:
        """What must be true about the draws."""
        weights = ", and their weights are right and bounded" if self.weighted else ""
        drawn = "rows" if self.unit is None else "groups"
        return f"the {drawn} are independent draws from one distribution{weights}"

    @property
    def n_units(self) -> int:
        """The number of groups; 0 if each row is a unit."""
        return 0 if self.unit is None else int(self.unit.max(initial=-1)) + 1

    def part(self, rows: IndexArray) -> "Units":
        """Some of the rows, whose units keep their indices."""
        unit = None if self.unit is None else self.unit[rows]
        return replace(
            self,
            unit=unit,
            row_weights=None if self.row_weights is None else self.row_weights[rows],
        )

    def weights(self, n_rows: int) -> FloatArray:
        """Return the weight of each row."""
        return np.ones(n_rows) if self.row_weights is None else self.row_weights

    def mean(self, outcomes: FloatArray | CodeArray) -> float:
        """The weighted mean over rows."""
        return float(np.average(outcomes, weights=self.row_weights))

    def sums(self, values: FloatArray) -> FloatArray:
        """Weighted sums over the rows of each unit."""
        if self.unit is not None:
            return self._groups(self.unit).sums(values)
        return values if self.row_weights is None else values * self.row_weights

    def limits(
        self, outcomes: FloatArray, alpha: float, *, ends: tuple[float, float] = (0.0, 1.0)
    ) -> tuple[float, float]:
        """Limits for the mean of outcomes, by bets on the units.

        Each of the two misses with probability at most alpha / 2.

        With W the sum of weights of a unit, at most `bound`, and z the weighted mean of its
        outcomes, the mean is E[W z] / E[W] (`calibrant.limits.bet_limits`). Assumed: the units are
        independent draws from one distribution, and no outcome lies outside `ends`, which are fixed
        without them.

        Parameters
        ----------
        outcomes : float array of shape (n_rows,)
            The outcome of each row.
        alpha : float in (0, 1)
            Largest probability that the interval misses.
        ends : pair of float, default=(0.0, 1.0)
            The range of outcomes, up to rounding.
        """
        everywhere = np.zeros(outcomes.size, dtype=np.intp)
        found = self.means(outcomes, everywhere, 1, alpha, ends=ends)
        return float(found.lower[0]), float(found.upper[0])

    def means(
        self,
        outcomes: FloatArray,
        place: IndexArray,
        n_places: int,
        delta: float,
        *,
        ends: tuple[float, float] = (0.0, 1.0),
    ) -> Interval:
        """Limits as in `limits` for the mean of outcomes over the rows of each place; each interval
        misses with probability at most `delta`.
        """
        if self.unit is None:
            weights = None if self.row_weights is None else _scaled(self.row_weights, self.bound)
            return self._bets(Draws(place, outcomes, weights), n_places, delta, ends)
        cells = self._groups(self.unit).in_cells(place, n_places)
        mean = cells.sums(outcomes[cells.rows]) / cells.total
        draws = Draws(cells.cell, mean, _scaled(cells.total, self.bound))
        return self._bets(draws, n_places, delta, ends)

    def share_limits(self, part: FloatArray, rest: FloatArray, alpha: float) -> tuple[float, float]:
        """Limits for E[part] / E[part + rest], both from 0 to 1: a mean with part + rest as the
        weight.
        """
        total = self.sums(part + rest)
        used = total > 0.0
        nowhere = np.zeros(np.count_nonzero(used), dtype=np.intp)
        share = self.sums(part)[used] / total[used]
        draws = Draws(nowhere, share, _scaled(total[used], 2.0 * self.bound))
        found = self._bets(draws, 1, alpha, (0.0, 1.0))
        return float(found.lower[0]), float(found.upper[0])

    def _groups(self, unit: IndexArray) -> RowUnits:
        """The rows by the unit that each belongs to."""
        return RowUnits(unit, self.n_units, self.weights(unit.size))

    def _bets(
        self, draws: Draws, n_places: int, delta: float, ends: tuple[float, float]
    ) -> Interval:
        """Limits for each place; the order of bets is drawn for these rows, which may be sorted."""
        source = RandomSource.of(0, "order of bets", rows=self.rows)
        low, high = (np.full(n_places, end) for end in ends)
        draws = draws._replace(value=np.clip(draws.value, *ends))  # beyond by rounding alone
        units = BetUnits.of(draws, low, high, source.generator())
        return bet_limits(units, np.full(n_places, delta / 2.0))

    def standard_error(self, outcomes: FloatArray) -> float:
        """Standard error of the weighted mean, from the spread of the units."""
        weights = self.sums(np.ones(outcomes.size))
        mean = float(self.sums(outcomes).sum() / weights.sum())
        off = self.sums(outcomes - mean)
        n = off.size
        return math.sqrt(float(np.square(off).sum()) * n / max(n - 1, 1)) / float(weights.sum())


ROWS = Units(None, None, 1.0, bounded=True, population="")
"""Each row is one independent draw."""


def _scaled(weights: FloatArray, bound: float) -> FloatArray:
    """Weights over their bound; those of groups are sums, and so are rounded."""
    return weights / (bound * (1.0 + 1e-12))
