"""A repair of a score, and the parts of the rows: pilot rows, and two halves, with whole groups in one
of them.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import FloatArray, IndexArray, Seed
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.calibrators.subgroups.boosted_logit import BoostedLogit
from calibrant.calibrators.subgroups.features import score_column
from calibrant.calibrators.subgroups.proof import SubgroupRows
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import check_rows
from calibrant.params.attributes import AttributeColumn
from calibrant.params.declared_state import Saved
from calibrant.params.kind import EntryTable
from calibrant.params.random import RandomSource
from calibrant.params.state_kinds import Maybe, Nested
from calibrant.sample.sources.memory import MemoryRows

SMALLEST = 1e-6
"""The smallest probability whose logit is taken."""
_PURPOSE = "rows to fit and rows that prove"


@dataclass(frozen=True, slots=True)
class Repair(Saved):
    """A calibrator of scores, and trees over its logit and the attributes.

    Attributes
    ----------
    base : calibrator of scores or None
        The calibrator that first turns scores into probabilities.
    correction : BoostedLogit
        The trees.
    """

    _entries: ClassVar[EntryTable] = {
        "base": Maybe(Nested(ScoreCalibrator)),
        "correction": Nested(BoostedLogit),
    }

    base: ScoreCalibrator | None
    correction: BoostedLogit

    def predict(self, scores: Any, columns: list[AttributeColumn]) -> FloatArray:
        """The repaired probability of each score with these attributes."""
        logits = base_logits(self.base, scores)
        every = [score_column(logits), *columns]
        features = self.correction.features
        bins = [feature.bins(column) for feature, column in zip(features, every, strict=True)]
        return self.correction.corrected(bins, logits)


@dataclass(frozen=True, slots=True, eq=False)
class PartOfRows:
    """Some of the rows, and their attributes."""

    rows: MemoryRows
    columns: list[AttributeColumn]

    @classmethod
    def of(cls, rows: MemoryRows, columns: list[AttributeColumn], places: IndexArray) -> Self:
        """The rows at these positions, in this order."""
        return cls(rows.take(places), [column.take(places) for column in columns])

    def codes(self, levels: list[AttributeLevels]) -> list[IndexArray]:
        """The level of each attribute; without attributes, one that no row has."""
        if not self.columns:
            return [np.full(len(self.rows), -1, dtype=np.intp)]
        pairs = zip(levels, self.columns, strict=True)
        return [level.codes(column) for level, column in pairs]

    def subgroup_rows(
        self,
        family: SubgroupFamily,
        repair: Repair,
        cap: int | None,
    ) -> SubgroupRows:
        """The rows with the predictions of one repair, and their groups."""
        predictions = repair.predict(self.rows.scores, self.columns)
        groups = self.rows.groups
        if groups is None or cap is None:
            return SubgroupRows(family, predictions, self.rows.codes, None, None)
        weights = self.rows.units.capped(cap) / cap
        return SubgroupRows(family, predictions, self.rows.codes, groups.codes, weights)


def base_logits(base: ScoreCalibrator | None, scores: Any) -> FloatArray:
    """The logit of each score, or of the base's output for it."""
    if base is None:
        probabilities = np.asarray(scores, dtype=np.float64)
        outside = (probabilities < 0.0) | (probabilities > 1.0)
        advice = "give a base that makes them so, such as base=PlattCalibrator()"
        check_rows(outside, probabilities, "scores", "be probabilities in [0, 1]", advice)
    else:
        probabilities = np.asarray(base.predict(scores), dtype=np.float64)
    clipped = np.clip(probabilities, SMALLEST, 1.0 - SMALLEST)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def three_parts(
    rows: MemoryRows, pilot: float, random_state: Seed
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """The positions of the pilot rows, and of two halves of the others, in a random order of rows
    or groups: a fraction or a number of rows, or the same fraction of the groups.

    The number of groups does not depend on which of them are drawn. Groups up to a number of rows
    would: a large group is likely to lie at the cut, and would always be on the same side.
    """
    n_rows = len(rows)
    wanted = max(1, round(pilot * n_rows)) if isinstance(pilot, float) else int(pilot)
    source = RandomSource.of(random_state, _PURPOSE, rows=rows.fingerprint())
    if rows.groups is None:
        _check_parts(wanted, n_rows, "rows", pilot)
        order = source.order(n_rows)
        middle = (wanted + n_rows) // 2
        return order[:wanted], order[wanted:middle], order[middle:]
    sizes = np.bincount(rows.groups.codes)
    by_turn = source.order(sizes.size)
    present = by_turn[sizes[by_turn] > 0]
    n_groups = max(1, round(present.size * wanted / n_rows))
    _check_parts(n_groups, present.size, "groups", pilot)
    ends = np.cumsum(sizes[present])
    order = rows.units.in_turn(by_turn)
    first = ends[n_groups - 1]
    middle = ends[(n_groups + present.size) // 2 - 1]
    return order[:first], order[first:middle], order[middle:]


def _check_parts(wanted: int, n_units: int, what: str, pilot: float) -> None:
    if not 0 < wanted < n_units - 1:
        got = f"{pilot!r}, which draws {wanted:,} of {n_units:,} {what}"
        raise InvalidValueError("pilot", f"leave two or more {what}", got=got)


def group_cap(pilot: MemoryRows, max_group_size: int | None) -> int | None:
    """The cap on the rows of a group: as given, or the size of the largest group among the pilot
    rows.
    """
    if pilot.groups is None:
        if max_group_size is not None:
            got = repr(max_group_size)
            raise InvalidTypeError("max_group_size", "be None without groups", got=got)
        return None
    if max_group_size is not None:
        return max_group_size
    return pilot.groups.largest
