"""Has a rate changed? E-processes that are valid at every moment, for labels one by one and for whole blocks.

The theory is in the Notes of `calibrant.DriftMonitor`.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy import special

from calibrant._typing import CodeArray, FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.params.rules import Number, check_state
from calibrant.params.saved_state import read_count, read_counts, read_numbers
from calibrant.text.sentences import shown

_CANDIDATES_PER_OCTAVE = 128
_ROUNDING = 1e-6
_LOG_BETA_HALF = float(np.log(np.pi))
_RATES = np.sin(np.linspace(0.0, np.pi / 2, 129)[1:]) ** 2  # bet against; 1 minus one of them is 0 or another of them
_STARTS_PER_OCTAVE = 8
_STAKES = 0.5 ** np.arange(5.0)[:, None]  # shares of the capital at risk in a bet
_MOST_CAPITAL = 1e300  # what is above it is given away, so that numbers stay finite


class RateHistory:
    """The labels of one region, remembered as the number of positives at the candidate moments of change."""

    dtype: type = np.int64
    rounding = 0.0

    def __init__(self) -> None:
        self.n = 0
        self.k: float = 0
        self.moments: IntArray = np.empty(0, dtype=np.int64)
        self.positives: IntArray | FloatArray = np.empty(0, dtype=self.dtype)
        self.largest = 0.0

    def extend(self, labels: CodeArray | FloatArray) -> None:
        """Take labels, or shares of positives in blocks, in the order in which they came."""
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
        """The moment of a single change, and the rates before and after it."""
        moments, positives = self.moments[self.moments < self.n], self.positives[self.moments < self.n]
        at = int(self._support()[: moments.size].argmax())
        moment, hits = int(moments[at]), float(positives[at])
        return moment, hits / moment, (self.k - hits) / (self.n - moment)

    def _support(self) -> FloatArray:
        """How strong the evidence for a change at each candidate is."""
        return self._log_e_values()

    def to_dict(self) -> dict[str, Any]:
        """Return everything that is remembered, as plain JSON values."""
        moments, positives = self.moments.tolist(), self.positives.tolist()
        return {"n": self.n, "k": self.k, "moments": moments, "positives": positives, **self._evidence()}

    def _evidence(self) -> dict[str, Any]:
        return {"largest": self.largest}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        history = cls()
        check_state(state, tuple(history.to_dict()))
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


class BlockHistory(RateHistory):
    """The blocks of one region: the capital of every bet, and the largest e-value so far between neighbouring rates."""

    dtype = np.float64
    rounding = _ROUNDING

    def __init__(self) -> None:
        super().__init__()
        self.capital = np.zeros((2, _STAKES.size, _RATES.size))
        self.best = np.zeros(_RATES.size)

    def extend(self, labels: CodeArray | FloatArray) -> None:
        """Take the shares of positives in blocks, in the order in which they came."""
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

    def _evidence(self) -> dict[str, Any]:
        return {"capital": self.capital.ravel().tolist(), "best": self.best.tolist()}

    def _read_evidence(self, state: Mapping[str, Any]) -> None:
        for name, kept in (("capital", self.capital), ("best", self.best)):
            numbers = read_numbers(state[name], name, size=kept.size, low=0.0, high=_MOST_CAPITAL)
            kept[...] = numbers.reshape(kept.shape)
        self._find_largest()


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
