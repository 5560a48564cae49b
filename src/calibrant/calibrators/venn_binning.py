"""Venn prediction with bins: two probabilities per bin, one for each label the next row may have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._typing import ArrayLike, FloatArray
from calibrant.calibrators.binning import BinningCalibrator
from calibrant.calibrators.regions.parameters import BinParameters, LabelParameters, Stated
from calibrant.calibrators.regions.region_calibrator import PROVED, RegionCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.calibrators.venn_abers import LOSS, merged
from calibrant.cells.bins import Bins
from calibrant.cells.tally import Tally
from calibrant.params.frames import predicts
from calibrant.params.kind import EntryTable
from calibrant.params.labels import Classes
from calibrant.params.rules import RuleTable
from calibrant.sample.reader import check_no_weights, one_row_each
from calibrant.sample.sample import Sample

_VENN = (
    "of p0 and p1, the one that belongs to the true label is perfectly calibrated, E[Y | p_Y] ="
    " p_Y, for every distribution, if all rows are independent draws from it; which one that is"
    " cannot be known beforehand"
)


@dataclass(eq=False, repr=False, kw_only=True)
class VennBinningCalibrator(LabelParameters, BinParameters, RegionCalibrator):
    """The Venn predictor whose taxonomy is bins of the score: p_y = (k + y) / (N + 1) in a bin of N
    rows, k positive.

    Claimed, for every distribution:

    - of p0 and p1, the one that belongs to the true label is perfectly calibrated, E[Y | p_Y] =
      p_Y. Which one that is cannot be known beforehand;
    - the guarantee of `BinningCalibrator`. A bin taxonomy is histogram binning, so the bin's exact
      interval holds here too, with probability at least `confidence_level`, in all bins
      simultaneously; epsilon is measured from the value predicted here. `predict_interval` is that
      interval, not [p0, p1], which is not a confidence interval.

    Assumed: calibration and future rows are independent draws from one distribution, and the model
    was not trained on the calibration rows. If bins are cut from the counted rows, they leave out
    edge values that were seen once, because the row at an edge was selected by its score. The
    guarantee says nothing about a future score that equals one of these edges; for it, p0 = 0 and
    p1 = 1.

    Parameters
    ----------
    n_bins, confidence_level, interval, partition, pilot, random_state, n_jobs
        As in `BinningCalibrator`.
    loss : {"log", "brier"}, default="log"
        How `predict` merges p0 and p1. For log loss the result is Laplace's rule of succession, (k
        + 1) / (N + 2).
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.

    Attributes
    ----------
    guarantee_ : Guarantee
        What is guaranteed, in numbers and in words.
    partition_, tally_
        The regions, and the counts of rows and labels in them.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    Given how many scores lie below, at and above each edge, the labels of the N rows in a region
    are independent with one rate, and so is the label of a future row there. So the N + 1 labels
    are exchangeable, and given their sum k + Y the future one is 1 with probability (k + Y) / (N +
    1) = p_Y. At an edge value that was seen once, p_Y = Y.

    References
    ----------
    Vovk, Shafer and Nouretdinov (2004), "Self-calibrating probability forecasting". Gupta,
    Podkopaev and Ramdas (2020), appendix "Venn prediction".

    Examples
    --------
    >>> from calibrant.calibrators import VennBinningCalibrator
    >>> scores = [0.1] * 8 + [0.9] * 8
    >>> y = [0] * 7 + [1] + [1] * 6 + [0] * 2
    >>> calibrator = VennBinningCalibrator(2, partition="uniform").fit(scores, y)
    >>> calibrator.predict_multiprobability([0.1, 0.9]).round(3)
    array([[0.111, 0.222],
           [0.667, 0.778]])
    >>> calibrator.predict([0.1, 0.9])
    array([0.2, 0.7])
    """

    _rules: ClassVar[RuleTable] = {"loss": LOSS}
    _learned: ClassVar[EntryTable] = PROVED

    loss: str = "log"

    def _binning(self) -> BinningCalibrator:
        return BinningCalibrator(
            **{k: v for k, v in self.get_params(deep=False).items() if k != "loss"}
        )

    def fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        segments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        score_range: tuple[float, float] | None = None,
    ) -> Self:
        """Cut the bins, count the labels, and derive the guarantee.

        Arguments as in `BinningCalibrator.fit`.

        Importance weights are not supported: rows with different weights are not exchangeable,
        which Venn prediction requires. With `groups`, one row from each group is drawn at random
        and the others are not used: the guarantee is then about a row drawn at random from a new
        group.
        """
        self._check_parameters()
        check_no_weights(scores, "rows with different weights are not exchangeable")
        binned = self._binning()
        stated = Stated(score_range=score_range)
        beside = {
            "segments": segments,
            "sample_weight": sample_weight,
            "groups": groups,
            "classes": classes,
        }
        data = binned._read(scores, y, **beside)
        with reported_by_caller():
            binned._fit_rows(one_row_each(data, self.random_state), stated)
        self._set_bins(binned, Classes(binned.classes_, binned.positive_index_))
        self.score_range_seen_ = binned.score_range_seen_
        self._warn_if_weak()
        return self

    def _set_bins(self, binned: BinningCalibrator, classes: Classes) -> None:
        self.proof_ = binned.proof_
        value = merged(*_multiprobability(binned.tally_), self.loss)
        notes = (*binned.guarantee_.statement.notes, _VENN)
        guarantee = replace(binned.guarantee_, value=value).with_facts(notes=notes)
        self.stated_ = binned.stated_
        self._set_fitted(binned.partition_, binned.tally_, guarantee, classes, binned._facts)

    @predicts
    def predict_multiprobability(
        self, scores: ArrayLike, *, segments: ArrayLike | None = None
    ) -> FloatArray:
        """Return p0 and p1, shape (n, 2): the probability of the positive class if the row's own
        label is 0, or 1.

        They are not limits of a confidence interval; `predict_interval` gives those. They are 0 and
        1 if the score equals an edge that was seen once. A tied edge that is part of a bin has its
        own p0 and p1.
        """
        check_is_fitted(self)
        bins = self.partition_.as_bins()
        region = bins.count_regions[:, None]
        table = np.where(
            region >= 0, np.column_stack(_multiprobability(_by_cell(self.tally_, bins))), [0.0, 1.0]
        )
        return self._entries(bins.cells, scores, table, segments)

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        binned = self._binning()
        binned._take(learned, classes)
        self._set_bins(binned, classes)


def _by_cell(tally: Tally, bins: Bins) -> Tally:
    """The counts of each cell: a tied edge was selected, so its labels are kept apart from those of
    its bin.
    """
    counts, positives = (column[bins.count_regions] for column in (tally.counts, tally.positives))
    if tally.absorbed is not None:
        edge = bins.absorbed_cells
        for column, at_edge in (
            (counts, tally.absorbed.counts),
            (positives, tally.absorbed.positives),
        ):
            column[edge], column[edge + 1] = at_edge, column[edge + 1] - at_edge
    return Tally(counts, positives)


def _multiprobability(tally: Tally) -> tuple[FloatArray, FloatArray]:
    """p0 and p1 of each region."""
    return tally.positives / (tally.counts + 1), (tally.positives + 1) / (tally.counts + 1)
