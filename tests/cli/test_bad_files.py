"""Whatever is wrong with a file: one line that says so, exit code 2, never a traceback."""

import gzip
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

ROWS = "".join(f"{k / 200:.3f},{k * 7 % 3 % 2},{'ns'[k % 2]},1.0\n" for k in range(200))
GOOD = "p,y,region,w\n" + ROWS


def text(content: str, name: str = "x.csv", encoding: str = "utf-8") -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / name).write_bytes(content.encode(encoding))
        return name

    return make


def raw(content: bytes, name: str) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return name

    return make


def parquet(columns: dict[str, Any], name: str = "x.parquet") -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        pq.write_table(pa.table(columns), folder / name)
        return name

    return make


def pipe(folder: Path) -> str:
    os.mkfifo(folder / "x.csv")
    return "x.csv"


def changed(row: int, line: str) -> str:
    """The good file with one row, counted from 1, replaced."""
    lines = GOOD.splitlines(keepends=True)
    lines[row] = line + "\n"
    return "".join(lines)


def truncated_parquet(folder: Path) -> str:
    pq.write_table(
        pa.table({"p": np.linspace(0, 1, 1000), "y": [0, 1] * 500}), folder / "x.parquet"
    )
    data = (folder / "x.parquet").read_bytes()
    (folder / "x.parquet").write_bytes(data[: len(data) // 2])
    return "x.parquet"


def scrambled_parquet(folder: Path) -> str:
    pq.write_table(
        pa.table({"p": np.random.default_rng(0).uniform(size=5000), "y": [0, 1] * 2500}),
        folder / "x.parquet",
    )
    data = bytearray((folder / "x.parquet").read_bytes())
    data[4:400] = b"\xff" * 396
    (folder / "x.parquet").write_bytes(bytes(data))
    return "x.parquet"


def truncated_gzip(folder: Path) -> str:
    data = gzip.compress(GOOD.encode() + os.urandom(3000).hex().encode())
    (folder / "x.csv.gz").write_bytes(data[: len(data) // 2])
    return "x.csv.gz"


def truncated_arrow(folder: Path) -> str:
    feather.write_feather(
        pa.table({"p": np.linspace(0, 1, 1000), "y": [0, 1] * 500}), str(folder / "x.arrow")
    )
    data = (folder / "x.arrow").read_bytes()
    (folder / "x.arrow").write_bytes(data[: len(data) // 2])
    return "x.arrow"


def workbook(folder: Path) -> str:
    with zipfile.ZipFile(folder / "x.csv", "w") as file:
        file.writestr("xl/workbook.xml", "<workbook/>")
    return "x.csv"


def folder_of(**files: str) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / "days").mkdir()
        for name, content in files.items():
            (folder / "days" / name.replace("_", ".")).write_text(content)
        return "days"

    return make


def two_formats(folder: Path) -> str:
    (folder / "days").mkdir()
    (folder / "days" / "a.csv").write_text(GOOD)
    pq.write_table(pa.table({"p": [0.5], "y": [1]}), folder / "days" / "b.parquet")
    return "days"


def jsonl(*lines: str) -> Callable[[Path], str]:
    good = [json.dumps({"p": k / 50, "y": k % 2}) for k in range(50)]
    return text("\n".join([*good, *lines]) + "\n", "x.jsonl")


def nulls(column: str) -> Callable[[Path], str]:
    columns: dict[str, list[Any]] = {
        "p": [0.1, 0.2, 0.3, 0.4],
        "y": [0, 1, 0, 1],
        "region": list("abab"),
        "w": [1.0] * 4,
    }
    columns[column][2] = None
    return parquet(columns)


CASES: dict[str, tuple[Callable[[Path], str], tuple[str, ...], tuple[str, ...]]] = {
    # which file: how it is made, further options, what the message must name
    "no file": (lambda folder: "nowhere.csv", (), ("there is no file", "nowhere.csv")),
    "glob without a match": (lambda folder: "days/*.csv", (), ("no file matches", "days/*.csv")),
    "empty folder": (folder_of(), (), ("days", "must contain files of data")),
    "folder of other files": (
        folder_of(readme_md="hello"),
        (),
        ("days", "must contain files of data"),
    ),
    "folder of two formats": (two_formats, (), ("one format", "a.csv", "b.parquet")),
    "folder of different columns": (
        folder_of(a_csv=GOOD, b_csv=GOOD.replace("region", "area")),
        (),
        ("same columns", "b.csv", "area"),
    ),
    "empty csv": (text(""), (), ("x.csv", "empty")),
    "empty parquet": (raw(b"", "x.parquet"), (), ("x.parquet", "empty")),
    "empty json": (raw(b"", "x.jsonl"), (), ("x.jsonl", "empty")),
    "empty gzip": (raw(gzip.compress(b""), "x.csv.gz"), (), ("x.csv.gz", "empty")),
    "blank lines only": (text("\n\n\n"), (), ("x.csv", "empty")),
    "header only": (text("p,y\n"), (), ("x.csv", "at least one row")),
    "no rows in parquet": (
        parquet({"p": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}),
        (),
        ("at least",),
    ),
    "no header": (text(ROWS), (), ("x.csv", "header line", "numbers")),
    "score column misspelt": (
        text(GOOD.replace("p,y", "prob,y", 1)),
        (),
        ("score column 'p'", "'prob'"),
    ),
    "did you mean": (
        text(GOOD.replace("p,y", "P,y", 1)),
        (),
        ("score column 'p'", "did you mean 'P'?"),
    ),
    "label column missing": (
        text(GOOD.replace("p,y", "p,yy", 1)),
        (),
        ("label column 'y'", "'yy'"),
    ),
    "segment column missing": (
        text(GOOD),
        ("--segment", "regoin"),
        ("segment column", "did you mean 'region'?"),
    ),
    "weight column missing": (text(GOOD), ("--weight", "ww"), ("weight column 'ww'", "'w'")),
    "id column missing": (text(GOOD), ("--id", "key", "--pilot", "0.2"), ("id column 'key'",)),
    "column twice": (text(GOOD.replace("region", "p", 1)), (), ("score column 'p'", "2 columns")),
    "score and label the same": (text(GOOD), ("--label", "p"), ("--score", "--label", "different")),
    "wrong delimiter": (
        text(GOOD.replace(",", "~")),
        (),
        ("x.csv", "comma, semicolon, tab", "p~y"),
    ),
    "spaces as delimiter": (text(GOOD.replace(",", " ")), (), ("x.csv", "comma, semicolon, tab")),
    "text in the score": (
        text(changed(17, "high,1,n,1.0")),
        (),
        ("score column 'p'", "'high'", "row 17 of x.csv"),
    ),
    "text in the score, in the last row": (
        text(GOOD + "?,1,n,1.0\n"),
        (),
        ("score column 'p'", "'?'", "row 201 of x.csv"),
    ),
    "decimal comma": (
        text(changed(3, "0.5,1,n,1.0").replace(",", ";").replace("0.5;1", "0,5;1")),
        (),
        ("'0,5'", "row 3", "give --decimal ,"),
    ),
    "per cent": (text(changed(3, "85%,1,n,1.0")), (), ("'85%'", "row 3", "per cent sign")),
    "text in the weight": (
        text(changed(9, "0.5,1,n,heavy")),
        ("--weight", "w"),
        ("weight column 'w'", "'heavy'", "row 9"),
    ),
    "too many fields": (
        text(changed(5, "0.5,1,n,1.0,7")),
        (),
        ("row 5 of x.csv", "4 fields", "got 5"),
    ),
    "too few fields": (text(changed(5, "0.5,1")), (), ("row 5 of x.csv", "4 fields", "got 2")),
    "score missing": (
        text(changed(4, ",1,n,1.0")),
        (),
        ("column 'p'", "missing", "row 4 of x.csv"),
    ),
    "label missing": (
        text(changed(4, "0.5,,n,1.0")),
        (),
        ("column 'y'", "missing", "row 4 of x.csv"),
    ),
    "null score": (nulls("p"), (), ("column 'p'", "missing", "row 3 of x.parquet")),
    "null label": (nulls("y"), (), ("column 'y'", "missing", "row 3 of x.parquet")),
    "null segment": (
        nulls("region"),
        ("--segment", "region"),
        ("column 'region'", "missing", "row 3"),
    ),
    "null weight": (nulls("w"), ("--weight", "w"), ("column 'w'", "missing", "row 3")),
    "all scores missing": (
        parquet({"p": pa.nulls(4), "y": [0, 1, 0, 1]}),
        (),
        ("column 'p'", "missing", "4 faulty rows"),
    ),
    "not a number": (
        parquet({"p": [0.1, float("nan"), 0.3], "y": [0, 1, 0]}),
        (),
        ("column 'p'", "NaN", "row 2"),
    ),
    "infinite": (
        parquet({"p": [0.1, 0.2, float("inf")], "y": [0, 1, 0]}),
        (),
        ("column 'p'", "infinity", "row 3"),
    ),
    "negative weight": (
        text(changed(6, "0.5,1,n,-1.0")),
        ("--weight", "w"),
        ("column 'w'", ">= 0", "row 6"),
    ),
    "weight above the bound": (
        text(changed(6, "0.5,1,n,9.0")),
        ("--weight", "w", "--weight-bound", "8", "--bins", "2", "--pilot", "none"),
        ("--weight-bound", "9.0 at row 6,"),
    ),
    "scores outside the range": (
        text(changed(6, "1.5,1,n,1.0")),
        ("--method", "uniform"),
        ("column 'p'", "between 0 and 1", "row 6"),
    ),
    "scores outside the range, beta": (
        text(changed(6, "1.5,1,n,1.0")),
        ("--method", "beta"),
        ("probabilities in [0, 1]", "1.5"),
    ),
    "three labels": (
        text(changed(7, "0.5,2,n,1.0")),
        (),
        ("labels must contain two classes", "0, 1, 2"),
    ),
    "mixed labels": (text(changed(7, "0.5,yes,n,1.0")), (), ("labels", "two classes", "'yes'")),
    "one label": (text(GOOD.replace(",1,", ",0,")), (), ("one class only", "--classes 0,1")),
    "labels with many values": (
        parquet({"p": np.linspace(0, 1, 99), "y": np.linspace(0, 1, 99)}),
        ("--pilot", "none"),
        ("labels must contain two classes", "the scores and the labels swapped?"),
    ),
    "text labels": (
        text(GOOD.replace(",1,", ",late,").replace(",0,", ",early,")),
        (),
        ("--pos-label", "'early', 'late'"),
    ),
    "positive label of another kind": (
        text(GOOD),
        ("--pos-label", "yes"),
        ("--pos-label", "whole numbers", "'yes'"),
    ),
    "positive label unknown": (text(GOOD), ("--pos-label", "3"), ("--pos-label", "[0, 1]", "3")),
    "classes that are three": (text(GOOD), ("--classes", "0,1,2"), ("--classes", "two labels")),
    "score of text": (
        parquet({"p": ["a", "b"] * 50, "y": [0, 1] * 50}),
        (),
        ("score column 'p'", "real numbers", "'a'"),
    ),
    "score of lists": (
        parquet({"p": [[0.1], [0.2]] * 50, "y": [0, 1] * 50}),
        (),
        ("score column 'p'", "real numbers"),
    ),
    "label of lists": (parquet({"p": [0.1, 0.2], "y": [[0], [1]]}), (), ("label column 'y'",)),
    "segment of lists": (
        parquet({"p": [0.1, 0.2], "y": [0, 1], "region": [[0], [1]]}),
        ("--segment", "region"),
        ("segment column 'region'",),
    ),
    "id of fractions": (
        text(GOOD),
        ("--id", "w", "--pilot", "0.2"),
        ("id column 'w'", "whole numbers, dates or text"),
    ),
    "truncated parquet": (truncated_parquet, (), ("x.parquet", "cut short or damaged")),
    "scrambled parquet": (scrambled_parquet, (), ("x.parquet", "cannot be read")),
    "truncated gzip": (truncated_gzip, (), ("x.csv.gz", "cut short")),
    "not gzip at all": (raw(GOOD.encode(), "x.csv.gz"), (), ("x.csv.gz", "not compressed")),
    "gzip without the name": (
        raw(gzip.compress(GOOD.encode()), "x.csv"),
        (),
        ("x.csv", "compressed", ".gz"),
    ),
    "truncated arrow": (truncated_arrow, (), ("x.arrow", "cannot be read")),
    "utf-16": (text(GOOD, encoding="utf-16"), (), ("x.csv", "UTF-16", "UTF-8")),
    "utf-16 without a mark": (text(GOOD, encoding="utf-16-le"), (), ("x.csv", "UTF-16", "UTF-8")),
    "latin-1 labels": (
        text(GOOD.replace(",1,", ",café,").replace(",0,", ",thé,"), encoding="latin-1"),
        ("--pos-label", "café"),
        ("label column 'y'", "x.csv", "UTF-8"),
    ),
    "latin-1 in the header": (
        text(GOOD.replace("region", "région"), encoding="latin-1"),
        (),
        ("x.csv", "'région'", "CSV UTF-8", "iconv"),
    ),
    "cp1252 in the header": (
        text(GOOD.replace("region", "price €"), encoding="cp1252"),
        (),
        ("x.csv", "'price €'", "CSV UTF-8", "iconv"),
    ),
    "latin-1 in names of json lines": (
        text('{"p": 0.5, "y": 1, "région": 1}\n', "x.jsonl", "latin-1"),
        (),
        ("x.jsonl", "UTF-8", "iconv"),
    ),
    "a pipe": (pipe, (), ("x.csv", "a pipe", "read several times", "standard input")),
    "excel": (workbook, (), ("x.csv", "Excel workbook", "save it as CSV")),
    "parquet named csv": (
        raw(b"PAR1" + bytes(40) + b"PAR1", "x.csv"),
        (),
        ("x.csv", "looks like Parquet", "--format parquet"),
    ),
    "csv named parquet": (
        text(GOOD, "x.parquet"),
        (),
        ("x.parquet", "looks like CSV", "--format csv"),
    ),
    "csv named arrow": (text(GOOD, "x.arrow"), (), ("x.arrow", "looks like CSV")),
    "a web page": (text("<html><body>not found</body></html>"), (), ("x.csv", "web page")),
    "unknown kind": (raw(b"\x00\x01\x02\x03" * 20, "x.dat"), (), ("x.dat", "--format")),
    "broken line of json": (jsonl('{"p": 0.5, "y": '), (), ("JSON object", "row 51 of x.jsonl")),
    "number as line of json": (jsonl("17"), (), ("JSON object", "'17'", "row 51")),
    "text in the score of json": (
        jsonl('{"p": "high", "y": 1}'),
        (),
        ("score column 'p'", "'high'", "row 51 of x.jsonl"),
    ),
    "json array": (
        text('[{"p": 0.5, "y": 1}]', "x.json"),
        (),
        ("x.json", "one JSON object on each line", "array"),
    ),
    "too few rows": (text("p,y\n0.1,0\n0.2,1\n"), ("--bins", "10"), ("--bins", "10")),
    "a segment with too few rows": (
        text(GOOD + "0.5,1,alone,1.0\n"),
        ("--segment", "region", "--bins", "5", "--pilot", "none"),
        ("segment 'alone'",),
    ),
    "no bins": (text(GOOD), ("--bins", "0"), ("--bins", "0")),
    "bins in words": (text(GOOD), ("--bins", "many"), ("--bins", "many")),
    "confidence of 90": (text(GOOD), ("--confidence", "90"), ("--confidence", "90")),
    "split of everything": (text(GOOD), ("--pilot", "200"), ("--pilot", "200")),
    "split that can not be read": (text(GOOD), ("--pilot", "a fifth"), ("--pilot", "a fifth")),
    "an option of another method": (
        text(GOOD),
        ("--method", "platt", "--bins", "5"),
        ("--bins", "platt"),
    ),
    "a confidence without a guarantee": (
        text(GOOD),
        ("--method", "beta", "--confidence", "0.99"),
        ("--confidence", "beta"),
    ),
    "a bound without weights": (
        text(GOOD),
        ("--weight-bound", "8"),
        ("--weight-bound", "--weight"),
    ),
    "segments for a curve": (
        text(GOOD),
        ("--method", "platt", "--segment", "region"),
        ("--segment", "platt"),
    ),
}


def check_refused(answer: Any, words: tuple[str, ...]) -> None:
    assert answer.code == 2, (answer.code, answer.out, answer.err)
    assert answer.out == ""
    lines = answer.err.strip().splitlines()
    assert len(lines) == 1, answer.err
    assert lines[0].startswith("error: ")
    assert "Traceback" not in answer.err
    assert "unexpected error" not in answer.err
    for word in words:
        assert word in lines[0], (word, lines[0])


@pytest.mark.parametrize("case", CASES)
def test_fit_refuses_in_one_line(
    case: str, tmp_path: Path, calibrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, options, words = CASES[case]
    answer = calibrant(
        "fit", make(tmp_path), "--score", "p", "--label", "y", *options, "-o", "model.json"
    )
    check_refused(answer, words)
    assert not (tmp_path / "model.json").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith((".part", ".tmp"))]


AUDITED = (
    "no file",
    "empty csv",
    "text in the score",
    "truncated parquet",
    "score missing",
    "three labels",
    "utf-16",
    "latin-1 in the header",
    "a pipe",
)


@pytest.mark.parametrize("command", ["audit", "compare"])
@pytest.mark.parametrize("case", AUDITED)
def test_other_commands_refuse_in_the_same_words(
    command: str, case: str, tmp_path: Path, calibrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, _, words = CASES[case]
    check_refused(calibrant(command, make(tmp_path), "--score", "p", "--label", "y"), words)


def test_a_file_that_may_not_be_read(tmp_path: Path, calibrant: Any) -> None:
    path = tmp_path / "x.csv"
    path.write_text(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads everything")
    check_refused(
        calibrant("fit", str(path), "--score", "p", "--label", "y"), ("x.csv", "permission denied")
    )


@pytest.mark.broad
def test_text_late_in_a_long_file_is_found_with_its_row(tmp_path: Path, calibrant: Any) -> None:
    """Arrow reads blocks of 8 MB side by side; the row is counted over all of them."""
    path = tmp_path / "x.csv"
    path.write_text("p,y\n" + "0.123456789012345,1\n0.2,0\n" * 400_000 + "late,1\n")
    answer = calibrant("fit", str(path), "--score", "p", "--label", "y", "--bins", "5")
    check_refused(answer, ("'late'", "row 800,001 of x.csv"))


@pytest.mark.broad
def test_labels_that_change_kind_late_in_a_long_file(tmp_path: Path, calibrant: Any) -> None:
    path = tmp_path / "x.csv"
    path.write_text("p,y\n" + "0.123456789012345,1\n0.2,0\n" * 400_000 + "0.3,yes\n")
    answer = calibrant("fit", str(path), "--score", "p", "--label", "y", "--bins", "5")
    check_refused(answer, ("label column 'y'", "one kind", "'yes'", "row 800,001 of x.csv"))


APPLY_CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "output exists": (("model.json", "scores.csv", "-o", "old.csv"), ("old.csv", "--overwrite")),
    "output is the input": (
        ("model.json", "scores.csv", "-o", "scores.csv", "--overwrite"),
        ("scores.csv", "read"),
    ),
    "output is the model": (
        ("model.json", "scores.csv", "-o", "model.csv", "--overwrite"),
        ("model.csv", "read"),
    ),
    "output in no folder": (
        ("model.json", "scores.csv", "-o", "nowhere/out.csv"),
        ("nowhere", "folder"),
    ),
    "output is a folder": (
        ("model.json", "scores.csv", "-o", "folder.csv"),
        ("folder.csv", "folder"),
    ),
    "output of unknown kind": (
        ("model.json", "scores.csv", "-o", "out.xlsx"),
        ("out.xlsx", ".parquet"),
    ),
    "output packed twice": (
        ("model.json", "scores.csv", "-o", "out.parquet.gz"),
        ("out.parquet.gz",),
    ),
    "json beside standard output": (
        ("model.json", "scores.csv", "-o", "-", "--json"),
        ("--json", "-o -"),
    ),
    "no model": (("nowhere.json", "scores.csv", "-o", "out.csv"), ("nowhere.json", "no such file")),
    "model is data": (("scores.csv", "scores.csv", "-o", "out.csv"), ("scores.csv",)),
    "model is empty": (("empty.json", "scores.csv", "-o", "out.csv"), ("empty.json", "empty")),
    "model is damaged": (
        ("damaged.json", "scores.csv", "-o", "out.csv"),
        ("damaged.json", "changed or damaged"),
    ),
    "model is cut short": (("short.json", "scores.csv", "-o", "out.csv"), ("short.json",)),
    "no such score": (
        ("model.json", "scores.csv", "--score", "q", "-o", "out.csv"),
        ("score column 'q'",),
    ),
    "column taken": (("model.json", "taken.csv", "-o", "out.csv"), ("'calibrated'", "--prefix")),
    "column taken in parquet": (
        ("model.json", "taken.csv", "-o", "out.parquet"),
        ("'calibrated'", "--prefix"),
    ),
    "text in the score": (
        ("model.json", "text.csv", "-o", "out.csv"),
        ("score column 'p'", "'high'", "row 2 of text.csv"),
    ),
    "text in the score, to parquet": (
        ("model.json", "text.csv", "-o", "out.parquet"),
        ("score column 'p'", "'high'", "row 2 of text.csv"),
    ),
    "latin-1 in other columns": (
        ("model.json", "latin.csv", "-o", "out.csv"),
        ("latin.csv", "UTF-8", "iconv"),
    ),
    "latin-1 in the header": (
        ("model.json", "names.csv", "-o", "out.parquet"),
        ("names.csv", "'région'", "iconv"),
    ),
    "lists can not be CSV": (
        ("model.json", "lists.parquet", "-o", "out.csv"),
        ("'tags'", ".parquet"),
    ),
    "coverage of 95": (
        ("model.json", "scores.csv", "-o", "out.csv", "--coverage", "95"),
        ("--coverage", "95"),
    ),
    "no data": (("model.json", "-o", "out.csv"), ("DATA",)),
}


@pytest.mark.parametrize("case", APPLY_CASES)
def test_apply_refuses_in_one_line(case: str, model: Path, folder: Path, calibrant: Any) -> None:
    (folder / "old.csv").write_text("keep me")
    (folder / "model.csv").symlink_to(folder / "model.json")
    (folder / "folder.csv").mkdir()
    (folder / "empty.json").write_text("")
    content = model.read_text()
    (folder / "damaged.json").write_text(
        content.replace('"confidence_level": 0.9', '"confidence_level": 0.8')
    )
    (folder / "short.json").write_text(content[: len(content) // 2])
    (folder / "taken.csv").write_text("p,calibrated\n0.5,1\n")
    (folder / "text.csv").write_text("p\n0.5\nhigh\n")
    (folder / "latin.csv").write_text("p,note\n0.5,café\n", encoding="latin-1")
    (folder / "names.csv").write_text("p,région\n0.5,1\n", encoding="latin-1")
    pq.write_table(pa.table({"p": [0.5], "tags": [["a"]]}), folder / "lists.parquet")
    before = {path.name for path in folder.iterdir()}
    arguments, words = APPLY_CASES[case]
    check_refused(calibrant("apply", *arguments), words)
    assert {path.name for path in folder.iterdir()} == before
    assert (folder / "old.csv").read_text() == "keep me"
    assert model.read_text() == content


STDIN_CASES = {
    "empty": (b"", ("standard input", "empty")),
    "neither": (b"\x00\x01\x02" * 30, ("standard input", "CSV, Parquet")),
    "truncated gzip": (gzip.compress(os.urandom(9000))[:4000], ("standard-input",)),
    "text in the score": (
        b"p,y\n0.1,0\nhigh,1\n",
        ("score column 'p'", "row 2 of standard-input.csv"),
    ),
    "missing column": (b'{"q": 0.1, "y": 1}\n', ("score column 'p'", "'q'")),
}


@pytest.mark.parametrize("case", STDIN_CASES)
def test_standard_input_refused_in_one_line(case: str, calibrant: Any) -> None:
    content, words = STDIN_CASES[case]
    check_refused(calibrant("fit", "-", "--score", "p", "--label", "y", stdin=content), words)


def test_a_model_file_is_not_data(calibrant: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text(GOOD, encoding="utf-8")
    named = ("--score", "p", "--label", "y")
    assert calibrant("fit", "x.csv", *named, "-o", "m.json").code == 0
    audited = calibrant("audit", "m.json")
    assert audited.code == 2
    said = "error: 'm.json' must contain rows of data; got a model file of calibrant: give the data"
    assert audited.err.strip() == f"{said}, and --model m.json"
    assert calibrant("fit", "m.json", *named).err.strip() == said
    lines = "".join(json.dumps({"p": k / 200, "y": k % 2}) + "\n" for k in range(200))
    Path("rows.json").write_text(lines, encoding="utf-8")
    assert calibrant("audit", "rows.json", *named).code == 0


@pytest.mark.parametrize("option", [("threshold", "--precision"), ("rate", "--at-least")])
def test_a_percentage_is_answered_with_the_number_to_write(
    calibrant: Any, tmp_path: Path, option: tuple[str, str]
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(GOOD, encoding="utf-8")
    command, name = option
    for typed in ("90%", "90"):
        answer = calibrant(command, path, "--score", "p", "--label", "y", name, typed)
        assert answer.code == 2
        assert "write 0.9 for 90%" in answer.err
    nonsense = calibrant(command, path, "--score", "p", "--label", "y", name, "many")
    assert "'many' is not a number (see" in " ".join(nonsense.err.split())


@pytest.mark.parametrize(
    ("command", "output"), [("audit", "closed/a.html"), ("fit", "closed/model.json")]
)
def test_a_folder_that_cannot_be_written_to_is_named_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calibrant: Any, command: str, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("closed").mkdir()
    allowed = os.access

    def access(path: Any, mode: int) -> bool:  # the tests may run as root, who may write anywhere
        return Path(path).name != "closed" and allowed(path, mode)

    monkeypatch.setattr("calibrant._file.os.access", access)
    # there is no such data: the output is checked first
    answer = calibrant(command, "nowhere.csv", "--score", "p", "--label", "y", "-o", output)
    assert answer.code == 2
    assert "'closed': no file can be written to this folder; name another" in answer.err
    assert not list(Path("closed").iterdir())


def test_a_file_with_a_similar_name_is_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calibrant: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scores.csv").write_text(GOOD, encoding="utf-8")
    answer = calibrant("audit", "score.csv", "--score", "p", "--label", "y")
    assert "there is no file 'score.csv': did you mean 'scores.csv'?" in answer.err
    answer = calibrant("audit", "other/score.csv", "--score", "p", "--label", "y")
    assert "there is no file 'other/score.csv'" in answer.err
    assert "did you mean" not in answer.err
