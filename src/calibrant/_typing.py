"""The types used in signatures: arrays, models, splitters.

Fields of estimators quote `"ArrayLike"` and `"Seed"`, so that signatures show these names instead
of the long unions.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

Frame: TypeAlias = "pandas.DataFrame"
"""A pandas frame; pandas is optional."""

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
CodeArray: TypeAlias = NDArray[np.uint8]
"""Labels as 0 and 1."""
Keys: TypeAlias = NDArray[np.uint64]
"""Numbers that identify rows or groups, and determine which of them are drawn."""


class DeviceArray(Protocol):
    """A torch or CuPy array: it has a shape and a dtype, and can be shared without a copy."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __dlpack__(self) -> Any: ...
    def __getitem__(self, key: Any) -> Any: ...


ArrayLike: TypeAlias = npt.ArrayLike | DeviceArray
"""Input arrays: numpy arrays, lists, pandas, polars and pyarrow columns, torch and CuPy arrays."""

Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None
"""A seed, or a numpy generator; None draws differently each time."""


class ScoreMap(Protocol):
    """An object that learns from scores and labels, and predicts probabilities."""

    def fit(self, scores: Any, y: Any, /) -> Any: ...
    def predict(self, scores: Any, /) -> Any: ...


class FeatureRows(Protocol):
    """Rows of features: an array, a list, a pandas, polars or pyarrow frame, or a sparse matrix."""

    def __len__(self) -> int: ...


AttributeRows: TypeAlias = Mapping[str, Any] | FeatureRows | Sequence[str]
"""Attributes of rows: a frame, a mapping from names to columns, or column names of scored data."""


class Predictor(Protocol):
    """A classifier, or a fitted model that predicts scores."""

    def predict(self, X: Any, /) -> Any: ...


class Splitter(Protocol):
    """A scikit-learn cross-validation splitter."""

    def split(self, X: Any, y: Any, groups: Any, /) -> Any: ...
