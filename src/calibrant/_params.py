"""Checks of scalar parameters: one rule, one message, one place."""

import math
import operator
from collections.abc import Collection
from numbers import Real
from typing import Any

import numpy as np

from calibrant.errors import InvalidTypeError, InvalidValueError


def check_int(name: str, value: Any, *, minimum: int, alternative: str = "") -> int:
    """Return `value` as an int of at least `minimum`; `alternative` says what else the parameter takes."""
    rule = f"{name} must be an int >= {minimum}{alternative}"
    if isinstance(value, bool | np.bool_):
        raise InvalidTypeError(f"{rule}; got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidTypeError(f"{rule}; got {value!r} ({type(value).__name__})") from None
    if number < minimum:
        raise InvalidValueError(f"{rule}; got {number}")
    return number


def check_real(name: str, value: Any, *, rule: str) -> float:
    """Return `value` as a finite float."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise InvalidTypeError(f"{name} must be {rule}; got {value!r} ({type(value).__name__})")
    number = float(value)
    if not math.isfinite(number):
        raise InvalidValueError(f"{name} must be {rule}; got {value!r}")
    return number


def check_open_unit(name: str, value: Any) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    rule = "a number strictly between 0 and 1"
    number = check_real(name, value, rule=rule)
    if not 0.0 < number < 1.0:
        raise InvalidValueError(f"{name} must be {rule}; got {value!r}")
    return number


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidValueError(f"{name} must be one of {listed}; got {value!r}")
    return value


def check_score_range(value: Any) -> tuple[float, float]:
    """Return `value` as (low, high) with low < high."""
    rule = "a pair (low, high) of numbers with low < high"
    try:
        low, high = value
    except (TypeError, ValueError):
        raise InvalidTypeError(f"score_range must be {rule}; got {value!r}") from None
    low, high = check_real("score_range", low, rule=rule), check_real("score_range", high, rule=rule)
    if not low < high:
        raise InvalidValueError(f"score_range must be {rule}; got {value!r}")
    return low, high


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a generator for `random_state`, leaving numpy's global state alone even for None."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint64))
    if random_state is not None and not isinstance(random_state, np.random.SeedSequence):
        random_state = check_int("random_state", random_state, minimum=0, alternative=", None or a numpy generator")
    return np.random.default_rng(random_state)


def thread_count(n_jobs: Any) -> int:
    """Return the number of threads `n_jobs` asks for: None is 1, -1 is every core."""
    if n_jobs is None:
        return 1
    if n_jobs == -1:
        import os

        return os.cpu_count() or 1
    return check_int("n_jobs", n_jobs, minimum=1, alternative=", -1 for every core, or None for one")
