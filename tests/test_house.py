"""Rules that hold in every file of the package: what may be imported, asked and said where."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant import calibrators, intervals, metrics, tripod

ROOT = Path(__file__).parents[1]
OUR_ERRORS = {"CalibrantError", "InvalidTypeError", "InvalidValueError"}
PARTITIONS = {"Bins", "FunctionPartition", "ScorePartition", "SegmentedPartition"}
RANDOM_MODULES = {"random", "numpy.random"}


@pytest.fixture(scope="module")
def sources() -> dict[Path, list[ast.AST]]:
    """All nodes of each file of the package, the module first, parsed and walked once for all
    rules.
    """
    texts = {
        path.relative_to(ROOT / "src"): path.read_text("utf-8") for path in ROOT.glob("src/**/*.py")
    }
    return {path: list(ast.walk(ast.parse(text))) for path, text in texts.items()}


def calls(nodes: Iterable[ast.AST], function: str) -> list[ast.Call]:
    """Calls of a function by its own name."""
    found = (node for node in nodes if isinstance(node, ast.Call))
    return [call for call in found if isinstance(call.func, ast.Name) and call.func.id == function]


def names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@pytest.mark.broad
def test_no_code_decides_by_the_text_of_our_errors(sources: dict[Path, list[ast.AST]]) -> None:
    """They carry fields. Text is put into other text at most: never compared, searched or replaced."""
    for path, nodes in sources.items():
        handlers = (
            node
            for node in nodes
            if isinstance(node, ast.ExceptHandler) and node.type and node.name
        )
        for handler in (one for one in handlers if names_in(one.type) & OUR_ERRORS):
            deciding = [
                node
                for node in ast.walk(handler)
                if isinstance(node, ast.Compare)
                or (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr != "message"
                )
            ]
            for node in deciding:
                texts = [
                    call for call in calls(ast.walk(node), "str") if handler.name in names_in(call)
                ]
                assert not texts, f"{path}, line {node.lineno}"


def is_random_of_numpy(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "random"
        and names_in(node.value) <= {"np", "numpy"}
    )


@pytest.mark.broad
def test_random_numbers_come_from_one_source(sources: dict[Path, list[ast.AST]]) -> None:
    """A draw is keyed by the rows it is for.

    Adversaries simulate theirs.
    """
    for path, nodes in sources.items():
        if path.parts[1:] == ("params", "random.py"):
            continue
        for node in nodes:
            where = f"{path}, line {getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                assert not {name.name for name in node.names} & RANDOM_MODULES, where
            if isinstance(node, ast.ImportFrom):
                assert node.module not in RANDOM_MODULES, where
                simulates = "adversary" in path.parts
                assert simulates or "as_generator" not in {name.name for name in node.names}, where
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert not is_random_of_numpy(node.func.value), where
                assert node.func.attr not in {"default_rng", "urandom"}, where
            if isinstance(node, ast.Attribute) and is_random_of_numpy(node.value):
                assert node.attr in {"Generator", "RandomState", "SeedSequence"}, where  # types


@pytest.mark.broad
def test_the_kind_of_a_partition_is_asked_within_its_package_only(
    sources: dict[Path, list[ast.AST]],
) -> None:
    for path, nodes in sources.items():
        if path.parts[1] != "cells":
            asked = [
                call for call in calls(nodes, "isinstance") if names_in(call.args[1]) & PARTITIONS
            ]
            assert not asked, f"{path}, line {asked[0].lineno}"


def test_exports_know_no_class_of_calibrators(sources: dict[Path, list[ast.AST]]) -> None:
    """A calibrator gives its own table, so that no export asks what it is."""
    for name in ("onnx", "python", "sql", "table"):
        nodes = sources[Path("calibrant", "answers", f"{name}.py")]
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        known = {alias.name for node in imports for alias in node.names}
        classes = {one for one in known if one.endswith("Calibrator")} | known & {
            "MonotoneBand",
            "Threshold",
        }
        assert not classes, f"{name}.py imports {sorted(classes)}"


MOST_ASKED = 10
"""Places that may ask whether something is of one of our own classes."""


def own_classes(sources: dict[Path, list[ast.AST]]) -> dict[str, set[str]]:
    """For each file, the names by which it knows our classes: those that it defines or imports."""
    classes = [
        node for nodes in sources.values() for node in nodes if isinstance(node, ast.ClassDef)
    ]
    errors = {one.name for one in classes if one.name.endswith(("Error", "Warning"))}
    ours = {one.name for one in classes} - errors
    known = {}
    for path, nodes in sources.items():
        found = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        for node in imports:
            if node.module.startswith("calibrant"):
                found |= {alias.name for alias in node.names}
        known[str(path)] = found & ours
    return known


def test_few_places_ask_for_a_class_of_ours(sources: dict[Path, list[ast.AST]]) -> None:
    """An object gives its own answer, so that a new class is added in one place.

    Binary operators are left out: they return NotImplemented for other types, as Python wants it.
    Errors are, too.
    """
    known = own_classes(sources)
    asked = []
    for path, nodes in sources.items():
        operators = {
            call
            for node in nodes
            if isinstance(node, ast.FunctionDef)
            and node.name.startswith("__")
            and node.name != "__init__"
            for call in ast.walk(node)
        }
        asked += [
            f"{path}, line {call.lineno}: {ast.unparse(call)}"
            for call in [*calls(nodes, "isinstance"), *calls(nodes, "issubclass")]
            if call not in operators and names_in(call.args[1]) & known[str(path)]
        ]
    assert len(asked) <= MOST_ASKED, "\n".join(asked)


@pytest.mark.broad
def test_no_private_module_or_name_of_another_library_is_imported(
    sources: dict[Path, list[ast.AST]],
) -> None:
    for path, nodes in sources.items():
        for node in nodes:
            if (
                isinstance(node, ast.ImportFrom)
                and node.module
                and not node.module.startswith("calibrant")
            ):
                parts = [*node.module.split("."), *(name.name for name in node.names)]
                assert not [part for part in parts if re.match(r"_[a-z]", part)], (
                    f"{path}, line {node.lineno}"
                )


def package_of(path: Path) -> str:
    return path.parts[1] if len(path.parts) > 2 else path.stem


def is_private(name: str) -> bool:
    return re.match(r"_[a-zA-Z]", name) is not None


@pytest.mark.broad
def test_no_private_name_is_imported_from_another_module(
    sources: dict[Path, list[ast.AST]],
) -> None:
    """A private module may be: its name says that users do not import it."""
    modules = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in sources}
    for path, nodes in sources.items():
        own = ".".join(path.with_suffix("").parts)
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module != own:
                names = [alias.name for alias in node.names if is_private(alias.name)]
                crossing = [name for name in names if f"{node.module}.{name}" not in modules]
                assert not crossing, f"{path}, line {node.lineno}"


@pytest.mark.broad
def test_no_package_uses_private_parts_of_another_package(
    sources: dict[Path, list[ast.AST]],
) -> None:
    """Except what its own class inherits."""
    defined: dict[str, set[str]] = {}
    for path, nodes in sources.items():
        for node in nodes:
            name = (
                getattr(node, "name", None)
                or getattr(node, "attr", None)
                or getattr(node, "id", None)
            )
            stored = isinstance(node, ast.FunctionDef | ast.ClassDef) or isinstance(
                getattr(node, "ctx", None), ast.Store
            )
            if stored and isinstance(name, str) and is_private(name):
                defined.setdefault(name, set()).add(package_of(path))
    allowed = {
        "_getframe",
        "_replace",
        "_check_parameters",
        "_repr_html_",
    }  # of `sys`, of named tuples, of every estimator, and of what notebooks show
    for path, nodes in sources.items():
        for node in nodes:
            if (
                isinstance(node, ast.Attribute)
                and is_private(node.attr)
                and node.attr not in allowed
            ):
                owner = ast.unparse(node.value)
                own = owner in ("self", "cls", "super()", "other") or package_of(
                    path
                ) in defined.get(node.attr, set())
                assert own, f"{path}, line {node.lineno}: {owner}.{node.attr}"


SAME_INTERFACE = ({"cli"}, {"kernels", "gpu"}, {"limits"})
"""Packages whose modules implement one interface: a command, a kernel, an interval method."""


@pytest.mark.broad
def test_no_two_modules_define_the_same_name(sources: dict[Path, list[ast.AST]]) -> None:
    homes: dict[str, set[Path]] = {}
    for path, nodes in sources.items():
        for node in nodes[0].body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, set()).add(path)
    doubles = {name: paths for name, paths in homes.items() if len(paths) > 1}
    known = {
        name
        for name, paths in doubles.items()
        if any({package_of(path) for path in paths} <= packages for packages in SAME_INTERFACE)
    }
    assert doubles.keys() == known


def public_calls() -> Iterator[tuple[str, inspect.Signature]]:
    """Public functions, and the public methods of public classes that learn or draw."""
    for module in (calibrant, calibrators, intervals, metrics, tripod):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isfunction(found):
                yield name, inspect.signature(found)
            elif inspect.isclass(found) and {"fit", "partial_fit", "update", "from_predictions"} & {
                *dir(found)
            }:
                for part, method in inspect.getmembers(found, callable):
                    if not part.startswith("_") and getattr(method, "__module__", "").startswith(
                        "calibrant"
                    ):
                        yield f"{name}.{part}", inspect.signature(method)


def test_estimators_take_scores_first_and_whatever_judges_takes_labels_first() -> None:
    seen = 0
    for name, signature in public_calls():
        order = [part for part in signature.parameters if part in ("y", "scores")]
        if len(order) == 2:
            learns = name.rpartition(".")[2] in ("fit", "partial_fit", "update")
            assert order == (["scores", "y"] if learns else ["y", "scores"]), name
            seen += 1
    assert seen > 20


def test_no_parameter_of_the_public_functions_and_estimators_takes_anything() -> None:
    for name, signature in public_calls():
        for part in signature.parameters.values():
            keywords = part.kind is inspect.Parameter.VAR_KEYWORD
            assert (
                part.name == "self"
                or keywords
                or part.annotation not in (Any, "Any", inspect.Parameter.empty)
            ), name


LONGEST_SIGNATURE = 500
LONGER = {
    "audit": 570,
    "threshold": 660,
    "ShiftCalibrator.fit": 720,
    "ReliabilityDisplay.from_predictions": 570,
}
"""Those of functions with more than fifteen arguments."""


def test_signatures_are_short_and_show_plain_types() -> None:
    for name, signature in public_calls():
        shown = str(signature)
        assert len(shown) <= LONGER.get(name, LONGEST_SIGNATURE), f"{name}: {len(shown)}"
        assert "_NestedSequence" not in shown, name
        assert " at 0x" not in shown, name


MOST_COMPLEX = 19
"""Cyclomatic complexity, counted as radon does.

A function with more is split into steps that have names.
"""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def branches(node: ast.AST) -> int:
    """Decisions that a node itself takes, those within it apart."""
    match node:
        case ast.If() | ast.IfExp() | ast.Assert():
            return 1
        case ast.For() | ast.AsyncFor() | ast.While():
            return 1 + bool(node.orelse)
        case ast.Try() | ast.TryStar():
            return len(node.handlers) + bool(node.orelse)
        case ast.BoolOp():
            return len(node.values) - 1
        case ast.comprehension():
            return 1 + len(node.ifs)
        case ast.Match():
            catch_all = any(
                isinstance(case.pattern, ast.MatchAs) and not case.pattern.pattern
                for case in node.cases
            )
            return len(node.cases) - catch_all
    return 0


def complexity(function: Function) -> int:
    """One more than the decisions of a function.

    Functions and classes within it count on their own.
    """
    count = 1
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Function | ast.ClassDef):
            count += branches(node)
            waiting += ast.iter_child_nodes(node)
    return count


DECISIONS = """
def decisions(rows, limit=3 if True else 4):
    if rows and limit or rows:                        # 1, and 2 operators
        assert rows                                   # 1
    elif limit:                                       # 1
        return [row for row in rows if row if limit]  # 3
    else:
        return 1 if limit else 2                      # 1
    for row in rows:                                  # 1
        continue
    else:                                             # 1
        pass
    while limit:                                      # 1
        break
    try:
        match rows:
            case 1 | 2:                               # 1
                pass
            case [_]:                                 # 1
                pass
            case _:
                pass
    except TypeError:                                 # 1
        pass
    except ValueError:                                # 1
        pass
    else:                                             # 1
        pass
    with rows:
        inside = lambda row: row and limit            # 1
    def inner():
        return limit and rows
"""


def test_complexity_is_counted_as_radon_counts_it() -> None:
    [function] = ast.parse(DECISIONS).body
    assert isinstance(function, ast.FunctionDef)
    assert complexity(function) == 1 + 18


@pytest.mark.broad
def test_no_function_is_too_complex(sources: dict[Path, list[ast.AST]]) -> None:
    functions = [
        (path, node)
        for path, nodes in sources.items()
        for node in nodes
        if isinstance(node, Function)
    ]
    assert len(functions) > 1_000
    found = [
        (complexity(node), f"{path}, line {node.lineno}: {node.name}") for path, node in functions
    ]
    assert [one for one in found if one[0] > MOST_COMPLEX] == []


LONGEST_FUNCTION = 60
"""Lines without the docstring, so that a function fits on a screen."""


def lines_of(function: Function) -> int:
    """The lines of a function, without its docstring."""
    last = function.end_lineno or function.lineno
    lines = last - function.lineno
    if ast.get_docstring(function, clean=False) is not None:
        text = function.body[0]
        lines -= (text.end_lineno or text.lineno) - text.lineno + 1
    return lines


def test_every_function_fits_on_a_screen(sources: dict[Path, list[ast.AST]]) -> None:
    long = [
        (lines_of(node), f"{path}, line {node.lineno}: {node.name}")
        for path, nodes in sources.items()
        for node in nodes
        if isinstance(node, Function) and lines_of(node) > LONGEST_FUNCTION
    ]
    assert long == []


METHODS_AND_PEOPLE = ("_typing", "betting", "binning", "hoeffding")


def test_one_assignment_a_line(sources: dict[Path, list[ast.AST]]) -> None:
    """`a, b = x, y` only to swap: where a value reads a name that the line assigns."""
    for path, nodes in sources.items():
        for node in nodes:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
                continue
            target = node.targets[0]
            if not isinstance(target, ast.Tuple) or len(target.elts) != len(node.value.elts):
                continue
            swapped = names_in(target) & names_in(node.value)
            assert swapped, f"{path}:{node.lineno}: two assignments in one line"


def test_modules_are_named_by_nouns(sources: dict[Path, list[ast.AST]]) -> None:
    names = {part.removesuffix(".py") for path in sources for part in path.parts}
    assert {
        name for name in names if name.endswith("ing") and not name.endswith(METHODS_AND_PEOPLE)
    } == set()


def test_the_tree_of_the_design_page_is_that_of_the_package() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    tree = page.partition("src/calibrant/\n")[2].partition("```")[0]
    lines = [line for line in tree.splitlines() if not line.startswith("   ")]  # a line goes on so
    told = {line.split()[0].rstrip("/") for line in lines}
    inside = (ROOT / "src" / "calibrant").iterdir()
    there = {
        path.name for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert told == there - {"__main__.py", "_version.py"}
