"""Would the tests notice? Change one thing in the statistical core at random, and run the tests
that belong to it.

A mutant is the package with one small change: a comparison, a constant, an operator, a condition, a
left-out call. It is killed if a test fails. Survivors are printed with their line: each is a
missing test, or a change that makes no difference (`mutants.toml`, with the reason). Results are
kept in a file, so that a run that was stopped goes on where it was, and a survivor can be tried
again after a test was written.

First the tests run without any change, and each function of the package that a test enters is
noted. A mutant meets the tests that enter its function, the quickest first; then the doctests of
its module; then all other tests that belong to it; then the slow ones. So most mutants die within a
second or two, and no test is left out for one that survives.

The sample is the same for a seed as long as the lines are: a change elsewhere draws no other
mutants. Tests that were written for the survivors of one seed say little about the next one:
`--seed today` draws a sample nobody has seen.

    python tools/mutants.py                         # the sample of `make mutants`
    python tools/mutants.py --seed today            # a sample of this day
    python tools/mutants.py --part 2/4              # the second of four parts of a sample, to share
    it among machines python tools/mutants.py --only mass --count 30  # of one module python
    tools/mutants.py --again                 # survivors only, after tests were written
"""

import argparse
import ast
import copy
import importlib
import importlib.abc
import importlib.util
import json
import os
import resource
import signal
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "calibrant"
RESULTS = ROOT / "build" / "mutants.json"
REACH = ROOT / "build" / "reach.json"
HEAVY = (
    "numba",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.calibration",
)  # loaded once, and then forked
LONGEST = 3600  # seconds; no tests take longer, even on a machine that has other work
MOST_MEMORY = 4 << 30  # bytes; a loop without end may fill the machine before its time is over
# times as much processor time as without a change, and a minute: more is taken for a loop without
# end
PATIENCE = 10
ANSWERS = "tests/test_answers.py"  # belongs to everything
MARKS = ("not slow and not broad and not service", "(slow or broad) and not service")
# which doctests do not know
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider"]
PROFILE = "--hypothesis-profile=quick"
NO_TESTS = 5  # what pytest returns where no test was chosen
ENOUGH = 0.95  # the share of those that differ that must be killed

KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CORE: dict[str, str] = KNOWN["core"]
EQUIVALENT = {
    (one["module"], one["line"], one["change"]): one["why"] for one in KNOWN["equivalent"]
}

SWAPPED = {
    "min": "max",
    "minimum": "maximum",
    "floor": "ceil",
    "any": "all",
    "argmin": "argmax",
    "left": "right",
    "log": "log1p",
    "exp": "expm1",
    "sf": "cdf",
    "isf": "ppf",
}
NAMES = {**SWAPPED, **{new: old for old, new in SWAPPED.items()}}
OPERATORS = {
    ast.Lt: ast.LtE,
    ast.Gt: ast.GtE,
    ast.Eq: ast.NotEq,
    ast.In: ast.NotIn,
    ast.Is: ast.IsNot,
    ast.Add: ast.Sub,
    ast.Mult: ast.Div,
    ast.BitAnd: ast.BitOr,
    ast.And: ast.Or,
}
OPERATORS |= {new: old for old, new in OPERATORS.items()} | {
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
LEFT_OUT = (ast.Raise, ast.Import, ast.ImportFrom, ast.Assert, ast.JoinedStr)


@dataclass(frozen=True)
class Mutant:
    """A file with one change, in a function that is named by its file and first line."""

    module: str
    line: int
    text: str
    change: str
    source: str
    function: str

    @property
    def key(self) -> str:
        """A name for it that stays the same as long as the file does."""
        return sha256(f"{self.module} {self.source}".encode()).hexdigest()[:16]

    @property
    def why_equivalent(self) -> str | None:
        """Why the change makes no difference; None where nobody has shown it."""
        return EQUIVALENT.get((self.module, self.text, self.change))

    def __str__(self) -> str:
        return f"src/calibrant/{self.module}.py:{self.line}: {self.change}"


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every mutant of one module; some are no valid Python."""
    text = (PACKAGE / f"{module}.py").read_bytes()
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    tree = ast.parse(text)
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    for node in code_of(tree):
        line = node.lineno
        last = node.end_lineno or node.lineno
        start = starts[line - 1] + node.col_offset
        end = starts[last - 1] + (node.end_col_offset or 0)
        around = [one for one in functions if one.body[0].lineno <= line <= (one.end_lineno or 0)]
        first = max(
            (min([one.lineno, *(mark.lineno for mark in one.decorator_list)]) for one in around),
            default=0,
        )
        for changed in changes_of(node):
            after = "pass" if isinstance(changed, ast.Pass) else f"({ast.unparse(changed)})"
            source = (text[:start] + after.encode() + text[end:]).decode()
            change = f"{ast.unparse(node)} -> {ast.unparse(changed)}"
            yield Mutant(
                module, line, lines[line - 1].decode().strip(), change, source, f"{module}:{first}"
            )


def code_of(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """The nodes that compute something: no annotations, decorators, documentation, errors, imports,
    `repr`, or lengths that `zip` compares, which like assertions matter for faulty code only.
    """
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            shown = isinstance(child, ast.FunctionDef) and child.name in ("__repr__", "__str__")
            lengths = isinstance(child, ast.keyword) and child.arg == "strict"
            if not isinstance(child, ast.AST) or isinstance(child, LEFT_OUT):
                continue
            if text or shown or lengths:
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            yield from code_of(child)


def changes_of(node: ast.AST) -> Iterator[ast.AST]:
    """Small changes of one node itself, not of its parts."""
    changed = copy.deepcopy(node)
    if isinstance(changed, ast.Compare):
        for place, operator in enumerate(changed.ops):
            if type(operator) in OPERATORS:
                one = copy.deepcopy(changed)
                one.ops[place] = OPERATORS[type(operator)]()
                yield one
    elif isinstance(changed, ast.AugAssign) and type(changed.op) in OPERATORS:
        yield ast.Pass()
    elif isinstance(changed, ast.BinOp | ast.BoolOp) and type(changed.op) in OPERATORS:
        changed.op = OPERATORS[type(changed.op)]()
        yield changed
    elif isinstance(changed, ast.UnaryOp) and not isinstance(changed.op, ast.UAdd):
        yield changed.operand
    elif isinstance(changed, ast.IfExp):
        yield ast.IfExp(changed.test, changed.orelse, changed.body)
    elif isinstance(changed, ast.Name | ast.Attribute):
        name = "id" if isinstance(changed, ast.Name) else "attr"
        if getattr(changed, name) in NAMES and isinstance(changed.ctx, ast.Load):
            setattr(changed, name, NAMES[getattr(changed, name)])
            yield changed
    elif isinstance(changed, ast.Expr) and isinstance(changed.value, ast.Call):
        yield ast.Pass()
    elif isinstance(changed, ast.Constant):
        value = changed.value
        if isinstance(value, bool):
            yield ast.Constant(not value)
        elif isinstance(value, int | float):
            yield ast.Constant(
                value + 1 if isinstance(value, int) else value * 1.1 if value else 0.1
            )
        elif value in ("left", "right"):
            yield ast.Constant(NAMES[str(value)])


def stale() -> list[tuple[str, str, str]]:
    """Entries of `EQUIVALENT` that no mutant has: their line was changed, and they must be judged
    anew.
    """
    modules = {module for module, _, _ in EQUIVALENT}
    known = {(one.module, one.text, one.change) for module in modules for one in mutants_of(module)}
    return [entry for entry in EQUIVALENT if entry not in known]


def sample(count: int, seed: int, only: str | None) -> list[tuple[Mutant, list[str]]]:
    """Mutants drawn at random, each change as likely as any other.

    The draw depends on their own lines only.
    """
    tests_of: dict[str, list[str]] = {}
    for entry, tests in CORE.items():
        place = PACKAGE / entry
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
            tests_of.setdefault(
                file.relative_to(PACKAGE).with_suffix("").as_posix(), [*tests.split(), ANSWERS]
            )
    found = []
    for name, chosen in tests_of.items():
        seen: Counter[tuple[str, str]] = Counter()
        for mutant in mutants_of(name) if only is None or only in name else ():
            seen[own := (mutant.text, mutant.change)] += 1
            key = f"{seed} {name} {mutant.text} {mutant.change} {seen[own]}"
            found.append((sha256(key.encode()).digest(), mutant, chosen))
    valid = (
        (mutant, tests)
        for _, mutant, tests in sorted(found, key=lambda entry: entry[0])
        if _compiles(mutant)
    )
    return list(islice(valid, count))


def _compiles(mutant: Mutant) -> bool:
    try:
        ast.parse(mutant.source)
    except SyntaxError:
        return False
    return True


class Loader(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Loads one module from a text in place of its file."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = f"calibrant.{mutant.module.replace('/', '.')}".removesuffix(".__init__")
        self.path = str(PACKAGE / f"{mutant.module}.py")

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        """The module that is changed; None for all others."""
        places = [str(Path(self.path).parent)] if self.path.endswith("__init__.py") else None
        found = importlib.util.spec_from_file_location(
            name, self.path, loader=self, submodule_search_locations=places
        )
        return found if name == self.name else None

    def get_filename(self, name: str) -> str:
        """The file it stands for."""
        return self.path

    def get_data(self, path: str) -> bytes:
        """The text."""
        return self.mutant.source.encode()


@dataclass(eq=False)
class Reach:
    """A plugin of pytest: how long each test took, and which functions of the package it entered.

    What a fixture enters counts for every test of the file, because it may run for the first of
    them only.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    entered: dict[str, set[str]] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    now: set[str] = field(default_factory=set)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what one test enters."""
        self.now = self.entered[item.nodeid] = set()
        start = time.perf_counter()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            self.seconds[item.nodeid] = time.perf_counter() - start

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self) -> Iterator[object]:
        """Note what a fixture enters."""
        before = self.now
        self.now = self.shared
        try:
            return (yield)
        finally:
            self.now = before

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        file, _, place = frame.f_code.co_filename.partition(f"{PACKAGE}{os.sep}")
        if event == "call" and not file and place:
            self.now.add(f"{place.removesuffix('.py')}:{frame.f_code.co_firstlineno}")

    @property
    def found(self) -> dict[str, tuple[float, list[str]]]:
        """By test: seconds and functions."""
        return {
            name: (self.seconds[name], sorted(self.entered[name] | self.shared))
            for name in self.seconds
        }


def in_child(
    arguments: list[str], seconds: int, mutant: Mutant | None = None, reach: Path | None = None
) -> bool:
    """Whether all tests pass in a fork of this process.

    What they reach is written to a file, if one is given.
    """
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.alarm(LONGEST)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        with TemporaryDirectory() as folder:
            try:
                if mutant is not None:  # before pytest can load the true file
                    if (
                        "njit" in mutant.source
                    ):  # what was compiled from the true file must not be used
                        importlib.import_module("numba").config.CACHE_DIR = folder
                    sys.meta_path.insert(0, loader := Loader(mutant))
                    importlib.import_module(loader.name)
                code = int(
                    pytest.main(
                        [*OPTIONS, *arguments], plugins=[plugin := Reach()] if reach else []
                    )
                )
                if reach is not None:
                    write(reach, plugin.found)
            except BaseException:
                code = 1
        os._exit(0 if code == NO_TESTS else code)
    return os.waitpid(child, 0)[1] == 0


@cache
def _state() -> str:
    """A fingerprint of the package and of what all tests use."""
    helpers = [
        path for path in sorted((ROOT / "tests").rglob("*.py")) if not path.name.startswith("test_")
    ]
    files = [*sorted(PACKAGE.rglob("*.py")), *helpers]
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def reached(tests: list[str], marks: str) -> dict[str, tuple[float, list[str]]]:
    """Seconds and functions of every test with these marks.

    Kept until the package or the file of the test changes.
    """
    kept = json.loads(REACH.read_text()) if REACH.exists() else {}
    found: dict[str, tuple[float, list[str]]] = {}
    places = [ROOT / test for test in tests]
    for path in chain.from_iterable(
        sorted(one.rglob("test_*.py")) if one.is_dir() else [one] for one in places
    ):
        file = path.relative_to(ROOT).as_posix()
        name = sha256(
            f"{_state()} {marks} {file} {path.read_text(encoding='utf-8')}".encode()
        ).hexdigest()
        if name not in kept:
            result = REACH.with_name("reach-of-one.json")
            if not in_child([PROFILE, "-m", marks, file], LONGEST, reach=result):
                sys.exit(f"a test fails without any change: {file}")
            kept[name] = json.loads(result.read_text())
            write(REACH, kept)
        found |= kept[name]
    return found


def write(file: Path, content: object) -> None:
    """Keep what was found for the next run."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content))


def survives(mutant: Mutant, tests: list[str]) -> bool:
    """Whether no test fails, or takes far longer than without the change.

    The doctests run by themselves, as importing a module by its path hides a function of the same
    name.
    """
    module = f"src/calibrant/{mutant.module}.py"
    if not in_child([module], LONGEST):
        sys.exit(f"a doctest fails without any change: {module}")
    for marks in MARKS:
        known = reached(tests, marks)
        for near in (True, False):
            names = [name for name in known if (mutant.function in known[name][1]) == near]
            names.sort(key=lambda name: known[name][0])
            limit = int(60 + PATIENCE * sum(known[name][0] for name in names))
            if names and not in_child([PROFILE, *names], limit, mutant=mutant):
                return False
            if near and marks == MARKS[0] and not in_child([module], 120, mutant=mutant):
                return False
    return True


def _seed(text: str) -> int:
    """A seed; "today" is the date, such as 20261117."""
    return int(f"{date.today():%Y%m%d}" if text == "today" else text)


def main() -> int:
    """Try the sample, print the survivors and the share that was killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument(
        "--seed", type=_seed, default=1, help="a number, or today: the date as a number"
    )
    parser.add_argument(
        "--part", default="1/1", help="K/N: every N-th mutant of the sample, from the K-th"
    )
    parser.add_argument("--only", help="part of a module's name")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    arguments = parser.parse_args()
    if old := stale():
        print(*old, sep="\n")
        sys.exit("these lines have changed; judge anew whether the change makes a difference")
    for name in HEAVY:
        importlib.import_module(name)
    os.chdir(ROOT)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    first, parts = map(int, arguments.part.split("/"))
    drawn = sample(arguments.count, arguments.seed, arguments.only)[first - 1 :: parts]
    print(f"seed {arguments.seed}, part {arguments.part}: {len(drawn)} mutants", flush=True)
    start = time.monotonic()
    survived = []
    for mutant, tests in drawn:
        why = mutant.why_equivalent
        said = "equivalent"
        if why is None:
            if mutant.key not in known or (arguments.again and known[mutant.key]):
                known[mutant.key] = survives(mutant, tests)
                write(RESULTS, known)
            said = "SURVIVED" if known[mutant.key] else "killed"
        survived += [mutant] if said == "SURVIVED" else []
        print(
            f"{time.monotonic() - start:6.0f} s  {said:10}  {mutant}{f': {why}' if why else ''}",
            flush=True,
        )
    differ = [mutant for mutant, _ in drawn if mutant.why_equivalent is None]
    killed = len(differ) - len(survived)
    print("", *(f"SURVIVED  {mutant}" for mutant in survived), sep="\n")
    print(
        f"{killed} of {len(differ)} mutants that differ were killed,"
        f" {killed / max(len(differ), 1):.1%}; {len(drawn) - len(differ)} others are equivalent"
    )
    return 0 if killed >= ENOUGH * len(differ) else 1


if __name__ == "__main__":
    sys.exit(main())
