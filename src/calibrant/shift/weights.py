"""Importance weights: where they come from, and what was learned from weighted rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from calibrant._typing import ArrayLike, FeatureRows, FloatArray
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.counted import check_tally
from calibrant.limits.interval import Interval
from calibrant.limits.shift.evidence import Evidence
from calibrant.params.arrays import as_weights
from calibrant.params.rules import check_state
from calibrant.params.saved_state import read_flag, read_limits, read_numbers
from calibrant.shift.ratios.density_ratio import DensityRatio, row_count
from calibrant.text.sentences import Setting, shown

_KEYS = ("partition", "tally", "lower", "upper", "value", "known", "bound", "bounded", "remarks")


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


@dataclass(frozen=True, slots=True, eq=False)
class ShiftResult:
    """Regions, sums, limits as if the weights were exact, predicted values, and what is known of
    the weights.
    """

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
        partition = Partition.from_dict(state["partition"])
        tally = Tally.from_dict(state["tally"])
        check_tally(partition, tally)
        bound = Evidence(tally, state["bound"]).weight_bound  # which checks it
        limits = Interval(*read_limits(state["lower"], state["upper"], tally.n_regions))
        value = read_numbers(state["value"], "value", size=tally.n_regions, low=0.0, high=1.0)
        known = read_flag(state, "known")
        bounded = read_flag(state, "bounded")
        remarks = state["remarks"]
        if not isinstance(remarks, list | tuple) or not all(
            isinstance(remark, str) for remark in remarks
        ):
            raise InvalidTypeError("remarks", "be a list of text", got=shown(remarks))
        return cls(partition, tally, limits, value, known, bound, bounded, tuple(remarks))


class Features(NamedTuple):
    """Features of the labelled rows, of more rows like them, and of rows of the target population."""

    rows: FeatureRows | None
    source: FeatureRows | None
    target: FeatureRows | None


def estimated_weights(
    n_rows: int, ratio: DensityRatio | None, features: Features
) -> tuple[DensityRatio, FloatArray]:
    """Fit the ratio, and return it with the weights of the labelled rows."""
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
    fitted: DensityRatio = clone(ratio).fit(X if source is None else source, target)
    return fitted, as_weights(fitted.predict(X), n_rows)


def counted_mass(
    partition: Partition,
    source_scores: ArrayLike,
    target_scores: ArrayLike | None,
    positive_column: Literal[0, 1],
) -> FloatArray:
    """Relative mass of each region from unlabelled counts (`eq:m_b_alt_est`).

    NaN where no target row is.
    """
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
