"""What the report shows, collected from the results: plain texts, and figures whose places are
known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.assess.audit.findings import Audit
from calibrant.assess.validation.result import Validation
from calibrant.calibrators.regions.region_calibrator import score_bins
from calibrant.cells.tally import Tally
from calibrant.draw.curve import predicted_ends
from calibrant.draw.report import names
from calibrant.draw.report.figures import (
    Figure,
    audit_figure,
    audit_texts,
    guarantee_figure,
    guarantee_texts,
    rows_at,
)
from calibrant.draw.report.histogram import MOST_BARS
from calibrant.draw.report.scales import Thresholds
from calibrant.draw.report.segment_rows import finest, segments_section
from calibrant.draw.report.subgroup_rows import forest
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.kinds import is_guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.text.numbers import counted

_MOST_FACTS = 60
_LONGEST_FACT = 400
_DEFAULT_TITLE = "Calibration report"


class Guaranteed(Protocol):
    """A fitted calibrator or classifier that says what it guarantees."""

    @property
    def guarantee_(self) -> Guarantee | NoGuarantee:
        """What is proved, or why nothing is."""


@dataclass(frozen=True, slots=True)
class MostShown:
    """How much is shown at most, so that the file stays small."""

    marks: int
    table_rows: int
    segments: int
    small_figures: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """The results that a report shows."""

    audit: Audit
    calibrator: Guaranteed | None = None
    _: KW_ONLY
    title: str | None = None
    source: Mapping[str, Any] | None = None
    histogram: Tally | None = None
    audit_after: Audit | None = None
    validation: Validation | None = None
    period: str | None = None
    scale: str = "linear"
    thresholds: Thresholds = None
    warnings: Sequence[str] = ()

    @property
    def guarantee(self) -> Guarantee | NoGuarantee | None:
        """What the calibrator guarantees; None if there is no calibrator."""
        return None if self.calibrator is None else self.calibrator.guarantee_


def collect(inputs: Inputs, sizes: MostShown) -> dict[str, Any]:
    """Return everything the template names: results, figures, and which regions and segments are
    shown.
    """
    audit = inputs.audit
    guarantee = inputs.guarantee
    after = inputs.audit_after
    regions = finest(audit.table, audit.table.blocks[0])
    shown = _largest(audit.table.error, regions, sizes.table_rows)
    parts: dict[str, Any] = {}
    if is_guarantee(guarantee):
        every = np.arange(guarantee.counts.size)
        parts["after_rows"] = guarantee_texts(
            guarantee, _largest(guarantee.radius, every, sizes.table_rows)
        )
        parts["after_total"] = every.size
    return {
        "title": names.name_of(inputs.title or _DEFAULT_TITLE, 160),
        "eyebrow": _DEFAULT_TITLE if inputs.title else None,
        "warnings": inputs.warnings,
        "audit": audit,
        "audit_after": after,
        "guarantee": guarantee,
        "calibrator": names.name_of(" ".join(repr(inputs.calibrator).split()), _LONGEST_FACT),
        "fingerprint": getattr(getattr(inputs.calibrator, "partition_", None), "fingerprint", None),
        "validation": inputs.validation,
        "period": inputs.period,
        "before": _before_figure(inputs, sizes.marks),
        "after": _after_figure(inputs, sizes.marks),
        "before_rows": audit_texts(rows_at(audit.table, shown)),
        "before_total": regions.size,
        **parts,
        "segments": segments_section(
            audit,
            most_rows=sizes.segments,
            most_figures=sizes.small_figures,
            period=inputs.period,
            guaranteed=_guaranteed(inputs),
            scale=inputs.scale,
            thresholds=inputs.thresholds,
        ),
        "most_segments": sizes.segments,
        "forest": forest(audit),
        "source": _facts(inputs.source or {}),
    }


def _guaranteed(inputs: Inputs) -> FloatArray | None:
    """Where each region of the model begins and ends, and its limits, to be compared with what each
    period showed.

    None without periods, and for a model whose regions are not those of one score.
    """
    guarantee = inputs.guarantee
    bins = score_bins(inputs.calibrator)
    if inputs.period is None or bins is None or not is_guarantee(guarantee):
        return None
    return np.column_stack([bins.bounds, guarantee.lower, guarantee.upper])


def _before_figure(inputs: Inputs, most: int) -> Figure:
    audit = inputs.audit
    every, drawn, bars = (
        finest(audit.table, audit.table.blocks[0], limit) for limit in (None, most, MOST_BARS)
    )
    figure = audit_figure(
        "before",
        "Scores as they are",
        audit,
        drawn,
        histogram=inputs.histogram,
        bar_rows=bars,
        scale=inputs.scale,
        thresholds=inputs.thresholds,
    )
    if drawn.size == every.size:
        return figure
    return figure.with_notes(
        f"{drawn.size:,} coarser regions are drawn in place of the {every.size:,} finest."
    )


def _after_figure(inputs: Inputs, most: int) -> Figure | None:
    guarantee = inputs.guarantee
    after = inputs.audit_after
    scale = inputs.scale
    checked = (
        None if after is None else (after.table, finest(after.table, after.table.blocks[0], most))
    )
    if is_guarantee(guarantee):
        seen = np.flatnonzero(guarantee.counts > 0)
        chosen = _largest(guarantee.radius, seen, most)
        if chosen.size == 0:
            return None
        ends = _ends_of_regions(inputs.calibrator)
        figure = guarantee_figure(
            "after", "After calibration", guarantee, chosen, checked, scale, ends
        )
        if seen.size > chosen.size:
            figure = figure.with_notes(
                f"{chosen.size:,} of {seen.size:,} regions are drawn, those with the widest"
                " intervals."
            )
        if n_empty := guarantee.counts.size - seen.size:
            are = "is" if n_empty == 1 else "are"
            regions = counted(n_empty, "region without rows", "regions without rows")
            figure = figure.with_notes(f"{regions} {are} not drawn: there the interval is 0 to 1.")
        return figure
    if after is None or checked is None:
        return None
    name = "Other scores, on other rows" if guarantee is None else "After calibration"
    return audit_figure("after", name, after, checked[1], x_label="calibrated score", scale=scale)


def _ends_of_regions(calibrator: Any) -> FloatArray | None:
    """What a curve predicts at both ends of each region; None for bins, and for segments."""
    fitted = getattr(calibrator, "calibrator_", calibrator)  # of a CalibratedClassifier
    bins = score_bins(fitted)
    return None if bins is None else predicted_ends(fitted, bins.bounds)


def _largest(values: FloatArray, at: IndexArray, most: int) -> IndexArray:
    """Those of the places `at` with the largest values, in their order, if there are too many."""
    return at if at.size <= most else np.sort(at[np.argsort(-values[at], kind="stable")[:most]])


def _facts(source: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [
        (names.name_of(str(name).replace("_", " ")), names.name_of(_plain(value), _LONGEST_FACT))
        for name, value in list(source.items())[:_MOST_FACTS]
    ]
    if len(source) > _MOST_FACTS:
        facts.append(("and", f"{counted(len(source) - _MOST_FACTS, 'more fact')}, left out"))
    return facts


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_plain(entry)}" for name, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(entry) for entry in value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return f"{int(value):,}"
    return str(value)
