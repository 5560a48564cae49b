"""The searches that people make find their pages, by the search of the site itself."""

import ast
import importlib.util
import inspect
import json
import os
import pkgutil
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def module_at(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


searches = module_at(ROOT / "tools" / "searches.py")


def needs(condition, message):
    if not condition and "CI" in os.environ:
        pytest.fail(message)
    if not condition:
        pytest.skip(message)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The search index of the site, without pictures.

    Pages of the API hold the docstrings as they are, which is quicker than to render them.
    """
    needs(find_spec("material"), "mkdocs-material is needed to build the pages")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    site = tmp_path_factory.mktemp("site")
    config = load_config(
        str(ROOT / "mkdocs.yml"),
        site_dir=str(site),
        strict=False,
        plugins=["material/search"],
        hooks=[str(DOCS / "hooks.py")],
        validation={"links": {"not_found": "ignore"}, "nav": {"omitted_files": "ignore"}},
    )
    build(config)
    made = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    pages = [page for page in made["docs"] if "/api/" not in page["location"]]
    return {**made, "docs": [*pages, *pages_of_the_gallery(), *sections_of_the_api()]}


def pages_of_the_gallery():
    for script in DOCS.glob("gallery/*.py"):
        docstring = ast.get_docstring(ast.parse(script.read_text("utf-8")))
        title, explanation, _ = docstring.split("\n\n")
        yield {"location": f"gallery/{script.stem}.html", "title": title, "text": explanation}


def sections_of_the_api():
    boost = module_at(DOCS / "hooks.py").boost_of
    for page in sorted(DOCS.glob("reference/api/*.md")):
        text = page.read_text("utf-8")
        uri = page.relative_to(DOCS).as_posix()
        location = uri.replace(".md", ".html")
        title = text.partition("\n")[0].removeprefix("# ")
        entry = {"location": location, "title": title, "text": text, "boost": boost(uri)}
        yield entry
        for name in re.findall(r"^::: (\S+)", text, re.MULTILINE):
            found = pkgutil.resolve_name(name)
            members = dict(inspect.getmembers(found)) if inspect.isclass(found) else {}
            objects = {name: found} | {f"{name}.{key}": one for key, one in members.items()}
            for path, one in objects.items():
                if path.rpartition(".")[2].startswith("_"):
                    continue
                section = {"title": path.rpartition(".")[2], "text": inspect.getdoc(one) or ""}
                yield {**entry, "location": f"{location}#{path}", **section}


@pytest.fixture(scope="module")
def found(index):
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    needs(find_spec("playwright") and browser, "playwright and chromium are needed to search")
    import material
    from playwright import sync_api

    scripts = Path(material.__file__).parent / "templates/assets/javascripts/workers"
    (worker,) = scripts.glob("search.*.js")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        queries = [*searches.SEARCHES, "zebra crossing"]
        yield searches.found_by_search(
            chromium.new_page(), worker.read_text("utf-8"), index, queries
        )
        chromium.close()


def test_thirty_searches_find_their_page_among_the_first_three_and_before_the_api(found):
    assert len(searches.SEARCHES) >= 30
    assert not searches.missed(found)


def test_a_search_for_what_no_page_mentions_finds_nothing(found):
    assert found["zebra crossing"] == []


def test_each_search_names_a_page_that_exists():
    for page in searches.SEARCHES.values():
        assert (DOCS / page).with_suffix(".md").exists(), page


@pytest.mark.parametrize("page", sorted(DOCS.glob("how-to/*.md")), ids=lambda page: page.stem)
def test_each_how_to_names_other_words_people_search_for(page):
    if page.stem != "index":
        second = page.read_text("utf-8").split("\n\n")[1]
        assert second.startswith(("Also called: ", "Related terms: "))


def test_old_addresses_lead_to_headings_that_exist():
    needs(find_spec("markdown"), "Markdown is needed, which makes the anchors of headings")
    from markdown.extensions.toc import slugify

    for old, target in module_at(DOCS / "hooks.py").MOVED.items():
        assert not (DOCS / f"{old}.md").exists(), old
        page, _, anchor = target.partition("#")
        text = (DOCS / old).with_name(page).with_suffix(".md").read_text("utf-8")
        titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        assert not anchor or anchor in {slugify(title, "-") for title in titles}, target


def test_the_chart_of_methods_links_to_pages_that_exist():
    chart = DOCS / "how-to" / "choose-a-method.md"
    links = re.findall(r'<a href="([^"]+)\.html">', chart.read_text("utf-8"))
    assert len(links) > 10
    assert all((chart.parent / f"{link}.md").exists() for link in links)
