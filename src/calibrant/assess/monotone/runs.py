"""Limits for the rate at every score, if it is nondecreasing: the best over runs of neighbouring
cells of scores.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.assess.monotone.run_limits import ScoredUnits, run_limits
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.score_partition import equal_mass
from calibrant.errors import InvalidValueError
from calibrant.limits.interval import Interval
from calibrant.limits.non_identical import non_identical
from calibrant.params.declared_state import Saved
from calibrant.params.kind import EntryTable
from calibrant.params.rules import Number
from calibrant.text import numbers
from calibrant.text.numbers import percent, rows
from calibrant.text.picture import Drawn, Picture
from calibrant.text.result import Result, Verdict, said_of_file
from calibrant.text.result_table import ResultTable

_ROUNDING = 1e-9  # how much limits may differ on another machine
_CELLS = 10.0  # number of cells over the cube root of the rows
_CELLS_OF_BETS = 6.7  # the same, for rows that are bet on one by one
_CELLS_OF_GROUPS = 3.5  # the same, for rows in groups


@dataclass(frozen=True, slots=True)
class Refutation(Saved):
    """Two ranges of scores that show that the rate decreases somewhere.

    Attributes
    ----------
    low, high : float
        The lower range of scores.
    at_least : float
        A lower bound on its mean rate; with weights, on its largest rate.
    other_low, other_high : float
        The higher range of scores.
    at_most : float
        An upper bound on its mean rate; with weights, on its smallest rate.
    """

    _entries: ClassVar[EntryTable] = {
        "low": Number(),
        "high": Number(),
        "at_least": Number(),
        "other_low": Number(),
        "other_high": Number(),
        "at_most": Number(),
    }

    low: float
    high: float
    at_least: float
    other_low: float
    other_high: float
    at_most: float

    def __str__(self) -> str:
        least = numbers.lower(self.at_least)
        most = numbers.upper(self.at_most)
        return (
            f"the rate is at least {least} among scores from {numbers.span(self.low, self.high)}, "
            f"and at most {most} among scores from {numbers.span(self.other_low, self.other_high)}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class BandSteps:
    """Limits at every score: both are nondecreasing, and change only at their knots.

    They come from `n_runs` runs of `n_rows` rows; `refutation` says where they cross, if they do.
    """

    lower_knots: FloatArray
    lower: FloatArray
    upper_knots: FloatArray
    upper: FloatArray
    n_rows: int
    n_runs: int
    refutation: Refutation | None

    @classmethod
    def of(cls, cells: ScoreCounts, n_cells: int | str, alpha: float) -> Self:
        """The best simultaneous limits over all runs of plain rows, whose limits are exact."""
        counts, positives = cells.whole
        if not counts.sum():
            return cls._nothing(0)
        start, stop = _runs_of(counts, n_cells, _CELLS, counts.sum())
        before = (np.append(0, np.cumsum(sums)) for sums in (counts, positives))
        rows, hits = (sums[stop] - sums[start] for sums in before)
        low = cells.scores[start]
        high = cells.high[stop - 1]
        limits = non_identical(rows, hits, alpha / (2.0 * start.size), low == high)
        return cls._of_limits(low, high, limits, int(counts.sum()))

    @classmethod
    def of_units(
        cls,
        counted: ScoredUnits,
        pilot: ScoredUnits | None,
        n_cells: int | str,
        alpha: float,
        generator: np.random.Generator,
    ) -> Self:
        """The best limits for weighted rows or whole groups; see `run_limits`.

        Pilot groups cut the runs; without any, every row is a unit, and all scores cut them.
        """
        cutting = counted if pilot is None else pilot
        if not cutting.scores.size:
            return cls._nothing(counted.scores.size)
        values, counts = np.unique(cutting.scores, return_counts=True)
        # by pilot rows, because the number of rows in the counted groups must not affect it
        about = cutting.scores.size / cutting.n_units * counted.n_units
        automatic = _CELLS_OF_BETS if pilot is None else _CELLS_OF_GROUPS
        start, stop = _runs_of(counts, n_cells, automatic, about)
        low = values[start]
        high = values[stop - 1]
        limits = run_limits(counted, pilot, low, high, alpha / (2.0 * start.size), generator)
        return cls._of_limits(low, high, limits, counted.scores.size)

    @classmethod
    def _nothing(cls, n_rows: int) -> Self:
        nothing = np.empty(0)
        return cls(nothing, nothing, nothing, nothing, n_rows, 0, None)

    @classmethod
    def _of_limits(cls, low: FloatArray, high: FloatArray, limits: Interval, n_rows: int) -> Self:
        """The best limits of runs from the scores `low` to `high`."""
        upper_knots, upper = (
            -side[::-1] for side in _best(-low, -limits.upper, -1.0)
        )  # of runs that begin later
        crossing = refutation(low, high, limits.lower, limits.upper)
        return cls(*_best(high, limits.lower, 0.0), upper_knots, upper, n_rows, low.size, crossing)

    def check(self, n_units: int, alpha: float) -> None:
        """Raise an error for limits that no rows, or groups, of this number could give.

        Notes
        -----
        A lower limit at the tail t, from a run of n units, is at most t^(1 / n), which all of them
        positive would give; an upper limit is at least 1 - t^(1 / n). So a limit tells how many
        units its run has at least. A lower limit at x and an upper limit at a score above x come
        from runs without common rows, which together have at most all units.
        """
        if max(self.lower.size, self.upper.size) > self.n_runs:
            raise InvalidValueError("runs", "be at least as many as knots", got=str(self.n_runs))
        tail = alpha / (2.0 * max(self.n_runs, 1))
        below = _least_units(self.lower, tail)
        above = _least_units(1.0 - self.upper, tail)
        later = np.searchsorted(self.upper_knots, self.lower_knots, side="right")
        # of the upper limits above a score, the first is the smallest
        together = below + np.append(above, 0.0)[later]
        needed = float(np.concatenate([below, above, together]).max(initial=0.0))
        if self.refutation is not None:
            found = np.array([self.refutation.at_least, 1.0 - self.refutation.at_most])
            needed = max(needed, float(_least_units(found, tail).sum()))
        if needed > n_units * (1.0 + _ROUNDING) + _ROUNDING:
            rule = f"be limits that {n_units:,} rows or groups can give"
            got = f"limits that need {needed:,.0f}" if needed < np.inf else "certainty"
            raise InvalidValueError("lower and upper", rule, got=got)

    def at(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The limits at each score.

        The lower limit is that of the last knot at or below a score, the upper limit that of the
        first knot at or above it.
        """
        below = np.searchsorted(self.lower_knots, scores, side="right")
        above = np.searchsorted(self.upper_knots, scores, side="left")
        return np.append(0.0, self.lower)[below], np.append(self.upper, 1.0)[above]


def _least_units(limits: FloatArray, tail: float) -> FloatArray:
    """The smallest number of units that give these lower limits; none for a limit of 0 or less."""
    is_between = (limits > 0.0) & (limits < 1.0)
    needed = np.log(tail) / np.log(np.where(is_between, limits, 0.5))
    return np.where(is_between, needed, np.where(limits <= 0.0, 0.0, np.inf))


def _runs_of(
    counts: IntArray, n_cells: int | str, automatic: float, n_rows: float
) -> tuple[IntArray, IntArray]:
    """The first score of each run, and the one after its last, for these numbers of rows at each
    score.

    There are at most `n_cells` cells; "auto" is `automatic` times the cube root of the rows.
    """
    asked = max(1, round(automatic * n_rows ** (1.0 / 3.0))) if n_cells == "auto" else n_cells
    first = np.flatnonzero(np.diff(equal_mass(counts, int(asked)), prepend=-1))
    ends = np.append(first, counts.size)
    start, stop = runs(first.size)
    return ends[start], ends[stop]


def runs(n_cells: int) -> tuple[IntArray, IntArray]:
    """The first cell of each run, and the cell after its last: lengths grow by sqrt(2), starts are
    a quarter apart.
    """
    lengths = np.unique(
        np.round(2.0 ** (np.arange(2.0 * np.log2(n_cells) + 1.0) / 2.0)).astype(np.int64)
    )
    starts = [
        np.arange(0, n_cells - length + 1, max(1, length // 4))
        for length in lengths
        if length <= n_cells
    ]
    counts = [start.size for start in starts]
    start = np.concatenate(starts)
    return start, start + np.repeat(lengths[: len(starts)], counts)


def _best(ends: FloatArray, limits: FloatArray, worst: float) -> tuple[FloatArray, FloatArray]:
    """Knots and values of the largest limit over all runs that end at or before a score.

    `worst` if no run does.
    """
    order = np.lexsort([limits, ends])
    best = np.maximum.accumulate(limits[order])
    # of several runs with the same end, the last has the best limit; keep knots where the limit
    # improves
    final = np.append(np.diff(ends[order]) != 0.0, True)
    knots = ends[order][final]
    best = best[final]
    rises = np.diff(best, prepend=worst) > 0.0
    return knots[rises], best[rises]


def refutation(
    low: FloatArray, high: FloatArray, lower: FloatArray, upper: FloatArray
) -> Refutation | None:
    """The two runs whose limits cross most; None if no limits cross."""
    order = np.argsort(high, kind="stable")
    best = np.maximum.accumulate(lower[order])
    before = (
        np.searchsorted(high[order], low, side="right") - 1
    )  # runs that end at or before each run begins
    gap = np.where(before >= 0, best[before] - upper, -1.0)
    other = int(gap.argmax())
    if gap[other] <= 0.0:
        return None
    one = int(order[: before[other] + 1][lower[order[: before[other] + 1]].argmax()])
    ends = (low[one], high[one], lower[one], low[other], high[other], upper[other])
    return Refutation(*map(float, ends))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BandGuarantee(Result):
    """What is guaranteed about the rate at every score, if it is nondecreasing in the score.

    Attributes
    ----------
    confidence_level : float
        1 - alpha.
    steps : BandSteps
        The limits, or where the assumption is refuted.
    assumptions : tuple of str
        What must be true.
    of_groups, of_weights : str
        The texts about groups and about weights.
    read : tuple of str
        What was read from a file, and not recomputed from the rows.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_refuted", "n_rows")

    confidence_level: float
    steps: BandSteps
    assumptions: tuple[str, ...] = field()
    of_groups: str = ""
    of_weights: str = ""
    read: tuple[str, ...] = ()

    @property
    def is_refuted(self) -> bool:
        """Whether the rate is shown to decrease somewhere, so that no band holds."""
        return self.steps.refutation is not None

    @property
    def n_rows(self) -> int:
        """Number of rows behind the band."""
        return self.steps.n_rows

    @property
    def verdict(self) -> Verdict:
        """Whether a band holds, or the rate is shown to decrease somewhere."""
        return "problem" if self.is_refuted else "ok"

    @property
    def sentence(self) -> str:
        """What is guaranteed, or where the rate falls."""
        sure = f"{percent(self.confidence_level)} confidence, {rows(self.n_rows)}"
        if self.is_refuted:
            return f"The rate falls somewhere as the score rises: {self.steps.refutation} ({sure})."
        of = " in the weighted population" if self.of_weights else ""
        return (
            f"The true rate at every score{of} lies in its interval ({sure}, all scores together, if"
            " the rate does not fall as the score rises)."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """How groups and weights count, and what was read from a file."""
        texts = (self.of_groups, self.of_weights, said_of_file(self.read))
        return tuple(text.strip() for text in texts if text)

    def pictures(self) -> tuple[Picture, ...]:
        """The limits at every score."""
        columns = self.tables()[0].columns
        at, low, high = (columns[name].tolist() for name in ("score", "lower", "upper"))
        drawn = Drawn("true rate", at, low, low, high, kind="band")
        text = "The limits on the true rate at every score."
        return (
            Picture("Rate at every score", text, "score", "true rate", (drawn,), y_unit="share"),
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The limits from each score at which one changes."""
        knots = np.union1d(self.steps.lower_knots, self.steps.upper_knots)
        if self.is_refuted:
            knots = knots[:0]
        lower, upper = self.steps.at(knots)
        return (ResultTable("steps", {"score": knots, "lower": lower, "upper": upper}, shown=()),)
