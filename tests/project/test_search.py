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
import yaml

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
        plugins=[{"material/search": search_of_the_site()}],
        hooks=[str(DOCS / "hooks.py")],
        validation={"links": {"not_found": "ignore"}, "nav": {"omitted_files": "ignore"}},
    )
    build(config)
    made = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    pages = [page for page in made["docs"] if "/api/" not in page["location"]]
    return {**made, "docs": [*pages, *sections_of_the_gallery(), *sections_of_the_api()]}


def search_of_the_site():
    """How the site splits text into words."""
    lines = (ROOT / "mkdocs.yml").read_text("utf-8").split("  - search:\n")[1].split("  - offline")
    return yaml.safe_load(lines[0])


def sections_of_the_gallery():
    for script in DOCS.glob("gallery/*.py"):
        docstring = ast.get_docstring(ast.parse(script.read_text("utf-8")))
        title, explanation, _ = docstring.split("\n\n")
        location = f"gallery/index.html#{script.stem}"
        yield {"location": location, "title": title, "text": explanation}


def sections_of_the_api():
    boost = module_at(DOCS / "hooks.py").boost_of
    for page in module_at(DOCS / "api.py").pages():
        location = page.uri.replace(".md", ".html")
        text = page.markdown()
        entry = {"location": location, "title": page.title, "text": text, "boost": boost(page.uri)}
        yield entry
        for name in page.names:
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


GUIDES = sorted([*DOCS.glob("guides/*.md"), *DOCS.glob("use/*.md")])


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_each_guide_names_other_words_people_search_for(page):
    second = page.read_text("utf-8").split("\n\n")[1]
    assert second.startswith(("Also called: ", "Related terms: "))


def test_the_chart_of_methods_links_to_pages_that_exist():
    chart = DOCS / "start" / "which-method.md"
    links = re.findall(r'<a href="([^"]+)\.html">', chart.read_text("utf-8"))
    assert len(links) > 10
    assert all((chart.parent / f"{link}.md").exists() for link in links)
