"""Calibrate a stream, with intervals that hold at every moment, however often you look at them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._lock import Locked
from calibrant._typing import ArrayLike
from calibrant.calibrators.regions.parameters import VALUE
from calibrant.calibrators.regions.region_calibrator import RegionCalibrator
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.statement import Population, Statement
from calibrant.params.arrays import as_array
from calibrant.params.declared_state import Inline
from calibrant.params.estimator import check_is_fitted
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import Classes, encode
from calibrant.params.rules import OPEN_UNIT, Integer, RuleTable, check_type
from calibrant.sample.counts import tally_of
from calibrant.sample.facts import ONE_OF_EACH
from calibrant.sample.reader import (
    check_no_weights,
    check_nothing_beside,
    one_row_each,
    read_rows,
    refuse,
    refuse_segments,
    rows_in,
)
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample
from calibrant.streams.stream import Stream, StreamParameters
from calibrant.text.sentences import Setting

_DEFAULT_CLASSES = (0, 1)
_WHOLE_GROUPS = "no group has rows in two batches, or in two streams that are merged"
_OF_GROUPS = (
    " One row from each group in a batch is drawn at random and counts: this is about a row drawn at"
    " random from a new group, and every group counts the same."
)
_MERGED = "which streams were merged, and when, was decided without looking at their labels"


@dataclass(eq=False, repr=False, kw_only=True)
class OnlineCalibrator(Locked, StreamParameters, RegionCalibrator):
    """Calibrate a stream of scores and labels, one by one or in batches, with intervals valid at
    every moment.

    Guarantee, for every distribution: with probability at least `confidence_level`, after every
    label and in every region simultaneously, the true rate of the positive class lies in the
    region's interval at that moment. So you can look at any time, stop when the interval is narrow
    enough, and use past labels to choose which region to label next. The epsilon of `guarantee_` is
    the bound for the predictions of now. Earlier predictions had the bounds of their own moments,
    which were usually wider.

    Assumptions: within a region, labels are independent draws with one rate
    (`calibrant.DriftMonitor` watches that), and the regions do not depend on the labels that are
    counted. Two things are up to you:

    - Choose the region, never the rows within it. Label rows in a region as they come, or at
      random. A rule that labels the lowest scores in each bin measures the rate at those scores,
      not in the bin.
    - Count labels without regard to their class. If labels for one class arrive later (you hear
      about a default before a repayment), the labels known by now are not a random sample. Count a
      row when its label would be known for either class.

    Parameters
    ----------
    partition : Partition, default=None
        The regions. None cuts `n_bins` quantile bins from the first `warmup` rows, which are then
        discarded. This is the paper's split, in a stream.
    confidence_level : float, default=0.9
        Confidence that no interval ever misses.
    sequence : {"centred-beta-binomial", "paper"}, default="centred-beta-binomial"
        The method for the limits; see `calibrant.sequences`. The default needs only counts, so
        order does not matter and streams can be merged. "paper" is the paper's theorem, for
        comparison.
    running : bool, default=False
        Intersect each interval with those after every earlier batch, so that it never widens. The
        interval then depends on how rows arrived in batches, and these calibrators cannot be
        merged.
    n_bins : int, default=10
        Number of bins to cut, if no partition is given.
    warmup : int, default=1000
        Number of rows used to cut the bins.
    value : {"jeffreys", "mean", "midpoint", "monotone"}, default="jeffreys"
        The prediction in a region, as in `BinningCalibrator`.
    pos_label : optional
        The positive class, as in `BinningCalibrator`. The first batch determines it and both
        classes; set it if the first batch may have only one class that is neither 0 nor 1.
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
    Time is constant per label, and memory does not grow with the stream. Several threads may call
    `partial_fit` and `merge`; batches are counted one at a time, in the order in which they arrive.

    Choosing the region is allowed for this reason: if past labels choose a region, the next label
    there is still an independent draw with the rate of that region. So each region's labels are the
    same sequence of draws, only seen sooner or later.

    References
    ----------
    Gupta, Podkopaev and Ramdas (2020), section "Distribution-free calibration in the online
    setting".

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
    1500
    """

    _learned: ClassVar[EntryTable] = {"stream": Entry(Inline(Stream), of="_stream")}
    _rules: ClassVar[RuleTable] = {
        "n_bins": Integer(1),
        "warmup": Integer(1),
        "value": VALUE,
    }

    n_bins: int = 10
    warmup: int = 1000
    value: str = "jeffreys"
    pos_label: Hashable = None
    n_jobs: int | None = None

    def fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        segments: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Forget everything, and count a first batch; arguments as in `partial_fit`."""
        with self._lock:
            return self._learn(None, scores, y, classes, segments=segments, groups=groups)

    def partial_fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        segments: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Count a batch of any size, in the order in which the rows arrived.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or Sample
            Scores of rows that the model was not trained on; or data with scores and labels, see
            `calibrant.scored`. If the sequence needs only counts and the regions are known, rows
            are counted where they are stored; otherwise they are read into memory.
        y : array-like of shape (n,)
            Labels of two classes.
        segments : array-like of shape (n,), optional
            For a partition with segments.
        groups : array-like of shape (n,), optional
            The group of each row, such as its customer. One row from each group in the batch is
            drawn at random and the others are not used. All rows of a group must be in one batch.
        classes : pair of labels, optional
            Both labels. Required if the first batch may contain only one of them; later batches
            must have the same classes.

        Returns
        -------
        self
        """
        with self._lock:
            begun = self._stream if self.__sklearn_is_fitted__() else None
            return self._learn(begun, scores, y, classes, segments=segments, groups=groups)

    def _learn(
        self,
        begun: Stream | None,
        scores: ArrayLike | Sample,
        y: ArrayLike | None,
        classes: ArrayLike | None,
        **columns: ArrayLike | None,
    ) -> Self:
        """Add a batch to a stream that has begun, or to a new one."""
        self._check_parameters()
        check_no_weights(scores, "this method counts every row exactly once")
        stream = begun or Stream(self, self.partition)
        stream.check_unchanged(self)
        named = (self.classes_, self._known().positive) if begun else (classes, self.pos_label)
        held = rows_in(scores)
        if held is not None and stream.partition is not None and stream.sequence.order_free:
            check_nothing_beside(y=y, **columns)
            refuse_segments(held, stream.partition)
            known = self._add_counts(held, stream, stream.partition, *named)
        else:
            known = self._add_rows(scores, y, columns, stream, *named)
        self._stream = stream
        self._guarantee: Guarantee | None = None
        self._set_classes(known)
        return self

    def _add_counts(
        self,
        data: Rows,
        stream: Stream,
        partition: Partition,
        classes: ArrayLike | None,
        pos_label: Hashable,
    ) -> Classes:
        """Count a batch where it is stored: sequences that ignore order need nothing in memory."""
        data = one_row_each(data, stream.seed)
        counted = data.count(partition)
        counted.faults.check()
        if classes is None and set(counted.kinds) <= set(_DEFAULT_CLASSES):
            classes = _DEFAULT_CLASSES
        known = counted.classes(data.with_classes(classes, pos_label).classes_among)
        tally = tally_of(counted, partition.n_regions, known)
        stream.add(tally.counts, tally.positives, tally.uncounted)
        stream.one_of_each |= data.facts(drawn=False).one_of_each[0] > 0
        return known

    def _add_rows(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None,
        columns: dict[str, Any],
        stream: Stream,
        classes: ArrayLike | None,
        pos_label: Hashable,
    ) -> Classes:
        """Add a batch row by row: first to the start-up window, then to the regions."""
        held = rows_in(scores)
        if held is not None and not held.has_order:
            name, rule = (
                ("sequence", "need counts only")
                if stream.partition is not None
                else ("partition", "be given")
            )
            raise InvalidValueError(
                name, f"{rule} for data whose rows have no order", got=repr(getattr(self, name))
            )
        if classes is None and y is not None:
            labels = as_array(y, "y")
            if (
                labels.size
                and labels.dtype.kind in "biuf"
                and encode(labels.ravel(), *_DEFAULT_CLASSES)[1] < 0
            ):
                classes = _DEFAULT_CLASSES  # only zeros, or only ones, means labels 0 and 1
        if stream.partition is None:
            reason = "without a partition, bin edges are chosen from the scores alone"
            refuse(scores, reason, "segment", advice="give a partition")
        if stream.partition is None and columns["segments"] is not None:
            rule = "be None while bin edges are chosen from scores in the stream"
            raise InvalidTypeError(
                "segments", rule, got="segments", advice=("set ", Setting("partition"))
            )
        columns |= {"classes": classes, "pos_label": pos_label}
        rows = one_row_each(
            read_rows(scores, y, partition=stream.partition, **columns), stream.seed
        ).collect()
        prepared = rows.prepared
        codes = rows.codes
        if stream.partition is None:
            used = stream.warm_up(rows.scores, self.n_bins, self.warmup)
            prepared = rows.scores[used:]
            codes = codes[used:]
        stream.count(prepared, codes, self._threads)
        stream.one_of_each |= rows.one_of_each[0] > 0
        return rows.known

    def _known(self) -> Classes:
        return Classes(self.classes_, self.positive_index_)

    def merge(self, other: OnlineCalibrator) -> Self:
        """Add the counts of another stream over the same partition; that stream is not changed.

        The guarantee then holds for both streams together, at every moment with that moment's
        bound. Each stream has an
        identity, which is saved with it. So a stream may be merged again when it has grown: its
        rows that were merged before are replaced, not counted twice, and a stream with nothing new
        changes nothing.

        Two things are up to you. Decide which streams to merge, and when, without looking at their
        labels: merging only streams with high rates would bias the result. And continue a saved
        stream in one place only: two copies that both continue have the same identity, and if their
        counts show it, merging them raises an error.

        An error is raised if limits depend on more than counts.

        Notes
        -----
        Put the rows in the order in which they enter the merged stream. As long as merges are
        decided without using the labels that they add, and no stream's choices depend on labels of
        another, each row is an independent draw given those before it. So the martingale of the
        sequence is also a martingale for the merged stream.
        """
        check_type("other", other, OnlineCalibrator, "an OnlineCalibrator")
        for stream in (self, other):
            if not stream.__sklearn_is_fitted__() or stream._stream.partition is None:
                raise InvalidValueError(
                    "both streams", "be past their start-up window", got="one that is not"
                )
        with other._lock:
            theirs = other._stream
            parts = other._stream.parts()
        with self._lock:
            mine = self._stream
            if not mine.sequence.order_free:
                got = f"{mine.sequence.name!r}: {mine.sequence.why_not_mergeable}"
                raise InvalidTypeError("sequence", "depend on counts only to be merged", got=got)
            if mine.running is not None or theirs.running is not None:
                got = "running=True, which remembers each look"
                raise InvalidTypeError("running", "be False to be merged", got=got)
            if mine.partition != theirs.partition or mine.sequence.name != theirs.sequence.name:
                raise InvalidValueError(
                    "other", "have the same partition and sequence", got="different ones"
                )
            if self.confidence_level != other.confidence_level or list(self.classes_) != list(
                other.classes_
            ):
                raise InvalidValueError(
                    "other", "have the same confidence_level and classes", got="different ones"
                )
            mine.merge(parts)
            mine.one_of_each |= theirs.one_of_each
            mine.read = mine.read or theirs.read
            self._guarantee = None
        return self

    def enough(self, epsilon: float) -> bool:
        """Return whether the guarantee has reached `epsilon`.

        The guarantee stays valid if you stop by this rule.
        """
        return self.guarantee_.epsilon <= OPEN_UNIT.check("epsilon", epsilon)

    def next_region(self) -> int:
        """Return the region whose next label would shrink epsilon most: the one with the widest
        interval.

        Every interval stays valid if you request labels by this rule, because it uses only past
        labels. Label a random row of the region, or the next one that arrives.
        """
        guarantee = self.guarantee_
        widest = np.flatnonzero(guarantee.radius == guarantee.radius.max())
        return int(widest[guarantee.counts[widest].argmin()])

    @property
    def phase_(self) -> str:
        """Return "warming up" while bin edges are chosen, then "counting"."""
        return "warming up" if self._fitted_stream().partition is None else "counting"

    @property
    def partition_(self) -> Partition:  # type: ignore[override]
        """The regions; while warming up, one region for all scores."""
        return self._fitted_stream().partition or ScorePartition(np.empty(0))

    @property
    def tally_(self) -> Tally:  # type: ignore[override]
        """The counts so far."""
        with self._lock:
            return self._fitted_stream().tally()

    @property
    def guarantee_(self) -> Guarantee:  # type: ignore[override]
        """What is guaranteed now."""
        with self._lock:
            stream = self._fitted_stream()
            if self._guarantee is None:
                self._guarantee = self._guaranteed(stream)
            return self._guarantee

    def _guaranteed(self, stream: Stream) -> Guarantee:
        remarks = []
        if stream.partition is None:
            remarks.append(
                f"warming up: {stream.window.size:,} of {self.warmup:,} rows seen, none counted yet"
            )
        assumed = (ONE_OF_EACH, _WHOLE_GROUPS)
        if stream.contradicts:
            remarks.append(
                "intervals of different moments contradict each other: a rate has changed"
            )
        said = Statement(
            stream.sequence.theorem,
            population=Population.STREAM,
            assumed=((_MERGED,) if stream.merged else ()) + (assumed if stream.one_of_each else ()),
            of_groups=_OF_GROUPS if stream.one_of_each else "",
            notes=tuple(remarks),
        )
        level = stream.confidence_level
        method = stream.sequence.name
        label = self._known().positive
        found = Guarantee.from_limits(
            self.partition_, stream.tally(), stream.limits(), level, method, said, self.value, label
        )
        return replace(found, read=stream.read)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def _fitted_stream(self) -> Stream:
        check_is_fitted(self)
        return self._stream

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.partition is None and self.warmup < self.n_bins:
            raise InvalidValueError(
                "warmup", f"be at least n_bins={self.n_bins}", got=repr(self.warmup)
            )

    def _state(self) -> dict[str, Any]:
        with self._lock:
            return super()._state()

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        stream: Stream = learned["stream"]
        if stream.window.size > self.warmup:
            rule = f"have at most warmup={self.warmup:,} scores"
            raise InvalidValueError("window", rule, got=f"{stream.window.size:,}")
        self._stream = stream
        if stream.partition is not None:
            self.partition = stream.partition
        self._guarantee = None
        self._set_classes(classes)

    def mark_as_read(self) -> None:
        """Do nothing: the stream itself records what was read and keeps it when it continues."""
