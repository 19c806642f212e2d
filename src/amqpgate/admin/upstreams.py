"""``/upstreams``: the brokers behind, and what each worker believes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate.admin.answering import answer
from amqpgate.admin.paths import Path, ResponseDoc, json_answer
from amqpgate.admin.schemas import UPSTREAM, listed, of
from amqpgate.admin.subject import AdminSubject
from amqpgate.telemetry.answers import JSON, Answers


def upstream_handlers(subject: AdminSubject) -> list[Route]:
    """The path."""

    async def listing(_request: Request) -> Response:
        return await answer({"upstreams": combine((await subject.call("upstreams")).complete())})

    answers = {
        200: json_answer("All of the settings.", of(upstreams=listed(UPSTREAM))),
        503: ResponseDoc("Not every worker has answered."),
    }
    return [Path("/upstreams", listing, "The brokers behind, and what is believed of them.", answers=answers)]


def combine(answers: Answers) -> list[JSON]:
    """Each cluster once, with the endpoints as each worker sees them."""
    found: dict[str, dict[str, JSON]] = {}
    for number, told in sorted(answers.items()):
        for cluster in cast("list[dict[str, JSON]]", told):
            endpoints = [
                {"worker": number, **endpoint}
                for endpoint in cast("list[Mapping[str, JSON]]", cluster["endpoints"])
            ]
            known = found.setdefault(
                str(cluster["name"]), {**cluster, "endpoints": [], "sessions": 0, "retry_budget": 0.0}
            )
            known["endpoints"] = [*cast("list[JSON]", known["endpoints"]), *endpoints]
            known["version"] = known["version"] or cluster["version"]
            for name in ("sessions", "retry_budget"):
                known[name] = cast("float", known[name]) + cast("float", cluster[name])
    return list(found.values())
