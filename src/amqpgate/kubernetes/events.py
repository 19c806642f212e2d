"""Events of resources: what `kubectl describe` shows below them. So many a minute, whatever resources do."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Final

import attrs
import trio

from amqpgate.kubernetes.api import Api, ApiError
from amqpgate.kubernetes.metrics import OperatorMetrics
from amqpgate.resources.definitions import GROUP, VERSION
from amqpgate.resources.documents import Resource
from amqpgate.resources.in_force import Found
from amqpgate.resources.status import MOST_NOTE

#: At once, and how many a second come back.
_BURST: Final = 25
_RATE: Final = 0.5


@attrs.define(eq=False)
class ResourceEvents:
    """Those that one operator makes."""

    api: Api
    identity: str
    metrics: OperatorMetrics
    _tokens: float = attrs.field(default=_BURST, init=False)
    _stamp: float = attrs.field(factory=trio.current_time, init=False)

    async def tell(self, found: Found, *, is_well: bool, reason: str, note: str) -> None:
        """One, if there is room for it. That it could not be told stops nothing."""
        now = trio.current_time()
        self._tokens = min(_BURST, self._tokens + (now - self._stamp) * _RATE)
        self._stamp = now
        if self._tokens < 1:
            self.metrics.events_left_out.inc()
            return
        self._tokens -= 1
        key = found.key
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event: Resource = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{key.name[:200]}.{secrets.token_hex(8)}", "namespace": key.namespace},
            "involvedObject": {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": key.kind,
                "namespace": key.namespace,
                "name": key.name,
                "uid": found.uid,
            },
            "type": "Normal" if is_well else "Warning",
            "reason": reason,
            "message": note[:MOST_NOTE],
            "source": {"component": "amqpgate-operator"},
            "reportingComponent": "amqpgate.io/operator",
            "reportingInstance": self.identity,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        try:
            await self.api.create(f"/api/v1/namespaces/{key.namespace}/events", event)
            self.metrics.writes.labels("event").inc()
        except ApiError:
            self.metrics.failures.labels("event").inc()
