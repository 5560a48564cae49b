"""The search for thresholds: by ranks, with pilot rows, and by order statistics of one class."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from scipy.stats import binom

from calibrant._typing import BoolArray, FloatArray
from calibrant.assess.threshold.candidates import (
    Ladder,
    labels_that_would_do,
    misses_allowed,
    ranked,
    rows_needed,
)
from calibrant.assess.threshold.counted_rows import (
    SIDES,
    CountedRows,
    GroupedRows,
    ladder_of,
    own_class,
    regions,
    rows_by_segment,
    some_scores,
    turned_back,
)
from calibrant.assess.threshold.cut import (
    Cut,
    Seen,
    compared,
    confusion_at,
    measured,
    measured_in_groups,
)
from calibrant.cells.units import RowUnits
from calibrant.errors import InvalidValueError
from calibrant.limits.error_budget import sidak_level
from calibrant.params.random import RandomSource
from calibrant.sample.groups import PILOT_SHARE, Groups, fewest_pilot_groups
from calibrant.sample.reader import in_memory
from calibrant.sample.rows import Rows
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.numbers import counted as number_of
from calibrant.text.numbers import rows as rows_text
from calibrant.text.sentences import Setting, Text, joined, words

_DRAWN = 0.15  # share of the rows used only to choose candidates
_MOST_DRAWN = 10**6
_GRID = 1_000  # thresholds at which rows are counted for recall, if they do not fit in memory
_ROUNDING = 1e-9
_ALONE = (
    "would be enough as the only test, but tests share the error budget and stop at the first that"
    " fails"
)

_SMALLER_CAP = (
    "; a smaller ",
    Setting("max_group_size"),
    " would help, if you choose it from what you know about the groups, and not by trying several"
    " on these rows",
)

Tested = tuple[Ladder, BoolArray]
"""Counts at some thresholds, in the order of the tests, and where the target is proved."""

_ON_MORE_LABELS = {
    True: "so more labels like these are unlikely to help",
    False: "but these are too few rows to tell whether more labels would help",
}
"""Whether more labels may help, by whether the rows at the best threshold rule the target out."""


@dataclass(eq=False)
class Search:
    """The search for the thresholds of all targets and segments, within one error budget.

    Attributes
    ----------
    n_drawn : int
        The number of pilot rows.
    above_cap : float
        The share of the counted rows beyond the cap of their groups.
    broken : list
        Targets that the same rows miss if all of them count.
    alpha : float
        The error budget of each target in each segment.
    """

    data: Rows
    targets: dict[str, float]
    budget: float
    n_rows: int
    pilot: Any
    seed: int
    max_group_size: int | None
    unlabelled: FloatArray | None = None
    n_drawn: int = 0
    above_cap: float = 0.0
    broken: list[tuple[str, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = list(self.data.sizes())
        self.grouped = self.data.columns.group is not None
        # groups share the budget after the pilot rows are drawn
        self.alpha = sidak_level(self.budget, len(self.names)) / len(self.targets)

    def _met(
        self, name: Any, target: str, threshold: float, seen: Seen, n: int, n_tried: int
    ) -> Cut:
        """A guaranteed threshold, with the shares there."""
        level = self.targets[target]
        if isinstance(seen, Mapping):
            self._compare_in_full(target, *seen[target])
            capped = {share: value for share, (value, _) in seen.items()}
            parts: dict[str, Any] = dict(measured_in_groups(capped, target, level))
            return Cut(name, target, level, threshold, counted=n, **parts)
        unlabelled = None
        if self.unlabelled is not None:
            selected = int(np.count_nonzero(self.unlabelled >= threshold))
            unlabelled = selected, self.unlabelled.size
        parts = {"seen": seen, "n_tried": n_tried, "unlabelled": unlabelled}
        parts |= measured(seen, target, level, self.alpha, n_tried, unlabelled)
        return Cut(name, target, level, threshold, counted=n, **parts)

    def _compare_in_full(self, target: str, capped: float, in_full: float) -> None:
        """Record a target that is met where a group counts up to its cap, and missed where all of
        its rows count.
        """
        level = self.targets[target]
        if in_full < min(level, capped - _ROUNDING):
            self.broken.append((target, level, in_full))

    def _look(self) -> tuple[MemoryRows, Rows]:
        """Random rows with their labels, and the others."""
        size = self.pilot
        units = self.data.n_groups() if self.grouped else self.n_rows
        if isinstance(size, str):
            size = min(math.ceil(_DRAWN * units), _MOST_DRAWN, max(units - 1, 1))
        if self.grouped and self.max_group_size is None:  # the drawn groups also set the cap
            least = PILOT_SHARE if isinstance(size, float) else fewest_pilot_groups(units)
            size = max(size, least)
        others = self.data.split(size, self.seed).others
        drawn = others.drawn_rows(self.data, self.data.known_classes())
        self.n_drawn = len(drawn)
        if not 0 < self.n_drawn < self.n_rows:
            got = f"{self.pilot!r} of {rows_text(self.n_rows)}, which draws {self.n_drawn:,}"
            raise InvalidValueError(
                "pilot", "leave some rows to choose thresholds and some to count", got=got
            )
        return drawn, others

    def by_ranks(self, start: float | None) -> tuple[Cut, ...]:
        """Search all scores of the rows, from several ranks or from one start; see `threshold`."""
        found = []
        rows = self.data.collect()
        for place, (name, (scores, codes)) in enumerate(rows_by_segment(rows, self.names).items()):
            ties = RandomSource.of(self.seed, "order of ties", place, rows=rows.fingerprint())
            tested = {
                target: ranked(scores, codes, target, level, self.alpha, start, ties)
                for target, level in self.targets.items()
                if scores.size
            }
            found += self._decided(name, tested, partial(confusion_at, scores, codes), scores.size)
        return tuple(found)

    def by_look(self) -> tuple[Cut, ...]:
        """Choose candidates from pilot rows, and test them on the other rows in a fixed order."""
        drawn, others = self._look()
        ratio = self.n_rows / self.n_drawn - 1.0
        if drawn.groups is not None:
            # the number of rows in the counted groups must not determine where tests begin
            ratio = self.data.n_groups() / np.unique(drawn.groups.codes).size - 1.0
            # groups with rows in several segments make them dependent; segments without drawn rows
            # are not tested
            n_tested = 1 if drawn.segment is None else np.unique(drawn.segment).size
            self.alpha = self.budget / len(self.targets) / n_tested
            if self.max_group_size is None:
                # the sizes of the counted groups do not bound the size of a new one
                self.max_group_size = drawn.groups.largest
        ladders = {
            name: {
                target: ladder_of(scores, codes, target, level, self.alpha, ratio)
                for target, level in self.targets.items()
            }
            for name, (scores, codes) in rows_by_segment(drawn, self.names).items()
        }
        tried = {
            name: np.unique(np.concatenate([*found.values()])) for name, found in ladders.items()
        }
        counted = self._count(others, tried)
        if in_memory(others) and others.groups is not None:
            counted = self._with_groups(counted, others, others.groups)
        cuts: list[Cut] = []
        for name, here in counted.items():
            tested = {}
            for target, found in ladders[name].items():
                if found.size:
                    steps = here.tested(target, found[0])
                    tested[target] = steps, steps.proved(self.targets[target], self.alpha)
            cuts += self._decided(name, tested, here.at, here.n, max(here.cuts.size, 1))
        return tuple(cuts)

    def _count(
        self, data: Rows, cuts: Mapping[Hashable, FloatArray]
    ) -> dict[Hashable, CountedRows]:
        tally = data.tally(regions(cuts))[0]
        ends = accumulate((edges.size + 1 for edges in cuts.values()), initial=0)
        return {
            name: CountedRows(edges, tally.part(slice(*place)))
            for (name, edges), place in zip(cuts.items(), pairwise(ends), strict=True)
        }

    def _with_groups(
        self, counted: Mapping[Hashable, CountedRows], others: MemoryRows, groups: Groups
    ) -> dict[Hashable, CountedRows]:
        """The counts with their groups, which are tested whole."""
        cap = self.max_group_size or groups.largest
        self.above_cap = float(np.maximum(groups.sizes - cap, 0).sum() / max(len(others), 1))
        order = RandomSource.of(self.seed, "order of bets", rows=self.data.fingerprint()).key
        found = dict(counted)
        for name, (scores, codes) in rows_by_segment(others, self.names).items():
            own = groups
            if others.segment is not None:
                own = groups.take(others.segment == others.segment_names.index(name))
            units = RowUnits(own.codes, len(own.keys), np.ones(scores.size))
            rows = GroupedRows(scores, codes, units, float(cap), order)
            found[name] = replace(counted[name], rows=rows)
        return found

    def _decided(
        self,
        name: Any,
        tested: Mapping[str, Tested],
        seen_at: Callable[[float], Seen],
        n: int,
        n_tried: int = 0,
    ) -> list[Cut]:
        """The thresholds of one segment: of one target, or of both sides."""
        chosen = {
            target: float(steps.cuts[proved][-1])
            for target, (steps, proved) in tested.items()
            if proved.any()
        }
        reasons: dict[str, str] = {}
        if len(chosen) == 2 and chosen["precision"] < chosen["npv"]:  # nothing needs to be referred
            steps, proved = tested["precision"]
            others, others_proved = tested["npv"]
            common = np.flatnonzero(proved & np.isin(steps.places, others.places[others_proved]))
            if common.size:
                chosen = dict.fromkeys(chosen, float(steps.cuts[common[common.size // 2]]))
            else:
                chosen.pop("npv")
                reasons["npv"] = "its rows overlap with those of the precision"
        cuts = []
        for target, level in self.targets.items():
            if target in chosen:
                at = chosen[target]
                cuts.append(self._met(name, target, at, seen_at(at), n, n_tried))
            elif target in reasons:
                cuts.append(Cut(name, target, level, None, reasons[target], counted=n))
            else:
                cuts.append(
                    self._failed(name, target, tested[target][0] if target in tested else None, n)
                )
        return cuts

    def _failed(self, name: Any, target: str, tested: Ladder | None, n: int) -> Cut:
        level = self.targets[target]
        missed = partial(Cut, name, target, level, None, counted=n)
        if tested is None or not n:
            few = "there are too few rows to choose a threshold and test it"
            return missed(few if self.n_rows else "no row was kept by its weight")
        place = tested.strongest(level)
        too_little: Text = "is not enough"
        if tested.passed(level, self.alpha)[place]:
            too_little = _ALONE
        elif tested.is_hindered_by_cap(place, level, self.alpha):
            most = rows_text(self.max_group_size or 1)
            counts = f"is not enough because a new group may count as {most}"
            too_little = joined(counts, _SMALLER_CAP)
        seen = f"the strongest evidence found: {_seen(tested, place, target)}, which "
        reason = words(joined(seen, too_little))
        everything = self._with_drawn(n)
        if self.grouped:
            return missed(reason)
        needed = labels_that_would_do(tested.n, tested.k, everything, level, self.alpha)
        if needed is not None and needed <= everything:
            needed = None
            reason = f"{reason}; more labels may be enough"
        elif needed is None:
            # whether the rows at this threshold, taken alone, show that the target is missed there
            hopeless = bool(binom.cdf(tested.k[place], tested.n[place], level) <= self.alpha)
            reason += f"; no threshold looks good enough, {_ON_MORE_LABELS[hopeless]}"
        return missed(reason, needed)

    def _with_drawn(self, n: int) -> int:
        """Return the approximate number of rows in a segment, if `n` of them are counted."""
        return math.ceil(n * self.n_rows / (self.n_rows - self.n_drawn))

    def by_order_statistic(self) -> tuple[Cut, ...]:
        """Recall by a rank among the positives, and specificity by a rank among the negatives.

        If there are more rows than fit in memory, they are counted at thresholds from drawn rows:
        the highest of these that leaves as few positives below is at most the order statistic, so
        its recall is at least as high.
        """
        ((target, level),) = self.targets.items()
        is_here = in_memory(self.data)
        look, counting = (self.data.collect(), self.data) if is_here else self._look()
        cuts = {}
        for name, (scores, codes) in rows_by_segment(look, self.names).items():
            own = own_class(scores, codes, target)
            if is_here:
                rank = misses_allowed(own.size, level, self.alpha)
                found = np.partition(own, rank - 1)[rank - 1 : rank] if rank else np.empty(0)
            else:
                found = some_scores(own, _GRID)
            cuts[name] = np.sort(turned_back(found, target))
        counted = self._count(counting, cuts)
        return tuple(self._at_rank(name, counted[name], target, level) for name in self.names)

    def _at_rank(self, name: Any, counted: CountedRows, target: str, level: float) -> Cut:
        missed = partial(Cut, name, target, level, None, counted=counted.n)
        right, _ = counted.seen.shares[target]
        of_class = counted.n_positive if target == "recall" else counted.n - counted.n_positive
        allowed = misses_allowed(of_class, level, self.alpha)
        fit = np.flatnonzero(of_class - right <= allowed - 1)
        if allowed and fit.size:
            cut = float(counted.cuts[fit[-1] if target == "recall" else fit[0]])
            return self._met(name, target, cut, counted.at(cut), counted.n, 0)
        if allowed:
            reason = (
                "every threshold among the drawn rows leaves too many on the wrong side; more labels"
                " may be enough"
            )
            return missed(reason)
        needed = rows_needed(level, self.alpha)
        reason = f"it needs at least {needed:,} {SIDES[target][0]} rows, and there are {of_class:,}"
        labels = math.ceil(needed * self._with_drawn(counted.n) / of_class) if of_class else None
        return missed(reason, labels)


def _seen(tested: Ladder, place: int, target: str) -> str:
    """The rows, and groups, at one threshold, and the correct ones among them."""
    rows = int(tested.n[place])
    right = int(tested.k[place])
    n_groups = tested.n_groups(place)
    kind, side = SIDES[target]
    beyond = compared(float(tested.cuts[place]))[side]
    if target in ("precision", "npv"):
        are = "is" if right == 1 else "are"
        return f"of {rows_text(rows, n_groups)} with score {beyond}, {right:,} {are} {kind}"
    in_groups = f" in {number_of(n_groups, 'group')}" if n_groups else ""
    have = "has" if right == 1 else "have"
    return f"of {number_of(rows, f'{kind} row')}{in_groups}, {right:,} {have} a score {beyond}"
