"""Venn-Abers, against brute force, a worked example, and numbers of the venn-abers package 1.5.4."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from calibrant import VennAbersCalibrator
from calibrant.calibrators import venn_abers
from calibrant.cells.score_counts import ScoreCounts

POINTS = [0.0, 0.07, 0.3, 0.5, 0.62, 0.9, 1.0]
# p0 and p1 of venn_abers 1.5.4, VennAbers.fit and predict_proba, at POINTS
PACKAGE = {
    "plain": [
        (0.0, 0.011764705882352941),
        (0.0, 0.018518518518518517),
        (0.11666666666666667, 0.15384615384615385),
        (0.3333333333333333, 0.345679012345679),
        (0.358974358974359, 0.38461538461538464),
        (0.8333333333333334, 0.8709677419354839),
        (0.9047619047619048, 1.0),
    ],
    "ties": [
        (0.0, 0.014084507042253521),
        (0.0, 0.0196078431372549),
        (0.09090909090909091, 0.1),
        (0.3333333333333333, 0.35294117647058826),
        (0.37254901960784315, 0.5625),
        (0.8490566037735849, 0.8679245283018868),
        (0.88, 0.92),
    ],
}


def reference_data(kind):
    rng = np.random.default_rng(20)
    scores = rng.uniform(size=500)
    y = (rng.uniform(size=500) < scores**2).astype(int)
    return (scores if kind == "plain" else np.round(scores, 1)), y


def brute_force(scores, y, point):
    """Add the point with each label, merge ties, fit."""
    both = []
    for label in (0, 1):
        values, inverse = np.unique(np.append(scores, point), return_inverse=True)
        rows = np.bincount(inverse).astype(float)
        positives = np.bincount(inverse, weights=np.append(y, label))
        fitted = isotonic_regression(positives / rows, sample_weight=rows)
        both.append(fitted[np.searchsorted(values, point)])
    return both


def test_worked_example_exactly():
    calibrator = VennAbersCalibrator().fit([1, 3, 4, 6, 7, 9], [0, 1, 0, 1, 0, 1])
    expected = [[2 / 5, 2 / 3], [2 / 5, 2 / 3], [0, 1 / 2], [1 / 2, 1]]
    np.testing.assert_array_equal(calibrator.predict_multiprobability([6.5, 7, 0, 10]), expected)


@pytest.mark.parametrize("kind", PACKAGE)
def test_numbers_of_the_package(kind):
    found = VennAbersCalibrator().fit(*reference_data(kind)).predict_multiprobability(POINTS)
    np.testing.assert_allclose(found, PACKAGE[kind], rtol=0, atol=1e-12)


@pytest.mark.broad
@pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 1)), min_size=1, max_size=40),
    st.lists(st.integers(-14, 14), min_size=1, max_size=6),
)
def test_equals_two_isotonic_fits_with_the_point_added(rows, halves):
    scores, y = np.array(rows).T
    points = np.array(halves) / 2  # on scores, between them, and beyond all
    found = VennAbersCalibrator().fit(scores, y, classes=(0, 1)).predict_multiprobability(points)
    expected = [brute_force(scores.astype(float), y, point) for point in points]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.broad
@pytest.mark.parametrize("kind", ["plain", "ties", "one label", "separable", "reversed"])
def test_numba_and_python_agree_to_the_last_bit(kind):
    rng = np.random.default_rng(3)
    scores = rng.uniform(size=3000)
    y = (rng.uniform(size=3000) < scores).astype(np.uint8)
    if kind == "ties":
        scores = np.round(scores, 2)
    elif kind == "one label":
        y[:] = 1
    elif kind != "plain":
        y = ((scores > 0.4) == (kind == "separable")).astype(np.uint8)
    rows = ScoreCounts.of(scores, y)
    plain, compiled = (
        venn_abers.multiprobabilities(rows.counts, rows.positives, compiled=compiled)
        for compiled in (False, True)
    )
    for left, right in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen
def test_p0_and_p1_never_fall_and_p0_lies_under_p1():
    scores, y = reference_data("plain")
    p0, p1 = (
        VennAbersCalibrator().fit(scores, y).predict_multiprobability(np.linspace(-1, 2, 3001)).T
    )
    assert (np.diff(p0) >= 0).all()
    assert (np.diff(p1) >= 0).all()
    assert (p0 < p1).all()


def test_huge_weights_are_exact():
    # products of such counts do not fit 64 bits: Python's integers do the work
    scores = [0.1, 0.2, 0.3, 0.4]
    y = [0, 1, 0, 1]
    weight = 2**50
    found = (
        VennAbersCalibrator()
        .fit(scores, y, sample_weight=[weight] * 4)
        .predict_multiprobability([0.25])
    )
    np.testing.assert_allclose(found, [[0.5, 0.5]], rtol=0, atol=1e-12)


@pytest.mark.broad
def test_state_keeps_the_steps_and_not_the_rows():
    rng = np.random.default_rng(5)
    scores = rng.uniform(size=100_000)
    y = rng.uniform(size=100_000) < scores
    calibrator = VennAbersCalibrator().fit(scores, y)
    assert calibrator.cuts_.size < 4000
    assert len(json.dumps(calibrator.to_dict())) < 250_000


@pytest.mark.parametrize(
    ("loss", "merge"),
    [
        ("log", lambda p0, p1: p1 / (1 - p0 + p1)),
        ("brier", lambda p0, p1: p1 + (p0**2 - p1**2) / 2),
    ],
)
def test_one_probability_is_the_one_of_least_regret(loss, merge):
    scores, y = reference_data("plain")
    calibrator = VennAbersCalibrator(loss=loss).fit(scores, y)
    p0, p1 = calibrator.predict_multiprobability(POINTS).T
    np.testing.assert_allclose(calibrator.predict(POINTS), merge(p0, p1), rtol=1e-15)


def test_the_pair_is_never_shown_as_an_interval():
    calibrator = VennAbersCalibrator().fit(*reference_data("plain"))
    assert not hasattr(calibrator, "predict_interval")
    assert calibrator.guarantee_.epsilon is None
    assert not calibrator.guarantee_.is_proved
    assert "[p0, p1] is not a confidence interval" in str(calibrator.guarantee_)
    assert "perfectly calibrated" in calibrator.guarantee_.known


@pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen
def test_one_class():
    calibrator = VennAbersCalibrator().fit([0.1, 0.2, 0.3], [0, 0, 0], classes=(0, 1))
    np.testing.assert_array_equal(
        calibrator.predict_multiprobability([0.2, 0.9]), [[0, 1 / 3], [0, 1]]
    )


@pytest.mark.broad
@pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen
def test_oracle_selector_is_calibrated():
    # E[Y | p_Y] = p_Y: over many draws the mean of Y - p_Y given p_Y is 0; here within four
    # standard errors
    rng = np.random.default_rng(6)
    chosen = []
    outcome = []
    for _ in range(4000):
        scores = rng.uniform(size=9).round(1)
        y = rng.uniform(size=9) < scores
        pair = (
            VennAbersCalibrator()
            .fit(scores[:8], y[:8].astype(int), classes=(0, 1))
            .predict_multiprobability(scores[8:])
        )
        chosen.append(pair[0, int(y[8])])
        outcome.append(int(y[8]))
    chosen = np.array(chosen)
    outcome = np.array(outcome)
    for value in (1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 1.0):
        at = np.isclose(chosen, value)
        assert at.sum() > 50
        spread = np.sqrt(max(value * (1 - value), 1e-12) / at.sum())
        assert abs(outcome[at].mean() - value) <= 4 * spread + 1e-12


def test_numba_is_loaded_only_where_it_pays():
    code = (
        "import sys, numpy as np; from calibrant import VennAbersCalibrator; "
        "VennAbersCalibrator().fit(np.arange(1000.0), np.arange(1000) % 2).predict([5.5]); "
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
