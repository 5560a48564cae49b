"""Other people's text cannot steer a terminal, and odd streams and names have clear errors."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrant import load_model, save_model
from calibrant.cli._output import harmless

COMMAND = [sys.executable, "-m", "calibrant"]
COLUMNS = ("--score", "p", "--label", "y")
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


def broad(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.broad)


@pytest.fixture
def evil(folder: Path, table: pa.Table) -> Path:
    """Rows whose segments, a label and a column's name hold terminal escapes."""
    segments = pa.array([f"{EVIL}{name}" for name in table["region"].to_pylist()])
    labels = pa.array([f"yes{EVIL}" if label else "no" for label in table["y"].to_pylist()])
    table = (
        table.set_column(3, "region", segments)
        .append_column(f"q{EVIL}", table["p"])
        .set_column(2, "y", labels)
    )
    pq.write_table(table, folder / "evil.parquet")
    return folder / "evil.parquet"


FIT = (
    "fit",
    "evil.parquet",
    *COLUMNS,
    "--segment",
    "region",
    "--pos-label",
    f"yes{EVIL}",
    "--bins",
    "3",
)


@pytest.mark.broad
def test_no_command_prints_what_steers_a_terminal(evil: Path, folder: Path, calibrant: Any) -> None:
    name = f"m{EVIL}.json"
    fitted = calibrant(*FIT, "-o", name)
    assert fitted.code == 0, fitted.err
    assert "\\u001b[2J" in fitted.out
    saved = load_model(folder / name)
    for fake in ({"fingerprint": EVIL, "rows": 1}, {EVIL: 1}, {"rows": EVIL}):
        save_model(saved, folder / "fake.json", provenance=fake, overwrite=True)
        assert not STEERING.search(calibrant("verify", "fake.json", "evil.parquet").out)
    runs = [
        (*FIT, "--json"),
        (*FIT, "-o", name),
        ("audit", "evil.parquet", *COLUMNS, "--segment", "region", "--pos-label", f"yes{EVIL}"),
        ("audit", "evil.parquet", "--label", "y"),
        ("audit", "evil.parquet", "--score", EVIL, "--label", "y"),
        ("audit", f"{EVIL}.csv", *COLUMNS),
        ("apply", name, "evil.parquet", "-o", f"out{EVIL}.csv"),
        ("verify", name, "evil.parquet"),
        ("verify", "fake.json", "evil.parquet"),
        ("verify", "fake.json", "evil.parquet", "--json"),
        (EVIL,),
        ("fit", f"--{EVIL}"),
    ]
    for arguments in runs:
        answer = calibrant(*arguments)
        for shown in (answer.out, answer.err):
            assert not STEERING.search(shown), (arguments, shown)
        if "--json" in arguments:
            json.loads(answer.out)


@pytest.mark.broad
def test_tables_keep_one_line_for_each_region(
    folder: Path, table: pa.Table, calibrant: Any
) -> None:
    segments = pa.array([f"{name}\nfake  9,999" for name in table["region"].to_pylist()])
    pq.write_table(table.set_column(3, "region", segments), folder / "lines.parquet")
    answer = calibrant("fit", "lines.parquet", *COLUMNS, "--segment", "region", "--bins", "2", "-q")
    assert not [line for line in answer.out.splitlines() if line.startswith("fake")]


def on_a_terminal(*arguments: str) -> bytes:
    """What a command writes to a terminal."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=theirs, stderr=subprocess.DEVNULL
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # how a terminal of Linux ends
            pass
    os.close(ours)
    assert process.returncode == 0
    return shown


def test_programs_get_the_text_and_terminals_a_harmless_one(
    evil: Path, folder: Path, calibrant: Any
) -> None:
    assert calibrant(*FIT, "-o", "model.json").code == 0
    (folder / "new.csv").write_text(f'p,region\n0.5,"{EVIL}\nnorth"\n')
    for arguments in (
        ("export", "model.json", "--to", "sql", "--dialect", "sqlite"),
        ("apply", "model.json", "new.csv", "-o", "-"),
    ):
        assert EVIL in calibrant(*arguments).output.decode()
        shown = on_a_terminal(*arguments).decode().replace("\r\n", "\n")
        assert not STEERING.search(shown)
        assert harmless(EVIL) in shown
    assert (
        calibrant("export", "model.json", "--to", "sql", "--dialect", "sqlite", "-o", "m.sql").code
        == 0
    )
    assert EVIL in (folder / "m.sql").read_text()


class TestOddStreams:
    @pytest.mark.parametrize(
        "arguments", ["plan --rows 1000", "fit scores.csv --score p --label y -o new.json"]
    )
    def test_a_closed_standard_output_is_refused_before_any_work(
        self, arguments: str, folder: Path
    ) -> None:
        line = f"{sys.executable} -m calibrant {arguments} >&-"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=folder)
        assert done.returncode == 2
        assert done.stderr.startswith("error: standard output must be open; got a closed one")
        assert len(done.stderr.splitlines()) == 1
        assert not (folder / "new.json").exists()

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
    def test_a_full_disk_is_told_once(self, model: Path, folder: Path) -> None:
        for arguments in ("plan --rows 1000", "apply model.json scores.csv -o -"):
            line = f"{sys.executable} -m calibrant {arguments} > /dev/full"
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=folder)
            assert done.returncode == 2
            assert done.stderr == "error: No space left on device\n"

    def test_a_reader_that_left_early_gets_no_complaint(self, folder: Path) -> None:
        line = (
            f"{sys.executable} -m calibrant fit scores.csv --score p --label y --json | head -1;"
            " echo $PIPESTATUS"
        )
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=folder)
        assert done.stdout.splitlines() == ["{", "0"]
        assert done.stderr == ""


@pytest.mark.broad
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are text")
def test_names_that_are_not_utf8(model: Path, folder: Path, calibrant: Any) -> None:
    odd = os.fsdecode(b"odd\xff")
    for arguments in (
        ("fit", "scores.csv", *COLUMNS, "-o", f"{odd}.json"),
        ("apply", f"{odd}.json", "scores.csv", "-o", f"{odd}.parquet"),
        ("apply", f"{odd}.json", "scores.csv", "-o", f"{odd}.arrow"),
        ("apply", f"{odd}.json", "scores.csv", "-o", f"{odd}.csv"),
        ("audit", "scores.csv", *COLUMNS, "-o", f"{odd}.html", "--json"),
        ("export", f"{odd}.json", "--to", "python", "-o", f"{odd}.py"),
        ("verify", f"{odd}.json", "scores.csv"),
    ):
        answer = calibrant(*arguments)
        assert answer.code == 0, (arguments, answer.err)
    answer = calibrant("fit", f"{odd}.csv", *COLUMNS)
    assert answer.code == 2
    assert answer.err.startswith("error: the name of a file must be UTF-8; got 'odd\\udcff.csv'")


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def drawn_original(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, calibrant: Any
) -> Path:
    """A few rows, and a model of them whose bins were cut by drawn rows."""
    folder = tmp_path_factory.mktemp("drawn")
    with contextlib.chdir(folder):
        Path("scores.csv").write_text(
            "p,y\n" + "".join(f"{row['p']},{row['y']}\n" for row in table.slice(0, 300).to_pylist())
        )
        split = ("--method", "binning", "--bins", "3", "--pilot", "0.3", "-o", "drawn.json")
        fitted = calibrant("fit", "scores.csv", *COLUMNS, *split)
    assert fitted.code == 0, fitted.err
    return folder


class TestOddProvenance:
    """Provenance is free text of whoever wrote the file: `verify` answers whatever it holds."""

    NAMES = ("rows", "fingerprint", "settings", "id_type", "files")
    SETTINGS = ("random_state", "skip_missing", "holdout", "time", "calibration_size", "method")

    def check(self, provenance: dict[str, Any], model: Path, calibrant: Any) -> None:
        saved = load_model(model)
        odd = model.with_name("odd.json")
        save_model(saved, odd, provenance={**saved.provenance, **provenance}, overwrite=True)
        answer = calibrant("verify", odd.name, "scores.csv", "--json")
        assert "unexpected error" not in answer.err
        assert answer.code in (0, 1, 3), answer.err
        assert answer.json["stands"] is {0: True, 1: False, 3: None}[answer.code]

    @pytest.mark.broad
    @pytest.mark.parametrize("name", SETTINGS)
    @pytest.mark.parametrize(
        "value", [None, "x", *map(broad, [-1, 10**30, 1e300, "", [], [1], {}, True])]
    )
    def test_of_one_setting(self, name: str, value: Any, drawn: Path, calibrant: Any) -> None:
        settings = load_model(drawn).provenance["settings"]
        self.check({"settings": {**settings, name: value}}, drawn, calibrant)

    @pytest.mark.broad
    @pytest.mark.parametrize("name", SETTINGS)
    def test_without_one_setting(self, name: str, drawn: Path, calibrant: Any) -> None:
        settings = load_model(drawn).provenance["settings"]
        self.check(
            {"settings": {entry: settings[entry] for entry in settings if entry != name}},
            drawn,
            calibrant,
        )

    @pytest.mark.broad
    @given(provenance=st.dictionaries(st.sampled_from(NAMES), PLAIN))
    @settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
    def test_of_anything(self, provenance: dict[str, Any], drawn: Path, calibrant: Any) -> None:
        self.check(provenance, drawn, calibrant)

    @pytest.fixture
    def drawn(self, drawn_original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        for name in ("scores.csv", "drawn.json"):
            shutil.copy(drawn_original / name, tmp_path)
        monkeypatch.chdir(tmp_path)
        return tmp_path / "drawn.json"
