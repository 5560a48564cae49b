"""What a comparison of models returns: paired differences, a verdict, and what was measured."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from calibrant._optional import pandas
from calibrant._typing import FloatArray, Frame
from calibrant.assess.compare_models.losses import AUC, BRIER, LOG_LOSS, number_or_none
from calibrant.text import numbers
from calibrant.text.sentences import TextTable, sentence

CANNOT_TELL = "the data cannot tell"


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
        """The model whose measure is the better one beyond the limits; None if the data cannot tell."""
        low, high = (self.second, self.first) if self.measure == AUC else (self.first, self.second)
        return low if self.upper < 0.0 else high if self.lower > 0.0 else None

    def __str__(self) -> str:
        how = "" if self.is_proved else " (asymptotic)"
        minus = f"{self.measure} of {self.first!r} minus that of {self.second!r}"
        if math.isnan(self.lower):
            return f"{minus}: {numbers.nearest(self.value)}, no limits"
        return f"{minus}: {numbers.limits(self.lower, self.upper)}{how}"


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
    population : str
        Which population the differences are about, where it is not that of the rows.
    assumptions : tuple of str
        What must be true.
    """

    models: tuple[str, ...]
    differences: tuple[PairedDifference, ...]
    confidence_level: float
    clip: float
    n_rows: int
    population: str
    assumptions: tuple[str, ...]

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
        pairs = [_pair_verdict(*pair) for pair in zip(self._proved[0::2], self._proved[1::2], strict=True)]
        told = [text for text in pairs if text is not None]
        if not told:
            these = " from ".join(map(repr, self.models)) if len(self.models) == 2 else "any of these models apart"
            return f"{CANNOT_TELL} {these}"
        if len(told) < len(pairs):
            told.append(f"{CANNOT_TELL} the other pairs")
        return "; ".join(told)

    def sentence(self) -> str:
        """What is proved about the losses, in words."""
        level, rows = numbers.percent(self.confidence_level), numbers.rows(self.n_rows)
        limits = "; ".join(map(str, self._proved))
        clipped = f"probabilities in the log loss are clipped to [{self.clip:g}, {1 - self.clip:g}]"
        about = f"Of expected losses{self.population}, all at once" if self.population else "All at once"
        return sentence(f"{self.verdict}, with {level} confidence, from {rows}. {about}: {limits}; {clipped}.")

    def to_frame(self) -> Frame:
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
            "differences": [numbers.plain(asdict(found)) | {"better": found.better} for found in self.differences],
            "population": self.population.strip() or None,
            "assumptions": list(self.assumptions),
        }

    def differences_table(self, name_of: Callable[[str], str] = str) -> TextTable:
        """The differences, as text; `name_of` may shorten the names of models."""
        rows = [
            (
                f"{name_of(one.first)} minus {name_of(one.second)}",
                one.measure,
                numbers.nearest(one.value),
                "none" if math.isnan(one.lower) else numbers.limits(one.lower, one.upper),
                "proved" if one.is_proved else "asymptotic",
            )
            for one in self.differences
        ]
        return TextTable(("pair", "measure", "difference", "limits", "basis"), rows)

    @property
    def _proved(self) -> list[PairedDifference]:
        return [found for found in self.differences if found.is_proved]

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(f"  {found}" for found in self.differences)])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelComparison(Differences):
    """Models side by side on the same rows. Every array has one entry per model.

    Attributes
    ----------
    models, differences, confidence_level, clip, n_rows, population, assumptions
        As in `Differences`.
    brier, log_loss, ece, auc : float arrays
        Measured on these rows, by their weights; the log loss with clipped probabilities, ECE in ten bins of equal
        width. ECE has no limits, because binning biases it.
    auc_lower, auc_upper : float arrays
        Limits of each AUC, at `confidence_level` each. They are asymptotic.
    seed : int or None
        Seed of the order in which bets were made.
    """

    brier: FloatArray
    log_loss: FloatArray
    ece: FloatArray
    auc: FloatArray
    auc_lower: FloatArray
    auc_upper: FloatArray
    seed: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; a number that is not known is None."""
        measures = ("brier", "log_loss", "auc", "auc_lower", "auc_upper", "ece")
        models = [
            {"model": model} | {name: getattr(self, name)[place] for name in measures}
            for place, model in enumerate(self.models)
        ]
        return Differences.to_dict(self) | {"models": numbers.plain(models), "seed": self.seed}

    def sentence(self) -> str:
        """What is proved about the losses, in words, and the seed that repeats it."""
        said = Differences.sentence(self)
        return said if self.seed is None else f"{said} Bets were made in the order of seed {self.seed}."

    def models_table(self, name_of: Callable[[str], str] = str) -> TextTable:
        """What was measured, as text; `name_of` may shorten the names of models."""
        columns = (map(number_or_none, column) for column in (self.brier, self.log_loss, self.auc, self.ece))
        rows = [*zip(map(name_of, self.models), *columns, strict=True)]
        return TextTable(("model", BRIER, LOG_LOSS, AUC, "ECE"), rows)

    def __str__(self) -> str:
        width = max(len("model"), *map(len, self.models))
        heads, rows = self.models_table()
        lines = []
        for name, brier, *others in (heads, *rows):
            cells = " ".join(f"{cell:>10}" for cell in others)
            lines.append(f"{name:<{width}} {brier:>12} {cells}")
        return "\n".join([*lines, Differences.__str__(self)])


def _pair_verdict(brier: PairedDifference, log_loss: PairedDifference) -> str | None:
    """What is said of one pair of models; None if neither loss shows a difference."""
    pair = {brier.first: brier.second, brier.second: brier.first}
    if brier.better is None and log_loss.better is None:
        return None
    if brier.better == log_loss.better:
        return f"{brier.better!r} is better than {pair[str(brier.better)]!r}"
    if brier.better and log_loss.better:
        return f"{brier.better!r} has the lower {BRIER}, {log_loss.better!r} the lower {LOG_LOSS}"
    known, open_measure = (brier, LOG_LOSS) if brier.better else (log_loss, BRIER)
    better = str(known.better)
    return f"{better!r} is better than {pair[better]!r} by {known.measure} ({CANNOT_TELL} by {open_measure})"
