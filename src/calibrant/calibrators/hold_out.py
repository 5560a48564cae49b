"""Probabilities that were fixed beforehand, moved little or not at all, with a bound on how far off
they can be.
"""

from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import ArrayLike, FloatArray, Seed
from calibrant.calibrators._held_out import (
    HeldOutLimits,
    held_out_limits,
    largest_group,
    means_of,
)
from calibrant.calibrators._recentre import Moved, recentred
from calibrant.calibrators.curve.estimator import automatic_regions
from calibrant.calibrators.curve.pieces import Pieces, PiecewiseCalibrator
from calibrant.calibrators.regions.parameters import N_BINS
from calibrant.calibrators.regions.weakness import warn_if_weak, warn_of_cap
from calibrant.calibrators.regions.weighted_rows import GROUP_FACTS, OF_GROUPS, group_facts
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.tally import Tally, check_tally
from calibrant.errors import InvalidValueError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.statement import Claim, GroupFacts, Statement
from calibrant.limits.error_budget import budgets
from calibrant.limits.interval import PairOfLimits, check_widths
from calibrant.limits.region_limits import GroupDesign
from calibrant.params.arrays import check_in_range
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import Classes
from calibrant.params.random import RandomSource, fingerprint_of
from calibrant.params.rules import CheckedParameters, Flag, RuleTable, error_budget
from calibrant.params.state_kinds import Nested, Numbers, Tabled
from calibrant.sample.reader import read_rows
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import Setting, Text, shown

_FEWEST_ROWS = (
    120  # rows in a region and, below, of the rarer class, if there are more than two regions
)
_FEWEST_OF_RARER_CLASS = 10
_DERIVED = {  # attributes that need not be pickled
    "partition_",
    "tally_",
    "guarantee_",
    "n_features_in_",
    "pieces_",
    "table_",
    "_lines",
    "_limits",
    "_moved",
    "_facts",
    "score_range_seen_",
}
_OF_ROWS = (
    "Ville's inequality for bets on label minus probability, and exact binomial limits for rare"
    " labels"
)


_SIZE = Setting("calibration_size")
_MORE_ROWS: Text = ("Use more rows, or hold out more of them with a larger ", _SIZE)
_MORE_GROUPS: Text = ("Use more groups, or hold out more of them with a larger ", _SIZE)


@dataclass(eq=False, repr=False)
class HoldOutCalibrator(PiecewiseCalibrator, CheckedParameters):
    """Bounds how far probabilities can be off on average, in every region simultaneously, and moves
    them little or not at all.

    For probabilities that were fixed before the rows of `fit` were seen: those of a model that was
    calibrated on other rows, the pilot rows. `CalibratedClassifier` uses it on the rows that it
    holds out. Where the rows show that probabilities are off, they are moved towards the rates, in
    order, until epsilon is small.

    Guarantee, for every distribution of probabilities and labels: with probability at least
    `confidence_level` over the rows of `fit`, in every region simultaneously, the average
    probability differs from the true rate of the positive class by at most the region's epsilon.
    Assumptions: these rows and future rows are i.i.d. (with `groups`: whole groups are), and the
    probabilities do not depend on these rows.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        Number of regions, of about as many pilot rows each. "auto" is half of the cube root of the
        number of rows, or of groups; fewer, but at least 2, where a region would have fewer than
        120 rows, or fewer than 10 of the rarer class, as pilot rows have it.
    confidence_level : float, default=0.9
        Confidence that everything claimed holds simultaneously.
    moves : bool, default=True
        Whether probabilities may move towards the rates; False keeps them, as where those of
        several classes add up to 1.
    pos_label : object, default=None
        The positive class; needed unless the labels are 0 and 1, -1 and 1, or bools.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the order in which rows are bet on.
    n_jobs : int or None, default=None
        Threads for very large inputs; results never depend on it.

    Attributes
    ----------
    guarantee_ : Guarantee
        The guarantee, in numbers and in words. Its `value` is the average probability of each
        region.
    partition_, tally_
        The regions, and what was counted in them.
    classes_ : array of shape (2,)
        The labels, sorted.

    Notes
    -----
    The pilot rows cut the regions, guess variances, and decide how regions share the error budget,
    and where exact binomial limits take the place of bets. See `calibrant.calibrators._held_out`.
    The error budget: 5% for limits on mass, of the rest 2% for limits on the average probability
    of each region.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators.hold_out import HoldOutCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=5_000)
    >>> y = rng.uniform(size=5_000) < p
    >>> proved = HoldOutCalibrator().fit(p[4_000:], y[4_000:], pilot_scores=p[:4_000],
    ...     pilot_y=y[:4_000])
    >>> bool(abs(proved.predict([0.25])[0] - 0.25) < 0.05), proved.guarantee_.epsilon < 0.13
    (True, True)
    """

    _rules: ClassVar[RuleTable] = {"n_bins": N_BINS, "moves": Flag()}
    _learned: ClassVar[EntryTable] = {
        "partition": Entry(Nested(Partition), of="partition_"),
        "tally": Entry(Nested(Tally), of="tally_"),
        "value": Entry(Numbers("tally.n_regions", 0.0, 1.0), of="_limits.value"),
        "curve": Entry(Tabled(Numbers("tally.n_regions", 0.0, 1.0), 2), of="_moved.ends"),
        "errors": Entry(PairOfLimits("tally.n_regions", low=-1.0), of="_limits.errors"),
        "averages": Entry(PairOfLimits("tally.n_regions"), of="_limits.averages"),
        "rates": Entry(PairOfLimits("tally.n_regions"), of="_limits.rates"),
        "groups": Entry(GROUP_FACTS, of="guarantee_.statement.groups", absent=None),
        "falls": Entry(Flag(), of="guarantee_.statement.falls", absent=False),
        "over_seed": Entry(Flag(), of="guarantee_.statement.over_seed", absent=False),
    }

    n_bins: int | str = "auto"
    _: KW_ONLY
    confidence_level: float = 0.9
    moves: bool = True
    pos_label: Hashable = None
    random_state: "Seed" = 0
    n_jobs: int | None = None

    def fit(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        *,
        pilot_scores: ArrayLike,
        pilot_y: ArrayLike,
        groups: ArrayLike | None = None,
        pilot_groups: ArrayLike | None = None,
        source: RandomSource | None = None,
        score_range: tuple[float, float] = (0.0, 1.0),
        classes: ArrayLike | None = None,
    ) -> Self:
        """Count the labels of each region, and derive the guarantee.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Probabilities of the positive class, of rows that played no part in making them.
        y : array-like of shape (n,)
            Their labels, of two classes.
        pilot_scores, pilot_y : array-like of shape (m,)
            Probabilities and labels of other rows, which only choose the regions.
        groups, pilot_groups : array-like of shape (n,) and (m,), optional
            The group of each row. No group may have rows of both kinds.
        source : RandomSource, optional
            What draws the order of bets, independently of probabilities and labels. By default
            `random_state` draws it for these rows.
        score_range : (float, float)
            What no probability can lie beyond, fixed without these rows: the ends of a curve that
            is constant beyond them, for example. A narrow range makes limits sharper. Later
            probabilities outside raise an error.
        classes : pair of labels, optional
            Both labels, needed where the data may have only one of them.

        Returns
        -------
        self
        """
        self._check_parameters()
        data = self._probabilities(scores, y, groups, classes, score_range)
        pilot = self._probabilities(pilot_scores, pilot_y, pilot_groups, classes, score_range)
        if self.n_bins == "auto":
            n_units = len(data) if data.groups is None else data.n_groups()
            n_bins = proving_regions(n_units, float(pilot.codes.mean()))
        else:
            n_bins = int(self.n_bins)
        cut = ScorePartition.from_tied_scores(pilot.scores, min(n_bins, pilot.scores.size))
        partition = ScorePartition(cut.edges, score_range)
        alpha = error_budget(self.confidence_level)
        for_rates = budgets(alpha)[0] if groups is None else alpha
        if source is None:
            fingerprint = fingerprint_of(data.scores, labels=data.codes)
            source = RandomSource.of(self.random_state, "order of bets", rows=fingerprint)
        unmoved = held_out_limits(data, partition, pilot, for_rates, source.generator())
        tally, known = data.without_groups().tally(partition)
        knots = _knots(partition)
        moved = Moved.nowhere(knots)
        if self.moves:
            moved = recentred(knots, unmoved.errors, unmoved.averages, tally.counts, pilot.scores)
        limits = unmoved.of(moved)
        facts = None
        if groups is not None:
            design = GroupDesign(largest_group(pilot, partition), aside=pilot.n_groups())
            entries = means_of(data.codes, data, partition, design.max_size)
            # what is bet on is label minus probability, so a design effect of rates says nothing
            facts = group_facts(design, data.n_groups(), entries, unmoved.rates)
            facts = replace(facts, design_effect=np.nan)
        self._set_limits(partition, tally, limits, moved, known, facts)
        warn_if_weak(self.guarantee_)
        warn_of_cap(self, self.guarantee_)
        return self

    def _probabilities(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None,
        classes: ArrayLike | None,
        score_range: tuple[float, float],
    ) -> MemoryRows:
        data = read_rows(
            scores, y, classes=classes, pos_label=self.pos_label, groups=groups
        ).collect()
        check_in_range(data.scores, *score_range)
        return replace(data, scores=np.asarray(data.scores, dtype=np.float64))

    def falling(self) -> Self:
        """Return self, with a guarantee that says that probabilities decrease as the models' scores
        increase.
        """
        self.guarantee_ = self.guarantee_.with_facts(falls=True)
        return self

    def __getstate__(self) -> Any:
        """What is pickled: the content of a model file, from which everything else is derived."""
        state = dict(vars(self))
        guarantee = getattr(self, "guarantee_", None)
        if guarantee is None or guarantee.confidence_level != self.confidence_level:
            return state  # not fitted, or another level was set since then
        if guarantee.statement.caveats:
            return state  # what weakens a guarantee is not derived again
        kept = {name: value for name, value in state.items() if name not in _DERIVED}
        return {**kept, "learned": (self._state(), guarantee.read)}

    def __setstate__(self, state: Any) -> None:
        """Restore the pickled state."""
        parameters = dict(state)
        learned = parameters.pop("learned", None)
        vars(self).update(parameters)
        if learned is not None:
            saved, read = learned
            self._restore(saved, Classes(self.classes_, self.positive_index_))
            self.guarantee_ = replace(self.guarantee_, read=read)

    def _set_limits(
        self,
        partition: ScorePartition,
        tally: Tally,
        limits: HeldOutLimits,
        moved: Moved,
        classes: Classes,
        of_groups: GroupFacts | None,
    ) -> None:
        """Derive the guarantee from limits that were found or loaded."""
        theorem = _OF_ROWS if of_groups is None else OF_GROUPS
        to_do = _MORE_ROWS if of_groups is None else _MORE_GROUPS
        statement = Statement(theorem, claim=Claim.AVERAGE, groups=of_groups, to_do=to_do)
        level = float(self.confidence_level)
        guarantee = Guarantee.from_limits(
            partition,
            tally,
            limits.rates,
            level,
            "betting",
            statement,
            limits.value,
            classes.positive,
            for_mass=budgets(error_budget(level))[1] if of_groups is None else None,
            margin=np.maximum(
                limits.averages.upper - limits.value, limits.value - limits.averages.lower
            ),
            errors=limits.errors,
        )
        self._set_fitted(partition, tally, guarantee, classes)
        self._set_pieces(Pieces(partition, moved.left, moved.right), limits.errors)
        self._limits = limits
        self._moved = moved

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        tally: Tally = learned["tally"]
        read: Partition = learned["partition"]
        check_tally(read, tally)
        partition = read.bins_by_segment.get(None)
        if partition is None:
            raise InvalidValueError("partition", "be bins of one score", got=type(read).__name__)
        left, right = learned["curve"]
        if (np.diff(np.column_stack([left, right]).ravel()) < 0.0).any():
            raise InvalidValueError("curve", "never fall", got=shown(learned["curve"].tolist()))
        moved = Moved(_knots(partition), left, right)
        limits = HeldOutLimits(
            learned["errors"], learned["averages"], learned["rates"], learned["value"]
        )
        widths = {"errors": limits.errors, "rates": limits.rates}
        alpha = error_budget(self.confidence_level)
        check_widths(widths, tally.counts, alpha, "the calibrator")
        self._set_limits(partition, tally, limits, moved, classes, learned["groups"])
        if learned["falls"]:
            self.falling()
        if learned["over_seed"]:
            self.set_over_seed()

    def _needs_rows(self) -> tuple[str, ...]:
        return ("counts", "limits", "averages")


def proving_regions(n_units: int, rate: float) -> int:
    """The number of regions for which this many rows, or groups, can guarantee something.

    `rate` is that of pilot rows.

    Neither depends on the label of a held-out row, so the regions are fixed before any such label is
    seen.

    >>> [proving_regions(n, 0.5) for n in (2, 100, 280, 600, 10_000)], proving_regions(600, 0.02)
    ([1, 2, 2, 4, 10], 2)
    """
    most = automatic_regions(n_units)
    rarer = n_units * min(rate, 1.0 - rate)
    wanted = min(most, n_units // _FEWEST_ROWS, int(rarer / _FEWEST_OF_RARER_CLASS))
    return max(wanted, min(2, most))


def _knots(partition: ScorePartition) -> FloatArray:
    """The ends of the regions."""
    return np.concatenate([[partition.low], partition.edges, [partition.high]])
