"""The sections of the report of an audit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._typing import FloatArray
from calibrant.assess.audit.result import Audit
from calibrant.assess.subgroups.result import SubgroupAudit
from calibrant.assess.validation.result import Validation
from calibrant.draw.report.audit_figures import (
    after_figure,
    before_figure,
    gap_figure,
    guaranteed_limits,
    largest,
)
from calibrant.draw.report.figures import (
    Figure,
    audit_figure,
    audit_limits,
    audit_texts,
    finest,
    rows_at,
)
from calibrant.draw.report.page import Inputs, MostShown, Section
from calibrant.draw.report.picture_figure import picture_figures
from calibrant.draw.report.scales import SMALL, Axis, limits_of
from calibrant.draw.report.table_file import TableFile, aligned_entries, shown_tables, table_file
from calibrant.guarantee.guarantee import is_guarantee
from calibrant.text.numbers import counted, percent
from calibrant.text.sentences import name_of

_BAR = 120.0  # the width of a bar in the table of segments
_SMALL_REGIONS = 48  # a small figure shows the finest resolution with at most this many regions
_LONGEST_NAME = 400
_FEW_ROWS = 20  # single scores with fewer rows share one line of the table
_NO_CALIBRATOR = "No calibrator was given, so this report is about the uncalibrated scores."


def audit_sections(inputs: Inputs, sizes: MostShown) -> Iterator[Section]:
    """The sections of an audit, and of the guarantee of a calibrator beside it."""
    audit = inputs.audit
    common = _common(inputs)
    files = _files(inputs, sizes.table_rows)
    before = before_figure(inputs, sizes.marks)
    figures = {"before": before, "after": after_figure(inputs, sizes.marks)}
    yield Section("figures-title", "Scores and observed rates", "reliability", common | figures)
    gaps = gap_figure(inputs, sizes.marks)
    if gaps is not None:
        yield Section("gaps-title", "Observed minus predicted", "gaps", {"figure": gaps})
    tables = _region_tables(inputs, sizes)
    content = common | tables | {"files": files}
    yield Section("regions-title", "The regions in numbers", "regions", content)
    if audit.by_attributes is not None:
        yield from _subgroup_sections(audit.by_attributes, sizes)
    if audit.by_segment:
        segments = _segments(inputs, sizes, guaranteed_limits(inputs))
        noun = inputs.period or "segment"
        title = f"By {noun}" if inputs.period else "Segments, largest error first"
        content = {"audit": audit, "segments": segments, "period": inputs.period, "noun": noun}
        yield Section("segments-title", title, "segments", content | {"files": files})
    if inputs.validation is not None:
        yield _validation_section(inputs.validation, inputs.audit, sizes)
    yield Section("knowledge-title", "What can be said", "known", common)
    yield Section("computed-title", "How it was computed", "computed", common)
    yield Section("glossary-title", "Glossary", "words")


def _subgroup_sections(found: SubgroupAudit, sizes: MostShown) -> Iterator[Section]:
    """The subgroups that are off, and all of them as tables that readers can sort."""
    content = {"figures": picture_figures(found.pictures(), "subgroups"), "remark": ""}
    yield Section("subgroups-title", "Subgroups", "figures", content)
    said = {"lead": found.sentence, "tables": shown_tables(found, sizes)}
    yield Section("subgroup-numbers-title", "The subgroups in numbers", "tables", said)


def _validation_section(found: Validation, audit: Audit, sizes: MostShown) -> Section:
    """The validation table; a page has one verdict, that of its audit."""
    found = replace(found, audit=audit)
    content = {"lead": found.sentence, "tables": shown_tables(found, sizes)}
    return Section("validation-title", "Validation table", "tables", content)


def _common(inputs: Inputs) -> dict[str, Any]:
    """Content that several sections use."""
    audit = inputs.audit
    guarantee = inputs.guarantee
    bounded = guarantee if is_guarantee(guarantee) else None
    return {
        "audit": audit,
        "audit_after": inputs.audit_after,
        "guarantee": guarantee,
        "guarantee_sentence": _NO_CALIBRATOR if guarantee is None else guarantee.sentence,
        "guarantee_confidence": "" if bounded is None else percent(bounded.confidence_level),
        "has_bound": bounded is not None,
        "stated": None if bounded is None else bounded.stated,
        "confidence": percent(audit.confidence_level),
        "calibrator": name_of(" ".join(repr(inputs.calibrator).split()), _LONGEST_NAME),
        "fingerprint": getattr(getattr(inputs.calibrator, "partition_", None), "fingerprint", None),
    }


def _region_tables(inputs: Inputs, sizes: MostShown) -> dict[str, Any]:
    """The rows of the region tables, before and after calibration."""
    table = inputs.audit.table
    regions = finest(table, table.blocks[0])
    # single scores with few rows, for which no error was shown
    few = (table.low == table.high) & (table.counts < _FEW_ROWS) & (table.error == 0.0)
    rare = regions[few[regions]]
    listed = regions if rare.size < 2 else np.setdiff1d(regions, rare)
    shown = largest(table.error, listed, sizes.table_rows)
    parts: dict[str, Any] = {
        "before_rows": aligned_entries(audit_texts(rows_at(table, shown))),
        "before_total": regions.size,
        "before_left_out": listed.size - shown.size,
        "before_rare": "",
        "after": None,
    }
    if rare.size >= 2:
        parts["before_rare"] = (
            f"{rare.size:,} values with fewer than {_FEW_ROWS} rows each,"
            f" {counted(int(table.counts[rare].sum()), 'row')} together: no sign of error for any of"
            " them"
        )
    if is_guarantee(inputs.guarantee):
        parts["after"] = shown_tables(inputs.guarantee, sizes)[0]
    return parts


def _files(inputs: Inputs, most: int) -> dict[str, TableFile]:
    """The tables as CSV, by topic."""
    return {table.name: table_file(table, most) for table in inputs.audit.tables()}


def _segments(inputs: Inputs, sizes: MostShown, guaranteed: FloatArray | None) -> dict[str, Any]:
    """The content of the segments section.

    Time periods stay in order, and the last ones are drawn, over what a model `guaranteed`.
    """
    audit = inputs.audit
    period = inputs.period
    table = audit.table
    found = {finding.segment: finding for finding in audit.findings}
    order = {segment: place for place, segment in enumerate(found)}
    groups = [(table.segment[block.start], block) for block in table.blocks[1:]]
    if period is None:
        groups.sort(
            key=lambda group: (
                order.get(group[0], len(order)),
                -int(table.counts[group[1].start]),
            )
        )
    shown = groups[: sizes.segments] if period is None else groups[-sizes.segments :]
    start = 0 if period is None else max(len(shown) - sizes.small_figures, 0)
    drawn = [block for _, block in shown[start : start + sizes.small_figures]]
    first = np.array([block.start for _, block in shown])
    ends = limits_of(
        np.concatenate([table.lower[first], table.upper[first], table.mean_score[first]]).tolist()
    )
    return {
        # the index in the table of each whole segment, and its largest error shown
        "rows": [(block.start, found.get(segment)) for segment, block in shown],
        "total": len(groups),
        "n_found": sum(segment in found for segment, _ in groups),
        "axis": Axis(*ends, 4.0, _BAR - 4.0),
        "figures": _segment_figures(inputs, drawn, guaranteed),
        "first_figure": start,  # the row of the first segment drawn
        "has_guarantee": guaranteed is not None,
    }


def _segment_figures(
    inputs: Inputs, worst: list[slice], guaranteed: FloatArray | None
) -> tuple[Figure, ...]:
    table = inputs.audit.table
    drawn = [finest(table, block, _SMALL_REGIONS) for block in worst]
    limits = audit_limits(table, np.concatenate(drawn), inputs.scale)
    return tuple(
        audit_figure(
            f"segment-{number}",
            name_of(table.segment[chosen[0]]),
            inputs.audit,
            chosen,
            frame=SMALL,
            limits=limits,
            guaranteed=guaranteed,
            scale=inputs.scale,
        )
        for number, chosen in enumerate(drawn, start=1)
    )
