"""The kernels equal the textbook definition, bit for bit, on every shape of scores we
could think of.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrant import kernels
from calibrant.kernels import _grid, _numpy, _select

DENORMAL = 5e-324
LARGEST = float(np.finfo(np.float64).max)
EXTREMES = [
    0.0,
    -0.0,
    DENORMAL,
    -DENORMAL,
    1e-310,
    1.0,
    np.nextafter(1.0, 0.0),
    np.nextafter(1.0, 2.0),
    -1.0,
]
EXTREMES += [1e300, -1e300, LARGEST, -LARGEST, 0.5, 0.1]

SHAPES: dict[str, Any] = {
    "uniform": lambda generator, rows: generator.random(rows),
    "rare": lambda generator, rows: generator.beta(0.05, 50.0, rows),
    "tiny": lambda generator, rows: 1e-6 * generator.random(rows),
    "near one": lambda generator, rows: 1.0 - 1e-9 * generator.random(rows),
    "two decimals": lambda generator, rows: np.round(generator.random(rows), 2),
    "half zero": lambda generator, rows: np.maximum(generator.random(rows) - 0.5, 0.0),
    "constant": lambda generator, rows: np.full(rows, 0.3),
    "sorted": lambda generator, rows: np.sort(generator.random(rows)),
    "reversed": lambda generator, rows: np.sort(generator.random(rows))[::-1],
    "periodic": lambda generator, rows: np.resize(generator.random(64), rows),
    "logits": lambda generator, rows: generator.normal(0.0, 3.0, rows),
    "negative": lambda generator, rows: -np.exp(generator.uniform(-300.0, 300.0, rows)),
    "cauchy": lambda generator, rows: generator.standard_cauchy(rows),
    "outliers": lambda generator, rows: np.where(
        generator.random(rows) < 0.001, 1e300, generator.normal(size=rows)
    ),
    "signed zeros": lambda generator, rows: generator.choice([0.0, -0.0, 1.0, -1.0], rows),
    "denormals": lambda generator, rows: DENORMAL * generator.integers(0, 50, rows),
    "all magnitudes": lambda generator, rows: (
        generator.choice([-1.0, 1.0], rows) * np.exp(generator.uniform(-700.0, 700.0, rows))
    ),
    "largest": lambda generator, rows: generator.choice([-LARGEST, LARGEST, 0.0], rows),
    "extremes": lambda generator, rows: generator.choice(EXTREMES, rows),
    "float32": lambda generator, rows: generator.random(rows, dtype=np.float32),
    "big integers": (
        lambda generator, rows: generator.integers(-(10**15), 10**15, rows).astype(float)
    ),
}

finite = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(EXTREMES),
    st.integers(-3, 3).map(float),
)
quick = settings(
    max_examples=min(60, settings.default.max_examples),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def doubled(cuts: Any) -> Any:
    """Cuts around every value, so that it becomes a cell of its own."""
    with np.errstate(over="ignore"):
        both = np.unique(np.concatenate((cuts, np.nextafter(cuts, np.inf))))
    return both[np.isfinite(both)]


def check_cells(scores: Any, labels: Any, cuts: Any, **options: Any) -> None:
    """All functions of cuts agree with searchsorted."""
    cells = np.searchsorted(cuts, scores.astype(np.float64), side="right")
    size = cuts.shape[0] + 1
    assigned = kernels.assign(scores, cuts, **options)
    assert assigned.dtype == np.intp
    np.testing.assert_array_equal(assigned, cells)
    rows, positives = kernels.count(scores, labels, cuts, **options)
    assert rows.dtype == positives.dtype == np.int64
    np.testing.assert_array_equal(rows, np.bincount(cells, minlength=size))
    np.testing.assert_array_equal(
        positives, np.bincount(cells[labels.astype(bool)], minlength=size)
    )
    table = np.cos(np.arange(3.0 * size)).reshape(size, 3)
    np.testing.assert_array_equal(
        kernels.look_up(scores, cuts, table[:, 0], **options), table[cells, 0]
    )
    np.testing.assert_array_equal(
        kernels.look_up(scores, cuts, table[:, :2], **options), table[cells, :2]
    )
    lines = np.sin(np.arange(5.0 * size)).reshape(size, 5)
    start, value, slope, lower, upper = lines[cells].T
    with np.errstate(all="ignore"):
        curve = value + slope * (scores.astype(np.float64) - start)
        np.testing.assert_array_equal(kernels.follow(scores, cuts, lines[:, :3], **options), curve)
        limits = np.clip(np.column_stack([curve + lower, curve + upper]), 0.0, 1.0)
        np.testing.assert_array_equal(kernels.follow(scores, cuts, lines, **options), limits)


def check_ranks(scores: Any, ranks: Any, **options: Any) -> None:
    result = kernels.order_statistics(scores, ranks, **options)
    np.testing.assert_array_equal(result, np.sort(scores.astype(np.float64))[ranks - 1])
    assert not np.signbit(result[result == 0.0]).any()


@pytest.mark.broad
@quick
@given(data=st.data())
def test_cells_equal_searchsorted(data: st.DataObject) -> None:
    cuts = np.array(sorted(set(data.draw(st.lists(finite, max_size=20)))), dtype=float)
    if data.draw(st.booleans()):
        cuts = doubled(cuts)
    pool = (
        data.draw(st.lists(finite, min_size=1, max_size=30))
        + list(cuts)
        + list(np.nextafter(cuts, 0.0))
    )
    generator = np.random.default_rng(data.draw(st.integers(0, 1000)))
    rows = data.draw(st.sampled_from([0, 1, 2, 300, 5000]))
    scores = generator.choice(np.array(pool), rows)
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            patch.setattr(kernels, "PLAIN_ROWS", 0)
            patch.setattr(kernels, "PLAIN_ROWS_A_CUT", 0)
        check_cells(scores, generator.random(rows) < 0.4, cuts)


@quick
@given(data=st.data())
def test_order_statistics_equal_a_sort(data: st.DataObject) -> None:
    pool = np.array(data.draw(st.lists(finite, min_size=1, max_size=60)))
    generator = np.random.default_rng(data.draw(st.integers(0, 1000)))
    rows = data.draw(st.sampled_from([1, 2, 50, 3000]))
    scores = generator.choice(pool, rows)
    ranks = np.array(sorted(data.draw(st.lists(st.integers(1, rows), min_size=1, max_size=20))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_select, "SORT_ROWS", 16)
        patch.setattr(_select, "FEW_VALUES", data.draw(st.sampled_from([0, 10, 500])))
        check_ranks(scores, ranks)


@pytest.mark.broad
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_scores(shape: str) -> None:
    generator = np.random.default_rng(5)
    rows = 80_001
    scores = SHAPES[shape](generator, rows)
    labels = (generator.random(rows) < 0.3).astype(np.uint8)
    known = np.sort(scores.astype(np.float64))
    for n_bins in (2, 15, 300):
        ranks = np.ceil(np.arange(1, n_bins) * rows / n_bins).astype(np.int64)
        check_ranks(scores, ranks)
        cuts = np.unique(known[ranks - 1] + 0.0)
        check_cells(scores, labels, cuts)
        check_cells(scores, labels, doubled(cuts))


@pytest.mark.parametrize("few_values", [0, 512])
@pytest.mark.parametrize("shape", SHAPES)
def test_order_statistics_by_cells_within_cells(
    few_values: int, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_select, "SORT_ROWS", 16)
    monkeypatch.setattr(_select, "FEW_VALUES", few_values)
    scores = SHAPES[shape](np.random.default_rng(6), 20_000)
    check_ranks(scores, np.array([1, 2, 7, 10_000, 10_000, 19_999, 20_000]))


@pytest.mark.parametrize("ranks", [[1, 20_000, 40_000, 59_000, 60_000], [30_000], [60_000]])
def test_a_misleading_sample_costs_time_only(
    ranks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = np.random.default_rng(7).random(60_000)
    smallest = np.sort(scores)[:500]
    for low, high in ((smallest[3], smallest[400]), (smallest[3], smallest[3])):
        monkeypatch.setattr(
            _select, "_sampled", lambda scores, wanted, ends=(low, high): (*ends, smallest)
        )
        check_ranks(scores, np.array(ranks))


def test_cuts_that_all_scores_tie_with_still_have_keys() -> None:
    values = np.arange(101) / 100
    scores = np.random.default_rng(3).choice(values, 20_000)
    grid = _grid.build(doubled(values), scores)
    assert grid is not None
    assert grid.depth == 2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("cuts", [np.empty(0), np.linspace(0.1, 0.9, 9)])
@pytest.mark.parametrize("limits", [(0.0, 1.0), (-np.inf, np.inf), (0.0, np.inf)])
def test_scores_are_checked_as_they_are_looked_up(dtype: Any, cuts: Any, limits: Any) -> None:
    scores = np.random.default_rng(4).random(300_000).astype(dtype)
    table = np.cos(np.arange(cuts.shape[0] + 1.0))
    options = {"limits": limits}
    np.testing.assert_array_equal(
        kernels.look_up(scores, cuts, table, **options),
        table[np.searchsorted(cuts, scores.astype(float), "right")],
    )
    for bad in (np.nan, np.inf, -np.inf, *((1.5, -0.5) if limits == (0.0, 1.0) else ())):
        spoilt = scores.copy()
        spoilt[299_000] = bad
        with pytest.raises(kernels.OutsideLimitsError):
            kernels.look_up(spoilt, cuts, table, **options)


@pytest.mark.parametrize("kind", [_grid.POSITIVE_BITS, _grid.LINEAR])
def test_every_kind_of_key(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(8)
    scores = np.concatenate((generator.normal(0.5, 0.3, 9_000), generator.choice(EXTREMES, 1_000)))
    for cuts in (
        np.array([0.0, DENORMAL, 0.3, 0.9]),
        doubled(np.linspace(0.1, 0.9, 9)),
        np.array([0.5]),
    ):
        grid = _grid._try(cuts, kind, 1 << 10)
        assert grid is not None
        monkeypatch.setattr(kernels, "build", lambda cuts, scores, *_, grid=grid: grid)
        check_cells(scores, scores > 0.4, cuts)


def test_many_cuts() -> None:
    generator = np.random.default_rng(9)
    scores = generator.random(20_000)
    for n_cuts in (126, 127, 254, 255, 70_000):
        check_cells(scores, scores > 0.5, np.unique(generator.random(n_cuts)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", [1, 3, -1])
def test_strided_read_only_input_is_read_and_left_alone(dtype: Any, step: int) -> None:
    generator = np.random.default_rng(10)
    base = generator.random(150_000).astype(dtype)
    base_labels = generator.random(150_000) < 0.3
    before = base.copy()
    before_labels = base_labels.copy()
    base.flags.writeable = base_labels.flags.writeable = False
    scores = base[::step]
    labels = base_labels[::step]
    cuts = np.linspace(0.05, 0.95, 19)
    ranks = np.array([3, 10_000, 49_000])
    cuts.flags.writeable = ranks.flags.writeable = False
    check_cells(scores, labels, cuts)
    check_cells(scores, labels.view(np.uint8), cuts)
    check_ranks(scores, ranks)
    assert kernels.first_nonfinite(scores) == -1
    np.testing.assert_array_equal(base, before)
    np.testing.assert_array_equal(base_labels, before_labels)


def test_float32_scores_are_compared_in_float64() -> None:
    scores = np.full(10_000, 0.1, np.float32)
    cut = np.array([np.nextafter(float(scores[0]), 1.0)])
    assert not kernels.assign(scores, cut).any()


@pytest.mark.broad
@pytest.mark.parametrize("shape", ["uniform", "two decimals", "logits", "float32"])
def test_threads_never_change_a_result(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_numpy, "THREAD_ROWS", 1)
    generator = np.random.default_rng(11)
    scores = SHAPES[shape](generator, 90_001)
    cuts = doubled(np.unique(np.quantile(scores.astype(float), np.arange(1, 15) / 15)))
    for threads in (2, 3):
        options = {"threads": threads}
        check_cells(scores, generator.random(90_001) < 0.2, cuts, **options)
        check_ranks(scores, np.array([1, 5_000, 45_000, 90_001]), **options)
    assert kernels.first_nonfinite(scores) == -1
    spoiled = scores.copy()
    spoiled[[70_000, 80_000]] = np.nan
    assert kernels.first_nonfinite(spoiled) == 70_000


def test_a_table_may_hold_nan() -> None:
    scores = np.random.default_rng(12).random(10_000)
    cuts = np.array([0.25, 0.5])
    table = np.array([np.nan, 1.0, 2.0])
    result = kernels.look_up(scores, cuts, table)
    np.testing.assert_array_equal(result, table[np.searchsorted(cuts, scores, side="right")])


def test_empty_input() -> None:
    for cuts in (np.empty(0), np.array([0.5])):
        check_cells(np.empty(0), np.empty(0, np.uint8), cuts)
    check_cells(np.array([0.2, 0.7]), np.array([True, False]), np.empty(0))
    nothing = kernels.order_statistics(np.array([0.5]), np.empty(0, np.int64))
    assert nothing.shape == (0,)
    assert kernels.first_nonfinite(np.empty(0)) == -1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("place", [0, 131_071, 131_072, 199_999])
def test_first_nonfinite(bad: float, dtype: Any, place: int) -> None:
    scores = np.random.default_rng(13).normal(size=200_000).astype(dtype)
    scores[place] = scores[-1] = bad
    assert kernels.first_nonfinite(scores) == place
    assert kernels.first_nonfinite(np.repeat(scores, 2)[::2]) == place


def test_huge_finite_scores_are_finite() -> None:
    assert kernels.first_nonfinite(np.full(1000, LARGEST)) == -1
    assert kernels.first_nonfinite(np.array([LARGEST, LARGEST, -np.inf])) == 2


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf, 1.5, -0.5])
@pytest.mark.parametrize("low", [0.0, -0.25])
def test_a_score_outside_the_limits_is_found_wherever_it_is(bad, low):
    scores = np.linspace(0.0, 1.0, 1_000)
    scores[7] = -0.0
    assert kernels.inside(scores, low, 1.0)
    for place in (0, 500, 999):
        scores = np.linspace(0.0, 1.0, 1_000)
        scores[place] = bad
        assert not kernels.inside(scores, low, 1.0)
        assert kernels.inside(scores, -np.inf, np.inf) == np.isfinite(bad)


@pytest.mark.parametrize("limits", [None, (-1.0, 2.0), (-1e300, 1e300)])
def test_even_keys_find_cells_of_outliers_with_any_limits(limits):
    rng = np.random.default_rng(0)
    cuts = np.linspace(-0.5, 0.5, 200)
    scores = rng.uniform(-0.6, 0.6, 50_000)
    if limits is None or limits[1] > 2.0:
        scores[[3, 70, 900]] = -1e299, 1e299, 2.0**53
    table = np.arange(201.0)
    found = kernels.look_up(scores, cuts, table, limits=limits)
    np.testing.assert_array_equal(found, np.searchsorted(cuts, scores, side="right"))
