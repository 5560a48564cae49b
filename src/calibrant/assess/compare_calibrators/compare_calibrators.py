"""Calibrators side by side: loss, guarantee, size and time."""

from __future__ import annotations

import inspect
import json
import math
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, check_cv

from calibrant._typing import ArrayLike, CodeArray, FloatArray, IndexArray, ScoreMap, Seed
from calibrant.assess.compare_calibrators.comparison import COLUMNS, Comparison
from calibrant.assess.compare_models.losses import (
    BRIER,
    LOG_LOSS,
    largest_difference,
    losses_of,
)
from calibrant.assess.compare_models.model_comparison import PairedDifference
from calibrant.assess.metrics.auc import delong
from calibrant.assess.metrics.ece import ece
from calibrant.assess.metrics.independent_units import Units
from calibrant.assess.metrics.proper_scores import log_loss
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.kinds import is_guarantee
from calibrant.guarantee.statement import UNGROUPED, UNWEIGHTED
from calibrant.params.random import RandomSource, folds_of, seed_number
from calibrant.params.rules import Integer, error_budget
from calibrant.sample.reader import bound_of, read_judged, refuse
from calibrant.sample.row_keys import position_keys
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import shown

UNCALIBRATED = "uncalibrated"
_CLIP = 0.001  # clips probabilities, for differences in log loss
FoldChoice: TypeAlias = int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]]
"""A number of folds, a scikit-learn splitter, or the rows of each fold."""
_Folds: TypeAlias = Sequence[tuple[IndexArray, IndexArray]]


def compare_calibrators(
    y: ArrayLike | Sample,
    scores: ArrayLike | None = None,
    calibrators: Mapping[str, ScoreMap] | Sequence[ScoreMap] = (),
    cv: FoldChoice = 5,
    *,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
    importance_weight: ArrayLike | None = None,
    weight_bound: float | None = None,
    groups: ArrayLike | None = None,
    max_group_size: int | None = None,
    random_state: Seed = 0,
    simultaneous: bool = False,
    confidence_level: float = 0.95,
) -> Comparison:
    """Compare calibrators on the same rows.

    Claimed: `epsilon` is each calibrator's own guarantee when fitted on all rows, at its own
    confidence level. This is not a claim about the smallest of them: the guarantee of a method
    chosen because of its small epsilon may fail far more often. With `simultaneous=True`, all
    guarantees hold simultaneously, at the lowest of the confidence levels, so the chosen one also
    holds. The same is true for random splits: to try many seeds and keep the best, compare them in
    this way. Losses, ECE and AUC are measured by cross-validation. With probability at least
    `confidence_level`, the limits for all `differences` hold simultaneously: they are for the
    expected difference in loss between the calibrators fitted in the folds, averaged over the
    folds.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
        Labels of two classes, which the calibrators get as 0 and 1; or scores and labels together,
        see `calibrant.scored`.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Scores of rows that the model was not trained on.
    calibrators : mapping from name to calibrator, or sequence of calibrators
        At least one. Each must have `fit(scores, y)` and `predict(scores)`. In a sequence, they are
        named after their classes.
    cv : int or splitter, default=5
        Number of folds, which are drawn at random; or anything that scikit-learn's `check_cv`
        accepts.
    pos_label, classes
        As in `BinningCalibrator`.
    importance_weight, weight_bound : array-like of shape (n,), float, optional
        How much each row counts, such as a survey weight, and an upper bound on the weights. Losses
        are then weighted, and calibrators get the weights and the bound; there is no guarantee for
        those whose `fit` does not accept weights. Without a bound, there are no differences with
        limits.
    groups, max_group_size : array-like of shape (n,), int, optional
        The group of each row, if rows are grouped, and the largest number of rows that a group
        counts as. Folds never split a group, and calibrators get the groups and the size; there is
        no guarantee for those whose `fit` does not accept groups. Without a size, there are no
        differences with limits.
    random_state : int, Generator, RandomState or None, default=0
        Seed for the folds if `cv` is an int, and for the order of bets. The draw also depends on
        the rows. None takes a fresh seed, which the result records.
    simultaneous : bool, default=False
        Whether the m calibrators that have a `confidence_level` share the error budget: each is
        fitted at the level 1 - alpha / m in place of 1 - alpha. By the union bound, all guarantees
        then hold with probability at least 1 - alpha.
    confidence_level : float, default=0.95
        Confidence that the limits on all differences in loss hold.

    Returns
    -------
    Comparison

    Notes
    -----
    A calibrator that predicts exactly 0 or 1 has an infinite log loss as soon as it is wrong once.
    The reported log loss is not clipped; in the differences, probabilities are clipped to [0.001,
    0.999] so that the loss is bounded. ECE is the paper's, in ten bins of equal width.

    Given the rows that a fold was fitted on, its test rows are independent draws, because folds do
    not depend on scores and labels. So betting bounds the mean difference of each fold
    (`compare_models`). The limits of the folds are averaged. Alpha is shared by Bonferroni among
    folds, losses and all pairs of methods, because the best method is only known afterwards. Limits
    of this kind are wide: each uses only the rows of one fold.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BinningCalibrator, PlattCalibrator, compare_calibrators
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=5_000)
    >>> y = rng.uniform(size=5_000) < scores**2
    >>> result = compare_calibrators(y, scores, [PlattCalibrator(), BinningCalibrator(n_bins=10)])
    >>> result.methods
    ('uncalibrated', 'Platt', 'Binning')
    >>> result.epsilon.round(3)
    array([  nan,   nan, 0.061])
    """
    contenders = _named(calibrators)
    alpha = error_budget(confidence_level)
    if simultaneous:
        contenders = _sharing(contenders)
    weight_bound = bound_of(y, "weight_bound", weight_bound)
    max_group_size = bound_of(y, "max_group_size", max_group_size)
    refuse(
        y,
        "calibrators are compared on all rows",
        "segment",
        advice="compare them in each segment separately",
    )
    beside: dict[str, Any] = {"groups": groups, "importance_weight": importance_weight}
    read = read_judged(y, scores, classes=classes, pos_label=pos_label, **beside).collect()
    units = Units.of(read, weight_bound, max_group_size)[1]
    read = replace(read, scores=np.asarray(read.scores, dtype=np.float64))
    seed = seed_number(random_state)
    folds = _folds(cv, read, seed)
    # a fold may contain only one of the classes
    facts = {"classes": (0, 1), "weight_bound": weight_bound, "max_group_size": max_group_size}
    entries = [
        _fitted_entry(name, calibrator, read, folds, units, facts)
        for name, calibrator in contenders.items()
    ]
    if read.scores.min() >= 0.0 and read.scores.max() <= 1.0:
        entries.insert(0, _entry(UNCALIBRATED, read.codes, read.scores, units))
    own_folds = isinstance(cv, int | np.integer) and units.bounded
    return Comparison(
        methods=tuple(entry["method"] for entry in entries),
        guarantee=tuple(entry["guarantee"] for entry in entries),
        n_rows=len(read),
        n_folds=len(folds),
        simultaneous=bool(simultaneous),
        differences=_differences(entries, read, folds, alpha, seed, units) if own_folds else (),
        difference_level=float(confidence_level),
        seed=seed,
        **{name: np.array([entry[name] for entry in entries]) for name in COLUMNS},
    )


def _differences(
    entries: list[dict[str, Any]],
    read: MemoryRows,
    folds: _Folds,
    alpha: float,
    seed: int,
    units: Units,
) -> tuple[PairedDifference, ...]:
    """Each other method minus the one with the lowest Brier score: limits for each fold, averaged
    over the folds.
    """
    codes = read.codes
    best = min(entries, key=lambda entry: entry["brier"])
    losses = {
        entry["method"]: losses_of(codes, np.clip(entry["prediction"], 0.0, 1.0), _CLIP)
        for entry in entries
    }
    fold_rows = [np.sort(test) for _, test in folds]
    parts = [units.take(rows) for rows in fold_rows]
    shares = [
        part.sums(np.ones(rows.size)).sum() for part, rows in zip(parts, fold_rows, strict=True)
    ]
    share = alpha / (len(entries) * (len(entries) - 1) * len(folds)) if len(entries) > 1 else alpha
    found = []
    for entry in entries:
        if entry is best:
            continue
        for measure in (BRIER, LOG_LOSS):
            values = losses[entry["method"]][measure] - losses[best["method"]][measure]
            span = largest_difference(measure, _CLIP)
            limits = [
                part.limits(values[rows], share, ends=(-span, span))
                for rows, part in zip(fold_rows, parts, strict=True)
            ]
            lower, upper_limit = np.average(limits, axis=0, weights=shares)
            pair = entry["method"], best["method"]
            mean = units.mean(values)
            found.append(
                PairedDifference(
                    *pair, measure, mean, float(lower), float(upper_limit), is_proved=True
                )
            )
    return tuple(found)


def _named(calibrators: Mapping[str, ScoreMap] | Sequence[ScoreMap]) -> dict[str, ScoreMap]:
    if isinstance(calibrators, Mapping):
        named = {str(name): calibrator for name, calibrator in calibrators.items()}
    elif isinstance(calibrators, Sequence) and not isinstance(calibrators, str):
        named = {}
        seen = Counter[str]()
        for calibrator in calibrators:
            name = type(calibrator).__name__.removesuffix("Calibrator")
            seen[name] += 1
            named[name if seen[name] == 1 else f"{name} {seen[name]}"] = calibrator
    else:
        rule = "be a mapping from name to calibrator, or a sequence of calibrators"
        raise InvalidTypeError("calibrators", rule, got=shown(calibrators))
    if not named:
        raise InvalidValueError("calibrators", "contain at least one calibrator", got="none")
    for name, calibrator in named.items():
        if not all(
            callable(getattr(calibrator, method, None))
            for method in ("fit", "predict", "get_params")
        ):
            got = f"{type(calibrator).__name__} for {name!r}"
            raise InvalidTypeError("calibrators", "have fit, predict and get_params", got=got)
    return named


def _sharing(contenders: dict[str, Any]) -> dict[str, Any]:
    """The calibrators, with alpha divided by the number of them that have one."""
    levels = {
        name: parameters["confidence_level"]
        for name, calibrator in contenders.items()
        if "confidence_level" in (parameters := calibrator.get_params(deep=False))
    }
    shared = {name: clone(contenders[name]) for name in levels}
    for name, calibrator in shared.items():
        calibrator.set_params(confidence_level=1.0 - error_budget(levels[name]) / len(levels))
    return contenders | shared


def _folds(cv: Any, read: MemoryRows, seed: int) -> _Folds:
    scores = read.scores
    codes = read.codes
    groups = None if read.groups is None else read.groups.row_keys
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        rarest = int(min(codes.sum(), codes.size - codes.sum()))
        n_folds = Integer(2).check("cv", cv)
        if rarest < n_folds:
            rule = f"be at most {rarest}, the number of rows in the rarer class"
            raise InvalidValueError("cv", rule, got=str(n_folds), advice="use fewer folds")
        n_groups = None if read.groups is None else len(read.groups.keys)
        if n_groups is not None and n_groups < n_folds:
            raise InvalidValueError(
                "groups", f"be at least {n_folds}, the number of folds", got=f"{n_groups:,}"
            )
        keys = position_keys(0, codes.size) if groups is None else groups
        cv = folds_of(keys, RandomSource.of(seed, "folds", rows=read.fingerprint()), n_folds)
    folds: _Folds = list(check_cv(cv).split(scores[:, None], codes, groups))
    if groups is not None and any(
        np.isin(groups[train], groups[test]).any() for train, test in folds
    ):
        raise InvalidValueError(
            "cv", "keep groups whole", got="groups in several folds", advice="use GroupKFold()"
        )
    if np.unique(np.concatenate([test for _, test in folds])).size != scores.size:
        raise InvalidValueError(
            "cv", "put every row into a test fold", got="a splitter that leaves some out"
        )
    return folds


def _entry(
    method: str, codes: CodeArray, prediction: FloatArray, units: Units, **of_the_fit: Any
) -> dict[str, Any]:
    """The table entry of a method: its losses, and the facts of its fit."""
    known: dict[str, Any] = {"classes": (0, 1), "importance_weight": units.row_weights}
    return {
        "method": method,
        "log_loss": log_loss(codes, prediction, **known).value,
        "brier": units.mean(
            (codes - prediction) ** 2
        ),  # brier_score also computes an interval, which takes time
        "ece": ece(codes, prediction, strategy="uniform", **known).value,
        "auc": (
            float(delong(codes, [prediction], units)[0][0])
            if 0 < codes.sum() < codes.size
            else math.nan
        ),
        "prediction": prediction,
        **{
            "epsilon": math.nan,
            "guarantee": None,
            "state_bytes": 0,
            "fit_seconds": 0.0,
            "predict_seconds": 0.0,
        },
        **of_the_fit,
    }


def _fitted_entry(
    method: str,
    calibrator: ScoreMap,
    read: MemoryRows,
    folds: _Folds,
    units: Units,
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    scores = read.scores
    codes = read.codes
    positive = read.known.positive
    given = {
        "groups": None if read.groups is None else read.groups.row_keys,
        "importance_weight": read.weights,
    }
    columns = {name: values for name, values in given.items() if values is not None}
    arguments = inspect.signature(calibrator.fit).parameters
    takes = {name: values for name, values in columns.items() if name in arguments}
    told = {name: fact for name, fact in facts.items() if name in arguments and fact is not None}

    def fit(rows: Any) -> Any:
        beside = {name: values[rows] for name, values in takes.items()}
        with reported_by_caller():
            return _prepared(calibrator).fit(scores[rows], codes[rows], **beside, **told)

    prediction = np.empty(scores.size)
    for train, test in folds:
        prediction[test] = fit(train).predict(scores[test])
    start = time.perf_counter()
    fitted = fit(slice(None))
    middle = time.perf_counter()
    fitted.predict(scores)
    end = time.perf_counter()
    guarantee = getattr(fitted, "guarantee_", None)
    if len(takes) < len(columns) and is_guarantee(guarantee):
        guarantee = guarantee.with_caveat(UNGROUPED if read.weights is None else UNWEIGHTED)
    epsilon = getattr(guarantee, "epsilon", None)
    proved = epsilon is not None and getattr(guarantee, "is_proved", True)
    return _entry(
        method,
        codes,
        prediction,
        units,
        epsilon=epsilon if proved else math.nan,
        guarantee=(
            replace(guarantee, positive_label=positive) if is_guarantee(guarantee) else guarantee
        ),
        state_bytes=_state_bytes(fitted),
        fit_seconds=middle - start,
        predict_seconds=end - middle,
    )


def _prepared(calibrator: ScoreMap) -> Any:
    """A copy with positive class 1."""
    copy = clone(calibrator)
    return copy.set_params(pos_label=1) if "pos_label" in copy.get_params(deep=False) else copy


def _state_bytes(fitted: Any) -> int:
    """Length of the state as JSON; 0 for a calibrator without `to_dict`."""
    if not hasattr(fitted, "to_dict"):
        return 0
    return len(json.dumps(fitted.to_dict(), separators=(",", ":")).encode())
