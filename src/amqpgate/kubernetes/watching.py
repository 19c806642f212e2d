"""The objects of one path, listed and then watched: what is there, as far as the API server tells.

::

    listing ── all pages ──▶ watching ── an end, or a break ──▶ watching, from the last version seen
       ▲                        │
       └── 410, an error, or what cannot be read ◀──┘

Where nobody answers it is tried again, later each time. Until a whole list has been read nothing is
reported as gone.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import attrs
import trio

from amqpgate.kubernetes.api import TABLE, Api, ApiError, UnreadableAnswerError, read_json
from amqpgate.logs import RECURRING
from amqpgate.resources.documents import Json, Resource

log = logging.getLogger(__name__)

#: Objects of a page. Each has 1.5 MB at most, 2 KB as a rule.
_PAGE: Final = 100
#: Seconds after which the server ends a watch, and what is added before it is taken to hang.
_WATCH: Final = 290
_GRACE: Final = 30
#: Seconds until the next try, the first and the longest.
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
#: Seconds that a watch lasts that is not taken for a failure.
_LASTING: Final = 5.0

_GONE: Final = 410


class Keeper(Protocol):
    """Who keeps what is there."""

    async def take_page(self, objects: list[Resource]) -> None:
        """Objects of a list that is being read."""

    def take_unreadable(self, name: str) -> None:
        """One of the list that nothing but its name is known of."""

    def listed(self) -> None:
        """The list is whole: what was not in it is gone."""

    async def take(self, resource: Resource) -> None:
        """It is new, or another one than before."""

    def lose(self, resource: Resource) -> None:
        """It is gone."""


@attrs.define
class Backoff:
    """How long to wait before the next try: twice as long each time, and by chance up to a half less."""

    first: float = _FIRST_PAUSE
    longest: float = _LONGEST_PAUSE
    _next: float = attrs.field(default=0.0, init=False)

    def succeeded(self) -> None:
        """Begin anew."""
        self._next = 0.0

    def pause(self) -> float:
        """Seconds."""
        self._next = min(self.longest, max(self.first, self._next * 2))
        return self._next * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


class _ExpiredError(Exception):
    """The server no longer has the version to go on from."""


@attrs.define(eq=False)
class Watching:
    """One path."""

    api: Api
    path: str
    keeper: Keeper
    #: Told whether the server answers as it should.
    on_state: Callable[[str, bool], None]
    selector: str = ""
    pause: Callable[[float], Awaitable[None]] = trio.sleep
    _version: str = attrs.field(default="", init=False)
    _backoff: Backoff = attrs.field(factory=Backoff, init=False)

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                if not self._version:
                    await self._list()
                self.on_state(self.path, True)
                began = trio.current_time()
                was = self._version
                await self._watch()
                if self._version != was or trio.current_time() - began >= _LASTING:
                    self._backoff.succeeded()
                    continue
            except _ExpiredError:
                self._version = ""
            except ApiError as error:
                if error.status or isinstance(error, UnreadableAnswerError):
                    self._version = ""
                self.on_state(self.path, False)
                log.warning("%s", error, extra=RECURRING)
            await self.pause(self._backoff.pause())

    # -- lists ------------------------------------------------------------------------------------

    async def _list(self) -> None:
        following, limit = "", _PAGE
        while True:
            try:
                page = await self.api.get(self.path, **self._query(limit, following))
                objects, version, following_next = _page_of(page, "items")
            except UnreadableAnswerError:
                if limit > 1:
                    limit = 1
                    continue
                objects = []
                name, version, following_next = await self._unreadable(following)
                self.keeper.take_unreadable(name)
            await self.keeper.take_page(objects)
            # One page that could not be read is no reason to go on in small steps.
            limit = min(_PAGE, limit * 4)
            following = following_next
            if not following:
                break
        self.keeper.listed()
        self._version = version

    async def _unreadable(self, following: str) -> tuple[str, str, str]:
        """The name of the one object that comes next, the list's version, and what follows."""
        table = await self.api.get(self.path, accept=TABLE, includeObject="None", **self._query(1, following))
        rows, version, following_next = _page_of(table, "rows")
        cells = rows[0].get("cells") if rows else None
        if not isinstance(cells, list) or not cells or not isinstance(cells[0], str):
            raise ApiError(f"{self.path}: an object that cannot be read has no name")
        return cells[0], version, following_next

    def _query(self, limit: int, following: str) -> dict[str, str]:
        query = {"limit": str(limit)}
        if following:
            query["continue"] = following
        if self.selector:
            query["fieldSelector"] = self.selector
        return query

    # -- watches ----------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Until the server ends it. Raises `ApiError`, or `_ExpiredError`."""
        seconds = _WATCH + random.randrange(20)  # noqa: S311 - so that not all begin anew at once
        query = {"resourceVersion": self._version}
        if self.selector:
            query["fieldSelector"] = self.selector
        with trio.move_on_after(seconds + _GRACE):
            async with self.api.watch(self.path, seconds=seconds, **query) as lines:
                async for line in lines:
                    await self._take(line)

    async def _take(self, line: bytes) -> None:
        told = read_json(line)
        kind, thing = told.get("type"), told.get("object")
        if not isinstance(thing, dict):
            raise UnreadableAnswerError("a watch tells of no object")
        if kind == "ERROR":
            if thing.get("code") == _GONE:
                raise _ExpiredError
            raise ApiError(f"{self.path}: the watch ends: {str(thing.get('message'))[:300]}", 500)
        if kind == "DELETED":
            self.keeper.lose(thing)
        elif kind in ("ADDED", "MODIFIED"):
            await self.keeper.take(thing)
        elif kind != "BOOKMARK":
            raise UnreadableAnswerError("a watch tells of what is not known")
        self._version = _version_of(thing)


def _page_of(page: Resource, key: str) -> tuple[list[Resource], str, str]:
    """The objects of a page, the version of the list, and what names the next page."""
    kind, items, metadata = page.get("kind"), page.get(key), page.get("metadata")
    is_list = isinstance(kind, str) and (kind.endswith("List") or kind == "Table")
    if not is_list or not isinstance(items, list) or not isinstance(metadata, dict):
        # Nothing may be taken for an empty list: what is in force would go.
        raise ApiError("the API server answers with what is no list", 500)
    objects = [item for item in items if isinstance(item, dict)]
    if len(objects) < len(items):
        raise ApiError("the API server lists what is no object", 500)
    return objects, _version_of(page), str(metadata.get("continue") or "")


def _version_of(thing: Resource) -> str:
    metadata = thing.get("metadata")
    version: Json = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    if not isinstance(version, str) or not version:
        raise UnreadableAnswerError("an object of the API server has no version")
    return version
