"""After the README's own install, every command that README and `--help` list runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXTRA = re.search(r"^pip install '(\.\[\w+\])'", README, re.MULTILINE).group(1)
LISTED = [
    line.partition(" # ")[0].split()[1:]
    for line in README.splitlines()
    if line[:10] == "calibrant "
]
OTHERS = {
    "demo": [[]],
    "verify": [["model.json", "scores.csv"]],
    "export": [["model.json", "--to", kind, "-o", f"model.{kind}"] for kind in ("onnx", "python")],
    "compare": [["scores.csv", "--score", "p", "--label", "y"]],
    "compare-models": [["scores.csv", "--score", "p", "--score", "q", "--label", "y"]],
    "decide": [["model.json", "new.csv", "--cost-miss", "5", "--cost-false-alarm", "1"]],
    "plan": [["--epsilon", "0.05"]],
    "plan-rate": [["--width", "0.1", "--items", "1000"]],
    "completion": [["bash"]],
    "serve": [["--help"]],
}
"""Commands of `--help` that README has no example of, and more ways to call some."""


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment with what the README installs, and nothing else."""
    place = tmp_path_factory.mktemp("clean") / "venv"
    install = [place / "bin" / "python", "-m", "pip", "install", "-qq"]
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    subprocess.run(
        [*install, "--disable-pip-version-check", "-c", "constraints.txt", EXTRA],
        cwd=ROOT,
        check=True,
    )
    return place / "bin" / "calibrant"


def run(calibrant: Path, folder: Path, *arguments: str) -> str:
    """What a command prints; it must not fail by bad usage or a missing library."""
    environment = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    done = subprocess.run(
        [calibrant, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode in {0, 1, 3}, (arguments, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout


def write_files(folder: Path) -> None:
    """The files that the README's commands read."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=2000)
    y = (rng.uniform(size=p.size) < p).astype(int)
    columns = np.column_stack([p, p**2, y])
    for name in ("scores.csv", "new.csv"):
        np.savetxt(folder / name, columns, delimiter=",", header="p,q,y", comments="", fmt="%.6g")
    items = [{"judge": float(one)} for one in p]
    for item, label in zip(items[:200], y, strict=False):
        item["human"] = int(label)
    events = [
        {"id": str(i), "p": float(p[i]), "y": int(y[i]), "at": "2026-02-01"} for i in range(50)
    ]
    for name, lines in {"eval.jsonl": items, "labels.jsonl": events}.items():
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_every_listed_command_runs_after_the_install_of_the_readme(
    clean: Path, tmp_path: Path
) -> None:
    write_files(tmp_path)
    assert len(LISTED) >= 5
    for arguments in LISTED:
        run(clean, tmp_path, *arguments, *(["--once"] if arguments[0] == "watch" else []))
    listed = re.findall(
        r"^  ([a-z-]+)  ", run(clean, tmp_path, "--help").split("Commands:")[1], re.M
    )
    assert set(listed) == {*OTHERS, *(arguments[0] for arguments in LISTED)}
    for command, calls in OTHERS.items():
        for arguments in calls:
            run(clean, tmp_path, command, *arguments)


def test_benchmarks_run() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "bench.py", "--most", "2000"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
