"""Arrays on a device go to the host and back, and what is done where they are equals what is done
with numpy arrays.

Here torch tensors live on the CPU, and Triton's interpreter runs the kernels. `benchmarks/device.py`
makes the same checks on a GPU.
"""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from calibrant import kernels
from calibrant.gpu import draws
from calibrant.gpu import kernels as gpu_kernels
from calibrant.params import tensors
from calibrant.params.random import Draw, RandomSource, SmallestHashes, enough, uniforms
from calibrant.sample.row_keys import position_keys

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("cut", [0.0, -0.0])
@pytest.mark.usefixtures("interpreted")
def test_zeros_of_both_signs_are_equal(kind: Any, cut: float) -> None:
    scores = torch.from_numpy(np.array([-0.0, 0.0, -1.0], kind))
    cuts = np.array([-0.5, cut, 0.5])
    assert gpu_kernels.look_up(scores, cuts, np.arange(4)).tolist() == [2, 2, 0]
    assert not np.signbit(draws.order_statistics(scores, np.array([2, 3]))).any()


@pytest.mark.parametrize("bad_score", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_scores_that_are_not_finite_are_among_the_extremes(bad_score: float, kind: Any) -> None:
    scores = np.linspace(0.0, 1.0, 200, dtype=kind)
    assert gpu_kernels.ends_of(torch.from_numpy(scores)) == (0.0, 1.0)
    scores[150] = bad_score
    assert not np.isfinite(gpu_kernels.ends_of(torch.from_numpy(scores))).all()


@pytest.mark.parametrize("step", [2, 3])
@pytest.mark.usefixtures("interpreted")
def test_strides_are_followed(step: int) -> None:
    scores = np.random.default_rng(0).random(3000, np.float32)[1::step]
    ranks = np.array([1, 400, 900])
    found = draws.order_statistics(torch.from_numpy(scores), ranks)
    np.testing.assert_array_equal(found, kernels.order_statistics(scores, ranks))


@pytest.mark.usefixtures("interpreted")
def test_no_rows() -> None:
    nothing = torch.empty(0, dtype=torch.float64)
    cuts = np.array([0.5])
    no_codes = torch.empty(0, dtype=torch.uint8)
    assert gpu_kernels.count(nothing, no_codes, cuts)[0].tolist() == [0, 0]
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


@pytest.mark.usefixtures("interpreted")
def test_no_large_array_comes_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    brought: list[int] = []

    def to_host(array: Any) -> Any:
        brought.append(array.numel())
        return tensors.to_host(array)

    for module in (gpu_kernels, draws):
        monkeypatch.setattr(module, "to_host", to_host)
    scores = torch.rand(1_000, generator=torch.Generator().manual_seed(0))
    codes = scores > 0.5
    cuts = np.array([0.25, 0.5])
    gpu_kernels.count(scores, codes, cuts)
    gpu_kernels.look_up(scores, cuts, np.zeros(3))
    gpu_kernels.ends_of(scores)
    draws.order_statistics(scores, np.array([500]))
    assert max(brought) == 6


def test_which_arrays_live_on_a_device() -> None:
    assert tensors.is_device_array(torch.zeros(1))
    assert tensors.is_device_array(torch.nn.Parameter(torch.zeros(1)))
    assert not tensors.is_device_array(np.zeros(1))
    assert not tensors.on_gpu(torch.zeros(1))
    assert gpu_kernels.gpu_tensor(torch.zeros(1)) is None
    assert not tensors.on_gpu(np.zeros(1))


def test_importing_loads_no_library() -> None:
    code = "import sys, calibrant.gpu.kernels; print({'torch', 'cupy', 'numba'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.usefixtures("interpreted")
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
@pytest.mark.usefixtures("interpreted")
def test_the_rows_with_the_smallest_hashes_are_those_of_the_host(most):
    scores = torch.zeros(1_000)
    hashes = Draw(9).hashes(position_keys(0, 1_000))
    limit = SmallestHashes(most, np.sort(hashes)[:most]).limit
    index, found = draws.smallest_drawn(scores, 9, enough(most, 1_000), most)
    assert found == limit
    np.testing.assert_array_equal(
        index.numpy(), np.flatnonzero(hashes < np.uint64(limit)) if most else []
    )
