"""Counts of groups: they add up the same in any order, save and load, and labels of groups of any
kind are read.
"""

import datetime
import json

import numpy as np
import pytest

from calibrant import Partition, Tally
from calibrant.cells.group_counts import GroupCounts
from calibrant.cli._words import in_options
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.groups import Groups
from calibrant.sample.reader import read_rows
from calibrant.sample.row_keys import id_keys, value_keys

PARTITION = Partition.fixed_width(4)


def _tally(scores, codes, groups):
    rows = read_rows(scores, codes, groups=groups, classes=(0, 1))
    return rows.tally(PARTITION)[0]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 60, size=500)
    return rng.uniform(size=500), rng.integers(0, 2, size=500), groups


def test_whole_groups_merged_in_any_order_give_the_identical_tally(rows):
    scores, codes, groups = rows
    whole = _tally(scores, codes, groups)
    parts = [
        _tally(scores[groups % 3 == k], codes[groups % 3 == k], groups[groups % 3 == k])
        for k in (2, 0, 1)
    ]
    assert sum(parts) == whole
    assert sum(parts[::-1]).to_dict() == whole.to_dict()
    assert whole.groups.n_groups == np.unique(groups).size
    shuffled = np.random.default_rng(1).permutation(500)
    assert _tally(scores[shuffled], codes[shuffled], groups[shuffled]) == whole


def test_the_table_is_what_a_loop_counts(rows):
    scores, codes, groups = rows
    table = _tally(scores, codes, groups).groups
    seen = {}
    for group in np.unique(groups):
        here = groups == group
        for region in range(4):
            there = here & (np.minimum((scores * 4).astype(int), 3) == region)
            if there.any():
                entry = region, int(there.sum()), int(codes[there].sum()), int(here.sum())
                seen[entry] = seen.get(entry, 0) + 1
    columns = table.region, table.rows, table.positives, table.size, table.number
    found = {
        entry[:4]: entry[4] for entry in zip(*(column.tolist() for column in columns), strict=True)
    }
    assert found == seen
    assert list(found) == sorted(found)


def test_it_saves_and_loads(rows):
    tally = _tally(*rows)
    assert Tally.from_dict(json.loads(json.dumps(tally.to_dict()))) == tally
    small = tally.groups.without_sizes()
    assert GroupCounts.from_dict(json.loads(json.dumps(small.to_dict()))) == small


def test_huge_groups_do_not_overflow():
    columns = [
        np.array([0, 3]),
        np.array([2**40, 2**40]),
        np.array([5, 2**40]),
        np.array([2**41, 2**41]),
    ]
    table = GroupCounts.from_cells(*columns, np.array([1, 2]), 3)
    assert (table + table).number.tolist() == [2, 4]


def test_a_tally_with_groups_is_not_added_to_one_without(rows):
    scores, codes, groups = rows
    plain = read_rows(scores, codes, classes=(0, 1)).tally(PARTITION)[0]
    with pytest.raises(InvalidValueError, match="both have groups"):
        plain + _tally(scores, codes, groups)


def test_regions_with_groups_never_become_one(rows):
    tally = _tally(*rows)
    with pytest.raises(InvalidValueError, match="keep their regions apart"):
        tally.regrouped(np.array([0, 0, 1, 1]), Partition.fixed_width(2))
    assert tally.part(slice(1, 3)).counts.tolist() == tally.counts[1:3].tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [0]},
        {"number": [-1]},
        {"positives": [9]},
        {"n_groups": 0},
        {"size": [1]},
    ],
)
def test_a_table_that_cannot_be_is_refused(change):
    good = {
        "region": [0],
        "rows": [3],
        "positives": [1],
        "size": [4],
        "number": [1],
        "n_groups": 1,
    }
    GroupCounts.from_dict(good)
    with pytest.raises((InvalidValueError, InvalidTypeError)):
        GroupCounts.from_dict({**good, **change})


DAY = datetime.date(2024, 2, 29)


@pytest.mark.parametrize(
    "labels",
    [
        [5, 3, 5, 900_000_000_000],
        np.array([1, 2, 1, 7], dtype=np.uint64),
        [1.0, 2.0, 1.0, 3.0],
        ["a", "b", "a", "a\0"],
        np.array(["a", "b", "a", "ab"]),
        [True, False, True, True],
        np.array(["2024-01-01", "2024-01-02", "2024-01-01", "2025-01-01"], dtype="datetime64[D]"),
        [DAY, DAY + datetime.timedelta(1), DAY, DAY + datetime.timedelta(2)],
        np.array([3, 4, 3, 5], dtype=object),
    ],
    ids=lambda labels: type(labels[0]).__name__,
)
def test_labels_of_any_one_kind(labels):
    groups = Groups.of(labels, 4)
    listed = [str(value) for value in labels]
    same = [[one == other for other in listed] for one in listed]
    assert (groups.codes[:, None] == groups.codes[None, :]).tolist() == same


def test_categories_of_frames():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    for labels in (
        pd.Series(["x", "y", "x"], dtype="category"),
        pl.Series(["x", "y", "x"], dtype=pl.Categorical),
    ):
        assert Groups.of(labels, 3).codes.tolist() == Groups.of(["x", "y", "x"], 3).codes.tolist()


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([1, "a", 1], "int and str, first at row index 1"),
        (["a", None, "a"], "missing values; got None at row index 1"),
        ([1.0, np.nan, 1.0], "missing values; got .*row index 1"),
        (
            np.array(["2024-01-01", "NaT", "NaT"], dtype="datetime64[D]"),
            "row index 1, and 2 such rows",
        ),
        ([1.5, 2.0, 3.0], "whole numbers, dates or text"),
        ([1, 2], "one entry per score, 3; got 2 entries"),
        ([(1, 2), (2, 2), (1, 2)], "groups must"),
        (np.array([{}, {}, {}]), "dict at row index 0"),
    ],
)
def test_bad_labels_are_refused_in_words(labels, said):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=said):
        Groups.of(labels, 3)


@pytest.mark.parametrize("labels", [[1, "a", 1], ["a", None, "a"], [1.0, 1.5, 1.0]])
def test_the_command_line_counts_rows_of_bad_labels_from_one(labels):
    with pytest.raises((InvalidTypeError, InvalidValueError)) as caught:
        Groups.of(labels, 3)
    assert "row 2" in caught.value.message(in_options)


def test_keys_are_those_of_the_engines():
    pa = pytest.importorskip("pyarrow")
    days = np.array(["2024-01-01", "1969-12-31"], dtype="datetime64[D]")
    moments = np.array(["2024-01-01T00:00:00.5", "1969-12-31T00:00:01"], dtype="datetime64[us]")
    for values in (
        np.array([3, -1]),
        np.array([3], dtype=np.uint8),
        days,
        moments,
        np.array(["é", ""], dtype=object),
    ):
        assert value_keys(values).tolist() == id_keys(pa.array(values), "id").tolist()


def test_a_draw_takes_whole_groups_whatever_the_order(rows):
    scores, codes, groups = rows
    data = read_rows(scores, codes, groups=groups, classes=(0, 1))
    for split in (0.3, 17):
        draw = data.draw(split, 5)
        chosen = data.chosen(draw)
        drawn = set(groups[chosen].tolist())
        assert not drawn & set(groups[~chosen].tolist())
        assert split != 17 or len(drawn) == 17
        order = np.random.default_rng(3).permutation(500)
        moved = read_rows(
            scores[order], codes[order], groups=groups[order].astype(float), classes=(0, 1)
        )
        assert set(groups[order][moved.chosen(moved.draw(split, 5))].tolist()) == drawn


def test_groups_and_counts_of_rows_do_not_go_together(rows):
    scores, codes, groups = rows
    with pytest.raises(InvalidTypeError, match="sample_weight must be None if rows have groups"):
        read_rows(scores, codes, groups=groups, sample_weight=np.ones(500))


def test_rows_of_groups_that_count_in_no_region_are_told(rows):
    scores, codes, groups = rows
    assert _tally(*rows).uncounted == 0
    cut = Partition.uniform_mass(scores, 5)
    tally = read_rows(scores, codes, groups=groups, classes=(0, 1)).tally(cut)[0]
    assert (
        tally.uncounted
        == np.count_nonzero(cut.membership(scores) < 0)
        == 500 - tally.counts.sum()
        > 0
    )


def test_columns_of_unlike_length_are_refused(rows):
    state = _tally(*rows).groups.to_dict()
    assert GroupCounts.from_dict(state).to_dict() == state
    with pytest.raises(InvalidValueError) as caught:
        GroupCounts.from_dict({**state, "number": state["number"][:-1]})
    size = len(state["number"])
    assert caught.value.parameter == "number"
    assert caught.value.got == f"{size - 1:,}"


def test_counts_without_a_group_are_written_and_read_back() -> None:
    nobody = GroupCounts.of([], [], [])
    assert nobody.n_groups == 0
    assert GroupCounts.from_dict(nobody.to_dict()) == nobody


def test_sets_of_rows_may_overlap_and_come_in_any_order(rows):
    scores, codes, groups = rows
    sets = {2: scores < 0.3, 0: scores < 2.0, 1: scores > 2.0}  # all rows, and none
    found = GroupCounts.of_sets(
        (
            (
                number,
                np.bincount(groups[own], minlength=60),
                np.bincount(groups[own & (codes == 1)]),
            )
            for number, own in sets.items()
        ),
        60,
    )
    assert found.n_groups == 60
    for number, own in sets.items():
        alone = GroupCounts.of(np.where(own, 0, -1), codes, groups).without_sizes()
        here = found.region == number
        for name in ("rows", "positives", "number"):
            assert getattr(found, name)[here].tolist() == getattr(alone, name).tolist()
    assert not (found.region == 1).any()
