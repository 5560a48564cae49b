"""`calibrant fit --segment --min-rows`, and models that `verify` computes again."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

FIT = ("--score", "p", "--label", "y")


def written(folder, seed, n, digits, names):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.uniform(size=n), digits)
    table = {
        "p": scores,
        "y": (rng.uniform(size=n) < scores).astype(int),
        "g": rng.choice(names, size=n),
    }
    pq.write_table(pa.table(table), folder / "rows.parquet")


@pytest.mark.broad
def test_small_segments_are_pooled_said_saved_and_verified(folder, calibrant):
    written(
        folder,
        0,
        4_000,
        9,
        ["north"] * 30 + ["south"] * 9 + [f"island {number}" for number in range(10)],
    )
    fitted = calibrant("fit", "rows.parquet", *FIT, "--segment", "g", "-o", "model.json", "--json")
    assert fitted.code == 0, fitted.err
    named = {region["region"].partition(":")[0] for region in fitted.json["guarantee"]["regions"]}
    assert named == {"north", "south", "other"}
    assert any(
        '10 segments share the regions of "other"' in text
        for text in fitted.json["guarantee"]["notes"]
    )
    assert calibrant("verify", "model.json", "rows.parquet").code == 0
    assert calibrant("apply", "model.json", "rows.parquet", "-o", "out.csv").code == 0
    each = calibrant("fit", "rows.parquet", *FIT, "--segment", "g", "--min-rows", "none", "--json")
    assert each.json["guarantee"]["epsilon"] > 2 * fitted.json["guarantee"]["epsilon"]


def test_min_rows_needs_segments_and_a_number(folder, calibrant):
    written(folder, 0, 500, 9, ["a"])
    alone = calibrant("fit", "rows.parquet", *FIT, "--min-rows", "100")
    assert alone.code == 2
    assert "--min-rows must be used with --segment" in alone.err
    few = calibrant("fit", "rows.parquet", *FIT, "--segment", "g", "--min-rows", "few")
    assert few.code == 2
    assert "must be a whole number, auto or none; got 'few'" in few.err


@pytest.mark.broad
def test_a_model_that_absorbs_a_tied_edge_is_verified(folder, calibrant):
    from calibrant import load_model

    for seed in range(100):
        written(folder, seed, 600, 4, ["a"])
        fitted = calibrant(
            "fit", "rows.parquet", *FIT, "--bins", "6", "-o", "model.json", "--overwrite"
        )
        assert fitted.code == 0, fitted.err
        if load_model(folder / "model.json").calibrator.partition_.has_absorbed:
            break
    assert calibrant("verify", "model.json", "rows.parquet").code == 0
