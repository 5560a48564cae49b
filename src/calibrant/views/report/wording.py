"""The sentences of the report, and numbers rounded to the side on which they stay true."""

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from calibrant._audit import Audit, Finding
from calibrant._audit.report import TOO_HIGH, TOO_LOW, rounded_down, rounded_up
from calibrant.guarantee import Guarantee, NoGuarantee, PartialGuarantee

_LONGEST_NAME = 60
_LONGEST_TEXT = 2_000
_PAPER = "Gupta, Podkopaev and Ramdas 2020"
_NUMBERS = {
    "thm:calib_ci_equiv": "Theorem 1",
    "thm:PS-CI-equivalence": "Theorem 2",
    "cor:CI-PS-diameter": "Corollary 2",
    "thm:f-must-be-coarse": "Theorem 3",
    "thm:emp_bernstein": "Theorem 4",
    "thm:data_dep_partition": "Theorem 5",
    "thm:online_conc": "Theorem 6",
    "thm:weighted_cov_shift_estimator": "Theorem 7",
}
_LABEL = re.compile(r"(2020, )?\b((?:thm|cor|eq|prop|lem|def|sec|asmp):[\w-]+)")

KINDS = {TOO_HIGH: "high", TOO_LOW: "low"}  # of a verdict; any other is "none"

GLOSSARY = (
    ("Score", "The number between 0 and 1 that the model gives to a row."),
    ("Rate", "The share of rows for which the event happened. A score is calibrated if, among all rows with the same "
     "score, the event happens at that rate."),
    ("Region", "A range of scores, or one score value, sometimes within one segment. Rates can be counted only over "
     "regions."),
    ("Band", "The limits between which the average true rate of a region lies. All bands of the audit hold at once, "
     "with the stated confidence, not only each for itself."),
    ("Confidence", "If the data were drawn again and again, the statements made would all be true in at least this "
     "share of the draws."),
    ("Proved", "It follows from the data and the stated assumptions, with the stated confidence, for every "
     "distribution. Nothing is assumed about the model."),
    ("No evidence", "These rows do not prove an error. That does not prove that there is none."),
    ("Epsilon", "The largest distance, over all regions, between a calibrated probability and a rate that is not ruled "
     "out."),
)  # fmt: skip

AUDIT_METHOD = (
    "Scores are cut into regions of about equal size, at several resolutions, by their order alone. Each region has "
    "binomial limits that hold although rates differ from row to row (Hoeffding 1956); at a single score value they "
    "are Clopper and Pearson's (1934). All regions share one error budget: Šidák's within a resolution, equal parts "
    "over resolutions and segments. Averaging over a region can only shrink calibration error, so an error proved for "
    "a region is proved for the score. Chernoff's bound leads from the rows seen to the population average."
)
UNSEEN_METHOD = "The mass of score values never seen is limited after McAllester and Ortiz (2003)."


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.95)
    '95%'
    """
    return f"{100 * share:.10g}%"


def exact(value: float | int) -> str:
    """The number itself, in as many digits as name it."""
    return repr(int(value)) if isinstance(value, int) else repr(float(value))


def down(value: float, decimals: int) -> str:
    """At most the value.

    >>> down(0.2799, 2), up(0.2701, 2), near(0.275, 2)
    ('0.27', '0.28', '0.28')
    """
    return _quantized(value, decimals, ROUND_FLOOR)


def up(value: float, decimals: int) -> str:
    """At least the value."""
    return _quantized(value, decimals, ROUND_CEILING)


def near(value: float, decimals: int) -> str:
    """The nearest number with so many decimals."""
    return _quantized(value, decimals, ROUND_HALF_EVEN)


def decimals_for(values: Iterable[float]) -> int:
    """Digits after the point for a column: three, and more where all of its numbers are small.

    >>> decimals_for([0.2, 0.9]), decimals_for([0.0004, 0.003])
    (3, 5)
    """
    largest = max((float(value) for value in values), default=1.0)
    return 3 if largest <= 0.0 else min(12, max(3, 2 - Decimal(largest).adjusted()))


def of_how_much(stated: PartialGuarantee) -> str:
    """Which share of the population a promise is about, where it is not all."""
    return "" if stated.kept.all() else f", for at least {percent(stated.mass)} of the population"


def epsilon_text(epsilon: float) -> str:
    """Three significant digits, never less than what is proved."""
    return "0" if epsilon <= 0.0 else up(epsilon, 2 - Decimal(repr(float(epsilon))).adjusted())


def name_of(value: Any, longest: int = _LONGEST_NAME) -> str:
    """A segment's or a file's name, cut where it is very long."""
    text = str(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def region_name(text: str, longest: int = _LONGEST_NAME) -> str:
    """A region's name, cut in the middle where it is very long: a segment's name leads it, its scores end it.

    >>> region_name("north: (-inf, 0.5)")
    'north: (−∞, 0.5)'
    """
    text = text.replace("(-inf, ", "(−∞, ").replace(", inf)", ", ∞)")
    return text if len(text) <= longest else f"{text[: longest // 2 - 1]}…{text[-(longest // 2) :]}"


def readable(text: str) -> str:
    """Name the theorems that the library's own texts cite by their labels."""

    def named(match: re.Match[str]) -> str:
        year, label = match.groups()
        number = _NUMBERS.get(label)
        if year:
            return f"2020, {number}" if number else "2020"
        return f"{_PAPER}, {number}" if number else _PAPER

    return _LABEL.sub(named, text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…")


def sentence(text: str) -> str:
    """A capital at the start, a full stop at the end."""
    text = readable(text).strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def headline(audit: Audit) -> tuple[str, str, str]:
    """What kind of verdict it is, in two words, and in one sentence."""
    confidence = f"({percent(audit.confidence_level)}\u00a0confidence)"
    scores = "Within their segments, these scores" if is_within(audit) else "These scores"
    if audit.is_miscalibrated:
        return (
            "wrong",
            "Proved miscalibrated",
            f"{scores} are proved miscalibrated: somewhere they are off by at least "
            f"{rounded_down(audit.lower_bound)} {confidence}.",
        )
    if audit.upper_bound is not None and audit.verdict.startswith("proved within"):
        return (
            "right",
            "Proved nearly right",
            f"These scores are proved nearly right: no score value that was seen is off by more than "
            f"{rounded_up(audit.upper_bound)} {confidence}.",
        )
    return (
        "open",
        "No evidence",
        f"There is no evidence that these scores are miscalibrated {confidence}. That does not prove that they are "
        "calibrated.",
    )


def strongest(finding: Finding, *, decimals: int) -> str:
    """The finding that the verdict rests on, in words."""
    direction = "too high" if finding.direction == TOO_HIGH else "too low"
    group = "" if finding.segment is None else f" of segment “{name_of(finding.segment)}”"
    return (
        f"The strongest finding: scores {direction} by at least {rounded_down(finding.error)} somewhere among the "
        f"{finding.count:,} rows{group} with scores from {near(finding.low, decimals)} to "
        f"{near(finding.high, decimals)}. There the mean score is {near(finding.mean_score, decimals)} and the "
        f"observed rate {near(finding.rate, decimals)}."
    )


def promise(guarantee: Guarantee | NoGuarantee | None) -> tuple[str, str, str]:
    """What kind of promise the calibrator makes, in two words, and in its own sentence."""
    if guarantee is None:
        return (
            "none",
            "Audit only",
            "No calibrator was given: this report says what is known of the scores as they are.",
        )
    if isinstance(guarantee, NoGuarantee):
        return "open", "Nothing promised", readable(guarantee.sentence())
    if not guarantee.is_proved:
        return "open", "Not proved", readable(guarantee.sentence())
    return ("open" if guarantee.is_vacuous else "right"), "After calibration", readable(guarantee.sentence())


def proved(audit: Audit, guarantee: Guarantee | NoGuarantee | None, after: Audit | None) -> list[str]:
    """What follows from the data and the assumptions."""
    level = percent(audit.confidence_level)
    stated = []
    if audit.lower_bound > 0.0:
        where = "Within a segment" if is_within(audit) else "Somewhere"
        stated.append(f"{where} the scores are off by at least {rounded_down(audit.lower_bound)}.")
    else:
        stated.append("No error of the scores is proved by these rows.")
    if audit.average_lower_bound > 0.0:
        where = ", within their segments," if audit.by_segment else ""
        stated.append(f"On average{where} the scores are off by at least {rounded_down(audit.average_lower_bound)}.")
    if audit.upper_bound is not None:
        stated.append(f"No score value that was seen is off by more than {rounded_up(audit.upper_bound)}.")
    stated.append(f"Each band of the audit holds, and all of them at once, with {level} confidence.")
    if isinstance(guarantee, Guarantee) and guarantee.is_proved:
        promised, confidence = guarantee.stated, percent(guarantee.confidence_level)
        where = (
            "all regions" if promised.kept.all() else f"{int(promised.kept.sum()):,} of {promised.kept.size:,} regions"
        )
        rest = "" if promised.kept.all() else f" Over all regions the bound is {epsilon_text(guarantee.epsilon)}."
        stated.append(
            f"After calibration the true rate is within {epsilon_text(promised.epsilon)} of the predicted probability "
            f"in {where} at once{of_how_much(promised)}, with {confidence} confidence.{rest}"
        )
    if after is not None:
        stated.append(f"Of the calibrated scores, on other rows: {_checked(after)}")
    return stated


def assumed(audit: Audit, guarantee: Guarantee | NoGuarantee | None) -> list[tuple[str, list[str]]]:
    """What must be true for all this to hold: for the audit, and for the promise."""
    stated = [("For the audit", [sentence(text) for text in audit.assumptions])]
    if isinstance(guarantee, Guarantee):
        ours = [sentence(text) for text in guarantee.assumptions]
        if guarantee.caveat is not None:
            ours.append(sentence(f"this promise is not proved, because {guarantee.caveat}"))
            ours.append(sentence(f"its numbers hold if {guarantee.supposition}"))
        stated.append(("For the promise", ours))
    return stated


def unknowable(audit: Audit) -> list[str]:
    """What no method can find out from such data."""
    stated = []
    if audit.upper_bound is None:
        stated.append("How far the scores are off at most.")
        if audit.upper_bound_reason:
            stated[-1] = f"How far the scores are off at most: {readable(audit.upper_bound_reason)}."
    elif audit.unseen_mass is not None:
        stated.append(
            f"How far score values that were never seen are off. They hold at most {rounded_up(audit.unseen_mass)} of "
            "the population."
        )
    stated += [
        "Without assumptions, no method can bound the error of a continuous score at every value, however many rows "
        "there are: between the scores that were seen, labels could be anything.",
        "The probability of a single case, beyond the average of the region it falls into.",
        "Anything about a population that has changed since these rows were drawn.",
    ]
    return stated


def _checked(after: Audit) -> str:
    level = f"({percent(after.confidence_level)} confidence, {after.n_rows:,} rows)"
    if after.is_miscalibrated:
        return f"somewhere off by at least {rounded_down(after.lower_bound)} {level}."
    if after.upper_bound is not None:
        return f"no error is proved, and no value seen is off by more than {rounded_up(after.upper_bound)} {level}."
    return f"no error is proved {level}."


def is_within(audit: Audit) -> bool:
    """Whether the strongest finding is of a segment: then it is proved of the score and the segment together."""
    return audit.worst is not None and audit.worst.segment is not None


def _quantized(value: float, decimals: int, rounding: str) -> str:
    return format(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), rounding), "f")
