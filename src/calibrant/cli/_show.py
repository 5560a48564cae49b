"""Show any result: as text, as JSON, and as a report."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli._output import is_quiet, paragraph, print_json, say, warn, width
from calibrant.cli._report import is_page, places_of, write_report, written_files
from calibrant.cli._words import in_options
from calibrant.text.quantity import NextStep
from calibrant.text.result import Result, parts_of, wrapped
from calibrant.text.sentences import PlainText, Setting, render, rendered

if TYPE_CHECKING:
    from calibrant.calibrators.score_calibrator import ScoreCalibrator

EXIT_CODES = {"ok": 0, "problem": 1, "unclear": 3, None: 0}
"""The exit code of a command that was asked for a verdict."""


def answer(
    result: Result,
    options: Mapping[str, Any],
    facts: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
    *,
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
    also: Sequence[Result] = (),
    words: PlainText = in_options,
    entry: str | None = "report",
    **shown: Any,
) -> int:
    """Write the reports of a result that were asked for, and show the result; return the exit code.

    Parameters
    ----------
    result : Result
    options : mapping
        The options of the command.
    facts : mapping, optional
        About the data, for the report.
    more : mapping, optional
        Further entries of the JSON object.
    notes, warnings : sequence of str
        About the rows. Warnings go to standard error.
    also : sequence of Result
        What else was asked for: printed after the result.
    words : callable
        How settings are written.
    entry : str or None
        The entry of the JSON object that names the output file; None for none.
    **shown
        As for `write_report`.
    """
    written = written_files(options)
    for path in filter(is_page, written):
        title = f"{click.get_current_context().info_name}: {(facts or {}).get('files', path)}"
        new = tuple(note for note in notes if note not in result.notes)
        how: dict[str, Any] = {"warnings": warnings, "notes": new, "title": title, **shown}
        write_report(path, result, facts or {}, overwrite=options["overwrite"], **how)
    entries = {} if entry is None else {entry: options["output"]}
    show(result, options, {**(more or {}), **entries}, notes=notes, words=words)
    if not options["as_json"]:
        for one in also:
            say()
            show(one, options)
        for text in warnings:
            warn(text)
        close(result, options, *written)
    return EXIT_CODES[result.verdict] if options.get("check") else 0


def show(
    result: Result,
    options: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
    *,
    notes: Sequence[str] = (),
    words: PlainText = in_options,
) -> None:
    """Print a result, with further notes on its rows: the short answer, everything with --details,
    or one JSON object with --json.
    """
    if options["as_json"]:
        command = click.get_current_context().info_name
        print_json({"command": command, **result_json(result, words), **(more or {})})
        return
    say("\n\n".join(parts_of(result, words, width(), details=options["details"])))
    shown = [text for text in notes if not (options["details"] and text in result.notes)]
    if shown:
        say()
    for text in shown:
        paragraph(f"note: {render(text, words)}")


def close(result: Result, options: Mapping[str, Any], *files: str | None) -> None:
    """Print the files that were written, and what to do next; with --details, everything that may
    be done.
    """
    written = [f"Saved {path}." for path in files if path is not None]
    steps = list(dict.fromkeys(_command(step, options) for step in result.next_steps))
    if is_quiet():
        steps = []
    if len(steps) > 1 and options["details"]:
        written += ["Next:", *(f"  {step}" for step in steps)]
    elif steps:
        written.append(f"Next: {steps[0]}")
        if len(" ".join(written)) <= width():
            written = [" ".join(written)]
    for line in ["", *written] if written else []:
        say(line if "calibrant " in line else wrapped(line, width()))


def _command(step: NextStep, options: Mapping[str, Any]) -> str:
    """A next step as a command, if there is one."""
    places = places_of(options)
    if not step.command:
        return render(step.in_python, in_options)
    if "{model}" in step.command and "model" not in places:
        return "add -o model.json to save it"
    return f"calibrant {step.command.format(**places)}"


class _Places(dict[str, str]):
    """Placeholders of commands; one that is not known stays as it is."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"


def result_json(result: Result, words: PlainText = in_options) -> dict[str, Any]:
    """What `--json` prints for a result: `to_dict`, with parameters written as options, and next
    steps as commands.
    """
    found: dict[str, Any] = rendered(result.to_dict(), words)
    context = click.get_current_context(silent=True)
    places = _Places({} if context is None else places_of(context.params))
    steps = [
        {"what": render(one.what, words), "command": one.command.format_map(places)}
        for one in result.next_steps
    ]
    return {**found, "next_steps": steps}


def words_for(calibrator: "ScoreCalibrator") -> PlainText:
    """How settings are written in texts about a calibrator."""

    def for_other_method(setting: Setting) -> str:
        """Write settings for the binning method: this method's own pilot rows fit the curve and cut
        no bin, so advice on pilot rows is about binning.
        """
        return f"{'--method binning ' if setting.parameter == 'pilot' else ''}{in_options(setting)}"

    return in_options if getattr(calibrator, "bins_of_score", True) else for_other_method
