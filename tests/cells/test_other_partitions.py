"""Functions, trees and segments as partitions."""

import json

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from calibrant import BinningCalibrator, Partition, Tally
from calibrant.errors import CalibrantError, InvalidValueError
from calibrant.limits.mass import mass_limits
from worlds.errors import about


def test_leaves_of_a_tree_are_regions() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = rng.integers(0, 2, 400)
    tree = DecisionTreeClassifier(max_leaf_nodes=5, random_state=0).fit(X, y)
    partition = Partition.from_tree(tree)
    assert partition.n_regions == 5
    leaves = tree.apply(X)
    region = partition.assign(X)
    assert [f"leaf {leaf}" for leaf in leaves[:20]] == [
        partition.describe()[r] for r in region[:20]
    ]
    calibrator = BinningCalibrator(partition=partition, value="mean").fit(X, y)
    for leaf, rate in zip(partition.values, calibrator.guarantee_.value, strict=True):
        assert rate == pytest.approx(y[leaves == leaf].mean())


def test_a_function_partition_names_what_it_does_not_know() -> None:
    partition = Partition.from_function(lambda X: np.asarray(X), ["a", "b"])
    assert partition.assign(["a", "b", "a"]).tolist() == [0, 1, 0]
    with pytest.raises(ValueError, check=about("the partition's function", "'c'")):
        partition.assign(["a", "c"])
    with pytest.raises(TypeError, check=about("partition", "FunctionPartition")):
        partition.to_dict()


def test_function_partitions_are_equal_when_function_and_regions_are() -> None:
    def sign(X):
        return np.asarray(X) > 0

    assert Partition.from_function(sign, [False, True]) == Partition.from_function(
        sign, [False, True]
    )
    assert Partition.from_function(sign, [False, True]) != Partition.from_function(
        sign, [True, False]
    )


@pytest.mark.parametrize(
    "options", [{"pilot": None}, {}, {"pilot": 0.3, "random_state": 0}, {"partition": "uniform"}]
)
def test_each_segment_is_calibrated_on_its_own_rows_within_one_budget(options: dict) -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=3000)
    segment = rng.choice(["north", "south"], size=3000)
    y = (rng.uniform(size=3000) < np.where(segment == "north", scores, 1 - scores)).astype(int)
    calibrator = BinningCalibrator(n_bins=4, **options).fit(scores, y, segments=segment)
    assert calibrator.partition_.n_regions == 8
    north = calibrator.predict(scores, segments=np.full(3000, "north"))
    south = calibrator.predict(scores, segments=np.full(3000, "south"))
    assert np.corrcoef(north, scores)[0, 1] > 0.9
    assert np.corrcoef(south, scores)[0, 1] < -0.9
    if options == {"pilot": None}:
        alone = BinningCalibrator(n_bins=4, pilot=None).fit(
            scores[segment == "north"], y[segment == "north"]
        )
        np.testing.assert_array_equal(alone.predict(scores), north)
        # one budget over eight regions is stricter than one over four
        assert (alone.guarantee_.radius < calibrator.guarantee_.radius[:4]).all()


def test_segments_survive_json_and_name_their_regions() -> None:
    parts = {
        "a": Partition.fixed_width(2),
        "b": Partition.uniform_mass([0.1, 0.2, 0.3, 0.4, 0.5], 2),
    }
    partition = Partition.by_segment(parts)
    assert Partition.from_dict(json.loads(json.dumps(partition.to_dict()))) == partition
    assert partition.describe()[0] == "a: [0, 0.5)"
    assert partition.assign([0.1, 0.1], ["a", "b"]).tolist() == [0, 2]


@pytest.mark.parametrize("kind", ["x", "segments", None])
def test_bins_of_another_kind_are_refused_within_a_segment(kind) -> None:
    state = Partition.by_segment({"a": Partition.fixed_width(2)}).to_dict()
    state["parts"][0]["kind"] = kind
    with pytest.raises(CalibrantError):
        Partition.from_dict(state)


def test_segments_that_have_no_plain_name_are_refused() -> None:
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]").repeat(50)
    with pytest.raises(TypeError, check=about("segments", "date")):
        BinningCalibrator(n_bins=2).fit(np.linspace(0, 1, 100), np.arange(100) % 2, segments=days)


@pytest.mark.broad
@pytest.mark.parametrize(
    "make", [Partition.uniform_mass, lambda scores, n_bins: Partition.fixed_width(n_bins)]
)
def test_segments_find_the_regions_that_their_parts_find(make) -> None:
    rng = np.random.default_rng(3)
    scores = np.round(rng.uniform(size=3000), 2)
    segment = rng.integers(0, 40, 3000)
    parts = {number: make(scores[segment == number], 1 + number % 5) for number in range(40)}
    whole = Partition.by_segment(parts)
    region = whole.assign(scores, segment)
    counted = whole.membership(whole.prepare(scores, segment))
    cut_counts = np.split(whole.cut_counts(), whole.offsets[1:-1])
    names = iter(whole.describe())
    for number, part in parts.items():
        rows = segment == number
        np.testing.assert_array_equal(
            region[rows] - whole.offsets[number], part.assign(scores[rows])
        )
        own = part.membership(scores[rows])
        np.testing.assert_array_equal(
            counted[rows], np.where(own < 0, -1, own + whole.offsets[number])
        )
        np.testing.assert_array_equal(cut_counts[number], part.cut_counts())
        assert [f"{number}: {name}" for name in part.describe()] == [
            next(names) for _ in range(part.n_regions)
        ]


@pytest.mark.parametrize("as_column", [list, lambda names: np.array(names, dtype=object)])
def test_segments_that_differ_in_a_nul_at_the_end_stay_apart(as_column) -> None:
    names = as_column(["a", "a\0"] * 50)
    scores = np.linspace(0, 1, 100)
    y = np.arange(100) % 2
    calibrator = BinningCalibrator(n_bins=1, value="mean", segment_rule=None).fit(
        scores, y, segments=names
    )
    assert list(calibrator.partition_.bins_by_segment) == ["a", "a\0"]
    assert calibrator.predict(scores[:2], segments=names[:2]).tolist() == [0.0, 1.0]


def test_rows_of_fixed_bins_beside_cut_ones_keep_their_mass() -> None:
    cut = Partition.uniform_mass(np.linspace(0, 1, 100), 2)
    fixed = Partition.fixed_width(1)
    both = Partition.by_segment({"cut": cut, "fixed": fixed})
    tally = Tally.from_counts([50, 49, 900], [0, 0, 0], partition=both)
    limits = mass_limits(both, tally, 0.1)
    assert limits.regions[2] == 1.0  # nine rows in ten are there
    assert (
        limits.outside == 1.0
    )  # of which sample they are is not known, so nothing is proved of unseen segments


def test_inputs_without_rows_of_their_own_are_taken_as_the_function_takes_them() -> None:
    class Source:
        def shape(self) -> tuple[int, int]:
            return 3, 1

    partition = Partition.from_function(lambda inputs: np.array(["b", "a"]), ["a", "b"])
    for inputs in (Source(), np.array(0.5), {"x": 1}):
        assert partition.assign(inputs).tolist() == [1, 0]
    for inputs in ([1, 2, 3], np.zeros((3, 2))):
        with pytest.raises(ValueError, check=about("the partition's function", "2")):
            partition.assign(inputs)


def test_missing_names_of_segments_are_told_from_names_of_another_kind() -> None:
    fit = BinningCalibrator(n_bins=1, pilot=None).fit
    scores = np.linspace(0, 1, 4)
    y = [0, 1, 0, 1]
    with pytest.raises(
        ValueError, check=about("segments", "None at row index 1, and 2 such rows in all")
    ):
        fit(scores, y, segments=np.array(["a", None, "a", None], dtype=object))
    with pytest.raises(TypeError, check=about("segments", "int, str")):
        fit(scores, y, segments=np.array(["a", 1, "a", 1], dtype=object))


def test_a_fingerprint_is_the_same_on_every_machine():
    assert Partition.fixed_width(2).fingerprint == "812e48dfae1fe991"


def test_a_score_outside_the_range_of_its_segment_is_refused_with_the_range_of_the_first_such_row():
    parts = {
        "a": Partition.fixed_width(2, (0.0, 1.0)),
        "b": Partition.fixed_width(2, (0.0, 5.0)),
        "c": Partition.fixed_width(2, (-3.0, 9.0)),
    }
    partition = Partition.by_segment(parts)
    with pytest.raises(InvalidValueError) as refused:
        partition.assign([0.5, 7.0, 4.0, 2.0, 10.0], ["a", "b", "c", "a", "c"])
    assert refused.value.parameter == "scores"
    assert "between 0 and 5" in str(refused.value.rule)
    assert "7.0 at row index 1" in refused.value.got
