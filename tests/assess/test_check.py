"""Tests of exchangeability: bets are fair, false alarms are as rare as stated, kinds of change are
told apart.
"""

import re
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from calibrant import Exchangeability, check, scored
from calibrant.assess.check import uniform_bets
from calibrant.assess.check.exchangeability import KINDS, ExchangeabilityTest
from calibrant.assess.check.p_values import label_p_values, rank_p_values, smaller_before
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.time_order import periods, read_times
from worlds.guarantees import assert_rare


def test_ranks_among_earlier_values():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 8, 9, 64, 65, 130, 1_024, 1_100):
        values = rng.permutation(n)
        wanted = [int((values[:place] < values[place]).sum()) for place in range(n)]
        assert smaller_before(np.argsort(values)).tolist() == wanted


@pytest.mark.broad
@pytest.mark.parametrize(
    "values", [(1.0, 2.0, 3.0, 4.0), (1.0, 1.0, 2.0, 2.0), (0.0, 0.0, 0.0, 0.0)]
)
def test_p_values_are_uniform_and_independent_over_all_orders_of_any_values(values):
    rng = np.random.default_rng(1)
    found = np.array(
        [rank_p_values(np.array(order), rng) for order in permutations(values) for _ in range(200)],
        dtype=float,
    )
    assert all(stats.kstest(column, "uniform").pvalue > 1e-3 for column in found.T)
    assert np.abs(np.corrcoef(found.T) - np.eye(4)).max() < 0.06


@pytest.mark.broad
def test_p_values_of_labels_are_uniform_in_bins_of_any_order():
    rng = np.random.default_rng(2)
    bins = np.array([0, 1, 0, 0, 1, 1])
    found = []
    for order in permutations((1, 0, 0)):
        for other in permutations((1, 1, 0)):
            codes = np.empty(6, dtype=np.uint8)
            codes[bins == 0] = order
            codes[bins == 1] = other
            found += [label_p_values(codes, bins, rng) for _ in range(80)]
    found = np.array(found)
    assert all(stats.kstest(column, "uniform").pvalue > 1e-3 for column in found.T)
    assert np.abs(np.corrcoef(found.T) - np.eye(6)).max() < 0.07


@pytest.mark.parametrize(
    ("name", "rate", "points"),
    [
        ("drift_of_ranks", 0.5, 100),
        ("runs_of_ranks", 0.5, 1_000),
        *[
            (name, rate, 100)
            for name in ("drift_of_labels", "runs_of_labels")
            for rate in (0.0, 0.01, 0.5, 1.0)
        ],
    ],
)
def test_every_bet_is_fair_given_the_past(name, rate, points):
    """The mean factor on the next uniform p-value is 1, whatever came before."""
    rng = np.random.default_rng(3)
    past = rng.random(70)
    grid = (np.arange(points) + 0.5) / points
    rates = np.array([rate, 0.3])
    bins = np.zeros(past.size + 1, dtype=np.intp)
    given = (rates, bins) if "labels" in name else ()
    factors = [
        [
            np.exp(bet(slice(None))[-1])
            for bet in getattr(uniform_bets, name)(np.append(past, p), *given)
        ]
        for p in grid
    ]
    assert np.mean(factors, axis=0) == pytest.approx(1.0, abs=0.02)


def test_bets_on_neighbours_pay_within_their_width_of_the_last_value_and_nowhere_else():
    for last, value, inside in (
        (0.5, 0.519, (False, True)),
        (0.5, 0.499, (True, True)),
        (0.5, 0.7, (False, False)),
        (0.001, 0.0, (False, False)),
        (0.999, 0.9975, (True, True)),
    ):
        widths = [min(last + width, 1.0) - max(last - width, 0.0) for width in (0.002, 0.02)]
        bets = list(uniform_bets.runs_of_ranks(np.array([last, value])))[-4:]
        found = [np.exp(bet(slice(None))[-1]) for bet in bets]
        stakes = (
            (stake, stake * hit / width)
            for hit, width in zip(inside, widths, strict=True)
            for stake in (0.05, 0.5)
        )
        assert found == pytest.approx([1 - stake + won for stake, won in stakes])


def test_sizes_of_bets_on_drifts_double_from_a_fortieth_on():
    sizes = [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6]
    bets = uniform_bets.drift_of_ranks(np.array([1.0]))  # 1 is 1/2 above the middle
    found = [2 * np.expm1(bet(slice(None))[0]) for bet in bets]
    assert found == pytest.approx(2 * sorted([*sizes, *(-np.array(sizes))]))


def test_capital_is_the_mean_of_all_bets_and_three_gamblers_change_their_minds_more_or_less_often():
    rng = np.random.default_rng(4)
    ends = np.array([2, 3, 7, 8, 11, 12, 15, 16, 18, 21, 22, 25, 27, 28, 29, 30])
    logs = rng.normal(scale=0.5, size=(3, 30))
    gains = np.exp([np.zeros(16), *(np.diff(np.append(0, one.cumsum()[ends - 1])) for one in logs)])
    bets = [one.__getitem__ for one in logs]
    plain = np.log(np.cumprod(gains, axis=1).mean(axis=0))  # one of the four bets keeps its capital
    np.testing.assert_allclose(uniform_bets.capital(bets, ends, switching=False), plain, atol=1e-12)
    paths = []
    for rate in (0.0, 4 / 16, 1.0):  # of 32 changes in 16 looks: one after each
        shares = np.full(4, 0.25)
        path = []
        for gain in gains.T:
            shares = shares * gain
            path.append(shares.sum())
            shares = (1 - rate) * shares + rate * shares.sum() / 4
        paths.append(path)
    np.testing.assert_allclose(
        uniform_bets.capital(bets, ends, switching=True), np.log(np.mean(paths, axis=0)), atol=1e-12
    )


@pytest.mark.broad
@pytest.mark.parametrize("switching", [False, True])
def test_capital_is_finite_if_the_bet_that_wins_has_lost_nearly_everything_before(switching):
    """Its share has become 0, and the others lose what a number of 64 bits can hold."""
    steps = np.array([[-900.0, 2_000.0], [-1.0, -1_500.0]])  # of two bets, at two looks
    bets = [lambda rows, gain=gain: gain[rows] for gain in steps]
    ends = np.array([1, 2])
    found = uniform_bets.capital(bets, ends, switching=switching)
    kept = (0.0, 4.0, 32.0) if switching else (0.0,)
    expected = []
    for rate in np.minimum(np.array(kept) / 2, 1.0):
        first = np.array([0.0, *steps[:, 0]])
        with np.errstate(divide="ignore"):
            stayed = first + np.log1p(-rate)
            spread = np.logaddexp.reduce(first) + np.log(rate / 3)
        second = np.logaddexp(stayed, spread) + np.array([0.0, *steps[:, 1]])
        expected.append([np.logaddexp.reduce(path) for path in (first, second)])
    mean = np.logaddexp.reduce(expected, axis=0) - np.log(3 * len(kept))
    np.testing.assert_allclose(found, mean, rtol=1e-12)


@pytest.mark.broad
def test_a_million_rows_sorted_by_their_label_are_reported():
    n = 1_000_000
    found = check(np.arange(n) >= 0.7 * n, np.random.default_rng(0).uniform(size=n))
    assert found.causes == ("labels",)
    assert all(np.isfinite(test.log_evidence) for test in found.tests)


def test_an_alarm_is_raised_at_the_first_look_where_the_capital_is_five_over_alpha():
    rng = np.random.default_rng(6)
    scores = rng.random(600)
    y = rng.random(600) < np.where(np.arange(600) < 300, scores, scores**3)
    largest = check(y, scores, random_state=0)["labels"].log_evidence
    alpha = 5 * np.exp(-largest)  # five tests
    assert alpha < 0.5
    reached = check(y, scores, random_state=0, confidence_level=1 - 1.001 * alpha)
    assert reached["labels"].alarm
    first = int(np.argmax(reached["labels"].path >= np.log(5 / (1.001 * alpha))))
    assert reached["labels"].alarm_after == reached.looks[first]
    assert reached["labels"].p_value == pytest.approx(alpha / 5)
    missed = check(y, scores, random_state=0, confidence_level=1 - 0.999 * alpha)
    assert not missed["labels"].alarm


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "values", "repeats"),
    [(2, 4, 200), (10, 4, 200), (60, 0, 100), (60, 1, 100), (60, 2, 100), (200, 4, 40)],
)
def test_false_alarms_are_at_most_as_stated(n, values, repeats):
    """Rows in random order, with the default seed.

    Alarms at 50 %, so that the bound is put to work.

    The mean final e-value is at most 1. Scores have so many values; 0 is a continuum.
    """
    rng = np.random.default_rng(n)
    alarms = 0
    finals = []
    for _ in range(repeats):
        scores = (1 + rng.integers(0, values, n)) / (values + 1) if values else rng.random(n) ** 3
        found = check(rng.random(n) < scores, scores, classes=(False, True), confidence_level=0.5)
        alarms += found.alarm
        finals.append([np.exp(test.path[-1]) for test in found.tests])
    assert_rare(alarms, repeats, 0.5)
    mean = np.mean(finals, axis=0)
    error = np.std(finals, axis=0) / np.sqrt(repeats)
    assert (mean < 1.0 + 4.0 * error + 0.02).all()


def test_equal_scores_are_ranked_by_other_random_numbers_in_other_data():
    """A fixed seed would rank them alike in all data, and the test would be no test."""
    rng = np.random.default_rng(8)
    found = [check(rng.integers(0, 2, 40), np.full(40, 0.5)) for _ in range(6)]
    assert len({one["scores"].log_evidence for one in found}) > 1
    assert len({tuple(one["scores"].path) for one in found}) == 6


def _rows(n=4_000, seed=5):
    rng = np.random.default_rng(seed)
    return rng, rng.random(n), np.arange(n) >= n // 2


def test_scores_that_move_are_told_from_rates_that_move():
    rng, scores, late = _rows()
    moved = np.where(late, np.sqrt(scores), scores)
    found = check(rng.random(4_000) < moved**2, moved)
    assert found.causes == ("scores",)
    assert not found["labels"].alarm
    assert abs(found["scores"].change_after - 2_000) < 200
    assert found["scores"].alarm_after > 2_000
    assert "ShiftCalibrator" in str(found)
    found = check(rng.random(4_000) < np.where(late, scores, scores**2), scores)
    assert found.causes == ("labels",)
    assert found["labels"].after > found["labels"].before
    assert abs(found["labels"].change_after - 2_000) < 200


@pytest.mark.broad
def test_a_label_shift_leaves_the_scores_of_each_class_alone():
    rng, _, late = _rows()
    y = rng.random(4_000) < np.where(late, 0.45, 0.2)
    found = check(y, rng.normal(1.5 * y))
    assert found["labels"].alarm
    assert not found["scores by class"].alarm
    assert any("LabelShiftCalibrator" in step.what for step in found.next_steps)


@pytest.mark.broad
def test_rare_events_that_double_are_found():
    rng, scores, late = _rows(20_000)
    rate = 0.02 * scores * np.where(late, 2, 1)
    assert check(rng.random(20_000) < rate, scores)["labels"].alarm


@pytest.mark.broad
def test_rows_of_one_customer_side_by_side_are_runs_and_groups_settle_them():
    rng, scores, _ = _rows()
    customer = np.repeat(np.arange(400), 10)
    odds = np.log(scores / (1 - scores)) + 1.5 * rng.normal(size=400)[customer]
    y = rng.random(4_000) < 1 / (1 + np.exp(-odds))
    found = check(y, scores)
    assert found.causes == ("runs of labels",)
    assert "groups" in str(found)
    grouped = check(y, scores, groups=customer)
    assert not grouped.alarm
    assert grouped.n_rows == 400
    assert "one randomly picked row from each of 400 groups, in order" in grouped.sentence
    pairs = check(y, scores, groups=np.arange(4_000) // 2)  # customers are still alike
    assert "neighbouring groups are alike, as if from one day or region" in str(pairs)
    copied = np.repeat(rng.random(2_000), 2)
    assert check(rng.random(4_000) < copied, copied).causes == ("runs of scores",)


def test_a_drift_comes_first_in_the_advice_and_groups_do_not_take_it_back():
    rng = np.random.default_rng(0)
    scores = rng.random(6_000)
    day = np.repeat(np.arange(300), 20)
    y = rng.random(6_000) < scores ** np.exp(np.clip((day - 150) / 60, -1.5, 1.5))
    found = check(y, scores, time=day)
    assert found.causes == ("labels",)
    recent, *_, together = (step.what for step in found.next_steps)
    assert recent.startswith("calibrate on recent rows")
    assert "pass the customer, not the time, as groups" in together
    y = rng.random(6_000) < scores ** np.where(day < 150, 1.0, 1.5)
    assert check(y, scores, time=day).alarm
    grouped = check(y, scores, time=day, groups=day)
    assert not grouped.alarm
    assert "only 300 of 6,000 rows were tested, one from each group" in grouped.remarks[0].lower()
    power = "Check without groups, too: a test of one row from each group has little power"
    assert [step.what for step in grouped.next_steps] == ["Audit the scores", power]
    alone = check(y, scores, groups=rng.permutation(6_000), time=rng.random(6_000))
    assert [step.what for step in alone.next_steps] == ["Audit the scores"]


@pytest.mark.broad
def test_rows_of_one_time_are_shuffled_and_rows_follow_their_times():
    rng, scores, late = _rows()
    y = rng.random(4_000) < np.where(late, scores, scores**2)
    order = rng.permutation(4_000)
    days = np.datetime64("2024-01-01") + np.arange(4_000) // 200
    assert not check(y[order], scores[order]).alarm
    found = check(y[order], scores[order], time=days[order])
    assert found.causes == ("labels",)
    assert found["labels"].change_time == "2024-01-11"
    sorted_within = np.lexsort((y, days))  # sorted by label within each day: no news
    again = check(rng.permutation(y), scores[sorted_within], time=days)
    assert not again["runs of labels"].alarm


def test_scored_data_give_the_same_answer_and_skip_missing_labels():
    rng, scores, late = _rows(1_000)
    y = (rng.random(1_000) < np.where(late, scores, scores**2)).astype(object)
    times = rng.permutation(1_000)
    wanted = check(y.astype(int), scores, time=times)
    more = {"p": [*scores, 0.5], "y": [*map(int, y), None], "t": [*times.tolist(), 7]}
    import pyarrow as pa

    data = scored(pa.table(more), score="p", label="y", skip_missing=True)
    found = check(data, time="t")
    assert found.n_rows == 1_000
    assert found.n_skipped == 1
    assert np.array_equal(found["labels"].path, wanted["labels"].path)
    with pytest.raises(InvalidValueError, match="time column 'tt' must be in the data"):
        check(data, time="tt")
    with pytest.raises(InvalidTypeError, match="name a column"):
        check(data, time=times)
    with pytest.raises(InvalidTypeError, match="pass them first"):
        check(None, data)


def test_few_rows_constant_scores_and_one_class():
    rng = np.random.default_rng(6)
    assert not check(rng.integers(0, 2, 10), np.full(10, 0.5)).alarm
    assert check([1], [0.5], classes=(0, 1)).p_value == 1.0
    assert not check(np.zeros(50), rng.random(50), classes=(0, 1)).alarm
    with pytest.raises(InvalidValueError, match="two classes"):
        check(np.zeros(50), rng.random(50))


def test_labels_sorted_within_a_file_raise_an_alarm_and_the_text_says_so():
    scores = np.random.default_rng(7).random(500)
    found = check(np.arange(500) >= 250, scores)
    assert found.alarm
    assert found.p_value <= 0.05
    assert "250 equal labels in a row: the file may be sorted by outcome" in " ".join(
        str(found).split()
    )
    assert [test.kind for test in found.tests] == list(KINDS)


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ([1.0, np.nan], "no missing values"),
        (np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"), "no missing values"),
        (["2024-01-01", None], "no missing values"),
        (["2024-01-01", ""], "no missing values"),
        (["31/01/2024", "01/02/2024"], "ISO 8601"),
        (["today", "2024-01-01"], "ISO 8601"),
        (np.array([1, "2024"], dtype=object), "one kind of entry"),
        ([1 + 2j, 3], "numbers, dates"),
        ([1, 2, 3], "one entry per score"),
    ],
)
def test_times_that_have_no_order_are_refused(time, message):
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        read_times(time, 2)


def test_times_of_many_kinds_are_read():
    import pandas as pd

    for time in (
        ["2024-01-02", "2024-01-01"],
        ["2024-01-02T00:00:00Z", "2024-01-01T23:00:00+00:00"],
        pd.to_datetime(["2024-01-02", "2024-01-01"]),
        pd.to_datetime(["2024-01-02", "2024-01-01"]).tz_localize("UTC"),
        pd.Series(pd.to_datetime(["2024-01-02", "2024-01-01"])),
        [2, 1],
    ):
        assert np.argsort(read_times(time, 2)).tolist() == [1, 0]


@pytest.mark.broad
def test_data_drawn_with_the_same_seed_are_not_sorted_by_their_own_ties():
    rng = np.random.default_rng(0)
    scores = rng.random(2_000)
    assert not check(rng.random(2_000) < scores, scores, time=np.zeros(2_000), random_state=0).alarm


@pytest.mark.parametrize(
    ("first", "last", "unit"),
    [
        ("2024-01-30", "2024-02-02", "month"),
        ("2024-01-30", "2024-01-31", "day"),
        ("2001-01-01", "2024-01-01", "year"),
    ],
)
def test_periods_are_months_where_that_gives_some(first, last, unit):
    names, name = periods(np.array([first, last], dtype="datetime64[s]"))
    assert name == unit
    assert names[0] < names[1]


@pytest.mark.broad
def test_a_file_that_is_sorted_by_outcome_is_told_to_be_first_of_all():
    rng = np.random.default_rng(8)
    scores = rng.random(3_000)
    y = np.sort(rng.random(3_000) < scores)
    found = check(y, scores)
    assert found.long_run in (int(y.sum()), int((~y).sum()))
    assert "the file may be sorted by outcome" in found.next_steps[0].what
    mixed = rng.permutation(3_000)
    timed = check(y[mixed], scores[mixed], time=mixed)
    assert timed.alarm
    assert timed.long_run == 0, "with times the order of the file is not used"
    for honest in (rng.random(3_000) < scores, scores > 0.5):
        assert check(honest, scores).long_run == 0
    ordered = np.sort(scores)
    assert check(ordered > 0.5, ordered).long_run == 0, "sorted by a score that tells the label"


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.broad
def test_a_file_that_is_sorted_by_score_is_told_to_be(step):
    rng = np.random.default_rng(9)
    scores = np.sort(rng.random(500))[::step]
    y = rng.random(500) < scores
    found = check(y, scores)
    assert found.sorted_by_score
    (step,) = found.next_steps
    assert "the file seems to be sorted by score" in step.what
    mixed = rng.permutation(500)
    assert check(y[mixed], scores[mixed]).next_steps[0].what == "Audit the scores"
    timed = check(y, scores, time=np.arange(500))
    assert timed.alarm
    assert not timed.sorted_by_score, "with times the order of the file is not used"
    constant = check(rng.random(500) < 0.5, np.full(500, 0.5))
    assert constant.sorted_by_score
    assert constant.next_steps[0].what == "Audit the scores"


@pytest.mark.parametrize(
    ("confidence_level", "needed"), [(0.9, "50"), (0.95, "100"), (0.99, "500"), (0.999, "5,000")]
)
def test_it_says_which_e_value_raises_an_alarm(confidence_level, needed):
    scores = np.random.default_rng(10).random(60)
    found = check(scores > 0.5, scores, confidence_level=confidence_level)
    assert any(f"an e-value of {needed} raises an alarm" in text for text in found.notes)


def test_runs_with_half_the_evidence_of_a_drift_are_told_to_be_runs():
    def found(of_drift):
        evidence = dict(zip(KINDS, (of_drift, 0.0, 0.0, 10.0, 0.0), strict=True))
        tests = tuple(
            ExchangeabilityTest(kind, logs > 5.0, logs, np.zeros(1))
            for kind, logs in evidence.items()
        )
        result = Exchangeability(tests, np.array([1]), 0.95, 100)
        return " ".join(step.what for step in result.next_steps)

    assert "rows from the same customer or day are not independent" in found(20.0)
    assert "rows from the same customer or day are not independent" not in found(20.5)


def test_a_change_after_the_alarm_is_called_the_largest():
    """A small change raises the alarm before the largest one."""
    rng = np.random.default_rng(15)
    scores = rng.uniform(size=6_000)
    scores[1_000:] += 0.2
    scores[4_000:] += 2.0
    found = check(rng.uniform(size=6_000) < 0.5, scores)
    test = found["scores"]
    assert test.alarm_after < 3_500 < test.change_after == 4_000
    assert re.fullmatch(
        r"the scores have changed from 0\.6\d+ to 2\.7\d+ after 4,000 rows", str(test)
    )
    columns = found.tables()[0].columns
    assert columns["alarm_after"][columns["kind"].index("scores")] == test.alarm_after


@pytest.mark.parametrize("n_rows", [1, 127, 128, 129, 1_000])
@pytest.mark.parametrize("n_values", [3, 100, 10**9])
def test_ranks_among_earlier_values_are_counted_with_ties_in_random_order(n_rows, n_values):
    values = np.random.default_rng(n_rows).integers(0, n_values, size=n_rows).astype(float)
    ties = np.random.default_rng(5).random(n_rows)
    found = rank_p_values(values, np.random.default_rng(5)) * np.arange(1, n_rows + 1)
    smaller = (values < values[:, None]) | ((values == values[:, None]) & (ties < ties[:, None]))
    np.testing.assert_array_equal(np.floor(found + 1e-9), np.tril(smaller, -1).sum(axis=1))


@pytest.mark.parametrize(("n_rows", "alarms"), [(5, False), (10, False), (20, True), (40, True)])
def test_a_note_says_that_a_few_rows_cannot_show_drift(n_rows, alarms):
    sorted_scores = np.linspace(0.0, 1.0, n_rows)
    found = check(np.arange(n_rows) >= n_rows / 2, sorted_scores)
    assert found.alarm is alarms
    assert ("with so few rows, even clear drift may raise no alarm" in found.notes) is not alarms


def test_a_stormy_day_is_no_sign_of_a_sorted_file():
    rng = np.random.default_rng(11)
    scores = rng.random(8_000)
    y = rng.random(8_000) < 0.2
    y[4_000:4_040] = True  # forty labels in a row, of about 1,600
    assert check(y, scores).long_run == 0
    y[4_000:4_400] = True
    assert check(y, scores).long_run >= 400
