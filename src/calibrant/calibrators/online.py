"""Calibration of a stream: intervals that hold at every moment, whatever rule decides to look, to stop or to go on."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._input import as_array, as_scores, check_same_length, column_count
from calibrant._labels import Classes, encode_labels
from calibrant._params import (
    OPEN_UNIT,
    Choice,
    Flag,
    Instance,
    Integer,
    Jobs,
    Optional,
    Rule,
    check_real,
    thread_count,
)
from calibrant._typing import ArrayLike, CodeArray
from calibrant.calibrators.regions import RegionCalibrator
from calibrant.calibrators.stream import Stream
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee import VALUES, Guarantee, Population, Statement
from calibrant.partition import Partition, ScorePartition
from calibrant.rows import ScoredData
from calibrant.rows.base import settle
from calibrant.rows.reader import check_nothing_beside
from calibrant.sequences import SEQUENCES
from calibrant.tally import Tally

_DEFAULT_CLASSES = (0, 1)


class OnlineCalibrator(RegionCalibrator):
    """Calibrate a stream of scores and labels, one by one or in batches, with intervals valid at every moment.

    Claimed, for every distribution: with probability at least `confidence_level`, after every label and in every region
    at once, the true rate of the positive label lies in the region's interval. So one may look whenever one likes, stop
    when the interval is narrow enough, and choose from what was seen which region to label next. Assumed: within a
    region labels are independent draws with one rate (`calibrant.DriftMonitor` watches over that), and the regions do
    not depend on the labels that are counted.

    Parameters
    ----------
    partition : Partition, default=None
        The regions. None cuts `n_bins` quantile bins from the first `warmup` rows, which are then discarded: the
        paper's split, in a stream.
    confidence_level : float, default=0.9
        Confidence that no interval ever misses.
    sequence : {"beta-binomial", "stitched", "paper", "betting"}, default="beta-binomial"
        How the limits are made; see `calibrant.sequences`. The default needs only counts, so that order does not matter
        and streams can be merged.
    running : bool, default=False
        Intersect each interval with those after every earlier batch, so that it never widens. It then depends on when
        the batches came, and such calibrators can not be merged.
    n_bins : int, default=10
        Number of bins to cut, when no partition is given.
    warmup : int, default=1000
        Number of rows that cut them.
    value : {"mean", "midpoint"}, default="mean"
        What is predicted in a region, as in `BinningCalibrator`.
    pos_label, classes : optional
        The positive label, and both labels, as in `BinningCalibrator`. They are those of the first batch; if it may
        hold one kind only, and that is neither 0 nor 1, name them.
    n_jobs : int or None, default=None
        Threads for very large batches; results never depend on it.

    Attributes
    ----------
    guarantee_ : Guarantee
        What is promised now.
    partition_, tally_, classes_ :
        As in `BinningCalibrator`.
    phase_ : str
        "warming up" or "counting".

    Notes
    -----
    Time is constant per label, and memory does not grow with the stream.

    References
    ----------
    Gupta, Podkopaev and Ramdas (2020), section "Distribution-free calibration in the online setting".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import OnlineCalibrator, Partition
    >>> rng = np.random.default_rng(0)
    >>> online = OnlineCalibrator(Partition.fixed_width(5))
    >>> while True:  # label until the promise is good enough; looking each time costs nothing
    ...     scores = rng.uniform(size=100)
    ...     _ = online.partial_fit(scores, rng.uniform(size=100) < scores)
    ...     if online.enough(epsilon=0.1):
    ...         break
    >>> online.tally_.n_rows
    1800
    """

    _parameter_rules: ClassVar[Mapping[str, Rule[Any]]] = {
        "partition": Optional(Instance(Partition, "a Partition")),
        "confidence_level": OPEN_UNIT,
        "sequence": Choice(SEQUENCES),
        "running": Flag(),
        "n_bins": Integer(1),
        "warmup": Integer(1),
        "value": Choice(VALUES),
        "n_jobs": Jobs(),
    }
    _stream: Stream
    _promise: Guarantee | None

    def __init__(
        self,
        partition: Partition | None = None,
        *,
        confidence_level: float = 0.9,
        sequence: str = "beta-binomial",
        running: bool = False,
        n_bins: int = 10,
        warmup: int = 1000,
        value: str = "mean",
        pos_label: Any = None,
        classes: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.partition = partition
        self.confidence_level = confidence_level
        self.sequence = sequence
        self.running = running
        self.n_bins = n_bins
        self.warmup = warmup
        self.value = value
        self.pos_label = pos_label
        self.classes = classes
        self.n_jobs = n_jobs

    def fit(
        self, scores: ArrayLike | ScoredData, y: ArrayLike | None = None, *, segments: ArrayLike | None = None
    ) -> Self:
        """Forget everything and take a first batch."""
        fresh = self._fresh()
        fresh.partial_fit(scores, y, segments=segments)
        self.__dict__.update(fresh.__dict__)
        return self

    def _fresh(self) -> Self:
        return type(self)(**self.get_params(deep=False))

    def partial_fit(
        self, scores: ArrayLike | ScoredData, y: ArrayLike | None = None, *, segments: ArrayLike | None = None
    ) -> Self:
        """Take a batch of any size, in the order in which the rows came.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or ScoredData
            Scores of rows the model was not trained on; or data that hold scores and labels, see `calibrant.scored`,
            for sequences that need no more than counts.
        y : array-like of shape (n,)
            Their labels.
        segments : array-like of shape (n,), optional
            For a partition with segments.

        Returns
        -------
        self
        """
        self._check_parameters()
        if isinstance(scores, ScoredData):
            check_nothing_beside(y=y, segments=segments)
            return self._take_counts(scores)
        codes, known = self._encode(y, column_count(scores))
        state = self._stream if self.__sklearn_is_fitted__() else Stream.start(self)
        state.check_unchanged(self)
        if state.partition is None:
            checked = as_scores(scores, positive_column=known.positive_index)
            check_same_length(checked, codes)
            if segments is not None:
                raise InvalidTypeError("segments must be None while bins are cut from the stream: give a partition")
            used = state.warm_up(checked, self.n_bins, self.warmup)
            scores, codes = checked[used:], codes[used:]
        if state.partition is not None:
            prepared = state.partition.prepare(scores, segments, positive_column=known.positive_index)
            check_same_length(prepared, codes)
            state.count(prepared, codes, thread_count(self.n_jobs))
        self._stream = state
        self._promise = None
        self._set_classes(known)
        return self

    def _take_counts(self, data: ScoredData) -> Self:
        """Take a batch that is not in memory: what was counted in it, where order does not matter."""
        state = self._stream if self.__sklearn_is_fitted__() else Stream.start(self)
        state.check_unchanged(self)
        if state.partition is None:
            raise InvalidValueError(
                "partition must be given for data that are not in memory, whose rows have no first ones to cut bins "
                "from; got None"
            )
        if not state.sequence.order_free:
            raise InvalidValueError(
                "sequence must be one that needs counts only, for rows that are not in memory have no order; "
                f"got {self.sequence!r}"
            )
        fitted = self.__sklearn_is_fitted__()
        classes = self.classes_ if fitted else self.classes
        label = Classes(self.classes_, self._positive_index).positive if fitted else self.pos_label
        counted = data.count(state.partition)
        counted.faults.check()
        if classes is None and set(counted.kinds) <= set(_DEFAULT_CLASSES):
            classes = _DEFAULT_CLASSES
        tally, known = settle(counted, state.partition, classes, label, weighted=False)
        state.add(tally.counts, tally.positives, tally.uncounted)
        self._stream = state
        self._promise = None
        self._set_classes(known)
        return self

    def _encode(self, y: ArrayLike | None, score_columns: int) -> tuple[CodeArray, Classes]:
        """Code labels by the classes of the first batch; zeros alone, or ones alone, are taken for labels 0 and 1."""
        if self.__sklearn_is_fitted__():
            known = Classes(self.classes_, self._positive_index)
            return encode_labels(y, classes=known.labels, pos_label=known.positive, score_columns=1)
        classes = self.classes
        if classes is None:
            labels = as_array(y, "y")
            if labels.size and labels.dtype.kind in "biuf" and np.isin(labels, _DEFAULT_CLASSES).all():
                classes = _DEFAULT_CLASSES
        return encode_labels(y, classes=classes, pos_label=self.pos_label, score_columns=score_columns)

    def update(self, score: float, label: Any, *, segment: Any = None) -> Self:
        """Take one score and its label."""
        return self.partial_fit([score], [label], segments=None if segment is None else [segment])

    def merge(self, other: "OnlineCalibrator") -> Self:
        """Take over what another stream over the same partition has counted; it stays as it was.

        The promise then holds for both streams together, at every moment. Refused where limits depend on more than
        counts.
        """
        if not isinstance(other, OnlineCalibrator):
            raise InvalidTypeError(f"other must be an OnlineCalibrator; got {type(other).__name__}")
        if other is self:
            raise InvalidValueError("other must be another stream; got this one, whose labels would count twice")
        for stream in (self, other):
            if not stream.__sklearn_is_fitted__() or stream._stream.partition is None:
                raise InvalidValueError("other must have seen data beyond its start-up window, and so must this one")
        mine, theirs = self._stream, other._stream
        if not mine.sequence.order_free:
            raise InvalidTypeError(
                f"streams with sequence={mine.sequence.name!r} can not be merged: {mine.sequence.why_not_mergeable}"
            )
        if mine.lower is not None or theirs.lower is not None:
            raise InvalidTypeError(
                "streams with running=True can not be merged: they remember when they were looked at"
            )
        if mine.partition != theirs.partition or mine.sequence.name != theirs.sequence.name:
            raise InvalidValueError("other must be over the same partition, with the same sequence")
        if self.confidence_level != other.confidence_level or list(self.classes_) != list(other.classes_):
            raise InvalidValueError("other must have the same confidence_level and classes")
        mine.sequence.add_counts(theirs.sequence.counts, theirs.sequence.positives)
        mine.uncounted += theirs.uncounted
        self._promise = None
        return self

    def enough(self, epsilon: float) -> bool:
        """Return whether the promise is as good as `epsilon` by now; stopping by this rule keeps it valid."""
        target = check_real("epsilon", epsilon, rule="a number in (0, 1)")
        return self.guarantee_.epsilon <= target

    def next_region(self) -> int:
        """Return the region whose next label would shrink epsilon most: the one with the widest interval.

        Asking for labels by this rule keeps every interval valid, for it looks only at the past.
        """
        guarantee = self.guarantee_
        widest = np.flatnonzero(guarantee.radius == guarantee.radius.max())
        return int(widest[guarantee.counts[widest].argmin()])

    @property
    def phase_(self) -> str:
        """Return "warming up" while bins are cut from the stream, then "counting"."""
        return "warming up" if self._fitted_stream().partition is None else "counting"

    @property
    def partition_(self) -> Partition:  # type: ignore[override]
        """The regions; while warming up, the whole line."""
        return self._fitted_stream().partition or ScorePartition(np.empty(0))

    @property
    def tally_(self) -> Tally:  # type: ignore[override]
        """What was counted so far."""
        return self._fitted_stream().tally()

    @property
    def guarantee_(self) -> Guarantee:  # type: ignore[override]
        """What is promised now."""
        stream = self._fitted_stream()
        if self._promise is None:
            remarks = []
            if stream.partition is None:
                remarks.append(f"still warming up: {stream.window.size} of {self.warmup} rows seen, none counted")
            if stream.contradicts:
                remarks.append("intervals of different moments contradict each other: a rate has changed")
            self._promise = Guarantee.from_limits(
                self.partition_,
                stream.tally(),
                stream.limits(),
                method=stream.sequence.name,
                confidence_level=stream.confidence_level,
                value=self.value,
                positive_label=Classes(self.classes_, self._positive_index).positive,
                statement=replace(
                    Statement.about(self.partition_, theorem=stream.sequence.theorem),
                    population=Population.STREAM,
                    notes=tuple(remarks),
                ),
            )
        return self._promise

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def _fitted_stream(self) -> Stream:
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this OnlineCalibrator has seen no data yet: call partial_fit or update first")
        return self._stream

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.partition is None and self.warmup < self.n_bins:
            raise InvalidValueError("warmup", f"be at least n_bins={self.n_bins}", got=repr(self.warmup))

    def _state(self) -> dict[str, Any]:
        return self._stream.to_dict()

    def _restore(self, state: Mapping[str, Any], classes: Classes) -> None:
        self._check_parameters()
        self._stream = Stream.from_dict(state, self)
        if self._stream.window.size > self.warmup:
            raise InvalidValueError(f"window must hold at most warmup={self.warmup} scores; got more")
        if self._stream.partition is not None:
            self.partition = self._stream.partition
        self.classes = tuple(classes.labels.tolist())
        self._promise = None
        self._set_classes(classes)
