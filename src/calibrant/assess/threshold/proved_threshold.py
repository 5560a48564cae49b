"""What `threshold` returns: numbers, the sentence, and the decisions that follow."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, BoolArray
from calibrant.cells.segmented_partition import segment_kinds
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_scores
from calibrant.text.numbers import above_cap, nearest, percent, rows
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable, share_limits
from calibrant.text.sentences import shown

if TYPE_CHECKING:
    from calibrant.calibrators.tables.table import Table

SCHEMA = "calibrant.threshold/1"
"""The schema of saved thresholds."""
TARGETS = {
    "precision": "{share} of the rows with score {above} are positive",
    "recall": "{share} of the positive rows have a score {above}",
    "npv": "{share} of the rows with score {below} are negative",
    "specificity": "{share} of the negative rows have a score {below}",
}
"""The targets, and what each claims."""
PARTS = ("selected", "precision", "recall", "specificity", "npv", "false_alarms")
"""What is measured at a threshold."""
SHOWN = ("selected", "precision", "recall", "false_alarms")
"""What is printed of a threshold."""
NAMES = {"false_alarms": "false alarms per true one"}
"""Parts that are printed under other names."""


def _shown_below(cut: float) -> bool:
    """Whether a threshold is the double after a short number, which shows it better than its own
    digits.
    """
    under = math.nextafter(cut, -math.inf)
    return bool(cut) and float(f"{under:.10g}") == under


def compared(cut: float) -> dict[str, str]:
    """Return how scores above and below a threshold compare with it.

    The double after a short number is shown by it.

    >>> compared(0.85), compared(0.8500000000000001)
    ({'above': '>= 0.85', 'below': '< 0.85'}, {'above': '> 0.85', 'below': '<= 0.85'})
    """
    if _shown_below(cut):
        under = math.nextafter(cut, -math.inf)
        return {"above": f"> {under!r}", "below": f"<= {under!r}"}
    return {"above": f">= {cut!r}", "below": f"< {cut!r}"}


@dataclass(frozen=True, slots=True)
class Measured:
    """A share among the counted rows, and limits for it in the population.

    0 and 1 if no limits are derived.
    """

    value: float
    lower: float
    upper: float
    most: ClassVar[float] = 1.0

    @property
    def limits(self) -> str:
        """The limits in words; what is true of every share is left out."""
        return share_limits(self.lower, self.upper, self.most)

    def __str__(self) -> str:
        known = "unknown" if math.isnan(self.value) else nearest(self.value)
        return f"{known} ({self.limits})"


@dataclass(frozen=True, slots=True)
class Ratio(Measured):
    """A number for each of something else, which may exceed 1.

    If no limits are derived, they are 0 and infinity.
    """

    most: ClassVar[float] = math.inf


@dataclass(frozen=True, slots=True)
class Cut:
    """One target in one segment: the threshold, and what is known of the rows on both sides of it.

    Attributes
    ----------
    segment : object
        The segment; None for all rows.
    target, level : str, float
        What was asked for, such as "precision", 0.9.
    threshold : float or None
        Rows with score >= threshold are selected; None if nothing is proved.
    reason : str or None
        Why nothing is proved.
    labels_needed : int or None
        Where nothing is proved: how many labels, of this segment, would probably be enough, if more
        rows are like these. Always more than there are. None if no threshold looks good enough, or
        where the estimate is not above the rows that there are: then the reason says that more
        labels may be enough.
    counted : int
        Rows that were counted.
    selected, precision, recall, specificity, npv : Measured or None
        The share of rows that are selected, and how often the decision is right. The limits of all
        of them and the target hold together; see `Threshold.limits_confidence_level`.
    false_alarms : Ratio or None
        False alarms for each true one, (1 - precision) / precision.
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
    false_alarms: Ratio | None = None

    @classmethod
    def at(
        cls,
        segment: Hashable,
        target: str,
        level: float,
        cut: float,
        counted: int,
        parts: Mapping[str, Measured],
    ) -> Self:
        """A threshold that is proved, with what was measured there."""
        shares: dict[str, Any] = dict(parts)
        return cls(segment, target, level, cut, counted=counted, **shares)

    def text(self) -> str:
        """What is proved, in words."""
        where = "" if self.segment is None else f"in segment {self.segment!r}, "
        if self.threshold is None:
            labels = "labels" if self.segment is None else "labels of this segment"
            needed = self.labels_needed
            more = "" if needed is None else f"; about {needed:,} {labels} would probably be enough"
            return f"{where}{self.target} {self.level:g} cannot be proved: {self.reason}{more}"
        text = TARGETS[self.target].format(
            share=f"at least {percent(self.level)}", **compared(self.threshold)
        )
        return f"{where}{text}"

    @property
    def threshold_text(self) -> str:
        """The threshold as text: "> 0.85" for the next number above 0.85."""
        if self.threshold is None:
            return "none"
        return (
            compared(self.threshold)["above"]
            if _shown_below(self.threshold)
            else repr(self.threshold)
        )


@dataclass(frozen=True, slots=True, repr=False)
class Threshold(Result):
    """Thresholds with a proof, made by `calibrant.threshold`.

    Attributes
    ----------
    cuts : tuple of Cut
        One for each target and segment. `threshold` and the numbers of a cut are attributes of the
        whole where it is the only one.
    confidence_level : float
        All targets of all cuts hold together with this probability, over the draw of the rows.
    method : {"look", "start", "ranks"}
        How the thresholds were found.
    n_rows, n_drawn : int
        Rows in all, and those that chose the thresholds to test and are not counted.
    positive_label : object
        The positive class.
    assumptions : tuple of str
        What must be true for all this to hold.
    max_group_size : int or None
        Where rows are grouped: a group counts as at most this many rows, in the shares as in
        their limits.
    above_cap : float or None
        Then also: the share of the counted rows by which groups exceed that.
    seed : int or None
        Seed of what was drawn; None in files of earlier releases.
    read : tuple of str
        What was read from a saved state and not recomputed from the rows; empty for what
        `threshold` has found.
    """

    _also: ClassVar[tuple[str, ...]] = ("limits_confidence_level", "is_proved")

    cuts: tuple[Cut, ...]
    confidence_level: float
    method: str
    n_rows: int
    n_drawn: int
    positive_label: Hashable
    assumptions: tuple[str, ...] = field()
    max_group_size: int | None = None
    above_cap: float | None = None
    seed: int | None = None
    read: tuple[str, ...] = field(default=(), compare=False)

    @property
    def limits_confidence_level(self) -> float:
        """With this probability all limits of all cuts hold together with the targets: 1 - 2 alpha,
        at least 0.

        With groups the only limits are those that follow from the targets, so it is
        `confidence_level`.
        """
        if self.max_group_size is not None:
            return self.confidence_level
        return max(0.0, 1.0 - 2.0 * (1.0 - self.confidence_level))

    @property
    def is_proved(self) -> bool:
        """Whether every target is proved."""
        return all(cut.threshold is not None for cut in self.cuts)

    @property
    def only(self) -> Cut:
        """The cut, where there is one."""
        if len(self.cuts) > 1:
            raise InvalidTypeError(
                "the threshold", "be the only one", f"{len(self.cuts)}", "use .cuts"
            )
        return self.cuts[0]

    @property
    def threshold(self) -> float | None:
        """The threshold; None if nothing is proved."""
        return self.only.threshold

    @property
    def reason(self) -> str | None:
        """Why nothing is proved."""
        return self.only.reason

    @property
    def labels_needed(self) -> int | None:
        """How many labels would probably be enough, where nothing is proved."""
        return self.only.labels_needed

    @property
    def selected(self) -> Measured | None:
        """The share of rows that are selected."""
        return self.only.selected

    @property
    def precision(self) -> Measured | None:
        """The share of positives among selected rows."""
        return self.only.precision

    @property
    def recall(self) -> Measured | None:
        """The share of positives that are selected."""
        return self.only.recall

    @property
    def false_alarms(self) -> Ratio | None:
        """False alarms for each true one."""
        return self.only.false_alarms

    @property
    def sentence(self) -> str:
        """What is proved, and how sure it is."""
        together = ", all at once" if len(self.cuts) > 1 else ""
        head = f"With {percent(self.confidence_level)} confidence{together}:"
        told = "; ".join(cut.text() for cut in self.cuts)
        about = ""
        if self.max_group_size is not None:
            about = (
                " A group counts as at most"
                f" {rows(self.max_group_size)}{above_cap(self.above_cap or 0.0)}"
            )
        if self.read:
            about += f" Read from a file, not recomputed from the rows: {', '.join(self.read)}."
        return f"{head} {told}.{about}"

    @property
    def notes(self) -> tuple[str, ...]:
        """From how many rows the thresholds come."""
        if not self.n_drawn:
            return (f"from {rows(self.n_rows)}",)
        return (
            (
                f"from {rows(self.n_rows)}; {self.n_drawn:,} of them chose the thresholds to test"
                " and are not counted"
            ),
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The thresholds, and what is known of the rows that each selects."""
        names = ("segment", "target", "level", "threshold", "reason", "labels_needed", "counted")
        columns: dict[str, list[Any]] = {
            name: [getattr(cut, name) for cut in self.cuts] for name in names
        }
        columns["score"] = [cut.threshold_text for cut in self.cuts]
        for part in PARTS:
            measured = [getattr(cut, part) for cut in self.cuts]
            columns[part] = [None if one is None else one.value for one in measured]
            columns[f"{part}_lower"] = [None if one is None else one.lower for one in measured]
            columns[f"{part}_upper"] = [None if one is None else one.upper for one in measured]
        shown = [
            "target",
            "level",
            "score",
            *(f"{part}{end}" for part in SHOWN for end in ("", "_lower", "_upper")),
        ]
        if any(cut.segment is not None for cut in self.cuts):
            shown.insert(0, "segment")
        if all(cut.threshold is None for cut in self.cuts):
            shown = []  # the sentence says why
        heads = {"score": "threshold", **NAMES}
        return (ResultTable("thresholds", columns, tuple(shown), heads, self._on_limits()),)

    def _on_limits(self) -> str:
        """How to read the limits of the table."""
        together = percent(self.limits_confidence_level)
        return (
            f"Limits are in brackets. They and the targets hold together with {together}"
            " confidence."
        )

    def predict(self, scores: "ArrayLike", segments: "ArrayLike | None" = None) -> BoolArray:
        """Return which rows are selected.

        A row of an unknown segment, or without a proved threshold, is not.
        """
        return self._sides(scores, segments)[0]

    def refer(self, scores: "ArrayLike", segments: "ArrayLike | None" = None) -> BoolArray:
        """Return which rows are referred to a person: those between both thresholds, with precision
        and npv.
        """
        selected, below = self._sides(scores, segments)
        return ~selected & ~below

    def apply(self, data: Any, *, prefix: str = "") -> Any:
        """Add columns to scored data where they are: selected and, with precision and npv,
        referred.

        Parameters
        ----------
        data : Sample
            See `calibrant.scored`; no label is needed.
        prefix : str, default=""
            What the names of the new columns begin with.

        Returns
        -------
        object
            A frame, relation or reader of the same engine, as that of a calibrator's `apply`. Both
            columns are true or false, and null for a score that is missing or not finite.
        """
        from calibrant.assess.threshold.columns import SelectRows

        segmented = None not in self.ends
        if segmented and data.columns.segment is None:
            raise InvalidTypeError(
                "segment", "name the column of segments", "None", "use scored(..., segment=...)"
            )
        columns = data.columns.only("segment") if segmented else data.columns.only()
        return data.apply(SelectRows(columns, self, prefix))

    @property
    def ends(self) -> dict[Hashable, tuple[float, float]]:
        """Of each segment, below which score rows are not selected, and from which score on they
        are.

        They differ where rows between them are referred to a person. Where nothing is proved they
        are infinite.
        """
        single = len({cut.target for cut in self.cuts}) == 1
        found: dict[Hashable, tuple[float, float]] = {}
        for cut in self.cuts:
            low, high = found.get(
                cut.segment, (math.inf, math.inf) if single else (-math.inf, math.inf)
            )
            if cut.threshold is not None:
                low = cut.threshold if single or cut.target == "npv" else low
                high = cut.threshold if single or cut.target == "precision" else high
            found[cut.segment] = (low, high)
        return found

    def _sides(
        self, scores: "ArrayLike", segments: "ArrayLike | None"
    ) -> tuple[BoolArray, BoolArray]:
        """Rows that are selected, and rows that are decided to be negative."""
        values = as_scores(scores)
        segmented = any(cut.segment is not None for cut in self.cuts)
        if segmented == (segments is None):
            rule = (
                "be given: thresholds differ by segment"
                if segmented
                else "be None: there is one threshold for all"
            )
            raise InvalidTypeError("segments", rule, got=shown(segments))
        low = np.full(values.size, -np.inf)
        high = np.full(values.size, np.inf)
        for segment, ends in self.ends.items():
            here = _where(segments, segment, values.size)
            low[here], high[here] = ends
        return values >= high, values < low

    def _table(self, coverage: float) -> "Table":
        """The thresholds as a table, for exports."""
        from calibrant.assess.threshold.exported import threshold_table

        return threshold_table(self, coverage)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; `from_dict` reads them back. What is not a number is None."""
        return {**self.saved_state(), **Result.to_dict(self)}

    def saved_state(self) -> dict[str, Any]:
        """What a model file keeps."""
        from calibrant.assess.threshold.saved_state import saved_threshold

        return saved_threshold(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "Threshold":
        """Read back what `to_dict` wrote; raise an error for what `threshold` cannot have found."""
        from calibrant.assess.threshold.saved_state import threshold_from_state

        return threshold_from_state(state)


def _where(segments: "ArrayLike | None", segment: Hashable, n: int) -> NDArray[Any]:
    if segments is None:
        return np.ones(n, dtype=bool)
    names, number = segment_kinds(segments)
    if number.size != n:
        raise InvalidValueError(
            "segments", f"have one entry per score, {n}", got=f"{number.size} entries"
        )
    return np.asarray(
        number == names.index(segment) if segment in names else np.zeros(n, dtype=bool)
    )
