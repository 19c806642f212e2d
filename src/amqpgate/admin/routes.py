"""``/routes``: which routes there are, and to pause and resume one.

To change something takes the bearer token, even on loopback: any page in a browser of this machine can post
there. Where several workers serve, each would have to be told; that is left to the documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.yamldoc import Secret

#: One route as JSON has it.
State: TypeAlias = "Mapping[str, str | int | bool | list[str]]"


@runtime_checkable
class Steered(Protocol):
    """What has routes that an operator can pause."""

    def route_states(self) -> Sequence[State]:
        """All routes in the order in which they are tried."""

    def pause_route(self, name: str, paused: bool) -> None:
        """``KeyError`` where there is none of that name."""


def route_handlers(subject: object, token: Secret | None) -> list[Route]:
    """The paths; what may not or cannot be done says why."""

    async def listing(_request: Request) -> Response:
        if not isinstance(subject, Steered):
            return _several_workers()
        return JSONResponse({"routes": [dict(state) for state in subject.route_states()]})

    async def change(request: Request) -> Response:
        if token is None:
            return PlainTextResponse("to pause and resume routes, set admin.tokenFile\n", status_code=403)
        if not isinstance(subject, Steered):
            return _several_workers()
        name, verb = request.path_params["name"], request.path_params["verb"]
        if verb not in ("pause", "resume"):
            return PlainTextResponse("not found: it is pause or resume\n", status_code=404)
        try:
            subject.pause_route(name, verb == "pause")
        except KeyError:
            return PlainTextResponse("there is no route of that name\n", status_code=404)
        return PlainTextResponse(f"{verb}d\n")

    return [
        Route("/routes", listing),
        Route("/routes/{name}/{verb}", change, methods=["POST"]),
    ]


def _several_workers() -> Response:
    return PlainTextResponse(
        "with several workers, say paused in the route's document and reload (SIGHUP)\n", status_code=501
    )
