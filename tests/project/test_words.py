"""The field's words are used everywhere, so that a search for the usual term finds the page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTEAD = {
    r"promis(e|es|ed)(?![a-z])": "guarantee",
    r"drawn.alike": "i.i.d., or exchangeable",
    r"belong(s|ing)?.together": "grouped or clustered rows",
    r"count(s|ed)?.differently": "weighted rows",
    r"certificates?": "guarantee",
    r"too timid": "underconfident",
    r"speaks? for the": "the positive class",
}
"""Words that a statistician would have to translate back, and what to write."""

PERMITTED = {
    "src/calibrant/answers/model_file.py": {"promise"},  # a key of older files
    "docs/reference/files.md": {"promise"},
    "docs/assets/iframe-worker.js": {"Promise"},  # of JavaScript
    "tools/searches.py": {"Promise"},  # of JavaScript
}
KINDS = ("py", "jinja", "css", "js", "md", "html")


def pages() -> list[Path]:
    """Source, documentation, and what tests and tools are called."""
    folders = ("src", "docs", "tools", "benchmarks", "experiments", "study")
    found = [page for one in folders for kind in KINDS for page in ROOT.glob(f"{one}/**/*.{kind}")]
    return [*found, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "mkdocs.yml"]


@pytest.mark.broad
@pytest.mark.parametrize("word", INSTEAD)
def test_usual_words_in_source_and_documentation(word: str) -> None:
    for page in pages():
        place = page.relative_to(ROOT).as_posix()
        permitted = PERMITTED.get(place, set())
        for found in re.finditer(rf"(?<![a-z]){word}", page.read_text("utf-8"), re.IGNORECASE):
            assert found.group() in permitted, f"{place}: {found.group()!r}, say {INSTEAD[word]!r}"


@pytest.mark.parametrize("word", INSTEAD)
def test_usual_words_in_names_of_files_and_tests(word: str) -> None:
    here = Path(__file__)
    tests = [page for page in ROOT.glob("tests/**/*.py") if page != here]
    defined = [name for page in tests for name in re.findall(r"def (\w+)", page.read_text("utf-8"))]
    files = [page.name for page in [*pages(), *tests]]
    wrong = [name for name in [*defined, *files] if re.search(word, name, re.IGNORECASE)]
    assert not wrong, f"say {INSTEAD[word]!r}: {wrong}"
