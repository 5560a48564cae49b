"""Choosing with open eyes: calibrators side by side, by what they score, promise, weigh and take."""

import json
import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv

from calibrant._input import as_scores, check_same_length, column_count, shown
from calibrant._labels import encode_labels
from calibrant._optional import pandas
from calibrant._params import as_generator, check_int
from calibrant._typing import ArrayLike, FloatArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.metrics import brier_score, ece, log_loss

UNCALIBRATED = "as they are"
_COLUMNS = ("log_loss", "brier", "ece", "epsilon", "state_bytes", "fit_seconds", "predict_seconds")


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Calibrators side by side, one entry per method in every array.

    Attributes
    ----------
    methods : tuple of str
        Names; "as they are" are the scores without a calibrator, where they are probabilities.
    log_loss, brier, ece : float arrays
        On rows that the calibrator was not fitted on, all folds together. Lower is better.
    epsilon : float array
        Guaranteed largest error, in every region at once, of the calibrator fitted on all rows; NaN where nothing is
        guaranteed. It is the one column that is a promise; the others are measurements.
    guarantee : tuple of str
        What is promised, in a sentence; why nothing is, where that is so.
    state_bytes : int array
        Size of the fitted state as JSON.
    fit_seconds, predict_seconds : float arrays
        Wall-clock time to fit on all rows, and to predict them.
    n_rows : int
        Rows with labels.
    n_folds : int
        Folds.
    """

    methods: tuple[str, ...]
    log_loss: FloatArray
    brier: FloatArray
    ece: FloatArray
    epsilon: FloatArray
    guarantee: tuple[str, ...]
    state_bytes: IntArray
    fit_seconds: FloatArray
    predict_seconds: FloatArray
    n_rows: int
    n_folds: int

    def to_frame(self) -> Any:
        """Return the comparison as a pandas frame, one row per method."""
        pd = pandas()
        return pd.DataFrame(
            {name: getattr(self, name) for name in _COLUMNS}, index=pd.Index(self.methods, name="method")
        )

    def __str__(self) -> str:
        width = max(len("method"), *(len(method) for method in self.methods))
        head = ("log loss", "Brier", "ECE", "guaranteed", "state", "fit", "predict")
        lines = [f"{'method':<{width}} " + " ".join(f"{name:>10}" for name in head)]
        for row, method in enumerate(self.methods):
            promise = "none" if math.isnan(self.epsilon[row]) else f"{self.epsilon[row]:.4f}"
            cells = (
                f"{self.log_loss[row]:.4f}",
                f"{self.brier[row]:.4f}",
                f"{self.ece[row]:.4f}",
                promise,
                f"{self.state_bytes[row]:,} B",
                _duration(self.fit_seconds[row]),
                _duration(self.predict_seconds[row]),
            )
            lines.append(f"{method:<{width}} " + " ".join(f"{cell:>10}" for cell in cells))
        lines.append(f"{self.n_rows:,} rows, {self.n_folds} folds; only the guaranteed column is a promise")
        return "\n".join(lines)


def compare(
    calibrators: Mapping[str, Any] | Sequence[Any],
    scores: ArrayLike,
    y: ArrayLike,
    cv: Any = 5,
    *,
    pos_label: Hashable | None = None,
    classes: ArrayLike | None = None,
    random_state: Any = 0,
) -> Comparison:
    """Put calibrators side by side on the same rows.

    Claimed: `epsilon` is each calibrator's own promise when fitted on all rows, with its own confidence level. The
    other columns are measurements by cross-validation, without a promise; differences between methods smaller than
    about 1 / sqrt(n) are noise.

    Parameters
    ----------
    calibrators : mapping from name to calibrator, or sequence of calibrators
        With `fit(scores, y)` and `predict(scores)`. In a sequence they are named after their classes.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Scores of rows the model was not trained on.
    y : array-like of shape (n,)
        Labels, of two kinds. The calibrators see them as 0 and 1.
    cv : int or splitter, default=5
        Number of folds, stratified and shuffled, or what scikit-learn's `check_cv` takes.
    pos_label, classes
        As in `BinningCalibrator`.
    random_state : int, Generator, RandomState or None, default=0
        Shuffles the folds, where `cv` is a number.

    Returns
    -------
    Comparison

    Notes
    -----
    A calibrator that predicts exactly 0 or 1 has an infinite log loss as soon as it is wrong once. That is what the
    log loss says, so it is not clipped away; ECE is the paper's, in ten bins of equal width.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BinningCalibrator, PlattCalibrator, compare
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=5_000)
    >>> y = rng.uniform(size=5_000) < scores**2
    >>> result = compare([PlattCalibrator(), BinningCalibrator(n_bins=10)], scores, y)
    >>> result.methods
    ('as they are', 'Platt', 'Binning')
    >>> result.epsilon.round(3)
    array([  nan,   nan, 0.058])
    """
    contenders = _named(calibrators)
    codes, known = encode_labels(y, classes=classes, pos_label=pos_label, score_columns=column_count(scores))
    checked = as_scores(scores, positive_column=known.positive_index).astype(np.float64)
    check_same_length(checked, codes)
    folds = _folds(cv, checked, codes, random_state)
    entries = []
    if checked.min() >= 0.0 and checked.max() <= 1.0:
        entries.append(_Entry(UNCALIBRATED, *_measured(codes, checked), math.nan, "nothing is promised", 0, 0.0, 0.0))
    entries += [_entry(name, calibrator, checked, codes, folds) for name, calibrator in contenders.items()]
    columns = {name: np.array([getattr(entry, name) for entry in entries]) for name in _COLUMNS}
    return Comparison(
        methods=tuple(entry.name for entry in entries),
        guarantee=tuple(entry.guarantee for entry in entries),
        n_rows=checked.size,
        n_folds=len(folds),
        **columns,
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    log_loss: float
    brier: float
    ece: float
    epsilon: float
    guarantee: str
    state_bytes: int
    fit_seconds: float
    predict_seconds: float


def _named(calibrators: Any) -> dict[str, Any]:
    if isinstance(calibrators, Mapping):
        named = {str(name): calibrator for name, calibrator in calibrators.items()}
    elif isinstance(calibrators, Sequence) and not isinstance(calibrators, str):
        named = {}
        for calibrator in calibrators:
            name = type(calibrator).__name__.removesuffix("Calibrator")
            same = sum(known == name or known.startswith(f"{name} ") for known in named)
            named[f"{name} {same + 1}" if same else name] = calibrator
    else:
        raise InvalidTypeError(
            f"calibrators must be a mapping from name to calibrator, or a sequence; got {shown(calibrators)}"
        )
    if not named:
        raise InvalidValueError("calibrators must hold at least one calibrator; got none")
    for name, calibrator in named.items():
        if not all(callable(getattr(calibrator, method, None)) for method in ("fit", "predict", "get_params")):
            raise InvalidTypeError(
                f"calibrators must have fit, predict and get_params; got {type(calibrator).__name__} for {name!r}"
            )
    return named


def _folds(cv: Any, scores: FloatArray, codes: Any, random_state: Any) -> list[tuple[Any, Any]]:
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        rarest = int(min(codes.sum(), codes.size - codes.sum()))
        n_folds = check_int("cv", cv, minimum=2)
        if rarest < n_folds:
            raise InvalidValueError(
                f"cv must be at most the number of rows of the rarer label, {rarest}; got {n_folds}: use fewer folds"
            )
        seed = int(as_generator(random_state).integers(2**31))
        cv = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    folds = list(check_cv(cv).split(scores[:, None], codes))
    if np.unique(np.concatenate([test for _, test in folds])).size != scores.size:
        raise InvalidValueError("cv must put every row into a test fold; got a splitter that leaves some out")
    return folds


def _measured(codes: Any, prediction: FloatArray) -> tuple[float, float, float]:
    return (
        log_loss(codes, prediction, classes=(0, 1)).value,
        brier_score(codes, prediction, classes=(0, 1)).value,
        ece(codes, prediction, strategy="uniform", classes=(0, 1)).value,
    )


def _entry(name: str, calibrator: Any, scores: FloatArray, codes: Any, folds: list[tuple[Any, Any]]) -> _Entry:
    prediction = np.empty(scores.size)
    for train, test in folds:
        prediction[test] = _prepared(calibrator).fit(scores[train], codes[train]).predict(scores[test])
    fitted = _prepared(calibrator)
    start = time.perf_counter()
    fitted.fit(scores, codes)
    middle = time.perf_counter()
    fitted.predict(scores)
    end = time.perf_counter()
    promise = getattr(fitted, "guarantee_", None)
    epsilon = getattr(promise, "epsilon", None)
    proved = bool(getattr(promise, "is_proved", epsilon is not None))
    return _Entry(
        name,
        *_measured(codes, prediction),
        epsilon=float(epsilon) if epsilon is not None and proved else math.nan,
        guarantee="nothing is promised" if promise is None else str(promise),
        state_bytes=_state_bytes(fitted),
        fit_seconds=middle - start,
        predict_seconds=end - middle,
    )


def _prepared(calibrator: Any) -> Any:
    """A copy that knows both labels, since a fold may hold one of them only, and they are 0 and 1 here."""
    copy = clone(calibrator)
    parameters = copy.get_params(deep=False)
    known = {"classes": (0, 1), "pos_label": 1}
    return copy.set_params(**{name: value for name, value in known.items() if name in parameters})


def _state_bytes(fitted: Any) -> int:
    """Length of the state as JSON; 0 for a calibrator that has no such state."""
    if not hasattr(fitted, "to_dict"):
        return 0
    return len(json.dumps(fitted.to_dict(), separators=(",", ":")).encode())


def _duration(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms" if seconds < 1.0 else f"{seconds:.2f} s"
