"""Audits, checks and metrics."""

from typing import Any

import numpy as np
import pyarrow as pa

import calibrant
from calibrant import (
    metrics,
    scored,
)
from calibrant.assess.check.group_signs import group_signs
from calibrant.intervals import MonotoneBand
from calibrant.sample.reader import rows_of
from worlds.questions.base import (
    GRID,
    MORE,
    QUESTIONS,
    SMOOTH,
    WORLDS,
    World,
    question,
    refused,
    tried,
)

TWICE = ("audited_weights", "validated_units", "compared_units")  # of two kinds of rows are enough
for _name in ("smooth", "tied", "skewed", "few"):
    _world = WORLDS[_name]

    def audited(world: World = _world) -> Any:
        return calibrant.audit(world.y, world.scores)

    def audited_by_segment(world: World = _world) -> Any:
        return calibrant.audit(world.y, world.scores, segments=world.segments)

    def audited_groups(world: World = _world) -> Any:
        return calibrant.audit(world.y, world.scores, groups=world.groups)

    def audited_weights(world: World = _world) -> Any:
        given = {"importance_weight": world.weights / 3.0, "weight_bound": 1.0}
        alone = calibrant.audit(world.y, world.scores, **given)
        together = calibrant.audit(
            world.y, world.scores, **given, groups=world.groups, max_group_size=9
        )
        parts = calibrant.audit(world.y, world.scores, **given, segments=world.segments)
        return [alone, together, parts]

    def checked(world: World = _world) -> Any:
        return calibrant.check(world.y, world.scores)

    def validated(world: World = _world) -> Any:
        return calibrant.validation_table(world.y, world.scores)

    def validated_units(world: World = _world) -> Any:
        weights = {"importance_weight": world.weights / 3.0, "weight_bound": 1.0}
        grades = np.array(["a", "b", "c"])[(world.scores * 2.999).astype(int)]
        assigned = {"a": 0.1, "b": 0.3, "c": 0.7}
        return [
            calibrant.validation_table(
                world.y, world.scores, groups=world.groups, max_group_size=12
            ),
            calibrant.validation_table(
                world.y, world.scores, groups=world.groups, max_group_size=20, **weights
            ),
            calibrant.validation_table(world.y, world.scores, **weights),
            calibrant.validation_table(world.y, world.scores, grades=grades),
            calibrant.validation_table(
                world.y, world.scores, grades=grades, assigned=assigned, n_draws=50
            ),
        ]

    def compared(world: World = _world) -> Any:
        return calibrant.compare_models(world.y, {"a": world.scores, "b": world.new})

    def compared_units(world: World = _world) -> Any:
        models = {"a": world.scores, "b": world.new, "c": (world.scores + world.new) / 2.0}
        weights = {"importance_weight": world.weights / 3.0, "weight_bound": 1.0}
        return [
            calibrant.compare_models(
                world.y, models, groups=world.groups, max_group_size=12, clip=0.05
            ),
            refused(lambda: calibrant.compare_models(world.y, models, groups=world.groups)),
            calibrant.compare_models(
                world.y, models, groups=world.groups, max_group_size=20, **weights
            ),
            calibrant.compare_models(world.y, models, **weights, confidence_level=0.5),
        ]

    def beneficial(world: World = _world) -> Any:
        return calibrant.net_benefit(world.y, {"a": world.scores}, thresholds=[0.1, 0.3, 0.6])

    def selected(world: World = _world) -> Any:
        return calibrant.threshold(world.y, world.scores, precision=0.4)

    def found(world: World = _world) -> Any:
        return calibrant.threshold(world.y, world.scores, recall=0.5)

    def selected_groups(world: World = _world) -> Any:
        return calibrant.threshold(world.y, world.scores, precision=0.3, groups=world.groups)

    def selected_unlabelled(world: World = _world) -> Any:
        return calibrant.threshold(
            world.y, world.scores, precision=0.4, unlabelled_scores=world.new
        )

    def rated(world: World = _world) -> Any:
        known = np.where(np.arange(world.y.size) % 5 == 0, world.y, np.nan)
        return calibrant.rate(known, world.scores)

    def banded(world: World = _world) -> Any:
        band = MonotoneBand().fit(world.scores, world.y)
        return [band.predict_interval(GRID), band._table(0.9).lower, band._table(0.9).upper]

    def banded_units(world: World = _world) -> Any:
        weights = {"importance_weight": world.weights / 3.0, "weight_bound": 1.0}
        bands = [
            MonotoneBand(n_cells=7).fit(world.scores, world.y, groups=world.groups),
            MonotoneBand(confidence_level=0.5).fit(world.scores, world.y, **weights),
            MonotoneBand().fit(1.0 - world.scores, world.y),
            MonotoneBand(n_cells=3).fit(world.scores[:30], world.y[:30], classes=(0, 1)),
        ]
        seen = [
            [band.predict_interval(GRID), band.guarantee_, band.refutation_, band.n_runs_]
            for band in bands
        ]
        return [seen, [band.largest_error() for band in bands], [band.knots_ for band in bands]]

    for _asked in (
        audited,
        audited_by_segment,
        audited_groups,
        audited_weights,
        checked,
        validated,
        validated_units,
        compared,
        compared_units,
        beneficial,
        selected,
        found,
        selected_groups,
        selected_unlabelled,
        rated,
        banded,
        banded_units,
    ):
        if _name in ("tied", "skewed") and _asked.__name__ in TWICE:
            continue
        QUESTIONS[f"{_asked.__name__} {_name}"] = _asked

    for _metric in ("auc", "brier_score", "debiased_ece", "ece", "log_loss", "smooth_ece"):
        for _beside in ("alone", "groups", "weights"):
            if _beside == "weights" and _metric not in ("brier_score", "log_loss"):
                continue

            def measured(
                world: World = _world, metric: str = _metric, beside: str = _beside
            ) -> Any:
                named: dict[str, Any] = {}
                if beside == "groups":
                    named = {"groups": world.groups}
                elif beside == "weights":
                    named = {"importance_weight": world.weights / 3.0, "weight_bound": 1.0}
                return getattr(metrics, metric)(world.y, np.clip(world.scores, 0.01, 0.99), **named)

            QUESTIONS[f"{_metric} {_beside} {_name}"] = measured


@question
def audits_with_settings() -> Any:
    given: list[dict[str, Any]] = [
        {"tolerance": 0.05},
        {"tolerance": 0.3},
        {"n_bins": 7},
        {"n_bins": 1, "confidence_level": 0.5},
        {"monotone": True},
        {"groups": MORE.groups, "max_group_size": 2},
        {"groups": MORE.groups, "target": "groups"},
        {"groups": MORE.groups, "segments": MORE.segments, "tolerance": 0.02},
    ]
    wrong = [MORE.scores, np.round(MORE.scores**0.5, 2), np.clip(MORE.scores**3, 0.0, 1.0)]
    asked = [(wrong[place % 3], one) for place, one in enumerate(given)]
    return [
        tried(lambda scores=scores, one=one: calibrant.audit(MORE.y, scores, **one))
        for scores, one in asked
    ]


@question
def audits_of_extreme_scores() -> Any:
    y = SMOOTH.y
    certain = np.where(SMOOTH.new < 0.4, 0.0, 1.0)
    few = np.array([0.05, 0.5, 0.95])[(SMOOTH.scores * 2.999).astype(int)]
    rare = (SMOOTH.new < 0.01).astype(int)
    return [
        calibrant.audit(y, certain),
        calibrant.audit(y, few),
        calibrant.audit(rare, SMOOTH.scores * 0.05),
        calibrant.audit(np.zeros(300, dtype=int), SMOOTH.scores[:300], classes=(0, 1)),
        calibrant.audit(SMOOTH.y[:5], SMOOTH.scores[:5], classes=(0, 1)),
    ]


@question
def audits_of_tables() -> Any:
    data = pa.table(
        {"s": SMOOTH.scores, "y": SMOOTH.y, "part": SMOOTH.segments, "who": SMOOTH.groups}
    )
    return [
        calibrant.audit(scored(data, score="s", label="y")),
        calibrant.audit(scored(data, score="s", label="y"), n_bins=6, monotone=True),
        calibrant.audit(scored(data, score="s", label="y", segment="part")),
        calibrant.audit(scored(data, score="s", label="y", group="who")),
    ]


@question
def subgroups() -> Any:
    attributes = {"place": SMOOTH.segments, "weight": SMOOTH.weights}
    return calibrant.audit(SMOOTH.y, SMOOTH.scores, attributes=attributes)


def drifting(n: int = 800) -> tuple[Any, Any]:
    """Scores and labels whose rate moves half-way."""
    moved = np.where(np.arange(n) < n // 2, 0.0, 0.35)
    draws = np.random.default_rng(8).integers(0, 2**20, n) / 2**20
    return MORE.scores[:n], (draws < 0.6 * MORE.scores[:n] + moved).astype(int)


@question
def checks_that_find_something() -> Any:
    scores, y = drifting()
    sticky = np.repeat(SMOOTH.new[:100], 8)
    days = np.arange(800) // 7
    shifted = np.where(np.arange(800) < 300, scores, scores**0.5)
    return [
        calibrant.check(y, scores),
        calibrant.check(y, scores, time=days),
        calibrant.check(y, scores, time=days.astype("datetime64[D]")),
        calibrant.check(y, scores, groups=days),
        calibrant.check(y, scores, groups=days, time=-days),
        calibrant.check(y, shifted, confidence_level=0.5),
        calibrant.check((sticky < 0.5).astype(int), MORE.scores[:800]),
        calibrant.check(y, sticky),
        calibrant.check(y[np.argsort(scores, kind="stable")], np.sort(scores)),
        calibrant.check(np.sort(y), scores),
        calibrant.check(y, np.full(800, 0.5)),
        calibrant.check(y[:3], scores[:3], classes=(0, 1)),
        calibrant.check(y[:1], scores[:1], classes=(0, 1)),
    ]


@question
def signs_of_groups() -> Any:
    scores, y = drifting()
    n = y.size
    who = np.arange(n) // 4
    owned = np.repeat(SMOOTH.new[: n // 4], 4)
    of_group = (owned < 0.4).astype(int)
    tables = {
        "ids": {"s": scores, "y": y, "row_id": np.arange(n)},
        "customers": {"s": np.round(owned, 3), "y": of_group, "customer_id": who},
        "customers without effect": {"s": scores, "y": y, "customer_id": who},
        "shuffled customers": {
            "s": np.round(owned, 3),
            "y": of_group,
            "customer": MORE.groups[:n] % 300,
        },
        "identical rows": {
            "s": np.round(owned, 3),
            "y": of_group,
            "a": np.repeat(np.arange(n // 4) % 90, 4),
        },
        "runs": {"s": scores, "y": np.repeat(SMOOTH.new[:80] < 0.4, 10).astype(int)},
        "sorted": {"s": scores, "y": np.sort(y)},
        "text": {"s": scores, "y": of_group, "patient": [f"p{one}" for one in who]},
        "one label each": {"s": scores, "y": of_group, "kind": np.where(of_group == 1, "x", "z")},
    }
    found = [calibrant.check(scored(pa.table(tables["customers"]), score="s", label="y"))]
    for columns in tables.values():
        data = scored(pa.table(columns), score="s", label="y")
        found.append(group_signs(rows_of(data)))
    return found


@question
def signs_of_ids_that_repeat() -> Any:
    """Ids of two or three rows, for shares and numbers of values around those that are told."""
    found = []
    n = 400
    for times in (2, 3):
        for repeated in (18, 21, 42, 360):
            ids = np.arange(n)
            ids[:repeated] = np.arange(repeated) // times
            columns = {"s": SMOOTH.scores[:n], "y": SMOOTH.y[:n], "row_id": ids}
            found.append(group_signs(rows_of(scored(pa.table(columns), score="s", label="y"))))
    for values in (29, 30, 31):
        columns = {"s": SMOOTH.scores[:n], "y": SMOOTH.y[:n], "user": np.arange(n) % values}
        found.append(group_signs(rows_of(scored(pa.table(columns), score="s", label="y"))))
    return [[len(signs), [sign.text for sign in signs]] for signs in map(list, found)]


@question
def checks_of_many_rows() -> Any:
    data = scored(
        pa.table({"s": MORE.scores, "y": MORE.y, "t": np.arange(2500)}), score="s", label="y"
    )
    return [
        calibrant.check(data, most_rows=500, time="t"),
        calibrant.check(data, most_rows=2499),
        calibrant.check(data, most_rows=2500),
        refused(lambda: calibrant.check(data, most_rows=0)),
        refused(lambda: calibrant.check(data, time=np.arange(2500))),
        refused(lambda: calibrant.check(data, groups=np.arange(2500))),
        refused(lambda: calibrant.check(data, time="nothing")),
    ]


@question
def graded_units() -> Any:
    grades = np.array(["a", "b", "c"])[(SMOOTH.scores * 2.999).astype(int)]
    assigned = {"a": 0.1, "b": 0.3, "c": 0.7, "d": 0.9}
    weights = {"importance_weight": SMOOTH.weights / 3.0, "weight_bound": 1.0}
    groups = {"groups": SMOOTH.groups, "max_group_size": 12}
    ask = calibrant.validation_table
    found = []
    for units in (weights, groups, {**weights, **groups}):
        for given in ({}, {"assigned": assigned}):
            found += [ask(SMOOTH.y, SMOOTH.scores, grades=grades, n_draws=20, **units, **given)]
    one_class = ask(np.zeros(40, dtype=int), SMOOTH.scores[:40], classes=(0, 1), n_draws=20)
    return [
        found,
        one_class,
        refused(ask, SMOOTH.y, SMOOTH.scores, grades=grades, assigned=[0.1]),
        refused(ask, SMOOTH.y, SMOOTH.scores, grades=grades, assigned={"a": 0.1}),
        refused(ask, SMOOTH.y, SMOOTH.scores, grades=grades, assigned={**assigned, "a": 1.1}),
        refused(ask, SMOOTH.y, SMOOTH.scores, grades=grades, assigned={**assigned, "a": -0.1}),
        refused(ask, SMOOTH.y, SMOOTH.scores, grades=grades, assigned={**assigned, "a": 1.0}),
        refused(ask, SMOOTH.y, SMOOTH.scores, assigned=assigned),
        refused(ask, SMOOTH.y, SMOOTH.scores * 1.5),
        refused(ask, SMOOTH.y, SMOOTH.scores, n_draws=0),
        refused(ask, SMOOTH.y, SMOOTH.scores, confidence_level=1.0),
    ]


@question
def refusals_of_audits_and_metrics() -> Any:
    y = SMOOTH.y
    s = SMOOTH.scores
    groups = SMOOTH.groups
    asked: list[dict[str, Any]] = [
        {"tolerance": -0.1},
        {"tolerance": 1.0},
        {"n_bins": 0},
        {"weight_bound": 2.0},
        {"max_group_size": 3},
        {"importance_weight": SMOOTH.weights},
        {"importance_weight": SMOOTH.weights, "weight_bound": 2.9},
        {"importance_weight": -SMOOTH.weights, "weight_bound": 3.0},
        {"importance_weight": 0.0 * SMOOTH.weights, "weight_bound": 3.0},
        {"groups": groups, "max_group_size": 0},
        {"groups": groups[:-1]},
        {"groups": groups, "monotone": True},
        {"groups": groups, "attributes": {"a": SMOOTH.segments}},
        {"monotone": True, "segments": SMOOTH.segments},
        {"target": "groups"},
        {"target": "people", "groups": groups},
        {"order": 0, "attributes": {"a": SMOOTH.segments}},
        {"min_share": 0.0, "attributes": {"a": SMOOTH.segments}},
        {"confidence_level": 0.0},
    ]
    found = [refused(calibrant.audit, y, s, **one) for one in asked]
    found += [refused(calibrant.audit, y, s + 1.0), refused(calibrant.audit, y, -s)]
    found += [refused(metrics.brier_score, y, s, **one) for one in asked[3:11]]
    found += [
        refused(calibrant.check, y, s, confidence_level=1.0),
        refused(calibrant.check, y, s[:-1]),
    ]
    found += [refused(calibrant.check, y, s, time=np.arange(3)), refused(calibrant.check, y)]
    return found
