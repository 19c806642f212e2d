"""What is asked and answered without the web framework.

That is what machines ask of every gateway, all the time or at its end: the `probes`, and the `lifecycle`.
`plain` reads it and writes the answers; `endpoint_paths` has the same for whoever asks in another way.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias, cast

from amqpgate.admin.subject import Refused
from amqpgate.telemetry.answers import JSON
from amqpgate.values import frozen

TEXT: Final = "text/plain; charset=utf-8"


@frozen
class Asked:
    """A request for an endpoint."""

    #: Who asks may know everything.
    is_trusted: bool
    body: bytes = b""
    #: What may come back, as Accept has it.
    accept: str = ""


@frozen
class EndpointAnswer:
    """The answer, with its media type."""

    status: int
    body: bytes
    media: str = TEXT
    #: Done when it has been sent.
    after: Callable[[], None] | None = None


#: Raises ``Refused``.
Endpoint: TypeAlias = Callable[[Asked], Awaitable[EndpointAnswer]]
#: By method and path.
Endpoints: TypeAlias = Mapping[tuple[str, str], Endpoint]


def object_in(body: bytes, *known: str) -> Mapping[str, JSON]:
    """The JSON object in a body, with these keys at most; an empty one where there is no body.

    Raises ``Refused``.
    """
    if not body:
        return {}
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON") from None
    if not isinstance(said, dict):
        raise Refused(400, "the body is not a JSON object")
    if unknown := sorted(said.keys() - set(known)):
        raise Refused(400, f"no such key: {unknown[0]!a}")
    return cast("Mapping[str, JSON]", said)
