"""Build the wheel and the sdist, and try the wheel as a user gets it: in a clean environment,
without this folder.

For the oldest and the newest supported Python on this machine: install the wheel alone and
calibrate with it; then add what tests need, and run the README and the quick tests, which are those
of the sdist.

    python tools/dist.py                     # the Pythons that are found
    python tools/dist.py python3.12          # these
    python tools/dist.py --build-only
    python tools/dist.py --trial             # before the project has addresses: not for publishing

The addresses of the project stand in one place, [project.urls] of pyproject.toml. What is published
must have them.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
SUPPORTED = ("python3.11", "python3.12", "python3.13", "python3.14")
ADDRESSES = ("Homepage", "Documentation", "Source", "Issues")
QUICK = "not slow and not broad and not service"
TESTS = [
    *("tests/calibrators", "tests/limits", "tests/cells", "tests/text"),
    *("tests/guarantee/test_guarantee.py", "tests/guarantee/test_guarantee_sentence.py"),
    *(
        "tests/cells/test_tally.py",
        "tests/answers/test_any_content.py",
        "tests/answers/test_damage.py",
        "tests/answers/test_round_trip.py",
        "tests/answers/test_writing.py",
        "tests/assess/test_metrics.py",
        "tests/classifier/test_classifier.py",
    ),
    *("tests/test_import.py", "tests/params/test_labels.py"),
]
TRIAL = """
import calibrant, pathlib, sys, numpy as np
assert pathlib.Path(calibrant.__file__).is_relative_to(sys.prefix), calibrant.__file__
rng = np.random.default_rng(0)
scores = rng.uniform(size=10_000)
print(calibrant.Calibrator().fit(scores, rng.uniform(size=10_000) < scores**2).guarantee_.sentence)
"""


def main() -> None:
    """Build, and try the wheel with each Python."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", help="Pythons to try the wheel with")
    parser.add_argument("--build-only", action="store_true", help="do not try the wheel")
    parser.add_argument(
        "--trial", action="store_true", help="build without the addresses of the project"
    )
    chosen = parser.parse_args()
    missing = missing_addresses(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    )
    if missing and not chosen.trial:
        sys.exit(
            f"[project.urls] in pyproject.toml lacks {', '.join(missing)}; --trial builds without"
            " them"
        )
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (wheel,) = DIST.glob("*.whl")
    (sdist,) = DIST.glob("*.tar.gz")
    pythons = [] if chosen.build_only else chosen.pythons or oldest_and_newest()
    for python in pythons:
        print(f"== {wheel.name} with {python}", flush=True)
        with TemporaryDirectory() as folder:
            try_wheel(python, wheel, sdist, Path(folder))
    print(f"Built {wheel.relative_to(ROOT)} and {sdist.relative_to(ROOT)}")


def missing_addresses(content: dict[str, Any]) -> list[str]:
    """The addresses that a pyproject.toml should have and does not."""
    given = content["project"].get("urls", {})
    return [name for name in ADDRESSES if not given.get(name, "").startswith("https://")]


def oldest_and_newest() -> list[str]:
    """The first and the last of the supported Pythons that run here."""
    there = [python for name in SUPPORTED if (python := found(name))] or [sys.executable]
    return list(dict.fromkeys([there[0], there[-1]]))


def found(name: str) -> str | None:
    """Such a Python that runs, on the path or among those of pyenv.

    The path may hold a stand-in for one of them.
    """
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"*/bin/{name}"))
    return next(
        (str(python) for python in (shutil.which(name), *installed) if python and runs(python)),
        None,
    )


def runs(python: str | Path) -> bool:
    """Whether this Python starts, and can make environments."""
    return (
        subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True).returncode
        == 0
    )


def try_wheel(python: str, wheel: Path, sdist: Path, folder: Path) -> None:
    """Install the wheel in a folder, use it, and run the tests of the sdist against it."""
    run(python, "-m", "venv", folder / "venv")
    inside = folder / "venv" / "bin" / "python"
    pip = (
        inside,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "-qq",
        "-c",
        ROOT / "constraints.txt",
    )
    run(*pip, wheel)
    run(inside, "-c", TRIAL, cwd=folder)
    run(*pip, f"{wheel}[core-test,cli]")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.glob("calibrant-*")
    shutil.rmtree(unpacked / "src")  # the tests must find the wheel
    pytest = (inside, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider")
    run(*pytest, "-k", "README.md", "tests/project/test_readme.py", cwd=unpacked)
    run(*pytest, "-n", "2", "--hypothesis-profile=quick", "-m", QUICK, *TESTS, cwd=unpacked)


def run(*command: object, cwd: Path | None = None) -> None:
    """Run a command; stop where it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command[:4]))} ... ended with {done.returncode}")


if __name__ == "__main__":
    main()
