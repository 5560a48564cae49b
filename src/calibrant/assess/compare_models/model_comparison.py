"""The result of a comparison of models: paired differences, a verdict, and measurements."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from shlex import quote
from typing import ClassVar

from calibrant._typing import FloatArray
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.text import numbers
from calibrant.text.picture import Drawn, Picture, ReferenceLine
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable, columns_by_name

BRIER = "Brier score"
LOG_LOSS = "log loss"
AUC = "AUC"
_MOST_DRAWN = 12  # pairs in one picture
_LISTED = 3  # names in a sentence
_ALL_AT_ONCE = "All exact limits hold together."


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
        True: the limits hold for every distribution and every number of rows, for all such
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

    @property
    def winner(self) -> str:
        """Which of the two models is better, in words."""
        if self.better is None:
            return "cannot tell"
        return f"{self.better} is better{'' if self.is_proved else ' (asymptotic)'}"

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
        Confidence that all exact limits hold simultaneously.
    clip : float
        For the log loss, probabilities are clipped to [clip, 1 - clip].
    n_rows : int
        Number of rows.
    population : str
        The population that the differences are about, if it differs from that of the rows.
    assumptions : tuple of str
        What must be true.
    """

    _also: ClassVar[tuple[str, ...]] = ("best",)

    models: tuple[str, ...]
    differences: tuple[PairedDifference, ...]
    confidence_level: float
    clip: float
    n_rows: int
    population: str
    assumptions: tuple[str, ...] = field()

    _noun: ClassVar[str] = "model"

    @property
    def best(self) -> str | None:
        """The model that is shown to be better than every other by both losses.

        None if there is no such model.
        """
        wins = dict.fromkeys(self.models, 0)
        for found in self._guaranteed:
            if found.better is not None:
                wins[found.better] += 1
        return next(
            (model for model, won in wins.items() if won == 2 * (len(self.models) - 1)), None
        )

    @property
    def verdict(self) -> Verdict:
        """Whether one model is shown to be better than every other."""
        return "unclear" if self.best is None else "ok"

    @property
    def sentence(self) -> str:
        """Which model is better, by how much, and what is assumed."""
        rows = numbers.rows(self.n_rows)
        about = ", assumed independent"
        if self.population:
            about = f"; losses{self.population}, if {self.assumptions[0]}"
        sure = f"({numbers.percent(self.confidence_level)} confidence, {rows}{about})"
        if self.best is None:
            found = self._found()
            if not found:
                return f"The data cannot tell which {self._noun} is better {sure}."
            told = ", and ".join(found[:2])
            more = f"; {len(found) - 2} more findings" if len(found) > 2 else ""
            return f"No {self._noun} is best; {told}{more} {sure}."
        if len(self.models) > 2:
            return f"{self.best!r} is better than every other model {sure}."
        brier = next(found for found in self._guaranteed if found.measure == BRIER)
        low, high = sorted(map(abs, (brier.lower, brier.upper)))
        other = next(model for model in self.models if model != self.best)
        return (
            f"{self.best!r} is better than {other!r}: its Brier score is lower by"
            f" {numbers.limits(low, high)} {sure}."
        )

    def _found(self) -> list[str]:
        """What is shown about pairs of models, such as "'a' is better than 'b' and 'c'"."""
        found: dict[str, list[str]] = {}
        for pair in zip(self._guaranteed[0::2], self._guaranteed[1::2], strict=True):
            told = _better_in(*pair)
            if told is not None:
                found.setdefault(told[0], []).append(repr(told[1]))
        return [f"{better} than {_listing(others)}" for better, others in found.items()]

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """How many rows and models were compared."""
        return (
            Quantity("Compared", self.n_rows, unit="row"),
            Quantity("Models", len(self.models)),
            Quantity("Confidence", self.confidence_level, unit="share"),
        )

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Audit the best model, or compare until it is decided."""
        if self.best is None:
            call = f"SequentialModelComparison({tuple(self.models)!r})"
            what = "Compare as labels come in, and stop once it is decided, in Python"
            return (NextStep(what, call),)
        name = quote(self.best).replace("{", "{{").replace("}", "}}")
        command = f"audit {{data}} --score {name} -o audit.html"
        return (NextStep(f"Ask whether {self.best!r} is calibrated", "audit(y, scores)", command),)

    def pictures(self) -> tuple[Picture, ...]:
        """The differences of all pairs with their limits, one picture for each measure."""
        found = []
        for measure in dict.fromkeys(one.measure for one in self.differences):
            pairs = [one for one in self.differences if one.measure == measure][:_MOST_DRAWN]
            drawn = Drawn(
                "difference",
                [one.value for one in pairs],
                [-float(place) for place in range(len(pairs))],
                [one.lower for one in pairs],
                [one.upper for one in pairs],
            )
            names = tuple(f"{one.first} minus {one.second}: {one.winner}" for one in pairs)
            rule = (ReferenceLine("no difference", 0.0, is_upright=True),)
            text = "The difference between each pair of models, with its limits."
            title = f"Differences in {measure}"
            found.append(Picture(title, text, "difference", "", (drawn,), rule, names))
        return tuple(found)

    def tables(self) -> tuple[ResultTable, ...]:
        """The differences, one row per pair and measure."""
        return (differences_table(self.differences),)

    @property
    def _guaranteed(self) -> list[PairedDifference]:
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
            f"probabilities in the log loss are clipped to [{self.clip:g}, {1 - self.clip:g}]; ECE"
            " has no limits, because binning biases it",
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

    _noun: ClassVar[str] = "method"

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Fit the chosen method to other rows."""
        best = self.models[int(self.brier.argmin())]
        method = "" if best in ("curve", "uncalibrated") else f" --method {best}"
        return (
            NextStep(
                "Fit the method of your choice, best to rows that had no part in it",
                "Calibrator().fit(new_scores, new_y)",
                f"fit {{rows}}{method} -o model.json",
            ),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """How the rows were divided, and that the guarantees allow a choice."""
        fitted = f"the methods were fitted to {self.n_fitted:,} other rows"
        choose = "their guarantees hold together, so you may choose by them"
        return (f"{fitted}; {choose}", *ModelComparison.notes.__get__(self))

    def tables(self) -> tuple[ResultTable, ...]:
        """The methods side by side, and the differences from the one with the lowest Brier score."""
        differences, models = ModelComparison.tables(self)
        measures = {name: column for name, column in models.columns.items() if name != "model"}
        # a narrow terminal shows the first columns only
        columns = {"method": self.models, "epsilon": self.epsilon, **measures}
        said = [None if one is None else one.sentence for one in self.guarantee]
        methods = ResultTable(
            "methods",
            {**columns, "guarantee": said},
            tuple(columns),
            {**models.heads, "epsilon": "guaranteed within"},
            "Guaranteed: off by at most this much, on average in each score range.",
            units={"epsilon": "points"},
        )
        return methods, differences


def differences_table(differences: Sequence[PairedDifference]) -> ResultTable:
    """Differences as a table, one row per pair and measure."""
    names = [one.name for one in fields(PairedDifference)]
    columns = columns_by_name(differences, [*names, "better"])
    columns["basis"] = ["exact" if found.is_proved else "asymptotic" for found in differences]
    shown = ("first", "second", "measure", "value", "lower", "upper", "better", "basis")
    heads = {"first": "model", "second": "minus", "value": "difference"}
    return ResultTable("differences", columns, shown, heads, _ALL_AT_ONCE if differences else "")


def _better_in(brier: PairedDifference, log_loss: PairedDifference) -> tuple[str, str] | None:
    """What is shown about the better model of a pair, and the other one; None if neither loss
    shows a difference.
    """
    if brier.better is None and log_loss.better is None:
        return None
    known = brier if brier.better else log_loss
    other = known.second if known.better == known.first else known.first
    if brier.better == log_loss.better:
        return f"{known.better!r} is better", other
    but = f" but a higher {LOG_LOSS}" if log_loss.better == other else ""
    return f"{known.better!r} has a lower {known.measure}{but}", other


def _listing(names: Sequence[str]) -> str:
    """Names in a sentence; a long list ends with how many more there are.

    >>> _listing(["'a'"]), _listing(["'a'", "'b'", "'c'"]), _listing(["'a'", "'b'", "'c'", "'d'"])
    ("'a'", "'a', 'b' and 'c'", "'a', 'b' and 2 others")
    """
    shown = list(names) if len(names) <= _LISTED else [*names[:2], f"{len(names) - 2} others"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
