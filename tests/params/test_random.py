"""One source of random numbers: its key, and the fingerprint of rows that the key is made of."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    Calibrator,
    OnlineCalibrator,
    Partition,
    compare_calibrators,
    compare_models,
    scored,
    threshold,
)
from calibrant.classifier.task import sums_of_features
from calibrant.errors import CalibrantWarning
from calibrant.params.random import RandomSource, RowSums, fingerprint_of, seed_number, text_keys
from calibrant.sample.reader import read_rows, rows_of

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=500)
LABELS = (RNG.uniform(size=500) < SCORES).astype(np.uint8)


def test_a_fingerprint_does_not_depend_on_order_type_or_the_name_of_the_positive_class() -> None:
    whole = fingerprint_of(SCORES, labels=LABELS)
    order = np.random.default_rng(1).permutation(500)
    assert fingerprint_of(SCORES[order], labels=LABELS[order]) == whole
    assert fingerprint_of(SCORES, labels=1 - LABELS) == whole
    single = SCORES.astype(np.float32)
    assert fingerprint_of(single, labels=LABELS) == fingerprint_of(
        single.astype(np.float64), labels=LABELS
    )
    assert (
        fingerprint_of([0.0, 1.0]) == fingerprint_of([-0.0, 1.0]) == fingerprint_of([False, True])
    )


def test_the_last_digits_of_a_solver_hardly_ever_change_a_fingerprint() -> None:
    """Noise of 1e-12 moves a score across a step of 1e-6 once in about 10^6 rows."""
    changed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scores = rng.uniform(size=500)
        noise = 1.0 + 1e-12 * rng.standard_normal(500)
        labels = (rng.uniform(size=500) < scores).astype(np.uint8)
        before = fingerprint_of(scores, labels=labels)
        changed += fingerprint_of(scores * noise, labels=labels) != before
    assert changed <= 2


def test_a_copy_with_fewer_digits_has_another_fingerprint() -> None:
    """On purpose: with fewer digits, data sets of values close together would share a draw."""
    whole = fingerprint_of(SCORES, labels=LABELS)
    assert fingerprint_of([float(f"{score:.12g}") for score in SCORES], labels=LABELS) == whole
    assert fingerprint_of(SCORES.astype(np.float32), labels=LABELS) != whole
    assert fingerprint_of(SCORES.round(4), labels=LABELS) != whole


NARROW = {
    "probabilities": lambda rng: rng.uniform(0.981, 0.988, size=50),
    "times of one day": lambda rng: 1_700_000_000 + 86_400 * rng.uniform(size=50),
    "seconds of one day": lambda rng: 1_700_000_000 + rng.integers(0, 86_400, size=50),
    "years": lambda rng: rng.integers(2000, 2024, size=50),
}


@pytest.mark.parametrize("kind", NARROW)
def test_data_sets_of_values_close_together_have_fingerprints_of_their_own(kind: str) -> None:
    """Rounded to 6 binary digits, the values of a data set would all be equal."""
    labels = np.arange(50) < 25
    scores, features = set(), set()
    for seed in range(200):
        values = NARROW[kind](np.random.default_rng(seed))
        scores.add(fingerprint_of(values, labels=labels))
        features.add(sums_of_features(values[:, None], labels).fingerprint)
    assert len(features) == 200
    assert len(scores) == 200


def test_every_digit_of_a_feature_counts_and_only_its_value() -> None:
    X = np.random.default_rng(3).normal(size=(40, 2))
    codes = np.arange(40) % 2
    whole = sums_of_features(X, codes).fingerprint
    moved = X.copy()
    moved[7, 1] = np.nextafter(moved[7, 1], 1.0)
    assert sums_of_features(moved, codes).fingerprint != whole
    single = X.astype(np.float32)
    assert (
        sums_of_features(single, codes).fingerprint
        == sums_of_features(single.astype(np.float64), codes).fingerprint
    )
    years = np.arange(1990, 2030)[:, None]
    assert (
        sums_of_features(years, codes).fingerprint
        == sums_of_features(years.astype(float), codes).fingerprint
    )


def test_each_class_of_several_counts() -> None:
    X = np.ones((30, 1))
    found = {
        sums_of_features(X, np.repeat([0, 1, 2], [first, 10, 20 - first])).fingerprint
        for first in range(1, 20)
    }
    assert len(found) == 19


def test_a_fingerprint_tells_other_rows_apart() -> None:
    """Sums of plain bits would not: scores that are few halvings from 1 have bits in few places."""
    levels = np.array([0.25, 0.5, 0.75])
    found, of_features = set(), set()
    counts = [(first, second) for first in range(60) for second in range(60)]
    labels = np.zeros(120, dtype=np.uint8)
    for first, second in counts:
        rows = np.repeat(levels, [first, second, 120 - first - second])
        found.add(fingerprint_of(rows, labels=labels))
        of_features.add(sums_of_features(rows[:, None], labels).fingerprint)
    assert len(found) == len(of_features) == len(counts)
    moved = SCORES.copy()
    moved[7] *= 0.95
    others = [LABELS.copy() for _ in range(500)]
    for place, labels in enumerate(others):
        labels[place] = 1 - labels[place]
    prints = {fingerprint_of(SCORES, labels=labels) for labels in (LABELS, *others)}
    assert len({*prints, fingerprint_of(moved, labels=LABELS)}) == 502


@given(cuts=st.lists(st.integers(0, 500), max_size=4), seed=st.integers(0, 5))
def test_sums_of_parts_add_up_in_any_order(cuts: list[int], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(500)
    parts = np.split(order, sorted(cuts))
    sums = [RowSums.of([SCORES[part]], ("no", "yes"), LABELS[part]) for part in parts]
    total = sum(sums[1:], sums[0])
    assert total.fingerprint == fingerprint_of(SCORES, labels=LABELS)


def test_every_source_of_rows_has_the_fingerprint_of_the_rows_in_memory(tmp_path) -> None:
    expected = read_rows(SCORES, LABELS).fingerprint()
    table = pa.table({"p": SCORES, "y": np.where(LABELS == 1, "yes", "no")})
    table.to_pandas().to_csv(tmp_path / "rows.csv", index=False)
    names = {"score": "p", "label": "y"}
    for source in (
        table,
        table.to_pandas(),
        pl.from_arrow(table).lazy(),
        str(tmp_path / "rows.csv"),
    ):
        assert rows_of(scored(source, **names)).fingerprint() == expected
    halves = [table.slice(250), table.slice(0, 250)]
    assert rows_of(scored(pa.concat_tables(halves), **names)).fingerprint() == expected


def test_a_key_depends_on_seed_purpose_settings_and_rows() -> None:
    keys = {
        RandomSource.of(seed, purpose, *settings, rows=rows).key
        for seed in (0, 1)
        for purpose in ("order", "kept")
        for settings in ((), (1,), (2,))
        for rows in (0, 1)
    }
    assert len(keys) == 24
    assert RandomSource.of(None, "order") != RandomSource.of(None, "order")
    parts = [
        RandomSource(key).for_purpose(purpose).key
        for key in (1, 2)
        for purpose in ("folds", "bets")
    ]
    assert len({1, 2, *parts}) == 6
    assert seed_number(np.random.default_rng(4)) == seed_number(np.random.default_rng(4))


def test_numbers_of_one_key_are_uniform_and_those_of_another_unrelated() -> None:
    places = np.arange(20_000, dtype=np.uint64)
    one = RandomSource.of(0, "kept", rows=fingerprint_of(SCORES)).uniforms(places)
    other = RandomSource.of(0, "kept", rows=fingerprint_of(SCORES + 0.1)).uniforms(places)
    assert stats.kstest(one, "uniform").pvalue > 0.01
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.03
    data = np.random.default_rng(0).random(20_000)  # what users draw their data with
    assert abs(np.corrcoef(one, data)[0, 1]) < 0.03
    order = RandomSource(3).order(1_000)
    assert sorted(order.tolist()) == list(range(1_000))
    assert abs(np.corrcoef(order, np.arange(1_000))[0, 1]) < 0.1


def test_places_in_an_order_are_uniform_over_keys() -> None:
    """Of three rows each of the six orders comes up as often as the others."""
    orders = [
        tuple(RandomSource.of(0, "order", rows=rows).order(3).tolist()) for rows in range(3_000)
    ]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert counts.size == 6
    assert stats.chisquare(counts).pvalue > 0.001


def test_features_of_every_kind_have_a_fingerprint() -> None:
    X = np.random.default_rng(3).normal(size=(40, 3))
    codes = np.arange(40) % 2 == 0
    order = np.random.default_rng(4).permutation(40)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.where(codes, "x", "y"))
    kinds = [X, sparse.csr_matrix(X * (X > 0)), [[value] for value in X[:, 0]], frame]
    for features in kinds:
        whole = sums_of_features(features, codes).fingerprint
        if isinstance(features, list):
            moved = [features[place] for place in order]
        else:
            moved = features.iloc[order] if hasattr(features, "iloc") else features[order]
        assert sums_of_features(moved, codes[order]).fingerprint == whole
        assert sums_of_features(features, codes | (np.arange(40) == 1)).fingerprint != whole
    assert (
        sums_of_features(frame, codes).fingerprint
        == sums_of_features(pl.from_pandas(frame), codes).fingerprint
    )
    assert (
        sums_of_features(frame, codes).fingerprint
        != sums_of_features(frame.assign(kind="x"), codes).fingerprint
    )
    texts = text_keys(["a", "b", "a"])
    assert texts[0] == texts[2] != texts[1]


def test_a_few_values_are_few_in_every_source(tmp_path) -> None:
    """Many data sets then share a fingerprint; one of 2 values among 2,000 rows has enough."""
    labels = np.arange(2_000) % 2
    few = {
        "one value": (np.full(2_000, 0.3), labels, True),
        "one value, up to its last digits": (0.3 + 1e-9 * SCORES.repeat(4), labels, True),
        "two values": (np.where(np.arange(2_000) % 3, 0.3, 0.4), labels, False),
        "a rare second value": (np.where(np.arange(2_000) % 1_500, 0.3, 0.4), labels, True),
        "many values": (SCORES.repeat(4), labels, False),
    }
    for name, (scores, codes, expected) in few.items():
        assert read_rows(scores, codes).row_sums().has_few_values is expected, name
        table = pa.table({"p": scores, "y": codes})
        table.to_pandas().to_csv(tmp_path / "rows.csv", index=False)
        for source in (table, pl.from_arrow(table).lazy(), str(tmp_path / "rows.csv")):
            rows = rows_of(scored(source, score="p", label="y"))
            assert rows.row_sums().has_few_values is expected, name
        parts = [
            RowSums.of([scores[half]], (0, 1), codes[half])
            for half in np.split(np.arange(2_000), 2)
        ]
        assert sum(parts[1:], parts[0]).has_few_values is expected, name


def test_a_guarantee_of_drawn_rows_with_few_values_is_also_over_the_seed() -> None:
    labels = np.arange(2_000) % 3 == 0
    said = "90% confidence over rows and seed,"
    for calibrator in (Calibrator(), BinningCalibrator(pilot=0.1)):
        fitted = calibrator.fit(np.full(2_000, 0.3), labels)
        assert said in fitted.guarantee_.sentence
        assert "few different values" in fitted.guarantee_.details
        again = type(fitted).from_dict(fitted.to_dict())
        assert again.guarantee_.sentence == fitted.guarantee_.sentence
        other = clone(calibrator).fit(np.linspace(0.2, 0.4, 2_000), labels)
        assert "90% confidence, " in other.guarantee_.sentence
    undrawn = BinningCalibrator(1, pilot=None).fit(np.full(2_000, 0.3), labels)
    assert "90% confidence, " in undrawn.guarantee_.sentence
    grouped = BinningCalibrator(1).fit(
        np.full(2_000, 0.3), labels, groups=np.arange(2_000) // 2, max_group_size=2
    )
    assert said in grouped.guarantee_.sentence


def test_a_classifier_of_rows_with_few_values_says_that_too() -> None:
    labels = np.arange(800) % 2 == 0
    X = np.ones((800, 2))
    model = DummyClassifier(strategy="prior")
    for classifier in (
        CalibratedClassifier(model),
        CalibratedClassifier(model, BinningCalibrator(1, pilot=None)),
    ):
        fitted = classifier.fit(X, labels)
        said = fitted.guarantee_.sentence
        assert "90% confidence over rows and seed," in said
        assert pickle.loads(pickle.dumps(fitted)).guarantee_.sentence == said
        varied = clone(classifier).fit(X * np.arange(800)[:, None], labels)
        assert "90% confidence, " in varied.guarantee_.sentence
    several = CalibratedClassifier(model).fit(X, np.arange(800) % 3)
    assert "90% confidence over rows and seed," in several.guarantee_.sentence


def test_the_same_rows_give_the_same_answer_and_results_record_their_seed() -> None:
    models = {"one": SCORES, "other": SCORES**2}
    found = compare_models(LABELS, models)
    assert str(found) == str(compare_models(LABELS, models))
    assert found.seed == 0
    assert found.to_dict()["seed"] == 0
    assert any("seed 0" in text for text in found.notes)
    fresh = compare_models(LABELS, models, random_state=None)
    assert fresh.to_dict() == compare_models(LABELS, models, random_state=fresh.seed).to_dict()
    weights = {"importance_weight": SCORES, "weight_bound": 2.0}
    kept = threshold(LABELS, SCORES, recall=0.8, random_state=None, **weights)
    assert kept == threshold(LABELS, SCORES, recall=0.8, random_state=kept.seed, **weights)
    table = compare_calibrators(LABELS, SCORES, [BinningCalibrator(n_bins=2)], random_state=None)
    again = compare_calibrators(
        LABELS, SCORES, [BinningCalibrator(n_bins=2)], random_state=table.seed
    )
    assert table.log_loss.tolist() == again.log_loss.tolist()
    assert f"seed {table.seed}" in table.details


def test_other_rows_of_one_size_have_another_draw_although_the_seed_is_fixed() -> None:
    weights = np.full(500, 0.5)
    places = np.arange(500)
    kept = []
    for labels in (LABELS, np.roll(LABELS, 1)):
        rows = read_rows(SCORES, labels, importance_weight=weights, groups=places).collect()
        kept.append(rows.chosen(rows.draw(0.5, 0)))
    assert 0.3 < (kept[0] == kept[1]).mean() < 0.7


def test_a_stream_has_a_seed_of_its_own_and_goes_on_with_it() -> None:
    groups = np.arange(500) // 5
    streams = [
        OnlineCalibrator(Partition.fixed_width(2)).fit(SCORES, LABELS, groups=groups)
        for _ in range(6)
    ]
    assert len({stream._stream.seed for stream in streams}) == 6
    assert len({str(stream.tally_) for stream in streams}) > 1
    one = streams[0]
    again = OnlineCalibrator.from_dict(one.to_dict())
    assert again._stream.seed == one._stream.seed
    more = np.random.default_rng(9).uniform(size=500)
    named = {"groups": 1_000 + groups}
    assert (
        again.partial_fit(more, LABELS, **named).tally_
        == one.partial_fit(more, LABELS, **named).tally_
    )


def test_the_last_rows_of_a_file_sorted_by_label_bring_a_warning() -> None:
    X = SCORES[:, None]
    order = np.argsort(LABELS, kind="stable")
    bins = BinningCalibrator(n_bins=1)
    with pytest.warns(CalibrantWarning, match="sorted by label"):
        CalibratedClassifier(LogisticRegression(), bins, holdout="last").fit(
            X[order], LABELS[order]
        )
    CalibratedClassifier(LogisticRegression(), bins, holdout="last").fit(X, LABELS)
    CalibratedClassifier(LogisticRegression(), bins).fit(X[order], LABELS[order])


def test_draws_for_one_fit_are_unrelated() -> None:
    """Rows kept by weight, the order of bets and rounded weights have keys of their own."""
    rows = read_rows(SCORES, LABELS).collect()
    purposes = (
        "kept by weight",
        "order of bets",
        "rounded weights",
        "set aside",
    )
    assert len(
        {RandomSource.of(0, purpose, rows=rows.fingerprint()).key for purpose in purposes}
    ) == len(purposes)
    weighted = Calibrator(n_bins=2).fit(SCORES, LABELS, importance_weight=SCORES, weight_bound=1.0)
    assert weighted.guarantee_.is_proved


_SCORES_OF_A_SOLVER = """
import numpy as np
from sklearn.linear_model import LogisticRegression
from calibrant.params.random import fingerprint_of

for seed in range(10):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1_000, 20))
    y = (rng.uniform(size=1_000) < 1 / (1 + np.exp(-X[:, 0]))).astype(np.uint8)
    scores = LogisticRegression().fit(X[:500], y[:500]).predict_proba(X)[:, 1]
    print(fingerprint_of(scores, labels=y), scores.tobytes().hex())
"""


@pytest.mark.slow
def test_scores_of_another_processor_have_the_same_fingerprint() -> None:
    """OpenBLAS has kernels for each kind of processor, whose sums differ in their last digits."""
    found = []
    for kind in ({}, {"OPENBLAS_CORETYPE": "Prescott"}):
        command = [sys.executable, "-c", _SCORES_OF_A_SOLVER]
        said = subprocess.run(
            command, env={**os.environ, **kind}, capture_output=True, text=True, check=True
        )
        found.append([line.split() for line in said.stdout.splitlines()])
    own, other = found
    if own == other:
        pytest.skip("numpy has no OpenBLAS with kernels for several processors here")
    assert [line[0] for line in own] == [line[0] for line in other]
    assert any(line[1] != old[1] for line, old in zip(own, other, strict=True))
