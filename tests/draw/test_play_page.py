"""The page to play with, opened in Chromium: its limits are the library's, and its guarantees hold
where it draws.
"""

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from calibrant import BinningCalibrator, Partition, Tally

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[2] / "docs" / "assets" / "play.js"


@pytest.fixture(scope="module")
def page():
    found = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if find_spec("playwright") is None or found is None:
        message = "playwright and chromium are needed to open the page"
        if "CI" in os.environ:
            pytest.fail(message)
        pytest.skip(message)
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        tab = chromium.new_page()
        faults = []
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("request", lambda request: faults.append(request.url))
        tab.set_content('<!doctype html><html lang="en"><body><div id="play"></div></body></html>')
        tab.add_script_tag(path=SCRIPT)
        yield tab
        chromium.close()
        assert not faults


def set_slider(page, name, value):
    page.eval_on_selector(
        f"#play-{name}",
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input')) }",
        value,
    )


CASES = [
    ([1000, 1000], [100, 800], 0.9),
    ([50, 7, 0, 1], [1, 7, 0, 0], 0.95),
    ([10_000] * 10, [1, 30, 90, 400, 2000, 5000, 7000, 9000, 9900, 10_000], 0.5),
    ([100_000], [137], 0.99),
    ([50], [0], 0.9),
]


@pytest.mark.parametrize(("counts", "positives", "confidence"), CASES)
def test_limits_and_epsilon_are_those_of_the_library(page, counts, positives, confidence):
    found = page.evaluate(
        f"calibrantPlay.guarantee({json.dumps(counts)}, {json.dumps(positives)}, {confidence})"
    )
    bins = Partition.fixed_width(len(counts))
    tally = Tally.from_counts(counts, positives, partition=bins)
    proved = BinningCalibrator.from_tally(bins, tally, confidence_level=confidence).guarantee_
    np.testing.assert_allclose(
        [one["lower"] for one in found["bins"]], proved.lower, rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(
        [one["upper"] for one in found["bins"]], proved.upper, rtol=0, atol=1e-9
    )
    assert found["epsilon"] == pytest.approx(proved.epsilon, abs=1e-9)


def test_more_rows_make_it_narrower_and_more_bins_wider(page):
    def epsilon(**settings):
        for name, value in settings.items():
            set_slider(page, name, value)
        return float(page.get_attribute("#play", "data-epsilon"))

    assert epsilon(rows=4, bins=10) < 0.6 * epsilon(rows=3, bins=10)
    assert epsilon(rows=4, bins=30) > 1.3 * epsilon(rows=4, bins=10)
    assert epsilon(rows=4, bins=10, confidence=0.99) > epsilon(rows=4, bins=10, confidence=0.6)


@pytest.mark.parametrize("base", [-2.3, -0.6])
def test_what_it_guarantees_holds_where_it_draws(page, base):
    for name, value in {"rows": 2, "bins": 8, "confidence": 0.5, "base": base}.items():
        set_slider(page, name, value)
    page.get_by_role("button", name="Draw 200 times").click()
    kept = int(page.get_attribute("#play", "data-kept"))
    assert 100 <= kept < 200


def test_the_sentence_rounds_outwards(page):
    page.get_by_role("button", name="Draw new rows").click()
    shown = float(page.inner_text(".play-sentence").split("within ")[1].split(" ")[0]) / 100
    assert 0 <= shown - float(page.get_attribute("#play", "data-epsilon")) <= 0.001
