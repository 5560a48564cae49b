"""Segments with few rows share the regions of "other", which takes every segment that was not kept."""

import sqlite3
from contextlib import closing
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from calibrant import (
    BinningCalibrator,
    Calibrator,
    Partition,
    load_model,
    save_model,
    scored,
)
from calibrant.calibrators.regions.own_segments import kept_segments, segment_draw
from calibrant.cells.bins import OTHER
from calibrant.errors import InvalidTypeError, InvalidValueError, PooledSegmentsWarning
from calibrant.export import to_sql
from calibrant.sample.reader import read_rows
from worlds.errors import about

# what is pooled is the subject here
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.errors.PooledSegmentsWarning")

SHARES = np.array([0.4, 0.3, 0.2] + [0.1 / 37] * 37)
RNG = np.random.default_rng(0)
N = 20_000
SEGMENTS = np.array([f"s{number:02}" for number in range(40)])[RNG.choice(40, size=N, p=SHARES)]
SCORES = RNG.uniform(size=N)
Y = (RNG.uniform(size=N) < SCORES).astype(int)
BOTH = pytest.mark.parametrize("kind", [Calibrator, BinningCalibrator])


@cache
def pooled_fit(kind):
    """The default fit, which several tests look at and none changes."""
    return kind().fit(SCORES, Y, segments=SEGMENTS)


@pytest.mark.broad
@BOTH
def test_small_segments_are_pooled_by_default_and_the_guarantee_is_not_vacuous(kind):
    pooled = pooled_fit(kind)
    each = kind(segment_rule=None).fit(SCORES, Y, segments=SEGMENTS)
    assert pooled.partition_.segments == ("s00", "s01", "s02", OTHER)
    assert pooled.guarantee_.epsilon < 0.2 < 0.5 < each.guarantee_.epsilon
    assert not pooled.guarantee_.is_weak
    assert each.partition_.segments == tuple(np.unique(SEGMENTS))
    (remark,) = (note for note in pooled.guarantee_.notes if "37 segments share" in note)
    assert remark.startswith(
        '37 segments share the regions of "other", as well as segments not seen: s03, s04, '
    )


@pytest.mark.broad
@BOTH
def test_a_segment_not_seen_gets_what_the_pooled_ones_get(kind):
    fitted = pooled_fit(kind)
    scores = np.linspace(0, 1, 21)
    for answer in (fitted.predict, fitted.predict_interval, fitted.predict_set):
        small, unseen, named = (
            answer(scores, segments=[name] * 21) for name in ("s17", "nowhere", "other")
        )
        assert np.array_equal(small, unseen)
        assert np.array_equal(small, named)
    with pytest.raises(InvalidTypeError, check=about("segments", "3")):
        fitted.predict([0.5], segments=[3])


def test_without_small_segments_nothing_is_pooled_and_a_segment_not_seen_is_refused():
    large = np.where(SCORES * 1000 % 1 < 0.5, "a", "b")
    fitted = BinningCalibrator().fit(SCORES, Y, segments=large)
    assert fitted.partition_.segments == ("a", "b")
    assert not any("share the regions" in note for note in fitted.guarantee_.notes)
    assert any("bins within 2 segments" in note for note in fitted.guarantee_.notes)
    with pytest.raises(InvalidValueError, check=about("segments", "'c'")):
        fitted.predict([0.5], segments=["c"])


@pytest.mark.parametrize("options", [{"pilot": 0.2}, {"partition": "uniform"}, {}])
def test_min_rows_is_about_the_number_of_rows_from_which_a_segment_is_kept(options):
    segments = np.repeat(["big", "small"], [N - 200, 200])
    for min_rows, kept in ((800, ("big", OTHER)), (20, ("big", "small"))):
        fitted = BinningCalibrator(3, segment_rule=min_rows, **options).fit(
            SCORES, Y, segments=segments
        )
        assert fitted.partition_.segments == kept
        assert fitted.tally_.n_rows < N  # rows that choose are not counted


@pytest.mark.broad
@BOTH
@pytest.mark.parametrize(
    "options", [{}, {"segment_rule": 1000}, {"segment_rule": ["s01", "s30"]}, {"pilot": 0.2}]
)
def test_a_table_gives_the_bins_and_counts_of_arrays(kind, options):
    table = pa.table({"p": SCORES, "y": Y, "g": SEGMENTS})
    near = kind(**options).fit(SCORES, Y, segments=SEGMENTS) if options else pooled_fit(kind)
    far = kind(**options).fit(scored(table, score="p", label="y", segment="g", progress=False))
    assert far.partition_ == near.partition_
    assert far.tally_ == near.tally_
    assert far.guarantee_.notes == near.guarantee_.notes
    applied = far.apply(
        scored(table.slice(0, 50), score="p", segment="g", progress=False)
    ).read_all()
    assert np.array_equal(applied["calibrated"], near.predict(SCORES[:50], segments=SEGMENTS[:50]))


def test_segments_that_the_user_names_are_kept_and_every_row_is_counted():
    fitted = BinningCalibrator(4, pilot=None, segment_rule=["s39", "s01"]).fit(
        SCORES, Y, segments=SEGMENTS
    )
    assert fitted.partition_.segments == ("s01", "s39", OTHER)
    assert fitted.tally_.n_rows == N
    with pytest.raises(
        InvalidValueError,
        check=about("segment_rule", "'north'"),
    ):
        BinningCalibrator(segment_rule=["north"]).fit(SCORES, Y, segments=SEGMENTS)


def test_where_every_row_counts_none_can_choose_segments():
    with pytest.raises(InvalidValueError, match="rows that choose segments are not counted"):
        BinningCalibrator(pilot=None, segment_rule=100).fit(SCORES, Y, segments=SEGMENTS)
    doubled = BinningCalibrator().fit(SCORES, Y, segments=SEGMENTS, sample_weight=np.full(N, 2))
    assert OTHER not in doubled.partition_.segments


def test_a_segment_with_the_name_of_the_rest_is_never_kept():
    named = np.where(SEGMENTS == "s00", "other", SEGMENTS)
    with pytest.warns(PooledSegmentsWarning):
        fitted = BinningCalibrator().fit(SCORES, Y, segments=named)
    assert fitted.partition_.segments == ("s01", "s02", OTHER)
    with pytest.raises(InvalidValueError, check=about("segment_rule", "'other'")):
        BinningCalibrator(segment_rule=["other"]).fit(SCORES, Y, segments=named)


def test_a_rest_with_few_rows_takes_the_smallest_segment_only_where_it_is_a_twentieth_of_all():
    assert kept_segments({"a": 500, "b": 30, "c": 2}, 16) == {"a", "b"}
    assert kept_segments({"a": 50, "b": 30, "c": 9}, 16) == {"a"}
    assert kept_segments({"a": 10, "b": 10}, 16) == set()


@pytest.mark.broad
def test_saved_and_loaded_the_rest_stays(tmp_path):
    fitted = Calibrator().fit(SCORES, Y, segments=SEGMENTS)
    save_model(fitted, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.calibrator.partition_ == fitted.partition_
    *notes, read = loaded.calibrator.guarantee_.notes
    assert tuple(notes) == fitted.guarantee_.notes
    assert read.startswith("Read from a file, not recomputed from the rows: ")
    unseen = np.array(["new"] * 50)
    assert np.array_equal(
        loaded.predict(SCORES[:50], segments=unseen), fitted.predict(SCORES[:50], segments=unseen)
    )


def test_sql_gives_other_segments_the_rest_and_a_missing_one_null():
    parts = Partition.by_segment({"a": Partition.fixed_width(2)}, other=Partition.fixed_width(1))
    segments = np.where(SEGMENTS == "s00", "a", SEGMENTS)
    fitted = BinningCalibrator(partition=parts).fit(SCORES, Y, segments=segments)
    sql = to_sql(
        fitted, dialect="sqlite", score="p", segment="g", table="t", outputs=["calibrated"]
    )
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE t (p REAL, g TEXT)")
        database.executemany("INSERT INTO t VALUES (?, ?)", [(0.2, "a"), (0.2, "zz"), (0.2, None)])
        found = [row[-1] for row in database.execute(sql)]
    assert found == [*fitted.predict([0.2, 0.2], segments=["a", "zz"]), None]


@pytest.mark.parametrize("wrong", ["north", {"north"}, [["north"]], [{}], [None]])
def test_segments_to_keep_are_a_list_of_names(wrong):
    with pytest.raises((InvalidTypeError, InvalidValueError), match="segment_rule must be an int"):
        BinningCalibrator(segment_rule=wrong).fit(SCORES, Y, segments=SEGMENTS)


def test_about_sixteen_rows_are_drawn_of_a_segment_that_is_just_large_enough():
    rng = np.random.default_rng(0)
    rows = read_rows(
        rng.uniform(size=4000), rng.integers(2, size=4000), segments=rng.integers(4, size=4000)
    )
    settings = BinningCalibrator(2, segment_rule=400)
    drawn = rows.collect().chosen(segment_draw(rows, settings, 0))
    assert stats.binomtest(int(drawn.sum()), 4000, 16 / 400).pvalue > 1e-3


@pytest.mark.parametrize(
    "kind", [pytest.param(Calibrator, marks=pytest.mark.broad), BinningCalibrator]
)
@pytest.mark.parametrize("options", [{}, {"partition": "uniform"}, {"n_bins": 3}, {"pilot": 0.2}])
@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
def test_a_segment_of_which_no_row_is_left_to_count_says_nothing(kind, options):
    settings = kind(segment_rule=20, **options)
    rows = read_rows(SCORES[:500], Y[:500], segments=SEGMENTS[:500])
    drawn = np.flatnonzero(rows.collect().chosen(segment_draw(rows, settings, 0)))
    segments = SEGMENTS[:500].copy()
    segments[drawn[:20]] = "odd"
    table = pa.table({"p": SCORES[:500], "y": Y[:500], "g": segments})
    near = settings.fit(SCORES[:500], Y[:500], segments=segments)
    assert "odd" in near.partition_.segments
    assert near.predict_rate_interval([0.5], segments=["odd"]).tolist() == [[0.0, 1.0]]
    far = kind(segment_rule=20, **options).fit(
        scored(table, score="p", label="y", segment="g", progress=False)
    )
    assert far.partition_ == near.partition_
    assert far.tally_ == near.tally_


@BOTH
@pytest.mark.parametrize(
    "options", [{}, {"partition": "uniform"}, {"pilot": 0.2}, {"segment_rule": ["a", "b"]}]
)
@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
def test_a_segment_with_fewer_rows_than_bins_has_as_many_bins_as_rows(kind, options):
    rows = {"a": 490, "b": 8, "c": 2}
    segments = np.repeat(list(rows), list(rows.values()))
    fitted = kind(n_bins=10, **{"segment_rule": 2, **options}).fit(
        SCORES[:500], Y[:500], segments=segments
    )
    bins = {name: part.n_regions for name, part in fitted.partition_.bins_by_segment.items()}
    assert bins["a"] == 10
    rows[OTHER] = sum(rows[name] for name in rows if name not in bins)
    assert all(number <= rows[name] for name, number in bins.items())
    assert 0.0 < fitted.predict([0.5], segments=["c"]).item() < 1.0
