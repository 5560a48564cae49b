"""Random data sets and every public question about them, answered as numbers with names.

`differential.py` runs this file twice, with the package of two commits, and compares. Only public
names are used. A name that one commit has and the other has not is looked up by `named`.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant
from calibrant import calibrators, intervals, metrics, scored
from calibrant.errors import CalibrantError

OTHER_NAMES = {"Calibrator": "AnchoredCalibrator"}
"""What a name is called in the other commit."""
UNSTABLE = {"seconds", "identity", "fingerprint", "version", "calibrant", "made", "schema"}
GRID = np.linspace(0.0, 1.0, 41)
LARGEST_GROUP = 6
SIZES = (3, 12, 40, 150, 600, 2500)
KINDS = ("uniform", "tied", "skewed", "atoms", "rare", "narrow", "single", "falling")
ROLES = ("weight", "group", "segment")
SOURCES = ("arrow", "parquet", "duckdb", "polars")


def named(name: str) -> Any:
    """A public class by its name in either commit."""
    for place in (calibrant, calibrators, intervals):
        for one in (name, OTHER_NAMES.get(name, name)):
            if one in getattr(place, "__all__", ()):
                return getattr(place, one)
    raise KeyError(name)


@dataclass(frozen=True)
class Case:
    """A data set and where it is."""

    number: int
    n: int
    kind: str
    roles: tuple[str, ...]
    source: str

    @classmethod
    def draw(cls, seed: int, number: int) -> Case:
        """One of many, by its number."""
        rng = np.random.default_rng([seed, number])
        return cls(
            number,
            int(rng.choice(SIZES)),
            str(rng.choice(KINDS)),
            tuple(role for role in ROLES if rng.uniform() < 0.35),
            str(rng.choice(SOURCES)) if rng.uniform() < 0.4 else "arrow",
        )

    def table(self) -> pa.Table:
        """The rows. All values have few binary digits, so that every machine has the same."""
        rng = np.random.default_rng([self.number, self.n, *self.kind.encode()])
        uniform = rng.integers(1, 2**20, self.n) / 2**20
        p = {
            "tied": np.round(uniform * 8) / 8,
            "skewed": uniform**4,
            "atoms": np.where(uniform < 0.3, 0.0, np.where(uniform > 0.9, 1.0, uniform)),
            "rare": uniform / 16,
            "narrow": 0.98 + uniform / 128,
            "single": uniform.astype(np.float32).astype(float),
        }.get(self.kind, uniform)
        rate = 1.0 - p if self.kind == "falling" else np.clip(0.03 + 0.9 * p**1.5, 0.0, 1.0)
        other = np.clip(p + rng.integers(-64, 64, self.n) / 512, 0.0, 1.0)
        return pa.table(
            {
                "p": p,
                "q": other,
                "y": (rng.integers(0, 2**20, self.n) / 2**20 < rate).astype(int),
                "w": 0.5 + rng.integers(0, 24, self.n) / 16,
                "g": rng.permutation(self.n) // rng.integers(1, LARGEST_GROUP + 1),
                "s": np.where(rng.integers(0, 3, self.n) < 1, "north", "south"),
            }
        )

    def sample(self, table: pa.Table, folder: Path) -> Any:
        """The rows as `scored` takes them, from the source of this case."""
        place = self._place(table, folder)
        given: dict[str, Any] = {role: role[0] for role in self.roles}
        if self.number % 2 and "weight" in self.roles:
            given["weight_bound"] = 2.0
        if self.number % 2 and "group" in self.roles:
            given["max_group_size"] = LARGEST_GROUP
        return scored(place, score="p", label="y", **given, progress=False)

    def _place(self, table: pa.Table, folder: Path) -> Any:
        if self.source == "parquet":
            pq.write_table(table, folder / "rows.parquet", row_group_size=400)
            return str(folder / "rows.parquet")
        if self.source == "duckdb":
            import duckdb

            return duckdb.from_arrow(table)
        if self.source == "polars":
            import polars

            return polars.from_arrow(table).lazy()
        return table


Question = Callable[[Any, pa.Table, Case], Any]
Answer = dict[str, float | str]
QUESTIONS: dict[str, Question] = {}


def _calibrator(name: str, **settings: Any) -> None:
    def ask(sample: Any, table: pa.Table, case: Case) -> Any:
        if name == "OnlineCalibrator" and "group" in case.roles:
            return {}  # a stream draws one row of each group anew each time
        return _predicted(named(name)(**settings).fit(sample), case)

    QUESTIONS[name] = ask


def _predicted(fitted: Any, case: Case) -> Any:
    beside = {"segments": np.where(np.arange(GRID.size) % 2, "north", "south")}
    given = beside if "segment" in case.roles else {}
    found: dict[str, Any] = {}
    for method in ("predict", "predict_interval", "predict_rate_interval", "predict_set"):
        if hasattr(fitted, method):
            found[method] = _tried(lambda method=method: getattr(fitted, method)(GRID, **given))
    guarantee = getattr(fitted, "guarantee_", None)
    for name in ("lower", "upper", "epsilon", "counts", "value"):
        if hasattr(guarantee, name):
            found[name] = getattr(guarantee, name)
    return found


for _name in (
    *("Calibrator", "IsotonicCalibrator", "PlattCalibrator", "TemperatureCalibrator"),
    *("BetaCalibrator", "BlendCalibrator", "VennAbersCalibrator", "SubgroupCalibrator"),
):
    _calibrator(_name)
_calibrator("BinningCalibrator", n_bins=3)
_calibrator("ScalingBinningCalibrator", n_bins=3)
_calibrator("ShiftCalibrator", n_bins=3)
_calibrator("OnlineCalibrator", n_bins=3, warmup=20)
_calibrator("MonotoneBand")


def _function(name: str, function: Any, **more: Any) -> None:
    QUESTIONS[name] = lambda sample, table, case: function(sample, **more)


_function("audit", calibrant.audit)
_function("check", calibrant.check)
_function("threshold", calibrant.threshold, precision=0.55)
_function("validation_table", calibrant.validation_table)
_function("net_benefit", calibrant.net_benefit, thresholds=[0.3, 0.5])
for _name in ("brier_score", "log_loss", "ece", "debiased_ece", "smooth_ece", "auc"):
    _function(_name, getattr(metrics, _name))


def question(function: Question) -> Question:
    """Ask this, under the name of the function."""
    QUESTIONS[function.__name__] = function
    return function


@question
def label_shift(sample: Any, table: pa.Table, case: Case) -> Any:
    """Another share of positives."""
    fitted = calibrant.LabelShiftCalibrator(n_bins=3).fit(sample, target_prior=0.4)
    return _predicted(fitted, case)


@question
def rate(sample: Any, table: pa.Table, case: Case) -> Any:
    """Every third row has a label."""
    y = table["y"].to_numpy().astype(float)
    y[np.arange(case.n) % 3 > 0] = np.nan
    beside = {"segments": table["s"].to_pylist()} if "segment" in case.roles else {}
    return calibrant.rate(y, table["p"].to_numpy(), **beside)


@question
def compare_models(sample: Any, table: pa.Table, case: Case) -> Any:
    """Two models of the same rows."""
    models = {"p": table["p"].to_numpy(), "q": table["q"].to_numpy()}
    grouped = {"groups": table["g"].to_numpy(), "max_group_size": LARGEST_GROUP}
    beside = grouped if "group" in case.roles else {}
    return calibrant.compare_models(table["y"].to_numpy(), models, **beside)


@question
def decide(sample: Any, table: pa.Table, case: Case) -> Any:
    """Act or not, by the default calibrator."""
    fitted = named("Calibrator")().fit(table["p"].to_numpy(), table["y"].to_numpy())
    return calibrant.decide(fitted, GRID, cost_false_alarm=1.0, cost_miss=4.0)


@question
def expected_performance(sample: Any, table: pa.Table, case: Case) -> Any:
    """What new scores let one expect."""
    fitted = named("BinningCalibrator")().fit(table["p"].to_numpy(), table["y"].to_numpy())
    return calibrant.expected_performance(fitted, table["q"].to_numpy(), thresholds=[0.3])


@question
def drift(sample: Any, table: pa.Table, case: Case) -> Any:
    """The same rows again, and then with labels turned round."""
    scores, y = table["p"].to_numpy(), table["y"].to_numpy()
    fitted = named("BinningCalibrator")(n_bins=3).fit(scores, y)
    monitor = calibrant.DriftMonitor(fitted, random_state=0)
    found = []
    for labels in (y, y, 1 - y):
        monitor.update(scores, labels)
        found.append(monitor.log_evidence)
    return {"log_evidence": found}


@question
def arrays(sample: Any, table: pa.Table, case: Case) -> Any:
    """The default from arrays, with all that comes beside them."""
    beside: dict[str, Any] = {}
    if "group" in case.roles:
        beside["groups"] = table["g"].to_numpy()
    if "segment" in case.roles:
        beside["segments"] = table["s"].to_pylist()
    fitted = named("Calibrator")().fit(table["p"].to_numpy(), table["y"].to_numpy(), **beside)
    return _predicted(fitted, case)


@question
def classifier(sample: Any, table: pa.Table, case: Case) -> Any:
    """The drop-in on one feature; a tree, so that no solver's last digit decides."""
    from sklearn.tree import DecisionTreeClassifier

    X = table["p"].to_numpy()[:, None]
    model = calibrant.CalibratedClassifier(DecisionTreeClassifier(max_depth=3, random_state=0))
    model.fit(X, table["y"].to_numpy())
    return {"predict_proba": model.predict_proba(GRID[:, None])}


@question
def saved(sample: Any, table: pa.Table, case: Case) -> Any:
    """A model that was saved and loaded again."""
    fitted = named("Calibrator")().fit(sample)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        calibrant.save_model(fitted, path)
        return _predicted(calibrant.load_model(path), case)


def _tried(ask: Callable[[], Any]) -> Any:
    """The answer, or the kind of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ask()
    except CalibrantError as error:
        return f"{type(error).__name__}: {getattr(error, 'parameter', '')}"
    except Exception as error:  # must be the same fault in both
        return f"{type(error).__name__}"


def numbers(answer: Any, path: str = "") -> Iterator[tuple[str, float | str]]:
    """All numbers in an answer with their names; of texts only errors and words of one piece."""
    if hasattr(answer, "to_dict"):
        answer = answer.to_dict()
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name not in UNSTABLE:
                yield from numbers(value, f"{path}.{name}" if path else str(name))
    elif isinstance(answer, str):
        if " " not in answer or "Error: " in answer:
            yield path, answer
    elif isinstance(answer, bool | int | float | np.number | np.bool_):
        yield path, float(answer)
    elif isinstance(answer, np.ndarray | list | tuple):
        for place, value in enumerate(np.asarray(answer, dtype=object).ravel()):
            yield from numbers(value, f"{path}[{place}]")
    elif answer is None:
        yield path, "None"


def answer(ask: Question, case: Case) -> Answer:
    """The numbers of one answer, or its error."""
    table = case.table()
    with tempfile.TemporaryDirectory() as folder:

        def work() -> Answer:
            return dict(numbers(ask(case.sample(table, Path(folder)), table, case)))

        found = _tried(work)
    if isinstance(found, str):
        return {"": found}
    return {
        key: one if isinstance(one, str) or math.isfinite(one) else str(one)
        for key, one in found.items()
    }


def main() -> None:
    """Write the answers, one line for each case and question."""
    seed, count = map(int, sys.argv[1:])
    for number in range(count):
        case = Case.draw(seed, number)
        for name, ask in QUESTIONS.items():
            print(json.dumps([str(case), name, answer(ask, case)]), flush=True)


if __name__ == "__main__":
    main()
