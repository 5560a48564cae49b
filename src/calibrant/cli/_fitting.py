"""What `calibrant fit` does."""

import os
import shlex
from datetime import UTC, datetime
from typing import Any

import click

from calibrant.cli._input import STANDARD_INPUT, class_parameters, files, roles
from calibrant.cli._looking import Reach, look
from calibrant.cli._methods import Settings
from calibrant.cli._output import paragraph, print_json, remark
from calibrant.cli._promise import promise_json, show_promise
from calibrant.cli._writing import check_target

_FEW_ROWS = 10  # for each bin: with fewer, a number of rows that cut the bins was hardly meant as one


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
        provenance, reach = _provenance(source, data, settings)
    notes = (*_on_split(settings, calibrator), *_on_scores(settings, reach))
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
                "notes": notes,
                "required_epsilon": wanted,
                "reached": reached,
            }
        )
    else:
        show_promise(calibrator, () if quiet else notes)
        click.echo()
        if reached is False:
            what = f"epsilon is {epsilon:.4g}" if epsilon is not None and proved else "nothing is promised"
            paragraph(f"The required epsilon, {wanted:g}, was not reached: {what}.", bold=True)
        if output is None:
            remark("nothing was saved: give -o model.json to keep the model", quiet)
        else:
            click.echo(f"Saved {output}.")
            if not quiet:
                click.echo("\n  ".join(["Next:", *_next(calibrator, output, options)]))
    return 1 if reached is False else 0


def _next(calibrator: Any, model: str, options: dict[str, Any]) -> list[str]:
    """Commands that work for this model."""
    from calibrant.errors import CalibrantError
    from calibrant.export.table import export_table

    lines = [shlex.join(["calibrant", "apply", model, "new.csv", "-o", "out.csv"])]
    try:
        export_table(calibrator)
        lines.append(shlex.join(["calibrant", "export", model, "--to", "sql", "--dialect", "duckdb"]))
    except CalibrantError:
        pass
    if calibrator.guarantee_.is_proved and STANDARD_INPUT not in options["data"]:
        given = options["file_format"]
        extra = [] if given is None else ["--format", given]
        lines.append(shlex.join(["calibrant", "verify", model, *options["data"], *extra]))
    return lines


def _on_split(settings: Settings, calibrator: Any) -> list[str]:
    """A word on a number of rows that may have been meant as something else."""
    split = settings.split
    if not isinstance(split, int) or split >= _FEW_ROWS * calibrator.partition_.n_regions:
        return []
    does, usual = ("fit the curve", 0.5) if settings.method == "scaling-binning" else ("cut the bins", 0.2)
    rows = f"1 row {does.replace(' ', 's ', 1)}" if split == 1 else f"{split:,} rows {does}"
    return [f"{rows}; a fraction such as {usual} is usual"]


def _on_scores(settings: Settings, reach: Reach) -> list[str]:
    """A word on scores that are no probabilities, where the range was not chosen."""
    if reach.is_probability or settings.method == "uniform":
        return []
    return [f"scores reach {reach}: fine for {settings.method}, which takes any score"]


def _provenance(source: Any, data: Any, settings: Settings) -> tuple[dict[str, Any], Reach]:
    """Where the model comes from, without a word about the machine; and how far the scores reach."""
    from calibrant._version import __version__

    found = look(data)
    seen, name = found.fingerprint, data.columns.id
    facts = {
        "rows": seen.rows,
        "fingerprint": str(seen),
        "files": [os.path.basename(name) for name in source.names[:100]],
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "calibrant": __version__,
        "settings": settings.saved(),
        **({} if name is None else {"id_type": str(data.schema.field(name).type)}),
    }
    return facts, found.reach
