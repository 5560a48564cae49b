"""Is one model better than another? Paired differences on the same rows, with limits that hold for all pairs."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np

from calibrant import _numbers
from calibrant._input import shown
from calibrant._optional import pandas
from calibrant._params import CLIP, as_generator, check_state, error_budget
from calibrant._state import read_count, read_numbers
from calibrant._typing import ArrayLike, CodeArray, FloatArray, Seed
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.intervals.bounded_mean import betting_mean
from calibrant.metrics import ece
from calibrant.metrics.auc import delong, normal_limits
from calibrant.metrics.bins import read_forecasts
from calibrant.sequences.betting import Gamblers

BRIER, LOG_LOSS, AUC = "Brier score", "log loss", "AUC"
_PROVED = (BRIER, LOG_LOSS)
_CANNOT_TELL = "the data cannot tell"
_MOST_STAKED = 0.9  # models are often alike, and then large bets find it
_GRID_SIZE = 1000  # differences on either side of 0
_ASSUMPTIONS = (
    "the rows are independent draws from one distribution",
    "the models were chosen and trained before these rows were looked at",
)


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How much two models differ in one measure, on the same rows.

    Attributes
    ----------
    first, second : str
        Names of the models.
    measure : str
        "Brier score", "log loss" or "AUC".
    value : float
        The measure of the first model minus that of the second.
    lower, upper : float
        Limits for the expected difference.
    is_proved : bool
        True: the limits hold for every distribution and every number of rows, for all differences that are proved at
        once. False: they are asymptotic.
    """

    first: str
    second: str
    measure: str
    value: float
    lower: float
    upper: float
    is_proved: bool

    @property
    def better(self) -> str | None:
        """The model whose measure is the better one beyond the limits; None where the data cannot tell."""
        low, high = (self.second, self.first) if self.measure == AUC else (self.first, self.second)
        return low if self.upper < 0.0 else high if self.lower > 0.0 else None

    def __str__(self) -> str:
        how = "" if self.is_proved else " (asymptotic)"
        minus = f"{self.measure} of {self.first!r} minus that of {self.second!r}"
        if math.isnan(self.lower):
            return f"{minus}: {_numbers.nearest(self.value)}, no limits"
        return f"{minus}: {_numbers.limits(self.lower, self.upper)}{how}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Differences:
    """Paired differences between models, and what follows from them.

    Attributes
    ----------
    models : tuple of str
        Names of the models.
    differences : tuple of PairedDifference
        For each pair of models its difference in each measure.
    confidence_level : float
        Confidence that all differences that are proved hold at once.
    clip : float
        For the log loss, probabilities are clipped to [clip, 1 - clip].
    n_rows : int
        Rows.
    """

    models: tuple[str, ...]
    differences: tuple[PairedDifference, ...]
    confidence_level: float
    clip: float
    n_rows: int

    @property
    def best(self) -> str | None:
        """The model that is proved better than every other by both losses; None if there is no such model."""
        wins = dict.fromkeys(self.models, 0)
        for found in self._proved:
            if found.better is not None:
                wins[found.better] += 1
        return next((model for model, won in wins.items() if won == 2 * (len(self.models) - 1)), None)

    @property
    def verdict(self) -> str:
        """Which model is proved better than which, in words."""
        if self.best is not None:
            others = [model for model in self.models if model != self.best]
            return f"{self.best!r} is better than {repr(others[0]) if len(others) == 1 else 'every other model'}"
        pairs = [_pair_verdict(*pair) for pair in self._pairs]
        told = [text for text in pairs if text is not None]
        if not told:
            these = " from ".join(map(repr, self.models)) if len(self.models) == 2 else "any of these models apart"
            return f"{_CANNOT_TELL} {these}"
        if len(told) < len(pairs):
            told.append(f"{_CANNOT_TELL} the other pairs")
        return "; ".join(told)

    def sentence(self) -> str:
        """What is proved about the losses, in words."""
        level, rows = _numbers.percent(self.confidence_level), _numbers.rows(self.n_rows)
        limits = "; ".join(map(str, self._proved))
        clipped = f"probabilities in the log loss are clipped to [{self.clip:g}, {1 - self.clip:g}]"
        verdict = f"{self.verdict[:1].upper()}{self.verdict[1:]}"
        return f"{verdict}, with {level} confidence, from {rows}. All at once: {limits}; {clipped}."

    def to_frame(self) -> Any:
        """Return the differences as a pandas frame, one row per pair and measure."""
        return pandas().DataFrame([asdict(found) | {"better": found.better} for found in self.differences])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; a number that is not known is None."""
        return {
            "verdict": self.verdict,
            "best": self.best,
            "confidence_level": self.confidence_level,
            "rows": self.n_rows,
            "clip": self.clip,
            "models": list(self.models),
            "differences": [
                {name: _or_none(value) for name, value in asdict(found).items()} | {"better": found.better}
                for found in self.differences
            ],
            "assumptions": list(_ASSUMPTIONS),
        }

    @property
    def _proved(self) -> list[PairedDifference]:
        return [found for found in self.differences if found.is_proved]

    @property
    def _pairs(self) -> Iterator[tuple[PairedDifference, PairedDifference]]:
        return zip(self._proved[0::2], self._proved[1::2], strict=True)

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(f"  {found}" for found in self.differences)])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelComparison(Differences):
    """Models side by side on the same rows. Every array has one entry per model.

    Attributes
    ----------
    models, differences, confidence_level, clip, n_rows
        As in `Differences`.
    brier, log_loss, ece, auc : float arrays
        Measured on these rows; the log loss with clipped probabilities, ECE in ten bins of equal width. ECE has no
        limits, because binning biases it.
    auc_lower, auc_upper : float arrays
        DeLong's limits of each AUC, at `confidence_level` each. They are asymptotic.
    """

    brier: FloatArray
    log_loss: FloatArray
    ece: FloatArray
    auc: FloatArray
    auc_lower: FloatArray
    auc_upper: FloatArray

    def models_frame(self) -> Any:
        """Return what was measured as a pandas frame, one row per model."""
        return pandas().DataFrame(self._measured(), index=pandas().Index(self.models, name="model"))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; a number that is not known is None."""
        columns = self._measured()
        models = [
            {"model": model} | {name: _or_none(float(column[place])) for name, column in columns.items()}
            for place, model in enumerate(self.models)
        ]
        return Differences.to_dict(self) | {"models": models}

    def _measured(self) -> dict[str, FloatArray]:
        return {name: getattr(self, name) for name in ("brier", "log_loss", "auc", "auc_lower", "auc_upper", "ece")}

    def __str__(self) -> str:
        width = max(len("model"), *map(len, self.models))
        lines = [f"{'model':<{width}} {BRIER:>12} {LOG_LOSS:>10} {AUC:>10} {'ECE':>10}"]
        for place, model in enumerate(self.models):
            measured = (column[place] for column in (self.log_loss, self.auc, self.ece))
            cells = " ".join(f"{number_or_none(value):>10}" for value in measured)
            lines.append(f"{model:<{width}} {self.brier[place]:>12.4f} {cells}")
        return "\n".join([*lines, Differences.__str__(self)])


def compare_models(
    y: ArrayLike,
    models: Mapping[str, ArrayLike],
    *,
    confidence_level: float = 0.95,
    clip: float = 0.001,
    pos_label: Hashable | None = None,
    classes: ArrayLike | None = None,
    random_state: Seed = None,
) -> ModelComparison:
    """Say which of several models is better, by paired differences in loss on the same rows.

    Claimed: with probability at least `confidence_level` the expected differences in Brier score and in clipped log
    loss lie within their limits, for all pairs of models and both losses at once, for every distribution. So the
    best model may be picked after looking at all of them. Assumed: rows are independent draws from one distribution,
    and the models were chosen and trained before these rows were looked at. Rows that belong together, such as several
    rows of one customer, are not independent. Limits of AUC are asymptotic and marked so. ECE is shown without limits.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of two classes.
    models : mapping from name to array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Predicted probabilities of each model for the same rows, in the same order. At least two models.
    confidence_level : float, default=0.95
        Confidence that all proved limits hold at once.
    clip : float, default=0.001
        For the log loss, probabilities are clipped to [clip, 1 - clip]. Without a clip the loss has no bound, and no
        limits hold for every distribution. A smaller clip makes wider limits.
    pos_label, classes
        As in `BinningCalibrator`.
    random_state : int, Generator, RandomState or None, default=None
        Draws the order of the rows in which bets are made, afresh by default, so that files may be sorted. An int
        repeats a result exactly. It fixes the order, so then the order of the rows must say nothing about scores and
        labels.

    Returns
    -------
    ModelComparison

    Notes
    -----
    For K models there are K (K - 1) / 2 pairs. Each pair and loss gets alpha / (K (K - 1)), by Bonferroni. A difference
    in Brier scores lies in [-1, 1], one in clipped log losses in [-m, m] with m = log((1 - clip) / clip). Its mean is
    bounded by betting (`calibrant.intervals.bounded_mean.betting_mean`), on the differences scaled to [0, 1]. With
    alpha' the share of a pair and loss, a difference below about 1.1 m log(2 / alpha') / n is not found, however alike
    the models are: rows that were not seen may have the largest difference. AUC has limits of its own: DeLong's, with
    Bonferroni over the pairs.

    References
    ----------
    Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86. DeLong, DeLong
    and Clarke-Pearson (1988), Biometrics 44.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import compare_models
    >>> rng = np.random.default_rng(0)
    >>> rate = rng.uniform(size=5_000)
    >>> y = rng.uniform(size=5_000) < rate
    >>> result = compare_models(y, {"sharp": rate, "dull": 0.25 + 0.5 * rate}, random_state=0)
    >>> result.verdict
    "'sharp' is better than 'dull'"
    >>> print(result.differences[0])
    Brier score of 'sharp' minus that of 'dull': -0.025 to -0.017
    """
    alpha = error_budget(confidence_level)
    clip = CLIP.check("clip", clip)
    if not isinstance(models, Mapping):
        raise InvalidTypeError("models", "be a mapping from name to scores", got=shown(models))
    names = _names(models)
    codes, probabilities = _read(y, models, pos_label, classes)
    losses = [losses_of(codes, one, clip) for one in probabilities]
    order = as_generator(random_state).permutation(codes.size)
    pairs = list(combinations(range(len(names)), 2))
    try:
        auc, covariance = delong(codes, probabilities)
    except InvalidValueError:  # all labels are of one class
        auc, covariance = np.full(len(names), math.nan), np.full((len(names), len(names)), math.nan)
    differences = []
    for one, other in pairs:
        pair = names[one], names[other]
        for measure in _PROVED:
            values = losses[one][measure] - losses[other][measure]
            limits = difference_limits(values[order], largest_difference(measure, clip), alpha / (2 * len(pairs)))
            differences.append(PairedDifference(*pair, measure, float(values.mean()), *limits, is_proved=True))
        variance = covariance[one, one] + covariance[other, other] - 2.0 * covariance[one, other]
        gap = float(auc[one] - auc[other])
        limits = normal_limits(gap, float(variance), alpha / len(pairs))
        differences.append(PairedDifference(*pair, AUC, gap, *limits, is_proved=False))
    auc_limits = [normal_limits(float(value), float(covariance[k, k]), alpha) for k, value in enumerate(auc)]
    auc_lower, auc_upper = np.clip(np.array(auc_limits).T, 0.0, 1.0)
    return ModelComparison(
        models=names,
        differences=tuple(differences),
        confidence_level=float(confidence_level),
        clip=clip,
        n_rows=codes.size,
        brier=np.array([loss[BRIER].mean() for loss in losses]),
        log_loss=np.array([loss[LOG_LOSS].mean() for loss in losses]),
        ece=np.array([ece(codes, one, strategy="uniform", classes=(0, 1)).value for one in probabilities]),
        auc=auc,
        auc_lower=auc_lower,
        auc_upper=auc_upper,
    )


class SequentialModelComparison:
    """Which model is better, while labels arrive: the answer may be looked at after every row.

    Claimed: with probability at least `confidence_level` the limits of the expected differences in Brier score and in
    clipped log loss hold after every update, for all pairs and both losses at once. So one may stop as soon as the
    verdict is clear. Assumed: rows are independent draws from one distribution, taken in the order in which they come,
    and the models do not change. Rows that are sorted are no such draws. The limits never widen.

    Parameters
    ----------
    models : sequence of str
        Names of the models, at least two.
    confidence_level : float, default=0.95
        Confidence that all limits hold at all times.
    clip : float, default=0.001
        For the log loss, probabilities are clipped to [clip, 1 - clip].

    Notes
    -----
    Two gamblers bet against each difference of a grid that is dense around 0 (`calibrant.sequences.Betting`). The size
    of a bet depends on earlier rows only. By Ville's inequality a true difference is ever ruled out with probability at
    most alpha divided by the number of pairs and losses.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import SequentialModelComparison
    >>> rng = np.random.default_rng(0)
    >>> race = SequentialModelComparison(["old", "new"])
    >>> for day in range(100):
    ...     rate = rng.uniform(size=100)
    ...     found = race.update(rng.uniform(size=100) < rate, {"old": 1 - rate, "new": rate}).result()
    ...     if found.best:
    ...         break
    >>> day, found.verdict
    (0, "'new' is better than 'old'")
    """

    def __init__(self, models: Sequence[str], *, confidence_level: float = 0.95, clip: float = 0.001) -> None:
        if isinstance(models, str) or not isinstance(models, Sequence):
            raise InvalidTypeError("models", "be names of models", got=shown(models))
        self.models = _names(models)
        self.alpha = error_budget(confidence_level)
        self.confidence_level = float(confidence_level)
        self.clip = CLIP.check("clip", clip)
        self.n_rows = 0
        self._kinds = [(*pair, measure) for pair in combinations(self.models, 2) for measure in _PROVED]
        self._totals = [0.0] * len(self._kinds)
        self._gamblers = [Gamblers.fresh(_grid(), _MOST_STAKED) for _ in self._kinds]

    def update(
        self,
        y: ArrayLike,
        models: Mapping[str, ArrayLike],
        *,
        pos_label: Hashable | None = None,
        classes: ArrayLike | None = (0, 1),
    ) -> Self:
        """Take labels and the probabilities of every model for the same rows, in the order in which they came.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels, 0 and 1 unless `classes` names others.
        models : mapping from name to array-like of shape (n,)
            Predicted probabilities of each model.
        pos_label, classes
            As in `BinningCalibrator`.

        Returns
        -------
        self
        """
        if not isinstance(models, Mapping) or set(models) != set(self.models):
            got = ", ".join(map(repr, models)) if isinstance(models, Mapping) else shown(models)
            raise InvalidValueError("models", f"have scores for {', '.join(map(repr, self.models))}", got=got)
        codes, probabilities = _read(y, {name: models[name] for name in self.models}, pos_label, classes)
        losses = {name: losses_of(codes, one, self.clip) for name, one in zip(self.models, probabilities, strict=True)}
        log_threshold = math.log(2.0 * len(self._kinds) / self.alpha)
        for place, (first, second, measure) in enumerate(self._kinds):
            values = losses[first][measure] - losses[second][measure]
            self._gamblers[place].take(_scaled(values, largest_difference(measure, self.clip)), log_threshold)
            self._totals[place] += float(values.sum())
        self.n_rows += codes.size
        return self

    def result(self) -> Differences:
        """Return what is proved now."""
        found = []
        for kind, total, gamblers in zip(self._kinds, self._totals, self._gamblers, strict=True):
            span = largest_difference(kind[2], self.clip)
            lower, upper = ((2.0 * limit - 1.0) * span for limit in gamblers.limits())
            mean = total / self.n_rows if self.n_rows else math.nan
            found.append(PairedDifference(*kind, mean, lower, upper, is_proved=True))
        return Differences(self.models, tuple(found), self.confidence_level, self.clip, self.n_rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything that is remembered, as plain JSON values."""
        return {
            "models": list(self.models),
            "confidence_level": self.confidence_level,
            "clip": self.clip,
            "rows": self.n_rows,
            "totals": list(self._totals),
            "sums": [gamblers.k for gamblers in self._gamblers],
            "gamblers": [gamblers.to_dict() for gamblers in self._gamblers],
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Return the comparison that `to_dict` described."""
        check_state(state, ("models", "confidence_level", "clip", "rows", "totals", "sums", "gamblers"))
        race = cls(state["models"], confidence_level=state["confidence_level"], clip=state["clip"])
        race.n_rows = read_count(state, "rows")
        size, saved = len(race._kinds), state["gamblers"]
        if not isinstance(saved, list | tuple) or len(saved) != size:
            raise InvalidValueError("gamblers", "be one entry for each pair of models and loss", got=shown(saved))
        race._totals = read_numbers(state["totals"], "totals", size=size).tolist()
        sums = read_numbers(state["sums"], "sums", size=size, low=0.0).tolist()
        grid = _grid()
        race._gamblers = [
            Gamblers.from_dict(one, race.n_rows, k, grid, _MOST_STAKED) for one, k in zip(saved, sums, strict=True)
        ]
        return race

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.result().verdict}, {_numbers.rows(self.n_rows)}>"


def losses_of(codes: CodeArray, probabilities: FloatArray, clip: float) -> dict[str, FloatArray]:
    """Brier score and clipped log loss of each row."""
    given = np.where(codes == 1, probabilities, 1.0 - probabilities)
    return {BRIER: (1.0 - given) ** 2, LOG_LOSS: -np.log(np.clip(given, clip, 1.0 - clip))}


def difference_limits(values: FloatArray, span: float, alpha: float) -> tuple[float, float]:
    """Limits for the mean of differences in [-span, span], which come in an order that does not depend on them."""
    limits = betting_mean(_scaled(values, span), alpha, most_staked=_MOST_STAKED)
    lower, upper = ((2.0 * limit - 1.0) * span for limit in limits)
    return lower, upper


def number_or_none(value: float) -> str:
    """A number of a table, or what is said in place of one that is not finite."""
    return f"{value:.4f}" if math.isfinite(value) else "none" if math.isnan(value) else "infinite"


def _scaled(values: FloatArray, span: float) -> FloatArray:
    return np.clip((values / span + 1.0) / 2.0, 0.0, 1.0)  # beyond by rounding alone


def largest_difference(measure: str, clip: float) -> float:
    """Largest possible difference of a loss between two models."""
    return 1.0 if measure == BRIER else math.log1p(-clip) - math.log(clip)


def _grid() -> FloatArray:
    """Means that are bet against, as shares of the range: dense around the middle, where two models are alike."""
    side = np.linspace(-1.0, 1.0, 2 * _GRID_SIZE + 1)
    return (1.0 + np.sign(side) * side**2) / 2.0


def _names(models: Iterable[Any]) -> tuple[str, ...]:
    names = tuple(map(str, models))
    if len(names) < 2:
        raise InvalidValueError("models", "be at least two", got=str(len(names)))
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidValueError("models", "have different names", got=f"{repeated[0]!r} more than once")
    return names


def _read(
    y: ArrayLike, models: Mapping[str, ArrayLike], pos_label: Hashable | None, classes: ArrayLike | None
) -> tuple[CodeArray, list[FloatArray]]:
    """Labels as 0 and 1, and the probabilities of each model; an error names the model."""
    probabilities = []
    for name, scores in models.items():
        try:
            rows = read_forecasts(y, scores, pos_label, classes)
        except (InvalidValueError, InvalidTypeError) as error:
            if error.parameter in ("scores", "scores and y"):
                error.parameter = f"{error.parameter} of model {str(name)!r}"
            raise
        probabilities.append(np.asarray(rows.scores, dtype=np.float64))
    return rows.codes, probabilities


def _pair_verdict(brier: PairedDifference, log_loss: PairedDifference) -> str | None:
    """What is said of one pair of models; None where neither loss tells them apart."""
    pair = {brier.first: brier.second, brier.second: brier.first}
    if brier.better is None and log_loss.better is None:
        return None
    if brier.better == log_loss.better:
        return f"{brier.better!r} is better than {pair[str(brier.better)]!r}"
    if brier.better and log_loss.better:
        return f"{brier.better!r} has the lower {BRIER}, {log_loss.better!r} the lower {LOG_LOSS}"
    known, open_measure = (brier, LOG_LOSS) if brier.better else (log_loss, BRIER)
    better = str(known.better)
    return f"{better!r} is better than {pair[better]!r} by {known.measure} ({_CANNOT_TELL} by {open_measure})"


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
