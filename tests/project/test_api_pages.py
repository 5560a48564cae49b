"""Every public name is on a page of the API, with the types and defaults of the code."""

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import calibrant

griffe = pytest.importorskip("griffe")  # comes with what `make docs` needs

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("api", ROOT / "docs" / "api.py")
api = importlib.util.module_from_spec(spec)
spec.loader.exec_module(api)
NAMES = sorted(name for page in api.pages() for name in page.names)
NOT_FOR_USERS = {"calibrant.cli", "calibrant.kernels"}
DEFAULT = re.compile(r"^(\w+(?:, \w+)*) : .*, default=(.+)$", re.MULTILINE)


@cache
def package() -> Any:
    folder = str(ROOT / "docs")
    sys.path.insert(0, folder)
    try:
        from docstrings import Docstrings
    finally:
        sys.path.remove(folder)
    extensions = griffe.load_extensions("dataclasses", Docstrings())
    search = [ROOT / "src"]
    return griffe.load("calibrant", search_paths=search, extensions=extensions)


def named() -> list[tuple[str, Any, Any]]:
    """Functions and classes that pages name: the name, what griffe and what Python has."""
    return [
        (name, package()[name.removeprefix("calibrant.")], code)
        for name, code in zip(NAMES, map(pkgutil.resolve_name, NAMES), strict=True)
        if inspect.isclass(code) or inspect.isfunction(code)
    ]


def test_every_public_name_is_on_one_page_and_every_class_has_its_own() -> None:
    assert len(NAMES) == len(set(NAMES))
    places = {id(pkgutil.resolve_name(name)): name for name in NAMES}
    for path in api.MODULES:
        module = importlib.import_module(path)
        for name in api.public_names(module):
            found = getattr(module, name)
            assert id(found) in places, f"{path}.{name}"
            if inspect.isclass(found) and path != "calibrant.errors":
                assert [page.about for page in api.pages()].count(places[id(found)]) == 1, name
    assert {*calibrant.__all__} <= {name.rpartition(".")[2] for name in NAMES}


def test_every_module_that_says_what_is_public_has_a_page() -> None:
    public = {
        f"calibrant.{found.name}"
        for found in pkgutil.iter_modules(calibrant.__path__)
        if not found.name.startswith("_")
        and hasattr(importlib.import_module(f"calibrant.{found.name}"), "__all__")
    }
    assert public - NOT_FOR_USERS == {*api.MODULES} - {"calibrant", "calibrant.errors"}
    assert {page.about for page in api.pages()} >= {*api.MODULES}


def test_parts_belong_to_pages_that_exist() -> None:
    assert {*api.PARTS} <= {page.about for page in api.pages()}


@cache
def shown() -> list[tuple[str, Any, Any]]:
    """Functions, classes and methods on the pages: the name, what griffe and what Python has."""
    found = named()
    for name, page, code in named():
        if inspect.isclass(code):
            for member in page.all_members.values():
                own = inspect.getattr_static(code, member.name, None)
                own = getattr(own, "__func__", own)
                if not member.name.startswith("_") and inspect.isfunction(own):
                    found.append((f"{name}.{member.name}", member, own))
    return found


def signature_of(code: Any) -> Any:
    """The parameters of a function or class; none of a class such as a warning."""
    try:
        return inspect.signature(code).parameters
    except ValueError:
        return {}


def documented(page: Any) -> dict[str, Any]:
    """The parameters that a page lists, by name."""
    if page.docstring is None:
        return {}
    sections = [part for part in page.docstring.parsed if part.kind.value == "parameters"]
    return {one.name: one for part in sections for one in part.value}


@pytest.fixture(scope="module")
def parameters() -> list[tuple[str, Any, inspect.Parameter]]:
    """All parameters on the pages, with those of the signature."""
    return [
        (f"{name}({one.name.lstrip('*')})", one, signature[one.name.lstrip("*")])
        for name, page, code in shown()
        for signature in [signature_of(code)]
        for one in documented(page).values()
    ]


def test_every_parameter_on_a_page_is_one_of_the_signature_and_has_its_default(parameters):
    assert len(parameters) > 500
    for name, one, own in parameters:
        if own.default is inspect.Parameter.empty or own.kind is own.VAR_KEYWORD:
            assert one.value is None or own.kind is own.VAR_KEYWORD, name
        else:
            assert one.value is not None, name
            if isinstance(own.default, int | float | str | bool | None):
                assert same_value(str(one.value), own.default), (name, str(one.value))


def same_value(text: str, default: Any) -> bool:
    try:
        return eval(text, {}) == default
    except NameError:  # the name of a constant
        return text.strip("_").isidentifier()


def test_parameters_that_share_a_line_have_each_their_own_type(parameters):
    known = {name: one for name, one, _ in parameters}
    for cls in ("calibrant.Calibrator", "calibrant.ShiftCalibrator"):
        assert str(known[f"{cls}.fit(score_range)"].annotation) == "tuple[float, float] | None"
    of_fit = "calibrant.Calibrator.fit"
    assert str(known[f"{of_fit}(max_group_size)"].annotation) == "int | None"
    assert str(known[f"{of_fit}(group_target)"].annotation) == "str | None"
    for name, one, own in parameters:
        if own.annotation is not inspect.Parameter.empty:
            assert one.annotation, name


def test_types_in_words_are_whole():
    one = documented(package()["Calibrator"])
    assert one["partition"].annotation == '{"quantile", "uniform"} or Partition'
    assert one["pilot"].annotation == '"auto", None, float or int'


def test_a_default_in_words_is_that_of_the_signature():
    checked = 0
    for name, _, code in shown():
        signature = signature_of(code)
        for names, text in DEFAULT.findall(inspect.getdoc(code) or ""):
            for each in names.split(", "):
                if each in signature and re.fullmatch(r"None|True|False|-?[\d._e]+|\".*\"", text):
                    assert eval(text) == signature[each].default, f"{name}({each})"
                    checked += 1
    assert checked > 200


def test_fit_is_the_first_method_of_every_class_that_has_one():
    classes = [page for _, page, code in shown() if inspect.isclass(code)]
    fitted = [page for page in classes if "fit" in page.all_members]
    assert len(fitted) >= 15
    for page in fitted:
        methods = [name for name in page.exports if name in page.all_members]
        public = [
            name
            for name in methods
            if not name.startswith("_") and page.all_members[name].is_function
        ]
        assert public[0] == "fit", page.path
