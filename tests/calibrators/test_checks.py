"""Every check of `calibrator_checks`, on every calibrator it fits."""

import numpy as np
import pytest
from sklearn.base import clone

from calibrator_checks import (
    ABILITIES,
    CALIBRATORS,
    CHECKS,
    INPUT_PATHS,
    LABEL_FORMS,
    NAMED_LABEL_FORMS,
    PROBABILITY_FORMS,
    SCORE_FORMS,
    answers,
    assert_same,
    fitted,
    make_data,
)

PAIRS = [
    pytest.param(check, calibrator, id=f"{check.name}-{name}")
    for check in CHECKS
    for name, calibrator in CALIBRATORS.items()
    if check.applies_to(calibrator)
]

each_calibrator = pytest.mark.parametrize("calibrator", INPUT_PATHS.values(), ids=INPUT_PATHS.keys())


def each_form(forms):
    return pytest.mark.parametrize("form", forms.values(), ids=forms.keys())


@pytest.mark.parametrize(("check", "calibrator"), PAIRS)
def test_check(check, calibrator):
    check.run(calibrator)


def test_every_check_is_run_and_every_ability_is_had():
    assert {id(pair.values[0]) for pair in PAIRS} == {id(check) for check in CHECKS}
    assert set(ABILITIES) == {need for check in CHECKS for need in check.needs}
    assert {type(calibrator) for calibrator in CALIBRATORS.values()} == {type(one) for one in INPUT_PATHS.values()}


@each_calibrator
@each_form(SCORE_FORMS)
def test_scores_in_any_container_are_taken_by_position(form, calibrator):
    scores, y = make_data()
    model = fitted(calibrator, form(scores), y)
    expected = fitted(calibrator, scores, y)
    assert_same(answers(model, form(scores)), answers(expected, scores))


@each_calibrator
@each_form(PROBABILITY_FORMS)
def test_probabilities_of_both_classes_in_any_container_name_the_positive_class(form, calibrator):
    scores, y = make_data()
    columns = form(np.column_stack([1 - scores, scores]))
    names = np.where(y == 1, "yes", "no")  # without pos_label: the second column speaks for the second class
    model = fitted(calibrator, columns, names)
    assert_same(answers(model, columns), answers(fitted(calibrator, scores, y), scores))


@each_calibrator
@each_form(LABEL_FORMS)
def test_labels_in_any_container_are_taken_by_position(form, calibrator):
    scores, y = make_data()
    model = fitted(calibrator, scores, form(y))
    assert_same(answers(model), answers(fitted(calibrator, scores, y)))


@each_calibrator
@each_form(NAMED_LABEL_FORMS)
def test_labels_of_any_two_kinds_are_taken_with_pos_label(form, calibrator):
    make, pos_label = form
    scores, y = make_data()
    model = fitted(clone(calibrator).set_params(pos_label=pos_label), scores, make(y))
    expected = fitted(calibrator, scores, y)
    np.testing.assert_array_equal(model.predict(scores), expected.predict(scores))
    labels = model.classes_.tolist()
    assert labels == sorted(labels)
    positive = labels.index(pos_label)
    np.testing.assert_array_equal(model.predict_proba(scores)[:, positive], expected.predict(scores))
