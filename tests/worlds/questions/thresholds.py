"""Thresholds, their states and their refusals."""

from typing import Any

import numpy as np
import pyarrow as pa

import calibrant
from calibrant import (
    Threshold,
    scored,
)
from calibrant.assess.threshold.proved_threshold import threshold_table
from worlds.questions.base import (
    GRID,
    MORE,
    MORE_TIED,
    QUESTIONS,
    SMOOTH,
    World,
    fields_of,
    of_state,
    question,
    refused,
    tried,
)

TARGETS: list[dict[str, Any]] = [
    {"recall": 0.55},
    {"precision": 0.45, "npv": 0.7},
    {"npv": 0.8},
    {"specificity": 0.8},
    {"specificity": 0.95},
    {"precision": 0.99},
    {"recall": 0.99},
    {"precision": 0.4, "method": "look"},
    {"precision": 0.4, "start": 0.7},
    {"recall": 0.6, "confidence_level": 0.99},
    {"precision": 0.5, "pilot": 0.3},
    {"precision": 0.4, "segments": MORE.segments},
    {"recall": 0.5, "segments": MORE.segments},
    {"recall": 0.7, "groups": MORE.groups},
    {"recall": 0.7, "groups": MORE.groups, "max_group_size": 2},
    {"precision": 0.45, "groups": MORE.groups, "max_group_size": 12},
    {"precision": 0.45, "importance_weight": MORE.weights / 3.0, "weight_bound": 1.0},
    {"recall": 0.6, "importance_weight": MORE.weights / 3.0, "weight_bound": 1.5},
    {"precision": 0.4, "unlabelled_scores": MORE.new, "npv": 0.8},
    {"npv": 0.8, "unlabelled_scores": MORE.new},
]
for _place, _target in enumerate(TARGETS):
    for _name, _world in {"more": MORE, "tied": MORE_TIED}.items():

        def cut(target: dict[str, Any] = _target, world: World = _world) -> Any:
            one = calibrant.threshold(world.y, world.scores, **target)
            named = {"segments": np.repeat(["north", "south"], 5)} if "segments" in target else {}
            answers = (
                [one.predict(GRID, **named), one.refer(GRID, **named)] if one.is_proved else []
            )
            return [one, [cut.text for cut in one.cuts if hasattr(cut, "text")], answers]

        QUESTIONS[f"threshold {_place} {_name}"] = cut


@question
def states_of_thresholds() -> Any:
    proved = [
        calibrant.threshold(MORE.y, MORE.scores, precision=0.5, npv=0.8),
        calibrant.threshold(MORE.y, MORE.scores, recall=0.7, segments=MORE.segments),
        calibrant.threshold(MORE.y, MORE.scores, precision=0.4, npv=0.8, groups=MORE.groups),
        calibrant.threshold(MORE.y, MORE.scores, precision=0.99),
    ]
    return [of_state(Threshold.from_dict, one, Threshold.saved_state, most=60) for one in proved]


@question
def thresholds_of_tables() -> Any:
    data = pa.table({"s": MORE.scores, "y": MORE.y, "part": MORE.segments})
    plain = calibrant.threshold(scored(data, score="s", label="y"), precision=0.5, npv=0.8)
    parts = calibrant.threshold(scored(data, score="s", label="y", segment="part"), recall=0.6)
    applied = []
    for one, segment in ((plain, None), (parts, "part")):
        rows = scored(data, score="s", segment=segment)
        columns = one.apply(rows).read_all()
        applied += [
            columns.column(name).to_numpy()
            for name in columns.column_names
            if name not in ("s", "y", "part")
        ]
    return [plain, parts, [values for values in applied if values.dtype.kind in "bif"]]


@question
def refusals_of_thresholds() -> Any:
    y = SMOOTH.y
    s = SMOOTH.scores
    ask = calibrant.threshold
    weights = SMOOTH.weights
    return [
        refused(lambda: ask(y, s)),
        refused(lambda: ask(y, s, precision=1.0)),
        refused(lambda: ask(y, s, precision=0.0)),
        refused(lambda: ask(y, s, recall=1.5)),
        refused(lambda: ask(y, s, precision=0.5, method="best")),
        refused(lambda: ask(y, s, precision=0.5, method="ranks", groups=SMOOTH.groups)),
        refused(lambda: ask(y, s, precision=0.5, start=np.nan)),
        refused(lambda: ask(y, s, recall=0.5, start=0.5)),
        refused(lambda: ask(y, s, precision=0.5, npv=0.8, start=0.5)),
        refused(lambda: ask(y, s, precision=0.5, start=0.5, method="look")),
        refused(lambda: ask(y, s, precision=0.5, pilot=0.0)),
        refused(lambda: ask(y, s, precision=0.5, pilot=1.0)),
        refused(lambda: ask(y, s, precision=0.5, importance_weight=weights)),
        refused(lambda: ask(y, s, precision=0.5, importance_weight=weights, weight_bound=2.9)),
        refused(lambda: ask(y, s, precision=0.5, weight_bound=2.9)),
        refused(lambda: ask(y, s, precision=0.5, max_group_size=3)),
        refused(lambda: ask(y, s, precision=0.5, groups=SMOOTH.groups, unlabelled_scores=s)),
        refused(lambda: ask(y, s, precision=0.5, segments=SMOOTH.segments, unlabelled_scores=s)),
        refused(lambda: ask(y, s, recall=0.5, unlabelled_scores=s)),
        refused(lambda: ask(y, s, precision=0.5, unlabelled_scores=[])),
        refused(lambda: ask(np.zeros(9, dtype=int), s[:9], precision=0.5, classes=(0, 1))),
        refused(lambda: ask(np.ones(9, dtype=int), s[:9], recall=0.5, classes=(0, 1))),
    ]


@question
def thresholds_that_are_not_proved() -> Any:
    few = [(MORE.y[:n], MORE.scores[:n]) for n in (5, 12, 30, 60, 150)]
    asked: list[dict[str, Any]] = [
        {"precision": 0.85},
        {"recall": 0.95},
        {"specificity": 0.97},
        {"npv": 0.95},
        {"precision": 0.3, "npv": 0.5},
        {"precision": 0.85, "method": "look"},
        {"recall": 0.9, "groups": True},
        {"precision": 0.6, "groups": True},
    ]
    found = []
    for y, scores in few:
        for given in asked:
            named = dict(given)
            if named.pop("groups", False):
                named["groups"] = np.arange(y.size) // 3
            found.append(tried(calibrant.threshold, y, scores, classes=(0, 1), **named))
    return found


@question
def thresholds_exported() -> Any:
    found = []
    for given in (
        {"precision": 0.5},
        {"precision": 0.5, "npv": 0.8},
        {"recall": 0.6, "segments": MORE.segments},
        {"precision": 0.99},
    ):
        one = calibrant.threshold(MORE.y, MORE.scores, **given)
        table = threshold_table(one, 0.9)
        found.append({**fields_of(table), "notes": ()})
    return found


@question
def thresholds_at_every_level() -> Any:
    levels = (0.02, 0.1, 0.27, 0.36, 0.5, 0.62, 0.75, 0.9)
    found = []
    for level in levels:
        for name in ("precision", "recall", "npv", "specificity"):
            one = calibrant.threshold(SMOOTH.y, SMOOTH.scores, **{name: level})
            found += [[cut.threshold, cut.reason or "", cut.labels_needed] for cut in one.cuts]
    return found
