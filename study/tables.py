"""The tables of the study: those that tools/realdata.py reads for the tutorials and benchmarks, too."""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tools"))
from realdata import LICENCES, read_table

__all__ = ["CACHE", "LICENCES", "read_table"]

CACHE = Path(os.environ.get("CALIBRANT_STUDY_CACHE", "out/study"))
