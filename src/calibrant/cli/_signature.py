"""Options made from the library's signatures: their names, types, defaults and choices.

Signatures are read from the source without running it: importing the library takes a second, which
is too slow for `--help`. If there is no source, as in a frozen program, the library is imported.
"""

import ast
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, TypeVar

import click

from calibrant.cli._words import option_of

Command = TypeVar("Command", bound=Callable[..., Any])
REQUIRED: Final = inspect.Parameter.empty
"""The default of a parameter that has none."""
_NONE = "none"  # how None is written, if it is not the default


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as declared in its signature: the annotation as text, and the default."""

    kind: str
    default: Any


def number_or(
    *words: str, rule: str, fractions: bool = False
) -> Callable[[str], int | float | str]:
    """A type for a whole number, possibly a fraction, or one of these words."""

    def parse(text: str) -> int | float | str:
        try:
            if text in words:
                return text
            return float(text) if fractions and not text.strip().isdigit() else int(text)
        except ValueError:
            raise click.BadParameter(f"must be {rule}; got {text!r}") from None

    return parse


number_of_bins = number_or("auto", rule="a whole number, or auto")
share = number_or(
    "auto",
    _NONE,
    rule="auto, none, a fraction such as 0.2, or a number of rows",
    fractions=True,
)


def number(text: str) -> float:
    """A type for a number. For a percentage, the error says which number to write."""
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number{_share_for(text)}") from None


def _share_for(text: str) -> str:
    """Advice for a percentage; empty for other texts.

    >>> _share_for("90%")
    ': write 0.9 for 90%'
    """
    try:
        percentage = float(text.strip().removesuffix("%"))
    except ValueError:
        return ""
    return f": write {percentage / 100:g} for {percentage:g}%"


_KINDS: dict[str, Any] = {
    "float": number,
    "int": int,
    "str": str,
    "int | str": number_of_bins,
    "float | str": share,
    "float | int | str": share,
    "tuple[float, float]": (float, float),
    "float | tuple[float, float]": number,
    "FoldChoice": int,
    "Seed": click.IntRange(min=0),
}
"""The type of an option, by the annotation of its parameter. None in it means that the option may
be omitted.
"""


class Declared:
    """The parameters of a function or class of the library, and the options made from them.

    click passes each option to the command under the name of its parameter.
    """

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name
        self._parameters = parameters_of(module, name)
        self.made: list[str] = []

    def default(self, parameter: str) -> Any:
        """The default of a parameter."""
        return self._parameters[parameter].default

    def option(
        self,
        parameter: str,
        text: str | None = None,
        *,
        choices: tuple[str, ...] | None = None,
        **settings: Any,
    ) -> Callable[[Command], Command]:
        """Make an option from a parameter: its name, type and default.

        Parameters
        ----------
        parameter : str
            The name of the parameter. Options with other names are in `_words`.
        text : str, optional
            The help.
        choices : tuple of str, optional
            The allowed words, for a parameter that takes one of several words.
        **settings
            Settings of `click.option`, such as ``metavar``. ``default=None`` is for an option whose
            default is in the help: if it is omitted, so is the argument.
        """
        declared = self._parameters[parameter]
        if choices is not None:
            settings["type"] = click.Choice(choices)
        made = {**_settings_of(declared, settings), **settings}
        self.made.append(parameter)
        return click.option(option_of(parameter), parameter, help=text, **made)

    def arguments(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments given by the options. Omitted ones keep the library's default."""
        given = {name: options[name] for name in self.made}
        return {
            name: None if value == _NONE else value
            for name, value in given.items()
            if value is not None
        }


def _settings_of(declared: Parameter, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for click that follow from a parameter, besides those given."""
    if declared.kind == "bool":
        return {"is_flag": True}
    made: dict[str, Any] = {}
    if "type" not in given:
        made["type"] = _KINDS[declared.kind.removesuffix(" | None")]
    if declared.default is REQUIRED:
        made["required"] = True
    elif declared.default is not None:
        made |= {"default": declared.default, "show_default": True}
    return made


def parameters_of(module: str, name: str) -> dict[str, Parameter]:
    """The parameters of a function or a class, by name."""
    try:
        return read_parameters(module, name)
    except OSError:
        return imported_parameters(module, name)


def words_of(module: str, name: str) -> tuple[str, ...]:
    """The words in a constant: a tuple of words, the keys of a dictionary, or a single word."""
    try:
        found = ast.literal_eval(_assigned(module, name))
    except OSError:
        found = getattr(import_module(f"calibrant.{module}"), name)
    return (found,) if isinstance(found, str) else tuple(found)


def interval_names(*, planned: bool = False) -> tuple[str, ...]:
    """The names of all interval methods, or of those for which `plan` has a bound."""
    try:
        table = _assigned("limits.methods", "METHODS")
    except OSError:
        methods = import_module("calibrant.limits.methods").METHODS
        return tuple(
            name for name, method in methods.items() if method.largest_radius or not planned
        )
    calls = [call for call in ast.walk(table) if isinstance(call, ast.Call)]
    return tuple(
        ast.literal_eval(call.args[0])
        for call in calls
        if not planned or any(given.arg == "largest_radius" for given in call.keywords)
    )


def read_parameters(module: str, name: str) -> dict[str, Parameter]:
    """The parameters declared in the source. Raises OSError if there is no source."""
    found: Any = _source(module)
    for part in name.split("."):
        found = _defined(found, part)
    return _fields_of(found) if isinstance(found, ast.ClassDef) else _arguments_of(found)


def imported_parameters(module: str, name: str) -> dict[str, Parameter]:
    """The parameters of the imported function or class."""
    found = attrgetter(name)(import_module(f"calibrant.{module}"))
    return {
        parameter.name: Parameter(_text_of(parameter.annotation), parameter.default)
        for parameter in inspect.signature(found).parameters.values()
        if parameter.name != "self"
    }


def _text_of(annotation: Any) -> str:
    return inspect.formatannotation(annotation).strip("'")


@cache
def _source(module: str) -> ast.Module:
    text = pkgutil.get_data("calibrant", f"{module.replace('.', '/')}.py")
    if text is None:
        raise OSError(module)
    return ast.parse(text)


def _defined(where: Any, name: str) -> Any:
    """The function or class with this name."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return next(part for part in where.body if isinstance(part, kinds) and part.name == name)


def _assigned(module: str, name: str) -> ast.expr:
    """The value of a constant."""
    for part in _source(module).body:
        targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return part.value  # type: ignore[attr-defined,no-any-return]
    raise KeyError(name)


def _fields_of(declared: ast.ClassDef) -> dict[str, Parameter]:
    """The fields of a dataclass."""
    return {
        part.target.id: Parameter(_annotation(part.annotation), _value(part.value))
        for part in declared.body
        if isinstance(part, ast.AnnAssign)
        and isinstance(part.target, ast.Name)
        and not part.target.id.startswith("_")
    }


def _arguments_of(function: ast.FunctionDef) -> dict[str, Parameter]:
    """The arguments of a function."""
    placed = function.args.args
    n_required = len(placed) - len(function.args.defaults)
    placed_defaults = [*[None] * n_required, *function.args.defaults]
    pairs = [
        *zip(placed, placed_defaults, strict=True),
        *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True),
    ]
    return {
        argument.arg: Parameter(_annotation(argument.annotation), _value(default))
        for argument, default in pairs
        if argument.arg != "self"
    }


def _annotation(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "" if node is None else ast.unparse(node)


def _value(node: ast.expr | None) -> Any:
    return REQUIRED if node is None else ast.literal_eval(node)
