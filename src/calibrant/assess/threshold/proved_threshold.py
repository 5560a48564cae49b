"""The result of `threshold`: numbers, the sentence, and the decisions that follow: as regions of the
score, for arrays and data, and as a table, for exports.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from calibrant._typing import ArrayLike, BoolArray, FloatArray, IntArray
from calibrant.assess.threshold.cut import PARTS, SHOWN, Cut, Measured
from calibrant.calibrators.table import Table, check_segments, steps_everywhere, written_by
from calibrant.cells.bins import OTHER, Bins
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.errors import InvalidTypeError
from calibrant.sample.added_columns import LookUp
from calibrant.sample.batch import Columns
from calibrant.sample.reader import scored_rows
from calibrant.text.numbers import above_cap, percent, rows
from calibrant.text.picture import Drawn, Picture, ReferenceLine
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict, said_of_file
from calibrant.text.result_table import ResultTable, columns_by_name
from calibrant.text.sentences import joined, shown, words
from calibrant.text.sentences import sentence as as_sentence

_MOST_CUTS = 2  # with more, the thresholds are in the table alone
_MOST_DRAWN = 12  # shares in the picture
SCHEMA = "calibrant.threshold/1"
"""The schema of saved thresholds."""
SELECTED = 1
NEGATIVE = 0
REFERRED = -1
"""The decisions on a row."""

KEPT_BY_WEIGHT = (
    "each row was kept with probability weight / bound, so that the rows are draws from the"
    " weighted population"
)
"""The assumption about rows with importance weights."""


@dataclass(frozen=True, slots=True, repr=False)
class Threshold(Result):
    """Thresholds with a guarantee, made by `calibrant.threshold`.

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
        """Whether every target is guaranteed."""
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
        """The threshold; None if nothing is guaranteed."""
        return self.only.threshold

    @property
    def reason(self) -> str | None:
        """Why nothing is guaranteed."""
        return self.only.reason

    @property
    def labels_needed(self) -> int | None:
        """The number of labels that would probably be enough, if nothing is guaranteed."""
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
    def verdict(self) -> Verdict:
        """Whether every target is guaranteed."""
        return "ok" if self.is_proved else "unclear"

    @property
    def sentence(self) -> str:
        """What is guaranteed, with what confidence, and on which assumption."""
        met = [cut for cut in self.cuts if cut.threshold is not None]
        missed = [cut for cut in self.cuts if cut.threshold is None]
        units = "rows" if self.max_group_size is None else "groups"
        if self.is_weighted:
            units = "rows of the weighted population"
        together = ", all together" if len(self.cuts) > 1 else ""
        cap = ""
        if self.max_group_size is not None and self.above_cap:
            cap = f"; a group counts as at most {rows(self.max_group_size)}"
        sure = (
            f"({percent(self.confidence_level)} confidence{together}, if new {units} are like"
            f" these{cap})"
        )
        if len(self.cuts) > _MOST_CUTS:
            number = f"{len(met):,} of {len(self.cuts):,} targets"
            return f"A threshold is guaranteed to meet {number}, listed in the table {sure}."
        told = joined(*(part for cut in met for part in ("; ", cut.text())))[1:]
        asked = " and ".join(f"a {cut.target} of {percent(cut.level)}" for cut in missed)
        failed = f"{asked} cannot be guaranteed with these {rows(self.n_rows)}"
        said = [as_sentence(words(joined(told, f" {sure}")))] if met else []
        if not met:
            failed += f" {sure}"
        return " ".join([*said, *([as_sentence(failed)] if missed else [])])

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The confidence, the rows, and the threshold of one target, or of one precision."""
        n_met = sum(cut.threshold is not None for cut in self.cuts)
        found = [
            Quantity("Targets met", n_met, unit=f"of {len(self.cuts):,}"),
            Quantity("Confidence", self.confidence_level, unit="share"),
            Quantity("Counted", self.n_rows - self.n_drawn, unit="row"),
        ]
        for cut in self.cuts:
            decides = len(self.cuts) == 1 or (cut.target == "precision" and cut.segment is None)
            if decides and cut.selected is not None:
                found.append(Quantity("Threshold", cut.threshold))
                share = cut.selected
                found.append(Quantity("Selected", share.value, share.lower, share.upper, "share"))
        return tuple(found)

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Label more rows, or select rows in the database."""
        found = []
        missed = [cut for cut in self.cuts if cut.threshold is None]
        needed = [cut.labels_needed for cut in missed if cut.labels_needed is not None]
        if needed:
            about = f"about {max(needed):,} would probably be enough"
            found.append(NextStep(f"Label more rows: {about}"))
        elif missed:
            target = missed[0].target
            found.append(NextStep(f"Label more rows, or ask for a lower {target}"))
        if len(missed) < len(self.cuts):
            found.append(
                NextStep(
                    "Select rows in the database",
                    'to_sql(found, score="p")',
                    "export {model} --to sql --dialect duckdb",
                )
            )
        return tuple(found)

    @property
    def notes(self) -> tuple[str, ...]:
        """Why a target is not met, who decides the rest, how groups count, and which rows were not
        counted.
        """
        found = [words(cut.text()) for cut in self.cuts if cut.threshold is None]
        if {"precision", "npv"} <= {cut.target for cut in self.cuts}:
            found.append("rows that neither target decides are referred to a person")
        if self.n_drawn:
            found.append(f"{rows(self.n_drawn)} chose the thresholds to test, and are not counted")
        if self.max_group_size is not None:
            share = above_cap(self.above_cap or 0.0).rstrip(".")
            found.append(f"a group counts as at most {rows(self.max_group_size)}{share}")
        if self.read:
            found.append(said_of_file(self.read).strip())
        return tuple(found)

    def tables(self) -> tuple[ResultTable, ...]:
        """The thresholds, and what is known about the rows that each selects."""
        names = ("segment", "target", "level", "threshold", "reason", "labels_needed", "counted")
        columns = columns_by_name(self.cuts, names)
        columns["score"] = [cut.threshold_text for cut in self.cuts]
        for part in PARTS:
            measured = [getattr(cut, part) for cut in self.cuts]
            for name, end in (
                (part, "value"),
                (f"{part}_lower", "lower"),
                (f"{part}_upper", "upper"),
            ):
                columns[name] = [None if one is None else getattr(one, end) for one in measured]
        units = dict.fromkeys((*PARTS, "level"), "share")
        heads = {"score": "scores"}
        return (ResultTable("thresholds", columns, self._shown(), heads, units=units),)

    def pictures(self) -> tuple[Picture, ...]:
        """The share that each threshold selects, its precision and recall, with their limits."""
        found: list[tuple[str, Measured]] = [
            (part if cut.segment is None else f"{cut.segment}: {part}", measured)
            for cut in self.cuts
            for part in PARTS
            if cut.threshold is not None and part in (*SHOWN, cut.target)
            if (measured := getattr(cut, part)) is not None and not math.isnan(measured.value)
        ][:_MOST_DRAWN]
        if not found:
            return ()
        drawn = Drawn(
            "share of rows",
            [one.value for _, one in found],
            [-float(place) for place in range(len(found))],
            [one.lower for _, one in found],
            [one.upper for _, one in found],
        )
        levels = dict.fromkeys((cut.target, cut.level) for cut in self.cuts)
        rules = tuple(
            ReferenceLine(f"{target} {percent(level)}", level, is_upright=True)
            for target, level in levels
        )
        text = "What the thresholds select, with limits."
        names = tuple(name for name, _ in found)
        labels = "share of rows", ""
        return (Picture("At the threshold", text, *labels, (drawn,), rules, names, x_unit="share"),)

    def _shown(self) -> tuple[str, ...]:
        """The columns for people: the usual shares, and the requested ones."""
        if all(cut.threshold is None for cut in self.cuts):
            return ()  # the sentence says why
        asked = {cut.target for cut in self.cuts}
        parts = [part for part in PARTS if part in SHOWN or part in asked]
        limits = [f"{part}{end}" for part in parts for end in ("", "_lower", "_upper")]
        segmented = any(cut.segment is not None for cut in self.cuts)
        return (*(["segment"] if segmented else []), "target", "level", "score", *limits)

    @property
    def remarks(self) -> tuple[str, ...]:
        """How to read the limits in the table."""
        if not self._shown():
            return ()
        if self.max_group_size is not None:
            return ("With groups, the only limits are those that follow from a target.",)
        target = "The target fails" if len(self.cuts) == 1 else "Any target fails"
        alpha = percent(1.0 - self.confidence_level)
        return (
            f"{target} with a probability of at most {alpha}, and any limit in brackets with at most"
            f" another {alpha}.",
        )

    def predict(self, scores: "ArrayLike", segments: "ArrayLike | None" = None) -> BoolArray:
        """Return which rows are selected.

        A row from an unknown segment, or from one without a threshold, is not selected.
        """
        return self._decided(SELECTED, scores, segments)

    def refer(self, scores: "ArrayLike", segments: "ArrayLike | None" = None) -> BoolArray:
        """Return which rows are referred to a person: those between the two thresholds, for
        precision and npv.
        """
        return self._decided(REFERRED, scores, segments)

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
        held = scored_rows(data)
        segmented = None not in self.ends
        if segmented and held.columns.segment is None:
            raise InvalidTypeError(
                "segment", "name the column of segments", "None", "use scored(..., segment=...)"
            )
        columns = held.columns.only("segment") if segmented else held.columns.only()
        return held.apply(decision_columns(self, columns, prefix))

    @property
    def ends(self) -> dict[Hashable, tuple[float, float]]:
        """For each segment, the score below which rows are not selected, and the score from which
        they are.

        The two differ if rows between them are referred to a person. If nothing is guaranteed, they
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

    def _decided(
        self, decision: int, scores: "ArrayLike", segments: "ArrayLike | None"
    ) -> BoolArray:
        """The rows that this decision is about."""
        segmented = None not in self.ends
        if segmented == (segments is None):
            rule = (
                "be given: thresholds differ by segment"
                if segmented
                else "be None: there is one threshold for all"
            )
            raise InvalidTypeError("segments", rule, got=shown(segments))
        partition, decisions = decided_regions(self.ends)
        chosen: BoolArray = decisions == decision
        return chosen[partition.assign(scores, segments)]

    def _table(self, coverage: float) -> Table:
        """The thresholds as a table, for exports."""
        return threshold_table(self, coverage)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; `from_dict` reads them back. NaN and infinities become None."""
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


def decided_regions(ends: dict[Hashable, tuple[float, float]]) -> tuple[Bins, IntArray]:
    """The regions between thresholds, and the decision in each.

    Rows of an unknown segment are not selected, but referred to a person.
    """
    decided = {segment: _steps(*pair) for segment, pair in ends.items()}
    if None not in decided:
        decided[OTHER] = _steps(-np.inf, np.inf)
    parts = {segment: ScorePartition(cuts) for segment, (cuts, _) in decided.items()}
    decisions = np.concatenate([found for _, found in decided.values()])
    return parts[None] if None in parts else SegmentedPartition(parts), decisions


def decision_columns(found: Threshold, columns: Columns, prefix: str) -> LookUp:
    """Whether each row is selected; with precision and npv, also whether it is referred to a
    person.
    """
    partition, decisions = decided_regions(found.ends)
    table: dict[str, Any] = {f"{prefix}selected": decisions == SELECTED}
    if len({cut.target for cut in found.cuts}) > 1:
        table[f"{prefix}referred"] = decisions == REFERRED
    return LookUp(columns, partition, table)


def threshold_table(found: Threshold, coverage: float) -> Table:
    """Return a table whose value is 1 where a row is selected, and 0 where it is not.

    Rows referred to a person are in neither region, so their value is null.
    """
    ends: dict[Any, tuple[float, float]] = found.ends
    if None not in ends:
        check_segments(tuple(ends))
    steps = [
        replace(steps_everywhere(*_steps(*pair)), segment=segment) for segment, pair in ends.items()
    ]
    notes = (written_by("Threshold"), found.sentence)
    named = {"calibrated": "selected"}
    return Table(tuple(steps), np.array([0.0, 1.0]), coverage, notes, named=named)


def _steps(low: float, high: float) -> tuple[FloatArray, IntArray]:
    """One or two cuts of the score, and the decision on each side of them."""
    cuts = np.array([cut for cut in sorted({low, high}) if np.isfinite(cut)])
    firsts = np.append(-np.inf, cuts)  # the first score of each step
    decisions = np.where(firsts < low, NEGATIVE, REFERRED)
    return cuts, np.where(firsts >= high, SELECTED, decisions)
