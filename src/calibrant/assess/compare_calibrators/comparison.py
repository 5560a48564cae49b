"""The result of a comparison of calibrators: the table, proved differences, and notes."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.assess.compare_models.model_comparison import PairedDifference, differences_table
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.text.numbers import counted, nearest, percent, rows
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import Setting, Text, words

COLUMNS = (
    "log_loss",
    "brier",
    "ece",
    "auc",
    "epsilon",
    "state_bytes",
    "fit_seconds",
    "predict_seconds",
)
_INFINITE = "infinity: the log loss is infinite because a prediction of exactly 0 or 1 was wrong"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Result):
    """A comparison of calibrators. Every array has one entry per method.

    Attributes
    ----------
    methods : tuple of str
        Names of the methods. "uncalibrated" means the scores without a calibrator; it is included
        if they are probabilities.
    log_loss, brier, ece, auc : float arrays
        Measures on rows that the calibrator was not fitted on, over all folds. Lower is better,
        except for AUC.
    epsilon : float array
        Guaranteed largest error, in all regions simultaneously, of the calibrator fitted on all
        rows; NaN if nothing is guaranteed. This column is guaranteed; the others are measurements.
    guarantee : tuple of Guarantee, NoGuarantee or None
        The guarantee of the calibrator fitted on all rows, or the reason why nothing is guaranteed.
    state_bytes : int array
        Size of the fitted state as JSON.
    fit_seconds, predict_seconds : float arrays
        Wall-clock time to fit on all rows, and to predict them.
    n_rows : int
        Number of rows with labels.
    n_folds : int
        Number of folds.
    simultaneous : bool
        Whether all guarantees hold simultaneously, so that choosing one by its epsilon is covered.
    differences : tuple of PairedDifference
        The Brier score and the clipped log loss of each other method minus that of the method with
        the lowest Brier score, with limits that hold simultaneously. Empty if folds were given, or
        if there is no bound on the size of groups or the weights: then there are no limits.
    difference_level : float
        Confidence that the limits on all differences hold.
    seed : int or None
        Seed for the folds and the order of bets.
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

    @property
    def best(self) -> str:
        """The method with the lowest Brier score on rows that it was not fitted on."""
        return self.methods[int(np.argmin(self.brier))]

    @property
    def sentence(self) -> str:
        """Which method had the best measurement, and whether that is proved."""
        size = f"{rows(self.n_rows)}, {counted(self.n_folds, 'fold')}"
        size += "" if self.seed is None else f", seed {self.seed}"
        score = nearest(float(np.min(self.brier)))
        methods = counted(len(self.methods), "method")
        measured = f"Of {methods}, {self.best!r} has the lowest Brier score, {score} ({size})"
        return f"{measured}; {self._on_differences()}."

    def _on_differences(self) -> str:
        """Whether differences from the best method are proved."""
        if not self.differences:
            return "the differences from the others are measured, not proved"
        level = percent(self.difference_level)
        others = {found.first for found in self.differences if found.better is not None}
        if not others:
            return f"no other method's loss is proved to differ from it at {level} confidence"
        verb = "is" if len(others) == 1 else "are"
        return (
            f"{counted(len(others), 'other')} {verb} proved to differ, with {level} confidence for"
            " all simultaneously"
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The methods side by side, and the differences from the best."""
        columns = {"method": self.methods, **{name: getattr(self, name) for name in COLUMNS}}
        columns["guarantee"] = [None if one is None else one.sentence for one in self.guarantee]
        shown = ("method", *COLUMNS[:-3])
        heads = {
            "epsilon": "guaranteed",
            "log_loss": "log loss",
            "brier": "Brier",
            "ece": "ECE",
            "auc": "AUC",
        }
        about = (
            "The column 'guaranteed' is proved: off by at most this much. The others are estimates."
        )
        found = differences_table(
            self.differences, "Limits that hold for all differences simultaneously."
        )
        if not any(one.better for one in self.differences):
            found = replace(found, shown=())
        return ResultTable("methods", columns, shown, heads, about), found

    @property
    def notes(self) -> tuple[str, ...]:
        """What the guarantees mean for someone who chooses by them, and what an infinite loss
        means.
        """
        return tuple(map(words, self._remarks()))

    def _remarks(self) -> tuple[Text, ...]:
        by_itself: Text = (
            (
                "each guarantee holds on its own: if you choose by them, fit the chosen method on"
                " other rows, or use "
            ),
            Setting("simultaneous", True),
        )
        chosen: Text = (
            "all guarantees hold simultaneously: you may choose by them"
            if self.simultaneous
            else by_itself
        )
        return (chosen, _INFINITE) if np.isinf(self.log_loss).any() else (chosen,)
