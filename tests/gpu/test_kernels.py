"""Arrays on a device give what the kernels for numpy arrays give, bit for bit.

Here torch tensors live on the CPU, and numpy arrays stand for CuPy's: the functions use nothing but
what both have. `benchmarks/device.py` makes the same checks on a GPU.
"""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrant import kernels
from calibrant.cells.knots import Knots
from calibrant.cells.score_partition import ScorePartition
from calibrant.gpu import draws
from calibrant.gpu import kernels as gpu_kernels
from calibrant.params import tensors
from calibrant.params.random import Draw, RandomSource, SmallestHashes, enough, uniforms
from calibrant.sample.row_keys import position_keys

torch = pytest.importorskip("torch")

LARGEST = float(np.finfo(np.float64).max)
EXTREMES = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1e-45,
    1e-40,
    1.0,
    -1.0,
    0.5,
    0.1,
    1e300,
    -1e300,
    LARGEST,
    -LARGEST,
    3.4e38,
]
finite = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(EXTREMES),
    st.integers(-3, 3).map(float),
)
quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

MAKERS = {"torch": lambda array: torch.from_numpy(array), "cupy": lambda array: array}
CODE_TYPES = ["uint8", "bool", "int64"]


@pytest.fixture(params=MAKERS)
def to(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many chunks of few rows."""
    monkeypatch.setattr(gpu_kernels, "CHUNK_ROWS", 64)


def around(cuts: Any, kind: Any) -> Any:
    """The cuts in that precision and their neighbours, without infinities."""
    with np.errstate(all="ignore"):
        near = cuts.astype(kind)
        near = np.concatenate(
            (near, np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf)))
        )
    return near[np.isfinite(near)]


def draw_case(data: st.DataObject) -> tuple[Any, Any, Any]:
    """Scores of either precision, many at or beside a cut; labels; cuts."""
    kind = data.draw(st.sampled_from([np.float32, np.float64]))
    cuts = np.array(sorted(set(data.draw(st.lists(finite, max_size=20)))), dtype=float)
    with np.errstate(all="ignore"):
        pool = np.array(data.draw(st.lists(finite, min_size=1, max_size=30))).astype(kind)
    pool = np.concatenate((np.zeros(1, kind), pool[np.isfinite(pool)], around(cuts, kind)))
    generator = np.random.default_rng(data.draw(st.integers(0, 1000)))
    rows = data.draw(st.sampled_from([0, 1, 2, 300]))
    return generator.choice(pool, rows), generator.random(rows) < 0.4, cuts


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("maker", MAKERS)
@quick
@given(data=st.data())
def test_counts_and_values_equal_those_of_numpy_arrays(maker: str, data: st.DataObject) -> None:
    scores, labels, cuts = draw_case(data)
    to = MAKERS[maker]
    codes = labels.astype(data.draw(st.sampled_from(CODE_TYPES)))
    rows, positives = gpu_kernels.count(to(scores), to(codes), cuts)
    expected_rows, expected_positives = kernels.count(scores, labels, cuts)
    assert rows.dtype == positives.dtype == np.int64
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_array_equal(positives, expected_positives)
    for table in (
        np.cos(np.arange(cuts.shape[0] + 1.0)),
        np.arange(2.0 * cuts.shape[0] + 2).reshape(-1, 2),
    ):
        result = gpu_kernels.look_up(to(scores), cuts, table)
        assert tensors.is_device_array(result) == (maker == "torch")
        np.testing.assert_array_equal(tensors.to_host(result), kernels.look_up(scores, cuts, table))
    sets = np.arange(cuts.shape[0] + 1) % 2 == 0
    held = tensors.to_host(gpu_kernels.look_up(to(scores), cuts, sets))
    np.testing.assert_array_equal(held, sets[kernels.assign(scores, cuts)])


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("n_offsets", [0, 2])
@quick
@given(data=st.data())
def test_values_of_curves_equal_those_of_numpy_arrays(
    maker: str, n_offsets: int, data: st.DataObject
) -> None:
    scores, _, cuts = draw_case(data)
    lines = np.sin(np.arange((3.0 + n_offsets) * (cuts.shape[0] + 1))).reshape(
        cuts.shape[0] + 1, -1
    )
    with np.errstate(all="ignore"):
        result = gpu_kernels.follow(MAKERS[maker](scores), cuts, lines)
        expected = kernels.follow(scores, cuts, lines)
    assert tensors.is_device_array(result) == (maker == "torch")
    np.testing.assert_array_equal(tensors.to_host(result), expected)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("maker", MAKERS)
@quick
@given(data=st.data())
def test_order_statistics_equal_those_of_numpy_arrays(maker: str, data: st.DataObject) -> None:
    scores, _, _ = draw_case(data)
    if scores.shape[0] == 0:
        return
    ranks = np.array(data.draw(st.lists(st.integers(1, scores.shape[0]), max_size=12)), np.int64)
    result = draws.order_statistics(MAKERS[maker](scores), ranks)
    np.testing.assert_array_equal(result, kernels.order_statistics(scores, ranks))
    assert not np.signbit(result[result == 0.0]).any()


@pytest.mark.parametrize(
    "shape", ["uniform", "constant", "two decimals", "float32", "sorted", "both signs"]
)
def test_order_statistics_of_many_rows(to: Any, shape: str) -> None:
    scores = np.random.default_rng(2).random(60_000)
    scores = {
        "uniform": scores,
        "constant": np.full(60_000, 0.3),
        "two decimals": scores.round(2),
        "float32": scores.astype(np.float32),
        "sorted": np.sort(scores),
        "both signs": scores - 0.5,
    }[shape]
    ranks = np.array([1, 20_000, 59_999, 30_000, 60_000, 30_000])
    np.testing.assert_array_equal(
        draws.order_statistics(to(scores), ranks), kernels.order_statistics(scores, ranks)
    )


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("cut", [0.0, -0.0])
def test_zeros_of_both_signs_are_equal(to: Any, kind: Any, cut: float) -> None:
    scores = np.array([-0.0, 0.0, -1.0], kind)
    cuts = np.array([-0.5, cut, 0.5])
    assert tensors.to_host(gpu_kernels.look_up(to(scores), cuts, np.arange(4))).tolist() == [
        2,
        2,
        0,
    ]


@pytest.mark.parametrize("bad_score", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_scores_that_are_not_finite_are_among_the_extremes(
    to: Any, bad_score: float, kind: Any
) -> None:
    scores = np.linspace(0.0, 1.0, 200, dtype=kind)
    assert gpu_kernels.ends_of(to(scores)) == (0.0, 1.0)
    scores[150] = bad_score
    assert not np.isfinite(gpu_kernels.ends_of(to(scores))).all()


@pytest.mark.usefixtures("small_chunks")
def test_whether_a_test_holds_for_every_row(to: Any) -> None:
    labels = np.arange(200) % 2
    assert gpu_kernels.every(lambda part: part <= 1, to(labels))
    labels[150] = 2
    assert not gpu_kernels.every(lambda part: part <= 1, to(labels))


def test_the_first_row_of_a_kind(to: Any) -> None:
    assert gpu_kernels.first(to(np.array([False, False, True, False, True]))) == 2


@pytest.mark.parametrize("limit", [0, 1, 2**40, 2**62, 2**63, 2**64 - 1, 2**64])
def test_rows_are_drawn_as_everywhere(to: Any, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_kernels, "CHUNK_ROWS", 700)
    draw = Draw(7, limit)
    want = np.flatnonzero(draw.chosen(position_keys(0, 2_000)))
    assert (
        tensors.to_host(draws.drawn(to(np.zeros(2_000)), draw.key, limit)).tolist() == want.tolist()
    )


@pytest.mark.parametrize("step", [2, 3])
def test_strides_are_followed(to: Any, step: int) -> None:
    generator = np.random.default_rng(0)
    scores = generator.random(3000, np.float32)
    labels = generator.integers(0, 2, 3000).astype(np.uint8)
    cuts = np.linspace(0.1, 0.9, 9)
    expected = kernels.count(scores[1::step], labels[1::step], cuts)
    np.testing.assert_array_equal(
        gpu_kernels.count(to(scores)[1::step], to(labels)[1::step], cuts), expected
    )
    ranks = np.array([1, 400, 900])
    np.testing.assert_array_equal(
        draws.order_statistics(to(scores)[1::step], ranks),
        kernels.order_statistics(scores[1::step], ranks),
    )


def test_no_rows(to: Any) -> None:
    nothing = to(np.empty(0))
    cuts = np.array([0.5])
    assert gpu_kernels.count(nothing, to(np.empty(0, np.uint8)), cuts)[0].tolist() == [0, 0]
    assert draws.order_statistics(nothing, np.empty(0, np.int64)).shape == (0,)
    assert tuple(gpu_kernels.look_up(nothing, cuts, np.zeros(2)).shape) == (0,)


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int64", "uint8", "bool"])
def test_arrays_go_to_the_host_and_back(kind: str) -> None:
    tensor = torch.tensor([0, 1, 1]).to(getattr(torch, kind))
    host = tensors.to_host(tensor)
    assert host.tolist() == [0, 1, 1]
    assert host.dtype == kind
    back = tensors.like(host, tensor)
    assert back.dtype == tensor.dtype
    assert torch.equal(back, tensor)


def test_what_numpy_has_no_type_for_comes_to_the_host_too() -> None:
    assert tensors.to_host(torch.tensor([0.5, 0.25], dtype=torch.bfloat16)).tolist() == [
        0.5,
        0.25,
    ]
    assert tensors.to_host(torch.tensor([0.5, 0.25], requires_grad=True)).tolist() == [0.5, 0.25]


def test_results_that_torch_cannot_hold_or_share_come_back() -> None:
    text = np.array(["no", "yes"])
    assert tensors.like(text, torch.zeros(1)) is text
    frozen = np.array([[1.0, 2.0], [3.0, 4.0]])
    frozen.flags.writeable = False
    assert tensors.like(frozen[:, ::-1], torch.zeros(1)).tolist() == [[2.0, 1.0], [4.0, 3.0]]


def test_no_large_array_comes_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    brought: list[int] = []
    to_host = tensors.to_host
    monkeypatch.setattr(
        gpu_kernels, "to_host", lambda array: brought.append(len(array)) or to_host(array)
    )
    monkeypatch.setattr(torch.Tensor, "__array__", lambda *_: pytest.fail("copied to the host"))
    monkeypatch.setattr(torch.Tensor, "tolist", lambda *_: pytest.fail("copied to the host"))
    scores = torch.rand(100_000, generator=torch.Generator().manual_seed(0))
    codes = scores > 0.5
    cuts = np.array([0.25, 0.5])
    gpu_kernels.count(scores, codes, cuts)
    gpu_kernels.look_up(scores, cuts, np.zeros(3))
    gpu_kernels.ends_of(scores)
    gpu_kernels.first(codes)
    assert max(brought) == 6
    draws.order_statistics(scores, np.array([5000]))
    assert max(brought) < 3 * 2**16


def test_which_arrays_live_on_a_device() -> None:
    assert tensors.is_device_array(torch.zeros(1))
    assert tensors.is_device_array(torch.nn.Parameter(torch.zeros(1)))
    assert not tensors.is_device_array(np.zeros(1))
    assert not tensors.on_gpu(torch.zeros(1))
    assert not tensors.on_gpu(np.zeros(1))


def test_importing_loads_no_library() -> None:
    code = "import sys, calibrant.gpu.kernels; print({'torch', 'cupy', 'numba'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_at_knots_are_counted_as_in_memory(kind):
    rng = np.random.default_rng(0)
    source = RandomSource(11)
    regions = ScorePartition.at(np.array([0.25, 0.5, 0.75])).if_untied()
    knots = Knots.between(regions, [np.sort(rng.random(20))])
    scores = rng.random(5_000).astype(kind)
    scores[:10] = 0.5  # a single edge value, which is a place of its own
    codes = rng.integers(0, 2, size=5_000).astype(np.uint8)
    expected = knots.count(scores, codes, source)
    counting, *columns = knots.counting
    cells = counting.bins_by_segment[None].cuts, np.column_stack(columns).astype(np.float64)
    for some in (torch.from_numpy, lambda array: array):
        found = draws.count_knots(some(scores), some(codes), source.key, cells, knots.n_places)
        np.testing.assert_array_equal(found, expected)


def test_a_row_counts_at_the_next_knot_only_if_its_number_is_smaller_than_its_share():
    source = RandomSource(3)
    shares = uniforms(
        source.hashes(np.arange(1_000, dtype=np.uint64))
    )  # equal, in doubles: at the first knot
    cells = np.empty(0), np.array([[0.0, 0.0, 1.0]])
    codes = torch.zeros(1_000, dtype=torch.uint8)
    found = draws.count_knots(torch.from_numpy(shares), codes, source.key, cells, 2)
    assert found[0].sum() == 1_000


@pytest.mark.parametrize("most", [0, 1, 40, 1_000])
def test_the_rows_with_the_smallest_hashes_are_those_of_the_host(most):
    scores = torch.zeros(1_000)
    hashes = Draw(9).hashes(position_keys(0, 1_000))
    limit = SmallestHashes(most, np.sort(hashes)[:most]).limit
    index, found = draws.smallest_drawn(scores, 9, enough(most, 1_000), most)
    assert found == limit
    np.testing.assert_array_equal(
        index.numpy(), np.flatnonzero(hashes < np.uint64(limit)) if most else []
    )
