"""Which model is better: limits of paired differences that hold for all pairs, both losses, and
every look.
"""

import json
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from calibrant import SequentialModelComparison, compare_models
from calibrant.assess.compare_models.compare_models import scaled
from calibrant.assess.compare_models.model_comparison import PairedDifference
from calibrant.assess.metrics.auc import delong
from calibrant.assess.metrics.independent_units import ROWS
from calibrant.cells.entries import Entries
from calibrant.draw.report.report import Report
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.sequences.betting import Gamblers
from calibrant.metrics import auc
from calibrant.params.random import RandomSource, fingerprint_of
from worlds.guarantees import assert_rare
from worlds.report_pages import read

RATES = np.array([0.02, 0.5, 0.97])
SHARES = np.array([0.6, 0.3, 0.1])
MODELS = {
    "true": RATES,
    "blind at the top": np.array([0.02, 0.5, 0.2]),
    "sure": np.array([0.0, 0.4, 1.0]),
}
LIMITS = [(-0.2, 0.0), (0.0, 0.2), (-0.2, -0.1), (0.1, 0.2)]


def drawn(rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    kind = rng.choice(3, p=SHARES, size=n)
    return (rng.uniform(size=n) < RATES[kind]).astype(int), {
        name: value[kind] for name, value in MODELS.items()
    }


def expected(name: str, measure: str) -> float:
    given = MODELS[name] if measure == "Brier score" else np.clip(MODELS[name], 0.001, 0.999)
    if measure == "Brier score":
        return float(SHARES @ (RATES * (1 - given) ** 2 + (1 - RATES) * given**2))
    return float(-SHARES @ (RATES * np.log(given) + (1 - RATES) * np.log(1 - given)))


def is_missed(found) -> bool:
    return any(
        not one.lower
        <= expected(one.first, one.measure) - expected(one.second, one.measure)
        <= one.upper
        for one in found.differences
        if one.is_proved
    )


def slow_delong(codes: np.ndarray, scores: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a positive and a negative row, as in the paper."""
    kernels = [
        np.sign(np.subtract.outer(score[codes == 1], score[codes == 0])) / 2 + 0.5
        for score in scores
    ]
    of_positive = np.array([kernel.mean(axis=1) for kernel in kernels])
    of_negative = np.array([kernel.mean(axis=0) for kernel in kernels])
    covariance = sum(
        np.atleast_2d(np.cov(part)) / part.shape[1] for part in (of_positive, of_negative)
    )
    return of_positive.mean(axis=1), covariance


def by_measure(y: np.ndarray, models: dict, one, clip: float) -> tuple[np.ndarray, float]:
    """Differences of a loss, row by row, as shares of their range.

    And how far the range reaches from 0.
    """
    given = [np.where(y == 1, models[name], 1 - models[name]) for name in (one.first, one.second)]
    if one.measure == "Brier score":
        losses = [(1 - p) ** 2 for p in given]
        span = 1.0
    else:
        losses = [-np.log(np.clip(p, clip, 1 - clip)) for p in given]
        span = math.log((1 - clip) / clip)
    return ((losses[0] - losses[1]) / span + 1) / 2, span


def test_each_pair_and_loss_has_its_share_of_alpha() -> None:
    rng = np.random.default_rng(12)
    y, models = drawn(rng, 400)
    models = {
        name: np.clip(value + rng.normal(scale=0.05, size=400), 0, 1)
        for name, value in models.items()
    }
    found = compare_models(y, models, confidence_level=0.9, clip=0.01, random_state=5)
    of_models = sorted(fingerprint_of(one, labels=y.astype(int)) for one in models.values())
    key = RandomSource.of(5, "order of bets", *of_models).key
    areas, covariance = slow_delong(y, list(models.values()))
    quantile = stats.norm.ppf(1 - 0.1 / 3 / 2)  # three pairs
    for one in found.differences:
        if one.is_proved:
            values, span = by_measure(y, models, one, 0.01)
            draws = Entries(np.zeros(400, dtype=int), (2 * values - 1) * span, 1)
            order = RandomSource.of(0, "order of bets", rows=key).generator()
            units = BetUnits.of(draws, np.array([-span]), np.array([span]), order)
            of_bets = bet_limits(units, np.full(1, 0.1 / 12))  # three pairs, two losses, two sides
            limits = (of_bets.lower[0], of_bets.upper[0])
        else:
            contrast = np.array(
                [(name == one.first) * 1.0 - (name == one.second) for name in models]
            )
            radius = quantile * math.sqrt(contrast @ covariance @ contrast)
            limits = contrast @ areas + np.array([-radius, radius])
        assert (one.lower, one.upper) == pytest.approx(tuple(limits), abs=1e-9)
    radius = stats.norm.ppf(0.95) * np.sqrt(np.diag(covariance))
    assert found.auc_lower == pytest.approx(np.clip(areas - radius, 0, 1))
    assert found.auc_upper == pytest.approx(np.clip(areas + radius, 0, 1))


def test_each_pair_and_loss_of_a_sequence_has_its_share_of_alpha() -> None:
    y, models = drawn(np.random.default_rng(13), 400)
    found = (
        SequentialModelComparison(list(MODELS), confidence_level=0.9, clip=0.01)
        .update(y, models)
        .result()
    )
    side = np.linspace(-1, 1, 2001)
    for one in found.differences:
        values, span = by_measure(y, models, one, 0.01)
        gamblers = Gamblers.fresh((1 + np.sign(side) * side**2) / 2, 0.9)
        gamblers.take(values, math.log(2 * 6 / 0.1))
        limits = tuple((2 * limit - 1) * span for limit in gamblers.limits())
        assert (one.lower, one.upper) == pytest.approx(limits, abs=1e-12)
        assert one.value == pytest.approx((2 * values.mean() - 1) * span)


@pytest.mark.slow
def test_all_pairs_and_losses_hold_at_once() -> None:
    rng = np.random.default_rng(1)
    missed = sum(
        is_missed(
            compare_models(*drawn(rng, 200), confidence_level=0.9, classes=(0, 1), random_state=0)
        )
        for _ in range(120)
    )
    assert_rare(missed, 120, 0.1)


@pytest.mark.slow
def test_limits_hold_however_the_rows_are_sorted() -> None:
    rng = np.random.default_rng(2)
    missed = 0
    for seed in range(80):
        y, models = drawn(rng, 200)
        order = np.lexsort([models["sure"], y])
        ordered = {name: value[order] for name, value in models.items()}
        missed += is_missed(
            compare_models(
                y[order], ordered, confidence_level=0.9, classes=(0, 1), random_state=seed
            )
        )
    assert_rare(missed, 80, 0.1)


@pytest.mark.broad
def test_a_fixed_order_is_no_random_order_for_sorted_rows() -> None:
    """Why the order is drawn afresh by default: by enumeration over the number of ones, which come
    last.
    """
    n = 40
    count = np.arange(n + 1)
    rate = np.linspace(0.01, 0.99, 50)
    probability = stats.binom.pmf(count, n, rate[:, None])
    missed = []
    for seed in range(16):
        units = replace(ROWS, rows=seed)  # the same order for all samples
        rows = [(np.arange(n) >= n - k).astype(float) for k in count]
        lower, upper = np.array(
            [units.limits(2 * row - 1, 0.1, ends=(-1.0, 1.0)) for row in rows]
        ).T
        mean = 2 * rate[:, None] - 1
        missed.append((probability * ((mean < lower) | (mean > upper))).sum(axis=1))
    assert np.max(missed) > 0.2
    assert np.mean(missed, axis=0).mean() < 0.1


@pytest.mark.slow
def test_sequence_may_be_looked_at_after_every_batch() -> None:
    rng = np.random.default_rng(3)
    ever = 0
    for _ in range(40):
        race = SequentialModelComparison(list(MODELS), confidence_level=0.9)
        looks = [race.update(*drawn(rng, 20)).result() for _ in range(20)]
        ever += any(map(is_missed, looks))
    assert_rare(ever, 40, 0.1)


@pytest.mark.broad
def test_sequence_does_not_depend_on_the_batches_and_can_be_saved() -> None:
    y, models = drawn(np.random.default_rng(4), 900)
    whole = SequentialModelComparison(list(MODELS)).update(y, models).result()
    race = SequentialModelComparison(list(MODELS))
    for part in np.array_split(np.arange(900), 7):
        race.update(y[part], {name: value[part] for name, value in models.items()})
        race = SequentialModelComparison.from_dict(json.loads(json.dumps(race.to_dict())))
    for one, other in zip(whole.differences, race.result().differences, strict=True):
        assert (one.lower, one.upper) == (other.lower, other.upper)
        assert one.value == pytest.approx(other.value)
    wider = (
        SequentialModelComparison(list(MODELS), confidence_level=0.999).update(y, models).result()
    )
    assert all(
        a.lower <= b.lower and b.upper <= a.upper
        for a, b in zip(wider.differences, whole.differences, strict=True)
    )


def test_better_model_is_found_and_the_verdict_says_so() -> None:
    y, models = drawn(np.random.default_rng(5), 20_000)
    found = compare_models(y, models)
    assert found.best == "true"
    assert found.verdict == "ok"
    assert found.sentence.startswith(
        "'true' is better than every other model (95% confidence, 20,000 rows"
    )
    two = compare_models(y, {"one": models["true"], "other": models["true"]})
    assert two.best is None
    assert two.verdict == "unclear"
    assert two.sentence.startswith("The data cannot tell which model is better (95% confidence")
    assert two.differences[0].upper < 0.001
    assert math.isnan(two.differences[2].lower)
    assert str(two.differences[2]) == "AUC of 'one' minus that of 'other': 0, no limits"


def test_a_difference_that_may_be_zero_tells_nothing() -> None:
    for measure, lower_is_better in (("Brier score", True), ("AUC", False)):
        best = {
            limits: PairedDifference("a", "b", measure, 0.0, *limits, True).better
            for limits in LIMITS
        }
        assert best[(-0.2, 0.0)] is best[(0.0, 0.2)] is None
        assert best[(-0.2, -0.1)] == ("a" if lower_is_better else "b")
        assert best[(0.1, 0.2)] == ("b" if lower_is_better else "a")


def test_differences_are_scaled_to_their_range_and_rounding_goes_no_further() -> None:
    beyond = np.array([-1 - 1e-12, -0.5, 0.0, 1 + 1e-12])
    assert scaled(3.0 * beyond, 3.0).tolist() == [0.0, 0.25, 0.5, 1.0]


def test_losses_that_disagree_are_both_told() -> None:
    # a surely wrong answer costs the log loss far more than the Brier score
    rng = np.random.default_rng(6)
    y = (rng.uniform(size=40_000) < 0.06).astype(int)
    found = compare_models(y, {"bold": np.full(y.size, 0.001), "timid": np.full(y.size, 0.25)})
    assert found.verdict == "unclear"
    assert "'bold' has a lower Brier score but a higher log loss than 'timid'" in found.sentence


def test_swapping_two_models_mirrors_the_limits() -> None:
    y, models = drawn(np.random.default_rng(7), 500)
    one, other = (
        compare_models(y, {name: models[name] for name in names}, random_state=0)
        for names in (("true", "sure"), ("sure", "true"))
    )
    for a, b in zip(one.differences, other.differences, strict=True):
        assert (a.lower, a.upper) == pytest.approx((-b.upper, -b.lower), abs=2e-4, nan_ok=True)


def test_delong_is_that_of_the_paper() -> None:
    rng = np.random.default_rng(8)
    for n in (7, 30, 200):
        codes = np.arange(n) % 3 % 2
        scores = [rng.normal(size=n) + codes, rng.integers(0, 4, size=n) / 4, np.zeros(n)]
        for fast, slow in zip(delong(codes, scores), slow_delong(codes, scores), strict=True):
            np.testing.assert_allclose(fast, slow, atol=1e-12)
    # worked by hand: four rows, three of four pairs in order
    found = auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    assert found.value == 0.75
    assert delong(np.array([0, 0, 1, 1]), [np.array([0.1, 0.4, 0.35, 0.8])])[1] == pytest.approx(
        0.125
    )
    assert found.heuristic


@pytest.mark.slow
def test_delong_limits_hold_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(9)
    true = stats.norm.cdf(1 / math.sqrt(2))
    held = 0
    for _ in range(400):
        codes = np.repeat([0, 1], [150, 80])
        found = auc(codes, rng.normal(size=230) + codes, confidence_level=0.9)
        held += found.lower <= true <= found.upper
    assert stats.binomtest(held, 400, 0.9).pvalue > 1e-3


def test_numbers_come_as_frames_and_json() -> None:
    y, models = drawn(np.random.default_rng(10), 300)
    found = compare_models(y, models)
    assert list(found.to_frame()["measure"][:3]) == ["Brier score", "log loss", "AUC"]
    assert len(found.to_frame()) == 9
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [model["model"] for model in told["models"]] == list(models)
    assert told["models"][0]["brier"] == pytest.approx(
        np.mean((y - models[told["models"][0]["model"]]) ** 2)
    )
    assert repr(found).startswith("<ModelComparison: ")


def test_few_rows_and_one_class_are_answered_honestly() -> None:
    y, models = drawn(np.random.default_rng(11), 10)
    few = compare_models(y, models, classes=(0, 1))
    assert few.verdict == "unclear"
    assert "cannot tell" in few.sentence
    one = compare_models(
        np.zeros(50, int), {"a": np.full(50, 0.1), "b": np.full(50, 0.2)}, classes=(0, 1)
    )
    assert np.isnan(one.auc).all()
    assert "inf" not in str(one)


@pytest.mark.parametrize(
    ("y", "models", "message"),
    [
        ([0, 1], {"a": [0.1, 0.2]}, "models must be at least two; got 1"),
        ([0, 1], [0.1, 0.2], "models must be a mapping from name to scores"),
        (
            [0, 1],
            {1: [0.1, 0.2], "1": [0.1, 0.3]},
            "models must have different names; got '1' more than once",
        ),
        (
            [0, 1],
            {"a": [0.1, 0.2], "b": [0.1]},
            "scores and y of model 'b' must have the same number of rows; got 1 and 2",
        ),
        (
            [0, 1],
            {"a": [0.1, 0.2], "b": [0.1, 1.2]},
            "scores of model 'b' must be probabilities in",
        ),
        ([0, 1], {"a": [0.1, 0.2], "b": [0.1, math.nan]}, "scores of model 'b' must"),
        (
            [0, 0],
            {"a": [0.1, 0.2], "b": [0.1, 0.2]},
            "y must contain two classes; got one class only",
        ),
    ],
    ids=["one", "bare", "names", "rows", "range", "missing", "class"],
)
def test_bad_input_is_refused_by_name(y, models, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        compare_models(y, models)


def test_a_sequence_knows_its_models() -> None:
    race = SequentialModelComparison(["a", "b"])
    with pytest.raises(ValueError, match="models must have scores for 'a', 'b'; got 'a'"):
        race.update([0, 1], {"a": [0.1, 0.2]})
    with pytest.raises(TypeError, match="models must be names of models"):
        SequentialModelComparison("ab")
    assert race.result().verdict == "unclear"
    assert race.result().sentence.startswith("The data cannot tell which model is better")
    state = race.update([0, 1], {"a": [0.1, 0.2], "b": [0.2, 0.3]}).to_dict()
    for broken in (
        {"gamblers": state["gamblers"][:1]},
        {"gamblers": 3},
        {"sums": [1.0]},
        {"totals": "no"},
        {"rows": -1},
    ):
        with pytest.raises((ValueError, TypeError), match=f"{next(iter(broken))} must"):
            SequentialModelComparison.from_dict(state | broken)


@pytest.mark.broad
def test_a_race_that_eight_threads_update_keeps_every_row():
    race = SequentialModelComparison(["a", "b"])

    def work(thread):
        rng = np.random.default_rng(thread)
        for _ in range(8):
            p = rng.uniform(size=5)
            race.update(rng.integers(0, 2, size=5), {"a": p, "b": 1 - p})
            assert race.result().n_rows % 5 == 0

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))  # raises what a thread raised
    finally:
        sys.setswitchinterval(before)
    assert race.n_rows == 8 * 8 * 5
    assert [gamblers["n"] for gamblers in race.to_dict()["gamblers"] if "n" in gamblers] in (
        [],
        [320, 320],
    )
    assert pickle.loads(pickle.dumps(race)).to_dict() == race.to_dict()


def test_limits_of_one_auc_stay_between_0_and_1():
    y = np.arange(12) % 2
    good = np.where(y == 1, 0.9, 0.1)
    good[[0, 1]] = 0.5
    found = compare_models(y, {"good": good, "bad": 1 - good}, random_state=0)
    assert found.auc_upper[0] == 1.0
    assert found.auc_lower[1] == 0.0


@pytest.mark.broad
def test_what_is_assumed_follows_from_what_is_drawn() -> None:
    y, models = drawn(np.random.default_rng(11), 60)
    one = np.ones(60)
    given = [
        {},
        {"importance_weight": one, "weight_bound": 1.0},
        {"groups": np.arange(60), "max_group_size": 1},
    ]
    drawn_first = [
        compare_models(y, models, **beside).assumptions[0].split(" independent")[0]
        for beside in given
    ]
    assert drawn_first == ["the rows are", "the rows are", "the groups are"]
    assert "weights are right" in compare_models(y, models, **given[1]).assumptions[0]
    assert (
        SequentialModelComparison(["a", "b"]).result().assumptions
        == compare_models(y, models).assumptions
    )


@pytest.mark.broad
def test_the_report_names_both_models_of_a_pair_if_names_are_long() -> None:
    y, models = drawn(np.random.default_rng(12), 60)
    models = {
        f"{'a model with a long name, version':<50}{number}": p
        for number, p in enumerate(models.values())
    }
    page = read(Report(compare_models(y, models)).html)
    rows = [[cell.text for cell in row.children] for row in page.all("tr")]
    told = {(row[0], row[1]) for row in rows if len(row) > 1}
    names = [" ".join(name.split()) for name in models]  # as a reader sees them
    assert set(combinations(names, 2)) <= told


def test_the_sentence_says_what_is_independent_and_whose_losses_they_are() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    models = {"a": p, "b": 1.0 - p}
    groups = np.arange(200) // 4
    found = compare_models(y, models, groups=groups, max_group_size=4)
    assert found.sentence.endswith(
        "200 rows; losses of rows of new groups, if the groups are independent draws from one"
        " distribution)."
    )
    weights = {"importance_weight": np.ones(200), "weight_bound": 1.0}
    found = compare_models(y, models, **weights)
    assert found.sentence.endswith(
        "200 rows; losses in the weighted population, if the rows are independent draws from one"
        " distribution, and their weights are right and bounded)."
    )
    assert compare_models(y, models).sentence.endswith("200 rows, assumed independent).")
