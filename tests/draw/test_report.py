"""What a report says: its tables, verdicts, guarantees and assumptions are those of the results."""

import re
from dataclasses import replace

import numpy as np
import pytest

from calibrant import BinningCalibrator, CalibratedClassifier, PlattCalibrator, Report, audit
from calibrant.text.numbers import lower, nearest, percent, points, upper
from calibrant.text.sentences import name_of, sentence
from worlds.report_pages import (
    AUDIT,
    AUDIT_NAMES,
    CALIBRATOR,
    SCORES,
    Y,
    audit_lines,
    chart,
    finest,
    marks,
    read,
    shown,
    table_rows,
)


def test_key_numbers_are_rounded_to_the_side_on_which_they_stay_true() -> None:
    rng = np.random.default_rng(1)
    discrete = np.round(SCORES, 1)
    result = audit(rng.uniform(size=6_000) < 0.7 * discrete, discrete)
    values = [
        node
        for node in read(Report(result, CALIBRATOR).html).all("span", "value")
        if "data-exact" in node.attributes
    ]
    exact = [node.number("exact") for node in values]
    exact, values = zip(
        *(pair for pair in zip(exact, values, strict=True) if "point" in pair[1].text), strict=True
    )
    assert list(exact[:4]) == [
        result.lower_bound,
        result.average_lower_bound,
        result.upper_bound,
        CALIBRATOR.guarantee_.epsilon,
    ]
    shown = [float(node.text.split()[0]) / 100 for node in values[:4]]
    assert shown[0] <= exact[0]
    assert shown[1] <= exact[1]
    assert shown[2] >= exact[2]
    assert shown[3] >= exact[3]
    np.testing.assert_allclose(shown, exact[:4], rtol=0.1)


def test_the_table_before_lists_the_finest_regions() -> None:
    rows = table_rows(read(Report(AUDIT).html), "before-caption")
    table = AUDIT.table
    chosen = finest(AUDIT)
    assert len(rows) == chosen.size
    for cells, row in zip(rows, chosen, strict=True):
        assert int(cells[2].replace(",", "")) == table.counts[row]
        assert float(cells[3]) == pytest.approx(table.mean_score[row], abs=0.0006)
        assert float(cells[4]) == pytest.approx(table.rate[row], abs=0.0006)
        assert table.lower[row] - 0.001 < float(cells[5]) <= table.lower[row]
        assert table.upper[row] <= float(cells[6]) < table.upper[row] + 0.001
        assert cells[7] in table.verdict[row]
        assert (float(cells[8]) <= table.error[row]) if cells[8] else table.error[row] == 0.0


def test_the_table_after_lists_the_regions_of_the_guarantee() -> None:
    rows = table_rows(read(Report(AUDIT, CALIBRATOR).html), "regions-caption")
    padding = str.maketrans("", "", "\u2007\u2008")
    shown = [[cell.translate(padding) for cell in row] for row in rows]
    expected = CALIBRATOR.guarantee_.tables()[0].text(name_of)
    assert shown == [list(row) for row in expected.rows]


@pytest.mark.broad
def test_segments_stand_worst_first() -> None:
    rng = np.random.default_rng(1)
    groups = np.array([f"group {number}" for number in range(8)])[rng.integers(0, 8, size=16_000)]
    scores = rng.uniform(0.3, 0.7, size=16_000)
    shift = {"group 3": 0.25, "group 5": -0.15, "group 1": 0.3}
    y = rng.uniform(size=16_000) < scores + np.array([shift.get(group, 0.0) for group in groups])
    result = audit(y, scores, segments=groups)
    root = read(Report(result).html)
    rows = table_rows(root, "segments-caption")
    found = [finding for finding in result.findings if finding.segment is not None]
    assert (
        [row[0] for row in rows[:3]]
        == [finding.segment for finding in found]
        == ["group 1", "group 3", "group 5"]
    )
    assert [row[2] for row in rows[:4]] == ["too low", "too low", "too high", "no sign of error"]
    assert all(float(row[3]) <= finding.error for row, finding in zip(rows, found, strict=False))
    assert len(rows) == 8
    first = {result.table.segment[row]: row for row in np.flatnonzero(result.table.resolution == 0)}
    for name, bar in zip([row[0] for row in rows], root.all("svg", "range"), strict=True):
        row = first[name]
        limits = f"{lower(result.table.lower[row])} and {upper(result.table.upper[row])}"
        assert (
            bar.all("title")[0].text
            == f"mean score {nearest(result.table.mean_score[row])}, rate between {limits}"
        )
    drawn = marks(chart(root, "segment-1"))
    worst = np.flatnonzero(result.table.is_finest & (result.table.segment == "group 1"))
    assert shown(drawn, AUDIT_NAMES) == audit_lines(result, worst)


def test_without_segments_there_is_no_section_on_them() -> None:
    assert "Segments, largest error first" not in Report(AUDIT).html


@pytest.mark.broad
def test_a_classifier_is_shown_by_its_guarantee() -> None:
    from sklearn.linear_model import LogisticRegression

    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(SCORES[:, None], Y)
    assert model.guarantee_.sentence in read(Report(AUDIT, model).html).text


def test_verdicts_have_headlines() -> None:
    rng = np.random.default_rng(3)

    def headline(found) -> list[str]:
        root = read(Report(found).html)
        return [root.all("p", name)[0].text for name in ("tag", "verdict")]

    assert headline(AUDIT) == ["Problem", AUDIT.sentence]
    calibrated = rng.uniform(size=6_000) < SCORES
    tag, text = headline(audit(calibrated, SCORES))
    assert tag == "OK"
    assert text.startswith("No sign that scores are miscalibrated (tested at the 5% level")
    values = np.tile([0.2, 0.5, 0.8], 2_000)
    y = rng.uniform(size=6_000) < values
    tag, text = headline(audit(y, values))
    assert tag == "OK"
    assert text.startswith("No observed score is off by more than")
    assert Report(AUDIT, warnings=["rows look grouped"]).html.count(">Warning<") == 1


@pytest.mark.parametrize(
    "shift", [(0.2, -0.2), (0.25, 0.1)], ids=["errors cancel", "errors add up"]
)
def test_what_is_shown_of_a_segment_is_not_said_of_the_score_alone(shift) -> None:
    rng = np.random.default_rng(1)
    groups = np.repeat(["a", "b"], 5_000)
    scores = rng.uniform(0.3, 0.7, size=10_000)
    result = audit(
        rng.uniform(size=10_000) < scores + np.where(groups == "a", *shift), scores, segments=groups
    )
    assert result.worst.segment == "a" if shift[1] > 0 else result.worst.segment in {"a", "b"}
    text = read(Report(result).html).text
    within = result.within_segments
    least = points(lower(within.lower_bound))
    average = points(lower(within.average_lower_bound))
    assert f"Some scores are off by at least {least} within segments." in text
    assert f"The average error within segments is at least {average}." in text
    assert f"for some in segment {result.worst.segment!r}" in result.sentence
    alone = f"Some scores are off by at least {points(lower(result.lower_bound))}."
    assert (alone in text) == (shift[1] > 0)


def test_the_guarantee_is_the_guarantees_own_sentence() -> None:
    assert CALIBRATOR.guarantee_.sentence in read(Report(AUDIT, CALIBRATOR).html).text


def test_a_calibrator_without_a_guarantee_is_said_to_have_none() -> None:
    root = read(Report(AUDIT, PlattCalibrator().fit(SCORES, Y)).html)
    assert "Unclear" in root.text
    assert "There is no figure here, because there is no guarantee." in root.text
    assert "Theorem 3" in root.text
    assert [
        node.attributes["aria-labelledby"].split("-")[0] for node in root.all("svg", "chart")
    ] == ["before"]


def test_a_guarantee_that_is_not_proved_is_not_listed_as_proved() -> None:
    calibrator = BinningCalibrator(12).fit(SCORES, Y)
    calibrator.guarantee_ = calibrator.guarantee_.with_caveat("folds were used")
    text = read(Report(AUDIT, calibrator).html).text
    assert "Unclear" in text
    assert "folds were used" in text
    assert "After calibration: In each of" not in text
    assert "After calibration: In each of" in read(Report(AUDIT, CALIBRATOR).html).text


@pytest.mark.broad
def test_it_says_what_is_assumed_and_what_no_one_can_know() -> None:
    rng = np.random.default_rng(1)
    text = read(Report(AUDIT, CALIBRATOR).html).text
    for assumption in (*AUDIT.assumptions, *CALIBRATOR.guarantee_.assumptions):
        assert sentence(assumption) in text
    assert AUDIT.upper_bound_reason in text
    assert "no method can bound the error of a continuous score at every value" in text
    values = np.tile([0.2, 0.5, 0.8], 2_000)
    bounded = audit(rng.uniform(size=6_000) < values, values)
    assert (
        "off the scores are at values that were never observed" in read(Report(bounded).html).text
    )


def test_it_says_how_it_was_computed() -> None:
    source = {
        "file": "flights.parquet",
        "rows": 6000,
        "fingerprint": "abc123",
        "columns": ["p", "late"],
    }
    text = read(Report(AUDIT, CALIBRATOR, source=source).html).text
    for said in (
        "flights.parquet",
        "6,000",
        "abc123",
        "p, late",
        CALIBRATOR.partition_.fingerprint,
        "Hoeffding 1956",
        CALIBRATOR.guarantee_.theorem,
        f"numpy {np.__version__}",
        "calibrant 0.",
    ):
        assert said in text


@pytest.mark.parametrize(
    "beside",
    [{"groups": np.arange(6_000) // 3}, {"importance_weight": 0.5 + SCORES, "weight_bound": 1.5}],
)
def test_it_says_how_rows_with_groups_or_weights_were_audited(beside) -> None:
    text = read(Report(audit(Y, SCORES, **beside)).html).text
    assert "bets on the weighted mean of label minus score" in text
    assert "Hoeffding 1956" not in text
    assert "bets on the weighted mean" not in read(Report(AUDIT).html).text


@pytest.mark.parametrize("epsilon", [0.07, 0.29, 0.000712345])
def test_epsilon_reads_the_same_everywhere(epsilon) -> None:
    guarantee = CALIBRATOR.guarantee_
    nothing = np.zeros_like(guarantee.value)
    calibrator = BinningCalibrator(12).fit(SCORES, Y)
    calibrator.guarantee_ = replace(
        guarantee, value=nothing, lower=nothing, upper=nothing + epsilon, mass_limits=None
    )
    text = upper(epsilon)
    root = read(Report(AUDIT, calibrator).html)
    assert {mark.attributes["data-radius"] for mark in marks(chart(root, "after"))} == {text}
    said = points(text)
    assert said in [node.text for node in root.all("span", "value")]
    assert f"the true rate is within {said} of the prediction" in root.text
    assert f"The strip reaches {text} to either side" in root.text
    assert root.all("p", "guarantee")[0].text.count(f" {said} ") == 1


def test_a_guarantee_that_leaves_regions_out_is_told_the_same_everywhere() -> None:
    rng = np.random.default_rng(3)
    scores = np.round(rng.uniform(size=30_000), 5)  # ties make small regions of single values
    y = rng.uniform(size=30_000) < scores
    fitted = BinningCalibrator(n_bins=10, pilot=None).fit(scores, y)
    stated = fitted.guarantee_.stated
    assert not stated.kept.all()
    assert stated.epsilon < 0.1 < fitted.guarantee_.epsilon
    text = read(Report(audit(y, scores), fitted).html).text
    told = points(upper(stated.epsilon))
    assert f"the true rate is within {told} of the prediction" in text
    assert f"In {int(stated.kept.sum())} of " in text
    assert f"with at least {percent(stated.mass)} of rows" in text
    whole = points(upper(fitted.guarantee_.epsilon))
    assert re.search(f"Over all [0-9]+ regions, the bound is {whole}", text)


def test_scores_with_few_rows_share_one_line_and_a_vacuous_bound_is_left_out() -> None:
    rng = np.random.default_rng(5)
    scores = np.concatenate([np.full(4_000, 0.25), np.full(3_000, 0.5), np.arange(1, 101) / 1_000])
    scores = np.concatenate([scores, np.full(10, 0.9)])  # few rows, but proved wrong
    y = rng.uniform(size=scores.size) < scores
    y[-10:] = False
    found = audit(y, scores)
    assert found.upper_bound > 0.5
    page = Report(found).html
    text = read(page).text
    line = "100 values with fewer than 20 rows each, 100 rows together: no sign of error for any of"
    assert line in text
    body = page.split("before-caption")[2].split("</table>")[0].split("<tbody>")[1]
    assert body.count("<tr>") == 4  # 0.25, 0.5, 0.9, and the line for all others
    assert "left out" not in text
    assert found.to_dict()["upper_bound"] == found.upper_bound
    assert "at any observed score" not in text
    assert any("no useful upper bound" in note for note in found.notes)
    assert not any("is off by more than" in note for note in found.notes)
    frequent = audit(y[:7_000], scores[:7_000])
    assert frequent.upper_bound < 0.5
    assert "at any observed score" in read(Report(frequent).html).text
    assert "values with fewer than" not in read(Report(frequent).html).text
