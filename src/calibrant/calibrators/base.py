"""What calibrators of scores have in common: classes, fitted state, predictions from a table of regions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibrant._labels import Classes
from calibrant._params import thread_count
from calibrant._typing import ArrayLike, BoolArray, FloatArray
from calibrant.guarantee import Guarantee
from calibrant.partition import Partition
from calibrant.tally import Tally
from calibrant.tripod import region_sets


class RegionCalibrator(BaseEstimator):  # type: ignore[misc]
    """A calibrator that predicts one value, one interval and one set per region of a partition."""

    n_jobs: Any
    partition_: Partition
    tally_: Tally
    guarantee_: Guarantee
    classes_: NDArray[Any]

    def _set_fitted(self, partition: Partition, tally: Tally, guarantee: Guarantee, classes: Classes) -> None:
        """Store everything that was learned, at once, so that a refused fit leaves the estimator as it was."""
        self.partition_ = partition
        self.tally_ = tally
        self.guarantee_ = guarantee
        self.classes_ = classes.labels
        self.n_features_in_ = 1
        self._positive_index = classes.positive_index

    def _look_up(self, table: FloatArray, scores: ArrayLike, segments: ArrayLike | None) -> FloatArray:
        prepared = self.partition_.prepare(scores, segments, positive_column=self._positive_index)
        return self.partition_._look_up(prepared, table, threads=thread_count(self.n_jobs))

    def predict(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probability of the positive label, shape (n,)."""
        check_is_fitted(self)
        return self._look_up(self.guarantee_.value, scores, segments)

    def predict_proba(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probabilities of both labels, shape (n, 2); the columns follow `classes_`."""
        positive = self.predict(scores, segments=segments)
        columns = np.empty((positive.size, 2))
        columns[:, self._positive_index] = positive
        columns[:, 1 - self._positive_index] = 1.0 - positive
        return columns

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
