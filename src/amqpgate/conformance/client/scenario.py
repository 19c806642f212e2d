"""What the scripted broker does otherwise than a usual one, and what a client has to do then.

Every hook has a default, which is what RabbitMQ does. A scenario tells `ClientCourse.act` once it has acted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from amqpgate import __version__
from amqpgate.conformance.case import ConformanceRule
from amqpgate.conformance.client.line import ClientLine
from amqpgate.wire.method import Method, Properties
from amqpgate.wire.tables import Table

#: channel-max, frame-max and heartbeat, as RabbitMQ offers them.
USUAL_TUNE: Final = (2047, 131072, 60)

_CAPABILITIES: Final = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "consumer_priorities": True,
    "authentication_failure_close": True,
    "per_consumer_qos": True,
}


class Scenario:
    """One connection's; each connection has its own object."""

    rule: ClassVar[ConformanceRule]
    #: What a program has to do for it, in words.
    needs: ClassVar[str] = "no program connected"
    #: Whether a program may end with an error: it is told of one.
    may_fail: ClassVar[bool] = False
    #: Whether it begins before the client names a virtual host, which cannot choose it then.
    is_early: ClassVar[bool] = False
    mechanisms: ClassVar[bytes] = b"PLAIN AMQPLAIN"
    locales: ClassVar[bytes] = b"en_US"
    tune: ClassVar[tuple[int, int, int]] = USUAL_TUNE
    #: Bytes in a segment; 0: as many as there are.
    segment: ClassVar[int] = 0
    #: Whether channels' frames are mixed.
    is_mixed: ClassVar[bool] = False
    #: What names that the broker gives are filled up to.
    name_length: ClassVar[int] = 0
    #: Before the first delivery tag of a channel.
    last_tag: ClassVar[int] = 0

    def greet(self, line: ClientLine) -> bytes | Method:
        """The answer to the protocol header: a connection.start, or bytes after which the stream ends."""
        # 0-8 says that it is 8-0.
        major, minor = (8, 0) if line.version.name == "0-8" else (0, 9)
        return line.method(
            "ConnectionStart",
            version_major=major,
            version_minor=minor,
            server_properties=self.server_properties(line),
            mechanisms=self.mechanisms,
            locales=self.locales,
        )

    def server_properties(self, line: ClientLine) -> Table:
        """What the broker says of itself."""
        said = {
            "product": "amqpgate conformance",
            "version": __version__,
            "platform": "Python",
            "copyright": "",
            "information": "it judges clients",
        }
        # RabbitMQ tells clients of 0-8 of none, who do not know all of their types.
        return Table.of(said if line.version.name == "0-8" else said | {"capabilities": _CAPABILITIES})

    def refuses(self, line: ClientLine, said: Method) -> Method | None:
        """A close in the place of tune (``said`` is start-ok) or of open-ok; None: go on."""
        return None

    def before(self, line: ClientLine, channel: int, said: Method) -> bool:
        """A method of a channel came; whether it was answered, so that nothing else is done with it."""
        return False

    def after(self, line: ClientLine, channel: int, said: Method) -> None:
        """It was answered; of a publish: its confirm has gone out, or is held."""

    def delivers(self, said: Method, properties: Properties, body: bytes) -> tuple[Method, Properties, bytes]:
        """A delivery, before it is frames."""
        return said, properties, body

    def frames(self, line: ClientLine, channel: int, frames: list[bytes]) -> Sequence[bytes]:
        """A delivery's frames, before they go out."""
        return frames

    def returns(self, line: ClientLine, channel: int, frames: list[bytes]) -> Sequence[bytes]:
        """A return's frames, before they go out."""
        return frames

    def confirms(self, line: ClientLine, channel: int, number: int) -> Iterator[Method]:
        """What goes out for a publish of this number, at once."""
        yield line.method("BasicAck", delivery_tag=number)

    def flush(self, line: ClientLine) -> None:
        """The client has said nothing for a moment: what was held goes out."""

    def delay(self, said: Method, heartbeat: int) -> float:
        """Seconds before a method is looked at; ``heartbeat`` is what was agreed, in seconds."""
        return 0

    def outcome(self, line: ClientLine) -> str | None:
        """In words; None: nothing was tried."""
        return line.course.outcome()
