"""Output files: what may be replaced, what is never touched, and who wins where two write at once."""

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant._file import draft_of, write_file
from calibrant.cli._app import app
from calibrant.cli._target import InputPath, OutputPath

COLUMNS = ("--score", "p", "--label", "y")


def writers(data: str = "scores.csv") -> dict[str, tuple[str, ...]]:
    """Every command that writes a file; -o follows."""
    return {
        "fit": ("fit", data, *COLUMNS, "--bins", "3"),
        "audit": ("audit", data, *COLUMNS, "--bins", "3", "--model", "model.json"),
        "apply": ("apply", "model.json", data),
        "export": ("export", "model.json", "--to", "sql", "--dialect", "duckdb"),
    }


ENDS = {"fit": "json", "audit": "html", "apply": "csv", "export": "sql"}


class TestInputsAreKept:
    @pytest.fixture
    def parts(self, model: Path, folder: Path) -> Path:
        """A folder of files to read; one ends in .html, so that audit could write to it."""
        (folder / "parts").mkdir()
        for name in ("a.csv", "b.html"):
            shutil.copy(folder / "scores.csv", folder / "parts" / name)
        return folder / "parts"

    @pytest.mark.parametrize(
        ("command", "data", "read"),
        [
            ("fit", "parts/*.csv", "parts/a.csv"),
            ("fit", "parts", "parts/a.csv"),
            ("fit", "scores.csv", "scores.csv"),
            ("audit", "parts/*.html", "parts/b.html"),
            ("apply", "parts/*.csv", "parts/a.csv"),
        ],
    )
    def test_rows(
        self, command: str, data: str, read: str, parts: Path, folder: Path, calibrant: Any
    ) -> None:
        before = (folder / read).read_bytes()
        soft = folder / f"soft.{ENDS[command]}"
        hard = folder / f"hard.{ENDS[command]}"
        soft.symlink_to(read)
        os.link(read, hard)
        for target in (read, f"./{read}", soft.name, hard.name):
            answer = calibrant(
                *writers(data)[command], "--format", "csv", "-o", target, "--overwrite"
            )
            assert answer.code == 2
            assert "-o must not name a file that is read" in answer.err
            assert (folder / read).read_bytes() == before

    def test_models(self, model: Path, folder: Path, calibrant: Any) -> None:
        for name in ("model.html", "model.csv"):
            shutil.copy(model, folder / name)
        before = model.read_bytes()
        for arguments in (
            ("audit", "scores.csv", *COLUMNS, "--model", "model.html", "-o", "model.html"),
            ("apply", "model.csv", "scores.csv", "-o", "model.csv"),
            ("export", "model.csv", "--to", "python", "-o", "model.csv"),
        ):
            answer = calibrant(*arguments, "--overwrite")
            assert answer.code == 2
            assert "-o must not name a file that is read" in answer.err
            assert (folder / arguments[-1]).read_bytes() == before

    def test_standard_input(self, model: Path, folder: Path) -> None:
        before = (folder / "scores.csv").read_bytes()
        command = [
            sys.executable,
            "-m",
            "calibrant",
            "apply",
            "model.json",
            "-",
            "-o",
            "scores.csv",
            "--overwrite",
        ]
        with (folder / "scores.csv").open("rb") as file:
            done = subprocess.run(command, stdin=file, capture_output=True, text=True)
        assert done.returncode == 2
        assert "-o must not name a file that is read" in done.stderr
        assert (folder / "scores.csv").read_bytes() == before

    def test_every_path_of_every_command_is_known_as_input_or_output(self) -> None:
        """The comparison goes by these types, so that no command can forget it."""
        context = click.Context(app)
        for name in app.list_commands(context):
            for parameter in app.get_command(context, name).params:
                words = parameter.make_metavar(context).strip("[].")
                if words in ("FILE", "MODEL", "DATA", "FOLDER"):
                    assert isinstance(parameter.type, InputPath | OutputPath), (
                        f"{name} {parameter.opts}"
                    )


class TestOnlyRegularFilesAreReplaced:
    @pytest.mark.parametrize("command", ENDS)
    @pytest.mark.parametrize("linked", [False, True])
    def test_a_pipe_stays_a_pipe(
        self, command: str, linked: bool, model: Path, folder: Path, calibrant: Any
    ) -> None:
        pipe = folder / f"pipe.{ENDS[command]}"
        os.mkfifo(pipe)
        target = folder / f"link.{ENDS[command]}" if linked else pipe
        if linked:
            target.symlink_to(pipe)
        answer = calibrant(*writers()[command], "-o", target.name, "--overwrite")
        assert answer.code == 2
        assert "the output must be a regular file" in answer.err
        assert len(answer.err.splitlines()) == 1
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert target.is_symlink() is linked

    @pytest.mark.broad
    @pytest.mark.parametrize("command", ENDS)
    def test_a_link_is_followed(
        self, command: str, model: Path, folder: Path, calibrant: Any
    ) -> None:
        end = ENDS[command]
        (folder / "away").mkdir()
        (folder / "away" / f"old.{end}").write_text("old")
        for name in ("old", "new"):  # one names a file, the other nothing yet
            (folder / f"{name}.{end}").symlink_to(folder / "away" / f"{name}.{end}")
            assert calibrant(*writers()[command], "-o", f"{name}.{end}", "--overwrite").code == 0
            assert (folder / f"{name}.{end}").is_symlink()
            assert (folder / "away" / f"{name}.{end}").stat().st_size > 100

    def test_standard_output_by_another_name(self, model: Path, folder: Path) -> None:
        command = [sys.executable, "-m", "calibrant", "export", "model.json", "--to", "python"]
        done = subprocess.run(
            [*command, "-o", "/dev/stdout", "--overwrite"], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert "the output must be a regular file; got '/dev/stdout'" in done.stderr

    def test_what_turns_into_something_else_meanwhile(self, tmp_path: Path) -> None:
        def write_while_it_changes() -> None:
            with draft_of(tmp_path / "a", overwrite=True):
                os.mkfifo(tmp_path / "a")

        with pytest.raises(ValueError, match="regular file"):
            write_while_it_changes()
        assert stat.S_ISFIFO((tmp_path / "a").stat().st_mode)
        assert os.listdir(tmp_path) == ["a"]


class TestTwoWriters:
    @pytest.mark.parametrize("links", [True, False])
    def test_only_one_succeeds(
        self, links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def none(*args: Any) -> None:
            raise PermissionError(1, "no links here")

        if not links:
            monkeypatch.setattr(os, "link", none)
        n_writers = 12
        won = []
        ready = threading.Barrier(n_writers)

        def write(number: int) -> None:
            with draft_of(tmp_path / "a") as draft:
                draft.write_text(str(number))
                ready.wait()
            won.append(number)

        threads = [
            threading.Thread(target=_quiet, args=(write, number)) for number in range(n_writers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert (tmp_path / "a").read_text() == str(won[0])
        assert os.listdir(tmp_path) == ["a"]

    @pytest.mark.parametrize(
        ("command", "links"), [*((command, True) for command in ENDS), ("fit", False)]
    )
    @pytest.mark.broad
    def test_the_other_runs_while_the_first_moves_its_draft(
        self, command: str, links: bool, model: Path, folder: Path, calibrant: Any
    ) -> None:
        """The first has looked for the last time, and the path was free."""
        target = folder / f"moved.{ENDS[command]}"
        codes = []

        def after_the_other(move: Any) -> Any:
            def wrapped(*names: Any) -> None:
                if not codes:
                    codes.append(None)
                    codes[0] = calibrant(*writers()[command], "-o", target.name).code
                    codes.append(target.read_bytes())
                move(*names)

            return wrapped

        def none(*names: Any) -> None:
            raise PermissionError(1, "no links here")

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "link", after_the_other(os.link) if links else none)
            patched.setattr(os, "replace", after_the_other(os.replace))
            code = calibrant(*writers()[command], "-o", target.name).code
        other, seen = codes
        assert sorted([code, other]) == [0, 2]
        assert other == 2 or target.read_bytes() == seen

    @pytest.mark.parametrize("command", ENDS)
    def test_a_file_that_comes_during_the_work_is_kept(
        self,
        command: str,
        model: Path,
        folder: Path,
        calibrant: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The path is free when the command begins, and taken when it would write."""
        target = folder / f"out.{ENDS[command]}"
        monkeypatch.setattr("calibrant.cli._target.check_target", lambda options: None)
        place = "_report" if command == "audit" else command
        monkeypatch.setattr(
            f"calibrant.cli.{place}.check_target", lambda options: target.write_text("first")
        )
        answer = calibrant(*writers()[command], "-o", target.name)
        assert answer.code == 2
        assert "already exists; use --overwrite to replace it" in answer.err
        assert target.read_text() == "first"


def _quiet(write: Any, number: int) -> None:
    with suppress(FileExistsError):
        write(number)


KILLED = """
import os, signal, sys
from calibrant._file import draft_of
with draft_of(sys.argv[1], overwrite=True) as draft:
    draft.write_text("half")
    if len(sys.argv) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    print("writing", flush=True)
    sys.stdin.read()
"""


def drafts(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".tmp"))


class TestDrafts:
    def test_drafts_of_killed_writers_are_removed(self, tmp_path: Path) -> None:
        target = tmp_path / "a [1].csv"
        for name in (target, target, tmp_path / "b"):
            done = subprocess.run([sys.executable, "-c", KILLED, str(name)])
            assert done.returncode < 0
        strange = tmp_path / ".a [1].csv.0123.tmp"  # not named as we name drafts
        strange.write_text("mine")
        assert len(drafts(tmp_path)) == 3  # the second writer has removed the draft of the first
        write_file(b"whole", target)
        assert target.read_bytes() == b"whole"
        assert strange.name in drafts(tmp_path)
        assert len(drafts(tmp_path)) == 2  # the draft of another file is left too

    def test_a_draft_is_removed_if_a_signal_comes_just_after_it_was_made(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = []

        def stopped(file: Any, operation: int) -> None:
            made.extend(drafts(tmp_path))
            raise KeyboardInterrupt

        monkeypatch.setattr("calibrant._file.fcntl.flock", stopped)
        with pytest.raises(KeyboardInterrupt):
            write_file(b"whole", tmp_path / "a.csv")
        assert len(made) == 1
        assert os.listdir(tmp_path) == []

    def test_drafts_of_living_writers_are_kept(self, tmp_path: Path) -> None:
        target = tmp_path / "a.csv"
        command = [sys.executable, "-c", KILLED, str(target), "wait"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"writing\n"
            write_file(b"first", target)
            assert len(drafts(tmp_path)) == 1
            process.communicate(b"", timeout=600)
        assert process.returncode == 0
        assert target.read_text() == "half"
        assert drafts(tmp_path) == []


def test_json_lines_hold_no_nan_at_any_depth(model: Path, folder: Path, calibrant: Any) -> None:
    nan = float("nan")
    infinite = float("inf")
    rows = pa.table(
        {
            "p": [0.5, 0.25],
            "plain": [nan, infinite],
            "list": [[nan, 1.0], None],
            "record": [{"a": -infinite, "b": [[nan]]}, {"a": 1.5, "b": None}],
        }
    )
    pq.write_table(rows, folder / "new.parquet")
    assert calibrant("apply", "model.json", "new.parquet", "-o", "out.jsonl").code == 0

    def refused(name: str) -> None:
        raise AssertionError(f"bare {name}")

    lines = (folder / "out.jsonl").read_text().splitlines()
    first, second = (json.loads(line, parse_constant=refused) for line in lines)
    assert (first["plain"], first["list"], first["record"]) == (
        None,
        [None, 1.0],
        {"a": None, "b": [[None]]},
    )
    assert (second["plain"], second["list"], second["record"]) == (
        None,
        None,
        {"a": 1.5, "b": None},
    )
