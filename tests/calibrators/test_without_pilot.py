"""Limits with shares of a budget that were fixed beforehand, and limits of curves without pilot
rows.
"""

import numpy as np
import pytest
from scipy import stats

from calibrant import Calibrator
from calibrant.calibrators.regions.proof import Proof
from calibrant.errors import CalibrantError
from calibrant.intervals import get_method
from calibrant.limits.error_budget import absorbed_budget, n_fixed_ranks
from calibrant.limits.region_limits import absorbed_shares, region_limits


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < scores**3).astype(int)


def test_the_budget_of_a_curve_adds_up_to_alpha():
    """The shares are those of the documentation: 5% for masses, and 1% of the rest for the edges that
    bins may absorb.
    """
    scores, y = draw(300)
    model = Calibrator(n_bins=4, pilot=None, confidence_level=0.92).fit(scores, y)
    proof = Proof(model.partition_, model.tally_, model.interval, 0.92)
    assert proof.for_limits == pytest.approx(0.95 * 0.08)
    assert n_fixed_ranks(model.partition_) == 0
    assert proof.for_bets == proof.for_limits
    model = Calibrator(n_bins=4, confidence_level=0.92).fit(scores, y)
    assert n_fixed_ranks(model.partition_) == 3  # the edges between four regions
    proof = Proof(model.partition_, model.tally_, model.interval, 0.92)
    of_edges = absorbed_budget(model.partition_, proof.for_limits)
    assert of_edges == pytest.approx(0.01 * 0.95 * 0.08)
    assert proof.for_bets + of_edges == pytest.approx(proof.for_limits)


def test_the_bound_on_an_absorbed_edge_costs_one_per_cent_of_alpha():
    """Each rank that was fixed has an equal part of it, and the rates have the rest."""
    rng = np.random.default_rng(3)
    scores = np.round(rng.uniform(size=400) * 1_500) / 1_500
    y = (rng.uniform(size=400) < scores).astype(int)
    model = Calibrator(n_bins=4, random_state=2).fit(scores, y)
    partition = model.partition_
    assert partition.has_absorbed
    alpha = 0.08
    bins = partition.as_bins()
    at_edge = model.tally_.absorbed.counts
    region = bins.count_regions[bins.absorbed_cells]
    between = model.tally_.counts[region] - at_edge
    tail = 0.01 * alpha / n_fixed_ranks(partition)
    expected = stats.beta.isf(tail, at_edge + 1, between)
    np.testing.assert_allclose(absorbed_shares(partition, alpha)[region], expected, rtol=1e-9)
    alone = np.flatnonzero(~np.isin(np.arange(partition.n_regions), region))[0]
    found = region_limits(partition, model.tally_, get_method("clopper-pearson"), alpha)
    level = 1 - (1 - 0.99 * alpha) ** (1.0 / partition.n_regions)
    hits = model.tally_.positives[alone]
    rows = model.tally_.counts[alone]
    limit = stats.beta.isf(level / 2, hits + 1, rows - hits)
    assert found.upper[alone] == pytest.approx(limit, rel=1e-9)


def test_curves_beyond_one_are_refused():
    model = Calibrator(n_bins=3).fit(*draw(1000))
    for name in ("left", "right"):
        state = model.to_dict()
        state["state"]["curve"][name] = [*state["state"]["curve"][name][:-1], 1.05]
        with pytest.raises(CalibrantError, match=name):
            Calibrator.from_dict(state)


def test_other_intervals_are_those_of_bins():
    with pytest.raises(CalibrantError, match='interval must be "auto" with a curve'):
        Calibrator(interval="hoeffding").fit(*draw(1000))


@pytest.mark.broad
@pytest.mark.parametrize("scale", ["rates", "points"])
def test_without_pilot_rows_bounds_are_about_as_narrow_and_the_curve_as_good(scale):
    scores, y = draw(3_000, seed=3)
    truth = scores**3
    if scale == "points":
        scores = 300.0 + 550.0 * scores
    given = Calibrator(n_bins=4).fit(scores, y)
    alone = Calibrator(n_bins=4, pilot=None).fit(scores, y)
    assert alone.guarantee_.epsilon < 1.7 * given.guarantee_.epsilon
    assert alone.pieces_.jumps.size == 0
    assert (np.diff(alone.predict(np.sort(scores))) > 0.0).all()
    assert np.abs(alone.predict(scores) - truth).mean() < 0.03
    again = Calibrator.from_dict(alone.to_dict())
    np.testing.assert_array_equal(again.guarantee_.radius, alone.guarantee_.radius)
    np.testing.assert_array_equal(again.predict_interval(scores), alone.predict_interval(scores))


def test_a_sample_weight_of_one_says_nothing_and_a_larger_one_is_more_rows():
    scores, y = draw(500)
    plain = Calibrator(n_bins=3, pilot=None).fit(scores, y)
    one = Calibrator(n_bins=3).fit(scores, y, sample_weight=np.ones(500, dtype=int))
    assert one.guarantee_.epsilon == pytest.approx(plain.guarantee_.epsilon, rel=0.1)
    np.testing.assert_allclose(one.predict(scores), plain.predict(scores), atol=0.04)
    many = Calibrator(n_bins=3).fit(scores, y, sample_weight=np.full(500, 100))
    assert many.guarantee_.epsilon < 0.5 * plain.guarantee_.epsilon
    assert many.guarantee_.n_rows > 49_000


@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
def test_errors_that_few_rows_leave_open_are_from_minus_1_to_1():
    scores, y = draw(6)
    errors = Calibrator(n_bins=3, pilot=None).fit(scores, y, classes=(0, 1)).guarantee_.errors
    assert errors.lower.min() < -0.9
    assert (errors.lower >= -1.0).all()
    assert (errors.upper <= 1.0).all()
