"""The figures of a report: what they draw is what was computed, on scales that show it."""

import math
import re
from collections import Counter
from importlib import resources

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from calibrant import BinningCalibrator, Partition, Report, Tally, audit
from calibrant.draw.report.scales import Axis, common_limits, limits_of
from calibrant.errors import InvalidValueError
from calibrant.text.numbers import lower, nearest, upper
from worlds.report_pages import (
    AUDIT,
    AUDIT_NAMES,
    BY_SEGMENT,
    CALIBRATOR,
    HISTOGRAM,
    SCORES,
    Node,
    Y,
    audit_lines,
    chart,
    finest,
    marks,
    read,
    shown,
    whole,
    written,
)


def test_the_figure_before_shows_the_numbers_of_the_audit() -> None:
    for result in (AUDIT, BY_SEGMENT):
        drawn = marks(chart(read(Report(result).html), "before"))
        rows = finest(result)
        assert shown(drawn, AUDIT_NAMES) == audit_lines(result, rows)
        verdicts = Counter(result.table.verdict[row] for row in rows)
        assert Counter(node.attributes["data-verdict"] for node in drawn) == verdicts
        assert len(verdicts) == 3


def test_the_figure_after_shows_the_numbers_of_the_guarantee() -> None:
    drawn = marks(chart(read(Report(AUDIT, CALIBRATOR).html), "after"))
    guarantee = CALIBRATOR.guarantee_
    formats = {
        "counts": whole,
        "positives": whole,
        "value": nearest,
        "lower": lower,
        "upper": upper,
        "radius": upper,
    }
    columns = {name: (getattr(guarantee, name), write) for name, write in formats.items()}
    names = ("count", "positives", "value", "lower", "upper", "radius")
    assert shown(drawn, names) == written(columns, np.arange(guarantee.counts.size))


def test_an_audit_of_the_calibrated_scores_is_drawn_over_the_guarantee() -> None:
    rng = np.random.default_rng(1)
    fresh = rng.uniform(size=5_000)
    after = audit(rng.uniform(size=5_000) < fresh**2, CALIBRATOR.predict(fresh))
    drawn = marks(chart(read(Report(AUDIT, CALIBRATOR, audit_after=after).html), "after"))
    checks = [node for node in drawn if "guaranteed" not in node.classes]
    rows = finest(after)
    assert shown(checks, AUDIT_NAMES) == audit_lines(after, rows)
    assert len(drawn) == rows.size + len(CALIBRATOR.guarantee_.regions)


def number_at(tick: Node) -> float:
    """The number of a tick, which is in per cent."""
    if tick.text == "0":
        return 0.0
    assert tick.text.endswith("%")
    return float(tick.text[:-1]) / 100.0


def axis_of(node: Node, name: str) -> tuple[float, float]:
    """From two ticks, the line that leads from numbers to places."""
    ticks = [tick for tick in node.all("text", name) if "label" not in tick.classes]
    values = [number_at(tick) for tick in ticks]
    places = [float(tick.attributes[name]) for tick in ticks]
    slope = (places[-1] - places[0]) / (values[-1] - values[0])
    return slope, places[0] - slope * values[0]


@pytest.mark.parametrize("name", ["before", "after", "segment-1"])
def test_marks_stand_where_the_ticks_say(name) -> None:
    node = chart(read(Report(BY_SEGMENT, CALIBRATOR).html), name)
    x_slope, x_start = axis_of(node, "x")
    y_slope, y_start = axis_of(node, "y")
    assert x_slope > 0 > y_slope
    table = BY_SEGMENT.table
    guarantee = CALIBRATOR.guarantee_
    if name == "after":
        columns = np.column_stack(
            [guarantee.value, guarantee.value, guarantee.lower, guarantee.upper]
        )
    else:
        found = [
            None,
            *(finding.segment for finding in BY_SEGMENT.findings if finding.segment is not None),
        ]
        first = found[name == "segment-1"]
        rows = table.is_finest & np.array([segment == first for segment in table.segment])
        columns = np.column_stack([table.mean_score, table.rate, table.lower, table.upper])[rows]
    places = []
    for mark in marks(node):
        x, y = map(float, re.findall(r"[-\d.]+", mark.attributes["transform"]))
        top, bottom = map(
            float,
            re.fullmatch(r"M0 (\S+)V(\S+)", mark.all("path", "w")[0].attributes["d"]).groups(),
        )
        places.append([x, y, y + bottom, y + top])
    expected = columns * [x_slope, y_slope, y_slope, y_slope] + [x_start, y_start, y_start, y_start]
    np.testing.assert_allclose(sorted(places), expected[np.argsort(expected[:, 0])], atol=0.05)


@pytest.mark.parametrize("rate", ["as scored", "rare", "low", "constant"])
def test_the_diagonal_is_where_rate_and_score_agree(rate) -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=20_000) * (0.01 if rate == "rare" else 1.0)
    truth = {"low": 0.004, "constant": 0.6}.get(rate, scores)
    node = chart(read(Report(audit(rng.uniform(size=20_000) < truth, scores)).html), "before")
    x_slope, x_start = axis_of(node, "x")
    y_slope, y_start = axis_of(node, "y")
    x1, y1, x2, y2 = map(
        float, re.findall(r"-?[\d.]+", node.all("path", "diagonal")[0].attributes["d"])
    )
    for x, y in ((x1, y1), (x2, y2)):
        assert (x - x_start) / x_slope == pytest.approx((y - y_start) / y_slope, abs=0.001)
        assert 50 <= x <= 428
        assert 34 <= y <= 412
    assert x2 > x1


def test_a_rare_event_is_not_drawn_in_a_corner_of_an_empty_square() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=20_000) * 0.01
    node = chart(read(Report(audit(rng.uniform(size=20_000) < scores, scores)).html), "before")
    places = [float(re.findall(r"[\d.]+", mark.attributes["transform"])[0]) for mark in marks(node)]
    assert max(places) - min(places) > 250  # of 364


def test_the_histogram_is_the_tally_that_was_given() -> None:
    bars = chart(read(Report(AUDIT, histogram=HISTOGRAM).html), "before").all("g", "b")
    assert [
        int(bar.attributes["data-count"].replace(",", "")) for bar in bars
    ] == HISTOGRAM.counts.tolist()
    assert [
        int(bar.attributes["data-positives"].replace(",", "")) for bar in bars
    ] == HISTOGRAM.positives.tolist()
    np.testing.assert_allclose([bar.number("low") for bar in bars], np.arange(25) / 25)


@pytest.mark.parametrize("n_bins", [150, 1000])
def test_a_fine_histogram_keeps_every_row(n_bins) -> None:
    histogram = Tally.from_data(Partition.fixed_width(n_bins), SCORES, Y)
    bars = chart(read(Report(AUDIT, histogram=histogram).html), "before").all("g", "b")
    assert sum(int(bar.attributes["data-count"].replace(",", "")) for bar in bars) == SCORES.size
    assert sum(int(bar.attributes["data-positives"].replace(",", "")) for bar in bars) == Y.sum()
    assert 50 <= len(bars) <= 100


def test_without_a_histogram_the_regions_are_drawn_as_densities() -> None:
    bars = chart(read(Report(AUDIT).html), "before").all("g", "b")
    assert sum(int(bar.attributes["data-count"].replace(",", "")) for bar in bars) == SCORES.size
    assert sum(int(bar.attributes["data-positives"].replace(",", "")) for bar in bars) == Y.sum()


def test_a_histogram_that_shows_one_bar_of_a_rare_event_gives_way_to_densities() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=20_000) * 0.01
    y = (rng.uniform(size=20_000) < scores).astype(int)
    histogram = Tally.from_data(Partition.fixed_width(25), scores, y)
    assert (
        len(chart(read(Report(audit(y, scores), histogram=histogram).html), "before").all("g", "b"))
        > 5
    )


@pytest.mark.broad
def test_a_thousand_bins_are_all_drawn() -> None:
    result = audit(Y, SCORES, n_bins=1_000)
    page = Report(result, BinningCalibrator(200).fit(SCORES, Y)).html
    assert len(page.encode()) < 1_000_000
    assert len(marks(chart(read(page), "before"))) == finest(result).size == 1_000


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_limits_hold_all_values_and_are_not_mostly_empty(values) -> None:
    low, high = limits_of(values)
    assert 0.0 <= low <= min(values) + 1e-9
    assert max(values) - 1e-9 <= high <= 1.0
    span = max(values) - min(values)
    assert low < high
    assert span < 1e-6 or (low, high) == (0.0, 1.0) or high - low <= 6 * span
    ticks = Axis(low, high, 0.0, 100.0).ticks()
    assert 3 <= len(ticks) <= 11
    for tick in ticks:
        assert tick.at == pytest.approx(100 * (float(tick.label) - low) / (high - low), abs=0.02)
    assert len({tick.label for tick in ticks}) == len(ticks)


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9),
)
def test_some_of_the_diagonal_is_always_in_sight(across, upwards) -> None:
    x, y = common_limits(across, upwards)
    assert max(x[0], y[0]) < min(x[1], y[1])


def contrast(first: str, second: str) -> float:
    def brightness(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((brightness(first), brightness(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_can_be_told_from_the_paper_in_light_dark_and_print() -> None:
    style = (
        resources.files("calibrant.draw.report").joinpath("style.css").read_text(encoding="utf-8")
    )
    themes = [
        {
            name: value if len(value) == 7 else "#" + "".join(2 * c for c in value[1:])
            for name, value in pairs
        }
        for pairs in (
            re.findall(r"--(\w+):(#\w+)", block) for block in re.findall(r":root\{([^}]*)\}", style)
        )
    ]
    assert len(themes) == 3
    for colours in themes:
        for name in ("ink", "quiet", "high", "low", "none", "guaranteed", "third", "fourth"):
            assert contrast(colours[name], colours["paper"]) >= 4.5, name
        for name in ("axis", "positives"):
            assert contrast(colours[name], colours["paper"]) >= 3.0, name
    assert math.isclose(contrast("#ffffff", "#000000"), 21.0)


def test_limits_at_every_score_are_drawn_where_they_were_asked_for() -> None:
    with_limits = Report(audit(Y, SCORES, monotone=True)).html
    assert 'class="rates" points="' in with_limits
    assert "limits at every score" in with_limits
    assert 'class="rates" points="' not in Report(AUDIT).html


def test_the_logit_scale_shows_rare_events() -> None:
    rng = np.random.default_rng(1)
    scores = special.expit(rng.normal(-4, 1.5, size=20_000))
    y = rng.uniform(size=20_000) < scores
    seen = audit(y, scores)
    page = Report(
        seen,
        BinningCalibrator(8).fit(scores, y),
        scale="logit",
        histogram=HISTOGRAM,
    ).html
    node = chart(read(page), "before")
    lines = []
    for name in ("x", "y"):
        ticks = [tick for tick in node.all("text", name) if re.fullmatch(r"[\d.]+%", tick.text)]
        at = np.array([float(tick.attributes[name]) for tick in ticks])
        lines.append(
            np.polynomial.Polynomial.fit(special.logit([number_at(tick) for tick in ticks]), at, 1)
        )
        assert len(ticks) >= 4
    table = seen.table
    rows = table.is_finest & (table.rate > 0)
    expected = np.column_stack(
        [lines[0](special.logit(table.mean_score[rows])), lines[1](special.logit(table.rate[rows]))]
    )
    places = [
        tuple(map(float, re.findall(r"[-\d.]+", mark.attributes["transform"])))
        for mark in marks(node)
    ]
    lowest = max(y for _, y in places)
    inside = sorted(place for place in places if place[1] < lowest)
    assert len(inside) > 10
    for place in inside:
        assert np.abs(expected - place).max(axis=1).min() < 0.1
    with pytest.raises(InvalidValueError, match="scale"):
        Report(seen, scale="log")
