"""A model applied to very many rows of Parquet, from the command line: how long, and with how much
memory.

Writes the rows to a temporary folder, about 8 bytes each, and as many again with four columns more;
both are removed. The number of rows is the only argument, 100 million if there is none.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GROUP = 1 << 20
COMMAND = [sys.executable, "-m", "calibrant"]


def write_scores(path: Path, n_rows: int, *, labels: bool = False) -> None:
    """Scores that no encoding can shrink much."""
    fields = [("p", pa.float64())] + ([("y", pa.int8())] if labels else [])
    schema = pa.schema(fields)
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for start in range(0, n_rows, GROUP):
            scores = rng.uniform(size=min(GROUP, n_rows - start))
            columns = {"p": scores} | (
                {"y": (rng.uniform(size=scores.size) < scores**2).astype(np.int8)} if labels else {}
            )
            writer.write_table(pa.table(columns, schema=schema))


def timed(*arguments: str) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak megabytes of a command."""
    start = time.perf_counter()
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"calibrant {' '.join(arguments)} failed")
    scale = 2**20 if sys.platform == "darwin" else 2**10
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / scale


def main(n_rows: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="calibrant-bench-"))
    try:
        if shutil.disk_usage(folder).free < 60 * n_rows:
            sys.exit(f"{60 * n_rows / 1e9:.0f} GB of free disk are needed in {folder.parent}")
        write_scores(folder / "labelled.parquet", 200_000, labels=True)
        write_scores(folder / "new.parquet", n_rows)
        model = str(folder / "model.json")
        timed(
            "fit",
            str(folder / "labelled.parquet"),
            "--score",
            "p",
            "--label",
            "y",
            "--bins",
            "20",
            "-o",
            model,
            "-q",
        )
        wall, cpu, peak = timed(
            "apply", model, str(folder / "new.parquet"), "-o", str(folder / "out.parquet")
        )
        written = pq.ParquetFile(folder / "out.parquet").metadata.num_rows
        print(
            f"{written:,} rows: {wall:.0f} s ({n_rows / wall / 1e6:.1f} million a second),"
            f" {cpu:.0f} s of CPU, ",
            end="",
        )
        print(
            f"peak {peak:,.0f} MB; {(folder / 'out.parquet').stat().st_size / 1e9:.2f} GB written"
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000_000)
