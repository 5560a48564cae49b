"""Models and calibrators fitted to parts of the rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant._typing import FeatureRows, FloatArray, IndexArray
from calibrant.classifier.folds import Fold
from calibrant.classifier.responses import columns_of, response_of
from calibrant.classifier.task import Task
from calibrant.errors import InvalidValueError
from calibrant.guarantee.guarantee import is_guarantee
from calibrant.guarantee.statement import UNGROUPED
from calibrant.params.arrays import as_scores, select_rows
from calibrant.text.sentences import Setting, Text, shown

_CROSS_FITTED: Text = (
    (
        "the scores come from models fitted on parts of the data, not from the model that predicts;"
        " use "
    ),
    Setting("cv", None),
    " for a guarantee",
)


@dataclass(frozen=True, slots=True, eq=False)
class Fitting:
    """What is fitted, and to which rows.

    Attributes
    ----------
    task : Task
        The rows.
    estimator, calibrator
        The model and the calibrator; clones of them are fitted.
    response_method : str
        The source of a model's scores.
    folds : list of Fold
        Rows to train on and rows to calibrate on; empty for a frozen estimator.
    """

    task: Task
    estimator: Any
    calibrator: Any
    response_method: str
    folds: list[Fold]

    def pair(self, X_target: FeatureRows | None, arguments: set[str]) -> tuple[Any, Any]:
        """One model and one calibrator, whose `fit` takes these arguments."""
        task = self.task
        training = None
        rows = task.everything
        if len(self.folds) == 1:
            training, rows = self.folds[0]
            estimator, scores = self._fit_and_score(training, rows)
        elif self.folds:
            rows, scores = self._out_of_fold_scores()
            estimator = self.model(task.everything)
        else:
            estimator = self.estimator
            scores = self._scores(estimator, task.X)
        params = {}
        wanted = set() if X_target is None else arguments
        if "X_target" in wanted:
            # weights learned from other rows do not depend on the calibration rows
            source = None if training is None else select_rows(task.X, training)
            params = {"X": select_rows(task.X, rows), "X_source": source, "X_target": X_target}
        if "target_scores" in wanted:
            params["target_scores"] = self._scores(estimator, X_target)
        calibrator = self.calibrated(rows, scores, **params)
        crossed = len(self.folds) > 1
        ignored = task.groups is not None and "groups" not in task.to_calibrator
        if crossed or ignored:
            calibrator.guarantee_ = calibrator.guarantee_.with_caveat(
                _CROSS_FITTED if crossed else UNGROUPED
            )
        return estimator, calibrator

    def _out_of_fold_scores(self) -> tuple[IndexArray, FloatArray]:
        """The calibration rows, in order, and their scores from models not trained on them."""
        scores = np.concatenate([self._fit_and_score(*fold)[1] for fold in self.folds])
        rows = np.concatenate([rows for _, rows in self.folds])
        order = np.argsort(rows)
        return rows[order], scores[order]

    def _fit_and_score(self, training: IndexArray, rows: IndexArray) -> tuple[Any, FloatArray]:
        """A model fitted on some rows, and its scores for others."""
        model = self.model(training)
        return model, self._scores(model, select_rows(self.task.X, rows))

    def model(self, rows: IndexArray) -> Any:
        """A model fitted to some of the rows."""
        task = self.task
        return clone(self.estimator).fit(
            select_rows(task.X, rows), task.labels[rows], **task.part(task.to_model, rows)
        )

    def _scores(self, model: Any, X: Any) -> FloatArray:
        return response_of(model, X, self.task.ordered_classes, self.response_method)

    def columns(self, model: Any, rows: IndexArray) -> FloatArray:
        """The checked scores of some rows, one column for the positive class, or for each of
        several.
        """
        X = select_rows(self.task.X, rows)
        columns = columns_of(model, X, self.task.ordered_classes, self.response_method)
        checked = [as_scores(np.ascontiguousarray(column)) for column in columns.T]
        return np.column_stack(checked).astype(np.float64)

    def calibrated(self, rows: IndexArray, scores: FloatArray, **params: Any) -> Any:
        """The calibrator, fitted to the scores of some of the rows."""
        calibrator = clone(self.calibrator)
        task = self.task
        classes = tuple(task.classes.tolist())
        positive = task.ordered_classes.tolist()[1]
        if calibrator.pos_label not in (None, positive):
            rule = f"be None or {positive!r}, the class of high scores"
            other = calibrator.pos_label
            advice = f"use CalibratedClassifier(pos_label={other!r})"
            raise InvalidValueError("pos_label of the calibrator", rule, shown(other), advice)
        calibrator.set_params(pos_label=positive)
        named = {**params, "classes": classes}
        calibrator.fit(scores, task.labels[rows], **task.part(task.to_calibrator, rows), **named)
        if task.over_seed and is_guarantee(calibrator.guarantee_):
            calibrator.set_over_seed()
        return calibrator
