"""What `calibrant audit` does."""

from dataclasses import asdict
from typing import Any

import click

from calibrant.cli._errors import RefusedError
from calibrant.cli._input import class_parameters, files, roles
from calibrant.cli._output import paragraph, print_json
from calibrant.cli._writing import check_target

_HISTOGRAM_BINS = 50


def audit_files(options: dict[str, Any]) -> int:
    """Audit, print, write the report; the exit code."""
    from calibrant import audit

    output = options["output"]
    if output is not None:
        if not output.lower().endswith((".html", ".htm")):
            raise RefusedError(f"-o must end in .html, for the report is a web page; got {output!r}")
        check_target(output, overwrite=options["overwrite"], inputs=list(options["data"]))
    model = None
    if options["model"] is not None:
        if output is None:
            raise RefusedError("--model is shown in the report: give -o audit.html too")
        from calibrant.cli._model import read_model

        model = read_model(options["model"])
    with files(options["data"], options["file_format"]) as source:
        columns = roles(source, score=options["score"], label=options["label"], segment=options["segment"])
        data = source.scored(columns, threads=options["threads"], quiet=options["quiet"])
        labels = class_parameters(data, options["pos_label"], options["classes"])
        found = audit(data, confidence_level=options["confidence"], n_bins=options["bins"], **labels)
        if output is not None:
            _report(output, found, data, source, labels, options, model)
    if options["as_json"]:
        print_json({"command": "audit", "report": output, **audit_json(found)})
    else:
        show_audit(found)
        if output is not None:
            click.echo(f"\nReport: {output}")
    return 1 if options["check"] and found.is_miscalibrated else 0


def show_audit(found: Any) -> None:
    """The verdict first, then what it rests on."""
    lines = str(found).splitlines()
    paragraph(lines[0][:1].upper() + lines[0][1:] + ".", bold=True)
    for line in lines[1:]:
        paragraph(line.strip(), indent="  ")


def audit_json(found: Any) -> dict[str, Any]:
    """What was found, as plain values; documented in the guide."""
    return {
        "verdict": found.verdict,
        "miscalibrated": found.is_miscalibrated,
        "lower_bound": found.lower_bound,
        "average_lower_bound": found.average_lower_bound,
        "upper_bound": found.upper_bound,
        "upper_bound_reason": found.upper_bound_reason,
        "confidence_level": found.confidence_level,
        "rows": found.n_rows,
        "findings": [asdict(finding) for finding in found.findings],
        "assumptions": list(found.assumptions),
    }


def _report(
    output: str, found: Any, data: Any, source: Any, labels: dict[str, Any], options: dict[str, Any], model: Any
) -> None:
    from calibrant.engines.fingerprint import fingerprint
    from calibrant.partition import Partition
    from calibrant.views.report import write_report

    names = source.names
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    facts = {
        "files": shown,
        **data.columns.named,
        "fingerprint": str(fingerprint(data)),
    }
    histogram, _ = data.tally(Partition.fixed_width(_HISTOGRAM_BINS), **labels)
    calibrator = None if model is None else model.calibrator
    write_report(
        output, found, calibrator, title=options["title"] or f"Audit of {shown}", source=facts, histogram=histogram
    )
