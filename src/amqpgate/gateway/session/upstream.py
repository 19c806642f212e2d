"""The way of a session to its broker: a connection of its own, or channels of one that sessions share.

A session asks its ``SessionUpstream`` wherever the two differ, and never which of them it has.
``OwnUpstream`` passes on what client and broker say; the pool has the other one. A session that leaves a
shared connection swaps the one object for the other (``Session.move_to_own``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from amqpgate.config import Address
from amqpgate.datapath.tables import Side
from amqpgate.values import frozen
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.datapath.relay import Relay
    from amqpgate.gateway.session.queue_question import QueueQuestion


# To look a member of an enum up takes Python 3.11 a detour each time.
_UPSTREAM: Final = Side.UPSTREAM


class UpstreamFacts(Protocol):
    """What operators are told of the way to a session's broker."""

    @property
    def is_pooled(self) -> bool:
        """Whether the session is one of a pool's."""

    @property
    def address(self) -> str | None:
        """The broker's; None: the session has no connection at the moment."""

    @property
    def connection_id(self) -> int | None:
        """Which of its pool's connections it uses; None: none, or one of its own."""

    @property
    def is_blocked(self) -> bool:
        """Whether the client has been told that the broker blocks a connection that is shared."""

    def number_of(self, channel: int) -> int | None:
        """The broker's number of a client's channel; None: it has none."""


class SessionUpstream(UpstreamFacts, Protocol):
    """What a session asks of the way to its broker."""

    @property
    def relay(self) -> Relay:
        """The session's, with this way as its upstream endpoint."""

    @property
    def is_transparent(self) -> bool:
        """Whether all passes as it is: it need not be asked what it `ignores`, `holds_up`, `may_tell` or
        `hears`."""

    # -- what the client says -----------------------------------------------------------------

    @property
    def watches_publishes(self) -> bool:
        """Whether each kind of publish is to be shown once, even where every one is allowed."""

    @property
    def answers_opens(self) -> bool:
        """Whether the broker's channel.open-ok reaches the session as an answer to its client's request."""

    def ignores(self, channel: int) -> bool:
        """Whether nobody is to hear what the client says there: it has asked to close its connection."""

    def holds_up(self, channel: int, method: Method) -> bool:
        """Whether the client's method waits, and is looked at again. Raises ``ProtocolViolation``."""

    def make_room(self, channel: int, method: Method) -> bool:
        """A publish is larger than what is collected of one. Whether it is looked at again."""

    def request(self, channel: int, method: Method, renamed: bytes | memoryview | None) -> None:
        """The method goes to the broker, as the frame ``renamed`` where names are changed. Raises
        ``ProtocolViolation`` where it may not."""

    def open(self, channel: int, frame: bytes | memoryview) -> None:
        """The client opens a channel, and may."""

    def confirms(self, channel: int, method: amqp.ConfirmSelect) -> bool:
        """The client selects confirms. Whether the broker has answered that beforehand."""

    def closes_at_once(self, channel: int) -> bool:
        """The client closes a channel. Whether that is done: the broker had nothing more to say there."""

    def ask(self, question: QueueQuestion, number: int | None) -> bool:
        """Ask the broker something of a queue, on a channel that the client does not see: whether there is
        one. ``number`` is one that the client does not use."""

    def close_connection(self) -> bool:
        """The client asks to close its connection. Whether the broker is not to hear of it."""

    # -- the end of channels ------------------------------------------------------------------

    @property
    def closes_once(self) -> bool:
        """Whether the broker is told each close once, and nothing that the client says behind it."""

    def may_tell(self, channel: int, method: Method) -> bool:
        """Whether the broker may be told channel.close or close-ok; then it counts as told."""

    def settled(self, channel: int, late: int) -> None:
        """The channel is closed; ``late`` answers to the client are on their way, and not waited for."""

    # -- what the broker says, and the end ----------------------------------------------------

    def hears(self, channel: int, method: Method) -> bool:
        """The broker has said something: whether that is for the client."""

    def overflowed(self) -> None:
        """More waits for a client that does not read than may."""

    def leave(self) -> None:
        """The session is over, or has another way. Idempotent."""


@frozen(weakref_slot=False)
class OwnUpstream:
    """A connection to the broker that only this session uses: what the client says there passes as it is."""

    relay: Relay
    is_pooled = False
    connection_id = None
    is_blocked = False
    is_transparent = True
    watches_publishes = False
    answers_opens = True
    closes_once = False

    @property
    def address(self) -> str | None:
        peer = self.relay.endpoints[Side.UPSTREAM].peer_name()
        return None if peer is None else str(Address(*peer))

    def number_of(self, channel: int) -> int | None:
        return self.relay.channels.to(channel) or None

    def ignores(self, channel: int) -> bool:
        return False

    def holds_up(self, channel: int, method: Method) -> bool:
        return False

    def make_room(self, channel: int, method: Method) -> bool:
        return False

    def request(self, channel: int, method: Method, renamed: bytes | memoryview | None) -> None:
        pass

    def open(self, channel: int, frame: bytes | memoryview) -> None:
        self.relay.channels.open(channel)
        self.relay.send(_UPSTREAM, frame)

    def confirms(self, channel: int, method: amqp.ConfirmSelect) -> bool:
        return False

    def closes_at_once(self, channel: int) -> bool:
        return False

    def ask(self, question: QueueQuestion, number: int | None) -> bool:
        if number is not None:
            question.ask_on(number)
        return number is not None

    def close_connection(self) -> bool:
        return False

    def may_tell(self, channel: int, method: Method) -> bool:
        return True

    def settled(self, channel: int, late: int) -> None:
        pass

    def hears(self, channel: int, method: Method) -> bool:
        return True

    def overflowed(self) -> None:
        pass

    def leave(self) -> None:
        pass
