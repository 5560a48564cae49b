"""One threshold: its target, the rows on both sides of it, their shares, and limits for these in the
population.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IntArray
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.kolmogorov import kolmogorov_distance
from calibrant.text.numbers import nearest, percent
from calibrant.text.result_table import share_limits
from calibrant.text.sentences import joined, words

Count = TypeVar("Count", int, IntArray)


class Confusion(NamedTuple, Generic[Count]):
    """Counted rows by decision and label.

    Or arrays, with an entry per threshold or per group.
    """

    tp: Count
    fp: Count
    fn: Count
    tn: Count

    @property
    def n(self) -> Count:
        """All counted rows."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def shares(self) -> dict[str, tuple[Count, Count]]:
        """Each share, as a pair of its numerator and denominator rows."""
        tp, fp, fn, tn = self
        return {
            "selected": (tp + fp, self.n),
            "precision": (tp, tp + fp),
            "recall": (tp, tp + fn),
            "specificity": (tn, tn + fp),
            "npv": (tn, tn + fn),
        }


Seen: TypeAlias = Confusion[int] | Mapping[str, tuple[float, float]]
"""Counts at a threshold; with groups, each share where a group counts up to its cap, and where all
rows count.
"""


def confusion_at(scores: FloatArray, codes: CodeArray, cut: float) -> Confusion[int]:
    """The confusion counts at one threshold."""
    return Confusion(*np.bincount(2 * (scores < cut) + (codes == 0), minlength=4).tolist())


TARGETS = {
    "precision": "{share} of the rows with a score {above} are positive",
    "recall": "{share} of the positive rows have a score {above}",
    "npv": "{share} of the rows with a score {below} are negative",
    "specificity": "{share} of the negative rows have a score {below}",
}
"""The targets, and what each claims."""


PARTS = ("selected", "precision", "recall", "specificity", "npv")
"""The measurements at a threshold."""


SHOWN = ("selected", "precision", "recall")
"""The measurements that are printed."""


def compared(cut: float) -> dict[str, str]:
    """Return how scores above and below a threshold compare with it.

    The next double after a short number is shown by that number, not by its own digits.

    >>> compared(0.85), compared(0.8500000000000001)
    ({'above': '>= 0.85', 'below': '< 0.85'}, {'above': '> 0.85', 'below': '<= 0.85'})
    """
    under = math.nextafter(cut, -math.inf)
    if cut and float(f"{under:.10g}") == under:
        return {"above": f"> {under!r}", "below": f"<= {under!r}"}
    return {"above": f">= {cut!r}", "below": f"< {cut!r}"}


def _in_short(cut: float) -> dict[str, str]:
    """How scores above and below a threshold compare with it, in four digits at most.

    >>> _in_short(0.719081121), _in_short(0.85)
    ({'above': '>= about 0.7191', 'below': '< about 0.7191'}, {'above': '>= 0.85', 'below': '< 0.85'})
    """
    exact = compared(cut)
    if len(exact["above"]) <= len(">= 0.1234"):
        return exact
    return {"above": f">= about {cut:.4g}", "below": f"< about {cut:.4g}"}


@dataclass(frozen=True, slots=True)
class Measured:
    """A share among the counted rows, and limits for it in the population.

    The limits are 0 and 1 if none are derived.
    """

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        known = "unknown" if math.isnan(self.value) else nearest(self.value)
        return f"{known} ({share_limits(self.lower, self.upper)})"


@dataclass(frozen=True, slots=True)
class Cut:
    """One target in one segment: the threshold, and what is known about the rows on both sides of
    it.

    Attributes
    ----------
    segment : object
        The segment; None for all rows.
    target, level : str, float
        The requested target, such as "precision", 0.9.
    threshold : float or None
        Rows with score >= threshold are selected; None if nothing is guaranteed.
    reason : str or None
        Why nothing is guaranteed.
    labels_needed : int or None
        If nothing is guaranteed: the number of labels in this segment that would probably be
        enough, if further rows are like these. Always more than there are. None if no threshold
        looks good enough, or if the estimate does not exceed the rows that there are: then the
        reason says that more labels may be enough.
    counted : int
        Number of rows counted.
    selected, precision, recall, specificity, npv : Measured or None
        The share of rows selected, and how often the decision is correct. All their limits and the
        target hold together; see `Threshold.limits_confidence_level`.
    seen : Confusion or None
        The counted rows by decision and label, from which all shares follow; None with groups.
    n_tried : int
        How many thresholds were fixed before rows were counted; 0 if it was found among all scores.
    unlabelled : (int, int) or None
        How many rows without labels are selected, and how many there are.
    """

    segment: Hashable
    target: str
    level: float
    threshold: float | None
    reason: str | None = None
    labels_needed: int | None = None
    counted: int = 0
    selected: Measured | None = None
    precision: Measured | None = None
    recall: Measured | None = None
    specificity: Measured | None = None
    npv: Measured | None = None
    seen: Confusion[int] | None = None
    n_tried: int = 0
    unlabelled: tuple[int, int] | None = None

    @property
    def shares(self) -> tuple[float, ...] | None:
        """The values of all shares, where no counts give them: with groups."""
        if self.threshold is None or self.seen is not None:
            return None
        return tuple(getattr(self, name).value for name in PARTS)

    def text(self) -> str:
        """What is guaranteed, in words."""
        where = "" if self.segment is None else f"in segment {self.segment!r}, "
        if self.threshold is None:
            labels = "labels" if self.segment is None else "labels of this segment"
            needed = self.labels_needed
            more = "" if needed is None else f"; about {needed:,} {labels} would probably be enough"
            asked = f"{self.target} of {percent(self.level)}"
            failed = f"{where}a {asked} cannot be guaranteed: "
            return words(joined(failed, self.reason or "", more))
        text = TARGETS[self.target].format(
            share=f"at least {percent(self.level)}", **_in_short(self.threshold)
        )
        return f"{where}{text}"

    @property
    def threshold_text(self) -> str:
        """The threshold as text, in four digits at most: "> 0.85" for the next number above 0.85."""
        return "none" if self.threshold is None else _in_short(self.threshold)["above"]


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
        # an order statistic of one class: rows of the other class are independent of it, so their
        # share on each side has exact limits, and so does the share of positives among all rows;
        # the share of the own class is known only by its target
        recall, specificity = (
            Measured(_share(*seen.shares[name]), level, 1.0)
            if name == target
            else _exact_share(*seen.shares[name], rest / 4)
            for name in ("recall", "specificity")
        )
        parts = _composed(seen, rest / 4, recall, specificity)
    else:  # however found: Kolmogorov's distance within each class holds at all thresholds
        pairs = seen.shares["recall"], seen.shares["specificity"]
        reach = kolmogorov_distance(np.array([n for _, n in pairs]), 0.75 * rest)
        recall, specificity = (
            Measured(k / n, max(k / n - far, 0.0), min(k / n + far, 1.0)) if n else _UNKNOWN
            for (k, n), far in zip(pairs, reach.tolist(), strict=True)
        )
        parts = _composed(seen, rest / 8, recall, specificity)
    if unlabelled is not None:
        parts["selected"] = _exact_share(*unlabelled, _UNLABELLED_PART * alpha / 2.0)
    return _with_target(parts, target, level)


def measured_in_groups(
    shares: Mapping[str, float], target: str, level: float
) -> dict[str, Measured]:
    """Shares among rows of groups, counted as in the tests. Only the target is guaranteed."""
    parts = {name: Measured(share, 0.0, 1.0) for name, share in shares.items()}
    return _with_target(parts, target, level)


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
