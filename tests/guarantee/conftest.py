"""Limits depend on counts alone, and simulations meet the same counts again and again: compute them
once, together.

A call for six regions costs nearly as much as one for thousands. So a simulation first fits all its
draws while `Limits.collect` only writes down the counts. What is asked afterwards is computed for
all of them in one call.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from calibrant.guarantee import guarantee
from calibrant.intervals import METHODS, Interval
from calibrant.limits import mass


class Table:
    """A function of two counts, known for those pairs that were asked for."""

    def __init__(self, compute: Callable[[np.ndarray, np.ndarray], list[np.ndarray]]) -> None:
        self.compute = compute
        self.codes = np.empty(0, dtype=np.int64)
        self.answers: list[np.ndarray] = []

    def learn(self, codes: np.ndarray) -> None:
        new = np.setdiff1d(codes, self.codes)
        found = self.compute(new >> 32, new & 0xFFFFFFFF) if new.size else self.answers
        if not self.codes.size:
            self.codes = new
            self.answers = found
        elif new.size:
            order = np.argsort(codes := np.concatenate([self.codes, new]))
            self.codes = codes[order]
            self.answers = [
                np.concatenate(both)[order] for both in zip(self.answers, found, strict=True)
            ]

    def __call__(self, codes: np.ndarray) -> list[np.ndarray]:
        at = np.minimum(np.searchsorted(self.codes, codes), max(self.codes.size - 1, 0))
        if not self.codes.size or not np.array_equal(self.codes[at], codes):
            self.learn(codes)
            at = np.searchsorted(self.codes, codes)
        return [answer[at] for answer in self.answers]


class Limits:
    """The limits of every method, and of the mass of regions, by number of regions and error
    budget.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.collecting = False
        self.asked: dict[object, list[np.ndarray]] = {}
        self.tables: dict[object, Table] = {}
        self.learned: dict[object, int] = {}
        for name, method in list(METHODS.items()):
            monkeypatch.setitem(
                METHODS, name, replace(method, function=self._of_method(name, method.function))
            )
        monkeypatch.setattr(mass, "upper_limit", self._of_mass(mass.upper_limit))
        monkeypatch.setattr(guarantee, "mass_limits", self._remembered(mass.mass_limits))

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Answer [0, 1] to everything, and write down the counts."""
        self.collecting = True
        yield
        self.collecting = False

    def learn_up_to(self, n_rows: int) -> None:
        """From now on compute what is asked for all counts of up to so many rows: for small
        samples.
        """
        counts = np.repeat(np.arange(n_rows + 1), np.arange(1, n_rows + 2))
        self.everything = counts << 32 | (np.arange(counts.size) - counts * (counts + 1) // 2)

    everything: np.ndarray | None = None

    def _look_up(
        self, key: object, asked: object, codes: np.ndarray, compute: Callable
    ) -> list[np.ndarray]:
        if self.collecting:
            self.asked.setdefault(asked, []).append(codes)
            return [np.zeros(codes.size), np.ones(codes.size)]
        known = self.asked.get(asked, [] if self.everything is None else [self.everything])
        table = self.tables.setdefault(key, Table(compute))
        if len(known) > (learned := self.learned.get(key, 0)):
            table.learn(np.unique(np.concatenate(known[learned:])))
            self.learned[key] = len(known)
        return table(codes)

    def _of_method(self, name: str, function: Callable) -> Callable:
        def limits(tally, alpha):
            def compute(counts, positives):
                rates = positives / np.maximum(counts, 1)
                fields = {
                    "counts": counts,
                    "positives": positives,
                    "rates": rates,
                    "n_regions": tally.n_regions,
                }
                found = function(SimpleNamespace(**fields), alpha)
                return [found.lower, found.upper]

            asked = (tally.n_regions, alpha)
            return Interval(
                *self._look_up((name, *asked), asked, tally.counts << 32 | tally.positives, compute)
            )

        return limits

    def _of_mass(self, function: Callable) -> Callable:
        def upper_limit(counts, totals, tail):
            tails = np.broadcast_to(tail, counts.shape)
            found = np.empty(counts.shape)
            for one in np.unique(tails).tolist():
                here = tails == one
                codes = totals[here] << 32 | counts[here]
                compute = lambda n, k, one=one: [function(k, n, one)]  # noqa: E731
                found[here] = self._look_up(("mass", one), ("mass", one), codes, compute)[-1]
            return found

        return upper_limit

    def _remembered(self, function: Callable) -> Callable:
        """Limits on mass are the same for every method of one fit."""
        last: list = [None, None, None]

        def mass_limits(partition, tally, alpha):
            if self.collecting or last[0] is not tally or last[1] != alpha:
                last[:] = tally, alpha, function(partition, tally, alpha)
            return last[2]

        return mass_limits


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    return Limits(monkeypatch)


@pytest.fixture
def no_mass_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits on the mass of regions take half of the time, and not every guarantee needs them."""
    monkeypatch.setattr(mass, "upper_limit", lambda counts, totals, tail: np.ones(len(counts)))
