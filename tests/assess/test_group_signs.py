"""A look for grouped rows: it finds ids, copies and runs, and is silent on honest
data.
"""

import numpy as np
import pytest

from calibrant import check, scored
from calibrant.assess.check.group_signs import group_signs
from calibrant.errors import InvalidValueError
from calibrant.sample.reader import rows_of
from calibrant.text.sentences import render

pa = pytest.importorskip("pyarrow")


def signs_in(data, **options):
    return group_signs(rows_of(data), **options)


def _world(n=4_000, seed=1, effect=None, curve=2.0):
    """Scores that are not calibrated, and labels; `effect` moves the odds of each row."""
    rng = np.random.default_rng([seed, 77])
    scores = rng.random(n)
    odds = np.log(scores**curve / (1 - scores**curve)) + (0.0 if effect is None else effect)
    return rng, scores, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def _kinds(columns, **settings):
    data = scored(pa.table(columns), score="p", label="y", **settings)
    return [(sign.kind, sign.column) for sign in signs_in(data)]


def test_an_id_that_repeats_is_named_with_the_setting_that_helps():
    rng, p, y = _world()
    table = pa.table({"p": p, "y": y, "patient_id": rng.integers(0, 800, 4_000)})
    (sign,) = signs_in(scored(table, score="p", label="y"))
    assert (sign.kind, sign.column) == ("repeated id", "patient_id")
    assert "group='patient_id'" in str(sign)
    assert f"{np.unique(table['patient_id']).size:,} values in the first" in sign.details


@pytest.mark.parametrize("as_text", [False, True])
def test_a_column_of_another_name_is_found_by_its_labels(as_text):
    rng = np.random.default_rng(2)
    shop = rng.integers(0, 400, 4_000)
    _, p, y = _world(effect=1.5 * rng.normal(size=400)[shop])
    values = [f"x{number:x}" for number in shop] if as_text else shop
    assert _kinds({"p": p, "y": y, "shop": values}) == [("repeated id", "shop")]


def test_copied_rows_are_found_and_equal_scores_alone_are_not():
    rng, p, y = _world()
    p[2_000:] = p[:2_000]
    y[2_000:] = y[:2_000]
    order = rng.permutation(4_000)
    assert _kinds({"p": p[order], "y": y[order], "row": np.arange(4_000)}) == [
        ("identical rows", None)
    ]
    _, p, y = _world()
    assert _kinds({"p": p.round(2), "y": y}) == []


def test_customers_side_by_side_are_runs_and_files_sorted_by_score_are_not():
    rng = np.random.default_rng(3)
    _, p, y = _world(effect=np.repeat(1.5 * rng.normal(size=800), 5))
    assert _kinds({"p": p, "y": y}) == [("runs of labels", None)]
    _, p, y = _world()
    for order in (np.argsort(p), np.argsort(-p)):
        assert _kinds({"p": p[order], "y": y[order]}) == []
        assert _kinds({"p": p[order], "y": p[order] > 0.3}) == [], "a score that tells the label"
    assert _kinds({"p": p, "y": p > 0.3}) == []


def test_a_file_that_is_sorted_by_label_is_told_to_be():
    _, p, y = _world(9_000)
    for order in (np.argsort(y, kind="stable"), np.argsort(~y, kind="stable"), np.lexsort((p, y))):
        (sign,) = signs_in(scored(pa.table({"p": p[order], "y": y[order]}), score="p", label="y"))
        assert sign.kind == "runs of labels"
        assert "have 2 runs of equal labels" in str(sign)
        assert "the file may be sorted by outcome" in sign.details
    assert _kinds({"p": p, "y": np.sort(y)}, skip_missing=True) == [("runs of labels", None)]
    y[3_000:5_069] = False  # one run in the middle
    assert _kinds({"p": p, "y": y}) == [("runs of labels", None)]


def test_a_file_that_begins_with_one_label_is_counted_to_see_whether_that_is_chance():
    _, p, y = _world(4_000)
    data = scored(pa.table({"p": p, "y": np.sort(y)}), score="p", label="y")
    share = np.mean(y == 0)
    for labels in ({}, {"classes": (0, 1)}):
        (sign,) = signs_in(data, most_rows=500, **labels)
        assert sign.kind == "runs of labels"
        assert (
            f"The first 500 rows have the same label, which {share:.1%} of all rows have"
            in sign.sentence
        )
    rare = (np.arange(4_000) >= 3_990).astype(
        int
    )  # 500 rows without one of ten positives are no sign
    assert (
        signs_in(scored(pa.table({"p": p, "y": rare}), score="p", label="y"), most_rows=500) == ()
    )
    for labels in ({}, {"classes": (0, 1)}):
        zeros = scored(pa.table({"p": p, "y": np.zeros(4_000)}), score="p", label="y")
        assert signs_in(zeros, most_rows=500, **labels) == ()


@pytest.mark.slow
def test_honest_data_give_few_warnings():
    """Features of many kinds, some of them badly used by the model; ids that are unique.

    60 data sets.
    """
    warned = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        n = int(rng.choice([300, 3_000, 20_000]))
        age = rng.integers(18, 90, n)
        income = (np.exp(rng.normal(10, 1, n)) / 100).astype(int) * 100  # whole numbers that repeat
        region = rng.integers(0, 12, n)
        effect = (
            0.02 * (age - 50) + 0.4 * (income > 40_000) + 0.3 * (region == 3)
        )  # what the model has missed
        _, p, y = _world(n, seed, effect, curve=rng.choice([1.0, 3.0]))
        columns = {
            "row_id": [f"{number:08x}" for number in rng.permutation(n)],
            "age": age,
            "income": income,
            "region": [f"region {number}" for number in region],
            "constant": np.ones(n, dtype=int),
            "zip": rng.integers(10_000, 11_000, n),
            "amount": rng.exponential(100, n),
            "flag": rng.random(n) < 0.1,
            "y": y,
            "p": p.round(int(rng.choice([2, 12]))),
        }
        warned += bool(_kinds(columns))
    assert warned <= 1


@pytest.mark.parametrize("n", [1, 2, 10])
def test_few_rows_one_class_and_missing_values(n):
    rng, p, _ = _world(n)
    assert _kinds({"p": p, "y": np.zeros(n, dtype=int), "user_id": np.zeros(n, dtype=int)}) == []
    ids = pa.array([None] * n, pa.int64())
    assert _kinds({"p": p, "y": rng.integers(0, 2, n), "user_id": ids}) == []


def test_missing_ids_belong_to_no_group():
    rng, p, y = _world(1_000)
    ids = [None if number < 800 else number for number in rng.permutation(1_000).tolist()]
    assert _kinds({"p": p, "y": y, "customer_id": ids}) == []
    dictionary = pa.array([str(number % 300) for number in range(1_000)]).dictionary_encode()
    assert _kinds({"p": p, "y": y, "customer_id": dictionary}) == [("repeated id", "customer_id")]


def test_a_part_that_is_named_is_not_looked_at_again():
    rng, p, y = _world()
    columns = {"p": p, "y": y, "user": rng.integers(0, 500, 4_000)}
    assert _kinds(columns, segment="user") == []


def test_files_and_engines_are_looked_at(tmp_path):
    rng, p, y = _world()
    table = pa.table({"p": p, "y": y, "user": rng.integers(0, 500, 4_000)})
    from pyarrow import csv, parquet

    parquet.write_table(table, tmp_path / "a.parquet")
    csv.write_csv(table, tmp_path / "a.csv")
    import polars as pl

    sources = [
        str(tmp_path / "a.parquet"),
        str(tmp_path / "a.csv"),
        pl.from_arrow(table).lazy(),
        table.to_pandas(),
    ]
    texts = {str(*signs_in(scored(source, score="p", label="y"))) for source in sources}
    assert len(texts) == 1
    assert "'user'" in texts.pop()


def test_check_has_the_signs_of_rows_without_groups() -> None:
    rng = np.random.default_rng(4)
    p = rng.uniform(size=2_000)
    table = pa.table(
        {"p": p, "y": rng.uniform(size=2_000) < p, "customer_id": rng.integers(0, 400, size=2_000)}
    )
    data = scored(table, score="p", label="y")
    found = check(data)
    assert found.signs == signs_in(data)
    assert [sign.column for sign in found.signs] == ["customer_id"]
    (row,) = found.to_dict()["signs"]
    assert row["sentence"] == found.signs[0].sentence
    assert f"A sign of groups: {render(found.signs[0].text)}." in found.details
    assert check(data, groups="customer_id").signs == ()
    assert check(scored(table, score="p", label="y", group="customer_id")).signs == ()
    assert check(table["y"].to_numpy(zero_copy_only=False), p).signs == ()


def test_a_stream_is_tested_in_its_one_pass_and_gives_no_signs() -> None:
    rng = np.random.default_rng(5)
    p = rng.uniform(size=1_000)
    table = pa.table(
        {"p": p, "y": rng.uniform(size=1_000) < p, "customer_id": rng.integers(0, 200, size=1_000)}
    )
    assert check(scored(table, score="p", label="y")).signs
    stream = check(scored(table.to_reader(), score="p", label="y"))
    assert stream.signs == ()
    assert stream.n_rows == 1_000


def test_a_sample_of_groups_is_told_by_its_rows() -> None:
    rng = np.random.default_rng(7)
    p = rng.uniform(size=5_000)
    table = pa.table({"p": p, "y": rng.uniform(size=5_000) < p, "g": np.arange(5_000) // 5})
    found = check(scored(table, score="p", label="y"), groups="g", most_rows=2_000)
    drawn = found.n_rows + found.n_left_out
    assert 1_800 < drawn < 2_200
    assert f"{drawn:,} of 5,000 rows, drawn at random, were tested" in found.notes


def test_of_more_rows_than_most_rows_a_random_sample_is_tested() -> None:
    rng = np.random.default_rng(6)
    p = rng.uniform(size=5_000)
    data = scored(pa.table({"p": p, "y": rng.uniform(size=5_000) < p}), score="p", label="y")
    found = check(data, most_rows=1_000)
    assert 900 < found.n_rows < 1_100
    assert found.n_in_data == 5_000
    note = f"{found.n_rows:,} of 5,000 rows, drawn at random, were tested"
    assert note in found.notes
    assert not any("drawn at random" in text for text in check(data).notes)
    assert (
        check(data, most_rows=5_000).n_rows == check(data).n_rows == check(data).n_in_data == 5_000
    )
    with pytest.raises(InvalidValueError) as refused:
        check(data, most_rows=0)
    assert refused.value.parameter == "most_rows"
