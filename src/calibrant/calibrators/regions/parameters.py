"""The parameters shared by calibrators with regions of the score, each declared once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from calibrant._typing import Seed
from calibrant.calibrators.regions.stated import Stated
from calibrant.cells.partition import Partition
from calibrant.errors import InvalidValueError
from calibrant.guarantee.values import VALUES
from calibrant.limits.methods import METHODS
from calibrant.params import rules
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
        """The number of rows from which on a segment has its own regions, if given."""
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

    def _automatic_bins(self, n_rows: int) -> int:
        return automatic_bins(n_rows)

    def _bins_for(self, n_rows: float) -> int:
        """Return the number of bins for a number of rows or groups."""
        return (
            self._automatic_bins(max(1, int(n_rows))) if self.n_bins == "auto" else int(self.n_bins)
        )

    def _asked(self) -> dict[str, Any]:
        """What a statement says about how the bins were cut: whether from other rows, and how many
        were requested.
        """
        n_bins = (
            None if self.n_bins == "auto" or self._given_partition is not None else int(self.n_bins)
        )
        return {"split": self.pilot not in (None, "auto"), "n_bins": n_bins}

    def _check_stated(self, stated: Stated) -> None:
        """Raise an error for a range of scores together with bins that accept any score."""
        if not self._is_uniform and stated.score_range is not None:
            any_score = (
                "be None for ",
                Setting("partition", "quantile"),
                ", which takes any score",
            )
            raise InvalidValueError("score_range", any_score, got=repr(stated.score_range))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = self._given_partition is not None
        if self.pilot not in (None, "auto") and (given or self._is_uniform):
            raise InvalidValueError(
                "pilot", "be None for bins that are fixed beforehand", got=repr(self.pilot)
            )
        counts_all = self.pilot is None and not self._is_uniform
        if self._fewest_rows is not None and (counts_all or given):
            rule = ('be None or "auto" where ', Setting("pilot", None), " or the bins are given")
            advice = "rows that choose segments are not counted"
            raise InvalidValueError("segment_rule", rule, repr(self.segment_rule), advice)


@dataclass(eq=False, repr=False)
class RegionParameters(CutParameters, ValueParameters):
    """The parameters of calibrators that predict one value in each region."""


def check_interval(interval: str, beside: str, advice: str | None = None) -> None:
    """Raise an error for an interval that is not available for rows with weights or groups."""
    if interval != "auto":
        left = f'be "auto" with {beside}, whose interval is that of betting'
        raise InvalidValueError("interval", left, repr(interval), advice)


def automatic_bins(n_rows: int) -> int:
    """Return the integer part of the cube root of `n_rows`, and at least 1.

    >>> [automatic_bins(n) for n in (1, 100, 1000, 10_000, 1_000_000)]
    [1, 4, 10, 21, 100]
    """
    return max(1, int(n_rows ** (1 / 3) + 1e-9))
