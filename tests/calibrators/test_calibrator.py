"""A curve that is shifted where the data refute it."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from calibrant import (
    BinningCalibrator,
    Calibrator,
    Partition,
    PlattCalibrator,
    ScoreCalibrator,
    scored,
)
from calibrant.calibrators.curve.curve_kinds import NAMED, _rounded
from calibrant.calibrators.curve.fine_cells import Grid, grid_ranks
from calibrant.calibrators.curve.pieces import interpolate, simplified
from calibrant.calibrators.curve.pilot_rows import knot_scores
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidValueError, PooledSegmentsWarning
from calibrant.limits.kolmogorov import kolmogorov_distance
from calibrant.sample.reader import read_rows
from calibrant.text.numbers import upper

CURVES = ("auto", *NAMED)


def draw(n, seed=0, rate=np.square):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < rate(scores)).astype(int)


@pytest.mark.parametrize("curve", CURVES)
def test_named_curves_never_fall_nor_reach_0_or_1_where_nothing_is_refuted(curve):
    scores, y = draw(3000)
    model = Calibrator(curve, n_bins=5).fit(scores, y)
    assert model.n_shifted_ == 0
    values = model.predict(np.sort(np.concatenate([scores, np.linspace(-0.4, 1.4, 5000)])))
    assert (np.diff(values) >= 0.0).all()
    assert 0.0 < values[0] < values[-1] < 1.0


@pytest.mark.parametrize("curve", ["auto", "beta"])
@pytest.mark.parametrize("n", [50, 3000])
def test_ranking_is_kept(curve, n):
    scores, y = draw(n)
    new, labels = draw(20_000, seed=1)
    model = Calibrator(curve).fit(scores, y)
    if model.n_shifted_ == 0:
        assert roc_auc_score(labels, model.predict(new)) > roc_auc_score(labels, new) - 0.001


@pytest.mark.broad
@pytest.mark.parametrize(
    "scale", [lambda s: s, lambda s: 300 + 550 * s], ids=["probabilities", "points"]
)
def test_ranking_is_kept_where_the_best_curve_is_constant_and_turned_where_it_is_refuted(scale):
    rng = np.random.default_rng(4)
    scores = rng.uniform(size=400) ** 8
    y = (rng.uniform(size=400) < 0.2).astype(int)
    model = Calibrator().fit(
        scale(scores), y
    )  # in these rows the score ranks a little worse than chance
    assert roc_auc_score(y, scores) < 0.49
    ranks = stats.rankdata(model.predict(scale(scores)))
    assert stats.spearmanr(ranks, scores).statistic > 0.9999
    assert np.ptp(model.predict(scale(scores))) < 0.05
    opposite = Calibrator(n_bins=1).fit(scale(scores), rng.uniform(size=400) > scores)
    ranks = stats.rankdata(opposite.predict(scale(scores)))
    assert stats.spearmanr(ranks, scores).statistic < -0.99


@pytest.mark.broad
def test_curve_moves_only_in_regions_where_the_data_refute_it():
    scores, y = draw(20_000, rate=lambda s: np.where((s > 0.4) & (s < 0.5), 0.9, s))
    model = Calibrator("beta", n_bins=10).fit(scores, y)
    guarantee = model.guarantee_
    assert 0 < model.n_shifted_ < 10
    assert (guarantee.value >= guarantee.lower - 1e-9).all()
    assert (guarantee.value <= guarantee.upper + 1e-9).all()
    points = np.linspace(0.001, 0.999, 2000)
    falls = np.flatnonzero(np.diff(model.predict(points)) < 0.0)
    assert 1 <= falls.size <= model.n_shifted_ + 1


@pytest.mark.broad
def test_value_is_the_average_prediction_of_the_counted_rows_of_each_region():
    scores, y = draw(5000)
    model = Calibrator(n_bins=7).fit(scores, y)
    where = model.partition_.membership(scores)
    predicted = model.predict(scores)
    averages = np.array([predicted[where == region].mean() for region in range(7)])
    # rows are counted at one of the two nearest knots, at random: each moves by at most the step
    # between these
    pieces = model.pieces_
    step = np.zeros(7)
    np.maximum.at(
        step, pieces.regions(model.partition_.as_bins()), np.abs(pieces.right - pieces.left)
    )
    # and pilot rows are in these averages, but not counted
    spread = np.array([predicted[where == region].std() for region in range(7)])
    n_rows = np.bincount(where[where >= 0])
    n_pilot = n_rows - model.tally_.counts
    error = step / 2 / np.sqrt(model.tally_.counts) + spread * np.sqrt(n_pilot) / n_rows
    assert (np.abs(averages - model.guarantee_.value) < 4 * error + 1e-12).all()
    assert (step < 0.1).all()
    assert (np.abs(averages - model.guarantee_.value) <= model.guarantee_.margin).all()


@pytest.mark.broad
def test_interval_moves_with_the_prediction_and_the_rate_interval_does_not():
    scores, y = draw(5000)
    model = Calibrator(n_bins=5).fit(scores, y)
    guarantee = model.guarantee_
    points = np.linspace(0.42, 0.58, 9)
    lower, upper = model.predict_interval(points).T
    rates = model.predict_rate_interval(points)
    assert (np.diff(lower) > 0.0).all()
    np.testing.assert_array_equal(
        rates, np.broadcast_to([guarantee.lower[2], guarantee.upper[2]], (9, 2))
    )
    np.testing.assert_allclose(lower, model.predict(points) + guarantee.errors.lower[2])
    np.testing.assert_allclose(upper, model.predict(points) + guarantee.errors.upper[2])


def test_a_value_that_many_scores_share_keeps_its_own_prediction_and_jumps_to_it():
    """Scores of 1, right after scores that differ from 1 by a few doubles, as saturated models give
    them.
    """
    rng = np.random.default_rng(4)
    scores = np.concatenate(
        [rng.uniform(size=1000) ** 4, 1.0 - 2.0**-53 * rng.integers(1, 9, 50), np.ones(950)]
    )
    y = (rng.uniform(size=2000) < np.where(scores == 1.0, 0.8, 0.1)).astype(int)
    model = Calibrator("isotonic", n_bins=2).fit(scores, y)
    assert model.n_shifted_ == 0
    assert model.predict([1.0])[0] == pytest.approx(y[scores == 1.0].mean(), abs=0.02)
    assert model.predict([1.0 - 2.0**-49])[0] < 0.4
    assert model.pieces_.variation(model.partition_.as_bins())[0] < 0.4


@pytest.mark.broad
def test_epsilon_is_at_most_one_and_a_half_times_that_of_plain_bins():
    ratios = []
    for seed in range(20):
        scores, y = draw(10_000, seed)
        ratios.append(
            Calibrator(n_bins=10).fit(scores, y).guarantee_.epsilon
            / BinningCalibrator(n_bins=10).fit(scores, y).guarantee_.epsilon
        )
    assert np.mean(ratios) < 1.5


@pytest.mark.broad
def test_average_epsilon_is_at_most_epsilon_and_at_least_the_average_over_the_rows():
    guarantee = Calibrator(n_bins=8).fit(*draw(8000)).guarantee_
    weighted = float(guarantee.radius @ guarantee.counts / guarantee.n_rows)
    assert weighted <= guarantee.average_epsilon
    assert guarantee.average_epsilon <= guarantee.epsilon


@pytest.mark.broad
def test_sentence_says_what_is_guaranteed_and_what_is_not():
    found = Calibrator(n_bins=5).fit(*draw(2000)).guarantee_
    assert "of the average prediction" in found.sentence
    assert "Nothing is guaranteed for one score" in found.details


@pytest.mark.broad
def test_auto_is_the_blend():
    """It follows a step, and is near the truth for scores that are no probabilities."""
    step = Calibrator().fit(*draw(20_000, rate=lambda s: np.where(s < 0.5, 0.1, 0.8)))
    assert step.curve_ == "blend"
    np.testing.assert_allclose(step.predict([0.3, 0.7]), [0.1, 0.8], atol=0.05)
    scores, y = draw(3_000)
    points = np.array([0.2, 0.5, 0.8])
    for scale in (lambda s: s, lambda s: 4 * s - 2, lambda s: 300 + 550 * s):
        found = Calibrator().fit(scale(scores), y).predict(scale(points))
        np.testing.assert_allclose(found, points**2, atol=0.06)


def test_counts_are_rounded_so_that_their_sums_are():
    counts = np.random.default_rng(2).exponential(0.3, size=500)
    found = _rounded(counts)
    assert found.min() >= 0
    assert np.abs(np.cumsum(found) - np.cumsum(counts)).max() <= 0.5


def test_scores_of_exactly_0_and_1_do_not_bend_the_curve():
    rng = np.random.default_rng(3)
    rate = rng.beta(0.3, 0.3, size=4000)
    scores = rng.binomial(50, rate) / 50  # a forest of 50 trees
    y = (rng.uniform(size=4000) < 0.1 + 0.8 * scores).astype(int)
    model = Calibrator("beta", n_bins=4, pilot=None).fit(scores, y)
    assert np.abs(model.predict(np.linspace(0, 1, 11)) - np.linspace(0.1, 0.9, 11)).max() < 0.06


def test_any_calibrator_can_be_the_curve():
    scores, y = draw(2000)
    model = Calibrator(BinningCalibrator(n_bins=5), n_bins=5).fit(scores, y)
    assert model.curve_ == "BinningCalibrator"
    assert model.guarantee_.epsilon < 0.2
    for wrong in (3, "spline"):
        with pytest.raises(InvalidValueError, match="curve must"):
            Calibrator(wrong).fit(scores, y)


@pytest.mark.broad
def test_segments_have_regions_and_curves_of_their_own():
    scores, y = draw(6000)
    segments = np.repeat(["a", "b", "c"], [3000, 2900, 100])
    y = np.where(segments == "b", 1 - y, y)  # the score ranks the wrong way round there
    with pytest.warns(PooledSegmentsWarning):
        model = Calibrator(n_bins=4).fit(scores, y, segments=segments)
    points = np.array([0.1, 0.9])
    rising, flat, few = (model.predict(points, segments=[name] * 2) for name in "abc")
    assert rising[1] - rising[0] > 0.5
    assert few.shape == (2,)
    assert abs(flat[1] - flat[0]) > 0.3  # shifted to the rates of its regions
    again = Calibrator.from_dict(model.to_dict())
    np.testing.assert_array_equal(
        again.predict(scores, segments=segments), model.predict(scores, segments=segments)
    )


def test_saved_curve_must_belong_to_its_counts():
    state = Calibrator(n_bins=3).fit(*draw(500)).to_dict()
    assert ScoreCalibrator.from_dict(state).guarantee_.epsilon > 0.0
    state["state"]["curve"]["average"][0] = 0.9
    with pytest.raises(InvalidValueError, match="average must lie"):
        ScoreCalibrator.from_dict(state)


def test_partition_with_segments_is_refused():
    bins = Partition.by_segment({"a": Partition.fixed_width(2)})
    with pytest.raises(InvalidValueError, match="without segments"):
        Calibrator(partition=bins).fit(*draw(100))


@pytest.mark.parametrize("n_rows", [1, 2, 100, 1024, 1025, 10**6])
def test_ranks_of_the_grid_reach_from_the_smallest_to_the_largest_row(n_rows):
    ranks = grid_ranks(n_rows)
    assert ranks[0] == 1
    assert ranks[-1] == n_rows
    assert (np.diff(ranks) > 0).all()
    assert ranks.size <= 2048


def test_ranks_of_the_grid_are_closest_in_the_tails():
    ranks = grid_ranks(10**6)
    assert ranks.size == 410
    assert [*ranks[13:23]] == [14, 16, 17, 19, 20, 22, 24, 26, 29, 32]  # eight for each doubling
    assert list(10**6 + 1 - ranks[::-1]) == list(ranks)
    assert np.diff(ranks).max() == 3922  # a 255th of the rows


def test_simplified_curve_stays_close_and_keeps_the_ends():
    x = np.linspace(-8, 8, 1001)
    y = stats.logistic.cdf(x)
    few, values = simplified(x, y)
    assert few.size < 200
    assert few[0] == x[0]
    assert few[-1] == x[-1]
    assert np.abs(interpolate(x, few, values) / y - 1.0).max() < 0.0021


@pytest.mark.parametrize("rows", [1, 10, 300, 2000, 5000])
def test_kolmogorov_distance_is_scipys_exact_limit_or_a_little_more(rows):
    level = 1.0 - (1.0 - 0.02) ** (1 / 3)
    exact = stats.kstwo.isf(level, rows)
    found = kolmogorov_distance(np.array([rows, 7, 0]), 0.02)[0]
    assert (1 - 1e-5) * exact <= found <= 1.01 * exact  # scipy's own limit is that accurate


@pytest.mark.broad
@pytest.mark.parametrize("segmented", [False, True])
def test_files_and_frames_give_what_arrays_give(segmented, tmp_path):
    scores, y = draw(5000)
    segments = np.where(np.arange(5000) % 3 == 0, "a", "b")
    columns = {"p": scores, "y": y, "group": segments}
    table = pa.table(columns)
    for part in range(3):
        pq.write_table(table.slice(part * 2000, 2000), tmp_path / f"{part}.parquet")
    options = {"segment": "group"} if segmented else {}
    by_array = {"segments": segments} if segmented else {}
    model = Calibrator(n_bins=4).fit(scores, y, **by_array)
    for data in (str(tmp_path / "*.parquet"), table):
        source = scored(data, score="p", label="y", **options)
        other = Calibrator(n_bins=4).fit(source)
        assert other.to_dict() == model.to_dict()
        found = other.apply(source).read_all()
        np.testing.assert_array_equal(
            found["calibrated"].to_numpy(), model.predict(scores, **by_array)
        )
        limits = model.predict_interval(scores, **by_array)
        np.testing.assert_array_equal(found["lower"].to_numpy(), limits[:, 0])
        np.testing.assert_array_equal(found["upper"].to_numpy(), limits[:, 1])
        sure = model.predict_set(scores, **by_array)
        assert found["set"].to_pylist() == [str({k for k in (0, 1) if row[k]}) for row in sure]


@pytest.mark.parametrize("scale", [pytest.param(1e-310, marks=pytest.mark.broad), 1e-305, 1e300])
@pytest.mark.parametrize("curve", CURVES)
def test_value_is_the_average_prediction_for_tiny_and_huge_scores(curve, scale):
    shares, y = draw(1500, rate=lambda s: s)
    scores = shares * scale
    if curve == "beta" and scale > 1.0:
        with pytest.raises(
            InvalidValueError, match=r"scores must be probabilities in \[0, 1\] for the beta curve"
        ):
            Calibrator(curve).fit(scores, y)
        return
    model = Calibrator(curve, n_bins=3, pilot=None).fit(scores, y)
    where = model.partition_.membership(scores)
    guarantee = model.guarantee_
    values = model.predict(scores)
    assert np.isfinite(values).all()
    for region in range(3):
        average = values[where == region].mean()
        assert average == pytest.approx(
            guarantee.value[region], abs=guarantee.margin[region] + 1e-9
        )
        assert guarantee.value[region] == pytest.approx(average, abs=0.02)


class NoCurve(ScoreCalibrator):
    """A calibrator whose predictions are missing."""

    def __init__(self, pos_label=None):
        self.pos_label = pos_label

    def fit(self, scores, y):
        return self

    def predict(self, scores):
        return np.full(len(scores), np.nan)


def test_a_curve_of_missing_values_is_refused():
    with pytest.raises(
        InvalidValueError, match="curve must predict probabilities; got missing values"
    ):
        Calibrator(NoCurve()).fit(*draw(300))


def test_the_fit_of_a_subclass_is_used():
    class Halved(PlattCalibrator):
        def fit(self, scores, y):
            return super().fit(scores / 2, y)

        def predict(self, scores):
            return super().predict(np.asarray(scores) / 2)

    scores, y = draw(1000)
    halved, plain = (
        Calibrator(curve, n_bins=1).fit(scores, y) for curve in (Halved(), PlattCalibrator())
    )
    np.testing.assert_allclose(halved.predict(scores), plain.predict(scores), atol=0.02)


@pytest.mark.broad
def test_segments_with_rounded_scores_are_fitted():
    scores, y = draw(6000)
    segments = np.arange(6000) % 3
    scores = np.where(segments > 0, scores.round(2), scores)
    model = Calibrator().fit(scores, y, segments=segments)
    assert model.guarantee_.epsilon < 0.25


@pytest.mark.broad
def test_the_sentence_states_the_average_only_where_it_says_more():
    scores, y = draw(200)
    stated = "Averaged over the population"
    for n_bins, labels, says_more in ((1, y, False), ("auto", np.zeros(200), True)):
        guarantee = Calibrator(n_bins=n_bins).fit(scores, labels, classes=(0, 1)).guarantee_
        average = upper(guarantee.average_epsilon)
        assert (stated in guarantee.details) is says_more
        assert (average < upper(guarantee.stated.epsilon)) is says_more
    assert stated in Calibrator().fit(*draw(10_000, rate=lambda s: s**3)).guarantee_.details


def test_the_largest_score_of_a_range_is_a_cell_of_its_own() -> None:
    regions = Partition.fixed_width(2, (0.0, 1.0)).as_bins()
    grid = Grid.count(read_rows([0.2, 0.9, 1.0, 1.0], [0, 1, 1, 1]), regions, {None: 4})
    low = grid.begin
    high = grid.end
    assert (low[-1], high[-1], grid.rows[-1]) == (1.0, 1.0, 2)


@pytest.mark.broad
def test_the_curve_does_not_depend_on_the_confidence_level():
    rng = np.random.default_rng(5)
    scores = rng.uniform(size=4_000)
    y = rng.uniform(size=4_000) < scores**2
    models = [Calibrator(confidence_level=level).fit(scores, y) for level in (0.5, 0.9, 0.99)]
    assert [model.n_shifted_ for model in models] == [0, 0, 0]
    np.testing.assert_array_equal(models[0].predict(scores), models[2].predict(scores))
    np.testing.assert_array_equal(models[1].predict(scores), models[2].predict(scores))


def test_ranks_of_the_grid_are_eight_for_each_doubling_in_the_tails():
    n_rows = 4096  # four doublings above 256 values
    tail = {int(2 ** (step / 8)) for step in range(32)}
    evenly = {round(1 + place * 4095 / 255) for place in range(256)}
    assert set(grid_ranks(n_rows).tolist()) == evenly | tail | {n_rows + 1 - rank for rank in tail}


@pytest.mark.parametrize("has_segments", [False, True])
@pytest.mark.parametrize(("method", "most"), [("predict", 4), ("predict_interval", 6)])
def test_predictions_take_few_copies_of_the_scores(
    method: str, most: int, has_segments: bool
) -> None:
    """The curve is followed in blocks of rows, so that no table of all rows is made."""
    scores, y = draw(20_000)
    segments = np.arange(scores.size) % 3
    beside = {"segments": segments} if has_segments else {}
    calibrator = Calibrator().fit(scores, y, **beside)
    many = np.tile(scores, 50)
    beside = {"segments": np.tile(segments, 50)} if has_segments else {}
    tracemalloc.start()
    try:
        getattr(calibrator, method)(many, **beside)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= most * many.nbytes


def test_the_number_of_threads_does_not_change_a_curve_with_many_regions(monkeypatch):
    scores, y = draw(20_000)
    found = []
    for cores in (1, 4):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        found.append(Calibrator(n_bins=150).fit(scores, y).to_dict())
    assert found[0] == found[1]


def test_of_very_many_pilot_rows_some_at_equal_steps_choose_the_knots(monkeypatch, tmp_path):
    scores, y = draw(4_000)
    scores = np.round(scores, 2)
    whole = Calibrator().fit(scores, y)
    monkeypatch.setattr("calibrant.calibrators.curve.half_curves.MOST_PILOT", 100)
    few = Calibrator().fit(scores, y)
    assert few.guarantee_.n_rows == whole.guarantee_.n_rows
    np.testing.assert_array_equal(few.partition_.edges, whole.partition_.edges)
    assert few.to_dict() != whole.to_dict()
    pq.write_table(pa.table({"s": scores, "y": y}), tmp_path / "rows.parquet")
    data = scored(tmp_path / "rows.parquet", score="s", label="y")
    assert Calibrator().fit(data).guarantee_.epsilon == few.guarantee_.epsilon


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_knots_are_as_precise_as_scores(kind):
    scores, y = draw(500)
    rows = ScoreCounts.of(scores.astype(kind), y)
    part = ScorePartition(np.array([0.5]))
    knots = knot_scores(part, rows, rows.scores, 20, is_tied=False)
    is_single = knots.astype(np.float32) == knots
    assert knots.min() > 0.0
    assert is_single.all() == (kind is np.float32)
