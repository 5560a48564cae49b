"""Calibrators that predict from a finite partition: one value, one interval and one set per region."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, BoolArray, FloatArray
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.grouped_rows import cut_units
from calibrant.calibrators.regions.parameters import CutParameters, DataAssumptions
from calibrant.calibrators.regions.proof import Proof
from calibrant.calibrators.regions.weakness import warn_if_weak, warn_of_cap, warn_of_pooled
from calibrant.calibrators.score_calibrator import FACTS, ScoreCalibrator
from calibrant.calibrators.table import Steps, Table, steps_of_bins
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.tally import Tally
from calibrant.errors import CalibrantError, InvalidTypeError
from calibrant.gpu.entries import entries_of
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.tripod import region_sets
from calibrant.params.declared_state import Inline
from calibrant.params.estimator import check_is_fitted
from calibrant.params.frames import framed
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import Classes
from calibrant.params.rules import thread_count
from calibrant.params.tensors import on_gpu
from calibrant.sample.batch import Columns
from calibrant.sample.facts import RowFacts, familiar_limits
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample

_ALONE = "no group has more than one row, among these rows and in the future"


PROVED: EntryTable = {"proof": Entry(Inline(Proof), of="proof_"), "facts": FACTS}
"""The counts, and how the rows were read: what is saved for calibrators that count in bins."""


class RegionCalibrator(ScoreCalibrator):
    """A calibrator that predicts one value, one interval and one set per region of a partition."""

    bins_of_score = True
    """Whether the regions are bins of the score itself."""

    n_jobs: int | None
    _facts: RowFacts = RowFacts()
    proof_: Proof
    """What the counted rows prove about rates, for calibrators that derive their guarantee from it."""
    partition_: Partition
    tally_: Tally
    guarantee_: Guarantee

    @property
    def as_regions(self) -> RegionCalibrator:
        """Return this calibrator: it has a finite partition with limits for each region."""
        return self

    def _set_fitted(
        self,
        partition: Partition,
        tally: Tally,
        guarantee: Guarantee,
        classes: Classes,
        facts: RowFacts | None = None,
    ) -> None:
        """Store all learned attributes together, so that a rejected fit leaves the estimator
        unchanged.

        `facts` is what the guarantee has to say about how the rows were read.
        """
        self._facts = RowFacts() if facts is None else facts
        self.partition_ = partition
        self.tally_ = tally
        self.guarantee_ = guarantee.of_rows(self._facts)
        # groups of one row were read as plain rows; that no future group is larger is assumed
        if self.assumptions_.max_group_size == 1 and guarantee.statement.groups is None:
            self.guarantee_ = self.guarantee_.with_facts(
                assumed=(*self.guarantee_.statement.assumed, _ALONE)
            )
        self._set_classes(classes)

    def set_over_seed(self) -> None:
        """Have the guarantee say that its probability is also over the seed of an earlier draw."""
        self._facts = replace(self._facts, over_seed=True)
        self.guarantee_ = self.guarantee_.of_rows(self._facts)

    def _warn_if_weak(self) -> None:
        """Warn if little is guaranteed, or if segments are pooled that nobody asked to pool.

        Not if calibrant itself called `fit`, and reports it or does not need it.
        """
        if self._facts.pooled and getattr(self, "segment_rule", None) == "auto":
            warn_of_pooled(self._facts.pooled)
        if self.guarantee_.is_weak:
            warn_if_weak(self.guarantee_)
        if self.guarantee_.statement.groups is not None:
            warn_of_cap(self, self.guarantee_)

    @property
    def _threads(self) -> int:
        return thread_count(self.n_jobs)

    def _look_up(
        self, scores: ArrayLike, table: NDArray[Any], segments: ArrayLike | None
    ) -> NDArray[Any]:
        """Each score's entry or row in a table of regions."""
        return self._entries(self.partition_, scores, table, segments)

    def _entries(
        self,
        partition: Partition,
        scores: ArrayLike,
        table: NDArray[Any],
        segments: ArrayLike | None,
        *,
        on_curve: bool = False,
    ) -> NDArray[Any]:
        """Each score's entry or row in a table for a partition.

        With `on_curve`, its value from a table of lines.
        """
        entries: NDArray[Any] = entries_of(
            partition,
            table,
            scores,
            segments,
            on_curve=on_curve,
            positive_column=self.positive_index_,
            threads=self._threads,
            familiar=familiar_limits(self.score_range_seen_),
            check=self._warn_of_other_scale,
        )
        return entries

    @framed
    def predict(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probability of the positive label, shape (n,)."""
        check_is_fitted(self)
        return self._look_up(scores, self.guarantee_.value, segments)

    @framed
    def predict_proba(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probabilities of both labels, shape (n, 2).

        The columns follow `classes_`.
        """
        check_is_fitted(self)
        return self._look_up(scores, self._both_columns(self.guarantee_.value), segments)

    @framed
    def predict_interval(
        self, scores: ArrayLike, *, segments: ArrayLike | None = None
    ) -> FloatArray:
        """Return confidence limits, shape (n, 2), for the true rate of the positive label in each
        score's region.

        They hold for all regions simultaneously with probability `confidence_level` over the
        calibration data.
        """
        return RegionCalibrator.predict_rate_interval(self, scores, segments=segments)

    @framed
    def predict_rate_interval(
        self, scores: ArrayLike, *, segments: ArrayLike | None = None
    ) -> FloatArray:
        """Return confidence limits, shape (n, 2), for the true rate of the positive label in each
        score's region.

        They hold for all regions simultaneously with probability `confidence_level` over the
        calibration data.
        """
        check_is_fitted(self)
        return self._look_up(
            scores, np.column_stack([self.guarantee_.lower, self.guarantee_.upper]), segments
        )

    @framed
    def predict_set(
        self, scores: ArrayLike, *, coverage: float = 0.95, segments: ArrayLike | None = None
    ) -> BoolArray:
        """Return the labels that are not ruled out, shape (n, 2), boolean.

        The columns follow `classes_`.

        With probability `confidence_level` over the calibration data, in every region
        simultaneously, the label falls outside the set with probability at most 1 - coverage.
        """
        return self._look_up(scores, self._sets(coverage), segments)

    def _sets(self, coverage: float) -> BoolArray:
        """The labels of each region that cannot be ruled out; the columns follow `classes_`."""
        check_is_fitted(self)
        return region_sets(self.guarantee_.interval, coverage)[
            :, :: 1 if self.positive_index_ else -1
        ]

    @property
    def _takes_one_score(self) -> bool:
        """Whether the regions are regions of a score, not of a function of other inputs."""
        return bool(self.partition_.bins_by_segment)

    def value_ranges(self) -> tuple[FloatArray, FloatArray] | None:
        """The smallest and largest predictions in each region.

        None if each region has one value.
        """
        return None

    def _own_table(self, coverage: float) -> Table:
        return self._region_table(steps_of_bins(self.partition_), coverage)

    def _region_table(self, steps: tuple[Steps, ...], coverage: float) -> Table:
        """A table of the regions, where `steps` says which scores belong to each."""
        return Table(
            steps,
            self.guarantee_.value,
            coverage,
            self._table_notes(f", partition {self.partition_.fingerprint}"),
            classes=tuple(self.classes_.tolist()),
            lower=self.guarantee_.lower,
            upper=self.guarantee_.upper,
            sets=self._sets(coverage),
        )


@dataclass(eq=False, repr=False)
class BinnedCalibrator(CutParameters, RegionCalibrator):
    """A calibrator whose regions are bins, cut in `fit`, for rows that may have segments, weights
    and groups.
    """

    _learned: ClassVar[EntryTable] = PROVED

    def fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        segments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        importance_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        weight_bound: float | None = None,
        max_group_size: int | None = None,
        group_target: str | None = None,
        score_range: tuple[float, float] | None = None,
    ) -> Self:
        """Cut the regions, count the labels, and derive the guarantee.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or Sample
            Scores of rows that the model was not trained on; or files, a frame or a cluster with
            scores, labels and segments, see `calibrant.scored`.
        y : array-like of shape (n,)
            Labels of two classes.
        segments : array-like of shape (n,), optional
            The segment of each row. Each segment gets its own regions, within one error budget,
            unless it has few rows; see `segment_rule`. If a curve is fitted, a segment with 500
            rows or more gets its own curve.
        sample_weight : array-like of shape (n,), optional
            Whole numbers: the number of identical rows that each row stands for.
        importance_weight : array-like of shape (n,), optional
            Numbers >= 0, such as one over the probability with which a row was sampled. The
            guarantee is then about the weighted population. Give `weight_bound` too. Rows of scored
            data are read into memory.
        groups : array-like of shape (n,), optional
            The group of each row, such as its customer: whole numbers, dates or text.
            The guarantee is then about rows of new groups. Rows of a group may depend on each other
            in any way.
        classes : pair of labels, optional
            Both labels. Required if the data may contain only one of them.
        weight_bound : float, optional
            With `importance_weight`: an upper bound on the weights. Without it, the largest weight
            seen is used instead, and then nothing is guaranteed.
        max_group_size : int, optional
            With `groups`: a group counts as at most this many rows in a bin. By default it is the
            largest number of rows that a pilot group has in a bin; at least a tenth of the groups
            are pilot groups. The largest number among the counted groups would not be valid: it
            misses rare giant groups. A `GroupCapWarning` is issued if the rate among all rows,
            where large groups count in full, lies outside the limits of some bin.
        group_target : {"rows", "groups"}, optional
            With `groups`: "rows", the default, is the rate among rows; "groups" is the rate of a
            random row from a random group, where every group counts equally, whatever its number of
            rows. This parameter and both bounds can be given in `scored` instead.
        score_range : (float, float), optional
            The range of the scores, for bins of equal width; (0, 1) by default.

        Returns
        -------
        self
        """
        self._check_parameters()
        assumptions = DataAssumptions.about(
            scores,
            weight_bound=weight_bound,
            max_group_size=max_group_size,
            group_target=group_target,
            score_range=score_range,
        )
        columns = {
            "segments": segments,
            "sample_weight": sample_weight,
            "importance_weight": importance_weight,
        }
        return self._fit(scores, y, assumptions, classes=classes, groups=groups, **columns)

    def _fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None,
        assumptions: DataAssumptions,
        **columns: ArrayLike | None,
    ) -> Self:
        plain = all(extra is None for name, extra in columns.items() if name != "classes")
        on_device = None
        if plain and not isinstance(scores, np.ndarray) and on_gpu(scores):
            from calibrant.gpu.rows import rows_on_gpu

            on_device = rows_on_gpu(scores, y)
        if on_device is not None:
            # the host finds and reports again what is wrong with the rows
            with suppress(CalibrantError):
                return self._fit_rows(
                    on_device.with_classes(columns["classes"], self.pos_label), assumptions
                )
        return self._fit_rows(self._read(scores, y, **columns), assumptions)

    def _fit_rows(self, data: Rows, assumptions: DataAssumptions) -> Self:
        self._check_assumptions(assumptions)
        self.fit_binned(cut_units(data, self, assumptions))
        self._warn_if_weak()
        return self

    def _needs_rows(self) -> tuple[str, ...]:
        return ("counts",) if self.proof_.weighted is None else ("counts", "limits")

    @abstractmethod
    def fit_binned(self, binned: Binned) -> None:
        """Derive the guarantee from rows that are already counted in regions."""


def is_plain(data: Rows) -> bool:
    """Whether rows have neither groups nor weights."""
    return data.columns.group is None and data.columns.weight is None


def columns_to_predict(fitted: RegionCalibrator, data: Rows) -> Columns:
    """The columns of the data that a calibrator needs to predict."""
    check_is_fitted(fitted)
    if not fitted.partition_.has_segments:
        return data.columns.only()
    if data.columns.segment is None:
        raise InvalidTypeError(
            "segment", "name the column of segments", "None", "use scored(..., segment=...)"
        )
    return data.columns.only("segment")


def score_bins(fitted: object) -> ScorePartition | None:
    """The bins of the score itself.

    None for a calibrator that has none, or has them within segments.
    """
    regions: RegionCalibrator | None = getattr(fitted, "as_regions", None)
    if regions is None or not regions.bins_of_score:
        return None
    return regions.partition_.bins_by_segment.get(None)
