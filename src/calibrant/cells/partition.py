"""The first of the four ideas: which of finitely many regions an input falls into."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from calibrant import kernels
from calibrant._typing import ArrayLike, CodeArray, FloatArray, IndexArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_numbers, as_scores
from calibrant.params.declared_state import NOTHING_KNOWN, Saved, restored
from calibrant.params.kind import Known
from calibrant.params.rules import SCORE_RANGE, Integer, check_bins
from calibrant.params.saved_state import check_state
from calibrant.text.sentences import Setting, shown

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from calibrant.cells.bins import Bins
    from calibrant.cells.function_partition import FunctionPartition
    from calibrant.cells.score_partition import ScorePartition
    from calibrant.cells.segmented_partition import SegmentedPartition

_MOST_REGIONS = 10**7  # for a function


def is_partition(value: object) -> TypeIs[Partition]:
    """Whether this is a partition; all checks of it are here."""
    return isinstance(value, Partition)


class Partition(Saved, ABC):
    """A finite partition of the inputs, compared by content.

    The theory needs nothing more: if labels are i.i.d. inside each region, one interval per region
    holds for any distribution (Theorem 4 of Gupta, Podkopaev and Ramdas 2020). Score bins are the
    common case; see `fixed_width`, `from_edges`, `uniform_mass`, `atoms`, `from_function`,
    `from_tree` and `by_segment`.

    Inputs are passed to `prepare` once, which checks them; methods with a parameter `prepared` take
    what it returned.
    """

    has_segments: ClassVar[bool] = False
    """Whether a segment is needed to find a row's region."""

    @property
    @abstractmethod
    def n_regions(self) -> int:
        """The number of regions."""

    @abstractmethod
    def describe(self) -> tuple[str, ...]:
        """One readable name per region."""

    def prepare(
        self,
        inputs: ArrayLike,
        segments: ArrayLike | None = None,
        *,
        positive_column: Literal[0, 1] = 1,
    ) -> Any:
        """Check the inputs and return them in the form the other methods take."""
        if segments is not None:
            raise InvalidTypeError(
                "segments", "be None for a partition without segments", got="segments"
            )
        return self._checked(inputs, positive_column)

    def _checked(self, inputs: ArrayLike, positive_column: Literal[0, 1]) -> Any:
        """The inputs, checked. A partition with segments overrides `prepare` instead."""
        raise NotImplementedError

    @property
    def bins_by_segment(self) -> Mapping[Any, ScorePartition]:
        """Bins of the score in each segment (None without segments); empty for other regions."""
        return {}

    def as_bins(self) -> Bins:
        """Return this partition as bins of the score; raise an error for regions of other inputs."""
        raise InvalidTypeError("partition", "be bins of a score", got=type(self).__name__)

    @property
    def cuts_own_sample(self) -> bool:
        """Whether edges are order statistics of the rows that are tallied."""
        return False

    @property
    def has_absorbed(self) -> bool:
        """Whether a bin absorbs an edge value that was seen more than once in the sample the edges
        come from.
        """
        return False

    @abstractmethod
    def regions_of(self, prepared: Any, *, threads: int = 1) -> IndexArray:
        """Region of each prepared input."""

    @abstractmethod
    def _key(self) -> tuple[Hashable, ...]:
        """What makes two partitions equal."""

    def assign(self, inputs: ArrayLike, segments: ArrayLike | None = None) -> IndexArray:
        """Return the region, from 0 to n_regions - 1, whose value is predicted for each input."""
        return self.regions_of(self.prepare(inputs, segments))

    def membership(self, prepared: Any, *, threads: int = 1) -> IndexArray:
        """The region in which each input counts, or -1 if it counts in none (see `uniform_mass`)."""
        return self.regions_of(prepared, threads=threads)

    def count(
        self, prepared: Any, codes: CodeArray, *, threads: int = 1
    ) -> tuple[IntArray, IntArray, int]:
        """The number of rows and positives in each region, and of rows that count in none."""
        regions = self.membership(prepared, threads=threads)
        # region -1, of rows that count in none, comes first
        both = np.bincount(2 * (regions + 1) + codes, minlength=2 * (self.n_regions + 1)).reshape(
            -1, 2
        )
        rows = both.sum(axis=1)
        return rows[1:], both[1:, 1].copy(), int(rows[0])

    def look_up(self, prepared: Any, table: FloatArray, *, threads: int = 1) -> FloatArray:
        """Each input's entry (or row) of a table with one entry (or row) per region."""
        return table[self.regions_of(prepared, threads=threads)]

    def follow(self, prepared: Any, lines: FloatArray, *, threads: int = 1) -> FloatArray:
        """Each score's value, or limits, on a curve with one line per region.

        Only bins of a score have a curve.
        """
        raise InvalidTypeError(
            "partition", "be bins of a score to have a curve", got=type(self).__name__
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the partition as plain JSON values; `from_dict` reads it back."""
        if not self._entries:
            rule = "be bins of a score to be saved"
            raise InvalidTypeError("partition", rule, got=type(self).__name__)
        return super().to_dict()

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], known: Known = NOTHING_KNOWN) -> Partition:
        """Read back what `to_dict` wrote."""
        from calibrant.cells.score_partition import ScorePartition
        from calibrant.cells.segmented_partition import SegmentedPartition

        check_state(state, ("kind",))
        kinds: dict[str, type[Partition]] = {
            "scores": ScorePartition,
            "segments": SegmentedPartition,
        }
        kind = state["kind"]
        if not isinstance(kind, str) or kind not in kinds:
            raise InvalidValueError(
                "the kind of a partition", f"be one of {sorted(kinds)}", got=repr(kind)
            )
        return restored(kinds[kind], state, known)

    @cached_property
    def fingerprint(self) -> str:
        """A short fingerprint of the content: tallies with the same fingerprint may be added."""
        # a partition that cannot be saved, such as a function, is told apart by the names of its
        # regions
        try:
            content = json.dumps(self.to_dict(), sort_keys=True)
        except InvalidTypeError:
            content = repr((type(self).__name__, self.describe()))
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.n_regions} regions>"

    # Constructors. Each returns the class that does the work, so that `Partition` is the only name
    # to learn.

    @staticmethod
    def fixed_width(n_bins: int, score_range: tuple[float, float] = (0.0, 1.0)) -> ScorePartition:
        """Bins of equal width over `score_range`; scores outside raise an error.

        >>> Partition.fixed_width(4).describe()
        ('[0, 0.25)', '[0.25, 0.5)', '[0.5, 0.75)', '[0.75, 1]')
        """
        from calibrant.cells.score_partition import ScorePartition

        n_bins = check_bins(n_bins)
        low, high = SCORE_RANGE.check("score_range", score_range)
        edges = low + (high - low) * (np.arange(1, n_bins) / n_bins)
        if (np.diff(edges, prepend=low, append=high) <= 0).any():
            rule = (
                "be small enough that every bin holds a number, over ",
                Setting("score_range", (low, high)),
            )
            raise InvalidValueError("n_bins", rule, got=str(n_bins))
        return ScorePartition(edges, (low, high))

    @staticmethod
    def from_edges(
        edges: ArrayLike, score_range: tuple[float, float] | None = None
    ) -> ScorePartition:
        """Half-open bins [e1, e2) between the given inner edges.

        The edges must not come from the rows that will be tallied; for such edges, use
        `uniform_mass`. Without a `score_range`, the end bins are open-ended.

        >>> Partition.from_edges([0.2, 0.8]).describe()
        ('(-inf, 0.2)', '[0.2, 0.8)', '[0.8, inf)')
        """
        from calibrant.cells.score_partition import ScorePartition

        inner = as_numbers(edges, "edges")
        if (inner[1:] <= inner[:-1]).any():
            raise InvalidValueError("edges", "be strictly increasing", got=shown(inner.tolist()))
        if score_range is None:
            return ScorePartition(inner)
        low, high = SCORE_RANGE.check("score_range", score_range)
        if inner.size and not (low < inner[0] and inner[-1] <= high):
            got = shown(inner.tolist())
            raise InvalidValueError(
                "edges", ("lie inside ", Setting("score_range", (low, high))), got=got
            )
        return ScorePartition(inner, (low, high))

    @staticmethod
    def uniform_mass(scores: ArrayLike, n_bins: int) -> ScorePartition:
        """Bins between order statistics of the same scores that will be tallied.

        The edges are the order statistics of rank ceil(b (n + 1) / n_bins). The regions are the
        open intervals between neighbouring edge values, and each edge value seen more than once,
        which is a region of its own. An edge value seen once counts in no tally. Given how many
        scores lie below, at and above each edge, the scores strictly between two edges are i.i.d.,
        and so are the labels at an atom, so fixed-n intervals stay exact, with or without ties.
        After Gupta and Ramdas (2021), "Distribution-free calibration guarantees for histogram
        binning without sample splitting".

        >>> Partition.uniform_mass([0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.5], 2).describe()
        ('(-inf, 0.4)', '(0.4, inf)')
        """
        from calibrant.cells.score_partition import ScorePartition, edge_ranks

        prepared = as_scores(scores)
        ranks = edge_ranks(prepared.size, Integer(1).check("n_bins", n_bins))
        cells = ScorePartition.atoms(kernels.order_statistics(prepared, ranks))
        no_labels = np.zeros(prepared.size, dtype=np.uint8)
        return cells.cut_by_cells(kernels.count(prepared, no_labels, cells.cuts)[0])

    @staticmethod
    def atoms(values: ArrayLike) -> ScorePartition:
        """One region per score value, for scores known beforehand to take finitely many values.

        Other scores fall into the regions in between.

        >>> Partition.atoms([0.0, 1.0]).describe()
        ('(-inf, 0)', '{0}', '(0, 1)', '{1}', '(1, inf)')
        """
        from calibrant.cells.score_partition import ScorePartition

        return ScorePartition(np.unique(as_numbers(values, "values") + 0.0), atoms=True)

    @staticmethod
    def from_function(
        function: Callable[[Any], ArrayLike], regions: int | Iterable[Hashable]
    ) -> FunctionPartition:
        """Regions named by any function of the inputs that was fixed before the labels were seen.

        Parameters
        ----------
        function : callable
            Takes the inputs and returns one region per row.
        regions : int or iterable
            The number of regions, if the function returns numbers from 0; or the values that it may
            return.

        Examples
        --------
        >>> import numpy as np
        >>> young_old = Partition.from_function(lambda X: np.asarray(X)[:, 0] >= 40, [False, True])
        >>> young_old.assign([[25.0], [61.0]])
        array([0, 1])
        """
        from calibrant.cells.function_partition import FunctionPartition

        if not callable(function):
            raise InvalidTypeError("function", "be callable", got=type(function).__name__)
        if isinstance(regions, int | np.integer):
            count = Integer(1).check("regions", regions)
            if count > _MOST_REGIONS:
                raise InvalidValueError("regions", f"be at most {_MOST_REGIONS}", got=str(count))
            values: tuple[Hashable, ...] = tuple(range(count))
        elif isinstance(regions, Iterable) and not isinstance(regions, str | bytes):
            values = tuple(regions)
        else:
            raise InvalidTypeError(
                "regions", "be an int or the values the function may return", got=shown(regions)
            )
        if not all(isinstance(value, Hashable) for value in values):
            raise InvalidTypeError("regions", "be hashable values", got=shown(values))
        if not values or len(set(values)) != len(values):
            raise InvalidValueError(
                "regions", "be distinct values, at least one", got=shown(values)
            )
        return FunctionPartition(function, values)

    @staticmethod
    def from_tree(tree: Any) -> FunctionPartition:
        """The leaves of a fitted scikit-learn decision tree, grown on rows other than those that
        will be tallied.
        """
        from calibrant.cells.function_partition import FunctionPartition

        structure = getattr(tree, "tree_", None)
        if structure is None or not hasattr(tree, "apply"):
            raise InvalidTypeError(
                "tree", "be a fitted scikit-learn decision tree", got=type(tree).__name__
            )
        leaves = np.flatnonzero(structure.children_left == -1)
        content = hashlib.sha256()
        for name in ("children_left", "children_right", "feature", "threshold"):
            content.update(np.ascontiguousarray(getattr(structure, name)).tobytes())
        return FunctionPartition(tree.apply, tuple(leaves.tolist()), "leaf", content.hexdigest())

    @staticmethod
    def by_segment(
        parts: Mapping[Hashable, ScorePartition], other: ScorePartition | None = None
    ) -> SegmentedPartition:
        """Bins of the score within each segment: every segment has its own regions, all within one
        error budget.

        `other` is the partition for all segments without their own bins. Without it, these segments
        raise an error.

        >>> bins = Partition.by_segment({"north": Partition.fixed_width(2),
        ...     "south": Partition.fixed_width(1)})
        >>> bins.describe()
        ('north: [0, 0.5)', 'north: [0.5, 1]', 'south: [0, 1]')
        """
        from calibrant.cells.segmented_partition import SegmentedPartition

        return SegmentedPartition(parts, other)
