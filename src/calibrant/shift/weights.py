"""Importance weights of the calibration rows, given or estimated from unlabelled rows; and relative
masses of regions, known or counted, with the values predicted with them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from calibrant._typing import ArrayLike, FeatureRows, FloatArray, IndexArray
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.parameters import DataAssumptions
from calibrant.calibrators.regions.weighted_rows import at_most, checked_bound, weights_of
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.interval import Interval
from calibrant.limits.shift.evidence import Evidence, weight_sums, weighted_rates
from calibrant.limits.shift.oracle import as_relative_mass, known_mass_rates
from calibrant.params.arrays import as_weights, check_rows, select_rows
from calibrant.sample.reader import in_memory
from calibrant.sample.rows import Rows
from calibrant.sample.sources.memory import MemoryRows
from calibrant.shift.ratios.density_ratio import DensityRatio, row_count
from calibrant.text.sentences import Setting

Masses: TypeAlias = ArrayLike | Callable[[Partition], ArrayLike] | None
"""The relative mass of each region, or a function from the partition to these masses."""


class GivenMasses(NamedTuple):
    """What is given about relative masses, and unlabelled scores of both populations to count them
    in.
    """

    relative_mass: Masses = None
    target_scores: ArrayLike | None = None
    source_scores: ArrayLike | None = None

    def known_in(self, partition: Partition) -> FloatArray | None:
        """The relative mass of each region, if known."""
        given = self.relative_mass
        masses = given(partition) if callable(given) else given
        return None if masses is None else as_relative_mass(masses, partition.n_regions)

    def counted_in(self, binned: Binned, data: Rows) -> FloatArray:
        """Relative mass of each region from unlabelled counts, as estimated in the paper's appendix.

        NaN for a region without target rows. By default the source scores are those of the data.
        """
        if self.target_scores is None:
            rule = ("be given for ", Setting("value", "counted-mass"))
            raise InvalidTypeError("target_scores", rule, got="None")
        source = data.collect().scores if self.source_scores is None else self.source_scores
        partition = binned.partition
        column = binned.classes.positive_index
        shares = []
        for name, scores in (("source_scores", source), ("target_scores", self.target_scores)):
            regions = partition.regions_of(partition.prepare(scores, positive_column=column))
            if not regions.size:
                raise InvalidValueError(name, "have at least one row", got="none")
            shares.append(np.bincount(regions, minlength=partition.n_regions) / regions.size)
        masses = np.full(partition.n_regions, np.nan)
        np.divide(shares[0], shares[1], out=masses, where=shares[1] > 0.0)
        return masses


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


class Features(NamedTuple):
    """Features of the labelled rows, of more rows of the same population, and of target rows."""

    rows: FeatureRows | None
    source: FeatureRows | None
    target: FeatureRows | None


def rows_with_weights(
    rows: MemoryRows,
    importance_weight: ArrayLike | None,
    features: Features,
    ratio: DensityRatio | None,
    assumptions: DataAssumptions,
    fitted_on: IndexArray | None = None,
) -> tuple[MemoryRows, DensityRatio | None]:
    """The rows with the given or estimated weights, and the fitted ratio if they were estimated.

    Raise an error if they contradict what was stated about them. `fitted_on` are the rows on which
    the ratio is fitted, if not on all.
    """
    fitted = None
    name = "importance_weight"
    if importance_weight is None:
        fitted, weights = estimated_weights(len(rows), ratio, features, fitted_on)
        name = "the estimated importance weight"
    elif features.target is None:
        weights = as_weights(importance_weight, len(rows))
    else:
        rule = "be None if importance_weight is given"
        raise InvalidTypeError("X_target", rule, got="both", advice="pass one")
    checked_bound(weights, assumptions.weight_bound, name)
    floor = assumptions.weight_floor
    check_rows(weights < floor, weights, name, f"be at least weight_floor={floor:g}")
    return replace(rows, weights=weights), fitted


def estimated_weights(
    n_rows: int,
    ratio: DensityRatio | None,
    features: Features,
    fitted_on: IndexArray | None = None,
) -> tuple[DensityRatio, FloatArray]:
    """Fit the ratio, and return it with the weights of the labelled rows.

    Without further source rows, it is fitted on the labelled rows: all, or those in `fitted_on`.
    """
    if ratio is None:
        advice = (
            "set ",
            Setting("ratio", python="ratio=ULSIF()"),
            " and pass X and X_target to estimate it",
        )
        raise InvalidTypeError("importance_weight", "be given", got="None", advice=advice)
    X, source, target = features
    if X is None or target is None:
        name = "X" if X is None else "X_target"
        raise InvalidTypeError(name, "be given to estimate importance weights", got="None")
    if row_count(X) != n_rows:
        raise InvalidValueError("X", f"have one row per score, {n_rows:,}", got=f"{row_count(X):,}")
    if source is None:
        source = X if fitted_on is None else select_rows(X, fitted_on)
    from sklearn.base import clone

    fitted: DensityRatio = clone(ratio).fit(source, target)
    return fitted, as_weights(fitted.predict(X), n_rows)


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


def bound_on(largest: float, assumptions: DataAssumptions) -> float:
    """The stated bound on the weights, which the largest weight must obey; without one, the largest
    weight.
    """
    bound = assumptions.weight_bound
    if bound is None:
        return largest
    if largest > bound:
        raise InvalidValueError("importance_weight", at_most(bound), got=f"{largest:g}")
    return float(bound)
