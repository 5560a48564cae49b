"""Small changes of Python code: each module of the package with one comparison, constant, operator,
condition or call changed; and how a process is given one of them. `mutant_trials.py` tries them.
"""

import ast
import copy
import gc
import importlib.abc
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

PACKAGE = Path(__file__).parents[1] / "src" / "calibrant"

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
    lines: tuple[int, int]
    """The first and last line of its statement; of a block, those of its head."""

    @property
    def path(self) -> Path:
        """The file that is changed."""
        return PACKAGE / f"{self.module}.py"

    @property
    def key(self) -> str:
        """A name for it that stays the same as long as the file does."""
        return sha256(f"{self.module} {self.source}".encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"src/calibrant/{self.module}.py:{self.line}: {self.change}"


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every mutant of one module; some are no valid Python."""
    text = (PACKAGE / f"{module}.py").read_bytes()
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    tree = ast.parse(text)
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    lines_of = dict(_lines_of_statements(tree, (0, 0)))
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
                module,
                line,
                lines[line - 1].decode().strip(),
                change,
                source,
                f"{module}:{first}",
                lines_of[node],
            )


def _lines_of_statements(
    node: ast.AST, lines: tuple[int, int]
) -> Iterator[tuple[ast.AST, tuple[int, int]]]:
    """Each node with the lines of the statement that it is part of."""
    for child in ast.iter_child_nodes(node):
        own = lines
        if isinstance(child, ast.stmt):
            blocks: list[ast.stmt] = getattr(child, "body", [])
            last = blocks[0].lineno - 1 if blocks else child.end_lineno or child.lineno
            own = (child.lineno, max(child.lineno, last))
        yield child, own
        yield from _lines_of_statements(child, own)


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


def patch_of(mutant: Mutant) -> dict[FunctionType, CodeType] | None:
    """The functions of this process that the change is in, with their new code.

    None where the change cannot be made so.
    """
    if mutant.function.endswith(":0") or "njit" in mutant.source:
        return None
    name = str(mutant.path)
    before = list(_codes(compile(mutant.path.read_text(encoding="utf-8"), name, "exec")))
    after = list(_codes(compile(mutant.source, name, "exec")))
    if [one.co_qualname for one in before] != [one.co_qualname for one in after]:
        return None
    new = {
        (old.co_qualname, old.co_firstlineno): code
        for old, code in zip(before, after, strict=True)
        if old != code
    }
    patch = {}
    for function in functions_of(name):
        own = function.__code__
        code = new.get((own.co_qualname, own.co_firstlineno))
        if code is not None and len(code.co_freevars) != len(own.co_freevars):
            return None
        if code is not None:
            patch[function] = code
    return patch or None


def functions_of(file: str) -> list[FunctionType]:
    """The functions of this process that were made from a file."""
    return [one for one in _functions() if one.__code__.co_filename == file]


@cache
def _functions() -> list[FunctionType]:
    return [one for one in objects() if isinstance(one, FunctionType)]


def objects() -> list[Any]:
    """What this process has made; also what tests hide from the search for garbage."""
    gc.unfreeze()
    found = gc.get_objects()
    gc.freeze()
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


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
