"""The result of a comparison of models: paired differences, a verdict, and measurements."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from calibrant._typing import FloatArray
from calibrant.assess.compare_models.losses import AUC, BRIER, LOG_LOSS
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.text import numbers
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import sentence as as_sentence

CANNOT_TELL = "the data cannot tell"
_MODELS_IN_SENTENCE = 3  # with more, the limits are in the table alone
_ALL_AT_ONCE = "All limits that are called proved hold simultaneously."


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The difference between two models in one measure, on the same rows.

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
        True: the limits hold for every distribution and every number of rows, for all proved
        differences simultaneously. False: they are asymptotic.
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
        """The model that is better beyond the limits.

        None if the data cannot tell.
        """
        low, high = (self.second, self.first) if self.measure == AUC else (self.first, self.second)
        return low if self.upper < 0.0 else high if self.lower > 0.0 else None

    def __str__(self) -> str:
        how = "" if self.is_proved else " (asymptotic)"
        minus = f"{self.measure} of {self.first!r} minus that of {self.second!r}"
        if math.isnan(self.lower):
            return f"{minus}: {numbers.nearest(self.value)}, no limits"
        return f"{minus}: {numbers.limits(self.lower, self.upper)}{how}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Differences(Result):
    """Paired differences between models, and what follows from them.

    Attributes
    ----------
    models : tuple of str
        Names of the models.
    differences : tuple of PairedDifference
        The difference of each pair of models in each measure.
    confidence_level : float
        Confidence that all proved differences hold simultaneously.
    clip : float
        For the log loss, probabilities are clipped to [clip, 1 - clip].
    n_rows : int
        Number of rows.
    population : str
        The population that the differences are about, if it differs from that of the rows.
    assumptions : tuple of str
        What must be true.
    """

    _also: ClassVar[tuple[str, ...]] = ("verdict", "best")

    models: tuple[str, ...]
    differences: tuple[PairedDifference, ...]
    confidence_level: float
    clip: float
    n_rows: int
    population: str
    assumptions: tuple[str, ...] = field()

    @property
    def best(self) -> str | None:
        """The model that is proved better than every other by both losses.

        None if there is no such model.
        """
        wins = dict.fromkeys(self.models, 0)
        for found in self._proved:
            if found.better is not None:
                wins[found.better] += 1
        return next(
            (model for model, won in wins.items() if won == 2 * (len(self.models) - 1)), None
        )

    @property
    def verdict(self) -> str:
        """Which model is proved better than which, in words."""
        if self.best is not None:
            others = [model for model in self.models if model != self.best]
            return (
                f"{self.best!r} is better than"
                f" {repr(others[0]) if len(others) == 1 else 'every other model'}"
            )
        pairs = [
            _pair_verdict(*pair)
            for pair in zip(self._proved[0::2], self._proved[1::2], strict=True)
        ]
        told = [text for text in pairs if text is not None]
        if not told:
            these = (
                " from ".join(map(repr, self.models))
                if len(self.models) == 2
                else "any of these models apart"
            )
            return f"{CANNOT_TELL} {these}"
        if len(told) < len(pairs):
            told.append(f"{CANNOT_TELL} the other pairs apart")
        return "; ".join(told)

    @property
    def sentence(self) -> str:
        """What is proved about the losses, in words."""
        level = numbers.percent(self.confidence_level)
        rows = numbers.rows(self.n_rows)
        about = "limits"
        if self.population:
            about = f"limits on expected losses{self.population}"
        told = f"All {about} hold simultaneously"
        if len(self.models) <= _MODELS_IN_SENTENCE:
            limits = "; ".join(map(str, self._proved))
            told = f"These {about} hold simultaneously: {limits}; {_clipped(self.clip)}"
        basis = f", with {level} confidence, from {rows}"
        if all(found.better is None for found in self._proved):
            basis = f" at {level} confidence ({rows})"
        return as_sentence(f"{self.verdict}{basis}. {told}.")

    def tables(self) -> tuple[ResultTable, ...]:
        """The differences, one row per pair and measure."""
        return (differences_table(self.differences),)

    @property
    def _proved(self) -> list[PairedDifference]:
        return [found for found in self.differences if found.is_proved]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelComparison(Differences):
    """A comparison of models on the same rows. Every array has one entry per model.

    Attributes
    ----------
    models, differences, confidence_level, clip, n_rows, population, assumptions
        As in `Differences`.
    brier, log_loss, ece, auc : float arrays
        The measures of each model on these rows, with their weights; the log loss uses clipped
        probabilities, and ECE ten bins of equal width. ECE has no limits, because binning biases
        it.
    auc_lower, auc_upper : float arrays
        Limits on each AUC, at `confidence_level` each. They are asymptotic.
    seed : int or None
        Seed for the order in which bets were made.
    """

    brier: FloatArray
    log_loss: FloatArray
    ece: FloatArray
    auc: FloatArray
    auc_lower: FloatArray
    auc_upper: FloatArray
    seed: int | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """How the log loss is clipped, that ECE has no limits, and the seed that reproduces the
        bets.
        """
        found = [
            f"{_clipped(self.clip)}; ECE has no limits, because binning biases it",
            "the verdict is based on the losses, not on AUC",
        ]
        if self.seed is not None:
            found.append(f"bets were made in random order, with seed {self.seed}")
        return tuple(found)

    def tables(self) -> tuple[ResultTable, ...]:
        """The differences, one row per pair and measure; and the measures of each model."""
        measures = ("brier", "log_loss", "auc", "auc_lower", "auc_upper", "ece")
        columns = {"model": self.models, **{name: getattr(self, name) for name in measures}}
        heads = {"brier": BRIER, "log_loss": LOG_LOSS, "auc": AUC, "ece": "ECE"}
        return (differences_table(self.differences), ResultTable("models", columns, heads=heads))


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


def differences_table(differences: Sequence[PairedDifference]) -> ResultTable:
    """Differences as a table, one row per pair and measure."""
    names = [one.name for one in fields(PairedDifference)]
    columns: dict[str, list[Any]] = {
        name: [getattr(found, name) for found in differences] for name in names
    }
    columns["better"] = [found.better for found in differences]
    columns["basis"] = ["proved" if found.is_proved else "asymptotic" for found in differences]
    shown = ("first", "second", "measure", "value", "lower", "upper", "better", "basis")
    heads = {"first": "model", "second": "minus", "value": "difference"}
    return ResultTable("differences", columns, shown, heads, _ALL_AT_ONCE if differences else "")


def _clipped(clip: float) -> str:
    return f"probabilities in the log loss are clipped to [{clip:g}, {1 - clip:g}]"


def _pair_verdict(brier: PairedDifference, log_loss: PairedDifference) -> str | None:
    """The verdict on one pair of models; None if neither loss shows a difference."""
    pair = {brier.first: brier.second, brier.second: brier.first}
    if brier.better is None and log_loss.better is None:
        return None
    if brier.better == log_loss.better:
        return f"{brier.better!r} is better than {pair[str(brier.better)]!r}"
    if brier.better and log_loss.better:
        return f"{brier.better!r} has the lower {BRIER}, {log_loss.better!r} the lower {LOG_LOSS}"
    known, open_measure = (brier, LOG_LOSS) if brier.better else (log_loss, BRIER)
    better = str(known.better)
    return (
        f"{better!r} is better than {pair[better]!r} by {known.measure} (by {open_measure},"
        f" {CANNOT_TELL})"
    )
