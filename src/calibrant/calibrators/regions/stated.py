"""What a caller states about the data: facts that the rows themselves cannot show."""

from dataclasses import dataclass, fields
from typing import Any, Self

from calibrant.errors import InvalidValueError
from calibrant.limits.shift.evidence import WEIGHT_FLOOR
from calibrant.params.bounds import GROUP_SIZE, GROUP_TARGET, WEIGHT_BOUND
from calibrant.params.rules import (
    OPEN_UNIT,
    SCORE_RANGE,
    Number,
    Optional,
    Pair,
    Rule,
    check_state,
)
from calibrant.sample.kinds import bound_of
from calibrant.text.sentences import shown

WEIGHT_ERROR = Number(
    "a number in [0, 1): how far, relatively, the weights may be from the truth",
    0.0,
    1.0,
    open_high=True,
)
_RATE = Number("a number in (0, 1]", 0.0, 1.0, open_low=True)
_SHARES = Pair("a pair (low, high) of them", OPEN_UNIT, increasing=True)
_RATES = Pair("a pair of numbers in (0, 1], of the negative and the positive class", _RATE)
_RULES: dict[str, Rule[Any]] = {
    "weight_bound": Optional(WEIGHT_BOUND),
    "max_group_size": Optional(GROUP_SIZE),
    "group_target": GROUP_TARGET,
    "score_range": Optional(SCORE_RANGE),
    "weight_floor": WEIGHT_FLOOR,
    "weight_error": WEIGHT_ERROR,
    "target_prior": Optional(OPEN_UNIT | _SHARES),
    "source_prior": Optional(OPEN_UNIT),
    "sampling_rates": Optional(_RATES),
}


@dataclass(frozen=True, slots=True)
class Stated:
    """What `fit` was told about the data.

    Attributes
    ----------
    weight_bound : float or None
        An upper bound on the importance weights.
    max_group_size : int or None
        The largest number of rows that a group counts as in a bin.
    group_target : {"rows", "groups"}
        With groups: whether the rate is that among rows, or that of a random row of a random group.
    score_range : (float, float) or None
        The range of the scores, for bins of equal width; None is (0, 1).
    weight_floor : float
        A lower bound on the importance weights.
    weight_error : float
        The largest relative error of the importance weights.
    target_prior : float, (float, float) or None
        The share of the positive class in the target population, or limits on it.
    source_prior : float or None
        The share of the positive class in the population of the calibration rows.
    sampling_rates : (float, float) or None
        The share of the negative and of the positive class that was kept.
    """

    weight_bound: float | None = None
    max_group_size: int | None = None
    group_target: str = "rows"
    score_range: tuple[float, float] | None = None
    weight_floor: float = 0.0
    weight_error: float = 0.0
    target_prior: float | tuple[float, float] | None = None
    source_prior: float | None = None
    sampling_rates: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name, rule in _RULES.items():
            object.__setattr__(self, name, rule.check(name, getattr(self, name)))

    @classmethod
    def about(cls, data: object, **told: Any) -> Self:
        """What `fit` was told, or what `scored(...)` says about the data; both must agree."""
        for name in ("weight_bound", "max_group_size", "group_target"):
            told[name] = bound_of(data, name, told[name])
        if told["group_target"] is None:
            told["group_target"] = "rows"
        return cls(**told)

    def arguments(self) -> dict[str, Any]:
        """What was stated, as arguments of `fit`, without usual values."""
        usual = type(self)()
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: value for name, value in values.items() if value != getattr(usual, name)}

    def to_dict(self) -> dict[str, Any]:
        """What was stated, as plain JSON values."""
        told = self.arguments()
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in told.items()
        }

    @classmethod
    def from_dict(cls, saved: Any) -> Self:
        """Read back what `to_dict` wrote."""
        check_state(saved)
        if unknown := [name for name in saved if name not in _RULES]:
            raise InvalidValueError(
                "stated", f"have entries among {list(_RULES)}", got=shown(unknown[0])
            )
        told: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in saved.items()
        }
        return cls(**told)


NOTHING_STATED = Stated()
"""The usual: no bounds, and scores in (0, 1)."""
