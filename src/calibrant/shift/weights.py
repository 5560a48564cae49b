"""Where importance weights come from."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from calibrant._input import as_weights
from calibrant._text import Setting
from calibrant._typing import ArrayLike, FloatArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.partition import Partition
from calibrant.ratios import DensityRatio
from calibrant.ratios.base import row_count

NOTHING = 1e-100  # squares of smaller weights vanish, and with them their variance


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What is known of the weights of the calibration rows.

    Attributes
    ----------
    known : bool
        Whether they were given as exact, not estimated.
    bound : float
        U: the bound given, or the largest weight seen.
    bounded : bool
        Whether the bound was given.
    values : float array of shape (n,)
        The weights; empty where only their sums are known.
    ratio : DensityRatio or None
        The fitted ratio, where weights were estimated.
    """

    known: bool
    bound: float
    bounded: bool
    values: FloatArray = field(default_factory=lambda: np.empty(0))
    ratio: DensityRatio | None = None


def estimated_weights(
    n_rows: int, ratio: DensityRatio | None, X: Any, X_source: Any, X_target: Any
) -> tuple[DensityRatio, FloatArray]:
    """Fit the ratio, and return it with the weights that it gives the rows of X."""
    if ratio is None:
        advice = ("set ", Setting("ratio", python="ratio=ULSIF()"), " and pass X and X_target to estimate it")
        raise InvalidTypeError("importance_weight", "be given", got="None", advice=advice)
    for name, rows in (("X", X), ("X_target", X_target)):
        if rows is None:
            raise InvalidTypeError(name, "be given to estimate importance weights", got="None")
    if row_count(X) != n_rows:
        raise InvalidValueError("X", f"have one row per score, {n_rows:,}", got=f"{row_count(X):,}")
    fitted: DensityRatio = clone(ratio).fit(X if X_source is None else X_source, X_target)
    return fitted, as_weights(fitted.predict(X), n_rows)


def counted_mass(
    partition: Partition, source_scores: ArrayLike, target_scores: ArrayLike | None, positive_column: Literal[0, 1]
) -> FloatArray:
    """Relative mass of each region from unlabelled counts (`eq:m_b_alt_est`); NaN where no target row is."""
    if target_scores is None:
        rule = ("be given for ", Setting("value", "counted-mass"))
        raise InvalidTypeError("target_scores", rule, got="None")
    shares = []
    for name, scores in (("source_scores", source_scores), ("target_scores", target_scores)):
        regions = partition.regions_of(partition.prepare(scores, positive_column=positive_column))
        if not regions.size:
            raise InvalidValueError(name, "have at least one row", got="none")
        shares.append(np.bincount(regions, minlength=partition.n_regions) / regions.size)
    masses = np.full(partition.n_regions, np.nan)
    np.divide(shares[0], shares[1], out=masses, where=shares[1] > 0.0)
    return masses
