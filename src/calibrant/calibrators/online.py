"""Calibration of a stream: intervals that hold at every moment, however often you look at them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._input import as_array
from calibrant._labels import Classes
from calibrant._params import (
    OPEN_UNIT,
    Choice,
    Flag,
    Instance,
    Integer,
    Jobs,
    Optional,
    Rule,
    thread_count,
)
from calibrant._text import Setting
from calibrant._typing import ArrayLike
from calibrant.calibrators.regions import RegionCalibrator
from calibrant.calibrators.stream import Stream
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee import VALUES, Guarantee, Population, Statement
from calibrant.partition import Partition, ScorePartition
from calibrant.rows import ScoredData, read_rows
from calibrant.rows.base import settle
from calibrant.rows.reader import check_nothing_beside
from calibrant.sequences import SEQUENCES
from calibrant.tally import Tally

_DEFAULT_CLASSES = (0, 1)


class OnlineCalibrator(RegionCalibrator):
    """Calibrate a stream of scores and labels, one by one or in batches, with intervals valid at every moment.

    Claimed, for every distribution: with probability at least `confidence_level`, after every label and in every region
    at once, the true rate of the positive class lies in the region's interval. So you may look at any time, stop when
    the interval is narrow enough, and choose from past labels which region to label next. Assumed: within a region
    labels are independent draws with one rate (`calibrant.DriftMonitor` watches that), and the regions do not depend on
    the labels that are counted.

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
        the batches came, and such calibrators cannot be merged.
    n_bins : int, default=10
        Number of bins to cut, when no partition is given.
    warmup : int, default=1000
        Number of rows that cut them.
    value : {"mean", "midpoint"}, default="mean"
        What is predicted in a region, as in `BinningCalibrator`.
    pos_label, classes : optional
        The positive class, and both classes, as in `BinningCalibrator`. They are those of the first batch; set them if
        it may have only one class that is neither 0 nor 1.
    n_jobs : int or None, default=None
        Threads for very large batches; results never depend on it.

    Attributes
    ----------
    guarantee_ : Guarantee
        What is guaranteed now.
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
    >>> while True:  # label until epsilon is small enough; looking each time is allowed
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
        """Forget everything, and take a first batch."""
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
            Scores of rows that the model was not trained on; or data with scores and labels, see `calibrant.scored`.
            Where the sequence needs counts only and the regions are known, they are counted where they are; otherwise
            their rows are brought into memory.
        y : array-like of shape (n,)
            Labels of two classes.
        segments : array-like of shape (n,), optional
            For a partition with segments.

        Returns
        -------
        self
        """
        self._check_parameters()
        stream = self._stream if self.__sklearn_is_fitted__() else Stream.start(self)
        stream.check_unchanged(self)
        if isinstance(scores, ScoredData) and stream.partition is not None and stream.sequence.order_free:
            check_nothing_beside(y=y, segments=segments)
            known = self._add_counts(scores, stream, stream.partition)
        else:
            known = self._add_rows(scores, y, segments, stream)
        self._stream, self._promise = stream, None
        self._set_classes(known)
        return self

    def _add_counts(self, data: ScoredData, stream: Stream, partition: Partition) -> Classes:
        """Count a batch where it is: with sequences that need no order, nothing is brought into memory."""
        classes, pos_label = self._named_classes()
        counted = data.count(partition)
        counted.faults.check()
        if classes is None and set(counted.kinds) <= set(_DEFAULT_CLASSES):
            classes = _DEFAULT_CLASSES
        tally, known = settle(counted, partition, classes, pos_label, weighted=False)
        stream.add(tally.counts, tally.positives, tally.uncounted)
        return known

    def _add_rows(
        self, scores: ArrayLike | ScoredData, y: ArrayLike | None, segments: ArrayLike | None, stream: Stream
    ) -> Classes:
        """Take a batch row by row: first into the start-up window, then into the regions."""
        classes, pos_label = self._named_classes()
        if isinstance(scores, ScoredData) and not scores.has_order:
            name, rule = ("sequence", "need counts only") if stream.partition is not None else ("partition", "be given")
            raise InvalidValueError(name, f"{rule} for data whose rows have no order", got=repr(getattr(self, name)))
        if classes is None and y is not None:
            labels = as_array(y, "y")
            if labels.size and labels.dtype.kind in "biuf" and np.isin(labels, _DEFAULT_CLASSES).all():
                classes = _DEFAULT_CLASSES  # zeros alone, or ones alone, are labels 0 and 1
        if stream.partition is None and segments is not None:
            rule = "be None while bins are cut from the stream"
            raise InvalidTypeError("segments", rule, got="segments", advice=("set ", Setting("partition")))
        rows = read_rows(
            scores, y, classes=classes, pos_label=pos_label, segments=segments, partition=stream.partition
        ).collect()
        prepared, codes = rows.prepared, rows.codes
        if stream.partition is None:
            used = stream.warm_up(rows.scores, self.n_bins, self.warmup)
            prepared, codes = rows.scores[used:], codes[used:]
        stream.count(prepared, codes, thread_count(self.n_jobs))
        return rows.known

    def _named_classes(self) -> tuple[ArrayLike | None, Any]:
        """The classes and the positive one: those of the first batch, or the parameters before it."""
        if self.__sklearn_is_fitted__():
            return self.classes_, Classes(self.classes_, self._positive_index).positive
        return self.classes, self.pos_label

    def merge(self, other: "OnlineCalibrator") -> Self:
        """Take over what another stream over the same partition has counted; it stays as it was.

        The guarantee then holds for both streams together, at every moment. Raises where limits depend on more than
        counts.
        """
        if not isinstance(other, OnlineCalibrator):
            raise InvalidTypeError("other", "be an OnlineCalibrator", got=type(other).__name__)
        if other is self:
            raise InvalidValueError("other", "be another stream", got="this one, whose labels would count twice")
        for stream in (self, other):
            if not stream.__sklearn_is_fitted__() or stream._stream.partition is None:
                raise InvalidValueError("both streams", "be past their start-up window", got="one that is not")
        mine, theirs = self._stream, other._stream
        if not mine.sequence.order_free:
            got = f"{mine.sequence.name!r}: {mine.sequence.why_not_mergeable}"
            raise InvalidTypeError("sequence", "depend on counts only to be merged", got=got)
        if mine.lower is not None or theirs.lower is not None:
            raise InvalidTypeError("running", "be False to be merged", got="running=True, which remembers each look")
        if mine.partition != theirs.partition or mine.sequence.name != theirs.sequence.name:
            raise InvalidValueError("other", "have the same partition and sequence", got="different ones")
        if self.confidence_level != other.confidence_level or list(self.classes_) != list(other.classes_):
            raise InvalidValueError("other", "have the same confidence_level and classes", got="different ones")
        mine.sequence.add_counts(theirs.sequence.counts, theirs.sequence.positives)
        mine.uncounted += theirs.uncounted
        self._promise = None
        return self

    def enough(self, epsilon: float) -> bool:
        """Return whether the guarantee is as good as `epsilon` by now; stopping by this rule keeps it valid."""
        return self.guarantee_.epsilon <= OPEN_UNIT.check("epsilon", epsilon)

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
        """What is guaranteed now."""
        stream = self._fitted_stream()
        if self._promise is None:
            remarks = []
            if stream.partition is None:
                remarks.append(f"warming up: {stream.window.size:,} of {self.warmup:,} rows seen, none counted yet")
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

            raise NotFittedError("this OnlineCalibrator is not fitted yet: call fit or partial_fit first")
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
            rule = f"have at most warmup={self.warmup:,} scores"
            raise InvalidValueError("window", rule, got=f"{self._stream.window.size:,}")
        if self._stream.partition is not None:
            self.partition = self._stream.partition
        self.classes = tuple(classes.labels.tolist())
        self._promise = None
        self._set_classes(classes)
