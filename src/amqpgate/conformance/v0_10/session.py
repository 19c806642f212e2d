"""One session on a connection to whoever is tested: commands with their ids, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

from amqpgate.conformance.endings import Unexpected
from amqpgate.conformance.v0_10.peer import HeardCommand, SessionPeer
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.codec import decode_struct32
from amqpgate.wire.v0_10.sequences import RangeSet, SequenceSet, ids_of, serial_add
from amqpgate.wire.v0_10.structs import Command, Control, Struct, Unknown

C = TypeVar("C", bound=Control)
S = TypeVar("S", bound=Struct)

#: A credit without end.
INFINITE = 0xFFFFFFFF


@attrs.define(eq=False)
class TestedSession:
    """A session that was attached, or is about to be."""

    peer: SessionPeer
    channel: int
    name: bytes
    #: The id of the next command that is said.
    next_id: int = attrs.field(default=0, init=False)
    #: Ids that the peer has completed.
    done: RangeSet = attrs.field(factory=RangeSet, init=False)
    results: dict[int, bytes] = attrs.field(factory=dict, init=False)
    exception: amqp.ExecutionException | None = attrs.field(default=None, init=False)
    #: Messages, and whatever else the peer commands, in order.
    heard: list[HeardCommand] = attrs.field(factory=list, init=False)
    #: Controls of the session that nobody has asked for yet.
    controls: list[Control] = attrs.field(factory=list, init=False)
    #: How the session has ended.
    ended: str | None = attrs.field(default=None, init=False)
    #: The id of the next command that the peer says.
    _incoming: int = attrs.field(default=0, init=False)

    # -- out -------------------------------------------------------------------------------------------------

    async def control(self, *controls: Control) -> None:
        """Say controls on the session's channel."""
        await self.peer.say(*controls, channel=self.channel)

    async def attach(self, *, force: bool = False, first: int = 0) -> None:
        """Attach, and say where commands begin."""
        self.next_id = first
        await self.control(amqp.SessionAttach(name=self.name, force=force))
        await self.answer(amqp.SessionAttached)
        await self.control(amqp.SessionCommandPoint(command_id=first, command_offset=0))

    async def say(
        self,
        command: Command,
        structs: Sequence[Struct | Unknown] | None = None,
        body: bytes = b"",
        *,
        sync: bool = False,
    ) -> int:
        """A command; its id."""
        await self.peer.send(self.peer.encoded(self.channel, command, structs, body, sync=sync))
        return self.counted()

    def counted(self) -> int:
        """The id of a command that was sent as bytes."""
        self.next_id, said = serial_add(self.next_id, 1), self.next_id
        return said

    async def do(self, *commands: Command) -> None:
        """Commands, each of which is completed. Raises `Unexpected` where one is not."""
        for command in commands:
            await self.completes(await self.say(command, sync=True))

    async def tried(self, *commands: Command) -> str:
        """``completed``, or how the session ended."""
        try:
            await self.do(*commands)
        except Unexpected as what:
            return str(what)
        return "completed"

    async def result(self, command: Command, kind: type[S]) -> S:
        """A command's result."""
        number = await self.say(command, sync=True)
        await self.until(lambda: number in self.results)
        found = decode_struct32(self.results[number])
        if not isinstance(found, kind):
            raise Unexpected(f"a result of {type(found).__name__}")
        return found

    async def publish(
        self,
        key: bytes,
        body: bytes = b"m",
        *,
        exchange: bytes = b"",
        message: amqp.MessageProperties | None = None,
        **delivery: object,
    ) -> None:
        """A message, whose transfer is completed."""
        properties: list[Struct] = [amqp.DeliveryProperties(routing_key=key, **delivery)]  # type: ignore[arg-type]
        if message is not None:
            properties.append(message)
        transfer = amqp.MessageTransfer(destination=exchange, accept_mode=1, acquire_mode=0)
        await self.completes(await self.say(transfer, properties, body, sync=True))

    async def subscribe(
        self,
        queue: bytes,
        destination: bytes = b"d",
        *,
        accept: int = 0,
        acquire: int = 0,
        credit: int | None = INFINITE,
        **more: object,
    ) -> None:
        """A subscription, with credit for so many messages of any size."""
        await self.do(
            amqp.MessageSubscribe(
                queue=queue,
                destination=destination,
                accept_mode=accept,
                acquire_mode=acquire,
                **more,  # type: ignore[arg-type]
            ),
            amqp.MessageSetFlowMode(destination=destination, flow_mode=0),
        )
        if credit is not None:
            await self.credit(credit, destination)

    async def credit(self, messages: int, destination: bytes = b"d", size: int = INFINITE) -> None:
        """Credit for so many messages and bytes."""
        await self.do(
            amqp.MessageFlow(destination=destination, unit=1, value=size),
            amqp.MessageFlow(destination=destination, unit=0, value=messages),
        )

    async def finish(self, *ids: int) -> None:
        """Tell that commands of the peer's are completed."""
        await self.control(amqp.SessionCompleted(commands=ids_of(ids)))

    # -- in --------------------------------------------------------------------------------------------------

    async def until(self, is_done: Callable[[], bool]) -> None:
        """Read until this is so. Raises `Unexpected` where the session ends before."""
        await self.peer.until(lambda: is_done() or self.ended is not None)
        if not is_done():
            raise Unexpected(self.ended or "silence")

    async def completes(self, number: int) -> None:
        """Wait until the peer has completed this command."""
        await self.until(lambda: number in self.done)

    async def outcome(self) -> str:
        """``goes on``, or how the session ended."""
        said = await self.tried(amqp.ExecutionSync())
        return "goes on" if said == "completed" else said

    async def answer(self, kind: type[C]) -> C:
        """The first control of this kind that nobody has asked for yet."""
        await self.until(lambda: any(isinstance(one, kind) for one in self.controls))
        found = next(one for one in self.controls if isinstance(one, kind))
        self.controls.remove(found)
        return found

    async def message(self) -> HeardCommand:
        """The next message."""
        await self.until(lambda: bool(self.heard))
        found = self.heard.pop(0)
        if not isinstance(found.command, amqp.MessageTransfer):
            raise Unexpected(found.command.NAME)
        return found

    async def drained(self, destination: bytes = b"d") -> list[HeardCommand]:
        """All messages that a subscription's credit was enough for; it has none any more."""
        await self.do(amqp.MessageFlush(destination=destination))
        found, self.heard = self.heard, []
        return found

    async def hear_control(self, control: Control) -> None:
        """A control has come."""
        match control:
            case amqp.SessionCompleted(commands, timely_reply):
                for lower, upper in (commands or SequenceSet()).ranges:
                    self.done.add(lower, upper)
                if timely_reply:
                    await self.control(amqp.SessionKnownCompleted(commands=commands))
            case amqp.SessionFlush(expected, confirmed, completed):
                await self._tell(expected=expected, confirmed=confirmed, completed=completed)
                return
            case amqp.SessionCommandPoint(command_id):
                self._incoming = command_id or 0
            case amqp.SessionDetach(name):
                await self.control(amqp.SessionDetached(name=name, code=0))
                self.ended = self.ended or "detach"
            case amqp.SessionDetached(_, code):
                self.ended = self.ended or f"detached {code}"
        self.controls.append(control)

    async def _tell(self, *, expected: bool, confirmed: bool, completed: bool) -> None:
        if expected:
            await self.control(amqp.SessionExpected(commands=ids_of([self._incoming])))
        if confirmed:
            await self.control(amqp.SessionConfirmed(commands=SequenceSet()))
        if completed:
            await self.control(amqp.SessionCompleted(commands=SequenceSet()))

    async def hear_command(
        self, command: Command, structs: tuple[Struct | Unknown, ...], body: bytes
    ) -> None:
        """A command has come."""
        self._incoming, number = serial_add(self._incoming, 1), self._incoming
        match command:
            case amqp.ExecutionResult(command_id, value):
                self.results[command_id or 0] = value or b""
            case amqp.ExecutionException(error_code):
                self.exception = command
                self.ended = f"exception {error_code}"
            case _:
                self.heard.append(HeardCommand(number, command, structs, body))
