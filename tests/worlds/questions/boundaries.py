"""Small functions called directly, at the values where they change what they do."""

from typing import Any

import numpy as np

from calibrant import BinningCalibrator, Partition, Tally
from calibrant.assess.check.p_values import (
    equal_mass_bins,
    label_p_values,
    rank_p_values,
    rates_of,
    smaller_before,
)
from calibrant.assess.check.uniform_bets import (
    capital,
    drift_of_labels,
    drift_of_ranks,
    look_ends,
    runs_of_labels,
    runs_of_ranks,
)
from calibrant.assess.compare_models.model_comparison import PairedDifference
from calibrant.assess.metrics.independent_units import ROWS
from calibrant.assess.threshold.candidates import (
    labels_that_would_do,
    misses_allowed,
    rows_needed,
)
from calibrant.assess.validation.measures import kuiper_test
from calibrant.limits.empirical_bernstein import largest_bernstein
from calibrant.limits.error_budget import budgets, even_width_tails, even_widths
from calibrant.limits.interval import Interval
from calibrant.limits.kolmogorov import kolmogorov_distance
from calibrant.limits.mass import mass_limits, missing_mass_limit
from calibrant.limits.methods import METHODS
from calibrant.limits.non_identical import (
    gap_limits,
    largest_variance,
    noise_bound,
    non_identical,
    signed_noise_bound,
)
from calibrant.limits.sequences.betting import Gamblers
from calibrant.limits.sequences.centred import log_evidence
from calibrant.limits.shift.evidence import effective_rows
from calibrant.ratios import LogisticRatio
from calibrant.sequences import SEQUENCES
from calibrant.shift.ratios.density_ratio import (
    RatioDiagnostics,
    effective_sample_size,
    share_outside,
)
from worlds.questions.base import ATOMS, SMOOTH, TIED, Text, of_calibrator, question, tried


@question
def verdicts_on_ratios() -> Any:
    found: list[Any] = []
    for n in (29, 30, 31, 100, 3000, 3100):
        for mean in (0.75, 0.8, 0.85, 0.9, 1.2, 1.25, 1.3):
            found += [RatioDiagnostics.of(np.full(n, mean), n, 0.0)]
    for outside in (0.0, 0.049, 0.05, 0.051, 0.3):
        found += [RatioDiagnostics.of(np.ones(50), 50, outside)]
    heavy = np.concatenate([np.full(3000, 1e-3), np.full(29, 50.0)])
    found += [RatioDiagnostics.of(heavy, 10, 0.0), effective_sample_size(np.zeros(3))]
    for far in (0.0, 0.3, 1.0):
        moved = SMOOTH.new[:, None] + far
        found += [share_outside(SMOOTH.scores[:, None], moved)]
        found += [share_outside(SMOOTH.scores[:40, None], moved[:30])]
    return found


@question
def noise_of_labels() -> Any:
    found: list[Any] = []
    for n in (1, 10, 4095, 4096, 4097, 20_000):
        for variance in (0.001, 0.01, 0.25):
            for tail in (0.001, 0.2):
                found += [tried(noise_bound, float(n), variance, tail)]
                found += [tried(signed_noise_bound, n, variance, tail)]
        found += [noise_bound(float(n), None, 0.05)]
    ends = Interval(np.array([0.0, 0.2, 0.6, 0.5]), np.array([0.1, 0.7, 1.0, 0.5]))
    return [found, largest_variance(ends)]


@question
def rows_that_targets_need() -> Any:
    found: list[Any] = []
    for target in (0.05, 0.5, 0.83, 0.99):
        for alpha in (0.01, 0.1, 0.5):
            found += [rows_needed(target, alpha)]
            for n in (1, 10, 45, 200, 5000):
                found += [misses_allowed(n, target, alpha)]
    n = np.array([10, 50, 200, 800])
    for share in (0.4, 0.7, 0.95):
        k = np.round(share * n).astype(int)
        for target in (0.3, 0.6, 0.9):
            found += [labels_that_would_do(n, k, 1000, target, 0.1)]
    return found


@question
def parts_of_checks() -> Any:
    found: list[Any] = []
    for n in (1, 2, 5, 40, 999, 1000, 1001, 2500):
        found += [look_ends(n)]
    for world in (SMOOTH, TIED):
        values = world.scores[:200]
        codes = world.y[:200].astype(np.uint8)
        bins = equal_mass_bins(values)
        rates = rates_of(codes, bins)
        ranks = rank_p_values(values, np.random.default_rng(1))
        labels = label_p_values(codes, bins, np.random.default_rng(2))
        found += [bins, rates, ranks, labels, smaller_before(np.argsort(values, kind="stable"))]
        ends = look_ends(200)
        for switching in (True, False):
            for bets in (
                drift_of_ranks(ranks),
                runs_of_ranks(ranks),
                drift_of_labels(labels, rates, bins),
                runs_of_labels(labels, rates, bins),
            ):
                found += [capital(bets, ends, switching=switching)]
    return found


@question
def shares_of_budgets() -> Any:
    errors = np.array([0.01, 0.1, 0.1, 2.0])
    found: list[Any] = [even_widths(errors, alpha) for alpha in (0.01, 0.1, 0.5)]
    found += [even_width_tails(errors, alpha) for alpha in (0.01, 0.1, 0.5)]
    found += [budgets(alpha) for alpha in (0.01, 0.5)]
    found += [largest_bernstein(rows, most, 0.1, 4) for rows in (5, 300) for most in (0, 2, rows)]
    counts = np.array([0, 1, 5, 40, 1999, 2000, 2001, 50_000])
    found += [kolmogorov_distance(counts, alpha) for alpha in (0.05, 0.4)]
    return found


@question
def masses() -> Any:
    found: list[Any] = []
    for scores, y in ((SMOOTH.scores, SMOOTH.y), (TIED.scores, TIED.y), (ATOMS.scores, ATOMS.y)):
        for pilot in (None, 0.2):
            fitted = BinningCalibrator(5, pilot=pilot).fit(scores, y)
            for alpha in (0.02, 0.4):
                found += [tried(mass_limits, fitted.partition_, fitted.tally_, alpha)]
    for counts in ([0, 3, 5], [1, 1, 1, 1], [1000, 2, 1], [10**6, 10**5]):
        found += [missing_mass_limit(np.array(counts), alpha) for alpha in (0.01, 0.3)]
    return found


@question
def sums_of_unlike_labels() -> Any:
    counts = np.array([0, 1, 2, 10, 10, 10, 500, 500])
    positives = np.array([0, 1, 1, 0, 5, 10, 3, 250])
    found: list[Any] = []
    for tail in (0.001, 0.1, 0.4):
        limits = non_identical(counts, positives, tail)
        found += [limits, non_identical(counts, positives, tail, True)]
        found += gap_limits(limits, np.linspace(0.0, 1.0, counts.size))
    return found


@question
def one_label_at_a_time() -> Any:
    gambler = Gamblers.fresh(np.linspace(0.0, 1.0, 201), 0.5)
    found = []
    for label in (1, 0, 0, 1, 1):
        gambler.take(np.array([label], dtype=np.uint8), 1.5)
        found += [gambler.limits()]
    gambler.take(np.array([], dtype=np.uint8), 1.5)
    return [found, gambler.limits()]


@question
def rows_without_weight() -> Any:
    weights = np.where(np.arange(1500) % 4 == 0, 0.0, SMOOTH.weights / 3.0)
    found = []
    for given in ({}, {"groups": SMOOTH.groups, "max_group_size": 12}):
        fitted = BinningCalibrator(2).fit(
            SMOOTH.scores, SMOOTH.y, importance_weight=weights, weight_bound=1.0, **given
        )
        found += [of_calibrator(fitted), fitted.guarantee_]
    return found


@question
def ranges_of_paths() -> Any:
    found = []
    for draws in (19, 99):
        for n in (5, 60, 300):
            order = np.argsort(SMOOTH.scores[:n])
            codes = SMOOTH.y[:n][order].astype(np.uint8)
            rng = np.random.default_rng(3)
            found += [kuiper_test(codes, SMOOTH.scores[:n][order], draws, rng, ROWS)]
    for label, score in ((1, 0.3), (1, 0.9), (0, 0.3), (0, 0.9)):  # paths on one side of 0
        codes = np.full(20, label, dtype=np.uint8)
        rng = np.random.default_rng(3)
        found += [kuiper_test(codes, np.linspace(score, score + 0.05, 20), 99, rng, ROWS)]
    return found


@question
def evidence_far_from_the_rate() -> Any:
    found: list[Any] = []
    for n in (1.0, 50.0, 1e4, 1e6):
        for rate in (0.0, 0.1, 0.5, 1.0):
            for p in (1e-9, 0.001, 0.3, 0.9):
                k = np.array([np.floor(n * rate)])
                found += [log_evidence(k, np.array([n]), np.array([p]), np.array([1.0 - p]))]
    return found


@question
def effective_rows_of_regions() -> Any:
    """One of the regions has no rows."""
    thirds = Partition.fixed_width(3)
    scores = np.where(SMOOTH.scores[:60] < 0.4, 0.1, 0.9)
    weighted = Tally.from_data(thirds, scores, SMOOTH.y[:60], importance_weight=SMOOTH.weights[:60])
    return [
        effective_rows(one) for one in (weighted, Tally.from_data(thirds, scores, SMOOTH.y[:60]))
    ]


@question
def largest_radii_of_methods() -> Any:
    found: list[Any] = []
    for name in METHODS:
        largest = METHODS[name].largest_radius
        found += [
            tried(largest, rows, most, alpha, n_regions)
            for rows, most in ((1, 1), (12, 40), (300, 10_000))
            for alpha in (0.01, 0.4)
            for n_regions in (1, 9)
        ]
    return found


class Certain:
    """A classifier that is sure of some rows."""

    classes_ = np.array([0, 1])

    def fit(self, rows: Any, codes: Any) -> "Certain":
        self.n_rows_ = len(codes)
        return self

    def predict_proba(self, rows: Any) -> Any:
        target = np.where(rows[:, 0] > 0.5, 1.0, rows[:, 0])
        return np.stack([1.0 - target, target], axis=1)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


@question
def weights_of_a_classifier_that_is_sure() -> Any:
    rows = SMOOTH.scores[:60, None]
    ratio = LogisticRatio(classifier=Certain()).fit(rows, rows[:40])
    return [ratio.predict(rows), ratio.diagnostics_]


@question
def which_model_is_better() -> Any:
    found = []
    for measure in ("Brier score", "AUC"):
        for lower, upper in ((-0.2, -0.05), (-0.1, 0.0), (-0.1, 0.05), (0.0, 0.1), (0.05, 0.2)):
            pair = PairedDifference("a", "b", measure, 0.0, lower, upper, True)
            found += [Text(str(pair.better))]
    return found


@question
def paths_of_one_kind_of_label() -> Any:
    found = []
    for kind in SEQUENCES.values():
        for labels in (np.ones(12, np.uint8), np.zeros(12, np.uint8)):
            found += [kind.path(labels, 0.1)]
    return found
