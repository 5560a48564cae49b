"""What the report shows, collected from the results: plain texts, and figures whose places are known."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._audit import Audit
from calibrant._audit.report import rounded_down, rounded_up
from calibrant._typing import IndexArray
from calibrant._version import __version__
from calibrant.guarantee import Guarantee, NoGuarantee
from calibrant.tally import Tally
from calibrant.views.report import wording
from calibrant.views.report.figures import Figure, audit_figure, promise_figure, region_rows, taken, with_notes
from calibrant.views.report.histogram import MOST_BARS
from calibrant.views.report.segments import blocks, finest, segments_section

_MOST_FACTS = 60
_LONGEST_FACT = 400
_OPEN_ROWS = 40  # a longer table is folded
_DEFAULT_TITLE = "Calibration report"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is shown, at most, so that the file stays small."""

    marks: int
    table_rows: int
    segments: int
    small_figures: int


@dataclass(frozen=True, slots=True)
class RegionTable:
    """Rows of text, and how many regions there are in all."""

    rows: tuple[dict[str, str], ...]
    n_regions: int

    @property
    def folded(self) -> bool:
        """Whether the table is long enough to be folded away."""
        return len(self.rows) > _OPEN_ROWS

    @property
    def left_out(self) -> int:
        """Regions that are not in the table."""
        return self.n_regions - len(self.rows)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The results that are shown; none of them is changed."""

    audit: Audit
    guarantee: Guarantee | NoGuarantee | None
    calibrator: Any
    title: str | None
    source: Mapping[str, Any]
    histogram: Tally | None
    audit_after: Audit | None


def collect(inputs: Inputs, limits: Limits) -> dict[str, Any]:
    """Return everything the template names."""
    audit, guarantee, after = inputs.audit, inputs.guarantee, inputs.audit_after
    everyone = blocks(audit)[0]
    rows = finest(audit, everyone)
    drawn = finest(audit, everyone, limits.marks)
    before = audit_figure("before", "Scores as they are", audit, drawn, histogram=inputs.histogram,
                          bar_rows=finest(audit, everyone, MOST_BARS))  # fmt: skip
    if drawn.size < rows.size:
        before = with_notes(before, [f"Drawn are {drawn.size:,} coarser regions; the finest are {rows.size:,}."])
    decimals = wording.decimals_for([float(audit.table.upper[rows].max()), float(audit.table.mean_score[rows].max())])
    verdict_kind, verdict_label, verdict = wording.headline(audit)
    promise_kind, promise_label, promise = wording.promise(guarantee)
    return {
        "title": wording.name_of(inputs.title or _DEFAULT_TITLE, 160),
        "eyebrow": _DEFAULT_TITLE if inputs.title else None,
        "headline": {"kind": verdict_kind, "label": verdict_label, "text": verdict},
        "strongest": None if audit.worst is None else wording.strongest(audit.worst, decimals=decimals),
        "promise": {"kind": promise_kind, "label": promise_label, "text": promise},
        "key_numbers": _key_numbers(audit, guarantee),
        "before": before,
        "after": _after_figure(guarantee, after, limits),
        "checked": after is not None,
        "has_calibrator": guarantee is not None,
        "has_promise": isinstance(guarantee, Guarantee),
        "before_table": _audit_table(audit, rows, decimals, limits.table_rows),
        "after_table": _promise_table(guarantee, limits.table_rows),
        "confidence": wording.percent(audit.confidence_level),
        "promise_confidence": wording.percent(guarantee.confidence_level) if isinstance(guarantee, Guarantee) else "",
        "segments": segments_section(audit, most_rows=limits.segments, most_figures=limits.small_figures),
        "proved": wording.proved(audit, guarantee, after),
        "assumed": wording.assumed(audit, guarantee),
        "unknowable": wording.unknowable(audit),
        "computed": _computed(audit, inputs),
        "source": _facts(inputs.source),
        "versions": _versions(),
        "glossary": wording.GLOSSARY,
        "version": __version__,
    }


def _key_numbers(audit: Audit, guarantee: Guarantee | NoGuarantee | None) -> list[dict[str, str]]:
    somewhere = "within a segment" if wording.is_within(audit) else "somewhere"
    on_average = "on average, within segments" if audit.by_segment else "on average"
    numbers = [
        _number("Rows", f"{audit.n_rows:,}", "audited"),
        _number("Confidence", wording.percent(audit.confidence_level), "in all statements of the audit at once"),
        _number("Off by at least", rounded_down(audit.lower_bound), somewhere, audit.lower_bound),
        _number("Off by at least", rounded_down(audit.average_lower_bound), on_average, audit.average_lower_bound),
    ]
    if audit.upper_bound is None:
        numbers.append(_number("Off by at most", "no bound", "none exists for a continuous score"))
    else:
        numbers.append(
            _number("Off by at most", rounded_up(audit.upper_bound), "at any score value seen", audit.upper_bound)
        )
    if isinstance(guarantee, Guarantee):
        stated = guarantee.stated
        where = (
            f"after calibration{wording.of_how_much(stated)}, {wording.percent(guarantee.confidence_level)} confidence"
        )
        text = wording.epsilon_text(stated.epsilon)
        numbers.append(
            _number("Within", text, where if guarantee.is_proved else f"{where}, not proved", stated.epsilon)
        )
    elif guarantee is not None:
        numbers.append(_number("Within", "no bound", "after calibration: nothing is promised"))
    return numbers


def _number(name: str, value: str, note: str, exact: float | None = None) -> dict[str, str]:
    return {"name": name, "value": value, "note": note, "exact": "" if exact is None else wording.exact(exact)}


def _after_figure(guarantee: Guarantee | NoGuarantee | None, after: Audit | None, limits: Limits) -> Figure | None:
    checked_rows = None if after is None else finest(after, blocks(after)[0], limits.marks)
    if isinstance(guarantee, Guarantee):
        rows = region_rows(guarantee, limits.marks)
        if rows.size == 0:
            return None
        figure = promise_figure(
            "after", "After calibration", guarantee, rows, checked=after, checked_rows=checked_rows
        )  # fmt: skip
        notes = []
        n_seen = int(np.count_nonzero(guarantee.counts > 0))
        if n_seen > rows.size:
            notes.append(f"Drawn are {rows.size:,} of {n_seen:,} regions, those with the widest reach.")
        if n_empty := guarantee.counts.size - n_seen:
            regions = "region without rows is" if n_empty == 1 else "regions without rows are"
            notes.append(f"{n_empty:,} {regions} not drawn: there the interval is [0, 1].")
        return with_notes(figure, notes)
    if after is not None and checked_rows is not None:
        return audit_figure("after", "Other scores, on other rows" if guarantee is None else "After calibration", after,
                            checked_rows, x_label="calibrated score")  # fmt: skip
    return None


def _audit_table(audit: Audit, rows: IndexArray, decimals: int, most: int) -> RegionTable:
    table = audit.table
    kept = rows
    if rows.size > most:
        kept = np.sort(rows[np.argsort(-table.error[rows], kind="stable")[:most]])
    part = taken(table, kept)
    lines = []
    for row, verdict in enumerate(part.verdict):
        kind = wording.KINDS.get(verdict, "none")
        lines.append(
            {
                "low": wording.near(float(part.low[row]), decimals),
                "high": wording.near(float(part.high[row]), decimals),
                "count": f"{int(part.counts[row]):,}",
                "mean": wording.near(float(part.mean_score[row]), decimals),
                "rate": wording.near(float(part.rate[row]), decimals),
                "lower": wording.down(float(part.lower[row]), decimals),
                "upper": wording.up(float(part.upper[row]), decimals),
                "kind": kind,
                "verdict": verdict.removeprefix("scores "),
                "error": "" if kind == "none" else wording.down(float(part.error[row]), decimals),
            }
        )
    return RegionTable(tuple(lines), int(rows.size))


def _promise_table(guarantee: Guarantee | NoGuarantee | None, most: int) -> RegionTable | None:
    if not isinstance(guarantee, Guarantee):
        return None
    radius = guarantee.radius
    kept = np.arange(radius.size)
    if kept.size > most:
        kept = np.sort(np.argsort(-radius, kind="stable")[:most])
    seen = guarantee.counts > 0
    decimals = wording.decimals_for(guarantee.upper[seen].tolist() or [1.0])
    lines = [
        {
            "region": wording.region_name(guarantee.regions[row]),
            "count": f"{int(guarantee.counts[row]):,}",
            "positives": f"{int(guarantee.positives[row]):,}",
            "value": wording.near(float(guarantee.value[row]), decimals),
            "lower": wording.down(float(guarantee.lower[row]), decimals),
            "upper": wording.up(float(guarantee.upper[row]), decimals),
            "radius": wording.up(float(radius[row]), decimals),
        }
        for row in kept.tolist()
    ]
    return RegionTable(tuple(lines), int(radius.size))


def _computed(audit: Audit, inputs: Inputs) -> list[tuple[str, str]]:
    method = wording.AUDIT_METHOD
    if audit.unseen_mass is not None:
        method = f"{method} {wording.UNSEEN_METHOD}"
    n_resolutions = int(audit.table.resolution.max()) + 1
    facts = [
        ("Audit", method),
        ("Regions", f"{audit.table.counts.size:,}, at up to {n_resolutions} resolutions, within one error budget of "
         f"{wording.percent(1.0 - audit.confidence_level)}"),
    ]  # fmt: skip
    guarantee = inputs.guarantee
    if guarantee is None:
        return facts
    facts.append(("Calibrator", _calibrator_text(inputs.calibrator)))
    if isinstance(guarantee, Guarantee):
        facts += [
            ("Interval", f"{guarantee.method}: {wording.readable(guarantee.theorem)}"),
            ("Calibration", f"{guarantee.n_rows:,} rows in {len(guarantee.regions):,} regions, "
             f"{wording.percent(guarantee.confidence_level)} confidence"),
        ]  # fmt: skip
        facts += [("Remark", wording.sentence(remark)) for remark in guarantee.remarks]
    partition = getattr(inputs.calibrator, "partition_", None)
    if partition is not None:
        facts.append(("Fingerprint of the regions", str(partition.fingerprint)))
    return facts


def _calibrator_text(calibrator: Any) -> str:
    changed = " ".join(repr(calibrator).split())
    return wording.name_of(changed, _LONGEST_FACT)


def _facts(source: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [
        (wording.name_of(str(name).replace("_", " ")), wording.name_of(_plain(value), _LONGEST_FACT))
        for name, value in list(source.items())[:_MOST_FACTS]
    ]
    if len(source) > _MOST_FACTS:
        facts.append(("and", f"{len(source) - _MOST_FACTS:,} more facts, left out"))
    return facts


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_plain(entry)}" for name, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(entry) for entry in value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return f"{int(value):,}"
    return str(value)


def _versions() -> str:
    return f"calibrant {__version__}, Python {platform.python_version()}, numpy {np.__version__}"
