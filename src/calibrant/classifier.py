"""A classifier and a calibrator as one scikit-learn estimator."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, check_cv, cross_val_predict
from sklearn.utils import Bunch, _safe_indexing, assert_all_finite, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from calibrant._params import (
    FRACTION_OR_COUNT,
    CheckedParameters,
    Choice,
    Having,
    Integer,
    Optional,
    RandomState,
    Rule,
    as_generator,
)
from calibrant._text import shown
from calibrant._typing import ArrayLike, BoolArray, FloatArray, IndexArray
from calibrant.calibrators.binning import BinningCalibrator
from calibrant.calibrators.cross_venn_abers import CrossVennAbersCalibrator
from calibrant.calibrators.venn_abers import VennAbersCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee import Guarantee, NoGuarantee

RESPONSE_METHODS = ("auto", "predict_proba", "decision_function")
_CROSS_FITTED = (
    "the scores came from models fitted on parts of the data, not from the model that predicts; "
    "use cv=None for a promise that is proved"
)


def _calibrator_has(method: str) -> Callable[["CalibratedClassifier"], bool]:
    def check(self: "CalibratedClassifier") -> bool:
        return hasattr(BinningCalibrator if self.calibrator is None else self.calibrator, method)

    return check


def _gives_multiprobability(classifier: "CalibratedClassifier") -> bool:
    return hasattr(classifier.calibrator, "predict_multiprobability") and not classifier._merges_folds()


class CalibratedClassifier(CheckedParameters, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Any binary classifier, with calibrated probabilities, intervals, sets and a stated guarantee.

    Parameters
    ----------
    estimator : classifier
        Needs `predict_proba` or `decision_function`. It is cloned and fitted on a random part of the rows; a fitted
        model goes in as `FrozenEstimator(model)`, and then all rows calibrate it.
    calibrator : calibrator, default=None
        None is `BinningCalibrator(n_bins="auto")`.
    cv : None, int or splitter, default=None
        None holds out `calibration_size` of the rows to calibrate on, drawn at random and never stratified, so that
        they are independent draws, as the promise needs. Otherwise the calibrator sees out-of-fold scores and the
        model is then fitted on all rows: no row is spared, but the scores are not the final model's, so nothing is
        proved, and `guarantee_` says so. With a `VennAbersCalibrator` this is cross Venn-Abers: every fold keeps its
        own model and calibrator, and their predictions are merged (see `CrossVennAbersCalibrator`).
    calibration_size : float or int, default=0.25
        Fraction or number of rows to calibrate on, for `cv=None`.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Where scores come from; "auto" takes the first of the two that the estimator has.
    random_state : int, Generator, RandomState or None, default=None
        Draws the calibration rows.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model; for cross Venn-Abers the tuple of the folds' models.
    calibrator_ : calibrator
        The fitted calibrator.
    guarantee_ : Guarantee or NoGuarantee
        What is promised, or why nothing is.
    classes_ : array of shape (2,)
        The labels, sorted.

    Notes
    -----
    Further arguments of `fit` that the calibrator's `fit` names, such as `segments`, go there, all others to the
    model's `fit`; `sample_weight` goes to the model, for the calibrator measures the rates of the population as it
    is. With scikit-learn's metadata routing switched on, requests decide instead. Arguments with one entry per row
    are split with the rows.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from calibrant import CalibratedClassifier
    >>> X, y = make_classification(n_samples=4000, random_state=0)
    >>> model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape, model.predict_interval(X[:2]).shape
    ((2, 2), (2, 2))
    """

    _parameter_rules: ClassVar[Mapping[str, Rule[Any]]] = {
        "estimator": Having(("fit",), "a classifier, such as LogisticRegression()"),
        "calibrator": Optional(
            Having(("predict_proba", "get_params"), "a calibrator of scores, such as BinningCalibrator()")
        ),
        "cv": Optional(Integer(2) | Having(("split",), "a splitter")),
        "calibration_size": FRACTION_OR_COUNT,
        "response_method": Choice(RESPONSE_METHODS),
        "random_state": RandomState(),
    }

    def __init__(
        self,
        estimator: Any,
        calibrator: Any = None,
        *,
        cv: Any = None,
        calibration_size: float = 0.25,
        response_method: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.calibration_size = calibration_size
        self.response_method = response_method
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, *, X_target: Any = None, **params: Any) -> Self:
        """Fit the model on one part of the rows and calibrate it on the other.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Handed to the estimator as it is.
        y : array-like of shape (n,)
            Labels of two kinds.
        X_target : array-like or frame of shape (n_target, n_features), optional
            Unlabelled rows of the population that predictions are for, where it is another; for calibrators that
            correct the difference, such as `ShiftCalibrator(ratio=ULSIF())`.
        **params : dict
            Further arguments for the estimator's or the calibrator's `fit`.

        Returns
        -------
        self
        """
        self._check_parameters()
        if (
            self.calibrator is not None
            and not {"classes", "pos_label"} <= self.calibrator.get_params(deep=False).keys()
        ):
            rule = self._parameter_rules["calibrator"].words
            raise InvalidTypeError("calibrator", f"be {rule}", got=shown(self.calibrator))
        if X_target is not None:
            self._check_takes_target()
        X, labels, params = self._check_rows(X, y, params)
        routed = self._route(params)
        frozen = isinstance(self.estimator, FrozenEstimator)
        classes = self._two_classes(labels, frozen)
        generator = as_generator(self.random_state)
        if frozen:
            self._check_frozen(routed)
        if self._merges_folds():
            estimator, calibrator = self._fit_folds(X, labels, classes, routed, generator)
        else:
            estimator, calibrator = self._fit_pair(X, labels, classes, routed, generator, X_target)
        validate_data(self, X, skip_check_array=True)
        self.estimator_, self.calibrator_, self.classes_ = estimator, calibrator, classes
        return self

    def _merges_folds(self) -> bool:
        """Whether each fold keeps its model and its calibrator, to be merged when predicting: cross Venn-Abers."""
        return self.cv is not None and isinstance(self.calibrator, VennAbersCalibrator)

    def _fit_pair(
        self,
        X: Any,
        labels: NDArray[Any],
        classes: NDArray[Any],
        routed: Bunch,
        generator: np.random.Generator,
        X_target: Any,
    ) -> tuple[Any, Any]:
        """One model and one calibrator."""
        caveat, training = None, None
        if isinstance(self.estimator, FrozenEstimator):
            estimator, scores, rows = self.estimator, None, np.arange(_num_samples(X))
        elif self.cv is None:
            training, rows = self._held_out(_num_samples(X), generator)
            estimator, scores = self._fit_estimator(X, labels, routed, training), None
        else:
            rows, caveat = np.arange(_num_samples(X)), _CROSS_FITTED
            scores = self._out_of_fold_scores(X, labels, classes, routed, generator)
            estimator = self._fit_estimator(X, labels, routed, rows)
        if scores is None:
            scores = self._scores(estimator, _safe_indexing(X, rows), classes)
        calibrator = self._new_calibrator(classes)
        params = _check_method_params(X, routed.calibrator.fit, indices=rows)
        if X_target is not None:
            params |= self._about_target(estimator, calibrator, X, training, rows, X_target, classes)
        calibrator.fit(scores, labels[rows], **params)
        if caveat is not None and isinstance(calibrator.guarantee_, Guarantee):
            calibrator.guarantee_ = calibrator.guarantee_.with_caveat(caveat)
        return estimator, calibrator

    def _check_takes_target(self) -> None:
        calibrator = BinningCalibrator if self.calibrator is None else self.calibrator
        if not {"X_target", "target_scores"} & set(inspect.signature(calibrator.fit).parameters):
            raise InvalidTypeError(
                "X_target must be None for a calibrator that does not correct for another population; got rows and "
                f"calibrator={self.calibrator!r}: use ShiftCalibrator or LabelShiftCalibrator"
            )

    def _about_target(
        self,
        estimator: Any,
        calibrator: Any,
        X: Any,
        training: IndexArray | None,
        rows: IndexArray,
        X_target: Any,
        classes: NDArray[Any],
    ) -> dict[str, Any]:
        """What the calibrator's `fit` wants to know of the target population."""
        wanted = inspect.signature(calibrator.fit).parameters
        known: dict[str, Any] = {"X_target": X_target}
        if "X_target" in wanted:
            known["X"] = _safe_indexing(X, rows)
            # weights learned from rows that are not calibrated on do not depend on those that are
            known["X_source"] = None if training is None else _safe_indexing(X, training)
        if "target_scores" in wanted:
            known["target_scores"] = self._scores(estimator, X_target, classes)
        return {name: value for name, value in known.items() if name in wanted}

    def _fit_folds(
        self, X: Any, labels: NDArray[Any], classes: NDArray[Any], routed: Bunch, generator: np.random.Generator
    ) -> tuple[tuple[Any, ...], CrossVennAbersCalibrator]:
        """A model and a calibrator per fold: each calibrator sees scores of its own model, on rows new to it."""
        models, calibrators = [], []
        for training, rows in check_cv(self._splitter(generator), labels, classifier=True).split(X, labels):
            model = self._fit_estimator(X, labels, routed, training)
            scores = self._scores(model, _safe_indexing(X, rows), classes)
            params = _check_method_params(X, routed.calibrator.fit, indices=rows)
            calibrators.append(self._new_calibrator(classes).fit(scores, labels[rows], **params))
            models.append(model)
        return tuple(models), CrossVennAbersCalibrator.from_folds(calibrators)

    def _check_rows(self, X: Any, y: ArrayLike, params: dict[str, Any]) -> tuple[Any, NDArray[Any], dict[str, Any]]:
        """Return what can be taken by row; a row of weight zero takes part in nothing."""
        if y is None:
            raise InvalidValueError("this CalibratedClassifier requires y to be passed, but the target y is None")
        X, y = indexable(X, y)
        weightless = np.asarray(params.get("sample_weight", [])) == 0
        if weightless.shape == (_num_samples(X),) and weightless.any():
            rows = np.flatnonzero(~weightless)
            params = _check_method_params(X, params, indices=rows)
            X, y = _safe_indexing(X, rows), _safe_indexing(y, rows)
            if np.unique(np.asarray(y)).size < 2:
                raise InvalidValueError("y must hold two classes among the rows with a positive sample_weight; got one")
        assert_all_finite(np.asarray(y), input_name="y")
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise InvalidValueError(
                f"Only binary classification is supported. The type of the target is {kind}. For more classes, "
                "calibrate one class against the rest"
            )
        return X, column_or_1d(y, warn=True), params

    def _two_classes(self, labels: NDArray[Any], frozen: bool) -> NDArray[Any]:
        seen = np.unique(labels)
        if frozen:
            known = np.asarray(self.estimator.classes_)
            if known.size != 2 or not np.isin(seen, known).all():
                raise InvalidValueError(
                    f"y must hold the two classes of the frozen estimator, {known.tolist()}; got {seen.tolist()}"
                )
            return known
        if seen.size < 2:
            raise InvalidValueError(f"y must hold two classes; got one class only, {seen.tolist()}")
        return seen

    def _check_frozen(self, routed: Bunch) -> None:
        check_is_fitted(self.estimator)
        if self.cv is not None:
            raise InvalidValueError(
                f"cv must be None for a frozen estimator, which is not fitted again; got {self.cv!r}"
            )
        if routed.estimator.fit:
            names = ", ".join(routed.estimator.fit)
            raise InvalidTypeError(f"{names} can not be used: the estimator is frozen and is not fitted again")

    def _held_out(self, n_rows: int, generator: np.random.Generator) -> tuple[IndexArray, IndexArray]:
        """Rows to train on and rows to calibrate on, drawn without a look at the labels."""
        part = FRACTION_OR_COUNT.check("calibration_size", self.calibration_size)
        size = part if isinstance(part, int) else max(1, round(part * n_rows))
        if size >= n_rows:
            raise InvalidValueError(
                f"calibration_size must leave rows to train on; got {size} of n_samples={n_rows}. Use more rows, or a "
                "fitted model in a FrozenEstimator"
            )
        order = generator.permutation(n_rows)
        return np.sort(order[size:]), np.sort(order[:size])

    def _fit_estimator(self, X: Any, labels: NDArray[Any], routed: Bunch, rows: IndexArray) -> Any:
        params = _check_method_params(X, routed.estimator.fit, indices=rows)
        return clone(self.estimator).fit(_safe_indexing(X, rows), labels[rows], **params)

    def _new_calibrator(self, classes: NDArray[Any]) -> Any:
        calibrator = BinningCalibrator() if self.calibrator is None else clone(self.calibrator)
        positive = classes[1:].tolist()[0]
        if calibrator.pos_label not in (None, positive):
            raise InvalidValueError(
                f"pos_label of the calibrator must be None or {positive!r}, the class that scores speak for; "
                f"got {calibrator.pos_label!r}"
            )
        return calibrator.set_params(classes=tuple(classes.tolist()), pos_label=positive)

    def _response_method(self, estimator: Any) -> str:
        wanted = RESPONSE_METHODS[1:] if self.response_method == "auto" else (self.response_method,)
        for name in wanted:
            if hasattr(estimator, name):
                return name
        raise InvalidTypeError(f"estimator must have {' or '.join(wanted)}; got {type(estimator).__name__}")

    def _scores(self, estimator: Any, X: Any, classes: NDArray[Any]) -> FloatArray:
        """The estimator's score for the second class; of several models, one column each."""
        if isinstance(estimator, tuple):
            return np.column_stack([self._scores(model, X, classes) for model in estimator])
        response = getattr(estimator, self._response_method(estimator))(X)
        return _second_class(np.asarray(response), np.asarray(estimator.classes_), classes)

    def _out_of_fold_scores(
        self, X: Any, labels: NDArray[Any], classes: NDArray[Any], routed: Bunch, generator: np.random.Generator
    ) -> FloatArray:
        cv = self._splitter(generator)
        name = self._response_method(self.estimator)
        codes = (labels == classes[1]).astype(np.int64)  # scores of whatever folds come back in this order
        response = cross_val_predict(self.estimator, X, codes, cv=cv, method=name, params=routed.estimator.fit)
        return _second_class(np.asarray(response), np.array([0, 1]), np.array([0, 1]))

    def _splitter(self, generator: np.random.Generator) -> Any:
        if not isinstance(self.cv, int | np.integer):
            return self.cv
        return KFold(int(self.cv), shuffle=True, random_state=int(generator.integers(2**31)))

    @property
    def guarantee_(self) -> Guarantee | NoGuarantee:
        """What is promised of the calibrated probabilities."""
        check_is_fitted(self, "calibrator_")
        guarantee: Guarantee | NoGuarantee = self.calibrator_.guarantee_
        return guarantee

    def _calibrated(self, method: str, X: Any, segments: ArrayLike | None, **options: Any) -> Any:
        check_is_fitted(self)
        if hasattr(self, "n_features_in_") and getattr(X, "ndim", 2) == 1:
            raise InvalidValueError(
                "X must have one row per case; got a 1D array. Reshape your data using X.reshape(1, -1) for one case, "
                "or X.reshape(-1, 1) for one feature"
            )
        validate_data(self, X, skip_check_array=True, reset=False)
        if segments is not None:
            options["segments"] = segments
        return getattr(self.calibrator_, method)(self._scores(self.estimator_, X, self.classes_), **options)

    def predict_proba(self, X: Any, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probabilities of both labels, shape (n, 2); the columns follow `classes_`."""
        probabilities: FloatArray = self._calibrated("predict_proba", X, segments)
        return probabilities

    def predict(self, X: Any, *, segments: ArrayLike | None = None) -> NDArray[Any]:
        """Return the more probable label, shape (n,)."""
        more_probable = self.predict_proba(X, segments=segments).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[more_probable]
        return labels

    @available_if(_calibrator_has("predict_interval"))  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return confidence limits, shape (n, 2), for the true rate of `classes_[1]` in each row's region."""
        limits: FloatArray = self._calibrated("predict_interval", X, segments)
        return limits

    @available_if(_calibrator_has("predict_set"))  # type: ignore[untyped-decorator]
    def predict_set(self, X: Any, *, coverage: float = 0.95, segments: ArrayLike | None = None) -> BoolArray:
        """Return the labels that may not be ruled out, shape (n, 2), boolean; the columns follow `classes_`."""
        sets: BoolArray = self._calibrated("predict_set", X, segments, coverage=coverage)
        return sets

    @available_if(_gives_multiprobability)  # type: ignore[untyped-decorator]
    def predict_multiprobability(self, X: Any, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return a Venn predictor's p0 and p1, shape (n, 2), for `classes_[1]`: not a confidence interval."""
        both: FloatArray = self._calibrated("predict_multiprobability", X, segments)
        return both

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which further arguments go where, when scikit-learn's metadata routing is switched on."""
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        calibrator = BinningCalibrator() if self.calibrator is None else self.calibrator
        return (
            MetadataRouter(owner=self)
            .add(estimator=self.estimator, method_mapping=to_fit)
            .add(calibrator=calibrator, method_mapping=to_fit)
        )

    def _route(self, params: dict[str, Any]) -> Bunch:
        from sklearn import get_config

        if get_config()["enable_metadata_routing"]:
            return process_routing(self, "fit", **params)
        calibrator = BinningCalibrator if self.calibrator is None else self.calibrator
        names = set(inspect.signature(calibrator.fit).parameters) - {"sample_weight"}
        to_calibrator = {name: value for name, value in params.items() if name in names}
        to_estimator = {name: value for name, value in params.items() if name not in names}
        return Bunch(estimator=Bunch(fit=to_estimator), calibrator=Bunch(fit=to_calibrator))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _second_class(response: NDArray[Any], known: NDArray[Any], classes: NDArray[Any]) -> FloatArray:
    """The column of the second class; a model that saw one class only gives it 0 or 1 throughout."""
    if response.ndim == 1:
        return response
    if classes[1] not in known:
        return np.zeros(len(response))
    scores: FloatArray = response[:, int(np.flatnonzero(known == classes[1])[0])]
    return scores
