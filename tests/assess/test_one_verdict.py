"""One verdict on "is it calibrated?": the audit's, which includes overconfidence, and which the
validation table quotes.
"""

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit, logit
from scipy.stats import binom, binomtest

from calibrant import audit, scored, validation_table
from calibrant.assess.audit.findings import (
    AVERAGE_SHARE,
    REGIONS_SHARE,
    SPREAD_SHARE,
    UNSEEN_SHARE,
)
from calibrant.assess.audit.plain_evidence import outer_signs, spread_of
from calibrant.cells.score_counts import ScoreCounts
from calibrant.limits.poisson_binomial import grouped_upper_tail, upper_tail

LEVEL = 1e-3


def labels(rates, rng):
    return (rng.uniform(size=rates.size) < rates).astype(int)


def sloped(scores, slope):
    return expit(slope * logit(scores))


def test_the_shares_of_alpha_add_up():
    assert pytest.approx(1.0) == REGIONS_SHARE + SPREAD_SHARE + AVERAGE_SHARE + UNSEEN_SHARE


def test_the_validation_table_quotes_the_audit():
    """Slope 0.93: Kuiper's p-value is below 5% where the audit has no evidence, and the other way
    round. There is one verdict.
    """
    rng = np.random.default_rng(0)
    small = proved = 0
    for _ in range(60):
        scores = rng.uniform(size=4_000)
        y = labels(sloped(scores, 0.93), rng)
        found = audit(y, scores)
        table = validation_table(y, scores, n_draws=99)
        assert table.verdict == found.verdict
        assert table.is_miscalibrated == found.is_miscalibrated
        assert table.sentence.startswith(found.sentence)
        assert "rejects" not in table.sentence
        assert "audit" not in table.to_dict()
        assert table.to_dict()["verdict"] == found.verdict
        small += table.p_value <= 0.05 and not found.is_miscalibrated
        proved += found.is_miscalibrated
    assert small > 0
    assert proved > 0


@pytest.mark.parametrize("slope", [0.6, 1.0])
def test_with_groups_weights_and_grades_the_verdict_is_that_of_the_audit(slope):
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.02, 0.98, size=3_000)
    y = labels(sloped(scores, slope), rng)
    grades = np.where(scores < 0.5, "low", "high")
    for units in (
        {"groups": np.arange(3_000) // 2, "max_group_size": 2},
        {"importance_weight": rng.uniform(0.5, 1.0, 3_000), "weight_bound": 1.0},
        {},
    ):
        found = audit(y, scores, **units)
        table = validation_table(y, scores, grades=grades, n_draws=19, **units)
        assert (table.verdict, table.is_miscalibrated) == (found.verdict, found.is_miscalibrated)
        assert found.is_miscalibrated == (slope < 1.0)


def test_overconfident_scores_are_found_where_no_region_is():
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(20):
        scores = rng.uniform(size=4_000)
        report = audit(labels(sloped(scores, 0.9), rng), scores)
        worst = report.worst
        if worst is None or not worst.is_of_both_ends:
            continue
        assert worst.direction == "overconfident"
        assert 0.0 < worst.error == report.lower_bound
        assert str(worst).startswith("the lowest and the highest scores (")
        assert report.sentence.startswith("Scores are overconfident by at least")
        found += not report.table.error.any()
    assert found > 0
    timid = [audit(labels(sloped(scores, 1.2), rng), scores).worst for _ in range(10)]
    assert "underconfident" in {one.direction for one in timid if one is not None}


def test_a_few_errors_at_scores_next_to_0_and_1_are_found():
    """As of a naive Bayes model: 12 of 200 rows are wrong, and the scores expect none."""
    rng = np.random.default_rng(7)
    truth = np.arange(200) % 2
    y = np.where(np.arange(200) < 12, 1 - truth, truth)
    scores = expit(np.where(truth == 1, 1.0, -1.0) * rng.uniform(5.0, 30.0, 200))
    found = audit(y, scores)
    assert found.is_miscalibrated
    assert found.worst.direction == "overconfident"


def test_rows_in_memory_and_elsewhere_give_one_verdict():
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=6_000)  # more values than are counted one by one
    y = labels(sloped(scores, 0.85), rng)
    here = audit(y, scores)
    there = audit(scored(pa.table({"score": scores, "label": y}), score="score", label="label"))
    assert here.worst.direction == there.worst.direction == "overconfident"
    assert here.lower_bound == pytest.approx(there.lower_bound, rel=1e-12)


@pytest.mark.parametrize("kind", ["groups", "weights"])
def test_overconfident_scores_are_found_with_groups_and_weights(kind):
    """Which finding is the largest depends on the rows; in a third of the files it is the spread."""
    spread = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        scores = rng.uniform(size=6_000)
        y = labels(sloped(scores, 0.8), rng)
        given = {"groups": np.arange(6_000) // 2, "max_group_size": 2}
        if kind == "weights":
            given = {"importance_weight": rng.uniform(0.5, 1.0, 6_000), "weight_bound": 1.0}
        found = audit(y, scores, **given)
        assert found.worst is not None
        if found.worst.direction == "overconfident":
            spread += 1
            assert found.lower_bound > found.table.error.max()
    assert spread >= 3


def test_a_segment_that_is_off_is_not_called_the_whole():
    """The errors of two segments cancel: the score is calibrated, and a segment is not."""
    rng = np.random.default_rng(4)
    scores = rng.uniform(0.2, 0.8, size=6_000)
    segments = np.arange(6_000) % 2
    y = labels(scores + np.where(segments == 1, 0.15, -0.15), rng)
    found = audit(y, scores, segments=segments)
    assert not found.is_miscalibrated
    assert found.within_segments.is_miscalibrated
    assert found.verdict == "problem"


def test_tails_of_sums_of_binomials_are_exact():
    rng = np.random.default_rng(5)
    for count in (40, 60, 75):
        exact = binom.sf(count - 1, 120, 0.5)
        assert grouped_upper_tail(np.array([50, 70]), np.full(2, 0.5), count) == pytest.approx(
            exact, abs=2e-12
        )
    counts = rng.integers(1, 300, 20)
    rates = rng.uniform(size=20)
    rates[:2] = 0.0, 1.0
    mean = float(counts @ rates)
    for count in (0, int(mean), int(mean + 40), int(mean + 90), int(counts.sum())):
        assert grouped_upper_tail(counts, rates, count) == pytest.approx(
            upper_tail(np.repeat(rates, counts), count), abs=3e-12
        )
    large = grouped_upper_tail(np.array([10**6]), np.array([0.001]), 1_100)
    assert large == pytest.approx(binom.sf(1_099, 10**6, 0.001), rel=1e-6)


def test_unlike_rates_of_a_bin_have_no_larger_tail_than_their_mean():
    """Three labels above the mean and beyond."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        sizes = rng.integers(1, 12, 3)
        rates = [rng.beta(0.3, 0.3, size) for size in sizes]
        means = np.array([each.mean() for each in rates])
        first = int(np.ceil(sizes @ means + 3.0))
        for count in range(first, int(sizes.sum()) + 1):
            unlike = upper_tail(np.concatenate(rates), count)
            assert unlike <= grouped_upper_tail(sizes, means, count) + 3e-12


def test_the_outer_thirds_are_chosen_by_information():
    means = np.array([0.001, 0.002, 0.3, 0.5, 0.7])
    assert outer_signs(np.full(5, 100.0), means).tolist() == [-1, -1, -1, 0, 1]
    assert outer_signs(np.array([5.0, 5.0]), np.array([0.0, 1.0])).tolist() == [-1, 1]
    scores = np.full(50, 0.5)
    assert spread_of(ScoreCounts.of(scores, np.arange(50) % 2), 0.05) is None


def drawn_scores(kind, n, rng):
    if kind == "ties":
        return rng.choice([0.05, 0.1, 0.3, 0.31, 0.7, 0.95], n)
    if kind == "rare":
        return expit(rng.normal(-4.5, 1.0, n))
    if kind == "extreme":
        return rng.beta(0.1, 0.1, n)
    if kind == "zeros and ones":
        return rng.choice([0.0, 0.5, 1.0], n)
    return rng.uniform(size=n)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize(
    ("kind", "n"),
    [
        pytest.param("uniform", 800, marks=pytest.mark.slow),
        pytest.param("ties", 600, marks=pytest.mark.slow),
        pytest.param("rare", 2_000, marks=pytest.mark.slow),
        pytest.param("extreme", 300, marks=pytest.mark.slow),
        ("zeros and ones", 100),
        ("uniform", 10),
        ("ties", 9),
        ("rare", 30),
    ],
)
def test_a_calibrated_score_is_called_miscalibrated_at_most_at_the_level(kind, n, alpha):
    rng = np.random.default_rng([39, 9, n, int(10 * alpha)])
    draws = 400
    wrong = 0
    overconfident = 0
    for _ in range(draws):
        scores = drawn_scores(kind, n, rng)
        y = labels(scores, rng)
        wrong += audit(y, scores, confidence_level=1 - alpha, classes=(0, 1)).is_miscalibrated
        spread = spread_of(ScoreCounts.of(scores, y), alpha)
        overconfident += spread is not None and spread.error > 0.0
    assert binomtest(wrong, draws, alpha, alternative="greater").pvalue > LEVEL
    assert binomtest(overconfident, draws, alpha, alternative="greater").pvalue > LEVEL


@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("slope", [0.8, 1.2])
@pytest.mark.slow
def test_the_proved_error_is_not_larger_than_the_true_one(slope, alpha):
    """Known truth: every score is off by at most this. The spread alone gets all of alpha."""
    grid = np.linspace(0.3, 0.7, 4_001)
    largest = float(np.abs(sloped(grid, slope) - grid).max())
    rng = np.random.default_rng([39, 9, int(10 * slope), int(10 * alpha)])
    draws = 400
    wrong = 0
    positive = 0
    for _ in range(draws):
        scores = rng.uniform(0.3, 0.7, size=3_000)
        y = labels(sloped(scores, slope), rng)
        spread = spread_of(ScoreCounts.of(scores, y), alpha)
        wrong += spread.error > largest
        positive += spread.error > 0.0
    assert binomtest(wrong, draws, alpha, alternative="greater").pvalue > LEVEL
    assert positive > draws / 2


@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("kind", ["groups", "weights"])
@pytest.mark.slow
def test_with_groups_and_weights_a_calibrated_score_is_rarely_called_miscalibrated(kind, alpha):
    rng = np.random.default_rng([39, 9, len(kind), int(10 * alpha)])
    draws = 400
    wrong = 0
    for _ in range(draws):
        scores = np.repeat(rng.uniform(size=60), 4)
        y = np.repeat(labels(scores[::4], rng), 4)  # all rows of a group have its label
        given = {"groups": np.repeat(np.arange(60), 4), "max_group_size": 4}
        if kind == "weights":
            scores = rng.uniform(size=240)
            y = labels(scores, rng)
            given = {"importance_weight": np.where(scores < 0.3, 1.0, 0.2), "weight_bound": 1.0}
        found = audit(y, scores, confidence_level=1 - alpha, classes=(0, 1), **given)
        wrong += found.is_miscalibrated
    assert binomtest(wrong, draws, alpha, alternative="greater").pvalue > LEVEL
