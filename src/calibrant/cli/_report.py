"""Reports written by commands: their file names, and how each was made."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli._errors import RefusedError
from calibrant.cli._input import STANDARD_INPUT
from calibrant.cli._output import harmless
from calibrant.cli._target import check_target
from calibrant.cli._words import in_options

if TYPE_CHECKING:
    from calibrant.text.picture import Picture
    from calibrant.text.result import Result

_PAGES = (".html", ".htm")
_COLUMNS = (
    "score",
    "label",
    "segment",
    "group",
    "weight",
    "pos_label",
    "classes",
    "file_format",
    "decimal",
)
_PASSWORD = re.compile(r"(://[^/@\s:]*):\S*@")


def is_page(path: str | None) -> bool:
    """Whether a file name asks for a report, which is a web page."""
    return path is not None and path.lower().endswith(_PAGES)


def written_files(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The output files; -o can be given several times in some commands."""
    output = options.get("output")
    return output if isinstance(output, tuple) else () if output is None else (output,)


def check_outputs(options: Mapping[str, Any], other: str | None = None) -> None:
    """Reject output files that cannot be written, and those that are neither a report, which is a
    web page, nor of the `other` kind, such as ".json".
    """
    for path in written_files(options):
        if not is_page(path) and (other is None or not path.lower().endswith(other)):
            rule = f"end in {other}, or in .html for a report"
            if other is None:
                rule = "end in .html, as the report is a web page"
            raise RefusedError("-o", rule, got=repr(path))
        check_target({**options, "output": path})


def write_report(
    path: str,
    found: "Result",
    facts: Mapping[str, Any],
    *,
    overwrite: bool,
    pictures: Sequence["Picture"] = (),
    notes: Sequence[str] = (),
    **shown: Any,
) -> None:
    """Write the report of a result, with the command that was run.

    Further pictures and notes come from the command; `shown` is as for `calibrant.Report`.
    """
    from calibrant._file import write_file
    from calibrant.draw.report.page import Extras, Inputs
    from calibrant.draw.report.report import html_of

    context = click.get_current_context()
    inputs = Inputs(
        found,
        command=_shareable(shlex.join(["calibrant", *(context.obj or ())])),
        source={**facts, "made on": datetime.now(UTC).strftime("%Y-%m-%d (UTC)")},
        **shown,
    )
    extras = Extras(tuple(pictures), tuple(notes), places_of(context.params))
    write_file(html_of(inputs, extras, in_options).encode(), path, overwrite=overwrite)


def _shareable(text: str) -> str:
    """The text, with *** for a database password, and printable characters only.

    >>> _shareable("--store postgresql://me:p@ss@host/db")
    '--store postgresql://me:***@host/db'
    >>> _shareable("--store postgresql://me:secret@host/db")
    '--store postgresql://me:***@host/db'
    """
    return harmless(_PASSWORD.sub(r"\1:***@", text))


def places_of(options: Mapping[str, Any]) -> dict[str, str]:
    """The placeholders for follow-up commands: the data, their columns, the column of times, the
    model file, and what a monitor reads and writes.
    """
    data = [name for name in options.get("data") or () if name != STANDARD_INPUT]
    files = shlex.join(data or ["scores.csv"])
    columns = " ".join(_typed_columns(options))
    places = {
        "data": files,
        "rows": f"{files} {columns}".strip(),
        "time": f" --time {shlex.quote(options['time'])}" if options.get("time") else "",
        "lines": shlex.quote(options.get("lines") or "labels.jsonl"),
        "store": shlex.quote(options.get("store") or "watch.db"),
    }
    written = [path for path in written_files(options) if path.lower().endswith(".json")]
    model = options.get("model") or next(iter(written), None)
    if model is not None:
        places["model"] = shlex.quote(model)
    return {name: _shareable(text) for name, text in places.items()}


def _typed_columns(options: Mapping[str, Any]) -> Iterator[str]:
    """The options that name columns and classes, as typed."""
    for name in _COLUMNS:
        value = options.get(name)
        if isinstance(value, str) and (name, value) != ("decimal", "."):
            option = "format" if name == "file_format" else name.replace("_", "-")
            yield f"--{option} {shlex.quote(value)}"


def facts_of(source: Any, **more: str) -> dict[str, str]:
    """The files, and further facts."""
    return {"files": shown_names(source.names), **more}


def shown_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
