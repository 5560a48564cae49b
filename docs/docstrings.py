"""For mkdocstrings: examples without a heading, types and defaults of parameters, `fit` first.

A docstring names the type of a parameter in words, or leaves it to the signature. The default is
always that of the signature.
"""

import re
from collections.abc import Iterator
from typing import Any

from griffe import Class, DocstringSectionParameters, Extension, Object

EXAMPLE = re.compile(r"^>>> ", re.MULTILINE)
PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : (.+))?$", re.MULTILINE)
ENDING = re.compile(r", (?:optional|default=.*)$")
FIRST = (
    "fit",
    "partial_fit",
    "update",
    "predict",
    "predict_proba",
    "predict_interval",
    "predict_set",
)
"""Methods in the order in which they are used; the others follow as the source has them."""


class Docstrings(Extension):
    """What pages of the API show is what the code says."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Put the heading that the parser needs before the first example of a docstring."""
        docstring = obj.docstring
        if docstring is None or "Examples\n---" in docstring.value:
            return
        if found := EXAMPLE.search(docstring.value):
            at = found.start()
            docstring.value = f"{docstring.value[:at]}Examples\n--------\n{docstring.value[at:]}"

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """Correct what was parsed, when all classes and their bases are known."""
        for obj in members(pkg):
            text = "" if obj.docstring is None else obj.docstring.value
            if isinstance(obj, Class):
                obj.exports = in_order(obj)
            if PARAMETERS.search(text):
                correct(obj)
            elif isinstance(obj, Class) and "Attributes\n---" in text:  # a result
                obj.members.pop("__init__", None)  # which users do not make


def members(obj: Object) -> Iterator[Any]:
    """An object, and all that is defined in it."""
    yield obj
    for member in obj.members.values():
        if not member.is_alias:
            yield from members(member)


def in_order(cls: Class) -> list[str]:
    """Names of a class, inherited ones too: those of `FIRST` before the others."""
    own = list(cls.members)
    inherited = [name for name in cls.inherited_members if name not in own]
    names = [*own, *inherited]
    return [name for name in FIRST if name in names] + [name for name in names if name not in FIRST]


def types_in_words(docstring: str) -> dict[str, str]:
    """The type of each parameter for which the docstring names one, in its words."""
    found = PARAMETERS.search(docstring)
    if found is None:
        return {}
    words = {}
    for names, kind in NAMED.findall(found[1]):
        for name in names.split(", "):
            words[name] = ENDING.sub("", kind)
    return {name: kind for name, kind in words.items() if kind}


def signature_of(obj: Any) -> Any:
    """The parameters of a function, or of a class, whose `__init__` may be a base's."""
    if obj.is_class:
        made = obj.all_members.get("__init__")
        return () if made is None else made.parameters
    return obj.parameters if obj.is_function else ()


def correct(obj: Any) -> None:
    """Give each parameter its own type, and the default of the signature."""
    words = types_in_words(obj.docstring.value)
    signature = signature_of(obj)
    sections = obj.docstring.parse("numpy", warnings=False)
    for section in sections:
        if isinstance(section, DocstringSectionParameters):
            for parameter in section.value:
                known = parameter.name in signature
                annotation = signature[parameter.name].annotation if known else None
                parameter.annotation = words.get(parameter.name) or annotation
                parameter.value = signature[parameter.name].default if known else None
    obj.docstring.parsed = sections
