"""The workflows are well formed, run what is there, and hold no secret and no address.

Releases need addresses.
"""

import importlib.util
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = {  # read from the actions' own repositories, by the tag in the comment
    "actions/checkout": "3d3c42e5aac5ba805825da76410c181273ba90b1  # v7.0.1",
    "actions/setup-python": "5fda3b95a4ea91299a34e894583c3862153e4b97  # v7.0.0",
    "actions/upload-artifact": "bbbca2ddaa5d8feaa63e36b76fdaad77386f024f  # v7.0.0",
    "actions/download-artifact": "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c  # v8.0.1",
    "actions/upload-pages-artifact": "7b1f4a764d45c48632c6b24a0339c27f5614fb0b  # v4.0.0",
    "actions/deploy-pages": "d6db90164ac5ed86f2b6aed7e0febac5b3c0c03e  # v4.0.5",
    "pypa/gh-action-pypi-publish": "81e9d935c883d0b210363ab89cf05f3894778450  # v1.8.14",
}


def parsed(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_job_has_a_machine_a_time_limit_and_steps(path):
    workflow = parsed(path)
    assert workflow["name"] == path.stem
    assert workflow[True]  # "on", which YAML reads as true
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        # a job that runs our code or a stranger's may read the repository and nothing else
        # and one that publishes runs nothing of ours
        assert job["permissions"] == {"contents": "read"} or not any(
            "run" in step for step in job["steps"]
        )
        assert job["runs-on"]
        assert 0 < job["timeout-minutes"] <= 60
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
        needed = job.get("needs", [])
        assert {needed} if isinstance(needed, str) else set(needed) <= set(workflow["jobs"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_they_run_is_there(path):
    text = path.read_text(encoding="utf-8")
    targets = set(
        re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert set(re.findall(r"make ([a-z]+)", text)) <= targets
    assert all(
        (ROOT / place).exists() for place in re.findall(r"(?:tests|src|tools|\.ci)/[\w/.]+", text)
    )


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_address_and_no_secret(path):
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    assert "secrets." not in text
    assert "-url" not in text  # settings of where packages come from


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_hash_and_leave_no_token_behind(path):
    used = re.findall(r"uses: (\S+?)@(.*)", path.read_text(encoding="utf-8"))
    assert used
    assert all(PINNED[name] == pin for name, pin in used)
    steps = [step for job in parsed(path)["jobs"].values() for step in job["steps"]]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_the_action_installs_its_own_source_and_no_bare_name(tmp_path):
    """A name alone could be registered by anyone; text with a hyphen in front is no option."""
    action = parsed(ROOT / ".github" / "actions" / "rate" / "action.yml")
    assert action["inputs"]["install"]["default"] == ""
    step = action["runs"]["steps"][0]
    assert "${{" not in step["run"]
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    here = str(ROOT / ".github" / "actions" / "rate")

    def installed(install):
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
            env={
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
                "INSTALL": install,
                "ACTION": here,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    start = ["-m", "pip", "install", "--"]
    assert installed("").stdout.splitlines() == [*start, f"{ROOT}[cli]"]
    for given in ("./calibrant", "calibrant[cli] @ file:///source", "--find-links=file:///evil"):
        assert installed(given).stdout.splitlines() == [*start, given]
    for name in ("calibrant", "calibrant[cli,report]", "--help"):
        assert installed(name).returncode == 2
        assert installed(name).stdout == ""


def test_jinja_has_its_sandbox_repaired():
    """Earlier versions let a template run code, so no set of requirements allows them."""
    oldest = (3, 1, 6)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    asked = [extras["report"][0]]
    for name in ("constraints.txt", "constraints-oldest.txt"):
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        asked += [line for line in lines if line.lower().startswith("jinja2")]
    assert len(asked) == 3
    for line in asked:
        version = re.fullmatch(r"jinja2[=>]=([\d.]+)", line, re.IGNORECASE)[1]
        assert tuple(map(int, version.split("."))) >= oldest


def test_the_release_is_published_without_a_token_by_a_job_that_runs_nothing_of_ours():
    publish = parsed(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert not any("run" in step for step in publish["steps"])


def test_every_supported_python_is_tested():
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "classifiers"
    ]
    supported = {
        found[1] for line in classifiers if (found := re.search(r"Python :: (3\.\d+)$", line))
    }
    tested = parsed(ROOT / ".github" / "workflows" / "test.yml")["jobs"]["elsewhere"]["strategy"][
        "matrix"
    ]
    assert set(tested["python"]) == supported
    assert {name.split("-")[0] for name in tested["os"]} == {"ubuntu", "macos", "windows"}


def test_what_is_published_must_have_addresses():
    spec = importlib.util.spec_from_file_location("dist", ROOT / "tools" / "dist.py")
    dist = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dist)
    assert dist.missing_addresses({"project": {}}) == list(dist.ADDRESSES)
    filled = dict.fromkeys(dist.ADDRESSES, "https://example.org")
    assert dist.missing_addresses({"project": {"urls": filled}}) == []
    assert dist.missing_addresses({"project": {"urls": {**filled, "Source": ""}}}) == ["Source"]
