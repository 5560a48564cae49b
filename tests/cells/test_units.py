"""Units: which rows are drawn together, by how much they count, and what they have in cells."""

import numpy as np
import pytest

from calibrant.cells.units import Counting, RowUnits, turns
from calibrant.sample.groups import Groups, fewest_pilot_groups
from calibrant.sample.reader import read_rows

UNIT = np.array([0, 2, 2, 0, 2, 1])
CELL = np.array([1, 0, 0, 1, -1, 1])
WEIGHTS = np.array([1.0, 0.5, 2.0, 3.0, 4.0, 0.0])
UNITS = RowUnits(UNIT, 4, WEIGHTS)


def test_entries_are_units_in_cells_where_they_have_weight() -> None:
    cells = UNITS.in_cells(CELL, 2)
    assert cells.rows.tolist() == [0, 1, 2, 3]
    assert list(zip(cells.unit.tolist(), cells.cell.tolist(), strict=True)) == [(0, 1), (2, 0)]
    assert cells.total.tolist() == [4.0, 2.5]
    assert cells.n_rows.tolist() == [2, 2]
    assert cells.parts.tolist() == [0.25, 0.2, 0.8, 0.75]
    assert cells.sums(np.array([1, 0, 1, 0])).tolist() == [1.0, 2.0]
    assert cells.uncapped(by_group=False).tolist() == [4.0, 2.5]
    assert cells.uncapped(by_group=True).tolist() == [1.0, 2.5 / 6.5]


def test_rows_of_an_entry_above_the_bound_count_less() -> None:
    cells = UNITS.in_cells(CELL, 2)
    assert cells.row_weights(Counting(3.0)).tolist() == [0.75, 0.5, 2.0, 2.25, 0.0, 0.0]
    shares = cells.row_weights(Counting(1.0, by_group=True))
    np.testing.assert_allclose(shares, [0.25, 0.5 / 6.5, 2.0 / 6.5, 0.75, 0.0, 0.0])


def test_a_cap_holds_over_all_cells() -> None:
    assert UNITS.totals.tolist() == [4.0, 0.0, 6.5, 0.0]
    capped = UNITS.capped(5.0)
    np.testing.assert_allclose(np.bincount(UNIT, capped), [4.0, 0.0, 5.0])
    np.testing.assert_allclose(capped[[1, 2, 4]], WEIGHTS[[1, 2, 4]] * 5.0 / 6.5)


def test_rows_follow_the_order_of_their_units() -> None:
    order = np.array([2, 0, 3, 1])
    assert turns(order).tolist() == [1, 3, 0, 2]
    assert UNITS.in_turn(order).tolist() == [1, 2, 4, 0, 3, 5]


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_in_memory_say_what_is_drawn_independently(grouped: bool) -> None:
    groups = ["b", "a", "b"] if grouped else None
    rows = read_rows([0.1, 0.5, 0.9], [0, 1, 1], groups=groups).collect()
    units = rows.units
    assert units.n_units == (2 if grouped else 3)
    assert np.unique(units.unit).size == units.n_units
    assert (units.unit[0] == units.unit[2]) == grouped
    assert units.weights.tolist() == [1.0, 1.0, 1.0]


def test_a_tenth_of_the_groups_fix_the_cap_and_it_is_the_largest_of_them() -> None:
    assert [fewest_pilot_groups(n) for n in (1, 10, 11, 200)] == [1, 1, 2, 20]
    groups = Groups.of([3, 3, 3, 5, 8, 8], 6)
    assert groups.largest == 3
    assert groups.take(np.array([3, 4])).largest == 1
    assert groups.take(np.empty(0, dtype=np.intp)).largest == 1
