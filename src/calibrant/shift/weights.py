"""Importance weights of the calibration rows, given or estimated from unlabelled rows."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from calibrant._typing import ArrayLike, FeatureRows, FloatArray, IndexArray
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.parameters import DataAssumptions
from calibrant.calibrators.regions.weighted_rows import at_most, checked_bound, weights_of
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.shift.evidence import weight_sums
from calibrant.params.arrays import as_weights, select_rows
from calibrant.sample.reader import in_memory
from calibrant.sample.rows import Rows
from calibrant.sample.sources.memory import MemoryRows
from calibrant.shift.ratios.density_ratio import DensityRatio, row_count
from calibrant.text.sentences import Setting


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
