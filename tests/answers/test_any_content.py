"""Model files of any content with a right checksum: a probability, or an error that says why."""

import copy
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrant import ScoreCalibrator
from calibrant.answers import model_file
from calibrant.errors import CalibrantError
from worlds.model_files import EXAMPLES, PROBE, file_of, read, sealed, written

NUMBERS = st.one_of(
    st.integers(-3, 70),
    st.sampled_from(
        [2**31, 2**53, 2**53 + 1, 2**62, 2**63, 2**64, 10**30, 10**99, -(2**63), -(10**30)]
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, 1e308, -1e308, 0.5, 1.0, 1e-17, 1 - 2**-53]),
)
SCALARS = st.one_of(
    st.none(), st.booleans(), NUMBERS, st.text(max_size=4), st.sampled_from(sorted(EXAMPLES))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["type", "parameters", "kind", "schema", "counts", "a"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)
CONTENTS = {name: json.loads(file_of(calibrator)) for name, (calibrator, _) in EXAMPLES.items()}


def places(node: Any, within: int = 12) -> list[tuple[Any, Any]]:
    """Every place of a JSON value as (container, key); of long lists the first few entries only."""
    found: list[tuple[Any, Any]] = []
    pairs = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node[:within])
        if isinstance(node, list)
        else ()
    )
    for key, entry in pairs:
        found.append((node, key))
        found.extend(places(entry, within))
    return found


def mutate(content: dict[str, Any], data: Any) -> None:
    where = places(content["calibrator"])
    container, key = (
        data.draw(st.sampled_from(where), label="place") if len(where) < 2**16 else where[0]
    )
    old = container[key]
    kind = data.draw(
        st.sampled_from(["replace", "number", "nudge", "delete", "repeat", "swap", "another"])
    )
    if kind == "delete":
        del container[key]
    elif kind == "repeat" and isinstance(container, list):
        container.insert(key, copy.deepcopy(old))
    elif kind == "swap":
        other, there = data.draw(st.sampled_from(where), label="other")
        container[key] = copy.deepcopy(other[there])
        other[there] = copy.deepcopy(old)
    elif kind == "number" and isinstance(old, int | float) and not isinstance(old, bool):
        container[key] = data.draw(NUMBERS)
    elif kind == "nudge" and isinstance(old, int | float) and not isinstance(old, bool):
        nudges = [
            old + 1,
            old - 1,
            -old,
            old * 2,
            old / 2,
            float(old),
            np.nextafter(float(old), 9.0).item(),
        ]
        container[key] = data.draw(st.sampled_from(nudges))
    elif kind == "another":
        foreign = CONTENTS[data.draw(st.sampled_from(sorted(CONTENTS)))]["calibrator"]
        container[key] = copy.deepcopy(foreign["state"].get(key, foreign.get(key)))
    else:
        container[key] = data.draw(VALUES)


def assert_works(calibrator: Any) -> None:
    """Every answer is a probability, or is refused."""
    partition = getattr(calibrator, "partition_", None)
    names = partition.segments if partition is not None and partition.has_segments else ()
    options = (
        {"segments": np.array([names[i % len(names)] for i in range(len(PROBE))])} if names else {}
    )
    str(calibrator.guarantee_)
    for method in (
        "predict",
        "predict_proba",
        "predict_interval",
        "predict_set",
        "predict_multiprobability",
    ):
        if hasattr(calibrator, method):
            try:
                found = getattr(calibrator, method)(PROBE, **options)
            except CalibrantError:
                continue
            assert ((found >= 0) & (found <= 1)).all(), method


def fuzz(name: str, data: Any) -> bool:
    content = copy.deepcopy(CONTENTS[name])
    for _ in range(data.draw(st.sampled_from([1, 1, 1, 2, 3]))):
        if places(content["calibrator"]):
            mutate(content, data)
    try:
        # the guarantee of an honest author, so that it is not for its guarantee that a file is refused
        content["guarantee"] = model_file._guarantee(
            ScoreCalibrator.from_dict(content["calibrator"])
        )
    except CalibrantError:
        with pytest.raises(CalibrantError):
            read(sealed(content))
        return False
    try:
        model = read(sealed(content))
    except CalibrantError:
        return False
    assert_works(model.calibrator)
    assert type(read(written(model)).calibrator) is type(model.calibrator)
    return True


@pytest.mark.broad
@pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen
@pytest.mark.parametrize("name", EXAMPLES)
@given(data=st.data())
@settings(max_examples=50, suppress_health_check=list(HealthCheck))
def test_no_content_with_a_right_checksum_crashes(name, data):
    fuzz(name, data)


@pytest.mark.broad
@given(content=st.dictionaries(st.sampled_from(model_file._KEYS), VALUES))
def test_no_outer_layer_crashes(content):
    content = {"format": "calibrant.model/1"} | content
    for data in (
        sealed(content),
        json.dumps(content).encode(),
        sealed({**CONTENTS["platt"], **content}),
    ):
        try:
            assert_works(read(data).calibrator)
        except CalibrantError:
            continue


@given(data=st.binary(max_size=200))
def test_no_bytes_crash(data):
    with pytest.raises(CalibrantError):
        read(data)
