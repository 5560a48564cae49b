"""The impossibility result, run: the injective map's real error stays, and nothing in the sample
says so.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from calibrant import (
    BetaCalibrator,
    BinningCalibrator,
    BlendCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
    audit,
)
from calibrant.adversary import GhostWorld, confront, width_demonstration

SIZES = (100, 1_000, 10_000, 100_000)


@pytest.mark.broad
@pytest.mark.parametrize(
    "calibrator",
    [PlattCalibrator(), BetaCalibrator(), TemperatureCalibrator(), BlendCalibrator()],
    ids=repr,
)
def test_injective_map_stays_wrong_while_looking_right(calibrator) -> None:
    # the world looks as the fitted map says: on coin flips beta and temperature maps may become
    # constants
    rng = np.random.default_rng(7)
    scores = rng.uniform(size=2_000)
    result = confront(calibrator.fit(scores, rng.uniform(size=2_000) < scores), sample_sizes=SIZES)
    assert result.injective[0].all()
    assert (result.real[0] > 0.25).all()
    assert np.isnan(result.claimed[0]).all()
    assert result.shown[0, -1] < 0.01


@pytest.mark.broad
def test_real_error_on_coin_flips_is_one_half_at_every_size() -> None:
    result = confront(PlattCalibrator(), sample_sizes=SIZES)
    assert result.injective[0].all()
    np.testing.assert_allclose(result.real[0], 0.5, atol=0.02)
    assert result.shown[0, -1] < 0.01


@pytest.mark.broad
def test_binning_shrinks_and_keeps_its_guarantee() -> None:
    result = confront(PlattCalibrator(), sample_sizes=SIZES)
    binning = result.methods.index("Binning")
    assert not result.injective[binning].any()
    assert (result.real_largest[binning] <= result.claimed[binning]).all()
    assert (np.diff(result.claimed[binning]) < 0).all()
    assert result.real[binning, -1] < 0.01
    assert result.real[binning, -1] < 0.1 * result.real[binning, 0]


@pytest.mark.broad
def test_fitted_map_meets_the_world_that_it_describes() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=5_000)
    fitted = PlattCalibrator().fit(scores, rng.uniform(size=5_000) < scores**2)
    result = confront(fitted, sample_sizes=SIZES)
    grid = (np.arange(10_000) + 0.5) / 10_000
    expected = np.mean(
        2 * fitted.predict(grid) * (1 - fitted.predict(grid))
    )  # E |Y - h| where P(Y = 1) = h
    assert result.real[0, -1] == pytest.approx(expected, abs=0.03)
    assert result.shown[0, -1] < 0.01


def test_score_determines_the_label_and_samples_do_not_show_it() -> None:
    world = GhostWorld(lambda s: s, seed=3)
    scores, y = world.draw(np.random.default_rng(1), 100_000)
    assert np.array_equal(world.true_rate(scores), y)
    assert np.array_equal(world.draw(np.random.default_rng(1), 100_000)[1], y)
    counts = np.bincount((scores * 50).astype(int))
    hits = np.bincount((scores * 50).astype(int), y)
    middle = (np.arange(50) + 0.5) / 50
    z = (hits - counts * middle) / np.sqrt(counts * middle * (1 - middle))
    assert stats.chi2.sf(z @ z, 50) > 1e-4
    runs = (
        y[np.argsort(scores)][1:] != y[np.argsort(scores)][:-1]
    ).mean()  # neighbours are independent too
    assert runs == pytest.approx(np.mean(2 * scores * (1 - scores)), abs=0.01)


def test_audit_finds_no_evidence_and_gives_no_upper_bound() -> None:
    # the map is wrong by 1/2 everywhere, and an honest report can say neither that nor the contrary
    world = GhostWorld(seed=4)
    rng = np.random.default_rng(2)
    fitted = PlattCalibrator().fit(*world.draw(rng, 10_000))
    scores, y = world.draw(rng, 10_000)
    report = audit(y, fitted.predict(scores))
    assert report.lower_bound < 0.05
    assert report.upper_bound is None


def test_known_rates_of_ranges_match_labels_counted_one_by_one() -> None:
    world = GhostWorld(lambda s: s**2, seed=5)
    first = np.array([0, 1000, 2**39])
    last = first + np.array([9, 63, 10])
    by_hand = [
        world.labels_at(np.arange(a, b + 1)).mean() for a, b in zip(first, last, strict=True)
    ]
    np.testing.assert_allclose(world.rate_between(first, last), by_hand)
    wide = world.rate_between(np.array([2**38]), np.array([2**38 + 2**37]))
    assert wide[0] == pytest.approx((0.375**3 - 0.25**3) / (3 * 0.125), abs=1e-3)


def test_isotonic_steps_are_no_injective_map() -> None:
    result = confront(
        PlattCalibrator(), rivals={"isotonic": IsotonicCalibrator()}, sample_sizes=(10_000,)
    )
    assert not result.injective[1].any()
    assert result.real[1, 0] < 0.1


def test_any_object_that_fits_and_predicts_will_do() -> None:
    class Line:
        def fit(self, scores, y):
            self.slope_ = 0.1
            return self

        def predict(self, scores):
            return 0.45 + self.slope_ * np.asarray(scores)

    result = confront(Line(), sample_sizes=(100,), rivals={"bins": BinningCalibrator(5)})
    assert result.methods == ("Line", "bins")
    assert result.real[0, 0] == pytest.approx(0.5, abs=0.02)
    assert "Line" in str(result)
    assert len(result.to_frame()) == 2


def test_narrow_intervals_cover_coins_and_never_their_ghost() -> None:
    shown = width_demonstration(PlattCalibrator(), n=10_000, confidence_level=0.9)
    replace(shown, needed_width=0.9012, minimum_width=0.3999)
    narrow = (shown.widths > 0.15) & (shown.widths < 0.8)
    assert (shown.coverage_apparent[narrow] == 1.0).all()
    assert (shown.coverage_ghost[narrow] == 0.0).all()
    assert shown.minimum_width == pytest.approx(0.4)
    assert shown.needed_width >= shown.minimum_width
    tight = replace(shown, needed_width=0.9012, minimum_width=0.3999)
    assert (
        tight.sentence == "An interval around the prediction must be 90.2 points wide for 90%"
        " coverage in both worlds; every distribution-free method needs at least 39.9 points on"
        " average."
    )
    assert "needs at least 40 points on average" in shown.sentence


@pytest.mark.broad
def test_text_never_shows_a_claim_below_epsilon() -> None:
    result = confront(PlattCalibrator(), sample_sizes=(100, 1_000))
    said = [
        float(line.split()[3]) for line in str(result).splitlines() if line.startswith("Binning")
    ]
    assert (np.array(said) >= result.claimed[1]).all()
    assert (np.array(said) < 1.1 * result.claimed[1]).all()


@pytest.mark.broad
def test_picture_shows_the_numbers() -> None:
    from matplotlib.figure import Figure

    result = confront(PlattCalibrator(), sample_sizes=(100, 1_000))
    ax = result.plot(Figure().add_subplot())
    lines = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    np.testing.assert_array_equal(lines["Platt: real error"], result.real[0])
    np.testing.assert_array_equal(lines["Binning: guaranteed"], result.claimed[1])
    assert "Platt: guaranteed" not in lines


@pytest.mark.broad
def test_same_seed_gives_the_same_numbers() -> None:
    one, two = (confront(PlattCalibrator(), sample_sizes=(100,), random_state=5) for _ in range(2))
    np.testing.assert_array_equal(one.real, two.real)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: confront("platt"), "calibrator must have fit and predict; got str"),
        (lambda: width_demonstration(None), "calibrator must have fit and predict; got NoneType"),
    ],
)
def test_what_cannot_fit_or_predict_is_refused(call, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_too_small_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="sample_sizes must be an int >= 10; got 3"):
        confront(PlattCalibrator(), sample_sizes=(3,))
