"""What `calibrant audit` does."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from calibrant._audit.report import NO_EVIDENCE
from calibrant.cli._errors import RefusedError, in_words
from calibrant.cli._input import class_parameters, files, roles
from calibrant.cli._model import check_classes, check_columns, read_model
from calibrant.cli._output import paragraph, print_json
from calibrant.cli._promise import promise_json, show_sentence
from calibrant.cli._writing import check_target

_HISTOGRAM_BINS = 50


def audit_files(options: dict[str, Any]) -> int:
    """Audit, print, write the report; the exit code."""
    output = options["output"]
    if output is not None:
        if not output.lower().endswith((".html", ".htm")):
            raise RefusedError(f"-o must end in .html, for the report is a web page; got {output!r}")
        check_target(output, overwrite=options["overwrite"], inputs=list(options["data"]))
    model = None
    if options["model"] is not None:
        if output is None:
            raise RefusedError("--model is shown in the report: give -o audit.html too")
        model = read_model(options["model"])
    with files(options["data"], options["file_format"]) as source:
        columns = roles(source, score=options["score"], label=options["label"], segment=options["segment"])
        if model is not None:
            check_columns(model, columns)
        data = source.scored(columns, threads=options["threads"], quiet=options["quiet"])
        labels = class_parameters(data, options["pos_label"], options["classes"])
        found = _audit(data, labels, options)
        if output is not None:
            _report(output, found, data, source, labels, options, model)
    if options["as_json"]:
        promised = None if model is None else promise_json(model.calibrator)
        print_json({"command": "audit", "report": output, **audit_json(found), "guarantee": promised})
    else:
        show_audit(found)
        if model is not None:
            click.echo(f"\nThe promise of {options['model']}:")
            show_sentence(model.calibrator, bold=False)
        if output is not None:
            click.echo(f"\nReport: {output}")
    return 1 if options["check"] and found.is_miscalibrated else 0


def _audit(data: Any, labels: dict[str, Any], options: dict[str, Any]) -> Any:
    from calibrant import audit
    from calibrant.cli._looking import reach_of
    from calibrant.errors import InvalidValueError

    try:
        return audit(data, confidence_level=options["confidence"], n_bins=options["bins"], **labels)
    except InvalidValueError as error:
        if "probabilities in [0, 1]" in str(error) and (reach := reach_of(data)).is_percentage:
            raise RefusedError(
                f"{error}. Scores reach up to {reach.high:.4g}: are these percentages? divide by 100"
            ) from error
        raise


def show_audit(found: Any) -> None:
    """The verdict first, then what it rests on."""
    lines = in_words(str(found)).splitlines()
    verdict = verdict_of(found, lines[0].removeprefix(found.verdict))
    paragraph(f"{verdict[:1].upper()}{verdict[1:]}.", bold=True)
    for line in lines[1:]:
        paragraph(line.strip(), indent="  ")


def verdict_of(found: Any, basis: str = "") -> str:
    """The verdict in words that can not be taken for more than they say; `basis` is what it rests on."""
    if found.verdict != NO_EVIDENCE:
        return f"{found.verdict}{basis}"
    return f"{NO_EVIDENCE} of miscalibration{basis}; that does not prove that the scores are calibrated"


def audit_json(found: Any) -> dict[str, Any]:
    """What was found, as plain values; documented in the guide."""
    return {
        "verdict": found.verdict,
        "miscalibrated": found.is_miscalibrated,
        "lower_bound": found.lower_bound,
        "average_lower_bound": found.average_lower_bound,
        "upper_bound": found.upper_bound,
        "upper_bound_reason": None if found.upper_bound_reason is None else in_words(found.upper_bound_reason),
        "confidence_level": found.confidence_level,
        "rows": found.n_rows,
        "findings": [asdict(finding) for finding in found.findings],
        "assumptions": [in_words(text) for text in found.assumptions],
    }


def event_facts(found: Any, label: str, positive: Any) -> dict[str, str]:
    """What is predicted, how often it happened, and the day of the report."""
    rate = float(found.table.rate[0])  # the first region is that of all rows
    return {
        "event": f"{label} = {positive}",
        "rate of the event": f"{rate:.4g}, in {found.n_rows:,} rows",
        "made on": datetime.now(UTC).strftime("%Y-%m-%d (UTC)"),
    }


def _report(
    output: str, found: Any, data: Any, source: Any, labels: dict[str, Any], options: dict[str, Any], model: Any
) -> None:
    from calibrant.partition import Partition
    from calibrant.rows.fingerprint import fingerprint
    from calibrant.views.report import write_report

    names = source.names
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    histogram, classes = data.tally(Partition.fixed_width(_HISTOGRAM_BINS), **labels)
    if model is not None:
        check_classes(model, classes)
    facts = {
        **event_facts(found, data.columns.label, classes.positive),
        "files": shown,
        **data.columns.named,
        "fingerprint": str(fingerprint(data)),
    }
    calibrator = None if model is None else model.calibrator
    write_report(
        output, found, calibrator, title=options["title"] or f"Audit of {shown}", source=facts, histogram=histogram
    )
