"""Options are made from signatures, which are read from the source without importing the library."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import click
import pytest

import calibrant.cli
from calibrant.cli import _signature
from calibrant.cli._app import app
from calibrant.cli._signature import (
    Declared,
    imported_parameters,
    interval_names,
    read_parameters,
    words_of,
)
from calibrant.cli._words import _OPTIONS, _OTHERS
from calibrant.limits.methods import METHODS


def declared() -> Iterator[Declared]:
    """Every signature that a command makes options of."""
    for module in iter_modules(calibrant.cli.__path__):
        for found in vars(import_module(f"calibrant.cli.{module.name}")).values():
            if isinstance(found, Declared):
                yield found


DECLARED = {f"{found.module}:{found.name}": found for found in declared()}


def options() -> dict[str, set[str]]:
    """The options of each command."""
    with click.Context(app) as context:
        commands = {name: app.get_command(context, name) for name in app.list_commands(context)}
    return {
        name: {flag for parameter in command.params for flag in parameter.opts}
        for name, command in commands.items()
        if command is not None
    }


@pytest.mark.parametrize("name", DECLARED)
def test_the_source_declares_what_the_library_has(name: str) -> None:
    place = name.split(":")
    read = read_parameters(*place)
    imported = imported_parameters(*place)
    assert list(read) == [parameter for parameter in imported if parameter in read]
    for parameter, found in read.items():
        assert found.default == imported[parameter].default
        if parameter in DECLARED[name].made and parameter != "maturity":  # of a type of its own
            assert found.kind == imported[parameter].kind


def test_most_signatures_make_options() -> None:
    assert len(DECLARED) >= 12


def test_names_of_intervals_are_those_of_the_registry() -> None:
    assert interval_names() == tuple(METHODS)
    planned = {name for name, method in METHODS.items() if method.largest_radius is not None}
    assert set(interval_names(planned=True)) == planned
    assert set(METHODS) - planned == {"clopper-pearson-weighted"}


def test_choices_are_those_of_the_library() -> None:
    from calibrant.cli import export
    from calibrant.export import DIALECTS
    from calibrant.sample.sources.file_kind import FORMATS

    assert words_of("sample.sources.file_kind", "FORMATS") == tuple(FORMATS)
    assert set(export.DIALECTS) == set(DIALECTS)


def test_without_sources_the_library_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {
        "words": words_of("assess.threshold.threshold", "METHODS"),
        "parameters": Declared("assess.threshold.threshold", "threshold").default("pilot"),
        "intervals": interval_names(planned=True),
    }

    def no_source(module: str) -> Any:
        raise OSError(module)

    monkeypatch.setattr(_signature, "_source", no_source)
    assert expected == {
        "words": words_of("assess.threshold.threshold", "METHODS"),
        "parameters": Declared("assess.threshold.threshold", "threshold").default("pilot"),
        "intervals": interval_names(planned=True),
    }


def test_what_is_left_out_keeps_the_default_of_the_library() -> None:
    plan = Declared("assess.plan.plan", "plan")
    plan.option("pilot", default=None)
    plan.option("n_bins")
    assert plan.arguments({"pilot": None, "n_bins": 7}) == {"n_bins": 7}
    assert plan.arguments({"pilot": "none", "n_bins": 7}) == {"pilot": None, "n_bins": 7}


def test_every_name_in_messages_is_an_option() -> None:
    known = set().union(*options().values())
    assert {f"--{name.replace('_', '-')}" for name in _OPTIONS} <= known
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
