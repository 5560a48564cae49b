"""Look at the built documentation and at every kind of report as readers do, and list what is wrong.

    make look                                                # builds the site, and looks at it
    python tools/look.py site --pictures out/look            # keeps screenshots, and a printed page
    python tools/look.py site guides/audit.html index.html   # these pages only
    PYTHONPATH=src python tools/look.py --reports            # the reports only

Every page is opened from disk in Chromium, 375 pixels wide and dark, and 1400 pixels wide and
light; a page of each kind in all four ways. A page must load nothing from the network, must not be
wider than the window, and must have no serious or critical finding of axe-core. Pictures must be
there. Lists must be lists, and not lines of a paragraph. In the wide window no code scrolls
sideways, no table is cut, a signature has lines of at most 100 characters, and `fit` is the first
method of its class. Search must find something, and the searches of `searches.py` their pages.

The report of every result class is opened at four widths, light and dark. In each statement, such
as the text to copy, the words stand beside their label or below it, and nothing covers anything
else; texts of figures do not overlap; nothing sticks out of the window.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import searches

WIDE = 1400
SCREENS = ((375, "dark"), (WIDE, "light"), (375, "light"), (WIDE, "dark"))
KINDS = (
    "index.html",
    "cases/credit.html",
    "gallery/index.html",
    "guides/audit.html",
    "use/report.html",
    "why/curve.html",
    "study/index.html",
    "reference/command-line.html",
    "reference/api/calibrant.Calibrator.html",
)
"""A page of each kind, which is looked at on all screens.

The others are looked at on the first two.
"""
ABSENT = """() => [...document.images]
    .filter(one => one.complete && !one.naturalWidth)
    .map(one => `no picture ${one.src}`)"""
COLLAPSED = r"""() => [...document.querySelectorAll(".md-content p")]
    .filter(one => {
        const marked = [...one.childNodes].map(node =>
            node.nodeType === Node.TEXT_NODE ? node.textContent : `[${node.textContent}]`).join("")
        return /\n\s*(?:[-*]|1\.) (?:\[|[A-Z][a-z])/.test(marked)
    })
    .map(one => `a list in a paragraph: ${one.textContent.trim().slice(0, 80)}`)"""
TOO_WIDE = """() => {
    const wider = (selector) => [...document.querySelectorAll(`.md-content ${selector}`)]
        .filter(one => one.scrollWidth > one.clientWidth + 1)
        .map(one => one.textContent.trim().slice(0, 80))
    return [
        ...wider("pre > code").map(text => `code scrolls sideways: ${text}`),
        ...wider(".md-typeset__scrollwrap").map(text => `a table is cut: ${text}`),
    ]
}"""
SIGNATURES = r"""() => [...document.querySelectorAll(".doc-signature code")]
    .flatMap(one => one.textContent.split("\n"))
    .filter(line => line.length > 100)
    .map(line => `a long line in a signature: ${line.slice(0, 80)}`)"""
FIT_FIRST = """() => [...document.querySelectorAll(".doc-class")]
    .map(one => [...one.querySelectorAll(":scope .doc-function > .doc-heading")]
        .map(heading => heading.id.split(".").at(-1)))
    .filter(names => names.includes("fit") && names[0] !== "fit")
    .map(names => `fit comes after ${names[0]}`)"""
STATEMENTS = """() => [...document.querySelectorAll(".statement")].flatMap(one => {
    const [label, ...others] = [...one.children].filter(part => part.offsetParent)
        .map(part => ({
            text: part.textContent.trim().slice(0, 60),
            box: part.getBoundingClientRect(),
        }));
    const whole = one.getBoundingClientRect();
    const covers = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
        && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    return others.flatMap((part, place) => [
        part.box.left < label.box.right - 1 && part.box.top < label.box.bottom - 1
            ? [`in the column of the label: ${part.text}`] : [],
        part.text !== "Copy" && part.box.width < Math.min(60, whole.width / 3)
            ? [`squeezed: ${part.text}`] : [],
        part.box.height > 700 && part.text.length < 60 ? [`stretched: ${part.text}`] : [],
        others.slice(place + 1).filter(next => covers(part.box, next.box))
            .map(next => `${part.text} over ${next.text}`),
    ].flat());
})"""
OVERLAPS = """() => [...document.querySelectorAll(".chart")].flatMap(chart => {
    const boxes = [...chart.querySelectorAll("text")].map(text =>
        [text.textContent, text.getBoundingClientRect()]);
    return boxes.flatMap(([first, a], place) => boxes.slice(place + 1)
        .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1
            && a.top < b.bottom - 2 && b.top < a.bottom - 2)
        .map(([second]) => `in a figure, ${first} over ${second}`));
})"""
REPORT_WIDTHS = (375, 768, 1000, WIDE)
EVERYWHERE = (ABSENT, COLLAPSED, STATEMENTS, OVERLAPS)
WHERE_WIDE = (TOO_WIDE, SIGNATURES, FIT_FIRST)


def wrong_with(page: Any, width: int) -> list[str]:
    """What is wrong with a page that is open."""
    from axe_playwright_python.sync_playwright import Axe

    found = [
        f"{violation['id']}: {violation['nodes'][0]['html'][:120]}"
        for violation in Axe().run(page).response["violations"]
        if violation["impact"] in ("serious", "critical")
    ]
    if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
        found.append(f"{wide} pixels wide")
    for script in (*EVERYWHERE, *(WHERE_WIDE if width >= WIDE else ())):
        found += page.evaluate(script)
    return found


def look_at(
    browser: Any, site: Path, names: list[str], screen: tuple[int, str], pictures: Path | None
) -> Iterator[str]:
    """Open pages on one screen, and give what is wrong with them."""
    width, scheme = screen
    window = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = window.new_page()
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    for name in names:
        page.goto((site / name).resolve().as_uri())
        page.wait_for_timeout(100)
        if pictures:
            picture = f"{name.replace('/', '-')}-{width}-{scheme}.png"
            page.screenshot(path=pictures / picture)
        for what in wrong_with(page, width):
            yield f"{name}, {width} pixels, {scheme}: {what}"
    yield from (f"loads {url}" for url in fetched if url.startswith("http"))
    window.close()


def write_reports(folder: Path) -> list[str]:
    """Write the report of each result class, and give their names."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
    from calibrant import Report
    from result_examples import EXAMPLES

    names = []
    for name, example in EXAMPLES.items():
        page = Report(example(), source={"file": "a.csv"}, command="calibrant audit a.csv")
        names.append(page.write(folder / f"{name}.html").name)
    return names


def look_at_reports(browser: Any, pictures: Path | None) -> tuple[int, list[str]]:
    """Open the report of every result class on all screens: how many views, and what is wrong."""
    screens = [(width, scheme) for width in REPORT_WIDTHS for scheme in ("light", "dark")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reports = write_reports(folder)
        wrong = [
            what
            for screen in screens
            for what in look_at(browser, folder, reports, screen, pictures)
        ]
    return len(screens) * len(reports), wrong


def wrong_with_searches(tab: Any, site: Path) -> list[str]:
    """Searches that do not find their page among the first three."""
    worker = next((site / "assets" / "javascripts" / "workers").glob("search.*.js"))
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    source = worker.read_text(encoding="utf-8")
    return searches.missed(searches.found_by_search(tab, source, index, list(searches.SEARCHES)))


def search(browser: Any, site: Path, pictures: Path | None) -> list[str]:
    """Type a word, which must find something, and give the searches that fail; print a page."""
    page = browser.new_page()
    page.goto((site / "index.html").resolve().as_uri())
    page.click(".md-search__input")
    page.keyboard.type("precision", delay=20)
    page.wait_for_selector(".md-search-result__link", timeout=60_000)
    unfound = wrong_with_searches(browser.new_page(), site)
    if pictures:
        page.goto((site / "why" / "shift-and-streams.html").resolve().as_uri())
        page.pdf(path=pictures / "printed.pdf", format="A4")
    return unfound


def look_at_site(
    browser: Any, site: Path, pages: list[str], pictures: Path | None
) -> tuple[int, list[str]]:
    """Open the pages of the site, and search: how many views, and what is wrong."""
    built = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    # 404.html is for servers, not for disks
    names = pages or [name for name in built if name != "404.html"]
    views = 0
    wrong = []
    for number, screen in enumerate(SCREENS):
        chosen = names if number < 2 else [name for name in names if name in KINDS]
        wrong += look_at(browser, site, chosen, screen, pictures)
        views += len(chosen)
    return views, [*wrong, *search(browser, site, pictures)]


def main() -> None:
    """Look at all pages; exit with 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path, nargs="?")
    parser.add_argument("pages", nargs="*", help="some pages; all if none is named")
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--reports", action="store_true", help="reports only")
    options = parser.parse_args()
    if options.site is None and not options.reports:
        parser.error("name the folder of the site, or --reports")
    from playwright.sync_api import sync_playwright

    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    found = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    chromium = next(filter(None, found), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        views, wrong = look_at_reports(browser, options.pictures)
        if options.site is not None:
            seen, more = look_at_site(browser, options.site, options.pages, options.pictures)
            views += seen
            wrong += more
        browser.close()
    for what in wrong:
        print(what)
    print(f"{len(wrong)} findings" if wrong else f"{views} views: nothing serious found")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
