"""Bounds that describe the data, given in `scored` or where they are used."""

from dataclasses import dataclass
from typing import Any

from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.rules import GROUP_SIZE, GROUP_TARGET, WEIGHT_BOUND, Optional, Rule
from calibrant.sample.batch import Columns

_RULES: dict[str, Rule[Any]] = {
    "weight_bound": Optional(WEIGHT_BOUND),
    "max_group_size": Optional(GROUP_SIZE),
    "group_target": Optional(GROUP_TARGET),
}
_ROLES = {"weight_bound": "weight", "max_group_size": "group", "group_target": "group"}


@dataclass(frozen=True, slots=True)
class DataBounds:
    """What is known about the data beforehand; None means unknown.

    Attributes
    ----------
    weight_bound : float or None
        An upper bound on the importance weights.
    max_group_size : int or None
        The largest number of rows that a group counts as.
    group_target : {"rows", "groups"} or None
        Whether every row or every group counts equally.
    """

    weight_bound: float | None = None
    max_group_size: int | None = None
    group_target: str | None = None

    def __post_init__(self) -> None:
        for name, rule in _RULES.items():
            object.__setattr__(self, name, rule.check(name, getattr(self, name)))

    @property
    def known(self) -> dict[str, Any]:
        """The bounds that are known, by name."""
        values = {name: getattr(self, name) for name in _RULES}
        return {name: value for name, value in values.items() if value is not None}

    def check_columns(self, columns: Columns) -> None:
        """Raise an error for a bound on weights or groups if the data have none."""
        for name, value in self.known.items():
            role = _ROLES[name]
            if getattr(columns, role) is None:
                advice = f"name their column, scored(..., {role}=...)"
                raise InvalidTypeError(name, f"be None without {role}s", repr(value), advice)

    def merged(self, name: str, given: Any, columns: Columns) -> Any:
        """Return a bound: the given one, or that of the data; if both are set, they must be equal."""
        given = _RULES[name].check(name, given)
        known = getattr(self, name) if getattr(columns, _ROLES[name]) is not None else None
        if known is None:
            return given
        if given not in (None, known):
            rule = f"be left out or equal that of scored(..., {name}={known!r})"
            raise InvalidValueError(name, rule, got=repr(given))
        return known


NO_BOUNDS = DataBounds()
