"""Would the tests notice? Change one thing in the statistical core at random, and run the tests that belong to it.

A mutant is the package with one small change: a comparison, a constant, an operator, a condition, a left-out call. It
is killed if a test fails. Survivors are printed with their line: each is a missing test, or a change that makes no
difference (`EQUIVALENT`, with the reason). Results are kept in a file, so that a run that was stopped goes on where it
was, and a survivor can be tried again after a test was written.

First the tests run without any change, and each function of the package that a test enters is noted. A mutant meets the
tests that enter its function, the quickest first; then the doctests of its module; then all other tests that belong to
it. Slow tests run only where a mutant has survived all others. So most mutants die within a second or two, and no test
is left out for one that survives.

The sample is the same for a seed as long as the lines are: a change elsewhere draws no other mutants.

    python tools/mutants.py                         # the sample of `make mutants`
    python tools/mutants.py --only mass --count 30  # of one module
    python tools/mutants.py --again                 # survivors only, after tests were written
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
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TypeAlias

import pytest

HEAVY = ("numba", "pandas", "pyarrow.parquet", "scipy.stats", "sklearn.calibration")
"""Libraries that the tests need: they are loaded once, and a fork of this process has them."""

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "calibrant"
RESULTS = ROOT / "build" / "mutants.json"
REACH = ROOT / "build" / "reach.json"
LONGEST = 3600  # seconds; no tests take longer, even on a machine that has other work
_PATIENCE = 10  # times as much processor time as without a change, and a minute: more is taken for a loop without end
_OPTIONS = ["-x", "-q", "-p", "no:cacheprovider"]
_PROFILE = "--hypothesis-profile=quick"
QUICK, OTHERS = "not slow and not broad and not service", "(slow or broad) and not service"
Reached: TypeAlias = dict[str, tuple[float, list[str]]]  # by test: seconds, and the functions that it enters
_SOURCES = f"{PACKAGE}{os.sep}"
NO_TESTS = 5  # what pytest returns where no test was chosen
ENOUGH = 0.95  # the share that must be killed

CORE = {
    "mass": "tests/test_mass.py tests/test_guarantee.py",
    "tally": "tests/test_tally.py tests/test_exact.py tests/calibrators/test_bins.py",
    "_exact": "tests/test_exact.py tests/test_tally.py",
    "guarantee/base": "tests/test_guarantee.py tests/guarantees/test_coverage.py",
    "guarantee/absorbed": "tests/guarantees/test_tied_scores.py tests/test_guarantee.py",
    "partition/function": "tests/partition/test_other.py tests/partition/test_scores.py",
    "partition/segments": "tests/partition/test_other.py tests/calibrators/test_bins.py",
    "partition": "tests/partition tests/calibrators/test_bins.py",
    "intervals/shift": "tests/shift",
    "intervals/bounded_mean": "tests/test_metrics.py tests/test_audit.py",
    "intervals/groups": "tests/intervals/test_groups.py tests/guarantees/test_groups.py",
    "intervals": "tests/intervals",
    "sequences": "tests/sequences tests/calibrators/test_online.py",
    "calibrators/_bins": "tests/calibrators/test_bins.py tests/rows/test_one_draw.py tests/test_planning.py",
    "calibrators/binning": "tests/calibrators/test_bins.py tests/guarantees/test_coverage.py",
    "calibrators/venn_binning": "tests/calibrators/test_venn_binning.py",
    "calibrators/online": "tests/calibrators/test_online.py",
    "calibrators/stream": "tests/calibrators/test_online.py",
    "rows/draw": "tests/rows/test_draw.py tests/rows/test_one_draw.py",
    "rows/ranks": "tests/rows/test_ranks.py tests/rows/test_equivalence.py",
    "rows/counts": "tests/rows/test_fitting.py tests/rows/test_equivalence.py",
    "_audit/units": "tests/test_weighted_metrics.py tests/test_audit.py",
    "_audit": "tests/test_audit.py",
    "_plan": "tests/test_planning.py",
    "drift": "tests/test_drift.py",
    "conformal": "tests/test_conformal.py",
    "shift": "tests/shift tests/rows/test_calibrators.py",
    "tripod": "tests/test_tripod.py tests/test_guarantee.py",
    "group_counts": "tests/test_group_counts.py tests/calibrators/test_groups.py",
    "calibrators/_groups": "tests/calibrators/test_groups.py tests/guarantees/test_groups.py",
    "calibrators/_weighted": "tests/shift/test_weights.py tests/shift/test_calibrator.py",
    "calibrators/_pieces": "tests/calibrators/test_anchored.py tests/guarantees/test_anchored_coverage.py",
    "calibrators/anchored": "tests/calibrators/test_anchored.py tests/guarantees/test_anchored_coverage.py",
    "_threshold": "tests/test_threshold.py",
    "_decide": "tests/test_decide.py",
    "_validation": "tests/test_validation.py",
    "_compare_models": "tests/test_compare_models.py",
    "_exchangeable": "tests/test_exchangeable.py",
    "monotone": "tests/guarantees/test_monotone_coverage.py",
}
"""Modules and packages of the core, and the tests that belong to them beside their doctests. The first entry that fits
a file is its own."""

EQUIVALENT = {
    (
        "_audit/report",
        "direction = np.where(self.mean_score < self.lower, TOO_LOW, TOO_HIGH)",
        "self.mean_score < self.lower -> self.mean_score <= self.lower",
    ): "where both are equal no error is proved, and the direction is not shown",
    (
        "partition/segments",
        "def regions_of(self, prepared: SegmentedScores, *, threads: int = 1) -> IndexArray:",
        "1 -> 2",
    ): "a number of threads, which changes no result",
    (
        "partition/segments",
        "def membership(self, prepared: SegmentedScores, *, threads: int = 1) -> IndexArray:",
        "1 -> 2",
    ): "a number of threads, which changes no result",
    (
        "intervals/_deviance",
        "step = np.where(moving, 2.0 * root * (target - root) / np.where(moving, slope, 1.0), 0.0)",
        "1.0 -> 1.1",
    ): "a divisor of steps that are not taken",
    (
        "partition/scores",
        "if self.first_rank is None or self.last_rank is None:",
        "self.first_rank is None or self.last_rank is None -> self.first_rank is None and self.last_rank is None",
    ): "both are given, or neither",
    (
        "intervals/blaker",
        "slack = 1e-13 + 1e-15 * abs(log_delta)",
        "1e-15 -> 1.1000000000000001e-15",
    ): "a slack for rounding, many times what is needed",
    (
        "intervals/blaker",
        "guess = np.floor(n * p + normal * deviation + (q - p) * (normal * normal - 1.0) / 6.0)",
        "q - p -> q + p",
    ): "a first guess of Newton's iteration",
    (
        "intervals/blaker",
        "settled = inside & ((np.abs(value) < 1e-8) | (np.abs(newton - x) <= _ROUNDING * x))",
        "newton - x -> newton + x",
    ): "Newton's iteration ends by its bracket too",
    (
        "intervals/blaker",
        "inside = falling & (newton >= left) & (newton <= right)",
        "falling & (newton >= left) -> falling | (newton >= left)",
    ): "a guard against rounding: the steps stay in the bracket",
    (
        "intervals/blaker",
        "falling = slope < 0.0",
        "slope < 0.0 -> slope <= 0.0",
    ): "a step of Newton at slope 0 is infinite, and refused as well",
    (
        "sequences/_compiled",
        "slope = k / q - (n - k) / (1.0 - q)",
        "(n - k) / (1.0 - q) -> (n - k) * (1.0 - q)",
    ): "a slope of Newton's iteration, which goes on until it has converged",
    (
        "sequences/betting",
        "lows = np.maximum.accumulate((too_low[1:] >= threshold).sum(axis=1))",
        "too_low[1:] >= threshold -> too_low[1:] > threshold",
    ): "capital that equals the threshold",
    (
        "conformal",
        "return (whole.astype(np.float64) + 0.5) / 2.0**53",
        "whole.astype(np.float64) + 0.5 -> whole.astype(np.float64) - 0.5",
    ): "numbers that differ by 2**-53",
    (
        "_plan",
        "most = int(self.n_bins * (-20.0 / log_rest if method.exact else 0.9 / alpha))",
        "-20.0 / log_rest -> -20.0 * log_rest",
    ): "counts tried in one call: the radii are the same",
    (
        "drift",
        "_CANDIDATES_PER_OCTAVE = 128",
        "128 -> 129",
    ): "how many starts are kept decides memory; the weights of any number add up to less than 1",
    (
        "_exact",
        "_UNIT_EXPONENT = 1074  # every finite double is a whole multiple of 2**-1074",
        "1074 -> 1075",
    ): "every double is a whole multiple of 2**-1075 too",
    (
        "sequences/centred",
        "_CONVERGED = 1e-4  # of the distance from the observed rate: the error left is about its square",
        "0.0001 -> 0.00011000000000000002",
    ): "what is left of the error is far below the rounding",
    (
        "shift/prior",
        "lower, upper = 1.0, 0.0",
        "0.0 -> 0.1",
    ): "limits that cross refuse the data, however far they cross",
    (
        "shift/prior",
        "lower, upper = 1.0, 0.0",
        "1.0 -> 1.1",
    ): "limits that cross refuse the data, however far they cross",
    (
        "tally",
        "None if self.weights is None or other.weights is None else self.weights + other.weights,",
        "self.weights is None or other.weights is None -> self.weights is None and other.weights is None",
    ): "a sum of one tally with weights and one without was refused above",
    (
        "conformal",
        "shares = self._shares(ranks[0][0].size, keys)",
        "0 -> 1",
    ): "every column of ranks has an entry for each row",
    (
        "calibrators/online",
        "if classes is None and set(counted.kinds) <= set(_DEFAULT_CLASSES):",
        "set(counted.kinds) <= set(_DEFAULT_CLASSES) -> set(counted.kinds) < set(_DEFAULT_CLASSES)",
    ): "labels of which both are seen need no names",
    (
        "shift/prior",
        "if (rest[slope == 0.0] > 0.0).any():",
        "rest[slope == 0.0] > 0.0 -> rest[slope == 0.0] >= 0.0",
    ): "distances are ratios of whole numbers, and the widths of bands are not",
    (
        "sequences/centred",
        "going = np.where(out, -step > _CONVERGED * (current - origin[active]), ~proved[active] & (current < LARGEST))",
        "-step > _CONVERGED * (current - origin[active]) -> -step >= _CONVERGED * (current - origin[active])",
    ): "a step that equals the tolerance",
    (
        "sequences/centred",
        "going = np.where(out, -step > _CONVERGED * (current - origin[active]), ~proved[active] & (current < LARGEST))",
        "~proved[active] & (current < LARGEST) -> ~proved[active] | (current < LARGEST)",
    ): "a solution that is proved or largest, and is not moved, is only found again",
    (
        "sequences/centred",
        "going = np.where(out, -step > _CONVERGED * (current - origin[active]), ~proved[active] & (current < LARGEST))",
        "current < LARGEST -> current <= LARGEST",
    ): "the largest solution is only found again",
    (
        "sequences/_compiled",
        "low, gap = 0.25, 0.25  # the last limits, kept as the lower one and as 1 minus the upper one",
        "0.25 -> 0.275",
    ): "a first guess of Newton's iteration",
    (
        "_threshold/search",
        "while guess > 0 and binom.cdf(guess - 1, n, 1.0 - target) > alpha:",
        "binom.cdf(guess - 1, n, 1.0 - target) > alpha -> binom.cdf(guess - 1, n, 1.0 - target) >= alpha",
    ): "the loop after it undoes the step",
    (
        "calibrators/_weighted",
        "times = np.floor(scaled * (1.0 + 1e-12) + as_generator(random_state).random(len(rows))).astype(np.int64)",
        "1.0 + 1e-12 -> 1.0 - 1e-12",
    ): "a slack for rounding, seen only in random numbers below 1e-12",
    (
        "_threshold/search",
        "return math.ceil(math.log(alpha) / math.log(target) - 1e-9)",
        "1e-09 -> 1.1000000000000001e-09",
    ): "a slack for rounding, many times what is needed",
    (
        "partition/base",
        "self, prepared: Any, codes: CodeArray, *, pass_rows: int = 0, threads: int = 1",
        "0 -> 1",
    ): "a number of rows that decides between numpy and numba, which count the same",
    (
        "intervals/shift/empirical_bernstein",
        "lead = np.where(informative, lead, 1.0)",
        "1.0 -> 1.1",
    ): "a divisor where the limits are 0 and 1",
    (
        "_audit/report",
        "direction=TOO_LOW if self.mean_score[row] < self.lower[row] else TOO_HIGH,",
        "self.mean_score[row] < self.lower[row] -> self.mean_score[row] <= self.lower[row]",
    ): "where both are equal no error is proved, and there is no finding",
    (
        "sequences/_compiled",
        "if moved >= k / n:",
        "moved >= k / n -> moved > k / n",
    ): "at k / n the slope is 0, and the next step halves the guess: Newton's iteration ends at the same root",
}
"""Changes that make no difference, and why: by module, line as it stands in the file, and change as printed."""

_SWAPPED = {
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
_NAMES = {**_SWAPPED, **{new: old for old, new in _SWAPPED.items()}}
_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
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
_OPERATORS |= {new: old for old, new in _OPERATORS.items()} | {ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult}


@dataclass(frozen=True)
class Mutant:
    """A file with one change."""

    module: str
    line: int
    text: str
    before: str
    after: str
    source: str
    function: str

    @property
    def change(self) -> str:
        """What is changed, as text."""
        return f"{self.before} -> {self.after}"

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


def mutants_of(module: str, lines: frozenset[str] | None = None) -> Iterator[Mutant]:
    """Every mutant of one module, or of these lines of it; some are no valid Python."""
    text = (PACKAGE / f"{module}.py").read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(text)
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    for node in _code(tree):
        start = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        line = node.lineno  # type: ignore[attr-defined]
        shown = text[starts[line - 1] : starts[line]].decode().strip()
        if lines is not None and shown not in lines:
            continue
        for changed in _changes(node):
            after = "pass" if isinstance(changed, ast.Pass) else f"({ast.unparse(changed)})"
            source = text[:start] + after.encode() + text[end:]
            function = _place(module, _first_line(functions, line))
            yield Mutant(module, line, shown, ast.unparse(node), ast.unparse(changed), source.decode(), function)


def _first_line(functions: list[ast.FunctionDef], line: int) -> int:
    """Where the innermost function with this line in its body begins, decorators included; 0 outside of functions."""
    inside = [one for one in functions if one.body[0].lineno <= line <= (one.end_lineno or 0)]
    return max((min([one.lineno, *(mark.lineno for mark in one.decorator_list)]) for one in inside), default=0)


def stale() -> list[tuple[str, str, str]]:
    """Entries of `EQUIVALENT` that no mutant has: their line was changed, and they must be judged anew."""
    lines = frozenset(line for _, line, _ in EQUIVALENT)
    modules = {module for module, _, _ in EQUIVALENT}
    known = {(one.module, one.text, one.change) for module in modules for one in mutants_of(module, lines)}
    return [entry for entry in EQUIVALENT if entry not in known]


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that compute something: no annotations, decorators, documentation, errors, imports or `repr`."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(
                child, ast.Raise | ast.Import | ast.ImportFrom | ast.Assert
            ):
                continue
            if isinstance(child, ast.JoinedStr) or (
                isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            ):
                continue
            if isinstance(child, ast.FunctionDef) and child.name in ("__repr__", "__str__"):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            yield from _code(child)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Small changes of one node itself, not of its parts."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            if type(operator) in _OPERATORS:
                changed = copy.deepcopy(node)
                changed.ops[place] = _OPERATORS[type(operator)]()  # type: ignore[call-overload]
                yield changed
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in _OPERATORS:
        changed = copy.deepcopy(node)
        changed.op = _OPERATORS[type(node.op)]()  # type: ignore[assignment]
        if not isinstance(node, ast.AugAssign):
            yield changed
        else:
            yield ast.Pass()
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        yield copy.deepcopy(node.operand)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in _NAMES and isinstance(node.ctx, ast.Load):
            changed = copy.deepcopy(node)
            setattr(changed, "id" if isinstance(node, ast.Name) else "attr", _NAMES[name])
            yield changed
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    elif isinstance(node, ast.Constant):
        yield from (ast.Constant(value) for value in _values(node.value))


def _values(value: object) -> list[object]:
    """Other constants in place of one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):
        return [value * 1.1 if value else 0.1]
    return [_NAMES[value]] if isinstance(value, str) and value in ("left", "right") else []


def core_modules() -> dict[str, list[str]]:
    """Every module of the core, and its tests."""
    found = {}
    for entry, tests in CORE.items():
        place = PACKAGE / entry
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        for file in files:
            found.setdefault(file.relative_to(PACKAGE).with_suffix("").as_posix(), tests.split())
    return found


class _Loader(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Loads one module from a text in place of its file."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = f"calibrant.{mutant.module.replace('/', '.')}".removesuffix(".__init__")
        self.path = str(PACKAGE / f"{mutant.module}.py")

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        """The module that is changed; None for all others."""
        if name != self.name:
            return None
        places = [str(Path(self.path).parent)] if self.path.endswith("__init__.py") else None
        return importlib.util.spec_from_file_location(name, self.path, loader=self, submodule_search_locations=places)

    def get_filename(self, name: str) -> str:
        """The file it stands for."""
        return self.path

    def get_data(self, path: str) -> bytes:
        """The text."""
        return self.mutant.source.encode()


@dataclass(eq=False)
class Reach:
    """A plugin of pytest: how long each test took, and which functions of the package it entered."""

    seconds: dict[str, float] = field(default_factory=dict)
    entered: dict[str, set[str]] = field(default_factory=dict)
    _now: set[str] = field(default_factory=set)
    _shared: dict[object, set[str]] = field(default_factory=dict)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what one test enters, the fixtures that it shares with others included."""
        self._now = set()
        start = time.perf_counter()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            self.seconds[item.nodeid] = time.perf_counter() - start
            shared = (self._shared.get(name, set()) for name in getattr(item, "fixturenames", ()))
            self.entered[item.nodeid] = self._now.union(*shared)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[object]:
        """Note what a fixture enters: it may run for the first of several tests only."""
        before, self._now = self._now, set()
        try:
            return (yield)
        finally:
            self._shared.setdefault(fixturedef.argname, set()).update(self._now)
            self._now |= before

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_SOURCES):
            self._now.add(_place(frame.f_code.co_filename[len(_SOURCES) :], frame.f_code.co_firstlineno))


@dataclass(frozen=True, eq=False)
class Chosen:
    """A plugin of pytest: keeps these tests only, in this order."""

    order: dict[str, int]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out all other tests, and put the quickest first."""
        items[:] = sorted((one for one in items if one.nodeid in self.order), key=lambda one: self.order[one.nodeid])


def _place(file: str, line: int) -> str:
    return f"{file.removesuffix('.py')}:{line}"


def fails(tests: list[str], mutant: Mutant) -> bool:
    """Whether a test fails.

    The doctests run by themselves, as importing a module by its path hides a function of the same name.
    """
    quick = reached(tests, QUICK)
    return (
        _one_fails(quick, mutant, near=True)
        or _doctest_fails(mutant)
        or _one_fails(quick, mutant, near=False)
        or any(_one_fails(reached(tests, OTHERS), mutant, near=near) for near in (True, False))
    )


def _doctest_fails(mutant: Mutant) -> bool:
    file = [f"src/calibrant/{mutant.module}.py"]
    if _in_child(file, [], LONGEST) != 0:
        sys.exit(f"a doctest fails without any change: {file[0]}")
    return _in_child(file, [], 120, mutant) != 0


def _one_fails(known: Reached, mutant: Mutant, *, near: bool) -> bool:
    """Whether one of the tests fails that enter the function of a mutant, or of those that do not."""
    chosen = [name for name in known if (mutant.function in known[name][1]) == near]
    return _fail(sorted(chosen, key=lambda name: known[name][0]), sum(known[name][0] for name in chosen), mutant)


def _fail(tests: list[str], seconds: float, mutant: Mutant) -> bool:
    """Whether one of these tests fails with a mutant, or takes far longer than without it."""
    if not tests:
        return False
    files = list(dict.fromkeys(name.partition("::")[0] for name in tests))
    chosen = Chosen({name: place for place, name in enumerate(tests)})
    return _in_child([_PROFILE, *files], [chosen], int(60 + _PATIENCE * seconds), mutant) != 0


def _in_child(
    files: list[str], plugins: list[object], seconds: int, mutant: Mutant | None = None, result: Path | None = None
) -> int:
    """Run pytest in a fork of this process, which has the heavy libraries already."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.alarm(LONGEST)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        with TemporaryDirectory() as folder:
            try:
                if mutant is not None:  # before pytest can load the true file
                    if "njit" in mutant.source:  # what was compiled from the true file must not be used
                        importlib.import_module("numba").config.CACHE_DIR = folder
                    loader = _Loader(mutant)
                    sys.meta_path.insert(0, loader)
                    importlib.import_module(loader.name)
                code = int(pytest.main([*_OPTIONS, *files], plugins=plugins))
                if result is not None:
                    result.write_text(json.dumps([[plugin.seconds, _lists(plugin.entered)] for plugin in plugins]))
            except BaseException:
                code = 1
        os._exit(0 if code == NO_TESTS else code)
    _, status = os.waitpid(child, 0)
    return status


def _lists(sets: dict[str, set[str]]) -> dict[str, list[str]]:
    return {name: sorted(entries) for name, entries in sets.items()}


@cache
def _state() -> str:
    """A fingerprint of the package and of what all tests use."""
    helpers = [path for path in sorted((ROOT / "tests").rglob("*.py")) if not path.name.startswith("test_")]
    files = [*sorted(PACKAGE.rglob("*.py")), *helpers]
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def reached(tests: list[str], marks: str) -> Reached:
    """Seconds and functions of every test with these marks; kept until the package or the file of the test changes."""
    kept = json.loads(REACH.read_text()) if REACH.exists() else {}
    found: Reached = {}
    for file in test_files(tests):
        text = (ROOT / file).read_text(encoding="utf-8")
        name = sha256(f"{_state()} {marks} {file} {text}".encode()).hexdigest()
        if name not in kept:
            with TemporaryDirectory() as folder:
                result = Path(folder) / "reach.json"
                if _in_child([_PROFILE, "-m", marks, file], [Reach()], LONGEST, result=result) != 0:
                    sys.exit(f"a test fails without any change: {file}")
                ((seconds, entered),) = json.loads(result.read_text())
            kept[name] = {test: (seconds[test], entered[test]) for test in seconds}
            REACH.parent.mkdir(exist_ok=True)
            REACH.write_text(json.dumps(kept))
        found |= kept[name]
    return found


def test_files(tests: list[str]) -> list[str]:
    """The files of tests behind names of files and folders."""
    places = [ROOT / test for test in tests]
    files = [file for place in places for file in (sorted(place.rglob("test_*.py")) if place.is_dir() else [place])]
    return [file.relative_to(ROOT).as_posix() for file in files]


def sample(count: int, seed: int, only: str | None) -> list[tuple[Mutant, list[str]]]:
    """Mutants drawn at random, each change as likely as any other; the draw depends on their own lines only."""
    found = []
    for name, tests in core_modules().items():
        if only is None or only in name:
            seen: Counter[tuple[str, str]] = Counter()
            for mutant in mutants_of(name):
                seen[mutant.text, mutant.change] += 1
                key = f"{seed} {name} {mutant.text} {mutant.change} {seen[mutant.text, mutant.change]}"
                found.append((sha256(key.encode()).digest(), mutant, tests))
    valid = ((mutant, tests) for _, mutant, tests in sorted(found, key=lambda entry: entry[0]) if _compiles(mutant))
    return list(islice(valid, count))


def _compiles(mutant: Mutant) -> bool:
    try:
        ast.parse(mutant.source)
    except SyntaxError:
        return False
    return True


def main() -> int:
    """Try the sample, print the survivors and the share that was killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="part of a module's name")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="try survivors again")
    arguments = parser.parse_args()
    if old := stale():
        print(*old, sep="\n")
        sys.exit("these lines have changed; judge anew whether the change makes a difference")
    for name in HEAVY:
        importlib.import_module(name)
    os.chdir(ROOT)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    drawn = sample(arguments.count, arguments.seed, arguments.only)
    start = time.monotonic()

    def tried(pair: tuple[Mutant, list[str]]) -> bool:
        mutant, tests = pair
        if mutant.key not in known or (arguments.again and known[mutant.key]):
            known[mutant.key] = not fails(tests, mutant)
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(known))
        done = f"{time.monotonic() - start:6.0f} s"
        print(f"{done}  {'SURVIVED' if known[mutant.key] else 'killed  '}  {mutant}", flush=True)
        return known[mutant.key]

    with ThreadPoolExecutor(arguments.jobs) as pool:
        survived = [mutant for (mutant, _), alive in zip(drawn, pool.map(tried, drawn), strict=True) if alive]
    real = [mutant for mutant in survived if mutant.why_equivalent is None]
    print()
    for mutant in survived:
        why = mutant.why_equivalent
        print(f"{'SURVIVED ' if why is None else 'equivalent'}  {mutant}{'' if why is None else f': {why}'}")
    share = 1 - len(real) / len(drawn)
    equal = f", {len(survived) - len(real)} are equivalent" if len(survived) > len(real) else ""
    print(f"{len(drawn) - len(survived)} of {len(drawn)} mutants were killed{equal}: {share:.1%} of those that differ")
    return 0 if share >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
