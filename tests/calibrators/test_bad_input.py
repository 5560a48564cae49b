"""A battery of bad and edge inputs: each is refused with one clear error, or works exactly.

An error names the parameter, says the rule ("must") and what was "got", and is one of ours, never numpy's or pandas'.
"""

import copy
from collections import deque
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeClassifier

import calibrant
from calibrant import BinningCalibrator, CalibratedClassifier, Guarantee, Partition, Tally, plan
from calibrant.errors import CalibrantError

N = 60
S = np.linspace(0.005, 0.995, N)
Y = np.arange(N) % 3 // 2
P = np.column_stack([1 - S, S])
X = np.column_stack([S, S**2, np.ones(N)])
NAMES = np.where(Y == 1, "yes", "no")
GROUPS = np.where(np.arange(N) % 2 == 0, "a", "b")
OWN = {"split": None, "value": "mean"}
"""Regions and values that are known without a draw."""
MODEL = BinningCalibrator(n_bins=4, **OWN).fit(S, Y)
UNIFORM = BinningCalibrator(n_bins=4, strategy="uniform").fit(S, Y)
GROUPED = BinningCalibrator(n_bins=4, **OWN).fit(S, Y, segments=GROUPS)
HALVES = Partition.fixed_width(2)
COUNTS = Tally.from_counts([10, 10], [1, 9], partition=HALVES)
REFUSED = {}
"""By readable name: the word that the error must name, and the call."""


def refuse(word, name, call):
    if name in REFUSED:
        raise ValueError(f"{name} stands twice")
    REFUSED[name] = (word, call)


def fit(scores=S, y=Y, segments=None, sample_weight=None, **parameters):
    return BinningCalibrator(**{**OWN, **parameters}).fit(scores, y, segments=segments, sample_weight=sample_weight)


def with_entry(array, row, entry, dtype=None):
    changed = np.array(array, dtype=dtype)
    changed[row] = entry
    return changed


def with_array_inside():
    nested = np.empty(N, dtype=object)
    nested[:] = S
    nested[3] = np.array([0.1, 0.2])
    return nested


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
refuse("scores", "fit: 1000 scores, 100 labels", lambda: fit(np.linspace(0, 1, 1000), np.arange(100) % 2))
refuse("scores", "fit: 100 scores, 1000 labels", lambda: fit(np.linspace(0, 1, 100), np.arange(1000) % 2))
refuse("scores", "fit: no scores", lambda: fit([], Y))
refuse("scores", "fit given partition: lengths differ", lambda: fit(S[:-1], Y, partition=HALVES))
for name, off in {"above": 1.0000001, "just above": np.nextafter(1, 2), "below": -5e-324, "far": 7.0}.items():
    refuse("score_range", f"fit uniform: score {name}", lambda off=off: fit([*S[1:], off], strategy="uniform"))
    refuse("score_range", f"predict uniform: score {name}", lambda off=off: UNIFORM.predict([0.5, off]))
refuse("score_range", "predict_interval uniform: outside", lambda: UNIFORM.predict_interval([1.5]))
refuse("score_range", "predict_set uniform: outside", lambda: UNIFORM.predict_set([-1.5]))
refuse(
    "score_range",
    "fit uniform: float32 just outside",  # float32(0.7) is less than 0.7
    lambda: fit(np.full(N, 0.7, np.float32), strategy="uniform", score_range=(0.7, 1.0), n_bins=2),
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

for name, labels in {"text": NAMES, "1 and 2": Y + 1, "0 and 2": Y * 2, "0.3 and 0.7": np.where(Y, 0.7, 0.3)}.items():
    refuse("pos_label", f"pos_label missing for {name}", lambda labels=labels: fit(S, labels))
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
refuse("pos_label", "from_tally pos_label strange", lambda: BinningCalibrator.from_tally(HALVES, COUNTS, pos_label=7))

# Parameters

BAD_PARAMETERS = {
    "confidence_level": [0, 1, 0.0, 1.0, -1, 2, np.nan, np.inf, "0.9", True, None, [0.9], np.array([0.9, 0.8]), 90, 1j],
    "n_bins": [0, -1, 1.5, 10.0, "ten", "AUTO", True, None, 10**9, [10], np.array([1, 2]), np.nan, np.float64(3)],
    "strategy": ["quantiles", "Uniform", "kmeans", "", None, 1, ["uniform"], b"uniform"],
    "interval": ["clopper_pearson", "wilson", "", None, 3, ["kl"], len],
    "value": ["median", "Mean", "", None, 0.5, ["mean"]],
    "split": [0, 0.0, 1.0, -0.1, 2.0, -3, np.nan, N, N + 1, 0.999, 1e-9, True, "0.2", [0.2], 1j],
    "random_state": [-1, 1.5, "seed", True, [1, 2], np.random, np.array([1])],
    "n_jobs": [0, -2, 1.5, "all", True, [1], np.array([1, 2])],
    "partition": [3, "uniform", [0.1, 0.5], np.array([0.5]), Partition, 0],
    "score_range": [1, "01", (0,), (0, 1, 2), (1, 0), (0, 0), (0, np.nan), (0, np.inf), ("0", "1"), (None, 1), {0, 1}],
}
for parameter, values in BAD_PARAMETERS.items():
    for place, value in enumerate(values):
        other = {"strategy": "uniform"} if parameter == "score_range" else {}
        refuse(
            parameter,
            f"{parameter}={value!r} ({place})",
            lambda parameter=parameter, value=value, other=other: fit(**{parameter: value}, **other),
        )
refuse("score_range", "score_range: wider than doubles", lambda: fit(strategy="uniform", score_range=(-1e308, 1e308)))
refuse("score_range", "score_range: for quantile bins", lambda: fit(score_range=(0, 1)))
refuse("n_bins", "uniform: more bins than rows", lambda: fit(strategy="uniform", n_bins=N + 1))
refuse("n_bins", "uniform: a billion bins", lambda: fit(strategy="uniform", n_bins=10**9))
refuse("n_bins", "quantile: more bins than rows", lambda: fit(n_bins=N + 1))
refuse("n_bins", "split: more bins than cutting rows", lambda: fit(split=5, n_bins=6))
refuse("n_bins", "segments: more bins than rows of a segment", lambda: fit(segments=["a", *["b"] * (N - 1)], n_bins=2))
refuse("split", "split for uniform bins", lambda: fit(strategy="uniform", split=0.2))
refuse("split", "split for a given partition", lambda: fit(partition=HALVES, split=0.2))

# Weights and segments

BAD_WEIGHTS = {
    "negative": with_entry(np.ones(N), 3, -1),
    "fractional": np.full(N, 0.5),
    "one fractional": with_entry(np.ones(N), N - 1, 1.5),
    "NaN": with_entry(np.ones(N), 3, np.nan),
    "infinite": with_entry(np.ones(N), 3, np.inf),
    "too short": np.ones(N - 1),
    "too long": np.ones(N + 1),
    "two columns": np.ones((N, 2)),
    "a number": 2.0,
    "text": ["1"] * N,
    "None entries": [None] * N,
    "all zero": np.zeros(N),
    "beyond doubles": np.full(N, 2**53),
    "complex": np.ones(N, dtype=complex),
    "masked": np.ma.masked_array(np.ones(N), mask=S > 0.5),
    "pandas with NA": pd.Series([1, None] * (N // 2), dtype="Int64"),
    "polars with null": pl.Series([1, None] * (N // 2)),
    "dict": {},
}
for name, weights in BAD_WEIGHTS.items():
    refuse("sample_weight", f"sample_weight: {name}", lambda weights=weights: fit(sample_weight=weights))
refuse("sample_weight", "sample_weight with split", lambda: fit(split=0.5, sample_weight=np.ones(N)))
BAD_SEGMENTS = {
    "too short": GROUPS[:-1],
    "too long": np.append(GROUPS, "a"),
    "None in list": [None, *GROUPS[1:].tolist()],
    "None in object array": with_entry(GROUPS, 3, None, object),
    "only None": [None] * N,
    "NaN": with_entry(np.ones(N), 3, np.nan),
    "NaN in object array": with_entry(GROUPS, 3, np.nan, object),
    "pandas NA": with_entry(GROUPS, 3, pd.NA, object),
    "NaT": np.array(["NaT"] * N, dtype="datetime64[D]"),
    "pandas null": pd.Series([None, *GROUPS[1:]]),
    "polars null": pl.Series([None, *GROUPS[1:].tolist()]),
    "pyarrow null": pa.array([None, *GROUPS[1:].tolist()]),
    "text and numbers": [1, *GROUPS[1:].tolist()],
    "text and numbers in object array": with_entry(GROUPS, 3, 1, object),
    "two columns": np.column_stack([GROUPS, GROUPS]),
    "one string": "a",
    "a number": 1,
    "generator": (group for group in GROUPS),
}
for name, segments in BAD_SEGMENTS.items():
    refuse("segments", f"fit segments: {name}", lambda segments=segments: fit(segments=segments, n_bins=2))
    refuse("segments", f"predict segments: {name}", lambda segments=segments: GROUPED.predict(S, segments=segments))
refuse("segments", "predict segments: unknown", lambda: GROUPED.predict([0.5], segments=["c"]))
refuse("segments", "predict segments: other kind", lambda: GROUPED.predict([0.5], segments=[1]))
refuse("segments", "predict segments: not given", lambda: GROUPED.predict([0.5]))
refuse("segments", "predict_interval segments: not given", lambda: GROUPED.predict_interval([0.5]))
refuse("segments", "predict_set segments: not given", lambda: GROUPED.predict_set([0.5]))
refuse("segments", "predict segments: none expected", lambda: MODEL.predict([0.5], segments=["a"]))
refuse("segments", "fit segments: partition without", lambda: fit(partition=HALVES, segments=GROUPS))
refuse("segments", "fit segments: partition with", lambda: fit(partition=Partition.by_segment({"a": HALVES})))

# Levels asked for later

for value in (0, 1, 0.0, 1.0, -0.5, 2, np.nan, "x", "0.95", None, True, [0.9]):
    refuse("coverage", f"coverage={value!r}", lambda value=value: MODEL.predict_set([0.5], coverage=value))
for value in (0, 0.0, -1, 1.5, np.nan, np.inf, "0.9", None, True, [0.9]):
    refuse("mass", f"epsilon_for mass={value!r}", lambda value=value: MODEL.guarantee_.epsilon_for(mass=value))
    refuse("mass", f"restricted_to mass={value!r}", lambda value=value: MODEL.guarantee_.restricted_to(value))

# Tallies

refuse(
    "tally",
    "from_tally: of another partition",
    lambda: BinningCalibrator.from_tally(Partition.from_edges([0.3]), COUNTS),
)
refuse(
    "tally",
    "from_tally: other number of regions",
    lambda: BinningCalibrator.from_tally(Partition.fixed_width(3), COUNTS),
)
refuse("tally", "from_tally: tally None", lambda: BinningCalibrator.from_tally(HALVES, None))
refuse("tally", "from_tally: tally a list", lambda: BinningCalibrator.from_tally(HALVES, [10, 10]))
refuse("partition", "from_tally: partition None", lambda: BinningCalibrator.from_tally(None, COUNTS))
refuse("partition", "from_tally: partition edges", lambda: BinningCalibrator.from_tally([0.5], COUNTS))
refuse(
    "confidence_level", "from_tally: level", lambda: BinningCalibrator.from_tally(HALVES, COUNTS, confidence_level=2)
)
refuse("interval", "from_tally: interval", lambda: BinningCalibrator.from_tally(HALVES, COUNTS, interval="x"))
refuse("split", "from_tally: split", lambda: BinningCalibrator.from_tally(HALVES, COUNTS, split=0.2))
refuse("value", "Guarantee.from_tally: value", lambda: Guarantee.from_tally(HALVES, COUNTS, value="x"))
refuse("tally", "Guarantee.from_tally: tally", lambda: Guarantee.from_tally(HALVES, {}))
BAD_COUNTS = {
    "negative": ([-1, 5], [0, 0]),
    "fractional": ([1.5, 2.0], [0, 0]),
    "floats": ([1.0, 2.0], [0, 0]),
    "bools": ([True, False], [0, 0]),
    "text": (["1", "2"], [0, 0]),
    "None": (None, [0, 0]),
    "with None": ([1, None], [0, 0]),
    "nested": ([[1, 2]], [[0, 0]]),
    "a number": (5, 1),
    "empty": ([], []),
    "other lengths": ([1, 2], [0]),
    "beyond 2**53": ([2**60, 1], [0, 0]),
    "wrapping around": (np.array([2**63 + 5, 1], dtype=np.uint64), [0, 0]),
    "sum beyond 2**62": ([2**53] * 513, [0] * 513),
    "pandas with NA": (pd.Series([1, None], dtype="Int64"), [0, 0]),
}
for name, (counts, positives) in BAD_COUNTS.items():
    refuse("counts", f"from_counts: {name}", lambda c=counts, p=positives: Tally.from_counts(c, p))
    refuse("counts", f"Tally: {name}", lambda c=counts, p=positives: Tally(c, p))
refuse("positives", "from_counts: more positives than rows", lambda: Tally.from_counts([1, 2], [0, 3]))
refuse("positives", "from_counts: negative positives", lambda: Tally.from_counts([1, 2], [0, -1]))
refuse("positives", "Tally: more positives than rows", lambda: Tally([1, 2], [0, 3]))
refuse("uncounted", "Tally: negative uncounted", lambda: Tally([1, 2], [0, 1], -1))
refuse("uncounted", "Tally: text uncounted", lambda: Tally([1, 2], [0, 1], "1"))
refuse("counts", "from_counts: other number of regions", lambda: Tally.from_counts([1], [0], partition=HALVES))
refuse("partition", "from_counts: partition", lambda: Tally.from_counts([1], [0], partition="x"))
refuse("partition", "from_data: partition", lambda: Tally.from_data([0.5], S, Y))
refuse("scores", "from_data: NaN", lambda: Tally.from_data(HALVES, with_entry(S, 3, np.nan), Y))
refuse("y", "from_data: text labels", lambda: Tally.from_data(HALVES, S, NAMES))
refuse("y", "from_data: labels 1 and 2", lambda: Tally.from_data(HALVES, S, Y + 1))
refuse("y", "from_data: too few labels", lambda: Tally.from_data(HALVES, S, Y[:5]))
for name, weights in {
    "negative": with_entry(np.ones(N), 3, -0.5),
    "NaN": with_entry(np.ones(N), 3, np.nan),
    "infinite": with_entry(np.ones(N), 3, np.inf),
    "too short": np.ones(N - 1),
    "text": ["a"] * N,
    "a number": 1.0,
    "square beyond doubles": np.full(N, 1e200),
}.items():
    refuse(
        "importance_weight",
        f"from_data importance_weight: {name}",
        lambda weights=weights: Tally.from_data(HALVES, S, Y, importance_weight=weights),
    )
refuse(
    "tallies",
    "add: other partition",
    lambda: COUNTS + Tally.from_counts([1, 1], [0, 0], partition=Partition.from_edges([0.3])),
)
refuse("tallies", "add: partition unknown", lambda: COUNTS + Tally.from_counts([1, 1], [0, 0]))
refuse(
    "tallies", "add: other number of regions", lambda: Tally.from_counts([1], [0]) + Tally.from_counts([1, 1], [0, 0])
)
refuse(
    "tallies",
    "add: weights on one side only",
    lambda: Tally.from_data(HALVES, S, Y, importance_weight=np.ones(N)) + Tally.from_data(HALVES, S, Y),
)
refuse("counts", "add: beyond 2**53 rows", lambda: Tally.from_counts([2**53], [0]) + Tally.from_counts([2**53], [0]))
TREES = [DecisionTreeClassifier(max_leaf_nodes=2).fit(X[:, :1], cut < S) for cut in (0.3, 0.6)]
refuse(
    "tallies",
    "add: of two trees",
    lambda: sum(Tally.from_data(Partition.from_tree(tree), X[:, :1], Y) for tree in TREES),
)
refuse(
    "tally",
    "from_tally: of another function",
    lambda: BinningCalibrator.from_tally(
        Partition.from_function(lambda X: np.asarray(X)[:, 0] > 0.7, [False, True]),
        Tally.from_data(Partition.from_function(lambda X: np.asarray(X)[:, 0] > 0.2, [False, True]), X, Y),
    ),
)
refuse("schema", "Tally.from_dict: empty", lambda: Tally.from_dict({}))
refuse("schema", "Tally.from_dict: other schema", lambda: Tally.from_dict({"schema": "calibrant.tally/99"}))
refuse("state", "Tally.from_dict: None", lambda: Tally.from_dict(None))
refuse(
    "positives",
    "Tally.from_dict: no positives",
    lambda: Tally.from_dict({"schema": "calibrant.tally/1", "counts": [1]}),
)
refuse("positives", "Tally.from_dict: tampered", lambda: Tally.from_dict({**COUNTS.to_dict(), "positives": [99, 0]}))

refuse("schema", "calibrator from_dict: empty", lambda: BinningCalibrator.from_dict({}))
refuse("state", "calibrator from_dict: None", lambda: BinningCalibrator.from_dict(None))
refuse("schema", "calibrator from_dict: a tally", lambda: BinningCalibrator.from_dict(COUNTS.to_dict()))
refuse("type", "calibrator from_dict: unknown", lambda: BinningCalibrator.from_dict({**MODEL.to_dict(), "type": "X"}))
for key in ("type", "parameters", "classes", "positive_index", "state"):
    refuse(
        key,
        f"calibrator from_dict: no {key}",
        lambda key=key: BinningCalibrator.from_dict({k: v for k, v in MODEL.to_dict().items() if k != key}),
    )

# Partitions

refuse("kind", "from_dict: empty", lambda: Partition.from_dict({}))
refuse("kind", "from_dict: unknown kind", lambda: Partition.from_dict({"kind": "circles"}))
refuse("kind", "from_dict: kind a list", lambda: Partition.from_dict({"kind": []}))
refuse("state", "from_dict: None", lambda: Partition.from_dict(None))
refuse("edges", "from_dict: no edges", lambda: Partition.from_dict({"kind": "scores"}))
refuse(
    "edges",
    "from_dict: edges out of order",
    lambda: Partition.from_dict({**Partition.fixed_width(3).to_dict(), "edges": [2, 1]}),
)
refuse("low", "from_dict: low is text", lambda: Partition.from_dict({**HALVES.to_dict(), "low": "x"}))
refuse(
    "first_rank",
    "from_dict: ranks of other edges",
    lambda: Partition.from_dict({**MODEL.partition_.to_dict(), "first_rank": [1]}),
)
for value in (0, -1, 2.5, "x", None, True, 10**9):
    refuse("n_bins", f"fixed_width n_bins={value!r}", lambda value=value: Partition.fixed_width(value))
    refuse("n_bins", f"uniform_mass n_bins={value!r}", lambda value=value: Partition.uniform_mass(S, value))
for value in [(1, 0), (0, np.nan), "ab", None, (0, 1, 2), 3]:
    refuse("score_range", f"fixed_width score_range={value!r}", lambda value=value: Partition.fixed_width(2, value))
refuse("n_bins", "fixed_width: more bins than doubles", lambda: Partition.fixed_width(100, (1.0, 1.0 + 1e-15)))
refuse("scores", "uniform_mass: NaN", lambda: Partition.uniform_mass([0.1, np.nan], 1))
refuse("at least one row", "uniform_mass: no scores", lambda: Partition.uniform_mass([], 1))
BAD_EDGES = {
    "falling": [0.5, 0.2],
    "equal": [0.5, 0.5],
    "zero and minus zero": [-0.0, 0.0],
    "NaN": [0.1, np.nan],
    "infinite": [0.1, np.inf],
    "text": ["a"],
    "None": None,
    "a number": 0.5,
    "two columns": [[0.2, 0.8], [0.3, 0.7]],
    "one row": [[0.2, 0.5, 0.8]],
    "complex": [1j],
    "ragged": [[1], [2, 3]],
}
for name, edges in BAD_EDGES.items():
    refuse("edges", f"from_edges: {name}", lambda edges=edges: Partition.from_edges(edges))
refuse("edges", "from_edges: outside the range", lambda: Partition.from_edges([0.5, 1.5], (0, 1)))
refuse("edges", "from_edges: at the lower end", lambda: Partition.from_edges([0.0, 0.5], (0, 1)))
refuse("score_range", "from_edges: score_range", lambda: Partition.from_edges([0.5], (1, 0)))
for name, values in {"NaN": [np.nan], "None": None, "text": ["a"], "two columns": [[0.2, 0.8], [0.3, 0.7]]}.items():
    refuse("values", f"atoms: {name}", lambda values=values: Partition.atoms(values))
for name, regions in {
    "0": 0,
    "negative": -2,
    "True": True,
    "a billion": 10**9,
    "1.5": 1.5,
    "None": None,
    "string": "abc",
    "empty": [],
    "one twice": [1, 1],
    "lists": [[1], [2]],
}.items():
    refuse("regions", f"from_function regions: {name}", lambda regions=regions: Partition.from_function(len, regions))
refuse("function", "from_function: not callable", lambda: Partition.from_function(3, 2))
BAD_FUNCTIONS = {
    "unknown region": lambda X: np.full(len(X), 5),
    "negative region": lambda X: np.full(len(X), -1),
    "fraction": lambda X: np.full(len(X), 0.5),
    "NaN": lambda X: np.full(len(X), np.nan),
    "None": lambda X: None,
    "a number": lambda X: 1,
    "too few": lambda X: np.zeros(len(X) - 1, dtype=int),
    "too many": lambda X: np.zeros(len(X) + 1, dtype=int),
    "two columns": lambda X: np.zeros((len(X), 2), dtype=int),
    "mixed kinds": lambda X: np.array([0, "a"] * (len(X) // 2), dtype=object),
    "None entries": lambda X: np.array([None] * len(X)),
}
for name, function in BAD_FUNCTIONS.items():
    bins = Partition.from_function(function, 2)
    refuse("function", f"from_function returns {name}: assign", lambda bins=bins: bins.assign(X))
    refuse("function", f"from_function returns {name}: fit", lambda bins=bins: fit(X, Y, partition=bins))
refuse(
    "pos_label",
    "from_function: columns are no probabilities",
    lambda: fit(P, NAMES, partition=Partition.from_function(lambda X: np.zeros(len(X), int), 1)),
)
refuse("tree", "from_tree: not fitted", lambda: Partition.from_tree(DecisionTreeClassifier()))
refuse("tree", "from_tree: not a tree", lambda: Partition.from_tree(LogisticRegression()))
refuse("tree", "from_tree: None", lambda: Partition.from_tree(None))
for name, parts in {
    "None": None,
    "empty": {},
    "list": [HALVES],
    "edges": {"a": [0.5]},
    "nested": {"a": Partition.by_segment({"b": HALVES})},
}.items():
    refuse("parts", f"by_segment: {name}", lambda parts=parts: Partition.by_segment(parts))

# Plans

BAD_PLANS = {
    "epsilon": [0, 1, -0.1, 2, np.nan, "0.1", True, 1e-300],
    "n": [0, -5, 1.5, "100", True, 5, 10**30],
    "confidence_level": [0, 1, -1, 2, np.nan, "0.9", True, None],
    "n_bins": [0, -1, 2.5, "auto", None, True, 10**9],
    "base_rate": [0, 1, -1, np.nan, "x", True],
    "interval": ["x", None, "umd"],
    "split": [0.0, 1.0, -0.5, 0, -3, "x", True, np.nan],
}
for parameter, values in BAD_PLANS.items():
    for value in values:
        options = {"n": 1000} if parameter != "epsilon" else {}
        refuse(parameter, f"plan {parameter}={value!r}", lambda o={**options, parameter: value}: plan(**o))
refuse("epsilon", "plan: nothing asked", lambda: plan())
refuse("epsilon", "plan: both asked", lambda: plan(epsilon=0.1, n=100))

# CalibratedClassifier: errors about X are the inner model's or scikit-learn's own


def classify(X=X, y=Y, estimator=None, calibrator=None, **parameters):
    inner = LogisticRegression() if estimator is None else estimator
    outer = BinningCalibrator(n_bins=2) if calibrator is None else calibrator
    return CalibratedClassifier(inner, outer, **{"random_state": 0, **parameters}).fit(X, y)


for value in (0, 0.0, 1.0, -0.5, 2.0, N, N + 5, "x", None, True, np.nan):
    refuse("calibration_size", f"calibration_size={value!r}", lambda value=value: classify(calibration_size=value))
for value in (0, 1, -2, True):
    refuse("cv", f"cv={value!r}", lambda value=value: classify(cv=value))
for value in ("predict", "", None, 3):
    refuse("response_method", f"response_method={value!r}", lambda value=value: classify(response_method=value))
for value in (-1, 1.5, "x", True):
    refuse("random_state", f"classifier random_state={value!r}", lambda value=value: classify(random_state=value))
for value in ("x", 3, BinningCalibrator, IsotonicRegression(), LogisticRegression(), []):
    refuse("calibrator", f"calibrator={value!r}", lambda value=value: classify(calibrator=value))
for value in ("x", 3, LogisticRegression, []):
    refuse("estimator", f"estimator={value!r}", lambda value=value: classify(estimator=value))
refuse("estimator", "estimator without scores", lambda: classify(estimator=LinearSVR()))
refuse(
    "estimator",
    "estimator without the method",
    lambda: classify(estimator=LinearSVR(), response_method="predict_proba"),
)
refuse("n_bins", "classifier: calibrator's parameter", lambda: classify(calibrator=BinningCalibrator(n_bins=0)))
refuse("n_bins", "classifier: more bins than rows", lambda: classify(calibrator=BinningCalibrator(n_bins=N)))
refuse(
    "pos_label", "classifier: pos_label of the first class", lambda: classify(calibrator=BinningCalibrator(pos_label=0))
)
refuse("y must", "classifier: one class", lambda: classify(y=np.ones(N)))
refuse(
    "cv",
    "classifier: cv of a frozen model",
    lambda: classify(estimator=FrozenEstimator(LogisticRegression().fit(X, Y)), cv=3),
)
refuse(
    "y must",
    "classifier: labels the frozen model does not know",
    lambda: classify(y=NAMES, estimator=FrozenEstimator(LogisticRegression().fit(X, Y))),
)
refuse("coverage", "classifier: coverage", lambda: classify().predict_set(X, coverage=1.5))
refuse("segments", "classifier: segments at predict only", lambda: classify().predict_proba(X, segments=GROUPS))
refuse("X", "classifier: one-dimensional X at predict", lambda: classify().predict(X[0]))


def fault(word, call):
    """What is wrong with the refusal; None if nothing is. Without `assert`, which `python -O` leaves out."""
    try:
        call()
    except CalibrantError as error:
        message = str(error)
        if not isinstance(error, ValueError | TypeError):
            return f"a {type(error).__name__} is neither a ValueError nor a TypeError"
        lacking = [part for part in (word, " must ", "got ") if part not in message]
        return f"{lacking} not in: {message}" if lacking else None
    except Exception as error:
        return f"{type(error).__name__}, not ours: {error}"
    return "not refused"


@pytest.mark.parametrize("kind", sorted({name.split()[0] for name in REFUSED}))
def test_refused(kind):
    calls = {name: call for name, call in REFUSED.items() if name.split()[0] == kind}
    faults = {name: fault(*call) for name, call in calls.items()}
    assert set(faults.values()) == {None}, {name: found for name, found in faults.items() if found is not None}


@pytest.mark.parametrize(
    ("phrase", "call"),
    [
        pytest.param("inconsistent numbers of samples", lambda: classify(y=Y[:-1]), id="lengths differ"),
        pytest.param("NaN", lambda: classify(X=with_entry(X, 3, np.nan)), id="NaN"),
        pytest.param("y", lambda: classify(y=None), id="no labels"),
        pytest.param("binary", lambda: classify(y=np.arange(N) % 3), id="three classes"),
        pytest.param("continuous", lambda: classify(y=S), id="soft labels"),
        pytest.param("y", lambda: classify(y=with_entry(Y, 2, np.nan, float)), id="missing label"),
        pytest.param("features", lambda: classify().predict(X[:, :2]), id="fewer features"),
        pytest.param("cv", lambda: classify(cv="x"), id="cv"),
    ],
)
def test_classifier_passes_on_errors_of_scikit_learn(phrase, call):
    with pytest.raises((ValueError, TypeError), match=phrase):
        call()


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_interval", "predict_set"])
@pytest.mark.parametrize(
    "unfitted", [BinningCalibrator(), CalibratedClassifier(DummyClassifier())], ids=["scores", "X"]
)
def test_predict_before_fit(method, unfitted):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(unfitted, method)([[0.5]])


def test_tally_plus_something_else_is_a_type_error():
    for other in (1, None, "a", [COUNTS]):
        with pytest.raises(TypeError):
            COUNTS + other


def test_umd_refuses_ties_for_which_it_promises_too_much():
    with pytest.raises(ValueError, match="interval='umd'"):
        fit(np.round(S, 1), interval="umd", n_bins=4)


def test_unknown_parameter_is_a_type_error():
    with pytest.raises(TypeError, match="n_bin"):
        BinningCalibrator(n_bin=3)
    with pytest.raises(TypeError, match="n_bin"):
        BinningCalibrator.from_tally(HALVES, COUNTS, n_bin=3)
    with pytest.raises(ValueError, match="n_bin"):
        BinningCalibrator().set_params(n_bin=3)


def test_the_message_points_at_the_row_and_counts_the_others():
    with pytest.raises(ValueError, match=r"got nan at row index 7, and 3 such rows in all"):
        fit(with_entry(S, [7, 20, 21], np.nan))
    with pytest.raises(ValueError, match=r"got null at row index 7, and in no other row"):
        fit(pa.array([*S[:7], None, *S[8:]]))
    with pytest.raises(ValueError, match=r"got a masked entry at row index 9, and in no other row"):
        fit(np.ma.masked_array(P, mask=np.arange(2 * N).reshape(N, 2) == 19))
    with pytest.raises(ValueError, match=r"1000 and 100"):
        fit(np.linspace(0, 1, 1000), np.arange(100) % 2)


@pytest.mark.broad
def test_python_without_asserts_runs_the_same_code():
    """So `python -O` refuses what Python refuses: no check of the package is an assert or asks for `__debug__`."""
    files = list(Path(calibrant.__file__).parent.rglob("*.py"))
    assert len(files) > 100
    for file in files:
        plain, optimized = (compile(file.read_text("utf-8"), file, "exec", optimize=level) for level in (0, 1))
        assert plain == optimized, file
    asserting = [compile("assert 1 > 2", "a file", "exec", optimize=level) for level in (0, 1)]
    assert asserting[0] != asserting[1]  # and the comparison would tell


# Inputs that look odd and must work

TINY = 5e-324  # the smallest double above 0
ONE_UP = np.nextafter(1.0, 2.0)
LARGEST = np.finfo(np.float64).max
ODD = {
    "constant": (np.full(N, 0.3), {"n_bins": 5}),
    "constant zero": (np.zeros(N), {"n_bins": 5}),
    "constant, uniform": (np.full(N, 0.3), {"n_bins": 5, "strategy": "uniform"}),
    "two points": (np.where(Y, 0.9, 0.1), {"n_bins": 5}),
    "two points, default": (np.where(np.arange(N) % 2, 1.0, 0.0), {}),
    "ints": (np.arange(N) % 4, {"n_bins": 5}),
    "bools": (np.arange(N) % 2 == 0, {"n_bins": 5}),
    "denormals": (np.arange(N) * TINY, {"n_bins": 6}),
    "denormals of both signs": ((np.arange(N) - N // 2) * TINY, {"n_bins": 6}),
    "huge logits": (np.where(np.arange(N) % 2, 1e300, -1e300), {"n_bins": 3}),
    "largest doubles": (np.linspace(-1, 1, N) * LARGEST, {"n_bins": 6}),
    "only the largest double": (np.full(N, LARGEST), {"n_bins": 3}),
    "only its negative": (np.full(N, -LARGEST), {"n_bins": 3}),
    "minus zero and zero": (np.where(np.arange(N) % 2, -0.0, 0.0), {"n_bins": 4}),
    "as many bins as rows": (S, {"n_bins": N}),
    "as many bins as rows, ties": (np.round(S, 1), {"n_bins": N}),
    "as many bins as rows, uniform": (S, {"n_bins": N, "strategy": "uniform"}),
    "float32": (S.astype(np.float32), {"n_bins": 6}),
    "float16": (S.astype(np.float16), {"n_bins": 6}),
    "ints up to 2**53": (np.arange(N) + 2**53 - N + 1, {"n_bins": 6}),
    "negative ints down to -2**53": (-np.arange(N) - 2**53 + N - 1, {"n_bins": 6}),
    "duplicates everywhere": (np.repeat([0.1, 0.2, 0.2, 0.3, 0.9, 0.9], 10), {"n_bins": 7}),
    "each value twice": (np.repeat(S[: N // 2], 2), {"n_bins": 7}),
    "adjacent doubles": (np.where(np.arange(N) % 2, 1.0, ONE_UP), {"n_bins": 7}),
    "run of adjacent doubles": (1.0 + np.arange(N) * np.spacing(1.0), {"n_bins": 20}),
    "run of adjacent doubles, all bins": (1.0 + np.arange(N) * np.spacing(1.0), {"n_bins": N}),
    "adjacent denormals, all bins": (np.arange(N) * TINY, {"n_bins": N}),
    "adjacent doubles as edges": (
        np.repeat([np.nextafter(1.0, 0.0), 1.0, ONE_UP], 20),
        {"partition": Partition.from_edges([1.0, ONE_UP])},
    ),
    "adjacent doubles as atoms": (
        np.repeat([np.nextafter(1.0, 0.0), 1.0, ONE_UP], 20),
        {"partition": Partition.atoms([1.0, ONE_UP])},
    ),
    "ends of the range": (np.tile([0.0, 0.25, 0.5, 0.75, 1.0, 1.0], 10), {"n_bins": 4, "strategy": "uniform"}),
    "tiny range": (np.linspace(0, 1e-300, N), {"n_bins": 4, "strategy": "uniform", "score_range": (0.0, 1e-300)}),
    "wide range": (np.linspace(-8e307, 8e307, N), {"n_bins": 4, "strategy": "uniform", "score_range": (-8e307, 8e307)}),
    "decimals": ([Decimal(int(1000 * s)) / 1000 for s in S], {"n_bins": 6}),
    "fractions": ([Fraction(k, N) for k in range(N)], {"n_bins": 6}),
    "range object": (range(N), {"n_bins": 6}),
    "deque": (deque(S), {"n_bins": 6}),
    "matrix": (np.array(S)[:, None].view(np.matrix), {"n_bins": 6}),
}


@pytest.mark.parametrize(("scores", "parameters"), ODD.values(), ids=ODD.keys())
def test_odd_scores_work(scores, parameters):
    model = fit(scores, Y, **parameters)
    plain = np.asarray(scores, dtype=np.float64).ravel()
    assert_counted_where_predicted(model, plain, Y)
    np.testing.assert_array_equal(model.predict(scores), model.predict(plain))
    assert Partition.from_dict(model.partition_.to_dict()) == model.partition_
    assert str(model.guarantee_).endswith(".")


@pytest.mark.parametrize(("scores", "parameters"), ODD.values(), ids=ODD.keys())
def test_odd_scores_work_by_default(scores, parameters):
    model = fit(scores, Y, **{"split": "auto", "value": "jeffreys", **parameters})
    plain = np.asarray(scores, dtype=np.float64).ravel()
    said = model.guarantee_.statement
    assert model.tally_.n_rows + said.looked + said.cutting == plain.size
    np.testing.assert_array_equal(model.predict(scores), model.predict(plain))
    assert Partition.from_dict(model.partition_.to_dict()) == model.partition_
    regions = model.partition_.assign(plain)
    assert (np.diff(regions[np.argsort(plain, kind="stable")]) >= 0).all()


def assert_counted_where_predicted(model, plain, y):
    partition, tally = model.partition_, model.tally_
    # each row counts in the region it is predicted by, except edge values seen once
    regions = partition.assign(plain)
    values, seen = np.unique(plain, return_counts=True)
    edges = partition.edges if partition.cuts_own_sample else np.empty(0)
    counted = ~np.isin(plain, np.intersect1d(edges, values[seen == 1]))
    np.testing.assert_array_equal(tally.counts, np.bincount(regions[counted], minlength=partition.n_regions))
    np.testing.assert_array_equal(
        tally.positives, np.bincount(regions[counted], weights=y[counted], minlength=partition.n_regions)
    )
    assert tally.n_rows == plain.size
    # regions follow the order of scores
    assert (np.diff(regions[np.argsort(plain, kind="stable")]) >= 0).all()
    # predictions: the rate of the region, 1/2 where nothing was counted; the interval around it
    rates = np.where(tally.counts > 0, tally.positives / np.maximum(tally.counts, 1), 0.5)
    value = model.predict(plain)
    np.testing.assert_array_equal(value, rates[regions])
    lower, upper = model.predict_interval(plain).T
    assert ((lower >= 0) & (lower <= value) & (value <= upper) & (upper <= 1)).all()
    empty = tally.counts[regions] == 0
    np.testing.assert_array_equal(lower[empty], 0.0)
    np.testing.assert_array_equal(upper[empty], 1.0)
    assert len(partition.describe()) == partition.n_regions
    low, high = partition.bounds[regions].T
    assert ((low <= plain) & (plain <= high)).all()


def test_one_row_and_one_bin():
    model = fit([0.4], [1], n_bins=1, classes=(0, 1))
    assert model.predict([0.0, 9.0]).tolist() == [1.0, 1.0]
    assert model.predict_interval([0.4])[0].tolist() == [
        pytest.approx(0.05 * 0.95),
        1.0,
    ]  # half of the rates' share of alpha


def test_constant_scores_become_one_atom_with_every_row():
    model = fit(np.full(N, 0.3), n_bins=5)
    assert model.tally_.counts.max() == N
    assert model.predict([0.3]) == Y.mean()
    assert model.predict([0.2, 0.4]).tolist() == [0.5, 0.5]
    assert model.predict_interval([0.2, 0.4]).tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_float32_scores_stay_on_their_side_of_an_edge():
    near = np.float32(0.1)  # 0.100000001490..., which float32 arithmetic can not tell from 0.1
    bins = Partition.from_edges([0.1, float(near)])
    scores = np.repeat([0.05, 0.1, float(near)], 20)
    model = fit(scores, partition=bins)
    assert bins.assign(np.array([near])).tolist() == [2]
    assert model.tally_.counts.tolist() == [20, 20, 20]
    assert bins.assign(np.array([np.nextafter(near, np.float32(0))])).tolist() == [0]


def test_minus_zero_and_zero_are_one_atom():
    model = fit(np.where(np.arange(N) % 2, -0.0, 0.0), n_bins=4)
    assert model.tally_.counts.max() == N
    assert model.partition_ == fit(np.zeros(N), n_bins=4).partition_


def test_labels_one_and_two_give_probabilities():
    model = fit(S, Y + 1, pos_label=2, n_bins=4)
    assert model.predict(S).max() <= 1.0
    np.testing.assert_array_equal(model.predict(S), MODEL.predict(S))


def test_segments_of_any_kind_and_container_agree():
    for segments in (
        GROUPS.tolist(),
        pd.Series(GROUPS, index=Y),
        pd.Categorical(GROUPS),
        pl.Series(GROUPS),
        pa.array(GROUPS),
        GROUPS[:, None],
    ):
        model = fit(segments=segments, n_bins=4)
        np.testing.assert_array_equal(model.predict(S, segments=segments), GROUPED.predict(S, segments=GROUPS))
    numbered = fit(segments=GROUPS == "b", n_bins=4)
    np.testing.assert_array_equal(
        numbered.predict(S, segments=(GROUPS == "b").astype(float)), GROUPED.predict(S, segments=GROUPS)
    )


def test_each_segment_is_calibrated_by_its_own_rows():
    for group in ("a", "b"):
        rows = group == GROUPS
        alone = fit(S[rows], Y[rows], n_bins=4)
        np.testing.assert_array_equal(GROUPED.predict(S[rows], segments=GROUPS[rows]), alone.predict(S[rows]))


def test_segment_of_weight_zero_is_no_segment():
    weights = np.where(GROUPS == "b", 0, 1)
    model = fit(segments=GROUPS, sample_weight=weights, n_bins=4)
    rows = GROUPS == "a"
    np.testing.assert_array_equal(
        model.predict(S[rows], segments=GROUPS[rows]), GROUPED.predict(S[rows], segments=GROUPS[rows])
    )
    with pytest.raises(ValueError, match="segments must be among those seen"):
        model.predict([0.5], segments=["b"])


def test_large_importance_weights_are_summed_exactly():
    tally = Tally.from_data(HALVES, [0.1, 0.2], [0, 1], importance_weight=[1e140, 1e140])
    assert tally == Tally.from_data(HALVES, [0.1], [0], importance_weight=[1e140]) + Tally.from_data(
        HALVES, [0.2], [1], importance_weight=[1e140]
    )


@pytest.mark.parametrize("level", [TINY, 1e-17, 0.01, 0.5, 1 - 1e-16])
def test_any_confidence_level_strictly_between_0_and_1_works(level):
    model = fit(confidence_level=level, n_bins=4)
    lower, upper = model.predict_interval(S).T
    assert ((lower >= 0) & (lower <= model.predict(S)) & (model.predict(S) <= upper) & (upper <= 1)).all()


@pytest.mark.parametrize("kind", [np.uint8, bool, np.int8, np.float16])
def test_one_class_of_a_small_type_is_compared_with_any_classes(kind):
    model = fit(S, np.ones(N, dtype=kind), classes=(-1, 1), n_bins=2)
    assert model.classes_.tolist() == [-1, 1]
    assert model.predict(S).tolist() == [1.0] * N


def test_tree_partition_equals_its_copy():
    bins = Partition.from_tree(TREES[0])
    copied = copy.deepcopy(bins)
    assert copied == bins
    assert copied.fingerprint == bins.fingerprint
    assert bins != Partition.from_tree(TREES[1])


def test_refused_refit_leaves_the_classifier_as_it_was():
    model = classify()
    before, held = model.predict_proba(X), dict(vars(model))
    for bad in [(X[:, :2], np.arange(N) % 3), (X[:, :2], Y[:-1]), (with_entry(X, 3, np.nan)[:, :2], Y)]:
        with pytest.raises(ValueError):
            model.fit(*bad)
    with pytest.raises(ValueError):
        model.set_params(calibrator__n_bins=N).fit(X[:, :2], Y)
    model.set_params(calibrator__n_bins=2)
    assert vars(model) == held
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_ranks_do_not_overflow_on_huge_weights():
    scores = np.arange(3000.0)
    weighted = fit(scores, np.arange(3000) % 2, n_bins=1500, sample_weight=np.full(3000, 2**41))
    small = fit(scores, np.arange(3000) % 2, n_bins=1500, sample_weight=np.full(3000, 2**4))
    np.testing.assert_array_equal(weighted.partition_.edges, small.partition_.edges)


def awkward_doubles():
    """Scores with ties, neighbours, zeros of both signs, denormals and huge values among them."""
    special = [0.0, -0.0, TINY, -TINY, 1.0, ONE_UP, np.nextafter(1.0, 0.0), 1e300, -1e300, LARGEST, -LARGEST]
    entries = st.one_of(st.sampled_from(special), st.floats(allow_nan=False, allow_infinity=False))
    return st.lists(entries, min_size=2, max_size=40)


@pytest.mark.broad
@settings(max_examples=150, deadline=None, derandomize=True)
@given(scores=awkward_doubles(), data=st.data())
def test_any_finite_scores_are_counted_where_they_are_predicted(scores, data):
    n_bins = data.draw(st.integers(1, len(scores)))
    weights = data.draw(st.lists(st.integers(1, 3), min_size=len(scores), max_size=len(scores)))
    y = np.arange(len(scores)) % 2
    model = fit(np.repeat(scores, weights), np.repeat(y, weights), n_bins=n_bins)
    weighted = fit(scores, y, n_bins=n_bins, sample_weight=weights)
    assert weighted.partition_ == model.partition_
    assert weighted.tally_ == model.tally_
    assert_counted_where_predicted(model, np.repeat(scores, weights), np.repeat(y, weights))


def test_scalar_parameters_of_numpy_kinds_work():
    model = fit(n_bins=np.int32(4), confidence_level=np.float32(0.5), n_jobs=np.int64(2))
    np.testing.assert_array_equal(model.predict(S), MODEL.predict(S))
    assert fit(n_bins=np.array(4)).predict(S).tolist() == MODEL.predict(S).tolist()
    assert fit(split=np.float64(0.5), n_bins=4).tally_ == fit(split=0.5, n_bins=4).tally_
    assert fit(split=np.int64(30), n_bins=4).tally_.n_rows == N - 30
