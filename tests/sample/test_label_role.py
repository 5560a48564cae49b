"""The column of labels has no other role: rows that labels pick, order or divide are no random
sample.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from calibrant import check, scored
from calibrant.errors import InvalidValueError
from calibrant.sample.reader import rows_of

RNG = np.random.default_rng(0)
TABLE = pa.table(
    {"p": RNG.uniform(size=200), "y": RNG.integers(2, size=200), "day": np.arange(200)}
)
ROLES = ("score", "segment", "weight", "id", "group")


def refused(error: InvalidValueError, role: str) -> None:
    assert error.parameter == role
    assert error.rule == "be a different column from the label"
    assert error.column == "y"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", ["table", "mapping", "file"])
def test_scored_refuses_the_label_in_another_role(role: str, kind: str, tmp_path: Any) -> None:
    source: Any = TABLE
    if kind == "mapping":
        source = {name: TABLE[name].to_numpy() for name in TABLE.column_names}
    if kind == "file":
        import pyarrow.csv

        source = str(tmp_path / "rows.csv")
        pyarrow.csv.write_csv(TABLE, source)
    named = {"score": "p", **{role: "y"}}
    with pytest.raises(InvalidValueError) as caught:
        scored(source, label="y", progress=False, **named)
    refused(caught.value, role)


@pytest.mark.parametrize("role", ["time", "groups"])
def test_times_and_groups_of_a_check_are_not_the_label(role: str) -> None:
    data = scored(TABLE, score="p", label="y", progress=False)
    with pytest.raises(InvalidValueError) as caught:
        check(data, **{role: "y"})
    refused(caught.value, role)
    assert check(data, time="day").n_rows == 200


def test_the_same_column_may_be_score_and_segment_or_id_without_a_label() -> None:
    assert (
        rows_of(scored(TABLE, score="p", segment="day", id="day", progress=False)).columns.id
        == "day"
    )
