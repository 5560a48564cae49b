"""JSON that no one should write: each file is read, or refused on one line that says why."""

import gzip
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from calibrant._json import DEEPEST, NotJsonError, read_json
from calibrant.errors import InvalidValueError
from calibrant.sample.sources.json_lines import check_nesting

NESTED = 20_000
RATE = ("--score", "judge", "--label", "human")


def inspect(samples: Any) -> bytes:
    return json.dumps({"eval": {}, "status": "success", "samples": samples}).encode()


def promptfoo(rows: Any) -> bytes:
    return json.dumps({"results": {"results": rows}}).encode()


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return file.getvalue()


def flagged(data: bytes, flags: int) -> bytes:
    """An archive whose entries carry these flags, such as 1 for a password."""
    local = data.index(b"PK\x03\x04") + 6
    central = data.index(b"PK\x01\x02") + 8
    changed = bytearray(data)
    changed[local : local + 2] = changed[central : central + 2] = flags.to_bytes(2, "little")
    return bytes(changed)


def of_method(data: bytes, method: int) -> bytes:
    changed = bytearray(data)
    for start, offset in ((data.index(b"PK\x03\x04"), 8), (data.index(b"PK\x01\x02"), 10)):
        changed[start + offset : start + offset + 2] = method.to_bytes(2, "little")
    return bytes(changed)


ROW = {"judge": 1, "human": 1}
SAMPLE = {"samples/1_epoch_1.json": json.dumps(ROW).encode()}
STORED = archive(SAMPLE, zipfile.ZIP_STORED)
PACKED = archive({"samples/1.json": json.dumps({**ROW, "text": "ab" * 500}).encode()})


def graded(result: Any) -> bytes:
    return promptfoo([{"success": True, "gradingResult": result}] * 3)


ODD = {
    "empty.json": b"",
    "blank.json": b" \n\n ",
    "null.json": b"null",
    "number.json": b"5",
    "text.json": b'"text"',
    "true.json": b"true",
    "empty-list.json": b"[]",
    "list-of-numbers.json": b"[1, 2, 3]",
    "list-of-lists.json": b"[[1, 0], [0, 1]]",
    "list-with-null.json": json.dumps([ROW, None]).encode(),
    "empty-object.json": b"{}",
    "cut.json": b'[{"judge": 1, "human"',
    "deep-objects.json": b'{"judge":' * NESTED + b"1" + b"}" * NESTED,
    "deep-lists.json": b"[" * NESTED + b"]" * NESTED,
    "deep-in-a-row.json": b'[{"judge": 1, "human": ' + b"[" * 200 + b"]" * 200 + b"}]",
    "deep-line.jsonl": b'{"judge": 1, "human": 1}\n{"judge": ' + b"[" * NESTED,
    "long-number.json": b'[{"judge": 1, "human": ' + b"9" * 5_000 + b"}]",
    "huge-number.json": b'[{"judge": 1' + b"0" * 80 + b', "human": 1}]',
    "infinite.json": b'[{"judge": 1e999, "human": 1}]',
    "nan.json": b'[{"judge": NaN, "human": 1}]',
    "surrogate.json": b'[{"judge": 1, "human": "\\ud800"}]',
    "surrogate-name.json": b'[{"\\ud800": 1}]',
    "nul.json": b'[{"judge": 1, "human": "\\u0000"}]',
    "latin.json": '[{"judge": 1, "human": "café"}]'.encode("latin-1"),
    "utf16.json": json.dumps([ROW]).encode("utf-16"),
    "bytes.json": b"\x00\xff\x00\xff",
    "labels-of-lists.json": json.dumps([{"judge": 1, "human": [1]}] * 3).encode(),
    "scores-of-lists.json": json.dumps([{"judge": [1], "human": 1}] * 3).encode(),
    "scores-of-objects.json": json.dumps([{"judge": {"a": 1}, "human": 1}] * 3).encode(),
    "mixed-scores.json": json.dumps([ROW, {"judge": "yes", "human": 1}]).encode(),
    "mixed-labels.json": json.dumps([ROW, {"judge": 1, "human": "yes"}]).encode(),
    "mixed-kinds.json": json.dumps([ROW, {"judge": [], "human": {}}]).encode(),
    "line-of-a-number.jsonl": b'{"judge": 1, "human": 1}\n5\n',
    "line-cut.jsonl": b'{"judge": 1, "human": 1}\n{"judge": 1',
    "not-gzip.json.gz": b"[]",
    "cut.json.gz": gzip.compress(json.dumps([ROW] * 1000).encode())[:-20],
    "deep.json.gz": gzip.compress(b"[" * 1_000_000),
    "inspect-no-samples.json": inspect(None),
    "inspect-empty.json": inspect([]),
    "inspect-samples-object.json": inspect({"a": 1}),
    "inspect-samples-text.json": inspect("abc"),
    "inspect-samples-number.json": inspect(5),
    "inspect-sample-number.json": inspect([1, 2]),
    "inspect-sample-null.json": inspect([ROW, None]),
    "inspect-sample-list.json": inspect([["judge", "human"]]),
    "promptfoo-results-number.json": b'{"results": 5}',
    "promptfoo-results-null.json": b'{"results": null}',
    "promptfoo-results-text.json": b'{"results": "abc"}',
    "promptfoo-rows-object.json": promptfoo({"a": 1}),
    "promptfoo-row-null.json": promptfoo([None]),
    "promptfoo-row-text.json": promptfoo(["abc"]),
    "promptfoo-row-number.json": promptfoo([1]),
    "promptfoo-grade-text.json": graded("good"),
    "promptfoo-grade-list.json": graded([1]),
    "promptfoo-grade-number.json": graded(1),
    "promptfoo-parts-number.json": graded({"componentResults": 5}),
    "promptfoo-parts-text.json": graded({"componentResults": "abc"}),
    "promptfoo-parts-object.json": graded({"componentResults": {"a": 1}}),
    "promptfoo-assertion-text.json": graded({"componentResults": [{"assertion": "human"}]}),
    "promptfoo-assertion-list.json": graded({"componentResults": [{"assertion": [1]}]}),
    "promptfoo-pass-object.json": graded(
        {"componentResults": [{"assertion": {"type": "human"}, "pass": {"a": 1}}]}
    ),
    "promptfoo-pass-list.json": graded(
        {"componentResults": [{"assertion": {"type": "human"}, "pass": [1]}]}
    ),
    "archive-empty.eval": archive({}),
    "archive-no-samples.eval": archive({"readme.txt": b"nothing"}),
    "archive-sample-number.eval": archive({"samples/1.json": b"5"}),
    "archive-sample-list.eval": archive({"samples/1.json": b"[1]"}),
    "archive-sample-null.eval": archive({"samples/1.json": b"null"}),
    "archive-sample-cut.eval": archive({"samples/1.json": b'{"judge": 1'}),
    "archive-sample-empty.eval": archive({"samples/1.json": b""}),
    "archive-sample-deep.eval": archive({"samples/1.json": b"[" * 1_000_000}),
    "archive-sample-latin.eval": archive({"samples/1.json": '{"judge": "é"}'.encode("latin-1")}),
    "archive-locked.eval": flagged(STORED, 1),
    "archive-strange.eval": of_method(STORED, 97),
    "archive-damaged.eval": STORED.replace(b'"judge"', b'"jud9e"', 1),
    "archive-cut.eval": STORED[:-10],
    "archive-not-packed.eval": of_method(STORED, zipfile.ZIP_DEFLATED),
    "archive-broken-deflate.eval": PACKED[:60] + b"\xff" * 10 + PACKED[70:],
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_file_is_refused_on_one_line(calibrant, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(ODD[name])
    answer = calibrant("rate", path, *RATE)
    assert answer.code == 2, answer.out
    assert len(answer.err.splitlines()) == 1
    assert "unexpected error" not in answer.err
    assert "Traceback" not in answer.err
    assert len(answer.err) < 600


@pytest.mark.parametrize("field", ["judge.²", "judge.٣", "judge." + "9" * 5_000, "a." * 3_000, "."])
def test_an_odd_name_of_a_field_is_refused(calibrant, tmp_path, field):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([{"judge": [1, 2], "a": {"a": 1}, "human": 1}]), "utf-8")
    answer = calibrant("rate", path, "--score", field, "--label", "human")
    assert answer.code == 2
    assert "name a field of the data" in answer.err


DEEP = {
    "objects": b'{"a":' * NESTED + b"1" + b"}" * NESTED,
    "over lines": b'{"a":\n' * NESTED + b"1" + b"}" * NESTED,
    "after a row": b'{"p": 0.5, "y": 1}\n{"p": 0.5, "y": 1, "a": ' + b"[" * NESTED,
    "after closing brackets": b"}" * NESTED + b"\n" + b'{"a":' * NESTED,
    "after an open text": b'{"a": "\n' + b'{"a":' * NESTED,
    "after an escape": b'{"a": "\\\\", "b":' * NESTED,
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("command", ["fit", "apply"])
def test_deeply_nested_lines_do_not_crash(command, name, tmp_path, calibrant, table):
    """In a process of its own: before, it ended with a segmentation fault."""
    data = tmp_path / "rows.jsonl"
    data.write_bytes(DEEP[name])
    arguments = ["fit", data, "--score", "p", "--label", "y"]
    if command == "apply":
        good = tmp_path / "good.jsonl"
        good.write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()[:400]), "utf-8")
        model = tmp_path / "model.json"
        assert calibrant("fit", good, "--score", "p", "--label", "y", "-o", model).code == 0
        arguments = ["apply", model, data, "-o", tmp_path / "out.jsonl"]
    done = subprocess.run(
        [sys.executable, "-m", "calibrant", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "must be nested at most 100 deep" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n\r\n",
        b'{"a": 1}\n' * 50_000,
        b'{"a": "' + b"[" * 1_000 + b'"}\n',
        b'{"a": "\\"' + b"[" * 1_000 + b'"}\n',
        b'{"a": "\\\\", "b": []}\n' * 200,
        b'{"a": ' + b"[" * (DEEPEST - 1) + b"]" * (DEEPEST - 1) + b"}\n" * 2,
    ],
)
def test_lines_within_the_limits_pass(text):
    check_nesting(io.BytesIO(text), "the file")


def test_a_line_that_is_too_long_is_refused():
    line = b'{"a": "' + b"x" * (1 << 24) + b'"}'
    with pytest.raises(InvalidValueError, match="lines of at most 8,388,608 bytes"):
        check_nesting(io.BytesIO(line), "the file")


def test_the_reader_has_limits():
    assert read_json(b"[" * DEEPEST + b"]" * DEEPEST, "it")
    for text in (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), b'{"a":' * 10**6):
        with pytest.raises(InvalidValueError, match="nested at most 100 deep"):
            read_json(text, "it")
    with pytest.raises(InvalidValueError, match="at most 10 bytes"):
        read_json(b'"0123456789"', "it", most_bytes=10)
    with pytest.raises(InvalidValueError, match="at most 100 digits"):
        read_json(b"1" * 101, "it")
    with pytest.raises(NotJsonError, match="must be JSON; got Expecting property name"):
        read_json(b"{]", "it")
    for text in (b'{"a": 1, "a": 2}', b"[NaN]", b"\xef\xbb\xbf1"):
        read_json(text, "it")
        with pytest.raises(InvalidValueError):
            read_json(text, "it", strict=True)


def test_no_other_place_parses_json():
    """The store reads what it wrote itself; everything else goes through one reader."""
    root = Path(__file__).parents[2] / "src" / "calibrant"
    users = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "json.load" in path.read_text("utf-8")
    }
    assert {user for user in users if not user.startswith("monitor/")} == {"_json.py"}
