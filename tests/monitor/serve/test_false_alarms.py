"""The whole-life false-alarm rate, as a client of the service sees it; experiments/service_alarms.py
has the long run.
"""

import sys
from pathlib import Path

import pytest

from worlds.guarantees import assert_rare

from .conftest import World

EXPERIMENTS = str(Path(__file__).parents[3] / "experiments")
DEPLOYMENTS, DAYS = 12, 30


@pytest.mark.slow
def test_alarms_are_rare_while_nothing_changes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXPERIMENTS)
    from service_alarms import LEVEL, has_alarm

    client = world.writer(each_second=1e9)
    try:
        alarms = [has_alarm(client, str(one), DAYS, seed=1) for one in range(DEPLOYMENTS)]
    finally:
        sys.modules.pop("service_alarms")
    assert_rare(sum(alarms), DEPLOYMENTS, 1.0 - LEVEL)
