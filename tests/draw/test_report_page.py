"""The page of a report: well formed, by itself, small, and readable by everyone."""

import base64
import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from calibrant import (
    Audit,
    BinningCalibrator,
    Partition,
    PlattCalibrator,
    Report,
    Tally,
    VennAbersCalibrator,
    audit,
)
from calibrant.assess.audit.findings import AuditTable, Finding
from calibrant.errors import InvalidTypeError, InvalidValueError
from worlds.report_pages import (
    AUDIT,
    BY_SEGMENT,
    CALIBRATOR,
    HISTOGRAM,
    SCORES,
    SEGMENTS,
    Y,
    chart,
    finest,
    marks,
    read,
    table_rows,
)

EVERY_KIND = {
    "audit": {},
    "segments": {"calibrator": BinningCalibrator(3).fit(SCORES, Y, segments=SEGMENTS)},
    "guarantee": {"calibrator": CALIBRATOR, "histogram": HISTOGRAM, "title": "Late <flights>"},
    "no guarantee": {
        "calibrator": PlattCalibrator().fit(SCORES, Y),
        "source": {"file": "<a>.csv", "rows": 6000},
    },
    "weaker": {"calibrator": VennAbersCalibrator().fit(SCORES, Y)},
    "few rows": {
        "calibrator": BinningCalibrator(2).fit(SCORES[:12], Y[:12]),
        "warnings": ["the <rows> are few"],
    },
    "many bins": {"calibrator": BinningCalibrator(300).fit(SCORES, Y)},
    "empty bins": {
        "calibrator": BinningCalibrator(9, partition="uniform").fit(SCORES[:200] / 3, Y[:200])
    },
}


@pytest.fixture(scope="module", params=EVERY_KIND)
def page(request) -> str:
    result = BY_SEGMENT if request.param == "segments" else AUDIT
    return Report(result, **EVERY_KIND[request.param]).html


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
    assert not [
        node
        for node in root.all()
        if node.tag in {"link", "img", "iframe", "object", "embed", "base", "form"}
    ]
    assert not [
        node for node in root.all() if "src" in node.attributes or "style" in node.attributes
    ]
    assert "url(" not in page
    assert "@import" not in page


def test_only_its_own_script_may_run(page) -> None:
    root = read(page)
    scripts = root.all("script")
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256("".join(scripts[0].words).encode()).digest()).decode()
    policy = next(node for node in root.all("meta") if "http-equiv" in node.attributes).attributes[
        "content"
    ]
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
    calibrator = BinningCalibrator(1).fit(scores, y, classes=(0, 1))
    histogram = Tally.from_data(Partition.fixed_width(10), scores, y)
    root = read(Report(result, calibrator, histogram=histogram).html)
    assert len(marks(chart(root, "before"))) == finest(result).size
    for node in root.all():
        assert "nan" not in node.attributes.get("d", "") + node.attributes.get("transform", "")


def test_names_of_the_data_stay_text() -> None:
    page = Report(
        BY_SEGMENT,
        BinningCalibrator(3).fit(SCORES, Y, segments=SEGMENTS),
        title="<img src=x onerror=alert(1)>",
        source={"<b>file</b>": "<script>alert(2)</script>", "quote": "\" onload='x'"},
    ).html
    root = read(page)
    assert len(root.all("script")) == 1
    assert root.all("h1")[0].text == "<img src=x onerror=alert(1)>"
    assert not root.all("img")
    assert not root.all("b")
    assert "<script>alert(2)</script>" in root.text
    assert set(np.unique(SEGMENTS)) == {row[0] for row in table_rows(root, "segments-caption")}


def test_the_same_results_give_the_same_page() -> None:
    def make() -> str:
        return Report(
            audit(Y, SCORES), BinningCalibrator(12).fit(SCORES, Y), histogram=HISTOGRAM
        ).html

    assert make() == make()


def huge_audit(n_segments: int, n_bins: int) -> Audit:
    """An audit of very many segments, made up, since a real one takes long."""
    rng = np.random.default_rng(1)
    sizes = [1, 2, n_bins]
    level = np.repeat(np.arange(3), sizes)
    per_segment = np.repeat(np.arange(3), [1, 2, 60])
    segments = [None] * level.size + [
        f"segment {n} {'é' * 20}" for n in range(n_segments) for _ in per_segment
    ]
    labels = np.empty(len(segments), dtype=object)
    labels[:] = segments
    n = len(segments)
    rate = rng.uniform(size=n)
    mean = rng.uniform(size=n)
    lower = np.maximum(rate - 0.1, 0.0)
    upper = np.minimum(rate + 0.1, 1.0)
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
        relative_lower=lower / mean,
        relative_upper=upper / mean,
    )
    found = [
        Finding(
            f"segment {n} {'é' * 20}",
            0.1,
            0.9,
            "scores too high",
            0.9 - n / n_segments / 2,
            10,
            0.5,
            0.4,
        )
        for n in range(n_segments)
    ]
    return replace(BY_SEGMENT, table=table, findings=tuple(found))


@pytest.mark.slow
def test_it_stays_small_and_says_what_is_left_out() -> None:
    parts = Partition.by_segment({f"segment {n}": Partition.fixed_width(4) for n in range(5_000)})
    counts = np.full(20_000, 50)
    calibrator = BinningCalibrator.from_tally(
        parts, Tally.from_counts(counts, counts // 3, partition=parts)
    )
    histogram = Tally.from_data(Partition.fixed_width(1_000), SCORES, Y)
    page = Report(
        huge_audit(5_000, 1_000),
        calibrator,
        histogram=histogram,
        title="x" * 10_000,
        source={f"fact {n}": "y" * 1_000 for n in range(1_000)},
    ).html
    assert len(page.encode()) < 1_000_000
    root = read(page)
    rows = table_rows(root, "segments-caption")
    text = root.text
    assert len(rows) == 1_000
    assert rows[0][0].startswith("segment 0 ")
    assert "4,000 more segments are left out" in text
    assert re.search(r"the first [\d,]+ of 20,000 rows", text)
    assert re.search(r"shows \d+ of 20,000 regions", text)
    assert "940 more facts, left out" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"result": 3}, "result must be a Result"),
        ({"audit_after": 3}, "audit_after must be an Audit"),
        ({"title": 3}, "title must be text"),
        ({"source": 3}, "source must be a mapping"),
        ({"command": 3}, "command must be text"),
        ({"histogram": 3}, "histogram must be a Tally"),
        ({"warnings": "text"}, "warnings must be a list"),
        ({"calibrator": 3}, "calibrator must be a fitted calibrator"),
    ],
)
def test_what_can_not_be_shown_is_refused(arguments, message) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        Report(**{"result": AUDIT, **arguments})


def test_a_histogram_over_other_regions_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"Partition\.fixed_width\(2\)"):
        Report(AUDIT, histogram=Tally.from_data(Partition.from_edges([0.3]), SCORES, Y))


def test_a_calibrator_that_is_not_fitted_is_refused() -> None:
    with pytest.raises(ValueError, match="not fitted"):
        Report(AUDIT, BinningCalibrator())


def test_without_jinja_the_package_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match="pip install jinja2"):
        _ = Report(AUDIT).html


def test_jinja_is_imported_when_a_report_is_made() -> None:
    code = "import sys; from calibrant import Report; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch) -> None:
    path = Report(AUDIT, title="first").write(tmp_path / "report.html")
    assert path == tmp_path / "report.html"
    assert path.read_text(encoding="utf-8") == Report(AUDIT, title="first").html

    def refuse(source, target):
        raise OSError("no space")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match="no space"):
        Report(AUDIT, title="second").write(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    assert "first" in path.read_text(encoding="utf-8")
