"""What rows that are not counted decide beforehand, and the limits that follow from it."""

import numpy as np
import pytest
from scipy import stats

from calibrant import AnchoredCalibrator, Partition, Tally
from calibrant.calibrators.anchored import estimator
from calibrant.calibrators.anchored.fitted_curve import CurveProof
from calibrant.calibrators.anchored.pilot import Beforehand, look_knots
from calibrant.calibrators.regions.binned_rows import cut_and_count
from calibrant.errors import CalibrantError
from calibrant.guarantee.absorbed import region_limits
from calibrant.intervals import get_method
from calibrant.limits.bounded_mean import fixed_bets
from calibrant.limits.kolmogorov import kolmogorov_distance, rank_distance
from calibrant.sample.reader import read_rows
from worlds.one_draw import one_draw

LEVEL = 1e-4


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < scores**3).astype(int)


@pytest.fixture
def guesses(monkeypatch):
    """The guess of each fit."""
    found = []

    class Kept(Beforehand):
        @classmethod
        def guessed(cls, *args):
            found.append(Beforehand.guessed(*args))
            return found[-1]

    monkeypatch.setattr(estimator, "Beforehand", Kept)
    return found


@pytest.mark.broad
def test_no_counted_row_has_a_part_in_the_guess(guesses):
    scores, y = draw(2000)
    model = AnchoredCalibrator(n_bins=3)
    with one_draw():
        counted = np.isin(scores, cut_and_count(read_rows(scores, y), model).rows.scores)
        assert 80 < (~counted).sum() < 100
        other = np.where(counted, 1 - y, y)
        for x, labels in ((scores, y), (scores, other), (np.where(counted, np.sqrt(scores), scores), other)):
            model.fit(x, labels)
    for name in ("rates", "bets", "distance"):
        np.testing.assert_array_equal(getattr(guesses[0], name), getattr(guesses[1], name))
    knots = look_knots(scores[~counted])
    ends = [np.interp(knots, one.curve.cells.parts[0].edges, one.curve.left[1:]) for one in guesses]
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-12)
    np.testing.assert_allclose(ends[2], ends[0], rtol=1e-12)


@pytest.mark.broad
def test_counted_scores_that_move_within_their_regions_change_nothing_of_the_guess(guesses):
    scores, y = draw(2000)
    model = AnchoredCalibrator(n_bins=3, pilot=200)
    with one_draw():
        cut = cut_and_count(read_rows(scores, y), model)
        counted = np.isin(scores, cut.rows.scores)
        ends = np.concatenate([[0.0], cut.partition.edges, [1.0]])
        low = ends[np.searchsorted(ends, scores, side="right") - 1]
        for x in (scores, np.where(counted, low + 0.9 * (scores - low), scores)):
            model.fit(x, y)
    for name in ("rates", "bets", "distance", "variance"):
        np.testing.assert_array_equal(getattr(guesses[1], name), getattr(guesses[0], name))


def test_parts_of_the_budget_add_up_to_one_and_steep_regions_have_bets(guesses):
    scores, y = draw(3000)
    AnchoredCalibrator(n_bins=2).fit(scores**3, y)
    guess = guesses[0]
    assert (guess.rates + guess.bets).sum() == pytest.approx(1.0)
    assert guess.distance.sum() == pytest.approx(1.0)
    assert guess.bets[1] == guess.rates[1]
    assert guess.bets[0] == 0.0
    assert guess.rates[1] > guess.rates[0]  # rates near 0 need less


@pytest.mark.broad
def test_few_drawn_rows_or_none_decide_nothing():
    for options in ({"pilot": None}, {"pilot": 10}, {"partition": Partition.fixed_width(4)}):
        model = AnchoredCalibrator(**({"n_bins": 4} if "partition" not in options else {}), **options).fit(*draw(300))
        assert model._fitted_curve.parts.shares is None
        np.testing.assert_array_equal(model._fitted_curve.parts.upper, 1.0)


def test_limits_with_shares_are_exact_limits_at_their_own_levels():
    tally = Tally.from_counts([50, 80, 20], [5, 40, 20])
    shares, method = np.array([0.1, 0.6, 0.3]), get_method("clopper-pearson")
    found = region_limits(Partition.fixed_width(3), tally, method, 0.08, shares)
    for region, share in enumerate(shares):
        level = 1 - 0.92**share
        k, n = tally.positives[region], tally.counts[region]
        assert found.lower[region] == pytest.approx(stats.beta.ppf(level / 2, k, n - k + 1), rel=1e-9)
        assert found.upper[region] == pytest.approx(stats.beta.isf(level / 2, k + 1, n - k) if k < n else 1.0, rel=1e-9)


@pytest.mark.parametrize("guess", [0.02, 0.2, 2.0])
@pytest.mark.broad
def test_fixed_bets_miss_as_rarely_as_they_say(guess):
    """Outcomes y - h(x), h known, rate jumping; the guess of the variance may be wrong."""
    rng = np.random.default_rng(5)
    draws, n, level = 600, 60, 0.1
    x = rng.uniform(size=(draws, n))
    y = rng.uniform(size=(draws, n)) < np.where(x < 0.5, 0.05, 0.9)
    outcomes = (y - x).ravel()
    region = np.repeat(np.arange(draws), n)
    one = np.ones(draws)
    lower, upper = fixed_bets(
        outcomes, outcomes, np.ones(region.size, dtype=int), region, (-one, one), guess * one, level * one
    )
    missed = int(((lower > -0.025) | (upper < -0.025)).sum())
    assert stats.binomtest(missed, draws, level, alternative="greater").pvalue > LEVEL
    assert (upper - lower).mean() < 0.6
    wide = fixed_bets(
        np.maximum(outcomes - 0.1, -1),
        np.minimum(outcomes + 0.1, 1),
        np.ones(region.size, dtype=int),
        region,
        (-one, one),
        guess * one,
        level * one,
    )
    assert (wide[0] <= lower).all()
    assert (wide[1] >= upper).all()


@pytest.mark.broad
@pytest.mark.parametrize("tied", [False, True])
def test_limits_at_ranks_hold_at_once_and_are_narrow_at_the_ends(tied):
    rng = np.random.default_rng(6)
    draws, n, level = 200, 50, 0.1
    missed, grid = 0, np.linspace(0.0, 1.0, 41)
    for _ in range(draws):
        x = rng.uniform(size=n) ** 2
        x = np.ceil(x * 10) / 10 if tied else x
        rows = np.histogram(x, grid)[0]
        near = rank_distance(rows, np.zeros(40, dtype=int), np.ones(1), np.array([level]))
        truth = np.sqrt(np.floor(grid[1:] * 10 + 1e-9) / 10 if tied else grid[1:])
        shares = np.array([(x <= end + 1e-9).mean() for end in grid[1:]])
        missed += bool((np.abs(shares - truth) > near).any())
    assert stats.binomtest(missed, draws, level, alternative="greater").pvalue > LEVEL
    ends = rank_distance(np.ones(n, dtype=int), np.zeros(n, dtype=int), np.ones(1), np.array([level]))
    tail = level / (2 * n)
    assert ends[0] == pytest.approx(stats.beta.isf(tail, 2, n - 1), rel=1e-9)
    assert ends[0] < 0.75 * ends[n // 2]


def test_shares_of_distances_are_exact_levels():
    found = kolmogorov_distance(np.array([40, 90]), 0.05, np.array([0.2, 0.8]))
    for rows, share, limit in zip((40, 90), (0.2, 0.8), found, strict=True):
        assert limit == pytest.approx(stats.kstwo.isf(1 - 0.95**share, rows), rel=0.01)


@pytest.mark.parametrize("n", [400, 3000])
def test_a_closer_look_never_widens_what_koksma_allows_by_much(n):
    scores, y = draw(n, seed=3)
    scores = scores**3
    model = AnchoredCalibrator("beta", n_bins=2).fit(scores, y)
    guarantee, regions = model.guarantee_, model.partition_.as_bins()
    budget = CurveProof(regions, model.tally_, model.interval, model.confidence_level).for_curve
    plain = model.pieces_.variation(regions) * kolmogorov_distance(model.tally_.counts, budget, np.full(2, 0.5))
    assert (guarantee.margin <= 1.12 * plain + 1e-3).all()
    assert guarantee.margin[1] < plain[1]
    again = AnchoredCalibrator.from_dict(model.to_dict())
    np.testing.assert_array_equal(again.guarantee_.radius, guarantee.radius)
    np.testing.assert_array_equal(again.predict_interval(scores), model.predict_interval(scores))


def test_only_exact_intervals_have_shares_and_curves_beyond_one_are_refused():
    model = AnchoredCalibrator(n_bins=3, interval="hoeffding").fit(*draw(1000))
    assert model._fitted_curve.parts.shares is None
    expected = CurveProof(model.partition_, model.tally_, "hoeffding", 0.9).rates(None)
    np.testing.assert_array_equal(model.guarantee_.lower, expected.lower)
    for name in ("left", "right"):
        state = model.to_dict()
        state["state"]["curve"][name] = [*state["state"]["curve"][name][:-1], 1.05]
        with pytest.raises(CalibrantError, match=name):
            AnchoredCalibrator.from_dict(state)
