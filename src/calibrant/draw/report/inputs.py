"""The inputs of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol, cast

from calibrant.assess.audit.result import Audit
from calibrant.assess.validation.result import Validation
from calibrant.cells.tally import Tally
from calibrant.draw.report.scales import Thresholds
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.text.result import Result


class Guaranteed(Protocol):
    """A fitted calibrator or classifier with a guarantee."""

    @property
    def guarantee_(self) -> Guarantee | NoGuarantee:
        """What is proved, or why nothing is."""


@dataclass(frozen=True, slots=True)
class MostShown:
    """The maximum amount shown, so that the file stays small."""

    marks: int
    table_rows: int
    segments: int
    small_figures: int
    file_rows: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """The results that a report shows."""

    result: Result
    calibrator: Guaranteed | None = None
    _: KW_ONLY
    title: str | None = None
    source: Mapping[str, Any] | None = None
    options: Mapping[str, Any] | None = None
    command: str | None = None
    histogram: Tally | None = None
    audit_after: Audit | None = None
    validation: Validation | None = None
    period: str | None = None
    scale: str = "linear"
    thresholds: Thresholds = None
    warnings: Sequence[str] = ()

    @property
    def audit(self) -> Audit:
        """The result of a report of an audit."""
        return cast(Audit, self.result)

    @property
    def guarantee(self) -> Guarantee | NoGuarantee | None:
        """What the calibrator guarantees; None if there is no calibrator."""
        return None if self.calibrator is None else self.calibrator.guarantee_
