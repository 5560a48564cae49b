"""From scored rows to bins and their counts."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np
from scipy.special import ndtri

from calibrant._typing import FloatArray, IntArray
from calibrant.calibrators.regions.own_segments import ChosenSegments, chosen_segments, segment_draw
from calibrant.calibrators.regions.parameters import NO_ASSUMPTIONS, CutParameters, DataAssumptions
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition, check_enough_rows, edge_ranks
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.limits.region_limits import GroupDesign
from calibrant.params.arrays import repeated
from calibrant.params.labels import Classes
from calibrant.params.random import seed_number
from calibrant.sample.facts import Reach, RowFacts
from calibrant.sample.order_statistics import MovedRowsError
from calibrant.sample.reader import in_memory
from calibrant.sample.rows import Rows, Split
from calibrant.text.numbers import counted

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True, eq=False)
class Binned:
    """Bins, their counts, the classes of the rows, the range of their scores, and the counted rows.

    `facts` is what a guarantee has to say about how the rows were read and drawn; `whole` holds all
    rows, including those not counted, and `drawn` the scores of the latter, by segment. `design`
    says how groups count, if rows have any; `assumptions` is what `fit` was given about the data.
    """

    partition: Partition
    tally: Tally
    classes: Classes
    reach: Reach
    rows: Rows
    facts: RowFacts
    whole: Rows
    drawn: Mapping[Hashable, Any] = field(default_factory=dict)
    design: GroupDesign | None = None
    assumptions: DataAssumptions = NO_ASSUMPTIONS
    unlabelled: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CutBins:
    """Bins, before any row is counted in them.

    Attributes
    ----------
    cells : Partition
        The bins. If their edges are order statistics of the counted rows (`by_own_ranks`), the
        finest cells, between and at these edges: counts show which are tied.
    rows, whole : Rows
        The rows to count, and all rows.
    facts : RowFacts
        How they were read and drawn.
    n_rows : int
        The number of rows to count; 0 if no row was drawn.
    drawn : dict of float arrays
        The scores of the rows that are not counted, by segment.
    absorbing : dict of int, optional
        The number of ranks at which the edges of each segment were taken, if bins absorb tied ones.
    assumptions : DataAssumptions
        What `fit` was given about the data.
    unlabelled : float array, optional
        Scores of further rows.
    """

    cells: Partition
    rows: Rows
    whole: Rows
    facts: RowFacts
    n_rows: int = 0
    drawn: Mapping[Hashable, Any] = field(default_factory=dict)
    by_own_ranks: bool = False
    absorbing: Mapping[Hashable, int] | None = None
    assumptions: DataAssumptions = NO_ASSUMPTIONS
    unlabelled: FloatArray | None = None

    def counted(self) -> Binned:
        """Count the rows in the cells, and determine the bins."""
        return self.settled(
            *self.rows.tally_and_reach(self.cells, weighted=self.rows.columns.weight is not None)
        )

    def settled(self, tally: Tally, classes: Classes, reach: Reach) -> Binned:
        """The bins, given the counts of the cells."""
        partition = self.cells
        if self.by_own_ranks:
            partition = self.cells.as_bins().cut_by_cells(tally.counts, self.absorbing)
            tally = tally.regrouped(partition.count_regions, partition)
            # the range of scores in a warning is that of all rows, counted or not
            reach = sum(map(Reach.of, self.drawn.values()), reach)
        return Binned(
            partition,
            tally,
            classes,
            reach,
            self.rows,
            self.facts,
            self.whole,
            self.drawn,
            assumptions=self.assumptions,
            unlabelled=self.unlabelled,
        )


def cut_and_count(
    data: Rows,
    settings: CutParameters,
    assumptions: DataAssumptions = NO_ASSUMPTIONS,
) -> Binned:
    """Cut bins and count the rows in them, once, with their importance weights."""
    return cut_bins(data, settings, assumptions, CutBins.counted)


def cut_bins(
    data: Rows,
    settings: CutParameters,
    assumptions: DataAssumptions,
    count: Callable[[CutBins], T],
) -> T:
    """Cut bins, and return the result of `count` for them."""
    fixed = settings._given_partition
    if fixed is not None:
        facts = data.facts(drawn=False)
        return count(CutBins(fixed, data, data, facts, assumptions=assumptions))
    seed = seed_number(settings.random_state)
    try:
        return count(_cut(data, settings, assumptions, seed, can_draw=True))
    except MovedRowsError:  # rows without an order may come in another order
        must_draw = settings.pilot != "auto" or settings._fewest_rows is not None
        if data.has_order or data.columns.id is not None or must_draw:
            raise
        return count(_cut(data, settings, assumptions, seed, can_draw=False))


def _cut(
    data: Rows,
    settings: CutParameters,
    assumptions: DataAssumptions,
    seed: int,
    *,
    can_draw: bool,
) -> CutBins:
    segments = ChosenSegments()
    if data.columns.segment is not None:
        segments = chosen_segments(data, settings, seed, can_draw)
    whole = data.pooled(segments.kept)
    cutting = _Cutting(whole, settings, assumptions, seed, segments)
    if settings._is_uniform:
        chosen = (
            data.split_by(segment_draw(data, settings, seed)).others if segments.drawn else data
        )
        cut = cutting.fixed_width(chosen.pooled(segments.kept))
    elif settings.pilot is None or isinstance(settings.pilot, str):
        cut = cutting.own_quantiles(can_look=can_draw and settings.pilot == "auto")
    else:
        cut = cutting.pilot_quantiles(settings.pilot)
    facts = replace(cut.facts, pooled=segments.pooled)
    if segments.drawn and facts.drawn_by is None:
        drawn = data.facts(drawn=True)
        # rows that chose segments were drawn, even if no other row was
        facts = replace(facts, drawn_by=drawn.drawn_by, over_seed=drawn.over_seed)
    return replace(cut, facts=facts, assumptions=assumptions)


@dataclass(frozen=True, slots=True)
class _Cutting:
    """Rows with the chosen segments, and how their bins are cut."""

    data: Rows
    settings: CutParameters
    assumptions: DataAssumptions
    seed: int
    segments: ChosenSegments

    def _bins(self, sizes: Mapping[Hashable, int]) -> dict[Hashable, int]:
        """Bins of each segment; chosen segments have no more bins than rows."""
        wanted = self.settings._bins_for
        if self.segments.kept is not None:
            return {name: min(wanted(rows), rows) for name, rows in sizes.items()}
        return each_part(sizes, lambda rows: check_enough_rows(rows, wanted(rows)))

    def fixed_width(self, rows: Rows) -> CutBins:
        """Bins of equal width, which need no rows.

        A segment may have no rows but those that chose it.
        """
        cut = cache(partial(equal_width, assumptions=self.assumptions))
        partition = joined_bins(each_part(self._bins(self.data.sizes()), cut))
        return CutBins(partition, rows, self.data, rows.facts(drawn=False))

    def own_quantiles(self, *, can_look: bool) -> CutBins:
        """Bins between order statistics of the counted rows, unless a few pilot rows show ties.

        The pilot rows are not counted. If they are untied, bins lie between order statistics of the
        other rows, and a bin absorbs its left edge if that is tied after all. If they are tied,
        bins lie between quantiles of these rows and of some more. Given the pilot rows, the others
        are independent draws and the choice is fixed, so it costs no confidence. There are no pilot
        rows for rows with a `sample_weight`, because no draw treats one row of weight 2 as two
        rows, nor for rows that move from one pass to the next, because a draw could not be left
        out. With importance weights a tied edge is a region of its own, because nothing bounds its
        weighted share. Rows that chose segments, those with the smallest hashes of all, are among
        the pilot rows.
        """
        sizes = self.data.sizes()
        bins = self._bins(sizes)
        pilot = self._pilot(sizes, bins, can_look)
        cells = self._finest_cells(sizes, bins, pilot)
        absorbs = self.settings.pilot is not None and self.data.columns.weight is None
        n_edges = {name: bins[name] - 1 for name in sizes}
        facts = replace(
            self.data.facts(drawn=any(pilot.sizes.values())),
            looked=sum(rows for name, rows in pilot.looks.items() if not pilot.cuts[name]),
            cutting=sum(pilot.cuts.values()),
        )
        return CutBins(
            cells,
            pilot.parts.others,
            self.data,
            facts,
            sum(sizes.values()) - sum(pilot.sizes.values()),
            pilot.parts.drawn,
            by_own_ranks=True,
            absorbing=n_edges if absorbs else None,
        )

    def _pilot(
        self, sizes: Mapping[Hashable, int], bins: Mapping[Hashable, int], can_look: bool
    ) -> "_Pilot":
        """Check a few pilot rows of each segment for ties; if there are ties, draw more, which cut
        its bins.
        """
        looks = self._pilot_sizes(sizes, bins, can_look)
        if not any(looks.values()):
            return _Pilot(looks, dict.fromkeys(sizes, 0), Split({}, sizes, self.data))
        ranks = self._ranks(sizes, bins, looks)
        parts = self.data.first_rows(self.seed, looks, ranks)
        tied = {name for name, scores in parts.drawn.items() if repeated(scores).size}
        cuts = {
            name: split_size(rows, bins[name]) if name in tied else 0
            for name, rows in sizes.items()
        }
        pilot = _Pilot(looks, cuts, parts)
        if any(cuts.values()):
            return replace(pilot, parts=self.data.first_rows(self.seed, pilot.sizes))
        return pilot

    def _pilot_sizes(
        self, sizes: Mapping[Hashable, int], bins: Mapping[Hashable, int], can_look: bool
    ) -> dict[Hashable, int]:
        """The number of pilot rows in each segment.

        The rows that chose the segments are among them.
        """
        chosen_by = self.segments.drawn
        repeats = in_memory(self.data) and self.data.repeats is not None
        if repeats or not can_look:
            return {name: chosen_by.get(name, 0) for name in sizes}
        fewest = self.settings._fewest_pilot_rows
        return {
            name: max(look_size(rows, bins[name], fewest), chosen_by.get(name, 0))
            for name, rows in sizes.items()
        }

    def _finest_cells(
        self, sizes: Mapping[Hashable, int], bins: Mapping[Hashable, int], pilot: "_Pilot"
    ) -> ScorePartition | SegmentedPartition:
        """Cells at order statistics of the counted rows or, in segments with ties, at quantiles of
        drawn rows.
        """
        n_pilot = pilot.sizes
        untied = {name: rows for name, rows in sizes.items() if not pilot.cuts[name]}
        ranks = self._ranks(untied, bins, n_pilot)
        edges = pilot.parts.others.order_statistics(ranks) if ranks else {}
        cells = {}
        for name in sizes:
            # the number of rows of a segment estimates its mass, except among the rows that chose
            # the segments
            random_rows = n_pilot[name] - self.segments.drawn.get(name, 0)
            if name in ranks:
                cells[name] = ScorePartition.at(edges[name], random_rows)
            else:
                scores = pilot.parts.drawn[name]
                cells[name] = ScorePartition.from_tied_scores(scores, bins[name], aside=random_rows)
        return joined_bins(cells)

    @staticmethod
    def _ranks(
        sizes: Mapping[Hashable, int], bins: Mapping[Hashable, int], pilot: Mapping[Hashable, int]
    ) -> dict[Hashable, IntArray]:
        """The ranks of the edges among the rows that are not pilot rows."""
        # a segment that was chosen by few rows may have hardly any left; one without any is one bin
        left = {name: max(rows - pilot[name], 1) for name, rows in sizes.items()}
        return {name: edge_ranks(rows, min(bins[name], rows)) for name, rows in left.items()}

    def pilot_quantiles(self, pilot: float) -> CutBins:
        """Bins between quantiles of a random part of the rows, which only cuts.

        The others are counted (as in the paper).
        """
        parts = self.data.split(pilot, self.seed)
        n_rows = sum(parts.sizes.values())
        n_drawn = sum(map(len, parts.drawn.values()))
        if not 0 < n_drawn < n_rows:
            got = f"{pilot!r} of {counted(n_rows, 'row')}, which draws {n_drawn:,}"
            raise InvalidValueError(
                "pilot", "leave some rows to choose bins and some to count", got=got
            )
        few = self.settings.n_bins == "auto" or self.segments.kept is not None

        def cut(name: Hashable) -> ScorePartition:
            scores = parts.drawn[name]
            n_bins = self.settings._bins_for(parts.sizes[name])
            if not len(scores):  # a segment without a drawn row is one bin
                return ScorePartition(np.empty(0))
            return ScorePartition.from_other_scores(
                scores, min(n_bins, len(scores)) if few else n_bins
            )

        partition = joined_bins(each_part({name: name for name in parts.sizes}, cut))
        facts = self.data.facts(drawn=True)
        return CutBins(partition, parts.others, self.data, facts, n_rows - n_drawn, parts.drawn)


@dataclass(frozen=True, slots=True)
class _Pilot:
    """Rows that are not counted.

    Attributes
    ----------
    looks, cuts : dict of int
        The number of rows of each segment that are checked for ties, and the number that cut its
        bins: the same rows, and some more.
    parts : Split
        These rows, and the others.
    """

    looks: dict[Hashable, int]
    cuts: dict[Hashable, int]
    parts: Split

    @property
    def sizes(self) -> dict[Hashable, int]:
        """The number of rows of each segment that are not counted."""
        return {name: max(looked, self.cuts[name]) for name, looked in self.looks.items()}


def equal_width(n_bins: int, assumptions: DataAssumptions) -> ScorePartition:
    """Bins of equal width over the stated score range, or over (0, 1)."""
    return ScorePartition.fixed_width(n_bins, assumptions.score_range or (0.0, 1.0))


def look_size(n_rows: int, n_bins: int, fewest: int = 0) -> int:
    """The number of pilot rows to check for ties: ceil(sqrt(2 (n_bins - 1) n_rows)), but at most
    2/17 of the rows. Two or more bins have at least `fewest`, if these are at most a fifth of the
    rows; a row is left for each bin.

    Among m pilot rows, m^2 / (2 n) pairs of equal scores are expected for every one that the n_bins
    - 1 edges expect, times 1 / (n_bins - 1). So untied pilot rows followed by a tied edge occur in
    at most 1/4 of all fits.

    >>> [look_size(n, 10) for n in (10, 100, 1000, 10_000, 1_000_000)]
    [0, 11, 117, 425, 4243]
    """
    if n_bins < 2:
        return 0
    wanted = max(math.ceil(math.sqrt(2 * (n_bins - 1) * n_rows)), fewest)
    most = max(2 * n_rows // 17, fewest if 5 * fewest <= n_rows else 0)
    rows = min(wanted, most, n_rows - n_bins)
    return rows if rows >= 2 else 0


def split_size(n_rows: int, n_bins: int) -> int:
    """The number of rows that cut bins if scores are tied: about (g n sqrt(B) / 2)^(2/3), g =
    Phi^-1(1 - 0.56 / B).

    More rows give bins of more equal size, and leave fewer to be counted. At most half of the rows,
    and 0 if there are fewer rows than bins.

    >>> [split_size(n, 10) for n in (100, 1000, 10_000, 1_000_000)]
    [40, 185, 858, 18484]
    """
    if not 2 <= n_bins <= n_rows // 2:
        return 0
    wanted = math.ceil(
        (float(ndtri(1.0 - 0.56 / n_bins)) * n_rows * math.sqrt(n_bins) / 2.0) ** (2.0 / 3.0)
    )
    return int(min(max(wanted, n_bins), n_rows // 2))


def each_part(parts: Mapping[Hashable, T], make: Callable[[T], U]) -> dict[Hashable, U]:
    """Apply a function to each segment; errors name the segment."""
    results = {}
    for name, part in parts.items():
        try:
            results[name] = make(part)
        except InvalidValueError as error:
            raise (
                error if name is None else InvalidValueError(None, f"in segment {name!r}: {error}")
            ) from None
    return results


def joined_bins(parts: dict[Hashable, ScorePartition]) -> ScorePartition | SegmentedPartition:
    """The bins of all segments as one partition."""
    return parts[None] if None in parts else SegmentedPartition(parts)
