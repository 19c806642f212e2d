"""One end of a conversation of AMQP 0-10, on a blocking socket: client or broker, by hand."""

from __future__ import annotations

from collections import deque
from typing import TypeVar

from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.structs import Command, Control
from amqpgate.wire.v0_10.types import Array
from tests.support.recorded_0_10 import HEADER
from tests.support.said_0_10 import Sent, Splitter
from tests.support.talk_0_10 import command, control
from tests.support.talker import Talker

T = TypeVar("T", bound="Control | Command")

_READ = 256 * 1024
_FRAME_HEADER = 12
START = amqp.ConnectionStart(mechanisms=Array(TypeCode.STR16, (b"PLAIN", b"ANONYMOUS")))
START_OK = amqp.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0guest\0guest", locale=b"en_US")
TUNE = amqp.ConnectionTune(channel_max=1000, max_frame_size=65535, heartbeat_min=0, heartbeat_max=120)


class Peer010:
    """The end of `talker` that speaks 0-10. What it hears is kept, as bytes and by commands."""

    def __init__(self, talker: Talker) -> None:
        self.sock = talker.sock
        self._splitter = Splitter()
        self._heard: deque[Sent] = deque()

    def say(self, *said: bytes | Control | Command, channel: int = 0) -> None:
        for one in said:
            if isinstance(one, Control):
                self.sock.sendall(control(one, 0 if one.CLASS_CODE == 1 else channel))
            else:
                self.sock.sendall(command(one, channel=channel) if isinstance(one, Command) else one)

    def hear(self) -> Sent:
        """The next control or command; heartbeats are passed over. Raises ``EOFError``."""
        while True:
            while not self._heard:
                data = self.sock.recv(_READ)
                if not data:
                    raise EOFError
                self._heard.extend(self._splitter.feed(data))
            sent = self._heard.popleft()
            if not isinstance(sent.control, amqp.ConnectionHeartbeat):
                return sent

    def expect(self, kind: type[T]) -> T:
        """The next one, which is one of these."""
        sent = self.hear()
        said = sent.control or sent.command
        assert isinstance(said, kind), said
        return said

    def raw(self, count: int) -> bytes:
        """The next bytes as they come: nothing that is kept may be before them."""
        assert not self._heard
        data = b""
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def at_end(self) -> bool:
        """Whether the other end has closed, and said nothing more."""
        try:
            return not self.sock.recv(1)
        except ConnectionResetError:
            return True


def greet(broker: Talker) -> Peer010:
    """A broker that hears the protocol header, and says start."""
    peer = Peer010(broker)
    assert peer.raw(len(HEADER)) == HEADER
    peer.say(HEADER, START)
    # The gateway's own words have no header.
    peer._splitter = Splitter(header=False)
    return peer


def log_in(
    client: Peer010, broker: Peer010, tune_ok: amqp.ConnectionTuneOk, tune: amqp.ConnectionTune
) -> None:
    """From start to open-ok."""
    client.expect(amqp.ConnectionStart)
    client.say(START_OK)
    broker.expect(amqp.ConnectionStartOk)
    broker.say(tune)
    client.expect(amqp.ConnectionTune)
    client.say(tune_ok, amqp.ConnectionOpen(virtual_host=b""))
    broker.expect(amqp.ConnectionTuneOk)
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
