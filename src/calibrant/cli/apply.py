"""`calibrant apply`: add calibrated probabilities, limits and sets to files of any size."""

from collections.abc import Callable
from typing import Any

import click

from calibrant._optional import pc
from calibrant.cli import _options as option
from calibrant.cli._input import STANDARD_INPUT, files
from calibrant.cli._model import read_model, rows_for
from calibrant.cli._output import print_json, remark, saved
from calibrant.cli._signature import Declared
from calibrant.cli._target import check_escaping, check_target, kind_of
from calibrant.text.numbers import rows

_COLUMNS = ("calibrated", "lower", "upper", "set")
_OF_THRESHOLDS = ("selected", "referred")


_APPLY = Declared("calibrators.score_calibrator", "ScoreCalibrator.apply")


@option.command("Add calibrated probabilities to any number of rows.")
@option.model
@option.data
@option.output(
    "Output file: .parquet, .csv, .csv.gz, .tsv, .jsonl or .arrow; - is CSV on standard output.",
    required=True,
)
@option.model_score
@option.model_segment
@option.coverage(_APPLY)
@option.allow_out_of_range
@option.escape_formulas
@_APPLY.option(
    "prefix", "Prefix for the names of the new columns.", metavar="TEXT", show_default=False
)
@option.overwrite
@option.reading
@option.common
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
    model = read_model(options["model"], threshold=True)
    selects = not hasattr(model.calibrator, "guarantee_")
    with files(options) as source:
        # attributes are compared by value, and text of numbers is no number
        by_attributes = bool(getattr(model.calibrator, "_attribute_names", ()))
        as_text = source.format() == "csv" == kind and not by_attributes
        scored = rows_for(model, source, options, with_rows=False, as_text=as_text)
        coverage = {} if selects else {"coverage": options["coverage"]}
        reader = model.calibrator.apply(scored, prefix=prefix, **coverage)
        seen = _Seen(prefix, _OF_THRESHOLDS[0] if selects else _COLUMNS[0])
        how = {"overwrite": options["overwrite"], "escape": options["escape_formulas"]}
        with opened(output, reader.schema, scored, **how) as write:
            seen.copy(reader, write)
    named = _OF_THRESHOLDS if selects else _COLUMNS
    added = [name for name in reader.schema.names if name.removeprefix(prefix) in named]
    if options["as_json"]:
        counts = {"rows": seen.rows, "refused": seen.refused, "unknown": seen.unknown}
        facts = {"columns": added, "coverage": options["coverage"], "model": model.fingerprint}
        print_json({"command": "apply", "output": output, **counts, **facts})
        return
    if seen.refused:
        of_all = f"{seen.refused:,} of {rows(seen.rows)}"
        remark(f"{of_all} left empty: the model does not take the score or segment")
    if seen.unknown:
        remark(_on_unknown(seen.unknown, model.calibrator.guarantee_))
    if output != "-":
        saved(output, f"{rows(seen.rows)}, with {', '.join(added)}", err=True)


class _Seen:
    """Counts of the output: all rows, rows left empty, and rows whose interval is 0 to 1."""

    def __init__(self, prefix: str, first: str) -> None:
        self.prefix = prefix
        self.first = f"{prefix}{first}"
        self.rows = self.refused = self.unknown = 0

    def copy(self, reader: Any, write: Callable[[Any], object]) -> None:
        """Write all batches and count rows."""
        lower, upper = (f"{self.prefix}{name}" for name in ("lower", "upper"))
        for batch in reader:
            write(batch)
            self.rows += batch.num_rows
            self.refused += batch.column(self.first).null_count
            if self.first == f"{self.prefix}calibrated" and lower in batch.schema.names:
                nothing = pc.and_(
                    pc.equal(batch.column(lower), 0.0), pc.equal(batch.column(upper), 1.0)
                )
                self.unknown += int(pc.sum(nothing).as_py() or 0)


def _on_unknown(n_rows: int, guarantee: Any) -> str:
    """A note on rows whose interval is 0 to 1."""
    where = "is in a region" if n_rows == 1 else "are in regions"
    if guarantee.counts[(guarantee.lower == 0.0) & (guarantee.upper == 1.0)].any():
        return f"{rows(n_rows)} {where} with too few calibration rows: the interval there is 0 to 1"
    text = "the interval there is 0 to 1, and the probability a placeholder of 0.5"
    return f"{rows(n_rows)} {where} without calibration rows: {text}"
