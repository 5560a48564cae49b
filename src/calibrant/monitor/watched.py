"""What a monitor takes from a fitted calibrator: its regions, their cells, and the rows counted in
them.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from calibrant._typing import ArrayLike, CodeArray, FloatArray, IndexArray, IntArray
from calibrant.answers.model_file import Model
from calibrant.calibrators.regions.inner_cells import InnerCells, between_edges
from calibrant.calibrators.regions.region_calibrator import RegionCalibrator
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.cells.partition import Partition, is_partition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.guarantee import is_guarantee
from calibrant.limits.region_limits import rows_between
from calibrant.params.declared_state import LabelEntries, Saved
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import CODED, Classes
from calibrant.params.saved_state import read_counts
from calibrant.params.state_kinds import Maybe, Nested, OneCount

Fitted: TypeAlias = ScoreCalibrator | Model
"""A fitted calibrator, or the content of its model file."""

_N_BINS = 10  # for a calibrator without regions
_VARIANCE = 0.1  # of a label, if the edges are not probabilities
_LEAST_VARIANCE = 0.005


@dataclass(frozen=True, eq=False)
class Watched(Saved):
    """Regions, the cells inside them, and the calibration counts strictly between their edges.

    Attributes
    ----------
    partition : Partition
        The regions of the score, or of its value under `mapped`.
    classes : Classes
        The two labels.
    cells : InnerCells
        The cells of the regions, and their calibration rows; zeros if calibration counted none.
    mapped : ScoreCalibrator or None
        The calibrator whose output the regions divide; None if they divide the scores themselves.
    n_calibration : int
        Rows that the calibrator counted, or 0.
    """

    _entries: ClassVar[EntryTable] = {
        "partition": Nested(Partition),
        "labels": Entry(LabelEntries(), of="classes"),
        "cells": Nested(InnerCells),
        "mapped": Maybe(Nested(ScoreCalibrator)),
        "n_calibration": OneCount(),
    }

    partition: Partition
    classes: Classes
    cells: InnerCells
    mapped: ScoreCalibrator | None = None
    n_calibration: int = 0

    @classmethod
    def by(cls, calibrator: Fitted | Partition, *, is_divided: bool = True) -> Self:
        """What is monitored, from a fitted calibrator, the content of a model file, or bare
        regions; if `is_divided`, with the cells that a calibrator has counted inside its regions.
        """
        if is_partition(calibrator):
            return cls._without_counts(calibrator, CODED)
        given = fitted_calibrator(calibrator)
        classes = Classes(given.classes_, given.positive_index_)
        found: Any = given.as_regions
        if found is None:
            return cls._without_counts(_own_bins(given), classes)
        tally = found.tally_
        check_plain(tally)
        proof = getattr(found, "proof_", None)  # a stream has none
        cells = proof.inner if is_divided and proof is not None else None
        if cells is None:
            between = rows_between(found.partition_, tally)
            cells = InnerCells.undivided(between.counts, between.positives)
        mapped = None if found.bins_of_score else found.base_
        return cls(found.partition_, classes, cells, mapped, int(tally.counts.sum()))

    @classmethod
    def _without_counts(cls, partition: Partition, classes: Classes) -> Self:
        nothing = np.zeros(partition.n_regions, dtype=np.int64)
        return cls(partition, classes, InnerCells.undivided(nothing, nothing))

    def with_classes(self, classes: Classes) -> "Watched":
        """The same regions, with other labels."""
        return replace(self, classes=classes)

    @property
    def n_regions(self) -> int:
        """How many regions there are."""
        return self.partition.n_regions

    @property
    def has_counts(self) -> bool:
        """Whether calibration counted any row."""
        return bool(self.cells.rows.sum())

    def prepared(self, scores: ArrayLike, segments: ArrayLike | None = None) -> Any:
        """Checked scores, or the calibrator's predictions for them, with their segments."""
        values = scores if self.mapped is None else self.mapped.predict(scores)
        column = self.classes.positive_index
        return self.partition.prepare(values, segments, positive_column=column)

    def cells_of(self, prepared: Any) -> IndexArray:
        """The cell of each row.

        -1 at an edge value that calibration selected, which is left out.
        """
        if self.partition.has_absorbed:
            bins = self.partition.as_bins()
            regions = between_edges(bins)[bins.cells.regions_of(prepared)]
        else:
            regions = self.partition.membership(prepared)
        return self.cells.cells_of(regions, prepared)

    def variances(self) -> FloatArray:
        """A guess at the variance of a label in each cell, from the edges of regions alone.

        Stakes must not depend on labels in the pool. If all edges are probabilities, a region with
        midpoint m gets the variance m (1 - m). Otherwise the guess is a constant; the mixture over
        sizes compensates for that.
        """
        parts = self.partition.bins_by_segment
        if not parts:
            return np.full(self.cells.n_cells, _VARIANCE)
        bounds = np.concatenate([part.bounds for part in parts.values()])
        inner = bounds[np.isfinite(bounds)]
        found = np.full(self.n_regions, _VARIANCE)
        if inner.size and inner.min() >= 0.0 and inner.max() <= 1.0:
            middle = np.clip(bounds, 0.0, 1.0).mean(axis=1)
            found = np.maximum(middle * (1.0 - middle), _LEAST_VARIANCE)
        return found[self.cells.region]

    def slopes(self) -> FloatArray:
        """The position of each region within its segment, from -1 for the lowest scores to 1."""
        parts = self.partition.bins_by_segment
        return _positions([part.n_regions for part in parts.values()] or [self.n_regions])

    def inner_slopes(self) -> FloatArray:
        """The position of each cell within its region, from -1 for the lowest scores to 1."""
        return _positions(np.bincount(self.cells.region).tolist())


def _positions(sizes: list[int]) -> FloatArray:
    """From -1 to 1 over each of several runs; 0 for a run of one."""
    return np.concatenate(
        [np.linspace(-1.0, 1.0, size) if size > 1 else np.zeros(1) for size in sizes]
    )


def fitted_calibrator(calibrator: Fitted) -> ScoreCalibrator:
    """A fitted score calibrator: the object itself, or the one in a model file."""
    found: Any = getattr(calibrator, "calibrator", calibrator)
    if not hasattr(found, "as_regions"):
        rule = "be a fitted calibrator of scores, or the content of a model file"
        raise InvalidTypeError("calibrator", rule, got=type(calibrator).__name__)
    check_is_fitted(found)
    known: ScoreCalibrator = found
    return known


def guaranteed_regions(calibrator: Fitted, otherwise: str = "") -> RegionCalibrator:
    """A fitted calibrator with a guarantee for each region, from rows that count the same."""
    given = fitted_calibrator(calibrator)
    found = given.as_regions
    if found is None or not is_guarantee(found.guarantee_):
        advice = f"use BinningCalibrator or Calibrator{otherwise}"
        got = type(given).__name__
        raise InvalidValueError(
            "calibrator", "have a guarantee for each region", got=got, advice=advice
        )
    check_plain(found.tally_)
    return found


def check_plain(tally: Tally) -> None:
    """Raise an error for a calibrator that was fitted with groups or with importance weights."""
    got = None
    if tally.groups is not None:
        got = "groups"
    if tally.weights is not None:
        got = "importance weights"
    if got is not None:
        advice = (
            "fit it without them, or watch days as units: DriftMonitor(calibrator.partition_,"
            ' unit="day")'
        )
        rule = "be fitted to rows that are independent and count the same"
        raise InvalidValueError("calibrator", rule, got=got, advice=advice)


def _own_bins(calibrator: ScoreCalibrator) -> Partition:
    """Bins of equal width over the score range seen by a calibrator without regions.

    The end bins are open.
    """
    low, high = calibrator.score_range_seen_ or (0.0, 1.0)
    if low >= 0.0 and high <= 1.0:
        low = 0.0
        high = 1.0
    edges = np.unique(np.linspace(low, high, _N_BINS + 1)[1:-1])
    return Partition.from_edges(edges if high > low else np.empty(0))


def counts_of(
    places: IndexArray, codes: CodeArray | NDArray[Any], size: int
) -> tuple[IntArray, IntArray]:
    """Rows and positive rows of each region or cell, without rows in none."""
    inside = places >= 0
    rows = np.bincount(places[inside], minlength=size)
    hits = np.bincount(places[inside & (codes == 1)], minlength=size)
    return rows.astype(np.int64), hits.astype(np.int64)


def checked_counts(
    rows: ArrayLike, positives: ArrayLike, n_cells: int
) -> tuple[IntArray, IntArray]:
    """Check rows and positive rows of each cell that were counted elsewhere."""
    checked_rows = read_counts(rows, "rows", size=n_cells)
    checked_hits = read_counts(positives, "positives", size=n_cells)
    if (checked_hits > checked_rows).any():
        raise InvalidValueError("positives", f"lie between 0 and rows, in each of {n_cells} cells")
    return checked_rows, checked_hits
