"""The pages: all models, and one model. They are drawn as reports are."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from calibrant.draw.report.html import asset, filled_template, hash_of
from calibrant.draw.report.page import VERDICTS, Extras, Inputs, MostShown
from calibrant.draw.report.pages import result_page
from calibrant.draw.report.report import html_of
from calibrant.monitor.headline import Standing
from calibrant.monitor.serve.service import Service
from calibrant.monitor.snapshot import MonitorSnapshot
from calibrant.text.numbers import counted
from calibrant.text.quantity import Quantity

_SIZES = MostShown(marks=250, table_rows=150, segments=100, small_figures=8)


@cache
def policy() -> str:
    """What a browser may load for a page: its own style and script, and events of this service."""
    script = hash_of(asset("live/live.js"))
    styles = " ".join(f"'sha256-{hash_of(asset(name))}'" for name in ("style.css", "live/live.css"))
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src {styles};"
        " connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    )


def quoted(name: str) -> str:
    """A name as a part of an address."""
    return quote(name, safe="")


def model_page(service: Service, name: str) -> str:
    """The page of a model."""
    _, found = service.snapshot(name)
    n_unlabelled = service.n_unlabelled(name)
    notes = []
    if n_unlabelled and found.counted_until is not None:
        missing = counted(n_unlabelled, "prediction")
        notes.append(
            f"Label next: {missing} of {found.counted_until}, the next day to be counted, have no"
            " label, and would count as negative"
        )
    inputs = Inputs(found, title=name, source=found.facts)
    shown = result_page(inputs, _SIZES, Extras(notes=tuple(notes)))
    lacking = (
        Quantity("Counted without a label", found.n_mature - found.n_labels),
        Quantity("Conflicting", found.n_conflicting),
    )
    shown |= {"eyebrow": "In production", "numbers": [*shown["numbers"], *lacking]}
    here = f"/models/{quoted(name)}"
    events = f"/v1{here}/events"
    return filled_template("live/model.html.jinja", page=shown, here=here, events=events)


def report(name: str, found: MonitorSnapshot) -> str:
    """The report of a model, as a file."""
    return html_of(Inputs(found, title=f"Drift: {name}", source=found.facts))


def list_page(standings: Iterable[Standing], address: str) -> str:
    """The page of all models, those with an alarm first."""
    order = sorted(standings, key=lambda one: (not one.headline.alarm, one.name))
    return filled_template("live/list.html.jinja", models=list(map(_entry, order)), address=address)


def login_page() -> str:
    """The page that asks for a token."""
    return filled_template("live/login.html.jinja")


def _entry(standing: Standing) -> dict[str, Any]:
    live = standing.live
    found = standing.headline
    verdict = "problem" if found.alarm else "ok" if live.mature else "unclear"
    kind, tag = VERDICTS[verdict]  # type: ignore[index]
    calm = "No sign of drift." if live.mature else "Nothing is counted yet."
    last = datetime.fromtimestamp(live.latest, UTC) if live.latest else None
    reached = max(found.progress.values(), default=0.0)
    return {
        "name": standing.name,
        "href": f"/models/{quoted(standing.name)}",
        "kind": kind,
        "tag": "Alarm" if found.alarm else tag,
        "sentence": f"{found.finding}." if found.alarm else calm,
        "progress": round(100.0 * min(max(reached, 0.0), 1.0)),
        "mature": f"{live.mature:,}",
        "pending": f"{live.pending:,}",
        "last": "none" if last is None else f"{last:%Y-%m-%d %H:%M}",
    }
