"""What conversations of AMQP 0-10 are made of: a login, a session, names and queues of one's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import attrs
import trio

from amqpgate.conformance.case import CaseSection
from amqpgate.conformance.dialling import PeerLogin, dialled
from amqpgate.conformance.endings import Unexpected
from amqpgate.conformance.setting import CaseSetting
from amqpgate.conformance.v0_10.peer import SessionPeer
from amqpgate.conformance.v0_10.session import TestedSession
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.structs import Command
from amqpgate.wire.v0_10.types import EMPTY_ARRAY, Map, Value

#: What a client says of itself.
_PROPERTIES: Final = Map(((b"product", Value(TypeCode.STR16, b"amqpgate conformance")),))


@attrs.define(eq=False)
class SessionTalk(CaseSetting):
    """One case's conversation in AMQP 0-10."""

    _left: list[Command] = attrs.field(factory=list, init=False)

    def bytes_name(self) -> bytes:
        """One that nobody else has."""
        return self.name().encode()

    def leaves(self, *commands: Command) -> None:
        """Say these at the end, each in a session of its own."""
        self._left += commands

    # -- connections -----------------------------------------------------------------------------------------

    async def dial(self) -> SessionPeer:
        """A connection on which nothing is said yet."""
        try:
            stream = await dialled(self.target, self.patience)
        except (OSError, trio.TooSlowError) as error:
            raise Unexpected(f"nobody answers: {error or 'too slow'}") from None
        peer = SessionPeer(stream, self.patience)
        self._stack.push_async_callback(peer.aclose)
        return peer

    async def started(self) -> tuple[SessionPeer, amqp.ConnectionStart]:
        """A connection whose start has come."""
        peer = await self.dial()
        await peer.send(amqp.PROTOCOL_HEADER)
        return peer, await peer.control(amqp.ConnectionStart)

    def start_ok(self, **changes: object) -> amqp.ConnectionStartOk:
        """The login, in PLAIN."""
        said: dict[str, object] = {
            "client_properties": _PROPERTIES,
            "mechanism": b"PLAIN",
            "response": f"\0{self.target.user}\0{self.target.password}".encode(),
            "locale": b"en_US",
        }
        return amqp.ConnectionStartOk(**(said | changes))  # type: ignore[arg-type]

    async def tuned(self) -> tuple[SessionPeer, amqp.ConnectionTune]:
        """A connection whose login is taken, and the tune that came."""
        peer, _ = await self.started()
        await peer.say(self.start_ok())
        return peer, await peer.control(amqp.ConnectionTune)

    def open(self, **changes: object) -> amqp.ConnectionOpen:
        """connection.open of the virtual host."""
        # What 0-9-1 calls "/" is the default one, which has no name here.
        vhost = b"" if self.target.vhost == "/" else self.target.vhost.encode()
        said: dict[str, object] = {"virtual_host": vhost, "capabilities": EMPTY_ARRAY}
        return amqp.ConnectionOpen(**(said | changes))  # type: ignore[arg-type]

    async def connected(self, **changes: int | None) -> SessionPeer:
        """An open connection, as the broker offers, but for these fields of tune-ok."""
        peer, tune = await self.tuned()
        said = tune_ok(tune, **changes)
        peer.cut_at(said.max_frame_size)
        await peer.say(said, self.open())
        await peer.control(amqp.ConnectionOpenOk)
        return peer

    def attachable(self, peer: SessionPeer, channel: int, name: bytes | None = None) -> TestedSession:
        """A session that is not attached yet."""
        session = TestedSession(peer, channel, self.bytes_name() if name is None else name)
        peer.sessions[channel] = session
        return session

    async def session(
        self, peer: SessionPeer | None = None, channel: int = 0, name: bytes | None = None
    ) -> TestedSession:
        """A session, on a connection of its own unless one is given."""
        found = await self.connected() if peer is None else peer
        session = self.attachable(found, channel, name)
        await session.attach()
        return session

    async def pause(self, seconds: float) -> None:
        """Give time for what is due later."""
        await trio.sleep(seconds)

    # -- what is on the broker -------------------------------------------------------------------------------

    async def queue(self, session: TestedSession, name: bytes | None = None, **changes: object) -> bytes:
        """A queue of this session's own, which goes with it."""
        queue = self.bytes_name() if name is None else name
        said: dict[str, object] = {"exclusive": True, "auto_delete": True} | changes
        await session.do(amqp.QueueDeclare(queue=queue, **said))  # type: ignore[arg-type]
        if not said["exclusive"]:
            self.leaves(amqp.QueueDelete(queue=queue))
        return queue

    async def exchange(self, session: TestedSession, kind: bytes = b"direct", **more: object) -> bytes:
        """An exchange, which is deleted at the end."""
        exchange = self.bytes_name()
        self.leaves(amqp.ExchangeDelete(exchange=exchange))
        await session.do(amqp.ExchangeDeclare(exchange=exchange, type=kind, **more))  # type: ignore[arg-type]
        return exchange

    async def aclose(self) -> None:
        """Hang up, and delete what was declared."""
        await CaseSetting.aclose(self)
        if not self._left:
            return
        peer = await self.connected()
        try:
            for channel, command in enumerate(reversed(self._left)):
                await (await self.session(peer, channel)).tried(command)
        finally:
            await peer.aclose()


def tune_ok(tune: amqp.ConnectionTune, **changes: int | None) -> amqp.ConnectionTuneOk:
    """As was offered, without heartbeats, but for these."""
    said: dict[str, int | None] = {
        "channel_max": tune.channel_max,
        "max_frame_size": tune.max_frame_size,
        "heartbeat": 0,
    }
    return amqp.ConnectionTuneOk(**(said | changes))


async def product(target: PeerLogin, patience: float) -> str:
    """Who answers, as it says of itself in connection.start."""
    talk = SessionTalk(target, patience, "")
    try:
        _, start = await talk.started()
        properties = start.server_properties or Map()
        said = [properties.get(name) for name in (b"product", b"version")]
        return " ".join(
            one.value.decode(errors="replace") for one in said if one and isinstance(one.value, bytes)
        )
    except Unexpected:
        return ""
    finally:
        await talk.aclose()


Making: TypeAlias = Callable[[SessionTalk], Command]


def saying(*said: Making | Command) -> Callable[[SessionTalk], Awaitable[str]]:
    """A conversation: a session, and these commands; how it came out where one was not completed."""

    async def conversation(talk: SessionTalk) -> str:
        session = await talk.session()
        return await session.tried(*(one if isinstance(one, Command) else one(talk) for one in said))

    return conversation


def section(name: str, title: str) -> CaseSection[SessionTalk]:
    """A part of the specification of 0-10."""
    return CaseSection(name, f"0-10: {title}", SessionTalk, versions=("0-10",))
