"""How mutants are tried: which tests run a line, and whether one of them fails after a change.

All tests are collected once, in one process. It is forked for each mutant; the fork replaces the
code of the changed function and runs the tests that reach the changed statement, the quickest
first, until one fails. What this cannot do, a change outside of functions or in code that numba
compiles, is tried in a process that loads the changed file in place of the true one.

The tests come in stages: the answers of `tests/test_answers.py`, which kill three of four mutants,
then other tests of the module, then long simulations. What a stage runs is traced only once a
mutant has survived the stage before.
"""

import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper, cache, cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from mutant_changes import PACKAGE, Loader, Mutant, objects, patch_of

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"
REACH = BUILD / "reach.json"
RUNNING = BUILD / "running.txt"  # the test that runs now
NOW = BUILD / "reach-now.json"  # of the tests of this run alone
LONGEST = 3600  # seconds; no tests take longer, even on a machine that has other work
MOST_MEMORY = 4 << 30  # bytes; a loop without end may fill the machine before its time is over
# times as much processor time as without a change, and some seconds: more is taken for a loop
# without end
PATIENCE = 10
SPARE = 10
SLOW = 60  # seconds, of a test that was not traced
OPTIONS = ["-q", "-p", "no:cacheprovider", "--hypothesis-profile=quick"]
DOCTESTS = ["-x", "-q", "-p", "no:cacheprovider"]  # which do not know the profile
NO_TESTS = 5  # what pytest returns where no test was chosen
ANSWERS = "tests/test_answers.py"
EVERYWHERE = [ANSWERS, "tests/test_survivors.py"]  # belong to everything
STAGES = FIRST, OTHERS, SIMULATIONS = range(3)
NEAR, UNKNOWN, FAR = range(3)
Reached = dict[str, tuple[float, dict[str, list[Any]]]]
"""By test: seconds, and by module a fingerprint of its text then, and the lines that were run.

Of a module that has changed since, any line may be run by a test that ran some of it. So a test may
be missed if a change elsewhere made it run a module for the first time: then a mutant is said to
survive, never to be killed, by mistake. Remove the file to trace all tests anew.
"""


@cache
def text_of(module: str) -> str:
    """A fingerprint of the text of a module."""
    return sha256((PACKAGE / f"{module}.py").read_bytes()).hexdigest()[:8]


def write(file: Path, content: object) -> None:
    """Keep what was found for the next run."""
    file.parent.mkdir(exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(content))
    beside.replace(file)


def in_fork(work: Callable[[], int]) -> int:
    """What work returns in a fork of this process, without output; -1 if it was ended."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            signal.alarm(LONGEST)
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def stage_of(item: pytest.Item) -> int:
    """When a test meets a mutant: answers first, long simulations last."""
    if item.get_closest_marker("slow") is not None:
        return SIMULATIONS
    return FIRST if _belongs(item.nodeid, EVERYWHERE) else OTHERS


def measures_memory(item: pytest.Item) -> bool:
    """Whether a test measures memory, of which tracing its lines takes some too."""
    code = getattr(getattr(item, "function", None), "__code__", None)
    return "tracemalloc" in getattr(code, "co_names", ())


def limit_time(seconds: float) -> None:
    """End this process if a test takes far longer than without the change."""
    signal.setitimer(signal.ITIMER_PROF, SPARE + PATIENCE * seconds)


@dataclass(eq=False)
class Clock:
    """A plugin of pytest that limits the time of each test."""

    reached: Reached

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Set the limit of one test."""
        limit_time(self.reached[item.nodeid][0] if item.nodeid in self.reached else SPARE)


@dataclass
class Tracer:
    """Notes the lines of the package that run.

    Results that were cached are forgotten first, so that each test runs what it depends on.
    """

    caches: list[Any]
    lines: dict[str, set[int]] = field(default_factory=dict)
    _known: dict[CodeType, tuple[set[int], frozenset[int]]] = field(default_factory=dict)

    def start(self) -> None:
        """Forget what was noted and cached, and note from now on."""
        self.lines = {}
        self._known = {}
        for cached in self.caches:
            cached.cache_clear()
        threading.settrace(self._call)
        sys.settrace(self._call)

    def stop(self) -> None:
        """Note no more."""
        sys.settrace(None)
        threading.settrace(None)

    def _call(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if code not in self._known:
            before, _, place = code.co_filename.partition(f"{PACKAGE}{os.sep}")
            own = not before and bool(place)
            seen = self.lines.setdefault(place.removesuffix(".py"), set()) if own else set()
            every = {line for *_, line in code.co_lines() if line is not None}
            self._known[code] = seen, frozenset(every if own else ())
        seen, every = self._known[code]
        if every <= seen:
            return None
        seen.add(code.co_firstlineno)
        add = seen.add

        def note(frame: FrameType, event: str, _: object) -> Any:
            add(frame.f_lineno)
            return note

        return note


@dataclass(eq=False)
class Session:
    """A plugin of pytest that tries mutants in place of running tests."""

    trials: "Trials"
    failed: str = ""
    shared: dict[str, set[int]] = field(default_factory=dict)
    tracer: Tracer | None = None
    passing: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    """Tests that were seen to pass, or to fail, without any change."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note that a test failed."""
        if report.failed:
            self.failed = report.longreprtext

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[object]:
        """What a fixture of several tests runs counts for every test of the file."""
        tracer = self.tracer
        if tracer is None or fixturedef.scope == "function":
            return (yield)
        tracer.stop()
        before = tracer.lines
        tracer.start()
        try:
            return (yield)
        finally:
            tracer.stop()
            for module, lines in tracer.lines.items():
                self.shared.setdefault(module, set()).update(lines)
            tracer.start()
            tracer.lines = before

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try each mutant in a fork; note first what the tests run that belong to it."""
        items = {item.nodeid: item for item in session.items if not measures_memory(item)}
        for mutant, tests in self.trials.mutants:
            patch = patch_of(mutant)
            own = [item for item in items.values() if _belongs(item.nodeid, tests)]
            said = "cold"
            for stage in STAGES if patch else STAGES[:1]:
                later = [item for item in own if stage_of(item) == stage]
                self._reach(later)
                if patch is not None:
                    names = [item.nodeid for item in later]
                    near = [items[name] for name in self.trials.near(mutant, names)]
                    said = self._tried(near, patch)
                if said == "killed":
                    break
            self.trials.note(mutant, said)
        unknown = (SLOW, {})
        write(NOW, {name: self.trials.reached.get(name, unknown) for name in items})
        return True

    def _run(self, items: list[pytest.Item], patch: dict[FunctionType, CodeType]) -> int:
        for function, code in patch.items():
            function.__code__ = code
        for place, item in enumerate(items):
            limit_time(self.trials.reached[item.nodeid][0])
            RUNNING.write_text(item.nodeid)
            self._one(item, items[place + 1] if place + 1 < len(items) else None)
            if self.failed:
                return 1
        return 0

    def _tried(self, near: list[pytest.Item], patch: dict[FunctionType, CodeType]) -> str:
        """Whether one of the tests kills a mutant; those that fail without any change do not
        count.
        """
        while left := [item for item in near if item.nodeid not in self.failing]:
            if in_fork(lambda left=left: self._run(left, patch)) == 0:
                break
            killer = next(item for item in left if item.nodeid == RUNNING.read_text())
            if (
                killer.nodeid in self.passing
                or in_fork(lambda one=killer: self._run([one], {})) == 0
            ):
                self.passing.add(killer.nodeid)
                return "killed"
            self.failing.add(killer.nodeid)
            sys.stderr.write(f"left out, fails without any change: {killer.nodeid}\n")
        return "survived"

    @staticmethod
    def _one(item: pytest.Item, following: pytest.Item | None) -> None:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def _reach(self, items: list[pytest.Item]) -> None:
        """Trace the tests that were not traced before, or whose files have changed."""
        files: dict[tuple[Path, ...], list[pytest.Item]] = {}
        for item in items:
            if item.nodeid not in self.trials.reached:
                files.setdefault(_files_of(item), []).append(item)
        for paths, own in files.items():
            text = b"".join(path.read_bytes() for path in paths)
            name = f"{paths[-1].relative_to(ROOT)} {sha256(text).hexdigest()}"
            known = self.kept.setdefault(name, {})
            if new := [item for item in own if item.nodeid not in known]:
                known |= self._traced(paths[-1], new)
                write(REACH, self.kept)
            self.trials.reached |= {item.nodeid: known[item.nodeid] for item in own}

    @cached_property
    def kept(self) -> dict[str, Reached]:
        """By file of tests and its text: what was found before."""
        found: dict[str, Reached] = json.loads(REACH.read_text()) if REACH.exists() else {}
        return found

    def _traced(self, path: Path, items: list[pytest.Item]) -> Reached:
        result = BUILD / "reach-of-one.json"
        result.unlink(missing_ok=True)
        if in_fork(lambda: self._trace(items, result)) != 0:
            text = result.read_text() if result.exists() else ""
            sys.stderr.write(f"a test fails without any change: {path}\n{text}\n")
            os._exit(1)
        found: Reached = json.loads(result.read_text())
        return found

    def _trace(self, items: list[pytest.Item], result: Path) -> int:
        caches = [one for one in objects() if isinstance(one, _lru_cache_wrapper)]
        tracer = self.tracer = Tracer([one for one in caches if _is_ours(one)])
        found: dict[str, tuple[float, dict[str, set[int]]]] = {}
        for place, item in enumerate(items):
            tracer.start()
            start = time.process_time()
            self._one(item, items[place + 1] if place + 1 < len(items) else None)
            tracer.stop()
            found[item.nodeid] = (time.process_time() - start, tracer.lines)
            if self.failed:
                result.write_text(self.failed)
                return 1
        every = {
            name: (seconds, self._with_shared(lines)) for name, (seconds, lines) in found.items()
        }
        write(result, every)
        return 0

    def _with_shared(self, lines: dict[str, set[int]]) -> dict[str, list[Any]]:
        modules = {*lines, *self.shared} - {""}
        return {
            module: [
                text_of(module),
                *sorted(lines.get(module, set()) | self.shared.get(module, set())),
            ]
            for module in modules
        }


def _files_of(item: pytest.Item) -> tuple[Path, ...]:
    """The files that a test is written in: that of the test, and of the question it asks."""
    path = Path(item.path)
    asked = getattr(getattr(item, "module", None), "QUESTIONS", {})
    question = asked.get(getattr(getattr(item, "callspec", None), "params", {}).get("name"))
    if question is None:
        return (path,)
    own = Path(question.__code__.co_filename)
    return path, own.with_name("base.py"), own


def _is_ours(cached: Any) -> bool:
    name = str(getattr(cached, "__module__", ""))
    return name.startswith(("calibrant", "worlds", "tests", "test_")) or ".test_" in name


@dataclass(eq=False)
class Trials:
    """Mutants, each with the files of tests that belong to it."""

    mutants: list[tuple[Mutant, list[str]]]
    quick: bool = False
    """Whether long simulations are left out."""
    reached: Reached = field(default_factory=dict)

    def run(self) -> Iterator[tuple[Mutant, bool]]:
        """Each mutant, and whether it survives."""
        if not self.mutants:
            return
        reading, self._writing = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(reading)
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                files = sorted({test for _, tests in self.mutants for test in tests})
                code = int(pytest.main([*self.options, *files], plugins=[Session(self)]))
            finally:
                os._exit(code)
        os.close(self._writing)
        by_key = {mutant.key: (mutant, tests) for mutant, tests in self.mutants}
        with os.fdopen(reading) as answers:
            for line in answers:
                key, said = line.split()
                if said == "killed":
                    mutant, _ = by_key.pop(key)
                    yield mutant, False
                elif said == "survived":
                    mutant, _ = by_key.pop(key)
                    yield mutant, in_process([_doctests(mutant)], mutant, DOCTESTS, {})
        if os.waitpid(child, 0)[1] != 0:
            sys.exit("the tests fail without any change, or could not be collected")
        self.reached = json.loads(NOW.read_text())
        for mutant, tests in by_key.values():
            yield mutant, self._survives_cold(mutant, tests)

    @property
    def options(self) -> list[str]:
        """Those of pytest."""
        chosen = "not service and not slow" if self.quick else "not service"
        return [*OPTIONS, "-m", chosen]

    def note(self, mutant: Mutant, said: str) -> None:
        """Tell the first process what came of a mutant."""
        os.write(self._writing, f"{mutant.key} {said}\n".encode())

    def near(self, mutant: Mutant, names: list[str]) -> list[str]:
        """Those of some tests that run the changed statement, the quickest first."""
        found = [name for name in names if _runs(self.reached[name][1].get(mutant.module), mutant)]
        return sorted(found, key=lambda name: self.reached[name][0])

    def _survives_cold(self, mutant: Mutant, tests: list[str]) -> bool:
        """Try the tests that enter the module, its doctests, those that were not traced, and then
        all others.
        """
        own = [
            (_distance(mutant.module, reach), seconds, name)
            for name, (seconds, reach) in self.reached.items()
            if _belongs(name, tests)
        ]
        for distance in (NEAR, UNKNOWN, FAR):
            names = [name for how_far, _, name in sorted(own) if how_far == distance]
            if names and not in_process(names, mutant, ["-x", *self.options], self.reached):
                return False
            if distance == NEAR and not in_process([_doctests(mutant)], mutant, DOCTESTS, {}):
                return False
        return True


def _runs(reach: list[Any] | None, mutant: Mutant) -> bool:
    """Whether a test that runs these lines runs the changed statement."""
    if not reach:
        return False
    text, *lines = reach
    first, last = mutant.lines
    return text != text_of(mutant.module) or any(first <= line <= last for line in lines)


def _distance(module: str, reach: dict[str, list[Any]]) -> int:
    """Whether a test enters a module; a test that was not traced entered none."""
    if not reach:
        return UNKNOWN
    return NEAR if module in reach else FAR


def _doctests(mutant: Mutant) -> str:
    return str(mutant.path.relative_to(ROOT))


def _belongs(test: str, files: list[str]) -> bool:
    name = test.partition("::")[0]
    return any(name == file or name.startswith(f"{file}/") for file in files)


def in_process(tests: list[str], mutant: Mutant, options: list[str], reached: Reached) -> bool:
    """Whether all tests pass in a fork of this process, which has not loaded the package yet."""

    def work() -> int:
        with TemporaryDirectory() as folder:
            if "njit" in mutant.source:  # what was compiled from the true file must not be used
                importlib.import_module("numba").config.CACHE_DIR = folder
            sys.meta_path.insert(0, loader := Loader(mutant))
            importlib.import_module(loader.name)
            code = int(pytest.main([*options, *tests], plugins=[Clock(reached)]))
        return 0 if code == NO_TESTS else code

    return in_fork(work) == 0
