"""Rows whose label is missing are skipped on request, counted, and never skipped silently."""

import json

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from calibrant import (
    BinningCalibrator,
    LabelShiftCalibrator,
    OnlineCalibrator,
    Partition,
    PlattCalibrator,
    ShiftCalibrator,
    audit,
    scored,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.sample.fingerprint import fingerprint
from calibrant.sample.reader import rows_of
from calibrant.tripod import ConformalSets
from read_marks import unmarked

duckdb = pytest.importorskip("duckdb")

ROWS = 3_000
SKIPPED = 417
RNG = np.random.default_rng(4)
MISSING = np.isin(np.arange(ROWS), RNG.choice(ROWS, SKIPPED, replace=False))
LABELS = (RNG.uniform(size=ROWS) < 0.4).astype(np.float64)
TABLE = pa.table(
    {
        "key": np.arange(ROWS),
        "p": np.where(MISSING & (np.arange(ROWS) % 2 == 0), np.nan, RNG.uniform(size=ROWS)),
        "y": pa.array(LABELS.astype(np.int64), mask=MISSING),
        "w": RNG.uniform(0.5, 2.0, ROWS),
        "g": RNG.choice(["north", "south"], ROWS),
    }
)

KEPT = TABLE.filter(pa.array(~MISSING))
NAMES = {"score": "p", "label": "y"}


def sources(folder):
    torch = pytest.importorskip("torch")
    pq.write_table(TABLE, folder / "rows.parquet", row_group_size=700)
    pyarrow.csv.write_csv(TABLE, folder / "rows.csv")
    nan = np.where(MISSING, np.nan, LABELS)
    return {
        "table": TABLE,
        "parquet": folder / "rows.parquet",
        "csv": folder / "rows.csv",
        "duckdb": duckdb.from_arrow(TABLE),
        "polars": pl.from_arrow(TABLE).lazy(),
        "pandas": TABLE.to_pandas(),
        "arrays": {
            "p": TABLE["p"].to_numpy(),
            "y": nan,
            "g": TABLE["g"].to_numpy(),
            "key": np.arange(ROWS),
        },
        "lists": {
            "p": TABLE["p"].to_numpy(),
            "y": TABLE["y"].to_pylist(),
            "g": TABLE["g"].to_pylist(),
        },
        "device": {"p": torch.tensor(TABLE["p"].to_numpy()), "y": torch.tensor(nan)},
    }


@pytest.mark.broad
@pytest.mark.parametrize("segment", [None, "g"])
@pytest.mark.parametrize(
    "settings", [{"n_bins": 5, "pilot": None}, {"n_bins": 5, "partition": "uniform"}]
)
def test_skipped_rows_leave_the_fit_of_the_others_and_are_counted(
    segment, settings, tmp_path
) -> None:
    expected = BinningCalibrator(**settings).fit(scored(KEPT, **NAMES, segment=segment))
    for name, source in sources(tmp_path).items():
        if segment is not None and name == "device":
            continue
        data = scored(source, **NAMES, segment=segment, skip_missing=True, progress=False)
        fitted = BinningCalibrator(**settings).fit(data)
        assert fitted.partition_ == expected.partition_, name
        assert fitted.tally_ == expected.tally_, name
        assert data.skipped_rows() == data.collect().skipped_rows() == SKIPPED, name
        assert f"{SKIPPED} rows without a label were skipped" in map(
            str, fitted.guarantee_.notes
        ), name
        assert "whether a row's label is missing does not depend on the label" in (
            fitted.guarantee_.details
        ), name
        with pytest.raises(ValueError, match="fix or remove these rows"):
            BinningCalibrator(**settings).fit(
                scored(source, **NAMES, segment=segment, progress=False)
            )


@pytest.mark.broad
def test_a_dask_frame_skips_the_same_rows() -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(TABLE.to_pandas(), npartitions=3)
    data = scored(frame, **NAMES, segment="g", skip_missing=True)
    calibrator = BinningCalibrator(5, pilot=None)
    assert calibrator.fit(data).tally_ == calibrator.fit(scored(KEPT, **NAMES, segment="g")).tally_
    assert data.skipped_rows() == SKIPPED


@pytest.mark.broad
@pytest.mark.parametrize("split", [0.3, 500, "auto"])
def test_a_split_by_id_draws_the_same_rows_of_those_that_are_kept(split, tmp_path) -> None:
    calibrator = BinningCalibrator(n_bins=5, pilot=split, random_state=2)
    expected = calibrator.fit(scored(KEPT, **NAMES, id="key")).tally_
    found = sources(tmp_path)
    for name in ("table", "parquet", "csv", "duckdb", "polars"):
        assert (
            calibrator.fit(scored(found[name], **NAMES, id="key", skip_missing=True)).tally_
            == expected
        ), name


@pytest.mark.parametrize(
    ("calibrator", "told"),
    [
        (BinningCalibrator(4), {}),
        (ScalingBinningCalibrator(n_bins=4), {}),
        (ShiftCalibrator(4), {"weight_bound": 2.0}),
        (LabelShiftCalibrator(4), {"target_prior": 0.3, "source_prior": 0.4}),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_guarantee_tells_of_skipped_rows_and_still_does_after_saving(
    calibrator, told
) -> None:
    weight = "w" if isinstance(calibrator, ShiftCalibrator) else None
    fitted = calibrator.fit(scored(TABLE, **NAMES, weight=weight, skip_missing=True), **told)
    assert f"{SKIPPED} rows without a label were skipped" in map(str, fitted.guarantee_.notes)
    again = type(calibrator).from_dict(json.loads(json.dumps(fitted.to_dict())))
    notes = [
        text for text in again.guarantee_.notes if not str(text).startswith("Read from a file")
    ]
    assert notes == list(fitted.guarantee_.notes)
    assert unmarked(again.guarantee_) == str(fitted.guarantee_)


def test_curves_fit_the_rows_that_are_kept_and_fingerprints_are_theirs() -> None:
    data = scored(TABLE, **NAMES, skip_missing=True)
    kept = scored(KEPT, **NAMES)
    assert PlattCalibrator().fit(data).to_dict() == PlattCalibrator().fit(kept).to_dict()
    assert fingerprint(rows_of(data)) == fingerprint(rows_of(kept))
    assert kept.skipped_rows() == 0


def test_applied_data_keep_all_their_rows() -> None:
    fitted = BinningCalibrator(4).fit(scored(KEPT, **NAMES))
    assert fitted.apply(scored(TABLE, **NAMES, skip_missing=True)).read_all().num_rows == ROWS


def test_faulty_rows_beside_skipped_ones_are_told_by_their_own_number(tmp_path) -> None:
    rows = pa.table({"p": [0.1, None, 0.3, None], "y": [None, None, 1, 0]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    with pytest.raises(
        ValueError, match="'p' must have no missing values; got 1 faulty row, row 4 of rows"
    ):
        BinningCalibrator(2).fit(scored(tmp_path / "rows.parquet", **NAMES, skip_missing=True))


def test_skipping_needs_a_label_and_a_bool() -> None:
    with pytest.raises(ValueError, match="label must name the column of labels"):
        scored(TABLE, score="p", skip_missing=True)
    with pytest.raises(TypeError, match="skip_missing must be True or False; got 'yes'"):
        scored(TABLE, **NAMES, skip_missing="yes")
    nothing = pa.table({"p": [0.1, 0.2], "y": pa.array([None, None], pa.int64())})
    with pytest.raises(ValueError, match="the data must have at least one row"):
        BinningCalibrator(2).fit(scored(nothing, **NAMES, skip_missing=True))


def test_sets_and_audits_state_what_skipping_assumes() -> None:
    data = scored(TABLE, **NAMES, skip_missing=True)
    sets = ConformalSets().fit(data)
    assert sets.guarantee_.n_skipped == SKIPPED
    assert (
        "whether a row's label is missing depends on neither its score nor its label"
        in sets.guarantee_.assumptions
    )
    assert (
        ConformalSets.from_dict(json.loads(json.dumps(sets.to_dict()))).guarantee_
        == sets.guarantee_
    )
    assert "missing" not in str(ConformalSets().fit(scored(KEPT, **NAMES)).guarantee_.assumptions)
    report = audit(data)
    assert report.n_skipped == SKIPPED
    assert f"{SKIPPED} rows without a label were skipped" in report.details
    assert any("label is missing" in text for text in report.assumptions)


def test_a_stream_counts_the_labels_that_have_come() -> None:
    partition = Partition.fixed_width(4)
    found = OnlineCalibrator(partition=partition).partial_fit(
        scored(TABLE, **NAMES, skip_missing=True)
    )
    assert (
        found.tally_
        == OnlineCalibrator(partition=partition).partial_fit(scored(KEPT, **NAMES)).tally_
    )


@pytest.mark.parametrize(
    "y", [[0, 1, None], [0.0, 1.0, np.nan], pl.Series([0, 1, None])], ids=["list", "nan", "null"]
)
def test_the_error_for_a_missing_label_in_memory_names_the_remedy(y) -> None:
    with pytest.raises(
        ValueError, match=r"skip those without a label with scored\(\.\.\., skip_missing=True\)"
    ):
        BinningCalibrator(1).fit([0.1, 0.2, 0.3], y)
    data = scored({"p": [0.1, 0.2, 0.3], "y": y}, **NAMES, skip_missing=True)
    assert BinningCalibrator(1).fit(data).tally_.counts.tolist() == [2]
