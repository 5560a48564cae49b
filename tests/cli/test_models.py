"""`calibrant compare-models` and `calibrant audit --full`: the numbers of Python, and clear errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import ClassWiseCalibrator, compare_models, save_model
from calibrant.text.numbers import limits

COLUMNS = ("--score", "new", "--score", "old", "--label", "y")


@pytest.fixture
def rows(folder: Path) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    rate = rng.uniform(size=3_000)
    found = {
        "new": rate,
        "old": 0.25 + 0.5 * rate,
        "y": (rng.uniform(size=3_000) < rate).astype(int),
    }
    pq.write_table(pa.table(found), folder / "two.parquet")
    return found


def test_the_numbers_are_those_of_python(rows: dict[str, np.ndarray], calibrant: Any) -> None:
    found = calibrant("compare-models", "two.parquet", *COLUMNS, "--json").json
    expected = compare_models(
        rows["y"], {name: rows[name] for name in ("new", "old")}, random_state=0
    )
    assert found["differences"] == expected.to_dict()["differences"]
    assert found["n_rows"] == 3_000
    told = calibrant("compare-models", "two.parquet", *COLUMNS, "--details").out
    of_brier = found["differences"][0]
    by = limits(-of_brier["upper"], -of_brier["lower"])
    assert " ".join(told.split()).startswith(
        "OK 'new' is better than 'old': its Brier score is lower by"
        f" {by} (95% confidence, 3,000 rows"
    )
    assert "All exact limits hold together." in told
    assert "asymptotic" in told
    assert "nan" not in told.lower().replace("names", "")
    assert "The verdict is based on the losses, not on AUC" in " ".join(told.split())


def test_a_sample_has_the_same_rows_for_all_models(
    rows: dict[str, np.ndarray], calibrant: Any
) -> None:
    found = calibrant(
        "compare-models", "two.parquet", *COLUMNS, "--most-rows", "500", "--json"
    ).json
    assert found["best"] is None or found["best"] == "new"
    assert 400 < found["n_rows"] < 600
    brier = {one["model"]: one["brier"] for one in found["models"]}
    assert brier["new"] < 0.2  # rows of another sample than the labels would make it 1/3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--score", "new", "--label", "y"),
            "--score must be given once for each of at least two models; got only 'new'",
        ),
        (
            ("--score", "new", "--score", "new", "--label", "y"),
            "--score must name different columns",
        ),
        (
            ("--score", "new", "--score", "y", "--label", "y"),
            "--score and --label must be different columns",
        ),
        (
            ("--score", "new", "--score", "nix", "--label", "y"),
            "score column 'nix' must be in the data",
        ),
    ],
    ids=["one", "repeated", "label", "unknown"],
)
@pytest.mark.usefixtures("rows")
def test_wrong_options_are_told(options: tuple[str, ...], message: str, calibrant: Any) -> None:
    answer = calibrant("compare-models", "two.parquet", *options)
    assert answer.code == 2
    assert message in answer.err


@pytest.mark.broad
def test_audit_adds_the_table_of_validators(folder: Path, calibrant: Any) -> None:
    columns = ("scores.csv", "--score", "p", "--label", "y")
    told = calibrant(
        "audit", *columns, "--full", "--grade", "region", "--details", "-o", "full.html"
    )
    assert "expected / observed" in told.out
    assert "north" in told.out
    assert "Validation table" in Path("full.html").read_text()
    found = calibrant("audit", *columns, "--full", "--json").json["validation"]
    assert found["p_value"] == 0.001
    assert found["grades"] is None
    assert calibrant("audit", *columns, "--json").json["validation"] is None
    assert (
        "--grade must be used with --full" in calibrant("audit", *columns, "--grade", "region").err
    )


def test_a_model_of_several_classes_is_for_python(calibrant: Any, tmp_path: Path) -> None:
    scores = np.random.default_rng(0).dirichlet([1, 1, 1], 300)
    fitted = ClassWiseCalibrator(n_bins=2).fit(scores, scores.argmax(axis=1))
    path = tmp_path / "model.json"
    save_model(fitted, path)
    data = tmp_path / "data.csv"
    data.write_text("p\n0.5\n", "utf-8")
    applied = ("apply", path, data, "--score", "p", "-o", tmp_path / "out.csv")
    for command in (applied, ("export", path, "--to", "python")):
        answer = calibrant(*command)
        assert answer.code == 2
        assert "ClassWiseCalibrator of 3 classes" in answer.err
        assert "load_model" in answer.err
