"""The levels of an attribute: its values, or quantile ranges of a numeric attribute, and missing."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.attributes import AttributeColumn
from calibrant.params.declared_state import Saved
from calibrant.params.kind import EntryTable, Known
from calibrant.params.rules import TEXT, Flag, Number
from calibrant.params.state_kinds import Label, Lists
from calibrant.text.numbers import edge
from calibrant.text.sentences import shown

N_RANGES = 4
"""Number of ranges of a numeric attribute.

Pairs of quarters still have a twentieth of the rows, the usual floor.
"""
_FEW_VALUES = 5  # of a numeric attribute: each is a level


@dataclass(frozen=True, slots=True)
class AttributeLevels(Saved):
    """How an attribute is cut into levels: by its own values alone, never by a score or a label.

    Each text, truth value or category is a level. In a numeric attribute, a value that a quarter of
    the rows have is a level of its own, and so is each of at most five distinct values; the rest is
    cut at quartiles. Missing values are a level. A value that did not occur when the levels were
    made has no level.

    Attributes
    ----------
    name : str
        Name of the attribute.
    values : tuple
        Values that are levels of their own.
    cuts : tuple of float
        Upper ends of all ranges but the last: a number belongs to the first range whose end it does
        not exceed.
    spans : tuple of pairs of float
        The smallest and the largest number seen in each range; empty if there are no ranges.
    with_missing : bool
        Whether rows without a value are a level.
    """

    _entries: ClassVar[EntryTable] = {
        "name": TEXT,
        "values": Lists(Label()),
        "cuts": Lists(Number()),
        "spans": Lists(Lists(Number(), size=2)),
        "with_missing": Flag(),
        "is_numeric": Flag(),
    }

    name: str
    values: tuple[Hashable, ...]
    cuts: tuple[float, ...] = ()
    spans: tuple[tuple[float, float], ...] = ()
    with_missing: bool = False
    is_numeric: bool = False

    @classmethod
    def of(cls, column: AttributeColumn) -> Self:
        """The levels of an attribute, from its values in these rows.

        >>> from calibrant.params.attributes import read_attributes
        >>> (age,) = read_attributes({"age": [20, 25, 31, 36, 45, 52, 60, 71, None]})
        >>> AttributeLevels.of(age).words
        ('age up to 25', 'age 31 to 36', 'age 45 to 52', 'age 60 and above', 'age missing')
        >>> (gain,) = read_attributes({"gain": [0, 0, 0, 0, 1, 2, 3, 4]})
        >>> AttributeLevels.of(gain).words
        ('gain = 0', 'gain = 1', 'gain = 2', 'gain = 3', 'gain = 4')
        """
        with_missing = bool(column.missing.any())
        if column.numbers is None:
            present = (
                np.unique(column.place[column.place >= 0])
                if column.place is not None
                else np.empty(0, int)
            )
            seen_values: list[Any] = [column.values[place] for place in present.tolist()]
            values = sorted(seen_values, key=lambda value: (type(value).__name__, value))
            return cls(column.name, tuple(values), with_missing=with_missing)
        seen, counts = np.unique(column.numbers[~column.missing], return_counts=True)
        heavy = counts * N_RANGES >= counts.sum()
        if seen.size <= _FEW_VALUES:
            heavy[:] = True
        atoms = tuple(seen[heavy].tolist())
        cuts, spans = _ranges(seen[~heavy], counts[~heavy])
        return cls(column.name, atoms, cuts, spans, with_missing, is_numeric=True)

    @property
    def n_levels(self) -> int:
        """The number of levels."""
        return len(self.values) + len(self.spans) + int(self.with_missing)

    @property
    def words(self) -> tuple[str, ...]:
        """Each level in words."""
        values: tuple[Any, ...] = self.values
        single = [f"{self.name} = {edge(value) if self.is_numeric else value}" for value in values]
        missing = [f"{self.name} missing"] if self.with_missing else []
        return (*single, *self._range_words(), *missing)

    def _range_words(self) -> list[str]:
        last = len(self.spans) - 1
        atoms: list[Any] = list(self.values)
        texts = []
        for number, (low, high) in enumerate(self.spans):
            opens_below = number == 0 < last and not any(atom < low for atom in atoms)
            opens_above = number == last > 0 and not any(atom > high for atom in atoms)
            inside = " and ".join(edge(atom) for atom in atoms if low < atom < high)
            if opens_below:
                range_words = f"up to {edge(high)}"
            elif opens_above:
                range_words = f"{edge(low)} and above"
            else:
                range_words = f"{edge(low)} to {edge(high)}" if low < high else edge(low)
            texts.append(f"{self.name} {range_words}" + (f" but not {inside}" if inside else ""))
        return texts

    def codes(self, column: AttributeColumn) -> IndexArray:
        """The index of each row's level; -1 if it has none."""
        if self.is_numeric != column.is_numeric and len(column) and not column.missing.all():
            kind = "numbers" if self.is_numeric else "text or truth values"
            got = "numbers" if column.is_numeric else "other values"
            raise InvalidTypeError(
                "attributes", f"contain {kind} in {self.name!r}, as before", got=got
            )
        codes = (
            self._of_numbers(column.numbers)
            if column.numbers is not None
            else self._of_values(column)
        )
        codes[column.missing] = self.n_levels - 1 if self.with_missing else -1
        return codes

    def _of_values(self, column: AttributeColumn) -> IndexArray:
        numbers = {value: number for number, value in enumerate(self.values)}
        codes = np.array([*(numbers.get(value, -1) for value in column.values), -1], dtype=np.intp)
        places = np.full(len(column), -1) if column.place is None else column.place
        return codes[places]

    def _of_numbers(self, numbers: FloatArray) -> IndexArray:
        if self.spans:
            codes = len(self.values) + np.searchsorted(np.array(self.cuts), numbers, side="left")
        else:
            codes = np.full(numbers.size, -1)
        if self.values:
            atoms = np.array(self.values, dtype=np.float64)
            place = np.minimum(np.searchsorted(atoms, numbers), atoms.size - 1)
            codes = np.where(atoms[place] == numbers, place, codes)
        return np.asarray(codes, dtype=np.intp)

    def _check_state(self, known: Known) -> None:
        if self.spans and len(self.cuts) != len(self.spans) - 1:
            rule = "have one cut between two ranges"
            raise InvalidValueError("state", rule, got=f"{len(self.cuts)} cuts")
        if self.is_numeric and not all(type(value) is float for value in self.values):
            raise InvalidTypeError("values", "be numbers", got=shown(list(self.values)))


def _ranges(
    values: FloatArray, counts: Sequence[int] | IndexArray
) -> tuple[tuple[float, ...], tuple[tuple[float, float], ...]]:
    """Cuts at the quartiles of numbers given with their counts, and the numbers seen between them."""
    if not values.size:
        return (), ()
    ranks = np.cumsum(counts)
    wanted = ranks[-1] * np.arange(1, N_RANGES) / N_RANGES
    ends = np.unique(np.searchsorted(ranks, wanted, side="left"))
    ends = ends[ends < values.size - 1]
    starts = np.concatenate([[0], ends + 1])
    stops = np.concatenate([ends, [values.size - 1]])
    spans = tuple((float(values[a]), float(values[b])) for a, b in zip(starts, stops, strict=True))
    return tuple(values[ends].tolist()), spans
