"""`calibrant fit`: calibrate, and save the model with its guarantee."""

import os
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._fitted import (
    Fitted,
    fit_json,
    is_reached,
    save_fit,
    show_fit,
    write_fit_report,
)
from calibrant.cli._input import labelled, typed_segments
from calibrant.cli._latest import latest
from calibrant.cli._methods import BINS, METHODS, STATED, VALUE, WORK, Settings
from calibrant.cli._output import print_json
from calibrant.cli._report import is_page
from calibrant.cli._signature import interval_names, number, words_of
from calibrant.cli._signs import on_first_rows, on_time, signs_of
from calibrant.cli._target import check_target
from calibrant.text.numbers import rows

(_EXACT,) = words_of("calibrators.regions.parameters", "EXACT")
_FEW_ROWS = 10  # per bin: fewer pilot rows are probably a mistake


@option.command("Calibrate, with a guarantee.")
@option.data
@option.columns
@option.weights(STATED)
@option.row_id
@option.group
@option.group_size(STATED, option.IN_A_BIN)
@STATED.option(
    "group_target",
    "What counts equally: every row (the default) or every group.",
    choices=words_of("params.bounds", "TARGETS"),
    default=None,
)
@option.skip_missing
@option.holdout
@option.confidence(BINS)
@option.output(
    "Save the model (if FILE ends in .json) or write a report (.html). Can be repeated.",
    multiple=True,
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help=(
        "Default: anchored; with --prior or a --value, binning. anchored, binning and uniform have"
        " a guarantee and read files of any size. scaling-binning has one too; it and the others"
        " need the rows in memory."
    ),
)
@option.bins(BINS, "Number of bins; with --segment, in each segment.")
@BINS.option(
    "interval",
    f"Confidence interval. Default: {_EXACT}.",
    choices=(*interval_names(), "betting"),
    default=None,
)
@VALUE.option(
    "value",
    f"What to predict in a bin. Default: {VALUE.default('value')}.",
    choices=words_of("guarantee.values", "VALUES"),
    default=None,
)
@option.pilot(BINS)
@option.min_rows
@option.keep_segment
@STATED.option("score_range", "Range of uniform bins. Default: 0 1.", metavar="LOW HIGH")
@STATED.option(
    "target_prior",
    "Share of the positive class in the population, if rows were sampled by label.",
    metavar="SHARE",
)
@STATED.option(
    "sampling_rates",
    "Instead of --prior: the share of rows kept from each class, such as 0.1 1.",
    metavar="NEGATIVE POSITIVE",
)
@option.seed(WORK)
@click.option(
    "--require-epsilon",
    type=number,
    metavar="E",
    help="Exit with 1 if epsilon is larger than this.",
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
    calibrant fit scores.csv --score p --label y -o model.json -o report.html
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
    for path in options["output"]:
        if is_page(path):
            write_fit_report(fitted, path, options)
        else:
            save_fit(fitted, path, options)
    reached = is_reached(fitted.guarantee, options["require_epsilon"])
    if options["as_json"]:
        print_json(fit_json(fitted, reached, options))
    else:
        show_fit(fitted, reached, options)
    return 1 if reached is False else 0


def _settings_of(options: dict[str, Any]) -> Settings:
    """The calibrator settings requested by the options."""
    given = {
        **options,
        "method": options["method"] or _default_method(options),
        "bins": options["n_bins"],
        "confidence": options["confidence_level"],
        "seed": options["random_state"],
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
    """Reject two files of the same kind, and files that cannot be written."""
    outputs = options["output"]
    for kind, name in ((True, "report"), (False, "model file")):
        given = [path for path in outputs if is_page(path) is kind]
        if len(given) > 1:
            got = " and ".join(map(repr, given))
            raise RefusedError("-o", f"name at most one {name}", got=got)
    for path in outputs:
        check_target({**options, "output": path})


def _fit(settings: Settings, options: dict[str, Any]) -> Fitted:
    """Fit a calibrator to the rows of the files, and note what is unusual about them."""
    recent: tuple[str, ...] = ()
    with labelled(options, "segment", "weight", "id", "group") as (source, data, labels):
        dated = on_time(data, options)
        if settings.holdout is not None:
            data, said = latest(data, settings.time, settings.calibration_size)
            recent = (said,)
        if options["keep_segment"]:
            kept = typed_segments(data, options["keep_segment"])
            settings = replace(settings, keep_segments=kept)
        provenance, reach = provenance_of(source, data, asdict(settings))
        calibrator = settings.fit(data, labels)
        facts = data.facts(drawn=False)
        signs = signs_of(data, labels, options)
        first = on_first_rows(data, labels)
        n_groups = None if options["group"] is None else data.n_groups()
    if n_groups is not None:
        provenance["groups"] = n_groups
    told = [text for text in facts.notes if text not in calibrator.guarantee_.notes]
    return Fitted(
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


def _on_pilot(settings: Settings, calibrator: Any) -> list[str]:
    """A note on a small number of pilot rows that may have been meant as a fraction."""
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
    """The origin of the model, with nothing about the machine; and the range of the scores."""
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
