"""Calibrated for every subgroup: a correction fitted to one part of the rows, proved on the other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from calibrant._typing import ArrayLike, AttributeRows, FloatArray, Seed
from calibrant.calibrators.regions.weakness import (
    reported_by_caller,
    warn_if_weak,
    warn_without_subgroups,
)
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.calibrators.subgroups.boosted_logit import BoostedLogit
from calibrant.calibrators.subgroups.corrected import (
    SMALLEST,
    PartOfRows,
    ScoredTrees,
    base_logits,
    corrected,
)
from calibrant.calibrators.subgroups.features import Feature, score_column
from calibrant.calibrators.subgroups.guarantee import SubgroupFacts, SubgroupGuarantee
from calibrant.calibrators.subgroups.parts import TwoParts, group_cap
from calibrant.calibrators.subgroups.proof import (
    Guesses,
    error_limits,
    prediction_limits,
)
from calibrant.calibrators.tables.table import Table
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.subgroup_family import MOST_ORDERS, SubgroupFamily
from calibrant.errors import InvalidTypeError, InvalidValueError, no_table
from calibrant.guarantee.statement import Claim, Edges, Statement
from calibrant.limits.interval import Interval, PairOfLimits
from calibrant.limits.least_width import check_widths
from calibrant.params.arrays import as_scores
from calibrant.params.attributes import AttributeColumn, read_attributes
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
from calibrant.params.state_kinds import Counts, Lists, Maybe, Nested, Numbers, OneCount
from calibrant.sample.attribute_columns import attribute_columns
from calibrant.sample.facts import Reach
from calibrant.sample.reader import bound_of, check_group_target, is_scored, refuse
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import shown

_AVERAGES_SHARE = 0.1  # share of alpha for limits on average predictions
_GROUP_SIZE = Optional(Integer(1))
_N_FOLDS = 4  # of the fitting rows, which choose the number of trees
_THEOREM = "Ville's inequality for bets on label minus prediction, in all subgroups simultaneously"


class _ProvesSubgroups(ScoreCalibrator):
    """The learned attributes, which are not parameters."""

    guarantee_: SubgroupGuarantee
    correction_: BoostedLogit
    base_: ScoreCalibrator | None


@dataclass(eq=False, repr=False)
class SubgroupCalibrator(_ProvesSubgroups):
    """Correct probabilities by attributes, and prove how far off they can be in every subgroup at
    once.

    A small gradient-boosted correction of the logit is fitted to one part of the rows. The other
    part is used for the proof. Subgroups overlap: they are all values of single attributes, pairs
    and triples that have enough of the rows for fitting.

    Claimed, for every distribution of scores, attributes and labels: with probability at least
    `confidence_level` over the rows, in every subgroup simultaneously, the rate among new rows
    differs from their average prediction by at most the subgroup's epsilon. Assumed: the rows and
    new rows are i.i.d.

    Parameters
    ----------
    attributes : list of str, default=None
        The columns of `fit(..., attributes=frame)` that define subgroups and that the correction
        uses; None takes all.
    order : int, default=2
        The largest number of attributes that define a subgroup, 1 to 3.
    min_share : float, default=0.05
        The smallest share of the rows for fitting that a subgroup must have.
    base : calibrator of scores, default=None
        A calibrator that first turns scores into probabilities. None takes scores as probabilities.
    pilot : float or int, default=0.5
        Fraction or number of rows that the base and the correction are fitted to; the others are
        used for the proof. With groups, this fraction of the groups.
    confidence_level : float, default=0.9
        Confidence that everything claimed holds simultaneously.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.
    random_state : int, Generator, RandomState or None, default=0
        Seed for drawing the rows for fitting.

    Attributes
    ----------
    guarantee_ : SubgroupGuarantee
        The guarantee, in numbers and in words; `guarantee_.subgroups` is a table.
    correction_ : BoostedLogit
        The trees.
    base_ : calibrator of scores or None
        The fitted base.
    classes_ : array of shape (2,)
        The labels, sorted.

    Notes
    -----
    Numeric attributes are cut at quartiles of the rows for fitting, and these rows determine the
    subgroups, so the rows for the proof are independent draws within each subgroup. See
    `calibrant.calibrators.subgroups.proof`. Cross-validation in four folds of the rows for fitting
    chooses the number of trees. The prediction is not a function of one score, so it has no table:
    it can be exported to Python, but not to SQL or ONNX.

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
    all rows     4,000 ...
    """

    _learned: ClassVar[EntryTable] = {
        "base": Entry(Maybe(Nested(ScoreCalibrator)), of="base_"),
        "correction": Entry(Nested(BoostedLogit), of="correction_"),
        "names": Entry(Lists(TEXT), of="_names"),
        "subgroups": Entry(Lists(TEXT), of="guarantee_.regions"),
        "counts": Entry(Counts("subgroups"), of="guarantee_.counts"),
        "positives": Entry(Counts("subgroups"), of="guarantee_.positives"),
        "value": Entry(Numbers("subgroups", 0.0, 1.0), of="guarantee_.value"),
        "errors": Entry(PairOfLimits("subgroups", low=-1.0), of="guarantee_.errors"),
        "margin": Entry(Numbers("subgroups", 0.0, 1.0), of="guarantee_.margin"),
        "n_fitted": Entry(OneCount(), of="guarantee_.facts.n_fitted"),
        "n_proving": Entry(OneCount(), of="guarantee_.facts.n_proving"),
        "n_groups": Entry(OneCount(), of="guarantee_.facts.n_groups"),
        "max_group_size": Entry(_GROUP_SIZE, of="guarantee_.facts.max_group_size"),
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
    pilot: float = 0.5
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
        """Fit the correction to a random part of the rows, and derive the guarantee from the
        others.

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
            The group of each row, such as a customer. Each group is used as a whole, either for
            fitting or for the proof, and bets are on whole groups: the guarantee is about rows of
            new groups.
        max_group_size : int, optional
            The largest number of rows that a group counts as; None takes the size of the largest
            group among the rows for fitting.
        classes : pair of labels, optional
            Both labels. Required if the data may contain only one of them.

        Returns
        -------
        self
        """
        self._check_parameters()
        reason = "weights are not implemented for subgroups"
        refuse(scores, reason, "weight", advice="use AnchoredCalibrator")
        refuse(scores, "subgroups are defined by attributes", "segment", advice="use attributes=")
        size = bound_of(scores, "max_group_size", max_group_size)
        rows = self._read(scores, y, classes=classes, groups=groups).collect()
        check_group_target(rows, "rows", "subgroups count by their rows")
        columns = self._columns(scores, attributes, len(rows))
        places = TwoParts.of(rows, self.pilot, self.random_state)
        first = PartOfRows.of(rows, columns, places.first)
        last = PartOfRows.of(rows, columns, places.last)
        base = self._fitted_base(first.rows)
        correction = self._correction(base, first.rows, first.columns)
        cap = group_cap(first.rows, size)
        guarantee = self._proved(base, correction, (first, last), cap)
        self._set_classes(rows.known)
        self._set_learned(base, correction, guarantee, tuple(column.name for column in columns))
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

    def _fitted_base(self, rows: MemoryRows) -> ScoreCalibrator | None:
        if self.base is None:
            return None
        base: ScoreCalibrator = clone(self.base).set_params(pos_label=1)
        with reported_by_caller():
            base.fit(rows.scores, rows.codes, classes=(0, 1))
        base.score_range_seen_ = None  # the range of all rows is kept instead
        return base

    def _correction(
        self, base: ScoreCalibrator | None, rows: MemoryRows, columns: list[AttributeColumn]
    ) -> BoostedLogit:
        logits = base_logits(base, rows.scores)
        every = [score_column(logits), *columns]
        features = [Feature.of(column) for column in every]
        bins = [feature.bins(column) for feature, column in zip(features, every, strict=True)]
        fold = np.arange(len(rows)) * _N_FOLDS // max(len(rows), 1)
        labels = rows.codes.astype(np.float64)
        return BoostedLogit.fit(features, bins, logits, labels, fold)

    def _proved(
        self,
        base: ScoreCalibrator | None,
        correction: BoostedLogit,
        parts: tuple[PartOfRows, PartOfRows],
        cap: int | None,
    ) -> SubgroupGuarantee:
        """The guarantee, from rows that were not used for the predictions, the cuts, the choice of
        subgroups or their tails.
        """
        first, last = parts
        levels = [AttributeLevels.of(column) for column in first.columns]
        known = SubgroupFamily.of(levels, first.codes(levels), self.order, self.min_share)
        guesses = Guesses.of(first.subgroup_rows(known, base, correction, cap))
        family = known.of_other_rows(last.codes(levels))
        proving = last.subgroup_rows(family, base, correction, cap)
        alpha = error_budget(self.confidence_level)
        value = proving.averages(proving.predictions)
        averages = prediction_limits(proving, guesses, _AVERAGES_SHARE * alpha)
        margin = np.maximum(value - averages.lower, averages.upper - value)
        errors = error_limits(proving, guesses, (1.0 - _AVERAGES_SHARE) * alpha)
        positives = family.sums(last.rows.codes.astype(np.float64)).astype(np.int64)
        facts = SubgroupFacts(
            n_fitted=len(first.rows),
            n_proving=len(last.rows),
            n_groups=last.rows.n_groups(),
            max_group_size=cap,
            attributes=tuple(column.name for column in last.columns),
        )
        return self._guarantee(
            [family.words(number) for number in range(family.n_subgroups)],
            (family.counts, positives),
            (value, errors, margin),
            last.rows.known.positive,
            facts,
        )

    def _guarantee(
        self,
        words: list[str],
        counts: tuple[Any, Any],
        proved: tuple[FloatArray, Interval, FloatArray],
        positive: Hashable,
        facts: SubgroupFacts,
    ) -> SubgroupGuarantee:
        value, errors, margin = proved
        return SubgroupGuarantee(
            float(self.confidence_level),
            "betting",
            tuple(words),
            *counts,
            value,
            np.clip(value - margin + errors.lower, 0.0, 1.0),
            np.clip(value + margin + errors.upper, 0.0, 1.0),
            positive,
            Statement(_THEOREM, edges=Edges.FUNCTION, claim=Claim.AVERAGE),
            errors=errors,
            margin=margin,
            order=self.order,
            min_share=self.min_share,
            facts=facts,
        )

    def _set_learned(
        self,
        base: ScoreCalibrator | None,
        correction: BoostedLogit,
        guarantee: SubgroupGuarantee,
        names: tuple[str, ...],
    ) -> None:
        self.base_ = base
        self.correction_ = correction
        self.guarantee_ = guarantee
        self._names = names

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
        return corrected(self.base_, self.correction_, checked, columns)

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

    def scored_trees(self) -> ScoredTrees:
        """Return features and trees as plain values, for an export that has no table."""
        check_is_fitted(self)
        return ScoredTrees(self.base_, self.correction_.to_dict(), self._table_notes(), SMALLEST)

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        counts = learned["counts"]
        positives = learned["positives"]
        if (positives > counts).any():
            raise InvalidValueError("positives", "be at most the counts", got="more")
        correction: BoostedLogit = learned["correction"]
        names = learned["names"]
        if tuple(feature.name for feature in correction.features) != ("", *names):
            raise InvalidValueError("names", "be those of the features", got=shown(list(names)))
        facts = SubgroupFacts(
            learned["n_fitted"],
            learned["n_proving"],
            learned["n_groups"],
            learned["max_group_size"],
            names,
        )
        proved = (learned["value"], learned["errors"], learned["margin"])
        alpha = error_budget(self.confidence_level)
        check_widths({"errors": learned["errors"]}, counts, alpha, "the calibrator")
        words = list(learned["subgroups"])
        guarantee = self._guarantee(words, (counts, positives), proved, classes.positive, facts)
        self._set_classes(classes)
        self._set_learned(learned["base"], correction, guarantee, names)

    def _needs_rows(self) -> tuple[str, ...]:
        return ("counts", "limits", "trees")
