"""One path of the admin interface, with what the OpenAPI document says of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate.telemetry.answers import JSON
from amqpgate.values import frozen


@frozen
class Parameter:
    """A parameter in the query."""

    name: str
    about: str
    #: JSON Schema.
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: {"type": "string"})


@frozen
class ResponseDoc:
    """One answer, by its status."""

    about: str
    media: str = "text/plain"
    #: JSON Schema, of application/json.
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: {"type": "string"})


def json_answer(about: str, schema: Mapping[str, JSON]) -> ResponseDoc:
    return ResponseDoc(about, "application/json", schema)


class Path(Route):
    """A route, documented."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[[Request], Awaitable[Response]],
        about: str,
        *,
        method: str = "GET",
        answers: Mapping[int, ResponseDoc] | None = None,
        parameters: Sequence[Parameter] = (),
        body: Mapping[str, JSON] | None = None,
        is_open: bool = False,
    ) -> None:
        """``body`` is a JSON Schema; ``is_open``: no token is needed."""
        super().__init__(path, endpoint, methods=[method])
        self.about, self.method, self.is_open = about, method, is_open
        self.answers, self.parameters, self.body = answers or {200: ResponseDoc(about)}, parameters, body
