"""What ShiftCalibrator refuses, and when a hopeless shift is said to be one."""

import re

import numpy as np
import pytest

from calibrant import ShiftCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.ratios import ULSIF, LargeShiftWarning
from worlds.shifted import BOUND, data, target


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (
            lambda w: np.where(np.arange(len(w)) == 7, -1.0, w),
            "importance_weight must be finite, >= 0",
        ),
        (lambda w: np.where(np.arange(len(w)) == 7, np.nan, w), "got nan at row index 7"),
        (lambda w: np.where(np.arange(len(w)) == 7, np.inf, w), "got inf at row index 7"),
        (
            lambda w: np.where(np.arange(len(w)) == 7, 9.0, w),
            "importance_weight must be at most weight_bound=8; got 9.0 at row index 7",
        ),
        (lambda w: 0 * w, "importance_weight must not be zero in every row"),
        (lambda w: 1e-170 * w, "got none above 1e-100"),
        (lambda w: w[:-1], "importance_weight must have one entry per score, 4000"),
        (lambda w: w.astype(str), "importance_weight must be real numbers"),
    ],
)
def test_bad_weights_are_refused(weights, words):
    _, scores, y, w = data()
    with pytest.raises((InvalidValueError, InvalidTypeError), match=re.escape(words)):
        ShiftCalibrator(n_bins=4).fit(scores, y, importance_weight=weights(w), weight_bound=BOUND)


@pytest.mark.parametrize(
    ("parameters", "options", "words"),
    [
        ({}, {}, "importance_weight must be given; got None: set ratio=ULSIF()"),
        ({"ratio": ULSIF()}, {}, "X must be given to estimate importance weights"),
        (
            {"ratio": ULSIF()},
            {"X": np.ones((4000, 2))},
            "X_target must be given to estimate importance weights",
        ),
        (
            {"ratio": ULSIF()},
            {"X": np.ones((5, 2)), "X_target": np.ones((5, 2))},
            "X must have one row per score, 4,000; got 5",
        ),
        (
            {"ratio": ULSIF},
            {"X": np.ones((4000, 2)), "X_target": np.ones((5, 2))},
            "ratio must be a density ratio, such as ULSIF()",
        ),
        (
            {},
            {"importance_weight": np.ones(4000), "X_target": np.ones((5, 2))},
            "X_target must be None if importance_weight",
        ),
        (
            {"ratio": ULSIF()},
            {"importance_weight": np.ones(4000)},
            "ratio must be None where the weights are given: it estimates them; got ULSIF",
        ),
        (
            {"weight_bound": 0.0},
            {"importance_weight": np.ones(4000)},
            "weight_bound must be a number > 0",
        ),
        (
            {"weight_error": 1.0},
            {"importance_weight": np.ones(4000)},
            "weight_error must be a number in [0, 1)",
        ),
        (
            {"interval": "wilson"},
            {"importance_weight": np.ones(4000)},
            "interval must be one of 'betting'",
        ),
        ({"value": "median"}, {"importance_weight": np.ones(4000)}, "value must be one of 'mean'"),
    ],
)
def test_bad_arguments_are_refused(parameters, options, words):
    _, scores, y, _ = data()
    settings = {name: parameters[name] for name in ("interval", "value") if name in parameters}
    told = {name: value for name, value in parameters.items() if name not in settings}
    with pytest.raises((InvalidValueError, InvalidTypeError), match=re.escape(words)):
        ShiftCalibrator(n_bins=4, **settings).fit(scores, y, **told, **options)


@pytest.mark.broad
def test_estimated_weights_above_the_bound_are_refused_and_a_hopeless_shift_is_said_aloud():
    x, scores, y, _ = data()
    with pytest.raises(
        InvalidValueError,
        match="the estimated importance weight must be at most weight_bound=1; got",
    ):
        ShiftCalibrator(n_bins=4).fit(
            scores, y, X=x, X_target=target(), weight_bound=1.0, ratio=ULSIF()
        )
    with pytest.warns(LargeShiftWarning, match="too large to correct"):  # noqa: SIM117
        with pytest.raises(InvalidValueError, match="must not be zero in every row"):
            ShiftCalibrator().fit(
                scores, y, X=x, X_target=target() + 50.0, ratio=ULSIF(bandwidth=0.1)
            )
