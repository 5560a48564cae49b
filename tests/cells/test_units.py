"""Units: which rows are drawn together, by how much they count, and what they have in cells."""

import numpy as np
import pytest

from calibrant.cells.entries import Entries
from calibrant.cells.group_counts import GroupCounts
from calibrant.cells.tally import Tally
from calibrant.cells.units import RowUnits, turns
from calibrant.limits.region_limits import mean_limits
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
    assert UNITS.alike().in_cells(CELL, 2).total.tolist() == [1.0, 2.5 / 6.5]


def test_rows_of_an_entry_above_the_bound_count_less() -> None:
    cells = UNITS.in_cells(CELL, 2)
    assert cells.row_weights(3.0).tolist() == [0.75, 0.5, 2.0, 2.25, 0.0, 0.0]
    shares = UNITS.alike().in_cells(CELL, 2).row_weights(1.0)
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


@pytest.mark.parametrize("spread", [1, 1_000])
def test_entries_are_the_same_whether_units_are_many_or_few(spread: int) -> None:
    rng = np.random.default_rng(3)
    unit = rng.integers(0, 30, size=400)
    cell = rng.integers(-1, 5, size=400)
    weights = rng.integers(0, 3, size=400).astype(float)
    cells = RowUnits(spread * unit, spread * 30, weights).in_cells(cell, 5)
    used = np.flatnonzero((cell >= 0) & (weights > 0))
    assert cells.rows.tolist() == used.tolist()
    pairs = sorted({(spread * int(unit[row]), int(cell[row])) for row in used})
    assert list(zip(cells.unit.tolist(), cells.cell.tolist(), strict=True)) == pairs
    of_row = [(spread * int(unit[row]), int(cell[row])) for row in used]
    assert [pairs[entry] for entry in cells.entry.tolist()] == of_row


@pytest.mark.parametrize("cap", [3.0, None])
def test_entries_are_the_same_from_whole_numbers_and_from_rows(cap: float | None) -> None:
    rng = np.random.default_rng(4)
    group = rng.integers(0, 200, size=1_500)
    region = rng.integers(-1, 4, size=1_500)
    codes = rng.integers(0, 2, size=1_500).astype(np.uint8)
    table = GroupCounts.of(region, codes, group)
    tally = Tally(*table.totals(4), groups=table)
    whole = Entries.of_tally(tally, cap)
    units = RowUnits(group, 200, np.ones(1_500))
    units = units.alike() if cap is None else units
    of_rows = Entries.of_rows(codes, region, 4, units, cap or 1.0)
    assert whole.n_units.tolist() == of_rows.n_units.tolist()
    for name in ("rates", "uncapped_rates"):
        np.testing.assert_allclose(getattr(whole, name), getattr(of_rows, name), rtol=1e-12)
    assert whole.above_cap == pytest.approx(of_rows.above_cap, abs=1e-12)
    assert whole.design_effect == pytest.approx(of_rows.design_effect, rel=1e-12)
    found = mean_limits(whole, 0.1)
    again = mean_limits(of_rows, 0.1)
    np.testing.assert_allclose(found.lower, again.lower, rtol=1e-12)
    np.testing.assert_allclose(found.upper, again.upper, rtol=1e-12)


@pytest.mark.parametrize("cap", [1.0, 2.0])
def test_entries_can_be_counted_with_another_cap(cap: float) -> None:
    rng = np.random.default_rng(4)
    group = rng.integers(0, 200, size=1_500)
    codes = rng.integers(0, 2, size=1_500).astype(np.uint8)
    table = GroupCounts.of(rng.integers(-1, 4, size=1_500), codes, group)
    tally = Tally(*table.totals(4), groups=table)
    again = Entries.of_tally(tally, 3.0).with_cap(cap)
    expected = Entries.of_tally(tally, cap)
    assert again.bound == expected.bound
    np.testing.assert_allclose(again.weights, expected.weights, rtol=1e-12)
    np.testing.assert_array_equal(again.rows, expected.rows)
