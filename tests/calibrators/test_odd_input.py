"""Inputs that look odd and must work."""

import copy
from collections import deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Partition, Tally
from worlds.input_rows import (
    GROUPED,
    GROUPS,
    HALVES,
    MODEL,
    TREES,
    N,
    S,
    X,
    Y,
    classify,
    fit,
    with_entry,
)

TINY = 5e-324  # the smallest double above 0
ONE_UP = np.nextafter(1.0, 2.0)
LARGEST = np.finfo(np.float64).max
ODD = {
    "constant": (np.full(N, 0.3), {"n_bins": 5}),
    "constant zero": (np.zeros(N), {"n_bins": 5}),
    "constant, uniform": (np.full(N, 0.3), {"n_bins": 5, "partition": "uniform"}),
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
    "as many bins as rows, uniform": (S, {"n_bins": N, "partition": "uniform"}),
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
    "ends of the range": (
        np.tile([0.0, 0.25, 0.5, 0.75, 1.0, 1.0], 10),
        {"n_bins": 4, "partition": "uniform"},
    ),
    "tiny range": (
        np.linspace(0, 1e-300, N),
        {"n_bins": 4, "partition": "uniform", "score_range": (0.0, 1e-300)},
    ),
    "wide range": (
        np.linspace(-8e307, 8e307, N),
        {"n_bins": 4, "partition": "uniform", "score_range": (-8e307, 8e307)},
    ),
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
    assert model.guarantee_.sentence.endswith(".")


@pytest.mark.broad
@pytest.mark.parametrize(("scores", "parameters"), ODD.values(), ids=ODD.keys())
def test_odd_scores_work_by_default(scores, parameters):
    model = fit(scores, Y, **{"pilot": "auto", "value": "jeffreys", **parameters})
    plain = np.asarray(scores, dtype=np.float64).ravel()
    said = model.guarantee_.statement
    assert model.tally_.n_rows + said.looked + said.cutting == plain.size
    np.testing.assert_array_equal(model.predict(scores), model.predict(plain))
    assert Partition.from_dict(model.partition_.to_dict()) == model.partition_
    regions = model.partition_.assign(plain)
    assert (np.diff(regions[np.argsort(plain, kind="stable")]) >= 0).all()


def assert_counted_where_predicted(model, plain, y):
    partition = model.partition_
    tally = model.tally_
    # each row counts in the region it is predicted by, except edge values seen once
    regions = partition.assign(plain)
    values, seen = np.unique(plain, return_counts=True)
    edges = partition.edges if partition.cuts_own_sample else np.empty(0)
    counted = ~np.isin(plain, np.intersect1d(edges, values[seen == 1]))
    np.testing.assert_array_equal(
        tally.counts, np.bincount(regions[counted], minlength=partition.n_regions)
    )
    np.testing.assert_array_equal(
        tally.positives,
        np.bincount(regions[counted], weights=y[counted], minlength=partition.n_regions),
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


@pytest.mark.broad
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
        np.testing.assert_array_equal(
            model.predict(S, segments=segments), GROUPED.predict(S, segments=GROUPS)
        )
    numbered = fit(segments=GROUPS == "b", n_bins=4)
    np.testing.assert_array_equal(
        numbered.predict(S, segments=(GROUPS == "b").astype(float)),
        GROUPED.predict(S, segments=GROUPS),
    )


def test_each_segment_is_calibrated_by_its_own_rows():
    for group in ("a", "b"):
        rows = group == GROUPS
        alone = fit(S[rows], Y[rows], n_bins=4)
        np.testing.assert_array_equal(
            GROUPED.predict(S[rows], segments=GROUPS[rows]), alone.predict(S[rows])
        )


def test_segment_of_weight_zero_is_no_segment():
    weights = np.where(GROUPS == "b", 0, 1)
    model = fit(segments=GROUPS, sample_weight=weights, n_bins=4)
    rows = GROUPS == "a"
    np.testing.assert_array_equal(
        model.predict(S[rows], segments=GROUPS[rows]),
        GROUPED.predict(S[rows], segments=GROUPS[rows]),
    )
    with pytest.raises(ValueError, match="segments must be among those seen"):
        model.predict([0.5], segments=["b"])


def test_large_importance_weights_are_summed_exactly():
    tally = Tally.from_data(HALVES, [0.1, 0.2], [0, 1], importance_weight=[1e140, 1e140])
    assert tally == Tally.from_data(
        HALVES, [0.1], [0], importance_weight=[1e140]
    ) + Tally.from_data(HALVES, [0.2], [1], importance_weight=[1e140])


@pytest.mark.parametrize("level", [TINY, 1e-17, 0.01, 0.5, 1 - 1e-16])
def test_any_confidence_level_strictly_between_0_and_1_works(level):
    model = fit(confidence_level=level, n_bins=4)
    lower, upper = model.predict_interval(S).T
    assert (
        (lower >= 0) & (lower <= model.predict(S)) & (model.predict(S) <= upper) & (upper <= 1)
    ).all()


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
    before = model.predict_proba(X)
    held = dict(vars(model))
    for bad in [
        (X[:, :2], np.arange(N) % 3),
        (X[:, :2], Y[:-1]),
        (with_entry(X, 3, np.nan)[:, :2], Y),
    ]:
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
    special = [
        0.0,
        -0.0,
        TINY,
        -TINY,
        1.0,
        ONE_UP,
        np.nextafter(1.0, 0.0),
        1e300,
        -1e300,
        LARGEST,
        -LARGEST,
    ]
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
    assert fit(pilot=np.float64(0.5), n_bins=4).tally_ == fit(pilot=0.5, n_bins=4).tally_
    assert fit(pilot=np.int64(30), n_bins=4).tally_.n_rows == N - 30
