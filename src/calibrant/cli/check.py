"""`calibrant check`: test whether the rows are i.i.d., as every guarantee assumes."""

import shlex
from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._input import labelled
from calibrant.cli._output import print_json, remark, saved
from calibrant.cli._report import check_report, facts_of, write_report
from calibrant.cli._show import result_json, show
from calibrant.cli._signature import Declared
from calibrant.cli._words import in_options
from calibrant.text.numbers import rows
from calibrant.text.sentences import PlainText, Setting

_CHECK = Declared("assess.check.check", "check")


@option.command("Are the rows i.i.d.?")
@option.data
@option.score
@option.label
@option.column(
    "time", "Column of times: numbers, dates, or ISO 8601 text. Default: the order of the rows."
)
@option.column("group", "Column of groups, such as customers: one row from each group is tested.")
@option.skip_missing
@option.confidence(_CHECK)
@click.option("--check", is_flag=True, help="Exit with 1 if the rows are proved not to be i.i.d.")
@option.most_rows
@option.seed(_CHECK)
@option.output("Write a report: a single HTML file that needs nothing else.")
@option.classes
@option.overwrite
@option.reading
@option.common
def command(**options: Any) -> int:
    """Test whether rows are i.i.d., as every guarantee assumes, and look for groups.

    DATA are files, folders or globs, or - for standard input. The test is valid for every
    distribution of the data. It says whether scores or rates changed, and when. It also names
    columns that look like ids. Rows are tested in memory; if there are more than --most-rows, a
    random sample is tested.

    Examples
    --------
    calibrant check scores.csv --score p --label y --time day
    calibrant check scores.csv --score p --label y                  # in the order of the file
    calibrant check visits.parquet --score p --label y --time day --group patient
    calibrant check scores.csv --score p --label y --time day -o check.html
    calibrant check scores.csv --score p --label y --time day --check --json    # exit 1 if not
    """
    from calibrant import Sample, check

    check_report(options)
    time = options["time"]
    with labelled(options) as (source, data, labels):
        found = check(
            Sample(data),
            time=time,
            groups=options["group"],
            most_rows=options["most_rows"],
            **_CHECK.arguments(options),
            **labels,
        )
        facts = facts_of(source, **data.columns.named)
    if found.n_in_data > options["most_rows"]:
        seen = f"about {options['most_rows']:,} of {rows(found.n_in_data)}"
        remark(f"{seen} are drawn at random; use --most-rows to test more")
    words = _words_for(time)
    output = options["output"]
    if output is not None:
        write_report(output, found, facts, overwrite=options["overwrite"])
    if options["as_json"]:
        print_json({"command": "check", **result_json(found, words), "report": output})
    else:
        show(found, words=words)
        if output is not None:
            saved(output)
    return 1 if options["check"] and found.alarm else 0


def _words_for(time: str | None) -> PlainText:
    """How advice is written: as commands and options; `time` is the time column."""

    def said(setting: Setting) -> str:
        if setting.parameter != "holdout":
            return in_options(setting)
        return f"calibrant fit ... {in_options(setting)}" + (
            "" if time is None else f" --time {shlex.quote(time)}"
        )

    return said
