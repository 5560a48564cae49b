"""Every result has a report with the same parts, and no word in it says more than the result."""

import csv
import io
import re
from urllib.parse import unquote

import numpy as np
import pytest

import calibrant
from calibrant import Report
from calibrant.assess.subgroups.result import SubgroupAudit
from calibrant.draw.report.table_file import align_decimals, table_file
from calibrant.text.result_table import ResultTable, plain_values
from result_examples import EXAMPLES
from worlds.report_pages import read

PREFIX = "data:text/csv;charset=utf-8,"


@pytest.fixture(scope="module", params=EXAMPLES)
def shown(request):
    """A result, and its report as a tree."""
    result = EXAMPLES[request.param]()
    return result, read(Report(result, command="the call", source={"file": "a.csv"}).html)


def test_every_report_has_the_parts(shown) -> None:
    result, root = shown
    first = root.all("div", "statement")[0]
    assert [node.text for node in first.all("p", "verdict")] == [" ".join(result.sentence.split())]
    tags = {"ok": "OK", "problem": "Problem", "unclear": "Unclear", None: "Result"}
    assert first.all("p", "tag")[0].text == tags[result.verdict]
    (copied,) = [node.text for node in root.all("p", "copy")]
    assert copied.startswith(" ".join(result.sentence.split()))
    for assumption in result.assumptions:
        assert " ".join(assumption.split()) in copied
    for number in result.numbers:
        assert number.name in root.text
    links = [node.attributes["href"][1:] for node in root.all("nav")[0].all("a")]
    titles = [node.attributes["id"] for node in root.all("h2")]
    assert links == titles[1:]
    assert "made-title" in links
    assert ("next-title" in links) == bool(result.next_steps)
    made = root.all("section")[titles.index("made-title")].text
    assert "the call" in made
    assert "a.csv" in made
    assert "calibrant 0." in made


def test_every_table_is_in_the_file_as_csv(shown) -> None:
    result, root = shown
    links = {
        node.attributes["download"]: unquote(node.attributes["href"].removeprefix(PREFIX))
        for node in root.all("a")
        if "download" in node.attributes
    }
    for table in result.tables():
        if not len(table) or (
            isinstance(result, calibrant.Audit | SubgroupAudit)
            and table.name in ("findings", "off")
        ):
            continue
        rows = list(csv.reader(io.StringIO(links[f"{table.name}.csv"])))
        assert rows[0] == list(table.columns)
        assert len(rows) == len(table) + 1
        for place, column in enumerate(table.columns.values()):
            values = plain_values(column)
            if all(isinstance(value, float) and np.isfinite(value) for value in values):
                assert [float(row[place]) for row in rows[1:]] == values


def test_a_difference_says_who_wins() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=4_000)
    y = rng.uniform(size=4_000) < scores
    found = calibrant.compare_models(y, {"old": 0.5 * scores, "new": scores})
    text = read(Report(found).html).text
    assert "old minus new: new is better" in text
    assert found.verdict == "ok"


def test_rows_of_npv_and_specificity_show_them() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=4_000)
    y = rng.uniform(size=4_000) < scores
    found = calibrant.threshold(y, scores, precision=0.7, npv=0.7)
    heads = found.tables()[0].text().heads
    assert "npv" in heads
    assert "npv" not in calibrant.threshold(y, scores, precision=0.7).tables()[0].text().heads
    only = calibrant.threshold(y, scores, specificity=0.7).tables()[0].text().heads
    assert "specificity" in only


def test_decimal_points_stand_below_each_other() -> None:
    cells = align_decimals(["0.5", "12.25", "100", "1,000.125", "-3.5"])
    behind = {len(re.split(r"[.\u2008]", cell)[1]) for cell in cells}
    assert behind == {3}
    assert [cell.strip() for cell in cells] == ["0.5", "12.25", "100", "1,000.125", "-3.5"]
    assert align_decimals(["a", "", "0.5"]) == ["a", "", "0.5"]


def test_a_formula_in_a_name_is_not_run_by_a_spreadsheet() -> None:
    table = ResultTable("names", {"name": ["=1+1", "@x", "plain", 'a "b", c'], "value": [-0.5] * 4})
    text = unquote(table_file(table, 10).link.removeprefix(PREFIX))
    rows = list(csv.reader(io.StringIO(text)))[1:]
    assert [row[0] for row in rows] == ["'=1+1", "'@x", "plain", 'a "b", c']
    assert [float(row[1]) for row in rows] == [-0.5] * 4
    assert table_file(table, 2).left_out == "the first 2 of 4 rows"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("north;=1+1", "north;'=1+1"),  # a semicolon ends a cell in some countries
        ("x\n =1", "x\n' =1"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("{=1}", "'{=1}"),
        ("a=b", "a=b"),
    ],
)
def test_no_part_of_a_name_is_run_by_a_spreadsheet(name: str, kept: str) -> None:
    table = ResultTable("names", {name: [name]})
    text = unquote(table_file(table, 10).link.removeprefix(PREFIX))
    assert list(csv.reader(io.StringIO(text))) == [[kept], [kept]]


def test_names_that_cannot_be_written_are_escaped() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=600)
    found = calibrant.threshold(
        rng.uniform(size=600) < scores, scores, precision=0.6, segments=["a\udcff"] * 600
    )
    page = Report(found, source={"file": "b\udcfe.csv"}).html
    assert page.encode()
    assert "b\\udcfe.csv" in page
    assert "a%5Cudcff" in page


def test_a_name_is_quoted_in_the_commands_that_go_on() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=3_000)
    y = rng.uniform(size=3_000) < scores
    found = calibrant.compare_models(y, {"p; rm {data} {x}": scores, "q": scores[::-1]})
    assert found.best == "p; rm {data} {x}"
    commands = [step.command.format(data="a.csv", rows="a.csv") for step in found.next_steps]
    assert "audit a.csv --score 'p; rm {data} {x}' -o audit.html" in commands


def test_a_plan_names_the_calibrator_that_it_is_for() -> None:
    plan = calibrant.plan(epsilon=0.1, n_bins=4, calibrator="Calibrator")
    (step,) = plan.next_steps
    assert step.call == "Calibrator(n_bins=4).fit(scores, y)"
    assert step.command.format(rows="a.csv") == ("fit a.csv --method curve --bins 4 -o model.json")


@pytest.mark.parametrize("target", ["items", "population"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_plan_for_a_rate_can_be_called(share, target) -> None:
    """Also where all labels that are known are the same, so that the estimate is 0 or 1."""
    labels = np.where(np.arange(50) < 50 * share, 1.0, 0.0)
    y = np.append(labels, np.full(950, np.nan))
    scores = np.random.default_rng(0).uniform(size=y.size)
    found = calibrant.rate(y, scores, method="labels", target=target, pos_label=1.0)
    (step,) = found.next_steps
    planned = eval(step.call, {"plan_rate": calibrant.plan_rate})
    assert planned.n_labels > 0
    assert planned.n_items == (1_000 if target == "items" else None)
    assert planned.expected_rate == (0.3 if share == 0.3 else None)


def test_a_subgroup_that_is_off_is_in_every_part_of_the_report() -> None:
    """Sentence, key numbers and what is known agree."""
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.3, 0.7, size=8_000)
    side = rng.random(8_000) < 0.5
    y = rng.random(8_000) < scores + np.where(side, 0.12, -0.12)
    found = calibrant.audit(y, scores, attributes={"side": side})
    assert found.worst is None
    worst = found.subgroups[0]
    listed = {one.name: one for one in found.numbers}
    assert str(listed["Off"]) == "2 of 3 subgroups"
    assert listed[f"Off by at least, on average in {worst.subgroup}"].value == worst.error > 0.05
    assert listed["Some off by at least"].value == 0.0
    assert listed["Any subgroup off by at most"].value > worst.error
    root = read(Report(found).html)
    first = root.all("div", "statement")[0]
    assert first.all("p", "tag")[0].text == "Problem"
    known = next(
        node
        for node in root.all("section")
        if node.attributes["aria-labelledby"] == "knowledge-title"
    )
    assert "2 of 3 subgroups are off" in known.text
    assert "No error was found by the audit of score ranges, over all rows." in known.text


def test_subgroups_are_repaired_in_python_on_other_rows() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.3, 0.7, size=8_000)
    side = rng.random(8_000) < 0.5
    y = rng.random(8_000) < scores + np.where(side, 0.12, -0.12)
    found = calibrant.audit(y, scores, attributes={"side": side})
    step = found.next_steps[0]
    assert step == found.by_attributes.next_steps[0]
    assert "with rows other than those audited here" in step.what
    again = rng.random(8_000) < scores + np.where(side, 0.12, -0.12)
    rows = {"other_scores": scores, "other_y": again, "other_attributes": {"side": side}}
    fitted = eval(step.call, {"SubgroupCalibrator": calibrant.SubgroupCalibrator, **rows})
    assert fitted.guarantee_.attributes == ("side",)


def test_a_curve_is_drawn_as_a_curve() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=4_000)
    y = rng.random(4_000) < scores**2
    curve = calibrant.Calibrator(n_bins=5).fit(scores, y)
    bins = calibrant.BinningCalibrator(5).fit(scores, y)
    drawn = Report(curve.guarantee_, curve).html
    assert "From score to probability" in drawn
    assert "From score to probability" not in Report(bins.guarantee_, bins).html
