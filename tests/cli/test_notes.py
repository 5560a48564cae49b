"""What should be known besides the answer is told beside it: ties, odd splits, odd scores, rows
without limits.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import BinningCalibrator, load_model, save_model
from calibrant.text.numbers import span

COLUMNS = ("--score", "p", "--label", "y")
WORDS = (*COLUMNS, "--pos-label", "Y")
OWN = ("--method", "binning", "--pilot", "none")
TIES = "have few rows; --pilot auto lets tied scores share a bin"


def joined(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def tied(folder: Path) -> Path:
    """Scores of three digits, with labels that are words."""
    rng = np.random.default_rng(3)
    scores = rng.uniform(size=4000)
    labels = np.where(rng.uniform(size=4000) < scores, "Y", "N")
    pq.write_table(pa.table({"p": np.round(scores**2, 3), "y": labels}), folder / "tied.parquet")
    return folder


class TestTies:
    def test_fit_says_why_there_are_small_regions(self, tied: Path, calibrant: Any) -> None:
        how = ("-o", "model.json", "--details")
        answer = calibrant("fit", "tied.parquet", *WORDS, *OWN, *how)
        assert TIES in joined(answer.out)
        said = joined(answer.out)
        assert said.index("90% confidence") < said.index("Scores are tied")
        found = calibrant("fit", "tied.parquet", *WORDS, *OWN, "--json").json["guarantee"]["notes"]
        assert [text for text in found if text.endswith(TIES)]

    @pytest.mark.broad
    def test_so_do_audit_and_verify_of_the_model(self, tied: Path, calibrant: Any) -> None:
        calibrant("fit", "tied.parquet", *WORDS, *OWN, "-o", "model.json")
        audited = ("audit", "tied.parquet", *WORDS, "--model", "model.json", "-o", "audit.html")
        answer = calibrant(*audited, "--details")
        assert answer.code == 0, answer.err
        assert "the true rate of 'Y' is within" in joined(answer.out)
        assert TIES in joined(answer.out)
        found = calibrant(*audited, "--overwrite", "--json").json["guarantee"]
        assert any(text.endswith(TIES) for text in found["notes"])
        assert calibrant("audit", "tied.parquet", *WORDS, "--json").json["guarantee"] is None
        assert TIES in joined(calibrant("verify", "model.json", "tied.parquet", "--details").out)
        told = calibrant("verify", "model.json", "tied.parquet", "--json").json["notes"]
        assert any(text.endswith(TIES) for text in told)

    @pytest.mark.broad
    def test_the_advice_is_followed_without_a_note(self, tied: Path, calibrant: Any) -> None:
        answer = calibrant("fit", "tied.parquet", *WORDS, "--pilot", "auto", "--json")
        assert not any(text.endswith(TIES) for text in answer.json["guarantee"]["notes"])
        assert (
            calibrant("fit", "tied.parquet", *WORDS, "--json").json["guarantee"]
            == answer.json["guarantee"]
        )

    @pytest.mark.broad
    def test_where_nothing_is_to_be_said_nothing_is(self, folder: Path, calibrant: Any) -> None:
        answer = calibrant("fit", "scores.csv", *COLUMNS, "--bins", "8")
        assert "note:" not in answer.out
        assert calibrant("fit", "scores.csv", *COLUMNS, "--bins", "8", "--json").json["notes"] == []


class TestOddSplits:
    @pytest.mark.broad
    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (("--pilot", "2"), "2 rows drawn to cut the bins; a fraction such as 0.2 is usual"),
            (
                ("--pilot", "1", "--bins", "1"),
                "1 row drawn to cut the bins; a fraction such as 0.2 is usual",
            ),
            (
                ("--pilot", "49", "--bins", "5"),
                "49 rows drawn to cut the bins; a fraction such as 0.2 is usual",
            ),
            (("--pilot", "50", "--bins", "5"), ""),
            (("--pilot", "0.3", "--bins", "5"), ""),
            (
                ("--pilot", "20", "--method", "scaling-binning", "--bins", "3"),
                "20 rows drawn to fit the curve; a fraction such as 0.5",
            ),
        ],
    )
    def test_a_few_rows_are_remarked(
        self, options: tuple[str, ...], told: str, folder: Path, calibrant: Any
    ) -> None:
        answer = calibrant("fit", "scores.csv", *COLUMNS, *options)
        assert answer.code == 0, answer.err
        assert (f"note: {told}" in joined(answer.out)) if told else ("note:" not in answer.out)
        assert "note:" not in calibrant("fit", "scores.csv", *COLUMNS, *options, "--quiet").out
        notes = calibrant("fit", "scores.csv", *COLUMNS, *options, "--json").json["notes"]
        assert [told in note for note in notes] == ([True] if told else [])


class TestOddScores:
    @pytest.fixture
    def scaled(self, folder: Path, table: pa.Table) -> Path:
        scores = table["p"].to_numpy()
        made = {
            "percent": 100 * scores,
            "logits": 100.2 * scores - 3.2,
            "large": 1000 * scores,
            "fractions": scores,
        }
        for name, column in made.items():
            pq.write_table(table.set_column(1, "p", pa.array(column)), folder / f"{name}.parquet")
        return folder

    @pytest.mark.broad
    def test_fit_says_how_far_they_reach(
        self, scaled: Path, table: pa.Table, calibrant: Any
    ) -> None:
        low, high = (
            100.2 * end - 3.2 for end in (table["p"].to_numpy().min(), table["p"].to_numpy().max())
        )
        answer = calibrant("fit", "logits.parquet", *COLUMNS, "--bins", "5")
        told = (
            f"note: scores range from {span(low, high)}: curve takes any scores, and new ones"
            " must have "
        )
        told += "the same scale"
        assert told in joined(answer.out)
        assert calibrant("fit", "logits.parquet", *COLUMNS, "--bins", "5", "--json").json[
            "notes"
        ] == [told.removeprefix("note: ")]
        answer = calibrant("fit", "percent.parquet", *COLUMNS, "--method", "platt")
        assert ", as percentages do: platt takes any scores" in joined(answer.out)
        assert "note:" not in calibrant("fit", "fractions.parquet", *COLUMNS, "--bins", "5").out
        chosen = ("--method", "uniform", "--range", "0", "100", "--bins", "5")
        assert "note:" not in calibrant("fit", "percent.parquet", *COLUMNS, *chosen).out

    def test_audit_asks_whether_they_are_percentages(self, scaled: Path, calibrant: Any) -> None:
        hint = "divide by 100 if these are percentages; the largest score is 99.957"
        answer = calibrant("audit", "percent.parquet", *COLUMNS)
        assert answer.code == 2
        assert hint in answer.err
        assert len(answer.err.strip().splitlines()) == 1
        for name in ("logits", "large"):
            other = calibrant("audit", f"{name}.parquet", *COLUMNS)
            assert other.code == 2
            assert "probabilities in [0, 1]" in other.err
            assert "percentages" not in other.err
            assert "calibrate them first, with calibrant fit and apply" in other.err
            logits = "if these are logits, use 1 / (1 + exp(-score))"
            assert (logits in other.err) is (name == "logits")


class TestRowsWithoutLimits:
    @pytest.fixture
    def gap(self, folder: Path) -> Path:
        """A model with ten uniform bins, of which those above 0.5 hold no row.

        And rows in all of them.
        """
        rng = np.random.default_rng(0)
        scores = rng.uniform(0, 0.5, size=1000)
        fitted = BinningCalibrator(10, partition="uniform").fit(
            scores, rng.uniform(size=1000) < scores
        )
        save_model(fitted, folder / "gap.json", columns={"score": "p"})
        (folder / "new.csv").write_text("p\n" + "0.2\n" * 5 + "0.71\n" * 12 + "nan\n")
        return folder

    @pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
    @pytest.mark.parametrize("prefix", ["", "new_"])
    def test_they_are_counted_and_told(
        self, output: str, prefix: str, gap: Path, calibrant: Any
    ) -> None:
        answer = calibrant("apply", "gap.json", "new.csv", "-o", output, "--prefix", prefix)
        assert answer.code == 0, answer.err
        assert (
            "12 rows are in regions without calibration rows: the interval there is 0 to 1, and the"
            " probability a placeholder of 0.5" in answer.err.splitlines()
        )
        assert answer.out == ""
        found = calibrant(
            "apply",
            "gap.json",
            "new.csv",
            "-o",
            output,
            "--prefix",
            prefix,
            "--overwrite",
            "--json",
        )
        assert found.json["unknown"] == 12
        assert found.json["refused"] == 1
        assert found.err == ""

    @pytest.mark.broad
    def test_one_row_and_none(self, gap: Path, calibrant: Any) -> None:
        (gap / "one.csv").write_text("p\n0.71\n")
        assert (
            "1 row is in a region without"
            in calibrant("apply", "gap.json", "one.csv", "-o", "out.csv").err
        )
        (gap / "none.csv").write_text("p\n0.2\n")
        answer = calibrant("apply", "gap.json", "none.csv", "-o", "none-out.csv")
        assert "region" not in answer.err
        assert (
            calibrant("fit", "scores.csv", *COLUMNS, "--method", "platt", "-o", "platt.json").code
            == 0
        )
        curve = calibrant("apply", "platt.json", "scores.csv", "-o", "curve.csv", "--json")
        assert curve.json["unknown"] == 0

    def test_few_rows_are_not_called_none(self, folder: Path, calibrant: Any) -> None:
        """Hoeffding's limits are 0 and 1 where rows are few, and there the value is no placeholder."""
        (folder / "few.csv").write_text("p,y\n0.1,0\n0.2,1\n0.9,1\n0.8,0\n")
        options = (
            "--method",
            "binning",
            "--bins",
            "1",
            "--interval",
            "hoeffding",
            "-o",
            "few.json",
            "--json",
        )
        fitted = calibrant("fit", "few.csv", *COLUMNS, *options).json["guarantee"]["regions"][0]
        assert (fitted["counts"], fitted["lower"], fitted["upper"]) == (4, 0.0, 1.0)
        answer = calibrant("apply", "few.json", "few.csv", "-o", "out.csv")
        assert "4 rows are in regions with too few calibration rows" in answer.err
        assert "placeholder" not in answer.err


class TestCompare:
    @pytest.mark.broad
    def test_the_label_is_named(self, tied: Path, calibrant: Any) -> None:
        found = calibrant("compare", "tied.parquet", *WORDS, "--bins", "4", "--json").json
        told = {entry["method"]: entry["guarantee"] for entry in found["methods"]}
        assert "the true rate of 'Y' is within" in told["binning"]
        assert "class 1" not in json.dumps(found)
        other = calibrant(
            "compare", "tied.parquet", *COLUMNS, "--pos-label", "N", "--bins", "4", "--json"
        ).json
        assert "rate of 'N'" in other["methods"][1]["guarantee"]


@pytest.mark.broad
def test_models_say_the_same_when_they_are_read_again(tied: Path, calibrant: Any) -> None:
    """What is told is the guarantee's own, not a thing of the moment."""
    answer = calibrant("fit", "tied.parquet", *WORDS, *OWN, "-o", "model.json", "--json")
    notes = load_model(tied / "model.json").calibrator.guarantee_.notes
    (of_ties, of_few_rows) = [text for text in notes if "pilot='auto'" in text]
    assert of_ties.endswith("have few rows; pilot='auto' lets tied scores share a bin")
    assert of_few_rows.startswith(
        "this guarantees almost nothing so far: the region 'exactly 0.877' contains 7 "
    )
    assert len([text for text in answer.json["guarantee"]["notes"] if text.endswith(TIES)]) == 1


class TestRowsOfTheFit:
    """An audit of the rows that a model was fitted on says so; other rows are not accused."""

    SAID = "these are the rows that model.json was fitted on"

    @pytest.fixture
    def rows(self, folder: Path, calibrant: Any) -> pa.Table:
        rng = np.random.default_rng(5)
        scores = rng.uniform(size=900)
        columns = {"p": scores, "y": (rng.uniform(size=900) < scores).astype(int)}
        columns |= {"g": np.arange(900) // 3, "s": np.where(np.arange(900) % 2, "a", "b")}
        table = pa.table(columns)
        pq.write_table(table, folder / "rows.parquet")
        fitted = calibrant("fit", "rows.parquet", *COLUMNS, "-o", "model.json")
        assert fitted.code == 0, fitted.err
        return table

    def audited(self, calibrant: Any, name: str, *more: str) -> Any:
        shown = ("--model", "model.json", "-o", "audit.html", "--overwrite")
        answer = calibrant("audit", name, *COLUMNS, *shown, *more)
        assert answer.code == 0, answer.err
        return answer

    def test_the_same_rows_are_told(self, rows: pa.Table, folder: Path, calibrant: Any) -> None:
        answer = self.audited(calibrant, "rows.parquet")
        assert f"warning: {self.SAID}" in joined(answer.err)
        assert "cannot check the calibrated probabilities" in joined(answer.err)
        page = joined((folder / "audit.html").read_text())
        assert self.SAID[1:] in page
        (told,) = self.audited(calibrant, "rows.parquet", "--json").json["warnings"]
        assert told.startswith(self.SAID)

    def test_in_another_order_format_or_by_segment(self, rows, folder: Path, calibrant) -> None:
        from pyarrow import csv

        csv.write_csv(rows.take(np.random.default_rng(6).permutation(900)), folder / "rows.csv")
        for more in ((), ("--segment", "s"), ("--group", "g")):
            assert self.SAID in joined(self.audited(calibrant, "rows.csv", *more).err)

    def test_other_rows_are_not_accused(self, rows, folder: Path, calibrant) -> None:
        labels = rows.column("y").to_numpy().copy()
        labels[0] = 1 - labels[0]
        other = rows.set_column(1, "y", pa.array(labels))
        for changed in (rows.slice(1), other):
            pq.write_table(changed, folder / "other.parquet")
            assert "fitted on" not in joined(self.audited(calibrant, "other.parquet").err)
            told = self.audited(calibrant, "other.parquet", "--json").json["warnings"]
            assert told == []

    def test_a_model_with_groups(self, rows, folder: Path, calibrant) -> None:
        grouped = ("--group", "g")
        fit = ("fit", "rows.parquet", *COLUMNS, *grouped, "-o", "model.json", "--overwrite")
        assert calibrant(*fit).code == 0
        assert self.SAID in joined(self.audited(calibrant, "rows.parquet", *grouped).err)
        # without the column of groups, the fingerprints cannot be compared
        assert "fitted on" not in joined(self.audited(calibrant, "rows.parquet").err)
