"""Keeps one ConfigMap as the resources say, and tells each resource what became of it.

Whatever changes wakes it. It waits a moment for more, judges all together, writes the ConfigMap if that is
another one, and then the statuses that say something new. What could not be written is tried again, later
each time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import attrs
import trio

from amqpgate.errors import ConfigError
from amqpgate.kubernetes.api import Api, ApiError
from amqpgate.kubernetes.config_map import PolicyMap
from amqpgate.kubernetes.events import ResourceEvents
from amqpgate.kubernetes.metrics import OperatorMetrics
from amqpgate.kubernetes.shelf import Kept, Shelf
from amqpgate.kubernetes.watching import Backoff, Watching
from amqpgate.logs import RECURRING
from amqpgate.resources.definitions import GROUP, RESOURCE_KINDS, VERSION
from amqpgate.resources.documents import Resource
from amqpgate.resources.in_force import Found, ResourceJudge, ResourcesInForce, SettledResources
from amqpgate.resources.settings import Operator
from amqpgate.resources.status import is_said, is_turned, status_of

log = logging.getLogger(__name__)

#: Seconds for more changes to come, before all are judged together.
SETTLING: Final = 0.5
#: Statuses written at once.
_AT_ONCE: Final = 4
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


@attrs.define(eq=False)
class Reconciling:
    """One operator at work."""

    settings: Operator
    namespace: str
    api: Api
    identity: str
    metrics: OperatorMetrics
    judge: ResourceJudge = attrs.field(init=False)
    shelves: list[Shelf] = attrs.field(init=False)
    map: PolicyMap = attrs.field(init=False)
    events: ResourceEvents = attrs.field(init=False)
    _in_force: ResourcesInForce | None = attrs.field(default=None, init=False)
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self.judge = ResourceJudge.of(self.settings, self.namespace)
        self.shelves = [
            Shelf(kind, namespace, self.judge, self._wake)
            for namespace in self.judge.namespaces
            for kind in RESOURCE_KINDS
            if namespace == self.namespace or kind.name in self.judge.tenants[namespace].kinds
        ]
        name = str(self.settings.config_map)
        self.map = PolicyMap(self.api, self.namespace, name, self.settings.owner, self._wake)
        self.events = ResourceEvents(self.api, self.identity, self.metrics)

    @property
    def is_ready(self) -> bool:
        """Whether all has been listed, and is written."""
        return self._in_force is not None and all(shelf.is_listed for shelf in self.shelves)

    async def run(self) -> None:
        """Until it is cancelled."""
        self.metrics.leading.set(1)
        try:
            async with trio.open_nursery() as nursery:
                selector = f"metadata.name={self.map.name}"
                watch = Watching(self.api, self.map.path, self.map, self._told, selector)
                nursery.start_soon(watch.run)
                for shelf in self.shelves:
                    nursery.start_soon(Watching(self.api, shelf.path, shelf, self._told).run)
                await self._keep()
        finally:
            self.metrics.leading.set(0)

    def _wake(self) -> None:
        self._changed.set()

    def _told(self, path: str, is_well: bool) -> None:
        self.metrics.answering.labels(path).set(is_well)

    async def _keep(self) -> None:
        backoff = Backoff()
        while True:
            await self._changed.wait()
            await trio.sleep(SETTLING)
            self._changed = trio.Event()
            try:
                await self._once()
                backoff.succeeded()
            except ApiError as error:
                log.warning("%s", error, extra=RECURRING)
                await trio.sleep(backoff.pause())
                self._wake()

    # -- once -------------------------------------------------------------------------------------

    async def _once(self) -> None:
        """Raises `ApiError` where something could not be written."""
        if not self.map.is_listed:
            # What was in force is not known: nothing may be taken away.
            return
        if self._in_force is None:
            self._in_force = self.map.in_force()
        kept = list(self._kept())
        unlisted = {(shelf.kind.name, shelf.namespace) for shelf in self.shelves if not shelf.is_listed}
        if self.map.files is None and unlisted and not self._in_force.resources:
            # Gateways wait for the first ConfigMap: they do not begin with a part of what there is.
            return
        before, found = self._in_force, [one.found for one in kept]
        settled = await trio.to_thread.run_sync(self.judge.settle, before, found, unlisted)
        if self.map.files != settled.in_force.files:
            await self._write(settled.in_force)
        self._in_force = settled.in_force
        self._count(settled, found)
        await self._tell(settled, kept)

    def _kept(self) -> Iterator[Kept]:
        for shelf in self.shelves:
            yield from shelf.kept.values()

    async def _write(self, policies: ResourcesInForce) -> None:
        try:
            digest = await trio.to_thread.run_sync(lambda: policies.digest)
        except ConfigError as error:
            # Each is valid, and they go together: the mistake is the operator's own.
            self.metrics.failures.labels("policies").inc()
            log.error("what should be in force is not valid, and is not written: %s", error)
            raise ApiError(f"what should be in force is not valid: {error.message}") from None
        try:
            await self.map.write(policies.files, digest)
        except ApiError:
            self.metrics.failures.labels("policies").inc()
            raise
        self.metrics.writes.labels("policies").inc()
        log.info("ConfigMap %s: %d resources, digest %s", self.map.name, len(policies.resources), digest[:16])

    def _count(self, settled: SettledResources, found: Sequence[Found]) -> None:
        counts = {
            (kind.name, state): 0 for kind in RESOURCE_KINDS for state in ("accepted", "kept", "refused")
        }
        for one in found:
            is_held = one.key in settled.in_force.resources
            state = "accepted" if one.key not in settled.refused else "kept" if is_held else "refused"
            counts[one.key.kind, state] += 1
        for (kind, state), count in counts.items():
            self.metrics.resources.labels(kind, state).set(count)

    async def _tell(self, settled: SettledResources, kept: Sequence[Kept]) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        plurals = {kind.name: kind for kind in RESOURCE_KINDS}
        todo: list[tuple[Kept, str, Resource]] = []
        for one in kept:
            key = one.found.key
            refused, held = settled.refused.get(key), settled.in_force.resources.get(key)
            status = status_of(one.found.generation, refused, held, one.status, now)
            if not is_said(status, one.status):
                path = f"{plurals[key.kind].path(key.namespace)}/{key.name}/status"
                todo.append((one, path, status))
        errors: list[ApiError] = []
        queue = iter(todo)
        async with trio.open_nursery() as nursery:
            for _ in range(min(_AT_ONCE, len(todo))):
                nursery.start_soon(self._tell_some, queue, errors)
        if errors:
            raise errors[0]

    async def _tell_some(self, queue: Iterator[tuple[Kept, str, Resource]], errors: list[ApiError]) -> None:
        for one, path, status in queue:
            found = one.found
            said: Resource = {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": found.key.kind,
                "metadata": {"name": found.key.name, "namespace": found.key.namespace},
                "status": status,
            }
            # The watch may tell of it before the answer comes.
            turned = is_turned(status, one.status)
            try:
                told = await self.api.patch(path, said, fieldManager="amqpgate-operator")
            except ApiError as error:
                # It is gone meanwhile, or another one: the watch tells.
                if error.status not in (_NOT_FOUND, _CONFLICT):
                    self.metrics.failures.labels("status").inc()
                    errors.append(error)
                continue
            self.metrics.writes.labels("status").inc()
            if turned:
                await self._event(found, status)
            one.status = told.get("status")

    async def _event(self, found: Found, status: Resource) -> None:
        conditions = status["conditions"]
        assert isinstance(conditions, list)
        (condition,) = conditions
        assert isinstance(condition, dict)
        is_well = condition["status"] == "True"
        reason, message = str(condition["reason"]), str(condition["message"])
        if not is_well:
            log.warning("%s: refused: %s", found.key, reason)
        await self.events.tell(found, is_well=is_well, reason=reason, note=message)
