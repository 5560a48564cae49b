"""Part of the rows, their predictions, and the trees as plain values for an export."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.calibrators.subgroups.boosted_logit import BoostedLogit
from calibrant.calibrators.subgroups.features import score_column
from calibrant.calibrators.subgroups.proof import SubgroupRows
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.params.arrays import check_rows
from calibrant.params.attributes import AttributeColumn
from calibrant.sample.sources.memory import MemoryRows

SMALLEST = 1e-6
"""The smallest probability whose logit is taken."""


@dataclass(frozen=True, slots=True)
class ScoredTrees:
    """Trees over a score and attributes, for an export.

    Attributes
    ----------
    base : calibrator of scores or None
        The calibrator that first turns scores into probabilities.
    state : dict
        The features and the trees as plain values.
    notes : tuple of str
        Their origin, and what is guaranteed.
    smallest : float
        The smallest probability whose logit is taken.
    """

    base: ScoreCalibrator | None
    state: dict[str, Any]
    notes: tuple[str, ...]
    smallest: float


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
        base: ScoreCalibrator | None,
        correction: BoostedLogit,
        cap: int | None,
    ) -> SubgroupRows:
        """The rows with their predictions and groups."""
        predictions = corrected(base, correction, self.rows.scores, self.columns)
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


def corrected(
    base: ScoreCalibrator | None,
    correction: BoostedLogit,
    scores: Any,
    columns: list[AttributeColumn],
) -> FloatArray:
    """The corrected probability of each score with these attributes."""
    logits = base_logits(base, scores)
    every = [score_column(logits), *columns]
    bins = [
        feature.bins(column) for feature, column in zip(correction.features, every, strict=True)
    ]
    return correction.corrected(bins, logits)
