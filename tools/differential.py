"""Do two commits answer the same? Random data sets, every public question, numbers to 1e-6.

Stored answers see a thousand points; this sees as many as there is time for: ties, narrow and rare
scores, tiny samples, groups, weights, segments, files and engines. The package of the other commit
is taken from git and runs beside that of the working tree, with the same libraries.

    python tools/differential.py --base HEAD~20                 # a sample of this day
    python tools/differential.py --base main --count 400 --seed 7

Prints each question whose numbers differ, by how much and in which data set, and names that only one
of the two has. Returns 1 if any number differs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
CASES = Path(__file__).with_name("differential_cases.py")
RELATIVE, ABSOLUTE = 1e-6, 1e-9
Answer = dict[str, float | str]


def package_of(revision: str) -> Path:
    """The `src` folder of a commit, below `build`."""
    commit = subprocess.run(
        ["git", "rev-parse", revision], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    place = ROOT / "build" / "differential" / commit
    if not (place / "src").exists():
        place.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(
            ["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True
        ).stdout
        subprocess.run(["tar", "x", "-C", str(place)], input=archive, check=True)
    return place / "src"


def started(source: Path, seed: int, count: int) -> subprocess.Popen[str]:
    """A process that answers all questions with the package in a folder."""
    surroundings = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, str(CASES), str(seed), str(count)],
        env=surroundings,
        stdout=subprocess.PIPE,
        text=True,
    )


def differences(before: Answer, after: Answer) -> Iterator[tuple[str, float]]:
    """Names in both whose values differ, and by how much; infinite for texts."""
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        if isinstance(old, str) or isinstance(new, str):
            if old != new:
                yield name, math.inf
        elif abs(old - new) > ABSOLUTE + RELATIVE * abs(old):
            yield name, abs(old - new)


def main() -> int:
    """Compare the working tree with another commit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", required=True, help="the other commit")
    parser.add_argument("--count", type=int, default=60, help="how many data sets")
    parser.add_argument("--seed", type=int, default=int(f"{date.today():%Y%m%d}"))
    given = parser.parse_args()
    sources = (package_of(given.base), ROOT / "src")
    runs = [started(source, given.seed, given.count) for source in sources]
    asked = Counter[str]()
    changed: dict[str, list[tuple[float, str, str]]] = {}
    alone: dict[str, Counter[str]] = {"before": Counter(), "after": Counter()}
    for lines in zip(*(run.stdout or () for run in runs), strict=True):
        (case, name, before), (case_after, name_after, after) = map(json.loads, lines)
        if (case, name) != (case_after, name_after):
            raise RuntimeError(f"{case}, {name} was compared with {case_after}, {name_after}")
        asked[name] += 1
        if found := list(differences(before, after)):
            worst = max(found, key=lambda one: one[1])
            shown = f"{worst[0]}: {before[worst[0]]} -> {after[worst[0]]}"
            changed.setdefault(name, []).append((worst[1], shown, case))
        for side, only in (("before", before.keys() - after), ("after", after.keys() - before)):
            alone[side].update({f"{name}: {key.split('[')[0]}" for key in only})
    failed = any(run.wait() for run in runs)
    print(f"seed {given.seed}: {given.count} data sets, {asked.total()} answers")
    for name, found in changed.items():
        print(f"{name}: {len(found)} of {asked[name]} differ, most by")
        for _, shown, case in sorted(found, reverse=True)[:3]:
            print(f"    {shown}    {case}")
    for side, names in alone.items():
        for name, times in sorted(names.items()):
            print(f"only {side}: {name} ({times} times)")
    print("no number differs" if not changed else f"{len(changed)} questions differ")
    return int(failed or bool(changed))


if __name__ == "__main__":
    sys.exit(main())
