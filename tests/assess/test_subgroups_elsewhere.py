"""Subgroups of rows in files and engines: the same answers from counts."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibrant import audit, scored
from calibrant.assess.subgroups import audit_attributes as elsewhere
from calibrant.errors import InvalidValueError
from calibrant.sample.cross_counts import half_of
from worlds.subgroups import planted

NAMES = ["sex", "smoker", "age", "gain"]
N_ROWS = 6_000


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rows = planted(np.random.default_rng(0), N_ROWS, 0.2)
    return pd.DataFrame({**rows.attributes, "p": rows.scores, "y": rows.y})


@pytest.fixture
def few_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "MOST_IN_MEMORY", 3_000)


def source(kind: str, frame: pd.DataFrame, folder: Path) -> Any:
    if kind == "duckdb":
        return pytest.importorskip("duckdb").from_df(frame)
    if kind == "polars":
        return pytest.importorskip("polars").from_pandas(frame).lazy()
    for number in range(3):
        part = frame.iloc[number * 2_000 : (number + 1) * 2_000]
        if kind == "parquet":
            part.to_parquet(folder / f"{number}.parquet")
        else:
            part.to_csv(folder / f"{number}.csv", index=False)
    return str(folder)


@pytest.mark.parametrize("kind", ["duckdb", "polars", "parquet", "csv"])
def test_counts_give_what_rows_give(
    kind: str, frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    data = scored(source(kind, frame, tmp_path), score="p", label="y", progress=False)
    near = audit(frame["y"], frame["p"], attributes=frame[NAMES]).by_attributes
    monkeypatch.setattr(elsewhere, "MOST_IN_MEMORY", N_ROWS - 1)
    monkeypatch.setattr(elsewhere.Draw, "of_share", lambda key, share: None)
    # all rows cut the numbers, as in memory
    far = audit(data, attributes=NAMES).by_attributes
    assert near is not None
    assert far is not None
    assert far.table.subgroup == near.table.subgroup
    assert far.table.n_rows.tolist() == near.table.n_rows.tolist()
    np.testing.assert_allclose(far.table.rate, near.table.rate)
    np.testing.assert_allclose(far.table.lower, near.table.lower, rtol=1e-6)
    np.testing.assert_allclose(far.table.upper, near.table.upper, rtol=1e-6)
    assert far.upper_bound == pytest.approx(near.upper_bound, rel=1e-6)
    assert far.findings[0].subgroup == near.findings[0].subgroup == "smoker = True, gain = 0"
    assert 0.05 < far.findings[0].error < 0.2


@pytest.mark.usefixtures("few_in_memory")
def test_a_draw_tests_whether_any_is_off_and_that_is_said(frame: pd.DataFrame, tmp_path: Path):
    found = audit(
        scored(source("parquet", frame, tmp_path), score="p", label="y"), attributes=NAMES
    ).by_attributes
    assert found is not None
    assert found.n_rows == N_ROWS
    assert 2_500 < found.n_tested < 3_500
    assert any("drawn at random" in note for note in found.notes)
    assert found.findings[0].subgroup == "smoker = True, gain = 0"


@pytest.mark.usefixtures("few_in_memory")
def test_scores_beyond_probabilities_are_refused(frame: pd.DataFrame, tmp_path: Path):
    moved = source("parquet", frame.assign(p=frame["p"] + 0.5), tmp_path)
    data = scored(moved, score="p", label="y")
    with pytest.raises(InvalidValueError):
        audit(data, attributes=NAMES)


def test_no_attributes_are_refused_wherever_rows_are(frame: pd.DataFrame):
    data = scored(frame, score="p", label="y")
    with pytest.raises(InvalidValueError, match="at least one column"):
        audit(data, attributes=[])


def test_half_of_the_rows_is_a_function_of_scores_and_attributes_and_about_half():
    rng = np.random.default_rng(0)
    scores = rng.random(20_000)
    code = rng.integers(0, 4, 20_000)
    half = half_of(scores, code)
    assert np.array_equal(half, half_of(scores, code))
    assert abs(half.mean() - 0.5) < 0.02
    assert abs(half[code == 1].mean() - 0.5) < 0.03
