"""The parameters that calibrators with regions of the score share, each declared once."""

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from calibrant._typing import ArrayLike, Seed
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidValueError
from calibrant.guarantee.values import VALUES
from calibrant.limits.group_sums import TARGETS
from calibrant.limits.methods import METHODS
from calibrant.limits.shift.evidence import WEIGHT_BOUND
from calibrant.params import rules
from calibrant.text.sentences import Setting

STRATEGIES = ("quantile", "uniform")
EXACT = "clopper-pearson"
"""The default interval. Rows with weights or groups have the interval of "betting" instead."""

N_BINS = rules.Integer(1) | rules.Only("auto")
INTERVAL = rules.Choice(METHODS)
VALUE = rules.Choice(VALUES)
SCORE_RANGE_OR_NONE = rules.Optional(rules.SCORE_RANGE)
PARTITION = rules.Optional(rules.Instance(Partition, "a Partition"))


@dataclass(eq=False, repr=False)
class BinParameters(rules.CheckedParameters):
    """The parameters of every calibrator that cuts bins of a score."""

    _rules: ClassVar[rules.RuleTable] = {
        "n_bins": N_BINS,
        "strategy": rules.Choice(STRATEGIES),
        "interval": INTERVAL,
        "split": rules.Optional(rules.FRACTION_OR_COUNT | rules.Only("auto")),
    }

    n_bins: int | str = "auto"
    _: KW_ONLY
    strategy: str = "quantile"
    confidence_level: float = 0.9
    interval: str = EXACT
    split: float | str | None = "auto"
    pos_label: Hashable = None
    classes: "ArrayLike | None" = None
    random_state: "Seed" = 0
    n_jobs: int | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class CutParameters(BinParameters):
    """The same, and the parameters of calibrators that take segments, or regions fixed beforehand."""

    _rules: ClassVar[rules.RuleTable] = {
        "score_range": SCORE_RANGE_OR_NONE,
        "partition": PARTITION,
        "min_rows": rules.Optional(rules.Integer(1) | rules.Only("auto")),
        "keep_segments": rules.Optional(rules.Names('a list of segments, such as ["north", "south"]')),
    }

    score_range: tuple[float, float] | None = None
    partition: Partition | None = None
    min_rows: int | str | None = "auto"
    keep_segments: Sequence[Hashable] | None = None

    def _automatic_bins(self, n_rows: int) -> int:
        return automatic_bins(n_rows)

    def _bins_for(self, n_rows: float) -> int:
        """Return the number of bins for a number of rows, or of groups."""
        return self._automatic_bins(max(1, int(n_rows))) if self.n_bins == "auto" else int(self.n_bins)

    def _fixed_width(self, n_bins: int) -> ScorePartition:
        """Bins of equal width."""
        given = None if self.score_range is None else rules.SCORE_RANGE.parse(self.score_range)
        return ScorePartition.fixed_width(n_bins, given or (0.0, 1.0))

    def _asked(self) -> dict[str, Any]:
        """What a statement says of how the bins were cut: whether from other rows, and how many were asked for."""
        n_bins = None if self.n_bins == "auto" or self.partition is not None else int(self.n_bins)
        return {"split": self.split not in (None, "auto"), "n_bins": n_bins}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        fixed = self.strategy == "uniform" or self.partition is not None
        if self.split not in (None, "auto") and fixed:
            raise InvalidValueError("split", "be None for bins that are fixed beforehand", got=repr(self.split))
        counts_all = self.split is None and self.strategy == "quantile"
        if isinstance(self.min_rows, int) and (counts_all or self.partition is not None):
            given = ('be None or "auto" where ', Setting("split", None), " or the bins are given")
            raise InvalidValueError("min_rows", given, repr(self.min_rows), "rows that choose segments are not counted")
        if self.strategy == "quantile" and self.score_range is not None:
            any_score = ("be None for ", Setting("strategy", "quantile"), ", which takes any score")
            raise InvalidValueError("score_range", any_score, got=repr(self.score_range))


@dataclass(eq=False, repr=False, kw_only=True)
class RegionParameters(CutParameters):
    """The same, and the parameter of calibrators that predict one value in each region."""

    _rules: ClassVar[rules.RuleTable] = {"value": VALUE}

    value: str = "jeffreys"


@dataclass(eq=False, repr=False, kw_only=True)
class WeightAndGroupParameters(rules.CheckedParameters):
    """The parameters of calibrators whose rows may have importance weights, or groups."""

    _rules: ClassVar[rules.RuleTable] = {
        "weight_bound": rules.Optional(WEIGHT_BOUND),
        "max_group_size": rules.Optional(rules.Integer(1)),
        "group_target": rules.Choice(TARGETS),
    }

    weight_bound: float | None = None
    max_group_size: int | None = None
    group_target: str = "rows"


@dataclass(eq=False, repr=False, kw_only=True)
class FitParameters(CutParameters, WeightAndGroupParameters):
    """The parameters of calibrators that take segments, importance weights and groups."""


def check_interval(interval: str, beside: str, advice: str | None = None) -> None:
    """Raise an error for an interval that rows with weights or groups do not have."""
    if interval != EXACT:
        left = f"be left as it is with {beside}, whose interval is that of betting"
        raise InvalidValueError("interval", left, repr(interval), advice)


def automatic_bins(n_rows: int) -> int:
    """Return the whole part of the cube root of `n_rows`, and at least 1.

    >>> [automatic_bins(n) for n in (1, 100, 1000, 10_000, 1_000_000)]
    [1, 4, 10, 21, 100]
    """
    return max(1, int(n_rows ** (1 / 3) + 1e-9))
