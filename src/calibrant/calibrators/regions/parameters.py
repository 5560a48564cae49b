"""The parameters that calibrators with regions of the score share, each declared once, and what
`fit` is given about the data.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

from calibrant._typing import Seed
from calibrant.cells.partition import Partition
from calibrant.errors import InvalidValueError
from calibrant.guarantee.statement import Edges
from calibrant.guarantee.values import VALUES
from calibrant.limits.methods import METHODS
from calibrant.params import rules
from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry
from calibrant.params.rules import GROUP_SIZE, GROUP_TARGET, WEIGHT_BOUND
from calibrant.sample.reader import bound_of
from calibrant.text.sentences import Setting

EXACT = "clopper-pearson"
"""What "auto" stands for, unless rows have weights or groups: these use the "betting" interval."""

N_BINS = rules.Integer(1) | rules.Only("auto")
INTERVAL = rules.Only("auto") | rules.Choice(METHODS)
VALUE = rules.Choice(VALUES)
PARTITION = rules.Choice(("quantile", "uniform")) | rules.Instance(Partition, "a Partition")
PILOT = rules.Optional(rules.FRACTION_OR_COUNT | rules.Only("auto"))
_SEGMENTS = rules.Names('a list of segments, such as ["north", "south"]')
SEGMENT_RULE = rules.Optional(rules.Integer(1) | rules.Only("auto") | _SEGMENTS)
WEIGHT_ERROR = rules.Number(
    "a number in [0, 1): how far, relatively, the weights may be from the truth",
    0.0,
    1.0,
    open_high=True,
)
_RATE = rules.Number("a number in (0, 1]", 0.0, 1.0, open_low=True)
_SHARES = rules.Pair("a pair (low, high) of them", rules.OPEN_UNIT, increasing=True)
_RATES = rules.Pair("a pair of numbers in (0, 1], of the negative and the positive class", _RATE)


@dataclass(frozen=True, slots=True)
class DataAssumptions(Saved):
    """What is known about the data beforehand, as stated in `fit`: nothing that rows can show.

    Attributes
    ----------
    weight_bound : float or None
        An upper bound on the importance weights.
    max_group_size : int or None
        The largest number of rows that a group counts as in a bin.
    group_target : {"rows", "groups"}
        With groups: whether the rate is that among rows, or that of a random row of a random group.
    score_range : (float, float) or None
        The range of the scores, for bins of equal width; None is (0, 1).
    weight_error : float
        The largest relative error of the importance weights.
    target_prior : float, (float, float) or None
        The share of the positive class in the target population, or limits on it.
    source_prior : float or None
        The share of the positive class in the population of the calibration rows.
    sampling_rates : (float, float) or None
        The share of the negative and of the positive class that was kept.
    """

    _entries: ClassVar[Mapping[str, Entry]] = {
        "weight_bound": Entry(rules.Optional(WEIGHT_BOUND), absent=None),
        "max_group_size": Entry(rules.Optional(GROUP_SIZE), absent=None),
        "group_target": Entry(GROUP_TARGET, absent="rows"),
        "score_range": Entry(rules.Optional(rules.SCORE_RANGE), absent=None),
        "weight_error": Entry(WEIGHT_ERROR, absent=0.0),
        "target_prior": Entry(rules.Optional(rules.OPEN_UNIT | _SHARES), absent=None),
        "source_prior": Entry(rules.Optional(rules.OPEN_UNIT), absent=None),
        "sampling_rates": Entry(rules.Optional(_RATES), absent=None),
    }

    weight_bound: float | None = None
    max_group_size: int | None = None
    group_target: str = "rows"
    score_range: tuple[float, float] | None = None
    weight_error: float = 0.0
    target_prior: float | tuple[float, float] | None = None
    source_prior: float | None = None
    sampling_rates: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name, entry in self._entries.items():
            object.__setattr__(self, name, entry.kind.read(getattr(self, name), name, {}))

    @classmethod
    def about(cls, data: object, **arguments: Any) -> Self:
        """What `fit` was given, or what `scored(...)` says about the data; both must agree."""
        for name in ("weight_bound", "max_group_size", "group_target"):
            arguments[name] = bound_of(data, name, arguments[name])
        if arguments["group_target"] is None:
            arguments["group_target"] = "rows"
        return cls(**arguments)


NO_ASSUMPTIONS = DataAssumptions()
"""The usual: no bounds, and scores in (0, 1)."""


@dataclass(eq=False, repr=False)
class BinParameters(rules.CheckedParameters):
    """How bins of a score are cut, and the confidence of their intervals."""

    _rules: ClassVar[rules.RuleTable] = {
        "n_bins": N_BINS,
        "interval": INTERVAL,
        "partition": PARTITION,
        "pilot": PILOT,
    }

    n_bins: int | str = "auto"
    _: KW_ONLY
    confidence_level: float = 0.9
    interval: str = "auto"
    partition: str | Partition = "quantile"
    pilot: float | str | None = "auto"

    @property
    def _given_partition(self) -> Partition | None:
        """The regions, if they were fixed beforehand."""
        return None if isinstance(self.partition, str) else self.partition

    @property
    def _is_uniform(self) -> bool:
        """Whether bins have equal width."""
        return isinstance(self.partition, str) and self.partition == "uniform"

    @property
    def _exact_interval(self) -> str:
        """The interval for rows without weights and groups."""
        return EXACT if self.interval == "auto" else self.interval


@dataclass(eq=False, repr=False, kw_only=True)
class SegmentParameters(rules.CheckedParameters):
    """Which segments have their own regions."""

    _rules: ClassVar[rules.RuleTable] = {"segment_rule": SEGMENT_RULE}

    segment_rule: int | str | Sequence[Hashable] | None = "auto"

    @property
    def _own_segments(self) -> Sequence[Hashable] | None:
        """The segments that were named."""
        return self.segment_rule if isinstance(self.segment_rule, list | tuple) else None

    @property
    def _fewest_rows(self) -> int | None:
        """The number of rows that a segment needs to get its own regions, if given."""
        return self.segment_rule if isinstance(self.segment_rule, int) else None


@dataclass(eq=False, repr=False, kw_only=True)
class LabelParameters(rules.CheckedParameters):
    """The parameters for labels and computation that every calibrator with regions has."""

    pos_label: Hashable = None
    random_state: Seed = 0
    n_jobs: int | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class ValueParameters(rules.CheckedParameters):
    """The value predicted in a region, for calibrators that predict one value per region."""

    _rules: ClassVar[rules.RuleTable] = {"value": VALUE}

    value: str = "jeffreys"


@dataclass(eq=False, repr=False)
class CutParameters(LabelParameters, SegmentParameters, BinParameters):
    """The parameters of calibrators that accept segments, or regions fixed beforehand."""

    _fewest_pilot_rows: ClassVar[int] = 0
    """Pilot rows that two or more bins of few rows have, too, if these are at most a fifth of them."""

    def _automatic_bins(self, n_rows: int) -> int:
        return automatic_bins(n_rows)

    def _bins_for(self, n_rows: float) -> int:
        """Return the number of bins for a number of rows or groups."""
        return (
            self._automatic_bins(max(1, int(n_rows))) if self.n_bins == "auto" else int(self.n_bins)
        )

    def _asked(self) -> dict[str, Any]:
        """What a guarantee says about the requested bins: whether other rows were to cut them, and
        how many were requested.
        """
        n_bins = (
            None if self.n_bins == "auto" or self._given_partition is not None else int(self.n_bins)
        )
        edges = Edges.FIXED if self.pilot in (None, "auto") else Edges.OTHER_ROWS
        return {"edges": edges, "n_bins": n_bins}

    def _check_assumptions(self, assumptions: DataAssumptions) -> None:
        """Raise an error for a range of scores together with bins that accept any score."""
        if not self._is_uniform and assumptions.score_range is not None:
            any_score = (
                "be None for ",
                Setting("partition", "quantile"),
                ", which takes any score",
            )
            raise InvalidValueError("score_range", any_score, got=repr(assumptions.score_range))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        is_fixed = self._given_partition is not None
        if self.pilot not in (None, "auto") and (is_fixed or self._is_uniform):
            raise InvalidValueError(
                "pilot", "be None for bins that are fixed beforehand", got=repr(self.pilot)
            )
        counts_all = self.pilot is None and not self._is_uniform
        if self._fewest_rows is not None and (counts_all or is_fixed):
            rule = ('be None or "auto" if ', Setting("pilot", None), " or the bins are given")
            advice = "rows that choose segments are not counted"
            raise InvalidValueError("segment_rule", rule, repr(self.segment_rule), advice)


@dataclass(eq=False, repr=False)
class RegionParameters(CutParameters, ValueParameters):
    """The parameters of calibrators that predict one value in each region."""


def check_interval(interval: str, with_what: str, advice: str | None = None) -> None:
    """Raise an error for an interval that is not available for rows with weights or groups."""
    if interval != "auto":
        left = f'be "auto" with {with_what}, for which limits always come from bets'
        raise InvalidValueError("interval", left, repr(interval), advice)


def automatic_bins(n_rows: int) -> int:
    """Return the integer part of the cube root of `n_rows`, and at least 1.

    >>> [automatic_bins(n) for n in (1, 100, 1000, 10_000, 1_000_000)]
    [1, 4, 10, 21, 100]
    """
    return max(1, int(n_rows ** (1 / 3) + 1e-9))
