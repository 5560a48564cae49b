"""Torch tensors and CuPy arrays: counted, and looked up, on the device where they are."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.kernels import device
from calibrant.partition import Partition, ScorePartition, SegmentedPartition
from calibrant.rows.adding import AddColumns, LookUp
from calibrant.rows.base import ScoredData
from calibrant.rows.batch import BatchRows, Columns
from calibrant.rows.counting import Counted, KindSums, KindWeights
from calibrant.rows.draw import Draw, id_keys
from calibrant.rows.faults import Faults, Place
from calibrant.rows.sampling import Sample, Seal
from calibrant.rows.values import Values
from calibrant.rows.work import Result, Work

_HOST_ROWS = 1 << 22  # ids that are on the host at a time
_GLANCE = 1 << 14


class DeviceData(ScoredData):
    """Columns that are one-dimensional arrays of one library on one device, by name."""

    def __init__(self, arrays: Mapping[str, Any], columns: Columns) -> None:
        columns.check(list(arrays))
        self._arrays = dict(arrays)
        self.columns = columns
        lengths = {name: arrays[name].shape[0] for name in columns.named.values()}
        if len(set(lengths.values())) > 1:
            raise InvalidValueError(f"columns must have the same number of rows; got {lengths}")
        self._rows = next(iter(lengths.values()))

    def _column(self, part: str) -> Any:
        return self._arrays[self.columns.named[part]]

    def known_rows(self) -> int | None:
        """The length of the arrays."""
        return int(self._rows)

    def fold(self, work: Work[Result]) -> Result:
        """Refused: no batches are carried away from a device."""
        raise InvalidTypeError(f"{type(work).__name__} must have batches in memory; got arrays on a device")

    def _by_segment(self) -> Iterator[tuple[Any, Any]]:
        """Each segment, and the rows of it; None and everything where there are none."""
        if self.columns.segment is None:
            yield None, slice(None)
            return
        segment = self._column("segment")
        for name in _unique(segment):
            yield name, segment == name

    def sizes(self) -> dict[Any, int]:
        """Rows of each segment."""
        return {name: int(self._column("score")[rows].shape[0]) for name, rows in self._by_segment()}

    def values(self, most: int) -> dict[Any, Values]:
        """The distinct scores of all rows (None) and of each segment, where they are at most so many."""
        scores = self._finite_scores()
        groups = {None: slice(None)} | dict(self._by_segment())
        found = {name: _values(scores[rows], most) for name, rows in groups.items()}
        extremes = float(scores.min()), float(scores.max())
        if extremes[0] < 0.0 or extremes[1] > 1.0:
            raise InvalidValueError(f"scores must be probabilities in [0, 1]; got {extremes[0]:g} to {extremes[1]:g}")
        return found

    def order_statistics(self, ranks: Mapping[Any, IntArray]) -> dict[Any, FloatArray]:
        """Scores of the given ranks of each segment, exactly."""
        scores = self._finite_scores()
        rows = dict(self._by_segment())
        return {name: device.order_statistics(scores[rows[name]], wanted) for name, wanted in ranks.items()}

    def _finite_scores(self) -> Any:
        scores = self._column("score")
        bad = device.first_nonfinite(scores)
        if bad >= 0:
            count = int((~_library(scores).isfinite(scores)).sum())
            Faults({(self.columns.score, "be finite"): (count, Place(0, bad))}).check()
        return scores

    def _drawn(self, draw: Draw) -> IntArray:
        """Places of the drawn rows."""
        if self.columns.id is None:
            generator = np.random.default_rng(draw.seed)
            size = generator.binomial(self._rows, draw.share)
            return np.sort(generator.choice(self._rows, size, replace=False, shuffle=False)).astype(np.int64)
        import pyarrow as pa

        ids, found = self._column("id"), []
        for start in range(0, self._rows, _HOST_ROWS):
            here = pa.array(_on_host(ids[start : start + _HOST_ROWS]))
            found.append(start + np.flatnonzero(draw.chosen(id_keys(here, self.columns.id))))
        return np.concatenate(found)

    def _taken(self, index: IntArray) -> "DeviceData":
        place = _like(index, self._column("score"))
        return DeviceData({name: self._arrays[name][place] for name in self.columns.named.values()}, self.columns)

    def sample(self, draw: Draw) -> Sample:
        """Scores of a random part of the rows, chosen by their places or ids."""
        index = self._drawn(draw)
        taken = self._taken(index)
        scores = _on_host(taken._column("score")).astype(np.float64)
        parts = {
            name: (_on_host(taken._column("score")[rows]).astype(np.float64),) for name, rows in taken._by_segment()
        }
        return Sample(parts, _seal(index, scores))

    def count(self, partition: Partition, *, draw: Draw | None = None, weighted: bool = False) -> Counted:
        """Count rows by region and kind of label, in one pass for labels 0 and 1; less those that were drawn."""
        partition = self._countable(partition, weighted)
        if draw is None:
            return self._counted(partition, weighted)
        if weighted:
            raise InvalidValueError("split must be None for weighted rows on a device; got a split")
        index = self._drawn(draw)
        taken = self._taken(index)
        everything, drawn = self._counted(partition, False), taken._counted(partition, False)
        kinds = {
            kind: KindSums(
                sums.counts - drawn.kinds[kind].counts if kind in drawn.kinds else sums.counts,
                sums.uncounted - (drawn.kinds[kind].uncounted if kind in drawn.kinds else 0),
            )
            for kind, sums in everything.kinds.items()
        }
        scores = _on_host(taken._column("score")).astype(np.float64)
        return Counted(kinds, _seal(index, scores), everything.faults)

    def _counted(self, partition: Any, weighted: bool) -> Counted:
        if isinstance(partition, ScorePartition):
            return self._count_bins(partition, slice(None), weighted)
        total, known = Counted(), dict(zip(partition.segments, partition.parts, strict=True))
        offsets = dict(zip(partition.segments, partition.offsets[:-1].tolist(), strict=True))
        for name, rows in self._by_segment():
            if name not in known:
                raise InvalidValueError(f"segments must be among those the bins were cut for; got {name!r}")
            here = self._count_bins(known[name], rows, weighted)
            total += Counted({kind: _placed(sums, offsets[name], partition) for kind, sums in here.kinds.items()})
        return total

    def _count_bins(self, part: ScorePartition, rows: Any, weighted: bool) -> Counted:
        scores, labels = self._column("score")[rows], self._column("label")[rows]
        self._check_range(scores, part)
        kinds, codes = self._kinds(labels)
        if len(kinds) > 2:
            one = KindSums(np.ones(part.n_regions, dtype=np.int64))
            return Counted(dict.fromkeys(kinds, one))
        if weighted:
            return self._weighed(part, scores, codes, self._column("weight")[rows], kinds)
        cells, hits, bad = device.tally(scores, codes, part.count_cuts)
        if bad:
            self._finite_scores()
        return Counted(dict(zip(kinds, _per_kind(part, cells, hits), strict=True)))

    def _kinds(self, labels: Any) -> tuple[tuple[Any, ...], Any]:
        """The kinds of label, and labels coded by them; the labels themselves where they are 0 and 1."""
        codes, bad = device.encode(labels, 0, 1)
        if bad < 0:
            return (0, 1), codes
        low, high = labels.min().item(), labels.max().item()
        codes, strange = device.encode(labels, low, high)
        return ((low, high), codes) if strange < 0 else ((low, labels[strange].item(), high), codes)

    def _weighed(self, part: ScorePartition, scores: Any, codes: Any, weights: Any, kinds: Any) -> Counted:
        cells, hits, bad = device.tally(scores, codes, part.count_cuts)
        if bad:
            self._finite_scores()
        unfit = ~((weights >= 0.0) & (weights <= 1e140))
        if count := int(unfit.sum()):
            first = Place(0, int(unfit.nonzero()[0][0]))
            Faults({(str(self.columns.weight), "be finite, >= 0 and at most 1e+140"): (count, first)}).check()
        sums, regions, n = (
            device.weighted(scores, codes, weights, part.count_cuts),
            part.count_regions,
            part.n_regions,
        )
        smallest, largest = np.full(n, np.inf), np.full(n, -np.inf)
        inside = regions >= 0
        np.minimum.at(smallest, regions[inside], sums.smallest[inside])
        np.maximum.at(largest, regions[inside], sums.largest[inside])
        w, w2, wy, w2y = (sums_of.regrouped(regions, n) for sums_of in (sums.w, sums.w2, sums.wy, sums.w2y))
        per_kind = _per_kind(part, cells, hits)
        weighed = (KindWeights(w - wy, w2 - w2y, smallest, largest), KindWeights(wy, w2y, smallest, largest))
        pairs = zip(kinds, per_kind, weighed, strict=True)
        return Counted({kind: KindSums(one.counts, one.uncounted, these) for kind, one, these in pairs})

    def _check_range(self, scores: Any, part: ScorePartition) -> None:
        if (part.low == -np.inf and part.high == np.inf) or not scores.shape[0]:
            return
        low, high = float(scores.min()), float(scores.max())
        if low < part.low or high > part.high:
            raise InvalidValueError(
                f"column {self.columns.score!r} must lie between {part.low:g} and {part.high:g}; "
                f"got {low:g} to {high:g}"
            )

    def apply(self, added: AddColumns) -> dict[str, Any]:
        """The columns that hold numbers, as arrays on the device, beside those that are there."""
        if not isinstance(added, LookUp) or not isinstance(added.partition, ScorePartition):
            raise InvalidTypeError(
                "calibrator must have bins of the score, without segments, to be applied on a device"
            )
        names = [name for name, values in added.table.items() if not isinstance(values, tuple)]
        table = np.column_stack([np.asarray(added.table[name]) for name in names])
        scores = self._finite_scores()
        self._check_range(scores, added.partition)
        looked_up = device.look_up(scores, added.partition.cuts, table)
        return self._arrays | {name: looked_up[:, number] for number, name in enumerate(names)}


def on_device(scores: Any, y: Any) -> DeviceData:
    """Scores and labels, given as two arrays."""
    if not device.is_device_array(y):
        raise InvalidTypeError(f"y must be on the device where the scores are; got {type(y).__name__}")
    return DeviceData({"scores": scores, "y": y}, Columns("scores", "y"))


def look_up_on_device(partition: Partition, scores: Any, table: FloatArray, segments: Any) -> Any:
    """Each score's entry of a table with one row for each region, on the scores' device."""
    if not isinstance(partition, ScorePartition) or segments is not None:
        raise InvalidTypeError("segments must be None for scores on a device, and the bins those of the score alone")
    data = DeviceData({"scores": scores}, Columns("scores"))
    data._check_range(data._finite_scores(), partition)
    return device.look_up(scores, partition.cuts, table)


def _per_kind(part: ScorePartition, cells: IntArray, hits: IntArray) -> tuple[KindSums, KindSums]:
    counts, positives, uncounted = part.gather(cells, hits)
    left_out = int(hits[part.count_regions < 0].sum())
    return KindSums(counts - positives, uncounted - left_out), KindSums(positives, left_out)


def _placed(sums: KindSums, offset: int, partition: SegmentedPartition) -> KindSums:
    """The sums of one segment among those of all."""
    n, size = partition.n_regions, sums.counts.size
    counts = np.zeros(n, dtype=np.int64)
    counts[offset : offset + size] = sums.counts
    if sums.weights is None:
        return KindSums(counts, sums.uncounted)
    smallest, largest = np.full(n, np.inf), np.full(n, -np.inf)
    smallest[offset : offset + size], largest[offset : offset + size] = sums.weights.smallest, sums.weights.largest
    regions = np.arange(offset, offset + size)
    w, w2 = (part.regrouped(regions, n) for part in (sums.weights.w, sums.weights.w2))
    return KindSums(counts, sums.uncounted, KindWeights(w, w2, smallest, largest))


def _values(scores: Any, most: int) -> Values:
    for part in (scores[:_GLANCE], scores):
        if len(distinct := _unique(part)) > most:
            return Values(int(scores.shape[0]), None)
    return Values(int(scores.shape[0]), np.array(distinct, dtype=np.float64) + 0.0)


def _unique(array: Any) -> list[Any]:
    found: list[Any] = _library(array).unique(array).tolist()
    return sorted(found)


def _library(array: Any) -> Any:
    names = [kind.__module__.partition(".")[0] for kind in type(array).__mro__]
    return sys.modules["torch" if "torch" in names else "cupy"]


def _on_host(array: Any) -> Any:
    return array.detach().cpu().numpy() if hasattr(array, "detach") else array.get()


def _like(index: IntArray, array: Any) -> Any:
    library = _library(array)
    return library.from_numpy(index).to(array.device) if hasattr(array, "detach") else library.asarray(index)


def _seal(index: IntArray, scores: FloatArray) -> Seal:
    return Seal.of(BatchRows(scores, keys=index.astype(np.uint64)))
