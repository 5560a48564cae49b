"""Curves that need exp or a division: each engine gives what `predict` gives, to 12 digits."""

import numpy as np
import pytest

from answers import worlds
from calibrant import (
    BetaCalibrator,
    BlendCalibrator,
    Calibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
)
from calibrant.errors import InvalidValueError
from calibrant.export import export_table, to_onnx, to_python, to_sql
from calibrant.sample.sql.dialects import DIALECTS

pytestmark = pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen

CURVES = {
    "platt": PlattCalibrator(),
    "temperature": TemperatureCalibrator(),
    "temperature of logits": TemperatureCalibrator(scale="logit"),
    "beta": BetaCalibrator(),
    "isotonic": IsotonicCalibrator(),
    "blend": BlendCalibrator(),
}
SCORES = [0.0, 1e-300, 1e-17, 1e-9, 1e-4, 0.1, 1 / 3, 0.5, 0.77, 1 - 1e-9, 1.0]
OTHERS = [-40.0, -3.0, 2.0, 700.0]


def fitted(name):
    _, scores, y = worlds.data()
    return CURVES[name].fit(scores, y)


def by_sql(engine, calibrator, scores):
    spelling = DIALECTS[engine.name]
    expression = to_sql(calibrator, dialect=engine.name, outputs=["calibrated"])
    rows = " UNION ALL ".join(
        f"SELECT {i} AS id, {spelling.number(s)} AS score" for i, s in enumerate(scores)
    )
    text = "\n".join(line for line in expression.splitlines() if not line.startswith("--"))
    found = engine.query(f"SELECT id, {text} FROM ({rows}) AS t ORDER BY id")
    return [value for _, value in found]


def by_join(engine, calibrator, scores):
    spelling = DIALECTS[engine.name]
    rows = " UNION ALL ".join(
        f"SELECT {i} AS id, {spelling.number(s)} AS score" for i, s in enumerate(scores)
    )
    text = to_sql(
        calibrator, dialect=engine.name, outputs=["calibrated"], table="given", search="join"
    )
    _, found = text.split("WITH ", 1)
    found = engine.query(f"WITH {spelling.name('given')} AS ({rows}), {found} ORDER BY id")
    return [value for *_, value in found]


def by_onnx(calibrator, scores):
    import onnxruntime

    model = to_onnx(calibrator, outputs=["calibrated"]).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"score": np.array(scores)})[0]


def by_python(calibrator, scores):
    space = {}
    exec(to_python(calibrator, outputs=["calibrated"]), space)
    return [space["calibrate"](score)["calibrated"] for score in scores]


@pytest.mark.parametrize("name", CURVES)
def test_engine_gives_twelve_digits(engine, name):
    calibrator = fitted(name)
    scores = SCORES if name in ("beta", "temperature") else [*SCORES, *OTHERS]
    evaluate = {"onnx": by_onnx, "python": by_python}.get(engine.name)
    found = by_sql(engine, calibrator, scores) if evaluate is None else evaluate(calibrator, scores)
    np.testing.assert_allclose(
        np.array(found, dtype=float), calibrator.predict(scores), rtol=1e-12, atol=0.0
    )


@pytest.mark.parametrize("name", CURVES)
def test_a_join_gives_twelve_digits(database, name):
    """A curve with a formula has one piece."""
    calibrator = fitted(name)
    scores = SCORES if name in ("beta", "temperature") else [*SCORES, *OTHERS]
    found = by_join(database, calibrator, scores)
    np.testing.assert_allclose(
        np.array(found, dtype=float), calibrator.predict(scores), rtol=1e-12, atol=0.0
    )


def isotonic_world(n_scores):
    """A curve with many corners, and scores on corners, between them, and beyond."""
    generator = np.random.default_rng(5)
    scores = generator.beta(0.5, 2.0, size=3_000)
    calibrator = IsotonicCalibrator().fit(scores, generator.uniform(size=3_000) < scores**1.5)
    corners = calibrator.thresholds_[:60]
    new = [generator.uniform(size=n_scores), corners, (corners[1:] + corners[:-1]) / 2, [-3.0, 7.5]]
    return calibrator, np.concatenate(new).tolist()


def test_isotonic_curves_agree_bit_for_bit(engine):
    """Straight pieces need one difference, one product and one sum, which no engine rounds
    differently.
    """
    calibrator, scores = isotonic_world(300)
    evaluate = {"onnx": by_onnx, "python": by_python}.get(engine.name)
    found = by_sql(engine, calibrator, scores) if evaluate is None else evaluate(calibrator, scores)
    np.testing.assert_array_equal(np.array(found, dtype=float), calibrator.predict(scores))


def test_isotonic_curves_agree_bit_for_bit_by_a_join(database):
    calibrator, scores = isotonic_world(300)
    found = by_join(database, calibrator, scores)
    np.testing.assert_array_equal(np.array(found, dtype=float), calibrator.predict(scores))


def curve_of_many_pieces():
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=20_000)
    return Calibrator("beta").fit(scores, rng.uniform(size=20_000) < scores**2)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_sql_of_a_curve_is_short_enough_to_review(dialect):
    """One line for each piece of a curve, and one for each bin; a formula is a few lines."""
    calibrator = curve_of_many_pieces()
    n_pieces = export_table(calibrator).steps[0].regions.size
    assert n_pieces > 50
    short = to_sql(calibrator, dialect=dialect, table="scores", search="join")
    n_bins = calibrator.guarantee_.counts.size
    assert len(short.splitlines()) <= n_pieces + n_bins + 25
    limit = DIALECTS[dialect].number(float(export_table(calibrator).values("lower")[-1]))
    assert short.count(limit) == 1  # what pieces of a bin have in common is written once
    for name in ("platt", "temperature", "beta"):
        assert len(to_sql(fitted(name), dialect=dialect, table="scores").splitlines()) < 15


def test_a_join_needs_a_table():
    with pytest.raises(InvalidValueError) as refused:
        to_sql(fitted("isotonic"), dialect="duckdb", search="join")
    assert refused.value.parameter == "search"


def test_the_pieces_have_a_name_that_the_table_does_not_have():
    text = to_sql(
        fitted("isotonic"), dialect="duckdb", table="main.Calibrant_Pieces", search="join"
    )
    assert 'WITH "calibrant_pieces_" (' in text


def test_isotonic_curves_agree_bit_for_bit_at_many_scores():
    calibrator, scores = isotonic_world(20_000)
    np.testing.assert_array_equal(by_python(calibrator, scores), calibrator.predict(scores))
    np.testing.assert_array_equal(by_onnx(calibrator, scores), calibrator.predict(scores))


@pytest.mark.parametrize("name", CURVES)
def test_every_constant_of_an_onnx_model_is_used(name):
    graph = to_onnx(fitted(name)).graph  # onnxruntime would warn of others
    assert {each.name for each in graph.initializer} <= {
        used for node in graph.node for used in node.input
    }


def test_scores_outside_the_range_get_nothing():
    calibrate = {}
    exec(to_python(fitted("beta")), calibrate)
    assert calibrate["calibrate"](1.5) == {"calibrated": None}
    assert np.isnan(by_onnx(fitted("beta"), [-0.1, np.nan])).all()
    assert np.isnan(by_onnx(fitted("platt"), [np.nan])).all()


def test_curves_have_no_other_outputs():
    with pytest.raises(InvalidValueError, match="no confidence intervals"):
        to_python(fitted("platt"), outputs=["lower"])
