"""A tap of a stage, and what it has shown."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import attrs

from amqpgate.gateway.observers.tap.taps import Tap, TapRequest
from amqpgate.policy.engine.taps import parse
from amqpgate.protocol.frames import FrameDecoder
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.events import EventSubscriber, EventText
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import Talker

from .conftest import Stage

MakeStage = Callable[..., Stage]

AUDIT = """
apiVersion: amqpgate.io/v1alpha1
kind: AuditPolicy
metadata: {name: audit}
spec:
  subjects: [{user: guest}]
  rules: [%s]
"""
#: Its mode, and what one limit says.
RATE = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: r}
spec:
  subjects: [{user: guest}]
  mode: %s
  limits: [{id: l, %s}]
"""


@attrs.define
class Watch:
    """A tap, and what it has shown."""

    stage: Stage
    tap: Tap
    subscriber: EventSubscriber

    @property
    def counts(self) -> tuple[int, int]:
        """Matched and shown until now."""
        tapping = self.stage.running.gateway.observers.taps
        self.stage.running.call(tapping.count)
        return self.tap.matched, self.tap.shown

    def items(self) -> list[dict[str, JSON]]:
        """All that waits of operations."""

        def take() -> list[JSON]:
            found: list[JSON] = []
            while (item := self.subscriber.at_hand()) is not None:
                said = item[1]
                if isinstance(said, EventText):
                    found.append({"event": said.event, **json.loads(f"{{{said.members}}}")})
                else:
                    found.append(said)
            return found

        taken = [item for item in self.stage.running.call(take) if isinstance(item, dict)]
        return [item for item in taken if item["event"] == "operation"]

    def close(self) -> None:
        self.stage.running.call(lambda: self.stage.running.gateway.observers.taps.close(self.tap))


def tap(
    stage: Stage, match: str = "", *, every: int = 1, frames: bool = False, ceiling: int = 10**6
) -> Watch:
    tapping = stage.running.gateway.observers.taps
    tapping.ceiling = ceiling
    subscriber = EventSubscriber()
    order = TapRequest(match=parse(match), every=every, frames=frames, asker={"by": "test"})
    return Watch(stage, stage.running.call(lambda: tapping.open(order, subscriber)), subscriber)


def upcalls(stage: Stage) -> int:
    return stage.running.call(lambda: sum(stage.running.gateway.pump.counters.called))


def pass_on(client: Talker, broker: Talker, count: int, key: str = "k", body: bytes = b"x") -> None:
    """Publish so many, all of which the broker gets as they are."""
    for number in range(count):
        client.publish(b"%d %s" % (number, body), key, exchange="orders")
    for number in range(count):
        message = broker.expect_content(amqp.BasicPublish)
        assert message.body == b"%d %s" % (number, body)
        assert message.header.properties == amqp.BasicProperties()


def of(item: dict[str, JSON], *names: str) -> tuple[JSON, ...]:
    return tuple(item.get(name) for name in names)


def frames_in(item: dict[str, JSON]) -> list[bytes]:
    decoder = FrameDecoder(0)
    decoder.feed(base64.b64decode(str(item["frames"])))
    found = []
    while (frame := decoder.next()) is not None:
        found.append(frame.payload)
    return found
