"""Claimed against real: calibrators on a world where an injective one is wrong at every point, unseen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._optional import pandas
from calibrant._params import as_generator, check_int
from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.adversary.ghost import BITS, POINTS, GhostWorld
from calibrant.adversary.maps import fresh, is_fitted, predict
from calibrant.calibrators.binning import BinningCalibrator
from calibrant.metrics import ece

SAMPLE_SIZES = (10**2, 10**3, 10**4, 10**5, 10**6)
_PROBES = 2000  # fresh points on which the real error is averaged


@dataclass(frozen=True, slots=True, eq=False)
class Confrontation:
    """What calibrators show and claim, against what is so, for growing samples from a `GhostWorld`.

    All arrays have shape (n_methods, n_sizes).

    Attributes
    ----------
    methods : tuple of str
        Names of the calibrators, the injective one first.
    sample_sizes : int array of shape (n_sizes,)
        Calibration rows.
    shown : float array
        Calibration error in 10 bins on as many fresh rows: what a reliability diagram would show.
    claimed : float array
        Guaranteed epsilon; NaN where the calibrator promises nothing.
    real : float array
        E |E[Y | prediction] - prediction|, known exactly here.
    real_largest : float array
        Largest |E[Y | prediction] - prediction| over fresh points: what epsilon is a promise about.
    injective : bool array
        Whether different scores got different predictions.
    no_repeat : float array of shape (n_sizes,)
        Probability that no point is drawn twice, so that the sample says nothing whatever about the ghost.
    """

    methods: tuple[str, ...]
    sample_sizes: IntArray
    shown: FloatArray
    claimed: FloatArray
    real: FloatArray
    real_largest: FloatArray
    injective: BoolArray
    no_repeat: FloatArray

    def __str__(self) -> str:
        head = f"{'n':>9}  {'method':<12} {'shown':>8} {'claimed':>8} {'real':>8} {'largest':>8}"
        lines = [head]
        for column, n in enumerate(self.sample_sizes.tolist()):
            for row, method in enumerate(self.methods):
                claim = self.claimed[row, column]
                claimed = "nothing" if np.isnan(claim) else f"{claim:.4f}"
                lines.append(
                    f"{n:>9,}  {method:<12} {self.shown[row, column]:>8.4f} {claimed:>8} "
                    f"{self.real[row, column]:>8.4f} {self.real_largest[row, column]:>8.4f}"
                )
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return the numbers as a pandas frame, one row per method and sample size."""
        pd = pandas()
        n_methods, n_sizes = self.real.shape
        columns = {name: getattr(self, name).ravel() for name in ("shown", "claimed", "real", "real_largest")}
        methods = np.repeat(np.array(self.methods, dtype=object), n_sizes)
        return pd.DataFrame({"method": methods, "n": np.tile(self.sample_sizes, n_methods), **columns})


def confront(
    calibrator: Any,
    *,
    rivals: Mapping[str, Any] | None = None,
    sample_sizes: Sequence[int] = SAMPLE_SIZES,
    world: GhostWorld | None = None,
    name: str | None = None,
    random_state: Any = 0,
) -> Confrontation:
    """Build the distribution of the proof against an injective calibrator, and measure what it shows and what is so.

    Claimed: on the returned world, samples of any of these sizes can not be told from samples of a distribution on
    which the calibrator is right, yet its real error is a constant (`thm:f-must-be-coarse`). A binned calibrator's
    promise holds there as everywhere, and its real error shrinks.

    Parameters
    ----------
    calibrator : object with `fit(scores, y)` and `predict(scores)`
        An injective map, say a `PlattCalibrator`. Where it is already fitted, labels are drawn with the very rates it
        predicts: on every sample it will look perfect. Else labels are fair coin flips.
    rivals : mapping from name to calibrator, default=None
        Others to measure on the same rows; None is a `BinningCalibrator` with 10 bins.
    sample_sizes : sequence of int, default=10^2 to 10^6
        Calibration rows.
    world : GhostWorld, default=None
        Overrides the world that is built.
    name : str, default=None
        Name of the calibrator; None is that of its class.
    random_state : int, Generator, RandomState or None, default=0
        Draws the rows.

    Returns
    -------
    Confrontation

    Notes
    -----
    The real error needs E[Y | prediction], so all points with the same prediction: from a fresh point they are found
    by bisection on either side, for maps whose level sets are ranges of scores, as those of increasing maps and of
    bins are. For an injective map each is a single point, and E[Y | prediction] its label.

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
    if world is None:
        world = GhostWorld(calibrator.predict if is_fitted(calibrator) else None, seed=int(rng.integers(2**31)))
    contenders = {name or type(calibrator).__name__.removesuffix("Calibrator"): calibrator}
    contenders |= {"Binning": BinningCalibrator(n_bins=10)} if rivals is None else dict(rivals)
    sizes = np.array([check_int("sample_sizes", size, minimum=10) for size in sample_sizes], dtype=np.int64)
    numbers = np.full((5, len(contenders), sizes.size), np.nan)
    for column, n in enumerate(sizes.tolist()):
        scores, y = world.draw(rng, n)
        fresh_scores, fresh_y = world.draw(rng, n)
        probes = rng.integers(POINTS, size=_PROBES)
        for row, contender in enumerate(contenders.values()):
            fitted = fresh(contender).fit(scores, y)
            prediction = predict(fitted, fresh_scores)
            measured = ece(fresh_y, prediction, strategy="uniform", classes=(0, 1)).value
            error, single = _real_errors(world, fitted, probes)
            epsilon = getattr(getattr(fitted, "guarantee_", None), "epsilon", None)
            numbers[:, row, column] = (
                measured,
                np.nan if epsilon is None else epsilon,
                error.mean(),
                error.max(),
                single,
            )
    no_repeat = np.exp(np.maximum(-sizes * (sizes - 1.0) / (2.0 * POINTS), -700.0))
    shown, claimed, real, real_largest, injective = numbers
    return Confrontation(
        tuple(contenders), sizes, shown, claimed, real, real_largest, injective == 1.0, np.asarray(no_repeat)
    )


def _real_errors(world: GhostWorld, fitted: Any, probes: IntArray) -> tuple[FloatArray, bool]:
    """|E[Y | prediction] - prediction| at each probe, and whether each prediction belongs to a single point."""
    value = predict(fitted, world.scores_at(probes))
    first, last = _reach(world, fitted, probes, value, -1), _reach(world, fitted, probes, value, 1)
    return np.abs(world.rate_between(first, last) - value), bool((first == last).all())


def _reach(world: GhostWorld, fitted: Any, probes: IntArray, value: FloatArray, step: int) -> IntArray:
    """The furthest point from each probe, in one direction, with the same prediction."""
    inside = probes.copy()
    outside = np.full(probes.size, -1 if step < 0 else POINTS)
    for _ in range(BITS + 1):
        middle = (inside + outside) // 2 if step > 0 else (inside + outside + 1) // 2
        same = predict(fitted, world.scores_at(np.clip(middle, 0, POINTS - 1))) == value
        inside, outside = np.where(same, middle, inside), np.where(same, outside, middle)
    return inside
