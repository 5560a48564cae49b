"""Many small questions, and their answers as flat lists of numbers.

The answers of today are in `tests/data/answers.json`. After a change that is meant to change some
of them, look at which ones have changed, and write them anew:

    PYTHONPATH=src .venv/bin/python tests/worlds/answers.py
"""

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

import calibrant
from calibrant import (
    AnchoredCalibrator,
    BinningCalibrator,
    OnlineCalibrator,
    Partition,
    ShiftCalibrator,
    metrics,
    sequences,
)
from calibrant.errors import CalibrantError
from calibrant.intervals import METHODS, MonotoneBand
from calibrant.shift import SHIFT_METHODS, LabelShiftCalibrator

FILE = Path(__file__).parents[1] / "data" / "answers.json"
QUESTIONS: dict[str, Callable[[], Any]] = {}
GRID = np.array([0.0, 0.02, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.97, 1.0])


def question(function: Callable[[], Any]) -> Callable[[], Any]:
    QUESTIONS[function.__name__] = function
    return function


class World:
    """Rows with what may come beside them.

    Made of exact arithmetic, so that every machine has the same.
    """

    def __init__(self, kind: str, n: int = 1500, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, n, *kind.encode()])
        uniform = rng.integers(1, 2**20, n) / 2**20
        self.scores = {
            "smooth": uniform,
            "tied": np.round(uniform * 10) / 10,
            "skewed": uniform**4,
            "atoms": np.where(uniform < 0.3, 0.0, np.where(uniform > 0.9, 1.0, uniform)),
        }[kind]
        rate = np.clip(0.1 + 0.8 * self.scores**2 - 0.15 * (self.scores > 0.6), 0.0, 1.0)
        self.y = (rng.integers(0, 2**20, n) / 2**20 < rate).astype(int)
        self.groups = rng.integers(0, n // 4, n)
        self.segments = np.where(rng.integers(0, 10, n) < 3, "north", "south")
        self.weights = 1.0 + rng.integers(0, 3, n)
        self.new = rng.integers(1, 2**20, n) / 2**20


SMOOTH, TIED, SKEWED, ATOMS = (World(kind) for kind in ("smooth", "tied", "skewed", "atoms"))
FEW = World("smooth", 60)


def of_calibrator(calibrator: Any, scores: Any = GRID, **named: Any) -> list[Any]:
    guarantee = calibrator.guarantee_
    parts = [calibrator.predict(scores, **named), calibrator.predict_interval(scores, **named)]
    if hasattr(guarantee, "lower"):
        parts += [guarantee.lower, guarantee.upper, guarantee.counts, guarantee.epsilon]
    return parts


def numbers(answer: Any) -> Iterator[float]:
    """All numbers in an answer, in order."""
    if is_dataclass(answer):
        yield from numbers({name: getattr(answer, name) for name in answer.__dataclass_fields__})
    elif isinstance(answer, Mapping):
        for name in sorted(answer, key=str):
            yield from numbers(answer[name])
    elif isinstance(answer, np.ndarray):
        yield from (float(value) for value in answer.ravel()) if answer.dtype.kind in "biuf" else ()
    elif isinstance(answer, (bool, int, float, np.number, np.bool_)):
        yield float(answer)
    elif isinstance(answer, Sequence) and not isinstance(answer, str):
        for part in answer:
            yield from numbers(part)


def answer_of(name: str) -> list[float | None]:
    """The numbers of one answer.

    None stands for what is not finite, and long answers are thinned out.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = list(numbers(QUESTIONS[name]()))
        except CalibrantError:  # a refusal is an answer, too
            found = []
    step = max(1, len(found) // 60)
    return [value if math.isfinite(value) else None for value in found[::step]]


# ------------------------------------------------------------------------------------------
# calibrators


for _name, _world in {
    "smooth": SMOOTH,
    "tied": TIED,
    "skewed": SKEWED,
    "atoms": ATOMS,
    "few": FEW,
}.items():
    for _class in (AnchoredCalibrator, BinningCalibrator):

        def fitted(world: World = _world, make: Any = _class) -> Any:
            return of_calibrator(make().fit(world.scores, world.y))

        def of_groups(world: World = _world, make: Any = _class) -> Any:
            return of_calibrator(make(n_bins=4).fit(world.scores, world.y, groups=world.groups))

        def of_segments(world: World = _world, make: Any = _class) -> Any:
            calibrator = make(n_bins=3).fit(world.scores, world.y, segments=world.segments)
            return of_calibrator(calibrator, segments=np.repeat(["north", "south"], 5))

        QUESTIONS[f"{_class.__name__} {_name}"] = fitted
        QUESTIONS[f"{_class.__name__} {_name} groups"] = of_groups
        QUESTIONS[f"{_class.__name__} {_name} segments"] = of_segments

for _curve in ("platt", "beta", "isotonic", "venn-abers"):
    for _name, _world in {"smooth": SMOOTH, "tied": TIED, "few": FEW}.items():

        def of_curve(world: World = _world, curve: str = _curve) -> Any:
            return of_calibrator(AnchoredCalibrator(curve).fit(world.scores, world.y))

        QUESTIONS[f"curve {_curve} {_name}"] = of_curve

for _method in METHODS:

    def of_method(method: str = _method) -> Any:
        return of_calibrator(BinningCalibrator(5, interval=method).fit(SMOOTH.scores, SMOOTH.y))

    def planned_by(method: str = _method) -> Any:
        return [
            calibrant.plan(n=3000, interval=method),
            calibrant.plan(epsilon=0.08, n_bins=4, interval=method),
        ]

    QUESTIONS[f"interval {_method}"] = of_method
    QUESTIONS[f"plan {_method}"] = planned_by


@question
def a_curve_that_falls() -> Any:
    return of_calibrator(AnchoredCalibrator().fit(1.0 - SMOOTH.scores, SMOOTH.y))


@question
def ten_bins_of_fifty_rows() -> Any:
    return of_calibrator(AnchoredCalibrator(n_bins=10).fit(SKEWED.scores[:500], SKEWED.y[:500]))


@question
def label_shift() -> Any:
    calibrator = LabelShiftCalibrator(n_bins=4).fit(
        SMOOTH.scores, SMOOTH.y, target_scores=SMOOTH.new**0.5
    )
    return [calibrator.predict(GRID), calibrator.guarantee_]


for _method in SHIFT_METHODS:
    for _name, _world in {"smooth": SMOOTH, "tied": TIED, "few": FEW}.items():

        def of_shift(world: World = _world, method: str = _method) -> Any:
            calibrator = ShiftCalibrator(n_bins=3, interval=method)
            return of_calibrator(
                calibrator.fit(world.scores, world.y, importance_weight=world.weights / 3.0)
            )

        QUESTIONS[f"shift {_method} {_name}"] = of_shift


# ------------------------------------------------------------------------------------------
# streams


for _sequence in sequences.SEQUENCES:

    def of_sequence(sequence: str = _sequence) -> Any:
        stream = OnlineCalibrator(Partition.fixed_width(4), sequence=sequence)
        seen = []
        for part in np.array_split(np.arange(600), 4):
            stream.partial_fit(SMOOTH.scores[part], SMOOTH.y[part], classes=(0, 1))
            seen += of_calibrator(stream)
        return seen

    QUESTIONS[f"stream {_sequence}"] = of_sequence


# ------------------------------------------------------------------------------------------
# judgement


for _name, _world in {"smooth": SMOOTH, "tied": TIED, "skewed": SKEWED, "few": FEW}.items():

    def audited(world: World = _world) -> Any:
        return calibrant.audit(world.y, world.scores)

    def audited_by_segment(world: World = _world) -> Any:
        return calibrant.audit(world.y, world.scores, segments=world.segments)

    def audited_groups(world: World = _world) -> Any:
        return calibrant.audit(world.y, world.scores, groups=world.groups)

    def checked(world: World = _world) -> Any:
        return calibrant.check(world.y, world.scores)

    def validated(world: World = _world) -> Any:
        return calibrant.validation_table(world.y, world.scores)

    def compared(world: World = _world) -> Any:
        return calibrant.compare_models(world.y, {"a": world.scores, "b": world.new})

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

    for _asked in (
        audited,
        audited_by_segment,
        audited_groups,
        checked,
        validated,
        compared,
        beneficial,
        selected,
        found,
    ):
        QUESTIONS[f"{_asked.__name__} {_name}"] = _asked
    for _asked in (selected_groups, selected_unlabelled, rated, banded):
        QUESTIONS[f"{_asked.__name__} {_name}"] = _asked

    for _metric in ("auc", "brier_score", "debiased_ece", "ece", "log_loss", "smooth_ece"):
        for _beside in ("alone", "groups"):

            def measured(
                world: World = _world, metric: str = _metric, beside: str = _beside
            ) -> Any:
                named = {"groups": world.groups} if beside == "groups" else {}
                return getattr(metrics, metric)(world.y, np.clip(world.scores, 0.01, 0.99), **named)

            QUESTIONS[f"{_metric} {_beside} {_name}"] = measured


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
    ]
    return [calibrant.plan(**one) for one in asked]


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
def subgroups() -> Any:
    attributes = {"place": SMOOTH.segments, "weight": SMOOTH.weights}
    return calibrant.audit(SMOOTH.y, SMOOTH.scores, attributes=attributes)


def write() -> None:
    """Write all answers; say which have changed."""
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    answers = {name: answer_of(name) for name in QUESTIONS}
    changed = [name for name in answers if answers[name] != before.get(name)]
    lines = (f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(changed)} of {len(answers)} have changed:", *changed, sep="\n  ")


if __name__ == "__main__":
    write()
