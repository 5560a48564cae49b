"""Score bins within segments: a group's own regions, within one shared error budget."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._input import as_array, as_scores, check_in_range, is_missing, missing_entry
from calibrant._params import check_state
from calibrant._typing import ArrayLike, IndexArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.partition.base import Partition
from calibrant.partition.scores import ScorePartition


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedScores:
    """Checked scores, and the number of the segment of each row."""

    scores: NDArray[Any]
    segment: IndexArray

    def __len__(self) -> int:
        return len(self.scores)


class SegmentedPartition(Partition):
    """A segment crossed with bins of the score; each segment may have bins of its own. See `Partition.by_segment`."""

    def __init__(self, parts: Mapping[Hashable, ScorePartition]) -> None:
        if not isinstance(parts, Mapping):
            raise InvalidTypeError(f"parts must be a mapping from segment to score bins; got {type(parts).__name__}")
        if not parts:
            raise InvalidValueError("parts must have at least one segment; got none")
        for segment, part in parts.items():
            if not isinstance(part, ScorePartition):
                raise InvalidTypeError(f"parts[{segment!r}] must be bins of a score; got {type(part).__name__}")
        self.segments = tuple(parts)
        self.parts = tuple(parts.values())
        self.offsets = np.cumsum([0, *(part.n_regions for part in self.parts)])

    @property
    def n_regions(self) -> int:
        """How many regions there are, over all segments."""
        return int(self.offsets[-1])

    @property
    def bins_by_segment(self) -> Mapping[Any, ScorePartition]:
        """Bins of the score in each segment."""
        return dict(zip(self.segments, self.parts, strict=True))

    @property
    def has_segments(self) -> bool:
        """Always True."""
        return True

    def describe(self) -> tuple[str, ...]:
        """One readable name per region, such as 'north: [0.1, 0.2)'."""
        pairs = zip(self.segments, self.parts, strict=True)
        return tuple(f"{segment}: {name}" for segment, part in pairs for name in part.describe())

    def prepare(
        self, inputs: ArrayLike, segments: ArrayLike | None = None, *, positive_column: Any = 1
    ) -> SegmentedScores:
        """Check the scores and find each row's segment."""
        if segments is None:
            raise InvalidTypeError("segments must be given, for this partition was made with segments; got None")
        kinds, inverse = segment_kinds(segments)
        numbers = {segment: number for number, segment in enumerate(self.segments)}
        unknown = [kind for kind in kinds if kind not in numbers]
        if unknown:
            known = ", ".join(repr(segment) for segment in self.segments[:8])
            raise InvalidValueError(f"segments must be among those seen in fit ({known}); got {unknown[0]!r}")
        segment = np.array([numbers[kind] for kind in kinds], dtype=np.intp)[inverse]
        scores = as_scores(inputs, positive_column=positive_column)
        if scores.shape != segment.shape:
            raise InvalidValueError(f"segments must have one entry per score, {scores.size}; got {segment.size}")
        for number, part in enumerate(self.parts):
            check_in_range(scores[segment == number], part.low, part.high)
        return SegmentedScores(scores, segment)

    def _per_segment(self, prepared: SegmentedScores, method: str) -> IndexArray:
        regions = np.empty(len(prepared), dtype=np.intp)
        for number, part in enumerate(self.parts):
            rows = prepared.segment == number
            found = getattr(part, method)(prepared.scores[rows])
            regions[rows] = np.where(found >= 0, found + self.offsets[number], -1)
        return regions

    def regions_of(self, prepared: Any, *, threads: int = 1) -> IndexArray:
        """Region of each row."""
        return self._per_segment(prepared, "regions_of")

    def membership(self, prepared: Any, *, threads: int = 1) -> IndexArray:
        """Region in which each row counts; -1 where it counts in none."""
        return self._per_segment(prepared, "membership")

    def _key(self) -> tuple[Hashable, ...]:
        return (self.segments, self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the partition as plain JSON values."""
        parts = [part.to_dict() for part in self.parts]
        return {"kind": "segments", "segments": list(self.segments), "parts": parts}

    @classmethod
    def _read(cls, state: Mapping[str, Any]) -> Self:
        check_state(state, ("segments", "parts"))
        names, parts = state["segments"], state["parts"]
        if not isinstance(names, list | tuple) or not isinstance(parts, list | tuple):
            raise InvalidTypeError("segments and parts must be lists; got something else")
        if len(parts) != len(names):
            raise InvalidValueError(f"parts must be one per segment, {len(names)}; got {len(parts)}")
        if not all(isinstance(name, str | int | float) for name in names) or len(set(names)) != len(names):
            raise InvalidValueError("segments must be text, numbers or bools, none of them twice; got others")
        return cls(dict(zip(names, (ScorePartition._read(part) for part in parts), strict=True)))


def segment_kinds(segments: ArrayLike) -> tuple[list[Any], IndexArray]:
    """Return the distinct segments, and for each row the number of its segment among them."""
    values = as_array(segments, "segments")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InvalidValueError(f"segments must have shape (n,); got shape {values.shape}")
    missing = np.flatnonzero(_missing_segments(values))
    if missing.size:
        raise missing_entry("segments", int(missing[0]), missing.size, repr(values[missing[0]]))
    try:
        kinds, inverse = np.unique(values, return_inverse=True)
    except TypeError:
        names = sorted({type(value).__name__ for value in values})
        raise InvalidTypeError(f"segments must hold one kind of entry; got {', '.join(names)}") from None
    names = kinds.tolist()
    strange = next((name for name in names if not isinstance(name, str | int | float)), None)
    if strange is not None:
        kind = type(strange).__name__
        raise InvalidTypeError(f"segments must be text, numbers or bools; got {kind}: name them, with .astype(str) say")
    return names, inverse


def _missing_segments(values: NDArray[Any]) -> Any:
    if values.dtype.kind in "OT":
        return [is_missing(value) for value in values]
    if values.dtype.kind in "mM":
        return np.isnat(values)
    return np.isnan(values) if values.dtype.kind in "fc" else []
