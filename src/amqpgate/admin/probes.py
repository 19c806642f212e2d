"""The probes and the metrics, and nothing else, for kubelets and Prometheus: no token is needed."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.admin.subject import Subject


def probes_application(subject: Subject) -> Starlette:
    """``/livez``, ``/startupz``, ``/readyz`` and ``/metrics``. They tell nothing about who is connected."""
    has_started = False

    async def livez(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        if subject.ready:
            return PlainTextResponse("ready\n")
        return PlainTextResponse("not ready: draining or starting\n", 503)

    async def startupz(_request: Request) -> Response:
        nonlocal has_started
        has_started = has_started or subject.ready
        if has_started:
            return PlainTextResponse("started\n")
        return PlainTextResponse("starting\n", 503)

    async def metrics(_request: Request) -> Response:
        return Response(await subject.metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return Starlette(
        routes=[
            Route("/livez", livez),
            Route("/startupz", startupz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
        ]
    )
