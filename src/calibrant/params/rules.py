"""Rules for parameters: each rule is written once, with its wording and its check.

An estimator class has its rules in one table, `_rules = {"cv": Integer(2)}`, next to the fields,
and `CheckedParameters` checks them. Functions check a value with a rule, `Integer(1).check("cv",
cv)`.
"""

from __future__ import annotations

import math
import operator
import os
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from numbers import Real
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.kind import Kind, Known
from calibrant.text.sentences import did_you_mean, shown

T = TypeVar("T", covariant=True)
S = TypeVar("S")
Estimator = TypeVar("Estimator", bound=type)
ALPHA = "use confidence_level, which is 1 - alpha"
"""What replaces `alpha`, a parameter of other libraries; see `replaces`."""
_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.SeedSequence)
_MOST_BINS = 10**7  # their edges take 80 MB
_THREADS_PER_CORE = 8  # more would cost memory without any gain


class Rule(Kind, Generic[T]):
    """A rule for a parameter.

    A subclass sets `words`, what follows "must be", and implements `parse`. Rules combine:
    `Integer(1) | Only("auto")`.
    """

    words: str
    choices: tuple[str, ...] = ()
    """The allowed words, if the value must be one of several words."""

    @abstractmethod
    def parse(self, value: Any) -> T:
        """Return the value in its plain form.

        Raise TypeError for a wrong type and ValueError for a wrong value.
        """

    def check(self, name: str, value: Any) -> T:
        """Return the value in its plain form, or raise an error that names the parameter.

        >>> (Integer(1) | Only("auto")).check("n_bins", "ten")
        Traceback (most recent call last):
        calibrant.errors.InvalidValueError: n_bins must be an int >= 1 or "auto"; got 'ten'
        """
        try:
            return self.parse(value)
        except TypeError:
            raise InvalidTypeError(name, f"be {self.words}", got=shown(value)) from None
        except ValueError:
            raise InvalidValueError(
                name, f"be {self.words}", got=shown(value), advice=self.advice(value)
            ) from None

    def read(self, value: Any, name: str, known: Known) -> T:
        """Return a value from a saved state in its plain form."""
        return self.check(name, value)

    def advice(self, value: Any) -> str | None:
        """What was probably meant by an invalid value."""
        return did_you_mean(value, self.choices) if isinstance(value, str) else None

    @property
    def alternatives(self) -> tuple[Rule[Any], ...]:
        """The rules of which one must hold: only this one."""
        return (self,)

    def __or__(self, other: Rule[S]) -> Rule[T | S]:
        return _AnyOf(self, other)


class _AnyOf(Rule[Any]):
    """One of several rules."""

    def __init__(self, first: Rule[Any], last: Rule[Any]) -> None:
        self._rules: tuple[Rule[Any], ...] = (*first.alternatives, last)
        self.words = f"{', '.join(rule.words for rule in self._rules[:-1])} or {last.words}"
        self.choices = tuple(word for rule in self._rules for word in rule.choices)

    @property
    def alternatives(self) -> tuple[Rule[Any], ...]:
        """The rules of which one must hold."""
        return self._rules

    def parse(self, value: Any) -> Any:
        wrong_value = False
        for rule in self._rules:
            try:
                return rule.parse(value)
            except TypeError:
                continue
            except ValueError:
                wrong_value = True
        raise ValueError if wrong_value else TypeError


class Integer(Rule[int]):
    """A whole number of at least `minimum`."""

    def __init__(self, minimum: int, words: str = "an int") -> None:
        self.minimum = minimum
        self.words = f"{words} >= {minimum}"

    def parse(self, value: Any) -> int:
        """Return a plain int."""
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
        if number < self.minimum:
            raise ValueError
        return number


@dataclass(frozen=True)
class Number(Rule[float]):
    """A finite number, from `low` to `high` if given; limits are included unless `open_low` or
    `open_high`.
    """

    words: str = "a finite number"
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def written(self, value: Any) -> float:
        """A plain float."""
        return float(value)

    def parse(self, value: Any) -> float:
        """Return a plain float."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            raise TypeError
        try:
            number = float(value)
        except OverflowError:
            raise ValueError from None
        outside = not (math.isfinite(number) and self.low <= number <= self.high)
        if (
            outside
            or (self.open_low and number == self.low)
            or (self.open_high and number == self.high)
        ):
            raise ValueError
        return number

    def advice(self, value: Any) -> str | None:
        """Advice for a share that was given in percent.

        >>> OPEN_UNIT.advice(80)
        'write 0.8 for 80%'
        """
        percentage = (self.low, self.high) == (0.0, 1.0) and 1.0 < value < 100.0
        return f"write {value / 100:g} for {value:g}%" if percentage else None


class Only(Rule[str]):
    """One word, such as "auto"."""

    def __init__(self, word: str) -> None:
        self._word = word
        self.words = f'"{word}"'

    def parse(self, value: Any) -> str:
        """Return the word."""
        if not isinstance(value, str):
            raise TypeError
        if value != self._word:
            raise ValueError
        return self._word


class Choice(Rule[str]):
    """One of several words."""

    def __init__(self, choices: Collection[str]) -> None:
        self.choices = tuple(choices)
        self.words = f"one of {', '.join(map(repr, self.choices))}"

    def parse(self, value: Any) -> str:
        """Return the word."""
        if not isinstance(value, str) or value not in self.choices:
            raise ValueError
        return value


class Flag(Rule[bool]):
    """True or False."""

    words = "True or False"

    def written(self, value: Any) -> bool:
        """A plain bool."""
        return bool(value)

    def parse(self, value: Any) -> bool:
        """Return a plain bool."""
        if not isinstance(value, bool | np.bool_):
            raise TypeError
        return bool(value)


@dataclass(frozen=True)
class _Passing(Rule[Any]):
    """An object that passes a test."""

    words: str
    test: Callable[[Any], bool]

    def parse(self, value: Any) -> Any:
        """Return the object."""
        if not self.test(value):
            raise TypeError
        return value


class Instance(_Passing):
    """An instance of one of the given types; `words` says which, with an example."""

    def __init__(self, kind: type | tuple[type, ...], words: str) -> None:
        super().__init__(words, lambda value: isinstance(value, kind))


class Names(_Passing):
    """A list of names, each a text or a number; `words` says of what, with an example."""

    def __init__(self, words: str) -> None:
        super().__init__(words, _are_names)


class Having(_Passing):
    """An object, not a class, that has certain methods; `words` says what it is, with an example."""

    def __init__(self, methods: tuple[str, ...], words: str) -> None:
        super().__init__(
            words,
            lambda value: not isinstance(value, type) and all(hasattr(value, m) for m in methods),
        )


class Optional(Rule[S | None]):
    """None, or what another rule accepts. The words do not mention None."""

    def __init__(self, rule: Rule[S]) -> None:
        self._rule = rule
        self.words = rule.words

    def parse(self, value: Any) -> S | None:
        """Return None, or the value in its plain form."""
        return None if value is None else self._rule.parse(value)


@dataclass(frozen=True)
class Pair(Rule[tuple[float, float]]):
    """Two numbers that satisfy a rule; if `increasing`, in increasing order and a finite distance
    apart.
    """

    words: str
    rule: Number
    increasing: bool = False

    def parse(self, value: Any) -> tuple[float, float]:
        """Return two plain floats."""
        if (
            not isinstance(value, Sequence | np.ndarray)
            or isinstance(value, str | bytes)
            or len(value) != 2
        ):
            raise TypeError
        first, second = (self.rule.parse(number) for number in value)
        if self.increasing and not 0.0 < second - first < math.inf:
            raise ValueError
        return first, second


class RandomState(Rule[Any]):
    """A seed for a random generator; nothing is drawn from it."""

    words = "an int >= 0, a numpy generator or None"

    def parse(self, value: Any) -> Any:
        """Return it unchanged."""
        return value if value is None or isinstance(value, _GENERATORS) else Integer(0).parse(value)


class Jobs(Rule[int]):
    """How many threads to use."""

    words = "an int >= 1, -1 for every core or None for one thread"

    def parse(self, value: Any) -> int:
        """Return the number of threads."""
        if value is None:
            return 1
        cores = os.cpu_count() or 1
        if isinstance(value, int | np.integer) and value == -1:
            return cores
        return min(Integer(1).parse(value), _THREADS_PER_CORE * cores)


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(name, str | int | float | np.generic) for name in value
    )


SCORE_RANGE = Pair("a pair (low, high) of numbers with low < high", Number(), increasing=True)
OPEN_UNIT = Number("a number strictly between 0 and 1", 0.0, 1.0, open_low=True, open_high=True)
_FRACTION = Number("a fraction strictly between 0 and 1", 0.0, 1.0, open_low=True, open_high=True)
CLIP = Number("a number strictly between 0 and 0.5", 0.0, 0.5, open_low=True, open_high=True)
TEXT = Instance(str, "text")
FRACTION_OR_COUNT = _FRACTION | Integer(1, "a number of rows")
"""Part of the rows: a fraction of them, or a number."""
SIZE_OF_HOLD_OUT = _FRACTION | Integer(0, "a number of rows") | Only("auto")
"""Part of the rows as a fraction or a number, including 0, or "auto"."""


RuleTable: TypeAlias = Mapping[str, Rule[object]]
"""The rule of each parameter, by name."""


class CheckedParameters:
    """A dataclass whose fields are parameters and whose table `_rules` holds their rules.

    A class adds the rules of its own parameters, and may replace an inherited rule. `pos_label` and
    `classes` have no rule: they are checked together with the labels.

    >>> @dataclass
    ... class Folds(CheckedParameters):
    ...     _rules: ClassVar[RuleTable] = {"cv": Integer(2)}
    ...     cv: int = 5
    ...     random_state: int = 0
    >>> {name: rule.words for name, rule in Folds._parameter_rules().items()}
    {'cv': 'an int >= 2', 'random_state': 'an int >= 0, a numpy generator or None'}
    """

    _rules: ClassVar[RuleTable] = {
        "confidence_level": OPEN_UNIT,
        "random_state": RandomState(),
        "n_jobs": Jobs(),
    }
    """Rules of the parameters that mean the same in every class that has them."""

    @classmethod
    def _parameter_rules(cls) -> dict[str, Rule[object]]:
        """The rule of each parameter, in the order of the parameters.

        If several classes in the hierarchy have a rule for it, the most derived one is used.
        """
        nearest: dict[str, Rule[object]] = {}
        for base in reversed(cls.__mro__):
            nearest.update(vars(base).get("_rules", {}))
        parameters = getattr(cls, "__dataclass_fields__", {})
        return {name: nearest[name] for name in parameters if name in nearest}

    def _check_parameters(self) -> None:
        """Raise an error for the first parameter that breaks its rule."""
        for name, rule in self._parameter_rules().items():
            rule.check(name, getattr(self, name))


def replaces(**advice: str) -> Callable[[Estimator], Estimator]:
    """Decorate a class so that its constructor says what replaces a parameter of another library.

    Python would only say that the argument is unexpected. The signature is unchanged.

    Examples
    --------
    >>> from calibrant import BinningCalibrator
    >>> try:
    ...     BinningCalibrator(alpha=0.1)
    ... except TypeError as error:
    ...     print(error)
    alpha must be left out; got 0.1: use confidence_level, which is 1 - alpha
    """

    def decorate(estimator: Estimator) -> Estimator:
        constructor: Callable[..., None] = vars(estimator)["__init__"]

        @wraps(constructor)
        def checked(self: Any, *args: Any, **parameters: Any) -> None:
            for name, instead in advice.items():
                if name in parameters:
                    got = shown(parameters[name])
                    raise InvalidTypeError(name, "be left out", got=got, advice=instead)
            constructor(self, *args, **parameters)

        estimator.__init__ = checked  # type: ignore[misc]
        return estimator

    return decorate


def check_type(name: str, value: object, kind: type, words: str) -> None:
    """Raise an error that names the parameter and the type given, if the object has the wrong type.

    >>> check_type("tally", [1, 2], dict, "a Tally")
    Traceback (most recent call last):
    calibrant.errors.InvalidTypeError: tally must be a Tally; got list
    """
    if not isinstance(value, kind):
        raise InvalidTypeError(name, f"be {words}", got=type(value).__name__)


def check_bins(value: Any) -> int:
    """Return `value` as a number of bins whose edges fit in memory."""
    number = Integer(1).check("n_bins", value)
    if number > _MOST_BINS:
        raise InvalidValueError("n_bins", f"be at most {_MOST_BINS:,}", got=f"{number:,}")
    return number


def error_budget(confidence_level: Any) -> float:
    """Return alpha = 1 - confidence_level, never rounded up to 1: the largest double below 1 errs
    on the safe side.
    """
    return min(
        1.0 - OPEN_UNIT.check("confidence_level", confidence_level),
        math.nextafter(1.0, 0.0),
    )


def thread_count(n_jobs: Any) -> int:
    """Return the number of threads that `n_jobs` requests: 1 for None, every core for -1."""
    return Jobs().check("n_jobs", n_jobs)


WEIGHT_BOUND = Number("a number > 0 that no importance weight can exceed", 0.0, open_low=True)
GROUP_SIZE = Integer(1)
TARGETS = ("rows", "groups")
GROUP_TARGET = Choice(TARGETS)
