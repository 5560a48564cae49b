"""Is a guarantee broken more often than it says? Wald's sequential test: as many draws as the answer
needs, and no more.

A guarantee holds with probability 1 - alpha. For each of them the likelihood ratio of a rate of
misses of `caught` against one of `alpha` is followed, one draw after the other. Where misses have
probability alpha or less, the ratio is a supermartingale: it ever reaches 1 / FALSE_ALARM with
probability FALSE_ALARM at most (Ville). Where they have probability `caught` or more, the same
holds for one over the ratio and OVERLOOKED. Guarantees that hold by far are settled after a hundred
draws, where a fixed number of draws with the same power takes a thousand.

Seeds of tests are fixed. A run with a fresh seed (`make proofs SEED=today`) draws other data, and all
its tests together raise a false alarm with probability `JOINT` at most: each has its share of that
level, and each check of a test half of what is left of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice
from typing import Any

import numpy as np
from scipy.stats import binomtest

JOINT = 1e-6
"""How likely any test of a run with a fresh seed fails though all guarantees are kept."""
FALSE_ALARM = 1e-4
"""How likely a guarantee that is kept fails; there are hundreds of such tests."""
OVERLOOKED = 0.01
"""How likely a guarantee that is broken with probability `caught` passes."""


class Share:
    """What is left of the level of a test in a run with a fresh seed; None with fixed seeds."""

    left: float | None = None

    @classmethod
    def level(cls, fixed: float) -> float:
        """The level of the next check: the one of fixed seeds, or half of what is left."""
        if cls.left is None:
            return fixed
        cls.left /= 2
        return cls.left


def assert_rare(missed: Any, draws: int, alpha: float, *, level: float = 1e-3) -> None:
    """Fail where so many misses have a probability of at most `level` if alpha is right."""
    p = binomtest(int(missed), draws, alpha, alternative="greater").pvalue
    assert p > Share.level(level), f"missed {missed} of {draws} at {alpha} (p = {p:.2g})"


def assert_kept(misses: Iterable[Mapping[Any, Any]], alpha: float = 0.1, *, caught: float) -> int:
    """Fail where a guarantee is broken with probability `caught`.

    Take as few draws as that needs, and return how many.

    Each entry of `misses` is one draw, or several: by name of the guarantee whether it was broken.
    """
    missed = np.log(caught / alpha)
    kept = np.log((1 - caught) / (1 - alpha))
    ratio: dict[Any, float] = {}
    n_missed: dict[Any, int] = {}
    settled: set[Any] = set()
    draws = 0
    false_alarm = 0.0
    for broken in misses:
        false_alarm = false_alarm or Share.level(FALSE_ALARM * len(broken)) / len(broken)
        arrays = {name: np.atleast_1d(found).astype(bool) for name, found in broken.items()}
        draws += max(map(len, arrays.values()))
        for name, found in arrays.items():
            path = ratio.get(name, 0.0) + np.cumsum(np.where(found, missed, kept))
            n_missed[name] = n_missed.get(name, 0) + int(found.sum())
            ratio[name] = path[-1]
            if name in settled:
                continue
            over = np.flatnonzero((path >= -np.log(false_alarm)) | (path <= np.log(OVERLOOKED)))
            if over.size:
                assert path[over[0]] < 0, f"{name} was broken in {n_missed[name]} of {draws} draws"
                settled.add(name)
        if settled == ratio.keys():
            return draws
    raise AssertionError(f"{draws} draws do not settle {ratio.keys() - settled}")


def batches(draws: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """The draws, `size` at a time."""
    for _ in count():
        yield list(islice(draws, size))
