"""Labels: spellings that differ in spaces or case, decimals, and -1 beside 1."""

from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import (
    BinningCalibrator,
    DriftMonitor,
    Partition,
    PlattCalibrator,
    Tally,
    audit,
    scored,
)
from calibrant.errors import CalibrantWarning, InvalidValueError
from calibrant.params.labels import encode

ROWS = 400
RNG = np.random.default_rng(1)
SCORES = RNG.uniform(size=ROWS)
Y = RNG.integers(2, size=ROWS)
BINS = Partition.fixed_width(4)


def texts(*odd):
    labels = np.where(Y == 1, "bad", "good").astype(object)
    labels[: len(odd)] = odd
    return labels.tolist()


def fits(labels, folder, classes=None, **parameters):
    """A fit of the labels from memory, from a table, from a file and from rows that were collected."""
    table = pa.table({"p": SCORES, "y": labels})
    pq.write_table(table, folder / "rows.parquet")
    named = {"score": "p", "label": "y", "progress": False}
    yield lambda: BinningCalibrator(2, **parameters).fit(SCORES, labels, classes=classes)
    for source in (table, folder / "rows.parquet", pl.from_arrow(table).lazy()):
        yield lambda source=source: BinningCalibrator(2, **parameters).fit(
            scored(source, **named), classes=classes
        )
        yield lambda source=source: PlattCalibrator(**parameters).fit(
            scored(source, **named), classes=classes
        )


@pytest.mark.parametrize(
    ("odd", "advice"),
    [
        (["BAD"] * 3, "did you mean 'bad'\\? 3 rows have 'BAD'"),
        (["Good "], "did you mean 'good'\\? 1 row has 'Good '"),
        (
            ["BAD", " good"],
            "did you mean 'good'\\? 1 row has ' good'; did you mean 'bad'\\? 1 row has 'BAD'",
        ),
    ],
)
@pytest.mark.parametrize("classes", [None, ("good", "bad")])
def test_a_difference_in_spaces_or_case_is_named(odd, advice, classes, tmp_path) -> None:
    for fit in fits(texts(*odd), tmp_path, pos_label="bad", classes=classes):
        with pytest.raises(ValueError, match=advice):
            fit()


def test_two_spellings_of_one_class_are_not_two_classes(tmp_path) -> None:
    labels = ["Bad" if number < 5 else "bad" for number in range(ROWS)]
    for fit in fits(labels, tmp_path, pos_label="bad"):
        with pytest.raises(
            ValueError,
            match=r"contain two classes; got 'Bad' and 'bad'.*: did you mean 'bad'\? 5 rows have",
        ):
            fit()
    named = BinningCalibrator(partition=BINS, pos_label="bad").fit(
        SCORES, labels, classes=("Bad", "bad")
    )
    assert named.tally_.positives.sum() == ROWS - 5


def test_other_labels_get_no_such_advice() -> None:
    with pytest.raises(ValueError, match="see ClassWiseCalibrator and TopLabelCalibrator"):
        BinningCalibrator(2, pos_label="bad").fit(SCORES, texts("ugly"))


@pytest.mark.broad
@pytest.mark.parametrize(
    "kind", ["0 and 1", "-1 and 1", "decimals", "decimals -1 and 1", "doubles -1 and 1"]
)
def test_numbers_of_every_kind_are_labels_everywhere(kind, tmp_path) -> None:
    labels = {
        "0 and 1": Y.tolist(),
        "-1 and 1": (2 * Y - 1).tolist(),
        "decimals": [Decimal(int(label)) for label in Y],
        "decimals -1 and 1": [Decimal(int(2 * label - 1)) for label in Y],
        "doubles -1 and 1": (2.0 * Y - 1.0).tolist(),
    }[kind]
    expected = BinningCalibrator(2).fit(SCORES, Y)
    for fit in fits(labels, tmp_path):
        np.testing.assert_array_equal(
            getattr(fit(), "tally_", expected.tally_).positives, expected.tally_.positives
        )
    assert Tally.from_data(BINS, SCORES, labels) == Tally.from_data(BINS, SCORES, Y)
    monitors = [DriftMonitor(BINS, random_state=0).update(SCORES, y).to_dict() for y in (labels, Y)]
    assert monitors[0] == monitors[1]
    assert (
        BinningCalibrator(2, pos_label=labels[0]).fit(SCORES, labels).tally_.n_rows
        == expected.tally_.n_rows
    )


@pytest.mark.broad
def test_segments_that_differ_in_a_nul_at_the_end_stay_apart(tmp_path) -> None:
    names = ["a" if number % 2 else "a\0" for number in range(ROWS)]
    table = pa.table({"p": SCORES, "y": Y, "g": names})
    pq.write_table(table, tmp_path / "rows.parquet")
    expected = BinningCalibrator(2, segment_rule=None).fit(SCORES, Y, segments=names)
    assert expected.partition_.segments == ("a", "a\0")
    mapping = {"p": SCORES, "y": Y, "g": names}
    for source in (
        table,
        tmp_path / "rows.parquet",
        table.to_pandas(),
        pl.from_arrow(table),
        mapping,
    ):
        fitted = BinningCalibrator(2, segment_rule=None).fit(
            scored(source, score="p", label="y", segment="g", progress=False)
        )
        assert fitted.tally_ == expected.tally_
        assert BinningCalibrator.from_dict(fitted.to_dict()).partition_ == expected.partition_
    for series in (
        pl.Series(names),
        pa.array(names),
        table["g"].to_pandas(),
        np.array(names, dtype=object),
    ):
        assert (
            BinningCalibrator(2, segment_rule=None).fit(SCORES, Y, segments=series).tally_
            == expected.tally_
        )
        np.testing.assert_array_equal(
            expected.predict(SCORES, segments=series), expected.predict(SCORES, segments=names)
        )


@pytest.mark.parametrize("large", [10**99, -(2**70), Decimal("Infinity")])
def test_numbers_beyond_64_bits_are_refused(large: object) -> None:
    """numpy keeps them as objects, whatever they are turned into."""
    with pytest.raises(InvalidValueError) as caught:
        BinningCalibrator(2, pos_label=1).fit([0.1, 0.2, 0.7, 0.9], [large, 1, large, 1])
    assert caught.value.rule == "contain numbers that fit 64 bits"


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.int64, np.float32, np.float64])
def test_encode(dtype: Any) -> None:
    labels = np.random.default_rng(14).integers(0, 2, 70_000).astype(dtype)
    before = labels.copy()
    for view in (labels, labels[::2], labels[::-1], labels[:0]):
        codes, bad = encode(view, 0, 1)
        assert codes.dtype == np.uint8
        assert bad == -1
        np.testing.assert_array_equal(codes, view.astype(np.uint8))
        flipped, bad = encode(view, 1, 0)
        assert bad == -1
        np.testing.assert_array_equal(flipped, 1 - view.astype(np.uint8))
    np.testing.assert_array_equal(labels, before)
    if labels.dtype.itemsize == 1 and dtype is not np.int8:
        assert np.shares_memory(encode(labels, 0, 1)[0], labels)
    if dtype is not np.bool_:
        labels[[3, 66_000]] = 2
        assert encode(labels, 0, 1)[1] == 3
        assert encode(labels[4:], 0, 1)[1] == 65_996
        assert encode(labels, 0, 2)[1] == int(np.argmax(labels == 1))


def test_encode_refuses_nan() -> None:
    assert encode(np.array([0.0, 1.0, np.nan]), 0.0, 1.0)[1] == 2
    codes, bad = encode(np.array([-1, 1, 1]), -1, 1)
    assert bad == -1
    np.testing.assert_array_equal(codes, [0, 1, 1])


USUAL = [
    ("no", "yes"),
    ("N", "Y"),
    ("n", "y"),
    ("false", "true"),
    ("FALSE", "TRUE"),
    ("fail", "pass"),
    ("bad", "good"),
    ("Bad", "Good"),
    ("no", "Yes"),
]


@pytest.mark.parametrize(("negative", "positive"), USUAL)
def test_usual_words_choose_the_positive_class_and_say_so(negative, positive):
    y = np.where(Y == 1, positive, negative)
    with pytest.warns(CalibrantWarning, match=f"'{positive}' is taken as the positive class"):
        chosen = BinningCalibrator(3).fit(SCORES, y)
    named = BinningCalibrator(3, pos_label=positive).fit(SCORES, y)
    assert chosen.guarantee_.sentence == named.guarantee_.sentence
    assert chosen.guarantee_.positive_label == positive
    np.testing.assert_array_equal(chosen.predict(SCORES), named.predict(SCORES))
    table = pa.table({"p": SCORES, "y": y})
    with pytest.warns(CalibrantWarning, match=f"'{positive}' is taken as the positive class"):
        again = BinningCalibrator(3).fit(scored(table, score="p", label="y"))
    assert again.guarantee_.positive_label == positive


@pytest.mark.parametrize("pair", [("no", "good"), ("yes", "bad"), ("late", "early"), ("y", "no")])
def test_words_that_are_no_usual_pair_name_nothing(pair):
    with pytest.raises(InvalidValueError, match="pos_label must name the positive class"):
        BinningCalibrator(3).fit(SCORES, np.where(Y == 1, *pair))


def test_columns_of_probabilities_go_by_the_order_of_classes_as_before():
    both = np.column_stack([1 - SCORES, SCORES])
    found = BinningCalibrator(3).fit(both, np.where(Y == 1, "no", "yes"))
    assert found.guarantee_.positive_label == "yes"


@pytest.mark.parametrize(
    "y",
    [SCORES, np.where(Y == 1, 0.9, 0.1), np.full(Y.size, 0.5), np.where(Y == 1, 0.7, 0.0)],
    ids=["many", "two", "one", "with 0"],
)
def test_soft_labels_are_named(y):
    rows = scored(pa.table({"p": SCORES, "y": y}), score="p", label="y")
    for fit in (
        lambda: BinningCalibrator(3).fit(SCORES, y),
        lambda: BinningCalibrator(3).fit(rows),
        lambda: audit(y, SCORES),
    ):
        with pytest.raises(InvalidValueError, match="Soft labels, which are probabilities, cannot"):
            fit()


def test_two_fractions_may_be_classes_if_they_are_named():
    y = np.where(Y == 1, 0.9, 0.1)
    assert BinningCalibrator(3, pos_label=0.9).fit(SCORES, y).guarantee_.positive_label == 0.9


def test_other_fractions_are_not_soft_labels():
    with pytest.raises(InvalidValueError, match="two classes") as refused:
        BinningCalibrator(3).fit(SCORES, 10 * SCORES)
    assert "Soft labels" not in str(refused.value)
