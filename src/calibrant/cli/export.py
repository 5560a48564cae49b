"""`calibrant export`: the model as SQL, as ONNX, or as Python that needs nothing installed."""

import click

from calibrant.cli._options import common, examples, overwrite_option

DIALECTS = ("postgres", "duckdb", "snowflake", "bigquery", "spark", "sqlite")


@click.command(
    short_help="The model as SQL, ONNX or Python.",
    epilog=examples(
        "calibrant export model.json --to sql --dialect postgres --table scores",
        "calibrant export model.json --to python -o calibrate.py",
        "calibrant export model.json --to onnx -o model.onnx",
    ),
)
@click.argument("model", metavar="MODEL", type=click.Path(allow_dash=True))
@click.option("--to", "target", type=click.Choice(("sql", "python", "onnx")), required=True, help="What to write.")
@click.option("--dialect", type=click.Choice(DIALECTS), help="Of SQL.")
@click.option("--table", metavar="NAME", help="SQL: a whole SELECT from this table; without it, expressions to paste.")
@click.option("--score", metavar="COLUMN", help="SQL: column of the scores; by default, what the model was fitted on.")
@click.option(
    "--segment", metavar="COLUMN", help="SQL: column of the groups; by default, what the model was fitted on."
)
@click.option("--outputs", metavar="A,B", help="Which of calibrated, lower, upper, set, region; all but the region.")
@click.option("--coverage", type=float, default=0.95, show_default=True, help="Of the sets.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    help="Where to write; standard output if not given. ONNX needs a file.",
)
@overwrite_option
@common
def command(
    model: str,
    target: str,
    dialect: str | None,
    table: str | None,
    score: str | None,
    segment: str | None,
    outputs: str | None,
    coverage: float,
    output: str | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the model as something that runs without calibrant, and gives the same bits."""
    if target == "sql" and dialect is None:
        raise click.UsageError(f"--to sql needs --dialect: one of {', '.join(DIALECTS)}", click.get_current_context())
    if target != "sql" and (dialect or table or score or segment):
        raise click.UsageError(
            "--dialect, --table, --score and --segment are for --to sql", click.get_current_context()
        )
    if target == "onnx" and output in (None, "-"):
        raise click.UsageError("--to onnx needs -o model.onnx", click.get_current_context())
    from calibrant.cli._model import read_model, role_of
    from calibrant.cli._output import print_json, remark
    from calibrant.cli._writing import check_target, write_text
    from calibrant.export import to_onnx, to_python, to_sql

    if output in (None, "-"):
        output = None
    else:
        check_target(output, overwrite=overwrite, inputs=[model])
    known = read_model(model)
    chosen = None if outputs is None else [name.strip() for name in outputs.split(",")]
    content: str | bytes
    if target == "sql":
        content = to_sql(
            known.calibrator,
            dialect=str(dialect),
            score=str(role_of(known, "score", score)),
            segment=role_of(known, "segment", segment),
            table=table,
            outputs=chosen,
            coverage=coverage,
        )
    elif target == "python":
        content = to_python(known.calibrator, outputs=chosen, coverage=coverage)
    else:
        content = to_onnx(known.calibrator, outputs=chosen, coverage=coverage).SerializeToString()
    if output is not None:
        write_text(content, output, overwrite=overwrite)
    if as_json:
        text = content if isinstance(content, str) and output is None else None
        print_json({"command": "export", "to": target, "dialect": dialect, "output": output, "text": text})
    elif output is None:
        click.echo(content, nl=False)
    else:
        remark(f"wrote {output}", quiet)
