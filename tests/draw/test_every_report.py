"""Every result has a report with the same parts, and no word in it says more than the result."""

import csv
import io
import re
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

import calibrant
from calibrant import Report
from calibrant.draw.report.audit_page import _numbers
from calibrant.draw.report.decimals import align_decimals
from calibrant.draw.report.headline import headline
from calibrant.draw.report.in_short import in_short
from calibrant.draw.report.next_steps import advice_on, steps_as_commands, steps_in_python
from calibrant.draw.report.table_file import table_file
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
    assert " ".join(result.sentence.split()) in first.text
    short = None if isinstance(result, calibrant.Audit) else in_short(result)
    assert [node.text for node in first.all("p", "verdict")] == [short or result.sentence]
    assert first.all("p", "tag")[0].text == headline(result).tag
    *plainly, copied = [node.text for node in root.all("p", "copy")]
    assert plainly == [said for said in [in_short(result)] if said is not None]
    assert copied.startswith(" ".join(result.sentence.split()))
    for assumption in () if "Assumed:" in result.sentence else result.assumptions:
        assert " ".join(assumption.split()) in copied
    links = [node.attributes["href"][1:] for node in root.all("nav")[0].all("a")]
    titles = [node.attributes["id"] for node in root.all("h2")]
    assert links == titles[1:]
    assert {"next-title", "made-title"} <= set(links)
    assert root.all("ol", "steps")[0].all("li")
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
        if not len(table) or (isinstance(result, calibrant.Audit) and table.name == "findings"):
            continue
        rows = list(csv.reader(io.StringIO(links[f"{table.name}.csv"])))
        assert rows[0] == list(table.columns)
        assert len(rows) == len(table) + 1
        for place, column in enumerate(table.columns.values()):
            values = plain_values(column)
            if all(isinstance(value, float) and np.isfinite(value) for value in values):
                assert [float(row[place]) for row in rows[1:]] == values


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_result_has_something_to_do_next(kind) -> None:
    assert advice_on(EXAMPLES[kind]())


def test_proved_stands_only_beside_what_is_proved() -> None:
    """Beside "the data cannot tell" it would say the opposite of the sentence."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=300)
    y = rng.uniform(size=300) < scores
    models = {"one": scores, "two": scores + 1e-6 * (0.5 - scores)}
    undecided = [
        calibrant.compare_models(y, models),
        calibrant.threshold(y, scores, precision=0.999),
        calibrant.decide(
            calibrant.BinningCalibrator(1).fit(scores, y),
            scores,
            cost_false_alarm=1,
            cost_miss=1,
        ),
        calibrant.PlattCalibrator().fit(scores, y).guarantee_,
        calibrant.plan(epsilon=0.1, n_bins=5),
        calibrant.check(y, scores),
        calibrant.audit(y, scores),
    ]
    for result in undecided:
        stands = headline(result)
        assert stands.kind == "open", result.sentence
        assert not stands.tag.startswith("Proved"), result.sentence


def test_a_difference_says_who_wins() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=4_000)
    y = rng.uniform(size=4_000) < scores
    found = calibrant.compare_models(y, {"old": 0.5 * scores, "new": scores})
    text = read(Report(found).html).text
    assert "old minus new: new is better" in text
    assert headline(found).tag == "Proved"


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
    assert table_file(table, 2).said == "the first 2 of 4 rows"


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
    commands = [step.how for step in steps_as_commands(found, {"data": "a.csv", "rows": "a.csv"})]
    assert "calibrant audit a.csv --score 'p; rm {data} {x}' -o audit.html" in commands


def test_a_plan_names_the_calibrator_that_it_is_for() -> None:
    plan = calibrant.plan(epsilon=0.1, n_bins=4, calibrator="AnchoredCalibrator")
    assert steps_in_python(plan)[0].how == "AnchoredCalibrator(n_bins=4).fit(scores, y)"
    (step, *_) = steps_as_commands(plan, {"rows": "a.csv"})
    assert step.how == "calibrant fit a.csv --method anchored --bins 4 -o model.json"


@pytest.mark.parametrize("target", ["items", "population"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_plan_for_a_rate_can_be_called(share, target) -> None:
    """Also where all labels that are known are the same, so that the estimate is 0 or 1."""
    labels = np.where(np.arange(50) < 50 * share, 1.0, 0.0)
    y = np.append(labels, np.full(950, np.nan))
    scores = np.random.default_rng(0).uniform(size=y.size)
    found = calibrant.rate(y, scores, method="labels", target=target, pos_label=1.0)
    (step, *_) = steps_in_python(found)
    planned = eval(step.how, {"plan_rate": calibrant.plan_rate})
    assert planned.n_labels > 0
    assert planned.n_items == (1_000 if target == "items" else None)
    assert planned.expected_rate == (0.3 if share == 0.3 else None)


def test_a_subgroup_that_is_off_comes_first_and_can_be_copied() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.3, 0.7, size=8_000)
    side = rng.random(8_000) < 0.5
    y = rng.random(8_000) < scores + np.where(side, 0.12, -0.12)
    found = calibrant.audit(y, scores, attributes={"side": side})
    root = read(Report(found).html)
    first = root.all("div", "statement")[0]
    assert first.all("p", "verdict")[0].text == in_short(found)
    assert first.all("p", "tag")[0].text == "Proved miscalibrated in a subgroup"
    assert " ".join(found.by_attributes.sentence.split()) in root.all("p", "copy")[-1].text
    assert root.all("p", "copy")[0].text == in_short(found)


def test_a_subgroup_that_is_off_is_in_every_part_of_the_report() -> None:
    """Key numbers, what is proved, and the next step agree with the headline."""
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.3, 0.7, size=8_000)
    side = rng.random(8_000) < 0.5
    y = rng.random(8_000) < scores + np.where(side, 0.12, -0.12)
    found = calibrant.audit(y, scores, attributes={"side": side})
    assert found.worst is None
    worst = found.subgroups[0]
    listed = {(one.name, one.note): one for one in _numbers(found, None)}
    assert listed["Subgroups shown to be miscalibrated", "of 3"].value == "2"
    tested = listed["Off by at least", f"on average in {worst.subgroup}, rows tested"]
    assert tested.exact == worst.error > 0.05
    assert listed["Off by at least", "at some score, over all rows"].exact == 0.0
    assert listed["Off by at most", "on average in any subgroup"].exact > worst.error
    assert ("Off by at least", "somewhere") not in listed
    root = read(Report(found).html)
    known = next(
        node
        for node in root.all("section")
        if node.attributes["aria-labelledby"] == "knowledge-title"
    )
    assert "is proved in the scores" not in known.text
    assert "2 subgroups are proved to be off" in known.text
    assert "No error is proved by the audit of score ranges, over all rows." in known.text


def _commands(found: Any) -> Any:
    return steps_as_commands(found, {"rows": "a.csv"})


@pytest.mark.parametrize("steps", [steps_in_python, _commands])
def test_subgroups_are_repaired_in_python_on_other_rows(steps: Any) -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.3, 0.7, size=8_000)
    side = rng.random(8_000) < 0.5
    y = rng.random(8_000) < scores + np.where(side, 0.12, -0.12)
    found = calibrant.audit(y, scores, attributes={"side": side})
    (step, *_) = steps(found.by_attributes)
    assert "with rows other than those audited here" in step.why
    again = rng.random(8_000) < scores + np.where(side, 0.12, -0.12)
    rows = {"other_scores": scores, "other_y": again, "other_attributes": {"side": side}}
    fitted = eval(step.how, {"SubgroupCalibrator": calibrant.SubgroupCalibrator, **rows})
    assert fitted.guarantee_.attributes == ("side",)


def test_a_curve_is_drawn_as_a_curve() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=4_000)
    y = rng.random(4_000) < scores**2
    curve = calibrant.AnchoredCalibrator(n_bins=5).fit(scores, y)
    bins = calibrant.BinningCalibrator(5).fit(scores, y)
    drawn = Report(curve.guarantee_, curve).html
    assert "From score to probability" in drawn
    assert "From score to probability" not in Report(bins.guarantee_, bins).html


def test_limits_that_are_proved_are_not_called_a_proved_difference() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=600)
    y = rng.random(600) < scores
    methods = [calibrant.PlattCalibrator(), calibrant.BetaCalibrator()]
    found = calibrant.compare_calibrators(y, scores, methods)
    assert not any(one.better for one in found.differences)
    assert ">Is proved<" not in Report(found).html
