"""Plans: what is planned is what a fit then delivers."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

import calibrant
from calibrant import BinningCalibrator, Calibrator, Tally, plan
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.intervals import METHODS, get_method
from calibrant.limits.empirical_bernstein import largest_bernstein
from calibrant.text import numbers
from worlds.guarantees import assert_kept, assert_rare

PLANNED = [*METHODS]
"""The methods that `plan` offers, the default first."""


def farthest(lower: np.ndarray, upper: np.ndarray, k: np.ndarray, rows: int) -> np.ndarray:
    """Largest distance from a limit to either value that is planned for, the mean and Jeffreys'."""
    mean = k / rows
    jeffreys = (k + 0.5) / (rows + 1)
    return np.maximum(upper - np.minimum(mean, jeffreys), np.maximum(mean, jeffreys) - lower)


def radii(rows: int, n_bins: int, interval: str, alpha: float = 0.095) -> np.ndarray:
    """Every count of positives: all at once, with an alpha that leaves each interval its level
    among `n_bins`.
    """
    method = get_method(interval)
    k = np.arange(rows + 1)
    if method.exact:  # Sidak's level
        limits = method(Tally.from_counts([rows] * k.size, k), 1 - (1 - alpha) ** (k.size / n_bins))
        return farthest(limits.lower, limits.upper, k, rows)
    size = 9 * n_bins  # Bonferroni's level
    limits = [
        method(
            Tally.from_counts([rows] * size, np.resize(k[start : start + size], size)),
            alpha * size / n_bins,
        )
        for start in range(0, k.size, size)
    ]
    lower, upper = (
        np.concatenate([getattr(limit, side) for limit in limits])[: k.size]
        for side in ("lower", "upper")
    )
    return farthest(lower, upper, k, rows)


def worst_radius(rows: int, n_bins: int, interval: str, alpha: float = 0.095) -> float:
    return float(radii(rows, n_bins, interval, alpha).max())


@pytest.mark.broad
@pytest.mark.parametrize("interval", PLANNED)
@pytest.mark.parametrize("rows", [7, 60, 301])
def test_worst_case_equals_the_search_over_every_count(rows: int, interval: str) -> None:
    planned = plan(n=3 * (rows + 1) - 1, n_bins=3, interval=interval, pilot=None)
    assert planned.rows_per_bin == rows
    assert planned.epsilon == pytest.approx(worst_radius(rows, 3, interval), rel=1e-9)


@pytest.mark.parametrize(
    "interval",
    [pytest.param(name, marks=pytest.mark.broad if name != PLANNED[0] else ()) for name in PLANNED],
)
@pytest.mark.parametrize(
    ("split", "n"),
    [
        (None, 13),
        ("auto", 30),
        *(pytest.param(None, n, marks=pytest.mark.broad) for n in (6, 27, 28, 31)),
    ],
)
def test_without_a_split_the_plan_is_the_worst_over_all_sizes_and_counts(
    n: int, split: str, interval: str
) -> None:
    scores = np.random.default_rng(n).uniform(size=n)
    made = BinningCalibrator(n_bins=2, interval=interval, pilot=split)
    fit = partial(made.fit, classes=(0, 1))
    sizes = set(fit(scores, np.zeros(n)).tally_.counts.tolist())
    worst = max(
        worst_radius(size, 2, interval, 0.095 if split is None else 0.095 * 0.99) for size in sizes
    )
    planned = plan(n=n, n_bins=2, interval=interval, pilot=split)
    assert planned.probability == 1.0
    assert worst <= planned.epsilon == pytest.approx(worst, rel=1e-9)
    for k in range(n + 1):  # what a fit delivers, with the positives at one end
        assert fit(scores, np.arange(n) < k).guarantee_.epsilon <= planned.epsilon


@pytest.mark.broad
@pytest.mark.parametrize("interval", PLANNED)
def test_with_a_split_no_larger_bin_is_worse(interval: str) -> None:
    planned = plan(n=220, n_bins=1, interval=interval, pilot=60)
    assert 0 < planned.rows_per_bin < 100
    assert planned.probability == 0.9
    worst = [worst_radius(rows, 1, interval) for rows in range(planned.rows_per_bin, 161)]
    assert max(worst) <= planned.epsilon < 1.3 * worst[0]
    assert (
        plan(n=10, n_bins=2, interval=interval, pilot=5).epsilon == 1.0
    )  # a bin may hold a single row


@pytest.mark.broad
@pytest.mark.parametrize("interval", PLANNED)
@pytest.mark.parametrize("rows", [3_001, 12_000])
def test_large_bins_are_planned_with_a_bound_that_is_hardly_larger(
    rows: int, interval: str, monkeypatch
) -> None:
    planned = plan(n=rows, n_bins=1, interval=interval)
    monkeypatch.setattr("calibrant.assess.plan.planned_rows._MOST_TRIED", 0)
    assert (
        planned.epsilon
        <= plan(n=rows, n_bins=1, interval=interval).epsilon
        < 1.02 * planned.epsilon
    )


@pytest.mark.broad
@pytest.mark.parametrize("base_rate", [0.03, 0.2, 0.97])
@pytest.mark.parametrize("interval", PLANNED)
@pytest.mark.parametrize("probability", [0.9, 0.99])
def test_a_base_rate_is_planned_with_the_stated_probability(
    base_rate: float, interval: str, probability: float
) -> None:
    # exactly: the number of positives is binomial, and in the worst case all of them are in one bin
    # of 99
    n = 199
    rarer = min(base_rate, 1 - base_rate)
    planned = plan(
        n=n, n_bins=2, base_rate=base_rate, interval=interval, probability=probability, pilot=None
    )
    assert planned.rows_per_bin == 99
    k = np.arange(100)
    radius = radii(99, 2, interval)
    reached = np.maximum.accumulate(radius) <= planned.epsilon
    assert stats.binom.pmf(k[reached], n, rarer).sum() >= probability or reached.all()
    assert planned.epsilon == pytest.approx(
        radius[: int(stats.binom.ppf(probability, n, rarer)) + 1][:50].max(), rel=1e-9
    )


@pytest.mark.broad
@pytest.mark.parametrize("epsilon", [0.2, 0.05, 0.01])
@pytest.mark.parametrize("n_bins", [1, 10])
def test_planned_number_is_enough_and_one_less_is_not(epsilon: float, n_bins: int) -> None:
    planned = plan(epsilon=epsilon, n_bins=n_bins)
    assert planned.epsilon <= epsilon
    assert plan(n=planned.n - 1, n_bins=n_bins).epsilon > epsilon
    assert plan(n=planned.n, n_bins=n_bins) == planned


@pytest.mark.broad
def test_a_fit_of_planned_size_delivers_the_planned_epsilon() -> None:
    planned = plan(epsilon=0.08, n_bins=5)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        scores = rng.uniform(size=planned.n)
        y = rng.uniform(size=planned.n) < 0.5
        assert BinningCalibrator(n_bins=5).fit(scores, y).guarantee_.epsilon <= 0.08


@pytest.mark.broad
def test_rare_events_need_fewer_labels() -> None:
    worst = plan(epsilon=0.01, n_bins=10)
    rare = plan(epsilon=0.01, n_bins=10, base_rate=0.001)
    assert rare.n < worst.n / 5
    assert plan(epsilon=0.01, n_bins=10, base_rate=0.999).n == rare.n
    # ten bins of equal mass can hold all positives of a 20 % base rate in four of them: the worst
    # case again, nearly
    assert plan(epsilon=0.01, n_bins=10, base_rate=0.2).n == pytest.approx(worst.n, rel=0.01)


def test_split_counts_on_the_papers_bound_for_the_emptiest_bin() -> None:
    planned = plan(n=100_000, n_bins=10, pilot=20_000)
    expected = 80_000 / 20 - np.sqrt(80_000 * np.log(200) / 2)
    assert planned.rows_per_bin == int(expected)
    # a fraction draws each row by itself: half of the tail is for the number of rows that cut
    counting = 100_000 - stats.binom.ppf(1 - 0.025, 100_000, 0.2)
    expected = counting / 20 - np.sqrt(counting * np.log(400) / 2)
    assert plan(n=100_000, n_bins=10, pilot=0.2).rows_per_bin == int(expected)
    assert plan(n=1200, n_bins=10, pilot=0.2).rows_per_bin == 0  # vacuous for so few rows
    assert plan(n=1200, n_bins=10, pilot=0.2).epsilon == 1.0


@pytest.mark.broad
def test_papers_bound_on_the_emptiest_bin_holds() -> None:
    planned = plan(n=40_000, n_bins=10, pilot=0.2)
    rng = np.random.default_rng(0)

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            scores = rng.uniform(size=40_000)
            fitted = BinningCalibrator(n_bins=10, pilot=0.2, random_state=rng).fit(
                scores, scores < 0.5
            )
            yield {"fewest rows": fitted.tally_.counts.min() < planned.rows_per_bin}

    assert_kept(simulate(), 0.1, caught=0.18)


def test_the_answer_is_a_sentence() -> None:
    assert (
        plan(n=10_000, n_bins=10).sentence
        == "With 10,000 labels and BinningCalibrator, the true rate in each of 10 score ranges will"
        " be within 4.3 points of the prediction (90% confidence, if no scores are tied)."
    )
    assert plan(n=10_000, n_bins=10).notes[2] == (
        "Each score range has at least 956 rows, whatever the rates."
    )


def test_a_plan_names_the_calibrator_that_it_is_for() -> None:
    for planned in (
        plan(n=10_000),
        plan(n=10_000, base_rate=0.1, pilot=0.5),
        plan(n=4000, group_size=8, icc=0.3),
    ):
        assert planned.calibrator == "BinningCalibrator"
        assert f" and {planned.calibrator}, the true rate in each of 10" in planned.sentence
        assert "(90% confidence, " in planned.sentence
        assert f"This plan is for {planned.calibrator}" in planned.details


def test_a_fit_of_the_named_calibrator_reaches_the_plan_and_the_default_nearly() -> None:
    planned = plan(n=4_000, n_bins=10)
    named = getattr(calibrant, planned.calibrator)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        scores = rng.uniform(size=4_000)
        y = rng.uniform(size=4_000) < scores
        assert named(n_bins=10).fit(scores, y).guarantee_.epsilon <= planned.epsilon
        assert Calibrator(n_bins=10).fit(scores, y).guarantee_.epsilon <= 1.2 * planned.epsilon


SMOOTH = {
    "calibrated": lambda s: s,
    "overconfident": lambda s: 1.0 / (1.0 + np.sqrt((1.0 - s) / s)),
    "square": lambda s: s**2,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "n_bins", "level"), [(1_000, 10, 0.9), (700, 3, 0.8), (4_000, 7, 0.99)]
)
def test_nine_of_ten_curves_reach_what_is_planned_for_smooth_rates(n, n_bins, level):
    planned = plan(n=n, n_bins=n_bins, confidence_level=level, calibrator="Calibrator")
    reached = []
    for number, rate in enumerate(SMOOTH.values()):
        for seed in range(12):
            rng = np.random.default_rng([11, number, seed])
            scores = rng.uniform(1e-6, 1.0, size=n)
            y = rng.uniform(size=n) < rate(scores)
            model = Calibrator(n_bins=n_bins, confidence_level=level, random_state=seed)
            reached.append(model.fit(scores, y).guarantee_.epsilon)
    missed = int((np.array(reached) > planned.epsilon).sum())
    assert_rare(missed, len(reached), 0.1, level=0.01)
    assert planned.epsilon < 2.0 * np.mean(reached)  # and no more labels than are needed, about


def test_a_plan_for_the_curve_says_that_it_is_for_smooth_rates_and_takes_more_labels():
    planned = plan(epsilon=0.05, calibrator="Calibrator")
    assert planned.calibrator == "Calibrator"
    assert "if the rate rises smoothly and clearly with untied scores" in planned.sentence
    assert "not a bound for all rates" in planned.details
    assert "whatever the rates" not in planned.details
    assert planned.n > plan(epsilon=0.05).n
    assert planned.epsilon <= 0.05
    before = plan(n=planned.n - 1, calibrator="Calibrator")
    assert before.epsilon > 0.05
    assert planned.to_dict()["probability"] == 0.9


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"n": 10_000, "base_rate": 0.1}, "base_rate"),
        ({"n": 10_000, "pilot": 0.5}, "pilot"),
        ({"n": 10_000, "probability": 0.5}, "probability"),
        ({"n": 10_000, "group_size": 5, "icc": 0.1}, "group_size"),
        ({"n": 10_000, "interval": "hoeffding"}, "interval"),
        ({"n": 700}, "n"),
        ({"n": 10_000, "n_bins": 2}, "n_bins"),
    ],
)
def test_what_is_not_planned_for_the_curve_is_refused(given, name):
    with pytest.raises(InvalidValueError) as caught:
        plan(**given, calibrator="Calibrator")
    assert caught.value.parameter == name


@pytest.mark.parametrize("asked", [{"epsilon": 0.03}, {"n": 20_000}])
def test_a_plan_for_bins_also_plans_the_default_fit(asked: dict) -> None:
    """Those who plan and then fit the default calibrator read its number in the plan itself."""
    found = plan(**asked)
    of_curve = plan(**asked, calibrator="Calibrator")
    assert found.default_fit == of_curve
    assert of_curve.default_fit is None
    assert found.to_dict()["default_fit"] == {"n": of_curve.n, "epsilon": of_curve.epsilon}
    assert "This plan is for BinningCalibrator. With Calibrator, the default," in found.details
    most = numbers.points(numbers.upper(of_curve.epsilon))
    assert f"{of_curve.n:,} labels keep it within {most} in about 9 of 10" in found.details


@pytest.mark.parametrize(
    "settings",
    [
        {"n": 20_000, "base_rate": 0.1},
        {"n": 20_000, "n_bins": 2},
        {"n": 500},
        {"n": 20_000, "group_size": 10, "icc": 0.2},
    ],
)
def test_a_plan_that_the_default_fit_cannot_have_says_so(settings: dict) -> None:
    found = plan(**settings)
    assert found.default_fit is None
    assert found.notes[0] == (
        "This plan is for BinningCalibrator, not for the default, Calibrator."
    )


def test_the_default_fit_reaches_its_plan_in_9_of_10_fits() -> None:
    """Known truth: the rate is the score."""
    planned = plan(epsilon=0.1, n_bins=5).default_fit
    reached = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rates = rng.random(planned.n)
        y = rng.random(planned.n) < rates
        fitted = Calibrator(n_bins=5, random_state=seed).fit(rates, y)
        reached += fitted.guarantee_.epsilon <= 0.1
    assert stats.binom.cdf(reached, 30, 0.9) > 0.01


@pytest.mark.broad
@pytest.mark.parametrize("decimals", [1, 2])
def test_ties_need_about_three_quarters_more_labels(decimals: int) -> None:
    """The worst rate, 1/2 in every bin: as many labels are too few, with 75% more almost all fits
    reach the planned epsilon.
    """
    planned = plan(epsilon=0.1, n_bins=10)
    assert "If scores are tied, label about 75% more rows" in planned.notes[1]

    def reached(n: int) -> int:
        found = []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            scores = rng.random(n).round(decimals)
            y = rng.random(n) < 0.5
            fitted = BinningCalibrator(n_bins=10, random_state=seed).fit(scores, y)
            found.append(fitted.guarantee_.epsilon <= 0.1)
        return sum(found)

    assert reached(planned.n) < 20
    assert reached(round(1.75 * planned.n)) >= 38


def test_advice_on_ties_fits_the_pilot_rows() -> None:
    assert plan(n=5_000, pilot=None).notes[1] == (
        "If scores are tied, plan and fit with pilot='auto'."
    )
    assert plan(n=5_000, pilot=0.5).notes[1] == "If scores are tied, label more rows."
    grouped = plan(n=5_000, group_size=10, icc=0.2)
    assert not any("tied" in note for note in grouped.notes)
    assert grouped.notes[1].startswith("The design effect is 2.8; each score range has at least ")
    curve = plan(n=5_000, calibrator="Calibrator")
    assert curve.notes == (
        "If scores are tied, the same number of labels was enough in simulated fits.",
        f"Each score range has about {curve.rows_per_bin:,} rows.",
        "This is an estimate from simulations, not a bound for all rates.",
    )


def test_other_calibrators_are_not_planned_for():
    with pytest.raises(InvalidValueError) as caught:
        plan(n=10_000, calibrator="PlattCalibrator")
    assert caught.value.parameter == "calibrator"


@pytest.mark.parametrize("split", ["auto", 0.5, 0.2, 2_000])
@pytest.mark.parametrize("base_rate", [0.005, 0.05, 0.5, 0.8])
def test_a_base_rate_never_asks_for_more_labels_nor_gives_a_larger_epsilon(
    split: float, base_rate: float
) -> None:
    for epsilon in (0.1, 0.05):
        alone = plan(epsilon=epsilon, pilot=split)
        planned = plan(epsilon=epsilon, pilot=split, base_rate=base_rate)
        assert planned.n <= alone.n
        assert planned.epsilon <= epsilon
        assert planned.base_rate == base_rate
        assert plan(n=planned.n - 1, pilot=split, base_rate=base_rate).epsilon > epsilon
    for n in (3_000, 50_000):
        assert plan(n=n, pilot=split, base_rate=base_rate).epsilon <= plan(n=n, pilot=split).epsilon


def test_the_answer_says_how_likely_it_is() -> None:
    assert plan(n=10_000, n_bins=10, base_rate=0.06, probability=0.95).sentence.endswith(
        " with a probability of at least 95% (90% confidence, if no scores are tied and 6% of rows"
        " are positive)."
    )


@pytest.mark.parametrize("arguments", [{}, {"epsilon": 0.1, "n": 100}])
def test_either_epsilon_or_n_is_given(arguments: dict) -> None:
    with pytest.raises(
        TypeError, match=r"epsilon must be given if n is not, and only then; got (neither|both)"
    ):
        plan(**arguments)


@pytest.mark.parametrize("epsilon", [0.05804, 0.0421004, 0.07, 0.00012341])
def test_text_never_shows_less_than_epsilon(epsilon: float) -> None:
    text = str(replace(plan(n=10_000), epsilon=epsilon))
    said = float(" ".join(text.split()).split("will be within ")[1].split()[0]) / 100
    assert epsilon <= said + 1e-15 < 1.1 * epsilon


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 5, "n_bins": 10}, "n must be at least n_bins=10; got 5"),
        ({"n": 10**13}, "n must be at most 1,000,000,000,000; got 10000000000000"),
        (
            {"epsilon": 1e-8},
            "epsilon must be large enough for 1,000,000,000,000 labels to reach it; got 1e-08",
        ),
        (
            {"n": 100, "interval": "betting"},
            "interval must be one of 'clopper-pearson', .*; got 'betting'",
        ),
        ({"n": 100, "base_rate": 0.1, "probability": 1}, "probability must be"),
        (
            {"n": 100, "pilot": 0},
            (
                "pilot must be a fraction strictly between 0 and 1, a number of rows >= 1 or"
                " .auto.; got 0"
            ),
        ),
    ],
)
def test_bad_input_is_refused_by_name(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(**arguments)


def test_rows_of_the_smallest_bin_of_a_split_follow_the_bound() -> None:
    for n, split, n_bins in ((2_000_000, 200_000, 10), (3_000_000, 100_000, 40)):
        found = plan(n=n, pilot=split, n_bins=n_bins, probability=0.95)
        counting = n - split
        log_term = np.log(2 * n_bins / 0.05)
        expected = np.floor(counting / (2 * n_bins) - np.sqrt(counting * log_term / 2))
        assert found.rows_per_bin == expected
    found = plan(
        n=400_000, pilot=100_000, n_bins=1, probability=0.5
    )  # a term that is not much larger than 1
    assert found.rows_per_bin == np.floor(150_000 - np.sqrt(150_000 * np.log(4)))


def test_a_plan_by_hoeffding_is_his_radius_and_the_distance_of_jeffreys_value_at_rate_0() -> None:
    for n, n_bins in ((20_000, 2), (3_000, 1)):
        found = plan(n=n, n_bins=n_bins, pilot=n // 2, interval="hoeffding")
        radius = np.sqrt(np.log(2 * n_bins / 0.095) / (2 * found.rows_per_bin))
        assert found.epsilon == pytest.approx(radius + 0.5 / (found.rows_per_bin + 1), rel=1e-9)


@pytest.mark.broad
def test_a_plan_for_groups_is_reached_as_often_as_it_says():
    rng = np.random.default_rng(0)
    missed = 0
    planned = plan(n=4000, n_bins=4, group_size=8, icc=0.3)
    assert planned.design_effect == pytest.approx(3.1)
    for seed in range(20):
        groups = np.repeat(np.arange(500), 8)
        y = rng.uniform(size=4000) < rng.beta(7 / 6, 7 / 6, size=500)[groups]
        scores = rng.uniform(size=500)[groups]  # all rows of a group in one bin: the worst case
        fitted = BinningCalibrator(4, random_state=seed).fit(scores, y, groups=groups)
        missed += fitted.guarantee_.epsilon > planned.epsilon
    assert missed <= 5  # of 20 at most 10 %: 6 or more have a probability of 1.1 %
    assert planned.epsilon < 0.2


def test_groups_need_more_labels_and_a_target_is_met():
    alone, alike = (plan(epsilon=0.1, n_bins=4, group_size=10, icc=icc) for icc in (0.0, 0.5))
    assert alone.n < alike.n
    assert alike.n % 10 == 0
    assert plan(n=alike.n, n_bins=4, group_size=10, icc=0.5).epsilon <= 0.1
    assert plan(n=alike.n - 10, n_bins=4, group_size=10, icc=0.5).epsilon > 0.1


@pytest.mark.parametrize(
    "options",
    [{"group_size": 3}, {"icc": 0.1}, {"icc": 2.0, "group_size": 3}, {"icc": 0.1, "group_size": 0}],
)
def test_a_plan_for_groups_needs_a_size_and_a_correlation(options):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=r"icc|group_size"):
        plan(n=1000, **options)
    with pytest.raises(InvalidValueError, match="pilot must keep its default with groups"):
        plan(n=1000, group_size=2, icc=0.1, pilot=None)


def test_the_bound_of_empirical_bernstein_is_where_the_radius_meets_what_is_left():
    for rows, most in ((40, 40), (80, 30), (200, 100), (1000, 100)):
        log_term = np.log(3 * 4 / 0.1) / rows
        grid = np.linspace(0, min(most / rows, 0.5), 200_001)
        radius = np.sqrt(2 * grid * (1 - grid) * log_term) + 3 * log_term
        largest = min(1.0, np.minimum(1 - grid, radius).max() + 0.5 / (rows + 1))
        assert min(1.0, largest_bernstein(rows, most, 0.1, 4)) == pytest.approx(largest, abs=1e-5)


def test_the_epsilon_of_a_plan_for_groups_is_reached_with_as_many_groups_and_no_more() -> None:
    planned = plan(n=4000, n_bins=4, group_size=8, icc=0.3)
    again = plan(epsilon=planned.epsilon, n_bins=4, group_size=8, icc=0.3)
    assert again.n <= planned.n


def test_one_group_may_cut_bins_and_one_group_may_be_counted() -> None:
    planned = plan(n=8_000_000, n_bins=2, pilot=1, group_size=8, icc=0.1)
    assert 0.0 < planned.epsilon < 1.0
    assert planned.rows_per_bin > 8
    none = plan(n=8_000, n_bins=2, pilot=1_000, group_size=8, icc=0.1)
    assert (none.epsilon, none.rows_per_bin) == (1.0, 0)
