"""Default fits of a Parquet file beside one count by DuckDB: python benchmarks/curve_files.py.

Processor time, in turns; DuckDB has two threads, as we have. What a fit needs at least is one count.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb
from files import write
from timing import processor_medians, render

from calibrant import BinningCalibrator, Calibrator, scored

BINS = 100


def main() -> None:
    """Time them, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    duckdb.sql("SET threads TO 2")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, options.rows, "float32")

        def count() -> None:
            group = f"least(floor(score * {BINS}), {BINS - 1})::INTEGER"
            query = f"SELECT {group} AS b, count(*), sum(label) FROM '{path}' GROUP BY b"
            duckdb.sql(query).fetchall()

        def fit(calibrator: BinningCalibrator | Calibrator) -> None:
            calibrator.fit(scored(path, score="score", label="label", n_jobs=2))

        ways = {
            "duckdb, one count": count,
            "default bins": lambda: fit(BinningCalibrator()),
            "default curve": lambda: fit(Calibrator()),
        }
        seconds = processor_medians(ways, options.rounds)
    base = seconds["duckdb, one count"]
    lines = [[name, f"{taken:.2f}", f"{taken / base:.1f}"] for name, taken in seconds.items()]
    print(render([f"{options.rows:,} rows", "seconds", "of duckdb"], lines))


if __name__ == "__main__":
    main()
