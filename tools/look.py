"""Look at the built documentation as readers do, and list what is wrong with it.

    make look                                                # builds the site, and looks at it
    python tools/look.py site --pictures out/look            # keeps screenshots, and a printed page
    python tools/look.py site how-to/audit.html index.html   # these pages only

Every page is opened from disk in Chromium, 375 pixels wide and dark, and 1280 pixels wide and
light; a page of each kind in all four ways. A page must load nothing from the network, must not be
wider than the window, and must have no serious or critical finding of axe-core. Pictures must be
there. Search must find something.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

SCREENS = ((375, "dark"), (1280, "light"), (375, "light"), (1280, "dark"))
KINDS = (
    "index.html",
    "tutorials/credit.html",
    "gallery/index.html",
    "gallery/reliability.html",
    "how-to/audit.html",
    "how-to/report.html",
    "explanation/edges-and-ties.html",
    "study/index.html",
    "reference/command-line.html",
    "reference/api/calibrators.html",
)
"""A page of each kind, which is looked at on all screens.

The others are looked at on the first two.
"""
ABSENT = "[...document.images].filter(one => one.complete && !one.naturalWidth).map(one => one.src)"


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
    return found + [f"no picture {source}" for source in page.evaluate(ABSENT)]


def main() -> None:
    """Look at all pages; exit with 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("pages", nargs="*", help="some pages; all if none is named")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    built = sorted(
        path.relative_to(options.site).as_posix() for path in options.site.rglob("*.html")
    )
    names = options.pages or [
        name for name in built if name != "404.html"
    ]  # which is for servers, not for disks
    views = 0
    wrong = []
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for number, (width, scheme) in enumerate(SCREENS):
            window = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme
            )
            page = window.new_page()
            fetched: list[str] = []
            page.on("request", lambda request, fetched=fetched: fetched.append(request.url))
            for name in names if number < 2 else [name for name in names if name in KINDS]:
                page.goto((options.site / name).resolve().as_uri())
                page.wait_for_timeout(100)
                if options.pictures:
                    options.pictures.mkdir(parents=True, exist_ok=True)
                    page.screenshot(
                        path=options.pictures / f"{name.replace('/', '-')}-{width}-{scheme}.png"
                    )
                found = [
                    f"{name}, {width} pixels, {scheme}: {what}" for what in wrong_with(page, width)
                ]
                print("\n".join(found), end="\n" if found else "", flush=True)
                wrong += found
                views += 1
            wrong += [f"loads {url}" for url in fetched if url.startswith("http")]
            window.close()
        page = browser.new_page()
        page.goto((options.site / "index.html").resolve().as_uri())
        page.click(".md-search__input")
        page.keyboard.type("precision", delay=20)
        page.wait_for_selector(".md-search-result__link", timeout=60_000)
        if options.pictures:
            page.goto((options.site / "explanation" / "shift.html").resolve().as_uri())
            page.pdf(path=options.pictures / "printed.pdf", format="A4")
        browser.close()
    print(
        f"{len(wrong)} findings" if wrong else f"{views} views and a search: nothing serious found"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
