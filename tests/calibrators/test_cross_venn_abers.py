"""Cross Venn-Abers through the classifier: each fold keeps its model and its calibrator."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

from calibrant import CalibratedClassifier, PlattCalibrator, VennAbersCalibrator, scored
from calibrant.calibrators import CrossVennAbersCalibrator, VennBinningCalibrator

X, Y = make_classification(n_samples=600, flip_y=0.2, random_state=0)
FOLDS = KFold(4, shuffle=True, random_state=1)


def by_hand(loss):
    """Vovk, Petej and Fedorova (2015), section 4, written out."""
    p0 = []
    p1 = []
    for training, rows in FOLDS.split(X):
        model = LogisticRegression().fit(X[training], Y[training])
        venn = VennAbersCalibrator().fit(model.predict_proba(X[rows])[:, 1], Y[rows])
        pair = venn.predict_multiprobability(model.predict_proba(X)[:, 1])
        p0.append(pair[:, 0])
        p1.append(pair[:, 1])
    p0 = np.array(p0)
    p1 = np.array(p1)
    if loss == "brier":
        return (p1 + p0**2 / 2 - p1**2 / 2).mean(axis=0)
    ones, zeros = (np.prod(p, axis=0) ** (1 / 4) for p in (p1, 1 - p0))
    return ones / (ones + zeros)


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_is_the_published_merging_over_folds(loss):
    model = CalibratedClassifier(
        LogisticRegression(), VennAbersCalibrator(loss=loss), cv=FOLDS
    ).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], by_hand(loss), rtol=1e-12)
    assert isinstance(model.calibrator_, CrossVennAbersCalibrator)
    assert len(model.estimator_) == len(model.calibrator_.calibrators_) == 4


@pytest.mark.parametrize("cv", [3, StratifiedKFold(3)])
def test_any_folds_any_labels_and_the_same_answer_twice(cv):
    labels = np.where(Y == 1, "yes", "no")
    make = CalibratedClassifier(LogisticRegression(), VennAbersCalibrator(), cv=cv, random_state=2)
    first, second = (clone(make).fit(X, labels) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert first.classes_.tolist() == ["no", "yes"]
    assert (first.predict(X) == labels).mean() > 0.7


def test_state_is_json():
    model = CalibratedClassifier(
        LogisticRegression(), VennAbersCalibrator(), cv=3, random_state=0
    ).fit(X, Y)
    saved = json.dumps(model.calibrator_.to_dict())
    restored = CrossVennAbersCalibrator.from_dict(json.loads(saved))
    columns = np.random.default_rng(0).uniform(size=(50, 3))
    np.testing.assert_array_equal(
        restored.predict_proba(columns), model.calibrator_.predict_proba(columns)
    )


def test_fit_takes_out_of_fold_scores():
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=300)
    y = np.where(rng.uniform(size=300) < scores, "a", "b")
    fold = np.array(["x", "y", "z"])[rng.integers(3, size=300)]
    crossed = CrossVennAbersCalibrator(pos_label="a").fit(scores, y, folds=fold)
    each = [
        VennAbersCalibrator(pos_label="a").fit(scores[fold == name], y[fold == name])
        for name in "xyz"
    ]
    columns = rng.uniform(size=(20, 3))
    merged = CrossVennAbersCalibrator.from_folds(each)
    np.testing.assert_array_equal(crossed.predict_proba(columns), merged.predict_proba(columns))
    with pytest.raises(ValueError, match="folds must have one entry per score, 300; got 299"):
        CrossVennAbersCalibrator(pos_label="a").fit(scores, y, folds=fold[1:])


def test_says_what_is_known_and_shows_no_pair():
    model = CalibratedClassifier(
        LogisticRegression(), VennAbersCalibrator(), cv=3, random_state=0
    ).fit(X, Y)
    assert model.guarantee_.epsilon is None
    assert "before merging" in model.guarantee_.known
    assert not hasattr(model, "predict_multiprobability")
    assert not hasattr(model, "predict_interval")


@pytest.mark.parametrize("calibrator", [VennAbersCalibrator(), VennBinningCalibrator(n_bins=4)])
def test_without_folds_the_pair_is_at_hand(calibrator):
    model = CalibratedClassifier(LogisticRegression(), calibrator, random_state=0).fit(X, Y)
    p0, p1 = model.predict_multiprobability(X).T
    assert (p0 < p1).all()


def test_other_calibrators_without_a_guarantee_may_be_cross_fitted():
    model = CalibratedClassifier(LogisticRegression(), PlattCalibrator(), cv=3, random_state=0).fit(
        X, Y
    )
    assert model.guarantee_.epsilon is None
    assert model.predict_proba(X).shape == (600, 2)


def test_wrong_number_of_columns_is_refused():
    model = CalibratedClassifier(
        LogisticRegression(), VennAbersCalibrator(), cv=3, random_state=0
    ).fit(X, Y)
    with pytest.raises(ValueError, match="scores must have one column per fold, 3; got shape"):
        model.calibrator_.predict([[0.5, 0.5]])
    with pytest.raises(ValueError, match="folds must be at least one"):
        CrossVennAbersCalibrator.from_folds([])


def test_a_column_of_groups_leaves_one_row_of_each_group_in_a_fold():
    scores = np.linspace(0, 1, 40)
    folds = np.arange(40) // 20
    groups = np.arange(40) // 2
    table = pd.DataFrame({"p": scores, "y": np.arange(40) % 3 == 0, "who": groups})
    found = CrossVennAbersCalibrator().fit(
        scored(table, score="p", label="y", group="who"), folds=folds
    )
    for fold, calibrator in enumerate(found.calibrators_):
        here = folds == fold
        alone = VennAbersCalibrator().fit(scores[here], table["y"][here], groups=groups[here])
        both = (
            calibrator.predict_multiprobability(scores[here]),
            alone.predict_multiprobability(scores[here]),
        )
        np.testing.assert_array_equal(*both)
        assert "drawn at random from each of 10 groups" in calibrator.guarantee_.details
