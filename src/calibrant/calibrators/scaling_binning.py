"""Any calibration map, followed by bins with a guarantee: the paper's advice, as one calibrator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike
from calibrant.calibrators.binning import BinningCalibrator
from calibrant.calibrators.platt import PlattCalibrator
from calibrant.calibrators.regions.parameters import (
    BinParameters,
    DataAssumptions,
    LabelParameters,
    ValueParameters,
)
from calibrant.calibrators.regions.region_calibrator import PROVED, RegionCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.calibrators.regions.weighted_rows import checked_bound
from calibrant.calibrators.score_calibrator import ScoreCalibrator, fitted_copy
from calibrant.calibrators.table import Steps, Table, steps_everywhere
from calibrant.errors import InvalidValueError, no_table
from calibrant.gpu.entries import entries_of
from calibrant.params.arrays import as_scores
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import CODED, Classes
from calibrant.params.rules import FRACTION_OR_COUNT, Instance, Optional, RuleTable
from calibrant.params.state_kinds import Nested
from calibrant.params.tensors import in_own_library
from calibrant.sample.facts import Reach, RowFacts
from calibrant.sample.reader import ONE_EACH, refuse
from calibrant.sample.sample import Sample
from calibrant.text.numbers import counted
from calibrant.text.sentences import Setting

_ASSUMED = "the base map was fitted on a random part of the rows, which counts in no bin"


@dataclass(eq=False, repr=False)
class ScalingBinningCalibrator(LabelParameters, ValueParameters, BinParameters, RegionCalibrator):
    """Fit a base map on one random part of the rows, and count guaranteed bins of its output on the
    other.

    Guarantee, for every distribution and every base map: the guarantee of `BinningCalibrator`. With
    probability at least `confidence_level` over the counted rows, in every bin simultaneously, the
    true rate of the positive class lies in the bin's interval. This holds because the base map
    never sees the counted rows: given the first part, it is a fixed function of the score, and bins
    of a fixed function are what `BinningCalibrator` is about. Assumptions: calibration and future
    rows are independent draws from one distribution, and the model behind the scores was not
    trained on them.

    Parameters
    ----------
    base : calibrator of scores, default=None
        The map; None means `PlattCalibrator()`, "Platt-binning". With `TemperatureCalibrator()` or
        `BetaCalibrator()`, scores must be probabilities. `IsotonicCalibrator()` is the IROvA-TS
        idea for two classes: pooling uses only the order of scores, which a temperature does not
        change.
    n_bins : int or "auto", default="auto"
        Number of bins; "auto" is the cube root of the number of counted rows, rounded down.
    pilot : float or int, default=0.5
        Fraction or number of rows, drawn at random, that are used only to fit the base map.
    partition : {"quantile", "uniform"} or Partition, default="quantile"
        Bins of the base map's output: of equal mass, of equal width over (0, 1), or fixed
        beforehand.
    confidence_level, interval, value
        As in `BinningCalibrator`.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.
    random_state : int, Generator, RandomState or None, default=0
        Seed for drawing the pilot rows. None draws afresh each time.
    n_jobs : int or None, default=None
        Threads for very large inputs; results never depend on it.

    Attributes
    ----------
    base_ : calibrator of scores
        The fitted map.
    guarantee_ : Guarantee
        What is guaranteed, in numbers and in words.
    partition_, tally_
        The regions of the base map's output, and the counts of rows and labels in them.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    The value of a bin comes from its own labels (see `value`), not from the mean of the base map
    over it as in Kumar, Liang and Ma (2019). A strictly increasing base map does not change the
    order of scores, so bins of equal mass are then those of the score itself. The base map
    determines where `partition="uniform"` puts its bins, and which scores are kept apart
    (isotonic). But a strictly increasing one with quantile bins gives the same result as
    `BinningCalibrator` on half of the rows.

    References
    ----------
    Gupta, Podkopaev and Ramdas (2020), "Distribution-free binary classification: prediction sets,
    confidence intervals and calibration". Kumar, Liang and Ma (2019), "Verified uncertainty
    calibration". Zhang, Kailkhura and Han (2020), "Mix-n-Match: ensemble and compositional methods
    for uncertainty calibration in deep learning".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import ScalingBinningCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=20_000)
    >>> y = rng.uniform(size=20_000) < 1 / (1 + np.exp(1 - 2 * scores))
    >>> calibrator = ScalingBinningCalibrator(n_bins=10, random_state=0).fit(scores, y)
    >>> calibrator.guarantee_.is_proved, round(calibrator.guarantee_.epsilon, 3)
    (True, 0.042)
    """

    bins_of_score = False

    _learned: ClassVar[EntryTable] = {
        "base": Entry(Nested(ScoreCalibrator), of="base_"),
        **PROVED,
    }

    _rules: ClassVar[RuleTable] = {
        "base": Optional(
            Instance(ScoreCalibrator, "a calibrator of scores, such as PlattCalibrator()")
        ),
        "pilot": FRACTION_OR_COUNT,
    }

    base: ScoreCalibrator | None = None
    _: KW_ONLY
    n_bins: int | str = "auto"
    pilot: float = 0.5

    def fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        importance_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        weight_bound: float | None = None,
        max_group_size: int | None = None,
        group_target: str | None = None,
    ) -> Self:
        """Fit the base map on a random part of the rows, and cut and count bins of its output on
        the others.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or Sample
            Scores of rows that the model was not trained on; or data with scores and labels, see
            `calibrant.scored`, whose rows are read into memory.
        y : array-like of shape (n,)
            Labels of two classes.
        sample_weight : None
            Must be None, because it is not defined which copies of a row fit the map and which are
            counted.
        importance_weight : array-like of shape (n,), optional
            As in `BinningCalibrator.fit`, for the map and for the bins; give `weight_bound` too.
        groups : array-like of shape (n,), optional
            As in `BinningCalibrator.fit`. `pilot` then draws whole groups.
        classes, weight_bound, max_group_size, group_target
            As in `BinningCalibrator.fit`.

        Returns
        -------
        self
        """
        self._check_parameters()
        if sample_weight is not None:
            rule = ("be None with ", Setting("pilot"))
            raise InvalidValueError(
                "sample_weight", rule, got="weights", advice="repeat rows instead"
            )
        refuse(scores, "one curve is fitted to all rows", "segment", advice=ONE_EACH)
        assumptions = DataAssumptions.about(
            scores,
            weight_bound=weight_bound,
            max_group_size=max_group_size,
            group_target=group_target,
        )
        columns = {"classes": classes, "importance_weight": importance_weight, "groups": groups}
        rows = self._read(scores, y, **columns).collect()
        fits = rows.chosen(rows.draw(self.pilot, self.random_state))
        if not 0 < np.count_nonzero(fits) < len(rows):
            got = (
                f"{self.pilot!r} of {counted(len(rows), 'row')}, which draws"
                f" {np.count_nonzero(fits):,}"
            )
            raise InvalidValueError(
                "pilot", "leave some rows to fit the base map and some to count", got=got
            )
        to_fit = rows.take(fits)
        to_count = rows.take(~fits)
        if rows.weights is not None:
            checked_bound(rows.weights, assumptions.weight_bound)
        base = fitted_copy(self.base or PlattCalibrator(), to_fit)
        mapped = replace(to_count, scores=as_scores(base.predict(to_count.scores)), known=CODED)
        with reported_by_caller():
            binned = self._binning()._fit_rows(mapped, assumptions)
        facts = replace(binned._facts, drawn_by=None, skipped=rows.skipped)
        self._set_parts(base, binned, rows.known, facts)
        self.score_range_seen_ = Reach.of(rows.scores).seen
        self._warn_if_weak()
        return self

    def _binning(self) -> BinningCalibrator:
        """Bins of the base map's output, with classes coded as 0 and 1."""
        left_out = ("base", "pilot", "pos_label", "random_state")
        own = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in left_out
        }
        return BinningCalibrator(**own)

    def _set_parts(
        self, base: ScoreCalibrator, binned: BinningCalibrator, classes: Classes, facts: RowFacts
    ) -> None:
        guarantee = replace(binned.guarantee_, positive_label=classes.positive).with_facts(
            assumed=(_ASSUMED,)
        )
        self.base_ = base
        self.proof_ = binned.proof_
        self.assumptions_ = binned.assumptions_
        self._set_fitted(binned.partition_, binned.tally_, guarantee, classes, facts)

    @in_own_library
    def _look_up(
        self, scores: ArrayLike, table: NDArray[Any], segments: ArrayLike | None
    ) -> NDArray[Any]:
        checked = as_scores(scores, positive_column=self.positive_index_)
        self._warn_of_other_scale(checked)
        mapped = self.base_.predict(checked)
        return np.asarray(
            entries_of(self.partition_, table, mapped, segments, threads=self._threads)
        )

    def _own_table(self, coverage: float) -> Table:
        return self._region_table((self._composed_steps(),), coverage)

    def _composed_steps(self) -> Steps:
        """Bins of a base map that is itself a step function: steps of the score."""
        base = self.base_._step_function()
        bins = self.partition_.bins_by_segment.get(None)
        if base is None or bins is None:
            # engines round computed values differently, so they would fall into other bins
            raise no_table(f"bins of {type(self.base_).__name__}'s values")
        cuts, values = base
        outside = (values < bins.low) | (values > bins.high)
        inside = np.searchsorted(bins.cuts, values, side="right")
        return steps_everywhere(cuts, np.where(outside, -1, inside))

    def _needs_rows(self) -> tuple[str, ...]:
        return ("counts",) if self.proof_.weighted is None else ("counts", "limits")

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        binned = self._binning()
        binned._take(learned, CODED)
        if binned.partition_.has_segments:
            got = type(binned.partition_).__name__
            raise InvalidValueError("partition", "be bins of one score", got=got)
        self._set_parts(learned["base"], binned, classes, learned["facts"])
