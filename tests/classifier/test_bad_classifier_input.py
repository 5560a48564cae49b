"""Bad input of a CalibratedClassifier; and errors that are not about one argument."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVR

import calibrant
from calibrant import BinningCalibrator, CalibratedClassifier
from worlds.errors import about
from worlds.input_rows import (
    COUNTS,
    GROUPS,
    HALVES,
    NAMES,
    N,
    P,
    Refusals,
    S,
    X,
    Y,
    classify,
    fit,
    with_entry,
)

refuse = Refusals()

# CalibratedClassifier: errors about X are the inner model's or scikit-learn's own


for value in (0, 0.0, 1.0, -0.5, 2.0, N, N + 5, "x", None, True, np.nan):
    refuse(
        "calibration_size",
        f"calibration_size={value!r}",
        lambda value=value: classify(calibration_size=value),
    )
for value in (0, 1, -2, True):
    refuse("cv", f"cv={value!r}", lambda value=value: classify(cv=value))
for value in ("predict", "", None, 3):
    refuse(
        "response_method",
        f"response_method={value!r}",
        lambda value=value: classify(response_method=value),
    )
for value in (-1, 1.5, "x", True):
    refuse(
        "random_state",
        f"classifier random_state={value!r}",
        lambda value=value: classify(random_state=value),
    )
for value in ("x", 3, BinningCalibrator, IsotonicRegression(), LogisticRegression(), []):
    refuse("calibrator", f"calibrator={value!r}", lambda value=value: classify(calibrator=value))
for value in ("x", 3, LogisticRegression, []):
    refuse("estimator", f"estimator={value!r}", lambda value=value: classify(estimator=value))
refuse("estimator", "estimator without scores", lambda: classify(estimator=LinearSVR()))
refuse(
    "estimator",
    "estimator without the method",
    lambda: classify(estimator=LinearSVR(), response_method="predict_proba"),
)
refuse(
    "n_bins",
    "classifier: calibrator's parameter",
    lambda: classify(calibrator=BinningCalibrator(n_bins=0)),
)
refuse(
    "n_bins",
    "classifier: more bins than rows",
    lambda: classify(calibrator=BinningCalibrator(n_bins=N)),
)
refuse(
    "pos_label",
    "classifier: pos_label of the first class",
    lambda: classify(calibrator=BinningCalibrator(pos_label=0)),
)
refuse("y must", "classifier: one class", lambda: classify(y=np.ones(N)))
refuse(
    "cv",
    "classifier: cv of a frozen model",
    lambda: classify(estimator=FrozenEstimator(LogisticRegression().fit(X, Y)), cv=3),
)
refuse(
    "y must",
    "classifier: labels the frozen model does not know",
    lambda: classify(y=NAMES, estimator=FrozenEstimator(LogisticRegression().fit(X, Y))),
)
refuse("coverage", "classifier: coverage", lambda: classify().predict_set(X, coverage=1.5))
refuse(
    "segments",
    "classifier: segments at predict only",
    lambda: classify().predict_proba(X, segments=GROUPS),
)
refuse("X", "classifier: one-dimensional X at predict", lambda: classify().predict(X[0]))


@pytest.mark.parametrize("kind", refuse.kinds)
def test_refused(kind):
    assert refuse.faults(kind) == {}


@pytest.mark.parametrize(
    ("phrase", "call"),
    [
        pytest.param(
            "inconsistent numbers of samples", lambda: classify(y=Y[:-1]), id="lengths differ"
        ),
        pytest.param("NaN", lambda: classify(X=with_entry(X, 3, np.nan)), id="NaN"),
        pytest.param("y", lambda: classify(y=None), id="no labels"),
        pytest.param("binary", lambda: classify(y=np.arange(N) % 3), id="three classes"),
        pytest.param("continuous", lambda: classify(y=S), id="soft labels"),
        pytest.param("y", lambda: classify(y=with_entry(Y, 2, np.nan, float)), id="missing label"),
        pytest.param("features", lambda: classify().predict(X[:, :2]), id="fewer features"),
        pytest.param("cv", lambda: classify(cv="x"), id="cv"),
    ],
)
def test_classifier_passes_on_errors_of_scikit_learn(phrase, call):
    with pytest.raises((ValueError, TypeError), match=phrase):
        call()


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_interval", "predict_set"])
@pytest.mark.parametrize(
    "unfitted", [BinningCalibrator(), CalibratedClassifier(DummyClassifier())], ids=["scores", "X"]
)
def test_predict_before_fit(method, unfitted):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(unfitted, method)([[0.5]])


def test_tally_plus_something_else_is_a_type_error():
    for other in (1, None, "a", [COUNTS]):
        with pytest.raises(TypeError):
            COUNTS + other


def test_unknown_parameter_is_a_type_error():
    with pytest.raises(TypeError, match="n_bin"):
        BinningCalibrator(n_bin=3)
    with pytest.raises(TypeError, match="n_bin"):
        BinningCalibrator.from_tally(HALVES, COUNTS, n_bin=3)
    with pytest.raises(ValueError, match="n_bin"):
        BinningCalibrator().set_params(n_bin=3)


def test_the_message_points_at_the_row_and_counts_the_others():
    with pytest.raises(
        ValueError, check=about("scores", "nan at row index 7, and 3 such rows in all")
    ):
        fit(with_entry(S, [7, 20, 21], np.nan))
    with pytest.raises(
        ValueError, check=about("scores", "null at row index 7, and in no other row")
    ):
        fit(pa.array([*S[:7], None, *S[8:]]))
    with pytest.raises(ValueError, match=r"got a masked entry at row index 9, and in no other row"):
        fit(np.ma.masked_array(P, mask=np.arange(2 * N).reshape(N, 2) == 19))
    with pytest.raises(ValueError, check=about("scores and y", "1000 and 100")):
        fit(np.linspace(0, 1, 1000), np.arange(100) % 2)


@pytest.mark.broad
def test_python_without_asserts_runs_the_same_code():
    """So `python -O` refuses what Python refuses: no check of the package is an assert or asks for
    `__debug__`.
    """
    files = list(Path(calibrant.__file__).parent.rglob("*.py"))
    assert len(files) > 100
    for file in files:
        plain, optimized = (
            compile(file.read_text("utf-8"), file, "exec", optimize=level) for level in (0, 1)
        )
        assert plain == optimized, file
    asserting = [compile("assert 1 > 2", "a file", "exec", optimize=level) for level in (0, 1)]
    assert asserting[0] != asserting[1]  # and the comparison would tell
