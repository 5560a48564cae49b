"""Beta calibration: numbers of betacal, and where betacal leaves the family of increasing curves."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import BetaCalibrator

POINTS = [0.07, 0.3, 0.5, 0.62, 0.9]
# betacal 1.1.0 at POINTS. As shipped it stops its solver at a tolerance of 1e-4, which leaves
# errors of 1e-5 to 1e-4; these are its numbers with the tolerance set to 1e-12.
BETACAL = {
    ("plain", "abm"): [
        0.008674308616268745,
        0.12558825338661003,
        0.31406878762392665,
        0.451752797628883,
        0.8127066520902647,
    ],
    ("plain", "ab"): [
        0.006029344803112883,
        0.20934753966956218,
        0.5,
        0.6367941622076569,
        0.8243976661321661,
    ],
    ("plain", "am"): [
        0.020621828478152422,
        0.13487418176166135,
        0.292495451171616,
        0.4207181047535906,
        0.8383097064055057,
    ],
    ("ties", "abm"): [
        0.010922931898003753,
        0.12493116835714732,
        0.3056001559982881,
        0.4454183978746926,
        0.8387017440889027,
    ],
    # not ("ties", "ab"): there the b of betacal is negative
    ("ties", "am"): [
        0.01781244619992643,
        0.12918970772880378,
        0.29228032166274215,
        0.42731766016056144,
        0.854534392116014,
    ],
}


def data(kind="plain"):
    rng = np.random.default_rng(20)
    scores = rng.uniform(size=500)
    y = (rng.uniform(size=500) < scores**2).astype(int)
    return (scores if kind == "plain" else np.round(scores, 1)), y


@pytest.mark.parametrize(("kind", "parameters"), BETACAL)
def test_numbers_of_betacal(kind, parameters):
    # rounded scores hold 0 and 1, which betacal was given as 0.05 and 0.95: half-way to the nearest
    # other score
    found = BetaCalibrator(parameters=parameters).fit(*data(kind)).predict(POINTS)
    np.testing.assert_allclose(found, BETACAL[kind, parameters], rtol=0, atol=1e-6)


@pytest.mark.parametrize("parameters", ["abm", "ab", "am"])
def test_scores_that_point_the_wrong_way_do_not_turn_the_curve_around(parameters):
    # betacal refits without the first negative coefficient only, and not at all for "ab" and "am":
    # on such data its curves fall (a = 0, b = -2.0; a = -0.74, b = -1.22; a = b = -0.97), against
    # a, b >= 0 in Kull et al., section 3
    scores, _ = data()
    down = (np.random.default_rng(21).uniform(size=500) < 1 - scores).astype(int)
    calibrator = BetaCalibrator(parameters=parameters).fit(scores, down)
    assert (calibrator.a_, calibrator.b_) == (0.0, 0.0)
    expected = 0.5 if parameters == "ab" else down.mean()
    np.testing.assert_allclose(calibrator.predict(POINTS), expected, atol=1e-9)


def test_boundary_curve_is_the_best_of_the_family():
    rng = np.random.default_rng(4)
    scores = rng.uniform(size=3000)
    rate = np.where(scores < 0.05, 0.9, 0.2 + 0.7 * scores)  # the free optimum has a < 0
    y = (rng.uniform(size=3000) < rate).astype(int)
    best = BetaCalibrator().fit(scores, y)
    assert best.a_ == 0.0 < best.b_

    def loss(a, b, c):
        z = a * np.log(scores) - b * np.log1p(-scores) + c
        return (np.logaddexp(0, z) - y * z).mean()

    reached = loss(best.a_, best.b_, best.c_)
    for da, db, dc in rng.normal(scale=0.05, size=(300, 3)):
        assert reached <= loss(abs(da), max(best.b_ + db, 0), best.c_ + dc) + 1e-12


@pytest.mark.parametrize("parameters", ["abm", "ab", "am"])
@pytest.mark.parametrize(
    ("scores", "y"),
    [
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]),
        ([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1]),
        ([0.3, 0.3, 0.3], [0, 1, 1]),
        ([0.1, 0.5, 0.9], [1, 1, 1]),
        ([0.1, 0.5, 0.9], [0, 0, 0]),
        ([1e-320, 1e-300, 0.5, 1.0], [0, 1, 0, 1]),
    ],
)
def test_hard_data_give_finite_increasing_curves_without_warnings(scores, y, parameters):
    calibrator = BetaCalibrator(parameters=parameters).fit(scores, y, classes=(0, 1))
    assert np.isfinite([calibrator.a_, calibrator.b_, calibrator.c_]).all()
    assert calibrator.a_ >= 0 <= calibrator.b_
    assert (np.diff(calibrator.predict(np.linspace(0, 1, 201))) >= 0).all()


def test_rows_at_0_and_1_do_not_bend_the_curve():
    """Overconfident scores, rounded, of which 30 % are exactly 0 or 1."""
    rng = np.random.default_rng(0)
    z = 2.0 * rng.normal(size=4_000)
    y = rng.uniform(size=4_000) < expit(z)
    scores = expit(2.5 * z).round(2)
    assert 0.25 < np.isin(scores, (0.0, 1.0)).mean() < 0.35
    points = np.array([0.05, 0.2, 0.5, 0.8, 0.95])
    found = BetaCalibrator().fit(scores, y).predict(points)
    np.testing.assert_allclose(found, expit(logit(points) / 2.5), atol=0.06)


@pytest.mark.parametrize("parameters", ["abm", "ab", "am"])
def test_rows_at_0_and_1_count_as_half_way_to_the_nearest_other_score(parameters):
    scores, y = data("ties")
    found = BetaCalibrator(parameters=parameters).fit(scores, y)
    assert (found.low_, found.high_) == (0.05, 0.95)
    moved = BetaCalibrator(parameters=parameters).fit(np.clip(scores, 0.05, 0.95), y)
    np.testing.assert_array_equal(found.predict([0.0, 0.3, 1.0]), moved.predict([0.05, 0.3, 0.95]))
    again = BetaCalibrator.from_dict(found.to_dict())
    np.testing.assert_array_equal(again.predict(scores), found.predict(scores))


def test_an_end_without_rows_stays_where_it_is():
    scores = np.array([0.2, 0.4, 0.6, 1.0])
    found = BetaCalibrator().fit(scores, [0, 1, 0, 1])
    assert (found.low_, found.high_) == (2.0**-52, 0.8)


def test_ends_that_are_saved_must_be_in_order():
    state = BetaCalibrator().fit(*data("ties")).to_dict()
    state["state"]["low"] = 0.99
    with pytest.raises(ValueError, match=r"low must be at most high, 0\.95"):
        BetaCalibrator.from_dict(state)


def test_ab_keeps_one_half():
    assert BetaCalibrator(parameters="ab").fit(*data()).predict([0.5]) == pytest.approx(
        [0.5], abs=1e-12
    )


def test_scores_that_are_no_probabilities_are_refused():
    with pytest.raises(ValueError, match=r"scores must be probabilities in .* use PlattCalibrator"):
        BetaCalibrator().fit([0.2, 1.2, 0.7], [0, 1, 1])


def test_says_why_there_is_no_guarantee():
    assert "Theorem 3" in BetaCalibrator().fit(*data()).guarantee_.details
