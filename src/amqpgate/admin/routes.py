"""``/routes``: which routes there are, and to pause and resume one.

To change something takes the bearer token, even on loopback: any page in a browser of this machine can post
there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.errors import AmqpgateError
from amqpgate.yamldoc import Secret

#: One route as JSON has it.
State: TypeAlias = "Mapping[str, str | int | bool | list[str]]"


class IncompleteError(AmqpgateError):
    """Not every worker has answered. Those that have do as they were told."""


class Steered(Protocol):
    """What has routes that an operator can pause."""

    async def steer_routes(self, name: str | None = None, paused: bool = False) -> Sequence[State]:
        """Pause or resume a route, if one is named; then, all routes in the order in which they are tried.

        Raises ``KeyError`` where there is none of that name, and ``IncompleteError``.
        """


def route_handlers(subject: Steered, token: Secret | None) -> list[Route]:
    """The paths; what may not or cannot be done says why."""

    async def answer(name: str | None, verb: str) -> Response:
        try:
            states = await subject.steer_routes(name, verb == "pause")
        except KeyError:
            return PlainTextResponse("there is no route of that name\n", status_code=404)
        except IncompleteError as error:
            return PlainTextResponse(f"{error}\n", status_code=503)
        if name is None:
            return JSONResponse({"routes": [dict(state) for state in states]})
        return PlainTextResponse(f"{verb}d\n")

    async def listing(_request: Request) -> Response:
        return await answer(None, "list")

    async def change(request: Request) -> Response:
        if token is None:
            return PlainTextResponse("to pause and resume routes, set admin.tokenFile\n", status_code=403)
        name, verb = request.path_params["name"], request.path_params["verb"]
        if verb not in ("pause", "resume"):
            return PlainTextResponse("not found: it is pause or resume\n", status_code=404)
        return await answer(name, verb)

    return [
        Route("/routes", listing),
        Route("/routes/{name}/{verb}", change, methods=["POST"]),
    ]
