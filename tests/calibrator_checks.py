"""The checks that every estimator must pass: one function, one invariant, said in one sentence.

`CALIBRATORS` lists those that calibrate one score per row, `OTHERS` the other estimators of the package, each with
the data it takes. `CHECKS` lists the invariants; `test_checks.py` runs every pair that fits, and fails if a public
estimator is in neither list. A check that is about one ability (scores, intervals, ranks, counts) names the ability
it `needs`, so that an estimator without it has no such test, rather than a skipped one.
"""

import copy
import json
import pickle
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from calibrant import (
    AnchoredCalibrator,
    BetaCalibrator,
    BinningCalibrator,
    CalibratedClassifier,
    ClassWiseCalibrator,
    ConformalSets,
    IsotonicCalibrator,
    LabelShiftCalibrator,
    MonotoneBand,
    OnlineCalibrator,
    Partition,
    PlattCalibrator,
    ScalingBinningCalibrator,
    ShiftCalibrator,
    Tally,
    TemperatureCalibrator,
    TopLabelCalibrator,
    VennAbersCalibrator,
    VennBinningCalibrator,
)
from calibrant.calibrators import CrossVennAbersCalibrator
from calibrant.calibrators.regions import RegionCalibrator
from calibrant.errors import CalibrantWarning
from calibrant.intervals import METHODS
from calibrant.kernels import _chunks
from calibrant.ratios import KLIEP, ULSIF, DensityRatio, LogisticRatio, RuLSIF
from calibrant.rows.draw import Draw, position_keys
from calibrant.sequences import SEQUENCES

CALIBRATORS: dict[str, Any] = {
    "default": BinningCalibrator(),
    "ten-bins": BinningCalibrator(n_bins=10),
    "ten-bins-own": BinningCalibrator(n_bins=10, split=None),
    "monotone": BinningCalibrator(n_bins=10, split=None, value="monotone"),
    "one-bin": BinningCalibrator(n_bins=1),
    "uniform": BinningCalibrator(n_bins=8, strategy="uniform"),
    "uniform-range": BinningCalibrator(n_bins=5, strategy="uniform", score_range=(-1.0, 2.0)),
    "split": BinningCalibrator(n_bins=5, split=0.2, random_state=0),
    "split-rows": BinningCalibrator(n_bins=5, split=50, random_state=0),
    "midpoint": BinningCalibrator(n_bins=6, value="midpoint"),
    "partition": BinningCalibrator(partition=Partition.from_edges([0.2, 0.5, 0.9])),
    **{
        name: BinningCalibrator(n_bins=6, interval=name, split=None, value="mean")
        for name in METHODS
        if name != "clopper-pearson"
    },
    "anchored": AnchoredCalibrator(),
    "anchored-isotonic": AnchoredCalibrator("isotonic", n_bins=4, split=0.2, random_state=0),
    "anchored-temperature": AnchoredCalibrator(TemperatureCalibrator(), partition=Partition.from_edges([0.3, 0.7])),
    "platt": PlattCalibrator(),
    "platt-unsmoothed": PlattCalibrator(smoothing=False),
    "temperature": TemperatureCalibrator(),
    "temperature-logit": TemperatureCalibrator(scale="logit"),
    **{f"beta-{name}": BetaCalibrator(parameters=name) for name in ("abm", "ab", "am")},
    "isotonic": IsotonicCalibrator(),
    "venn-abers": VennAbersCalibrator(),
    "venn-abers-brier": VennAbersCalibrator(loss="brier"),
    "venn-binning": VennBinningCalibrator(n_bins=6),
    "venn-binning-own": VennBinningCalibrator(n_bins=6, split=None),
    "venn-binning-brier": VennBinningCalibrator(n_bins=5, strategy="uniform", loss="brier"),
    "venn-binning-split": VennBinningCalibrator(n_bins=4, split=0.2, random_state=0),
    "scaling-binning": ScalingBinningCalibrator(random_state=0),
    "scaling-binning-isotonic": ScalingBinningCalibrator(IsotonicCalibrator(), n_bins=4, split=100, random_state=0),
    "scaling-binning-beta": ScalingBinningCalibrator(BetaCalibrator(), strategy="uniform", random_state=0),
    **{f"online-{name}": OnlineCalibrator(Partition.from_edges([0.2, 0.7]), sequence=name) for name in SEQUENCES},
    "online-running": OnlineCalibrator(Partition.from_edges([0.5]), running=True, value="midpoint"),
    "online-warmup": OnlineCalibrator(n_bins=3, warmup=60),
    "label-shift": LabelShiftCalibrator(n_bins=6, target_prior=0.4),
    "label-shift-own": LabelShiftCalibrator(n_bins=6, target_prior=0.4, split=None),
    "label-shift-known": LabelShiftCalibrator(n_bins=4, strategy="uniform", target_prior=0.4, source_prior=0.5),
    "label-shift-split": LabelShiftCalibrator(n_bins=4, target_prior=0.6, split=0.2, random_state=0),
}

OTHERS: dict[str, Any] = {
    "shift": ShiftCalibrator(n_bins=4, weight_bound=2.0),
    "shift-bernstein": ShiftCalibrator(n_bins=4, interval="empirical-bernstein", split=0.2, random_state=0),
    "label-shift-estimated": LabelShiftCalibrator(n_bins=4),
    "cross-venn-abers": CrossVennAbersCalibrator(),
    "cross-venn-abers-brier": CrossVennAbersCalibrator(loss="brier"),
    "top-label": TopLabelCalibrator(n_bins=3),
    "class-wise": ClassWiseCalibrator(n_bins=3),
    "conformal": ConformalSets(),
    "monotone-band": MonotoneBand(),
    "classifier": CalibratedClassifier(LogisticRegression(), random_state=0),
    "classifier-cross": CalibratedClassifier(LogisticRegression(), VennAbersCalibrator(), cv=2, random_state=0),
    "kliep": KLIEP(centers=10, bandwidth=1.0),
    "ulsif": ULSIF(centers=10),
    "rulsif": RuLSIF(centers=10, n_jobs=1),
    "logistic-ratio": LogisticRatio(),
}
"""Estimators that need more than one score and one label per row: see `data_for`."""

INPUT_PATHS = {
    name: CALIBRATORS[name]
    for name in (
        "default",
        "uniform",
        "split",
        "partition",
        "anchored",
        "online-centred-beta-binomial",
        "platt",
        "temperature",
        "beta-abm",
        "isotonic",
        "venn-abers",
        "venn-binning",
        "scaling-binning",
        "label-shift",
    )
}
"""One calibrator for each way that inputs take through the code: the forms of input are tried on these."""

LIMIT_ACCURACY = 1e-9  # what the package promises of its limits
N_ROWS = 300


def draws_rows(calibrator: Any) -> bool:
    """Whether which rows do what is drawn at random, so that the order of rows matters."""
    if looks_first(calibrator):
        given = getattr(calibrator, "partition", None) is not None
        return calibrator.strategy == "quantile" and not given and calibrator.n_bins != 1
    return getattr(calibrator, "split", None) is not None


def looks_first(calibrator: Any) -> bool:
    """Whether rows are drawn only to look at them, and not where rows have weights."""
    return isinstance(getattr(calibrator, "split", None), str)


def follows_order(calibrator: Any) -> bool:
    """Whether the answer depends on the order in which rows come, as some confidence sequences do."""
    warms_up = isinstance(calibrator, OnlineCalibrator) and calibrator.partition is None
    return warms_up or not SEQUENCES[getattr(calibrator, "sequence", "beta-binomial")].order_free


ABILITIES: dict[str, Callable[[Any], bool]] = {
    "scores": lambda calibrator: any(calibrator is one for one in CALIBRATORS.values()),
    "labels": lambda calibrator: not isinstance(calibrator, DensityRatio),
    "interval": lambda calibrator: hasattr(calibrator, "predict_interval"),
    "set": lambda calibrator: hasattr(calibrator, "predict_set"),
    "json": lambda calibrator: hasattr(calibrator, "from_dict"),
    "tally": lambda calibrator: (
        hasattr(calibrator, "from_tally") and not isinstance(calibrator, ShiftCalibrator | LabelShiftCalibrator)
    ),
    "confidence_level": lambda calibrator: "confidence_level" in calibrator.get_params(),
    "n_jobs": lambda calibrator: "n_jobs" in calibrator.get_params(),
    "classes": lambda calibrator: "classes" in calibrator.get_params(),
    "pos_label": lambda calibrator: "pos_label" in calibrator.get_params(),
    "ties": lambda calibrator: getattr(calibrator, "interval", None) != "umd",
    "ignores order": lambda calibrator: not draws_rows(calibrator) and not follows_order(calibrator),
    "draws rows": draws_rows,
    "draws weighted rows": lambda calibrator: draws_rows(calibrator) and not looks_first(calibrator),
    "weighs rows": lambda calibrator: (
        (looks_first(calibrator) or not draws_rows(calibrator)) and not follows_order(calibrator)
    ),
    # bins of a map that is fitted to the labels: with other labels, other bins; a prior is that of the positive class;
    # a curve that never falls, and values that never fall, do not follow labels that do
    "mirrors": lambda calibrator: (
        not any(hasattr(calibrator, name) for name in ("base", "target_prior", "curve"))
        and getattr(calibrator, "value", None) != "monotone"
    ),
    # the size of a bet depends on the level, so that the two gamblers' paths at two levels are not ordered
    "nested": lambda calibrator: getattr(calibrator, "sequence", None) != "betting",
    # one class alone says nothing about how much more frequent it is elsewhere
    "one class": lambda calibrator: (
        getattr(calibrator, "target_prior", None) is None or calibrator.source_prior is not None
    ),
    "weights": lambda calibrator: "sample_weight" in signature(calibrator.fit).parameters,
    "ranks only": lambda calibrator: (
        getattr(calibrator, "strategy", None) == "quantile"
        and getattr(calibrator, "partition", None) is None
        and not hasattr(calibrator, "curve")
        and getattr(calibrator, "interval", None) != "clopper-pearson-weighted"  # takes scores for probabilities
    ),
}


@dataclass(frozen=True)
class Check:
    run: Callable[[Any], None]
    needs: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.run.__name__.removeprefix("check_")

    def applies_to(self, calibrator: Any) -> bool:
        return all(ABILITIES[need](calibrator) for need in self.needs)


CHECKS: list[Check] = []


def check(*needs: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def register(function: Callable[[Any], None]) -> Callable[[Any], None]:
        CHECKS.append(Check(function, needs))
        return function

    return register


# Data, and what is compared


def make_data(n_rows: int = N_ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores with some ties, and labels that follow them; many more rows than any calibrator here has bins."""
    generator = np.random.default_rng(seed)
    scores = generator.beta(0.8, 0.8, size=n_rows)
    scores[::7] = np.round(scores[::7], 1)
    return scores, (generator.uniform(size=n_rows) < scores).astype(np.int64)


def data_for(estimator: Any, n_rows: int = N_ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """What `fit` takes: two arrays, and by name what else this estimator needs."""
    scores, y = make_data(n_rows, seed)
    generator = np.random.default_rng(seed + 100)
    if isinstance(estimator, ShiftCalibrator):
        return scores, y, {"importance_weight": 2.0 * scores}
    if isinstance(estimator, LabelShiftCalibrator) and estimator.target_prior is None:
        return scores, y, {"target_scores": make_data(n_rows, seed + 50)[0]}
    if isinstance(estimator, CrossVennAbersCalibrator):
        return scores, y, {"folds": np.arange(n_rows) % 3}
    if isinstance(estimator, TopLabelCalibrator | ClassWiseCalibrator):
        columns = generator.dirichlet([1.0, 1.0, 1.0], size=n_rows)
        return columns, (generator.uniform(size=(n_rows, 1)) > columns.cumsum(axis=1)[:, :2]).sum(axis=1), {}
    if isinstance(estimator, CalibratedClassifier):
        return np.column_stack([scores, generator.normal(size=n_rows)]), y, {}
    if isinstance(estimator, DensityRatio):
        return generator.normal(size=(n_rows, 2)), generator.normal(0.3, size=(n_rows // 2, 2)), {}
    return scores, y, {}


def probe(calibrator: Any) -> np.ndarray:
    """Rows to predict for: for scores calibration scores, edges if there are any, their neighbours, and others."""
    if isinstance(calibrator, CrossVennAbersCalibrator):
        return np.column_stack([make_data(seed=seed)[0] for seed in range(3)])
    if (rows := data_for(calibrator)[0]).ndim == 2:
        return rows
    edges = np.asarray(getattr(getattr(calibrator, "partition_", None), "edges", []), dtype=np.float64)
    around = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)])
    return np.clip(np.concatenate([make_data()[0], np.linspace(0, 1, 101), around]), 0.0, 1.0)


def answers(calibrator: Any, scores: Any = None) -> dict[str, np.ndarray]:
    """Everything that a fitted calibrator answers."""
    scores = probe(calibrator) if scores is None else scores
    return {name: getattr(calibrator, name)(scores) for name in predictions(calibrator)}


def predictions(calibrator: Any) -> list[str]:
    """The names of its methods that predict."""
    return [name for name in dir(type(calibrator)) if name.startswith("predict") and hasattr(calibrator, name)]


def rate_interval(calibrator: Any, scores: Any) -> np.ndarray:
    """Limits of the rate of each score's region; `predict_interval` moves them where predictions vary in a region."""
    limits = calibrator.predict_interval(scores)
    if not isinstance(calibrator, RegionCalibrator):
        return limits
    of_rates = calibrator.predict_rate_interval(scores)
    if not isinstance(calibrator, AnchoredCalibrator):
        np.testing.assert_array_equal(of_rates, limits)
    return of_rates


def assert_same(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> None:
    """Same answers, to the last bit."""
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def fit(model: Any, n_rows: int = N_ROWS, seed: int = 0) -> Any:
    """Fit to the data made for it."""
    rows, y, options = data_for(model, n_rows, seed)
    return model.fit(rows, y, **options)


def fitted(calibrator: Any, scores: Any = None, y: Any = None, **options: Any) -> Any:
    if scores is None and y is None and not options:
        return fit(clone(calibrator))
    default_scores, default_y = make_data()
    return clone(calibrator).fit(default_scores if scores is None else scores, default_y if y is None else y, **options)


def expected(calibrator: Any) -> dict[str, np.ndarray]:
    """What it answers when fitted to the data made for it; fitted once for all checks that compare with it."""
    if id(calibrator) not in _EXPECTED:
        _EXPECTED[id(calibrator)] = answers(ready(calibrator))
    return _EXPECTED[id(calibrator)]


def ready(calibrator: Any) -> Any:
    """Fitted to the data made for it, once for all checks that only ask it."""
    if id(calibrator) not in _READY:
        _READY[id(calibrator)] = fitted(calibrator)
    return _READY[id(calibrator)]


# every calibrator of the lists lives as long as the tests
_EXPECTED: dict[int, dict[str, np.ndarray]] = {}
_READY: dict[int, Any] = {}


def assert_fits_same(calibrator: Any, *variants: tuple[Any, Any], **options: Any) -> None:
    """All variants of the data give one model."""
    models = [fitted(calibrator, scores, y, **options) for scores, y in variants]
    for model in models[1:]:
        assert_same(answers(models[0]), answers(model, probe(models[0])))


# Every form in which the same scores and labels may come

SCORE_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda scores: scores.tolist(),
    "tuple": lambda scores: tuple(scores.tolist()),
    "list of numpy scalars": lambda scores: list(scores),
    "read-only": lambda scores: _frozen(scores),
    "every second row": lambda scores: np.repeat(scores, 2)[::2],
    "reversed twice": lambda scores: scores[::-1].copy()[::-1],
    "column of C matrix": lambda scores: np.column_stack([scores, -scores, scores])[:, 2],
    "row of Fortran matrix": lambda scores: np.asfortranarray(np.vstack([scores, -scores]))[0],
    "unaligned": lambda scores: _unaligned(scores),
    "big-endian": lambda scores: scores.astype(">f8"),
    "long double": lambda scores: scores.astype(np.longdouble),
    "object": lambda scores: scores.astype(object),
    "unmasked masked array": lambda scores: np.ma.masked_array(scores, mask=False),
    "memoryview": lambda scores: memoryview(scores.copy()),
    "(n, 1)": lambda scores: scores[:, None],
    "(n, 1) Fortran": lambda scores: np.asfortranarray(np.column_stack([scores, scores]))[:, :1],
    "pandas": pd.Series,
    "pandas, shuffled index": lambda scores: pd.Series(scores, index=np.random.default_rng(1).permutation(scores.size)),
    "pandas, duplicate index": lambda scores: pd.Series(scores, index=np.zeros(scores.size, dtype=int)),
    "pandas, text index": lambda scores: pd.Series(scores, index=[f"row {i}" for i in range(scores.size)][::-1]),
    "pandas Float64": lambda scores: pd.Series(scores, dtype="Float64"),
    "pandas Arrow": lambda scores: pd.Series(scores, dtype=pd.ArrowDtype(pa.float64())),
    "pandas category": lambda scores: pd.Series(scores, dtype="category"),
    "pandas sparse": lambda scores: pd.Series(scores, dtype=pd.SparseDtype("float64", 0.0)),
    "pandas array": lambda scores: pd.array(scores, dtype="Float64"),
    "pandas Index": pd.Index,
    "pandas frame": lambda scores: pd.DataFrame({"score": scores}),
    "pandas frame, unnamed column": lambda scores: pd.DataFrame(scores),
    "polars": lambda scores: pl.Series("score", scores),
    "polars, chunked": lambda scores: pl.concat([pl.Series(scores[:100]), pl.Series(scores[100:])], rechunk=False),
    "polars frame": lambda scores: pl.DataFrame({"score": scores}),
    "pyarrow": pa.array,
    "pyarrow, chunked": lambda scores: pa.chunked_array([scores[:100], scores[100:]]),
    "pyarrow, sliced": lambda scores: pa.array(np.concatenate([[0.0], scores]))[1:],
    "pyarrow dictionary": lambda scores: pa.array(scores).dictionary_encode(),
    "pyarrow table": lambda scores: pa.table({"score": scores}),
}

PROBABILITY_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "(n, 2)": lambda p: p,
    "(n, 2) Fortran": np.asfortranarray,
    "(n, 2) lists": lambda p: p.tolist(),
    "(n, 2) tuples": lambda p: tuple(map(tuple, p.tolist())),
    "(n, 2) pandas": lambda p: pd.DataFrame(p, columns=["no", "yes"], index=np.zeros(len(p), dtype=int)),
    "(n, 2) pandas, unnamed columns": pd.DataFrame,
    "(n, 2) pandas, one name twice": lambda p: pd.DataFrame(p, columns=["p", "p"]),
    "(n, 2) pandas Float64": lambda p: pd.DataFrame(p, columns=["no", "yes"]).astype("Float64"),
    "(n, 2) polars": lambda p: pl.DataFrame(p, schema=["no", "yes"]),
    "(n, 2) pyarrow": lambda p: pa.table({"no": p[:, 0], "yes": p[:, 1]}),
}

LABEL_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda y: y.tolist(),
    "tuple of bools": lambda y: tuple((y == 1).tolist()),
    "bool": lambda y: y == 1,
    "uint8": lambda y: y.astype(np.uint8),
    "int8": lambda y: y.astype(np.int8),
    "float": lambda y: y.astype(np.float64),
    "float16": lambda y: y.astype(np.float16),
    "big-endian": lambda y: y.astype(">i4"),
    "read-only": lambda y: _frozen(y),
    "every second row": lambda y: np.repeat(y, 2)[::2],
    "object": lambda y: y.astype(object),
    "object bools": lambda y: (y == 1).astype(object),
    "minus one and one": lambda y: 2 * y - 1,
    "minus one and one, float32": lambda y: (2 * y - 1).astype(np.float32),
    "(n, 1)": lambda y: y[:, None],
    "unmasked masked array": lambda y: np.ma.masked_array(y, mask=False),
    "pandas, shuffled index": lambda y: pd.Series(y, index=np.random.default_rng(2).permutation(y.size)),
    "pandas, duplicate index": lambda y: pd.Series(y, index=np.zeros(y.size, dtype=int)),
    "pandas Int64": lambda y: pd.Series(y, dtype="Int64"),
    "pandas boolean": lambda y: pd.Series(y == 1, dtype="boolean"),
    "pandas Float64": lambda y: pd.Series(y, dtype="Float64"),
    "pandas category": lambda y: pd.Series(y, dtype="category"),
    "pandas Categorical": pd.Categorical,
    "pandas frame": lambda y: pd.DataFrame({"y": y}),
    "polars": lambda y: pl.Series("y", y),
    "polars bool": lambda y: pl.Series("y", y == 1),
    "polars frame": lambda y: pl.DataFrame({"y": y}),
    "pyarrow": pa.array,
    "pyarrow bool": lambda y: pa.array(y == 1),
    "pyarrow, chunked": lambda y: pa.chunked_array([y[:100], y[100:]]),
    "pyarrow bool, chunked": lambda y: pa.chunked_array([(y == 1)[:100], (y == 1)[100:]]),
}

NAMED_LABEL_FORMS: dict[str, tuple[Callable[[np.ndarray], Any], Any]] = {
    "text list": (lambda y: np.where(y == 1, "yes", "no").tolist(), "yes"),
    "text": (lambda y: np.where(y == 1, "yes", "no"), "yes"),
    "text, positive sorts first": (lambda y: np.where(y == 1, "bad", "good"), "bad"),
    "bytes": (lambda y: np.where(y == 1, b"yes", b"no"), b"yes"),
    "object text": (lambda y: np.where(y == 1, "yes", "no").astype(object), "yes"),
    "pandas text": (lambda y: pd.Series(np.where(y == 1, "yes", "no"), index=y[::-1]), "yes"),
    "pandas category": (lambda y: pd.Series(np.where(y == 1, "yes", "no"), dtype="category"), "yes"),
    "pandas ordered category": (lambda y: _ordered(np.where(y == 1, "low", "high")), "low"),
    "polars text": (lambda y: pl.Series(np.where(y == 1, "yes", "no")), "yes"),
    "polars categorical": (lambda y: pl.Series(np.where(y == 1, "yes", "no"), dtype=pl.Categorical), "yes"),
    "polars enum": (lambda y: pl.Series(np.where(y == 1, "yes", "no"), dtype=pl.Enum(["yes", "no"])), "yes"),
    "pyarrow text": (lambda y: pa.array(np.where(y == 1, "yes", "no")), "yes"),
    "pyarrow dictionary": (lambda y: pa.array(np.where(y == 1, "yes", "no")).dictionary_encode(), "yes"),
    "one and two": (lambda y: y + 1, 2),
    "one and two, positive is one": (lambda y: 2 - y, 1),
    "zero is positive": (lambda y: 1 - y, 0),
    "minus one is positive": (lambda y: 1 - 2 * y, -1),
    "False is positive": (lambda y: y == 0, False),
    "floats": (lambda y: np.where(y == 1, 0.25, -3.5), 0.25),
    "int and float pos_label": (lambda y: y + 1, 2.0),
    "large ints": (lambda y: y + 2**60, 2**60 + 1),
}


def _frozen(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def _unaligned(array: np.ndarray) -> np.ndarray:
    raw = np.zeros(array.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(array.dtype)
    view[:] = array
    return view


def _ordered(labels: np.ndarray) -> pd.Series:
    return pd.Series(pd.Categorical(labels, categories=["never", "low", "high"], ordered=True))


# scikit-learn's contract


@check()
def check_clone_has_equal_parameters_and_no_fitted_state(calibrator: Any) -> None:
    copied = clone(ready(calibrator))
    assert repr(copied.get_params()) == repr(calibrator.get_params())
    try:
        getattr(copied, predictions(copied)[0])(probe(copied))
    except NotFittedError:
        return
    raise AssertionError("a clone is not fitted")


@check()
def check_set_params_takes_what_get_params_gave(calibrator: Any) -> None:
    params = calibrator.get_params(deep=False)
    other = clone(calibrator).set_params(**params)
    for name, value in params.items():
        assert getattr(other, name) is value, name


@check()
def check_constructor_stores_parameters_as_given(calibrator: Any) -> None:
    params = calibrator.get_params(deep=False)
    made = type(calibrator)(**params)
    for name, value in params.items():
        assert getattr(made, name) is value, name


@check()
def check_fit_and_predict_leave_parameters_untouched(calibrator: Any) -> None:
    model = clone(calibrator)
    before = model.get_params(deep=False)
    shown = repr(before)
    answers(fit(model))
    assert all(getattr(model, name) is value for name, value in before.items())
    assert repr(model.get_params(deep=False)) == shown


@check()
def check_fit_returns_self(calibrator: Any) -> None:
    model = clone(calibrator)
    assert fit(model) is model


@check()
def check_everything_learned_ends_in_an_underscore_or_begins_with_one(calibrator: Any) -> None:
    learned = vars(ready(calibrator)).keys() - vars(clone(calibrator)).keys()
    assert learned
    assert all(name.endswith("_") or name.startswith("_") for name in learned)


@check()
def check_refit_equals_a_fresh_fit(calibrator: Any) -> None:
    model = fit(clone(calibrator), N_ROWS // 2, seed=5)
    assert_same(answers(fit(model)), expected(calibrator))


@check("labels")
def check_refused_refit_leaves_the_model_as_it_was(calibrator: Any) -> None:
    rows, y, options = data_for(calibrator)
    model = fitted(calibrator)
    before, held = answers(model), dict(vars(model))
    bad_rows = rows.copy()
    bad_rows[-1] = np.nan
    one_kind_more = y.copy()
    one_kind_more[-1] = y.max() + 1
    for bad in [(bad_rows, y), (rows, one_kind_more), (rows, y[:-1]), (rows[:0], y[:0]), (None, y)]:
        try:
            model.fit(*bad, **options)
        except (ValueError, TypeError):
            assert vars(model).keys() == held.keys()
            assert all(getattr(model, name) is value for name, value in held.items())
            assert_same(answers(model), before)
        else:
            raise AssertionError("bad data was taken")


@check()
def check_predict_before_fit_raises_not_fitted(calibrator: Any) -> None:
    model = clone(calibrator)
    methods = predictions(model)
    assert methods
    assert not ABILITIES["scores"](calibrator) or {"predict", "predict_proba"} <= set(methods)
    for name in methods:
        try:
            getattr(model, name)(probe(model))
        except NotFittedError:
            continue
        raise AssertionError(f"{name} answered before fit")


@check()
def check_pickle_round_trip_answers_the_same(calibrator: Any) -> None:
    model = ready(calibrator)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert_same(answers(pickle.loads(pickle.dumps(model, protocol))), answers(model))


@check("json")
def check_json_round_trip_answers_the_same(calibrator: Any) -> None:
    model = ready(calibrator)
    text = json.dumps(model.to_dict(), allow_nan=False)
    restored = type(calibrator).from_dict(json.loads(text))
    assert_same(answers(restored), answers(model))
    np.testing.assert_array_equal(restored.classes_, model.classes_)
    assert json.dumps(restored.to_dict(), allow_nan=False) == text


@check()
def check_deep_copy_answers_the_same_and_is_independent(calibrator: Any) -> None:
    model = ready(calibrator)
    before = answers(model)
    copied = copy.deepcopy(model)
    assert_same(answers(copied), before)
    fit(copied, seed=9)
    assert_same(answers(model), before)


@check()
def check_repr_shows_the_class_and_can_be_made(calibrator: Any) -> None:
    assert repr(ready(calibrator)).startswith(type(calibrator).__name__)


# Nothing of the caller's is touched


@check()
def check_arrays_of_the_caller_are_unchanged(calibrator: Any) -> None:
    rows, y, options = data_for(calibrator)
    given = [rows, y, probe(calibrator), *options.values()]
    copies = [array.copy() for array in given]
    answers(clone(calibrator).fit(rows, y, **options), given[2])
    for array, before in zip(given, copies, strict=True):
        np.testing.assert_array_equal(array, before)
        assert array.flags.writeable


@check("scores")
def check_columns_and_weights_of_the_caller_are_unchanged(calibrator: Any) -> None:
    scores, y = make_data()
    given = [np.column_stack([1 - scores, scores]), np.ones(scores.size)]
    copies = [array.copy() for array in given]
    answers(fitted(calibrator, given[0], y), given[0])
    if ABILITIES["weights"](calibrator) and not draws_rows(calibrator):
        fitted(calibrator, scores, y, sample_weight=given[1])
    for array, before in zip(given, copies, strict=True):
        np.testing.assert_array_equal(array, before)
        assert array.flags.writeable


@check()
def check_later_changes_of_the_arrays_do_not_reach_the_model(calibrator: Any) -> None:
    rows, y, options = data_for(calibrator)
    model = clone(calibrator).fit(rows, y, **options)
    before = answers(model)
    for array in (rows, y, *options.values()):
        array[:] = 0
    assert_same(answers(model), before)


@check()
def check_changes_of_an_answer_do_not_reach_the_model(calibrator: Any) -> None:
    model = fitted(calibrator)
    before = answers(model)
    for array in answers(model).values():
        array[:] = 0
    assert_same(answers(model), before)


@check()
def check_global_random_state_is_unchanged(calibrator: Any) -> None:
    before = np.random.get_state()  # noqa: NPY002
    answers(fitted(calibrator))
    unseeded = clone(calibrator)
    if "random_state" in unseeded.get_params():
        unseeded.set_params(random_state=None)
    answers(fit(unseeded))
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]


@check()
def check_numpy_error_state_and_warning_filters_are_unchanged(calibrator: Any) -> None:
    errors, filters = np.geterr(), list(warnings.filters)
    answers(fitted(calibrator))
    assert np.geterr() == errors
    assert warnings.filters == filters


@check()
def check_strict_numpy_error_state_changes_nothing(calibrator: Any) -> None:
    with np.errstate(all="raise"):
        assert_same(answers(fitted(calibrator)), expected(calibrator))


# The same data in another form is the same data


@check("scores")
def check_float32_scores_are_compared_in_float64(calibrator: Any) -> None:
    scores, y = make_data()
    single = scores.astype(np.float32)
    assert_fits_same(calibrator, (single.astype(np.float64), y), (single, y))
    model = ready(calibrator)
    assert_same(answers(model, single), answers(model, single.astype(np.float64)))


@check("scores")
def check_float16_scores_equal_their_float64_values(calibrator: Any) -> None:
    scores, y = make_data()
    half = scores.astype(np.float16)
    assert_fits_same(calibrator, (half.astype(np.float64), y), (half, y))


@check("scores", "ties")
def check_whole_number_and_bool_scores_equal_their_float64_values(calibrator: Any) -> None:
    scores, y = make_data()
    two_point = scores > 0.5
    forms = [two_point.astype(kind) for kind in (np.float64, np.int64, np.int8, np.uint64, bool)]
    forms += [pd.Series(two_point, dtype="boolean"), pd.Series(forms[1], dtype="Int64"), two_point.tolist()]
    assert_fits_same(calibrator, *((form, y) for form in forms))


@check("scores")
def check_probability_columns_equal_the_positive_column(calibrator: Any) -> None:
    scores, y = make_data()
    columns = np.column_stack([1 - scores, scores])
    assert_fits_same(calibrator, (scores, y), (scores[:, None], y), (columns, y))
    model = ready(calibrator)
    assert_same(answers(model, scores), answers(model, columns))
    assert_same(answers(model, scores), answers(model, scores[:, None]))


@check("scores", "ignores order")
def check_order_of_calibration_rows_does_not_matter(calibrator: Any) -> None:
    scores, y = make_data()
    order = np.random.default_rng(3).permutation(scores.size)
    assert_fits_same(calibrator, (scores, y), (scores[order], y[order]), (scores[::-1], y[::-1]))


@check("labels")  # ratios sum over kernels, whose last bit may depend on how many rows come along
def check_each_answer_depends_on_its_own_score_alone(calibrator: Any) -> None:
    model = ready(calibrator)
    scores = probe(model)
    together = answers(model, scores)
    order = np.random.default_rng(4).permutation(len(scores))
    assert_same(answers(model, scores[order]), {name: array[order] for name, array in together.items()})
    for row in range(0, len(scores), 40):
        assert_same(answers(model, scores[row : row + 1]), {k: a[row : row + 1] for k, a in together.items()})


@check("scores", "ties")
def check_minus_zero_is_zero(calibrator: Any) -> None:
    scores, y = make_data()
    scores[:60] = 0.0
    mixed = scores.copy()
    mixed[:60:2] = -0.0
    assert_fits_same(calibrator, (scores, y), (mixed, y))
    model = fitted(calibrator, scores, y)
    assert_same(answers(model, [-0.0]), answers(model, [0.0]))


# Determinism and threads


@check()
def check_same_data_and_random_state_give_the_same_answers(calibrator: Any) -> None:
    assert_same(answers(fitted(calibrator)), expected(calibrator))


@check("draws rows")
def check_every_kind_of_random_state_repeats_itself(calibrator: Any) -> None:
    for make in (lambda: 7, lambda: np.random.default_rng(7), lambda: np.random.RandomState(7)):
        models = [fit(clone(calibrator).set_params(random_state=make())) for _ in range(2)]
        assert_same(answers(models[0]), answers(models[1], probe(models[0])))


@check("scores", "draws rows")
def check_another_random_state_draws_other_rows(calibrator: Any) -> None:
    models = [fit(clone(calibrator).set_params(random_state=seed)) for seed in range(5)]
    assert len({model.predict(probe(models[0])).tobytes() for model in models}) > 1


@check("n_jobs")
def check_number_of_threads_never_changes_an_answer(calibrator: Any) -> None:
    with mock.patch.object(_chunks, "THREAD_ROWS", 50):
        for n_jobs in (2, 3, 7, -1):
            assert_same(answers(fitted(clone(calibrator).set_params(n_jobs=n_jobs))), expected(calibrator))


@check()
def check_many_threads_may_predict_at_once(calibrator: Any) -> None:
    model = ready(calibrator)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: answers(model), range(16)):
            assert_same(found, expected(calibrator))


# Labels


@check("scores", "pos_label")
def check_other_class_as_positive_mirrors_the_columns(calibrator: Any) -> None:
    scores, y = make_data()
    plain = fitted(calibrator, scores, y)
    mirrored = fitted(clone(calibrator).set_params(pos_label=0), scores, 1 - y)
    np.testing.assert_array_equal(plain.classes_, mirrored.classes_)
    left, right = answers(plain), answers(mirrored, probe(plain))
    np.testing.assert_array_equal(left["predict"], right["predict"])
    for name in left.keys() & {"predict_proba", "predict_set"}:
        np.testing.assert_array_equal(left[name], right[name][:, ::-1])
    if "predict_interval" in left:
        np.testing.assert_array_equal(left["predict_interval"], right["predict_interval"])


@check("scores", "pos_label")
def check_of_two_columns_the_positive_label_picks_its_own(calibrator: Any) -> None:
    scores, y = make_data()
    expected = fitted(calibrator, scores, y)
    names = np.where(y == 1, "bad", "good")  # "bad" sorts first, so its probabilities stand in the first column
    model = fitted(clone(calibrator).set_params(pos_label="bad"), np.column_stack([scores, 1 - scores]), names)
    points = make_data(seed=6)[0]
    np.testing.assert_array_equal(model.predict(np.column_stack([points, 1 - points])), expected.predict(points))


@check("scores", "classes")
def check_classes_in_any_order_are_sorted(calibrator: Any) -> None:
    for classes in [(0, 1), (1, 0), [1, 0], np.array([0, 1])]:
        model = fitted(clone(calibrator).set_params(classes=classes))
        np.testing.assert_array_equal(model.classes_, [0, 1])
        assert_same(answers(model), expected(calibrator))


# Numbers


@check("scores")
def check_probabilities_have_one_row_per_score_and_add_up_to_one(calibrator: Any) -> None:
    model = ready(calibrator)
    scores = probe(model)
    values, columns = model.predict(scores), model.predict_proba(scores)
    assert values.shape == scores.shape
    assert columns.shape == (scores.size, 2)
    assert values.dtype == columns.dtype == np.float64
    assert ((columns >= 0) & (columns <= 1)).all()
    np.testing.assert_array_equal(columns.sum(axis=1), np.ones(scores.size))
    np.testing.assert_array_equal(columns[:, list(model.classes_).index(1)], values)


@check("scores")
def check_empty_batch_gives_an_empty_answer(calibrator: Any) -> None:
    model = ready(calibrator)
    for empty in ([], np.empty(0), np.empty((0, 1)), np.empty((0, 2)), pd.Series([], dtype=float), pl.Series([])):
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


@check("interval", "confidence_level", "nested")
def check_higher_confidence_contains_lower(calibrator: Any) -> None:
    levels = [0.01, 0.5, 0.8, 0.9, 0.99, 0.999999, 1 - 1e-12]
    models = [fitted(clone(calibrator).set_params(confidence_level=level)) for level in levels]
    limits = np.array([model.predict_interval(probe(models[0])) for model in models])
    assert (np.diff(limits[..., 0], axis=0) <= 0).all()
    assert (np.diff(limits[..., 1], axis=0) >= 0).all()


@check("scores", "interval", "mirrors")
def check_flipped_labels_mirror_values_and_intervals(calibrator: Any) -> None:
    scores, y = make_data()
    model, flipped = fitted(calibrator, scores, y), fitted(calibrator, scores, 1 - y)
    points = probe(model)
    np.testing.assert_allclose(flipped.predict(points), 1 - model.predict(points), rtol=0, atol=LIMIT_ACCURACY)
    mirrored = 1 - model.predict_interval(points)[:, ::-1]
    np.testing.assert_allclose(flipped.predict_interval(points), mirrored, rtol=0, atol=LIMIT_ACCURACY)


@check("scores", "interval", "classes", "one class")
def check_one_class_gives_one_sided_intervals(calibrator: Any) -> None:
    scores, y = make_data()
    model = clone(calibrator).set_params(classes=(0, 1))
    all_positive = rate_interval(model.fit(scores, np.ones_like(y)), scores)
    assert (all_positive[:, 1] == 1.0).all()
    assert all_positive[:, 0].max() > 0.0
    all_negative = rate_interval(model.fit(scores, np.zeros_like(y)), scores)
    assert (all_negative[:, 0] == 0.0).all()
    assert all_negative[:, 1].min() < 1.0


@check("scores", "set", "ties")
def check_sets_are_never_empty_and_grow_with_coverage(calibrator: Any) -> None:
    scores, y = make_data()
    sure = np.concatenate([np.zeros(2000), np.ones(2000)])
    model = fitted(calibrator, np.concatenate([scores, sure]), np.concatenate([y, sure.astype(int)]))
    points = np.concatenate([scores, [0.0, 1.0]])
    sets = [model.predict_set(points, coverage=coverage) for coverage in (0.5, 0.9, 0.99)]
    assert all(found.shape == (points.size, 2) and found.dtype == np.bool_ for found in sets)
    assert all(found.any(axis=1).all() for found in sets)
    assert all((larger >= smaller).all() for smaller, larger in pairwise(sets))


@check("scores", "interval", "set", "ties")
def check_sets_follow_from_the_intervals(calibrator: Any) -> None:
    scores, y = make_data()
    sure = np.concatenate([np.zeros(2000), np.ones(2000)])
    model = fitted(calibrator, np.concatenate([scores, sure]), np.concatenate([y, sure.astype(int)]))
    points = probe(model)
    lower, upper = rate_interval(model, points).T
    sets = model.predict_set(points, coverage=0.75)  # 0.75 and 0.25 are doubles
    np.testing.assert_array_equal(sets[:, 0], ~(lower >= 0.75))
    np.testing.assert_array_equal(sets[:, 1], ~(upper <= 0.25))


def each_once(calibrator: Any, rows: int) -> dict[str, Any]:
    """Weights of 1, where rows without weights would be drawn."""
    return {"sample_weight": np.ones(rows)} if draws_rows(calibrator) else {}


@check("scores", "weighs rows", "ties", "weights")
def check_doubled_data_equals_weight_two(calibrator: Any) -> None:
    scores, y = make_data()
    once = each_once(calibrator, 2 * scores.size)
    doubled = fitted(calibrator, np.concatenate([scores, scores]), np.concatenate([y, y]), **once)
    weighted = fitted(calibrator, scores, y, sample_weight=np.full(scores.size, 2))
    assert_same(answers(doubled), answers(weighted, probe(doubled)))


@check("scores", "weighs rows", "ties", "weights")
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
    model = fitted(calibrator, scores, y)
    # exact in doubles, so that ties stay ties; far outside [0, 1], like logits
    for rescale in (lambda s: 1024 * s, lambda s: s * 2.0**-40, lambda s: 2.0**900 * s):
        rescaled = fitted(calibrator, rescale(scores), y)
        points = probe(model)
        assert_same(answers(model, points), answers(rescaled, rescale(points)))


@check("scores", "ranks only")
def check_scores_beyond_those_seen_get_the_end_bins(calibrator: Any) -> None:
    model = ready(calibrator)
    low, high = make_data()[0].min(), make_data()[0].max()
    largest = np.finfo(np.float64).max
    warns = nullcontext() if model.score_range_seen_ is None else pytest.warns(CalibrantWarning, match="of one scale")
    with warns:
        assert_same(answers(model, [-largest, -5.0]), answers(model, [low, low]))
        assert_same(answers(model, [5.0, largest]), answers(model, [high, high]))


# Regions and what was seen in them


@check("scores", "tally", "ties")
def check_fit_and_predict_agree_on_the_side_of_every_edge(calibrator: Any) -> None:
    scores, y = make_data(6000)  # enough for the look-up tables of the kernels
    scores = np.round(scores, 2)  # many scores lie on edges
    model = fitted(calibrator, scores, y)
    if draws_rows(calibrator):
        model = type(calibrator).from_tally(
            model.partition_, Tally.from_data(model.partition_, scores, y), interval=calibrator.interval
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
    assert_same(answers(type(calibrator).from_tally(model.partition_, model.tally_, **params)), answers(model))


@check("scores", "tally")
def check_merged_tallies_equal_one_fit(calibrator: Any) -> None:
    scores, y = make_data()
    partition = ready(calibrator).partition_
    whole = Tally.from_data(partition, scores, y)
    parts = [
        Tally.from_data(partition, scores[rows], y[rows]) for rows in (slice(0, 7), slice(7, 200), slice(200, None))
    ]
    assert parts[2] + parts[0] + parts[1] == whole
    assert sum(parts) == whole


@check("scores", "tally", "ties")
def check_region_without_rows_predicts_one_half_and_promises_nothing(calibrator: Any) -> None:
    partition = Partition.fixed_width(3)
    tally = Tally.from_counts([50, 0, 50], [5, 0, 45], partition=partition)
    names = ("interval", "value", "confidence_level")
    model = type(calibrator).from_tally(partition, tally, **{name: getattr(calibrator, name) for name in names})
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
        n_cut = calibrator.split
        if isinstance(n_cut, float):  # which keeps each row with that probability
            draw = Draw.of_share(calibrator.random_state, n_cut)
            n_cut = int(draw.chosen(position_keys(0, N_ROWS)).sum())
    assert model.tally_.n_rows == N_ROWS - n_cut
