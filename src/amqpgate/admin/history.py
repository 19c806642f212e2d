"""``/history``: the last hour in numbers, of all workers as one."""

from __future__ import annotations

import time
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate.admin.answering import answer, number_of
from amqpgate.admin.paths import Parameter, Path, ResponseDoc, json_answer
from amqpgate.admin.schemas import COUNT, NUMBER, Schema, listed, of, or_null
from amqpgate.admin.subject import AdminSubject
from amqpgate.telemetry.history import MINUTES, PERCENTILES, SERIES, TIMED

_NUMBERS: Final = listed(or_null(NUMBER))
_HISTORY: Final[Schema] = of(
    step=COUNT,
    at=listed(COUNT),
    workers=listed(COUNT),
    **{name: {**_NUMBERS, "description": about} for name, about in SERIES.items()},
    **{
        series: {**_NUMBERS, "description": f"{TIMED[name][1]}: {share:.0%} took less."}
        for series, (name, share) in PERCENTILES.items()
    },
)


def history_handlers(subject: AdminSubject) -> list[Route]:
    """The path."""

    async def listing(request: Request) -> Response:
        minutes = number_of(request.query_params, "minutes", MINUTES, 1, MINUTES)
        return await answer(await subject.history.told(minutes, time.time()))

    return [
        Path(
            "/history",
            listing,
            "The last hour, a number of each series for every five seconds, of all workers together.",
            parameters=[
                Parameter(
                    "minutes",
                    "Less than the hour.",
                    {"type": "integer", "minimum": 1, "maximum": MINUTES},
                )
            ],
            answers={
                200: json_answer(
                    "Lists of the same length: `at` is when each five seconds were over, in seconds since "
                    "1970, `workers` how many wrote a row; null where none did, or nothing was timed.",
                    _HISTORY,
                ),
                400: ResponseDoc("A parameter is wrong."),
            },
        )
    ]
