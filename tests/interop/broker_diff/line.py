"""One client connection on a raw socket: what was received, by channel, and ways to wait for it."""

from __future__ import annotations

import socket
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final

from amqpgate.protocol.frames import (
    FRAME_BODY,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    Frame,
    FrameDecoder,
    method_frame,
)
from amqpgate.wire.codec import decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.frames import content_frames

#: Seconds for what must come to come. Nothing waits for this long unless something is wrong.
PATIENCE: Final = 10.0

#: Sent by a broker without having been asked at that moment.
UNASKED: Final = (amqp.BasicDeliver, amqp.BasicReturn, amqp.BasicCancel)
CONFIRMS: Final = (amqp.BasicAck, amqp.BasicNack)


class Stuck(Exception):
    """What was waited for did not come."""


class Line:
    """A connection. Frames are kept in `received`; each wait reads the socket until its condition holds."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._decoder = FrameDecoder(0)
        self.frame_max = 131_072
        #: In order; heartbeats are left out.
        self.received: list[Frame] = []
        #: Positions in `received` of answers that only a round trip of the player asked for.
        self.own: set[int] = set()
        self.answers: Counter[int] = Counter()
        self.unasked: Counter[int] = Counter()
        self.settled: defaultdict[int, set[int]] = defaultdict(set)
        self.last_answer: dict[int, Method] = {}
        #: Of messages that came without having been asked for.
        self.last_properties: dict[int, amqp.BasicProperties] = {}
        self._answered_at: dict[int, int] = {}
        self._last_method: dict[int, Method] = {}
        self._missing: dict[int, int] = {}
        #: A protocol header in place of frames.
        self.refusal = b""
        #: The handshake is done.
        self.is_open = False
        #: The broker has sent connection.close, or is gone.
        self.is_ending = False
        self.is_ended = False

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError:
            self.is_ended = self.is_ending = True

    def send_method(self, channel: int, method: Method) -> None:
        self.send(method_frame(channel, method))

    def send_content(
        self, channel: int, method: Method, properties: amqp.BasicProperties, body: bytes
    ) -> None:
        self.send(content_frames(channel, method, properties, body, self.frame_max))

    def wait_for_answers(self, channel: int, count: int) -> None:
        """Until so many answers in all have come on a channel, or the connection ends."""
        self._wait(lambda: self.answers[channel] >= count or self.is_ending, f"answer {count} on {channel}")

    def wait_for_unasked(self, channel: int, count: int) -> None:
        self._wait(lambda: self.unasked[channel] >= count, f"{count} deliveries on channel {channel}")

    def wait_for_confirms(self, channel: int, count: int) -> None:
        self._wait(lambda: len(self.settled[channel]) >= count, f"{count} confirms on channel {channel}")

    def wait_for_end(self) -> None:
        self._wait(lambda: self.is_ended, "the broker to hang up")

    def hide_all(self) -> None:
        """Leave all that has come so far out of the transcript."""
        self.own.update(range(len(self.received)))

    def hide_last_answer(self, channel: int) -> None:
        """Leave the last answer (without content) on a channel out of the transcript."""
        self.own.add(self._answered_at[channel])

    def hang_up(self) -> None:
        self._socket.close()
        self.is_ended = self.is_ending = True

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if self.is_ended:
                raise Stuck(f"hung up on while waiting for {what}")
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                raise Stuck(f"no {what}") from None
            except ConnectionError:
                data = b""
            if not data:
                self.is_ended = self.is_ending = True
            if data.startswith(b"AMQP") and not self.received:
                self.refusal = data
                continue
            self._decoder.feed(data)
            while (frame := self._decoder.next()) is not None:
                self._note(frame)

    def _note(self, frame: Frame) -> None:
        if frame.type == FRAME_HEARTBEAT:
            return
        self.received.append(frame)
        channel = frame.channel
        if frame.type == FRAME_METHOD:
            method = self._last_method[channel] = decode_method(frame.payload)
            if not method.CONTENT:
                self._complete(channel)
        elif frame.type == FRAME_HEADER:
            header = decode_header(frame.payload)
            assert isinstance(header.properties, amqp.BasicProperties)
            self.last_properties[channel] = header.properties
            self._missing[channel] = header.body_size
            if not self._missing[channel]:
                self._complete(channel)
        elif frame.type == FRAME_BODY:
            self._missing[channel] -= len(frame.payload)
            if not self._missing[channel]:
                self._complete(channel)

    def _complete(self, channel: int) -> None:
        method = self._last_method[channel]
        if isinstance(method, CONFIRMS):
            settled = self.settled[channel]
            first = 1 if method.multiple else method.delivery_tag
            settled.update(range(first, method.delivery_tag + 1))
        elif isinstance(method, UNASKED):
            self.unasked[channel] += 1
        else:
            self.answers[channel] += 1
            self.last_answer[channel] = method
            self._answered_at[channel] = len(self.received) - 1
            self.is_ending = self.is_ending or isinstance(method, amqp.ConnectionClose)
