"""Check that a model file agrees with its calibrator: no entry is ignored, and no number is better
than the counts allow.
"""

from collections.abc import Mapping
from typing import Any

from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.rules import TEXT
from calibrant.text.sentences import shown

_ACCURACY = 1e-9  # relative accuracy of limits: other releases and machines may round differently
_IN_WORDS = ("sentence",)  # other releases may word it differently; `verify` compares it


def check_guarantee(guarantee: Any) -> None:
    """Raise an error for a guarantee with unexpected entries."""
    if not isinstance(guarantee, dict) or set(guarantee) - {"details"} != {
        "epsilon",
        "confidence_level",
        "sentence",
    }:
        rule = "have an epsilon, a confidence_level and a sentence"
        raise InvalidValueError("guarantee of the model file", rule, got=shown(guarantee))
    for name in ("epsilon", "confidence_level"):
        if guarantee[name] is not None and type(guarantee[name]) is not float:
            rule = "be a number with a decimal point, or null"
            raise InvalidTypeError(f"{name} of the guarantee", rule, got=shown(guarantee[name]))
    TEXT.check("sentence of the guarantee", guarantee["sentence"])
    TEXT.check("details of the guarantee", guarantee.get("details", ""))


def check_numbers(guarantee: Mapping[str, Any], derived: Mapping[str, Any]) -> None:
    """Raise an error if the numbers of a guarantee do not follow from the calibrator."""
    for name in ("epsilon", "confidence_level"):
        said = guarantee[name]
        found = derived[name]
        if said == found or is_near(said, found):
            continue
        rule = f"follow from the calibrator's own counts, {found!r}"
        raise InvalidValueError(f"{name} of the guarantee", rule, got=repr(said))


def is_near(one: float | None, other: float | None) -> bool:
    """Whether two numbers differ only by rounding."""
    if one is None or other is None:
        return False
    return abs(one - other) <= _ACCURACY * max(abs(one), abs(other))


def check_complete(written: Any, again: Any, place: str = "") -> None:
    """Raise an error for an entry that is unknown or was not read as it is written.

    `again` is what the restored calibrator would write.
    """
    if isinstance(written, dict) and isinstance(again, Mapping):
        for name, value in written.items():
            inner = f"{place}.{name}" if place else name
            if name not in again:
                advice = "upgrade calibrant if a newer one wrote it"
                raise InvalidValueError(
                    "the calibrator",
                    "have known entries only",
                    got=shown(inner),
                    advice=advice,
                )
            if name not in _IN_WORDS:
                check_complete(value, again[name], inner)
        return
    if isinstance(written, list) and isinstance(again, list | tuple) and len(written) == len(again):
        for one, other in zip(written, again, strict=True):
            check_complete(one, other, place)
        return
    if isinstance(written, bool) != isinstance(again, bool) or written != again:
        raise InvalidValueError(place or "the calibrator", f"be {shown(again)}", got=shown(written))
