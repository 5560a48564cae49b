"""Rows without a label are refused, or skipped on request and counted wherever they matter."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.conftest import write_csv

COLUMNS = ("--score", "p", "--label", "y")
SKIPPED = 417
NOTE = f"{SKIPPED} rows without a label were skipped"


@pytest.fixture
def pending(folder: Path, table: pa.Table) -> pa.Table:
    """The scores, with labels missing in some rows; and the others alone."""
    missing = np.isin(
        np.arange(table.num_rows), np.random.default_rng(5).choice(table.num_rows, SKIPPED, False)
    )
    labels = pa.array(table["y"].to_numpy(), mask=missing)
    rows = table.set_column(table.schema.names.index("y"), "y", labels)
    pq.write_table(rows, folder / "pending.parquet", row_group_size=900)
    write_csv(rows, folder / "pending.csv")
    pq.write_table(rows.filter(pa.array(~missing)), folder / "kept.parquet")
    return rows


@pytest.mark.parametrize("command", ["fit", "audit", "compare"])
@pytest.mark.parametrize("source", ["pending.csv", "pending.parquet"])
def test_a_missing_label_is_an_error_that_names_the_option(
    command: str, source: str, pending: pa.Table, calibrant: Any
) -> None:
    answer = calibrant(command, source, *COLUMNS)
    assert answer.code == 2
    assert f"label column 'y' must have no missing values; got {SKIPPED} faulty rows" in answer.err
    assert (
        "or skip those without a label with --skip-missing; calibrant never drops rows silently"
        in answer.err
    )


@pytest.mark.broad
@pytest.mark.parametrize("source", ["pending.csv", "pending.parquet"])
@pytest.mark.parametrize("method", ["binning", "platt"])
def test_fit_skips_counts_and_tells(
    source: str, method: str, folder: Path, pending: pa.Table, calibrant: Any
) -> None:
    fit = (
        *COLUMNS,
        "--id",
        "id",
        "--method",
        method,
    )  # rows drawn by position would be others in another file
    kept = calibrant("fit", "kept.parquet", *fit, "--json").json
    answer = calibrant("fit", source, *fit, "--skip-missing", "--json").json
    assert (answer["rows"], answer["skipped_rows"]) == (pending.num_rows - SKIPPED, SKIPPED)
    assert answer["fingerprint"] == kept["fingerprint"]
    assert answer["guarantee"]["regions"] == kept["guarantee"]["regions"]
    assert kept["skipped_rows"] == 0
    assert NOTE in (*answer["notes"], *answer["guarantee"]["notes"])
    for quiet in ((), ("--quiet",)):
        told = calibrant("fit", source, *fit, "--skip-missing", *quiet)
        assert told.out.count(f"note: {NOTE}") == 1


@pytest.mark.broad
def test_audit_tells_in_text_json_and_report(
    folder: Path, pending: pa.Table, calibrant: Any
) -> None:
    kept = calibrant("audit", "kept.parquet", *COLUMNS, "--json").json
    answer = calibrant("audit", "pending.csv", *COLUMNS, "--skip-missing", "--json").json
    assert (answer["n_rows"], answer["n_skipped"]) == (kept["n_rows"], SKIPPED)
    assert (answer["lower_bound"], answer["findings"]) == (kept["lower_bound"], kept["findings"])
    assert any(
        "whether a row's label is missing does not depend on the label" in text
        for text in answer["assumptions"]
    )
    assert not any("missing" in text for text in kept["assumptions"])
    told = calibrant("audit", "pending.csv", *COLUMNS, "--skip-missing", "-o", "audit.html")
    assert NOTE in told.out
    assert f"{SKIPPED} rows without a label" in (folder / "audit.html").read_text()


@pytest.mark.broad
def test_compare_tells(pending: pa.Table, calibrant: Any) -> None:
    answer = calibrant("compare", "pending.parquet", *COLUMNS, "--skip-missing", "--json").json
    assert (answer["n_in_data"], answer["n_skipped"]) == (pending.num_rows - SKIPPED, SKIPPED)
    assert answer["n_rows"] + answer["n_fitted"] == answer["n_in_data"]
    told = calibrant("compare", "pending.csv", *COLUMNS, "--skip-missing", "--most-rows", "500")
    assert NOTE in told.out


@pytest.mark.broad
def test_verify_skips_as_fit_did(folder: Path, pending: pa.Table, calibrant: Any) -> None:
    assert (
        calibrant(
            "fit", "pending.csv", *COLUMNS, "--bins", "5", "--skip-missing", "-o", "m.json"
        ).code
        == 0
    )
    answer = calibrant("verify", "m.json", "pending.parquet", "--json")
    assert answer.code == 0
    assert NOTE in answer.json["notes"]
    assert calibrant("fit", "kept.parquet", *COLUMNS, "--bins", "5", "-o", "kept.json").code == 0
    refused = calibrant("verify", "kept.json", "pending.parquet")
    assert refused.code == 2
    assert "--skip-missing" in refused.err
    other = calibrant("verify", "kept.json", "pending.parquet", "--skip-missing")
    assert other.code == 3  # its rows are at other positions there
    assert "these are its rows, but in a different order" in " ".join(other.out.split())
