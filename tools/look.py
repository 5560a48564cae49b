"""Look at the built documentation as readers do, and list what is wrong with it.

    make docs
    python -m venv look && look/bin/pip install playwright axe-playwright-python
    look/bin/python tools/look.py site --pictures out/look

Every kind of page is opened from disk in Chromium, 375 and 1280 pixels wide, light and dark. A page must load nothing
from the network, must not be wider than the window, and must have no serious or critical finding of axe-core. Search
must find something. `--pictures` keeps screenshots, and a printed page.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

PAGES = (
    "index.html",
    "tutorials/index.html",
    "gallery/index.html",
    "how-to/audit.html",
    "how-to/regulator.html",
    "explanation/index.html",
    "explanation/edges-and-ties.html",
    "reference/claims.html",
    "reference/command-line.html",
    "reference/api/calibrators.html",
    "reference/changelog.html",
)
SCREENS = [(width, scheme) for width in (375, 1280) for scheme in ("light", "dark")]


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
    return found


def main() -> None:
    """Look at all pages; exit with 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    wrong = []
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width, scheme in SCREENS:
            window = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = window.new_page()
            fetched: list[str] = []
            page.on("request", lambda request, fetched=fetched: fetched.append(request.url))
            for name in PAGES:
                page.goto((options.site / name).resolve().as_uri())
                page.wait_for_timeout(200)
                if options.pictures:
                    options.pictures.mkdir(parents=True, exist_ok=True)
                    page.screenshot(path=options.pictures / f"{name.replace('/', '-')}-{width}-{scheme}.png")
                wrong += [f"{name}, {width} pixels, {scheme}: {what}" for what in wrong_with(page, width)]
            wrong += [f"loads {url}" for url in fetched if url.startswith("http")]
            window.close()
        page = browser.new_page()
        page.goto((options.site / "index.html").resolve().as_uri())
        page.click(".md-search__input")
        page.keyboard.type("precision", delay=20)
        page.wait_for_selector(".md-search-result__link", timeout=20_000)
        if options.pictures:
            page.goto((options.site / "explanation" / "shift.html").resolve().as_uri())
            page.pdf(path=options.pictures / "printed.pdf", format="A4")
        browser.close()
    print("\n".join(wrong) or f"{len(PAGES) * len(SCREENS)} views and a search: nothing serious found")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
