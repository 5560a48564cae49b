"""What all exports read: cuts of the score, and the predictions between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant._version import __version__
from calibrant.calibrators.tables.outputs import OUTPUTS, names_by_output
from calibrant.cells.bins import OTHER, Rest
from calibrant.cells.lines import Lines
from calibrant.errors import InvalidTypeError

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
        keys = [key[region] if region >= 0 else None for region in self.regions.tolist()]
        changes = [place for place in range(1, len(keys)) if keys[place] != keys[place - 1]]
        return [float(self.cuts[place - 1]) for place in changes], [
            int(self.regions[place]) for place in (0, *changes)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """A prediction that is constant between cuts, for every finite score.

    Attributes
    ----------
    cuts : float array of shape (m,)
        Strictly increasing. A score belongs to step k if exactly k cuts are at most the score.
    values : float array of shape (m + 1,)
        The prediction on each step.
    """

    cuts: FloatArray
    values: FloatArray


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
