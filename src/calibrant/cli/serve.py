"""`calibrant serve`: watch models in production over HTTP, on a live page."""

import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant._optional import needed
from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._output import print_json, remark, say, warn
from calibrant.cli._replay import replay

if TYPE_CHECKING:
    from calibrant.monitor.serve.hooks import Hook
    from calibrant.monitor.store import Store

_DEMO_MODEL = "flights"
_DAYS_A_SECOND = 5.0
_TIMEOUT = 30.0


@option.command("serve", "Watch models in production over HTTP, on a live page.")
def command(host: str, port: int, demo: bool, as_json: bool, **options: Any) -> None:
    """Take predictions and labels over HTTP, test whether each guarantee still holds, and show it.

    The page is at /, the description of the API at /v1/openapi.json, and metrics for Prometheus at
    /metrics. A new store gets a write token, which is shown once: only its hash is kept. Reading
    needs no token on this machine, unless there is a read token. The service speaks HTTP; put a
    proxy with TLS before it if others are to reach it.

    With --demo, flights of 2013 are replayed, several days a second, with labels a week late.

    Examples
    --------
    calibrant serve --demo
    calibrant serve --store watch.db --hook https://alerts.example.org/calibrant
    calibrant serve --store postgresql+psycopg://user@host/name --host 0.0.0.0 --new-token read
    """
    uvicorn = needed("uvicorn", "serve", "a service runs")
    needed("fastapi", "serve", "a service runs")
    from calibrant.monitor.serve.access import is_loopback
    from calibrant.monitor.serve.app import make_app
    from calibrant.monitor.serve.service import Service
    from calibrant.monitor.store import Store

    with ExitStack() as stack:
        place = options["store"]
        if demo:
            place = str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "demo.db")
        store = Store(place, _TIMEOUT)
        stack.callback(store.close)
        facts = {"store": store.place, **_tokens(store, options["new_token"])}
        service = Service(store)
        hook = None if options["hook"] is None else _hook(service, options["hook"])
        app = make_app(service, host=host, hook=hook)
        if not is_loopback(host):
            warn(f"other machines can reach {host}: put a TLS proxy in front of the service")
        shown = f"[{host}]" if ":" in host else host
        facts |= {"address": f"http://{shown}:{port}/"}
        facts |= {} if hook is None else {"signature_key": hook.secret}
        _print(facts, as_json=as_json)
        if demo:
            stopped = threading.Event()
            stack.callback(stopped.set)
            arguments = (store, stopped)
            threading.Thread(target=_replay_flights, args=arguments, daemon=True).start()
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            access_log=False,  # addresses have ids in them
            server_header=False,
            log_level="warning",
            timeout_graceful_shutdown=2,
        )
        uvicorn.Server(config).run()


def _tokens(store: "Store", wanted: str | None) -> dict[str, str]:
    """The tokens to create now: the first write token, and the requested one."""
    from calibrant.monitor.serve.access import new_token, read_text

    found: dict[str, str] = {}
    if wanted == "write" or read_text(store, "write token") is None:
        found["write_token"] = new_token(store, "write")
    if wanted == "read":
        found["read_token"] = new_token(store, "read")
    return found


def _hook(service: Any, url: str) -> "Hook":
    """The webhook, with a key that the store keeps."""
    from secrets import token_urlsafe

    from calibrant.monitor.serve.access import read_text, set_text
    from calibrant.monitor.serve.hooks import Hook

    if not url.startswith(("http://", "https://")):
        raise RefusedError("--hook", "be an address that starts with https://", got=repr(url))
    if read_text(service.store, "hook key") is None:
        set_text(service.store, "hook key", token_urlsafe(32))
    return Hook(service, url, read_text(service.store, "hook key") or "")


def _print(facts: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json({"command": "serve", **facts})
        return
    for name, value in facts.items():
        say(f"{name.replace('_', ' ')}: {value}")
    if "write_token" in facts:
        remark("the token is shown only now; --new-token write makes another one")


def _replay_flights(store: "Store", stopped: threading.Event) -> None:
    """Replay the demo's flights, at an even pace, until the service stops."""
    for _ in replay(store, _DEMO_MODEL):
        if stopped.wait(1.0 / _DAYS_A_SECOND):
            return
