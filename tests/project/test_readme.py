"""Every snippet of the README and of the docs runs, prints what the page says it prints, and makes
its pictures.
"""

import ast
import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")))
    if "```py" in path.read_text()
]
SLOW = tuple(ROOT / "docs" / name for name in ("start", "learn", "cases"))

spec = importlib.util.spec_from_file_location("examples", ROOT / "tools" / "examples.py")
examples = importlib.util.module_from_spec(spec)
spec.loader.exec_module(examples)


def run(runner, example):
    """Run an example; skip it, but never in CI, where data or a library of its own cannot be had."""
    try:
        runner(example)
    except Exception as error:
        if (reason := examples.excuse(error)) is None:
            raise
        pytest.skip(reason)


@pytest.mark.broad
@pytest.mark.parametrize(
    "page",
    [pytest.param(path, marks=pytest.mark.slow) if path.parent in SLOW else path for path in PAGES],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_snippets_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(examples.run_page, page)


SOLVED = [path for path in PAGES if "LogisticRegression" in path.read_text(encoding="utf-8")]


@pytest.mark.slow
@pytest.mark.parametrize("page", SOLVED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_page_prints_what_the_last_digits_of_a_solver_decide(page, tmp_path, monkeypatch):
    """Another processor moves coefficients a little.

    No figure on a page may be that near to a rounding edge.
    """
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(1)
    solve = LogisticRegression.fit

    def fit(self, X, y, sample_weight=None):
        solve(self, X, y, sample_weight)
        self.coef_ *= 1.0 + 1e-6 * generator.standard_normal(self.coef_.shape)
        self.intercept_ *= 1.0 + 1e-6 * generator.standard_normal(self.intercept_.shape)
        return self

    monkeypatch.setattr(LogisticRegression, "fit", fit)
    run(examples.run_page, page)


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", sorted(ROOT.glob("docs/gallery/*.py")), ids=lambda path: path.stem
)
def test_scripts_of_the_gallery_show_one_picture(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(examples.run_script, script)
    assert (tmp_path / f"{script.stem}.png").exists()
    assert (tmp_path / f"{script.stem}-small.png").exists()


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
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


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
