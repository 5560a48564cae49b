"""One threshold: its score, its target, and the measurements there."""

import math
from collections.abc import Hashable
from dataclasses import dataclass

from calibrant.assess.threshold.confusion import Confusion
from calibrant.text.numbers import nearest, percent
from calibrant.text.result_table import share_limits
from calibrant.text.sentences import joined, words

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
