"""The result of `threshold`: numbers, the sentence, and the decisions that follow."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, BoolArray
from calibrant.assess.threshold.cut import NAMES, PARTS, SHOWN, Cut, Measured, Ratio
from calibrant.cells.segmented_partition import segment_kinds
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_scores
from calibrant.sample.reader import scored_rows
from calibrant.text.numbers import above_cap, percent, rows
from calibrant.text.result import Result, said_of_file
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import joined, shown, words

if TYPE_CHECKING:
    from calibrant.calibrators.tables.table import Table

SCHEMA = "calibrant.threshold/1"
"""The schema of saved thresholds."""
KEPT_BY_WEIGHT = (
    "each row was kept with probability weight / bound, so that the rows are draws from the"
    " weighted population"
)
"""The assumption about rows with importance weights."""


@dataclass(frozen=True, slots=True, repr=False)
class Threshold(Result):
    """Thresholds with a proof, made by `calibrant.threshold`.

    Attributes
    ----------
    cuts : tuple of Cut
        One cut for each target and segment. If there is only one, its `threshold` and other numbers
        are also attributes of this object.
    confidence_level : float
        All targets of all cuts hold together with this probability, over the draw of the rows.
    method : {"look", "start", "ranks"}
        How the thresholds were found.
    n_rows, n_drawn : int
        The number of all rows, and of those used to choose the thresholds to test, which are not
        counted.
    positive_label : object
        The positive class.
    assumptions : tuple of str
        What must be true for the targets to hold.
    max_group_size : int or None
        If rows are grouped: a group counts as at most this many rows, both in the shares and in
        their limits.
    above_cap : float or None
        If rows are grouped: the share of the counted rows that exceed this cap.
    seed : int
        Seed of the random draws.
    read : tuple of str
        What was read from a saved state and not recomputed from the rows; empty for a result of
        `threshold`.
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
    seed: int = 0
    read: tuple[str, ...] = field(default=(), compare=False)

    @property
    def limits_confidence_level(self) -> float:
        """The probability with which all limits of all cuts hold together with the targets: 1 - 2
        alpha, at least 0.

        With groups, the only limits are those that follow from the targets, so it is
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
    def is_weighted(self) -> bool:
        """Whether all statements are about the weighted population.

        Only the assumptions show this, including in saved files, which have no entry for the weights.
        """
        return KEPT_BY_WEIGHT in self.assumptions

    @property
    def only(self) -> Cut:
        """The cut, if there is only one."""
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
        """The number of labels that would probably be enough, if nothing is proved."""
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
        """What is proved, and with what confidence."""
        together = ", simultaneously" if len(self.cuts) > 1 else ""
        head = f"With {percent(self.confidence_level)} confidence{together}:"
        told = joined(*(part for cut in self.cuts for part in ("; ", cut.text())))[1:]
        about = ""
        if self.is_weighted:
            about = " This is about the weighted population."
        if self.max_group_size is not None:
            about += (
                " A group counts as at most"
                f" {rows(self.max_group_size)}{above_cap(self.above_cap or 0.0)}"
            )
        about += said_of_file(self.read)
        return words(joined(f"{head} ", told, f".{about}"))

    @property
    def notes(self) -> tuple[str, ...]:
        """The number of rows behind the thresholds."""
        if not self.n_drawn:
            return (f"from {rows(self.n_rows)}",)
        return (
            (
                f"from {rows(self.n_rows)}; {self.n_drawn:,} of them were used to choose the"
                " thresholds to test, and are not counted"
            ),
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The thresholds, and what is known about the rows that each selects."""
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
        heads = {"score": "threshold", **NAMES}
        ratios = ("false_alarms",)
        shown = self._shown()
        return (ResultTable("thresholds", columns, shown, heads, self._on_limits(), ratios),)

    def _shown(self) -> tuple[str, ...]:
        """The columns for people: the usual shares, and the requested ones."""
        if all(cut.threshold is None for cut in self.cuts):
            return ()  # the sentence says why
        asked = {cut.target for cut in self.cuts}
        parts = [part for part in PARTS if part in SHOWN or part in asked]
        limits = [f"{part}{end}" for part in parts for end in ("", "_lower", "_upper")]
        segmented = any(cut.segment is not None for cut in self.cuts)
        return (*(["segment"] if segmented else []), "target", "level", "score", *limits)

    def _on_limits(self) -> str:
        """How to read the limits in the table."""
        together = percent(self.limits_confidence_level)
        about = (
            f"Limits are in brackets. They and the targets hold together with {together}"
            " confidence."
        )
        if self.max_group_size is None:
            return about
        return f"{about} With groups, the only limits are those that follow from a target."

    def predict(self, scores: "ArrayLike", segments: "ArrayLike | None" = None) -> BoolArray:
        """Return which rows are selected.

        A row from an unknown segment, or from one without a proved threshold, is not selected.
        """
        return self._sides(scores, segments)[0]

    def refer(self, scores: "ArrayLike", segments: "ArrayLike | None" = None) -> BoolArray:
        """Return which rows are referred to a person: those between the two thresholds, for
        precision and npv.
        """
        selected, below = self._sides(scores, segments)
        return ~selected & ~below

    def apply(self, data: Any, *, prefix: str = "") -> Any:
        """Add columns to scored data in their own engine: selected and, for precision and npv,
        referred.

        Parameters
        ----------
        data : Sample
            See `calibrant.scored`; no label is needed.
        prefix : str, default=""
            A prefix for the names of the new columns.

        Returns
        -------
        object
            A frame, relation or reader of the same engine, as from a calibrator's `apply`. Both
            columns are true or false, and null if the score is missing or not finite.
        """
        from calibrant.assess.threshold.columns import SelectRows

        held = scored_rows(data)
        segmented = None not in self.ends
        if segmented and held.columns.segment is None:
            raise InvalidTypeError(
                "segment", "name the column of segments", "None", "use scored(..., segment=...)"
            )
        columns = held.columns.only("segment") if segmented else held.columns.only()
        return held.apply(SelectRows(columns, self, prefix))

    @property
    def ends(self) -> dict[Hashable, tuple[float, float]]:
        """For each segment, the score below which rows are not selected, and the score from which
        they are.

        The two differ if rows between them are referred to a person. If nothing is proved, they are
        infinite.
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
        """Which rows are selected, and which are decided to be negative."""
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
        """What a model file stores."""
        from calibrant.assess.threshold.saved_state import saved_threshold

        return saved_threshold(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "Threshold":
        """Read back what `to_dict` wrote; raise an error for a state that `threshold` cannot have
        produced.
        """
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
