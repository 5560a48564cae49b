"""From scored rows to bins and what was counted in them."""

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from calibrant._labels import Classes
from calibrant._numbers import counted
from calibrant.errors import InvalidValueError
from calibrant.partition import Partition, ScorePartition, SegmentedPartition
from calibrant.partition.scores import check_enough_rows, edge_ranks
from calibrant.rows import ScoredData
from calibrant.rows.base import Split
from calibrant.tally import Tally

BinRule: TypeAlias = Callable[[int, int], int]
"""Number of bins, from how many rows there are and how many of them cut the edges."""

T = TypeVar("T")
U = TypeVar("U")


class Binned(NamedTuple):
    """Bins, what was counted in them, and the classes of the rows."""

    partition: Partition
    tally: Tally
    classes: Classes


def fixed_width(data: ScoredData, n_bins: BinRule, score_range: tuple[float, float]) -> Binned:
    """Bins of equal width, for which no row is needed."""

    def cut(rows: int) -> ScorePartition:
        return ScorePartition.fixed_width(check_enough_rows(rows, n_bins(rows, rows)), score_range)

    partition = _joined(_each(data.sizes(), cut))
    return Binned(partition, *data.tally(partition))


def own_quantiles(data: ScoredData, n_bins: BinRule) -> Binned:
    """Bins between order statistics of all rows, each of which is counted too."""
    ranks = _each(data.sizes(), lambda rows: edge_ranks(rows, n_bins(rows, rows)))
    atoms = _each(data.order_statistics(ranks), ScorePartition.atoms)
    tally, classes = data.tally(_joined(atoms))
    parts = list(atoms.values())
    ends = np.cumsum([part.n_regions for part in parts])[:-1]
    rows, positives = np.split(tally.counts, ends), np.split(tally.positives, ends)
    cut = [part.cut_by_cells(here) for part, here in zip(parts, rows, strict=True)]
    gathered = [part.gather(*here) for part, *here in zip(cut, rows, positives, strict=True)]
    partition = _joined(dict(zip(atoms, cut, strict=True)))
    counts, hits = (np.concatenate([part[index] for part in gathered]) for index in (0, 1))
    uncounted = sum(part[2] for part in gathered)
    return Binned(partition, Tally(counts, hits, uncounted, partition.fingerprint), classes)


def split_quantiles(data: ScoredData, n_bins: BinRule, split: float, random_state: object) -> Binned:
    """Bins between quantiles of a random part of the rows, which only cuts; the others count (the paper's way)."""
    parts = data.split(split, random_state)
    n_rows, n_drawn = sum(parts.sizes.values()), sum(map(len, parts.drawn.values()))
    if not 0 < n_drawn < n_rows:
        raise InvalidValueError(
            "split",
            "leave rows both to cut and to count",
            got=f"{split!r} of {counted(n_rows, 'row')}, which draws {n_drawn:,}",
        )
    partition = cut_drawn(parts, n_bins)
    return Binned(partition, *parts.others.tally(partition))


def cut_drawn(parts: Split, n_bins: BinRule) -> Partition:
    """Bins between quantiles of the drawn rows; a segment of which no row was drawn is one bin."""

    def cut(name: Hashable) -> ScorePartition:
        scores = parts.drawn[name]
        if not len(scores):
            return ScorePartition(np.empty(0))
        return ScorePartition.from_other_scores(scores, n_bins(parts.sizes[name], len(scores)))

    return _joined(_each({name: name for name in parts.sizes}, cut))


def _each(parts: Mapping[Hashable, T], make: Callable[[T], U]) -> dict[Hashable, U]:
    """What is made of each segment; an error names the segment."""
    made = {}
    for name, part in parts.items():
        try:
            made[name] = make(part)
        except InvalidValueError as error:
            raise (error if name is None else InvalidValueError(f"in segment {name!r}: {error}")) from None
    return made


def _joined(parts: dict[Hashable, ScorePartition]) -> Partition:
    return parts[None] if None in parts else SegmentedPartition(parts)
