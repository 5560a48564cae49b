"""What goes into a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Protocol, cast

from calibrant.assess.audit.result import Audit
from calibrant.assess.validation.result import Validation
from calibrant.cells.tally import Tally
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.text.picture import Picture
from calibrant.text.result import Result, Verdict


class Guaranteed(Protocol):
    """A fitted calibrator or classifier with a guarantee."""

    @property
    def guarantee_(self) -> Guarantee | NoGuarantee:
        """What is guaranteed, or why nothing is."""


@dataclass(frozen=True, slots=True)
class MostShown:
    """The maximum amount shown, so that the file stays small."""

    marks: int
    table_rows: int
    segments: int
    small_figures: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """The results that a report shows."""

    result: Result
    calibrator: Guaranteed | None = None
    _: KW_ONLY
    title: str | None = None
    source: Mapping[str, Any] | None = None
    command: str | None = None
    histogram: Tally | None = None
    audit_after: Audit | None = None
    validation: Validation | None = None
    period: str | None = None
    scale: str = "linear"
    warnings: Sequence[str] = ()

    @property
    def audit(self) -> Audit:
        """The result of a report of an audit."""
        return cast(Audit, self.result)

    @property
    def fitted(self) -> Any:
        """The calibrator of scores: the given one, or that of a CalibratedClassifier."""
        return getattr(self.calibrator, "calibrator_", self.calibrator)

    @property
    def guarantee(self) -> Guarantee | NoGuarantee | None:
        """What the calibrator guarantees; None if there is no calibrator."""
        return None if self.calibrator is None else self.calibrator.guarantee_


VERDICTS: dict[Verdict | None, tuple[str, str]] = {
    "ok": ("right", "OK"),
    "problem": ("wrong", "Problem"),
    "unclear": ("open", "Unclear"),
    None: ("open", "Result"),
}
"""The sign, and the word, for each verdict."""


class Section(NamedTuple):
    """A section: its anchor, its title, the template of its body, and what that template shows."""

    identifier: str
    title: str
    template: str
    content: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Extras:
    """What a command knows in addition to its result: more to draw, more to say, and how to write
    next steps.
    """

    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()
    places: Mapping[str, str] | None = None
    """What commands of next steps are about, by placeholder; None means Python calls."""
