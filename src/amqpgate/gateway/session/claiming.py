"""What a session asks of its claim checks: bodies that go to an object store, or come from it (`claims`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from amqpgate.datapath.tables import Side
from amqpgate.gateway.session.observer import Sent
from amqpgate.gateway.session.publish_denial import HeldPublish
from amqpgate.gateway.session.settlement import Settling
from amqpgate.policy import Principal
from amqpgate.wire.method import Method


def owner_of(principal: Principal) -> object:
    """Who has a share of what claim checks need: a user, in all virtual hosts. Of one that is not known, its
    virtual host has."""
    return ("user", principal.user) if principal.user is not None else ("vhost", principal.vhost)


class PublishClaiming(Protocol):
    """Of the client's messages."""

    def begin(self, channel: int, held: HeldPublish, frame: memoryview, frames: bytes) -> None:
        """A publish may pass whose body is too large: ``frame`` is its header's, ``frames`` are its method
        and header as the broker would get them."""

    def takes(self, channel: int, frame: memoryview) -> bool:
        """A body that is shown: whether it is of such a publish."""

    def holds_up(self, method: Method) -> bool:
        """Whether the client's method waits: what it published before has not gone to the broker yet."""


class SettleClaiming(Protocol):
    """Messages whose bodies are on their way: the client has not been shown them."""

    def settles(self, channel: int, method: Settling) -> Settling | None:
        """What the broker is told of it; None: nothing. Raises ``ProtocolViolation``."""

    def __contains__(self, channel: int) -> bool:
        """Whether there is one on a channel."""

    def first(self, channel: int) -> int | None:
        """Its delivery tag; None: there is none on this channel."""


class DeliveryClaiming(Protocol):
    """Of the broker's."""

    @property
    def hidden(self) -> SettleClaiming: ...

    def expect(self, channel: int, method: Sent, begin: Callable[[], None]) -> None:
        """A message for the client has begun; its header, which comes next, says if it is a reference.
        ``begin`` passes the method on."""

    def takes(self, channel: int, frame: memoryview) -> bool:
        """A header or body that is shown: whether it is of a reference. If not, the method that waited for
        it has been passed on."""

    def message_ended(self, channel: int) -> None:
        """A frame of the client's was shown: what waited for the end of its message may go now."""


class Claiming(Protocol):
    """Both directions."""

    @property
    def most_body(self) -> int:
        """Bytes of body that the settings allow."""

    @property
    def publishes(self) -> PublishClaiming: ...
    @property
    def deliveries(self) -> DeliveryClaiming: ...

    def follow(self) -> None:
        """Other policies may hold, or the session has another connection: what is too large from now on."""

    def takes(self, byte_count: int) -> bool:
        """Whether a publish with so much body goes to the store."""

    def keeps(self, side: Side, channel: int, frame: memoryview) -> bool:
        """A frame on a channel that is held: whether it is looked at again."""

    def end(self) -> None:
        """The session is over."""
