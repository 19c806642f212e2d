"""A client's connection that hears a silent peer out: heartbeats both ways, and what comes meanwhile."""

from __future__ import annotations

import ssl
import time
from types import ModuleType

from amqpgate.protocol.frames import FRAME_HEARTBEAT, FRAME_METHOD, Frame, encode_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1
from tests.support.talker import Gone, Talker
from tests.support.versions import SPOKEN, Spoken, log_in

#: Seconds; as much for clients as for the gateway's other hop.
HEARTBEAT = 4

_BEAT = encode_frame(FRAME_HEARTBEAT, 0, b"")
_READ = 1 << 18


class Left(Gone):
    """The peer has closed the connection or the channel, or cancelled the consumer."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}")
        self.code = code


class Line(Talker):
    """Channel 1 of a connection in one of the versions that have frames of 0-9-1."""

    spoken: Spoken = SPOKEN["0-9-1"]
    heard_at = 0.0
    _said_at = 0.0
    blocked = False

    @classmethod
    def opened(cls, port: int, version: str, *, vhost: str = "/", tls: ssl.SSLContext | None = None) -> Line:
        line = cls.dial(port, timeout=20, tls=tls)
        try:
            line._open(SPOKEN[version], vhost)
        except BaseException:
            line.close()
            raise
        return line

    @property
    def words(self) -> ModuleType:
        return self.spoken.words

    def _open(self, spoken: Spoken, vhost: str) -> None:
        self.spoken, self.dialect, words = spoken, spoken.dialect, spoken.words
        self.raw(spoken.header)
        log_in(self, spoken)
        tune = self.expect(words.ConnectionTune)
        self.say(words.ConnectionTuneOk(tune.channel_max, tune.frame_max, HEARTBEAT))
        self.ask(words.ConnectionOpen(virtual_host=vhost), words.ConnectionOpenOk)
        self.ask(words.ChannelOpen(), words.ChannelOpenOk, 1)
        self.frame_max = tune.frame_max
        self.heard_at = self._said_at = time.monotonic()

    def send(self, data: bytes) -> None:
        self.sock.settimeout(2 * HEARTBEAT + 2)
        self.sock.sendall(data)
        self._said_at = time.monotonic()

    def came(self, wait: float) -> list[Frame]:
        """Frames that have come, or come within so many seconds; heartbeats are sent and heard."""
        now = time.monotonic()
        if now - self._said_at > HEARTBEAT / 2:
            self.send(_BEAT)
        try:
            self.sock.settimeout(wait)
            data = self.receive()
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            if now - self.heard_at > 2 * HEARTBEAT + 1:
                raise Gone("silent") from None
            return []
        if not data:
            raise Gone("closed")
        self.heard_at = time.monotonic()
        self.decoder.feed(data)
        frames = []
        while (frame := self.decoder.next()) is not None:
            if frame.type != FRAME_HEARTBEAT and not self._is_ours(frame):
                frames.append(frame)
        return frames

    def receive(self) -> bytes:
        try:
            return self.sock.recv(_READ)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""

    def _is_ours(self, frame: Frame) -> bool:
        """What is not about messages. Raises `Left`."""
        if frame.type != FRAME_METHOD or frame.payload[:2] not in (b"\0\x0a", b"\0\x14"):
            if frame.type == FRAME_METHOD and frame.payload[:4] == b"\0\x3c\0\x1e":
                raise Left(0, "the consumer was cancelled")
            return False
        method = decode_method(frame.payload, self.dialect)
        if method.NAME in ("connection.close", "channel.close"):
            close_ok = "ConnectionCloseOk" if frame.channel == 0 else "ChannelCloseOk"
            self.say(getattr(self.words, close_ok)(), frame.channel)
            raise Left(method.reply_code, method.reply_text)  # type: ignore[attr-defined]
        if isinstance(method, v0_9_1.ConnectionBlocked | v0_9_1.ConnectionUnblocked):
            self.blocked = isinstance(method, v0_9_1.ConnectionBlocked)
            return True
        return False

    def leave(self) -> None:
        """connection.close, and wait for what answers it."""
        self.sock.settimeout(10)
        self.say(self.words.ConnectionClose(reply_code=200, reply_text="bye"))
        answer = self.words.ConnectionCloseOk.INDEX.to_bytes(4)
        for frame in self.all():
            if frame.type == FRAME_METHOD and frame.payload[:4] == answer:
                return
