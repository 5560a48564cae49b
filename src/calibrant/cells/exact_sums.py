"""Sums of floats that do not depend on the order of addition.

Floating-point addition is not associative, so a plain sum depends on how the data were split. A
double is an integer times a power of two; added as integers, any split, merged in any order, gives
the identical sum.
"""

import math
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from calibrant._typing import FloatArray
from calibrant.errors import InvalidTypeError, InvalidValueError

_UNIT_EXPONENT = 1074  # every finite double is a whole multiple of 2**-1074
_UNIT = 1 << _UNIT_EXPONENT
_MANTISSA_BITS = 53
_LOW_BITS = 26
_MOST_PARTS = 64  # each has 53 bits, and a sum at most 2200
_N_PIECES = 3
_MOST_TOP = 900  # exponents at which pieces are far from overflow and underflow
_BLOCK = 1 << 15  # rows whose pieces fit in the cache
_LARGEST = float(np.finfo(np.float64).max)
_CHUNK = (
    1 << 22
)  # halves of 27 bits, so a chunk's sums stay far below 2**53, where float64 counts exactly


class ExactSums:
    """One exact sum per cell; immutable, and `+` adds cell by cell.

    >>> a = ExactSums.of(np.array([0.1, 0.2, 0.3]), np.array([0, 0, 1]), 2)
    >>> b = ExactSums.of(np.array([1e16, -1e16]), np.array([0, 0]), 2)
    >>> (a + b).rounded() == (b + a).rounded()
    array([ True,  True])
    """

    __slots__ = ("_units",)

    def __init__(self, units: Iterable[int]) -> None:
        self._units = tuple(units)

    @classmethod
    def of(cls, values: FloatArray, cells: Any, n_cells: int) -> Self:
        """Sum finite `values` within `cells` (indices from 0 to n_cells - 1)."""
        units = [0] * n_cells
        for start in range(0, len(values), _CHUNK):
            part = slice(start, start + _CHUNK)
            cls._add_in_steps(units, values[part], cells[part])
        return cls(units)

    @classmethod
    def _add_in_steps(cls, units: list[int], values: FloatArray, cells: Any) -> None:
        """Add values that are cut into pieces of 26 bits, each a multiple of one step below the
        largest: a sum of pieces is exact as a double. What is left of small values is added by
        exponent.
        """
        largest = float(np.abs(values).max(initial=0.0))
        top = math.frexp(largest)[1]
        if abs(top) > _MOST_TOP or not len(values):
            cls._add_by_exponent(units, values, cells)
            return
        block = max(_BLOCK, 4 * len(units))
        sums = np.zeros((_N_PIECES, len(units)))
        left = []
        for start in range(0, len(values), block):
            rest = values[start : start + block]
            own = cells[start : start + block]
            for number, total in enumerate(sums, start=1):
                # adding this rounds to a multiple of 2**(top - 26 number), and taking it off is exact
                magic = math.ldexp(1.5, _MANTISSA_BITS - 1 - _LOW_BITS * number + top)
                piece = rest + magic
                piece -= magic
                rest = rest - piece
                total += np.bincount(own, piece, len(units))
            small = np.flatnonzero(rest)
            left.append((rest[small], own[small]))
        cls._add_by_exponent(units, *map(np.concatenate, zip(*left, strict=True)))
        for number, total in enumerate(sums, start=1):
            shift = top - _LOW_BITS * number
            for cell in np.flatnonzero(total).tolist():
                units[cell] += int(math.ldexp(total[cell], -shift)) << (shift + _UNIT_EXPONENT)

    @staticmethod
    def _add_by_exponent(units: list[int], values: FloatArray, cells: Any) -> None:
        """Add values as whole numbers, those of each exponent by themselves."""
        if not len(values):
            return
        mantissa, exponent = np.frexp(values)
        whole = np.ldexp(mantissa, _MANTISSA_BITS).astype(np.int64)
        smallest = int(exponent.min())
        n_exponents = int(exponent.max()) - smallest + 1
        bucket = cells * n_exponents + (exponent - smallest)
        size = len(units) * n_exponents
        low = np.bincount(bucket, (whole & ((1 << _LOW_BITS) - 1)).astype(np.float64), size)
        high = np.bincount(bucket, (whole >> _LOW_BITS).astype(np.float64), size)
        for index in np.flatnonzero((low != 0) | (high != 0)).tolist():
            cell, offset = divmod(index, n_exponents)
            total = (int(high[index]) << _LOW_BITS) + int(low[index])
            shift = smallest + offset - _MANTISSA_BITS + _UNIT_EXPONENT
            units[cell] += total << shift if shift >= 0 else total >> -shift

    def part(self, cells: slice) -> "ExactSums":
        """The sums of some of the cells."""
        return ExactSums(self._units[cells])

    def __len__(self) -> int:
        return len(self._units)

    def __add__(self, other: "ExactSums") -> "ExactSums":
        return ExactSums(a + b for a, b in zip(self._units, other._units, strict=True))

    def regrouped(self, cells: Any, n_cells: int) -> "ExactSums":
        """Add up cells that are merged; those mapped to -1 are left out."""
        units = [0] * n_cells
        for cell, total in zip(cells.tolist(), self._units, strict=True):
            if cell >= 0:
                units[cell] += total
        return ExactSums(units)

    def __eq__(self, other: object) -> bool:
        return self._units == other._units if isinstance(other, ExactSums) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._units)

    def at_most(self, other: "ExactSums") -> bool:
        """Whether no sum exceeds the corresponding one of `other`."""
        return all(a <= b for a, b in zip(self._units, other._units, strict=True))

    def rounded(self) -> FloatArray:
        """Each sum as the nearest double."""
        return np.array([units / _UNIT for units in self._units], dtype=np.float64)

    def to_list(self) -> list[list[float]]:
        """Each sum as the shortest list of doubles that add up to it exactly, which JSON can hold."""
        expansions = []
        for units in self._units:
            parts = []
            rest = units
            while rest:
                part = rest / _UNIT
                parts.append(part)
                rest -= _in_units(part)
            expansions.append(parts)
        return expansions

    @classmethod
    def from_list(cls, expansions: Iterable[Iterable[float]]) -> Self:
        """The inverse of `to_list`."""
        if not isinstance(expansions, list | tuple) or not all(
            isinstance(parts, list | tuple) for parts in expansions
        ):
            raise InvalidTypeError(
                "exact sums", "be lists of numbers, one for each region", got="something else"
            )
        if any(len(parts) > _MOST_PARTS for parts in expansions):
            raise InvalidValueError(
                "exact sums", f"be made of at most {_MOST_PARTS} numbers each", got="more"
            )
        sums = [sum(_in_units(_finite(part)) for part in parts) for parts in expansions]
        if any(abs(total) > _in_units(_LARGEST) for total in sums):
            raise InvalidValueError("exact sums", "be finite numbers", got="a larger one")
        return cls(sums)


def _finite(part: Any) -> float:
    if type(part) in (int, float) and abs(part) <= _LARGEST:
        return float(part)
    raise InvalidValueError("exact sums", "be made of finite numbers", got=repr(str(part)[:40]))


def _in_units(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator * (_UNIT // denominator)
