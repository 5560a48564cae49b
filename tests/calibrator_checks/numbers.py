"""Checks of labels, probabilities, intervals, weights and regions."""

from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from calibrant import Partition, Tally
from calibrant.errors import CalibrantWarning
from calibrant.sample.reader import read_rows
from calibrator_checks.calibrators import draws_rows, looks_first
from calibrator_checks.data import (
    LIMIT_ACCURACY,
    N_ROWS,
    answers,
    assert_same,
    data_for,
    expected,
    fitted,
    make_data,
    probe,
    rate_interval,
    ready,
)
from calibrator_checks.registry import check
from worlds.one_draw import one_draw

# Labels


@check("scores", "pos_label")
def check_other_class_as_positive_mirrors_the_columns(calibrator: Any) -> None:
    scores, y = make_data()
    plain = fitted(calibrator, scores, y)
    mirrored = fitted(clone(calibrator).set_params(pos_label=0), scores, 1 - y)
    np.testing.assert_array_equal(plain.classes_, mirrored.classes_)
    left = answers(plain)
    right = answers(mirrored, probe(plain))
    np.testing.assert_array_equal(left["predict"], right["predict"])
    for name in left.keys() & {"predict_proba", "predict_set"}:
        np.testing.assert_array_equal(left[name], right[name][:, ::-1])
    if "predict_interval" in left:
        np.testing.assert_array_equal(left["predict_interval"], right["predict_interval"])


@check("scores", "pos_label")
def check_of_two_columns_the_positive_label_picks_its_own(calibrator: Any) -> None:
    scores, y = make_data()
    expected = fitted(calibrator, scores, y)
    names = np.where(
        y == 1, "bad", "good"
    )  # "bad" sorts first, so its probabilities stand in the first column
    model = fitted(
        clone(calibrator).set_params(pos_label="bad"), np.column_stack([scores, 1 - scores]), names
    )
    points = make_data(seed=6)[0]
    np.testing.assert_array_equal(
        model.predict(np.column_stack([points, 1 - points])), expected.predict(points)
    )


@check("scores", "classes")
def check_classes_in_any_order_are_sorted(calibrator: Any) -> None:
    for classes in [(0, 1), (1, 0), [1, 0], np.array([0, 1])]:
        rows, y, options = data_for(calibrator)
        model = clone(calibrator).fit(rows, y, classes=classes, **options)
        np.testing.assert_array_equal(model.classes_, [0, 1])
        assert_same(answers(model), expected(calibrator))


# Numbers


@check("scores")
def check_probabilities_have_one_row_per_score_and_add_up_to_one(calibrator: Any) -> None:
    model = ready(calibrator)
    scores = probe(model)
    values = model.predict(scores)
    columns = model.predict_proba(scores)
    assert values.shape == scores.shape
    assert columns.shape == (scores.size, 2)
    assert values.dtype == columns.dtype == np.float64
    assert ((columns >= 0) & (columns <= 1)).all()
    np.testing.assert_array_equal(columns.sum(axis=1), np.ones(scores.size))
    np.testing.assert_array_equal(columns[:, list(model.classes_).index(1)], values)


@check("scores")
def check_empty_batch_gives_an_empty_answer(calibrator: Any) -> None:
    model = ready(calibrator)
    for empty in (
        [],
        np.empty(0),
        np.empty((0, 1)),
        np.empty((0, 2)),
        pd.Series([], dtype=float),
        pl.Series([]),
    ):
        assert {name: array.shape for name, array in answers(model, empty).items()} == {
            name: (0,) if name == "predict" else (0, 2) for name in answers(model)
        }


@check("scores", "interval")
def check_intervals_lie_in_the_unit_interval_and_hold_the_value(calibrator: Any) -> None:
    model = ready(calibrator)
    lower, upper = model.predict_interval(probe(model)).T
    value = model.predict(probe(model))
    assert (lower >= 0.0).all()
    assert (upper <= 1.0).all()
    assert (lower <= value).all()
    assert (value <= upper).all()
    assert (lower < upper).all()


@check("interval", "confidence_level")
def check_higher_confidence_contains_lower(calibrator: Any) -> None:
    levels = [0.01, 0.5, 0.8, 0.9, 0.99, 0.999999, 1 - 1e-12]
    models = [fitted(clone(calibrator).set_params(confidence_level=level)) for level in levels]
    limits = np.array([model.predict_interval(probe(models[0])) for model in models])
    assert (np.diff(limits[..., 0], axis=0) <= 0).all()
    assert (np.diff(limits[..., 1], axis=0) >= 0).all()


@check("scores", "interval", "mirrors")
def check_flipped_labels_mirror_values_and_intervals(calibrator: Any) -> None:
    scores, y = make_data()
    model = fitted(calibrator, scores, y)
    flipped = fitted(calibrator, scores, 1 - y)
    points = probe(model)
    np.testing.assert_allclose(
        flipped.predict(points), 1 - model.predict(points), rtol=0, atol=LIMIT_ACCURACY
    )
    mirrored = 1 - model.predict_interval(points)[:, ::-1]
    np.testing.assert_allclose(
        flipped.predict_interval(points), mirrored, rtol=0, atol=LIMIT_ACCURACY
    )


@check("scores", "interval", "classes", "one class")
def check_one_class_gives_one_sided_intervals(calibrator: Any) -> None:
    scores, y = make_data()
    model = clone(calibrator)
    all_positive = rate_interval(model.fit(scores, np.ones_like(y), classes=(0, 1)), scores)
    assert (all_positive[:, 1] == 1.0).all()
    assert all_positive[:, 0].max() > 0.0
    all_negative = rate_interval(model.fit(scores, np.zeros_like(y), classes=(0, 1)), scores)
    assert (all_negative[:, 0] == 0.0).all()
    assert all_negative[:, 1].min() < 1.0


@check("scores", "set")
def check_sets_are_never_empty_and_grow_with_coverage(calibrator: Any) -> None:
    scores, y = make_data()
    sure = np.concatenate([np.zeros(2000), np.ones(2000)])
    model = fitted(
        calibrator, np.concatenate([scores, sure]), np.concatenate([y, sure.astype(int)])
    )
    points = np.concatenate([scores, [0.0, 1.0]])
    sets = [model.predict_set(points, coverage=coverage) for coverage in (0.5, 0.9, 0.99)]
    assert all(found.shape == (points.size, 2) and found.dtype == np.bool_ for found in sets)
    assert all(found.any(axis=1).all() for found in sets)
    assert all((larger >= smaller).all() for smaller, larger in pairwise(sets))


@check("scores", "interval", "set")
def check_sets_follow_from_the_intervals(calibrator: Any) -> None:
    scores, y = make_data()
    sure = np.concatenate([np.zeros(2000), np.ones(2000)])
    model = fitted(
        calibrator, np.concatenate([scores, sure]), np.concatenate([y, sure.astype(int)])
    )
    points = probe(model)
    lower, upper = rate_interval(model, points).T
    sets = model.predict_set(points, coverage=0.75)  # 0.75 and 0.25 are doubles
    np.testing.assert_array_equal(sets[:, 0], ~(lower >= 0.75))
    np.testing.assert_array_equal(sets[:, 1], ~(upper <= 0.25))


def each_once(calibrator: Any, rows: int) -> dict[str, Any]:
    """Weights of 1, where rows without weights would be drawn."""
    return {"sample_weight": np.ones(rows)} if draws_rows(calibrator) else {}


@check("scores", "weighs rows", "weights")
def check_doubled_data_equals_weight_two(calibrator: Any) -> None:
    scores, y = make_data()
    once = each_once(calibrator, 2 * scores.size)
    doubled = fitted(calibrator, np.concatenate([scores, scores]), np.concatenate([y, y]), **once)
    weighted = fitted(calibrator, scores, y, sample_weight=np.full(scores.size, 2))
    assert_same(answers(doubled), answers(weighted, probe(doubled)))


@check("scores", "weighs rows", "weights")
def check_weights_equal_repeated_rows_and_zero_equals_removal(calibrator: Any) -> None:
    scores, y = make_data()
    weights = np.random.default_rng(8).integers(0, 4, size=scores.size)
    once = each_once(calibrator, int(weights.sum()))
    repeated = fitted(calibrator, np.repeat(scores, weights), np.repeat(y, weights), **once)
    for form in (
        weights,
        weights.astype(float),
        weights.tolist(),
        pd.Series(weights, index=-weights),
        weights[:, None],
    ):
        weighted = fitted(calibrator, scores, y, sample_weight=form)
        assert_same(answers(repeated), answers(weighted, probe(repeated)))


@check("scores", "draws weighted rows", "weights")
def check_weights_are_refused_where_rows_are_drawn(calibrator: Any) -> None:
    scores, y = make_data()
    try:
        fitted(calibrator, scores, y, sample_weight=np.full(scores.size, 2))
    except ValueError as error:
        assert "sample_weight" in str(error)  # noqa: PT017 - the else clause stands for pytest.raises
    else:
        raise AssertionError("which copies of a row would cut, and which count, was guessed")


@check("scores", "ranks only")
def check_monotone_rescale_of_scores_changes_nothing(calibrator: Any) -> None:
    scores, y = make_data()
    with one_draw():  # which rows are drawn depends on the scores, and nothing else does
        model = fitted(calibrator, scores, y)
    # exact in doubles, so that ties stay ties; far outside [0, 1], like logits
    for rescale in (lambda s: 1024 * s, lambda s: s * 2.0**-40, lambda s: 2.0**900 * s):
        with one_draw():
            rescaled = fitted(calibrator, rescale(scores), y)
        points = probe(model)
        assert_same(answers(model, points), answers(rescaled, rescale(points)))


@check("scores", "ranks only")
def check_scores_beyond_those_seen_get_the_end_bins(calibrator: Any) -> None:
    model = ready(calibrator)
    low = make_data()[0].min()
    high = make_data()[0].max()
    largest = np.finfo(np.float64).max
    warns = (
        nullcontext()
        if model.score_range_seen_ is None
        else pytest.warns(CalibrantWarning, match="on the same scale")
    )
    with warns:
        assert_same(answers(model, [-largest, -5.0]), answers(model, [low, low]))
        assert_same(answers(model, [5.0, largest]), answers(model, [high, high]))


# Regions and what was seen in them


@check("scores", "tally")
def check_fit_and_predict_agree_on_the_side_of_every_edge(calibrator: Any) -> None:
    scores, y = make_data(6000)  # enough for the look-up tables of the kernels
    scores = np.round(scores, 2)  # many scores lie on edges
    model = fitted(calibrator, scores, y)
    if draws_rows(calibrator):
        model = type(calibrator).from_tally(
            model.partition_,
            Tally.from_data(model.partition_, scores, y),
            interval=calibrator.interval,
        )
    regions = model.partition_.assign(scores)
    partition = model.partition_
    single = partition.edges[~partition.is_atom] if partition.cuts_own_sample else []
    counted = ~np.isin(scores, single)
    counts = np.bincount(regions[counted], minlength=partition.n_regions)
    positives = np.bincount(regions[counted], weights=y[counted], minlength=partition.n_regions)
    np.testing.assert_array_equal(model.tally_.counts, counts)
    np.testing.assert_array_equal(model.tally_.positives, positives)
    assert model.tally_.uncounted == np.count_nonzero(~counted)


@check("scores", "tally")
def check_prediction_is_the_value_of_the_assigned_region(calibrator: Any) -> None:
    model = ready(calibrator)
    points = probe(model)
    regions = model.partition_.assign(points)
    guarantee = model.guarantee_
    np.testing.assert_array_equal(model.predict(points), guarantee.value[regions])
    np.testing.assert_array_equal(
        model.predict_interval(points), np.column_stack([guarantee.lower, guarantee.upper])[regions]
    )


@check("scores", "tally")
def check_from_tally_equals_fit(calibrator: Any) -> None:
    model = ready(calibrator)
    names = ("interval", "value", "confidence_level")
    params = {name: getattr(calibrator, name) for name in names}
    assert_same(
        answers(type(calibrator).from_tally(model.partition_, model.tally_, **params)),
        answers(model),
    )


@check("scores", "tally")
def check_merged_tallies_equal_one_fit(calibrator: Any) -> None:
    scores, y = make_data()
    partition = ready(calibrator).partition_
    whole = Tally.from_data(partition, scores, y)
    parts = [
        Tally.from_data(partition, scores[rows], y[rows])
        for rows in (slice(0, 7), slice(7, 200), slice(200, None))
    ]
    assert parts[2] + parts[0] + parts[1] == whole
    assert sum(parts) == whole


@check("scores", "tally")
def check_region_without_rows_predicts_one_half_and_guarantees_nothing(calibrator: Any) -> None:
    partition = Partition.fixed_width(3)
    tally = Tally.from_counts([50, 0, 50], [5, 0, 45], partition=partition)
    names = ("interval", "value", "confidence_level")
    model = type(calibrator).from_tally(
        partition, tally, **{name: getattr(calibrator, name) for name in names}
    )
    np.testing.assert_array_equal(model.predict([0.5]), [0.5])
    np.testing.assert_array_equal(model.predict_interval([0.5]), [[0.0, 1.0]])
    np.testing.assert_array_equal(model.predict_set([0.5]), [[True, True]])
    assert model.guarantee_.epsilon == 0.5


@check("scores", "tally")
def check_every_row_is_counted_once(calibrator: Any) -> None:
    model = ready(calibrator)
    n_cut = 0
    if looks_first(calibrator):
        n_cut = model.guarantee_.statement.looked + model.guarantee_.statement.cutting
        assert (n_cut > 0) == draws_rows(calibrator)
    elif draws_rows(calibrator):
        n_cut = calibrator.pilot
        if isinstance(n_cut, float):  # which keeps each row with that probability
            rows = read_rows(*make_data()).collect()
            n_cut = int(rows.chosen(rows.draw(n_cut, calibrator.random_state)).sum())
    assert model.tally_.n_rows == N_ROWS - n_cut
