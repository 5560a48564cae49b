"""Commands, with their options as declared in `options.json`."""

from collections.abc import Callable, Mapping
from inspect import cleandoc
from textwrap import indent
from typing import Any

import click

from calibrant.cli._errors import RefusedError
from calibrant.cli._target import InputPath, OutputPath, StorePath, check_apart
from calibrant.cli._words import declared_options, options_of

_NONE = "none"  # how None is written, if it is not the default
_READING = ("file_format", "decimal", "threads")  # of every command that reads DATA
_COMMON = ("details", "as_json", "quiet", "debug")  # of every command
_NO_HELP = """Run without PYTHONOPTIMIZE=2 to read what this command does: that setting removes such texts from Python.

Examples
--------
PYTHONOPTIMIZE=0 calibrant --help
"""  # noqa: E501


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


_SHARE = "a fraction such as 0.2, or a number of rows"
_TYPES: dict[str, Any] = {
    "text": str,
    "number": number,
    "two numbers": (float, float),
    "whole number": int,
    "whole number from 0": click.IntRange(min=0),
    "whole number from 1": click.IntRange(min=1),
    "whole number from 100": click.IntRange(min=100),
    "whole number or auto": number_or("auto", rule="a whole number, or auto"),
    "whole number, auto or none": number_or("auto", _NONE, rule="a whole number, auto or none"),
    "share": number_or("auto", _NONE, rule=f"auto, none, {_SHARE}", fractions=True),
    "fraction or number of rows": number_or(rule=_SHARE, fractions=True),
    "file": InputPath(allow_dash=True),
    "existing file": InputPath(exists=True),
    "output file": OutputPath(allow_dash=True),
    "store": StorePath(),
}
data = click.Argument(
    ["data"], nargs=-1, required=True, metavar="DATA...", type=InputPath(allow_dash=True)
)
model = click.Argument(["model"], metavar="MODEL", type=InputPath(allow_dash=True))


def default(command: str, name: str) -> Any:
    """The default of an option."""
    return options_of(command)[name].get("default")


def arguments(command: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the library's function that options give. Omitted ones keep its default."""
    given = {
        entry["parameter"]: options[name]
        for name, entry in options_of(command).items()
        if "parameter" in entry
    }
    return {
        parameter: None if value == _NONE else value
        for parameter, value in given.items()
        if value is not None
    }


def _option(name: str, entry: Mapping[str, Any]) -> click.Option:
    how: dict[str, Any] = {"help": entry["help"], "expose_value": name != "debug"}
    if entry.get("type") == "flag":
        how["is_flag"] = True
    else:
        choices = entry.get("choices")
        how["type"] = click.Choice(choices) if choices else _TYPES[entry["type"]]
        how |= {key: entry[key] for key in ("metavar", "required") if entry.get(key)}
        how["multiple"] = entry.get("repeat", False)
    if entry.get("default") is not None:
        how |= {"default": entry["default"], "show_default": not entry.get("hide_default")}
    flags = [entry[key] for key in ("short", "option") if key in entry]
    return click.Option([*flags, name], **how)


class Documented(click.Command):
    """A command whose docstring is its help. The Examples section comes last and is printed
    verbatim.
    """

    def __init__(self, name: str | None, **settings: Any) -> None:
        documented = cleandoc(settings.pop("help") or _NO_HELP)
        text, _, shown = documented.partition("\n\nExamples\n--------\n")
        super().__init__(
            name, help=text, epilog=f"\b\nExamples:\n{indent(shown, '  ')}", **settings
        )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless it would overwrite its input."""
        check_apart(self.params, ctx.params)
        return super().invoke(ctx)


def command(
    name: str, short_help: str, *given: click.Argument
) -> Callable[[Callable[..., Any]], click.Command]:
    """Turn a function into a command with these arguments and its declared options."""
    shared = declared_options()["shared"]
    more = (*_READING, *_COMMON) if data in given else _COMMON
    entries = {**options_of(name), **{one: shared[one] for one in more}}
    params = [*given, *(_option(one, entry) for one, entry in entries.items())]

    def made(function: Callable[..., Any]) -> click.Command:
        return Documented(
            name, params=params, callback=function, help=function.__doc__, short_help=short_help
        )

    return made


BOUNDS = {"max_group_size": "group", "weight_bound": "weight"}
"""The column that a bound is about."""


def check_needed(options: Mapping[str, Any], needs: Mapping[str, str] = BOUNDS) -> None:
    """Reject an option without the one that it needs: by default a bound without its column."""
    for name, other in needs.items():
        if options.get(name) is not None and options[other] is None:
            what = " last" if other == "holdout" else f", the column of {other}s"
            raise RefusedError(f"--{name.replace('_', '-')}", f"be used with --{other}{what}")
