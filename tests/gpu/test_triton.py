"""The kernels for GPUs, run by Triton's interpreter on tensors of the CPU: the same code, step by
step in numpy.

`benchmarks/device.py` runs them on a GPU, on the same kinds of scores.
"""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrant import kernels
from calibrant.cells.knots import Knots
from calibrant.cells.score_partition import ScorePartition
from calibrant.gpu import draws
from calibrant.gpu import kernels as gpu_kernels
from calibrant.params import tensors
from calibrant.params.random import Draw, RandomSource, RowSums
from calibrant.sample.row_keys import position_keys

pytestmark = pytest.mark.usefixtures("interpreted")

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
few = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def scores_near(cuts: Any, kind: Any, more: Any, rows: int) -> Any:
    """Scores at the cuts and beside them, and others."""
    with np.errstate(all="ignore"):
        near = cuts.astype(kind)
        pool = np.concatenate(
            (near, np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf)), more)
        )
    pool = np.concatenate((pool[np.isfinite(pool)].astype(kind), np.zeros(1, kind)))
    return np.random.default_rng(rows).choice(pool, rows)


def same_as_numpy(scores: Any, cuts: Any) -> None:
    labels = np.random.default_rng(1).random(scores.shape[0]) < 0.4
    rows, positives = gpu_kernels.count(torch.from_numpy(scores), torch.from_numpy(labels), cuts)
    expected_rows, expected_positives = kernels.count(scores, labels, cuts)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_array_equal(positives, expected_positives)
    cells = kernels.assign(scores, cuts)
    size = cuts.shape[0] + 1
    for table in (
        np.cos(np.arange(size)),
        np.arange(2.0 * size).reshape(-1, 2),
        np.arange(size) % 2 == 0,
    ):
        found = gpu_kernels.look_up(torch.from_numpy(scores), cuts, table)
        np.testing.assert_array_equal(tensors.to_host(found), table[cells])


@few
@given(data=st.data())
def test_counts_and_values_equal_those_of_numpy(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([np.float32, np.float64]))
    cuts = np.array(sorted(set(data.draw(st.lists(finite, max_size=20)))), dtype=float)
    with np.errstate(all="ignore"):
        more = np.array(data.draw(st.lists(finite, max_size=20)), dtype=float).astype(kind)
    same_as_numpy(scores_near(cuts, kind, more, data.draw(st.sampled_from([0, 1, 300]))), cuts)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 2, 127, 128, 600])
def test_few_and_many_cuts(size: int, kind: Any) -> None:
    generator = np.random.default_rng(size)
    cuts = np.unique(generator.beta(0.3, 8.0, size))
    same_as_numpy(scores_near(cuts, kind, generator.random(500).astype(kind), 700), cuts)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_cuts_that_crowd_in_one_cell_of_the_grid(kind: Any) -> None:
    cuts = np.unique(np.concatenate((0.5 + 1e-6 * np.arange(60), [-1e30, -1e20, 1e20, 1e30])))
    same_as_numpy(scores_near(cuts, kind, np.linspace(0.49, 0.51, 50).astype(kind), 500), cuts)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("first", [0.1, 1.0, 3e38])
def test_cuts_that_single_precision_cannot_tell_apart(first: float, kind: Any) -> None:
    cuts = np.array([first, np.nextafter(first, np.inf)])
    same_as_numpy(scores_near(cuts, kind, np.array([0.0, first], dtype=kind), 100), cuts)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", ["uniform", "constant", "two decimals", "both signs"])
def test_order_statistics_equal_those_of_numpy(shape: str, kind: Any) -> None:
    scores = np.random.default_rng(2).random(900)
    scores = {
        "uniform": scores,
        "constant": np.full(900, 0.3),
        "two decimals": scores.round(2),
        "both signs": np.concatenate((scores[:448] - 0.5, EXTREMES[:4], -scores[452:])),
    }[shape].astype(kind)
    ranks = np.array([1, 300, 899, 450, 900, 450])
    found = draws.order_statistics(torch.from_numpy(scores), ranks)
    np.testing.assert_array_equal(found, kernels.order_statistics(scores, ranks))


@pytest.mark.parametrize("limit", [0, 1, 2**40, 2**62, 2**63, 2**64 - 1, 2**64])
@pytest.mark.parametrize("key", [7, 2**64 - 300])
def test_rows_are_drawn_as_everywhere(
    key: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "_DRAWN_ROWS", 300)
    want = np.flatnonzero(Draw(key, limit).chosen(position_keys(0, 700)))
    assert draws.drawn(torch.zeros(700), key, limit).tolist() == want.tolist()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_fingerprint_is_that_of_the_host(
    interpreted: Any, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreted["_triton_draws"], "_PROGRAMS", 3)
    scores = scores_near(
        np.array([-2.5, 0.0, 1e-40, 0.3]), kind, np.linspace(-3, 3, 400).astype(kind), 500
    )
    codes = np.arange(500) % 3 == 0
    sums = RowSums.of([scores.astype(float)], (0, 1), codes.astype(int))
    assert draws.sums_of_rows(torch.from_numpy(scores), torch.from_numpy(codes)) == [
        *sums.kinds.values()
    ]


def test_every_other_score_is_followed() -> None:
    scores = np.random.default_rng(0).random(600)
    labels = np.arange(600) % 3 == 0
    cuts = np.linspace(0.1, 0.9, 9)
    found = gpu_kernels.count(torch.from_numpy(scores)[1::2], torch.from_numpy(labels)[1::2], cuts)
    np.testing.assert_array_equal(found, kernels.count(scores[1::2], labels[1::2], cuts))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n_offsets", [0, 2, 4])
@pytest.mark.parametrize("is_single", [True, False])
def test_values_of_curves_equal_those_of_numpy(kind: Any, n_offsets: int, is_single: bool) -> None:
    generator = np.random.default_rng(3)
    cuts = np.unique(generator.beta(0.3, 8.0, 90))
    lines = np.sin(np.arange((3.0 + n_offsets) * (cuts.size + 1))).reshape(cuts.size + 1, -1)
    if is_single:  # lines begin where single precision can say, except for a flat one
        lines[1:, 0] = lines[1:, 0].astype(np.float32)
        lines[0, 2] = 0.0
    scores = scores_near(cuts, kind, generator.random(300).astype(kind), 500)
    found = gpu_kernels.follow(torch.from_numpy(scores), cuts, lines, limits=(-1.0, 2.0))
    np.testing.assert_array_equal(found.numpy(), kernels.follow(scores, cuts, lines))


@pytest.mark.parametrize(
    ("begin", "slope", "wanted"),
    [
        (0.5, 1.0, np.float32),
        (0.1, 1.0, np.float64),
        (0.1, 0.0, np.float32),
        (1e300, 0.0, np.float64),
    ],
)
def test_lines_begin_in_single_precision_only_where_it_loses_nothing(
    interpreted: Any, begin: float, slope: float, wanted: Any
) -> None:
    begins = np.array([0.25, begin])
    slopes = np.array([2.0, slope])
    found = interpreted["_triton"]._begins(begins, slopes, np.dtype(np.float32))
    assert found.dtype == wanted


ENDS = (float(np.float32(0.25)), 0.7)
"""The smallest and the largest score that is allowed: one is a number of single precision."""


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("bad_score", [np.nan, np.inf, -np.inf, "below", "above"])
def test_a_score_outside_the_limits_is_noticed(kind: Any, bad_score: Any) -> None:
    least = kind(ENDS[0])
    most = kind(ENDS[1])
    most = most if most <= ENDS[1] else np.nextafter(most, kind(0))
    scores = np.linspace(least, most, 300).astype(kind).clip(least, most)
    cuts = np.array([0.5])
    lines = np.array([[0.0, 0.0, 0.5], [0.5, 0.75, 0.0]])
    find = [
        lambda: gpu_kernels.look_up(torch.from_numpy(scores), cuts, np.zeros(2), limits=ENDS),
        lambda: gpu_kernels.follow(torch.from_numpy(scores), cuts, lines, limits=ENDS),
    ]
    for found in find:
        found()
    beside = {"below": np.nextafter(least, kind(0)), "above": np.nextafter(most, kind(1))}
    scores[250] = beside[bad_score] if isinstance(bad_score, str) else bad_score
    for found in find:
        with pytest.raises(kernels.OutsideLimitsError):
            found()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n_knots", [3, 300])
@pytest.mark.parametrize("key", [11, 2**64 - 100])
def test_rows_are_counted_at_knots_as_in_memory(kind: Any, n_knots: int, key: int) -> None:
    generator = np.random.default_rng(0)
    source = RandomSource(key)
    regions = ScorePartition.at(np.array([0.25, 0.5, 0.75])).if_untied()
    knots = Knots.between(regions, [np.sort(generator.random(n_knots))])
    scores = generator.random(500).astype(kind)
    scores[:10] = 0.5  # a single edge value, which is a place of its own
    codes = generator.integers(0, 2, size=500).astype(np.uint8)
    counting, *columns = knots.counting
    cells = counting.bins_by_segment[None].cuts, np.column_stack(columns).astype(np.float64)
    tensors = torch.from_numpy(scores), torch.from_numpy(codes)
    found = draws.count_knots(*tensors, key, cells, knots.n_places)
    assert found[knots.n_knots :].sum(axis=(1, 2)).tolist() == [0, 10, 0]
    np.testing.assert_array_equal(found, knots.count(scores, codes, source))
    some = np.flatnonzero(codes + generator.integers(0, 2, 500))
    keys = some.astype(np.uint64)
    expected = knots.count(scores[some], codes[some], source, keys)
    places = torch.from_numpy(some)
    tensors = torch.from_numpy(scores[some]), torch.from_numpy(codes[some])
    found = draws.count_knots(*tensors, key, cells, knots.n_places, places)
    np.testing.assert_array_equal(found, expected)


def test_the_last_cell_is_a_number_of_single_precision(interpreted: dict[str, Any]) -> None:
    """Else a score beyond the last cut is looked up beyond the grid."""
    for n_cuts in (0, 1, 5_000, (1 << 25) + 2, 1 << 29):
        cells = interpreted["_triton"]._n_cells(n_cuts)
        assert np.float32(cells - 1) == cells - 1


COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from calibrant.gpu import _triton


def show(kernel, kinds, **constants):
    signature = dict(zip(kernel.arg_names, kinds.split() + ["constexpr"] * len(constants)))
    source = ASTSource(kernel, signature, constexprs=constants)
    print(triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"])


search = " *i16 *fp32 fp32 fp32 fp32 "
counting = {"AT_KNOTS": False, "HAS_PLACES": False, "ROUNDS": (30, 1), "COPIES": 8}
counting |= {"GROUPS": 256, "SHARED": "256", "HALVINGS": 1, "BLOCK": 1024}
show(_triton._count_kernel, f"*fp32 *u8 *fp32 i32 i64 {search} *fp32 *i32", **counting)
following = {"PAIRS": 2, "NVIDIA": True, "HALVINGS": 1, "BLOCK": 256}
show(_triton._follow_kernel, f"*fp32 i32 *fp32 *i32 {search} *fp32 *fp64 *fp64", **following)
"""


def test_the_instructions_of_nvidia_are_compiled() -> None:
    """The interpreter does not know them, so they are compiled here, and not run."""
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    command = [sys.executable, "-c", COMPILED]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "red.shared.add.u32" in found.stdout
    assert found.stdout.count(".b32 counters[256]") == 1
    assert "ld.global.nc.v2.f64" in found.stdout
