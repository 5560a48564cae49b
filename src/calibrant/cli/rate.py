"""`calibrant rate`: a rate from few labels and many scores, and a gate on it."""

import json
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import files
from calibrant.cli._output import print_json, saved
from calibrant.cli._report import is_page, shown_names, write_report
from calibrant.cli._show import result_json, show, show_tables
from calibrant.cli._signature import Declared, number, words_of
from calibrant.cli._target import check_target
from calibrant.text.numbers import counted, percent, plain

if TYPE_CHECKING:
    from calibrant.assess.rates.gate import Gate
    from calibrant.assess.rates.result import Rate

NOT_DECIDED = 3
_CODES = {"shown": 0, "refuted": 1, "undecided": NOT_DECIDED}
_ANSWERS = {"shown": "Yes", "refuted": "No", "undecided": "Not decided"}
_STANDS = {
    "shown": ("right", "Shown"),
    "refuted": ("wrong", "Refuted"),
    "undecided": ("open", "Not decided"),
}
_LOOK_AGAIN = (
    "to add labels and look again, use --order; without it, the limits hold for one look only"
)
_RATE = Declared("assess.rates.rate_of_items", "rate")
_ROLES = ("score", "label", "group", "segment", "order")


@option.command("Estimate the share of positives from a few labels.")
@option.data
@option.column(
    "score", "Field of scores: a verdict, a probability or any number. Fields inside others: a.b.c."
)
@option.column("label", "Field of labels, missing or empty for items without a label.")
@option.column(
    "group", "Field of groups drawn as a whole, such as several answers to one question."
)
@option.column(
    "segment", "Field of segments. Each gets its own limits, and all hold simultaneously."
)
@option.column(
    "order", "Field with the time or number of each label: limits then hold at every look."
)
@click.option(
    "--at-least",
    type=number,
    metavar="RATE",
    help=(
        "Exit with 0 if the rate is shown to be at least this, for all items and in every segment; "
        "with 1 if that is refuted for any of them; with 3 otherwise."
    ),
)
@click.option(
    "--at-most",
    type=number,
    metavar="RATE",
    help="The same for a rate that must be at most this, such as the share of bad answers.",
)
@option.confidence(_RATE)
@_RATE.option(
    "target",
    "The rate among these items, or in the population they were drawn from.",
    choices=words_of("assess.rates.rate_of_items", "TARGETS"),
)
@_RATE.option(
    "method",
    "exact limits in two strata of scores, limits from the labels alone, or bets on both; auto"
    " chooses by the number of labels, the number of items and the scores.",
    choices=words_of("assess.rates.methods", "METHODS"),
)
@click.option(
    "--pos-label",
    metavar="LABEL",
    help="The positive label, if labels are not 0 and 1, or true and false.",
)
@option.seed(_RATE)
@option.output(
    "Write a report (if FILE ends in .html) or the result as JSON (.json). Can be repeated.",
    multiple=True,
)
@option.overwrite
@option.reading
@option.common
def command(**options: Any) -> int:
    """Estimate what share of the items is positive, with limits that are valid for every judge.

    All items have a score, such as the verdict of an LLM judge, and some have a label as well.
    The labelled items must have been drawn at random. Reads CSV, Parquet, Arrow and JSON lines,
    Inspect logs (.eval, .json) and promptfoo results (.json). In promptfoo results, the field human
    is the manual rating, and judge the verdict without it.

    Examples
    --------
    calibrant rate eval.jsonl --score judge --label human --group question --at-least 0.95
    calibrant rate eval.jsonl --score judge --label human --pos-label bad --at-most 0.1
    calibrant rate eval.jsonl --score output.judge.pass --label review.ok -o rate.html
    calibrant rate logs/run.eval --score scores.model_graded_qa.value --label metadata.human
    calibrant rate results.json --score judge --label human --json
    """
    from calibrant import rate

    outputs = options["output"]
    for path in outputs:
        if not (is_page(path) or path.lower().endswith(".json")):
            raise RefusedError("-o", "end in .html for a report, or in .json", got=repr(path))
        check_target({**options, "output": path})
    for role in ("score", "label"):
        if options[role] is None:
            raise RefusedError(f"--{role}", "name a field of the data", got="none")
    asked = _asked(options)
    with files(options) as source:
        from calibrant.cli._records import read_columns

        columns = read_columns(source, {role: options[role] for role in _ROLES})
        names = source.names
    found = rate(
        columns["label"],
        columns["score"],
        groups=columns.get("group"),
        segments=columns.get("segment"),
        sequential=columns.get("order", False),
        pos_label=_typed(options["pos_label"], columns["label"]),
        **_RATE.arguments(options),
    )
    gate = None if asked is None else found.gate(**asked)
    answer, more = _answer(found, gate)
    state = {
        "command": "rate",
        "verdict": None if gate is None else gate.verdict,
        "at_least": options["at_least"],
        "at_most": options["at_most"],
        "more_labels": more,
        **result_json(found),
        "verdicts": [] if gate is None else gate.to_dict()["verdicts"],
        "sentence": answer,
        "output": list(outputs),
    }
    for path in outputs:
        _write(path, found, answer, gate, state, names, options)
    if options["as_json"]:
        print_json(state)
    else:
        notes = (_LOOK_AGAIN,) if more is not None and not found.sequential else ()
        show(found, sentence=answer, short=_in_short(found, gate), notes=notes)
        if gate is not None:
            show_tables(gate)
        for path in outputs:
            saved(path)
    return 0 if gate is None else _CODES[gate.verdict]


def _in_short(found: "Rate", gate: "Gate | None") -> str | None:
    """The gate's answer in plain words."""
    from calibrant.draw.report.in_short import in_short

    said = in_short(found)
    if gate is None or said is None:
        return said
    if gate.segments:
        said = (
            f"a rate of {gate.goal.words} {gate.said}. Confidence: {percent(gate.confidence_level)},"
            " as long as the labelled items were drawn at random."
        )
    return f"{_ANSWERS[gate.verdict]}: {said[:1].lower()}{said[1:]}"


def _asked(options: dict[str, Any]) -> dict[str, float] | None:
    """The rate that is asked for, if any, by its parameter."""
    from calibrant.assess.rates.goal import Goal

    if options["at_least"] is None and options["at_most"] is None:
        return None
    goal = Goal.of(options["at_least"], options["at_most"])
    return {"at_most" if goal.at_most else "at_least": goal.rate}


def _answer(found: "Rate", gate: "Gate | None") -> tuple[str, int | None]:
    """The answer in one sentence, and about how many more labels would decide it.

    If an assumption is refuted, the result's own sentence says so.
    """
    if gate is None or gate.is_doubtful:
        return found.sentence, None
    answer = gate.sentence.removesuffix(".")
    claim = found.sentence
    if gate.segments:
        answer = f"{answer}. {claim.removesuffix('.')}"
    else:
        answer = f"{answer}: {claim[0].lower()}{claim[1:].removesuffix('.')}"
    if gate.verdict != "undecided":
        return f"{answer}.", None
    if found.n_labels == found.n_items:
        return f"{answer}; all items have a label, so only more items would decide it.", None
    asked = {"at_least": gate.at_least, "at_most": gate.at_most}
    more = max(1, found.labels_needed(**asked) - found.n_labels)
    return (
        f"{answer}; about {counted(more, 'more label')} would decide it if the estimate is right.",
        more,
    )


def _typed(text: str | None, labels: list[Any]) -> Any:
    """The typed positive label, as a value of the labels' type."""
    if text is None:
        return None
    example = next((label for label in labels if label not in (None, "") and label == label), "")
    try:
        if isinstance(example, bool):
            return {"true": True, "1": True, "false": False, "0": False}[text.strip().lower()]
        if isinstance(example, int | float):
            return float(text)
    except (KeyError, ValueError):
        raise RefusedError(
            "--pos-label", f"be one of the labels, such as {example!r}", got=repr(text)
        ) from None
    return text


def _write(
    path: str,
    found: "Rate",
    answer: str,
    gate: "Gate | None",
    state: dict[str, Any],
    names: list[str],
    options: Any,
) -> None:
    from calibrant._file import write_file

    if is_page(path):
        from calibrant.draw.report.headline import Headline
        from calibrant.draw.report.pages import Beside

        facts = {"files": shown_names(names), "score": options["score"], "label": options["label"]}
        stands = None if gate is None else Headline(*_STANDS[gate.verdict])
        short = _in_short(found, gate)
        beside = Beside(answer, stands, gate=gate, short=short)
        write_report(path, found, facts, overwrite=options["overwrite"], beside=beside)
        return
    content = json.dumps(plain(state), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_file(content.encode(), path, overwrite=options["overwrite"])
