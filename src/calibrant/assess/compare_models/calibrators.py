"""Which calibrator is better? Each is fitted to one half of the rows; `compare_models` judges them
on the other.
"""

import inspect
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from calibrant._typing import ArrayLike, FloatArray, ScoreMap, Seed
from calibrant.assess.compare_models.compare_models import compare_models
from calibrant.assess.compare_models.model_comparison import ModelComparison
from calibrant.assess.metrics.independent_units import Units
from calibrant.calibrators.anchored.estimator import AnchoredCalibrator
from calibrant.calibrators.beta import BetaCalibrator
from calibrant.calibrators.binning import BinningCalibrator
from calibrant.calibrators.isotonic import IsotonicCalibrator
from calibrant.calibrators.platt import PlattCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.calibrators.scaling_binning import ScalingBinningCalibrator
from calibrant.calibrators.temperature import TemperatureCalibrator
from calibrant.calibrators.venn_abers import VennAbersCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.kinds import is_guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.guarantee.statement import UNGROUPED, UNWEIGHTED
from calibrant.params.random import RandomSource, folds_of, seed_number
from calibrant.params.rules import error_budget
from calibrant.sample.reader import bound_of, read_judged, refuse
from calibrant.sample.row_keys import position_keys
from calibrant.sample.sample import Sample
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import shown

UNCALIBRATED = "uncalibrated"
Calibrators: TypeAlias = Mapping[str, ScoreMap] | Sequence[ScoreMap]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CalibratorComparison(ModelComparison):
    """A comparison of calibrators. Every array has one entry per method.

    Attributes
    ----------
    models : tuple of str
        Names of the methods. "uncalibrated" means the scores without a calibrator; it is included
        if they are probabilities.
    differences : tuple of PairedDifference
        Brier score and clipped log loss of each other method compared with those of the one that
        has the lowest Brier score.
    confidence_level, clip, n_rows, population, assumptions
        As in `ModelComparison`; the rows are those that no calibrator was fitted to.
    brier, log_loss, ece, auc, auc_lower, auc_upper, seed
        As in `ModelComparison`.
    epsilon : float array
        Guaranteed largest error of each fitted calibrator, in all regions simultaneously; NaN if
        nothing is guaranteed.
    guarantee : tuple of Guarantee, NoGuarantee or None
        The guarantee of each fitted calibrator, or the reason why nothing is guaranteed.
    n_fitted : int
        Number of rows that the calibrators were fitted to.
    """

    epsilon: FloatArray = field(kw_only=True)
    guarantee: tuple[Guarantee | NoGuarantee | None, ...] = field(kw_only=True)
    n_fitted: int = field(kw_only=True)

    @property
    def explanation(self) -> str:
        """How the rows were divided, and that the guarantees allow a choice."""
        return (
            f"The methods were fitted to {self.n_fitted:,} other rows. Their guarantees hold"
            " simultaneously, so you may choose by them."
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The methods side by side, and the differences from the one with the lowest Brier score."""
        differences, models = ModelComparison.tables(self)
        measures = {name: column for name, column in models.columns.items() if name != "model"}
        columns = {"method": self.models, **measures, "epsilon": self.epsilon}
        said = [None if one is None else one.sentence for one in self.guarantee]
        methods = ResultTable(
            "methods",
            {**columns, "guarantee": said},
            tuple(columns),
            {**models.heads, "epsilon": "guaranteed"},
            "The column 'guaranteed' is proved: off by at most this much.",
        )
        return methods, differences


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

    Claimed: with probability at least `confidence_level` the expected differences in Brier score
    and in clipped log loss lie within their limits, for all pairs of fitted calibrators and both
    losses simultaneously, for every distribution. So you can pick the best one after looking at all
    of them. This is about the calibrators as fitted to that half; fitted to more rows, they may
    compare differently. Separately, the guarantees of the fitted calibrators hold simultaneously,
    at the lowest of their confidence levels, so you can also choose by epsilon. Assumed: rows are
    independent draws from one distribution, and neither the model behind the scores nor the list of
    calibrators was chosen with these rows.

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
    weight_bound = bound_of(y, "weight_bound", weight_bound)
    max_group_size = bound_of(y, "max_group_size", max_group_size)
    advice = "compare them in each segment separately"
    refuse(y, "calibrators are compared on all rows", "segment", advice=advice)
    columns = {"groups": groups, "importance_weight": importance_weight}
    rows = read_judged(y, scores, classes=classes, pos_label=pos_label, **columns).collect()
    Units.bounded_of(rows, weight_bound, max_group_size)
    values = np.asarray(rows.scores, dtype=np.float64)
    probabilities = bool(values.min() >= 0.0 and values.max() <= 1.0)
    if calibrators is None:
        weighted = rows.weights is not None
        calibrators = default_calibrators(probabilities=probabilities, weighted=weighted)
    contenders = _sharing(_named(calibrators))
    if len(contenders) + probabilities < 2:
        rule = "be at least two, as these scores are not probabilities"
        raise InvalidValueError("calibrators", rule, got="1")
    seed = seed_number(random_state)
    given: dict[str, Any] = {
        "groups": None if rows.groups is None else rows.groups.row_keys,
        "importance_weight": rows.weights,
    }
    keys = position_keys(0, values.size) if given["groups"] is None else given["groups"]
    source = RandomSource.of(seed, "folds", rows=rows.fingerprint())
    fitting, judging = folds_of(keys, source, 2)[0]
    if not min(fitting.size, judging.size):
        raise InvalidValueError("rows", "be of at least two groups", got="one")
    units = {name: column for name, column in given.items() if column is not None}
    stated: dict[str, Any] = {"weight_bound": weight_bound, "max_group_size": max_group_size}
    models: dict[str, FloatArray] = {UNCALIBRATED: values[judging]} if probabilities else {}
    guarantees: list[Any] = [None] * probabilities
    for name, calibrator in contenders.items():
        takes = inspect.signature(calibrator.fit).parameters
        # one half may contain only one of the classes
        told = {
            **{part: column[fitting] for part, column in units.items()},
            **{part: value for part, value in stated.items() if value is not None},
            "classes": (0, 1),
        }
        told = {part: value for part, value in told.items() if part in takes}
        with reported_by_caller():
            fitted = _prepared(calibrator).fit(values[fitting], rows.codes[fitting], **told)
        models[name] = np.clip(fitted.predict(values[judging]), 0.0, 1.0)
        guarantee = getattr(fitted, "guarantee_", None)
        if is_guarantee(guarantee):
            guarantee = replace(guarantee, positive_label=rows.known.positive)
            if not units.keys() <= told.keys():
                guarantee = guarantee.with_caveat(UNGROUPED if rows.weights is None else UNWEIGHTED)
        guarantees.append(guarantee)
    found = compare_models(
        rows.codes[judging],
        models,
        confidence_level=confidence_level,
        clip=clip,
        classes=(0, 1),
        random_state=seed,
        **{name: column[judging] for name, column in units.items()},
        **stated,
    )
    lowest = found.models[int(np.argmin(found.brier))]
    kept = [one for one in found.differences if lowest in (one.first, one.second)]
    common = {one.name: getattr(found, one.name) for one in fields(found)}
    return CalibratorComparison(
        **{**common, "differences": tuple(one for one in kept if one.is_proved)},
        epsilon=np.array([_proved_epsilon(guarantee) for guarantee in guarantees]),
        guarantee=tuple(guarantees),
        n_fitted=fitting.size,
    )


def default_calibrators(
    *, probabilities: bool, weighted: bool, **settings: Any
) -> dict[str, ScoreMap]:
    """The calibrators of this package by their names on the command line; `settings` are for those
    with bins.

    Two accept only probabilities, and weighted rows are not exchangeable, as Venn-Abers requires.
    """
    found: dict[str, ScoreMap] = {
        "anchored": AnchoredCalibrator(**settings),
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


def _prepared(calibrator: ScoreMap) -> Any:
    """A copy with positive class 1."""
    copy = clone(calibrator)
    return copy.set_params(pos_label=1) if "pos_label" in copy.get_params(deep=False) else copy


def _proved_epsilon(guarantee: Any) -> float:
    """The guaranteed largest error; NaN if nothing is guaranteed."""
    epsilon = getattr(guarantee, "epsilon", None)
    return epsilon if epsilon is not None and guarantee.is_proved else math.nan
