"""What every density ratio must do, and what each of them must not take."""

import re
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError

from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.ratios import ULSIF, LargeShiftWarning, LogisticRatio, RatioDiagnostics
from calibrant.shift.ratios.density_ratio import effective_sample_size, share_outside
from worlds.errors import about

RATIOS = {
    "ulsif": ULSIF(centers=30),
    "logistic": LogisticRatio(),
}
each_ratio = pytest.mark.parametrize("ratio", RATIOS.values(), ids=RATIOS.keys())


def populations(seed=0, n=400, shift=0.7):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.normal([shift, 0.0], 1.0, size=(n, 2))


@each_ratio
def test_weights_are_one_a_row_finite_and_not_negative(ratio):
    source, target = populations()
    weights = (
        clone(ratio).fit(source, target).predict(np.concatenate([source, target, 1e3 * source]))
    )
    assert weights.shape == (1200,)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    assert clone(ratio).fit(source, target).predict(source[:0]).shape == (0,)


@each_ratio
def test_weights_grow_where_the_target_is(ratio):
    source, target = populations(n=2000)
    weights = clone(ratio).fit(source, target).predict([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    assert weights[0] < weights[1] < weights[2]


@each_ratio
def test_identical_populations_get_weights_near_one(ratio):
    source, _ = populations(n=2000)
    weights = clone(ratio).fit(source, source).predict(source)
    assert weights.mean() == pytest.approx(1.0, abs=0.1)
    assert effective_sample_size(weights) > 0.8 * len(source)


@each_ratio
def test_same_rows_give_the_same_weights_whatever_else_is_asked_for(ratio):
    source, target = populations()
    fitted = clone(ratio).fit(source, target)
    rows = np.concatenate([source] * 12)  # more than a batch
    together = fitted.predict(rows)
    np.testing.assert_allclose(together[:400], together[-400:], rtol=1e-12)
    np.testing.assert_allclose(fitted.predict(rows[5:6]), together[5:6], rtol=1e-12)
    np.testing.assert_array_equal(clone(ratio).fit(source, target).predict(rows), together)


@pytest.mark.broad
@each_ratio
def test_frames_are_taken_and_nothing_of_the_callers_changes(ratio):
    source, target = populations()
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    copies = source.copy(), target.copy()
    expected = clone(ratio).fit(source, target).predict(source)
    frames = [pd.DataFrame(rows, columns=["a", "b"]) for rows in (source, target)]
    np.testing.assert_allclose(clone(ratio).fit(*frames).predict(frames[0]), expected, rtol=1e-12)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(source, copies[0])
    np.testing.assert_array_equal(target, copies[1])


@pytest.mark.broad
def test_polars_lists_and_single_columns_are_taken():
    source, target = populations()
    expected = ULSIF(centers=30).fit(source, target).predict(source)
    frame = ULSIF(centers=30).fit(pl.DataFrame(source), target.tolist()).predict(source)
    np.testing.assert_array_equal(frame, expected)
    flat = ULSIF(centers=30).fit(source[:, 0], target[:, 0])
    np.testing.assert_array_equal(flat.predict(source[:, 0]), flat.predict(source[:, :1]))


def test_columns_in_other_units_change_nothing():
    source, target = populations()
    expected = ULSIF(centers=30).fit(source, target).predict(source)
    unit = np.array([1024.0, 2.0**-20])  # exact in doubles
    np.testing.assert_allclose(
        ULSIF(centers=30).fit(source * unit, target * unit).predict(source * unit),
        expected,
        rtol=1e-9,
    )


def test_logistic_ratio_is_right_for_two_normal_populations():
    rng = np.random.default_rng(1)
    source = rng.normal(size=(20_000, 1))
    target = rng.normal(0.5, 1.0, size=(10_000, 1))
    rows = np.linspace(-2, 2, 9)[:, None]
    np.testing.assert_allclose(
        LogisticRatio().fit(source, target).predict(rows),
        np.exp(0.5 * rows.ravel() - 0.125),
        rtol=0.1,
    )


def test_logistic_ratio_takes_any_classifier_and_text_columns_through_a_pipeline():
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(2)
    source = pd.DataFrame({"town": rng.choice(["north", "south"], 4000, p=[0.5, 0.5])})
    target = pd.DataFrame({"town": rng.choice(["north", "south"], 4000, p=[0.8, 0.2])})
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["town"])), LogisticRegression(C=1e6)
    )
    ratio = LogisticRatio(pipeline).fit(source, target)
    np.testing.assert_allclose(
        ratio.predict(pd.DataFrame({"town": ["north", "south"]})), [1.6, 0.4], atol=0.1
    )
    forest = LogisticRatio(RandomForestClassifier(5, min_samples_leaf=200, random_state=0)).fit(
        *populations()
    )
    assert np.isfinite(forest.predict(populations()[0])).all()


# Diagnostics


def test_effective_sample_size_by_hand():
    assert effective_sample_size(np.ones(7)) == 7.0
    assert effective_sample_size(np.array([1.0, 0.0])) == 1.0
    assert effective_sample_size(np.array([3.0, 1.0]) * 1e200) == pytest.approx(16 / 10)
    assert effective_sample_size(np.zeros(3)) == 0.0


def test_diagnostics_in_numbers_and_words():
    found = RatioDiagnostics.of(
        np.array([0.5] * 100 + [1.5] * 100), n_target=50, outside_support=0.02
    )
    assert (found.n_source, found.n_target, found.mean_weight) == (200, 50, 1.0)
    assert found.effective_sample_size == pytest.approx(160.0)
    assert found.largest_weights == (1.5,) * 5
    assert not found.is_too_large
    assert (
        found.sentence
        == "The 200 source rows are worth 160 rows of the target population, and cover about 98%"
        " of it."
    )
    assert "poorly estimated" in RatioDiagnostics.of(np.full(200, 3.0), 50, 0.0).sentence


@each_ratio
def test_a_shift_too_large_to_correct_is_said_aloud(ratio):
    source, target = populations(shift=25.0)
    with pytest.warns(LargeShiftWarning, match=r"too large to correct: .*no source rows"):
        fitted = clone(ratio).fit(source, target)
    assert fitted.diagnostics_.is_too_large
    assert fitted.diagnostics_.outside_support > 0.95


def test_share_outside_is_small_without_a_shift_and_right_with_a_hole():
    rng = np.random.default_rng(3)
    source = rng.uniform(size=(3000, 3))
    assert share_outside(source, rng.uniform(size=(3000, 3))) < 0.03
    assert share_outside(source, rng.beta(2, 1, size=(3000, 3))) < 0.05
    target = np.where(rng.uniform(size=(3000, 1)) < 0.3, 2.0, 0.0) + rng.uniform(size=(3000, 3))
    assert share_outside(source, target) == pytest.approx(0.3, abs=0.06)
    assert share_outside(np.ones((5, 1)), np.ones((5, 1))) == 0.0


# Size


@pytest.mark.broad
def test_memory_is_linear_in_rows_and_a_million_rows_are_weighed_in_batches():
    source, target = populations()
    ratio = ULSIF(bandwidth=1.0, penalty=0.1).fit(source, target)
    rows = np.random.default_rng(4).normal(size=(1_000_000, 2))
    tracemalloc.start()
    weights = ratio.predict(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert weights.shape == (1_000_000,)
    assert peak < 60e6  # the answer is 8 MB; a matrix of kernel values would be 800 MB


@pytest.mark.broad
def test_fitting_needs_no_matrix_of_all_rows():
    rng = np.random.default_rng(5)
    source = rng.uniform(size=(40_000, 2))
    target = rng.beta(2, 1, size=(40_000, 2))
    tracemalloc.start()
    ULSIF(bandwidth=[0.3, 1.0], penalty=[0.1, 1.0], n_jobs=1).fit(source, target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # kernel values of all rows would be 2 x 32 MB


# Refusals


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s, t: (s, t[:1]), "X_target must have at least 2 rows; got 1"),
        (lambda s, t: (s[:0], t), "X_source must have at least 2 rows; got 0"),
        (lambda s, t: (s, t[:, :1]), "X_target must have as many columns as X_source, 2; got 1"),
        (
            lambda s, t: (np.where(s == s[3, 1], np.nan, s), t),
            "X_source must be finite; got nan in row 3, column 1",
        ),
        (
            lambda s, t: (s, np.where(t == t[4, 0], np.inf, t)),
            "X_target must be finite; got inf in row 4, column 0",
        ),
        (
            lambda s, t: (s, t[:, :0]),
            "X_target must have shape (n, n_features); got shape (400, 0)",
        ),
        (lambda s, t: (s.reshape(4, 50, 4), t), "X_source must have shape (n, n_features)"),
        (lambda s, t: (s.astype(str), t), "X_source must be numbers"),
        (lambda s, t: (None, t), "X_source must be an array"),
    ],
)
def test_bad_rows_are_refused(change, words):
    with pytest.raises((InvalidValueError, InvalidTypeError), match=re.escape(words)):
        ULSIF(centers=30).fit(*change(*populations()))


@each_ratio
def test_one_target_row_and_other_columns_are_refused(ratio):
    source, target = populations()
    with pytest.raises(InvalidValueError, check=about("X_target", "1")):
        clone(ratio).fit(source, target[:1])
    with pytest.raises(InvalidValueError, check=about("X_target", "1")):
        clone(ratio).fit(source, target[:, :1])
    with pytest.raises(NotFittedError):
        clone(ratio).predict(source)


def test_rows_with_other_columns_than_fitted_are_refused():
    fitted = ULSIF(centers=30).fit(*populations())
    with pytest.raises(InvalidValueError, check=about("X", "1")):
        fitted.predict([[1.0]])


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (ULSIF(centers=0), "centers must be an int >= 1"),
        (ULSIF(centers=np.ones((3, 5))), "centers must have 2 columns; got 5"),
        (ULSIF(bandwidth=0.0), "bandwidth must be a number > 0 or several"),
        (ULSIF(bandwidth=[]), "bandwidth must be a number > 0 or several"),
        (ULSIF(penalty=[-1.0, 1.0]), "penalty must be a number > 0 or several"),
        (ULSIF(standardize="yes"), "standardize must be True or False"),
        (ULSIF(n_jobs=0), "n_jobs must be an int >= 1"),
        (LogisticRatio(classifier=3), "classifier must be a classifier with predict_proba"),
    ],
)
def test_bad_parameters_are_refused(ratio, words):
    with pytest.raises((InvalidValueError, InvalidTypeError), match=re.escape(words)):
        ratio.fit(*populations())


@pytest.mark.parametrize("ratio", [ULSIF(), LogisticRatio()], ids=["ulsif", "logistic"])
def test_columns_in_another_order_are_refused(ratio) -> None:
    rng = np.random.default_rng(0)
    source = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    target = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    with pytest.raises(ValueError, check=about("X_target", "['b', 'a']")):
        clone(ratio).fit(source, target[["b", "a"]])


def test_a_fitted_ratio_refuses_columns_in_another_order() -> None:
    rng = np.random.default_rng(1)
    source, target = (pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"]) for _ in range(2))
    fitted = ULSIF().fit(source, target)
    with pytest.raises(ValueError, check=about("X", "['b', 'a']")):
        fitted.predict(source[["b", "a"]])
