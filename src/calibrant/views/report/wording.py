"""The sentences of the report. Numbers are written by `calibrant._numbers`, which rounds limits outwards."""

from dataclasses import dataclass

from calibrant._audit import Audit
from calibrant._audit.report import TOO_HIGH, TOO_LOW
from calibrant._numbers import percent, upper
from calibrant._text import sentence
from calibrant.guarantee import Guarantee, NoGuarantee, PartialGuarantee
from calibrant.guarantee.statement import Claim

_LONGEST_NAME = 60

FINDINGS = {TOO_HIGH: ("high", "too high"), TOO_LOW: ("low", "too low")}
"""Kind of mark, and words, for the directions of proved errors."""

NO_FINDING = ("none", "no evidence")

AUDIT_METHOD = (
    "Scores are cut into regions of about equal size, at several resolutions, by their order alone. Each region has "
    "binomial limits that hold although rates differ from row to row (Hoeffding 1956); at a single score value they "
    "are those of Clopper and Pearson (1934). All regions share one error budget: Šidák's within a resolution, equal "
    "parts over resolutions and segments. Averaging over a region can only reduce calibration error, so an error that "
    "is proved for a region is proved for the score. Chernoff's bound extends the average from these rows to the "
    "population."
)
UNSEEN_METHOD = "The share of score values that were never seen is bounded after McAllester and Ortiz (2003)."


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known, in kind, in two words, and in sentences."""

    kind: str
    label: str
    text: str


def name_of(value: object, longest: int = _LONGEST_NAME) -> str:
    """A name, cut where it is very long."""
    text = str(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def region_name(text: str, longest: int = _LONGEST_NAME) -> str:
    """A region's name, cut in the middle where it is very long: it begins with a segment and ends with scores."""
    return text if len(text) <= longest else f"{text[: longest // 2 - 1]}…{text[-(longest // 2) :]}"


def headline(audit: Audit) -> Verdict:
    """The verdict: on the score, and where that says nothing, on the score within segments."""
    if audit.worst is not None:
        return Verdict("wrong", "Proved miscalibrated", audit.sentence())
    if (audit.within_segments or audit).is_nearly_calibrated:
        return Verdict("right", "Proved nearly right", audit.sentence())
    return Verdict("open", "No evidence", audit.sentence())


def promise(guarantee: Guarantee | NoGuarantee | None) -> Verdict:
    """What the calibrator guarantees, in its own sentence."""
    if guarantee is None:
        return Verdict("none", "Audit only", "No calibrator was given. This report is about the scores as they are.")
    text = guarantee.sentence()
    if isinstance(guarantee, NoGuarantee):
        return Verdict("open", "No guarantee", text)
    if not guarantee.is_proved:
        return Verdict("open", "Not proved", text)
    return Verdict("open" if guarantee.is_vacuous else "right", "After calibration", text)


def share_of(stated: PartialGuarantee) -> str:
    """Which share of the population a guarantee is about, where it is not all."""
    return "" if stated.kept.all() else f", for at least {percent(stated.mass)} of the population"


def proved(audit: Audit, guarantee: Guarantee | NoGuarantee | None, after: Audit | None) -> list[str]:
    """What follows from the data and the assumptions."""
    above = f" above {audit.tolerance:g}" if audit.tolerance else ""
    stated = [f"These rows prove no error{above} of the scores."] if audit.worst is None else []
    stated += map(sentence, audit.proved(" the scores are"))
    if audit.within_segments is not None:
        who, value = f" within {audit.noun}s the scores are", f"score value of a {audit.noun}"
        stated += map(sentence, audit.within_segments.proved(who, value))
    stated.append(f"All bands of the audit hold at once, with {percent(audit.confidence_level)} confidence.")
    if isinstance(guarantee, Guarantee) and guarantee.is_proved:
        stated.append(_guaranteed(guarantee))
    if after is not None:
        stated.append(f"Of the calibrated scores, on other rows: {after.sentence()}")
    return stated


def _guaranteed(guarantee: Guarantee) -> str:
    stated, everywhere = guarantee.stated, guarantee.stated.kept.all()
    where = "all regions" if everywhere else f"{int(stated.kept.sum()):,} of {stated.kept.size:,} regions"
    rest = "" if everywhere else f" Over all regions the bound is {upper(guarantee.epsilon)}."
    average = "average " if guarantee.statement.claim is Claim.AVERAGE else ""
    return (
        f"After calibration the true rate is within {upper(stated.epsilon)} of the {average}predicted probability in "
        f"{where} at once{share_of(stated)}, with {percent(guarantee.confidence_level)} confidence.{rest}"
    )


def assumed(audit: Audit, guarantee: Guarantee | NoGuarantee | None) -> list[tuple[str, list[str]]]:
    """What must be true for all this to hold: for the audit, and for the guarantee."""
    stated = [("For the audit", [sentence(text) for text in audit.assumptions])]
    if isinstance(guarantee, Guarantee):
        ours = [sentence(text) for text in guarantee.assumptions]
        if guarantee.caveat is not None:
            ours.append(sentence(f"this guarantee is not proved: {guarantee.caveat}"))
            ours.append(sentence(f"its numbers hold if {guarantee.supposition}"))
        stated.append(("For the guarantee", ours))
    return stated


def unknowable(audit: Audit) -> list[str]:
    """What no method can find out from such data."""
    bounds, stated = audit.within_segments or audit, []
    if bounds.upper_bound is None:
        stated.append(sentence(f"how far the scores are off at most: {bounds.upper_bound_reason}"))
    else:
        stated.append("How far score values that were never seen are off.")
    return [
        *stated,
        "Without assumptions, no method can bound the error of a continuous score at every value, however many rows "
        "there are: between the scores that were seen, labels could be anything.",
        "The probability of a single case, beyond the average of its region.",
        "Anything about a population that has changed since these rows were drawn.",
    ]
