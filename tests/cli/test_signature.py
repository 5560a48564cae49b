"""Options are declared in one file, which agrees with the library's signatures and docstrings."""

import json
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Any

import click
import pytest

from calibrant.cli._app import app
from calibrant.cli._options import arguments
from calibrant.cli._words import _OTHERS, option_names, options_of
from calibrant.limits.methods import METHODS

TOOL = Path(__file__).parents[2] / "tools" / "options.py"
SPEC = util.spec_from_file_location("options_tool", TOOL)
assert SPEC is not None
assert SPEC.loader is not None
tool: Any = util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)
CONTENT = json.loads(tool.PLACE.read_text())


def options() -> dict[str, set[str]]:
    """The options of each command."""
    with click.Context(app) as context:
        commands = {name: app.get_command(context, name) for name in app.list_commands(context)}
    return {
        name: {flag for parameter in command.params for flag in parameter.opts}
        for name, command in commands.items()
        if command is not None
    }


def test_the_file_is_what_the_tool_writes() -> None:
    assert tool.PLACE.read_text() == tool.written(tool.renewed(CONTENT))


def test_a_changed_signature_is_noticed() -> None:
    other = json.loads(tool.PLACE.read_text())
    other["commands"]["threshold"]["options"]["pilot"]["default"] = 0.3
    other["commands"]["plan"]["options"]["interval"]["choices"] = ["exact"]
    assert tool.renewed(other) == CONTENT


def test_every_parameter_with_an_option_is_documented() -> None:
    assert not tool.undocumented(CONTENT)


@pytest.mark.parametrize("command", CONTENT["commands"])
def test_every_option_has_a_help_and_no_name_is_given_twice(command: str) -> None:
    entries = options_of(command)
    flags = [entry["option"] for entry in entries.values()]
    assert len(set(flags)) == len(flags)
    assert all(entry["help"] for entry in entries.values())
    assert options()[command] >= set(flags)


def test_names_of_intervals_are_those_of_the_registry() -> None:
    assert options_of("fit")["interval"]["choices"] == [*METHODS, "betting"]
    assert options_of("plan")["interval"]["choices"] == [*METHODS]


def test_what_is_left_out_keeps_the_default_of_the_library() -> None:
    given: dict[str, Any] = dict.fromkeys(options_of("plan"))
    assert arguments("plan", {**given, "n_bins": 7}) == {"n_bins": 7}
    assert arguments("plan", {**given, "pilot": "none"}) == {"pilot": None}


def test_every_name_in_messages_is_an_option() -> None:
    known = set().union(*options().values())
    assert set(option_names().values()) <= known
    flags = [word for text in _OTHERS.values() for word in text.split() if word.startswith("--")]
    assert set(flags) <= known


def test_help_of_every_command_imports_no_library() -> None:
    code = (
        "import sys\nfrom calibrant.cli._app import app\n"
        "import click\ncontext = click.Context(app)\n"
        "for name in app.list_commands(context):\n"
        "    app.get_command(context, name).get_help(click.Context(app, info_name=name))\n"
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert not loaded & {"numpy", "scipy", "sklearn", "pyarrow", "pandas"}
