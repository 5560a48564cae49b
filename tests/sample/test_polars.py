"""Polars lazy frames: what only they have, types, batches, order, and columns added as a step of
the query.
"""

import numpy as np
import polars as pl
import pytest

from calibrant import BinningCalibrator, Partition, scored
from calibrant.sample.reader import rows_of
from sample.same_counts import check_curve, made_rows

EDGES = Partition.from_edges([0.2, 0.5, 0.9])
RNG = np.random.default_rng(3)
ROWS = pl.DataFrame(
    {
        "p": RNG.uniform(size=2_000),
        "y": (RNG.uniform(size=2_000) < 0.4).astype(np.int32),
        "g": RNG.choice(["north", "south", "west"], 2_000),
        "key": RNG.permutation(2_000),
        "when": (
            np.datetime64("2020-01-01", "ns") + RNG.permutation(2_000) * np.timedelta64(1_000, "ns")
        ),
    }
)
EXPECTED = rows_of(scored(ROWS, score="p", label="y")).tally(EDGES)[0]


@pytest.mark.parametrize(
    "kind", [pl.Boolean, pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(10, 2)], ids=str
)
def test_labels_of_any_number_type_are_counted(kind) -> None:
    lazy = ROWS.lazy().with_columns(pl.col("y").cast(kind))
    assert rows_of(scored(lazy, score="p", label="y")).tally(EDGES)[0] == EXPECTED
    assert rows_of(scored(lazy.collect(), score="p", label="y")).tally(EDGES)[0] == EXPECTED


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["?", "no", "yes"])], ids=str)
def test_labels_of_text_are_counted(kind) -> None:
    words = pl.when(pl.col("y") == 1).then(pl.lit("yes")).otherwise(pl.lit("no")).cast(kind)
    for frame in (ROWS.lazy().with_columns(y=words), ROWS.with_columns(y=words)):
        counted, classes = (
            rows_of(scored(frame, score="p", label="y")).with_classes(pos_label="yes").tally(EDGES)
        )
        assert counted == EXPECTED
        assert classes.labels.tolist() == ["no", "yes"]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_the_unit_of_a_time_that_is_an_id_does_not_change_a_draw(unit) -> None:
    truncated = ROWS.with_columns(
        when=pl.col("when").dt.cast_time_unit("ns").dt.truncate("1ms") + pl.duration(days="key")
    )
    fitted = [
        BinningCalibrator(n_bins=5, pilot=0.5, random_state=0).fit(
            scored(frame, score="p", label="y", id="when")
        )
        for frame in (
            truncated,
            truncated.lazy().with_columns(pl.col("when").dt.cast_time_unit(unit)),
        )
    ]
    assert fitted[0].tally_ == fitted[1].tally_


def test_rows_that_change_their_order_are_not_split_without_an_id() -> None:
    turn = iter(range(100))

    def shuffled(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.sample(fraction=1.0, shuffle=True, seed=next(turn))

    lazy = ROWS.lazy().map_batches(shuffled)
    with pytest.raises(ValueError, match=r"same rows each time they are read.*name an id column"):
        BinningCalibrator(n_bins=5, pilot=0.5, random_state=0).fit(
            scored(lazy, score="p", label="y")
        )
    by_id = BinningCalibrator(n_bins=5, pilot=0.5, random_state=0).fit(
        scored(lazy, score="p", label="y", id="key")
    )
    assert 900 < by_id.tally_.counts.sum() < 1_100


@pytest.mark.broad
def test_a_curve_is_that_of_one_table() -> None:
    check_curve(
        lambda rows, columns: scored(pl.from_pandas(rows).lazy(), **columns.named),
        made_rows(2000, 3),
    )


def test_only_the_columns_that_are_needed_are_read(tmp_path) -> None:
    ROWS.write_parquet(tmp_path / "rows.parquet")
    lazy = pl.scan_parquet(tmp_path / "rows.parquet").with_columns(
        broken=pl.col("g").map_batches(lambda series: 1 / 0, return_dtype=pl.String)
    )
    assert rows_of(scored(lazy, score="p", label="y")).tally(EDGES)[0] == EXPECTED


def test_versions_without_batches_collect_once(monkeypatch) -> None:
    monkeypatch.delattr(pl.LazyFrame, "collect_batches")
    monkeypatch.setattr("calibrant.sample.sources.polars.BATCH_ROWS", 300)
    rows: list[int] = []
    data = scored(ROWS.lazy(), score="p", label="y", progress=lambda done, total: rows.append(done))
    assert rows_of(data).tally(EDGES)[0] == EXPECTED
    assert rows == [300, 600, 900, 1_200, 1_500, 1_800, 2_000]


def test_a_missing_column_is_told_at_once() -> None:
    with pytest.raises(
        ValueError, match=r"label column 'yy' must be in the data.*did you mean 'y'"
    ):
        scored(ROWS.lazy(), score="p", label="yy")


def test_no_rows_are_told() -> None:
    data = scored(ROWS.lazy().filter(pl.col("p") > 2), score="p", label="y")
    assert data.sizes() == {None: 0}
    with pytest.raises(ValueError, match="at least one row; got none"):
        rows_of(data).tally(EDGES)


def test_a_null_and_a_nan_are_told_apart_and_placed() -> None:
    bad = (
        ROWS.lazy()
        .with_row_index("row")
        .with_columns(
            p=pl.when(pl.col("row") == 3)
            .then(None)
            .when(pl.col("row") > 1_990)
            .then(float("nan"))
            .otherwise(pl.col("p"))
        )
    )
    with pytest.raises(
        ValueError,
        match=(
            r"got 1 faulty row, row index 3; .*no NaN; got 9 faulty rows, the first row index 1,991"
        ),
    ):
        rows_of(scored(bad, score="p", label="y")).tally(EDGES)


@pytest.mark.parametrize("kind", [pl.Float64, pl.Float32], ids=str)
@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_a_lazy_frame_gets_what_arrow_gets(kind, engine) -> None:
    fitted = BinningCalibrator(n_bins=12).fit(ROWS["p"].to_numpy(), ROWS["y"].to_numpy())
    odd = pl.DataFrame(
        {"p": [None, float("nan"), float("inf"), -0.0, 1e300 if kind == pl.Float64 else 1e30]}
    )
    frame = pl.concat([ROWS.select("p"), odd]).with_columns(
        pl.col("p").cast(kind),
        kept=pl.Series(["a", "b", "c", None, "a"] * 401, dtype=pl.Categorical),
    )
    got = fitted.apply(scored(frame.lazy(), score="p"))
    assert isinstance(got, pl.LazyFrame)
    expected = fitted.apply(scored(frame.to_arrow(), score="p")).read_all()
    collected = got.collect(engine=engine)
    assert got.collect_schema() == collected.schema
    assert collected.columns == expected.column_names
    assert collected.schema["kept"] == frame.schema["kept"]
    for name in ("kept", "calibrated", "lower", "upper", "set"):
        assert collected[name].to_list() == expected[name].to_pylist()
    assert collected["set"].null_count() == 3
    assert got.filter(pl.col("calibrated") > 0).select("set").collect(engine=engine).height > 0


@pytest.mark.broad
def test_the_streaming_engine_adds_columns_batch_by_batch(tmp_path, monkeypatch) -> None:
    rows = np.random.default_rng(0).uniform(size=300_000)
    pl.DataFrame({"p": rows}).write_parquet(tmp_path / "rows.parquet", row_group_size=20_000)
    fitted = BinningCalibrator(n_bins=12).fit(ROWS["p"].to_numpy(), ROWS["y"].to_numpy())
    lengths = []
    hstack = pl.DataFrame.hstack
    monkeypatch.setattr(
        pl.DataFrame, "hstack", lambda self, new: lengths.append(self.height) or hstack(self, new)
    )
    lazy = fitted.apply(scored(pl.scan_parquet(tmp_path / "rows.parquet"), score="p"))
    assert sum(lengths) == 0
    lazy.sink_parquet(tmp_path / "more.parquet")
    assert sum(lengths) == rows.size
    assert max(lengths) < rows.size
    added = pl.read_parquet(tmp_path / "more.parquet")
    np.testing.assert_array_equal(added["p"].to_numpy(), rows)
    np.testing.assert_array_equal(added["calibrated"].to_numpy(), fitted.predict(rows))


def test_columns_are_added_by_segment_and_to_no_rows() -> None:
    scores, labels, groups = (ROWS[name].to_numpy() for name in ("p", "y", "g"))
    fitted = BinningCalibrator(n_bins=4).fit(scores, labels, segments=groups)
    odd = ROWS.with_columns(
        g=pl.when(pl.col("key") == 0).then(pl.lit("new")).otherwise(pl.col("g"))
    )
    got = fitted.apply(scored(odd.lazy(), score="p", segment="g"), prefix="c_").collect()
    assert got["c_calibrated"].null_count() == 1
    known = odd["g"] != "new"
    expected = fitted.predict(scores[known.to_numpy()], segments=groups[known.to_numpy()])
    np.testing.assert_array_equal(got.filter(known)["c_calibrated"].to_numpy(), expected)
    assert fitted.apply(scored(odd.lazy().head(0), score="p", segment="g")).collect().shape == (
        0,
        9,
    )


def test_what_can_not_be_added_is_refused_before_anything_runs() -> None:
    fitted = BinningCalibrator(n_bins=3).fit(ROWS["p"].to_numpy(), ROWS["y"].to_numpy())
    with pytest.raises(ValueError, match="column 'lower' must not be in the data already"):
        fitted.apply(scored(ROWS.lazy().with_columns(lower=pl.lit(1)), score="p"))
    with pytest.raises(TypeError, match="score column 'g' must contain real numbers"):
        fitted.apply(scored(ROWS.lazy(), score="g"))
