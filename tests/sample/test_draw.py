"""A draw depends on the seed and the keys alone, and the keys on the ids alone."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calibrant.kernels.hash import GOLDEN
from calibrant.params.random import Draw, RandomSource, folds_of, mixed, small_hashes
from calibrant.sample.row_keys import (
    _instant_keys,
    id_keys,
    partition_start,
    position_keys,
    value_keys,
)


def keys(values, kind=None) -> list[int]:
    return id_keys(pa.array(values, kind), "id").tolist()


@pytest.mark.broad
@given(st.lists(st.integers(0, 127), max_size=20))
def test_whole_numbers_have_the_same_keys_in_any_width(ids) -> None:
    kinds = [
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
    ]
    assert len({tuple(keys(ids, kind)) for kind in (*kinds, pa.decimal128(38, 0))}) == 1


def test_large_and_negative_ids_are_told_apart() -> None:
    assert len(set(keys([-1, 0, 1, 2**62, -(2**63)]))) == 5
    assert len(set(keys([0, 2**63, 2**64 - 1], pa.uint64()))) == 3
    with pytest.raises(
        TypeError, match="id column 'id' must contain whole numbers that fit 64 bits"
    ):
        keys([2**100], pa.decimal128(38, 0))


@given(st.lists(st.text(max_size=12), max_size=40), st.integers(0, 5))
def test_text_has_the_same_keys_in_any_type_and_any_slice(texts, offset) -> None:
    expected = keys(texts, pa.string())
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        assert id_keys(pa.array(texts, pa.string()).cast(kind), "id").tolist() == expected
    encoded = [text.encode() for text in texts]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert keys(encoded, kind) == expected
    assert (
        id_keys(pa.array(["before"] * offset + texts, pa.string())[offset:], "id").tolist()
        == expected
    )
    assert [key for text in texts for key in keys([text], pa.string())] == expected


@given(st.lists(st.text(alphabet="ab\0", max_size=6), unique=True, max_size=60))
def test_different_texts_have_different_keys(texts) -> None:
    assert len(set(keys(texts, pa.string()))) == len(texts)


def test_long_runs_of_text_are_the_same_as_short_ones(monkeypatch) -> None:
    texts = [f"row {number}" * (number % 7) for number in range(5_000)]
    expected = keys(texts)
    monkeypatch.setattr("calibrant.sample.row_keys._TEXT_ROWS", 17)
    assert keys(texts) == expected
    assert keys([bytes([number] * 16) for number in range(5)], pa.binary(16)) == keys(
        [bytes([number] * 16) for number in range(5)]
    )


@given(
    st.lists(
        st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)),
        max_size=20,
        unique=True,
    )
)
def test_an_instant_has_the_same_key_in_any_unit(instants) -> None:
    expected = keys(instants, pa.timestamp("us"))
    assert keys(instants, pa.timestamp("ns")) == expected
    assert len(set(expected)) == len(instants)
    days = [instant.date() for instant in instants]
    midnights = [datetime.datetime.combine(day, datetime.time()) for day in days]
    for kind in (pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("ns"), pa.date64()):
        assert keys(midnights if pa.types.is_timestamp(kind) else days, kind) == keys(
            days, pa.date32()
        )


def test_other_columns_are_no_ids() -> None:
    with pytest.raises(
        TypeError, match="id column 'id' must contain whole numbers, dates or text; got double"
    ):
        keys([0.5])


SHARE = 0.3
MANY = 100_000


@pytest.mark.parametrize(
    "made",
    [
        np.arange(MANY, dtype=np.uint64),
        np.arange(MANY, dtype=np.uint64) << np.uint64(40),
        position_keys(10, MANY),
    ],
    ids=["in a row", "high bits", "positions"],
)
def test_the_share_drawn_is_the_one_asked_for_in_every_stretch_of_rows(made) -> None:
    drawn = Draw.of_share(11, SHARE).chosen(made).reshape(100, -1).sum(axis=1)
    size = MANY // 100
    square = ((drawn - SHARE * size) ** 2 / (SHARE * (1 - SHARE) * size)).sum()
    assert 0.001 < stats.chi2.sf(square, 100) < 0.999


def test_seeds_draw_independently() -> None:
    made = np.arange(MANY, dtype=np.uint64)
    for seed in (1, 2, 2**62):
        first = Draw.of_share(0, SHARE).chosen(made)
        second = Draw.of_share(seed, SHARE).chosen(made)
        both = int((first & second).sum())
        assert stats.binomtest(both, MANY, SHARE**2).pvalue > 0.001


def test_parts_draw_independently_and_a_part_in_pieces_as_a_whole() -> None:
    first, second = (
        Draw.of_share(0, SHARE).chosen(position_keys(start, MANY))
        for start in (0, partition_start(1))
    )
    assert stats.binomtest(int((first & second).sum()), MANY, SHARE**2).pvalue > 0.001
    whole = position_keys(0, 100)
    pieces = [position_keys(0, 30), position_keys(30, 70)]
    np.testing.assert_array_equal(whole, np.concatenate(pieces))


def test_a_larger_share_holds_a_smaller_one() -> None:
    made = np.arange(10_000, dtype=np.uint64)
    small = Draw.of_share(5, 0.1).chosen(made)
    large = Draw.of_share(5, 0.6).chosen(made)
    assert large[small].all()
    assert Draw.of_share(5, 1.0).chosen(made).all()
    assert not Draw.of_share(5, 0.0).chosen(made).any()


@pytest.mark.broad
def test_scrambling_is_one_to_one() -> None:
    made = np.arange(200_000, dtype=np.uint64)
    assert np.unique(mixed(made)).size == made.size


@pytest.mark.parametrize(
    "plus", [0, 12_345, 2**63, 2**64 - 9_000, 2**64 - GOLDEN - 7, 2**40 - GOLDEN + 2**64 - 20_000]
)
@pytest.mark.parametrize("limit", [1, 2**57, 2**63, 2**64 - 1])
def test_numbers_with_a_small_hash_are_found_in_blocks_as_one_by_one(plus, limit) -> None:
    hashes = mixed(np.arange(70_000, dtype=np.uint64), plus)
    for n in (0, 1, 70_000):
        np.testing.assert_array_equal(
            small_hashes(n, plus, limit), np.flatnonzero(hashes[:n] < np.uint64(limit))
        )


def test_folds_hold_every_row_once_and_equal_keys_together():
    keys = np.repeat(np.arange(100, dtype=np.uint64), 3)
    found = folds_of(keys, RandomSource(0), 4)
    assert sorted(np.concatenate([tested for _, tested in found])) == list(range(300))
    for trained, tested in found:
        assert tested.size == 75
        assert sorted([*trained, *tested]) == list(range(300))
        assert not set(keys[trained]) & set(keys[tested])


def test_keys_of_instants_are_the_second_or_its_scrambled_fraction():
    found = _instant_keys(np.array([2_000, 1_500, -500]), "ms")
    whole = [mixed(np.array([second], dtype=np.int64).view(np.uint64)) for second in (1, -1)]
    fractions = [mixed(second + np.uint64(500_000_000))[0] for second in whole]
    assert found.tolist() == [2, *fractions]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_a_moment_has_the_same_key_in_every_unit(unit: str) -> None:
    moments = np.array(["1969-01-01", "1970-01-01", "2026-01-01"], dtype="datetime64[D]")
    if unit == "W":
        moments = moments.astype("datetime64[W]")
    seconds = moments.astype("datetime64[s]")
    assert value_keys(moments.astype(f"datetime64[{unit}]")).tolist() == (
        value_keys(seconds).tolist()
    )
