"""One hash of 64-bit integers, for every random draw or order that must be the same everywhere."""

import numpy as np

from calibrant._typing import IndexArray, Keys

_BLOCK = 1 << 15  # numbers that fit in the processor's cache
GOLDEN = 0x9E3779B97F4A7C15
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
"""Pairs of a shift and a multiplier, one per round."""
FEWER_ROUNDS = ((29, 0xD6E8FEB86659FD93), (32, 1))
"""The rounds for sums over rows: each row is scrambled, so that sums of different rows differ."""
DROPPED_BITS = 46
"""Low bits of a double that are dropped to round it to 6 binary digits: steps of 0.8 to 1.6%."""


def mixed(values: Keys, plus: int = 0, buffers: Keys | None = None) -> Keys:
    """Scramble 64-bit numbers: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), a
    one-to-one map.

    `plus` is first added to the numbers, modulo 2**64. `buffers`, of shape (2, n), may be given as
    workspace.

    >>> mixed(np.arange(2, dtype=np.uint64))
    array([16294208416658607535, 10451216379200822465], dtype=uint64)
    """
    z, shifted = (np.empty_like(values), np.empty_like(values)) if buffers is None else buffers
    return scrambled(np.add(values, np.uint64((plus + GOLDEN) % 2**64), out=z), shifted, ROUNDS)


def scrambled(z: Keys, shifted: Keys, rounds: tuple[tuple[int, int], ...]) -> Keys:
    """Scramble numbers in place, with a buffer of the same size."""
    for shift, factor in rounds:
        z ^= np.right_shift(z, np.uint64(shift), out=shifted)
        if factor > 1:
            z *= np.uint64(factor)
    return z


def small_hashes(n: int, plus: int, limit: int) -> IndexArray:
    """Return the numbers below `n` with ``mixed(number, plus) < limit``, in half the time.

    In a block of numbers z that share their high bits, z ^ (z >> 30) changes the high bits in the
    same way and permutes the low bits. So the products of the first round are those of the low
    bits, which are computed once, plus a constant.

    >>> small_hashes(8, 3, 2**63), np.flatnonzero(mixed(np.arange(8, dtype=np.uint64), 3) < 2**63)
    (array([0, 1, 2, 4, 7]), array([0, 1, 2, 4, 7]))
    """
    first = plus + GOLDEN
    factor = ROUNDS[0][1]
    found = [np.empty(0, dtype=np.intp)]
    near = np.uint64(
        limit | 2 ** (64 - ROUNDS[2][0]) - 1
    )  # the last round keeps as many leading bits as it shifts by
    products = np.arange(_BLOCK, dtype=np.uint64) * np.uint64(factor)
    z, shifted = np.empty((2, _BLOCK), dtype=np.uint64)
    for start in range(first - first % _BLOCK, first + n, _BLOCK):
        high = start % 2**64 ^ (start % 2**64 >> ROUNDS[0][0])
        np.add(products, np.uint64((high - high % _BLOCK) * factor % 2**64), out=z)
        hits = np.flatnonzero(scrambled(z, shifted, ROUNDS[1:2]) <= near)
        found.append((hits ^ high % _BLOCK) + (start - first))
    numbers = np.sort(np.concatenate(found))
    numbers = numbers[(numbers >= 0) & (numbers < n)]
    return np.asarray(numbers[mixed(numbers.astype(np.uint64), plus) < np.uint64(limit)])
