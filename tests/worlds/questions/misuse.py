"""Calls that must be refused, by each entry point: before a fit, with what is not taken, and with
things of another kind.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.exceptions import NotFittedError

import calibrant
from calibrant import (
    BinningCalibrator,
    DriftMonitor,
    Guarantee,
    GuaranteeMonitor,
    OnlineCalibrator,
    Partition,
    ScoreDriftMonitor,
    Tally,
    scored,
)
from calibrant.errors import CalibrantError
from worlds.questions.base import GRID, QUESTIONS, Text, World, question
from worlds.questions.settings import REQUIRED, _estimators

FEW = World("smooth", 120, seed=2)
COLUMNS = {"s": FEW.scores, "y": FEW.y, "part": FEW.segments, "who": FEW.groups, "w": FEW.weights}
TABLE = pa.table(COLUMNS)
PREDICTING = ("predict", "predict_interval", "predict_set", "predict_p_value", "apply", "to_dict")


def verdict(ask: Callable[..., Any], *given: Any, **named: Any) -> Text:
    """The error of a call: its kind, and what it is about."""
    try:
        ask(*given, **named)
    except (CalibrantError, NotFittedError, TypeError) as error:
        return Text(f"{type(error).__name__}: {getattr(error, 'parameter', None)}")
    return Text("taken")


def _made(estimator: Any, **parameters: Any) -> Any:
    needed = {one: REQUIRED[one] for one in REQUIRED if one in estimator._get_param_names()}
    return estimator(**needed | parameters)


def _before_a_fit(estimator: Any) -> list[Any]:
    model = _made(estimator)
    asked: dict[str, Callable[[], Any]] = {}
    for name in PREDICTING:
        given = () if name == "to_dict" else (GRID,)
        asked[name] = lambda name=name, given=given: getattr(model, name)(*given)
    for name in ("guarantee_", "refutation_"):
        asked[name] = lambda name=name: getattr(model, name)
    return [[Text(name), verdict(asked[name])] for name in asked if hasattr(estimator, name)]


def _with_what_is_not_taken(estimator: Any) -> list[Any]:
    rows = scored(TABLE, score="s", label="y")
    tables = [
        scored(TABLE, score="s", label="y", segment="part"),
        scored(TABLE, score="s", label="y", group="who"),
        scored(TABLE, score="s", label="y", weight="w"),
    ]
    beside: list[dict[str, Any]] = [
        {"segments": FEW.segments},
        {"groups": FEW.groups},
        {"groups": FEW.groups, "group_target": "groups"},
        {"importance_weight": FEW.weights},
        {"importance_weight": FEW.weights, "weight_bound": 2.0},
        {"max_group_size": 3},
        {"weight_bound": 3.0},
    ]
    found = [verdict(_made(estimator).fit, one) for one in (rows, *tables)]
    found.append(verdict(_made(estimator).fit, rows, FEW.y))
    found.append(verdict(_made(estimator).fit, FEW.scores, FEW.y[:-1]))
    found += [verdict(_made(estimator).fit, FEW.scores, FEW.y, **one) for one in beside]
    if "confidence_level" in estimator._get_param_names():
        wrong = _made(estimator, confidence_level=2.0)
        found.append(verdict(wrong.fit, FEW.scores, FEW.y))
    return found


for _name, _estimator in _estimators().items():
    if "scores" in signature(getattr(_estimator, "fit", abs)).parameters:
        QUESTIONS[f"before a fit {_name}"] = lambda one=_estimator: _before_a_fit(one)
        QUESTIONS[f"not taken by {_name}"] = lambda one=_estimator: _with_what_is_not_taken(one)


@question
def things_of_another_kind() -> Any:
    """Texts and numbers in place of partitions, tallies and results; parts that do not fit."""
    bins = Partition.fixed_width(3)
    tally = Tally.from_data(bins, FEW.scores, FEW.y)
    other = Tally.from_data(Partition.fixed_width(2), FEW.scores, FEW.y)
    weighted = Tally.from_data(bins, FEW.scores, FEW.y, importance_weight=FEW.weights)
    stream = OnlineCalibrator(bins).fit(FEW.scores, FEW.y)
    asked: list[tuple[Any, ...]] = [
        (Tally.from_data, "bins", FEW.scores, FEW.y),
        (Tally.from_data, bins, FEW.scores, FEW.y[:-1]),
        (Tally.from_data, bins, FEW.scores + 2.0, FEW.y),
        (Tally, np.array([3]), np.array([1]), -1),
        (Tally, np.array([3]), np.array([1]), "2"),
        (BinningCalibrator.from_tally, "bins", tally),
        (BinningCalibrator.from_tally, bins, "tally"),
        (BinningCalibrator.from_tally, bins, other),
        (BinningCalibrator.from_tally, bins, weighted),
        (Guarantee.from_tally, bins, other),
        (Partition.by_segment, {"a": "bins"}),
        (Partition.by_segment, {"a": Partition.by_segment({"b": bins})}),
        (Partition.from_dict, {}),
        (Partition.from_dict, {"kind": "none"}),
        (Partition.uniform_mass, FEW.scores[:3], 9),
        (stream.merge, "stream"),
        (stream.merge, BinningCalibrator(3)),
        (stream.partial_fit, FEW.scores, FEW.y[:-1]),
        (GuaranteeMonitor, BinningCalibrator(3)),
        (GuaranteeMonitor, BinningCalibrator(3).fit(FEW.scores, FEW.y, groups=FEW.groups)),
    ]
    return [verdict(*one) for one in asked]


@question
def rows_beside_scored_data() -> Any:
    """What is given twice, and settings of searches that nobody knows."""
    rows = scored(TABLE, score="s", label="y")
    y = FEW.y
    s = FEW.scores
    return [
        verdict(calibrant.audit, rows, s),
        verdict(calibrant.audit, rows, segments=FEW.segments),
        verdict(calibrant.check, rows, s),
        verdict(calibrant.check, rows, time="none"),
        verdict(calibrant.check, rows, groups="none"),
        verdict(calibrant.check, y, s, time="t"),
        verdict(calibrant.threshold, y, s, precision=0.4, method="none"),
        verdict(calibrant.threshold, y, s, precision=0.4, pilot=-1),
        verdict(calibrant.threshold, y, s, precision=0.4, start="0.3"),
        verdict(calibrant.plan, n=1000, interval="none"),
        verdict(calibrant.plan, n=1000, calibrator="none"),
        verdict(calibrant.metrics.brier_score, y, s, weight_bound=-1.0),
    ]


@question
def batches_that_monitors_refuse() -> Any:
    bins = BinningCalibrator(3).fit(FEW.scores, FEW.y)
    found = []
    for monitor in (DriftMonitor(bins), GuaranteeMonitor(bins), DriftMonitor(bins, unit="day")):
        days = {"at": np.arange(120) + 20_000} if getattr(monitor, "unit", "") == "day" else {}
        found += [
            verdict(monitor.update, FEW.scores, FEW.y[:-1], **days),
            verdict(monitor.update, FEW.scores, FEW.y, **days),
            verdict(monitor.update, FEW.scores, FEW.y, **days),
        ]
    scores = ScoreDriftMonitor(FEW.scores, n_bins=4, random_state=0)
    return [*found, verdict(scores.update, ["a"]), verdict(scores.update, FEW.scores)]
