"""Which columns an export writes, and their names."""

from collections.abc import Mapping, Sequence

from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.text.sentences import shown

OUTPUTS = ("calibrated", "lower", "upper", "region", "set")
"""The possible outputs: the value, the limits of its interval, the index of the region, the
prediction set.
"""


def names_by_output(
    outputs: Sequence[str] | Mapping[str, str], available: tuple[str, ...], *, has_limits: bool
) -> dict[str, str]:
    """Return the requested outputs, each with its name, or raise an error if they are not
    available.

    >>> names_by_output(["lower"], OUTPUTS, has_limits=True)
    {'lower': 'lower'}
    >>> names_by_output({"lower": "p_low", "upper": "p_high"}, OUTPUTS, has_limits=True)
    {'lower': 'p_low', 'upper': 'p_high'}
    """
    chosen = _as_mapping(outputs)
    for output, name in chosen.items():
        _check_output(output, available, has_limits)
        _check_name(output, name)
    if not chosen:
        raise InvalidValueError("outputs", "name at least one output", got="none")
    different = {name.lower() for name in chosen.values()}
    if len(different) < max(len(chosen), len(outputs)):
        rule = "have names that differ, even if upper and lower case are ignored"
        raise InvalidValueError("outputs", rule, got=shown(outputs))
    return chosen


def _as_mapping(outputs: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """The name of each output, which is its own unless another is given."""
    if isinstance(outputs, Mapping):
        return dict(outputs)
    if isinstance(outputs, str) or not isinstance(outputs, Sequence):
        rule = f"be a list of {', '.join(OUTPUTS)}, or a mapping from those to names"
        raise InvalidTypeError("outputs", rule, got=shown(outputs))
    return {name: name for name in outputs}


def _check_output(output: str, available: tuple[str, ...], has_limits: bool) -> None:
    """Raise an error for an output that is not available."""
    if output in available:
        return
    why = ""
    if output in OUTPUTS and not has_limits:
        why = ": this calibrator has no confidence intervals"
    rule = f"be among {', '.join(available)}{why}"
    raise InvalidValueError("outputs", rule, got=shown(output))


def _check_name(output: str, name: object) -> None:
    """Raise an error for a name that is empty or not text."""
    if not isinstance(name, str) or not name:
        rule = "give each output a name, as text"
        raise InvalidTypeError("outputs", rule, got=f"{shown(name)} for {output}")
