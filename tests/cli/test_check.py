"""`calibrant check`, and signs of groups in other commands."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import audit, check

COLUMNS = ("--score", "p", "--label", "y")


@pytest.fixture
def drift(tmp_path: Path) -> Path:
    """Rows in random order whose rate moves on a day; several rows of each customer."""
    rng = np.random.default_rng([3, 1])
    day = np.repeat(np.arange("2024-01-01", "2024-02-10", dtype="datetime64[D]"), 75)
    scores = rng.random(day.size)
    y = rng.random(day.size) < np.where(day < np.datetime64("2024-01-21"), scores, scores**3)
    order = rng.permutation(day.size)
    table = pa.table(
        {
            "customer_id": rng.integers(0, 500, day.size),
            "day": day[order],
            "p": scores[order],
            "y": y[order],
            "q": scores[order] ** 2,
        }
    )
    pq.write_table(table, tmp_path / "drift.parquet")
    return tmp_path / "drift.parquet"


@pytest.mark.broad
def test_by_time_it_finds_what_moved_and_equals_the_library(drift: Path, calibrant: Any) -> None:
    answer = calibrant("check", drift, *COLUMNS, "--time", "day", "--json").json
    table = pq.read_table(drift)
    expected = check(
        table["y"].to_numpy(zero_copy_only=False),
        table["p"].to_numpy(),
        time=table["day"].to_numpy(),
    )
    assert answer["causes"] == list(expected.causes) == ["labels"]
    assert [test["log_evidence"] for test in answer["tests"]] == [
        test.log_evidence for test in expected.tests
    ]
    assert answer["tests"][1]["change_time"] == "2024-01-21"
    assert answer["signs"][0]["column"] == "customer_id"
    text = calibrant("check", drift, *COLUMNS, "--time", "day")
    said = " ".join(text.out.split())
    assert said.startswith("PROBLEM These rows are not i.i.d.:")
    assert "do not apply (false alarms: at most 5%; 3,000 rows). A sign of groups:" in said
    assert "): use --group customer_id. The rate at the same score has changed from" in said
    assert "around 2024-01-21: calibrate on recent rows, as --holdout last does" in said
    assert said.endswith(
        f"Next: calibrant check {drift} --score p --label y --group customer_id --time day"
    )


def test_exit_codes(drift: Path, calibrant: Any) -> None:
    assert calibrant("check", drift, *COLUMNS, "--check").code == 0  # in file order nothing moves
    assert calibrant("check", drift, *COLUMNS, "--time", "day", "--check").code == 1
    assert calibrant("check", drift, *COLUMNS, "--time", "day").code == 0
    wrong = calibrant("check", drift, *COLUMNS, "--time", "days")
    assert wrong.code == 2
    assert "did you mean 'day'?" in wrong.err


def test_groups_are_tested_by_one_row_each(drift: Path, calibrant: Any) -> None:
    answer = calibrant(
        "check", drift, *COLUMNS, "--time", "day", "--group", "customer_id", "--json"
    ).json
    assert answer["n_rows"] < 501
    assert answer["signs"] == []
    said = calibrant("check", drift, *COLUMNS, "--time", "day", "--group", "customer_id").out
    assert f"one randomly picked row from each of {answer['n_rows']} groups, in order" in " ".join(
        said.split()
    )


@pytest.mark.parametrize(
    "command",
    [
        ("fit",),
        ("audit",),
        ("threshold", "--precision", "0.6"),
        ("compare-models", "--score", "q"),
    ],
    ids=lambda words: words[0],
)
def test_signs_are_warnings_on_standard_error_and_change_nothing(
    command: tuple[str, ...], drift: Path, calibrant: Any
) -> None:
    words = (*command[1:], *COLUMNS)
    answer = calibrant(command[0], drift, *words)
    assert answer.code == 0
    assert "warning: Column 'customer_id' looks like an id" in " ".join(answer.err.split())
    assert "customer_id" not in answer.out
    assert "customer_id" not in calibrant(command[0], drift, *words, "--quiet").err
    plain = drift.with_name("plain.parquet")
    pq.write_table(pq.read_table(drift).drop_columns(["customer_id"]), plain)
    silent = calibrant(command[0], plain, *words)
    assert silent.out.replace(str(plain), str(drift)) == answer.out
    assert "warning" not in silent.err
    assert (
        calibrant(command[0], drift, *words, "--json").json["signs_of_groups"][0]["kind"]
        == "repeated id"
    )


@pytest.mark.parametrize(
    "command",
    [
        ("audit",),
        ("threshold", "--precision", "0.6"),
        ("compare-models", "--score", "q"),
    ],
    ids=lambda words: words[0],
)
def test_a_report_shows_signs_above_its_verdict(
    command: tuple[str, ...], drift: Path, calibrant: Any
) -> None:
    report = drift.with_name("report.html")
    words = (*command, drift, *COLUMNS, "-o", report, "--overwrite")
    assert calibrant(*words).code == 0
    page = report.read_text()
    assert page.index("Column &#39;customer_id&#39; looks like an id") < page.index(
        'class="verdict"'
    )
    assert 'class="statement right"' not in page
    group = ("--group", "customer_id", "--max-group-size", "20")
    assert calibrant(*words, *group).code == 0
    assert "looks like an id" not in report.read_text()


def test_a_file_sorted_by_outcome_is_told_to_be(drift: Path, calibrant: Any) -> None:
    table = pq.read_table(drift).sort_by("y").drop_columns(["customer_id"])
    pq.write_table(table, path := drift.with_name("sorted.parquet"))
    for command, sign in (
        ("fit", "warning: Labels"),
        ("audit", "warning: Labels"),
        ("check", "A sign of groups: labels"),
    ):
        answer = calibrant(command, path, *COLUMNS, "--details")
        said = " ".join((answer.out if command == "check" else answer.err).split())
        assert f"{sign} come in runs: the first 3,000 rows have 2 runs" in said
        assert (
            "the file may be sorted by outcome; if so, its order tells you nothing. Shuffle it"
            in said
        )
    (step,) = calibrant("check", path, *COLUMNS, "--json").json["next_steps"]
    assert "the file may be sorted by outcome" in step["what"]
    assert "--time" in step["what"]


@pytest.mark.broad
def test_a_file_may_be_sorted_by_score(drift: Path, calibrant: Any) -> None:
    """What is drawn by place has a key that is made of the rows, so their order does not matter."""
    table = pq.read_table(drift).sort_by("p").drop_columns(["customer_id"])
    pq.write_table(table, path := drift.with_name("sorted.parquet"))
    for words in (("fit",), ("threshold", "--precision", "0.8", "--method", "look")):
        found = calibrant(words[0], path, *COLUMNS, *words[1:])
        assert found.code == 0
        for text in (found.out, found.err):
            assert "sorted" not in text
            assert "order of the rows" not in " ".join(text.split())


@pytest.mark.broad
def test_fit_prints_what_it_assumes(drift: Path, calibrant: Any) -> None:
    answer = calibrant("fit", drift, *COLUMNS, "--details")
    assumed = calibrant("fit", drift, *COLUMNS, "--json").json["guarantee"]["assumptions"]
    assert "independent draws" in assumed[0]
    assert f"Assumptions: {'; '.join(assumed)}." in " ".join(answer.out.split())
    assert "Assumptions" not in calibrant("fit", drift, *COLUMNS, "--quiet").out


@pytest.mark.broad
def test_an_audit_with_groups_accounts_for_every_row(drift: Path, calibrant: Any) -> None:
    answer = calibrant("audit", drift, *COLUMNS, "--group", "customer_id", "--json").json
    assert answer["n_set_aside"] > 0
    assert answer["n_rows"] + answer["n_set_aside"] == 3_000
    details = calibrant("audit", drift, *COLUMNS, "--group", "customer_id", "--details").out
    said = " ".join(details.split())
    assert f"{answer['n_rows']:,} rows in" in said
    assert f"{answer['n_set_aside']:,} pilot rows only chose the regions" in said
    assert calibrant("audit", drift, *COLUMNS, "--json").json["n_set_aside"] == 0


@pytest.mark.broad
def test_compare_warns_of_signs_too(drift: Path, calibrant: Any) -> None:
    answer = calibrant("compare", drift, *COLUMNS, "--json").json
    assert answer["signs_of_groups"][0]["column"] == "customer_id"
    said = calibrant("compare", drift, *COLUMNS)
    assert "warning: Column 'customer_id' looks like an id" in " ".join(said.err.split())
    assert (
        "warning"
        not in calibrant(
            "compare", drift, *COLUMNS, "--group", "customer_id", "--max-group-size", "3"
        ).err
    )


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([None, "2024-01-01"], "no missing values"),
        (["1/2/2024", "2/2/2024"], "ISO 8601"),
        ([True, False], "numbers, dates"),
    ],
)
def test_times_without_an_order_are_refused(
    times: list[Any], words: str, tmp_path: Path, calibrant: Any
) -> None:
    path = tmp_path / "few.parquet"
    pq.write_table(pa.table({"p": [0.1, 0.2], "y": [0, 1], "t": times}), path)
    answer = calibrant("check", path, *COLUMNS, "--time", "t")
    if times == [True, False]:
        assert answer.code == 0  # false comes before true
        return
    assert answer.code == 2
    assert words in answer.err


def test_one_class_few_rows_and_pending_labels(tmp_path: Path, calibrant: Any) -> None:
    path = tmp_path / "few.csv"
    path.write_text("p,y\n" + "".join(f"0.{digit},0\n" for digit in range(9)) + "0.5,\n")
    one = calibrant("check", path, *COLUMNS, "--skip-missing")
    assert one.code == 2
    assert "--classes 0,1" in one.err
    answer = calibrant("check", path, *COLUMNS, "--skip-missing", "--classes", "0,1", "--json").json
    assert (answer["n_rows"], answer["n_skipped"], answer["alarm"]) == (9, 1, False)


class TestAuditByMonth:
    def test_each_month_is_audited_within_one_budget_and_drawn_in_order(
        self, drift: Path, calibrant: Any
    ) -> None:
        page = drift.with_name("audit.html")
        answer = calibrant("audit", drift, *COLUMNS, "--time", "day", "-o", page, "--json").json
        table = pq.read_table(drift)
        month = table["day"].to_numpy().astype("datetime64[M]").astype(str)
        labels = table["y"].to_numpy(zero_copy_only=False)
        expected = audit(labels, table["p"].to_numpy(), segments=month)
        assert answer["lower_bound"] == expected.lower_bound
        assert answer["within_segments"]["lower_bound"] == expected.within_segments.lower_bound
        text = page.read_text()
        assert "By month" in text
        assert "of 2 months" in text
        assert text.index('<h3 title="2024-01">') < text.index('<h3 title="2024-02">')
        assert "largest error first" not in text
        assert "own guarantee" not in text
        model = str(drift.with_name("model.json"))
        assert (
            calibrant(
                "fit", drift, *COLUMNS, "--method", "binning", "--bins", "4", "-o", model
            ).code
            == 0
        )
        page = drift.with_name("both.html")
        assert (
            calibrant("audit", drift, *COLUMNS, "--time", "day", "--model", model, "-o", page).code
            == 0
        )
        strips = re.findall(r'class="band" points="([^"]*)"', page.read_text())
        assert [len(strip.split()) for strip in strips[-2:]] == [
            16,
            16,
        ], "four ranges of scores, both limits"
        assert "own guarantee" in page.read_text()

    def test_skipped_rows_are_told(self, tmp_path: Path, calibrant: Any) -> None:
        path = tmp_path / "few.csv"
        rows = [f"0.{row % 9},{row % 2},{2020 + row % 3}" for row in range(60)]
        path.write_text("p,y,t\n" + "\n".join(rows) + "\n0.5,,2021\n")
        answer = calibrant("audit", path, *COLUMNS, "--time", "t", "--skip-missing", "--json").json
        assert (answer["n_rows"], answer["n_skipped"]) == (60, 1)

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            ((), "at most 60 values"),
            (("--time", "tt"), "be in the"),
        ],
    )
    def test_what_cannot_be_audited_by_month_is_refused(
        self, more: tuple[str, ...], words: str, tmp_path: Path, calibrant: Any
    ) -> None:
        path = tmp_path / "few.csv"
        path.write_text(
            "p,y,t,s\n"
            + "\n".join(f"0.{row % 9},{row % 2},{row / 7},a" for row in range(60))
            + "\n"
        )
        answer = calibrant("audit", path, *COLUMNS, "--time", "t", *more)
        assert answer.code == 2
        assert words in answer.err


class TestManyRows:
    """More than --most-rows: a random sample is tested, in its order, with its own times and
    groups.
    """

    @pytest.fixture
    def long(self, folder: Path) -> Path:
        generator = np.random.default_rng(3)
        scores = generator.uniform(size=40_000)
        place = np.arange(scores.size)
        rate = np.where(place < scores.size // 2, scores, scores**3)
        shuffled = generator.permutation(scores.size)
        table = pa.table(
            {
                "p": scores,
                "y": (generator.uniform(size=scores.size) < rate).astype(np.int8),
                "day": place // 100,
                "customer": place // 2,
            }
        )
        pq.write_table(
            table.take(pa.array(shuffled)), folder / "long.parquet", row_group_size=3_000
        )
        return folder / "long.parquet"

    @pytest.mark.parametrize("more", [(), ("--group", "customer"), ("--skip-missing",)])
    def test_a_sample_keeps_its_times(
        self, more: tuple[str, ...], long: Path, calibrant: Any
    ) -> None:
        arguments = (
            "check",
            str(long),
            *COLUMNS,
            "--time",
            "day",
            *more,
            "--most-rows",
            "8000",
            "--json",
        )
        answer = calibrant(*arguments).json
        assert answer["n_in_data"] == 40_000
        assert 0.8 * 8_000 < answer["n_rows"] < 1.05 * 8_000
        assert answer["alarm"]
        (labels,) = (test for test in answer["tests"] if test["kind"] == "labels")
        assert 190 <= labels["change_time"] <= 210

    def test_the_sample_is_announced(self, long: Path, calibrant: Any) -> None:
        answer = calibrant("check", str(long), *COLUMNS, "--most-rows", "8000")
        assert "of 40,000 rows" in answer.err
        assert "--most-rows" in answer.err
        assert "most-rows" not in calibrant("check", str(long), *COLUMNS).err


@pytest.mark.parametrize("name", ["day", "sold_at_date"])
def test_fit_names_the_command_that_tests_for_drift(
    name: str, folder: Path, calibrant: Any
) -> None:
    """The rate changes halfway: the note of fit is a command that finds it."""
    generator = np.random.default_rng(8)
    scores = generator.uniform(size=6_000)
    rate = np.where(np.arange(6_000) < 3_000, scores, scores**3)
    day = np.datetime64("2024-01-01") + np.arange(6_000) // 30
    y = (generator.uniform(size=6_000) < rate).astype(int)
    pq.write_table(pa.table({"p": scores, "y": y, name: day.astype(str)}), folder / "dated.parquet")
    notes = calibrant("fit", "dated.parquet", *COLUMNS, "--json").json["notes"]
    (note,) = (text for text in notes if "calibrant check" in text)
    assert f"calibrant check ... --time {name} tests it" in note
    assert calibrant("check", "dated.parquet", *COLUMNS, "--time", name, "--json").json["alarm"]


def test_fit_says_nothing_of_times_where_there_are_none(folder: Path, calibrant: Any) -> None:
    assert "calibrant check" not in calibrant("fit", "scores.csv", *COLUMNS).out
