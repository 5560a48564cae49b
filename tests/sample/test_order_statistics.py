"""Order statistics by passes over batches are those of a sort, exactly."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import scored
from calibrant.cells.keyed_sums import KeyedSums
from calibrant.sample import order_statistics
from calibrant.sample.order_statistics import (
    BitCounts,
    Level,
    first_level,
    from_ordered_bits,
    ordered_bits,
)
from calibrant.sample.reader import rows_of

finite = st.floats(allow_nan=False, allow_infinity=False)


def found(scores: np.ndarray, wanted: np.ndarray, n_parts: int = 1) -> np.ndarray:
    batches = [pa.record_batch({"p": part}) for part in np.array_split(scores, n_parts)]
    data = scored(pa.Table.from_batches(batches), score="p", n_jobs=2)
    return rows_of(data).order_statistics({None: wanted})[None]


def sorted_scores(scores: np.ndarray) -> np.ndarray:
    return np.sort(scores.astype(np.float64)) + 0.0


@given(st.lists(finite, min_size=1, max_size=60), st.integers(1, 9))
def test_all_ranks_of_any_doubles_are_the_sorted_doubles(values, n_parts) -> None:
    scores = np.array(values)
    got = found(scores, np.arange(1, scores.size + 1), n_parts)
    np.testing.assert_array_equal(got, sorted_scores(scores))
    assert not np.signbit(got[got == 0.0]).any()


@given(st.lists(finite, min_size=1, max_size=200))
def test_the_bits_are_in_the_order_of_the_doubles_and_lead_back_to_them(values) -> None:
    scores = np.array(values)
    keys = ordered_bits(scores)
    np.testing.assert_array_equal(from_ordered_bits(keys), scores)
    np.testing.assert_array_equal(
        scores[np.argsort(keys, kind="stable")], np.sort(scores, kind="stable")
    )


SHAPES = {
    "uniform": lambda rng, n: rng.uniform(size=n),
    "single": lambda rng, n: rng.uniform(size=n).astype(np.float32),
    "ties": lambda rng, n: np.round(rng.uniform(size=n), 2),
    "one value": lambda rng, n: np.full(n, 0.25),
    "both signs": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n),
    "zeros": lambda rng, n: rng.choice([0.0, -0.0, 5e-324, -5e-324], n),
    "neighbours": lambda rng, n: 1.0 + rng.integers(0, 50, n) * 2.0**-52,
    "largest": lambda rng, n: rng.choice([1, -1], n) * np.finfo(float).max,
}


@pytest.mark.parametrize("n", [1, 2, 1_000, pytest.param(100_000, marks=pytest.mark.broad)])
@pytest.mark.parametrize("shape", SHAPES)
def test_quantiles_of_many_rows_are_those_of_a_sort(shape, n) -> None:
    scores = SHAPES[shape](np.random.default_rng(n), n)
    wanted = np.unique(np.linspace(1, n, min(n, 37)).astype(np.int64))
    np.testing.assert_array_equal(
        found(scores, wanted, n_parts=min(n, 7)), sorted_scores(scores)[wanted - 1]
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_short_histograms_take_more_passes_and_give_the_same(shape, monkeypatch) -> None:
    monkeypatch.setattr(order_statistics, "_CELLS", 1 << 6)
    monkeypatch.setattr(order_statistics, "_FIRST_CELLS_A_TABLE", 1)
    monkeypatch.setattr(order_statistics, "_FEW", 20)
    passes = []
    fold = type(rows_of(scored({"p": np.zeros(1)}, score="p"))).fold
    monkeypatch.setattr(
        "calibrant.sample.sources.arrow.ArrowData.fold",
        lambda self, work: passes.append(1) or fold(self, work),
    )
    scores = SHAPES[shape](np.random.default_rng(1), 3_000)
    wanted = np.array([1, 2, 1_499, 1_500, 2_999, 3_000])
    np.testing.assert_array_equal(
        found(scores, wanted, n_parts=5), sorted_scores(scores)[wanted - 1]
    )
    assert len(passes) >= 3


@pytest.mark.broad
@given(
    st.integers(1, 400),
    st.integers(0, 99),
    st.sampled_from([1 << 4, 1 << 10]),
    st.sampled_from([0, 5, 50]),
)
@settings(max_examples=min(30, settings.default.max_examples))
def test_any_size_of_histogram_gives_the_same(n, seed, cells, few) -> None:
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=n), rng.integers(0, 17))
    wanted = np.unique(rng.integers(1, n + 1, 9))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_statistics, "_CELLS", cells)
        patch.setattr(order_statistics, "_FEW", few)
        np.testing.assert_array_equal(found(scores, wanted, 3), sorted_scores(scores)[wanted - 1])


def test_segments_have_their_own_ranks() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=5_000)
    groups = rng.choice(["a", "b", "c"], 5_000)
    wanted = {"a": np.array([1, 700]), "b": np.array([5]), "c": np.empty(0, np.int64)}
    got = rows_of(scored({"p": scores, "g": groups}, score="p", segment="g")).order_statistics(
        wanted
    )
    for name, here in wanted.items():
        np.testing.assert_array_equal(got[name], np.sort(scores[groups == name])[here - 1])


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=30), min_size=1, max_size=30))
def test_counts_add_in_any_grouping(lists) -> None:
    pieces = []
    for values in lists:
        cells, rows = np.unique(np.array(values, dtype=np.uint64), return_counts=True)
        pieces.append(BitCounts({None: (KeyedSums(cells, rows.astype(np.int64)),)}))
    one_by_one = sum(pieces[1:], pieces[0])
    halves = [sum(half, BitCounts()) for half in (pieces[::2], pieces[1::2])]
    cells, rows = np.unique(
        np.concatenate([np.array(values) for values in lists]), return_counts=True
    )
    for total in (one_by_one, halves[0] + halves[1]):
        np.testing.assert_array_equal(total.counts(None)[0], cells)
        np.testing.assert_array_equal(total.counts(None)[1], rows)


def test_many_batches_are_not_merged_one_by_one() -> None:
    total = BitCounts()
    for number in range(1_000):
        keys = np.arange(number * 10, number * 10 + 10, dtype=np.uint64)
        total = total + BitCounts({None: (KeyedSums(keys, np.ones(10, np.int64)),)})
    assert len(total.pieces[None]) <= 12  # log2 of how many came
    assert total.counts(None)[0].size == 10_000


class Changing:
    """A source whose second reading has fewer rows than the first."""

    def __init__(self) -> None:
        self.reads = 0

    def batches(self, columns):
        from calibrant.sample.faults import Place

        self.reads += 1
        yield pa.record_batch({"p": np.arange(1_000.0 if self.reads == 1 else 10.0)}), Place(0)


def test_data_that_change_between_two_passes_are_refused() -> None:
    from calibrant.sample.batch import Columns
    from calibrant.sample.sources.arrow import ArrowData

    data = ArrowData([Changing()], pa.schema([("p", pa.float64())]), Columns("p"))
    with pytest.raises(ValueError, match="the same rows each time they are read"):
        data.order_statistics({None: np.array([900])})


def test_rows_find_their_run_where_runs_are_far_apart_and_many() -> None:
    scores = np.linspace(-1.0, 1.0, 2**15 + 50)
    keys = ordered_bits(scores)
    level = Level(0, keys[::2], 0, np.arange(keys[::2].size))
    found = level.count(scores[::-1])
    assert found.key.tolist() == keys[::2].tolist()
    assert set(found.sums.tolist()) == {1}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_first_cells_hold_every_row_once_in_order(shape) -> None:
    scores = SHAPES[shape](np.random.default_rng(3), 100_000)
    level = first_level()
    found = level.count(scores)
    cells, rows = np.unique(ordered_bits(scores) >> np.uint64(level.bits), return_counts=True)
    np.testing.assert_array_equal(found.key, cells)
    np.testing.assert_array_equal(found.sums, rows)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_draw_counts_near_ranks_gives_those_of_the_other_rows(shape, monkeypatch) -> None:
    scores = SHAPES[shape](np.random.default_rng(2), 20_000)
    monkeypatch.setattr("calibrant.sample.sources.arrow.BATCH_ROWS", 1_000)
    data = rows_of(scored({"p": scores, "y": np.arange(20_000) % 2}, score="p", label="y"))
    ranks = {None: np.linspace(1, 19_000, 30).astype(np.int64)}
    split = data.first_rows(0, {None: 1_000}, ranks)
    works = []
    fold = type(data).fold
    monkeypatch.setattr(
        type(data), "fold", lambda self, work: works.append(work) or fold(self, work)
    )
    got = split.others.order_statistics(ranks)[None]
    positions = split.others._left_out[1].rows().keys.astype(np.intp)
    assert positions.size == 1_000
    others = np.delete(scores, positions)
    np.testing.assert_array_equal(got, sorted_scores(others)[ranks[None] - 1])
    assert len(works) <= 1
    if shape == "uniform":
        assert not works
