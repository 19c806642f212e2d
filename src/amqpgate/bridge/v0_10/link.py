"""What the sessions of one client share: the way to its broker, and what all of them are granted."""

from __future__ import annotations

from typing import Final

from attrs import Factory, define, field, frozen

from amqpgate.bridge.v0_10.channels import ChannelHolders
from amqpgate.bridge.v0_10.frames import CanonicalWriter
from amqpgate.bridge.v0_10.no_local import NoLocal
from amqpgate.bridge.v0_10.subscribers import Subscribers
from amqpgate.bridge.v0_10.topology import KnownTopology
from amqpgate.errors import ProtocolViolation

#: RabbitMQ's own limit of a message, in bytes.
MOST_BODY: Final = 128 * 1024 * 1024
#: Bytes of messages that wait for credit, in all sessions of a connection, or one that is larger.
MOST_HELD: Final = 16 * 1024 * 1024
#: What commands that wait may count for, in all sessions of a connection; then the client is not read.
MOST_QUEUED: Final = 1024 * 1024
#: How Qpid's JMS client says what it is.
_JMS: Final = "Apache Qpid JMS"


@frozen
class ClientOptions:
    """What an operator decides about clients of 0-10."""

    #: What an absent or empty virtual-host means.
    default_vhost: str = "/"
    #: Whether an explicit transfer that no queue gets is rejected, as the standard has it. qpidd drops it,
    #: and qpid-python ends its connection when it is told.
    reject_unroutable: bool = False
    #: Whether arguments of declarations that only Qpid has are dropped; else they are refused.
    ignore_qpid_arguments: bool = False
    #: Bytes of all unfinished messages of a connection.
    most_body: int = MOST_BODY


@define(eq=False)
class BrokerLink:
    """See the module."""

    options: ClientOptions
    topology: KnownTopology
    writer: CanonicalWriter = field(factory=CanonicalWriter)
    numbers: ChannelHolders = field(factory=ChannelHolders)
    subscribers: Subscribers = field(
        init=False, default=Factory(lambda link: Subscribers(link.topology), takes_self=True)
    )
    no_local: NoLocal = field(factory=NoLocal, init=False)
    #: Whether the broker takes basic.nack.
    has_nacks: bool = field(default=False, init=False)
    #: Who the client is to the broker; empty if it has not said so in words.
    login: str = field(default="", init=False)
    #: Whether it is Qpid's JMS client, which counts time in milliseconds and needs message properties.
    is_jms: bool = field(default=False, init=False)
    #: Bytes of messages that are not published yet.
    kept: int = field(default=0, init=False)
    #: Bytes of messages that wait for credit.
    _held: int = field(default=0, init=False)
    #: What waiting commands count for. At `MOST_QUEUED` no more are taken.
    queued: int = field(default=0, init=False)

    def meets(self, *, nacks: bool) -> None:
        """The broker has said what it can do."""
        self.has_nacks = nacks

    def log_in(self, user: str, process: object) -> None:
        """The client has said who it is, and which program (``qpid.client_process``)."""
        self.login = user
        self.is_jms = isinstance(process, str) and process.startswith(_JMS)

    def keep(self, size: int) -> None:
        """So many more bytes of a message are kept. Violation 506 if that is too much."""
        if self.kept + size > self.options.most_body:
            raise ProtocolViolation(506, f"messages of more than {self.options.most_body} bytes")
        self.kept += size

    def let_go(self, size: int) -> None:
        """So many are not kept any more."""
        self.kept -= size

    def may_hold(self, size: int) -> bool:
        """Whether there is room for so many bytes of a message without credit."""
        return not self._held or self._held + size <= MOST_HELD

    def hold(self, size: int) -> None:
        """So many bytes wait for credit, or, below 0, do not any more."""
        self._held += size

    def queue(self, weight: int) -> None:
        """A command waits that counts for so much."""
        self.queued += weight

    def unqueue(self, weight: int) -> None:
        """It does not wait any more."""
        self.queued -= weight
