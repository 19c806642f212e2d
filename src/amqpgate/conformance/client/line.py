"""The scripted broker's end of a connection: what is said, and what comes after a scenario has acted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from amqpgate.conformance.client.outbox import ServedOutbox
from amqpgate.conformance.client.watch import ClientWatch
from amqpgate.conformance.peer import HEADER, frame
from amqpgate.conformance.versions import SpokenVersion
from amqpgate.protocol.frames import body_frames, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.method import Method, Properties

#: Whether a method on a channel shows that the client has taken what the scenario did.
Proof: TypeAlias = Callable[[int, Method], bool]

#: Codes from here on are errors; libraries leave with 0 and with 200.
FIRST_ERROR = 300


def anything(channel: int, said: Method) -> bool:
    """Any method is proof."""
    return True


@attrs.define(eq=False)
class ClientCourse:
    """What a client does after a scenario has acted."""

    has_acted: bool = False
    has_proved: bool = False
    #: In words: the client's own close, with an error.
    error: str = ""
    has_left: bool = False
    has_hung_up: bool = False
    proof: Proof = anything

    def act(self, proof: Proof = anything) -> None:
        """The scenario has acted; the first counts."""
        if not self.has_acted:
            self.has_acted, self.proof = True, proof

    def heard(self, channel: int, said: Method) -> None:
        """A method of the client's."""
        code = getattr(said, "reply_code", 0)
        if said.NAME in ("connection.close", "channel.close") and code >= FIRST_ERROR:
            self.error = self.error or f"{said.NAME} {code}: {getattr(said, 'reply_text', '')}"
        elif self.has_acted and self.proof(channel, said):
            self.has_proved = True
        self.has_left |= said.NAME == "connection.close"

    def outcome(self) -> str | None:
        """``goes on``, or what came in its place; None: the scenario has not acted."""
        if self.error or not self.has_acted:
            return self.error or None
        if self.has_proved:
            return "goes on"
        if self.has_left:
            return "passes over it"
        return "hangs up" if self.has_hung_up else "silence"


@attrs.define(eq=False)
class ClientLine:
    """One connection, to speak on."""

    version: SpokenVersion
    outbox: ServedOutbox
    watch: ClientWatch
    #: Ends the last consumer of a channel, and gives its tag.
    dismiss: Callable[[int], str]
    course: ClientCourse = attrs.field(factory=ClientCourse)
    #: As the client said in start-ok.
    capabilities: dict[str, object] = attrs.field(factory=dict)
    #: Heartbeats in seconds, as agreed; 0: none.
    heartbeat: int = 0
    #: The longest without a byte, in seconds, and whether the broker keeps its own heartbeats back.
    silence: float = 0
    is_mute: bool = False
    virtual_host: str = ""
    #: As the client names itself: product and version.
    product: str = ""

    def method(self, name: str, **fields: object) -> Method:
        """A method of the version, by its class's name."""
        made: Method = getattr(self.version.amqp, name)(**fields)
        return made

    def say(self, channel: int, *said: Method) -> None:
        """Methods, in order."""
        for one in said:
            self.watch.told(channel, one)
            self.outbox.put(channel, method_frame(channel, one, self.version.dialect))

    def content(self, channel: int, said: Method, properties: Properties, body: bytes) -> list[bytes]:
        """The frames of a method with content, the body cut as was agreed."""
        header = ContentHeader(said.CLASS_ID, len(body), properties)
        return [
            method_frame(channel, said, self.version.dialect),
            frame(HEADER, channel, encode_header(header, self.version.dialect)),
            *body_frames(channel, body, self.watch.frame_max),
        ]
