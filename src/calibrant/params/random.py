"""The only source of random numbers: keyed by the seed, the purpose and the rows, never by the seed
alone.

A proof that averages over a random draw needs numbers that are independent of the rows. A seed
alone does not provide that: with a fixed seed all data sets of the same size share one draw, and
users generate their data with the same seeds. So the key is a hash of the seed, the purpose and a
fingerprint of all rows. Under that key the number of a row comes from its position or its id, never
from its values. The same rows with the same seed give the same answer.

Why that is enough: the fingerprint does not depend on the order of the rows. So the key depends on
which rows there are, however they are ordered: by time, by score, by label, or not at all. Model
the hash as a random function. Then each set of rows has its own numbers, drawn independently of the
order of the rows. Two data sets share numbers only if their fingerprints agree.

So a fingerprint must tell data sets apart, even if all values are close together, such as years, or
probabilities from .98 to .99. Features count with every digit. Scores come from a solver, whose
last digits differ between processors, so they are rounded to 20 significant binary digits, about 6
decimal ones. A copy of the data with fewer digits, such as float32, has other draws.

If rows take only a few values, many data sets have the same fingerprint: if all scores are equal,
it depends only on how many labels are positive. Then the probability is over the seed, too, and the
guarantee says so (`RowSums.has_few_values`).

*One draw for all sources* (`Draw`). Rows are drawn by position, id or group, never by score or
label. Each row has a key, a 64-bit number: its position among all rows, counted from 0, or a number
computed from its id or its group (`calibrant.sample.row_keys`); with groups, whole groups are
drawn. The key of the row and that of the draw give the hash of a row, ``mixed(row + draw)``, modulo
2**64. A row is drawn if its hash, as an unsigned number, is below a limit. So the same seed draws
the same rows of the same data in memory, in files and on a device; on a cluster too, if rows have
ids or groups.
"""

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import CodeArray, FloatArray, IndexArray, Keys, Seed
from calibrant.kernels.hash import DROPPED_BITS, FEWER_ROUNDS, GOLDEN, ROUNDS
from calibrant.params.rules import RandomState

_WORD = 2**64
_BLOCK = 1 << 14  # rows whose numbers fit in the processor's cache
_HASH_BLOCK = 1 << 15  # the same, for numbers alone
_MOST_CELLS = 8  # pairs of a value and a label; more of them make more than enough fingerprints
_ENOUGH_FINGERPRINTS = 10_000


@dataclass(frozen=True, slots=True)
class RandomSource:
    """Random numbers under one key.

    Attributes
    ----------
    key : int
        64 bits, from a hash. Sources with different purposes, seeds or rows give unrelated numbers.
    """

    key: int

    @classmethod
    def of(cls, random_state: Seed, purpose: str, *settings: Hashable, rows: int = 0) -> Self:
        """Make the source for a seed, a purpose, the settings of a fit and the fingerprint of its
        rows.

        >>> one = RandomSource.of(0, "order", rows=fingerprint_of([0.2, 0.7], labels=[0, 1]))
        >>> one == RandomSource.of(0, "order", rows=fingerprint_of([0.7, 0.2], labels=[1, 0]))
        True
        >>> one == RandomSource.of(0, "order", rows=fingerprint_of([0.7, 0.2], labels=[1, 1]))
        False
        """
        text = repr((seed_number(random_state), purpose, settings, rows))
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return cls(int.from_bytes(digest, "little"))

    def for_purpose(self, purpose: str) -> "RandomSource":
        """Return another source for the same rows, with unrelated numbers.

        Its key is a hash. Keys that differ only slightly would give the same numbers, shifted to
        other rows.
        """
        return RandomSource.of(self.key, purpose)

    def hashes(self, keys: Keys) -> Keys:
        """64 random bits for each row key: a position, or a number made from an id."""
        return mixed(keys, self.key)

    def uniforms(self, keys: Keys) -> FloatArray:
        """A random number in [0, 1) with 53 bits, for each row key."""
        return uniforms(self.hashes(keys))

    def order(self, n_rows: int) -> IndexArray:
        """A random order of rows, as positions.

        >>> sorted(RandomSource(7).order(5).tolist())
        [0, 1, 2, 3, 4]
        """
        position = np.arange(n_rows, dtype=np.uint64)
        low_bits = np.uint64((1 << n_rows.bit_length()) - 1)
        # sorting hashes that end with the position takes a fifth of the time of an argsort
        ordered = self.hashes(position)
        ordered &= ~low_bits
        ordered |= position
        ordered.sort()
        ordered &= low_bits
        return ordered.view(np.int64).astype(np.intp, copy=False)

    def generator(self) -> np.random.Generator:
        """A numpy generator, for draws that are not made row by row."""
        return np.random.default_rng(self.key)


def uniforms(bits: Keys) -> FloatArray:
    """Numbers in [0, 1) from the first 53 bits."""
    found = (bits >> np.uint64(11)).view(np.int64).astype(np.float64)  # faster than from uint64
    found *= 2.0**-53
    return found


def as_generator(random_state: Seed) -> np.random.Generator:
    """Return a generator for `random_state`, leaving numpy's global state alone even for None.

    For simulations. Random numbers for rows of data come from a `RandomSource`.
    """
    RandomState().check("random_state", random_state)
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint64))
    return np.random.default_rng(random_state)


def seed_number(random_state: Seed = None) -> int:
    """The number that a seed stands for: an int itself, a draw from a generator, or fresh entropy
    for None.
    """
    if (
        isinstance(random_state, int | np.integer)
        and not isinstance(random_state, bool)
        and random_state >= 0
    ):
        return int(random_state)
    return int(as_generator(random_state).integers(2**63))


@dataclass(frozen=True, slots=True)
class RowSums:
    """The number of rows with each label, and a sum of their row hashes.

    The sums of parts of the data can be added.

    The names of the labels do not matter, nor which of them is positive.

    Attributes
    ----------
    kinds : mapping from label to (int, int)
        The number of rows with this label, and the sum of their hashes.
    cells : mapping from (label, row hash) to int, or None
        The number of rows with this label and these values; None if there are many such cells.
    """

    kinds: Mapping[Hashable, tuple[int, int]] = field(default_factory=dict)
    cells: Mapping[tuple[Hashable, int], int] | None = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        columns: Sequence[Any],
        names: Sequence[Hashable] = (None,),
        number: Any = None,
        *,
        exact: bool = False,
    ) -> Self:
        """Sum up rows, given columns of the same length, the distinct labels, and the index of each
        row's label.

        With `exact` every digit counts; otherwise numbers are rounded to 20 binary digits.
        """
        arrays = [np.asarray(column) for column in columns]
        rows = [0] * len(names)
        totals = [0] * len(names)
        cells: dict[tuple[Hashable, int], int] | None = {}
        for start in range(0, len(arrays[0]), _BLOCK):
            state = _row_numbers([array[start : start + _BLOCK] for array in arrays], exact)
            if cells is not None:
                label = None if number is None else number[start : start + _BLOCK]
                cells = _added(cells, _cells_of(state, names, label))
            for kind in range(1, len(names)):  # the first label gets the remainder
                own = np.asarray(number[start : start + _BLOCK] == kind)
                rows[kind] += int(np.count_nonzero(own))
                totals[kind] += int((state * own.view(np.uint8)).sum(dtype=np.uint64))
            rows[0] += len(state)
            totals[0] += int(state.sum(dtype=np.uint64))
        rows[0] -= sum(rows[1:])
        totals[0] -= sum(totals[1:])
        counted = zip(names, rows, totals, strict=True)
        kinds = {name: (count, total % _WORD) for name, count, total in counted if count}
        return cls(kinds, cells)

    def __add__(self, other: "RowSums") -> "RowSums":
        kinds = dict(self.kinds)
        for name, (rows, total) in other.kinds.items():
            known = kinds.get(name, (0, 0))
            kinds[name] = (known[0] + rows, (known[1] + total) % _WORD)
        return RowSums(kinds, _added(self.cells, other.cells))

    @property
    def fingerprint(self) -> int:
        """A fingerprint of the rows that does not depend on their order or on the names of their
        labels.
        """
        digest = hashlib.blake2b(
            repr(sorted(self.kinds.values())).encode(), digest_size=16
        ).digest()
        return int.from_bytes(digest, "little")

    @property
    def has_few_values(self) -> bool:
        """Whether data sets like this one have so few fingerprints that a probability over draws is
        also over the seed.

        Two data sets have the same fingerprint if as many rows are in each cell. The probability of
        that is about 1 / sqrt(4 pi m) for a cell of m rows (exact for large Poisson counts; 1 / 3.2
        instead of 1 / 3.5 for m = 1), and the largest cell has the remainder. With 10,000
        equally likely fingerprints, the probability of an error of 0.1 over data sets has a standard
        deviation of 0.003 over seeds.

        >>> RowSums.of([np.full(90, 0.5)], (0, 1), np.arange(90) % 2).has_few_values
        True
        >>> RowSums.of([np.arange(90) % 5], (0, 1), np.arange(90) % 2).has_few_values
        False
        """
        if self.cells is None:
            return False
        counts = np.sort(np.array([*self.cells.values()], dtype=np.float64))[:-1]
        return float(np.prod(np.sqrt(4.0 * np.pi * counts))) < _ENOUGH_FINGERPRINTS


def fingerprint_of(*columns: Any, labels: CodeArray | Sequence[int] | None = None) -> int:
    """An order-independent fingerprint of rows: wrap-around sums over the bits of each row's
    values.

    Numbers are treated as doubles, rounded to 20 significant binary digits, whatever their type.
    `labels` are 0 and 1; 64-bit keys are used as they are.
    """
    if labels is None:
        return RowSums.of(columns).fingerprint
    return RowSums.of(columns, (0, 1), np.asarray(labels)).fingerprint


@dataclass(frozen=True, slots=True)
class Draw:
    """The rows whose hash is below a limit. A larger limit draws the same rows and more.

    Attributes
    ----------
    key : int
        64 bits, computed from the seed and the rows; see `RandomSource`.
    limit : int
        From 0, which draws nothing, to 2**64, which draws everything.
    limits : mapping from segment to int
        Limits for individual segments; `limit` is for all others.
    """

    key: int
    limit: int = 0
    limits: Mapping[Hashable, int] = field(default_factory=dict)

    @classmethod
    def of_share(cls, key: int, share: float) -> Self:
        """Keep each row with probability `share`.

        >>> Draw.of_share(7, 0.5).chosen(np.arange(8, dtype=np.uint64))
        array([ True, False, False,  True,  True, False, False,  True])
        """
        return cls(key, int(share * 2.0**64))

    def hashes(self, keys: Keys) -> Keys:
        """The hash of each row, which is compared with the limit."""
        return RandomSource(self.key).hashes(keys)

    def chosen(
        self, keys: Keys, parts: Iterable[tuple[Hashable, Any]] = ((None, slice(None)),)
    ) -> NDArray[np.bool_]:
        """Return whether each row is drawn; `parts` are pairs of a segment's name and its rows."""
        drawn = np.ones(len(keys), dtype=bool)
        for name, rows in parts:
            limit = self.limits.get(name, self.limit)
            if limit < _WORD:
                drawn[rows] = self._below(keys[rows], np.uint64(limit))
        return drawn

    def _below(self, keys: Keys, limit: np.uint64) -> NDArray[np.bool_]:
        """Whether the hashes are below the limit, in parts that fit in the processor's cache."""
        starts = range(0, len(keys), _HASH_BLOCK)
        parts = [self.hashes(keys[start : start + _HASH_BLOCK]) < limit for start in starts]
        return np.concatenate([np.empty(0, dtype=bool), *parts])


@dataclass(frozen=True, slots=True, eq=False)
class SmallestHashes:
    """The `most` smallest distinct hashes of rows or groups; those of two parts of the data can be
    added.

    A draw of exactly `most` rows has a limit just above the largest of them.
    """

    most: int
    found: Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))

    def __add__(self, other: "SmallestHashes") -> "SmallestHashes":
        # with counts numpy sorts, which is faster here than its hash table
        hashes, _ = np.unique(np.concatenate([self.found, other.found]), return_counts=True)
        most = max(self.most, other.most)
        return SmallestHashes(most, hashes[:most])

    @property
    def limit(self) -> int:
        """The limit that draws these rows."""
        return int(self.found.max()) + 1 if self.found.size else 0


def draw_key(random_state: Seed, rows: int) -> int:
    """Return the key of draws of pilot rows: the same for all of them, so that larger draws contain
    smaller ones.

    `rows` is the fingerprint of all rows.
    """
    return RandomSource.of(random_state, "set aside", rows=rows).key


def smallest(hashes: Keys, most: int) -> Keys:
    """Return the `most` smallest numbers, in any order."""
    return hashes if hashes.size <= most else np.partition(hashes, most - 1)[:most]


def enough(most: int, n_rows: int) -> int:
    """Return a limit that draws at least `most` of `n_rows` rows, except with probability 1e-20,
    and not many more.
    """
    if most in (0, n_rows) or most > n_rows:
        return _WORD if most else 0
    return min(_WORD, int((most + 10.0 * most**0.5 + 50.0) / n_rows * 2.0**64))


def equal_step(n_rows: int, most: int | None) -> int:
    """The smallest step at which at most `most` of the rows are taken; 1 for all of them.

    >>> equal_step(10, None), equal_step(10, 10), equal_step(10, 4)
    (1, 1, 3)
    """
    return 1 if most is None else max(1, -(-n_rows // most))


def random_places(keys: Keys, source: RandomSource) -> NDArray[np.intp]:
    """Return the position of each row's key in a random order of the distinct keys."""
    return np.unique(source.hashes(keys), return_inverse=True)[1]


def folds_of(
    keys: Keys, source: RandomSource, n_folds: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return training rows and test rows of each fold; rows with equal keys are in the same fold."""
    fold = random_places(keys, source) % n_folds
    return [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in range(n_folds)]


def text_keys(values: Sequence[Any]) -> Keys:
    """A 64-bit number for each value that is not a number, computed from its repr.

    For objects whose repr is only a memory address, the type is used.
    """
    known: dict[str, bytes] = {}
    digests = []
    for value in values:
        text = value if isinstance(value, str) else repr(value)
        if text not in known:
            plain = type(value).__name__ if " at 0x" in text else text
            known[text] = hashlib.blake2b(
                plain.encode(errors="surrogatepass"), digest_size=8
            ).digest()
        digests.append(known[text])
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _cells_of(
    state: Keys, names: Sequence[Hashable], label: Any
) -> dict[tuple[Hashable, int], int] | None:
    """The number of rows of each label and row hash; None if there are many different ones."""
    cells: dict[tuple[Hashable, int], int] = {}
    for kind, name in enumerate(names):
        rest = state if label is None else state[np.asarray(label == kind)]
        while rest.size:
            if len(cells) == _MOST_CELLS:
                return None
            same = rest == rest[0]
            cells[name, int(rest[0])] = int(np.count_nonzero(same))
            rest = rest[~same]
    return cells


def _added(
    one: Mapping[tuple[Hashable, int], int] | None,
    other: Mapping[tuple[Hashable, int], int] | None,
) -> dict[tuple[Hashable, int], int] | None:
    """The sums of the counts of cells; None if there are many cells."""
    if one is None or other is None:
        return None
    total = dict(one)
    for cell, count in other.items():
        total[cell] = total.get(cell, 0) + count
    return total if len(total) <= _MOST_CELLS else None


def _row_numbers(columns: Sequence[NDArray[Any]], exact: bool) -> Keys:
    """A 64-bit number for each row, computed from the bits of its values."""
    state = shifted = np.empty(0, dtype=np.uint64)
    for column in columns:
        for values in column.T if column.ndim == 2 else [column]:
            bits = _bits(values, exact)
            if state.size:
                bits += state
            state = bits
            shifted = shifted if shifted.size else np.empty_like(state)
            _scrambled(state, shifted, FEWER_ROUNDS)
    return state


def _bits(values: NDArray[Any], exact: bool) -> Keys:
    """Each value as an integer, in a new array: all bits of a double if `exact`, otherwise rounded
    to 20 significant binary digits; a key as it is.

    Rounded scores hardly ever change with the last digits of a solver, which differ between
    processors.
    """
    if values.dtype == np.uint64:
        return values.copy()
    bits = np.asarray(np.add(values, 0.0, dtype=np.float64)).view(np.uint64)  # turns -0.0 into 0.0
    if not exact:
        bits += np.uint64(1 << (DROPPED_BITS - 1))
        bits >>= np.uint64(DROPPED_BITS)
    return bits


def mixed(values: Keys, plus: int = 0) -> Keys:
    """Scramble 64-bit numbers: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), a
    one-to-one map.

    `plus` is first added to the numbers, modulo 2**64.

    >>> mixed(np.arange(2, dtype=np.uint64))
    array([16294208416658607535, 10451216379200822465], dtype=uint64)
    """
    z: Keys = np.add(values, np.uint64((plus + GOLDEN) % 2**64))
    shifted = np.empty(min(len(z), _HASH_BLOCK), dtype=np.uint64)
    for start in range(0, len(z), _HASH_BLOCK):  # parts that fit in the processor's cache
        part = z[start : start + _HASH_BLOCK]
        _scrambled(part, shifted[: len(part)], ROUNDS)
    return z


def _scrambled(z: Keys, shifted: Keys, rounds: tuple[tuple[int, int], ...]) -> Keys:
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
    parts = [np.empty(0, dtype=np.intp)]
    near = np.uint64(
        limit | 2 ** (64 - ROUNDS[2][0]) - 1
    )  # the last round keeps as many leading bits as it shifts by
    products = np.arange(_HASH_BLOCK, dtype=np.uint64) * np.uint64(factor)
    z, shifted = np.empty((2, _HASH_BLOCK), dtype=np.uint64)
    for start in range(first - first % _HASH_BLOCK, first + n, _HASH_BLOCK):
        high = start % 2**64 ^ (start % 2**64 >> ROUNDS[0][0])
        np.add(products, np.uint64((high - high % _HASH_BLOCK) * factor % 2**64), out=z)
        hits = np.flatnonzero(_scrambled(z, shifted, ROUNDS[1:2]) <= near)
        parts.append((hits ^ high % _HASH_BLOCK) + (start - first))
    numbers = np.sort(np.concatenate(parts))
    numbers = numbers[(numbers >= 0) & (numbers < n)]
    return np.asarray(numbers[mixed(numbers.astype(np.uint64), plus) < np.uint64(limit)])
