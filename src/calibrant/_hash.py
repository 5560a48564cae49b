"""One hash of 64-bit numbers, for all that is drawn or ordered at random and must be the same everywhere."""

import numpy as np

from calibrant._typing import Keys

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(values: Keys) -> Keys:
    """Scramble 64-bit numbers: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), a one-to-one map.

    >>> mixed(np.arange(2, dtype=np.uint64))
    array([16294208416658607535, 10451216379200822465], dtype=uint64)
    """
    z = values + _GOLDEN
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z
