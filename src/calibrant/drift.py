"""Has the rate of a region changed since calibration? A test that is valid at every moment."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import special

from calibrant._input import as_array, check_same_length
from calibrant._labels import classes_of, name_classes
from calibrant._lock import Locked
from calibrant._numbers import counted
from calibrant._params import OPEN_UNIT, Choice, Number, check_state
from calibrant._state import check_schema, read_count, read_counts, read_numbers
from calibrant._text import shown
from calibrant._typing import ArrayLike, CodeArray, FloatArray, IndexArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.partition import Partition
from calibrant.partition.base import check_partition
from calibrant.rows import read_rows
from calibrant.sequences.base import by_region

_SCHEMA = "calibrant.drift/1"
_CANDIDATES_PER_OCTAVE = 128
_ROUNDING = 1e-6
_LOG_BETA_HALF = float(np.log(np.pi))
_NOUNS = {"row": "label", "block": "block"}
_RATES = np.sin(np.linspace(0.0, np.pi / 2, 129)[1:]) ** 2  # bet against; 1 minus one of them is 0 or another of them
_STARTS_PER_OCTAVE = 8
_STAKES = 0.5 ** np.arange(5.0)[:, None]  # shares of the capital at risk in a bet
_MOST_CAPITAL = 1e300  # what is above it is given away, so that numbers stay finite


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
            f"region {self.region} ({self.name}): the rate has moved {direction}, from {self.rate_before:.3g} to "
            f"{self.rate_after:.3g} after about {counted(self.after, _NOUNS[self.unit])}; the guarantee no longer "
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


class _History:
    """The labels of one region, remembered as the number of positives at the candidate moments of change."""

    keys: tuple[str, ...] = ("n", "k", "moments", "positives", "largest")
    dtype: type = np.int64
    rounding = 0.0

    def __init__(self) -> None:
        self.n = 0
        self.k: float = 0
        self.moments: IntArray = np.empty(0, dtype=np.int64)
        self.positives: IntArray | FloatArray = np.empty(0, dtype=self.dtype)
        self.largest = 0.0

    def extend(self, labels: CodeArray | FloatArray) -> None:
        self._remember(labels)
        self.largest = max(self.largest, float(special.logsumexp(self._log_e_values())))

    def _remember(self, labels: CodeArray | FloatArray) -> None:
        last = self.n + labels.size
        hits = self.k + np.cumsum(labels, dtype=self.dtype)
        new = _candidates(self.n, last)
        keep = np.isin(self.moments, _candidates(0, last))
        self.moments = np.concatenate([self.moments[keep], new])
        self.positives = np.concatenate([self.positives[keep], hits[new - self.n - 1]])
        self.n, self.k = last, hits[-1].item()

    def _log_e_values(self) -> FloatArray:
        """Logarithm of each candidate's share of the e-value."""
        before = _log_mixture(self.moments, self.positives)
        after = _log_mixture(self.n - self.moments, np.asarray(self.k - self.positives))
        best = special.xlogy(self.k, self.k / self.n) + special.xlogy(self.n - self.k, 1.0 - self.k / self.n)
        return np.asarray(_log_weights(self.moments) + before + after - best)

    def most_likely_change(self) -> tuple[int, float, float]:
        moments, positives = self.moments[self.moments < self.n], self.positives[self.moments < self.n]
        at = int(self._support()[: moments.size].argmax())
        moment, hits = int(moments[at]), float(positives[at])
        return moment, hits / moment, (self.k - hits) / (self.n - moment)

    def _support(self) -> FloatArray:
        """How strong the evidence for a change at each candidate is."""
        return self._log_e_values()

    def to_dict(self) -> dict[str, Any]:
        moments, positives = self.moments.tolist(), self.positives.tolist()
        return {"n": self.n, "k": self.k, "moments": moments, "positives": positives, "largest": self.largest}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        check_state(state, cls.keys)
        history = cls()
        history.n = read_count(state, "n")
        history.moments = read_counts(state["moments"], "moments")
        if not np.array_equal(history.moments, _candidates(0, history.n)):
            rule = f"be the candidate moments of {history.n:,} labels"
            raise InvalidValueError("moments", rule, got=shown(state["moments"]))
        read = read_counts if cls.dtype is np.int64 else read_numbers
        history.k = read([state["k"]], "k").item()
        history.positives = read(state["positives"], "positives", size=history.moments.size)
        # between two moments there are no more positives than labels
        rows = np.diff(history.moments, prepend=0, append=history.n)
        hits = np.diff(history.positives, prepend=0, append=history.k)
        if (hits < -history.rounding).any() or (hits > rows + history.rounding).any():
            rule = f"increase to k={history.k:,}, by at most the number of labels"
            raise InvalidValueError("positives", rule, got=shown(state["positives"]))
        history._read_evidence(state)
        return history

    def _read_evidence(self, state: Mapping[str, Any]) -> None:
        # the evidence now is a lower limit; two to the power of the number of labels is the largest e-value there is
        now = float(special.logsumexp(self._log_e_values())) if self.n else 0.0
        most = self.n * float(np.log(2.0))
        rule = f"a number from {max(now, 0.0):g} to {most:g}"
        self.largest = Number(rule, max(now, 0.0) - _ROUNDING, most + _ROUNDING).check("largest", state["largest"])


class _BlockHistory(_History):
    """The blocks of one region: the capital of every bet, and the largest e-value so far between neighbouring rates."""

    keys = ("n", "k", "moments", "positives", "capital", "best")
    dtype = np.float64
    rounding = _ROUNDING

    def __init__(self) -> None:
        super().__init__()
        self.capital = np.zeros((2, _STAKES.size, _RATES.size))
        self.best = np.zeros(_RATES.size)

    def extend(self, labels: CodeArray | FloatArray) -> None:
        for number, share in enumerate(labels.tolist(), self.n + 1):
            octave = number.bit_length() - 1
            if number % max(1, 2**octave // _STARTS_PER_OCTAVE) == 0:
                self.capital += 1.0 / ((octave + 1) * (octave + 2) * min(2**octave, _STARTS_PER_OCTAVE))
            for side, seen in zip(self.capital, (share, 1.0 - share), strict=True):
                side *= 1.0 - _STAKES + _STAKES * (seen / _RATES)
            np.minimum(self.capital, _MOST_CAPITAL, out=self.capital)
            above, below = self.capital.mean(axis=1)
            np.maximum(self.best, (above + below[::-1]) / 2.0, out=self.best)
        self._remember(labels)
        self._find_largest()

    def _support(self) -> FloatArray:
        """The squared difference of the means on either side, in units of its variance for equal blocks."""
        n, rest = self.moments, np.maximum(self.n - self.moments, 1)
        return np.asarray((self.positives / n - (self.k - self.positives) / rest) ** 2 * n * rest)

    def _find_largest(self) -> None:
        self.largest = max(0.0, float(np.log(max(self.best.min(), 1.0))))

    def to_dict(self) -> dict[str, Any]:
        state = {name: value for name, value in super().to_dict().items() if name in self.keys}
        return {**state, "capital": self.capital.ravel().tolist(), "best": self.best.tolist()}

    def _read_evidence(self, state: Mapping[str, Any]) -> None:
        for name, kept in (("capital", self.capital), ("best", self.best)):
            numbers = read_numbers(state[name], name, size=kept.size, low=0.0, high=_MOST_CAPITAL)
            kept[...] = numbers.reshape(kept.shape)
        self._find_largest()


_HISTORIES: dict[str, type[_History]] = {"row": _History, "block": _BlockHistory}


def _candidates(after: int, last: int) -> IntArray:
    """The candidate moments of change after one number of labels, up to another."""
    step = max(1, (1 << (last.bit_length() - 1)) // _CANDIDATES_PER_OCTAVE) if last else 1
    return np.arange(after // step + 1, last // step + 1, dtype=np.int64) * step


def _log_mixture(n: IntArray, k: IntArray | FloatArray) -> FloatArray:
    """Log of the likelihood of k positives among n labels in a given order, averaged over Beta(1/2, 1/2)."""
    return np.asarray(special.betaln(k + 0.5, n - k + 0.5) - _LOG_BETA_HALF)


def _log_weights(moments: IntArray) -> FloatArray:
    """Prior weight of each moment: 1 / ((m + 1)(m + 2)) for the octave from 2^m on, shared by its candidates."""
    octave = np.frexp(moments.astype(np.float64))[1] - 1
    candidates = np.minimum(2.0**octave, _CANDIDATES_PER_OCTAVE)
    return np.asarray(-np.log((octave + 1.0) * (octave + 2.0) * candidates))
