"""Arrays on a device are counted and predicted there; here with torch on the CPU, which runs the same code."""

import numpy as np
import pytest
import torch

from calibrant import BinningCalibrator, OnlineCalibrator, Partition, ShiftCalibrator, audit, scored
from calibrant.errors import InvalidTypeError, InvalidValueError

ROWS = 5_000
RNG = np.random.default_rng(0)
SCORES = np.round(RNG.uniform(size=ROWS), 3)
Y = (RNG.uniform(size=ROWS) < SCORES**2).astype(np.uint8)
REGION = RNG.integers(0, 3, ROWS)
WEIGHT = RNG.uniform(0.5, 2.0, ROWS)
TENSORS = {name: torch.from_numpy(values) for name, values in
           {"p": SCORES, "y": Y, "region": REGION, "w": WEIGHT, "id": np.arange(ROWS)}.items()}  # fmt: skip


def data(**names):
    return scored(TENSORS, **{"score": "p", "label": "y", **names})


@pytest.mark.parametrize("segment", [None, "region"])
@pytest.mark.parametrize("parameters", [{}, {"n_bins": 7}, {"n_bins": 7, "strategy": "uniform"}], ids=str)
def test_bins_and_counts_are_those_of_the_rows_in_memory(parameters, segment) -> None:
    near = BinningCalibrator(**parameters).fit(SCORES, Y, segments=None if segment is None else REGION)
    far = BinningCalibrator(**parameters).fit(data(segment=segment))
    assert far.partition_ == near.partition_
    assert far.tally_ == near.tally_


def test_two_tensors_are_fitted_and_predicted_as_tensors() -> None:
    fitted = BinningCalibrator(n_bins=5).fit(TENSORS["p"], TENSORS["y"])
    near = BinningCalibrator(n_bins=5).fit(SCORES, Y)
    assert fitted.tally_ == near.tally_
    new = np.linspace(0, 1, 101)
    for method in ("predict", "predict_proba", "predict_interval", "predict_set"):
        got = getattr(fitted, method)(torch.from_numpy(new))
        assert isinstance(got, torch.Tensor)
        np.testing.assert_array_equal(got.numpy(), getattr(near, method)(new), err_msg=method)


def test_single_precision_is_compared_as_doubles() -> None:
    edges = [0.1, 0.3, 0.7]
    single = SCORES.astype(np.float32)
    bins = Partition.from_edges(edges)
    near = BinningCalibrator(partition=bins).fit(single, Y)
    far = BinningCalibrator(partition=bins).fit(torch.from_numpy(single), TENSORS["y"])
    assert far.tally_ == near.tally_


def test_a_split_with_ids_draws_the_rows_that_every_engine_draws() -> None:
    split = BinningCalibrator(n_bins=5, split=600, random_state=4)
    table = {name: tensor.numpy() for name, tensor in TENSORS.items()}
    near = split.fit(scored(table, score="p", label="y", id="id"))
    near_partition, near_tally = near.partition_, near.tally_
    far = split.fit(data(id="id"))
    assert far.partition_ == near_partition
    assert far.tally_ == near_tally


def test_a_split_without_ids_leaves_out_what_it_drew() -> None:
    fitted = BinningCalibrator(n_bins=5, split=600, random_state=4).fit(data())
    drawn = ROWS - fitted.tally_.n_rows
    assert 500 < drawn < 700


@pytest.mark.parametrize("segment", [None, "region"])
def test_weighted_sums_are_those_of_the_rows_in_memory(segment) -> None:
    parameters = {"n_bins": 4, "interval": "empirical-bernstein", "weight_bound": 2.0}
    near = ShiftCalibrator(**parameters).fit(
        SCORES, Y, importance_weight=WEIGHT, segments=None if segment is None else REGION
    )
    far = ShiftCalibrator(**parameters).fit(data(weight="w", segment=segment))
    assert far.tally_ == near.tally_


@pytest.mark.parametrize("segment", [None, "region"])
def test_an_audit_is_that_of_the_rows_in_memory(segment) -> None:
    near = audit(Y, SCORES, segments=None if segment is None else REGION)
    far = audit(data(segment=segment))
    np.testing.assert_array_equal(far.table.counts, near.table.counts)
    np.testing.assert_array_equal(far.table.lower, near.table.lower)
    assert far.lower_bound == pytest.approx(near.lower_bound, abs=1e-11)


def test_a_stream_takes_tensors() -> None:
    bins = Partition.fixed_width(4)
    assert OnlineCalibrator(bins).partial_fit(data()).tally_ == OnlineCalibrator(bins).partial_fit(SCORES, Y).tally_


def test_columns_are_added_on_the_device() -> None:
    fitted = BinningCalibrator(n_bins=5).fit(SCORES, Y)
    added = fitted.apply(data())
    assert set(added) == {*TENSORS, "calibrated", "lower", "upper"}
    np.testing.assert_array_equal(added["calibrated"].numpy(), fitted.predict(SCORES))
    np.testing.assert_array_equal(added["upper"].numpy(), fitted.predict_interval(SCORES)[:, 1])


@pytest.mark.parametrize("labels", [(-1, 1), (3, 7)], ids=str)
def test_any_two_numbers_are_labels(labels) -> None:
    y = np.where(Y == 1, labels[1], labels[0])
    near = BinningCalibrator(n_bins=5, pos_label=labels[1]).fit(SCORES, y)
    far = BinningCalibrator(n_bins=5, pos_label=labels[1]).fit(TENSORS["p"], torch.from_numpy(y))
    assert far.tally_ == near.tally_
    np.testing.assert_array_equal(far.classes_, near.classes_)


def test_bad_rows_are_refused() -> None:
    bad = TENSORS["p"].clone()
    bad[123] = float("nan")
    for n_bins in ({"n_bins": 5}, {"partition": Partition.from_edges([0.5])}):
        with pytest.raises(InvalidValueError, match="column 'scores' must be finite: 1 row does not, row 124"):
            BinningCalibrator(**n_bins).fit(bad, TENSORS["y"])
    bad[4000] = float("inf")
    with pytest.raises(InvalidValueError, match="column 'scores' must be finite: 2 rows do not, the first row 124"):
        BinningCalibrator(n_bins=5).fit(bad, TENSORS["y"])
    weights = TENSORS["w"].clone()
    weights[[17, 900]] = -1.0
    weighed = scored({**TENSORS, "w": weights}, score="p", label="y", weight="w")
    with pytest.raises(InvalidValueError, match=r"column 'w' must be finite.*: 2 rows do not, the first row 18"):
        ShiftCalibrator(n_bins=4, interval="empirical-bernstein", weight_bound=2.0).fit(weighed)
    three = TENSORS["y"].clone()
    three[7] = 2
    three[8] = 5
    with pytest.raises(InvalidValueError, match="y must hold two classes; got 3"):
        BinningCalibrator(n_bins=5).fit(TENSORS["p"], three)
    with pytest.raises(InvalidValueError, match="must lie between 0 and 1"):
        BinningCalibrator(n_bins=5, strategy="uniform").fit(TENSORS["p"] * 2, TENSORS["y"])
    with pytest.raises(InvalidTypeError, match="y must be on the device"):
        BinningCalibrator(n_bins=5).fit(TENSORS["p"], Y)
    with pytest.raises(InvalidTypeError, match="segments must be None for scores on a device"):
        BinningCalibrator(n_bins=2).fit(SCORES, Y, segments=REGION).predict(TENSORS["p"], segments=REGION)
    with pytest.raises(InvalidValueError, match="same number of rows"):
        BinningCalibrator(n_bins=5).fit(TENSORS["p"], TENSORS["y"][:-1])
