"""The independent units: rows, rows with importance weights, or groups of rows; and their division
at random into pilot rows, which only cut regions, and rows that are counted.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray
from calibrant.calibrators.regions.weighted_rows import checked_bound, weights_of
from calibrant.cells.entries import Entries
from calibrant.cells.units import RowUnits
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource
from calibrant.sample.groups import PILOT_SHARE, fewest_pilot_groups
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.numbers import counted, nearest, percent


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Independent draws from one distribution, each with a weight, and a bound on the weights.

    Attributes
    ----------
    of_rows : RowUnits or None
        The unit that each row belongs to, and the weight of each row; None if each row is a unit of
        weight 1.
    bound : float
        An upper bound on the weight of a unit.
    bounded : bool
        Whether the bound is known, rather than the largest weight seen.
    population : str
        The population that a mean is about, if it is not that of the rows.
    grouped : bool
        Whether units are groups of rows.
    counts_as : str
        The text on the cap of a group, and on the share of rows above it; empty without groups.
    capped : bool
        Whether a group counts for less than its rows, because it is larger than the cap.
    weighted : bool
        Whether rows have importance weights.
    rows : int
        The fingerprint of the rows, which determines the random order of bets.
    """

    of_rows: RowUnits | None
    bound: float
    bounded: bool
    population: str
    grouped: bool = False
    counts_as: str = ""
    capped: bool = False
    weighted: bool = False
    rows: int = 0

    @property
    def stated_population(self) -> str:
        """The population that a mean is about, and how a group counts if some are capped."""
        how = f", where a group counts {self.counts_as}" if self.capped else ""
        return f"{self.population}{how}"

    @property
    def stated_cap(self) -> str:
        """How a group counts if some are capped, to follow what limits rest on."""
        return f"; a group counts {self.counts_as}" if self.capped else ""

    @classmethod
    def of(cls, rows: MemoryRows) -> tuple[MemoryRows, Self]:
        """The units of rows, and the rows with the weights with which they count.

        A group counts as at most `rows.bounds.max_group_size` rows, of the largest weight if rows
        have weights: in a larger group each row counts less.
        """
        weight_bound = rows.bounds.weight_bound
        size = rows.bounds.max_group_size
        for name, value, needed, given in (
            ("weight_bound", weight_bound, "importance_weight", rows.weights),
            ("max_group_size", size, "groups", rows.groups),
        ):
            if value is not None and given is None:
                raise InvalidTypeError(name, f"be None without {needed}", got=repr(value))
        weighted = rows.weights is not None
        most = checked_bound(weights_of(rows), weight_bound) if weighted else 1.0
        has_bound = weight_bound is not None or not weighted
        population = " in the weighted population" if weighted else ""
        key = rows.fingerprint()
        if rows.groups is None:
            of_rows = rows.units if weighted else None
            return rows, cls(of_rows, most, has_bound, population, weighted=weighted, rows=key)
        own = rows.units
        total = own.totals
        largest = float(total.max()) if size is None else size * most
        weights = own.capped(largest)
        population = f" of rows of new groups{population}"
        counts_as = ""
        if size is not None:
            counts_as = f"as at most {counted(size, 'row')}"
            if weighted:
                counts_as = f"by a weight of at most {largest:,g}"
        capped = bool(total.max() > largest)
        if capped:
            above = percent(float(nearest(1.0 - float(weights.sum()) / float(total.sum()))))
            whole = "weight is" if weighted else "rows are"
            counts_as += f" ({above} of the {whole} above that)"
        present, unit = np.unique(rows.groups.codes, return_inverse=True)
        of_rows = RowUnits(unit, present.size, weights)
        bounded = has_bound and size is not None
        facts = (True, counts_as, capped, weighted, key)
        units = cls(of_rows, largest, bounded, population, *facts)
        return replace(rows, weights=weights), units

    @classmethod
    def bounded_of(cls, rows: MemoryRows) -> tuple[MemoryRows, Self]:
        """The units and rows as in `of`, for claims that need a bound; raise an error if there is
        none.
        """
        counted_rows, units = cls.of(rows)
        if units.bounded:
            return counted_rows, units
        if rows.groups is not None and rows.bounds.max_group_size is None:
            raise InvalidTypeError(
                "max_group_size",
                "be given with groups: no limit holds without it",
                advice="choose it before looking at these rows; a typical size is often best, as the"
                " page 'Grouped or clustered data' explains",
            )
        rule = "be given with importance weights: no limit holds without it"
        raise InvalidTypeError("weight_bound", rule)

    @property
    def assumption(self) -> str:
        """What must be true about the draws."""
        weights = ", and their weights are right and bounded" if self.weighted else ""
        drawn = "groups" if self.grouped else "rows"
        return f"the {drawn} are independent draws from one distribution{weights}"

    @property
    def n_units(self) -> int:
        """The number of groups; 0 if each row is a unit."""
        return self.of_rows.n_units if self.of_rows is not None and self.grouped else 0

    @property
    def row_weights(self) -> FloatArray | None:
        """The weight of each row; None if all are 1."""
        return None if self.of_rows is None else self.of_rows.weights

    def part(self, rows: IndexArray) -> "Units":
        """Some of the rows, whose units keep their indices."""
        return self if self.of_rows is None else replace(self, of_rows=self.of_rows.part(rows))

    def weights(self, n_rows: int) -> FloatArray:
        """Return the weight of each row."""
        return np.ones(n_rows) if self.of_rows is None else self.of_rows.weights

    def mean(self, outcomes: FloatArray | CodeArray) -> float:
        """The weighted mean over rows."""
        return float(np.average(outcomes, weights=self.row_weights))

    def sums(self, values: FloatArray) -> FloatArray:
        """Weighted sums over the rows of each unit."""
        return values if self.of_rows is None else self.of_rows.sums(values)

    def limits(
        self, outcomes: FloatArray, alpha: float, *, ends: tuple[float, float] = (0.0, 1.0)
    ) -> tuple[float, float]:
        """Limits for the mean of outcomes, by bets on the units.

        Each of the two misses with probability at most alpha / 2.

        With W the sum of weights of a unit, at most `bound`, and z the weighted mean of its
        outcomes, the mean is E[W z] / E[W] (`calibrant.limits.bet_limits`). Assumptions: the units
        are independent draws from one distribution, and no outcome lies outside `ends`, which are
        fixed without them.

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
        ends: tuple[FloatArray, FloatArray] | tuple[float, float] = (0.0, 1.0),
    ) -> Interval:
        """Limits as in `limits` for the mean of outcomes over the rows of each place; each interval
        misses with probability at most `delta`. `ends` may be those of each place.
        """
        entries = Entries(place, outcomes, n_places, self.row_weights, bound=self.bound)
        if self.grouped:
            entries = Entries.of_rows(outcomes, place, n_places, self.of_rows, self.bound)
        return self._bets(entries, delta, ends)

    def share_limits(self, part: FloatArray, rest: FloatArray, alpha: float) -> tuple[float, float]:
        """Limits for E[part] / E[part + rest], both from 0 to 1: a mean with part + rest as the
        weight.
        """
        total = self.sums(part + rest)
        used = total > 0.0
        nowhere = np.zeros(np.count_nonzero(used), dtype=np.intp)
        share = self.sums(part)[used] / total[used]
        entries = Entries(nowhere, share, 1, uncapped=total[used]).with_cap(2.0 * self.bound)
        found = self._bets(entries, alpha, (0.0, 1.0))
        return float(found.lower[0]), float(found.upper[0])

    def _bets(
        self,
        entries: Entries,
        delta: float,
        ends: tuple[FloatArray, FloatArray] | tuple[float, float],
    ) -> Interval:
        """Limits for each place; the order of bets is drawn for these rows, which may be sorted."""
        source = RandomSource.of(0, "order of bets", rows=self.rows)
        low, high = (np.full(entries.n_regions, end) for end in ends)
        units = BetUnits.of(entries, low, high, source.generator())
        return bet_limits(units, np.full(entries.n_regions, delta / 2.0))

    def standard_error(self, outcomes: FloatArray) -> float:
        """Standard error of the weighted mean, from the spread of the units."""
        weights = self.sums(np.ones(outcomes.size))
        mean = float(self.sums(outcomes).sum() / weights.sum())
        off = self.sums(outcomes - mean)
        n = off.size
        return math.sqrt(float(np.square(off).sum()) * n / max(n - 1, 1)) / float(weights.sum())


ROWS = Units(None, 1.0, bounded=True, population="")
"""Each row is one independent draw."""


CUTTING_SHARE = PILOT_SHARE
"""Share of the rows, or of whole groups, that only cut the regions."""


@dataclass(frozen=True, slots=True, eq=False)
class DividedRows:
    """Pilot rows that only cut the regions, and rows that are counted.

    Attributes
    ----------
    rows : MemoryRows
        All rows.
    cutting : bool array
        Which rows only cut.
    others : MemoryRows
        The counted rows, with the weights with which they count.
    units : Units
        The units of the counted rows.
    """

    rows: MemoryRows
    cutting: BoolArray
    others: MemoryRows
    units: Units

    @classmethod
    def of(cls, rows: MemoryRows) -> Self:
        """Draw the pilot rows; without a cap on the size of groups, they set it, too."""
        share: float = CUTTING_SHARE
        if rows.groups is not None:  # as many as set the cap on sizes
            share = max(1, fewest_pilot_groups(rows.n_groups()))
        cutting = np.zeros(1, dtype=bool)
        if len(rows) > 1:
            cutting = rows.chosen(rows.draw(share, 0))
        if rows.groups is not None and rows.bounds.max_group_size is None:
            largest = rows.groups.take(cutting).largest
            rows = replace(rows, bounds=replace(rows.bounds, max_group_size=largest))
        Units.bounded_of(rows)  # checks weights of pilot rows too
        if cutting.all():
            raise InvalidValueError("y", "have more than one row or group", got="one")
        return cls(rows, cutting, *Units.of(rows.take(~cutting)))
