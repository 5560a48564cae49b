"""Calibrators with every setting."""

from typing import Any

import numpy as np
import pyarrow as pa

from calibrant import (
    BinningCalibrator,
    Calibrator,
    IsotonicCalibrator,
    Partition,
    PlattCalibrator,
    scored,
)
from calibrant.intervals import METHODS
from worlds.questions.base import (
    ATOMS,
    GRID,
    QUESTIONS,
    SKEWED,
    SMOOTH,
    TIED,
    WORLDS,
    World,
    of_calibrator,
    question,
    refused,
    tried,
)

for _name, _world in WORLDS.items():
    for _class in (Calibrator, BinningCalibrator):

        def fitted(world: World = _world, make: Any = _class) -> Any:
            return of_calibrator(make().fit(world.scores, world.y))

        def of_groups(world: World = _world, make: Any = _class) -> Any:
            return of_calibrator(make(n_bins=4).fit(world.scores, world.y, groups=world.groups))

        def of_segments(world: World = _world, make: Any = _class) -> Any:
            calibrator = make(n_bins=3).fit(world.scores, world.y, segments=world.segments)
            return of_calibrator(calibrator, segments=np.repeat(["north", "south"], 5))

        def of_weights(world: World = _world, make: Any = _class) -> Any:
            given = {"importance_weight": world.weights / 3.0, "weight_bound": 1.25}
            calibrator = make(n_bins=3).fit(world.scores, world.y, **given)
            return [of_calibrator(calibrator), calibrator.guarantee_]

        def of_weighted_groups(world: World = _world, make: Any = _class) -> Any:
            given = {
                "importance_weight": world.weights / 3.0,
                "weight_bound": 1.0,
                "groups": world.groups,
            }
            calibrator = make(n_bins=2).fit(world.scores, world.y, **given, max_group_size=9)
            return [of_calibrator(calibrator), calibrator.guarantee_]

        def of_sample_weights(world: World = _world, make: Any = _class) -> Any:
            calibrator = make(n_bins=3).fit(world.scores, world.y, sample_weight=world.weights)
            return [of_calibrator(calibrator), calibrator.guarantee_]

        QUESTIONS[f"{_class.__name__} {_name}"] = fitted
        QUESTIONS[f"{_class.__name__} {_name} groups"] = of_groups
        QUESTIONS[f"{_class.__name__} {_name} segments"] = of_segments
        if _name not in ("smooth", "atoms"):
            continue
        QUESTIONS[f"{_class.__name__} {_name} weights"] = of_weights
        QUESTIONS[f"{_class.__name__} {_name} weighted groups"] = of_weighted_groups
        QUESTIONS[f"{_class.__name__} {_name} sample weights"] = of_sample_weights

for _curve in ("platt", "beta", "isotonic", "venn-abers"):
    for _name in ("smooth", "tied", "few"):

        def of_curve(world: World = WORLDS[_name], curve: str = _curve) -> Any:
            return of_calibrator(Calibrator(curve).fit(world.scores, world.y))

        QUESTIONS[f"curve {_curve} {_name}"] = of_curve

for _method in METHODS:

    def of_method(method: str = _method) -> Any:
        return of_calibrator(BinningCalibrator(5, interval=method).fit(SMOOTH.scores, SMOOTH.y))

    QUESTIONS[f"interval {_method}"] = of_method

SETTINGS: dict[str, dict[str, Any]] = {
    "no pilot": {"pilot": None},
    "pilot of 100": {"pilot": 100, "n_bins": 3},
    "pilot of a fifth": {"pilot": 0.2, "n_bins": 3},
    "uniform bins": {"partition": "uniform", "n_bins": 6},
    "given bins": {"partition": Partition.from_edges([0.2, 0.5, 0.8])},
    "one bin": {"n_bins": 1},
    "many bins": {"n_bins": 25},
    "surer": {"confidence_level": 0.999},
    "less sure": {"confidence_level": 0.5},
    "another seed": {"random_state": 12},
}
for _setting, _given in SETTINGS.items():
    for _class in (Calibrator, BinningCalibrator):

        def set_up(given: dict[str, Any] = _given, make: Any = _class) -> Any:
            found = []
            for world in (SKEWED,) if make is Calibrator else (SKEWED, TIED):
                fitted = make(**given).fit(world.scores, world.y)
                found += [of_calibrator(fitted), fitted.guarantee_, fitted.predict_set(GRID)]
            return found

        QUESTIONS[f"{_class.__name__} {_setting}"] = set_up

for _value in ("mean", "midpoint"):

    def of_value(value: str = _value) -> Any:
        return of_calibrator(BinningCalibrator(4, value=value).fit(SKEWED.scores, SKEWED.y))

    QUESTIONS[f"value {_value}"] = of_value


@question
def a_curve_that_falls() -> Any:
    return of_calibrator(Calibrator().fit(1.0 - SMOOTH.scores, SMOOTH.y))


@question
def curves_that_hardly_rise() -> Any:
    found = []
    for n in (30, 100, 400):
        scores = SMOOTH.scores[:n]
        for y in (
            SMOOTH.y[::-1][:n],
            (SMOOTH.new[:n] < 0.5).astype(int),
            (SMOOTH.new[:n] < 0.03).astype(int),
        ):
            fitted = Calibrator().fit(scores, y, classes=(0, 1))
            found += [of_calibrator(fitted), fitted.guarantee_.epsilon]
    return found


@question
def curves_of_one_class() -> Any:
    found = []
    for label in (0, 1):
        for make in (Calibrator, BinningCalibrator):
            fitted = make(n_bins=2).fit(SMOOTH.scores[:200], np.full(200, label), classes=(0, 1))
            found += [of_calibrator(fitted), fitted.guarantee_]
    return found


@question
def curves_of_other_scales() -> Any:
    found = []
    logits = np.round((SMOOTH.scores - 0.5) * 64.0) / 4.0
    for scores in (logits, SMOOTH.scores * 1e-6, SMOOTH.scores * 1e9 - 5e8):
        for curve in ("auto", "isotonic"):
            grid = np.quantile(scores, [0.0, 0.1, 0.4, 0.8, 1.0], method="nearest")
            found.append(of_calibrator(Calibrator(curve, n_bins=4).fit(scores, SMOOTH.y), grid))
    return found


@question
def ten_bins_of_fifty_rows() -> Any:
    return of_calibrator(Calibrator(n_bins=10).fit(SKEWED.scores[:500], SKEWED.y[:500]))


@question
def sizes_of_samples() -> Any:
    found = []
    for n in (1, 2, 11, 41, 90, 333, 777):
        for make in (Calibrator, BinningCalibrator):
            fitted = make().fit(SMOOTH.scores[:n], SMOOTH.y[:n], classes=(0, 1))
            found.append(
                [fitted.partition_.n_regions, fitted.tally_.n_rows, fitted.guarantee_.epsilon]
            )
    return found


@question
def many_rows() -> Any:
    world = World("smooth", 12_000, seed=3)
    found = []
    for make in (Calibrator, BinningCalibrator):
        found.append(of_calibrator(make().fit(world.scores, world.y)))
        found.append(of_calibrator(make(n_bins=10).fit(world.scores, world.y, groups=world.groups)))
    return found


@question
def groups_of_many_sizes() -> Any:
    found = []
    sizes = np.concatenate(
        [np.repeat(np.arange(100), 1), np.repeat(np.arange(100, 160), 10), np.repeat(160, 200)]
    )
    groups = np.concatenate([sizes, np.arange(1000, 1000 + 1500 - sizes.size)])
    for given in ({}, {"max_group_size": 3}, {"max_group_size": 20}, {"group_target": "groups"}):
        for n_bins, make in (
            (1, BinningCalibrator),
            (5, BinningCalibrator),
            (3, Calibrator),
        ):
            fitted = make(n_bins=n_bins).fit(SMOOTH.scores, SMOOTH.y, groups=groups, **given)
            found += [of_calibrator(fitted), fitted.guarantee_]
    return found


@question
def groups_and_segments() -> Any:
    found = []
    for make in (Calibrator, BinningCalibrator):
        fitted = make(n_bins=2).fit(
            SMOOTH.scores, SMOOTH.y, groups=SMOOTH.groups // 4, segments=SMOOTH.segments
        )
        found += [
            of_calibrator(fitted, segments=np.repeat(["north", "south"], 5)),
            fitted.guarantee_,
        ]
    return found


@question
def ranges_of_scores() -> Any:
    found = []
    for make in (Calibrator, BinningCalibrator):
        fitted = make(partition="uniform", n_bins=4).fit(
            TIED.scores, TIED.y, score_range=(0.0, 1.0)
        )
        found.append(of_calibrator(fitted))
        fitted = make(partition="uniform", n_bins=4).fit(
            TIED.scores * 8 - 4, TIED.y, score_range=(-4.0, 4.0)
        )
        found.append(of_calibrator(fitted, np.array([-4.0, -1.0, 0.0, 3.9])))
    return found


def table(world: World, **more: Any) -> Any:
    """Rows as a table of pyarrow."""
    return pa.table(
        {"s": world.scores, "y": world.y, "part": world.segments, "who": world.groups, **more}
    )


@question
def tables() -> Any:
    found = []
    for world in (ATOMS,):
        for make in (Calibrator, BinningCalibrator):
            plain = scored(table(world), score="s", label="y")
            found.append(of_calibrator(make().fit(plain)))
            parts = scored(table(world), score="s", label="y", segment="part")
            named = np.repeat(["north", "south"], 5)
            found.append(of_calibrator(make(n_bins=3).fit(parts), segments=named))
            weighted = scored(table(world, w=world.weights), score="s", label="y", weight="w")
            found.append(of_calibrator(make(n_bins=3).fit(weighted)))
    return found


@question
def tables_of_other_types() -> Any:
    found = []
    for kind in (np.float32, np.float16, np.int64):
        scores = np.round(SMOOTH.scores * 50 - 10).astype(kind)
        data = pa.table({"s": scores, "y": np.where(SMOOTH.y == 1, "yes", "no")})
        fitted = BinningCalibrator(5, pos_label="yes").fit(scored(data, score="s", label="y"))
        found.append(of_calibrator(fitted, np.array([-9.0, 0.0, 11.0, 39.0])))
    return found


@question
def tables_with_ids() -> Any:
    found = []
    n = 1500
    ids = {
        "number": np.arange(n) * 7,
        "small": np.arange(n, dtype=np.int32),
        "text": [f"row {place}" for place in range(n)],
        "bytes": [b"%d" % place for place in range(n)],
        "day": np.arange(n).astype("datetime64[D]"),
        "moment": np.arange(n).astype("datetime64[ms]"),
    }
    for values in ids.values():
        data = scored(table(SMOOTH, id=pa.array(values)), score="s", label="y", id="id")
        fitted = BinningCalibrator(4, pilot=0.3).fit(data)
        found.append(of_calibrator(fitted))
    for values in ([1.5] * n, [True] * n, [None] * n, np.zeros(n, dtype=int)):
        data = table(SMOOTH, id=pa.array(values))
        found.append(
            refused(
                lambda data=data: BinningCalibrator(4).fit(
                    scored(data, score="s", label="y", id="id")
                )
            )
        )
    return found


@question
def groups_with_every_partition() -> Any:
    few = np.arange(60) // 12
    groups = SMOOTH.groups // 3
    asked: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"partition": "uniform", "n_bins": 3}, {"groups": groups}),
        ({"partition": Partition.from_edges([0.4])}, {"groups": groups}),
        ({"pilot": None, "n_bins": 1}, {"groups": groups}),
        ({"pilot": None, "n_bins": 3}, {"groups": groups, "max_group_size": 9}),
        ({"pilot": 0.5, "n_bins": 3}, {"groups": groups}),
        ({"pilot": 40, "n_bins": 2}, {"groups": groups, "max_group_size": 9}),
        ({"n_bins": 1}, {"groups": groups, "max_group_size": 9}),
        ({"n_bins": 2}, {"groups": np.arange(1500)}),
        ({"n_bins": 2}, {"groups": groups, "segments": SMOOTH.segments, "group_target": "groups"}),
    ]
    found = []
    for settings, given in asked:
        for make in (BinningCalibrator, Calibrator):
            fitted = tried(make(**settings).fit, SMOOTH.scores, SMOOTH.y, **given)
            found += [fitted.guarantee_ if hasattr(fitted, "guarantee_") else fitted]
    for settings in ({}, {"n_bins": 2}, {"n_bins": 1}):
        for group in (few, np.zeros(60, dtype=int)):
            found.append(
                tried(
                    BinningCalibrator(**settings).fit,
                    SMOOTH.scores[:60],
                    SMOOTH.y[:60],
                    groups=group,
                )
            )
    weights = {"importance_weight": SMOOTH.weights / 3.0, "weight_bound": 1.0, "groups": groups}
    for target in ("rows", "groups"):
        fitted = tried(
            BinningCalibrator(2).fit, SMOOTH.scores, SMOOTH.y, **weights, group_target=target
        )
        found += [fitted.guarantee_ if hasattr(fitted, "guarantee_") else fitted]
    return found


@question
def curves_of_other_kinds() -> Any:
    found: list[Any] = []
    logits = np.round((SMOOTH.scores - 0.5) * 64.0) / 8.0
    for curve in (PlattCalibrator(), IsotonicCalibrator()):
        fitted = Calibrator(curve, n_bins=3).fit(SMOOTH.scores, SMOOTH.y)
        found += of_calibrator(fitted)
    good = (SMOOTH.new < SMOOTH.scores).astype(int)
    found += [of_calibrator(Calibrator(n_bins=3).fit(SMOOTH.scores, good))]
    for curve in ("beta", "scores", 5):
        found += [refused(Calibrator(curve).fit, logits, SMOOTH.y)]
    for n_bins in (0, 1.5, "many"):
        found += [refused(Calibrator(n_bins=n_bins).fit, SMOOTH.scores, SMOOTH.y)]
    for pilot in (0, 1500, 1.0, -0.1, "half"):
        found += [refused(BinningCalibrator(3, pilot=pilot).fit, SMOOTH.scores, SMOOTH.y)]
    for partition in ("equal", 5, Partition.fixed_width(2, (0.0, 0.5))):
        found += [refused(BinningCalibrator(partition=partition).fit, SMOOTH.scores, SMOOTH.y)]
    found += [refused(BinningCalibrator(2000).fit, SMOOTH.scores, SMOOTH.y)]
    found += [refused(BinningCalibrator(2).fit, [], [])]
    return found
