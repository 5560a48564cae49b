"""As a process: what --help imports, what signals leave behind, pipes, and memory."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant.cli._app import app

COMMAND = [sys.executable, "-m", "calibrant"]
HEAVY = (
    "numpy",
    "pandas",
    "sklearn",
    "scipy",
    "rich",
    "pyarrow",
    "jinja2",
    "calibrant.sample.rows",
    "calibrant.calibrators",
)


@pytest.mark.parametrize(
    "arguments", [["--help"], [], ["--version"], ["fit", "--help"], ["plan", "--nonsense"]]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    script = (
        f"import sys, runpy\nsys.argv = ['calibrant', *{arguments!r}]\ntry:\n   "
        " runpy.run_module('calibrant', run_name='__main__')\nexcept SystemExit:\n   "
        " pass\nprint(chr(10).join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.splitlines())
    assert "calibrant.cli._app" in loaded
    assert not loaded & set(HEAVY)


def test_import_of_the_package_brings_no_click() -> None:
    script = "import sys, calibrant.cli; print('click' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False False"


def test_without_click_it_says_what_to_install() -> None:
    script = "import sys; sys.modules['click'] = None; from calibrant.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install click" in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_where_an_error_came_from(folder: Path) -> None:
    arguments = [*COMMAND, "fit", "nowhere.csv", "--score", "p", "--label", "y"]
    plain = subprocess.run(arguments, capture_output=True, text=True)
    debug = subprocess.run([*arguments, "--debug"], capture_output=True, text=True)
    by_environment = subprocess.run(
        arguments, capture_output=True, text=True, env=os.environ | {"CALIBRANT_DEBUG": "1"}
    )
    assert plain.returncode == 2
    assert "Traceback" not in plain.stderr
    assert "Traceback" in debug.stderr
    assert "Traceback" in by_environment.stderr


def test_what_no_one_foresaw_is_one_line_too(
    calibrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(**options: Any) -> None:
        raise RuntimeError("a\nsurprise")

    monkeypatch.setattr("calibrant.assess.plan.plan.plan", fails)
    handler = signal.getsignal(signal.SIGTERM)
    answer = calibrant("plan", "--epsilon", "0.1")
    assert answer.code == 2
    assert answer.out == ""
    assert "RuntimeError: a surprise" in answer.err
    assert "please report it with the output of --debug" in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    with pytest.raises(RuntimeError):
        calibrant("plan", "--epsilon", "0.1", "--debug")
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_reader_that_has_seen_enough_is_no_error(model: Path, folder: Path) -> None:
    line = (
        f"{sys.executable} -m calibrant apply model.json scores.csv -o - 2> err.txt | head -1; echo"
        " ${PIPESTATUS[0]}"
    )
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=folder)
    assert done.stdout.splitlines()[0].startswith("id,p,y")
    assert done.stdout.splitlines()[1] == "0"
    assert (folder / "err.txt").read_text() == ""


@pytest.fixture
def endless(model: Path, folder: Path, table: pa.Table) -> Path:
    """A file that takes long to apply a model to."""
    lines = (folder / "scores.csv").read_text().split("\n", 1)
    with (folder / "long.csv").open("w") as file:
        file.write(lines[0] + "\n")
        for _ in range(300):
            file.write(lines[1])
    return folder / "long.csv"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "number", "code"),
    [
        ("out.jsonl", signal.SIGINT, 130),
        ("out.parquet", signal.SIGTERM, 143),
        ("out.csv.gz", signal.SIGINT, 130),
    ],
)
def test_a_stopped_apply_leaves_no_half_file(
    number: signal.Signals, code: int, output: str, endless: Path, folder: Path
) -> None:
    before = sorted(path.name for path in folder.iterdir())
    # standard input, so that there is a temporary file to remove as well
    folder_of_copies = folder / "tmp"
    folder_of_copies.mkdir()
    with endless.open("rb") as file:
        process = subprocess.Popen(
            [*COMMAND, "apply", "model.json", "-", "-o", output],
            stdin=file,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=os.environ | {"TMPDIR": str(folder_of_copies)},
        )
        try:
            while not list(folder.glob(f".{output}.*.tmp")):
                assert process.poll() is None, "it ended before it could be stopped"
                time.sleep(0.01)
            process.send_signal(number)
            _, err = process.communicate(timeout=600)
        finally:
            process.kill()
    assert process.returncode == code
    assert err.strip() == "stopped; no partial file was left behind"
    assert list(folder_of_copies.iterdir()) == []
    folder_of_copies.rmdir()
    assert sorted(path.name for path in folder.iterdir()) == before


PEAK = """
import sys
from calibrant.cli._app import app
try:
    app.main(sys.argv[1:])
finally:  # not ru_maxrss, in which a process begins with the peak of the one that started it
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print(int(status["VmHWM"].split()[0]) / 1024, file=sys.stderr)
"""


def peak_megabytes(*arguments: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments], capture_output=True, text=True, check=True
    )
    return float(done.stderr.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("output", ["out.parquet", "out.csv"])
def test_memory_does_not_grow_with_the_rows(output: str, model: Path, folder: Path) -> None:
    rng = np.random.default_rng(0)
    schema = pa.schema([("p", pa.float64()), ("key", pa.int64())])
    for name, rounds in (("short.parquet", 1), ("long.parquet", 12)):
        with pq.ParquetWriter(folder / name, schema) as writer:
            for start in range(rounds):
                keys = np.arange(262_144) + 262_144 * start
                writer.write_table(
                    pa.table({"p": rng.uniform(size=262_144), "key": keys}, schema=schema)
                )
    small = peak_megabytes("apply", "model.json", "short.parquet", "-o", output, "-q")
    large = peak_megabytes("apply", "model.json", "long.parquet", "-o", f"long-{output}", "-q")
    rows_of_long = 12 * 262_144
    # the output alone would be more than this, were it held in memory
    assert large - small < 8 * 3 * rows_of_long / 2**20
    assert large < 1000


def test_json_and_nothing_else_on_standard_output(model: Path, folder: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "apply", "model.json", "scores.csv", "-o", "out.csv", "--json"],
        capture_output=True,
        text=True,
    )
    found: Any = json.loads(done.stdout)
    assert found["rows"] == 4000
    assert done.stderr == ""


@pytest.mark.slow
def test_a_bar_moves_where_someone_watches(model: Path, folder: Path) -> None:
    pty = pytest.importorskip("pty")
    schema = pa.schema([("p", pa.float64())])
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(folder / "long.parquet", schema) as writer:
        for _ in range(24):
            writer.write_table(pa.table({"p": rng.uniform(size=262_144)}, schema=schema))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "apply", "model.json", "long.parquet", "-o", "out.csv"],
        stderr=theirs,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    assert process.wait() == 0
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown)
    rows = {int(text) for text in re.findall(rb"(\d+)/6291456", plain)}
    assert len(rows) > 3
    assert max(rows) > min(rows)


def test_every_command_runs_without_docstrings(folder: Path, model: Path) -> None:
    """PYTHONOPTIMIZE=2 removes docstrings, which are the help of commands."""
    columns = ["--score", "p", "--label", "y"]
    commands = [
        ["--help"],
        *([name, "--help"] for name in app.list_commands(click.Context(app))),
        ["fit", "scores.csv", *columns, "-o", "made.json"],
        ["audit", "scores.csv", *columns, "-o", "audit.html"],
        ["apply", "made.json", "scores.csv", "-o", "out.csv"],
        ["verify", "made.json", "scores.csv"],
        ["export", "made.json", "--to", "python", "-o", "made.py"],
    ]
    code = (
        "import json, sys; from click.testing import CliRunner; from calibrant.cli._app import"
        " app\nfor command in json.loads(sys.argv[1]):\n    result = CliRunner().invoke(app,"
        " command)\n    if result.exit_code: sys.exit(f'{command}: {result.output}')"
    )
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code, json.dumps(commands)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
