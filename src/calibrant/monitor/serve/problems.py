"""Errors as problem objects (RFC 9457), with the fields that calibrant's errors have."""

import logging
import traceback
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from calibrant.errors import CalibrantError, StoreError
from calibrant.text.sentences import in_python, render

LOG = logging.getLogger("calibrant.serve")
_AGAIN = {"Retry-After": "2"}
SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "parameter": {"type": ["string", "null"]},
        "rule": {"type": "string"},
        "got": {"type": ["string", "null"]},
        "advice": {"type": ["string", "null"]},
    },
}


class ProblemError(Exception):
    """An answer other than success: its status, what to say, and headers."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers

    def response(self) -> JSONResponse:
        """The problem object."""
        return _answer(self.status, {"detail": str(self)}, self.headers)


class ConflictError(ProblemError):
    """An error of the library that says that the request contradicts what is in the store."""

    def __init__(self, error: CalibrantError) -> None:
        super().__init__(409, str(error))
        self.error = error

    def response(self) -> JSONResponse:
        """The problem object, with the fields of the error."""
        return _answer(self.status, _fields(self.error))


def _answer(
    status: int, content: dict[str, Any], headers: dict[str, str] | None = None
) -> JSONResponse:
    head = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    kind = "application/problem+json"
    return JSONResponse({**head, **content}, status, headers, media_type=kind)


def _fields(error: CalibrantError) -> dict[str, Any]:
    named = ("parameter", "rule", "got", "advice")
    texts = {name: getattr(error, name) for name in named}
    plain = {
        name: None if text is None else _storable(render(text, in_python))
        for name, text in texts.items()
    }
    return {"detail": _storable(str(error)), **plain}


def _storable(text: str) -> str:
    """Text that is UTF-8, whatever was sent."""
    return text.encode("utf-8", "backslashreplace").decode()


async def of_problem(request: Request, error: ProblemError) -> JSONResponse:
    """The answer to a refused request."""
    return error.response()


async def of_error(request: Request, error: CalibrantError) -> JSONResponse:
    """The answer to an error of the library; a store that cannot be reached may be back soon."""
    if isinstance(error, StoreError):
        LOG.warning("the store: %s", error.rule)
        return _answer(503, _fields(error), _AGAIN)
    return _answer(422, _fields(error))


async def of_http(request: Request, error: Any) -> JSONResponse:
    """The answer to an unknown address or method."""
    return _answer(error.status_code, {"detail": str(error.detail)}, error.headers)


async def of_fault(request: Request, error: Exception) -> JSONResponse:
    """The answer to a fault of ours. What is logged is where it happened, never what was sent."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    LOG.error("unexpected %s in %s:%s", type(error).__name__, place.filename, place.lineno)
    return _answer(500, {"detail": "an unexpected error, which is in the log"})
