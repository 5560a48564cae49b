"""Why intervals around an injective map cannot be narrow for every distribution."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._typing import FloatArray, ScoreMap, Seed
from calibrant.assess.adversary.ghost import GhostWorld, is_fitted, predict, refitted
from calibrant.guarantee.tripod import minimum_expected_width
from calibrant.params.random import as_generator
from calibrant.params.rules import OPEN_UNIT, Integer
from calibrant.text.numbers import lower, percent, upper
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable

_PROBES = 20_000


_WIDTHS = tuple(step / 20 for step in range(23))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WidthDemonstration(Result):
    """Why no distribution-free interval around an injective map can be narrow (Corollary 2 of
    Gupta, Podkopaev and Ramdas 2020).

    Attributes
    ----------
    widths : float array of shape (m,)
        Widths of intervals centred on the prediction, before clipping to [0, 1].
    coverage_apparent : float array of shape (m,)
        How often an interval of each width contains E[Y | score] if labels are fair coin flips.
    coverage_ghost : float array of shape (m,)
        How often it does so in the ghost world. Samples of this size look the same in both worlds.
    needed_width : float
        The smallest of the widths, at most 1, that reaches the confidence level in both worlds.
    minimum_width : float
        1/2 - alpha: no distribution-free interval, centred or not, has a smaller expected width for
        every distribution.
    confidence_level : float
        1 - alpha.
    n : int
        Number of calibration rows.
    """

    widths: FloatArray
    coverage_apparent: FloatArray
    coverage_ghost: FloatArray
    needed_width: float
    minimum_width: float
    confidence_level: float
    n: int

    @property
    def sentence(self) -> str:
        """The width required here, and the smallest width that any method requires."""
        return (
            f"An interval centred on the prediction needs width {upper(self.needed_width)} for"
            f" {percent(self.confidence_level)} coverage on both worlds; every distribution-free"
            f" method needs at least {lower(self.minimum_width)} on average."
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """How often intervals of each width cover, in both worlds."""
        columns = {
            "width": self.widths,
            "coverage_apparent": self.coverage_apparent,
            "coverage_ghost": self.coverage_ghost,
        }
        heads = {"coverage_apparent": "covers, coins", "coverage_ghost": "covers, ghost"}
        return (ResultTable("widths", columns, heads=heads),)


def width_demonstration(
    calibrator: ScoreMap,
    *,
    n: int = 10_000,
    confidence_level: float = 0.9,
    widths: Sequence[float] = _WIDTHS,
    random_state: "Seed" = 0,
) -> WidthDemonstration:
    """Show that an interval that is valid for coin flips and in the ghost world must be wide
    (Corollary 2 of Gupta, Podkopaev and Ramdas 2020).

    It must contain 1/2, the truth for coin flips, and 0 or 1, the truth in the ghost world.

    Parameters
    ----------
    calibrator : object with `fit(scores, y)` and `predict(scores)`
        An injective map.
    n : int, default=10_000
        Number of calibration rows.
    confidence_level : float, default=0.9
        1 - alpha.
    widths : sequence of float, default=0, 0.05, ..., 1.1
        Widths of intervals centred on the prediction.
    random_state : int, Generator, RandomState or None, default=0
        Seed for drawing the rows.

    Returns
    -------
    WidthDemonstration

    Examples
    --------
    >>> from calibrant import PlattCalibrator
    >>> from calibrant.adversary import width_demonstration
    >>> demonstration = width_demonstration(PlattCalibrator())
    >>> demonstration.needed_width >= demonstration.minimum_width
    True
    """
    OPEN_UNIT.check("confidence_level", confidence_level)
    is_fitted(calibrator)
    rng = as_generator(random_state)
    world = GhostWorld(seed=int(rng.integers(2**31)))
    scores, y = world.draw(rng, Integer(10).check("n", n))
    new_scores, label = world.draw(rng, _PROBES)
    prediction = predict(refitted(calibrator, scores, y), new_scores)
    half = np.asarray(widths, dtype=np.float64)[:, None] / 2.0
    coins = (np.abs(prediction - 0.5) <= half).mean(axis=1)
    ghost = (np.abs(prediction - label) <= half).mean(axis=1)
    enough = np.flatnonzero((coins >= confidence_level) & (ghost >= confidence_level))
    return WidthDemonstration(
        widths=2.0 * half[:, 0],
        coverage_apparent=coins,
        coverage_ghost=ghost,
        needed_width=min(1.0, float(2.0 * half[enough[0], 0])) if enough.size else 1.0,
        minimum_width=minimum_expected_width(confidence_level),
        confidence_level=float(confidence_level),
        n=int(n),
    )
