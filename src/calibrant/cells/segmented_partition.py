"""Score bins within segments: each segment has its own regions, within one shared error budget."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np

from calibrant import kernels
from calibrant._typing import ArrayLike, FloatArray, IndexArray
from calibrant.cells.bins import OTHER, Bins, SegmentedScores
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import (
    as_array,
    as_scores,
    check_in_range,
    check_present,
    distinct_entries,
    is_missing,
)
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import check_type
from calibrant.params.state_kinds import Constant, Label, Lists, Nested
from calibrant.text.sentences import ScoreRange, shown


class SegmentedPartition(Bins):
    """Segments crossed with bins of the score; each segment may have its own bins.

    See `Partition.by_segment`.
    """

    has_segments: ClassVar[bool] = True

    _entries: ClassVar[EntryTable] = {
        "kind": Constant("segments"),
        "segments": Entry(Lists(Label()), of="_named"),
        "parts": Entry(Lists(Nested(Partition), size="_named"), of="_named_parts"),
        "other": Entry(Nested(Partition), of="_other", absent=None),
    }

    def __init__(
        self, parts: Mapping[Hashable, ScorePartition], other: ScorePartition | None = None
    ) -> None:
        if not isinstance(parts, Mapping):
            raise InvalidTypeError(
                "parts", "be a mapping from segment to score bins", got=type(parts).__name__
            )
        parts = parts if other is None else {**parts, OTHER: other}
        if not parts:
            raise InvalidValueError("parts", "have at least one segment", got="none")
        for segment, part in parts.items():
            check_type(f"parts[{segment!r}]", part, ScorePartition, "bins of a score")
        self.segments = tuple(parts)
        self._parts = tuple(parts.values())

    @property
    def parts(self) -> tuple[ScorePartition, ...]:
        """Bins of each segment."""
        return self._parts

    def with_parts(self, parts: Sequence[ScorePartition]) -> Self:
        """The same segments with other bins."""
        return type(self)(dict(zip(self.segments, parts, strict=True)))

    @property
    def offsets(self) -> IndexArray:
        """The first region of each segment, and the total number of regions."""
        return self.layout.cells.first

    @property
    def cuts_own_sample(self) -> bool:
        """Whether the edges of any segment are order statistics of the rows that are tallied."""
        return any(part.cuts_own_sample for part in self.parts)

    def describe(self) -> tuple[str, ...]:
        """One readable name per region, such as 'north: [0.1, 0.2)'."""
        cells = self.layout.cells
        pairs = zip(cells.segment.tolist(), self.layout.names(), strict=True)
        named = ((f"{self.segments[number]}: ", name) for number, name in pairs)
        return tuple(ScoreRange(part + name, part + name.in_words) for part, name in named)

    def prepare(
        self,
        inputs: ArrayLike,
        segments: ArrayLike | None = None,
        *,
        positive_column: Literal[0, 1] = 1,
    ) -> SegmentedScores:
        """Check the scores and find each row's segment."""
        if segments is None:
            raise InvalidTypeError(
                "segments", "be given, because the bins depend on the segment", got="None"
            )
        kinds, inverse = segment_kinds(segments)
        numbers = self.numbers(kinds)
        if (numbers < 0).any():
            known = ", ".join(repr(segment) for segment in self.segments[:8])
            unknown = kinds[int(numbers.argmin())]
            raise InvalidValueError(
                "segments", f"be among those seen in fit ({known})", got=shown(unknown)
            )
        scores = as_scores(inputs, positive_column=positive_column)
        segment = numbers[inverse]
        if scores.shape != segment.shape:
            raise InvalidValueError(
                "segments", f"have one entry per score, {scores.size}", got=str(segment.size)
            )
        bad = np.flatnonzero(~self.inside(scores, segment))
        if bad.size:  # the error names the range of the first such row
            part = self.parts[segment[bad[0]]]
            check_in_range(
                np.where(self.inside(scores, segment), part.low, scores), part.low, part.high
            )
        return SegmentedScores(scores, segment)

    def numbers(self, segments: Iterable[Hashable]) -> IndexArray:
        """As in `Bins`; raises an error for text if segments are numbers, and vice versa, because
        all would be `OTHER`.
        """
        names = list(segments)
        known, asked = (
            {isinstance(name, str) for name in some if name is not OTHER}
            for some in (self.segments, names)
        )
        if OTHER in self.segments and known and not asked <= known:
            rule = "be text" if known == {True} else "be numbers or bools"
            raise InvalidTypeError("segments", f"{rule}, as in fit", got=shown(names[0]))
        return super().numbers(names)

    def regions_of(self, prepared: SegmentedScores, *, threads: int = 1) -> IndexArray:
        """Region of each row."""
        return self.layout.cells.find(prepared.scores, prepared.segment)

    def follow(
        self, prepared: SegmentedScores, lines: FloatArray, *, threads: int = 1
    ) -> FloatArray:
        """Each row's value, or limits, on a curve with one line per region.

        See `calibrant.kernels.follow`.
        """
        return kernels.values_along(
            prepared.scores, self.regions_of(prepared, threads=threads), lines
        )

    def membership(self, prepared: SegmentedScores, *, threads: int = 1) -> IndexArray:
        """The region in which each row counts; -1 if it counts in none."""
        return self.count_regions[self.layout.count_cells.find(prepared.scores, prepared.segment)]

    def _key(self) -> tuple[Hashable, ...]:
        return (self.segments, self.parts)

    @property
    def _own_bins(self) -> dict[Hashable, ScorePartition]:
        """Bins of the segments that have their own."""
        named = zip(self.segments, self.parts, strict=True)
        return {name: part for name, part in named if name is not OTHER}

    @property
    def _named(self) -> tuple[Hashable, ...]:
        return tuple(self._own_bins)

    @property
    def _named_parts(self) -> tuple[ScorePartition, ...]:
        return tuple(self._own_bins.values())

    @property
    def _other(self) -> ScorePartition | None:
        """Bins of all other segments, if there are any."""
        return self.bins_by_segment.get(OTHER)

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        names = values["_named"]
        if len(set(names)) != len(names):
            rule = "be distinct texts, numbers or bools"
            raise InvalidValueError("segments", rule, got=shown(list(names)))
        return cls(dict(zip(names, values["_named_parts"], strict=True)), values["_other"])


def segment_kinds(segments: ArrayLike) -> tuple[list[Any], IndexArray]:
    """Return the distinct segments, in increasing order, and the index of each row's segment."""
    if isinstance(segments, list | tuple) and all(isinstance(value, str) for value in segments):
        values = np.array(
            segments, dtype=object
        )  # as fixed-width text, numpy would drop trailing NULs
    else:
        values = as_array(segments, "segments")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InvalidValueError("segments", "have shape (n,)", got=f"shape {values.shape}")
    try:
        if values.dtype.kind in "OTU":
            kinds, inverse = distinct_entries(values.tolist())
        else:
            # a third of the memory of np.unique with return_inverse
            distinct = np.unique(values)
            kinds = distinct.tolist()
            inverse = distinct.searchsorted(values)
        missing = np.array([is_missing(kind) for kind in kinds], dtype=bool)
        if missing.any():
            check_present(missing[inverse], values, "segments")
        order = sorted(range(len(kinds)), key=kinds.__getitem__)
    except TypeError:
        names = ", ".join(sorted({type(value).__name__ for value in values}))
        raise InvalidTypeError("segments", "contain one kind of entry", got=names) from None
    strange = next((kind for kind in kinds if not isinstance(kind, str | int | float)), None)
    if strange is not None:
        advice = "name them, for example with .astype(str)"
        raise InvalidTypeError(
            "segments", "be text, numbers or bools", got=type(strange).__name__, advice=advice
        )
    place = np.empty(len(kinds), dtype=np.intp)
    place[order] = np.arange(len(kinds))
    return [kinds[number] for number in order], place[inverse]
