"""`calibrant check`: test whether the rows are i.i.d., as every guarantee assumes."""

from typing import Any

from calibrant.cli import _options as option
from calibrant.cli._input import labelled
from calibrant.cli._output import remark
from calibrant.cli._report import check_outputs, facts_of
from calibrant.cli._show import answer
from calibrant.text.numbers import rows


@option.command("check", "Are the rows i.i.d.?", option.data)
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
    check_outputs(options)
    from calibrant import Sample, check

    with labelled({**options, "group": None}) as (source, data, labels):
        found = check(
            Sample(data),
            time=options["time"],
            groups=options["group"],
            most_rows=options["most_rows"],
            **option.arguments("check", options),
            **labels,
        )
        facts = facts_of(source, **data.columns.named)
    if found.n_in_data > options["most_rows"]:
        seen = f"about {options['most_rows']:,} of {rows(found.n_in_data)}"
        remark(f"{seen} are drawn at random; use --most-rows to test more")
    return answer(found, options, facts)
