"""``/openapi.json``: the interface as a document (OpenAPI 3.1), made from the very routes that serve it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate import __version__
from amqpgate.admin.answering import answer
from amqpgate.admin.paths import Path, ResponseDoc, json_answer
from amqpgate.telemetry.answers import JSON


def openapi_handlers(routes: Sequence[Route]) -> list[Route]:
    """The path. The document has these routes, and itself."""

    async def openapi(_request: Request) -> Response:
        return await answer(document([*routes, own]))

    told = {200: json_answer("The document.", {"type": "object"})}
    own = Path("/openapi.json", openapi, "This document.", answers=told)
    return [own]


def document(routes: Sequence[Route]) -> Mapping[str, JSON]:
    """The OpenAPI document of these routes; those that are no `Path` are not for programs."""
    paths: dict[str, dict[str, JSON]] = {}
    for route in routes:
        if isinstance(route, Path):
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "amqpgate admin interface",
            "version": __version__,
            "description": "A change (POST) needs the bearer token or, where no token is set, the header "
            "`X-Amqpgate: 1` or a body of application/json.",
        },
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": paths,
    }


def _operation(path: Path) -> JSON:
    answers = dict(path.answers)
    if not path.is_open:
        answers.setdefault(401, ResponseDoc("The token is missing, or wrong."))
    if path.method != "GET":
        answers.setdefault(403, ResponseDoc("A web page could have sent this."))
    answers.setdefault(421, ResponseDoc("The address is on loopback, and Host names something else."))
    words = path.path.replace("{", "").replace("}", "").strip("/").split("/")
    in_path = [part[1:-1] for part in path.path.split("/") if part.startswith("{")]
    operation: dict[str, JSON] = {
        "summary": path.about,
        "operationId": "-".join((path.method.lower(), *words)),
        "security": [] if path.is_open else [{"token": []}, {}],
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
                for name in in_path
            ),
            *(
                {"name": one.name, "in": "query", "description": one.about, "schema": one.schema}
                for one in path.parameters
            ),
        ],
        "responses": {
            str(status): {"description": told.about, "content": {told.media: {"schema": told.schema}}}
            for status, told in sorted(answers.items())
        },
    }
    if path.body is not None:
        operation["requestBody"] = {
            "required": "required" in path.body,
            "content": {"application/json": {"schema": {**path.body, "additionalProperties": False}}},
        }
    return operation
