"""Divide rows into two parts, with whole groups in one of them: one part fits, the other proves."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import IndexArray, Seed
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.random import RandomSource
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.numbers import counted

_PURPOSE = "rows to fit and rows that prove"


@dataclass(frozen=True, slots=True, eq=False)
class TwoParts:
    """The fitting rows and the proof rows, by position, in a random order of rows or groups.

    Attributes
    ----------
    first, last : int arrays
        The fitting rows, and the others.
    """

    first: IndexArray
    last: IndexArray

    @classmethod
    def of(cls, rows: MemoryRows, pilot: float, random_state: Seed) -> Self:
        """Draw a fraction or a number of rows to fit; with groups, whole groups up to about that
        number.
        """
        n_rows = len(rows)
        wanted = round(pilot * n_rows) if isinstance(pilot, float) else int(pilot)
        source = RandomSource.of(random_state, _PURPOSE, rows=rows.fingerprint())
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
            raise InvalidValueError("pilot", f"leave some {what} to fit and some to prove", got=got)
        return cls(order[:wanted], order[wanted:])


def group_cap(fitting: MemoryRows, max_group_size: int | None) -> int | None:
    """The cap on the rows of a group: as given, or the size of the largest group among the fitting
    rows.
    """
    if fitting.groups is None:
        if max_group_size is not None:
            got = repr(max_group_size)
            raise InvalidTypeError("max_group_size", "be None without groups", got=got)
        return None
    if max_group_size is not None:
        return max_group_size
    return fitting.groups.largest
