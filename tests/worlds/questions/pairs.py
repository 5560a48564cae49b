"""Settings that meet: for each function a few combinations in which every pair of choices occurs.

A fault often needs two settings at once, such as groups and a pilot of few rows.
"""

from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa

import calibrant
from calibrant import (
    BinningCalibrator,
    Calibrator,
    LabelShiftCalibrator,
    OnlineCalibrator,
    Partition,
    ShiftCalibrator,
    metrics,
    scored,
)
from calibrant.intervals import MonotoneBand
from calibrant.tripod import ConformalSets
from worlds.questions.base import (
    GRID,
    QUESTIONS,
    World,
    of_calibrator,
    question,
    refused,
    tried,
)

_TOGETHER = 4  # combinations in a question

Choices = dict[str, list[dict[str, Any]]]
"""By setting, its choices; each is some arguments."""

SMALL = World("smooth", 360, seed=8)
TIES = World("tied", 360, seed=9)
PARTS = np.repeat(["north", "south"], GRID.size // 2)
_LARGE = np.where(np.arange(360) < 24, -1, SMALL.groups)  # one group is much larger than others
UNITS: list[dict[str, Any]] = [
    {},
    {"groups": SMALL.groups},
    {"groups": _LARGE, "max_group_size": 3},
    {"importance_weight": SMALL.weights / 2.0, "weight_bound": 2.0},
    {"importance_weight": SMALL.weights, "weight_bound": 3.0, "groups": _LARGE},
]
WEIGHTED_UNITS = [{"importance_weight": one["importance_weight"]} for one in UNITS[3:4]]


def pairs(choices: Choices) -> Iterator[dict[str, Any]]:
    """Few combinations, each as arguments, in which every two choices of two settings meet."""
    numbers = {name: range(len(found)) for name, found in choices.items()}
    open_pairs = {
        frozenset({(one, first), (other, second)})
        for one, other in combinations(choices, 2)
        for first, second in product(numbers[one], numbers[other])
    }
    while open_pairs:
        start = min(open_pairs, key=sorted)
        chosen = dict(start)
        for name in choices:
            if name not in chosen:
                chosen[name] = _most_useful(name, numbers[name], chosen, open_pairs)
        open_pairs -= {frozenset(pair) for pair in combinations(chosen.items(), 2)}
        arguments: dict[str, Any] = {}
        for name in choices:
            arguments |= choices[name][chosen[name]]
        yield arguments


def _most_useful(
    name: str, numbers: range, chosen: dict[str, int], open_pairs: set[frozenset[tuple[str, int]]]
) -> int:
    """The choice that meets most others for the first time; of several, the first."""

    def met(number: int) -> int:
        return sum(frozenset({(name, number), other}) in open_pairs for other in chosen.items())

    return max(numbers, key=met)


def each(name: str, *values: Any) -> list[dict[str, Any]]:
    """The choices of one argument."""
    return [{name: value} for value in values]


def asked(name: str, ask: Callable[..., Any], choices: Choices) -> None:
    """Ask about all combinations, a few in each question, so that no small change is lost."""
    found = list(pairs(choices))
    parts = -(-len(found) // _TOGETHER)
    for part in range(parts):

        def some(own: list[dict[str, Any]] = found[part::parts]) -> Any:
            return [tried(ask, **arguments) for arguments in own]

        QUESTIONS[f"pairs {name} {part}"] = some


def _threshold(world: World = SMALL, **named: Any) -> Any:
    found = calibrant.threshold(world.y, world.scores, **named)
    beside = {"segments": PARTS} if "segments" in named else {}
    return [found, found.predict(GRID, **beside) if found.is_proved else []]


WORLDS = each("world", SMALL, TIES)
TARGETS: list[dict[str, Any]] = [
    {"precision": 0.35},
    {"recall": 0.6},
    {"npv": 0.75},
    {"specificity": 0.6},
    {"precision": 0.35, "npv": 0.75},
]
SEGMENTS: list[dict[str, Any]] = [{}, {"segments": SMALL.segments}]
asked(
    "threshold",
    _threshold,
    {
        "world": WORLDS,
        "units": UNITS,
        "target": TARGETS,
        "segments": SEGMENTS,
        "where": [
            *each("pilot", "auto", 0.04, 9, 0.6),
            {"method": "look"},
            {"start": 0.55},
            {"unlabelled_scores": SMALL.new},
        ],
        "level": each("confidence_level", 0.9, 0.6),
    },
)


def _binning(
    settings: dict[str, Any], world: World = SMALL, kind: Any = BinningCalibrator, **named: Any
) -> Any:
    fitted = kind(**settings).fit(world.scores, world.y, **named)
    beside = {"segments": PARTS} if "segments" in named else {}
    return [of_calibrator(fitted, **beside), fitted.guarantee_]


def settings(**choices: list[Any]) -> list[dict[str, Any]]:
    """Pairs of the settings of an estimator, as choices of one argument."""
    wanted = {name: [{name: value} for value in values] for name, values in choices.items()}
    return each("settings", *pairs(wanted))


PILOTS = ["auto", None, 0.3, 40]
OF_GROUPS = {"groups": SMALL.groups, "group_target": "groups"}
asked(
    "binning",
    _binning,
    {
        "settings": settings(
            n_bins=[1, 3, "auto"],
            value=["jeffreys", "mean", "midpoint", "monotone"],
            partition=["quantile", "uniform", Partition.fixed_width(3)],
            confidence_level=[0.9, 0.5],
            interval=["auto", "blaker", "kl", "hoeffding", "empirical-bernstein"],
        ),
        "world": WORLDS,
    },
)
asked(
    "units of bins",
    _binning,
    {
        "settings": settings(
            n_bins=[1, 3, "auto"],
            value=["jeffreys", "mean", "midpoint"],
            pilot=["auto", 0.3, 40],
            confidence_level=[0.9, 0.5],
        ),
        "units": [*UNITS, OF_GROUPS],
        "world": WORLDS,
    },
)
asked(
    "segments of bins",
    _binning,
    {
        "settings": settings(
            n_bins=[2, "auto"], pilot=PILOTS, segment_rule=["auto", None, 150, ["south"]]
        ),
        "units": [*UNITS, OF_GROUPS],
        "segments": SEGMENTS[1:],
    },
)
asked(
    "curve",
    _binning,
    {
        "settings": settings(curve=["auto", "beta", "isotonic"], n_bins=[1, 3], pilot=PILOTS),
        "units": [
            {"unlabelled_scores": SMALL.new},
            *UNITS,
            OF_GROUPS,
        ],
        "segments": SEGMENTS,
        "kind": each("kind", Calibrator),
    },
)


def _audit(world: World = SMALL, **named: Any) -> Any:
    return calibrant.audit(world.y, world.scores, **named)


asked(
    "audit",
    _audit,
    {
        "world": WORLDS,
        "units": UNITS,
        "segments": SEGMENTS,
        "bins": each("n_bins", "auto", 1, 4),
        "tolerance": each("tolerance", 0.0, 0.05, 0.3),
        "monotone": each("monotone", False, True),
        "level": each("confidence_level", 0.95, 0.5),
    },
)
asked(
    "plan",
    calibrant.plan,
    {
        "wanted": [*each("epsilon", 0.3, 0.1), *each("n", 100, 900, 4000)],
        "bins": each("n_bins", 1, 2, 7),
        "calibrator": each("calibrator", "BinningCalibrator", "Calibrator"),
        "rate": [{}, {"base_rate": 0.2}, {"base_rate": 0.03}, {"group_size": 4, "icc": 0.2}],
        "pilot": each("pilot", "auto", None, 0.3, 50),
        "level": each("confidence_level", 0.9, 0.6),
        "probability": each("probability", 0.9, 0.5),
    },
)
asked(
    "check",
    lambda world, **named: calibrant.check(world.y, world.scores, **named),
    {
        "world": WORLDS,
        "time": [{}, {"time": np.arange(360) // 12}, {"time": SMALL.new}],
        "groups": [{}, {"groups": SMALL.groups}, {"groups": _LARGE}],
        "most": each("most_rows", None, 100),
        "level": each("confidence_level", 0.95, 0.5),
    },
)
GRADES = np.floor(SMALL.scores * 4).astype(int)
asked(
    "validation",
    lambda world, **named: calibrant.validation_table(world.y, world.scores, n_draws=19, **named),
    {
        "world": WORLDS,
        "units": UNITS,
        "grades": [
            {},
            {"grades": GRADES},
            {"grades": GRADES, "assigned": {0: 0.1, 1: 0.3, 2: 0.6, 3: 0.9}},
        ],
        "level": each("confidence_level", 0.95, 0.5),
    },
)
asked(
    "models",
    lambda **named: calibrant.compare_models(
        SMALL.y, {"scores": SMALL.scores, "square": SMALL.scores**2, "half": SMALL.new}, **named
    ),
    {
        "units": UNITS,
        "clip": each("clip", 0.001, 0.05),
        "level": each("confidence_level", 0.95, 0.5),
    },
)
asked(
    "net benefit",
    lambda world, **named: calibrant.net_benefit(world.y, {"a": world.scores}, **named),
    {
        "world": WORLDS,
        "units": UNITS,
        "thresholds": each("thresholds", [0.3], [0.1, 0.5, 0.9]),
        "level": each("confidence_level", 0.95, 0.5),
    },
)


def _metric(metric: str, world: World = SMALL, **named: Any) -> Any:
    return getattr(metrics, metric)(world.y, np.clip(world.scores, 0.01, 0.99), **named)


asked(
    "losses",
    _metric,
    {
        "metric": each("metric", "brier_score", "log_loss"),
        "world": WORLDS,
        "units": UNITS,
        "level": each("confidence_level", 0.95, 0.5),
    },
)
asked(
    "errors",
    _metric,
    {
        "metric": [
            *each("metric", "ece", "debiased_ece"),
            {"metric": "ece", "norm": "l2"},
            {"metric": "ece", "norm": "max"},
        ],
        "world": WORLDS,
        "units": [{}, {"groups": SMALL.groups}, *WEIGHTED_UNITS],
        "bins": each("n_bins", 10, 3, "sweep"),
        "strategy": each("strategy", "auto", "uniform", "quantile"),
        "level": each("confidence_level", 0.95, 0.5),
    },
)


def _online(settings: dict[str, Any], world: World, halves: bool) -> Any:
    stream = OnlineCalibrator(**settings)
    for rows in [slice(0, 90), slice(90, 360)] if halves else [slice(None)]:
        stream.partial_fit(world.scores[rows], world.y[rows], classes=(0, 1))
    return [of_calibrator(stream), stream.guarantee_, stream.next_region()]


asked(
    "stream",
    _online,
    {
        "settings": settings(
            partition=[None, Partition.fixed_width(3)],
            sequence=["centred-beta-binomial", "paper"],
            running=[False, True],
            value=["jeffreys", "mean", "midpoint"],
            warmup=[50, 1000],
            n_bins=[2, 10],
            confidence_level=[0.9, 0.5],
        ),
        "world": WORLDS,
        "halves": each("halves", False, True),
    },
)


def _band(world: World, level: float, cells: Any, **named: Any) -> Any:
    band = MonotoneBand(confidence_level=level, n_cells=cells)
    band.fit(world.scores, world.y, **named)
    return [band.predict_interval(GRID), band.guarantee_]


asked(
    "band",
    _band,
    {
        "world": WORLDS,
        "level": each("level", 0.9, 0.5),
        "cells": each("cells", "auto", 3, 40),
        "units": [
            {},
            {"groups": SMALL.groups},
            {"importance_weight": SMALL.weights / 2.0, "weight_bound": 2.0},
        ],
    },
)


def _sets(world: World, settings: dict[str, Any], coverage: float, **named: Any) -> Any:
    sets = ConformalSets(**settings).fit(world.scores, world.y, **named)
    return sets.predict_set(GRID, coverage=coverage)


asked(
    "conformal",
    _sets,
    {
        "world": WORLDS,
        "settings": settings(conditional=["marginal", "label"], center=[0.5, 0.2]),
        "coverage": each("coverage", 0.9, 0.5, 0.99),
        "units": [{}, {"groups": SMALL.groups}],
    },
)


@question
def sets_of_weighted_rows() -> Any:
    data = pa.table({"s": SMALL.scores, "y": SMALL.y, "w": SMALL.weights})
    rows = scored(data, score="s", label="y", weight="w", weight_bound=3.0)
    return [refused(ConformalSets().fit, rows), refused(MonotoneBand().fit, rows)]


asked(
    "shift",
    _binning,
    {
        "kind": each("kind", ShiftCalibrator),
        "settings": settings(
            n_bins=[1, 3],
            value=["mean", "midpoint"],
            interval=["betting", "empirical-bernstein"],
            partition=["quantile", "uniform"],
            pilot=["auto", None, 0.3],
        ),
        "weights": [
            {"importance_weight": SMALL.weights / 2.0, "weight_bound": 2.0},
            {"importance_weight": SMALL.weights, "weight_bound": 4.0},
            {"importance_weight": SMALL.weights, "weight_bound": 3.0, "weight_error": 0.1},
            {"importance_weight": SMALL.weights},
        ],
        "segments": SEGMENTS,
    },
)
asked(
    "label shift",
    _binning,
    {
        "kind": each("kind", LabelShiftCalibrator),
        "settings": settings(n_bins=[1, 3], value=["jeffreys", "mean", "midpoint"], pilot=PILOTS),
        "prior": [
            {"target_prior": 0.2},
            {"target_prior": (0.4, 0.7)},
            {"target_prior": 0.2, "source_prior": 0.4},
            {"sampling_rates": (0.5, 1.0)},
            {"target_scores": SMALL.new},
        ],
        "segments": SEGMENTS,
        "units": [{}, {"groups": SMALL.groups}],
    },
)
