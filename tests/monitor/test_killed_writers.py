"""Writers that are killed at any moment lose nothing that they acknowledged, and double nothing.

Several models share the store, on SQLite and on PostgreSQL; one is fed by a pipe, and one by a log
that is rotated. `experiments/monitor_store.py kill --times 1000` is the long form.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from worlds.postgres_server import postgres_programs

SCRIPT = Path(__file__).parents[2] / "experiments" / "monitor_store.py"


@pytest.mark.slow
@pytest.mark.service
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_few_kills_lose_and_double_nothing(database: str) -> None:
    options = []
    if database == "postgres":
        pytest.importorskip("psycopg")
        postgres_programs()
        options = ["--postgres"]
    command = [sys.executable, str(SCRIPT), "kill", "--times", "16", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("equal") == 5, done.stdout
