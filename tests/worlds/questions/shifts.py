"""Calibrators under shift."""

from typing import Any

import numpy as np
import pyarrow as pa

from calibrant import Partition, ShiftCalibrator, Tally, scored
from calibrant.limits.interval import Interval
from calibrant.limits.shift.shift_methods import tolerated_error, widened
from calibrant.ratios import LogisticRatio
from calibrant.shift import SHIFT_METHODS, LabelShiftCalibrator
from calibrant.shift.prior import Prior, mixture_prior, moved_odds, odds_ratio
from worlds.questions.base import (
    FEW,
    GRID,
    QUESTIONS,
    SMOOTH,
    TIED,
    World,
    of_calibrator,
    question,
    refused,
    tried,
)
from worlds.questions.ratios import LATER, SOURCE, TARGET

for _method in SHIFT_METHODS:
    for _name, _world in {"smooth": SMOOTH, "tied": TIED, "few": FEW}.items():

        def of_shift(world: World = _world, method: str = _method) -> Any:
            calibrator = ShiftCalibrator(n_bins=3, interval=method)
            return of_calibrator(
                calibrator.fit(world.scores, world.y, importance_weight=world.weights / 3.0)
            )

        QUESTIONS[f"shift {_method} {_name}"] = of_shift

    def of_known_bound(method: str = _method) -> Any:
        calibrator = ShiftCalibrator(n_bins=3, interval=method)
        fitted = calibrator.fit(
            SMOOTH.scores,
            SMOOTH.y,
            importance_weight=SMOOTH.weights / 3.0,
            weight_bound=1.2,
        )
        return [of_calibrator(fitted), fitted.guarantee_, fitted.guarantee_for(0.2).epsilon]

    def of_tally(method: str = _method) -> Any:
        bins = (
            ShiftCalibrator(n_bins=3)
            .fit(SMOOTH.scores, SMOOTH.y, importance_weight=SMOOTH.weights)
            .partition_
        )
        tally = Tally.from_data(bins, LATER.scores, LATER.y, importance_weight=LATER.weights)
        fitted = ShiftCalibrator.from_tally(bins, tally + tally, interval=method, weight_bound=3.5)
        tolerated = [fitted.tolerated_weight_error(rate) for rate in (0.1, 0.3, 0.9)]
        return [of_calibrator(fitted), fitted.guarantee_, tolerated]

    QUESTIONS[f"shift {_method} with a bound"] = of_known_bound
    QUESTIONS[f"shift {_method} of a tally"] = of_tally

for _value in ("mean", "midpoint"):

    def of_value(value: str = _value) -> Any:
        calibrator = ShiftCalibrator(n_bins=3, value=value)
        fitted = calibrator.fit(
            SMOOTH.scores,
            SMOOTH.y,
            importance_weight=SMOOTH.weights / 3.0,
            weight_error=0.1,
        )
        return [of_calibrator(fitted), fitted.guarantee_]

    QUESTIONS[f"shift value {_value}"] = of_value


@question
def shift_with_estimated_weights() -> Any:
    ratio = LogisticRatio()
    found = []
    for beside in ({}, {"X_source": SOURCE[300:]}):
        fitted = ShiftCalibrator(n_bins=2).fit(
            SMOOTH.scores[:600], SMOOTH.y[:600], X=SOURCE, X_target=TARGET, **beside, ratio=ratio
        )
        found += [of_calibrator(fitted), fitted.guarantee_]
    return found


@question
def shift_with_segments_and_groups() -> Any:
    given = {
        "importance_weight": SMOOTH.weights,
        "segments": SMOOTH.segments,
        "groups": SMOOTH.groups,
    }
    fitted = ShiftCalibrator(n_bins=2).fit(SMOOTH.scores, SMOOTH.y, **given)
    return [of_calibrator(fitted, segments=np.repeat(["north", "south"], 5)), fitted.guarantee_]


@question
def shift_with_groups_that_count_equally() -> Any:
    world = {"importance_weight": SMOOTH.weights, "groups": SMOOTH.groups}
    found = []
    for told in (
        {"group_target": "groups"},
        {"group_target": "groups", "weight_bound": 3.5},
        {"max_group_size": 6, "weight_bound": 3.5, "weight_error": 0.1},
    ):
        for value in ("mean", "midpoint"):
            calibrator = ShiftCalibrator(n_bins=2, value=value)
            fitted = calibrator.fit(SMOOTH.scores, SMOOTH.y, **world, **told)
            found += [of_calibrator(fitted), fitted.guarantee_, fitted.guarantee_for(0.2).epsilon]
    for told in ({"group_target": "rows"}, {"max_group_size": 6}, {"group_target": "people"}):
        calibrator = ShiftCalibrator(n_bins=2, interval="empirical-bernstein")
        found.append(refused(calibrator.fit, SMOOTH.scores, SMOOTH.y, **world, **told))
    return found


@question
def label_shift() -> Any:
    calibrator = LabelShiftCalibrator(n_bins=4).fit(
        SMOOTH.scores, SMOOTH.y, target_scores=SMOOTH.new**0.5
    )
    return [calibrator.predict(GRID), calibrator.guarantee_]


@question
def label_shift_with_known_priors() -> Any:
    found = []
    for given in (
        {"target_prior": 0.4},
        {"target_prior": (0.3, 0.5)},
        {"target_prior": 0.4, "source_prior": 0.35},
        {"target_prior": (0.1, 0.2), "source_prior": 0.3},
        {"sampling_rates": (0.5, 0.9)},
    ):
        fitted = LabelShiftCalibrator(n_bins=3).fit(SMOOTH.scores, SMOOTH.y, **given)
        found += [fitted.predict(GRID), fitted.guarantee_]
    return found


@question
def label_shift_of_many_kinds() -> Any:
    found = []
    for power in (0.3, 1.0, 3.0):
        for world in (SMOOTH, TIED, FEW):
            calibrator = LabelShiftCalibrator(n_bins=2, confidence_level=0.8)
            try_scores = np.round(LATER.scores**power, 1) if world is TIED else LATER.scores**power
            found.append(refused(calibrator.fit, world.scores, world.y, target_scores=try_scores))
            found.append(getattr(calibrator, "guarantee_", None))
    return found


@question
def priors_of_mixtures() -> Any:
    found = []
    for share in (0.1, 0.5, 0.8):
        positive = SMOOTH.y == 1
        n_positive = int(share * 500)
        target = np.concatenate(
            [SMOOTH.scores[positive][:n_positive], SMOOTH.scores[~positive][: 500 - n_positive]]
        )
        for alpha in (0.05, 0.3):
            found += [mixture_prior(LATER.scores, LATER.y, target, alpha)]
    known = [Prior.known(value) for value in (0.2, (0.1, 0.4))]
    labels = [Prior.from_labels(world.y, 0.1) for world in (SMOOTH, FEW)]
    odds = [
        odds_ratio(0.2, 0.5),
        odds_ratio(0.7, 0.1),
        moved_odds(np.array([0.0, 0.1, 0.5, 1.0]), 2.5),
    ]
    return [found, known, labels, odds]


@question
def widened_limits() -> Any:
    interval = Interval(np.array([0.0, 0.2, 0.5, 0.3]), np.array([0.3, 0.4, 1.0, 0.3]))
    wider = [widened(interval, error) for error in (0.0, 0.1, 0.9)]
    return [wider, [tolerated_error(interval, rate) for rate in (0.05, 0.3, 0.35, 0.45, 0.99)]]


def _refit(**parameters: Any) -> Any:
    return ShiftCalibrator(n_bins=2, **parameters)


@question
def refusals_of_shift() -> Any:
    scores = SMOOTH.scores
    y = SMOOTH.y
    weights = SMOOTH.weights
    bins = _refit().fit(scores, y, importance_weight=weights).partition_
    tally = Tally.from_data(bins, scores, y, importance_weight=weights)
    plain = Tally.from_data(bins, scores, y)
    given = {"importance_weight": weights}
    return [
        refused(lambda: _refit().fit(scores, y)),
        refused(lambda: _refit().fit(scores, y, X=SOURCE, X_target=TARGET)),
        refused(lambda: _refit().fit(scores, y, **given, X_target=TARGET)),
        refused(lambda: _refit().fit(scores, y, **given, weight_bound=2.9)),
        refused(lambda: _refit().fit(scores, y, **given, weight_bound=3.0)),
        refused(lambda: _refit().fit(scores, y, **given, weight_error=1.0)),
        refused(lambda: ShiftCalibrator.from_tally(bins, plain)),
        refused(lambda: ShiftCalibrator.from_tally(bins, tally, interval="betting")),
        refused(lambda: ShiftCalibrator.from_tally(bins, tally, weight_bound=2.9)),
        refused(lambda: ShiftCalibrator.from_tally(bins, tally, weight_bound=3.0)),
        refused(lambda: _refit().fit(scores, y, importance_weight=-weights)),
        refused(lambda: _refit().fit(scores, y, importance_weight=weights * 0.0)),
        refused(lambda: _refit().fit(scores, y, importance_weight=weights[:-1])),
        refused(lambda: LabelShiftCalibrator().fit(scores, y)),
        refused(
            lambda: LabelShiftCalibrator().fit(scores, y, target_scores=scores, target_prior=0.4)
        ),
        refused(lambda: LabelShiftCalibrator().fit(scores, y, target_prior=0.0)),
        refused(lambda: LabelShiftCalibrator().fit(scores, y, target_prior=1.0)),
        refused(lambda: LabelShiftCalibrator().fit(scores, y, target_prior=(0.4, 0.3))),
        refused(lambda: LabelShiftCalibrator().fit(scores, y, target_prior=(0.3, 0.3))),
        refused(
            lambda: LabelShiftCalibrator().fit(scores, y, target_scores=scores, source_prior=0.3)
        ),
    ]


@question
def shift_of_tables() -> Any:
    data = pa.table({"s": SMOOTH.scores, "y": SMOOTH.y, "w": SMOOTH.weights, "who": SMOOTH.groups})
    rows = scored(data, score="s", label="y", weight="w")
    grouped = scored(data, score="s", label="y", weight="w", group="who")
    found = []
    for method in SHIFT_METHODS:
        for bound in (None, 3.0, 2.9):
            calibrator = ShiftCalibrator(n_bins=2, interval=method)
            found += [tried(calibrator.fit, rows, weight_bound=bound)]
            if hasattr(calibrator, "guarantee_"):
                found += of_calibrator(calibrator)
    found += of_calibrator(ShiftCalibrator(n_bins=2).fit(grouped))
    unweighted = scored(data, score="s", label="y")
    return [found, refused(ShiftCalibrator().fit, unweighted)]


@question
def shift_of_very_many_rows() -> Any:
    bins = Partition.fixed_width(2)
    tally = Tally.from_data(bins, LATER.scores, LATER.y, importance_weight=LATER.weights / 3.0)
    uneven = Partition.from_edges([0.02])
    few = Tally.from_data(uneven, LATER.scores, LATER.y, importance_weight=LATER.weights / 3.0)
    for _ in range(18):
        tally = tally + tally
        few = few + few
    found = []
    for method in SHIFT_METHODS:
        for cells, counts in ((bins, tally), (uneven, few)):
            given = {"interval": method, "weight_bound": 1.0}
            fitted = tried(ShiftCalibrator.from_tally, cells, counts, **given)
            found += [fitted.guarantee_ if hasattr(fitted, "guarantee_") else fitted]
    return found
