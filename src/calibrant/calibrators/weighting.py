"""Where importance weights come from, and what may be said of a result that rests on them."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from calibrant._input import as_weights, in_all
from calibrant._typing import ArrayLike, FloatArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee import Guarantee, ImportanceWeights
from calibrant.intervals.shift.base import as_weight_bound
from calibrant.partition import Partition

_ESTIMATED = (
    "the importance weights were estimated, so what is promised is asymptotic only: it holds in the limit of many rows "
    "of both populations, if the estimated weights then tend to the true ones (condition B)"
)
_NOTHING = 1e-100  # squares of smaller weights vanish, and with them their variance
_UNBOUNDED = "weight_bound was not given, and there may be larger weights than the largest seen"


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """Weights of the calibration rows, and what is known of them.

    Attributes
    ----------
    known : bool
        Whether they were given, as exact (condition A), rather than estimated (condition B).
    bound : float
        U: the bound given, or the largest weight seen.
    bounded : bool
        Whether the bound was given.
    weights : float array of shape (n,)
        The weights; empty for a calibrator that was made from a tally, or read back.
    ratio : DensityRatio or None
        The fitted ratio, where weights were estimated.
    """

    known: bool
    bound: float
    bounded: bool
    weights: FloatArray = field(default_factory=lambda: np.empty(0))
    ratio: Any = None

    def qualify(self, guarantee: Guarantee) -> Guarantee:
        """Withdraw what is not proved."""
        if not self.known:
            return guarantee.with_caveat(_ESTIMATED, supposition="the weights were exact")
        if not self.bounded:
            return guarantee.with_caveat(_UNBOUNDED, supposition="no weight is larger than those seen")
        return guarantee

    def facts(self, error: float) -> ImportanceWeights:
        """What a guarantee says of the weights."""
        return ImportanceWeights(self.known, self.bound, error)


def find_weights(
    n_rows: int,
    *,
    importance_weight: ArrayLike | None,
    ratio: Any,
    X: Any,
    X_source: Any,
    X_target: Any,
    weight_bound: float | None,
    weight_floor: float,
) -> Weighting:
    """Take the weights as given, or estimate them; refuse those that break what was said of them."""
    known = importance_weight is not None
    fitted = None
    if known:
        if X_target is not None:
            raise InvalidTypeError("X_target must be None where importance_weight is given; got both: pass one of them")
        weights = as_weights(importance_weight, n_rows)
    else:
        fitted, weights = _estimate(n_rows, ratio, X, X_source, X_target)
    if not weights.size or weights.max() < _NOTHING:
        raise InvalidValueError(
            f"importance_weight must not be zero in every row; got none above {_NOTHING:g}: no calibration row is like "
            "the target's. Known weights may be given in any unit"
        )
    name = "importance_weight" if known else "the estimated importance weight"
    bound = float(weights.max()) if weight_bound is None else as_weight_bound(weight_bound)
    _refuse(weights > bound, weights, f"{name} must be at most weight_bound={bound:g}")
    _refuse(weights < weight_floor, weights, f"{name} must be at least weight_floor={weight_floor:g}")
    return Weighting(known, bound, weight_bound is not None, weights, fitted)


def _estimate(n_rows: int, ratio: Any, X: Any, X_source: Any, X_target: Any) -> tuple[Any, FloatArray]:
    if ratio is None:
        raise InvalidTypeError(
            "importance_weight must be given, or ratio set, as in ShiftCalibrator(ratio=ULSIF()), and X and X_target "
            "given; got neither"
        )
    if X is None or X_target is None:
        missing = "X" if X is None else "X_target"
        raise InvalidTypeError(f"{missing} must be given to estimate importance weights; got None")
    if _num_samples(X) != n_rows:
        raise InvalidValueError(f"X must have one row per score, {n_rows}; got {_num_samples(X)}")
    fitted = clone(ratio).fit(X if X_source is None else X_source, X_target)
    return fitted, as_weights(fitted.predict(X), n_rows)


def _refuse(bad: Any, weights: FloatArray, rule: str) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        row = int(rows[0])
        raise InvalidValueError(f"{rule}; got {float(weights[row]):g} in row {row}, and {in_all(rows.size)}")


def counted_mass(
    partition: Partition, source_scores: ArrayLike, target_scores: ArrayLike | None, positive_column: Literal[0, 1]
) -> FloatArray:
    """Relative mass of each region from unlabelled counts (`eq:m_b_alt_est`); NaN where no target row is."""
    if target_scores is None:
        raise InvalidTypeError('target_scores must be given for value="counted-mass"; got None')
    shares = []
    for name, scores in (("source_scores", source_scores), ("target_scores", target_scores)):
        regions = partition.regions_of(partition.prepare(scores, positive_column=positive_column))
        if not regions.size:
            raise InvalidValueError(f"{name} must have at least one row; got none")
        shares.append(np.bincount(regions, minlength=partition.n_regions) / regions.size)
    masses = np.full(partition.n_regions, np.nan)
    np.divide(shares[0], shares[1], out=masses, where=shares[1] > 0.0)
    return masses
