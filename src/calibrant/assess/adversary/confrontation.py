"""Claimed and true error, on a distribution where an injective calibrator is wrong at every point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IntArray, ScoreMap, Seed
from calibrant.assess.adversary.ghost import (
    BITS,
    POINTS,
    GhostWorld,
    is_fitted,
    predict,
    refitted,
)
from calibrant.assess.metrics.ece import ece
from calibrant.calibrators.binning import BinningCalibrator
from calibrant.params.random import as_generator
from calibrant.params.rules import Integer
from calibrant.text.numbers import counted, nearest
from calibrant.text.picture import Drawn, Picture
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable

SAMPLE_SIZES = (10**2, 10**3, 10**4, 10**5, 10**6)
_PROBES = 2000  # new points over which the true error is averaged
_COLUMNS = ("shown", "claimed", "real", "real_largest")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Confrontation(Result):
    """The shown, claimed and real calibration errors, for growing samples from a `GhostWorld`.

    All arrays have shape (n_methods, n_sizes).

    Attributes
    ----------
    methods : tuple of str
        Names of the calibrators, the injective one first.
    sample_sizes : int array of shape (n_sizes,)
        Numbers of calibration rows.
    shown : float array
        Calibration error in 10 bins, on the same number of new rows. This is what a reliability
        diagram would show.
    claimed : float array
        Guaranteed epsilon; NaN if nothing is guaranteed.
    real : float array
        E |E[Y | prediction] - prediction|, which is known exactly here.
    real_largest : float array
        Largest |E[Y | prediction] - prediction| over new points. The guarantee is that epsilon
        bounds this error.
    injective : bool array
        Whether different scores have different predictions.
    """

    methods: tuple[str, ...]
    sample_sizes: IntArray
    shown: FloatArray
    claimed: FloatArray
    real: FloatArray
    real_largest: FloatArray
    injective: BoolArray

    def pictures(self) -> tuple[Picture, ...]:
        """Real errors, errors in a reliability diagram and guarantees, by the number of rows."""
        at = np.log10(self.sample_sizes).tolist()
        kinds = {
            "real error": self.real,
            "shown by 10 bins": self.shown,
            "guaranteed": self.claimed,
        }
        drawn = [
            Drawn(f"{method}: {kind}", at, errors[row].tolist(), kind="line")
            for row, method in enumerate(self.methods)
            for kind, errors in kinds.items()
            if not np.isnan(errors[row]).all()
        ]
        text = "The calibration error that is real, that 10 bins show, and that is guaranteed."
        labels = "calibration rows, as a power of 10", "calibration error, points"
        return (Picture("Calibration error", text, *labels, tuple(drawn), y_unit="points"),)

    @property
    def sentence(self) -> str:
        """What the largest sample shows, and the real error."""
        n_rows = int(self.sample_sizes[-1])
        errors = [
            f"{method!r} shows an error of {nearest(float(self.shown[row, -1]))}, and its real"
            f" error is {nearest(float(self.real[row, -1]))}"
            for row, method in enumerate(self.methods)
        ]
        return f"With {counted(n_rows, 'row')} from this distribution, {'; '.join(errors)}."

    def tables(self) -> tuple[ResultTable, ...]:
        """The errors, one row per method and sample size."""
        n_methods, n_sizes = self.real.shape
        columns = {
            "method": np.repeat(np.array(self.methods, dtype=object), n_sizes),
            "n": np.tile(self.sample_sizes, n_methods),
            **{name: getattr(self, name).ravel() for name in _COLUMNS},
        }
        about = "Claimed: the guaranteed epsilon; empty if nothing is guaranteed."
        return (ResultTable("errors", columns, heads={"real_largest": "largest"}, about=about),)


def confront(
    calibrator: ScoreMap,
    *,
    rivals: Mapping[str, ScoreMap] | None = None,
    sample_sizes: Sequence[int] = SAMPLE_SIZES,
    random_state: Seed = 0,
) -> Confrontation:
    """Build the distribution from the proof against an injective calibrator, and measure its shown
    and real errors.

    Guarantee: in this world, samples of any of these sizes look like samples from a distribution
    for which the calibrator is right. But its real error is a constant (Theorem 3 of Gupta,
    Podkopaev and Ramdas 2020). The guarantee of a binned calibrator holds here as it does
    everywhere, and its real error shrinks.

    Parameters
    ----------
    calibrator : object with `fit(scores, y)` and `predict(scores)`
        An injective map, for example a `PlattCalibrator`. If it is already fitted, labels are drawn
        with the rates that it predicts, so it looks perfect on every sample. Otherwise labels are
        fair coin flips.
    rivals : mapping from name to calibrator, default=None
        Other calibrators for the same rows. None means a `BinningCalibrator` with 10 bins.
    sample_sizes : sequence of int, default=10^2 to 10^6
        Numbers of calibration rows.
    random_state : int, Generator, RandomState or None, default=0
        Seed for drawing the rows.

    Returns
    -------
    Confrontation

    Notes
    -----
    The real error needs E[Y | prediction], an average over all points with the same prediction.
    They are found by bisection on both sides of a new point. This works for maps whose level sets
    are ranges of scores, such as increasing maps and bins. For an injective map the level set is
    one point, and E[Y | prediction] is its label.

    Examples
    --------
    >>> from calibrant import PlattCalibrator
    >>> from calibrant.adversary import confront
    >>> result = confront(PlattCalibrator(), sample_sizes=(100, 10_000))
    >>> result.real[0].round(2)
    array([0.5, 0.5])
    >>> bool(result.real[1, 1] < 0.1 * result.real[0, 1])
    True
    """
    rng = as_generator(random_state)
    rate = calibrator.predict if is_fitted(calibrator) else None
    world = GhostWorld(rate, seed=int(rng.integers(2**31)))
    name = type(calibrator).__name__.removesuffix("Calibrator") or "Calibrator"
    contenders = {name: calibrator}
    contenders |= {"Binning": BinningCalibrator(n_bins=10)} if rivals is None else dict(rivals)
    sizes = np.array(
        [Integer(10).check("sample_sizes", size) for size in sample_sizes], dtype=np.int64
    )
    numbers = np.full((5, len(contenders), sizes.size), np.nan)
    for column, n in enumerate(sizes.tolist()):
        scores, y = world.draw(rng, n)
        new_scores, new_y = world.draw(rng, n)
        probes = rng.integers(POINTS, size=_PROBES)
        for row, contender in enumerate(contenders.values()):
            fitted = refitted(contender, scores, y)
            measured = ece(
                new_y, predict(fitted, new_scores), strategy="uniform", classes=(0, 1)
            ).value
            epsilon = getattr(getattr(fitted, "guarantee_", None), "epsilon", None)
            value = predict(fitted, world.scores_at(probes))
            first, last = (_reach(world, fitted, probes, value, step) for step in (-1, 1))
            error = np.abs(world.rate_between(first, last) - value)
            bound = np.nan if epsilon is None else epsilon
            numbers[:, row, column] = (
                measured,
                bound,
                error.mean(),
                error.max(),
                (first == last).all(),
            )
    shown, claimed, real, largest, injective = numbers
    return Confrontation(tuple(contenders), sizes, shown, claimed, real, largest, injective == 1.0)


def _reach(
    world: GhostWorld, fitted: ScoreMap, probes: IntArray, value: FloatArray, step: int
) -> IntArray:
    """The point farthest from each probe, in one direction, with the same prediction."""
    inside = probes.copy()
    outside = np.full(probes.size, -1 if step < 0 else POINTS)
    for _ in range(BITS + 1):
        middle = (inside + outside) // 2 if step > 0 else (inside + outside + 1) // 2
        same = predict(fitted, world.scores_at(np.clip(middle, 0, POINTS - 1))) == value
        inside = np.where(same, middle, inside)
        outside = np.where(same, outside, middle)
    return inside
