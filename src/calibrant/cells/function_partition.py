"""Regions defined by any function of the inputs: a tree's leaves, a rule, a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, Literal

import numpy as np

from calibrant._typing import ArrayLike, IndexArray
from calibrant.cells.partition import Partition
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_array
from calibrant.text.sentences import shown


class FunctionPartition(Partition):
    """A finite partition given by a function of the inputs.

    See `Partition.from_function` and `Partition.from_tree`.
    """

    def __init__(
        self,
        function: Callable[[Any], ArrayLike],
        values: tuple[Hashable, ...],
        noun: str = "region",
        content: str | None = None,
    ) -> None:
        self.function = function
        self.values = values
        self._noun = noun
        self._content = content

    @property
    def n_regions(self) -> int:
        """The number of regions."""
        return len(self.values)

    def describe(self) -> tuple[str, ...]:
        """One readable name per region."""
        return tuple(f"{self._noun} {value}" for value in self.values)

    def _checked(self, inputs: Any, positive_column: Literal[0, 1]) -> IndexArray:
        """Call the function and check that it returned known regions, one per row."""
        returned = as_array(self.function(inputs), "what the partition's function returned")
        shape = getattr(inputs, "shape", None)
        n_rows = len(inputs) if isinstance(inputs, list | tuple) else None
        if isinstance(shape, tuple) and shape:
            n_rows = int(shape[0])
        if returned.ndim != 1 or n_rows not in (None, returned.size):
            rule = (
                "return one region per row"
                if n_rows is None
                else f"return one region per row, {n_rows}"
            )
            got = str(returned.size) if returned.ndim == 1 else f"shape {returned.shape}"
            raise InvalidValueError("the partition's function", rule, got=got)
        numbers = {value: number for number, value in enumerate(self.values)}
        try:
            kinds, inverse = np.unique(returned, return_inverse=True)
        except TypeError:
            names = ", ".join(sorted({type(value).__name__ for value in returned}))
            raise InvalidTypeError(
                "the partition's function", "return regions of one kind", got=names
            ) from None
        unknown = [kind for kind in kinds.tolist() if kind not in numbers]
        if unknown:
            rule = f"return one of {shown(self.values)}"
            raise InvalidValueError("the partition's function", rule, got=repr(unknown[0]))
        return np.array([numbers[kind] for kind in kinds.tolist()], dtype=np.intp)[inverse]

    def regions_of(self, prepared: Any, *, threads: int = 1) -> IndexArray:
        """The region of each row, as found by `prepare`."""
        regions: IndexArray = prepared
        return regions

    def _key(self) -> tuple[Hashable, ...]:
        # a copy of a tree has another `apply`, but the same splits
        return (self.function if self._content is None else self._content, self.values)

    @cached_property
    def fingerprint(self) -> str:
        """A short fingerprint of the content: a tree's splits, or the name and constants of a
        function.
        """
        content = _function_mark(self.function) if self._content is None else self._content
        return hashlib.sha256(repr((content, self.describe())).encode()).hexdigest()[:16]


def _function_mark(function: Any) -> tuple[str, ...]:
    """Return the name and constants of a function, which differ for most functions."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    code = getattr(function, "__code__", None)
    constants = (
        ()
        if code is None
        else (value for value in code.co_consts if not isinstance(value, type(code)))
    )
    return (
        str(getattr(function, "__module__", "")),
        name,
        *getattr(code, "co_names", ()),
        *map(repr, constants),
    )
