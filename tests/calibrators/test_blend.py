"""The blend of curves: its invariants, its edges, and losses that others reach."""

import json
from functools import partial

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import BetaCalibrator, BlendCalibrator, IsotonicCalibrator, PlattCalibrator
from calibrant.calibrators.blend_curve import Problem, fit_blend, fit_blends, fit_rising
from calibrant.cells.score_counts import ScoreCounts
from calibrant.export import export_table

GRID = np.linspace(0.0, 1.0, 501)


def overconfident(rng, n):
    """Probabilities, and the true rates, whose logits are 0.4 of theirs."""
    z = 1.5 * rng.normal(size=n) - 0.5
    return expit(2.5 * z), expit(z)


def bent(rng, n):
    """Scores that saturate, as those of a boosted model may."""
    z = 1.5 * rng.normal(size=n) - 0.5
    return expit(4.0 * np.tanh(z)), expit(z)


def rare(rng, n):
    z = rng.normal(size=n)
    return expit(2.0 * z - 3.0), expit(z - 3.0)


def at_the_ends(rng, n):
    """Scores of which most are exactly 0 or 1."""
    scores, rates = overconfident(rng, n)
    return np.where(scores < 0.1, 0.0, np.where(scores > 0.9, 1.0, scores)), rates


def log_odds(rng, n):
    scores, rates = overconfident(rng, n)
    return logit(scores), rates


WORLDS = {
    world.__name__.replace("_", " "): world
    for world in (overconfident, bent, rare, at_the_ends, log_odds)
}


def drawn(world=overconfident, n=800, seed=0):
    rng = np.random.default_rng(seed)
    scores, rates = world(rng, n)
    return scores, (rng.uniform(size=n) < rates).astype(np.uint8)


def counted(scores, y):
    return ScoreCounts.of(np.asarray(scores, dtype=float), np.asarray(y, dtype=np.uint8))


def excess(world, predict):
    """The log loss above that of the true rates, on new scores."""
    scores, rates = world(np.random.default_rng(99), 20_000)
    p = predict(scores)
    return float((rates * np.log(rates / p) + (1 - rates) * np.log((1 - rates) / (1 - p))).mean())


# Invariants


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("n", [3, 30, 400, 5_000])
def test_the_curve_never_falls_and_ties_no_scores_of_the_rows(name, n):
    scores, y = drawn(WORLDS[name], n)
    found = BlendCalibrator().fit(scores, y, classes=(0, 1))
    wide = np.linspace(scores.min() - 3.0, scores.max() + 3.0, 2_001)
    assert (
        np.diff(fit_blend(counted(scores, y), are_probabilities=name != "log odds")(wide)) >= 0
    ).all()
    assert (np.diff(found.predict(np.unique(scores))) > 0.0).all()


@pytest.mark.parametrize("name", WORLDS)
def test_other_labels_and_the_other_sign_mirror_the_curve(name):
    scores, y = drawn(WORLDS[name])
    other = -scores if name == "log odds" else 1.0 - scores
    found = BlendCalibrator().fit(scores, y).predict(scores)
    mirrored = BlendCalibrator().fit(other, 1 - y).predict(other)
    np.testing.assert_allclose(mirrored, 1.0 - found, atol=5e-4)  # within the accuracy of corners


def test_other_labels_alone_mirror_the_curve_which_then_falls():
    scores, y = drawn()
    found = BlendCalibrator().fit(scores, y)
    falling = BlendCalibrator().fit(scores, 1 - y)
    np.testing.assert_allclose(falling.predict(GRID), 1.0 - found.predict(GRID), atol=1e-12)
    assert (np.diff(falling.predict(GRID)) <= 0.0).all()
    again = BlendCalibrator.from_dict(json.loads(json.dumps(falling.to_dict())))
    np.testing.assert_array_equal(again.predict(GRID), falling.predict(GRID))


def test_weight_2_is_every_row_twice():
    scores, y = drawn()
    weighted = BlendCalibrator().fit(scores, y, sample_weight=np.full(800, 2))
    doubled = BlendCalibrator().fit(np.tile(scores, 2), np.tile(y, 2))
    np.testing.assert_array_equal(weighted.predict(GRID), doubled.predict(GRID))
    assert (
        np.abs(weighted.predict(GRID) - BlendCalibrator().fit(scores, y).predict(GRID)).max() > 1e-4
    )


def test_only_ratios_of_importance_weights_matter():
    scores, y = drawn()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 800)
    found = BlendCalibrator().fit(scores, y, importance_weight=weights)
    for factor in (1e-6, 40.0):
        other = BlendCalibrator().fit(scores, y, importance_weight=factor * weights)
        np.testing.assert_allclose(other.predict(GRID), found.predict(GRID), rtol=1e-6)
    equal = BlendCalibrator().fit(scores, y, importance_weight=np.full(800, 0.3))
    np.testing.assert_allclose(
        equal.predict(GRID), BlendCalibrator().fit(scores, y).predict(GRID), rtol=1e-9
    )


def test_rows_that_weigh_more_pull_the_curve_and_few_of_them_are_worth_few_rows():
    scores, y = drawn()
    heavy = np.where(y == 1, 3.0, 1.0)
    plain = BlendCalibrator().fit(scores, y).predict(GRID)
    pulled = BlendCalibrator().fit(scores, y, importance_weight=heavy).predict(GRID)
    assert (pulled > plain).all()
    few = np.where(np.arange(800) < 200, 1.0, 1e-9)
    counted_few = BlendCalibrator().fit(scores, y, importance_weight=few).predict(scores[:200])
    alone = BlendCalibrator().fit(scores[:200], y[:200]).predict(scores[:200])
    np.testing.assert_allclose(counted_few, alone, atol=0.005)


@pytest.mark.parametrize("name", ["overconfident", "bent", "rare", "log odds"])
@pytest.mark.parametrize("n", [100, 1_000, 10_000])
def test_untied_scores_have_no_jump(name, n):
    """Where the curve rises most between two points, it rises little between points in between."""
    scores, y = drawn(WORLDS[name], n)
    curve = fit_blend(counted(scores, y), are_probabilities=name != "log odds")
    points = np.unique(np.concatenate([scores, np.linspace(scores.min(), scores.max(), 2_001)]))
    steepest = int(np.argmax(np.diff(curve(points))))
    between = np.linspace(*points[[steepest, steepest + 1]], 1_001)
    rises = np.diff(curve(between))
    assert rises.max() < 0.01 * rises.sum()


@pytest.mark.parametrize(
    ("factor", "shift"), [(100.0, 0.0), (1.0, 50.0), (1e-9, 0.0), (55.0, 575.0)]
)
def test_any_unit_of_other_scores_gives_the_same_curve(factor, shift):
    """Points from 300 to 850, per cent beyond 100, and so on."""
    scores, y = drawn(log_odds)
    found = BlendCalibrator().fit(scores, y).predict(scores)
    other = BlendCalibrator().fit(factor * scores + shift, y).predict(factor * scores + shift)
    np.testing.assert_allclose(other, found, atol=1e-3)


def test_per_cent_are_nearly_as_good_as_probabilities():
    scores, y = drawn(n=1_500)
    found = BlendCalibrator().fit(scores, y)
    per_cent = BlendCalibrator().fit(100.0 * scores, y)
    one = excess(overconfident, found.predict)
    other = excess(overconfident, lambda new: per_cent.predict(100.0 * new))
    assert one < other < one + 0.005


def test_credit_points_that_fall():
    rng = np.random.default_rng(3)
    points = np.clip(rng.normal(600.0, 80.0, 3_000).round(), 300, 850)
    rates = expit((600.0 - points) / 60.0)
    found = BlendCalibrator().fit(points, rng.uniform(size=3_000) < rates)
    grid = np.arange(300.0, 851.0)
    assert (np.diff(found.predict(grid)) < 0.0).all()
    assert np.abs(found.predict(grid) - expit((600.0 - grid) / 60.0))[100:450].max() < 0.06


def test_the_order_of_rows_does_not_matter():
    scores, y = drawn()
    order = np.random.default_rng(2).permutation(800)
    found = BlendCalibrator().fit(scores, y)
    other = BlendCalibrator().fit(scores[order], y[order])
    np.testing.assert_array_equal(found.predict(GRID), other.predict(GRID))


# Edges


def test_rows_at_0_and_1_count_as_half_way_to_the_nearest_other_score():
    scores, y = drawn(at_the_ends, 2_000)
    inside = scores[(scores > 0) & (scores < 1)]
    ends = inside.min() / 2, (1 + inside.max()) / 2
    found = fit_blend(counted(scores, y), are_probabilities=True)
    moved = fit_blend(counted(np.clip(scores, *ends), y), are_probabilities=True)
    np.testing.assert_allclose(
        found(np.array([0.0, 0.3, 0.7, 1.0])), moved(np.array([ends[0], 0.3, 0.7, ends[1]]))
    )
    observed = [y[scores == end].mean() for end in (0.0, 1.0)]
    np.testing.assert_allclose(
        BlendCalibrator().fit(scores, y).predict([0.0, 1.0]), observed, atol=0.03
    )


@pytest.mark.parametrize(
    ("scores", "y"),
    [
        ([0.1, 0.2, 0.8], [0, 0, 1]),
        ([0.2, 0.5, 0.9], [1, 1, 1]),
        ([0.0, 0.0, 1.0, 1.0], [0, 1, 0, 1]),
        ([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1]),
        ([0.3, 0.3, 0.3], [0, 1, 1]),
        ([0.0, 0.0, 0.0], [0, 0, 1]),
        ([612.0] * 5, [0, 1, 0, 1, 1]),
        ([1e-320, 1e-300, 0.5, 1.0], [0, 1, 0, 1]),
        ([-1.7e308, -1.0, 0.0, 1.7e308], [0, 1, 0, 1]),
        ([5e-324, 1.0 - 2.0**-53], [0, 1]),
    ],
)
def test_hard_data_give_finite_curves_in_order(scores, y):
    found = BlendCalibrator().fit(scores, y, classes=(0, 1))
    low, high = min(scores), max(scores)
    points = np.unique([low, high, *scores, *np.linspace(low / 2, high / 2, 101)])
    p = found.predict(points)
    assert ((p > 0.0) & (p < 1.0)).all()
    assert (np.diff(p) >= 0.0).all()


def _nasty(rng):
    """Scores, labels and weights of wildly different sizes."""
    n = int(rng.choice([1, 2, 3, 5, 20, 100]))
    tiny = 10.0 ** rng.uniform(-323.0, 0.0, n)
    scores = [
        rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-320.0, 308.0, n),
        tiny,
        1.0 - 10.0 ** rng.uniform(-16.0, 0.0, n),
        rng.choice([0.0, 5e-324, 1e-310, 0.5, 1.0 - 2.0**-53, 1.0], n),
        np.where(rng.uniform(size=n) < 0.5, 0.0, tiny),
        0.5 + rng.choice([-1.0, 0.0, 1.0], n) * 10.0 ** rng.uniform(-17.0, -1.0, n),
        rng.choice([0.0, 1e-300, 1e300, -1e300], n),
        np.where(rng.uniform(size=n) < 0.9, 1e-318, 1e300) * rng.normal(size=n),
        rng.integers(300, 850, n).astype(float),
    ][rng.integers(9)]
    half = np.median(scores / 2.0)
    y = [rng.uniform(size=n) < 0.5, np.zeros(n), scores / 2.0 > half, scores / 2.0 < half]
    weights = [None, 10.0 ** rng.uniform(-90.0, 90.0, n), rng.uniform(size=n)][rng.integers(3)]
    return scores, np.asarray(y[rng.integers(4)], dtype=int), weights


def test_nasty_inputs_give_finite_curves_in_order():
    rng = np.random.default_rng(1)
    for _ in range(400):
        scores, y, weights = _nasty(rng)
        found = BlendCalibrator().fit(scores, y, classes=(0, 1), importance_weight=weights)
        between = [0.0, 5e-324, 1e-310, 0.5, 1.0, -1e308, 1e308, *scores, *(scores / 2.0)]
        p = _quietly(found, np.unique(between))
        assert ((p > 0.0) & (p < 1.0)).all(), scores
        assert (np.diff(p) >= -1e-15).all() or (np.diff(p) <= 1e-15).all(), scores


def test_a_constant_score_gets_about_the_rate():
    y = np.arange(1_000) % 10 < 3
    for score in (0.02, 0.9, 640.0):
        assert BlendCalibrator().fit(np.full(1_000, score), y).predict([score]) == pytest.approx(
            [0.3], abs=0.01
        )


@pytest.mark.parametrize("n", [20, 200, 2_000])
def test_logits_are_bounded_by_the_number_of_rows(n):
    """Labels that a threshold separates, and labels of one class."""
    scores = np.linspace(0.001, 0.999, n)
    most = np.log(2 * n + 2) + 1
    for y in (scores > 0.5, np.ones(n, dtype=bool)):
        found = BlendCalibrator().fit(scores, y, classes=(False, True))
        assert np.abs(logit(found.predict([0.0, *scores, 1.0]))).max() < most
    assert found.predict([0.5])[0] > 1 - 4 / n


def test_nan_is_refused():
    with pytest.raises(ValueError, match="scores must"):
        BlendCalibrator().fit([0.1, np.nan, 0.4], [0, 1, 1])


def test_scores_beyond_the_rows_go_on_in_order():
    scores, y = drawn(n=300)
    middle = (scores > 0.1) & (scores < 0.9)
    found = BlendCalibrator().fit(scores[middle], y[middle])
    beyond = np.array([0.0, 1e-9, 1e-4, 0.01, 0.05, 0.5, 0.95, 0.99, 0.9999, 1.0])
    assert (np.diff(found.predict(beyond)) > 0.0).all()
    points = BlendCalibrator().fit(20.0 * scores[middle] - 10.0, y[middle])
    assert (np.diff(_quietly(points, np.linspace(-25.0, 25.0, 21))) > 0.0).all()


# The state, and what is claimed


def test_the_table_is_the_prediction():
    found = BlendCalibrator().fit(*drawn(at_the_ends, 2_000))
    table = export_table(found)
    points = np.concatenate([GRID, found.thresholds_, [-3.0, 7.0]])
    place = np.searchsorted(table.steps[0].cuts, points, side="right")
    value = table.calibrated[place] + table.lines.slope[place] * (points - table.lines.start[place])
    found.score_range_seen_ = None
    np.testing.assert_array_equal(found.predict(points), value)


@pytest.mark.parametrize("name", WORLDS)
def test_the_corners_follow_the_curve(name):
    scores, y = drawn(WORLDS[name], 3_000)
    curve = fit_blend(counted(scores, y), are_probabilities=name != "log odds")
    found = BlendCalibrator().fit(scores, y)
    new = np.clip(WORLDS[name](np.random.default_rng(8), 2_000)[0], scores.min(), scores.max())
    assert np.abs(logit(found.predict(new)) - curve.logits(new)).max() < 0.01
    assert found.thresholds_.size < 400


def test_a_state_that_rises_and_falls_is_refused():
    state = BlendCalibrator().fit(*drawn()).to_dict()
    state["state"]["values"][3] = 0.999
    with pytest.raises(ValueError, match="values must not both rise and fall"):
        BlendCalibrator.from_dict(state)


def test_says_why_there_is_no_guarantee():
    found = BlendCalibrator().fit(*drawn())
    assert "Theorem 3" in found.guarantee_.details
    assert found.guarantee_.epsilon is None


# The parts


def test_the_fit_is_the_best_with_coefficients_that_are_not_negative():
    rng = np.random.default_rng(5)
    x = np.sort(rng.normal(size=400))
    rows = counted(x, rng.uniform(size=400) < expit(np.minimum(2.0 * x, 0.0) - 0.5))
    features = np.column_stack([np.ones(400), x, -np.logaddexp(0.0, -x), np.logaddexp(0.0, x)])
    mean = np.array([0.0, 1.0, 1.0, 1.0])
    precision = np.diag([0.1, 2.0, 2.0, 2.0])

    def objective(theta):
        z = features @ theta
        away = theta - mean
        return (np.logaddexp(0.0, z) - rows.positives * z).sum() + away @ precision @ away / 2

    ((best, _),) = fit_rising([Problem(features, rows, mean, precision)])
    assert (best[1:] >= 0.0).all()
    assert (best == 0.0).any()
    for step in rng.normal(scale=0.05, size=(300, 4)):
        other = best + step
        other[1:] = np.abs(other[1:])
        assert objective(best) <= objective(other) + 1e-9


def test_the_loss_of_rows_left_out_is_nearly_that_of_as_many_fits():
    rng = np.random.default_rng(6)
    x = np.sort(rng.normal(size=60))
    y = (rng.uniform(size=60) < expit(1.5 * x)).astype(np.uint8)
    features = np.column_stack([np.ones(60), x])
    prior = np.array([0.0, 1.0]), np.diag([0.1, 2.0])
    loss = 0.0
    for i in range(60):
        others = np.arange(60) != i
        rest = counted(x[others], y[others])
        ((theta, _),) = fit_rising([Problem(features[others], rest, *prior)])
        z = features[i] @ theta
        loss += np.logaddexp(0.0, -z if y[i] else z)
    ((coefficients, found),) = fit_rising([Problem(features, counted(x, y), *prior)])
    z = features @ coefficients
    own = (np.logaddexp(0.0, z) - y * z).sum()
    assert loss - own > 0.5  # what the approximation has to find
    assert found - own == pytest.approx(loss - own, rel=0.1)


# Losses

DRAFT = {
    ("overconfident", 100): 0.020486,
    ("overconfident", 1000): 0.001651,
    ("bent", 100): 0.018993,
    ("bent", 1000): 0.002718,
    ("rare", 100): 0.010674,
    ("rare", 1000): 0.001246,
    ("at the ends", 100): 0.033942,
    ("at the ends", 1000): 0.016888,
    ("log odds", 100): 0.016887,
    ("log odds", 1000): 0.001935,
}
"""The log loss above that of the true rates, on average over 8 seeds, of the draft of this method
that was tried on 44 real tables before it was written anew."""


@pytest.mark.parametrize(("name", "n"), DRAFT)
def test_the_loss_is_that_of_the_draft_and_near_that_of_the_best_of_three_curves(name, n):
    others = [PlattCalibrator(), IsotonicCalibrator()]
    if name != "log odds":
        others.append(BetaCalibrator())
    blend = BlendCalibrator()
    losses = {type(curve).__name__: 0.0 for curve in (blend, *others)}
    for seed in range(8):
        scores, y = drawn(WORLDS[name], n, seed)
        for curve in (blend, *others):
            curve.fit(scores, y)
            losses[type(curve).__name__] += excess(WORLDS[name], partial(_inside, curve)) / 8
    own = losses.pop("BlendCalibrator")
    assert own < 1.02 * DRAFT[name, n]
    assert own < 1.1 * min(losses.values()) + 1e-3


def _inside(calibrator, scores):
    """Predictions, which isotonic regression needs to be kept away from 0 and 1."""
    return np.clip(_quietly(calibrator, scores), 1e-4, 1 - 1e-4)


def _quietly(calibrator, scores):
    calibrator.score_range_seen_ = None
    return calibrator.predict(scores)


def test_cells_of_neighbouring_scores_give_the_curve_of_all_scores(monkeypatch):
    scores, y = drawn(bent, 20_000)
    rows = counted(scores, y)
    found = fit_blend(rows, are_probabilities=True)
    monkeypatch.setattr("calibrant.calibrators.blend_curve._MOST_CELLS", 10**9)
    exact = fit_blend(rows, are_probabilities=True)
    points = np.quantile(scores, np.linspace(0.001, 0.999, 500))
    assert np.abs(found.logits(points) - exact.logits(points)).max() < 0.01


def test_many_rows_are_fitted_as_few_cells(monkeypatch):
    sizes = []

    def spy(problems):
        sizes.extend(len(problem.features) for problem in problems)
        return fit_rising(problems)

    monkeypatch.setattr("calibrant.calibrators.blend_curve.fit_rising", spy)
    BlendCalibrator().fit(*drawn(n=100_000))
    assert max(sizes) <= 2_048 + 2  # both ends are cells of their own


@pytest.mark.parametrize(("n", "n_nodes"), [(2_999, 8), (3_000, 16), (9_999, 16), (10_000, 32)])
def test_more_rows_give_splines_more_nodes(n, n_nodes, monkeypatch):
    sizes = []

    def spy(problems):
        sizes.append([problem.features.shape[1] - 1 for problem in problems])
        return fit_rising(problems)

    monkeypatch.setattr("calibrant.calibrators.blend_curve.fit_rising", spy)
    BlendCalibrator().fit(*drawn(n=n))
    assert sizes == [[1, 1, 2, 1], [max(n_nodes, 16), n_nodes, n_nodes]]


def test_blends_fitted_together_are_those_fitted_alone():
    """Of different sizes and scales, ties and separable rows among them."""
    data = [counted(*drawn(world, n)) for world in WORLDS.values() for n in (3, 30, 500, 12_000)]
    data.append(counted(np.arange(40.0) / 40, np.arange(40) >= 20))
    data.append(counted(np.repeat([0.2, 0.7], 30), np.arange(60) % 3 == 0))
    flags = [bool(rows.scores[0] >= 0.0 and rows.scores[-1] <= 1.0) for rows in data]
    for together, rows, flag in zip(fit_blends(data, flags), data, flags, strict=True):
        alone = fit_blend(rows, are_probabilities=flag)
        np.testing.assert_allclose(
            together.logits(rows.scores), alone.logits(rows.scores), rtol=1e-9, atol=1e-9
        )
