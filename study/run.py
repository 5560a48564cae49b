"""Run the study: python study/run.py [PART ...].

Results are kept in the cache, one file for each part, set, model and split, so that a run can be
stopped and resumed. When all units of a part are done, its table is written to docs/study, and the
figures and the pages are made again. Two processes run at a time, each with one thread.
"""

import argparse
import json
import os
import signal
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
import pandas as pd
from page import RESULTS, write_page
from parts import PARTS, Unit, lines_of, over_splits, units
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from sets import SEED, SETS, RealSet
from tables import CACHE, LICENCES
from threadpoolctl import threadpool_limits
from unseen import UNSEEN_MODELS, UNSEEN_PARTS, whole_splits
from unseen_sets import UNSEEN


def result_path(unit: Unit, cache: Path) -> Path:
    part, name, names = unit
    return cache / "results" / part / f"{', '.join((name, *names))}.json"


def do(unit: Unit, cache: Path, end: float) -> float:
    """Do a unit before the end, keep its lines, and return the processor time in seconds."""
    if time.monotonic() > end:
        return 0.0
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of models, of peers, and of guarantees that say little
        lines = lines_of(unit, cache)
    seconds = time.process_time() - start
    path = result_path(unit, cache)
    path.parent.mkdir(parents=True, exist_ok=True)
    part_file = path.with_suffix(f".{os.getpid()}")
    part_file.write_text(
        json.dumps({"lines": lines, "seconds": seconds}, default=lambda value: value.item())
    )
    part_file.replace(path)
    return seconds


def leave() -> None:
    """Let the main process decide what Ctrl-C does: a worker finishes its unit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run(todo: Sequence[Unit], cache: Path, jobs: int, minutes: float) -> None:
    """Do what is not done yet, with a progress bar; what fails is named at the end.

    Parts on sets that no choice has seen go from split to split; when the time is over, the
    tables have the splits that are whole.
    """
    waiting = [unit for unit in todo if not result_path(unit, cache).exists()]
    waiting.sort(key=lambda unit: int(unit[2][1]) if unit[0] in UNSEEN_PARTS else -1)
    end = time.monotonic() + 60 * minutes
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    failures = []
    with (
        Progress(*columns, TimeRemainingColumn()) as progress,
        ProcessPoolExecutor(jobs, initializer=leave) as pool,
    ):
        bar = progress.add_task("Study", total=len(todo), completed=len(todo) - len(waiting))
        started = {pool.submit(do, unit, cache, end): unit for unit in waiting}
        try:
            for job in as_completed(started):
                if (error := job.exception()) is not None:
                    failures.append(
                        f"{result_path(started[job], cache).stem}: {type(error).__name__}: {error}"
                    )
                progress.advance(bar)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise SystemExit("Stopped; the same command continues from here") from None
    if failures:
        raise SystemExit("\n".join(["These failed:", *failures]))


def write_tables(parts: Sequence[str], sets: Sequence[RealSet], cache: Path, folder: Path) -> None:
    """Write the lines of each part, the processor time and the sets as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    times = []
    for part in parts:
        kept = {
            unit: json.loads(result_path(unit, cache).read_text())
            for unit in units([part], tuple(sets))
            if part not in UNSEEN_PARTS or result_path(unit, cache).exists()
        }
        table = pd.DataFrame([line for found in kept.values() for line in found["lines"]])
        table = whole_splits(table) if part in UNSEEN_PARTS else table
        table = over_splits(table) if part == "rows" else table
        table.to_csv(folder / f"{part}.csv", index=False, float_format="%.6g")
        times += [
            {"part": part, "set": unit[1], "seconds": found["seconds"]}
            for unit, found in kept.items()
        ]
    write_times(pd.DataFrame(times), folder / "time.csv")
    sets = [*sets, *(real for real in UNSEEN if real not in sets)]
    known = pd.DataFrame(
        {
            "set": [real.name for real in sets],
            "table": [real.table for real in sets],
            "licence": [LICENCES[real.licence_key] for real in sets],
            "models": [
                " ".join(
                    name.replace(" ", "-")
                    for name in (UNSEEN_MODELS if real in UNSEEN else real.models)
                )
                for real in sets
            ],
            "time": [real.time for real in sets],
            "site": [real.site for real in sets],
            "group": [real.group for real in sets],
            "seen": [real.seen for real in sets],
        }
    )
    known.to_csv(folder / "sets.csv", index=False)


def write_times(times: pd.DataFrame, path: Path) -> None:
    """Write the processor time of each part and set; that of other parts is kept."""
    spent = times.groupby(["part", "set"], sort=False).seconds.agg(["size", "sum"]).reset_index()
    spent.columns = ["part", "set", "units", "seconds"]
    if path.exists():
        earlier = pd.read_csv(path)
        spent = pd.concat([earlier[~earlier.part.isin(spent.part)], spent])
    place = spent.part.map(PARTS.index)
    spent = spent.iloc[np.argsort(place, kind="stable")]
    spent.to_csv(path, index=False, float_format="%.1f")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"some of {', '.join(PARTS)}; all if none is named",
    )
    parser.add_argument(
        "--cache", type=Path, default=CACHE, help="folder of wheels, scores and results"
    )
    parser.add_argument(
        "--sets",
        nargs="+",
        help="only these sets; the tables then go to the cache, not to the page",
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--minutes", type=float, default=40.0, help="after which no other unit begins"
    )
    options = parser.parse_args()
    parts = options.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    if unknown := set(options.sets or ()) - {real.name for real in (*SETS, *UNSEEN)}:
        parser.error(f"no such set: {', '.join(sorted(unknown))}")
    sets = SETS
    if options.sets is not None:
        sets = tuple(real for real in (*SETS, *UNSEEN) if real.name in options.sets)
    if not (todo := units(parts, sets)):
        parser.error("these sets have no such part")
    run(todo, options.cache, options.jobs, options.minutes)
    done = [part for part in parts if units([part], sets)]
    folder = RESULTS if options.sets is None else options.cache / "tables"
    write_tables(done, sets, options.cache, folder)
    print(f"Wrote {folder}; the seed is {SEED}")
    if options.sets is None:
        write_page(RESULTS)
        print("Wrote the figures and the pages")


if __name__ == "__main__":
    main()
