"""What was learned from weighted rows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._typing import FloatArray
from calibrant.calibrators.regions.weighted_rows import WeightedLimits
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally, check_tally
from calibrant.limits.shift.evidence import weight_sums
from calibrant.params.declared_state import Saved
from calibrant.params.kind import EntryTable, Known
from calibrant.params.rules import TEXT, Flag
from calibrant.params.state_kinds import Lists, Nested, Numbers
from calibrant.shift.ratios.density_ratio import DensityRatio


@dataclass(frozen=True, slots=True, eq=False)
class ShiftResult(Saved):
    """Regions, their tally, limits as if the weights were exact, and predicted values.

    `known` says whether the weights were given as exact, not estimated; `remarks` is what a reader
    should know about them.
    """

    _entries: ClassVar[EntryTable] = {
        "partition": Nested(Partition),
        "tally": Nested(Tally),
        "weighted": Nested(WeightedLimits),
        "value": Numbers("tally.n_regions", 0.0, 1.0),
        "known": Flag(),
        "remarks": Lists(TEXT),
    }

    partition: Partition
    tally: Tally
    weighted: WeightedLimits
    value: FloatArray
    known: bool
    remarks: tuple[str, ...]

    def _check_state(self, known: Known) -> None:
        check_tally(self.partition, self.tally)

    @property
    def needs_no_bound(self) -> bool:
        """Whether no bound on the weights was given, and none is needed.

        The weight of a group is then capped, and the cap was set by pilot groups.
        """
        groups = self.weighted.groups
        return not self.weighted.bounded and groups is not None and groups.target == "rows"


def remarks_on(tally: Tally, ratio: DensityRatio | None) -> tuple[str, ...]:
    """What a reader should know about the weights besides the limits."""
    remarks = []
    if n_weightless := int(np.count_nonzero(weight_sums(tally).w.rounded() <= 0.0)):
        remarks.append(
            f"{n_weightless} of {tally.n_regions} regions have no weight: the interval"
            " there is [0, 1]"
        )
    if ratio is not None and hasattr(ratio, "diagnostics_"):  # a user-written ratio may lack them
        remarks.append(ratio.diagnostics_.sentence)
    return tuple(remarks)
