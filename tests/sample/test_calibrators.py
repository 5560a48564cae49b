"""Every calibrator takes `scored(...)` data, and gives what it gives for the same rows as arrays."""

from decimal import Decimal
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant
from calibrant import (
    PlattCalibrator,
    ShiftCalibrator,
    calibrators,
    compare_calibrators,
    metrics,
    scored,
    tripod,
)
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.reader import read_rows, rows_of

RNG = np.random.default_rng(5)
ROWS = 600
SCORES = RNG.uniform(0.01, 0.99, size=ROWS)
LABELS = (RNG.uniform(size=ROWS) < SCORES).astype(int)
TABLE = {"p": SCORES, "y": LABELS, "w": RNG.uniform(0.5, 2.0, size=ROWS)}
BESIDE = {
    "LabelShiftCalibrator": {"target_scores": SCORES[::2]},
}
PARAMETERS = {
    "OnlineCalibrator": {"partition": calibrant.Partition.fixed_width(5)},
    "ShiftCalibrator": {"interval": "empirical-bernstein", "weight_bound": 2.0},
}


def numbers_of(calibrator: object) -> list[float]:
    return np.asarray(calibrator.predict(SCORES[:50])).tolist()  # type: ignore[attr-defined]


def learned(calibrator: object) -> dict[str, object]:
    """All that is saved, without the identity that every stream has of its own."""
    saved = calibrator.to_dict()  # type: ignore[attr-defined]
    saved.get("state", {}).pop("identity", None)
    return saved


@pytest.mark.parametrize("name", [*calibrators.__all__, "OnlineCalibrator", "ConformalSets"])
def test_a_calibrator_takes_scored_data(name) -> None:
    made = getattr(tripod if name == "ConformalSets" else calibrant, name, None) or getattr(
        calibrators, name
    )
    near = made(**PARAMETERS.get(name, {}))
    far = made(**PARAMETERS.get(name, {}))
    beside = BESIDE.get(name, {})
    weight = "w" if made is ShiftCalibrator else None
    learn = "fit" if hasattr(made, "fit") else "partial_fit"
    data = scored(pa.table(TABLE), score="p", label="y", weight=weight, progress=False)
    weights = {} if weight is None else {"importance_weight": TABLE["w"]}
    getattr(near, learn)(SCORES, LABELS, **beside, **weights)
    getattr(far, learn)(data, **beside)
    assert far.classes_.tolist() == near.classes_.tolist()
    if name == "ConformalSets":
        assert far.predict_set(SCORES).tolist() == near.predict_set(SCORES).tolist()
    else:
        assert numbers_of(far) == numbers_of(near)
    assert learned(far) == learned(near)
    with pytest.raises(InvalidTypeError, match="y must be None with scored data"):
        getattr(far, learn)(data, LABELS, **beside)
    assert signature(getattr(made, learn)).parameters["y"].default is None


def test_rows_in_memory_come_in_the_order_of_the_files(tmp_path) -> None:
    for number, start in enumerate(range(0, ROWS, 200)):
        part = {name: values[start : start + 200] for name, values in TABLE.items()}
        pd.DataFrame(part).to_csv(tmp_path / f"part-{number}.csv", index=False)
    rows = scored(str(tmp_path), score="p", label="y", weight="w").collect()
    assert rows_of(rows).scores.tolist() == SCORES.tolist()
    assert rows_of(rows).labels.tolist() == LABELS.tolist()
    assert rows_of(rows).weights.tolist() == TABLE["w"].tolist()


def test_segments_and_classes_are_collected() -> None:
    groups = np.where(SCORES < 0.3, "b", "a")
    table = pa.table({"p": SCORES, "y": np.where(LABELS == 1, "yes", "no"), "g": groups})
    rows = read_rows(scored(table, score="p", label="y", segment="g"), pos_label="no").collect()
    assert rows.segments.tolist() == groups.tolist()
    assert rows.codes.tolist() == (1 - LABELS).tolist()
    again = rows.with_classes(pos_label="yes")
    assert again.codes.tolist() == LABELS.tolist()
    assert again.labels.tolist() == rows.labels.tolist()


def test_more_rows_than_the_limit_are_refused_and_the_limit_is_named() -> None:
    data = scored(pa.table(TABLE), score="p", label="y", progress=False)
    with pytest.raises(InvalidValueError, match=r"at most 599 rows .* BinningCalibrator.*limit"):
        data.collect(limit=599)
    assert PlattCalibrator().fit(data.collect(limit=ROWS)).predict([0.5]) == PlattCalibrator().fit(
        data
    ).predict([0.5])


def test_scored_data_hold_everything() -> None:
    data = scored(pa.table(TABLE), score="p", label="y", progress=False)
    with pytest.raises(
        TypeError, match=r"y must be None with scored data: name its column in scored"
    ):
        PlattCalibrator().fit(data, LABELS)


@pytest.mark.broad
def test_metrics_and_comparisons_take_scored_data() -> None:
    data = scored(pa.table(TABLE), score="p", label="y", progress=False)
    assert metrics.ece(data, None) == metrics.ece(LABELS, SCORES)
    near = compare_calibrators(LABELS, SCORES, [PlattCalibrator()])
    far = compare_calibrators(data, calibrators=[PlattCalibrator()])
    assert far.log_loss.tolist() == near.log_loss.tolist()


DECIMALS = [Decimal(label) for label in LABELS.tolist()]


@pytest.mark.parametrize(
    "labels",
    [
        DECIMALS,
        np.array(DECIMALS, dtype=object),
        pa.array(DECIMALS),
        pd.Series(DECIMALS),
        pl.Series(DECIMALS),
    ],
    ids=["list", "numpy", "pyarrow", "pandas", "polars"],
)
def test_decimal_labels_are_numbers(labels) -> None:
    assert read_rows(SCORES, labels).collect().codes.tolist() == LABELS.tolist()


def test_decimal_labels_of_files_and_tables_are_numbers(tmp_path) -> None:
    table = pa.table({"p": SCORES, "y": pa.array(DECIMALS, pa.decimal128(10, 2))})
    calibrant_rows = scored(table, score="p", label="y").collect()
    assert rows_of(calibrant_rows).codes.tolist() == LABELS.tolist()
    assert rows_of(calibrant_rows).known.labels.tolist() == [0, 1]
    import pyarrow.parquet as pq

    pq.write_table(table, tmp_path / "rows.parquet")
    assert (
        rows_of(scored(tmp_path / "rows.parquet", score="p", label="y").collect()).codes.tolist()
        == LABELS.tolist()
    )
