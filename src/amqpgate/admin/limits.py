"""``/limits``: limits of messages and bytes, each with what passes under it."""

from __future__ import annotations

import json
from typing import Final, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate.admin.answering import answer, number_of
from amqpgate.admin.paths import Parameter, Path, ResponseDoc, json_answer
from amqpgate.admin.schemas import COUNT, NUMBER, TEXT, TRUTH, listed, of
from amqpgate.admin.subject import AdminSubject
from amqpgate.operator.limits import fullest
from amqpgate.telemetry.answers import JSON, Answers
from amqpgate.telemetry.time_slices import TimeSlices

_MOST: Final = 1000
#: What makes two rows of different workers the same bucket.
_SAME: Final = ("policy", "limit", "key", "quantity", "action", "enforced", "most")
_LIMITS: Final = of(
    limits=listed(
        of(
            policy=TEXT,
            limit=TEXT,
            key=listed(TEXT),
            quantity=TEXT,
            action=TEXT,
            enforced=TRUTH,
            most=NUMBER,
            rate=NUMBER,
            sessions=COUNT,
            waiting=COUNT,
        )
    ),
    left_out=COUNT,
)


def limit_handlers(subject: AdminSubject) -> list[Route]:
    """The path."""

    async def listing(request: Request) -> Response:
        most = number_of(request.query_params, "limit", 100, 1, _MOST)
        return await answer(await combine((await subject.call("limits", {"most": _MOST})).complete(), most))

    return [
        Path(
            "/limits",
            listing,
            "Limits of messages and bytes that sessions are under, with what passes: the fullest first.",
            parameters=[
                Parameter("limit", "Most of them.", {"type": "integer", "minimum": 1, "maximum": _MOST})
            ],
            answers={
                200: json_answer("A row for each bucket; `most` and `rate` are per second.", _LIMITS),
                400: ResponseDoc("A parameter is wrong."),
                503: ResponseDoc("Not every worker has answered."),
            },
        )
    ]


async def combine(answers: Answers, most: int) -> dict[str, JSON]:
    """The workers' rows: those of one bucket are one."""
    found: dict[str, dict[str, JSON]] = {}
    left_out, turns = 0, TimeSlices()
    for told in cast("list[dict[str, JSON]]", list(answers.values())):
        left_out += cast("int", told["left_out"])
        for row in cast("list[dict[str, JSON]]", told["limits"]):
            known = found.setdefault(
                json.dumps([row[name] for name in _SAME]), {**row, "rate": 0.0, "sessions": 0, "waiting": 0}
            )
            for name in ("rate", "sessions", "waiting"):
                known[name] = round(cast("float", known[name]) + cast("float", row[name]), 3)
            await turns.next()
    shown = fullest(list(found.values()), most)
    return {**shown, "left_out": cast("int", shown["left_out"]) + left_out}
