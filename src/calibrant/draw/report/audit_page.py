"""The report of an audit: its statements, numbers and sections."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._typing import BoolArray, IndexArray
from calibrant.assess.audit.findings import AuditTable
from calibrant.assess.audit.result import Audit, Bounds
from calibrant.assess.subgroups.result import SubgroupAudit
from calibrant.assess.validation.result import Validation
from calibrant.draw.report import names
from calibrant.draw.report.audit_figures import (
    after_figure,
    before_figure,
    gap_figure,
    guaranteed_limits,
    largest,
)
from calibrant.draw.report.decimals import aligned_entries
from calibrant.draw.report.figures import audit_texts, guarantee_texts, rows_at
from calibrant.draw.report.headline import PROVED, Headline, headline
from calibrant.draw.report.in_short import in_short
from calibrant.draw.report.inputs import Inputs, MostShown
from calibrant.draw.report.made import made_section, next_section, to_copy
from calibrant.draw.report.page import Headed, KeyNumber, Made, Page, Section
from calibrant.draw.report.segment_rows import SegmentsShown, finest, segments_section
from calibrant.draw.report.shared_sections import shown_tables, subgroups_section
from calibrant.draw.report.table_file import TableFile, table_file
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.kinds import is_guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.text.numbers import counted, lower, percent, upper

_LONGEST_NAME = 400
_FEW_ROWS = 20  # single scores with fewer rows share one line of the table
_DEFAULT_TITLE = "Calibration report"
_NO_CALIBRATOR = "No calibrator was given, so this report is about the uncalibrated scores."


def audit_page(inputs: Inputs, made: Made, sizes: MostShown) -> Page:
    """The page of an audit, alongside the guarantee of a calibrator."""
    audit = inputs.audit
    guarantee = inputs.guarantee
    title = names.name_of(inputs.title or _DEFAULT_TITLE, 160)
    statements = [_audit_statement(audit)]
    statements.append(_guarantee_statement(guarantee))
    plainly = [in_short(audit)]
    copied = [to_copy(audit)]
    if audit.by_attributes is not None:
        copied.append(audit.by_attributes.sentence)
    if guarantee is not None:
        plainly.append(in_short(guarantee))
        copied.append(to_copy(guarantee))
    return Page(
        title=title,
        eyebrow=_DEFAULT_TITLE if inputs.title else None,
        statements=tuple(statements),
        to_copy=(*filter(None, plainly), " ".join(copied)),
        numbers=tuple(_numbers(audit, guarantee)),
        sections=tuple(_sections(inputs, made, sizes)),
        warnings=tuple(inputs.warnings),
    )


def _audit_statement(audit: Audit) -> Headed:
    details = []
    verdict = audit.sentence
    if audit.subgroups:
        short = in_short(audit)
        if short is not None:
            verdict = short
            details.append(audit.sentence)
    if audit.worst:
        details.append(audit.worst.text(audit.noun))
    broadest = audit.broadest_text()
    if broadest:
        details.append(broadest)
    details.extend(finding.text for finding in audit.subgroups[:1])
    return Headed(*headline(audit), verdict, tuple(details))


def _guarantee_statement(guarantee: Guarantee | NoGuarantee | None) -> Headed:
    if guarantee is None:
        return Headed("open", "Audit only", _NO_CALIBRATOR, is_main=False)
    stands = headline(guarantee)
    if stands is PROVED:
        stands = Headline("guaranteed", "After calibration")
    return Headed(*stands, guarantee.sentence, (guarantee.explanation,), is_main=False)


def _numbers(audit: Audit, guarantee: Guarantee | NoGuarantee | None) -> Iterator[KeyNumber]:
    """The key numbers; limits are rounded so that they stay true."""
    yield KeyNumber("Rows", f"{audit.n_rows:,}", "audited")
    subgroups = audit.by_attributes
    held = "in all statements of the audit simultaneously"
    if subgroups is not None:
        held = "in all statements about scores; on its own, in each of the two about subgroups"
    yield KeyNumber("Confidence", percent(audit.confidence_level), held)
    if subgroups is None:
        yield from _bounds(audit, "somewhere", "on average", "at any observed score")
    else:
        yield from _subgroup_numbers(subgroups)
        yield from _bounds(
            audit,
            "at some score, over all rows",
            "on average, over all rows",
            "at any observed score, over all rows",
        )
    if audit.within_segments:
        noun = audit.noun
        yield from _bounds(
            audit.within_segments,
            f"within a {noun}",
            f"on average, within {noun}s",
            f"at any observed score in a {noun}",
        )
    if guarantee is None:
        return
    if not is_guarantee(guarantee):
        yield KeyNumber("Within", "no bound", "after calibration: no guarantee")
        return
    stated = guarantee.stated
    share = ""
    if not stated.kept.all():
        share = f", for at least {percent(stated.mass)} of the population"
    confidence = percent(guarantee.confidence_level)
    proved = "" if guarantee.is_proved else ", not proved"
    note = f"after calibration{share}, {confidence} confidence{proved}"
    yield KeyNumber("Within", upper(stated.epsilon), note, stated.epsilon)


def _subgroup_numbers(found: SubgroupAudit) -> Iterator[KeyNumber]:
    """How many subgroups are off, the proved error of the first, and the largest possible error."""
    proved = f"{found.n_off:,}"
    if found.is_any_off and not found.findings:
        proved = "some"
    among = f"of {found.n_subgroups:,}"
    yield KeyNumber("Subgroups shown to be miscalibrated", proved, among)
    first = next((finding for finding in found.findings if finding.tested_rows), None)
    if first is not None:
        where = f"on average in {names.name_of(first.subgroup)}, rows tested"
        if found.target == "population":
            where = f"on average in {names.name_of(first.subgroup)}"
        yield KeyNumber("Off by at least", lower(first.error), where, first.error)
    bound = found.upper_bound
    yield KeyNumber("Off by at most", upper(bound), "on average in any subgroup", bound)


def _bounds(of: Bounds, somewhere: str, on_average: str, at_most: str) -> Iterator[KeyNumber]:
    yield KeyNumber("Off by at least", lower(of.lower_bound), somewhere, of.lower_bound)
    average = of.average_lower_bound
    yield KeyNumber("Off by at least", lower(average), on_average, average)
    if of.upper_bound is None:
        yield KeyNumber("Off by at most", "no bound", "none exists for a continuous score")
    elif of.has_useful_upper_bound:
        yield KeyNumber("Off by at most", upper(of.upper_bound), at_most, of.upper_bound)


def _sections(inputs: Inputs, made: Made, sizes: MostShown) -> Iterator[Section]:
    audit = inputs.audit
    common = _common(inputs)
    files = _files(inputs, sizes.file_rows)
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
        yield subgroups_section(audit.by_attributes, sizes)
    segments = _segments(inputs, sizes)
    if segments is not None:
        noun = inputs.period or "segment"
        title = f"By {noun}" if inputs.period else "Segments, largest error first"
        content = {"audit": audit, "segments": segments, "period": inputs.period, "noun": noun}
        yield Section("segments-title", title, "segments", content | {"files": files})
    if inputs.validation is not None:
        yield _validation_section(inputs.validation, inputs.audit, sizes)
    yield Section("knowledge-title", "What can be said", "known", common)
    yield next_section(audit, made)
    yield Section("computed-title", "How it was computed", "computed", common)
    yield made_section(audit, made)
    yield Section("glossary-title", "Glossary", "words")


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
        "calibrator": names.name_of(" ".join(repr(inputs.calibrator).split()), _LONGEST_NAME),
        "fingerprint": getattr(getattr(inputs.calibrator, "partition_", None), "fingerprint", None),
    }


def _region_tables(inputs: Inputs, sizes: MostShown) -> dict[str, Any]:
    """The rows of the region tables, before and after calibration."""
    table = inputs.audit.table
    regions = finest(table, table.blocks[0])
    rare = regions[_is_rare_value(table)[regions]]
    listed = regions if rare.size < 2 else np.setdiff1d(regions, rare)
    shown = largest(table.error, listed, sizes.table_rows)
    parts: dict[str, Any] = {
        "before_rows": aligned_entries(audit_texts(rows_at(table, shown))),
        "before_total": regions.size,
        "before_left_out": listed.size - shown.size,
        "before_rare": "" if rare.size < 2 else _on_rare_values(table, rare),
        "after_rows": [],
        "after_total": 0,
    }
    guarantee = inputs.guarantee
    if is_guarantee(guarantee):
        every = np.arange(guarantee.counts.size)
        shown = largest(guarantee.radius, every, sizes.table_rows)
        parts["after_rows"] = aligned_entries(guarantee_texts(guarantee, shown))
        parts["after_total"] = every.size
    return parts


def _is_rare_value(table: AuditTable) -> BoolArray:
    """Whether a region is a single score with few rows, and nothing is proved about it."""
    is_value = table.low == table.high
    return np.asarray(is_value & (table.counts < _FEW_ROWS) & (table.error == 0.0))


def _on_rare_values(table: AuditTable, rare: IndexArray) -> str:
    """One line in place of many rows of the table."""
    return (
        f"{rare.size:,} values with fewer than {_FEW_ROWS} rows each,"
        f" {counted(int(table.counts[rare].sum()), 'row')} together: no evidence for any one of them"
    )


def _files(inputs: Inputs, most: int) -> dict[str, TableFile]:
    """The tables as CSV, by topic."""
    found = {table.name: table_file(table, most) for table in inputs.audit.tables()}
    guarantee = inputs.guarantee
    if is_guarantee(guarantee):
        regions = guarantee.tables()[0]
        found["guarantee"] = table_file(replace(regions, name="guarantee"), most)
    return found


def _segments(inputs: Inputs, sizes: MostShown) -> SegmentsShown | None:
    return segments_section(
        inputs.audit,
        most_rows=sizes.segments,
        most_figures=sizes.small_figures,
        period=inputs.period,
        guaranteed=guaranteed_limits(inputs),
        scale=inputs.scale,
        thresholds=inputs.thresholds,
    )
