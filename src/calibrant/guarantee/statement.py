"""The facts besides the numbers of a guarantee: what it is about, and what it assumes.

They are fields, so that programs read them, and each tool says them in its own words
(`calibrant.guarantee.words`).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Self

from calibrant.cells.partition import Partition
from calibrant.text.sentences import Text


class Population(Enum):
    """Which future rows a guarantee is about."""

    SAME = "rows i.i.d. with the calibration rows"
    STREAM = "the rows of a stream, at every moment"
    COVARIATE_SHIFT = "rows from another population, with the same labels given inputs"
    LABEL_SHIFT = "rows from another population, with the same scores given the label"
    WEIGHTED = "rows from the population that importance weights describe"


class Edges(Enum):
    """Where the regions come from."""

    FIXED = "bins fixed before any row was seen"
    FUNCTION = "a function of the inputs"
    OTHER_ROWS = "bins cut from a random part of the rows"
    SAME_ROWS = "bins cut from the rows that are counted"


class Event(Enum):
    """What the rate is the rate of."""

    POSITIVE_CLASS = "the positive class"
    CORRECT_PREDICTION = "the predicted class being correct"


class Claim(Enum):
    """What is said of the predictions in a region."""

    RATE = "the one predicted probability of a region is near its rate"
    AVERAGE = "the predicted probabilities of a region are on average near its rate"


NO_DIFFERENCE = "that makes no difference"
UNGROUPED: Text = (
    "rows in a group are not independent, and this calibrator takes no groups; use a"
    " BinningCalibrator for a proved guarantee"
)
UNWEIGHTED: Text = (
    "this calibrator takes no importance weights, so nothing is proved about the weighted"
    " population; use a BinningCalibrator for a proved guarantee"
)


@dataclass(frozen=True, slots=True)
class Caveat:
    """Why nothing is proved, and what must be true for the numbers to hold anyway."""

    reason: Text
    supposition: Text = NO_DIFFERENCE


@dataclass(frozen=True, slots=True)
class ImportanceWeights:
    """What is known of importance weights.

    Attributes
    ----------
    known : bool
        Whether they were given, not estimated.
    bound : float
        What no weight exceeds.
    error : float
        How far they may be from the density ratio, relatively.
    any_multiple : bool
        Whether a multiple of the density ratio does as well.
    in_order : bool
        Whether limits depend on the order of the rows, as bets do.
    """

    known: bool
    bound: float
    error: float = 0.0
    any_multiple: bool = True
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What is to be said where rows have groups.

    Attributes
    ----------
    counted, aside : int
        Groups that were counted, and groups that were set aside.
    max_size : int
        As how many rows a group counts in a region, at most.
    target : str
        "rows" or "groups": what counts the same.
    design_effect : float
        How many times larger variances were than those of as many independent rows; NaN where that
        is not known.
    max_weight : float or None
        Where rows have importance weights: by how much a group counts in a region, at most.
    fixed : bool
        Whether the regions were given, so that groups set aside did not cut them.
    above_cap : float
        The share of rows, or of their weight, by which counted groups exceed what they count as.
    n_apart : int
        Regions where the rate that counts all rows in full lies outside the limits.
    farthest : float
        The largest difference, in such a region, between that rate and the rate that the limits are
        for.
    """

    counted: int
    aside: int
    max_size: int
    target: str
    design_effect: float
    max_weight: float | None = None
    fixed: bool = False
    above_cap: float = 0.0
    n_apart: int = 0
    farthest: float = 0.0


@dataclass(frozen=True, slots=True)
class Statement:
    """The facts that belong to the numbers of a guarantee.

    Attributes
    ----------
    theorem : str
        What the guarantee rests on.
    population : Population
        Which future rows it is about.
    edges : Edges
        Where the regions come from.
    event : Event
        What the rate is the rate of.
    claim : Claim
        What is said of the predictions in a region.
    weights : ImportanceWeights or None
        What is known of the importance weights, where rows have them.
    n_bins : int or None
        How many bins were asked for, where a number was.
    n_segments, n_atoms, n_absorbed, n_uncounted : int
        Segments; single score values that are regions of their own; tied edge values that are part
        of a bin; edge values that count in no region.
    looked, cutting : int
        Rows that were looked at for ties and then left alone, and rows that cut bins because the
        look found ties.
    caveats : tuple of Caveat
        Why nothing is proved, where that is so.
    assumed, notes : tuple of Text
        Further assumptions, and further notes.
    groups : GroupFacts or None
        What is to be said of groups, where rows have them.
    of_groups : str
        What is to be said where one row was drawn from each group.
    falls : bool
        Whether predictions fall as the score rises.
    to_do : Text
        What to do about a region with too few rows, where that is not to use fewer bins.
    drawn_by_seed : bool
        Whether draws depend on the seed alone, and not on the rows, as in files of earlier
        releases.
    """

    theorem: str = ""
    population: Population = Population.SAME
    edges: Edges = Edges.FIXED
    event: Event = Event.POSITIVE_CLASS
    weights: ImportanceWeights | None = None
    n_bins: int | None = None
    n_segments: int = 0
    n_atoms: int = 0
    n_absorbed: int = 0
    n_uncounted: int = 0
    looked: int = 0
    cutting: int = 0
    caveats: tuple[Caveat, ...] = ()
    assumed: tuple[Text, ...] = ()
    notes: tuple[Text, ...] = ()
    claim: Claim = Claim.RATE
    groups: GroupFacts | None = None
    of_groups: str = ""
    falls: bool = False
    to_do: Text = ""
    drawn_by_seed: bool = False

    @property
    def has_ties(self) -> bool:
        """Whether ties among the scores made regions of single values."""
        return self.n_atoms > 0 and self.edges is Edges.SAME_ROWS

    @property
    def uses_order(self) -> bool:
        """Whether rows are drawn or bet on by place and seed, so that their order must not tell
        scores and labels.
        """
        if not self.drawn_by_seed:
            return False
        drawn = self.looked > 0 or self.cutting > 0 or self.edges is Edges.OTHER_ROWS
        return self.groups is None and (
            drawn or (self.weights is not None and self.weights.in_order)
        )

    @classmethod
    def about(
        cls,
        partition: Partition,
        *,
        split: bool = False,
        n_bins: int | None = None,
        theorem: str = "",
    ) -> Self:
        """The facts that a partition knows.

        `split` says that its edges come from other rows of the same sample.
        """
        if not partition.bins_by_segment:
            return cls(theorem, edges=Edges.FUNCTION)
        layout = partition.as_bins().layout
        segments = len(partition.bins_by_segment)
        return cls(
            theorem,
            edges=(
                Edges.SAME_ROWS
                if partition.cuts_own_sample
                else Edges.OTHER_ROWS
                if split
                else Edges.FIXED
            ),
            n_bins=n_bins,
            n_segments=segments if partition.has_segments else 0,
            n_atoms=layout.n_atoms,
            n_absorbed=layout.absorbed_cells.size,
            n_uncounted=layout.n_uncounted,
        )
