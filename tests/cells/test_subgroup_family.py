"""Attributes as levels, and the subgroups that they make."""

from itertools import combinations

import numpy as np
import pytest

from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.subgroup_family import SubgroupFamily, most_subgroups
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.attributes import read_attributes


def levels_and_codes(attributes):
    columns = read_attributes(attributes)
    levels = [AttributeLevels.of(column) for column in columns]
    return levels, [level.codes(column) for level, column in zip(levels, columns, strict=True)]


def brute_force(codes, order: int, least: int) -> set[frozenset[int]]:
    """The sets of rows of all subgroups, each once."""
    n = len(codes[0])
    found = {frozenset(range(n))}
    for size in range(1, order + 1):
        for chosen in combinations(range(len(codes)), size):
            kinds = np.stack([codes[one] for one in chosen])
            for kind in np.unique(kinds, axis=1).T:
                rows = np.flatnonzero((kinds == kind[:, None]).all(axis=0))
                if (kind >= 0).all() and rows.size >= least:
                    found.add(frozenset(rows.tolist()))
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_family_has_every_subgroup_with_enough_rows_once(seed: int, order: int):
    rng = np.random.default_rng(seed)
    n = 60
    a = rng.integers(0, 3, n)
    attributes = {
        "a": a.astype(str),
        "b": rng.choice(["x", "y", None], n),
        "c": a == 1,
        "d": rng.random(n),
        "e": a * 0,
    }
    levels, codes = levels_and_codes(attributes)
    family = SubgroupFamily.of(levels, codes, order, 0.1)
    sets = [
        frozenset(np.flatnonzero(family.members(number)).tolist())
        for number in range(family.n_subgroups)
    ]
    assert len(set(sets)) == len(sets), "no two subgroups have the same rows"
    assert set(sets) == brute_force(codes, order, 6)
    assert [len(one) for one in sets] == family.counts.tolist()


def test_sums_words_and_conditions_belong_to_the_same_subgroup():
    levels, codes = levels_and_codes({"sex": ["f", "m", "f", "m"], "age": [30, 30, 60, 60]})
    family = SubgroupFamily.of(levels, codes, 2, 0.25)
    sums = family.sums(np.array([1.0, 2.0, 4.0, 8.0]))
    by_words = {family.words(number): sums[number] for number in range(family.n_subgroups)}
    assert by_words["all rows"] == 15.0
    assert by_words["sex = f"] == 5.0
    assert by_words["sex = m, age = 60"] == 8.0
    assert family.order.tolist() == [0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert family.conditions(1) == {(0, 0)}
    half = family.take(np.array([0, 1]))
    assert half.n_subgroups == family.n_subgroups
    assert half.counts[0] == 2


def test_levels_do_not_depend_on_the_order_of_numbers_and_every_number_has_one():
    rng = np.random.default_rng(0)
    ages = np.round(rng.normal(50, 10, 500))
    (column,) = read_attributes({"age": ages})
    levels = AttributeLevels.of(column)
    codes = levels.codes(column)
    assert codes.min() == 0
    assert levels.n_levels == 4
    assert np.bincount(codes).min() > 80
    order = np.argsort(ages)
    assert (np.diff(codes[order]) >= 0).all()
    assert AttributeLevels.of(column.take(order)) == levels


def test_a_value_that_a_quarter_of_rows_have_is_a_level_of_its_own():
    numbers = np.r_[np.zeros(60), np.arange(1, 41)]
    (column,) = read_attributes({"gain": numbers})
    levels = AttributeLevels.of(column)
    assert levels.words == (
        "gain = 0",
        "gain 1 to 10",
        "gain 11 to 20",
        "gain 21 to 30",
        "gain 31 and above",
    )
    assert np.bincount(levels.codes(column)).tolist() == [60, 10, 10, 10, 10]
    middle = AttributeLevels.of(
        read_attributes({"x": np.r_[np.full(60, 5.0), np.arange(0, 5), np.arange(6, 41)]})[0]
    )
    assert middle.words[1] == "x up to 10 but not 5"


def test_new_rows_have_the_levels_of_old_ones_and_values_never_seen_have_none():
    levels, _ = levels_and_codes({"sex": ["f", "m", "f"], "age": [1.0, 2.0, 3.0]})
    sex, age = read_attributes({"sex": ["x", "m", None], "age": [2.5, None, 3.0]})
    assert levels[0].codes(sex).tolist() == [-1, 1, -1]
    assert levels[1].codes(age).tolist() == [-1, -1, 2]
    with pytest.raises(InvalidTypeError) as error:
        levels[1].codes(read_attributes({"age": ["old"]})[0])
    assert error.value.parameter == "attributes"


def test_missing_is_a_level_where_it_was_seen():
    levels, codes = levels_and_codes({"sex": ["f", None, "m"], "age": [np.nan, 1, 2]})
    assert levels[0].words == ("sex = f", "sex = m", "sex missing")
    assert codes[0].tolist() == [0, 2, 1]
    assert codes[1].tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "values", [["f", None, "m"], [1.5, 2.0, None, 7.0, 8.0, 9.0, 10.0], [True, False], [3, 3, 3]]
)
def test_levels_are_saved_and_read_back(values: list):
    (column,) = read_attributes({"a": values})
    levels = AttributeLevels.of(column)
    assert AttributeLevels.from_dict(levels.to_dict()) == levels


def test_too_many_subgroups_are_refused_with_their_number():
    rng = np.random.default_rng(0)
    columns = read_attributes({f"a{n}": rng.integers(0, 60, 20_000).astype(str) for n in range(6)})
    levels = [AttributeLevels.of(column) for column in columns]
    codes = [level.codes(column) for level, column in zip(levels, columns, strict=True)]
    with pytest.raises(InvalidValueError) as error:
        SubgroupFamily.of(levels, codes, 3, 1e-5)
    assert error.value.parameter == "attributes"
    assert "50,000" in error.value.rule
    assert "at least 1 row each" in error.value.got


def test_too_many_combinations_of_levels_are_refused():
    rows = np.arange(10_000)
    columns = read_attributes({"a": (rows // 2).astype(str), "b": ((rows + 1) // 2).astype(str)})
    levels = [AttributeLevels.of(column) for column in columns]
    codes = [level.codes(column) for level, column in zip(levels, columns, strict=True)]
    with pytest.raises(InvalidValueError) as error:
        SubgroupFamily.of(levels, codes, 2, 1e-5)
    assert error.value.parameter == "attributes"


@pytest.mark.parametrize("min_share", [0.02, 0.05, 0.3])
def test_no_rows_make_more_subgroups_than_levels_and_shares_allow(min_share: float):
    levels = [
        AttributeLevels("a", tuple(range(30))),
        AttributeLevels("b", (0, 1)),
        AttributeLevels("c", (0, 1, 2)),
    ]
    most = most_subgroups(levels, 3, min_share)
    largest = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        codes = [rng.integers(0, 30, 400) % (seed + 1), *rng.integers(0, (2, 3), (400, 2)).T]
        family = SubgroupFamily.of(levels, codes, 3, min_share)
        largest = max(largest, family.n_subgroups)
        assert family.n_subgroups <= most <= most_subgroups(levels, 3, 0.0)
    assert largest > most / 3


def test_a_subgroup_is_found_by_its_attributes_and_levels():
    levels = [AttributeLevels("a", (0, 1)), AttributeLevels("b", (0, 1, 2))]
    codes = list(np.random.default_rng(0).integers(0, (2, 3), (200, 2)).T)
    family = SubgroupFamily.of(levels, codes, 2, 0.01)
    for number in range(family.n_subgroups):
        assert family.number_of(family.conditions(number)) == number
    assert family.number_of(frozenset({(0, 5)})) is None
    single = SubgroupFamily.of(levels, codes, 1, 0.01)
    assert single.number_of(frozenset({(0, 1), (1, 1)})) is None
