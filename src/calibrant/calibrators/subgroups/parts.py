"""Rows in two parts, whole groups in one of them: some fit, the others prove."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import IndexArray, Seed
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.numbers import counted

_PURPOSE = "rows to fit and rows that prove"


@dataclass(frozen=True, slots=True, eq=False)
class TwoParts:
    """The rows that fit and those that prove, by their places, in a random order of rows or groups.

    Attributes
    ----------
    first, last : int arrays
        The rows that fit, and the others.
    """

    first: IndexArray
    last: IndexArray

    @classmethod
    def of(cls, rows: MemoryRows, pilot: float, random_state: Seed) -> Self:
        """Draw a fraction or a number of rows to fit; of groups, whole ones up to about that."""
        n_rows = len(rows)
        wanted = round(pilot * n_rows) if isinstance(pilot, float) else int(pilot)
        source = rows.random_source(random_state, _PURPOSE)
        if rows.groups is None:
            order = source.order(n_rows)
        else:
            codes = rows.groups.codes
            by_turn = source.order(int(codes.max(initial=0)) + 1)
            sizes = np.bincount(codes, minlength=by_turn.size)[by_turn]
            n_first = np.searchsorted(np.cumsum(sizes), wanted, side="left") + 1
            wanted = int(sizes[:n_first].sum())
            order = rows.units.in_turn(by_turn)
        if not 0 < wanted < n_rows:
            what = "rows" if rows.groups is None else "whole groups"
            got = f"{pilot!r} of {counted(n_rows, 'row')}"
            raise InvalidValueError("pilot", f"leave {what} both to fit and to prove", got=got)
        return cls(order[:wanted], order[wanted:])


def group_cap(fitting: MemoryRows, max_group_size: int | None) -> int | None:
    """As how many rows a group counts at most: as given, or the largest group of the rows to fit."""
    if fitting.groups is None:
        if max_group_size is not None:
            got = repr(max_group_size)
            raise InvalidTypeError("max_group_size", "be None without groups", got=got)
        return None
    if max_group_size is not None:
        return max_group_size
    return fitting.groups.largest
