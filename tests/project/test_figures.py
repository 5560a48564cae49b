"""No figure on a page is copied by hand.

A figure in prose must be printed by the code of its page, or stand in one of its tables, in a
marker that a script fills in, or in a paragraph that names the script or test it comes from. Others
are listed in tests/data/figures.toml, with the reason why nothing prints them.
"""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ALLOWED = tomllib.loads((ROOT / "tests" / "data" / "figures.toml").read_text("utf-8"))
PAGES = sorted(DOCS.rglob("*.md"))

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MARKER = re.compile(r"<!-- [\w ]+ -->(.*?)<!-- / -->", re.DOTALL)
ROW_OF_TABLE = re.compile(r"^\|.*$", re.MULTILINE)
NOT_PROSE = (r"`[^`]*`", r"\]\([^)]*\)", r"\$[^$]*\$", r"<[^>]*>")
SOURCE = re.compile(r"`[^`]*(?:experiments|benchmarks|study|tests)/[\w./]+`|make study|\.csv\)")
NUMBER = re.compile(r"\d[\d,_]*(?:\.\d+)?")
FIGURE = re.compile(
    r"(?<![\w.,/#-])(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\d+)(?![\w/]|[.,]\d)"
    r"( ?%| per cent| points| percentage points)?"
)
LEVELS = {0, 1, 2, 5, 10, 20, 25, 30, 50, 70, 75, 80, 90, 95, 99, 100}
"""Per cent of which people speak without having measured anything: levels of confidence, shares."""
FEWEST_DIGITS = 1_000  # a whole number below it, without a unit, is a count in a sentence


def value_of(number):
    return float(number.replace(",", "").replace("_", ""))


def known_values(text):
    shown = FENCE.findall(text) + ROW_OF_TABLE.findall(text) + MARKER.findall(text)
    return {value_of(one) for one in NUMBER.findall("\n".join(shown))}


def prose_of(text):
    for pattern in (FENCE, MARKER, ROW_OF_TABLE):
        text = pattern.sub("", text)
    paragraphs = [one for one in re.split(r"\n\s*\n", text) if not SOURCE.search(one)]
    prose = "\n\n".join(paragraphs)
    for pattern in NOT_PROSE:
        prose = re.sub(pattern, "", prose)
    return prose


def is_measured(number, unit):
    value = value_of(number)
    if unit and "." not in number:
        return value not in LEVELS
    is_year = "," not in number and 1_800 <= value <= 2_100
    return "." in number or (value >= FEWEST_DIGITS and not is_year)


def is_known(number, known):
    """Whether a page shows a number that can be rounded to this one, as a share or as per cent."""
    value = value_of(number)
    step = 10.0 ** -len(number.partition(".")[2])
    return any(abs(scale * one - value) < step for one in known for scale in (1.0, 100.0, 0.01))


def unknown_figures(text):
    known = known_values(text)
    return {
        number
        for number, unit in FIGURE.findall(prose_of(text))
        if is_measured(number, unit) and not is_known(number, known)
    }


def allowed_on(page):
    reasons = ALLOWED["pages"].get(page.relative_to(DOCS).as_posix(), {})
    assert set(reasons) <= set(ALLOWED["reasons"])
    return {number for numbers in reasons.values() for number in numbers}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_each_figure_in_prose_is_shown_on_its_page_or_names_its_source(page):
    assert unknown_figures(page.read_text("utf-8")) == allowed_on(page)


def test_figures_are_found():
    page = "It rose by 41.5% to 1,234 of 5,678.\n\n```pycon\n>>> 0.415\n0.415\n```\n\n| 1234 |\n"
    assert unknown_figures(page) == {"5,678"}
    assert unknown_figures(page + "\nIt takes 3.2 s; `benchmarks/files.py`.\n") == {"5,678"}
    assert unknown_figures("With 90% confidence, in 300 rows, since 2019.") == set()
