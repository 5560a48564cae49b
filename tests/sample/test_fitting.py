"""What is fitted to scored data is what is fitted to the same rows in memory: one class, one code
path.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from calibrant import (
    BinningCalibrator,
    Calibrator,
    IsotonicCalibrator,
    OnlineCalibrator,
    Partition,
    PlattCalibrator,
    ShiftCalibrator,
    Tally,
    VennAbersCalibrator,
    audit,
    scored,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.cells.tally import WeightSums
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.batch import Columns
from calibrant.sample.counts import all_positive, of_one_label
from calibrant.sample.reader import rows_of
from calibrant.sample.sources.arrow import ArrowData, Part
from worlds.errors import about

ROWS = 4_000


def rows(digits: int = 3, n: int = ROWS, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = np.round(rng.uniform(size=n), digits)
    return {
        "p": scores,
        "y": (rng.uniform(size=n) < scores**1.5).astype(np.int64),
        "region": rng.choice(["north", "south", "west"], n, p=[0.6, 0.3, 0.1]),
        "w": rng.uniform(0.2, 3.0, n),
        "id": rng.permutation(n),
    }


DATA = rows()


def data(columns: dict[str, np.ndarray] = DATA, **names: str):
    return scored(columns, **{"score": "p", "label": "y", **names})


@pytest.mark.parametrize("segment", [None, "region"])
@pytest.mark.parametrize(
    "parameters", [{}, {"n_bins": 7}, {"n_bins": 7, "partition": "uniform"}], ids=str
)
def test_bins_and_counts_are_those_of_the_rows_in_memory(parameters, segment) -> None:
    near = BinningCalibrator(**parameters).fit(
        DATA["p"], DATA["y"], segments=None if segment is None else DATA[segment]
    )
    far = BinningCalibrator(**parameters).fit(data(segment=segment))
    assert far.partition_ == near.partition_
    assert far.tally_ == near.tally_
    assert str(far.guarantee_) == str(near.guarantee_)
    np.testing.assert_array_equal(far.classes_, near.classes_)


@pytest.mark.broad
@given(st.integers(1, 17), st.integers(20, 2_000), st.integers(0, 99), st.booleans())
@settings(max_examples=min(25, settings.default.max_examples))
def test_an_audit_is_that_of_the_rows_in_memory(digits, n, seed, by_segment) -> None:
    columns = rows(digits, n, seed)
    near = audit(
        columns["y"],
        columns["p"],
        segments=columns["region"] if by_segment else None,
        classes=(0, 1),
    )
    far = audit(data(columns, segment="region" if by_segment else None), classes=(0, 1))
    for name in ("segment", "resolution", "low", "high", "counts", "rate", "lower", "upper"):
        np.testing.assert_array_equal(
            getattr(far.table, name), getattr(near.table, name), err_msg=name
        )
    np.testing.assert_allclose(far.table.mean_score, near.table.mean_score, rtol=0, atol=1e-12)
    assert far.lower_bound == pytest.approx(near.lower_bound, abs=1e-11)
    assert far.average_lower_bound == pytest.approx(near.average_lower_bound, abs=1e-9)
    assert far.upper_bound == (
        None if near.upper_bound is None else pytest.approx(near.upper_bound, abs=1e-11)
    )
    assert far.unseen_mass == near.unseen_mass
    assert (far.n_rows, far.by_segment) == (near.n_rows, near.by_segment)


def test_an_audit_refuses_scores_that_are_no_probabilities_and_says_where() -> None:
    columns = {**DATA, "p": np.where(np.arange(ROWS) == 1234, 1.5, DATA["p"])}
    with pytest.raises(
        InvalidValueError, check=about("score", "1 faulty row, row index 1,234", column="p")
    ):
        audit(data(columns))


@pytest.mark.parametrize(
    "parameters", [{"n_bins": 4}, {"n_bins": 4, "partition": "uniform"}], ids=str
)
def test_weighted_sums_are_those_of_the_rows_in_memory(parameters) -> None:
    parameters = {"interval": "empirical-bernstein", **parameters}
    told = {"weight_bound": 3.0}
    near = ShiftCalibrator(**parameters).fit(
        DATA["p"], DATA["y"], importance_weight=DATA["w"], **told
    )
    far = ShiftCalibrator(**parameters).fit(data(weight="w"), **told)
    assert far.tally_ == near.tally_
    assert str(far.guarantee_) == str(near.guarantee_)


def learned(calibrator) -> dict:
    """The saved state, without the identity that every stream has of its own."""
    return {
        name: value for name, value in calibrator.to_dict()["state"].items() if name != "identity"
    }


IN_MEMORY = {
    "stream with a start-up window": OnlineCalibrator(n_bins=4, warmup=500),
    "stream in order": OnlineCalibrator(Partition.fixed_width(3), sequence="paper"),
}
"""Beside the settings that `test_calibrators.py` tries for every class."""


@pytest.mark.parametrize("calibrator", IN_MEMORY.values(), ids=IN_MEMORY)
def test_every_calibrator_takes_scored_data(calibrator) -> None:
    near = clone(calibrator).fit(DATA["p"], DATA["y"])
    far = clone(calibrator).fit(data())
    assert {**far.to_dict(), "state": learned(far)} == {**near.to_dict(), "state": learned(near)}


def test_bets_bring_the_rows_into_memory() -> None:
    near = ShiftCalibrator(4).fit(
        DATA["p"], DATA["y"], importance_weight=DATA["w"], weight_bound=3.0
    )
    far = ShiftCalibrator(4).fit(data(weight="w"), weight_bound=3.0)
    assert far.to_dict() == near.to_dict()
    with pytest.raises(InvalidValueError, check=about("weight", "None")):
        ShiftCalibrator(4).fit(data(), weight_bound=3.0)


def test_a_stream_takes_counts_from_anywhere() -> None:
    bins = Partition.fixed_width(5)
    near = (
        OnlineCalibrator(bins).partial_fit(DATA["p"], DATA["y"]).partial_fit(DATA["p"], DATA["y"])
    )
    far = OnlineCalibrator(bins).partial_fit(data()).partial_fit(data())
    assert far.tally_ == near.tally_
    assert str(far.guarantee_) == str(near.guarantee_)


def test_a_stream_that_must_know_the_order_refuses_data_without_one() -> None:
    unordered = rows_of(data())
    unordered.has_order = False
    with pytest.raises(InvalidValueError, check=about("sequence", "'paper'")):
        OnlineCalibrator(Partition.fixed_width(5), sequence="paper").partial_fit(unordered)
    with pytest.raises(InvalidValueError, check=about("partition", "None")):
        OnlineCalibrator().partial_fit(unordered)


def test_rows_that_cut_the_bins_are_not_counted() -> None:
    split = BinningCalibrator(n_bins=5, pilot=500, random_state=0)
    fitted = split.fit(data(id="id"))
    assert 3_400 < fitted.tally_.n_rows < 3_600  # about 500 of 4,000 are drawn
    order = np.random.default_rng(1).permutation(ROWS)
    again = split.fit(data({name: values[order] for name, values in DATA.items()}, id="id"))
    assert again.partition_ == fitted.partition_
    assert again.tally_ == fitted.tally_


def test_whom_the_split_draws_does_not_depend_on_scores_or_labels() -> None:
    other = {**DATA, "p": 1.0 - DATA["p"], "y": 1 - DATA["y"]}
    split = BinningCalibrator(n_bins=5, pilot=500, random_state=0)
    assert split.fit(data(id="id")).tally_.n_rows == split.fit(data(other, id="id")).tally_.n_rows


class Restless(ArrowData):
    """Data that come in another order each time they are read."""

    def fold(self, work):
        table = pa.table(DATA).take(
            pa.array(np.random.default_rng(len(self.seen)).permutation(ROWS))
        )
        self.seen.append(table)
        self.parts = [Part(lambda names: table.to_batches())]
        return super().fold(work)

    seen: list = []  # noqa: RUF012 - one instance only


def test_a_split_of_rows_that_change_places_is_refused_unless_they_have_ids() -> None:
    split = BinningCalibrator(n_bins=5, pilot=500, random_state=0)
    schema = pa.table(DATA).schema
    with pytest.raises(InvalidValueError, match="name an id column"):
        split.fit(Restless([], schema, Columns("p", "y"), part_rows=[ROWS]))
    with_ids = split.fit(Restless([], schema, Columns("p", "y", id="id"), part_rows=[ROWS]))
    assert with_ids.tally_ == split.fit(data(id="id")).tally_


def test_columns_are_added_as_predicted_and_empty_where_the_score_is_refused() -> None:
    fitted = BinningCalibrator(n_bins=4, partition="uniform").fit(
        DATA["p"], DATA["y"], segments=DATA["region"]
    )
    scores = pa.array([0.1, None, float("nan"), float("inf"), 1.5, 0.9, 0.9, 0.9])
    regions = pa.array(["north", "north", "north", "north", "north", "east", None, "west"])
    table = pa.table({"p": scores, "region": regions})
    added = fitted.apply(scored(table, score="p", segment="region"), coverage=0.6).read_all()
    assert added.column_names == ["p", "region", "calibrated", "lower", "upper", "set"]
    good = [0, 7]
    near = {"segments": ["north", "west"]}
    assert added["calibrated"].take(good).to_pylist() == fitted.predict([0.1, 0.9], **near).tolist()
    limits = fitted.predict_interval([0.1, 0.9], **near)
    assert added["lower"].take(good).to_pylist() == limits[:, 0].tolist()
    assert added["upper"].take(good).to_pylist() == limits[:, 1].tolist()
    sets = fitted.predict_set([0.1, 0.9], coverage=0.6, **near)
    assert added["set"].take(good).to_pylist() == [
        "{" + ", ".join(np.array(["0", "1"])[held]) + "}" for held in sets
    ]
    for name in ("calibrated", "lower", "upper", "set"):
        assert added[name].take([1, 2, 3, 4, 5, 6]).null_count == 6


def test_a_column_is_never_overwritten() -> None:
    fitted = BinningCalibrator(n_bins=4).fit(DATA["p"], DATA["y"])
    table = pa.table({"p": [0.5], "set": ["mine"]})
    with pytest.raises(InvalidValueError, check=about("column 'set'")):
        fitted.apply(scored(table, score="p"))
    assert fitted.apply(scored(table, score="p"), prefix="new_").schema.names[-1] == "new_set"


def test_arrays_beside_scored_data_are_refused() -> None:
    with pytest.raises(InvalidTypeError, check=about("y")):
        BinningCalibrator().fit(data(), DATA["y"])
    with pytest.raises(InvalidTypeError, check=about("segments")):
        audit(data(), segments=DATA["region"])


def test_data_without_a_label_can_not_be_fitted() -> None:
    with pytest.raises(InvalidValueError, check=about("label", "None")):
        BinningCalibrator(n_bins=4).fit(scored(DATA, score="p"))


@pytest.mark.parametrize(
    "calibrator",
    [
        PlattCalibrator(),
        IsotonicCalibrator(),
        VennAbersCalibrator(),
        ScalingBinningCalibrator(random_state=0),
    ],
    ids=lambda calibrator: type(calibrator).__name__,
)
def test_every_calibrator_adds_what_it_predicts(calibrator) -> None:
    fitted = calibrator.fit(DATA["p"], DATA["y"])
    table = pa.table({"p": pa.array([0.1, None, 0.5, float("nan"), 0.97])})
    added = fitted.apply(scored(table, score="p")).read_all()
    good = np.array([0.1, 0.5, 0.97])
    assert added["calibrated"].to_pylist()[1] is None
    assert added["calibrated"].take([0, 2, 4]).to_pylist() == fitted.predict(good).tolist()
    if hasattr(fitted, "predict_interval"):
        assert (
            added["upper"].take([0, 2, 4]).to_pylist()
            == fitted.predict_interval(good)[:, 1].tolist()
        )


@pytest.mark.parametrize("split", ["auto", 0.5])
def test_an_error_of_labels_counts_all_rows_where_some_were_drawn(split) -> None:
    rng = np.random.default_rng(4)
    table = pa.table({"p": rng.random(3_000), "y": [*"aabc", *rng.choice(["a", "b"], 2_995), "c"]})
    told = (
        r"\(label 'c': 2 rows, the first row index 3; .*the first row index 2; .*the first row"
        r" index 0\)"
    )
    for calibrator in (BinningCalibrator(pilot=split), Calibrator(pilot=split)):
        with pytest.raises(ValueError, match=r"got 3: 'a', 'b', 'c' " + told):
            calibrator.fit(scored(table, score="p", label="y"))


@pytest.mark.parametrize("calibrator", [Calibrator(), BinningCalibrator()])
def test_a_class_that_only_pilot_rows_have_is_a_class(calibrator) -> None:
    """As in memory, where the labels of all rows are known before any row is drawn."""
    scores = np.random.default_rng(0).uniform(size=300)
    for place in range(300):
        y = np.zeros(300, dtype=int)
        y[place] = 1
        model = clone(calibrator).fit(scores, y)
        if not model.tally_.positives.any():
            break
    assert place < 299
    data = scored(pa.table({"s": scores, "y": y}), score="s", label="y", progress=False)
    assert clone(calibrator).fit(data).to_dict() == model.to_dict()


def test_a_third_label_is_named_also_in_a_row_that_was_drawn() -> None:
    rng = np.random.default_rng(5)
    scores = rng.random(300)
    labels = rng.choice(["0", "1"], 300).tolist()
    for row in range(12):  # some of them are drawn
        table = pa.table({"p": scores, "y": [*labels[:row], "maybe", *labels[row + 1 :]]})
        with pytest.raises(
            ValueError, match=rf"got 3: '0', '1', 'maybe' \(label 'maybe': 1 row, row index {row};"
        ):
            Calibrator(pilot=0.2).fit(scored(table, score="p", label="y"))


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_of_single_labels_add_up_to_the_tally(weighted):
    rng = np.random.default_rng(8)
    regions = rng.integers(0, 3, size=50)
    codes = rng.integers(0, 2, size=50).astype(np.uint8)
    weights = rng.uniform(size=50)

    def of_label(label):
        own = codes == label
        sums = WeightSums.of(weights[own], regions[own], np.zeros(own.sum(), np.uint8), 3)
        counts = np.bincount(regions[own], minlength=3)
        return of_one_label(counts, 2 + label, sums if weighted else None)

    both = of_label(0) + all_positive(of_label(1))
    sums = WeightSums.of(weights, regions, codes, 3) if weighted else None
    whole = Tally(np.bincount(regions), np.bincount(regions, codes).astype(int), 5, weights=sums)
    assert both == whole
    assert both.n_rows == 55
