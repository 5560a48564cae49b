"""Intervals under covariate shift: each formula against another way to compute it, and what must
never change.
"""

import re
from itertools import pairwise

import numpy as np
import pytest

from calibrant import Interval, Partition, Tally
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.shift.evidence import weighted_rates
from calibrant.limits.shift.paper import why_vacuous
from calibrant.params.random import RandomSource
from calibrant.shift import (
    SHIFT_METHODS,
    Entries,
    Evidence,
    get_shift_method,
    oracle,
    paper,
    tolerated_error,
    widened,
)
from worlds.errors import about

ALPHA = 0.1
ALL = {**SHIFT_METHODS, "oracle": oracle, "paper": paper}
MERGEABLE = ["empirical-bernstein", "oracle", "paper"]


def make(seed=0, n=600, n_regions=3, bound=4.0, zeros=0.1, floor=0.0):
    rng = np.random.default_rng(seed)
    w = floor + (bound - floor) * rng.beta(0.5, 2.0, size=n)
    w[rng.uniform(size=n) < zeros] = floor
    return (
        rng.integers(n_regions, size=n),
        w,
        (rng.uniform(size=n) < 0.2 + 0.15 * w).astype(np.uint8),
    )


def evidence(regions, w, y, n_regions=3, bound=4.0, floor=0.0, masses=None):
    partition = Partition.from_edges(np.arange(1, n_regions) - 0.5)
    tally = Tally.from_data(partition, regions.astype(float), y, importance_weight=w)
    return Evidence(tally, bound, floor, masses, Entries(regions, y, n_regions, w))


def interval(name, *data, alpha=ALPHA, **options):
    options.setdefault("masses", np.ones(options.get("n_regions", 3)))
    return ALL[name](evidence(*data, **options), alpha)


def sidak(alpha, n_regions):
    return 1 - (1 - alpha) ** (1 / n_regions)


# Formulas


def test_weighted_rate_is_the_ratio_of_sums():
    regions, w, y = make()
    expected = [np.sum((w * y)[regions == b]) / np.sum(w[regions == b]) for b in range(3)]
    np.testing.assert_allclose(
        weighted_rates(evidence(regions, w, y).tally), expected, rtol=0, atol=1e-14
    )


def kept_by_empirical_bernstein(q, w, y, delta, bound):
    z = w * (y - q)
    log_term = np.log(3 / delta)
    return abs(z.mean()) <= np.sqrt(2 * z.var() * log_term / z.size) + 3 * bound * log_term / z.size


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.broad
def test_empirical_bernstein_keeps_exactly_the_rates_that_the_bound_allows_and_they_are_an_interval(
    seed,
):
    n, bound = [(60, 1.5), (300, 4.0), (5000, 4.0), (20000, 30.0), (400, 1.0), (50_000, 4.0)][seed]
    regions, w, y = make(seed, n=n, n_regions=1, bound=bound)
    found = interval("empirical-bernstein", regions, w, y, n_regions=1, bound=bound)
    grid = np.linspace(0, 1, 2001)
    kept = np.array([kept_by_empirical_bernstein(q, w, y, ALPHA, bound) for q in grid])
    inside = (grid >= found.lower[0]) & (grid <= found.upper[0])
    np.testing.assert_array_equal(kept, inside)


def test_oracle_equals_the_theorem_as_printed():
    regions, w, y = make(n=20_000)
    masses = np.array([0.8, 1.0, 1.3])
    found = interval("oracle", regions, w, y, masses=masses)
    for b in range(3):
        z = masses[b] * (w * y)[regions == b]
        log_term = np.log(3 * 3 / ALPHA)
        radius = np.sqrt(2 * z.var() * log_term / z.size) + 3 * masses[b] * 4.0 * log_term / z.size
        assert found.lower[b] == pytest.approx(z.mean() - radius, abs=1e-12)
        assert found.upper[b] == pytest.approx(z.mean() + radius, abs=1e-12)


def test_paper_equals_the_theorem_with_nine_for_the_constant():
    regions, w, y = make(n=300_000, bound=1.5, floor=0.9)
    found = interval("paper", regions, w, y, bound=1.5, floor=0.9)
    radius = 9 * (1.5 / 0.9) ** 2 * np.sqrt(3 * np.log(6 * 3 / ALPHA) / (2 * 300_000))
    np.testing.assert_allclose(found.radius, radius, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 3000}, "no lower bound above 0"),
        ({"n": 3000, "bound": 2.0, "floor": 0.5}, "needs at least 1[0-9],[0-9]{3} rows; got 3,000"),
        ({"n": 12_500, "bound": 2.0, "floor": 0.5}, "half-width is 3.59"),
    ],
)
def test_paper_says_why_it_is_vacuous(options, words):
    bounds = {key: options[key] for key in ("bound", "floor") if key in options}
    data = make(**options)
    found = evidence(*data, **bounds)
    said = why_vacuous(found, ALPHA)
    assert said.startswith("vacuous: ")
    np.testing.assert_array_equal(interval("paper", *data, **bounds).radius, 0.5)
    assert re.search(words, said)


def test_paper_is_vacuous_where_bins_are_of_unequal_mass():
    regions, w, y = make(n=40_000, bound=1.0, floor=1.0)
    regions = np.where(np.arange(40_000) < 100, 0, 1 + regions % 2)
    assert "nearly equal mass" in why_vacuous(evidence(regions, w, y, bound=1.0, floor=1.0), ALPHA)


@pytest.mark.parametrize("seed", range(4))
def test_betting_bets_on_each_row_with_its_weight_over_the_bound(seed):
    """At the Sidak level, and on no row without weight."""
    bound = [1.0, 4.0, 50.0, 4.0][seed]
    regions, w, y = make(seed, n=500, n_regions=2, bound=4.0 if seed else 1.0)
    found = interval("betting", regions, w, y, n_regions=2, bound=bound)
    order = RandomSource.of(0, "order of bets").generator()
    some = w > 0
    draws = Entries(regions[some], y[some].astype(float), 2, w[some] / bound)
    units = BetUnits.of(draws, np.zeros(2), np.ones(2), order)
    assert found == bet_limits(units, np.full(2, sidak(ALPHA, 2) / 2))
    assert (found.upper - found.lower < [0.25, 0.25, 0.6, 0.25][seed]).all()


# Invariants


# but for the oracle's: with known mass, the estimate for one label does not use rows of the other
@pytest.mark.parametrize("name", [*SHIFT_METHODS, "paper"])
def test_flipping_labels_mirrors_the_interval(name):
    regions, w, y = make(n=20_000)
    found = interval(name, regions, w, y)
    flipped = interval(name, regions, w, 1 - y)
    np.testing.assert_allclose(flipped.lower, 1 - found.upper, rtol=0, atol=1e-11)
    np.testing.assert_allclose(flipped.upper, 1 - found.lower, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ALL)
def test_weights_in_other_units_change_nothing(name):
    regions, w, y = make(n=6_000)
    found = interval(name, regions, w, y)
    for unit in (1e-9, 7.0, 1e9):
        other = interval(name, regions, unit * w, y, bound=unit * 4.0, masses=np.ones(3) / unit)
        np.testing.assert_allclose(other.lower, found.lower, rtol=0, atol=1e-11)
        np.testing.assert_allclose(other.upper, found.upper, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ALL)
def test_higher_confidence_contains_lower(name):
    regions, w, y = make(n=6_000)
    limits = [interval(name, regions, w, y, alpha=alpha) for alpha in (0.5, 0.1, 0.01, 1e-6)]
    for narrow, wide in pairwise(limits):
        assert (wide.lower <= narrow.lower).all()
        assert (narrow.upper <= wide.upper).all()


@pytest.mark.parametrize("name", MERGEABLE)
def test_merged_tallies_give_the_identical_interval(name):
    regions, w, y = make(n=5_000)
    whole = evidence(regions, w, y, masses=np.ones(3))
    parts = [
        evidence(regions[part], w[part], y[part]).tally
        for part in (slice(0, 7), slice(7, 3000), slice(3000, None))
    ]
    merged = Evidence(parts[2] + parts[0] + parts[1], 4.0, 0.0, np.ones(3))
    assert ALL[name](merged, ALPHA) == ALL[name](whole, ALPHA)


@pytest.mark.parametrize("name", [*SHIFT_METHODS, "paper"])
def test_a_region_without_weight_is_not_bounded(name):
    regions, w, y = make(n=3_000)
    w[regions == 1] = 0.0
    found = interval(name, regions, w, y)
    assert (found.lower[1], found.upper[1]) == (0.0, 1.0)
    with np.errstate(all="raise"):
        empty = interval(name, regions[regions != 1], w[regions != 1], y[regions != 1])
    assert (empty.lower[1], empty.upper[1]) == (0.0, 1.0)


@pytest.mark.parametrize("name", ["betting", "empirical-bernstein"])
def test_one_label_gives_a_one_sided_interval(name):
    regions, w, y = make(n=20_000)
    ones = interval(name, regions, w, np.ones_like(y))
    zeros = interval(name, regions, w, np.zeros_like(y))
    assert (ones.upper == 1.0).all()
    assert (ones.lower > 0.5).all()
    assert (zeros.lower == 0.0).all()
    assert (zeros.upper < 0.5).all()


def test_rows_of_weight_zero_are_no_error_and_never_narrow_the_interval():
    regions, w, y = make(n=4_000, zeros=0.0)
    more = np.concatenate([regions, regions]), np.concatenate([w, 0 * w]), np.concatenate([y, y])
    found = interval("empirical-bernstein", regions, w, y)
    diluted = interval("empirical-bernstein", *more)
    assert (diluted.radius >= found.radius).all()


def test_betting_is_narrower_than_what_sums_can_give():
    regions, w, y = make(n=6_000)
    widths = {name: interval(name, regions, w, y).radius.mean() for name in ALL}
    assert widths["betting"] < 0.6 * min(widths[name] for name in MERGEABLE)


# How wrong weights may be


def test_widened_interval_covers_every_reweighting_within_the_error():
    rng = np.random.default_rng(0)
    for rho in (0.05, 0.3, 0.9):
        w = rng.uniform(size=200)
        y = rng.integers(2, size=200)
        exact = np.array([np.sum(w * y) / w.sum()])
        limits = widened(Interval(exact, exact), rho)
        for sign in (1, -1):  # the worst case attains the limit
            bent = w * np.where(y == 1, 1 + sign * rho, 1 - sign * rho)
            assert np.sum(bent * y) / bent.sum() == pytest.approx(
                (limits.upper if sign == 1 else limits.lower)[0]
            )
        for _ in range(200):
            bent = w * (1 + rho * rng.uniform(-1, 1, size=200))
            assert limits.lower[0] <= np.sum(bent * y) / bent.sum() <= limits.upper[0]


def test_tolerated_error_is_where_the_widened_interval_meets_the_threshold():
    limits = Interval(np.array([0.6, 0.1, 0.4, 0.0]), np.array([0.7, 0.3, 0.6, 1.0]))
    rho = tolerated_error(limits, 0.5)
    assert widened(limits, rho[0]).lower[0] == pytest.approx(0.5)
    assert widened(limits, rho[1]).upper[1] == pytest.approx(0.5)
    np.testing.assert_array_equal(rho[2:], 0.0)


# Refusals


@pytest.mark.parametrize("bound", [0.0, -1.0, np.nan, np.inf, "8", None, True])
def test_a_weight_bound_that_is_none_is_refused(bound):
    found = evidence(*make())
    with pytest.raises(
        (InvalidValueError, InvalidTypeError), match="weight_bound must be a number > 0"
    ):
        Evidence(found.tally, bound)


def test_a_weight_above_the_bound_is_refused():
    found = evidence(*make())
    with pytest.raises(
        InvalidValueError, match=r"weight_bound must be at least every weight; got 0\.5"
    ):
        Evidence(found.tally, 0.5)
    row = int(found.rows.weights.argmax())
    with pytest.raises(InvalidValueError, match=f"in row {row}$"):
        Evidence(found.tally, 0.5, rows=found.rows)


def test_other_bad_arguments_are_refused():
    found = evidence(*make())
    with pytest.raises(InvalidValueError, check=about("relative_mass", "1")):
        oracle(Evidence(found.tally, 4.0, relative_mass=np.ones(1)), ALPHA)
    with pytest.raises(InvalidValueError, check=about("relative_mass", "0 for region 1")):
        oracle(Evidence(found.tally, 4.0, relative_mass=np.array([1.0, 0.0, 1.0])), ALPHA)
    with pytest.raises(InvalidValueError, check=about("weight_floor", "0.1, and a weight of 0")):
        Evidence(found.tally, 4.0, weight_floor=0.1)
    with pytest.raises(InvalidTypeError, check=about("tally", "counts only")):
        Evidence(Tally.from_counts([3], [1]), 1.0)
    with pytest.raises(InvalidTypeError, check=about("interval", "'betting'")):
        get_shift_method("betting")(Evidence(found.tally, 4.0), ALPHA)
    with pytest.raises(InvalidValueError, check=about("interval", "'clopper-pearson'")):
        get_shift_method("clopper-pearson")
