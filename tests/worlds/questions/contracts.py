"""What others rely on: the defaults of public signatures, and what each entry of a file may be.

A default is part of what a call means, and the table of entries is the format of model files: files
of earlier releases must be read by later ones.
"""

import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pkgutil import walk_packages
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import calibrant
from worlds.questions.base import QUESTIONS, Text

NUMERIC = ("assess", "calibrators", "cells", "guarantee", "limits", "monitor", "shift", "streams")
_PACKAGES = tuple(f"calibrant.{name}." for name in NUMERIC)


def described(value: Any) -> str:
    """A rule or an entry in words: its class, and what it was made with beside defaults."""
    if isinstance(value, type | FunctionType | ModuleType):
        return str(value.__name__)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {described(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(described, value))}]"
    if isinstance(value, set | frozenset):
        return f"[{', '.join(sorted(map(described, value)))}]"
    if isinstance(value, np.ndarray | np.generic):
        return repr(value.tolist())
    if not type(value).__module__.startswith("calibrant"):
        return repr(value)
    inside = (f"{name}={described(one)}" for name, one in sorted(_given(value).items()))
    return f"{type(value).__name__}({', '.join(inside)})"


def _given(value: Any) -> dict[str, Any]:
    """The attributes of an object that are not what they are by default."""
    if is_dataclass(value):
        found = {one.name: (getattr(value, one.name), one.default) for one in fields(value)}
        return {name: one for name, (one, usual) in found.items() if one is not usual}
    return dict(getattr(value, "__dict__", {}))


def _public() -> Iterator[tuple[str, Any]]:
    """Public functions and classes, by name."""
    named = [getattr(calibrant, name) for name in dir(calibrant)]
    for module in (calibrant, *(one for one in named if isinstance(one, ModuleType))):
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            is_warning = isinstance(value, type) and issubclass(value, Warning)
            if callable(value) and _is_ours(value) and not is_warning:
                yield f"{module.__name__}.{name}", value


def _is_ours(member: Any) -> bool:
    return str(getattr(member, "__module__", "")).startswith("calibrant")


def _defaults(name: str, value: Any) -> Iterator[Text]:
    """Each default of a function, or of how a class is made and its public methods."""
    methods = [(name, value)]
    if inspect.isclass(value):
        methods += [
            (f"{name}.{own}", member)
            for own, member in inspect.getmembers(value, callable)
            if not own.startswith("_") and _is_ours(member)
        ]
    for own, one in methods:
        for parameter in inspect.signature(one).parameters.values():
            if parameter.default is not parameter.empty and parameter.default is not None:
                yield Text(f"{own} {parameter.name}={described(parameter.default)}")


for _name, _value in sorted(dict(_public()).items()):
    if list(_defaults(_name, _value)):

        def defaults(name: str = _name, value: Any = _value) -> Any:
            return list(_defaults(name, value))

        QUESTIONS[f"defaults of {_name}"] = defaults


def _declared() -> dict[str, Any]:
    """Classes of the numeric core that declare what their state is made of, by name."""
    found = {}
    for one in walk_packages(calibrant.__path__, "calibrant."):
        if one.name.startswith(_PACKAGES):
            for value in vars(import_module(one.name)).values():
                if isinstance(value, type) and value.__module__ == one.name:
                    found[f"{one.name}.{value.__qualname__}"] = value
    return {
        name: value
        for name, value in found.items()
        if isinstance(vars(value).get("_entries"), dict)
    }


for _name, _class in sorted(_declared().items()):

    def entries(kind: Any = _class) -> Any:
        return [Text(f"{name}: {described(one)}") for name, one in kind._entries.items()]

    QUESTIONS[f"entries of {_name.removeprefix('calibrant.')}"] = entries
