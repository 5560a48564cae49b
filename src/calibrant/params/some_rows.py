"""Some of the rows of data of any kind."""

from typing import Any

import numpy as np

from calibrant._typing import IndexArray


def taken(values: Any, rows: IndexArray) -> Any:
    """Select rows by position from an array, a sparse matrix, a frame, a table or a list."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "take") and not isinstance(values, np.ndarray):  # pyarrow
        return values.take(rows)
    return values[rows] if hasattr(values, "shape") else [values[row] for row in rows.tolist()]
