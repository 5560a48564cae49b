"""Torch tensors give the same answers and the same errors as numpy arrays.

Each test runs twice: with tensors on the CPU, and with the same tensors taken to be on a GPU, so
that the code for GPUs runs on them, in Triton's interpreter. `benchmarks/device_fit.py` makes the
same comparisons on a real GPU, with torch and with CuPy.
"""

import sys

import numpy as np
import pytest
import torch

import calibrant
from calibrant import (
    BetaCalibrator,
    BinningCalibrator,
    BlendCalibrator,
    Calibrator,
    ClassWiseCalibrator,
    IsotonicCalibrator,
    OnlineCalibrator,
    Partition,
    PlattCalibrator,
    ShiftCalibrator,
    TemperatureCalibrator,
    TopLabelCalibrator,
    VennAbersCalibrator,
    audit,
    scored,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.gpu.rows import DeviceData
from calibrant.params import tensors
from calibrant.tripod import ConformalSets

ROWS = 5_000
RNG = np.random.default_rng(0)
SCORES = np.round(RNG.uniform(size=ROWS), 3)
Y = (RNG.uniform(size=ROWS) < SCORES**2).astype(np.uint8)
REGION = RNG.integers(0, 3, ROWS)
WEIGHT = RNG.uniform(0.5, 2.0, ROWS)
ARRAYS = {"p": SCORES, "y": Y, "region": REGION, "w": WEIGHT, "id": np.arange(ROWS)}
TENSORS = {name: torch.from_numpy(values) for name, values in ARRAYS.items()}
NEW = np.linspace(0, 1, 101)


@pytest.fixture(params=["cpu", "gpu"], autouse=True)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "gpu":
        modules = request.getfixturevalue("interpreted")
        for name in modules:
            monkeypatch.setattr(modules[name], "_BLOCK", 4096)
        monkeypatch.setattr(modules["_triton"], "_CURVE_BLOCK", 4096)
        monkeypatch.setattr(modules["_triton_draws"], "_LAUNCH_ROWS", 4096)
        monkeypatch.setattr(modules["_triton_draws"], "_PROGRAMS", 2)
        monkeypatch.setattr(tensors, "on_gpu", tensors.is_device_array)
    return request.param


def data(**names):
    return scored(TENSORS, **{"score": "p", "label": "y", **names})


def assert_same_predictions(calibrator, scores, near) -> None:
    """As tensors what numpy arrays give, for every method that predicts.

    `near` holds the same scores in numpy.
    """
    methods = [
        name
        for name in dir(calibrator)
        if name.startswith("predict") and callable(getattr(calibrator, name))
    ]
    assert "predict" in methods or "predict_set" in methods
    for method in methods:
        got = getattr(calibrator, method)(scores)
        want = getattr(calibrator, method)(near)
        assert isinstance(got, torch.Tensor), method
        assert tensors.dtype(got) == str(want.dtype), method
        np.testing.assert_array_equal(got.numpy(), want, err_msg=method)


CALIBRATORS = {
    "curve": Calibrator(),
    "curve, isotonic": Calibrator(curve="isotonic"),
    "bins": BinningCalibrator(7),
    "bins of equal width": BinningCalibrator(7, partition="uniform"),
    "split": BinningCalibrator(7, pilot=600, random_state=4),
    "given bins": BinningCalibrator(partition=Partition.from_edges([0.1, 0.3, 0.7])),
    "online": OnlineCalibrator(Partition.fixed_width(4)),
    "platt": PlattCalibrator(),
    "beta": BetaCalibrator(),
    "temperature": TemperatureCalibrator(),
    "isotonic": IsotonicCalibrator(),
    "blend": BlendCalibrator(),
    "venn-abers": VennAbersCalibrator(),
    "scaling-binning": ScalingBinningCalibrator(n_bins=5, random_state=0),
    "conformal": ConformalSets(),
}


@pytest.mark.parametrize("name", CALIBRATORS)
def test_every_calibrator_takes_and_returns_tensors(name: str) -> None:
    from sklearn.base import clone

    fit = "partial_fit" if name == "online" else "fit"
    near = getattr(clone(CALIBRATORS[name]), fit)(SCORES, Y)
    far = getattr(clone(CALIBRATORS[name]), fit)(TENSORS["p"], TENSORS["y"])
    near_state = near.to_dict()
    far_state = far.to_dict()
    for state in (near_state, far_state):
        state.get("state", {}).pop("identity", None)  # every stream has its own
    assert far_state == near_state
    assert_same_predictions(far, torch.from_numpy(NEW), NEW)


@pytest.mark.parametrize("kind", [ClassWiseCalibrator, TopLabelCalibrator])
def test_columns_of_several_classes(kind) -> None:
    scores = RNG.dirichlet([1.0, 1.0, 1.0], size=900)
    y = (RNG.uniform(size=(900, 1)) > scores.cumsum(axis=1)).sum(axis=1)
    near = kind(n_bins=4).fit(scores, y)
    far = kind(n_bins=4).fit(torch.from_numpy(scores), torch.from_numpy(y))
    assert far.to_dict() == near.to_dict()
    assert_same_predictions(far, torch.from_numpy(scores), scores)


FORMS = {
    "float32": lambda: (TENSORS["p"].float(), TENSORS["y"]),
    "float16": lambda: (TENSORS["p"].half(), TENSORS["y"]),
    "bfloat16": lambda: (TENSORS["p"].bfloat16(), TENSORS["y"]),
    "requires grad": lambda: (TENSORS["p"].clone().requires_grad_(True), TENSORS["y"]),
    "(n, 1)": lambda: (TENSORS["p"][:, None], TENSORS["y"][:, None]),
    "(n, 2)": lambda: (torch.stack([1 - TENSORS["p"], TENSORS["p"]], dim=1), TENSORS["y"]),
    "labels of numpy": lambda: (TENSORS["p"], Y),
    "scores of numpy": lambda: (SCORES, TENSORS["y"]),
    "bool labels": lambda: (TENSORS["p"], TENSORS["y"].bool()),
    "float labels": lambda: (TENSORS["p"], TENSORS["y"].double()),
    "labels -1 and 1": lambda: (TENSORS["p"], 2 * TENSORS["y"].int() - 1),
    "strided": lambda: (TENSORS["p"][::2], TENSORS["y"][::2]),
}


@pytest.mark.parametrize(
    "calibrator", [BinningCalibrator(5), PlattCalibrator()], ids=["bins", "platt"]
)
@pytest.mark.parametrize("form", FORMS)
def test_what_numpy_arrays_may_be_tensors_may_be(form: str, calibrator) -> None:
    from sklearn.base import clone

    scores, y = FORMS[form]()
    near = clone(calibrator).fit(tensors.to_host(scores), tensors.to_host(y))
    far = clone(calibrator).fit(scores, y)
    assert far.to_dict() == near.to_dict()
    if tensors.is_device_array(scores):
        assert_same_predictions(far, scores, tensors.to_host(scores))


def test_weights_and_segments_beside_tensors() -> None:
    repeats = RNG.integers(0, 4, ROWS)
    for segments in (REGION, TENSORS["region"]):
        for weight in (repeats, torch.from_numpy(repeats)):
            near = BinningCalibrator(4).fit(SCORES, Y, segments=REGION, sample_weight=repeats)
            far = BinningCalibrator(4).fit(
                TENSORS["p"], TENSORS["y"], segments=segments, sample_weight=weight
            )
            assert far.to_dict() == near.to_dict()
            got = far.predict(TENSORS["p"], segments=segments)
            np.testing.assert_array_equal(got.numpy(), near.predict(SCORES, segments=REGION))
    parameters = {"n_bins": 4, "interval": "empirical-bernstein"}
    near = ShiftCalibrator(**parameters).fit(SCORES, Y, importance_weight=WEIGHT, weight_bound=2.0)
    far = ShiftCalibrator(**parameters).fit(
        TENSORS["p"], TENSORS["y"], importance_weight=TENSORS["w"], weight_bound=2.0
    )
    assert far.tally_ == near.tally_


def spoilt(name: str, **entries):
    array = ARRAYS[name].copy().astype(float if name == "p" else int)
    for row, value in entries.items():
        array[int(row.removeprefix("row"))] = value
    return array


FAULTS = {
    "a NaN": (spoilt("p", row123=np.nan), Y),
    "several": (spoilt("p", row123=np.inf, row4000=np.nan), Y),
    "out of range": (spoilt("p", row17=1.5, row900=-3.0), Y),
    "a third label": (SCORES, spoilt("y", row7=2)),
    "more labels": (SCORES, spoilt("y", row7=2, row8=5)),
    "one label": (SCORES, np.zeros(ROWS, int)),
    "labels that need a name": (SCORES, np.where(Y == 1, 7, 3)),
    "two lengths": (SCORES, Y[:-1]),
    "no rows": (SCORES[:0], Y[:0]),
    "three columns": (np.zeros((ROWS, 3)), Y),
}


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("fault", FAULTS)
def test_errors_are_those_of_numpy_arrays(fault: str, strategy: str) -> None:
    scores, y = FAULTS[fault]

    def attempt(*rows):
        try:
            return BinningCalibrator(5, partition=strategy).fit(*rows).to_dict()
        except calibrant.errors.CalibrantError as error:
            return type(error), str(error)

    assert attempt(torch.from_numpy(scores), torch.from_numpy(y)) == attempt(scores, y)


@pytest.mark.parametrize("bad", [np.array([0.5, np.nan]), np.array([0.5, 1.5]), np.zeros((2, 3))])
def test_errors_of_predictions_are_those_of_numpy_arrays(bad) -> None:
    fitted = BinningCalibrator(5, partition="uniform").fit(SCORES, Y)
    with pytest.raises(calibrant.errors.InvalidValueError) as near:
        fitted.predict(bad)
    with pytest.raises(calibrant.errors.InvalidValueError) as far:
        fitted.predict(torch.from_numpy(bad))
    assert str(far.value) == str(near.value)


@pytest.mark.parametrize("kind", [Calibrator, BinningCalibrator, ConformalSets, PlattCalibrator])
def test_tensors_give_the_frames_that_set_output_asks_for(kind) -> None:
    fitted = kind().fit(SCORES, Y).set_output(transform="pandas")
    for method in [name for name in dir(fitted) if name.startswith("predict")]:
        got, want = (getattr(fitted, method)(scores) for scores in (torch.from_numpy(NEW), NEW))
        assert type(got) is type(want)
        assert got.equals(want)


@pytest.mark.parametrize(
    "names", [{}, {"segment": "region"}, {"id": "id"}, {"segment": "region", "id": "id"}], ids=str
)
@pytest.mark.parametrize(
    "parameters",
    [{}, {"n_bins": 7}, {"n_bins": 7, "partition": "uniform"}, {"pilot": 600, "random_state": 4}],
    ids=str,
)
def test_scored_tensors_are_counted_as_a_table_of_the_same_rows(parameters, names) -> None:
    near = BinningCalibrator(**parameters).fit(scored(ARRAYS, score="p", label="y", **names))
    far = BinningCalibrator(**parameters).fit(data(**names))
    assert far.to_dict() == near.to_dict()


@pytest.mark.parametrize("split", ["auto", None, 0.1, 500, ROWS - 30])
@pytest.mark.parametrize("decimals", [2, 9])
def test_on_a_gpu_rows_are_drawn_and_counted_where_they_are(
    split, decimals, place, monkeypatch
) -> None:
    scores = np.round(RNG.uniform(size=ROWS), decimals).astype(np.float32)
    near = BinningCalibrator(5, pilot=split).fit(scores, Y)
    if place == "gpu":
        monkeypatch.setattr(DeviceData, "batches", None)  # which copies all rows to the host
    there = {"p": torch.from_numpy(scores), "y": TENSORS["y"]}
    for far in (
        BinningCalibrator(5, pilot=split).fit(there["p"], there["y"]),
        BinningCalibrator(5, pilot=split).fit(scored(there, score="p", label="y")),
    ):
        assert (far.partition_, far.tally_) == (near.partition_, near.tally_)
        assert far.guarantee_.sentence == near.guarantee_.sentence


@pytest.mark.parametrize("value", [np.full(ROWS, 0.3), np.where(np.arange(ROWS) % 3, 0.3, 0.4)])
def test_few_values_are_few_on_a_device_too(value, place) -> None:
    scores = value.astype(np.float32)
    near = BinningCalibrator(2).fit(scores, Y)
    far = BinningCalibrator(2).fit(torch.from_numpy(scores), TENSORS["y"])
    assert far.guarantee_.sentence == near.guarantee_.sentence
    assert far.tally_ == near.tally_
    assert ("over rows and seed" in far.guarantee_.sentence) == (np.unique(value).size == 1)


@pytest.mark.parametrize("segment", [None, "region"])
def test_weighted_sums_are_those_of_the_rows_in_memory(segment) -> None:
    parameters = {"n_bins": 4, "interval": "empirical-bernstein"}
    near = ShiftCalibrator(**parameters).fit(
        SCORES,
        Y,
        importance_weight=WEIGHT,
        segments=None if segment is None else REGION,
        weight_bound=2.0,
    )
    far = ShiftCalibrator(**parameters).fit(data(weight="w", segment=segment), weight_bound=2.0)
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
    assert (
        OnlineCalibrator(bins).partial_fit(data()).tally_
        == OnlineCalibrator(bins).partial_fit(SCORES, Y).tally_
    )


@pytest.mark.parametrize("segment", [None, "region"])
def test_columns_are_added_as_tensors(segment) -> None:
    segments = None if segment is None else REGION
    fitted = BinningCalibrator(n_bins=5).fit(SCORES, Y, segments=segments)
    added = fitted.apply(data(segment=segment))
    assert set(added) == {*TENSORS, "calibrated", "lower", "upper"}
    np.testing.assert_array_equal(
        added["calibrated"].numpy(), fitted.predict(SCORES, segments=segments)
    )
    np.testing.assert_array_equal(
        added["upper"].numpy(), fitted.predict_interval(SCORES, segments=segments)[:, 1]
    )


def test_without_triton_rows_are_read_on_the_host(place, monkeypatch) -> None:
    for name in ("_triton", "_triton_draws"):
        monkeypatch.setitem(sys.modules, f"calibrant.gpu.{name}", None)
    near = Calibrator().fit(SCORES, Y)
    far = Calibrator().fit(TENSORS["p"], TENSORS["y"])
    assert far.to_dict() == near.to_dict()
    assert_same_predictions(far, torch.from_numpy(NEW), NEW)


def test_faulty_columns_are_reported_as_those_of_a_table() -> None:
    for name, wrong in (
        ("p", spoilt("p", row123=np.nan, row4000=np.inf)),
        ("y", spoilt("y", row7=2, row8=5)),
    ):
        for strategy in ("quantile", "uniform"):
            table = scored({**ARRAYS, name: wrong}, score="p", label="y")
            tensors = scored({**TENSORS, name: torch.from_numpy(wrong)}, score="p", label="y")
            with pytest.raises(calibrant.errors.InvalidValueError) as near:
                BinningCalibrator(5, partition=strategy).fit(table)
            with pytest.raises(calibrant.errors.InvalidValueError) as far:
                BinningCalibrator(5, partition=strategy).fit(tensors)
            assert str(far.value) == str(near.value)
