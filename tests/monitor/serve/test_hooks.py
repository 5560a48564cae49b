"""Each alarm reaches the webhook once, whoever is down meanwhile."""

import hashlib
import hmac
import json

import numpy as np

from calibrant.monitor.serve.hooks import Hook
from calibrant.monitor.serve.service import Service

from .conftest import World

SECRET = "a key"


class Receiver:
    """A receiver on another machine, with its clock; it may be down until a time."""

    def __init__(self, down_until: float = 0.0) -> None:
        self.now = 1e6
        self.down_until = 1e6 + down_until
        self.messages: list[dict[str, object]] = []

    def send(self, url: str, body: bytes, headers: dict[str, str]) -> None:
        if self.now < self.down_until:
            raise ConnectionRefusedError(url)
        digest = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        assert headers["Calibrant-Signature"] == f"sha256={digest}"
        self.messages.append(json.loads(body))

    def hook(self, world: World) -> Hook:
        how = {"clock": lambda: self.now, "send": self.send}
        return Hook(Service(world.store), "http://127.0.0.1:9/", SECRET, **how)


def alarmed(world: World) -> None:
    """Labels that no calibrated score of 0.9 can have."""
    monitor = Service(world.store).monitor("fraud")
    for day in range(100, 130):
        ids = [f"{day} {row}" for row in range(50)]
        monitor.record_many(ids, np.full(50, 0.9), np.full(50, float(day)))
        monitor.resolve_many(ids, np.zeros(50, dtype=int), np.full(50, day + 0.5))
    assert monitor.snapshot().alarm


def test_an_alarm_is_told_once_with_its_story(world: World) -> None:
    receiver = Receiver()
    hook = receiver.hook(world)
    assert hook.look() == 0
    alarmed(world)
    assert hook.look() == 1
    for _ in range(100):
        receiver.now += 3600.0
        assert hook.look() == 0
    [message] = receiver.messages
    assert message["model"] == "fraud"
    assert "changed" in str(message["story"]) or "hold" in str(message["story"])


def test_a_receiver_that_was_down_for_an_hour_hears_of_it_once(world: World) -> None:
    receiver = Receiver(down_until=3600.0)
    alarmed(world)
    first, second = receiver.hook(world), receiver.hook(world)
    attempts = 0
    for _ in range(1000):
        attempts += first.look() + second.look()
        receiver.now += 10.0
    assert attempts == len(receiver.messages) == 1
    [message] = receiver.messages
    assert 1 < int(str(message["attempt"])) < 12


def test_a_service_that_dies_while_it_sends_sends_the_same_episode_again(world: World) -> None:
    receiver = Receiver()
    alarmed(world)
    hook = receiver.hook(world)
    kept = hook.send

    def dies(url: str, body: bytes, headers: dict[str, str]) -> None:
        receiver.send(url, body, headers)
        raise KeyboardInterrupt

    hook.send = dies
    try:
        hook.look()
    except KeyboardInterrupt:
        hook.send = kept
    assert hook.look() == 0
    receiver.now += 60.0
    assert hook.look() == 1
    first, second = receiver.messages
    assert first["episode"] == second["episode"]
    assert (first["attempt"], second["attempt"]) == (1, 2)
