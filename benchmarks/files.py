"""A fit over a Parquet file larger than it needs memory for: python benchmarks/files.py [--rows N]
[--json FILE].

The file has a random score and a label; the edges are given, 100 bins of equal width. Every
contender is a process of its own that reads a small file first, so that no import is measured, and
then the large one. Contenders take turns; the table shows medians of the wall clock and of the
processor's time, which other users of the machine disturb less, and the peak memory. All must agree
on every count.

DuckDB and Polars count in two ways: `search` takes any edges, as ours does; `arithmetic` multiplies
and rounds, which bins of equal width allow. `scan` only adds up both columns: nothing that reads
the file can be faster.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from timing import machine, render, write_json

N_BINS = 100
EDGES = (np.arange(1, N_BINS) / N_BINS).tolist()
GROUP_ROWS = 1 << 20
SMALL_ROWS = 100_000
Counts = tuple[list[int], list[int]] | None


def write(path: Path, rows: int, kind: str) -> None:
    """Write random scores, which do not compress, and labels, which do."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(7)
    schema = pa.schema([("score", pa.type_for_alias(kind)), ("label", pa.uint8())])
    with pq.ParquetWriter(path, schema, use_dictionary=["label"]) as writer:
        for start in range(0, rows, GROUP_ROWS):
            scores = generator.random(min(GROUP_ROWS, rows - start)).astype(kind)
            labels = (generator.random(scores.size, dtype=np.float32) < scores).astype(np.uint8)
            writer.write_batch(pa.record_batch([scores, labels], schema=schema))


def calibrant(paths: list[str], threads: int = -1) -> Counts:
    from calibrant import BinningCalibrator, Partition, scored

    data = scored(paths, score="score", label="label", n_jobs=threads)
    tally = BinningCalibrator(partition=Partition.from_edges(EDGES)).fit(data).tally_
    return tally.counts.tolist(), tally.positives.tolist()


def quantiles(paths: list[str]) -> Counts:
    """Cut at the data's own quantiles: three or four passes."""
    from calibrant import BinningCalibrator, scored

    BinningCalibrator(n_bins=N_BINS).fit(scored(paths, score="score", label="label"))
    return None


def _cases(edges: list[float], first: int) -> str:
    if not edges:
        return str(first)
    middle = len(edges) // 2
    below = _cases(edges[:middle], first)
    above = _cases(edges[middle + 1 :], first + middle + 1)
    return f"CASE WHEN s < CAST('{edges[middle]!r}' AS DOUBLE) THEN {below} ELSE {above} END"


def duckdb(paths: list[str], way: str) -> Counts:
    import duckdb

    bins = {
        "search": _cases(EDGES, 0),
        "arithmetic": f"least(floor(s * {N_BINS}), {N_BINS - 1})::INTEGER",
    }
    rows = f"(SELECT score::DOUBLE AS s, label FROM read_parquet({paths!r}))"
    if way == "scan":
        duckdb.sql(f"SELECT sum(s), sum(label) FROM {rows}").fetchall()
        return None
    return _sorted(
        duckdb.sql(
            f"SELECT {bins[way]} AS b, count(*), sum(label) FROM {rows} GROUP BY b"
        ).fetchall()
    )


def polars(paths: list[str], way: str) -> Counts:
    import polars as pl

    score = pl.col("score").cast(pl.Float64)
    positives = pl.col("label").cast(pl.Int64).sum()
    frame = pl.scan_parquet(paths)
    if way == "scan":
        frame.select(score.sum(), positives).collect(engine="streaming")
        return None
    if way == "search":
        bins = score.cut(EDGES, left_closed=True).to_physical().cast(pl.Int64)
    else:
        bins = (score * N_BINS).cast(pl.Int64).clip(upper_bound=N_BINS - 1)
    return _sorted(
        frame.group_by(bins.alias("b")).agg(pl.len(), positives).collect(engine="streaming").rows()
    )


def _sorted(rows: list[tuple[Any, ...]]) -> Counts:
    rows = sorted(rows)
    return [int(row[1]) for row in rows], [int(row[2]) for row in rows]


def arrow_scan(paths: list[str]) -> Counts:
    """Read row groups by two threads and add up."""
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def one(path: str, group: int, metadata: Any) -> float:
        with pq.ParquetFile(path, metadata=metadata, pre_buffer=False) as file:
            table = file.read_row_group(group, use_threads=False)
        return float(pc.sum(table["score"]).as_py() + pc.sum(table["label"]).as_py())

    with ThreadPoolExecutor(2) as pool:
        for path in paths:
            metadata = pq.read_metadata(path)
            sum(
                pool.map(
                    lambda group, p=path, m=metadata: one(p, group, m),
                    range(metadata.num_row_groups),
                )
            )
    return None


CONTENDERS: dict[str, Callable[[list[str]], Counts]] = {
    "calibrant": calibrant,
    "calibrant, 1 thread": lambda paths: calibrant(paths, 1),
    "calibrant, 8 threads": lambda paths: calibrant(paths, 8),
    "calibrant, own quantiles": quantiles,
    "duckdb search": lambda paths: duckdb(paths, "search"),
    "duckdb arithmetic": lambda paths: duckdb(paths, "arithmetic"),
    "polars search": lambda paths: polars(paths, "search"),
    "polars arithmetic": lambda paths: polars(paths, "arithmetic"),
    "duckdb scan": lambda paths: duckdb(paths, "scan"),
    "polars scan": lambda paths: polars(paths, "scan"),
    "arrow scan": arrow_scan,
}


def _peak_megabytes() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # where what the parent used does not count
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def contend(name: str, small: str, paths: list[str]) -> dict[str, Any]:
    """Do it once, in this process."""
    way = CONTENDERS[name]
    way([small])
    before = _peak_megabytes()
    processor = time.process_time()
    start = time.perf_counter()
    counts = way(paths)
    seconds = time.perf_counter() - start
    processor = time.process_time() - processor
    return {
        "seconds": seconds,
        "processor": processor,
        "peak": _peak_megabytes(),
        "before": before,
        "counts": counts,
    }


def in_process(name: str, small: Path, paths: list[Path]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--contender", name, str(small), *map(str, paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(small: Path, path: Path, names: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """Medians of every contender, over rounds in which they take turns."""
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    counts = None
    for _ in range(rounds):
        for name in names:
            result = in_process(name, small, [path])
            found = result.pop("counts")
            counts = found if counts is None else counts
            assert found is None or found == counts, f"{name} counts otherwise"
            measured[name].append(result)
            print(
                f"  {name}: {result['seconds']:.2f} s, processor {result['processor']:.2f} s",
                flush=True,
            )
    return {
        name: {key: statistics.median(result[key] for result in results) for key in results[0]}
        for name, results in measured.items()
    }


def linear(
    small: Path, path: Path, folder: Path, rows: int, kind: str
) -> dict[int, dict[str, float]]:
    """The cost of one row, from a million rows to five times the file."""
    result = {}
    for size in (10**6, 10**7, rows, 5 * rows):
        paths = [path] * (size // rows)
        if not paths:
            paths = [folder / f"{size}.parquet"]
            write(paths[0], size, kind)
        found = [in_process("calibrant", small, paths) for _ in range(3 if size < rows else 1)]
        nanoseconds = {
            key: min(one[key] for one in found) / size * 1e9 for key in ("seconds", "processor")
        }
        result[size] = {**nanoseconds, "peak": max(one["peak"] for one in found)}
    return result


def _figures(one: dict[str, float], base: dict[str, float]) -> list[str]:
    times = [
        text
        for key in ("seconds", "processor")
        for text in (f"{one[key]:.2f}", f"{one[key] / base[key]:.1f}")
    ]
    return [*times, f"{one['peak']:.0f}", f"{one['peak'] - one['before']:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--kinds", nargs="*", default=["float32", "float64"], choices=["float32", "float64"]
    )
    parser.add_argument("--names", nargs="*", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument("--no-linear", action="store_true")
    parser.add_argument("--contender", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.contender:
        name, small, *paths = arguments.contender
        print(json.dumps(contend(name, small, paths)))
        return
    report: dict[str, Any] = {"machine": machine(), "rows": arguments.rows, "bins": N_BINS}
    print(
        " ".join(f"{key} {value}" for key, value in report["machine"].items()),
        f"rows {arguments.rows:,}",
    )
    for kind in arguments.kinds:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            small = folder / "small.parquet"
            path = folder / "large.parquet"
            write(small, SMALL_ROWS, kind)
            write(path, arguments.rows, kind)
            size = path.stat().st_size
            print(f"{kind}: {size / 1e9:.2f} GB")
            found = compare(small, path, arguments.names, arguments.rounds)
            report[kind] = {"bytes": size, "contenders": found}
            base = found.get("calibrant", next(iter(found.values())))
            lines = [[name, *_figures(one, base)] for name, one in found.items()]
            header = [
                "contender",
                "seconds",
                "of ours",
                "processor",
                "of ours",
                "peak MB",
                "of which data",
            ]
            print("\n" + render(header, lines) + "\n")
            if not arguments.no_linear:
                report[kind]["nanoseconds_a_row"] = linear(
                    small, path, folder, arguments.rows, kind
                )
                for rows, one in report[kind]["nanoseconds_a_row"].items():
                    print(
                        f"  {rows:>13,} rows: {one['seconds']:.1f} ns a row, processor"
                        f" {one['processor']:.1f}, peak {one['peak']:.0f} MB",
                        flush=True,
                    )
    write_json(arguments.json, report)


if __name__ == "__main__":
    main()
