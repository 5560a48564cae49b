"""The features of a correction: the score and the attributes, each in a few bins."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.attributes import AttributeColumn
from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import TEXT, Number
from calibrant.params.state_kinds import Label, Lists, Maybe
from calibrant.text.sentences import shown

MOST_BINS = 32
"""Bins of a number; a tree splits between two of them."""
_MOST_VALUES = 256  # of a non-numeric attribute; the others count as unknown


@dataclass(frozen=True, slots=True)
class Feature(Saved):
    """The bins of one number, or of one attribute by value.

    The last bin is for missing and unknown values.

    Attributes
    ----------
    name : str
        Name of the attribute; empty for the score.
    edges : tuple of float
        For a number: bin b holds what exceeds exactly b of them.
    values : tuple
        For an attribute by value: the value of each bin.
    is_numeric : bool
        Whether bins have an order.
    """

    _entries: ClassVar[EntryTable] = {
        "name": TEXT,
        "edges": Entry(Maybe(Lists(Number())), of="_own_edges", absent=None),
        "values": Entry(Maybe(Lists(Label())), of="_own_values", absent=None),
    }

    name: str
    edges: tuple[float, ...] = ()
    values: tuple[Hashable, ...] = ()
    is_numeric: bool = True

    @classmethod
    def of(cls, column: AttributeColumn) -> Self:
        """Cut a number at its quantiles; count the most frequent values of an attribute."""
        if column.numbers is not None:
            seen = column.numbers[~column.missing]
            if not seen.size:
                return cls(column.name)
            wanted = np.arange(1, MOST_BINS) / MOST_BINS
            edges = np.unique(np.quantile(seen, wanted, method="lower"))
            return cls(column.name, tuple(edges[edges < seen.max()].tolist()))
        places = np.empty(0, dtype=np.intp) if column.place is None else column.place
        counts = np.bincount(places[places >= 0], minlength=len(column.values))
        frequent = np.argsort(-counts, kind="stable")[:_MOST_VALUES].tolist()
        values: list[Any] = [column.values[place] for place in frequent if counts[place]]
        values.sort(key=lambda value: (type(value).__name__, value))
        return cls(column.name, (), tuple(values), is_numeric=False)

    @property
    def n_bins(self) -> int:
        """The number of bins, including that of missing values."""
        return (len(self.edges) + 1 if self.is_numeric else len(self.values)) + 1

    def bins(self, column: AttributeColumn) -> IndexArray:
        """The bin of each row."""
        last = self.n_bins - 1
        if column.numbers is not None and self.is_numeric:
            found = np.searchsorted(np.array(self.edges), column.numbers, side="left")
            return np.where(column.missing, last, found).astype(np.intp)
        if self.is_numeric != column.is_numeric and not column.missing.all():
            kind = "numbers" if self.is_numeric else "text or truth values"
            got = "numbers" if column.is_numeric else "other values"
            raise InvalidTypeError(
                "attributes", f"contain {kind} in {self.name!r}, as in fit", got=got
            )
        if column.place is None:
            return np.full(len(column), last, dtype=np.intp)
        numbers = {value: number for number, value in enumerate(self.values)}
        of_value = np.array(
            [*(numbers.get(value, last) for value in column.values), last], dtype=np.intp
        )
        return of_value[column.place]

    @property
    def _own_edges(self) -> tuple[float, ...] | None:
        return self.edges if self.is_numeric else None

    @property
    def _own_values(self) -> tuple[Hashable, ...] | None:
        return None if self.is_numeric else self.values

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        edges = values["_own_edges"]
        of_attribute = values["_own_values"]
        if (edges is None) == (of_attribute is None):
            raise InvalidValueError("edges", "be given, or else values", got="both or neither")
        if edges is None:
            return cls(values["name"], (), of_attribute, is_numeric=False)
        if (np.diff(edges) <= 0.0).any():
            raise InvalidValueError("edges", "increase", got=shown(list(edges)))
        return cls(values["name"], edges)


def score_column(logits: FloatArray) -> AttributeColumn:
    """The logit of the score, as a feature without a name."""
    return AttributeColumn("", logits)
