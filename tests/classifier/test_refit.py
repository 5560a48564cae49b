"""The classifier below 1,000 rows: all rows train it, and its distance from a first opinion is
limited by rows of which that opinion saw nothing.
"""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from calibrant import CalibratedClassifier, Calibrator, decide, load_model, save_model
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.classifier.arguments import read_task
from calibrant.classifier.fitted_parts import Fitting
from calibrant.classifier.folds import held_out
from calibrant.classifier.refit import ClippedRefit, _first_opinion, fit_refit
from calibrant.errors import (
    InvalidTypeError,
    InvalidValueError,
    PooledSegmentsWarning,
    WeakGuaranteeWarning,
)
from calibrant.export import export_table
from worlds.guarantees import assert_kept

WEAK = pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
RNG = np.random.default_rng(7)
X = RNG.normal(size=(400, 3))
Y = RNG.uniform(size=400) < expit(1.5 * X[:, 0] - 0.5)
KINDS = np.argmax(softmax(1.5 * X, axis=1) + 0.3 * RNG.gumbel(size=(400, 3)), axis=1)
NEW = 3.0 * RNG.normal(size=(500, 3))
SCALED = make_pipeline(StandardScaler(), LogisticRegression())
MODELS = (SCALED, LinearSVC(random_state=0), GaussianNB(), DecisionTreeClassifier(random_state=0))


@pytest.fixture(scope="module")
def fitted():
    return CalibratedClassifier(LogisticRegression()).fit(X, Y)


@pytest.fixture(scope="module")
def of_classes():
    with pytest.warns(WeakGuaranteeWarning, match="of class"):
        return CalibratedClassifier(LogisticRegression()).fit(X, KINDS)


def _both_opinions(model, features):
    """The columns of the first opinion and of the fit to all rows."""
    columns = model._scores(features)
    half = columns.shape[1] // 2
    return columns[:, :half], columns[:, half:]


# What the first opinion may use


def _refit(task, estimator=SCALED, cv="auto"):
    return fit_refit(Fitting(task, estimator, Calibrator(), "auto", []), cv, 0.9, None)


def _with_other(task, rows):
    """The task with other features and labels of some rows, and the same random draws."""
    features = task.X.copy()
    features[rows] = 1e3 * (1.0 + features[rows])
    labels = task.labels.copy()
    labels[rows] = np.roll(task.classes, 1)[np.searchsorted(task.classes, labels[rows])]
    return replace(task, X=features, labels=labels)


@WEAK
@pytest.mark.parametrize("labels", [Y, KINDS], ids=["two", "three"])
@pytest.mark.parametrize("estimator", MODELS, ids=lambda one: type(one).__name__)
def test_the_first_opinion_depends_on_nothing_of_the_rows_that_give_limits(estimator, labels):
    """Neither models nor curves nor bins change with the features and labels of these rows."""
    task = read_task(X, labels, {}, CalibratedClassifier(estimator))
    _, rows = held_out(task, 400 // 3)
    one, refit, known = _refit(task, estimator)
    other, other_refit, of_other = _refit(_with_other(task, rows), estimator)
    classes = task.ordered_classes
    np.testing.assert_array_equal(one.of(NEW, classes, "auto"), other.of(NEW, classes, "auto"))
    for before, after in zip(_each(known), _each(of_other), strict=True):
        np.testing.assert_array_equal(before.partition_.edges, after.partition_.edges)
        np.testing.assert_array_equal(before.partition_.bounds, after.partition_.bounds)
    assert (refit.of(NEW, classes, "auto") != other_refit.of(NEW, classes, "auto")).any()


def _each(clipped):
    return getattr(clipped.first, "calibrators_", (clipped.first,))


@WEAK
def test_the_first_opinion_sees_no_group_with_rows_that_give_limits():
    groups = np.arange(400) // 4
    model = CalibratedClassifier(SCALED)
    task = read_task(X, Y, {"groups": groups}, model)
    _, rows = held_out(task, 100 // 3)
    assert rows.size == 132
    assert not set(groups[rows]) & set(np.delete(groups, rows))
    one, _, known = _refit(task)
    other, _, of_other = _refit(_with_other(task, rows))
    classes = task.ordered_classes
    np.testing.assert_array_equal(one.of(NEW, classes, "auto"), other.of(NEW, classes, "auto"))
    np.testing.assert_array_equal(known.first.partition_.edges, of_other.first.partition_.edges)
    facts = known.guarantee_.statement.groups
    assert (facts.counted, facts.aside) == (33, 67)


class _Witness(LogisticRegression):
    """Records the rows that it is fitted to and those that it scores, by their first feature."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y):
        _Witness.seen.append(("fit", set(X[:, 0])))
        return super().fit(X, y)

    def predict_proba(self, X):
        _Witness.seen.append(("score", set(X[:, 0])))
        return super().predict_proba(X)


@WEAK
def test_rows_that_give_limits_are_not_shown_before_the_first_opinion_is_complete():
    """Four models are fitted and score their folds; only then they score these rows."""
    model = CalibratedClassifier(_Witness())
    task = read_task(X, Y, {}, model)
    _, rows = held_out(task, 133)
    _Witness.seen.clear()
    _refit(task, _Witness())
    hidden = set(X[rows, 0])
    first = _Witness.seen[:8]
    assert [what for what, _ in first] == ["fit"] * 4 + ["score"] * 4
    assert not any(seen & hidden for _, seen in first)
    assert [seen for _, seen in _Witness.seen[8:12]] == [hidden] * 4
    refit = _Witness.seen[12:]
    assert [what for what, _ in refit] == ["fit"] * 5 + ["score"] * 5
    assert set.union(*(seen for what, seen in refit if what == "fit")) == set(X[:, 0])


@WEAK
@pytest.mark.parametrize("positives", [0, 3, 133])
def test_rows_that_give_limits_are_drawn_once_and_never_by_label(positives):
    """However few of them are positive, they are not stratified and not drawn again."""
    task = read_task(X, Y, {}, CalibratedClassifier(SCALED))
    others, rows = held_out(task, 133)
    labels = np.zeros(400, dtype=bool)
    labels[rows[:positives]] = True
    labels[others[:40]] = True
    _, _, known = _refit(replace(task, labels=labels))
    assert known.guarantee_.counts.sum() == 133
    assert known.guarantee_.positives.sum() == positives


@WEAK
@pytest.mark.parametrize(
    ("n", "size", "n_bins"), [(80, 26, 1), (200, 66, 1), (201, 67, 2), (400, 133, 2)]
)
def test_a_third_gives_limits_and_halves_are_cut_from_67_rows_on(n, size, n_bins):
    model = CalibratedClassifier(LogisticRegression()).fit(X[:n], Y[:n])
    assert model.guarantee_.n_rows == size
    assert len(model.guarantee_.regions) == n_bins
    assert len(model.first_opinion_.members) == 4
    assert len(model.estimators_) == 5


# What the prediction is


def _moved_within_its_room(fitted):
    """The first opinion of new rows after its move, the other opinion, and the bins."""
    first, refit = _both_opinions(fitted, NEW)
    proof = fitted.calibrator_.guarantee_
    epsilon = fitted.guarantee_.epsilon
    region = fitted.calibrator_.partition_.regions_of(first[:, 0])
    low = (proof.errors.upper - epsilon)[region]
    high = (proof.errors.lower + epsilon)[region]
    expected = first[:, 0] + np.clip(refit[:, 0] - first[:, 0], low, high)
    return expected, refit[:, 0], region


def test_the_prediction_is_the_first_opinion_moved_within_its_room():
    """And nothing else happens to it: no clip, no rounding, no other scale."""
    fitted = CalibratedClassifier(DecisionTreeClassifier(random_state=0)).fit(X, Y)
    expected, refit, region = _moved_within_its_room(fitted)
    found = fitted.predict_proba(NEW)[:, 1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
    assert 0.05 < (np.abs(expected - refit) > 1e-9).mean() < 0.95  # where the room binds
    assert len(np.unique(region)) == 2


def test_predictions_near_0_and_1_are_not_clipped_after_the_room(fitted):
    expected, _, _ = _moved_within_its_room(fitted)
    assert expected.min() < 0.01
    assert expected.max() > 0.98
    np.testing.assert_allclose(fitted.predict_proba(NEW)[:, 1], expected, rtol=0, atol=1e-15)


def test_opinions_are_means_of_calibrated_probabilities(fitted):
    first, refit = _both_opinions(fitted, NEW)
    members, (curve,) = fitted.first_opinion_
    each = [np.clip(curve(one.predict_proba(NEW)[:, 1]), 1e-3, 0.999) for one in members]
    np.testing.assert_allclose(first[:, 0], np.mean(each, axis=0), rtol=1e-12)
    each = [
        np.clip(fitted.curve_(one.predict_proba(NEW)[:, 1]), 1e-3, 0.999)
        for one in fitted.estimators_
    ]
    np.testing.assert_allclose(refit[:, 0], np.mean(each, axis=0), rtol=1e-12)


def _proof(p, y, pilot, n_bins=2):
    """A first opinion with limits, from probabilities and labels."""
    pilot_y = np.arange(pilot.size) % 2
    with reported_by_caller():
        return HoldOutCalibrator(n_bins, moves=False).fit(
            p, y, pilot_scores=pilot, pilot_y=pilot_y, classes=(0, 1)
        )


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_there_is_always_room_to_stay_at_the_first_opinion(rate):
    """Even where labels refute it, so that predictions are probabilities."""
    rng = np.random.default_rng(1)
    p = rng.uniform(0.001, 0.999, size=100)
    first = _proof(p, rng.uniform(size=100) < rate, p)
    clipped = ClippedRefit.around(first, 300)
    (room,) = clipped.rooms
    least = 0.03 if 0.5 / np.sqrt(300) < 0.03 else 0.5 / np.sqrt(300)
    assert (room.lower <= -least).all()
    assert (room.upper >= least).all()
    assert clipped.epsilon >= first.guarantee_.radius.max() + least
    ends = np.array([0.001, 0.2, 0.8, 0.999])
    pairs = np.array([(one, other) for one in ends for other in ends])
    found = clipped.predict_proba(pairs)[:, 1]
    assert (found >= pairs.min(axis=1) - 1e-15).all()
    assert (found <= pairs.max(axis=1) + 1e-15).all()


def test_where_no_row_gave_limits_the_prediction_is_the_first_opinion():
    first = _proof(np.full(50, 0.2), np.arange(50) % 5 == 0, np.repeat([0.2, 0.8], 50))
    assert first.guarantee_.counts.tolist() == [50, 0]
    clipped = ClippedRefit.around(first, 150)
    pairs = np.array([[0.8, 0.1], [0.9, 0.99], [0.2, 0.9]])
    found = clipped.predict_proba(pairs)[:, 1]
    assert found[:2].tolist() == [0.8, 0.9]
    assert 0.2 < found[2] < 0.9
    assert clipped.epsilon < 0.5
    assert clipped.predict_interval(pairs)[:2].tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert clipped.guarantee_.radius.tolist() == [clipped.epsilon, 1.0]
    assert clipped.guarantee_.mass_limits.regions[1] < 0.2


def test_intervals_are_the_prediction_give_or_take_epsilon(fitted):
    p = fitted.predict_proba(NEW)[:, 1]
    low, high = fitted.predict_interval(NEW).T
    epsilon = fitted.guarantee_.epsilon
    np.testing.assert_allclose(low, np.maximum(p - epsilon, 0.0), atol=1e-12)
    np.testing.assert_allclose(high, np.minimum(p + epsilon, 1.0), atol=1e-12)


def test_rates_sets_and_diagnostics_are_those_of_the_first_opinion(fitted):
    """Predictions know the labels of the rows that gave limits, the first opinion does not."""
    first, _ = _both_opinions(fitted, NEW)
    proof = fitted.calibrator_
    np.testing.assert_array_equal(
        fitted.predict_rate_interval(NEW), proof.predict_rate_interval(first[:, 0])
    )
    np.testing.assert_array_equal(fitted.predict_set(NEW), proof.predict_set(first[:, 0]))
    _, rows = held_out(read_task(X, Y, {}, fitted), 133)
    of_rows = _both_opinions(fitted, X[rows])[0][:, 0]
    region = proof.partition_.regions_of(of_rows)
    average = np.bincount(region, of_rows) / np.bincount(region)
    np.testing.assert_allclose(fitted.guarantee_.value, average, rtol=1e-12)
    np.testing.assert_array_equal(fitted.guarantee_.lower, proof.guarantee_.lower)
    found = decide(fitted, NEW, cost_false_alarm=1.0, cost_miss=1.0)
    np.testing.assert_array_equal(found.lower, proof.predict_rate_interval(first[:, 0])[:, 0])


def test_the_average_prediction_lies_within_its_margin(fitted):
    """Which is for the first opinion and for the room around it."""
    proof = fitted.calibrator_.guarantee_
    widest = np.maximum(fitted.refit_.rooms[0].upper, -fitted.refit_.rooms[0].lower)
    np.testing.assert_allclose(fitted.guarantee_.margin, proof.margin + widest, rtol=1e-12)


# Several classes


def test_classes_share_one_error_budget_and_one_epsilon(of_classes):
    found = of_classes.guarantee_
    assert [one.confidence_level for one in found.guarantees.values()] == pytest.approx(
        [1.0 - 0.1 / 3] * 3
    )
    assert {one.epsilon for one in found.guarantees.values()} == {of_classes.refit_.epsilon}
    assert list(found.guarantees) == of_classes.classes_.tolist()
    assert all(one.n_rows == 133 for one in found.guarantees.values())


def test_probabilities_of_classes_add_up_and_stay_in_every_room(of_classes):
    clipped = of_classes.refit_
    rng = np.random.default_rng(0)
    first = softmax(2.0 * rng.normal(size=(2_000, 3)), axis=1)
    refit = softmax(4.0 * rng.normal(size=(2_000, 3)), axis=1)
    p = clipped.predict_proba(np.hstack([first, refit]))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p >= 0.0).all()
    binds = np.zeros(2_000, dtype=bool)
    for place, (one, room) in enumerate(zip(_each(clipped), clipped.rooms, strict=True)):
        region = one.partition_.regions_of(first[:, place])
        change = p[:, place] - first[:, place]
        assert (change >= room.lower[region] - 1e-12).all()
        assert (change <= room.upper[region] + 1e-12).all()
        binds |= np.isclose(change, room.lower[region]) | np.isclose(change, room.upper[region])
    # as far as there is room: all the way, or to the end of the room of some class
    assert (binds | np.isclose(p, refit).all(axis=1)).all()
    assert 0.2 < binds.mean() < 0.98
    tau = (p - first) / (refit - first)
    np.testing.assert_allclose(tau, np.repeat(tau[:, :1], 3, axis=1), atol=1e-6)


def test_intervals_and_sets_of_classes(of_classes):
    p = of_classes.predict_proba(NEW)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    limits = of_classes.predict_interval(NEW)
    assert limits.shape == (500, 3, 2)
    assert ((limits[:, :, 0] <= p) & (p <= limits[:, :, 1])).all()
    assert of_classes.predict_rate_interval(NEW).shape == (500, 3, 2)
    assert of_classes.predict_set(NEW).shape == (500, 3)


@WEAK
def test_a_class_with_one_row_outside_the_limits_gives_a_constant_first_opinion():
    task = read_task(X, KINDS, {}, CalibratedClassifier(SCALED))
    others, rows = held_out(task, 133)
    labels = np.where(np.arange(400) % 2, 0, 1)
    labels[[others[0], *rows[:5]]] = 2
    first, refit, known = _refit(replace(task, labels=labels))
    assert first.members == ()
    expected = (np.bincount(labels[others]) + 0.5) / (267 + 1.5)
    np.testing.assert_allclose(first.of(NEW, task.classes, "auto")[9], expected, rtol=1e-12)
    assert len(refit.members) == 5
    assert [len(one.regions) for one in known.guarantee_.guarantees.values()] == [1, 1, 1]


# Which rows are refitted


@WEAK
@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({"calibration_size": 100}, {}),
        ({"calibration_size": 0.3}, {}),
        ({"calibration_size": 0}, {}),
        ({"cv": None}, {}),
        ({}, {"calibration_weight": np.ones(400, dtype=int)}),
    ],
)
def test_a_given_size_one_model_or_weights_keep_the_plain_hold_out(settings, more):
    model = CalibratedClassifier(LogisticRegression(), **settings).fit(X, Y, **more)
    assert not hasattr(model, "first_opinion_")
    assert not hasattr(model, "refit_")


@WEAK
def test_segments_keep_the_plain_hold_out():
    with pytest.warns(PooledSegmentsWarning):
        model = CalibratedClassifier(LogisticRegression()).fit(X, Y, segments=X[:, 1] > 0)
    assert not hasattr(model, "first_opinion_")


@pytest.mark.parametrize(("n", "refits"), [(999, True), (1_000, False)])
def test_from_1000_rows_on_the_held_out_rows_do_not_train(n, refits):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, 2))
    labels = rng.uniform(size=n) < expit(features[:, 0])
    model = CalibratedClassifier(LogisticRegression()).fit(features, labels)
    assert hasattr(model, "first_opinion_") == refits
    assert model.guarantee_.n_rows == (333 if refits else 100)
    model.set_params(calibration_size=100).fit(features, labels)  # leaves nothing behind
    assert not hasattr(model, "first_opinion_")
    assert model.predict_proba(features).shape == (n, 2)


def test_weights_of_the_model_train_all_models():
    weights = np.where(X[:, 0] > 0, 3.0, 1.0)
    plain = CalibratedClassifier(LogisticRegression()).fit(X, Y)
    weighted = CalibratedClassifier(LogisticRegression()).fit(X, Y, sample_weight=weights)
    assert hasattr(weighted, "first_opinion_")
    for one, other in zip(_both_opinions(plain, NEW), _both_opinions(weighted, NEW), strict=True):
        assert (one != other).any()


def test_the_last_third_gives_limits():
    time = np.random.default_rng(0).permutation(400)
    model = CalibratedClassifier(LogisticRegression(), holdout="last").fit(X, Y, time=time)
    late = time >= 400 - 133
    assert model.guarantee_.n_rows == 133
    assert model.guarantee_.positives.sum() == Y[late].sum()
    first, _ = _both_opinions(model, X[late])
    region = model.calibrator_.partition_.regions_of(first[:, 0])
    np.testing.assert_array_equal(np.bincount(region), model.guarantee_.counts)


def test_a_number_of_models_or_a_splitter_divides_the_rows_of_both_opinions():
    for cv in (3, StratifiedKFold(3)):
        model = CalibratedClassifier(LogisticRegression(), cv=cv).fit(X, Y)
        assert len(model.estimators_) == len(model.first_opinion_.members) == 3


# Few rows, rare classes, ties


@WEAK
@pytest.mark.parametrize("n", [4, 5, 6, 9, 12, 20, 40])
def test_tiny_samples(n):
    labels = np.arange(n) % 2
    model = CalibratedClassifier(LogisticRegression()).fit(X[:n], labels)
    assert model.guarantee_.n_rows == n // 3
    p = model.predict_proba(NEW)
    assert ((p > 0.0) & (p < 1.0)).all()
    limits = model.predict_interval(NEW)
    assert (limits[:, 0] <= p[:, 1]).all()
    assert (p[:, 1] <= limits[:, 1]).all()


@WEAK
def test_a_rare_class_gives_fewer_models_or_a_constant_first_opinion():
    rng = np.random.default_rng(0)
    n_models = set()
    for _ in range(12):
        labels = np.zeros(60, dtype=int)
        labels[rng.choice(60, size=3, replace=False)] = 1
        model = CalibratedClassifier(GaussianNB()).fit(X[:60], labels)
        others = 3 - int(model.guarantee_.positives.sum())
        assert len(model.first_opinion_.members) == (others if others > 1 else 0)
        n_models.add(len(model.first_opinion_.members))
        assert len(model.estimators_) == 3
        if others < 2:
            first, _ = _both_opinions(model, NEW)
            np.testing.assert_allclose(first, (others + 0.5) / 41.0, rtol=1e-12)
            assert len(model.guarantee_.regions) == 1
    assert n_models == {0, 2, 3}


def test_one_class_is_refused():
    with pytest.raises(InvalidValueError) as refused:
        CalibratedClassifier(LogisticRegression()).fit(X, np.zeros(400))
    assert refused.value.parameter == "y"
    with pytest.raises(InvalidValueError) as refused:
        CalibratedClassifier(LogisticRegression()).fit(X, np.arange(400) == 3)
    assert refused.value.parameter == "y"


def test_tied_scores():
    """Out-of-fold scores of four models differ where their mean is one value: one bin is empty."""
    features = np.zeros((300, 1))
    labels = np.arange(300) % 3 == 0
    model = CalibratedClassifier(LogisticRegression()).fit(features, labels)
    assert np.sort(model.guarantee_.counts).tolist() == [0, 100]
    assert model.refit_.epsilon == model.guarantee_.stated.epsilon < 0.25
    assert abs(model.predict_proba(features)[0, 1] - 1 / 3) < 0.1
    forest = CalibratedClassifier(RandomForestClassifier(10, random_state=0))
    assert len(forest.fit(np.round(X), Y).guarantee_.regions) == 2


@WEAK
def test_groups_of_one_class_give_a_constant_first_opinion():
    """A model that would see one class only is not fitted."""
    groups = np.arange(60) // 20
    model = CalibratedClassifier(GaussianNB(), cv=2)
    labels = np.arange(60) % 2
    model.fit(X[:60], labels, groups=groups)
    assert model.guarantee_.statement.groups.counted == 1
    labels[groups > 0] = 0
    task = read_task(X[:60], labels, {"groups": groups}, model)
    others, _ = held_out(task, 1)
    first, _ = _first_of(task, others)
    assert first.members == ()


def _first_of(task, others):
    fitting = Fitting(task, GaussianNB(), Calibrator(), "auto", [])
    return _first_opinion(fitting, others, "auto", None)


def test_string_labels_in_either_order_give_the_same_probabilities(fitted):
    words = np.where(Y, "a yes", "no")  # sorts the positive class first
    named = CalibratedClassifier(LogisticRegression(), pos_label="a yes").fit(X, words)
    np.testing.assert_allclose(
        named.predict_proba(NEW)[:, 0], fitted.predict_proba(NEW)[:, 1], atol=1e-4
    )
    np.testing.assert_allclose(named.predict_proba(NEW).sum(axis=1), 1.0)
    np.testing.assert_allclose(named.predict_interval(NEW), fitted.predict_interval(NEW), atol=1e-4)
    assert named.guarantee_.positive_label == "a yes"


# As every estimator


def test_the_same_seed_gives_the_same_answers_and_threads_change_nothing(fitted):
    again = CalibratedClassifier(LogisticRegression(), n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(NEW), fitted.predict_proba(NEW))
    other = CalibratedClassifier(LogisticRegression(), random_state=1).fit(X, Y)
    assert (other.predict_proba(NEW) != fitted.predict_proba(NEW)).any()


def test_a_fitted_classifier_is_cloned_and_pickled(fitted, of_classes):
    for model in (fitted, of_classes):
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_interval(NEW), model.predict_interval(NEW))
        assert again.guarantee_.sentence == model.guarantee_.sentence
        assert str(clone(model).get_params()) == str(model.get_params())
        assert not hasattr(clone(model), "first_opinion_")


def test_rows_without_a_score_are_named_or_answered(fitted):
    class Gaps(LogisticRegression):
        def predict_proba(self, X):
            return np.where(X[:, :1] > 8.0, np.nan, super().predict_proba(X))

    model = CalibratedClassifier(Gaps()).fit(X, Y)
    rows = np.array([[9.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    with pytest.raises(InvalidValueError):
        model.predict_proba(rows)
    model.set_output(missing_scores="nan")
    assert np.isnan(model.predict_proba(rows)[0]).all()
    assert model.predict_interval(rows)[0].tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(model.predict_proba(rows)[1:], fitted.predict_proba(rows[1:]))


def test_files_and_tables_take_one_score_that_of_the_first_opinion(fitted, of_classes, tmp_path):
    """Predictions are no function of one score, so the classifier itself is pickled."""
    for number, model in enumerate((fitted, of_classes)):
        with pytest.raises(InvalidTypeError, match="pickle"):
            save_model(model, tmp_path / "model.json")
        with pytest.raises(InvalidTypeError, match="cv=None"):
            export_table(model)
        path = tmp_path / f"{number}.json"
        save_model(model.calibrator_, path)
        first = np.squeeze(_both_opinions(model, NEW)[0])
        loaded = load_model(path).calibrator
        np.testing.assert_array_equal(
            loaded.predict_interval(first), model.calibrator_.predict_interval(first)
        )
        assert loaded.guarantee_.epsilon < model.guarantee_.epsilon
        assert "first opinion" not in loaded.guarantee_.sentence
    assert export_table(fitted.calibrator_).calibrated.size >= 2
    with pytest.raises(InvalidTypeError):
        fitted.predict_proba(NEW, segments=np.zeros(500))


# What is said


def test_the_guarantee_says_what_it_is_about(fitted, of_classes):
    assert (
        "In each of 2 score ranges of a first opinion, the true rate" in fitted.guarantee_.sentence
    )
    assert "in each score range of a first opinion" in of_classes.guarantee_.sentence
    for found in (fitted.guarantee_, of_classes.guarantee_):
        assert "nothing of the 133 calibration rows, which give the limits" in found.details
        assert "all 400 rows trained the models that predict" in found.details
        assert "the models behind the first opinion saw nothing of the calibration rows" in (
            found.assumptions
        )
        assert not any("was not trained on" in text for text in found.assumptions)
    plain = CalibratedClassifier(LogisticRegression(), calibration_size=133).fit(X, Y)
    assert "first opinion" not in str(plain.guarantee_)
    assert len(fitted.guarantee_.sentence.split()) <= 35


# Coverage with known truth


class Parity(ClassifierMixin, BaseEstimator):
    """Its predictions carry the parity of the labels that it was fitted to."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.odd_ = int(y.sum()) % 2
        return self

    def predict_proba(self, X):
        p = np.where(X[:, 0] > 0, 0.6, 0.4) + (0.3 if self.odd_ else -0.3)
        return np.column_stack([1.0 - p, p])


LEARNERS = {
    "memoriser": KNeighborsClassifier(1),
    "parity": Parity(),
    "logistic": LogisticRegression(),
}


def _population(rng):
    """Finitely many rows and their rates, so that averages over the population are exact."""
    features = rng.normal(size=(400, 2))
    rate = np.where(features[:, 0] > 0.3, 0.9, 0.1) if rng.uniform() < 0.5 else None
    return features, expit(2.0 * features[:, 1] - 1.0) if rate is None else rate


def _worst_error(p, rate, region):
    """The largest distance of a region's average prediction from its rate."""
    rows = np.bincount(region)
    off = np.bincount(region, rate - p)
    return np.abs(off[rows > 0] / rows[rows > 0]).max()


def broken(learner, n, level, seed):
    """Draw by draw, whether the bound is broken: by the prediction, and by one that sits at either
    end of its room in every bin, the worst that models could do.
    """
    rng = np.random.default_rng(seed)
    while True:
        features, rate = _population(rng)
        drawn = rng.integers(400, size=n)
        labels = rng.uniform(size=n) < rate[drawn]
        model = CalibratedClassifier(
            LEARNERS[learner], confidence_level=level, random_state=int(rng.integers(2**31))
        )
        model.fit(features[drawn], labels)
        clipped = model.refit_
        first, _ = _both_opinions(model, features)
        region = clipped.first.partition_.regions_of(first[:, 0])
        p = model.predict_proba(features)[:, 1]
        high = clipped.predict_proba(np.hstack([first, np.ones_like(first)]))[:, 1]
        low = clipped.predict_proba(np.hstack([first, np.zeros_like(first)]))[:, 1]
        errors = [_worst_error(one, rate, region) for one in (p, high, low)]
        yield {
            "prediction": errors[0] > clipped.epsilon,
            "at the clip": max(errors[1:]) > clipped.epsilon,
        }


@WEAK
@pytest.mark.slow
@pytest.mark.parametrize("level", [0.9, 0.5])
@pytest.mark.parametrize("n", [80, 300])
@pytest.mark.parametrize("learner", LEARNERS)
def test_the_bound_is_broken_at_most_as_often_as_stated(learner, n, level):
    alpha = 1.0 - level
    caught = 0.2 if alpha < 0.2 else 0.65
    assert_kept(broken(learner, n, level, seed=n + len(learner)), alpha, caught=caught)
