"""Curves with groups and weights: limits hold for known truths, and no pilot row is counted."""

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from calibrant import BinningCalibrator, Calibrator, scored
from calibrant.calibrators.curve import units
from calibrant.calibrators.curve.units import _lower_share
from calibrant.calibrators.curve.unlabelled import other_population
from calibrant.calibrators.regions.grouped_rows import cut_units
from calibrant.calibrators.regions.parameters import DataAssumptions
from calibrant.errors import CalibrantWarning, InvalidValueError
from calibrant.limits.bet_limits import bet_limits
from worlds.guarantees import assert_rare

LEVEL = 1e-3


def grouped(rng, n_groups, large=6):
    """Groups of one row or `large`, larger where rates are high; the rate among rows at a score."""
    bad = rng.uniform(size=n_groups) < 0.4
    sizes = np.where(rng.uniform(size=n_groups) < np.where(bad, 0.5, 0.1), large, 1)
    group = np.repeat(np.arange(n_groups), sizes)
    scores = rng.uniform(size=group.size)
    rate = np.where(bad[group], 0.3 + 0.7 * scores**2, 0.5 * scores**2)
    return scores, (rng.uniform(size=group.size) < rate).astype(int), group


def rate_among_rows(scores, large=6):
    of_bad = 0.4 * (0.5 * large + 0.5)
    of_good = 0.6 * (0.1 * large + 0.9)
    bad = of_bad / (of_bad + of_good)
    return bad * (0.3 + 0.7 * scores**2) + (1.0 - bad) * 0.5 * scores**2


def is_broken(model, rate, weight=None):
    points = (np.arange(5_000) + 0.5) / 5_000
    mass = np.ones(points.size) if weight is None else weight(points)
    where = model.partition_.membership(points)
    size = model.partition_.n_regions
    total = np.bincount(where, mass, size)
    truth = np.bincount(where, mass * rate(points), size) / total
    predicted = np.bincount(where, mass * model.predict(points), size) / total
    errors = model.guarantee_.errors
    off = truth - predicted
    return bool(((off < errors.lower - 5e-4) | (off > errors.upper + 5e-4)).any())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrantWarning")
def test_the_guarantee_holds_where_sizes_of_groups_follow_labels():
    draws = 30
    broken = 0
    for draw in range(draws):
        scores, y, group = grouped(np.random.default_rng([1, draw]), 250)
        model = Calibrator(confidence_level=0.5, n_bins=2, random_state=draw)
        model.fit(scores, y, groups=group, max_group_size=6)
        broken += is_broken(model, rate_among_rows)
    assert_rare(broken, draws, 0.5, level=LEVEL)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrantWarning")
def test_the_guarantee_holds_where_weights_follow_labels():
    draws = 30
    broken = 0

    def weight_of(scores):
        return 4.0 * scores**2 + (0.3 + scores) * (1.0 - scores**2)

    for draw in range(draws):
        rng = np.random.default_rng([2, draw])
        scores = rng.uniform(size=400)
        y = (rng.uniform(size=400) < scores**2).astype(int)
        weights = np.where(y == 1, 4.0, 0.3 + scores)
        model = Calibrator(confidence_level=0.5, n_bins=2, random_state=draw)
        model.fit(scores, y, importance_weight=weights, weight_bound=4.0)
        broken += is_broken(model, lambda s: 4.0 * s**2 / weight_of(s), weight_of)
    assert_rare(broken, draws, 0.5, level=LEVEL)


def test_epsilon_is_near_that_of_bins_with_the_same_regions():
    scores, y, group = grouped(np.random.default_rng(3), 1_500)
    curve = Calibrator(n_bins=4).fit(scores, y, groups=group)
    bins = BinningCalibrator(n_bins=4).fit(scores, y, groups=group)
    assert curve.guarantee_.epsilon < 1.25 * bins.guarantee_.epsilon


def test_pilot_groups_are_not_counted_in_a_table_either():
    scores, y, group = grouped(np.random.default_rng(4), 400)
    table = pa.table({"s": scores, "y": y, "g": group})
    data = scored(table, score="s", label="y", group="g")
    model = Calibrator()
    binned = cut_units(model._read(data, None), model, DataAssumptions())
    assert len(binned.rows.counted_rows()) == binned.tally.counts.sum() < len(y)
    alike = Calibrator().fit(scores, y, groups=group)
    again = Calibrator().fit(data)
    assert again.guarantee_.epsilon == alike.guarantee_.epsilon


def test_lower_limits_of_shares_are_those_of_the_product_and_miss_rarely():
    """Fails if the goal, the number of stakes, or the cap on them changes."""
    rng = np.random.default_rng(5)
    n = 300
    draws = 300
    tail = 0.05
    missed = 0
    for _ in range(draws):
        weight = rng.uniform(0.1, 1.0, n)
        inside = rng.uniform(size=n) < 0.3 * weight  # heavy units are inside more often
        sums = [(weight * inside).sum(), (weight**2 * inside).sum(), weight.sum()]
        numbers = [np.array([value]) for value in (*sums, (weight**2).sum(), float(n))]
        lower = float(_lower_share(*numbers, tail)[0])
        missed += lower > 0.3 * np.mean(np.linspace(0.1, 1.0, 10_001) ** 2) / 0.55
        goal = math.log(7 / tail)
        stakes = min(math.sqrt(8.0 * (goal + 1e-9) / n), 0.5) * 2.0 ** np.arange(7)
        fixed = stakes[stakes * lower <= 0.5]
        products = [np.log1p(stake * weight * (inside - lower)).sum() for stake in fixed]
        assert max(products) >= goal
    assert_rare(missed, draws, tail, level=LEVEL)
    assert lower > 0.06  # not vacuous


def test_all_that_units_may_miss_adds_up_to_alpha(monkeypatch):
    """Fails if a constant of the budget changes without the others."""
    tails = []
    of_steps = []

    def noted(bets, tail):
        tails.extend(np.split(tail, 4))
        return bet_limits(bets, tail)

    def noted_share(*given):
        of_steps.append((given[0].size, given[-1]))
        return _lower_share(*given)

    monkeypatch.setattr(units, "bet_limits", noted)
    monkeypatch.setattr(units, "_lower_share", noted_share)
    scores, y, group = grouped(np.random.default_rng(10), 300)
    model = Calibrator(n_bins=3).fit(scores, y, groups=group)
    labels, first, _, of_g0 = tails
    n_knots, of_step = of_steps[0]
    n_steps = n_knots - model.partition_.n_regions
    spent = 2.0 * sum(tail.sum() for tail in tails) + len(of_steps) * n_steps * of_step
    assert spent == pytest.approx(0.1, rel=1e-9)
    assert labels.sum() / first.sum() == pytest.approx(38.0)
    assert 2.0 * n_steps * of_step == pytest.approx(0.001)
    assert 2.0 * of_g0.sum() == pytest.approx(0.001)


@pytest.fixture
def rows():
    rng = np.random.default_rng(6)
    scores = rng.uniform(size=3_000)
    return scores, (rng.uniform(size=3_000) < scores**2).astype(int)


def test_unlabelled_scores_narrow_epsilon_and_are_said(rows):
    alone = Calibrator().fit(*rows)
    more = np.random.default_rng(7).uniform(size=200_000)
    helped = Calibrator().fit(*rows, unlabelled_scores=more)
    assert helped.guarantee_.epsilon < alone.guarantee_.epsilon
    assert helped.guarantee_.is_proved
    assert any("unlabelled" in said for said in helped.guarantee_.statement.assumed)


def test_unlabelled_scores_of_another_population_are_refuted_first(rows):
    others = np.random.default_rng(8).uniform(size=5_000) ** 2
    with pytest.warns(CalibrantWarning, match="another population"):
        model = Calibrator().fit(*rows, unlabelled_scores=others)
    assert not model.guarantee_.is_proved
    assert "another population" in model.guarantee_.sentence


@pytest.mark.broad
def test_unlabelled_scores_of_the_same_population_are_rarely_refuted():
    class Rows:
        def __init__(self, scores):
            self.scores = scores

        def collect(self):
            return self

    class Given:
        def __init__(self, scores, others):
            self.whole = Rows(scores)
            self.unlabelled = others

    rng = np.random.default_rng(9)
    found = [
        other_population(Given(rng.uniform(size=100).round(1), rng.uniform(size=150).round(1)))
        for _ in range(150)
    ]
    refuted = sum(said is not None for said in found)
    assert_rare(refuted, 150, 0.01, level=LEVEL)


def test_unlabelled_scores_are_refused_where_they_are_not_built(rows):
    scores, y = rows
    for named in ({"groups": np.arange(3_000) // 3}, {"importance_weight": np.ones(3_000)}):
        with pytest.raises(InvalidValueError) as caught:
            Calibrator().fit(scores, y, unlabelled_scores=scores, **named)
        assert caught.value.parameter == "unlabelled_scores"
    with pytest.raises(InvalidValueError) as caught:
        Calibrator(pilot=None).fit(scores, y, unlabelled_scores=scores)
    assert caught.value.parameter == "unlabelled_scores"


@pytest.mark.parametrize("n", [1, 3, 10, 40, 200, 2_000])
def test_lower_limits_of_shares_miss_exactly_as_seldom_as_stated(n):
    """Units of weight 1, all inside or not: the number inside is binomial, for every share."""
    tail = 0.2
    inside = np.arange(n + 1.0)
    whole = np.full(n + 1, float(n))
    lower = _lower_share(inside, inside, whole, whole, whole, tail)
    for share in np.linspace(0.001, 0.999, 400):
        missed = stats.binom.pmf(inside, n, share)[lower > share].sum()
        assert missed <= tail


@pytest.mark.broad
def test_a_table_gives_the_fit_of_arrays_where_pilot_groups_decide_how_many_are_left():
    """1,000 groups, 900 of which are counted: fewer than 1,000 have coarser cells."""
    rng = np.random.default_rng(0)
    customer = np.repeat(np.arange(1_000), 3)
    scores = rng.uniform(size=customer.size)
    y = rng.uniform(size=customer.size) < scores
    arrays = Calibrator(n_bins=3).fit(scores, y, groups=customer)
    table = pa.table({"p": scores, "y": y, "customer": customer})
    data = scored(table, score="p", label="y", group="customer")
    assert Calibrator(n_bins=3).fit(data).to_dict() == arrays.to_dict()


@pytest.mark.parametrize("more", [{}, {"segments": ["a", "b", "a", "b"]}])
def test_all_units_in_one_half(more: dict) -> None:
    """Without pilot rows, the curve of the other half has no rows to fit: it is the first one."""
    names = set()
    for seed in range(8):
        fitted = Calibrator(random_state=seed).fit(
            [0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1], groups=[0, 0, 1, 1], **more
        )
        names.add(fitted.curve_)
        assert np.isfinite(fitted.predict([0.1, 0.9], **{name: ["a", "b"] for name in more})).all()
        assert fitted.guarantee_.epsilon > 0.4
    assert any("first curve" in name for name in names)
