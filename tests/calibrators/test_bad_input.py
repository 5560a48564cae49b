"""Bad scores and labels: each is refused with one clear error.

An error names the parameter, says the rule ("must") and what was "got", and is one of ours, never
numpy's or pandas'.
"""

from collections import deque
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from calibrant import BinningCalibrator
from worlds.input_rows import (
    COUNTS,
    HALVES,
    MODEL,
    NAMES,
    UNIFORM,
    N,
    P,
    Refusals,
    S,
    X,
    Y,
    fit,
    with_array_inside,
    with_entry,
)

refuse = Refusals()

# Scores

BAD_SCORES = {
    **{
        f"{value} in row {row}": with_entry(S, row, value)
        for value in (np.nan, np.inf, -np.inf)
        for row in (0, N // 2, N - 1)
    },
    "float32 NaN": with_entry(S, 3, np.nan, np.float32),
    "float16 infinity": with_entry(S, 3, np.inf, np.float16),
    "all NaN": np.full(N, np.nan),
    "long double beyond doubles": with_entry(S, 3, np.longdouble("1e4000"), np.longdouble),
    "NaN in first of two columns": with_entry(P, (4, 0), np.nan),
    "NaN in second of two columns": with_entry(P, (4, 1), np.nan),
    "infinity in first of two columns": with_entry(P, (4, 0), np.inf),
    "infinities that cancel": with_entry(P, 4, [np.inf, -np.inf]),
    "two columns that do not add up to 1": P * 0.9,
    "two columns of logits": np.column_stack([-S, S]),
    "two columns with a negative": with_entry(P, 4, [1.5, -0.5]),
    "complex": S.astype(complex),
    "complex object": S.astype(complex).astype(object),
    "no rows of complex": np.empty(0, dtype=complex),
    "sparse column": sparse.csr_matrix(S[:, None]),
    "sparse array": sparse.coo_array(S[:, None]),
    "masked": np.ma.masked_array(S, mask=np.arange(N) == 7),
    "masked in two columns": np.ma.masked_array(P, mask=P > 0.9),
    "list with a masked entry": [np.ma.masked, *S[1:]],
    "masked constant": np.ma.masked,
    "text": [f"{score}" for score in S],
    "text array": S.astype(str),
    "bytes array": S.astype("S"),
    "text in object array": with_entry(S, 5, "0.5", object),
    "list of numbers and text": [*S[1:], "0.5"],
    "one string": "0.5",
    "bytes": b"0.5",
    "dates": np.array(["2020-01-01"] * N, dtype="datetime64[s]"),
    "durations": np.arange(N).astype("timedelta64[s]"),
    "date objects": [datetime(2020, 1, 1, tzinfo=UTC)] * N,
    "structured": np.zeros(N, dtype=[("score", float)]),
    "ragged lists": [[0.1], [0.2, 0.3]] * (N // 2),
    "ragged arrays": deque([[0.1], [0.2, 0.3]]),
    "arrays in object array": with_array_inside(),
    "0-d": np.array(0.5),
    "numpy scalar": np.float64(0.5),
    "a number": 0.5,
    "3-d": S.reshape(N, 1, 1),
    "one row of many": S[None, :],
    "three columns": X,
    "no columns": np.empty((N, 0)),
    "frame without columns": pd.DataFrame(index=range(N)),
    "frame of three columns": pd.DataFrame(X),
    "frame of number and date": pd.DataFrame({"s": S, "t": pd.Timestamp("2020-01-01")}),
    "frame of number and text": pd.DataFrame({"s": S, "t": "a"}),
    "polars frame of number and text": pl.DataFrame({"s": S, "t": ["a"] * N}),
    "dict": {"score": S},
    "set": set(S.tolist()),
    "None": None,
    "list of None": [None] * N,
    "None among numbers": [None, *S[1:].tolist()],
    "pandas NA among numbers": [*S[1:].tolist(), pd.NA],
    "NaT among numbers": [*S[1:].tolist(), pd.NaT],
    "pandas Float64 with NA": pd.Series(with_entry(S, 2, None, object), dtype="Float64"),
    "pandas Int64 with NA": pd.Series([1, None] * (N // 2), dtype="Int64"),
    "pandas with NaN": pd.Series(with_entry(S, 2, np.nan)),
    "pandas object with None": pd.Series(with_entry(S, 2, None, object), dtype=object),
    "pandas text": pd.Series(S.astype(str)),
    "pandas dates": pd.Series(pd.date_range("2020-01-01", periods=N)),
    "pandas frame with NA": pd.DataFrame(P).astype("Float64").mask(P > 0.9),
    "pandas class": pd.Series,
    "pandas NA": pd.NA,
    "polars with null": pl.Series([None, *S[1:].tolist()]),
    "polars with NaN": pl.Series(with_entry(S, 2, np.nan)),
    "polars text": pl.Series(S.astype(str)),
    "polars lists": pl.Series([[0.1]] * N),
    "polars lazy frame": pl.LazyFrame({"s": S}),
    "polars expression": pl.col("s"),
    "polars frame with null": pl.DataFrame({"s": [None, *S[1:].tolist()]}),
    "pyarrow with null": pa.array([*S[1:].tolist(), None]),
    "pyarrow chunked with null": pa.chunked_array([S[1:].tolist(), [None]]),
    "pyarrow text": pa.array(S.astype(str)),
    "pyarrow table with null": pa.table({"s": [*S[1:].tolist(), None]}),
    "pyarrow scalar": pa.scalar(0.5),
    "ints beyond 2**53": np.arange(N) + 2**53 + 1,
    "negative ints beyond 2**53": -np.arange(N) - 2**60,
    "unsigned ints beyond 2**53": np.full(N, 2**64 - 1, dtype=np.uint64),
    "ints beyond 64 bits": [2**70 + row for row in range(N)],
    "ints beyond doubles": [10**400] * N,
    "fractions beyond doubles": [Fraction(10**400, 3)] * N,
    "fifty more than labels": np.tile(S, 2),
}
for name, scores in BAD_SCORES.items():
    word = "scores"
    refuse(word, f"fit scores: {name}", lambda scores=scores: fit(scores))
    if name != "fifty more than labels":
        refuse(word, f"predict scores: {name}", lambda scores=scores: MODEL.predict(scores))
refuse("scores", "fit scores: generator", lambda: fit(score for score in S))
refuse("scores", "fit scores: iterator", lambda: fit(iter(S)))
refuse("scores", "predict scores: generator", lambda: MODEL.predict(score for score in S))
for method in ("predict_proba", "predict_interval", "predict_set"):
    call = getattr(MODEL, method)
    refuse("scores", f"{method}: NaN", lambda call=call: call([0.1, np.nan]))
    refuse("scores", f"{method}: text", lambda call=call: call(["a"]))
    refuse("scores", f"{method}: None", lambda call=call: call(None))
refuse(
    "scores",
    "fit: 1000 scores, 100 labels",
    lambda: fit(np.linspace(0, 1, 1000), np.arange(100) % 2),
)
refuse(
    "scores",
    "fit: 100 scores, 1000 labels",
    lambda: fit(np.linspace(0, 1, 100), np.arange(1000) % 2),
)
refuse("scores", "fit: no scores", lambda: fit([], Y))
refuse("scores", "fit given partition: lengths differ", lambda: fit(S[:-1], Y, partition=HALVES))
for name, off in {
    "above": 1.0000001,
    "just above": np.nextafter(1, 2),
    "below": -5e-324,
    "far": 7.0,
}.items():
    refuse(
        "score_range",
        f"fit uniform: score {name}",
        lambda off=off: fit([*S[1:], off], partition="uniform"),
    )
    refuse(
        "score_range", f"predict uniform: score {name}", lambda off=off: UNIFORM.predict([0.5, off])
    )
refuse("score_range", "predict_interval uniform: outside", lambda: UNIFORM.predict_interval([1.5]))
refuse("score_range", "predict_set uniform: outside", lambda: UNIFORM.predict_set([-1.5]))
refuse(
    "score_range",
    "fit uniform: float32 just outside",  # float32(0.7) is less than 0.7
    lambda: fit(np.full(N, 0.7, np.float32), partition="uniform", score_range=(0.7, 1.0), n_bins=2),
)
refuse("score_range", "fit given partition: outside", lambda: fit(S * 2, partition=HALVES))

# Labels

BAD_LABELS = {
    "three kinds": np.arange(N) % 3,
    "three kinds of text": np.array(["a", "b", "c"])[np.arange(N) % 3],
    "three kinds of object text": np.array(["a", "b", "c"], dtype=object)[np.arange(N) % 3],
    "0, 1 and 2, one 2": with_entry(Y, 30, 2),
    "uint8 with a 2": with_entry(Y, 30, 2, np.uint8),
    "0, 1 and -1": with_entry(Y, 30, -1),
    "soft": S,
    "soft, one": with_entry(Y, 30, 0.5, float),
    "NaN": with_entry(Y, 30, np.nan, float),
    "NaN in first row": with_entry(Y, 0, np.nan, np.float32),
    "NaN in last row": with_entry(Y, N - 1, np.nan, float),
    "None among numbers": [*Y[1:].tolist(), None],
    "None among text": with_entry(NAMES, 2, None, object),
    "None in list of text": [*NAMES[1:].tolist(), None],
    "NaN among text": with_entry(NAMES, 2, np.nan, object),
    "pandas NA in list": [*Y[1:].tolist(), pd.NA],
    "pandas NA in object array": with_entry(NAMES, 2, pd.NA, object),
    "pandas Int64 with NA": pd.Series([*Y[1:], pd.NA], dtype="Int64"),
    "pandas boolean with NA": pd.Series([*(Y[1:] == 1), pd.NA], dtype="boolean"),
    "pandas Float64 with NA": pd.Series([*Y[1:], pd.NA], dtype="Float64"),
    "pandas text with NA": pd.Series([*NAMES[1:], None], dtype="str"),
    "pandas category with NA": pd.Series([*NAMES[1:], None], dtype="category"),
    "pandas Categorical with NA": pd.Categorical([*NAMES[1:], None]),
    "polars null": pl.Series([*Y[1:].tolist(), None]),
    "polars text with null": pl.Series([*NAMES[1:].tolist(), None]),
    "pyarrow null": pa.array([*Y[1:].tolist(), None]),
    "pyarrow bool with null": pa.array([*(Y[1:] == 1).tolist(), None]),
    "pyarrow chunked null": pa.chunked_array([Y[1:].tolist(), [None]]),
    "masked": np.ma.masked_array(Y, mask=Y == 1),
    "text and numbers": [*NAMES[1:].tolist(), 1],
    "text and bools in object array": with_entry(NAMES, 2, True, object),
    "text and bytes": [*NAMES[1:].tolist(), b"yes"],
    "tuples": [(0, 1)] * N,
    "objects": [object()] * N,
    "dates": np.array(["2020-01-01", "2020-01-02"] * (N // 2), dtype="datetime64[D]"),
    "complex": Y.astype(complex),
    "one-hot": np.eye(2)[Y],
    "one row": Y[None, :],
    "0-d": np.array(1),
    "a number": 1,
    "one string": "yes",
    "dict": {"y": Y},
    "set": {0, 1},
    "None": None,
    "generator": (label for label in Y),
    "empty": [],
    "empty text": np.array([], dtype=str),
    "sparse": sparse.csr_array(Y[:, None]),
    "only 0": np.zeros(N, dtype=int),
    "only 1": np.ones(N, dtype=int),
    "only True": np.ones(N, dtype=bool),
    "only one text": ["yes"] * N,
    "polars lazy frame": pl.LazyFrame({"y": Y}),
}
for name, labels in BAD_LABELS.items():
    refuse("y must", f"fit y: {name}", lambda labels=labels: fit(S, labels))
refuse("y", "fit y: no rows at all", lambda: fit([], []))
refuse("y", "fit y: too short", lambda: fit(S, Y[:-1]))
refuse("y", "fit y: too short, text", lambda: fit(S, NAMES[:-1], pos_label="yes"))

# Which label is positive

for name, labels in {
    "text": np.where(Y, "late", "paid"),
    "1 and 2": Y + 1,
    "0 and 2": Y * 2,
}.items():
    refuse("pos_label", f"pos_label missing for {name}", lambda labels=labels: fit(S, labels))
refuse("y", "soft labels", lambda: fit(S, np.where(Y, 0.7, 0.3)))
BAD_POS_LABELS = {
    "2": 2,
    "text one": "1",
    "NaN": np.nan,
    "pandas NA": pd.NA,
    "list": [1],
    "array": np.array([0, 1]),
    "array of one": np.array([1]),
    "dict": {},
    "object": object(),
    "empty text": "",
}
for name, label in BAD_POS_LABELS.items():
    refuse("pos_label", f"pos_label: {name}", lambda label=label: fit(pos_label=label))
refuse("pos_label", "pos_label: other case", lambda: fit(S, NAMES, pos_label="Yes"))
refuse("pos_label", "pos_label: number for text", lambda: fit(S, NAMES, pos_label=1))
BAD_CLASSES = {
    "one": (1,),
    "three": (0, 1, 2),
    "none": (),
    "one twice": (1, 1),
    "text and number": (0, "yes"),
    "None": (None, 1),
    "NaN": (0, np.nan),
    "pandas NA": (0, pd.NA),
    "nested": [[0, 1]],
    "set": {0, 1},
    "string": "01",
    "number": 2,
    "dict": {0: 1, 1: 2},
    "dates": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    "lists": [[0], [1, 2]],
}
for name, classes in BAD_CLASSES.items():
    refuse("classes", f"classes: {name}", lambda classes=classes: fit(classes=classes))
    refuse(
        "classes",
        f"from_tally classes: {name}",
        lambda c=classes: BinningCalibrator.from_tally(HALVES, COUNTS, classes=c),
    )
refuse("classes", "classes without the labels seen", lambda: fit(classes=(0, 2)))
refuse("classes", "classes of text for numbers", lambda: fit(classes=("0", "1")))
refuse("classes", "classes of numbers for text", lambda: fit(S, NAMES, classes=(0, 1)))
refuse(
    "pos_label",
    "from_tally pos_label missing",
    lambda: BinningCalibrator.from_tally(HALVES, COUNTS, classes=("a", "b")),
)
refuse(
    "pos_label",
    "from_tally pos_label strange",
    lambda: BinningCalibrator.from_tally(HALVES, COUNTS, pos_label=7),
)


@pytest.mark.parametrize("kind", refuse.kinds)
def test_refused(kind):
    assert refuse.faults(kind) == {}
