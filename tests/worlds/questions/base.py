"""What a question is, the rows that questions are about, and the numbers of an answer."""

import json
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from calibrant.cells.tally import Tally
from calibrant.errors import CalibrantError, CalibrantWarning
from calibrant.text.result import Result

QUESTIONS: dict[str, Callable[[], Any]] = {}
GRID = np.array([0.0, 0.02, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.97, 1.0])
_SHOWN = 60  # numbers of an answer that are written one by one
_SUMS = 12  # sums that stand for all numbers of a long answer


def question(function: Callable[[], Any]) -> Callable[[], Any]:
    """Ask this, under the name of the function."""
    QUESTIONS[function.__name__] = function
    return function


class World:
    """Rows with what may come beside them.

    They are made of exact arithmetic, so that every machine has the same.
    """

    def __init__(self, kind: str, n: int = 1500, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, n, *kind.encode()])
        uniform = rng.integers(1, 2**20, n) / 2**20
        self.scores = {
            "smooth": uniform,
            "tied": np.round(uniform * 10) / 10,
            "skewed": uniform**4,
            "atoms": np.where(uniform < 0.3, 0.0, np.where(uniform > 0.9, 1.0, uniform)),
        }[kind]
        rate = np.clip(0.1 + 0.8 * self.scores**2 - 0.15 * (self.scores > 0.6), 0.0, 1.0)
        self.y = (rng.integers(0, 2**20, n) / 2**20 < rate).astype(int)
        self.groups = rng.integers(0, n // 4, n)
        self.segments = np.where(rng.integers(0, 10, n) < 3, "north", "south")
        self.weights = 1.0 + rng.integers(0, 3, n)
        self.new = rng.integers(1, 2**20, n) / 2**20


SMOOTH = World("smooth")
TIED = World("tied")
SKEWED = World("skewed")
ATOMS = World("atoms")
FEW = World("smooth", 60)
MORE = World("smooth", 2500, seed=4)
MORE_TIED = World("tied", 2500, seed=5)
WORLDS = {"smooth": SMOOTH, "tied": TIED, "skewed": SKEWED, "atoms": ATOMS, "few": FEW}


def of_calibrator(calibrator: Any, scores: Any = GRID, **named: Any) -> list[Any]:
    """What a calibrator predicts, and what it guarantees."""
    guarantee = calibrator.guarantee_
    parts = [calibrator.predict(scores, **named), calibrator.predict_interval(scores, **named)]
    if hasattr(guarantee, "lower"):
        parts += [guarantee.lower, guarantee.upper, guarantee.counts, guarantee.epsilon]
    return parts


class Text(str):
    """A text that belongs to the answer as it is."""


def parts(answer: Any) -> Iterator[float | Text]:
    """All numbers in an answer, in order; sentences are no part of it, nor the numbers in them."""
    if isinstance(answer, Text):
        yield answer
    elif isinstance(answer, str):
        return
    elif isinstance(answer, Result):
        yield from parts(fields_of(answer))
        yield from parts(answer.to_dict())
        yield from parts(properties_of(answer))
    elif is_dataclass(answer) and not isinstance(answer, type):
        yield from parts(fields_of(answer))
    elif isinstance(answer, Mapping):
        for name in sorted(answer, key=str):
            if name != "identity":  # of a stream, drawn anew each time
                yield from parts(answer[name])
    elif isinstance(answer, np.ndarray):
        if answer.dtype.kind in "biuf":
            yield from (float(value) for value in answer.ravel())
    elif isinstance(answer, (bool, int, float, np.number, np.bool_)):
        yield float(answer)
    elif isinstance(answer, Sequence):
        for part in answer:
            yield from parts(part)


def fields_of(answer: Any) -> dict[str, Any]:
    """The fields of a dataclass; what a tally was taken over is shown by its fingerprint."""
    found = {field.name: getattr(answer, field.name) for field in fields(answer)}
    if isinstance(answer, Tally):
        del found["over"]
        found["partition"] = answer.partition
    return found


def properties_of(answer: Any) -> dict[str, Any]:
    """Public properties of an object that are one number, a flag or a text, by name."""
    found = {}
    for kind in type(answer).__mro__:
        for name, value in vars(kind).items():
            if isinstance(value, property) and not name.startswith("_") and name not in found:
                try:
                    found[name] = getattr(answer, name)
                except (CalibrantError, NotImplementedError) as error:
                    found[name] = refusal(error)
    single = (bool, int, float, str, np.number, np.bool_)
    return {name: value for name, value in found.items() if isinstance(value, single)}


def refusal(error: Exception) -> Text:
    """An error as part of an answer: its kind, and what it is about."""
    return Text(f"{type(error).__name__}: {getattr(error, 'parameter', '')}")


def refused(ask: Callable[..., Any], *given: Any, **named: Any) -> Text:
    """The error of a question, which must have one."""
    try:
        ask(*given, **named)
    except CalibrantError as error:
        return refusal(error)
    return Text("accepted")


def tried(ask: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """The answer to a question, or its error."""
    try:
        return ask(*given, **named)
    except CalibrantError as error:
        return refusal(error)


def answer_of(name: str) -> list[float | str | None]:
    """The numbers of one answer, and how many warnings came with it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = list(parts(QUESTIONS[name]()))
        except CalibrantError as error:  # a refusal is an answer, too
            found = list(parts(refusal(error)))
    found.append(float(sum(issubclass(one.category, CalibrantWarning) for one in caught)))
    return _thinned(found)


def _thinned(found: list[float | Text]) -> list[float | str | None]:
    """All numbers of a short answer, or some and then sums of all; None is what is not finite."""
    if len(found) <= _SHOWN:
        return [_shown(value) for value in found]
    texts = Counter(value for value in found if isinstance(value, Text))
    of_texts = [f"{count} times {text}" for text, count in sorted(texts.items())]
    single = np.array([value for value in found if not isinstance(value, Text)])
    thinned = single[:: max(1, single.size // (_SHOWN // 2))].tolist()
    return [*of_texts, *map(_shown, thinned), *_sums(single)]


def _shown(value: float | Text) -> float | str | None:
    if isinstance(value, Text):
        return str(value)
    return float(f"{value:.10g}") if math.isfinite(value) else None


def _sums(values: Any) -> list[float]:
    """Sums in which every number counts, also a small one beside large ones."""
    finite = np.isfinite(values)
    shrunk = np.where(finite, values, 3.0)
    shrunk = np.where(finite, shrunk / (1.0 + np.abs(shrunk)), 3.0)
    place = np.arange(values.size)
    return np.bincount(place % _SUMS, shrunk * (1.0 + place % 7), minlength=_SUMS).round(9).tolist()


# damaged states


def leaves(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a state are; of a list the first and the last."""
    if isinstance(state, dict):
        for name in state:
            yield (*path, name)
            yield from leaves(state[name], (*path, name))
    elif isinstance(state, list) and state:
        for place in sorted({0, len(state) - 1}):
            yield (*path, place)
            yield from leaves(state[place], (*path, place))


def damaged(value: Any) -> Iterator[Any]:
    """Other values in place of this one."""
    yield None
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1, -value - 1, 0, "1")
    elif isinstance(value, str):
        yield from (value + "x", 7)
    elif isinstance(value, list):
        yield from ([], value[:-1], [*value, *value[-1:]], 7)
    elif isinstance(value, dict):
        yield from ({}, [])


def verdicts(read: Callable[[Any], Any], state: Any, most: int = 250) -> dict[str, int]:
    """How often each error is raised for a state with one value damaged, and how often none."""
    state = json.loads(json.dumps(state))
    found: Counter[str] = Counter()
    changes = [(path, other) for path in leaves(state) for other in damaged(_at(state, path))]
    for path, other in changes[:: max(1, len(changes) // most)]:
        changed = deepcopy(state)
        _at(changed, path[:-1])[path[-1]] = other
        found[str(refused(read, changed))] += 1
    return dict(found)


def of_state(
    read: Callable[[Any], Any], written: Any, write: Callable[[Any], Any], most: int = 250
) -> list[Any]:
    """A state, what is written after it was read, and what damaged ones do."""
    state = json.loads(json.dumps(write(written)))
    again = write(read(state))
    counts = verdicts(read, state, most)
    return [state, again, [[Text(name), count] for name, count in sorted(counts.items())]]


def _at(state: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        state = state[part]
    return state
