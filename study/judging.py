"""How the guarantee of a fitted calibrator is judged."""

from typing import Any

import numpy as np
from scipy.stats import beta

TINY = 1e-9


def counts(
    calibrator: Any, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """Rows, positives and sum of predictions of each region: an array of shape (3, n_regions)."""
    weight = np.ones(len(y)) if weight is None else weight
    region, inside = regions(calibrator, scores)
    n_regions = calibrator.partition_.n_regions
    sums = (weight, weight * y, weight * calibrator.predict(scores))
    return np.array([np.bincount(region[inside], each[inside], n_regions) for each in sums])


def regions(calibrator: Any, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Region of each row, and whether it lies in one."""
    partition = calibrator.partition_
    region = partition.membership(partition.prepare(scores))
    return region, region >= 0


def is_broken(
    calibrator: Any, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None
) -> bool:
    """Whether anything that was guaranteed is false, in a population whose rows are all known.

    Guaranteed are, in every region at once, limits on the rate, on the distance between the average
    prediction and the rate, and on the share of the population.
    """
    guarantee = calibrator.guarantee_
    rows, positives, predicted = counts(calibrator, scores, y, weight)
    filled = rows > 0
    rate, average = (sums[filled] / rows[filled] for sums in (positives, predicted))
    wrong = (rate < guarantee.lower[filled] - TINY) | (rate > guarantee.upper[filled] + TINY)
    wrong |= np.abs(average - rate) > guarantee.radius[filled] + TINY
    if guarantee.mass_limits is None:
        return bool(wrong.any())
    share = rows / len(y)
    too_large = (share > guarantee.mass_limits.regions + TINY).any()
    return bool(wrong.any() or too_large or 1 - share.sum() > guarantee.mass_limits.outside + TINY)


def proved_distance(
    calibrator: Any, scores: np.ndarray, y: np.ndarray, level: float = 0.95
) -> float:
    """How far the rate of some region is from the guaranteed interval, at least, as new rows prove.

    Each region's rate has exact limits from the new rows, all of which hold at once with
    probability `level`. The distance is that between those limits and the guaranteed ones; 0 where
    they overlap in every region. Above 0, the new rows refute the guarantee. A guarantee that holds is
    refuted with probability at most 1 - `level`.
    """
    rows, positives, _ = counts(calibrator, scores, y)
    guarantee = calibrator.guarantee_
    tail = (1 - level) / (2 * len(rows))
    lower = np.nan_to_num(beta.ppf(tail, positives, rows - positives + 1), nan=0.0)
    upper = np.nan_to_num(beta.isf(tail, positives + 1, rows - positives), nan=1.0)
    return float(np.maximum(lower - guarantee.upper, guarantee.lower - upper).clip(0).max())


def average_gap(calibrator: Any, scores: np.ndarray, y: np.ndarray) -> float:
    """Distance between average prediction and rate, averaged over the rows of all regions."""
    rows, positives, predicted = counts(calibrator, scores, y)
    return float(np.abs(predicted - positives).sum() / rows.sum())
