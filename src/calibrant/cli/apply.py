"""`calibrant apply`: add calibrated probabilities, limits and sets to files of any size."""

from collections.abc import Callable
from typing import Any

import click

from calibrant._optional import pc
from calibrant.cli import _options as option
from calibrant.cli._input import STANDARD_INPUT, files
from calibrant.cli._model import read_model, rows_for
from calibrant.cli._output import print_json, remark, saved
from calibrant.cli._target import check_escaping, check_target, kind_of
from calibrant.text.numbers import rows

_COLUMNS = ("calibrated", "lower", "upper", "set")
_OF_THRESHOLDS = ("selected", "referred")


@option.command(
    "apply", "Add calibrated probabilities to any number of rows.", option.model, option.data
)
def command(**options: Any) -> None:
    """Add calibrated probabilities to DATA, or mark the rows that a threshold selects.

    MODEL is a file from calibrant fit or calibrant threshold. With a fitted model, the new columns
    are calibrated, lower, upper and set. With a threshold, the new column is selected. Thresholds
    for both precision and npv also add referred: true for the rows in between, which a person
    should look at. In a segment without a threshold, no row is selected. A SubgroupCalibrator,
    saved with save_model, adds only calibrated; the data need the columns of its attributes.

    Rows keep their order, and memory use stays the same for any number of rows. A row gets empty
    fields where its score is missing, not finite or out of range, or its segment is unknown to the
    model; such rows are counted. Scores on a different scale raise an error: those that lie outside
    the range seen in fit by more than half of that range. The output file is written
    completely or not at all.

    Examples
    --------
    calibrant apply model.json new.parquet -o out.parquet
    calibrant apply model.json 'days/*.csv' -o all.csv --overwrite
    calibrant apply threshold.json new.csv -o out.csv    # from calibrant threshold -o
    cat new.csv | calibrant apply model.json - -o - | head
    """
    from calibrant.cli._writer import opened

    output = options["output"]
    data = options["data"]
    prefix = options["prefix"]
    if options["as_json"] and output == "-":
        raise click.UsageError(
            "--json and -o - both print to standard output: write to a file, or leave out --json"
        )
    if options["model"] == STANDARD_INPUT and STANDARD_INPUT in data:
        raise click.UsageError("- (standard input) can be the model or the data, not both")
    kind, _ = kind_of(output)
    check_escaping(options, kind)
    if output != "-":
        check_target(options)
    model = read_model(options["model"], "apply")
    selects = not hasattr(model.calibrator, "guarantee_")
    with files(options) as source:
        # attributes are compared by value, and text of numbers is no number
        by_attributes = bool(getattr(model.calibrator, "_attribute_names", ()))
        as_text = source.format() == "csv" == kind and not by_attributes
        scored = rows_for(model, source, options, with_rows=False, as_text=as_text)
        coverage = {} if selects else {"coverage": options["coverage"]}
        reader = model.calibrator.apply(scored, prefix=prefix, **coverage)
        with opened(options, reader.schema, scored) as write:
            n_rows, refused, unknown = _copied(reader, write, prefix, selects=selects)
    named = _OF_THRESHOLDS if selects else _COLUMNS
    added = [name for name in reader.schema.names if name.removeprefix(prefix) in named]
    if options["as_json"]:
        counts = {"rows": n_rows, "refused": refused, "unknown": unknown}
        facts = {"columns": added, "coverage": options["coverage"], "model": model.fingerprint}
        print_json({"command": "apply", "output": output, **counts, **facts})
        return
    if refused:
        of_all = f"{refused:,} of {rows(n_rows)}"
        remark(f"{of_all} left empty: the model does not take the score or segment")
    if unknown:
        remark(_on_unknown(unknown, model.calibrator.guarantee_))
    if output != "-":
        saved(output, f"{rows(n_rows)}, with {', '.join(added)}", err=True)


def _copied(
    reader: Any, write: Callable[[Any], object], prefix: str, *, selects: bool
) -> tuple[int, int, int]:
    """Write all batches; count all rows, rows left empty, and rows whose interval is 0 to 1."""
    first = f"{prefix}{(_OF_THRESHOLDS if selects else _COLUMNS)[0]}"
    lower, upper = (f"{prefix}{name}" for name in ("lower", "upper"))
    has_limits = not selects and lower in reader.schema.names
    n_rows = refused = unknown = 0
    for batch in reader:
        write(batch)
        n_rows += batch.num_rows
        refused += batch.column(first).null_count
        if has_limits:
            nothing = pc.and_(
                pc.equal(batch.column(lower), 0.0), pc.equal(batch.column(upper), 1.0)
            )
            unknown += int(pc.sum(nothing).as_py() or 0)
    return n_rows, refused, unknown


def _on_unknown(n_rows: int, guarantee: Any) -> str:
    """A note on rows whose interval is 0 to 1."""
    where = "is in a region" if n_rows == 1 else "are in regions"
    if guarantee.counts[(guarantee.lower == 0.0) & (guarantee.upper == 1.0)].any():
        return f"{rows(n_rows)} {where} with too few calibration rows: the interval there is 0 to 1"
    text = "the interval there is 0 to 1, and the probability a placeholder of 0.5"
    return f"{rows(n_rows)} {where} without calibration rows: {text}"
