"""The kinds of entries in a saved state: each kind defines how it is written, and the rule by which
it is read.

A kind is declared once, in the table of a class (`calibrant.params.declared_state`). If a length
must equal that of something else, the path to it is given: `Numbers(size="partition.n_regions")`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from calibrant._typing import FloatArray
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.params.arrays import EXACT_INTEGERS, as_whole
from calibrant.params.kind import Kind, Known
from calibrant.params.rules import Integer, Number
from calibrant.params.saved_state import (
    check_size,
    read_counts,
    read_labels,
    read_numbers,
)
from calibrant.text.sentences import shown

Size: TypeAlias = int | str | None
"""A length: a number, or the path to it in what is known; None for any length."""


_FINITE = Number()


@dataclass(frozen=True)
class Constant(Kind):
    """A value that is always the same, such as the size of a grid or the name of a kind."""

    value: int | str
    is_attribute = False

    def written(self, value: Any) -> Any:
        """The value itself."""
        return self.value

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return the value; raise for any other."""
        if type(value) is not type(self.value) or value != self.value:
            raise InvalidValueError(name, f"be {self.value!r}", got=shown(value))
        return value


@dataclass(frozen=True)
class Most(Kind):
    """A whole number from 0 to a maximum."""

    most: int
    words: str

    def read(self, value: Any, name: str, known: Known) -> int:
        """Return a plain int."""
        number = Integer(0).check(name, value)
        if number > self.most:
            raise InvalidValueError(name, f"be at most {self.words}", got=shown(number))
        return number


class OneCount(Most):
    """A whole number from 0 to the largest that a double counts exactly."""

    def __init__(self) -> None:
        super().__init__(EXACT_INTEGERS, f"{EXACT_INTEGERS:,}")


@dataclass(frozen=True)
class _Array(Kind):
    """An array, written as a list."""

    size: Size = None

    def written(self, value: Any) -> list[Any]:
        """A list."""
        return as_list(value)


@dataclass(frozen=True)
class Numbers(_Array):
    """Finite numbers from `low` to `high`, as an array; `rising` for nondecreasing, `increasing`
    for strictly increasing.
    """

    low: float = -math.inf
    high: float = math.inf
    rising: bool = False
    increasing: bool = False
    dtype: ClassVar[type] = np.float64

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return an array of doubles."""
        size = size_of(self.size, known)
        numbers = read_numbers(value, name, size=size, low=self.low, high=self.high)
        before = numbers[:-1]
        after = numbers[1:]
        if self.increasing and (after <= before).any():
            raise InvalidValueError(name, "be strictly increasing", got=shown(numbers.tolist()))
        if self.rising and (after < before).any():
            raise InvalidValueError(name, "be in increasing order", got=shown(numbers.tolist()))
        return numbers


@dataclass(frozen=True)
class Counts(_Array):
    """Whole numbers >= 0, as an array."""

    dtype: ClassVar[type] = np.int64

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return an array of 64-bit integers."""
        return read_counts(value, name, size=size_of(self.size, known))


@dataclass(frozen=True)
class Whole(_Array):
    """Whole numbers >= 0, written as integers, as an array; at most 2**53 unless specified."""

    most: int = EXACT_INTEGERS

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return an array of 64-bit integers."""
        array = as_whole(value, name, "be a list of whole numbers", self.most)
        check_size(array.size, size_of(self.size, known), name)
        return array


@dataclass(frozen=True)
class NumberOrNull(Kind):
    """A number, or null for infinity or NaN."""

    null: float
    rule: Number = _FINITE

    def written(self, value: float) -> float | None:
        """Null for a number that is not finite."""
        return value if math.isfinite(value) else None

    def read(self, value: Any, name: str, known: Known) -> float:
        """Return a plain float."""
        return self.null if value is None else self.rule.check(name, value)


@dataclass(frozen=True)
class NumbersOrNull(Kind):
    """Numbers, with null for infinity."""

    null: float
    size: Size = None
    low: float = -math.inf

    def written(self, value: FloatArray) -> list[float | None]:
        """A list with null for each infinite number."""
        return [number if math.isfinite(number) else None for number in value.tolist()]

    def read(self, value: Any, name: str, known: Known) -> FloatArray:
        """Return an array of doubles."""
        if not isinstance(value, list | tuple):
            raise InvalidTypeError(name, "be a list of numbers or null", got=type(value).__name__)
        check_size(len(value), size_of(self.size, known), name)
        is_given = np.array([number is not None for number in value], dtype=bool)
        numbers = np.full(len(value), self.null)
        finite = [number for number in value if number is not None]
        numbers[is_given] = read_numbers(finite, name, low=self.low)
        return numbers


@dataclass(frozen=True)
class Tabled(Kind):
    """A list of lists of equal length, as a two-dimensional array; `of` is the kind of each row."""

    of: Numbers | Counts
    n_rows: Size = None

    def written(self, value: Any) -> list[Any]:
        """A list of lists."""
        return as_list(value)

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return a two-dimensional array."""
        rows = a_list(value, name, size=size_of(self.n_rows, known))
        read = [self.of.read(row, name, known) for row in rows]
        if len({row.size for row in read}) > 1:
            raise InvalidValueError(name, "have rows of one length", got="rows of several")
        width = size_of(self.of.size, known)
        if read or width is None:
            return np.array(read)
        return np.zeros((0, width), dtype=self.of.dtype)


@dataclass(frozen=True)
class Lists(Kind):
    """A list of objects of one kind, as a tuple, or `into` a list if it keeps growing."""

    of: Kind
    size: Size = None
    least: int = 0
    into: type = tuple

    def written(self, value: Any) -> list[Any]:
        """A list."""
        return [self.of.written(one) for one in value]

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return a tuple, or a list."""
        size = size_of(self.size, known)
        entries = a_list(value, name, size=size, least=self.least)
        return self.into(self.of.read(one, f"{name}[{n}]", known) for n, one in enumerate(entries))


@dataclass(frozen=True)
class Mapped(Kind):
    """Objects of one kind, by name."""

    of: Kind
    longest: int
    """Maximum length of a name, in characters."""

    def written(self, value: Any) -> dict[str, Any]:
        """An object."""
        return {name: self.of.written(one) for name, one in value.items()}

    def read(self, value: Any, name: str, known: Known) -> dict[str, Any]:
        """Return a dict."""
        if not isinstance(value, Mapping):
            raise InvalidTypeError(name, "be an object", got=type(value).__name__)
        for key in value:
            if not isinstance(key, str) or len(key) > self.longest:
                rule = f"have names of at most {self.longest} characters"
                raise InvalidValueError(name, rule, got=shown(key))
        return {key: self.of.read(one, f"{name}[{key!r}]", known) for key, one in value.items()}


@dataclass(frozen=True)
class Maybe(Kind):
    """Null, or an object of another kind."""

    of: Kind

    def written(self, value: Any) -> Any:
        """Null for None."""
        return None if value is None else self.of.written(value)

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return None, or the object that the other kind reads."""
        return None if value is None else self.of.read(value, name, known)


@dataclass(frozen=True)
class Nested(Kind):
    """An object that another class saves; an error inside it names the whole path."""

    of: Any
    """A class with `to_dict` and `from_dict`, or a function that returns one."""

    def written(self, value: Any) -> Any:
        """The state that its own class writes."""
        return value.to_dict()

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return the object that its own class reads."""
        of: Any = self.of if isinstance(self.of, type) else self.of()
        try:
            if hasattr(of, "_made"):
                return of.from_dict(value, known)
            return of.from_dict(value)
        except CalibrantError as error:
            raise within(error, name) from error


@dataclass(frozen=True)
class Listed(Kind):
    """An object that another class saves, as a list of its entries without their names."""

    of: Any

    def written(self, value: Any) -> list[Any]:
        """The entries, in the order of declaration."""
        return list(value.to_dict().values())

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return the object that its own class reads."""
        names = list(self.of._entries)
        entries = a_list(value, name, size=len(names))
        return Nested(self.of).read(dict(zip(names, entries, strict=True)), name, known)


class Label(Kind):
    """Text, a bool, a 64-bit integer or a finite float."""

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return it unchanged."""
        return read_labels([value], name)[0]


@dataclass(frozen=True)
class Written(Kind):
    """A custom format, given by two functions. Most entries need none."""

    write: Callable[[Any], Any]
    check: Callable[[Any, str, Known], Any]

    def written(self, value: Any) -> Any:
        """The result of the first function."""
        return self.write(value)

    def read(self, value: Any, name: str, known: Known) -> Any:
        """The result of the second function."""
        return self.check(value, name, known)


def size_of(size: Size, known: Known) -> int | None:
    """The declared length, looked up by its path in what is known.

    >>> known = {"edges": np.zeros(3)}
    >>> size_of("edges", known), size_of("edges.ndim", known), size_of(2, {}), size_of(None, {})
    (3, 1, 2, None)
    """
    if not isinstance(size, str):
        return size
    value = found_at(size, known)
    return int(value) if isinstance(value, int | np.integer) else len(value)


def found_at(path: str, known: Known) -> Any:
    """The object at a path that begins with an entry, or with an attribute of the object being
    restored.
    """
    first, *rest = path.split(".")
    value = known[first] if first in known else getattr(known["self"], first)
    for name in rest:
        value = getattr(value, name)
    return value


def a_list(
    value: Any,
    name: str,
    *,
    size: int | None = None,
    least: int = 0,
) -> Any:
    """A list with the required number of entries."""
    if not isinstance(value, list | tuple):
        raise InvalidTypeError(name, "be a list", got=type(value).__name__)
    check_size(len(value), size, name)
    if len(value) < least:
        raise InvalidValueError(name, f"have at least {least:,} entries", got=f"{len(value):,}")
    return value


def as_list(value: Any) -> list[Any]:
    """An array or a tuple as a list of plain values."""
    values: list[Any] = value.tolist() if isinstance(value, np.ndarray) else list(value)
    return values


def within(error: CalibrantError, place: str) -> CalibrantError:
    """The same error, with the path of the place where it occurred.

    >>> str(within(InvalidValueError("counts", "be whole numbers", got="0.5"), "tally"))
    'tally.counts must be whole numbers; got 0.5'
    """
    if error.parameter is None:
        return error
    path = place if error.parameter == "state" else f"{place}.{error.parameter}"
    return type(error)(path, error.rule, error.got, error.advice, error.column)
