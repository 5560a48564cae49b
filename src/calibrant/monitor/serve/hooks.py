"""Tell a webhook of each alarm, once."""

import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from calibrant.errors import CalibrantError
from calibrant.monitor.headline import Standing
from calibrant.monitor.model_rows import ModelRows
from calibrant.monitor.serve.access import signed_body
from calibrant.monitor.serve.service import Service

_LOG = logging.getLogger("calibrant.serve")
_FIRST_WAIT = 30.0
_LONGEST_WAIT = 3600.0
Send = Callable[[str, bytes, dict[str, str]], None]


@dataclass(frozen=True, slots=True)
class Delivery:
    """How far the message about an alarm has got; it is kept in the store.

    A service that takes a delivery sets `next_at` first, so that two services do not send the same
    message, and sends it then. If it dies in between, the message is sent again at that time, with
    the same id.
    """

    episode: str
    attempts: int = 0
    next_at: float = 0.0
    delivered_at: float | None = None


@dataclass
class Hook:
    """Where alarms are reported.

    Parameters
    ----------
    service : Service
        Whose alarms.
    url, secret : str
        Where messages go, and the key of their signature.
    clock, send
        The time now, and what sends a message or raises an OSError.
    """

    service: Service
    url: str
    secret: str
    clock: Callable[[], float] = time.time
    send: Send | None = None

    def look(self) -> int:
        """Report the alarms that are due; return how many were delivered."""
        delivered = 0
        for standing in self.service.standings():
            if not standing.headline.alarm:
                continue
            taken = self.service.locked(standing.name, partial(self._take, standing))
            if taken is not None:
                delivered += self._deliver(standing, taken)
        return delivered

    def _take(self, standing: Standing, rows: ModelRows) -> Delivery | None:
        """The delivery of an alarm, if it is due and no other service has taken it."""
        now = self.clock()
        episode = f"{standing.name} {standing.headline.alarmed}"
        found = _read(rows) or Delivery(episode)
        if found.delivered_at is not None or found.next_at > now:
            return None
        wait = min(_FIRST_WAIT * 2.0**found.attempts, _LONGEST_WAIT)
        taken = Delivery(found.episode, found.attempts + 1, now + wait)
        rows.write_text("hook", json.dumps(asdict(taken)))
        return taken

    def _deliver(self, standing: Standing, taken: Delivery) -> bool:
        found = standing.headline
        message = {
            "event": "alarm",
            "episode": taken.episode,
            "attempt": taken.attempts,
            "model": standing.name,
            "story": found.finding,
            "alarmed": found.alarmed,
            "since": found.since,
            "log_evidence": found.evidence,
            "epsilon": found.epsilon,
        }
        body, signature = signed_body(self.secret, message)
        headers = {
            "Content-Type": "application/json",
            "Calibrant-Episode": taken.episode.encode("ascii", "backslashreplace").decode(),
            "Calibrant-Signature": signature,
        }
        try:
            (self.send or _post)(self.url, body, headers)
        except OSError as error:
            reason = type(error).__name__
            _LOG.warning("attempt %d to report an alarm failed: %s", taken.attempts, reason)
            return False
        done = Delivery(taken.episode, taken.attempts, taken.next_at, self.clock())
        text = json.dumps(asdict(done))
        self.service.locked(standing.name, lambda rows: rows.write_text("hook", text))
        return True

    def run(self, stopped: Any, every: float = 5.0) -> None:
        """Check for alarms repeatedly, until an event is set."""
        while not stopped.wait(every):
            try:
                self.look()
            except CalibrantError as error:
                _LOG.warning("alarms cannot be reported now: %s", error.rule)


def _read(rows: ModelRows) -> Delivery | None:
    text = rows.read_text("hook")
    return None if text is None else Delivery(**json.loads(text))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Refuse redirects: the message is for the given address only."""


def _post(url: str, body: bytes, headers: dict[str, str]) -> None:
    opener = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, body, headers, method="POST")
    with opener.open(request, timeout=10.0):
        pass
