"""Who may read and write: tokens, limits, and headers for browsers."""

import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa

from calibrant.monitor.serve.problems import ProblemError
from calibrant.monitor.store import Store
from calibrant.monitor.tables import STORE

Right: TypeAlias = Literal["read", "write"]
MOST_BYTES = 64_000_000
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)
_PLAIN_POLICY = b"default-src 'none'; frame-ancestors 'none'"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return host in _LOOPBACK


def new_token(store: Store, right: Right) -> str:
    """Make a token, replacing the last one; the store keeps only its hash."""
    token = f"calibrant_{right}_{secrets.token_urlsafe(32)}"
    set_text(store, f"{right} token", _hash(token))
    return token


def _hash(token: str) -> str:
    # a token has 256 random bits: nothing is gained by a slow hash
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def read_text(store: Store, key: str) -> str | None:
    """A text of the store that belongs to no model; None if there is none."""
    with store.reading() as connection:
        query = sa.select(STORE.c.value).where(STORE.c.key == key)
        found: str | None = connection.execute(query).scalar()
    return found


def set_text(store: Store, key: str, value: str) -> None:
    """Set a text of the store that belongs to no model."""
    with store.writing() as connection:
        store.lock_opening(connection)
        connection.execute(STORE.delete().where(STORE.c.key == key))
        connection.execute(STORE.insert().values(key=key, value=value))


class Access:
    """Decides whether a token may read or write.

    Without a read token, everybody on this machine may read if the service listens there alone.
    """

    def __init__(self, store: Store, host: str) -> None:
        self._hashes = {right: read_text(store, f"{right} token") for right in ("read", "write")}
        self.is_open = is_loopback(host) and self._hashes["read"] is None

    def check(self, token: str | None, wanted: Right) -> None:
        """Reject a token without the required right; a token that may write may also read."""
        given = "" if token is None else _hash(token)
        rights = {
            right
            for right, known in self._hashes.items()
            if known is not None and hmac.compare_digest(given, known)
        }
        if wanted in rights or (wanted == "read" and (self.is_open or "write" in rights)):
            return
        if rights:
            raise ProblemError(403, "this token may read; a write token is needed")
        asks = {"WWW-Authenticate": "Bearer"}
        raise ProblemError(401, f"send a {wanted} token: Authorization: Bearer TOKEN", asks)


class _Rate:
    """A limit on the requests of each client: as many a second on average, twice as many at once."""

    _MOST_CLIENTS = 10_000

    def __init__(self, each_second: float) -> None:
        self._each = each_second
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def takes(self, client: str) -> bool:
        now = time.monotonic()
        left, before = self._left.pop(client, (2.0 * self._each, now))
        left = min(2.0 * self._each, left + (now - before) * self._each)
        self._left[client] = (max(left - 1.0, 0.0), now)
        while len(self._left) > self._MOST_CLIENTS:
            self._left.popitem(last=False)
        return left >= 1.0


class Guard:
    """Middleware: limits on bodies and rates, the name of the host, and headers.

    A page of another site whose name leads to this machine must not read what is open here, so a
    service that is open answers only to names of this machine.
    """

    def __init__(self, app: Any, access: Access, each_second: float) -> None:
        self._app = app
        self._access = access
        self._rate = _Rate(each_second)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        taken = 0

        async def counted() -> Any:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise ProblemError(413, f"a body has at most {MOST_BYTES:,} bytes")
            return message

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                more = (*_HEADERS, (b"content-security-policy", _PLAIN_POLICY))
                message["headers"] += [one for one in more if one[0] not in given]
            await send(message)

        refused = self._refused(scope, headers)
        if refused is None:
            await self._app(scope, counted, sent)
        else:
            await refused.response()(scope, receive, sent)

    def _refused(self, scope: Any, headers: Mapping[bytes, bytes]) -> ProblemError | None:
        host = headers.get(b"host", b"").decode("latin-1")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if self._access.is_open and not is_loopback(name.strip("[]").lower()):
            return ProblemError(
                421, "without a read token, only requests to names of this machine are answered"
            )
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > MOST_BYTES:
            return ProblemError(413, f"a body has at most {MOST_BYTES:,} bytes")
        client = scope["client"][0] if scope.get("client") else ""
        if not self._rate.takes(client):
            return ProblemError(429, "too many requests", {"Retry-After": "1"})
        return None


def signed_body(secret: str, content: Any) -> tuple[bytes, str]:
    """A body, and its signature by HMAC-SHA256."""
    body = json.dumps(content).encode()
    return body, f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
