"""Files of every format give the counts of the table they were written from."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from calibrant import BinningCalibrator, Partition, scored
from calibrant.sample.fingerprint import fingerprint
from calibrant.sample.reader import rows_of
from calibrant.sample.sources import files
from calibrant.sample.sources.spool import Room, parsed_once

EDGES = Partition.from_edges([0.2, 0.5, 0.9])
RNG = np.random.default_rng(2)
ROWS = pa.table(
    {
        "key": RNG.permutation(1_000),
        "p": RNG.uniform(size=1_000),
        "y": (RNG.uniform(size=1_000) < 0.4).astype(np.int64),
        "g": RNG.choice(["north", "south"], 1_000),
    }
)
EXPECTED = rows_of(scored(ROWS, score="p", label="y")).tally(EDGES)[0]


def write_json(table: pa.Table, path) -> None:
    import json

    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def write_gzip(table: pa.Table, path) -> None:
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    path.write_bytes(gzip.compress(sink.getvalue().to_pybytes()))


def write_ipc(table: pa.Table, path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=170)


WRITERS = {
    "rows.parquet": lambda table, path: pq.write_table(table, path, row_group_size=130),
    "rows.csv": pyarrow.csv.write_csv,
    "rows.csv.gz": write_gzip,
    "rows.jsonl": write_json,
    "rows.arrow": write_ipc,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_file_counts_and_splits_as_its_table(name, threads, tmp_path) -> None:
    WRITERS[name](ROWS, tmp_path / name)
    data = scored(
        tmp_path / name, score="p", label="y", id="key", segment="g", n_jobs=threads, progress=False
    )
    assert (
        rows_of(scored(tmp_path / name, score="p", label="y", n_jobs=threads)).tally(EDGES)[0]
        == EXPECTED
    )
    fits = [
        BinningCalibrator(n_bins=4, pilot=0.5, random_state=1).fit(source)
        for source in (data, scored(ROWS, score="p", label="y", id="key", segment="g"))
    ]
    assert fits[0].partition_ == fits[1].partition_
    assert fits[0].tally_ == fits[1].tally_


@pytest.mark.broad
@pytest.mark.parametrize("name", WRITERS)
def test_several_files_are_one(name, tmp_path) -> None:
    for number in range(4):
        folder = tmp_path / f"part={number}"
        folder.mkdir()
        WRITERS[name](ROWS.slice(number * 250, 250), folder / name)
    pattern = str(tmp_path / "*" / name)
    for source in (
        tmp_path,
        pattern,
        [tmp_path / f"part={number}" / name for number in (2, 0, 3, 1)],
    ):
        data = scored(source, score="p", label="y", n_jobs=2)
        assert rows_of(data).tally(EDGES)[0] == EXPECTED
    fitted = BinningCalibrator(n_bins=6).fit(scored(pattern, score="p", label="y"))
    assert (
        fitted.tally_
        == BinningCalibrator(n_bins=6).fit(ROWS["p"].to_numpy(), ROWS["y"].to_numpy()).tally_
    )


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.jsonl", "rows.arrow"])
def test_a_missing_score_is_told_with_the_file_and_its_row(name, tmp_path) -> None:
    bad = ROWS.set_column(1, "p", pa.array([None if row == 640 else 0.5 for row in range(1_000)]))
    WRITERS[name](ROWS, tmp_path / f"a{name}")
    WRITERS[name](bad, tmp_path / f"b{name}")
    with pytest.raises(
        ValueError,
        match=rf"column 'p' must have no missing values; got 1 faulty row, row 641 of b{name}",
    ):
        rows_of(scored(tmp_path, score="p", label="y", progress=False)).tally(EDGES)


def test_the_same_file_twice_counts_twice(tmp_path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    twice = rows_of(scored([tmp_path / "rows.parquet"] * 2, score="p", label="y")).tally(EDGES)[0]
    assert twice.counts.tolist() == (2 * EXPECTED.counts).tolist()


@pytest.mark.parametrize("name", WRITERS)
def test_applied_columns_follow_the_rows(name, tmp_path) -> None:
    fitted = BinningCalibrator(n_bins=6).fit(ROWS["p"].to_numpy(), ROWS["y"].to_numpy())
    WRITERS[name](ROWS, tmp_path / name)
    got = fitted.apply(scored(tmp_path / name, score="p", progress=False)).read_all()
    assert got["key"].to_pylist() == ROWS["key"].to_pylist()
    np.testing.assert_array_equal(got["calibrated"].to_numpy(), fitted.predict(got["p"].to_numpy()))


OTHER = ROWS.set_column(1, "p", pa.array(1.0 - ROWS["p"].to_numpy()))


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("change", ["replaced", "rewritten", "removed"])
def test_a_file_that_changes_between_two_passes_is_told(name, change, tmp_path) -> None:
    path = tmp_path / name
    other = tmp_path / f"other.{name}"
    WRITERS[name](ROWS, path)
    WRITERS[name](OTHER, other)
    data = scored(path, score="p", label="y", progress=False)
    data.sizes()
    if change == "replaced":
        other.replace(path)
    elif change == "removed":
        path.unlink()
    else:
        path.write_bytes(other.read_bytes())
    for use in (
        lambda: rows_of(data).tally(EDGES),
        lambda: fingerprint(rows_of(data)),
        lambda: BinningCalibrator(4).fit(data),
    ):
        with pytest.raises(
            ValueError, match=f"the file {name!r} changed while it was read: run again"
        ):
            use()


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv"])
@pytest.mark.parametrize("when", range(1, 5))
def test_a_file_that_changes_during_any_pass_of_a_fit_is_told(name, when, tmp_path) -> None:
    """Without the check, bins of one file were given with the fingerprint of the other."""
    path = tmp_path / name
    other = tmp_path / f"other.{name}"
    WRITERS[name](ROWS, path)
    WRITERS[name](OTHER, other)
    passes = []

    def during_a_pass(rows, total) -> None:
        if rows == 1_000:  # the last row of a pass has been read
            passes.append(rows)
            if len(passes) == when:
                other.replace(path)

    data = scored(path, score="p", label="y", n_jobs=1, progress=during_a_pass)
    with pytest.raises(ValueError, match="changed while it was read"):
        (BinningCalibrator(4).fit(data), fingerprint(rows_of(data)))
    assert len(passes) == when


@pytest.mark.broad
def test_small_row_groups_are_read_together_and_rows_keep_their_numbers(tmp_path) -> None:
    table = pa.concat_tables([ROWS] * 30)
    pq.write_table(table, tmp_path / "small.parquet", row_group_size=10)
    data = scored(tmp_path / "small.parquet", score="p", label="y", progress=False)
    assert len(rows_of(data).parts) == 1
    assert rows_of(data).tally(EDGES)[0].counts.tolist() == (30 * EXPECTED.counts).tolist()
    big = pa.table({"p": np.full(400_000, 0.5), "y": np.arange(400_000) % 2})
    bad = big.set_column(0, "p", pa.array(np.where(np.arange(400_000) == 390_005, np.nan, 0.5)))
    pq.write_table(bad, tmp_path / "big.parquet", row_group_size=1_000)
    many = scored(tmp_path / "big.parquet", score="p", label="y", n_jobs=2, progress=False)
    assert len(rows_of(many).parts) == 4
    with pytest.raises(ValueError, match="1 faulty row, row 390,006 of big"):
        rows_of(many).tally(EDGES)


@pytest.mark.broad
def test_one_large_row_group_is_read_piece_by_piece(tmp_path) -> None:
    n = 10_000_000
    path = tmp_path / "large.parquet"
    table = pa.table({"p": np.arange(n) / n, "y": np.zeros(n, dtype=np.int8)})
    pq.write_table(table, path, row_group_size=n, compression="NONE", use_dictionary=False)
    del table
    before = pa.total_allocated_bytes()
    held = []
    rows = 0
    data = scored(path, score="p", label="y", progress=False)
    for part in rows_of(data).parts:
        for batch in part.read(["p", "y"]):
            held.append(pa.total_allocated_bytes() - before)
            rows += batch.num_rows
    assert rows == n
    assert max(held) < 8 * n / 4


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
@pytest.mark.parametrize("room", [None, 0])
def test_a_text_file_is_parsed_once_whether_or_not_its_columns_fit_in_memory(
    name, room, tmp_path, monkeypatch
) -> None:
    path = tmp_path / name
    WRITERS[name](ROWS, path)
    expected = BinningCalibrator(4, random_state=0).fit(
        scored(ROWS, score="p", label="y", segment="g")
    )
    read = []
    plain = files.parsed_once

    def counted(reader, given):
        def batches(names):
            read.append(names)
            yield from reader(names)

        return plain(batches, given if room is None else files.Room(room))

    monkeypatch.setattr(files, "parsed_once", counted)
    data = scored(path, score="p", label="y", segment="g", n_jobs=1)
    found = BinningCalibrator(4, random_state=0).fit(data)
    assert found.tally_ == expected.tally_
    assert found.guarantee_.sentence == expected.guarantee_.sentence
    assert len(read) == 1
    again = fingerprint(rows_of(scored(path, score="p", label="y", id="key", n_jobs=1)))
    assert again == fingerprint(rows_of(scored(ROWS, score="p", label="y", id="key")))


def test_a_pass_with_further_columns_parses_again_and_keeps_them_all(tmp_path) -> None:
    read = []

    def reader(names):
        read.append(names)
        yield from ROWS.select(names).to_batches(300)

    batches = parsed_once(reader, Room())
    for names in (["p", "y"], ["y"], ["g", "p"], ["y", "g", "p"], ["p"]):
        assert pa.Table.from_batches(batches(names)).equals(ROWS.select(names))
    assert read == [["p", "y"], ["g", "p", "y"]]
    next(iter(batches(["key"])))  # a pass that ends early keeps nothing
    assert pa.Table.from_batches(batches(["key"])).equals(ROWS.select(["key"]))
    assert read[2:] == [["key", "g", "p", "y"]] * 2
