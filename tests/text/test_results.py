"""Every result class follows one protocol: a sentence, tables, plain data, and a short view in a
notebook.
"""

import json
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import pandas as pd
import pytest

from calibrant.text.result import Result, frame_of
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import sentence
from result_examples import EXAMPLES

LONGEST_REPR = 160
LONGEST_HTML = 6_000
LONGEST_FIGURE = 34_000
ROOMS = (
    "assess",
    "calibrators",
    "classifier",
    "guarantee",
    "limits",
    "monitor",
    "multiclass",
    "shift",
    "streams",
)


def every_module() -> Iterator[Any]:
    """The modules in which results may be defined."""
    for room in ROOMS:
        package = import_module(f"calibrant.{room}")
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield import_module(found.name)


def result_classes() -> dict[str, type[Result]]:
    """All subclasses of `Result` in the package that are results themselves, by name."""
    classes: dict[str, type[Result]] = {}
    for module in every_module():
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, Result)
                and value.__module__ == module.__name__
                and not value.__name__.startswith("_")
            ):
                classes[value.__name__] = value
    return classes


@pytest.fixture(params=sorted(EXAMPLES), scope="module")
def result(request: pytest.FixtureRequest) -> Result:
    return EXAMPLES[request.param]()


def test_every_result_class_has_an_example() -> None:
    assert set(EXAMPLES) == set(result_classes())
    for name, example in EXAMPLES.items():
        assert type(example()).__name__ == name


def test_a_field_does_not_take_a_property_for_its_default() -> None:
    for name, kind in result_classes().items():
        assert is_dataclass(kind), name
        for field in fields(kind):
            assert not isinstance(field.default, property), f"{name}.{field.name}"


def test_a_sentence_begins_with_a_capital_and_ends_with_a_full_stop(result: Result) -> None:
    assert isinstance(result.sentence, str)
    assert re.fullmatch(r"[^a-z].*[.?]", result.sentence, re.DOTALL), result.sentence


def test_assumptions_and_notes_are_texts(result: Result) -> None:
    for texts in (result.assumptions, result.notes):
        assert isinstance(texts, tuple)
        assert all(isinstance(text, str) for text in texts)


def test_details_hold_the_sentence_the_assumptions_and_the_notes(result: Result) -> None:
    details = result.details
    assert isinstance(details, str)
    for text in (result.sentence, *result.assumptions):
        assert text in details
    assert all(sentence(note) in details for note in result.notes)
    assert result.verdict is None or details.startswith(result.verdict.upper())


def test_tables_have_columns_of_one_length_and_names_of_their_own(result: Result) -> None:
    names = [table.name for table in result.tables()]
    assert len(set(names)) == len(names)
    for table in result.tables():
        assert isinstance(table, ResultTable)
        assert {len(column) for column in table.columns.values()} == {len(table)}
        assert set(table.shown or ()) <= set(table.columns)
        assert table.name not in {
            field.name for field in fields(result) if field.type in (bool, int, float, str)
        }  # type: ignore[arg-type]


def test_to_dict_is_json_with_the_sentence_and_all_tables(result: Result) -> None:
    found = result.to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["sentence"] == result.sentence
    assert found["assumptions"] == list(result.assumptions)
    assert found["notes"] == list(result.notes)
    for table in result.tables():
        assert found[table.name] == table.to_dicts()


def test_to_dict_holds_every_field_that_is_a_number_or_a_text(result: Result) -> None:
    found = result.to_dict()
    for field in fields(result):  # type: ignore[arg-type]
        value = getattr(result, field.name)
        if field.type in (bool, int):
            assert found[field.name] == value
        if field.type is str:
            assert found[field.name] == value.strip()
        if field.type is float:
            assert found[field.name] == pytest.approx(value) or found[field.name] is None


def test_to_frame_is_the_first_table(result: Result) -> None:
    frame = result.to_frame()
    assert isinstance(frame, pd.DataFrame)
    tables = result.tables()
    if tables:
        assert list(frame.columns) == list(tables[0].columns)
        assert len(frame) == len(tables[0])
    else:
        assert len(frame) == 1


def test_a_notebook_shows_the_sentence_and_a_small_table(result: Result) -> None:
    shown = result._repr_html_()
    assert shown.startswith("<p>")
    text, _, figure = shown.partition("<svg")
    assert len(text) < LONGEST_HTML
    assert len(figure) < LONGEST_FIGURE
    assert shown == result._repr_html_()
    assert shown.count("<tr>") <= 12


def test_the_repr_is_short(result: Result) -> None:
    shown = repr(result)
    assert shown.startswith(f"<{type(result).__name__}: ")
    assert len(shown) <= LONGEST_REPR


@pytest.mark.parametrize("missing", [(), ("pandas",), ("pandas", "polars")])
def test_frames_without_pandas(monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]) -> None:
    from importlib.util import find_spec

    monkeypatch.setattr(
        "calibrant.text.result.find_spec", lambda name: None if name in missing else find_spec(name)
    )
    frame = frame_of({"a": [1, 2]})
    expected = ("pandas", "polars", "pyarrow")[len(missing)]
    assert type(frame).__module__.partition(".")[0] == expected


def test_every_class_with_a_sentence_is_a_result() -> None:
    for module in every_module():
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and value.__module__ == module.__name__
                and "sentence" in vars(value)
            ):
                assert issubclass(value, Result), value


def test_the_limit_of_1_of_a_share_is_left_out() -> None:
    columns = {
        name: [value]
        for name, value in zip(("x", "x_lower", "x_upper"), (0.9, 0.8, 1.0), strict=True)
    }
    assert "0.9 (at least 0.8)" in str(ResultTable("shares", columns))
