"""The kernels for GPUs, run by Triton's interpreter on tensors of the CPU: the same code, step by
step in numpy.

`benchmarks/device.py` runs them on a GPU, on the same kinds of scores.
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrant import kernels
from calibrant.kernels import device, libraries
from calibrant.params.random import RowSums
from calibrant.sample.draw import Draw, position_keys

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Triton is made for Linux")

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


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, made anew by the interpreter, in the place of `fused`, which takes scores of a
    GPU alone.
    """
    name = "calibrant.kernels._triton"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "TRITON_INTERPRET", "1")
        patch.delitem(sys.modules, name, raising=False)
        import calibrant.kernels._triton as module

        patch.setitem(sys.modules, name, module)
        patch.setattr(module, "_LAUNCH_ROWS", 200)
        patch.setattr(module, "_BLOCK", 64)
        patch.setattr(module, "_COUNT_BLOCK", 64)
        patch.setattr(device, "fused", lambda scores: module)
        with np.errstate(all="ignore"):  # a GPU does not warn
            yield module


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
    rows, positives = device.count(torch.from_numpy(scores), torch.from_numpy(labels), cuts)
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
        found = device.look_up(torch.from_numpy(scores), cuts, table)
        np.testing.assert_array_equal(libraries.to_host(found), table[cells])


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
    found = device.order_statistics(torch.from_numpy(scores), ranks)
    np.testing.assert_array_equal(found, kernels.order_statistics(scores, ranks))


@pytest.mark.parametrize("limit", [1, 2**40, 2**62, 2**63, 2**64 - 1])
@pytest.mark.parametrize("key", [7, 2**64 - 300])
def test_rows_are_drawn_as_everywhere(
    interpreted: Any, key: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreted, "_DRAWN_ROWS", 300)
    want = np.flatnonzero(Draw(key, limit).chosen(position_keys(0, 700)))
    assert device.drawn(torch.zeros(700), key, limit).tolist() == want.tolist()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_fingerprint_is_that_of_the_host(
    interpreted: Any, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreted, "_PROGRAMS", 3)
    scores = scores_near(
        np.array([-2.5, 0.0, 1e-40, 0.3]), kind, np.linspace(-3, 3, 400).astype(kind), 500
    )
    codes = np.arange(500) % 3 == 0
    sums = RowSums.of([scores.astype(float)], (0, 1), codes.astype(int))
    assert device.sums_of_rows(torch.from_numpy(scores), torch.from_numpy(codes)) == [
        *sums.kinds.values()
    ]


def test_every_other_score_is_followed() -> None:
    scores = np.random.default_rng(0).random(600)
    labels = np.arange(600) % 3 == 0
    cuts = np.linspace(0.1, 0.9, 9)
    found = device.count(torch.from_numpy(scores)[1::2], torch.from_numpy(labels)[1::2], cuts)
    np.testing.assert_array_equal(found, kernels.count(scores[1::2], labels[1::2], cuts))
