"""Saved state is declared: one table is written and read, and an error names the path of the field."""

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.params.declared_state import Inline, Record, Resumed, ResumesEach, Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import Choice, Flag, Integer, Number
from calibrant.params.state_kinds import (
    Constant,
    Counts,
    Label,
    Listed,
    Lists,
    Mapped,
    Maybe,
    Nested,
    NumberOrNull,
    Numbers,
    NumbersOrNull,
    OneCount,
    Tabled,
    Whole,
)


@dataclass(frozen=True)
class Span(Saved):
    """Two numbers."""

    _entries: ClassVar[EntryTable] = {"low": Number(), "high": Number()}

    low: float
    high: float

    def _check_state(self, known: Known) -> None:
        if self.low > self.high:
            raise InvalidValueError("low", "be at most high", got=f"{self.low:g}")


@dataclass(frozen=True)
class Place:
    """What declares nothing itself."""

    name: str
    visits: int = 0


@dataclass(frozen=True)
class Everything(Saved):
    """One entry of each kind."""

    _schema: ClassVar[str] = "test.everything/1"
    _entries: ClassVar[EntryTable] = {
        "form": Constant("long"),
        "edges": Numbers(increasing=True, low=0.0, high=1.0),
        "counts": Counts(size="edges"),
        "whole": Whole(size="edges"),
        "logs": NumbersOrNull(-np.inf, size="edges"),
        "end": NumberOrNull(np.inf),
        "table": Tabled(Counts(size="edges")),
        "spans": Lists(Nested(Span)),
        "pair": Listed(Span),
        "named": Mapped(Nested(Span), longest=3),
        "span": Inline(Span),
        "place": Record(Place, {"name": Choice(("here", "there"))}, {"visits": 7}),
        "label": Label(),
        "number": OneCount(),
        "maybe": Maybe(Integer(1)),
        "late": Entry(Flag(), of="is_late", absent=False),
    }

    edges: Any
    counts: Any
    whole: Any
    logs: Any
    end: float
    table: Any
    spans: tuple[Span, ...]
    pair: Span
    named: dict[str, Span]
    span: Span
    place: Place
    label: Any
    number: int
    maybe: int | None
    is_late: bool = False


STATE: dict[str, Any] = {
    "schema": "test.everything/1",
    "form": "long",
    "edges": [0.25, 0.5],
    "counts": [3, 4],
    "whole": [5, 6],
    "logs": [None, -1.5],
    "end": None,
    "table": [[1, 2], [3, 4], [5, 6]],
    "spans": [{"low": 1.0, "high": 2.0}, {"low": 1.0, "high": 1.0}],
    "pair": [0.0, 1.0],
    "named": {"a": {"low": 0.0, "high": 9.0}},
    "low": -1.0,
    "high": 1.0,
    "place": {"name": "here"},
    "label": "x",
    "number": 12,
    "maybe": None,
}


def test_what_is_read_is_written_again_in_the_same_order() -> None:
    found = Everything.from_dict(json.loads(json.dumps(STATE)))
    assert json.dumps(found.to_dict()) == json.dumps(STATE)
    assert found.place == Place("here", 7)
    assert found.end == np.inf
    assert found.logs[0] == -np.inf
    late = Everything.from_dict({**STATE, "late": True})
    assert late.is_late
    assert late.to_dict()["late"] is True


@pytest.mark.parametrize("name", [name for name in STATE if name != "schema"])
def test_every_other_entry_is_needed(name: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        Everything.from_dict({key: value for key, value in STATE.items() if key != name})
    assert repr(name) in str(caught.value.rule)


WRONG: dict[str, tuple[str, Any, str]] = {
    "another form": ("form", "short", "form"),
    "edges that fall": ("edges", [0.5, 0.25], "edges"),
    "equal edges": ("edges", [0.5, 0.5], "edges"),
    "edges above one": ("edges", [0.5, 1.5], "edges"),
    "edges of text": ("edges", ["a", "b"], "edges"),
    "no list": ("edges", 3, "edges"),
    "too many counts": ("counts", [1, 2, 3], "counts"),
    "half a count": ("counts", [1.5, 2], "counts"),
    "a count below zero": ("counts", [-1, 2], "counts"),
    "whole numbers with a point": ("whole", [1.0, 2.0], "whole"),
    "too few logs": ("logs", [None], "logs"),
    "an infinite end": ("end", "inf", "end"),
    "ragged rows": ("table", [[1, 2], [3]], "table"),
    "a span in the wrong order": ("spans", [{"low": 2.0, "high": 1.0}], "spans[0].low"),
    "a span of text": ("spans", [STATE["spans"][0], {"low": "a", "high": 1.0}], "spans[1].low"),
    "a span that is no object": ("spans", [3], "spans[0]"),
    "a span without an end": ("spans", [{"low": 2.0}], "spans[0]"),
    "three in a pair": ("pair", [1, 2, 3], "pair"),
    "a pair in the wrong order": ("pair", [2, 1], "pair.low"),
    "a long name": ("named", {"abcd": STATE["spans"][0]}, "named"),
    "a damaged thing by name": ("named", {"a": {"low": 2, "high": 1}}, "named['a'].low"),
    "an inline entry": ("low", 3.0, "low"),
    "a place of no kind": ("place", {"name": "nowhere"}, "place.name"),
    "a label of no kind": ("label", [1], "label"),
    "a negative number": ("number", -1, "number"),
    "a number beyond doubles": ("number", 2**54, "number"),
    "zero": ("maybe", 0, "maybe"),
    "a word for a flag": ("late", "yes", "late"),
    "another schema": ("schema", "test.everything/2", "schema of the state"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_error_names_the_path_of_the_field(case: str) -> None:
    name, value, path = WRONG[case]
    with pytest.raises(CalibrantError) as caught:
        Everything.from_dict({**STATE, name: value})
    assert caught.value.parameter == path


def test_a_state_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(InvalidTypeError):
        Everything.from_dict([STATE])  # type: ignore[arg-type]


@dataclass
class Runner(Resumed):
    """Something that goes on."""

    _entries: ClassVar[EntryTable] = {"steps": OneCount()}

    steps: int = 0


@dataclass
class Race(Resumed):
    """Several that go on, under one setting."""

    _entries: ClassVar[EntryTable] = {
        "n_runners": Entry(Integer(1), makes=True),
        "runners": ResumesEach("runners"),
    }

    n_runners: int
    runners: list[Runner] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runners = [Runner() for _ in range(self.n_runners)]


def test_what_runs_is_made_of_its_settings_and_takes_over_the_rest() -> None:
    race = Race(2)
    race.runners[1].steps = 5
    again = Race.from_dict(json.loads(json.dumps(race.to_dict())))
    assert [runner.steps for runner in again.runners] == [0, 5]
    with pytest.raises(CalibrantError) as caught:
        Race.from_dict({"n_runners": 2, "runners": [{"steps": 0}]})
    assert caught.value.parameter == "runners"
    with pytest.raises(CalibrantError) as caught:
        Race.from_dict({"n_runners": 1, "runners": [{"steps": -1}]})
    assert caught.value.parameter == "runners.steps"
