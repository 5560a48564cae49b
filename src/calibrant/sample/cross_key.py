"""The group of a row, from its attributes and score, and the numbers that are added up in each
group.

All arithmetic is identical in numpy, SQL and Polars: square roots and products of doubles, which
are correctly rounded, and whole numbers below 2**63. Sums are over whole numbers, so they do not
depend on the order in which threads and machines add them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.score_kinds import N_KINDS, kinds_of
from calibrant.errors import InvalidValueError

PRIME = 2**31 - 1
"""The modulus for mixing whole numbers, a prime whose square has fewer than 63 bits."""
FACTORS = (1_000_003, 611_953)
"""The multipliers of the score and of the attributes; each has fewer than 21 bits."""
SCORE_STEPS = 2**26
"""Steps of a score for mixing."""
HIGH_STEPS = 2**30
"""Steps of a score for adding up: 2**33 of them fit in 63 bits."""
LOW_STEPS = 2**22
"""Steps of the remainder of a score."""
VARIANCE_STEPS = 2**32
"""Steps of s (1 - s), which only guides a search and the sharing of tails."""
N_HALVES = 2
_MOST_GROUPS = 2**62


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
        if n_groups > _MOST_GROUPS:
            rule = "form at most 2**62 combinations with the distinct scores"
            advice = "name fewer attributes"
            got = f"{len(self.levels)} of them, {n_groups:.1e} combinations"
            raise InvalidValueError("attributes", rule, got=got, advice=advice)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each part of the key; an attribute has its levels and one for no
        level.
        """
        return (*(level.n_levels + 1 for level in self.levels), N_KINDS, N_HALVES)

    def keys(self, scores: FloatArray, codes: Sequence[IndexArray]) -> IntArray:
        """The group of each row, from its score and its level of each attribute."""
        crossed = np.zeros(scores.size, dtype=np.int64)
        for size, code in zip(self.sizes, codes, strict=False):
            crossed = crossed * size + code
        kind = crossed * N_KINDS + kinds_of(scores)
        return np.asarray(kind * N_HALVES + half_of(scores, crossed))

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
    steps = np.floor(scores * SCORE_STEPS).astype(np.int64)
    mixed = (steps * FACTORS[0] + crossed % PRIME * FACTORS[1]) % PRIME
    squared = (mixed * mixed + 1) % PRIME
    return np.asarray((squared * squared + mixed) % PRIME % N_HALVES)


def whole_scores(scores: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """A score s as whole numbers that add exactly: high and low steps, and steps of s (1 - s)."""
    high = np.floor(scores * HIGH_STEPS)
    low = np.floor((scores * HIGH_STEPS - high) * LOW_STEPS)
    variance = np.floor(scores * (1.0 - scores) * VARIANCE_STEPS)
    return high.astype(np.int64), low.astype(np.int64), variance.astype(np.int64)


def score_sums(high: IntArray, low: IntArray) -> FloatArray:
    """Sums of scores, from sums of their steps: too small by at most 2**-52 per row."""
    return np.asarray((high + low / LOW_STEPS) / HIGH_STEPS)


@dataclass(frozen=True, slots=True)
class PlaceDraw:
    """A random draw of rows by position, which engines can make themselves.

    Attributes
    ----------
    shift : int
        The number that identifies the draw.
    limit : int
        A row is drawn if its mixed position, from 0 to 2**31 - 2, is below this.
    """

    shift: int
    limit: int

    @classmethod
    def of_share(cls, share: float, key: int) -> "PlaceDraw":
        """Draw this share of the rows."""
        return cls(key % PRIME, int(np.ceil(min(share, 1.0) * PRIME)))

    def chosen(self, first: int, n_rows: int) -> BoolArray:
        """Whether each of `n_rows` consecutive rows, from position `first` on, is drawn.

        >>> PlaceDraw.of_share(0.25, 7).chosen(0, 8)
        array([ True, False, False, False, False, False, False, False])
        """
        place = (first % PRIME + np.arange(n_rows, dtype=np.int64)) % PRIME
        mixed = (place * FACTORS[0] + self.shift) % PRIME
        squared = (mixed * mixed + 1) % PRIME
        cubed = (squared * mixed + place) % PRIME
        return np.asarray((cubed * cubed + squared) % PRIME < self.limit)
