"""What is checked of a model before its guarantee is shown, and what a report and a next step may
rely on.
"""

import json
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import BinningCalibrator, save_model
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.text.numbers import nearest

COLUMNS = ("--score", "p", "--label", "y")


@pytest.fixture
def words(folder: Path, table: pa.Table) -> Path:
    """The scores with labels that are words, a second column of each, and models fitted to them."""
    made = pa.array(["Y" if label else "N" for label in table["y"].to_pylist()])
    table = table.set_column(2, "y", made).append_column("q", table["p"]).append_column("z", made)
    pq.write_table(table, folder / "words.parquet")
    return folder


class TestAuditWithAModel:
    OPTIONS = (*COLUMNS, "--pos-label", "Y", "--bins", "4", "--quiet")

    @pytest.mark.broad
    @pytest.mark.parametrize(
        ("fitted", "audited", "told"),
        [
            ((), ("--score", "q"), ("--score 'p'", "got 'q'")),
            ((), ("--label", "z"), ("--label 'y'", "got 'z'")),
            (("--segment", "region"), (), ("--segment 'region'", "got none")),
            (("--segment", "region"), ("--segment", "note"), ("--segment 'region'", "got 'note'")),
            ((), ("--pos-label", "N"), ("the probability of 'Y'", "got 'N'")),
            (("--method", "platt"), ("--pos-label", "N"), ("the probability of 'Y'", "got 'N'")),
        ],
    )
    def test_another_model_is_refused(
        self,
        fitted: tuple[str, ...],
        audited: tuple[str, ...],
        told: tuple[str, ...],
        words: Path,
        calibrant: Any,
    ) -> None:
        plain = [
            option
            for option in self.OPTIONS
            if "platt" not in fitted or option not in ("--bins", "4")
        ]
        assert calibrant("fit", "words.parquet", *plain, *fitted, "-o", "model.json").code == 0
        answer = calibrant(
            "audit",
            "words.parquet",
            *self.OPTIONS,
            *audited,
            "--model",
            "model.json",
            "-o",
            "audit.html",
        )
        assert answer.code == 2
        assert answer.out == ""
        assert len(answer.err.strip().splitlines()) == 1
        for word in ("--model", *told):
            assert word in answer.err
        assert not (words / "audit.html").exists()

    def test_other_labels_are_refused(self, words: Path, calibrant: Any) -> None:
        calibrant("fit", "scores.csv", *COLUMNS, "--bins", "4", "-o", "model.json")
        answer = calibrant(
            "audit", "words.parquet", *self.OPTIONS, "--model", "model.json", "-o", "audit.html"
        )
        assert answer.code == 2
        assert "it was fitted on [0, 1]; got ['N', 'Y']" in answer.err

    @pytest.mark.broad
    def test_labels_alone_are_compared_where_columns_are_not_known(
        self, words: Path, table: pa.Table, calibrant: Any
    ) -> None:
        save_model(
            BinningCalibrator(4).fit(table["p"].to_numpy(), table["y"].to_numpy()),
            words / "plain.json",
        )
        shown = ("--model", "plain.json", "-o", "audit.html")
        assert calibrant("audit", "words.parquet", *self.OPTIONS, *shown).code == 2
        assert calibrant("audit", "scores.csv", *COLUMNS, *shown).code == 0

    @pytest.mark.broad
    def test_true_is_one(self, words: Path, table: pa.Table, calibrant: Any) -> None:
        pq.write_table(
            table.set_column(2, "y", table["y"].cast(pa.bool_())), words / "bools.parquet"
        )
        calibrant("fit", "scores.csv", *COLUMNS, "--bins", "4", "-o", "model.json")
        answer = calibrant(
            "audit", "bools.parquet", *COLUMNS, "--model", "model.json", "-o", "audit.html"
        )
        assert answer.code == 0, answer.err


def facts(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


@pytest.mark.broad
def test_the_report_names_the_event_its_rate_and_the_day(
    words: Path, table: pa.Table, calibrant: Any
) -> None:
    before = datetime.now(UTC).date()
    for options in ((), ("--segment", "region")):
        arguments = (*COLUMNS, "--pos-label", "Y", *options, "-o", "audit.html", "--overwrite")
        assert calibrant("audit", "words.parquet", *arguments).code == 0
        told = facts((words / "audit.html").read_text())
        assert "y = Y" in told
        assert f"rate of the event {nearest(np.mean(table['y'].to_numpy()))}, in 4,000 rows" in told
        days = {str(before), str(datetime.now(UTC).date())}
        assert any(f"made on {day} (UTC)" in told for day in days)
    arguments = (*COLUMNS, "--pos-label", "N", "-o", "audit.html", "--overwrite")
    assert calibrant("audit", "words.parquet", *arguments).code == 0
    assert "y = N" in facts((words / "audit.html").read_text())


METHODS = (
    "curve",
    "binning",
    "uniform",
    "scaling-binning",
    "platt",
    "temperature",
    "beta",
    "isotonic",
    "venn-abers",
)
GUARANTEED = {"curve", "binning", "uniform", "scaling-binning"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.broad
def test_every_next_step_works(method: str, folder: Path, calibrant: Any) -> None:
    (folder / "scores.csv").rename(folder / "my scores.csv")
    answer = calibrant(
        "fit", "my scores.csv", *COLUMNS, "--method", method, "-o", "a model.json", "--details"
    )
    if method not in GUARANTEED:
        last = answer.out.splitlines()[-1]
        (folder / "model.json").unlink(missing_ok=True)
        done = calibrant(*shlex.split(last.partition("calibrant ")[2]))
        assert done.code == 0, (last, done.err)
        return
    steps = [shlex.split(line) for line in answer.out.partition("Next:\n")[2].splitlines()]
    assert [step[1] for step in steps] == ["apply", "decide", "watch"]
    (folder / "new.csv").write_text("p\n0.5\n")
    for step in steps[: 1 if method == "scaling-binning" else 2]:
        done = calibrant(*step[1:])
        assert done.code == 0, (step, done.err)


class TestVerifyOfDamage:
    @pytest.mark.parametrize(
        ("damage", "told"),
        [
            (
                lambda text: text.replace('"confidence_level": 0.9', '"confidence_level": 0.8'),
                "changed or damaged",
            ),
            (
                lambda text: re.sub(r'"epsilon": 0\.\d+', '"epsilon": 0.001', text),
                "changed or damaged",
            ),
            (lambda text: text[: len(text) // 2], "cut short"),
            (
                lambda text: text.replace('"provenance"', '"origin"'),
                "must have exactly the entries",
            ),
        ],
    )
    @pytest.mark.parametrize("piped", [False, True])
    def test_it_does_not_stand(
        self, damage: Any, told: str, piped: bool, model: Path, calibrant: Any
    ) -> None:
        whole = model.read_text()
        content = damage(whole)
        assert content != whole
        model.write_text(content)
        name, stdin = ("-", content.encode()) if piped else ("model.json", None)
        answer = calibrant("verify", name, "scores.csv", stdin=stdin)
        assert answer.code == 1
        assert answer.out.startswith("PROBLEM  The guarantee does not stand: the model file is not")
        found = calibrant("verify", name, "scores.csv", "--json", stdin=stdin)
        assert found.code == 1
        assert told in found.json["problem"]
        assert found.json["stands"] is False
        assert found.json["guarantee"] is None
        assert found.json["model"] is None

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (None, "no such file"),
            ("", "empty"),
            ("p,y\n0.1,0\n", "not a calibrant model file"),
            ('{"a": 1}', "not a calibrant model file"),
            ('{"format": "calibrant.model/99"}', "use the release of calibrant that wrote it"),
        ],
    )
    def test_what_is_no_model_is_refused(
        self, content: str | None, told: str, folder: Path, calibrant: Any
    ) -> None:
        if content is not None:
            (folder / "other.json").write_text(content)
        for form in ((), ("--json",)):
            answer = calibrant("verify", "other.json", "scores.csv", *form)
            assert answer.code == 2
            assert answer.out == ""
            assert told in answer.err


class TestVerifyOfASplit:
    @pytest.mark.broad
    @pytest.mark.parametrize("method", ["binning", "scaling-binning"])
    def test_what_can_not_be_compared_is_not_called_wrong(
        self, method: str, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        order = np.random.default_rng(2).permutation(table.num_rows)
        pq.write_table(table.take(order), folder / "shuffled.parquet")
        split = ("--method", method, "--bins", "5", "--pilot", "0.3", "-o", "model.json")
        assert calibrant("fit", "scores.csv", *COLUMNS, *split).code == 0
        answer = calibrant("verify", "model.json", "shuffled.parquet", "--json")
        assert answer.code == 3
        assert answer.json["differs"] == "order"
        assert answer.json["stands"] is None
        assert answer.json["differences"] == []
        assert "rows are drawn by position" in answer.json["unclear"]
        told = calibrant("verify", "model.json", "shuffled.parquet").out
        assert told.startswith("UNCLEAR  The guarantee is not fully checked")

    @pytest.mark.parametrize("kind", [BinningCalibrator, ScalingBinningCalibrator])
    def test_a_split_of_which_nothing_is_known_is_not_checked(
        self, kind: Any, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        fitted = kind(n_bins=5, pilot=0.3, random_state=7).fit(
            table["p"].to_numpy(), table["y"].to_numpy()
        )
        save_model(fitted, folder / "plain.json")
        answer = calibrant("verify", "plain.json", "scores.csv", *COLUMNS, "--json")
        assert answer.code == 3
        assert answer.json["stands"] is None
        assert "does not say which rows cut" in answer.json["unclear"]
        assert answer.json["differences"] == []

    def test_data_that_can_not_be_cut_as_saved(
        self, model: Path, folder: Path, calibrant: Any
    ) -> None:
        (folder / "short.csv").write_text("p,y\n0.1,0\n0.2,1\n0.9,1\n")
        answer = calibrant("verify", "model.json", "short.csv", "--json")
        assert answer.code == 1
        assert answer.json["stands"] is False
        assert answer.json["differs"] == "rows"


def test_help_shows_how_words_are_named(calibrant: Any) -> None:
    for command in ("fit", "audit"):
        shown = calibrant(command, "--help").out.partition("Examples:")[2]
        assert "--pos-label Y" in shown


@pytest.mark.slow
def test_the_demo_names_the_event_and_says_what_no_evidence_means(
    tmp_path: Path, calibrant: Any
) -> None:
    answer = calibrant("demo", "-o", str(tmp_path / "out"))
    assert answer.code == 0, answer.err
    page = facts((tmp_path / "out" / "report.html").read_text())
    assert "outcome = default" in page
    assert re.search(r"rate of the event 0\.\d+, in [\d,]+ rows", page)
    assert re.search(r"made on \d{4}-\d\d-\d\d \(UTC\)", page)
    told = " ".join(answer.out.split())
    assert "no evidence." not in told
    assert json.dumps(told).count("cor:") == 0


def test_audit_passes_its_check_where_errors_are_within_the_tolerance(
    folder: Path, calibrant: Any
) -> None:
    command = ("audit", "scores.csv", "--score", "p", "--label", "y", "--check", "--tolerance")
    failed = calibrant(*command, "0.01", "-o", "audit.html")
    assert failed.code == 1
    assert failed.out.startswith("PROBLEM  ")
    passed = calibrant(*command, "0.3", "--overwrite", "-o", "audit.html")
    assert passed.code == 0
    assert passed.out.startswith("OK  ")
    assert "30 points" in " ".join(passed.out.split())
    wrong = calibrant(*command, "2")
    assert wrong.code == 2
    assert wrong.err.startswith("error: --tolerance must be a number from 0 to below 1; got 2.0")
    assert calibrant(*command, "0.3", "--json").json["tolerance"] == 0.3
