"""The resources of one kind in one namespace, as they are now, each judged by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import attrs
import trio

from amqpgate.logs import RECURRING
from amqpgate.resources.definitions import ResourceKind
from amqpgate.resources.documents import Json, RefusedResource, Resource, ResourceKey
from amqpgate.resources.in_force import Found, ResourceJudge
from amqpgate.resources.settings import ObjectName

log = logging.getLogger(__name__)

#: Resources of one kind and namespace that are looked at. More are a mistake, or an attack on this memory.
MOST_KEPT: Final = 5000


@attrs.define
class Kept:
    """A resource, and what was told of it last."""

    found: Found
    status: Json


@attrs.define(eq=False)
class Shelf:
    """Those of one kind and namespace."""

    kind: ResourceKind
    namespace: str
    judge: ResourceJudge
    #: Called whenever it is another one than before.
    on_change: Callable[[], None]
    kept: dict[str, Kept] = attrs.field(factory=dict)
    #: Whether all there are have been listed once.
    is_listed: bool = False
    _listing: dict[str, Kept] = attrs.field(factory=dict, init=False)

    @property
    def path(self) -> str:
        """Where the API server has them."""
        return self.kind.path(self.namespace)

    async def take_page(self, objects: list[Resource]) -> None:
        """Objects of a list that is being read."""
        # A page of large resources takes a while.
        for one in await trio.to_thread.run_sync(lambda: [self._judged(thing) for thing in objects]):
            if one is not None:
                self._put(self._listing, one)

    def take_unreadable(self, name: str) -> None:
        """One of the list that nothing but its name is known of."""
        if not self._is_name(name):
            return
        key = ResourceKey(self.kind.name, self.namespace, name)
        refused = RefusedResource(
            "Invalid", "the resource cannot be read: it is nested too deeply, or too large"
        )
        self._put(self._listing, Kept(Found(key, "", 0, "", refused), None))

    def listed(self) -> None:
        """The list is whole: what was not in it is gone."""
        self.kept, self._listing = self._listing, {}
        self.is_listed = True
        self.on_change()

    async def take(self, resource: Resource) -> None:
        """It is new, or another one than before."""
        before = self.kept.get(_name_of(resource))
        now = _metadata(resource).get("uid"), _generation_of(resource)
        if before is not None and now == (before.found.uid, before.found.generation) and now[1]:
            # Its status or its labels: what was judged is what it was.
            before.status = resource.get("status")
            self.on_change()
            return
        one = await trio.to_thread.run_sync(self._judged, resource)
        if one is not None:
            self._put(self.kept, one)
            self.on_change()

    def lose(self, resource: Resource) -> None:
        """It is gone."""
        if self.kept.pop(_name_of(resource), None) is not None:
            self.on_change()

    def _put(self, into: dict[str, Kept], one: Kept) -> None:
        name = one.found.key.name
        # What is known already stays known, so that the newest go without.
        if len(into) >= MOST_KEPT and name not in into and name not in self.kept:
            log.error(
                "%s: there are more than %d; %s is not read", self.path, MOST_KEPT, name, extra=RECURRING
            )
            return
        into[name] = one

    def _is_name(self, name: str) -> bool:
        """Whether an object may have this name: it becomes a part of paths, and of a file's name."""
        try:
            ObjectName.parse(name)
        except ValueError as error:
            log.error("%s: %s is not read: %s", self.path, ascii(name[:63]), error, extra=RECURRING)
            return False
        return True

    def _judged(self, resource: Resource) -> Kept | None:
        name, metadata = _name_of(resource), _metadata(resource)
        if not self._is_name(name):
            return None
        key = ResourceKey(self.kind.name, self.namespace, name)
        generation = _generation_of(resource)
        judged = self.judge.judged(key, resource, generation)
        created = str(metadata.get("creationTimestamp") or "")
        return Kept(
            Found(key, str(metadata.get("uid") or ""), generation, created, judged), resource.get("status")
        )


def _metadata(resource: Resource) -> Resource:
    metadata = resource.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _name_of(resource: Resource) -> str:
    name = _metadata(resource).get("name")
    return name if isinstance(name, str) else ""


def _generation_of(resource: Resource) -> int:
    generation = _metadata(resource).get("generation")
    return generation if isinstance(generation, int) else 0
