"""`calibrant fit`: the model of the library, in any format, and what is said of it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import Calibrator, load_model

COLUMNS = ("--score", "p", "--label", "y")


class TestFit:
    @pytest.mark.broad
    def test_equals_the_library(self, folder: Path, table: pa.Table, calibrant: Any) -> None:
        answer = calibrant(
            "fit", "scores.csv", *COLUMNS, "--bins", "8", "-o", "model.json", "--json"
        )
        expected = Calibrator(n_bins=8).fit(table["p"].to_numpy(), table["y"].to_numpy())
        assert answer.code == 0
        assert answer.json["guarantee"]["epsilon"] == expected.guarantee_.epsilon
        assert answer.json["guarantee"]["sentence"] == expected.guarantee_.sentence
        assert [
            region["counts"] for region in answer.json["guarantee"]["regions"]
        ] == expected.tally_.counts.tolist()
        saved = load_model(folder / "model.json")
        assert saved.calibrator.tally_ == expected.tally_
        assert saved.columns == {"score": "p", "label": "y"}
        assert saved.provenance["rows"] == table.num_rows
        assert saved.provenance["files"] == ["scores.csv"]
        assert str(folder) not in (folder / "model.json").read_text()

    @pytest.mark.broad
    def test_says_the_sentence_first(self, folder: Path, calibrant: Any) -> None:
        answer = calibrant("fit", "scores.parquet", *COLUMNS, "--bins", "8")
        assert answer.out.startswith("OK  In each of 8 score ranges, the true rate is within")
        assert "true rate, guaranteed" in answer.out
        assert "Next: add -o model.json to save it" in answer.out

    @pytest.mark.broad
    def test_limits_of_rare_events_say_something(self, folder: Path, calibrant: Any) -> None:
        """With a million rows and twenty positives, a limit is tiny, and not 0."""
        rare = pa.table(
            {"p": np.linspace(0, 1, 1_000_000), "y": np.arange(1_000_000) % 50_000 == 0}
        )
        pq.write_table(rare, folder / "rare.parquet")
        answer = calibrant("fit", "rare.parquet", *COLUMNS, "--bins", "1")
        assert answer.code == 0, answer.err
        region = calibrant("fit", "rare.parquet", *COLUMNS, "--bins", "1", "--json").json[
            "guarantee"
        ]["regions"][0]
        assert 1e-6 < region["lower"] < 2e-5 < region["upper"] < 1e-4
        ((low, high),) = re.findall(r"([\d.]+) to ([\d.]+)%", answer.out)
        assert 0 < float(low) / 100 <= region["lower"]
        assert region["upper"] <= float(high) / 100 < 1e-4

    @pytest.mark.broad
    @pytest.mark.parametrize(
        ("options", "segmented"),
        [
            (("--segment", "region", "--bins", "4"), True),
            (("--pilot", "0.3", "--bins", "5"), False),
            (
                (
                    "--pilot",
                    "0.3",
                    "--id",
                    "id",
                    "--seed",
                    "4",
                    "--bins",
                    "5",
                    "--segment",
                    "region",
                ),
                True,
            ),
            (
                (
                    "--method",
                    "uniform",
                    "--bins",
                    "6",
                    "--interval",
                    "blaker",
                    "--value",
                    "midpoint",
                ),
                False,
            ),
            (("--method", "uniform", "--range", "-1", "2", "--bins", "6"), False),
            (("--weight", "w", "--weight-bound", "2", "--bins", "4"), False),
            (
                ("--weight", "w", "--weight-bound", "2", "--bins", "4", "--interval", "betting"),
                False,
            ),
            (("--weight", "w", "--weight-bound", "2", "--bins", "4", "--pilot", "0.2"), False),
            (("--method", "scaling-binning", "--bins", "5", "--confidence", "0.8"), False),
        ],
    )
    def test_what_is_fitted_is_verified_in_any_format(
        self, options: tuple[str, ...], segmented: bool, folder: Path, calibrant: Any
    ) -> None:
        fitted = calibrant("fit", "scores.csv", *COLUMNS, *options, "-o", "model.json", "--json")
        assert fitted.code == 0, fitted.err
        assert fitted.json["guarantee"]["is_proved"]
        for file in ("scores.csv", "scores.parquet"):
            answer = calibrant("verify", "model.json", file, "--json")
            assert answer.code == 0, answer.out
            assert answer.json["stands"]
        out = calibrant("apply", "model.json", "scores.parquet", "-o", "out.parquet", "--json")
        assert out.json["refused"] == 0
        assert out.json["columns"] == ["calibrated", "lower", "upper", "set"]
        calibrator = load_model(folder / "model.json").calibrator
        found = pq.read_table(folder / "out.parquet")
        segments = {"segments": found["region"].to_pylist()} if segmented else {}
        scores = found["p"].to_numpy()
        np.testing.assert_array_equal(
            found["calibrated"].to_numpy(), calibrator.predict(scores, **segments)
        )
        limits = calibrator.predict_interval(scores, **segments)
        np.testing.assert_array_equal(np.column_stack([found["lower"], found["upper"]]), limits)
        sets = calibrator.predict_set(scores, **segments)
        assert [(("0" in text), ("1" in text)) for text in found["set"].to_pylist()] == list(
            map(tuple, sets.tolist())
        )

    @pytest.mark.parametrize(
        "method", ["blend", "platt", "temperature", "beta", "isotonic", "venn-abers"]
    )
    def test_methods_without_a_guarantee_say_so(
        self, method: str, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        answer = calibrant(
            "fit", "scores.csv", *COLUMNS, "--method", method, "-o", "model.json", "--json"
        )
        assert answer.code == 0, answer.err
        assert answer.json["guarantee"]["is_proved"] is False
        assert answer.json["guarantee"]["epsilon"] is None
        verified = calibrant("verify", "model.json", "scores.csv")
        assert verified.code == 1
        assert verified.out.startswith("PROBLEM  There is no guarantee to verify.")
        assert calibrant("apply", "model.json", "scores.parquet", "-o", "out.parquet").code == 0
        result = pq.read_table(folder / "out.parquet")
        assert result.column_names == [*table.column_names, "calibrated"]
        expected = load_model(folder / "model.json").calibrator.predict(table["p"].to_numpy())
        np.testing.assert_array_equal(result["calibrated"].to_numpy(), expected)

    @pytest.mark.broad
    def test_a_required_epsilon_decides_the_exit_code(self, folder: Path, calibrant: Any) -> None:
        assert (
            calibrant("fit", "scores.csv", *COLUMNS, "--bins", "4", "--require-epsilon", "0.2").code
            == 0
        )
        refused = calibrant(
            "fit", "scores.csv", *COLUMNS, "--bins", "4", "--require-epsilon", "0.001"
        )
        assert refused.code == 1
        assert "was not reached" in refused.out
        assert "Next: calibrant plan --epsilon 0.001" in refused.out
        nothing = ("--method", "platt", "--require-epsilon", "0.5", "--json")
        answer = calibrant("fit", "scores.csv", *COLUMNS, *nothing)
        assert answer.code == 1
        assert answer.json["reached"] is False

    def test_weights_without_a_bound_prove_nothing(self, folder: Path, calibrant: Any) -> None:
        answer = calibrant(
            "fit",
            "scores.csv",
            *COLUMNS,
            "--weight",
            "w",
            "--bins",
            "4",
            "--require-epsilon",
            "0.4",
            "-o",
            "m.json",
        )
        assert answer.code == 1
        assert "Nothing is guaranteed" in answer.out
        assert calibrant("verify", "m.json", "scores.csv").code == 1

    def test_text_labels_and_rare_classes(
        self, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        words = pa.array(["yes" if label else "no" for label in table["y"].to_pylist()])
        pq.write_table(table.set_column(2, "y", words), folder / "words.parquet")
        answer = calibrant(
            "fit", "words.parquet", *COLUMNS, "--bins", "8", "--pos-label", "yes", "--json"
        )
        numbers = calibrant("fit", "scores.csv", *COLUMNS, "--bins", "8", "--json")
        assert answer.json["guarantee"]["regions"] == numbers.json["guarantee"]["regions"]
        pq.write_table(pa.table({"p": [0.1, 0.2, 0.3], "y": [0, 0, 0]}), folder / "one.parquet")
        assert (
            calibrant("fit", "one.parquet", *COLUMNS, "--bins", "1", "--classes", "0,1").code == 0
        )

    @pytest.mark.broad
    def test_a_model_is_not_overwritten_unless_told(self, model: Path, calibrant: Any) -> None:
        before = model.read_bytes()
        answer = calibrant("fit", "scores.csv", *COLUMNS, "-o", "model.json", "--bins", "3")
        assert answer.code == 2
        assert "--overwrite" in answer.err
        assert model.read_bytes() == before
        assert (
            calibrant(
                "fit", "scores.csv", *COLUMNS, "-o", "model.json", "--bins", "3", "--overwrite"
            ).code
            == 0
        )
        assert model.read_bytes() != before

    @pytest.mark.broad
    @pytest.mark.parametrize("form", ["csv", "gz", "parquet", "jsonl", "arrow"])
    def test_standard_input_in_every_format(
        self, form: str, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        import gzip

        import pyarrow.feather as feather

        feather.write_feather(table, str(folder / "scores.arrow"))
        lines = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
        content = {
            "csv": (folder / "scores.csv").read_bytes(),
            "gz": gzip.compress((folder / "scores.csv").read_bytes()),
            "parquet": (folder / "scores.parquet").read_bytes(),
            "jsonl": lines.encode(),
            "arrow": (folder / "scores.arrow").read_bytes(),
        }[form]
        answer = calibrant("fit", "-", *COLUMNS, "--bins", "8", "--json", stdin=content)
        assert answer.code == 0, answer.err
        expected = calibrant("fit", "scores.csv", *COLUMNS, "--bins", "8", "--json").json
        assert answer.json["guarantee"] == expected["guarantee"]
        assert answer.json["fingerprint"] == expected["fingerprint"]

    @pytest.mark.broad
    def test_folders_globs_and_several_files(
        self, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        (folder / "days").mkdir()
        for day in range(4):
            pq.write_table(table.slice(1000 * day, 1000), folder / "days" / f"{day}.parquet")
        whole = calibrant("fit", "scores.csv", *COLUMNS, "--bins", "8", "--json").json
        names = [f"days/{day}.parquet" for day in (3, 1, 0, 2)]
        for data in (["days"], ["days/*.parquet"], names):
            answer = calibrant("fit", *data, *COLUMNS, "--bins", "8", "--json").json
            assert answer["guarantee"] == whole["guarantee"]
            assert answer["fingerprint"] == whole["fingerprint"]


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_default_fit_reads_a_parquet_file_four_times_and_looks_at_its_first_rows(
    kind: str, folder: Path, calibrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_rows = 400_000
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=n_rows)
    labels = rng.uniform(size=n_rows) < scores
    table = pa.table({"score": scores.astype(kind), "label": labels})
    pq.write_table(table, folder / "many.parquet", row_group_size=50_000)
    rows_read = []
    iter_batches = pq.ParquetFile.iter_batches

    def counted(*arguments: Any, **named: Any) -> Any:
        for batch in iter_batches(*arguments, **named):
            rows_read.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    assert calibrant("fit", "many.parquet", "-o", "many.json").code == 0
    # the file's fingerprint in order, and the three passes of a fit; scores that are tied among the
    # pilot rows, as float32 are, are cut in one pass more
    passes = 5 if kind == "float32" else 4
    assert passes * n_rows < sum(rows_read) < (passes + 1) * n_rows
