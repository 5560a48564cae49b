"""The tools of developers refer to what is there."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_mutants_are_made_of_modules_that_exist_and_tried_with_tests_that_exist() -> None:
    tree = ast.parse((ROOT / "tools" / "mutants.py").read_text())
    (core,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CORE"
    )
    for module, tests in core.items():
        place = ROOT / "src" / "calibrant" / module
        assert place.is_dir() or place.with_suffix(".py").is_file(), module
        for test in tests.split():
            assert (ROOT / test).exists(), test
