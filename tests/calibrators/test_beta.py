"""Beta calibration: numbers of betacal, and where betacal leaves the family of increasing curves."""

import numpy as np
import pytest

from calibrant import BetaCalibrator
from calibrant.errors import CalibrantWarning

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
        0.002536116459192788,
        0.11885192412847952,
        0.35406432226844675,
        0.49845038945053227,
        0.7416038665921499,
    ],
    ("ties", "ab"): [
        0.00688043285020753,
        0.21504512490527872,
        0.5,
        0.63354624846727,
        0.8191078812764844,
    ],
    ("ties", "am"): [
        0.11420696221984605,
        0.242859469569226,
        0.33334395912121256,
        0.3925547041665618,
        0.6125872835102351,
    ],
}

AT_THE_EDGES = pytest.mark.filterwarnings("ignore:some scores are exactly")


def data(kind="plain"):
    rng = np.random.default_rng(20)
    scores = rng.uniform(size=500)
    y = (rng.uniform(size=500) < scores**2).astype(int)
    return (scores if kind == "plain" else np.round(scores, 1)), y


@AT_THE_EDGES
@pytest.mark.parametrize(("kind", "parameters"), BETACAL)
def test_numbers_of_betacal(kind, parameters):
    # rounded scores hold 0 and 1, which both clip at 2.2e-16
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
@AT_THE_EDGES
def test_hard_data_give_finite_increasing_curves_without_warnings(scores, y, parameters):
    calibrator = BetaCalibrator(parameters=parameters).fit(scores, y, classes=(0, 1))
    assert np.isfinite([calibrator.a_, calibrator.b_, calibrator.c_]).all()
    assert calibrator.a_ >= 0 <= calibrator.b_
    assert (np.diff(calibrator.predict(np.linspace(0, 1, 201))) >= 0).all()


@pytest.mark.parametrize(
    ("scores", "edges"), [([0.0, 0.4, 0.6], "0"), ([0.2, 1.0], "1"), ([0.0, 0.5, 1.0], "0 or 1")]
)
def test_scores_of_0_and_1_bring_a_warning(scores, edges):
    """A few of them change the curve everywhere."""
    with pytest.warns(CalibrantWarning, match=f"some scores are exactly {edges}, where") as found:
        BetaCalibrator().fit(scores * 20, np.arange(20 * len(scores)) % 2)
    assert len(found) == 1
    inside = np.clip(scores * 20, 0.001, 0.999)
    BetaCalibrator().fit(inside, np.arange(20 * len(scores)) % 2)


def test_ab_keeps_one_half():
    assert BetaCalibrator(parameters="ab").fit(*data()).predict([0.5]) == pytest.approx(
        [0.5], abs=1e-12
    )


def test_scores_that_are_no_probabilities_are_refused():
    with pytest.raises(ValueError, match=r"scores must be probabilities in .* use PlattCalibrator"):
        BetaCalibrator().fit([0.2, 1.2, 0.7], [0, 1, 1])


def test_says_why_there_is_no_guarantee():
    assert "Theorem 3" in str(BetaCalibrator().fit(*data()).guarantee_)
