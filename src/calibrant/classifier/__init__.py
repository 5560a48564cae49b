"""A classifier and a calibrator as one scikit-learn estimator."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from calibrant._exchangeable.order import read_times
from calibrant._frames import FrameOutput, framed
from calibrant._input import as_frequencies
from calibrant._params import (
    FRACTION_OR_COUNT,
    CheckedParameters,
    Choice,
    Having,
    Integer,
    Optional,
    RandomSeed,
)
from calibrant._random import RandomSource
from calibrant._text import Setting, Text, shown
from calibrant._typing import ArrayLike, BoolArray, FeatureRows, FloatArray, IndexArray, Predictor, ScoreMap, Splitter
from calibrant.calibrators.anchored import AnchoredCalibrator
from calibrant.calibrators.venn_abers import VennAbersCalibrator
from calibrant.classifier.fitted_parts import Fitting
from calibrant.classifier.folds import parts
from calibrant.classifier.responses import RESPONSE_METHODS, response_of
from calibrant.classifier.task import (
    Task,
    binary_labels,
    features_fingerprint,
    is_sorted_by_label,
    without_weightless,
)
from calibrant.errors import InvalidTypeError, InvalidValueError, warn_caller
from calibrant.guarantee import Guarantee, NoGuarantee
from calibrant.rows import Groups

_SORTED = (
    'holdout="last" takes the order of the rows for time, and equal labels come in one long run: if rows are sorted by '
    'label, give their time to fit, or use holdout="random"'
)


def _calibrator_has(method: str) -> Callable[["CalibratedClassifier"], bool]:
    return lambda classifier: hasattr(classifier._calibrator(), method)


def _gives_multiprobability(classifier: "CalibratedClassifier") -> bool:
    return hasattr(classifier._calibrator(), "predict_multiprobability") and not classifier._merges_folds()


@dataclass(eq=False, repr=False)
class CalibratedClassifier(
    FrameOutput,
    CheckedParameters,
    ClassifierMixin,  # type: ignore[misc]
    MetaEstimatorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    takes_device_arrays=True,
):
    """Any binary classifier, with calibrated probabilities, intervals, sets and a stated guarantee.

    Parameters
    ----------
    estimator : classifier, fitted booster or function
        A classifier needs `predict_proba` or `decision_function`. It is cloned and fitted on a random part of the rows.
        Pass a model that is fitted already as `FrozenEstimator(model)`; then all rows calibrate it. So they do for an
        object without `fit`: a booster of LightGBM or XGBoost, whose `predict` gives scores, or a function from rows to
        scores, such as ``itemgetter("score")`` for a column. High scores mean the second of the sorted classes.
    calibrator : calibrator, default=None
        None is `AnchoredCalibrator()`.
    cv : None, int, splitter or list of splits, default=None
        None holds out `calibration_size` of the rows to calibrate on, drawn at random and never stratified, so that
        they are independent draws, as the guarantee needs. A splitter or list with one split, (training rows,
        calibration rows), is a hold-out of your own, such as the last month. With several splits the calibrator sees
        out-of-fold scores, and the model is then fitted on all rows. The scores are not the final model's, so nothing
        is proved; `guarantee_` says so. `TimeSeriesSplit` calibrates on the later rows. The `groups` of `fit` stay
        whole. With a `VennAbersCalibrator` this is cross Venn-Abers: every fold keeps its own model and calibrator,
        and their predictions are merged (see `CrossVennAbersCalibrator`).
    calibration_size : float or int, default=0.25
        Fraction or number of rows to calibrate on, for `cv=None`; of groups, where `fit` is given groups.
    holdout : {"random", "last"}, default="random"
        Which rows to calibrate on, for `cv=None`. "last" takes the most recent ones: by the `time` of `fit`, or the
        last rows, with a warning if these are sorted by label. The model is then trained on older rows, and the
        guarantee is about rows drawn like the recent ones.
        Rows of one time stay together. With `groups`, a group is as recent as its last row, so groups with many rows
        are more often among the recent ones: the guarantee is about such groups, and not about all new groups.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Where scores come from; "auto" takes the first of the two that the estimator has.
    random_state : int, Generator, RandomState or None, default=0
        Draws the calibration rows, or the folds. The draw depends on the rows, too, so that rows may be sorted in any
        way, and the same rows with the same seed give the same result. None draws afresh each time.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model; for cross Venn-Abers the tuple of the folds' models.
    calibrator_ : calibrator
        The fitted calibrator.
    guarantee_ : Guarantee or NoGuarantee
        What is guaranteed, or why nothing is.
    classes_ : array of shape (2,)
        The labels, sorted.

    Notes
    -----
    Further arguments of `fit` that the calibrator's `fit` names, such as `segments`, go there, all others to the
    model's `fit`. `sample_weight` trains the model, and `calibration_weight` calibrates it: by itself, the calibrator
    measures the rates of the population as it is. Rows of `sample_weight` 0 take part in nothing. With scikit-learn's
    metadata routing switched on, requests decide instead. Arguments with one entry per row are split with the rows.

    In a `Pipeline`, put the classifier outside: ``CalibratedClassifier(make_pipeline(StandardScaler(), model))`` has
    `predict_interval`, `predict_set` and `guarantee_`, which a `Pipeline` does not pass on from its last step.

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

    estimator: Annotated[
        Predictor | Callable[[Any], ArrayLike],
        Having(("fit",), "a classifier, such as LogisticRegression()")
        | Having(("predict",), "a fitted model with predict")
        | Having(("__call__",), "a function from rows to scores"),
    ]
    calibrator: Annotated[
        ScoreMap | None,
        Optional(Having(("predict_proba", "get_params"), "a calibrator of scores, such as BinningCalibrator()")),
    ] = None
    _: KW_ONLY
    cv: Annotated[
        int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None,
        Optional(Integer(2) | Having(("split",), "a splitter") | Having(("__iter__",), "a list of splits")),
    ] = None
    calibration_size: Annotated[float, FRACTION_OR_COUNT] = 0.25
    holdout: Annotated[str, Choice(("random", "last"))] = "random"
    response_method: Annotated[str, Choice(RESPONSE_METHODS)] = "auto"
    random_state: RandomSeed = 0

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Refuse the parameter by which scikit-learn's `CalibratedClassifierCV` chooses a method."""
        if "method" in parameters:
            advice = "use calibrator=IsotonicCalibrator(), PlattCalibrator() or another"
            raise InvalidTypeError("method", "be left out", got=shown(parameters["method"]), advice=advice)
        instance: Self = super().__new__(cls)
        return instance

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
            Labels of two classes.
        X_target : array-like or frame of shape (n_target, n_features), optional
            Unlabelled rows of the population that predictions are for, where it is another one; for calibrators that
            correct the difference, such as `ShiftCalibrator(ratio=ULSIF())`.
        calibration_weight : array-like of shape (n,), optional
            The `sample_weight` of the calibrator's `fit`, for the rows that calibrate.
        groups : array-like of shape (n,), optional
            The group of each row, such as its customer or patient, where several rows belong together: whole numbers,
            dates or text. Groups stay whole: hold-out and folds draw groups in place of rows, and `calibration_size` is
            a share or a number of groups. The calibrator's `fit` gets them too, where it takes groups.
        time : array-like of shape (n,), optional
            For ``holdout="last"``: the time of each row, as numbers, dates, or text of ISO 8601 dates. Without it, rows
            are in order.
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
            raise InvalidTypeError("X_target", rule, got=f"rows and {shown(self.calibrator)}", advice=advice)
        if time is not None and self.holdout != "last":
            last: Text = ("set ", Setting("holdout", "last"))
            raise InvalidTypeError("time", "be None unless the last rows are held out", got="times", advice=last)
        given = {"calibration_weight": calibration_weight, "groups": groups, "time": time}
        task = self._task(X, y, params | {name: value for name, value in given.items() if value is not None})
        folds = [] if self._is_frozen() else parts(task, self.cv, self.calibration_size)
        if self.holdout == "last" and time is None and is_sorted_by_label(task.labels == task.classes[1]):
            warn_caller(_SORTED)
        fitting = Fitting(task, self.estimator, self._calibrator(), self.response_method, folds)
        if self._merges_folds():
            estimator, calibrator = fitting.folds_merged()
        else:
            estimator, calibrator = fitting.pair(X_target, self._fit_arguments())
        validate_data(self, task.X, skip_check_array=True)
        self.estimator_, self.calibrator_, self.classes_ = estimator, calibrator, task.classes
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not {"classes", "pos_label"} <= set(self._calibrator().get_params(deep=False)):
            raise InvalidTypeError("calibrator", "have the parameters classes and pos_label", shown(self.calibrator))
        if isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
        if self.holdout == "last" and (self._is_frozen() or self.cv is not None):
            rule = "be 'random' where no rows are held out"
            got = "a frozen estimator" if self._is_frozen() else f"cv={shown(self.cv)}"
            raise InvalidValueError("holdout", rule, got=got, advice="pass the rows to calibrate on yourself")
        if self._is_frozen() and self.cv is not None:
            rule = "be None for a frozen estimator, which is not fitted again"
            raise InvalidValueError("cv", rule, got=shown(self.cv))

    def _is_frozen(self) -> bool:
        """Whether the estimator stays as it is."""
        return isinstance(self.estimator, FrozenEstimator) or not hasattr(self.estimator, "fit")

    def _calibrator(self) -> Any:
        return AnchoredCalibrator() if self.calibrator is None else self.calibrator

    def _fit_arguments(self) -> set[str]:
        """What the calibrator's `fit` takes."""
        return set(inspect.signature(self._calibrator().fit).parameters)

    def _merges_folds(self) -> bool:
        """Whether each fold keeps its model and its calibrator, to be merged when predicting: cross Venn-Abers."""
        return self.cv is not None and isinstance(self.calibrator, VennAbersCalibrator)

    def _task(self, X: FeatureRows, y: ArrayLike, params: dict[str, Any]) -> Task:
        """Check the arguments of `fit`; rows of weight zero are left out."""
        if y is None:
            raise InvalidValueError(None, "this CalibratedClassifier requires y to be passed, but the target y is None")
        X, given = indexable(X, y)
        X, given, params = without_weightless(X, given, params)
        labels = binary_labels(given)
        weight, groups, time = (params.pop(name, None) for name in ("calibration_weight", "groups", "time"))
        to_model, to_calibrator = self._routed(params)
        keys = None if groups is None else Groups.of(groups, len(labels)).row_keys
        if groups is not None and "groups" in self._fit_arguments():
            to_calibrator["groups"] = groups
        if weight is not None:
            to_calibrator["sample_weight"] = self._calibration_weight(weight, len(labels))
        frozen = self._is_frozen()
        if frozen and to_model:
            raise InvalidTypeError(", ".join(to_model), "be left out for a frozen estimator, which is not fitted again")
        moments = self._moments(time, len(labels)) if self.holdout == "last" else None
        classes = self._two_classes(labels, frozen)
        fingerprint = 0 if frozen else features_fingerprint(X, labels == classes[1])
        source = RandomSource.of(self.random_state, "hold-out and folds", rows=fingerprint)
        return Task(X, labels, classes, to_model, to_calibrator, keys, moments, source)

    def _moments(self, time: ArrayLike | None, n_rows: int) -> IndexArray:
        """The rank of each row's time."""
        return np.arange(n_rows) if time is None else np.unique(read_times(time, n_rows), return_inverse=True)[1]

    def _calibration_weight(self, weight: ArrayLike, n_rows: int) -> ArrayLike:
        if "sample_weight" not in self._fit_arguments():
            rule, got = "be None for a calibrator whose fit takes no sample_weight", shown(self._calibrator())
            raise InvalidTypeError("calibration_weight", rule, got=got)
        return as_frequencies(weight, n_rows, "calibration_weight")

    def _two_classes(self, labels: NDArray[Any], frozen: bool) -> NDArray[Any]:
        seen = np.unique(labels)
        known = np.asarray(getattr(self.estimator, "classes_", seen)) if frozen else seen
        if known.size != 2 or not np.isin(seen, known).all():
            rule = f"have the classes of the frozen estimator, {known.tolist()}" if frozen else "have two classes"
            got = f"{seen.tolist()}" if frozen else f"one class only, {seen.tolist()}"
            advice = None if frozen else "add rows of the other class, without which no classifier can be fitted"
            raise InvalidValueError("y", rule, got=got, advice=advice)
        return known

    def _routed(self, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments for the model's `fit`, and for the calibrator's."""
        from sklearn import get_config

        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            return dict(routed.estimator.fit), dict(routed.calibrator.fit)
        names = self._fit_arguments() - {"sample_weight"}
        to_calibrator = {name: value for name, value in params.items() if name in names}
        return {name: value for name, value in params.items() if name not in names}, to_calibrator

    @property
    def guarantee_(self) -> Guarantee | NoGuarantee:
        """What is guaranteed of the calibrated probabilities."""
        check_is_fitted(self, "calibrator_")
        guarantee: Guarantee | NoGuarantee = self.calibrator_.guarantee_
        return guarantee

    def _calibrated(self, method: str, X: FeatureRows, segments: ArrayLike | None, **options: Any) -> NDArray[Any]:
        check_is_fitted(self)
        if hasattr(self, "n_features_in_") and getattr(X, "ndim", 2) == 1:
            advice = "Reshape your data using X.reshape(1, -1) for one row, or X.reshape(-1, 1) for one feature"
            raise InvalidValueError("X", "have two dimensions", got="a 1D array", advice=advice)
        validate_data(self, X, skip_check_array=True, reset=False)
        if segments is not None:
            options["segments"] = segments
        scores = response_of(self.estimator_, X, self.classes_, self.response_method)
        return np.asarray(getattr(self.calibrator_, method)(scores, **options))

    def predict_proba(self, X: FeatureRows, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probabilities of both classes, shape (n, 2); the columns follow `classes_`."""
        return self._calibrated("predict_proba", X, segments)

    def predict(self, X: FeatureRows, *, segments: ArrayLike | None = None) -> NDArray[Any]:
        """Return the more probable class, shape (n,)."""
        chosen = self._calibrated("predict_proba", X, segments).argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    @available_if(_calibrator_has("predict_interval"))  # type: ignore[untyped-decorator]
    @framed
    def predict_interval(self, X: FeatureRows, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return what the calibrator's `predict_interval` gives for `classes_[1]`, shape (n, 2)."""
        return self._calibrated("predict_interval", X, segments)

    @available_if(_calibrator_has("predict_rate_interval"))  # type: ignore[untyped-decorator]
    @framed
    def predict_rate_interval(self, X: FeatureRows, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return confidence limits, shape (n, 2), for the true rate of `classes_[1]` in each row's region."""
        return self._calibrated("predict_rate_interval", X, segments)

    @available_if(_calibrator_has("predict_set"))  # type: ignore[untyped-decorator]
    @framed
    def predict_set(self, X: FeatureRows, *, coverage: float = 0.95, segments: ArrayLike | None = None) -> BoolArray:
        """Return the labels that are not ruled out, shape (n, 2), boolean; the columns follow `classes_`."""
        return self._calibrated("predict_set", X, segments, coverage=coverage)

    @available_if(_gives_multiprobability)  # type: ignore[untyped-decorator]
    @framed
    def predict_multiprobability(self, X: FeatureRows, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return a Venn predictor's p0 and p1, shape (n, 2), for `classes_[1]`: not a confidence interval."""
        return self._calibrated("predict_multiprobability", X, segments)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which further arguments go where, when scikit-learn's metadata routing is switched on."""
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=to_fit)
        return router.add(calibrator=self._calibrator(), method_mapping=to_fit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        if hasattr(self.estimator, "fit"):
            inner = get_tags(self.estimator)
            tags.input_tags.sparse = inner.input_tags.sparse
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


# inspect.signature takes the parameters of a class from __new__ where there is one
CalibratedClassifier.__new__.__wrapped__ = CalibratedClassifier.__init__  # type: ignore[attr-defined]
