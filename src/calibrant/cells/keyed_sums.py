"""Sums by key: counts of the cells that have rows, where cells are too many to list."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import IndexArray, IntArray


class KeyedSums(NamedTuple):
    """Sums of whole numbers for each key that occurs, in increasing order of the keys.

    Those of several parts of the data add up to those of all, in any order.

    Attributes
    ----------
    key : int array of shape (n,)
        The keys, which are distinct.
    sums : int array of shape (n,) or (n, n_columns)
        The sums.

    Examples
    --------
    >>> one = KeyedSums.of(np.array([7, 3, 7]), np.array([1, 1, 1]))
    >>> one
    KeyedSums(key=array([3, 7]), sums=array([1, 2]))
    >>> KeyedSums.joined([one, KeyedSums(np.array([3, 5]), np.array([10, 20]))]).sums
    array([11, 20,  2])
    """

    key: NDArray[Any]
    sums: IntArray

    @classmethod
    def of(cls, key: NDArray[Any], values: IntArray) -> "KeyedSums":
        """Add up the values of equal keys."""
        return cls._in_order(key, values, np.argsort(key))

    @classmethod
    def joined(cls, parts: Sequence["KeyedSums"]) -> "KeyedSums":
        """Several parts as one."""
        if len(parts) == 1:
            return parts[0]
        key, sums = (np.concatenate(column) for column in zip(*parts, strict=True))
        # made of sorted parts, which a stable sort merges quickly
        return cls._in_order(key, sums, np.argsort(key, kind="stable"))

    @classmethod
    def compacted(cls, parts: Sequence["KeyedSums"]) -> tuple["KeyedSums", ...]:
        """Merge a part and all after it if those after it have as many keys together.

        For parts that arrive one by one. A long part is not sorted again for every short one, and
        all parts together have less than twice as many keys as the first.
        """
        first = len(parts) - 1
        n_after = 0
        for place in reversed(range(len(parts))):
            if parts[place].key.size <= n_after:
                first = place
            n_after += parts[place].key.size
        return (*parts[:first], cls.joined(parts[first:]))

    @classmethod
    def _in_order(cls, key: NDArray[Any], values: IntArray, order: IndexArray) -> "KeyedSums":
        if not order.size:
            return cls(key, values)
        ordered = key[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        if values.ndim == 1:
            return cls(ordered[starts], np.add.reduceat(values[order], starts))
        # column by column, which is faster than row by row
        sums = [np.add.reduceat(column[order], starts) for column in values.T]
        return cls(ordered[starts], np.stack(sums, axis=1))
