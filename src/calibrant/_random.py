"""The one source of random numbers: keyed by the seed, the purpose and the rows, never by the seed alone.

A proof that averages over a random draw needs numbers that are independent of the rows. A seed alone does not give
that: with a fixed seed all data sets of one size share one draw, and users draw their data with the same seeds. So the
key is a hash of the seed, of what is drawn and of a fingerprint of all rows. Under that key the number of a row comes
from its position or its id, never from its values. The same rows with the same seed give the same answer.
"""

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._hash import mixed
from calibrant._params import as_generator
from calibrant._typing import FloatArray, IndexArray, Keys, Seed

_WORD = 2**64
_ODD = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True)
class RandomSource:
    """Random numbers under one key.

    Attributes
    ----------
    key : int
        64 bits. Sources with different keys give unrelated numbers.
    """

    key: int

    @classmethod
    def of(cls, random_state: Seed, purpose: str, *settings: Hashable, rows: int = 0) -> Self:
        """Make the source of a seed, a purpose, the settings of a fit and the fingerprint of its rows.

        >>> one = RandomSource.of(0, "order", rows=fingerprint_of(np.array([0.2, 0.7]), np.array([0, 1])))
        >>> one == RandomSource.of(0, "order", rows=fingerprint_of(np.array([0.7, 0.2]), np.array([1, 0])))
        True
        """
        text = repr((seed_number(random_state), purpose, settings, rows))
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return cls(int.from_bytes(digest, "little"))

    def hashes(self, keys: Keys) -> Keys:
        """64 random bits for each key of a row: its position, or a number made of its id."""
        return mixed(keys, self.key)

    def uniforms(self, keys: Keys) -> FloatArray:
        """A random number in [0, 1), of 53 bits, for each key of a row."""
        return np.asarray((self.hashes(keys) >> np.uint64(11)).astype(np.float64) * 2.0**-53)

    def order(self, n_rows: int) -> IndexArray:
        """A random order of rows, by their positions."""
        return np.argsort(self.hashes(np.arange(n_rows, dtype=np.uint64)), kind="stable")

    def generator(self) -> np.random.Generator:
        """A numpy generator, for what is not drawn row by row."""
        return np.random.default_rng(self.key)


def seed_number(random_state: Seed) -> int:
    """The number that a seed stands for: an int itself, a draw from a generator, fresh entropy for None."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    return int(as_generator(random_state).integers(2**63))


def fingerprint_of(*columns: NDArray[Any]) -> int:
    """A number that stands for rows, whatever their order: wrap-around sums over the bits of each row's values.

    >>> fingerprint_of(np.array([0.2, 0.7]), np.array([0, 1])) == fingerprint_of(np.array([0.2, 0.7]), np.array([1, 0]))
    False
    """
    n_rows = len(columns[0])
    row = np.zeros(n_rows, dtype=np.uint64)
    plain = 0
    for column in columns:
        bits = _bits(column)
        plain = (plain * 31 + int(bits.sum(dtype=np.uint64))) % _WORD
        row = (row ^ (row >> np.uint64(29))) * _ODD + bits
    mix = int(((row ^ (row >> np.uint64(32))) * _ODD).sum(dtype=np.uint64))
    return (n_rows * _WORD + plain) * _WORD + mix


def _bits(column: NDArray[Any]) -> Keys:
    """Each value as 64 bits."""
    if column.dtype.kind in "biu":
        return np.asarray(column.astype(np.int64)).view(np.uint64)
    return np.asarray(column.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0
