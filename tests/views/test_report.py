"""The report shows what was computed, says no more than is proved, and holds whatever names the data has."""

import base64
import hashlib
import math
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    Partition,
    PlattCalibrator,
    Tally,
    VennAbersCalibrator,
    audit,
    threshold,
)
from calibrant._audit import Audit, AuditTable, Finding
from calibrant._numbers import lower, nearest, percent, upper
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.views.report import render_report, wording, write_report
from calibrant.views.report.scales import Axis, limits_of, shared_limits

VOID = {"meta", "br"}
RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=6_000)
Y = (RNG.uniform(size=6_000) < SCORES + 0.15 * np.sin(2 * np.pi * SCORES)).astype(int)
SEGMENTS = np.where(RNG.uniform(size=6_000) < 0.3, "north & <b>south</b>", "</script><script>alert(1)</script>")
AUDIT = audit(Y, SCORES)
BY_SEGMENT = audit(Y, SCORES, segments=SEGMENTS)
CALIBRATOR = BinningCalibrator(12).fit(SCORES, Y)
HISTOGRAM = Tally.from_data(Partition.fixed_width(25), SCORES, Y)


@dataclass(repr=False)
class Node:
    tag: str
    attributes: dict[str, str]
    parent: "Node | None"
    children: list["Node"] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def text(self) -> str:
        return " ".join("".join(self._pieces()).split())

    def _pieces(self) -> list[str]:
        return [piece for part in self.words for piece in ([part] if isinstance(part, str) else [" ", *part._pieces()])]

    def all(self, tag: str | None = None, kind: str | None = None) -> list["Node"]:
        found = []
        for child in self.children:
            if (tag is None or child.tag == tag) and (kind is None or kind in child.classes):
                found.append(child)
            found += child.all(tag, kind)
        return found

    def number(self, name: str) -> float:
        return float(self.attributes[f"data-{name}"])


class Reader(HTMLParser):
    """A strict reader: every tag that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.root = self.here = Node("document", {}, None)

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len(dict(attrs)), f"an attribute twice in <{tag}>"
        node = Node(tag, {name: value or "" for name, value in attrs}, self.here)
        self.here.children.append(node)
        self.here.words.append(node)
        if tag not in VOID:
            self.here = node

    def handle_startendtag(self, tag, attrs):
        before = self.here
        self.handle_starttag(tag, attrs)
        self.here = before

    def handle_endtag(self, tag):
        assert self.here.tag == tag, f"</{tag}> closes <{self.here.tag}>"
        self.here = self.here.parent

    def handle_data(self, data):
        self.here.words.append(data)


def read(page: str) -> Node:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.here is reader.root
    return reader.root


def chart(root: Node, name: str) -> Node:
    return next(node for node in root.all("svg", "chart") if node.attributes["aria-labelledby"].startswith(f"{name}-"))


def marks(node: Node) -> list[Node]:
    return node.all("g", "m")


def shown(nodes: list[Node], names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What the nodes say of themselves, sorted."""
    return sorted(tuple(node.attributes[f"data-{name}"] for name in names) for node in nodes)


def written(columns: dict, rows: np.ndarray) -> list[tuple[str, ...]]:
    """Columns of numbers as the report writes them: limits rounded outwards, estimates to the nearest, counts whole."""
    return sorted(zip(*(map(write, column[rows].tolist()) for column, write in columns.values()), strict=True))


def whole(count: int) -> str:
    return f"{count:,}"


AUDIT_COLUMNS = {
    "low": nearest,
    "high": nearest,
    "counts": whole,
    "mean_score": nearest,
    "rate": nearest,
    "lower": lower,
    "upper": upper,
    "error": lower,
}
AUDIT_NAMES = ("low", "high", "count", "mean", "rate", "lower", "upper", "error")


def audit_lines(result: Audit, rows: np.ndarray) -> list[tuple[str, ...]]:
    return written({name: (getattr(result.table, name), write) for name, write in AUDIT_COLUMNS.items()}, rows)


def finest(result: Audit) -> np.ndarray:
    everyone = np.array([segment is None for segment in result.table.segment])
    return np.flatnonzero(result.table.is_finest & everyone)


def test_the_figure_before_shows_the_numbers_of_the_audit() -> None:
    for result in (AUDIT, BY_SEGMENT):
        drawn = marks(chart(read(render_report(result)), "before"))
        rows = finest(result)
        assert shown(drawn, AUDIT_NAMES) == audit_lines(result, rows)
        verdicts = Counter(result.table.verdict[row] for row in rows)
        assert Counter(node.attributes["data-verdict"] for node in drawn) == verdicts
        assert len(verdicts) == 3


def test_the_figure_after_shows_the_numbers_of_the_guarantee() -> None:
    drawn = marks(chart(read(render_report(AUDIT, CALIBRATOR)), "after"))
    guarantee = CALIBRATOR.guarantee_
    formats = {"counts": whole, "positives": whole, "value": nearest, "lower": lower, "upper": upper, "radius": upper}
    columns = {name: (getattr(guarantee, name), write) for name, write in formats.items()}
    names = ("count", "positives", "value", "lower", "upper", "radius")
    assert shown(drawn, names) == written(columns, np.arange(guarantee.counts.size))


def test_an_audit_of_the_calibrated_scores_is_drawn_over_the_guarantee() -> None:
    fresh = RNG.uniform(size=5_000)
    after = audit(RNG.uniform(size=5_000) < fresh**2, CALIBRATOR.predict(fresh))
    drawn = marks(chart(read(render_report(AUDIT, CALIBRATOR, audit_after=after)), "after"))
    checks = [node for node in drawn if "promise" not in node.classes]
    rows = finest(after)
    assert shown(checks, AUDIT_NAMES) == audit_lines(after, rows)
    assert len(drawn) == rows.size + len(CALIBRATOR.guarantee_.regions)


def axis_of(node: Node, name: str) -> tuple[float, float]:
    """From two ticks, the line that leads from numbers to places."""
    ticks = [tick for tick in node.all("text", name) if "label" not in tick.classes]
    values = [float(tick.text) for tick in ticks]
    places = [float(tick.attributes[name]) for tick in ticks]
    slope = (places[-1] - places[0]) / (values[-1] - values[0])
    return slope, places[0] - slope * values[0]


@pytest.mark.parametrize("name", ["before", "after", "segment-1"])
def test_marks_stand_where_the_ticks_say(name) -> None:
    node = chart(read(render_report(BY_SEGMENT, CALIBRATOR)), name)
    (x_slope, x_start), (y_slope, y_start) = axis_of(node, "x"), axis_of(node, "y")
    assert x_slope > 0 > y_slope
    table, guarantee = BY_SEGMENT.table, CALIBRATOR.guarantee_
    if name == "after":
        columns = np.column_stack([guarantee.value, guarantee.value, guarantee.lower, guarantee.upper])
    else:
        found = [None, *(finding.segment for finding in BY_SEGMENT.findings if finding.segment is not None)]
        first = found[name == "segment-1"]
        rows = table.is_finest & np.array([segment == first for segment in table.segment])
        columns = np.column_stack([table.mean_score, table.rate, table.lower, table.upper])[rows]
    places = []
    for mark in marks(node):
        x, y = map(float, re.findall(r"[-\d.]+", mark.attributes["transform"]))
        top, bottom = map(float, re.fullmatch(r"M0 (\S+)V(\S+)", mark.all("path", "w")[0].attributes["d"]).groups())
        places.append([x, y, y + bottom, y + top])
    expected = columns * [x_slope, y_slope, y_slope, y_slope] + [x_start, y_start, y_start, y_start]
    np.testing.assert_allclose(sorted(places), expected[np.argsort(expected[:, 0])], atol=0.05)


@pytest.mark.parametrize("rate", ["as scored", "rare", "low", "constant"])
def test_the_diagonal_is_where_rate_and_score_agree(rate) -> None:
    scores = RNG.uniform(size=20_000) * (0.01 if rate == "rare" else 1.0)
    truth = {"low": 0.004, "constant": 0.6}.get(rate, scores)
    node = chart(read(render_report(audit(RNG.uniform(size=20_000) < truth, scores))), "before")
    (x_slope, x_start), (y_slope, y_start) = axis_of(node, "x"), axis_of(node, "y")
    x1, y1, x2, y2 = map(float, re.findall(r"-?[\d.]+", node.all("path", "diagonal")[0].attributes["d"]))
    for x, y in ((x1, y1), (x2, y2)):
        assert (x - x_start) / x_slope == pytest.approx((y - y_start) / y_slope, abs=0.001)
        assert 50 <= x <= 428
        assert 34 <= y <= 412
    assert x2 > x1


def test_a_rare_event_is_not_drawn_in_a_corner_of_an_empty_square() -> None:
    scores = RNG.uniform(size=20_000) * 0.01
    node = chart(read(render_report(audit(RNG.uniform(size=20_000) < scores, scores))), "before")
    places = [float(re.findall(r"[\d.]+", mark.attributes["transform"])[0]) for mark in marks(node)]
    assert max(places) - min(places) > 250  # of 364


def test_the_histogram_is_the_tally_that_was_given() -> None:
    bars = chart(read(render_report(AUDIT, histogram=HISTOGRAM)), "before").all("g", "b")
    assert [int(bar.attributes["data-count"].replace(",", "")) for bar in bars] == HISTOGRAM.counts.tolist()
    assert [int(bar.attributes["data-positives"].replace(",", "")) for bar in bars] == HISTOGRAM.positives.tolist()
    np.testing.assert_allclose([bar.number("low") for bar in bars], np.arange(25) / 25)


@pytest.mark.parametrize("n_bins", [150, 1000])
def test_a_fine_histogram_keeps_every_row(n_bins) -> None:
    histogram = Tally.from_data(Partition.fixed_width(n_bins), SCORES, Y)
    bars = chart(read(render_report(AUDIT, histogram=histogram)), "before").all("g", "b")
    assert sum(int(bar.attributes["data-count"].replace(",", "")) for bar in bars) == SCORES.size
    assert sum(int(bar.attributes["data-positives"].replace(",", "")) for bar in bars) == Y.sum()
    assert 50 <= len(bars) <= 100


def test_without_a_histogram_the_regions_are_drawn_as_densities() -> None:
    bars = chart(read(render_report(AUDIT)), "before").all("g", "b")
    assert sum(int(bar.attributes["data-count"].replace(",", "")) for bar in bars) == SCORES.size
    assert sum(int(bar.attributes["data-positives"].replace(",", "")) for bar in bars) == Y.sum()


def test_a_histogram_that_shows_one_bar_of_a_rare_event_gives_way_to_densities() -> None:
    scores = RNG.uniform(size=20_000) * 0.01
    y = (RNG.uniform(size=20_000) < scores).astype(int)
    histogram = Tally.from_data(Partition.fixed_width(25), scores, y)
    assert len(chart(read(render_report(audit(y, scores), histogram=histogram)), "before").all("g", "b")) > 5


def test_key_numbers_are_rounded_to_the_side_on_which_they_stay_true() -> None:
    discrete = np.round(SCORES, 1)
    result = audit(RNG.uniform(size=6_000) < 0.7 * discrete, discrete)
    values = [
        node for node in read(render_report(result, CALIBRATOR)).all("span", "value") if "data-exact" in node.attributes
    ]
    exact = [node.number("exact") for node in values]
    assert exact == [result.lower_bound, result.average_lower_bound, result.upper_bound, CALIBRATOR.guarantee_.epsilon]
    shown = [float(node.text) for node in values]
    assert shown[0] <= exact[0]
    assert shown[1] <= exact[1]
    assert shown[2] >= exact[2]
    assert shown[3] >= exact[3]
    np.testing.assert_allclose(shown, exact, rtol=0.1)


def table_rows(root: Node, caption: str) -> list[list[str]]:
    table = next(node for node in root.all("table") if any(c.attributes["id"] == caption for c in node.all("caption")))
    return [[cell.text for cell in row.children] for row in table.all("tbody")[0].all("tr")]


def test_the_table_before_lists_the_finest_regions() -> None:
    rows = table_rows(read(render_report(AUDIT)), "before-caption")
    table, chosen = AUDIT.table, finest(AUDIT)
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
    rows = table_rows(read(render_report(AUDIT, CALIBRATOR)), "after-caption")
    guarantee = CALIBRATOR.guarantee_
    assert [row[0] for row in rows] == [wording.region_name(name) for name in guarantee.regions]
    assert all(float(row[4]) <= lower for row, lower in zip(rows, guarantee.lower, strict=True))
    assert all(float(row[5]) >= upper for row, upper in zip(rows, guarantee.upper, strict=True))
    assert all(float(row[6]) >= radius for row, radius in zip(rows, guarantee.radius, strict=True))


def test_segments_stand_worst_first() -> None:
    groups = np.array([f"group {number}" for number in range(8)])[RNG.integers(0, 8, size=16_000)]
    scores = RNG.uniform(0.3, 0.7, size=16_000)
    shift = {"group 3": 0.25, "group 5": -0.15, "group 1": 0.3}
    y = RNG.uniform(size=16_000) < scores + np.array([shift.get(group, 0.0) for group in groups])
    result = audit(y, scores, segments=groups)
    root = read(render_report(result))
    rows = table_rows(root, "segments-caption")
    found = [finding for finding in result.findings if finding.segment is not None]
    assert [row[0] for row in rows[:3]] == [finding.segment for finding in found] == ["group 1", "group 3", "group 5"]
    assert [row[2] for row in rows[:4]] == ["too low", "too low", "too high", "no evidence"]
    assert all(float(row[3]) <= finding.error for row, finding in zip(rows, found, strict=False))
    assert len(rows) == 8
    first = {result.table.segment[row]: row for row in np.flatnonzero(result.table.resolution == 0)}
    for name, bar in zip([row[0] for row in rows], root.all("svg", "range"), strict=True):
        row = first[name]
        limits = f"{lower(result.table.lower[row])} and {upper(result.table.upper[row])}"
        assert bar.all("title")[0].text == f"mean score {nearest(result.table.mean_score[row])}, rate between {limits}"
    drawn = marks(chart(root, "segment-1"))
    worst = np.flatnonzero(result.table.is_finest & (result.table.segment == "group 1"))
    assert shown(drawn, AUDIT_NAMES) == audit_lines(result, worst)


def test_without_segments_there_is_no_section_on_them() -> None:
    assert "Segments, largest error first" not in render_report(AUDIT)


EVERY_KIND = {
    "audit": {},
    "segments": {"calibrator": BinningCalibrator(3).fit(SCORES, Y, segments=SEGMENTS)},
    "promise": {"calibrator": CALIBRATOR, "histogram": HISTOGRAM, "title": "Late <flights>"},
    "no promise": {"calibrator": PlattCalibrator().fit(SCORES, Y), "source": {"file": "<a>.csv", "rows": 6000}},
    "weaker": {"calibrator": VennAbersCalibrator().fit(SCORES, Y)},
    "few rows": {"calibrator": BinningCalibrator(2).fit(SCORES[:12], Y[:12])},
    "many bins": {"calibrator": BinningCalibrator(300).fit(SCORES, Y)},
    "empty bins": {"calibrator": BinningCalibrator(9, strategy="uniform").fit(SCORES[:200] / 3, Y[:200])},
}  # fmt: skip


@pytest.fixture(scope="module", params=EVERY_KIND)
def page(request) -> str:
    result = BY_SEGMENT if request.param == "segments" else AUDIT
    return render_report(result, **EVERY_KIND[request.param])


def test_it_is_well_formed(page) -> None:
    root = read(page)
    ids = [node.attributes["id"] for node in root.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in root.all():
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(node.attributes.get(name, "").split()) <= set(ids)
        if node.attributes.get("href", "").startswith("#"):
            assert node.attributes["href"][1:] in ids


def test_it_can_be_read_aloud(page) -> None:
    root = read(page)
    assert root.all("html")[0].attributes["lang"] == "en"
    assert [len(root.all(tag)) for tag in ("h1", "main", "header", "footer")] == [1, 1, 1, 1]
    levels = [int(node.tag[1]) for node in root.all() if re.fullmatch(r"h[1-6]", node.tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(node.text for node in root.all() if re.fullmatch(r"h[1-6]", node.tag))
    for table in root.all("table"):
        assert table.all("caption")[0].text
        assert all("scope" in cell.attributes for cell in table.all("th"))
        assert all(row.children[0].tag == "th" for row in table.all("tr"))
    for node in root.all("svg", "chart"):
        assert node.attributes["role"] == "img"
        assert [part.tag for part in node.children[:2]] == ["title", "desc"]
        assert all(part.text for part in node.children[:2])
    assert root.all("a", "skip")[0].attributes["href"] == "#main"


def test_it_needs_nothing_from_outside(page) -> None:
    assert "http" not in page.replace("http-equiv", "")
    root = read(page)
    assert not [node for node in root.all() if node.tag in {"link", "img", "iframe", "object", "embed", "base", "form"}]
    assert not [node for node in root.all() if "src" in node.attributes or "style" in node.attributes]
    assert "url(" not in page
    assert "@import" not in page


def test_only_its_own_script_may_run(page) -> None:
    root = read(page)
    scripts = root.all("script")
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256("".join(scripts[0].words).encode()).digest()).decode()
    policy = next(node for node in root.all("meta") if "http-equiv" in node.attributes).attributes["content"]
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not [name for node in root.all() for name in node.attributes if name.startswith("on")]


def test_it_names_no_label_of_a_paper_and_no_empty_value(page) -> None:
    text = read(page).text
    assert not re.search(r"\b(thm|cor|eq):", text)
    assert not re.search(r"\b(None|nan|NaN|undefined)\b", read(page).all("main")[0].text)


@pytest.mark.broad
@pytest.mark.parametrize(
    ("scores", "y"),
    [
        ([0.3], [1]),
        ([0.3] * 40, [0, 1] * 20),
        ([0.0, 1.0] * 100, [0, 1] * 100),
        ([0.0] * 50, [0] * 50),
        ([1e-12, 2e-12, 3e-12] * 30, [0] * 90),
        ([0.1, 0.9, 0.5], [0, 1, 1]),
    ],
    ids=["one row", "one score", "only 0 and 1", "never", "next to nothing", "three rows"],
)
def test_odd_data_can_be_shown(scores, y) -> None:
    result = audit(y, scores, classes=(0, 1))
    calibrator = BinningCalibrator(1, classes=(0, 1)).fit(scores, y)
    histogram = Tally.from_data(Partition.fixed_width(10), scores, y)
    root = read(render_report(result, calibrator, histogram=histogram))
    assert len(marks(chart(root, "before"))) == finest(result).size
    for node in root.all():
        assert "nan" not in node.attributes.get("d", "") + node.attributes.get("transform", "")


def test_a_classifier_is_shown_by_its_guarantee() -> None:
    from sklearn.linear_model import LogisticRegression

    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(SCORES[:, None], Y)
    assert model.guarantee_.sentence() in read(render_report(AUDIT, model)).text


def test_names_of_the_data_stay_text() -> None:
    page = render_report(
        BY_SEGMENT,
        BinningCalibrator(3).fit(SCORES, Y, segments=SEGMENTS),
        title="<img src=x onerror=alert(1)>",
        source={"<b>file</b>": "<script>alert(2)</script>", "quote": "\" onload='x'"},
    )
    root = read(page)
    assert len(root.all("script")) == 1
    assert root.all("h1")[0].text == "<img src=x onerror=alert(1)>"
    assert not root.all("img")
    assert not root.all("b")
    assert "<script>alert(2)</script>" in root.text
    assert set(np.unique(SEGMENTS)) == {row[0] for row in table_rows(root, "segments-caption")}


def test_the_same_results_give_the_same_page() -> None:
    def make() -> str:
        return render_report(audit(Y, SCORES), BinningCalibrator(12).fit(SCORES, Y), histogram=HISTOGRAM)

    assert make() == make()


def huge_audit(n_segments: int, n_bins: int) -> Audit:
    """An audit of very many segments, made up, since a real one takes long."""
    rng = np.random.default_rng(1)
    sizes = [1, 2, n_bins]
    level = np.repeat(np.arange(3), sizes)
    per_segment = np.repeat(np.arange(3), [1, 2, 60])
    segments = [None] * level.size + [f"segment {n} {'é' * 20}" for n in range(n_segments) for _ in per_segment]
    labels = np.empty(len(segments), dtype=object)
    labels[:] = segments
    n = len(segments)
    rate, mean = rng.uniform(size=n), rng.uniform(size=n)
    lower, upper = np.maximum(rate - 0.1, 0.0), np.minimum(rate + 0.1, 1.0)
    table = AuditTable(
        segment=labels,
        resolution=np.concatenate([level, np.tile(per_segment, n_segments)]),
        low=mean * 0.9,
        high=mean,
        counts=rng.integers(1, 10_000, size=n),
        mean_score=mean,
        rate=rate,
        lower=lower,
        upper=upper,
        error=np.maximum(np.maximum(lower - mean, mean - upper), 0.0),
    )
    found = [
        Finding(f"segment {n} {'é' * 20}", 0.1, 0.9, "scores too high", 0.9 - n / n_segments / 2, 10, 0.5, 0.4)
        for n in range(n_segments)
    ]
    return replace(BY_SEGMENT, table=table, findings=tuple(found))


@pytest.mark.slow
def test_it_stays_small_and_says_what_is_left_out() -> None:
    parts = Partition.by_segment({f"segment {n}": Partition.fixed_width(4) for n in range(5_000)})
    counts = np.full(20_000, 50)
    calibrator = BinningCalibrator.from_tally(parts, Tally.from_counts(counts, counts // 3, partition=parts))
    histogram = Tally.from_data(Partition.fixed_width(1_000), SCORES, Y)
    page = render_report(huge_audit(5_000, 1_000), calibrator, histogram=histogram, title="x" * 10_000, source={
        f"fact {n}": "y" * 1_000 for n in range(1_000)})  # fmt: skip
    assert len(page.encode()) < 1_000_000
    root = read(page)
    rows, text = table_rows(root, "segments-caption"), root.text
    assert len(rows) == 1_000
    assert rows[0][0].startswith("segment 0 ")
    assert "4,000 more segments are left out" in text
    assert "regions with narrower intervals are left out" in text
    assert re.search(r"\d+ of 20,000 regions are drawn", text)
    assert "940 more facts, left out" in text


@pytest.mark.broad
def test_a_thousand_bins_are_all_drawn() -> None:
    result = audit(Y, SCORES, n_bins=1_000)
    page = render_report(result, BinningCalibrator(200).fit(SCORES, Y))
    assert len(page.encode()) < 1_000_000
    assert len(marks(chart(read(page), "before"))) == finest(result).size == 1_000


def test_three_verdicts_have_three_headlines() -> None:
    rng = np.random.default_rng(3)
    assert wording.headline(AUDIT).text.startswith(
        "These scores are proved miscalibrated: somewhere they are off by at"
    )
    assert wording.headline(AUDIT).text.endswith(f" {lower(AUDIT.lower_bound)} (95%\u00a0confidence).")
    calibrated = rng.uniform(size=6_000) < SCORES
    assert "no evidence" in wording.headline(audit(calibrated, SCORES)).text
    values = np.tile([0.2, 0.5, 0.8], 2_000)
    y = rng.uniform(size=6_000) < values
    assert "proved nearly right" in wording.headline(audit(y, values)).text


@pytest.mark.parametrize("shift", [(0.2, -0.2), (0.25, 0.1)], ids=["errors cancel", "errors add up"])
def test_what_is_proved_of_a_segment_is_not_said_of_the_score_alone(shift) -> None:
    groups = np.repeat(["a", "b"], 5_000)
    scores = RNG.uniform(0.3, 0.7, size=10_000)
    result = audit(RNG.uniform(size=10_000) < scores + np.where(groups == "a", *shift), scores, segments=groups)
    assert result.worst.segment == "a" if shift[1] > 0 else result.worst.segment in {"a", "b"}
    text = read(render_report(result)).text
    within = result.within_segments
    assert f"Within a segment the scores are off by at least {lower(within.lower_bound)}." in text
    assert (
        f"On average, within their segments, the scores are off by at least {lower(within.average_lower_bound)}" in text
    )
    if shift[1] < 0:
        assert "Within their segments, these scores are proved miscalibrated" in text
        assert "Over all segments together, no error is proved." in text
        assert "Somewhere the scores" not in text
    else:
        assert f"Somewhere the scores are off by at least {lower(result.lower_bound)}." in text
        assert f"Within a segment they are off by at least {lower(within.lower_bound)}." in text


def test_the_promise_is_the_guarantees_own_sentence() -> None:
    assert CALIBRATOR.guarantee_.sentence() in read(render_report(AUDIT, CALIBRATOR)).text
    assert "No calibrator was given" in render_report(AUDIT)


def test_a_calibrator_without_a_promise_is_said_to_have_none() -> None:
    root = read(render_report(AUDIT, PlattCalibrator().fit(SCORES, Y)))
    assert "No guarantee" in root.text
    assert "There is no figure here, because there is no guarantee." in root.text
    assert "Theorem 3" in root.text
    assert [node.attributes["aria-labelledby"].split("-")[0] for node in root.all("svg", "chart")] == ["before"]


def test_a_promise_that_is_not_proved_is_not_listed_as_proved() -> None:
    calibrator = BinningCalibrator(12).fit(SCORES, Y)
    calibrator.guarantee_ = calibrator.guarantee_.with_caveat("folds were used")
    text = read(render_report(AUDIT, calibrator)).text
    assert "Not proved" in text
    assert "folds were used" in text
    assert "After calibration the true rate is within" not in text
    assert "After calibration the true rate is within" in read(render_report(AUDIT, CALIBRATOR)).text


@pytest.mark.broad
def test_it_says_what_is_assumed_and_what_no_one_can_know() -> None:
    text = read(render_report(AUDIT, CALIBRATOR)).text
    for assumption in (*AUDIT.assumptions, *CALIBRATOR.guarantee_.assumptions):
        assert wording.sentence(assumption) in text
    assert AUDIT.upper_bound_reason in text
    assert "no method can bound the error of a continuous score at every value" in text
    values = np.tile([0.2, 0.5, 0.8], 2_000)
    bounded = audit(RNG.uniform(size=6_000) < values, values)
    assert "values that were never seen" in read(render_report(bounded)).text


def test_it_says_how_it_was_computed() -> None:
    source = {"file": "flights.parquet", "rows": 6000, "fingerprint": "abc123", "columns": ["p", "late"]}
    text = read(render_report(AUDIT, CALIBRATOR, source=source)).text
    for said in ("flights.parquet", "6,000", "abc123", "p, late", CALIBRATOR.partition_.fingerprint, "Hoeffding 1956",
                 CALIBRATOR.guarantee_.theorem, f"numpy {np.__version__}", "calibrant 0."):  # fmt: skip
        assert said in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"audit": 3}, "audit must be an Audit"),
        ({"audit_after": 3}, "audit_after must be an Audit"),
        ({"title": 3}, "title must be text"),
        ({"source": 3}, "source must be a mapping"),
        ({"histogram": 3}, "histogram must be a Tally"),
        ({"calibrator": 3}, "calibrator must be a fitted calibrator"),
    ],
)
def test_what_can_not_be_shown_is_refused(arguments, message) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        render_report(**{"audit": AUDIT, **arguments})


def test_a_histogram_over_other_regions_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"Partition\.fixed_width\(2\)"):
        render_report(AUDIT, histogram=Tally.from_data(Partition.from_edges([0.3]), SCORES, Y))


def test_a_calibrator_that_is_not_fitted_is_refused() -> None:
    with pytest.raises(ValueError, match="not fitted"):
        render_report(AUDIT, BinningCalibrator())


def test_without_jinja_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"calibrant\[report\]"):
        render_report(AUDIT)


def test_jinja_is_imported_when_a_report_is_made() -> None:
    code = "import sys; from calibrant.views.report import render_report; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch) -> None:
    path = write_report(tmp_path / "report.html", AUDIT, title="first")
    assert path == tmp_path / "report.html"
    assert path.read_text(encoding="utf-8") == render_report(AUDIT, title="first")

    def refuse(source, target):
        raise OSError("no space")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match="no space"):
        write_report(path, AUDIT, title="second")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    assert "first" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("epsilon", [0.07, 0.29, 0.000712345])
def test_epsilon_reads_the_same_everywhere(epsilon) -> None:
    guarantee = CALIBRATOR.guarantee_
    nothing = np.zeros_like(guarantee.value)
    calibrator = BinningCalibrator(12).fit(SCORES, Y)
    calibrator.guarantee_ = replace(guarantee, value=nothing, lower=nothing, upper=nothing + epsilon, mass_limits=None)
    text = upper(epsilon)
    root = read(render_report(AUDIT, calibrator))
    assert {mark.attributes["data-radius"] for mark in marks(chart(root, "after"))} == {text}
    assert {row[6] for row in table_rows(root, "after-caption")} == {text}
    assert [node.text for node in root.all("span", "value")][-1] == text
    assert f"the true rate is within {text} of the predicted probability" in root.text
    assert f"The strip reaches {text} to both sides" in root.text
    assert len(re.findall(rf"(?<![\d.]){re.escape(text)}(?!\d)", root.all("p", "guarantee")[0].text)) == 1


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
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9)
)  # fmt: skip
def test_some_of_the_diagonal_is_always_in_sight(across, upwards) -> None:
    x, y = shared_limits(across, upwards)
    assert max(x[0], y[0]) < min(x[1], y[1])


def contrast(first: str, second: str) -> float:
    def brightness(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((brightness(first), brightness(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_can_be_told_from_the_paper_in_light_dark_and_print() -> None:
    style = resources.files("calibrant.views.report").joinpath("style.css").read_text(encoding="utf-8")
    themes = [
        {name: value if len(value) == 7 else "#" + "".join(2 * c for c in value[1:]) for name, value in pairs}
        for pairs in (re.findall(r"--(\w+):(#\w+)", block) for block in re.findall(r":root\{([^}]*)\}", style))
    ]
    assert len(themes) == 3
    for colours in themes:
        for name in ("ink", "quiet", "high", "low", "none", "promise", "third", "fourth"):
            assert contrast(colours[name], colours["paper"]) >= 4.5, name
        for name in ("axis", "positives"):
            assert contrast(colours[name], colours["paper"]) >= 3.0, name
    assert math.isclose(contrast("#ffffff", "#000000"), 21.0)


def test_a_promise_that_leaves_regions_out_is_told_the_same_everywhere() -> None:
    rng = np.random.default_rng(3)
    scores = np.round(rng.uniform(size=30_000), 5)  # ties make small regions of single values
    y = rng.uniform(size=30_000) < scores
    fitted = BinningCalibrator(n_bins=10, split=None).fit(scores, y)
    stated = fitted.guarantee_.stated
    assert not stated.kept.all()
    assert stated.epsilon < 0.1 < fitted.guarantee_.epsilon
    text = read(render_report(audit(y, scores), fitted)).text
    told = upper(stated.epsilon)
    assert f"is within {told} of the predicted probability in {int(stated.kept.sum())} of" in text
    assert f"for at least {percent(stated.mass)} of the population" in text
    assert f"Over all regions the bound is {upper(fitted.guarantee_.epsilon)}" in text


def test_limits_at_every_score_are_drawn_where_they_were_asked_for() -> None:
    with_limits = render_report(audit(Y, SCORES, monotone=True))
    assert 'class="rates" points="' in with_limits
    assert "limits at every score" in with_limits
    assert 'class="rates" points="' not in render_report(AUDIT)


def test_the_logit_scale_shows_rare_events_with_their_thresholds() -> None:
    rng = np.random.default_rng(1)
    scores = special.expit(rng.normal(-4, 1.5, size=20_000))
    y = rng.uniform(size=20_000) < scores
    found = threshold(y, scores, precision=0.2, npv=0.99)
    seen = audit(y, scores)
    page = render_report(
        seen, BinningCalibrator(8).fit(scores, y), scale="logit", thresholds=found, histogram=HISTOGRAM
    )
    node = chart(read(page), "before")
    lines = []
    for name in ("x", "y"):
        ticks = [tick for tick in node.all("text", name) if re.fullmatch(r"[\d.]+", tick.text)]
        at = np.array([float(tick.attributes[name]) for tick in ticks])
        lines.append(np.polynomial.Polynomial.fit(special.logit([float(tick.text) for tick in ticks]), at, 1))
        assert len(ticks) >= 4
    table = seen.table
    rows = table.is_finest & (table.rate > 0)
    expected = np.column_stack(
        [lines[0](special.logit(table.mean_score[rows])), lines[1](special.logit(table.rate[rows]))]
    )
    places = [tuple(map(float, re.findall(r"[-\d.]+", mark.attributes["transform"]))) for mark in marks(node)]
    lowest = max(y for _, y in places)
    inside = sorted(place for place in places if place[1] < lowest)
    assert len(inside) > 10
    for place in inside:
        assert np.abs(expected - place).max(axis=1).min() < 0.1
    drawn = [float(re.match(r"M([\d.]+) ", rule.attributes["d"])[1]) for rule in node.all("path", "rule")]
    cuts = sorted(cut.threshold for cut in found.cuts)
    assert sorted(drawn) == pytest.approx(lines[0](special.logit(cuts)).tolist(), abs=0.1)
    assert [span.attributes["class"] for span in node.all("rect", "span")] == ["span chosen", "span refer"]
    assert "precision 0.2: " in page
    assert 'class="rule' not in render_report(seen)
    for wrong in ({"scale": "log"}, {"thresholds": 0.5}):
        with pytest.raises((InvalidTypeError, InvalidValueError), match=next(iter(wrong))):
            render_report(seen, **wrong)


def test_thresholds_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="thresholds must be a finite number; got 'high'"):
        render_report(AUDIT, thresholds={"alert": "high"})
