"""What the order statistics need of an implementation: three kinds of pass over the rows."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.kernels._chunks import over_threads
from calibrant.kernels._grid import Grid


class Passes(Protocol):
    """The passes, as each implementation's module has them."""

    def scan(self, scores: NDArray[Any], grid: Grid, names: IndexArray) -> tuple[IntArray, FloatArray, NDArray[Any]]:
        """Given a name for each cell: the rows with each name, the scores with odd names, and their names."""

    def histogram(self, scores: NDArray[Any], grid: Grid) -> IntArray:
        """Rows with each key."""

    def extract(self, scores: NDArray[Any], grid: Grid, marks: NDArray[np.uint16]) -> tuple[FloatArray, NDArray[Any]]:
        """Given a mark for each key: the scores whose mark is not 0, and their marks."""


class Threaded:
    """The same passes, with the rows shared out to threads."""

    def __init__(self, passes: Passes, threads: int) -> None:
        self._passes = passes
        self._threads = threads

    def scan(self, scores: NDArray[Any], grid: Grid, names: IndexArray) -> tuple[IntArray, FloatArray, NDArray[Any]]:
        """As in `Passes`."""
        rows = scores.shape[0]
        parts = over_threads(rows, self._threads, lambda part: self._passes.scan(scores[part], grid, names))
        if len(parts) == 1:
            return parts[0]
        counts, values, kept = zip(*parts, strict=True)
        return sum(counts[1:], counts[0]), np.concatenate(values), np.concatenate(kept)

    def histogram(self, scores: NDArray[Any], grid: Grid) -> IntArray:
        """As in `Passes`."""
        parts = over_threads(scores.shape[0], self._threads, lambda part: self._passes.histogram(scores[part], grid))
        return sum(parts[1:], parts[0])

    def extract(self, scores: NDArray[Any], grid: Grid, marks: NDArray[np.uint16]) -> tuple[FloatArray, NDArray[Any]]:
        """As in `Passes`."""
        rows = scores.shape[0]
        parts = over_threads(rows, self._threads, lambda part: self._passes.extract(scores[part], grid, marks))
        if len(parts) == 1:
            return parts[0]
        values, found = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(found)
