"""Limits as functions of counts, at small and large counts and at the ends."""

from typing import Any

import numpy as np

from calibrant import Tally
from calibrant.cells.entries import Entries
from calibrant.intervals import METHODS, get_method
from calibrant.limits import binomial, kl, poisson_binomial
from calibrant.limits.bet_limits import bet_limits, exceeds
from calibrant.limits.bet_units import BetUnits, block_ends
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource
from calibrant.tripod import (
    calibration_to_interval,
    interval_to_calibration,
    interval_to_set,
    minimum_expected_width,
)
from worlds.questions.base import QUESTIONS, SMOOTH, question, refused, tried

COUNTS = np.array([0, 1, 2, 3, 10, 15, 16, 17, 40, 100, 101, 1000, 12_345, 10**6, 10**9])

for _method in METHODS:
    for _share in (0.0, 0.004, 0.3, 0.5, 1.0):

        def limits(method: str = _method, share: float = _share) -> Any:
            positives = np.round(COUNTS * share).astype(int)
            tally = Tally.from_counts(COUNTS, positives)
            return [
                tried(lambda alpha=alpha: get_method(method)(tally, alpha))
                for alpha in (1e-8, 0.05, 0.5)
            ]

        QUESTIONS[f"limits {_method} {_share}"] = limits


@question
def binomial_limits() -> Any:
    found = []
    for n in (1, 2, 15, 16, 50, 1000, 10**7):
        k = np.unique(np.round(np.array([0.0, 0.001, 0.1, 0.5, 0.9, 1.0]) * n).astype(int))
        for tail in (1e-12, 0.025, 0.4):
            found += [
                binomial.lower_limit(k, np.full(k.size, n), tail),
                binomial.upper_limit(k, np.full(k.size, n), tail),
            ]
    return found


def bets_on(
    values: Any, weights: Any = None, *, regions: Any = None, n_regions: int = 1, **more: Any
) -> BetUnits:
    """Units in an order that a fixed seed draws."""
    values = np.asarray(values, dtype=float)
    region = np.zeros(values.size, dtype=int) if regions is None else regions
    low, high = more.pop("ends", (0.0, 1.0))
    generator = RandomSource.of(0, "order of bets").generator()
    draws = Entries(region, values, n_regions, weights, more.pop("number", None))
    zero = np.zeros(n_regions)
    return BetUnits.of(draws, zero + low, zero + high, generator, **more)


@question
def limits_of_means() -> Any:
    values = SMOOTH.scores[:300]
    found: list[Any] = [
        kl.lower_mean(mean, n, 0.05) for mean in (0.0, 0.2, 1.0) for n in (1, 30, 3000)
    ]
    found += [
        kl.largest_distance(rate, bound, n)
        for rate in (0.0, 0.3)
        for bound in (0.1, 2.0)
        for n in (5, 900)
    ]
    for alpha in (0.01, 0.3):
        for outcomes in (values, np.round(values), values * 0.0, values * 0.0 + 1.0, values[:3]):
            found.append(bet_limits(bets_on(outcomes), np.full(1, alpha / 2.0)))
    return found


@question
def limits_of_weighted_means() -> Any:
    found = []
    for n in (1, 5, 40, 700, 1500):
        regions = (SMOOTH.new[:n] * 3).astype(int)
        for weights in (SMOOTH.weights[:n] / 3.0, np.ones(n), SMOOTH.scores[:n] ** 3):
            for outcomes in (SMOOTH.y[:n], SMOOTH.scores[:n]):
                units = bets_on(outcomes, weights, regions=regions, n_regions=4)
                found += [bet_limits(units, np.full(4, 0.025))]
    return found


@question
def tails_of_sums_of_labels() -> Any:
    found = []
    for rates in (
        SMOOTH.scores[:7],
        SMOOTH.scores[:90],
        np.array([0.5]),
        np.array([0.0, 1.0, 0.3]),
    ):
        for count in range(0, rates.size + 1, max(1, rates.size // 5)):
            found += [
                poisson_binomial.upper_tail(rates, count),
                poisson_binomial.lower_tail(rates, count),
            ]
    for count in (0.0, 1.0, 30.0, 55.0, 60.0):
        found.append(
            poisson_binomial.log_tail_bound(np.array([20, 40]), np.array([0.2, 0.6]), count)
        )
        found.append(
            poisson_binomial.log_tail_bound(np.array([20, 40]), np.array([0.0, 1.0]), count)
        )
    return found


@question
def blocks_of_bets() -> Any:
    """The sums of blocks, and how many units are left after each."""
    found: list[Any] = [block_ends(5), block_ends(400)]
    for weights in (None, SMOOTH.weights[:300] / 3.0):
        units = bets_on(SMOOTH.scores[:300], weights)
        found += [units.moments.sum(axis=(2, 3)), units.heaviest.max(axis=1), units.ends]
        found += [units.z[:5], units.w[:5]]
    return found


@question
def means_that_are_exceeded() -> Any:
    regions = (SMOOTH.new[:700] * 3).astype(int)
    found = []
    for weights in (None, SMOOTH.weights[:700] / 3.0):
        for values in (SMOOTH.y[:700], SMOOTH.scores[:700]):
            units = bets_on(values, weights, regions=regions, n_regions=4)
            found += [exceeds(units, mean, 0.05) for mean in (0.0, 0.2, 0.4, 0.45, 0.5, 1.0)]
    return found


@question
def from_calibration_to_sets() -> Any:
    interval = Interval(np.array([0.0, 0.2, 0.6, 0.5]), np.array([0.1, 0.5, 1.0, 0.5]))
    found: list[Any] = [
        calibration_to_interval([0.0, 0.3, 0.98], epsilon) for epsilon in (0.0, 0.05, 0.4)
    ]
    found += [interval_to_calibration(interval, simultaneous=flag) for flag in (True, False)]
    found += [interval_to_set(interval)]
    found += [minimum_expected_width(level) for level in (0.1, 0.5, 0.9, 0.99)]
    return [
        found,
        refused(lambda: calibration_to_interval([0.5], -0.1)),
        refused(lambda: calibration_to_interval([1.5], 0.1)),
        refused(lambda: minimum_expected_width(0.0)),
        refused(lambda: minimum_expected_width(1.0)),
    ]


@question
def refusals_of_limits() -> Any:
    tally = Tally.from_counts([5, 0, 7], [1, 0, 7])
    found = [
        refused(lambda name=name, alpha=alpha: get_method(name)(tally, alpha))
        for name in METHODS
        for alpha in (0.0, 1.0)
    ]
    return [
        found,
        refused(lambda: get_method("none")),
        refused(lambda: Interval(np.array([0.5]), np.array([0.4]))),
        refused(lambda: Interval(np.array([0.5]), np.array([0.4, 0.6]))),
        refused(lambda: binomial.lower_limit([1], [0], 0.1)),
        refused(lambda: binomial.lower_limit([-1], [3], 0.1)),
        refused(lambda: binomial.lower_limit([1], [3], 0.0)),
        refused(lambda: binomial.upper_limit([1], [3], 1.0)),
        [
            Interval(np.array([0.1]), np.array([0.4])) == Interval(np.array([0.1]), np.array([top]))
            for top in (0.4, 0.5)
        ],
    ]


@question
def limits_of_many_weighted_rows() -> Any:
    rng = np.random.default_rng(11)
    n = 9000
    outcomes = rng.integers(0, 2**20, n) / 2**20
    weights = rng.integers(1, 4, n) / 3.0
    regions = np.where(np.arange(n) < 8500, 0, 1)
    found: list[Any] = []
    for values in (outcomes, (outcomes < 0.2).astype(float)):
        units = bets_on(values, weights, regions=regions, n_regions=2)
        found.append(bet_limits(units, np.full(2, 0.025)))
        found.append(bet_limits(bets_on(values), np.full(1, 0.025)))
    found.append(bet_limits(bets_on([]), np.full(1, 0.025)))
    return found


@question
def bets_towards_a_goal() -> Any:
    rng = np.random.default_rng(12)
    found = []
    for n in (0, 1, 7, 128, 129, 999, 1000, 9000):
        values = rng.integers(0, 2**20, n) / 2**20
        weights = rng.integers(1, 4, n) / 3.0
        seen = Entries(np.zeros(20, dtype=int), np.arange(20) / 64.0, 1)
        for pilot in (None, seen):
            for given in (None, weights):
                for ends in ((0.0, 1.0), (-0.5, 1.5))[: 1 + (n < 1000)]:
                    units = bets_on(values, given, ends=ends, pilot=pilot)
                    found += [bet_limits(units, np.full(1, 0.05))]
    return found


@question
def bets_on_equal_units() -> Any:
    """Given by their number: put in order one by one, and dealt out in blocks."""
    values = np.array([0.0, 0.25, 0.5, 1.0, 0.0, 1.0])
    regions = np.array([0, 0, 0, 0, 1, 1])
    number = np.array([30_000, 9_000, 20, 1_000, 70, 30])
    units = bets_on(values, regions=regions, n_regions=3, number=number)
    return [bet_limits(units, np.full(3, tail)) for tail in (0.001, 0.05, 0.3)]
