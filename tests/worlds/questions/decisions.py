"""Decisions, conformal sets, comparisons, bands and plans."""

from typing import Any

import numpy as np
import pyarrow as pa

import calibrant
from calibrant import (
    BinningCalibrator,
    Calibrator,
    SequentialModelComparison,
    scored,
)
from calibrant.intervals import METHODS, MonotoneBand
from calibrant.tripod import ConformalSets
from worlds.questions.base import (
    FEW,
    GRID,
    QUESTIONS,
    SKEWED,
    SMOOTH,
    TIED,
    of_state,
    question,
    refused,
    tried,
)


@question
def decisions() -> Any:
    found = []
    for fitted in (
        BinningCalibrator(5).fit(SMOOTH.scores, SMOOTH.y),
        Calibrator(n_bins=4).fit(SKEWED.scores, SKEWED.y),
    ):
        for costs in ((1.0, 3.0), (5.0, 2.0), (1.0, 100.0)):
            given = {"cost_false_alarm": costs[0], "cost_miss": costs[1]}
            found.append(calibrant.decide(fitted, SMOOTH.new[:80], **given))
            data = pa.table({"s": SMOOTH.new})
            found.append(calibrant.decide(fitted, scored(data, score="s"), **given))
    found.append(calibrant.decide(fitted, [], cost_false_alarm=1, cost_miss=1))
    return found


@question
def refusals_of_decisions() -> Any:
    fitted = BinningCalibrator(5).fit(SMOOTH.scores, SMOOTH.y)
    parts = BinningCalibrator(2).fit(SMOOTH.scores, SMOOTH.y, segments=SMOOTH.segments)
    data = pa.table({"s": SMOOTH.new, "part": np.repeat(["north", "west"], 750)})
    of_data = scored(data, score="s", segment="part")
    costs = {"cost_false_alarm": 1.0, "cost_miss": 1.0}
    platt = calibrant.PlattCalibrator().fit(SMOOTH.scores, SMOOTH.y)
    return [
        refused(lambda: calibrant.decide(fitted, GRID, cost_false_alarm=0.0, cost_miss=1.0)),
        refused(lambda: calibrant.decide(fitted, GRID, cost_false_alarm=1.0, cost_miss=-1.0)),
        refused(lambda: calibrant.decide(platt, GRID, **costs)),
        refused(lambda: calibrant.decide(parts, of_data, **costs)),
        refused(lambda: calibrant.decide(parts, of_data, **costs, segments=SMOOTH.segments)),
        refused(lambda: calibrant.decide(parts, GRID, **costs, segments=["west"] * 10)),
    ]


for _conditional in ("marginal", "label"):

    def conformal(conditional: str = _conditional) -> Any:
        found = []
        for world in (SMOOTH, TIED, FEW):
            sets = ConformalSets(conditional=conditional, center=0.4)
            sets.fit(world.scores, world.y)
            found += [sets.predict_p_value(GRID), sets.guarantee_]
            found += [sets.predict_set(GRID, coverage=share) for share in (0.5, 0.9, 0.99)]
        found += of_state(ConformalSets.from_dict, sets, ConformalSets.to_dict, most=25)
        return found

    QUESTIONS[f"conformal {_conditional}"] = conformal


@question
def refusals_of_conformal_sets() -> Any:
    plain = ConformalSets().fit(SMOOTH.scores, SMOOTH.y)
    return [
        refused(lambda: plain.predict_set([0.5], coverage=0.0)),
        refused(lambda: plain.predict_set([0.5], coverage=1.0)),
        refused(lambda: plain.predict_set([np.nan], coverage=0.9)),
        refused(lambda: ConformalSets(conditional="row").fit(SMOOTH.scores, SMOOTH.y)),
        refused(lambda: ConformalSets(center=np.inf).fit(SMOOTH.scores, SMOOTH.y)),
        refused(lambda: ConformalSets().fit([], [])),
    ]


@question
def comparisons_step_by_step() -> Any:
    comparison = SequentialModelComparison(["a", "b", "c"], confidence_level=0.9, clip=0.01)
    found = []
    for part in np.array_split(np.arange(1500), 6):
        worse = (SMOOTH.new + SMOOTH.scores) / 2.0
        models = {"a": SMOOTH.scores[part], "b": SMOOTH.new[part], "c": worse[part]}
        found.append(comparison.update(SMOOTH.y[part], models).result())
    kind = SequentialModelComparison
    return [found, of_state(kind.from_dict, comparison, kind.to_dict, most=30)]


@question
def refusals_of_comparisons() -> Any:
    y = SMOOTH.y
    s = SMOOTH.scores
    started = SequentialModelComparison(["a", "b"])
    return [
        refused(lambda: calibrant.compare_models(y, {"a": s})),
        refused(lambda: calibrant.compare_models(y, {"a": s, "b": s[:-1]})),
        refused(lambda: calibrant.compare_models(y, {"a": s, "b": s + 1.0})),
        refused(lambda: calibrant.compare_models(y, {"a": s, "b": -s})),
        refused(lambda: calibrant.compare_models(y, {"a": s, "b": s}, clip=0.0)),
        refused(lambda: calibrant.compare_models(y, {"a": s, "b": s}, clip=0.5)),
        refused(lambda: calibrant.compare_models(y, {"a": s, 1: s})),
        refused(lambda: SequentialModelComparison(["a"])),
        refused(lambda: SequentialModelComparison(["a", "a"])),
        refused(lambda: started.update(y, {"a": s})),
        refused(lambda: started.update(y, {"a": s, "c": s})),
        refused(lambda: started.result()),
    ]


@question
def states_of_bands() -> Any:
    band = MonotoneBand(n_cells=4).fit(SMOOTH.scores, SMOOTH.y)
    falling = MonotoneBand(n_cells=4).fit(1.0 - SMOOTH.scores, SMOOTH.y)
    states = [
        of_state(MonotoneBand.from_dict, one, MonotoneBand.to_dict, most=50)
        for one in (band, falling)
    ]
    return [
        states,
        refused(lambda: band.predict_interval([np.nan])),
        refused(lambda: MonotoneBand(n_cells=0).fit([1], [1])),
    ]


for _method in METHODS:

    def planned_by(method: str = _method) -> Any:
        asked: list[dict[str, Any]] = [{"n": 3000}, {"epsilon": 0.08, "n_bins": 4}]
        return [tried(lambda one=one: calibrant.plan(**one, interval=method)) for one in asked]

    QUESTIONS[f"plan {_method}"] = planned_by


@question
def planned() -> Any:
    asked: list[dict[str, Any]] = [
        {"n": 3000},
        {"epsilon": 0.05},
        {"epsilon": 0.03, "n_bins": 5, "base_rate": 0.05},
        {"epsilon": 0.1, "group_size": 5, "icc": 0.2},
        {"n": 400, "group_size": 5, "icc": 0.2},
        {"n": 4000, "group_size": 4, "icc": 0.1, "base_rate": 0.02},
        {"epsilon": 0.05, "confidence_level": 0.99, "probability": 0.5},
        {"n": 3000, "pilot": None},
        {"n": 3000, "pilot": 0.4, "n_bins": 3},
        {"n": 3000, "pilot": 700, "n_bins": 3},
        {"n": 10, "n_bins": 3},
        {"n": 50, "n_bins": 3, "base_rate": 0.5},
        {"n": 2000, "n_bins": 3, "base_rate": 0.001},
        {"n": 2000, "n_bins": 3, "group_size": 1, "icc": 0.0},
        {"n": 2000, "n_bins": 3, "group_size": 10, "icc": 1.0},
        {"epsilon": 0.3, "n_bins": 1, "pilot": None, "group_size": 3, "icc": 0.05},
        {"epsilon": 0.002, "n_bins": 2, "base_rate": 0.01},
    ]
    return [tried(lambda one=one: calibrant.plan(**one)) for one in asked]


@question
def refusals_of_plans() -> Any:
    asked: list[dict[str, Any]] = [
        {},
        {"n": 10, "epsilon": 0.1},
        {"n": 0},
        {"epsilon": 0.0},
        {"epsilon": 1.0},
        {"epsilon": 0.5},
        {"n": 100, "group_size": 3},
        {"n": 100, "icc": 0.3},
        {"n": 100, "group_size": 0, "icc": 0.1},
        {"n": 100, "group_size": 3, "icc": 1.1},
        {"n": 100, "group_size": 3, "icc": 0.1, "interval": "hoeffding"},
        {"n": 100, "base_rate": 0.0},
        {"n": 100, "base_rate": 1.0},
        {"n": 100, "probability": 1.0},
        {"n": 100, "interval": "none"},
        {"n": 100, "pilot": 100},
        {"n": 100, "pilot": 1.0},
        {"epsilon": 1e-6, "n_bins": 10},
        {"epsilon": 0.1, "pilot": 500},
    ]
    return [refused(lambda one=one: calibrant.plan(**one)) for one in asked]


@question
def planned_rates() -> Any:
    asked: list[dict[str, Any]] = [
        {"width": 0.1, "n_items": 4000, "expected_rate": 0.9},
        {
            "at_least": 0.9,
            "n_items": 4000,
            "expected_rate": 0.97,
            "sensitivity": 0.9,
            "specificity": 0.8,
        },
    ]
    return [calibrant.plan_rate(**one) for one in asked]


@question
def plans_at_their_ends() -> Any:
    asked: list[dict[str, Any]] = [
        {"n": 10**12},
        {"n": 10**15},
        {"n": 10**18},
        {"n": 3, "group_size": 5, "icc": 0.1},
        {"n": 5, "group_size": 5, "icc": 0.1},
        {"n": 30, "n_bins": 10},
        {"n": 2000, "n_bins": 4, "base_rate": 0.03, "interval": "blaker"},
        {"n": 2000, "n_bins": 4, "base_rate": 0.97},
        {"n": 2000, "n_bins": 4, "pilot": 0.1, "base_rate": 0.2},
        {"n": 100_000, "n_bins": 50},
        {"n": 100_000, "n_bins": 3, "probability": 0.999},
        {"epsilon": 0.2, "n_bins": 3, "pilot": 0.5},
        {"n": 3000, "n_bins": 2, "group_size": 3, "icc": 0.2, "pilot": None},
        {"n": 3000, "n_bins": 2, "group_size": 3, "icc": 0.2, "pilot": 0.3},
    ]
    found = [tried(calibrant.plan, **one) for one in asked]
    relative = [one.relative for one in found if hasattr(one, "relative")]
    return [found, relative, [one.design_effect for one in found if hasattr(one, "design_effect")]]
