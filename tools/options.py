"""Write into `src/calibrant/cli/options.json` what follows from the library's signatures.

    .venv/bin/python tools/options.py

People write there which options a command has, their names and their help. An entry with a
"parameter" stands for a parameter of the functions or classes that its command names in
"parameters_of": its type, its default, and whether it is required come from the signature. Words to
choose from come from the constants named in "choices_of". A test compares the file with what this
would write, and the parameters with the docstrings.
"""

import inspect
import json
import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parents[1] / "src" / "calibrant" / "cli" / "options.json"
TYPES = {
    "bool": "flag",
    "float": "number",
    "float | tuple[float, float]": "number",
    "FoldChoice": "whole number",
    "int": "whole number",
    "int | str": "whole number or auto",
    "float | str": "share",
    "float | int | str": "share",
    "Seed": "whole number from 0",
    "str": "text",
    "tuple[float, float]": "two numbers",
}
"""The type of an option, by the annotation of its parameter without "None"."""


def found_at(place: str) -> Any:
    """An object of the library, by its module and its name there."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(f"calibrant.{module}"))


def parameters_of(places: list[str]) -> dict[str, inspect.Parameter]:
    """The parameters of functions and classes, by name."""
    found: dict[str, inspect.Parameter] = {}
    for place in places:
        found |= inspect.signature(found_at(place)).parameters
    return found


def words_of(places: list[str]) -> list[str]:
    """Words to choose from: constants of the library (with ?FIELD, the keys of those entries that
    have this field) and single words.
    """
    words: list[str] = []
    for place in places:
        name, _, field = place.partition("?")
        if ":" not in name:
            words.append(name)
            continue
        constant = found_at(name)
        words += [key for key in constant if not field or getattr(constant[key], field)]
    return words


def derived(entry: dict[str, Any], parameters: dict[str, inspect.Parameter]) -> dict[str, Any]:
    """What an entry must have, by the signature and the constants; None for what it must lack."""
    fields: dict[str, Any] = {}
    if "choices_of" in entry:
        fields["choices"] = words_of(entry["choices_of"])
    if "parameter" not in entry or entry.get("own_default"):
        return fields
    declared = parameters[entry["parameter"]]
    kind = inspect.formatannotation(declared.annotation).strip("'").removesuffix(" | None")
    if "choices" not in fields:
        fields["type"] = TYPES[kind]
    required = declared.default is inspect.Parameter.empty
    fields["required"] = True if required else None
    if fields.get("type") != "flag":
        fields["default"] = None if required else declared.default
    return fields


def renewed(content: dict[str, Any]) -> dict[str, Any]:
    """The content of the file with all entries as the library has them."""
    shared = {name: entry | derived(entry, {}) for name, entry in no_parameters(content["shared"])}
    content = {**content, "shared": {**content["shared"], **shared}}
    commands = {}
    for command, entries in content["commands"].items():
        parameters = parameters_of(entries["parameters_of"])
        options = {}
        for name, own in entries["options"].items():
            base = content["shared"].get(name, {})
            fields = derived({**base, **own}, parameters)
            others = {key: value for key, value in fields.items() if base.get(key) != value}
            kept = {key: value for key, value in own.items() if key not in fields}
            options[name] = {**kept, **others}
        commands[command] = {**entries, "options": options}
    return {**content, "commands": commands}


def no_parameters(entries: dict[str, Any]) -> list[tuple[str, Any]]:
    """Entries that do not depend on a signature."""
    return [(name, entry) for name, entry in entries.items() if "parameter" not in entry]


def undocumented(content: dict[str, Any]) -> list[str]:
    """Parameters with an option that no docstring of their command's functions explains."""
    missing = []
    for command, entries in content["commands"].items():
        places = [*entries["parameters_of"], *entries.get("documented_in", ())]
        objects = [found_at(place) for place in places]
        texts = " ".join(f"{inspect.getdoc(one)}" for one in objects)
        for name, own in entries["options"].items():
            parameter = {**content["shared"].get(name, {}), **own}.get("parameter")
            if parameter is not None and not re.search(rf"^.*\b{parameter}\b.* : ", texts, re.M):
                missing.append(f"{command}: {parameter}")
    return missing


def places_of(entries: dict[str, Any]) -> dict[str, Any]:
    """Where the parameters of a command are declared and documented."""
    return {name: value for name, value in entries.items() if name != "options"}


def written(content: dict[str, Any]) -> str:
    """The content as JSON, with one line for each option."""

    def lines(entries: dict[str, Any], indent: str) -> str:
        pairs = (
            f"{indent}{json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items()
        )
        return ",\n".join(pairs)

    commands = ",\n".join(
        f"    {json.dumps(command)}: {{\n{lines(places_of(entries), ' ' * 6)},\n"
        f'      "options": {{\n{lines(entries["options"], " " * 8)}\n      }}\n    }}'
        for command, entries in content["commands"].items()
    )
    shared = lines(content["shared"], " " * 4)
    return f'{{\n  "shared": {{\n{shared}\n  }},\n  "commands": {{\n{commands}\n  }}\n}}\n'


if __name__ == "__main__":
    PLACE.write_text(written(renewed(json.loads(PLACE.read_text()))))
