"""Every export, run by a real engine, gives what `predict` gives: the same bits, and nothing where
it refuses.
"""

import numpy as np
import pyarrow as pa
import pytest

from answers import worlds
from answers.worlds import ANYWHERE, NOWHERE, WORLDS, edge_scores, expected, in_rows
from calibrant import Partition
from calibrant.export import OUTPUTS

pytestmark = pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen


def askable(engine, rows):
    """A model cannot be given a missing segment that is no text."""
    if engine.name == "onnx" and "segment" in rows.column_names:
        rows = rows.filter(rows["segment"].is_valid())
    return rows


def assert_agrees(engine, calibrator, rows, **options):
    rows = askable(engine, rows)
    found = engine.evaluate(calibrator, rows, **options)
    right = expected(calibrator, rows)
    for name in OUTPUTS:
        assert found[name] == right[name], name
    assert any(value is not None for value in right["calibrated"])


FEW = (worlds.quantile, worlds.by_text)
"""In `make quick`."""


@pytest.mark.parametrize(
    "world",
    [pytest.param(one, marks=() if one in FEW else pytest.mark.broad) for one in WORLDS],
    ids=lambda world: world.__name__,
)
@pytest.mark.broad
def test_edges_atoms_and_refused_scores(engine, world):
    calibrator = world()
    scores = [*NOWHERE, *ANYWHERE, *edge_scores(calibrator).tolist()]
    if calibrator.partition_.has_segments:
        scores = scores[:40]
    assert_agrees(engine, calibrator, in_rows(calibrator, scores))


@pytest.mark.parametrize(
    "world",
    [pytest.param(one, marks=() if one in FEW else pytest.mark.broad) for one in WORLDS],
    ids=lambda world: world.__name__,
)
def test_a_join_with_pieces_gives_the_same(database, world):
    calibrator = world()
    scores = [*NOWHERE, *ANYWHERE, *edge_scores(calibrator).tolist()]
    rows = in_rows(calibrator, scores[:40] if calibrator.partition_.has_segments else scores)
    assert_agrees(database, calibrator, rows, search="join")


@pytest.mark.broad
@pytest.mark.parametrize(
    "world", [worlds.quantile, worlds.tiny_and_huge, worlds.edge_at_the_end, worlds.by_text]
)
def test_columns_of_32_bits(engine, world):
    calibrator = world()
    with np.errstate(all="ignore"):
        near = edge_scores(calibrator).astype(np.float32)
        near = np.unique(
            np.concatenate(
                [near, np.nextafter(near, np.float32(9)), np.nextafter(near, np.float32(-9))]
            )
        )
        rows = in_rows(calibrator, [*NOWHERE, *near.tolist()[:60]], np.float32)
    assert rows["score"].type == pa.float32()
    assert_agrees(engine, calibrator, rows)


@pytest.mark.parametrize("n_bins", [64, 65, 2_000])
@pytest.mark.slow
def test_thousands_of_bins(engine, n_bins):
    edges = np.sort(np.random.default_rng(1).uniform(size=n_bins - 1))
    calibrator = worlds.counted(Partition.from_edges(edges, score_range=(0.0, 1.0)))
    assert_agrees(
        engine,
        calibrator,
        in_rows(calibrator, [*NOWHERE, *edge_scores(calibrator)[:: max(n_bins // 500, 1)]]),
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.slow
def test_hundreds_of_thousands_of_scores(engine, dtype):
    # one in 100,000 that is misplaced is found with probability 0.86; plain Python has doubles only
    size = 20_000 if engine.name == "python" and dtype is np.float32 else 200_000
    rng = np.random.default_rng(2)
    calibrator = worlds.counted(Partition.from_edges(np.sort(rng.uniform(size=99))))
    scores = rng.uniform(-0.1, 1.1, size=size)
    sizes = (-1073, 1000) if dtype is np.float64 else (-148, 127)
    some = size // 5
    scores[:some] = np.ldexp(scores[:some], rng.integers(*sizes, size=some))  # subnormal to huge
    edges = edge_scores(calibrator)
    scores = np.append(scores, edges[np.isfinite(edges)])
    with np.errstate(over="ignore"):
        scores = scores.astype(dtype)
    scores = scores[np.isfinite(scores)]
    found = engine.evaluate(calibrator, pa.table({"id": np.arange(scores.size), "score": scores}))
    limits = calibrator.predict_interval(scores)
    right = {"calibrated": calibrator.predict(scores), "lower": limits[:, 0], "upper": limits[:, 1]}
    assert scores.size > size
    for name, values in right.items():
        assert np.array_equal(
            np.array(found[name], dtype=np.float64).view(np.int64), values.copy().view(np.int64)
        ), name
    assert np.array_equal(np.array(found["region"]), calibrator.partition_.assign(scores))
    sets = np.where(calibrator.predict_set(scores), ["0", "1"], "")
    assert found["set"] == ["{" + ", ".join(filter(None, row)) + "}" for row in sets.tolist()]
