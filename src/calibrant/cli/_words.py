"""The options declared in `options.json`, and what parameters of the library are called in messages.

That file says which options a command has, in the order of `--help`. What follows from the library's
signatures is written into it by `tools/options.py`, so that `--help` imports nothing heavy.

Errors and results carry the names of parameters as data (`calibrant.text.sentences.Setting`). Here
each name becomes an option, or a plain noun if there is no option. Nothing else in a message
changes.
"""

from functools import cache
from importlib.resources import files
from typing import Any

from calibrant._json import read_json
from calibrant.text.sentences import Setting

_OTHERS = {
    "calibrator": "the model",
    "format": "--format",
    "groups": "--group",
    "importance_weight": "--weight",
    "keep_segments": "--keep-segment",
    "n_jobs": "--threads",
    "partition": "the bins",
    "scores": "the scores",
    "segment_rule": "--min-rows or --keep-segment",
    "segments": "the segments",
    "sequential": "--order",
    "unlabelled_scores": "--unlabelled",
    "y": "the labels",
}
"""What is called otherwise than the value of an option."""


@cache
def declared_options() -> dict[str, Any]:
    """The content of `options.json`."""
    content: dict[str, Any] = read_json(
        (files("calibrant.cli") / "options.json").read_text("utf-8"), "options.json"
    )
    return content


def options_of(command: str) -> dict[str, dict[str, Any]]:
    """The options of a command, by name, without those of all commands."""
    shared = declared_options()["shared"]
    own = declared_options()["commands"].get(command, {"options": {}})["options"]
    return {name: {**shared.get(name, {}), **entry} for name, entry in own.items()}


@cache
def option_names() -> dict[str, str]:
    """All options, by the parameter of the library or the name of their value."""
    places = [declared_options()["shared"], *map(options_of, declared_options()["commands"])]
    return {name: entry["option"] for entries in places for name, entry in entries.items()}


def in_options(setting: Setting) -> str:
    """A setting as written on the command line.

    >>> [in_options(Setting(*pair)) for pair in (("n_bins", 10), ("classes", (0, 1)),
    ...     ("overwrite", True))]
    ['--bins 10', '--classes 0,1', '--overwrite']
    >>> in_options(Setting("method", "platt", python="PlattCalibrator()")), in_options(Setting("y"))
    ('--method platt', 'the labels')
    """
    known = {**option_names(), **_OTHERS}
    name = known.get(setting.parameter, setting.parameter)
    value = setting.value
    if name == "row" and isinstance(value, int):
        return f"row {value + 1:,}"  # people open files in editors, which count from 1
    if not setting.has_value or value is True:
        return name
    if value is None:
        return f"no {name}"
    return f"{name} {','.join(map(str, value)) if isinstance(value, list | tuple) else value}"
