"""Every form in which the same scores and labels may come."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

SCORE_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda scores: scores.tolist(),
    "tuple": lambda scores: tuple(scores.tolist()),
    "list of numpy scalars": lambda scores: list(scores),
    "read-only": lambda scores: _frozen(scores),
    "every second row": lambda scores: np.repeat(scores, 2)[::2],
    "reversed twice": lambda scores: scores[::-1].copy()[::-1],
    "column of C matrix": lambda scores: np.column_stack([scores, -scores, scores])[:, 2],
    "row of Fortran matrix": lambda scores: np.asfortranarray(np.vstack([scores, -scores]))[0],
    "unaligned": lambda scores: _unaligned(scores),
    "big-endian": lambda scores: scores.astype(">f8"),
    "long double": lambda scores: scores.astype(np.longdouble),
    "object": lambda scores: scores.astype(object),
    "unmasked masked array": lambda scores: np.ma.masked_array(scores, mask=False),
    "memoryview": lambda scores: memoryview(scores.copy()),
    "(n, 1)": lambda scores: scores[:, None],
    "(n, 1) Fortran": lambda scores: np.asfortranarray(np.column_stack([scores, scores]))[:, :1],
    "pandas": pd.Series,
    "pandas, shuffled index": lambda scores: pd.Series(
        scores, index=np.random.default_rng(1).permutation(scores.size)
    ),
    "pandas, duplicate index": lambda scores: pd.Series(
        scores, index=np.zeros(scores.size, dtype=int)
    ),
    "pandas, text index": lambda scores: pd.Series(
        scores, index=[f"row {i}" for i in range(scores.size)][::-1]
    ),
    "pandas Float64": lambda scores: pd.Series(scores, dtype="Float64"),
    "pandas Arrow": lambda scores: pd.Series(scores, dtype=pd.ArrowDtype(pa.float64())),
    "pandas category": lambda scores: pd.Series(scores, dtype="category"),
    "pandas sparse": lambda scores: pd.Series(scores, dtype=pd.SparseDtype("float64", 0.0)),
    "pandas array": lambda scores: pd.array(scores, dtype="Float64"),
    "pandas Index": pd.Index,
    "pandas frame": lambda scores: pd.DataFrame({"score": scores}),
    "pandas frame, unnamed column": lambda scores: pd.DataFrame(scores),
    "polars": lambda scores: pl.Series("score", scores),
    "polars, chunked": lambda scores: pl.concat(
        [pl.Series(scores[:100]), pl.Series(scores[100:])], rechunk=False
    ),
    "polars frame": lambda scores: pl.DataFrame({"score": scores}),
    "pyarrow": pa.array,
    "pyarrow, chunked": lambda scores: pa.chunked_array([scores[:100], scores[100:]]),
    "pyarrow, sliced": lambda scores: pa.array(np.concatenate([[0.0], scores]))[1:],
    "pyarrow dictionary": lambda scores: pa.array(scores).dictionary_encode(),
    "pyarrow table": lambda scores: pa.table({"score": scores}),
}

PROBABILITY_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "(n, 2)": lambda p: p,
    "(n, 2) Fortran": np.asfortranarray,
    "(n, 2) lists": lambda p: p.tolist(),
    "(n, 2) tuples": lambda p: tuple(map(tuple, p.tolist())),
    "(n, 2) pandas": lambda p: pd.DataFrame(
        p, columns=["no", "yes"], index=np.zeros(len(p), dtype=int)
    ),
    "(n, 2) pandas, unnamed columns": pd.DataFrame,
    "(n, 2) pandas, one name twice": lambda p: pd.DataFrame(p, columns=["p", "p"]),
    "(n, 2) pandas Float64": lambda p: pd.DataFrame(p, columns=["no", "yes"]).astype("Float64"),
    "(n, 2) polars": lambda p: pl.DataFrame(p, schema=["no", "yes"]),
    "(n, 2) pyarrow": lambda p: pa.table({"no": p[:, 0], "yes": p[:, 1]}),
}

LABEL_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda y: y.tolist(),
    "tuple of bools": lambda y: tuple((y == 1).tolist()),
    "bool": lambda y: y == 1,
    "uint8": lambda y: y.astype(np.uint8),
    "int8": lambda y: y.astype(np.int8),
    "float": lambda y: y.astype(np.float64),
    "float16": lambda y: y.astype(np.float16),
    "big-endian": lambda y: y.astype(">i4"),
    "read-only": lambda y: _frozen(y),
    "every second row": lambda y: np.repeat(y, 2)[::2],
    "object": lambda y: y.astype(object),
    "object bools": lambda y: (y == 1).astype(object),
    "minus one and one": lambda y: 2 * y - 1,
    "minus one and one, float32": lambda y: (2 * y - 1).astype(np.float32),
    "(n, 1)": lambda y: y[:, None],
    "unmasked masked array": lambda y: np.ma.masked_array(y, mask=False),
    "pandas, shuffled index": lambda y: pd.Series(
        y, index=np.random.default_rng(2).permutation(y.size)
    ),
    "pandas, duplicate index": lambda y: pd.Series(y, index=np.zeros(y.size, dtype=int)),
    "pandas Int64": lambda y: pd.Series(y, dtype="Int64"),
    "pandas boolean": lambda y: pd.Series(y == 1, dtype="boolean"),
    "pandas Float64": lambda y: pd.Series(y, dtype="Float64"),
    "pandas category": lambda y: pd.Series(y, dtype="category"),
    "pandas Categorical": pd.Categorical,
    "pandas frame": lambda y: pd.DataFrame({"y": y}),
    "polars": lambda y: pl.Series("y", y),
    "polars bool": lambda y: pl.Series("y", y == 1),
    "polars frame": lambda y: pl.DataFrame({"y": y}),
    "pyarrow": pa.array,
    "pyarrow bool": lambda y: pa.array(y == 1),
    "pyarrow, chunked": lambda y: pa.chunked_array([y[:100], y[100:]]),
    "pyarrow bool, chunked": lambda y: pa.chunked_array([(y == 1)[:100], (y == 1)[100:]]),
}

NAMED_LABEL_FORMS: dict[str, tuple[Callable[[np.ndarray], Any], Any]] = {
    "text list": (lambda y: np.where(y == 1, "yes", "no").tolist(), "yes"),
    "text": (lambda y: np.where(y == 1, "yes", "no"), "yes"),
    "text, positive sorts first": (lambda y: np.where(y == 1, "bad", "good"), "bad"),
    "bytes": (lambda y: np.where(y == 1, b"yes", b"no"), b"yes"),
    "object text": (lambda y: np.where(y == 1, "yes", "no").astype(object), "yes"),
    "pandas text": (lambda y: pd.Series(np.where(y == 1, "yes", "no"), index=y[::-1]), "yes"),
    "pandas category": (
        lambda y: pd.Series(np.where(y == 1, "yes", "no"), dtype="category"),
        "yes",
    ),
    "pandas ordered category": (lambda y: _ordered(np.where(y == 1, "low", "high")), "low"),
    "polars text": (lambda y: pl.Series(np.where(y == 1, "yes", "no")), "yes"),
    "polars categorical": (
        lambda y: pl.Series(np.where(y == 1, "yes", "no"), dtype=pl.Categorical),
        "yes",
    ),
    "polars enum": (
        lambda y: pl.Series(np.where(y == 1, "yes", "no"), dtype=pl.Enum(["yes", "no"])),
        "yes",
    ),
    "pyarrow text": (lambda y: pa.array(np.where(y == 1, "yes", "no")), "yes"),
    "pyarrow dictionary": (
        lambda y: pa.array(np.where(y == 1, "yes", "no")).dictionary_encode(),
        "yes",
    ),
    "one and two": (lambda y: y + 1, 2),
    "one and two, positive is one": (lambda y: 2 - y, 1),
    "zero is positive": (lambda y: 1 - y, 0),
    "minus one is positive": (lambda y: 1 - 2 * y, -1),
    "False is positive": (lambda y: y == 0, False),
    "floats": (lambda y: np.where(y == 1, 0.25, -3.5), 0.25),
    "int and float pos_label": (lambda y: y + 1, 2.0),
    "large ints": (lambda y: y + 2**60, 2**60 + 1),
}


def _frozen(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def _unaligned(array: np.ndarray) -> np.ndarray:
    raw = np.zeros(array.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(array.dtype)
    view[:] = array
    return view


def _ordered(labels: np.ndarray) -> pd.Series:
    return pd.Series(pd.Categorical(labels, categories=["never", "low", "high"], ordered=True))
