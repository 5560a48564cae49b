"""Thresholds of a score with a proved precision, recall, negative predictive value or specificity."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._numbers import rows as rows_text
from calibrant._params import (
    FRACTION_OR_COUNT,
    OPEN_UNIT,
    Choice,
    Integer,
    Number,
    Only,
    Optional,
    RandomState,
    error_budget,
)
from calibrant._text import Setting
from calibrant._threshold.result import (
    Cut,
    Measured,
    Threshold,
    measured_anywhere,
    measured_at_fixed,
    measured_at_rank,
    measured_in_groups,
)
from calibrant._threshold.search import (
    Confusion,
    GroupLadder,
    Ladder,
    candidates,
    labels_that_would_do,
    misses_allowed,
    nested_groups,
    rows_needed,
)
from calibrant._typing import ArrayLike, CodeArray, FloatArray, IntArray, Seed
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.intervals._binomial import sidak_level
from calibrant.intervals.groups import GroupDesign
from calibrant.partition import ScorePartition, SegmentedPartition
from calibrant.rows import ScoredData, read_rows
from calibrant.rows.draw import seed_of
from calibrant.rows.groups import Groups
from calibrant.rows.memory import MemoryRows

__all__ = ["Cut", "Measured", "Threshold", "threshold"]

METHODS = ("look", "ranks")
_DRAWN = 0.15  # share of the rows that only choose where to look
_MOST_DRAWN = 10**6
_GRID = 1_000  # thresholds at which data that are not in memory are counted for recall
_SHARES = 5  # for which exact limits are told beside a target
_SHAPE = "precision at the target or above it exactly from some score on, as where the rate never falls"


def threshold(
    y: ArrayLike | None = None,
    scores: ArrayLike | ScoredData | None = None,
    *,
    precision: float | None = None,
    recall: float | None = None,
    npv: float | None = None,
    specificity: float | None = None,
    confidence_level: float = 0.9,
    segments: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    max_group_size: int | None = None,
    method: str = "look",
    start: float | None = None,
    split: float | str = "auto",
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
    random_state: Seed = 0,
) -> Threshold:
    """Find a threshold that has a given precision, recall, negative predictive value or specificity, with a proof.

    Rows with score >= threshold are selected. For precision the result is the lowest threshold that is proved, which
    selects most rows; for recall the highest. For npv, the share of negatives among rows that are not selected, it is
    the highest; for specificity the lowest. With `precision` and `npv` both, rows between the two thresholds are to be
    referred to a person, and both hold at once.

    Claimed: with probability at least `confidence_level` over the draw of the rows, every target holds in the
    population, in every segment at once. Assumed: rows are independent draws from one population, and their order means
    nothing. Nothing is assumed about scores, ties or the shape of the rate (but see `method`).

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of two classes. None beside scored data.
    scores : array-like of shape (n,), (n, 1), (n, 2), or ScoredData
        Scores; a higher score speaks for the positive class. Or data of any size, see `calibrant.scored`.
    precision, recall, npv, specificity : float, optional
        The target: one of them, or precision and npv together.
    confidence_level : float, default=0.9
        1 - alpha.
    segments : array-like of shape (n,), optional
        The group of each row. Each gets its own threshold, and alpha is shared.
    groups : array-like of shape (n,), optional
        Which rows belong together, such as those of one customer; for precision and npv. Whole groups are drawn, and
        what is proved is about rows of new groups, however rows of a group depend on each other.
    max_group_size : int, optional
        A group counts as at most so many rows; by default as many as the largest group that was drawn.
    method : {"look", "ranks"}, default="look"
        For precision and npv: "look" draws rows at random, which choose the thresholds to test and are not counted.
        "ranks" tests every score of the rows themselves, from the end of the scale, and draws none. That is proved only
        for scores without ties, and if precision(t) is at the target or above it exactly from some score on, for
        example if the rate never falls as the score rises.
    start : float, optional
        For precision or npv: a threshold that was fixed before the rows were looked at. The tests begin there and go on
        over every score, and no row is drawn. That proves more where the start is a good guess, such as 0.9 for a
        precision of 0.8 of a calibrated score.
    split : float, int or "auto", default="auto"
        The share or the number of rows to draw; "auto" is 15 % of them, and at most a million.
    pos_label, classes
        The positive class, and both classes where one of them is rare.
    random_state : int, generator or None, default=0
        Seed of the draw.

    Returns
    -------
    Threshold
        Its `threshold` is None where nothing can be proved; `reason` says why.

    Notes
    -----
    Precision: thresholds t_1 > t_2 > ... are fixed by the drawn rows, labels included. Given these, the positives among
    the N_j counted rows with score >= t_j are Bin(N_j, precision(t_j)). They are tested in this order by exact binomial
    tails at alpha, until the first test fails. If any threshold that fails the target is passed, then so is the first
    one, with probability at most alpha. So the last one passed is proved, whatever the curve. With `start`, all
    thresholds below it are tested, which are the scores of the rows: of the selected sets that fail the target, the
    first one is a limit of such sets. So it fails the target or just meets it, and passes with probability at most
    alpha.

    Recall rho: with n positives let r be the largest with P(Bin(n, 1 - rho) <= r - 1) <= alpha. The threshold is the
    r-th smallest score of a positive. This is exact, with or without ties.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import threshold
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=5_000)
    >>> y = rng.uniform(size=5_000) < scores
    >>> found = threshold(y, scores, precision=0.8)
    >>> print(found.sentence())
    With 90% confidence: at least 80% of the rows with score >= 0.6363889632375562 are positive.
    >>> found.predict([0.5, 0.7])
    array([False,  True])
    """
    asked = {"precision": precision, "recall": recall, "npv": npv, "specificity": specificity}
    targets = {name: OPEN_UNIT.check(name, level) for name, level in asked.items() if level is not None}
    if len(targets) != 1 and set(targets) != {"precision", "npv"}:
        rule = "be one of precision, recall, npv and specificity, or precision and npv together"
        raise InvalidTypeError("the target", rule, got=" and ".join(targets) or "none")
    alpha = error_budget(confidence_level)
    Choice(METHODS).check("method", method)
    (FRACTION_OR_COUNT | Only("auto")).check("split", split)
    RandomState().check("random_state", random_state)
    if start is not None:
        Number().check("start", start)
        if len(targets) > 1 or method != "look" or not set(targets) <= {"precision", "npv"}:
            alone = ("go with one target, precision or npv, and ", Setting("method", "look"))
            raise InvalidTypeError("start", alone, got=repr(start))
    if scores is None:
        raise InvalidTypeError("scores", "be scores, or scored(...) data", got="None")
    largest = Optional(Integer(1)).check("max_group_size", max_group_size)
    data = read_rows(scores, y, classes=classes, pos_label=pos_label, segments=segments, groups=groups)
    if data.columns.weight is not None:
        rule, advice = "be None: thresholds count every row the same", "leave it out of scored(...)"
        raise InvalidTypeError("weight", rule, got=repr(data.columns.weight), advice=advice)
    grouped = data.columns.group is not None
    if grouped and (method != "look" or start is not None or not set(targets) <= {"precision", "npv"}):
        look = (Setting("method", "look"), ", without ", Setting("start"))
        raise InvalidTypeError("groups", ("go with precision or npv and ", *look), advice="keep one row of each group")
    if grouped:
        data = data.collect()
    whole, known = data.tally(_parts({name: np.empty(0) for name in data.sizes()}))
    data = data.with_classes(known.labels, known.positive)
    search = _Search(data, targets, alpha, int(whole.counts.sum()), split, random_state, largest)
    assumed = [f"{'groups' if grouped else 'rows'} are independent draws from one population"]
    if "recall" in targets or "specificity" in targets:
        cuts = search.by_order_statistic()
    elif method == "ranks":
        cuts = search.by_every_score(None)
        assumed += ["no two rows share a score", _SHAPE]
    elif start is not None:
        method, cuts = "start", search.by_every_score(float(start))
        assumed.append("the start was fixed before the rows were looked at")
    else:
        cuts = search.by_look()
    if search.n_drawn:
        assumed.append("the order of the rows means nothing")
    counts = search.n_rows, search.n_drawn
    largest = search.max_group_size if grouped else None
    return Threshold(cuts, float(confidence_level), method, *counts, known.positive, tuple(assumed), largest)


def _parts(cuts: Mapping[Any, FloatArray]) -> ScorePartition | SegmentedPartition:
    parts = {name: ScorePartition(edges) for name, edges in cuts.items()}
    return parts[None] if None in parts else SegmentedPartition(parts)


@dataclass(frozen=True, slots=True, eq=False)
class _GroupedRows:
    """Counted rows of one segment, with their groups."""

    scores: FloatArray
    codes: CodeArray
    groups: Groups
    design: GroupDesign

    def ladder(self, target: str, cuts: FloatArray, n: IntArray, k: IntArray) -> GroupLadder:
        """What groups have on the side of each threshold that the target is about."""
        above = target == "precision"
        inside = (cut <= self.scores if above else self.scores < cut for cut in cuts.tolist())
        tally = nested_groups(inside, self.codes if above else 1 - self.codes, self.groups)
        return GroupLadder(cuts, n, k, tally, self.design)


class _Counted:
    """Rows of one segment between thresholds in rising order, and what each threshold makes of them."""

    def __init__(self, cuts: FloatArray, counts: Any, positives: Any) -> None:
        self.cuts = cuts
        self.n, self.n1 = int(counts.sum()), int(positives.sum())
        self.rows_below, self.positives_below = np.cumsum(counts)[:-1], np.cumsum(positives)[:-1]
        self.rows: _GroupedRows | None = None

    def tested(self, target: str, start: float) -> Ladder:
        """The thresholds from the start on, in the order of the tests."""
        if target == "precision":
            order = np.flatnonzero(self.cuts <= start)[::-1]
            rows, right = self.n - self.rows_below, self.n1 - self.positives_below
        else:
            order = np.flatnonzero(self.cuts >= start)
            rows, right = self.rows_below, self.rows_below - self.positives_below
        steps = self.cuts[order], rows[order], right[order]
        return Ladder(*steps) if self.rows is None or not order.size else self.rows.ladder(target, *steps)

    def confusion(self, cut: float) -> Confusion:
        """Rows on both sides of one of the thresholds."""
        place = int(np.searchsorted(self.cuts, cut))
        below, missed = int(self.rows_below[place]), int(self.positives_below[place])
        hits = self.n1 - missed
        return Confusion(hits, self.n - below - hits, missed, below - missed)


class _Search:
    """The search for the thresholds of all targets and segments, within one budget."""

    def __init__(
        self,
        data: ScoredData,
        targets: dict[str, float],
        alpha: float,
        n_rows: int,
        split: Any,
        random_state: Any,
        max_group_size: int | None,
    ) -> None:
        self.data, self.targets, self.n_rows, self.n_drawn = data, targets, n_rows, 0
        self.names = list(data.sizes())
        self.grouped = data.columns.group is not None
        # groups with rows in several segments make the segments dependent
        self.alpha = alpha / len(self.names) if self.grouped else sidak_level(alpha, len(self.names))
        self.alpha /= len(targets)
        self.max_group_size = max_group_size
        self._split, self._random_state = split, seed_of(random_state)

    def _look(self) -> tuple[MemoryRows, ScoredData]:
        """Rows drawn at random, with their labels, and the others."""
        size = self._split
        if isinstance(size, str):
            units = self.data.n_groups() if self.grouped else self.n_rows
            size = min(math.ceil(_DRAWN * units), _MOST_DRAWN, max(units - 1, 1))
        draw = self.data.draw(size, self._random_state)
        others = self.data.split_by(draw).others
        drawn = self.data.collect(draw=draw)
        self.n_drawn = len(drawn)
        if not 0 < self.n_drawn < self.n_rows:
            got = f"{self._split!r} of {rows_text(self.n_rows)}, which draws {self.n_drawn:,}"
            raise InvalidValueError("split", "leave rows both to look at and to count", got=got)
        return drawn, others

    def by_look(self) -> tuple[Cut, ...]:
        """Candidates from drawn rows; counts, and tests in a fixed order, from the others."""
        drawn, others = self._look()
        ratio = self.n_rows / self.n_drawn - 1.0
        ladders = {
            name: {
                target: _ladder(scores, codes, target, level, self.alpha, ratio)
                for target, level in self.targets.items()
            }
            for name, (scores, codes) in _by_segment(drawn, self.names).items()
        }
        tried = {name: np.unique(np.concatenate([*found.values()])) for name, found in ladders.items()}
        counted = self._count(others, tried)
        if self.grouped and isinstance(others, MemoryRows):
            self._with_groups(counted, drawn, others)
        return tuple(cut for name in self.names for cut in self._decided(name, counted[name], ladders[name]))

    def _count(self, data: ScoredData, cuts: Mapping[Any, FloatArray]) -> dict[Any, _Counted]:
        partition = _parts(cuts)
        tally = data.tally(partition)[0]
        ends = np.cumsum([edges.size + 1 for edges in cuts.values()])
        regions = [slice(end - edges.size - 1, end) for end, edges in zip(ends.tolist(), cuts.values(), strict=True)]
        return {
            name: _Counted(edges, tally.counts[here], tally.positives[here])
            for (name, edges), here in zip(cuts.items(), regions, strict=True)
        }

    def _with_groups(self, counted: Mapping[Any, _Counted], drawn: MemoryRows, others: MemoryRows) -> None:
        """Let whole groups be tested; no size among those that are counted bounds the size of a new one."""
        if drawn.groups is None or others.groups is None:
            raise InvalidTypeError("groups", "be known for all rows", got="rows without groups")
        if self.max_group_size is None:
            self.max_group_size = int(np.bincount(drawn.groups.codes).max())
        design = GroupDesign(self.max_group_size)
        for name, (scores, codes) in _by_segment(others, self.names).items():
            groups = others.groups
            if others.segment is not None:
                groups = groups.take(others.segment == others.segment_names.index(name))
            counted[name].rows = _GroupedRows(scores, codes, groups, design)

    def _decided(
        self, name: Any, counted: _Counted, ladders: Mapping[str, FloatArray], *, anywhere: bool = False
    ) -> list[Cut]:
        """The thresholds of one segment: of one target, or of both sides."""
        tested = {target: counted.tested(target, found[0]) for target, found in ladders.items() if found.size}
        proved = {
            target: steps.cuts[: steps.proved(self.targets[target], self.alpha)] for target, steps in tested.items()
        }
        chosen = {target: float(steps[-1]) for target, steps in proved.items() if steps.size}
        reasons: dict[str, str] = {}
        if len(chosen) == 2 and chosen["precision"] < chosen["npv"]:  # nothing need be referred
            common = np.intersect1d(proved["precision"], proved["npv"])
            if common.size:
                chosen = dict.fromkeys(chosen, float(common[common.size // 2]))
            else:
                chosen.pop("npv")
                reasons["npv"] = "its rows overlap with those of the precision"
        tail = self.alpha / (2 * _SHARES * max(counted.cuts.size, 1))
        cuts = []
        for target, level in self.targets.items():
            if target in chosen:
                seen = counted.confusion(chosen[target])
                if self.grouped:
                    parts = measured_in_groups(seen, target, level)
                elif anywhere:
                    parts = measured_anywhere(seen, target, level, self.alpha)
                else:
                    parts = measured_at_fixed(seen, target, level, tail)
                cuts.append(Cut.at(name, target, level, chosen[target], seen.n, parts))
            elif target in reasons:
                cuts.append(Cut(name, target, level, None, reasons[target], counted=counted.n))
            else:
                cuts.append(self._failed(name, target, tested.get(target), counted.n))
        return cuts

    def _failed(self, name: Any, target: str, tested: Ladder | None, n: int) -> Cut:
        level = self.targets[target]
        if tested is None or not n:
            return Cut(name, target, level, None, "no row was drawn that could choose a threshold", counted=n)
        rows, right = tested.best(level)
        kind = "positive" if target == "precision" else "negative"
        side = "above" if target == "precision" else "below"
        reason = f"of {rows_text(rows)} {side} the best threshold {right:,} are {kind}, which is not enough"
        everything = math.ceil(n * self.n_rows / (self.n_rows - self.n_drawn))
        needed = None if self.grouped else labels_that_would_do(tested.n, tested.k, everything, level, self.alpha)
        return Cut(name, target, level, None, reason, needed, counted=n)

    def by_every_score(self, start: float | None) -> tuple[Cut, ...]:
        """Every score of the rows themselves, from a start or from the end of the scale; see `threshold`."""
        rows = self.data.collect()
        found = []
        for name, (scores, codes) in _by_segment(rows, self.names).items():
            values = np.unique(scores)
            ladders = {}
            for target, level in self.targets.items():
                after = np.nextafter(values, np.inf)
                if start is None:  # rows strictly above an order statistic
                    cuts = after[:-1]
                    n = scores.size - np.searchsorted(np.sort(scores), cuts)
                    enough = (n if target == "precision" else scores.size - n) >= rows_needed(level, self.alpha)
                    ladders[target] = cuts[enough]
                else:
                    cuts = values[values < start] if target == "precision" else after[after > start]
                    ladders[target] = np.append(cuts, start)
                ladders[target] = np.sort(ladders[target])[:: -1 if target == "precision" else 1]
            cuts = np.unique(np.concatenate([*ladders.values()]))
            cells = np.searchsorted(cuts, scores, side="right")
            counts = np.bincount(cells, minlength=cuts.size + 1)
            positives = np.bincount(cells[codes == 1], minlength=cuts.size + 1)
            found += self._decided(name, _Counted(cuts, counts, positives), ladders, anywhere=True)
        return tuple(found)

    def by_order_statistic(self) -> tuple[Cut, ...]:
        """Recall by a rank among the positives, and specificity by one among the negatives.

        Data that are not in memory are counted at thresholds from drawn rows: the highest of them that leaves as few
        positives below is at most the order statistic, so that its recall is at least as high.
        """
        ((target, level),) = self.targets.items()
        own = 1 if target == "recall" else 0
        cuts = {}
        if isinstance(self.data, MemoryRows):
            counting: ScoredData = self.data
            for name, (scores, codes) in _by_segment(self.data, self.names).items():
                cuts[name] = _ranked(scores[codes == own], target, level, self.alpha)
        else:
            drawn, counting = self._look()
            for name, (scores, codes) in _by_segment(drawn, self.names).items():
                values = np.unique(scores[codes == own])
                some = (
                    values[np.unique(np.linspace(0, values.size - 1, _GRID).astype(np.intp))] if values.size else values
                )
                cuts[name] = some if own else np.nextafter(some, np.inf)
        counted = self._count(counting, cuts)
        return tuple(self._at_rank(name, counted[name], target, level) for name in self.names)

    def _at_rank(self, name: Any, counted: _Counted, target: str, level: float) -> Cut:
        of_class, wrong = counted.n1, counted.positives_below
        if target == "specificity":
            of_class = counted.n - counted.n1
            wrong = of_class - (counted.rows_below - counted.positives_below)
        allowed = misses_allowed(of_class, level, self.alpha)
        fit = np.flatnonzero(wrong <= allowed - 1)
        if allowed and fit.size:
            cut = float(counted.cuts[fit[-1] if target == "recall" else fit[0]])
            seen = counted.confusion(cut)
            parts = measured_at_rank(seen, target, level, self.alpha)
            return Cut.at(name, target, level, cut, seen.n, parts)
        kind = "positive" if target == "recall" else "negative"
        needed = rows_needed(level, self.alpha)
        reason = f"it needs at least {needed:,} {kind} rows, and there are {of_class:,}"
        labels = None if not of_class else math.ceil(needed * counted.n / of_class)
        return Cut(name, target, level, None, reason, labels, counted=counted.n)


def _ladder(scores: FloatArray, codes: CodeArray, target: str, level: float, alpha: float, ratio: float) -> FloatArray:
    """Candidates in the order of the tests; for npv scores and labels are turned over."""
    if not scores.size:
        return np.empty(0)
    if target == "precision":
        return candidates(scores, codes, level, alpha, ratio)
    return np.nextafter(-candidates(-scores, 1 - codes, level, alpha, ratio), np.inf)


def _ranked(scores: FloatArray, target: str, level: float, alpha: float) -> FloatArray:
    """The order statistic of the own class; none where nothing can be proved."""
    rank = misses_allowed(scores.size, level, alpha)
    if not rank:
        return np.empty(0)
    if target == "recall":
        return np.partition(scores, rank - 1)[rank - 1 : rank]
    return np.nextafter(-np.partition(-scores, rank - 1)[rank - 1 : rank], np.inf)


def _by_segment(rows: MemoryRows, names: list[Any]) -> dict[Any, tuple[FloatArray, CodeArray]]:
    """Scores, as doubles, and codes of each segment; empty where a segment has no row here."""
    scores = np.asarray(rows.scores, dtype=np.float64)
    if rows.segment is None:
        return {None: (scores, rows.codes)}
    number = {name: place for place, name in enumerate(rows.segment_names)}
    masks = {name: rows.segment == number.get(name, -1) for name in names}
    return {name: (scores[here], rows.codes[here]) for name, here in masks.items()}
