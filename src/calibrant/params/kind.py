"""What an entry of a saved state is. The rule of a parameter is the kind of a plain value."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

Known: TypeAlias = Mapping[str, Any]
"""What is known when an entry is read: the entries before it, and what the caller knows."""

_NEEDED = object()


class Kind(ABC):
    """What an entry of a saved state is: how it is written, and the rule by which it is read."""

    is_attribute: ClassVar[bool] = True
    """Whether the entry holds an attribute, or only says something of the form."""
    is_in_place: ClassVar[bool] = False
    """Whether reading changes a part that is there already, so that nothing has to be set."""
    is_inline: ClassVar[bool] = False
    """Whether it is read from the whole state, and is written as several entries."""

    def written(self, value: Any) -> Any:
        """The value as plain JSON values."""
        return value

    @abstractmethod
    def read(self, value: Any, name: str, known: Known) -> Any:
        """The value back from JSON; raise an error that names it where it breaks the rule."""

    @property
    def entry(self) -> "Entry":
        """An entry of this kind that must be there, and has the name of its attribute."""
        return Entry(self)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a saved state.

    Attributes
    ----------
    kind : Kind
        What it is.
    of : str
        The attribute that it holds, or the path to it, where that has another name.
    absent : object
        What it means where the entry is not there. Without it, the entry must be there.
    always : bool
        Whether it is written even where it says what its absence means; files of earlier releases
        lack it.
    makes : bool
        For what goes on running: whether it is made of this entry. The others are taken over then.
    """

    kind: Kind
    of: str = ""
    absent: Any = _NEEDED
    always: bool = False
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
        """Whether it is not written, because its absence says the same."""
        if self.always or self.absent is _NEEDED:
            return False
        return value is self.absent or (not isinstance(value, np.ndarray) and value == self.absent)


EntryTable: TypeAlias = Mapping[str, Entry | Kind]
"""The entries of a state, by their names."""
