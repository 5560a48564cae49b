"""Losses of models on the same rows, and limits for the mean difference."""

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from calibrant._typing import ArrayLike, CodeArray, FloatArray
from calibrant.assess.metrics.bin_sums import read_forecasts
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.sources.memory import MemoryRows

BRIER = "Brier score"
LOG_LOSS = "log loss"
AUC = "AUC"
PROVED = (BRIER, LOG_LOSS)
TRAINED_BEFORE = "the models were chosen and trained before these rows were looked at"
MOST_STAKED = 0.9  # models are often similar, which large bets can show


def losses_of(codes: CodeArray, probabilities: FloatArray, clip: float) -> dict[str, FloatArray]:
    """Brier score and clipped log loss of each row."""
    given = np.where(codes == 1, probabilities, 1.0 - probabilities)
    return {
        BRIER: (1.0 - given) ** 2,
        LOG_LOSS: -np.log(np.clip(given, clip, 1.0 - clip)),
    }


def scaled(values: FloatArray, span: float) -> FloatArray:
    """Differences in [-span, span], rescaled to [0, 1]."""
    return np.clip((values / span + 1.0) / 2.0, 0.0, 1.0)  # beyond by rounding alone


def largest_difference(measure: str, clip: float) -> float:
    """Largest possible difference in a loss between two models."""
    return 1.0 if measure == BRIER else math.log1p(-clip) - math.log(clip)


def names(models: Iterable[Any]) -> tuple[str, ...]:
    """The names of at least two models; they must be distinct."""
    names = tuple(map(str, models))
    if len(names) < 2:
        raise InvalidValueError("models", "be at least two", got=str(len(names)))
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidValueError(
            "models", "have different names", got=f"{repeated[0]!r} more than once"
        )
    return names


def read(
    y: ArrayLike,
    models: Mapping[str, ArrayLike],
    pos_label: Hashable | None,
    classes: ArrayLike | None,
    **beside: Any,
) -> tuple[MemoryRows, list[FloatArray]]:
    """The rows, and the probabilities from each model; errors name the model."""
    probabilities = []
    for name, scores in models.items():
        try:
            rows = read_forecasts(y, scores, pos_label, classes, **beside)
        except (InvalidValueError, InvalidTypeError) as error:
            if error.parameter in ("scores", "scores and y"):
                error.parameter = f"{error.parameter} of model {str(name)!r}"
            raise
        probabilities.append(np.asarray(rows.scores, dtype=np.float64))
    return rows, probabilities
