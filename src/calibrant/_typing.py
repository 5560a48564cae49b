"""The array types that signatures speak of."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
CodeArray: TypeAlias = NDArray[np.uint8]
"""Labels as 0 and 1."""

ArrayLike: TypeAlias = Any
"""Whatever a caller may bring: numpy, a list, pandas, polars, pyarrow. `calibrant._input` turns it into arrays."""
