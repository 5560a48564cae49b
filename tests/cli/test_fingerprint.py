"""The fingerprint of rows: the same in whatever order and form they come, another when anything has
changed.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Sample, scored
from calibrant.errors import InvalidValueError
from calibrant.sample.fingerprint import Fingerprint, fingerprint
from calibrant.sample.reader import rows_of

ROWS = st.lists(
    st.tuples(
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from([0, 1]),
        st.sampled_from("abc"),
        st.floats(0, 9),
    ),
    min_size=1,
    max_size=30,
)


def taken_of(data: Sample) -> Fingerprint:
    return fingerprint(rows_of(data))


def of(rows: list[tuple[float, Any, str, float]]) -> Fingerprint:
    columns = map(list, zip(*rows, strict=True))
    table = pa.table(dict(zip("pysw", columns, strict=True)))
    return taken_of(scored(table, score="p", label="y", segment="s", weight="w"))


@pytest.mark.broad
@given(ROWS, st.randoms(use_true_random=False), st.integers(0, 30))
def test_order_and_parts_make_no_difference(rows: list[Any], random: Any, cut: int) -> None:
    shuffled = random.sample(rows, len(rows))
    assert of(shuffled) == of(rows)
    first = shuffled[:cut]
    second = shuffled[cut:]
    if first and second:
        assert of(first) + of(second) == of(rows)


@pytest.mark.broad
@given(ROWS, st.integers(0, 29), st.integers(0, 3))
def test_any_change_is_seen(rows: list[Any], place: int, column: int) -> None:
    chosen = rows[place % len(rows)]
    new = (chosen[0] + 1.5, 1 - chosen[1], chosen[2] + "x", chosen[3] + 1.0)
    row = tuple(new[column] if number == column else value for number, value in enumerate(chosen))
    if row == chosen:  # 1.5 is lost beside a very large score
        return
    changed = [*rows]
    changed[place % len(rows)] = row
    assert str(of(changed)) != str(of(rows))
    assert str(of([*rows, rows[0]])) != str(of(rows))


def test_values_must_stay_with_their_rows() -> None:
    one = [(0.1, 0, "a", 1.0), (0.2, 1, "b", 2.0)]
    assert of(one) != of([(0.1, 1, "a", 1.0), (0.2, 0, "b", 2.0)])
    assert of(one) != of([(0.1, 0, "b", 1.0), (0.2, 1, "a", 2.0)])
    assert of(one) != of([(0.1, 0, "a", 2.0), (0.2, 1, "b", 1.0)])


@pytest.mark.parametrize("labels", [[0, 1, 1], [False, True, True], [0.0, 1.0, 1.0]])
def test_labels_that_mean_the_same_are_the_same(labels: list[Any]) -> None:
    table = pa.table({"p": [0.1, -0.0, 0.3], "y": labels})
    known = pa.table({"p": [0.3, 0.1, 0.0], "y": [1, 0, 1]})
    assert taken_of(scored(table, score="p", label="y")) == taken_of(
        scored(known, score="p", label="y")
    )


def test_formats_engines_and_threads_agree(folder: Path, table: pa.Table) -> None:
    roles = {"score": "p", "label": "y", "segment": "region", "weight": "w"}
    expected = taken_of(scored(table, **roles))
    narrow = table.set_column(1, "p", pa.array(table["p"].to_numpy().astype(np.float32)))
    for source in ("scores.csv", "scores.parquet"):
        for n_jobs in (1, 4):
            assert taken_of(scored(source, **roles, n_jobs=n_jobs)) == expected
    assert taken_of(scored(narrow, **roles)) != expected


def test_rows_that_can_not_be_used_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"p": [0.1, None], "y": [0, 1]}), tmp_path / "x.parquet")
    with pytest.raises(InvalidValueError, match="row 2"):
        taken_of(scored(tmp_path / "x.parquet", score="p", label="y"))
