"""The Lease by which one of several operators works, and the others wait.

::

    waiting ── nobody holds it, or not renewed for its duration ──▶ holding ── renewed every few seconds ──┐
       ▲                                                              │  ▲────────────────────────────────┘
       └──────── not renewed in time, or another one holds it ◀───────┘

Times of others are not compared: a lease has run out when it has looked the same for as long as it lasts.
Who holds it stops working before the others may think so.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import attrs
import trio

from amqpgate.kubernetes.api import Api, ApiError
from amqpgate.logs import RECURRING
from amqpgate.resources.documents import Json, Resource

log = logging.getLogger(__name__)

#: Seconds: how long it lasts; until when it has to be renewed; between two tries.
DURATION: Final = 15
DEADLINE: Final = 10.0
EVERY: Final = 3.0

_CONFLICT: Final = 409
_NOT_FOUND: Final = 404


@attrs.define(eq=False)
class Leadership:
    """One operator's part in it."""

    api: Api
    namespace: str
    name: str
    identity: str
    pause: Callable[[float], Awaitable[None]] = trio.sleep
    #: How it looked, and since when it has looked so.
    _seen: tuple[Json, Json, Json] | None = attrs.field(default=None, init=False)
    _since: float = attrs.field(default=0.0, init=False)

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, work as long as it is held, and wait again; for ever."""
        while True:
            while not await self._try():
                await self.pause(EVERY)
            log.info("this operator leads, by the Lease %s/%s", self.namespace, self.name)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._hold, nursery.cancel_scope)
                    await work()
            finally:
                with trio.CancelScope(shield=True), trio.move_on_after(3):
                    await self._release()
            log.warning("this operator leads no longer")

    async def _hold(self, scope: trio.CancelScope) -> None:
        renewed = trio.current_time()
        while True:
            await self.pause(EVERY)
            # No answer is waited for so long that another one may lead.
            with trio.move_on_at(renewed + DEADLINE):
                if await self._try():
                    renewed = trio.current_time()
                    continue
            if self._is_others or trio.current_time() - renewed >= DEADLINE:
                scope.cancel()
                return

    @property
    def _is_others(self) -> bool:
        return self._seen is not None and self._seen[0] not in (self.identity, "", None)

    async def _try(self) -> bool:
        """Take it, or renew it. False where it is another's, or nobody answers."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        try:
            try:
                lease = await self.api.get(f"{path}/{self.name}")
            except ApiError as error:
                if error.status != _NOT_FOUND:
                    raise
                metadata: Resource = {"name": self.name, "namespace": self.namespace}
                await self.api.create(path, self._lease(metadata, {}))
                return True
            spec, metadata_now = lease.get("spec"), lease.get("metadata")
            spec = spec if isinstance(spec, dict) else {}
            self._look(spec)
            if self._is_others and trio.current_time() - self._since < DURATION:
                return False
            metadata_now = metadata_now if isinstance(metadata_now, dict) else {}
            # With the version that was seen: of two who try, one gets 409.
            await self.api.replace(f"{path}/{self.name}", self._lease(metadata_now, spec))
            self._seen = (self.identity, None, None)
            return True
        except ApiError as error:
            if error.status != _CONFLICT:
                log.warning("%s", error, extra=RECURRING)
            return False

    def _look(self, spec: Resource) -> None:
        seen = (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))
        if seen != self._seen:
            self._seen, self._since = seen, trio.current_time()

    def _lease(self, metadata: Resource, before: Resource, holder: str | None = None) -> Resource:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: Resource = {**before, "renewTime": now, "leaseDurationSeconds": DURATION}
        if before.get("holderIdentity") != self.identity:
            times = before.get("leaseTransitions")
            spec["leaseTransitions"] = times + 1 if isinstance(times, int) else 0
            spec["acquireTime"] = now
        spec["holderIdentity"] = self.identity if holder is None else holder
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}

    async def _release(self) -> None:
        """Let go of it, so that nobody has to wait for it to run out."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{self.name}"
        try:
            lease = await self.api.get(path)
            spec, metadata = lease.get("spec"), lease.get("metadata")
            if not isinstance(spec, dict) or not isinstance(metadata, dict):
                return
            if spec.get("holderIdentity") == self.identity:
                await self.api.replace(path, self._lease(metadata, spec, holder=""))
        except ApiError as error:
            log.warning("%s", error, extra=RECURRING)
