"""What `verify` compares: values that must be equal, and numbers that another machine may round
differently.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.text.sentences import shown

if TYPE_CHECKING:
    from calibrant.params.rules import Rule

# far larger than the differences in the last bits between linear algebra kernels and math libraries
_RELATIVE = 1e-9
_ABSOLUTE = (
    1e-12  # for probabilities: a difference of two nearly equal ones keeps their rounding error
)
_ON_SCORES = (
    "knots",
    "edges",
    "low",
    "high",
    "cuts",
    "thresholds",
    "lower_knots",
    "upper_knots",
    "threshold",
    "score_range_seen",
    "window",
    "bound",
    "smallest",
    "largest",
)
"""Entries that are scores or weights of rows, or lie between two of them: no library rounds them,
at any scale.
"""
_OF_ANY_SCALE = ("slope", "temperature", "false_alarms")
"""Entries without a natural scale, for which only the ratio matters."""


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison: whether it stands (None: not compared), and what was found."""

    name: str
    stands: bool | None
    text: str


def close(one: Any, other: Any, name: str = "") -> bool:
    """Whether two plain values are equal up to rounding.

    The last bits of probabilities, limits and other computed numbers may differ between machines; a
    relative 1e-9 and an absolute 1e-12 are allowed. Scores must be equal: they may have any scale,
    and are only copied.

    >>> close({"left": 0.3}, {"left": 0.3 + 1e-13}), close({"knots": [1e-11]},
    ...     {"knots": [1e-11 + 1e-20]})
    (True, False)
    """
    return difference(one, other, name) is None


def difference(one: Any, other: Any, name: str = "") -> str | None:
    """The name of the first entry in which two plain values differ; None if they are equal.

    >>> difference({"curve": {"name": "beta", "left": [0.1]}}, {"curve": {"name": "beta",
    ...     "left": [0.2]}})
    'left'
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return _difference_of_mappings(one, other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return _difference_of_lists(one, other, name)
    if isinstance(one, float) and isinstance(other, float):
        return None if _near(one, other, name) else name or "a number"
    if type(one) is type(other) and one == other:
        return None
    return name or "a value"


def _difference_of_mappings(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> str | None:
    for key in [*one, *other]:
        if key not in one or key not in other:
            return str(key)
        found = difference(one[key], other[key], str(key))
        if found is not None:
            return found
    return None


def _difference_of_lists(one: Sequence[Any], other: Sequence[Any], name: str) -> str | None:
    if len(one) != len(other):
        return name or "length"
    for left, right in zip(one, other, strict=True):
        found = difference(left, right, name)
        if found is not None:
            return found
    return None


def _near(one: float, other: float, name: str) -> bool:
    if one == other or name in _ON_SCORES or not math.isfinite(one - other):
        return one == other
    absolute = 0.0 if name in _OF_ANY_SCALE else _ABSOLUTE
    return abs(one - other) <= absolute + _RELATIVE * max(abs(one), abs(other))


@dataclass(frozen=True, slots=True)
class SameData:
    """Whether the rows are those of the file.

    `differs` is "rows" for other rows, "order" for the same rows in another order, and None if
    neither is known.
    """

    checks: tuple[Check, ...]
    differs: str | None


def same_number(name: str, here: int, saved: Any, *notes: str) -> Check:
    """Compare a number with the one in the model file."""
    same = type(saved) is int and here == saved
    other = "" if same else f"; the model file has {shown(saved)}"
    return Check(name, same, "; ".join((f"{here:,}{other}", *notes)))


def same_data(model: Any, data: Any) -> SameData:
    """Compare the rows and their order with what the file says about them."""
    from calibrant.sample.fingerprint import fingerprint

    seen = fingerprint(data, ordered=True)
    saved = model.provenance
    checks = (
        [same_number("rows", seen.rows, saved["rows"], *data.facts(drawn=False).notes)]
        if "rows" in saved
        else []
    )
    if "groups" in saved:
        grouped = data.columns.group is not None
        missing = Check("groups", None, "not checked: this needs the column of groups, --group")
        checks.append(
            same_number("groups", data.n_groups(), saved["groups"]) if grouped else missing
        )
    checks += _types(model, data)
    known = saved.get("fingerprint")
    order = saved.get("order")
    if known is None:
        return SameData(
            (*checks, Check("fingerprint", None, f"{seen}; the file has none to compare with")),
            None,
        )
    if str(seen) != known:
        other = f"{seen}; the model file has {shown(known)}: these are different rows"
        return SameData((*checks, Check("fingerprint", False, other)), "rows")
    checks.append(Check("fingerprint", True, str(seen)))
    if order is None:
        return SameData(tuple(checks), None)
    if seen.in_order is None:
        checks.append(
            Check("order", None, "not checked: these rows are drawn by the entries of a column")
        )
        return SameData(tuple(checks), None)
    same = seen.in_order == order
    text = (
        "the rows are in the same order as in fit"
        if same
        else "these are the same rows, in a different order than in fit"
    )
    return SameData((*checks, Check("order", same or None, text)), None if same else "order")


def _types(model: Any, data: Any) -> list[Check]:
    """Check columns of ids or groups for another type, with which other rows may be drawn."""
    checks = []
    for part in ("id", "group"):
        known = model.provenance.get(f"{part}_type")
        name = getattr(data.columns, part)
        here = None if name is None else str(data.schema.field(name).type)
        if f"{part}_type" in model.provenance and known != here:
            checks.append(
                Check(
                    f"{part}_type", None, f"{part}s were {shown(known)} in fit and are {here} here"
                )
            )
    return checks


def in_other_order(checks: Iterable[Check]) -> list[Check]:
    """The same checks, for the case that differences may be due to the order of the rows."""
    why = (
        "not checked: rows are drawn by position, and these are in a different order; give them "
        "in the same order as in fit, or fit with --id"
    )
    return [
        check if check.stands is not False else Check(check.name, None, why) for check in checks
    ]


def fault_of(settings: Mapping[str, Any], rules: Mapping[str, "Rule[Any]"]) -> str | None:
    """The first setting that breaks its rule, in words; None if there is none."""
    from calibrant.errors import CalibrantError

    if not settings:
        return "they are not an object with the settings of a command"
    for name, rule in rules.items():
        if name in settings:
            try:
                rule.check(name, settings[name])
            except CalibrantError as error:
                return str(error)
    return None


def undecided(settings: Mapping[str, Any], data: Any, of_draw: Iterable[str]) -> str:
    """A note on settings that made no difference on these rows, so that the rows cannot confirm
    them.

    `of_draw` are the settings of a draw, if nothing was drawn.
    """
    idle = [*of_draw, *(["skip_missing"] if data.facts(drawn=False).skipped == 0 else [])]
    names = [name for name in idle if name in settings]
    return f"; {' and '.join(names)} made no difference on these rows" if names else ""


def on_provenance(model: Any, given: Mapping[str, Any]) -> list[Check]:
    """What the file says about its origin, which no rows can confirm.

    Also columns that were renamed.
    """
    known = {"rows", "groups", "fingerprint", "order", "settings", "id_type", "group_type"}
    told = [*sorted(set(model.provenance) - known), "created_by"]
    checks = [Check("provenance", None, f"not checked: {', '.join(told)}")]
    anew = [
        f"{part} {given[part]!r} for {shown(name)}"
        for part, name in model.columns.items()
        if given.get(part) not in (None, name)
    ]
    unused = [part for part in model.columns if part not in given]
    if anew or unused:
        told = [
            *(f"read {text}" for text in anew),
            *(f"not used: {shown(part)}" for part in unused),
        ]
        checks.append(Check("columns", None, f"not checked: {'; '.join(told)}"))
    return checks
