"""The kinds of entries in a saved state. The rule of a parameter is the kind of a plain value."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

Known: TypeAlias = Mapping[str, Any]
"""What is known when an entry is read: the entries before it, and what the caller provides."""

_NEEDED = object()


class Kind(ABC):
    """The kind of an entry in a saved state: how it is written, and the rule by which it is read."""

    is_attribute: ClassVar[bool] = True
    """Whether the entry holds an attribute, rather than describing the format."""
    is_in_place: ClassVar[bool] = False
    """Whether reading modifies an existing part, so that no attribute has to be set."""
    is_inline: ClassVar[bool] = False
    """Whether it is read from the whole state and written as several entries."""

    def written(self, value: Any) -> Any:
        """The value as plain JSON values."""
        return value

    @abstractmethod
    def read(self, value: Any, name: str, known: Known) -> Any:
        """Read the value from JSON; raise an error that names it if it breaks the rule."""

    @property
    def entry(self) -> "Entry":
        """A required entry of this kind, with the name of its attribute."""
        return Entry(self)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a saved state.

    Attributes
    ----------
    kind : Kind
        The kind of the entry.
    of : str
        The attribute that it holds, or the path to it, if that differs from the name of the entry.
    absent : object
        The value of a missing entry. Without it, the entry is required.
    makes : bool
        For running objects: whether the constructor takes this entry. The object then resumes from
        the others.
    """

    kind: Kind
    of: str = ""
    absent: Any = _NEEDED
    makes: bool = False

    @property
    def entry(self) -> "Entry":
        """The entry itself."""
        return self

    @property
    def is_needed(self) -> bool:
        """Whether a state must have it."""
        return self.absent is _NEEDED and not self.kind.is_inline

    def is_left_out(self, value: Any) -> bool:
        """Whether it is not written, because its absence means the same."""
        if self.absent is _NEEDED:
            return False
        return value is self.absent or (not isinstance(value, np.ndarray) and value == self.absent)


EntryTable: TypeAlias = Mapping[str, Entry | Kind]
"""The entries of a state, by name."""
