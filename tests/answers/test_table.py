"""What can be exported and what cannot, the choice of outputs, and the forms that are not SQL."""

import contextlib
import json
import sqlite3
from typing import ClassVar

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from answers import worlds
from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    ClassWiseCalibrator,
    Partition,
    ScoreCalibrator,
    VennAbersCalibrator,
    scored,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.calibrators.curve_calibrator import CurveCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError, NoTableError
from calibrant.export import DIALECTS, export_table, to_onnx, to_python, to_sql
from calibrant.intervals import MonotoneBand
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import Number

pytestmark = pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen

EXPORTS = (
    to_onnx,
    to_python,
    lambda calibrator, **options: to_sql(calibrator, dialect="sqlite", **options),
)


def python_function(calibrator, **options):
    space = {}
    exec(to_python(calibrator, **options), space)
    return space[options.get("name", "calibrate")]


class BaseRate(CurveCalibrator):
    """A calibrator that a user might write: one value for every score."""

    _learned: ClassVar[EntryTable] = {"rate": Entry(Number(), of="rate_")}

    def _learn(self, rows):
        return {"rate": rows.n_positive / rows.n_rows}

    def _curve(self, scores):
        return np.full(scores.size, self.rate_)


class ExportedBaseRate(BaseRate):
    """The same, with a table."""

    def _own_table(self, coverage):
        return self._curve_table(np.array([self.rate_]), None, coverage)


WITHOUT_TABLE = {
    "BaseRate": lambda scores, y: BaseRate().fit(scores, y),
    "bins of PlattCalibrator's values": (
        lambda scores, y: ScalingBinningCalibrator(random_state=0).fit(scores, y)
    ),
    "FunctionPartition": (
        lambda scores, y: BinningCalibrator(partition=BY_RULE).fit(scores[:, None], y)
    ),
    "ClassWiseCalibrator": (
        lambda scores, y: ClassWiseCalibrator().fit(np.column_stack([1 - scores, scores]), y)
    ),
}
BY_RULE = Partition.from_function(lambda X: np.asarray(X)[:, 0] >= 0.5, [False, True])


def applied_by_duckdb(calibrator):
    with duckdb.connect() as connection:
        return calibrator.apply(scored(connection.sql("SELECT 0.5::DOUBLE AS p"), score="p"))


@pytest.mark.parametrize("render", [export_table, *EXPORTS, applied_by_duckdb])
@pytest.mark.parametrize("name", WITHOUT_TABLE)
def test_all_renderings_refuse_a_calibrator_without_a_table_alike(render, name):
    _, scores, y = worlds.data(200)
    fitted = WITHOUT_TABLE[name](scores, y)
    if render is applied_by_duckdb and not hasattr(fitted, "apply"):
        return
    with pytest.raises(NoTableError) as refused:
        render(fitted)
    assert refused.value.parameter == "calibrator"
    assert refused.value.rule == "have a table: bins or a curve of one score"
    assert refused.value.got == name


def test_what_does_not_predict_from_one_score_is_applied_nowhere():
    _, scores, y = worlds.data(200)
    fitted = WITHOUT_TABLE["FunctionPartition"](scores, y)
    with pytest.raises(NoTableError):
        fitted.apply(scored(pa.table({"p": scores}), score="p"))


def test_a_calibrator_that_gives_its_own_table_is_exported():
    _, scores, y = worlds.data(200)
    model = ExportedBaseRate().fit(scores, y)
    assert python_function(model)(0.3)["calibrated"] == y.mean() == model.predict([0.3])[0]


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("given", [BinningCalibrator, None, "model.json"])
def test_what_is_no_calibrator_is_refused(export, given):
    with pytest.raises(InvalidTypeError) as refused:
        export(given)
    assert refused.value.parameter == "calibrator"
    assert refused.value.got == type(given).__name__


def test_the_calibrator_of_one_model_takes_its_score_and_that_of_several_does_not():
    _, scores, y = worlds.data()
    rows = scores[:, None]
    one = CalibratedClassifier(LogisticRegression(), cv=None).fit(rows, y)
    module = {}
    exec(to_python(one.calibrator_), module)
    score = one.estimator_.predict_proba(rows)[:, 1]
    exported = [module["calibrate"](float(entry))["calibrated"] for entry in score]
    np.testing.assert_array_equal(exported, one.predict_proba(rows)[:, 1])
    several = CalibratedClassifier(LogisticRegression()).fit(rows, y)
    mean = np.mean([each.predict_proba(rows)[:, 1] for each in several.estimators_], axis=0)
    assert (
        np.abs(several.calibrator_.predict(mean) - several.predict_proba(rows)[:, 1]).max() > 1e-4
    )


def test_other_things_are_refused():
    _, scores, y = worlds.data()
    with pytest.raises(NotFittedError):
        export_table(BinningCalibrator())
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(scores[:, None], y)
    with pytest.raises(NoTableError) as refused:
        export_table(model)
    assert refused.value.advice.startswith("fit it with cv=None and export its calibrator_")
    assert export_table(model.calibrator_).calibrated.size > 1
    one = CalibratedClassifier(LogisticRegression(), cv=None).fit(scores[:, None], y)
    with pytest.raises(NoTableError) as refused:
        export_table(one)
    assert refused.value.advice == "export its calibrator_"
    with pytest.raises(InvalidValueError, match="coverage"):
        to_python(worlds.fixed_width(), coverage=1.0)


@pytest.mark.parametrize(
    ("segments", "error", "match"),
    [
        (("a", 1), InvalidTypeError, "int, str"),
        ((True, 2), InvalidTypeError, "bool, int"),
        (((1, 2),), InvalidTypeError, "tuple"),
        ((2**64,), InvalidValueError, "64 bits"),
        ((0.5, np.inf), InvalidValueError, "finite"),
    ],
)
def test_segments_that_no_column_holds(segments, error, match):
    parts = Partition.by_segment({segment: Partition.fixed_width(1) for segment in segments})
    with pytest.raises(error, match=match):
        export_table(worlds.counted(parts))


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_venn_abers_is_a_step_function(sqlite, loss):
    import onnxruntime

    _, scores, y = worlds.data(500)
    calibrator = VennAbersCalibrator(loss=loss).fit(scores, y)
    asked = worlds.edge_scores(calibrator)
    asked = asked[np.isfinite(asked)]
    right = calibrator.predict(asked)
    calibrate = python_function(calibrator)
    assert [calibrate(score) for score in asked.tolist()] == [
        {"calibrated": value} for value in right
    ]
    sqlite.load(pa.table({"id": range(asked.size), "score": asked}))
    rows = sqlite.query(to_sql(calibrator, dialect="sqlite", table="scores") + " ORDER BY id")
    assert [row[-1] for row in rows] == right.tolist()
    session = onnxruntime.InferenceSession(to_onnx(calibrator).SerializeToString())
    assert session.run(None, {"score": asked})[0].tolist() == right.tolist()
    for export in EXPORTS:
        with pytest.raises(InvalidValueError, match="no confidence intervals"):
            export(calibrator, outputs=["lower"])


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize(
    ("outputs", "error"),
    [
        ("calibrated", InvalidTypeError),
        (7, InvalidTypeError),
        ([], InvalidValueError),
        (["value"], InvalidValueError),
        (["lower", "lower"], InvalidValueError),
        ({"lower": "x", "upper": "X"}, InvalidValueError),
        ({"lower": ""}, InvalidTypeError),
        ({"lower": 3}, InvalidTypeError),
    ],
)
def test_outputs_that_there_are_not(export, outputs, error):
    with pytest.raises(error, match="outputs"):
        export(worlds.fixed_width(), outputs=outputs)


def test_coverage_decides_the_sets():
    calibrator = worlds.quantile()
    scores = np.linspace(0, 1, 50)
    for coverage in (0.5, 0.9, 0.99):
        calibrate = python_function(calibrator, coverage=coverage)
        found = [calibrate(score)["set"] for score in scores.tolist()]
        right = calibrator.predict_set(scores, coverage=coverage).tolist()
        assert found == [tuple(np.array([0, 1])[row].tolist()) for row in right]


def test_the_python_function_takes_numbers_of_any_kind():
    from decimal import Decimal
    from fractions import Fraction

    calibrator = worlds.tiny_and_huge()
    calibrate = python_function(calibrator, name="probability", outputs={"calibrated": "p"})
    right = {"p": calibrator.predict([0.25])[0]}
    assert [calibrate(s) for s in (0.25, Decimal("0.25"), Fraction(1, 4), np.float32(0.25))] == [
        right
    ] * 4
    assert calibrate(True) == calibrate(np.int64(1)) == {"p": calibrator.predict([1])[0]}
    nothing = {"p": None}
    for refused in (
        None,
        "0.25",
        b"1",
        float("nan"),
        float("inf"),
        -float("inf"),
        1j,
        [],
        10**400,
        2**53 + 1,
        object(),
    ):
        assert calibrate(refused) == nothing
    assert calibrate(2**53) == {"p": calibrator.predict([2**53])[0]}


def test_python_segments():
    calibrate = python_function(worlds.by_text(), outputs=["region"])
    assert (
        calibrate(0.5, "nowhere") == calibrate(0.5, None) == calibrate(0.5, []) == {"region": None}
    )
    assert calibrate(0.5, np.str_("")) == calibrate(0.5, "") != {"region": None}


@pytest.mark.parametrize("name", ["def", "1a", "a b", "_OUTPUTS", "float", "", None])
def test_names_of_functions_that_are_refused(name):
    with pytest.raises(InvalidValueError, match="name"):
        to_python(worlds.fixed_width(), name=name)


def test_onnx_models_carry_the_guarantee():
    calibrator = worlds.positive_first()
    model = to_onnx(calibrator)
    about = {entry.key: entry.value for entry in model.metadata_props}
    assert about["guarantee"] == " ".join(calibrator.guarantee_.sentence.split())
    assert calibrator.partition_.fingerprint in about["written_by"]
    assert json.loads(about["classes"]) == ["bad", "good"]
    assert float(about["coverage"]) == 0.95
    assert model.SerializeToString() == to_onnx(calibrator).SerializeToString()
    for name in ("score", "segment", "_leaf"):
        with pytest.raises(InvalidValueError, match="names other than"):
            to_onnx(calibrator, outputs={"lower": name})
    with pytest.raises(InvalidValueError, match="input_type"):
        to_onnx(calibrator, input_type="half")


@pytest.mark.parametrize("rows", [0, 1, 2, 65, 10_000])
def test_onnx_batches_of_any_size(rows):
    import onnxruntime

    calibrator = worlds.quantile()
    session = onnxruntime.InferenceSession(
        to_onnx(calibrator, outputs=["calibrated", "set"]).SerializeToString()
    )
    scores = np.random.default_rng(0).uniform(size=rows)
    value, sets = session.run(None, {"score": scores})
    assert np.array_equal(value, calibrator.predict(scores))
    assert np.array_equal(sets, calibrator.predict_set(scores))


def test_onnx_float_segments():
    import onnxruntime

    calibrator = worlds.counted(
        Partition.by_segment({0.1: Partition.fixed_width(2), -2.5: Partition.fixed_width(3)})
    )
    session = onnxruntime.InferenceSession(
        to_onnx(calibrator, outputs=["region"]).SerializeToString()
    )
    (regions,) = session.run(
        None, {"score": np.full(4, 0.9), "segment": np.array([0.1, -2.5, 7.0, np.nan])}
    )
    assert regions.tolist() == [1, 4, -1, -1]


def without_notes(text):
    """The code itself: what is said of numbers that were read from a file stands in a comment."""
    return [line for line in text.splitlines() if not line.startswith(("--", "#"))]


def test_saved_and_read_back_it_exports_the_same():
    for world in (worlds.quantile, worlds.by_text, worlds.online, worlds.shift):
        calibrator = world()
        copy = ScoreCalibrator.from_dict(json.loads(json.dumps(calibrator.to_dict())))
        segment = "s" if calibrator.partition_.has_segments else None
        for dialect in DIALECTS:
            both = [to_sql(one, dialect=dialect, segment=segment) for one in (copy, calibrator)]
            assert without_notes(both[0]) == without_notes(both[1])
        assert without_notes(to_python(copy)) == without_notes(to_python(calibrator))


@pytest.mark.parametrize("falls", [False, True])
def test_a_band_is_the_same_in_sql_onnx_and_python(falls):
    import onnxruntime

    rng = np.random.default_rng(0)
    scores = rng.integers(0, 200, 3_000) / 200
    y = rng.uniform(size=3_000) < (np.where(scores < 0.8, scores, 0.2) if falls else scores)
    band = MonotoneBand().fit(scores, y)
    assert band.is_refuted_ == falls
    near = [np.nextafter(band.knots_, end) for end in (-np.inf, np.inf)]
    at = np.unique(np.concatenate([band.knots_, *near, rng.uniform(-1, 2, 200)]))
    expected = band.predict_interval(at)
    module = {}
    exec(to_python(band), module)
    assert [list(module["calibrate"](score).values()) for score in at.tolist()] == expected.tolist()
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (s REAL)")
        connection.executemany("INSERT INTO t VALUES (?)", [(score,) for score in at.tolist()])
        found = connection.execute(to_sql(band, dialect="sqlite", score="s", table="t")).fetchall()
    assert [list(row[1:]) for row in found] == expected.tolist()
    with pytest.raises(InvalidValueError, match="be among lower, upper; got 'calibrated'"):
        to_sql(band, dialect="sqlite", score="s", outputs=["calibrated"])
    model = to_onnx(band)
    assert [output.name for output in model.graph.output] == ["lower", "upper"]
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    lower, upper = session.run(None, {"score": np.append(at, np.nan)})
    assert np.column_stack([lower, upper])[:-1].tolist() == expected.tolist()
    assert np.isnan([lower[-1], upper[-1]]).all()
