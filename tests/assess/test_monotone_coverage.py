"""The band of a rate that does not fall: it holds at all scores at once, and says so when the rate
falls.
"""

import json
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.exceptions import NotFittedError

from calibrant import audit, scored
from calibrant.assess.monotone.run_limits import ScoredUnits
from calibrant.assess.monotone.runs import BandSteps, refutation, runs
from calibrant.errors import CalibrantWarning, InvalidValueError
from calibrant.intervals import MonotoneBand
from calibrant.sample.reader import read_rows
from read_marks import unmarked
from worlds.guarantees import assert_rare

GRID = np.linspace(-0.1, 1.1, 1201)
RATES = {
    "square": lambda s: np.clip(s, 0, 1) ** 2,
    "flat": lambda s: np.full(np.shape(s), 0.3),
    "steep": lambda s: expit(60 * (s - 0.5)),
    "jumps": lambda s: np.where(s < 0.2, 0.0, np.where(s < 0.6, 0.4, 1.0)),
    "rare": lambda s: 0.01 * np.clip(s, 0, 1),
}
SCORES = {
    "continuous": lambda rng, n: rng.uniform(size=n),
    "tied": lambda rng, n: np.round(rng.uniform(size=n), 1),
    "two values": lambda rng, n: rng.choice([0.2, 0.6], p=[0.9, 0.1], size=n),
    "lumps": lambda rng, n: np.where(rng.uniform(size=n) < 0.5, 0.5, rng.beta(0.4, 0.4, size=n)),
}


def quietly(
    scores: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None, **options: object
) -> MonotoneBand:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)
        return MonotoneBand(**options).fit(scores, y.astype(int), groups=groups, classes=(0, 1))


def is_missed(band: MonotoneBand, rate, scores: np.ndarray) -> bool:
    """Whether the band misses anywhere. To refute a rate that does not fall is a miss too."""
    places = np.unique(np.concatenate([GRID, scores]))
    lower, upper = band.steps_.at(places)
    return bool(
        band.is_refuted_
        or (lower > rate(places) + 1e-12).any()
        or (upper < rate(places) - 1e-12).any()
    )


@pytest.mark.slow
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("kind", SCORES)
def test_band_holds_at_all_scores_at_once(rate: str, kind: str) -> None:
    rng = np.random.default_rng([*rate.encode(), *kind.encode()])
    missed = 0
    for _ in range(40):
        scores = SCORES[kind](rng, 400)
        labels = rng.uniform(size=400) < RATES[rate](scores)
        missed += is_missed(quietly(scores, labels, confidence_level=0.8), RATES[rate], scores)
    assert_rare(missed, 40, 0.2)


@pytest.mark.slow
def test_a_weighted_band_holds_in_the_population_and_one_of_rows_alone_does_not() -> None:
    rng = np.random.default_rng(5)
    rate = RATES["square"]
    bound = 1.0
    missed = 0
    alone = 0
    for _ in range(40):
        scores = rng.uniform(size=3000)
        labels = rng.uniform(size=3000) < rate(scores)
        chance = np.where(labels, 0.6, 0.2)  # of being sampled: the weight depends on the label
        sampled = rng.uniform(size=3000) < chance
        p = scores[sampled]
        y = labels[sampled].astype(int)
        weight = 0.2 / chance[sampled]
        band = MonotoneBand(confidence_level=0.8).fit(
            p, y, importance_weight=weight, weight_bound=bound
        )
        missed += is_missed(band, rate, p)
        alone += is_missed(quietly(p, y, confidence_level=0.8), rate, p)
    assert_rare(missed, 40, 0.2)
    assert alone > 35
    assert np.diff(band.predict_interval(GRID)).mean() < 0.5
    assert "in the weighted population" in band.guarantee_.sentence
    read = MonotoneBand.from_dict(json.loads(json.dumps(band.to_dict())))
    assert unmarked(read.guarantee_) == str(band.guarantee_)


def follow_labels(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    return np.where(y, 1.0, 4.0)


def heavy(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    return np.minimum(np.exp(1.5 * rng.normal(size=y.size)), 20.0)


def half_of_negatives(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    return np.where(y, 1.0, rng.uniform(size=y.size) < 0.5)


def rare_negatives(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    return np.where(y, 1.0, np.where(rng.uniform(size=y.size) < 0.2, 10.0, 0.2))


def check_misses(fitted: Callable[[int], MonotoneBand], rate: float, alpha: float) -> None:
    """Bands of 400 seeds with one run miss its rate on each side in at most alpha / 2 of them."""
    above = 0
    below = 0
    for seed in range(400):
        ends = fitted(seed).predict_interval([1.0, 0.0])
        above += int(ends[0, 0] > rate)
        below += int(ends[1, 1] < rate)
    for missed in (above, below):
        assert_rare(missed, 400, alpha / 2.0)
    # if the limits were far too wide, neither would ever miss
    assert alpha < 0.5 or min(above, below) > 20


WEIGHTED = {  # the rate of the rows, their weights, the bound, and the rate of the population
    "follow labels": (0.3, follow_labels, 4.0, 0.3 / (0.3 + 0.7 * 4.0)),
    "heavy": (0.2, heavy, 20.0, 0.2),
    "half of negatives": (0.4, half_of_negatives, 1.0, 0.4 / (0.4 + 0.6 * 0.5)),
    "rare negatives": (0.9, rare_negatives, 10.0, 0.9 / (0.9 + 0.1 * (0.2 * 10.0 + 0.8 * 0.2))),
}


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("world", WEIGHTED)
def test_limits_of_a_weighted_run_miss_no_more_often_than_stated(world: str, alpha: float) -> None:
    """One run, with the same rate at every score, so that its limits are all that can miss.

    Rows are sorted by label, and the draws of the band have the seed of the data.
    """
    share, weights_of, bound, rate = WEIGHTED[world]

    def fitted(seed: int) -> MonotoneBand:
        rng = np.random.default_rng(seed)
        scores = rng.uniform(size=150)
        y = np.sort(rng.uniform(size=150) < share)
        return MonotoneBand(n_cells=1, confidence_level=1.0 - alpha, random_state=seed).fit(
            scores, y, importance_weight=weights_of(rng, y), weight_bound=bound, classes=(0, 1)
        )

    check_misses(fitted, rate, alpha)


def moods(rng: np.random.Generator, n_groups: int) -> tuple[np.ndarray, ...]:
    """Large groups have a higher rate."""
    large = rng.uniform(size=n_groups) < 0.5
    groups = np.repeat(np.arange(n_groups), np.where(large, 10, 1))
    y = rng.uniform(size=groups.size) < np.where(large, 0.8, 0.2)[groups]
    return groups, y, np.ones(y.size)


def until_positive(rng: np.random.Generator, n_groups: int) -> tuple[np.ndarray, ...]:
    """A group ends with its first positive row."""
    sizes = rng.geometric(0.3, size=n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    y = np.zeros(groups.size, dtype=bool)
    y[np.cumsum(sizes) - 1] = True
    return groups, y, np.ones(y.size)


def one_label_each(rng: np.random.Generator, n_groups: int) -> tuple[np.ndarray, ...]:
    groups = np.repeat(np.arange(n_groups), 4)
    y = (rng.uniform(size=n_groups) < 0.3)[groups]
    return groups, y, np.ones(y.size)


def rare_giants(rng: np.random.Generator, n_groups: int) -> tuple[np.ndarray, ...]:
    """One group in 50 has 200 rows, all positive."""
    giant = rng.uniform(size=n_groups) < 0.02
    groups = np.repeat(np.arange(n_groups), np.where(giant, 200, 1))
    y = rng.uniform(size=groups.size) < np.where(giant, 1.0, 0.2)[groups]
    return groups, y, np.ones(y.size)


def weights_of_labels(rng: np.random.Generator, n_groups: int) -> tuple[np.ndarray, ...]:
    """Groups of one or three rows that share a label, and weights that follow labels."""
    groups = np.repeat(np.arange(n_groups), rng.choice([1, 3], size=n_groups))
    y = (rng.uniform(size=n_groups) < 0.3)[groups]
    return groups, y, np.where(y, 0.25, 1.0)


GROUPED = {  # what is drawn, and the rate of a row drawn at random from a new group
    "moods": (moods, 0.5),
    "until positive": (until_positive, -0.3 * np.log(0.3) / 0.7),
    "one label each": (one_label_each, 0.3),
    "rare giants": (rare_giants, 0.98 * 0.2 + 0.02),
    "weights of labels": (weights_of_labels, 0.3 * 0.25 / (0.3 * 0.25 + 0.7)),
}


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("world", GROUPED)
def test_limits_of_a_run_of_groups_miss_no_more_often_than_stated(world: str, alpha: float) -> None:
    """One run, with the same rate at every score, so that its limits are all that can miss.

    Rows are sorted by label, and the draws of the band have the seed of the data.
    """
    drawn, rate = GROUPED[world]

    def fitted(seed: int) -> MonotoneBand:
        rng = np.random.default_rng(seed)
        groups, y, weights = drawn(rng, 160)
        order = np.argsort(y, kind="stable")
        return MonotoneBand(n_cells=1, confidence_level=1.0 - alpha, random_state=seed).fit(
            rng.uniform(size=y.size),
            y[order],
            groups=groups[order],
            importance_weight=weights[order],
            weight_bound=1.0,
            classes=(0, 1),
        )

    check_misses(fitted, rate, alpha)


def crowded(rng: np.random.Generator, n_groups: int) -> tuple[np.ndarray, ...]:
    """Half of the groups have six rows at one score, with one label; the others a single row.

    At a score that six rows share the rate is lower than at one with a single row: it depends on the
    other scores of the group.
    """
    many = rng.uniform(size=n_groups) < 0.5
    groups = np.repeat(np.arange(n_groups), np.where(many, 6, 1))
    score = np.round(rng.uniform(size=n_groups), 2)
    middle = (score**2 + score) / 2.0
    shift = np.minimum(middle, 1.0 - middle) * np.where(many, -1.0, 1.0)
    label = rng.uniform(size=n_groups) < middle + shift
    return score[groups], label[groups], groups


def sized(rng: np.random.Generator, n_groups: int) -> tuple[np.ndarray, ...]:
    """Large groups have a higher rate, and every group scores of its own place and spread."""
    mood = rng.choice([-1.0, 1.0], size=n_groups)
    groups = np.repeat(np.arange(n_groups), np.where(mood > 0, 10, 1))
    scores = rng.uniform(size=groups.size)
    rates = scores + 0.8 * mood[groups] * np.minimum(scores, 1 - scores)
    return scores, rng.uniform(size=groups.size) < rates, groups


BANDS = {
    "crowded": (crowded, lambda s: (np.clip(s, 0, 1) ** 2 + np.clip(s, 0, 1)) / 2.0),
    "sized": (sized, lambda s: np.clip(s, 0, 1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("world", BANDS)
def test_a_band_of_groups_holds_at_all_scores_at_once(world: str, alpha: float) -> None:
    drawn, rate = BANDS[world]
    missed = 0
    alone = 0
    n_draws = 60
    for seed in range(n_draws):
        scores, y, groups = drawn(np.random.default_rng(seed), 150)
        order = np.argsort(y, kind="stable")
        options = {"confidence_level": 1.0 - alpha, "random_state": seed}
        band = quietly(scores[order], y[order], groups=groups[order], **options)
        places = np.unique(scores)
        missed += is_missed(band, rate, places)
        if seed < 10:
            alone += is_missed(quietly(scores, y, **options), rate, places)
    assert_rare(missed, n_draws, alpha)
    assert alone > 5  # where groups are not given
    assert np.diff(band.predict_interval(GRID)).mean() < 0.75


def test_whole_groups_are_narrower_than_one_row_of_each() -> None:
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(400), 8)
    scores = rng.uniform(size=groups.size)
    mood = rng.normal(size=400)[groups]
    y = rng.uniform(size=groups.size) < expit(4.0 * scores - 2.0 + mood)
    whole = MonotoneBand().fit(scores, y, groups=groups)
    one = MonotoneBand().fit(scores[::8], y[::8])
    widths = [np.diff(band.predict_interval(GRID)).mean() for band in (whole, one)]
    assert widths[0] < 0.85 * widths[1]


def test_a_band_of_groups_does_not_depend_on_the_order_of_rows_and_survives_saving() -> None:
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(60), 5)
    scores = np.round(rng.uniform(size=300), 2)
    y = rng.uniform(size=300) < scores
    weights = rng.uniform(size=300)
    order = rng.permutation(300)
    one, other = (
        MonotoneBand().fit(
            scores[of],
            y[of],
            groups=groups[of],
            importance_weight=weights[of],
            weight_bound=1.0,
        )
        for of in (np.arange(300), order)
    )
    assert one.to_dict() == other.to_dict()
    frame = pd.DataFrame({"s": scores, "y": y, "g": groups, "w": weights})
    named = {"score": "s", "label": "y", "group": "g", "weight": "w", "weight_bound": 1.0}
    assert MonotoneBand().fit(scored(frame, **named)).to_dict() == one.to_dict()
    assert one.to_dict()["groups"] == [54, 6]
    read = MonotoneBand.from_dict(json.loads(json.dumps(one.to_dict())))
    assert unmarked(read.guarantee_) == str(one.guarantee_)
    assert (
        "of 54 groups are counted; 6 pilot groups only decide where the runs"
        in one.guarantee_.details
    )
    assert "no importance weight exceeds 1" in one.guarantee_.assumptions


def test_pilot_groups_only_cut_the_runs() -> None:
    """Their labels sharpen the bets, which are on the other groups."""
    rng = np.random.default_rng(5)
    rows = read_rows(
        rng.uniform(size=300), rng.uniform(size=300) < 0.4, groups=np.repeat(np.arange(60), 5)
    ).collect()
    pilot, counted = ScoredUnits.pilot_and_counted(rows, 1.0, 0)
    assert (pilot.n_units, counted.n_units) == (6, 54)
    assert not np.intersect1d(pilot.units.unit, counted.units.unit).size
    np.testing.assert_allclose(counted.units.totals.max(), 1.0)
    steps = BandSteps.of_units(counted, pilot, "auto", 0.1, rng)
    assert steps.n_rows == 270
    assert np.isin(steps.lower_knots, pilot.scores).all()
    assert np.isin(steps.upper_knots, pilot.scores).all()


@pytest.mark.parametrize("n_groups", [1, 2])
def test_a_band_needs_two_groups(n_groups: int) -> None:
    groups = np.arange(4) % n_groups
    if n_groups == 1:
        with pytest.raises(InvalidValueError) as caught:
            MonotoneBand().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], groups=groups)
        assert caught.value.parameter == "groups"
        return
    band = MonotoneBand().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], groups=groups)
    assert band.predict_interval([0.25]).tolist() == [[0.0, 1.0]]


def test_bets_on_weighted_rows_are_narrower_than_rows_that_are_kept_by_weight() -> None:
    rng = np.random.default_rng(3)
    scores = rng.uniform(size=1_000)
    y = rng.uniform(size=1_000) < scores**1.5
    weight = np.minimum(np.exp(rng.normal(size=1_000)), 10.0)
    kept = rng.uniform(size=1_000) * 10.0 < weight
    bets = MonotoneBand().fit(scores, y, importance_weight=weight, weight_bound=10.0)
    thinned = MonotoneBand().fit(scores[kept], y[kept])
    widths = [np.diff(band.predict_interval(GRID)).mean() for band in (bets, thinned)]
    assert widths[0] < 0.95 * widths[1]


def test_a_band_without_rows_says_nothing() -> None:
    band = MonotoneBand().fit([0.2, 0.8], [0, 1], importance_weight=[1.0, 1.0], weight_bound=1e12)
    assert band.predict_interval([0.5]).tolist() == [[0.0, 1.0]]
    assert band.largest_error() is None


def test_a_weight_above_its_bound_is_refused_in_every_row_of_a_group() -> None:
    scores = [0.2, 0.3, 0.8, 0.9]
    labels = [0, 0, 1, 1]
    groups = ["a", "a", "b", "b"]
    for row in range(4):
        weight = [1.0, 1.0, 1.0, 1.0]
        weight[row] = 2.5
        with pytest.raises(
            InvalidValueError, match=f"at most weight_bound=2; got 2.5 at row index {row}"
        ):
            MonotoneBand().fit(
                scores, labels, groups=groups, importance_weight=weight, weight_bound=2.0
            )


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_band_holds_for_a_handful_of_rows(n: int) -> None:
    rng = np.random.default_rng(n)
    missed = 0
    for _ in range(200):
        scores = rng.uniform(size=n)
        missed += is_missed(
            quietly(scores, rng.uniform(size=n) < RATES["jumps"](scores), confidence_level=0.5),
            RATES["jumps"],
            scores,
        )
    assert_rare(missed, 200, 0.5)


def test_a_file_sorted_by_label_changes_nothing_since_ties_stay_together() -> None:
    rng = np.random.default_rng(1)
    scores = np.round(rng.uniform(size=3_000), 1)
    y = (rng.uniform(size=3_000) < scores**2).astype(int)
    bands = [
        quietly(scores[order], y[order])
        for order in (np.arange(3_000), np.argsort(y), np.argsort(-y))
    ]
    assert bands[0].to_dict() == bands[1].to_dict() == bands[2].to_dict()
    constant = quietly(np.full(500, 0.3), np.sort(rng.uniform(size=500) < 0.3))
    lower, upper = constant.predict_interval([0.3])[0]
    assert lower < 0.3 < upper
    np.testing.assert_array_equal(
        constant.predict_interval([0.2999, 0.3001]), [[0, upper], [lower, 1]]
    )


def test_limits_are_the_best_over_all_runs() -> None:
    from calibrant.limits.non_identical import non_identical

    rng = np.random.default_rng(2)
    scores = np.sort(rng.uniform(size=60))
    y = (rng.uniform(size=60) < scores).astype(int)
    band = quietly(scores, y, n_cells=60)
    start, stop = runs(60)
    assert band.n_runs_ == start.size
    assert (band.n_rows_, band.n_features_in_) == (60, 1)
    hits = np.array([y[a:b].sum() for a, b in zip(start, stop, strict=True)])
    limits = non_identical(stop - start, hits, 0.1 / (2 * start.size), stop - start == 1)
    for s, (lower, upper) in zip(GRID, band.predict_interval(GRID), strict=True):
        assert lower == pytest.approx(max([0.0, *limits.lower[scores[stop - 1] <= s]]))
        assert upper == pytest.approx(min([1.0, *limits.upper[scores[start] >= s]]))


@pytest.mark.parametrize(("rate", "largest"), [("square", 0.085), ("flat", 0.06), ("steep", 0.04)])
def test_band_is_narrow(rate: str, largest: float) -> None:
    rng = np.random.default_rng(3)
    scores = rng.uniform(size=10_000)
    band = quietly(scores, rng.uniform(size=10_000) < RATES[rate](scores))
    assert np.diff(band.predict_interval(np.linspace(0.01, 0.99, 99))).mean() / 2 < largest


def test_a_rate_that_falls_is_refuted_and_the_place_is_named() -> None:
    rng = np.random.default_rng(4)
    scores = rng.uniform(size=4_000)
    y = (rng.uniform(size=4_000) < np.where(scores < 0.7, 0.2 + scores / 2, 0.1)).astype(int)
    with pytest.warns(CalibrantWarning, match="the rate falls somewhere as the score rises"):
        band = MonotoneBand().fit(scores, y)
    found = band.refutation_
    assert band.is_refuted_
    assert found.high < found.other_low
    assert found.other_high > 0.7 > found.low
    assert found.at_most < found.at_least
    assert band.guarantee_.sentence.startswith("The rate falls somewhere as the score rises: ")
    assert str(found) in band.guarantee_.details
    np.testing.assert_array_equal(band.predict_interval([0.1, 0.9]), [[0, 1], [0, 1]])
    assert band.largest_error() is None
    assert any("the rate falls somewhere" in text for text in audit(y, scores, monotone=True).notes)


def test_a_refutation_is_the_pair_of_runs_that_cross_by_most() -> None:
    rng = np.random.default_rng(5)
    low = rng.uniform(size=50)
    high = low + rng.uniform(0, 0.3, size=50)
    lower = rng.uniform(0, 0.6, size=50)
    upper = lower + rng.uniform(0, 0.4, size=50)
    low[7] = high[3]  # one that begins where another ends
    gaps = np.where(high[:, None] <= low, lower[:, None] - upper, -1.0)
    one, other = np.unravel_index(gaps.argmax(), gaps.shape)
    found = refutation(low, high, lower, upper)
    assert (found.low, found.high, found.at_least) == (low[one], high[one], lower[one])
    assert (found.other_low, found.other_high, found.at_most) == (
        low[other],
        high[other],
        upper[other],
    )
    assert refutation(low, high, lower, np.ones(50)) is None
    touching = [np.array(pair) for pair in ([0.1, 0.3], [0.3, 0.5], [0.4, 0.0], [1.0, 0.2])]
    assert refutation(*touching).at_least == 0.4


def test_flipping_labels_and_scores_mirrors_the_band() -> None:
    rng = np.random.default_rng(5)
    scores = rng.uniform(size=1_024)
    y = (rng.uniform(size=1_024) < scores).astype(int)
    band = quietly(scores, y, n_cells=64)
    mirrored = quietly(-scores, 1 - y, n_cells=64)
    np.testing.assert_allclose(
        1 - mirrored.predict_interval(-GRID)[:, ::-1], band.predict_interval(GRID), atol=0.03
    )  # runs start at other cells
    looser, tighter = (
        quietly(scores, y, confidence_level=level).predict_interval(GRID) for level in (0.99, 0.6)
    )
    assert (looser[:, 0] <= tighter[:, 0]).all()
    assert (looser[:, 1] >= tighter[:, 1]).all()


def test_limits_never_fall_and_survive_saving() -> None:
    rng = np.random.default_rng(6)
    scores = rng.normal(size=700)
    y = np.where(rng.uniform(size=700) < expit(2 * scores), "yes", "no")
    band = MonotoneBand(pos_label="yes").fit(scores, y)
    limits = band.predict_interval(np.linspace(-4, 4, 500))
    assert (np.diff(limits, axis=0) >= 0).all()
    again = MonotoneBand.from_dict(json.loads(json.dumps(band.to_dict())))
    np.testing.assert_array_equal(again.predict_interval(scores), band.predict_interval(scores))
    assert again.to_dict() == band.to_dict()
    broken = band.to_dict() | {"lower": band.to_dict()["lower"][::-1]}
    with pytest.raises(InvalidValueError) as caught:
        MonotoneBand.from_dict(broken)
    assert caught.value.parameter == "lower"


def test_audit_says_what_is_known_about_single_scores() -> None:
    rng = np.random.default_rng(7)
    scores = rng.uniform(size=10_000)
    y = (rng.uniform(size=10_000) < scores**2).astype(int)
    report = audit(y, scores, monotone=True)
    finding = report.monotone.largest_error()
    assert not finding.is_too_low
    assert finding.limit >= finding.score**2
    assert f"at scores near {finding.score:.3g} the rate is at most" in report.details
    calibrated = audit((rng.uniform(size=10_000) < scores).astype(int), scores, monotone=True)
    assert "no single score is shown to be off" in calibrated.details
    assert audit(y, scores).monotone is None
    assert "does not fall" not in str(audit(y, scores))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence_level": 1.0}, "confidence_level must be a number strictly between 0 and 1"),
        ({"n_cells": 0}, "n_cells must be an int >= 1"),
    ],
)
def test_bad_parameters_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MonotoneBand(**options).fit([0.1, 0.2], [0, 1])


@pytest.mark.parametrize(
    "ask", [lambda band: band.guarantee_, lambda band: band.to_dict(), lambda band: band.knots_]
)
def test_a_band_that_is_not_fitted_says_so(ask) -> None:
    with pytest.raises(NotFittedError):
        ask(MonotoneBand())


def test_cells_are_ten_times_the_cube_root_of_the_rows():
    scores = np.arange(1000) / 1000
    automatic, given = (
        MonotoneBand(n_cells=cells).fit(scores, np.arange(1000) % 2) for cells in ("auto", 100)
    )
    assert automatic.n_runs_ == given.n_runs_ == 638


def test_a_single_group_is_refused_with_advice_that_a_band_can_follow() -> None:
    with pytest.raises(InvalidValueError) as told:
        MonotoneBand().fit([0.1, 0.4, 0.8], [0, 1, 1], groups=[5, 5, 5])
    assert str(told.value).endswith("got 1 group: use more groups")
