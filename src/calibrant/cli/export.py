"""`calibrant export`: the model as SQL, as ONNX, or as Python without dependencies."""

from typing import Any

import click

from calibrant._file import write_file
from calibrant.cli import _options as option
from calibrant.cli._methods import method_making
from calibrant.cli._model import read_model, segment_column
from calibrant.cli._output import print_json, print_verbatim, saved
from calibrant.cli._target import check_target
from calibrant.errors import InvalidTypeError
from calibrant.sample.sql.dialects import DIALECTS


@option.command("export", "Write the model as SQL, ONNX or Python.", option.model)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Write the model as code that runs without calibrant and gives the same numbers.

    The numbers agree bit for bit, or to 12 digits where a curve needs exp.

    Examples
    --------
    calibrant export model.json --to sql --dialect postgres --table scores
    calibrant export model.json --to python -o calibrate.py
    calibrant export model.json --to onnx -o model.onnx
    calibrant export threshold.json --to sql --dialect duckdb --table scores   # from threshold
    """
    output = None if options["output"] in (None, "-") else options["output"]
    _check_options(ctx, options, output)
    if output is not None:
        check_target(options)
    content = _content(options)
    if output is not None:
        data = content.encode() if isinstance(content, str) else content
        write_file(data, output, overwrite=options["overwrite"])
    if options["as_json"]:
        # the text itself, if it was not written to a file
        text = content if isinstance(content, str) and output is None else None
        chosen = {name: options[name] for name in ("to", "dialect")}
        print_json({"command": "export", **chosen, "output": output, "text": text})
    elif output is None:
        print_verbatim(str(content))
    else:
        saved(output, err=True)


def _check_options(ctx: click.Context, options: dict[str, Any], output: str | None) -> None:
    """Reject missing options that the target needs, and options that it does not have."""
    target = options["to"]
    if target == "sql" and options["dialect"] is None:
        raise click.UsageError(f"--to sql needs --dialect: one of {', '.join(DIALECTS)}", ctx)
    if target != "sql" and any(options[name] for name in ("dialect", "table", "score")):
        raise click.UsageError("--dialect, --table and --score are for --to sql", ctx)
    if target == "onnx" and output is None:
        raise click.UsageError("--to onnx needs -o model.onnx", ctx)


def _content(options: dict[str, Any]) -> str | bytes:
    """The exported model; errors name a calibrator by the option that makes it."""
    model = read_model(options["model"], "to_dict")
    try:
        return _exported(model, options)
    except InvalidTypeError as error:
        method = method_making(model.calibrator)
        if error.parameter == "calibrator" and method is not None:
            error.got = f"--method {method}"
        raise


def _exported(model: Any, options: dict[str, Any]) -> str | bytes:
    from calibrant.answers.onnx import to_onnx
    from calibrant.answers.python import to_python
    from calibrant.answers.sql import to_sql

    outputs = (
        None
        if options["outputs"] is None
        else [name.strip() for name in options["outputs"].split(",")]
    )
    chosen: dict[str, Any] = {"outputs": outputs, "coverage": options["coverage"]}
    if options["to"] == "python":
        return to_python(model.calibrator, **chosen)
    if options["to"] == "onnx":
        return bytes(to_onnx(model.calibrator, **chosen).SerializeToString())
    columns: dict[str, Any] = {
        "score": options["score"] or model.columns.get("score", "score"),
        "segment": segment_column(model),
        "table": options["table"],
    }
    return to_sql(model.calibrator, dialect=options["dialect"], **columns, **chosen)
