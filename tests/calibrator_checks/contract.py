"""Checks of scikit-learn's contract, of what belongs to the caller, of forms of data, and of
threads.
"""

import copy
import json
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from calibrant.kernels import _numpy
from calibrator_checks.calibrators import ABILITIES, draws_rows
from calibrator_checks.data import (
    N_ROWS,
    answers,
    assert_fits_same,
    assert_same,
    data_for,
    expected,
    fit,
    fitted,
    make_data,
    predictions,
    probe,
    ready,
)
from calibrator_checks.registry import check

# scikit-learn's contract


@check()
def check_clone_has_equal_parameters_and_no_fitted_state(calibrator: Any) -> None:
    copied = clone(ready(calibrator))
    assert repr(copied.get_params()) == repr(calibrator.get_params())
    try:
        getattr(copied, predictions(copied)[0])(probe(copied))
    except NotFittedError:
        return
    raise AssertionError("a clone is not fitted")


@check()
def check_set_params_takes_what_get_params_gave(calibrator: Any) -> None:
    params = calibrator.get_params(deep=False)
    other = clone(calibrator).set_params(**params)
    for name, value in params.items():
        assert getattr(other, name) is value, name


@check()
def check_constructor_stores_parameters_as_given(calibrator: Any) -> None:
    params = calibrator.get_params(deep=False)
    made = type(calibrator)(**params)
    for name, value in params.items():
        assert getattr(made, name) is value, name


@check()
def check_fit_and_predict_leave_parameters_untouched(calibrator: Any) -> None:
    model = clone(calibrator)
    before = model.get_params(deep=False)
    shown = repr(before)
    answers(fit(model))
    assert all(getattr(model, name) is value for name, value in before.items())
    assert repr(model.get_params(deep=False)) == shown


@check()
def check_fit_returns_self(calibrator: Any) -> None:
    model = clone(calibrator)
    assert fit(model) is model


@check()
def check_everything_learned_ends_in_an_underscore_or_begins_with_one(calibrator: Any) -> None:
    learned = vars(ready(calibrator)).keys() - vars(clone(calibrator)).keys()
    assert learned
    assert all(name.endswith("_") or name.startswith("_") for name in learned)


@check()
def check_refit_equals_a_fresh_fit(calibrator: Any) -> None:
    model = fit(clone(calibrator), N_ROWS // 2, seed=5)
    assert_same(answers(fit(model)), expected(calibrator))


@check("labels")
def check_refused_refit_leaves_the_model_as_it_was(calibrator: Any) -> None:
    rows, y, options = data_for(calibrator)
    model = fitted(calibrator)
    before = answers(model)
    held = dict(vars(model))
    bad_rows = rows.copy()
    bad_rows[-1] = np.nan
    one_kind_more = y.copy()
    one_kind_more[-1] = y.max() + 1
    for bad in [(bad_rows, y), (rows, one_kind_more), (rows, y[:-1]), (rows[:0], y[:0]), (None, y)]:
        try:
            model.fit(*bad, **options)
        except (ValueError, TypeError):
            assert vars(model).keys() == held.keys()
            assert all(getattr(model, name) is value for name, value in held.items())
            assert_same(answers(model), before)
        else:
            raise AssertionError("bad data was taken")


@check()
def check_predict_before_fit_raises_not_fitted(calibrator: Any) -> None:
    model = clone(calibrator)
    methods = predictions(model)
    assert methods
    assert not ABILITIES["scores"](calibrator) or {"predict", "predict_proba"} <= set(methods)
    for name in methods:
        try:
            getattr(model, name)(probe(model))
        except NotFittedError:
            continue
        raise AssertionError(f"{name} answered before fit")


@check()
def check_pickle_round_trip_answers_the_same(calibrator: Any) -> None:
    model = ready(calibrator)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert_same(answers(pickle.loads(pickle.dumps(model, protocol))), answers(model))


@check("json")
def check_json_round_trip_answers_the_same(calibrator: Any) -> None:
    model = ready(calibrator)
    text = json.dumps(model.to_dict(), allow_nan=False)
    restored = type(calibrator).from_dict(json.loads(text))
    assert_same(answers(restored), answers(model))
    np.testing.assert_array_equal(restored.classes_, model.classes_)
    assert json.dumps(restored.to_dict(), allow_nan=False) == text


@check()
def check_deep_copy_answers_the_same_and_is_independent(calibrator: Any) -> None:
    model = ready(calibrator)
    before = answers(model)
    copied = copy.deepcopy(model)
    assert_same(answers(copied), before)
    fit(copied, seed=9)
    assert_same(answers(model), before)


@check()
def check_repr_shows_the_class_and_can_be_made(calibrator: Any) -> None:
    assert repr(ready(calibrator)).startswith(type(calibrator).__name__)


# Nothing of the caller's is touched


def arrays_in(options: dict[str, Any]) -> list[np.ndarray]:
    """The arguments of `fit` that are arrays; others are facts, such as a bound."""
    return [value for value in options.values() if isinstance(value, np.ndarray)]


@check()
def check_arrays_of_the_caller_are_unchanged(calibrator: Any) -> None:
    rows, y, options = data_for(calibrator)
    given = [rows, y, probe(calibrator), *arrays_in(options)]
    copies = [array.copy() for array in given]
    answers(clone(calibrator).fit(rows, y, **options), given[2])
    for array, before in zip(given, copies, strict=True):
        np.testing.assert_array_equal(array, before)
        assert array.flags.writeable


@check("scores")
def check_columns_and_weights_of_the_caller_are_unchanged(calibrator: Any) -> None:
    scores, y = make_data()
    given = [np.column_stack([1 - scores, scores]), np.ones(scores.size)]
    copies = [array.copy() for array in given]
    answers(fitted(calibrator, given[0], y), given[0])
    if ABILITIES["weights"](calibrator) and not draws_rows(calibrator):
        fitted(calibrator, scores, y, sample_weight=given[1])
    for array, before in zip(given, copies, strict=True):
        np.testing.assert_array_equal(array, before)
        assert array.flags.writeable


@check()
def check_later_changes_of_the_arrays_do_not_reach_the_model(calibrator: Any) -> None:
    rows, y, options = data_for(calibrator)
    model = clone(calibrator).fit(rows, y, **options)
    before = answers(model)
    for array in (rows, y, *arrays_in(options)):
        array[:] = 0
    assert_same(answers(model), before)


@check()
def check_changes_of_an_answer_do_not_reach_the_model(calibrator: Any) -> None:
    model = fitted(calibrator)
    before = answers(model)
    for array in answers(model).values():
        array[:] = 0
    assert_same(answers(model), before)


@check()
def check_global_random_state_is_unchanged(calibrator: Any) -> None:
    before = np.random.get_state()  # noqa: NPY002
    answers(fitted(calibrator))
    unseeded = clone(calibrator)
    if "random_state" in unseeded.get_params():
        unseeded.set_params(random_state=None)
    answers(fit(unseeded))
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]


@check()
def check_numpy_error_state_and_warning_filters_are_unchanged(calibrator: Any) -> None:
    errors = np.geterr()
    filters = list(warnings.filters)
    answers(fitted(calibrator))
    assert np.geterr() == errors
    assert warnings.filters == filters


@check()
def check_strict_numpy_error_state_changes_nothing(calibrator: Any) -> None:
    with np.errstate(all="raise"):
        assert_same(answers(fitted(calibrator)), expected(calibrator))


# The same data in another form is the same data


@check("scores")
def check_float32_scores_are_compared_in_float64(calibrator: Any) -> None:
    scores, y = make_data()
    single = scores.astype(np.float32)
    assert_fits_same(calibrator, (single.astype(np.float64), y), (single, y))
    model = ready(calibrator)
    assert_same(answers(model, single), answers(model, single.astype(np.float64)))


@check("scores")
def check_float16_scores_equal_their_float64_values(calibrator: Any) -> None:
    scores, y = make_data()
    half = scores.astype(np.float16)
    assert_fits_same(calibrator, (half.astype(np.float64), y), (half, y))


@check("scores")
def check_whole_number_and_bool_scores_equal_their_float64_values(calibrator: Any) -> None:
    scores, y = make_data()
    two_point = scores > 0.5
    forms = [two_point.astype(kind) for kind in (np.float64, np.int64, np.int8, np.uint64, bool)]
    forms += [
        pd.Series(two_point, dtype="boolean"),
        pd.Series(forms[1], dtype="Int64"),
        two_point.tolist(),
    ]
    assert_fits_same(calibrator, *((form, y) for form in forms))


@check("scores")
def check_probability_columns_equal_the_positive_column(calibrator: Any) -> None:
    scores, y = make_data()
    columns = np.column_stack([1 - scores, scores])
    assert_fits_same(calibrator, (scores, y), (scores[:, None], y), (columns, y))
    model = ready(calibrator)
    assert_same(answers(model, scores), answers(model, columns))
    assert_same(answers(model, scores), answers(model, scores[:, None]))


@check("scores", "ignores order")
def check_order_of_calibration_rows_does_not_matter(calibrator: Any) -> None:
    scores, y = make_data()
    order = np.random.default_rng(3).permutation(scores.size)
    assert_fits_same(calibrator, (scores, y), (scores[order], y[order]), (scores[::-1], y[::-1]))


@check("labels")  # ratios sum over kernels, whose last bit may depend on how many rows come along
def check_each_answer_depends_on_its_own_score_alone(calibrator: Any) -> None:
    model = ready(calibrator)
    scores = probe(model)
    together = answers(model, scores)
    order = np.random.default_rng(4).permutation(len(scores))
    assert_same(
        answers(model, scores[order]), {name: array[order] for name, array in together.items()}
    )
    for row in range(0, len(scores), 40):
        assert_same(
            answers(model, scores[row : row + 1]),
            {k: a[row : row + 1] for k, a in together.items()},
        )


@check("scores")
def check_minus_zero_is_zero(calibrator: Any) -> None:
    scores, y = make_data()
    scores[:60] = 0.0
    mixed = scores.copy()
    mixed[:60:2] = -0.0
    assert_fits_same(calibrator, (scores, y), (mixed, y))
    model = fitted(calibrator, scores, y)
    assert_same(answers(model, [-0.0]), answers(model, [0.0]))


# Determinism and threads


@check()
def check_same_data_and_random_state_give_the_same_answers(calibrator: Any) -> None:
    assert_same(answers(fitted(calibrator)), expected(calibrator))


@check("draws rows")
def check_every_kind_of_random_state_repeats_itself(calibrator: Any) -> None:
    for make in (lambda: 7, lambda: np.random.default_rng(7), lambda: np.random.RandomState(7)):
        models = [fit(clone(calibrator).set_params(random_state=make())) for _ in range(2)]
        assert_same(answers(models[0]), answers(models[1], probe(models[0])))


@check("scores", "draws rows")
def check_another_random_state_draws_other_rows(calibrator: Any) -> None:
    models = [fit(clone(calibrator).set_params(random_state=seed)) for seed in range(5)]
    answers = {model.predict(probe(models[0])).tobytes() for model in models}
    limits = {repr(model.guarantee_.to_dict()) for model in models}  # a correction may be none
    assert len(answers) > 1 or len(limits) > 1


@check("n_jobs")
def check_number_of_threads_never_changes_an_answer(calibrator: Any) -> None:
    with mock.patch.object(_numpy, "THREAD_ROWS", 50):
        for n_jobs in (2, 3, 7, -1):
            assert_same(
                answers(fitted(clone(calibrator).set_params(n_jobs=n_jobs))), expected(calibrator)
            )


@check()
def check_many_threads_may_predict_at_once(calibrator: Any) -> None:
    model = ready(calibrator)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: answers(model), range(16)):
            assert_same(found, expected(calibrator))
