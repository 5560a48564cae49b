"""CSV as people write it: decimal commas, per cent signs, and blanks around names."""

import numpy as np
import pytest

from calibrant import BinningCalibrator, scored
from calibrant.errors import InvalidTypeError, InvalidValueError

N_ROWS = 1_500
NAMES = ("--score", "p", "--label", "y")


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 10_001, N_ROWS) / 10_000
    return scores, (rng.uniform(size=N_ROWS) < scores).astype(int)


def comma(number):
    return f"{number:.4f}".replace(".", ",")


def written(path, values, header, row):
    path.write_text(header + "\n" + "".join(f"{row(s, y)}\n" for s, y in zip(*values, strict=True)))
    return path


FORMS = {
    "decimal commas": ("p;y", lambda s, y: f"{comma(s)};{y}", ("--decimal", ",")),
    "quoted decimal commas": ("p,y", lambda s, y: f'"{comma(s)}",{y}', ("--decimal", ",")),
    "per cent": ("p,y", lambda s, y: f"{100 * s:.2f}%,{y}", ()),
    "per cent after a blank": ("p,y", lambda s, y: f"{100 * s:.2f} %,{y}", ()),
    "per cent with commas": ("p;y", lambda s, y: f"{comma(100 * s)} %;{y}", ("--decimal", ",")),
    "blanks around names": (" p , y ", lambda s, y: f"{s:.4f},{y}", ()),
    "blanks in quotes": ('" p ";"y "', lambda s, y: f"{s:.4f};{y}", ()),
    "all of it": (" p ; y", lambda s, y: f" {comma(100 * s)}% ;{y}", ("--decimal", ",")),
}


@pytest.mark.parametrize("name", FORMS)
def test_numbers_are_read_as_they_are_written(calibrant, tmp_path, values, name):
    header, row, options = FORMS[name]
    plain = written(tmp_path / "plain.csv", values, "p,y", lambda s, y: f"{s:.4f},{y}")
    path = written(tmp_path / "rows.csv", values, header, row)
    fitted = [tmp_path / "plain.json", tmp_path / "model.json"]
    assert calibrant("fit", plain, *NAMES, "-o", fitted[0]).code == 0
    assert calibrant("fit", path, *NAMES, *options, "-o", fitted[1]).code == 0
    right = calibrant("verify", fitted[0], plain, "--json")
    found = calibrant("verify", fitted[1], path, *options, "--json")
    assert found.json["stands"]
    assert found.json["sentence"] == right.json["sentence"]
    out = tmp_path / "out.csv"
    applied = calibrant("apply", fitted[1], path, *options, "-o", out)
    assert applied.code == 0, applied.err
    # what was written is read again, with the same options
    assert calibrant("audit", out, "--score", "calibrated", "--label", "y", *options).code == 0
    rates = [
        calibrant("rate", one, *NAMES, *given, "--json").json
        for one, given in ((plain, ()), (path, options))
    ]
    assert rates[0]["estimate"] == rates[1]["estimate"]


def test_from_python(tmp_path, values):
    path = written(tmp_path / "rows.csv", values, " p; y", lambda s, y: f"{comma(100 * s)}%;{y}")
    found = BinningCalibrator(5).fit(scored(path, score="p", label="y", decimal=","))
    expected = BinningCalibrator(5).fit(*values)
    np.testing.assert_array_equal(found.tally_.counts, expected.tally_.counts)
    np.testing.assert_array_equal(found.tally_.positives, expected.tally_.positives)
    with pytest.raises(InvalidValueError, match="decimal must be one of"):
        scored(path, score="p", label="y", decimal=";")


@pytest.mark.parametrize(
    ("row", "decimal", "message"),
    [
        (lambda s, y: f"{comma(s)};{y}", ".", "give decimal=','"),
        (lambda s, y: f"{s:.4f};{y}", ",", "give decimal='.'"),
        (lambda s, y: f"1.{comma(s)};{y}", ",", "must contain real numbers"),
        (lambda s, y: f"{s:.4f}{'%' if y else ''};{y}", ".", "a per cent sign|per cent sign, or"),
    ],
)
def test_another_decimal_mark_is_named(tmp_path, values, row, decimal, message):
    path = written(tmp_path / "rows.csv", values, "p;y", row)
    with pytest.raises(InvalidTypeError, match=message):
        BinningCalibrator(5).fit(scored(path, score="p", label="y", decimal=decimal))


def test_a_percentage_is_never_taken_for_a_share_among_others(tmp_path, values):
    """Half of the entries with a sign, whichever comes first: an error that names a row."""
    for first in (0, 1):
        path = written(
            tmp_path / f"rows{first}.csv",
            values,
            "p,y",
            lambda s, y, first=first: f"{s:.4f}{'%' if y == first else ''},{y}",
        )
        with pytest.raises(InvalidTypeError, match="in row"):
            BinningCalibrator(5).fit(scored(path, score="p", label="y"))


def test_names_that_differ_in_blanks_only_stay_apart(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("p, p,y\n" + "0.1,0.9,0\n0.2,0.8,1\n" * 50)
    found = scored(path, score=" p", label="y")
    assert BinningCalibrator(1).fit(found).score_range_seen_ == (0.8, 0.9)


ODD = {
    "ragged.csv": b"p,y\n0.1,0\n0.2,1,5\n",
    "not-utf8.csv": b"p,y\n0.1,caf\xe9\n0.2,b\n",
    "quote.csv": b'p,y\n"0.1,0\n0.2,1\n',
    "no-rows.csv": b"p,y\n",
    "damaged.parquet": b"PAR1" + b"\x00" * 50 + b"PAR1",
    "cut.parquet": b"PAR1",
    "damaged.arrow": b"ARROW1\x00\x00" + b"\xff" * 60,
    "not-gzip.csv.gz": b"p,y\n0.1,0\n",
    "number-or-text.jsonl": b'{"p": 0.1, "y": 0}\n{"p": "x", "y": 1}\n',
    "other-label.jsonl": b'{"p": 0.1, "y": 0}\n{"p": 0.2, "y": "x"}\n',
    "other-field.jsonl": b'{"p": 0.1, "y": 0, "z": 1}\n{"p": 0.2, "y": 1, "z": {"a": 1}}\n',
    "list-field.jsonl": b'{"p": 0.1, "y": 0, "z": [1]}\n{"p": 0.2, "y": 1, "z": [[1]]}\n',
    "big-number.jsonl": b'{"p": 0.1, "y": 123456789012345678901234567890}\n' * 2,
    "twice.jsonl": b'{"p": 0.1, "p": 0.2, "y": 1}\n' * 2,
    "cut.jsonl": b'{"p": 0.1, "y": 0}\n{"p": 0.1, "y"',
    "nul.jsonl": b'{"p": 0.1, "y": 0}\n\x00\x00\n',
    "long-line.jsonl": b'{"p": 0.1, "y": 0, "z": "' + b"x" * (9 << 20) + b'"}\n',
}
WORDS_OF_ARROW = (
    "pyarrow",
    "ArrowInvalid",
    "JSON parse error",
    "JSON conversion",
    "CSV parse error",
    "CSV conversion",
    "Column(/",
    "block_size",
    "block size",
    "straddling",
    "thrift",
    "Thrift",
    "Parquet magic",
    "zlib",
    "flatbuffer",
    "Schema at index",
    "struct<",
    "list<",
    "int64",
    "double",
    "BinaryView",
    "RecordBatch",
)


@pytest.mark.parametrize("command", ["fit", "apply"])
@pytest.mark.parametrize("name", ODD)
def test_no_words_of_the_library_that_reads_files(calibrant, tmp_path, values, command, name):
    path = tmp_path / name
    path.write_bytes(ODD[name])
    arguments = ["fit", path, *NAMES]
    if command == "apply":
        plain = written(tmp_path / "plain.csv", values, "p,y", lambda s, y: f"{s:.4f},{y}")
        model = tmp_path / "model.json"
        calibrant("fit", plain, *NAMES, "-o", model)
        arguments = ["apply", model, path, "-o", tmp_path / "out.csv"]
    answer = calibrant(*arguments)
    assert "unexpected" not in answer.err
    assert [word for word in WORDS_OF_ARROW if word in answer.err] == []
