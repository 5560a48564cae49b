"""Importance weights: their origin, and what was learned from weighted rows."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.base import clone

from calibrant._typing import ArrayLike, FeatureRows, FloatArray, IndexArray
from calibrant.calibrators.regions.unit_rates import WEIGHTED_GROUPS
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally, check_tally
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.statement import GroupFacts
from calibrant.limits.interval import Interval
from calibrant.limits.shift.evidence import WEIGHT_BOUND_OF_TALLY
from calibrant.params.arrays import as_weights
from calibrant.params.declared_state import Inline, Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import TEXT, Flag
from calibrant.params.some_rows import taken
from calibrant.params.state_kinds import Lists, Maybe, Nested, Numbers
from calibrant.shift.ratios.density_ratio import DensityRatio, row_count
from calibrant.text.sentences import Setting


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What is known about the weights of the calibration rows.

    Attributes
    ----------
    known : bool
        Whether they were given as exact, not estimated.
    bound : float
        U: the given bound, or the largest weight seen.
    bounded : bool
        Whether the bound was given.
    values : float array of shape (n,)
        The weights; empty if only their sums are known.
    ratio : DensityRatio or None
        The fitted ratio, if weights were estimated.
    """

    known: bool
    bound: float
    bounded: bool
    values: FloatArray = field(default_factory=lambda: np.empty(0))
    ratio: DensityRatio | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ShiftResult(Saved):
    """Regions, sums, limits as if the weights were exact, predicted values, what is known about the
    weights and, if groups were counted whole, about the groups.
    """

    _entries: ClassVar[EntryTable] = {
        "partition": Nested(Partition),
        "tally": Nested(Tally),
        "limits": Inline(Interval, {"n_regions": "tally.n_regions"}),
        "value": Numbers("tally.n_regions", 0.0, 1.0),
        "known": Flag(),
        "bound": WEIGHT_BOUND_OF_TALLY,
        "bounded": Flag(),
        "remarks": Lists(TEXT),
        "groups": Entry(Maybe(WEIGHTED_GROUPS), absent=None),
    }

    partition: Partition
    tally: Tally
    limits: Interval
    value: FloatArray
    known: bool
    bound: float
    bounded: bool
    remarks: tuple[str, ...]
    groups: GroupFacts | None = None

    def _check_state(self, known: Known) -> None:
        check_tally(self.partition, self.tally)

    @property
    def needs_no_bound(self) -> bool:
        """Whether no bound on the weights was given, and none is needed.

        The weight of a group is then capped, and the cap was set by pilot groups.
        """
        return not self.bounded and self.groups is not None and self.groups.target == "rows"


class Features(NamedTuple):
    """Features of the labelled rows, of more rows of the same population, and of target rows."""

    rows: FeatureRows | None
    source: FeatureRows | None
    target: FeatureRows | None


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
        source = X if fitted_on is None else taken(X, fitted_on)
    fitted: DensityRatio = clone(ratio).fit(source, target)
    return fitted, as_weights(fitted.predict(X), n_rows)


def counted_mass(
    partition: Partition,
    source_scores: ArrayLike,
    target_scores: ArrayLike | None,
    positive_column: Literal[0, 1],
) -> FloatArray:
    """Relative mass of each region from unlabelled counts, as estimated in the paper's appendix.

    NaN for a region without target rows.
    """
    if target_scores is None:
        rule = ("be given for ", Setting("value", "counted-mass"))
        raise InvalidTypeError("target_scores", rule, got="None")
    shares = []
    for name, scores in (
        ("source_scores", source_scores),
        ("target_scores", target_scores),
    ):
        regions = partition.regions_of(partition.prepare(scores, positive_column=positive_column))
        if not regions.size:
            raise InvalidValueError(name, "have at least one row", got="none")
        shares.append(np.bincount(regions, minlength=partition.n_regions) / regions.size)
    masses = np.full(partition.n_regions, np.nan)
    np.divide(shares[0], shares[1], out=masses, where=shares[1] > 0.0)
    return masses
