"""`calibrant apply`: add calibrated probabilities, limits and sets to files of any size."""

from typing import Any

import click

from calibrant.cli._options import common, data_argument, examples, overwrite_option, reading_options


@click.command(
    short_help="Add calibrated probabilities to rows, of any number.",
    epilog=examples(
        "calibrant apply model.json new.parquet -o out.parquet",
        "calibrant apply model.json 'days/*.csv' -o all.csv --overwrite",
        "cat new.csv | calibrant apply model.json - -o - | head",
    ),
)
@click.argument("model", metavar="MODEL", type=click.Path(allow_dash=True))
@data_argument
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Where to write: .parquet, .csv, .csv.gz, .tsv, .jsonl or .arrow; - is CSV on standard output.",
)
@click.option("--score", metavar="COLUMN", help="Column of the scores; by default, what the model was fitted on.")
@click.option("--segment", metavar="COLUMN", help="Column of the groups; by default, what the model was fitted on.")
@click.option(
    "--coverage", type=float, default=0.95, show_default=True, help="Of the sets: how often they hold the label."
)
@click.option("--prefix", default="", metavar="TEXT", help="What the names of the new columns begin with.")
@overwrite_option
@reading_options
@common
def command(
    model: str,
    data: tuple[str, ...],
    output: str,
    score: str | None,
    segment: str | None,
    coverage: float,
    prefix: str,
    overwrite: bool,
    file_format: str | None,
    threads: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Add the columns calibrated, lower, upper and set to DATA.

    Rows keep their order, and memory stays bounded whatever the size. A row whose score can not be used (missing, not
    finite, out of range, or of a group that the model does not know) gets empty fields, and is counted. The file is
    written whole or not at all.
    """
    from calibrant.cli._input import STANDARD_INPUT, files
    from calibrant.cli._model import read_model, role_of, text_types
    from calibrant.cli._output import print_json, remark
    from calibrant.cli._writing import check_target, delimiter_for, draft_of, kind_of, opened

    if as_json and output == "-":
        raise click.UsageError("--json and -o - both print to standard output: write to a file, or leave out --json")
    if model == STANDARD_INPUT and STANDARD_INPUT in data:
        raise click.UsageError("- (standard input) can be the model or the data, not both")
    kind, packing = kind_of(output)
    if output != "-":
        check_target(output, overwrite=overwrite, inputs=[model, *_paths(data)])
    known = read_model(model)
    with files(data, file_format) as source:
        roles = {"score": role_of(known, "score", score), "segment": role_of(known, "segment", segment)}
        types = text_types(known, segment=roles["segment"])

        if source.format() == "csv" and kind == "csv":
            from calibrant.cli._csv_text import TextData
            from calibrant.rows.batch import Columns

            named = Columns(**{part: name for part, name in roles.items() if name is not None})
            rows = TextData(list(source.paths), named, progress=False if quiet else None, types=types)
            mark = delimiter_for(output, rows.delimiter)
        else:
            rows = source.scored(roles, threads=threads, quiet=quiet, types=types, with_rows=False)  # type: ignore[assignment]
            mark = delimiter_for(output, None)
        reader = known.calibrator.apply(rows, coverage=coverage, prefix=prefix)
        n_rows = n_refused = n_unknown = 0

        def pour(place: object) -> None:
            nonlocal n_rows, n_refused, n_unknown
            with opened(place, reader.schema, kind, packing, mark) as write:  # type: ignore[arg-type]
                for batch in reader:
                    write(batch)
                    n_rows += batch.num_rows
                    n_refused += batch.column(f"{prefix}calibrated").null_count
                    n_unknown += _without_limits(batch, prefix)

        if output == "-":
            pour(None)
        else:
            with draft_of(output, overwrite=overwrite) as draft:
                pour(draft)
    added = [
        name for name in reader.schema.names if name.removeprefix(prefix) in ("calibrated", "lower", "upper", "set")
    ]
    if as_json:
        print_json(
            {"command": "apply", "output": output, "rows": n_rows, "refused": n_refused, "unknown": n_unknown,
             "columns": added, "coverage": coverage, "model": known.fingerprint}
        )  # fmt: skip
        return
    if n_refused:
        remark(
            f"{n_refused:,} of {n_rows:,} rows have a score or group that the model does not take: left empty", quiet
        )
    if n_unknown:
        remark(_on_unknown(n_unknown, known.calibrator.guarantee_), quiet)
    if output != "-":
        remark(f"wrote {n_rows:,} rows to {output}, with {', '.join(added)}", quiet)


def _without_limits(batch: Any, prefix: str) -> int:
    """Rows whose interval is 0 to 1; none for a calibrator that has no intervals."""
    import pyarrow.compute as pc

    if f"{prefix}lower" not in batch.schema.names:
        return 0
    low, high = pc.equal(batch.column(f"{prefix}lower"), 0.0), pc.equal(batch.column(f"{prefix}upper"), 1.0)
    return int(pc.sum(pc.and_(low, high)).as_py() or 0)


def _on_unknown(n_rows: int, guarantee: Any) -> str:
    """A word on rows of whose regions nothing is known."""
    rows = "1 row is in a region" if n_rows == 1 else f"{n_rows:,} rows are in regions"
    if guarantee.counts[(guarantee.lower == 0.0) & (guarantee.upper == 1.0)].any():
        return f"{rows} with too few calibration rows: there the interval is 0 to 1, and nothing is known of the rate"
    return (
        f"{rows} without calibration rows: there the interval is 0 to 1, and the probability only a placeholder of 0.5"
    )


def _paths(data: tuple[str, ...]) -> list[str]:
    import glob
    import os

    found = []
    for entry in data:
        if os.path.isdir(entry):
            found += [os.path.join(folder, name) for folder, _, names in os.walk(entry) for name in names]
        else:
            found += [entry, *glob.glob(entry)]
    return found
