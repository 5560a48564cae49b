"""The status word next to a result's sentence.

It never says more than the sentence: "Proved" appears only next to what is proved.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from calibrant.text.result import Result


class Headline(NamedTuple):
    """The status of a result: "right", "wrong" or "open", and the word for it."""

    kind: str
    tag: str


_OPEN = Headline("open", "Result")
PROVED = Headline("right", "Proved")
_CANNOT_TELL = Headline("open", "The data cannot tell")
_NO_EVIDENCE = Headline("open", "No evidence")
_MISCALIBRATED = Headline("wrong", "Proved miscalibrated")
_NO_GUARANTEE = Headline("open", "No guarantee")
_NOT_PROVED = Headline("open", "Not proved")


def headline(found: Result) -> Headline:
    """The status of a result; open for a class that is not listed here."""
    for kind in type(found).__mro__:
        if kind.__name__ in _HEADLINES:
            return _HEADLINES[kind.__name__](found)
    return _OPEN


def _of_guarantee(found: Any) -> Headline:
    if found.epsilon is None:
        return _NO_GUARANTEE
    if not found.is_proved:
        return _NOT_PROVED
    if getattr(found, "is_vacuous", False):
        return Headline("open", "Too few rows")
    return PROVED


def _of_audit(found: Any) -> Headline:
    subgroups = found.by_attributes
    if found.is_miscalibrated:
        return _MISCALIBRATED
    if found.worst:
        return Headline("wrong", f"Proved miscalibrated in a {found.noun}")
    if subgroups is not None and subgroups.is_any_off:
        return _of_subgroups(subgroups)
    if (found.within_segments or found).is_nearly_calibrated:
        return Headline("right", "Proved nearly right")
    return _NO_EVIDENCE


def _of_threshold(found: Any) -> Headline:
    n_proved = sum(cut.threshold is not None for cut in found.cuts)
    if n_proved == len(found.cuts):
        return PROVED
    return Headline("open", "Not all proved") if n_proved else _NOT_PROVED


def _of_decisions(found: Any) -> Headline:
    if not found.is_proved:
        return _NOT_PROVED
    counts = found.counts
    total = sum(counts.values())
    if not total:
        return Headline("open", "No rows")
    if not counts["cannot tell"]:
        return PROVED
    if counts["cannot tell"] == total:
        return _CANNOT_TELL
    return Headline("open", "Proved for some rows")


def _of_models(found: Any) -> Headline:
    if found.best is not None:
        return PROVED
    if any(one.better is not None and one.is_proved for one in found.differences):
        return Headline("open", "Proved in part")
    return _CANNOT_TELL


def _of_rate(found: Any) -> Headline:
    if found.draw is not None and found.draw.refuted:
        return Headline("wrong", "Not a random draw")
    if found.is_doubtful:
        return Headline("wrong", "Limits that may not hold")
    return Headline("right", "Estimate with proved limits")


def _of_rows(found: Any) -> Headline:
    return Headline("wrong", "Proved not i.i.d.") if found.alarm else _NO_EVIDENCE


def _of_monitor(found: Any) -> Headline:
    return Headline("wrong", "Alarm") if found.alarm else Headline("open", "No alarm")


def _of_subgroups(found: Any) -> Headline:
    if not found.is_any_off:
        return _NO_EVIDENCE
    if found.whole_is_off():
        return _MISCALIBRATED
    return Headline("wrong", "Proved miscalibrated in a subgroup")


def _of_validation(found: Any) -> Headline:
    return _of_audit(found.audit)


def _of_band(found: Any) -> Headline:
    return Headline("wrong", "Refuted") if found.is_refuted else PROVED


def _of_conformal(found: Any) -> Headline:
    return PROVED if found.is_proved else _NOT_PROVED


def _always(tag: str) -> Callable[[Any], Headline]:
    return lambda found: Headline("open", tag)


_HEADLINES: dict[str, Callable[[Any], Headline]] = {
    "Audit": _of_audit,
    "BandGuarantee": _of_band,
    "ClassWiseGuarantee": _of_guarantee,
    "ConformalGuarantee": _of_conformal,
    "Decisions": _of_decisions,
    "Differences": _of_models,
    "Estimate": _always("Estimate"),
    "Exchangeability": _of_rows,
    "ExpectedPerformance": _always("Expected"),
    "Guarantee": _of_guarantee,
    "GroupSign": _always("Sign of groups"),
    "MonitorResult": _of_monitor,
    "MonitorSnapshot": _of_monitor,
    "NoGuarantee": _of_guarantee,
    "Plan": _always("Plan"),
    "Rate": _of_rate,
    "RatePlan": _always("Plan"),
    "SubgroupAudit": _of_subgroups,
    "Threshold": _of_threshold,
    "Validation": _of_validation,
}
