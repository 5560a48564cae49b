"""Shares at a threshold, and limits for them in the population."""

import math
from collections.abc import Mapping

import numpy as np

from calibrant.assess.threshold.confusion import Confusion
from calibrant.assess.threshold.cut import PARTS, Measured
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.kolmogorov import kolmogorov_distance

_UNKNOWN = Measured(math.nan, 0.0, 1.0)
# part of the error budget of the limits for the share selected among rows without labels
_UNLABELLED_PART = 0.1


def measured(
    seen: Confusion[int],
    target: str,
    level: float,
    alpha: float,
    n_tried: int = 0,
    unlabelled: tuple[int, int] | None = None,
) -> dict[str, Measured]:
    """The shares at a threshold that meets its target, with limits that hold together.

    `n_tried` thresholds were fixed before these rows were counted, and this is one of them; 0 if it
    was found among all scores. `unlabelled` rows are independent of the others, and so of the
    threshold: how many of them it selects, and how many there are.
    """
    rest = alpha if unlabelled is None else (1.0 - _UNLABELLED_PART) * alpha
    if n_tried:
        tail = rest / (2 * len(PARTS) * n_tried)
        parts = {name: _exact_share(*share, tail) for name, share in seen.shares.items()}
    elif target in ("recall", "specificity"):
        parts = _at_rank(seen, target, level, rest)
    else:
        parts = _anywhere(seen, rest)
    if unlabelled is not None:
        parts["selected"] = _exact_share(*unlabelled, _UNLABELLED_PART * alpha / 2.0)
    return _with_target(parts, target, level)


def measured_in_groups(
    shares: Mapping[str, float], target: str, level: float
) -> dict[str, Measured]:
    """Shares among rows of groups, counted as in the tests. Only the target is guaranteed."""
    parts = {name: Measured(share, 0.0, 1.0) for name, share in shares.items()}
    return _with_target(parts, target, level)


def _at_rank(seen: Confusion[int], target: str, level: float, alpha: float) -> dict[str, Measured]:
    """Limits at an order statistic of one class: rows of the other class are independent of it.

    So their share on each side has exact limits, and so does the share of positives among all rows.
    The share of the own class is known only by its target. The rest follows from these three.
    """
    recall, specificity = (
        Measured(_share(*seen.shares[name]), level, 1.0)
        if name == target
        else _exact_share(*seen.shares[name], alpha / 4)
        for name in ("recall", "specificity")
    )
    return _composed(seen, alpha / 4, recall, specificity)


def _anywhere(seen: Confusion[int], alpha: float) -> dict[str, Measured]:
    """Limits at any threshold, however found: Kolmogorov's distance within each class holds at all
    thresholds.
    """
    pairs = seen.shares["recall"], seen.shares["specificity"]
    reach = kolmogorov_distance(np.array([n for _, n in pairs]), 0.75 * alpha)
    recall, specificity = (
        Measured(k / n, max(k / n - far, 0.0), min(k / n + far, 1.0)) if n else _UNKNOWN
        for (k, n), far in zip(pairs, reach.tolist(), strict=True)
    )
    return _composed(seen, alpha / 8, recall, specificity)


def _composed(
    seen: Confusion[int], tail: float, recall: Measured, specificity: Measured
) -> dict[str, Measured]:
    """All shares, from the share of positives, each of whose limits fails with probability at most
    `tail`, and from the shares of both classes on each side.
    """
    value = {name: _share(*share) for name, share in seen.shares.items()}
    base = _exact_share(seen.tp + seen.fn, seen.n, tail)
    of_negatives = Measured(1 - base.value, 1 - base.upper, 1 - base.lower)
    bases = (base.lower, base.upper)
    low = min(one * recall.lower + (1 - one) * (1 - specificity.upper) for one in bases)
    high = max(one * recall.upper + (1 - one) * (1 - specificity.lower) for one in bases)
    return {
        "selected": Measured(value["selected"], low, high),
        "precision": _bayes(value["precision"], base, recall, specificity),
        "recall": recall,
        "specificity": specificity,
        "npv": _bayes(value["npv"], of_negatives, specificity, recall),
    }


def _bayes(value: float, base: Measured, hit: Measured, rejected: Measured) -> Measured:
    """The share of positives among selected rows, from the selected shares of both classes."""

    def right(share: float, hits: float, alarms: float) -> float:
        return share * hits / max(share * hits + (1 - share) * alarms, 1e-300)

    lower = right(base.lower, hit.lower, 1 - rejected.lower)
    upper = right(base.upper, hit.upper, 1 - rejected.upper) if rejected.upper < 1 else 1.0
    return Measured(value, lower, upper)


def _with_target(parts: dict[str, Measured], target: str, level: float) -> dict[str, Measured]:
    """The limits, with the one that the target implies."""
    met = parts[target]
    return {**parts, target: Measured(met.value, max(met.lower, level), max(met.upper, level))}


def _share(k: int, n: int) -> float:
    return k / n if n else math.nan


def _exact_share(k: int, n: int, tail: float) -> Measured:
    """A share of n rows with exact limits; each fails with probability at most `tail`."""
    if not n:
        return _UNKNOWN
    return Measured(k / n, float(lower_limit(k, n, tail)), float(upper_limit(k, n, tail)))
