"""``/config``: the settings without secrets; ``/log-level``: what is written to the log."""

from __future__ import annotations

from pathlib import Path as File
from typing import cast

import attrs
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate.admin.answering import answer, object_of
from amqpgate.admin.asking import signed
from amqpgate.admin.paths import Path, ResponseDoc, json_answer
from amqpgate.admin.schemas import of
from amqpgate.admin.subject import AdminSubject, Refused
from amqpgate.logs import LEVELS, set_level, without_passwords
from amqpgate.telemetry.answers import JSON, Args
from amqpgate.yamldoc import Secret, key_of
from amqpgate.yamldoc.values import TextValue


def setting_handlers(subject: AdminSubject) -> list[Route]:
    """The paths."""

    async def config(_request: Request) -> Response:
        return await answer({"config": shown(subject.settings)})

    async def level(request: Request) -> Response:
        args: Args = {}
        if request.method == "POST":
            args = await object_of(request, "level")
            if args.get("level") not in LEVELS:
                raise Refused(400, f"level: one of {', '.join(LEVELS)}")
            # The workers' supervisor has a log, too.
            set_level(str(args["level"]))
        answers = (await subject.call("log_level", signed(args))).complete()
        return await answer({"level": next(iter(answers.values()))})

    one_of: JSON = {"type": "string", "enum": list(LEVELS)}
    told = json_answer("The least important message that is written.", of(level=one_of))
    return [
        Path(
            "/config",
            config,
            "The settings; `***` is in the place of every secret.",
            answers={200: json_answer("The settings.", of(config={"type": "object"}))},
        ),
        Path("/log-level", level, "What is written to the log.", answers={200: told, 503: _INCOMPLETE}),
        Path(
            "/log-level",
            level,
            "Write more, or less, to the log, until the end of the process.",
            method="POST",
            body={"type": "object", "required": ["level"], "properties": {"level": one_of}},
            answers={200: told, 400: ResponseDoc("The body is not that."), 503: _INCOMPLETE},
        ),
    ]


_INCOMPLETE = ResponseDoc("Not every worker has answered.")


def shown(value: object) -> JSON:
    """A setting as JSON, with the keys of the file. A value of a type that is not known here is not shown."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return without_passwords(value)
    if isinstance(value, Secret):
        return "***"
    if isinstance(value, TextValue | File):
        return without_passwords(str(value))
    if isinstance(value, tuple):
        return [shown(item) for item in cast("tuple[object, ...]", value)]
    kind: type = type(value)
    if attrs.has(kind):
        return {key_of(field): shown(getattr(value, field.name)) for field in attrs.fields(kind)}
    return "***"
