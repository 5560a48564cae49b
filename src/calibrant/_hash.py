"""One hash of 64-bit numbers, for all that is drawn or ordered at random and must be the same everywhere."""

import numpy as np

from calibrant._typing import Keys

GOLDEN = 0x9E3779B97F4A7C15
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
"""By how much numbers are shifted, and what they are multiplied by."""


def mixed(values: Keys, plus: int = 0, buffers: Keys | None = None) -> Keys:
    """Scramble 64-bit numbers: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), a one-to-one map.

    `plus` is added to the numbers first, modulo 2**64. Two `buffers`, of shape (2, n), may be given to work in.

    >>> mixed(np.arange(2, dtype=np.uint64))
    array([16294208416658607535, 10451216379200822465], dtype=uint64)
    """
    z, shifted = (np.empty_like(values), np.empty_like(values)) if buffers is None else buffers
    np.add(values, np.uint64((plus + GOLDEN) % 2**64), out=z)
    for shift, factor in ROUNDS:
        z ^= np.right_shift(z, np.uint64(shift), out=shifted)
        if factor > 1:
            z *= np.uint64(factor)
    return z
