"""The routes: JSON under /v1, metrics, and the page."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qs

from fastapi import Depends, FastAPI, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from calibrant._version import __version__
from calibrant.errors import CalibrantError
from calibrant.monitor.ledger import Receipt
from calibrant.monitor.serve import page, problems
from calibrant.monitor.serve.access import Access, Guard
from calibrant.monitor.serve.bodies import ARROW, JSON, Body, arrow_of
from calibrant.monitor.serve.hooks import Hook
from calibrant.monitor.serve.metrics import metrics_text
from calibrant.monitor.serve.schemas import (
    ANSWERS,
    CREATED,
    LABEL,
    MODEL,
    PREDICTION,
    SCORE,
    answers_with,
    batch_of,
)
from calibrant.monitor.serve.service import Service

T = TypeVar("T")
_COOKIE = "calibrant"
_SHORT = 10_000  # bytes of a body
_MOST_STREAMS = 200
_LOOK_EVERY = 1.0  # seconds between looks of a stream at the store
_STILL_HERE = 15  # looks after which a silent stream says so
_BEARER = HTTPBearer(auto_error=False)
Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]


def make_app(
    service: Service,
    *,
    host: str = "127.0.0.1",
    hook: Hook | None = None,
    each_second: float = 2000.0,
) -> FastAPI:
    """The service over HTTP.

    Parameters
    ----------
    service : Service
        A store and its models.
    host : str
        The address that the service listens at: reads without a token are for this machine alone.
    hook : Hook, optional
        Where alarms are reported.
    each_second : float
        Requests that a client may make.
    """
    access = Access(service.store, host)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        stopped = threading.Event()
        if hook is not None:
            threading.Thread(target=hook.run, args=(stopped,), daemon=True).start()
        yield
        stopped.set()

    app = FastAPI(
        title="calibrant",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        lifespan=life,
        responses=ANSWERS,
    )
    app.add_middleware(Guard, access=access, each_second=each_second)
    app.add_exception_handler(problems.ProblemError, problems.of_problem)  # type: ignore[arg-type]
    app.add_exception_handler(CalibrantError, problems.of_error)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, problems.of_http)
    app.add_exception_handler(Exception, problems.of_fault)

    def reads(request: Request, bearer: Bearer) -> None:
        token = request.cookies.get(_COOKIE) if bearer is None else bearer.credentials
        access.check(token, "read")

    def writes(bearer: Bearer) -> None:
        access.check(None if bearer is None else bearer.credentials, "write")

    _add_models(app, service, [Depends(reads)], [Depends(writes)])
    _add_rows(app, service, [Depends(reads)], [Depends(writes)])
    _add_streams(app, service, [Depends(reads)])
    _add_pages(app, service, access, [Depends(reads)])
    return app


async def _body_of(request: Request) -> Body:
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    return Body(await request.body(), kind)


def _add_models(app: FastAPI, service: Service, reads: Any, writes: Any) -> None:
    def model_json(name: str) -> dict[str, Any]:
        monitor = service.monitor(name)
        settings = {"name": name, "checksum": monitor.checksum, **monitor.settings}
        standing = service.standing(name)
        return {**settings, "headline": None if standing is None else asdict(standing.headline)}

    @app.post("/v1/models", dependencies=writes, status_code=201, openapi_extra=MODEL, **CREATED)
    async def create_model(request: Request) -> Response:
        content = (await _body_of(request)).json()
        monitor, is_new = await run_in_threadpool(service.create, content)
        where = {"Location": f"/v1/models/{page.quoted(monitor.name)}"}
        told = await run_in_threadpool(model_json, monitor.name)
        return JSONResponse(told, 201 if is_new else 200, where)

    @app.get("/v1/models", dependencies=reads, **answers_with("models"))
    def list_models() -> Response:
        found = [
            {"name": one.name, **asdict(one.live), "headline": asdict(one.headline)}
            for one in service.standings()
        ]
        return JSONResponse({"models": found})

    @app.get("/v1/models/{name}", dependencies=reads, **answers_with())
    def one_model(name: str) -> Response:
        return JSONResponse(model_json(name))

    @app.get("/v1/models/{name}/guarantee", dependencies=reads, **answers_with())
    def guarantee(name: str) -> Response:
        stated: Any = service.monitor(name).calibrator.guarantee_
        return JSONResponse(stated.to_dict())

    @app.get("/v1/models/{name}/drift", dependencies=reads, **answers_with("tests"))
    def drift(name: str) -> Response:
        _, found = service.snapshot(name)
        tests = [verdict.to_dict() for verdict in found.verdicts]
        return JSONResponse({"alarm": found.alarm, "sentence": found.sentence, "tests": tests})

    @app.get("/v1/models/{name}/snapshot", dependencies=reads, **answers_with())
    def snapshot(name: str, request: Request) -> Response:
        tag = {"ETag": f'"{service.version(name)}"'}
        if request.headers.get("if-none-match") == tag["ETag"]:
            return Response(status_code=304, headers=tag)
        version, found = service.snapshot(name)
        return JSONResponse(found.to_dict(), headers={"ETag": f'"{version}"'})


def _add_rows(app: FastAPI, service: Service, reads: Any, writes: Any) -> None:
    def add(what: str, row: dict[str, Any], record: Callable[[str, Body], Receipt]) -> None:
        async def record_rows(name: str, request: Request) -> Response:
            counts = asdict(await run_in_threadpool(record, name, await _body_of(request)))
            return JSONResponse({"recorded": counts.pop("new"), **counts})

        app.post(
            f"/v1/models/{{name}}/{what}",
            name=f"record_{what}",
            dependencies=writes,
            openapi_extra=batch_of(row),
            **answers_with("recorded"),
        )(record_rows)

    add("predictions", PREDICTION, service.record)
    add("labels", LABEL, service.resolve)

    @app.delete(
        "/v1/models/{name}/predictions/{id}",
        dependencies=writes,
        status_code=204,
        response_class=Response,
    )
    def erase_prediction(name: str, id: str) -> Response:  # noqa: A002
        service.erase(name, id)
        return Response(status_code=204)

    @app.post(
        "/v1/models/{name}/calibrate",
        dependencies=reads,
        openapi_extra=batch_of(SCORE),
        **answers_with("probability"),
    )
    async def calibrate(name: str, request: Request) -> Response:
        body = await _body_of(request)
        if len(body.data) < _SHORT:  # a thread would take longer than the answer
            found = service.calibrate(name, body)
        else:
            found = await run_in_threadpool(service.calibrate, name, body)
        if body.kind == ARROW:
            return Response(arrow_of(found), media_type=ARROW)
        return JSONResponse({key: column.tolist() for key, column in found.items()})


def _add_streams(app: FastAPI, service: Service, reads: Any) -> None:
    n_open = 0

    async def changes(request: Request, version: Callable[[], str]) -> AsyncIterator[str]:
        """The version, whenever it changes."""
        nonlocal n_open
        n_open += 1
        told = ""
        silent = 0
        try:
            while not await request.is_disconnected():
                try:
                    found = await run_in_threadpool(version)
                except (CalibrantError, problems.ProblemError):
                    return  # the browser connects again
                if found != told:
                    yield f"event: change\ndata: {json.dumps({'version': found})}\n\n"
                    told = found
                    silent = 0
                elif (silent := silent + 1) % _STILL_HERE == 0:
                    yield ": still here\n\n"
                await asyncio.sleep(_LOOK_EVERY)
        finally:
            n_open -= 1

    def stream(request: Request, version: Callable[[], str]) -> Response:
        if n_open >= _MOST_STREAMS:
            raise problems.ProblemError(503, "too many streams are open", {"Retry-After": "10"})
        return StreamingResponse(changes(request, version), media_type="text/event-stream")

    @app.get("/v1/events", dependencies=reads, **answers_with(kind="text/event-stream"))
    async def events(request: Request) -> Response:
        return stream(request, service.versions)

    @app.get(
        "/v1/models/{name}/events", dependencies=reads, **answers_with(kind="text/event-stream")
    )
    async def events_of_model(name: str, request: Request) -> Response:
        await run_in_threadpool(service.version, name)
        return stream(request, lambda: service.version(name))

    @app.get("/metrics", dependencies=reads, **answers_with(kind="text/plain"))
    def metrics() -> Response:
        text = metrics_text(service.standings())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    @app.get("/healthz", **answers_with())
    async def healthz() -> Response:
        return JSONResponse({"status": "ok"})

    @app.get("/readyz", **answers_with())
    def readyz() -> Response:
        service.check()
        return JSONResponse({"status": "ready"})


def _add_pages(app: FastAPI, service: Service, access: Access, reads: Any) -> None:
    def html(text: str, status: int = 200) -> Response:
        return HTMLResponse(text, status, {"Content-Security-Policy": page.policy()})

    def may_read(request: Request) -> bool:
        try:
            access.check(request.cookies.get(_COOKIE), "read")
        except problems.ProblemError:
            return False
        return True

    @app.get("/", include_in_schema=False)
    def every_model(request: Request) -> Response:
        if not may_read(request):
            return html(page.login_page(), 401)
        return html(page.list_page(service.standings(), str(request.base_url).rstrip("/")))

    @app.get("/models/{name}", include_in_schema=False)
    def page_of_model(name: str, request: Request) -> Response:
        if not may_read(request):
            return html(page.login_page(), 401)
        return html(page.model_page(service, name))

    @app.get("/models/{name}/report.html", dependencies=reads, include_in_schema=False)
    def report_of_model(name: str) -> Response:
        _, found = service.snapshot(name)
        shown = {"Content-Disposition": 'attachment; filename="drift.html"'}
        return HTMLResponse(page.report(name, found), headers=shown)

    @app.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        sent = parse_qs((await request.body()).decode("latin-1"))
        token = sent.get("token", [""])[0]
        access.check(token, "read")
        answered = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        answered.set_cookie(_COOKIE, token, httponly=True, samesite="strict", secure=secure)
        return answered
