"""The tables of the study: those that tools/realdata.py reads for the tutorials and benchmarks,
too.
"""

import os
import sys
from pathlib import Path

import pandas as pd

sys.path.append(str(Path(__file__).parents[1] / "tools"))
from realdata import LICENCES, WHEELS
from realdata import read_table as read_one

__all__ = ["CACHE", "EMPLOYMENT", "LICENCES", "WHEELS", "read_table"]

CACHE = Path(os.environ.get("CALIBRANT_STUDY_CACHE", "out/study"))
EMPLOYMENT = "nannyml employment_MA"
"""Four years of the census in three files, with the scores of a model."""


def read_table(source: str) -> pd.DataFrame:
    """Read a table, as `realdata.read_table` does."""
    if source != EMPLOYMENT:
        return read_one(source)
    first, later, labels = (
        read_one(f"{EMPLOYMENT}_{name}.pq") for name in ("reference", "analysis", "analysis_target")
    )
    return pd.concat([first, later.merge(labels, on="id")])
