"""The files for deployment name what the service has, and keep what they promise."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import yaml

from calibrant.cli._app import app
from calibrant.monitor.serve.metrics import _HELP

DEPLOY = Path(__file__).parents[2] / "deploy"
METRIC = re.compile(r"calibrant_[a-z_]+")


def instructions() -> list[tuple[str, str]]:
    """The instructions of the container file, with continued lines joined."""
    text = re.sub(r"\\\n", " ", (DEPLOY / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def test_the_container_runs_slim_not_as_root_and_starts_the_service() -> None:
    found = instructions()
    known = {"FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "VOLUME", "EXPOSE", "HEALTHCHECK"}
    assert {name for name, _ in found} <= known | {"ENTRYPOINT"}
    bases = [rest for name, rest in found if name == "FROM"]
    assert all("-slim" in base for base in bases)
    last = [name for name, _ in found][::-1].index("FROM")
    final = dict(found[-last:])
    assert int(final["USER"]) > 0
    assert final["VOLUME"] == final["WORKDIR"] == "/data"  # nothing else is written
    program, command, *options = json.loads(final["ENTRYPOINT"])
    assert (program, command) == ("calibrant", "serve")
    with click.Context(app) as context:
        serve: Any = app.get_command(context, command)
    parsed = serve.make_context("serve", list(options))
    assert parsed.params["store"].startswith("/data/")
    assert str(parsed.params["port"]) == final["EXPOSE"]
    for name, rest in found:
        if name == "RUN":
            shlex.split(rest)


def test_rules_and_dashboard_use_metrics_that_exist() -> None:
    rules = yaml.safe_load((DEPLOY / "rules.yml").read_text())
    alerts = {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"]}
    assert "calibrant_last_event_timestamp_seconds" in alerts["CalibrantStaleData"]["expr"]
    board = json.loads((DEPLOY / "grafana.json").read_text())
    texts = [rule["expr"] for rule in alerts.values()]
    texts += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    used = {name for text in texts for name in METRIC.findall(text)}
    assert used <= set(_HELP)
    assert set(_HELP) - used == set()
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
