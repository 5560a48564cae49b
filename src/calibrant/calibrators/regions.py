"""Calibrators that predict from a finite partition: one value, one interval and one set per region."""

import sys
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from calibrant._labels import Classes
from calibrant._numbers import upper
from calibrant._params import thread_count
from calibrant._typing import ArrayLike, BoolArray, FloatArray
from calibrant.calibrators._weighted import WeightedLimits
from calibrant.calibrators.base import ScoreCalibrator
from calibrant.errors import InvalidTypeError, WeakGuaranteeWarning, warn_caller
from calibrant.guarantee import Guarantee
from calibrant.intervals.group_sums import GroupDesign
from calibrant.partition import Partition, ScorePartition
from calibrant.rows import ScoredData
from calibrant.rows.added_columns import LookUp
from calibrant.rows.batch import Columns
from calibrant.rows.device import entries_of
from calibrant.rows.facts import RowFacts
from calibrant.rows.reach import familiar_limits
from calibrant.tally import Tally
from calibrant.tripod import region_sets

_ALONE = "no group has more than one row, among these rows and in the future"


def warn_if_weak(fitted: object, guarantee: Guarantee, of: str = "") -> None:
    """Warn where little is proved; not where calibrant itself called `fit`, and says so or does not need it."""
    if guarantee.weakness is None:
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_locals.get("self", frame.f_locals.get("fitted")) is fitted:
        frame = frame.f_back
    module = "" if frame is None else str(frame.f_globals.get("__name__"))
    if module.partition(".")[0] != "calibrant" or module == "calibrant.classifier":
        said = f"the guarantee{of} says {guarantee.weakness}; epsilon is {upper(guarantee.stated.epsilon)}"
        warn_caller(said, WeakGuaranteeWarning)


class RegionCalibrator(ScoreCalibrator, takes_device_arrays=True):
    """A calibrator that predicts one value, one interval and one set per region of a partition."""

    n_jobs: int | None
    _facts: RowFacts = RowFacts()
    weighted_limits_: WeightedLimits | None = None
    """What limits by weights rest on; None without weights."""
    group_design_: GroupDesign | None = None
    """How whole groups were counted; None without groups."""
    partition_: Partition
    tally_: Tally
    guarantee_: Guarantee

    def _set_fitted(
        self, partition: Partition, tally: Tally, guarantee: Guarantee, classes: Classes, facts: RowFacts | None = None
    ) -> None:
        """Store everything that was learned, at once, so that a refused fit leaves the estimator as it was.

        `facts` are what the guarantee has to say of how the rows were read.
        """
        self._facts = RowFacts() if facts is None else facts
        self.partition_, self.tally_, self.guarantee_ = partition, tally, guarantee.of_rows(self._facts)
        if getattr(self, "max_group_size", None) == 1 and guarantee.statement.groups is None:
            self.guarantee_ = self.guarantee_.with_facts(assumed=(*self.guarantee_.statement.assumed, _ALONE))
        self._set_classes(classes)

    def _warn_if_weak(self) -> None:
        """Warn where little is proved; not where calibrant itself called `fit`, and says so or does not need it."""
        warn_if_weak(self, self.guarantee_)

    @property
    def _threads(self) -> int:
        return thread_count(self.n_jobs)

    def _look_up(
        self, scores: ArrayLike, table: NDArray[Any], segments: ArrayLike | None, partition: Partition | None = None
    ) -> NDArray[Any]:
        """Each score's entry, or row, of a table of regions."""
        check_is_fitted(self)
        found: NDArray[Any] = entries_of(
            partition or self.partition_,
            table,
            scores,
            segments,
            positive_column=self.positive_index_,
            threads=self._threads,
            familiar=familiar_limits(self.score_range_seen_),
            check=self._warn_of_other_scale,
        )
        return found

    def predict(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probability of the positive label, shape (n,)."""
        check_is_fitted(self)
        return self._look_up(scores, self.guarantee_.value, segments)

    def predict_proba(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probabilities of both labels, shape (n, 2); the columns follow `classes_`."""
        check_is_fitted(self)
        return self._look_up(scores, self._both_columns(self.guarantee_.value), segments)

    def predict_interval(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return confidence limits, shape (n, 2), for the true rate of the positive label in each score's region.

        They hold for all regions at once with probability `confidence_level` over the calibration data.
        """
        return RegionCalibrator.predict_rate_interval(self, scores, segments=segments)

    def predict_rate_interval(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return confidence limits, shape (n, 2), for the true rate of the positive label in each score's region.

        They hold for all regions at once with probability `confidence_level` over the calibration data.
        """
        check_is_fitted(self)
        return self._look_up(scores, np.column_stack([self.guarantee_.lower, self.guarantee_.upper]), segments)

    def predict_set(self, scores: ArrayLike, *, coverage: float = 0.95, segments: ArrayLike | None = None) -> BoolArray:
        """Return the labels that may not be ruled out, shape (n, 2), boolean; the columns follow `classes_`.

        With probability `confidence_level` over the calibration data, in every region at once, the label falls
        outside the set with probability at most 1 - coverage.
        """
        return self._look_up(scores, self._sets(coverage), segments)

    def _sets(self, coverage: float) -> BoolArray:
        """The labels of each region that may not be ruled out; the columns follow `classes_`."""
        check_is_fitted(self)
        return region_sets(self.guarantee_.interval, coverage)[:, :: 1 if self.positive_index_ else -1]

    def apply(self, data: ScoredData, *, coverage: float = 0.95, prefix: str = "") -> Any:
        """Add columns to scored data on the engine that has them: calibrated, lower, upper, and set.

        As `ScoreCalibrator.apply`, by one look-up for each row.
        """
        columns, partition = columns_to_predict(self, data), self.partition_.as_bins()
        values = {"calibrated": self.guarantee_.value, "lower": self.guarantee_.lower, "upper": self.guarantee_.upper}
        table: dict[str, Any] = {**values, "set": self._written_sets(coverage)}
        return data.apply(LookUp(columns, partition, {prefix + name: value for name, value in table.items()}))

    def _written_sets(self, coverage: float) -> tuple[str, ...]:
        """The set of each region as text."""
        sets, names = self._sets(coverage), [str(label) for label in self.classes_.tolist()]
        return tuple("{" + ", ".join(name for name, held in zip(names, row, strict=True) if held) + "}" for row in sets)

    def _state(self) -> dict[str, Any]:
        weighted = {} if self.weighted_limits_ is None else {"weighted": self.weighted_limits_.to_dict()}
        groups = {} if self.group_design_ is None else {"groups": self.group_design_.to_dict()}
        regions = {"partition": self.partition_.to_dict(), "tally": self.tally_.to_dict()}
        return {**regions, **weighted, **groups, **self._facts.to_dict()}


def columns_to_predict(fitted: RegionCalibrator, data: ScoredData) -> Columns:
    """The columns of the data that a calibrator needs to predict."""
    check_is_fitted(fitted)
    if not fitted.partition_.has_segments:
        return data.columns.only()
    if data.columns.segment is None:
        raise InvalidTypeError("segment", "name the column of segments", "None", "use scored(..., segment=...)")
    return data.columns.only("segment")


def score_bins(fitted: object) -> ScorePartition | None:
    """The bins of the score itself; None for a calibrator that has none, or has them within segments."""
    if not hasattr(fitted, "partition_") or hasattr(fitted, "base_"):
        return None
    bins: ScorePartition | None = fitted.partition_.bins_by_segment.get(None)
    return bins
