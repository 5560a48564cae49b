"""What was learned from weighted rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from calibrant._params import check_state
from calibrant._state import read_flag, read_limits, read_numbers
from calibrant._text import shown
from calibrant._typing import FloatArray
from calibrant.errors import InvalidTypeError
from calibrant.guarantee import check_tally
from calibrant.intervals import Interval
from calibrant.intervals.shift import Evidence
from calibrant.partition import Partition
from calibrant.tally import Tally

_KEYS = ("partition", "tally", "lower", "upper", "value", "known", "bound", "bounded", "remarks")


@dataclass(frozen=True, slots=True, eq=False)
class ShiftResult:
    """Regions, sums, limits as if the weights were exact, predicted values, and what is known of the weights."""

    partition: Partition
    tally: Tally
    limits: Interval
    value: FloatArray
    known: bool
    bound: float
    bounded: bool
    remarks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned as plain JSON values."""
        return {
            "partition": self.partition.to_dict(),
            "tally": self.tally.to_dict(),
            "lower": self.limits.lower.tolist(),
            "upper": self.limits.upper.tolist(),
            "value": self.value.tolist(),
            "known": self.known,
            "bound": self.bound,
            "bounded": self.bounded,
            "remarks": list(self.remarks),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        check_state(state, _KEYS)
        partition, tally = Partition.from_dict(state["partition"]), Tally.from_dict(state["tally"])
        check_tally(partition, tally)
        bound = Evidence(tally, state["bound"]).weight_bound  # which checks it
        limits = Interval(*read_limits(state["lower"], state["upper"], tally.n_regions))
        value = read_numbers(state["value"], "value", size=tally.n_regions, low=0.0, high=1.0)
        known, bounded = read_flag(state, "known"), read_flag(state, "bounded")
        remarks = state["remarks"]
        if not isinstance(remarks, list | tuple) or not all(isinstance(remark, str) for remark in remarks):
            raise InvalidTypeError("remarks", "be a list of text", got=shown(remarks))
        return cls(partition, tally, limits, value, known, bound, bounded, tuple(remarks))
