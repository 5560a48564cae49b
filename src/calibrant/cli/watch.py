"""`calibrant watch`: read predictions and labels as they arrive, and raise an alarm if the
guarantee may no longer hold.
"""

import signal
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli import _options as option
from calibrant.cli._errors import message_of
from calibrant.cli._events import Fields, Intake, Quarantine
from calibrant.cli._line_source import Batch, LineSource, line_source
from calibrant.cli._model import read_model
from calibrant.cli._output import remark, warn
from calibrant.cli._report import write_report
from calibrant.cli._show import close, show
from calibrant.cli._signals import Signals
from calibrant.cli._target import InputPath, quarantine_of
from calibrant.errors import StoreError
from calibrant.text.numbers import counted, upper

if TYPE_CHECKING:
    from calibrant.answers.model_file import Model
    from calibrant.monitor import MonitorSnapshot

_NO_TIMES = (
    "lines without a time are dated today, and a day is counted once it is over; to replay an"
    " archive, put the time of each prediction into the field {time!r} (--time names another)"
)
_OLD = 3  # days without an event before a warning
_LOST = (
    "the file of which {lines} were read is neither at {path!r} nor beside it under a name such as"
    " {path}.1: lines added to it since then are not read; to add them, watch that file once, with"
    " the same store (not compressed; lines that come twice count once)"
)

_LINES = click.Argument(["lines"], metavar="LINES", type=InputPath(allow_dash=True))


@option.command("watch", "Watch a model in production.", _LINES)
def command(
    lines: str, output: str | None, once: bool, as_json: bool, details: bool, **options: Any
) -> int:
    """Count predictions and labels as they arrive, and watch whether the guarantee still holds.

    LINES is a file of JSON lines that may grow and be rotated, or - for a pipe. A line has an id
    and a score, or an id and a label, or all three. The store keeps everything, so you can stop and
    start again at any time; lines that come twice count once. A line that cannot be read is put
    into a file beside the store, STORE.quarantine.jsonl, and the others are counted. Without
    --once, a file is followed until you press Ctrl-C. What comes through a pipe is in the store
    after a second, and when the command is stopped.

    Exit codes of --once: 0 without an alarm, 1 with one, 2 if something is wrong: also if a line
    could not be read, once, and as long as a day cannot be counted.

    Examples
    --------
    calibrant watch labels.jsonl --model model.json --store watch.db --maturity 7
    calibrant watch labels.jsonl --model model.json --store watch.db --maturity 7 --once --json
    tail -F service.log | calibrant watch - --model model.json --store watch.db -o drift.html
    """
    with Signals() as signals:  # from the beginning: a handler that raises may not be heard
        from calibrant.monitor import Monitor

        model = read_model(options["model"])
        fields = _fields(model.columns, options)
        settings = option.arguments("watch", options)
        store = options["store"]
        place = Quarantine(quarantine_of(store), settings["name"], lines)
        with (
            closing(line_source(lines)) as source,  # before a store is made for a missing file
            Monitor(store, model, **settings, random_state=_seed(model)) as monitor,
        ):
            intake = Intake(monitor, fields, place, source.key)
            found = _follow(source, intake, signals, once=once, quiet=as_json)
    if signals.number is not None:
        where = f" or in {place.path}" if place.n_lines else ""
        remark(f"stopped; everything that was read is in the store{where}")
    if place.n_lines:
        warn(
            f"{counted(place.n_lines, 'line')} could not be read and were put into {place.path}; the"
            f" first: {place.first}"
        )
    if source.n_lost_after:
        warn(_LOST.format(lines=counted(source.n_lost_after, "line"), path=lines))
    if once:
        _warn_if_old(found)
    if not found.n_mature and intake.has_times is False:
        warn(_NO_TIMES.format(time=fields.at))
    if output is not None:
        write_drift_report(found, output, title=Path(options["model"]).name)
    show(found, {"as_json": as_json, "details": details})
    if not as_json:
        close(found, {**options, "lines": lines}, output)
    if signals.number is not None and (once or signals.number != signal.SIGINT):
        return 128 + signals.number
    if once and found.alarm:
        return 1
    return 2 if once and (place.n_lines or found.quarantine) else 0


def _seed(model: "Model") -> int:
    """The seed of a new store: the same lines give the same answer, and another model, fitted to
    other rows, other draws. With one seed for all, false alarms of different models would not be
    independent.
    """
    return int(model.fingerprint[:12], 16)


def _fields(columns: Any, options: dict[str, Any]) -> Fields:
    """The fields of a line: as given, else as in the model file, else the usual names."""
    return Fields(
        id=options["row_id"],
        score=options["score"] or columns.get("score") or "score",
        label=options["label"] or columns.get("label") or "label",
        at=options["time"],
        labelled_at=options["label_time"],
        segment=columns.get("segment") or "segment",
    )


def _follow(
    source: LineSource, intake: Intake, signals: Signals, *, once: bool, quiet: bool
) -> "MonitorSnapshot":
    """Submit what arrives, and report when something happens."""
    monitor = intake.monitor
    place = {} if source.key is None else monitor.read_note(source.key) or {}
    skipped = source.resume(place)
    if skipped:
        intake.has_times = place["has_times"]
        if not quiet:
            remark(f"continues after {skipped:,} bytes that were already read")
    found: MonitorSnapshot = monitor.snapshot()
    alarmed = False
    n_shown = None
    tells = not quiet and not once
    for batch in source.batches(follow=not once, stops=lambda: signals.number is not None):
        if batch.lines:
            _take(source, intake, batch)
            found = monitor.snapshot()
        if tells and found.alarm and not alarmed:
            show(found, {"as_json": False, "details": False})
        elif tells and found.n_mature != n_shown:
            remark(status(found))
        alarmed = found.alarm
        n_shown = found.n_mature
    return found


def _take(source: LineSource, intake: Intake, batch: Batch) -> None:
    """Submit lines; if the store fails, keep those of a pipe, which do not come again."""
    try:
        intake.take(batch)
    except StoreError as error:
        lines = [] if source.key is not None else [*batch.lines, *source.rest()]
        if lines:
            reason = f"not in the store: {message_of(error)}"
            intake.quarantine.keep([(line, reason) for line in lines])
        raise


def _warn_if_old(found: "MonitorSnapshot") -> None:
    """Warn if nothing has arrived for days: without events there is no alarm either."""
    if found.now is None:
        return
    age = datetime.now(UTC) - datetime.fromisoformat(found.now).replace(tzinfo=UTC)
    if age.days >= _OLD:
        warn(f"the last event is {age.days:,} days old; check that events still come in")


def status(found: "MonitorSnapshot") -> str:
    """The state in one line."""
    state = "ALARM" if found.alarm else "no alarm"
    return (
        f"{found.now}: {state}, {found.n_mature:,} counted ({found.n_labels:,} with a label), "
        f"{found.n_pending:,} pending, epsilon {upper(found.epsilon)}"
    )


def write_drift_report(found: "MonitorSnapshot", path: str, title: str) -> None:
    """Write the drift report, with the bound over time."""
    facts = {"model": title, **found.facts}
    write_report(path, found, facts, overwrite=True, title=f"Drift: {title}")
