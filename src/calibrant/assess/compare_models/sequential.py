"""Which model is better, while labels arrive."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import ClassVar, Self

import numpy as np

from calibrant._typing import ArrayLike, FloatArray
from calibrant.assess.compare_models.compare_models import (
    MOST_STAKED,
    PROVED,
    TRAINED_BEFORE,
    largest_difference,
    losses_of,
    names,
    read,
    scaled,
)
from calibrant.assess.compare_models.model_comparison import Differences, PairedDifference
from calibrant.assess.metrics.independent_units import ROWS
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.sequences.betting import Gamblers
from calibrant.params.declared_state import ResumesEach, SharedResumed
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import CLIP, OPEN_UNIT, TEXT, Number, error_budget
from calibrant.params.state_kinds import Lists, Numbers, OneCount
from calibrant.text.sentences import shown

_ASSUMED = (ROWS.assumption, TRAINED_BEFORE)
_GRID_SIZE = 1000  # grid points on either side of 0


class SequentialModelComparison(SharedResumed):
    """Which model is better, as labels arrive? You can look at the answer after every row.

    Guarantee: with probability at least `confidence_level`, the limits for the expected differences
    in Brier score and in clipped log loss hold after every update, for all pairs and both losses at
    once. So you can stop as soon as the verdict is clear. Assumptions: rows are independent draws
    from one distribution, taken in the order they arrive, and the models do not change. Sorted rows
    do not satisfy this. The limits never widen. Several threads may call `update`.

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
    Two gamblers bet against each difference in a grid that is dense around 0
    (Waudby-Smith and Ramdas 2024). The size of a bet depends on earlier rows only. By Ville's
    inequality a true difference is ever ruled out with probability at most alpha divided by the
    number of pairs and losses.

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
    >>> day, found.best
    (0, 'new')
    """

    _entries: ClassVar[EntryTable] = {
        "models": Entry(Lists(TEXT), makes=True),
        "confidence_level": Entry(OPEN_UNIT, makes=True),
        "clip": Entry(CLIP, makes=True),
        "rows": Entry(OneCount(), of="n_rows"),
        "totals": Entry(Lists(Number(), size="n_kinds", into=list), of="_totals"),
        "sums": Entry(Numbers(size="n_kinds", low=0.0), of="_sums"),
        "gamblers": Entry(ResumesEach("_gamblers"), of="_gamblers"),
    }

    def __init__(
        self, models: Sequence[str], *, confidence_level: float = 0.95, clip: float = 0.001
    ) -> None:
        if isinstance(models, str) or not isinstance(models, Sequence):
            raise InvalidTypeError("models", "be names of models", got=shown(models))
        self.models = names(models)
        self.alpha = error_budget(confidence_level)
        self.confidence_level = float(confidence_level)
        self.clip = CLIP.check("clip", clip)
        self.n_rows = 0
        self._kinds = [
            (*pair, measure) for pair in combinations(self.models, 2) for measure in PROVED
        ]
        self._totals = [0.0] * len(self._kinds)
        self._gamblers = [Gamblers.fresh(_grid(), MOST_STAKED) for _ in self._kinds]

    def update(
        self,
        y: ArrayLike,
        models: Mapping[str, ArrayLike],
        *,
        pos_label: Hashable = None,
        classes: ArrayLike | None = (0, 1),
    ) -> Self:
        """Add labels and the probabilities of every model for the same rows, in the order in which
        they arrived.

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
            raise InvalidValueError(
                "models", f"have scores for {', '.join(map(repr, self.models))}", got=got
            )
        rows, probabilities = read(
            y, {name: models[name] for name in self.models}, pos_label, classes
        )
        losses = {
            name: losses_of(rows.codes, one, self.clip)
            for name, one in zip(self.models, probabilities, strict=True)
        }
        log_threshold = math.log(2.0 * len(self._kinds) / self.alpha)
        with self._lock:
            for place, (first, second, measure) in enumerate(self._kinds):
                values = losses[first][measure] - losses[second][measure]
                self._gamblers[place].take(
                    scaled(values, largest_difference(measure, self.clip)), log_threshold
                )
                self._totals[place] += float(values.sum())
            self.n_rows += len(rows)
        return self

    def result(self) -> Differences:
        """Return what is shown so far."""
        found = []
        with self._lock:
            n_rows = self.n_rows
            limits = [gamblers.limits() for gamblers in self._gamblers]
            totals = list(self._totals)
        for kind, total, ends in zip(self._kinds, totals, limits, strict=True):
            span = largest_difference(kind[2], self.clip)
            lower, upper = ((2.0 * limit - 1.0) * span for limit in ends)
            mean = total / n_rows if n_rows else math.nan
            found.append(PairedDifference(*kind, mean, lower, upper, is_proved=True))
        return Differences(
            self.models, tuple(found), self.confidence_level, self.clip, n_rows, "", _ASSUMED
        )

    @property
    def n_kinds(self) -> int:
        """The number of differences that are bet on: one for each pair of models and each loss."""
        return len(self._kinds)

    @property
    def _sums(self) -> list[float]:
        """What the gamblers have seen, as sums of outcomes in [0, 1]."""
        return [gamblers.k for gamblers in self._gamblers]

    @_sums.setter
    def _sums(self, sums: FloatArray) -> None:
        for gamblers, total in zip(self._gamblers, sums.tolist(), strict=True):
            gamblers.k = total
            gamblers.n = self.n_rows

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.result().sentence}>"


def _grid() -> FloatArray:
    """Candidate means, as shares of the range: dense around the middle, where two models are
    similar.
    """
    side = np.linspace(-1.0, 1.0, 2 * _GRID_SIZE + 1)
    return (1.0 + np.sign(side) * side**2) / 2.0
