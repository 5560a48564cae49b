"""Shares at a threshold, and limits for them in the population."""

import math
from collections.abc import Mapping

import numpy as np

from calibrant.assess.threshold.candidates import Confusion
from calibrant.assess.threshold.cut import Measured, Ratio
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.kolmogorov import kolmogorov_distance

_UNKNOWN = Measured(math.nan, 0.0, 1.0)


def measured_at_fixed(
    seen: Confusion[int], target: str, level: float, tail: float
) -> dict[str, Measured]:
    """Exact limits at a threshold that was fixed beforehand.

    `tail` applies to each of the five shares and both sides.
    """
    parts = {name: exact_share(*share, tail) for name, share in seen.shares.items()}
    return _finished(parts, target, level)


def measured_at_rank(
    seen: Confusion[int], target: str, level: float, alpha: float
) -> dict[str, Measured]:
    """Limits at an order statistic of one class: rows of the other class are independent of it.

    So their share on each side has exact limits, and so does the share of positives among all rows.
    The share of the own class is known only by its target. The rest follows from these three.
    """
    parts = {
        name: (
            Measured(_share(*seen.shares[name]), level, 1.0)
            if name == target
            else exact_share(*seen.shares[name], alpha / 4)
        )
        for name in ("recall", "specificity")
    }
    return _composed(seen, alpha / 4, **parts, target=target, level=level)


def measured_anywhere(
    seen: Confusion[int], target: str, level: float, alpha: float
) -> dict[str, Measured]:
    """Limits at any threshold, however found: Kolmogorov's distance within each class holds at all
    thresholds.
    """
    pairs = seen.shares["recall"], seen.shares["specificity"]
    reach = kolmogorov_distance(np.array([n for _, n in pairs]), 0.75 * alpha)
    recall, specificity = (
        Measured(k / n, max(k / n - far, 0.0), min(k / n + far, 1.0)) if n else _UNKNOWN
        for (k, n), far in zip(pairs, reach.tolist(), strict=True)
    )
    return _composed(seen, alpha / 8, recall, specificity, target, level)


def measured_in_groups(
    shares: Mapping[str, float], target: str, level: float
) -> dict[str, Measured]:
    """Shares among rows of groups, counted as in the tests. Only the target is guaranteed."""
    parts = {name: Measured(share, 0.0, 1.0) for name, share in shares.items()}
    return _finished(parts, target, level)


def _composed(
    seen: Confusion[int],
    tail: float,
    recall: Measured,
    specificity: Measured,
    target: str,
    level: float,
) -> dict[str, Measured]:
    """All shares, from the share of positives, each of whose limits fails with probability at most
    `tail`, and from the shares of both classes on each side.
    """
    value = {name: _share(*share) for name, share in seen.shares.items()}
    base = exact_share(seen.tp + seen.fn, seen.n, tail)
    of_negatives = Measured(1 - base.value, 1 - base.upper, 1 - base.lower)
    bases = (base.lower, base.upper)
    low = min(one * recall.lower + (1 - one) * (1 - specificity.upper) for one in bases)
    high = max(one * recall.upper + (1 - one) * (1 - specificity.lower) for one in bases)
    parts = {
        "selected": Measured(value["selected"], low, high),
        "precision": _bayes(value["precision"], base, recall, specificity),
        "recall": recall,
        "specificity": specificity,
        "npv": _bayes(value["npv"], of_negatives, specificity, recall),
    }
    return _finished(parts, target, level)


def _bayes(value: float, base: Measured, hit: Measured, rejected: Measured) -> Measured:
    """The share of positives among selected rows, from the selected shares of both classes."""

    def right(share: float, hits: float, alarms: float) -> float:
        return share * hits / max(share * hits + (1 - share) * alarms, 1e-300)

    lower = right(base.lower, hit.lower, 1 - rejected.lower)
    upper = right(base.upper, hit.upper, 1 - rejected.upper) if rejected.upper < 1 else 1.0
    return Measured(value, lower, upper)


def _finished(parts: dict[str, Measured], target: str, level: float) -> dict[str, Measured]:
    """Add the limit that the target implies, and the false alarms per true alarm."""
    proved = parts[target]
    parts[target] = Measured(proved.value, max(proved.lower, level), max(proved.upper, level))
    parts["false_alarms"] = alarms_per_hit(parts["precision"])
    return parts


def alarms_per_hit(precision: Measured) -> Ratio:
    """False alarms per true alarm, which follow from the precision."""
    return Ratio(_per_hit(precision.value), _per_hit(precision.upper), _per_hit(precision.lower))


def _per_hit(precision: float) -> float:
    if precision > 0.0:
        return (1.0 - precision) / precision
    return math.inf if precision == 0.0 else math.nan


def _share(k: int, n: int) -> float:
    return k / n if n else math.nan


def exact_share(k: int, n: int, tail: float) -> Measured:
    """A share of n rows with exact limits; each fails with probability at most `tail`."""
    if not n:
        return _UNKNOWN
    return Measured(k / n, float(lower_limit(k, n, tail)), float(upper_limit(k, n, tail)))
