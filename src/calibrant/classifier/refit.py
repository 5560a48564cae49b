"""Fewer than 1,000 rows: all of them train the models that predict, and a third of them limit how
far off the predictions are.

A first opinion pA comes from models and a curve that see nothing of a third of the rows. So these
rows give limits l <= E[Y - pA | b] <= u in each bin b of pA, as for any probability that was fixed
beforehand. Other models and their curve are fitted to all rows and give pF. The prediction is

    p = pA + clip(pF - pA, u - epsilon, l + epsilon),

where epsilon exceeds -l and u of every bin, by max(0.03, 0.5 / sqrt(n)). p - pA lies between the
two ends for every row of b, so E[Y - p | b] = E[Y - pA | b] - E[p - pA | b] lies in
[-epsilon, epsilon], whatever pF is: it may remember the label of every row. The ends enclose 0, so
p lies between pA and pF. Nothing may clip, round or rescale p afterwards.

With several classes, p = pA + tau (pF - pA) with the largest tau in [0, 1] for which the change of
every class lies between the ends of its bin. pA and pF add up to 1, and so does p.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.calibrators.class_wise_hold_out import ClassWiseHoldOut
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller, warn_if_weak, warn_of_cap
from calibrant.classifier.bag import (
    Curves,
    MemberCurve,
    by_curves,
    curves_of,
    fit_folds,
    proved,
    shares_of,
)
from calibrant.classifier.fitted_parts import Fitting
from calibrant.classifier.folds import Fold, folds_within, held_out, units_of
from calibrant.classifier.responses import columns_of
from calibrant.classifier.task import Task
from calibrant.guarantee.class_wise import ClassWiseGuarantee
from calibrant.guarantee.guarantee import Guarantee
from calibrant.limits.interval import Interval
from calibrant.params.arrays import select_rows

FEW_ROWS = 1_000
_FIRST_MODELS = 4
_ONE_IN = 3  # rows, or groups, of which the first opinion sees nothing
_TWO_BINS = 67  # such rows, or groups, from which on there are two bins
_LEAST = 1e-3  # distance of opinions from 0 and 1
_ROUNDING = 1e-12


class Opinion(NamedTuple):
    """Models, and a curve for each column of their scores: the positive class, or all of several.

    Without models, the probabilities are constant.
    """

    members: tuple[Any, ...]
    curves: Curves

    def of(self, X: Any, classes: NDArray[Any], response_method: str) -> FloatArray:
        """The mean of the models' probabilities, one column per curve."""
        if not self.members:
            n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
            return self.by_curves(np.zeros((n_rows, len(self.curves))))
        each = [columns_of(one, X, classes, response_method) for one in self.members]
        return np.asarray(np.mean([self.by_curves(scores) for scores in each], axis=0))

    def by_curves(self, scores: FloatArray) -> FloatArray:
        """The probabilities by one model's scores; those of several classes add up to 1."""
        return shares_of(np.clip(by_curves(self.curves, scores), _LEAST, 1.0 - _LEAST))


@dataclass(frozen=True, slots=True, eq=False)
class ClippedRefit:
    """Probabilities that were fitted to all rows, kept near a first opinion.

    Its methods take the columns of the first opinion, followed by those of the fit to all rows.

    Attributes
    ----------
    first : HoldOutCalibrator or ClassWiseHoldOut
        The calibrator of the first opinion, for one class or for each of several. It changes
        nothing; its bins and their rates are those of the predictions.
    rooms : tuple of Interval
        For each column, how far a prediction may be from the first opinion in each bin.
    epsilon : float
        The bound on the average error, in bins with rows that gave limits.
    guarantee_ : Guarantee or ClassWiseGuarantee
        The guarantee for the predictions.
    """

    first: Any
    rooms: tuple[Interval, ...]
    epsilon: float
    guarantee_: Guarantee | ClassWiseGuarantee

    @classmethod
    def around(cls, first: HoldOutCalibrator | ClassWiseHoldOut, n_rows: int) -> Self:
        """The distance from the first opinion that is worth allowing with `n_rows` rows in total."""
        known = [one.guarantee_ for one in _each(first)]
        worst = max(float(one.radius[one.counts > 0].max()) for one in known)
        epsilon = worst + max(0.03, 0.5 / np.sqrt(n_rows)) + _ROUNDING
        rooms = tuple(_room(one, epsilon) for one in known)
        pairs = zip(known, rooms, strict=True)
        of_each = [_widened(one, room, epsilon, n_rows) for one, room in pairs]
        if len(of_each) == 1:
            return cls(first, rooms, epsilon, of_each[0])
        whole = cast(ClassWiseGuarantee, first.guarantee_)
        named = dict(zip(whole.guarantees, of_each, strict=True))
        return cls(first, rooms, epsilon, replace(whole, guarantees=named))

    def predict_proba(self, scores: FloatArray, **options: Any) -> FloatArray:
        """Return the probabilities of all classes, shape (n, L)."""
        p = self._clipped(scores, **options)
        if p.shape[1] > 1:
            return p
        both = np.hstack([1.0 - p, p])
        return both if self.first.positive_index_ == 1 else both[:, ::-1]

    def predict_interval(self, scores: FloatArray, **options: Any) -> FloatArray:
        """Return each probability plus or minus epsilon: shape (n, 2), or (n, L, 2)."""
        p = self._clipped(scores, **options)
        each = zip(_each(self.first), self._halves(scores)[0].T, p.T, strict=True)
        limits = []
        for one, first, column in each:
            off = np.where(one.guarantee_.counts > 0, self.epsilon, 1.0)[_bins(one, first)]
            limits.append(np.clip(np.column_stack([column - off, column + off]), 0.0, 1.0))
        return limits[0] if len(limits) == 1 else np.stack(limits, axis=1)

    def predict_rate_interval(self, scores: FloatArray, **options: Any) -> FloatArray:
        """Return the first opinion's limits on the true rate in its bin."""
        return np.asarray(self.first.predict_rate_interval(self._first(scores), **options))

    def predict_set(self, scores: FloatArray, **options: Any) -> BoolArray:
        """Return the labels that the first opinion does not rule out."""
        return np.asarray(self.first.predict_set(self._first(scores), **options))

    def warn_if_weak(self) -> None:
        """Warn if little is guaranteed, or if a cap on groups excludes the rate among all rows."""
        several: Any = getattr(self.guarantee_, "guarantees", None)
        if several:
            worst = max(several, key=lambda label: several[label].stated.epsilon)
            warn_if_weak(several[worst], of=f" of class {worst!r}")
            return
        guarantee = cast(Guarantee, self.guarantee_)
        warn_if_weak(guarantee)
        warn_of_cap(self.first, guarantee)

    def _halves(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The columns of the first opinion, and those of the fit to all rows."""
        return scores[:, : len(self.rooms)], scores[:, len(self.rooms) :]

    def _first(self, scores: FloatArray) -> FloatArray:
        """The first opinion, as its calibrator takes it."""
        first = self._halves(scores)[0]
        return first if first.shape[1] > 1 else first[:, 0]

    def _clipped(self, scores: FloatArray, **options: Any) -> FloatArray:
        """The first opinion, moved towards the fit to all rows as far as is allowed."""
        if options:
            self.first.predict_proba(self._first(scores), **options)  # which refuses them
        first, refit = self._halves(scores)
        change = refit - first
        room = np.empty_like(first)
        for place, (one, ends) in enumerate(zip(_each(self.first), self.rooms, strict=True)):
            bins = _bins(one, first[:, place])
            room[:, place] = np.where(change[:, place] > 0.0, ends.upper[bins], ends.lower[bins])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = np.where(change == 0.0, 1.0, room / change)
        tau = np.minimum(share.min(axis=1, keepdims=True), 1.0)
        return np.asarray(first + tau * change)


def is_refitted(task: Task, calibration_size: float | str) -> bool:
    """Whether all rows train the models that predict: if rows are few, and have neither segments
    nor weights, and no size of a hold-out is given.
    """
    few = len(task.labels) < FEW_ROWS and set(task.to_calibrator) <= {"groups"}
    return few and isinstance(calibration_size, str)


def fit_refit(
    fitting: Fitting, cv: Any, confidence_level: float, n_jobs: int | None
) -> tuple[Opinion, Opinion, ClippedRefit]:
    """The first opinion, the fit to all rows, and what is guaranteed for the two together.

    The rows of which the first opinion sees nothing are drawn once, and never by their labels.
    """
    task = fitting.task
    n_units, _ = units_of(task)
    others, rows = held_out(task, max(1, n_units // _ONE_IN))
    first, pilot = _first_opinion(fitting, others, cv, n_jobs)
    p = first.of(select_rows(task.X, rows), task.ordered_classes, fitting.response_method)
    n_proving = rows.size if task.groups is None else np.unique(task.groups[rows]).size
    n_bins = 1 if n_proving < _TWO_BINS else 2
    with reported_by_caller():
        known = proved(
            fitting, rows, p, pilot, first.curves, confidence_level, n_bins=n_bins, moves=False
        )
    everything = replace(fitting, folds=folds_within(task, task.everything, cv))
    refit, _ = _opinion(everything, n_jobs)
    clipped = ClippedRefit.around(known, len(task.labels))
    clipped.warn_if_weak()
    return first, refit, clipped


def _first_opinion(
    fitting: Fitting, others: IndexArray, cv: Any, n_jobs: int | None
) -> tuple[Opinion, tuple[IndexArray, FloatArray]]:
    """The opinion of models that are fitted to `others`, and their probabilities for these rows."""
    task = fitting.task
    folds = _first_folds(task, others, cv)
    if folds:
        return _opinion(replace(fitting, folds=folds), n_jobs)
    counts = [np.count_nonzero(task.labels[others] == label) for label in task.column_classes]
    shares = (np.array(counts) + 0.5) / (others.size + task.classes.size / 2)
    curves = tuple(MemberCurve("constant", np.zeros(1), share[None]) for share in shares)
    constant = Opinion((), curves)
    return constant, (others, constant.by_curves(np.zeros((others.size, len(curves)))))


def _first_folds(task: Task, others: IndexArray, cv: Any) -> list[Fold]:
    """The folds of the first opinion; none if a model could see too few rows or groups of a class."""
    if task.class_counts(others).min() < 2:
        return []
    if task.groups is not None and np.unique(task.groups[others]).size < 2:
        return []
    folds = folds_within(task, others, cv, _FIRST_MODELS)
    can_train = all(np.unique(task.labels[training]).size > 1 for training, _ in folds)
    return folds if can_train else []


def _opinion(fitting: Fitting, n_jobs: int | None) -> tuple[Opinion, tuple[IndexArray, FloatArray]]:
    """Models of the folds with their curves, and the out-of-fold probabilities of the rows."""
    task = fitting.task
    scored = fit_folds(fitting, np.empty(0, dtype=np.intp), n_jobs)
    opinion = Opinion(scored.members, curves_of(task, scored.rows, scored.scores))
    return opinion, (scored.rows, opinion.by_curves(scored.scores))


def _each(first: Any) -> tuple[HoldOutCalibrator, ...]:
    """The calibrator of each column of the first opinion."""
    return getattr(first, "calibrators_", (first,))


def _bins(one: HoldOutCalibrator, first: FloatArray) -> IndexArray:
    """The bin of each row by the first opinion."""
    return one.partition_.regions_of(first)


def _room(known: Guarantee, epsilon: float) -> Interval:
    """How far predictions may be from the first opinion in each bin: not at all in a bin without
    rows.
    """
    limits = cast(Interval, known.errors)
    seen = known.counts > 0
    low = np.where(seen, limits.upper - epsilon, 0.0)
    return Interval(low, np.where(seen, limits.lower + epsilon, 0.0))


def _widened(known: Guarantee, room: Interval, epsilon: float, n_rows: int) -> Guarantee:
    """The guarantee for predictions within the allowed distance of the first opinion."""
    off = np.where(known.counts > 0, epsilon, 1.0)
    margin = cast(FloatArray, known.margin) + np.maximum(room.upper, -room.lower)
    to_do = "Use more rows" if known.statement.groups is None else "Use more groups"
    said = replace(known.statement, to_do=to_do, n_trained=n_rows)
    return replace(known, errors=Interval(-off, off), margin=margin, statement=said)
