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


def test_every_script_of_make_paper_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    names = re.search(r"^PAPER := (.+)$", makefile, re.MULTILINE)[1].split()
    assert len(names) >= 10
    for name in names:
        assert (ROOT / "experiments" / f"{name}.py").is_file(), name


def test_every_script_that_a_page_names_is_there() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for script in re.findall(
            r"\b(?:experiments|benchmarks|study|tools|examples)/\w+\.py", text
        ):
            assert (ROOT / script).is_file(), (page.name, script)


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


def test_a_differential_run_sees_a_number_that_changed(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import differential

    assert list(differential.differences({"a": 1.0, "b": "x"}, {"a": 1.0 + 1e-9, "b": "x"})) == []
    found = dict(differential.differences({"a": 1.0, "b": "x"}, {"a": 1.00001, "b": "y"}))
    assert found["b"] == float("inf")
    assert 0 < found["a"] < 2e-5


def test_every_question_of_a_differential_run_has_numbers_and_not_errors_alone(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import differential_cases as cases

    drawn = [cases.Case(1, 150, "uniform", roles, "arrow") for roles in ((), ("weight",))]
    for name, ask in cases.QUESTIONS.items():
        answers = [cases.answer(ask, case) for case in drawn]
        assert any("" not in one and one for one in answers), name
