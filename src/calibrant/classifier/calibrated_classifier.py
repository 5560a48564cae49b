"""A classifier and a calibrator as one scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from calibrant._typing import ArrayLike, BoolArray, FeatureRows, FloatArray
from calibrant.classifier.arguments import read_task
from calibrant.classifier.bag import NO_GUARANTEE, fit_bag, mean_probabilities
from calibrant.classifier.fitted_parts import Fitting
from calibrant.classifier.folds import parts
from calibrant.classifier.parameters import ClassifierParameters, router_of
from calibrant.classifier.refit import Opinion, fit_refit, is_refitted
from calibrant.classifier.responses import (
    ScoredOutput,
    answered,
    check_all_scored,
    check_scores,
    no_score,
    response_of,
    without_score,
)
from calibrant.classifier.task import is_sorted_by_label, some
from calibrant.errors import InvalidTypeError, InvalidValueError, warn_caller
from calibrant.guarantee.class_wise import ClassWiseGuarantee
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.params.frames import framed
from calibrant.params.rules import ALPHA, replaces
from calibrant.text.sentences import Setting, Text, shown

_SORTED = (
    'holdout="last" treats the order of the rows as time, but equal labels come in one long run: if'
    ' the rows are sorted by label, pass their time to fit, or use holdout="random"'
)


_LEAVE_OUT = 'use "auto", the default'
_PARTS = ("estimator_", "estimators_", "curve_", "calibrator_", "first_opinion_", "refit_")
_SHARE_OF_ONE_MODEL = 0.25  # share of rows held out to calibrate and prove


def _calibrator_has(method: str) -> Callable[[CalibratedClassifier], bool]:
    def check(classifier: CalibratedClassifier) -> bool:
        if classifier.calibration_size == 0:  # scikit-learn shows this as the cause of its error
            rule = f"be more than 0 for {method}, which is guaranteed with held-out rows"
            raise InvalidValueError("calibration_size", rule, got="0", advice=_LEAVE_OUT)
        return hasattr(classifier._calibrator(), method)

    return check


@replaces(
    alpha=ALPHA,
    method="use calibrator=IsotonicCalibrator(), PlattCalibrator() or another",
    ensemble=(
        "without a calibrator, several models are averaged; with one, or cv=None, there is one model"
    ),
    base_estimator="use estimator",
    missing_scores='use set_output(missing_scores="nan")',
)
@dataclass(eq=False, repr=False)
class CalibratedClassifier(
    ScoredOutput,
    ClassifierParameters,
    ClassifierMixin,  # type: ignore[misc]
    MetaEstimatorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Any classifier, with calibrated probabilities, intervals, sets and a stated guarantee.

    By default, `cv` models are trained, each without one fold of the training rows. One curve is
    fitted to their out-of-fold scores, and the calibrated probabilities are averaged. Held-out rows
    bound how far off the result can be. With fewer than 1,000 rows, all rows train the models.

    Parameters
    ----------
    estimator : classifier, fitted booster or function
        A classifier needs `predict_proba` or `decision_function`. If it is already fitted, pass
        `FrozenEstimator(model)`; then all rows calibrate it. The same holds for an object without
        `fit`: a LightGBM or XGBoost booster, or a function from rows to scores. High scores mean
        the positive class.
    calibrator : calibrator, default=None
        None fits a curve to out-of-fold scores; a single model (`cv=None`, or one that is already
        fitted) gets a `Calibrator`. A calibrator passed here is fitted to the held-out rows.
    cv : "auto", None, int, splitter or list of splits, default="auto"
        Without a calibrator: the number of models, by default 5 (or the number of groups, if that
        is smaller), or a splitter. None trains one model. With a calibrator, "auto" and None train
        one model; several splits fit the calibrator to out-of-fold scores and the model to all
        rows, and then nothing is guaranteed. A single split, (training rows, calibration rows), is
        your own hold-out.
    calibration_size : "auto", float or int, default="auto"
        Fraction or number of rows to hold out, or of groups if `fit` is given groups. "auto" is a
        tenth and at least 100, more for a rare class, but at most a quarter; a quarter if one model
        is trained. With fewer than 1,000 rows it is a third, and all rows train the models that
        predict. 0 holds out no rows, so nothing is guaranteed. Rows are drawn at random, never
        stratified, because held-out rows must be i.i.d.
    confidence_level : float, default=0.9
        Confidence that everything guaranteed holds simultaneously. A calibrator passed as
        `calibrator` has its own level.
    holdout : {"random", "last"}, default="random"
        "last" holds out the most recent rows, by the `time` passed to `fit`, or else the last ones.
        The guarantee is then about rows from the same distribution as these. A group is as recent
        as its last row.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Where scores come from; "auto" takes the first of the two that the estimator has.
    pos_label : object, default=None
        The positive class, which intervals and the guarantee are about. None means the second of
        the sorted classes.
    n_jobs : int or None, default=None
        The number of models to train in parallel, as in scikit-learn.
    random_state : int, Generator, RandomState or None, default=0
        Seed for the held-out rows and the folds. The same rows with the same seed give the same
        result. None gives other draws each time.

    Attributes
    ----------
    estimators_, curve_ : tuple of classifiers, object
        The fitted models, if several are averaged, and their curve (one for each class, if there
        are more than two), with `knots` and `values`.
    estimator_ : classifier
        The fitted model, if there is only one.
    calibrator_ : calibrator or None
        The fitted calibrator; None if no row was held out.
    first_opinion_, refit_ : object
        With fewer than 1,000 rows: models that have not seen the held-out third, and how far the
        final fit may be from them.
    guarantee_ : Guarantee, ClassWiseGuarantee or NoGuarantee
        What is guaranteed, or why nothing is.
    classes_ : array of shape (L,)
        The labels, sorted.

    Notes
    -----
    The models and their curve are fixed before any held-out row is used. Bets on label minus
    probability over the held-out rows bound the average error in each bin of the probability. These
    rows may also move the probabilities a little, keeping their order, to make the bound smaller.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from calibrant import CalibratedClassifier
    >>> X, y = make_classification(n_samples=4000, random_state=0)
    >>> model = CalibratedClassifier(LogisticRegression()).fit(X, y)
    >>> model.predict_proba(X[:2]).shape, model.predict_interval(X[:2]).shape
    ((2, 2), (2, 2))
    """

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; ``calibrator__n_bins=5`` works for the default calibrator too."""
        nested = any(name.startswith("calibrator__") for name in params)
        if nested and params.get("calibrator", self.calibrator) is None:
            params = {**params, "calibrator": self._calibrator()}
        super().set_params(**params)
        return self

    def fit(
        self,
        X: FeatureRows,
        y: ArrayLike,
        *,
        X_target: FeatureRows | None = None,
        calibration_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Train the models, calibrate them, and bound the error on the held-out rows.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Passed to the estimator as it is.
        y : array-like of shape (n,)
            Labels of two classes, or of more without a calibrator.
        X_target : array-like or frame of shape (n_target, n_features), optional
            Unlabelled rows from the target population, for a calibrator that corrects for the
            difference, such as `ShiftCalibrator` with `fit(..., ratio=ULSIF())`.
        calibration_weight : array-like of shape (n,), optional
            The `sample_weight` of the calibrator's `fit`, for the rows that calibrate.
        groups : array-like of shape (n,), optional
            The group of each row, such as its customer: whole numbers, dates or text. Neither the
            hold-out nor the folds split a group.
        time : array-like of shape (n,), optional
            For ``holdout="last"``: the time of each row, as numbers, dates or ISO 8601 text. Without
            it, rows must be in time order.
        **params : dict
            Passed to the calibrator's `fit` if it has a parameter of that name, such as `segments`;
            otherwise to the model's.

        Returns
        -------
        self
        """
        self._check_parameters()
        if X_target is not None and not {"X_target", "target_scores"} & self._fit_arguments():
            rule = "be None for a calibrator that does not correct for another population"
            advice = "use ShiftCalibrator or LabelShiftCalibrator"
            raise InvalidTypeError(
                "X_target", rule, got=f"rows and {shown(self.calibrator)}", advice=advice
            )
        if time is not None and self.holdout != "last":
            last: Text = ("set ", Setting("holdout", "last"))
            raise InvalidTypeError(
                "time", "be None unless the last rows are held out", got="times", advice=last
            )
        given = {"calibration_weight": calibration_weight, "groups": groups, "time": time}
        given = {name: value for name, value in given.items() if value is not None}
        task = read_task(X, y, params | given, self)
        if (
            self.holdout == "last"
            and time is None
            and is_sorted_by_label(task.labels == task.classes[-1])
        ):
            warn_caller(_SORTED)
        fitting = Fitting(task, self.estimator, self._calibrator(), self.response_method, [])
        learned = self._learned(fitting, X_target)
        validate_data(self, task.X, skip_check_array=True)
        for name in _PARTS:
            if hasattr(self, name):  # from an earlier fit, perhaps of another kind
                delattr(self, name)
        for name, part in learned.items():
            setattr(self, name, part)
        self.classes_ = task.classes
        self.positive_class_ = task.positive
        return self

    def _learned(self, fitting: Fitting, X_target: FeatureRows | None) -> dict[str, Any]:
        """The attributes that `fit` learns, by name."""
        if self._bags() and is_refitted(fitting.task, self.calibration_size):
            first, refit, clipped = fit_refit(fitting, self.cv, self.confidence_level, self.n_jobs)
            return {
                "estimators_": refit.members,
                "curve_": refit.curves if len(refit.curves) > 1 else refit.curves[0],
                "calibrator_": clipped.first,
                "first_opinion_": first,
                "refit_": clipped,
            }
        several = fitting.task.classes.size > 2
        if not several:
            self._check_size_is_used()
        if self._bags() or several:
            cv: Any = "frozen" if self._is_frozen() else None
            members, curves, proof = fit_bag(
                fitting,
                self.cv if self._bags() else cv,
                self.calibration_size,
                self.confidence_level,
                self.n_jobs,
            )
            return {
                **({"estimators_": members} if self._bags() else {"estimator_": members[0]}),
                "curve_": curves if several else curves[0],
                "calibrator_": proof,
            }
        if not self._is_frozen():
            cv = None if isinstance(self.cv, str) else self.cv
            size = (
                _SHARE_OF_ONE_MODEL
                if isinstance(self.calibration_size, str)
                else self.calibration_size
            )
            fitting = replace(fitting, folds=parts(fitting.task, cv, size))
        estimator, calibrator = fitting.pair(X_target, self._fit_arguments())
        return {"estimator_": estimator, "calibrator_": calibrator}

    @property
    def guarantee_(self) -> Guarantee | ClassWiseGuarantee | NoGuarantee:
        """What is guaranteed for the calibrated probabilities."""
        check_is_fitted(self, "calibrator_")
        if self.calibrator_ is None:
            return NO_GUARANTEE
        answering: Any = getattr(self, "refit_", self.calibrator_)
        guarantee: Guarantee | ClassWiseGuarantee | NoGuarantee = answering.guarantee_
        return guarantee

    def _calibrated(
        self, method: str, X: FeatureRows, segments: ArrayLike | None, **options: Any
    ) -> NDArray[Any]:
        check_is_fitted(self)
        if hasattr(self, "n_features_in_") and getattr(X, "ndim", 2) == 1:
            advice = (
                "Reshape your data using X.reshape(1, -1) for one row, or X.reshape(-1, 1) for one"
                " feature"
            )
            raise InvalidValueError("X", "have two dimensions", got="a 1D array", advice=advice)
        if not hasattr(
            X, "columns"
        ):  # models treat column names differently: some accept another order, or more columns
            validate_data(self, X, skip_check_array=True, reset=False)
        if segments is not None:
            if self.classes_.size > 2:
                raise InvalidTypeError(
                    "segments", "be None for more than two classes", got=shown(segments)
                )
            options["segments"] = segments
        if "attributes" in self._fit_arguments() and hasattr(X, "columns"):
            options["attributes"] = X
        scores = self._scores(X)
        missing = without_score(scores)
        if missing.any():
            if self._missing_scores != "nan":
                raise no_score(missing)
            options |= some(options, len(scores), np.flatnonzero(~missing))
            return answered(
                scores, missing, method, lambda known: self._answer(method, known, options)
            )
        return self._answer(method, scores, options)

    def _scores(self, X: FeatureRows) -> FloatArray:
        """The score of each row, as the calibrator takes it.

        With more than two classes, one column per class. The columns of a first opinion come
        before those of the models fitted to all rows.
        """
        classes = self.classes_
        if self.positive_class_ == classes[0]:
            classes = classes[::-1]
        if not hasattr(self, "curve_"):
            return response_of(self.estimator_, X, classes, self.response_method)
        several = self.classes_.size > 2
        curves = self.curve_ if several else (self.curve_,)
        members = getattr(self, "estimators_", None) or (self.estimator_,)
        if hasattr(self, "first_opinion_"):
            both = (self.first_opinion_, Opinion(members, curves))
            return np.hstack([one.of(X, classes, self.response_method) for one in both])
        p = mean_probabilities(members, curves, X, classes, self.response_method)
        return p if several else p[:, 0]

    def _answer(self, method: str, scores: FloatArray, options: dict[str, Any]) -> NDArray[Any]:
        """The calibrator's answer for scores; without a calibrator, the probabilities themselves."""
        if self.calibrator_ is None or scores.ndim == 2:
            check_scores(scores)
        if self.calibrator_ is not None:
            answering = getattr(self, "refit_", self.calibrator_)
            return np.asarray(getattr(answering, method)(scores, **options))
        if scores.ndim == 2:
            return scores
        both = [1.0 - scores, scores]
        return np.column_stack(both if self.positive_class_ == self.classes_[1] else both[::-1])

    @framed
    def predict_proba(self, X: FeatureRows, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probabilities, shape (n, L); the columns follow `classes_`."""
        return self._calibrated("predict_proba", X, segments)

    @framed
    def predict(self, X: FeatureRows, *, segments: ArrayLike | None = None) -> NDArray[Any]:
        """Return the more probable class, shape (n,)."""
        probabilities = self._calibrated("predict_proba", X, segments)
        check_all_scored(probabilities)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    @available_if(_calibrator_has("predict_interval"))  # type: ignore[untyped-decorator]
    @framed
    def predict_interval(self, X: FeatureRows, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return an interval for the positive class, shape (n, 2); with L > 2 classes, one for each,
        shape (n, L, 2).
        """
        return self._calibrated("predict_interval", X, segments)

    @available_if(_calibrator_has("predict_rate_interval"))  # type: ignore[untyped-decorator]
    @framed
    def predict_rate_interval(
        self, X: FeatureRows, *, segments: ArrayLike | None = None
    ) -> FloatArray:
        """Return confidence limits, shape (n, 2), for the true rate of `classes_[1]` in each row's
        region.
        """
        return self._calibrated("predict_rate_interval", X, segments)

    @available_if(_calibrator_has("predict_set"))  # type: ignore[untyped-decorator]
    @framed
    def predict_set(
        self, X: FeatureRows, *, coverage: float = 0.95, segments: ArrayLike | None = None
    ) -> BoolArray:
        """Return the labels that are not ruled out, shape (n, L), boolean.

        With confidence `confidence_level`, the label falls outside the set with probability at most
        1 - coverage, in every bin simultaneously. With more than two classes, this holds on average
        over all rows, for one coverage, apart from `guarantee_`.
        """
        return self._calibrated("predict_set", X, segments, coverage=coverage)

    @available_if(_calibrator_has("predict_multiprobability"))  # type: ignore[untyped-decorator]
    @framed
    def predict_multiprobability(
        self, X: FeatureRows, *, segments: ArrayLike | None = None
    ) -> FloatArray:
        """Return a Venn predictor's p0 and p1, shape (n, 2), for `classes_[1]`: not a confidence
        interval.
        """
        return self._calibrated("predict_multiprobability", X, segments)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where scikit-learn's metadata routing passes further arguments."""
        return router_of(self, self.estimator, self._calibrator())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What a notebook shows: the parameters and, once fitted, the guarantee.

        scikit-learn's page of every part of every model has more than 160 kB, in every cell.
        """
        parts = [f"<pre>{escape(repr(self))}</pre>"]
        if hasattr(self, "classes_"):
            parts.append(self.guarantee_._repr_html_())
        return {"text/plain": repr(self), "text/html": "\n".join(parts)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.calibrator is None
        if hasattr(self.estimator, "fit"):
            inner = get_tags(self.estimator)
            tags.input_tags.sparse = inner.input_tags.sparse
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags
