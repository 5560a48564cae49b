"""The workflows are well formed, run what is there, and hold no secret and no address.

Releases need addresses.
"""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def parsed(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_job_has_a_machine_a_time_limit_and_steps(path):
    workflow = parsed(path)
    assert workflow["name"] == path.stem
    assert workflow[True]  # "on", which YAML reads as true
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
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
