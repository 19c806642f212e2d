"""The channels of 0-9-1 that one session of 0-10 has: up to three, each opened when it is first needed.

========  ==============================================================================================
channel   what is done on it
========  ==============================================================================================
main      subscriptions, gets, acknowledgements, transactions and what is published in them
pub       publishing with confirms: RabbitMQ refuses tx.select after confirm.select on one channel.
          A broker that has no confirms has transactions, whose commits tell the same
ask       declares, binds, deletes, queries: a broker's refusal costs this channel alone, and whether the
          session ends with it is decided here
========  ==============================================================================================

::

               open                 open-ok                        close
    CLOSED ──────────▶ OPENING ──────────────────▶ OPEN ──────────────────▶ CLOSING
      ▲                   │  pub: confirm.select,    │                         │
      │                   │  select-ok               │                         │
      └── broker: close ──┴──────────────────────────┘                         │
      └────────────────────────────── broker: close-ok ────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from heapq import heappop, heappush
from itertools import islice
from typing import TypeAlias

from amqpgate.bridge.v0_10.frames import CanonicalWriter, FromBroker
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


class ChannelUse(Enum):
    """What a channel is for."""

    MAIN = "main"
    PUB = "pub"
    ASK = "ask"


class OpenState(Enum):
    """Where a channel stands with the broker."""

    CLOSED = "closed"
    #: channel.open was sent, and what follows it on this channel.
    OPENING = "opening"
    OPEN = "open"
    #: channel.close was sent; all else but its answer is dropped.
    CLOSING = "closing"


#: Gets what the broker says on a channel.
Hear: TypeAlias = "Callable[[BridgedChannel, FromBroker], None]"
#: Gets basic.ack alone: its delivery tag, and whether that means all before it, too. False, and nothing is
#: done, where it has to be heard as all else.
Confirmed: TypeAlias = "Callable[[BridgedChannel, int, bool], bool]"


class ChannelHolders:
    """Who has which channel of a connection: ``most`` of them, from 1 on, the lowest first.

    There is room for so many owners as can have a channel for each use. Others have none at all before one of
    those has closed its last one, or they would wait for each other for ever. Who asked first is first, for
    all owners but as many as there is room for are about to close.
    """

    __slots__ = ("_free", "_holders", "_most", "_owners", "_waiting", "has_confirms")

    def __init__(self) -> None:
        self._most = 0
        #: Whether the broker confirms what is published.
        self.has_confirms = True
        self._free: list[int] = []
        self._holders: dict[int, BridgedChannel] = {}
        #: How many channels each owner has.
        self._owners: dict[object, int] = {}
        #: Owners that have asked for one.
        self._waiting: dict[object, None] = {}

    def allow(self, most: int, *, has_confirms: bool = True) -> None:
        """What was tuned holds from now on, and what the broker can do."""
        self._most = most
        self.has_confirms = has_confirms

    @property
    def _room(self) -> int:
        """How many owners may have channels besides."""
        return max(1, self._most // len(ChannelUse)) - len(self._owners)

    def take(self, holder: BridgedChannel) -> int | None:
        """A free one; None if its owner has to wait. Violation 506 if the broker grants fewer than one owner
        may have.
        """
        owner = holder.owner
        if owner not in self._owners:
            self._waiting[owner] = None
            if owner not in islice(self._waiting, self._room):
                return None
        number = self._free[0] if self._free else len(self._holders) + 1
        if number > self._most:
            raise ProtocolViolation(506, f"the broker grants {self._most} channels to a connection")
        if self._free:
            heappop(self._free)
        self._waiting.pop(owner, None)
        self._owners[owner] = self._owners.get(owner, 0) + 1
        self._holders[number] = holder
        return number

    def free(self, number: int) -> None:
        """It may be taken again."""
        owner = self._holders.pop(number).owner
        heappush(self._free, number)
        self._owners[owner] -= 1
        if not self._owners[owner]:
            del self._owners[owner]

    def withdraw(self, owner: object) -> None:
        """It needs none any more."""
        self._waiting.pop(owner, None)

    def at(self, number: int) -> BridgedChannel | None:
        """Who has it."""
        return self._holders.get(number)


class BridgedChannel:
    """One channel of ``owner``'s. ``writer`` is where its methods go, ``hear`` gets what the broker says on
    it, and ``confirmed`` its confirms first.
    """

    __slots__ = ("_numbers", "confirmed", "hear", "number", "owner", "state", "use", "writer")

    def __init__(
        self,
        use: ChannelUse,
        numbers: ChannelHolders,
        writer: CanonicalWriter,
        hear: Hear,
        confirmed: Confirmed,
        owner: object,
    ) -> None:
        self.use = use
        self.owner = owner
        self.hear = hear
        self.confirmed = confirmed
        self.state = OpenState.CLOSED
        self._numbers = numbers
        self.writer = writer
        self.number = 0

    @property
    def is_open(self) -> bool:
        """Whether methods may be sent."""
        return self.state is OpenState.OPEN

    @property
    def is_asked_for(self) -> bool:
        """Whether it is open, or will be unless the broker refuses: what is sent then comes to nothing."""
        return self.state in (OpenState.OPENING, OpenState.OPEN)

    def open(self) -> None:
        """Ask the broker for it, if it is closed and its owner need not wait. Violation 506 if the broker
        grants too few.
        """
        if self.state is OpenState.CLOSED:
            number = self._numbers.take(self)
            if number is not None:
                self.number = number
                self.state = OpenState.OPENING
                self.send(amqp.ChannelOpen())

    def send(self, method: Method) -> None:
        """A method. Violation 506 if it does not fit into a frame."""
        self.writer.method(self.number, method)

    def publish(self, method: Method, properties: amqp.BasicProperties, body: bytes) -> None:
        """A method and its message. Violation 506 if the method or the header does not fit into a frame."""
        self.writer.message(self.number, method, properties, body)

    def receive(self, method: Method) -> Method | None:
        """What the broker says; what of it is for others than the channel itself.

        channel.close has been answered when it is told.
        """
        match method:
            case amqp.ChannelClose():
                self.send(amqp.ChannelCloseOk())
                if self.state is OpenState.CLOSING:
                    return None
                self._closed()
                return method
            case amqp.ChannelCloseOk():
                self._closed()
            case _ if self.state is OpenState.CLOSING:
                pass
            case amqp.ChannelOpenOk() if self.use is ChannelUse.PUB:
                self.send(amqp.ConfirmSelect() if self._numbers.has_confirms else amqp.TxSelect())
            case amqp.ChannelOpenOk() | amqp.ConfirmSelectOk():
                self.state = OpenState.OPEN
                return method
            case amqp.TxSelectOk() if self.use is ChannelUse.PUB:
                self.state = OpenState.OPEN
            case _:
                return method
        return None

    def close(self) -> None:
        """Close it, if it is not closed."""
        if self.is_asked_for:
            self.send(amqp.ChannelClose(200, "session detached", 0, 0))
            self.state = OpenState.CLOSING

    def release(self) -> None:
        """Nothing is heard on it any more: nothing leads here, and nothing from here to who heard it."""
        if self.state is not OpenState.CLOSED:
            self._closed()
        self.hear, self.confirmed = _unheard, _unconfirmed

    def _closed(self) -> None:
        self._numbers.free(self.number)
        self.number = 0
        self.state = OpenState.CLOSED


def _unheard(channel: BridgedChannel, told: FromBroker) -> None:
    pass


def _unconfirmed(channel: BridgedChannel, tag: int, multiple: bool) -> bool:
    return False
