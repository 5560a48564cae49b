"""Saved state is declared: each class has one table of its entries, which is written and read here.

The table stands next to the fields, like the rules of parameters. Rules that concern several
entries are in one method, `_check_state`.

>>> import numpy as np
>>> from calibrant.params.rules import Integer
>>> from calibrant.params.state_kinds import Counts, Numbers
>>> @dataclass(frozen=True)
... class Bins(Saved):
...     _entries: ClassVar[EntryTable] = {
...         "edges": Numbers(increasing=True),
...         "counts": Counts(size="edges.size"),
...         "aside": Entry(Integer(0), absent=0),
...     }
...     edges: Any
...     counts: Any
...     aside: int = 0
>>> bins = Bins(np.array([0.2, 0.5]), np.array([3, 4]))
>>> bins.to_dict()
{'edges': [0.2, 0.5], 'counts': [3, 4]}
>>> Bins.from_dict({"edges": [0.2, 0.5], "counts": [3, 4, 5]})
Traceback (most recent call last):
calibrant.errors.InvalidValueError: counts must have 2 entries; got 3
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from calibrant._lock import Locked
from calibrant.errors import CalibrantError
from calibrant.params.kind import Entry, EntryTable, Kind, Known
from calibrant.params.labels import Classes
from calibrant.params.saved_state import check_schema, check_state, read_classes
from calibrant.params.state_kinds import a_list, found_at, within

S = TypeVar("S", bound="Saved")

NOTHING_KNOWN: Known = MappingProxyType({})
"""Nothing besides the state itself."""


@dataclass(frozen=True)
class Inline(Kind):
    """The entries of another class, saved alongside the others.

    `where` maps each name that the other class needs to its path.
    """

    of: Any
    where: Mapping[str, str] = field(default_factory=dict)
    is_inline = True

    def written(self, value: Any) -> Any:
        """The entries of the other class."""
        return value.to_dict()

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return the object that the other class reads from the whole state."""
        sizes = {name: found_at(path, known) for name, path in self.where.items()}
        return self.of.from_dict(value, {**known, **sizes})


@dataclass(frozen=True)
class Record(Kind):
    """An object of another class, of which some fields are declared here; `also` holds the others."""

    make: Callable[..., Any]
    entries: EntryTable
    also: Mapping[str, Any] = field(default_factory=dict)

    def written(self, value: Any) -> dict[str, Any]:
        """The declared fields."""
        return written(declared(self.entries), value)

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Return an object with these fields."""
        try:
            read = read_declared(declared(self.entries), value, known)
        except CalibrantError as error:
            raise within(error, name) from error
        return self.make(**read, **self.also)


class LabelEntries(Inline):
    """The two classes, and which of them is positive."""

    def __init__(self) -> None:
        super().__init__(Classes)

    def written(self, value: Any) -> Any:
        """Two entries."""
        return {"classes": value.labels.tolist(), "positive_index": value.positive_index}

    def read(self, value: Any, name: str, known: Known) -> Classes:
        """Return the classes; raise unless they are sorted, as `fit` leaves them."""
        check_state(value, ("classes", "positive_index"))
        return read_classes(value["classes"], value["positive_index"])


@dataclass(frozen=True)
class Resumes(Kind):
    """The saved state of an existing part, which resumes from it; `of` is the part's attribute."""

    of: str
    is_in_place = True

    def written(self, value: Any) -> Any:
        """The part's own state."""
        return value.to_dict()

    def read(self, value: Any, name: str, known: Known) -> Any:
        """Let the part resume from its state."""
        try:
            return getattr(known["self"], self.of)._resume(value)
        except CalibrantError as error:
            raise within(error, name) from error


@dataclass(frozen=True)
class ResumesEach(Kind):
    """The saved states of a list of existing parts, which resume one by one; `of` is the list's
    attribute.
    """

    of: str
    is_in_place = True

    def written(self, value: Any) -> list[Any]:
        """The state of each part."""
        return [part.to_dict() for part in value]

    def read(self, value: Any, name: str, known: Known) -> list[Any]:
        """Let each part resume from its state."""
        parts = getattr(known["self"], self.of)
        saved = a_list(value, name, size=len(parts))
        try:
            return [part._resume(one) for part, one in zip(parts, saved, strict=True)]
        except CalibrantError as error:
            raise within(error, name) from error


def declared_entries(kind: type, table: str = "_entries") -> dict[str, Entry]:
    """The entries of a class, after those of its bases; a class may override one."""
    entries: dict[str, Entry] = {}
    for base in reversed(kind.__mro__):
        entries.update(declared(vars(base).get(table, {})))
    return entries


def declared(table: EntryTable) -> dict[str, Entry]:
    """Convert a table of entries and kinds to entries."""
    return {name: given.entry for name, given in table.items()}


def written(entries: Mapping[str, Entry], thing: Any) -> dict[str, Any]:
    """The declared attributes of an object, as plain JSON values."""
    state: dict[str, Any] = {}
    for name, entry in entries.items():
        kind = entry.kind
        value = attrgetter(entry.of or name)(thing) if kind.is_attribute else None
        if kind.is_inline:
            state.update(kind.written(value))
        elif not entry.is_left_out(value):
            state[name] = kind.written(value)
    return state


def read_entries(entries: Mapping[str, Entry], state: Any, known: Known) -> dict[str, Any]:
    """Read the declared entries of a state, each by its rule; the result is keyed by entry name."""
    check_state(state, [name for name, entry in entries.items() if entry.is_needed])
    values: dict[str, Any] = {}
    seen = dict(known)
    for name, entry in entries.items():
        if entry.kind.is_inline:
            value = entry.kind.read(state, name, seen)
        elif name in state:
            value = entry.kind.read(state[name], name, seen)
        else:
            value = copy(entry.absent)
        seen[name] = value
        seen[entry.of or name] = value
        if entry.kind.is_attribute and not entry.kind.is_in_place:
            values[name] = value
    return values


def read_declared(entries: Mapping[str, Entry], state: Any, known: Known) -> dict[str, Any]:
    """Read the declared entries of a state; the result is keyed by attribute name."""
    values = read_entries(entries, state, known)
    return {entries[name].of or name: value for name, value in values.items()}


class DeclaredState:
    """An object whose state is declared in a table of entries, and written by it."""

    __slots__ = ()

    _entries: ClassVar[EntryTable] = {}
    _schema: ClassVar[str] = ""
    """The schema of a state that stands alone: its kind and version."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values; `from_dict` reads it back."""
        own = {"schema": self._schema} if self._schema else {}
        return own | written(declared_entries(type(self)), self)


class Saved(DeclaredState):
    """An object that is read back from its saved state.

    A class that is not constructed from its attributes by name overrides `_made`.
    """

    __slots__ = ()

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], known: Known = NOTHING_KNOWN) -> Self:
        """Read back what `to_dict` wrote; `known` is what its entries must agree with."""
        return restored(cls, state, known)

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        """Construct the object from these attributes."""
        return cls(**values)

    def _check_state(self, known: Known) -> None:
        """Raise an error for entries that contradict each other or what is known."""


def restored(kind: type[S], state: Any, known: Known = NOTHING_KNOWN) -> S:
    """Restore an object from a state, by the entries that its class declares."""
    if kind._schema:
        check_schema(state, kind._schema, ())
    thing = kind._made(read_declared(declared_entries(kind), state, known), known)
    thing._check_state(known)
    return thing


class Resumed(DeclaredState):
    """A running object: it is constructed from its settings and then resumes from its saved state."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], known: Known = NOTHING_KNOWN) -> Self:
        """Read back what `to_dict` wrote; `known` is the rest of what it is made from."""
        if cls._schema:
            check_schema(state, cls._schema, ())
        settings = {name: entry for name, entry in declared_entries(cls).items() if entry.makes}
        return cls._begun(read_declared(settings, state, known), known)._resume(state)

    @classmethod
    def _begun(cls, settings: dict[str, Any], known: Known) -> Self:
        """Construct a new object with the same settings."""
        return cls(**settings)

    def _resume(self, state: Mapping[str, Any]) -> Self:
        """Resume from what `to_dict` wrote, apart from the settings."""
        rest = {
            name: entry for name, entry in declared_entries(type(self)).items() if not entry.makes
        }
        for name, value in read_declared(rest, state, {"self": self}).items():
            setattr(self, name, value)
        self._check_state()
        return self

    def _check_state(self) -> None:
        """Raise an error for contradictory entries; set what follows from the entries."""


class SharedResumed(Locked, Resumed):
    """A running object that several threads may update; it is saved between two updates."""

    def to_dict(self) -> dict[str, Any]:
        """Return what is remembered as plain JSON values; `from_dict` reads it back."""
        with self._lock:
            return super().to_dict()
