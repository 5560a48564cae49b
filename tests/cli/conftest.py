import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from calibrant.cli._app import app


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str
    output: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def calibrant() -> Callable[..., Answer]:
    """Run the command line in this process, as a shell would."""

    def run(*arguments: str, stdin: bytes | None = None) -> Answer:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr, result.stdout_bytes)

    return run


def scores_table(n_rows: int = 4000, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n_rows)
    return pa.table(
        {
            "id": [f"r{row:06d}" for row in range(n_rows)],
            "p": scores,
            "y": (rng.uniform(size=n_rows) < scores**2).astype(np.int64),
            "region": rng.choice(["north", "south"], size=n_rows),
            "w": 2 * scores,
            "note": rng.choice(["", "1.10", "007", 'a "b", c', "line\nbreak"], size=n_rows),
        }
    )


@pytest.fixture(scope="session")
def table() -> pa.Table:
    return scores_table()


def write_csv(table: pa.Table, path: Path, delimiter: str = ",") -> Path:
    import csv

    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(table.column_names)
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            writer.writerow([repr(value) if isinstance(value, float) else value for value in row])
    return path


@pytest.fixture(scope="session")
def originals(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, calibrant: Callable[..., Answer]
) -> Path:
    """The same scores as CSV and as Parquet, and a model of them: written once, copied for each
    test.
    """
    folder = tmp_path_factory.mktemp("originals")
    write_csv(table, folder / "scores.csv")
    pq.write_table(table, folder / "scores.parquet", row_group_size=700)
    with contextlib.chdir(folder):
        answer = calibrant(
            "fit", "scores.csv", "--score", "p", "--label", "y", "--bins", "8", "-o", "model.json"
        )
    assert answer.code == 0, answer.err
    return folder


@pytest.fixture
def folder(tmp_path: Path, originals: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the scores, in which commands are run."""
    for name in ("scores.csv", "scores.parquet"):
        shutil.copy(originals / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder: Path, originals: Path) -> Path:
    return Path(shutil.copy(originals / "model.json", folder))
