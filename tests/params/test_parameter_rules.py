"""Every parameter of every estimator has a rule, in a table of its class.

Signatures show plain types.
"""

import inspect
import pydoc
from dataclasses import MISSING, dataclass, fields
from types import ModuleType
from typing import ClassVar, get_type_hints

import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import calibrant
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.estimator import Estimator
from calibrant.params.frames import FrameOutput
from calibrant.params.rules import CheckedParameters, Flag, Integer, RuleTable

CHECKED_WITH_THE_LABELS = {"classes", "pos_label"}
LONGEST_SIGNATURE = 500
MOST_PARAMETERS = 10
BASES = {calibrant.ScoreCalibrator, calibrant.ratios.DensityRatio}  # have no parameters
REQUIRED = {"estimator": LogisticRegression()}


def _public_estimators():
    """Those of `calibrant` and of its doors, and one that is saved and read, but not public."""
    names = [getattr(calibrant, name) for name in dir(calibrant)]
    doors = [value for value in names if isinstance(value, ModuleType)]
    exported = [getattr(door, name) for door in doors for name in getattr(door, "__all__", ())]
    classes = {value for value in [*names, *exported, HoldOutCalibrator] if inspect.isclass(value)}
    estimators = {kind for kind in classes if issubclass(kind, BaseEstimator | Estimator)}
    return sorted(estimators - BASES, key=lambda kind: kind.__name__)


ESTIMATORS = _public_estimators()
of_every_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda kind: kind.__name__
)


def _instance(estimator):
    names = [field.name for field in fields(estimator) if field.default is MISSING]
    return estimator(**{name: REQUIRED[name] for name in names})


def test_estimators_of_every_kind_are_found():
    names = {kind.__name__ for kind in ESTIMATORS}
    kinds = {
        "Calibrator",
        "CalibratedClassifier",
        "ClassWiseCalibrator",
        "ConformalSets",
        "ULSIF",
    }
    assert kinds | {"MonotoneBand", "OnlineCalibrator", "ShiftCalibrator"} <= names


@of_every_estimator
def test_every_parameter_has_a_rule(estimator):
    assert (
        set(estimator._parameter_rules())
        == set(estimator._get_param_names()) - CHECKED_WITH_THE_LABELS
    )


@of_every_estimator
def test_rules_are_in_the_order_of_the_parameters(estimator):
    parameters = [
        field.name for field in fields(estimator) if field.name not in CHECKED_WITH_THE_LABELS
    ]
    assert list(estimator._parameter_rules()) == parameters


@of_every_estimator
def test_every_rule_belongs_to_a_parameter_of_its_class(estimator):
    tables = [
        base
        for base in estimator.__mro__
        if "_rules" in vars(base) and base is not CheckedParameters
    ]
    for base in tables:
        assert set(base._rules) <= {field.name for field in fields(base)}, base


@of_every_estimator
def test_every_default_keeps_its_rule(estimator):
    _instance(estimator)._check_parameters()


@of_every_estimator
def test_every_rule_is_checked(estimator):
    for name, rule in estimator._parameter_rules().items():
        wrong = _instance(estimator)
        setattr(wrong, name, object())
        with pytest.raises((InvalidTypeError, InvalidValueError)) as caught:
            wrong._check_parameters()
        assert caught.value.parameter == name
        assert caught.value.rule == f"be {rule.words}"


@of_every_estimator
def test_a_signature_shows_plain_types(estimator):
    shown = str(inspect.signature(estimator))
    assert "object at 0x" not in shown
    assert "Annotated" not in shown
    assert len(shown) <= LONGEST_SIGNATURE


@of_every_estimator
def test_no_estimator_has_many_parameters(estimator):
    """What describes the data is told to `fit`. A classifier has its model, and the default its
    curve, too.
    """
    more = (calibrant.CalibratedClassifier, calibrant.Calibrator)
    most = MOST_PARAMETERS + (estimator in more)
    assert len(inspect.signature(estimator).parameters) <= most


@of_every_estimator
def test_help_shows_no_memory_address(estimator):
    assert "0x" not in pydoc.render_doc(estimator)


@of_every_estimator
def test_the_types_of_parameters_can_be_looked_up(estimator):
    kinds = get_type_hints(estimator)
    assert all(not isinstance(kinds[field.name], str) for field in fields(estimator))


def test_a_class_adds_rules_and_replaces_inherited_ones():
    @dataclass
    class Shared:  # parameters that are mixed in
        _rules: ClassVar[RuleTable] = {"smoothing": Flag(), "cv": Integer(1)}

        smoothing: bool = True

    @dataclass
    class First(CheckedParameters):
        _rules: ClassVar[RuleTable] = {"cv": Integer(2)}

        cv: int = 5
        n_jobs: int | None = None

    @dataclass
    class Second(First, Shared):
        _rules: ClassVar[RuleTable] = {"n_rows": Integer(7), "n_jobs": Integer(3)}

        n_rows: int = 9
        free: object = None

    words = {name: rule.words for name, rule in Second._parameter_rules().items()}
    assert words == {
        "smoothing": "True or False",
        "cv": "an int >= 2",
        "n_jobs": "an int >= 3",
        "n_rows": "an int >= 7",
    }
    assert list(words) == ["smoothing", "cv", "n_jobs", "n_rows"]
    assert First._parameter_rules()["n_jobs"] is CheckedParameters._rules["n_jobs"]


@of_every_estimator
def test_every_method_that_predicts_can_return_frames(estimator):
    """Each is marked by itself: `@predicts` or `@framed`."""
    if not issubclass(estimator, FrameOutput):
        return
    for base in estimator.__mro__:
        if base.__module__.startswith("calibrant"):
            methods = [method for name, method in vars(base).items() if name.startswith("predict")]
            plain = [one for one in methods if not getattr(one, "__isabstractmethod__", False)]
            assert all(hasattr(one, "__wrapped__") or hasattr(one, "fn") for one in plain), base
