"""`verify` for every kind of file, and attacks on each: subgroups, bands, and what it cannot check:
several classes and held-out rows.
"""

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from calibrant import (
    CalibratedClassifier,
    ClassWiseCalibrator,
    SubgroupCalibrator,
    TopLabelCalibrator,
    VennAbersCalibrator,
    load_model,
    save_model,
)
from calibrant.answers.model_text import checksum_of, pretty
from calibrant.calibrators.class_wise_hold_out import ClassWiseHoldOut
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.errors import CalibrantError
from calibrant.intervals import MonotoneBand

RNG = np.random.default_rng(0)
N_ROWS = 2_400
SCORES = RNG.dirichlet([1.0, 1.0, 1.0], size=N_ROWS)
LABELS = np.array(["cat", "dog", "owl"])[
    (RNG.uniform(size=(N_ROWS, 1)) > SCORES.cumsum(axis=1)).sum(axis=1)
]
FRAME = pd.DataFrame(SCORES, columns=["cat", "dog", "owl"]).assign(
    animal=LABELS,
    p=SCORES[:, 0],
    y=(LABELS == "cat").astype(int),
    sex=RNG.choice(["f", "m"], N_ROWS),
    age=RNG.integers(18, 80, N_ROWS),
    household=RNG.integers(0, 700, N_ROWS),
    w=RNG.uniform(0.5, 1.0, N_ROWS),
)
COLUMNS = ["cat", "dog", "owl"]
ATTRIBUTES = FRAME[["sex", "age"]]
BINARY = {"score": "p", "label": "y"}
SEVERAL = {"label": "animal"}


def held_out(several: bool) -> tuple[Any, pd.DataFrame]:
    """The calibrator of a classifier, with its proof rows as a data frame."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(3_000, 4))
    noise = rng.normal(size=3_000)
    y = np.digitize(features[:, 0] + noise, [-0.5, 0.5] if several else [0.0])
    seen: dict[str, Any] = {}
    kind, name = (ClassWiseHoldOut, "proved") if several else (HoldOutCalibrator, "fit")
    before = getattr(kind, name)

    def kept(*arguments: Any, **options: Any) -> Any:
        scores, labels = arguments[:2] if several else arguments[1:3]
        seen.update(scores=np.array(scores), labels=np.array(labels))
        return before(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, name, kept)
        fitted = CalibratedClassifier(LogisticRegression()).fit(features, y)
    scores = seen["scores"].reshape(len(seen["labels"]), -1)
    names = ["p0", "p1", "p2"] if several else ["p"]
    return fitted.calibrator_, pd.DataFrame(scores, columns=names).assign(label=seen["labels"])


def example(name: str) -> tuple[Any, pd.DataFrame, dict[str, str]]:
    """A calibrator, its rows, and the columns that its file names."""
    if name == "subgroups":
        fitted = SubgroupCalibrator().fit(FRAME.p, FRAME.y, attributes=ATTRIBUTES)
        return fitted, FRAME, BINARY
    if name == "subgroups of groups":
        fitted = SubgroupCalibrator().fit(
            FRAME.p, FRAME.y, attributes=ATTRIBUTES, groups=FRAME.household
        )
        return fitted, FRAME, {**BINARY, "group": "household"}
    kinds = {"class-wise": ClassWiseCalibrator, "top-label": TopLabelCalibrator}
    if name in kinds:
        return kinds[name](n_bins=3).fit(SCORES, LABELS), FRAME, SEVERAL
    if name == "band":
        return MonotoneBand().fit(FRAME.p, FRAME.y), FRAME, BINARY
    if name == "band of few cells":
        return MonotoneBand(n_cells=7).fit(FRAME.p, FRAME.y), FRAME, BINARY
    if name == "band of groups":
        fitted = MonotoneBand().fit(FRAME.p, FRAME.y, groups=FRAME.household)
        return fitted, FRAME, {**BINARY, "group": "household"}
    if name == "band with weights":
        fitted = MonotoneBand().fit(FRAME.p, FRAME.y, importance_weight=FRAME.w, weight_bound=1.0)
        return fitted, FRAME, {**BINARY, "weight": "w"}
    fitted, rows = held_out(several=name == "held-out classes")
    return fitted, rows, {"label": "label", "score": ",".join(rows.columns[:-1])}


STANDS = [
    "subgroups",
    "subgroups of groups",
    "band",
    "band of few cells",
    "band of groups",
    "band with weights",
]
NOT_CHECKED = ["held-out", "held-out classes", "class-wise", "top-label"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The file and the rows of each kind, written once."""
    folder = tmp_path_factory.mktemp("files")
    done: dict[str, Any] = {}

    def of(name: str) -> Any:
        if name not in done:
            fitted, rows, columns = example(name)
            stem = name.replace(" ", "-")
            save_model(fitted, folder / f"{stem}.json", columns=columns)
            rows.to_csv(folder / f"{stem}.csv", index=False)
            rows.to_parquet(folder / f"{stem}.parquet")
            done[name] = folder / f"{stem}.json"
        return done[name]

    return of


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("name", STANDS)
def test_a_true_file_stands(calibrant, made, name, suffix):
    path = made(name)
    answer = calibrant("verify", path, path.with_suffix(suffix), "--json")
    assert answer.code == 0, answer.out
    assert answer.json["stands"]
    assert answer.json["guarantee"]
    assert "stands" in calibrant("verify", path, path.with_suffix(suffix)).out


@pytest.mark.parametrize("name", NOT_CHECKED)
def test_what_cannot_be_fitted_again_is_not_checked(calibrant, made, name):
    path = made(name)
    answer = calibrant("verify", path, path.with_suffix(".csv"), "--json")
    assert answer.code == 3, answer.out
    why = "held-out rows were bet on" if name == "held-out" else "fit it again in Python"
    assert why in answer.json["unclear"]
    assert answer.json["guarantee"] is None


@pytest.mark.parametrize("name", [*STANDS, *NOT_CHECKED])
def test_what_was_read_is_marked(made, name):
    guarantee = load_model(made(name)).guarantee_
    assert guarantee.read
    assert "Read from a file, not recomputed from the rows" in guarantee.details
    fitted, *_ = example(name)
    assert not fitted.guarantee_.read
    assert fitted.guarantee_.sentence.split(" Read from")[0] in guarantee.details


@pytest.mark.parametrize("name", STANDS)
def test_other_rows_do_not_stand(calibrant, made, tmp_path, name):
    """Some labels exchanged: the counts cannot be those of the file."""
    path = made(name)
    rows = pd.read_csv(path.with_suffix(".csv"))
    label = load_model(path).columns["label"]
    rows[label] = rows[label].to_numpy()[::-1]
    rows.to_csv(tmp_path / "other.csv", index=False)
    answer = calibrant("verify", path, tmp_path / "other.csv", "--json")
    assert answer.code != 0
    assert answer.json["guarantee"] is None
    if name not in ("band of groups", "band with weights"):  # their seed is not in the file
        assert answer.code == 1, answer.out


def forged(path: Any, change: Callable[[Any], None], to: Any) -> Any:
    """A changed file whose checksum and epsilon follow from what it says now."""
    content = json.loads(path.read_text())
    change(content)
    content["guarantee"].pop("details", None)
    for _ in range(2):
        sealed = {**content, "checksum": checksum_of(content)}
        to.write_text(pretty(sealed))
        try:
            load_model(to)
        except CalibrantError as error:
            if error.parameter != "epsilon of the guarantee":
                raise
            found = str(error.rule).rpartition(", ")[2]
            content["guarantee"]["epsilon"] = float(found)
    return to


def narrow(limits: list[list[float]], by: float) -> None:
    """Shrink pairs of limits around their middle, in place."""
    for place, (low, high) in enumerate(zip(*limits, strict=True)):
        middle = (low + high) / 2
        limits[0][place] = middle + (low - middle) * by
        limits[1][place] = middle + (high - middle) * by


def pairs_in(state: Any) -> list[list[list[float]]]:
    """All pairs of limits of a state."""
    found = []
    if isinstance(state, dict):
        for key, entry in state.items():
            found += [entry] if key in ("errors", "rates") else pairs_in(entry)
    elif isinstance(state, list):
        found = [pair for entry in state for pair in pairs_in(entry)]
    return found


WITH_LIMITS = ["subgroups", "class-wise", "top-label", "held-out", "held-out classes"]


@pytest.mark.parametrize("name", WITH_LIMITS)
def test_limits_narrower_than_the_counts_allow_are_refused(made, tmp_path, name):
    """Before, a forged file of held-out classes was read as "within 0"."""

    def change(content: Any) -> None:
        pairs = pairs_in(content["calibrator"])
        assert pairs
        for pair in pairs:
            narrow(pair, 0.0)

    with pytest.raises(CalibrantError, match="leave at least"):
        forged(made(name), change, tmp_path / "forged.json")


@pytest.mark.parametrize("name", WITH_LIMITS)
def test_limits_a_little_too_narrow_never_stand(calibrant, made, tmp_path, name):
    path = made(name)

    def change(content: Any) -> None:
        for pair in pairs_in(content["calibrator"]):
            narrow(pair, 0.8)

    answer = calibrant(
        "verify",
        forged(path, change, tmp_path / "forged.json"),
        path.with_suffix(".csv"),
        "--json",
    )
    assert answer.code in ((1, 3) if name in NOT_CHECKED else (1,))
    assert answer.json["guarantee"] is None


@pytest.mark.parametrize("name", ["band", "band of few cells"])
@pytest.mark.parametrize("by", [0.9, 0.5])
def test_a_narrower_band_never_stands(calibrant, made, tmp_path, name, by):
    path = made(name)

    def change(content: Any) -> None:
        state = content["calibrator"]
        state["lower"] = [1.0 - (1.0 - value) * by for value in state["lower"]]
        state["upper"] = [value * by for value in state["upper"]]

    try:
        found = forged(path, change, tmp_path / "forged.json")
    except CalibrantError:
        return
    answer = calibrant("verify", found, path.with_suffix(".csv"), "--json")
    assert answer.code == 1
    changed = {one["path"].partition("[")[0] for one in answer.json["differences"]}
    assert changed & {"calibrator.lower", "calibrator.upper"}


BAND_ATTACKS: dict[str, Callable[[Any], Any]] = {
    "certainty at the last score": lambda state: {"lower": [*state["lower"][:-1], 1.0]},
    "nothing at the first score": lambda state: {"upper": [0.0, *state["upper"][1:]]},
    "more than all rows can give": lambda state: {"lower": [*state["lower"][:-1], 0.999]},
    "two limits that share the rows": lambda state: {
        "lower_knots": [0.0],
        "lower": [0.993],
        "upper_knots": [1.0],
        "upper": [0.993 + 1e-9 - 0.985],
    },
    "fewer runs than knots": lambda state: {"runs": 1},
    "fewer rows": lambda state: {"rows": 12},
}


@pytest.mark.parametrize("name", BAND_ATTACKS)
def test_a_band_that_no_rows_can_give_is_refused(made, tmp_path, name):
    def change(content: Any) -> None:
        content["calibrator"].update(BAND_ATTACKS[name](content["calibrator"]))

    with pytest.raises(CalibrantError, match=r"can give|as many as knots"):
        forged(made("band"), change, tmp_path / "forged.json")


@pytest.mark.parametrize("name", [*STANDS, *NOT_CHECKED])
@pytest.mark.parametrize("seed", range(3))
def test_one_changed_number_never_stands(calibrant, made, tmp_path, name, seed):
    """Any number of the state, changed and sealed again: refused, or it does not stand."""
    path = made(name)
    rng = np.random.default_rng([seed, len(name)])
    content = json.loads(path.read_text())
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in entries:
            if isinstance(entry, dict | list):
                walk(entry)
            elif isinstance(entry, int | float) and abs(entry) > 1e-9 and entry is not True:
                places.append((value, key))  # what rounding leaves of a sum means nothing

    walk(content["calibrator"])
    container, key = places[rng.integers(len(places))]
    container[key] = container[key] + 1 if isinstance(container[key], int) else container[key] * 0.9

    def change(state: Any) -> None:
        state["calibrator"] = content["calibrator"]

    try:
        found = forged(path, change, tmp_path / "forged.json")
    except CalibrantError:
        return
    assert calibrant("verify", found, path.with_suffix(".csv")).code in (1, 3)


def test_a_file_without_a_guarantee_still_has_none(calibrant, made, tmp_path):
    fitted = VennAbersCalibrator().fit(FRAME.p, FRAME.y)
    save_model(fitted, tmp_path / "model.json", columns=BINARY)
    answer = calibrant("verify", tmp_path / "model.json", made("band").with_suffix(".csv"))
    assert answer.code == 1
    assert "no guarantee to verify" in answer.out


@pytest.mark.parametrize("name", ["band of groups", "band with weights"])
def test_without_their_column_nothing_is_checked(calibrant, made, tmp_path, name):
    path = made(name)

    def change(content: Any) -> None:
        for part in ("group", "weight"):
            content["columns"].pop(part, None)

    found = forged(path, change, tmp_path / "forged.json")
    answer = calibrant("verify", found, path.with_suffix(".csv"))
    assert answer.code == 3
    assert "the file does not name the column of" in " ".join(answer.out.split())


WORLDS = {
    "even": lambda s: s,
    "certain": lambda s: (s > 0.5) * 1.0,
    "always": np.ones_like,
    "rare": lambda s: np.full(s.size, 0.01),
}


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrantWarning")
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("n_rows", [30, 300, pytest.param(3_000, marks=pytest.mark.slow)])
def test_no_true_file_is_refused_by_what_the_counts_allow(world, n_rows):
    """Ties, one class only, few rows, groups and weights: every fit is read back as it was."""
    for seed, level in enumerate((0.5, 0.9, 0.999)):
        rng = np.random.default_rng([seed, n_rows])
        scores = np.round(rng.uniform(size=n_rows), (1, 2, 17)[seed])
        y = (rng.uniform(size=n_rows) < WORLDS[world](scores)).astype(int)
        groups = rng.integers(0, max(n_rows // 5, 2), n_rows)
        few = slice(0, 300)  # bets on groups and weights are slow
        bands = [
            MonotoneBand(confidence_level=level).fit(scores, y, classes=(0, 1)),
            MonotoneBand(confidence_level=level).fit(
                scores[few], y[few], groups=groups[few], classes=(0, 1)
            ),
            MonotoneBand(confidence_level=level).fit(
                scores[few],
                y[few],
                importance_weight=rng.uniform(0.5, 1.0, n_rows)[few],
                weight_bound=1.0,
                classes=(0, 1),
            ),
        ]
        half = n_rows // 2
        pilot = {"pilot_scores": scores[:half], "pilot_y": y[:half], "classes": (0, 1)}
        rows = (scores[half:], y[half:])
        proved = [
            HoldOutCalibrator(confidence_level=level, moves=moves).fit(*rows, **pilot)
            for moves in (True, False)
        ]
        subgroups = SubgroupCalibrator(confidence_level=level, base=None).fit(
            scores,
            y,
            attributes={"sex": groups % 2, "age": rng.uniform(size=n_rows)},
            classes=(0, 1),
        )
        for fitted in (*bands, *proved, subgroups):
            file = io.BytesIO()
            save_model(fitted, file)  # which reads it back
            assert load_model(io.BytesIO(file.getvalue())).guarantee_.read
