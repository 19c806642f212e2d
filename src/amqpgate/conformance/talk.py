"""What conversations are made of: a login, a channel, names and queues of one's own, messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import ModuleType
from typing import Final

import attrs
import trio

from amqpgate.conformance.endings import Unexpected
from amqpgate.conformance.peer import PeerMessage, TestedPeer
from amqpgate.conformance.setting import CaseSetting
from amqpgate.conformance.versions import SpokenVersion
from amqpgate.wire.generated import v0_9_1
from amqpgate.wire.method import Method, Properties
from amqpgate.wire.tables import Table

#: What a client says of itself, which has brokers tell refused logins and cancelled consumers.
_PROPERTIES: Final = Table.of(
    {
        "product": "amqpgate conformance",
        "capabilities": {
            "authentication_failure_close": True,
            "basic.nack": True,
            "publisher_confirms": True,
            "exchange_exchange_bindings": True,
            "consumer_cancel_notify": True,
            "connection.blocked": True,
        },
    }
)


@attrs.define(eq=False)
class Talk(CaseSetting):
    """One case's conversation in a version of AMQP 0-8 to 0-9-1."""

    version: SpokenVersion
    _left: list[Callable[[], Method]] = attrs.field(factory=list, init=False)

    @property
    def amqp(self) -> ModuleType:
        """The version's methods."""
        return self.version.amqp

    def exchange_name(self) -> str:
        """One for an exchange, which is deleted at the end if it is there."""
        return self._passing(self.name())

    def _passing(self, exchange: str) -> str:
        self._left.append(lambda: self.amqp.ExchangeDelete(exchange=exchange))
        return exchange

    # -- connections -----------------------------------------------------------------------------------------

    async def dial(self) -> TestedPeer:
        """A connection on which nothing is said yet."""
        try:
            peer = await TestedPeer.dial(self.target, self.version, self.patience)
        except (OSError, trio.TooSlowError) as error:
            raise Unexpected(f"nobody answers: {error or 'too slow'}") from None
        self._stack.push_async_callback(peer.aclose)
        return peer

    async def started(self, header: bytes | None = None) -> TestedPeer:
        """A connection whose start has come."""
        peer = await self.dial()
        await peer.send(self.version.header if header is None else header)
        await peer.expect(self.amqp.ConnectionStart)
        return peer

    def start_ok(self, **changes: object) -> Method:
        """The login, in PLAIN."""
        said: dict[str, object] = {
            "client_properties": _PROPERTIES,
            "mechanism": "PLAIN",
            "response": f"\0{self.target.user}\0{self.target.password}".encode(),
            "locale": "en_US",
        }
        made: Method = self.amqp.ConnectionStartOk(**(said | changes))
        return made

    async def tuned(self) -> tuple[TestedPeer, v0_9_1.ConnectionTune]:
        """A connection whose login is taken, and the tune that came."""
        peer = await self.started()
        await peer.say(0, self.start_ok())
        return peer, await peer.expect(self.amqp.ConnectionTune)

    async def connected(self, *, channel_max: int = 0, frame_max: int = 0, heartbeat: int = 0) -> TestedPeer:
        """An open connection; 0: as the broker offers."""
        peer, tune = await self.tuned()
        await self.open(peer, tune, channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)
        await peer.expect(self.amqp.ConnectionOpenOk)
        return peer

    async def open(
        self,
        peer: TestedPeer,
        tune: v0_9_1.ConnectionTune,
        *,
        channel_max: int = 0,
        frame_max: int = 0,
        heartbeat: int = 0,
        virtual_host: str | None = None,
    ) -> None:
        """Say tune-ok and open; 0: as was offered."""
        tune_ok = self.amqp.ConnectionTuneOk(
            channel_max=channel_max or tune.channel_max,
            frame_max=frame_max or tune.frame_max,
            heartbeat=heartbeat,
        )
        wanted = self.target.vhost if virtual_host is None else virtual_host
        await peer.say(0, tune_ok, self.amqp.ConnectionOpen(virtual_host=wanted))

    async def channel(self, peer: TestedPeer | None = None, number: int = 1) -> TestedPeer:
        """A connection with this channel open."""
        found = await self.connected() if peer is None else peer
        await found.say(number, self.amqp.ChannelOpen())
        await found.expect(self.amqp.ChannelOpenOk, number)
        return found

    async def raw(self, peer: TestedPeer, most: int, *, seconds: float) -> bytes:
        """So many bytes as they come, or fewer at the end of the time or of the stream."""
        found = b""
        with trio.move_on_after(seconds), suppress(trio.BrokenResourceError):
            while len(found) < most and (data := await peer.stream.receive_some(most - len(found))):
                found += data
        return found

    async def ends(self, peer: TestedPeer, *, seconds: float) -> bool:
        """Whether the peer hangs up within this time, whatever it says before."""
        with trio.move_on_after(seconds):
            with suppress(trio.BrokenResourceError):
                while await peer.stream.receive_some(1 << 16):
                    pass
            return True
        return False

    async def pause(self, seconds: float) -> None:
        """Give the peer time for what it does later."""
        await trio.sleep(seconds)

    # -- what is on the broker -------------------------------------------------------------------------------

    async def queue(
        self, peer: TestedPeer, name: str | None = None, channel: int = 1, **changes: object
    ) -> str:
        """A queue of this connection's own, which goes with it."""
        said: dict[str, object] = {"queue": self.name() if name is None else name, "exclusive": True}
        await peer.say(channel, self.amqp.QueueDeclare(**(said | changes)))
        declared = await peer.expect(self.amqp.QueueDeclareOk, channel)
        found: str = declared.queue
        if not (said | changes)["exclusive"]:
            self._left.append(lambda: self.amqp.QueueDelete(queue=found))
        return found

    async def exchange(
        self,
        peer: TestedPeer,
        kind: str = "direct",
        channel: int = 1,
        exchange: str | None = None,
        **changes: object,
    ) -> str:
        """An exchange, which is deleted at the end."""
        name = self._passing(self.name() if exchange is None else exchange)
        await peer.say(channel, self.amqp.ExchangeDeclare(exchange=name, type=kind, **changes))
        await peer.expect(self.amqp.ExchangeDeclareOk, channel)
        return name

    async def bind(self, peer: TestedPeer, queue: str, exchange: str, key: str = "", **more: object) -> None:
        """Bind a queue on channel 1."""
        await peer.say(1, self.amqp.QueueBind(queue=queue, exchange=exchange, routing_key=key, **more))
        await peer.expect(self.amqp.QueueBindOk, 1)

    async def publish(
        self,
        peer: TestedPeer,
        key: str,
        body: bytes = b"m",
        *,
        exchange: str = "",
        properties: Properties | None = None,
        channel: int = 1,
        **flags: bool,
    ) -> None:
        """One message."""
        method = self.amqp.BasicPublish(exchange=exchange, routing_key=key, **flags)
        await peer.send(*peer.content(channel, method, body, properties))

    async def get(
        self, peer: TestedPeer, queue: str, *, no_ack: bool = True, channel: int = 1
    ) -> PeerMessage[v0_9_1.BasicGetOk] | None:
        """A message by basic.get; None: there is none."""
        await peer.say(channel, self.amqp.BasicGet(queue=queue, no_ack=no_ack))
        try:
            return await peer.message(channel, self.amqp.BasicGetOk)
        except Unexpected as what:
            if str(what) == "basic.get-empty":
                return None
            raise

    async def arrives(
        self, peer: TestedPeer, queue: str, *, channel: int = 1
    ) -> PeerMessage[v0_9_1.BasicGetOk] | None:
        """The same, where the message may still be on its way: a queue is asked a few times."""
        for wait in (0, 0.02, 0.05, 0.1, 0.3, 0.5):
            await trio.sleep(wait)
            found = await self.get(peer, queue, channel=channel)
            if found is not None:
                return found
        return None

    async def consume(self, peer: TestedPeer, queue: str, channel: int = 1, **flags: object) -> str:
        """A consumer's tag."""
        await peer.say(channel, self.amqp.BasicConsume(queue=queue, **flags))
        said = await peer.expect(self.amqp.BasicConsumeOk, channel)
        tag: str = said.consumer_tag
        return tag

    async def count(self, peer: TestedPeer, queue: str, channel: int = 1) -> int:
        """How many messages waited in a queue, which is empty then: a purge overtakes no publish."""
        await peer.say(channel, self.amqp.QueuePurge(queue=queue))
        said = await peer.expect(self.amqp.QueuePurgeOk, channel)
        count: int = said.message_count
        return count

    # -- the end ---------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Hang up, and delete what was declared."""
        await CaseSetting.aclose(self)
        if not self._left:
            return
        peer = await self.channel()
        try:
            for number, made in enumerate(reversed(self._left), 2):
                await self.channel(peer, number)
                await peer.say(number, made())
                await peer.outcome()
        finally:
            await peer.aclose()


def method(name: str, **fields: object) -> Callable[[Talk], Method]:
    """A method by its class's name, for `saying`; fields that are functions are asked for with the talk."""

    def make(talk: Talk) -> Method:
        said = {field: value(talk) if callable(value) else value for field, value in fields.items()}
        made: Method = getattr(talk.amqp, name)(**said)
        return made

    return make


def saying(*made: Callable[[Talk], Method]) -> Callable[[Talk], Awaitable[str]]:
    """A conversation: open a channel, say these, and see what comes after the answers of all but the last."""

    async def conversation(talk: Talk) -> str:
        peer = await talk.channel()
        for make in made[:-1]:
            await peer.say(1, make(talk))
            said = await peer.outcome()
            if said.partition(" ")[0].endswith("close"):
                return said
        await peer.say(1, made[-1](talk))
        return await peer.outcome()

    return conversation
