"""Venn prediction with bins: of p_0 and p_1, the one of the true label is calibrated."""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from calibrant import BinningCalibrator, CalibratedClassifier, VennAbersCalibrator


def data(n=2000):
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < scores**2).astype(int)


def test_pair_is_the_rate_with_one_more_row_of_either_label():
    scores, y = data()
    calibrator = BinningCalibrator(n_bins=5).fit(scores, y)
    tally = calibrator.tally_
    region = calibrator.partition_.membership(scores)
    expected = np.column_stack([tally.positives, tally.positives + 1]) / (tally.counts + 1)[:, None]
    found = calibrator.predict_multiprobability(scores)
    np.testing.assert_array_equal(found[region >= 0], expected[region[region >= 0]])
    assert np.count_nonzero(region < 0) == 4  # the edges, of which nothing is claimed


def _edges(fitted):
    return fitted.partition_.edges[~fitted.partition_.is_atom]


@pytest.mark.broad
@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrantWarning")  # scores beyond those seen
@pytest.mark.parametrize("partition", ["quantile", "uniform"])
def test_probability_of_the_true_label_is_perfectly_calibrated_by_enumeration(partition):
    made = BinningCalibrator(2, partition=partition)
    given = {"classes": (0, 1), "score_range": (0, 2) if partition == "uniform" else None}
    # every sample of three rows with three score values, and every future score that is no edge
    mass = {0.0: 0.2, 1.0: 0.5, 2.0: 0.3}
    rate = {0.0: 0.9, 1.0: 0.2, 2.0: 0.6}
    total = defaultdict(float)
    hits = defaultdict(float)
    for scores in product(mass, repeat=3):
        for y in product((0, 1), repeat=3):
            chance = np.prod(
                [
                    mass[s] * (rate[s] if label else 1 - rate[s])
                    for s, label in zip(scores, y, strict=True)
                ]
            )
            fitted = made.fit(scores, y, **given)
            inside = [s for s in mass if partition == "uniform" or s not in _edges(fitted)]
            pairs = fitted.predict_multiprobability(inside) if inside else []
            for s, pair in zip(inside, pairs, strict=True):
                for label, share in ((0, 1 - rate[s]), (1, rate[s])):
                    p = round(pair[label], 12)
                    total[p] += chance * mass[s] * share
                    hits[p] += label * chance * mass[s] * share
    assert len(total) > 4
    for p in total:
        assert hits[p] / total[p] == pytest.approx(p, abs=1e-9)


def test_the_wrong_one_of_the_two_is_not_calibrated():
    """In one bin of n rows with rate 1/2, E[Y | p_{1 - Y}] is far from p_{1 - Y}."""
    n = 4
    total = defaultdict(float)
    hits = defaultdict(float)
    for y in product((0, 1), repeat=n):
        fitted = BinningCalibrator(1, partition="uniform").fit([0.5] * n, y, classes=(0, 1))
        pair = fitted.predict_multiprobability([0.5])[0]
        for label in (0, 1):
            p = round(pair[1 - label], 12)
            total[p] += 0.5 ** (n + 1)
            hits[p] += label * 0.5 ** (n + 1)
    assert max(abs(hits[p] / total[p] - p) for p in total) > 0.3


def test_segments_have_bins_of_their_own():
    scores, y = data()
    group = np.where(np.arange(scores.size) % 2, "a", "b")
    calibrator = BinningCalibrator(n_bins=3).fit(scores, y, segments=group)
    assert calibrator.predict_multiprobability(scores, segments=group).shape == (scores.size, 2)
    assert calibrator.tally_.n_regions == 6


def test_a_bin_that_absorbs_a_tied_edge_is_counted_without_it():
    rng = np.random.default_rng(3)
    scores = np.repeat(rng.uniform(size=300), 2)  # each value twice, so that every edge is tied
    y = (rng.uniform(size=600) < scores).astype(int)
    model = BinningCalibrator(4).fit(scores, y, sample_weight=np.ones(600))
    edges = model.partition_.edges
    assert model.tally_.absorbed is not None
    assert edges.size == 3
    for edge, after in zip(edges, [*edges[1:], np.inf], strict=True):
        rows = (scores > edge) & (scores < after)
        n = np.count_nonzero(rows)
        k = y[rows].sum()
        found = model.predict_multiprobability([np.nextafter(edge, 1)])[0]
        np.testing.assert_allclose(found, [k / (n + 1), (k + 1) / (n + 1)], rtol=1e-12)


@pytest.mark.parametrize(
    "unlike",
    [
        {"groups": np.arange(2000) // 2, "max_group_size": 2},
        {"importance_weight": np.full(2000, 0.5), "weight_bound": 1.0},
    ],
)
def test_rows_that_are_not_exchangeable_are_refused(unlike):
    calibrator = BinningCalibrator(2).fit(*data(), **unlike)
    with pytest.raises(ValueError, match="without groups and importance weights"):
        calibrator.predict_multiprobability([0.5])


def test_the_classifier_passes_it_on():
    X, y = make_classification(n_samples=600, flip_y=0.2, random_state=0)
    model = CalibratedClassifier(LogisticRegression(), BinningCalibrator(4)).fit(X, y)
    scores = model.estimator_.predict_proba(X)[:, 1]
    expected = model.calibrator_.predict_multiprobability(scores)
    np.testing.assert_array_equal(model.predict_multiprobability(X), expected)


def test_out_of_fold_scores_take_the_claim_of_venn_abers_away():
    X, y = make_classification(n_samples=600, flip_y=0.2, random_state=0)
    held_out = CalibratedClassifier(LogisticRegression(), VennAbersCalibrator()).fit(X, y)
    crossed = CalibratedClassifier(LogisticRegression(), VennAbersCalibrator(), cv=3).fit(X, y)
    assert "perfectly calibrated" in held_out.guarantee_.details
    assert "perfectly calibrated" not in crossed.guarantee_.details
    assert "models fitted on parts of the data" in crossed.guarantee_.sentence
