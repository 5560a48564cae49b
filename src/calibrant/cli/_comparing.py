"""What `calibrant compare` does."""

import math
import re
from typing import Any

from calibrant._labels import settle_classes
from calibrant.cli._errors import in_words
from calibrant.cli._gather import in_memory
from calibrant.cli._input import class_parameters, files, roles
from calibrant.cli._output import note, paragraph, print_json, remark, table
from calibrant.rows.draw import Draw
from calibrant.rows.fingerprint import fingerprint


def compare_files(options: dict[str, Any]) -> None:
    """Compare, and print."""
    from calibrant import compare

    with files(options["data"], options["file_format"]) as source:
        columns = roles(source, score=options["score"], label=options["label"])
        data = source.scored(columns, threads=options["threads"], quiet=options["quiet"])
        labels = class_parameters(data, options["pos_label"], options["classes"])
        n_rows = data.known_rows()
        if n_rows is None:
            n_rows = fingerprint(data).rows
        most = options["most_rows"]
        draw = Draw(options["seed"], most / n_rows) if n_rows > most else None
        rows = in_memory(data, draw)
    if draw is not None:
        remark(f"comparing a random sample of {rows.scores.size:,} of {n_rows:,} rows (--most-rows)", options["quiet"])
    contenders = _contenders(
        options, probabilities=bool(rows.scores.size and rows.scores.min() >= 0 and rows.scores.max() <= 1)
    )
    found = compare(
        contenders, rows.scores, rows.labels, cv=options["folds"], random_state=options["seed"], **labels
    )  # fmt: skip
    positive = settle_classes(sorted(set(rows.labels.tolist())), **labels).positive
    names = ("log_loss", "brier", "ece", "epsilon", "state_bytes", "fit_seconds", "predict_seconds")
    if options["as_json"]:
        methods = [
            {"method": method, "guarantee": _named(in_words(found.guarantee[place]), positive)}
            | {name: getattr(found, name)[place].item() for name in names}
            for place, method in enumerate(found.methods)
        ]
        print_json(
            {
                "command": "compare",
                "rows": n_rows,
                "rows_compared": found.n_rows,
                "folds": found.n_folds,
                "methods": methods,
            }
        )
        return
    lines = [
        (
            method,
            f"{found.log_loss[place]:.4f}",
            f"{found.brier[place]:.4f}",
            f"{found.ece[place]:.4f}",
            "none" if found.epsilon[place] != found.epsilon[place] else f"{found.epsilon[place]:.4f}",
            f"{1e3 * found.fit_seconds[place]:,.0f} ms",
        )
        for place, method in enumerate(found.methods)
    ]
    table(("method", "log loss", "Brier", "ECE", "guaranteed", "fit"), lines)
    paragraph(
        f"{found.n_rows:,} rows, {found.n_folds} folds. Only the guaranteed column is a promise; the others are "
        "measured on held-out rows, lower is better, and small differences are noise."
    )
    if any(math.isinf(value) for value in found.log_loss.tolist()):
        note("inf: a prediction of exactly 0 or 1 was wrong, and then log loss is infinite")


def _named(sentence: str, positive: Any) -> str:
    """The sentence with the label that is meant: calibrators are compared on labels 0 and 1."""
    return re.sub(r"\bclass 1\b", lambda _: f"class {positive!r}", sentence)


def _contenders(options: dict[str, Any], *, probabilities: bool) -> dict[str, Any]:
    import calibrant

    bins = {"n_bins": options["bins"], "confidence_level": options["confidence"]}
    everything = {
        "binning": calibrant.BinningCalibrator(**bins, random_state=options["seed"]),
        "scaling-binning": calibrant.ScalingBinningCalibrator(**bins, random_state=options["seed"]),
        "platt": calibrant.PlattCalibrator(),
        "temperature": calibrant.TemperatureCalibrator(),
        "beta": calibrant.BetaCalibrator(),
        "isotonic": calibrant.IsotonicCalibrator(),
        "venn-abers": calibrant.VennAbersCalibrator(),
    }
    only_probabilities = ("temperature", "beta")
    return {name: made for name, made in everything.items() if probabilities or name not in only_probabilities}
