"""The result of an audit, with bounds on the error."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from calibrant.assess.audit.findings import NO_EVIDENCE, AuditTable, Finding
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.assess.subgroups.findings import SubgroupFinding
from calibrant.assess.subgroups.result import SubgroupAudit
from calibrant.guarantee.relative import RARE
from calibrant.sample.facts import RowFacts
from calibrant.text import numbers
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import sentence

_VACUOUS = 0.5


_ON_FINDINGS = "In each range, some score is off by at least that much."


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """What is proved about the distance between a score and the rate E[Y | given].

    The condition "given" is the score alone, or the score and the segment.

    Attributes
    ----------
    lower_bound : float
        A lower bound on the largest calibration error, sup |E[Y | given] - score|; 0 if nothing is
        proved.
    average_lower_bound : float
        A lower bound on the average calibration error, E |E[Y | given] - score|.
    upper_bound : float or None
        An upper bound on the error of every score value seen; None if no such bound exists.
    upper_bound_reason : str or None
        Why there is no upper bound.
    unseen_mass : float or None
        If there is an upper bound: an upper limit on the population share of unseen values.
    tolerance : float
        Errors up to this size do not count as miscalibration.
    """

    lower_bound: float
    average_lower_bound: float
    upper_bound: float | None
    upper_bound_reason: str | None
    unseen_mass: float | None
    tolerance: float = field(default=0.0, kw_only=True)

    @property
    def is_miscalibrated(self) -> bool:
        """Whether an error larger than `tolerance` is proved."""
        return self.lower_bound > self.tolerance

    @property
    def has_useful_upper_bound(self) -> bool:
        """Whether there is an upper bound on the error, and it is low enough to say something."""
        return self.upper_bound is not None and self.upper_bound < _VACUOUS

    @property
    def is_nearly_calibrated(self) -> bool:
        """Whether no error above `tolerance` is proved, and an upper bound on the error is low
        enough to be useful.
        """
        return not self.is_miscalibrated and self.has_useful_upper_bound

    @property
    def verdict(self) -> str:
        """One of three results: proved wrong, proved nearly right, or neither."""
        return self._verdict()

    def _verdict(self) -> str:
        least = f"by at least {numbers.lower(self.lower_bound)}"
        if self.is_miscalibrated:
            if self.tolerance:
                return f"proved miscalibrated by more than {self.tolerance:g} ({least})"
            return f"proved miscalibrated {least}"
        if self.is_nearly_calibrated and self.upper_bound is not None:
            return f"proved within {numbers.upper(self.upper_bound)} (finitely many scores)"
        if self.tolerance:
            return f"not proved to be off by more than {self.tolerance:g}"
        return NO_EVIDENCE

    def to_dict(self) -> dict[str, Any]:
        """The bounds as plain JSON values."""
        return {"is_miscalibrated": self.is_miscalibrated, "verdict": self.verdict, **asdict(self)}

    def proved(self, who: str = "", value: str = "score value") -> list[str]:
        """What is proved, in words: by how much `who`, such as " the scores are", is off, and the
        upper bound for a `value`.
        """
        found = []
        if self.lower_bound > 0.0:
            within = "" if self.is_miscalibrated else ", which is within the tolerance"
            found.append(
                f"somewhere{who} off by at least {numbers.lower(self.lower_bound)}{within}"
            )
        if self.average_lower_bound > 0.0:
            found.append(
                f"on average{who} off by at least {numbers.lower(self.average_lower_bound)}"
            )
        if self.upper_bound is not None and self.unseen_mass is not None:
            unseen = (
                f"unseen values make up at most {numbers.upper(self.unseen_mass)} of the population"
            )
            found.append(
                f"no observed {value} is off by more than {numbers.upper(self.upper_bound)}; {unseen}"
            )
        return found

    def _lines(self, where: str, value: str) -> list[str]:
        """What the verdict does not say, in words."""
        known = self.proved(where, value)[int(self.is_miscalibrated) :]
        if self.upper_bound is None:
            return [*known, f"no upper bound{where}: {self.upper_bound_reason}"]
        if self.has_useful_upper_bound:
            return known
        rare = f"some {value} was seen too rarely"
        return [*known[:-1], f"no useful upper bound{where}: {rare}"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Audit(Result, Bounds):
    """What is proved about a score's calibration, for every distribution, and what cannot be known.

    All statements hold together with probability at least `confidence_level` over the draw of the
    rows. The audit's own bounds are about E[Y | score] and never use the segments. The bounds in
    `within_segments` are about E[Y | score, segment]: a score can be calibrated and yet be off in
    every segment.

    Attributes
    ----------
    lower_bound : float
        The largest calibration error, sup |E[Y | score] - score|, is at least this; 0 if nothing is
        proved.
    average_lower_bound : float
        The average calibration error, E |E[Y | score] - score|, is at least this.
    upper_bound : float or None
        No score value that was seen is off by more than this; None if no such bound exists.
    upper_bound_reason : str or None
        Why there is no upper bound.
    unseen_mass : float or None
        If there is an upper bound: score values that were not seen have at most this share of the
        population.
    tolerance : float
        Errors up to this size do not count as miscalibration.
    within_segments : Bounds or None
        The same bounds for E[Y | score, segment] in place of E[Y | score]; None for an audit
        without segments. For these bounds, a value is a score in a segment.
    table : AuditTable
        The count, mean score, observed rate, interval and verdict of every region.
    findings : tuple of Finding
        The largest proved error for all rows and for each segment, if it is above `tolerance`;
        largest first.
    confidence_level : float
        1 - alpha.
    n_rows : int
        Number of audited rows.
    assumptions : tuple of str
        What must be true for these statements to hold.
    n_skipped : int
        Rows that were skipped because their label is missing.
    monotone : MonotoneBand or None
        Limits on the rate at every single score, if the rate does not decrease as the score
        increases; None unless requested. They hold at `confidence_level` on their own, not jointly
        with the rest.
    noun : str
        What a segment is called, such as "month".
    n_groups : int
        Number of groups; 0 if rows are not grouped.
    n_set_aside : int
        Number of further rows, drawn at random, that were only used to cut the regions; 0 unless
        rows have weights or groups.
    population : str
        The population that the errors are about, if rows have weights or groups, such as " of rows
        of new groups".
    by_attributes : SubgroupAudit or None
        The audit of subgroups; None unless attributes were given. It holds at `confidence_level` on
        its own.
    """

    _also: ClassVar[tuple[str, ...]] = ("verdict", "is_miscalibrated", "at_single_scores")

    within_segments: Bounds | None
    table: AuditTable
    findings: tuple[Finding, ...]
    confidence_level: float
    n_rows: int
    assumptions: tuple[str, ...] = field()
    n_skipped: int = 0
    monotone: MonotoneBand | None = None
    noun: str = "segment"
    n_groups: int = 0
    n_set_aside: int = 0
    population: str = ""
    by_attributes: SubgroupAudit | None = None

    @property
    def subgroups(self) -> tuple[SubgroupFinding, ...]:
        """The subgroups that are proved wrong.

        Empty if there are none, or if no attributes were given.
        """
        return () if self.by_attributes is None else self.by_attributes.findings

    @property
    def subgroups_upper_bound(self) -> float | None:
        """No subgroup is off by more than this, with `confidence_level` on its own.

        None without attributes.
        """
        return None if self.by_attributes is None else self.by_attributes.upper_bound

    @property
    def basis(self) -> str:
        """The number of rows that were audited, and of groups."""
        aside = (
            f" (and {numbers.counted(self.n_set_aside, 'pilot row')} used only to choose regions)"
            if self.n_set_aside
            else ""
        )
        return f"{numbers.rows(self.n_rows, self.n_groups)}{aside}"

    @property
    def is_rare(self) -> bool:
        """Whether fewer than 5% of all rows are positive, so that relative limits are more
        informative than distances.
        """
        return float(self.table.rate[0]) < RARE

    @property
    def by_segment(self) -> bool:
        """Whether calibration within segments, E[Y | score, segment], was audited too."""
        return self.within_segments is not None

    @property
    def at_single_scores(self) -> str | None:
        """What `monotone` says about single scores, in words."""
        band = self.monotone
        if band is None:
            return None
        alone = f"a separate statement, with {numbers.percent(band.confidence_level)} confidence"
        if band.refutation_ is not None:
            return f"the rate falls somewhere as the score rises ({alone}): {band.refutation_}"
        found = band.largest_error() or "no single score is proved to be off"
        return f"if the rate does not fall as the score rises ({alone}): {found}"

    @property
    def worst(self) -> Finding | None:
        """The largest proved error, of the score or of the score in a segment.

        None if none is above `tolerance`.
        """
        return self.findings[0] if self.findings else None

    @property
    def broadest(self) -> Finding | None:
        """The finding about all rows that matters most: rows times proved error is largest.

        It is one of the finest regions, which may be a single score that many rows share. None if
        `worst` matters as much. If rows have weights or groups, the error is about their
        population, but the rows that decide which finding matters most are counted without weights.
        """
        if self.worst is None:
            return None
        table = self.table
        finest = np.arange(table.counts.size)[table.blocks[0]][table.is_finest[table.blocks[0]]]
        found = table.finding(int(finest[np.argmax(table.counts[finest] * table.error[finest])]))
        matters = found.count * found.error > self.worst.count * self.worst.error
        return found if matters and found.error > self.tolerance else None

    def broadest_text(self) -> str | None:
        """The finding `broadest` in words; None if there is none."""
        broadest = self.broadest
        if broadest is None:
            return None
        return broadest.in_region(self.n_rows, of_population=bool(self.population))

    @property
    def verdict(self) -> str:
        """Proved wrong, proved nearly right, or neither: for the score, and then within segments."""
        verdict = self._verdict()
        within = self.within_segments
        if within is None or verdict == within.verdict == NO_EVIDENCE:
            return verdict
        parts = [
            f"{NO_EVIDENCE} of miscalibration{where}" if text == NO_EVIDENCE else text
            for text, where in ((verdict, " overall"), (within.verdict, ""))
        ]
        return f"{parts[0]}; within {self.noun}s, {parts[1]}"

    @property
    def sentence(self) -> str:
        """The verdict and what it rests on.

        If nothing is proved from ranges of scores, it says so, and says whether the audit of
        subgroups proves that scores are off.
        """
        basis = f"with {numbers.percent(self.confidence_level)} confidence, from {self.basis}"
        verdict = (
            f"{NO_EVIDENCE} of miscalibration" if self.verdict == NO_EVIDENCE else self.verdict
        )
        if any(
            part.is_miscalibrated or part.is_nearly_calibrated
            for part in (self, self.within_segments or self)
        ):
            return sentence(f"{verdict}, {basis}")
        if self.by_attributes is not None and self.by_attributes.is_any_off:
            return sentence(f"{verdict} {self.by_attributes.contrast()}, {basis}")
        aim = f"within {self.tolerance:g}" if self.tolerance else "calibrated"
        level = numbers.percent(round(1.0 - self.confidence_level, 12))
        basis = f"tested at the {level} level on {self.basis}"
        return sentence(f"{verdict}, {basis}; this does not prove that the scores are {aim}")

    @property
    def notes(self) -> tuple[str, ...]:
        """What else is proved, and what cannot be known."""
        found = [f"this is about the error{self.population}"] if self.population else []
        broadest = self.broadest_text()
        if broadest is not None:
            found.append(f"matters most (rows times error): {broadest}")
        found += self._lines("", "score value")
        if self.within_segments is not None:
            found += self.within_segments._lines(
                f" within {self.noun}s", f"score value of a {self.noun}"
            )
        if self.at_single_scores is not None:
            found.append(self.at_single_scores)
        if self.by_attributes is not None:
            found += [self.by_attributes.sentence, *self.by_attributes.notes]
        found += RowFacts(skipped=self.n_skipped).notes
        return tuple(found)

    def tables(self) -> tuple[ResultTable, ...]:
        """Every region, and the findings."""
        heads = {
            "error": "off by at least",
            "count": "rows",
            "segment": self.noun,
            "direction": "finding",
            "relative_lower": "rate / score",
        }
        names = [field.name for field in fields(Finding)]
        findings = {name: [getattr(finding, name) for finding in self.findings] for name in names}
        by_segment = any(finding.segment is not None for finding in self.findings)
        hidden = () if by_segment else ("segment",)
        if not any(finding.rate < RARE for finding in self.findings):
            hidden = (*hidden, "relative_lower", "relative_upper")
        shown = tuple(name for name in names if name not in hidden)
        return (
            ResultTable("regions", self.table.columns, shown=()),
            ResultTable("findings", findings, shown, heads, _ON_FINDINGS),
        )

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain JSON values."""
        within = (
            None if self.within_segments is None else numbers.plain(self.within_segments.to_dict())
        )
        band = None if self.monotone is None else self.monotone.guarantee_.to_dict()
        return {**Result.to_dict(self), "within_segments": within, "monotone": band}
