"""What a correction looks at: the score and the attributes, each in a few bins."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.attributes import AttributeColumn
from calibrant.params.rules import check_state
from calibrant.params.saved_state import read_numbers

MOST_BINS = 32
"""Bins of a number; a tree splits between two of them."""
_MOST_VALUES = 256  # of an attribute that is not numeric; the others count as unknown


@dataclass(frozen=True, slots=True)
class Feature:
    """The bins of one number, or of one attribute by value.

    The last bin is for missing and unknown values.

    Attributes
    ----------
    name : str
        Name of the attribute; empty for the score.
    edges : tuple of float
        Of a number: bin b holds what exceeds exactly b of them.
    values : tuple
        Of an attribute by value: the value of each bin.
    is_numeric : bool
        Whether bins have an order.
    """

    name: str
    edges: tuple[float, ...] = ()
    values: tuple[Hashable, ...] = ()
    is_numeric: bool = True

    @classmethod
    def of(cls, column: AttributeColumn) -> Self:
        """Cut a number at its quantiles; count an attribute by value, the most frequent ones."""
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
        """How many bins there are, that of missing values among them."""
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
                "attributes", f"hold {kind} in {self.name!r}, as in fit", got=got
            )
        if column.place is None:
            return np.full(len(column), last, dtype=np.intp)
        numbers = {value: number for number, value in enumerate(self.values)}
        of_value = np.array(
            [*(numbers.get(value, last) for value in column.values), last], dtype=np.intp
        )
        return of_value[column.place]

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        if self.is_numeric:
            return {"name": self.name, "edges": list(self.edges)}
        return {"name": self.name, "values": list(self.values)}

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Read back what `to_dict` wrote."""
        check_state(state, ("name",))
        name = str(state["name"])
        if "edges" in state:
            edges = read_numbers(state["edges"], "edges")
            if (np.diff(edges) <= 0.0).any():
                raise InvalidValueError("edges", "increase", got=repr(state["edges"])[:40])
            return cls(name, tuple(edges.tolist()))
        check_state(state, ("values",))
        values = state["values"]
        if not isinstance(values, list) or not all(
            isinstance(value, str | bool | int | float) for value in values
        ):
            raise InvalidValueError(
                "values", "be a list of text, numbers or truth values", got=repr(values)[:40]
            )
        return cls(name, (), tuple(values), is_numeric=False)


def score_column(logits: FloatArray) -> AttributeColumn:
    """The logit of the score, as a feature without a name."""
    return AttributeColumn("", logits)
