"""The tools of developers, and the table of claims, refer to what is there."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def mutants():
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
    sys.modules["mutants"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutants"]


def test_mutants_are_made_of_modules_that_exist_and_tried_with_tests_that_exist(mutants) -> None:
    for module, tests in mutants.CORE.items():
        place = ROOT / "src" / "calibrant" / module
        assert place.is_dir() or place.with_suffix(".py").is_file(), module
        for test in tests.split():
            assert (ROOT / test).exists(), test


@pytest.mark.broad
def test_changes_said_to_make_no_difference_are_judged_anew_when_their_line_changes(
    mutants, monkeypatch
) -> None:
    assert mutants.stale() == []
    strange = ("monitor/martingale", "_MOST_STARTS = 64", "64 -> 65")
    monkeypatch.setitem(mutants.EQUIVALENT, strange, "of a line that is no more")
    assert mutants.stale() == [strange]


def test_every_test_that_the_table_of_claims_names_is_there() -> None:
    page = (ROOT / "docs" / "reference" / "claims.md").read_text(encoding="utf-8")
    texts = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 40
    assert {name for name in named if f"def {name}(" not in texts} == set()
    assert all(
        (ROOT / "tests" / file).is_file() for file in re.findall(r"`([\w/]*test_\w+\.py)`", page)
    )
