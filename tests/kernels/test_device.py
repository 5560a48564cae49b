"""Arrays on a device give what the kernels for numpy arrays give, bit for bit.

Here torch tensors live on the CPU, and numpy arrays stand for CuPy's, whose interface they share. Fused kernels need
a GPU: `benchmarks/device.py` checks them there. Their tables are checked here.
"""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrant import kernels
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.kernels import device
from calibrant.kernels.device import _digits, _keys, _plain, _select, _sums, _torch
from calibrant.tally import WeightSums

torch = pytest.importorskip("torch")

LARGEST = float(np.finfo(np.float64).max)
EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e-45, 1e-40, 1.0, -1.0, 0.5, 0.1, 1e300, -1e300, LARGEST, -LARGEST, 3.4e38]
finite = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(EXTREMES), st.integers(-3, 3).map(float)
)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

MAKERS = {"torch": lambda array: torch.from_numpy(array), "cupy": lambda array: array}
LABEL_TYPES = ["uint8", "bool", "int8", "int32", "int64", "float32", "float64"]


@pytest.fixture(params=MAKERS)
def to(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pieces, and no sort, of few rows."""
    monkeypatch.setattr(_plain, "CHUNK_ROWS", 64)
    monkeypatch.setattr(_digits, "CHUNK_ROWS", 64)
    monkeypatch.setattr(_sums, "CHUNK_ROWS", 64)


def host(array: Any) -> Any:
    return np.asarray(array)


def around(cuts: Any, kind: Any) -> Any:
    """The cuts in that precision and their neighbours, without infinities."""
    with np.errstate(all="ignore"):
        near = cuts.astype(kind)
        near = np.concatenate((near, np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf))))
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


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("maker", MAKERS)
@settings(quick, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_cells_equal_those_of_numpy_arrays(maker: str, data: st.DataObject) -> None:
    scores, labels, cuts = draw_case(data)
    to = MAKERS[maker]
    typed = labels.astype(data.draw(st.sampled_from(LABEL_TYPES)))
    rows, positives = device.count(to(scores), to(typed), cuts)
    expected_rows, expected_positives = kernels.count(scores, labels, cuts)
    assert rows.dtype == positives.dtype == np.int64
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_array_equal(positives, expected_positives)
    assert device.tally(to(scores), to(typed), cuts)[2] == 0
    cells = device.assign(to(scores), cuts)
    assert device.is_device_array(cells) == (maker == "torch")
    np.testing.assert_array_equal(host(cells), kernels.assign(scores, cuts))
    for table in (np.cos(np.arange(cuts.shape[0] + 1.0)), np.arange(2.0 * cuts.shape[0] + 2).reshape(-1, 2)):
        result = device.look_up(to(scores), cuts, table)
        np.testing.assert_array_equal(host(result), kernels.look_up(scores, cuts, table))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("maker", MAKERS)
@settings(quick, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_order_statistics_equal_those_of_numpy_arrays(maker: str, data: st.DataObject) -> None:
    scores, _, _ = draw_case(data)
    if scores.shape[0] == 0:
        return
    ranks = np.array(data.draw(st.lists(st.integers(1, scores.shape[0]), max_size=12)), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        # With no room the digits are counted; with little the brackets are sorted.
        patch.setattr(_select, "SORT_ROWS", data.draw(st.sampled_from([0, 299])))
        patch.setattr(_select, "COPIED_ROWS", data.draw(st.sampled_from([0, 20, 300])))
        patch.setattr(_select, "SAMPLE_ROWS", data.draw(st.sampled_from([1, 60])))
        patch.setattr(_select, "RANKS_AT_ONCE", data.draw(st.sampled_from([3, 127])))
        result = device.order_statistics(MAKERS[maker](scores), ranks)
    np.testing.assert_array_equal(result, kernels.order_statistics(scores, ranks))
    assert not np.signbit(result[result == 0.0]).any()


@pytest.mark.parametrize("copied_rows", [20_000, 1_500])
@pytest.mark.parametrize("shape", ["uniform", "constant", "two decimals", "float32", "sorted"])
def test_brackets_find_order_statistics_without_counting_digits(
    to: Any, shape: str, copied_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(2)
    scores = generator.random(60_000)
    scores = {
        "uniform": scores,
        "constant": np.full(60_000, 0.3),
        "two decimals": scores.round(2),
        "float32": scores.astype(np.float32),
        "sorted": np.sort(scores),
    }[shape]
    monkeypatch.setattr(_select, "SORT_ROWS", 0)
    monkeypatch.setattr(_select, "COPIED_ROWS", copied_rows)
    monkeypatch.setattr(_select, "STEPS", 5)
    monkeypatch.setattr(_select, "SAMPLE_ROWS", 8_000)
    monkeypatch.setattr(_plain, "CHUNK_ROWS", 7_000)
    monkeypatch.setattr(_select, "by_digits", lambda *_: pytest.fail("digits were counted"))
    ranks = np.array([1, 20_000, 59_999, 30_000, 60_000])
    np.testing.assert_array_equal(device.order_statistics(to(scores), ranks), kernels.order_statistics(scores, ranks))


def test_order_statistics_of_few_rows_are_those_of_a_sort(to: Any) -> None:
    scores = np.array([0.5, -0.0, 0.25, 0.0, 0.5])
    np.testing.assert_array_equal(device.order_statistics(to(scores), [1, 3, 5, 3]), [0.0, 0.25, 0.5, 0.25])
    assert device.order_statistics(to(scores), []).shape == (0,)


@quick
@given(data=st.data())
def test_tables_of_the_fused_kernels_lead_to_the_right_cell(data: st.DataObject) -> None:
    """What a fused kernel does, in numpy: the key, its entry, and a comparison with no other than the key's cuts."""
    scores, _, cuts = draw_case(data)
    if cuts.shape[0] == 0:
        return
    own = _keys.as_float32(cuts) if scores.dtype == np.float32 else cuts
    keys = _keys.build(own)
    with np.errstate(all="ignore"):
        entries = keys.cells[_keys.keys_of(keys, scores.astype(np.float32))].astype(np.int64)
    first, held = entries & 0xFFFF, entries >> 16
    found = [
        f + int(np.searchsorted(own[f : f + h], s, side="right")) for s, f, h in zip(scores, first, held, strict=True)
    ]
    np.testing.assert_array_equal(np.array(found, np.int64), kernels.assign(scores, cuts))
    assert held.max(initial=0) <= keys.depth <= cuts.shape[0]


@pytest.mark.parametrize(
    ("cuts", "linear"), [(np.linspace(-3.0, 3.0, 99), True), (np.exp(np.linspace(-30.0, -1.0, 99)), False)]
)
def test_keys_suit_the_cuts(cuts: Any, linear: bool) -> None:
    keys = _keys.build(cuts)
    assert keys.linear == linear
    assert keys.depth == 1
    assert np.mean(keys.cells >> 16 > 0) < 0.02


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("cut", [0.0, -0.0])
def test_zeros_of_both_signs_are_equal(to: Any, kind: Any, cut: float) -> None:
    scores, cuts = np.array([-0.0, 0.0, -1.0], kind), np.array([-0.5, cut, 0.5])
    assert host(device.assign(to(scores), cuts)).tolist() == [2, 2, 0]
    keys = _keys.build(cuts.astype(kind))
    below = keys.cells[_keys.keys_of(keys, scores.astype(np.float32))] & 0xFFFF
    assert below[0] == below[1] <= 1


@pytest.mark.parametrize("cut", [0.0, -0.0])
def test_a_zero_cut_has_the_key_of_zero_scores(cut: float) -> None:
    for cuts in (np.array([cut]), np.array([cut, 1e-30, 1e30], np.float32)):
        keys = _keys.build(cuts)
        entry = int(keys.cells[_keys.keys_of(keys, np.array([0.0], np.float32))[0]])
        assert entry & 0xFFFF == 0
        assert entry >> 16 >= 1


def test_a_cut_in_float32_is_the_smallest_that_is_not_below_it() -> None:
    cuts = np.array([-1e300, -0.1, 0.0, 5e-324, 0.1, 0.5, 3.5e38])
    narrow = _keys.as_float32(cuts)
    assert (narrow >= cuts).all()
    with np.errstate(over="ignore"):
        assert (np.nextafter(narrow, np.float32(-np.inf)) < cuts).all()


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("bad_score", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("cuts", [np.array([]), np.array([0.25, 0.5]), np.array([-LARGEST, LARGEST])])
def test_bad_scores_are_counted_and_found(to: Any, bad_score: float, kind: Any, cuts: Any) -> None:
    scores = np.linspace(0.0, 1.0, 200, dtype=kind)
    labels = np.ones(200, np.uint8)
    assert device.first_nonfinite(to(scores)) == -1
    scores[[150, 199]] = bad_score
    assert device.tally(to(scores), to(labels), cuts)[2] == 2
    assert device.first_nonfinite(to(scores)) == 150


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("label_type", [kind for kind in LABEL_TYPES if kind != "bool"])
def test_wrong_labels_are_counted_and_found(to: Any, label_type: str) -> None:
    scores = np.linspace(0.0, 1.0, 200)
    labels = (np.arange(200) % 2).astype(label_type)
    assert device.tally(to(scores), to(labels), np.array([0.3]))[2] == 0
    wrong = [2, 3, 100, 127] if label_type[0] in "ui" else [0.5, np.nan, 2.0, -1.0]
    labels[[10, 130, 150, 199]] = wrong
    assert device.tally(to(scores), to(labels), np.array([0.3]))[2] == 4
    assert device.encode(to(labels), 0, 1)[1] == 10


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("label_type", LABEL_TYPES)
@pytest.mark.parametrize(("negative", "positive"), [(0, 1), (1, 0), (-1, 1), (5, 7)])
def test_labels_are_encoded_as_those_of_numpy_arrays(to: Any, label_type: str, negative: int, positive: int) -> None:
    if label_type == "bool" and {negative, positive} != {0, 1}:
        return
    if label_type == "uint8" and negative < 0:
        return
    labels = np.where(np.arange(150) % 3 == 0, positive, negative).astype(label_type)
    codes, bad = device.encode(to(labels), negative, positive)
    assert bad == -1
    np.testing.assert_array_equal(host(codes), kernels.encode(labels, negative, positive)[0])
    assert host(codes).dtype == np.uint8


def test_a_negative_label_is_no_byte(to: Any) -> None:
    assert device.encode(to(np.array([1, 255], np.uint8)), -1, 1)[1] == 1


def test_ready_codes_share_memory(to: Any) -> None:
    labels = np.array([0, 1, 1], np.uint8)
    codes, _ = device.encode(to(labels), 0, 1)
    labels[0] = 1
    assert host(codes)[0] == 1


@pytest.mark.parametrize("step", [2, 3])
def test_strides_are_followed(to: Any, step: int) -> None:
    generator = np.random.default_rng(0)
    scores, labels = generator.random(3000, np.float32), generator.integers(0, 2, 3000).astype(np.uint8)
    cuts = np.linspace(0.1, 0.9, 9)
    expected = kernels.count(scores[1::step], labels[1::step], cuts)
    np.testing.assert_array_equal(device.count(to(scores)[1::step], to(labels)[1::step], cuts), expected)
    ranks = np.array([1, 400, 900])
    np.testing.assert_array_equal(
        device.order_statistics(to(scores)[1::step], ranks), kernels.order_statistics(scores[1::step], ranks)
    )


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("spread", [0.0, 2.0, 200.0])
def test_weights_are_summed_exactly(to: Any, spread: float) -> None:
    generator = np.random.default_rng(1)
    rows = 500
    scores, labels = generator.random(rows), generator.integers(0, 2, rows).astype(np.uint8)
    weights = np.exp(spread * generator.normal(size=rows) / 2).clip(1e-150, 1e150)
    weights[:3] = 0.0, 5e-324, 1e-310
    cuts = np.array([-1.0, 0.3, 0.7])
    sums = device.weighted(to(scores), to(labels), to(weights), cuts)
    expected = WeightSums.of(weights, kernels.assign(scores, cuts), labels, 4)
    for name in ("w", "w2", "wy", "w2y"):
        assert getattr(sums, name) == getattr(expected, name)
    np.testing.assert_array_equal(sums.smallest, expected.smallest)
    np.testing.assert_array_equal(sums.largest, expected.largest)


def test_no_rows(to: Any) -> None:
    nothing = to(np.empty(0))
    cuts = np.array([0.5])
    assert device.tally(nothing, to(np.empty(0, np.uint8)), cuts)[0].tolist() == [0, 0]
    assert device.first_nonfinite(nothing) == -1
    assert device.encode(nothing, 0, 1)[1] == -1
    assert device.weighted(nothing, nothing, nothing, cuts).w.rounded().tolist() == [0.0, 0.0]
    assert tuple(device.look_up(nothing, cuts, np.zeros(2)).shape) == (0,)


def test_tensors_that_record_gradients_are_read() -> None:
    scores = torch.tensor([0.25, 0.75], requires_grad=True)
    rows, _ = device.count(scores, torch.tensor([0, 1]), np.array([0.5]))
    assert rows.tolist() == [1, 1]
    assert not device.look_up(scores, np.array([0.5]), np.zeros(2)).requires_grad
    assert device.order_statistics(scores, [2]).tolist() == [0.75]


def test_no_large_array_comes_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    brought: list[int] = []
    to_host = _torch.to_host
    monkeypatch.setattr(_torch, "to_host", lambda array: brought.append(array.numel()) or to_host(array))
    monkeypatch.setattr(torch.Tensor, "__array__", lambda *_: pytest.fail("copied to the host"))
    monkeypatch.setattr(torch.Tensor, "tolist", lambda *_: pytest.fail("copied to the host"))
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(10_000, generator=generator)
    labels = (scores > 0.5).to(torch.uint8)
    cuts = np.array([0.25, 0.5])
    device.tally(scores, labels, cuts)
    device.order_statistics(scores, np.array([1, 5000]))
    device.look_up(scores, cuts, np.zeros(3))
    device.first_nonfinite(scores)
    device.encode(labels, 0, 1)
    device.weighted(scores, labels, torch.ones(10_000), cuts)
    assert max(brought) < 100


@pytest.mark.parametrize(
    ("scores", "labels", "error", "words"),
    [
        (np.zeros(2, np.int64), np.zeros(2), InvalidTypeError, "scores must be float32 or float64; got int64"),
        (np.zeros((2, 1)), np.zeros(2), InvalidValueError, r"scores must be one-dimensional; got shape \(2, 1\)"),
        (np.zeros(2), np.zeros(3), InvalidValueError, "labels must have one entry a score"),
    ],
)
def test_what_cannot_be_used_is_named(to: Any, scores: Any, labels: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        device.count(to(scores), to(labels), np.array([0.5]))


def test_arrays_of_two_libraries_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="labels must be of the scores' library"):
        device.count(torch.zeros(2), np.zeros(2), np.array([0.5]))
    with pytest.raises(InvalidTypeError, match="scores must be a torch tensor or a CuPy array; got list"):
        device.count([0.5], [1], np.array([0.5]))


def test_which_arrays_live_on_a_device() -> None:
    assert device.is_device_array(torch.zeros(1))
    assert device.is_device_array(torch.nn.Parameter(torch.zeros(1)))
    assert not device.is_device_array(np.zeros(1))


def test_importing_loads_no_library() -> None:
    code = "import sys, calibrant.kernels.device; print({'torch', 'cupy', 'triton', 'numba'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
