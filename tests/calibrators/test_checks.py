"""Every check of `calibrator_checks`, on every estimator it fits."""

import inspect
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import calibrant
from calibrant import PlattCalibrator
from calibrant.params.estimator import Estimator
from calibrant.ratios import DensityRatio
from calibrator_checks import (
    ABILITIES,
    CALIBRATORS,
    CHECKS,
    INPUT_PATHS,
    LABEL_FORMS,
    NAMED_LABEL_FORMS,
    OTHERS,
    PROBABILITY_FORMS,
    SCORE_FORMS,
    answers,
    assert_same,
    fitted,
    make_data,
)

LATER = {
    "curve",
    "beta-abm",
    "class-wise",
    "isotonic",
    "label-shift",
    "temperature",
    "top-label",
}
"""Calibrators much like another one, or slow to fit beside another of their class: their checks run
in `make test`.
"""

FIRST = {
    type(one): one
    for name, one in reversed([*CALIBRATORS.items(), *OTHERS.items()])
    if name not in LATER
}
"""The first calibrator of each other class, which has all checks in `make quick` too."""


READERS = ("default", "curve-isotonic", "online-centred-beta-binomial", "platt")
"""Those on which `make quick` tries the checks that give scores in other forms: one reader serves
all calibrators.
"""


def broad_unless(is_first):
    return () if is_first else pytest.mark.broad


def runs_first(check, name, calibrator):
    return calibrator is FIRST.get(type(calibrator)) and (
        "scores" not in check.needs or name in READERS
    )


PAIRS = [
    pytest.param(
        check,
        calibrator,
        id=f"{check.name}-{name}",
        marks=broad_unless(runs_first(check, name, calibrator)),
    )
    for check in CHECKS
    for name, calibrator in {**CALIBRATORS, **OTHERS}.items()
    if check.applies_to(calibrator)
]

each_calibrator = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=broad_unless(name == "default")) for name in INPUT_PATHS]
)


def with_each(forms, work):
    """Do the work with each form of the data; an error names the form it came with."""
    for name, form in forms.items():
        try:
            work(form)
        except Exception as error:
            error.add_note(f"form: {name}")
            raise


@pytest.mark.parametrize(("check", "calibrator"), PAIRS)
def test_check(check, calibrator):
    check.run(calibrator)


def test_every_check_is_run_and_every_ability_is_had():
    assert {id(pair.values[0]) for pair in PAIRS} == {id(check) for check in CHECKS}
    assert set(ABILITIES) == {need for check in CHECKS for need in check.needs}
    assert {type(calibrator) for calibrator in CALIBRATORS.values()} == {
        type(one) for one in INPUT_PATHS.values()
    }


def public_estimators() -> set[type]:
    """Every class with a `fit` that a public name of the package, or of a public module of it,
    leads to.
    """
    inside = [
        found.name for found in iter_modules(calibrant.__path__) if not found.name.startswith("_")
    ]
    modules = [calibrant, *(import_module(f"calibrant.{name}") for name in inside)]
    named = [
        getattr(module, name)
        for module in modules
        for name in getattr(module, "__all__", dir(module))
    ]
    classes = {
        one for one in named if inspect.isclass(one) and one.__module__.startswith("calibrant.")
    }
    return {
        one for one in classes if issubclass(one, BaseEstimator | Estimator) and hasattr(one, "fit")
    } - {DensityRatio}


def test_every_public_estimator_is_checked():
    found = public_estimators()
    assert len(found) > 15
    assert found == {type(one) for one in (*CALIBRATORS.values(), *OTHERS.values())}


def test_a_calibrator_outside_the_suite_is_found(monkeypatch):
    known = public_estimators()
    stray = type(
        "StrayCalibrator", (PlattCalibrator,), {"__module__": "calibrant.calibrators.stray"}
    )
    monkeypatch.setattr(calibrant.calibrators, "StrayCalibrator", stray, raising=False)
    monkeypatch.setattr(
        calibrant.calibrators, "__all__", [*calibrant.calibrators.__all__, "StrayCalibrator"]
    )
    assert public_estimators() - known == {stray}


@cache
def expected_answers(name, on_own_scores=False):
    """What a calibrator answers that was fitted to plain arrays."""
    return answers(fitted(CALIBRATORS[name]), make_data()[0] if on_own_scores else None)


@pytest.mark.broad
@each_calibrator
def test_scores_in_any_container_are_taken_by_position(name):
    scores, y = make_data()

    def check(form):
        model = fitted(INPUT_PATHS[name], form(scores), y)
        assert_same(answers(model, form(scores)), expected_answers(name, on_own_scores=True))

    with_each(SCORE_FORMS, check)


@pytest.mark.broad
@each_calibrator
def test_probabilities_of_both_classes_in_any_container_name_the_positive_class(name):
    scores, y = make_data()

    def check(form):
        columns = form(np.column_stack([1 - scores, scores]))
        labels = np.where(
            y == 1, "yes", "no"
        )  # without pos_label: the second column speaks for the second class
        model = fitted(INPUT_PATHS[name], columns, labels)
        assert_same(answers(model, columns), expected_answers(name, on_own_scores=True))

    with_each(PROBABILITY_FORMS, check)


@each_calibrator
def test_labels_in_any_container_are_taken_by_position(name):
    scores, y = make_data()
    with_each(
        LABEL_FORMS,
        lambda form: assert_same(
            answers(fitted(INPUT_PATHS[name], scores, form(y))), expected_answers(name)
        ),
    )


@pytest.mark.broad
@each_calibrator
def test_labels_of_any_two_kinds_are_taken_with_pos_label(name):
    scores, y = make_data()
    expected = expected_answers(name, on_own_scores=True)["predict"]

    def check(form):
        make, pos_label = form
        model = fitted(clone(INPUT_PATHS[name]).set_params(pos_label=pos_label), scores, make(y))
        np.testing.assert_array_equal(model.predict(scores), expected)
        labels = model.classes_.tolist()
        assert labels == sorted(labels)
        positive = labels.index(pos_label)
        np.testing.assert_array_equal(model.predict_proba(scores)[:, positive], expected)

    with_each(NAMED_LABEL_FORMS, check)
