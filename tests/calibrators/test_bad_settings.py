"""Bad parameters, weights, segments, tallies, partitions and plans: each is refused with one clear
error.

An error names the parameter, says the rule ("must") and what was "got", and is one of ours, never
numpy's or pandas'.
"""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from calibrant import BinningCalibrator, Guarantee, Partition, Tally, plan
from worlds.input_rows import (
    COUNTS,
    GROUPED,
    GROUPS,
    HALVES,
    MODEL,
    NAMES,
    TREES,
    N,
    P,
    Refusals,
    S,
    X,
    Y,
    fit,
    with_entry,
)

refuse = Refusals()

# Parameters

BAD_PARAMETERS = {
    "confidence_level": [
        0,
        1,
        0.0,
        1.0,
        -1,
        2,
        np.nan,
        np.inf,
        "0.9",
        True,
        None,
        [0.9],
        np.array([0.9, 0.8]),
        90,
        1j,
    ],
    "n_bins": [
        0,
        -1,
        1.5,
        10.0,
        "ten",
        "AUTO",
        True,
        None,
        10**9,
        [10],
        np.array([1, 2]),
        np.nan,
        np.float64(3),
    ],
    "partition": [
        "quantiles",
        "Uniform",
        "kmeans",
        "",
        None,
        1,
        ["uniform"],
        b"uniform",
        [0.1, 0.5],
        Partition,
        0,
    ],
    "interval": ["clopper_pearson", "wilson", "", None, 3, ["kl"], len],
    "value": ["median", "Mean", "", None, 0.5, ["mean"]],
    "pilot": [0, 0.0, 1.0, -0.1, 2.0, -3, np.nan, N, N + 1, 1 - 1e-9, 1e-9, True, "0.2", [0.2], 1j],
    "random_state": [-1, 1.5, "seed", True, [1, 2], np.random, np.array([1])],
    "n_jobs": [0, -2, 1.5, "all", True, [1], np.array([1, 2])],
    "score_range": [
        1,
        "01",
        (0,),
        (0, 1, 2),
        (1, 0),
        (0, 0),
        (0, np.nan),
        (0, np.inf),
        ("0", "1"),
        (None, 1),
        {0, 1},
    ],
}
for parameter, values in BAD_PARAMETERS.items():
    for place, value in enumerate(values):
        other = {"partition": "uniform"} if parameter == "score_range" else {}
        refuse(
            parameter,
            f"{parameter}={value!r} ({place})",
            lambda parameter=parameter, value=value, other=other: fit(
                **{parameter: value}, **other
            ),
        )
refuse(
    "score_range",
    "score_range: wider than doubles",
    lambda: fit(partition="uniform", score_range=(-1e308, 1e308)),
)
refuse("score_range", "score_range: for quantile bins", lambda: fit(score_range=(0, 1)))
refuse("n_bins", "uniform: more bins than rows", lambda: fit(partition="uniform", n_bins=N + 1))
refuse("n_bins", "uniform: a billion bins", lambda: fit(partition="uniform", n_bins=10**9))
refuse("n_bins", "quantile: more bins than rows", lambda: fit(n_bins=N + 1))
refuse("n_bins", "split: more bins than cutting rows", lambda: fit(pilot=5, n_bins=6))
refuse(
    "n_bins",
    "segments: more bins than rows of a segment",
    lambda: fit(segments=["a", *["b"] * (N - 1)], n_bins=2),
)
refuse("pilot", "split for uniform bins", lambda: fit(partition="uniform", pilot=0.2))
refuse("pilot", "split for a given partition", lambda: fit(partition=HALVES, pilot=0.2))

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
    refuse(
        "sample_weight",
        f"sample_weight: {name}",
        lambda weights=weights: fit(sample_weight=weights),
    )
refuse(
    "sample_weight", "sample_weight with split", lambda: fit(pilot=0.5, sample_weight=np.ones(N))
)
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
    refuse(
        "segments",
        f"fit segments: {name}",
        lambda segments=segments: fit(segments=segments, n_bins=2),
    )
    refuse(
        "segments",
        f"predict segments: {name}",
        lambda segments=segments: GROUPED.predict(S, segments=segments),
    )
refuse("segments", "predict segments: unknown", lambda: GROUPED.predict([0.5], segments=["c"]))
refuse("segments", "predict segments: other kind", lambda: GROUPED.predict([0.5], segments=[1]))
refuse("segments", "predict segments: not given", lambda: GROUPED.predict([0.5]))
refuse("segments", "predict_interval segments: not given", lambda: GROUPED.predict_interval([0.5]))
refuse("segments", "predict_set segments: not given", lambda: GROUPED.predict_set([0.5]))
refuse("segments", "predict segments: none expected", lambda: MODEL.predict([0.5], segments=["a"]))
refuse(
    "segments", "fit segments: partition without", lambda: fit(partition=HALVES, segments=GROUPS)
)
refuse(
    "segments",
    "fit segments: partition with",
    lambda: fit(partition=Partition.by_segment({"a": HALVES})),
)

# Levels asked for later

for value in (0, 1, 0.0, 1.0, -0.5, 2, np.nan, "x", "0.95", None, True, [0.9]):
    refuse(
        "coverage",
        f"coverage={value!r}",
        lambda value=value: MODEL.predict_set([0.5], coverage=value),
    )
for value in (0, 0.0, -1, 1.5, np.nan, np.inf, "0.9", None, True, [0.9]):
    refuse(
        "mass",
        f"epsilon_for mass={value!r}",
        lambda value=value: MODEL.guarantee_.epsilon_for(mass=value),
    )
    refuse(
        "mass",
        f"restricted_to mass={value!r}",
        lambda value=value: MODEL.guarantee_.restricted_to(value),
    )

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
refuse(
    "partition", "from_tally: partition None", lambda: BinningCalibrator.from_tally(None, COUNTS)
)
refuse(
    "partition", "from_tally: partition edges", lambda: BinningCalibrator.from_tally([0.5], COUNTS)
)
refuse(
    "confidence_level",
    "from_tally: level",
    lambda: BinningCalibrator.from_tally(HALVES, COUNTS, confidence_level=2),
)
refuse(
    "interval",
    "from_tally: interval",
    lambda: BinningCalibrator.from_tally(HALVES, COUNTS, interval="x"),
)
refuse(
    "pilot", "from_tally: split", lambda: BinningCalibrator.from_tally(HALVES, COUNTS, pilot=0.2)
)
refuse(
    "value", "Guarantee.from_tally: value", lambda: Guarantee.from_tally(HALVES, COUNTS, value="x")
)
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
refuse(
    "positives", "from_counts: more positives than rows", lambda: Tally.from_counts([1, 2], [0, 3])
)
refuse("positives", "from_counts: negative positives", lambda: Tally.from_counts([1, 2], [0, -1]))
refuse("positives", "Tally: more positives than rows", lambda: Tally([1, 2], [0, 3]))
refuse("uncounted", "Tally: negative uncounted", lambda: Tally([1, 2], [0, 1], -1))
refuse("uncounted", "Tally: text uncounted", lambda: Tally([1, 2], [0, 1], "1"))
refuse(
    "counts",
    "from_counts: other number of regions",
    lambda: Tally.from_counts([1], [0], partition=HALVES),
)
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
    "tallies",
    "add: other number of regions",
    lambda: Tally.from_counts([1], [0]) + Tally.from_counts([1, 1], [0, 0]),
)
refuse(
    "tallies",
    "add: weights on one side only",
    lambda: (
        Tally.from_data(HALVES, S, Y, importance_weight=np.ones(N)) + Tally.from_data(HALVES, S, Y)
    ),
)
refuse(
    "counts",
    "add: beyond 2**53 rows",
    lambda: Tally.from_counts([2**53], [0]) + Tally.from_counts([2**53], [0]),
)
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
        Tally.from_data(
            Partition.from_function(lambda X: np.asarray(X)[:, 0] > 0.2, [False, True]), X, Y
        ),
    ),
)
refuse("schema", "Tally.from_dict: empty", lambda: Tally.from_dict({}))
refuse(
    "schema",
    "Tally.from_dict: other schema",
    lambda: Tally.from_dict({"schema": "calibrant.tally/99"}),
)
refuse("state", "Tally.from_dict: None", lambda: Tally.from_dict(None))
refuse(
    "positives",
    "Tally.from_dict: no positives",
    lambda: Tally.from_dict({"schema": "calibrant.tally/1", "counts": [1]}),
)
refuse(
    "positives",
    "Tally.from_dict: tampered",
    lambda: Tally.from_dict({**COUNTS.to_dict(), "positives": [99, 0]}),
)

refuse("schema", "calibrator from_dict: empty", lambda: BinningCalibrator.from_dict({}))
refuse("state", "calibrator from_dict: None", lambda: BinningCalibrator.from_dict(None))
refuse(
    "schema", "calibrator from_dict: a tally", lambda: BinningCalibrator.from_dict(COUNTS.to_dict())
)
refuse(
    "type",
    "calibrator from_dict: unknown",
    lambda: BinningCalibrator.from_dict({**MODEL.to_dict(), "type": "X"}),
)
for key in ("type", "parameters", "classes", "positive_index", "state"):
    refuse(
        key,
        f"calibrator from_dict: no {key}",
        lambda key=key: BinningCalibrator.from_dict(
            {k: v for k, v in MODEL.to_dict().items() if k != key}
        ),
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
refuse(
    "low", "from_dict: low is text", lambda: Partition.from_dict({**HALVES.to_dict(), "low": "x"})
)
refuse(
    "first_rank",
    "from_dict: ranks of other edges",
    lambda: Partition.from_dict({**MODEL.partition_.to_dict(), "first_rank": [1]}),
)
for value in (0, -1, 2.5, "x", None, True, 10**9):
    refuse(
        "n_bins", f"fixed_width n_bins={value!r}", lambda value=value: Partition.fixed_width(value)
    )
    refuse(
        "n_bins",
        f"uniform_mass n_bins={value!r}",
        lambda value=value: Partition.uniform_mass(S, value),
    )
for value in [(1, 0), (0, np.nan), "ab", None, (0, 1, 2), 3]:
    refuse(
        "score_range",
        f"fixed_width score_range={value!r}",
        lambda value=value: Partition.fixed_width(2, value),
    )
refuse(
    "n_bins",
    "fixed_width: more bins than doubles",
    lambda: Partition.fixed_width(100, (1.0, 1.0 + 1e-15)),
)
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
for name, values in {
    "NaN": [np.nan],
    "None": None,
    "text": ["a"],
    "two columns": [[0.2, 0.8], [0.3, 0.7]],
}.items():
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
    refuse(
        "regions",
        f"from_function regions: {name}",
        lambda regions=regions: Partition.from_function(len, regions),
    )
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
    refuse(
        "function",
        f"from_function returns {name}: fit",
        lambda bins=bins: fit(X, Y, partition=bins),
    )
refuse(
    "pos_label",
    "from_function: columns are no probabilities",
    lambda: fit(
        P,
        np.where(NAMES == "yes", "late", "paid"),
        partition=Partition.from_function(lambda X: np.zeros(len(X), int), 1),
    ),
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
    "interval": ["x", None],
    "pilot": [0.0, 1.0, -0.5, 0, -3, "x", True, np.nan],
}
for parameter, values in BAD_PLANS.items():
    for value in values:
        options = {"n": 1000} if parameter != "epsilon" else {}
        refuse(
            parameter,
            f"plan {parameter}={value!r}",
            lambda o={**options, parameter: value}: plan(**o),
        )
refuse("epsilon", "plan: nothing asked", lambda: plan())
refuse("epsilon", "plan: both asked", lambda: plan(epsilon=0.1, n=100))


@pytest.mark.parametrize("kind", refuse.kinds)
def test_refused(kind):
    assert refuse.faults(kind) == {}
