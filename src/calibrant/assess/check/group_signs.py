"""Are rows grouped although no groups were named? A check of the first rows."""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._optional import needed, pa
from calibrant._typing import ArrayLike, CodeArray, FloatArray, IndexArray, Keys
from calibrant.assess.check.exchangeability import SORTED_FILE, GroupSign
from calibrant.assess.check.p_values import equal_mass_bins, rates_of
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.units import turns
from calibrant.errors import CalibrantError
from calibrant.params.random import RandomSource, fingerprint_of
from calibrant.params.rules import Integer
from calibrant.sample.columns import first_rows_of
from calibrant.sample.label_runs import LONG_RUN, long_run
from calibrant.sample.rows import Rows
from calibrant.sample.sources.arrow import from_arrow
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.numbers import percent, rows
from calibrant.text.sentences import Setting, Text

MOST_ROWS = 20_000
"""The number of rows inspected."""

_ID = re.compile(
    r"(^|[_\W])(id|key|uuid|guid)s?$|[a-z]I[dD]$|^id|customer|client|user|patient|person|member|account|household|"
    r"subject|student|pupil|employee|borrower|device|session|card",
    re.IGNORECASE,
)
_FEW_VALUES = 30  # a column with fewer values is a segment, not an id
_SHARED = 0.05  # share of rows whose id repeats
_SIGNS = 5.0  # in standard deviations
_PAIRS = 20  # identical rows
_SORTED = 10  # at most this many runs of labels: the file is sorted by label
_SHUFFLE: tuple[str | Setting, ...] = (
    f": {SORTED_FILE}. Shuffle it, or check it with ",
    Setting("time"),
    ". If it is not sorted, give what neighbouring rows share as ",
    Setting("group"),
)


def group_signs(
    data: Rows,
    *,
    most_rows: int = MOST_ROWS,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
) -> tuple[GroupSign, ...]:
    """Look for signs that rows are grouped: an id that repeats, identical rows, runs of equal
    labels.

    Not claimed: that rows without a sign are independent, or that a sign is proof. This is a quick
    look at the first rows; the tests of `check` have guaranteed error rates.

    Parameters
    ----------
    data : Rows
        The result of `calibrant.scored`; its other columns are inspected too. Spark, Dask, devices
        and streams, which can be read only once, give no first rows, and so no signs.
    most_rows : int, default=20_000
        Number of rows to inspect, starting with the first.
    pos_label, classes
        As in `BinningCalibrator`.

    Returns
    -------
    tuple of GroupSign
        The signs found; empty if there are none.

    Notes
    -----
    Let d be the distance between a label and the rate of its score bin. *A repeated id* is a column
    of whole numbers, text or dates with at least 30 values, not all different. It is reported if it
    is named like an id and one row in twenty or more shares its value. Any other name needs
    evidence: products d d' of rows with the same value have a larger mean than those of rows with
    neighbouring values, by five standard deviations. So a feature that the model has not used well
    does not count as a sign. *Identical rows* agree in the score and in all columns but the label.
    They are reported if 98% of such pairs have the same label, which is more than the rates explain
    by five standard deviations. *Runs* are reported if neighbouring rows have a larger mean of d d'
    than rows that are far apart, by five standard deviations, so that a file sorted by score does
    not count as a sign; or if one run of equal labels has a probability below e^-30 at the rates of
    its scores, as in a file sorted by label. If all inspected rows have the same label, all data
    are counted once, to see whether that is due to chance.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from calibrant import scored
    >>> from calibrant.assess.check.group_signs import group_signs
    >>> from calibrant.sample.reader import rows_of
    >>> rng = np.random.default_rng(0)
    >>> p, customer = rng.uniform(size=2_000), rng.integers(0, 400, size=2_000)
    >>> table = pa.table({"p": p, "y": rng.uniform(size=2_000) < p, "customer_id": customer})
    >>> for sign in group_signs(rows_of(scored(table, score="p", label="y"))):
    ...     print(sign)  # doctest: +NORMALIZE_WHITESPACE
    Column 'customer_id' looks like an id that repeats (397 values in the first 2,000 rows, with up
    to 11 rows each): use group='customer_id'.
    """
    most_rows = Integer(1).check("most_rows", most_rows)
    needed("pyarrow", "arrow", "the first rows are read")
    table = first_rows_of(data, most_rows)
    if table is None or table.num_rows < 2:
        return ()
    look = _Look.at(table, data, pos_label, classes)
    repeated = [("repeated id", name, look.repeated(name)) for name in look.others]
    runs = look.runs()
    if (look.codes == look.codes[0]).all():
        runs = _one_label(table, data, pos_label, classes) or runs
    found = [*repeated, ("identical rows", None, look.identical()), ("runs of labels", None, runs)]
    return tuple(
        GroupSign(kind, name, look.n, text) for kind, name, text in found if text is not None
    )


def labelled_rows(table: Any, data: Rows, pos_label: Any, classes: Any) -> MemoryRows:
    """The scores and labels of some rows."""
    named = from_arrow(table, data.columns.only("label"), threads=1, progress=False)
    return named.with_classes(classes, pos_label).collect()


def _one_label(table: Any, data: Rows, pos_label: Any, classes: Any) -> Text | None:
    """The sign if these rows all have one label, and the other label is too frequent elsewhere in
    the data for that to be chance.
    """
    try:
        whole, known = data.with_classes(classes, pos_label).tally(ScorePartition(np.empty(0)))
        codes = labelled_rows(table, data, known.positive, known.labels).codes
    except CalibrantError:  # for example, one class among all rows
        return None
    rate = float(whole.positives.sum() / whole.counts.sum())
    n = codes.size
    alike = rate if codes[0] else 1.0 - rate
    if n * np.log(alike) > LONG_RUN:
        return None
    return (
        (
            f"the first {rows(n)} have the same label, which {percent(round(alike, 3))} of all rows"
            " have"
        ),
        *_SHUFFLE,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """Some rows: their labels, the rates and bins of their scores, and the other columns as
    numbers.
    """

    codes: CodeArray  # if the labels cannot be used, all are 0 at a rate of 0, which show no sign
    rate: FloatArray
    scores: FloatArray
    others: dict[str, IndexArray]

    @classmethod
    def at(cls, table: Any, data: Rows, pos_label: Any, classes: Any) -> "_Look":
        try:
            read = labelled_rows(table, data, pos_label, classes)
            scores = np.asarray(read.scores, dtype=np.float64)
            codes = read.codes
            bins = equal_mass_bins(scores)
            rate = rates_of(codes, bins)[bins]
        except CalibrantError:  # for example, one class among the first rows
            scores = rate = np.zeros(table.num_rows)
            codes = np.zeros(table.num_rows, dtype=np.uint8)
        used = set(data.columns.named.values())
        others = {
            name: _numbered(table.column(name)) for name in table.schema.names if name not in used
        }
        return cls(codes, rate, scores, others)

    @property
    def n(self) -> int:
        return len(self.scores)

    def _random_numbers(self) -> Keys:
        """A random number for each row, which puts rows with equal values in random order."""
        rows = fingerprint_of(self.scores, labels=self.codes)
        return RandomSource.of(0, "order of rows that are alike", rows=rows).hashes(
            np.arange(self.n, dtype=np.uint64)
        )

    def repeated(self, name: str) -> Text | None:
        """Whether a column looks like an id that several rows share."""
        values = self.others[name]
        sizes = np.bincount(values)
        sizes = sizes[sizes > 0]
        shared = float(sizes[sizes > 1].sum()) / self.n
        if sizes.size < _FEW_VALUES or sizes.max() == 1:
            return None
        seen = (
            f"{sizes.size:,} values in the first {rows(self.n)}, with up to"
            f" {rows(int(sizes.max()))} each"
        )
        advice = ": use ", Setting("group", name)
        if _ID.search(name) and shared >= _SHARED:
            return (f"column {name!r} looks like an id that repeats ({seen})", *advice)
        order = np.lexsort((self._random_numbers(), values))
        start = np.flatnonzero(np.diff(values[order], prepend=-1))
        group = np.repeat(np.arange(start.size), size := np.diff(start, append=self.n))
        row = np.arange(self.n)
        other = np.where(group + 1 < start.size, group + 1, group - 1)
        same = np.flatnonzero(group[1:] == group[:-1])
        close = order[same], order[same + 1]
        far = (
            order,
            order[start[other] + (row - start[group]) % size[other]],
        )  # rows with the next value
        if self._alike(close, far) > _SIGNS:
            return (f"rows with the same {name!r} are alike ({seen})", *advice)
        return None

    def _alike(
        self, close: tuple[IndexArray, IndexArray], far: tuple[IndexArray, IndexArray]
    ) -> float:
        """By how many standard deviations the labels of close pairs of rows are more similar than
        those of far pairs.
        """
        residual = self.codes - self.rate
        variance = self.rate * (1.0 - self.rate)
        ratio = close[0].size / far[0].size
        by_chance = ratio * max(float((residual[far[0]] * residual[far[1]]).sum()), 0.0)
        excess = float((residual[close[0]] * residual[close[1]]).sum()) - by_chance
        if excess < _SIGNS:  # few pairs of rare labels
            return 0.0
        noise = (variance[close[0]] * variance[close[1]]).sum()
        return excess / float(
            np.sqrt(noise + ratio**2 * (variance[far[0]] * variance[far[1]]).sum())
        )

    def identical(self) -> Text | None:
        """Pairs of rows that agree in everything but possibly the label."""
        # leave out unique ids, and copies of the label, which would give identical rows the same
        # label
        whole = [
            values
            for values in self.others.values()
            if np.bincount(values).max() > 1 and not _determines(values, self.codes)
        ]
        order = np.lexsort((self._random_numbers(), *whole, self.scores))
        same = np.ones(self.n - 1, dtype=bool)
        for values in (self.scores, *whole):
            same &= values[order][1:] == values[order][:-1]
        first = np.flatnonzero(same)
        apart = np.concatenate(([True], np.diff(first) > 1))  # pairs with no row in common
        run = np.arange(first.size) - np.maximum.accumulate(
            np.where(apart, np.arange(first.size), 0)
        )
        first = first[run % 2 == 0]
        if first.size < _PAIRS:
            return None
        one = order[first]
        two = order[first + 1]
        chance = self.rate[one] * self.rate[two] + (1.0 - self.rate[one]) * (1.0 - self.rate[two])
        agree = int((self.codes[one] == self.codes[two]).sum())
        sure = agree - chance.sum() > _SIGNS * np.sqrt((chance * (1.0 - chance)).sum())
        if agree < 0.98 * first.size or not sure:
            return None
        share = percent(round(agree / first.size, 3))
        by_chance = percent(round(float(chance.mean()), 2))
        return (
            (
                f"the first {rows(self.n)} contain {first.size:,} pairs of identical rows, and"
                f" {share} of the pairs share a label ({by_chance} would by chance): rows"
                " may have been copied. Remove the copies, or give what they share as "
            ),
            Setting("group"),
        )

    def runs(self) -> Text | None:
        """Whether neighbouring rows have more equal labels than rows that are far apart."""
        if self.n < 2 * _FEW_VALUES:
            return None
        runs = 1 + int((np.diff(self.codes) != 0).sum())
        expected = 1.0 + float(
            (self.rate[:-1] * (1 - self.rate[1:]) + self.rate[1:] * (1 - self.rate[:-1])).sum()
        )
        seen = (
            f"the first {rows(self.n)} have {runs:,} runs of equal labels (about"
            f" {expected:,.0f} by chance)"
        )
        if longest := long_run(self.codes, self.scores, self.rate):
            return (
                f"labels come in runs: {seen}, with {longest:,} equal labels in a row",
                *_SHUFFLE,
            )
        apart = max(_FEW_VALUES, self.n // 20)
        row = np.arange(self.n)
        if (
            runs <= _SORTED
            or self._alike((row[:-1], row[1:]), (row[:-apart], row[apart:])) <= _SIGNS
        ):
            return None
        return (
            (
                f"labels come in runs: {seen}. If neighbouring rows come from the"
                " same customer or day, pass that column as "
            ),
            Setting("group"),
        )


def _determines(values: IndexArray, codes: CodeArray) -> bool:
    """Return whether a column with few values determines the label."""
    counts = np.bincount(values)
    positives = np.bincount(values, codes)
    return bool(
        np.count_nonzero(counts) < _FEW_VALUES and ((positives == 0) | (positives == counts)).all()
    )


def _numbered(column: Any) -> IndexArray:
    """A column as numbers: equal for equal entries, and in the order of the entries.

    Nulls all get different numbers.
    """
    flat = column.combine_chunks()
    encoded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
    order = pa.compute.sort_indices(encoded.dictionary).to_numpy()
    number = encoded.indices.fill_null(order.size).to_numpy(zero_copy_only=False).astype(np.intp)
    found: IndexArray = np.append(turns(order), 0)[number]
    missing = number == order.size
    found[missing] = order.size + np.arange(np.count_nonzero(missing))
    return found
