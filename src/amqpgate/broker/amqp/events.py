"""What a :class:`~amqpgate.broker.amqp.connection.Connection` reports of its peer."""

from __future__ import annotations

from typing import Final, TypeAlias

from attrs import field, frozen

from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.dialects import VersionNumbers
from amqpgate.wire.method import Method

#: Methods that carry a password or a token, which must not end up in a log.
SECRETIVE: Final = frozenset({"connection.start-ok", "connection.secure-ok", "connection.update-secret"})


def _safe_repr(method: Method) -> str:
    return f"<{method.NAME}>" if method.NAME in SECRETIVE else repr(method)


@frozen
class HeaderReceived:
    """The client's protocol header, accepted: the server's start is due."""

    header: bytes
    version: VersionNumbers


@frozen
class HeaderRefused:
    """A protocol header that ends the conversation: send ``answer``, if any, and close the socket.

    In the server's role: the client speaks something else. In the client's: the server does, and
    ``header`` is what it would have liked; ``answer`` is empty then.
    """

    header: bytes
    answer: bytes


@frozen
class MethodReceived:
    """A method without content; ``channel`` 0 for those of the connection."""

    channel: int
    method: Method = field(repr=_safe_repr)


@frozen
class ContentReceived:
    """A method with content, whole: nothing is reported before the last byte is there."""

    channel: int
    method: Method
    header: ContentHeader
    body: bytes = field(repr=False)


@frozen
class HeartbeatReceived:
    """A heartbeat. (All bytes count as a sign of life, so there is nothing to be done.)"""


Event: TypeAlias = HeaderReceived | HeaderRefused | MethodReceived | ContentReceived | HeartbeatReceived
