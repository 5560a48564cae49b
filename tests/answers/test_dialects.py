"""Numbers, texts and names, written for each engine and read back by it.

And what cannot be read back here.
"""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers import worlds
from calibrant import BinningCalibrator, Calibrator, Partition
from calibrant.errors import CalibrantWarning, InvalidTypeError, InvalidValueError
from calibrant.export import DIALECTS, to_sql
from calibrant.sample.sql.dialects import DIALECTS as SPELLINGS
from calibrant.sample.sql.dialects import comment

LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def doubles(count, seed=0):
    """Doubles of random bits, all exponents alike; subnormal ones, and probabilities."""
    rng = np.random.default_rng(seed)
    any_bits = rng.integers(0, 2**64, size=count, dtype=np.uint64).view(np.float64)
    tiny = rng.integers(0, 2**52, size=count // 10, dtype=np.uint64).view(np.float64)
    values = np.concatenate([any_bits, tiny, -tiny, rng.uniform(size=count // 2), worlds.ANYWHERE])
    return values[np.isfinite(values)]


@pytest.mark.slow
def test_every_double_is_read_back_as_itself(database):
    number = SPELLINGS[database.name].number
    # one in 10,000 that is misread is found with probability 0.95; on Spark, which is slow to
    # parse, one in 4,000
    count = 12_000 if database.name == "spark" else 30_000
    values = doubles(count)
    assert values.size > count
    size = (
        200 if database.name == "sqlite" else 20_000
    )  # SQLite compares every constant with all before it
    for start in range(0, values.size, size):
        batch = values[start : start + size]
        rows = ", ".join(
            f"({place}, {number(value)})" for place, value in enumerate(batch.tolist())
        )
        alias = "" if database.name == "sqlite" else " AS v(i, x)"
        found = dict(database.query(f"SELECT * FROM (VALUES {rows}){alias}"))
        read = np.array([found[place] for place in range(batch.size)])
        assert (read + 0.0).tobytes() == (batch + 0.0).tobytes()


@pytest.mark.broad
def test_sqlite_reads_some_decimals_wrong_and_fractions_never(sqlite):
    """The reason for fractions; where a newer SQLite reads all decimals right they do no harm."""
    values = doubles(2_000)
    number = SPELLINGS["sqlite"].number
    fractions = [sqlite.query(f"SELECT {number(value)}")[0][0] for value in values.tolist()]
    assert fractions == values.tolist()
    if tuple(map(int, sqlite.query("SELECT sqlite_version()")[0][0].split("."))) < (3, 42):
        decimals = [sqlite.query(f"SELECT {value!r}")[0][0] for value in values.tolist()]
        assert decimals != values.tolist()


@given(value=st.floats(allow_nan=False, allow_infinity=False))
@pytest.mark.parametrize("dialect", ["sqlite", "snowflake", "bigquery"])
def test_fractions_are_exact_in_every_step(dialect, value):
    """Each whole number is a double, and each step multiplies or divides by a power of two that
    stays in range.
    """
    text = SPELLINGS[dialect].number(value)
    first, *rest = re.findall(r"-?\d+", text.replace("FLOAT64", ""))
    assert float(int(first)) == int(first)
    assert abs(int(first)) <= 2**53
    result = float(first)
    sign = np.divide if "/" in text else np.multiply
    for factor in map(int, rest):
        assert factor.bit_count() == 1
        assert 1 < factor <= 2**62
        before = result
        result = float(sign(result, float(factor)))
        back = result * factor if "/" in text else result / factor
        assert back == before
    assert result == value


@pytest.mark.parametrize(
    "text", [*worlds.STRANGE_SEGMENTS, "''", "\\'", "\\", "`", "$", "a$b", "\t", "\x01", "日本 𝔘"]
)
def test_texts_are_read_back(database, text):
    assert database.query(f"SELECT {SPELLINGS[database.name].text(text)}") == [(text,)]


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12))
def test_any_text_is_read_back_by_sqlite(text):
    import sqlite3

    connection = sqlite3.connect(":memory:")
    assert connection.execute(f"SELECT {SPELLINGS['sqlite'].text(text)}").fetchone() == (text,)
    name = SPELLINGS["sqlite"].name(text) if text else "`x`"
    assert connection.execute(f"SELECT 1 AS {name}").description[0][0] == (text or "x")
    connection.close()


def test_postgres_texts_hold_whatever_its_setting(postgres):
    text = SPELLINGS["postgres"].text("a\\'b")
    try:
        for setting in ("on", "off"):
            with postgres.connection.cursor() as cursor:
                cursor.execute(f"SET standard_conforming_strings = {setting}")
            assert postgres.query(f"SELECT {text}") == [("a\\'b",)]
    finally:
        with postgres.connection.cursor() as cursor:
            cursor.execute("RESET standard_conforming_strings")


@pytest.mark.parametrize(
    "name", ["Score", "my score", 'a"b', "a`b", "select", "a.b", "ünïcode", "a'b; --", "a\\b"]
)
def test_names_of_columns_and_outputs_are_quoted(database, name):
    calibrator = worlds.fixed_width()
    quoted = SPELLINGS[database.name].name
    expression = to_sql(calibrator, dialect=database.name, score=name, outputs={"calibrated": name})
    literal = SPELLINGS[database.name].number(0.35)
    found = database.query(
        f"SELECT {expression} FROM (SELECT {literal} AS {quoted(name)}) AS source"
    )
    assert found == [(calibrator.predict([0.35])[0],)]


def test_a_column_that_is_not_there_is_an_error(database):
    text = to_sql(worlds.fixed_width(), dialect=database.name, score="nothing_here")
    with pytest.raises(Exception, match="nothing_here"):
        database.query(f"SELECT {text} FROM (SELECT 1 AS x) AS t")


def test_a_table_in_a_schema(duckdb):
    duckdb.query('CREATE SCHEMA IF NOT EXISTS "my schema"')
    duckdb.query('CREATE OR REPLACE TABLE "my schema"."a.b" AS SELECT 0.35 AS "s p"')
    calibrator = worlds.fixed_width()
    text = to_sql(
        calibrator,
        dialect="duckdb",
        table=("my schema", "a.b"),
        score="s p",
        outputs=["calibrated"],
    )
    assert [row[1] for row in duckdb.query(text)] == calibrator.predict([0.35]).tolist()
    assert 'FROM "my schema"."t"' in to_sql(calibrator, dialect="duckdb", table="my schema.t")


@pytest.mark.slow
def test_a_column_named_like_a_variable_of_the_search(spark):
    calibrator = worlds.counted(Partition.fixed_width(300))
    for name in ("_step", "_place", "_step_"):
        text = to_sql(calibrator, dialect="spark", score=name, outputs=["calibrated"])
        assert spark.query(f"SELECT {text} FROM (SELECT 0.7312D AS `{name}`)") == [
            (calibrator.predict([0.7312])[0],)
        ]


def test_expressions_can_be_qualified(sqlite):
    calibrator = worlds.fixed_width()
    expression = to_sql(calibrator, dialect="sqlite", score=("a", "score"), outputs=["calibrated"])
    found = sqlite.query(
        f"SELECT {expression} FROM (SELECT 0.5 AS score) a, (SELECT 0.1 AS score) b"
    )
    assert found == [(calibrator.predict([0.5])[0],)]


def test_sqlite_takes_no_text_for_a_score(sqlite):
    calibrator = worlds.fixed_width()
    expression = to_sql(calibrator, dialect="sqlite", outputs=["calibrated"])
    found = sqlite.query(
        f"SELECT {expression} FROM (SELECT '0.35' AS score UNION ALL SELECT x'35' UNION ALL"
        " SELECT 1)"
    )
    assert [value for (value,) in found] == [None, None, calibrator.predict([1.0])[0]]


@pytest.mark.parametrize(
    ("engine", "column"),
    [
        ("sqlite", "(SELECT 0.5 AS score, x AS segment FROM caseless)"),
        ("duckdb", "(SELECT 0.5 AS score, x AS segment FROM caseless)"),
        ("postgres", "(SELECT 0.5 AS score, x AS segment FROM caseless)"),
    ],
)
def test_collations_do_not_confuse_segments(engine, column, request):
    database = request.getfixturevalue(engine)
    kinds = {
        "sqlite": "TEXT COLLATE NOCASE",
        "duckdb": "VARCHAR COLLATE NOCASE",
        "postgres": "text COLLATE caseless",
    }
    run = database.query if engine != "postgres" else lambda text: database.connection.execute(text)
    if engine == "postgres":
        run(
            "CREATE COLLATION caseless (provider = icu, deterministic = false, locale ="
            " 'und-u-ks-level2')"
        )
    run(f"CREATE TABLE caseless (x {kinds[engine]})")
    run("INSERT INTO caseless VALUES ('North'), ('north'), ('NORTH')")
    assert database.query("SELECT count(*) FROM caseless WHERE x = 'north'") == [(3,)]
    calibrator = worlds.counted(
        Partition.by_segment({"north": Partition.fixed_width(2), "North": Partition.fixed_width(1)})
    )
    expression = to_sql(calibrator, dialect=engine, segment="segment", outputs=["region"])
    found = database.query(f"SELECT {expression} FROM {column} AS s ORDER BY 1")
    assert sorted(value for (value,) in found if value is not None) == [1, 2]
    assert (None,) in found


def test_enumerated_segments(duckdb, postgres):
    calibrator = worlds.counted(
        Partition.by_segment({"a": Partition.fixed_width(2), "b": Partition.fixed_width(1)})
    )
    postgres.connection.execute("CREATE TYPE letter AS ENUM ('a', 'b')")
    for database, column in (
        (duckdb, "CAST('b' AS ENUM ('a', 'b'))"),
        (postgres, "CAST('b' AS letter)"),
    ):
        text = to_sql(calibrator, dialect=database.name, segment="segment", outputs=["region"])
        assert database.query(
            f"SELECT {text} FROM (SELECT 0.5 AS score, {column} AS segment) AS s"
        ) == [(2,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["sqlite", "duckdb", "postgres"]
)  # Spark compiles each WHEN, which takes minutes
def test_hundreds_of_segments(name, request):
    database = request.getfixturevalue(name)
    parts = {f"s{number}": Partition.fixed_width(1) for number in range(300)}
    calibrator = worlds.counted(Partition.by_segment(parts))
    rows = pa.table({"id": [0, 1], "score": [0.5, 0.5], "segment": ["s299", "s0"]})
    found = database.evaluate(calibrator, rows)
    assert found["region"] == [299, 0]
    assert found["calibrated"] == calibrator.predict([0.5, 0.5], segments=["s299", "s0"]).tolist()


@given(text=st.text())
def test_a_comment_is_one_line_that_no_tool_reads(text):
    line = comment(text)
    assert len(line.splitlines()) <= 1
    assert not set(line) & set(";${}\\`\0" + LINE_BREAKS)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_header_is_made_of_comments(dialect):
    calibrator = worlds.text_labels()
    text = to_sql(calibrator, dialect=dialect)
    header, _, body = text.partition("CASE ")
    assert all(line.startswith("-- ") for line in header.splitlines())
    assert calibrator.partition_.fingerprint in header
    assert "90%\n-- confidence, all ranges together" in header
    assert "late" not in body.replace(SPELLINGS[dialect].text("{late; '--\n*/}"), "").replace(
        SPELLINGS[dialect].text(str(calibrator.classes_[0])), ""
    ).replace(SPELLINGS[dialect].text(f"{{{', '.join(calibrator.classes_)}}}"), "")


def test_the_text_for_snowflake():
    parts = {"it's": Partition.from_edges([0.5]), "b\\": Partition.fixed_width(1)}
    text = to_sql(
        worlds.counted(Partition.by_segment(parts)),
        dialect="snowflake",
        table="db.public.Scores",
        segment="Segment",
        outputs=["region", "set"],
    )
    body = [line for line in text.splitlines() if not line.startswith("--")]
    assert body[:16] == [
        "SELECT",
        '  "T".*,',
        '  CASE COLLATE("T"."Segment", \'\')',
        "  WHEN 'it\\'s' THEN",
        (
            '    CASE WHEN CAST("T"."SCORE" AS DOUBLE) > CAST(\'-inf\' AS DOUBLE) AND '
            'CAST("T"."SCORE" AS DOUBLE) < CAST(\'inf\' AS DOUBLE) THEN'
        ),
        '      CASE WHEN CAST("T"."SCORE" AS DOUBLE) < (CAST(1 AS DOUBLE) / 2) THEN',
        "        0",
        "      ELSE",
        "        1",
        "      END",
        "    END",
        "  WHEN 'b\\\\' THEN",
        (
            '    CASE WHEN CAST("T"."SCORE" AS DOUBLE) >= CAST(0 AS DOUBLE) AND '
            'CAST("T"."SCORE" AS DOUBLE) <= CAST(1 AS DOUBLE) THEN'
        ),
        "      2",
        "    END",
        '  END AS "REGION",',
    ]
    assert body[-2:] == ['  END AS "SET"', 'FROM "DB"."PUBLIC"."Scores" AS "T"']


def test_the_text_for_bigquery():
    parts = {True: Partition.from_edges([0.1]), False: Partition.fixed_width(1)}
    text = to_sql(
        worlds.counted(Partition.by_segment(parts)),
        dialect="bigquery",
        table=("project-x", "d", "t`t"),
        segment="is_new",
        outputs={"region": "r", "set": "s"},
    )
    body = [line for line in text.splitlines() if not line.startswith("--")]
    assert body[:12] == [
        "SELECT",
        "  `t`.*,",
        "  CASE `t`.`is_new`",
        "  WHEN TRUE THEN",
        (
            "    CASE WHEN CAST(`t`.`score` AS FLOAT64) > CAST('-inf' AS FLOAT64) AND "
            "CAST(`t`.`score` AS FLOAT64) < CAST('inf' AS FLOAT64) THEN"
        ),
        (
            "      CASE WHEN CAST(`t`.`score` AS FLOAT64) < (CAST(3602879701896397 AS FLOAT64) /"
            " 36028797018963968) THEN"
        ),
        "        0",
        "      ELSE",
        "        1",
        "      END",
        "    END",
        "  WHEN FALSE THEN",
    ]
    assert body[-2:] == ["  END AS `s`", "FROM `project-x`.`d`.`t\\`t` AS `t`"]
    assert SPELLINGS["bigquery"].text("a'b\n$\\") == "'a\\'b\\u000a\\u0024\\\\'"


def test_snowflake_names_fold_as_snowflake_folds_them():
    name = SPELLINGS["snowflake"].name
    assert [
        name("score"),
        name("Score"),
        name("SCORE"),
        name("my score"),
        name("1a"),
        name('a"b'),
    ] == [
        '"SCORE"',
        '"Score"',
        '"SCORE"',
        '"my score"',
        '"1a"',
        '"a""b"',
    ]


@pytest.fixture(scope="module")
def large_model():
    """The default model of 500,000 rows, whose comparisons have 0.5 to 1.4 MB."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=500_000)
    return Calibrator().fit(scores, rng.uniform(size=scores.size) < scores**2)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_long_statement_is_a_join_by_default(dialect, large_model):
    """Warehouses take 1 MB; a join of the same model has a quarter of that."""
    nested = to_sql(large_model, dialect=dialect, table="scores", search="case")
    found = to_sql(large_model, dialect=dialect, table="scores")
    assert len(nested.encode()) > 4 * len(found.encode())
    assert len(found.encode()) < 250_000
    assert found == to_sql(large_model, dialect=dialect, table="scores", search="join")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_short_statement_has_comparisons_by_default(dialect):
    text = to_sql(worlds.fixed_width(), dialect=dialect, table="scores")
    assert " JOIN " not in text
    assert text == to_sql(worlds.fixed_width(), dialect=dialect, table="scores", search="case")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_default_joins_above_100_kb_and_not_below(dialect, monkeypatch):
    calibrator = worlds.fixed_width()
    nested = to_sql(calibrator, dialect=dialect, table="scores", search="case")
    monkeypatch.setattr("calibrant.answers.sql.LONG_TEXT", len(nested.encode()))
    assert to_sql(calibrator, dialect=dialect, table="scores") == nested
    monkeypatch.setattr("calibrant.answers.sql.LONG_TEXT", len(nested.encode()) - 1)
    assert " JOIN " in to_sql(calibrator, dialect=dialect, table="scores")


def test_the_default_of_a_large_model_gives_what_predict_gives(database, large_model):
    scores = np.random.default_rng(1).uniform(size=500)
    rows = pa.table({"id": np.arange(scores.size), "score": scores})
    found = database.evaluate(large_model, rows, search="auto")
    limits = large_model.predict_interval(scores)
    assert found["calibrated"] == large_model.predict(scores).tolist()
    assert found["lower"] == limits[:, 0].tolist()
    assert found["upper"] == limits[:, 1].tolist()


def test_expressions_too_long_for_a_warehouse_say_so(large_model):
    with pytest.warns(CalibrantWarning, match="at most 1 MB: name the table"):
        text = to_sql(large_model, dialect="snowflake")
    assert " JOIN " not in text
    with pytest.raises(InvalidValueError, match="without a table to join with"):
        to_sql(large_model, dialect="snowflake", search="join")


def test_what_is_refused():
    plain = worlds.fixed_width()
    grouped = worlds.by_number()
    with pytest.raises(InvalidValueError, match="dialect"):
        to_sql(plain, dialect="mysql")
    with pytest.raises(InvalidTypeError, match="segment must name a column"):
        to_sql(grouped, dialect="duckdb")
    with pytest.raises(InvalidTypeError, match="segment must be None"):
        to_sql(plain, dialect="duckdb", segment="s")
    with pytest.raises(InvalidValueError, match="score must be a name"):
        to_sql(plain, dialect="duckdb", score="")
    with pytest.raises(InvalidValueError, match="table must be a name"):
        to_sql(plain, dialect="duckdb", table="a..b")
    with pytest.raises(InvalidValueError, match="NUL"):
        to_sql(plain, dialect="duckdb", score="a\0b")
    with pytest.raises(InvalidValueError, match="Spark replaces"):
        to_sql(plain, dialect="spark", score="${env:HOME}")
    named = BinningCalibrator(2, pos_label="b\0c").fit(
        [0.1, 0.2, 0.3, 0.4], ["a", "b\0c", "a", "b\0c"]
    )
    with pytest.raises(InvalidValueError, match="NUL"):
        to_sql(named, dialect="sqlite")
