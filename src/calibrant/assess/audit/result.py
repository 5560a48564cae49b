"""The result of an audit, with bounds on the error."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from calibrant.assess.audit.findings import (
    NO_EVIDENCE,
    OVERCONFIDENT,
    UNDERCONFIDENT,
    AuditTable,
    Finding,
)
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.assess.subgroups.findings import TOO_HIGH, TOO_LOW, SubgroupFinding
from calibrant.assess.subgroups.result import REPAIR_SUBGROUPS, SubgroupAudit
from calibrant.guarantee.relative import RARE
from calibrant.sample.facts import RowFacts
from calibrant.text import numbers
from calibrant.text.picture import Drawn, Picture
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable, columns_by_name

_VACUOUS = 0.5
_ON_FINDINGS = "In each range, some score is off by at least that much."
CHECK_ROWS = NextStep(
    "Test whether the rows are i.i.d., which this assumes",
    "check(y, scores, time=time)",
    "check {rows} --time COLUMN",
)
_STYLES = {TOO_HIGH: 1, OVERCONFIDENT: 1, TOO_LOW: 3, UNDERCONFIDENT: 3}
"""Colours: one for scores that are too high, one for scores that are too low."""


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Bounds on the distance between a score and the rate E[Y | given].

    The condition "given" is the score alone, or the score and the segment.

    Attributes
    ----------
    lower_bound : float
        A lower bound on the largest calibration error, sup |E[Y | given] - score|; 0 if none was
        shown.
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
        """Whether an error larger than `tolerance` was shown."""
        return self.lower_bound > self.tolerance

    @property
    def verdict(self) -> Verdict:
        """Whether an error larger than `tolerance` was shown."""
        return "problem" if self.is_miscalibrated else "ok"

    def to_dict(self) -> dict[str, Any]:
        """The bounds as plain JSON values."""
        return {"is_miscalibrated": self.is_miscalibrated, "verdict": self.verdict, **asdict(self)}

    def shown(self, where: str = "") -> list[str]:
        """What was shown about the error, in words; `where` is a phrase such as " within segments"."""
        found = []
        if self.lower_bound > 0.0:
            least = numbers.points(numbers.lower(self.lower_bound))
            within = "" if self.is_miscalibrated else ", which is within the tolerance"
            found.append(f"some scores are off by at least {least}{where}{within}")
        if self.average_lower_bound > 0.0:
            least = numbers.points(numbers.lower(self.average_lower_bound))
            found.append(f"the average error{where} is at least {least}")
        if self.upper_bound is None:
            found.append(f"no upper bound on the error{where}: {self.upper_bound_reason}")
        elif self.upper_bound >= _VACUOUS:
            found.append(f"no useful upper bound{where}: some score was seen too rarely")
        elif self.unseen_mass is not None:
            most = numbers.points(numbers.upper(self.upper_bound))
            unseen = numbers.per_cent(numbers.upper(self.unseen_mass))
            found.append(
                f"no observed score is off by more than {most}{where}; at most {unseen} of the"
                " population have other scores"
            )
        return found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Audit(Result, Bounds):
    """What is known about a score's calibration, for every distribution, and what cannot be known.

    All statements hold together with probability at least `confidence_level` over the draw of the
    rows. The audit's own bounds are about E[Y | score] and never use the segments. The bounds in
    `within_segments` are about E[Y | score, segment]: a score can be calibrated and yet be off in
    every segment.

    Attributes
    ----------
    lower_bound : float
        The largest calibration error, sup |E[Y | score] - score|, is at least this; 0 if none was
        shown.
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
        The largest error shown for all rows and for each segment, if it is above `tolerance`;
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

    _also: ClassVar[tuple[str, ...]] = ("is_miscalibrated", "at_single_scores")

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
        """The subgroups that are shown to be miscalibrated.

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
        found = band.largest_error() or "no single score is shown to be off"
        return f"if the rate does not fall as the score rises ({alone}): {found}"

    @property
    def worst(self) -> Finding | None:
        """The largest error shown, of the score or of the score in a segment.

        None if none is above `tolerance`.
        """
        return self.findings[0] if self.findings else None

    @property
    def broadest(self) -> Finding | None:
        """The finding about all rows that matters most: rows times error is largest.

        It is one of the finest regions, which may be a single score that many rows share. None if
        `worst` matters as much. If rows have weights or groups, the error is about their
        population, but the rows that decide which finding matters most are counted without weights.
        """
        if self.worst is None:
            return None
        table = self.table
        finest = np.flatnonzero(table.is_finest[table.blocks[0]])
        found = table.finding(int(finest[np.argmax(table.counts[finest] * table.error[finest])]))
        matters = found.count * found.error > self.worst.count * self.worst.error
        return found if matters and found.error > self.tolerance else None

    @property
    def verdict(self) -> Verdict:
        """Whether an error larger than `tolerance` was shown, in any part of the audit."""
        found = self.by_attributes
        return "problem" if self.worst or (found is not None and found.is_any_off) else "ok"

    @property
    def sentence(self) -> str:
        """What was shown, how sure it is, and what is assumed."""
        # the number of groups, and an assumption, already say what a sentence would
        population = self.population.removeprefix(" of rows of new groups")
        about = f"; errors{population}" if population else ""
        basis = f"{numbers.rows(self.n_rows, self.n_groups)}, assumed independent{about}"
        subgroups = self.by_attributes
        sure = f"{numbers.percent(self.confidence_level)} confidence, {basis}"
        known = self.within_segments or self
        if self.worst is not None:
            return f"{self._off(self.worst)} ({sure})."
        if subgroups is not None and subgroups.is_any_off:
            return subgroups.sentence
        if known.upper_bound is not None and known.upper_bound < _VACUOUS:
            most = numbers.points(numbers.upper(known.upper_bound))
            return f"No observed score is off by more than {most} ({sure})."
        sign = "miscalibrated"
        if self.tolerance:
            sign = f"off by more than {numbers.points(f'{self.tolerance:g}')}"
        level = numbers.percent(1.0 - self.confidence_level)
        return (
            f"No sign that scores are {sign} (tested at the {level} level, {basis})."
            " This does not show that they are right."
        )

    def _off(self, worst: Finding) -> str:
        """By how much scores are off, at least: the worst, and on average."""
        where = "" if worst.segment is None else f" in {self.noun} {worst.segment!r}"
        parts = [f"by at least {numbers.points(numbers.lower(worst.error))} for some{where}"]
        if self.average_lower_bound > 0.0:
            average = numbers.points(numbers.lower(self.average_lower_bound))
            parts.append(f"the average error is at least {average}")
        start = (
            worst.direction if worst.is_of_both_ends else worst.direction.removeprefix("scores ")
        )
        return f"Scores are {start} {'; '.join(parts)}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Every subgroup that is off, if attributes were given."""
        return () if self.by_attributes is None else self.by_attributes.listing

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """Rows, and by how much scores are off at least and at most."""
        found = [
            Quantity("Audited", self.n_rows, unit="row"),
            Quantity("Confidence", self.confidence_level, unit="share"),
        ]
        parts: list[tuple[str, Bounds]] = [("", self)]
        if self.within_segments is not None:
            parts.append((f", within {self.noun}s", self.within_segments))
        for where, bounds in parts:
            least = bounds.lower_bound
            average = bounds.average_lower_bound
            found += [
                Quantity(f"Some off by at least{where}", least, low=least, unit="points"),
                Quantity(f"Average error, at least{where}", average, low=average, unit="points"),
            ]
            most = bounds.upper_bound
            if most is None or most < _VACUOUS:
                name = f"Off by at most at any observed score{where}"
                found.append(Quantity(name, most, high=most, unit="points"))
        return (*found, *(() if self.by_attributes is None else self.by_attributes.numbers[1:]))

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Calibrate, or look at subgroups, and test whether rows are i.i.d."""
        why = "Calibrate the scores" if self.worst else "Calibrate, to know how far off they can be"
        found = [NextStep(why, "Calibrator().fit(scores, y)", "fit {rows} -o model.json")]
        if self.by_attributes is not None and self.by_attributes.is_any_off:
            found.insert(0 if self.worst is None else 1, REPAIR_SUBGROUPS)
        if self.by_attributes is None:
            found.append(
                NextStep(
                    "Audit every subgroup",
                    'audit(y, scores, attributes={"sex": sex, "age": age})',
                    "audit {rows} --attribute COLUMN -o subgroups.html",
                )
            )
        return (*found, CHECK_ROWS)

    @property
    def notes(self) -> tuple[str, ...]:
        """What else was shown, and what cannot be known."""
        found = []
        broadest = self.broadest
        if broadest is not None:
            found.append(f"matters most (rows times error): {broadest}")
        answer = self.sentence
        found += [text for text in self.shown() if text.rpartition(" at least ")[2] not in answer]
        if self.within_segments is not None:
            found += self.within_segments.shown(f" within {self.noun}s")
        if self.at_single_scores is not None:
            found.append(self.at_single_scores)
        if self.by_attributes is not None:
            found += self.by_attributes.notes
        if self.n_set_aside:
            pilot = numbers.counted(self.n_set_aside, "pilot row")
            found.append(f"{pilot} only chose the regions, and are not counted")
        found += RowFacts(skipped=self.n_skipped).notes
        return tuple(found)

    def pictures(self) -> tuple[Picture, ...]:
        """The observed rate against the mean score, in the finest regions of all rows."""
        table = self.table
        finest = np.flatnonzero(table.is_finest[table.blocks[0]])
        verdicts = np.array(table.verdict)[finest]
        columns = (table.mean_score, table.rate, table.lower, table.upper)
        drawn = []
        for verdict in dict.fromkeys(verdicts.tolist()):
            rows = finest[verdicts == verdict]
            x, y, low, high = (column[rows].tolist() for column in columns)
            calm = verdict == NO_EVIDENCE
            drawn.append(Drawn(verdict, x, y, low, high, quiet=calm, style=_STYLES.get(verdict)))
        text = "Each mark is a score range. The limits hold for all of them together."
        labels = "mean score", "observed rate"
        return (Picture("Scores and observed rates", text, *labels, tuple(drawn), is_square=True),)

    def tables(self) -> tuple[ResultTable, ...]:
        """Every region, the findings, and the subgroups that are off."""
        names = [field.name for field in fields(Finding)]
        columns = columns_by_name(self.findings, [*names, "scores"])
        shown = ["scores", "count", "mean_score", "rate", "direction", "error"]
        if any(finding.segment is not None for finding in self.findings):
            shown.insert(0, "segment")
        if any(finding.rate < RARE for finding in self.findings):
            shown += ["relative_lower", "relative_upper"]
        heads = {
            "scores": "score range",
            "error": "by at least",
            "count": "rows",
            "segment": self.noun,
            "mean_score": "model says",
            "rate": "happened",
            "direction": "finding",
            "relative_lower": "rate / score",
        }
        units = {"mean_score": "share", "rate": "share", "error": "points"}
        off = () if self.by_attributes is None else self.by_attributes.tables()[1:2]
        return (
            ResultTable("regions", self.table.columns, shown=()),
            ResultTable("findings", columns, tuple(shown), heads, _ON_FINDINGS, units=units),
            *off,
        )

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain JSON values."""
        within = (
            None if self.within_segments is None else numbers.plain(self.within_segments.to_dict())
        )
        band = None if self.monotone is None else self.monotone.guarantee_.to_dict()
        return {**Result.to_dict(self), "within_segments": within, "monotone": band}
