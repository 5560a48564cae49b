"""The types of signatures: arrays, models, splitters.

Fields of estimators quote `"ArrayLike"` and `"Seed"`, so that a signature shows these names, not
the long unions.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

Frame: TypeAlias = "pandas.DataFrame"
"""A frame of pandas, which is optional."""

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
CodeArray: TypeAlias = NDArray[np.uint8]
"""Labels as 0 and 1."""
Keys: TypeAlias = NDArray[np.uint64]
"""Numbers that stand for rows or groups, and decide which of them are drawn."""


class DeviceArray(Protocol):
    """An array of torch or CuPy: it has a shape and a data type, and can be shared without a copy."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __dlpack__(self) -> Any: ...
    def __getitem__(self, key: Any) -> Any: ...


ArrayLike: TypeAlias = npt.ArrayLike | DeviceArray
"""What a caller may bring: numpy, a list, columns of pandas, polars and pyarrow, arrays of torch
and CuPy.
"""

Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None
"""A seed, or a generator of numpy; None draws differently each time."""


class ScoreMap(Protocol):
    """Anything that learns from scores and labels, and predicts probabilities."""

    def fit(self, scores: Any, y: Any, /) -> Any: ...
    def predict(self, scores: Any, /) -> Any: ...


class FeatureRows(Protocol):
    """Rows of features: an array, a list, a frame of pandas, polars or pyarrow, or a sparse matrix."""

    def __len__(self) -> int: ...


AttributeRows: TypeAlias = Mapping[str, Any] | FeatureRows | Sequence[str]
"""Attributes of rows: a frame, a mapping from names to columns, or names of columns of scored data.
"""


class Predictor(Protocol):
    """A classifier, or a fitted model that predicts scores."""

    def predict(self, X: Any, /) -> Any: ...


class Splitter(Protocol):
    """A cross-validation splitter of scikit-learn."""

    def split(self, X: Any, y: Any, groups: Any, /) -> Any: ...
