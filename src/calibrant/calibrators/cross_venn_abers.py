"""Cross Venn-Abers: one inductive Venn-Abers for each fold's model, merged into one probability."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._typing import ArrayLike, FloatArray
from calibrant.calibrators.claims import WeakerGuarantee
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.calibrators.venn_abers import LOSS, VennAbersCalibrator, merged
from calibrant.cells.segmented_partition import segment_kinds
from calibrant.errors import InvalidValueError
from calibrant.params.arrays import as_array, as_scores
from calibrant.params.frames import predicts
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import Classes
from calibrant.params.rules import RuleTable
from calibrant.params.state_kinds import Lists, Nested
from calibrant.sample.reader import ONE_EACH, check_no_weights, refuse
from calibrant.sample.sample import Sample
from calibrant.text.sentences import Setting

_MOST_FOLDS = 1000  # in a saved calibrator
_KNOWN = WeakerGuarantee(
    reason="merging over folds has no proof of validity: the folds share their training rows",
    known=(
        "in each fold, before merging, of the two probabilities the one that belongs to the true"
        " label is perfectly calibrated, for every distribution, as the fold's model was not"
        " trained on the fold's rows"
    ),
    advice=(
        "For a guarantee use a held-out part, ",
        Setting("cv", None),
        ", with BinningCalibrator or ScalingBinningCalibrator",
    ),
)


@dataclass(eq=False, repr=False, kw_only=True)
class CrossVennAbersCalibrator(ScoreCalibrator):
    """Venn-Abers calibrators for the scores of several models, one column each, merged by least
    regret.

    `CalibratedClassifier(model, VennAbersCalibrator(), cv=k)` makes one; each of its rows has the
    scores of the k fold models. Claimed: no bound; `guarantee_` says what is known about the folds
    before merging.

    Parameters
    ----------
    loss : {"log", "brier"}, default="log"
        The loss whose largest regret is minimised.
    pos_label : object, default=None
        The positive class.

    Attributes
    ----------
    calibrators_ : tuple of VennAbersCalibrator
        One per fold.
    guarantee_ : WeakerGuarantee
        What is known, and why there is no bound.
    classes_ : array of shape (2,)
        The labels, sorted.

    Notes
    -----
    The merged probability is, for log loss, GM(p1) / (GM(1 - p0) + GM(p1)), where GM is the
    geometric mean over folds; for the Brier score, it is the mean over folds of p1 + (p0^2 - p1^2)
    / 2.

    References
    ----------
    Vovk, Petej and Fedorova (2015), "Large-scale probabilistic predictors with and without
    guarantees of validity", section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import CrossVennAbersCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=1000)
    >>> y = rng.uniform(size=1000) < scores
    >>> calibrator = CrossVennAbersCalibrator().fit(scores, y, folds=np.arange(1000) % 2)
    >>> calibrator.predict([[0.2, 0.2], [0.9, 0.9]]).round(1)  # a column for each fold's model
    array([0.2, 0.9])
    """

    _rules: ClassVar[RuleTable] = {"loss": LOSS}
    _learned: ClassVar[EntryTable] = {
        "folds": Entry(
            Lists(Nested(VennAbersCalibrator), least=1, most=_MOST_FOLDS), of="calibrators_"
        ),
    }

    loss: str = "log"
    pos_label: Hashable = None

    def fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        folds: ArrayLike,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Fit one Venn-Abers calibrator on each fold's rows.

        Parameters
        ----------
        scores : array-like of shape (n,); or Sample
            Out-of-fold scores: each comes from the model of the row's own fold, which was not
            trained on the row.
        y : array-like of shape (n,)
            Labels of two classes.
        folds : array-like of shape (n,)
            The fold of each row; the sorted folds are the columns that `predict` takes.
        classes : pair of labels, optional
            Both labels. Required if the data may contain only one of them.

        Returns
        -------
        self
        """
        self._check_parameters()
        check_no_weights(scores, "rows with different weights are not exchangeable")
        refuse(scores, "one curve is fitted to all rows", "segment", advice=ONE_EACH)
        data = self._read(scores, y, classes=classes)
        rows = data.collect()
        _, fold = segment_kinds(folds)
        if len(fold) != len(rows):
            raise InvalidValueError(
                "folds", f"have one entry per score, {len(rows):,}", got=f"{len(fold):,}"
            )
        fitted = [
            VennAbersCalibrator(loss=self.loss).fit(Sample(rows.take(here)))
            for here in (fold == number for number in range(int(fold.max()) + 1))
        ]
        self._set_folds(tuple(fitted), rows.known)
        return self

    @classmethod
    def from_folds(cls, folds: Sequence[VennAbersCalibrator]) -> Self:
        """Merge calibrators, each fitted on the rows of its own fold, all with the same classes."""
        if not folds:
            raise InvalidValueError(
                "folds", "be at least one fitted VennAbersCalibrator", got="none"
            )
        first = folds[0]
        merged = cls(loss=first.loss, pos_label=first.pos_label)
        merged._set_folds(tuple(folds), Classes(first.classes_, first.positive_index_))
        return merged

    def _set_folds(self, folds: tuple[VennAbersCalibrator, ...], classes: Classes) -> None:
        self._check_parameters()
        self.calibrators_ = folds
        self.guarantee_ = _KNOWN
        self._set_classes(classes)
        self.n_features_in_ = len(folds)

    @predicts
    def predict(self, scores: ArrayLike) -> FloatArray:
        """Return the merged probability of the positive class, shape (n,), from one column of
        scores per fold.
        """
        check_is_fitted(self)
        columns = as_array(scores, "scores")
        if columns.ndim != 2 or columns.shape[1] != len(self.calibrators_):
            rule = f"have one column per fold, {len(self.calibrators_)}"
            raise InvalidValueError("scores", rule, got=f"shape {columns.shape}")
        pairs = [
            calibrator.predict_multiprobability(as_scores(columns[:, fold]))
            for fold, calibrator in enumerate(self.calibrators_)
        ]
        p0, p1 = np.stack(pairs, axis=2).transpose(1, 0, 2)
        if self.loss == "brier":
            return np.asarray(merged(p0, p1, self.loss).mean(axis=1))
        # p1 and 1 - p0 are never 0, because the added row itself has that label
        ones = np.exp(np.log(p1).mean(axis=1))
        zeros = np.exp(np.log(1.0 - p0).mean(axis=1))
        return np.asarray(ones / (ones + zeros))

    @property
    def _takes_one_score(self) -> bool:
        """False: `predict` takes a column of scores for each fold."""
        return False

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        self._set_folds(learned["folds"], classes)
