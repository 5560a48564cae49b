"""Would the tests notice? Change one thing in the statistical core at random, and run the tests
that belong to it.

A mutant is the package with one small change: a comparison, a constant, an operator, a condition, a
left-out call. It is killed if a test fails. Survivors are printed with their line: each is a
missing test, or a change that makes no difference (`mutants.toml`, with the reason). Results are
kept in a file, so that a run that was stopped goes on where it was, and a survivor can be tried
again after a test was written.

First the tests run without any change, and each line of the package that a test runs is noted. A
mutant meets the tests that run its statement, in stages, the quickest first, and then the doctests
of its module; other tests cannot notice it. `mutant_trials.py` says how. A change outside of
functions meets all tests that belong to it.

The sample is the same for a seed as long as the lines are: a change elsewhere draws no other
mutants. Tests that were written for the survivors of one seed say little about the next one:
`--seed today` draws a sample nobody has seen.

    python tools/mutants.py                         # the sample of `make mutants`
    python tools/mutants.py --seed today            # a sample of this day
    python tools/mutants.py --part 2/4              # one of four parts of a sample, to share it
    python tools/mutants.py --only mass --count 30  # of one module
    python tools/mutants.py --again                 # survivors only, after tests were written
    python tools/mutants.py --quick                 # without long simulations: a lower bound
    python tools/mutants.py --no-answers            # without stored answers
"""

import argparse
import ast
import importlib
import json
import os
import sys
import time
import tomllib
from collections import Counter
from datetime import date
from hashlib import sha256
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from mutant_changes import PACKAGE, Mutant, mutants_of
from mutant_trials import ANSWERS, BUILD, EVERYWHERE, ROOT, Trials, write

RESULTS = BUILD / "mutants.json"
WITHOUT_ANSWERS = BUILD / "mutants-no-answers.json"
HEAVY = (
    "numba",
    "pandas",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.calibration",
)  # loaded once, and then forked
ENOUGH = 0.95  # the share of those that differ that must be killed

KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CORE: dict[str, str] = KNOWN["core"]
EQUIVALENT = {
    (one["module"], one["line"], one["change"]): one["why"] for one in KNOWN["equivalent"]
}


def why_equivalent(mutant: Mutant) -> str | None:
    """Why the change makes no difference; None where nobody has shown it."""
    return EQUIVALENT.get((mutant.module, mutant.text, mutant.change))


def stale() -> list[tuple[str, str, str]]:
    """Entries of `EQUIVALENT` that no mutant has: their line was changed, and they must be judged
    anew.
    """
    modules = {module for module, _, _ in EQUIVALENT}
    known = {(one.module, one.text, one.change) for module in modules for one in mutants_of(module)}
    return [entry for entry in EQUIVALENT if entry not in known]


def sample(
    count: int, seed: int, only: str | None, everywhere: list[str]
) -> list[tuple[Mutant, list[str]]]:
    """Mutants drawn at random, each change as likely as any other.

    The draw depends on their own lines only.
    """
    tests_of: dict[str, list[str]] = {}
    for entry, tests in CORE.items():
        place = PACKAGE / entry
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
            tests_of.setdefault(
                file.relative_to(PACKAGE).with_suffix("").as_posix(), [*tests.split(), *everywhere]
            )
    found = []
    for name, chosen in tests_of.items():
        seen: Counter[tuple[str, str]] = Counter()
        for mutant in mutants_of(name) if only is None or only in name else ():
            seen[own := (mutant.text, mutant.change)] += 1
            key = f"{seed} {name} {mutant.text} {mutant.change} {seen[own]}"
            found.append((sha256(key.encode()).digest(), mutant, chosen))
    valid = (
        (mutant, tests)
        for _, mutant, tests in sorted(found, key=lambda entry: entry[0])
        if _compiles(mutant)
    )
    return list(islice(valid, count))


def _compiles(mutant: Mutant) -> bool:
    try:
        ast.parse(mutant.source)
    except SyntaxError:
        return False
    return True


def _seed(text: str) -> int:
    """A seed; "today" is the date, such as 20261117."""
    return int(f"{date.today():%Y%m%d}" if text == "today" else text)


def main() -> int:
    """Try the sample, print the survivors and the share that was killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument(
        "--seed", type=_seed, default=1, help="a number, or today: the date as a number"
    )
    parser.add_argument(
        "--part", default="1/1", help="K/N: every N-th mutant of the sample, from the K-th"
    )
    parser.add_argument("--only", help="part of a module's name")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument(
        "--quick", action="store_true", help="leave out long simulations: fewer are killed"
    )
    parser.add_argument(
        "--no-answers",
        action="store_true",
        help="leave out stored answers, which only say that something changed",
    )
    arguments = parser.parse_args()
    if old := stale():
        print(*old, sep="\n")
        sys.exit("these lines have changed; judge anew whether the change makes a difference")
    for name in HEAVY:
        importlib.import_module(name)
    os.chdir(ROOT)
    first, parts = map(int, arguments.part.split("/"))
    everywhere = [one for one in EVERYWHERE if not (arguments.no_answers and one == ANSWERS)]
    drawn = sample(arguments.count, arguments.seed, arguments.only, everywhere)[first - 1 :: parts]
    print(f"seed {arguments.seed}, part {arguments.part}: {len(drawn)} mutants", flush=True)
    results = WITHOUT_ANSWERS if arguments.no_answers else RESULTS
    survived = tried(drawn, results, again=arguments.again, quick=arguments.quick)
    differ = [mutant for mutant, _ in drawn if why_equivalent(mutant) is None]
    killed = len(differ) - len(survived)
    print("", *(f"SURVIVED  {mutant}" for mutant in survived), sep="\n")
    print(
        f"{killed} of {len(differ)} mutants that differ were killed,"
        f" {killed / max(len(differ), 1):.1%}; {len(drawn) - len(differ)} others are equivalent"
    )
    return 0 if killed >= ENOUGH * len(differ) else 1


def tried(
    drawn: list[tuple[Mutant, list[str]]], results: Path, *, again: bool, quick: bool
) -> list[Mutant]:
    """Try the mutants that were not tried before; return those that survived."""
    known: dict[str, bool] = json.loads(results.read_text()) if results.exists() else {}
    start = time.monotonic()
    new = []
    for mutant, tests in drawn:
        why = why_equivalent(mutant)
        if why is not None:
            print(f"          equivalent  {mutant}: {why}")
        elif mutant.key not in known or (again and known[mutant.key]):
            new.append((mutant, tests))
        else:
            print(f"  before  {'SURVIVED' if known[mutant.key] else 'killed':10}  {mutant}")
    for mutant, survives in Trials(new, quick).run():
        known[mutant.key] = survives
        write(results, known)
        said = "SURVIVED" if survives else "killed"
        print(f"{time.monotonic() - start:6.0f} s  {said:10}  {mutant}", flush=True)
    return [mutant for mutant, _ in drawn if known.get(mutant.key)]


if __name__ == "__main__":
    sys.exit(main())
