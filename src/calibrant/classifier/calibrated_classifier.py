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
from calibrant.classifier.bag import mean_probabilities
from calibrant.classifier.bagged_fit import fit_bag, no_guarantee
from calibrant.classifier.diagram import visual_block
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

    By default, most rows are used for training and calibration, and a few for the guarantee: `cv`
    models are trained, each without one part of the training rows; one curve is fitted to the
    scores that each model gives the rows it was not trained on; and the calibrated probabilities
    are averaged. The held-out rows bound how far off the result can be. With fewer than 1,000 rows,
    all of them are used for training, and a third of them also for the guarantee. See the notes.

    Parameters
    ----------
    estimator : classifier, fitted booster or function
        A classifier needs `predict_proba` or `decision_function`. It is cloned and fitted on parts
        of the rows. Pass a model that is already fitted as `FrozenEstimator(model)`; then all rows
        are used to calibrate it. The same holds for an object without `fit`: a LightGBM or XGBoost
        booster, whose `predict` gives scores, or a function from rows to scores, such as
        ``itemgetter("score")`` for a column. High scores mean the positive class.
    calibrator : calibrator, default=None
        None fits a curve to out-of-fold scores, as above; a single model (`cv=None`, or one that is
        already fitted) is calibrated by an `Calibrator`. A calibrator passed here is fitted
        to the held-out rows.
    cv : "auto", None, int, splitter or list of splits, default="auto"
        Without a calibrator: the number of models to train, by default 5, or the number of groups
        if that is smaller; or a splitter that divides the training rows. With fewer than 1,000
        rows, as many again form the first opinion, by default 4. None trains one model on all rows
        that are not held out. With a calibrator, "auto" and None train one model; a number, or a
        splitter or list with several splits, fits the calibrator to out-of-fold scores and the
        model to all rows. Those scores do not come from the final model, so nothing is guaranteed;
        `guarantee_` says so. A splitter or list with one split, (training rows, calibration
        rows), is your own hold-out. Groups passed to `fit` are never split.
    calibration_size : "auto", float or int, default="auto"
        Fraction or number of rows to hold out, or of groups if `fit` is given groups. "auto" is a
        tenth and at least 100, more if that is needed for about 20 rows of a rare class, but at
        most a quarter; if one model is trained, a quarter. With fewer than 1,000 rows, "auto" holds
        a third out of the first opinion alone, and all rows train the models that predict; a number
        or fraction holds rows out of all models, as `segments` and weights for the calibrator do. 0
        holds out no rows, so nothing is guaranteed. Rows are drawn at random, and never stratified:
        held-out rows must be i.i.d. for the guarantee. Leave it at "auto" for a fitted model with
        two classes, and if `cv` determines which rows calibrate.
    confidence_level : float, default=0.9
        Confidence that everything guaranteed holds simultaneously. A calibrator passed as
        `calibrator` has its own level.
    holdout : {"random", "last"}, default="random"
        Which rows are held out. "last" takes the most recent ones: by the `time` passed to `fit`,
        or the last rows, with a warning if these are sorted by label. The guarantee is then about
        rows from the same distribution as the recent ones. Rows with the same time stay together.
        With `groups`, a group is as recent as its last row, so groups with many rows are more often
        among the recent ones: the guarantee is about groups selected in this way, not about all new
        groups.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Where scores come from; "auto" takes the first of the two that the estimator has.
    pos_label : object, default=None
        The positive class, which intervals and the guarantee are about; None means the second of
        the sorted classes.
    n_jobs : int or None, default=None
        The number of models to train in parallel, as in scikit-learn.
    random_state : int, Generator, RandomState or None, default=0
        Seed for drawing the held-out rows and the folds. The draw also depends on the rows, so rows
        may be sorted in any way, and the same rows with the same seed give the same result. None
        draws afresh each time.

    Attributes
    ----------
    estimators_ : tuple of classifiers
        The fitted models, if several are averaged.
    curve_ : object, or tuple of them
        Their curve, with `knots` and `values`, which maps the score of a model to a probability.
        With more than two classes, one curve for each class.
    estimator_ : classifier
        The fitted model, if there is only one.
    calibrator_ : calibrator or None
        The fitted calibrator; None if no row was held out. With fewer than 1,000 rows, it is that of
        the first opinion, and leaves it as it is.
    first_opinion_ : object
        With fewer than 1,000 rows, the `members` and `curves` of the first opinion.
    refit_ : object
        With fewer than 1,000 rows, how far the fit to all rows may be from the first opinion: its
        `rooms` and `epsilon`.
    guarantee_ : Guarantee, ClassWiseGuarantee or NoGuarantee
        What is guaranteed, or why nothing is; a `ClassWiseGuarantee` for more than two classes.
    classes_ : array of shape (L,)
        The labels, sorted.

    Notes
    -----
    The models and their curve are fixed before any held-out row is seen. So the held-out rows are
    not used to fit a curve, and no error budget is spent on one: bets on label minus probability
    bound the average error in each bin of the probability. The held-out rows may move the
    probabilities a little, keeping their order, to make the bound smaller. With `segments` or
    weights for the calibrator, an `Calibrator` is fitted to the held-out rows instead.

    **Fewer than 1,000 rows**: a third of the rows, drawn at random (in whole groups, or the last ones
    with ``holdout="last"``), is hidden from a first opinion, that of `cv` models and a curve fitted
    to the other rows. The hidden rows bound its average error in one bin or two. The models that
    predict are fitted to all rows, and stay so close to the first opinion that their average error
    in each of its bins is at most epsilon. Where fewer than two of the other rows are of a class,
    the first opinion is constant. `predict_interval` is the probability plus or minus epsilon;
    `predict_rate_interval` and `predict_set` are about the rate in the bin of the first opinion.

    **More than two classes**, without a calibrator: each class has its own curve, against the rest,
    and the probabilities of a row are divided by their sum. The held-out rows give a guarantee for
    all classes and all bins of their probabilities simultaneously. If one model is trained, or is
    already fitted, half of these rows fit the curves instead. `predict_interval` has shape
    (n, L, 2). `decide` acts on one class against the rest, its `pos_label`.

    Further arguments of `fit` that are also parameters of the calibrator's `fit`, such as
    `segments`, are passed to it; all others are passed to the model's `fit`. `sample_weight` is
    used to train the model, and `calibration_weight` to calibrate it: without the latter, the
    calibrator measures the rates of the population as it is. Rows with `sample_weight` 0 are not
    used at all. A `Pipeline` takes no `sample_weight`: then a warning says that the model is trained
    without weights, as in `CalibratedClassifierCV`; name the step, as in
    ``logisticregression__sample_weight``. If scikit-learn's metadata routing is switched on,
    requests decide; arguments that are neither requested nor refused are passed as described above,
    so no inner request is needed. Arguments with one entry per row are split with the rows.

    In a `Pipeline`, put the classifier outside:
    ``CalibratedClassifier(make_pipeline(StandardScaler(), model))`` has `predict_interval`,
    `predict_set` and `guarantee_`, which a `Pipeline` does not pass on from its last step.

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
        """Fit the model on one part of the rows, and calibrate it on the other.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Passed to the estimator as it is.
        y : array-like of shape (n,)
            Labels of two classes, or of more without a calibrator.
        X_target : array-like or frame of shape (n_target, n_features), optional
            Unlabelled rows from the population that predictions are for, if it is a different one;
            for calibrators that correct for the difference, such as `ShiftCalibrator` with
            `fit(..., ratio=ULSIF())`.
        calibration_weight : array-like of shape (n,), optional
            The `sample_weight` of the calibrator's `fit`, for the rows that calibrate.
        groups : array-like of shape (n,), optional
            The group of each row, such as its customer or patient, if rows are grouped: whole
            numbers, dates or text. Groups are never split: the hold-out and the folds draw groups
            instead of rows, and `calibration_size` is a fraction or number of groups. Groups are
            also passed to the calibrator's `fit` if it accepts them.
        time : array-like of shape (n,), optional
            For ``holdout="last"``: the time of each row, as numbers, dates, or text of ISO 8601
            dates. Without it, rows must be in time order.
        **params : dict
            Further arguments for the estimator's or the calibrator's `fit`.

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
            return no_guarantee()
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
        """Return the calibrated probabilities of all classes, shape (n, L).

        The columns follow `classes_`.
        """
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
        """Return the calibrator's `predict_interval` for the positive class, shape (n, 2).

        With L > 2 classes, the result has one interval for each class, shape (n, L, 2).
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

        The columns follow `classes_`. With two classes, with probability at least
        `confidence_level` over the held-out rows, the label falls outside the set with probability
        at most 1 - coverage, in every bin simultaneously. With more classes, this holds on average
        over all rows, for one coverage, if the held-out rows and new rows are i.i.d.; this
        statement is separate from `guarantee_`.
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
        """Return where further arguments are passed when scikit-learn's metadata routing is
        switched on.
        """
        return router_of(self, self.estimator, self._calibrator())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What a notebook shows: the parameters and, once fitted, the guarantee.

        scikit-learn's page of every part of every model has more than 160 kB, in every cell.
        """
        parts = [f"<pre>{escape(repr(self))}</pre>"]
        if hasattr(self, "classes_"):
            parts.append(self.guarantee_._repr_html_())
        return {"text/plain": repr(self), "text/html": "\n".join(parts)}

    def _sk_visual_block_(self) -> Any:
        """What scikit-learn's diagram shows: once fitted, the models and the guarantee."""
        check_is_fitted(self)
        return visual_block(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.calibrator is None
        if hasattr(self.estimator, "fit"):
            inner = get_tags(self.estimator)
            tags.input_tags.sparse = inner.input_tags.sparse
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags
