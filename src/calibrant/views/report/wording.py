"""The sentences of the report. Numbers are written by `calibrant._numbers`, which rounds limits outwards."""

from dataclasses import dataclass

from calibrant._audit import Audit, Finding
from calibrant._audit.report import TOO_HIGH, TOO_LOW
from calibrant._numbers import lower, nearest, percent, rows, upper
from calibrant._text import sentence
from calibrant.guarantee import Guarantee, NoGuarantee, PartialGuarantee
from calibrant.guarantee.statement import Claim as Promise

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
class Claim:
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


def headline(audit: Audit) -> Claim:
    """The verdict: on the score, and where that says nothing, on the score within segments."""
    confidence = f"({percent(audit.confidence_level)}\u00a0confidence)"
    within = audit.within_segments
    if audit.worst is not None:
        whose = (
            "These scores" if within is None or audit.is_miscalibrated else f"Within their {audit.noun}s, these scores"
        )
        error = audit.lower_bound if audit.is_miscalibrated else audit.worst.error
        text = f"{whose} are proved miscalibrated: somewhere they are off by at least {lower(error)} {confidence}."
        if within is not None and not audit.is_miscalibrated:
            text += f" Over all {audit.noun}s together, {_no_error(audit)}."
        elif within is not None and within.lower_bound > audit.lower_bound:
            text += f" Within a {audit.noun} they are off by at least {lower(within.lower_bound)}."
        return Claim("wrong", "Proved miscalibrated", text)
    bounds = within or audit
    if bounds.is_nearly_calibrated:
        off = f"no {_value(audit)} that was seen is off by more than {upper(bounds.upper_bound or 0.0)}"
        return Claim("right", "Proved nearly right", f"These scores are proved nearly right: {off} {confidence}.")
    nothing = f"There is no evidence that these scores are miscalibrated {confidence}."
    if audit.tolerance:
        nothing = f"These scores are not proved off by more than {audit.tolerance:g} {confidence}."
    return Claim("open", "No evidence", f"{nothing} This does not prove that they are calibrated.")


def _no_error(audit: Audit) -> str:
    return f"no error above {audit.tolerance:g} is proved" if audit.tolerance else "no error is proved"


def _value(audit: Audit) -> str:
    return f"score value of a {audit.noun}" if audit.by_segment else "score value"


def strongest(finding: Finding, noun: str = "segment") -> str:
    """The finding that the verdict rests on."""
    _, direction = FINDINGS[finding.direction]
    segment = "" if finding.segment is None else f" of {noun} “{name_of(finding.segment)}”"
    return (
        f"The largest proved error: scores {direction} by at least {lower(finding.error)} somewhere among the "
        f"{rows(finding.count)}{segment} with scores from {nearest(finding.low)} to {nearest(finding.high)}. Their "
        f"mean score is {nearest(finding.mean_score)}, their observed rate {nearest(finding.rate)}."
    )


def promise(guarantee: Guarantee | NoGuarantee | None) -> Claim:
    """What the calibrator guarantees, in its own sentence."""
    if guarantee is None:
        return Claim("none", "Audit only", "No calibrator was given. This report is about the scores as they are.")
    text = guarantee.sentence()
    if isinstance(guarantee, NoGuarantee):
        return Claim("open", "No guarantee", text)
    if not guarantee.is_proved:
        return Claim("open", "Not proved", text)
    return Claim("open" if guarantee.is_vacuous else "right", "After calibration", text)


def share_of(stated: PartialGuarantee) -> str:
    """Which share of the population a guarantee is about, where it is not all."""
    return "" if stated.kept.all() else f", for at least {percent(stated.mass)} of the population"


def proved(audit: Audit, guarantee: Guarantee | NoGuarantee | None, after: Audit | None) -> list[str]:
    """What follows from the data and the assumptions."""
    above = f" above {audit.tolerance:g}" if audit.tolerance else ""
    stated = [f"These rows prove no error{above} of the scores."] if audit.worst is None else []
    for bounds, somewhere, average, value in (
        (audit, "Somewhere", "On average", "score value"),
        (audit.within_segments, f"Within a {audit.noun}", f"On average, within their {audit.noun}s,", _value(audit)),
    ):
        if bounds is not None and bounds.lower_bound > 0.0:
            stated.append(f"{somewhere} the scores are off by at least {lower(bounds.lower_bound)}.")
        if bounds is not None and bounds.average_lower_bound > 0.0:
            stated.append(f"{average} the scores are off by at least {lower(bounds.average_lower_bound)}.")
        if bounds is not None and bounds.upper_bound is not None:
            stated.append(f"No {value} that was seen is off by more than {upper(bounds.upper_bound)}.")
    stated.append(f"All bands of the audit hold at once, with {percent(audit.confidence_level)} confidence.")
    if isinstance(guarantee, Guarantee) and guarantee.is_proved:
        stated.append(_guaranteed(guarantee))
    if after is not None:
        stated.append(f"Of the calibrated scores, on other rows: {_checked(after)}")
    return stated


def _guaranteed(guarantee: Guarantee) -> str:
    stated, everywhere = guarantee.stated, guarantee.stated.kept.all()
    where = "all regions" if everywhere else f"{int(stated.kept.sum()):,} of {stated.kept.size:,} regions"
    rest = "" if everywhere else f" Over all regions the bound is {upper(guarantee.epsilon)}."
    average = "average " if guarantee.statement.claim is Promise.AVERAGE else ""
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
    elif bounds.unseen_mass is not None:
        unseen = f"They hold at most {upper(bounds.unseen_mass)} of the population."
        stated.append(f"How far score values that were never seen are off. {unseen}")
    return [
        *stated,
        "Without assumptions, no method can bound the error of a continuous score at every value, however many rows "
        "there are: between the scores that were seen, labels could be anything.",
        "The probability of a single case, beyond the average of its region.",
        "Anything about a population that has changed since these rows were drawn.",
    ]


def _checked(after: Audit) -> str:
    level = f"({percent(after.confidence_level)} confidence, {rows(after.n_rows)})"
    if after.worst is not None:
        where = "somewhere" if after.is_miscalibrated else f"within a {after.noun}"
        error = after.lower_bound if after.is_miscalibrated else after.worst.error
        return f"{where} off by at least {lower(error)} {level}."
    if after.upper_bound is not None:
        return f"{_no_error(after)}, and no value seen is off by more than {upper(after.upper_bound)} {level}."
    return f"{_no_error(after)} {level}."
