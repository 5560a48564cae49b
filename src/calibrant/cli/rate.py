"""`calibrant rate`: a rate from few labels and many scores, and a gate on it."""

import json
from typing import TYPE_CHECKING, Any

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import files, typed
from calibrant.cli._records import read_columns
from calibrant.cli._report import check_outputs, facts_of, is_page
from calibrant.cli._show import EXIT_CODES, answer, result_json
from calibrant.text.numbers import plain

if TYPE_CHECKING:
    from calibrant.assess.rates.gate import Gate
    from calibrant.assess.rates.result import Rate

_LOOK_AGAIN = (
    "to add labels and look again, use --order; without it, the limits hold for one look only"
)
_ROLES = ("score", "label", "group", "segment", "order")


@option.command("rate", "Estimate the share of positives from a few labels.", option.data)
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

    check_outputs(options, ".json")
    for role in ("score", "label"):
        if options[role] is None:
            raise RefusedError(f"--{role}", "name a field of the data", got="none")
    asked = _asked(options)
    with files(options) as source:
        columns = read_columns(source, {role: options[role] for role in _ROLES})
        facts = facts_of(source, score=options["score"], label=options["label"])
    found = rate(
        columns["label"],
        columns["score"],
        groups=columns.get("group"),
        segments=columns.get("segment"),
        sequential=columns.get("order", False),
        pos_label=_positive(options["pos_label"], columns["label"]),
        **option.arguments("rate", options),
    )
    gate = None if asked is None else found.gate(**asked)
    result = gate or found
    more = _more(found, gate, options)
    for path in options["output"]:
        if not is_page(path):
            _write_json(path, {**more, "output": list(options["output"])}, options)
    undecided = gate is not None and gate.verdict == "unclear"
    notes = (_LOOK_AGAIN,) if undecided and not found.sequential else ()
    answer(result, options, facts, more, notes=notes, entry="output")
    return 0 if gate is None else EXIT_CODES[gate.verdict]


def _asked(options: dict[str, Any]) -> dict[str, float] | None:
    """The target rate, if one was given, by its parameter."""
    from calibrant.assess.rates.goal import Goal

    if options["at_least"] is None and options["at_most"] is None:
        return None
    goal = Goal.of(options["at_least"], options["at_most"])
    return {"at_most" if goal.at_most else "at_least": goal.rate}


def _more(found: "Rate", gate: "Gate | None", options: dict[str, Any]) -> dict[str, Any]:
    """What the JSON object has beside the result: with a gate, also the rate it is about."""
    return {
        "verdicts": [],
        **result_json(found),
        **({} if gate is None else result_json(gate)),
        "at_least": options["at_least"],
        "at_most": options["at_most"],
        "more_labels": None if gate is None else gate.more_labels,
    }


def _positive(text: str | None, labels: list[Any]) -> Any:
    """The typed positive label, as a value of the labels' type."""
    if text is None:
        return None
    example = next((label for label in labels if label not in (None, "") and label == label), "")
    kind = next((one for one in (bool, int, float) if isinstance(example, one)), str)
    rule = f"be one of the labels, such as {example!r}"
    return typed(text, float if kind is int else kind, "--pos-label", rule)


def _write_json(path: str, more: dict[str, Any], options: dict[str, Any]) -> None:
    """Write the same JSON that --json prints."""
    from calibrant._file import write_file

    state = plain({"command": "rate", **more})
    content = json.dumps(state, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_file(content.encode(), path, overwrite=options["overwrite"])
