"""A PostgreSQL server of this machine only, in a folder of its own."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def missing(part: str) -> Any:
    """A part of the system that is not there: skip here, fail where everything must be."""
    if os.environ.get("CI"):
        pytest.fail(f"{part} is missing")
    pytest.skip(f"{part} is missing")


def postgres_programs() -> Path:
    """The folder of the newest PostgreSQL server programs on this machine."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    return folders[-1].parent if folders else missing("PostgreSQL")


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server that listens in a folder alone; its user is "tester", its database "postgres".

    Yields the folder, which is the host to connect to.
    """
    programs = postgres_programs()
    # a server refuses to run as root; pytest's own folders are closed to other users
    folder = tempfile.mkdtemp(prefix="pg")
    account: dict[str, Any] = {}
    if os.geteuid() == 0:
        names = {entry.pw_name for entry in pwd.getpwall()}
        user = "postgres" if "postgres" in names else "nobody"
        shutil.chown(folder, user)
        account = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
    data = f"{folder}/data"

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [programs / program, "-D", data, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
            **account,
        )
        assert done.returncode == 0, Path(log.name).read_text()

    options = f"-k {folder} -c listen_addresses= -c fsync=off -c shared_buffers=64MB"
    try:
        with open(os.path.join(folder, "log"), "w") as log:
            run("initdb", "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
            run("pg_ctl", "-o", options, "-l", f"{data}/server.log", "-w", "start")
            try:
                yield folder
            finally:
                run("pg_ctl", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
