"""Errors in the paper, each shown by a simulation: what is printed, what it claims, what happens,
what calibrant does.

python experiments/slips.py                            # about a minute
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from rich.console import Console
from rich.table import Table

from calibrant import Interval, Partition, Tally
from calibrant.errors import InvalidValueError
from calibrant.intervals import empirical_bernstein
from calibrant.limits.shift.paper import why_vacuous
from calibrant.shift import Evidence
from calibrant.tripod import interval_to_calibration, interval_to_set

ALPHA = 0.1
RNG = np.random.default_rng(0)


def corollary_of_fewest_rows() -> list[tuple[str, str, str]]:
    """Corollary 4: epsilon at the region with the fewest rows.

    Another one may be wider.
    """
    found = []
    for counts in ([900, 1000], [100_000, 100_100]):
        draws = 2_000
        n = np.array(counts)
        held = 0
        for _ in range(draws):
            positives = np.array([0, RNG.binomial(n[1], 0.5)])
            radius = (
                empirical_bernstein(Tally.from_counts(n, positives), ALPHA).upper - positives / n
            )
            held += abs(positives[1] / n[1] - 0.5) <= radius[np.argmin(n)]
        found.append(
            (f"rows {counts}, rates 0 and 0.5", "holds in 0.9", f"holds in {held / draws:.3f}")
        )
    return found


def marginal_intervals() -> list[tuple[str, str, str]]:
    """The converse in Theorem 1, for intervals that hold on average only, where
    midpoints coincide.
    """
    mass = np.array([0.9, 0.1])
    rate = np.array([0.6, 1.0])
    limits = (0.4, 0.6)
    coverage = mass[(rate >= limits[0]) & (rate <= limits[1])].sum()
    error = abs(mass @ rate - sum(limits) / 2)
    return [
        (
            f"both intervals {limits}, coverage {coverage:.1f}",
            "error at most 0.1 in 0.9",
            f"error {error:.2f}, always",
        )
    ]


def sets_of_bins() -> list[tuple[str, str, str]]:
    """Theorem 2: an interval cut with {0, 1} is a prediction set only for scores
    without atoms.
    """
    interval = empirical_bernstein(Tally.from_counts([5000] * 10, np.arange(250, 5000, 500)), ALPHA)
    inside = interval_to_set(interval)
    return [
        (
            "ten bins of 5,000 rows",
            "label in the set in 0.9",
            f"{int((~inside.any(axis=1)).sum())} of 10 sets are empty",
        )
    ]


def printed_quantile_bins() -> list[tuple[str, str, str]]:
    """Uniform-mass bins as printed: [0, q1), [q1, q2], ..., [q_{B-2}, q_{B-1}], (q_{B-1}, 1]."""

    def homes(edges: np.ndarray, score: float) -> int:
        inner = sum(low <= score <= high for low, high in pairwise(edges))
        return (score < edges[0]) + inner + (score > edges[-1])

    four = np.array([0.25, 0.5, 0.75])
    two = np.array([0.5])
    ours = Partition.from_edges(four)
    return [
        ("four bins, the middle edge", "in one bin", f"in {homes(four, 0.5)} bins"),
        ("two bins, the edge", "in one bin", f"in {homes(two, 0.5)} bins"),
        (
            "four bins with calibrant",
            "in one bin",
            f"in {ours.describe()[int(ours.assign([0.5])[0])]} alone",
        ),
    ]


def constant_of_the_shift_theorem() -> list[tuple[str, str, str]]:
    """Theorem 7: no constant is given, and the paper's own example has inf
    w = 0.
    """
    x = RNG.uniform(size=(7840, 3))
    tally = Tally.from_data(
        Partition.fixed_width(10),
        x.mean(axis=1),
        x[:, 0] < 0.5,
        importance_weight=8 * x.prod(axis=1),
    )
    said = why_vacuous(Evidence(tally, weight_bound=8.0), ALPHA)
    n_bins = 100
    log_term = np.log(6 * n_bins / ALPHA)
    return [
        ("the paper's example", "a finite bound", str(said)),
        (
            "step 1 of its proof, B = 100, U = L",
            f"n >= 9 B ln^2 = {9 * n_bins * log_term**2:,.0f} is enough",
            f"its bound on N is positive only for n > {2 * n_bins**2 * log_term:,.0f}",
        ),
    ]


def missing_mass_in_step_four() -> list[tuple[str, str, str]]:
    """Step 4 bounds pi-hat as if m w y had range U; its range is m U."""
    # half of the population is this region, where w is 2 for 1 row in 100 and 0.02 otherwise, and
    # labels are 1 where w is 2; in the other half w is such that its mean is 1 in all, which stays
    # below U = 2
    n = 2_000
    draws = 20_000
    bound = 2.0
    log_term = np.log(6 * 2 / ALPHA)
    mean_weight = 0.01 * 2.0 + 0.99 * 0.02
    heavy = RNG.binomial(n, 0.01, size=draws)
    estimate = 2.0 * heavy / n / mean_weight
    truth = 2.0 * 0.01 / mean_weight
    missed = np.mean(np.abs(estimate - truth) > bound * np.sqrt(log_term / (2 * n)))
    case = f"U = {bound:g}, m = {1 / mean_weight:.1f}, {n:,} rows"
    return [(case, f"missed in {ALPHA / 3 / 2:.4f}", f"missed in {missed:.4f}")]


def dropped_parentheses() -> list[tuple[str, str, str]]:
    """The displayed middle line in the proof of Theorem 6: ln(6.3B/alpha) belongs inside
    the product with V.
    """
    alpha = 0.01
    runs = 4_000
    n = np.unique(np.geomspace(100, 1e8, 1_500).astype(np.int64))
    hits = np.cumsum(RNG.binomial(np.diff(n, prepend=0), 0.5, size=(runs, n.size)), axis=1)
    p = hits / n
    v = np.maximum(n * p * (1 - p), 1.0)  # the running variance, up to a logarithm
    slow = np.log(1 + np.log(v))
    log_term = np.log(6.3 / alpha)
    printed = 1.46 * np.sqrt(1.4 * v * slow + log_term) + 5.27 * slow + 3.76 * log_term
    repaired = 1.46 * np.sqrt(v * (1.4 * slow + log_term)) + 5.27 * slow + 3.76 * log_term
    missed = [
        float(np.mean((np.abs(hits - 0.5 * n) > width).any(axis=1)))
        for width in (printed, repaired)
    ]
    return [
        (
            "one region, rate 0.5, looks up to 10^8 labels",
            "ever missed in 0.01",
            f"ever missed in {missed[0]:.4f}",
        ),
        ("the same with the parentheses", "ever missed in 0.01", f"ever missed in {missed[1]:.4f}"),
    ]


def recommended_estimator() -> list[tuple[str, str, str]]:
    """The appendix recommends pi-hat, which needs the unknown m_b; what it means is pi-check."""
    n = 400
    draws = 5_000
    w = RNG.uniform(0, 2, size=(draws, n))
    y = RNG.uniform(size=(draws, n)) < 0.9
    hat = (w * y).mean(axis=1)
    check = (w * y).sum(axis=1) / w.sum(axis=1)
    return [
        (
            "pi-hat with the true m_b",
            "recommended",
            f"sd {hat.std():.4f}, and {np.mean(hat > 1):.1%} above 1",
        ),
        ("pi-check, without it", "", f"sd {check.std():.4f}, never above 1"),
    ]


SLIPS: dict[str, Callable[[], list[tuple[str, str, str]]]] = {
    "Corollary 4": corollary_of_fewest_rows,
    "Theorem 1, converse": marginal_intervals,
    "Theorem 2": sets_of_bins,
    "uniform-mass bins": printed_quantile_bins,
    "Theorem 7": constant_of_the_shift_theorem,
    "the same, step 4": missing_mass_in_step_four,
    "recommendation on covariate shift": recommended_estimator,
    "Theorem 6, proof": dropped_parentheses,
}


def main() -> None:
    table = Table(title="Slips of the paper, run", show_lines=True)
    for heading in ("where", "case", "as printed", "what happens"):
        table.add_column(heading)
    for where, run in SLIPS.items():
        for case, printed, happens in run():
            table.add_row(where, case, printed, happens)
            where = ""
    Console().print(table)
    both = Interval(np.array([0.4, 0.4]), np.array([0.6, 0.6]))
    try:
        interval_to_calibration(both, simultaneous=False)
    except InvalidValueError as error:
        Console().print(f"calibrant refuses the converse of Theorem 1 there: {error}")


if __name__ == "__main__":
    main()
