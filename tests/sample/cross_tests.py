"""Rows with attributes of every kind, and what the kernel counts of them."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from calibrant import Sample, scored
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.params.attributes import read_attributes
from calibrant.sample.cross_counts import CountCross, CrossCounts, CrossKey, joined_sums
from calibrant.sample.reader import rows_of

NAMES = ["sex", "smoker", "age", "gain", "grade"]


def mixed_rows(n_rows: int, labels: str = "bool") -> pd.DataFrame:
    """Text with quotes, truth values, whole numbers, an atom, missing values; scores of 0 and 1."""
    rng = np.random.default_rng(0)
    sex = rng.choice(np.array(["f", "it's", 'a "b"', "é\\n", ""], dtype=object), n_rows)
    sex[rng.random(n_rows) < 0.1] = None
    gain = np.where(rng.random(n_rows) < 0.6, 0.0, rng.exponential(size=n_rows))
    gain[rng.random(n_rows) < 0.1] = np.nan
    scores = rng.beta(0.5, 2.0, n_rows)
    scores[:6] = [0.0, 1.0, 0.5, np.nextafter(0.5, 1.0), np.nextafter(1.0, 0.0), 5e-324]
    y = rng.random(n_rows) < 0.4
    kinds = {"bool": y, "number": y.astype(np.int64), "text": np.where(y, "yes", "no")}
    return pd.DataFrame(
        {
            "p": scores,
            "y": kinds[labels],
            "sex": sex,
            "smoker": rng.random(n_rows) < 0.3,
            "age": np.round(rng.normal(50.0, 15.0, n_rows)).astype(np.int64),
            "gain": gain,
            "grade": rng.integers(0, 4, n_rows).astype(np.float32),
        }
    )


def key_of(rows: pd.DataFrame) -> CrossKey:
    """The levels of the attributes, as these rows have them."""
    columns = read_attributes(rows[NAMES])
    return CrossKey(tuple(AttributeLevels.of(column) for column in columns))


def in_one(counted: CrossCounts) -> dict[Any, tuple[list[int], list[list[int]]]]:
    """Counts as plain values, which are the same for the same rows in any parts."""
    counted.faults.check()
    sums = {label: joined_sums(parts) for label, parts in counted.parts.items()}
    return {label: (part.key.tolist(), part.sums.tolist()) for label, part in sums.items()}


def check_cross(data: Sample, rows: pd.DataFrame) -> None:
    """An engine counts what the kernel counts of the same rows in memory, to the last digit."""
    key = key_of(rows)
    table = pa.Table.from_pandas(rows, preserve_index=False)
    skips = rows_of(data).columns.pending is not None
    kernel = scored(table, score="p", label="y", skip_missing=skips, progress=False)
    near = in_one(rows_of(kernel).fold(CountCross(rows_of(kernel).columns, key)))
    far = in_one(rows_of(data).fold(CountCross(rows_of(data).columns, key)))
    assert far.keys() == near.keys()
    assert far == near
