"""Signs that rows belong together, for commands that assume that they do not."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from calibrant._text import render
from calibrant.cli._output import paragraph
from calibrant.cli._words import in_options


def signs_of(data: Any, labels: Mapping[str, Any], options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a look at the first rows finds, as plain values; nothing where groups were named."""
    if options.get("group") is not None:
        return []
    from calibrant._find_groups import find_groups

    return [{**asdict(sign), "text": render(sign.text, in_options)} for sign in find_groups(data, **labels)]


def show_signs(signs: list[dict[str, Any]], *, quiet: bool = False) -> None:
    """Each sign as a warning on standard error."""
    for sign in signs if not quiet else []:
        paragraph(f"warning: {sign['text']}", err=True)
