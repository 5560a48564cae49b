"""Decision curves of weighted and of grouped rows: the truth is known, and lies in the bands."""

import numpy as np
import pytest

from calibrant import net_benefit, scored
from calibrant.errors import InvalidTypeError
from worlds.guarantees import assert_rare

pa = pytest.importorskip("pyarrow")

THRESHOLDS = np.array([0.1, 0.3, 0.5, 0.8])
ODDS = THRESHOLDS / (1.0 - THRESHOLDS)
ALPHA = 0.5


def benefit(scores, rates, weights):
    """The net benefit in the population in which each score has a rate and a weight."""
    acted = scores[:, None] >= THRESHOLDS
    worth = acted * (rates[:, None] - (1.0 - rates[:, None]) * ODDS)
    return np.average(worth, axis=0, weights=weights)


def is_missed(found, truth, rate):
    inside = (found.lower[0] <= truth) & (truth <= found.upper[0])
    everyone = rate - (1.0 - rate) * ODDS
    inside &= (found.act_on_all_lower <= everyone) & (everyone <= found.act_on_all_upper)
    return not inside.all()


LEVELS = np.array([0.05, 0.2, 0.4, 0.6, 0.9])
RATES = np.array([0.1, 0.15, 0.5, 0.55, 0.8])
WEIGHTS = np.array([3.0, 1.0, 0.2, 1.0, 2.0])


def weighted_rows(rng, n_rows=300):
    """Weights that follow scores and labels, as those of a sample that was drawn by outcome."""
    level = rng.integers(0, LEVELS.size, n_rows)
    y = rng.uniform(size=n_rows) < RATES[level]
    return LEVELS[level], y, WEIGHTS[level] * np.where(y, 1.0, 0.5)


@pytest.mark.slow
def test_weighted_bands_hold_for_all_thresholds_at_once():
    positive = WEIGHTS * RATES
    total = positive + WEIGHTS * 0.5 * (1.0 - RATES)
    truth = benefit(LEVELS, positive / total, total)
    rate = positive.sum() / total.sum()
    draws = 60
    missed = 0
    unweighted = 0
    asked = {"thresholds": THRESHOLDS, "confidence_level": 1 - ALPHA}
    for seed in range(draws):
        scores, y, weight = weighted_rows(np.random.default_rng([seed, 3]))
        found = net_benefit(y, scores, importance_weight=weight, weight_bound=3.0, **asked)
        missed += is_missed(found, truth, rate)
        unweighted += is_missed(net_benefit(y, scores, **asked), truth, rate)
    assert unweighted > draws / 2
    assert_rare(missed, draws, ALPHA, level=0.01)
    assert (found.upper - found.lower).max() < 0.8


def grouped_rows(rng, n_groups=150):
    """Groups of 1 or 8 rows that share score and label, the large ones of another rate."""
    size = np.where(rng.uniform(size=n_groups) < 0.3, 8, 1)
    level = rng.integers(0, LEVELS.size, n_groups)
    rates = np.where(size == 8, RATES[level] ** 2, RATES[level])
    y = rng.uniform(size=n_groups) < rates
    group = np.repeat(np.arange(n_groups), size)
    return LEVELS[level][group], y[group], group


@pytest.mark.slow
def test_grouped_bands_hold_where_rows_of_a_group_are_copies():
    large = 0.3 * 8
    small = 0.7
    rates = (small * RATES + large * RATES**2) / (small + large)
    truth = benefit(LEVELS, rates, np.ones(LEVELS.size))
    draws = 60
    missed = 0
    as_rows = 0
    for seed in range(draws):
        scores, y, groups = grouped_rows(np.random.default_rng([seed, 5]))
        asked = {"thresholds": THRESHOLDS, "confidence_level": 1 - ALPHA}
        found = net_benefit(y, scores, groups=groups, max_group_size=8, **asked)
        missed += is_missed(found, truth, rates.mean())
        as_rows += is_missed(net_benefit(y, scores, **asked), truth, rates.mean())
    assert_rare(missed, draws, ALPHA, level=0.01)
    assert as_rows > missed  # copies are no independent rows
    assert (found.upper - found.lower).max() < 1.2


def test_equal_weights_and_groups_of_one_row_change_no_value():
    scores, y, _ = weighted_rows(np.random.default_rng(1))
    plain = net_benefit(y, scores, thresholds=THRESHOLDS)
    weighted = net_benefit(
        y, scores, thresholds=THRESHOLDS, importance_weight=np.ones(y.size), weight_bound=1.0
    )
    grouped = net_benefit(
        y, scores, thresholds=THRESHOLDS, groups=np.arange(y.size), max_group_size=1
    )
    for found in (weighted, grouped):
        np.testing.assert_allclose(found.value, plain.value, atol=1e-12)
        np.testing.assert_allclose(found.act_on_all, plain.act_on_all, atol=1e-12)
        assert ((found.lower <= found.value) & (found.value <= found.upper)).all()


def test_more_models_and_thresholds_share_the_error_budget():
    scores, y, weight = weighted_rows(np.random.default_rng(2))
    bounds = {"importance_weight": weight, "weight_bound": 3.0}
    one = net_benefit(y, scores, thresholds=[0.3], **bounds)
    models = {"a": scores, "b": np.sqrt(scores)}
    two = net_benefit(y, models, thresholds=[0.3], **bounds)
    others = np.linspace(0.35, 0.9, 16)
    many = net_benefit(y, scores, thresholds=[0.3, *others], **bounds)
    widths = [found.upper[0, 0] - found.lower[0, 0] for found in (one, two, many)]
    assert widths[0] < widths[1] < widths[2]


def test_a_sample_gives_the_curves_of_its_arrays():
    scores, y, weight = weighted_rows(np.random.default_rng(4))
    table = pa.table({"risk": scores, "y": y, "w": weight})
    plain = net_benefit(scored(table, score="risk", label="y"), thresholds=THRESHOLDS)
    expected = net_benefit(y, {"risk": scores}, thresholds=THRESHOLDS)
    assert plain.models == expected.models == ("risk",)
    np.testing.assert_array_equal(plain.lower, expected.lower)
    data = scored(table, score="risk", label="y", weight="w", weight_bound=3.0)
    weighted = net_benefit(data, thresholds=THRESHOLDS)
    bounds = {"importance_weight": weight, "weight_bound": 3.0}
    same = net_benefit(y, scores, thresholds=THRESHOLDS, **bounds)
    np.testing.assert_array_equal(weighted.lower, same.lower)
    assert weighted.population == "in the weighted population"
    assert "their weights are right" in weighted.assumptions[0]
    assert weighted.population in weighted.details


@pytest.mark.parametrize(
    ("given", "parameter"),
    [({"importance_weight": [1.0, 2.0]}, "weight_bound"), ({"groups": [1, 2]}, "max_group_size")],
)
def test_a_bound_is_needed(given, parameter):
    with pytest.raises(InvalidTypeError) as refused:
        net_benefit([0, 1], [0.2, 0.7], **given)
    assert refused.value.parameter == parameter


def test_a_single_useful_threshold_is_no_range() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(2_000)
    y = (rng.random(2_000) < scores).astype(int)
    found = net_benefit(y, scores, thresholds=[0.2, 0.5, 0.9])
    assert "'model' at 1 of 3 thresholds, 0.5 (90% confidence" in found.sentence


def test_the_sentence_says_what_is_independent_and_whose_net_benefit_it_is() -> None:
    scores, y, weight = weighted_rows(np.random.default_rng(5), 200)
    grouped = {"groups": np.arange(200) // 4, "max_group_size": 4}
    found = net_benefit(y, scores, thresholds=[0.5], **grouped)
    assert found.sentence.endswith(
        "200 rows; net benefit of rows of new groups, if the groups are independent draws from one"
        " distribution)."
    )
    weighted = {"importance_weight": weight, "weight_bound": 3.0}
    found = net_benefit(y, scores, thresholds=[0.5], **weighted)
    assert found.sentence.endswith(
        "200 rows; net benefit in the weighted population, if the rows are independent draws from one"
        " distribution, and their weights are right and bounded)."
    )
    assert net_benefit(y, scores).sentence.endswith("200 rows, assumed independent).")
