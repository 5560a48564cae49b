"""The snippets of the README run and print what it says they print; pages and gallery are in order.

`make docs` runs the code of the pages and of the gallery.
"""

import ast
import importlib.util
import inspect
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

spec = importlib.util.spec_from_file_location("examples", ROOT / "tools" / "examples.py")
examples = importlib.util.module_from_spec(spec)
spec.loader.exec_module(examples)


def test_snippets_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples.run_page(ROOT / "README.md")


def test_what_an_example_prints_is_renewed_and_nothing_else(tmp_path, monkeypatch):
    import renewal

    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    text = (
        "Twice 21 is 41.\n\n```pycon\n>>> print('twice 21', 'is', 42)\ntwice 21\n    is 41\n```\n"
    )
    page.write_text(text)
    changes = list(renewal.of_page(page, text))
    assert [(text[start:end], said) for start, end, said in changes] == [("41", "42")]
    ((start, end, said),) = changes
    new = text[:start] + said + text[end:]
    assert list(renewal.of_page(page, new)) == []
    assert list(renewal.stale_prose(text, new)) == ["  line 1: 41: Twice 21 is 41."]


def test_the_gallery_lists_each_script_once_and_describes_it():
    index = (ROOT / "docs" / "gallery" / "index.md").read_text(encoding="utf-8")
    listed = " ".join(re.findall(r"<!-- cards: (.*) -->", index)).split()
    assert sorted(listed) == sorted(path.stem for path in ROOT.glob("docs/gallery/*.py"))
    for path in ROOT.glob("docs/gallery/*.py"):
        text = path.read_text(encoding="utf-8")
        title, explanation, picture = ast.get_docstring(ast.parse(text)).split("\n\n")
        assert len(title) < 60, path.name
        assert explanation.count(". ") + explanation.count(".\n") + explanation.count("? ") >= 1, (
            path.name
        )
        assert picture.startswith("Picture: "), path.name
        assert len(text.splitlines()) <= 42, path.name


def test_the_gallery_has_real_data_and_one_style():
    scripts = sorted(ROOT.glob("docs/gallery/*.py"))
    assert len(scripts) >= 30
    for path in scripts:
        text = path.read_text(encoding="utf-8")
        assert 'plt.style.use("calibrant.draw.plain")' in text, path.name
        assert not re.search(r'["\']#[0-9a-fA-F]{3,6}["\']', text), (
            path.name
        )  # colours of the style
        if path.stem != "impossible":  # which is about a world that has to be made
            assert "from realdata import" in text or "from sklearn.datasets import load_" in text


def test_a_picture_for_the_dark_site_turns_greys_and_keeps_hues(tmp_path, monkeypatch):
    import dark
    from matplotlib.colors import rgb_to_hsv, to_rgb
    from matplotlib.figure import Figure

    monkeypatch.chdir(tmp_path)
    assert min(dark.on_dark("black")[:3]) > 0.9
    assert max(dark.on_dark("white")[:3]) < 0.2
    blue = to_rgb("#0072B2")
    assert rgb_to_hsv(dark.on_dark(blue)[:3])[0] == pytest.approx(rgb_to_hsv(blue)[0], abs=0.01)
    assert dark.on_dark((0.0, 0.0, 0.0, 0.25))[3] == 0.25
    figure = Figure()
    (line,) = figure.add_subplot().plot([0, 1], "o-", color="black")
    with examples.twice():
        figure.savefig("picture.png")
    assert (tmp_path / "picture.png").exists()
    assert (tmp_path / "picture-dark.png").exists()
    assert (line.get_color(), line.get_markerfacecolor()) == ("black", "black")  # as it was


def test_an_example_leaves_the_style_of_other_figures_alone(tmp_path, monkeypatch):
    import matplotlib as mpl

    monkeypatch.chdir(tmp_path)
    script = tmp_path / "one.py"
    script.write_text(
        'import matplotlib.pyplot as plt\nplt.style.use("calibrant.draw.plain")\n'
        "plt.plot([0, 1])\nplt.show()\n"
    )
    before = dict(mpl.rcParams)
    examples.run_script(script)
    assert dict(mpl.rcParams) == before


def test_a_thumbnail_is_small_and_keeps_the_size_of_its_letters():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], label="one")
    axes.set(xlabel="score", title="a title that is too long for it")
    axes.set_yticks(range(20))
    axes.legend()
    letters = axes.xaxis.label.get_size()
    examples.shrink(figure)
    assert tuple(figure.get_size_inches()) == examples.SMALL
    assert axes.xaxis.label.get_size() == letters
    assert axes.get_xlabel() == "score"
    assert axes.get_yticklabels()[0].get_size() == 6
    axes.set_xlabel(50 * "x")
    examples.shrink(figure)
    assert axes.get_xlabel() == ""
    assert (axes.get_legend(), axes.get_title()) == (None, "")


LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?!https?:|#)([^)#\s]+)(?:#[\w-]*)?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_links_lead_to_files_of_the_repository(page):
    """So that pages can be read there too; files that the page's own code writes are not there."""
    text = page.read_text(encoding="utf-8")
    code = "".join(FENCE.findall(text))
    links = set(LINK.findall(FENCE.sub("", text)))
    assert {
        link for link in links if link not in code and not (page.parent / link).exists()
    } == set()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110


def test_what_help_says_of_the_wrapper_itself_fits_on_two_screens():
    """Apart from what scikit-learn adds to each estimator that routes metadata."""
    from calibrant import CalibratedClassifier

    own = {"": CalibratedClassifier, **vars(CalibratedClassifier)}
    said = [
        inspect.getdoc(one) or ""
        for name, one in own.items()
        if not name.startswith("_") and not re.fullmatch(r"set_\w+_request", name)
    ]
    assert len("\n".join(said).splitlines()) <= 120


def test_a_chapter_becomes_a_notebook_that_runs_the_same_code():
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
    notebooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(notebooks)
    page = (
        "# Title\n\nWords.\n\n```python\nx = 1\n```\n\n```pycon\n>>> x + 1\n2\n>>> for i in (1,):\n"
    )
    page += "...     print(i)\n1\n```\n\n![A picture.](x.png)\n\nEnd.\n"
    cells = json.loads(notebooks.of_page(page))["cells"]
    kinds = [cell["cell_type"] for cell in cells]
    assert kinds == ["markdown", "code", "code", "markdown"]
    assert "".join(cells[2]["source"]) == "x + 1\nfor i in (1,):\n    print(i)"
    assert "".join(cells[3]["source"]) == "End."
    assert len({cell["id"] for cell in cells}) == 4
    for path in [*ROOT.glob("docs/learn/*.md"), *ROOT.glob("docs/gallery/*.py")]:
        made = notebooks.of_page if path.suffix == ".md" else notebooks.of_script
        for cell in json.loads(made(path.read_text(encoding="utf-8")))["cells"]:
            if cell["cell_type"] == "code":
                ast.parse("".join(cell["source"]))
