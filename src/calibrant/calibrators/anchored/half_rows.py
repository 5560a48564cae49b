"""Counted rows in two halves, for the curves of a fit: plain rows, or units with weights."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators._held_out import SKEWED, Guess, RegionUnits
from calibrant.calibrators.anchored.curve_bounds import KnotEvidence
from calibrant.calibrators.anchored.curve_evidence import CurveEvidence
from calibrant.calibrators.anchored.unit_evidence import UnitEvidence
from calibrant.calibrators.anchored.unit_rows import UnitRows, UnitWeights, rounded_counts
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.cells.knots import Knots, RowHashes
from calibrant.params.random import RandomSource
from calibrant.sample.draw import position_keys
from calibrant.sample.sources.memory import MemoryRows

_PRIOR_ROWS = 2.0  # that the knots themselves count for in a guess of the variance of a curve
_STEP_ERRORS = 4.5  # standard errors of a share of rows that limits on all of them leave, about
_RATE_ERRORS = 3.0  # the same, of a rate
# of skewness over the root of the rows: what exact limits are narrower than bets by, about
_SKEW_COST = 0.6


class HalfRows(Protocol):
    """What the curves of a fit need of counted rows."""

    @property
    def expected(self) -> FloatArray:
        """How many independent units each region has, about; fixed before their rows are seen."""

    @property
    def is_seen(self) -> BoolArray:
        """Whether each region has rows."""

    def guess(self, first: FloatArray) -> Guess:
        """What pilot rows say of each region, with a first curve at knots."""

    def to_fit(self, number: int) -> IntArray:
        """Pilot rows and those of the *other* half by knot and label, for the curve of a half."""

    def evidence(self, first: FloatArray, halves: FloatArray, guess: Guess) -> CurveEvidence:
        """What limits follow from, with the first curve and those of both halves."""


class Pilot(Protocol):
    """Pilot rows that can be counted at knots."""

    def count(self, knots: Knots, source: RandomSource) -> IntArray:
        """Count them by knot and label."""


@dataclass(frozen=True, eq=False)
class PlainHalves:
    """Plain rows, as counts.

    Attributes
    ----------
    knots : Knots
        The knots.
    counts : int array of shape (n_knots, 2, 2)
        Rows by knot, half and label.
    of_pilot : int array of shape (n_knots, 2)
        Pilot rows by knot and label.
    unlabelled : int array of shape (n_knots,)
        Scores without labels by knot.
    source : RandomSource
        What random numbers come from.
    """

    knots: Knots
    counts: IntArray
    of_pilot: IntArray
    unlabelled: IntArray
    source: RandomSource

    @classmethod
    def of(cls, binned: Binned, pilot: Pilot, knots: Knots, source: RandomSource) -> Self:
        """Count the rows at knots."""
        counts = binned.rows.count_knots(knots, binned.classes, source)
        of_pilot = pilot.count(knots, source.for_purpose("pilot rows"))
        unlabelled = np.zeros(knots.n_knots, dtype=np.int64)
        if binned.unlabelled is not None:
            hashes = RowHashes(source.for_purpose("unlabelled scores"))
            codes = np.zeros(binned.unlabelled.size, dtype=np.uint8)
            unlabelled = knots.count(binned.unlabelled, codes, hashes).sum(axis=(1, 2))
        return cls(knots, counts, of_pilot, unlabelled, source)

    @cached_property
    def expected(self) -> FloatArray:
        """Rows of each region: given these, they are independent draws."""
        return np.add.reduceat(self.counts.sum(axis=(1, 2)), self.knots.starts[:-1])

    @property
    def is_seen(self) -> BoolArray:
        """Whether each region has rows."""
        return np.asarray(self.expected > 0)

    def guess(self, first: FloatArray) -> Guess:
        """What pilot rows say of each region."""
        return _guess(self.knots, first, self.of_pilot)

    def to_fit(self, number: int) -> IntArray:
        """Pilot rows and those of the other half by knot and label."""
        return np.asarray(self.of_pilot + self.counts[:, 1 - number])

    def evidence(self, first: FloatArray, halves: FloatArray, guess: Guess) -> KnotEvidence:
        """The counts, and where exact limits are taken."""
        spreads = [
            _spread(self.knots, values - first, self.to_fit(k)) for k, values in enumerate(halves)
        ]
        by_rate = _exact(guess, self.knots, first, self.of_pilot, self.expected)
        return KnotEvidence(
            self.knots,
            first,
            halves,
            self.counts,
            self.unlabelled,
            guess.of_errors,
            np.array(spreads),
            by_rate | (np.diff(self.knots.starts) == 1),
            self.source.for_purpose("order of bets"),
        )


@dataclass(frozen=True, eq=False)
class UnitHalves:
    """Rows of units with weights.

    Attributes
    ----------
    knots : Knots
        The knots.
    rows : MemoryRows
        The counted rows.
    units : UnitRows
        The same between knots, with their units.
    half : int array of shape (n_units,)
        The half of each unit, at random.
    pilot : UnitRows or None
        Pilot rows; None if there are none.
    of_pilot : int array of shape (n_knots, 2)
        Pilot rows by knot and label.
    unproved : int array
        Regions for which nothing is proved.
    source : RandomSource
        What random numbers come from.
    """

    knots: Knots
    rows: MemoryRows
    units: UnitRows
    half: IndexArray
    pilot: UnitRows | None
    of_pilot: IntArray
    unproved: IndexArray
    source: RandomSource

    @classmethod
    def of(
        cls,
        binned: Binned,
        pilot: MemoryRows | None,
        knots: Knots,
        source: RandomSource,
        counting: UnitWeights,
    ) -> Self:
        """Find the units of the rows, and their halves."""
        rows = _in_order(binned.rows.counted_rows())
        pilot = None if pilot is None else _in_order(pilot)
        keys = position_keys(0, len(rows)) if rows.keys is None else rows.keys
        if rows.groups is not None:
            keys = rows.groups.keys
        half = (source.for_purpose("halves").hashes(keys) & np.uint64(1)).astype(np.intp)
        of_pilot = np.zeros((knots.n_knots, 2), dtype=np.int64)
        if pilot is not None:
            of_pilot = rounded_counts(pilot, knots, source.for_purpose("pilot rows"))
        unproved = () if binned.design is None else binned.design.unproved
        return cls(
            knots,
            rows,
            UnitRows.of(rows, knots, counting),
            half,
            None if pilot is None else UnitRows.of(pilot, knots, counting),
            of_pilot,
            np.array(unproved, dtype=np.intp),
            source,
        )

    @cached_property
    def expected(self) -> FloatArray:
        """Units of each region, by the share of pilot units in it.

        How many of the counted groups have rows in a region may depend on their labels.
        """
        n_regions = self.knots.regions.n_regions
        n_units = len(self.rows) if self.rows.groups is None else self.rows.n_groups()
        if self.pilot is None:
            return np.full(n_regions, max(n_units / n_regions, 1.0))
        of_region = np.bincount(self.pilot.region, minlength=n_regions) + 1.0
        n_pilot = max(np.unique(self.pilot.unit).size, 1)
        return np.asarray(np.minimum(of_region * (n_units / n_pilot), n_units))

    @property
    def is_seen(self) -> BoolArray:
        """Whether each region has rows."""
        return np.bincount(self.units.region, minlength=self.knots.regions.n_regions) > 0

    def guess(self, first: FloatArray) -> Guess:
        """What pilot units say of each region."""
        low = np.minimum.reduceat(first, self.knots.starts[:-1])
        high = np.maximum.reduceat(first, self.knots.starts[:-1])
        n_regions = low.size
        if self.pilot is None:
            nothing = RegionUnits(np.empty(0), np.empty(0), np.empty(0))
            return Guess.of([nothing] * n_regions, np.column_stack([low, high]))
        return Guess.of(self.pilot.guessed(first, n_regions), np.column_stack([low, high]))

    def to_fit(self, number: int) -> IntArray:
        """Pilot rows and those of the other half by knot and label."""
        unit = np.arange(len(self.rows)) if self.rows.groups is None else self.rows.groups.codes
        chosen = self.half[unit] != number
        purpose = self.source.for_purpose(f"curve of half {number}")
        return np.asarray(self.of_pilot + rounded_counts(self.rows, self.knots, purpose, chosen))

    def evidence(self, first: FloatArray, halves: FloatArray, guess: Guess) -> UnitEvidence:
        """The units, and the curves."""
        squares = guess.weight**2
        spreads = [
            _spread(self.knots, values - first, self.to_fit(k)) * squares
            for k, values in enumerate(halves)
        ]
        return UnitEvidence(
            self.knots,
            first,
            halves,
            self.units,
            self.half,
            guess.of_errors,
            guess.weight,
            np.array(spreads),
            self.unproved,
            self.source.for_purpose("order of bets"),
        )


def _in_order(rows: MemoryRows) -> MemoryRows:
    """Rows of groups in an order that does not depend on how they came."""
    if rows.groups is None:
        return rows
    weights = rows.codes if rows.weights is None else rows.weights
    segment = rows.codes if rows.segment is None else rows.segment
    order = np.lexsort((weights, rows.codes, rows.scores, segment, rows.groups.codes))
    return replace(rows.take(order), keys=None)


def _spread(knots: Knots, values: FloatArray, counts: IntArray) -> FloatArray:
    """A guess of the variance of a function of the score in each region, by counts that limits do
    not use.
    """
    starts = knots.starts[:-1]
    size = np.diff(knots.starts)
    weight = counts.sum(axis=1) + (_PRIOR_ROWS / size)[knots.region]
    total = np.add.reduceat(weight, starts)
    mean = np.add.reduceat(weight * values, starts) / total
    return np.asarray(np.add.reduceat(weight * (values - mean[knots.region]) ** 2, starts) / total)


def _guess(knots: Knots, first: FloatArray, counts: IntArray) -> Guess:
    """What pilot rows, counted by knot and label, say of each region."""
    starts = knots.starts
    bounds = np.column_stack(
        [np.minimum.reduceat(first, starts[:-1]), np.maximum.reduceat(first, starts[:-1])]
    )
    units = []
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        scores = np.repeat(np.repeat(first[begin:end], 2), counts[begin:end].ravel())
        labels = np.repeat(np.tile([0.0, 1.0], end - begin), counts[begin:end].ravel())
        units.append(RegionUnits(labels - scores, scores))
    return Guess.of(units, bounds)


def _exact(
    guess: Guess, knots: Knots, first: FloatArray, counts: IntArray, rows: FloatArray
) -> BoolArray:
    """Where exact limits of the rate are expected to be narrower than bets, by pilot rows and the
    number of rows.

    Bets suffer from skewness. Exact limits need the average of the curve, which is known up to its
    steps times limits on the shares of rows at knots.
    """
    n = np.maximum(rows, 1)
    error = np.sqrt(guess.rate * (1.0 - guess.rate) / n)
    skewness = np.abs(1.0 - 2.0 * guess.rate) / np.sqrt(guess.rate * (1.0 - guess.rate) * n)
    weight = counts.sum(axis=1) + (_PRIOR_ROWS / np.diff(knots.starts))[knots.region]
    total = np.add.reduceat(weight, knots.starts[:-1])
    before = (np.cumsum(weight) - weight)[knots.starts[:-1]]
    share = np.clip((np.cumsum(weight) - before[knots.region]) / total[knots.region], 0.0, 1.0)
    here = n[knots.region]
    gap = _STEP_ERRORS * np.sqrt(share * (1.0 - share) / here) + _STEP_ERRORS**2 / (2.0 * here)
    off = np.abs(np.diff(first, append=first[-1:])) * gap
    off[knots.starts[1:] - 1] = 0.0
    unknown = np.add.reduceat(off, knots.starts[:-1])
    return np.asarray(
        (skewness > SKEWED) & (unknown < _SKEW_COST * skewness * _RATE_ERRORS * error)
    )
