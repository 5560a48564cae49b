"""LabelShiftCalibrator: Bayes by hand, limits for the prior, saving and refusals."""

import json
import pickle
import re
from dataclasses import asdict, replace
from itertools import product
from unittest import mock

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln
from sklearn.linear_model import LogisticRegression

from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    LabelShiftCalibrator,
    Partition,
    Tally,
)
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.intervals import get_method
from calibrant.params.rules import error_budget
from calibrant.shift.prior import Prior, mixture_prior, odds_ratio
from read_marks import unmarked
from worlds.guarantees import assert_kept

BINS = Partition.from_edges([0.0, 1.0, 2.0])


def draw(rng, n, prior, distance=1.5):
    y = (rng.uniform(size=n) < prior).astype(int)
    return rng.normal(distance * y), y


def test_known_priors_move_odds_by_bayes_rule_with_the_whole_budget():
    scores, y = draw(np.random.default_rng(0), 4000, 0.2)
    fitted = BinningCalibrator(partition=BINS).fit(scores, y)
    plain = replace(
        fitted.guarantee_, **asdict(get_method("clopper-pearson")(fitted.tally_, error_budget(0.9)))
    )
    moved = (
        LabelShiftCalibrator(partition=BINS)
        .fit(scores, y, source_prior=0.2, target_prior=0.6)
        .guarantee_
    )
    factor = (0.6 / 0.4) / (0.2 / 0.8)
    for name in ("value", "lower", "upper"):
        odds = getattr(plain, name) / (1 - getattr(plain, name))
        np.testing.assert_allclose(
            getattr(moved, name), factor * odds / (1 + factor * odds), rtol=1e-12
        )
    assert moved.confidence_level == plain.confidence_level == 0.9
    assert "label shift" in " ".join(moved.assumptions)
    assert "outside the paper" in moved.theorem


def test_without_shift_the_interval_holds_the_plain_one():
    scores, y = draw(np.random.default_rng(1), 4000, 0.3)
    plain = BinningCalibrator(partition=BINS).fit(scores, y).guarantee_
    moved = LabelShiftCalibrator(partition=BINS).fit(scores, y, target_prior=0.3).guarantee_
    assert (moved.lower <= plain.lower).all()
    assert (plain.upper <= moved.upper).all()


def test_limits_of_the_target_prior_hold_and_shrink():
    rng = np.random.default_rng(2)
    widths = {}
    for n, draws in ((500, 400), (5000, 60)):
        held = 0
        found = []
        for _ in range(draws):
            scores, y = draw(rng, n, 0.2)
            prior = mixture_prior(scores, y.astype(np.uint8), draw(rng, n, 0.55)[0], 0.1)
            assert prior.lower <= prior.value <= prior.upper
            held += prior.lower <= 0.55 <= prior.upper
            found.append(prior.upper - prior.lower)
        assert stats.binomtest(held, draws, 0.9, alternative="less").pvalue > 1e-4
        widths[n] = np.mean(found)
    assert widths[5000] < 0.4 * widths[500]


def test_limits_of_the_target_prior_are_all_shares_that_the_bands_allow():
    rng = np.random.default_rng(12)
    scores, y = draw(rng, 900, 0.3)
    target = draw(rng, 700, 0.6)[0]
    alpha = 0.1
    points = np.concatenate([scores, target])
    share_of = {}
    for name, part in (("one", scores[y == 1]), ("zero", scores[y == 0]), ("target", target)):
        band = np.sqrt(
            np.log(6 / alpha) / (2 * part.size)
        )  # three bands of Massart, of which none fails: alpha in all
        share_of[name] = (part <= points[:, None]).mean(axis=1), band
    (f1, e1), (f0, e0), (f, e) = share_of.values()
    shares = np.linspace(0, 1, 2001)[:, None]
    off = np.abs(f - shares * f1 - (1 - shares) * f0)
    allowed = shares[(off <= e + shares * e1 + (1 - shares) * e0 + 1e-12).all(axis=1), 0]
    prior = mixture_prior(scores, y.astype(np.uint8), target, alpha)
    assert 0.0 < allowed[0] < allowed[-1] < 1.0
    assert prior.lower == pytest.approx(allowed[0], abs=6e-4)
    assert prior.upper == pytest.approx(allowed[-1], abs=6e-4)


def test_the_target_prior_comes_from_scores_whatever_the_partition():
    rng = np.random.default_rng(4)
    scores, y = draw(rng, 2000, 0.3)
    target_scores, _ = draw(rng, 2000, 0.5)
    of_function = Partition.from_function(lambda rows: np.asarray(rows) > 0.5, [False, True])
    for groups in (None, np.arange(2000) // 2):
        found = [
            LabelShiftCalibrator(partition=partition)
            .fit(scores, y, target_scores=target_scores, groups=groups)
            .target_prior_
            for partition in (Partition.from_edges([0.5]), of_function)
        ]
        if groups is None:
            assert found[0] == found[1]
        assert all(prior.lower < 0.5 < prior.upper and prior.lower > 0.2 for prior in found)


def test_a_score_that_tells_nothing_leaves_the_prior_open():
    rng = np.random.default_rng(3)
    scores, y = draw(rng, 2000, 0.3, distance=0.0)
    prior = mixture_prior(scores, y.astype(np.uint8), draw(rng, 2000, 0.9, distance=0.0)[0], 0.1)
    assert (prior.lower, prior.upper) == (0.0, 1.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_classes_with_the_same_scores_tell_nothing_of_the_prior_and_refuse_other_scores(sign):
    scores = np.tile(np.arange(1000) / 1000, 2)
    codes = np.repeat([0, 1], 1000)
    bands = 2 * np.sqrt(np.log(6 / 0.1) / 2000)  # of the class and of the target: 0.0905
    moved = scores[:1000] + sign * (np.floor(1000 * bands) - 0.5) / 1000
    prior = mixture_prior(scores, codes.astype(np.uint8), moved, 0.1)
    assert (prior.lower, prior.upper) == (0.0, 1.0)
    with pytest.raises(InvalidValueError, match="mixture of the scores of both classes"):
        mixture_prior(scores, codes.astype(np.uint8), moved + sign * 0.002, 0.1)


@pytest.mark.parametrize("swapped", [False, True])
def test_scores_that_refute_every_factor_leave_the_limits_at_which_the_bets_start(swapped):
    """Score 1 is more frequent in the target than in either class: no share of positives explains it.
    The bets rule out every factor from one side, and no factor is 0 or infinite.
    """
    rng = np.random.default_rng(0)
    y = rng.random(2_000) < 0.5
    scores = (y & (rng.random(2_000) < 0.1)).astype(float)
    target_scores = (rng.random(2_000) < 0.2).astype(float)
    found = LabelShiftCalibrator(n_bins=2).fit(scores, y != swapped, target_scores=target_scores)
    assert found.guarantee_.epsilon > 0.1
    assert (found.guarantee_.upper - found.guarantee_.lower > 0.1).all()
    assert found.target_prior_.upper - found.target_prior_.lower > 0.1


def test_json_round_trip_answers_the_same():
    rng = np.random.default_rng(4)
    scores, y = draw(rng, 3000, 0.2)
    for options, moved in (
        ({"target_prior": 0.5}, {}),
        ({}, {"target_scores": draw(rng, 3000, 0.6)[0]}),
    ):
        calibrator = LabelShiftCalibrator(n_bins=4).fit(scores, y, **options, **moved)
        read = LabelShiftCalibrator.from_dict(json.loads(json.dumps(calibrator.to_dict())))
        np.testing.assert_array_equal(
            read.predict_interval(scores), calibrator.predict_interval(scores)
        )
        np.testing.assert_array_equal(read.predict(scores), calibrator.predict(scores))
        assert unmarked(read.guarantee_) == str(calibrator.guarantee_)
        assert read.target_prior_ == calibrator.target_prior_


def test_classifier_scores_the_target_rows():
    rng = np.random.default_rng(5)
    scores, y = draw(rng, 4000, 0.2)
    new, _ = draw(rng, 4000, 0.6)
    model = CalibratedClassifier(
        LogisticRegression(), LabelShiftCalibrator(n_bins=4), random_state=0
    )
    model.fit(scores[:, None], y, X_target=new[:, None])
    assert model.calibrator_.target_prior_.lower < 0.6 < model.calibrator_.target_prior_.upper
    assert model.guarantee_.is_proved


def test_one_class_and_the_positive_column_are_handled():
    rng = np.random.default_rng(6)
    scores, y = draw(rng, 500, 0.2)
    none = LabelShiftCalibrator(n_bins=2).fit(scores, 0 * y, classes=(0, 1), target_prior=0.5)
    assert (none.guarantee_.lower == 0.0).all()
    assert (
        none.guarantee_.upper == 1.0
    ).all()  # the share of positives may be arbitrarily small, and so their odds
    p = 1 / (1 + np.exp(-scores))
    both = LabelShiftCalibrator(n_bins=3, pos_label="a").fit(
        np.column_stack([p, 1 - p]), np.where(y == 1, "a", "b"), target_prior=0.5
    )
    one = LabelShiftCalibrator(n_bins=3).fit(p, y, target_prior=0.5)
    np.testing.assert_array_equal(both.guarantee_.lower, one.guarantee_.lower)


@pytest.mark.parametrize(
    ("parameters", "options", "words"),
    [
        ({}, {}, "target_scores must be given; got None: or set target_prior"),
        (
            {"target_prior": 0.5},
            {"target_scores": [0.1]},
            "target_scores must be None if target_prior is set",
        ),
        ({"target_prior": 1.0}, {}, "target_prior must be a number strictly between 0 and 1"),
        (
            {"target_prior": 0.5, "source_prior": 0},
            {},
            "source_prior must be a number strictly between 0 and 1",
        ),
        ({}, {"target_scores": []}, "target_scores must have at least one row"),
        ({}, {"target_scores": [np.nan, 1.0]}, "target_scores must be finite"),
        ({}, {"target_scores": np.full(500, 40.0)}, "this is not label shift"),
    ],
)
def test_bad_arguments_are_refused(parameters, options, words):
    scores, y = draw(np.random.default_rng(7), 1000, 0.3)
    with pytest.raises((InvalidValueError, InvalidTypeError), match=re.escape(words)):
        LabelShiftCalibrator(n_bins=3).fit(scores, y, **parameters, **options)


def test_rows_are_counted_once_and_only_results_are_kept():
    scores, y = draw(np.random.default_rng(8), 5000, 0.3)
    with mock.patch.object(Tally, "of_codes", wraps=Tally.of_codes) as count:
        fitted = LabelShiftCalibrator(n_bins=3).fit(scores, y, target_scores=scores)
    assert count.call_count == 1
    assert len(pickle.dumps(fitted)) < 20_000  # 5,000 rows would take more
    assert not hasattr(
        fitted, "from_tally"
    )  # scores are needed to learn how frequent the classes are


def test_with_segments_the_mix_of_segments_within_a_class_must_not_change():
    # Scores given the label are one and the same in both populations, so label shift of the scores
    # alone is met. The positives move from segment a to segment b, though: the rate in each segment
    # is not what Bayes' rule says.
    rng = np.random.default_rng(5)
    n = 20_000
    y = (rng.uniform(size=n) < 0.5).astype(int)
    segments = np.where(
        rng.uniform(size=n) < np.where(y == 1, 0.9, 0.5), "a", "b"
    )  # among positives: 90 % a
    scores = rng.normal(1.5 * y)
    in_target = {
        "a": 0.1 / (0.1 + 0.5),
        "b": 0.9 / (0.9 + 0.5),
    }  # the positives of the target: 10 % a
    made = LabelShiftCalibrator(
        partition=Partition.by_segment(
            {"a": Partition.from_edges([]), "b": Partition.from_edges([])}
        ),
    ).fit(scores, y, segments=segments, source_prior=0.5, target_prior=0.5)
    limits = made.predict_interval([0.0, 0.0], segments=["a", "b"])
    for (low, high), rate in zip(limits, in_target.values(), strict=True):
        assert not low <= rate <= high  # a miss, always: the statement must not cover this world
    guarantee = made.guarantee_
    assert "pairs of score and segment given the label have the same distribution" in " ".join(
        guarantee.assumptions
    )
    assert "if P(score, segment | label) is unchanged" in guarantee.details
    assert "if P(score, segment | label) is unchanged" in guarantee.sentence
    without = LabelShiftCalibrator(n_bins=2).fit(scores, y, target_prior=0.5).guarantee_
    assert "segment" not in " ".join(without.assumptions) + without.details


@pytest.mark.parametrize("known", [{}, {"source_prior": 0.3}])
def test_a_quarter_of_alpha_is_for_the_priors_and_the_rest_for_the_bins(known):
    rng = np.random.default_rng(4)
    scores, y = draw(rng, 900, 0.3)
    target, _ = draw(rng, 800, 0.6)
    asked = []

    def limits(scores, codes, moved, tail, start, rng):
        asked.append((tail, start))
        return 2.0, 5.0

    with mock.patch("calibrant.shift.label_shift.odds_factor_limits", limits):
        fitted = LabelShiftCalibrator(partition=BINS, confidence_level=0.8).fit(
            scores, y, target_scores=target, **known
        )
    plain = get_method("clopper-pearson")(fitted.tally_, 0.2 * 0.75)
    for name, factor in (("lower", 2.0), ("upper", 5.0)):
        odds = getattr(plain, name) / (1 - getattr(plain, name)) * factor
        np.testing.assert_allclose(getattr(fitted.guarantee_, name), odds / (1 + odds), rtol=1e-9)
    [(tail, start)] = asked
    first = mixture_prior(scores, y, target, 0.2 * 0.25 * 0.01)
    source = Prior.known(0.3) if known else Prior.from_labels(y, 0.2 * 0.25 * 0.01)
    assert start == pytest.approx(
        (odds_ratio(first.lower, source.upper), odds_ratio(first.upper, source.lower))
    )
    # 1% each for both priors of the start; each limit of the factor has half of the rest
    assert tail == pytest.approx(0.2 * 0.25 * 0.98 / 2)
    # the target prior holds on its own: the factor, and the source prior with the rest of alpha
    here = Prior.known(0.3) if known else Prior.from_labels(y, 0.2 * 0.75)
    assert fitted.source_prior_ == here
    assert odds_ratio(fitted.target_prior_.lower, here.lower) == pytest.approx(2.0)
    assert odds_ratio(fitted.target_prior_.upper, here.upper) == pytest.approx(5.0)


EDGES = np.array([-np.inf, 0.0, 1.0, 2.0, np.inf])


def rates_with(prior, distance=1.5):
    """The true rate of each bin where the positive class has the share `prior`."""
    zeros, ones = (np.diff(stats.norm.cdf(EDGES, loc=mean)) for mean in (0.0, distance))
    return prior * ones / (prior * ones + (1 - prior) * zeros)


def within(guarantee, rates):
    return bool(np.all((guarantee.lower <= rates) & (rates <= guarantee.upper)))


@pytest.mark.slow
@pytest.mark.parametrize("prior", [0.02, (0.015, 0.03)])
def test_undersampled_negatives_are_undone_for_the_population_before(prior):
    rng = np.random.default_rng(5)
    draws = 150
    true = 0.02
    held = {"rates": 0, "prior": 0, "plain": 0}
    for _ in range(draws):
        scores, y = draw(rng, 20_000, true)
        kept = (y == 1) | (rng.uniform(size=y.size) < 0.05)
        scores = scores[kept]
        y = y[kept]
        by_rates = (
            LabelShiftCalibrator(partition=BINS)
            .fit(scores, y, sampling_rates=(0.05, 1.0))
            .guarantee_
        )
        by_prior = (
            LabelShiftCalibrator(partition=BINS).fit(scores, y, target_prior=prior).guarantee_
        )
        plain = BinningCalibrator(partition=BINS).fit(scores, y).guarantee_
        for name, found in (("rates", by_rates), ("prior", by_prior), ("plain", plain)):
            held[name] += within(found, rates_with(true))
    for name in ("rates", "prior"):
        assert stats.binomtest(held[name], draws, 0.9, alternative="less").pvalue > 1e-4, held
    assert held["plain"] == 0
    assert by_rates.epsilon < 0.2


def test_case_control_counts_miss_no_more_often_than_stated():
    # exactly: all pairs of counts of a bin, of fixed numbers of cases and controls; no theorem
    # covers this
    tail = 0.05
    for n_cases, n_controls in ((30, 30), (10, 60), (60, 10)):
        cases = np.arange(n_cases + 1)[:, None]
        controls = np.arange(n_controls + 1)[None, :]
        rows = np.broadcast_to(cases + controls, (n_cases + 1, n_controls + 1))
        k = np.broadcast_to(cases, rows.shape)
        lower = np.where(k > 0, stats.beta.ppf(tail, np.maximum(k, 1), rows - k + 1), 0.0)
        upper = np.where(k < rows, stats.beta.ppf(1 - tail, k + 1, np.maximum(rows - k, 1)), 1.0)
        for p1 in (0.02, 0.1, 0.3, 0.6, 0.9, 1.0):
            for p0 in (0.02, 0.1, 0.3, 0.6, 0.9, 1.0):
                true = n_cases * p1 / (n_cases * p1 + n_controls * p0)
                weight = stats.binom.pmf(cases, n_cases, p1) * stats.binom.pmf(
                    controls, n_controls, p0
                )
                assert weight[(lower > true + 1e-12) | (upper < true - 1e-12)].sum() <= 2 * tail


def test_sampling_rates_spend_the_whole_budget_on_the_bins_and_only_their_ratio_matters():
    scores, y = draw(np.random.default_rng(6), 3000, 0.4)
    one, other = (
        LabelShiftCalibrator(partition=BINS).fit(scores, y, sampling_rates=rates)
        for rates in ((0.1, 1.0), (0.05, 0.5))
    )
    np.testing.assert_allclose(one.guarantee_.upper, other.guarantee_.upper, rtol=1e-12)
    plain = get_method("clopper-pearson")(one.tally_, error_budget(0.9))
    odds = 0.1 * plain.upper / (1 - plain.upper)
    np.testing.assert_allclose(one.guarantee_.upper, odds / (1 + odds), rtol=1e-9)
    assert "kept with probability 0.1, of the positive with 1" in " ".join(
        one.guarantee_.assumptions
    )
    assert one.target_prior_ is None
    read = LabelShiftCalibrator.from_dict(json.loads(json.dumps(one.to_dict())))
    np.testing.assert_array_equal(read.predict_interval(scores), one.predict_interval(scores))
    assert unmarked(read.guarantee_) == str(one.guarantee_)


def test_limits_of_the_prior_hold_the_intervals_of_every_prior_between_them():
    scores, y = draw(np.random.default_rng(7), 3000, 0.4)
    wide = LabelShiftCalibrator(partition=BINS).fit(scores, y, target_prior=(0.1, 0.3))
    for prior in (0.1, 0.2, 0.3):
        one = LabelShiftCalibrator(partition=BINS).fit(scores, y, target_prior=prior).guarantee_
        assert (wide.guarantee_.lower <= one.lower).all()
        assert (one.upper <= wide.guarantee_.upper).all()
    assert "between 0.1 and 0.3" in " ".join(wide.guarantee_.assumptions)
    read = LabelShiftCalibrator.from_dict(json.loads(json.dumps(wide.to_dict())))
    np.testing.assert_array_equal(read.predict_interval(scores), wide.predict_interval(scores))


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"sampling_rates": (0.0, 1.0)}, "sampling_rates"),
        ({"sampling_rates": 0.1}, "sampling_rates"),
        ({"sampling_rates": (0.1, 1.0), "target_prior": 0.2}, "sampling_rates"),
        ({"target_prior": (0.3, 0.1)}, "target_prior"),
        ({"target_prior": (0.3, 1.0)}, "target_prior"),
    ],
)
def test_rates_and_priors_that_make_no_sense_are_refused(parameters, name):
    scores, y = draw(np.random.default_rng(8), 100, 0.4)
    with pytest.raises((InvalidTypeError, InvalidValueError), match=f"^{name} must"):
        LabelShiftCalibrator(n_bins=2).fit(scores, y, **parameters)


def test_the_command_line_takes_a_prior_or_rates(tmp_path):
    import pandas as pd
    from click.testing import CliRunner

    from calibrant import load_model
    from calibrant.cli._app import app

    scores, y = draw(np.random.default_rng(9), 2000, 0.5)
    pd.DataFrame({"p": scores, "y": y}).to_csv(tmp_path / "rows.csv", index=False)
    for options, told in (
        (["--prior", "0.1"], {"target_prior": 0.1}),
        (["--sampling-rates", "0.2", "1"], {"sampling_rates": (0.2, 1.0)}),
    ):
        model = str(tmp_path / f"{options[0]}.json")
        arguments = [
            "fit",
            str(tmp_path / "rows.csv"),
            "--score",
            "p",
            "--label",
            "y",
            "-o",
            model,
            *options,
        ]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        expected = LabelShiftCalibrator().fit(scores, y, **told)
        np.testing.assert_array_equal(load_model(model).predict(scores), expected.predict(scores))
        verified = CliRunner().invoke(app, ["verify", model, str(tmp_path / "rows.csv")])
        assert verified.exit_code == 0, verified.output
    refused = CliRunner().invoke(app, [*arguments, "--method", "platt", "--overwrite"])
    assert refused.exit_code == 2
    assert "--sampling-rates" in refused.output + refused.stderr


@pytest.mark.parametrize(
    ("options", "priors"),
    [
        pytest.param({"target_prior": 0.2}, [0.2], marks=pytest.mark.broad),
        ({"target_prior": (0.15, 0.3)}, [0.15, 0.2, 0.3]),
        pytest.param({"sampling_rates": (0.25, 1.0)}, [None], marks=pytest.mark.broad),
    ],
)
@pytest.mark.broad
def test_limits_for_a_stated_prior_or_sampling_hold_by_enumeration(options, priors):
    """Two bins and eight rows, at a confidence of 60 %: every sample, in 200 worlds."""
    rng = np.random.default_rng(3)
    n = 8
    samples = []
    limits = []
    for counts in product(range(n + 1), repeat=3):
        if sum(counts) <= n:
            samples.append([*counts, n - sum(counts)])
            rows = {
                "scores": np.repeat([0.2, 0.7, 0.2, 0.7], samples[-1]),
                "y": np.repeat([0, 0, 1, 1], samples[-1]),
            }
            model = LabelShiftCalibrator(2, partition="uniform", confidence_level=0.6)
            found = model.fit(**rows, classes=(0, 1), **options).guarantee_
            limits.append([found.lower, found.upper])
    samples = np.array(samples)
    limits = np.array(limits)
    ways = gammaln(n + 1) - gammaln(samples + 1).sum(axis=1)
    for _ in range(200):
        cells = np.maximum(rng.dirichlet(np.full(4, rng.choice([0.3, 1.0, 3.0]))), 1e-9)
        chance = np.exp(ways + samples @ np.log(cells / cells.sum()))
        negative = cells[:2]
        positive = cells[2:]
        for prior in priors:
            odds = positive / (negative / 0.25)  # a quarter of the negatives was kept
            if prior is not None:
                odds = prior * positive / positive.sum() / ((1 - prior) * negative / negative.sum())
            true = odds / (1 + odds)
            missed = ((limits[:, 0] > true + 1e-12) | (limits[:, 1] < true - 1e-12)).any(axis=1)
            assert chance[missed].sum() <= 0.4


def test_nothing_is_known_of_the_share_of_a_class_that_was_not_seen() -> None:
    scores = np.linspace(0.1, 0.9, 9)
    for codes in (np.zeros(9, dtype=np.uint8), np.ones(9, dtype=np.uint8)):
        found = mixture_prior(scores, codes, scores, 0.1)
        assert (found.value, found.lower, found.upper) == (0.5, 0.0, 1.0)
    with pytest.raises(InvalidValueError) as refused:
        mixture_prior(scores, np.arange(9) % 2, np.empty(0), 0.1)
    assert refused.value.parameter == "target_scores"


@pytest.mark.slow
def test_weights_by_class_count_whole_groups_if_both_priors_are_known():
    """The advice for grouped rows: the limits of `BinningCalibrator` hold after label shift."""
    edges = np.array([-np.inf, 0.0, 1.0, 2.0, np.inf])
    given = [np.diff(stats.norm.cdf(edges, loc=mean)) for mean in (0.0, 1.5)]
    truth = 0.6 * given[1] / (0.6 * given[1] + 0.4 * given[0])
    rng = np.random.default_rng(8)

    def simulate():
        while True:
            groups = np.repeat(np.arange(150), 4)
            alike = rng.uniform(size=150)[groups] < 0.5  # half of the groups have one label
            one = rng.uniform(size=150)[groups]
            y = (np.where(alike, one, rng.uniform(size=groups.size)) < 0.2).astype(int)
            scores = rng.normal(1.5 * y)
            fitted = BinningCalibrator(partition=BINS).fit(
                scores,
                y,
                groups=groups,
                importance_weight=np.where(y == 1, 0.6 / 0.2, 0.4 / 0.8),
                weight_bound=3.0,
                max_group_size=4,
            )
            found = fitted.guarantee_
            yield {"rates": bool(np.any((found.lower > truth) | (found.upper < truth)))}

    assert_kept(simulate(), 0.1, caught=0.2)
