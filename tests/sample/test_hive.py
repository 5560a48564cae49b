"""Folders called key=value: their keys are columns, as other readers of such folders have them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

from calibrant import BinningCalibrator, scored
from calibrant.cli._app import app
from calibrant.errors import InvalidValueError
from calibrant.sample.reader import rows_of

KEYS = pa.schema([("month", pa.int64()), ("region", pa.string())])


def table(n_rows: int = 3_000) -> pa.Table:
    generator = np.random.default_rng(0)
    scores = generator.uniform(size=n_rows)
    place = np.arange(n_rows)
    rate = np.where(place < n_rows // 2, scores, scores**3)
    return pa.table(
        {
            "amount": generator.normal(size=n_rows),
            "score": scores,
            "label": (generator.uniform(size=n_rows) < rate).astype(np.int64),
            "month": place // 300 + 1,
            "region": generator.choice(["north", "south/east"], size=n_rows),
        }
    )


@pytest.fixture(params=["parquet", "csv", "ipc"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    how = {
        "basename_template": f"part-{{i}}.{'arrow' if request.param == 'ipc' else request.param}"
    }
    hive = ds.partitioning(KEYS, flavor="hive")
    ds.write_dataset(table(), "sales", format=request.param, partitioning=hive, **how)
    return Path("sales")


def calibrant(*arguments: Any) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def test_keys_are_segments_as_if_they_were_columns(folder: Path) -> None:
    whole = table()
    partition = partition_of(np.array(whole["region"].to_pylist()))
    expected = rows_of(scored(whole, score="score", label="label", segment="region")).tally(
        partition
    )[0]
    found = rows_of(scored(folder, score="score", label="label", segment="region")).tally(
        partition
    )[0]
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(found.positives, expected.positives)


def partition_of(segments: np.ndarray) -> Any:
    """Four bins in each segment."""
    scores = np.linspace(0, 1, segments.size)
    return (
        BinningCalibrator(4, pilot=None)
        .fit(scores, np.arange(segments.size) % 2, segments=segments)
        .partition_
    )


def test_the_time_of_check_is_a_key(folder: Path) -> None:
    found = calibrant("check", folder, "--time", "month").stdout
    assert "the rate at the same score has changed" in " ".join(found.lower().split())


@pytest.mark.parametrize("output", ["out.parquet", "out.csv"])
def test_apply_keeps_keys(output: str, folder: Path) -> None:
    calibrant("fit", folder, "--segment", "region", "-o", "model.json")
    calibrant("apply", "model.json", folder, "-o", output)
    found = ds.dataset(output, format=output.split(".")[1]).to_table()
    assert found.num_rows == 3_000
    assert found.column_names[:5] == ["amount", "score", "label", "month", "region"]
    counted = found.group_by(["month", "region"]).aggregate([([], "count_all")]).to_pylist()
    expected = table().group_by(["month", "region"]).aggregate([([], "count_all")]).to_pylist()
    assert sorted(map(repr, counted)) == sorted(map(repr, expected))
    calibrant("verify", "model.json", folder)


def test_a_single_file_and_a_glob_have_keys_too(folder: Path) -> None:
    calibrant("fit", folder, "-o", "model.json")
    for source in (next(folder.glob("month=7/*/*")), "sales/month=7/*/*"):
        calibrant("apply", "model.json", source, "-o", "one.parquet", "--overwrite")
        assert set(ds.dataset("one.parquet").to_table()["month"].to_pylist()) == {7}


def test_a_column_of_the_file_comes_before_a_folder(tmp_path: Path) -> None:
    place = tmp_path / "month=1"
    place.mkdir()
    (place / "a.csv").write_text("score,label,month\n0.1,0,5\n0.9,1,6\n")
    data = scored(tmp_path, score="score", label="label", segment="month")
    assert set(rows_of(data.collect()).segment_names) == {5, 6}


def test_what_folders_can_hold(tmp_path: Path) -> None:
    for folder in ("day=2024-01-31/key=__HIVE_DEFAULT_PARTITION__", "day=a%2Fb/key=007"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.csv").write_text("score,label\n0.1,0\n0.9,1\n")
    data = scored(tmp_path, score="score", label="label", segment="day")
    assert set(rows_of(data.collect()).segment_names) == {"2024-01-31", "a/b"}
    with pytest.raises(InvalidValueError) as refused:
        scored(tmp_path, score="score", label="label", segment="key").collect()
    assert refused.value.column == "key"  # one is missing


def test_files_under_other_keys_are_refused(tmp_path: Path) -> None:
    for folder in ("month=1", "year=2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.csv").write_text("score,label\n0.1,0\n0.9,1\n")
    with pytest.raises(InvalidValueError) as refused:
        scored(tmp_path, score="score", label="label")
    assert refused.value.parameter == "the files"
