"""Divide rows into two parts, with whole groups in one of them: one part fits, the other proves."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import IndexArray, Seed
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.random import RandomSource
from calibrant.sample.sources.memory import MemoryRows

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
        """Draw a fraction or a number of rows to fit; with groups, the same fraction of the groups.

        The number of groups does not depend on which of them are drawn. Groups up to a number of
        rows would: a large group is likely to lie at the cut, and would always be on the same side.
        """
        n_rows = len(rows)
        wanted = round(pilot * n_rows) if isinstance(pilot, float) else int(pilot)
        source = RandomSource.of(random_state, _PURPOSE, rows=rows.fingerprint())
        if rows.groups is None:
            _check_parts(wanted, n_rows, "rows", pilot)
            order = source.order(n_rows)
            return cls(order[:wanted], order[wanted:])
        sizes = np.bincount(rows.groups.codes)
        by_turn = source.order(sizes.size)
        present = by_turn[sizes[by_turn] > 0]
        n_groups = max(1, round(present.size * wanted / n_rows))
        _check_parts(n_groups, present.size, "groups", pilot)
        n_first = int(sizes[present[:n_groups]].sum())
        order = rows.units.in_turn(by_turn)
        return cls(order[:n_first], order[n_first:])


def _check_parts(wanted: int, n_units: int, what: str, pilot: float) -> None:
    if not 0 < wanted < n_units:
        got = f"{pilot!r}, which draws {wanted:,} of {n_units:,} {what}"
        raise InvalidValueError("pilot", f"leave some {what} to fit and some to prove", got=got)


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
