"""Columns that are torch tensors or CuPy arrays.

On a GPU, rows are drawn, and bins are cut, counted and looked up there. All other work, and all
reports of faulty rows, use batches on the host, as for every other source, so the answers and the
errors are the same.
"""

import math
from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import suppress
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant._optional import pa
from calibrant._typing import ArrayLike, FloatArray, IntArray, Seed
from calibrant.cells.knots import Knots
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidValueError
from calibrant.kernels import device, device_curves, device_draws, device_knots, libraries
from calibrant.params.labels import Classes, settle_classes
from calibrant.params.random import Draw, RandomSource, RowSums, draw_key, enough, equal_step
from calibrant.sample.added_columns import AddColumns
from calibrant.sample.batch import BatchRows, Columns
from calibrant.sample.counts import Counted, of_one_label
from calibrant.sample.facts import Limits, Reach
from calibrant.sample.faults import Place
from calibrant.sample.rows import Rows, Split
from calibrant.sample.sources.memory import MemoryRows
from calibrant.sample.taken_rows import Sizes, Taken

_BATCH_ROWS = 1 << 22  # on the host at a time
_GLANCE = 1 << 10  # rows that show whether there are many different scores
_SCORES = ("float32", "float64")
_LABELS = ("bool", "uint8", "int8", "int32", "int64", "float32", "float64")


class DeviceData(Rows):
    """Columns by name: torch, CuPy or numpy arrays of shape (n,) or (n, 1)."""

    def __init__(self, arrays: Mapping[str, Any], columns: Columns) -> None:
        super().__init__(
            {name: _flat(array) for name, array in arrays.items()}, columns, progress=False
        )
        lengths = {name: int(arrays[name].shape[0]) for name in columns.named.values()}
        if len(set(lengths.values())) > 1:
            raise InvalidValueError("columns", "have the same number of rows", str(lengths))
        self._rows = next(iter(lengths.values()))
        self._known_extremes: dict[str, tuple[Any, Any]] = {}
        self._known_sums: dict[tuple[str, str | None], RowSums] = {}

    def names_in(self, source: Any) -> list[str]:
        """The names of the columns."""
        return list(source)

    def known_rows(self) -> int | None:
        """The length of the arrays."""
        return self._rows

    def batches(self, names: list[str]) -> Generator[tuple[Any, Place]]:
        """Batches, copied to the host one after the other."""
        for start in range(0, self._rows, _BATCH_ROWS):
            arrays = {name: self._source[name][start : start + _BATCH_ROWS] for name in names}
            batch = {name: pa.array(libraries.to_host(array)) for name, array in arrays.items()}
            yield pa.RecordBatch.from_pydict(batch), Place(0, start)

    def _on_gpu(self) -> bool:
        """Whether the scores can be processed where they are: on a GPU, and finite."""
        scores = self._source[self.columns.score]
        return (
            self.columns.segment is None
            and self.columns.pending is None
            and self._rows > 0
            and libraries.on_gpu(scores)
            and libraries.dtype(scores) in _SCORES
            and all(map(math.isfinite, self._extremes(self.columns.score)))
        )

    def _extremes(self, name: str) -> tuple[Any, Any]:
        """The smallest and the largest entry of a column, computed once."""
        if name not in self._known_extremes:
            self._known_extremes[name] = device.extremes(self._source[name])
        return self._known_extremes[name]

    def order_statistics(self, ranks: Mapping[Hashable, IntArray]) -> dict[Hashable, FloatArray]:
        """The exact scores at the given ranks of each segment."""
        if not self._draws_on_gpu():
            return super().order_statistics(ranks)
        scores = self._source[self.columns.score]
        without = None if self._left_out is None else scores[self._drawn(self._left_out[0])]
        return {None: device_draws.order_statistics(scores, ranks[None], without)}

    def sample(self, draw: Draw) -> Taken:
        """The drawn rows, without their labels."""
        if not self._draws_on_gpu():
            return super().sample(draw)
        return self._taken(self._drawn(draw))

    def _taken(self, index: Any) -> Taken:
        """The rows at these positions, sorted: a GPU sorts them much faster than the host would."""
        scores = self._source[self.columns.score]
        with device.working_on(scores):
            ordered = libraries.to_host(device_draws.ascending(scores[index]))
        sizes = Sizes({None: self._rows})
        return Taken(self._rows, ((Place(0, 0), BatchRows(ordered)),), sizes, fixed=True)

    def first_rows(
        self, random_state: Seed, most: Mapping[Hashable, int], sizes: Mapping[Hashable, int]
    ) -> Split:
        """Draw exactly `most` rows, those with the smallest hashes, on the device."""
        if not self._draws_on_gpu():
            return super().first_rows(random_state, most, sizes)
        key = draw_key(random_state, self.fingerprint())
        limit = enough(most[None], sizes[None])
        scores = self._source[self.columns.score]
        index, limit = device_draws.smallest_drawn(scores, key, limit, most[None])
        return self._split(self._taken(index), Draw(key, limits={None: limit}))

    def row_sums(self) -> RowSums:
        """Return the sums from which the fingerprint of the rows is computed: once, on the device."""
        kinds = self._kinds()
        scores = self._source[self.columns.score]
        some = scores[:: equal_step(self._rows, _GLANCE)]
        if kinds is None or RowSums.of([libraries.to_host(some)]).cells is not None:
            return super().row_sums()  # the host counts rows with few different values
        columns = (self.columns.score, self.columns.label)
        if columns not in self._known_sums:
            codes = self._source[str(self.columns.label)] == kinds[1]
            found = device_draws.sums_of_rows(scores, codes)
            self._known_sums[columns] = RowSums(dict(enumerate(found)), cells=None)
        return self._known_sums[columns]

    def hash_limit(self, key: int, rows: int) -> int:
        """Return the limit that draws exactly `rows` rows."""
        if not self._draws_on_gpu():
            return super().hash_limit(key, rows)
        scores = self._source[self.columns.score]
        return device_draws.smallest_drawn(scores, key, enough(rows, self._rows), rows)[1]

    def _draws_on_gpu(self) -> bool:
        """Whether rows can be drawn where they are: by position."""
        return not self.columns.keyed and self._on_gpu()

    def _drawn(self, draw: Draw) -> Any:
        """Positions of the drawn rows, on the device."""
        limit = draw.limits.get(None, draw.limit)
        return device_draws.drawn(self._source[self.columns.score], draw.key, limit)

    def count(
        self, partition: Partition, *, draw: Draw | None = None, weighted: bool = False
    ) -> Counted:
        """Count rows by region and label."""
        counted = (
            None
            if weighted or self.columns.group is not None
            else self._count_on_gpu(partition, draw)
        )
        return (
            super().count(partition, draw=draw, weighted=weighted) if counted is None else counted
        )

    def _kinds(self) -> tuple[Any, Any] | None:
        """Return the two labels of rows that can be counted on a GPU; None if the host must count."""
        if self.columns.label is None or not self._on_gpu():
            return None
        scores = self._source[self.columns.score]
        labels = self._source[self.columns.label]
        if not libraries.same_place(scores, labels) or libraries.dtype(labels) not in _LABELS:
            return None
        low, high = self._extremes(self.columns.label)
        whole = not libraries.dtype(labels).startswith("float")
        if low != high and (
            (whole and high - low == 1) or device.every(lambda y: (y == low) | (y == high), labels)
        ):
            return low, high
        return None

    def _count_on_gpu(self, partition: Partition, draw: Draw | None) -> Counted | None:
        """Count on the GPU, or return None if the host must count.

        Drawn rows are counted separately and subtracted.
        """
        bins = partition.bins_by_segment.get(None)
        kinds = self._kinds()
        scores = self._source[self.columns.score]
        if (
            bins is None
            or kinds is None
            or not _inside(self._extremes(self.columns.score), bins)
            or (draw is not None and not self._draws_on_gpu())
        ):
            return None
        codes = self._source[str(self.columns.label)] == kinds[1]
        rows, hits = device.count(scores, codes, bins.count_cuts)
        if draw is not None:
            index = self._drawn(draw)
            drawn_rows, drawn_hits = device.count(scores[index], codes[index], bins.count_cuts)
            rows = rows - drawn_rows
            hits = hits - drawn_hits
        counts, positives, uncounted = bins.gather(rows, hits)
        left_out = int(hits[bins.count_regions < 0].sum())
        negative = of_one_label(counts - positives, uncounted - left_out)
        positive = of_one_label(positives, left_out)
        first = {
            kinds[0]: Place(0, device.first(~codes)),
            kinds[1]: Place(0, device.first(codes)),
        }
        return Counted({kinds[0]: negative, kinds[1]: positive}, first, reach=self._reach())

    def _reach(self) -> Reach:
        """The range of all scores."""
        return Reach(*(score + 0.0 for score in self._extremes(self.columns.score)))

    def drawn_rows(self, whole: Rows, classes: Classes, most: int | None = None) -> MemoryRows:
        """The rows that were drawn before these remained, with their labels."""
        kinds = self._kinds()
        if kinds is None or self._left_out is None or not self._draws_on_gpu():
            return super().drawn_rows(whole, classes, most)
        index = self._drawn(self._left_out[0])
        index = index[:: equal_step(index.shape[0], most)]
        codes = self._source[str(self.columns.label)][index] == classes.positive
        scores = self._source[self.columns.score][index]
        return MemoryRows(
            libraries.to_host(scores), libraries.to_host(codes).astype(np.uint8), classes
        )

    def known_classes(self) -> Classes:
        """Both classes."""
        kinds = self._kinds()
        if kinds is None:
            return super().known_classes()
        seen = dict.fromkeys(kinds, 1)
        return settle_classes(seen, classes=self._classes, pos_label=self._pos_label)

    def count_knots(
        self, knots: Knots, classes: Classes, source: RandomSource
    ) -> tuple[IntArray, Reach]:
        """Count rows by place, half and label, without drawn rows; see `Knots.count`."""
        bins = knots.counting[0].bins_by_segment.get(None)
        kinds = self._kinds()
        if bins is None or kinds is None or not self._draws_on_gpu():
            return super().count_knots(knots, classes, source)
        if classes.positive not in kinds or not _inside(self._extremes(self.columns.score), bins):
            return super().count_knots(knots, classes, source)
        cells = bins.cuts, np.column_stack(knots.counting[1:]).astype(np.float64)
        scores = self._source[self.columns.score]
        codes = self._source[str(self.columns.label)] == classes.positive
        counts = device_knots.count(scores, codes, source.key, cells, knots.n_places)
        if self._left_out is not None:
            index = self._drawn(self._left_out[0])
            counts -= device_knots.count(
                scores[index], codes[index], source.key, cells, knots.n_places, index
            )
        return counts, self._reach()

    def apply(self, added: AddColumns) -> dict[str, Any]:
        """The numeric columns, on the device of the scores, next to the existing ones.

        NaN for null.
        """
        added.check_free(self._source)
        batches = [added(batch) for batch, _ in self.batches(added.to_read)]
        scores = self._source[self.columns.score]
        found = {}
        for name in added.names:
            columns = [batch.column(name).to_numpy(zero_copy_only=False) for batch in batches]
            values = np.concatenate(columns) if columns else np.empty(0)
            if values.dtype.kind == "f":
                found[name] = libraries.like(values, scores)
        return {**self._source, **found}


def rows_on_gpu(scores: Any, y: Any) -> DeviceData | None:
    """Return scores and labels that can be counted on their GPU; None if they must be read on the
    host.
    """
    if not (libraries.on_gpu(scores) and libraries.on_gpu(y)):
        return None
    scores = _flat(scores)
    y = _flat(y)
    if scores.ndim != 1 or scores.shape != y.shape:
        return None
    data = DeviceData({"scores": scores, "y": y}, Columns("scores", "y"))
    return None if data._kinds() is None else data


def entries_of(
    partition: Partition,
    table: NDArray[Any],
    scores: ArrayLike,
    segments: ArrayLike | None = None,
    *,
    on_curve: bool = False,
    positive_column: Literal[0, 1] = 1,
    threads: int = 1,
    familiar: Limits = (-math.inf, math.inf),
    check: Callable[[Any], None] = lambda scores: None,
) -> Any:
    """The table entry or row of each score's region, in the scores' library and on their device.

    With `on_curve` the rows of the table are lines, and the result is the value at each score, or
    limits around it: see `calibrant.kernels.follow`. If a score may lie outside `familiar`, `check`
    is called with the scores, or with the smallest and the largest.
    """
    bins = partition.bins_by_segment.get(None)
    if segments is None and bins is not None:
        limits = (max(bins.low, familiar[0]), min(bins.high, familiar[1]))
        flat = _scores_on_gpu(scores)
        # the code below finds a score outside the limits again, and reports it
        with suppress(kernels.OutsideLimitsError):
            if flat is not None:
                find = device_curves.follow if on_curve else device.look_up
                return find(flat, bins.cuts, table, limits=limits)
            if _is_plain(scores) and table.dtype != np.bool_:
                look = kernels.follow if on_curve else kernels.look_up
                return look(scores, bins.cuts, table, limits=limits, threads=threads)
        if flat is not None and familiar != (-math.inf, math.inf):
            with suppress(kernels.OutsideLimitsError):
                found = find(flat, bins.cuts, table, limits=(bins.low, bins.high))
                check(np.array(device.extremes(flat)))
                return found
    prepared = partition.prepare(scores, segments, positive_column=positive_column)
    check(prepared)
    if table.dtype == np.bool_:
        return libraries.like(table[partition.regions_of(prepared, threads=threads)], scores)
    entries = partition.follow if on_curve else partition.look_up
    return libraries.like(entries(prepared, table, threads=threads), scores)


def _scores_on_gpu(scores: ArrayLike) -> Any:
    """The scores as a device array of shape (n,); None if they cannot be looked up where they are."""
    if not libraries.on_gpu(scores):
        return None
    flat = _flat(scores)
    is_column = flat.ndim == 1 and flat.shape[0] > 0
    return flat if is_column and libraries.dtype(flat) in _SCORES else None


def _inside(ends: tuple[Any, Any], partition: ScorePartition) -> bool:
    low, high = ends
    return bool(partition.low <= low and high <= partition.high)


def _is_plain(scores: ArrayLike) -> TypeGuard[NDArray[Any]]:
    """Return whether these are numpy scores that need no conversion."""
    return (
        type(scores) is np.ndarray and scores.ndim == 1 and scores.dtype in (np.float64, np.float32)
    )


def _flat(array: Any) -> Any:
    """The array without the axis of a single column, and detached from the gradient graph."""
    flat = array[:, 0] if len(array.shape) == 2 and array.shape[1] == 1 else array
    return flat.detach() if hasattr(flat, "detach") else flat
