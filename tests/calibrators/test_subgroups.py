"""A calibrator with a guarantee for every subgroup."""

import io
import json
from functools import partial
from itertools import count

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from calibrant import (
    CalibratedClassifier,
    PlattCalibrator,
    Report,
    SubgroupCalibrator,
    audit,
    load_model,
    save_model,
)
from calibrant.calibrators.subgroups.boosted_logit import BoostedLogit, expit
from calibrant.calibrators.subgroups.corrected import three_parts
from calibrant.calibrators.subgroups.features import Feature, score_column
from calibrant.calibrators.subgroups.guarantee import WITHOUT_ATTRIBUTES
from calibrant.errors import InvalidTypeError, InvalidValueError, WeakGuaranteeWarning
from calibrant.export import to_onnx, to_python, to_sql
from calibrant.limits.error_budget import even_width_tails
from calibrant.params.attributes import read_attributes
from worlds.guarantees import assert_kept


def world(
    rng: np.random.Generator, n: int
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray, np.ndarray]:
    """Attributes, scores, true rates and labels: scores are off for old women, and for one region."""
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "age": np.round(rng.normal(50, 15, n)),
            "region": rng.choice(["n", "s", "e", None], n),
        }
    )
    scores = rng.beta(2, 5, n)
    logits = np.log(scores / (1 - scores))
    shift = 0.9 * ((frame["sex"] == "f") & (frame["age"] > 60)) - 0.7 * (frame["region"] == "e")
    rates = expit(logits + shift.to_numpy())
    return frame, scores, rates, (rng.random(n) < rates).astype(int)


def log_loss(rates: np.ndarray, predicted: np.ndarray) -> float:
    return float(-np.mean(rates * np.log(predicted) + (1 - rates) * np.log1p(-predicted)))


@pytest.fixture(scope="module")
def fitted():
    frame, scores, rates, y = world(np.random.default_rng(0), 6_000)
    return (
        SubgroupCalibrator(["sex", "age", "region"]).fit(scores, y, attributes=frame),
        frame,
        scores,
        rates,
        y,
    )


@pytest.mark.broad
def test_predictions_come_near_the_true_rates_and_no_subgroup_of_new_rows_is_proved_off():
    frame, scores, rates, y = world(np.random.default_rng(20), 12_000)
    calibrator = SubgroupCalibrator(["sex", "age", "region"]).fit(scores, y, attributes=frame)
    frame, scores, rates, y = world(np.random.default_rng(21), 6_000)
    predicted = calibrator.predict(scores, attributes=frame)
    least = log_loss(rates, rates)
    assert log_loss(rates, predicted) - least < 0.15 * (log_loss(rates, scores) - least)
    assert audit(y, scores, attributes=frame).subgroups
    assert not audit(y, predicted, attributes=frame).subgroups


def test_the_guarantee_is_a_table_of_subgroups(fitted):
    guarantee = fitted[0].guarantee_
    table = guarantee.subgroups
    assert list(table.columns) == [
        "subgroup",
        "n_rows",
        "average_prediction",
        "rate",
        "lower",
        "upper",
        "epsilon",
    ]
    assert table.columns["subgroup"][0] == "all rows"
    assert table.columns["n_rows"][0] == guarantee.n_rows == 5_400
    assert guarantee.epsilon == max(table.columns["epsilon"])
    assert guarantee.n_pilot == 600
    assert (guarantee.counts >= 0.03 * 5_400).all()  # at least 5% of the pilot rows
    assert f"In each of {len(table)} subgroups" in guarantee.sentence
    assert len(guarantee.sentence.split()) <= 35
    assert guarantee.is_proved
    assert "region missing" in guarantee.regions


@pytest.mark.slow
def test_the_guarantee_holds_for_new_rows_in_all_subgroups_at_once():
    """Attributes with few values, so that the population's errors are sums."""
    values = np.array([(a, b) for a in (0, 1) for b in (0, 1, 2)])
    weight = np.array([0.3, 0.2, 0.1, 0.1, 0.2, 0.1])
    grid = (np.arange(40) + 0.5) / 40

    def broken():
        for seed in count():
            rng = np.random.default_rng(seed)
            n = 600
            kind = rng.choice(6, n, p=weight)
            scores = rng.choice(grid, n)
            off = np.array([0.0, 0.15, -0.1, 0.0, 0.05, -0.2])
            y = rng.random(n) < np.clip(scores + off[kind], 0, 1)
            frame = {"a": values[kind, 0] == 1, "b": values[kind, 1].astype(float)}
            calibrator = SubgroupCalibrator(min_share=0.08, confidence_level=0.8).fit(
                scores, y, attributes=frame
            )
            every_kind = np.repeat(np.arange(6), 40)
            every_score = np.tile(grid, 6)
            everyone = {"a": values[every_kind, 0] == 1, "b": values[every_kind, 1].astype(float)}
            predicted = calibrator.predict(every_score, attributes=everyone)
            error = np.clip(every_score + off[every_kind], 0, 1) - predicted
            mass = weight[every_kind] / 40
            said = calibrator.guarantee_
            missed = False
            for number, words in enumerate(said.regions):
                inside = np.ones(240, dtype=bool)
                if words != "all rows":
                    for condition in words.split(", "):
                        name, value = condition.split(" = ")
                        inside &= np.array(
                            [
                                str(int(one) if name == "b" else one) == value
                                for one in everyone[name]
                            ]
                        )
                true = float((mass * error)[inside].sum() / mass[inside].sum())
                missed |= not said.errors.lower[number] <= true <= said.errors.upper[number]
            yield {"subgroups": missed}

    assert_kept(broken(), alpha=0.2, caught=0.5)


def test_a_saved_model_predicts_and_says_the_same(fitted):
    calibrator, frame, scores, _, _ = fitted
    file = io.StringIO()
    save_model(calibrator, file)
    model = load_model(io.StringIO(file.getvalue()))
    assert (
        model.predict(scores, attributes=frame).tolist()
        == calibrator.predict(scores, attributes=frame).tolist()
    )
    assert model.guarantee_.regions == calibrator.guarantee_.regions
    assert model.guarantee_.epsilon == calibrator.guarantee_.epsilon
    assert "Read from a file" in model.guarantee_.details
    content = json.loads(file.getvalue())["calibrator"]["state"]
    assert [set(repair["correction"]) for repair in content["repairs"]] == 2 * [
        {"features", "trees"}
    ]


@pytest.mark.parametrize(
    ("path", "value", "parameter"),
    [
        (
            ("repairs", 1, "correction", "trees", 0, "splits", 0, 0),
            5,
            "repairs[1].correction.trees[0].splits",
        ),
        (
            ("repairs", 1, "correction", "trees", 0, "splits", 0, 1),
            9,
            "repairs[1].correction.trees[0].splits",
        ),
        (
            ("repairs", 1, "correction", "trees", 0, "splits", 0, 2),
            [999],
            "repairs[1].correction.trees[0].splits",
        ),
        (
            ("repairs", 1, "correction", "trees", 0, "values"),
            [0.0],
            "repairs[1].correction.trees[0].values",
        ),
        (
            ("repairs", 1, "correction", "features", 0, "edges"),
            [1.0, 0.0],
            "repairs[1].correction.features[0].edges",
        ),
        (("names",), ["other"], "names"),
        (("counts", 0), -1, "counts"),
        (("positives", 0), 10**6, "positives"),
    ],
)
def test_a_damaged_state_is_refused(fitted, path, value, parameter):
    state = json.loads(json.dumps(fitted[0].to_dict()))
    place = state["state"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InvalidValueError) as error:
        SubgroupCalibrator.from_dict(state)
    assert error.value.parameter == parameter


@pytest.mark.broad
@pytest.mark.parametrize("base", [None, PlattCalibrator()])
def test_python_source_predicts_the_same(base):
    frame, scores, _, y = world(np.random.default_rng(2), 2_000)
    calibrator = SubgroupCalibrator(base=base).fit(scores, y, attributes=frame)
    assert all(repair.correction.trees for repair in calibrator.repairs_)
    namespace: dict = {}
    exec(to_python(calibrator), namespace)
    predicted = calibrator.predict(scores[:200], attributes=frame[:200])
    rows = frame[:200].to_dict("records")
    alone = [
        namespace["calibrate"](score, row)["calibrated"]
        for score, row in zip(scores[:200], rows, strict=True)
    ]
    np.testing.assert_allclose(alone, predicted, rtol=1e-12)
    odd = {"sex": "x", "age": None, "region": None}
    expected = calibrator.predict([0.5], attributes={"sex": ["x"], "age": [None], "region": [None]})
    assert namespace["calibrate"](0.5, odd)["calibrated"] == pytest.approx(expected[0], rel=1e-12)
    assert namespace["calibrate"](None, odd) == {"calibrated": None}


def test_what_needs_a_table_refuses_with_the_reason(fitted):
    for export in (partial(to_sql, dialect="duckdb"), to_onnx):
        with pytest.raises(InvalidTypeError) as error:
            export(fitted[0])
        assert error.value.parameter == "calibrator"
        assert "attributes" in error.value.got
        assert "to_python" in error.value.advice


def test_attributes_are_needed_where_they_were_given(fitted):
    calibrator, frame, scores, _, y = fitted
    with pytest.raises(InvalidTypeError) as error:
        calibrator.predict(scores)
    assert error.value.parameter == "attributes"
    with pytest.raises(InvalidValueError):
        calibrator.predict(scores, attributes=frame[["sex"]])
    with pytest.raises(InvalidTypeError):
        SubgroupCalibrator(["sex"]).fit(scores, y)
    with pytest.raises(InvalidValueError) as error:
        SubgroupCalibrator(order=4).fit(scores, y)
    assert error.value.parameter == "order"
    with pytest.raises(InvalidValueError) as error:
        SubgroupCalibrator(pilot=6_000).fit(scores, y)
    assert error.value.parameter == "pilot"
    with pytest.raises(InvalidValueError):
        SubgroupCalibrator().fit(scores * 3, y)


def test_a_warning_of_small_subgroups_has_advice_on_subgroups(fitted):
    _, attributes, scores, _, y = fitted
    few = slice(0, 300)
    read = {name: np.asarray(column)[few] for name, column in attributes.items()}
    advice = r"subgroup .* contains \d+ rows. Use more rows, fewer attributes or a larger min_share"
    with pytest.warns(WeakGuaranteeWarning, match=advice):
        SubgroupCalibrator().fit(scores[few], y[few], attributes=read)
    with pytest.warns(WeakGuaranteeWarning, match="Use more rows; epsilon"):
        SubgroupCalibrator().fit(scores[:16], y[:16], attributes={"sex": ["f"] * 16})


def test_without_attributes_a_warning_says_that_there_are_no_subgroups(fitted):
    with_attributes, _, scores, _, y = fitted
    with pytest.warns(WeakGuaranteeWarning, match="without attributes there are no subgroups"):
        calibrator = SubgroupCalibrator().fit(scores, y)
    assert calibrator.guarantee_.regions == ("all rows",)
    assert calibrator.guarantee_.notes[0] == WITHOUT_ATTRIBUTES
    assert WITHOUT_ATTRIBUTES not in with_attributes.guarantee_.notes


def test_a_classifier_takes_attributes_from_its_features():
    frame, scores, rates, y = world(np.random.default_rng(3), 4_000)
    X = pd.DataFrame(
        {"score": scores, "age": frame["age"], "old": (frame["age"] > 60).astype(float)}
    )
    model = CalibratedClassifier(LogisticRegression(), SubgroupCalibrator(["age", "old"]))
    model.fit(X, y)
    assert model.guarantee_.attributes == ("age", "old")
    predicted = model.predict_proba(X)[:, 1]
    assert log_loss(rates, predicted) < log_loss(rates, np.full(4_000, y.mean()))


def test_a_report_shows_the_guarantee(fitted):
    calibrator, frame, scores, _, y = fitted
    page = Report(audit(y, scores, attributes=frame), calibrator).html
    assert f"In each of {len(calibrator.guarantee_.regions)} subgroups, the true rate" in page


def test_the_correction_finds_what_is_there_and_nothing_where_nothing_is():
    rng = np.random.default_rng(4)
    n = 4_000
    logits = rng.normal(size=n)
    kind = rng.choice(["a", "b", "c", "d"], n)
    columns = [score_column(logits), *read_attributes({"kind": kind})]
    features = [Feature.of(column) for column in columns]
    bins = [feature.bins(column) for feature, column in zip(features, columns, strict=True)]
    fold = np.arange(n) % 4
    shifted = (rng.random(n) < expit(logits + 1.0 * np.isin(kind, ["a", "c"]))).astype(float)
    found = BoostedLogit.fit(features, bins, logits, shifted, fold)
    moved = np.log(1 / (1 / found.corrected(bins, logits) - 1)) - logits
    assert moved[np.isin(kind, ["a", "c"])].mean() == pytest.approx(1.0, abs=0.2)
    assert moved[~np.isin(kind, ["a", "c"])].mean() == pytest.approx(0.0, abs=0.2)
    right = (rng.random(n) < expit(logits)).astype(float)
    assert (
        np.abs(
            BoostedLogit.fit(features, bins, logits, right, fold).corrected(bins, logits)
            - expit(logits)
        ).mean()
        < 0.02
    )
    assert BoostedLogit.from_dict(found.to_dict()) == found


def test_scores_that_are_all_off_by_the_same_are_moved():
    """Where no division of the rows helps, all of them are one leaf."""
    rng = np.random.default_rng(0)
    y = rng.random(4_000) < 0.6
    attributes = {"coin": rng.random(4_000) < 0.5}
    calibrator = SubgroupCalibrator().fit(np.full(4_000, 0.4), y, attributes=attributes)
    predicted = calibrator.predict([0.4, 0.4], attributes={"coin": [True, False]})
    assert predicted == pytest.approx([0.6, 0.6], abs=0.05)
    assert SubgroupCalibrator.from_dict(calibrator.to_dict()).repairs_ == calibrator.repairs_


def test_tails_of_limits_add_up_to_alpha():
    deviations = np.random.default_rng(0).uniform(0.001, 0.1, 50)
    tails = even_width_tails(deviations, 0.1)
    assert 2 * tails.sum() == pytest.approx(0.1, rel=1e-6)
    assert (np.diff(tails[np.argsort(deviations)]) >= -1e-15).all()


@pytest.mark.broad
def test_limits_of_rates_hold_for_new_rows_where_scores_tell_labels_well():
    """Labels that scores nearly determine: label less prediction varies far less than the label, so
    that limits on errors alone, put around the average prediction of these rows, miss the rate.
    """

    def broken():
        for seed in count():
            rng = np.random.default_rng([seed, 1])
            n = 800
            scores = np.where(rng.random(n) < 0.4, 0.98, 0.02)
            old = rng.random(n) < 0.5
            y = rng.random(n) < scores
            fitted = SubgroupCalibrator(confidence_level=0.8).fit(
                scores, y, attributes={"old": old}
            )
            said = fitted.guarantee_
            rate = 0.4 * 0.98 + 0.6 * 0.02
            yield {"rates": bool(((said.lower > rate) | (said.upper < rate)).any())}

    assert_kept(broken(), alpha=0.2, caught=0.5)


@pytest.mark.broad
def test_rows_that_prove_choose_neither_subgroups_nor_tails():
    """An attribute that follows labels: of the rows that prove, other labels would make its
    subgroups larger or smaller than the least share.
    """
    rng = np.random.default_rng(5)
    n = 2_000
    scores = rng.uniform(0.05, 0.15, n)
    y = (rng.random(n) < scores).astype(int)
    sex = rng.choice(["f", "m"], n)
    calibrator = SubgroupCalibrator(min_share=0.045)
    rows = calibrator._read(scores, y).collect()
    _, first, last = three_parts(rows, 0.1, 0)
    frame = {"sex": sex, "ill": y == 1}
    family = []
    for flipped in (False, True):
        ill = frame["ill"].copy()
        ill[first] ^= flipped
        ill[last] ^= flipped
        said = calibrator.fit(scores, y, attributes={"sex": sex, "ill": ill}).guarantee_
        family.append(said.regions)
    assert family[0] == family[1]
    assert "sex = f, ill = True" in family[0]


def test_names_of_columns_may_be_numbers():
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.integers(0, 3, (400, 2)))
    scores = rng.uniform(0.2, 0.8, 400)
    y = rng.random(400) < scores
    fitted = SubgroupCalibrator(min_share=0.2).fit(scores, y, attributes=frame)
    assert "0 = 2" in fitted.guarantee_.regions
    assert fitted.predict(scores[:3], attributes=frame.iloc[:3]).shape == (3,)


@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
def test_a_half_without_rows_of_a_subgroup_does_not_count_in_its_average_prediction():
    """Nor does a subgroup without any rows have an average prediction of 0."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.4, 0.6, size=60)
    y = rng.random(60) < scores
    attributes = {name: rng.choice(list("uvwxyz"), 60) for name in "ab"}
    found = SubgroupCalibrator(pilot=0.2).fit(scores, y, attributes=attributes).guarantee_
    assert (found.counts == 0).any()
    assert (found.counts == 1).any()
    assert found.value[found.counts == 0] == pytest.approx(0.5)
    assert ((found.value > 0.3) & (found.value < 0.7)).all()
