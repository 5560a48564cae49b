"""A file cannot say more than its counts allow, and says what was read and not recomputed."""

import io
import json
from typing import Any

import numpy as np
import pytest

from calibrant import (
    BinningCalibrator,
    Calibrator,
    OnlineCalibrator,
    Partition,
    ShiftCalibrator,
    load_model,
    save_model,
)
from calibrant.errors import CalibrantError, InvalidValueError
from worlds.model_files import read, refused, sealed, written

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=4_000)
Y = (RNG.uniform(size=4_000) < SCORES**2).astype(int)
DEFAULT = Calibrator().fit(SCORES, Y)


WITHOUT_PILOT = Calibrator(pilot=None).fit(SCORES, Y)


def forged(fitted: Calibrator, name: str, **parts: Any) -> bytes:
    """A model with other margins and limits, and an epsilon that follows from them."""
    content = json.loads(written(fitted))
    curve = content["calibrator"]["state"]["curve"]
    curve[name].update(parts)
    tally = fitted.tally_
    low, high = fitted.value_ranges()  # which any average lies between
    curve["average"] = np.clip(tally.positives / tally.counts, low, high).tolist()
    content["guarantee"]["epsilon"] = 1e-6
    return sealed(content)


def test_a_default_model_with_a_forged_epsilon_is_refused() -> None:
    n = DEFAULT.partition_.n_regions
    narrow = [[-1e-6] * n, [1e-6] * n]
    refused(forged(DEFAULT, "proved", errors=narrow), "errors of the curve must leave at least")
    rates = DEFAULT.tally_.rates.tolist()
    refused(
        forged(DEFAULT, "proved", rates=[rates, rates]), "rates of the curve must leave at least"
    )
    refused(
        forged(DEFAULT, "proved", errors=narrow[::-1]),
        r"curve\.proved\.errors must have lower",
    )


def test_a_model_without_pilot_rows_and_with_forged_margins_is_refused() -> None:
    n = WITHOUT_PILOT.partition_.n_regions
    refused(
        forged(WITHOUT_PILOT, "parts", margin=[0.0] * n), "margin of the curve must leave at least"
    )


def test_a_model_without_pilot_rows_has_no_bets() -> None:
    n = WITHOUT_PILOT.partition_.n_regions
    for bets in ({"lower": [-0.01] * n}, {"upper": [0.01] * n}, {"shares": [1.0 / n] * n}):
        refused(forged(WITHOUT_PILOT, "parts", **bets), "lower and upper must be -1 and 1")
    content = json.loads(written(WITHOUT_PILOT))
    del content["calibrator"]["state"]["curve"]["parts"]
    refused(sealed(content), "parts must be given without limits by bets")


CURVES = {
    "same": lambda x: x,
    "square": lambda x: x**2,
    "step": lambda x: (x > 0.5) * 1.0,
    "steep": lambda x: 1.0 / (1.0 + np.exp(-40.0 * (x - 0.5))),
    "rare": lambda x: np.full(x.size, 0.02),
}


@pytest.mark.broad
@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("n_rows", [40, 300, 3_000])
def test_no_fit_beats_the_best_case(name: str, n_rows: int) -> None:
    """The bound is proved; here it must let every fit pass, with steep curves, ties, and few rows."""
    for seed in range(3):
        rng = np.random.default_rng([seed, n_rows])
        scores = np.round(rng.uniform(size=n_rows), 2 if seed == 2 else 17)
        y = (rng.uniform(size=n_rows) < CURVES[name](scores)).astype(int)
        level = (0.9, 0.5, 0.999)[seed]
        fitted = Calibrator(confidence_level=level).fit(scores, y, classes=(0, 1))
        proved = fitted._fitted_curve.proved
        if proved is None:
            fitted.proof_.check_parts(fitted._fitted_curve)
        else:
            proved.check(fitted.tally_.counts, fitted.proof_.for_limits)
        assert (
            Calibrator.from_dict(fitted.to_dict()).guarantee_.epsilon == fitted.guarantee_.epsilon
        )


def test_averages_that_round_above_one_are_saved() -> None:
    scores = np.random.default_rng(26).uniform(size=12_000)
    fitted = Calibrator("beta", pilot=0.3).fit(scores, scores > 0.5)
    assert read(written(fitted)).guarantee_.epsilon == fitted.guarantee_.epsilon


READ = {
    "bins": (BinningCalibrator(4).fit(SCORES, Y), ("counts",)),
    "curve": (DEFAULT, ("counts", "limits", "averages", "margins")),
    "curve without pilot rows": (WITHOUT_PILOT, ("counts", "averages", "margins")),
    "weights": (
        BinningCalibrator(4).fit(SCORES, Y, importance_weight=1.0 + SCORES, weight_bound=2.0),
        ("counts", "limits"),
    ),
    "shift": (
        ShiftCalibrator(2).fit(SCORES, Y, importance_weight=1.0 + SCORES, weight_bound=2.0),
        ("counts", "limits"),
    ),
    "stream": (OnlineCalibrator(Partition.fixed_width(2)).fit(SCORES, Y), ("counts",)),
    "running stream": (
        OnlineCalibrator(Partition.fixed_width(2), running=True).fit(SCORES, Y),
        ("counts", "limits"),
    ),
}


@pytest.mark.parametrize("name", READ)
def test_what_was_read_is_marked(name: str) -> None:
    fitted, expected = READ[name]
    assert fitted.guarantee_.read == ()
    assert "not recomputed" not in fitted.guarantee_.details
    again = read(written(fitted)).guarantee_
    assert again.read == expected
    assert again.details.endswith(
        f"\nRead from a file, not recomputed from the rows: {', '.join(expected)}."
    )
    assert again.epsilon == fitted.guarantee_.epsilon


def test_a_fit_clears_the_mark_and_a_stream_that_goes_on_keeps_it() -> None:
    bins = read(written(READ["bins"][0])).calibrator
    assert bins.fit(SCORES, Y).guarantee_.read == ()
    stream = read(written(READ["stream"][0])).calibrator
    assert stream.partial_fit(SCORES, Y).guarantee_.read == ("counts",)
    fresh = OnlineCalibrator(Partition.fixed_width(2)).fit(SCORES, Y)
    assert fresh.merge(read(written(READ["stream"][0])).calibrator).guarantee_.read == ("counts",)
    assert stream.fit(SCORES, Y).guarantee_.read == ()


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("calibrator", "state", "note"), "certified", "state.note"),
        (("calibrator", "state", "tally", "note"), 1, "state.tally.note"),
        (("calibrator", "remark"), "true", "'remark'"),
        (("calibrator", "state", "looked_rows"), 0, "looked_rows"),
    ],
)
def test_an_entry_that_is_not_read_is_refused(
    path: tuple[str, ...], value: object, said: str
) -> None:
    content = json.loads(written(DEFAULT))
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(CalibrantError) as caught:
        load_model(io.BytesIO(sealed(content)))
    assert isinstance(caught.value, InvalidValueError)
    assert said in str(caught.value)


def test_a_loaded_model_is_saved_as_it_was() -> None:
    data = written(DEFAULT)
    again = io.BytesIO()
    save_model(load_model(io.BytesIO(data)), again)
    assert again.getvalue() == data
