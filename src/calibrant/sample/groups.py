"""Groups of rows in memory, such as the rows of one customer."""

import math
from dataclasses import dataclass
from datetime import UTC, date
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, BoolArray, IndexArray, Keys
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_column, at_row, check_present, distinct_entries, is_missing
from calibrant.params.random import RandomSource, mixed
from calibrant.sample.row_keys import value_keys

_FINER = ("ps", "fs", "as")  # than the units that engines support
_KINDS = "contain whole numbers, dates or text, of one kind"


PILOT_SHARE = 0.1
"""The smallest share of groups that are pilot groups, if these fix the cap on group sizes."""


def fewest_pilot_groups(n_groups: int) -> int:
    """The smallest number of pilot groups that fix the cap on group sizes.

    A new group is larger than all of k pilot groups with probability at most 1 / (k + 1).
    """
    return math.ceil(PILOT_SHARE * n_groups)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The group of each row.

    Attributes
    ----------
    codes : int array of shape (n_rows,)
        Index of each row's group, in the order of the keys: the same wherever the rows come from.
    keys : uint64 array, one entry per group
        The number that determines whether a group is drawn: a function of its label alone, the same
        in every engine.

    Examples
    --------
    >>> Groups.of(["ann", "bob", "ann"], 3).codes
    array([0, 1, 0])
    """

    codes: IndexArray
    keys: Keys

    @classmethod
    def of(cls, groups: ArrayLike, n_rows: int) -> Self:
        """Number the groups of rows, in linear time except for a sort of widely spread numbers."""
        if isinstance(groups, list | tuple) and any(isinstance(value, str) for value in groups):
            values = np.array(
                groups, dtype=object
            )  # numpy would convert numbers to text, and drop trailing NULs
        else:
            values = as_column(groups, "groups")
        if len(values) != n_rows or values.ndim != 1:
            rule = f"have one entry per score, {n_rows:,}"
            raise InvalidValueError("groups", rule, got=f"{len(values):,} entries")
        distinct, codes = _distinct(values)
        keys, number = np.unique(value_keys(distinct), return_inverse=True)
        return cls(number[codes], keys)

    @classmethod
    def of_keys(cls, row_keys: Keys) -> Self:
        """Number the groups of rows with known keys."""
        keys, codes = np.unique(row_keys, return_inverse=True)
        return cls(codes, keys)

    @property
    def row_keys(self) -> Keys:
        """The key of each row's group."""
        return self.keys[self.codes]

    def take(self, index: IndexArray | BoolArray) -> "Groups":
        """The groups of some of the rows; group indices do not change."""
        return Groups(self.codes[index], self.keys)

    def one_row_each(self, source: RandomSource) -> IndexArray:
        """One row of each group, drawn at random, in increasing order.

        >>> Groups.of(["ann", "bob", "ann"], 3).one_row_each(RandomSource(0))
        array([1, 2])
        """
        hashes = source.hashes(self.member_keys)
        smallest = np.full(len(self.keys), np.iinfo(np.uint64).max, dtype=np.uint64)
        np.minimum.at(smallest, self.codes, hashes)
        return np.flatnonzero(hashes == smallest[self.codes])

    @property
    def member_keys(self) -> Keys:
        """A key for each row, computed from its group's key and its position in the group."""
        order = np.argsort(self.codes, kind="stable")
        first = np.flatnonzero(np.diff(self.codes[order], prepend=-1))
        place = np.empty(order.size, dtype=np.uint64)
        place[order] = np.arange(order.size) - np.repeat(first, np.diff(first, append=order.size))
        return np.asarray(mixed(self.row_keys) + place)  # all different within a group

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows in each group."""
        return np.bincount(self.codes, minlength=len(self.keys))

    @property
    def largest(self) -> int:
        """The number of rows in the largest group; for pilot groups, the cap on group sizes."""
        return int(self.sizes.max(initial=1))

    @property
    def present_keys(self) -> Keys:
        """Keys of the groups that have rows."""
        return self.keys[self.sizes > 0]


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], IndexArray]:
    """The distinct values, and the index of each row's value among them."""
    kind = values.dtype.kind
    if kind == "f":
        check_present(np.isnan(values), values, "groups")
        whole = values.astype(np.int64) if np.abs(values).max(initial=0.0) <= 2**53 else values
        if (whole != values).any() or whole is values:
            row = int(np.argmax(values != np.floor(values)))
            raise InvalidTypeError("groups", _KINDS, got=at_row(repr(values[row]), row))
        return _distinct(whole)
    if kind == "M":
        check_present(np.isnat(values), values, "groups")
        if np.datetime_data(values.dtype)[0] in _FINER:
            whole = values.astype("datetime64[ns]")
            if (whole != values).any():
                raise InvalidTypeError(
                    "groups", "contain dates no finer than nanoseconds", got=str(values.dtype)
                )
            values = whole
    if kind in "biu":
        return _whole_numbers(values)
    if kind in "OTU":
        return _objects(values)
    if kind not in "MS":
        raise InvalidTypeError("groups", _KINDS, got=str(values.dtype))
    found, codes = np.unique(values, return_inverse=True)
    return found, codes


def _whole_numbers(values: NDArray[Any]) -> tuple[NDArray[Any], IndexArray]:
    if not values.size:
        return values, np.empty(0, dtype=np.intp)
    low = int(values.min())
    high = int(values.max())
    if high - low > 4 * values.size + 1000:
        return np.unique(values, return_inverse=True)
    offset = (values.astype(np.int64) if low >= -(2**63) and high < 2**63 else values) - low
    offset = offset.astype(np.intp)
    present = np.bincount(offset) > 0
    found = (np.flatnonzero(present) + low).astype(
        values.dtype if values.dtype.kind != "b" else np.int64
    )
    return found, (np.cumsum(present) - 1)[offset]


def _objects(values: NDArray[Any]) -> tuple[NDArray[Any], IndexArray]:
    """Python objects and text; equal text is one group, and so are equal numbers."""
    listed = values.tolist()
    try:
        distinct, codes = distinct_entries(listed)
    except TypeError:
        row = next(
            row for row, value in enumerate(listed) if getattr(value, "__hash__", None) is None
        )
        raise InvalidTypeError(
            "groups", _KINDS, got=at_row(type(listed[row]).__name__, row)
        ) from None
    missing = np.array([is_missing(value) for value in distinct], dtype=bool)
    if missing.any():
        check_present(missing[codes], values, "groups")
    kinds: dict[str, Any] = {}
    for value in distinct:
        kinds.setdefault(_kind(value), value)
    if len(kinds) > 1 or "" in kinds:
        several = " and ".join(type(value).__name__ for value in list(kinds.values())[:2])
        strange = kinds.get("", list(kinds.values())[-1])
        row = listed.index(strange)
        advice = "turn them into text" if "" in kinds else "give all of them one type"
        raise InvalidTypeError(
            "groups", _KINDS, got=at_row(f"{several}, first", row), advice=advice
        )
    if "date" in kinds:  # times with a zone are converted to UTC
        utc = [
            value.astimezone(UTC).replace(tzinfo=None) if getattr(value, "tzinfo", None) else value
            for value in distinct
        ]
        return np.array(utc, dtype="datetime64[us]"), codes
    if "number" in kinds:
        return np.array([int(value) for value in distinct]), codes
    found = np.empty(len(distinct), dtype=object)
    found[:] = distinct
    return found, codes


def _kind(value: Any) -> str:
    if isinstance(value, str | bytes):
        return "text"
    if isinstance(value, date):
        return "date"
    is_whole = isinstance(value, int | np.integer | np.bool_) and -(2**63) <= int(value) < 2**63
    return "number" if is_whole else ""
