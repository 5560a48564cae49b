"""Calibrated for every subgroup: the mean of two corrections, whose errors are bounded by rows that
they were not fitted to.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import ArrayLike, AttributeRows, FloatArray, Seed
from calibrant.calibrators.regions.weakness import (
    warn_if_weak,
    warn_without_subgroups,
)
from calibrant.calibrators.score_calibrator import ScoreCalibrator, fitted_copy
from calibrant.calibrators.subgroups.boosted_logit import BoostedLogit
from calibrant.calibrators.subgroups.corrected import (
    PartOfRows,
    Repair,
    base_logits,
    group_cap,
    three_parts,
)
from calibrant.calibrators.subgroups.features import Feature, score_column
from calibrant.calibrators.subgroups.guarantee import SubgroupGuarantee
from calibrant.calibrators.subgroups.proof import (
    average_predictions,
    error_limits,
    standard_errors,
    subgroup_rate_limits,
)
from calibrant.calibrators.table import Table
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.subgroup_family import MOST_ORDERS, SubgroupFamily
from calibrant.errors import InvalidTypeError, InvalidValueError, no_table
from calibrant.guarantee.statement import Claim, Edges, Statement
from calibrant.limits.interval import PairOfLimits, check_widths
from calibrant.params.arrays import as_scores
from calibrant.params.attributes import AttributeColumn, read_attributes
from calibrant.params.estimator import check_is_fitted
from calibrant.params.frames import predicts
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import Classes
from calibrant.params.rules import (
    FRACTION_OR_COUNT,
    TEXT,
    Instance,
    Integer,
    Names,
    Number,
    Optional,
    RuleTable,
    error_budget,
)
from calibrant.params.state_kinds import Counts, Lists, Nested, Numbers, OneCount
from calibrant.sample.attribute_columns import attribute_columns
from calibrant.sample.facts import Reach
from calibrant.sample.reader import bound_of, check_group_target, is_scored, refuse
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import shown

_RATES_SHARE = 0.1  # share of alpha for limits on rates; the rest is for errors
_GROUP_SIZE = Optional(Integer(1))
_ROWS_BEHIND = ("n_pilot", "n_proving", "n_groups", "max_group_size")
_N_FOLDS = 4  # of the rows that a correction is fitted to, which choose the number of trees
_THEOREM = "Ville's inequality for bets on label minus prediction, in all subgroups simultaneously"


class _ProvesSubgroups(ScoreCalibrator):
    """The learned attributes, which are not parameters."""

    guarantee_: SubgroupGuarantee
    repairs_: tuple[Repair, ...]


@dataclass(eq=False, repr=False)
class SubgroupCalibrator(_ProvesSubgroups):
    """Correct probabilities by attributes, and bound how far off they can be in every subgroup at
    once.

    Two small gradient-boosted corrections of the logit are each fitted to about half of the rows,
    and the prediction is their mean. Each half bounds the errors of the correction
    that was fitted without it. So all rows repair, and all but the pilot rows give the limits.
    Subgroups overlap: they are all values of
    single attributes, pairs and triples that have enough of the pilot rows.

    Guarantee, for every distribution of scores, attributes and labels: with probability at least
    `confidence_level` over the rows, in every subgroup simultaneously, the rate among new rows
    differs from their average prediction by at most the subgroup's epsilon. Assumptions: the rows
    and new rows are i.i.d.

    Parameters
    ----------
    attributes : list of str, default=None
        The columns of `fit(..., attributes=frame)` that define subgroups and that the correction
        uses; None takes all.
    order : int, default=2
        The largest number of attributes that define a subgroup, 1 to 3.
    min_share : float, default=0.05
        The smallest share of the pilot rows that a subgroup must have.
    base : calibrator of scores, default=None
        A calibrator that first turns scores into probabilities. None takes scores as probabilities.
    pilot : float or int, default=0.1
        Fraction or number of rows that determine the subgroups. Both corrections are fitted to
        them, and they guarantee nothing. With groups, this fraction of the groups.
    confidence_level : float, default=0.9
        Confidence that everything claimed holds simultaneously.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.
    random_state : int, Generator, RandomState or None, default=0
        Seed for drawing the pilot rows and the halves.

    Attributes
    ----------
    guarantee_ : SubgroupGuarantee
        The guarantee, in numbers and in words; `guarantee_.subgroups` is a table.
    repairs_ : pair of Repair
        The fitted bases and trees, whose predictions are averaged.
    classes_ : array of shape (2,)
        The labels, sorted.

    Notes
    -----
    Numeric attributes are cut at quartiles of the pilot rows, and these rows determine the
    subgroups, so the other rows are independent draws within each subgroup. See
    `calibrant.calibrators.subgroups.proof`. Cross-validation in four folds of the rows that a
    correction is fitted to chooses the number of its trees. The prediction is not a function of one
    score, so it has no table: it can be exported to Python, but not to SQL or ONNX.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import SubgroupCalibrator
    >>> rng = np.random.default_rng(0)
    >>> old = rng.random(8_000) < 0.3
    >>> scores = rng.uniform(0.2, 0.7, size=8_000)
    >>> y = rng.random(8_000) < scores + 0.2 * old
    >>> calibrator = SubgroupCalibrator().fit(scores, y, attributes={"old": old})
    >>> calibrator.predict([0.4, 0.4], attributes={"old": [False, True]}).round(1)
    array([0.4, 0.6])
    >>> print(calibrator.guarantee_.subgroups)  # doctest: +ELLIPSIS
    subgroup      rows  average prediction   rate          limits  epsilon
    all rows     7,200 ...
    """

    _learned: ClassVar[EntryTable] = {
        "repairs": Entry(Lists(Nested(Repair), size=2), of="repairs_"),
        "names": Entry(Lists(TEXT), of="_names"),
        "subgroups": Entry(Lists(TEXT), of="guarantee_.regions"),
        "counts": Entry(Counts("subgroups"), of="guarantee_.counts"),
        "positives": Entry(Counts("subgroups"), of="guarantee_.positives"),
        "value": Entry(Numbers("subgroups", 0.0, 1.0), of="guarantee_.value"),
        "errors": Entry(PairOfLimits("subgroups", low=-1.0), of="guarantee_.errors"),
        "rates": Entry(PairOfLimits("subgroups"), of="guarantee_.interval"),
        "n_pilot": Entry(OneCount(), of="guarantee_.n_pilot"),
        "n_proving": Entry(OneCount(), of="guarantee_.n_proving"),
        "n_groups": Entry(OneCount(), of="guarantee_.n_groups"),
        "max_group_size": Entry(_GROUP_SIZE, of="guarantee_.max_group_size"),
    }
    _rules: ClassVar[RuleTable] = {
        "attributes": Optional(Names('a list of names of columns, such as ["sex", "age"]')),
        "order": Integer(1),
        "min_share": Number("a share above 0 and below 1", 0.0, 1.0, open_low=True, open_high=True),
        "base": Optional(
            Instance(ScoreCalibrator, "a calibrator of scores, such as PlattCalibrator()")
        ),
        "pilot": FRACTION_OR_COUNT,
    }

    attributes: Sequence[str] | None = None
    order: int = 2
    min_share: float = 0.05
    base: ScoreCalibrator | None = None
    _: KW_ONLY
    pilot: float = 0.1
    confidence_level: float = 0.9
    pos_label: Hashable = None
    random_state: Seed = 0

    def fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        attributes: AttributeRows | None = None,
        groups: ArrayLike | None = None,
        max_group_size: int | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Fit a correction to each half of the rows, and derive the guarantee from the other half.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or Sample
            Scores of rows that the model was not trained on; or data with scores and labels, see
            `calibrant.scored`, whose columns `attributes` are then used, and whose rows are read
            into memory.
        y : array-like of shape (n,)
            Labels of two classes.
        attributes : frame, or mapping from names to columns
            Attributes of the rows. Without any, there are no subgroups: the guarantee is about all
            rows only, and a warning says so.
        groups : array-like of shape (n,), optional
            The group of each row, such as a customer. All rows of a group are in one half, and bets
            are on whole groups: the guarantee is about rows of new groups.
        max_group_size : int, optional
            The largest number of rows that a group counts as; None takes the size of the largest
            group among the pilot rows.
        classes : pair of labels, optional
            Both labels. Required if the data may contain only one of them.

        Returns
        -------
        self
        """
        self._check_parameters()
        reason = "weights are not implemented for subgroups"
        refuse(scores, reason, "weight", advice="use Calibrator")
        refuse(scores, "subgroups are defined by attributes", "segment", advice="use attributes=")
        size = bound_of(scores, "max_group_size", max_group_size)
        rows = self._read(scores, y, classes=classes, groups=groups).collect()
        check_group_target(rows, "rows", "subgroups count by their rows")
        columns = self._columns(scores, attributes, len(rows))
        places = three_parts(rows, self.pilot, self.random_state)
        pilot, *halves = (PartOfRows.of(rows, columns, part) for part in places)
        cap = group_cap(pilot.rows, size)
        names = tuple(column.name for column in columns)
        fitting = [
            PartOfRows.of(rows, columns, np.concatenate([places[0], other]))
            for other in (places[2], places[1])
        ]
        repairs = tuple(self._repair(part.rows, part.columns) for part in fitting)
        learned = {"repairs": repairs, "names": names}
        proved = self._proved(repairs, (pilot, fitting, halves), cap)
        self._take(learned | proved, rows.known)
        self.score_range_seen_ = Reach.of(rows.scores).seen
        warn_if_weak(self.guarantee_)
        if not columns:
            warn_without_subgroups()
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.order > MOST_ORDERS:
            raise InvalidValueError("order", f"be at most {MOST_ORDERS}", got=str(self.order))

    def _columns(self, data: object, given: Any, n_rows: int) -> list[AttributeColumn]:
        if given is None and is_scored(data) and self.attributes:
            given = list(self.attributes)
        if given is None and not self.attributes:
            return []
        if given is None:
            raise InvalidTypeError(
                "attributes", f"be given: a frame with the columns {list(self.attributes or ())}"
            )
        return attribute_columns(data, given, n_rows, self.attributes)

    def _repair(self, rows: MemoryRows, columns: list[AttributeColumn]) -> Repair:
        base = None if self.base is None else fitted_copy(self.base, rows)
        logits = base_logits(base, rows.scores)
        every = [score_column(logits), *columns]
        features = [Feature.of(column) for column in every]
        bins = [feature.bins(column) for feature, column in zip(features, every, strict=True)]
        fold = np.arange(len(rows)) % _N_FOLDS
        labels = rows.codes.astype(np.float64)
        return Repair(base, BoostedLogit.fit(features, bins, logits, labels, fold))

    def _proved(
        self,
        repairs: tuple[Repair, ...],
        parts: tuple[PartOfRows, list[PartOfRows], list[PartOfRows]],
        cap: int | None,
    ) -> dict[str, Any]:
        """What the guarantee needs: from each half, what it shows about the repair that was fitted
        without it. Pilot rows chose the cuts and subgroups, and the rows of a fit its tails.
        """
        pilot, fitting, proving = parts
        levels = [AttributeLevels.of(column) for column in pilot.columns]
        known = SubgroupFamily.of(levels, pilot.codes(levels), self.order, self.min_share)
        expected = []
        halves = []
        for repair, fitted, half in zip(repairs, fitting, proving, strict=True):
            seen = known.of_other_rows(fitted.codes(levels))
            expected.append(standard_errors(fitted.subgroup_rows(seen, repair, cap)))
            family = known.of_other_rows(half.codes(levels))
            halves.append(half.subgroup_rows(family, repair, cap))
        alpha = error_budget(self.confidence_level)
        labels = [half.family.sums(half.codes.astype(np.float64)) for half in halves]
        return {
            "subgroups": tuple(known.words(number) for number in range(known.n_subgroups)),
            "counts": np.sum([half.family.counts for half in halves], axis=0),
            "positives": np.sum(labels, axis=0).astype(np.int64),
            "value": average_predictions(halves),
            "errors": error_limits(halves, expected, (1.0 - _RATES_SHARE) * alpha),
            "rates": subgroup_rate_limits(halves, _RATES_SHARE * alpha),
            "n_pilot": len(pilot.rows),
            "n_proving": sum(len(half.rows) for half in proving),
            "n_groups": sum(half.rows.n_groups() for half in proving),
            "max_group_size": cap,
        }

    @predicts
    def predict(self, scores: ArrayLike, *, attributes: AttributeRows | None = None) -> FloatArray:
        """Return the calibrated probability of the positive class, shape (n,).

        `attributes` are as in `fit`.
        """
        check_is_fitted(self)
        checked = as_scores(scores, positive_column=self.positive_index_)
        self._warn_of_other_scale(checked)
        if self._names and attributes is None:
            raise InvalidTypeError(
                "attributes", f"be given: a frame with the columns {list(self._names)}"
            )
        columns = read_attributes(attributes, len(checked), self._names) if self._names else []
        each = [repair.predict(checked, columns) for repair in self.repairs_]
        return np.asarray(np.mean(each, axis=0))

    @predicts
    def predict_proba(
        self, scores: ArrayLike, *, attributes: AttributeRows | None = None
    ) -> FloatArray:
        """Return the calibrated probabilities of both classes, shape (n, 2).

        The columns follow `classes_`.
        """
        return self._both_columns(self.predict(scores, attributes=attributes))

    @property
    def _takes_one_score(self) -> bool:
        """Whether there are no attributes."""
        return not self._names

    @property
    def _attribute_names(self) -> tuple[str, ...]:
        return self._names

    def _own_table(self, coverage: float) -> Table:
        got = f"{type(self).__name__}, whose prediction depends on attributes"
        raise no_table(got, advice="export it with to_python")

    def export_notes(self) -> tuple[str, ...]:
        """Say where an export without a table comes from, and what is guaranteed."""
        return self._table_notes()

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        counts = learned["counts"]
        positives = learned["positives"]
        if (positives > counts).any():
            raise InvalidValueError("positives", "be at most the counts", got="more")
        repairs: tuple[Repair, ...] = learned["repairs"]
        names = learned["names"]
        for repair in repairs:
            if tuple(feature.name for feature in repair.correction.features) != ("", *names):
                raise InvalidValueError("names", "be those of the features", got=shown(list(names)))
        errors = learned["errors"]
        alpha = error_budget(self.confidence_level)
        rates = learned["rates"]
        check_widths({"errors": errors, "rates": rates}, counts, alpha, "the calibrator")
        value = learned["value"]
        # the average prediction among new rows is the rate less the error
        margin = np.maximum(value - rates.lower + errors.upper, rates.upper - errors.lower - value)
        self.guarantee_ = SubgroupGuarantee(
            float(self.confidence_level),
            "betting",
            tuple(learned["subgroups"]),
            counts,
            positives,
            value,
            rates.lower,
            rates.upper,
            classes.positive,
            Statement(_THEOREM, edges=Edges.FUNCTION, claim=Claim.AVERAGE),
            errors=errors,
            margin=np.clip(margin, 0.0, 1.0),
            order=self.order,
            min_share=self.min_share,
            attributes=tuple(names),
            **{name: learned[name] for name in _ROWS_BEHIND},
        )
        self._set_classes(classes)
        self.repairs_ = repairs
        self._names = tuple(names)

    def _needs_rows(self) -> tuple[str, ...]:
        return ("counts", "limits", "trees")
