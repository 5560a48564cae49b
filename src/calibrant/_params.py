"""Checks of scalar parameters: one rule, one message, one place."""

import math
import operator
import os
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from calibrant.errors import InvalidTypeError, InvalidValueError

_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.SeedSequence)
_MOST_BINS = 10**7  # their edges take 80 MB
_THREADS_PER_CORE = 8  # more would cost memory and gain nothing


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


def check_bins(value: Any) -> int:
    """Return `value` as a number of bins whose edges fit into memory."""
    number = check_int("n_bins", value, minimum=1)
    if number > _MOST_BINS:
        raise InvalidValueError(f"n_bins must be at most {_MOST_BINS}; got {number}")
    return number


def check_real(name: str, value: Any, *, rule: str) -> float:
    """Return `value` as a finite float."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise InvalidTypeError(f"{name} must be {rule}; got {value!r} ({type(value).__name__})")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
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


def error_budget(confidence_level: Any) -> float:
    """Return alpha = 1 - confidence_level, never rounded up to 1: the largest double below it errs on the safe side."""
    return min(1.0 - check_open_unit("confidence_level", confidence_level), math.nextafter(1.0, 0.0))


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidValueError(f"{name} must be one of {listed}; got {value!r}")
    return value


def check_score_range(value: Any) -> tuple[float, float]:
    """Return `value` as (low, high) with low < high."""
    rule = "a pair (low, high) of numbers with low < high"
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str | bytes) or len(value) != 2:
        raise InvalidTypeError(f"score_range must be {rule}; got {value!r}")
    low, high = (check_real("score_range", bound, rule=rule) for bound in value)
    if not low < high or math.isinf(high - low):
        raise InvalidValueError(f"score_range must be {rule}; got {value!r}")
    return low, high


def check_state(state: Any, keys: Collection[str] = ()) -> None:
    """Refuse what is not the mapping that `to_dict` made."""
    if not isinstance(state, Mapping):
        raise InvalidTypeError(f"state must be the dict that to_dict returned; got {type(state).__name__}")
    absent = [key for key in keys if key not in state]
    if absent:
        raise InvalidValueError(
            f"state must have the key {absent[0]!r}, as to_dict writes it; got {sorted(map(str, state))[:20]}"
        )


def check_random_state(random_state: Any) -> None:
    """Refuse what can not seed a generator, without drawing from it."""
    if random_state is not None and not isinstance(random_state, _GENERATORS):
        check_int("random_state", random_state, minimum=0, alternative=", None or a numpy generator")


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a generator for `random_state`, leaving numpy's global state alone even for None."""
    check_random_state(random_state)
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint64))
    return np.random.default_rng(random_state)


def thread_count(n_jobs: Any) -> int:
    """Return the number of threads `n_jobs` asks for: None is 1, -1 is every core."""
    if n_jobs is None:
        return 1
    cores = os.cpu_count() or 1
    if isinstance(n_jobs, int | np.integer) and n_jobs == -1:
        return cores
    number = check_int("n_jobs", n_jobs, minimum=1, alternative=", -1 for every core, or None for one")
    return min(number, _THREADS_PER_CORE * cores)
