"""Calibrators that are curves, one number in, one number out, learned from counts of rows by score;
and the logistic curve that fits counts best.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from calibrant._typing import ArrayLike, FloatArray, IntArray
from calibrant.calibrators.regions.weighted_rows import checked_bound, has_weights, weights_of
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.calibrators.table import Steps, Table, steps_everywhere
from calibrant.cells.lines import INNER_ENDS, Lines
from calibrant.cells.score_counts import ScoreCounts
from calibrant.guarantee.no_guarantee import INJECTIVE, NoGuarantee
from calibrant.params.arrays import as_scores, check_rows
from calibrant.params.estimator import check_is_fitted
from calibrant.params.frames import predicts
from calibrant.params.labels import Classes
from calibrant.sample.facts import Reach, RowFacts
from calibrant.sample.reader import ONE_EACH, refuse
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample
from calibrant.text.sentences import Text

RIDGE = 1e-12
"""Penalty on squared coefficients of standardised features, next to a mean loss of order 1.

It moves a well-determined optimum by about 1e-10, and gives one where the likelihood has none: if a
threshold separates the labels, or if there is only one class. Probabilities are then within about
1e-10 of 0 and 1.
"""

_NEWTON_STEPS = 500
_NEWTON_TOLERANCE = 1e-13


@dataclass(eq=False, repr=False, kw_only=True)
class CurveCalibrator(ScoreCalibrator):
    """A calibrator whose state is a few numbers.

    A subclass declares what it learns (`_learned`), by attributes that end in an underscore, and,
    unless it is strictly increasing, the statement that replaces a guarantee (`_claim`). It defines
    how the state is learned (`_learn`), what to check besides the rules of single entries
    (`_check_curve`), and the curve itself (`_curve`). `fit` applies the same rules, so that fitted
    and saved calibrators both obey them. One that can be exported also gives its table
    (`_own_table`).
    """

    _claim: ClassVar[NoGuarantee] = INJECTIVE
    needs_probabilities: ClassVar[bool] = False
    """Whether logarithms of a score and of one minus it are taken."""
    reaches_ends: ClassVar[bool] = True
    """Whether labels of one class only give values of exactly 0 or 1, unless they are smoothed."""

    pos_label: Hashable = None

    @abstractmethod
    def _learn(self, rows: ScoreCounts) -> dict[str, Any]:
        """The state that fits the rows best, as plain JSON values."""

    def _check_curve(self) -> None:
        """Raise an error if learned values are inconsistent; set what follows from them."""

    @abstractmethod
    def _curve(self, scores: FloatArray) -> FloatArray:
        """The calibrated probability of checked scores; numpy's floating-point warnings are off."""

    def _row_counts(self, weights: FloatArray) -> FloatArray:
        """The number of rows that each row with an importance weight counts as."""
        return weights

    def _check_scores(self, scores: NDArray[Any]) -> None:
        """Raise an error for scores where the curve has no value."""

    def fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        importance_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Learn the curve.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or Sample
            Scores of rows that the model was not trained on; or data with scores and labels, see
            `calibrant.scored`, whose rows are read into memory.
        y : array-like of shape (n,)
            Labels of two classes.
        sample_weight : array-like of shape (n,), optional
            Whole numbers: the number of identical rows that each row stands for.
        importance_weight : array-like of shape (n,), optional
            Numbers >= 0: how much each row counts. A whole number counts as that many identical
            rows; in `BlendCalibrator`, only ratios matter.
        classes : pair of labels, optional
            Both labels. Required if the data may contain only one of them.

        Returns
        -------
        self
        """
        self._check_parameters()
        refuse(scores, "one curve is fitted to all rows", "segment", advice=ONE_EACH)
        weights = {"sample_weight": sample_weight, "importance_weight": importance_weight}
        return self._fit_rows(self._read(scores, y, classes=classes, **weights))

    def _fit_rows(self, data: Rows) -> Self:
        weighted = has_weights(data)
        rows = data.collect()
        self._check_scores(rows.scores)
        repeats: IntArray | FloatArray | None = rows.repeats
        if weighted:
            weights = weights_of(rows)
            checked_bound(weights, None)
            rows = rows.take(weights > 0.0)
            repeats = self._row_counts(weights[weights > 0.0])
        self.fit_distinct(
            ScoreCounts.of(rows.scores, rows.codes, repeats), rows.known, rows.one_of_each
        )
        self.score_range_seen_ = Reach.of(rows.scores).seen
        return self

    def fit_distinct(
        self, rows: ScoreCounts, classes: Classes, one_of_each: tuple[int, int] = (0, 0)
    ) -> Self:
        """Learn the curve from counts of rows at distinct scores, which may have one row from each
        group.
        """
        self._check_scores(rows.scores)
        with np.errstate(all="ignore"):
            state = self._learn(rows)
        self._restore({**state, **RowFacts(one_of_each=one_of_each).to_dict()}, classes)
        return self

    def curve_through(self, rows: ScoreCounts) -> Callable[[FloatArray], FloatArray]:
        """The curve that fits counts of rows best, as a plain function of scores.

        It is learned as in `fit_distinct`, but this calibrator is not fitted afterwards: nothing is
        stated or saved. The parameters must be checked, and the curve be defined at the scores.
        """
        with np.errstate(all="ignore"):
            for name, value in self._learn(rows).items():
                setattr(self, f"{name}_", np.array(value) if isinstance(value, list) else value)
        self._check_curve()

        def curve(scores: FloatArray) -> FloatArray:
            with np.errstate(all="ignore"):
                # contiguous doubles: numpy may round a logarithm differently for strided ones
                return self._curve(np.ascontiguousarray(scores, dtype=np.float64))

        return curve

    @predicts
    def predict(self, scores: ArrayLike) -> FloatArray:
        """Return the calibrated probability of the positive class, shape (n,)."""
        with np.errstate(all="ignore"):
            return self._curve(self._checked(scores))

    def _checked(self, scores: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        checked = as_scores(scores, positive_column=self.positive_index_)
        self._check_scores(checked)
        self._warn_of_other_scale(checked)
        # contiguous doubles: numpy may round a logarithm differently for strided ones
        return np.ascontiguousarray(checked, dtype=np.float64)

    def _curve_table(
        self,
        value: FloatArray,
        lines: Lines | None,
        coverage: float,
        steps: Steps | None = None,
    ) -> Table:
        """A table of the curve; it has one step unless steps are given."""
        return Table(
            (steps_everywhere(np.empty(0)) if steps is None else steps,),
            value,
            coverage,
            self._table_notes(),
            classes=tuple(self.classes_.tolist()),
            lines=lines,
        )

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        self._facts = learned.pop("facts", RowFacts())
        for name, value in learned.items():
            setattr(self, f"{name}_", value)
        self._check_curve()
        self.guarantee_ = self._claim.of_rows(self._facts)
        self._set_classes(classes)


def check_probabilities(scores: NDArray[Any], advice: Text) -> None:
    """Raise an error for scores outside [0, 1]."""
    if scores.size and (float(scores.min()) < 0.0 or float(scores.max()) > 1.0):
        check_rows(
            (scores < 0) | (scores > 1), scores, "scores", "be probabilities in [0, 1]", advice
        )


def inner(probabilities: FloatArray) -> FloatArray:
    """Probabilities kept away from 0 and 1, so that their logarithms are finite."""
    return np.clip(probabilities, *INNER_ENDS)


def fit_logistic(
    features: FloatArray, targets: FloatArray, weights: FloatArray, *, intercept: bool = True
) -> tuple[FloatArray, float, float]:
    """The coefficients, the intercept and the mean loss that minimise the weighted mean of log(1 +
    exp(z)) - t z over z = intercept + features @ coefficients.

    Parameters
    ----------
    features : array of shape (n, k)
    targets : array of shape (n,)
        In [0, 1].
    weights : array of shape (n,)
        Not negative.
    intercept : bool
        Whether there is one; without it the features are not centred.

    Notes
    -----
    The loss is convex; each Newton step is halved until the loss falls enough (Armijo), so it
    converges from anywhere.
    """
    share = weights / weights.sum()
    size = np.maximum(np.abs(features).max(axis=0), np.finfo(np.float64).tiny)
    scaled = features / size
    centre = (share[:, None] * scaled).sum(axis=0) if intercept else np.zeros(scaled.shape[1])
    scaled = scaled - centre
    spread = np.sqrt((share[:, None] * scaled**2).sum(axis=0))
    constant = spread <= 1e-14  # a constant feature determines nothing
    scaled = np.where(constant, 0.0, scaled / np.where(constant, 1.0, spread))
    columns = [np.ascontiguousarray(column) for column in scaled.T]
    if intercept:
        columns.append(np.ones(len(scaled)))
    theta, loss = _newton(columns, targets, share)
    slopes = np.where(constant, 0.0, theta[: scaled.shape[1]] / np.where(constant, 1.0, spread))
    offset = float(theta[-1] - (slopes * centre).sum()) if intercept else 0.0
    largest = np.finfo(np.float64).max
    return np.clip(slopes / size, -largest, largest), offset, loss


def _logistic_loss(
    theta: FloatArray, columns: list[FloatArray], targets: FloatArray, share: FloatArray
) -> tuple[float, FloatArray]:
    z = columns[0] * theta[0]
    for column, coefficient in zip(columns[1:], theta[1:], strict=True):
        z += column * coefficient
    return (
        float((share * (np.logaddexp(0.0, z) - targets * z)).sum() + RIDGE / 2 * (theta**2).sum()),
        z,
    )


def _newton(
    columns: list[FloatArray], targets: FloatArray, share: FloatArray
) -> tuple[FloatArray, float]:
    k = len(columns)
    theta = np.zeros(k)
    loss, z = _logistic_loss(theta, columns, targets, share)
    for _ in range(_NEWTON_STEPS):
        p = expit(z)
        gradient = _gradient(columns, share * (p - targets)) + RIDGE * theta
        curvature = share * p * (1.0 - p)
        curved = [column * curvature for column in columns]
        # sums rather than a matrix product: BLAS may add in another order on another machine
        hessian = np.array([[(one * other).sum() for other in columns] for one in curved])
        step = np.linalg.solve(hessian + RIDGE * np.eye(k), gradient)
        decrease = float((step * gradient).sum())
        length = 1.0
        while True:
            candidate = theta - length * step
            new_loss, new_z = _logistic_loss(candidate, columns, targets, share)
            if new_loss <= loss - 1e-4 * length * decrease or length < 1e-10:
                break
            length /= 2
        if not new_loss < loss:
            # rounding hides any further decrease of the loss; a last full step still brings the
            # gradient nearer to 0
            last = theta - step
            return (last, loss) if float(np.abs(step).max()) < 1e-5 else (theta, loss)
        moved = float(np.abs(candidate - theta).max())
        theta = candidate
        loss = new_loss
        z = new_z
        if moved <= _NEWTON_TOLERANCE * (1.0 + float(np.abs(theta).max())):
            break
    return theta, loss


def _gradient(columns: list[FloatArray], off: FloatArray) -> FloatArray:
    """The sums of the columns times `off`, added up as numpy adds up the columns of a matrix: row by
    row, unless there is only one.
    """
    products = [column * off for column in columns]
    if len(products) == 1:
        return np.array([products[0].sum()])
    return np.array([np.cumsum(product)[-1] for product in products])
