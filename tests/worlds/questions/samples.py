"""Order statistics, draws, and keys of rows."""

from typing import Any

import numpy as np
import pyarrow as pa

from calibrant.params import random
from calibrant.params.arrays import repeated as found_twice
from calibrant.params.random import Draw, RandomSource, SmallestHashes
from calibrant.sample import row_keys
from calibrant.sample.order_statistics import (
    BitCounts,
    first_level,
    from_ordered_bits,
    ordered_bits,
)
from worlds.questions.base import (
    ATOMS,
    SMOOTH,
    TIED,
    Text,
    question,
    refused,
    tried,
)


@question
def order_statistics() -> Any:
    found = []
    for kind in (np.float64, np.float32, np.float16, np.int64):
        values = np.array([0.0, -0.0, 1.5, -2.25, 1e4, 3e-5]).astype(kind)
        bits = ordered_bits(values)
        found.append(
            [
                from_ordered_bits(bits),
                np.argsort(bits, kind="stable"),
                (bits >> np.uint64(11)).astype(float),
            ]
        )
    for scores in (SMOOTH.scores, TIED.scores - 0.5, ATOMS.scores * 1e30):
        ranks = np.array([1, 10, 700, 1500])
        level = first_level()
        values = None
        while values is None:
            first = BitCounts.of({None: scores[:900]}, {None: level})
            counts = first + BitCounts.of({None: scores[900:]}, {None: level})
            seen = counts.counts(None)
            beyond = refused(lambda level=level, seen=seen: level.refined(seen, np.array([1501])))
            level, values = level.refined(seen, ranks)
        found += [values, beyond]
    return found


@question
def draws() -> Any:
    source = RandomSource.of(3, "test")
    many = np.arange(3000, dtype=np.uint64)
    found: list[Any] = []
    for share in (0.0, 0.1, 0.5, 1.0):
        one = Draw.of_share(source.key, share)
        found += [
            one.chosen(many).sum(),
            one.chosen(many)[:40],
            (one.hashes(many[:9]) >> np.uint64(11)).astype(float),
        ]
    hashes = Draw.of_share(source.key, 0.5).hashes(many)
    for most in (1, 5, 2999, 3000, 5000):
        kept = random.smallest(hashes, most)
        found += [kept.size, (kept[:5] >> np.uint64(11)).astype(float), random.enough(most, 3000)]
    first = SmallestHashes(20, random.smallest(hashes[:1000], 20))
    second = SmallestHashes(20, random.smallest(hashes[1000:], 20))
    found += [float((first + second).limit >> 11), random.random_places(many[:30], source)]
    found += [random.folds_of(many[:23], source, 4), row_keys.position_keys(5, 4).astype(float)]
    found += [float(row_keys.partition_start(3)), found_twice(np.array([1, 2, 2, 3, 3, 3]))]
    return found


@question
def keys_of_ids() -> Any:
    columns = {
        "small": pa.array([1, 2, 300], pa.int16()),
        "large": pa.array([1, 2**63 + 5, 3], pa.uint64()),
        "negative": pa.array([-1, -5, 3], pa.int64()),
        "text": pa.array(["a", "bc", ""]),
        "long text": pa.array(["a" * 40, "b" * 7, "c" * 8], pa.large_string()),
        "bytes": pa.array([b"a", b"bc", b"\0"]),
        "day": pa.array([1, 2, 3], pa.date32()),
        "days in ms": pa.array([86_400_000, 0, 172_800_000], pa.date64()),
        "seconds": pa.array([1, 2, 3], pa.timestamp("s")),
        "nanoseconds": pa.array([10**9, 2, 3], pa.timestamp("ns", tz="UTC")),
        "real": pa.array([1.5, 2.0, 3.0]),
        "decimal": pa.array([1, 2, 3], pa.decimal128(20, 0)),
    }
    found = []
    for values in columns.values():
        keys = tried(lambda values=values: row_keys.id_keys(values, "id"))
        found.append(keys if isinstance(keys, Text) else (keys >> np.uint64(11)).astype(float))
        found.append(len(row_keys.key_kind(values.type) or ""))
    for values in (
        np.array([1.5, -0.0, 0.0, np.nan]),
        np.array(["a", "b"]),
        np.array([1, 2]),
        np.array([True]),
    ):
        keys = tried(lambda values=values: row_keys.value_keys(values))
        found.append(keys if isinstance(keys, Text) else (keys >> np.uint64(11)).astype(float))
    repeated = [np.array([1, 2], dtype=np.uint64), np.array([3, 1], dtype=np.uint64)]
    return [
        found,
        refused(lambda: row_keys.check_ids(repeated, "id")),
        refused(lambda: row_keys.check_ids(repeated[:1], "id")),
    ]
