"""Draw the pictures of the documentation again: python docs/pictures.py [reliability] [report] [repeated-looks].

The first two are those of `calibrant demo`; the second needs playwright and Chromium. The third comes from
experiments/online_coverage.py and takes several minutes.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PICTURES = ("reliability", "report", "repeated-looks")
ASSETS = Path(__file__).parent / "assets"
WIDTH, HEIGHT = 1180, 1480


def photograph(page: Path, picture: Path) -> None:
    """A picture of the top of a page."""
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        opened = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        opened.goto(page.resolve().as_uri())
        opened.screenshot(path=picture)
        chromium.close()


def main() -> None:
    """Draw those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pictures", nargs="*", metavar="PICTURE", help=", ".join(PICTURES))
    wanted = parser.parse_args().pictures or PICTURES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if {"reliability", "report"} & set(wanted):
            subprocess.run([sys.executable, "-m", "calibrant", "demo", "-q", "-o", folder / "demo"], check=True)
        if "reliability" in wanted:
            shutil.copy(folder / "demo" / "reliability.png", ASSETS)
        if "report" in wanted:
            photograph(folder / "demo" / "report.html", ASSETS / "report.png")
        if "repeated-looks" in wanted:
            experiment = Path(__file__).parents[1] / "experiments" / "online_coverage.py"
            subprocess.run([sys.executable, experiment, "--picture", ASSETS / "repeated-looks.png"], check=True)


if __name__ == "__main__":
    main()
