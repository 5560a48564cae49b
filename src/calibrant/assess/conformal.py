"""Split-conformal prediction sets for two labels: exact coverage at any sample size, for every
distribution.
"""

from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, BoolArray, FloatArray, IntArray, Seed
from calibrant.errors import InvalidValueError
from calibrant.params.arrays import as_scores
from calibrant.params.declared_state import Inline, LabelEntries, Saved
from calibrant.params.estimator import Estimator, check_is_fitted
from calibrant.params.frames import FrameOutput, predicts
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.labels import Classes
from calibrant.params.rules import (
    OPEN_UNIT,
    CheckedParameters,
    Choice,
    Number,
    RuleTable,
)
from calibrant.params.state_kinds import Lists, Numbers
from calibrant.sample.facts import ONE_OF_EACH, RowFacts
from calibrant.sample.reader import (
    ONE_EACH,
    check_no_weights,
    one_row_each,
    read_rows,
    refuse,
)
from calibrant.sample.sample import Sample
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import Setting

_CONDITIONAL = Choice(("marginal", "label"))
_ASSUMED = (
    (
        "the future row and the calibration rows are exchangeable, as independent draws from one"
        " distribution are"
    ),
    "the scores come from a model that was not trained on the calibration rows",
)
_SKIPPED = "whether a row's label is missing depends on neither its score nor its label"


@dataclass(frozen=True, slots=True, repr=False)
class ConformalGuarantee(Result):
    """The guarantee of conformal sets.

    Attributes
    ----------
    kind : {"marginal", "label"}
        Whether the coverage is over all rows, or among the rows of each label.
    counts : tuple of int
        Calibration rows behind the sets of the negative and of the positive label.
    classes : tuple
        The negative and the positive label.
    facts : RowFacts
        What to say about how the rows were read.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_proved", "n_skipped")

    kind: str
    counts: tuple[int, int]
    classes: tuple[Hashable, Hashable]
    facts: RowFacts = field(default_factory=RowFacts)

    @property
    def n_skipped(self) -> int:
        """Number of rows skipped because their label is missing."""
        return self.facts.skipped

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true for the guarantee to hold."""
        stated = {
            _SKIPPED: self.n_skipped,
            ONE_OF_EACH: self.facts.one_of_each[0],
        }
        return (*_ASSUMED, *(text for text, holds in stated.items() if holds))

    @property
    def is_proved(self) -> bool:
        """Always True: the guarantee follows from the stated assumptions alone."""
        return True

    @property
    def verdict(self) -> Verdict:
        """The coverage is guaranteed."""
        return "ok"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the probability is over, and what else a reader should know, such as skipped rows."""
        over = (
            "it holds for every distribution of the data; the probability is over the calibration"
            " rows and the future row together, not for one score in particular"
        )
        of_groups = self.facts.said_of_groups.strip()
        return (over, *([of_groups] if of_groups else []), *self.facts.notes)

    def tables(self) -> tuple[ResultTable, ...]:
        """The calibration rows behind the sets of each label."""
        return (
            ResultTable("labels", {"label": list(map(str, self.classes)), "n_rows": self.counts}),
        )

    @property
    def sentence(self) -> str:
        """What is guaranteed, and on which assumption, in 35 words at most."""
        rows = f"{self.counts[0]:,}"
        whom = "a new row's label is in its set"
        if self.kind == "label":
            rows = f"{self.counts[0]:,} and {self.counts[1]:,}"
            whom = "among new rows of either class, the label is in its set"
        return (
            f"{whom[:1].upper()}{whom[1:]} with at least the coverage asked for, if new rows are"
            f" exchangeable with these {rows}."
        )


@dataclass(eq=False, repr=False)
class ConformalSets(Saved, FrameOutput, CheckedParameters, Estimator):
    """Sets of labels that contain the true label with a stated probability, at any sample size, for
    every distribution.

    Guarantee: P(label in set) >= coverage, over the draw of the calibration rows and the future
    row; with ``conditional="label"`` also P(label in set | label = y) >= coverage for both labels y
    (Mondrian). Assumptions: all rows are exchangeable, and the model was not trained on the
    calibration rows. Not claimed: anything about a single score, or given the calibration rows.
    `BinningCalibrator.predict_set` has a different guarantee: with a stated confidence over the
    calibration rows, in *every* region, a bound on the rate of misses.

    Parameters
    ----------
    conditional : {"marginal", "label"}, default="marginal"
        "marginal": the coverage holds over all rows; a rare label may then be covered rarely.
        "label": the coverage holds within each label; then only the order of scores matters.
    center : float, default=0.5
        For "marginal": the score at which both labels have the same nonconformity: 0.5 for
        probabilities, 0 for logits. Coverage holds for any center; a good one makes sets smaller.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.
    random_state : int, Generator, RandomState or None, default=0
        With `groups`, the seed for drawing one row from each group.

    Attributes
    ----------
    guarantee_ : ConformalGuarantee
        What is guaranteed.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    The nonconformity score of a row is center - score for the positive label and score - center for
    the negative one. The p-value of a label is (1 + number of calibration rows whose nonconformity
    score is at least that) / (n + 1), among all rows or those with that label; the set contains the
    labels whose p-value exceeds 1 - coverage. By exchangeability, the rank of the future row is
    uniform, with ties counting against it, so P(p-value <= a) <= a.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), "Algorithmic learning in a random world". Papadopoulos,
    Proedrou, Vovk and Gammerman (2002), "Inductive confidence machines for regression".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.tripod import ConformalSets
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=1000)
    >>> y = rng.uniform(size=1000) < scores
    >>> ConformalSets().fit(scores, y).predict_set([0.05, 0.5, 0.95], coverage=0.8)
    array([[ True, False],
           [ True,  True],
           [False,  True]])
    """

    _schema: ClassVar[str] = "calibrant.conformal/1"
    _entries: ClassVar[EntryTable] = {
        "conditional": _CONDITIONAL,
        "center": Number(),
        "labels": Entry(LabelEntries(), of="_known"),
        "oddness": Entry(Lists(Numbers(rising=True), size=2), of="_ranked"),
        "facts": Entry(Inline(RowFacts), of="guarantee_.facts"),
    }
    _rules: ClassVar[RuleTable] = {
        "conditional": _CONDITIONAL,
        "center": Number(),
    }

    _: KW_ONLY
    conditional: str = "marginal"
    center: float = 0.5
    pos_label: Hashable = None
    random_state: "Seed" = 0

    def fit(
        self,
        scores: "ArrayLike | Sample",
        y: "ArrayLike | None" = None,
        *,
        groups: "ArrayLike | None" = None,
        classes: "ArrayLike | None" = None,
    ) -> Self:
        """Rank the nonconformity scores of the calibration rows.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or Sample
            Scores of rows that the model was not trained on; or data with scores and labels, see
            `calibrant.scored`, whose rows are read into memory.
        y : array-like of shape (n,)
            Labels of two classes.
        groups : array-like of shape (n,), optional
            The group of each row, such as its customer. One row from each group is drawn at random
            and the others are not used: the guarantee is then about a row drawn at random from a
            new group.
        classes : pair of labels, optional
            Both labels. Required if the data may contain only one of them.

        Returns
        -------
        self
        """
        self._check_parameters()
        check_no_weights(scores, "rows with different weights are not exchangeable")
        refuse(scores, "all rows are ranked together", "segment", advice=ONE_EACH)
        data = read_rows(scores, y, classes=classes, pos_label=self.pos_label, groups=groups)
        rows = one_row_each(data, self.random_state).collect()
        per_code = [
            np.sort(self._nonconformity(rows.scores[rows.codes == code], code)) for code in (0, 1)
        ]
        if self.conditional == "marginal":
            per_code = [np.sort(np.concatenate(per_code))] * 2
        self._set_ranks((per_code[0], per_code[1]), rows.known, rows.facts(drawn=False))
        return self

    def _nonconformity(self, scores: NDArray[Any], code: int) -> FloatArray:
        """The nonconformity score for the label with this code.

        Within one label only the order of scores matters.
        """
        center = float(self.center) if self.conditional == "marginal" else 0.0
        with np.errstate(over="ignore"):
            off = scores.astype(np.float64) - center
        return -off if code else off

    def _set_ranks(
        self, ranked: tuple[FloatArray, FloatArray], classes: Classes, facts: RowFacts
    ) -> None:
        self._ranked = ranked
        self.classes_ = classes.labels
        self.positive_index_ = classes.positive_index
        self.n_features_in_ = 1
        sizes = (ranked[0].size, ranked[1].size)
        both = (classes.negative, classes.positive)
        self.guarantee_ = ConformalGuarantee(self.conditional, sizes, both, facts)

    def _ranks(self, scores: "ArrayLike") -> list[tuple[IntArray, int]]:
        """For the negative and the positive label: rows that are at least as unusual, with the new
        one; and all rows, with the new one.
        """
        check_is_fitted(self)
        checked = as_scores(scores, positive_column=self.positive_index_)
        ranks = []
        for code, known in enumerate(self._ranked):
            below = np.searchsorted(known, self._nonconformity(checked, code), side="left")
            n_rows = int(known.size) + 1
            ranks.append((n_rows - below, n_rows))
        return ranks

    def _columns(self, negative: NDArray[Any], positive: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack(
            [negative, positive] if self.positive_index_ else [positive, negative]
        )

    @predicts
    def predict_p_value(self, scores: "ArrayLike") -> FloatArray:
        """Return the p-value of each label, shape (n, 2); the columns follow `classes_`.

        Under exchangeability, the p-value of the true label is at most a with probability at most
        a.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
            Scores of new rows.
        """
        return self._columns(*(rank / n_rows for rank, n_rows in self._ranks(scores)))

    @predicts
    def predict_set(self, scores: "ArrayLike", *, coverage: float = 0.95) -> BoolArray:
        """Return which labels are in the set, shape (n, 2), boolean; the columns follow `classes_`.

        The label of a future row lies in its set with probability at least `coverage`. A set may be
        empty, if the row is unusual for both labels. It counts as a miss, and the coverage still
        holds.
        """
        OPEN_UNIT.check("coverage", coverage)
        # use the decimal as written: in doubles 1 - 0.9 is less than 0.1, so 0.1 (n + 1) would miss
        # a whole number
        alpha = 1 - Fraction(repr(float(coverage)))
        return self._columns(*(rank > int(alpha * n_rows) for rank, n_rows in self._ranks(scores)))

    @property
    def _known(self) -> Classes:
        return Classes(self.classes_, self.positive_index_)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted sets as plain JSON values; `from_dict` reads them back."""
        check_is_fitted(self)
        return Saved.to_dict(self)

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        parameters = {name: values[name] for name in ("conditional", "center")}
        sets = cls(**parameters)
        sets._set_ranks(values["_ranked"], values["_known"], values["guarantee_.facts"])
        return sets

    def _check_state(self, known: Known) -> None:
        negative, positive = self._ranked
        if not negative.size + positive.size:
            raise InvalidValueError("oddness", "contain at least one row", got="none")
        if self.conditional == "marginal" and not np.array_equal(negative, positive):
            rule = (
                "be the same for both classes where ",
                Setting("conditional", "marginal"),
            )
            raise InvalidValueError("oddness", rule, got="other values")
