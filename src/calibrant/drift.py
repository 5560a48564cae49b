"""Has the rate of a region changed since calibration? A test that is valid at every moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import special

from calibrant._labels import name_classes
from calibrant._params import Number, check_open_unit, check_state
from calibrant._state import check_schema, read_count, read_counts
from calibrant._text import shown
from calibrant._typing import ArrayLike, CodeArray, FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.partition import Partition
from calibrant.partition.base import check_partition
from calibrant.rows import read_rows
from calibrant.sequences.base import by_region

_SCHEMA = "calibrant.drift/1"
_CANDIDATES_PER_OCTAVE = 128
_ROUNDING = 1e-6
_LOG_BETA_HALF = float(np.log(np.pi))


@dataclass(frozen=True, slots=True)
class Change:
    """A region whose rate has moved.

    Attributes
    ----------
    region : int
        Which one.
    name : str
        Its name in the partition.
    after_rows : int
        The most likely moment: after how many of the region's labels.
    rate_before, rate_after : float
        Observed rates on either side of it.
    evidence : float
        Natural logarithm of the largest e-value; the alarm is raised at log(B / alpha).
    """

    region: int
    name: str
    after_rows: int
    rate_before: float
    rate_after: float
    evidence: float

    def __str__(self) -> str:
        direction = "up" if self.rate_after > self.rate_before else "down"
        return (
            f"region {self.region} ({self.name}): the rate has moved {direction}, from {self.rate_before:.3g} to "
            f"{self.rate_after:.3g} after about {self.after_rows:,} labels; the guarantee no longer holds today"
        )


class DriftMonitor:
    """Watch whether labels within each region still come with one rate.

    Claimed: while every region keeps one rate, the probability that an alarm is *ever* raised, in any region, is at
    most 1 - confidence_level. Assumed: labels come in order, nothing else. Not claimed: that every change is found.
    Scores that move between regions are no change, as long as the rate of each region stays: the guarantee still holds.

    Parameters
    ----------
    partition : Partition
        The regions, as in the calibrator that is watched over.
    confidence_level : float, default=0.95
        Probability that no false alarm is ever raised.
    classes : pair of labels, default=(0, 1)
        Both labels.
    pos_label : object, default=None
        The positive class, whose rate is watched; needed unless the labels are 0 and 1, -1 and 1, or bools.

    Notes
    -----
    For a region with N labels, k of them positive, the e-process is the likelihood of the labels under "the rate
    changed once", averaged over when and over the rates before and after, divided by the largest likelihood that one
    constant rate can give: sum over t of w_t KT(first t) KT(the others) / max_p p^k (1 - p)^(N - k), where KT is the
    Beta(1/2, 1/2) mixture. Under a constant rate p the numerator over the likelihood at p is a nonnegative martingale
    that starts at most at 1, and dividing by the maximum only lowers it; so by Ville's inequality it ever reaches B /
    alpha with probability at most alpha / B. The candidate moments t are all numbers up to 128 and then 128 per
    doubling, with weights that add up to at most 1; those that get too old for their resolution are forgotten, which
    only lowers the sum. So memory is at most 256 counts per region. It is looked at after each batch.

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
        pos_label: Any = None,
    ) -> None:
        check_partition(partition)
        self.partition = partition
        self.confidence_level = check_open_unit("confidence_level", confidence_level)
        self._classes = name_classes(classes, pos_label)
        self._histories = [_History() for _ in range(partition.n_regions)]

    @property
    def log_threshold(self) -> float:
        """Evidence at which an alarm is raised: log(B / alpha)."""
        return float(np.log(self.partition.n_regions) - np.log1p(-self.confidence_level))

    def update(self, scores: ArrayLike, y: ArrayLike, *, segments: ArrayLike | None = None) -> Self:
        """Take a batch of scores and labels, in the order in which they came."""
        known = self._classes
        rows = read_rows(
            scores, y, classes=known.labels, pos_label=known.positive, segments=segments, partition=self.partition
        ).collect()
        for region, labels in by_region(self.partition.membership(rows.prepared), rows.codes):
            self._histories[region].extend(labels)
        return self

    @property
    def log_evidence(self) -> FloatArray:
        """Logarithm of the largest e-value of each region so far."""
        return np.array([history.largest for history in self._histories])

    @property
    def changes(self) -> tuple[Change, ...]:
        """The regions in which an alarm was raised, most evidence first."""
        found = []
        for region in np.argsort(-self.log_evidence, kind="stable").tolist():
            history = self._histories[region]
            if history.largest >= self.log_threshold:
                moment, before, after = history.most_likely_change()
                name = self.partition.describe()[region]
                found.append(Change(region, name, moment, before, after, history.largest))
        return tuple(found)

    @property
    def alarm(self) -> bool:
        """Whether some region's rate has moved."""
        return bool((self.log_evidence >= self.log_threshold).any())

    @property
    def verdict(self) -> str:
        """What can be said, in words."""
        if not self.alarm:
            return f"no region has moved, as far as {sum(history.n for history in self._histories):,} labels show"
        return "; ".join(str(change) for change in self.changes)

    def __repr__(self) -> str:
        return f"<DriftMonitor of {self.partition.n_regions} regions: {self.verdict}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON values; `from_dict` reads it back."""
        return {
            "schema": _SCHEMA,
            "partition": self.partition.to_dict(),
            "confidence_level": self.confidence_level,
            "classes": self._classes.labels.tolist(),
            "pos_label": self._classes.positive,
            "histories": [history.to_dict() for history in self._histories],
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        check_schema(state, _SCHEMA, ("partition", "confidence_level", "classes", "pos_label", "histories"))
        settings = {name: state[name] for name in ("confidence_level", "classes", "pos_label")}
        monitor = cls(Partition.from_dict(state["partition"]), **settings)
        saved, n_regions = state["histories"], monitor.partition.n_regions
        if not isinstance(saved, list | tuple) or len(saved) != n_regions:
            raise InvalidValueError("histories", f"be a list with one entry per region, {n_regions:,}", shown(saved))
        monitor._histories = [_History.from_dict(history) for history in saved]
        return monitor


class _History:
    """The labels of one region, remembered as the number of positives at the candidate moments of change."""

    def __init__(self) -> None:
        self.n = 0
        self.k = 0
        self.moments: IntArray = np.empty(0, dtype=np.int64)
        self.positives: IntArray = np.empty(0, dtype=np.int64)
        self.largest = 0.0

    def extend(self, labels: CodeArray) -> None:
        last = self.n + labels.size
        hits = self.k + np.cumsum(labels, dtype=np.int64)
        new = _candidates(self.n, last)
        keep = np.isin(self.moments, _candidates(0, last))
        self.moments = np.concatenate([self.moments[keep], new])
        self.positives = np.concatenate([self.positives[keep], hits[new - self.n - 1]])
        self.n, self.k = last, int(hits[-1])
        self.largest = max(self.largest, self.log_e_value())

    def log_e_value(self) -> float:
        """Logarithm of the e-value now."""
        return float(special.logsumexp(self._log_e_values()))

    def _log_e_values(self) -> FloatArray:
        """Logarithm of each candidate's share of the e-value."""
        before = _log_mixture(self.moments, self.positives)
        after = _log_mixture(self.n - self.moments, self.k - self.positives)
        best = special.xlogy(self.k, self.k / self.n) + special.xlogy(self.n - self.k, 1.0 - self.k / self.n)
        return np.asarray(_log_weights(self.moments) + before + after - best)

    def most_likely_change(self) -> tuple[int, float, float]:
        share = np.where(self.moments < self.n, self._log_e_values(), -np.inf)
        at = int(share.argmax())
        moment, hits = int(self.moments[at]), int(self.positives[at])
        return moment, hits / moment, (self.k - hits) / (self.n - moment)

    def to_dict(self) -> dict[str, Any]:
        moments, positives = self.moments.tolist(), self.positives.tolist()
        return {"n": self.n, "k": self.k, "moments": moments, "positives": positives, "largest": self.largest}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "_History":
        check_state(state, ("n", "k", "moments", "positives", "largest"))
        history = cls()
        history.n, history.k = read_count(state, "n"), read_count(state, "k")
        history.moments = read_counts(state["moments"], "moments")
        history.positives = read_counts(state["positives"], "positives", size=history.moments.size)
        if not np.array_equal(history.moments, _candidates(0, history.n)):
            raise InvalidValueError("moments", f"be those of {history.n:,} labels", got=shown(state["moments"]))
        # between two moments there are no more positives than labels
        rows = np.diff(history.moments, prepend=0, append=history.n)
        hits = np.diff(history.positives, prepend=0, append=history.k)
        if (hits < 0).any() or (hits > rows).any():
            rule = f"increase to k={history.k:,}, by no more than there are labels"
            raise InvalidValueError("positives", rule, got=shown(state["positives"]))
        # the evidence now is a lower limit; two to the power of the number of labels is the largest e-value there is
        now = history.log_e_value() if history.n else 0.0
        most = history.n * float(np.log(2.0))
        rule = f"a number from {max(now, 0.0):g} to {most:g}"
        history.largest = Number(rule, max(now, 0.0) - _ROUNDING, most + _ROUNDING).check("largest", state["largest"])
        return history


def _candidates(after: int, last: int) -> IntArray:
    """The candidate moments of change after one number of labels, up to another."""
    step = max(1, (1 << (last.bit_length() - 1)) // _CANDIDATES_PER_OCTAVE) if last else 1
    return np.arange(after // step + 1, last // step + 1, dtype=np.int64) * step


def _log_mixture(n: IntArray, k: IntArray) -> FloatArray:
    """Log of the likelihood of k positives among n labels in a given order, averaged over Beta(1/2, 1/2)."""
    return np.asarray(special.betaln(k + 0.5, n - k + 0.5) - _LOG_BETA_HALF)


def _log_weights(moments: IntArray) -> FloatArray:
    """Prior weight of each moment: 1 / ((m + 1)(m + 2)) for the octave from 2^m on, shared by its candidates."""
    octave = np.frexp(moments.astype(np.float64))[1] - 1
    candidates = np.minimum(2.0**octave, _CANDIDATES_PER_OCTAVE)
    return np.asarray(-np.log((octave + 1.0) * (octave + 2.0) * candidates))
