"""What a comparison of calibrators returns: the table, proved differences, and remarks."""

import math
from dataclasses import dataclass

import numpy as np

from calibrant._optional import pandas
from calibrant._typing import FloatArray, Frame, IntArray
from calibrant.assess.compare_models.losses import number_or_none
from calibrant.assess.compare_models.model_comparison import PairedDifference
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.text.numbers import counted, percent, rows, upper
from calibrant.text.sentences import Setting, Text, render

COLUMNS = ("log_loss", "brier", "ece", "auc", "epsilon", "state_bytes", "fit_seconds", "predict_seconds")
_HEADER = ("log loss", "Brier", "ECE", "AUC", "guaranteed", "state", "fit", "predict")
_INFINITE = "infinite: the log loss is infinite because a prediction of exactly 0 or 1 was wrong"


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Calibrators side by side. Every array has one entry per method.

    Attributes
    ----------
    methods : tuple of str
        Names. "as they are" means the scores without a calibrator; it is there if they are probabilities.
    log_loss, brier, ece, auc : float arrays
        On rows that the calibrator was not fitted on, over all folds. Lower is better, except for AUC.
    epsilon : float array
        Guaranteed largest error, in all regions at once, of the calibrator fitted on all rows; NaN if nothing is
        guaranteed. This column is guaranteed; the others are measurements.
    guarantee : tuple of Guarantee, NoGuarantee or None
        The guarantee of the calibrator fitted on all rows, or the reason why nothing is guaranteed.
    state_bytes : int array
        Size of the fitted state as JSON.
    fit_seconds, predict_seconds : float arrays
        Wall-clock time to fit on all rows, and to predict them.
    n_rows : int
        Rows with labels.
    n_folds : int
        Folds.
    simultaneous : bool
        Whether all guarantees hold at once, so that choosing one by its epsilon is covered.
    differences : tuple of PairedDifference
        The Brier score and the clipped log loss of each other method minus that of the method with the lowest Brier
        score, with limits that hold at once. Empty where folds were given, or nothing bounds the size of groups or the
        weights: then there are no limits.
    difference_level : float
        Confidence that the limits of all differences hold.
    seed : int or None
        Seed of the folds, and of the order of bets.
    """

    methods: tuple[str, ...]
    log_loss: FloatArray
    brier: FloatArray
    ece: FloatArray
    auc: FloatArray
    epsilon: FloatArray
    guarantee: tuple[Guarantee | NoGuarantee | None, ...]
    state_bytes: IntArray
    fit_seconds: FloatArray
    predict_seconds: FloatArray
    n_rows: int
    n_folds: int
    simultaneous: bool
    differences: tuple[PairedDifference, ...] = ()
    difference_level: float = 0.95
    seed: int | None = None

    def to_frame(self) -> Frame:
        """Return the comparison as a pandas frame, one row per method."""
        index = pandas().Index(self.methods, name="method")
        return pandas().DataFrame({name: getattr(self, name) for name in COLUMNS}, index=index)

    def __str__(self) -> str:
        width = max(len("method"), *(len(method) for method in self.methods))
        lines: list[tuple[str, ...]] = [("method", *_HEADER)]
        for row, method in enumerate(self.methods):
            epsilon = self.epsilon[row]
            measured = (number_or_none(getattr(self, name)[row]) for name in ("log_loss", "brier", "ece", "auc"))
            guaranteed = "none" if math.isnan(epsilon) else upper(epsilon)
            times = (_duration(self.fit_seconds[row]), _duration(self.predict_seconds[row]))
            lines.append((method, *measured, guaranteed, f"{self.state_bytes[row]:,} B", *times))
        table = [f"{name:<{width}} " + " ".join(f"{cell:>10}" for cell in cells) for name, *cells in lines]
        size = f"{rows(self.n_rows)}, {counted(self.n_folds, 'fold')}"
        size += "" if self.seed is None else f", seed {self.seed}"
        note = f"{size}; only the column 'guaranteed' is guaranteed, the others are measured"
        return "\n".join([*table, *self.difference_lines, note, *map(render, self.remarks)])

    @property
    def difference_lines(self) -> list[str]:
        """Which differences from the best method are proved, as text."""
        if not self.differences:
            return []
        best, level = self.differences[0].second, percent(self.difference_level)
        proved = [f"  {found}" for found in self.differences if found.better is not None]
        if not proved:
            return [f"no loss of another method is proved to differ from that of {best!r} ({level} confidence)"]
        return [f"proved differences, {level} confidence for all at once:", *proved]

    @property
    def remarks(self) -> tuple[Text, ...]:
        """What the guarantees mean for someone who chooses by them, and what an infinite loss means."""
        by_itself: Text = (
            "each guarantee holds on its own: if you choose by them, fit the chosen method on other rows, or use ",
            Setting("simultaneous", True),
        )
        chosen: Text = "all guarantees hold at once: you may choose by them" if self.simultaneous else by_itself
        return (chosen, _INFINITE) if np.isinf(self.log_loss).any() else (chosen,)


def _duration(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms" if seconds < 1.0 else f"{seconds:.2f} s"
