"""What the parts of one channel have in common: its session, and the way to the gateway."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from typing import NamedTuple, TypeAlias

from attrs import define, field, frozen

from amqpgate.bridge.v0_10.frames import CanonicalWriter
from amqpgate.bridge.v0_10.quick_header import QuickHeader
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.sequences import RangeSet, SequenceSet, serial_add
from amqpgate.wire.v0_10.structs import Command, Struct, Unknown

#: What a method of 0-9-1 comes to: it yields commands, the last of which has the sync bit, and is sent their
#: results when all of them are complete; it returns the answer. Violations that it raises close the
#: channel.
Steps: TypeAlias = Generator[Sequence[Command], "list[Struct | Unknown | None]", Method | None]


class Transferred(NamedTuple):
    """A message that the broker has transferred, whole."""

    command_id: int
    destination: bytes
    structs: tuple[Struct | Unknown, ...]
    body: bytes
    #: In the place of the structs, what its header says, and the segment itself; None: there are structs.
    quick: QuickHeader | None = None
    header: bytes = b""


@frozen
class Abilities:
    """What the two sides of a connection have said of themselves."""

    #: The broker does not delete an exchange that has bindings, if it is asked so.
    keeps_used_exchanges: bool = True
    #: The broker takes queues whose names begin with "amq.".
    takes_reserved_queues: bool = False
    #: The client takes basic.cancel.
    hears_cancels: bool = False


@define(eq=False)
class Held:
    """Bytes of frames that wait, on all channels of a connection."""

    size: int = 0

    def add(self, size: int) -> None:
        """So many more wait, or fewer if it is negative."""
        self.size += size


@define(eq=False)
class ChannelLink:
    """Commands to the broker, methods to the gateway.

    Nothing may be sent between the pieces of a body. What is due whenever it can be is told to ``due``:
    `BrokerTranslator` comes back before the next bytes leave.
    """

    number: int
    session: AttachedSession
    writer: CanonicalWriter
    #: The numbers of channels that have something to send.
    due: set[int]
    held: Held = field(factory=Held)
    abilities: Abilities = Abilities()
    #: The broker waits for the rest of a body.
    is_mid_body: bool = field(default=False, init=False)
    #: Ids of the broker's commands that are finished, from the first to the last; the session is not told.
    _finished: tuple[int, int] | None = field(default=None, init=False)

    def say(self, method: Method) -> None:
        """A method for the gateway. Violation 506 if it does not fit into a frame."""
        self.writer.method(self.number, method)

    def say_message(self, method: Method, properties: amqp.BasicProperties, body: bytes) -> None:
        """The same with a message."""
        self.writer.message(self.number, method, properties, body)

    def say_form(self, method: bytes, header: bytes, body: bytes) -> bool:
        """A message as `CanonicalWriter.form` has it; False if it does not fit."""
        return self.writer.form(self.number, method, header, body)

    def send(self, command: Command, *, sync: bool = False) -> int:
        """A command for the broker; its id."""
        return self.session.send(command, sync=sync)

    def begin(self, command: bytes, header: bytes, *, has_body: bool) -> int:
        """A transfer for the broker, as segments; pieces of a body follow. Violation 506 if its header is too
        large."""
        command_id = self.session.send_message(command, header, goes_on=has_body)
        self.is_mid_body = has_body
        return command_id

    def go_on(self, chunk: bytes, *, is_last: bool) -> None:
        """The next piece of the body."""
        self.session.send_body(chunk, is_last=is_last)
        self.is_mid_body = not is_last

    def finish(self, command_id: int) -> None:
        """A command of the broker's is finished. The session is told of several at once."""
        finished = self._finished
        if finished is not None and command_id == serial_add(finished[1], 1):
            self._finished = finished[0], command_id
            return
        self.tell_finished()
        self._finished = command_id, command_id
        self.is_due()

    def tell_finished(self) -> None:
        """Before bytes leave."""
        if self._finished is not None:
            self.session.finish(*self._finished)
            self._finished = None

    def is_due(self) -> None:
        """There is something to send as soon as it can be."""
        self.due.add(self.number)


def among(ids: Collection[int], wanted: SequenceSet) -> list[int]:
    """Those of the ids that are in a set; it takes time by the number of ids and of the set's ranges."""
    own = RangeSet(len(ids) or 1)
    for one in ids:
        own.add(one)
    return [
        serial_add(lower, step)
        for lower, upper in own.intersect(wanted).ranges
        for step in range(((upper - lower) & 0xFFFF_FFFF) + 1)
    ]
