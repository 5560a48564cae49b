"""The walks of ARCHITECTURE.md: each function that it names is met, and in its order."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant
from calibrant import Calibrator, OnlineCalibrator, scored

ROOT = Path(__file__).parents[2]
PACKAGE = Path(calibrant.__file__).parent
STEP = re.compile(r"^\d+\. `(?P<file>[^`]+\.py)`: `(?P<function>[^`]+)`", re.MULTILINE)
# two of them count the cells that a monitor compares, and one solves the programme of a curve
MODULES_OF_A_DEFAULT_FIT = 40
RNG = np.random.default_rng(0)
SCORES = RNG.random(4_000)
Y = (RNG.random(4_000) < SCORES).astype(int)


def _fit_arrays(folder: Path) -> None:
    Calibrator().fit(SCORES, Y)


def _fit_parquet(folder: Path) -> None:
    path = folder / "scores.parquet"
    pq.write_table(pa.table({"s": SCORES, "y": Y}), path)
    Calibrator().fit(scored(path, score="s", label="y"))


def _fit_groups(folder: Path) -> None:
    weights = np.where(SCORES > 0.5, 2.0, 1.0)
    groups = np.arange(SCORES.size) // 5
    Calibrator().fit(SCORES, Y, groups=groups, importance_weight=weights, weight_bound=2.0)


def _fit_stream(folder: Path) -> None:
    OnlineCalibrator().partial_fit(SCORES, Y)


WALKS: dict[str, Callable[[Path], None]] = {
    "Arrays": _fit_arrays,
    "Parquet": _fit_parquet,
    "Groups with weights": _fit_groups,
    "Stream": _fit_stream,
}


def _steps(name: str) -> list[tuple[str, str]]:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    walk = page.partition(f"**{name}:**")[2].partition("\n**")[0].partition("\n## ")[0]
    return STEP.findall(walk)


def _functions_met(walk: Callable[[Path], None], folder: Path) -> list[tuple[str, str]]:
    """Each file and function of calibrant, where it was first called."""
    met: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                where = path.relative_to(PACKAGE).as_posix()
                met.setdefault((where, frame.f_code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        walk(folder)
    finally:
        sys.setprofile(before)
    return list(met)


@pytest.mark.parametrize("name", WALKS)
def test_rows_take_the_walk_that_the_design_page_shows(name: str, tmp_path: Path) -> None:
    steps = _steps(name)
    assert len(steps) >= 5
    met = _functions_met(WALKS[name], tmp_path)
    assert [step for step in steps if step not in met] == []
    places = [met.index(step) for step in steps]
    assert places == sorted(places)


def _modules_listed() -> set[str]:
    """The modules in the table of ARCHITECTURE.md, as paths."""
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    table = page.partition("passes through these modules")[2].partition("\n**")[0]
    rows = re.findall(r"^\| `(?P<room>[^`]+)` \| (?P<modules>.*) \|$", table, re.MULTILINE)
    return {f"{room}{name}.py" for room, modules in rows for name in re.findall("`(.+?)`", modules)}


def test_a_default_fit_passes_the_modules_that_the_design_page_lists(tmp_path: Path) -> None:
    """Simpler is allowed: then shorten the list. What is new on this path needs a reason there."""
    met = _functions_met(_fit_arrays, tmp_path)
    passed = {where for where, function in met if function != "<module>"}
    listed = _modules_listed()
    assert passed == listed
    assert len(listed) <= MODULES_OF_A_DEFAULT_FIT
