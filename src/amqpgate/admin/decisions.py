"""``/decisions``: the last refusals, and where policies in shadow would have decided otherwise."""

from __future__ import annotations

from typing import Final, cast, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate.admin.answering import answer, number_of
from amqpgate.admin.paths import Parameter, Path, ResponseDoc, json_answer
from amqpgate.admin.schemas import DECISION, listed, of
from amqpgate.admin.subject import AdminSubject, Refused
from amqpgate.gateway.observers.stats.decisions import KEPT, Sort
from amqpgate.telemetry.answers import JSON

_SORTS: Final = get_args(Sort)


def decision_handlers(subject: AdminSubject) -> list[Route]:
    """The path."""

    async def listing(request: Request) -> Response:
        kind = request.query_params.get("kind")
        if kind is not None and kind not in _SORTS:
            raise Refused(400, f"kind: one of {', '.join(_SORTS)}")
        most = number_of(request.query_params, "limit", 100, 1, KEPT)
        answers = (await subject.call("decisions", {"most": most, "kind": kind})).complete()
        found = [
            {"worker": number, **decision}
            for number, told in answers.items()
            for decision in cast("list[dict[str, JSON]]", told)
        ]
        found.sort(key=lambda decision: cast("float", decision["at"]), reverse=True)
        return await answer({"decisions": found[:most]})

    return [
        Path(
            "/decisions",
            listing,
            f"Refusals and shadow differences, the newest first; each worker keeps {KEPT}.",
            parameters=[
                Parameter("kind", "Only those.", {"type": "string", "enum": list(_SORTS)}),
                Parameter("limit", "Most of them.", {"type": "integer", "minimum": 1, "maximum": KEPT}),
            ],
            answers={
                200: json_answer("The last ones.", of(decisions=listed(DECISION))),
                400: ResponseDoc("A parameter is wrong."),
                503: ResponseDoc("Not every worker has answered."),
            },
        )
    ]
