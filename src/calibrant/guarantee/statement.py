"""The facts of a guarantee besides its numbers: what it is about, and what it assumes.

They are fields, so that programs can read them and each tool can phrase them in its own words
(`calibrant.guarantee.words`).
"""

from dataclasses import dataclass
from enum import Enum

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
    """The event whose rate is meant."""

    POSITIVE_CLASS = "the positive class"
    CORRECT_PREDICTION = "the predicted class being correct"


class Claim(Enum):
    """What is guaranteed about the predictions in a region."""

    RATE = "the one predicted probability of a region is near its rate"
    AVERAGE = "the predicted probabilities of a region are on average near its rate"


NO_DIFFERENCE = "that makes no difference"
UNGROUPED: Text = (
    "rows in a group are not independent, and this calibrator takes no groups; use a"
    " BinningCalibrator for a guarantee"
)
UNWEIGHTED: Text = (
    "this calibrator takes no importance weights, so nothing is guaranteed about the weighted"
    " population; use a BinningCalibrator for a guarantee"
)


@dataclass(frozen=True, slots=True)
class Caveat:
    """Why nothing is guaranteed, and what would have to be true for the numbers to hold anyway."""

    reason: Text
    supposition: Text = NO_DIFFERENCE


@dataclass(frozen=True, slots=True)
class ImportanceWeights:
    """What is known about the importance weights.

    Attributes
    ----------
    known : bool
        Whether they were given, not estimated.
    bound : float
        An upper bound on the weights.
    error : float
        Their largest relative distance from the density ratio.
    """

    known: bool
    bound: float
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The facts to state if rows have groups.

    Attributes
    ----------
    counted, aside : int
        Groups that were counted, and pilot groups.
    max_size : int
        The largest number of rows that a group can count as in a region.
    target : str
        "rows" or "groups": the unit that counts equally.
    design_effect : float
        Ratio of the variances to those of as many independent rows; NaN if unknown.
    max_weight : float or None
        With importance weights: the largest weight of a group in a region.
    fixed : bool
        Whether the regions were given, and so not cut by pilot groups.
    above_cap : float
        The share of rows, or of their weight, beyond the cap of the counted groups.
    n_apart : int
        Number of regions where the rate that counts all rows in full lies outside the limits.
    farthest : float
        The largest difference, in those regions, between that rate and the rate that the limits are
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
    """The facts that go with the numbers of a guarantee.

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
        What is claimed about the predictions in a region.
    weights : ImportanceWeights or None
        What is known about the importance weights, if rows have them.
    n_bins : int or None
        The number of bins requested, if one was.
    n_segments, n_pooled, n_atoms, n_absorbed, n_uncounted : int
        Segments with regions of their own, one of them "other" if segments are pooled; segments
        that are pooled in it; single score values that are regions of their own; tied edge values
        that are part of a bin; edge values that count in no region.
    looked, cutting : int
        Pilot rows that were only checked for ties, and rows that cut bins because ties were found.
    caveats : tuple of Caveat
        Why nothing is guaranteed, if so.
    assumed, notes : tuple of Text
        Further assumptions, and further notes.
    groups : GroupFacts or None
        The facts to state about groups, if rows have them.
    of_groups : str
        The text for the case that one row was drawn from each group.
    falls : bool
        Whether predictions decrease as the score increases.
    to_do : Text
        What to do about a region with too few rows, if the remedy is not to use fewer bins.
    over_seed : bool
        Whether the probability is also over the seed, because rows take only a few values.
    n_trained : int
        How many rows trained the models that predict, if the calibration rows are among them; the
        regions are then those of a first opinion, which is not from these models. Otherwise 0.
    """

    theorem: str = ""
    population: Population = Population.SAME
    edges: Edges = Edges.FIXED
    event: Event = Event.POSITIVE_CLASS
    weights: ImportanceWeights | None = None
    n_bins: int | None = None
    n_segments: int = 0
    n_pooled: int = 0
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
    over_seed: bool = False
    n_trained: int = 0

    @property
    def has_ties(self) -> bool:
        """Whether tied scores created regions of single values."""
        return self.n_atoms > 0 and self.edges is Edges.SAME_ROWS
