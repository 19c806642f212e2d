"""``/``: the page, and what only it asks for: ``/overview``, ``/graph`` and ``/explain``.

The page's files are read once. They hold nothing secret, so they need no token: the page asks for it, and
bears it with all that it asks. Nothing is loaded from elsewhere, no script or style stands in the markup, and
no text can become markup (Trusted Types): names come from clients.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Final, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from amqpgate import __version__
from amqpgate.admin.answering import answer, object_of
from amqpgate.admin.negotiating import is_known, takes_gzip
from amqpgate.admin.paths import Path, ResponseDoc, json_answer
from amqpgate.admin.schemas import COUNT, NUMBER, TEXT, TRUTH, Schema, listed, of
from amqpgate.admin.subject import AdminSubject, Refused
from amqpgate.errors import ConfigError
from amqpgate.gateway.observers.stats.edges import MOST_KEYS
from amqpgate.operator.brokers import summed
from amqpgate.operator.explain import request_of
from amqpgate.operator.graph import MOST
from amqpgate.policy import OPERATIONS
from amqpgate.telemetry.answers import JSON, Answers
from amqpgate.telemetry.time_slices import TimeSlices

_MEDIA: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: Of every file (W3C, Content Security Policy Level 3).
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Another release has other files under the same names.
    "cache-control": "no-cache",
}
_ANY: Final[Schema] = {"type": "object"}
_TRAFFIC: Final = of(messages=COUNT, bytes=COUNT)
#: What else a request has is a matter of its operation.
_REQUEST: Final[Schema] = {
    "type": "object",
    "required": ["as", "op"],
    "properties": {
        "as": {"type": "object", "required": ["user"], "properties": {"user": TEXT, "vhost": TEXT}},
        "op": {"enum": list(OPERATIONS)},
    },
}
#: Rows that workers tell of where sessions go, and what is added up of them.
_ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "brokers": ("sessions", "published", "delivered"),
    "pools": ("sessions", "connections"),
    "mirrors": (),
}
#: Of an edge.
_LISTS: Final = ("keys", "upstream_users")
_OVERVIEW: Final = of(
    at=NUMBER,
    version=TEXT,
    ready=TRUTH,
    workers=COUNT,
    sessions=COUNT,
    connections=of(open=COUNT, most=COUNT),
    channels=COUNT,
    published=_TRAFFIC,
    delivered=_TRAFFIC,
    refused=COUNT,
    buffered=of(client=COUNT, upstream=COUNT),
)
_NODE: Final = of(kind=TEXT, name={"type": ["string", "null"]})
_GRAPH: Final = of(
    edges=listed(
        of(
            kind=TEXT,
            vhost=TEXT,
            source=_NODE,
            target=_NODE,
            messages=COUNT,
            bytes=COUNT,
            keys=listed(TEXT),
            upstream_users=listed(TEXT),
        )
    ),
    left_out=COUNT,
    unseen=of(sessions=COUNT, messages=COUNT),
    over=of(sessions=COUNT, since=NUMBER),
    brokers=listed(of(upstream=TEXT, vhost=TEXT, sessions=COUNT, published=COUNT, delivered=COUNT)),
    pools=listed(of(upstream=TEXT, vhost=TEXT, user=TEXT, sessions=COUNT, connections=COUNT)),
    mirrors=listed(of(route=TEXT, upstreams=listed(TEXT), mirror=TEXT)),
)
_EXPLANATION: Final = of(
    digest=TEXT,
    request=TEXT,
    verdict=TEXT,
    by=TEXT,
    reason=TEXT,
    steps=listed(_ANY),
    policies=listed(_ANY),
    mirror={"type": ["string", "null"]},
    login={"type": ["string", "null"]},
)


def page_handlers(subject: AdminSubject) -> list[Route]:
    """The page, its files, and its questions."""

    async def overview(_request: Request) -> Response:
        return await answer(_overview(subject, (await subject.call("overview")).complete()))

    async def graph(_request: Request) -> Response:
        return await answer(await _graph((await subject.call("graph")).complete()))

    async def operations(_request: Request) -> Response:
        return await answer({"operations": _OPERATIONS})

    async def explain(request: Request) -> Response:
        asked = await _asked(request)
        answers = (await subject.call("explain", asked)).complete()
        # Which have other policies for the time of a reload does not matter: the digest says whose it is.
        return await answer(answers[min(answers)])

    return [
        *_files(),
        Path(
            "/overview",
            overview,
            "What has passed since the start, and what waits.",
            answers=_json(_OVERVIEW),
        ),
        Path("/graph", graph, "Who sends what to whom, as seen here.", answers=_json(_GRAPH)),
        Path(
            "/explain",
            operations,
            "Operations, and what a request for each has.",
            answers=_json(of(operations=_ANY)),
        ),
        Path(
            "/explain",
            explain,
            "What the policies in force answer to a request, and why.",
            method="POST",
            body={
                "type": "object",
                "required": ["request"],
                "properties": {"request": _REQUEST, "shadow": TRUTH},
            },
            answers={**_json(_EXPLANATION), 400: ResponseDoc("What is wrong with the request.")},
        ),
    ]


def _json(schema: Schema) -> dict[int, ResponseDoc]:
    return {200: json_answer("As said.", schema), 503: ResponseDoc("Not every worker has answered.")}


#: Operation -> keys of its arguments, as a request has them.
_OPERATIONS: Final[Mapping[str, JSON]] = {
    name: ["routingKey" if attribute == "routing_key" else attribute for attribute in kind.attributes]
    for name, kind in OPERATIONS.items()
}


def _files() -> list[Route]:
    found = []
    for below, folder in (("", "page"), ("vendor/", "page/vendor")):
        for file in files("amqpgate.admin").joinpath(folder).iterdir():
            media = _MEDIA.get(file.name.rpartition(".")[2])
            if media is not None:
                path = "/" if file.name == "index.html" else f"/page/{below}{file.name}"
                found.append(_file(path, file.read_bytes(), media))
    return found


def _file(path: str, content: bytes, media: str) -> Route:
    # Of the file, packed or not: a strong one would be of one of them (RFC 9110, section 8.8.3.3).
    tag = f'W/"{sha256(content).hexdigest()[:32]}"'
    headers = {**_HEADERS, "etag": tag, "vary": "accept-encoding"}
    small = gzip.compress(content, mtime=0)

    async def give(request: Request) -> Response:
        if is_known(tag, request.headers.getlist("if-none-match")):
            return Response(status_code=304, headers=headers)
        if takes_gzip(request.headers.getlist("accept-encoding")):
            return Response(small, headers={**headers, "content-type": media, "content-encoding": "gzip"})
        return Response(content, headers={**headers, "content-type": media})

    about = "The page." if path == "/" else "A file of the page."
    return Path(path, give, about, answers={200: ResponseDoc(about, media.partition(";")[0])}, is_open=True)


async def _asked(request: Request) -> dict[str, JSON]:
    """What is to be explained. Raises ``Refused``."""
    said = await object_of(request, "request", "shadow")
    asked = said.get("request")
    if not isinstance(asked, dict):
        raise Refused(400, 'expected {"request": {"as": {"user": ...}, "op": ...}}')
    try:
        request_of(asked)
    except ConfigError as error:
        raise Refused(400, error.message) from None
    except RecursionError:
        raise Refused(400, "the request is too deep") from None
    return {"request": asked, "shadow": said.get("shadow") is True}


def _overview(subject: AdminSubject, answers: Answers) -> JSON:
    told = list(answers.values())
    return {
        "at": time.time(),
        "version": __version__,
        "ready": subject.ready,
        "workers": len(told),
        **cast("dict[str, JSON]", _sum(told)),
    }


def _sum(values: list[JSON]) -> JSON:
    """Numbers of the same place added up."""
    first = values[0]
    if isinstance(first, Mapping):
        return {key: _sum([cast("Mapping[str, JSON]", value)[key] for value in values]) for key in first}
    return sum(cast("list[int]", values))


def _rows(told: JSON, name: str) -> list[dict[str, JSON]]:
    return cast("dict[str, list[dict[str, JSON]]]", told)[name]


async def _graph(answers: Answers) -> JSON:
    """The workers' edges, those of the same kind between the same two added up."""
    edges: dict[str, dict[str, JSON]] = {}
    left_out, unseen, over, turns = 0, [], [], TimeSlices()
    for told in cast("list[dict[str, JSON]]", list(answers.values())):
        left_out += cast("int", told["left_out"])
        unseen.append(told["unseen"])
        over.append(cast("dict[str, float]", told["over"]))
        for edge in cast("list[dict[str, JSON]]", told["edges"]):
            place = json.dumps([edge[key] for key in ("kind", "vhost", "source", "target")])
            known = edges.setdefault(
                place, {**edge, "messages": 0, "bytes": 0, "keys": [], "upstream_users": []}
            )
            for key in ("messages", "bytes"):
                known[key] = cast("int", known[key]) + cast("int", edge[key])
            for key in _LISTS:
                texts = dict.fromkeys([*cast("list[str]", known[key]), *cast("list[str]", edge[key])])
                known[key] = list(texts)[:MOST_KEYS]
            await turns.next()
    found = sorted(edges.values(), key=lambda edge: -cast("int", edge["messages"]))
    return {
        "edges": found[:MOST],
        "left_out": left_out + len(found[MOST:]),
        "unseen": _sum(unseen),
        "over": {
            "sessions": sum(one["sessions"] for one in over),
            "since": min((one["since"] for one in over), default=0.0),
        },
        **{
            name: summed([row for told in answers.values() for row in _rows(told, name)], *counts)
            for name, counts in _ROWS.items()
        },
    }
