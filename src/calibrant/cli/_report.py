"""Reports written by commands: their file names, and how each was made."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from calibrant.cli._errors import RefusedError
from calibrant.cli._input import STANDARD_INPUT
from calibrant.cli._output import harmless
from calibrant.cli._target import check_target
from calibrant.cli._words import in_options

if TYPE_CHECKING:
    from calibrant.draw.report.page import Made
    from calibrant.draw.report.pages import Beside
    from calibrant.text.result import Result

_PAGES = (".html", ".htm")
_NOT_SHOWN = ("as_json", "quiet", "debug", "output", "overwrite", "threads", "help")
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


def check_report(options: Mapping[str, Any]) -> None:
    """Reject an output file that is not a web page or cannot be written."""
    output = options["output"]
    if output is None:
        return
    if not is_page(output):
        raise RefusedError("-o", "end in .html, as the report is a web page", got=repr(output))
    check_target(options)


def write_report(
    path: str,
    found: "Result",
    facts: Mapping[str, Any],
    *,
    overwrite: bool,
    beside: "Beside | None" = None,
    **shown: Any,
) -> None:
    """Write the report of a result; `shown` is as for `calibrant.Report`."""
    from calibrant._file import write_file
    from calibrant.draw.report.inputs import Inputs
    from calibrant.draw.report.pages import Beside
    from calibrant.draw.report.report import html_of

    inputs = Inputs(found, **shown)
    made = _made(found, {**facts, "made on": today()}, click.get_current_context())
    page = html_of(inputs, made, beside or Beside(), in_options)
    write_file(page.encode(), path, overwrite=overwrite)


def _made(found: "Result", facts: Mapping[str, Any], context: click.Context) -> "Made":
    """The command being run, its options, and what to do next as commands."""
    from calibrant.draw.report.next_steps import steps_as_commands
    from calibrant.draw.report.page import Made

    typed = shlex.join(["calibrant", *(context.obj or ())])
    return Made(
        command=_shareable(typed),
        source=facts,
        options=dict(_options(context)),
        steps=steps_as_commands(found, _places(context.params)),
    )


def _options(context: click.Context) -> Iterator[tuple[str, str]]:
    """The options that affect the answer, with their values, and which of them are defaults."""
    for parameter in context.command.params:
        name = parameter.name or ""
        value = context.params.get(name)
        if not isinstance(parameter, click.Option) or name in _NOT_SHOWN:
            continue
        if value is None or value is False or value == () or _is_idle(parameter, context):
            continue
        text = "yes" if value is True else _listed(value)
        if context.get_parameter_source(name) is ParameterSource.DEFAULT:
            text = f"{text} (default)"
        yield max(parameter.opts, key=len), _shareable(text)


def _is_idle(parameter: click.Option, context: click.Context) -> bool:
    """Whether an option has no effect, because the option that its help names was not given."""
    found = re.match(r"With --([a-z-]+)", parameter.help or "")
    return found is not None and not context.params.get(found[1].replace("-", "_"))


def _listed(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_listed, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _shareable(text: str) -> str:
    """The text, with *** for a database password, and printable characters only.

    >>> _shareable("--store postgresql://me:p@ss@host/db")
    '--store postgresql://me:***@host/db'
    >>> _shareable("--store postgresql://me:secret@host/db")
    '--store postgresql://me:***@host/db'
    """
    return harmless(_PASSWORD.sub(r"\1:***@", text))


def _places(options: Mapping[str, Any]) -> dict[str, str]:
    """The placeholders for follow-up commands: the data, their columns, the model file, and what a
    monitor reads and writes.
    """
    data = [name for name in options.get("data") or () if name != STANDARD_INPUT]
    files = shlex.join(data or ["scores.csv"])
    model = next((path for path in _models(options)), "model.json")
    columns = " ".join(_typed_columns(options))
    places = {
        "data": files,
        "rows": f"{files} {columns}".strip(),
        "model": shlex.quote(model),
        "lines": shlex.quote(options.get("lines") or "labels.jsonl"),
        "store": shlex.quote(options.get("store") or "watch.db"),
    }
    return {name: _shareable(text) for name, text in places.items()}


def _models(options: Mapping[str, Any]) -> Iterator[str]:
    """The model file that a command reads or writes."""
    if options.get("model") is not None:
        yield options["model"]
    output = options.get("output")
    for path in output if isinstance(output, tuple) else (output,):
        if path is not None and path.lower().endswith(".json"):
            yield path


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


def today() -> str:
    """The date of a report."""
    return datetime.now(UTC).strftime("%Y-%m-%d (UTC)")
