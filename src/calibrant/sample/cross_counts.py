"""Counts of rows by attributes, kind of score and label, made where the rows are.

This is a GROUP BY over all combinations of attributes, with the sum of scores in each group. It is
far smaller than the rows, and adds over batches, files, threads and machines. Sums are over whole
numbers, so they do not depend on the order in which threads and machines add them.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.keyed_sums import KeyedSums
from calibrant.cells.score_kinds import N_KINDS, kinds_of
from calibrant.errors import InvalidValueError
from calibrant.params.attributes import read_attributes
from calibrant.sample.batch import Columns, Work, read_batch
from calibrant.sample.faults import Fault, Faults, Place

VARIANCE_STEPS = 2**32
"""Steps of s (1 - s), which only guides a search and the sharing of tails."""
_PRIME = 2**31 - 1  # the modulus for mixing whole numbers; its square has fewer than 63 bits
_FACTORS = (1_000_003, 611_953)
_SCORE_STEPS = 2**26  # for mixing
_HIGH_STEPS = 2**30  # for adding up: 2**33 of them fit in 63 bits
_LOW_STEPS = 2**22  # of the remainder of a score
_N_HALVES = 2
_MOST_KEYS = 2**62
_MOST_GROUPS = 10_000_000  # brought into memory, per label
_MOST_LABELS = 20


@dataclass(frozen=True, slots=True)
class CrossKey:
    """The number of a group: the levels of all attributes, the kind of the score, and one of two
    halves.

    A row's half follows from its score and attributes, never from its label or position. Labels are
    independent given scores and attributes, and so are the labels of the two halves.

    Attributes
    ----------
    levels : tuple of AttributeLevels
        The attributes.
    """

    levels: tuple[AttributeLevels, ...]

    def __post_init__(self) -> None:
        n_groups = prod(self.sizes)
        if n_groups > _MOST_KEYS:
            rule = "form at most 2**62 combinations with the distinct scores"
            advice = "name fewer attributes"
            got = f"{len(self.levels)} of them, {n_groups:.1e} combinations"
            raise InvalidValueError("attributes", rule, got=got, advice=advice)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each part of the key; an attribute has its levels and one for no
        level.
        """
        return (*(level.n_levels + 1 for level in self.levels), N_KINDS, _N_HALVES)

    def keys(self, scores: FloatArray, codes: Sequence[IndexArray]) -> IntArray:
        """The group of each row, from its score and its level of each attribute."""
        crossed = np.zeros(scores.size, dtype=np.int64)
        for size, code in zip(self.sizes, codes, strict=False):
            crossed = crossed * size + code
        kind = crossed * N_KINDS + kinds_of(scores)
        return np.asarray(kind * _N_HALVES + half_of(scores, crossed))

    def parts(self, keys: IntArray) -> tuple[list[IndexArray], IndexArray, IndexArray]:
        """The levels (-1 for none), kind and half of each group."""
        *codes, kind, half = np.unravel_index(keys, self.sizes)
        pairs = zip(codes, self.levels, strict=True)
        known = [np.where(code == level.n_levels, -1, code) for code, level in pairs]
        return known, kind, half


def half_of(scores: FloatArray, crossed: IntArray) -> IntArray:
    """Return 0 or 1, from the score and the index of the combination of attributes.

    >>> half_of(np.array([0.1, 0.2, 0.3, 0.3, 0.3]), np.array([0, 0, 0, 1, 2]))
    array([1, 1, 0, 1, 1])
    """
    steps = np.floor(scores * _SCORE_STEPS).astype(np.int64)
    mixed = (steps * _FACTORS[0] + crossed % _PRIME * _FACTORS[1]) % _PRIME
    squared = (mixed * mixed + 1) % _PRIME
    return np.asarray((squared * squared + mixed) % _PRIME % _N_HALVES)


def whole_scores(scores: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """A score s as whole numbers that add exactly: high and low steps, and steps of s (1 - s)."""
    high = np.floor(scores * _HIGH_STEPS)
    low = np.floor((scores * _HIGH_STEPS - high) * _LOW_STEPS)
    variance = np.floor(scores * (1.0 - scores) * VARIANCE_STEPS)
    return high.astype(np.int64), low.astype(np.int64), variance.astype(np.int64)


def score_sums(high: IntArray, low: IntArray) -> FloatArray:
    """Sums of scores, from sums of their steps: too small by at most 2**-52 per row."""
    return np.asarray((high + low / _LOW_STEPS) / _HIGH_STEPS)


@dataclass(frozen=True, slots=True, eq=False)
class CrossCounts:
    """The groups for every label, from some batches.

    A group is rows with equal attributes, kind of score and half; its key is that of
    `CrossKey`, and its sums are the number of rows and those of `whole_scores`. The parts of a
    label are merged by `KeyedSums.compacted`.
    """

    parts: Mapping[Hashable, tuple[KeyedSums, ...]] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)

    def __add__(self, other: "CrossCounts") -> "CrossCounts":
        found = dict(self.parts)
        for label, parts in other.parts.items():
            if label not in found and len(found) > _MOST_LABELS:
                continue  # too many labels, which raises an error later
            found[label] = KeyedSums.compacted((*found.get(label, ()), *parts))
            _check_n_groups(max(part.key.size for part in found[label]))
        return CrossCounts(found, self.faults + other.faults)


def joined_sums(parts: tuple[KeyedSums, ...]) -> KeyedSums:
    """Several parts as one."""
    whole = KeyedSums.joined(parts)
    _check_n_groups(whole.key.size)
    return whole


def _check_n_groups(n_groups: int) -> None:
    """Raise an error for more groups than fit into memory."""
    if n_groups <= _MOST_GROUPS:
        return
    rule = f"form at most {_MOST_GROUPS:,} combinations with the distinct scores"
    advice = "name fewer attributes, or audit a random draw of the rows in memory"
    raise InvalidValueError("attributes", rule, got="more", advice=advice)


@dataclass(frozen=True, slots=True)
class CountCross(Work[CrossCounts]):
    """Count rows by group and label, and add up their scores."""

    on_rows = False
    nothing = CrossCounts()
    is_large = True  # there may be millions of groups
    key: CrossKey

    @property
    def columns(self) -> Columns:
        """Score, label and attributes."""
        also = tuple(level.name for level in self.key.levels)
        return replace(self.data_columns.only("label"), also=also)

    def __call__(self, batch: Any, place: Place) -> CrossCounts:
        """Count one batch."""
        rows = read_batch(batch, self.data_columns.only("label"), place)
        faults = rows.faults
        scores = np.asarray(rows.scores, dtype=np.float64)
        outside = (scores < 0.0) | (scores > 1.0)
        if outside.any():
            fault = Fault("score", self.data_columns.score, "be probabilities in [0, 1]")
            faults += Faults.of(fault, rows.in_batch(outside), place)
            rows = rows.take(~outside)
            scores = scores[~outside]
        if rows.labels is None or not len(rows):
            return CrossCounts({}, faults)
        kept = np.arange(len(batch)) if rows.origin is None else rows.origin
        codes = []
        for level in self.key.levels:
            (column,) = read_attributes({level.name: batch.column(level.name)}, len(batch))
            code = level.codes(column)[kept]
            codes.append(np.where(code < 0, level.n_levels, code))  # one past the last for no level
        key = self.key.keys(scores, codes)
        values = np.column_stack([np.ones(scores.size, dtype=np.int64), *whole_scores(scores)])
        found = {}
        for number, label in enumerate(rows.labels.names):
            own = rows.labels.number == number
            if own.any():
                found[label] = (KeyedSums.of(key[own], values[own]),)
        return CrossCounts(found, faults)
