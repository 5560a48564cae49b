"""Venn prediction with bins: its pair, and the guarantee it shares with histogram binning."""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest

from calibrant import BinningCalibrator
from calibrant.calibrators import VennBinningCalibrator


def data(n=2000):
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < scores**2).astype(int)


def test_pair_is_the_rate_with_one_more_row_of_either_label():
    scores, y = data()
    calibrator = VennBinningCalibrator(n_bins=5).fit(scores, y)
    tally = calibrator.tally_
    region = calibrator.partition_.membership(scores)
    expected = np.column_stack([tally.positives, tally.positives + 1]) / (tally.counts + 1)[:, None]
    found = calibrator.predict_multiprobability(scores)
    np.testing.assert_array_equal(found[region >= 0], expected[region[region >= 0]])
    np.testing.assert_array_equal(found[region < 0], [[0.0, 1.0]] * 4)


def test_log_loss_gives_laplaces_rule():
    scores, y = data()
    calibrator = VennBinningCalibrator(n_bins=5).fit(scores, y)
    tally = calibrator.tally_
    expected = (tally.positives + 1) / (tally.counts + 2)
    np.testing.assert_allclose(calibrator.guarantee_.value, expected, rtol=1e-14)


@pytest.mark.parametrize(
    "options", [{}, {"partition": "uniform"}, {"pilot": 0.3, "random_state": 1}]
)
@pytest.mark.parametrize("loss", ["log", "brier"])
def test_interval_is_that_of_binning_and_epsilon_is_measured_from_its_own_value(loss, options):
    scores, y = data()
    venn = VennBinningCalibrator(n_bins=6, loss=loss, **options).fit(scores, y)
    plain = BinningCalibrator(n_bins=6, **options).fit(scores, y)
    np.testing.assert_array_equal(venn.predict_interval(scores), plain.predict_interval(scores))
    np.testing.assert_array_equal(venn.predict_set(scores), plain.predict_set(scores))
    guarantee = venn.guarantee_
    radius = np.maximum(guarantee.upper - guarantee.value, guarantee.value - guarantee.lower)
    assert guarantee.is_proved
    assert guarantee.epsilon == radius.max()
    assert guarantee.epsilon_for(0.9) <= guarantee.epsilon


@pytest.mark.broad
@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrantWarning")  # scores beyond those seen
@pytest.mark.parametrize("partition", ["quantile", "uniform"])
def test_probability_of_the_true_label_is_perfectly_calibrated_by_enumeration(partition):
    made = VennBinningCalibrator(2, partition=partition)
    given = {"classes": (0, 1), "score_range": (0, 2) if partition == "uniform" else None}
    # every sample of three rows with three score values; with an edge value seen once in the bin to
    # its right, E[Y | p_Y] was off by up to .06
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
            pairs = made.fit(scores, y, **given).predict_multiprobability([*mass])
            for s, pair in zip(mass, pairs, strict=True):
                for label, share in ((0, 1 - rate[s]), (1, rate[s])):
                    p = round(pair[label], 12)
                    total[p] += chance * mass[s] * share
                    hits[p] += label * chance * mass[s] * share
    assert len(total) > 4
    for p in total:
        assert hits[p] / total[p] == pytest.approx(p, abs=1e-9)


def test_an_edge_seen_once_says_nothing_of_its_own_rate():
    scores = np.arange(9.0)
    calibrator = VennBinningCalibrator(2).fit(scores, [0] * 9, classes=(0, 1))
    pairs = calibrator.predict_multiprobability([4.0, 4.5, 3.5])
    np.testing.assert_allclose(pairs, [[0, 1], [0, 1 / 5], [0, 1 / 5]])


@pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen
def test_empty_bin_predicts_one_half():
    calibrator = VennBinningCalibrator(n_bins=2, partition="uniform").fit(
        [0.1, 0.2, 0.3], [0, 1, 0]
    )
    assert calibrator.predict([0.9]) == 0.5
    np.testing.assert_array_equal(calibrator.predict_multiprobability([0.9]), [[0.0, 1.0]])


def test_segments_have_bins_of_their_own():
    scores, y = data()
    group = np.where(np.arange(scores.size) % 2, "a", "b")
    calibrator = VennBinningCalibrator(n_bins=3).fit(scores, y, segments=group)
    assert calibrator.predict_multiprobability(scores, segments=group).shape == (scores.size, 2)
    assert calibrator.tally_.n_regions == 6


def test_a_tied_edge_and_the_rest_of_its_bin_have_numbers_of_their_own():
    rng = np.random.default_rng(3)
    scores = np.repeat(rng.uniform(size=300), 2)  # each value twice, so that every edge is tied
    y = (rng.uniform(size=600) < scores).astype(int)
    model = VennBinningCalibrator(4).fit(scores, y, sample_weight=np.ones(600))
    edges = model.partition_.edges
    assert model.tally_.absorbed is not None
    assert edges.size == 3
    for edge, after in zip(edges, [*edges[1:], np.inf], strict=True):
        for rows, score in (
            (scores == edge, edge),
            ((scores > edge) & (scores < after), np.nextafter(edge, 1)),
        ):
            n = np.count_nonzero(rows)
            k = y[rows].sum()
            expected = [k / (n + 1), (k + 1) / (n + 1)]
            np.testing.assert_allclose(
                model.predict_multiprobability([score])[0], expected, rtol=1e-12
            )
