"""Has the rate of a region changed since calibration? A test that is valid at every moment."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._lock import Locked
from calibrant._typing import ArrayLike, CodeArray, FloatArray, IndexArray
from calibrant.cells.partition import Partition, check_partition
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.sequences.change import BlockHistory, RateHistory
from calibrant.limits.sequences.sequence import by_region
from calibrant.params.arrays import as_array, check_same_length
from calibrant.params.labels import classes_of, name_classes
from calibrant.params.rules import OPEN_UNIT, Choice, check_state
from calibrant.params.saved_state import check_schema, read_count
from calibrant.sample.reader import read_rows
from calibrant.text.numbers import counted, nearest
from calibrant.text.sentences import shown

_SCHEMA = "calibrant.drift/1"
_NOUNS = {"row": "label", "block": "block"}
_HISTORIES: dict[str, type[RateHistory]] = {"row": RateHistory, "block": BlockHistory}


@dataclass(frozen=True, slots=True)
class Change:
    """A region whose rate has moved.

    Attributes
    ----------
    region : int
        Which one.
    name : str
        Its name in the partition.
    after : int
        The most likely moment: after how many of the region's labels, or of its blocks.
    rate_before, rate_after : float
        Observed rates on either side of it; of blocks, the mean of their rates.
    evidence : float
        Natural logarithm of the largest e-value; the alarm is raised at log(B / alpha).
    unit : str
        What is counted: "row" or "block".
    """

    region: int
    name: str
    after: int
    rate_before: float
    rate_after: float
    evidence: float
    unit: str = "row"

    def __str__(self) -> str:
        direction = "up" if self.rate_after > self.rate_before else "down"
        return (
            f"region {self.region} ({self.name}): the rate has moved {direction}, from {nearest(self.rate_before)} to "
            f"{nearest(self.rate_after)} after about {counted(self.after, _NOUNS[self.unit])}; the guarantee no longer "
            "holds today"
        )


class DriftMonitor(Locked):
    """Watch whether labels within each region still come with one rate.

    Claimed: while every region keeps one rate, the probability that an alarm is *ever* raised, in any region, is at
    most 1 - confidence_level. Not claimed: that every change is found. Scores that move between regions are no change,
    as long as the rate of each region stays: the guarantee still holds.

    Assumed, for ``unit="row"``: labels come in order and are independent draws. Rows that belong together (of one day,
    customer or patient) are not, and their ups and downs look like changes: with clusters of five rows the alarm is
    almost always a false one. For such rows use ``unit="block"``.

    Assumed, for ``unit="block"``: blocks come in order and are independent of each other. Rows within a block may
    depend on each other in any way. A region keeps one rate if the expected share of positives among a block's rows in
    the region stays the same.

    Parameters
    ----------
    partition : Partition
        The regions, as in the calibrator that is watched over.
    confidence_level : float, default=0.95
        Probability that no false alarm is ever raised.
    classes : pair of labels, default=(0, 1)
        Both labels. Where they are 0 and 1, labels -1 and 1 are accepted too.
    pos_label : object, default=None
        The positive class, whose rate is watched; needed unless the labels are 0 and 1, -1 and 1, or bools.
    unit : {"row", "block"}, default="row"
        What is independent: the rows, or the blocks of rows that `update` gets. A block counts as one observation
        however many rows it has, so changes take longer to find.

    Notes
    -----
    Several threads may call `update`; their batches are taken one at a time.

    **Rows.** For a region with N labels, k of them positive, the e-process is the likelihood of the labels under "the
    rate changed once", averaged over when and over the rates before and after, divided by the largest likelihood that
    one constant rate can give: sum over t of w_t KT(first t) KT(the others) / max_p p^k (1 - p)^(N - k), where KT is
    the Beta(1/2, 1/2) mixture. Under a constant rate p the numerator over the likelihood at p is a nonnegative
    martingale that starts at most at 1, and dividing by the maximum only lowers it; so by Ville's inequality it ever
    reaches B / alpha with probability at most alpha / B. The candidate moments t are all numbers up to 128 and then 128
    per doubling, with weights that add up to at most 1; those that get too old for their resolution are forgotten,
    which only lowers the sum. So memory is at most 256 counts per region. It is looked at after each batch.

    **Blocks.** Let X_1, X_2, ... be the shares of positives in a region's blocks, and p their expectation. Against each
    p bets are made that a rate above p begins at block s: the capital of such a bet is multiplied, at each block from s
    on, by 1 + f (X / p - 1), which is not negative and has expectation 1 given the earlier blocks. Bets below p are the
    mirror image, 1 + f ((1 - X) / (1 - p) - 1). The mean of all these capitals, over both directions, over f = 1, 1/2,
    ..., 1/16, and over s with weights that add up to 1, is a nonnegative martingale that starts at 1. By Ville's
    inequality it ever reaches B / alpha with probability at most alpha / B. So p is ruled out once it did; and if every
    p from 0 to 1 was ruled out at some time, no single rate is left, and the alarm is raised. The true p is among them
    with probability at most alpha / B. Bets above p fall in p and bets below rise, so that all p between two of 128
    neighbouring rates are ruled out at once by the smaller of each. It is looked at after each block. A bet begins at
    every block up to 8, and then at 8 blocks per doubling. No bet earns more than the logarithm of X / p or of (1 - X)
    / (1 - p) per block, so that small changes need a hundred blocks or more on either side.

    References
    ----------
    Wasserman, Ramdas and Balakrishnan (2020), "Universal inference", PNAS 117. Shin, Ramdas and Rinaldo (2024),
    "E-detectors: a nonparametric framework for sequential change detection", NEJSDS 2.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import DriftMonitor, Partition
    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor(Partition.fixed_width(2))
    >>> scores = rng.uniform(size=2000)
    >>> monitor.update(scores, rng.uniform(size=2000) < scores).verdict
    'no region has moved, as far as 2,000 labels show'
    >>> late = rng.uniform(size=2000)
    >>> print(monitor.update(late, rng.uniform(size=2000) < late**2).verdict)  # doctest: +ELLIPSIS
    region 0 ([0, 0.5)): the rate has moved down, from 0.2... to 0.0... after about ...
    """

    def __init__(
        self,
        partition: Partition,
        *,
        confidence_level: float = 0.95,
        classes: ArrayLike = (0, 1),
        pos_label: Hashable = None,
        unit: str = "row",
    ) -> None:
        check_partition(partition)
        self.partition = partition
        self.confidence_level = OPEN_UNIT.check("confidence_level", confidence_level)
        self._classes = name_classes(classes, pos_label)
        self.unit = Choice(_HISTORIES).check("unit", unit)
        self._histories = [_HISTORIES[unit]() for _ in range(partition.n_regions)]
        self._n_units = 0
        self._last_block: str | None = None

    @property
    def log_threshold(self) -> float:
        """Evidence at which an alarm is raised: log(B / alpha)."""
        return float(np.log(self.partition.n_regions) - np.log1p(-self.confidence_level))

    def update(
        self, scores: ArrayLike, y: ArrayLike, *, segments: ArrayLike | None = None, blocks: ArrayLike | None = None
    ) -> Self:
        """Take a batch of scores and labels, in the order in which they came.

        Parameters
        ----------
        scores, y : array-like of shape (n,)
            Scores and labels.
        segments : array-like of shape (n,), optional
            For a partition with segments.
        blocks : array-like of shape (n,), optional
            For ``unit="block"``: which block each row belongs to, such as its day. All rows of a block must be in one
            batch. Blocks are taken in the order of their first rows.
        """
        known, partition = classes_of(y, self._classes), self.partition
        label = self._classes.positive
        data = read_rows(scores, y, classes=known, pos_label=label, segments=segments, partition=partition)
        rows = data.collect()
        regions = self.partition.membership(rows.prepared)
        if self.unit == "block":
            return self._take_blocks(regions, rows.codes, blocks)
        if blocks is not None:
            raise InvalidTypeError("blocks", "be None for a monitor of rows", "blocks", 'set unit="block"')
        with self._lock:
            self._n_units += int(np.count_nonzero(regions >= 0))
            for region, labels in by_region(regions, rows.codes):
                self._histories[region].extend(labels)
        return self

    def _take_blocks(self, regions: IndexArray, codes: CodeArray, blocks: ArrayLike | None) -> Self:
        if blocks is None:
            raise InvalidTypeError("blocks", "name the block of each row for a monitor of blocks", got="None")
        names = as_array(blocks, "blocks")
        check_same_length(names, codes)
        number: dict[Hashable, int] = {}
        block_of = np.array([number.setdefault(name, len(number)) for name in names.tolist()], dtype=np.int64)
        texts = [str(name) for name in number]
        if any(name is None or name != name for name in number):  # NaN differs from itself
            raise InvalidValueError("blocks", "have no missing values", got="a missing one")
        n_regions, inside = self.partition.n_regions, regions >= 0
        cells = block_of[inside] * n_regions + regions[inside]
        shape = (len(number), n_regions)
        rows = np.bincount(cells, minlength=shape[0] * n_regions).reshape(shape)
        hits = np.bincount(cells, weights=codes[inside], minlength=shape[0] * n_regions).reshape(shape)
        with self._lock:
            if self._last_block in texts:
                raise InvalidValueError("blocks", "have all rows of a block in one batch", got=shown(self._last_block))
            self._n_units += len(number)
            self._last_block = texts[-1] if texts else self._last_block
            for history, n, k in zip(self._histories, rows.T, hits.T, strict=True):
                if (n > 0).any():
                    history.extend(k[n > 0] / n[n > 0])
        return self

    @property
    def log_evidence(self) -> FloatArray:
        """Logarithm of the largest e-value of each region so far."""
        return np.array([history.largest for history in self._histories])

    @property
    def changes(self) -> tuple[Change, ...]:
        """The regions in which an alarm was raised, most evidence first."""
        found, names = [], self.partition.describe()
        with self._lock:
            for region in np.argsort(-self.log_evidence, kind="stable").tolist():
                history = self._histories[region]
                if history.largest >= self.log_threshold:
                    moment, before, after = history.most_likely_change()
                    found.append(Change(region, names[region], moment, before, after, history.largest, self.unit))
        return tuple(found)

    @property
    def alarm(self) -> bool:
        """Whether some region's rate has moved."""
        return bool((self.log_evidence >= self.log_threshold).any())

    @property
    def verdict(self) -> str:
        """What can be said, in words."""
        if not self.alarm:
            return f"no region has moved, as far as {counted(self._n_units, _NOUNS[self.unit])} show"
        return "; ".join(str(change) for change in self.changes)

    def __repr__(self) -> str:
        return f"<DriftMonitor of {self.partition.n_regions} regions: {self.verdict}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON values; `from_dict` reads it back."""
        with self._lock:
            state = {
                "schema": _SCHEMA,
                "partition": self.partition.to_dict(),
                "confidence_level": self.confidence_level,
                "classes": self._classes.labels.tolist(),
                "pos_label": self._classes.positive,
                "histories": [history.to_dict() for history in self._histories],
            }
            if self.unit == "block":
                state.update(unit="block", n_blocks=self._n_units, last_block=self._last_block)
            return state

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        check_schema(state, _SCHEMA, ("partition", "confidence_level", "classes", "pos_label", "histories"))
        settings = {name: state[name] for name in ("confidence_level", "classes", "pos_label")}
        monitor = cls(Partition.from_dict(state["partition"]), **settings, unit=state.get("unit", "row"))
        saved, n_regions = state["histories"], monitor.partition.n_regions
        if not isinstance(saved, list | tuple) or len(saved) != n_regions:
            raise InvalidValueError("histories", f"be a list with one entry per region, {n_regions:,}", shown(saved))
        monitor._histories = [_HISTORIES[monitor.unit].from_dict(history) for history in saved]
        monitor._n_units = sum(history.n for history in monitor._histories)
        if monitor.unit == "block":
            check_state(state, ("n_blocks", "last_block"))
            monitor._n_units, last = read_count(state, "n_blocks"), state["last_block"]
            if last is not None and not isinstance(last, str):
                raise InvalidTypeError("last_block", "be text or null", got=shown(last))
            if any(history.n > monitor._n_units for history in monitor._histories):
                rule = "be at least the number of blocks of each region"
                raise InvalidValueError("n_blocks", rule, got=f"{monitor._n_units:,}")
            monitor._last_block = last
        return monitor
