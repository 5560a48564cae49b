"""What all exports read: a fitted calibrator as cuts of the score, and what is predicted between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant._version import __version__
from calibrant.answers.outputs import OUTPUTS, names_by_output
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.calibrators.beta import BetaCalibrator
from calibrant.calibrators.curves.curve_calibrator import CurveCalibrator
from calibrant.calibrators.isotonic import IsotonicCalibrator
from calibrant.calibrators.piecewise import PiecewiseCalibrator
from calibrant.calibrators.platt import PlattCalibrator
from calibrant.calibrators.regions.region_calibrator import RegionCalibrator
from calibrant.calibrators.scaling_binning import ScalingBinningCalibrator
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.calibrators.temperature import TemperatureCalibrator
from calibrant.calibrators.venn_abers import VennAbersCalibrator, merged
from calibrant.cells.bins import OTHER, Rest
from calibrant.cells.partition import Partition
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.tripod import region_sets
from calibrant.params.rules import OPEN_UNIT
from calibrant.sample.sql.search import LARGEST
from calibrant.text.sentences import Setting, Text, joined, shown

Segment: TypeAlias = str | int | float | bool
Label: TypeAlias = str | int | float | bool | bytes
Exportable: TypeAlias = ScoreCalibrator | Threshold | MonotoneBand
Key = TypeVar("Key")

MOST_LOGIT = 700.0
"""Logits are cut off here, where exp does not overflow in any engine."""

_DEFAULT = ("calibrated", "lower", "upper", "set")
_MOST_INTEGER = 2**63
_BINNING = Setting("method", "binning", python="BinningCalibrator()")
_ADVICE: Text = ("export ", _BINNING, " instead, which predicts one value for each bin of the score")


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The scores of one segment: cuts, and the region of each step between them.

    Attributes
    ----------
    segment : str, int, float, bool, OTHER or None
        The segment, or `OTHER` for all that are not named, in the last steps; None without segments.
    low, high : float
        The smallest and the largest score that `predict` accepts, both finite.
    cuts : float array of shape (m,)
        Strictly increasing. A score belongs to step k where exactly k cuts are at most the score.
    regions : int array of shape (m + 1,)
        The region of each step; -1 where `predict` accepts no score.
    """

    segment: Segment | Rest | None
    low: float
    high: float
    cuts: FloatArray
    regions: IntArray

    def runs(self, key: Sequence[Key]) -> tuple[list[float], list[int]]:
        """Return the fewest cuts that separate regions of different `key`, and a region for each run between them."""
        keys = [key[region] if region >= 0 else None for region in self.regions.tolist()]
        changes = [place for place in range(1, len(keys)) if keys[place] != keys[place - 1]]
        return [float(self.cuts[place - 1]) for place in changes], [int(self.regions[place]) for place in (0, *changes)]


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """A curve that is straight in each region of the table, perhaps on the logit scale.

    In a region it is z = calibrated + slope * (score - start), or with `beta`, numbers a and b, the same for all
    regions, z = calibrated + a ln p - b ln(1 - p), where p is the score kept within `smallest` of 0 and 1. The
    prediction is z, or 1 / (1 + exp(-z)) where it is on the logit scale. Then z is cut off at +-700.

    Attributes
    ----------
    start, slope : float arrays of shape (n_regions,)
        Where each region begins, and the slope in it.
    logit : bool
        Whether the curve is straight on the logit scale.
    beta : (float, float) or None
        Factors of the logarithms, in place of start and slope.
    """

    start: FloatArray
    slope: FloatArray
    logit: bool = False
    beta: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ExportTable:
    """A fitted calibrator as plain numbers, which is all that an export needs.

    Attributes
    ----------
    steps : tuple of Steps
        One, or one for each segment.
    calibrated : float array of shape (n_regions,)
        What `predict` gives in each region.
    coverage : float
        Coverage of the sets.
    notes : tuple of str
        For a reader: which version wrote it, the partition's fingerprint, and the guarantee.
    classes : tuple
        The two labels, sorted.
    lower, upper : float arrays of shape (n_regions,), or None
        What `predict_interval` gives; None for a calibrator that has no intervals.
    sets : bool array of shape (n_regions, 2), or None
        What `predict_set` gives; the columns follow `classes`.
    lines : Lines or None
        Where predictions vary within a region: how. `calibrated` is then the value where the region begins, and
        `lower` and `upper` are added to the prediction and cut off at 0 and 1.
    numbers : int array of shape (n_regions,), or None
        The number of the calibrator's region that each region of this table is part of; None if they are the same.
    named : mapping of str to str, or None
        The outputs by default, with their names, where those of a calibrator would mislead.
    """

    steps: tuple[Steps, ...]
    calibrated: FloatArray
    coverage: float
    notes: tuple[str, str]
    classes: tuple[Label, ...] = ()
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    sets: BoolArray | None = None
    lines: Lines | None = None
    numbers: IntArray | None = None
    named: Mapping[str, str] | None = None

    @property
    def region_numbers(self) -> list[int]:
        """The number of the calibrator's region, for each region of the table."""
        return list(range(self.calibrated.size)) if self.numbers is None else [int(one) for one in self.numbers]

    @property
    def is_segmented(self) -> bool:
        """Whether a row needs a segment beside its score."""
        return self.steps[0].segment is not None

    @property
    def segments(self) -> list[Segment]:
        """The segments that are named."""
        return [steps.segment for steps in self.steps if isinstance(steps.segment, str | int | float)]

    @property
    def takes_others(self) -> bool:
        """Whether there are steps for segments that are not named."""
        return self.steps[-1].segment is OTHER

    @property
    def set_members(self) -> list[tuple[Label, ...]]:
        """The labels in the set of each region."""
        sets = [] if self.sets is None else self.sets.tolist()
        return [tuple(label for label, inside in zip(self.classes, row, strict=True) if inside) for row in sets]

    @property
    def set_names(self) -> list[str]:
        """The set of each region as text, such as '{0}' or '{0, 1}'."""
        return [f"{{{', '.join(map(str, members))}}}" for members in self.set_members]

    def values(self, output: str) -> FloatArray:
        """What "calibrated", "lower" or "upper" is in each region."""
        values = {"calibrated": self.calibrated, "lower": self.lower, "upper": self.upper}[output]
        return np.empty(0) if values is None else values

    def choose(self, outputs: Sequence[str] | Mapping[str, str] | None) -> dict[str, str]:
        """Return the chosen outputs, each with the name it gets."""
        available = self._available
        if outputs is None:
            return dict(self.named or {name: name for name in _DEFAULT if name in available})
        return names_by_output(outputs, available, has_limits=self.lower is not None)

    @property
    def _available(self) -> tuple[str, ...]:
        """The outputs that this table has."""
        if self.sets is not None:
            return OUTPUTS
        if self.lower is not None:
            return ("lower", "upper")
        if self.lines is not None:
            return ("calibrated",)
        return ("calibrated", "region")


def export_table(calibrator: Exportable, *, coverage: float = 0.95) -> ExportTable:
    """Return a fitted calibrator as cuts and columns, or raise with the reason why it cannot be exported.

    A calibrator can be exported if it predicts one of finitely many values, chosen by comparing the score with cuts.
    Comparisons do not round, so every engine finds the same value. A curve can be exported too: straight between
    knots, or one that needs exp and log, which engines round differently in the last bits.

    Parameters
    ----------
    calibrator : calibrator of scores, Threshold or MonotoneBand
        A fitted calibrator on bins of the score, with or without segments, or one that is a curve. Of a threshold the
        output is called selected: 1.0 for rows that are selected, 0.0 for those that are not, and nothing (NULL) for
        rows that are referred to a person. Of a band they are lower and upper, the limits at each score.
    coverage : float, default=0.95
        Coverage of the prediction sets.

    Examples
    --------
    >>> from calibrant import BinningCalibrator, Partition, Tally
    >>> bins = Partition.fixed_width(2)
    >>> tally = Tally.from_counts([1000, 1000], [100, 800], partition=bins)
    >>> table = export_table(BinningCalibrator.from_tally(bins, tally))
    >>> table.steps[0].cuts, table.calibrated, table.set_names
    (array([0.5]), array([0.1003996, 0.7997003]), ['{0, 1}', '{0, 1}'])
    """
    coverage = OPEN_UNIT.check("coverage", coverage)
    if isinstance(calibrator, Threshold):
        return _of_threshold(calibrator, coverage)
    if isinstance(calibrator, MonotoneBand):
        return _of_band(calibrator, coverage)
    if not isinstance(calibrator, ScoreCalibrator):
        rule = "be a fitted calibrator of scores, a Threshold or a MonotoneBand"
        advice = "export the calibrator_ of a classifier"
        raise InvalidTypeError("calibrator", rule, got=type(calibrator).__name__, advice=advice)
    check_is_fitted(calibrator)
    if isinstance(calibrator, PiecewiseCalibrator):
        return _of_pieces(calibrator, coverage)
    if isinstance(calibrator, ScalingBinningCalibrator):
        return _of_regions(calibrator, (_composed(calibrator),), coverage)
    if isinstance(calibrator, RegionCalibrator):
        return _of_regions(calibrator, _of_partition(calibrator.partition_), coverage)
    if isinstance(calibrator, VennAbersCalibrator):
        value = merged(calibrator.p0_, calibrator.p1_, calibrator.loss)
        everywhere = Steps(None, -LARGEST, LARGEST, calibrator.cuts_, np.arange(value.size))
        classes = tuple(calibrator.classes_.tolist())
        return ExportTable((everywhere,), value, coverage, _notes(calibrator), classes)
    if isinstance(calibrator, CurveCalibrator):
        return _of_curve(calibrator, coverage)
    rule = "predict one value for each bin of the score, or be a curve"
    raise InvalidTypeError("calibrator", rule, got=type(calibrator).__name__, advice=_ADVICE)


def _of_threshold(found: Threshold, coverage: float) -> ExportTable:
    """One or two cuts of the score for each segment: not selected, perhaps referred to a person, selected."""
    ends = found.ends
    if None not in ends:
        _check_segments(tuple(ends))
    steps = []
    for segment, (low, high) in cast("dict[Segment | None, tuple[float, float]]", ends).items():
        cuts = np.array([cut for cut in sorted({low, high}) if np.isfinite(cut)])
        middles = [-np.inf, *cuts.tolist()]  # the first score of each step
        regions = np.array([1 if first >= high else 0 if first < low else -1 for first in middles])
        steps.append(Steps(segment, -LARGEST, LARGEST, cuts, regions))
    written = f"Written by calibrant {__version__} from a Threshold."
    notes, named = (written, found.sentence()), {"calibrated": "selected"}
    return ExportTable(tuple(steps), np.array([0.0, 1.0]), coverage, notes, named=named)


def _of_band(band: MonotoneBand, coverage: float) -> ExportTable:
    """A cut wherever a limit changes: a lower limit from its knot on, an upper one after its knot."""
    check_is_fitted(band)
    cuts = np.union1d(band.steps_.lower_knots, np.nextafter(band.steps_.upper_knots, np.inf))
    lower, upper = band.predict_interval(np.append(-LARGEST, cuts)).T
    steps = Steps(None, -LARGEST, LARGEST, cuts, np.arange(lower.size))
    written = f"Written by calibrant {__version__} from a MonotoneBand."
    both = {"lower": "lower", "upper": "upper"}
    middle = (lower + upper) / 2.0
    return ExportTable((steps,), middle, coverage, (written, band.sentence()), (), lower, upper, named=both)


def _of_pieces(calibrator: PiecewiseCalibrator, coverage: float) -> ExportTable:
    """The pieces of a curve, each with the limits and the set of the region that it is part of."""
    start, value, slope, lower, upper = calibrator.table_.T
    numbers = calibrator.pieces_.regions(calibrator.partition_.as_bins())
    whole = _of_regions(calibrator, _of_partition(calibrator.pieces_.cells), coverage)
    sets = None if whole.sets is None else whole.sets[numbers]
    lines = Lines(start, slope)
    return replace(whole, calibrated=value, lower=lower, upper=upper, sets=sets, lines=lines, numbers=numbers)


def _of_curve(calibrator: CurveCalibrator, coverage: float) -> ExportTable:
    low, high, cuts = -LARGEST, LARGEST, np.empty(0)
    zero = np.zeros(1)
    if isinstance(calibrator, IsotonicCalibrator):
        start, value, slope = calibrator.pieces_.table.T
        cuts = calibrator.thresholds_
        lines = Lines(start, slope)
    elif isinstance(calibrator, PlattCalibrator):
        value, lines = np.array([calibrator.intercept_]), Lines(zero, np.array([calibrator.slope_]), logit=True)
    elif isinstance(calibrator, TemperatureCalibrator) and calibrator.scale == "logit":
        value, lines = zero, Lines(zero, np.array([1.0 / calibrator.temperature_]), logit=True)
    elif isinstance(calibrator, TemperatureCalibrator):
        factor = 1.0 / calibrator.temperature_
        low, high, value, lines = 0.0, 1.0, zero, Lines(zero, zero, logit=True, beta=(factor, factor))
    elif isinstance(calibrator, BetaCalibrator):
        low, high, value = 0.0, 1.0, np.array([calibrator.c_])
        lines = Lines(zero, zero, logit=True, beta=(calibrator.a_, calibrator.b_))
    else:
        rule = "predict one value for each bin of the score, or be a known curve"
        raise InvalidTypeError("calibrator", rule, type(calibrator).__name__, _ADVICE)
    steps = (Steps(None, low, high, cuts, np.arange(cuts.size + 1)),)
    classes = tuple(calibrator.classes_.tolist())
    return ExportTable(steps, value, coverage, _notes(calibrator), classes, lines=lines)


def _of_regions(calibrator: RegionCalibrator, steps: tuple[Steps, ...], coverage: float) -> ExportTable:
    guarantee = calibrator.guarantee_
    sets = region_sets(guarantee.interval, coverage)[:, :: 1 if calibrator.positive_index_ == 1 else -1]
    classes, notes = tuple(calibrator.classes_.tolist()), _notes(calibrator, calibrator.partition_)
    return ExportTable(steps, guarantee.value, coverage, notes, classes, guarantee.lower, guarantee.upper, sets)


def _of_partition(partition: Partition) -> tuple[Steps, ...]:
    bins = partition.bins_by_segment
    if not bins:
        rule = "have bins of a score, because engines cannot run a Python function"
        raise InvalidTypeError("calibrator", rule, type(partition).__name__, _ADVICE)
    if partition.has_segments:
        _check_segments(tuple(name for name in bins if name is not OTHER))
    steps, first = [], 0
    for segment, part in bins.items():
        regions = first + np.arange(part.n_regions)
        steps.append(Steps(segment, max(part.low, -LARGEST), min(part.high, LARGEST), part.cuts, regions))
        first += part.n_regions
    return tuple(steps)


def _composed(calibrator: ScalingBinningCalibrator) -> Steps:
    """Bins of a base map that is itself a step function: steps of the score."""
    base, inside = calibrator.base_, calibrator.partition_.bins_by_segment.get(None)
    if not isinstance(base, VennAbersCalibrator) or inside is None:
        rule = "have bins of the score itself, because engines round computed values differently"
        why = "; its quantile bins are those of any strictly increasing base"
        raise InvalidTypeError("calibrator", rule, f"bins of {type(base).__name__}'s values", joined(_ADVICE, why))
    mapped = merged(base.p0_, base.p1_, base.loss)
    outside = (mapped < inside.low) | (mapped > inside.high)
    regions = np.where(outside, -1, np.searchsorted(inside.cuts, mapped, side="right"))
    return Steps(None, -LARGEST, LARGEST, base.cuts_, regions)


def _check_segments(segments: tuple[object, ...]) -> None:
    """Check that a column of one type can hold the segments."""
    kinds = {type(segment) for segment in segments}
    if len(kinds) > 1 or not kinds <= {str, int, float, bool}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InvalidTypeError("segments", "be all text, all whole numbers, all floats or all bools", got=names)
    for segment in segments:
        if type(segment) is int and not -_MOST_INTEGER <= segment < _MOST_INTEGER:
            raise InvalidValueError("segments", "be whole numbers of at most 64 bits", got=shown(segment))
        if type(segment) is float and not np.isfinite(segment):
            raise InvalidValueError("segments", "be finite numbers", got=shown(segment))


def _notes(calibrator: ScoreCalibrator, partition: Partition | None = None) -> tuple[str, str]:
    mark = "" if partition is None else f", partition {partition.fingerprint}"
    name = type(calibrator).__name__
    article = "an" if name[0] in "AEIO" else "a"
    written = f"Written by calibrant {__version__} from {article} {name}{mark}."
    return written, " ".join(calibrator.guarantee_.sentence().split())
