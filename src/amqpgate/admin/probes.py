"""``/livez``, ``/readyz``, ``/startupz`` and ``/metrics``: what machines ask."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.admin.paths import Path, ResponseDoc
from amqpgate.admin.policies import policy_state
from amqpgate.admin.subject import AdminSubject
from amqpgate.gateway.server.reloading import PolicyState


def probe_handlers(subject: AdminSubject, is_trusted: Callable[[Request], bool]) -> list[Route]:
    """The paths. Who is not trusted is told yes or no, and no more; these paths need no token."""

    async def livez(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def startupz(_request: Request) -> Response:
        if subject.started:
            return PlainTextResponse("started\n")
        return PlainTextResponse("starting\n", 503)

    async def readyz(request: Request) -> Response:
        ready = subject.ready
        why = "audit records are not written" if subject.phase == "ready" else subject.phase
        text = "ready\n" if ready else f"not ready: {why}\n"
        if is_trusted(request):
            text += _policies(await policy_state(subject))
        return PlainTextResponse(text, status_code=200 if ready else 503)

    async def metrics(_request: Request) -> Response:
        return Response(await subject.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    yes = ResponseDoc("Yes.")
    return [
        Path("/livez", livez, "Whether the process answers.", answers={200: yes}, is_open=True),
        Path(
            "/readyz",
            readyz,
            "Whether new connections are accepted; and, for who bears the token, the policies in force.",
            answers={200: yes, 503: ResponseDoc("No: it starts, is paused, drains, or has lost its audit.")},
            is_open=True,
        ),
        Path(
            "/startupz",
            startupz,
            "Whether they were ever accepted.",
            answers={200: yes, 503: ResponseDoc("Not yet.")},
            is_open=True,
        ),
        Path("/metrics", metrics, "Prometheus' text format.", answers={200: ResponseDoc("All metrics.")}),
    ]


def _policies(state: PolicyState) -> str:
    """The lines of ``/readyz`` that follow the first one."""
    text = f"policies: {state.shown}\n" if state.digest else ""
    if state.error is None or state.status == "nothing":
        return text
    where = "".join(f"{part}:" for part in (state.file, state.line, state.column) if part is not None)
    return f"{text}policies: {where}{' ' if where else ''}{state.error}\n"
