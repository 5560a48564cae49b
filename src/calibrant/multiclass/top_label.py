"""Top-label calibration: the confidence in the predicted class, given which class it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, FloatArray, IndexArray
from calibrant.calibrators.curve.estimator import automatic_regions
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.grouped_rows import cut_units
from calibrant.calibrators.regions.parameters import CutParameters, DataAssumptions, automatic_bins
from calibrant.calibrators.regions.weakness import warn_if_weak, warn_of_cap
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.errors import InvalidValueError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.statement import Event
from calibrant.multiclass.class_columns import ColumnsCalibrator, OneClass
from calibrant.params.estimator import check_is_fitted
from calibrant.params.frames import predicts
from calibrant.params.saved_state import check_state
from calibrant.sample.reader import read_rows
from calibrant.text.sentences import shown


class _ClassBins(CutParameters):
    """How bins are cut in each predicted class: no more bins than rows."""

    def __init__(self, settings: ColumnsCalibrator) -> None:
        super().__init__(segment_rule=None, interval=settings.interval)
        self._automatic = automatic_regions if settings.method == "curve" else automatic_bins
        self._wanted = settings.n_bins

    def _automatic_bins(self, n_rows: int) -> int:
        return (
            self._automatic(n_rows)
            if isinstance(self._wanted, str)
            else min(int(self._wanted), n_rows)
        )


class TopLabelCalibrator(ColumnsCalibrator):
    """Calibrate the confidence in the predicted class, separately for every predicted class, within
    one error budget.

    Guarantee, for every distribution: with probability at least `confidence_level` over the
    calibration data, for every class and every region of its confidence simultaneously, the true
    rate of correct predictions, among rows with that prediction in that region, is within the
    region's epsilon of the average predicted confidence; with `method="binning"` it lies in the
    bin's interval. Assumptions: calibration and future rows are independent draws from one
    distribution, and the model was not trained on the calibration rows.

    Calibrating the confidence regardless of the predicted class ("confidence calibration") may be
    right on average and wrong for each class. Conditioning on the predicted class makes the
    statement meaningful to the person who sees a prediction.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        Number of bins for each predicted class, at most the number of its rows. "auto" is as in the
        calibrator that `method` names, applied to the rows of the class.
    method : {"curve", "binning"}, default="curve"
        A curve for each predicted class, see `Calibrator`, or one value per bin.
    confidence_level, interval, value
        As in `BinningCalibrator`; `value` is for bins.

    Attributes
    ----------
    guarantee_ : Guarantee
        The guarantee over all classes and bins simultaneously; its regions are named "class: bin".
    calibrator_ : Calibrator or BinningCalibrator
        The calibrator, with the predicted class as segment.
    classes_ : array of shape (L,)
        The labels, in the order of the columns.

    Notes
    -----
    The problem is reduced to a binary one: the score is the largest column, the label is whether
    the class of that column is the true one, and the segment is that class. Given how often each
    class was predicted, the rows of a class are independent draws, so checking for ties in each
    class keeps the limits exact, as in `BinningCalibrator`, and one Sidak level over all regions
    covers all classes. A class that was never predicted in calibration gets one region with the
    interval [0, 1].

    References
    ----------
    Gupta and Ramdas (2022), "Top-label calibration and multiclass-to-binary reductions".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import TopLabelCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.dirichlet([1.0, 1.0, 1.0], size=9000)
    >>> y = (rng.uniform(size=(9000, 1)) > scores.cumsum(axis=1)).sum(axis=1)
    >>> calibrator = TopLabelCalibrator(n_bins=5).fit(scores, y)
    >>> calibrator.predict([[0.1, 0.1, 0.8]]), calibrator.predict_confidence([[0.1, 0.1,
    ...     0.8]]).round(2)
    (array([2]), array([0.79]))
    >>> calibrator.guarantee_.is_proved, len(calibrator.guarantee_.regions)
    (True, 15)
    """

    _key: ClassVar[str] = "calibrator"
    calibrator_: OneClass

    @property
    def guarantee_(self) -> Guarantee:
        """The guarantee over all classes and bins simultaneously."""
        check_is_fitted(self)
        return self.calibrator_.guarantee_

    def _fit(
        self,
        columns: FloatArray,
        label: IndexArray,
        classes: NDArray[Any],
        assumptions: DataAssumptions,
        **beside: ArrayLike | None,
    ) -> None:
        """Cut bins of the largest score for each predicted class, and count how often that class is
        correct.
        """
        top = columns.argmax(axis=1)
        names = classes.tolist()
        given: dict[str, Any] = {"classes": (0, 1), **beside}
        rows = read_rows(columns.max(axis=1), (top == label).astype(np.uint8), **given).collect()
        seen = np.bincount(top, minlength=len(names)) > 0
        predicted = np.flatnonzero(seen)
        number = np.cumsum(seen) - 1
        cut = cut_units(
            rows.in_segments([names[k] for k in predicted], number[top]),
            _ClassBins(self),
            assumptions,
        )
        design = cut.design
        if design is None:
            rows = rows.without_groups()
        else:
            design = replace(design, unproved=())  # the classes were known beforehand
        bins = cut.partition.bins_by_segment
        counted = cut.rows.collect()
        whole = SegmentedPartition(
            {name: bins.get(name, ScorePartition(np.empty(0))) for name in names}
        )
        counted = counted.in_segments(names, predicted[np.asarray(counted.segment)])
        weighted = (
            rows.weights is not None
        )  # weights are summed over rows; sums over groups are taken later
        alone = counted.without_groups() if weighted else counted
        same = whole == cut.partition and cut.tally.weights is None
        counts = (cut.tally, cut.classes, cut.reach)
        tally, known, reach = counts if same else alone.tally_and_reach(whole, weighted=weighted)
        if design is not None and design.target == "rows" and tally.groups is not None:
            tally = replace(tally, groups=tally.groups.without_sizes())
        every = rows.in_segments(names, top) if len(counted) < len(rows) else counted
        fitted = self._calibrator(self.confidence_level)
        fitted.fit_binned(
            Binned(
                whole,
                tally,
                known,
                reach,
                counted,
                cut.facts,
                every,
                cut.drawn,
                design,
                assumptions,
            )
        )
        self.assumptions_ = assumptions
        self._set_calibrator(fitted)
        self._set_classes(classes)
        warn_if_weak(self.guarantee_)
        warn_of_cap(self, self.guarantee_)

    def _set_calibrator(self, calibrator: OneClass) -> None:
        calibrator.guarantee_ = calibrator.guarantee_.with_facts(event=Event.CORRECT_PREDICTION)
        calibrator.score_range_seen_ = None
        self.calibrator_ = calibrator

    def _top(self, scores: ArrayLike) -> tuple[FloatArray, NDArray[Any]]:
        columns = self._columns(scores)
        return columns.max(axis=1, initial=-np.inf), self.classes_[columns.argmax(axis=1)]

    @predicts
    def predict(self, scores: ArrayLike) -> NDArray[Any]:
        """Return the class with the highest score, shape (n,)."""
        return self._top(scores)[1]

    @predicts
    def predict_confidence(self, scores: ArrayLike) -> FloatArray:
        """Return the calibrated probability that the predicted class is right, shape (n,)."""
        confidence, label = self._top(scores)
        return self.calibrator_.predict(confidence, segments=label)

    @predicts
    def predict_interval(self, scores: ArrayLike) -> FloatArray:
        """Return confidence limits on the probability that the predicted class is right, shape (n,
        2), valid for all classes and bins simultaneously.
        """
        confidence, label = self._top(scores)
        return self.calibrator_.predict_interval(confidence, segments=label)

    def _state(self) -> dict[str, Any]:
        return self.calibrator_._state()

    def _restore(self, saved: Any) -> None:
        check_state(saved, ("partition", "tally"))
        partition = Partition.from_dict(saved["partition"])
        if not partition.has_segments or set(partition.bins_by_segment) != set(
            self.classes_.tolist()
        ):
            raise InvalidValueError(
                "partition", "have bins for each of the classes", got=shown(partition)
            )
        self._set_calibrator(self._restored(self.confidence_level, saved))
