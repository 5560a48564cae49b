"""Engines, each started once: PostgreSQL and Spark on this machine only, in folders of their own."""

import os
import shutil

import pytest

from answers import engines
from sample.clusters import stop_spark
from worlds.postgres_server import missing, postgres_server

SPARK = pytest.param("spark", marks=pytest.mark.slow)
DATABASES = ("sqlite", "duckdb", "postgres", SPARK)


@pytest.fixture(scope="session")
def sqlite():
    engine = engines.Sqlite()
    yield engine
    engine.connection.close()


@pytest.fixture(scope="session")
def duckdb():
    engine = engines.DuckDB()
    yield engine
    engine.connection.close()


@pytest.fixture(scope="session")
def postgres():
    import psycopg

    with (
        postgres_server() as folder,
        psycopg.connect(
            host=folder, user="tester", dbname="postgres", autocommit=True
        ) as connection,
    ):
        yield engines.Postgres(connection)


@pytest.fixture(
    scope="package"
)  # a process has one session, and tests of other packages have theirs on a cluster
def spark(tmp_path_factory):
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        missing("Java")
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield engines.Spark(session, folder)
    stop_spark(session)


@pytest.fixture(scope="session")
def onnx():
    return engines.Onnx()


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    return engines.PlainPython(tmp_path_factory.mktemp("python"))


@pytest.fixture(params=[*DATABASES, "onnx", "python"])
def engine(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(params=DATABASES)
def database(request):
    return request.getfixturevalue(request.param)
