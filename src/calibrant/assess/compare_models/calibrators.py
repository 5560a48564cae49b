"""Which calibrator is better? Each is fitted to one half of the rows; `compare_models` judges them
on the other.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from calibrant._typing import ArrayLike, FloatArray, ScoreMap, Seed
from calibrant.assess.compare_models.compare_models import compare_models
from calibrant.assess.compare_models.model_comparison import CalibratorComparison
from calibrant.assess.metrics.independent_units import Units
from calibrant.calibrators.beta import BetaCalibrator
from calibrant.calibrators.binning import BinningCalibrator
from calibrant.calibrators.curve.estimator import Calibrator
from calibrant.calibrators.isotonic import IsotonicCalibrator
from calibrant.calibrators.platt import PlattCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.calibrators.scaling_binning import ScalingBinningCalibrator
from calibrant.calibrators.temperature import TemperatureCalibrator
from calibrant.calibrators.venn_abers import VennAbersCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.guarantee import Guarantee, is_guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.guarantee.statement import UNGROUPED, UNWEIGHTED
from calibrant.params.random import RandomSource, folds_of, seed_number
from calibrant.params.rules import error_budget
from calibrant.sample.reader import read_judged, refuse
from calibrant.sample.row_keys import position_keys
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import shown

UNCALIBRATED = "uncalibrated"
Calibrators: TypeAlias = Mapping[str, ScoreMap] | Sequence[ScoreMap]


def compare_calibrators(
    y: ArrayLike | Sample,
    scores: ArrayLike | None = None,
    calibrators: Calibrators | None = None,
    *,
    confidence_level: float = 0.95,
    clip: float = 0.001,
    importance_weight: ArrayLike | None = None,
    weight_bound: float | None = None,
    groups: ArrayLike | None = None,
    max_group_size: int | None = None,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
    random_state: Seed = 0,
) -> CalibratorComparison:
    """Say which calibrator is better on these data.

    The calibrators are fitted to one half of the rows, drawn at random, and `compare_models`
    compares their predictions on the other half.

    Guarantee: with probability at least `confidence_level` the expected differences in Brier score
    and in clipped log loss lie within their limits, for all pairs of fitted calibrators and both
    losses simultaneously, for every distribution. So you can pick the best one after looking at all
    of them. This is about the calibrators as fitted to that half; fitted to more rows, they may
    compare differently. Separately, the guarantees of the fitted calibrators hold simultaneously,
    at the lowest of their confidence levels, so you can also choose by epsilon. Assumptions: rows
    are independent draws from one distribution, and neither the model behind the scores nor the
    list of calibrators was chosen with these rows.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
        Labels of two classes, which the calibrators get as 0 and 1; or scores and labels together,
        see `calibrant.scored`.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Scores of rows that the model was not trained on. If they are probabilities, they are
        compared, too, as "uncalibrated".
    calibrators : mapping from name to calibrator, or sequence of calibrators, optional
        Each must have `fit(scores, y)`, `predict(scores)` and `get_params()`. In a sequence, they
        are named after their classes. None takes those of this package, with their default
        settings, that the scores and weights allow.
    confidence_level : float, default=0.95
        Confidence that all limits on differences in loss hold simultaneously.
    clip : float, default=0.001
        As in `compare_models`.
    importance_weight, weight_bound, groups, max_group_size
        As in `compare_models`; groups are never divided. Calibrators get them, too. There is no
        guarantee for those whose `fit` does not accept them.
    pos_label, classes
        As in `BinningCalibrator`.
    random_state : int, Generator, RandomState or None, default=0
        Seed for the division of the rows, and for the order of bets. Both also depend on the rows.
        None takes a fresh seed, which the result records.

    Returns
    -------
    CalibratorComparison

    Notes
    -----
    The division depends on the positions of the rows or on the names of their groups, not on scores
    and labels. So given the first half, the fitted calibrators are fixed functions, and the other
    half consists of independent draws: the claim is that of `compare_models`. With m calibrators
    that have a `confidence_level`, each is fitted at the level 1 - alpha / m in place of 1 - alpha;
    the union bound makes all of their guarantees hold with probability at least 1 - alpha.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BinningCalibrator, PlattCalibrator, compare_calibrators
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=20_000)
    >>> y = rng.uniform(size=20_000) < scores**2
    >>> result = compare_calibrators(y, scores, [PlattCalibrator(), BinningCalibrator(n_bins=10)])
    >>> result.models
    ('uncalibrated', 'Platt', 'Binning')
    >>> result.epsilon.round(3)
    array([  nan,   nan, 0.042])
    """
    error_budget(confidence_level)
    advice = "compare them in each segment separately"
    refuse(y, "calibrators are compared on all rows", "segment", advice=advice)
    rows = read_judged(
        y,
        scores,
        classes=classes,
        pos_label=pos_label,
        groups=groups,
        importance_weight=importance_weight,
        weight_bound=weight_bound,
        max_group_size=max_group_size,
    ).collect()
    bounds = rows.bounds
    rows = replace(rows, scores=np.asarray(rows.scores, dtype=np.float64))
    Units.bounded_of(rows)
    probabilities = bool(rows.scores.min() >= 0.0 and rows.scores.max() <= 1.0)
    if calibrators is None:
        weighted = rows.weights is not None
        calibrators = default_calibrators(probabilities=probabilities, weighted=weighted)
    contenders = _sharing(_named(calibrators))
    if len(contenders) + probabilities < 2:
        rule = "be at least two, as these scores are not probabilities"
        raise InvalidValueError("calibrators", rule, got="1")
    seed = seed_number(random_state)
    first, second = _halves(rows, seed)
    stated: dict[str, Any] = {
        "weight_bound": bounds.weight_bound,
        "max_group_size": bounds.max_group_size,
    }
    fitted = {name: _fitted(one, first, stated) for name, one in contenders.items()}
    models: dict[str, FloatArray] = {UNCALIBRATED: second.scores} if probabilities else {}
    models |= {name: np.clip(one.predict(second.scores), 0, 1) for name, one in fitted.items()}
    guarantees = [None] * probabilities + [_guarantee_of(one, first) for one in fitted.values()]
    settings: dict[str, Any] = {"confidence_level": confidence_level, "clip": clip, **stated}
    settings |= {"random_state": seed, "classes": (0, 1), **_units(second)}
    found = compare_models(second.codes, models, **settings)
    lowest = found.models[int(np.argmin(found.brier))]
    kept = [one for one in found.differences if lowest in (one.first, one.second)]
    common = {one.name: getattr(found, one.name) for one in fields(found)}
    return CalibratorComparison(
        **{**common, "differences": tuple(one for one in kept if one.is_proved)},
        epsilon=np.array([_epsilon_of(guarantee) for guarantee in guarantees]),
        guarantee=tuple(guarantees),
        n_fitted=len(first),
    )


def _halves(rows: MemoryRows, seed: int) -> tuple[MemoryRows, MemoryRows]:
    """Two halves of the rows, drawn by their positions, or by the names of groups."""
    keys = position_keys(0, len(rows)) if rows.groups is None else rows.groups.row_keys
    source = RandomSource.of(seed, "folds", rows=rows.fingerprint())
    first, second = folds_of(keys, source, 2)[0]
    if not (first.size and second.size):
        raise InvalidValueError("rows", "be of at least two groups", got="one")
    return rows.take(first), rows.take(second)


def _units(rows: MemoryRows) -> dict[str, Any]:
    """The groups and the weights of rows, if they have any."""
    found = {
        "groups": None if rows.groups is None else rows.groups.row_keys,
        "importance_weight": rows.weights,
    }
    return {name: column for name, column in found.items() if column is not None}


def _fitted(calibrator: ScoreMap, rows: MemoryRows, stated: Mapping[str, Any]) -> Any:
    """A fitted copy, whose positive class is 1; it gets the arguments that its `fit` takes."""
    copy = clone(calibrator)
    if "pos_label" in copy.get_params(deep=False):
        copy.set_params(pos_label=1)
    takes = inspect.signature(calibrator.fit).parameters
    # one half may contain only one of the classes
    told = {**_units(rows), **stated, "classes": (0, 1)}
    told = {name: value for name, value in told.items() if name in takes and value is not None}
    with reported_by_caller():
        return copy.fit(rows.scores, rows.codes, **told)


def _guarantee_of(fitted: Any, rows: MemoryRows) -> Guarantee | NoGuarantee | None:
    """The guarantee of a calibrator, void if its `fit` ignores groups or weights."""
    found = getattr(fitted, "guarantee_", None)
    if not is_guarantee(found):
        return found
    if not _units(rows).keys() <= inspect.signature(fitted.fit).parameters.keys():
        found = found.with_caveat(UNGROUPED if rows.weights is None else UNWEIGHTED)
    return replace(found, positive_label=rows.known.positive)


def default_calibrators(
    *, probabilities: bool, weighted: bool, **settings: Any
) -> dict[str, ScoreMap]:
    """The calibrators of this package by their names on the command line; `settings` are for those
    with bins.

    Two accept only probabilities, and weighted rows are not exchangeable, as Venn-Abers requires.
    """
    found: dict[str, ScoreMap] = {
        "curve": Calibrator(**settings),
        "binning": BinningCalibrator(**settings),
        "scaling-binning": ScalingBinningCalibrator(**settings),
        "platt": PlattCalibrator(),
        "isotonic": IsotonicCalibrator(),
    }
    if probabilities:
        found |= {"temperature": TemperatureCalibrator(), "beta": BetaCalibrator()}
    return found if weighted else found | {"venn-abers": VennAbersCalibrator()}


def _named(calibrators: Calibrators) -> dict[str, ScoreMap]:
    if isinstance(calibrators, Mapping):
        named = {str(name): calibrator for name, calibrator in calibrators.items()}
    elif isinstance(calibrators, Sequence) and not isinstance(calibrators, str):
        named = {}
        seen = Counter[str]()
        for calibrator in calibrators:
            name = type(calibrator).__name__.removesuffix("Calibrator") or "Calibrator"
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
    """The calibrators; those with a confidence level share alpha."""
    levels = {
        name: parameters["confidence_level"]
        for name, calibrator in contenders.items()
        if "confidence_level" in (parameters := calibrator.get_params(deep=False))
    }
    shared = {name: clone(contenders[name]) for name in levels}
    for name, calibrator in shared.items():
        calibrator.set_params(confidence_level=1.0 - error_budget(levels[name]) / len(levels))
    return contenders | shared


def _epsilon_of(guarantee: Guarantee | NoGuarantee | None) -> float:
    """The guaranteed largest error; NaN if nothing is guaranteed."""
    return guarantee.epsilon if is_guarantee(guarantee) and guarantee.is_proved else math.nan
