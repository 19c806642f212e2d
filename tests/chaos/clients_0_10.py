"""Publishers and consumers of AMQP 0-10. What is complete counts as confirmed."""

from __future__ import annotations

import time

from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.sequences import ids_of
from amqpgate.wire.v0_10.types import Map, Value
from tests.support.client_0_10 import Client010, Message

from .clients import Client, Pace
from .history import Kind, runs
from .line import HEARTBEAT
from .message import body_of, lane_of, message_id, name_in
from .plan import BATCH

_CREDIT = 200
_LEAVES = (1_000, 5_000)
_HELD = 60


def _properties(lane: int, number: int) -> amqp.MessageProperties:
    headers = Map(((b"chaos", Value(TypeCode.STR16, "äöü".encode())),))
    return amqp.MessageProperties(
        content_type=b"application/x-chaos",
        correlation_id=message_id(lane, number).encode(),
        application_headers=headers,
    )


class _Beating(Client010):
    """It says heartbeats while it waits, as long as its connection is open. Without them nobody could know
    that it is gone without a word, and its session would keep its messages for ever.
    """

    _beats_at = float("inf")

    def begin(self) -> None:
        self.log_in(heartbeat=HEARTBEAT)
        self._beats_at = time.monotonic() + HEARTBEAT / 2

    def end(self) -> None:
        self._beats_at = float("inf")
        super().end()

    def _read(self, deadline: float) -> bool:
        if time.monotonic() >= self._beats_at:
            self._beats_at = time.monotonic() + HEARTBEAT / 2
            self.say(amqp.ConnectionHeartbeat())
        try:
            return super()._read(min(deadline, self._beats_at))
        except TimeoutError:
            if time.monotonic() >= deadline:
                raise
            return True


class _Client010(Client):
    def dial(self) -> Client010:
        client = _Beating.dial(self.dice.choice(self.plan.ports), timeout=3 * HEARTBEAT, tls=self._tls)
        try:
            client.begin()
        except BaseException:
            client.close()
            raise
        return client


class Publisher010(_Client010):
    """A batch, and then its completion."""

    role = "publisher"

    def live(self) -> None:
        with self.dial() as client:
            session, batch = client.session(), 0
            transfer = amqp.MessageTransfer(destination=b"", accept_mode=1)
            pace = Pace(self.plan.rate / max(1, self.plan.publishers))
            while self.is_wanted:
                if not (self.crew.has_room and pace.has_come()):
                    client.rest(0.05)
                    continue
                pace.took(BATCH)
                turn, first = batch % len(self.plan.queues), batch // len(self.plan.queues) * BATCH
                lane = lane_of(self.number, self.epoch, turn)
                delivery = amqp.DeliveryProperties(
                    delivery_mode=2, routing_key=self.plan.queues[turn].encode()
                )
                self.recorder.add(Kind.OFFERED, lane, first, first + BATCH - 1)
                ids = {
                    session.send(
                        transfer,
                        (delivery, _properties(lane, number)),
                        body_of(self.crew.run_id, lane, number),
                        sync=number == first + BATCH - 1,
                    ): number
                    for number in range(first, first + BATCH)
                }
                try:
                    session.wait(max(ids))
                finally:
                    done = sorted(number for one, number in ids.items() if one in session.completed)
                    for start, last in runs(done):
                        self.got_on(Kind.CONFIRMED, lane, start, last)
                    session.completed.clear()
                batch += 1
            client.end()


class Consumer010(_Client010):
    role = "consumer"

    def live(self) -> None:
        with self.dial() as client:
            session = client.session()
            self.recorder.add(Kind.BEGUN)
            session.subscribe(self.plan.queues[self.queue], credit=0)
            count, leaves = 0, self.dice.randrange(*_LEAVES)
            while self.is_wanted:
                flow = amqp.MessageFlow(destination=b"d", unit=0, value=_CREDIT)
                session.send(flow)
                session.ask(amqp.MessageFlush(destination=b"d"))
                session.send(amqp.MessageFlow(destination=b"d", unit=1, value=0xFFFFFFFF))
                got = list(session.messages)
                session.messages.clear()
                taken = [self._take(message) for message in got]
                count += len(got)
                if count >= leaves - _HELD and got and self.crew.publishing.is_set():
                    self._leave(client)
                    return
                if got:
                    for lane, number in taken:
                        if lane >= 0:
                            self.recorder.add(Kind.ACKED, lane, number, number)
                    session.ask(amqp.MessageAccept(transfers=ids_of(one.command_id for one in got)))
                else:
                    client.rest(0.05)
            session.detach()
            client.end()

    def _take(self, message: Message) -> tuple[int, int]:
        named = name_in(self.crew.run_id, message.body)
        if named is None:
            self.recorder.add(Kind.UNKNOWN, 0, len(message.body))
            return -1, 0
        lane, number = named
        found, wanted = message.properties, _properties(lane, number)
        is_right = found is not None and found.correlation_id == wanted.correlation_id
        if not is_right or found.content_type != wanted.content_type:  # type: ignore[union-attr]
            self.recorder.add(Kind.CHANGED, lane, number, number)
        if message.headers.get("chaos") not in ("äöü", "äöü".encode()):
            self.recorder.add(Kind.CHANGED, lane, number, number)
        kind = Kind.REDELIVERED if message.delivery.redelivered else Kind.DELIVERED
        self.got_on(kind, lane, number, number)
        return named

    def _leave(self, client: Client010) -> None:
        if self.dice.randrange(2):
            client.end()
        else:
            client.close()
        time.sleep(self.dice.uniform(0, 0.2))
