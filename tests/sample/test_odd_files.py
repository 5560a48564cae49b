"""Files that are odd but right are read; others get an answer that says what to do."""

import os
import sys
import zipfile

import pytest

from calibrant import Partition, scored
from calibrant.sample.reader import rows_of

EDGES = Partition.from_edges([0.5])
ROWS = ["0.1,0", "0.2,1", "0.8,1", "0.9,0"]


def counts(path, **names):
    return (
        rows_of(scored(path, **{"score": "p", "label": "y", **names}, progress=False))
        .tally(EDGES)[0]
        .counts.tolist()
    )


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "\ufeff", "break", "\ufeffbreak"])
def test_any_line_break_is_read(line_break, before, tmp_path) -> None:
    text = before.replace("break", line_break) + line_break.join(["p,y", *ROWS]) + line_break
    (tmp_path / "rows.csv").write_bytes(text.encode())
    assert counts(tmp_path / "rows.csv") == [2, 2]


def test_a_header_with_a_quoted_line_break_is_read(tmp_path) -> None:
    (tmp_path / "rows.csv").write_text('"default\nprobability","y;\r\nn"\n' + "\n".join(ROWS))
    assert counts(tmp_path / "rows.csv", score="default\nprobability", label="y;\r\nn") == [2, 2]


@pytest.mark.broad
@pytest.mark.parametrize("n_columns", [10_000, 300_000])
def test_columns_far_out_in_a_long_header_are_found(n_columns, tmp_path) -> None:
    names = [f"feature_{number}" for number in range(n_columns)]
    blank = "," * n_columns
    (tmp_path / "rows.csv").write_text(
        "\n".join([",".join([*names, "p", "y"]), *(blank[:-1] + "," + r for r in ROWS)])
    )
    if n_columns == 10_000:
        assert counts(tmp_path / "rows.csv") == [2, 2]
    else:  # 4.7 MB
        with pytest.raises(
            ValueError,
            match=r"header line of 'rows.csv' must end within its first 4 MB; got no line",
        ):
            counts(tmp_path / "rows.csv")


def test_a_huge_file_without_a_line_break_is_not_called_empty(tmp_path) -> None:
    with (tmp_path / "rows.csv").open("wb") as file:
        for _ in range(100):
            file.write(b"x" * 1_000_000)
    with pytest.raises(
        ValueError,
        match=r"header line of 'rows.csv' must end within its first 4 MB; got no line break",
    ):
        counts(tmp_path / "rows.csv")


@pytest.mark.parametrize("name", ["<p>", "<score", "<5%"])
def test_a_header_that_begins_with_a_bracket_is_no_web_page(name, tmp_path) -> None:
    (tmp_path / "rows.csv").write_text("\n".join([f"{name},y", *ROWS]))
    assert counts(tmp_path / "rows.csv", score=name) == [2, 2]


@pytest.mark.parametrize(
    "start", ["<!DOCTYPE html>", "\n <html lang='en'>", "<table>", "<?xml version='1.0'?>"]
)
def test_a_web_page_is_called_one(start, tmp_path) -> None:
    (tmp_path / "rows.csv").write_text(start + "<p>not found</p>\n")
    with pytest.raises(ValueError, match="looks like a web page; save the data themselves as CSV"):
        counts(tmp_path / "rows.csv")


@pytest.mark.parametrize("name", ["rows.xlsx", "rows.csv", "rows.parquet", "rows"])
def test_a_workbook_says_what_to_do(name, tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / name, "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(
        ValueError, match="is a zip file or an Excel workbook; save it as CSV or Parquet"
    ):
        counts(tmp_path / name)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux only")
def test_a_name_that_is_not_utf_8_is_told(tmp_path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/r\xf6ws.csv")
    with open(path, "w") as file:
        file.write("\n".join(["p,y", *ROWS]))
    for source in (path, tmp_path, str(tmp_path / "*.csv")):
        with pytest.raises(
            ValueError, match=r"the name of a file must be UTF-8; got '.*r\\udcf6ws.csv': rename it"
        ):
            counts(source)


def test_a_mark_that_is_quoted_does_not_separate(tmp_path) -> None:
    (tmp_path / "rows.csv").write_text('p;"y;\nz, of them"\n' + "\n".join(ROWS).replace(",", ";"))
    assert counts(tmp_path / "rows.csv", label="y;\nz, of them") == [2, 2]
