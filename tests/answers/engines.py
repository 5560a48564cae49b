"""Real engines that evaluate an export: each takes a table of scores and returns the columns that
were asked for.
"""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from calibrant.export import OUTPUTS, to_onnx, to_python, to_sql

POSTGRES_TYPES = {
    pa.float64(): "float8",
    pa.float32(): "float4",
    pa.string(): "text",
    pa.int64(): "int8",
    pa.bool_(): "bool",
}


def statement(calibrator, dialect, rows, table="scores", **options):
    """Nested comparisons unless a search is given: "auto" would join where they are long."""
    segment = "segment" if "segment" in rows.column_names else None
    options = {"search": "case", **options}
    return to_sql(
        calibrator, dialect=dialect, table=table, segment=segment, outputs=OUTPUTS, **options
    )


def as_columns(records):
    """Columns of lists from records whose last entries are the outputs."""
    records = list(records)
    return {
        name: [record[place - len(OUTPUTS)] for record in records]
        for place, name in enumerate(OUTPUTS)
    }


class Sqlite:
    name = "sqlite"

    def __init__(self):
        self.connection = sqlite3.connect(":memory:")

    def load(self, rows):
        names = rows.column_names
        self.connection.execute("DROP TABLE IF EXISTS scores")
        self.connection.execute(f"CREATE TABLE scores ({', '.join(names)})")
        columns = [rows[name].to_pylist() for name in names]
        marks = ", ".join("?" for _ in names)
        self.connection.executemany(
            f"INSERT INTO scores VALUES ({marks})", zip(*columns, strict=True)
        )

    def query(self, text):
        return self.connection.execute(text).fetchall()

    def evaluate(self, calibrator, rows, **options):
        self.load(rows)
        return as_columns(
            self.query(statement(calibrator, "sqlite", rows, **options) + " ORDER BY id")
        )


class DuckDB:
    name = "duckdb"

    def __init__(self):
        import duckdb

        self.connection = duckdb.connect(":memory:", config={"threads": 2})

    def query(self, text):
        with (
            self.connection.cursor() as cursor
        ):  # a connection takes no second query before the first is read
            return cursor.execute(text).fetchall()

    def evaluate(self, calibrator, rows, **options):
        with self.connection.cursor() as cursor:
            cursor.register("arrow_rows", rows)
            cursor.execute("CREATE OR REPLACE TABLE scores AS SELECT * FROM arrow_rows").fetchall()
        with self.connection.cursor() as cursor:
            found = cursor.sql(
                statement(calibrator, "duckdb", rows, **options) + " ORDER BY id"
            ).to_arrow_table()
        assert [found.schema.field(name).type for name in OUTPUTS[:3]] == [pa.float64()] * 3
        return {name: found[name].to_pylist() for name in OUTPUTS}


class Postgres:
    name = "postgres"

    def __init__(self, connection):
        self.connection = connection

    def load(self, rows):
        types = [POSTGRES_TYPES[field.type] for field in rows.schema]
        columns = ", ".join(
            f"{name} {kind}" for name, kind in zip(rows.column_names, types, strict=True)
        )
        with self.connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS scores")
            cursor.execute(f"CREATE TABLE scores ({columns})")
            with cursor.copy("COPY scores FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(types)
                for record in zip(
                    *(rows[name].to_pylist() for name in rows.column_names), strict=True
                ):
                    copy.write_row(record)

    def query(self, text):
        with self.connection.cursor(binary=True) as cursor:
            return cursor.execute(text).fetchall()

    def evaluate(self, calibrator, rows, **options):
        self.load(rows)
        records = self.query(statement(calibrator, "postgres", rows, **options) + " ORDER BY id")
        assert isinstance(records[0][-1], str | None)
        return as_columns(records)


class Spark:
    name = "spark"

    def __init__(self, session, folder):
        self.session = session
        self.folder = folder

    def query(self, text):
        return [tuple(row) for row in self.session.sql(text).collect()]

    def evaluate(self, calibrator, rows, **options):
        import pyarrow.parquet

        path = self.folder / "scores.parquet"
        pyarrow.parquet.write_table(rows, path)
        self.session.read.parquet(str(path)).createOrReplaceTempView("scores")
        found = self.session.sql(
            statement(calibrator, "spark", rows, **options) + " ORDER BY id"
        ).toArrow()
        assert [found.schema.field(name).type for name in OUTPUTS[:3]] == [pa.float64()] * 3
        return {name: found[name].to_pylist() for name in OUTPUTS}


class Onnx:
    name = "onnx"

    def evaluate(self, calibrator, rows):
        """NULL is NaN to a model; a row without a segment cannot be asked for."""
        import onnxruntime

        narrow = rows["score"].type == pa.float32()
        model = to_onnx(calibrator, outputs=OUTPUTS, input_type="float" if narrow else "double")
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        scores = [np.nan if score is None else score for score in rows["score"].to_pylist()]
        feed = {"score": np.array(scores, dtype=np.float32 if narrow else np.float64)}
        if "segment" in rows.column_names:
            segments = rows["segment"].to_pylist()
            kind = object if rows["segment"].type == pa.string() else np.int64
            feed["segment"] = np.array(["\0none" if s is None else s for s in segments], dtype=kind)
        found = dict(zip(OUTPUTS, session.run(None, feed), strict=True))
        labels = calibrator.classes_.tolist()
        regions = found["region"].tolist()
        assert (found["set"].any(axis=1) == (found["region"] >= 0)).all()
        columns = {
            name: [
                value if region >= 0 else nothing(value)
                for value, region in zip(found[name].tolist(), regions)  # noqa: B905
            ]
            for name in OUTPUTS[:3]
        }
        columns["region"] = [region if region >= 0 else None for region in regions]
        columns["set"] = [
            set_text(labels, row) if any(row) else None for row in found["set"].tolist()
        ]
        return columns


def nothing(value):
    assert np.isnan(value)


def set_text(labels, row):
    return (
        "{"
        + ", ".join(str(label) for label, inside in zip(labels, row, strict=True) if inside)
        + "}"
    )


class PlainPython:
    name = "python"

    def __init__(self, folder):
        self.folder = folder

    def evaluate(self, calibrator, rows):
        """In a Python of its own, without site-packages.

        Scores travel as the hexadecimal form of doubles.
        """
        source = Path(self.folder, "exported.py")
        source.write_text(to_python(calibrator, outputs=OUTPUTS), encoding="utf-8")
        scores = [
            None if score is None else float(score).hex() for score in rows["score"].to_pylist()
        ]
        arguments = [
            scores,
            *([rows["segment"].to_pylist()] if "segment" in rows.column_names else []),
        ]
        Path(self.folder, "arguments.json").write_text(json.dumps(arguments))
        program = (
            "import json, sys\nspace = {}\nexec(open('exported.py', encoding='utf-8').read(),"
            " space)\nscores, *segments = json.load(open('arguments.json'))\nscores = [None if s is"
            " None else float.fromhex(s) for s in scores]\nfound = [space['calibrate'](*row) for"
            " row in zip(scores, *segments)]\nassert 'numpy' not in sys.modules and 'calibrant' not"
            " in sys.modules\njson.dump([[row[k] if k == 'set' or row[k] is None else"
            " float(row[k]).hex() for k in row] for row in found], sys.stdout)\n"
        )
        command = [sys.executable, "-I", "-S", "-c", program]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        columns = as_columns(json.loads(done.stdout))
        for name in OUTPUTS[:4]:
            columns[name] = [
                None if value is None else float.fromhex(value) for value in columns[name]
            ]
        columns["set"] = [
            None if s is None else "{" + ", ".join(map(str, s)) + "}" for s in columns["set"]
        ]
        return columns
