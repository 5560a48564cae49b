"""What a calibrator learned from weighted rows, and the guarantee that follows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from calibrant._input import as_numbers
from calibrant._params import check_state
from calibrant._typing import FloatArray
from calibrant.calibrators.weighting import Weighting
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee import Guarantee, Population, Statement, check_tally
from calibrant.intervals import Interval
from calibrant.intervals.shift import ShiftMethod, widened
from calibrant.intervals.shift.base import check_weight_bound
from calibrant.partition import Partition
from calibrant.tally import Tally

_KEYS = ("partition", "tally", "lower", "upper", "value", "known", "bound", "bounded", "remarks")


@dataclass(frozen=True, slots=True, eq=False)
class WeightedFit:
    """Regions, sums, limits as if the weights were exact, predicted values, and where the weights came from."""

    partition: Partition
    tally: Tally
    limits: Interval
    value: FloatArray
    weighting: Weighting
    remarks: tuple[str, ...]

    def guarantee(
        self, *, method: ShiftMethod, confidence_level: float, weight_error: float, positive_label: Any, split: bool
    ) -> Guarantee:
        """What is promised for weights that are right up to a relative error."""
        limits = self.limits if weight_error == 0.0 else widened(self.limits, weight_error)
        statement = replace(
            Statement.about(self.partition, split=split, theorem=method.theorem),
            population=Population.COVARIATE_SHIFT,
            weights=self.weighting.facts(weight_error),
            notes=self.remarks,
        )
        promise = Guarantee.from_limits(
            self.partition,
            self.tally,
            limits,
            confidence_level=confidence_level,
            method=method.name,
            value=self.value,
            positive_label=positive_label,
            statement=statement,
        )
        return self.weighting.qualify(promise)

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned as plain JSON values."""
        return {
            "partition": self.partition.to_dict(),
            "tally": self.tally.to_dict(),
            "lower": self.limits.lower.tolist(),
            "upper": self.limits.upper.tolist(),
            "value": self.value.tolist(),
            "known": self.weighting.known,
            "bound": self.weighting.bound,
            "bounded": self.weighting.bounded,
            "remarks": list(self.remarks),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        check_state(state, _KEYS)
        partition, tally = Partition.from_dict(state["partition"]), Tally.from_dict(state["tally"])
        check_tally(partition, tally)
        bound = check_weight_bound(tally, state["bound"])
        limits = read_limits(state["lower"], state["upper"], tally.n_regions)
        value = as_numbers(state["value"], "value")
        if value.shape != limits.lower.shape or not ((value >= 0.0) & (value <= 1.0)).all():
            raise InvalidValueError(f"value must be one number in [0, 1] per region, {tally.n_regions}; got others")
        for name in ("known", "bounded"):
            if not isinstance(state[name], bool):
                raise InvalidTypeError(f"{name} must be true or false; got {type(state[name]).__name__}")
        remarks = state["remarks"]
        if not isinstance(remarks, list | tuple) or not all(isinstance(remark, str) for remark in remarks):
            raise InvalidTypeError("remarks must be a list of text; got something else")
        weighting = Weighting(state["known"], bound, state["bounded"])
        return cls(partition, tally, limits, value, weighting, tuple(remarks))


def read_limits(lower: Any, upper: Any, n_regions: int) -> Interval:
    """Saved limits of every region."""
    limits = Interval(as_numbers(lower, "lower"), as_numbers(upper, "upper"))
    if not limits.lower.shape == limits.upper.shape == (n_regions,):
        raise InvalidValueError(f"lower and upper must have one entry per region, {n_regions}; got other numbers")
    if not ((limits.lower >= 0.0) & (limits.lower <= limits.upper) & (limits.upper <= 1.0)).all():
        raise InvalidValueError("limits must satisfy 0 <= lower <= upper <= 1 in every region; got others")
    return limits
