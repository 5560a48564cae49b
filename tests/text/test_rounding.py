"""Every limit that is printed is rounded outwards: what a text says is never more than what was
proved.
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from calibrant import (
    BinningCalibrator,
    Calibrator,
    ClassWiseCalibrator,
    LabelShiftCalibrator,
    audit,
    compare_models,
    decide,
    plan,
    threshold,
    validation_table,
)
from calibrant.assess.threshold.cut import Measured
from calibrant.metrics import brier_score, ece
from calibrant.text.numbers import upper
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable

NUMBER = r"(-?\d+(?:\.\d+)?)"
ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs" / "gallery").glob("*.py")),
]


def drawn(seed: int, n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and scores that are too high."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n)
    return (rng.uniform(size=n) < scores ** (1 + seed % 3)).astype(int), scores


def after(words: str, text: str) -> list[float]:
    """All numbers that follow these words."""
    return [float(found) for found in re.findall(words + NUMBER, " ".join(str(text).split()))]


def in_points(words: str, text: str) -> list[float]:
    """All numbers of points that follow these words."""
    return [round(found / 100, 12) for found in after(words, text)]


def check_upper(said: list[float], proved: float) -> None:
    assert said
    assert all(proved <= one < proved + 0.0011 for one in said), (said, proved)


def check_lower(said: list[float], proved: float) -> None:
    assert said
    assert all(proved - 0.0011 < one <= proved for one in said), (said, proved)


def check_pair(text: str, lower: float, upper: float) -> None:
    low, high = (float(one) for one in re.search(f"{NUMBER} to {NUMBER}", text).groups())
    check_lower([low], lower)
    check_upper([high], upper)


SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [BinningCalibrator, Calibrator])
def test_guarantees(kind: type, seed: int) -> None:
    y, scores = drawn(seed)
    fitted = kind(n_bins=4).fit(scores, y)
    found = fitted.guarantee_
    check_upper(in_points("true rate is within ", found.sentence), found.stated.epsilon)
    if kind is Calibrator and upper(found.average_epsilon) != upper(found.stated.epsilon):
        check_upper(
            in_points(
                "veraged over the population in all 4 score ranges, the bound is ", found.details
            ),
            found.average_epsilon,
        )
    lines = [
        line for line in found.details.splitlines() if "%" in line and line.startswith(("[", "("))
    ]
    assert len(lines) == 4
    for line, low, high, radius in zip(lines, found.lower, found.upper, found.radius, strict=True):
        if low > 0.0 and high < 1.0:
            least, most = re.search(rf"{NUMBER} to {NUMBER}%", line).groups()
            check_lower([float(least) / 100], low)
            check_upper([float(most) / 100], high)
        if kind is Calibrator:
            check_upper(in_points("", line.split("%")[-1]), radius)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_guarantee_without_its_poorest_regions_and_one_of_several_classes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.dirichlet([1.0, 1.0, 1.0], size=900)
    labels = (rng.uniform(size=(900, 1)) > columns.cumsum(axis=1)).sum(axis=1)
    each = ClassWiseCalibrator(n_bins=2).fit(columns, labels).guarantee_
    check_upper(
        in_points("true rate is within ", str(each)),
        max(one.epsilon for one in each.guarantees.values()),
    )
    planned = plan(n=1_000 + 137 * seed, n_bins=3)
    check_upper(in_points("will be within ", planned.sentence), planned.epsilon)


@pytest.mark.parametrize("seed", SEEDS)
def test_thresholds(seed: int) -> None:
    y, scores = drawn(seed)
    found = threshold(y, scores, precision=0.71)
    for name in ("selected", "precision", "recall", "specificity", "npv"):
        share = getattr(found.only, name)
        if share.lower > 0.0 and share.upper < 1.0:
            check_pair(str(share).split("(")[1], share.lower, share.upper)
    rng = np.random.default_rng(seed)
    for low, high in np.sort(rng.uniform(size=(200, 2)), axis=1):
        check_pair(str(Measured(0.5, low, high)).split("(")[1], low, high)


@pytest.mark.parametrize("seed", SEEDS)
def test_audits(seed: int) -> None:
    y, scores = drawn(2 * seed + 1)
    found = audit(y, scores**0.5)
    check_lower(in_points("by at least ", found.sentence), found.worst.error)
    check_lower(in_points("error is at least ", found.sentence), found.average_lower_bound)
    for finding in found.findings:
        check_lower(in_points("by at least ", str(finding)), finding.error)
    binned = audit(y, np.round(scores ** (1 + (2 * seed + 1) % 3), 1), tolerance=0.3)
    if binned.upper_bound is not None:
        check_upper(in_points("is off by more than ", binned.details), binned.upper_bound)


@pytest.mark.parametrize("seed", SEEDS)
def test_estimates_and_comparisons(seed: int) -> None:
    y, scores = drawn(seed)
    for measure in (brier_score, ece):
        found = measure(y, scores)
        check_pair(str(found), found.lower, found.upper)
    compared = compare_models(y, {"one": scores, "other": scores**3}, random_state=0)
    for difference in compared.differences:
        if not math.isnan(difference.lower):
            check_pair(str(difference), difference.lower, difference.upper)
    table = validation_table(y, scores)
    ratio = table["expected / observed"]
    check_pair(str(ratio), ratio.lower, ratio.upper)
    choice = decide(
        BinningCalibrator(n_bins=4).fit(scores, y), scores, cost_false_alarm=1.0, cost_miss=3.3
    )
    check_pair(
        choice.details.split("expected cost per row")[1], choice.cost_lower, choice.cost_upper
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_assumed_priors(seed: int) -> None:
    y, scores = drawn(3 * seed)
    prior = (0.123456789, 0.3456789012)
    fitted = LabelShiftCalibrator(n_bins=3).fit(scores, y, target_prior=prior)
    (said,) = [
        text for text in fitted.guarantee_.assumptions if "share of the positive class" in text
    ]
    assert repr(prior[0]) in said
    assert repr(prior[1]) in said


class Table(Result):
    """A result with limits."""

    @property
    def sentence(self) -> str:
        return "Limits."

    def tables(self) -> tuple[ResultTable, ...]:
        return (
            ResultTable("rates", {"estimate": [0.54151], "lower": [0.50197], "upper": [0.57612]}),
        )


def test_the_table_of_a_notebook() -> None:
    shown = Table()._repr_html_()
    assert "<td>0.542</td><td>0.501 to 0.577</td>" in shown


INWARDS = re.compile(
    r"round\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\b(?:epsilon|lower_bound)\b[^\n]*, \d\)|epsilon:\.\d"
)


def test_no_page_rounds_a_bound_to_the_nearest() -> None:
    for page in PAGES:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            assert not INWARDS.search(line), f"{page.name}:{number}: {line}"
