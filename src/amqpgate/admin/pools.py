"""``/pools``: which sessions share which connections to the broker, both ways."""

from __future__ import annotations

from typing import cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate.admin.answering import answer
from amqpgate.admin.paths import Path, ResponseDoc, json_answer
from amqpgate.admin.schemas import listed, of
from amqpgate.admin.subject import AdminSubject
from amqpgate.operator.pools import State


def pool_handlers(subject: AdminSubject) -> list[Route]:
    """The path."""

    async def listing(_request: Request) -> Response:
        answers = (await subject.call("pools")).complete()
        return await answer(
            {
                "pools": [
                    {"worker": number, **state}
                    for number, states in sorted(answers.items())
                    for state in cast("list[State]", states)
                ]
            }
        )

    answers = {
        200: json_answer("All pools.", of(pools=listed({"type": "object"}))),
        503: ResponseDoc("Not every worker has answered."),
    }
    return [Path("/pools", listing, "Which sessions share which connections to brokers.", answers=answers)]
