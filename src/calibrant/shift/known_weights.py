"""What is known about importance weights and masses before limits are derived, and the notes on
them afterwards.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from calibrant._typing import ArrayLike, FloatArray, IndexArray
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.parameters import Stated
from calibrant.calibrators.regions.weighted_rows import at_most, checked_bound, weights_of
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.interval import Interval
from calibrant.limits.shift.evidence import Evidence, weight_sums, weighted_rates
from calibrant.limits.shift.oracle import as_relative_mass, known_mass_rates
from calibrant.params.arrays import as_weights, check_rows
from calibrant.sample.reader import in_memory
from calibrant.sample.rows import Rows
from calibrant.shift.ratios.density_ratio import DensityRatio
from calibrant.shift.weights import Features, Weights, estimated_weights
from calibrant.text.sentences import Setting

Masses: TypeAlias = ArrayLike | Callable[[Partition], ArrayLike] | None
"""The relative mass of each region, or a function from the partition to these masses."""


class ToldMasses(NamedTuple):
    """The relative masses, and unlabelled scores from both populations to count them in."""

    relative_mass: Masses
    target_scores: ArrayLike | None
    source_scores: ArrayLike | None


def found_weights(
    n_rows: int,
    importance_weight: ArrayLike | None,
    features: Features,
    ratio: DensityRatio | None,
    stated: Stated,
    fitted_on: IndexArray | None = None,
) -> Weights:
    """Use the given weights, or estimate them; raise an error if they contradict what was stated
    about them.

    `fitted_on` are the rows on which the ratio is fitted, if not on all.
    """
    fitted = None
    name = "importance_weight"
    if importance_weight is None:
        fitted, weights = estimated_weights(n_rows, ratio, features, fitted_on)
        name = "the estimated importance weight"
    elif features.target is None:
        weights = as_weights(importance_weight, n_rows)
    else:
        rule = "be None if importance_weight is given"
        raise InvalidTypeError("X_target", rule, got="both", advice="pass one")
    bound = checked_bound(weights, stated.weight_bound, name)
    floor = stated.weight_floor
    check_rows(weights < floor, weights, name, f"be at least weight_floor={floor:g}")
    return Weights(fitted is None, bound, stated.weight_bound is not None, weights, fitted)


def summed_weights(largest: float, stated: Stated) -> Weights:
    """What is known about the weights in a tally; without a stated bound, the largest weight is the
    bound.
    """
    bound = stated.weight_bound
    if bound is None:
        return Weights(True, largest, bounded=False)
    if largest > bound:
        raise InvalidValueError("importance_weight", at_most(bound), got=f"{largest:g}")
    return Weights(True, float(bound), bounded=True)


def largest_weight(data: Rows, binned: Binned) -> float:
    """The largest weight of all rows, including pilot rows and rows on edges, which count in no
    bin.
    """
    if in_memory(data):
        return float(weights_of(data).max())
    tally = binned.tally
    if binned.rows is not data or tally.uncounted:
        whole = data.with_columns(replace(data.columns, segment=None))
        tally, _ = whole.tally(ScorePartition(np.empty(0)), weighted=True)
    return float(weight_sums(tally).largest.max())


def known_masses(relative_mass: Masses, partition: Partition) -> FloatArray | None:
    """The relative mass of each region, if known."""
    masses = relative_mass(partition) if callable(relative_mass) else relative_mass
    return None if masses is None else as_relative_mass(masses, partition.n_regions)


def predicted_values(value: str, evidence: Evidence, limits: Interval) -> FloatArray:
    """The predicted value of each region; the midpoint of its interval if nothing is known."""
    if value == "midpoint":
        return limits.midpoint
    if value == "mean":
        rates = weighted_rates(evidence.tally)
    elif evidence.relative_mass is None:
        raise InvalidTypeError(
            "relative_mass", ("be given for ", Setting("value", value)), got="None"
        )
    else:
        rates = known_mass_rates(evidence.tally, evidence.relative_mass)
    unknown = np.isnan(rates) | (evidence.tally.counts == 0)
    return np.where(unknown, limits.midpoint, np.clip(rates, 0.0, 1.0))


def remarks_on(tally: Tally, ratio: DensityRatio | None, remark: str | None) -> tuple[str, ...]:
    """What a reader should know about the weights besides the limits."""
    remarks = [] if remark is None else [f"the interval is {remark}"]
    if n_weightless := int(np.count_nonzero(weight_sums(tally).w.rounded() <= 0.0)):
        remarks.append(
            f"{n_weightless} of {tally.n_regions} regions have no weight: the interval"
            " there is [0, 1]"
        )
    if ratio is not None and hasattr(ratio, "diagnostics_"):  # a user-written ratio may lack them
        remarks.append(ratio.diagnostics_.sentence)
    return tuple(remarks)
