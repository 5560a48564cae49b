"""Does the guarantee still hold? Bets against the limits of each region."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from calibrant._typing import ArrayLike, CodeArray, FloatArray, IndexArray
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.limits.interval import Interval
from calibrant.limits.sequences.centred import CentredBetaBinomial
from calibrant.monitor.change import Change, Moment, MonitorResult
from calibrant.monitor.drift_words import AT_MATURITY
from calibrant.monitor.evidence import EvidenceMonitor
from calibrant.monitor.martingale import RestartedBets, log_sum, running_mean_limits, start_weight
from calibrant.monitor.times import Age, known_labels, maturity_days, shown_time
from calibrant.monitor.watched import Fitted, Watched, counts_of, guaranteed_regions
from calibrant.params.arrays import check_same_length
from calibrant.params.declared_state import Resumes
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import Number
from calibrant.params.state_kinds import Maybe, Nested, Numbers, Tabled
from calibrant.text.numbers import counted, percent

_SIZES = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
_FEW = 0.9  # of the largest bet that cannot lose everything
_LEAST = 1e-9
_ASSUMED = (
    "given earlier labels, a row in a bin is positive with a probability within the bin's limits"
)
_ASSUMED_OF_CURVE = (
    "given earlier labels, the expected error of the prediction for the next row in a bin is within"
    " the bin's limits"
)
_UNKNOWN = "bets on rates that are too low count unknown labels as positive"


def _stakes(value: FloatArray, errors: Interval, least: FloatArray, most: FloatArray) -> FloatArray:
    """The stake for each region, direction (up, down) and size.

    The bets are that the mean of Z = Y - h is outside its limits. The prediction h lies between
    `least` and `most`, which for bins are both the value.
    """
    growth = np.expm1(_SIZES)
    high = np.clip(value + errors.upper, 0.0, 1.0)[:, None]
    low = np.clip(value + errors.lower, 0.0, 1.0)[:, None]
    most_up = _FEW / np.maximum(errors.upper + most, _LEAST)
    most_down = _FEW / np.maximum(1.0 - least - errors.lower, _LEAST)
    up = np.minimum(growth / (1.0 + high * growth), most_up[:, None])
    down = np.minimum(growth / (1.0 + (1.0 - low) * growth), most_down[:, None])
    return np.stack([up, down], axis=1)


class GuaranteeMonitor(EvidenceMonitor):
    """Watch whether a calibrator's guarantee still holds.

    Guarantee: while the guarantee holds, the probability that an alarm is *ever* raised is at most
    1 - confidence_level. It holds while, given earlier labels, the rate in every region (for a
    curve, the average error of its predictions) lies within its limits. The rates may move within
    the limits. If they have not changed since calibration, the probability of an alarm is at most 1 -
    confidence_level plus the probability that the guarantee itself fails.

    `DriftMonitor` finds smaller changes; this one raises no alarm for changes that the guarantee
    covers.

    Parameters
    ----------
    calibrator : ScoreCalibrator or Model
        A fitted calibrator with a guarantee, or the content of its model file.
    confidence_level : float, default=0.95
        Probability that no false alarm is ever raised.
    maturity : float or timedelta, default=None
        The age, in days, at which a row is counted, with the label known by then. Bets that a rate
        is too high count unknown labels as negative, and bets that it is too low count them as
        positive.

    Notes
    -----
    For each region, direction and d = 0.05, 0.1, ..., 1.6: M <- (M + w_t) F with F = exp(d s - n
    ln(1 + U (e^d - 1))) for a batch of n rows, s of them positive, against the upper limit U;
    mirrored against the lower one. Given the past, each row's factor has expectation at most 1
    while the rate is at most U. For a curve, F is the product of 1 + lam (Y - h - upper), with lam
    at most 0.9 / (upper - lo), where lo is the smallest possible Y - h. Half of the weight is on
    single regions, half on products over all regions. With w_0 = 1/2 and w_t = 1 / (2 t (t + 1)),
    the weighted sum is a supermartingale that starts at 1.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BinningCalibrator, GuaranteeMonitor
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> calibrator = BinningCalibrator(n_bins=10).fit(scores, rng.uniform(size=10_000) < scores)
    >>> monitor = GuaranteeMonitor(calibrator)
    >>> later = rng.uniform(size=3000)
    >>> monitor.update(later, rng.uniform(size=3000) < later).alarm
    False
    >>> monitor.update(later, rng.uniform(size=3000) < later**1.5).alarm
    True
    """

    _schema: ClassVar[str] = "calibrant.guarantee-monitor/1"
    _entries: ClassVar[EntryTable] = {
        "calibrator": Entry(Nested(ScoreCalibrator), makes=True),
        "maturity": Entry(Maybe(Number()), makes=True),
        "bets": Entry(Resumes("_bets"), of="_bets"),
        "sums": Entry(Tabled(Numbers(size="_bets.weights", low=0.0), n_rows=3), of="_sums"),
    }

    def __init__(
        self, calibrator: Fitted, *, confidence_level: float = 0.95, maturity: Age = None
    ) -> None:
        found = guaranteed_regions(calibrator, ", or DriftMonitor, which needs no guarantee")
        self._begin(confidence_level)
        self.maturity = maturity_days(maturity)
        self.calibrator = found
        self.watched = Watched.by(found)
        self.partition = self.watched.partition
        guarantee = found.guarantee_
        value = guarantee.value
        ends = found.value_ranges()
        self._is_curve = ends is not None and guarantee.errors is not None
        if ends is None or guarantee.errors is None:
            self._errors = Interval(guarantee.lower - value, guarantee.upper - value)
            ends = (value, value)
        else:
            self._errors = guarantee.errors
        self._stakes = _stakes(value, self._errors, *ends)
        size = self.watched.n_regions
        n_bets = 2 * _SIZES.size
        of_regions = np.full(size * n_bets, 0.5 / (size * n_bets))
        of_all = np.full(n_bets, 0.5 / n_bets)
        weights = np.concatenate([of_regions, of_all])
        self._bets = RestartedBets(weights)
        self._sums = np.zeros((3, weights.size))  # since each start: rows, hits, predicted hits

    @property
    def _shape(self) -> tuple[int, int, int]:
        return (self.watched.n_regions + 1, 2, _SIZES.size)

    def update(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        *,
        segments: ArrayLike | None = None,
        at: ArrayLike | None = None,
    ) -> Self:
        """Add a batch of scores and labels; the parameters are those of `DriftMonitor.update`."""
        above, unknown = known_labels(y, self.watched.classes, self.maturity)
        prepared = self.watched.prepared(scores, segments)
        check_same_length(prepared, above)
        regions = self.watched.partition.membership(prepared)
        below = np.where(unknown, 1, above).astype(np.uint8)
        predicted = self.calibrator.guarantee_.value[np.maximum(regions, 0)]
        if self._is_curve:
            named = {} if segments is None else {"segments": segments}
            predicted = np.asarray(self.calibrator.predict(scores, **named), dtype=np.float64)
        factors = self._log_factors(regions, above, below, predicted)
        rows, hits = counts_of(regions, above, self.watched.n_regions)
        inside = regions >= 0
        expected = np.bincount(regions[inside], predicted[inside], minlength=rows.size)
        time = None if at is None else shown_time(at, len(above))
        with self._lock:
            self._starts.append(self._moment(self._bets.n_batches))
            self._bets.update(factors.ravel())
            self._add(np.stack([rows, hits, expected]))
            self.n_rows += int(rows.sum())
            self._at = time or self._at
            # only starts that bets still refer to
            needed = set(self._bets.since.tolist())
            self._starts = [moment for moment in self._starts if moment.batch in needed]
            self._look(self._bets.n_batches)
        return self

    def _log_factors(
        self, regions: IndexArray, above: CodeArray, below: CodeArray, predicted: FloatArray
    ) -> FloatArray:
        """The logarithm of each factor: per region, and for all regions in the last row."""
        found = np.zeros(self._shape)
        size = self.watched.n_regions
        inside = np.flatnonzero(regions >= 0)
        where = regions[inside]
        over = above[inside] - predicted[inside] - self._errors.upper[where]
        under = self._errors.lower[where] - below[inside] + predicted[inside]
        for number in range(_SIZES.size):
            for direction, error in enumerate((over, under)):
                gains = np.log1p(self._stakes[where, direction, number] * error)
                found[:size, direction, number] = np.bincount(where, gains, minlength=size)
        found[size] = found[:size].sum(axis=0)
        return found

    def _add(self, counts: FloatArray) -> None:
        """Add a batch to the sums since each start; sums restart where a start does."""
        anew = self._bets.since == self._bets.n_batches - 1
        each = np.concatenate([counts, counts.sum(axis=1, keepdims=True)], axis=1)
        repeated = np.repeat(each, 2 * _SIZES.size, axis=1)
        self._sums = np.where(anew, 0.0, self._sums) + repeated

    def _log_evidence(self) -> float:
        return self._bets.log_evidence()

    def _since(self) -> Moment | None:
        """Where the bet with the largest share of the evidence began."""
        likely = np.argmax(self._bets.logs + np.log(self._bets.weights))
        batch = int(self._bets.since[likely])
        return next((moment for moment in self._starts if moment.batch == batch), None)

    def _changes(self) -> tuple[Change, ...]:
        parts = (self._bets.logs + np.log(self._bets.weights)).reshape(self._shape[0], -1)
        evidence = np.array([log_sum(row) for row in parts])
        best = parts.argmax(axis=1)
        regions = self.watched.n_regions
        names = (*self.watched.partition.describe(), "all regions")
        order = [regions, *np.argsort(-evidence[:-1], kind="stable").tolist()]
        alpha = (1.0 - self.confidence_level) / (regions + 1)
        found = []
        for region in order:
            bet = region * parts.shape[1] + int(best[region])
            rows, hits, predicted = self._sums[:, bet].tolist()
            share = alpha * float(start_weight(int(self._bets.since[bet])))
            low, high = self._rate_limits(int(hits), int(rows), share, one_rate=region < regions)
            total = max(rows, 1.0)
            value = predicted / total
            number = None if region == regions else region
            found.append(
                Change(
                    number, names[region], int(rows), value, hits / total, low - value, high - value
                )
            )
        clear = [
            change
            for change in found[1:]
            if not (change.lower or 0.0) <= 0.0 <= (change.upper or 0.0)
        ]
        return (found[0], *(clear or found[1:2]))

    def _rate_limits(
        self, hits: int, rows: int, alpha: float, *, one_rate: bool
    ) -> tuple[float, float]:
        """Limits on the rate since a start; narrower if all rows since then have one rate."""
        if self._is_curve or not one_rate:
            return running_mean_limits(hits, rows, alpha)
        counts = (np.array([rows]), np.array([hits]))
        found = CentredBetaBinomial.limits_of(*counts, -float(np.log(alpha)))
        return float(found.lower[0]), float(found.upper[0])

    def summary(self) -> MonitorResult:
        """What was found so far, as data and in words."""
        guarantee = self.calibrator.guarantee_
        failure = percent(1.0 - guarantee.confidence_level)
        chance = percent(2.0 - self.confidence_level - guarantee.confidence_level)
        with self._lock:
            return self._result(
                question="guarantee",
                calm="No sign that the guarantee is broken",
                finding="The guarantee does not hold",
                advice=(
                    f"Recalibrate on about {counted(guarantee.n_rows, 'row')}, the number"
                    " used for calibration."
                ),
                assumptions=self._assumed,
                notes=(
                    (
                        f"The guarantee itself may fail, with probability at most {failure}. So if"
                        " all rates are the same as in calibration, the probability of an alarm is"
                        f" at most {chance}."
                    ),
                ),
            )

    @property
    def _assumed(self) -> tuple[str, ...]:
        assumed = _ASSUMED_OF_CURVE if self._is_curve else _ASSUMED
        return (assumed,) if self.maturity is None else (assumed, AT_MATURITY, _UNKNOWN)
