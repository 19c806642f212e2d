"""``/routes``: which routes there are, and to pause and resume one.

To change something takes the bearer token, even on loopback, where other changes do not (`guarding`): who
pauses a route stops clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from amqpgate.admin.answering import answer
from amqpgate.admin.asking import signed
from amqpgate.admin.paths import Path, ResponseDoc, json_answer
from amqpgate.admin.schemas import COUNT, NUMBER, TEXT, TRUTH, listed, of
from amqpgate.admin.subject import AdminSubject, Refused
from amqpgate.telemetry.answers import JSON, Answers
from amqpgate.yamldoc import Secret, nearest

#: One route.
State: TypeAlias = "dict[str, JSON]"


def route_handlers(subject: AdminSubject, token: Secret | None) -> list[Route]:
    """The paths; what may not or cannot be done says why."""

    async def listing(_request: Request) -> Response:
        return await answer({"routes": combine((await subject.call("routes")).complete())})

    async def change(request: Request) -> Response:
        if token is None:
            raise Refused(403, "to pause and resume routes, set admin.tokenFile")
        name, verb = request.path_params["name"], request.path_params["verb"]
        if verb not in ("pause", "resume"):
            raise Refused(404, "not found: it is pause or resume")
        order = {"name": name, "paused": verb == "pause"}
        if not combine((await subject.call("routes", signed(order))).complete()):
            known = [str(route["id"]) for route in combine((await subject.call("routes")).complete())]
            raise Refused(404, f"there is no route of that name{nearest(name, known)}")
        return PlainTextResponse(f"{verb}d\n")

    incomplete = ResponseDoc("Not every worker has answered.")
    row = of(
        id=TEXT,
        policy=TEXT,
        paused=TRUTH,
        waiting=COUNT,
        most_waiting=COUNT,
        longest_wait=NUMBER,
        upstreams=listed(TEXT),
        mirror=TEXT,
    )
    return [
        Path(
            "/routes",
            listing,
            "The routes in the order in which they are tried.",
            answers={200: json_answer("All routes.", of(routes=listed(row))), 503: incomplete},
        ),
        Path(
            "/routes/{name}/{verb}",
            change,
            "Have new connections of a route wait (`pause`), or go on (`resume`).",
            method="POST",
            answers={
                200: ResponseDoc("Every worker does."),
                403: ResponseDoc("There is no token: that is not for everybody on this machine."),
                404: ResponseDoc("There is no such route, or verb."),
                503: incomplete,
            },
        ),
    ]


def combine(answers: Answers) -> list[State]:
    """What the workers say as one; nothing where none knows the route that was asked for."""
    known = [cast("list[State]", states) for states in answers.values() if states is not None]
    # While policies are read again, one may know what another does not.
    return [
        {
            **state,
            "paused": any(_find(states, state).get("paused") for states in known),
            "waiting": sum(int(str(_find(states, state).get("waiting", 0))) for states in known),
        }
        for state in (known[0] if known else ())
    ]


def _find(states: Sequence[State], like: State) -> State:
    return next((state for state in states if state["id"] == like["id"]), {})
