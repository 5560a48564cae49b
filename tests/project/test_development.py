"""What contributors and strangers read about the project is true: names, targets, one slogan."""

import importlib.util
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "development").glob("*.md"))]
SLOGAN = "Calibrated probabilities with a guarantee, for any binary classifier"
PARTS = ("src", "tests", "docs", "tools", "study", "experiments", "benchmarks", "examples")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def in_backticks(page):
    return re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page):
    named = [one for one in in_backticks(page) if re.fullmatch(r"[\w.-]+(/[\w.-]+)*\.\w+", one)]
    files = [one for one in named if one.endswith((".py", ".md", ".json", ".toml", ".csv", ".txt"))]
    places = {
        path.relative_to(ROOT).as_posix()
        for path in [
            *ROOT.glob("*.*"),
            *(one for part in PARTS for one in ROOT.glob(f"{part}/**/*.*")),
        ]
    }
    places |= {place.partition("calibrant/")[2] for place in places if place.startswith("src/")}
    names = {place.rpartition("/")[2] for place in places}
    missing = {one for one in files if one not in places and ("/" in one or one not in names)}
    assert missing == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_the_code_are_still_there(page):
    sources = [*ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("tools/*.py")]
    words = set(re.findall(r"\w+", " ".join(one.read_text(encoding="utf-8") for one in sources)))
    names = [one for one in in_backticks(page) if re.fullmatch(r"[A-Za-z_][\w.]*(\(.*\))?", one)]
    last = {re.split(r"[.(]", one.partition("(")[0])[-1]: one for one in names}
    assert {one for name, one in last.items() if name not in words and "/" not in one} <= {
        "experiments", "CHANGELOG.md", "pyproject.toml"
    }  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_target_that_is_named_can_be_made(page):
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE)) <= targets


def test_contributing_fits_on_a_page():
    assert len(text_of("CONTRIBUTING.md").splitlines()) <= 70


def test_one_slogan():
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    assert project["description"] == f"{SLOGAN}."
    assert SLOGAN.lower() in yaml.safe_load(text_of("CITATION.cff"))["title"].lower()
    assert f"\n{SLOGAN}." in text_of("README.md")
    assert f"site_description: {SLOGAN}." in text_of("mkdocs.yml")
    assert SLOGAN.lower() in text_of("docs/assets/social-card.svg").lower()


def test_the_project_has_one_place_for_its_addresses():
    assert "urls" in tomllib.loads(text_of("pyproject.toml"))["project"]
    assert "site_url" not in text_of("mkdocs.yml")
    assert "repo_url" not in text_of("mkdocs.yml")


def test_the_site_shows_the_version_and_the_addresses_of_the_project(tmp_path):
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    config = SimpleNamespace(extra={})
    hooks.on_config(config)
    version = re.search(r'"(.+)"', text_of("src/calibrant/_version.py").split("__version__")[1])[1]
    assert version in config.copyright

    (tmp_path / "src" / "calibrant").mkdir(parents=True)
    (tmp_path / "src" / "calibrant" / "_version.py").write_text('__version__ = "9.8"\n')
    (tmp_path / "pyproject.toml").write_text(
        '[project.urls]\nDocumentation = "https://docs.example.org/"\n'
        'Source = "https://source.example.org"\n'
    )
    hooks.ROOT = tmp_path
    hooks.on_config(config)
    assert "9.8" in config.copyright
    assert config.site_url == "https://docs.example.org/"
    assert config.repo_url == "https://source.example.org"
    shown = hooks.on_post_page("<head></head>", config)
    assert 'content="https://docs.example.org/assets/social-card.png"' in shown


def test_versions_agree():
    version = re.search(r'"(.+)"', text_of("src/calibrant/_version.py").split("__version__")[1])[1]
    assert yaml.safe_load(text_of("CITATION.cff"))["version"] == version
    assert f"| {version.rpartition('.')[0]}.x | yes |" in text_of("SECURITY.md")


@pytest.mark.parametrize("name", ["bug", "false-guarantee", "wish"])
def test_issue_forms_ask_for_the_version(name):
    form = yaml.safe_load(text_of(f".github/ISSUE_TEMPLATE/{name}.yml"))
    assert form["name"]
    assert form["description"]
    ids = [field["id"] for field in form["body"]]
    assert "version" in ids
    assert len(ids) == len(set(ids))
    kinds = {field["type"] for field in form["body"]}
    assert kinds <= {"textarea", "input", "dropdown"}
    assert all(field["attributes"]["label"] for field in form["body"])
