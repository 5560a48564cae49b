"""The report, opened in Chromium: nothing is fetched, nothing is complained of, and the numbers can
be reached.
"""

import os
import re
import shutil
from importlib.util import find_spec

import numpy as np
import pytest

from calibrant import BinningCalibrator, Partition, Report, Tally, audit, threshold

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
SCORES = RNG.beta(1.2, 2.4, size=8_000)
Y = (RNG.uniform(size=8_000) < SCORES + 0.15 * np.sin(2 * np.pi * SCORES)).astype(int)
NAMES = [
    "LaGuardia",
    "Newark",
    "Kennedy",
    "a segment with a very long name that goes on and on and on",
    "<i>x</i>",
]
SEGMENTS = RNG.choice(NAMES, size=8_000)


def missing(what: str) -> None:
    message = f"{what} is needed to open the report"
    if "CI" in os.environ:
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="module")
def browser():
    if find_spec("playwright") is None:
        missing("playwright")
    from playwright import sync_api

    found = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if found is None:
        missing("chromium on PATH")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return Report(
        audit(Y, SCORES, segments=SEGMENTS),
        BinningCalibrator(4).fit(SCORES, Y, segments=SEGMENTS),
        title="Late arrivals",
        histogram=Tally.from_data(Partition.fixed_width(40), SCORES, Y),
        source={"file": "a-file-name-without-any-place-to-break-it-" * 3, "fingerprint": "0f" * 32},
    ).write(tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def opened(browser, report):
    """Opens the report, and at the end holds the page to its word: no request, no message."""
    contexts = []
    requests = []
    messages = []

    def start(width: int = 1180, height: int = 900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(report.as_uri())
        return page

    yield start
    for context in contexts:
        context.close()
    assert set(requests) == {report.as_uri()}
    assert messages == []


def numbers(mark) -> list[str]:
    """What the mark holds, by its attributes."""
    return list(mark.evaluate("element => Object.values(element.dataset)"))


def point_at(page, mark) -> None:
    mark.scroll_into_view_if_needed()
    box = mark.locator("use").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


@pytest.mark.parametrize("figure", ["before", "after", "segment-1"])
def test_pointing_at_a_mark_shows_its_exact_numbers(opened, figure) -> None:
    page = opened()
    marks = page.locator(f'svg[aria-labelledby^="{figure}-"] .m').all()
    tip = page.locator("#tip")
    assert not tip.is_visible()
    for mark in marks[:: max(1, len(marks) // 5)]:
        point_at(page, mark)
        assert tip.is_visible()
        shown = tip.locator("dd").all_inner_texts() + tip.locator("strong").all_inner_texts()
        assert sorted(shown) == sorted(numbers(mark))
        box = tip.bounding_box()
        size = page.viewport_size
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= size["width"]
        assert box["y"] + box["height"] <= size["height"]
    page.mouse.move(2, 2)
    assert not tip.is_visible()


def test_pointing_at_a_bar_shows_its_rows(opened) -> None:
    page = opened()
    bar = page.locator('svg[aria-labelledby^="before-"] .b').nth(7)
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2)
    assert sorted(page.locator("#tip dd").all_inner_texts()) == sorted(numbers(bar))


def test_the_keyboard_reaches_every_mark(opened) -> None:
    page = opened()
    figure = page.locator('svg[aria-labelledby^="before-"]')
    for _ in range(30):
        page.keyboard.press("Tab")
        if figure.evaluate("element => element === document.activeElement"):
            break
    else:
        pytest.fail("the figure is not among the first 30 stops of the Tab key")
    marks = figure.locator(".m").all()
    means = sorted(float(mark.get_attribute("data-mean")) for mark in marks)
    seen = []
    for _ in marks:
        page.keyboard.press("ArrowRight")
        labels = page.locator("#tip dt").all_inner_texts()
        seen.append(float(page.locator("#tip dd").nth(labels.index("mean score")).inner_text()))
        assert str(seen[-1]) in page.locator("#spoken").inner_text()
    assert seen == means
    page.keyboard.press("Home")
    assert str(means[0]) in page.locator("#tip").inner_text()
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()


def test_without_scripts_the_marks_have_titles(browser, report) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    html = page.content()
    context.close()
    part = re.search(r'aria-labelledby="before-name.*?</svg>', html, re.DOTALL).group()
    assert part.count('class="m ') == part.count("<title>") > 10


@pytest.mark.parametrize(
    ("width", "scale"),
    [(1180, 1), (590, 2), (360, 3), (320, 2), (820, 1)],
    ids=["desktop", "desktop at 200 %", "phone", "small phone", "tablet"],
)
def test_nothing_sticks_out_at_any_width(opened, width, scale) -> None:
    page = opened(width, 800, device_scale_factor=scale)
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth")
    outside = page.evaluate(
        """() => [...document.querySelectorAll("h1, h2, h3, p, li, dd, dt, figure, summary, .scroll")]
        .filter((element) => element.offsetParent && !element.closest(".unseen, #tip"))
        .filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
        .map((element) => element.textContent.slice(0, 40))"""  # noqa: E501
    )
    assert outside == []


@pytest.mark.parametrize("width", [1180, 360])
def test_no_text_of_a_figure_overlaps_another(opened, width) -> None:
    page = opened(width)
    overlaps = page.evaluate("""() => [...document.querySelectorAll(".chart")].flatMap((chart) => {
          const texts = [...chart.querySelectorAll("text")];
          const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
          return boxes.flatMap(([first, a], place) => boxes.slice(place + 1)
            .filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom - 1 && b.top < a.bottom - 1)
            .map(([second]) => `${first} over ${second}`));
        })""")  # noqa: E501
    assert overlaps == []


def test_figures_are_large_enough_to_read_on_a_phone(opened) -> None:
    sizes = opened(360).evaluate(
        """() => [...document.querySelectorAll(".chart text")].map((text) =>
        parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""
    )
    assert min(sizes) >= 9.0


def colours(page) -> tuple[str, str]:
    style = "getComputedStyle(document.body)"
    return page.evaluate(f"[{style}.backgroundColor, {style}.color]")


def test_it_is_light_or_dark_as_the_reader_likes_and_light_on_paper(opened) -> None:
    light = opened(color_scheme="light")
    dark = opened(color_scheme="dark")
    assert colours(light)[0] == "rgb(255, 255, 255)"
    assert colours(dark)[0] == "rgb(20, 23, 26)"
    assert colours(light)[1] != colours(dark)[1]
    dark.emulate_media(media="print", color_scheme="dark")
    assert colours(dark) == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_it_prints_on_a_few_pages(opened, tmp_path, paper) -> None:
    page = opened(color_scheme="dark")
    path = tmp_path / "report.pdf"
    page.pdf(path=path, format=paper)
    content = path.read_bytes()
    assert content.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 7


def test_a_wide_table_stays_on_the_paper(browser, tmp_path) -> None:
    """Thresholds have many columns; on paper nobody can scroll."""
    found = threshold(Y, SCORES, precision=0.5, npv=0.8, segments=SEGMENTS)
    path = Report(found).write(tmp_path / "wide.html")
    page = browser.new_page(viewport={"width": 680, "height": 900})
    page.goto(path.as_uri())
    page.emulate_media(media="print")
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth")
    page.close()


def test_folded_tables_are_printed_unless_they_are_very_long(browser, tmp_path) -> None:
    path = Report(audit(Y, SCORES, n_bins=100), BinningCalibrator(300).fit(SCORES, Y)).write(
        tmp_path / "long.html"
    )
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.locator("details[open]").count() == 0
    page.pdf(path=tmp_path / "long.pdf")
    assert page.locator("details").evaluate_all("folds => folds.map((fold) => fold.open)") == [
        True,
        False,
    ]
    page.close()


def test_a_table_is_sorted_by_the_column_that_a_reader_clicks(browser, tmp_path) -> None:
    """Subgroups too, which are all listed; numbers by size, and again in the other direction."""
    side = RNG.choice(["left", "right"], size=SCORES.size)
    y = RNG.uniform(size=SCORES.size) < np.clip(
        SCORES + np.where(side == "left", 0.15, -0.15), 0, 1
    )
    attributes = {"side": side, "shop": SEGMENTS}
    found = audit(y, SCORES, attributes=attributes)
    page = browser.new_page()
    page.goto(Report(found).write(tmp_path / "subgroups.html").as_uri())
    table = page.locator('[aria-labelledby="subgroups-caption"] table')
    assert table.locator("tbody tr").count() == found.by_attributes.n_subgroups
    head = table.locator("button.sort", has_text=re.compile("^Rows$"))
    place = head.evaluate("button => button.closest('th').cellIndex + 1")
    for order, sign in (("descending", -1), ("ascending", 1)):
        head.evaluate("button => button.click()")  # it may be in a folded part of the page
        texts = table.locator(f"tbody tr td:nth-child({place})").all_text_contents()
        sizes = [sign * int(text.strip("\u2007 ").replace(",", "")) for text in texts]
        assert sizes == sorted(sizes)
        assert table.locator(f'th[aria-sort="{order}"]').count() == 1
    page.close()


def test_scripts_in_names_do_not_run(opened) -> None:
    page = opened()
    assert page.locator("main i").count() == 0
    assert page.get_by_text("<i>x</i>").count() > 0


def test_its_policy_stops_other_scripts(browser, report) -> None:
    page = browser.new_page()
    page.goto(report.as_uri())
    page.evaluate(
        """() => { const script = document.createElement("script"); script.textContent = "window.ran = true";
        document.body.append(script); }"""  # noqa: E501
    )
    assert page.evaluate("window.ran") is None
    page.close()
