"""Functions with which every `from_dict` checks its input."""

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import EXACT_INTEGERS, as_numbers
from calibrant.params.labels import Classes, name_classes
from calibrant.text.sentences import shown


def check_state(state: Any, keys: Collection[str] = ()) -> None:
    """Raise an error unless it is a mapping with these keys, as `to_dict` returns."""
    if not isinstance(state, Mapping):
        raise InvalidTypeError(
            "state", "be the dict that to_dict returned", got=type(state).__name__
        )
    absent = [key for key in keys if key not in state]
    if absent:
        got = ", ".join(map(repr, list(state)[:20])) or "an empty one"
        raise InvalidValueError(
            "state", f"have the key {absent[0]!r}, as to_dict writes it", got=got
        )


def check_schema(state: Any, schema: str, keys: Collection[str]) -> None:
    """Raise an error for a state of another kind or version, or with missing keys."""
    check_state(state, ("schema",))
    got = state["schema"]
    if got != schema:
        kind, _ = schema.split("/")
        same_kind = isinstance(got, str) and got.startswith(f"{kind}/")
        advice = "use the release of calibrant that wrote it, or start again" if same_kind else None
        raise InvalidValueError("schema of the state", f"be {schema!r}", shown(got), advice)
    check_state(state, keys)


def check_size(n_entries: int, size: int | None, name: str) -> None:
    """Raise an error unless there are `size` entries; None for any number."""
    if size is not None and n_entries != size:
        raise InvalidValueError(name, f"have {size:,} entries", got=f"{n_entries:,}")


def read_numbers(
    values: Any,
    name: str,
    *,
    size: int | None = None,
    low: float = -math.inf,
    high: float = math.inf,
) -> FloatArray:
    """Finite numbers from `low` to `high`, with `size` entries if given."""
    if not isinstance(values, list | tuple | np.ndarray):
        raise InvalidTypeError(name, "be a list of numbers", got=type(values).__name__)
    numbers = as_numbers(np.empty(0) if len(values) == 0 else values, name)
    check_size(numbers.size, size, name)
    outside = numbers[(numbers < low) | (numbers > high)]
    if outside.size:
        raise InvalidValueError(name, f"be numbers from {low:g} to {high:g}", got=f"{outside[0]:g}")
    return numbers


def read_counts(values: Any, name: str, *, size: int | None = None) -> IntArray:
    """Whole numbers >= 0, with `size` entries if given."""
    numbers = read_numbers(values, name, size=size, low=0.0, high=EXACT_INTEGERS)
    if (numbers != np.floor(numbers)).any():
        raise InvalidValueError(name, "be whole numbers", got=shown(list(values)))
    return numbers.astype(np.int64)


def read_labels(labels: Any, name: str = "classes") -> list[Any]:
    """Distinct labels of one type: text, bytes, bools, 64-bit integers or finite floats."""
    kinds = {type(label) for label in labels} if isinstance(labels, list | tuple) else set()
    if (
        len(kinds) != 1
        or not kinds <= {str, bytes, bool, int, float}
        or (kinds == {int} and not all(-(2**63) <= label < 2**63 for label in labels))
        or (kinds == {float} and not all(map(math.isfinite, labels)))
        or len(set(labels)) != len(labels)
    ):
        rule = "be different labels of one kind: text, bools, 64-bit integers or finite floats"
        raise InvalidValueError(name, rule, got=shown(labels))
    return list(labels)


def read_classes(labels: Any, positive_index: Any) -> Classes:
    """Two classes, sorted as after `fit`."""
    if type(positive_index) is not int or positive_index not in (0, 1):
        raise InvalidValueError("positive_index", "be 0 or 1", got=shown(positive_index))
    known = read_labels(labels)
    if len(known) != 2 or not known[0] < known[1]:
        raise InvalidValueError("classes", "be two labels in increasing order", got=shown(labels))
    return name_classes(known, known[positive_index])
