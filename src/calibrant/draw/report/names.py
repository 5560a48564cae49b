"""Words and names that figures and tables of the report share."""

from calibrant.assess.audit.findings import NO_EVIDENCE, OVERCONFIDENT, UNDERCONFIDENT
from calibrant.assess.subgroups.findings import TOO_HIGH, TOO_LOW

_LONGEST_NAME = 60

FINDINGS = {
    TOO_HIGH: ("high", "too high"),
    TOO_LOW: ("low", "too low"),
    OVERCONFIDENT: ("high", OVERCONFIDENT),
    UNDERCONFIDENT: ("low", UNDERCONFIDENT),
    NO_EVIDENCE: ("none", "no evidence"),
}
"""Kind of mark, and words, for each finding and each verdict on a region."""


def name_of(value: object, longest: int = _LONGEST_NAME) -> str:
    """A name, truncated if it is very long."""
    text = str(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def region_name(text: str, longest: int = _LONGEST_NAME) -> str:
    """A region's name, truncated in the middle if it is very long, because it begins with a segment
    and ends with scores.
    """
    return text if len(text) <= longest else f"{text[: longest // 2 - 1]}…{text[-(longest // 2) :]}"
