"""What `calibrant fit` does."""

import os
from datetime import UTC, datetime
from typing import Any

import click

from calibrant.cli._input import class_parameters, files, roles
from calibrant.cli._methods import Settings
from calibrant.cli._output import paragraph, print_json, remark
from calibrant.cli._promise import promise_json, show_promise
from calibrant.cli._writing import check_target

_NEXT = """\
Next:
  calibrant apply {model} new.csv -o out.csv
  calibrant export {model} --to sql --dialect duckdb
  calibrant verify {model} {data}"""


def fit_files(options: dict[str, Any]) -> int:
    """Fit, print, save; the exit code."""
    output, as_json, quiet = options["output"], options["as_json"], options["quiet"]
    settings = Settings(
        method=options["method"],
        bins=options["bins"],
        confidence=options["confidence"],
        interval=options["interval"],
        split=options["split"],
        value=options["value"],
        score_range=options["score_range"],
        weight_bound=options["weight_bound"],
        weighted=options["weight"] is not None,
        seed=options["seed"],
    )
    settings.check()
    if output is not None:
        check_target(output, overwrite=options["overwrite"], inputs=list(options["data"]))
    with files(options["data"], options["file_format"]) as source:
        columns = roles(
            source,
            score=options["score"],
            label=options["label"],
            segment=options["segment"],
            weight=options["weight"],
            id=options["row_id"],
        )
        data = source.scored(columns, threads=options["threads"], quiet=quiet)
        labels = class_parameters(data, options["pos_label"], options["classes"])
        calibrator = settings.fit(data, labels)
        provenance = _provenance(source, data, settings)
    named = {part: name for part, name in columns.items() if name is not None}
    if output is not None:
        from calibrant.saving import save_model

        save_model(calibrator, output, columns=named, provenance=provenance, overwrite=options["overwrite"])
    wanted, epsilon = options["require_epsilon"], calibrator.guarantee_.epsilon
    proved = bool(calibrator.guarantee_.is_proved)
    reached = None if wanted is None else proved and epsilon is not None and epsilon <= wanted
    if as_json:
        print_json(
            {
                "command": "fit",
                "model": output,
                "method": settings.method,
                "rows": provenance["rows"],
                "fingerprint": provenance["fingerprint"],
                "columns": named,
                "guarantee": promise_json(calibrator),
                "required_epsilon": wanted,
                "reached": reached,
            }
        )
    else:
        show_promise(calibrator)
        click.echo()
        if reached is False:
            what = f"epsilon is {epsilon:.4g}" if epsilon is not None and proved else "nothing is promised"
            paragraph(f"The required epsilon, {wanted:g}, was not reached: {what}.", bold=True)
        if output is None:
            remark("nothing was saved: give -o model.json to keep the model", quiet)
        else:
            click.echo(f"Saved {output}.")
            if not quiet:
                click.echo(_NEXT.format(model=output, data=" ".join(options["data"])))
    return 1 if reached is False else 0


def _provenance(source: Any, data: Any, settings: Settings) -> dict[str, Any]:
    """Where the model comes from, without a word about the machine."""
    from calibrant._version import __version__
    from calibrant.engines.fingerprint import fingerprint

    seen = fingerprint(data)
    name = data.columns.id
    return {
        "rows": seen.rows,
        "fingerprint": str(seen),
        "files": [os.path.basename(name) for name in source.names[:100]],
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "calibrant": __version__,
        "settings": settings.saved(),
        **({} if name is None else {"id_type": str(data.schema.field(name).type)}),
    }
