"""`calibrant check`: are rows drawn alike, as every guarantee assumes."""

import shlex
from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._input import labelled
from calibrant.cli._output import paragraph, print_json, remark
from calibrant.cli._signs import plain_signs, show_signs
from calibrant.cli._words import in_options
from calibrant.text.numbers import percent, rows
from calibrant.text.sentences import Setting, render, sentence

_FIELDS = ("kind", "null", "alarm", "log_evidence", "p_value", "alarm_after", "alarm_time", "change_after",
           "change_time", "before", "after")  # fmt: skip


@option.command("Are rows drawn alike?")
@option.data
@option.score
@option.label
@option.column("time", "Column of times: numbers, dates, or ISO 8601 text. Default: the rows are in order.")
@option.column("group", "Column of groups, such as customers: one row of each group is tested.")
@option.skip_missing
@option.confidence(0.95)
@click.option("--check", is_flag=True, help="Exit with 1 if the rows are proved not to be drawn alike.")
@option.most_rows
@option.seed
@option.classes
@option.reading
@option.common
def command(**options: Any) -> int:
    """Test whether rows are drawn alike, as every guarantee assumes, and look for rows that belong together.

    DATA are files, folders or globs, or - for standard input. The test is valid for every distribution of the data. It
    says whether scores or rates changed, and when. The look names a column that seems to be an id. Rows are tested in
    memory, so of more than --most-rows a random sample is.

    Examples
    --------
    calibrant check scores.csv --score p --label y --time day
    calibrant check scores.csv --score p --label y                  # in the order of the file
    calibrant check visits.parquet --score p --label y --time day --group patient
    calibrant check scores.csv --score p --label y --time day --check --json    # exit 1 if they are not
    """
    from calibrant import check

    time = options["time"]
    with labelled(options) as (_, data, labels):
        found = check(
            data,
            time=time,
            groups=options["group"],
            confidence_level=options["confidence"],
            most_rows=options["most_rows"],
            random_state=options["seed"],
            **labels,
        )
    if found.n_in_data > options["most_rows"]:
        seen = f"about {options['most_rows']:,} of {rows(found.n_in_data)}"
        remark(f"{seen} are drawn at random; --most-rows takes more")
    signs = plain_signs(found.signs)
    if options["as_json"]:
        told = {**check_json(found, time), "rows_in_data": found.n_in_data, "signs_of_groups": signs}
        print_json({"command": "check", **told})
    else:
        basis = f"with {percent(found.confidence_level)} confidence, from {found.tested}"
        paragraph(sentence(f"{found.verdict}, {basis}"), bold=True)
        for test in found.tests:
            paragraph(f"  {test}")
        paragraph(f"  {found.scale}")
        for text in _advice(found, time):
            paragraph(f"What to do: {text}.")
        show_signs(signs)
    return 1 if options["check"] and found.alarm else 0


def _advice(found: Any, time: str | None) -> list[str]:
    """What to do, as commands and options; `time` is the column of times."""

    def said(setting: Setting) -> str:
        if setting.parameter != "holdout":
            return in_options(setting)
        return f"calibrant fit ... {in_options(setting)}" + ("" if time is None else f" --time {shlex.quote(time)}")

    return [render(text, said) for text in found.advice]


def check_json(found: Any, time: str | None = None) -> dict[str, Any]:
    """The result as plain values; documented on the page of the command line."""
    return {
        "verdict": found.verdict,
        "alarm": found.alarm,
        "causes": found.causes,
        "p_value": found.p_value,
        "confidence_level": found.confidence_level,
        "rows": found.n_rows,
        "skipped_rows": found.n_skipped,
        "tests": [{name: getattr(test, name) for name in _FIELDS} for test in found.tests],
        "advice": _advice(found, time),
    }
