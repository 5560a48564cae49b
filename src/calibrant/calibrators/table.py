"""A fitted calibrator as plain numbers: cuts of the score, predictions between them, and the names of
the columns that exports write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant._version import __version__
from calibrant.cells.bins import OTHER, Rest
from calibrant.cells.lines import LARGEST, Lines
from calibrant.cells.partition import Partition
from calibrant.errors import InvalidTypeError, InvalidValueError, no_table
from calibrant.text.sentences import shown

OUTPUTS = ("calibrated", "lower", "upper", "region", "set")
"""The possible outputs: the value, the limits of its interval, the index of the region, the
prediction set.
"""


def names_by_output(
    outputs: Sequence[str] | Mapping[str, str], available: tuple[str, ...], *, has_limits: bool
) -> dict[str, str]:
    """Return the requested outputs, each with its name, or raise an error if they are not
    available.

    >>> names_by_output(["lower"], OUTPUTS, has_limits=True)
    {'lower': 'lower'}
    >>> names_by_output({"lower": "p_low", "upper": "p_high"}, OUTPUTS, has_limits=True)
    {'lower': 'p_low', 'upper': 'p_high'}
    """
    chosen = _as_mapping(outputs)
    for output, name in chosen.items():
        if output not in available:
            without = output in OUTPUTS and not has_limits
            why = ": this calibrator has no confidence intervals" if without else ""
            rule = f"be among {', '.join(available)}{why}"
            raise InvalidValueError("outputs", rule, got=shown(output))
        if not isinstance(name, str) or not name:
            rule = "give each output a name, as text"
            raise InvalidTypeError("outputs", rule, got=f"{shown(name)} for {output}")
    if not chosen:
        raise InvalidValueError("outputs", "name at least one output", got="none")
    different = {name.lower() for name in chosen.values()}
    if len(different) < max(len(chosen), len(outputs)):
        rule = "have names that differ, even if upper and lower case are ignored"
        raise InvalidValueError("outputs", rule, got=shown(outputs))
    return chosen


def _as_mapping(outputs: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """The name of each output, which is its own unless another is given."""
    if isinstance(outputs, Mapping):
        return dict(outputs)
    if isinstance(outputs, str) or not isinstance(outputs, Sequence):
        rule = f"be a list of {', '.join(OUTPUTS)}, or a mapping from those to names"
        raise InvalidTypeError("outputs", rule, got=shown(outputs))
    return {name: name for name in outputs}


Segment: TypeAlias = str | int | float | bool
Label: TypeAlias = str | int | float | bool | bytes
Key = TypeVar("Key")

_DEFAULT = ("calibrated", "lower", "upper", "set")


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The scores of one segment: cuts, and the region of each step between them.

    Attributes
    ----------
    segment : str, int, float, bool, OTHER or None
        The segment, or `OTHER`, in the last steps, for all segments that are not named; None
        without segments.
    low, high : float
        The smallest and largest scores that `predict` accepts, both finite.
    cuts : float array of shape (m,)
        Strictly increasing. A score belongs to step k if exactly k cuts are at most the score.
    regions : int array of shape (m + 1,)
        The region of each step; -1 where `predict` accepts no score.
    """

    segment: Segment | Rest | None
    low: float
    high: float
    cuts: FloatArray
    regions: IntArray

    def runs(self, key: Sequence[Key]) -> tuple[list[float], list[int]]:
        """Return the fewest cuts that separate regions of different `key`, and a region for each
        run between them.
        """
        # neighbouring steps with equal answers need no cut in an export
        keys = [key[region] if region >= 0 else None for region in self.regions.tolist()]
        changes = [place for place in range(1, len(keys)) if keys[place] != keys[place - 1]]
        return [float(self.cuts[place - 1]) for place in changes], [
            int(self.regions[place]) for place in (0, *changes)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A fitted calibrator as plain numbers, which is all that an export needs.

    Attributes
    ----------
    steps : tuple of Steps
        One entry, or one for each segment.
    calibrated : float array of shape (n_regions,)
        What `predict` gives in each region.
    coverage : float
        Coverage of the sets.
    notes : tuple of str
        Notes for a reader: the version that wrote it, the partition's fingerprint, and the
        guarantee.
    classes : tuple
        The two labels, sorted.
    lower, upper : float arrays of shape (n_regions,), or None
        What `predict_interval` gives; None for a calibrator that has no intervals.
    sets : bool array of shape (n_regions, 2), or None
        What `predict_set` gives; the columns follow `classes`.
    lines : Lines or None
        How predictions vary within a region, if they do. `calibrated` is then the value where the
        region begins, and `lower` and `upper` are added to the prediction and clipped to [0, 1].
    numbers : int array of shape (n_regions,), or None
        The index of the calibrator's region that each region of this table is part of; None if the
        regions are the same.
    named : mapping of str to str, or None
        The default outputs, with their names, if those of a calibrator would mislead.
    """

    steps: tuple[Steps, ...]
    calibrated: FloatArray
    coverage: float
    notes: tuple[str, str]
    classes: tuple[Label, ...] = ()
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    sets: BoolArray | None = None
    lines: Lines | None = None
    numbers: IntArray | None = None
    named: Mapping[str, str] | None = None

    @property
    def region_numbers(self) -> list[int]:
        """The index of the calibrator's region, for each region of the table."""
        return (
            list(range(self.calibrated.size))
            if self.numbers is None
            else [int(one) for one in self.numbers]
        )

    @property
    def is_segmented(self) -> bool:
        """Whether a row needs a segment in addition to its score."""
        return self.steps[0].segment is not None

    @property
    def segments(self) -> list[Segment]:
        """The segments that are named."""
        return [
            steps.segment for steps in self.steps if isinstance(steps.segment, str | int | float)
        ]

    @property
    def takes_others(self) -> bool:
        """Whether there are steps for segments that are not named."""
        return self.steps[-1].segment is OTHER

    @property
    def set_members(self) -> list[tuple[Label, ...]]:
        """The labels in the set of each region."""
        sets = [] if self.sets is None else self.sets.tolist()
        return [
            tuple(label for label, inside in zip(self.classes, row, strict=True) if inside)
            for row in sets
        ]

    @property
    def set_names(self) -> list[str]:
        """The set of each region as text, such as '{0}' or '{0, 1}'."""
        return [f"{{{', '.join(map(str, members))}}}" for members in self.set_members]

    @property
    def needs_exp(self) -> bool:
        """Whether predictions are computed with exp, which engines round differently in the last
        bits.
        """
        return self.lines is not None and self.lines.logit

    def lines_at(self, regions: IntArray) -> Lines:
        """The lines of these regions."""
        if self.lines is None:
            raise InvalidTypeError("table", "have lines", got="values")
        return replace(self.lines, start=self.lines.start[regions], slope=self.lines.slope[regions])

    def values(self, output: str) -> FloatArray:
        """The value of "calibrated", "lower" or "upper" in each region."""
        values = {"calibrated": self.calibrated, "lower": self.lower, "upper": self.upper}[output]
        return np.empty(0) if values is None else values

    def choose(self, outputs: Sequence[str] | Mapping[str, str] | None) -> dict[str, str]:
        """Return the chosen outputs, each with the name it gets."""
        available = self._available
        if outputs is None:
            return dict(self.named or {name: name for name in _DEFAULT if name in available})
        return names_by_output(outputs, available, has_limits=self.lower is not None)

    @property
    def _available(self) -> tuple[str, ...]:
        """The outputs that this table has."""
        if self.sets is not None:
            return OUTPUTS
        if self.lower is not None:
            return ("lower", "upper")
        if self.lines is not None:
            return ("calibrated",)
        return ("calibrated", "region")


def written_by(name: str, mark: str = "") -> str:
    """A note for readers: which version wrote a table, and from what.

    >>> written_by("Threshold").split(" from ")[1]
    'a Threshold.'
    """
    article = "an" if name[0] in "AEIO" else "a"
    return f"Written by calibrant {__version__} from {article} {name}{mark}."


_MOST_INTEGER = 2**63


def steps_everywhere(cuts: FloatArray, regions: IntArray | None = None) -> Steps:
    """Steps between cuts, for every finite score.

    Each is a region of its own unless regions are given.
    """
    if regions is None:
        regions = np.arange(cuts.size + 1)
    return Steps(None, -LARGEST, LARGEST, cuts, regions)


def steps_of_probabilities() -> Steps:
    """One step, for scores from 0 to 1."""
    return Steps(None, 0.0, 1.0, np.empty(0), np.arange(1))


def steps_of_bins(partition: Partition) -> tuple[Steps, ...]:
    """The bins of a partition, in each segment; raise an error for a partition without score bins."""
    bins = partition.bins_by_segment
    if not bins:
        raise no_table(type(partition).__name__)  # no engine can run a Python function
    if partition.has_segments:
        check_segments(tuple(name for name in bins if name is not OTHER))
    steps = []
    first = 0
    for segment, part in bins.items():
        low = max(part.low, -LARGEST)
        high = min(part.high, LARGEST)
        regions = first + np.arange(part.n_regions)
        steps.append(Steps(segment, low, high, part.cuts, regions))
        first += part.n_regions
    return tuple(steps)


def check_segments(segments: tuple[object, ...]) -> None:
    """Check that a column of one type can hold the segments."""
    kinds = {type(segment) for segment in segments}
    if len(kinds) > 1 or not kinds <= {str, int, float, bool}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InvalidTypeError(
            "segments", "be all text, all whole numbers, all floats or all bools", got=names
        )
    for segment in segments:
        if type(segment) is int and not -_MOST_INTEGER <= segment < _MOST_INTEGER:
            raise InvalidValueError(
                "segments", "be whole numbers of at most 64 bits", got=shown(segment)
            )
        if type(segment) is float and not np.isfinite(segment):
            raise InvalidValueError("segments", "be finite numbers", got=shown(segment))
