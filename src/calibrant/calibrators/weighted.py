"""What a calibrator learned from weighted rows, and the guarantee that follows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._params import check_state
from calibrant._typing import FloatArray
from calibrant.calibrators.weighting import Weighting
from calibrant.guarantee import Guarantee, _assumptions
from calibrant.intervals import Interval
from calibrant.intervals.shift import ShiftMethod, widened
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
        precision = "" if weight_error == 0.0 else f" up to a relative error of {weight_error:g}"
        condition = "A" if self.weighting.known else "B"
        promise = Guarantee(
            confidence_level=float(confidence_level),
            method=method.name,
            theorem=method.theorem,
            # the first of the usual assumptions is that there is one population
            assumptions=self.weighting.assumptions(weight_error) + _assumptions(self.partition, split)[1:],
            remarks=self.remarks,
            regions=self.partition.describe(),
            counts=self.tally.counts,
            positives=self.tally.positives,
            value=self.value,
            lower=limits.lower,
            upper=limits.upper,
            positive_label=positive_label,
            basis="among rows of the target population, as long as labels given inputs are distributed as among the "
            f"calibration rows and the importance weights are the density ratio{precision} (condition {condition})",
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
        lower, upper, value = (np.array(state[name], dtype=np.float64) for name in ("lower", "upper", "value"))
        return cls(
            Partition.from_dict(state["partition"]),
            Tally.from_dict(state["tally"]),
            Interval(lower, upper),
            value,
            Weighting(bool(state["known"]), float(state["bound"]), bool(state["bounded"])),
            tuple(state["remarks"]),
        )
