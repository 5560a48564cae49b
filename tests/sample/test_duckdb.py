"""DuckDB relations: what only they have, types, names, order, and columns added by SQL."""

import threading

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from calibrant import (
    BetaCalibrator,
    BinningCalibrator,
    BlendCalibrator,
    Calibrator,
    IsotonicCalibrator,
    Partition,
    PlattCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
    scored,
    threshold,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.errors import NoTableError
from calibrant.sample.added_columns import AddColumns
from calibrant.sample.batch import Columns
from calibrant.sample.reader import rows_of
from sample.same_counts import check_curve, made_rows

EDGES = Partition.from_edges([0.2, 0.5, 0.9])
RNG = np.random.default_rng(3)
ROWS = pa.table(
    {
        "p": RNG.uniform(size=2_000),
        "y": (RNG.uniform(size=2_000) < 0.4).astype(np.int32),
        "g": RNG.choice(["north", "it's", 'a "b"'], 2_000),
        "key": RNG.permutation(2_000),
    }
)
EXPECTED = rows_of(scored(ROWS, score="p", label="y")).tally(EDGES)[0]


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as opened:
        opened.register("given", ROWS)
        opened.execute("CREATE TABLE held AS SELECT * FROM given")
        yield opened


@pytest.fixture
def connection(database):
    """A connection of its own to a database that all tests share."""
    with database.cursor() as opened:
        yield opened


@pytest.mark.parametrize(
    "kind", ["BOOLEAN", "TINYINT", "BIGINT", "UBIGINT", "HUGEINT", "DECIMAL(9,2)", "FLOAT"]
)
def test_labels_of_any_number_type_are_counted(connection, kind) -> None:
    relation = connection.sql(f"SELECT p, y::{kind} AS y FROM held")
    assert rows_of(scored(relation, score="p", label="y")).tally(EDGES)[0] == EXPECTED


@pytest.mark.parametrize("kind", ["VARCHAR", "ENUM('?', 'no', 'yes')"])
def test_labels_of_text_are_counted(connection, kind) -> None:
    relation = connection.sql(
        f"SELECT p, (CASE WHEN y = 1 THEN 'yes' ELSE 'no' END)::{kind} AS y FROM held"
    )
    counted, classes = (
        rows_of(scored(relation, score="p", label="y")).with_classes(pos_label="yes").tally(EDGES)
    )
    assert counted == EXPECTED
    assert classes.labels.tolist() == ["no", "yes"]


@pytest.mark.parametrize("kind", ["DOUBLE", "DECIMAL(18,10)", "FLOAT"])
def test_scores_of_any_number_type_are_counted(connection, kind) -> None:
    relation = connection.sql(f"SELECT round(p, 2)::{kind} AS p, y FROM held")
    counted = rows_of(scored(relation, score="p", label="y")).tally(
        Partition.from_edges([0.205, 0.505, 0.905])
    )[0]
    rounded = np.round(ROWS["p"].to_numpy(), 2)
    assert (
        counted.counts.tolist()
        == np.bincount(np.searchsorted([0.205, 0.505, 0.905], rounded)).tolist()
    )


def test_a_sum_of_labels_is_a_label(connection) -> None:
    relation = connection.sql("SELECT key, max(p) AS p, sum(y) AS y FROM held GROUP BY key")
    assert rows_of(scored(relation, score="p", label="y")).tally(EDGES)[0] == EXPECTED


@pytest.mark.parametrize("kind", ["INTEGER", "HUGEINT", "UBIGINT", "VARCHAR"])
def test_the_type_of_an_id_does_not_change_a_draw(connection, kind) -> None:
    fitted = BinningCalibrator(n_bins=5, pilot=0.5, random_state=0)
    whole = pa.Table.from_arrays(
        [ROWS["p"], ROWS["y"], ROWS["key"].cast(pa.string())], ["p", "y", "key"]
    )
    table = whole if kind == "VARCHAR" else ROWS
    expected = fitted.fit(scored(table, score="p", label="y", id="key")).tally_
    relation = connection.sql(f"SELECT p, y, key::{kind} AS key FROM held ORDER BY random()")
    got = BinningCalibrator(n_bins=5, pilot=0.5, random_state=0).fit(
        scored(relation, score="p", label="y", id="key")
    )
    assert got.tally_ == expected


def test_rows_that_change_their_order_are_not_split_without_an_id(connection) -> None:
    relation = connection.sql("SELECT * FROM held ORDER BY random()")
    with pytest.raises(ValueError, match=r"same rows each time they are read.*name an id column"):
        BinningCalibrator(n_bins=5, pilot=0.5, random_state=0).fit(
            scored(relation, score="p", label="y")
        )


def test_rows_that_change_their_order_all_count_by_default(connection) -> None:
    relation = connection.sql("SELECT * FROM held ORDER BY random()")
    data = scored(relation, score="p", label="y", segment="g")
    rows = ROWS["p"].to_numpy(), ROWS["y"].to_numpy()
    fitted = BinningCalibrator(n_bins=4).fit(data)
    assert fitted.guarantee_.statement.looked == 0
    expected = BinningCalibrator(n_bins=4, pilot=None).fit(*rows, segments=ROWS["g"].to_numpy())
    assert fitted.tally_.n_rows == expected.tally_.n_rows
    assert fitted.predict([0.2], segments=["north"]) == pytest.approx(
        expected.predict([0.2], segments=["north"])
    )
    with pytest.raises(ValueError, match="same rows each time they are read"):
        BinningCalibrator(n_bins=4, segment_rule=100).fit(data)


@pytest.mark.broad
def test_a_curve_is_that_of_one_table(connection) -> None:
    def make(rows, columns):
        return scored(
            connection.from_arrow(pa.Table.from_pandas(rows, preserve_index=False)), **columns.named
        )

    check_curve(make, made_rows(2000, 3))


@pytest.mark.broad
def test_odd_names_are_quoted(connection) -> None:
    relation = connection.sql('SELECT p AS "a ""b""", y AS "select", g AS "x, y; --" FROM held')
    data = scored(relation, score='a "b"', label="select", segment="x, y; --")
    assert data.sizes() == scored(ROWS, score="p", segment="g").sizes()
    fitted = BinningCalibrator(n_bins=3).fit(data)
    added = fitted.apply(data, prefix='new "')
    assert added.columns[3:] == [f'new "{name}' for name in ("calibrated", "lower", "upper", "set")]
    assert len(added.fetchall()) == 2_000


def test_a_missing_column_is_told_at_once(connection) -> None:
    with pytest.raises(ValueError, match=r"score column 'P' must be in the data.*did you mean 'p'"):
        scored(connection.table("held"), score="P")


def test_no_rows_are_told(connection) -> None:
    relation = connection.sql("SELECT * FROM held WHERE p > 2")
    data = scored(relation, score="p", label="y")
    assert data.sizes() == {None: 0}
    with pytest.raises(ValueError, match="at least one row; got none"):
        rows_of(data).tally(EDGES)


def test_nulls_are_counted_and_placed(connection) -> None:
    relation = connection.sql(
        "SELECT CASE WHEN rowid IN (6, 11) THEN NULL ELSE p END AS p, y FROM held"
    )
    with pytest.raises(
        ValueError, match="no missing values; got 2 faulty rows, the first row index 6"
    ):
        rows_of(scored(relation, score="p", label="y")).tally(EDGES)


def test_after_a_failure_the_connection_can_be_used(connection, monkeypatch) -> None:
    monkeypatch.setattr("calibrant.sample.sources.duckdb.BATCH_ROWS", 100)
    data = scored(connection.sql("SELECT p, g AS y FROM held"), score="p", label="y")

    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    watched = scored(connection.table("held"), score="p", label="y", progress=stop)
    with pytest.raises(KeyboardInterrupt):
        rows_of(watched).tally(EDGES)
    with pytest.raises(TypeError, match="score column 'g' must contain real numbers"):
        rows_of(scored(connection.table("held"), score="g", label="y")).tally(EDGES)
    with pytest.raises(ValueError, match="two classes"):
        rows_of(data).tally(EDGES)
    assert (
        rows_of(scored(connection.table("held"), score="p", label="y")).tally(EDGES)[0] == EXPECTED
    )


def test_a_relation_can_be_read_from_another_thread(connection) -> None:
    data = scored(connection.table("held"), score="p", label="y")
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(rows_of(data).tally(EDGES)[0]))
        for _ in range(2)
    ]
    for thread in threads:  # one after the other: a connection has one result at a time
        thread.start()
        thread.join()
    assert found == [EXPECTED, EXPECTED]


def applied_as_arrow(fitted: BinningCalibrator, relation, **names: str) -> pa.Table:
    return fitted.apply(scored(relation.to_arrow_table(), **names)).read_all()


@pytest.mark.parametrize(
    "parameters", [{"n_bins": 40}, {"partition": EDGES}, {"n_bins": 5, "partition": "uniform"}]
)
@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_sql_adds_what_arrow_adds(connection, parameters, kind) -> None:
    fitted = BinningCalibrator(**parameters).fit(ROWS["p"].to_numpy(), ROWS["y"].to_numpy())
    edges = ", ".join(f"('{edge!r}'::DOUBLE)" for edge in fitted.partition_.edges.tolist())
    odd = (
        "('nan'), ('inf'), ('-inf'), (NULL), ('-0.0'), ('5e-324'), ('1.0'), ('1.0000000000000002'),"
        " ('-1e300')"
    )
    odd = odd if kind == "DOUBLE" else odd.replace("-1e300", "-1e30")
    connection.execute(
        f"CREATE TEMP TABLE odd AS SELECT p::{kind} AS p, 'kept' AS region_0 FROM (SELECT p FROM"
        f" held UNION ALL VALUES {edges} UNION ALL SELECT c::DOUBLE FROM (VALUES {odd}) AS t(c))"
    )
    relation = connection.table("odd")
    got = fitted.apply(scored(relation, score="p"))
    assert isinstance(got, duckdb.DuckDBPyRelation)
    expected = applied_as_arrow(fitted, relation, score="p")
    for _ in range(2):  # a relation can be run again
        table = got.to_arrow_table()
        assert table.column_names == expected.column_names
        for name in ("region_0", "calibrated", "lower", "upper", "set"):
            assert table[name].to_pylist() == expected[name].to_pylist()
    assert 4 <= table["set"].null_count < 20
    assert got.filter("calibrated > 0").aggregate("count(*)").fetchall()[0][0] > 0


ODD = (
    "('nan'), ('inf'), ('-inf'), (NULL), ('-0.0'), ('5e-324'), ('1.0'), ('1.0000000000000002'),"
    " ('-1e30')"
)


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
@pytest.mark.parametrize(
    ("made", "tolerance"),
    [
        (Calibrator(), 0.0),
        (Calibrator("isotonic"), 0.0),
        (IsotonicCalibrator(), 0.0),
        (BlendCalibrator(), 0.0),
        (VennAbersCalibrator(), 0.0),
        (ScalingBinningCalibrator(VennAbersCalibrator(), partition="uniform"), 0.0),
        (PlattCalibrator(), 1e-12),
        (TemperatureCalibrator(), 1e-12),
        (BetaCalibrator(), 1e-12),
    ],
    ids=lambda made: type(made).__name__,
)
def test_sql_adds_curves_as_arrow_adds_them(connection, made, tolerance, kind) -> None:
    """Bit for bit; what needs exp to 1e-12, relatively."""
    fitted = made.fit(ROWS["p"].to_numpy(), ROWS["y"].to_numpy())
    relation = connection.sql(
        f"SELECT p::{kind} AS p FROM (SELECT p FROM held UNION ALL SELECT c::DOUBLE FROM (VALUES"
        f" {ODD}) AS t(c))"
    )
    got = fitted.apply(scored(relation, score="p")).to_arrow_table()
    expected = applied_as_arrow(fitted, relation, score="p")
    assert got.column_names == expected.column_names
    for name in got.column_names[1:]:
        own = got[name].to_pylist()
        other = expected[name].to_pylist()
        assert [value is None for value in own] == [value is None for value in other]
        assert 4 <= got[name].null_count < 20
        if tolerance:
            # logits are cut off at 700, so that 1e-304 stands for 0
            near = expected[name].drop_null()
            np.testing.assert_allclose(got[name].drop_null(), near, rtol=tolerance, atol=1e-300)
        else:
            assert own == other


def test_sql_adds_a_curve_by_segment(connection) -> None:
    scores, labels, groups = (ROWS[name].to_numpy() for name in ("p", "y", "g"))
    fitted = Calibrator(n_bins=3).fit(scores, labels, segments=groups)
    relation = connection.sql(
        "SELECT p, CASE WHEN key = 0 THEN 'new' WHEN key = 1 THEN NULL ELSE g END AS g FROM held"
    )
    got = fitted.apply(scored(relation, score="p", segment="g")).to_arrow_table()
    expected = applied_as_arrow(fitted, relation, score="p", segment="g")
    for name in ("calibrated", "lower", "upper", "set"):
        assert got[name].to_pylist() == expected[name].to_pylist()


@pytest.mark.parametrize("targets", [{"precision": 0.7}, {"precision": 0.7, "npv": 0.7}], ids=len)
@pytest.mark.parametrize("segment", [None, "g"])
def test_sql_adds_thresholds(connection, targets, segment) -> None:
    rng = np.random.default_rng(0)
    y = rng.uniform(size=2_000) < ROWS["p"].to_numpy()
    beside = {} if segment is None else {"segments": ROWS["g"].to_numpy()}
    found = threshold(y, ROWS["p"].to_numpy(), **targets, **beside)
    relation = connection.sql("SELECT p, CASE WHEN key = 0 THEN 'new' ELSE g END AS g FROM held")
    got = found.apply(scored(relation, score="p", segment=segment)).to_arrow_table()
    expected = found.apply(scored(relation.to_arrow_table(), score="p", segment=segment)).read_all()
    assert 0 < sum(got["selected"].to_pylist()) < 2_000
    for name in got.column_names[2:]:
        assert got[name].to_pylist() == expected[name].to_pylist()


def test_what_has_no_table_is_refused(connection) -> None:
    scores = ROWS["p"].to_numpy()
    labels = ROWS["y"].to_numpy()
    calibrator = ScalingBinningCalibrator().fit(scores, labels)
    with pytest.raises(NoTableError) as refused:
        calibrator.apply(scored(connection.table("held"), score="p"))
    assert refused.value.parameter == "calibrator"


@pytest.mark.parametrize("kind", ["VARCHAR", "ENUM('north', 'it''s', 'a \"b\"', 'new')"])
def test_sql_adds_by_segment(connection, kind) -> None:
    scores, labels, groups = (ROWS[name].to_numpy() for name in ("p", "y", "g"))
    fitted = BinningCalibrator(n_bins=4).fit(scores, labels, segments=groups)
    relation = connection.sql(
        f"SELECT p, (CASE WHEN key = 0 THEN 'new' WHEN key = 1 THEN NULL ELSE g END)::{kind} AS g"
        " FROM held"
    )
    got = fitted.apply(scored(relation, score="p", segment="g")).to_arrow_table()
    expected = applied_as_arrow(fitted, relation, score="p", segment="g")
    assert got["set"].null_count == 2
    for name in ("calibrated", "lower", "upper", "set"):
        assert got[name].to_pylist() == expected[name].to_pylist()


@pytest.mark.parametrize(
    "segment", ["key % 3", "(key % 2) = 0", "(key % 3)::DOUBLE / 2", "(key % 3)::HUGEINT"]
)
def test_sql_adds_by_segments_that_are_numbers(connection, segment) -> None:
    relation = connection.sql(f"SELECT p, y, {segment} AS g FROM held")
    fitted = BinningCalibrator(n_bins=3).fit(scored(relation, score="p", label="y", segment="g"))
    got = fitted.apply(scored(relation, score="p", segment="g")).to_arrow_table()
    expected = applied_as_arrow(fitted, relation, score="p", segment="g")
    assert got["calibrated"].null_count == 0
    assert got["calibrated"].to_pylist() == expected["calibrated"].to_pylist()
    text = fitted.apply(scored(connection.table("held"), score="p", segment="g")).to_arrow_table()
    assert text["calibrated"].null_count == 2_000


def test_a_name_that_is_taken_is_refused_in_any_case(connection) -> None:
    fitted = BinningCalibrator(n_bins=3).fit(ROWS["p"].to_numpy(), ROWS["y"].to_numpy())
    data = scored(connection.sql('SELECT p, 1 AS "Lower" FROM held'), score="p")
    with pytest.raises(ValueError, match="column 'lower' must not be in the data already"):
        fitted.apply(data)
    with pytest.raises(TypeError, match="score column 'g' must contain real numbers"):
        fitted.apply(scored(connection.table("held"), score="g"))


def test_columns_that_sql_can_not_add_are_refused(connection) -> None:
    class Other(AddColumns):
        columns = Columns("p")
        names = ("new",)

        def usable(self, scores, segments):
            return np.ones(len(scores), dtype=bool)

        def values(self, scores, segments):
            return [scores]

    with pytest.raises(NoTableError) as refused:
        rows_of(scored(connection.table("held"), score="p")).apply(Other())
    assert refused.value.got == "Other"
