"""What requests and answers contain, for the OpenAPI description."""

from typing import Any

from calibrant.monitor.serve.bodies import ARROW, JSON, LINES
from calibrant.monitor.serve.problems import SCHEMA

_PROBLEM = {"content": {"application/problem+json": {"schema": SCHEMA}}}
_REFUSALS = {
    400: "The request cannot be read.",
    401: "A token is needed.",
    403: "The token lacks the right.",
    404: "There is no such model or prediction.",
    405: "There is no such method.",
    409: "It contradicts what is in the store.",
    413: "The body is too large.",
    415: "The content type is not supported.",
    421: "The Host header names another host.",
    422: "A value breaks a rule.",
    429: "Too many requests.",
    503: "The store cannot be reached now; try again.",
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, **_PROBLEM} for status, text in _REFUSALS.items()
}
_ID: dict[str, Any] = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]}
_AT: dict[str, Any] = {
    "anyOf": [{"type": "string"}, {"type": "number"}],
    "description": "A date, in UTC unless it has a time zone, or days since 1970. Default: now.",
}
_SEGMENT: dict[str, Any] = {"type": ["string", "number", "boolean"]}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


PREDICTION = _object(["id", "score"], id=_ID, score={"type": "number"}, at=_AT, segment=_SEGMENT)
LABEL = _object(["id", "label"], id=_ID, label={"type": ["string", "number", "boolean"]}, at=_AT)
SCORE = _object(["score"], score={"type": "number"}, segment=_SEGMENT)
_MODEL = _object(
    ["name", "model", "maturity"],
    name={"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9 ._-]{0,199}$"},
    model={"type": "object", "description": "The content of a model file."},
    maturity={"type": "number", "minimum": 0},
    confidence_level={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    unit={"enum": ["row", "day"]},
    reference={"type": "integer", "minimum": 1},
    remember={"type": "number", "exclusiveMinimum": 0},
)
MODEL = {"requestBody": {"required": True, "content": {JSON: {"schema": _MODEL}}}}


def batch_of(row: dict[str, Any]) -> dict[str, Any]:
    """A body with one row, a list of rows, lines of rows, or an Arrow table."""
    rows = {"type": "array", "items": row, "minItems": 1}
    binary = {"type": "string", "format": "binary"}
    content = {
        JSON: {"schema": {"oneOf": [row, rows]}},
        LINES: {"schema": binary},
        ARROW: {"schema": binary},
    }
    return {"requestBody": {"required": True, "content": content}}


def answers_with(*entries: str, kind: str = JSON) -> dict[str, Any]:
    """Arguments of a route for an answer that is an object with these entries, or text."""
    schema = _object(list(entries)) if kind == JSON else {"type": "string"}
    ok = {"description": "Done.", "content": {kind: {"schema": schema}}}
    return {"responses": {200: ok}}


CREATED: dict[str, Any] = {
    "responses": {
        201: {"description": "Made.", "content": {JSON: {"schema": _object(["name"])}}},
        200: {"description": "Known already.", "content": {JSON: {"schema": _object(["name"])}}},
    }
}
