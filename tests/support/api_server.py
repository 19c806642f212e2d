"""A stand-in for an API server of Kubernetes: objects with versions, pages, watches, and what goes wrong.

It has what the operator relies on: optimistic concurrency (409), pages, watches from a version with
bookmarks and 410 Gone, the status as a subresource, merge patches, server-side apply with
one owner for each key of ``data``. It has no schemas, no admission and no RBAC: those are tested on the
real one (``tests/interop/test_operator.py``).
"""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from amqpgate.admin.door import Door
from amqpgate.admin.framework import Framework
from amqpgate.config import Address

Thing = dict[str, Any]


@attrs.define(eq=False)
class ApiServer:
    """What is stored, by the path of its collection and by name."""

    url: str = ""
    version: int = 100
    stored: dict[str, dict[str, Thing]] = attrs.field(factory=dict)
    #: (version, type, collection, object), for watches.
    log: list[tuple[int, str, str, Thing]] = attrs.field(factory=list)
    #: Versions before this one are gone.
    compacted: int = 0
    #: Who wrote which key of data, by collection and name.
    owners: dict[tuple[str, str], dict[str, str]] = attrs.field(factory=dict)
    #: Requests so far, and those that were answered with an error: method, path.
    asked: list[tuple[str, str]] = attrs.field(factory=list)
    #: What to answer instead, by a word in the path: a response, or "hang".
    instead: dict[str, Response | str] = attrs.field(factory=dict)
    tokens: set[str] = attrs.field(factory=set)
    _news: trio.Condition = attrs.field(factory=trio.Condition)
    _breaks: int = 0

    # -- what a test does ---------------------------------------------------------------------------

    async def put(self, collection: str, thing: Thing) -> Thing:
        """As `kubectl apply` does it: new, or with another spec and generation."""
        thing = copy.deepcopy(thing)
        name = thing["metadata"]["name"]
        old = self.stored.setdefault(collection, {}).get(name)
        metadata = thing["metadata"]
        metadata["namespace"] = collection.split("/namespaces/")[1].split("/")[0]
        metadata["uid"] = old["metadata"]["uid"] if old else f"uid-{self.version}"
        metadata["creationTimestamp"] = (
            old["metadata"]["creationTimestamp"] if old else f"2026-11-29T00:{self.version // 60 % 60:02}:00Z"
        )
        metadata["generation"] = old["metadata"]["generation"] + 1 if old else 1
        if old and "status" in old:
            thing["status"] = old["status"]
        return await self._store("MODIFIED" if old else "ADDED", collection, thing)

    async def delete(self, collection: str, name: str) -> None:
        """It is gone."""
        thing = self.stored[collection].pop(name)
        self.owners.pop((collection, name), None)
        await self._tell("DELETED", collection, thing)

    async def bookmark(self) -> None:
        """Tell watches a version at which nothing changed."""
        self.version += 1
        await self._tell("BOOKMARK", "", {"metadata": {"resourceVersion": str(self.version)}}, counts=False)

    async def break_watches(self, *, compact: bool = False) -> None:
        """All watches end in the middle of a line; with ``compact`` old versions are gone, too."""
        if compact:
            self.compacted = self.version
        self._breaks += 1
        async with self._news:
            self._news.notify_all()

    def get(self, collection: str, name: str) -> Thing:
        """As it is."""
        return self.stored[collection][name]

    async def until(self, holds: Any, seconds: float = 60) -> None:
        """Wait until something holds of what is stored."""
        with trio.fail_after(seconds):
            while not holds():
                async with self._news:
                    with trio.move_on_after(0.2):
                        await self._news.wait()

    # -- storage ------------------------------------------------------------------------------------

    async def _store(self, kind: str, collection: str, thing: Thing) -> Thing:
        self.stored.setdefault(collection, {})[thing["metadata"]["name"]] = thing
        await self._tell(kind, collection, thing)
        return thing

    async def _tell(self, kind: str, collection: str, thing: Thing, *, counts: bool = True) -> None:
        if counts:
            self.version += 1
            thing["metadata"]["resourceVersion"] = str(self.version)
        self.log.append((self.version, kind, collection, copy.deepcopy(thing)))
        async with self._news:
            self._news.notify_all()

    # -- HTTP ---------------------------------------------------------------------------------------

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        self.asked.append((request.method, path))
        for word, response in self.instead.items():
            if word in f"{request.method} {path}?{request.url.query}":
                if isinstance(response, Response):
                    return response
                await trio.sleep_forever()
        if self.tokens and request.headers.get("authorization", "")[7:] not in self.tokens:
            return _status(401, "Unauthorized", "no such token")
        parts = path.split("/")
        at = parts.index("namespaces") + 2
        collection, rest = "/".join(parts[: at + 1]), parts[at + 1 :]
        query = request.query_params
        if not rest and request.method == "GET":
            return self._watch(collection, query) if query.get("watch") else self._list(collection, request)
        body = json.loads(await request.body() or b"null")
        if not rest:
            if body["metadata"]["name"] in self.stored.get(collection, {}):
                return _status(409, "AlreadyExists", "exists")
            body["metadata"].setdefault("uid", f"uid-{self.version}")
            return JSONResponse(await self._store("ADDED", collection, body), 201)
        thing = self.stored.get(collection, {}).get(rest[0])
        is_apply = "apply-patch" in request.headers.get("content-type", "")
        if thing is None and not is_apply:
            return _status(404, "NotFound", f"{rest[0]} not found")
        if request.method == "GET":
            return JSONResponse(thing)
        if request.method == "PUT":
            assert thing is not None
            if body["metadata"].get("resourceVersion") != thing["metadata"]["resourceVersion"]:
                return _status(409, "Conflict", "the object has been modified")
            return JSONResponse(await self._store("MODIFIED", collection, body))
        if is_apply:
            return JSONResponse(await self._apply(collection, rest[0], thing, body, query["fieldManager"]))
        assert thing is not None
        new = copy.deepcopy(thing)
        _merge(new, {"status": body.get("status")} if rest[1:] == ["status"] else body)
        if new == thing:
            return JSONResponse(thing)
        return JSONResponse(await self._store("MODIFIED", collection, new))

    async def _apply(
        self, collection: str, name: str, thing: Thing | None, body: Thing, manager: str
    ) -> Thing:
        owners = self.owners.setdefault((collection, name), {})
        new = copy.deepcopy(thing) if thing else {**body, "data": {}}
        for key in [key for key, owner in owners.items() if owner == manager and key not in body["data"]]:
            del owners[key]
            new["data"].pop(key, None)
        new["data"] = {**new.get("data", {}), **body["data"]}
        new["metadata"] = {**new["metadata"], **body["metadata"]}
        owners.update(dict.fromkeys(body["data"], manager))
        if new == thing:
            return new
        return await self._store("MODIFIED" if thing else "ADDED", collection, new)

    def _list(self, collection: str, request: Request) -> Response:
        query = request.query_params
        names = sorted(self.stored.get(collection, {}))
        selector = query.get("fieldSelector", "").partition("=")[2]
        names = [name for name in names if not selector or name == selector]
        begin = int(query.get("continue") or 0)
        end = begin + int(query.get("limit") or len(names) or 1)
        metadata = {"resourceVersion": str(self.version)}
        if end < len(names):
            metadata["continue"] = str(end)
        if "as=Table" in request.headers["accept"]:
            rows = [{"cells": [name], "object": None} for name in names[begin:end]]
            return JSONResponse({"kind": "Table", "metadata": metadata, "rows": rows})
        texts = [self._text(self.stored[collection][name]) for name in names[begin:end]]
        text = f'{{"kind":"ThingList","metadata":{json.dumps(metadata)},"items":[{",".join(texts)}]}}'
        return Response(text, media_type="application/json")

    def _text(self, thing: Thing) -> str:
        # What is too deep for Python's own encoder is put in as text.
        raw = thing["metadata"].get("annotations", {}).get("test/deep")
        text = json.dumps(thing)
        return text.replace('"DEEP"', "[" * int(raw) + "]" * int(raw)) if raw else text

    def _watch(self, collection: str, query: Any) -> Response:
        since = int(query["resourceVersion"])
        if since < self.compacted:
            return _status(410, "Expired", "too old resource version")
        selector = query.get("fieldSelector", "").partition("=")[2]
        breaks = self._breaks

        async def lines(send: Callable[[bytes], Awaitable[None]]) -> None:
            # What has been told is found by its place: versions repeat for bookmarks.
            place = next((i for i, one in enumerate(self.log) if one[0] > since), len(self.log))
            with trio.move_on_after(float(query["timeoutSeconds"])):
                while self._breaks == breaks:
                    for _, kind, where, thing in self.log[place:]:
                        place += 1
                        is_mine = where == collection and selector in ("", thing["metadata"].get("name"))
                        if is_mine or kind == "BOOKMARK":
                            await send(f'{{"type":"{kind}","object":{self._text(thing)}}}\n'.encode())
                    async with self._news:
                        if place == len(self.log) and self._breaks == breaks:
                            await self._news.wait()
                await send(b'{"type":"MODI')

        return _Lines(lines)


class _Lines(Response):
    """A body that is sent while it is made, until the peer goes."""

    def __init__(self, lines: Callable[[Callable[[bytes], Awaitable[None]]], Awaitable[None]]) -> None:
        super().__init__(media_type="application/json")
        del self.headers["content-length"]
        self.lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})

        async def more(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        async with trio.open_nursery() as nursery:

            async def until_gone() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                nursery.cancel_scope.cancel()

            nursery.start_soon(until_gone)
            await self.lines(more)
            await send({"type": "http.response.body", "body": b""})
            nursery.cancel_scope.cancel()


def _merge(into: Thing, patch: Thing) -> None:
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif isinstance(value, dict):
            into[key] = {}
            _merge(into[key], value)
        else:
            into[key] = value


def _status(code: int, reason: str, message: str) -> Response:
    return JSONResponse({"kind": "Status", "reason": reason, "message": message, "code": code}, code)


@asynccontextmanager
async def api_server() -> AsyncIterator[ApiServer]:
    """One that answers at its ``url``."""
    server = ApiServer()
    methods = ["GET", "POST", "PUT", "PATCH"]
    framework = Framework(Starlette(routes=[Route("/{path:path}", server.answer, methods=methods)]), 600)

    async def talk(stream: trio.abc.Stream, on_moved: Any) -> None:
        await framework.serve(stream, b"", on_moved)

    async with trio.open_nursery() as nursery:
        door = Door("the stand-in", talk, 256)
        server.url = await nursery.start(door.serve, Address("127.0.0.1", 0), None, trio.sleep_forever, 0)
        try:
            yield server
        finally:
            nursery.cancel_scope.cancel()
