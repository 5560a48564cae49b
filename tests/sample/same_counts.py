"""Rows for tests of engines, and what any engine must give for them: what comes of the same rows in
memory.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from calibrant import BinningCalibrator, Calibrator, Partition, Sample, scored
from calibrant.errors import InvalidValueError
from calibrant.sample.batch import Columns
from calibrant.sample.reader import rows_of

PARTS = {"score": "p", "label": "y", "segment": "g", "weight": "w", "id": "key"}
PLAIN = Columns("p", "y")
EDGES = Partition.from_edges(np.arange(1, 100) / 100, score_range=(0.0, 1.0))

Make = Callable[[pd.DataFrame, Columns], Sample]


def made_rows(
    n: int, seed: int = 0, *, single: bool = False, texts: bool = False, ties: bool = False
) -> pd.DataFrame:
    """Rows with scores (single precision, or many of them equal), labels (0 and 1, or text),
    segments, weights, ids.
    """
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n)
    labels = (rng.uniform(size=n) < scores).astype(np.int64)
    scores = np.round(scores, 2) if ties else scores
    return pd.DataFrame(
        {
            "p": scores.astype(np.float32 if single else np.float64),
            "y": np.where(labels == 1, "yes", "no") if texts else labels,
            "g": rng.choice(["north", "south", "it's \\ `odd`"], size=n, p=[0.6, 0.3, 0.1]),
            "w": rng.exponential(size=n),
            "key": [f"row {number}" for number in range(n)],
        }
    )


def check_given_edges(make: Make, rows: pd.DataFrame) -> None:
    """One pass over given edges."""
    expected = BinningCalibrator(partition=EDGES).fit(rows["p"].to_numpy(), rows["y"].to_numpy())
    assert BinningCalibrator(partition=EDGES).fit(make(rows, PLAIN)).tally_ == expected.tally_


def check_counts(make: Make, rows: pd.DataFrame) -> None:
    """Given edges, quantiles of the rows themselves, segments: integers identical to those in
    memory.
    """
    positive = "yes" if rows["y"].iloc[0] in ("yes", "no") else None
    scores, labels, groups = (rows[name].to_numpy() for name in ("p", "y", "g"))
    for settings in (
        {"partition": EDGES},
        {"n_bins": 10, "pilot": None},
        {"n_bins": 10, "partition": "uniform"},
    ):
        calibrator = BinningCalibrator(**settings, pos_label=positive)
        expected = calibrator.fit(scores, labels)
        got = BinningCalibrator(**settings, pos_label=positive).fit(make(rows, PLAIN))
        assert got.partition_ == expected.partition_
        assert got.tally_ == expected.tally_
        assert got.classes_.tolist() == expected.classes_.tolist()
    for kept in (None, sorted(set(groups))[:1]):
        calibrator = BinningCalibrator(n_bins=5, pilot=None, segment_rule=kept, pos_label=positive)
        expected = clone(calibrator).fit(scores, labels, segments=groups)
        got = calibrator.fit(make(rows, Columns("p", "y", "g")))
        assert got.partition_ == expected.partition_
        assert got.tally_ == expected.tally_


def check_draws_and_weights(make: Make, rows: pd.DataFrame) -> None:
    """A split by id, weights and order statistics: identical to those of the same rows as one
    table.
    """
    columns = Columns(**PARTS)
    table = scored(pa.Table.from_pandas(rows, preserve_index=False), **PARTS, progress=False)
    data = make(rows, columns)
    for split, min_rows in ((0.3, "auto"), ("auto", "auto"), (0.3, 500), ("auto", None)):
        settings: dict[str, Any] = {
            "n_bins": 8,
            "pilot": split,
            "random_state": 5,
            "segment_rule": min_rows,
        }
        expected, got = (BinningCalibrator(**settings).fit(source) for source in (table, data))
        assert got.partition_ == expected.partition_
        assert got.tally_ == expected.tally_
        assert 0 < got.tally_.counts.sum() < len(rows)
    partition = Partition.by_segment(dict.fromkeys(rows["g"].unique(), EDGES))
    tally = data.tally(partition, weighted=True)[0]
    assert tally == rows_of(table).tally(partition, weighted=True)[0]
    assert tally.weights is not None
    ordered = np.sort(rows["p"].to_numpy(dtype=np.float64))
    ranks = np.array([1, 2, len(rows) // 2, len(rows)])
    found = make(rows, PLAIN).order_statistics({None: ranks})
    assert found[None].tolist() == ordered[ranks - 1].tolist()


def check_curve(make: Make, rows: pd.DataFrame) -> None:
    """A curve, fitted where the rows are, is the one fitted to the same rows as one table."""
    parts = {"score": "p", "label": "y", "segment": "g", "id": "key"}
    table = scored(pa.Table.from_pandas(rows, preserve_index=False), **parts, progress=False)
    scores = np.linspace(0.0, 1.0, 50)
    segments = rows["g"].to_numpy()[:50]
    expected, got = (
        Calibrator(n_bins=3).fit(data) for data in (table, make(rows, Columns(**parts)))
    )
    assert got.partition_ == expected.partition_
    assert got.tally_ == expected.tally_
    assert got.curve_ == expected.curve_
    assert np.array_equal(
        got.predict(scores, segments=segments), expected.predict(scores, segments=segments)
    )


def check_groups(make: Make, rows: pd.DataFrame) -> None:
    """Groups that every partition has rows of are drawn and counted whole: identical to the same
    rows as one table.
    """
    rng = np.random.default_rng(len(rows))
    number = rng.integers(0, len(rows) // 8, size=len(rows))
    for column in (number, [f"customer {one}" for one in number]):
        grouped = rows.assign(customer=column)
        columns = Columns("p", "y", group="customer")
        table = scored(
            pa.Table.from_pandas(grouped, preserve_index=False),
            score="p",
            label="y",
            group="customer",
        )
        data = make(grouped, columns)
        tally = data.tally(EDGES)[0]
        assert tally == rows_of(table).tally(EDGES)[0]
        assert tally.groups.n_groups == len(set(number))
        expected, got = (BinningCalibrator(4).fit(source) for source in (table, data))
        assert got.partition_ == expected.partition_
        assert got.tally_ == expected.tally_
        assert got.guarantee_.epsilon == expected.guarantee_.epsilon
    grouped.loc[3, "customer"] = None
    with pytest.raises(
        InvalidValueError,
        match="group column 'customer' must have no missing values; got 1 faulty row",
    ):
        make(grouped, columns).tally(EDGES)


FAULTS = {
    "a missing score": ("p", None, "column 'p' must"),
    "a score that is no number": ("p", np.nan, "column 'p' must"),
    "an infinite score": ("p", np.inf, "no infinity"),
    "a score out of range": ("p", 1.5, "lie between 0 and 1"),
    "a missing label": ("y", None, "column 'y' must have no missing"),
    "an unknown segment": ("g", "west", "not 'west'"),
}


def check_fault(make: Make, rows: pd.DataFrame, fault: str) -> None:
    """A faulty row is refused with its column, its rule and its partition."""
    column, value, said = FAULTS[fault]
    known = list(rows["g"].unique())
    bad = rows.astype({"y": "float64"}) if column == "y" else rows.copy()
    bad.loc[len(bad) // 2, column] = value
    partition = Partition.by_segment(dict.fromkeys(known, EDGES))
    with pytest.raises(
        InvalidValueError, match=r"got 1 faulty row, row index [\d,]+ of partition \d"
    ) as caught:
        make(bad, Columns("p", "y", "g")).tally(partition)
    assert said in str(caught.value)


def check_third_label(make: Make, rows: pd.DataFrame) -> None:
    """A third label is refused by name."""
    bad = rows.copy()
    bad.loc[7, "y"] = 2
    with pytest.raises(InvalidValueError, match="two classes; got 3: 0, 1, 2"):
        make(bad, PLAIN).tally(EDGES)


def check_applied(make: Make, collect: Callable[[Any], pd.DataFrame], rows: pd.DataFrame) -> None:
    """Columns are added as in memory; null where the score or the segment is refused."""
    calibrator = BinningCalibrator(
        partition=Partition.by_segment(dict.fromkeys(rows["g"].unique(), EDGES))
    )
    calibrator.fit(rows["p"].to_numpy(), rows["y"].to_numpy(), segments=rows["g"].to_numpy())
    odd = pd.concat(
        [rows, rows.iloc[:4].assign(key=["nan", "inf", "far", "west"], y=[0, 1, 0, 1])],
        ignore_index=True,
    )
    odd.loc[len(rows) :, "p"] = np.array([np.nan, np.inf, 1.5, 0.5], dtype=rows["p"].dtype)
    odd.loc[len(rows) + 3, "g"] = "west"
    table = scored(
        pa.Table.from_pandas(odd, preserve_index=False), score="p", segment="g", progress=False
    )
    expected = calibrator.apply(table).read_all().to_pandas().set_index("key").sort_index()
    got = (
        collect(calibrator.apply(make(odd, Columns("p", segment="g"))))
        .set_index("key")
        .sort_index()
    )
    assert list(got.columns) == list(expected.columns)
    added = [name for name in got.columns if name not in rows.columns]
    assert got[added].isna().sum().tolist() == [4] * len(added)
    for name in added:
        assert got[name].dropna().tolist() == expected[name].dropna().tolist()
    taken = added[0]
    with pytest.raises(
        InvalidValueError, match=f"column '{taken}' must not be in the data already"
    ):
        calibrator.apply(make(odd.assign(**{taken: 0.0}), Columns("p", segment="g")))
