"""The search for thresholds: by ranks, with pilot rows, and by order statistics of one class."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binom

from calibrant._typing import BoolArray, FloatArray
from calibrant.assess.threshold.candidates import (
    Ladder,
    labels_that_would_do,
    misses_allowed,
    rows_needed,
)
from calibrant.assess.threshold.confusion import Confusion, confusion_at
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
from calibrant.assess.threshold.cut import Cut, compared
from calibrant.assess.threshold.rank_tests import ranked
from calibrant.assess.threshold.shares import measured, measured_in_groups
from calibrant.cells.units import RowUnits
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.error_budget import sidak_level
from calibrant.params.random import RandomSource
from calibrant.sample.groups import PILOT_SHARE, fewest_pilot_groups
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

Seen = Confusion[int] | Mapping[str, tuple[float, float]]
"""Counts at a threshold; with groups, each share where a group counts up to its cap, and where all
rows count.
"""

_ON_MORE_LABELS = {
    True: "so more labels like these are unlikely to help",
    False: "but these are too few rows to tell whether more labels would help",
}
"""Whether more labels may help, by whether the rows at the best threshold rule the target out."""


class Search:
    """The search for the thresholds of all targets and segments, within one error budget."""

    def __init__(
        self,
        data: Rows,
        targets: dict[str, float],
        alpha: float,
        n_rows: int,
        pilot: Any,
        seed: int,
        max_group_size: int | None,
        unlabelled: FloatArray | None = None,
    ) -> None:
        self._unlabelled = unlabelled
        self.data = data
        self.targets = targets
        self.n_rows = n_rows
        self.n_drawn = 0
        self.names = list(data.sizes())
        self.grouped = data.columns.group is not None
        self._budget = alpha / len(targets)
        self.alpha = sidak_level(alpha, len(self.names)) / len(
            targets
        )  # groups share the budget after the pilot rows are drawn
        self.max_group_size = max_group_size
        self.above_cap = 0.0  # share of the counted rows, if rows have groups
        self.broken: list[
            tuple[str, float, float]
        ] = []  # targets that the same rows miss if all of them count
        self._pilot = pilot
        self.seed = seed

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
        if self._unlabelled is not None:
            selected = int(np.count_nonzero(self._unlabelled >= threshold))
            unlabelled = selected, self._unlabelled.size
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
        size = self._pilot
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
            got = f"{self._pilot!r} of {rows_text(self.n_rows)}, which draws {self.n_drawn:,}"
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
            self.alpha = self._budget / n_tested
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
        if self.grouped and in_memory(others):
            counted = self._with_groups(counted, drawn, others)
        cuts: list[Cut] = []
        for name, here in counted.items():
            tested = {}
            for target, found in ladders[name].items():
                if found.size:
                    steps = here.tested(target, found[0])
                    tested[target] = steps, steps.proved(self.targets[target], self.alpha)
            seen_at: Callable[[float], Seen] = here.confusion
            if here.rows is not None:
                seen_at = here.rows.shares
            cuts += self._decided(name, tested, seen_at, here.n, max(here.cuts.size, 1))
        return tuple(cuts)

    def _count(
        self, data: Rows, cuts: Mapping[Hashable, FloatArray]
    ) -> dict[Hashable, CountedRows]:
        tally = data.tally(regions(cuts))[0]
        found = {}
        first = 0
        for name, edges in cuts.items():
            end = first + edges.size + 1
            found[name] = CountedRows(edges, tally.part(slice(first, end)))
            first = end
        return found

    def _with_groups(
        self, counted: Mapping[Hashable, CountedRows], drawn: MemoryRows, others: MemoryRows
    ) -> dict[Hashable, CountedRows]:
        """The counts with their groups, which are tested whole.

        The sizes of the counted groups do not bound the size of a new one.
        """
        if drawn.groups is None or others.groups is None:
            raise InvalidTypeError("groups", "be known for all rows", got="rows without groups")
        if self.max_group_size is None:
            self.max_group_size = drawn.groups.largest
        sizes = others.groups.sizes
        self.above_cap = float(
            np.maximum(sizes - self.max_group_size, 0).sum() / max(sizes.sum(), 1)
        )
        order = RandomSource.of(self.seed, "order of bets", rows=self.data.fingerprint()).key
        found = dict(counted)
        for name, (scores, codes) in rows_by_segment(others, self.names).items():
            groups = others.groups
            if others.segment is not None:
                groups = groups.take(others.segment == others.segment_names.index(name))
            units = RowUnits(groups.codes, len(groups.keys), np.ones(scores.size))
            rows = GroupedRows(scores, codes, units, float(self.max_group_size), order)
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
        if tested is None or not n:
            why = (
                "there are too few rows to choose a threshold and test it"
                if self.n_rows
                else "no row was kept by its weight"
            )
            return Cut(name, target, level, None, why, counted=n)
        place = tested.strongest(level)
        seen = f"the strongest evidence found: {_seen(tested, place, target)}, which "
        reason = words(joined(seen, self._too_little(tested, place, level)))
        everything = self._with_drawn(n)
        if self.grouped:
            return Cut(name, target, level, None, reason, counted=n)
        needed = labels_that_would_do(tested.n, tested.k, everything, level, self.alpha)
        if needed is not None and needed <= everything:
            needed = None
            reason = f"{reason}; more labels may be enough"
        elif needed is None:
            # whether the rows at this threshold, taken alone, show that the target is missed there
            hopeless = bool(binom.cdf(tested.k[place], tested.n[place], level) <= self.alpha)
            reason += f"; no threshold looks good enough, {_ON_MORE_LABELS[hopeless]}"
        return Cut(name, target, level, None, reason, needed, counted=n)

    def _too_little(self, tested: Ladder, place: int, level: float) -> Text:
        """Why the evidence at one threshold is not enough."""
        if tested.passed(level, self.alpha)[place]:
            return _ALONE
        if tested.is_hindered_by_cap(place, level, self.alpha):
            most = rows_text(self.max_group_size or 1)
            return joined(f"is not enough because a new group may count as {most}", _SMALLER_CAP)
        return "is not enough"

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
        right, _ = counted.seen.shares[target]
        of_class = counted.n_positive if target == "recall" else counted.n - counted.n_positive
        allowed = misses_allowed(of_class, level, self.alpha)
        fit = np.flatnonzero(of_class - right <= allowed - 1)
        if allowed and fit.size:
            cut = float(counted.cuts[fit[-1] if target == "recall" else fit[0]])
            return self._met(name, target, cut, counted.confusion(cut), counted.n, 0)
        if allowed:
            reason = (
                "every threshold among the drawn rows leaves too many on the wrong side; more labels"
                " may be enough"
            )
            return Cut(name, target, level, None, reason, counted=counted.n)
        needed = rows_needed(level, self.alpha)
        reason = f"it needs at least {needed:,} {SIDES[target][0]} rows, and there are {of_class:,}"
        labels = math.ceil(needed * self._with_drawn(counted.n) / of_class) if of_class else None
        return Cut(name, target, level, None, reason, labels, counted=counted.n)


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
