"""What apply writes: the calibrator's columns, and everything else as it was."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import load_model
from calibrant.cli._writer import csv_bytes, json_bytes

ADDED = ["calibrated", "lower", "upper", "set"]


def read_csv(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def expected_rows(model: Path, table: pa.Table) -> list[tuple[float, float, float]]:
    calibrator = load_model(model).calibrator
    scores = table["p"].to_numpy()
    return [
        (value, *limits)
        for value, limits in zip(
            calibrator.predict(scores).tolist(),
            calibrator.predict_interval(scores).tolist(),
            strict=True,
        )
    ]


def test_csv_to_csv_keeps_every_text(
    model: Path, folder: Path, table: pa.Table, calibrant: Any
) -> None:
    text = (
        (folder / "scores.csv")
        .read_text()
        .replace("r000000,0.", "r000000,0000.")
        .replace("r000001,", "r000001,+", 1)
    )
    (folder / "odd.csv").write_text(text)
    answer = calibrant("apply", "model.json", "odd.csv", "-o", "out.csv", "--json")
    assert answer.code == 0, answer.err
    before = read_csv(folder / "odd.csv")
    after = read_csv(folder / "out.csv")
    assert [{name: row[name] for name in row if name not in ADDED} for row in after] == before
    assert list(after[0]) == [*before[0], *ADDED]
    found = [(float(row["calibrated"]), float(row["lower"]), float(row["upper"])) for row in after]
    assert found == expected_rows(model, table)
    assert answer.json["rows"] == len(after) == table.num_rows


def test_csv_quotes_only_what_needs_them(model: Path, folder: Path, calibrant: Any) -> None:
    (folder / "new.csv").write_text('a,p,"b,c"\n007,0.50,"x, ""y"""\n1.10,0.2,\n')
    head, line, *_ = calibrant("apply", "model.json", "new.csv", "-o", "-", "-q").out.splitlines()
    assert head == 'a,p,"b,c",calibrated,lower,upper,set'
    assert line.startswith('007,0.50,"x, ""y""",0.')


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_the_delimiter_of_the_input_is_kept(
    delimiter: str, model: Path, folder: Path, calibrant: Any
) -> None:
    content = "p;note\n0.5;a,b\n".replace(";", delimiter)
    (folder / "new.csv").write_text(content)
    assert calibrant("apply", "model.json", "new.csv", "-o", "out.csv").code == 0
    assert read_csv(folder / "out.csv", delimiter)[0]["note"] == "a,b"
    assert calibrant("apply", "model.json", "new.csv", "-o", "out.tsv").code == 0
    assert read_csv(folder / "out.tsv", "\t")[0]["note"] == "a,b"


@pytest.mark.broad
@pytest.mark.parametrize("source", ["scores.csv", "scores.parquet"])
@pytest.mark.parametrize(
    "output", ["out.parquet", "out.csv", "out.csv.gz", "out.tsv", "out.jsonl", "out.arrow"]
)
def test_every_format_holds_the_same(
    source: str, output: str, model: Path, folder: Path, table: pa.Table, calibrant: Any
) -> None:
    answer = calibrant("apply", "model.json", source, "-o", output)
    assert answer.code == 0, answer.err
    path = folder / output
    if output.endswith(".parquet"):
        found = pq.read_table(path).to_pylist()
    elif output.endswith(".arrow"):
        found = feather.read_table(str(path)).to_pylist()
    elif output.endswith(".jsonl"):
        found = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        raw = gzip.decompress(path.read_bytes()) if output.endswith(".gz") else path.read_bytes()
        found = list(
            csv.DictReader(
                io.StringIO(raw.decode(), newline=""), delimiter="\t" if ".tsv" in output else ","
            )
        )
    assert [tuple(float(row[name]) for name in ADDED[:3]) for row in found] == expected_rows(
        model, table
    )
    assert [row["note"] or "" for row in found] == table["note"].to_pylist()
    assert [row["id"] for row in found] == table["id"].to_pylist()
    assert {row["set"] for row in found} <= {"{0}", "{1}", "{0, 1}"}
    assert sorted(entry.name for entry in folder.iterdir()) == sorted(
        ["model.json", output, "scores.csv", "scores.parquet"]
    )


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_refused_rows_are_left_empty_and_counted(output: str, folder: Path, calibrant: Any) -> None:
    fit = (
        "--score",
        "p",
        "--label",
        "y",
        "--segment",
        "region",
        "--method",
        "uniform",
        "--bins",
        "3",
        "-o",
        "m.json",
    )
    assert calibrant("fit", "scores.csv", *fit).code == 0
    rows = "p,region\n0.5,north\n,north\nNaN,south\n1.4,south\n0.5,east\n0.5,\n 0.25 ,south\n"
    (folder / "new.csv").write_text(rows)
    answer = calibrant("apply", "m.json", "new.csv", "-o", output, "--json")
    assert answer.code == 0, answer.err
    assert answer.json["rows"] == 7
    assert answer.json["refused"] == 5
    if output == "out.csv":
        found = [row["calibrated"] for row in read_csv(folder / output)]
    else:
        found = [value or "" for value in pq.read_table(folder / output)["calibrated"].to_pylist()]
    assert [value == "" for value in found] == [False, True, True, True, True, True, False]
    told = calibrant("apply", "m.json", "new.csv", "-o", output, "--overwrite")
    assert "5 of 7 rows" in told.err
    assert calibrant("apply", "m.json", "new.csv", "-o", output, "--overwrite", "-q").err == ""


def test_numbers_as_groups_are_known_from_text_too(
    folder: Path, table: pa.Table, calibrant: Any
) -> None:
    """The model's groups are numbers; one stray word must not turn all of them into unknown text."""
    zones = pa.array([1, 2] * (table.num_rows // 2))
    pq.write_table(table.append_column("zone", zones), folder / "zones.parquet")
    fit = ("--score", "p", "--label", "y", "--segment", "zone", "--bins", "3", "-o", "m.json")
    assert calibrant("fit", "zones.parquet", *fit).code == 0
    (folder / "new.csv").write_text("p,zone\n0.5,1\n0.5,02\n")
    answer = calibrant("apply", "m.json", "new.csv", "-o", "out.csv", "--json")
    assert answer.json["refused"] == 0
    assert [row["zone"] for row in read_csv(folder / "out.csv")] == ["1", "02"]
    (folder / "word.csv").write_text("p,zone\n0.5,1\n0.5,two\n")
    refused = calibrant("apply", "m.json", "word.csv", "-o", "word-out.csv")
    assert refused.code == 2
    assert "'two'" in refused.err


def test_files_with_columns_in_another_order_leave_in_that_of_the_first(
    model: Path, folder: Path, calibrant: Any
) -> None:
    (folder / "days").mkdir()
    (folder / "days" / "a.csv").write_text("p,code\n0.5,007\n<NA>,1.10\n")
    (folder / "days" / "b.csv").write_text("code,p\n008,0.5\n")
    answer = calibrant("apply", "model.json", "days", "-o", "out.csv", "--json")
    assert answer.json["refused"] == 1, answer.err
    rows = read_csv(folder / "out.csv")
    assert [(row["p"], row["code"]) for row in rows] == [
        ("0.5", "007"),
        ("<NA>", "1.10"),
        ("0.5", "008"),
    ]
    assert rows[0]["calibrated"] == rows[2]["calibrated"] != rows[1]["calibrated"] == ""


def test_other_names_and_prefixes(model: Path, folder: Path, calibrant: Any) -> None:
    (folder / "new.csv").write_text("q,calibrated\n0.5,1\n")
    answer = calibrant(
        "apply", "model.json", "new.csv", "--score", "q", "--prefix", "v2_", "-o", "-"
    )
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[0] == "q,calibrated,v2_calibrated,v2_lower,v2_upper,v2_set"


def test_an_empty_line_of_a_single_column_is_a_row(
    model: Path, folder: Path, calibrant: Any
) -> None:
    (folder / "new.csv").write_text("p\n0.5\n\n0.7\n")
    answer = calibrant("apply", "model.json", "new.csv", "-o", "out.csv", "--json")
    assert (answer.json["rows"], answer.json["refused"]) == (3, 1)


def test_no_rows_are_no_fault(model: Path, folder: Path, calibrant: Any) -> None:
    (folder / "new.csv").write_text("p\n")
    for output in ("out.csv", "out.parquet", "out.jsonl"):
        answer = calibrant("apply", "model.json", "new.csv", "-o", output, "--json")
        assert answer.code == 0, answer.err
        assert answer.json["rows"] == 0


def test_files_with_columns_in_another_order(
    model: Path, folder: Path, table: pa.Table, calibrant: Any
) -> None:
    (folder / "days").mkdir()
    pq.write_table(table.slice(0, 2000), folder / "days" / "1.parquet")
    pq.write_table(
        table.slice(2000).select(["note", "p", "y", "id", "w", "region"]),
        folder / "days" / "2.parquet",
    )
    assert calibrant("apply", "model.json", "days", "-o", "out.parquet").code == 0
    found = pq.read_table(folder / "out.parquet")
    assert found.select(table.column_names).equals(table)


def test_overwriting_replaces_the_file(model: Path, folder: Path, calibrant: Any) -> None:
    (folder / "out.csv").write_text("old")
    (folder / "out.csv").chmod(0o640)
    assert calibrant("apply", "model.json", "scores.csv", "-o", "out.csv", "--overwrite").code == 0
    assert len(read_csv(folder / "out.csv")) == 4000
    assert (folder / "out.csv").stat().st_mode & 0o777 == 0o640


def test_the_model_may_come_from_standard_input(model: Path, folder: Path, calibrant: Any) -> None:
    answer = calibrant("apply", "-", "scores.csv", "-o", "-", stdin=model.read_bytes())
    assert answer.code == 0, answer.err
    assert len(answer.out.splitlines()) > 4000
    assert calibrant("apply", "-", "-", "-o", "-", stdin=model.read_bytes()).code == 2


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)


@pytest.mark.broad
@given(
    st.lists(
        st.tuples(TEXTS, st.floats(allow_nan=False), st.none() | st.integers(-5, 5)),
        min_size=1,
        max_size=20,
    )
)
@settings(max_examples=min(60, settings.default.max_examples))
def test_csv_lines_read_back_as_they_were(rows: list[tuple[str, float, int | None]]) -> None:
    texts, numbers, integers = map(list, zip(*rows, strict=True))
    batch = pa.RecordBatch.from_arrays(
        [pa.array(texts), pa.array(numbers, pa.float64()), pa.array(integers, pa.int64())],
        names=["a", "b", "c"],
    )
    for piece in (batch, batch.slice(1)):
        written = bytes(csv_bytes(piece, ","))
        found = list(csv.reader(io.StringIO(written.decode(), newline="")))
        assert [row[0] for row in found] == piece.column(0).to_pylist()
        assert [float(row[1]) for row in found] == piece.column(1).to_pylist()
        assert [None if row[2] == "" else int(row[2]) for row in found] == piece.column(
            2
        ).to_pylist()
        objects = [json.loads(line) for line in bytes(json_bytes(piece)).decode().split("\n")[:-1]]
        for name in ("a", "c"):
            assert [entry[name] for entry in objects] == piece.column(name).to_pylist()
        finite = [value if np.isfinite(value) else None for value in piece.column("b").to_pylist()]
        assert [entry["b"] for entry in objects] == finite
        assert all(
            value is None or isinstance(value, float) for value in (entry["b"] for entry in objects)
        )


def test_json_of_every_kind_of_column() -> None:
    columns = {
        "text": ["a", None],
        "kind": pa.array(["x", "y"]).dictionary_encode(),
        "bytes": [b"q", None],
        "truth": [True, None],
        "list": [[1, 2], None],
        "day": pa.array([0, 1], pa.date32()),
        "single": pa.array([0.5, 2.0], pa.float32()),
    }
    batch = pa.table(columns).to_batches()[0]
    first, second = (json.loads(line) for line in bytes(json_bytes(batch)).decode().splitlines())
    assert first == {
        "text": "a",
        "kind": "x",
        "bytes": "q",
        "truth": True,
        "list": [1, 2],
        "day": "1970-01-01",
        "single": 0.5,
    }
    assert second["single"] == 2.0
    assert [second[name] for name in ("text", "bytes", "truth", "list")] == [None] * 4


def test_scores_of_32_bits(model: Path, folder: Path, table: pa.Table, calibrant: Any) -> None:
    narrow = pa.table({"p": table["p"].to_numpy().astype(np.float32)})
    pq.write_table(narrow, folder / "narrow.parquet")
    assert calibrant("apply", "model.json", "narrow.parquet", "-o", "out.parquet").code == 0
    found = pq.read_table(folder / "out.parquet")["calibrated"].to_numpy()
    expected = load_model(model).calibrator.predict(narrow["p"].to_numpy())
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("source", ["new.csv", "new.parquet"])
@pytest.mark.parametrize("output", ["out.csv", "-"])
def test_scores_of_another_scale_are_refused_unless_allowed(
    source: str, output: str, model: Path, folder: Path, calibrant: Any
) -> None:
    rows = pa.table({"p": [0.2, 39.0, None, -0.4, 1.4, 71.5]})
    pq.write_table(rows, folder / "new.parquet")
    pyarrow.csv.write_csv(rows, folder / "new.csv")
    refused = calibrant("apply", "model.json", source, "-o", output)
    assert (refused.code, refused.out) == (2, "")
    assert (
        "got 2 rows beyond: give scores from the same model, on the same scale, or"
        " --allow-out-of-range" in refused.err
    )
    assert not (folder / "out.csv").exists()
    assert calibrant("apply", "model.json", source, "-o", output, "--allow-out-of-range").code == 0


FORMULAS = {
    "=1+1": "'=1+1",
    "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0",
    "-1+2": "'-1+2",
    "@SUM(A1)": "'@SUM(A1)",
    "\t=1": "'\t'=1",
    "\r=1": "'\r'=1",
    " =1+1": "' =1+1",
    "\u00a0=1+1": "'\u00a0=1+1",
    "{=1+1}": "'{=1+1}",
    '=HYPERLINK("x,y")': '\'=HYPERLINK("x,y")',
    "a;=1+1": "a;'=1+1",  # a semicolon ends a cell in some countries
    "a;;-1+2;b": "a;;'-1+2;b",
}
PLAIN = ["-1.5", "+3", "-.5e-3", "a=b", "", "{0}", "0-1", "a;b=c"]


def test_cells_that_a_spreadsheet_would_run_are_copied_unless_escaped(
    model: Path, folder: Path, calibrant: Any
) -> None:
    cells = [*FORMULAS, *PLAIN]
    with (folder / "new.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["p", "=name"], *([0.5, cell] for cell in cells)])
    assert calibrant("apply", "model.json", "new.csv", "-o", "same.csv").code == 0
    assert [row["=name"] for row in read_csv(folder / "same.csv")] == cells
    assert (
        calibrant("apply", "model.json", "new.csv", "-o", "safe.csv", "--escape-formulas").code == 0
    )
    safe = read_csv(folder / "safe.csv")
    assert [row["'=name"] for row in safe] == [*FORMULAS.values(), *PLAIN]
    assert [row["calibrated"] for row in safe] == [
        row["calibrated"] for row in read_csv(folder / "same.csv")
    ]
    costs = ("--cost-false-alarm", "1", "--cost-miss", "5", "--escape-formulas")
    assert calibrant("decide", "model.json", "new.csv", *costs, "-o", "decided.csv").code == 0
    assert [row["'=name"] for row in read_csv(folder / "decided.csv")] == [
        row["'=name"] for row in safe
    ]
    for refused in (
        calibrant("apply", "model.json", "new.csv", "-o", "safe.parquet", "--escape-formulas"),
        calibrant("decide", "model.json", "new.csv", *costs, "-o", "safe.html"),
        calibrant("decide", "model.json", "new.csv", *costs),
    ):
        assert refused.code == 2
        assert "--escape-formulas must be used with CSV or TSV" in refused.err


def test_our_own_sets_begin_with_no_sign_that_spreadsheets_interpret(
    folder: Path, calibrant: Any
) -> None:
    rows = [[0.1 if row % 2 else 0.9, "=1+1" if row % 2 else "-2+3"] for row in range(400)]
    with (folder / "odd.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["p", "y"], *rows])
    fit = (
        "--score",
        "p",
        "--label",
        "y",
        "--pos-label",
        "-2+3",
        "--method",
        "uniform",
        "--bins",
        "2",
        "-o",
        "m.json",
    )
    assert calibrant("fit", "odd.csv", *fit).code == 0
    assert calibrant("apply", "m.json", "odd.csv", "-o", "out.csv", "--escape-formulas").code == 0
    assert {row["set"] for row in read_csv(folder / "out.csv")} == {"{-2+3}", "'{=1+1}"}
