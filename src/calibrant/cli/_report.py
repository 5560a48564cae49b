"""Reports written by commands: their file names, and the facts about the data that they list."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from calibrant.cli._errors import RefusedError
from calibrant.cli._target import check_target

_PAGES = (".html", ".htm")


def is_page(path: str | None) -> bool:
    """Whether the name of a file asks for a report, which is a web page."""
    return path is not None and path.lower().endswith(_PAGES)


def check_report(options: Mapping[str, Any]) -> None:
    """Refuse an output file that is no web page, or cannot be written to."""
    output = options["output"]
    if output is None:
        return
    if not is_page(output):
        raise RefusedError("-o", "end in .html, as the report is a web page", got=repr(output))
    check_target(options)


def facts_of(source: Any, **more: str) -> dict[str, str]:
    """The files, the date, and more."""
    return {"files": shown_names(source.names), **more, "made on": today()}


def shown_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def today() -> str:
    """The date of a report."""
    return datetime.now(UTC).strftime("%Y-%m-%d (UTC)")
