"""Arrow tables, datasets, streams and anything like them: what is read, what is refused, and how it
is told.
"""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from calibrant import BinningCalibrator, Partition, scored
from calibrant.errors import InvalidValueError
from calibrant.sample.batch import Columns
from calibrant.sample.faults import Place
from calibrant.sample.reader import rows_of
from calibrant.sample.sources import arrow
from calibrant.sample.sources.arrow import ArrowData, Part
from worlds.errors import about

EDGES = Partition.from_edges([0.25, 0.5])
SCORES = [0.1, 0.25, 0.3, 0.5, 0.9, 0.2]
LABELS = [0, 1, 0, 1, 1, 0]


def counts(label: pa.Array, score: pa.Array | None = None, **how) -> tuple[list[int], list[int]]:
    table = pa.table({"p": pa.array(SCORES) if score is None else score, "y": label})
    tally = rows_of(scored(table, score="p", label="y")).with_classes(**how).tally(EDGES)[0]
    return tally.counts.tolist(), tally.positives.tolist()


EXPECTED = ([2, 2, 2], [0, 1, 2])


@pytest.mark.parametrize(
    "kind",
    [
        pa.bool_(),
        pa.int8(),
        pa.uint8(),
        pa.int64(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(38, 2),
    ],
)
def test_labels_of_any_number_type_are_counted(kind) -> None:
    assert counts(pa.array(LABELS, pa.int64()).cast(kind)) == EXPECTED
    doubled = pa.chunked_array([pa.array([], kind), pa.array(LABELS, pa.int64()).cast(kind)])
    assert counts(doubled) == EXPECTED


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(38, 2)]
)
def test_minus_one_and_one_are_labels_too(kind) -> None:
    assert (
        counts(pa.array([-1 if label == 0 else 1 for label in LABELS], pa.int64()).cast(kind))
        == EXPECTED
    )


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
)
def test_labels_of_text_are_counted(kind) -> None:
    words = pa.array(["no", "yes"]).take(pa.array(LABELS)).cast(kind)
    assert counts(words, pos_label="yes") == EXPECTED
    assert (
        counts(pa.chunked_array([words.slice(0, 2), words.slice(2)]), pos_label="yes") == EXPECTED
    )


def test_a_dictionary_may_hold_entries_that_no_row_has_or_the_same_one_twice() -> None:
    unused = [f"unused {number}" for number in range(40)]
    indices = pa.array([45 if label else 41 for label in LABELS], pa.int8())
    entries = pa.array([*unused, None, "no", "x", "y", "z", "yes"])
    assert counts(pa.DictionaryArray.from_arrays(indices, entries), pos_label="yes") == EXPECTED
    twice = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3, 1, 0], pa.int8()), pa.array(["no", "yes", "no", "yes"])
    )
    assert counts(twice, pos_label="yes") == EXPECTED


def test_a_null_in_a_dictionary_is_a_null() -> None:
    indices = pa.array([0, 1, 0, 2, 1, 0], pa.int8())
    with pytest.raises(ValueError, check=about("label", "1 faulty row, row index 3", column="y")):
        counts(
            pa.DictionaryArray.from_arrays(indices, pa.array(["no", "yes", None])), pos_label="yes"
        )


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.decimal128(5, 2)])
def test_scores_of_any_number_type_are_counted(kind) -> None:
    score = (
        pa.array([0.125, 0.25, 0.375, 0.5, 0.875, 0.1875]).cast(pa.float32()).cast(kind, safe=False)
    )
    assert counts(pa.array(LABELS), score) == EXPECTED
    encoded = pa.array([0.125, 0.25, 0.375, 0.5, 0.875, 0.1875]).dictionary_encode()
    assert counts(pa.array(LABELS), encoded) == EXPECTED


def test_a_single_precision_score_is_compared_as_a_double() -> None:
    tenth = np.float32(0.1)  # above the double 0.1
    data = scored(
        {"p": np.array([tenth, np.nextafter(tenth, np.float32(0))]), "y": [0, 1]},
        score="p",
        label="y",
    )
    assert rows_of(data).tally(Partition.from_edges([0.1]))[0].counts.tolist() == [1, 1]


TOLD = (
    r"\(label 0: 1 row, row index 0; label 2: 2 rows, the first row index 2; label 1: 3 rows, the"
    r" first row index 1\)"
)
BAD = {
    "nan label": (
        None,
        pa.array([0, 1, np.nan, 1, np.nan, 0.0]),
        "label column 'y' must contain no NaN; got 2 faulty rows, the first row index 2",
    ),
    "three labels": (None, pa.array([0, 1, 2, 1, 1, 2]), "got 3: 0, 1, 2.*" + TOLD),
    "labels of text": (
        None,
        pa.array(["0", "1", "x", "1", "1", "0"]),
        "label 'x': 1 row, row index 2",
    ),
    "all null": (
        None,
        pa.nulls(6),
        "label column 'y' must have no missing values; got 6 faulty rows, the first row index 0",
    ),
    "no score": (
        pa.nulls(6),
        pa.array(LABELS),
        "score column 'p' must have no missing values; got 6 faulty rows",
    ),
    "huge integers": (
        pa.array([2**60] * 6),
        pa.array(LABELS),
        "score column 'p' must be numbers that float64 can",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_can_not_be_counted_is_told_with_the_row(case) -> None:
    score, label, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        counts(label, score)


def test_columns_that_hold_something_else_are_refused() -> None:
    with pytest.raises(TypeError, check=about("score", "string, such as 'a'", column="p")):
        counts(pa.array(LABELS), pa.array(list("abcdef")))
    with pytest.raises(
        TypeError,
        check=about("label", "date32[day], such as datetime.date(1970, 1, 1)", column="y"),
    ):
        counts(pa.array([0] * 6, pa.date32()))


def test_faults_of_several_columns_are_told_together_and_counted_over_all_batches() -> None:
    rows = 1_000
    scores = np.linspace(0, 1, rows)
    scores[[400, 900]] = np.nan
    labels = pa.array([None if row == 17 else row % 2 for row in range(rows)])
    table = pa.table({"p": scores, "y": labels})
    batches = table.to_batches(max_chunksize=33)
    for source in (
        table,
        pa.Table.from_batches(batches),
        pa.RecordBatchReader.from_batches(table.schema, batches),
    ):
        with pytest.raises(
            ValueError,
            match=(
                r"label column 'y' must have no missing values; got 1 faulty row, row index 17;"
                r" score column 'p' "
                r"must contain no NaN; got 2 faulty rows, the first row index 400: fix or remove these"
                r" rows, or skip those"
            ),
        ):
            rows_of(scored(source, score="p", label="y", n_jobs=2)).tally(EDGES)


def test_a_faulty_row_does_not_hide_the_place_of_one_out_of_range() -> None:
    table = pa.table({"p": [0.1, np.nan, 0.2, 7.0], "y": [0, 1, 1, 0], "g": ["a", "a", "b", "b"]})
    bins = Partition.from_edges([0.5], score_range=(0.0, 1.0))
    said = (
        "row, row index 1; score column 'p' must lie between 0 and 1; got 1 faulty row, row index 3"
    )
    with pytest.raises(ValueError, match=said):
        rows_of(scored(table, score="p", label="y")).tally(bins)
    with pytest.raises(ValueError, match=said):
        rows_of(scored(table, score="p", label="y", segment="g")).tally(
            Partition.by_segment({"a": bins, "b": bins})
        )


def test_no_rows_are_told() -> None:
    empty = pa.table({"p": pa.array([], pa.float64()), "y": pa.array([], pa.int64())})
    for source in (
        empty,
        empty.to_pandas(),
        ds.dataset(empty),
        {"p": np.empty(0), "y": np.empty(0, int)},
    ):
        data = scored(source, score="p", label="y")
        assert data.sizes() == {None: 0}
        with pytest.raises(ValueError, check=about("y", "none")):
            rows_of(data).tally(EDGES)
        with pytest.raises(ValueError, check=about("the data", "none")):
            BinningCalibrator(n_bins=3).fit(data)


def test_a_column_that_is_missing_or_there_twice_is_told() -> None:
    table = pa.table({"score": SCORES, "Label": LABELS})
    with pytest.raises(
        ValueError,
        match=r"label column 'label' must be in the data; got columns 'score', 'Label': did you",
    ):
        scored(table, label="label")
    twice = pa.table([pa.array(SCORES), pa.array(LABELS), pa.array(LABELS)], names=["p", "y", "y"])
    with pytest.raises(ValueError, check=about("label", "2 columns of that name", column="y")):
        scored(twice, score="p", label="y")
    other_twice = pa.table(
        [pa.array(SCORES), pa.array(LABELS), pa.array(SCORES), pa.array(SCORES)], names=list("pyxx")
    )
    assert (
        rows_of(scored(other_twice, score="p", label="y")).tally(EDGES)[0].counts.tolist()
        == EXPECTED[0]
    )
    with pytest.raises(InvalidValueError) as refused:
        scored(pa.table({"p": [0.0, 1.0, 1.0]}), score="p", label="p")
    assert (refused.value.parameter, refused.value.column) == ("score", "p")


def test_a_stream_is_read_once() -> None:
    batches = pa.table({"p": SCORES, "y": LABELS}).to_batches(max_chunksize=2)
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    data = scored(reader, score="p", label="y")
    assert rows_of(data).tally(EDGES)[0].counts.tolist() == EXPECTED[0]
    with pytest.raises(ValueError, check=about("the data", "a stream that has been read")):
        rows_of(data).tally(EDGES)


class Capsule:
    """Something that speaks the Arrow C stream and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_anything_with_an_arrow_stream_is_read() -> None:
    data = scored(Capsule(pa.table({"p": SCORES, "y": LABELS})), score="p", label="y")
    for _ in range(2):
        assert rows_of(data).tally(EDGES)[0].counts.tolist() == EXPECTED[0]


@pytest.mark.parametrize("source", [3, None, "none.parquet", [], np.zeros(3)], ids=str)
def test_other_things_are_refused(source) -> None:
    with pytest.raises((TypeError, ValueError), match=r"source must be|no file"):
        scored(source, score="p", label="y")


def test_no_batch_is_longer_than_the_limit(tmp_path, monkeypatch) -> None:
    from calibrant.sample.sources import files

    for module in (arrow, files):
        monkeypatch.setattr(module, "BATCH_ROWS", 100)
    table = pa.table({"p": np.linspace(0, 1, 1_050), "y": np.arange(1_050) % 2})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=400)
    with (
        pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)
    paths = (tmp_path / "a.parquet", tmp_path / "a.arrow")
    for source in (table, *paths, ds.dataset(paths[0])):
        seen: list[int] = []
        rows_of(
            scored(
                source,
                score="p",
                label="y",
                n_jobs=1,
                progress=lambda done, total, seen=seen: seen.append(done),
            )
        ).tally(EDGES)
        assert seen[-1] == 1_050
        assert max(np.diff([0, *seen])) <= 100


def test_one_failure_ends_the_work_of_all_threads() -> None:
    class Endless:
        def batches(self, columns):
            while True:
                yield pa.record_batch({"p": np.zeros(10), "y": np.zeros(10, int)}), Place(0)

    class Broken:
        def batches(self, columns):
            raise OSError("the disk is gone")
            yield

    schema = pa.schema([("p", pa.float64()), ("y", pa.int64())])
    data = ArrowData([Endless(), Broken()], schema, Columns("p", "y"), threads=2, progress=False)
    with pytest.raises(OSError, match="the disk is gone"):
        data.tally(EDGES)


@pytest.mark.broad
def test_a_row_is_read_once_whatever_the_number_of_threads() -> None:
    table = pa.table({"p": np.arange(1_000.0), "y": np.arange(1_000) % 2})
    parts = [
        Part(lambda names, batch=batch: [batch], first_row=row * 7)
        for row, batch in enumerate(table.to_batches(max_chunksize=7))
    ]
    for threads in (1, 2, 16, 500):
        data = ArrowData(parts, table.schema, Columns("p", "y"), threads=threads, progress=False)
        assert data.tally(Partition.from_edges([500.0]))[0].counts.tolist() == [500, 500]


@pytest.mark.broad
def test_hundreds_of_segments_are_cut_and_counted_as_in_memory() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 400, 20_000)
    scores = rng.uniform(size=20_000)
    labels = rng.integers(0, 2, 20_000)
    data = scored({"p": scores, "y": labels, "g": groups}, score="p", label="y", segment="g")
    assert list(data.sizes().values()) == np.bincount(groups).tolist()
    fitted = BinningCalibrator(n_bins=2).fit(data)
    assert (
        fitted.partition_
        == BinningCalibrator(n_bins=2).fit(scores, labels, segments=groups).partition_
    )


def test_data_say_which_columns_they_have() -> None:
    table = pa.table({"p": [0.1, 0.2], "y": [0, 1]})
    assert repr(scored(table, score="p", label="y")) == "Sample(score='p', label='y')"
    assert "skip_missing=True" in repr(scored(table, score="p", label="y", skip_missing=True))
    assert "0.1" not in repr(scored(table, score="p", label="y").collect())


def test_a_list_of_rows_is_told_what_to_give() -> None:
    with pytest.raises(
        TypeError, match=r"got list of dict: give a mapping .* or pyarrow\.Table\.from_pylist"
    ):
        scored([{"p": 0.1, "y": 1}], score="p", label="y")
