"""Bets on a first curve and on the curves of both halves: the budget, each part against the truth,
and the whole.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from calibrant import Calibrator
from calibrant.calibrators.curve import half_curves
from calibrant.calibrators.curve.curve_bounds import Budget, CurveBounds, CurveEvidence, Mix
from calibrant.calibrators.curve.half_curves import HalfCurves, RowsAtKnots
from calibrant.calibrators.curve.least_epsilon import SMOOTHNESS
from calibrant.calibrators.curve.pilot_rows import Guess
from calibrant.calibrators.curve.plain_rows import PlainRows, lower_averages
from calibrant.calibrators.regions import binned_rows
from calibrant.calibrators.regions.binned_rows import cut_and_count
from calibrant.cells.entries import Entries
from calibrant.cells.knots import Knots
from calibrant.cells.score_partition import ScorePartition
from calibrant.params.random import RandomSource
from calibrant.sample.reader import read_rows
from worlds.guarantees import assert_rare

LEVEL = 1e-4
REGIONS = ScorePartition(np.array([0.4]))
KNOTS = Knots.between(REGIONS, [np.linspace(0.0, 1.0, 11)])


def test_the_budget_is_shared_as_it_is_said():
    shares = np.array([0.4, 0.6])
    n_steps = KNOTS.n_knots - 2
    found = Budget.of(0.08, shares, KNOTS)
    of_labels = 1.0 - np.prod(1.0 - 2.0 * found.of_labels)
    of_curves = 4.0 * found.of_curves.sum()
    of_first = 2.0 * found.of_first.sum()
    of_steps = 2.0 * n_steps * found.of_steps
    assert of_steps == pytest.approx(0.01 * 0.08)
    assert of_first == pytest.approx(0.01 * 0.08)
    assert of_curves == pytest.approx(0.05 * 0.98 * 0.08)
    assert of_labels == pytest.approx(0.95 * 0.98 * 0.08)
    assert of_labels + of_curves + of_first + of_steps == pytest.approx(0.08)
    np.testing.assert_allclose(found.of_rates, found.of_labels + 2.0 * found.of_curves)
    dependent = Budget.of(0.08, shares, KNOTS, are_independent=False)
    assert 2.0 * dependent.of_labels.sum() == pytest.approx(of_labels)
    np.testing.assert_array_equal(dependent.of_curves, found.of_curves)


RATES = {
    "smooth": lambda s: s**2,
    "reversed": lambda s: 1.0 - s,
    "step": lambda s: (s > 0.4) * 1.0,
    "lottery": lambda s: np.full(s.shape, 0.5),
    "rare": lambda s: 0.02 + 0.02 * s,
}


@dataclass(frozen=True, eq=False)
class Chosen(PlainRows):
    """Rows whose limits are exact ones in all regions, or in none."""

    exact: bool

    def is_exact(self, guess, first):
        return np.full(self.knots.regions.n_regions, self.exact)


def evidence(rng, rate, n_rows, *, exact=False):
    """Rows at knots, drawn without a score in between, and curves that were fixed before."""
    share = np.linspace(1.0, 3.0, KNOTS.n_knots)
    share /= share.sum()
    true_rate = rate(KNOTS.score)
    rows = rng.multinomial(n_rows, share)
    positives = rng.binomial(rows, true_rate)
    both = np.stack([rows - positives, positives], axis=-1)
    one = rng.binomial(both, 0.5)
    counts = np.stack([one, both - one], axis=1)
    first = 0.1 + 0.8 * KNOTS.score
    halves = np.array([first + 0.1 * np.sin(9.0 * KNOTS.score), np.sqrt(first)])
    pilot = np.tile([3, 1], (KNOTS.n_knots, 1))
    unlabelled = np.zeros(KNOTS.n_knots, dtype=np.int64)
    rows = Chosen(
        KNOTS, counts, pilot, unlabelled, RandomSource(int(rng.integers(2**31))), exact=exact
    )
    fitted_to = (pilot, pilot)
    return CurveEvidence(rows, first, halves, fitted_to), share, true_rate


WEIGHTS = [
    (np.array(of_first), np.array(of_mean))
    for of_first in ([0.0, 0.0], [0.8, 0.3], [-0.5, 2.0])
    for of_mean in ([0.0, 0.2], [1.5, 0.7])
]


def mixed(found, mix):
    """The mix of the first and the mean curve, shifted to the middle of all probabilities."""
    region = found.knots.region
    curve = mix.of_first[region] * found.first + mix.of_mean[region] * found.mean_curve
    return curve - curve.mean() + 0.5


def truth(values, share):
    """The true mean of a function of the knots in each region."""
    starts = KNOTS.starts[:-1]
    return np.add.reduceat(share * values, starts) / np.add.reduceat(share, starts)


@pytest.mark.slow
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", RATES)
def test_every_curve_has_its_true_error_within_limits(name, exact):
    """Many curves at once: the mean of both, one that was moved to the observed rates, a rough one,
    and mixes that were chosen for their errors.
    """
    draws = 60
    alpha = 0.3
    rng = np.random.default_rng(7)
    missed = 0
    for _ in range(draws):
        found, share, rate = evidence(rng, RATES[name], 160, exact=exact)
        bounds = CurveBounds.of(found, alpha, np.array([0.4, 0.6]))
        moved = bounds.shifted(found.mean_curve)
        rough = np.clip(found.mean_curve + 0.05 * (-1.0) ** np.arange(KNOTS.n_knots), 0.0, 1.0)
        curves = [(curve, None) for curve in (found.mean_curve, moved, rough)]
        curves += [(found.mean_curve, Mix(*weights)) for weights in WEIGHTS]
        curves += [(mixed(found, Mix(*weights)), Mix(*weights)) for weights in WEIGHTS]
        curves.append(HalfCurves("any", found).moved(bounds, SMOOTHNESS))
        broken = False
        for curve, mix in curves:
            errors = bounds.errors(curve, mix)
            rates = bounds.rates(curve, errors)
            error = truth(rate - curve, share)
            broken |= bool(((error < errors.lower) | (error > errors.upper)).any())
            broken |= bool(
                ((truth(rate, share) < rates.lower) | (truth(rate, share) > rates.upper)).any()
            )
        missed += broken
    assert_rare(missed, draws, alpha, level=LEVEL)


def test_limits_are_not_vacuous_and_shrink_with_rows():
    rng = np.random.default_rng(1)
    widths = []
    for n_rows in (200, 5_000):
        found, _, _ = evidence(rng, RATES["smooth"], n_rows)
        errors = CurveBounds.of(found, 0.1, np.array([0.5, 0.5])).errors(found.mean_curve)
        widths.append(float((errors.upper - errors.lower).max()))
    assert widths[0] < 0.6
    assert widths[1] < 0.25 * widths[0]


def test_a_region_without_rows_has_the_range_of_the_curve():
    found, _, _ = evidence(np.random.default_rng(1), RATES["smooth"], 300)
    counts = found.rows.counts.copy()
    counts[KNOTS.region == 0] = 0
    emptied = replace(found, rows=replace(found.rows, counts=counts))
    bounds = CurveBounds.of(emptied, 0.1, np.array([0.5, 0.5]))
    curve = found.mean_curve
    low, high = found.ends(curve)
    errors = bounds.errors(curve)
    assert (errors.lower[0], errors.upper[0]) == (-high[0], 1.0 - low[0])
    assert (bounds.rates(curve, errors).lower[0], bounds.rates(curve, errors).upper[0]) == (
        0.0,
        1.0,
    )


def fitted(n_rows=3_000, seed=0, **options):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n_rows)
    y = (rng.uniform(size=n_rows) < scores**2).astype(int)
    return scores, y, Calibrator(**options)


def test_half_k_has_no_part_in_its_own_curve(monkeypatch):
    """Labels of half 1 that are exchanged leave the first curve, the knots and g_1 as they are."""
    scores, y, model = fitted(n_bins=4)
    binned = cut_and_count(read_rows(scores, y), model)
    kept = []
    fit = half_curves._fitted

    def spy(curve, knots, fitted_to):
        kept.extend(counts.sum() for counts in fitted_to)
        return fit(curve, knots, fitted_to)

    monkeypatch.setattr(half_curves, "_fitted", spy)
    found = HalfCurves.fit(RowsAtKnots.of_binned(binned, 0), "beta")
    n_pilot = 3_000 - int(binned.tally.counts.sum()) - binned.tally.uncounted
    halves = found.evidence.rows.counts.sum(axis=(0, 2))
    assert kept == [halves[1] + n_pilot, halves[0] + n_pilot]


def test_a_mix_narrows_the_limits_of_the_curve_that_it_makes():
    """With the first curve's own shape, only the noise of labels is left."""
    found, _, _ = evidence(np.random.default_rng(3), RATES["smooth"], 2_000)
    bounds = CurveBounds.of(found, 0.1, np.array([0.5, 0.5]))
    labels = bounds.proved.labels.upper - bounds.proved.labels.lower
    curves = bounds.proved.curves.upper - bounds.proved.curves.lower
    for share in (0.0, 0.3, 1.0):
        of_mean = np.full(2, share)
        curve = found.first + share * (found.mean_curve - found.first)
        errors = bounds.errors(curve, Mix(1.0 - of_mean, of_mean))
        width = errors.upper - errors.lower
        np.testing.assert_allclose(width, labels + share * curves, atol=1e-9)


def test_steeper_or_flatter_than_the_first_curve_costs_what_is_unknown_of_its_average():
    found, _, _ = evidence(np.random.default_rng(4), RATES["smooth"], 2_000)
    bounds = CurveBounds.of(found, 0.1, np.array([0.5, 0.5]))
    labels = bounds.proved.labels.upper - bounds.proved.labels.lower
    first = bounds.terms[1]
    for slope in (0.4, 1.1):
        curve = slope * found.first
        errors = bounds.errors(curve, Mix(np.full(2, slope), np.zeros(2)))
        unknown = abs(1.0 - slope) * (first.upper - first.lower)
        np.testing.assert_allclose(errors.upper - errors.lower, labels + unknown, atol=1e-9)


@pytest.mark.parametrize("label", [0, 1])
def test_labels_of_one_class_do_not_rule_out_that_the_other_is_absent(label):
    """The average prediction is known better than up to the ends of the region, all the same."""
    region = 1 - label
    found, _, _ = evidence(np.random.default_rng(5), lambda s: (s > 0.4 - 0.2 * label) * 1.0, 3_000)
    bounds = CurveBounds.of(found, 0.1, np.array([0.5, 0.5]))
    curve = found.mean_curve
    errors = bounds.errors(curve)
    average = found.averages(curve)[1 - region]
    low, high = (ends[1 - region] for ends in found.ends(curve))
    if label:
        assert 1.0 - average <= errors.upper[1] < 1.0 - low
    else:
        assert -high < errors.lower[0] <= -average


def test_averages_of_the_first_curve_miss_as_rarely_as_they_say():
    """With a good guess at the variance and a bad one, and a rare value far from all others."""
    rng = np.random.default_rng(9)
    values = np.array([0.1, 0.2, 0.4, 0.05, 0.06, 0.9])
    shares = [np.array([0.3, 0.3, 0.4]), np.array([0.5, 0.49, 0.01])]
    starts = np.array([0, 3])
    truth = [float(shares[0] @ values[:3]), float(shares[1] @ values[3:])]
    tail = np.array([0.1, 0.2])
    draws = 2_000
    for variance in (np.array([0.015, 0.007]), np.array([1e-6, 1e-6]), np.array([0.3, 0.3])):
        missed = np.zeros(2, dtype=int)
        for _ in range(draws):
            counts = np.concatenate([rng.multinomial(150, share) for share in shares])
            missed += lower_averages(values, counts, starts, variance, tail) > truth
        for count, level in zip(missed.tolist(), tail.tolist(), strict=True):
            assert_rare(count, draws, level, level=LEVEL)
    found = lower_averages(values, counts * 100, starts, np.array([0.015, 0.007]), tail)
    assert (found > np.array(truth) - 0.01).all()


def test_the_curve_does_not_depend_on_the_confidence_level():
    scores, y, _ = fitted()
    first, second = (Calibrator(confidence_level=level).fit(scores, y) for level in (0.9, 0.6))
    np.testing.assert_array_equal(first.predict(scores), second.predict(scores))
    assert second.guarantee_.epsilon < first.guarantee_.epsilon


def test_epsilon_is_about_that_of_bins_with_the_same_regions():
    from calibrant.guarantee.guarantee import Guarantee

    ratios = []
    for seed in range(4):
        scores, y, model = fitted(8_000, seed)
        model.fit(scores, y)
        bins = Guarantee.from_tally(model.partition_, model.tally_)
        ratios.append(model.guarantee_.epsilon / bins.epsilon)
    assert np.mean(ratios) < 1.1


def test_predictions_are_the_table_on_which_rows_were_counted():
    scores, y, model = fitted()
    binned = cut_and_count(read_rows(scores, y), model)
    found = HalfCurves.fit(RowsAtKnots.of_binned(binned, 0), "auto")
    model.fit_binned(binned)
    assert model.pieces_.cells.describe() == found.evidence.knots.cells.describe()


def count_passes(monkeypatch):
    """How often rows in memory are counted: over bins, and at knots."""
    passes = []
    for name in ("count", "regions_of"):
        work = getattr(ScorePartition, name)

        def spy(self, prepared, *arguments, work=work, **named):
            if len(prepared) > 1_000:
                passes.append(len(prepared))
            return work(self, prepared, *arguments, **named)

        monkeypatch.setattr(ScorePartition, name, spy)
    return passes


@pytest.mark.parametrize("options", [{}, {"pilot": 200}, {"n_bins": 3}])
def test_a_fit_counts_its_rows_once_and_once_for_a_monitor(options, monkeypatch):
    scores, y, model = fitted(**options)
    passes = count_passes(monkeypatch)
    model.fit(scores, y)
    assert passes == [3_000 - options.get("pilot", 3_000 - passes[0])] * 2
    again = Calibrator(**options)
    again.fit_binned(cut_and_count(read_rows(scores, y), again))
    assert len(passes) == 2 + 3
    assert model.to_dict() == again.to_dict()


@pytest.mark.parametrize("n_tied", [20, 1_500])
def test_regions_of_tied_edges_are_those_of_a_count_of_their_own(n_tied, monkeypatch):
    """Ties that no pilot row shows: a bin absorbs an edge of a few rows, and one of many is a region
    of its own, for which rows are counted again.
    """
    monkeypatch.setattr(binned_rows, "repeated", lambda scores: scores[:0])
    scores, y, model = fitted(n_bins=2)
    near = np.argsort(np.abs(scores - np.median(scores)))[:n_tied]
    scores[near] = np.median(scores[near])
    passes = count_passes(monkeypatch)
    model.fit(scores, y)
    is_atom = n_tied == 1_500
    assert len(passes) == 1 + is_atom + 1  # the last for the cells that a monitor compares
    assert model.partition_.has_absorbed is not is_atom
    assert model.partition_.n_regions == 2 + is_atom
    again = Calibrator(n_bins=2)
    again.fit_binned(cut_and_count(read_rows(scores, y), again))
    assert model.to_dict() == again.to_dict()


def test_files_with_limits_that_no_rows_give_are_refused():
    scores, y, model = fitted()
    state = model.fit(scores, y).to_dict()
    state["state"]["curve"]["proved"]["errors"] = [[-1e-6] * 7, [1e-6] * 7]
    with pytest.raises(ValueError, match="leave at least"):
        Calibrator.from_dict(state)


def test_a_guess_from_counts_is_that_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    region = np.repeat([0, 1, 3], 4)  # a region without pilot rows
    values = rng.uniform(0.1, 0.8, size=12)
    labels = rng.integers(0, 2, size=12)
    number = rng.integers(0, 30, size=12)
    bounds = np.full(4, 0.1), np.full(4, 0.8)
    guesses = []
    for repeats, numbers in ((np.ones(12, dtype=int), number), (number, None)):
        listed = np.repeat(np.arange(12), repeats)
        errors, scores = (
            Entries(region[listed], of[listed], 4, number=numbers)
            for of in (labels - values, values)
        )
        guesses.append(Guess.of(errors, scores, *bounds))
    for name in ("rate", "spread", "of_errors", "of_scores", "weight"):
        np.testing.assert_allclose(*(getattr(found, name) for found in guesses), rtol=1e-12)
    rows = number[:4]
    mean = (rows @ values[:4] + 20.0 * 0.45) / (rows.sum() + 20.0)
    rate = mean + rows @ (labels - values)[:4] / (rows.sum() + 20.0)
    assert guesses[0].rate[0] == pytest.approx(rate)
    assert guesses[0].rate[2] == pytest.approx(0.45)
