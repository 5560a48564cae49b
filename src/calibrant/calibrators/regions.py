"""Calibrators that predict from a finite partition: one value, one interval and one set per region."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._labels import Classes
from calibrant._params import thread_count
from calibrant._typing import ArrayLike, BoolArray, FloatArray
from calibrant.calibrators.base import ScoreCalibrator
from calibrant.guarantee import Guarantee
from calibrant.partition import Partition
from calibrant.tally import Tally
from calibrant.tripod import region_sets


class RegionCalibrator(ScoreCalibrator):
    """A calibrator that predicts one value, one interval and one set per region of a partition."""

    n_jobs: Any
    partition_: Partition
    tally_: Tally
    guarantee_: Guarantee

    def _set_fitted(self, partition: Partition, tally: Tally, guarantee: Guarantee, classes: Classes) -> None:
        """Store everything that was learned, at once, so that a refused fit leaves the estimator as it was."""
        self.partition_ = partition
        self.tally_ = tally
        self.guarantee_ = guarantee
        self._set_classes(classes)

    def _look_up(self, table: FloatArray, scores: ArrayLike, segments: ArrayLike | None) -> FloatArray:
        prepared = self.partition_.prepare(scores, segments, positive_column=self._positive_index)
        return self.partition_._look_up(prepared, table, threads=thread_count(self.n_jobs))

    def predict(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probability of the positive label, shape (n,)."""
        check_is_fitted(self)
        return self._look_up(self.guarantee_.value, scores, segments)

    def predict_proba(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probabilities of both labels, shape (n, 2); the columns follow `classes_`."""
        return self._both_columns(self.predict(scores, segments=segments))

    def predict_interval(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return confidence limits, shape (n, 2), for the true rate of the positive label in each score's region.

        They hold for all regions at once with probability `confidence_level` over the calibration data.
        """
        check_is_fitted(self)
        limits = np.column_stack([self.guarantee_.lower, self.guarantee_.upper])
        return self._look_up(limits, scores, segments)

    def predict_set(self, scores: ArrayLike, *, coverage: float = 0.95, segments: ArrayLike | None = None) -> BoolArray:
        """Return the labels that may not be ruled out, shape (n, 2), boolean; the columns follow `classes_`.

        With probability `confidence_level` over the calibration data, in every region at once, the label falls
        outside the set with probability at most 1 - coverage.
        """
        check_is_fitted(self)
        sets = region_sets(self.guarantee_.interval, coverage)
        if self._positive_index == 0:
            sets = sets[:, ::-1]
        prepared = self.partition_.prepare(scores, segments, positive_column=self._positive_index)
        return sets[self.partition_._assign(prepared, threads=thread_count(self.n_jobs))]

    def _state(self) -> dict[str, Any]:
        return {"partition": self.partition_.to_dict(), "tally": self.tally_.to_dict()}
