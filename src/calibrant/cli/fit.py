"""`calibrant fit`: calibrate, and save the model with its guarantee."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import STANDARD_INPUT, labelled, typed_segments
from calibrant.cli._latest import latest
from calibrant.cli._methods import METHODS, Settings
from calibrant.cli._output import is_quiet, paragraph, print_json, remark, saved, say
from calibrant.cli._report import is_page
from calibrant.cli._show import guarantee_json, show_guarantee
from calibrant.cli._signs import on_first_rows, on_time, show_signs, signs_of
from calibrant.cli._target import check_target
from calibrant.text.numbers import rows, upper

_FEW_ROWS = 10  # per bin: fewer rows that cut the bins are probably a mistake


@option.command("Calibrate, with a guarantee.")
@option.data
@option.columns
@option.weights
@option.row_id
@option.group_options
@option.skip_missing
@option.holdout
@option.confidence(0.9)
@option.output("Save the model to this JSON file.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help=(
        "Default: anchored; with --prior or a --value, binning. anchored, binning and uniform have"
        " a guarantee and read files of any size. scaling-binning has one too; it and the others"
        " need the rows in memory."
    ),
)
@option.bins("Number of bins; with --segment, in each segment.")
@click.option(
    "--interval",
    type=click.Choice(option.INTERVALS),
    help="Confidence interval. Default: clopper-pearson.",
)
@click.option(
    "--value",
    type=click.Choice(("jeffreys", "mean", "midpoint", "monotone")),
    help="What is predicted in a bin. Default: jeffreys.",
)
@option.pilot
@option.min_rows
@option.keep_segment
@click.option(
    "--range",
    "score_range",
    type=(float, float),
    metavar="LOW HIGH",
    help="Range of uniform bins. Default: 0 1.",
)
@click.option(
    "--prior",
    "target_prior",
    type=float,
    metavar="SHARE",
    help="Share of the positive class in the population, if rows were sampled by label.",
)
@click.option(
    "--sampling-rates",
    type=(float, float),
    metavar="NEGATIVE POSITIVE",
    help="Instead of --prior: the share of rows that was kept from each class, such as 0.1 1.",
)
@option.seed
@click.option(
    "--require-epsilon", type=float, metavar="E", help="Exit with 1 if epsilon is larger than this."
)
@option.classes
@option.overwrite
@option.reading
@option.common
def command(**options: Any) -> int:
    """Calibrate scores, say what is guaranteed, and save the model.

    DATA are files, folders or globs, or - for standard input. They hold scores and outcomes of rows
    that the model was not trained on. With the default method the guarantee holds for every
    distribution of the data.

    Examples
    --------
    calibrant fit scores.csv --score p --label y -o model.json
    calibrant fit loans.csv --score p --label defaulted --pos-label Y -o model.json
    calibrant fit 'days/*.parquet' --score p --label y --segment region --bins 10 -o model.json
    calibrant fit old.csv --score p --label y --weight w --weight-bound 8 -o model.json
    calibrant fit visits.csv --score p --label y --group patient -o model.json
    calibrant fit scores.csv --score p --label y --holdout last --time day -o model.json
    calibrant fit balanced.csv --score p --label y --prior 0.02 -o model.json
    calibrant fit scores.csv --score p --label y --require-epsilon 0.05 --json   # for scripts
    """
    settings = _settings_of(options)
    settings.check(options["segment"], options["group"])
    _check_output(options)
    fitted = _fit(settings, options)
    if options["output"] is not None:
        _save(fitted, options)
    reached = _is_reached(fitted.guarantee, options["require_epsilon"])
    if options["as_json"]:
        print_json(_json(fitted, reached, options))
    else:
        _show(fitted, reached, options)
    return 1 if reached is False else 0


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A fitted calibrator, and what there is to say of its rows."""

    method: str
    calibrator: Any
    columns: Mapping[str, str]
    provenance: Mapping[str, Any]
    n_groups: int | None
    n_skipped: int
    signs: list[dict[str, Any]]
    on_rows: tuple[str, ...]
    """Notes on the rows that were fitted; shown with --quiet, too."""
    advice: tuple[str, ...]
    """Further notes: on options, scores and times that may not be what was meant."""

    @property
    def guarantee(self) -> Any:
        return self.calibrator.guarantee_

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.on_rows, *self.advice)


def _settings_of(options: dict[str, Any]) -> Settings:
    """The settings of the calibrator that the options ask for."""
    given = {
        **options,
        "method": options["method"] or _default_method(options),
        "weighted": options["weight"] is not None,
        "keep_segments": options["keep_segment"] or None,
    }
    return Settings(**{entry.name: given[entry.name] for entry in fields(Settings)})


def _default_method(options: dict[str, Any]) -> str:
    """Binning if rows were sampled by label or a --value was chosen: both need one value per bin."""
    by_label = options["target_prior"] is not None or options["sampling_rates"] is not None
    if by_label or options["value"] != Settings().value:
        return "binning"
    return Settings().method


def _check_output(options: dict[str, Any]) -> None:
    """Refuse an output file that is a web page, or cannot be written to."""
    output = options["output"]
    if output is None:
        return
    if is_page(output):
        advice = "use calibrant audit for a report"
        raise RefusedError("-o", "be a model file", got=repr(output), advice=advice)
    check_target(options)


def _fit(settings: Settings, options: dict[str, Any]) -> _Fitted:
    """Fit a calibrator to the rows of the files, and note what is particular about them."""
    recent: tuple[str, ...] = ()
    with labelled(options, "segment", "weight", "id", "group") as (source, data, labels):
        dated = on_time(data, options)
        if settings.holdout is not None:
            data, said = latest(data, settings.time, settings.calibration_size)
            recent = (said,)
        if options["keep_segment"]:
            kept = typed_segments(data, options["keep_segment"])
            settings = replace(settings, keep_segments=kept)
        provenance, reach = provenance_of(source, data, settings.saved())
        calibrator = settings.fit(data, labels)
        facts = data.facts(drawn=False)
        signs = signs_of(data, labels, options)
        first = on_first_rows(data, labels)
        n_groups = None if options["group"] is None else data.n_groups()
    if n_groups is not None:
        provenance["groups"] = n_groups
    told = [text for text in facts.notes if text not in calibrator.guarantee_.notes]
    return _Fitted(
        method=settings.method,
        calibrator=calibrator,
        columns=data.columns.named,
        provenance=provenance,
        n_groups=n_groups,
        n_skipped=facts.skipped,
        signs=signs,
        on_rows=(*recent, *told),
        advice=(*_on_pilot(settings, calibrator), *_on_scores(settings, reach), *first, *dated),
    )


def _save(fitted: _Fitted, options: dict[str, Any]) -> None:
    """Write the model file."""
    from calibrant.answers.model_file import save_model

    save_model(
        fitted.calibrator,
        options["output"],
        columns=fitted.columns,
        provenance=fitted.provenance,
        overwrite=options["overwrite"],
    )


def _has_epsilon(guarantee: Any) -> bool:
    """Whether an epsilon is proved."""
    return guarantee.epsilon is not None and bool(guarantee.is_proved)


def _is_reached(guarantee: Any, wanted: float | None) -> bool | None:
    """Whether the required epsilon is proved; None if none is required."""
    if wanted is None:
        return None
    return _has_epsilon(guarantee) and guarantee.epsilon <= wanted


def _json(fitted: _Fitted, reached: bool | None, options: dict[str, Any]) -> dict[str, Any]:
    """What was fitted as plain values; documented on the page of the command line."""
    return {
        "command": "fit",
        "model": options["output"],
        "method": fitted.method,
        "rows": fitted.provenance["rows"],
        "skipped_rows": fitted.n_skipped,
        "groups": fitted.n_groups,
        "fingerprint": fitted.provenance["fingerprint"],
        "columns": fitted.columns,
        "guarantee": guarantee_json(fitted.calibrator),
        "notes": fitted.notes,
        "signs_of_groups": fitted.signs,
        "required_epsilon": options["require_epsilon"],
        "reached": reached,
    }


def _show(fitted: _Fitted, reached: bool | None, options: dict[str, Any]) -> None:
    """The guarantee, what it assumes, and where the model is."""
    show_guarantee(fitted.calibrator, notes=fitted.on_rows if is_quiet() else fitted.notes)
    _show_rest(fitted.guarantee, fitted.provenance["rows"])
    show_signs(fitted.signs)
    say()
    if reached is False:
        _show_not_reached(fitted.calibrator, options["require_epsilon"])
    _show_file(fitted.calibrator, options)


def _show_not_reached(calibrator: Any, wanted: float) -> None:
    """Why the required epsilon was not reached, and how many rows would do."""
    found = "nothing is guaranteed"
    needed = ""
    if _has_epsilon(calibrator.guarantee_):
        found = f"epsilon is {upper(calibrator.guarantee_.epsilon)}"
        needed = _rows_needed(calibrator, wanted)
    paragraph(f"The required epsilon, {wanted:g}, was not reached: {found}.{needed}", bold=True)


def _show_file(calibrator: Any, options: dict[str, Any]) -> None:
    """Where the model was saved, and what can be done with it."""
    output = options["output"]
    if output is None:
        remark("nothing was saved: give -o model.json to save the model")
        return
    saved(output)
    if not is_quiet():
        say("\n  ".join(["Next:", *_next(calibrator, output, options)]))


def _show_rest(guarantee: Any, n_rows: int) -> None:
    """Why the rows of the table do not add up to all rows, where rows became edges of bins."""
    from calibrant.guarantee.statement import Edges

    said = getattr(guarantee, "statement", None)
    if said is None or said.edges is not Edges.SAME_ROWS:
        return
    rest = n_rows - guarantee.n_rows - said.looked - said.cutting
    if rest > 0:
        paragraph(
            f"{rows(rest)} of {n_rows:,} {'is an edge' if rest == 1 else 'are edges'} of bins, not"
            " counted."
        )


def _rows_needed(calibrator: Any, wanted: float) -> str:
    """With how many rows, and which method, the required epsilon is sure to be reached.

    Empty if that is not known.
    """
    from calibrant import plan
    from calibrant.errors import CalibrantError
    from calibrant.guarantee.statement import Population

    guarantee = calibrator.guarantee_
    statement = guarantee.statement
    if (
        statement.groups is not None
        or statement.n_segments
        or statement.population is not Population.SAME
    ):
        return ""
    n_bins = len(guarantee.regions)
    try:
        n = plan(epsilon=wanted, n_bins=n_bins, confidence_level=guarantee.confidence_level).n
    except CalibrantError:  # as a required epsilon of 0
        return ""
    enough = f"{rows(n)} would be enough, whatever their labels, if no scores are tied"
    return f" With --method binning --bins {n_bins}, {enough}."


def _next(calibrator: Any, model: str, options: dict[str, Any]) -> list[str]:
    """Commands that work for this model."""
    from calibrant.answers.table import export_table
    from calibrant.errors import CalibrantError

    lines = [shlex.join(["calibrant", "apply", model, "new.csv", "-o", "out.csv"])]
    try:
        export_table(calibrator)
        lines.append(
            shlex.join(["calibrant", "export", model, "--to", "sql", "--dialect", "duckdb"])
        )
    except CalibrantError:
        pass
    if calibrator.guarantee_.is_proved and STANDARD_INPUT not in options["data"]:
        extra = [] if options["file_format"] is None else ["--format", options["file_format"]]
        lines.append(shlex.join(["calibrant", "verify", model, *options["data"], *extra]))
    return lines


def _on_pilot(settings: Settings, calibrator: Any) -> list[str]:
    """A note on a small number of rows that may have been meant as a fraction."""
    pilot = settings.pilot
    if not isinstance(pilot, int) or pilot >= _FEW_ROWS * calibrator.partition_.n_regions:
        return []
    purpose, usual = (
        ("to fit the curve", 0.5)
        if settings.method == "scaling-binning"
        else ("to cut the bins", 0.2)
    )
    return [f"{rows(pilot)} drawn {purpose}; a fraction such as {usual} is usual"]


def _on_scores(settings: Settings, reach: Any) -> list[str]:
    """A note on scores that are not probabilities."""
    if reach.is_probability or settings.method == "uniform":
        return []
    alike = ", as percentages do" if reach.is_percentage else ""
    return [
        f"scores range {reach}{alike}: {settings.method} takes any scores, and new ones must have"
        " the same scale"
    ]


def provenance_of(
    source: Any, data: Any, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], Any]:
    """Where the model comes from, without a word about the machine; and the range of the scores."""
    from calibrant._version import __version__
    from calibrant.sample.fingerprint import fingerprint

    seen = fingerprint(data, ordered=True)
    columns = {"id_type": data.columns.id, "group_type": data.columns.group}
    facts = {
        "rows": seen.rows,
        "fingerprint": str(seen),
        **({} if seen.in_order is None else {"order": seen.in_order}),
        "files": [os.path.basename(name) for name in source.names[:100]],
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "calibrant": __version__,
        "settings": dict(settings),
        **{
            part: str(data.schema.field(name).type)
            for part, name in columns.items()
            if name is not None
        },
    }
    return facts, seen.reach
