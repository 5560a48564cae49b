"""Kill the writers of a store at random moments: nothing acknowledged is lost or counted twice.

Several models share one store. Some are written to by calls, one by `calibrant watch -` from a
pipe, and one by `calibrant watch` from a log that is rotated. After each kill the store is opened
again, which compares its tests with its counts. At the end, every tally must equal a recount.
"""

import faulthandler
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import BinningCalibrator, Partition, save_model
from calibrant.cli._app import app
from calibrant.monitor import Monitor
from calibrant.monitor.model_rows import ModelRows
from calibrant.monitor.tables import PREDICTIONS

BATCH = 20
ROWS_A_DAY = 60
FIRST_DAY = 100.0
CALLED = ("called 0", "called 1", "called 2")
LONGEST = 150.0  # seconds, more than the timeout of the store
SETTINGS = ("--maturity", "7", "--remember", "36500")
SOFT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def fitted(seed: int = 0) -> BinningCalibrator:
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=2000)
    return BinningCalibrator(partition=Partition.fixed_width(4)).fit(
        scores, rng.uniform(size=2000) < scores
    )


def row_of(number: int) -> tuple[float, int]:
    """The score and the label of a row, so that its number is enough for a recount."""
    return (number % 97) / 97.0, int(number * 7919 % 10 < 4)


def time_of(number: int) -> float:
    """When a row is predicted: days go by, so that kills also meet the counting of mature days."""
    return FIRST_DAY + (number // BATCH * BATCH) / ROWS_A_DAY


def line_of(number: int) -> bytes:
    score, label = row_of(number)
    at = time_of(number)
    line = {"id": f"row {number}", "score": score, "at": at, "label": label, "labelled_at": at}
    return json.dumps(line).encode() + b"\n"


class Attack:
    """A store, its models, and how many rows of each were handed in."""

    def __init__(self, store: str, seed: int) -> None:
        self.store = store
        self.rng = np.random.default_rng(seed)
        self.folder = Path(tempfile.mkdtemp(prefix="calibrant-kill-"))
        os.chdir(self.folder)  # the quarantine of a server is in the current folder
        self.models = {name: fitted(number) for number, name in enumerate((*CALLED, "pipe", "log"))}
        for name, model in self.models.items():
            save_model(model, self.folder / f"{name}.json")
            self.opened(name).close()
        self.journal = self.folder / "journal.txt"
        self.journal.touch()
        self.log = self.folder / "labels.jsonl"
        self.log.write_bytes(b"".join(map(line_of, range(BATCH))))
        self.n_piped = 0
        self.n_logged = BATCH
        self.n_rotated = 0
        self.kills: dict[str, int] = {}
        self.what = "the first run"  # a log is followed from then on
        self.ended(self.begin(self.watch_once))

    def opened(self, name: str) -> Monitor:
        """A monitor of one of the models."""
        model = self.models[name]
        return Monitor(
            self.store, model, maturity=7, name=name, remember=36_500, timeout=120, random_state=0
        )

    def begin(self, work: Any, *arguments: Any) -> int:
        """Start a process; return its number."""
        child = os.fork()
        if child == 0:
            faulthandler.register(signal.SIGUSR1)
            try:
                work(*arguments)
            except BaseException:
                traceback.print_exc()
            os._exit(99)
        return child

    def end(self, child: int, number: int) -> int:
        """Send a signal, and return the exit code: negative if the signal ended the process."""
        os.kill(child, number)
        name = f"{signal.Signals(number).name} of {self.what}"
        self.kills[name] = self.kills.get(name, 0) + 1
        return self.ended(child)

    def ended(self, child: int) -> int:
        """Wait until a process has ended, and return its exit code."""
        deadline = time.monotonic() + LONGEST
        while True:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGUSR1)  # it says where it is
                time.sleep(1.0)
                os.kill(child, signal.SIGKILL)
                fail(f"a process of {self.what} does not end; see {self.folder}/out.txt")
            time.sleep(0.002)

    def wait_until(self, child: int, condition: Any) -> None:
        """Wait for something that a process does."""
        deadline = time.monotonic() + LONGEST
        while not condition():
            if os.waitpid(child, os.WNOHANG)[0]:
                fail(f"a process of {self.what} failed; see {self.folder}/out.txt")
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGUSR1)
                time.sleep(1.0)
                os.kill(child, signal.SIGKILL)
                fail(f"a process of {self.what} does nothing; see {self.folder}/out.txt")
            time.sleep(0.005)

    def run(self, times: int) -> None:
        """Kill so many writers, and compare all tallies in the end."""
        kinds = (self.kill_calls, self.kill_pipe, self.kill_log)
        for number in range(times):
            kinds[int(self.rng.choice(3, p=(0.5, 0.25, 0.25)))]()
            if (number + 1) % 50 == 0 or number + 1 == times:
                rows = sum(self.handed_in().values()) + self.n_piped + self.n_logged
                print(f"{number + 1} kills: {rows:,} rows", flush=True)
        self.recount()
        print(", ".join(f"{count} {name}" for name, count in sorted(self.kills.items())))
        shutil.rmtree(self.folder)

    # Calls

    def kill_calls(self) -> None:
        """Kill a process that hands in batches for several models by turns."""
        self.what = "calls"
        before = self.journal.stat().st_size
        writer = self.begin(self.write_for_ever, self.handed_in())
        self.wait_until(writer, lambda: self.journal.stat().st_size > before)
        time.sleep(float(self.rng.uniform(0.0, 0.25)))
        if self.end(writer, signal.SIGKILL) != -signal.SIGKILL:
            fail("a process that calls failed")
        lines = [line.split(",") for line in self.journal.read_text().splitlines()]
        for name in CALLED:
            done = [int(number) for word, one, number in lines if (word, one) == ("done", name)]
            with self.opened(name) as monitor:
                for number in done[-5:]:
                    ids = [f"row {number + step}" for step in range(BATCH)]
                    with monitor.store.reading() as connection:
                        rows = ModelRows(connection, monitor.number)
                        found = rows.by_id(PREDICTIONS, ids, "label")
                    known = {one: row[1] for one, row in found.items()}
                    every = range(number, number + BATCH)
                    if known != {f"row {one}": row_of(one)[1] for one in every}:
                        fail(f"acknowledged rows from {number} on of {name} are lost")

    def write_for_ever(self, first: dict[str, int]) -> None:
        """Log "begun", write, log "done", again and again."""
        monitors = {name: self.opened(name) for name in CALLED}
        with self.journal.open("a", buffering=1) as journal:
            while True:
                for name, monitor in monitors.items():
                    numbers = range(first[name], first[name] + BATCH)
                    journal.write(f"begun,{name},{numbers[0]}\n")
                    self.hand_in(monitor, numbers)
                    journal.write(f"done,{name},{numbers[0]}\n")
                    first[name] += BATCH

    @staticmethod
    def hand_in(monitor: Monitor, numbers: range) -> None:
        """Predictions and labels of some rows."""
        ids = [f"row {number}" for number in numbers]
        rows = [row_of(number) for number in numbers]
        at = np.full(len(ids), time_of(numbers[0]))
        monitor.record_many(ids, [score for score, _ in rows], at)
        monitor.resolve_many(ids, [label for _, label in rows], at)

    def handed_in(self) -> dict[str, int]:
        """For each model, the batch that was begun and not acknowledged, or else the next one."""
        next_one = dict.fromkeys(CALLED, 0)
        for line in self.journal.read_text().splitlines():
            word, name, number = line.split(",")
            next_one[name] = int(number) + (BATCH if word == "done" else 0)
        return next_one

    # Pipes

    def kill_pipe(self) -> None:
        """Stop `calibrant watch -` by any signal.

        Unless it is SIGKILL, every line that was written to the pipe is in the store. After SIGKILL
        the first ones are, and the rest is sent again.
        """
        self.what = "pipe"
        number = int(self.rng.choice([signal.SIGKILL, *SOFT]))
        read_end, write_end = os.pipe()
        watcher = self.begin(self.watch, "pipe", "-", read_end, write_end)
        os.close(read_end)
        self.n_piped = self.pour(write_end, int(self.rng.integers(1, 60)))
        if number in SOFT:  # before it reads, it stops as any other command
            self.wait_until(watcher, lambda: self.n_recorded("pipe") >= self.n_piped)
        time.sleep(float(self.rng.uniform(0.0, 0.8)))
        self.n_piped = self.pour(write_end, int(self.rng.integers(1, 200)))
        os.write(write_end, line_of(self.n_piped)[: int(self.rng.integers(0, 30))])
        code = self.end(watcher, number)
        os.close(write_end)
        stored = self.n_recorded("pipe")
        if number == signal.SIGKILL:
            self.n_piped = stored  # those after it were never acknowledged
        elif code != (0 if number == signal.SIGINT else 128 + number):
            fail(f"exit code {code} after signal {number}; see {self.folder}/out.txt")
        elif stored < self.n_piped:
            fail(f"{self.n_piped - stored} lines of the pipe were lost by signal {number}")
        self.n_piped = max(stored, self.n_piped)  # a server may finish the work of a killed client

    def pour(self, pipe: int, n_lines: int) -> int:
        """Write lines to the pipe; return the number of the next one."""
        for number in range(self.n_piped, self.n_piped + n_lines):
            os.write(pipe, line_of(number))
        return self.n_piped + n_lines

    def watch(self, name: str, lines: str, stdin: int | None = None, other: int = -1) -> None:
        """Run the command in this process."""
        if stdin is not None:
            os.close(other)
            os.dup2(stdin, 0)
            sys.stdin = os.fdopen(0)
        self.redirect()
        options = ["--model", str(self.folder / f"{name}.json"), "--store", self.store]
        try:
            app(["watch", lines, *options, "--name", name, *SETTINGS])
        except SystemExit as ended:
            os._exit(int(ended.code or 0))

    def redirect(self) -> None:
        """Let this process write to a file."""
        out = os.open(self.folder / "out.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)

    def n_recorded(self, name: str) -> int:
        """The number of predictions in the store, which is checked on the way."""
        with self.opened(name) as monitor:
            return monitor.snapshot().n_recorded

    # Logs

    def kill_log(self) -> None:
        """Kill `calibrant watch` while the log grows and is rotated, also when nobody reads it."""
        self.what = "log"
        watcher = self.begin(self.watch, "log", str(self.log))
        for _ in range(int(self.rng.integers(1, 5))):
            self.grow()
            time.sleep(float(self.rng.uniform(0.0, 0.3)))
        self.end(watcher, int(self.rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])))
        if self.rng.uniform() < 0.5:
            self.grow()
        self.n_recorded("log")  # it can be opened

    def grow(self) -> None:
        """Add lines, perhaps in two parts, and rotate the log now and then."""
        lines = b"".join(line_of(self.n_logged + step) for step in range(self.rng.integers(1, 80)))
        self.n_logged += lines.count(b"\n")
        cut = int(self.rng.integers(0, len(lines)))
        self.add(lines[:cut])
        time.sleep(float(self.rng.uniform(0.0, 0.05)))
        self.add(lines[cut:])
        if self.rng.uniform() < 0.3:
            self.rotate()

    def add(self, lines: bytes) -> None:
        """Append to the log."""
        with self.log.open("ab", buffering=0) as file:
            file.write(lines)

    def rotate(self) -> None:
        """Rename the log, or copy and truncate it, as programs for logs do; old ones are kept."""
        self.n_rotated += 1
        old = self.log.with_name(f"{self.log.name}.{self.n_rotated}")
        if self.rng.uniform() < 0.5:
            self.log.rename(old)
            self.log.touch()
        else:
            shutil.copy(self.log, old)
            os.truncate(self.log, 0)
            self.grow_again()
        for path in self.folder.glob(f"{self.log.name}.*"):
            if int(path.suffix[1:]) < self.n_rotated - 20:
                path.unlink()

    def grow_again(self) -> None:
        """Fill a truncated log at once, perhaps beyond its former size."""
        n_lines = int(self.rng.integers(1, 200))
        self.add(b"".join(line_of(self.n_logged + step) for step in range(n_lines)))
        self.n_logged += n_lines

    # In the end

    def recount(self) -> None:
        """Hand in what was not acknowledged, let time pass, and compare every tally."""
        ends = self.handed_in()
        for name, end in ends.items():
            with self.opened(name) as monitor:
                self.hand_in(monitor, range(end, end + BATCH))
            ends[name] = end + BATCH
        ends["pipe"] = self.n_piped
        with self.opened("pipe") as monitor:
            self.hand_in(monitor, range(self.n_piped, self.n_piped + BATCH))
            ends["pipe"] += BATCH
        reader = self.begin(self.watch_once)
        if self.ended(reader) not in (0, 1):
            fail(f"the rest of the log cannot be read; see {self.folder}/out.txt")
        ends["log"] = self.n_logged
        for name, end in ends.items():
            self.compare(name, end)

    def watch_once(self) -> None:
        """Read the rest of the log."""
        self.redirect()
        options = ["--model", str(self.folder / "log.json"), "--store", self.store, "--once"]
        try:
            app(["watch", str(self.log), *options, "--name", "log", *SETTINGS, "--json"])
        except SystemExit as ended:
            os._exit(int(ended.code or 0))

    def compare(self, name: str, end: int) -> None:
        """Compare the tally of a model with a recount of its rows."""
        with self.opened(name) as monitor:
            found = monitor.advance(time_of(end) + 10)
        rows = [row_of(number) for number in range(end)]
        regions = np.minimum((np.array([score for score, _ in rows]) * 4).astype(int), 3)
        labels = np.array([label for _, label in rows])
        counts = np.bincount(regions, minlength=4)
        hits = np.bincount(regions[labels == 1], minlength=4)
        same = found.counts.tolist() == counts.tolist()
        same = same and found.positives.tolist() == hits.tolist()
        same = same and (found.n_mature, found.n_labels) == (end, end)
        strange = {
            word: getattr(found, f"n_{word}")
            for word in ("conflicting", "late", "expired", "unknown", "waiting", "quarantined")
        }
        if name == "log":
            strange |= {"duplicate": found.n_duplicate, "unreadable": found.n_unreadable}
        print(
            f"{name}: recount of {end:,} rows, {len(found.path)} days:"
            f" {'equal' if same else 'DIFFERENT'}; {strange}",
            flush=True,
        )
        if not same:
            with self.opened(name) as monitor, monitor.store.reading() as connection:
                every = [f"row {number}" for number in range(end)]
                known = ModelRows(connection, monitor.number).by_id(PREDICTIONS, every)
            print("not in the store:", [one for one in every if one not in known][:300])
        if not same or any(strange.values()):
            fail(f"{name} is not what was handed in")


def fail(text: str) -> None:
    """End with an error."""
    sys.exit(f"FAILED: {text}")


def kill(times: int, store: str | None, seed: int) -> None:
    """Kill writers of a new SQLite file, or of a database given by its URL."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup ignores, and so would children
    folder = Path(tempfile.mkdtemp(prefix="calibrant-store-"))
    Attack(store or str(folder / "watch.db"), seed).run(times)
    shutil.rmtree(folder)
