"""Engines, each started once: PostgreSQL and Spark on this machine only, in folders of their own."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from answers import engines
from sample.clusters import stop_spark

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

    programs = engines.postgres_programs()
    # a server refuses to run as root; pytest's own folders are closed to other users
    folder = tempfile.mkdtemp(prefix="pg")
    account = {}
    if os.geteuid() == 0:
        names = {entry.pw_name for entry in pwd.getpwall()}
        user = "postgres" if "postgres" in names else "nobody"
        shutil.chown(folder, user)
        account = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}

    def run(program, *arguments):
        done = subprocess.run(
            [programs / program, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
            **account,
        )
        assert done.returncode == 0, Path(log.name).read_text()

    try:
        with open(os.path.join(folder, "log"), "w") as log:
            run(
                "initdb",
                "-D",
                f"{folder}/data",
                "-U",
                "tester",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-locale",
                "-N",
            )
            options = f"-k {folder} -c listen_addresses= -c fsync=off -c shared_buffers=64MB"
            run(
                "pg_ctl",
                "-D",
                f"{folder}/data",
                "-o",
                options,
                "-l",
                f"{folder}/data/server.log",
                "-w",
                "start",
            )
            try:
                with psycopg.connect(
                    host=folder, user="tester", dbname="postgres", autocommit=True
                ) as connection:
                    yield engines.Postgres(connection)
            finally:
                run("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(
    scope="package"
)  # a process has one session, and tests of other packages have theirs on a cluster
def spark(tmp_path_factory):
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        engines.missing("Java")
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
