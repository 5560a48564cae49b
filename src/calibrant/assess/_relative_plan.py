"""Limits on the ratio of the true rate to the prediction, in a bin of a planned size."""

import numpy as np

from calibrant.cells.tally import Tally
from calibrant.guarantee.relative import relative_limits
from calibrant.limits.error_budget import budgets
from calibrant.limits.interval import Interval
from calibrant.limits.methods import get_method
from calibrant.params.rules import error_budget
from calibrant.text.numbers import factor_limits, percent


def limits_at(
    rate: float, n_rows: int, n_bins: int, interval: str, confidence_level: float
) -> Interval | None:
    """Limits on the true rate divided by the prediction, if this share of the bin's rows is
    positive.

    None for a bin without rows.
    """
    if n_rows == 0:
        return None
    counts = np.full(n_bins, n_rows)
    positives = np.full(n_bins, round(rate * n_rows))
    value = (positives + 0.5) / (n_rows + 1.0)
    for_rates, _ = budgets(error_budget(confidence_level))
    limits = get_method(interval)(Tally.from_counts(counts, positives), for_rates)
    every = relative_limits(limits, Interval(value, value))
    return Interval(every.lower[:1], every.upper[:1])


def in_factors(limits: Interval | None, rate: float | None) -> str:
    """What epsilon does not say about rare events; empty if there is nothing to add."""
    if limits is None or rate is None:
        return ""
    factors = factor_limits(float(limits.lower[0]), float(limits.upper[0]))
    return (
        f" In a bin with {percent(rate)} positive rows, the true rate is {factors} times the"
        " prediction."
    )
