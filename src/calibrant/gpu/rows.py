"""Columns that are torch tensors or CuPy arrays.

On a GPU, rows are drawn, and bins are cut, counted and looked up there. All other work, and all
reports of faulty rows, use batches on the host, as for every other source, so the answers and the
errors are the same.
"""

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from calibrant._optional import pa
from calibrant._typing import FloatArray, IntArray, Seed
from calibrant.cells.knots import Knots
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidValueError
from calibrant.gpu import draws, kernels
from calibrant.gpu.entries import SCORE_TYPES, flat_array
from calibrant.params import tensors
from calibrant.params.labels import Classes
from calibrant.params.random import Draw, RandomSource, RowSums, draw_key, enough, equal_step
from calibrant.sample.added_columns import AddColumns
from calibrant.sample.batch import BatchRows, Columns
from calibrant.sample.counts import Counted, of_one_label
from calibrant.sample.facts import Reach
from calibrant.sample.faults import Place
from calibrant.sample.order_statistics import Level
from calibrant.sample.rows import Rows, Split
from calibrant.sample.sources.arrow import ArrowData, Part
from calibrant.sample.sources.memory import MemoryRows
from calibrant.sample.taken_rows import Survey, Taken

_BATCH_ROWS = 1 << 22  # on the host at a time
_GLANCE = 1 << 10  # rows that show whether there are many different scores
_LABELS = ("bool", "uint8", "int8", "int32", "int64", "float32", "float64")


class DeviceData(ArrowData):
    """Columns by name: torch, CuPy or numpy arrays of shape (n,) or (n, 1)."""

    def __init__(self, arrays: Mapping[str, Any], columns: Columns) -> None:
        flat = {name: flat_array(array) for name, array in arrays.items()}
        columns.check(list(flat))
        lengths = {name: int(arrays[name].shape[0]) for name in columns.named.values()}
        if len(set(lengths.values())) > 1:
            raise InvalidValueError("columns", "have the same number of rows", str(lengths))
        self._rows = lengths[columns.score]
        part = Part(self._read)
        rows = [self._rows]
        super().__init__([part], None, columns, names=list(flat), part_rows=rows, progress=False)
        self._source = flat
        self._known_extremes: dict[str, tuple[Any, Any]] = {}
        self._known_draws: dict[tuple[int, int], Any] = {}

    def _read(self, names: list[str] | None) -> Iterator[Any]:
        """Batches, copied to the host one after the other."""
        for start in range(0, self._rows, _BATCH_ROWS):
            arrays = {name: self._source[name][start : start + _BATCH_ROWS] for name in names or ()}
            batch = {name: pa.array(tensors.to_host(array)) for name, array in arrays.items()}
            yield pa.RecordBatch.from_pydict(batch)

    @property
    def _scores(self) -> Any:
        """The scores as a tensor on a GPU; None if they are elsewhere."""
        return kernels.gpu_tensor(self._source[self.columns.score])

    @property
    def _labels(self) -> Any:
        """The labels as a tensor on a GPU; None if they are elsewhere."""
        return kernels.gpu_tensor(self._source[str(self.columns.label)])

    def _on_gpu(self) -> bool:
        """Whether the scores can be processed where they are: on a GPU, and finite."""
        return (
            self.columns.segment is None
            and self.columns.pending is None
            and self._rows > 0
            and tensors.dtype(self._source[self.columns.score]) in SCORE_TYPES
            and self._scores is not None
            and all(map(math.isfinite, self._extremes(self.columns.score)))
        )

    def _extremes(self, name: str) -> tuple[Any, Any]:
        """The smallest and the largest entry of a column, computed once."""
        if name not in self._known_extremes:
            self._known_extremes[name] = kernels.ends_of(kernels.gpu_tensor(self._source[name]))
        return self._known_extremes[name]

    def order_statistics(self, ranks: Mapping[Hashable, IntArray]) -> dict[Hashable, FloatArray]:
        """The exact scores at the given ranks of each segment."""
        if not ranks or not self._draws_on_gpu():
            return super().order_statistics(ranks)
        draw = self._left_out[0]
        without = None if draw is None else self._scores[self._drawn(draw)]
        return {None: draws.order_statistics(self._scores, ranks[None], without)}

    def sample(self, draw: Draw, levels: Mapping[Hashable, Level] | None = None) -> Taken:
        """The drawn rows, without their labels."""
        if not self._draws_on_gpu():
            return super().sample(draw, levels)
        return self._taken(self._drawn(draw))

    def _taken(self, index: Any) -> Taken:
        """The rows at these positions, sorted: a GPU sorts them much faster than the host would."""
        ordered = tensors.to_host(self._scores[index].sort()[0])
        survey = Survey({None: self._rows})
        return Taken(self._rows, ((Place(0, 0), BatchRows(ordered)),), survey, fixed=True)

    def first_rows(
        self,
        random_state: Seed,
        most: Mapping[Hashable, int],
        ranks: Mapping[Hashable, IntArray] | None = None,
    ) -> Split:
        """Draw exactly `most` rows, those with the smallest hashes, on the device."""
        if not self._draws_on_gpu():
            return super().first_rows(random_state, most, ranks)
        key = draw_key(random_state, self.fingerprint())
        limit = enough(most[None], self._rows)
        index, limit = draws.smallest_drawn(self._scores, key, limit, most[None])
        return self._split(self._taken(index), Draw(key, limits={None: limit}))

    def row_sums(self) -> RowSums:
        """Return the sums from which the fingerprint of the rows is computed: once, on the device."""
        kinds = None if self._values() in self._sums else self._kinds()
        if kinds is not None:
            some = tensors.to_host(self._scores[:: equal_step(self._rows, _GLANCE)])
            if RowSums.of([some]).cells is None:  # the host counts rows with few different values
                found = draws.sums_of_rows(self._scores, self._labels == kinds[1])
                self.note_sums(RowSums(dict(zip(kinds, found, strict=True)), cells=None))
        return super().row_sums()

    def _draws_on_gpu(self) -> bool:
        """Whether rows can be drawn where they are: by position."""
        return not self.columns.keyed and self._on_gpu()

    def _drawn(self, draw: Draw) -> Any:
        """Positions of the drawn rows, on the device."""
        which = draw.key, draw.limits.get(None, draw.limit)
        if which not in self._known_draws:
            self._known_draws[which] = draws.drawn(self._scores, *which)
        return self._known_draws[which]

    def count(
        self, partition: Partition, *, draw: Draw | None = None, weighted: bool = False
    ) -> Counted:
        """Count rows by region and label: on the GPU if possible, else on the host.

        On the GPU drawn rows are counted separately and subtracted.
        """
        kinds = None if weighted or self.columns.group is not None else self._kinds()
        bins = None if kinds is None else self._bins_around(partition)
        if kinds is None or bins is None or (draw is not None and not self._draws_on_gpu()):
            return super().count(partition, draw=draw, weighted=weighted)
        codes = self._labels == kinds[1]
        rows, hits = kernels.count(self._scores, codes, bins.count_cuts)
        if draw is not None:
            index = self._drawn(draw)
            drawn_rows, drawn_hits = kernels.count(
                self._scores[index], codes[index], bins.count_cuts
            )
            rows = rows - drawn_rows
            hits = hits - drawn_hits
        counts, positives, uncounted = bins.gather(rows, hits)
        left_out = int(hits[bins.count_regions < 0].sum())
        negative = of_one_label(counts - positives, uncounted - left_out)
        positive = of_one_label(positives, left_out)
        first = {
            kinds[0]: Place(0, _first(~codes)),
            kinds[1]: Place(0, _first(codes)),
        }
        return Counted({kinds[0]: negative, kinds[1]: positive}, first, reach=self._reach())

    def _kinds(self) -> tuple[Any, Any] | None:
        """Return the two labels of rows that can be counted on a GPU; None if the host must count."""
        if self.columns.label is None or not self._on_gpu():
            return None
        kind = tensors.dtype(self._source[self.columns.label])
        labels = self._labels if kind in _LABELS else None
        if labels is None or labels.device != self._scores.device:
            return None
        low, high = self._extremes(self.columns.label)
        if low != high and (
            (not kind.startswith("float") and high - low == 1)
            or bool(((labels == low) | (labels == high)).all())
        ):
            return low, high
        return None

    def _bins_around(self, partition: Partition) -> ScorePartition | None:
        """The bins of a partition without segments, if they contain all scores."""
        bins = partition.bins_by_segment.get(None)
        low, high = self._extremes(self.columns.score)
        return bins if bins is not None and bins.low <= low and high <= bins.high else None

    def _reach(self) -> Reach:
        """The range of all scores."""
        return Reach(*(score + 0.0 for score in self._extremes(self.columns.score)))

    def drawn_rows(self, whole: Rows, classes: Classes, most: int | None = None) -> MemoryRows:
        """The rows that were drawn before these remained, with their labels."""
        draw = self._left_out[0]
        if self._kinds() is None or draw is None or not self._draws_on_gpu():
            return super().drawn_rows(whole, classes, most)
        index = self._drawn(draw)
        index = index[:: equal_step(index.shape[0], most)]
        scores = tensors.to_host(self._scores[index])
        codes = tensors.to_host(self._labels[index] == classes.positive)
        return MemoryRows(scores, codes.astype(np.uint8), classes)

    def count_knots(
        self, knots: Knots, classes: Classes, source: RandomSource
    ) -> tuple[IntArray, Reach]:
        """Count rows by place, half and label, without drawn rows; see `Knots.count`."""
        can_count = classes.positive in (self._kinds() or ()) and self._draws_on_gpu()
        bins = self._bins_around(knots.counting[0]) if can_count else None
        if bins is None:
            return super().count_knots(knots, classes, source)
        cells = bins.cuts, np.column_stack(knots.counting[1:]).astype(np.float64)
        codes = self._labels == classes.positive
        counts = draws.count_knots(self._scores, codes, source.key, cells, knots.n_places)
        if self._left_out[0] is not None:
            index = self._drawn(self._left_out[0])
            counts -= draws.count_knots(
                self._scores[index], codes[index], source.key, cells, knots.n_places, index
            )
        return counts, self._reach()

    def apply(self, added: AddColumns) -> dict[str, Any]:
        """The numeric columns, on the device of the scores, next to the existing ones.

        NaN for null.
        """
        added.check_free(self._source)
        batches = [added(batch) for batch, _ in self.batches(added.to_read)]
        found = {}
        for name in added.names:
            columns = [batch.column(name).to_numpy(zero_copy_only=False) for batch in batches]
            values = np.concatenate(columns) if columns else np.empty(0)
            if values.dtype.kind == "f":
                found[name] = tensors.like(values, self._source[self.columns.score])
        return {**self._source, **found}


def _first(mask: Any) -> int:
    """The index of the first True; there must be one."""
    return int(mask.byte().argmax())


def rows_on_gpu(scores: Any, y: Any) -> DeviceData | None:
    """Return scores and labels that can be counted on their GPU; None if they must be read on the
    host.
    """
    if not (tensors.on_gpu(scores) and tensors.on_gpu(y)):
        return None
    scores = flat_array(scores)
    y = flat_array(y)
    if scores.ndim != 1 or scores.shape != y.shape:
        return None
    data = DeviceData({"scores": scores, "y": y}, Columns("scores", "y"))
    return None if data._kinds() is None else data
