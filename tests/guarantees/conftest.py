"""Limits depend on counts alone, and simulations meet the same counts again and again: remember them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from calibrant import mass
from calibrant.intervals import METHODS, Interval, Method


def remembering(method: Method) -> Method:
    """The same method, computed once for each number of rows and positives."""
    memory: dict[tuple[int, float], dict[tuple[int, int], tuple[float, float]]] = {}

    def function(tally, alpha):
        known = memory.setdefault((tally.n_regions, alpha), {})
        pairs = list(zip(tally.counts.tolist(), tally.positives.tolist(), strict=True))
        if new := sorted(set(pairs) - known.keys()):
            counts, positives = np.array(new, dtype=np.int64).T
            limits = method.function(
                SimpleNamespace(counts=counts, positives=positives, n_regions=tally.n_regions), alpha
            )
            known.update(zip(new, zip(limits.lower.tolist(), limits.upper.tolist(), strict=True), strict=True))
        lower, upper = np.array([known[pair] for pair in pairs]).T
        return Interval(lower, upper)

    return replace(method, function=function)


@pytest.fixture
def remembered_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, method in list(METHODS.items()):
        if name != "umd":  # it depends on more than the counts of each region
            monkeypatch.setitem(METHODS, name, remembering(method))
    memory: dict[tuple[int, int, float], float] = {}
    compute = mass.upper_limit

    def upper_limit(counts, totals, tail):
        keys = [(int(k), int(n), tail) for k, n in zip(counts, totals, strict=True)]
        if new := sorted(set(keys) - memory.keys()):
            k, n, _ = np.array(new).T
            memory.update(zip(new, compute(k, n, tail).tolist(), strict=True))
        return np.array([memory[key] for key in keys])

    monkeypatch.setattr(mass, "upper_limit", upper_limit)
